"""Turns of a conversation, also those that a restart or the delivery of a reminder interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.store.rows import find_answered_rows, has_answer, join_interrupted, split_turns
from core.types import Message
from tests.fixtures.clock import SteadyClock

NOW = SteadyClock().now()
CALL = {"type": "tool_use", "id": "1", "name": "memory", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "Noted."}


def message(role: Any, text: str, **values: Any) -> Message:
    return Message(role=role, text=text, session_id=1, created_at=NOW, **values)


QUESTION = message("user", "Note that the ferry leaves at nine", external_id="10")
CALLED = message("assistant", "", blocks=(CALL,))
DONE = message("tool", "Noted.", blocks=(RESULT,))
REMINDER = message("assistant", "Call mum.", origin="job")
LATER_QUESTION = message("user", "Are you there?", external_id="11")
ANSWER = message("assistant", "I have noted it.")


@pytest.mark.parametrize(
    "interrupted",
    [
        [QUESTION, CALLED, DONE, REMINDER],
        [QUESTION, CALLED, REMINDER, DONE],
        [QUESTION, CALLED, REMINDER],
        [QUESTION, REMINDER],
    ],
)
def test_turn_interrupted_before_a_reminder_is_joined_with_the_messages_that_followed(
    interrupted: Sequence[Message],
) -> None:
    rows = [*interrupted, LATER_QUESTION, ANSWER]
    assert not has_answer(interrupted)
    assert find_answered_rows(rows, {"10", "11"}) == rows
    assert join_interrupted(split_turns(rows)) == [rows]


def test_answered_turn_is_not_joined_with_the_next_one_because_a_reminder_followed_it() -> None:
    first = [QUESTION, CALLED, DONE, ANSWER, REMINDER]
    second = [LATER_QUESTION, ANSWER]
    assert has_answer(first)
    assert find_answered_rows([*first, *second], {"11"}) == second
    assert join_interrupted(split_turns([*first, *second])) == [first, second]
