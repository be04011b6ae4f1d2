"""Define the kinds of tokens that all readers of times share, and split sentences about the past.

A token is the meaning of a word or number in a time: ``remind me at half past 8`` becomes REQUEST,
AT, HALF_PAST and NUMBER, and ``in early May`` becomes IN, THIRD and MONTH. A grammar is a regular
expression over kinds: `periods_in_text` reads periods in the past, and `requests` reads moments and
recurrences in the future. A lexicon lists the phrases for each kind.

`tokenize` splits a sentence in any language for `periods_in_text`, and `tokenize_name` splits a
text that is only the name of a period. `data/period_words.toml` lists the words for each kind. If
that file lacks a name of a day or month, or a number such as "second", the word comes from the
lexicons of `requests`. Some names of months are also other words or names (``may``, ``mars``,
``April``). In a sentence, such a word counts as a month only if the tokens next to it suggest a
date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from core.dates.cursor import word_tables
from core.text.normalize import LETTER_CLASS, comparison_form, language_data, read_language_data

MAX_TEXT_CHARS = 2_000
"""Only this many characters at the beginning of a text are read."""
_MAX_ENDING_LETTERS = 4
"""A star in `data/period_words.toml` matches an ending of at most this many letters."""


_LEXICONS = "core.dates.requests"
MIN_DAY_NAME = 5
"""In a sentence, names of days and months from the lexicons of `requests` need this many letters. A
character of an East Asian script counts as three letters."""
_EASTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_FIRST_CHARACTER = 0xE000
"""The first private Unicode character. A grammar matches strings in which each kind is one
character."""


class Kind(StrEnum):
    """The kind of a token. The comments give examples or the meaning of the token's number.

    Each kind is a single private character, so that a regular expression can match a sequence of
    kinds. See `compile_grammar` for how these expressions are written.
    """

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return chr(_FIRST_CHARACTER + count)

    NUMBER = auto()  # in digits or words
    ONE = auto()  # "a" and "an", which are also articles
    CLOCK = auto()  # 18:30, noon: the minute of the day
    CLOCK_OR_DATE = auto()  # 7.30; 1 for "24.12.", which ends with a point
    SPAN = auto()  # "half an hour": a number of units
    DATE = auto()  # a date in digits
    YEAR = auto()
    ORDINAL = auto()  # first: 1, last: -1
    MONTH_DAY = auto()  # 30th
    MINUTE = auto()
    HOUR = auto()
    HOUR_OR_AT = auto()  # Turkish "saat": "2 saat sonra", "saat 9'da"
    HOUR_SIGN = auto()  # the h of "18h"
    UNIT = auto()  # a day or a longer unit
    OCLOCK = auto()
    AMPM = auto()  # 0 or 12
    PART = auto()  # a part of the day: the hour that it means
    PAST_OR_PART = auto()  # Turkish "geçe" and "gece", which are alike without accents
    HALF_TO = auto()  # German "halb": "halb acht" is 7:30
    HALF_PAST = auto()
    AND_HALF = auto()
    QUARTER = auto()  # 15 or 45 minutes
    QUARTER_OF = auto()  # Russian "четверть восьмого" is 7:15
    PAST = auto()
    TO_HOUR = auto()  # "ten to five"
    PAST_AFTER = auto()  # Turkish "sekizi on geçe"
    TO_AFTER = auto()  # Turkish "sekize on var"
    MINUS = auto()  # French "cinq heures moins dix"
    WITHOUT = auto()  # Russian "без десяти пять"
    AT = auto()
    AT_OR_TO = auto()  # Spanish "para las": "para las 8", "diez para las 8"
    IN = auto()
    ON = auto()  # 1: always begins a time after a request
    THE = auto()
    OF = auto()
    AND = auto()
    OR = auto()
    COMMA = auto()
    COLON = auto()
    TO = auto()  # the "to" of a range
    FROM = auto()
    BETWEEN = auto()
    RANGE_END = auto()  # follows a range: Japanese "間"
    LATER = auto()  # "from now"; follows its span
    AGO = auto()
    BEFORE = auto()
    FOR = auto()
    DURING_AFTER = auto()  # follows its span: Turkish "boyunca"
    NEXT = auto()
    THIS = auto()
    LAST = auto()
    EVERY = auto()
    EVERY_AFTER = auto()  # follows its unit: Korean "마다"
    OTHER_EVERY = auto()  # the "other" of "every other day"
    ALTERNATE_AFTER = auto()  # French "un jour sur deux"
    REPEAT = auto()  # "daily": a number of units
    ALWAYS = auto()
    WEEKDAY = auto()  # 0 for Monday
    WEEKDAYS = auto()  # each of these weekdays, such as "mondays"; 7: Monday to Friday, 8: weekends
    DAY_GROUP = auto()  # 7: the word "weekday", 8: the word "weekend"
    MONTH = auto()
    MONTH_SIGN = auto()  # follows the number of a month: 月
    DAY_SIGN = auto()  # follows the number of a day: 日
    POINT = auto()  # the full stop after the number of a day: German "3. Mai"
    DAY_PREFIX = auto()  # precedes the number of a day: Portuguese "dia"
    RELATIVE = auto()  # tomorrow, next week: a number of units from today
    PART_OF_RELATIVE = auto()  # "tonight": today, and the hour
    FEAST = auto()  # month * 100 + day, or with `Token.feast` the days after a movable feast
    MONTH_EDGE = auto()  # "end of the month": the day
    EDGE_OF = auto()  # "the end of" before a month: 1 or -1
    EDGE_AFTER = auto()  # follows a month: Japanese "末"
    VAGUE = auto()  # "soon", "when I get home"; 1: "some day", which is vague without a day
    UNTIL = auto()
    UNTIL_AFTER = auto()
    START = auto()
    START_AFTER = auto()
    EXCEPT = auto()
    EXCEPT_AFTER = auto()
    TIMES = auto()  # the "times" of "3 times"
    TIMES_COUNT = auto()  # "twice"
    PER = auto()
    CITY = auto()  # the index of a zone; see `Token.zone`
    ZONE = auto()  # "UTC", "Moscow time"
    ZONE_WORD = auto()
    NO = auto()  # begins a correction
    REQUEST = auto()  # 1: asks to wake the person, 2: asks for an alarm, 3: may tell of the past
    MENTION = auto()  # requests only at the beginning or the end of a sentence: "reminder"
    BLOCK = auto()  # "don't remind me"; 1: only before a request, such as "translate"
    CONDITION = auto()  # asks to be told only if something happens: "tell me only if"
    PERSON = auto()  # somebody who reminds, if the word begins a sentence; 1: precedes the verb
    LIST = auto()  # asks for the reminders
    HOW = auto()  # asks how to set a reminder; 1: only at the beginning
    TOLD = auto()  # tells about a reminder: "sent", "forgot"
    QUESTION = auto()  # who, what: asks for knowledge after a request
    POLITE = auto()
    FILLER = auto()  # between two parts of a time: "sharp", "day"
    OTHER = auto()
    # Only in the names of periods that have passed:
    SINCE = auto()
    AFTER = auto()  # in a request, before a clock time: "not before 10"
    AFTERWARDS = auto()  # follows the word that it refers to, like Turkish "sonra"
    AROUND = auto()
    BY = auto()  # by, from, about: prepositions that are also used with people and things
    SEASON = auto()  # number 0: winter to 3: autumn
    NUMBER_WORD = auto()
    ROUND_YEAR = auto()  # 1900, 2000 or 2100, which may be a quantity
    NAMELIKE_MONTH = auto()  # also another word or a name: "april", "june"
    VERBLIKE_MONTH = auto()  # also a verb: "may", "march"
    SHORT_MONTH = auto()  # needs a number or a part next to it: "jan", "mar"
    RARE_MONTH = auto()  # counts only between a day and a year: Italian "set"
    MONTH_PREFIX = auto()  # precedes the number of a month: Vietnamese "tháng"
    DECADE_SIGN = auto()  # the s of "1990s"
    THIRD = auto()  # of a month or a year: 0 early, 1 mid, 2 late


class Unit(Enum):
    """A unit of time."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    WEEKEND = "weekend"
    MONTH = "month"
    YEAR = "year"


class Token(NamedTuple):
    """The meaning of a word, number, sign or phrase.

    In a request, it also has a place in the text.
    """

    kind: Kind
    # The meaning of the number depends on the kind; see `Kind`.
    number: float = 0
    unit: Unit | None = None
    # Set for DATE: the numbers in the order of the text, such as (3, 5) or (2026, 12, 1). In the
    # name of a period, the year comes first.
    date: tuple[int, ...] = ()
    # An IANA name; set for CITY and ZONE.
    zone: str = ""
    # The name of a feast in `feasts.toml`.
    feast: str = ""
    # Whether the token is written in digits.
    is_digits: bool = False
    start: int = 0
    end: int = 0


def compile_grammar(grammar: str) -> re.Pattern[str]:
    """Compile a regular expression over kinds of tokens, to match against `kinds_of`.

    Lower-case names of kinds represent tokens: ``at number oclock?``. All other characters have the
    syntax of `re`. White space and comments after ``#`` are ignored.
    """
    without_comments = re.sub(r"#.*", "", grammar)
    # A name after "?P<" or "(?P=" is the name of a group, not a kind.
    letters = re.sub(
        r"(?<!P[<=])\b[a-z_]+\b", lambda name: Kind[name[0].upper()].value, without_comments
    )
    return re.compile(re.sub(r"\s", "", letters))


def kinds_of(tokens: Sequence[Token]) -> str:
    """Return the kinds of the tokens as a string, one character per token."""
    return "".join(token.kind for token in tokens)


_UNIT_NAMES = {unit.value for unit in Unit}
_KINDS_WITH_UNIT = (
    Kind.UNIT,
    Kind.RELATIVE,
    Kind.SPAN,
    Kind.REPEAT,
    Kind.DAY_PREFIX,
    Kind.DAY_SIGN,
    Kind.PART,
)
_FIXED_UNITS = {
    Kind.MINUTE: Unit.MINUTE,
    Kind.HOUR: Unit.HOUR,
    Kind.HOUR_OR_AT: Unit.HOUR,
    Kind.HOUR_SIGN: Unit.HOUR,
}


def parse_token_name(name: str) -> tuple[Token, ...]:
    """Return the tokens that a key of a lexicon's table `tokens` means.

    ``month 5`` is a token with a number, ``relative 1 day`` is a token with a number and a unit,
    ``feast easter 1`` is the day after Easter, ``half_to number 8`` is two tokens, and ``nothing``
    is no token.
    """
    if name == "nothing":
        return ()
    tokens: list[Token] = []
    for part in name.split():
        if re.fullmatch(r"[-+]?[\d.]+", part):
            tokens[-1] = tokens[-1]._replace(number=float(part))
        elif part in _UNIT_NAMES and tokens and tokens[-1].kind in _KINDS_WITH_UNIT:
            tokens[-1] = tokens[-1]._replace(unit=Unit(part))
        elif tokens and tokens[-1].kind is Kind.FEAST and part.upper() not in Kind.__members__:
            tokens[-1] = tokens[-1]._replace(feast=part)
        else:
            tokens.append(Token(Kind[part.upper()]))
    return tuple(token._replace(unit=_FIXED_UNITS.get(token.kind, token.unit)) for token in tokens)


_UNKNOWN = (Token(Kind.OTHER),)


_DAY_NAMES = (Kind.FEAST, Kind.WEEKDAY, Kind.MONTH, Kind.RELATIVE, Kind.ORDINAL)

# --- Words ---

# Splits "on 3 May, 2026-05" into "on", "3", "May", ",", "2026-05".
_WORD_OR_NUMBER = re.compile(
    # 2026-05
    r"(?<![-/])\d{4}-(?:0[1-9]|1[012])(?![-/\da-z])"
    # 2026-05-01, 1.5.2026
    r"|\d{4}([-/.])\d\d?\1\d\d?|\d\d?([./])\d\d?\2\d{4}"
    r"|\d+"
    # A word, a word of an Indian script with its vowel signs, or a single other character.
    rf"|(?:(?!\d){LETTER_CLASS}|[\u0900-\u0963\u0970-\u0dff])+|\S"
)


@dataclass(frozen=True, slots=True)
class PeriodLexicon:
    """The phrases that name periods of the past, split into words and numbers."""

    phrases: dict[tuple[str, ...], tuple[Token, ...]] = field(default_factory=dict)
    # For each word, the number of words in the longest phrase that begins with it.
    max_words: dict[str, int] = field(default_factory=dict)
    # Words with a star, such as "erste*", without the star. See `_MAX_ENDING_LETTERS`.
    stems: dict[str, tuple[Token, ...]] = field(default_factory=dict)

    def add(self, phrase: str, tokens: tuple[Token, ...]) -> None:
        """Add a phrase in its comparison form, unless it is already there."""
        form = phrase.strip()
        words = tuple(_split(form.removesuffix("*")))
        if not words:
            return
        if form.endswith("*") and len(words) == 1:
            self.stems.setdefault(words[0], tokens)
        self.phrases.setdefault(words, tokens)
        self.max_words[words[0]] = max(self.max_words.get(words[0], 0), len(words))


def _split(text: str) -> list[str]:
    return [match[0] for match in _WORD_OR_NUMBER.finditer(text)]


@cache
def lexicon_languages() -> tuple[str, ...]:
    """Return the languages with a lexicon in `requests/data`. English comes first."""
    names = (entry.name for entry in files(_LEXICONS).joinpath("data").iterdir())
    languages = [name.removesuffix(".toml") for name in names if name.endswith(".toml")]
    return tuple(sorted(languages, key=lambda language: (language != "en", language)))


class PeriodLexicons(NamedTuple):
    """The phrases of all languages."""

    # Phrases that count in every sentence.
    words: PeriodLexicon
    # Short names of days and months, which are often other words: French "hier" is also a German
    # word. They count only in the name of a period.
    short_names: PeriodLexicon


@cache
def _lexicons() -> PeriodLexicons:
    """Read `data/period_words.toml`, then the day names in the lexicon of each language.

    If a phrase is listed twice, its first meaning counts.
    """
    lexicons = PeriodLexicons(PeriodLexicon(), PeriodLexicon())
    for name, phrases in language_data("period_words", "core.dates")["tokens"].items():
        tokens = parse_token_name(name)
        for phrase in comparison_form(phrases).split(","):
            lexicons.words.add(phrase, tokens)
    for language in lexicon_languages():
        add_day_names(lexicons, read_language_data(language, _LEXICONS))
    return lexicons


def add_day_names(lexicons: PeriodLexicons, data: Mapping[str, Any]) -> None:
    """Add a language's feasts, and the days and months that `period_words.toml` lacks.

    `data` is the content of a file of `requests/data`.
    """
    first_words = {kind.name.lower() for kind in _DAY_NAMES}
    for name, phrases in data["tokens"].items():
        # Most names have another kind, and parsing all of them would take long.
        if name.partition(" ")[0] not in first_words:
            continue
        tokens = parse_token_name(name)
        if len(tokens) != 1:
            continue
        for phrase in re.split(r"[,\n]", comparison_form(phrases)):
            if "(" not in phrase:
                _add_day_name(lexicons, phrase.strip(), tokens)


def _add_day_name(lexicons: PeriodLexicons, phrase: str, tokens: tuple[Token, ...]) -> None:
    """Add the name of a day or month to the phrases or to the short names."""
    kind = tokens[0].kind
    is_long = len(phrase) >= MIN_DAY_NAME or len(_EASTERN.sub("...", phrase)) >= MIN_DAY_NAME
    is_new = _has_unknown_word(lexicons.words, phrase)
    if kind is Kind.WEEKDAY and _EASTERN.match(phrase):
        # In these languages, no preposition precedes a weekday.
        tokens = (Token(Kind.IN), *tokens)
    if is_long and (is_new or kind is Kind.FEAST):
        lexicons.words.add(phrase, tokens)
    elif kind is Kind.WEEKDAY or (is_new and kind is not Kind.FEAST):
        lexicons.short_names.add(phrase, tokens)


def _has_unknown_word(lexicon: PeriodLexicon, phrase: str) -> bool:
    """Return whether the lexicon lacks a phrase and one of its words."""
    if (phrase,) in lexicon.phrases:
        return False
    words = _split(phrase.removesuffix("*"))
    position = 0
    while position < len(words):
        word_count = _phrase_length(lexicon, words, position)
        if not word_count and not _is_known(lexicon, words[position]):
            return True
        position += word_count or 1
    return False


def _is_known(lexicon: PeriodLexicon, word: str) -> bool:
    return not word.isalpha() or _find_stem(lexicon, word) is not None


def _find_stem(lexicon: PeriodLexicon, word: str) -> tuple[Token, ...] | None:
    """Return the tokens of a word without its ending, trying shorter endings first.

    At least three letters of the word remain. Returns None if no stem is known.
    """
    for ending_length in range(1, min(_MAX_ENDING_LETTERS + 1, len(word) - 2)):
        tokens = lexicon.stems.get(word[:-ending_length])
        if tokens is not None:
            return tokens
    return None


@lru_cache(maxsize=4_000)
def tokenize_word(word: str) -> tuple[Token, ...]:
    """Return the tokens of a word, number or date. `word` must be in its comparison form."""
    if word[:1].isdecimal():
        return (_tokenize_number(word),)
    lexicon = _lexicons().words
    if (word,) in lexicon.phrases:
        return lexicon.phrases[(word,)]
    tokens = _find_stem(lexicon, word)
    if tokens is not None:
        return tokens
    number = str(word_tables()["numbers"].get(word, ""))
    if number.isdecimal():
        return (Token(Kind.NUMBER_WORD, int(number)),)
    if word in (",", "،", "、"):
        return (Token(Kind.COMMA),)
    return _UNKNOWN


def _tokenize_number(text: str) -> Token:
    """Return the token of a number or of a date in digits, such as ``1.5.2026``."""
    if not text.isdecimal():
        parts = tuple(map(int, re.split("[-./]", text)))
        is_year_first = text[:4].isdecimal()
        return Token(Kind.DATE, date=parts if is_year_first else parts[::-1])
    number = int(text)
    if len(text) == 4 and 2400 < number < 2700:
        number -= 543  # A year of the Thai calendar: 2567 is 2024.
    if len(text) == 4 and 1900 <= number < 2200:
        return Token(Kind.YEAR if number % 100 else Kind.ROUND_YEAR, number)
    return Token(Kind.NUMBER, number) if len(text) < 4 else Token(Kind.OTHER)


# --- Sentences ---


@lru_cache(maxsize=16)
def tokenize(text: str) -> Sequence[Token]:
    """Return the tokens of a text."""
    return _resolve_ambiguous(_tokenize_words(text, (_lexicons().words,)), _MONTH)


@lru_cache(maxsize=16)
def tokenize_name(text: str, *, is_short_first: bool = False) -> Sequence[Token]:
    """Return the tokens of a text that is only the name of a period.

    Every word that may be a month is one, and short names of days count: ``hier``, ``mon``. With
    `is_short_first`, these win over other meanings: Portuguese ``segunda`` is Monday, not "second".
    """
    lexicons = _lexicons()[::-1] if is_short_first else _lexicons()
    return _resolve_ambiguous(_tokenize_words(text, lexicons), _ANY_MONTH)


def _tokenize_words(text: str, lexicons: Sequence[PeriodLexicon]) -> list[Token]:
    """Return the tokens of a text. If a phrase is in several lexicons, the first lexicon counts."""
    # The comparison form can be longer than the text, so both are cut.
    form = comparison_form(text[:MAX_TEXT_CHARS])[:MAX_TEXT_CHARS]
    words = _split(form.rstrip("?!.؟ "))
    tokens: list[Token] = []
    position = 0
    while position < len(words):
        word_count = 1
        meaning = tokenize_word(words[position])
        for lexicon in lexicons:
            phrase_length = _phrase_length(lexicon, words, position)
            if phrase_length:
                meaning = lexicon.phrases[tuple(words[position : position + phrase_length])]
                word_count = phrase_length
                break
        for token in meaning:
            _append(tokens, token)
        position += word_count
    return tokens


def _phrase_length(lexicon: PeriodLexicon, words: Sequence[str], position: int) -> int:
    """Return how many words the longest known phrase at `position` has, or 0."""
    count = lexicon.max_words.get(words[position], 0)
    while count and tuple(words[position : position + count]) not in lexicon.phrases:
        count -= 1
    return count


_NUMBERS = (Kind.NUMBER, Kind.NUMBER_WORD)
_ABBREVIATED_MONTHS = (Kind.NAMELIKE_MONTH, Kind.SHORT_MONTH, Kind.RARE_MONTH)


def _append(tokens: list[Token], token: Token) -> None:
    """Append a token, or join it with the last one: ``3`` and ``th`` become a MONTH_DAY."""
    before = tokens[-1] if tokens else Token(Kind.OTHER)
    is_after_number = before.kind in _NUMBERS
    if is_after_number and token.kind is Kind.DAY_SIGN:
        tokens[-1] = Token(Kind.MONTH_DAY, before.number)
    elif is_after_number and token.kind is Kind.MONTH_SIGN:
        tokens[-1] = _numbered_month(int(before.number))
    elif before.kind is Kind.MONTH_PREFIX and token.kind in _NUMBERS:
        tokens[-1] = _numbered_month(int(token.number))
    elif before.kind in _ABBREVIATED_MONTHS and token.kind is Kind.DAY_SIGN:
        pass  # The full stop of "Sept." has no meaning.
    else:
        tokens.append(token)


def _numbered_month(number: int) -> Token:
    return Token(Kind.MONTH if 1 <= number <= 12 else Kind.OTHER, number)


_ANY_MONTH = compile_grammar("[namelike_month short_month verblike_month rare_month]")
"""Every token that may be a month. In the name of a period, it is a month."""
# The tokens that may be a month and that are one because of the tokens around them.
_MONTH = compile_grammar(
    r"""
    # Next to a number, a year or a part: "3 march", "april 2024", "early june".
    [namelike_month short_month]
        (?= [month_day number year round_year] | [comma in by of] [year round_year] )
    | (?<= [month_day number year round_year third] ) [namelike_month short_month]
    | (?<= [month_day number] of ) [namelike_month short_month verblike_month]
    | verblike_month
        (?= [month_day year round_year] | number (?! of ) | [comma in by of] [year round_year] )
    | (?<= [month_day third] ) verblike_month
    | (?<= [in on by around after to between before until since and] number ) verblike_month
    | (?<= [number year round_year] ) verblike_month (?! other )
    # After a preposition or "last": "in may", "last march", "the weeks of april".
    | (?<= [in around after last between next before until since] )
        [namelike_month verblike_month]
    | (?<= unit [by of] ) [namelike_month verblike_month]
    # One end of a range: "from march to may".
    | [namelike_month short_month verblike_month]
        (?= [to until] [in by of around]* [month namelike_month short_month verblike_month] )
    | (?<= [month namelike_month short_month verblike_month] [to until] )
        [namelike_month short_month verblike_month]
    | (?<= [month namelike_month short_month verblike_month] [to until] [in by of around] )
        [namelike_month short_month verblike_month]
    | (?<= this ) namelike_month
    | namelike_month (?= third )
    # Between a day and a year.
    | (?<= [month_day number] ) rare_month (?= [in of]? [year round_year] )
    | (?<= [month_day number] of ) rare_month (?= [in of]? [year round_year] )
    """
)
# A list with at least one certain month, so all its items are months: "May, June and December".
_MONTH_LIST = compile_grammar(
    r"""
    (?= [namelike_month verblike_month comma and]* month )
    (?: [namelike_month verblike_month month] comma )*
    [namelike_month verblike_month month] comma? and [in by of around]?
    [namelike_month verblike_month month]
    """
)
# Seasons, years, numbers and weekdays that aren't times in their context.
_NO_TIME = compile_grammar(
    r"""
    (?<= [by of around] ) season (?! [in by of]? [year round_year] )    # the summer of "the
                                                        # colour of the summer sea"
    | [number month_day] (?= [in by around since]+ month )      # the 4 of "a table for 4 in June"
    | (?<= last ) weekday (?= of (?! in? month ) )      # "the last Sunday of"
    | (?<! [month season third unit weekday] [by of around] ) (?<= [by of around] )
        [year round_year] (?= other )                   # the 2019 of "of 2019 pages"
    | [year round_year] (?= decade_sign )               # the 1990 of "1990s"
    | (?<! [month season third unit number comma] ) (?<! [month season third] [in by of around] )
        round_year (?= other )                          # the 2000 of "in 2000 steps"
    """
)
_RESOLVED = {
    ord(Kind.NAMELIKE_MONTH): Kind.OTHER,
    ord(Kind.VERBLIKE_MONTH): Kind.OTHER,
    ord(Kind.SHORT_MONTH): Kind.OTHER,
    ord(Kind.RARE_MONTH): Kind.OTHER,
    ord(Kind.DECADE_SIGN): Kind.OTHER,
    ord(Kind.BY): Kind.IN,
    ord(Kind.OF): Kind.IN,
    ord(Kind.AROUND): Kind.IN,
    ord(Kind.ROUND_YEAR): Kind.YEAR,
}
"""The final kinds of tokens that are still ambiguous after all rules above."""
_LISTED_MONTHS = {
    ord(Kind.NAMELIKE_MONTH): Kind.MONTH,
    ord(Kind.VERBLIKE_MONTH): Kind.MONTH,
}
_BETWEEN_AND = compile_grammar("(between [^ and to other]* ) and")
"""The "and" of "between 3 May and 5 June"."""
# The "since" of "since 3 May until 5 June".
_BOUND_OF_RANGE = compile_grammar(
    "(?<! unit ) [after before since until]"
    "(?= [in on number month_day month date year]+ [to until] )"
)


def _resolve_ambiguous(tokens: Sequence[Token], month: re.Pattern[str]) -> list[Token]:
    """Replace ambiguous kinds, such as VERBLIKE_MONTH, by the kind that fits the sentence.

    A token that may be a month becomes MONTH if `month` matches it, or if it is in a list with a
    month. The "and" of "between … and …" becomes TO. The "since" of "since 3 May until 5 June"
    becomes IN.
    """
    kinds = month.sub(Kind.MONTH, kinds_of(tokens))
    kinds = _MONTH_LIST.sub(lambda months: months[0].translate(_LISTED_MONTHS), kinds)
    kinds = _NO_TIME.sub(Kind.OTHER, kinds).translate(_RESOLVED)
    kinds = _BETWEEN_AND.sub(rf"\1{Kind.TO}", kinds)
    kinds = _BOUND_OF_RANGE.sub(Kind.IN, kinds)
    return [
        token if token.kind == letter else token._replace(kind=Kind(letter))
        for token, letter in zip(tokens, kinds, strict=True)
    ]
