"""Splits a typed line into a schedule and a text: "tomorrow at 9 call Ana" gives "call Ana".

The time may be at the front, at the end or divided between both: "tomorrow call Ana at 9". A bar
may separate the time from the text: "call Ana | tomorrow at 9". The time may also be a cron line.
`grammar` reads English. For other languages, dateparser reads a time at the front or the end of a
line, and the result is never certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from core.dates.cursor import normalize_word, word_pattern, word_tables
from core.dates.expression import EXAMPLES, PART_OF_DAY_HOURS, TimeExpression
from core.dates.grammar import read_time
from core.dates.schedule import (
    ParsedSchedule,
    Schedule,
    load_zone,
    next_due,
    parse_cron,
    resolve_wall_time,
)
from core.errors import Refused

MAX_LINE_CHARS = 10_000
MAX_FRONT_WORDS = 24
"""A time at the front of a line has at most this many words."""
MAX_END_WORDS = 14
"""A time at the end of a line has at most this many words."""
MAX_MIDDLE_WORDS = 60
"""A time between other words must begin among this many words at the front of a line."""

_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#-]{1,60}")
"""A field of a cron line: ``*/15``, ``9-17``, ``MON-FRI``."""
_NUMERIC_CRON_FIELD = re.compile(r"[0-9*/,#L-]{1,60}")
"""A field without names, except ``L`` for the last day: ``*``, ``1,15``, ``L``."""
_JOINTS = ("to", "that", "about", "of", "for")
"""Words that may follow "remind me" and the time, and don't belong to the text.

For example, "remind me tomorrow to call Ana" gives the text "call Ana".
"""
_HOUR = re.compile(r"\d{1,2}(?:[:.h]\d{2}|h)?", re.IGNORECASE)
"""A number that may be an hour: ``9``, ``18:30``, ``18h``, ``9.15``."""


def parse_schedule(text: str, now: datetime, zone: str) -> ParsedSchedule:
    """Split a line into a schedule and a text. A bar may separate the two: ``when | text``.

    `now` is aware, and `zone` is an IANA name. Raises Refused if the line contains no time, a time
    in the past, or a date that doesn't exist, such as 30 February.
    """
    info = load_zone(zone)
    valid_text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    line = valid_text[:MAX_LINE_CHARS].strip()
    if not line:
        raise Refused(f"When, and what? {EXAMPLES}")
    result = _parse_divided(line, now, info)
    if result is None:
        result = _parse_line(line, now, info)
    if result is None:
        raise Refused(f"I couldn't find a time in that. {EXAMPLES}")
    if "|" in result.text and line.startswith(result.text):
        # In "buy a|b tomorrow", the bar stays in the text, but it may have been meant to separate
        # the text from the time.
        result = replace(result, is_certain=False)
    if next_due(result.schedule, now) is None:
        raise Refused(f"That time never comes. {EXAMPLES}")
    return result


def _parse_divided(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read ``when | text`` or ``text | when``.

    Returns None if the line has no bar, or if neither side of a bar is entirely a time.
    """
    if "|" not in line:
        return None
    front, _, after_first_bar = line.partition("|")
    before_last_bar, _, end = line.rpartition("|")
    divisions = ((front.strip(), after_first_bar.strip()), (end.strip(), before_last_bar.strip()))
    # Cron and English are tried on both sides before other languages, because they are certain.
    for parse in (_parse_rules, _parse_line):
        for when, text in divisions:
            result = parse(when, now, zone) if when else None
            # Without a text, the whole side of the bar is a time.
            if result is not None and not result.text:
                return replace(result, text=text)
    return None


def _parse_line(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a line as cron or English, or else in other languages.

    Returns None if the line names no time. If English leaves a number in the text, such as the day
    in "ужин 3 мая в 18:00", other languages are tried as well. A foreign result is returned if it
    leaves a shorter text, because more words of the line were then read as a time.
    """
    result = _parse_rules(line, now, zone)
    if result is not None:
        moment = result.schedule.at
        is_within_a_day = moment is not None and moment - now < timedelta(days=1)
        may_lack_date = is_within_a_day and re.search(r"\d", result.text)
        if not may_lack_date:
            return result
    foreign = _parse_foreign(line, now, zone)
    if foreign is None:
        return result
    if result is None:
        return foreign
    uses_more_words = len(foreign.text) < len(result.text)
    return foreign if uses_more_words else result


def _parse_rules(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a line that begins with the five fields of cron, or that names a time in English.

    Returns None for other lines. Raises Refused if the cron fields are invalid.
    """
    fields = line.split(maxsplit=5)
    is_cron = (
        len(fields) >= 5
        and all(map(_CRON_FIELD.fullmatch, fields[:5]))
        and all(map(_NUMERIC_CRON_FIELD.fullmatch, fields[:3]))
    )
    if not is_cron:
        return _parse_english(line, now, zone)
    schedule = parse_cron(fields[:5], zone)
    if len(fields) == 5:
        return ParsedSchedule(schedule=schedule, text="", is_certain=True)
    text = fields[5]
    first_word = text.split(maxsplit=1)[0]
    # The text of "0 0 9 * * 1 stand-up" begins with a sixth field. In dialects with six fields,
    # the first one is the seconds.
    has_sixth_field = bool(_NUMERIC_CRON_FIELD.fullmatch(first_word))
    return ParsedSchedule(schedule=schedule, text=text, is_certain=not has_sixth_field)


# --- English ---


@dataclass(frozen=True, slots=True)
class _Reading:
    """A time that was found in a line."""

    expression: TimeExpression
    # The indexes of the words that name the time.
    indexes: set[int]


def _parse_english(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a line by the rules of `grammar`. Returns None if the line names no time.

    Raises Refused if the time is in the past. The result isn't certain if the text still seems to
    contain a part of the time.
    """
    words = line.split()
    today = now.astimezone(zone).date()
    begin = _count_lead_words(words)
    end = len(words)
    while end > begin and normalize_word(words[end - 1]) in ("please", "thanks"):
        end -= 1
    reading = _read_front(words[:end], begin, today)
    if reading is None:
        reading = _read_after_text(words[:end], begin, today)
    if reading is None:
        return None
    schedule = reading.expression.to_schedule(now, zone.key)
    polite_words = {*range(begin), *range(end, len(words))}
    rest = _remove_words(line, reading.indexes | polite_words)
    rest_has_time = _contains_time(reading.expression, rest, today)
    is_certain = reading.expression.is_certain and not rest_has_time
    text = _remove_joint(rest, _JOINTS if begin else ("to",))
    return ParsedSchedule(schedule=schedule, text=text, is_certain=is_certain)


def _count_lead_words(words: Sequence[str]) -> int:
    """Return the number of words at the front that only ask for a reminder: "please remind me"."""
    front = " ".join(normalize_word(word) for word in words[:6]) + " "
    for lead in word_tables()["leads"]:
        if front.startswith(lead + " "):
            return len(lead.split())
    return 0


def _remove_words(line: str, indexes: set[int]) -> str:
    """Return a line without the words at `indexes`.

    White space between the other words is preserved. Punctuation at both ends is removed.
    """
    # A removed word ends a piece, and the next word begins a new one.
    pieces = [""]
    for index, word in enumerate(re.finditer(r"\s*\S+", line)):
        if index in indexes:
            pieces.append("")
        else:
            pieces[-1] += word[0]
    texts = (piece.strip() for piece in pieces)
    return " ".join(piece for piece in texts if piece).strip(" \t\r\n,;:-–—")


def _remove_joint(text: str, joints: Sequence[str]) -> str:
    """Return a text without its first word if that word is in `joints`, as in "to call Ana"."""
    first, _, rest = text.partition(" ")
    if rest and first.lower() in joints:
        return rest.strip()
    return text


def _read_front(words: Sequence[str], begin: int, today: date) -> _Reading | None:
    """Read a time that begins at the word `begin`, or return None if there isn't one.

    The clock time or the day may be at the end of the line: "tomorrow call Ana at 9".
    """
    time = read_time(words[begin : begin + MAX_FRONT_WORDS], today)
    if time is None:
        return None
    expression, end = time.expression, begin + time.word_count
    front = set(range(begin, end))
    if end < len(words) and normalize_word(words[end]) in word_tables()["limits"]:
        # As in "every day until friday …": a schedule can't express the limit.
        expression.is_certain = False
    is_whole = expression.has_clock and expression.has_day
    is_from_now = expression.span and not expression.is_repeated
    if is_whole or is_from_now:
        return _Reading(expression, front)

    # Look for the missing half: the longest run of words up to the end that is entirely a time.
    for index in range(max(end + 1, len(words) - MAX_END_WORDS), len(words)):
        other = read_time(words[index:], today, is_strict=True)
        if other is None or index + other.word_count != len(words):
            continue
        whole = _combine_halves(expression, other.expression)
        if whole is not None:
            return _Reading(whole, front.union(range(index, len(words))))
    return _Reading(expression, front)


def _combine_halves(front: TimeExpression, end: TimeExpression) -> TimeExpression | None:
    """Combine a day with a clock time, in either order.

    Returns None unless one half is a day without a clock time, and the other only a clock time.
    """
    is_certain = front.is_certain and end.is_certain
    if front.has_day and not end.has_day and not front.has_clock:
        return replace(front, clocks=end.clocks, part=end.part, is_certain=is_certain)
    end_is_day = end.has_day and not end.clocks and (end.is_repeated or not end.span)
    if not front.has_day and end_is_day:
        part = end.part or front.part
        return replace(end, clocks=front.clocks, part=part, is_certain=is_certain)
    return None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A time that follows other words, and its place in the line."""

    expression: TimeExpression
    start: int
    word_count: int
    is_at_end: bool

    @property
    def rank(self) -> tuple[bool, int]:
        """The sort key: a time at the end of the line is best, and then the longest one."""
        return self.is_at_end, self.word_count


def _read_after_text(words: Sequence[str], begin: int, today: date) -> _Reading | None:
    """Read a time that follows other words: the one at the end of the line, or else the longest.

    Returns None if there is no time. A time in the middle of a line is uncertain, because it may
    belong to the text.
    """
    best: _Candidate | None = None
    for index in range(begin, len(words)):
        if MAX_MIDDLE_WORDS <= index < len(words) - MAX_END_WORDS:
            continue
        time = read_time(words[index : index + MAX_END_WORDS], today, is_strict=True)
        # "last friday" isn't the next Friday.
        is_past = index > 0 and normalize_word(words[index - 1]) in ("last", "past")
        if time is None or is_past:
            continue
        is_at_end = index + time.word_count == len(words)
        candidate = _Candidate(time.expression, index, time.word_count, is_at_end)
        if best is None or candidate.rank > best.rank:
            best = candidate
    if best is None:
        return None

    expression, start = best.expression, best.start
    word_before = normalize_word(words[start - 1]) if start > begin else ""
    is_joined = word_before == "for" or word_before in word_tables()["joints"]
    if best.is_at_end and not is_joined:
        return _Reading(expression, set(range(start, len(words))))
    expression.is_certain = False
    if not best.is_at_end:
        return _Reading(expression, set(range(start, start + best.word_count)))
    if word_before == "for":
        # "book a table for friday": "for" is removed from the text, too.
        return _Reading(expression, set(range(start - 1, len(words))))
    # "pay the rent by friday": the time stays in the text.
    return _Reading(expression, set())


def _contains_time(expression: TimeExpression, rest: str, today: date) -> bool:
    """Whether the rest of a line also seems to name a time, such as "every third day" or "UTC".

    If `expression` has a day but no hour, a number that may be an hour also counts: "25 tea",
    "um 18 Uhr".
    """
    words = rest.split()
    has_hour = expression.has_clock or expression.span or not expression.has_day
    if not has_hour and any(_HOUR.fullmatch(word) for word in words[:3]):
        return True
    if word_pattern("leftover").search(" ".join(map(normalize_word, words))):
        return True
    words = words[:MAX_MIDDLE_WORDS]
    for index, word in enumerate(words):
        # Words like "weekly" name a time only at the end of a line.
        is_last = index + 1 == len(words)
        if not is_last and normalize_word(word) in word_tables()["repeated"]:
            continue
        if read_time(words[index : index + MAX_END_WORDS], today, is_strict=True) is not None:
            return True
    return False


# --- Other languages ---

MAX_FOREIGN_WORDS = 8
MAX_UNSPACED_CHARS = 14
"""In scripts without spaces, a time at the front of a line has at most this many characters."""
MAX_FOREIGN_CHARS = 60
EDGE_CHARS = 200
"""Only this many characters at the front and at the end of a line are searched for a time."""
MAX_YEARS_AHEAD = 50
"""A guessed date further in the future is probably a misreading."""
_LETTER_OR_DIGIT = re.compile(r"\d|[^\W\d_]{4}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
"""A digit, four letters, or a character of an East Asian script: every date has one of these."""
_ONLY_NUMBERS = re.compile(r"[\d\s.,:;/+()-]{1,60}")
"""Numbers and punctuation, such as ``3.5`` or ``12/24``, which `grammar` has already tried."""


def _parse_foreign(line: str, now: datetime, zone: ZoneInfo) -> ParsedSchedule | None:
    """Read a time in another language at the front of a line, or else at its end.

    Returns None if neither is a time in the future.
    """
    script = _script_of(line)
    if script is None:
        return None
    here = now.astimezone(zone).replace(tzinfo=None, microsecond=0)
    for piece, rest in _edge_pieces(line, script.get("is_unspaced", False)):
        wall_time = _read_foreign(piece.strip().rstrip(".!?。 ").lower(), script, here)
        moment = resolve_wall_time(wall_time, zone) if wall_time else None
        if moment is not None and moment > now:
            return ParsedSchedule(
                schedule=Schedule(zone=zone.key, at=moment),
                text=rest.strip(" \t\n,;:、，。").removeprefix("に"),
                is_certain=False,
            )
    return None


def _script_of(line: str) -> Mapping[str, Any] | None:
    """Return the settings of a line's script from `data/words.toml`, or None for other scripts.

    The script is the first one in the file that matches any of the first `EDGE_CHARS` characters.
    """
    script: Mapping[str, Any]
    for script in word_tables()["script"]:
        if re.search(script["letters"], line[:EDGE_CHARS]):
            return script
    return None


def _edge_pieces(line: str, is_unspaced: bool) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a line that may be a time, each with the rest of the line.

    Pieces at the front of the line come before pieces at its end. Within each group, longer pieces
    come first.
    """
    words = list(re.finditer(r"\S+", line[:EDGE_CHARS]))[:MAX_FOREIGN_WORDS]
    ends = [word.end() for word in reversed(words)]
    if is_unspaced:
        ends += range(min(MAX_UNSPACED_CHARS, len(line)), 1, -1)
    for end in ends:
        yield line[:end], line[end:]
    offset = max(len(line) - EDGE_CHARS, 0)
    for word in list(re.finditer(r"\S+", line[offset:]))[-MAX_FOREIGN_WORDS:]:
        start = offset + word.start()
        if start > 0:
            yield line[start:], line[:start]


def _read_foreign(piece: str, script: Mapping[str, Any], here: datetime) -> datetime | None:
    """Return the wall time that a piece of a line means, or None if the piece isn't just a time.

    A day without an hour means the morning.
    """
    first, _, rest = piece.partition(" ")
    if first in word_tables()["day_leads"]:
        piece = rest
    for name in ("foreign_clock", "eastern_clock"):
        match = word_pattern(name).fullmatch(piece)
        wall_time = _read_day_and_clock(match.groupdict(), script, here) if match else None
        if wall_time is not None:
            return wall_time
    guess = _guess_date(piece, script, here)
    if guess is None:
        return None
    if guess.has_hour:
        return guess.wall_time
    return guess.wall_time.replace(hour=PART_OF_DAY_HOURS["morning"], minute=0, second=0)


def _read_day_and_clock(
    parts: Mapping[str, str | None], script: Mapping[str, Any], here: datetime
) -> datetime | None:
    """Return the wall time of a day followed by a clock time: "3 мая в 18:00", "明天下午3点半".

    `parts` are the groups of the pattern `foreign_clock` or `eastern_clock`. Returns None if the
    group "day" isn't a day, or if the clock time is invalid.
    """
    hour = int(parts["hour"] or 0)
    minute = 30 if parts.get("half") else int(parts["minute"] or 0)
    if parts.get("late") and hour < 12:
        hour += 12
    guess = _guess_date(parts["day"] or "", script, here)
    if guess is None or guess.has_hour or hour > 23 or minute > 59:
        return None
    return guess.wall_time.replace(hour=hour, minute=minute, second=0)


@dataclass(frozen=True, slots=True)
class _Guess:
    """The date and time that dateparser returned for a text."""

    wall_time: datetime
    has_hour: bool


def _guess_date(piece: str, script: Mapping[str, Any], here: datetime) -> _Guess | None:
    """Read a date with dateparser, relative to the wall time `here`.

    Returns None if the piece isn't a date.
    """
    if len(piece) > MAX_FOREIGN_CHARS or _ONLY_NUMBERS.fullmatch(piece):
        return None
    if not _LETTER_OR_DIGIT.search(piece):
        return None
    # Importing dateparser takes a tenth of a second, so it is imported only when it is needed.
    from dateparser.date import DateDataParser

    settings = {
        "RELATIVE_BASE": here,
        "PREFER_DATES_FROM": "future",
        "RETURN_TIME_AS_PERIOD": True,
        "DATE_ORDER": script.get("order", "DMY"),
    }
    try:
        parser = DateDataParser(languages=script["languages"], settings=settings)
        result = parser.get_date_data(piece)
    except (ValueError, OverflowError, TypeError, LookupError, AttributeError, RecursionError):
        # dateparser raises these errors for some texts that aren't dates.
        return None
    moment = result.date_obj
    # dateparser reads "3. Mai 18" as a day of the year 2118.
    if moment is None or moment.year >= here.year + MAX_YEARS_AHEAD:
        return None
    return _Guess(moment.replace(tzinfo=None, microsecond=0), result.period == "time")
