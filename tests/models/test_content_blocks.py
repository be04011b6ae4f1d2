"""Blocks as they come and as they go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelError
from core.models import content_blocks
from core.types import Request

pytestmark = pytest.mark.slow

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=12,
)


@given(VALUES)
def test_everything_sound_can_be_written_and_stays_as_it_is(value: Any) -> None:
    sound = content_blocks.sound(value)
    assert json.loads(json.dumps(sound, ensure_ascii=False, allow_nan=False).encode()) == sound
    assert content_blocks.sound(sound) == sound


def test_two_halves_become_one_character() -> None:
    assert content_blocks.sound("a\ud83d\ude00b") == "a😀b"
    assert content_blocks.sound("\ude00\ud83d") == "\ufffd\ufffd"


def test_only_what_can_be_sent_back_is_kept() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "", "citations": None},
        {"type": "thinking", "thinking": "hm", "signature": "s", "extra": 1},
        {"type": "thinking", "thinking": "cut off"},
        {"type": "redacted_thinking", "data": ""},
        {"type": "tool_use", "id": "a", "name": "n", "input": {"x": float("inf")}, "caller": {"type": "direct"}},
        {"type": "text", "text": "end \n", "citations": []},
    ]
    assert content_blocks.kept(blocks) == (
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "n", "input": {"x": None}},
        {"type": "text", "text": "end"},
    )


@pytest.mark.parametrize(
    "block",
    [{"type": "web_search_tool_result"}, {}, {"type": "tool_use", "id": "a", "name": "n", "input": "{}"}],
)
def test_what_cannot_be_kept_is_an_error(block: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        content_blocks.kept([block])


def test_marks_are_taken_off_wherever_they_may_stand() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "a", "name": "n", "input": {"cache_control": "an argument"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "r"}]}

    def request(marks: dict[str, Any]) -> Request:
        marked_result = {**result, "content": [{"type": "text", "text": "r", **marks}], **marks}
        return Request(
            system=({"type": "text", "text": "s", **marks},),
            messages=(
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [{**call, **marks}]},
                {"role": "user", "content": [marked_result]},
            ),
            tools=({"name": "n", "input_schema": {}, **marks},),
        )

    assert content_blocks.unmarked(request(mark)) == content_blocks.unmarked(request({})) == request({})
