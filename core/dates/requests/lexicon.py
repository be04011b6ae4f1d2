"""Split a request into tokens, with the lexicon of a language.

A lexicon is a file `data/<language>.toml`. Its table `tokens` lists the phrases for each kind of
token; `docs/extending.md` shows how to write one. A token is the meaning of a word or number:
"remind me at half past 8" becomes REQUEST, AT, HALF_PAST and NUMBER. `grammar` reads the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple
from zoneinfo import available_timezones

from core.dates.tokens import Kind, Token, Unit, lexicon_languages, parse_token_name
from core.text.normalize import plain_with_offsets, read_language_data

_PACKAGE = "core.dates.requests"
MAX_REQUEST_CHARS = 2_000
"""Only this many characters at the beginning of a text are read."""
MAX_ENDING_LETTERS = 5
"""A star at the end of a phrase matches at most this many letters."""


LATIN_LETTERS = "[a-z]"
ASKING_KINDS = frozenset({Kind.REQUEST, Kind.MENTION, Kind.LIST})
"""Tokens of a message that asks for a reminder, or about reminders."""
ASIDE_KINDS = frozenset({Kind.HOW, Kind.BLOCK, Kind.CONDITION})
"""Further kinds of tokens that show that a message may be about reminders."""
MAX_MINUTE = 59
NO_CLOCK_TIME = -1
"""The number of a CLOCK that doesn't exist, such as 13:70."""


# --- Lexicons ---


class ShortWeekdays(NamedTuple):
    """Weekdays of one letter, such as Korean 화 and 목. The table `short_weekdays` lists them."""

    days: Mapping[str, int]
    # Matches a weekday and the separators before it.
    item: re.Pattern[str]
    # Matches what may follow the last weekday.
    end: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The phrases of a language, and the tokens that they mean."""

    language: str
    # Whether days precede months in numbers: 3/5 is 3 May.
    is_day_first: bool
    # Whether 3.5 may be 3 May even without a preposition.
    has_point_dates: bool
    # Whether a question word may be anywhere in a request for knowledge.
    has_free_questions: bool
    # Whether the script has no spaces between words.
    is_unspaced: bool
    # Whether words such as "before" follow the time to which they refer.
    has_postpositions: bool
    # A text with one of these letters may be in this language.
    letters: re.Pattern[str]
    phrases: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    stems: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    # The lengths of the phrases that begin with each character, longest first.
    lengths: dict[str, list[int]] = field(default_factory=dict)
    # Endings that count only after another phrase in the same word.
    particles: frozenset[str] = frozenset()
    # Words to remove at the beginning and the end of a task, and endings to replace.
    task_starts: tuple[str, ...] = ()
    task_ends: tuple[str, ...] = ()
    # Words that don't name a task, such as "something".
    task_placeholders: frozenset[str] = frozenset()
    task_endings: tuple[tuple[str, str], ...] = ()
    # Words of a request that may also be a thing in its task: "a reminder".
    task_things: frozenset[str] = frozenset()
    # Words such as "not" that belong to the beginning of a task: "not to eat".
    task_negations: frozenset[str] = frozenset()
    # Last characters of a request that may begin a time instead: the 下 of "提醒我下午三点".
    shared_ends: str = ""
    # The task of a request for an alarm, if the request names none.
    alarm: str = ""
    # Weekdays of one letter, which count only in a list or after "every week".
    short_weekdays: ShortWeekdays | None = None
    # Long names of days and months by their first letter: a word with one wrong letter is read as
    # one of these.
    long_names: dict[str, list[str]] = field(default_factory=dict)


def request_languages() -> tuple[str, ...]:
    """Return the languages with a lexicon. English comes first."""
    return lexicon_languages()


@cache
def load_lexicon(language: str) -> Lexicon:
    """Return the lexicon of one of the `request_languages`."""
    return build_lexicon(language, read_language_data(language, _PACKAGE))


class Triggers(NamedTuple):
    """The phrases that a message about reminders must contain, in plain form.

    They are a small part of the lexicon. With them, a message is checked without loading the
    lexicons of all languages.
    """

    # A text with one of these letters may be in this language.
    letters: re.Pattern[str]
    # Requests, mentions of reminders, and questions about them. A mention such as "reminder"
    # represents all phrases that contain it.
    asking: frozenset[str]
    # The phrases of `asking`, and words such as "don't wake". No phrase begins with another one.
    all: tuple[str, ...]

    def may_concern(self, plain: str) -> bool:
        """Return whether a plain text may be about reminders."""
        return any(phrase in plain for phrase in self.all)


@cache
def load_triggers(language: str) -> Triggers:
    """Return the triggers of one of the `request_languages`."""
    data = read_language_data(language, _PACKAGE)
    forms: dict[Kind, set[str]] = {kind: set() for kind in ASKING_KINDS | ASIDE_KINDS}
    for name, phrases in data["tokens"].items():
        kinds = {token.kind for token in parse_token_name(name)} & forms.keys()
        if kinds:
            forms[min(kinds)] |= set(_list_forms(phrases))
    asking = set().union(*(forms[kind] for kind in ASKING_KINDS))
    aside = set().union(*(forms[kind] for kind in ASIDE_KINDS))
    boundary = "" if data.get("is_unspaced", False) else r"(?<!\w)"
    mentions = forms[Kind.MENTION]
    mention = re.compile(boundary + f"(?:{'|'.join(map(re.escape, mentions))})")
    asking = mentions | {form for form in asking if not mention.search(form)}
    everything = asking | {form for form in aside if not mention.search(form)}
    letters = re.compile(data.get("letters", LATIN_LETTERS))
    return Triggers(letters, frozenset(asking), tuple(_drop_longer(everything)))


def _list_forms(phrases: str) -> Iterator[str]:
    """Yield the plain forms of phrases. A stem loses its star."""
    for phrase in re.split(r"[,\n]", phrases):
        for variant in _expand(phrase):
            form = _fold(variant.strip()).removesuffix("*")
            if form:
                yield form


def _drop_longer(forms: Iterable[str]) -> Iterator[str]:
    """Yield the forms that don't begin with another one."""
    shorter = None
    for form in sorted(forms):
        if shorter is None or not form.startswith(shorter):
            shorter = form
            yield form


def build_lexicon(language: str, data: Mapping[str, Any]) -> Lexicon:
    """Build a lexicon from the content of its file.

    If a phrase is listed twice, its first meaning counts.
    """
    task = data.get("task", {})
    particles = [_fold(form.strip()) for form in data.get("particles", "").split(",")]
    lexicon = Lexicon(
        language=language,
        is_day_first=data.get("is_day_first", True),
        has_point_dates=data.get("has_point_dates", False),
        has_free_questions=data.get("has_free_questions", False),
        is_unspaced=data.get("is_unspaced", False),
        has_postpositions=data.get("has_postpositions", False),
        letters=re.compile(data.get("letters", LATIN_LETTERS)),
        particles=frozenset(particles),
        task_starts=tuple(map(_fold, task.get("starts", ()))),
        task_ends=tuple(map(_fold, task.get("ends", ()))),
        task_placeholders=frozenset(map(_fold, task.get("placeholders", ()))),
        task_endings=tuple(task.get("endings", {}).items()),
        task_things=frozenset(map(_fold, task.get("things", ()))),
        task_negations=frozenset(map(_fold, task.get("negations", ()))),
        shared_ends=data.get("shared_ends", ""),
        alarm=task.get("alarm", ""),
        short_weekdays=_read_short_weekdays(data.get("short_weekdays", {})),
    )
    _add_tokens(lexicon, data["tokens"])
    for particle in filter(None, particles):
        _add_phrase(lexicon, particle, (Token(Kind.FILLER),))
    _add_table(lexicon, data.get("numbers", {}), lambda key: Token(Kind.NUMBER, float(key)))
    _add_table(lexicon, data.get("cities", {}), lambda key: Token(Kind.CITY, zone=key))
    _add_table(lexicon, data.get("zones", {}), lambda key: Token(Kind.ZONE, zone=key))
    for form, city in _list_zone_cities():
        lexicon.phrases.setdefault(form, city)
        _add_length(lexicon, form)
    for lengths in lexicon.lengths.values():
        lengths.sort(reverse=True)
    return lexicon


def _add_tokens(lexicon: Lexicon, table: Mapping[str, str]) -> None:
    """Add the phrases of the table `tokens`."""
    for name, phrases in table.items():
        tokens = parse_token_name(name)
        for phrase in re.split(r"[,\n]", phrases):
            for form in _expand(phrase):
                _add_phrase(lexicon, form, tokens)


@cache
def _list_zone_cities() -> Sequence[tuple[str, tuple[Token, ...]]]:
    """Return the plain names of the cities in the names of time zones, for all lexicons."""
    cities = []
    for zone in available_timezones():
        area, _, city = zone.rpartition("/")
        if area and area not in ("Etc", "SystemV", "US"):
            cities.append((_fold(city.replace("_", " ")), (Token(Kind.CITY, zone=zone),)))
    return cities


def _add_table(
    lexicon: Lexicon, table: Mapping[str, str], make_token: Callable[[str], Token]
) -> None:
    """Add the phrases of a table in which each key means one token."""
    for key, phrases in table.items():
        for phrase in phrases.split(","):
            _add_phrase(lexicon, phrase, (make_token(key),))


def _expand(phrase: str) -> list[str]:
    """Return all phrases that a phrase with alternatives means: "(set|add) a (new|) alarm"."""
    alternatives = re.search(r"\(([^()]*)\)", phrase)
    if alternatives is None:
        return [re.sub(r"\s+", " ", phrase)]
    before, after = phrase[: alternatives.start()], phrase[alternatives.end() :]
    phrases: list[str] = []
    for choice in alternatives[1].split("|"):
        phrases += _expand(before + choice + after)
    return phrases


def _read_short_weekdays(table: Mapping[str, str]) -> ShortWeekdays | None:
    """Read the table `short_weekdays` of a lexicon. Returns None if there is none."""
    if not table:
        return None
    letters = table["letters"]
    item = re.compile(f"(?:{table['separators']})*([{letters}])(?:{table.get('suffix', '')})?")
    days = {letter: day for day, letter in enumerate(letters)}
    return ShortWeekdays(days, item, re.compile(table["end"]))


def _fold(text: str) -> str:
    return plain_with_offsets(text)[0]


def _add_phrase(lexicon: Lexicon, phrase: str, tokens: tuple[Token, ...]) -> None:
    """Add a phrase to a lexicon, unless it is already there. A star at its end makes it a stem."""
    form = _fold(phrase.strip())
    if not form:
        return
    if form.endswith("*"):
        form = form[:-1]
        lexicon.stems.setdefault(form, tokens)
    else:
        lexicon.phrases.setdefault(form, tokens)
        if tokens[0].kind in _ABBREVIATED and len(form) <= MAX_ABBREVIATION and form.isalpha():
            lexicon.phrases.setdefault(f"{form}.", tokens)
            _add_length(lexicon, f"{form}.")
        if tokens[0].kind in _CORRECTABLE and len(form) >= MIN_CORRECTABLE and form.isalpha():
            lexicon.long_names.setdefault(form[0], []).append(form)
    _add_length(lexicon, form)


def _add_length(lexicon: Lexicon, form: str) -> None:
    lengths = lexicon.lengths.setdefault(form[0], [])
    if len(form) not in lengths:
        lengths.append(len(form))


_ABBREVIATED = {Kind.WEEKDAY, Kind.MONTH}
MAX_ABBREVIATION = 4
"""Names of days and months with at most this many letters may end with a full stop: "Dec. 3"."""
_CORRECTABLE = {Kind.WEEKDAY, Kind.WEEKDAYS, Kind.MONTH, Kind.RELATIVE}
MIN_CORRECTABLE = 7
"""Words with at least this many letters are read as a day or month with one wrong letter."""

# --- Texts ---

_DIGITS = re.compile(
    r"""
    (?P<iso>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:t(?=\d))?)(?![-/.\d])
    |(?P<clock>(?<![\d.,:])(?P<hour>\d{1,2})(?P<mark>[:h])(?P<minute>\d\d)(?::[0-5]\d)?)(?!\d)
    |(?P<date>(?<![\d.,:/])\d{1,2}(?P<sign>[./-])\d{1,2}(?P=sign)(?:\d{4}|\d\d))(?![\d/])
    |(?P<short>(?<![\d.,:/])(?P<left>\d{1,2})(?P<point>[./])(?P<right>\d{1,2})\.?)(?![\d/:])
    |(?P<ordinal>(?<![\d.,])\d{1,2})(?:st|nd|rd|th|er|º|ª)\b
    |(?P<number>\d+(?:[.,]\d+)?)
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]+|\s+|[\s\S]")
_HAN_NUMBER = re.compile("[零〇一二两三四五六七八九十百]+")
_HAN_DIGITS = {character: value for value, character in enumerate("〇一二三四五六七八九")}
_HAN_DIGITS |= {"零": 0, "两": 2}
_SIGNS = {",": Kind.COMMA, "，": Kind.COMMA, "、": Kind.COMMA, ":": Kind.COLON, "：": Kind.COLON}
_SIGNS |= {"-": Kind.TO, "–": Kind.TO, "—": Kind.TO, "~": Kind.TO, "〜": Kind.TO, "。": Kind.COMMA}


class Text(NamedTuple):
    """A text in plain form, and the position of each plain character in the original text."""

    original: str
    plain: str
    offsets: list[int] | None

    def locate(self, index: int) -> int:
        """Return the index in the original text for an index in the plain text."""
        if self.offsets is None:
            return index
        return self.offsets[index] if index < len(self.offsets) else len(self.original)


def plain_text(text: str) -> Text:
    """Return a text with its plain form. Only the beginning of a long text is converted."""
    original = text[:MAX_REQUEST_CHARS]
    plain, offsets = plain_with_offsets(original)
    return Text(original, plain.replace("\u2019", "'"), offsets)


def tokenize_request(text: Text, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of a text. White space results in no token."""
    tokens: list[Token] = []
    position = 0
    while position < len(text.plain):
        pieces, position = _read_piece(text.plain, position, lexicon)
        tokens.extend(pieces)
    return list(_join_numbers(_read_short_days(tokens, text.plain, lexicon.short_weekdays)))


_OFFSET = re.compile(r"(?:utc|gmt)\s?([+-])(\d{1,2})(?![\d:])")


def _read_offset(plain: str, position: int) -> Token | None:
    """Return the ZONE of "UTC+1". Its IANA name has the opposite sign."""
    match = _OFFSET.match(plain, position)
    if match is None or int(match[2]) > 12:
        return None
    sign = "-" if match[1] == "+" else "+"
    zone = f"Etc/GMT{sign}{int(match[2])}"
    return Token(Kind.ZONE, zone=zone, start=position, end=match.end())


def _read_piece(plain: str, position: int, lexicon: Lexicon) -> tuple[list[Token], int]:
    """Return the tokens at a position of the plain text, and where they end."""
    offset = _read_offset(plain, position)
    if offset is not None:
        return [offset], offset.end
    phrase, end = _match_phrase(plain, position, lexicon)
    if phrase:
        return [token._replace(start=position, end=end) for token in phrase], end
    digits = _DIGITS.match(plain, position)
    if digits:
        return [_tokenize_digits(digits)], digits.end()
    if lexicon.is_unspaced:
        han = _HAN_NUMBER.match(plain, position)
        if han:
            token = Token(Kind.NUMBER, _parse_han_number(han[0]), start=position, end=han.end())
            return [token], han.end()
    word = _WORD.match(plain, position)
    end = position + 1 if word is None or lexicon.is_unspaced else word.end()
    piece = plain[position:end]
    if piece.isspace():
        return [], end
    name = _correct_name(piece, lexicon)
    if name:
        return [token._replace(start=position, end=end) for token in lexicon.phrases[name]], end
    return [Token(_SIGNS.get(piece, Kind.OTHER), start=position, end=end)], end


def _match_phrase(plain: str, position: int, lexicon: Lexicon) -> tuple[tuple[Token, ...], int]:
    """Return the tokens of the longest phrase at a position, and where it ends.

    Without a phrase, return () and the position. In scripts with spaces, a phrase consists of whole
    words.
    """
    for length in lexicon.lengths.get(plain[position], ()):
        end = position + length
        form = plain[position:end]
        if len(form) < length:
            continue  # The text is too short.
        if form in lexicon.phrases and _is_whole(plain, position, end, lexicon):
            if (
                form[-1] in lexicon.shared_ends
                and length > 1
                and _begins_phrase(plain, end - 1, lexicon)
            ):
                continue
            if lexicon.phrases[form][0].kind is Kind.ZONE and plain[:position].endswith("'"):
                continue  # The "est" of French "c'est" isn't a time zone.
            return lexicon.phrases[form], end
        if form in lexicon.stems and _is_whole(plain, position, position + 1, lexicon, end):
            end = _end_of_word(plain, end)
            return lexicon.stems[form], end
    return (), position


def _begins_phrase(plain: str, position: int, lexicon: Lexicon) -> bool:
    """Return whether a phrase of several characters begins at a position."""
    return any(
        length > 1 and plain[position : position + length] in lexicon.phrases
        for length in lexicon.lengths.get(plain[position], ())
    )


def _correct_name(word: str, lexicon: Lexicon) -> str:
    """Return the name of the day or month that a long word means with one wrong letter, or ""."""
    if len(word) < MIN_CORRECTABLE - 1 or not word.isalpha():
        return ""
    names = lexicon.long_names.get(word[0], ())
    return next((name for name in names if _differ_by_one(word, name)), "")


def _differ_by_one(word: str, name: str) -> bool:
    """Return whether one letter is missing, added or wrong, or two letters are swapped."""
    if abs(len(word) - len(name)) > 1:
        return False
    pairs = enumerate(zip(word, name, strict=False))
    begin = next((index for index, (left, right) in pairs if left != right), None)
    if begin is None:
        return True
    first, second = word[begin:], name[begin:]
    if len(first) == len(second):
        is_swapped = first[:2] == second[:2][::-1] and first[2:] == second[2:]
        return is_swapped or first[1:] == second[1:]
    return first[1:] == second or first == second[1:]


def _read_short_days(
    tokens: list[Token], plain: str, short_weekdays: ShortWeekdays | None
) -> list[Token]:
    """Read one-letter weekdays.

    They are read as weekdays only after "every week", after another weekday, or in a list.
    """
    if short_weekdays is None:
        return tokens
    result: list[Token] = []
    position = 0
    for token in tokens:
        if token.start < position:
            continue
        begins_word = token.start == 0 or not plain[token.start - 1].isalnum()
        if begins_word and token.end - token.start < MIN_CORRECTABLE:
            days, position = _match_short_days(plain, token.start, short_weekdays)
            if len(days) > 1:
                result += days
                continue
        result.append(token)
        is_week = token.kind is Kind.REPEAT and token.unit is Unit.WEEK
        if is_week or token.kind is Kind.WEEKDAY:
            days, position = _match_short_days(plain, token.end, short_weekdays)
            result += days
    return result


def _match_short_days(
    plain: str, start: int, short_weekdays: ShortWeekdays
) -> tuple[list[Token], int]:
    """Return the one-letter weekdays at a position and where they end, or [] and 0."""
    days: list[Token] = []
    position = start
    while match := short_weekdays.item.match(plain, position):
        day = short_weekdays.days[match[1]]
        days.append(Token(Kind.WEEKDAY, day, start=match.start(1), end=match.end()))
        position = match.end()
    if not days or not short_weekdays.end.match(plain, position):
        return [], 0
    return days, position


def _is_whole(
    plain: str, start: int, end: int, lexicon: Lexicon, stem_end: int | None = None
) -> bool:
    """Return whether a phrase is more than a part of a word.

    A phrase that is a stem ends at `stem_end`.
    """
    if lexicon.is_unspaced:
        return True
    begins_inside = start > 0 and plain[start - 1].isalpha() and plain[start].isalpha()
    if begins_inside and not _is_after_particle(plain, start, lexicon):
        return False
    begins_word = start == 0 or not plain[start - 1].isalnum()
    if begins_word and plain[start:end] in lexicon.particles:
        return False
    if stem_end is not None:
        return _end_of_word(plain, stem_end) - stem_end <= MAX_ENDING_LETTERS
    if end >= len(plain) or not plain[end - 1].isalpha() or not plain[end].isalpha():
        return True
    return _is_hangul(plain[end]) and _continues(plain, end, lexicon)


def _is_hangul(character: str) -> bool:
    return "\uac00" <= character <= "\ud7af"


def _is_after_particle(plain: str, start: int, lexicon: Lexicon) -> bool:
    """Return whether another phrase continues a Korean word at `start`, like the 에 of "9시에"."""
    return _is_hangul(plain[start]) and lexicon.language == "ko"


@lru_cache(maxsize=2_000)
def _split_hangul(word: str, lexicon_id: str) -> bool:
    """Return whether a run of Korean letters consists of phrases of the lexicon."""
    lexicon = load_lexicon(lexicon_id)
    if not word:
        return True
    for length in lexicon.lengths.get(word[0], ()):
        form = word[:length]
        if len(form) < length or form not in lexicon.phrases:
            continue
        if _split_hangul(word[length:], lexicon_id):
            return True
    return False


def _continues(plain: str, end: int, lexicon: Lexicon) -> bool:
    """Return whether the rest of a Korean word consists of phrases, like the 에는 of "9시에는"."""
    return _split_hangul(plain[end : _end_of_word(plain, end)], lexicon.language)


def _end_of_word(plain: str, position: int) -> int:
    end = position
    while end < len(plain) and plain[end].isalpha():
        end += 1
    return end


def _tokenize_digits(match: re.Match[str]) -> Token:
    """Return the token of a clock time, a date or a number in digits."""
    numbers = tuple(map(int, re.findall(r"\d+", match[0])))
    token = Token(Kind.NUMBER, is_digits=True, start=match.start(), end=match.end())
    if match["iso"] or match["date"]:
        return token._replace(kind=Kind.DATE, date=numbers)
    if match["clock"]:
        minute = int(match["hour"]) * 60 + int(match["minute"])
        if int(match["minute"]) > MAX_MINUTE:
            minute = NO_CLOCK_TIME
        return token._replace(kind=Kind.CLOCK, number=minute)
    if match["short"]:
        if match["point"] != ".":
            return token._replace(kind=Kind.DATE, date=numbers)
        has_final_point = match["short"].endswith(".")
        return token._replace(kind=Kind.CLOCK_OR_DATE, date=numbers, number=has_final_point)
    if match["ordinal"]:
        return token._replace(kind=Kind.MONTH_DAY, number=numbers[0])
    number = float(match["number"].replace(",", "."))
    is_year = len(match["number"]) == 4 and 1990 <= number < 2200
    return token._replace(kind=Kind.YEAR if is_year else Kind.NUMBER, number=number)


def _parse_han_number(text: str) -> int:
    """Return the value of a number such as 二十五 or 一百二."""
    total = 0
    digit = 0
    for character in text:
        if character in ("十", "百"):
            total += (digit or 1) * (10 if character == "十" else 100)
            digit = 0
        else:
            digit = digit * 10 + _HAN_DIGITS[character]
    return total + digit


def _join_numbers(tokens: Sequence[Token]) -> Iterator[Token]:
    """Join number words such as "forty" and "five"."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        next_index = index + 1
        # Skip the hyphen of "forty-five".
        if next_index < len(tokens) and _is_hyphen_after(tokens[next_index], token):
            next_index += 1
        is_ten = token.kind is Kind.NUMBER and not token.is_digits and token.number % 10 == 0
        if is_ten and 20 <= token.number < 100 and next_index < len(tokens):
            ones = tokens[next_index]
            if _is_small_number(ones):
                yield token._replace(number=token.number + ones.number, end=ones.end)
                index = next_index + 1
                continue
        yield token
        index += 1


def _is_hyphen_after(token: Token, previous: Token) -> bool:
    return token.kind is Kind.TO and token.start == previous.end


def _is_small_number(token: Token) -> bool:
    return token.kind is Kind.NUMBER and not token.is_digits and 1 <= token.number <= 9
