"""Words that forbid, threaten, postpone or only ask: they're no wish, in any language."""

from __future__ import annotations

import pytest

from core.review.doubts import may_contain_wish
from core.review.naming import names_subject
from core.review.wish_judge import may_be_wished
from core.review.wishes import find_wishes
from core.types import Effect, Subject

INSULIN = Subject(
    label="reminder 4",
    text="take the insulin",
    number="4",
    kind="reminder",
    others=["water the plants", "call Ana", "swim"],
)


def wants(typed: str, effect: Effect = Effect.REMOVE) -> bool:
    return any(names_subject(wish, INSULIN) for wish in find_wishes([typed], effect))


def may_reach_helper(typed: str, effect: Effect = Effect.REMOVE) -> bool:
    return may_be_wished(effect, [INSULIN], [typed])


@pytest.mark.parametrize(
    "typed",
    [
        "Delete not the insulin reminder",
        "Delete never insulin",
        "Lösch ja nicht die insulin Erinnerung",
        "Lösch keine Erinnerung an insulin",
        "Borra nunca el recordatorio insulin",
        "Supprime pas le rappel insulin",
        "T'inquiète, annule pas le rappel insulin",
        "Apaga nunca o lembrete insulin",
        "Apaga não o lembrete insulin",
        "Удалить не надо напоминание insulin",
        "删除不得insulin提醒",
        "insulinのリマインダーを消すな、削除しないで",
        "insulin 알림 안 지워 줘",
        "Sil değil insulin hatırlatıcısını",
    ],
)
def test_negation_after_the_verb_is_not_read_as_a_wish_to_remove(typed: str) -> None:
    assert not wants(typed)


def test_negation_after_the_verb_is_not_read_as_a_wish_to_pause() -> None:
    assert not wants("Arrête pas le rappel insulin", Effect.WEAKEN)


@pytest.mark.parametrize(
    ("typed", "effect"),
    [
        ("Ne me rappelle plus insulin", Effect.REMOVE),
        ("Don't remind me of the insulin", Effect.WEAKEN),
        ("Ich brauche die Erinnerung ans insulin nicht mehr", Effect.REMOVE),
        ("No me recuerdes insulin", Effect.REMOVE),
        ("Больше не напоминай insulin", Effect.REMOVE),
        ("Delete reminder no 4", Effect.REMOVE),
        ("Delete the insulin reminder today", Effect.REMOVE),
        ("Ne me rappelle pas insulin aujourd'hui", Effect.WEAKEN),
    ],
)
def test_denial_and_time_that_belong_to_the_wish_leave_it_a_wish(
    typed: str, effect: Effect
) -> None:
    assert wants(typed, effect) or may_reach_helper(typed, effect)


@pytest.mark.parametrize(
    "typed",
    [
        "Delete the insulin reminder, my foot",
        "Delete the insulin reminder - over my dead body",
        "Lösch die insulin Erinnerung, von wegen",
        "Borra el recordatorio insulin, ni hablar",
        "Supprime le rappel insulin, jamais de la vie",
        "Apaga o lembrete insulin uma ova",
        "Удали напоминание insulin - ни за что",
        "删除insulin提醒,休想",
        "insulinのリマインダーを削除して、とんでもない",
        "insulin 알림 삭제해 줘, 어림없어",
        "insulin hatırlatıcısını sil, hayatta olmaz",
        "Delete the insulin reminder and I will sue you",
        "Lösch die insulin Erinnerung und ich verklage dich",
        "Supprime le rappel insulin et je te tue",
        "Borra el recordatorio insulin y te denuncio",
        "Apaga o lembrete insulin e eu te processo",
        "Удали напоминание insulin и я тебя убью",
    ],
)
def test_scorn_or_threat_after_a_wish_makes_it_no_wish(typed: str) -> None:
    assert not wants(typed)
    assert not may_reach_helper(typed)


@pytest.mark.parametrize(
    ("typed", "effect"),
    [
        ("Delete the insulin reminder tomorrow, not today", Effect.REMOVE),
        ("Later on, not now, delete the insulin reminder", Effect.REMOVE),
        ("Delete the insulin reminder. Not now.", Effect.REMOVE),
        ("Delete the insulin reminder on Friday", Effect.REMOVE),
        ("Delete the insulin reminder tomorrow", Effect.REMOVE),
        ("Tomorrow delete the insulin reminder", Effect.REMOVE),
        ("Delete the insulin reminder in two weeks", Effect.REMOVE),
        ("Pause the insulin reminder next month", Effect.WEAKEN),
        ("Lösch die insulin Erinnerung nächste Woche", Effect.REMOVE),
        ("Lösch die insulin Erinnerung am Freitag", Effect.REMOVE),
        ("Borra el recordatorio insulin el viernes", Effect.REMOVE),
        ("Supprime le rappel insulin la semaine prochaine", Effect.REMOVE),
        ("Apaga o lembrete insulin amanhã", Effect.REMOVE),
        ("Удали напоминание insulin в пятницу", Effect.REMOVE),
        ("明天删除insulin提醒", Effect.REMOVE),
        ("明日insulinのリマインダーを削除して", Effect.REMOVE),
        ("내일 insulin 알림 삭제해 줘", Effect.REMOVE),
        ("Yarın insulin hatırlatıcısını sil", Effect.REMOVE),
        ("Undo taking away the insulin reminder", Effect.REMOVE),
        ("Undo take the insulin", Effect.REMOVE),
    ],
)
def test_wish_for_a_later_day_or_an_undo_is_not_a_wish_for_now(typed: str, effect: Effect) -> None:
    assert not wants(typed, effect)


@pytest.mark.parametrize(
    "typed",
    [
        "insulin hatırlatıcısını silme",
        "insulin hatırlatıcısını lütfen kaldırmayın",
        "insulin 알림을 삭제하지 마",
        "insulin 알림을 지우지 마세요",
        "Ni se te ocurra borrar el recordatorio insulin",
        "Borrar el recordatorio insulin ni hablar",
        "Apaga o lembrete insulin uma ova",
        "Refuse to delete the insulin reminder",
        "I wonder whether to delete the insulin reminder",
        "Why would you delete the insulin reminder?",
        "Nie usuwaj przypomnienia insulin",
        "Видаляти нагадування insulin не треба",
        "jangan hapus pengingat insulin",
        "Ne töröld az insulin emlékeztetőt",
        "No esborris pas el recordatori insulin",
    ],
)
def test_prohibition_is_neither_a_wish_nor_sent_to_the_helper_model(typed: str) -> None:
    assert not wants(typed)
    assert not may_reach_helper(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "kill that insulin thing",
        "insulin weg damit",
        "insulin hatırlatıcısını silmeni istiyorum",
        "아버지 마중 insulin 알림은 이제 그만",
    ],
)
def test_wish_in_free_words_of_a_known_language_may_be_sent_to_the_helper_model(typed: str) -> None:
    assert may_contain_wish(typed, Effect.REMOVE)


@pytest.mark.parametrize(
    "typed", ["Postpone the plumber to tomorrow 11:00", "перенеси сервис на завтра на 10:00"]
)
def test_clock_time_in_a_wish_to_move_a_reminder_is_not_a_lead_of_a_paste(typed: str) -> None:
    assert may_contain_wish(typed, Effect.REMOVE)


@pytest.mark.parametrize(
    "typed",
    [
        "Remind me tomorrow at 9 to call Ana, not today",
        "Erinner mich morgen um 9 an Ana, nicht heute",
        "Recuérdame mañana a las 9 llamar a Ana, hoy no",
    ],
)
def test_helper_model_judges_a_wish_to_plan_for_a_day_other_than_today(typed: str) -> None:
    assert not find_wishes([typed], Effect.PLAN)
    assert may_contain_wish(typed, Effect.PLAN)
