"""Recognizes small talk: "ok", "thanks!", "👍", "ありがとう". The words are in `data/smalltalk.toml`.

A word that may also be a name, or a question, is none: searching for nothing costs less than not searching.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from core.text.normalize import language_data

LIMIT_CHARS = 80
"""A longer message is no small talk."""
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


def is_smalltalk(text: str) -> bool:
    """In whatever case and punctuation; True also when it is empty."""
    if len(text) > LIMIT_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    said = " ".join(word.strip("'") for word in kept.split() if any(map(str.isalnum, word)))
    known, phrases, fillers = _patterns()
    rest = phrases.sub("", said).split()
    return all(
        word in known or _DRAWN_OUT.sub(r"\1", word) in known or fillers.fullmatch(word) is not None for word in rest
    )


@cache
def _patterns() -> tuple[frozenset[str], re.Pattern[str], re.Pattern[str]]:
    """Small words, phrases, and what may stand for a word: laughter, or pieces of a script without spaces."""
    data = language_data("smalltalk", "core.memory")
    # Possessive: a long row of pieces that ends in something else is not tried in every cut.
    pieces = rf"(?:{_any(data['pieces'].casefold().split())})++"
    phrases = re.compile(rf"(?<!\S)(?:{_any(data['phrases'])})(?!\S)")
    return frozenset(data["words"].casefold().split()), phrases, re.compile(rf"{data['laughter']}|{pieces}")


def _any(texts: Iterable[str]) -> str:
    """Longer ones first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))
