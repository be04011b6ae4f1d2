"""Separates when and what in a typed line: the time stands at the front, at the end, or divided between both; or in a
cron line, or behind a bar.

Languages other than English are read by dateparser, at the front or the end, and are never certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from core.dates.grammar import clean, pattern, words
from core.dates.grammar import read as read_moment
from core.dates.schedule import EXAMPLES, PARTS, Reading, Schedule, When, existing, from_cron, next_after, zone_info
from core.errors import Refused

_LONGEST_CHARS = 10_000
_FIELD = re.compile(r"[0-9A-Za-z*/,#-]{1,60}")
_CRONLIKE = re.compile(r"[0-9*/,#L-]{1,60}")
_FRONT_WORDS = 24
_END_WORDS = 14
_MIDDLE_WORDS = 60
_AFTER_LEAD = ("to", "that", "about", "of", "for")
_HOUR = re.compile(r"\d{1,2}(?:[:.h]\d{2}|h)?", re.IGNORECASE)
_MOST_WORDS, _MOST_SIGNS, _MOST_CHARS = 8, 14, 60
_YEARS_AHEAD = 50
_TELLING = re.compile(r"\d|[^\W\d_]{4}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_ONLY_NUMBERS = re.compile(r"[\d\s.,:;/+()-]{1,60}")

Taken = tuple[When, set[int]]
"""What was read, and the places of the words that said so."""


def parse(text: str, now: datetime, zone: str) -> Reading:
    """The schedule at the start or the end of a line, and the rest of it; ``when | text`` separates the two. `now` is
    aware, `zone` an IANA name. Raises Refused when there is no time in it, the moment is past, or it never comes."""
    info = zone_info(zone)
    line = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")[:_LONGEST_CHARS].strip()
    if not line:
        raise Refused(f"When, and what? {EXAMPLES}")
    reading = _divided(line, now, info) or _one(line, now, info)
    if reading is None:
        raise Refused(f"I cannot see when that should be. {EXAMPLES}")
    if "|" in reading.text and line.startswith(reading.text):
        # Somebody parted when and what, and the time was found in the what.
        reading = replace(reading, is_certain=False)
    if next_after(reading.schedule, now) is None:
        raise Refused(f"That never comes. {EXAMPLES}")
    return reading


def _divided(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """``when | text`` or ``text | when``; None when there is no bar, or it belongs to the text."""
    front, bar, rest = line.partition("|")
    other, _, end = line.rpartition("|")
    for read in (_ruled, _one) if bar else ():
        for when, text in ((front.strip(), rest.strip()), (end.strip(), other.strip())):
            reading = read(when, now, zone) if when else None
            if reading is not None and not reading.text:
                return replace(reading, text=text)
    return None


def _one(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    ruled = _ruled(line, now, zone)
    is_soon = ruled is not None and ruled.schedule.at is not None and ruled.schedule.at - now < timedelta(days=1)
    if ruled is not None and not (is_soon and re.search(r"\d", ruled.text)):
        return ruled
    # Of "ужин 3 мая в 18:00" English rules see the hour and not the day.
    foreign = read_foreign(line, now, zone)
    return foreign if foreign and (ruled is None or len(foreign.text) < len(ruled.text)) else ruled


def _ruled(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """A cron line of five fields at the front, or what English rules read."""
    fields = line.split(maxsplit=5)
    is_cron = all(map(_FIELD.fullmatch, fields[:5])) and all(map(_CRONLIKE.fullmatch, fields[:3]))
    if len(fields) < 5 or not is_cron:
        return read(line, now, zone)
    text = fields[5] if len(fields) > 5 else ""
    # A sixth field would be the seconds of another dialect, in front.
    is_five = not (text and _CRONLIKE.fullmatch(text.split(maxsplit=1)[0]))
    return Reading(schedule=from_cron(fields[:5], zone), text=text, is_certain=is_five)


def read(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """What English rules read in a line; None when they see no time. Raises Refused for one that is past."""
    typed = line.split()
    many, today = len(typed), now.astimezone(zone).date()
    # Words that only ask to be reminded.
    lowered = " ".join(clean(word) for word in typed[:6]) + " "
    skipped = next((len(lead.split()) for lead in words()["leads"] if lowered.startswith(lead + " ")), 0)
    while len(typed) > skipped and clean(typed[-1]) in ("please", "thanks"):
        typed.pop()
    taken = _front(typed, skipped, today) or _behind(typed, skipped, today)
    if taken is None:
        return None
    when, places = taken
    schedule = when.schedule(now, zone.key)
    # What was not taken keeps the white space that stood between.
    gone, place = places.union(range(skipped), range(len(typed), many)), count()
    kept = re.sub(r"\S+", lambda word: "\0" if next(place) in gone else word[0], line).split("\0")
    left = " ".join(filter(None, map(str.strip, kept))).strip(" \t\r\n,;:-–—")
    first, _, rest = left.partition(" ")
    text = rest.strip() if rest and first.lower() in (_AFTER_LEAD if skipped else ("to",)) else left
    return Reading(schedule=schedule, text=text, is_certain=when.is_certain and not _leaves_time(when, left, today))


def _front(typed: Sequence[str], skipped: int, today: date) -> Taken | None:
    found = read_moment(typed[skipped : skipped + _FRONT_WORDS], today)
    if found is None:
        return None
    when, start = found[0], skipped + found[1]
    front = set(range(skipped, start))
    if start < len(typed) and clean(typed[start]) in words()["limits"]:
        when.is_certain = False
    is_half = not (when.has_clock and when.has_day) and not (when.span and not when.is_repeated)
    # "Tomorrow call Ana at 9": the clock time stands at the other end.
    for index in range(max(start + 1, len(typed) - _END_WORDS), len(typed)) if is_half else ():
        rest = read_moment(typed[index:], today, is_strict=True)
        whole = _completed(when, rest[0]) if rest is not None and index + rest[1] == len(typed) else None
        if whole is not None:
            return whole, front.union(range(index, len(typed)))
    return when, front


def _completed(when: When, other: When) -> When | None:
    """A day and a clock time together; None where the two are no such halves."""
    is_certain = when.is_certain and other.is_certain
    if when.has_day and not other.has_day and not when.has_clock:
        return replace(when, clocks=other.clocks, part=other.part, is_certain=is_certain)
    if not when.has_day and other.has_day and not other.clocks and (other.is_repeated or not other.span):
        return replace(other, clocks=when.clocks, part=other.part or when.part, is_certain=is_certain)
    return None


def _behind(typed: Sequence[str], skipped: int, today: date) -> Taken | None:
    """A time behind other words: one at the end, else the longest, of which it is a guess what it belongs to."""
    best, start, most = When(), 0, (False, 0)
    for index in range(skipped, len(typed)):
        if _MIDDLE_WORDS <= index < len(typed) - _END_WORDS:
            continue
        found = read_moment(typed[index : index + _END_WORDS], today, is_strict=True)
        rank = (index + found[1] == len(typed), found[1]) if found is not None else most
        is_past = index > 0 and clean(typed[index - 1]) in ("last", "past")
        if found is not None and rank > most and not is_past:
            best, start, most = found[0], index, rank
    is_end, count = most
    before = clean(typed[start - 1]) if start > skipped else ""
    if is_end and before != "for" and before not in words()["joints"]:
        return best, set(range(start, len(typed)))
    best.is_certain = False
    if is_end:
        # "Pay the rent by friday": the time belongs to the text.
        return best, set(range(start - 1, len(typed))) if before == "for" else set()
    return (best, set(range(start, start + count))) if count else None


def _leaves_time(when: When, text: str, today: date) -> bool:
    """Whether what is left over looks like a time ("every third day", "UTC"); where no hour was read, also what may be
    one in any language: "25 tea", "um 18 Uhr essen", "à 18h dîner"."""
    typed = text.split()
    has_hour = when.has_clock or when.span or not when.has_day
    if not has_hour and any(_HOUR.fullmatch(word) for word in typed[:3]):
        return True
    if pattern("leftover").search(" ".join(map(clean, typed))):
        return True
    typed = typed[:_MIDDLE_WORDS]
    # "Weekly" is a time at the end only.
    return any(
        read_moment(typed[index : index + _END_WORDS], today, is_strict=True) is not None
        for index, word in enumerate(typed)
        if clean(word) not in words()["repeated"] or index + 1 == len(typed)
    )


def read_foreign(line: str, now: datetime, zone: ZoneInfo) -> Reading | None:
    """The time at the front of a line, or else at its end; None where nothing looks like one or it is past."""
    scripts = words()["script"]
    script: Mapping[str, Any] = next((one for one in scripts if re.search(one["letters"], line[:200])), {})
    here = now.astimezone(zone).replace(tzinfo=None, microsecond=0)
    for piece, rest in _pieces(line, script.get("is_unspaced", False)) if script else ():
        meant = _meant(piece.strip().rstrip(".!?。 ").lower(), script, here)
        if meant is not None and (moment := existing(meant, zone)) > now:
            schedule = Schedule(zone=zone.key, at=moment)
            return Reading(schedule=schedule, text=rest.strip(" \t\n,;:、，。").removeprefix("に"), is_certain=False)
    return None


def _pieces(line: str, is_unspaced: bool) -> Iterator[tuple[str, str]]:
    """What may be the time, and the rest: the longest fronts first, then the ends."""
    fronts = [word.end() for word in re.finditer(r"\S+", line[:200])][:_MOST_WORDS][::-1]
    for end in [*fronts, *(range(min(_MOST_SIGNS, len(line)), 1, -1) if is_unspaced else ())]:
        yield line[:end], line[end:]
    offset = max(len(line) - 200, 0)
    for word in list(re.finditer(r"\S+", line[offset:]))[-_MOST_WORDS:]:
        if word.start() + offset:
            yield line[offset + word.start() :], line[: offset + word.start()]


def _meant(piece: str, script: Mapping[str, Any], here: datetime) -> datetime | None:
    """The wall time that a piece means, if it is one as a whole."""
    first, _, rest = piece.partition(" ")
    piece = rest if first in words()["day_leads"] else piece
    for name in ("foreign_clock", "eastern_clock"):
        if found := pattern(name).fullmatch(piece):
            said = found.groupdict()
            hour, minute = int(said["hour"]), 30 if said.get("half") else int(said["minute"] or 0)
            hour += 12 * (bool(said.get("late")) and hour < 12)
            day, has_hour = _guessed(said["day"], script, here)
            if day is not None and not has_hour and hour <= 23 and minute <= 59:
                return day.replace(hour=hour, minute=minute, second=0)
    moment, has_hour = _guessed(piece, script, here)
    return moment if moment is None or has_hour else moment.replace(hour=PARTS["morning"], minute=0, second=0)


def _guessed(piece: str, script: Mapping[str, Any], here: datetime) -> tuple[datetime | None, bool]:
    """The wall time that dateparser takes a piece for, seen from the wall time `here`, and whether it has an hour."""
    if len(piece) > _MOST_CHARS or not _TELLING.search(piece) or _ONLY_NUMBERS.fullmatch(piece):
        return None, False
    # It takes a tenth of a second to load, for which no other command should wait.
    from dateparser.date import DateDataParser

    settings = {"RELATIVE_BASE": here, "PREFER_DATES_FROM": "future", "RETURN_TIME_AS_PERIOD": True}
    settings["DATE_ORDER"] = script.get("order", "DMY")
    try:
        found = DateDataParser(languages=script["languages"], settings=settings).get_date_data(piece)
    except (ValueError, OverflowError, TypeError, LookupError, AttributeError, RecursionError):
        # What it cannot digest is no date; nothing a person types may become an error.
        return None, False
    moment = found.date_obj
    # "3. Mai 18" is no day of the year 2118.
    if moment is None or moment.year >= here.year + _YEARS_AHEAD:
        return None, False
    return moment.replace(tzinfo=None, microsecond=0), found.period == "time"
