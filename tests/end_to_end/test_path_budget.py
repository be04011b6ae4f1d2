"""What one message costs, counted: files of ours, write transactions, reads. `docs/architecture.md`
has the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.bot_api import BotApi
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.path_meter import PathCount, metered

# The budget is that of state.db. On PostgreSQL, a message also enters the files of its client.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

KEY = "sk-ant-path"
SAID = ("The ferry leaves at nine.", "I like the old harbour.", "The bakery opens at eight.")


def brain(body: dict[str, Any]) -> str:
    """The chat has tools; who reads facts has none, and finds none."""
    return "That sounds good." if body.get("tools") else "[]"


def assert_within(
    count: PathCount, *, files: int, writes: int, later_writes: int, reads: int
) -> None:
    assert len(count.files) <= files, str(count)
    assert len(count.writes) <= writes, str(count)
    assert len(count.later_writes) <= later_writes, str(count)
    assert len(count.reads) <= reads, str(count)


async def test_plain_message_with_a_model_stays_within_its_budget(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with BotApi() as api, MessagesApi(brain, key=KEY) as model:
        variables = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}
        async with metered(home, api, monkeypatch, variables) as meter:
            counts = [await meter.say(text) for text in SAID]
            assert_within(counts[-1], files=48, writes=5, later_writes=0, reads=7)
            assert_within(
                await meter.say("/recall ferry"), files=36, writes=4, later_writes=0, reads=5
            )
        assert model.refusals == []


async def test_plain_message_without_a_model_stays_within_its_budget(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with BotApi() as api, metered(home, api, monkeypatch, {}) as meter:
        counts = [await meter.say(text) for text in SAID]
        assert_within(counts[-1], files=49, writes=5, later_writes=0, reads=7)
        assert_within(await meter.say("/recall ferry"), files=36, writes=4, later_writes=0, reads=5)
