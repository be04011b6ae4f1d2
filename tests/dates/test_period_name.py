"""Stretches of the past as people name them, seen from Friday 20 November 2026, noon."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates.lexicon import lexicon_languages
from core.dates.period_name import read_period
from core.dates.tokens import Kind, Token, Unit, parse_token_name
from core.text.normalize import language_data
from tests.fixtures.tables import each_row

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")


def _said(text: str, now: datetime = NOW) -> str | None:
    found = read_period(text, now, ZONE)
    if found is None:
        return None
    start, end = found
    form = "%Y-%m-%d" if all(side.time() == side.min.time() for side in found) else "%Y-%m-%dT%H:%M"
    return f"{start:{form}}/{end:{form}}"


@each_row(
    ("text", "expected"),
    [
        ("today", "2026-11-20/2026-11-21"),
        ("Yesterday", "2026-11-19/2026-11-20"),
        ("the day before yesterday", "2026-11-18/2026-11-19"),
        ("last night", "2026-11-19/2026-11-20"),
        ("this morning", "2026-11-20/2026-11-21"),
        ("tomorrow", "2026-11-21/2026-11-22"),
        ("this week", "2026-11-16/2026-11-23"),
        ("last week", "2026-11-09/2026-11-16"),
        ("previous week", "2026-11-09/2026-11-16"),
        ("last weekend", "2026-11-14/2026-11-16"),
        ("last Christmas", "2025-12-25/2025-12-26"),
        ("next Easter", "2027-03-28/2027-03-29"),
        ("letzte Weihnachten", "2025-12-25/2025-12-26"),
        ("sexta passada", "2026-11-13/2026-11-14"),
        ("na próxima terça", "2026-11-24/2026-11-25"),
        ("semana que vem", "2026-11-23/2026-11-30"),
        ("la semana que viene", "2026-11-23/2026-11-30"),
        ("на прошлой неделе", "2026-11-09/2026-11-16"),
        ("100 days ago", "2026-08-12/2026-08-13"),
        ("last 365 days", "2025-11-20/2026-11-21"),
        ("eleven days ago", "2026-11-09/2026-11-10"),
        ("the last thirty days", "2026-10-21/2026-11-21"),
        ("a couple weeks ago", "2026-11-02/2026-11-09"),
        ("friday may 1", "2026-05-01/2026-05-02"),
        ("christmas eve", "2025-12-24/2025-12-25"),
        ("Easter Monday", "2026-04-06/2026-04-07"),
        ("heiligabend 2024", "2024-12-24/2024-12-25"),
        ("this month", "2026-11-01/2026-12-01"),
        ("last month", "2026-10-01/2026-11-01"),
        ("this year", "2026-01-01/2027-01-01"),
        ("last year", "2025-01-01/2026-01-01"),
        ("next week", "2026-11-23/2026-11-30"),
        ("in the last 3 days", "2026-11-17/2026-11-21"),
        ("past two weeks", "2026-11-02/2026-11-21"),
        ("the last 6 months", "2026-05-01/2026-11-21"),
        ("last few days", "2026-11-17/2026-11-21"),
        ("over the past year", "2025-01-01/2026-01-01"),
        ("3 days ago", "2026-11-17/2026-11-18"),
        ("a week ago", "2026-11-09/2026-11-16"),
        ("two weeks ago", "2026-11-02/2026-11-09"),
        ("a couple of months ago", "2026-09-01/2026-10-01"),
        ("a year ago", "2025-01-01/2026-01-01"),
        ("friday", "2026-11-20/2026-11-21"),
        ("on Monday", "2026-11-16/2026-11-17"),
        ("last friday", "2026-11-13/2026-11-14"),
        ("last mon", "2026-11-16/2026-11-17"),
        ("saturday", "2026-11-14/2026-11-15"),
        ("in May", "2026-05-01/2026-06-01"),
        ("may", "2026-05-01/2026-06-01"),
        ("November", "2026-11-01/2026-12-01"),
        ("december", "2025-12-01/2026-01-01"),
        ("last november", "2025-11-01/2025-12-01"),
        ("May 2025", "2025-05-01/2025-06-01"),
        ("May, 2025", "2025-05-01/2025-06-01"),
        ("sept", "2026-09-01/2026-10-01"),
        ("3 May", "2026-05-03/2026-05-04"),
        ("May 3rd", "2026-05-03/2026-05-04"),
        ("the 3rd of May 2025", "2025-05-03/2025-05-04"),
        ("May 3, 2025", "2025-05-03/2025-05-04"),
        ("24 December", "2025-12-24/2025-12-25"),
        ("friday 8 may", "2026-05-08/2026-05-09"),
        ("29 february", "2024-02-29/2024-03-01"),
        ("2026-05-01", "2026-05-01/2026-05-02"),
        ("2026/5/1", "2026-05-01/2026-05-02"),
        ("2026-05", "2026-05-01/2026-06-01"),
        ("in 2025", "2025-01-01/2026-01-01"),
        ("1.5.2025", "2025-05-01/2025-05-02"),
        ("1.5.", "2026-05-01/2026-05-02"),
        ("3/5/2025", "2025-05-03/2025-05-04"),
        ("5/13/2025", "2025-05-13/2025-05-14"),
        ("2026-05-01T10:30", "2026-05-01T10:30/2026-05-01T10:31"),
        ("2026-05-01T10:30:00+02:00", "2026-05-01T08:30/2026-05-01T08:31"),
        ("2026-05-01T10:30:00Z", "2026-05-01T10:30/2026-05-01T10:31"),
        ("since March", "2026-03-01/2026-04-01"),
        ("since yesterday", "2026-11-19/2026-11-20"),
        ("this may", "2026-05-01/2026-06-01"),
        ("summer 2025", "2025-06-01/2025-09-01"),
        ("3 to 10 May", "2026-05-03/2026-05-11"),
        ("early January", "2026-01-01/2026-01-11"),
        ("letzte Woche", "2026-11-09/2026-11-16"),
        ("vor zwei Wochen", "2026-11-02/2026-11-09"),
        ("mars", "2026-03-01/2026-04-01"),
        ("desde maio", "2026-05-01/2026-06-01"),
        ("3 мая 2025", "2025-05-03/2025-05-04"),
        ("上个月", "2026-10-01/2026-11-01"),
    ],
)
def test_period_is_read_as_people_write_it(text: str, expected: str) -> None:
    assert _said(text) == expected


# Phrases of the lexicons that name no period of the past, or that also mean something else.
NOT_READ = {
    "en": ("2day", "tomorrow's", "the next day", "next day", "the other day"),
    "de": ("am nächsten tag", "nächsten monats", "des nächsten monats", "dieses monats", "so."),
    "es": ("el día de hoy", "mar", "ago"),
    "fr": ("après demain", "apres demain", "la semaine d'après", "l'an prochain", "mar"),
    "ja": ("来週の", "今週の", "来月の", "今月の", "来年の"),
    "ko": ("내일모레", "금주"),
    "pt": ("ago",),
    "ru": ("после завтра",),
    "tr": ("haftaya",),
    "zh": ("第二天",),
}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAYS = {-2: "the day before yesterday", -1: "yesterday", 0: "today", 1: "tomorrow"}
DAYS[2] = "the day after tomorrow"


def name_in_english(token: Token) -> str | None:
    """Return the English name of a day, month or time from today, or None if it has none."""
    number = int(token.number)
    if token.kind is Kind.WEEKDAY:
        return WEEKDAYS[number]
    if token.kind is Kind.MONTH:
        return date(2026, number, 1).strftime("%B")
    if token.unit is Unit.DAY:
        return DAYS.get(number)
    assert token.unit is not None
    lead = {-1: "last", 0: "this", 1: "next"}.get(number)
    return f"{lead} {token.unit.value}" if lead else None


@each_row("language", lexicon_languages())
def test_period_filter_reads_the_names_of_days_and_months_that_reminders_read(
    language: str,
) -> None:
    lexicon = language_data(language, "core.dates.requests")["tokens"]
    read = 0
    for key, phrases in lexicon.items():
        (token, *others) = parse_token_name(key) or [Token(Kind.OTHER)]
        if others or token.kind not in (Kind.RELATIVE, Kind.WEEKDAY, Kind.MONTH):
            continue
        english = name_in_english(token)
        for phrase in (part.strip() for part in re.split(r"[,\n]", phrases)):
            if english and phrase and "(" not in phrase and phrase not in NOT_READ[language]:
                assert _said(phrase) == _said(english), phrase
                read += 1
    assert read > 35


@each_row(
    "text",
    [
        "", " ", "banana", "last", "in", "ago", "3", "3 days", "since", "between May", "may be", "last banana",
        "31 february", "2026-13", "2026-02-30", "99/99/2026", "yesterday ferry", "99999 years ago",
        "may and june", "may ferry", "3 may 2", "mayday", "ein Tag", "lundi ou mardi",
        "0001-01-01 x", "monday may be", "monday may", "friday in june",
        "the ferry in May", "a b c d e f g h i j", "9999-12-31", "12:30", "\0", "\ud800",
    ],
)  # fmt: skip
def test_text_that_names_no_period_is_read_as_none(text: str) -> None:
    assert read_period(text, NOW, ZONE) is None


def test_search_period_days_begin_and_end_in_the_persons_time_zone() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    late = datetime(2026, 11, 20, 23, tzinfo=UTC)
    assert read_period("today", late, tokyo) == (
        datetime(2026, 11, 20, 15, tzinfo=UTC),
        datetime(2026, 11, 21, 15, tzinfo=UTC),
    )
    lisbon = ZoneInfo("Europe/Lisbon")
    found = read_period("29 march", NOW, lisbon)
    assert found == (datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 3, 29, 23, tzinfo=UTC))


_PARTS = [
    "last",
    "may",
    "3",
    "2026",
    "ago",
    "weeks",
    "since",
    "to",
    "the",
    "1.1.",
    "0000-00-00",
    "9999",
    "between",
]
TYPED = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(_PARTS), max_size=8).map(" ".join))


@pytest.mark.slow
@given(TYPED, st.integers(3, 3_652_000))
def test_typed_text_is_read_as_a_period_or_as_none_and_never_raises(text: str, day: int) -> None:
    now = datetime.combine(date.fromordinal(day), time(), UTC)
    for zone in (ZONE, ZoneInfo("America/New_York")):
        found = read_period(text, now, zone)
        assert found is None or found[0] < found[1]


def test_day_whose_midnight_is_skipped_by_a_clock_change_begins_at_one() -> None:
    place = ZoneInfo("America/Sao_Paulo")
    found = read_period("2018-11-04", NOW, place)
    assert found is not None
    assert found[0] == datetime(2018, 11, 4, 3, tzinfo=UTC)


@each_row(
    ("text", "day"),
    [
        ("the second Tuesday of October", "2026-10-13"),
        ("the last Friday in December", "2025-12-26"),
        ("the 3rd Monday of May 2024", "2024-05-20"),
        ("am zweiten Dienstag im Oktober", "2026-10-13"),
        ("le deuxième mardi d'octobre", "2026-10-13"),
        ("во второй вторник октября", "2026-10-13"),
    ],
)
def test_weekday_of_a_month_is_the_latest_such_day(text: str, day: str) -> None:
    following = date.fromisoformat(day) + timedelta(days=1)

    assert _said(text) == f"{day}/{following}"
