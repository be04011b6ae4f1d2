"""Find the times in a message, and choose those that belong to the request.

A cluster is a sequence of adjacent parts of a time, such as "tomorrow" and "at 9". In "remind me at
3pm about the 4pm meeting", the first cluster belongs to the request and the second one to the task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from core.dates.requests import clocks, days, grammar, rhythms
from core.dates.requests.combining import (
    AFTER_MARKERS,
    MARKERS,
    combine,
    combine_further,
    conflicts,
    note_several_times,
)
from core.dates.requests.grammar import SPAN, TIMER_LENGTH, Context, TimeItem, read_span
from core.dates.requests.halves import ClockTime
from core.dates.requests.parts import Problem, TimeParts
from core.dates.requests.sentence import ALARM, ASKING, GLUE, Cluster, Sentence
from core.dates.tokens import Kind, Token, compile_grammar, kinds_of, read_items

_RULES = (grammar.RULES, clocks.RULES, days.RULES, rhythms.RULES)
_CONTINUATION = compile_grammar(
    """
    (?P<mark> (?: comma | and | or | no | at | filler | to (?= no ) )*
        (?: comma | and | or | no ) (?: comma | at | no | filler | on )* )
    (?P<hour> number | clock ) (?P<sign> oclock | hour_sign | hour )? (?P<ampm> ampm )?
    """
)
"""Another clock time in a list: "at 8 and 20", "at 5 or 6", "at 9, no, 10"."""
_UNREAD_WORDS = {Kind.OTHER, Kind.OF, Kind.THE, Kind.UNIT, Kind.ONE, Kind.PER, Kind.FILLER}
MAX_HOUR = 24
MAX_UNREAD_WORDS = 6
"""At most this many words after "on" may name a day that isn't in the lexicon."""
_GLUE_WORDS = {Kind.AT, Kind.AT_OR_TO, Kind.ON, Kind.THE, Kind.OF, Kind.FROM, Kind.FILLER}
_LENGTHS = [
    [count, unit]
    for count in (Kind.NUMBER, Kind.ONE)
    for unit in (Kind.UNIT, Kind.HOUR, Kind.MINUTE)
]
_MARKED_DAY = "(?: month_day | ordinal | number (?: day_sign | point )+ )"
_TWO_DAYS = compile_grammar(
    f"(?: {_MARKED_DAY} | number ) (?: comma | the | on )* and (?: the | on | day_prefix )*"
    f"(?P<other> {_MARKED_DAY}"
    " | number (?= at | at_or_to | clock | part | comma | of | from | month | $ ) )"
)
"""Two days of a month: "the 1st and 15th", Portuguese "1 e 15"."""
_LIST_SIGNS = (Kind.COMMA, Kind.AND)
_LIST_MARKS = (Kind.NO, Kind.OR, Kind.AT)
_QUANTITY_UNITS = (Kind.MINUTE, Kind.UNIT, Kind.HOUR, Kind.MONTH, Kind.TIMES)
_LEAD_KINDS = {Kind.BEFORE, Kind.TO_HOUR}
_AFTER_CLOCK = (Kind.LATER, Kind.VAGUE)
_LIMITS = compile_grammar(
    "(?P<limit> after | past | later | before | between ) (?: of | the | at | at_or_to )*"
    "(?P<hour> number | clock ) | (?P<open> number | clock ) start_after"
)
"""A limit of a time that no rule reads, such as the "before 11" of "before 11 tonight"."""
_LENGTH = compile_grammar(SPAN)
_TIMER_LENGTH = compile_grammar(TIMER_LENGTH)
_TIME_WORDS = {
    *(Kind.UNIT, Kind.MONTH, Kind.RELATIVE, Kind.FEAST, Kind.WEEKDAY, Kind.NUMBER, Kind.PART),
    *(Kind.MONTH_EDGE, Kind.EDGE_OF, Kind.CLOCK, Kind.DATE, Kind.YEAR, Kind.VAGUE, Kind.MONTH_DAY),
}
"""Tokens that mean a time after "until"."""
_RHYTHM_WORDS = {
    *(_TIME_WORDS | {Kind.DAY_PREFIX, Kind.DAY_GROUP, Kind.SPAN, Kind.HOUR, Kind.MINUTE}),
    *(Kind.ORDINAL, Kind.OTHER_EVERY, Kind.WEEKDAYS),
}
"""Tokens that mean a rhythm after "every"."""


class _MarkedItem(NamedTuple):
    """A time, and the marker that changes its role, such as UNTIL in "until Friday"."""

    start: int
    end: int
    parts: TimeParts
    marker: Kind | None
    # Whether the message rejects the time: "not at 10".
    is_denied: bool = False


class ClusterReader:
    """Finds the times in a message, and chooses those that belong to the request."""

    def __init__(self, sentence: Sentence, context: Context) -> None:
        self._sentence = sentence
        self._tokens = sentence.tokens
        self._lexicon = sentence.lexicon
        self._context = context

    def find_clusters(self) -> list[Cluster]:
        """Return the times in the message, with adjacent parts combined."""
        items = read_items(self._tokens, self._context, _RULES)
        items = self._add_continuations(items)
        has_rhythm = any(item.parts.repeat for item in items)
        clusters: list[Cluster] = []
        floor = 0
        for item in items:
            marked_item = self._mark_item(item, floor, has_rhythm=has_rhythm)
            floor = item.end
            longer_cluster = self._join(clusters[-1], marked_item) if clusters else None
            if longer_cluster is not None:
                clusters[-1] = longer_cluster
                continue
            parts = combine(TimeParts(), marked_item.parts, marked_item.marker)
            if marked_item.is_denied and parts is not None:
                # "Not at 10 but at 9".
                parts = replace(parts, problem=Problem.SEVERAL_TIMES)
            if parts is not None:
                clusters.append(Cluster(marked_item.start, marked_item.end, parts))
        return [cluster for cluster in clusters if not self._is_month_of_task(cluster)]

    def _is_month_of_task(self, cluster: Cluster) -> bool:
        """Return whether a month belongs to the task: "book the hotel in May".

        The month belongs to the task if no other part of a time and no word of the request is next
        to it.
        """
        kinds = {token.kind for token in self._tokens[cluster.start : cluster.end]}
        if cluster.parts.names() != {"month_offset"} or not kinds & {Kind.MONTH, Kind.MONTH_SIGN}:
            return False
        before = self._sentence.neighbour(cluster.start, -1)
        return Kind.REQUEST not in (before, self._sentence.neighbour(cluster.end, 1))

    def _mark_item(self, item: TimeItem, floor: int, *, has_rhythm: bool) -> _MarkedItem:
        """Return a time with the marker before or after it, such as "until"."""
        marker, start = self._marker_before(item, floor)
        if marker is Kind.NO and self._denies(start, item.start):
            return _MarkedItem(start, item.end, item.parts, marker, is_denied=True)
        after = self._marker_after(item, has_rhythm=has_rhythm)
        if after is None:
            return _MarkedItem(start, item.end, item.parts, marker)
        if after is Kind.BEFORE:
            # "Before 6" names no moment. In some languages, "before" follows the clock time.
            parts = replace(item.parts, problem=Problem.VAGUE)
            return _MarkedItem(start, item.end + 1, parts, marker)
        if after is Kind.UNTIL or not item.parts.clocks:
            marker = after
        return _MarkedItem(start, item.end + 1, item.parts, marker)

    def _join(self, last: Cluster, item: _MarkedItem) -> Cluster | None:
        """Return a cluster extended by an item, or None if the item begins another cluster."""
        start = item.start
        if item.marker is Kind.NO and self._tokens[start - 1].kind is Kind.TO:
            start -= 1  # the dash of "at 9 — wait, make that 10"
        if not self._are_adjacent(last.end, start):
            return None
        if item.is_denied:
            return last._replace(end=item.end)
        parts = combine_further(last.parts, item.parts, item.marker)
        if parts is None and self._are_joined(last.end, item.start, last.parts, item.parts):
            # "Tomorrow at 9 then daily": two times that can't be combined into one.
            parts = note_several_times(last.parts, [last.parts, item.parts])
        return Cluster(last.start, item.end, parts) if parts is not None else None

    def _denies(self, start: int, end: int) -> bool:
        """Return whether the words before a time reject it: "not 10", but not "no, 10"."""
        tokens = self._tokens[start:end]
        if any(token.kind is Kind.COMMA for token in tokens):
            return False
        plain = self._sentence.text.plain
        words = (
            plain[token.start : token.end].split() for token in tokens if token.kind is Kind.NO
        )
        return any(not self._lexicon.task_negations.isdisjoint(word) for word in words)

    def _add_continuations(self, items: Sequence[TimeItem]) -> list[TimeItem]:
        """Add clock times that are bare numbers in a list, such as the 20 of "at 8 and 20"."""
        kinds = kinds_of(self._tokens)
        has_several = any((item.parts.times or 0) > 1 for item in items)
        has_day = any(item.parts.has_day for item in items)
        result: list[TimeItem] = []
        for item in items:
            if result and item.start < result[-1].end:
                continue
            result.append(item)
            while result[-1].parts.clocks:
                further = self._continuation(
                    kinds, result[-1], has_several=has_several, has_day=has_day
                )
                if further is None or _overlaps(further, items):
                    break
                result.append(further)
        return result

    def _continuation(
        self, kinds: str, item: TimeItem, *, has_several: bool, has_day: bool
    ) -> TimeItem | None:
        """Return the clock time that continues a list, if there is one.

        A list of clock times is also expected after "twice a day".
        """
        match = _CONTINUATION.match(kinds, item.end)
        if match is None:
            return None
        hour = self._tokens[match.start("hour")]
        minute = hour.number if hour.kind is Kind.CLOCK else hour.number * 60
        following = self._tokens[match.end()].kind if match.end() < len(kinds) else None
        if not 0 <= minute <= 1440 or minute % 1 or following in _QUANTITY_UNITS:
            return None
        marks = {token.kind for token in self._tokens[item.end : match.start("hour")]}
        # "Every day at 9 and 21 take pills": 21 pills are less likely.
        is_afternoon = has_day and 12 < hour.number <= 24 and Kind.AND in marks
        is_marked = has_several or is_afternoon or not marks.isdisjoint(_LIST_MARKS)
        if following is Kind.OTHER and not is_marked:
            return None
        clock = self._listed_clock(match, hour, int(minute))
        return TimeItem(match.start("hour"), match.end(), TimeParts(clocks=(clock,)))

    def _listed_clock(self, match: re.Match[str], hour: Token, minute: int) -> ClockTime:
        """Return a clock time of a list with its "am" or "pm", if it has one."""
        if match.group("ampm"):
            half = self._tokens[match.start("ampm")]
            return ClockTime(minute % 720 + int(half.number) * 60)
        return ClockTime(minute, is_bare=hour.kind is Kind.NUMBER and 1 <= hour.number <= 12)

    def _marker_before(self, item: TimeItem, floor: int) -> tuple[Kind | None, int]:
        """Return the marker before an item, and the position where the item with its marker begins.

        `floor` is the end of the previous item.
        """
        start = item.start
        while start > floor and self._tokens[start - 1].kind in GLUE | MARKERS:
            start -= 1
        kinds = [token.kind for token in self._tokens[start : item.start]]
        markers = [kind for kind in kinds if kind in MARKERS]
        if not markers:
            is_list = Kind.AND in kinds or Kind.COMMA in kinds
            return Kind.AND if is_list else None, item.start
        while self._tokens[start].kind not in MARKERS:
            start += 1
        return markers[-1], start

    def _marker_after(self, item: TimeItem, *, has_rhythm: bool) -> Kind | None:
        """Return the marker after an item, which changes its role, or None."""
        following = [token.kind for token in self._tokens[item.end : item.end + 2]]
        if not following:
            return None
        is_end = has_rhythm and item.parts.days and following[0] is Kind.BEFORE
        if is_end and Kind.NUMBER not in following:
            return Kind.UNTIL  # Chinese "圣诞节之前每周日": every Sunday before Christmas
        if item.parts.clocks and following[0] in _AFTER_CLOCK and self._ends_with_clock(item):
            return Kind.START  # Turkish "10'dan sonra": after 10
        is_before = following[0] is Kind.BEFORE and self._lexicon.has_postpositions
        is_before = is_before and Kind.NUMBER not in following  # Chinese "18点前15分钟"
        if is_before and item.parts.clocks and item.parts.lead is None:
            return Kind.BEFORE
        return AFTER_MARKERS.get(following[0])

    def _ends_with_clock(self, item: TimeItem) -> bool:
        """Return whether the last token of a clock time isn't a word such as "in the evening"."""
        return self._tokens[item.end - 1].kind not in (Kind.PART, Kind.PAST_OR_PART)

    def _are_adjacent(self, end: int, start: int) -> bool:
        return all(token.kind in GLUE for token in self._tokens[end:start])

    def _are_joined(self, end: int, start: int, parts: TimeParts, other: TimeParts) -> bool:
        """Return whether no word between two times begins the task."""
        is_time = parts.is_time and other.is_time and other.problem is not Problem.VAGUE
        gap = {token.kind for token in self._tokens[end:start]}
        return is_time and gap <= {Kind.COMMA, Kind.AND, Kind.FILLER}

    def select_clusters(self, clusters: Sequence[Cluster]) -> list[Cluster]:
        """Return the clusters that belong to the request, not to its task."""
        by_rank = sorted(clusters, key=lambda cluster: (self._rank(cluster), cluster.start))
        selection: list[Cluster] = []
        parts = TimeParts()
        for cluster in by_rank:
            if _is_day_of_lead(parts, cluster.parts):
                # "Dentist on 3 May at 9, remind me the day before at 6": 9 isn't the hour.
                cluster = cluster._replace(parts=replace(cluster.parts, clocks=(), part=None))
            if selection and not self._completes(parts, cluster):
                continue
            selection.append(cluster)
            parts = parts.merge(cluster.parts)
        if not parts.is_time:
            selection += self._read_length(selection)
        return sorted(selection, key=lambda cluster: cluster.start)

    def _read_length(self, selection: Sequence[Cluster]) -> list[Cluster]:
        """Read the length in "a timer of 10 minutes" or "20 min tea" as a time from now."""
        is_timer = any(token.kind in ASKING and token.number == ALARM for token in self._tokens)
        kinds = kinds_of(self._tokens)
        match = _TIMER_LENGTH.search(kinds) if is_timer else _LENGTH.match(kinds)
        if match is None or any(cluster.parts.lead for cluster in selection):
            return []
        start, end = match.span()
        span = read_span(self._tokens[start:end])
        return [Cluster(start, end, TimeParts(offset=span))] if span.seconds else []

    def _rank(self, cluster: Cluster) -> int:
        """Rank a time. The lower the rank, the more likely the time belongs to the request."""
        if _has_day_lead(cluster.parts) and cluster.parts.clocks:
            return -1
        is_vague = cluster.parts.problem is Problem.VAGUE
        if not cluster.parts.is_time and cluster.parts.lead is None:
            return 5
        if self._is_attribute(cluster) or is_vague:
            return 4
        before = self._sentence.neighbour(cluster.start, -1)
        after = self._sentence.neighbour(cluster.end, 1)
        # A time next to the request is the likeliest, then one at the beginning or the end.
        if before in ASKING or after in ASKING:
            return 0
        if before is None:
            return 1
        return 2 if after is None else 3

    def _is_attribute(self, cluster: Cluster) -> bool:
        """Return whether a feast describes the next word, as in "Thanksgiving turkey"."""
        kinds = {token.kind for token in self._tokens[cluster.start : cluster.end]}
        following = self._tokens[cluster.end : cluster.end + 1]
        is_alone = Kind.FEAST in kinds and kinds <= {Kind.FEAST, Kind.THE, Kind.AT}
        if not is_alone or not following or self._lexicon.is_unspaced:
            return False
        return following[0].kind is Kind.OTHER and not self._sentence.is_punctuation(following[0])

    def _completes(self, parts: TimeParts, cluster: Cluster) -> bool:
        """Return whether a time completes the accepted ones and doesn't belong to the task."""
        new = cluster.parts
        if new.problem is Problem.VAGUE_DAY:
            return not parts.has_day
        if new.problem is Problem.VAGUE or conflicts(parts, new):
            return False
        if not new.is_time:
            return True
        if self._is_attribute(cluster) and parts.has_day:
            return False
        before = self._tokens[cluster.start - 1].kind if cluster.start else None
        is_joined = before in (Kind.FOR, Kind.OF, Kind.FROM, Kind.BEFORE)
        if is_joined and (parts.has_clock or parts.offset):
            return False
        if parts.has_clock and parts.has_day:
            return False
        return not parts.offset or not parts.offset.seconds

    def has_unread_time(self, selection: Sequence[Cluster], parts: TimeParts) -> bool:
        """Return whether the message has a time that wasn't understood.

        Examples are the end of "every day until the children are back", the feast of "on midsummer
        at 9" and the day of "on my day off at 9".
        """
        used_indexes: set[int] = set()
        for cluster in selection:
            used_indexes.update(range(cluster.start, cluster.end))
        if self._has_unread_part(parts, used_indexes):
            return True
        if self._has_unread_words_before_task(selection) or self._replaces_day(parts):
            return True
        if not parts.has_clock and self._has_unread_limit(used_indexes):
            return True
        for cluster in selection:
            if self._precedes_unread_choice(cluster):
                return True
            if self._follows_unread_words(cluster, used_indexes):
                return True
        return False

    def _has_unread_part(self, parts: TimeParts, used_indexes: set[int]) -> bool:
        """Return whether an end, a rhythm, "the day before" or one of two days isn't used."""
        if parts.repeat is not None and self._has_unread_end(used_indexes):
            return True
        if parts.is_time and self._has_unread_rhythm(used_indexes):
            return True
        if parts.is_time and self._has_unread_lead(used_indexes):
            return True
        return parts.has_day and self._has_unread_day(used_indexes)

    def _replaces_day(self, parts: TimeParts) -> bool:
        """Return whether words replace the named day: "next Tuesday, no, the one after"."""
        other_day = self._lexicon.other_day
        if other_day is None or not parts.has_day:
            return False
        return other_day.search(self._sentence.text.plain) is not None

    def has_second_task(self, selection: Sequence[Cluster], times: Sequence[Cluster]) -> bool:
        """Return whether another clock time belongs to a second task.

        Examples are "call at 10, eat at 12" and "at 10 call, at 12 eat". In "at 3 about the 4 pm
        meeting", the other time only describes the task.
        """
        chosen = [cluster for cluster in selection if cluster.parts.clocks]
        others = [time for time in times if time.parts.clocks and time not in chosen]
        return bool(chosen) and any(
            self._ends_first_task(other, chosen[0]) or self._begins_last_task(chosen[-1], other)
            for other in others
        )

    def _ends_first_task(self, other: Cluster, chosen: Cluster) -> bool:
        """Return whether `other` ends the first of two tasks, and `chosen` the second one."""
        is_last = other.end < chosen.start and chosen.end == len(self._tokens)
        return (
            is_last
            and self._tokens[other.end].kind in _LIST_SIGNS
            and self._is_clause(other.end, chosen.start)
        )

    def _begins_last_task(self, chosen: Cluster, other: Cluster) -> bool:
        """Return whether `other` begins the second of two tasks, after `chosen`."""
        is_inside = chosen.end < other.start and other.end < len(self._tokens)
        return (
            is_inside
            and self._tokens[other.start - 1].kind in _LIST_SIGNS
            and self._is_clause(chosen.end, other.start)
        )

    def _is_clause(self, start: int, end: int) -> bool:
        """Return whether words of a task are between two positions."""
        tokens = self._tokens[start:end]
        return any(
            token.kind is Kind.OTHER for token in tokens if not self._sentence.is_punctuation(token)
        )

    def _has_unread_end(self, used_indexes: set[int]) -> bool:
        """Return whether an "until" with a time, or an "except", isn't used by the time."""
        for index, token in enumerate(self._tokens):
            is_next_to_time = bool({index - 1, index + 2} & used_indexes)
            if token.kind is Kind.EXCEPT and index not in used_indexes and is_next_to_time:
                return True
            if token.kind is Kind.UNTIL_AFTER and index not in used_indexes:
                before = range(max(index - 2, 0), index)
                if not used_indexes.isdisjoint(before):
                    return True
            if token.kind is Kind.UNTIL and index not in used_indexes:
                following = self._tokens[index + 1 : index + 5]
                return any(other.kind in _TIME_WORDS for other in following)
        return False

    def _has_unread_rhythm(self, used_indexes: set[int]) -> bool:
        """Return whether words for a time follow an unused "every" or "daily"."""
        for index, token in enumerate(self._tokens):
            if index in used_indexes:
                continue
            if token.kind is Kind.REPEAT and index + 1 < len(self._tokens):
                # "Every day, three times" that the accepted time leaves out.
                following = self._tokens[index + 1 : index + 3]
                if any(other.kind in (Kind.TIMES, Kind.TIMES_COUNT) for other in following):
                    return True
            if token.kind is Kind.EVERY:
                following = self._tokens[index + 1 : index + 3]
                if any(other.kind in _RHYTHM_WORDS for other in following):
                    return True
        return False

    def _has_unread_lead(self, used_indexes: set[int]) -> bool:
        """Return whether "the day before" isn't used: "the day before my exam at 9"."""
        for index, (left, right) in enumerate(pairwise(self._tokens)):
            kinds = {left.kind, right.kind}
            if index not in used_indexes and kinds & _LEAD_KINDS and kinds & {Kind.UNIT, Kind.SPAN}:
                return True
        return False

    def _has_unread_day(self, used_indexes: set[int]) -> bool:
        """Return whether only one of two days is used: Portuguese "dia 1 e 15"."""
        return any(
            (match.start() in used_indexes) != (match.start("other") in used_indexes)
            for match in _TWO_DAYS.finditer(kinds_of(self._tokens))
        )

    def _has_unread_limit(self, used_indexes: set[int]) -> bool:
        """Return whether words such as "before 11" are next to a time or to the request."""
        for match in _LIMITS.finditer(kinds_of(self._tokens)):
            start, end = match.span()
            hour = self._tokens[match.start("hour" if match["hour"] else "open")]
            if hour.kind is Kind.NUMBER and not 0 < hour.number <= MAX_HOUR:
                continue
            is_unread = not used_indexes.intersection(range(start, end))
            if start and self._tokens[start - 1].kind is Kind.COMMA:
                start -= 1
            is_next_to_time = start - 1 in used_indexes or end in used_indexes
            follows_request = start > 0 and self._tokens[start - 1].kind is Kind.REQUEST
            if is_unread and (is_next_to_time or follows_request):
                return True
        return False

    def _precedes_unread_choice(self, cluster: Cluster) -> bool:
        """Return whether "or" and words for a time follow: "tomorrow or the day after"."""
        following = [token.kind for token in self._tokens[cluster.end : cluster.end + 3]]
        return following[:1] == [Kind.OR] and any(kind in _TIME_WORDS for kind in following[1:])

    def _has_unread_words_before_task(self, selection: Sequence[Cluster]) -> bool:
        """Return whether unknown words between the request and the time may belong to the time.

        In "remind me the next full moon at 9 to go out", the task follows the time, so "full moon"
        may be a day.
        """
        for cluster in selection:
            start = cluster.start
            while start and self._tokens[start - 1].kind in _UNREAD_WORDS | {Kind.NEXT, Kind.LAST}:
                start -= 1
            is_after_request = start > 0 and self._tokens[start - 1].kind is Kind.REQUEST
            words = self._tokens[start : cluster.start]
            is_long = any(self._is_unread(token) for token in words)
            if is_after_request and is_long and self._begins_task(cluster.end):
                return not self._begins_task(start)
        return False

    def _is_unread(self, token: Token) -> bool:
        """Return whether a word is neither in the lexicon nor a given name."""
        word = self._sentence.text.plain[token.start : token.end].strip()
        return token.kind is Kind.OTHER and word not in self._lexicon.names

    def _begins_task(self, index: int) -> bool:
        """Return whether a token is a word such as "to" or "about"."""
        if index >= len(self._tokens) or self._lexicon.is_unspaced:
            return False
        start = self._tokens[index].start
        plain = self._sentence.text.plain
        return any(plain.startswith(f"{word} ", start) for word in self._lexicon.task_starts)

    def _follows_unread_words(self, cluster: Cluster, used_indexes: set[int]) -> bool:
        """Return whether words that may belong to a time come directly before it.

        Such words are a length, a number such as "second" before a weekday, and "on" with other
        words.
        """
        start = cluster.start
        while (
            start and start - 1 not in used_indexes and self._tokens[start - 1].kind in _GLUE_WORDS
        ):
            start -= 1
        is_unread = start > 0 and start - 1 not in used_indexes
        if is_unread and cluster.parts.weekdays and self._tokens[start - 1].kind is Kind.ORDINAL:
            return True  # "The second Tuesday" of a month that isn't in the lexicon.
        before = [token.kind for token in self._tokens[max(start - 2, 0) : start]]
        if before in _LENGTHS and start - 1 not in used_indexes:
            return True
        is_clock_alone = bool(cluster.parts.clocks) and not cluster.parts.has_day
        return is_clock_alone and self._follows_unread_day(start, used_indexes)

    def _follows_unread_day(self, start: int, used_indexes: set[int]) -> bool:
        """Return whether words for a day that isn't in the lexicon come before a token.

        Such a day begins with "on", or with "in" and a number.
        """
        for index in range(start - 1, max(start - MAX_UNREAD_WORDS, 0), -1):
            token = self._tokens[index]
            if index in used_indexes:
                return False
            if token.kind is Kind.ON and token.number == 1:
                return self._sentence.neighbour(index, -1) in ASKING and index < start - 1
            if token.kind is Kind.IN and self._tokens[index + 1].kind is Kind.NUMBER:
                return self._sentence.neighbour(index, -1) in ASKING
            if token.kind not in _UNREAD_WORDS | {Kind.NUMBER}:
                return False
        return False


def _is_day_of_lead(parts: TimeParts, other: TimeParts) -> bool:
    """Return whether `other` names the day of "the day before at 6pm"."""
    is_incomplete = bool(parts.clocks) and not parts.has_day
    return _has_day_lead(parts) and is_incomplete and other.has_day


def _has_day_lead(parts: TimeParts) -> bool:
    """Return whether the parts are at least a day before another moment."""
    return parts.lead is not None and bool(parts.lead.days or parts.lead.months)


def _overlaps(item: TimeItem, others: Sequence[TimeItem]) -> bool:
    return any(other.start < item.end and other.end > item.start for other in others)
