"""Nothing that a person or a model says holds the event loop, in the real process; see also
`LiveSystem`, which watches the loop in every story."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.terminal.adapter import TEXT_CHARS
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.hostile import ANSWERS, MESSAGE_CHARS, TEXTS
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.loop_watch import watched
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.sweeps import keep_first

pytestmark = pytest.mark.slow


async def test_no_text_that_a_person_sends_blocks_the_event_loop(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        await live.start()
        for text in TEXTS.values():
            live.tells_telegram(text[:4096])
            await live.tells_discord(text[:2000])
            await live.types(" ".join(text.split())[:500])
            live.tells_telegram(f"/recall {text[:4000]}")
        live.tells_telegram("/whoami")
        await live.types("the last")
        await live.tells_discord("the last")
        await live.until(lambda: any("You said: the last" in line for line in live.printed), 60)
        await live.until(
            lambda: any("the last" in text for text in live.discord.said(live.channel)), 60
        )
        await live.until(
            lambda: any("telegram:" in text for text in live.telegram.texts(PERSON)), 60
        )
        assert await live.stop() == 0


@pytest.mark.parametrize(
    "name", keep_first(1, ["Chinese", "families", "what grows when it is folded", "escapes"])
)
async def test_longest_terminal_line_does_not_block_the_event_loop(
    home: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = TEXTS[name] * (TEXT_CHARS // MESSAGE_CHARS)
    async with open_gateway(home) as harness:
        await harness.say("When does the ferry leave?")
        with watched(monkeypatch, tmp_path / "loop"):
            assert (await harness.say(text)).text
            assert (await harness.say(f"/recall {text}")).text


@pytest.mark.parametrize("name", ["items", "one paragraph"])
async def test_no_model_answer_blocks_the_event_loop(home: Path, name: str) -> None:
    def answer(body: dict[str, Any]) -> ModelReply:
        return ModelReply.say(ANSWERS[name]) if body.get("tools") else ModelReply.say("A title")

    async with LiveSystem.open(home, MessagesApi(answer, key=KEY)) as live:
        await live.start()
        live.tells_telegram("Tell me")
        await live.tells_discord("Tell me")
        await live.types("Tell me")
        end = "the end"
        await live.until(lambda: any(end in text for text in live.telegram.texts(PERSON)), 60)
        await live.until(lambda: any(end in text for text in live.discord.said(live.channel)), 60)
        await live.until(lambda: any(end in line for line in live.printed), 60)
        assert await live.stop() == 0
