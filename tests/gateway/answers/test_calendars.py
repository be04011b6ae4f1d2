"""The events that an answer lists become a calendar file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.dates.calendar_file import parse_calendar
from gateway.answers.calendars import build_calendar

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LISBON = ZoneInfo("Europe/Lisbon")
Events = list[tuple[str, datetime]]


def at(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2027, month, day, hour, minute, tzinfo=LISBON)


def read_events(content: bytes | None) -> Events:
    assert content is not None
    events = parse_calendar(content).walk("VEVENT")
    return [(str(event["SUMMARY"]), read_start(event).astimezone(LISBON)) for event in events]


def read_start(event: Any) -> datetime:
    start = event["DTSTART"].dt
    assert isinstance(start, datetime)
    return start


@pytest.mark.parametrize(
    ("language", "answer", "expected"),
    [
        (
            "en",
            "Your dates:\n\n- 12 May 2027, 14:00: dentist\n- 3 June 2027 at 9:30 meet Ana\n\nHave fun!",
            [("dentist", at(5, 12, 14)), ("meet Ana", at(6, 3, 9, 30))],
        ),
        (
            "en",
            "| Day | Time | What |\n| --- | --- | --- |\n| 12 May 2027 | 14:00 | Dentist |\n",
            [("Dentist", at(5, 12, 14))],
        ),
        (
            "en",
            "**12 May 2027**\n- 14:00 dentist\n- 18:30 dinner\n\n**13 May 2027**\n- 8:00 train",
            [
                ("dentist", at(5, 12, 14)),
                ("dinner", at(5, 12, 18, 30)),
                ("train", at(5, 13, 8)),
            ],
        ),
        (
            "de",
            "- 12. Mai 2027 um 14 Uhr: Zahnarzt\n- Gestern war nichts.",
            [("Zahnarzt", at(5, 12, 14))],
        ),
    ],
)
def test_lines_of_an_answer_with_a_date_become_events(
    language: str, answer: str, expected: Events
) -> None:
    events = read_events(build_calendar(answer, NOW, "Europe/Lisbon", (language,)))
    assert events == expected


@pytest.mark.parametrize("answer", ["I don't know of any.", "- 12 May 2020, 14:00: dentist", ""])
def test_answer_without_an_event_to_come_makes_no_calendar(answer: str) -> None:
    assert build_calendar(answer, NOW, "Europe/Lisbon", ("en",)) is None


def test_event_every_week_becomes_one_event_with_a_rule() -> None:
    content = build_calendar("- every Monday at 8:00 swim", NOW, "Europe/Lisbon", ("en",))
    assert content is not None
    (event,) = parse_calendar(content).walk("VEVENT")
    rule: Any = event["RRULE"]
    assert rule["FREQ"] == ["WEEKLY"]
    assert read_start(event) - NOW < timedelta(days=7)
