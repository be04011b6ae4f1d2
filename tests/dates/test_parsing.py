"""Splits typed lines into schedules and texts: everyday words, cron lines, rules and moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.dates.parsing import parse_schedule
from core.dates.recurrence import next_recurrences
from core.dates.rules import format_rules
from core.dates.schedule import Schedule, next_due_by_clock, to_parseable_text
from core.errors import ConfigError, Refused
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
"""A Friday; in Lisbon it is noon too."""
ZONE = "Europe/Lisbon"


def moments_of(schedule: Schedule, count: int = 2) -> list[datetime]:
    """Return the first moments of a schedule."""
    if schedule.recurrences:
        return next_recurrences(schedule.recurrences, NOW, count)
    moments: list[datetime] = []
    moment = next_due_by_clock(schedule, NOW)
    while moment is not None and len(moments) < count:
        moments.append(moment)
        moment = next_due_by_clock(schedule, moment)
    return moments


def show_moments(schedule: Schedule) -> str:
    """Return the first two moments, each with its year unless it is 2026."""
    local = [moment.astimezone(ZoneInfo(ZONE)) for moment in moments_of(schedule)]
    texts = [f"{moment:%Y-%m-%d %H:%M}".removeprefix("2026-") for moment in local]
    return ", ".join(texts)


# The line, its first two moments, and the text.
CERTAIN = [
    ("tomorrow at 9 call Ana", "11-21 09:00", "call Ana"),
    ("Tomorrow, at 9: call Ana", "11-21 09:00", "call Ana"),
    ("call Ana tomorrow at 9", "11-21 09:00", "call Ana"),
    ("call Ana tomorrow at 9 please", "11-21 09:00", "call Ana"),
    ("tomorrow call Ana at 9", "11-21 09:00", "call Ana"),
    ("at 9 call Ana tomorrow", "11-21 09:00", "call Ana"),
    ("remind me to call Ana tomorrow at 9", "11-21 09:00", "call Ana"),
    ("remind me tomorrow that the bins go out", "11-21 09:00", "the bins go out"),
    ("please remind me about the dentist on 3 December at 14:00", "12-03 14:00", "the dentist"),
    ("in 20 minutes take the bread out", "11-20 12:20", "take the bread out"),
    ("remind me in 20 minutes to take the bread out", "11-20 12:20", "take the bread out"),
    ("in an hour and a half tea", "11-20 13:30", "tea"),
    ("in 1.5 hours tea", "11-20 13:30", "tea"),
    ("in half an hour tea", "11-20 12:30", "tea"),
    ("in 2 hours and 15 minutes tea", "11-20 14:15", "tea"),
    ("1h30m tea", "11-20 13:30", "tea"),
    ("90m tea", "11-20 13:30", "tea"),
    ("20 minutes from now tea", "11-20 12:20", "tea"),
    ("in 30 seconds tea", "11-20 12:00", "tea"),
    ("in 3 days at 9 water the plants", "11-23 09:00", "water the plants"),
    ("in 2 weeks pay", "12-04 12:00", "pay"),
    ("in a month pay", "12-20 12:00", "pay"),
    ("on 3 May at 10:00 Ana's birthday", "2027-05-03 10:00", "Ana's birthday"),
    ("May 3rd at noon Ana", "2027-05-03 12:00", "Ana"),
    ("the 3rd of May at noon Ana", "2027-05-03 12:00", "Ana"),
    ("Dec 1, 2026 at 10am dentist", "12-01 10:00", "dentist"),
    ("29 February party", "2028-02-29 09:00", "party"),
    ("24.12. at 18:00 gifts", "12-24 18:00", "gifts"),
    ("25/12 gifts", "12-25 09:00", "gifts"),
    ("12/25 gifts", "12-25 09:00", "gifts"),
    ("on the 3rd at 10 rent", "12-03 10:00", "rent"),
    ("on the 31st pay", "12-31 09:00", "pay"),
    ("2026-12-01 10:00 dentist", "12-01 10:00", "dentist"),
    ("2026-12-01T10:00 dentist", "12-01 10:00", "dentist"),
    ("2026-12-01T10:00:00+01:00 dentist", "12-01 09:00", "dentist"),
    ("2026-12-01T10:00:00Z dentist", "12-01 10:00", "dentist"),
    ("at 17:30 leave", "11-20 17:30", "leave"),
    ("17:30 leave", "11-20 17:30", "leave"),
    ("at 17h30 leave", "11-20 17:30", "leave"),
    ("at 5pm leave", "11-20 17:00", "leave"),
    ("at 5 p.m. leave", "11-20 17:00", "leave"),
    ("at 12am leave", "11-21 00:00", "leave"),
    ("friday at 5pm", "11-20 17:00", ""),
    ("on friday at 9:30 stand-up", "11-27 09:30", "stand-up"),
    ("next monday at 9 call", "11-23 09:00", "call"),
    ("friday next week at 9 call", "11-27 09:00", "call"),
    ("next week on tuesday at 10 call", "11-24 10:00", "call"),
    ("the day after tomorrow at 8:15 swim", "11-22 08:15", "swim"),
    ("tonight", "11-20 20:00", ""),
    ("tonight at 9 film", "11-20 21:00", "film"),
    ("tonight at midnight champagne", "11-21 00:00", "champagne"),
    ("tomorrow evening at 7 dinner", "11-21 19:00", "dinner"),
    ("tomorrow morning buy bread", "11-21 09:00", "buy bread"),
    ("this evening call", "11-20 19:00", "call"),
    ("at 8 in the evening call", "11-20 20:00", "call"),
    ("noon", "11-21 12:00", ""),
    ("midnight", "11-21 00:00", ""),
    ("every monday at 8:30 stand-up", "11-23 08:30, 11-30 08:30", "stand-up"),
    ("stand-up every monday at 8:30", "11-23 08:30, 11-30 08:30", "stand-up"),
    ("at 8:30 every monday stand-up", "11-23 08:30, 11-30 08:30", "stand-up"),
    ("mondays at 10 gym", "11-23 10:00, 11-30 10:00", "gym"),
    ("every monday and wednesday at 10 gym", "11-23 10:00, 11-25 10:00", "gym"),
    ("every mon, wed, fri at 7am run", "11-23 07:00, 11-25 07:00", "run"),
    ("every monday to friday at 9 work", "11-23 09:00, 11-24 09:00", "work"),
    ("weekdays at 9", "11-23 09:00, 11-24 09:00", ""),
    ("every morning", "11-21 09:00, 11-22 09:00", ""),
    ("every morning at 7 run", "11-21 07:00, 11-22 07:00", "run"),
    ("every night at 11 lock up", "11-20 23:00, 11-21 23:00", "lock up"),
    ("daily at 8 vitamins", "11-21 08:00, 11-22 08:00", "vitamins"),
    ("every day at 9 and 21 take pills", "11-20 21:00, 11-21 09:00", "take pills"),
    ("every 2 hours drink", "11-20 14:00, 11-20 16:00", "drink"),
    ("hourly check", "11-20 13:00, 11-20 14:00", "check"),
    ("every minute x", "11-20 12:01, 11-20 12:02", "x"),
    ("every 3 days at 9 water", "11-21 09:00, 11-24 09:00", "water"),
    ("every other monday bins", "11-23 09:00, 12-07 09:00", "bins"),
    ("every month on the 3rd at 10 rent", "12-03 10:00, 2027-01-03 10:00", "rent"),
    ("every 1st and 15th of the month pay", "12-01 09:00, 12-15 09:00", "pay"),
    ("every first monday of the month at 9 x", "12-07 09:00, 2027-01-04 09:00", "x"),
    ("every last friday at 16:00 drinks", "11-27 16:00, 12-25 16:00", "drinks"),
    ("every last day of the month invoice", "11-30 09:00, 12-31 09:00", "invoice"),
    ("every year on 3 May Ana", "2027-05-03 09:00, 2028-05-03 09:00", "Ana"),
    ("every year on 3 May at 10:00 | Ana", "2027-05-03 10:00, 2028-05-03 10:00", "Ana"),
    ("0 9 * * 1-5 stand-up", "11-23 09:00, 11-24 09:00", "stand-up"),
    ("0 9 * * mon-fri stand-up", "11-23 09:00, 11-24 09:00", "stand-up"),
    ("*/15 * * * * drink", "11-20 12:15, 11-20 12:30", "drink"),
    ("tomorrow at 9 | call Ana at 5", "11-21 09:00", "call Ana at 5"),
    ("call Ana at 5 | tomorrow at 9", "11-21 09:00", "call Ana at 5"),
    ("tomorrow run `a | b`", "11-21 09:00", "run `a | b`"),
    ("on the 1st of every month pay rent", "12-01 09:00, 2027-01-01 09:00", "pay rent"),
    ("pay rent on the 1st and 15th of each month", "12-01 09:00, 12-15 09:00", "pay rent"),
    ("on the last day of every month invoice", "11-30 09:00, 12-31 09:00", "invoice"),
    ("the first monday of every month at 9 review", "12-07 09:00, 2027-01-04 09:00", "review"),
    ("at 9 pay rent every month on the 3rd", "12-03 09:00, 2027-01-03 09:00", "pay rent"),
    (
        "every friday at 16:00 write the weekly report",
        "11-20 16:00, 11-27 16:00",
        "write the weekly report",
    ),
    ("tomorrow at 9 two\nlines", "11-21 09:00", "two\nlines"),
    ("at 17:30 Europe/Paris leave", "11-20 17:30", "Europe/Paris leave"),
    ("at 17:30 UTC leave", "11-20 17:30", "leave"),
    ("every 2 hours from 9 to 17 drink", "11-20 13:00, 11-20 15:00", "drink"),
    ("every second monday bins", "11-23 09:00, 12-07 09:00", "bins"),
    ("when pigs fly | call Ana tomorrow", "11-21 09:00", "when pigs fly | call Ana"),
    ("pay the rent by monday", "11-23 09:00", "pay the rent"),
    ("on the 1st and 15th of the month pay rent", "12-01 09:00, 12-15 09:00", "pay rent"),
    ("call Ana tomorrow at 9 about the flat", "11-21 09:00", "call Ana about the flat"),
    ("on the first monday of the month x", "12-07 09:00, 2027-01-04 09:00", "x"),
    ("next month pay rent on the 3rd", "12-03 09:00", "pay rent"),
    ("mañana a las 9 llamar a Ana", "11-21 09:00", "llamar a Ana"),
    ("morgen um 9 Uhr anrufen", "11-21 09:00", "anrufen"),
    ("in 20 Minuten Brot", "11-20 12:20", "Brot"),
    ("demain à 9h appeler", "11-21 09:00", "appeler"),
    ("завтра в 9 позвонить Ане", "11-21 09:00", "позвонить Ане"),
    ("через 20 минут чай", "11-20 12:20", "чай"),
    ("明天早上9点给妈妈打电话", "11-21 09:00", "给妈妈打电话"),
    ("am 3. Mai um 18 Uhr Essen mit Eva", "2027-05-03 18:00", "Essen mit Eva"),
    ("el 3 de mayo a las 18 cenar", "2027-05-03 18:00", "cenar"),
    ("ужин 3 мая в 18:00", "2027-05-03 18:00", "ужин"),
    ("5月3日下午6点吃饭", "2027-05-03 18:00", "吃饭"),
    ("20分钟后喝水", "11-20 12:20", "喝水"),
    ("明日9時に会議", "11-21 09:00", "会議"),
    ("내일 9시 회의", "11-21 09:00", "회의"),
    ("every 3rd day x", "11-21 09:00, 11-24 09:00", "x"),
    ("every day at 9:00 and 21:30 pills", "11-20 21:30, 11-21 09:00", "pills"),
]

UNCERTAIN = [
    ("domani alle 18 cena", "11-21 18:00", "cena"),
    ("morgen om 18 uur eten", "11-21 18:00", "eten"),
    ("3 maggio alle 18:00 cena", "2027-05-03 18:00", "cena"),
    ("tomorrow buy 3 eggs", "11-21 09:00", "buy 3 eggs"),
    ("tomorrow um 18 Uhr essen", "11-20 18:00", "tomorrow essen"),
    ("at 9:00 call", "11-20 21:00", "call"),
    ("at 5 call", "11-20 17:00", "call"),
    ("today at 9 call", "11-20 21:00", "call"),
    ("tomorrow at 5 call", "11-21 17:00", "call"),
    ("tomorrow at 25 call", "11-21 09:00", "at 25 call"),
    ("next sunday at 10:00 call", "11-22 10:00", "call"),
    ("3/5 call", "2027-05-03 09:00", "call"),
    ("every month on the 31st rent", "11-30 09:00, 12-31 09:00", "rent"),
    ("0 0 9 * * 1-5 six fields", "12-09 00:00, 2027-01-09 00:00", "1-5 six fields"),
    ("tomorrow at 9 take pills daily", "11-21 09:00", "take pills daily"),
    ("llamar a Ana mañana a las 5", "11-21 17:00", "llamar a Ana"),
]

# The line, and a part of the sentence that refuses it.
REFUSED = [
    ("next week", "only a part of that time"),
    ("weekly report", "only a part of that time"),
    ("every day at 9 until June x", "only a part of that time"),
    ("tomorrow at 9 call Ana every hour", "only a part of that time"),
    ("", "When, and what?"),
    ("   \u0000 ", "When, and what?"),
    ("buy milk", "find a time in that"),
    ("do the laundry", "only a part of that time"),
    ("may the force be with you", "find a time in that"),
    ("call 5 people", "find a time in that"),
    ("install python 3.11", "find a time in that"),
    ("|", "find a time in that"),
    ("every", "find a time in that"),
    ("in", "find a time in that"),
    ("30 February party", "That date doesn't exist"),
    ("yesterday at 9 call", "That time is in the past"),
    ("today at 9:30 call", "That time is in the past"),
    ("3 May 2020 call", "That time is in the past"),
    ("2020-01-01 10:00 call", "That time is in the past"),
    ("2020-01-01T10:00:00Z call", "Wednesday 1 January 2020 at 10:00 is in the past"),
    ("every 30 seconds call", "find a time in that"),
    ("every second x", "find a time in that"),
    ("every third time call", "find a time in that"),
    ("every 5 months call", "only a part of that time"),
    ("in 9999 years call", "That time is too far away"),
    ("61 9 * * * call", "not a valid cron line (Bad minute)"),
    ("0 0 31 2 * call", "not a valid cron line (Bad day-of-month)"),
    ("0 9 * * 5-1 call", "not a valid cron line (Bad day-of-week)"),
]


@each_row(("line", "when", "text"), CERTAIN, ids=[line for line, _, _ in CERTAIN])
def test_line_with_a_clear_time_is_certain(line: str, when: str, text: str) -> None:
    reading = parse_schedule(line, NOW, ZONE)

    assert (show_moments(reading.schedule), reading.text) == (when, text)
    assert reading.is_certain


@each_row(("line", "when", "text"), UNCERTAIN, ids=[line for line, _, _ in UNCERTAIN])
def test_line_with_several_meanings_is_not_certain(line: str, when: str, text: str) -> None:
    reading = parse_schedule(line, NOW, ZONE)

    assert (show_moments(reading.schedule), reading.text) == (when, text)
    assert not reading.is_certain


@each_row(("line", "sentence"), REFUSED, ids=[line for line, _ in REFUSED])
def test_line_without_a_usable_time_is_refused_with_advice(line: str, sentence: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse_schedule(line, NOW, ZONE)

    assert sentence in str(refusal.value)
    assert "'" in str(refusal.value) or "Name" in str(refusal.value)


def test_time_in_a_reminder_is_read_in_the_persons_time_zone() -> None:
    reading = parse_schedule("tomorrow at 9 call", NOW, "Asia/Kolkata")
    assert reading.schedule == Schedule(
        zone="Asia/Kolkata", at=datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
    )
    # In Auckland the twenty-first has begun already.
    assert parse_schedule("tomorrow at 9 call", NOW, "Pacific/Auckland").schedule.at == datetime(
        2026, 11, 21, 20, tzinfo=UTC
    )


@each_row("zone", ["Mars/Olympus", "", "Europe", "../etc/passwd", "a\0b"])
def test_unknown_time_zone_of_a_schedule_is_refused(zone: str) -> None:
    with pytest.raises(ConfigError, match="is not a time zone"):
        parse_schedule("tomorrow at 9 call", NOW, zone)
    with pytest.raises(ConfigError, match="is not a time zone"):
        next_due_by_clock(Schedule(zone=zone, cron="0 9 * * *"), NOW)


@given(st.text(max_size=80))
def test_schedule_read_from_any_text_is_refused_or_due_in_the_future(line: str) -> None:
    try:
        reading = parse_schedule(line, NOW, ZONE)
    except Refused:
        return
    following = moments_of(reading.schedule)
    assert following
    assert following[0] > NOW


WORDS = re.findall(
    r"\S+",
    "tomorrow today tonight next every on at in the of and from to 9 17 9:30 5pm noon monday friday may 3 3rd first "
    "last week month year day days hours minutes 20 an half other daily weekdays morning night until call Ana | 2027 "
    "* / - 1h between 2 weeks weekend around",
)


@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_time_words_in_any_order_are_parsed_to_a_future_time_or_refused(words: list[str]) -> None:
    try:
        reading = parse_schedule(" ".join(words), NOW, ZONE)
    except Refused:
        return
    following = moments_of(reading.schedule)
    assert following
    assert following[0] > NOW
    assert following[0].microsecond == 0
    assert all(word in words for word in reading.text.split())


def test_hostile_lines_of_a_schedule_are_read_quickly() -> None:
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


@each_row("line", [line for line, _, _ in CERTAIN + UNCERTAIN])
def test_exact_words_are_read_back_with_the_same_times(line: str) -> None:
    reading = parse_schedule(line, NOW, ZONE)
    schedule = reading.schedule
    words = format_rules(schedule) if schedule.recurrences else to_parseable_text(schedule, ZONE)

    again = parse_schedule(f"{words} | {reading.text}", NOW, ZONE)

    assert again.text == reading.text
    assert moments_of(again.schedule, 5) == moments_of(schedule, 5)
    assert again.is_certain


@each_row("every_s", [60, 5_400, 129_600, 86_400, 1_209_600])
def test_exact_words_of_an_interval_are_read_back_with_the_same_times(every_s: int) -> None:
    start = datetime(2026, 10, 24, 8, 30, tzinfo=UTC)
    schedule = Schedule(zone="America/New_York", every_s=every_s, start_at=start)

    again = parse_schedule(f"{to_parseable_text(schedule, ZONE)} | x", NOW, ZONE)

    assert moments_of(again.schedule, 5) == moments_of(schedule, 5)


def test_schedule_in_the_repeated_hour_of_a_clock_change_survives_writing_and_parsing() -> None:
    second = Schedule(zone=ZONE, at=datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert to_parseable_text(second, ZONE) == "2026-10-25T01:30:00+00:00"
    assert parse_schedule(to_parseable_text(second, ZONE), before, ZONE).schedule == second


STORY = "how the ferry was late, and what the captain said about it in the end, " * 20


@pytest.mark.parametrize("line", [f"tomorrow at 9 {STORY}", f"{STORY}tomorrow at 9"])
def test_time_at_either_end_of_a_long_line_is_read_and_the_whole_text_is_kept(line: str) -> None:
    result = parse_schedule(line, NOW, ZONE)
    assert show_moments(result.schedule) == "11-21 09:00"
    assert result.text == STORY.rstrip(" ,")


def test_second_time_at_the_end_of_a_long_line_makes_its_schedule_uncertain() -> None:
    assert parse_schedule(f"tomorrow at 9 {STORY}", NOW, ZONE).is_certain
    assert not parse_schedule(f"tomorrow at 9 {STORY}on Friday at 10", NOW, ZONE).is_certain
