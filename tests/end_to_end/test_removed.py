"""Whoever is removed in a shell loses at once what the running process is answering, and stays out
after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import good
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

MEMBER, OTHER = 7, 8
ACCESS = f'[access]\npeople = ["telegram:{MEMBER}", "telegram:{OTHER}"]\n'


async def test_answer_in_progress_is_cancelled_when_its_asker_is_removed(home: Path) -> None:
    hold = asyncio.Event()

    def brain(body: dict[str, Any]) -> ModelReply:
        is_secret = "lagoon" in str(body["messages"][-1])
        return ModelReply.say(
            "It is a secret." if is_secret else "Hello.", hold=hold if is_secret else None
        )

    async with LiveSystem.open(home, MessagesApi(brain, key=KEY), ACCESS) as live:
        await live.start()
        live.telegram.user_says(MEMBER, "What of the lagoon?")
        await live.until(lambda: live.model.held > 0)
        await asyncio.to_thread(good, home, "people", "block", f"telegram:{MEMBER}")
        # The call of the model is given up before it has said anything.
        await live.until(lambda: live.model.disconnects > 0)
        await live.until(lambda: live.query("SELECT count(*) FROM inbox") == [(0,)])
        hold.set()
        for chat in (MEMBER, OTHER):
            live.telegram.user_says(chat, "hello")
        await live.until(lambda: "Hello." in live.telegram.texts(OTHER))
        assert await live.stop() == 0
        await live.start()
        for chat in (MEMBER, PERSON):
            live.telegram.user_says(chat, "hello again")
        await live.until(lambda: "Hello." in live.telegram.texts(PERSON))
        assert live.telegram.texts(MEMBER) == []
        assert live.query("SELECT count(*) FROM messages WHERE text LIKE '%secret%'") == [(0,)]
