"""Answers to plain questions about the calendar."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.agent.offline import ENGLISH_TEXTS
from core.scheduling.talk.agenda_questions import AgendaQuestion
from core.tools.agenda import read_event_line, render_event, word_event
from core.tools.agenda_answers import select_events
from core.tools.calendars import CalendarEvent
from gateway.texts.catalog import load_offline_texts
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 11, 24, 9, 0, tzinfo=ZONE)
RESULT = (
    "[Events of the calendar.]\n- Wed 25 Nov 2026 10:00 to 11:00 Dentist *Silva* (Rua 1)\n"
    "- Thu 26 Nov 2026 all day: Fair"
)


def test_lines_of_the_event_that_is_asked_for_are_chosen_and_escaped() -> None:
    one = AgendaQuestion(NOW, NOW, "dentist")
    dentist = r"- Wednesday, 25 November 2026, 10:00 to 11:00 Dentist \*Silva\* (Rua 1)"
    assert select_events(RESULT, one, ENGLISH_TEXTS) == [dentist]
    assert len(select_events(RESULT, AgendaQuestion(NOW, NOW), ENGLISH_TEXTS)) == 2
    plumber = AgendaQuestion(NOW, NOW, "plumber")
    assert select_events(RESULT, plumber, ENGLISH_TEXTS) == []


EVENTS = [
    ("10:00", "11:00", "", "Wed 25 Nov 2026 10:00 to 11:00 Padel", "Mittwoch, 25. November 2026, 10:00–11:00 Padel"),
    ("23:30", "00:30", "", "Wed 25 Nov 2026 23:30 to 00:30 Padel", "Mittwoch, 25. November 2026, 23:30–00:30 Padel"),
    ("10:00", "10:00", "Rua 1", "Wed 25 Nov 2026 10:00 Padel (Rua 1)", "Mittwoch, 25. November 2026, 10:00 Padel (Rua 1)"),
    ("", "25", "", "Wed 25 Nov 2026 all day: Padel", "Mittwoch, 25. November 2026, ganztägig: Padel"),
    ("", "27", "", "Wed 25 Nov 2026 until 27 Nov: Padel", "Mittwoch, 25. November 2026, bis 27. November: Padel"),
]  # fmt: skip


@each_row(("start", "end", "place", "english", "german"), EVENTS)
def test_event_in_a_result_of_the_tool_is_read_and_worded_in_german(
    start: str, end: str, place: str, english: str, german: str
) -> None:
    day = datetime(2026, 11, 25, tzinfo=UTC)
    if start:
        begin = datetime.combine(day, time.fromisoformat(start), UTC)
        finish = datetime.combine(day, time.fromisoformat(end), UTC)
        finish += timedelta(days=int(finish < begin))
    else:
        begin, finish = day, day.replace(day=int(end) + 1)
    event = CalendarEvent(
        calendar="x", text="Padel", start=begin, end=finish, is_all_day=not start, place=place
    )
    assert render_event(event, has_date=True) == english
    parsed = read_event_line(english)
    assert parsed is not None
    assert word_event(parsed, load_offline_texts("de"), has_date=True) == german


def test_timed_event_of_several_days_without_a_title_is_worded_with_its_last_day() -> None:
    event = CalendarEvent(
        calendar="x",
        text="",
        start=datetime(2026, 12, 4, 9, tzinfo=UTC),
        end=datetime(2026, 12, 7, 15, tzinfo=UTC),
        place="Porto",
    )
    english = "Fri 4 Dec 2026 09:00 to Mon 7 Dec 2026 15:00 (no title) (Porto)"
    assert render_event(event, has_date=True) == english
    german = "Freitag, 4. Dezember 2026, 09:00 bis 7. Dezember, 15:00 (ohne Titel) (Porto)"
    parsed = read_event_line(english)
    assert parsed is not None
    assert parsed.end == event.end
    assert word_event(parsed, load_offline_texts("de"), has_date=True) == german


def test_agenda_answer_counts_the_events_that_it_does_not_list() -> None:
    result = "\n".join(f"- Wed 25 Nov 2026 {hour}:00 Call {hour}" for hour in range(10, 23))
    question = AgendaQuestion(NOW, NOW + timedelta(days=1))
    lines = select_events(result, question, ENGLISH_TEXTS)
    assert len(lines) == 11
    assert lines[-1] == "And 3 more events. `/agenda` lists them."
