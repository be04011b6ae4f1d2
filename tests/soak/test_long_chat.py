"""A chat of thousands of messages at the terminal, in several lives of the house: it stays one conversation, all of it
is found, and what was decided stays before the model, however often its earlier part is condensed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import good
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

LIVES, TURNS = 10, 250
FIRST = "My boat is called Albatross and lies in Cascais."
DECISIONS = {
    40: "We decided to paint the hull green.",
    900: "We decided to leave on 12 June with the crew of Marta.",
    1700: "We decided not to paint the hull green, but blue.",
}


def answer(body: dict[str, Any]) -> ModelReply:
    """Talks, and is no help in making summaries: these are made by rules."""
    return ModelReply.say("That is on the list." if body.get("tools") else "A boat and its errands")


@pytest.mark.timeout(1800)
async def test_five_thousand_messages_are_one_conversation(home: Path) -> None:
    (home / "mneme.toml").write_text("[model]\nwindow_tokens = 20000\n[memory]\nfacts = false\n")
    lines = [FIRST, *(f"Errand {n}: carry crate {n * 7919 % 10007} to shed {n % 37}." for n in range(1, LIVES * TURNS))]
    for number, decision in DECISIONS.items():
        lines[number] = decision
    async with MessagesApi(answer) as api:
        options = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "k"}
        for life in range(LIVES):
            typed = "\n".join(lines[life * TURNS : (life + 1) * TURNS])
            said = await asyncio.to_thread(good, home, "chat", stdin=typed, **options)
            assert said.count("That is on the list.") == TURNS
        assert api.refusals == []
        talked = [request for request in api.requests if request.get("tools")]
        last = json.dumps(talked[-1]["messages"])
        assert len(last) < 80_000, "it is short"
        assert [decision for decision in (FIRST, *DECISIONS.values()) if decision.rstrip(".") not in last] == []
        asked = "/recall Albatross Cascais\n/sessions\n"
        told = await asyncio.to_thread(good, home, "chat", stdin=asked, **options)
    assert FIRST in told
    (row,) = [line for line in told.splitlines() if line.startswith("• ")]
    assert f"{2 * LIVES * TURNS:,} messages" in row
    found = json.loads(good(home, "recall", "What is the name of my boat in Cascais?", "--json"))
    assert FIRST in found["sessions"][0]["matches"][0]["snippet"].replace(">>>", "").replace("<<<", "")
    assert found["took_ms"] < 100
