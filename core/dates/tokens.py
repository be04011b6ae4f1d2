"""Define the kinds of tokens that all readers of times share, and the grammars over these kinds.

A token is the meaning of a word or number in a time: ``remind me at half past 8`` becomes REQUEST,
AT, HALF_PAST and NUMBER, and ``in early May`` becomes IN, THIRD and MONTH. A `lexicon` lists the
phrases for each kind, and `tokenizer` splits a text with it. A grammar is a regular expression over
kinds: `periods_in_text` reads periods in the past, and `requests` reads moments and recurrences in
the future.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, StrEnum, auto
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

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
    WISH = auto()  # asks for the verb at the end of the sentence: "kannst du mich"
    WISHED = auto()  # a REQUEST only after a WISH: "wecken"; the numbers are those of REQUEST
    MENTION = auto()  # requests only at the beginning or the end of a sentence: "reminder"
    BLOCK = auto()  # "don't remind me"; 1: only before a request, such as "translate"
    CONDITION = auto()  # "tell me only if"; 1: only in a request: "if it rains"
    PERSON = auto()  # somebody who reminds, if the word begins a sentence; 1: precedes the verb
    OTHER_PERSON = auto()  # "remind my wife"; 1: only before a name, like French "rappelle à"
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
    # Set for DATE: the numbers in the order of the text, such as (3, 5) or (2026, 12, 1).
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


# --- Rules ---

_ANY_KIND = re.compile(r"\.|\[\^")
"""The parts of a compiled pattern that match tokens whose kinds it doesn't name."""
ContextT = TypeVar("ContextT")
"""What the meaning of tokens depends on, such as the present day."""
MeaningT = TypeVar("MeaningT")


class Item(NamedTuple, Generic[MeaningT]):
    """A time in a sentence: its tokens from `start` to `end` (exclusive), and their meaning."""

    start: int
    end: int
    parts: MeaningT


class Match:
    """The tokens that a rule matches, by the names of the groups in its pattern."""

    def __init__(self, match: re.Match[str], tokens: Sequence[Token]) -> None:
        self._match = match
        self._tokens = tokens

    def all(self, name: str | int) -> Sequence[Token]:
        """Return all tokens of a group, or none if the rule doesn't have the group."""
        if isinstance(name, str) and name not in self._match.re.groupindex:
            return ()
        start, end = self._match.span(name)
        return self._tokens[max(start, 0) : max(end, 0)]

    def get(self, name: str) -> Token | None:
        """Return the first token of a group, or None if it is empty."""
        tokens = self.all(name)
        return tokens[0] if tokens else None

    def has(self, name: str) -> bool:
        """Return whether a group takes part in the match. It may be empty, as a lookahead is."""
        return self._match[name] is not None

    def number(self, name: str) -> int:
        token = self.get(name)
        if token is None:
            return 0
        return 1 if token.kind is Kind.ONE else int(token.number)

    def kinds(self, kind: Kind, name: str | int = 0) -> list[Token]:
        """Return the tokens of a kind in a group, or in the whole match."""
        return [token for token in self.all(name) if token.kind is kind]


class Rules(Generic[ContextT, MeaningT]):
    """The rules of a module, in the order in which equally long matches are tried.

    A rule is a pattern over kinds of tokens, and a function that returns the meaning of the tokens,
    or None if it can't read them.
    """

    def __init__(self) -> None:
        self._rules: list[tuple[str, Callable[[Match, ContextT], MeaningT | None]]] = []
        self._rules_by_kind: dict[
            str, Sequence[tuple[re.Pattern[str], Callable[[Match, ContextT], MeaningT | None]]]
        ] = {}

    def add(
        self, *patterns: str
    ) -> Callable[
        [Callable[[Match, ContextT], MeaningT | None]],
        Callable[[Match, ContextT], MeaningT | None],
    ]:
        """Return a decorator that adds a rule with these patterns. See `compile_grammar`."""

        def register(
            build: Callable[[Match, ContextT], MeaningT | None],
        ) -> Callable[[Match, ContextT], MeaningT | None]:
            self._rules.extend((pattern, build) for pattern in patterns)
            return build

        return register

    @cached_property
    def _compiled_rules(
        self,
    ) -> Sequence[tuple[re.Pattern[str], Callable[[Match, ContextT], MeaningT | None]]]:
        """The rules with compiled patterns. Compiling them at import would delay each start."""
        return [(compile_grammar(pattern), build) for pattern, build in self._rules]

    def match(
        self, kinds: str, position: int
    ) -> Iterator[tuple[re.Match[str], Callable[[Match, ContextT], MeaningT | None]]]:
        """Yield the matches at a position that contain at least one token."""
        for pattern, build in self._find_rules_with(kinds[position]):
            match = pattern.match(kinds, position)
            if match is not None and match.end() > position:
                yield match, build

    def _find_rules_with(
        self, kind: str
    ) -> Sequence[tuple[re.Pattern[str], Callable[[Match, ContextT], MeaningT | None]]]:
        """Return the rules whose patterns name a kind, or allow any kind.

        No other rule matches a token of this kind, so that most patterns needn't be tried.
        """
        if kind not in self._rules_by_kind:
            self._rules_by_kind[kind] = [
                (pattern, build)
                for pattern, build in self._compiled_rules
                if kind in pattern.pattern or _ANY_KIND.search(pattern.pattern)
            ]
        return self._rules_by_kind[kind]


def read_items(
    tokens: Sequence[Token], context: ContextT, rules: Sequence[Rules[ContextT, MeaningT]]
) -> list[Item[MeaningT]]:
    """Return the times that the tokens name, in order.

    At each token, the rule with the longest match wins.
    """
    kinds = kinds_of(tokens)
    items: list[Item[MeaningT]] = []
    position = 0
    while position < len(tokens):
        item = None
        if tokens[position].kind is not Kind.OTHER:
            item = _read_item(tokens, kinds, position, context, rules)
        if item is None:
            position += 1
        else:
            items.append(item)
            position = item.end
    return items


def _read_item(
    tokens: Sequence[Token],
    kinds: str,
    position: int,
    context: ContextT,
    rules: Sequence[Rules[ContextT, MeaningT]],
) -> Item[MeaningT] | None:
    """Return the longest time that begins at `position`, or None."""
    matches: list[tuple[re.Match[str], Callable[[Match, ContextT], MeaningT | None]]] = []
    for group in rules:
        matches += group.match(kinds, position)
    matches.sort(key=lambda candidate: -candidate[0].end())
    for match, build in matches:
        parts = build(Match(match, tokens), context)
        if parts is not None:
            return Item(position, match.end(), parts)
    return None


# --- Names of tokens ---

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
