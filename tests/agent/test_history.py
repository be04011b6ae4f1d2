"""Rows to request messages: the same bytes for the same rows, and repairs of what a crash left half done."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from core.agent.history import INTERRUPTED, conversation, mark, marked
from core.types import Message, Role

AT = datetime(2026, 11, 20, tzinfo=UTC)


def row(role: Role, text: str = "", *blocks: dict[str, Any], id: int = 0) -> Message:
    return Message(role=role, text=text, blocks=blocks or None, session_id=1, created_at=AT, id=id)


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "memory", "input": {"a": 1}}


def result(id: str, text: str = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def roles(turns: list[dict[str, Any]]) -> str:
    return "".join(turn["role"][0] for turn in turns)


def test_users_in_a_row_become_one_turn() -> None:
    turns = conversation([row("user", "a"), row("user", "b"), row("assistant", "c")])
    assert roles(turns) == "ua"
    assert [block["text"] for block in turns[0]["content"]] == ["a", "b"]


def test_parallel_results_stand_first_in_the_next_user_turn_in_the_order_of_the_calls() -> None:
    turns = conversation(
        [
            row("user", "go"),
            row("assistant", "", use("x"), use("y")),
            row("tool", "2", result("y")),
            row("tool", "1", result("x")),
            row("user", "and?"),
        ]
    )
    assert roles(turns) == "uau"
    assert [block.get("tool_use_id", block["type"]) for block in turns[2]["content"]] == ["x", "y", "text"]


def test_a_call_without_a_result_is_answered_as_interrupted() -> None:
    turns = conversation([row("user", "go"), row("assistant", "", use("x")), row("user", "hello?")])
    assert turns[2]["content"][0]["content"] == INTERRUPTED
    assert turns[2]["content"][0]["is_error"] is True
    assert turns[2]["content"][1]["text"] == "hello?"


def test_a_call_at_the_very_end_is_answered_too() -> None:
    turns = conversation([row("user", "go"), row("assistant", "", use("x"))])
    assert roles(turns) == "uau"
    assert turns[-1]["content"][0]["tool_use_id"] == "x"


def test_a_result_without_a_call_is_dropped() -> None:
    turns = conversation([row("user", "go"), row("tool", "", result("z")), row("assistant", "ok")])
    assert [block["type"] for block in turns[0]["content"]] == ["text"]


def test_a_window_that_opens_mid_turn_begins_with_the_first_words_of_a_person() -> None:
    turns = conversation(
        [row("assistant", "", use("x")), row("tool", "", result("x")), row("assistant", "so"), row("user", "next")]
    )
    assert roles(turns) == "u"
    assert turns[0]["content"][0]["text"] == "next"


def test_nothing_a_person_said_is_nothing_to_send() -> None:
    assert conversation([row("assistant", "hello")]) == []


def test_empty_text_is_never_sent() -> None:
    turns = conversation([row("user", "a"), row("assistant", "  \n"), row("user", "b")])
    assert roles(turns) == "u"


def test_the_sent_form_wins_over_blocks_and_text() -> None:
    sent = ({"type": "text", "text": "[time]"}, {"type": "text", "text": "a"})
    message = Message(role="user", text="a", session_id=1, created_at=AT, sent=sent)
    assert tuple(conversation([message])[0]["content"]) == sent


def test_marks_stand_at_the_previous_tail_and_at_this_one_and_change_no_row() -> None:
    words: list[tuple[Role, str]] = [
        ("user", "1"),
        ("assistant", "2"),
        ("user", "3"),
        ("assistant", "4"),
        ("user", "5"),
    ]
    turns = conversation([row(role, text) for role, text in words])
    request = marked(turns)
    where = [i for i, turn in enumerate(request) if "cache_control" in turn["content"][-1]]
    assert where == [2, 4]
    assert all("cache_control" not in block for turn in turns for block in turn["content"])


def test_a_thinking_block_is_never_marked() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    turns = conversation([row("user", "1"), row("assistant", "2", {"type": "text", "text": "2"}, thinking)])
    last = marked(turns)[-1]["content"]
    assert "cache_control" in last[0]
    assert "cache_control" not in last[1]


def test_each_prefix_of_a_conversation_is_kept_when_it_grows() -> None:
    rows = [
        row("user", "go"),
        row("assistant", "", use("x")),
        row("tool", "", result("x")),
        row("assistant", "done"),
        row("user", "more"),
    ]
    requests = [conversation(rows[:length]) for length in (1, 3, 5)]
    for earlier, later in pairwise(requests):
        assert later[: len(earlier)] == earlier


def test_what_was_said_after_a_call_without_result_does_not_change_the_prefix() -> None:
    rows = [
        row("user", "go"),
        row("assistant", "", use("x")),
        row("assistant", "it was interrupted"),
        row("user", "and?"),
    ]
    before, after = conversation(rows[:2]), conversation(rows)
    assert after[: len(before)] == before
    assert roles(after) == "uauau"


def test_a_mark_says_for_how_long() -> None:
    assert mark("5m") == {"type": "ephemeral"}, "as every server knows it"
    (turn,) = marked(conversation([row("user", "hello")]), "1h")
    assert [block["cache_control"] for block in turn["content"]] == [{"type": "ephemeral", "ttl": "1h"}]
