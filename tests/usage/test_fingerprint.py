"""Fingerprints: whether a request goes on with an earlier one, told without its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.agent.history import marked
from core.types import Request
from core.usage.metered_model import changed_part, fingerprint

MARK = {"type": "ephemeral"}


def _turn(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


ASKED = [_turn("user", "Friday", "secret ferry")]
LATER = [*ASKED, _turn("assistant", "At nine."), _turn("user", "Saturday", "And back?")]
FIRST = Request(
    system=({"type": "text", "text": "You are Mneme.", "cache_control": MARK},),
    messages=marked(ASKED),
    tools=({"name": "clock", "input_schema": {}},),
    model="claude-sonnet-5-5",
)


def test_a_request_that_extends_another_has_nothing_changed() -> None:
    before = fingerprint(FIRST)
    assert changed_part(before, FIRST) is None
    assert changed_part(before, replace(FIRST, messages=marked(LATER))) is None, "marks move, words stay"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"model": "claude-haiku-5-5"}, "model"),
        ({"tools": ()}, "tools"),
        ({"system": ({"type": "text", "text": "You are Mneme!"},)}, "system"),
        ({"messages": (_turn("user", "Friday", "ferry"), *LATER[1:])}, "messages"),
        ({"messages": (_turn("user", "Friday"),)}, "messages"),
        ({"messages": (_turn("assistant", "Friday", "secret ferry"),)}, "messages"),
        ({"tools": (), "system": ()}, "tools"),
    ],
)
def test_the_first_part_that_differs_is_named(changes: dict[str, Any], part: str) -> None:
    assert changed_part(fingerprint(FIRST), replace(FIRST, **changes)) == part


def test_no_word_of_a_request_is_in_its_fingerprint() -> None:
    written = fingerprint(FIRST)
    assert len(written) < 120
    assert "ferry" not in written
    assert "Mneme" not in written


def test_half_a_character_has_an_fingerprint() -> None:
    odd = replace(FIRST, messages=(_turn("user", "\ud83d"),))
    assert changed_part(fingerprint(odd), odd) is None
