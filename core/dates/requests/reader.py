"""Read requests for reminders in everyday words: "don't let me forget to call Ana at 5".

`read_request` decides whether a message is a request at all. It returns the moment or the
recurrences, the task, the missing parts and the assumptions. The task is the message without the
words of the request and its time. `revise_reading` reads an answer or a correction: "no, at 11".
Lexicons for ten languages are in `data/`; see `core.dates.lexicon`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.dates.lexicon import (
    ASIDE_KINDS,
    ASKING_KINDS,
    Lexicon,
    lexicon_languages,
    load_lexicon,
    load_triggers,
)
from core.dates.recurrence import next_recurrence
from core.dates.requests.clusters import ClusterReader
from core.dates.requests.combining import (
    contradict,
    note_several_times,
    resolve_rhythms,
    revise_rhythms,
    settle_points,
    settle_wishes,
)
from core.dates.requests.grammar import VAGUE_LATER, Context, find_length
from core.dates.requests.intents import Intent, IntentReader
from core.dates.requests.parts import (
    Assumption,
    Missing,
    Problem,
    Span,
    TimeParts,
)
from core.dates.requests.sentence import ALARM, ASKING, WAKE_UP, Cluster, Sentence
from core.dates.requests.tasks import TaskReader
from core.dates.tokenizer import Text, find_middle, plain_text, tokenize
from core.dates.tokens import Kind, Token

_CANDIDATES = ASKING_KINDS | ASIDE_KINDS
_LENGTH_ENDS = (Kind.HOUR, Kind.MINUTE, Kind.UNIT, Kind.SPAN, Kind.HOUR_OR_AT)
"""A message without one of these tokens isn't about reminders."""
MAX_SHORT_WORD = 3
"""Words with at most this many letters often have another meaning in another language."""
MORNING = 9
FIRST_LIKELY_ALARM_HOUR = 5
"""An alarm at an hour from 5 to 11 is probably meant for the morning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderReading:
    """What a message about a reminder means: its intent, time and task."""

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
    assumptions: frozenset[Assumption] = frozenset()
    # The parts of the time, for answers and corrections.
    parts: TimeParts = field(default_factory=TimeParts)

    @property
    def is_complete(self) -> bool:
        """Whether the reminder can be set without another question."""
        return self.intent is Intent.SET and not self.missing

    @property
    def names_time(self) -> bool:
        return bool(self.parts.names() - {"assumptions"})


def read_request(
    text: str,
    now: datetime,
    zone: ZoneInfo,
    languages: Sequence[str] = (),
    *,
    is_request: bool = False,
    default_hour: int | None = None,
) -> ReminderReading:
    """Read a message at `now` (aware), with wall times in `zone`.

    `languages` are the languages that the person is likely to use, the likeliest first. Set
    `is_request` if the whole message is a request, as after ``/remind``. In a long request, times
    are read only at its ends. A day without an hour gets `default_hour`. Without a default hour,
    the hour is missing.
    """
    settings = _Settings(now, zone, is_request, default_hour)
    source = plain_text(text)
    readings = [
        _Reader(source, load_lexicon(language), settings).read()
        for language in _likely_languages(source.plain, languages)
        if is_request or load_triggers(language).may_concern(source.plain)
    ]
    best = max(readings, key=lambda candidate: candidate.score, default=None)
    return best.finish() if best else ReminderReading(intent=Intent.NONE)


def read_in_language(
    text: str, lexicon: Lexicon, now: datetime, zone: ZoneInfo, *, is_request: bool = False
) -> ReminderReading:
    """Read a message with one lexicon. See `read_request` for the other parameters."""
    return _Reader(plain_text(text), lexicon, _Settings(now, zone, is_request)).read().finish()


def revise_reading(
    previous: ReminderReading,
    text: str,
    now: datetime,
    zone: ZoneInfo,
    *,
    is_addition: bool = False,
) -> ReminderReading | None:
    """Apply the answer or correction in `text` to a reading: "no, at 11", "tomorrow at 10".

    With `is_addition`, weekdays are added to those of a recurrence: "and Thursdays too". Return
    None if the text contains no time. If the previous reading has no task, the words around the
    time become the task.
    """
    languages = (previous.language,)
    answer = read_request(text, now, zone, languages, is_request=True)
    if not answer.names_time:
        return None
    parts = previous.parts.revise(answer.parts)
    if previous.parts.also and not answer.parts.also:
        parts = revise_rhythms(previous.parts, answer.parts)
    if is_addition and previous.parts.repeat is not None and answer.parts.weekdays:
        weekdays = {*previous.parts.weekdays, *answer.parts.weekdays}
        parts = replace(previous.parts, weekdays=tuple(sorted(weekdays)))
    task = previous.task or answer.task
    return _finish(Intent.SET, previous.language, parts, task, now, zone)


def revise_all_rhythms(
    previous: ReminderReading, now: datetime, zone: ZoneInfo
) -> ReminderReading | None:
    """Apply a correction to all rhythms of a reading, or return None without such a correction."""
    correction = previous.parts.correction
    if correction is None:
        return None
    parts = revise_rhythms(previous.parts, correction)
    return _finish(Intent.SET, previous.language, parts, previous.task, now, zone)


def read_length(text: str, language: str) -> tuple[Span, str] | None:
    """Return the length of time in a text, and the other words: "an hour the dentist".

    Returns None if the text contains no length.
    """
    lexicon = load_lexicon(language)
    source = plain_text(text)
    tokens = tokenize(source, lexicon)
    if tokens and tokens[0].kind in (Kind.AND, Kind.AND_HALF):
        # "And half an hour earlier".
        source = plain_text(text[len(text.split()[0]) :].strip())
        tokens = tokenize(source, lexicon)
    tokens = settle_points(tokens, has_dates=lexicon.has_point_dates)
    length = find_length(tokens)
    if length is None:
        tokens = _split_vague_phrases(tokens, source, lexicon)
        length = find_length(tokens)
    if length is None:
        return None
    span, first, end = length
    others = source.plain[: tokens[first].start] + " " + source.plain[tokens[end - 1].end :]
    return span, " ".join(others.split())


def read_whole_length(text: str, languages: Sequence[str]) -> Span | None:
    """Return the length of time of a text with nothing else, such as "an hour" or "2 Tage".

    The languages are tried in order. Returns None for other texts, and for a unit alone, such as
    "minutes".
    """
    source = plain_text(text)
    for language in languages:
        lexicon = load_lexicon(language)
        tokens = _split_vague_phrases(tokenize(source, lexicon), source, lexicon)
        length = find_length(tokens)
        is_unit = len(tokens) == 1 and tokens[0].kind is not Kind.SPAN
        if length is not None and length[1:] == (0, len(tokens)) and not is_unit:
            return length[0]
    return None


def _split_vague_after_lengths(
    tokens: Sequence[Token], source: Text, lexicon: Lexicon
) -> list[Token]:
    """Read the words of a vague phrase one by one if a length precedes it.

    French "avant la réunion" names no moment, but "une heure avant la réunion" may.
    """
    result: list[Token] = []
    for token in tokens:
        is_after_length = bool(result) and result[-1].kind in _LENGTH_ENDS
        if token.kind is Kind.VAGUE and is_after_length and token.number != VAGUE_LATER:
            result += _split_vague_phrases([token], source, lexicon)
        else:
            result.append(token)
    return result


def _split_vague_phrases(tokens: Sequence[Token], source: Text, lexicon: Lexicon) -> list[Token]:
    """Read the words of vague phrases one by one.

    For example, French "un jour" means "some day", but is also a length of a day.
    """
    result: list[Token] = []
    for token in tokens:
        if token.kind is not Kind.VAGUE:
            result.append(token)
            continue
        start = token.start
        for word in source.plain[token.start : token.end].split():
            start = source.plain.index(word, start)
            pieces = tokenize(plain_text(word), lexicon)
            result += [
                piece._replace(start=start + piece.start, end=start + piece.end) for piece in pieces
            ]
            start += len(word)
    return result


# --- Languages ---


def _likely_languages(plain: str, preferred_languages: Sequence[str]) -> list[str]:
    """Return the languages that use a text's script, preferred languages first.

    A text without letters, such as "2026-12-01 10:00", is read in the first language.
    """
    known_languages = lexicon_languages()
    first = [language for language in preferred_languages if language in known_languages]
    languages = [*dict.fromkeys([*first, *known_languages])]
    likely = [language for language in languages if load_triggers(language).letters.search(plain)]
    return likely or languages[:1]


# --- Reading in one language ---


class _Scored(NamedTuple):
    """A score of how well a language fits, and a function that returns its reading.

    Finding the task and the moment takes long, so it's done for the best language only.
    """

    score: tuple[float, ...]
    finish: Callable[[], ReminderReading]


class _Settings(NamedTuple):
    """The parameters of `read_request` that are the same in every language."""

    # The current time.
    now: datetime
    zone: ZoneInfo
    # Whether the message is known to be a request.
    is_request: bool = False
    # The hour for a day without a clock time.
    default_hour: int | None = None


def _rewrite(text: Text, lexicon: Lexicon) -> Text:
    """Return a text with plainer forms for what the grammar can't read. See `Lexicon.rewrites`."""
    original = text.original
    for pattern, replacement in lexicon.rewrites:
        original = pattern.sub(replacement, original)
    return text if original == text.original else plain_text(original)


class _Reader:
    """Reads a message with the lexicon of one language."""

    def __init__(self, text: Text, lexicon: Lexicon, settings: _Settings) -> None:
        text = _rewrite(text, lexicon)
        self._text = text
        self._lexicon = lexicon
        self._settings = settings
        unread = find_middle(text.plain) if settings.is_request else None
        tokens = settle_wishes(tokenize(text, lexicon, unread), text, lexicon)
        tokens = _split_vague_after_lengths(tokens, text, lexicon)
        self._tokens = settle_points(tokens, has_dates=lexicon.has_point_dates)

    def read(self) -> _Scored:
        """Read the time, and return how well the language fits."""
        settings = self._settings
        if not settings.is_request and not {token.kind for token in self._tokens} & _CANDIDATES:
            return _Scored((0,), lambda: ReminderReading(intent=Intent.NONE))
        sentence = Sentence(self._text, self._lexicon, self._tokens)
        here = settings.now.astimezone(settings.zone).replace(tzinfo=None)
        clusters = ClusterReader(sentence, Context(self._lexicon, here))
        times = clusters.find_clusters()
        intents = IntentReader(sentence, times)
        intent = Intent.SET if settings.is_request else intents.decide()
        if intent not in (Intent.SET, Intent.OTHER_PERSON):
            return self._score_other(intent)
        selection = clusters.select_clusters(times)
        parts = self._merge_parts(clusters, selection, times)
        if parts.problem is Problem.PAST and not self._has_request():
            return self._score_other(Intent.STORY)  # "The reminder came yesterday".
        if self._names_day_clearly(selection):
            parts = parts.with_default_hour(settings.default_hour)
        elif selection and not self._has_other_phrases(selection):
            # The short word may belong to another language.
            parts = replace(parts, problem=Problem.VAGUE)

        def finish() -> ReminderReading:
            # A request for another person becomes the person's own task: "remind Anna to pay".
            kept_index = intents.find_other_person()
            reader = TaskReader(sentence, selection, kept_index, is_request=settings.is_request)
            language = self._lexicon.language
            return _finish(intent, language, parts, reader.read(), settings.now, settings.zone)

        # A request whose only time is a short word may be a question in another language.
        # So may a word such as "reminder" without a time: "reminder emails at 9 annoy me".
        is_clear = self._names_day_clearly(selection) if selection else self._has_request()
        fit = 2 if is_clear or settings.is_request else 0.5
        score = (fit, self._request_length(selection), self._known_length())
        return _Scored(score, finish)

    def _has_request(self) -> bool:
        """Return whether the message certainly asks for a reminder."""
        is_asking = any(token.kind is Kind.REQUEST for token in self._tokens)
        return self._settings.is_request or is_asking

    def _score_other(self, intent: Intent) -> _Scored:
        """Return the reading of a message that asks for no reminder."""
        reading = ReminderReading(intent=intent, language=self._lexicon.language)
        return _Scored((intent is not Intent.NONE, 0, self._known_length()), lambda: reading)

    def _merge_parts(
        self, clusters: ClusterReader, selection: Sequence[Cluster], times: Sequence[Cluster]
    ) -> TimeParts:
        """Return the combined parts of all accepted times, which are some of `times`."""
        parts = TimeParts()
        for cluster in selection:
            parts = parts.merge(cluster.parts)
        if clusters.has_unread_time(selection, parts):
            parts = replace(parts, problem=Problem.VAGUE)
        if clusters.has_second_task(selection, times) or contradict(
            [time.parts for time in times], [time.parts for time in selection]
        ):
            parts = note_several_times(parts, [time.parts for time in times])
        return self._set_in_the_morning(parts)

    def _set_in_the_morning(self, parts: TimeParts) -> TimeParts:
        """Move the hour to the morning, if the request is to wake the person or for an alarm.

        Other requests, and alarms that aren't in the morning, keep their parts.
        """
        numbers = {token.number for token in self._tokens if token.kind in ASKING}
        if parts.part is not None or len(parts.clocks) != 1 or not numbers & {WAKE_UP, ALARM}:
            return parts
        if WAKE_UP in numbers:
            return replace(parts, part=MORNING)
        clock = parts.clocks[0]
        if not clock.is_bare or clock.minute < FIRST_LIKELY_ALARM_HOUR * 60:
            return parts
        assumptions = parts.assumptions | {Assumption.MORNING}
        return replace(parts, part=MORNING, assumptions=assumptions)

    def _names_day_clearly(self, selection: Sequence[Cluster]) -> bool:
        """Return whether the times have a digit, a long word, or a word in another script.

        Short words aren't clear: "do" is also German for Thursday.
        """
        for cluster in selection:
            for token in self._tokens[cluster.start : cluster.end]:
                word = self._text.plain[token.start : token.end]
                if len(word) > MAX_SHORT_WORD or token.is_digits or not word.isascii():
                    return True
        return False

    def _has_other_phrases(self, selection: Sequence[Cluster]) -> bool:
        """Return whether the lexicon knows words of the message outside of the times."""
        time_length = 0
        for cluster in selection:
            time_length += _measure_known(self._tokens[cluster.start : cluster.end])
        return _measure_known(self._tokens) > time_length

    def _known_length(self) -> int:
        """Return how many characters of the message the lexicon knows."""
        return _measure_known(self._tokens)

    def _request_length(self, selection: Sequence[Cluster]) -> int:
        """Return how many characters belong to the request and its times."""
        length = 0
        for token in self._tokens:
            if token.kind in ASKING:
                length += token.end - token.start
        for cluster in selection:
            length += self._tokens[cluster.end - 1].end - self._tokens[cluster.start].start
        return length


def _measure_known(tokens: Sequence[Token]) -> int:
    """Count the characters of the known tokens."""
    return sum(token.end - token.start for token in tokens if token.kind is not Kind.OTHER)


def _finish(
    intent: Intent, language: str, parts: TimeParts, task: str, now: datetime, zone: ZoneInfo
) -> ReminderReading:
    """Return the reading of a request from its parts and its task.

    The time is missing if the parts name none, as in "remind me to call Ana".
    """
    resolution = resolve_rhythms(parts, now, zone)
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
        assumptions=resolution.assumptions,
        parts=parts,
    )
