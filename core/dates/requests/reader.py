"""Reads requests for reminders in everyday words: "don't let me forget to call Ana at 5".

`read_request` decides whether a message is a request at all. It returns the moment or the
recurrences, the task that is left when the words of the request are removed, what is missing, and
what was assumed. `revise_reading` reads an answer or a correction: "no, at 11". Lexicons for ten
languages are in `data/`; see `core.dates.requests.lexicon`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from core.dates.recurrence import next_recurrence
from core.dates.requests import clocks, days, grammar, rhythms
from core.dates.requests.combining import (
    AFTER_MARKERS,
    MARKERS,
    combine,
    conflicts,
    settle_points,
)
from core.dates.requests.grammar import Context, Item, read_items
from core.dates.requests.lexicon import (
    Kind,
    Lexicon,
    Text,
    Token,
    compile_grammar,
    kinds_of,
    load_lexicon,
    plain_text,
    request_languages,
    tokenize_request,
)
from core.dates.requests.parts import (
    Assumption,
    ClockTime,
    Missing,
    Problem,
    TimeParts,
    resolve_parts,
)


class Intent(Enum):
    """What a message wants."""

    SET = "set"
    QUESTION_ABOUT_REMINDERS = "question about reminders"
    # Tells about a reminder, refuses one, or quotes one.
    STORY = "story"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderReading:
    """What a message says about a reminder."""

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
    # Choices that the person must be told.
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
    known = request_languages()
    first = [language for language in preferred if language in known]
    return [
        language
        for language in dict.fromkeys([*first, *known])
        if load_lexicon(language).letters.search(plain)
    ]


# --- Reading in one language ---

_RULES = (grammar.RULES, clocks.RULES, days.RULES, rhythms.RULES)
_GLUE = {
    Kind.COMMA,
    Kind.COLON,
    Kind.AT,
    Kind.AT_OR_TO,
    Kind.ON,
    Kind.THE,
    Kind.AND,
    Kind.OF,
    Kind.FILLER,
    Kind.START_AFTER,
    Kind.IN,
    Kind.OCLOCK,
    Kind.DAY_PREFIX,
}
"""Tokens that may stand between two parts of a time."""
_REMOVABLE = {Kind.COMMA, Kind.COLON, Kind.POLITE, Kind.AND, Kind.TO, Kind.NO, Kind.FILLER}
"""Tokens that don't belong to a task at its ends."""
_ENDS = {Kind.AT, Kind.AT_OR_TO, Kind.ON, Kind.THE, Kind.OF, Kind.IN}
"""Further tokens that don't belong to a task at its end."""
_ASKING = {Kind.REQUEST, Kind.MENTION}
_CONTINUATION = compile_grammar(
    "(?P<mark> (?: comma | and | or | no | at | filler )* (?: comma | and | or | no ) (?: comma |"
    " at | no | filler | on )* ) (?P<hour> number | clock ) (?P<sign> oclock | hour_sign | hour )?"
    "(?P<ampm> ampm )?"
)
"""Another clock time after one: "at 8 and 20", "at 5 or 6", "at 9, no, 10"."""
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}


class _Scored(NamedTuple):
    reading: ReminderReading
    score: tuple[float, ...]


class _Cluster(NamedTuple):
    """Adjacent parts of a time, and what they mean together."""

    start: int
    end: int
    parts: TimeParts


def _overlaps(item: Item, others: Sequence[Item]) -> bool:
    return any(other.start < item.end and other.end > item.start for other in others)


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
        self._tokens = settle_points(
            tokenize_request(text, lexicon), has_dates=lexicon.has_point_dates
        )
        self._context = Context(lexicon, now.astimezone(zone).replace(tzinfo=None))

    def read(self) -> _Scored:
        """Return the reading, and how well the language fits."""
        kinds = {token.kind for token in self._tokens}
        is_candidate = self._is_request or kinds & (_ASKING | {Kind.LIST, Kind.HOW, Kind.BLOCK})
        if not is_candidate:
            return _Scored(ReminderReading(intent=Intent.NONE), (0,))
        clusters = self._clusters()
        intent = self._intent(clusters)
        known = sum(
            token.end - token.start for token in self._tokens if token.kind is not Kind.OTHER
        )
        language = self._lexicon.language
        if intent is not Intent.SET:
            is_known = intent is not Intent.NONE
            return _Scored(ReminderReading(intent=intent, language=language), (is_known, 0, known))
        accepted = self._select(clusters)
        parts = TimeParts()
        for cluster in accepted:
            parts = parts.merge(cluster.parts)
        task = self._task(accepted) or self._wake_up_task()
        if self._wakes_up() and parts.part is None and parts.clocks:
            parts = replace(parts, part=9)
        reading = _finish(intent, language, parts, task, self._now, self._zone)
        covered = sum(
            self._tokens[cluster.end - 1].end - self._tokens[cluster.start].start
            for cluster in accepted
        )
        return _Scored(reading, (2, covered + self._asking_length(), known))

    def _asking_length(self) -> int:
        return sum(token.end - token.start for token in self._tokens if token.kind in _ASKING)

    def _wakes_up(self) -> bool:
        return any(token.kind is Kind.REQUEST and token.number == 1 for token in self._tokens)

    def _wake_up_task(self) -> str:
        """Return the words of a request to wake the person, which need no other task."""
        for token in self._tokens:
            if token.kind is Kind.REQUEST and token.number == 1:
                start, end = self._text.locate(token.start), self._text.locate(token.end)
                return self._text.original[start:end]
        return ""

    # --- Times ---

    def _clusters(self) -> list[_Cluster]:
        """Return the times in the message. Adjacent parts are combined."""
        items = self._continued(read_items(self._tokens, self._context, _RULES))
        clusters: list[_Cluster] = []
        floor = 0
        for item in items:
            marker, start = self._marker_before(item, floor)
            end = floor = item.end
            if end < len(self._tokens) and self._tokens[end].kind in AFTER_MARKERS:
                after = AFTER_MARKERS[self._tokens[end].kind]
                if after is Kind.UNTIL or not item.parts.clocks:
                    marker = after
                end += 1
            last = clusters[-1] if clusters else None
            if last is not None and self._are_adjacent(last.end, start):
                parts = combine(last.parts, item.parts, marker)
                if parts is None and self._are_joined(last.end, start, last.parts, item.parts):
                    # "Tomorrow at 9 then daily": two times without a word between them.
                    parts = replace(last.parts, problem=Problem.SEVERAL_TIMES)
                if parts is not None:
                    clusters[-1] = _Cluster(last.start, end, parts)
                    continue
            parts = combine(TimeParts(), item.parts, marker)
            if parts is not None:
                clusters.append(_Cluster(start, end, parts))
        return clusters

    def _continued(self, items: Sequence[Item]) -> list[Item]:
        """Add further clock times that are bare numbers, such as the 20 of "at 8 and 20"."""
        kinds = kinds_of(self._tokens)
        has_several = any((item.parts.times or 0) > 1 for item in items)
        result: list[Item] = []
        for item in items:
            if result and item.start < result[-1].end:
                continue
            result.append(item)
            while result[-1].parts.clocks:
                further = self._continuation(kinds, result[-1], has_several=has_several)
                if further is None or _overlaps(further, items):
                    break
                result.append(further)
        return result

    def _continuation(self, kinds: str, item: Item, *, has_several: bool) -> Item | None:
        """Return the clock time that continues a list. "Twice a day" announces one."""
        match = _CONTINUATION.match(kinds, item.end)
        if match is None:
            return None
        hour = self._tokens[match.start("hour")]
        minute = hour.number if hour.kind is Kind.CLOCK else hour.number * 60
        following = self._tokens[match.end()].kind if match.end() < len(kinds) else None
        marks = {token.kind for token in self._tokens[item.end : match.start("hour")]}
        is_marked = has_several or marks & {Kind.NO, Kind.OR, Kind.AT}
        may_be_quantity = following is Kind.OTHER and not is_marked
        is_unit = following in (Kind.MINUTE, Kind.UNIT, Kind.HOUR, Kind.MONTH, Kind.TIMES)
        if not 0 <= minute <= 1440 or minute % 1 or is_unit or may_be_quantity:
            return None
        is_bare = hour.kind is Kind.NUMBER and 1 <= hour.number <= 12
        if match.group("ampm"):
            minute = minute % 720 + self._tokens[match.start("ampm")].number * 60
            is_bare = False
        clock = ClockTime(int(minute), is_bare)
        return Item(match.start("hour"), match.end(), TimeParts(clocks=(clock,)))

    def _marker_before(self, item: Item, floor: int) -> tuple[Kind | None, int]:
        """Return the marker before an item, and where the item with its marker begins.

        `floor` is the end of the item before it.
        """
        start = item.start
        while start > floor and self._tokens[start - 1].kind in _GLUE | MARKERS:
            start -= 1
        marked = [token.kind for token in self._tokens[start : item.start] if token.kind in MARKERS]
        if not marked:
            marks = {token.kind for token in self._tokens[start : item.start]}
            listed = Kind.AND if marks & {Kind.AND, Kind.COMMA} else None
            return listed, item.start
        index = next(
            index for index in range(start, item.start) if self._tokens[index].kind in MARKERS
        )
        return marked[-1], index

    def _are_adjacent(self, end: int, start: int) -> bool:
        return all(token.kind in _GLUE for token in self._tokens[end:start])

    def _are_joined(self, end: int, start: int, parts: TimeParts, other: TimeParts) -> bool:
        """Whether two times follow each other without a word that begins the task."""
        is_time = parts.is_time and other.is_time and other.problem is not Problem.VAGUE
        gap = {token.kind for token in self._tokens[end:start]}
        return is_time and gap <= {Kind.COMMA, Kind.AND, Kind.FILLER}

    def _select(self, clusters: Sequence[_Cluster]) -> list[_Cluster]:
        """Return the clusters that belong to the request, and not to its task."""
        ranked = sorted(clusters, key=lambda cluster: (self._rank(cluster), cluster.start))
        accepted: list[_Cluster] = []
        parts = TimeParts()
        for cluster in ranked:
            if accepted and not self._completes(parts, cluster):
                continue
            accepted.append(cluster)
            parts = parts.merge(cluster.parts)
        return sorted(accepted)

    def _rank(self, cluster: _Cluster) -> int:
        """Return how likely a time belongs to the request; less is likelier."""
        if not cluster.parts.is_time and cluster.parts.lead is None:
            return 5
        if cluster.parts.problem is Problem.VAGUE:
            return 4
        before, after = self._neighbour(cluster.start, -1), self._neighbour(cluster.end, 1)
        if before in _ASKING or after in _ASKING:
            return 0
        if before is None:
            return 1
        return 2 if after is None else 3

    def _neighbour(self, index: int, step: int) -> Kind | None:
        """Return the kind of the next token outside of a cluster, or None at the end."""
        skipped = _GLUE | {Kind.POLITE}
        index = index - 1 if step < 0 else index
        while 0 <= index < len(self._tokens):
            token = self._tokens[index]
            if token.kind not in skipped and not self._is_punctuation(token):
                return token.kind
            index += step
        return None

    def _is_punctuation(self, token: Token) -> bool:
        piece = self._text.plain[token.start : token.end]
        return token.kind in (Kind.OTHER, Kind.POINT) and not any(map(str.isalnum, piece))

    def _completes(self, parts: TimeParts, cluster: _Cluster) -> bool:
        """Whether a further time adds to the accepted ones, and doesn't belong to the task."""
        new = cluster.parts
        if new.problem is Problem.VAGUE or conflicts(parts, new):
            return False
        if not new.is_time:
            return True
        before = self._tokens[cluster.start - 1].kind if cluster.start else None
        is_joined = before in (Kind.FOR, Kind.OF, Kind.FROM, Kind.BEFORE)
        if is_joined and (parts.has_clock or parts.offset):
            return False
        if parts.has_clock and parts.has_day:
            return False
        return not parts.offset or not parts.offset.seconds

    # --- Intent ---

    def _intent(self, clusters: Sequence[_Cluster]) -> Intent:
        """Return what the message wants."""
        if self._is_request:
            return Intent.SET
        kinds = {token.kind for token in self._tokens}
        if self._is_blocked() or self._is_about_person(clusters):
            return Intent.STORY
        if kinds & {Kind.LIST, Kind.HOW}:
            return Intent.QUESTION_ABOUT_REMINDERS
        return self._intent_of_requests(clusters)

    def _is_blocked(self) -> bool:
        """Whether words such as "don't remind me", or "translate" before a request, exclude one."""
        for token in self._tokens:
            if token.kind is Kind.BLOCK:
                return True
            if token.kind in _ASKING:
                break
        return any(token.kind is Kind.BLOCK and not token.number for token in self._tokens)

    def _is_about_person(self, clusters: Sequence[_Cluster]) -> bool:
        """Whether the message begins with somebody who reminds, and at most a time follows."""
        if not self._tokens or self._tokens[0].kind is not Kind.PERSON:
            return False
        index = 1
        ends = {cluster.start: cluster.end for cluster in clusters}
        while index < len(self._tokens) and (
            index in ends or self._tokens[index].kind in _GLUE - {Kind.COMMA}
        ):
            index = ends.get(index, index + 1)
        return index < len(self._tokens) and self._tokens[index].kind in _ASKING

    def _intent_of_requests(self, clusters: Sequence[_Cluster]) -> Intent:
        """Return the intent of a message without words that exclude a request."""
        asking = [index for index, token in enumerate(self._tokens) if token.kind in _ASKING]
        requests = [index for index in asking if self._is_asking(index, clusters)]
        if not requests:
            return Intent.STORY if asking else Intent.NONE
        if all(self._is_quoted(self._tokens[index]) for index in requests):
            return Intent.STORY
        has_time = any(cluster.parts.is_time for cluster in clusters)
        if not has_time and any(self._asks_for_knowledge(index) for index in requests):
            return Intent.NONE
        return Intent.SET

    def _is_asking(self, index: int, clusters: Sequence[_Cluster]) -> bool:
        """Whether a token asks for a reminder. A MENTION does so only in some places."""
        if self._tokens[index].kind is Kind.REQUEST:
            return True
        if any(token.kind is Kind.TOLD for token in self._tokens):
            return False
        before, after = self._neighbour(index, -1), self._neighbour(index + 1, 1)
        follows_time = any(self._neighbour(c.end, 1) is Kind.MENTION for c in clusters)
        begins = before is None or before in _ASKING or self._follows_break(index)
        ends = after is None
        has_time = any(cluster.parts.is_time for cluster in clusters)
        return begins or follows_time or (ends and has_time)

    def _follows_break(self, index: int) -> bool:
        """Whether a comma, a colon or another punctuation mark precedes the token."""
        while index > 0 and self._tokens[index - 1].kind is Kind.POLITE:
            index -= 1
        if index == 0:
            return True
        token = self._tokens[index - 1]
        return token.kind in (Kind.COMMA, Kind.COLON) or self._is_punctuation(token)

    def _asks_for_knowledge(self, index: int) -> bool:
        """Whether a question follows the request: "remind me, who wrote Dune?"."""
        if self._lexicon.has_free_questions:
            return any(token.kind is Kind.QUESTION for token in self._tokens)
        return self._neighbour(index + 1, 1) is Kind.QUESTION

    def _is_quoted(self, token: Token) -> bool:
        plain = self._text.plain
        for opening, closing in _QUOTES.items():
            begin = plain.rfind(opening, 0, token.start)
            end = plain.find(closing, token.end)
            between = plain[begin + 1 : token.start] if begin >= 0 else ""
            if begin >= 0 and end >= 0 and closing not in between and begin > 0:
                return opening != closing or plain.count(opening, 0, token.start) % 2 == 1
        return False

    # --- The task ---

    def _task(self, accepted: Sequence[_Cluster]) -> str:
        """Return the message without the words of the request and the accepted times."""
        has_request = any(token.kind is Kind.REQUEST for token in self._tokens)
        # With a request, a word such as "reminder" belongs to the task.
        asking = {Kind.REQUEST} if has_request else _ASKING
        is_removed = [token.kind in asking for token in self._tokens]
        for cluster in accepted:
            for index in range(cluster.start, cluster.end):
                is_removed[index] = True
            if cluster.start and self._tokens[cluster.start - 1].kind is Kind.FOR:
                is_removed[cluster.start - 1] = True
        pieces: list[list[Token]] = [[]]
        for token, removed in zip(self._tokens, is_removed, strict=True):
            if removed:
                pieces.append([])
            else:
                pieces[-1].append(token)
        texts: list[str] = []
        for piece in pieces:
            # "about" belongs to the task in "call Ana tomorrow about the flat".
            text = self._piece_text(piece)
            if text and not texts:
                text = _trim_task(text, self._lexicon)
            if text:
                texts.append(text)
        joined = ("" if self._lexicon.is_unspaced else " ").join(filter(None, texts))
        return _trim_task(joined, self._lexicon)

    def _piece_text(self, piece: list[Token]) -> str:
        """Return the text of adjacent tokens, without politeness and punctuation at the ends."""
        while piece and (self._is_removable(piece[0], _REMOVABLE) or self._is_mark(piece[0])):
            piece = piece[1:]
        ends = _REMOVABLE | _ENDS
        while piece and (self._is_removable(piece[-1], ends) or self._is_mark(piece[-1])):
            piece = piece[:-1]
        if not piece:
            return ""
        start = self._text.locate(piece[0].start)
        end = self._text.locate(piece[-1].end - 1) + 1
        return self._text.original[start:end]

    def _is_removable(self, token: Token, kinds: set[Kind]) -> bool:
        """Whether a token of one of the kinds isn't only a part of a word."""
        if token.kind not in kinds:
            return False
        plain = self._text.plain
        joins_next = token.end < len(plain) and plain[token.end].isalnum()
        return self._lexicon.is_unspaced or not (joins_next and plain[token.end - 1].isalnum())

    def _is_mark(self, token: Token) -> bool:
        return self._text.plain[token.start : token.end] in _END_MARKS


_END_MARKS = frozenset(".,;:!?¿¡-–—…。！？；\n\"'“”()")


def _trim_task(text: str, lexicon: Lexicon) -> str:
    """Return a task without words such as "to" and "about" at its ends."""
    text = " ".join(text.split()).strip(" ,;:-–—")
    for _ in range(3):
        plain = plain_text(text)
        for word in lexicon.task_starts:
            if plain.plain.startswith(word) and _is_word_end(plain.plain, len(word), lexicon):
                text = text[plain.locate(len(word)) :].lstrip(" ,:")
                break
        else:
            break
    for _ in range(3):
        plain = plain_text(text)
        for word in lexicon.task_ends:
            begin = len(plain.plain) - len(word)
            is_word = lexicon.is_unspaced or begin <= 0 or not plain.plain[begin - 1].isalnum()
            if plain.plain.endswith(word) and is_word:
                text = text[: plain.locate(begin)].rstrip(" ,:")
                break
        else:
            break
    for ending, replacement in lexicon.task_endings:
        if text.endswith(ending):
            return text.removesuffix(ending) + replacement
    return text


def _is_word_end(plain: str, end: int, lexicon: Lexicon) -> bool:
    if lexicon.is_unspaced or end >= len(plain) or not plain[end - 1].isalnum():
        return True
    return not plain[end].isalnum()


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
