"""Chooses and words the events that answer a plain question about the calendar, without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.markup.markdown import escape
from core.scheduling.talk.agenda_questions import AgendaQuestion
from core.text.terms import word_terms
from core.tools.agenda import read_event_line, word_event

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
