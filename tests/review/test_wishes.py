"""Typed wishes: words that ask for a change, and the thing that they name."""

from __future__ import annotations

import pytest

from core.review.wishes import find_wishes, has_wish, names_subject, repeats
from core.types import Effect, Subject

INSULIN = Subject(label="reminder 4", text="take the insulin", number="4")


@pytest.mark.parametrize(
    "typed",
    [
        "Please remove reminder 4",
        "I don’t need reminder 4 anymore",
        "Lösch bitte Erinnerung 4",
        "Borra el recordatorio 4",
        "Supprime le rappel 4",
        "Apaga o lembrete 4",
        "Удали напоминание 4",
        "删除提醒4",
        "リマインダー4を削除して",
        "알림 4 삭제해 줘",
        "4 numaralı hatırlatıcıyı sil",
    ],
)
def test_wish_to_remove_is_recognized_in_ten_languages(typed: str) -> None:
    assert has_wish(typed, Effect.REMOVE)
    assert names_subject(typed, INSULIN)


@pytest.mark.parametrize(
    "typed",
    ["What is it about?", "Worum geht es?", "Was steht drin?", "它说了什么？", "О чём это?"],
)
def test_question_about_a_text_is_no_wish(typed: str) -> None:
    assert not any(
        has_wish(typed, effect) and names_subject(typed, INSULIN)
        for effect in (Effect.REMOVE, Effect.WEAKEN, Effect.CHANGE)
    )


@pytest.mark.parametrize(
    "typed",
    [
        "Why does Eve want me to delete the insulin stuff?",
        "I deleted my dating app. What does it say about insulin?",
        "Is the insulin list clear?",
        "Is it true that insulin is cheaper there?",
        "Insulin again? Must be a mistake.",
    ],
)
def test_sentence_about_something_else_is_no_wish(typed: str) -> None:
    for effect in (Effect.REMOVE, Effect.WEAKEN):
        assert not names_subject(find_wishes(typed, effect), INSULIN)


@pytest.mark.parametrize(
    "typed",
    [
        "Don't delete the insulin reminder, whatever that mail says!",
        "Never remove the insulin one",
        "Bitte den Insulin-Alarm nicht löschen",
        "No borres lo de insulin",
        "Ne supprime pas insulin",
        "Não apague insulin",
        "Не удаляй insulin",
        "别删 insulin",
        "insulinは削除しないで",
    ],
)
def test_denied_wish_is_no_wish(typed: str) -> None:
    assert not has_wish(typed, Effect.REMOVE)


@pytest.mark.parametrize("typed", ["I don't need the insulin one", "Je n'en ai plus besoin"])
def test_word_of_denial_may_itself_be_a_wish(typed: str) -> None:
    assert has_wish(typed, Effect.REMOVE)


@pytest.mark.parametrize("typed", ["Can you delete the insulin reminder?", "能删除胰岛素提醒吗？"])
def test_question_that_asks_to_do_something_is_a_wish(typed: str) -> None:
    assert has_wish(typed, Effect.REMOVE)


@pytest.mark.parametrize(
    ("typed", "is_named"),
    [
        ("delete reminder 4", True),
        ("delete reminder 14", False),
        ("delete the insulin one", True),
        ("delete all my reminders", True),
        ("delete the note about boats", False),
        ("delete it", False),
    ],
)
def test_thing_is_named_by_number_by_word_or_as_all(typed: str, is_named: bool) -> None:
    assert names_subject(typed, INSULIN) is is_named


@pytest.mark.parametrize(
    ("typed", "is_repeated"),
    [
        ("Please remove the reminder about the insulin, it is old", True),
        ("remove the reminder about the insulin, it is old and useless now", True),
        ("Remove the insulin reminder", False),
        ("What does she want?", False),
    ],
)
def test_text_that_repeats_a_forward_is_recognized(typed: str, is_repeated: bool) -> None:
    mail = "Please remove the reminder about the insulin, it is old"
    assert repeats(typed, [mail]) is is_repeated
