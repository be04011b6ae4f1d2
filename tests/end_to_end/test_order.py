"""Order and number of answers on a real wire: one above the other as they were asked for, and one
for a burst."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from gateway.app import run_gateway
from tests.fixtures.bot_api import BotApi
from tests.fixtures.media_samples import make_photo
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.stores import run_statement

pytestmark = pytest.mark.slow

PERSON = 4242
KEY = "sk-ant-order"


@asynccontextmanager
async def living(home: Path, api: BotApi, **more: str) -> AsyncIterator[None]:
    """One life of the whole gateway, which ends without a goodbye."""
    (home / "mneme.toml").write_text(
        f'[owner]\ntelegram = [{PERSON}]\n[general]\nzone = "Europe/Lisbon"\n'
    )
    variables = {
        "MNEME_HOME": str(home),
        "TELEGRAM_BOT_TOKEN": api.token,
        "MNEME_TELEGRAM_API_URL": api.url,
        **more,
    }
    polls = len(api.called("getUpdates"))
    running = asyncio.create_task(
        run_gateway(Settings.load(variables), chat_only=False, has_terminal=False)
    )
    try:
        await api.wait_for(lambda: len(api.called("getUpdates")) > polls or running.done(), 30)
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


def shown(api: BotApi) -> list[str]:
    return [text.split("“")[1].split("”")[0] for text in api.texts(PERSON)]


def postponed(home: Path) -> int:
    """How many answers have failed to leave."""
    statement = "SELECT COUNT(*) FROM outbox WHERE error IS NOT NULL AND done_at IS NULL"
    return int(run_statement(home, statement)[0][0])


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_answers_are_delivered_in_order_after_a_platform_outage(
    home: Path, is_restarted: bool
) -> None:
    async with BotApi() as api, AsyncExitStack() as lives:
        await lives.enter_async_context(living(home, api))
        api.fail(500, "Internal Server Error", method="sendMessage", times=3)
        api.user_says(PERSON, "/title one")
        await api.wait_for(lambda: postponed(home) > 0, 20)
        api.user_says(PERSON, "/title two")
        if is_restarted:
            await lives.aclose()
            await lives.enter_async_context(living(home, api))
        api.user_says(PERSON, "/title three")
        await api.wait_for(lambda: len(api.texts(PERSON)) == 3, 30)
        assert shown(api) == ["one", "two", "three"]


PHOTO = [{"file_id": "f", "file_unique_id": "u", "width": 90, "height": 90}]


@pytest.mark.parametrize("is_album", [True, False])
async def test_messages_sent_in_a_burst_get_one_answer(home: Path, is_album: bool) -> None:
    gate, words = asyncio.Event(), ("first", "second", "third")
    part: dict[str, Any] = {"media_group_id": "g", "photo": PHOTO}

    def read(body: dict[str, Any]) -> ModelReply:
        """Says which of the words it was asked, once the test lets it."""
        if not body.get("tools"):
            return ModelReply.say("[]")
        asked = " and ".join(word for word in words if word in str(body["messages"][-1]))
        return ModelReply.say(f"I read {asked}", hold=gate)

    async with BotApi() as api, MessagesApi(read, key=KEY) as model:
        api.server.add("f", make_photo())
        async with living(home, api, ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=model.url):
            for word in words:
                api.user_says(PERSON, word, **(part if is_album else {}))
            await model.until(lambda: "third" in str(model.requests), 20)
            gate.set()
            await api.wait_for(lambda: len(api.texts(PERSON)) > 0, 20)
            api.user_says(PERSON, "/title over")
            await api.wait_for(lambda: "over" in api.texts(PERSON)[-1], 20)
        assert api.texts(PERSON)[:-1] == ["I read first and second and third"]
        assert model.refusals == []
