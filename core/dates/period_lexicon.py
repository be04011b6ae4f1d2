"""Build the lexicons with which periods are read, from the words of all languages.

`data/period_words.toml` lists words of about thirty languages. If that file lacks the name of a day
or month, or a number such as "second", the word comes from the lexicons of requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from core.dates.lexicon import PACKAGE, Lexicon, lexicon_languages, plain_phrase
from core.dates.tokenizer import has_unknown_word
from core.dates.tokens import Kind, Token, parse_token_name
from core.text.normalize import language_data, read_language_data

MIN_DAY_NAME = 5
"""In a sentence, names of days and months from the lexicons of requests need this many letters. A
character of an East Asian script counts as three letters."""
MAX_ENDING_LETTERS = 4
"""A star in `data/period_words.toml` matches an ending of at most this many letters."""
_EASTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_DAY_NAMES = (Kind.FEAST, Kind.WEEKDAY, Kind.MONTH, Kind.RELATIVE, Kind.ORDINAL)


class PeriodWords(NamedTuple):
    """The phrases of all languages."""

    # Phrases that count in every sentence.
    words: Lexicon
    # Short names of days and months, which are often other words: French "hier" is also a German
    # word. They count only in the name of a period.
    short_names: Lexicon


def new_period_words() -> PeriodWords:
    """Return two lexicons without phrases."""
    return PeriodWords(
        Lexicon(max_ending_letters=MAX_ENDING_LETTERS),
        Lexicon(max_ending_letters=MAX_ENDING_LETTERS),
    )


@cache
def load_period_words() -> PeriodWords:
    """Read `data/period_words.toml`, then the day names in the lexicon of each language.

    If a phrase is listed twice, its first meaning counts.
    """
    lexicons = new_period_words()
    for name, phrases in language_data("period_words", "core.dates")["tokens"].items():
        tokens = parse_token_name(name)
        for phrase in phrases.split(","):
            lexicons.words.add(phrase, tokens)
    for language in lexicon_languages():
        add_day_names(lexicons, read_language_data(language, PACKAGE))
    return lexicons


@cache
def load_name_lexicon(*, is_short_first: bool) -> Lexicon:
    """Return the lexicon for a text that is only the name of a period.

    If a phrase has two meanings, the one in a sentence counts, or with `is_short_first` the one of
    a short name: Portuguese ``segunda`` is Monday, not "second". The table `name_tokens` has words
    that are too frequent in sentences, such as Portuguese ``dia``.
    """
    lexicons = load_period_words()
    merged = Lexicon(max_ending_letters=MAX_ENDING_LETTERS)
    for name, phrases in language_data("period_words", "core.dates")["name_tokens"].items():
        for phrase in phrases.split(","):
            merged.add(phrase, parse_token_name(name))
    for lexicon in lexicons[::-1] if is_short_first else lexicons:
        for phrase, tokens in lexicon.phrases.items():
            merged.add(phrase, tokens)
        for stem, tokens in lexicon.stems.items():
            merged.add(f"{stem}*", tokens)
    return merged


def add_day_names(lexicons: PeriodWords, data: Mapping[str, Any]) -> None:
    """Add a language's feasts, and the days and months that `period_words.toml` lacks.

    `data` is the content of a file of `requests/data`.
    """
    first_words = {kind.name.lower() for kind in _DAY_NAMES}
    for name, phrases in data["tokens"].items():
        # Most names have another kind, and parsing all of them would take long.
        if name.partition(" ")[0] not in first_words:
            continue
        tokens = parse_token_name(name)
        if [token.kind for token in tokens] == [Kind.RELATIVE, Kind.WEEKDAY]:
            for phrase in re.split(r"[,\n]", phrases):
                lexicons.words.add(phrase, tokens)  # Chinese "下周五"
        if len(tokens) != 1:
            continue
        for phrase in re.split(r"[,\n]", phrases):
            if "(" not in phrase:
                _add_day_name(lexicons, plain_phrase(phrase), tokens)


def _add_day_name(lexicons: PeriodWords, phrase: str, tokens: tuple[Token, ...]) -> None:
    """Add the name of a day, month or feast to the phrases, or to the short names.

    Names that are too short for a phrase are short names. Short names of feasts are left out, and
    so are known words that don't name a weekday.
    """
    kind = tokens[0].kind
    is_long = len(phrase) >= MIN_DAY_NAME or len(_EASTERN.sub("...", phrase)) >= MIN_DAY_NAME
    is_new = has_unknown_word(phrase.removesuffix("*"), lexicons.words)
    if kind is Kind.WEEKDAY and _EASTERN.match(phrase):
        # In these languages, no preposition precedes a weekday.
        tokens = (Token(Kind.IN), *tokens)
    if is_long and (is_new or kind is Kind.FEAST):
        lexicons.words.add(phrase, tokens)
    elif kind is Kind.WEEKDAY or (is_new and kind is not Kind.FEAST):
        lexicons.short_names.add(phrase, tokens)
