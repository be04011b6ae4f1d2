"""Combine adjacent parts of a time: "every day" and "at 9", "at 9" and "no, 10"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from core.dates import forms
from core.dates.lexicon import Lexicon
from core.dates.requests.halves import (
    EVENING,
    FIRST_MORNING_HOUR,
    ClockTime,
    clock_in_part,
)
from core.dates.requests.parts import (
    Missing,
    Problem,
    Repeat,
    Resolution,
    TimeParts,
    resolve_parts,
)
from core.dates.tokenizer import Text
from core.dates.tokens import Kind, Token, Unit

MARKERS = {Kind.UNTIL, Kind.START, Kind.EXCEPT, Kind.NO, Kind.OR, Kind.BEFORE}
"""Tokens such as "until" that change the role of the time next to them."""
AFTER_MARKERS = {
    Kind.UNTIL_AFTER: Kind.UNTIL,
    Kind.START_AFTER: Kind.START,
    Kind.EXCEPT_AFTER: Kind.EXCEPT,
}
NOON = 12
_RHYTHM_DAYS = {Unit.DAY: 1, Unit.WEEK: 7, Unit.MONTH: 31, Unit.YEAR: 366}
_SLOTS = ("days", "weekdays", "month_days", "clocks", "offset", "repeat", "window", "nths", "part")


def conflicts(parts: TimeParts, other: TimeParts) -> bool:
    """Return whether two times name the same part, or days that exclude each other."""
    both = parts.names() & other.names() & set(_SLOTS)
    if any(getattr(parts, name) != getattr(other, name) for name in both):
        return True
    if _name_different_days(parts, other) or _name_different_days(other, parts):
        return True
    is_day, other_is_day = (
        bool(parts.days or parts.month_days),
        bool(other.days or other.month_days),
    )
    return (is_day and bool(other.offset)) or (other_is_day and bool(parts.offset))


def _name_different_days(parts: TimeParts, other: TimeParts) -> bool:
    """Return whether a date isn't on the named day of the month: "the 1st and 15 December"."""
    days = {day.day for day in parts.days}
    return bool(days and other.month_days) and not days & set(other.month_days)


def contradict(times: Sequence[TimeParts], selection: Sequence[TimeParts]) -> bool:
    """Return whether a request has two times of day that exclude each other.

    In "tomorrow morning to call Ana at 15:00", either of them may be when the request is due.
    `times` are all times of the message, and `selection` are the accepted ones.
    """
    day_parts = [parts.part for parts in selection if parts.part is not None and not parts.clocks]
    clocks = [clock for parts in selection for clock in parts.clocks]
    if day_parts and not clocks:
        return any(parts.clocks for parts in times)
    return any(_excludes(part, clock) for part in day_parts for clock in clocks)


def _excludes(part: int, clock: ClockTime) -> bool:
    """Return whether a part of the day excludes a clock time that isn't bare."""
    if clock.is_bare:
        return False
    if part < NOON:
        return clock.minute >= NOON * 60
    if part < EVENING:
        return part > NOON and clock.minute < NOON * 60
    return not clock.is_written and FIRST_MORNING_HOUR * 60 <= clock.minute < NOON * 60


def combine(parts: TimeParts, item: TimeParts, marker: Kind | None) -> TimeParts | None:
    """Combine the parts with an item. Returns None if the item begins another time."""
    if marker in MARKERS:
        return _combine_marked(parts, item, marker)
    if parts.until is not None and not parts.until.clocks and item.clocks and parts.clocks:
        return replace(parts, until=parts.until.merge(item))
    if item.problem is Problem.VAGUE and parts.is_time:
        return None
    if parts.problem is Problem.VAGUE and item.is_time:
        parts = replace(parts, problem=None)
    is_listed = marker is Kind.AND and item.names() <= {"clocks", "part", "times"}
    return _join_parts(parts, item, is_listed=is_listed)


def combine_further(parts: TimeParts, item: TimeParts, marker: Kind | None) -> TimeParts | None:
    """Combine the parts with an item, which may begin another rhythm or complete it.

    "Every Monday at 9 and every Tuesday at 10" has two rhythms. Returns None if the item begins
    another time.
    """
    *others, last = (replace(parts, also=()), *parts.also)
    combined = combine(last, item, marker)
    if combined is not None:
        rhythms = (*others, combined)
    elif marker is Kind.AND and item.repeat and all(map(_is_whole_rhythm, (*others, last))):
        rhythms = (*others, last, item)
    else:
        return None
    return replace(rhythms[0], also=rhythms[1:])


def _is_whole_rhythm(parts: TimeParts) -> bool:
    """Return whether the parts are days that recur and a clock time, and nothing else."""
    allowed = {"repeat", "weekdays", "month_days", "nths", "clocks", "part", "assumptions"}
    return bool(parts.repeat and parts.clocks) and parts.names() <= allowed


def revise_rhythms(parts: TimeParts, answer: TimeParts) -> TimeParts:
    """Apply a correction to the rhythm that it names by its days, or by its clock time.

    A correction such as "no, at 11" names none. It's kept until an answer names one. If the person
    repeats it, all rhythms change. An answer with days and a clock time replaces all rhythms.
    """
    if answer.repeat is not None and answer.has_clock:
        return answer
    correction = parts.correction
    rhythms = [replace(parts, also=(), correction=None, problem=None), *parts.also]
    if correction is None:
        return replace(parts, correction=answer, problem=Problem.SEVERAL_TIMES)
    named = [rhythm for rhythm in rhythms if answer == correction or _names_rhythm(answer, rhythm)]
    if not named:
        return replace(parts, correction=answer, problem=Problem.SEVERAL_TIMES)
    revised = [rhythm.revise(correction) if rhythm in named else rhythm for rhythm in rhythms]
    return replace(revised[0], also=tuple(revised[1:]))


def _names_rhythm(answer: TimeParts, rhythm: TimeParts) -> bool:
    """Return whether an answer has the days or the clock time of a rhythm."""
    if answer.weekdays:
        return set(answer.weekdays) <= set(rhythm.weekdays)
    minutes = {clock.minute % 720 for clock in answer.clocks}
    return bool(minutes) and minutes == {clock.minute % 720 for clock in rhythm.clocks}


def _has_several_days(parts: TimeParts) -> bool:
    """Return whether parts contain a date and another weekday, or several days."""
    is_other = bool(parts.days) and bool(parts.weekdays)
    is_other = is_other and parts.days[0].weekday() not in parts.weekdays
    return parts.problem is Problem.SEVERAL_DAYS or is_other


def note_several_times(parts: TimeParts, times: Sequence[TimeParts]) -> TimeParts:
    """Return `parts` with the problem that there are several `times`, which an answer must solve.

    If the times are on several days, the answer must name a day. Clock times that differ are then
    left out.
    """
    if any(time.repeat for time in times) or not any(map(_has_several_days, (parts, *times))):
        days = {(time.days, time.weekdays, time.month_days) for time in times if time.has_day}
        if len(days) < 2 or any(time.repeat for time in times):
            return replace(parts, problem=Problem.SEVERAL_TIMES)
    clocks = {time.clocks for time in times if time.clocks}
    if len(clocks) > 1:
        parts = replace(parts, clocks=())  # The answer may name the day with the other one.
    return replace(parts, problem=Problem.SEVERAL_DAYS)


def resolve_rhythms(parts: TimeParts, now: datetime, zone: ZoneInfo) -> Resolution:
    """Return the moment or the recurrences that parts and their further rhythms mean."""
    first = replace(parts, also=())
    today = now.astimezone(zone).date()
    resolution = resolve_parts(limit_to_period(first, today), now, zone)
    if not parts.also or resolution.missing:
        return resolution
    others = [resolve_parts(rhythm, now, zone) for rhythm in parts.also]
    is_whole = all(map(_is_whole_rhythm, (first, *parts.also)))
    if not is_whole or any(other.missing for other in others):
        missing = frozenset({Missing.TIME})
        return Resolution(missing=missing, problem=Problem.SEVERAL_TIMES)
    recurrences = list(resolution.recurrences)
    assumptions = resolution.assumptions
    for other in others:
        recurrences += other.recurrences
        assumptions |= other.assumptions
    return replace(resolution, recurrences=tuple(recurrences), assumptions=assumptions)


def _join_parts(parts: TimeParts, item: TimeParts, *, is_listed: bool) -> TimeParts | None:
    """Combine the parts with an item. Returns None if they contradict each other."""
    if _are_in_same_half(parts.part, item.part) and not item.clocks:
        item = replace(item, part=None)  # "First thing in the morning".
    parts, item = _join_rhythms(parts, item)
    parts, item = _join_dates(parts, item)
    if parts.clocks and item.clocks and is_listed:
        return _join_clocks(parts, item)
    return None if conflicts(parts, item) else parts.merge(item)


def _are_in_same_half(part: int | None, other: int | None) -> bool:
    """Return whether two parts of the day are both before or both after noon."""
    return part is not None and other is not None and (part < NOON) == (other < NOON)


def _join_clocks(parts: TimeParts, item: TimeParts) -> TimeParts:
    """Add further clock times to the parts: "8 in the morning and 8 in the evening"."""
    if item.part is None:
        return replace(parts, clocks=(*parts.clocks, *item.clocks))
    both = [(clock, parts.part) for clock in parts.clocks]
    both += [(clock, item.part) for clock in item.clocks]
    clocks = tuple(clock_in_part(clock, part) for clock, part in both)
    return replace(parts, clocks=clocks, part=None)


def _join_dates(parts: TimeParts, item: TimeParts) -> tuple[TimeParts, TimeParts]:
    """Keep only the date that both parts name: "on Christmas, 25 December"."""
    common = tuple(day for day in parts.days if day in item.days)
    if not common:
        return parts, item
    return replace(parts, days=common), replace(item, days=())


def _join_rhythms(parts: TimeParts, item: TimeParts) -> tuple[TimeParts, TimeParts]:
    """Combine the days of two rhythms.

    In "weekdays, every morning", the second rhythm only names an hour.
    """
    daily = Repeat(Unit.DAY)
    if _is_weekday_list(parts) and item.repeat == daily:
        # "Mondays and Thursdays": in Korean, "every" comes after the clock time.
        weekly = replace(parts, problem=None, repeat=Repeat(Unit.WEEK))
        return weekly, replace(item, repeat=None)
    if parts.repeat is None or item.repeat is None:
        return parts, item
    if parts.repeat.unit is item.repeat.unit is Unit.WEEK:
        # "Every two weeks, on Thursdays": the longer interval counts.
        longer = max(parts.repeat, item.repeat, key=lambda repeat: repeat.interval)
        return replace(parts, repeat=longer), replace(item, repeat=None)
    if item.repeat == daily or (_is_short(parts) and item.repeat.unit is Unit.WEEK):
        return parts, replace(item, repeat=None)
    if parts.repeat == daily or (_is_short(item) and parts.repeat.unit is Unit.WEEK):
        return replace(parts, repeat=None), item
    return parts, item


def _is_weekday_list(parts: TimeParts) -> bool:
    return parts.problem is Problem.SEVERAL_TIMES and len(parts.weekdays) > 1


def _is_short(parts: TimeParts) -> bool:
    """Return whether the parts recur every few minutes or hours."""
    return parts.repeat is not None and parts.repeat.unit in (Unit.MINUTE, Unit.HOUR)


def _combine_marked(parts: TimeParts, item: TimeParts, marker: Kind | None) -> TimeParts | None:
    """Combine the parts with an item whose marker gives it a role: "until Friday"."""
    if marker is Kind.UNTIL:
        return replace(parts, until=(parts.until or TimeParts()).merge(item))
    if marker is Kind.START:
        start = (parts.start or TimeParts()).merge(replace(item, clocks=()))
        return replace(parts, start=start, clocks=item.clocks or parts.clocks)
    if marker is Kind.EXCEPT:
        return replace(parts, except_weekdays=item.weekdays) if item.weekdays else None
    if marker is Kind.NO:
        return parts.revise(item)
    if marker is Kind.BEFORE:
        return _combine_before(parts, item)
    if parts.is_time:
        return replace(parts, problem=Problem.SEVERAL_TIMES)
    return parts.merge(item)


def _combine_before(parts: TimeParts, item: TimeParts) -> TimeParts:
    """Combine the parts with an item that follows "before".

    The item is the end of a recurrence, or the moment to which a lead time ("an hour") refers.
    """
    if parts.repeat and item.days and not item.clocks:
        return replace(parts, until=item)
    if item.clocks and not parts.lead:
        # "Before 5" names no moment, but "2 hours before 5" does.
        item = replace(item, problem=Problem.VAGUE)
    return parts.merge(item)


def limit_to_period(parts: TimeParts, today: date) -> TimeParts:
    """Limit recurring parts to the week or month that they name.

    "Every day next week" ends with that week. "Every other Monday, from next month on" has no end.
    A rhythm that is as long as the period has no end, either.
    """
    start = parts.start
    if start is not None:
        period = _named_period(start, today)
        return parts if period is None else replace(parts, start=_start_on(period[0], today))
    period = _named_period(replace(parts, weekdays=()), today)
    if period is None or parts.repeat is None:
        return parts
    limited = replace(parts, start=_start_on(period[0], today), week_offset=None, month_offset=None)
    is_longer = (period[1] - period[0]).days >= _RHYTHM_DAYS.get(parts.repeat.unit, 0)
    has_end = parts.until is not None or parts.count is not None or parts.duration is not None
    if has_end or not is_longer or parts.repeat.interval > 1:
        return limited
    return replace(limited, until=TimeParts(days=(period[1],)))


def _start_on(first: date, today: date) -> TimeParts | None:
    return TimeParts(days=(first,)) if first > today else None


def _named_period(parts: TimeParts, today: date) -> tuple[date, date] | None:
    """Return the first and last day of the named week or month.

    Returns None if the parts name a day of it.
    """
    if parts.days or parts.weekdays or parts.month_days or parts.nths:
        return None
    if parts.week_offset is not None:
        return forms.period_of_unit(Unit.WEEK, parts.week_offset, today)
    if parts.month_offset is not None:
        return forms.period_of_unit(Unit.MONTH, parts.month_offset, today)
    return None


def settle_wishes(tokens: Sequence[Token], text: Text, lexicon: Lexicon) -> list[Token]:
    """Read the verb of a wish as a request: the "wecken" of "kannst du mich um 7 wecken".

    Without a wish before it, or with a "not" between them, the verb is an ordinary word.
    """
    result = []
    is_wish = False
    for token in tokens:
        word = text.plain[token.start : token.end]
        if token.kind is Kind.WISH:
            is_wish = True
            token = token._replace(kind=Kind.POLITE)
        elif token.kind is Kind.WISHED:
            token = token._replace(kind=Kind.REQUEST if is_wish else Kind.OTHER)
        elif word in lexicon.task_negations:
            is_wish = False
        result.append(token)
    return result


def settle_points(tokens: Sequence[Token], *, has_dates: bool) -> list[Token]:
    """Decide whether tokens such as ``7.30`` are clock times or dates.

    `has_dates` means that the language writes dates in this way.
    """
    has_clock = any(token.kind in (Kind.CLOCK, Kind.OCLOCK, Kind.HOUR_SIGN) for token in tokens)
    has_clock |= any(
        left.kind is Kind.AT and right.kind is Kind.NUMBER for left, right in pairwise(tokens)
    )
    result = []
    for index, token in enumerate(tokens):
        if token.kind is Kind.CLOCK_OR_DATE:
            before = tokens[index - 1].kind if index else None
            after = tokens[index + 1].kind if index + 1 < len(tokens) else None
            token = _settle_point(token, before, after, has_clock=has_clock, has_dates=has_dates)
        result.append(token)
    return result


def _settle_point(
    token: Token, before: Kind | None, after: Kind | None, *, has_clock: bool, has_dates: bool
) -> Token:
    """Return the token for ``7.30`` as a number, a clock time, a date or a word."""
    left, right = token.date
    if after in _UNIT_KINDS and before is not Kind.AT:
        return token._replace(kind=Kind.NUMBER, number=float(f"{left}.{right}"))  # 1.5 hours
    is_clock = _is_clock(token)
    clock = token._replace(kind=Kind.CLOCK, number=left * 60 + right)
    if is_clock and (after in _CLOCK_FOLLOWERS or before is Kind.AT):
        return clock
    is_announced = (has_clock and has_dates) or before in (Kind.ON, Kind.DAY_PREFIX)
    if _is_date(left, right) and (is_announced or _has_final_point(token, after)):
        return token._replace(kind=Kind.DATE)
    neighbour = after if before is None else before
    if is_clock and neighbour in _DAY_KINDS:
        return clock
    return token._replace(kind=Kind.OTHER)  # a version or a price


def _is_clock(token: Token) -> bool:
    hour, minute = token.date
    return hour <= 24 and minute < 60 and token.end - token.start > 3


def _is_date(day: int, month: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def _has_final_point(token: Token, after: Kind | None) -> bool:
    """Return whether a token such as ``24.12.`` can only be a date.

    The point of ``7.05.`` may just end a sentence.
    """
    return token.number == 1 and after in _DATE_FOLLOWERS and token.date[1] >= FIRST_LONG_MONTH


FIRST_LONG_MONTH = 10
"""The first month with two digits."""
_UNIT_KINDS = (Kind.HOUR, Kind.MINUTE, Kind.UNIT)
_CLOCK_FOLLOWERS = (Kind.AMPM, Kind.OCLOCK, Kind.HOUR)
_DATE_FOLLOWERS = (Kind.AT, Kind.AT_OR_TO, Kind.CLOCK, Kind.COMMA, Kind.COLON, Kind.OTHER)
_DAY_KINDS = (
    *(Kind.RELATIVE, Kind.WEEKDAY, Kind.WEEKDAYS, Kind.DAY_GROUP),
    *(Kind.PART, Kind.PART_OF_RELATIVE),
)
