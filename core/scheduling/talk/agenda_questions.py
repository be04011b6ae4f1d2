"""Finds messages about a person's time, and reads questions about it, without a model.

"What do I have tomorrow?" asks for the reminders and events of a period, and "When is the dentist?"
for an event. The patterns of ten languages are in `core/scheduling/data/agenda.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import cache
from itertools import chain
from zoneinfo import ZoneInfo

from core.dates.lexicon import load_triggers
from core.dates.period_name import Interval, read_period
from core.dates.schedule import resolve_wall_time
from core.text.normalize import language_data, plain_with_offsets
from core.text.terms import word_terms

# A longer message isn't a plain question.
MAX_QUESTION_CHARS = 100
# Events are searched for in this period.
SEARCHED_TIME = timedelta(days=399)
SATURDAY = 5
_ENDS = " \t\n¿?\uff1f!\uff01.\u3002"
# Signs after a question, such as an emoji.
_SIGNS = re.compile(r"[^\w\s'’.,:;/?!¿()+-]+$")
_WORD_START = re.compile(r"\b\w")
# The first character of the scripts without spaces between words.
_FIRST_UNSPACED = "\u2e80"
# Phrases are grouped by so many characters at their beginning.
_START_CHARS = 2


@dataclass(frozen=True, slots=True)
class AgendaQuestion:
    """A question about the events between two times, or about one of these events."""

    start: datetime
    end: datetime
    # The name of the requested event. Empty for all events.
    what: str = ""
    # Whether the question is about a period that is over.
    is_past: bool = False


def may_ask_about_period(text: str) -> bool:
    """Return whether a message has the form of a question about a period. This is cheap."""
    question = _trim(text)
    return bool(question) and bool(
        _match_periods(question, text) or _match_all("past_periods", question)
    )


def read_question(text: str, now: datetime, zone: ZoneInfo) -> AgendaQuestion | None:
    """Return the question about the calendar in a message, or None."""
    message, text = text, _trim(text)
    if not text:
        return None
    for match in _match_periods(text, message):
        question = _ask_about_period(match["when"], now, zone)
        if question is not None:
            return question
    for match in _match_all("past_periods", text):
        past = read_period(_trim_when(match["when"]), now, zone)
        if past is not None and past[0] < now:
            return AgendaQuestion(*past, is_past=True)
    for match in _match_all("events", text):
        if word_terms(match["what"]):
            return AgendaQuestion(now, now + SEARCHED_TIME, match["what"])
    return None


def _ask_about_period(when: str, now: datetime, zone: ZoneInfo) -> AgendaQuestion | None:
    """Return a question about the period that `when` names, or None if it names none."""
    # Imported here because `mneme recall` loads this module, too, and the date engine is large.
    from core.dates.coming_day import is_past_name, read_coming_period

    when = _trim_when(when)
    if any(_match_all("weekends", when)):
        return AgendaQuestion(*_find_weekend(now, zone))
    if is_past_name(when, now, zone):
        past = read_period(when, now, zone)
        return AgendaQuestion(*past, is_past=True) if past is not None else None
    period = read_coming_period(when, now, zone) if when else None
    return AgendaQuestion(*period) if period is not None else None


def _find_weekend(now: datetime, zone: ZoneInfo) -> Interval:
    """Return the weekend that has begun, or the next one."""
    today = now.astimezone(zone).date()
    if today.weekday() < SATURDAY:
        saturday = today + timedelta(days=SATURDAY - today.weekday())
    else:
        saturday = today - timedelta(days=today.weekday() - SATURDAY)
    days = (saturday, saturday + timedelta(days=2))
    start, end = (resolve_wall_time(datetime.combine(day, time()), zone) for day in days)
    return start, end


def _trim(text: str) -> str:
    """Return a message without marks and polite words at its ends. Empty if it's too long."""
    if len(text) > 2 * MAX_QUESTION_CHARS:
        return ""
    text = " ".join(text.replace("’", "'").split())
    text = _SIGNS.sub("", text.strip(_ENDS)).strip(_ENDS)
    for pattern in chain(*_load_patterns()["around"].values()):
        text = pattern.sub("", text)
    return text if len(text) <= MAX_QUESTION_CHARS else ""


def _trim_when(when: str) -> str:
    return when.strip(" ,，、")


def _match_periods(question: str, message: str) -> list[re.Match[str]]:
    """Return the matches of a question about a period, which is a message without its marks.

    Some forms are also statements, such as Spanish "tengo algo mañana". They need the mark.
    """
    matches = _match_all("periods", question)
    if "?" in message or "\uff1f" in message:
        matches += _match_all("marked_periods", question)
    return matches


def _match_all(kind: str, text: str) -> list[re.Match[str]]:
    """Return the matches of a table's patterns of all languages with the script of a text."""
    matches = []
    for language, patterns in _load_patterns()[kind].items():
        if load_triggers(language).letters.search(text):
            matches += [match for pattern in patterns if (match := pattern.fullmatch(text))]
    return matches


@cache
def _load_patterns() -> dict[str, dict[str, list[re.Pattern[str]]]]:
    tables = language_data("agenda", "core.scheduling")
    return {
        kind: {
            language: [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
            for language, patterns in languages.items()
        }
        for kind, languages in tables.items()
    }


class PhraseIndex:
    """Finds out whether a text contains one of thousands of phrases.

    Phrases are grouped by their first two characters. A regular expression for all of them would
    take a tenth of a second to compile, which would delay the first message.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        # Phrases of an alphabet count only at the beginning of a word, and others everywhere.
        given = set(filter(None, phrases))
        alphabetic = {
            phrase for phrase in given if phrase[0].isalpha() and phrase < _FIRST_UNSPACED
        }
        self._at_word_starts = _group_by_start(alphabetic)
        self._anywhere = _group_by_start(given - alphabetic)
        self._first_characters = {start[0] for start in self._anywhere}

    def is_in(self, text: str) -> bool:
        """Return whether a text contains one of the phrases, which are in plain form."""
        plain, _ = plain_with_offsets(text)
        for match in _WORD_START.finditer(plain):
            if _starts_with_any(self._at_word_starts, plain, match.start()):
                return True
        if self._first_characters.isdisjoint(plain):
            return False
        return any(
            _starts_with_any(self._anywhere, plain, index)
            for index, character in enumerate(plain)
            if character in self._first_characters
        )


def _group_by_start(phrases: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Group phrases by their first characters.

    Phrases that begin with another one are left out, because a text with them contains both.
    """
    groups: dict[str, list[str]] = {}
    shorter = None
    for phrase in sorted(phrases):
        if shorter is None or not phrase.startswith(shorter):
            shorter = phrase
            groups.setdefault(phrase[:_START_CHARS], []).append(phrase)
    return {start: tuple(group) for start, group in groups.items()}


def _starts_with_any(groups: Mapping[str, tuple[str, ...]], text: str, index: int) -> bool:
    """Return whether a phrase begins at an index of a text."""
    start = text[index : index + _START_CHARS]
    return text.startswith(groups.get(start, ()), index) or start[:1] in groups
