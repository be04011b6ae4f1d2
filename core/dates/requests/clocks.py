"""Rules for clock times: "half past 5", German "halb acht", French "neuf heures moins dix"."""

from __future__ import annotations

from dataclasses import replace

from core.dates.requests.grammar import Context, RequestRules
from core.dates.requests.halves import ClockTime
from core.dates.requests.parts import Span, TimeParts
from core.dates.tokens import Kind, Match, Token

RULES = RequestRules()

_SIGN = "(?: oclock | hour | hour_sign )"
_DAY_TOKEN = "[relative part part_of_relative weekday weekdays past_or_part]"
"""A bare number after one of these is an hour at the end of a phrase: "tomorrow 9, call Ana"."""
_HOUR_ = "(?: number | one )"
_AFTER = "(?: after | past | later )"
"""The "after" of "after 10 tonight", which begins at that time."""
_AT = f"(?: {_AFTER} of? )? (?: at | at_or_to | on | for | filler | hour_or_at | day_prefix )*"
_MUST_AT = f"(?: {_AFTER} of? )? (?: at | at_or_to | hour_or_at )+"
_NO_LENGTH = "(?! minute | hour | unit | day_sign | span | times | month | and_half | to number )"
"""The tokens that must not follow the hour of "after 10", because "after 10 minutes" isn't a clock
time."""


def clock_parts(hour: float, minute: int, *, is_bare: bool) -> TimeParts | None:
    """Return a clock time, or None if it doesn't exist, like 25:00."""
    if not 0 <= hour <= 24 or not 0 <= minute < 60 or hour % 1:
        return None
    may_be_later = is_bare and 1 <= hour <= 12
    total = int(hour) * 60 + minute
    return TimeParts(clocks=(ClockTime(total % 1440 if total > 1440 else total, may_be_later),))


def _half_of_day(match: Match, hour: float, minute: int) -> TimeParts | None:
    """Return a clock time with its "am" or "pm", if the match has one."""
    token = match.get("ampm")
    if token is None:
        return clock_parts(hour, minute, is_bare=True)
    if not 1 <= hour <= 12:
        return clock_parts(hour, minute, is_bare=False)
    return clock_parts(hour % 12 + token.number, minute, is_bare=False)


@RULES.add(f"{_AT} (?P<clock> clock ) {_SIGN}? (?P<ampm> ampm )?")
def _digital_clock(match: Match, context: Context) -> TimeParts | None:
    """Read "5:30", "17:30" and "5:30 pm"."""
    token = match.get("clock")
    assert token is not None
    hour, minute = divmod(int(token.number), 60)
    if not token.is_digits:
        return clock_parts(hour, minute, is_bare=False)
    if match.get("ampm") is not None:
        return _half_of_day(match, hour, minute)
    # "5:30" may be in the afternoon, but "05:30" isn't.
    is_bare = token.end - token.start < 5 and 0 < hour < 10
    parts = clock_parts(hour, minute, is_bare=is_bare)
    if parts is None or not (is_bare or hour in (10, 11, 12)):
        return parts
    if context.lexicon.has_half_days and is_bare and hour < FIRST_WAKING_HOUR:
        return parts
    return replace(parts, clocks=(parts.clocks[0]._replace(is_written=True),))


FIRST_WAKING_HOUR = 5
"""In English, "tomorrow at 2:30" is more likely in the afternoon than at night."""


@RULES.add(
    f"{_AT} (?P<clock> clock ) and? (?: (?P<half> and_half ) | (?P<quarter> quarter ) )",
    f"{_AT} (?P<clock> clock ) and? (?P<minutes> number ) minute (?! before | later | to_after )",
    f"{_AT} (?P<clock> clock ) and (?P<spoken> number ) (?! ampm | oclock | hour | part )",
)
def _named_clock_and_minutes(match: Match, context: Context) -> TimeParts | None:
    """Read French "midi et demi", Korean "밤 12시 30분" and Portuguese "meia-noite e quinze"."""
    token, spoken = match.get("clock"), match.get("spoken")
    assert token is not None
    is_list = spoken is not None and (spoken.is_digits or spoken.number < MIN_SPOKEN_MINUTES)
    if token.is_digits or is_list:
        return None
    extra = 30 if match.get("half") else match.number("quarter")
    extra += match.number("minutes") + match.number("spoken")
    hour, minute = divmod(int(token.number) + extra, 60)
    return clock_parts(hour, minute, is_bare=False)


MIN_SPOKEN_MINUTES = 10
"""A smaller number after "noon and" is more likely another hour."""


@RULES.add(
    f"{_MUST_AT} (?P<hour> {_HOUR_} ) (?P<sign> {_SIGN} )? (?P<ampm> ampm )?",
    "(?<= [request mention] ) for (?P<hour> number ) (?! day_sign )"
    "(?P<sign> oclock )? (?P<ampm> ampm )?",
    f"{_AT} (?P<hour> {_HOUR_} ) (?P<sign> oclock | hour_sign )? (?P<ampm> ampm )",
    f"{_AT} (?P<hour> {_HOUR_} ) (?P<sign> oclock | hour_sign )",
    "(?P<hour> number ) (?= and number oclock )",
    # "Starting at 8" is a single phrase.
    "(?<= start ) (?P<hour> number )"
    "(?! minute | hour | unit | day_sign | span | times | month | and_half | point | to number )",
    f"(?<= {_DAY_TOKEN} ) for (?P<hour> number ) (?= comma | colon | request | mention | $ )",
    f"(?<= {_DAY_TOKEN} ) (?P<hour> number ) (?= comma | colon | request | mention | polite | $ )",
    f"{_AFTER} of? (?P<hour> number ) (?= {_DAY_TOKEN} | on | of | comma | request | mention | $ )",
    f"(?<= {_DAY_TOKEN} ) {_AFTER} of? (?P<hour> number ) {_NO_LENGTH}",
    f"(?<= [request mention] ) {_AFTER} of? (?P<hour> number ) (?= to (?! number ) | colon )",
)
def _hour(match: Match, context: Context) -> TimeParts | None:
    hour = match.get("hour")
    if hour is None or (hour.kind is Kind.ONE and not match.get("sign")):
        return None
    number = 1 if hour.kind is Kind.ONE else hour.number
    if match.get("ampm") is None and hour.is_digits and hour.end - hour.start == 2 and number < 10:
        return clock_parts(number, 0, is_bare=False)  # 08
    return _half_of_day(match, number, 0)


@RULES.add(f"{_AT} (?P<hour> number ) hour and? (?P<minute> number ) minute?")
def _hours_and_minute(match: Match, context: Context) -> TimeParts | None:
    """Read French "18 heures 30", which is a clock time. Up to twelve hours, it is a length."""
    hour, minute = match.number("hour"), match.number("minute")
    if not context.lexicon.has_hours_as_clock or hour <= HALF_DAY_HOURS:
        return None
    return clock_parts(hour, minute, is_bare=False)


HALF_DAY_HOURS = 12


@RULES.add(
    f"{_AT} (?P<hour> {_HOUR_} ) (?P<sign> oclock | hour_sign ) and? (?P<minute> number )"
    "(?P<unit> minute )? (?P<ampm> ampm )?",
    f"{_MUST_AT} (?P<hour> {_HOUR_} ) (?P<sign> hour )? and?"
    "(?P<minute> number ) (?P<unit> minute )?"
    "(?P<ampm> ampm )?",
)
def _hour_and_minute(match: Match, context: Context) -> TimeParts | None:
    """Read "at nine thirty", Japanese "8時15分", and "18h 30"."""
    hour, minute = match.get("hour"), match.get("minute")
    assert hour is not None
    assert minute is not None
    is_spoken = not hour.is_digits and not minute.is_digits
    is_marked = match.get("unit") is not None and match.get("sign") is not None
    is_written = match.get("sign") is not None and minute.number >= 10
    is_listed = bool(match.kinds(Kind.AND)) and minute.is_digits
    if is_listed or minute.number % 1 or not (is_spoken or is_marked or is_written):
        return None
    return _half_of_day(match, match.number("hour"), int(minute.number))


@RULES.add(
    f"{_MUST_AT} (?P<hour> number ) and? (?P<minute> number ) (?P<ampm> ampm )?(?= {_DAY_TOKEN} )",
    f"{_MUST_AT} (?P<hour> number ) (?P<minute> number ) oclock",
)
def _hour_and_minute_before_day(match: Match, context: Context) -> TimeParts | None:
    """Read "at 7 30 tonight" and Portuguese "às 7 e quinze da noite"."""
    minute = match.all("minute")[0]
    is_written = minute.is_digits and minute.end - minute.start == MINUTE_DIGITS
    is_spoken = not minute.is_digits and minute.number >= MIN_SPOKEN_MINUTES
    is_list = bool(match.kinds(Kind.AND)) and minute.is_digits
    if is_list or not (is_written or is_spoken):
        return None
    return _half_of_day(match, match.number("hour"), int(minute.number))


MINUTE_DIGITS = 2


@RULES.add(f"{_MUST_AT} (?P<hour> number ) (?P<dash> to ) (?P<minute> number )")
def _hour_dash_minute(match: Match, context: Context) -> TimeParts | None:
    """Read "at seven-thirty", but not "at seven - thirty"."""
    hour, dash, minute = (match.all(name)[0] for name in ("hour", "dash", "minute"))
    is_word = hour.end == dash.start and dash.end == minute.start
    if not is_word or hour.is_digits or minute.is_digits:
        return None
    return clock_parts(hour.number, int(minute.number), is_bare=True)


@RULES.add(
    f"{_AT} (?P<hour> number ) oclock (?P<minutes> number ) minute before",
    f"{_AT} (?P<hour> number ) oclock before (?P<minutes> number ) minute",
)
def _minutes_before_hour(match: Match, context: Context) -> TimeParts | None:
    """Read Korean "18시 10분 전" and Chinese "18点前10分钟" as 17:50."""
    clock = clock_parts(match.number("hour"), 0, is_bare=True)
    lead = Span(seconds=60 * match.number("minutes"))
    return replace(clock, lead=lead) if clock else None


@RULES.add(
    f"{_AT} (?P<hour> {_HOUR_} ) (?P<sign> {_SIGN} )? and? (?P<half> and_half )",
    f"(?<= {_DAY_TOKEN} ) (?P<hour> number ) (?P<sign> and_half ) (?! minute | hour | unit )",
)
def _hour_and_half(match: Match, context: Context) -> TimeParts | None:
    """Read Spanish "las ocho y media" and Chinese 三点半."""
    is_marked = any(match.kinds(kind) for kind in (Kind.AT, Kind.AT_OR_TO, Kind.HOUR_OR_AT))
    if not match.get("sign") and not is_marked:
        return None
    return clock_parts(match.number("hour"), 30, is_bare=True)


@RULES.add(
    f"{_AT} the? (?: (?P<quarter> quarter ) | (?P<minutes> number ) minute? )"
    f"(?P<direction> past | to_hour | at_or_to | to ) the? (?P<half> half_to )?"
    f"(?P<hour> number | one | clock ) {_SIGN}? (?P<ampm> ampm )?",
    f"{_AT} (?P<hour> number | one | clock ) {_SIGN}? (?: the | and )*"
    "(?: (?P<quarter> quarter ) | (?P<minutes> number ) minute? )"
    "(?P<direction> past_after | to_after | past_or_part )",
    f"{_AT} (?P<hour> number | one | clock ) {_SIGN}? (?P<direction> minus ) (?: the | one )?"
    "(?: (?P<quarter> quarter ) | (?P<minutes> number ) minute? )",
    f"{_AT} (?P<hour> number | one ) {_SIGN}? and (?: one )? (?P<quarter> quarter )",
    f"{_AT} (?P<hour> number | one ) (?P<sign> oclock | hour | hour_sign ) (?P<quarter> quarter )",
    f"{_MUST_AT} (?P<hour> number | one ) (?P<quarter> quarter )",
    f"{_AT} (?P<direction> without ) (?: (?P<quarter> quarter ) | (?P<minutes> number ) minute? )"
    f"(?P<hour> number | one | clock ) {_SIGN}? (?P<part> part )?",
)
def _minutes_around_hour(match: Match, context: Context) -> TimeParts | None:
    """Read "quarter past 4 pm", French "neuf heures moins dix", Russian "без десяти пять"."""
    minutes = _count_minutes(match)
    token, direction = match.get("hour"), match.get("direction")
    assert token is not None
    if not minutes:
        return None
    is_named = token.kind is Kind.CLOCK
    total = int(token.number) if is_named else match.number("hour") * 60
    if match.get("half"):
        total -= 30  # "fünf vor halb acht"
    is_before = direction is not None and direction.kind in _BEFORE_KINDS
    total += -minutes if is_before else minutes
    if is_named:
        return clock_parts(total // 60, total % 60, is_bare=False)
    # "Quarter to one pm" is 12:45.
    parts = _half_of_day(match, total // 60 or HALF_DAY_HOURS, total % 60)
    return _add_part(match, parts)


def _count_minutes(match: Match) -> int:
    """Return the minutes before or after an hour, or 0 if the numbers mean something else."""
    minutes = match.number("quarter") or match.number("minutes")
    direction = match.get("direction")
    is_spoken = match.get("quarter") is not None or not match.all("minutes")[0].is_digits
    is_range = direction is not None and direction.kind is Kind.TO and not is_spoken
    if not 0 < minutes < 60 or is_range or (minutes % 5 and is_spoken):
        return 0
    return minutes


_BEFORE_KINDS = (Kind.TO, Kind.AT_OR_TO, Kind.TO_HOUR, Kind.TO_AFTER, Kind.MINUS, Kind.WITHOUT)


@RULES.add(
    f"{_AT} the? (?P<half> half_to | half_past ) (?P<hour> {_HOUR_} ) {_SIGN}?"
    " (?P<ampm> ampm )? (?P<part> part )?",
    f"{_AT} (?P<quarter> quarter ) (?P<hour> number | ordinal | month_day ) {_SIGN}?"
    " (?P<part> part )?",
    f"{_AT} (?P<minutes> number ) minute (?P<hour> ordinal | month_day ) {_SIGN}?"
    " (?P<part> part )?",
)
def _half_hour(match: Match, context: Context) -> TimeParts | None:
    """Read half hours, and minutes that count towards the next hour.

    Examples are "half past 8 pm", German "halb acht" (7:30) and "viertel acht" (7:15), and Russian
    "десять минут восьмого" (7:10). A part of the day may follow: "в четверть пятого дня" (16:15).
    """
    hour = match.number("hour")
    hour_before = (hour - 1) or 12
    half = match.get("half")
    if half is None:
        # "viertel acht". An hour in digits isn't read in this way.
        token = match.get("hour")
        if token is None or token.is_digits:
            return None
        minutes = match.number("quarter") or match.number("minutes")
        return _add_part(match, clock_parts(hour_before, minutes, is_bare=True))
    if half.kind is Kind.HALF_PAST:
        return _add_part(match, _half_of_day(match, hour, 30))
    return _add_part(match, clock_parts(hour_before, 30, is_bare=True))


def _add_part(match: Match, parts: TimeParts | None) -> TimeParts | None:
    """Return the parts with the part of the day after a clock time: Russian "дня"."""
    part = match.get("part")
    return parts if part is None or parts is None else replace(parts, part=int(part.number))


@RULES.add(f"{_AT} (?P<hour> number ) (?P<sign> {_SIGN} )? (?P<part> part | past_or_part )")
def _hour_of_part(match: Match, context: Context) -> TimeParts | None:
    """Read Russian "в 9 утра"."""
    clock = clock_parts(match.number("hour"), 0, is_bare=True)
    part = match.get("part")
    if clock is None or part is None or match.number("hour") > 24:
        return None
    if part.unit is not None and not (match.kinds(Kind.AT) or match.get("sign")):
        return None  # Russian "2 дня" is also "two days".
    return replace(clock, part=int(part.number))


@RULES.add(
    "(?P<part> part ) (?P<hour> number ) oclock"
    "(?: (?P<half> and_half ) | (?P<quarter> quarter )"
    " | (?P<minute> number ) (?! minute? before ) minute? )?",
    "(?P<part> part ) (?P<clock> clock ) oclock?",
)
def _part_and_hour(match: Match, context: Context) -> TimeParts | None:
    """Read Chinese 早上8点, in which the part of the day comes first."""
    part, clock = match.get("part"), match.get("clock")
    if part is None or part.unit is not None or (clock is not None and not clock.is_digits):
        return None
    if clock is not None:
        hour, minute = divmod(int(clock.number), 60)
    else:
        hour = match.number("hour")
        minute = 30 if match.get("half") else match.number("quarter") or match.number("minute")
    parts = clock_parts(hour, minute, is_bare=True)
    return replace(parts, part=int(part.number)) if parts else None


@RULES.add("(?P<quarter> quarter ) (?: before | to_after ) (?= request | mention | comma | $ )")
def _quarter_before(match: Match, context: Context) -> TimeParts | None:
    """Read Turkish "çeyrek kala": a quarter of an hour before."""
    return TimeParts(lead=Span(seconds=60 * match.number("quarter")))


@RULES.add("this? (?P<part> part | past_or_part )", "(?P<part> part_of_relative )")
def _part(match: Match, context: Context) -> TimeParts | None:
    """Read "in the morning", "this afternoon" and "tonight"."""
    token = match.get("part")
    if token is None or token.unit is not None:
        return None
    is_today = bool(match.kinds(Kind.THIS)) or token.kind is Kind.PART_OF_RELATIVE
    return TimeParts(part=int(token.number), days=(context.today,) if is_today else ())


@RULES.add(
    "(?P<from> between | from | start )? (?: the | at | hour_or_at )*"
    "(?P<p1> part )? (?P<low> number | clock ) (?P<s1> oclock | hour | hour_sign )?"
    "(?P<a1> ampm )? (?P<q1> part )?"
    "(?P<mark> and | to | until | start_after | at ) (?: the | at )*"
    "(?P<p2> part )? (?P<high> number | clock ) (?P<s2> oclock | hour | hour_sign )?"
    "(?P<a2> ampm )? (?P<q2> part )?"
    "(?P<end> range_end | until_after | during_after )?",
    "(?P<p1> part )? (?P<low> number | clock ) (?P<s1> oclock )"
    "(?P<p2> part )? (?P<high> number | clock ) (?P<s2> oclock )? (?P<end> until_after )",
)
def _window(match: Match, context: Context) -> TimeParts | None:
    """Read "between 9 and 18", "from 9am to 6pm" and Turkish "14'ten 22'ye kadar"."""
    low, high = match.get("low"), match.get("high")
    if low is None or high is None or not _is_window(match, low):
        return None
    first_half = match.get("a1") or match.get("p1") or match.get("q1")
    last_half = match.get("a2") or match.get("p2") or match.get("q2")
    first = _window_clock(low, first_half or match.get("a2"))
    last = _window_clock(high, last_half)
    return TimeParts(window=(first, last)) if first and last else None


def _is_window(match: Match, low: Token) -> bool:
    """Return whether two clock times are the ends of a window, not two times of a list."""
    if match.kinds(Kind.BETWEEN) or match.get("end"):
        return True
    if match.get("from") is not None:
        return not match.kinds(Kind.AND)
    # Without "from" or "between", one of the times must have a sign such as "o'clock" or "pm".
    signs = (match.get("s1"), match.get("a1"), match.get("a2"))
    has_sign = low.kind is Kind.CLOCK or any(sign is not None for sign in signs)
    return bool(match.kinds(Kind.TO)) and has_sign


def _window_clock(token: Token, half: Token | None) -> ClockTime | None:
    """Return a clock time, in the half of the day that an AMPM or PART token names, if any."""
    minute = int(token.number) if token.kind is Kind.CLOCK else int(token.number) * 60
    if minute > 1440:
        return None
    if half is not None and minute <= 720:
        is_late = half.number >= 12
        return ClockTime(minute % 720 + (720 if is_late else 0))
    return ClockTime(minute, is_bare=minute <= 720 and token.kind is Kind.NUMBER)


@RULES.add(f"{_MUST_AT} (?P<digits> number | year ) (?: hour | hour_sign | oclock )?")
def _four_digits(match: Match, context: Context) -> TimeParts | None:
    """Read "at 1900"."""
    token = match.get("digits")
    if token is None or not token.is_digits or token.end - token.start != 4:
        return None
    hour, minute = divmod(int(token.number), 100)
    return clock_parts(hour, minute, is_bare=False) if hour < 24 else None
