"""Parses plain questions about the calendar, which Mneme answers without a model.

"What do I have tomorrow?" asks for the events of a period, and "When is the dentist?" for an event.
The patterns of ten languages are in `data/agenda.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from core.markup.markdown import escape
from core.text.normalize import language_data
from core.text.terms import word_terms
from core.tools.agenda import read_coming_period, read_event_line, word_event

# A longer message isn't a plain question.
MAX_QUESTION_CHARS = 100
# Events are searched for in this period.
SEARCHED_TIME = timedelta(days=60)
MAX_EVENTS = 10
# A line of a result about a calendar that couldn't be read.
_UNREAD_CALENDAR = re.compile(r"^The calendar (\S+) can't be read: ", re.MULTILINE)
# A line of a result about an event that repeats too often.
_LEFT_OUT_EVENT = re.compile(
    r'^The event "(.*)" in the calendar (\S+) repeats too often to be shown\.$', re.MULTILINE
)
# A line of a result about an event that can't be read.
_DAMAGED_EVENT = re.compile(
    r'^The event "(.*)" in the calendar (\S+) is damaged and can\'t be shown\.$', re.MULTILINE
)
_ENDS = " \t\n¿?\uff1f!\uff01.\u3002"


@dataclass(frozen=True, slots=True)
class AgendaQuestion:
    """A question about the events between two times, or about one of these events."""

    start: datetime
    end: datetime
    # The name of the requested event. Empty for all events.
    what: str = ""


def read_question(text: str, now: datetime, zone: ZoneInfo) -> AgendaQuestion | None:
    """Return the question about the calendar in a message, or None."""
    text = " ".join(text.split()).strip(_ENDS)
    if not text or len(text) > MAX_QUESTION_CHARS:
        return None
    for match in _match_all("periods", text):
        period = read_coming_period(match["when"], now, zone)
        if period is not None:
            return AgendaQuestion(*period)
    for match in _match_all("events", text):
        if word_terms(match["what"]):
            return AgendaQuestion(now, now + SEARCHED_TIME, match["what"])
    return None


def select_events(result: str, question: AgendaQuestion, words: Mapping[str, str]) -> list[str]:
    """Return the events in a result of the tool `calendar` that answer a question, as Markdown.

    If the question names an event, only events with all words of that name are returned. The
    last line counts the events that aren't listed. `words` are the texts for answers without a
    model.
    """
    name_terms = set(word_terms(question.what))
    lines = [line.removeprefix("- ") for line in result.splitlines() if line.startswith("- ")]
    events = [line for line in lines if name_terms <= set(word_terms(line))]
    listed = [f"- {escape(_word_line(event, words))}" for event in events[:MAX_EVENTS]]
    if len(events) > MAX_EVENTS:
        listed.append(words["more_events"].format(count=len(events) - MAX_EVENTS))
    return listed


def _word_line(line: str, words: Mapping[str, str]) -> str:
    event = read_event_line(line)
    return line if event is None else word_event(event, words, has_date=True)


def list_problems(result: str, words: Mapping[str, str]) -> list[str]:
    """Return a sentence for each calendar or event in a result that couldn't be read."""
    names = _UNREAD_CALENDAR.findall(result)
    sentences = [words["calendar_unread"].format(name=escape(name)) for name in names]
    for key, pattern in (("event_left_out", _LEFT_OUT_EVENT), ("event_damaged", _DAMAGED_EVENT)):
        for event, name in pattern.findall(result):
            title = words["event_no_title"] if event == "(no title)" else event
            sentences.append(words[key].format(event=escape(title), name=escape(name)))
    return sentences


def _match_all(kind: str, text: str) -> Sequence[re.Match[str]]:
    return [match for pattern in _load_patterns()[kind] if (match := pattern.fullmatch(text))]


@cache
def _load_patterns() -> dict[str, list[re.Pattern[str]]]:
    tables = language_data("agenda", "core.tools")
    flags = re.IGNORECASE | re.VERBOSE
    return {
        kind: [re.compile(pattern, flags) for pattern in patterns]
        for kind, patterns in tables.items()
    }
