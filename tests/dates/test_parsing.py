"""What people type is understood, what can be meant otherwise is marked, and the rest refused with
a sentence."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates.parsing import parse_schedule
from core.dates.schedule import Schedule, describe, next_due, to_parseable_text
from core.errors import ConfigError, Refused

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""A Friday; in Lisbon it is noon too."""
ZONE = "Europe/Lisbon"
ZONES = (
    ZONE,
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "UTC",
    "Africa/Casablanca",
)

CERTAIN = [
    ("tomorrow at 9 call Ana", "Saturday 21 November 2026 at 09:00", "call Ana"),
    ("Tomorrow, at 9: call Ana", "Saturday 21 November 2026 at 09:00", "call Ana"),
    ("call Ana tomorrow at 9", "Saturday 21 November 2026 at 09:00", "call Ana"),
    ("call Ana tomorrow at 9 please", "Saturday 21 November 2026 at 09:00", "call Ana"),
    ("tomorrow call Ana at 9", "Saturday 21 November 2026 at 09:00", "call Ana"),
    ("at 9 call Ana tomorrow", "Saturday 21 November 2026 at 09:00", "call Ana"),
    ("remind me to call Ana tomorrow at 9", "Saturday 21 November 2026 at 09:00", "call Ana"),
    (
        "remind me tomorrow that the bins go out",
        "Saturday 21 November 2026 at 09:00",
        "the bins go out",
    ),
    (
        "please remind me about the dentist on 3 December at 14:00",
        "Thursday 3 December 2026 at 14:00",
        "the dentist",
    ),
    ("in 20 minutes take the bread out", "Friday 20 November 2026 at 12:20", "take the bread out"),
    (
        "remind me in 20 minutes to take the bread out",
        "Friday 20 November 2026 at 12:20",
        "take the bread out",
    ),
    ("in an hour and a half tea", "Friday 20 November 2026 at 13:30", "tea"),
    ("in 1.5 hours tea", "Friday 20 November 2026 at 13:30", "tea"),
    ("in half an hour tea", "Friday 20 November 2026 at 12:30", "tea"),
    ("in 2 hours and 15 minutes tea", "Friday 20 November 2026 at 14:15", "tea"),
    ("1h30m tea", "Friday 20 November 2026 at 13:30", "tea"),
    ("90m tea", "Friday 20 November 2026 at 13:30", "tea"),
    ("20 minutes from now tea", "Friday 20 November 2026 at 12:20", "tea"),
    ("in 30 seconds tea", "Friday 20 November 2026 at 12:00:30", "tea"),
    ("in 3 days at 9 water the plants", "Monday 23 November 2026 at 09:00", "water the plants"),
    ("in 2 weeks pay", "Friday 4 December 2026 at 12:00", "pay"),
    ("in a month pay", "Sunday 20 December 2026 at 12:00", "pay"),
    ("on 3 May at 10:00 Ana's birthday", "Monday 3 May 2027 at 10:00", "Ana's birthday"),
    ("May 3rd at noon Ana", "Monday 3 May 2027 at 12:00", "Ana"),
    ("the 3rd of May at noon Ana", "Monday 3 May 2027 at 12:00", "Ana"),
    ("Dec 1, 2026 at 10am dentist", "Tuesday 1 December 2026 at 10:00", "dentist"),
    ("29 February party", "Tuesday 29 February 2028 at 09:00", "party"),
    ("24.12. at 18:00 gifts", "Thursday 24 December 2026 at 18:00", "gifts"),
    ("25/12 gifts", "Friday 25 December 2026 at 09:00", "gifts"),
    ("12/25 gifts", "Friday 25 December 2026 at 09:00", "gifts"),
    ("on the 3rd at 10 rent", "Thursday 3 December 2026 at 10:00", "rent"),
    ("on the 31st pay", "Thursday 31 December 2026 at 09:00", "pay"),
    ("2026-12-01 10:00 dentist", "Tuesday 1 December 2026 at 10:00", "dentist"),
    ("2026-12-01T10:00 dentist", "Tuesday 1 December 2026 at 10:00", "dentist"),
    ("2026-12-01T10:00:00+01:00 dentist", "Tuesday 1 December 2026 at 09:00", "dentist"),
    ("2026-12-01T10:00:00Z dentist", "Tuesday 1 December 2026 at 10:00", "dentist"),
    ("at 17:30 leave", "Friday 20 November 2026 at 17:30", "leave"),
    ("17:30 leave", "Friday 20 November 2026 at 17:30", "leave"),
    ("at 17h30 leave", "Friday 20 November 2026 at 17:30", "leave"),
    ("at 5pm leave", "Friday 20 November 2026 at 17:00", "leave"),
    ("at 5 p.m. leave", "Friday 20 November 2026 at 17:00", "leave"),
    ("at 12am leave", "Saturday 21 November 2026 at 00:00", "leave"),
    ("at 9:00 call", "Saturday 21 November 2026 at 09:00", "call"),
    ("friday at 5pm", "Friday 20 November 2026 at 17:00", ""),
    ("on friday at 9:30 stand-up", "Friday 27 November 2026 at 09:30", "stand-up"),
    ("next monday at 9 call", "Monday 23 November 2026 at 09:00", "call"),
    ("friday next week at 9 call", "Friday 27 November 2026 at 09:00", "call"),
    ("next week on tuesday at 10 call", "Tuesday 24 November 2026 at 10:00", "call"),
    ("the day after tomorrow at 8:15 swim", "Sunday 22 November 2026 at 08:15", "swim"),
    ("tonight", "Friday 20 November 2026 at 20:00", ""),
    ("tonight at 9 film", "Friday 20 November 2026 at 21:00", "film"),
    ("tonight at midnight champagne", "Saturday 21 November 2026 at 00:00", "champagne"),
    ("tomorrow evening at 7 dinner", "Saturday 21 November 2026 at 19:00", "dinner"),
    ("tomorrow morning buy bread", "Saturday 21 November 2026 at 09:00", "buy bread"),
    ("this evening call", "Friday 20 November 2026 at 19:00", "call"),
    ("at 8 in the evening call", "Friday 20 November 2026 at 20:00", "call"),
    ("noon", "Saturday 21 November 2026 at 12:00", ""),
    ("midnight", "Saturday 21 November 2026 at 00:00", ""),
    ("every monday at 8:30 stand-up", "every Monday at 08:30 (Europe/Lisbon)", "stand-up"),
    ("stand-up every monday at 8:30", "every Monday at 08:30 (Europe/Lisbon)", "stand-up"),
    ("at 8:30 every monday stand-up", "every Monday at 08:30 (Europe/Lisbon)", "stand-up"),
    ("mondays at 10 gym", "every Monday at 10:00 (Europe/Lisbon)", "gym"),
    (
        "every monday and wednesday at 10 gym",
        "every Monday and Wednesday at 10:00 (Europe/Lisbon)",
        "gym",
    ),
    (
        "every mon, wed, fri at 7am run",
        "every Monday, Wednesday, and Friday at 07:00 (Europe/Lisbon)",
        "run",
    ),
    (
        "every monday to friday at 9 work",
        "every Monday through Friday at 09:00 (Europe/Lisbon)",
        "work",
    ),
    ("weekdays at 9", "every Monday through Friday at 09:00 (Europe/Lisbon)", ""),
    ("every morning", "every day at 09:00 (Europe/Lisbon)", ""),
    ("every morning at 7 run", "every day at 07:00 (Europe/Lisbon)", "run"),
    ("every night at 11 lock up", "every day at 23:00 (Europe/Lisbon)", "lock up"),
    ("daily at 8 vitamins", "every day at 08:00 (Europe/Lisbon)", "vitamins"),
    (
        "every day at 9 and 21 take pills",
        "every day at 09:00 and 21:00 (Europe/Lisbon)",
        "take pills",
    ),
    ("every 2 hours drink", "every 2 hours, next at 14:00 (Europe/Lisbon)", "drink"),
    ("hourly check", "every hour, next at 13:00 (Europe/Lisbon)", "check"),
    ("every minute x", "every minute, next at 12:01 (Europe/Lisbon)", "x"),
    (
        "every 3 days at 9 water",
        "every 3 days at 09:00, next Saturday 21 November 2026 at 09:00 (Europe/Lisbon)",
        "water",
    ),
    (
        "every other monday bins",
        "every 2 weeks on Monday at 09:00, next Monday 23 November 2026 at 09:00 (Europe/Lisbon)",
        "bins",
    ),
    (
        "every month on the 3rd at 10 rent",
        "on the third day of every month at 10:00 (Europe/Lisbon)",
        "rent",
    ),
    (
        "every 1st and 15th of the month pay",
        "on the first and the 15th day of month at 09:00 (Europe/Lisbon)",
        "pay",
    ),
    (
        "every first monday of the month at 9 x",
        "on the first Monday of the month at 09:00 (Europe/Lisbon)",
        "x",
    ),
    (
        "every last friday at 16:00 drinks",
        "on the last Friday of the month at 16:00 (Europe/Lisbon)",
        "drinks",
    ),
    (
        "every last day of the month invoice",
        "on the last day of every month at 09:00 (Europe/Lisbon)",
        "invoice",
    ),
    ("every year on 3 May Ana", "every May 3 at 09:00 (Europe/Lisbon)", "Ana"),
    ("every year on 3 May at 10:00 | Ana", "every May 3 at 10:00 (Europe/Lisbon)", "Ana"),
    ("0 9 * * 1-5 stand-up", "every Monday through Friday at 09:00 (Europe/Lisbon)", "stand-up"),
    (
        "0 9 * * mon-fri stand-up",
        "every Monday through Friday at 09:00 (Europe/Lisbon)",
        "stand-up",
    ),
    ("*/15 * * * * drink", "every 15th minute of every hour (Europe/Lisbon)", "drink"),
    ("tomorrow at 9 | call Ana at 5", "Saturday 21 November 2026 at 09:00", "call Ana at 5"),
    ("call Ana at 5 | tomorrow at 9", "Saturday 21 November 2026 at 09:00", "call Ana at 5"),
    ("tomorrow run `a | b`", "Saturday 21 November 2026 at 09:00", "run `a | b`"),
    (
        "on the 1st of every month pay rent",
        "on the first day of every month at 09:00 (Europe/Lisbon)",
        "pay rent",
    ),
    (
        "pay rent on the 1st and 15th of each month",
        "on the first and the 15th day of month at 09:00 (Europe/Lisbon)",
        "pay rent",
    ),
    (
        "on the last day of every month invoice",
        "on the last day of every month at 09:00 (Europe/Lisbon)",
        "invoice",
    ),
    (
        "the first monday of every month at 9 review",
        "on the first Monday of the month at 09:00 (Europe/Lisbon)",
        "review",
    ),
    (
        "at 9 pay rent every month on the 3rd",
        "on the third day of every month at 09:00 (Europe/Lisbon)",
        "pay rent",
    ),
    (
        "every friday at 16:00 write the weekly report",
        "every Friday at 16:00 (Europe/Lisbon)",
        "write the weekly report",
    ),
    ("tomorrow at 9 two\nlines", "Saturday 21 November 2026 at 09:00", "two\nlines"),
]

UNCERTAIN = [
    ("at 17:30 Europe/Paris leave", "Friday 20 November 2026 at 17:30", "Europe/Paris leave"),
    ("at 17:30 UTC leave", "Friday 20 November 2026 at 17:30", "UTC leave"),
    (
        "every 2 hours from 9 to 17 drink",
        "every 2 hours, next at 14:00 (Europe/Lisbon)",
        "from 9 to 17 drink",
    ),
    (
        "every second monday bins",
        "every 2 weeks on Monday at 09:00, next Monday 23 November 2026 at 09:00 (Europe/Lisbon)",
        "bins",
    ),
    ("at 5 call", "Friday 20 November 2026 at 17:00", "call"),
    ("today at 9 call", "Friday 20 November 2026 at 21:00", "call"),
    ("tomorrow at 5 call", "Saturday 21 November 2026 at 17:00", "call"),
    ("tomorrow at 25 call", "Saturday 21 November 2026 at 09:00", "at 25 call"),
    ("next sunday at 10:00 call", "Sunday 29 November 2026 at 10:00", "call"),
    ("next week", "Monday 23 November 2026 at 09:00", ""),
    (
        "when pigs fly | call Ana tomorrow",
        "Saturday 21 November 2026 at 09:00",
        "when pigs fly | call Ana",
    ),
    ("3/5 call", "Monday 3 May 2027 at 09:00", "call"),
    (
        "every month on the 31st rent",
        "on the last day of every month at 09:00 (Europe/Lisbon)",
        "rent",
    ),
    ("weekly report", "every Friday at 09:00 (Europe/Lisbon)", "report"),
    ("pay the rent by monday", "Monday 23 November 2026 at 09:00", "pay the rent by monday"),
    (
        "on the 1st and 15th of the month pay rent",
        "on the first and the 15th day of month at 09:00 (Europe/Lisbon)",
        "pay rent",
    ),
    (
        "call Ana tomorrow at 9 about the flat",
        "Saturday 21 November 2026 at 09:00",
        "call Ana about the flat",
    ),
    ("every day at 9 until June x", "every day at 09:00 (Europe/Lisbon)", "until June x"),
    (
        "on the first monday of the month x",
        "Monday 23 November 2026 at 09:00",
        "on the first of the month x",
    ),
    (
        "0 0 9 * * 1-5 six fields",
        "on the ninth day of every month at 00:00 (Europe/Lisbon)",
        "1-5 six fields",
    ),
    ("tomorrow at 9 take pills daily", "Saturday 21 November 2026 at 09:00", "take pills daily"),
    (
        "tomorrow at 9 call Ana every hour",
        "Saturday 21 November 2026 at 09:00",
        "call Ana every hour",
    ),
    ("next month pay rent on the 3rd", "Tuesday 1 December 2026 at 09:00", "pay rent on the 3rd"),
    ("mañana a las 9 llamar a Ana", "Saturday 21 November 2026 at 09:00", "llamar a Ana"),
    ("llamar a Ana mañana a las 5", "Saturday 21 November 2026 at 05:00", "llamar a Ana"),
    ("morgen um 9 Uhr anrufen", "Saturday 21 November 2026 at 09:00", "anrufen"),
    ("in 20 Minuten Brot", "Friday 20 November 2026 at 12:20", "Brot"),
    ("demain à 9h appeler", "Saturday 21 November 2026 at 09:00", "appeler"),
    ("завтра в 9 позвонить Ане", "Saturday 21 November 2026 at 09:00", "позвонить Ане"),
    ("через 20 минут чай", "Friday 20 November 2026 at 12:20", "чай"),
    ("明天早上9点给妈妈打电话", "Saturday 21 November 2026 at 09:00", "给妈妈打电话"),
    ("am 3. Mai um 18 Uhr Essen mit Eva", "Monday 3 May 2027 at 18:00", "Essen mit Eva"),
    ("el 3 de mayo a las 18 cenar", "Monday 3 May 2027 at 18:00", "cenar"),
    ("ужин 3 мая в 18:00", "Monday 3 May 2027 at 18:00", "ужин"),
    ("5月3日下午6点吃饭", "Monday 3 May 2027 at 18:00", "吃饭"),
    ("20分钟后喝水", "Friday 20 November 2026 at 12:20", "喝水"),
    ("明日9時に会議", "Saturday 21 November 2026 at 09:00", "会議"),
    ("내일 9시 회의", "Saturday 21 November 2026 at 09:00", "회의"),
]

REFUSED = [
    ("", "When, and what?"),
    ("   \0 ", "When, and what?"),
    ("buy milk", "find a time in that"),
    ("do the laundry", "find a time in that"),
    ("may the force be with you", "find a time in that"),
    ("call 5 people", "find a time in that"),
    ("install python 3.11", "find a time in that"),
    ("|", "find a time in that"),
    ("every", "find a time in that"),
    ("in", "find a time in that"),
    ("30 February party", "find a time in that"),
    ("yesterday at 9 call", "Thursday 19 November 2026 at 09:00 is in the past"),
    ("today at 9:30 call", "Friday 20 November 2026 at 09:30 is in the past"),
    ("3 May 2020 call", "Sunday 3 May 2020 at 09:00 is in the past"),
    ("2020-01-01 10:00 call", "is in the past"),
    ("2020-01-01T10:00:00Z call", "is in the past"),
    ("every 30 seconds call", "Once a minute"),
    ("every second x", "find a time in that"),
    ("every 3rd day x", "find a time in that"),
    ("every third time call", "find a time in that"),
    ("every 5 months call", "Only 1, 2, 3, 4, 6 or 12 months"),
    ("every day at 9:00 and 21:30 pills", "different minutes"),
    ("in 9999 years call", "too far away"),
    ("61 9 * * * call", "not a valid cron line (Bad minute)"),
    ("0 0 31 2 * call", "not a valid cron line (Bad day-of-month)"),
    ("0 9 * * 5-1 call", "not a valid cron line (Bad day-of-week)"),
]


@pytest.mark.parametrize(("line", "when", "text"), CERTAIN, ids=[line for line, _, _ in CERTAIN])
def test_certain(line: str, when: str, text: str) -> None:
    reading = parse_schedule(line, NOW, ZONE)
    assert (describe(reading.schedule, ZONE, NOW), reading.text) == (when, text)
    assert reading.is_certain


@pytest.mark.parametrize(
    ("line", "when", "text"), UNCERTAIN, ids=[line for line, _, _ in UNCERTAIN]
)
def test_uncertain(line: str, when: str, text: str) -> None:
    reading = parse_schedule(line, NOW, ZONE)
    assert (describe(reading.schedule, ZONE, NOW), reading.text) == (when, text)
    assert not reading.is_certain


@pytest.mark.parametrize(("line", "sentence"), REFUSED, ids=[line for line, _ in REFUSED])
def test_refused(line: str, sentence: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse_schedule(line, NOW, ZONE)
    assert sentence in str(refusal.value)
    assert (
        "'" in str(refusal.value)
        or "Make one for each" in str(refusal.value)
        or "Name" in str(refusal.value)
    )


def test_the_zone_of_the_person_counts() -> None:
    reading = parse_schedule("tomorrow at 9 call", NOW, "Asia/Kolkata")
    assert reading.schedule == Schedule(
        zone="Asia/Kolkata", at=datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
    )
    assert describe(reading.schedule, "Asia/Kolkata", NOW) == "Saturday 21 November 2026 at 09:00"
    # In Auckland the twenty-first has begun already.
    assert parse_schedule("tomorrow at 9 call", NOW, "Pacific/Auckland").schedule.at == datetime(
        2026, 11, 21, 20, tzinfo=UTC
    )


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "Europe", "../etc/passwd", "a\0b"])
def test_a_zone_that_does_not_exist(zone: str) -> None:
    with pytest.raises(ConfigError, match="is not a time zone"):
        parse_schedule("tomorrow at 9 call", NOW, zone)
    with pytest.raises(ConfigError, match="is not a time zone"):
        next_due(Schedule(zone=zone, cron="0 9 * * *"), NOW)


@given(st.text(max_size=80))
def test_nothing_typed_raises_anything_but_a_refusal(line: str) -> None:
    try:
        reading = parse_schedule(line, NOW, ZONE)
    except Refused:
        return
    following = next_due(reading.schedule, NOW)
    assert following is not None
    assert following > NOW


WORDS = re.findall(
    r"\S+",
    "tomorrow today tonight next every on at in the of and from to 9 17 9:30 5pm noon monday friday may 3 3rd first "
    "last week month year day days hours minutes 20 an half other daily weekdays morning night until call Ana | 2027 "
    "* / - 1h between 2 weeks weekend around",
)


@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_words_of_time_in_any_order(words: list[str]) -> None:
    try:
        reading = parse_schedule(" ".join(words), NOW, ZONE)
    except Refused:
        return
    following = next_due(reading.schedule, NOW)
    assert following is not None
    assert following > NOW
    assert following.microsecond == 0
    assert describe(reading.schedule, ZONE, NOW)
    kept = reading.text.split()
    assert all(word in words for word in kept)


def test_hostile_lines_are_quick() -> None:
    for line in (
        "9" * 100_000,
        "every " * 20_000,
        "| " * 50_000,
        "tomorrow " * 20_000,
        "(" * 10_000,
        "\ud800 tomorrow",
    ):
        try:
            parse_schedule(line, NOW, ZONE)
        except Refused:
            continue


@pytest.mark.parametrize("line", [line for line, _, _ in CERTAIN + UNCERTAIN])
def test_exact_words_are_read_back_the_same(line: str) -> None:
    reading = parse_schedule(line, NOW, ZONE)
    again = parse_schedule(
        f"{to_parseable_text(reading.schedule, ZONE)} | {reading.text}", NOW, ZONE
    )
    assert again.text == reading.text
    if reading.schedule.at is None:
        assert again.schedule == reading.schedule
    assert again.schedule.at == reading.schedule.at
    assert again.is_certain


def test_exact_words_in_the_hour_that_comes_twice() -> None:
    second = Schedule(zone=ZONE, at=datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert to_parseable_text(second, ZONE) == "2026-10-25T01:30:00+00:00"
    assert parse_schedule(to_parseable_text(second, ZONE), before, ZONE).schedule == second


@pytest.mark.parametrize(
    "line",
    [
        "call mum this weekend at 10",
        "water every third day at 9",
        "every 2 hours on weekdays drink",
        "tomorrow um 18 Uhr essen",
        "24.12. à 18h dîner",
        "next friday 25 tea",
        "every monday um 18 Uhr essen",
    ],
)
def test_a_time_that_is_not_understood_is_asked_about(line: str) -> None:
    assert not parse_schedule(line, NOW, ZONE).is_certain


@pytest.mark.parametrize(
    "line",
    [
        "tomorrow 7pm EST call New York",
        "tomorrow at 9 UTC+1 call",
        "tomorrow at 9 New York time call",
        "Monday, November 24 to call",
        "Wednesday 25 December at 9 call",
        "on Sunday May 3rd at 18:00 call",
        "on the 1st of each quarter pay",
        "every first Monday of the quarter to review",
        "Friday 3pm-4pm meeting",
        "tomorrow 9-10 call",
        "every 15 minutes during work hours stretch",
        "tomorrow at 9, 12 and 18 take drops",
        "remind me tomorrow at 9 for 3 days take antibiotics",
        "tomorrow at 9 then daily pills",
        "next Monday week call",
        "every 2nd month pay",
    ],
)
def test_words_of_time_that_were_not_read_are_asked_about(line: str) -> None:
    assert not parse_schedule(line, NOW, ZONE).is_certain


def test_an_interval_is_said_in_the_largest_unit_that_divides_it() -> None:
    for words in ("36 hours", "90 minutes", "25 hours", "10 days"):
        reading = parse_schedule(f"every {words} drink", NOW, ZONE)
        assert describe(reading.schedule, ZONE, NOW).startswith(f"every {words}")
