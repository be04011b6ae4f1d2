"""What of a lineage the model sees, and that recall finds all the rest of it, wherever it goes
on."""

from __future__ import annotations

import json
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from core.agent.sessions import MAX_ROW_ID, Boundary, next_title, window_of
from core.types import Address, Scope, Usage
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.samples import message, session
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.tables import each_row

DESK: dict[str, Any] = {
    "who": "local",
    "address": Address(platform="terminal", chat_id="local"),
    "scope": Scope.account("terminal", "local"),
}


def test_prompt_window_covers_carried_messages_and_the_whole_current_session() -> None:
    rows = [
        message(3, id=7),
        message(3, id=9),
        message(5, id=8),
        message(5, id=12),
        message(6, id=20),
    ]
    assert window_of(session(id=6), rows) == ((3, 7, 9), (5, 8, 12), (6, 20, MAX_ROW_ID))


def test_window_of_a_new_session_includes_its_first_turn() -> None:
    assert window_of(session(id=6), []) == ((6, 0, MAX_ROW_ID),)
    assert window_of(session(id=6), [message(5, id=2)]) == ((5, 2, 2), (6, 0, MAX_ROW_ID))


@each_row(
    ("title", "parent_id", "child"),
    [
        ("Trip", None, "Trip #2"),
        ("Trip #2", 1, "Trip #3"),
        ("Trip", 1, "Trip #2"),
        ("Apollo #11", None, "Apollo #11 #2"),
        (None, None, None),
    ],
)
def test_child_session_gets_the_next_number_in_its_title(
    title: str | None, parent_id: int | None, child: str | None
) -> None:
    assert next_title(session(title=title, parent_id=parent_id)) == child


async def test_later_message_at_the_old_address_is_recalled_from_the_new_one(home: Path) -> None:
    """Carried to the terminal, the session stays open in its chat: what is said there afterwards
    the model at the terminal has never seen."""
    model = ScriptedModel(
        says("Noted, the heron."), says("ok"), says("ok"), says("Noted, the quay.")
    )
    async with open_gateway(home, model) as harness:
        await harness.say("The heron knows when the ferry leaves")
        await harness.say("/sessions 1", **DESK)
        await harness.say("Here I am", **DESK)
        assert "heron knows" in str(model.requests[-1].messages), "it was carried along"
        await harness.say("Thank you")
        await harness.say("The ferry leaves from the north quay")
        found = await _searched(harness, model, "ferry OR heron")
        assert [match["snippet"] for item in found for match in item["matches"]] == [
            "The >>>ferry<<< leaves from the north quay"
        ]
        parts = ("bookend_start", "window", "bookend_end")
        shown = {entry["text"] for item in found for part in parts for entry in item[part]}
        assert shown == {
            "Thank you",
            "ok",
            "The ferry leaves from the north quay",
            "Noted, the quay.",
        }


async def test_resumed_session_and_its_parent_are_one_recall_result(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("The ferry leaves at nine")
        await harness.say("/sessions 1", **DESK)
        await harness.say("Is it the ferry of nine?", **DESK)
        await harness.say("The ferry was late")
        await harness.say("/new", **DESK)
        reply = await harness.say("/recall ferry")
        assert reply.text.count("session ") == 1
        found = await _searched(harness, model, "ferry")
        assert len(found) == 1
        assert len(found[0]["matches"]) == 3


async def test_a_resumed_session_is_sent_again_byte_for_byte(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("The ferry to Lisbon leaves at nine")
        await harness.say("/new")
        await harness.say("When does the ferry leave?")
        await harness.say("Thank you")
        before = _sent(model.requests[-1].messages)
        assert "memory-context" in str(before)
        await harness.say("/new")
        await harness.say("Something else")
        await harness.say("/sessions 2")
        await harness.say("And on Sundays?")
        assert _sent(model.requests[-1].messages)[: len(before)] == before
        assert model.requests[-1].system == model.requests[2].system


async def test_turns_carried_into_a_child_session_keep_the_form_in_which_they_were_sent(
    home: Path,
) -> None:
    """After a length split the last turns go along with their time lines and what memory added to
    them."""
    full = Usage(input=10, cache_read=15_500, output=10)
    model = ScriptedModel(
        says("ok"), says("ok"), says("At nine.", usage=full), says("kept"), says("in the child")
    )
    async with open_gateway(home, model, "[model]\nwindow_tokens = 20000\n") as harness:
        await harness.say("The ferry to Lisbon leaves at nine")
        await harness.say("/new")
        await harness.say("first " + "x" * 40_000)
        await harness.say("When does the ferry leave?")
        asked = _sent(model.requests[-1].messages)[-1]
        assert "memory-context" in str(asked)
        assert (await harness.say("third")).text.startswith("in the child\n\n_I've summarized")
        sent = [block for one in _sent(model.requests[-1].messages) for block in one["content"]]
        assert all(block in sent for block in asked["content"])


def _sent(messages: Any) -> list[dict[str, Any]]:
    """The messages of a request without their cache breakpoints."""
    return [
        {
            "role": one["role"],
            "content": [
                {key: value for key, value in block.items() if key != "cache_control"}
                for block in one["content"]
            ],
        }
        for one in messages
    ]


async def _searched(
    harness: GatewayHarness, model: ScriptedModel, query: str
) -> list[dict[str, Any]]:
    """What the model at the terminal gets for a search."""
    model.script[:] = [calls(("session_search", {"query": query, "limit": 10})), says("I see.")]
    await harness.say("Look it up", **DESK)
    (block,) = (
        block
        for block in model.requests[-1].messages[-1]["content"]
        if block["type"] == "tool_result"
    )
    content = block["content"]
    result = json.loads(content if isinstance(content, str) else content[0]["text"])
    sessions: list[dict[str, Any]] = result["sessions"]
    return sessions


@each_row(
    ("last", "now", "reason"),
    [
        ("2026-11-20T21:00", "2026-11-21T02:59", None),
        ("2026-11-20T21:00", "2026-11-21T03:00", "daily"),
        ("2026-11-21T03:01", "2026-11-21T08:00", None),
        ("2026-11-21T03:01", "2026-11-21T15:01", "idle"),
    ],
)
def test_session_ends_after_idle_hours_or_at_a_daily_time_in_the_persons_time_zone(
    last: str, now: str, reason: str | None
) -> None:
    boundary = Boundary(idle=timedelta(hours=12), daily_at=time(4), zone=ZoneInfo("Europe/Paris"))
    last_at, present = (datetime.fromisoformat(f"{one}+00:00") for one in (last, now))
    assert boundary.end_reason(last_at, present) == reason
    assert Boundary().end_reason(last_at, present) is None
