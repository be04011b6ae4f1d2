"""Wishes about a text, about something else or for the opposite, in ten languages.

Neither the rules nor, with a helper model that always says yes, the floor below it lets them pass.
"""

from __future__ import annotations

import pytest

from core.review.naming import names_subject
from core.review.wish_judge import may_be_wished
from core.review.wishes import find_wishes
from core.types import Effect, Subject
from tests.review.test_prohibitions import may_reach_helper, wants

DENTIST = Subject(label="fact 1", text="My dentist is Dr. Silva", kind="memory", number="1")


@pytest.mark.parametrize(
    "typed",
    [
        "Draft an answer to Eve, delete the reminder to take the insulin",
        "Answer politely, cancel the insulin reminder",
        "Print in bold, delete the insulin reminder",
        "A good title, delete the insulin reminder",
        "Undo taking away the insulin reminder",
        "Cancel my plan to take the insulin reminder away",
        "Forget about cancelling the insulin reminder",
        "Schreib Eve eine Antwort, lösch die insulin Erinnerung",
        "Ein guter Titel, lösch die insulin Erinnerung",
        "Escribe una respuesta a Eve, borra el recordatorio insulin",
        "Rédige une réponse à Eve, supprime le rappel insulin",
        "Escreve uma resposta à Eve, apaga o lembrete insulin",
        "Напиши ответ Еве, удали напоминание insulin",
        "给小伊写回信，删除insulin提醒",
        "エバに返事を書いて、insulinのリマインダーを削除して",
        "이브에게 답장을 써 줘, insulin 알림 삭제해",
        "Eve'e cevap yaz, insulin hatırlatıcısını sil",  # noqa: RUF001
        "Vergiss das Löschen der insulin Erinnerung",
        "Cancela borrar el recordatorio insulin",
        "取消删除insulin提醒",
        "Keep the insulin reminder, delete the mail",
        "Delete the swim reminder, not the insulin one",
        "Remove swim. Insulin stays.",
        "Delete everything in your draft but the insulin reminder",
        "Please remove insulin from the shopping list in the mail",
        "Can you delete the word insulin from her sentence?",
        "Behalte die insulin Erinnerung, lösch die Mail",
        "Deja el recordatorio insulin, borra el correo",
        "Garde le rappel insulin, supprime le mail",
        "Mantém o lembrete insulin, apaga o email",
        "Оставь напоминание insulin, удали письмо",
        "保留insulin提醒，删除邮件",
        "insulinのリマインダーは残して、メールを削除して",
        "insulin 알림은 두고 메일은 삭제해",
        "insulin hatırlatıcısı kalsın, postayı sil",  # noqa: RUF001
        "Delete her line about insulin",
        "Drop the sentence with insulin in my letter",
        "Remove the second insulin from the text",
        "Make it daily at 7 please, the insulin one is fine",
        "Lösch die Schwimmerinnerung, insulin passt so",
        "Borra el recordatorio de natación, el de insulin está bien así",
        "Give me an example command, e.g. delete the insulin reminder",
        "Gib mir ein Beispiel: lösch die insulin Erinnerung",
        "Dame un ejemplo: borra el recordatorio insulin",
        "例えば、insulinのリマインダーを削除して",
    ],
)
def test_wish_about_a_text_or_for_the_opposite_is_not_read_as_a_removal(typed: str) -> None:
    assert not wants(typed)
    assert not may_reach_helper(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "Stop deleting the insulin reminder",
        "Annule la suppression du rappel insulin",
        "Отмени удаление напоминания insulin",
    ],
)
def test_rules_read_no_removal_wish_in_a_text_about_ending_something_else(typed: str) -> None:
    assert not wants(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "Please delete the insulin reminder",
        "delete the swim reminder and the insulin reminder",
        "I have enough, delete the insulin reminder",
        "Deja de recordarme el insulin",
    ],
)
def test_removal_wish_for_the_item_is_found_by_rules_or_sent_to_the_helper_model(
    typed: str,
) -> None:
    assert wants(typed) or may_reach_helper(typed)


@pytest.mark.parametrize(
    ("typed", "is_judged"),
    [
        ("Dr. Silva isn't my dentist", True),
        ("That fact is wrong, my dentist is another one", True),
        ("My dentist Dr. Silva isn't my favourite", False),
        ("That is wrong, my dentist charges too much", False),
    ],
)
def test_helper_model_judges_doubt_about_a_fact_only_if_nothing_else_is_said(
    typed: str, is_judged: bool
) -> None:
    wishes = find_wishes([typed], Effect.WEAKEN)
    assert not any(names_subject(wish, DENTIST) for wish in wishes)
    assert may_be_wished(Effect.WEAKEN, (DENTIST,), [typed]) is is_judged


@pytest.mark.parametrize(
    ("question", "is_wish"),
    [
        ("Shall I delete the insulin reminder?", True),
        ("Okay, soll ich die Erinnerung ans insulin löschen?", True),
        ("¿Traduzco el correo y borro el recordatorio insulin?", False),
        ("Shall I translate the mail and delete the insulin reminder?", False),
        ("要不要我翻译邮件并删除insulin提醒？", False),
    ],
)
def test_yes_to_a_question_about_two_actions_confirms_neither_removal(
    question: str, is_wish: bool
) -> None:
    assert bool(find_wishes([], Effect.REMOVE, [question])) is is_wish
