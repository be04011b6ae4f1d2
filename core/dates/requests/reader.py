"""Reads requests for reminders in everyday words: "don't let me forget to call Ana at 5".

`read_request` decides whether a message is a request at all. It returns the moment or the
recurrences, the task, the missing parts and the assumptions. The task is the message without the
words of the request. `revise_reading` reads an answer or a correction: "no, at 11". Lexicons for
ten languages are in `data/`; see `core.dates.requests.lexicon`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.dates.recurrence import next_recurrence
from core.dates.requests.clusters import ClusterReader
from core.dates.requests.combining import settle_points
from core.dates.requests.grammar import Context
from core.dates.requests.intents import Intent, IntentReader
from core.dates.requests.lexicon import (
    Kind,
    Lexicon,
    Text,
    load_lexicon,
    plain_text,
    request_languages,
    tokenize_request,
)
from core.dates.requests.parts import (
    Assumption,
    Missing,
    Problem,
    TimeParts,
    resolve_parts,
)
from core.dates.requests.sentence import ALARM, ASKING, WAKE_UP, Cluster, Sentence
from core.dates.requests.tasks import TaskReader

_CANDIDATES = ASKING | {Kind.LIST, Kind.HOW, Kind.BLOCK}
"""A message without one of these tokens doesn't concern reminders."""
MORNING = 9
FIRST_LIKELY_ALARM_HOUR = 5
"""An alarm at a bare hour from 5 to 11 is probably for the morning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderReading:
    """The meaning of a message about a reminder."""

    intent: Intent
    # The lexicon that was used.
    language: str = "en"
    # When a single reminder is due (UTC). None for a recurrence, or if something is missing.
    moment: datetime | None = None
    # iCalendar texts with DTSTART and RRULE; see `core.dates.recurrence`.
    recurrences: tuple[str, ...] = ()
    # The message without the words of the request and of the time.
    task: str = ""
    missing: frozenset[Missing] = frozenset()
    problem: Problem | None = None
    # Choices that the receipt must mention.
    assumed: frozenset[Assumption] = frozenset()
    # The parts of the time, for answers and corrections.
    parts: TimeParts = field(default_factory=TimeParts)

    @property
    def is_complete(self) -> bool:
        """Whether the reminder can be set without a question."""
        return self.intent is Intent.SET and not self.missing

    @property
    def names_time(self) -> bool:
        return bool(self.parts.names() - {"assumed"})


def read_request(
    text: str,
    now: datetime,
    zone: ZoneInfo,
    languages: Sequence[str] = (),
    *,
    is_request: bool = False,
) -> ReminderReading:
    """Read a message at `now` (aware), with wall times in `zone`.

    `languages` are the languages that the person is likely to use, the likeliest first. With
    `is_request`, the whole message is known to be a request, as after ``/remind``.
    """
    source = plain_text(text)
    readings = [
        _Reader(source, load_lexicon(language), now, zone, is_request=is_request).read()
        for language in _likely_languages(source.plain, languages)
    ]
    best = max(readings, key=lambda scored: scored.score, default=None)
    return best.reading if best else ReminderReading(intent=Intent.NONE)


def read_in_language(
    text: str, lexicon: Lexicon, now: datetime, zone: ZoneInfo, *, is_request: bool = False
) -> ReminderReading:
    """Read a message with a single lexicon. See `read_request` for the other parameters."""
    return _Reader(plain_text(text), lexicon, now, zone, is_request=is_request).read().reading


def revise_reading(
    previous: ReminderReading, text: str, now: datetime, zone: ZoneInfo
) -> ReminderReading | None:
    """Return a reading with the answer or correction in `text`: "no, at 11", "tomorrow at 10".

    Returns None if the text names no time. Words that aren't a time become the task if the
    previous reading has none.
    """
    languages = (previous.language,)
    answer = read_request(text, now, zone, languages, is_request=True)
    if not answer.names_time:
        return None
    parts = previous.parts.revise(answer.parts)
    task = previous.task or answer.task
    return _finish(Intent.SET, previous.language, parts, task, now, zone)


# --- Languages ---


def _likely_languages(plain: str, preferred: Sequence[str]) -> list[str]:
    """Return the languages in whose script a text is written, preferred languages first."""
    known_languages = request_languages()
    first = [language for language in preferred if language in known_languages]
    return [
        language
        for language in dict.fromkeys([*first, *known_languages])
        if load_lexicon(language).letters.search(plain)
    ]


# --- Reading in one language ---


class _Scored(NamedTuple):
    """A reading, and how well its language fits: a higher score is better."""

    reading: ReminderReading
    score: tuple[float, ...]


class _Reader:
    """Reads a message with the lexicon of one language."""

    def __init__(
        self, text: Text, lexicon: Lexicon, now: datetime, zone: ZoneInfo, *, is_request: bool
    ) -> None:
        self._text = text
        self._lexicon = lexicon
        self._now = now
        self._zone = zone
        self._is_request = is_request
        tokens = tokenize_request(text, lexicon)
        self._tokens = settle_points(tokens, has_dates=lexicon.has_point_dates)

    def read(self) -> _Scored:
        """Return the reading, and how well the language fits."""
        if not self._is_request and not {token.kind for token in self._tokens} & _CANDIDATES:
            return _Scored(ReminderReading(intent=Intent.NONE), (0,))
        sentence = Sentence(self._text, self._lexicon, self._tokens)
        here = self._now.astimezone(self._zone).replace(tzinfo=None)
        clusters = ClusterReader(sentence, Context(self._lexicon, here))
        times = clusters.find_clusters()
        intent = Intent.SET if self._is_request else IntentReader(sentence, times).decide()
        if intent is not Intent.SET:
            reading = ReminderReading(intent=intent, language=self._lexicon.language)
            return _Scored(reading, (intent is not Intent.NONE, 0, self._known_length()))
        accepted_clusters = clusters.select_clusters(times)
        parts = self._merge_parts(clusters, accepted_clusters)
        task = TaskReader(sentence, accepted_clusters).read()
        reading = _finish(intent, self._lexicon.language, parts, task, self._now, self._zone)
        return _Scored(reading, (2, self._request_length(accepted_clusters), self._known_length()))

    def _merge_parts(self, clusters: ClusterReader, accepted: Sequence[Cluster]) -> TimeParts:
        """Return the parts of all accepted times together."""
        parts = TimeParts()
        for cluster in accepted:
            parts = parts.merge(cluster.parts)
        if clusters.has_unread_time(accepted, parts):
            parts = replace(parts, problem=Problem.VAGUE)
        return self._set_in_the_morning(parts)

    def _set_in_the_morning(self, parts: TimeParts) -> TimeParts:
        """Return parts with an hour in the morning, for a request to wake the person or an alarm.

        The parts of other requests, and of alarms at another time, are returned unchanged.
        """
        numbers = {token.number for token in self._tokens if token.kind in ASKING}
        if parts.part is not None or len(parts.clocks) != 1 or not numbers & {WAKE_UP, ALARM}:
            return parts
        if WAKE_UP in numbers:
            return replace(parts, part=MORNING)
        clock = parts.clocks[0]
        if not clock.is_bare or clock.minute < FIRST_LIKELY_ALARM_HOUR * 60:
            return parts
        assumptions = parts.assumed | {Assumption.MORNING}
        return replace(parts, part=MORNING, assumed=assumptions)

    def _known_length(self) -> int:
        """Return how many characters belong to phrases of the language."""
        return sum(
            token.end - token.start for token in self._tokens if token.kind is not Kind.OTHER
        )

    def _request_length(self, accepted: Sequence[Cluster]) -> int:
        """Return how many characters belong to the request and to its times."""
        asking = sum(token.end - token.start for token in self._tokens if token.kind in ASKING)
        times = sum(
            self._tokens[cluster.end - 1].end - self._tokens[cluster.start].start
            for cluster in accepted
        )
        return asking + times


def _finish(
    intent: Intent, language: str, parts: TimeParts, task: str, now: datetime, zone: ZoneInfo
) -> ReminderReading:
    """Return the reading of parts and a task."""
    resolution = resolve_parts(parts, now, zone)
    missing = resolution.missing
    problem = resolution.problem
    recurrences = resolution.recurrences
    if recurrences and next_recurrence(recurrences, now) is None:
        missing, problem, recurrences = frozenset({Missing.TIME}), Problem.PAST, ()
    if not parts.is_time and not missing:
        missing = frozenset({Missing.TIME})
    if not task:
        missing |= {Missing.TASK}
    return ReminderReading(
        intent=intent,
        language=language,
        moment=resolution.moment,
        recurrences=recurrences,
        task=task,
        missing=missing,
        problem=problem,
        assumed=resolution.assumed,
        parts=parts,
    )
