"""What the conversation says already, word for word, and what only sounds like it."""

from __future__ import annotations

import pytest

from core.agent.user_message import is_repeated

SAID = "i moved to porto in may and like it here\nnoted\n我五月份搬到波尔图去住了 很喜欢这里"


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
    assert is_repeated(text, SAID)


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
    assert not is_repeated(text, SAID)
