"""The index of phrases that tells whether a message may be about reminders."""

# ruff: noqa: RUF001
from __future__ import annotations

from core.scheduling.talk.agenda_questions import PhraseIndex
from tests.fixtures.tables import each_row

INDEX = PhraseIndex(
    {"remind me", "remind me again", "alarm", "ты", "提醒", "叫", "알려줘", "7시", ""}
)


@each_row(
    "text",
    [
        "remind me",
        "please remind me at 9",
        "i said,remind me",
        "alarms",
        "а ты",
        "Please REMIND me",
        "请提醒我",
        "明天叫",
        "내일알려줘",
        "at 7시",
    ],
)
def test_text_with_a_phrase_is_found(text: str) -> None:
    assert INDEX.is_in(text)


@each_row("text", ["", "remind", "premind me", "the falsealarm", "коты", "提", "알려", "7", "an a"])
def test_text_without_a_phrase_is_not_found(text: str) -> None:
    assert not INDEX.is_in(text)


def test_an_index_without_phrases_finds_nothing() -> None:
    assert not PhraseIndex(()).is_in("remind me 提醒")
