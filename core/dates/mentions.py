"""Periods that a sentence names, in many languages, so that what was said then can count for more: ``on May 8th``,
``early January``, ``the two weeks after 3 December``, ``summer 2024``, ``昨天``.

Pure. Words become marks, one letter each (``in early May`` is ``LPM``; `data/mentions.toml` has the words of each), and
one grammar over these letters reads all languages. What has no year returns each year. Nothing is certain, so nothing
may be left out because of it; but what is not meant as a time costs more than a time that is missed, so a word that is
often something else (``may``, ``mars``, ``April``) is a month only beside what makes it one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from core.dates.grammar import words
from core.dates.schedule import calendar_day, later
from core.text.normalize import LETTER, bare, language_data

LONGEST_CHARS = 2_000
MOST = 6
"""Periods of one text."""
YEARS_BACK = 20
"""What returns is looked for in so many years."""
_DAY = timedelta(days=1)
_ANY_YEAR = 2000
_TOKEN = re.compile(
    r"(?<![-/])\d{4}-(?:0[1-9]|1[012])(?![-/\da-z])|\d{4}([-/.])\d\d?\1\d\d?|\d\d?([./])\d\d?\2\d{4}|\d+"
    rf"|(?:(?!\d){LETTER}|[\u0900-\u0963\u0970-\u0dff])+|\S"
)
_STAR_LETTERS = 4
_FORMS = re.compile(
    r"""
    (?P<before>[N\#]?U[AV]L*|ULL?(?=[NnMYD]))?(?:     # two weeks after, the week of
      (?P<week>(?:[OBn][C&])?[OBn]ULL?(?:M(?:[L,]*Y)?|Y)|MOU)
    | (?P<day>D|[Nn](?:[uC&][oL]*[Nn])?L?M(?:[L,]*Y)?|Y?M[Nn](?:[uC&]L?[Nn](?!M))?(?:[L,]*Y)?
        |(?<=o)n(?=[,&CEALoVui]|$))
    | (?P<running>(?:R|[BFT]U|U[BFT])L*[MSW](?![BFT])|[MSW]L?(?:R|[BFT]U|U[BFT])
        |[BFT][N\#]?U|[N\#]?U[BFT]|[N\#](?:UG|GU)|nG|V[N\#]U|[BFT](?:M|L?[WS])|[WMS][BFT]|R
        |(?<=[oLUAVui])(?<![eC][oL])W(?![BFe]|[Cu][oL]*W|[,oL]*[nNMD]))
    | (?P<month>(?:P(?:[C&]+P)?L?)?(?:YL?)?M(?:L?P)?(?:[L,]*Y)?)
    | (?P<season>(?<=[LBFTEi])P?SL?Y?|PS|SL?Y|YL?S)
    | (?P<year>PL?Y|(?<=[LAVui])Y|(?<=[LAVui]U)Y)
    )(?P<behind>[AaV][N\#]U)?
    """,
    re.VERBOSE,
)
_WHOLE = re.compile("[LoW,]*=(?:[Lo]*[Cu][Lo]*=)?")
_APART = re.compile("W[Lo,]*M(?![Nn])")  # "since:monday may be late"
_PARTS = ((0, 10), (9, 20), (19, 31))
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365, "7": 2}
_RANGE = re.compile("[Lo]*[Cu][Lo]*")
_LEAD = re.compile("(?:(?<!W)[AVi]|(?<![MDYNnWUSR])u)[Lo]*$")  # the Friday before 3 May is close to it


class Mark(NamedTuple):
    """A letter of the grammar, and the number, unit or date behind it. A number is ``#`` in words, ``N`` in figures and
    ``n`` as a day of the month; a date is ``D``, a year ``Y``, and what says nothing of days ``x``."""

    letter: str
    value: str = ""

    @property
    def number(self) -> int:
        return int(self.value)


class Days(NamedTuple):
    """From the first day to the last; `months`: it returns after so many, 0 where it does not."""

    first: date
    last: date
    months: int = 0


def mentioned(text: str, today: date) -> tuple[tuple[int, int], ...]:
    """The first and last days (ordinals) of the periods named by a text that was said `today`; what returns as often
    as it did in `YEARS_BACK` and will within a year."""
    try:
        found = _read(_marks(text), today)[:MOST]
        return tuple(dict.fromkeys(span for one in found for span in _times(one, today)))
    except (OverflowError, ValueError):
        return ()  # before the year 1, or behind the year 9999


def named(text: str, today: date) -> tuple[date, date] | None:
    """The first and last day of the one period that a text names as a whole; of what returns, as it has begun last.
    Raises OverflowError or ValueError beyond the years 1 to 9999."""
    marks = [Mark("L"), *(mark for mark in _marks(text, is_period=True) if mark.letter != "i")]
    letters, found = "".join(mark.letter for mark in marks), _read(marks, today)
    if len(found) != 1 or _APART.search(letters) or not _WHOLE.fullmatch(_FORMS.sub("=", letters)):
        return None
    return _latest(found[0], today)[:2]


def named_months(text: str) -> frozenset[int]:
    """The months (1 for January) that a text names, in any of the languages; not those that it asks before or after."""
    marks = [Mark("x"), *_marks(text)]
    return frozenset(one.number for lead, one in pairwise(marks) if one.letter == "M" and lead.letter not in "AV")


def month_of(word: str) -> int | None:
    """The month (1 for January) that a word is the name of, in any of the languages; shortened as in English."""
    compared = bare(word)
    mark = _mark(compared)
    return words()["months"].get(compared) or (mark.number if mark.letter in ("M", "m", "v") else None)


def _times(one: Days, today: date) -> Iterator[tuple[int, int]]:
    if not one.months:
        yield one.first.toordinal(), one.last.toordinal()
        return
    begun = (today.year - one.first.year) * 12
    for months in range(begun - YEARS_BACK * 12, begun + 13, one.months):
        first = later(one.first, months)
        if first.day == one.first.day:  # the 29 February only where there is one
            yield first.toordinal(), later(one.last, months).toordinal()


def _latest(one: Days, today: date) -> Days:
    """That which began last; what does not return, as it stands."""
    first, last = [span for span in _times(one, today) if not one.months or span[0] <= today.toordinal()][-1]
    return Days(date.fromordinal(first), date.fromordinal(last))


@cache
def _phrases() -> tuple[dict[tuple[str, ...], Mark], dict[str, int], dict[str, Mark]]:
    """Marks by the tokens of their phrases, the longest phrase that begins with a token, and marks by beginnings of
    words."""
    whole: dict[tuple[str, ...], Mark] = {}
    longest: dict[str, int] = {}
    begun: dict[str, Mark] = {}
    for name, phrases in language_data("mentions", "core.dates")["marks"].items():
        mark = Mark("#" if name[:1] == "N" else name[:1], name[1:])
        for phrase in (bare(one.strip()) for one in phrases.split(",")):
            tokens = tuple(found[0] for found in _TOKEN.finditer(phrase.removesuffix("*")))
            if phrase.endswith("*") and len(tokens) == 1:
                begun.setdefault(tokens[0], mark)
            whole.setdefault(tokens, mark)
            longest[tokens[0]] = max(longest.get(tokens[0], 0), len(tokens))
    return whole, longest, begun


@lru_cache(maxsize=16)
def _marks(text: str, *, is_period: bool = False) -> Sequence[Mark]:
    """`is_period`: it is nothing but the name of a period, so words that may be months are."""
    whole, longest, _ = _phrases()
    tokens = [found[0] for found in _TOKEN.finditer(bare(text[:LONGEST_CHARS])[:LONGEST_CHARS].rstrip("?!.؟ "))]
    marks: list[Mark] = []
    place = 0
    while place < len(tokens):
        token, count = tokens[place], longest.get(tokens[place], 0)
        while count and tuple(tokens[place : place + count]) not in whole:
            count -= 1
        _add(marks, whole[tuple(tokens[place : place + count])] if count else _mark(token))
        place += count or 1
    return _settled(marks, re.compile("[msvc]") if is_period else _MONTH)


@lru_cache(maxsize=10_000)
def _mark(token: str) -> Mark:
    """Of one word or number."""
    whole, _, begun = _phrases()
    if token[:1].isdecimal():
        return _number(token)
    stems = (token[:-cut] for cut in range(1, min(_STAR_LETTERS + 1, len(token) - 2)))
    number = str(words()["numbers"].get(token, ""))
    found = whole.get((token,)) or next((begun[stem] for stem in stems if stem in begun), None)
    found = found or (Mark("#", number) if number.isdecimal() else None)
    return found or Mark("," if token in tuple(",،、") else "x")


def _number(token: str) -> Mark:
    if not token.isdecimal():
        parts = re.split("[-./]", token)
        return Mark("D", "-".join(parts if len(parts[0]) > 2 else parts[::-1]))
    year = int(token) - 543 * ("2400" < token < "2700")  # as Thailand counts
    if len(token) == 4 and 1900 <= year < 2200:
        return Mark("Y" if year % 100 else "y", str(year))  # 2000 may be how many
    return Mark("N", token) if len(token) < 4 else Mark("x")


def _add(marks: list[Mark], mark: Mark) -> None:
    """Behind those before it: a month in figures and the sign for it are one, and so are a day and its sign."""
    if mark.value[:1].isupper():
        marks.append(Mark(mark.letter))
        mark = Mark(mark.value[0], mark.value[1:])
    before = marks[-1] if marks else Mark("x")
    pair = before.letter.replace("#", "N") + mark.letter.replace("#", "N")
    if pair in ("Nd", "Nk", "KN"):
        number = before.value or mark.value
        marks[-1] = Mark("n" if pair == "Nd" else "M" if 1 <= int(number) <= 12 else "x", number)
    elif mark.letter and before.letter + mark.letter not in ("md", "sd", "cd"):  # "Sept."
        marks.append(mark)


_MONTH = re.compile(
    r"""
    [ms](?=[nNYy]|[,Lpq][Yy]) | (?<=[nNYyP])[ms] | (?<=[nN]q)[msv]                      # a number or a part beside it
    | v(?=[nYy]|N(?!q)|[,Lpq][Yy]) | (?<=[nP])v | (?<=[LoprACEVui&]N)v | (?<=[NYy])v(?!x)
    | (?<=[LrABEFVui])[mv] | (?<=U[pq])[mv]                                              # in, last; the weeks of
    | [msv](?=[Cu][Lpqr]*[Mmsv]) | (?<=[Mmsv][Cu])[msv] | (?<=[Mmsv][Cu][Lpqr])[msv]
    | (?<=T)m | m(?=P) | (?<=[nN])c(?=[Lq]?[Yy]) | (?<=[nN]q)c(?=[Lq]?[Yy])
    """,
    re.VERBOSE,
)
_LISTED, _MONTHS = re.compile("(?=[mv,&]*M)(?:[mvM],)*[mvM],?&[Lpqr]?[mvM]"), str.maketrans("mv", "MM")
# The summer of "the colour of the summer sea", the 4 of "a table for 4 in June", "of 2019 pages", "in 2000 steps".
_NO_TIME = re.compile(
    "(?<=[pqr])S(?![Lpq]?[Yy])|[Nn](?=[Lpri]+M)|(?<=B)W(?=q)|(?<![MSPUW][pqr])(?<=[pqr])[Yy](?=x)"
    "|[Yy](?=z)|(?<![MSPUN,])(?<![MSP][Lpqr])y(?=x)"
)
_UNSETTLED = str.maketrans("msvczpqry", "xxxxxLLLY")


def _settled(marks: Sequence[Mark], month: re.Pattern[str]) -> list[Mark]:
    """With words that may be months as such where they fit `month` or are listed with one, else as nothing; and with
    the ``and`` of ``between … and …`` as ``to``."""
    letters = month.sub("M", "".join(mark.letter for mark in marks))
    letters = _LISTED.sub(lambda found: found[0].translate(_MONTHS), letters)
    letters = _NO_TIME.sub("x", letters).translate(_UNSETTLED)
    letters = re.sub("(E[^&Cx]*)&", r"\1C", letters)
    letters = re.sub("(?<!U)[AViu](?=[LoNnMDY]+[Cu])", "L", letters)  # since 3 May until 5 June
    return [mark._replace(letter=letter) for mark, letter in zip(marks, letters, strict=True)]


def _read(marks: Sequence[Mark], today: date) -> list[Days]:
    letters = "".join(mark.letter for mark in marks)
    periods: list[Days] = []
    end = 0
    for match in _FORMS.finditer(letters):
        found, between = _of_form(match, marks, today), letters[end : match.start()]
        if found and periods and _RANGE.fullmatch(between):
            found = _ranged(periods.pop(), found[0])
        if found and re.fullmatch("[&,]+[Lo]*", between) and not found[0].months and "Y" in match[0]:
            periods = [_in_year(one, found[0].last.year) for one in periods]  # May and June 2024
        periods += found
        end = match.end()
    return periods


def _opened(one: Days, lead: str, today: date) -> Days:
    """The year before or until it, or the time after or since it until today."""
    if lead in "Vu":
        return Days(one.first - _DAYS["y"] * _DAY, one.first - _DAY if lead == "V" else one.last)
    first = one.last + _DAY if lead == "A" else one.first
    return Days(first, today) if first <= today else one


def _of_form(match: re.Match[str], marks: Sequence[Mark], today: date) -> list[Days]:
    kind = next(kind for kind in _READERS if match[kind])
    found = _READERS[kind](marks[slice(*match.span(kind))], today)
    shift = "before" if match["before"] else "behind"
    found = [_shifted(found[0], marks[slice(*match.span(shift))])] if found and match[shift] else found
    lead = _LEAD.search(match.string, max(0, match.start() - 9), match.start())
    return [_opened(_latest(found[0], today), match.string[lead.start()], today)] if found and lead else found


def _ranged(first: Days, last: Days) -> list[Days]:
    """From the first of one to the last of another, in the year that either has."""
    if first.months != last.months:
        year = (last if first.months else first).first.year
        first, last = _in_year(first, year), _in_year(last, year)
    return [Days(first.first, last.last, first.months)] if first.first <= last.last else [first, last]


def _in_year(one: Days, year: int) -> Days:
    months = (year - one.first.year) * 12 if one.months else 0
    return Days(later(one.first, months), later(one.last, months))


def _shifted(one: Days, marks: Sequence[Mark]) -> Days:
    """So many days or weeks after or before; ``the week of`` a day: those around it."""
    by_letter = {mark.letter: mark for mark in marks}
    if by_letter.keys().isdisjoint("AaV"):
        around = 3 * _DAY if by_letter["U"].value == "w" and one.first == one.last else 0 * _DAY
        return one._replace(first=one.first - around, last=one.last + around)
    number = next((mark.number for mark in marks if mark.letter in "N#"), 1)
    length = timedelta(days=_DAYS[by_letter["U"].value] * number)
    return (
        one._replace(last=one.last + length)
        if {"A", "a"} & by_letter.keys()
        else one._replace(first=one.first - length)
    )


def _values(said: Sequence[Mark], letters: str) -> list[int]:
    return [mark.number for mark in said if mark.letter in letters]


def _dated(first: date, last: date, has_year: bool) -> list[Days]:
    return [Days(first, last, 0 if has_year else 12)]


def _month(said: Sequence[Mark]) -> tuple[int, int, bool]:
    """Year and month, and whether the year is known."""
    years = _values(said, "Y")
    return (years or [_ANY_YEAR])[0], (_values(said, "M") or [1])[0], bool(years)


def _day(said: Sequence[Mark], today: date) -> list[Days]:
    if said[0].letter == "D":
        year, month, *day = map(int, said[0].value.split("-"))
        if not day:
            return [Days(date(year, month, 1), later(date(year, month, 1), 1) - _DAY)]
        found = calendar_day(year, month, day[0]) or calendar_day(year, day[0], month)
        return [Days(found, found)] if found else []
    year, month, has_year = _month(said)
    days = [found for number in _values(said, "Nn") if (found := calendar_day(year, month, number))]
    if not days:
        return []
    if len(said) == 1:
        return [Days(days[0], days[0], 1)]  # on the 5th
    if any(mark.letter == "&" for mark in said):
        return [Days(day, day, 0 if has_year else 12) for day in days]
    return _dated(days[0], max(days), has_year)


def _of_month(said: Sequence[Mark], today: date) -> list[Days]:
    year, month, has_year = _month(said)
    first, after = date(year, month, 1), later(date(year, month, 1), 1)
    if parts := sorted(_values(said, "P")):
        begin, end = _PARTS[parts[0]][0], _PARTS[parts[-1]][1]
        return _dated(first + begin * _DAY, min(first + end * _DAY, after) - _DAY, has_year)
    return _dated(first, after - _DAY, has_year)


def _week(said: Sequence[Mark], today: date) -> list[Days]:
    year, month, has_year = _month(said)
    unit = next(mark.value for mark in said if mark.letter == "U")
    if unit == "y" and not has_year:
        return _running(said, today)  # "last year in May"
    first = date(year, month, 1)
    end = later(first, 1) if _values(said, "M") else later(first, 12)
    if unit not in "dw7":
        return _dated(first, end - _DAY, has_year)
    found: list[Days] = []
    for mark in said:
        if mark.letter in "OBn":
            length = 1 if unit == "d" else 7
            number = 5 if mark.letter == "B" else mark.number
            begin = end - length * _DAY if number == 5 else first + (number - 1) * length * _DAY
            found += _dated(begin, begin + (length - 1) * _DAY, has_year)
    return found


def _season(said: Sequence[Mark], today: date) -> list[Days]:
    year, _, has_year = _month(said)
    season = _values(said, "S")[0]
    # The winter of 2024 is the beginning or the end of it.
    firsts = [date(each, 3 * season or 12, 1) for each in range(year - (season == 0), year + (season > 0 or has_year))]
    return [Days(first, later(first, 3) - _DAY, 0 if has_year else 12) for first in firsts]


def _year(said: Sequence[Mark], today: date) -> list[Days]:
    first, months = date(said[-1].number, 1, 1), 12
    if said[0].letter == "P":
        first, months = later(first, 4 * said[0].number), 4
    return [Days(first, later(first, months) - _DAY)]


def _running(said: Sequence[Mark], today: date) -> list[Days]:
    """``yesterday``, ``last week``, ``3 days ago``, ``next Friday``, ``last May``."""
    by_letter = {mark.letter.replace("#", "N"): mark for mark in said}
    ahead = 1 if "F" in by_letter else 0 if "T" in by_letter else -1
    if relative := by_letter.get("R"):
        return [_part(_around(relative.value[-1], int(relative.value[:-1]), today), by_letter)]
    if day := by_letter.get("n"):
        return [_around("d", -day.number, today)]  # as Chinese and Japanese count days
    if "U" in by_letter:
        return _units(by_letter, ahead, today)
    if weekday := by_letter.get("W"):
        back = (today.weekday() - weekday.number) % 7 or 7 * ("B" in by_letter)
        return [_around("d", 7 - back if ahead > 0 else -back, today)]
    return [_named((_season if "S" in by_letter else _of_month)(said, today)[0], ahead, today)]


def _units(by_letter: Mapping[str, Mark], ahead: int, today: date) -> list[Days]:
    """``last week``, ``the last 3 days``, ``2 weeks ago``."""
    unit, count = by_letter["U"].value, by_letter["N"].number if "N" in by_letter else 1
    if "N" not in by_letter and unit == "d" and ahead:
        return []  # the last day of something
    if "N" in by_letter and "B" in by_letter:
        return [Days(_around(unit, -count, today).first, today)]
    return [_part(_around(unit, ahead * count, today), by_letter)]


def _part(one: Days, by_letter: Mapping[str, Mark]) -> Days:
    """Of a week its Friday, of a year its May or summer, where that was said."""
    length = (one.last - one.first).days
    if length == 6 and (weekday := by_letter.get("W")):
        day = one.first + weekday.number * _DAY
        return Days(day, day)
    if length > 31 and (name := by_letter.get("M") or by_letter.get("S")):
        return _in_year((_of_month if name.letter == "M" else _season)([name], one.first)[0], one.first.year)
    return one


def _named(one: Days, ahead: int, today: date) -> Days:
    """The last, this or the next month or season of that name."""
    years = [_in_year(one, today.year + step) for step in (0, 1, -1, -2)]
    fits = {1: lambda year: year.first > today, 0: lambda year: True, -1: lambda year: year.last < today}[ahead]
    return next(filter(fits, years))


def _around(unit: str, ahead: int, today: date) -> Days:
    """The day, week, weekend, month or year that lies so many ahead."""
    if unit == "d":
        return Days(today + ahead * _DAY, today + ahead * _DAY)
    if unit in "w7":
        monday = today + (7 * ahead - today.weekday()) * _DAY
        return Days(monday + (5 if unit == "7" else 0) * _DAY, monday + 6 * _DAY)
    first = later(today.replace(day=1, month=1 if unit == "y" else today.month), ahead * (12 if unit == "y" else 1))
    return Days(first, later(first, 12 if unit == "y" else 1) - _DAY)


_READERS = {
    "week": _week, "day": _day, "running": _running, "month": _of_month, "season": _season, "year": _year,
}  # fmt: skip
