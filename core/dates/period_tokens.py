"""Split a text about the past into tokens, and settle the ambiguous ones.

`tokenizer` gives each word its kind, but some names of months are also other words or names
(``may``, ``mars``, ``April``), and numbers may be days, years or quantities. This module decides by
the tokens around them. `periods_in_text` reads the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from core.dates.period_lexicon import load_name_lexicon, load_period_words
from core.dates.tokenizer import plain_sentence, plain_text, tokenize
from core.dates.tokens import Kind, Token, compile_grammar, kinds_of

# --- Texts ---


def settle_sentence(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens of a sentence in any language without ambiguous kinds."""
    return _settle_tokens(tokens, _MONTH_IN_SENTENCE)


@lru_cache(maxsize=16)
def tokenize_name(text: str, *, is_short_first: bool) -> Sequence[Token]:
    """Return the tokens of a text that is only the name of a period.

    Every word that may be a month is one, and short names of days count: ``hier``, ``mon``.
    """
    source = plain_sentence(text)
    lexicon = load_name_lexicon(is_short_first=is_short_first)
    return _settle_tokens(tokenize(source, lexicon), _ANY_MONTH, is_name=True)


@lru_cache(maxsize=4_000)
def tokenize_word(word: str) -> Sequence[Token]:
    """Return the tokens of a word without the signs and the "'s" after it, or none.

    Turkish has endings such as "'ta".
    """
    source = plain_text(word)
    tokens = tokenize(source, load_period_words().words)
    is_whole = bool(tokens) and _ENDING.fullmatch(source.plain, tokens[0].end) is not None
    return tokens if is_whole else ()


_ENDING = re.compile(r"(?:'\w{1,4})?\W*")


# --- Months ---

_ANY_MONTH = compile_grammar("[namelike_month short_month verblike_month rare_month]")
"""Every token that may be a month. In the name of a period, it is a month."""
# The tokens that may be a month and that are one because of the tokens around them.
_MONTH_IN_SENTENCE = compile_grammar(
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


def _settle_tokens(
    tokens: Sequence[Token], month: re.Pattern[str], *, is_name: bool = False
) -> list[Token]:
    """Replace ambiguous kinds, such as VERBLIKE_MONTH, by the kind that fits the text.

    A token that may be a month becomes MONTH if `month` matches it (`_MONTH_IN_SENTENCE` or
    `_ANY_MONTH`), or if it is in a list with a month. The "and" of "between … and …" becomes TO.
    The "since" of "since 3 May until 5 June" becomes IN. With `is_name`, the text is only the name
    of a period.
    """
    tokens = _settle_numbers(tokens, is_name=is_name)
    kinds = month.sub(Kind.MONTH, kinds_of(tokens))
    kinds = _MONTH_LIST.sub(lambda months: months[0].translate(_LISTED_MONTHS), kinds)
    kinds = _NO_TIME.sub(Kind.OTHER, kinds).translate(_RESOLVED)
    kinds = _BETWEEN_AND.sub(rf"\1{Kind.TO}", kinds)
    kinds = _BOUND_OF_RANGE.sub(Kind.IN, kinds)
    return [
        token if token.kind == letter else token._replace(kind=Kind(letter))
        for token, letter in zip(tokens, kinds, strict=True)
    ]


# --- Numbers and signs ---


def _settle_numbers(tokens: Sequence[Token], *, is_name: bool) -> list[Token]:
    """Settle years, dates and quantities, and join numbers with the signs next to them.

    In a name, "24.12." and "24/12" are days. In a sentence, they may be fractions or versions.
    """
    settled: list[Token] = []
    for token in tokens:
        if token.kind is Kind.OTHER:
            settled.append(token)
            continue
        if token.kind in (Kind.NUMBER, Kind.YEAR) and token.is_digits:
            token = _settle_number(token)
        elif is_name and _is_short_date(token):
            is_dotted = token.kind is Kind.CLOCK_OR_DATE
            token = token._replace(kind=Kind.DATE, number=is_dotted)
        elif token.kind is Kind.DATE and not _has_year(token.date):
            token = token._replace(kind=Kind.OTHER)  # a fraction or a version
        elif token.kind in _WITHOUT_MEANING:
            token = token._replace(kind=Kind.OTHER)
        _append(settled, token)
    return settled


_WITHOUT_MEANING = (Kind.CLOCK_OR_DATE, Kind.COLON, Kind.ZONE)
"""Kinds that have no meaning in the name of a period."""


def _settle_number(token: Token) -> Token:
    """Return a number in digits as a year or as a number with at most three digits."""
    digits = token.end - token.start
    number = int(token.number)
    if number != token.number:
        return token._replace(kind=Kind.OTHER)
    if digits == 4 and 2400 < number < 2700:
        number -= 543  # A year of the Thai calendar: 2567 is 2024.
    if digits == 4 and 1900 <= number < 2200:
        return token._replace(kind=Kind.YEAR if number % 100 else Kind.ROUND_YEAR, number=number)
    return token._replace(kind=Kind.NUMBER if digits < 4 else Kind.OTHER)


def _is_short_date(token: Token) -> bool:
    """Return whether a token is a day without a year, such as "24.12." or "24/12"."""
    if token.kind is Kind.CLOCK_OR_DATE:
        return True
    is_pair = token.kind is Kind.DATE and len(token.date) == SHORT_DATE_NUMBERS
    return is_pair and not _has_year(token.date)


SHORT_DATE_NUMBERS = 2


def _has_year(parts: tuple[int, ...]) -> bool:
    """Return whether a date in digits begins or ends with a year of four digits."""
    return parts[0] > 999 or (len(parts) == 3 and parts[2] > 999)


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
