"""Feasts whose date changes from year to year, in requests for reminders."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from core.dates.lexicon import lexicon_languages, load_lexicon
from core.dates.requests.feasts import next_feast_dates
from core.dates.requests.parts import Problem
from core.dates.requests.reader import read_request
from core.text.normalize import language_data
from tests.fixtures.tables import each_row

MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 3, 4, 11, 30, tzinfo=MADRID)


@each_row(
    ("name", "days_after", "today", "dates"),
    [
        ("easter", 0, date(2026, 3, 4), (date(2026, 4, 5), date(2027, 3, 28))),
        ("easter", 1, date(2026, 4, 6), (date(2026, 4, 6), date(2027, 3, 29))),
        ("orthodox_easter", 0, date(2026, 3, 4), (date(2026, 4, 12), date(2027, 5, 2))),
        ("thanksgiving", 1, date(2026, 3, 4), (date(2026, 11, 27), date(2027, 11, 26))),
        ("memorial_day", 0, date(2026, 3, 4), (date(2026, 5, 25), date(2027, 5, 31))),
        ("first_advent", 0, date(2026, 3, 4), (date(2026, 11, 29), date(2027, 11, 28))),
        ("fourth_advent", 0, date(2028, 3, 4), (date(2028, 12, 24), date(2029, 12, 23))),
        ("chinese_new_year", -1, date(2026, 3, 4), (date(2027, 2, 5), date(2028, 1, 25))),
        ("chinese_new_year", 0, date(2040, 3, 4), ()),
    ],
)
def test_next_dates_of_a_movable_feast_follow_its_rule(
    name: str, days_after: int, today: date, dates: tuple[date, ...]
) -> None:
    assert next_feast_dates(name, days_after, today) == dates


def test_each_feast_that_a_lexicon_names_has_a_rule() -> None:
    rules = language_data("feasts", "core.dates")

    for language in lexicon_languages():
        lexicon = load_lexicon(language)
        meanings = [*lexicon.phrases.values(), *lexicon.stems.values()]
        names = {token.feast for tokens in meanings for token in tokens if token.feast}
        assert names <= rules.keys(), language


@each_row(
    ("text", "moment", "task"),
    [
        ("remind me on good friday at 10 to bake", "2026-04-03 10:00", "bake"),
        ("the day before thanksgiving at noon buy cranberries, remind me", "2026-11-25 12:00", "buy cranberries"),
        ("erinner mich am Muttertag um 9 an die Blumen", "2026-05-10 09:00", "die Blumen"),
        ("rappelle-moi le lundi de Pentecôte à 11h de rentrer les chaises", "2026-05-25 11:00", "rentrer les chaises"),
        ("recuérdame el Viernes Santo a las 12 llamar a Luz", "2026-04-03 12:00", "llamar a Luz"),
        ("me lembra no Dia das Mães às 10h de ligar pra Rita", "2026-05-10 10:00", "ligar pra Rita"),
        ("на Пасху в 11 напомни покрасить яйца", "2026-04-12 11:00", "покрасить яйца"),
        ("中秋节晚上7点提醒我买月饼", "2026-09-25 19:00", "买月饼"),
        ("母の日の10時に花を送るってリマインドして", "2026-05-10 10:00", "花を送る"),
        ("kurban bayramında saat 10'da dedemi aramayı hatırlat", "2026-05-27 10:00", "dedemi aramayı"),
    ],
)  # fmt: skip
def test_reminder_request_that_names_a_movable_feast_is_read_with_its_date(
    text: str, moment: str, task: str
) -> None:
    reading = read_request(text, NOW, MADRID)

    assert reading.moment is not None
    assert f"{reading.moment.astimezone(MADRID):%Y-%m-%d %H:%M}" == moment
    assert reading.task == task


def test_feast_name_inside_the_task_is_not_read_as_the_reminders_day() -> None:
    reading = read_request("remind me about the Easter eggs on Friday at 9", NOW, MADRID)

    assert reading.task == "the Easter eggs"
    assert reading.moment is not None
    assert f"{reading.moment.astimezone(MADRID):%Y-%m-%d}" == "2026-03-06"


@pytest.mark.parametrize(
    "request_text",
    [
        "remind me every Easter at 10 to call Olga",
        "remind me every year on Easter at 10 to call Olga",
        "erinnere mich jedes Jahr an Ostern um 10 an Olga",
        "rappelle-moi chaque année à Pâques à 10h d'appeler Olga",
        "recuérdame cada año en Pascua a las 10 llamar a Olga",
        "напоминай мне каждый год на Пасху в 10 позвонить Ольге",
        "bana her yıl Paskalya'da 10'da Olga'yı aramayı hatırlat",
        "每年春节早上10点提醒我打电话",
        "매년 설날 10시에 전화하라고 알려줘",
        "毎年母の日の10時に花を買うのを思い出させて",
    ],
)
def test_recurring_movable_feast_is_asked_about(request_text: str) -> None:
    reading = read_request(request_text, NOW, MADRID)

    assert not reading.is_complete
    assert reading.problem is Problem.NO_SUCH_DATE
