"""What the conversation says already, word for word, and what only sounds like it."""

from __future__ import annotations

import pytest

from core.agent.user_message import Repetition

SAID = Repetition(["I moved to Porto in May, and like it here.", "Noted.", "我五月份搬到波尔图去住了，很喜欢这里"])


@pytest.mark.parametrize(
    "text",
    [
        "user: I moved to Porto in May! assistant: Noted.",
        "“I MOVED to Porto in May”",
        "我五月份搬到波尔图去住了。很喜欢这里。",
        "Noted. I moved to Porto in May",
    ],
)
def test_it_is_there(text: str) -> None:
    assert SAID.has(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Porto",
        "in May",
        "I moved to Lisbon in May.",
        "user: I moved to Porto in May. assistant: To where?",
        "我七月份搬到波尔图",
    ],
)
def test_it_is_new(text: str) -> None:
    assert not SAID.has(text)
