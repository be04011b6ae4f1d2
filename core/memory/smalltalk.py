"""Recognizes small talk: "ok", "thanks!", "👍", "ありがとう". The words are in `data/smalltalk.toml`.

A word that may also be a name, or a question, is none: searching for nothing costs less than not searching.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from core.text.normalize import language_data

LIMIT_CHARS = 80
"""A longer message is no small talk."""
_LAUGHTER = re.compile(
    r"a?(?:h[aeiou]){2,}h?|(?:j[aeiou]){2,}|а?(?:х[аеи]){2,}х?|(?:rs)+|k{3,}|w{2,}|笑+|lo+l|xd+"
    "|[\u110b\u110f\u1112\u116e\u1172]+"
)
"""The last are single letters of Korean, as NFKC leaves them."""
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


@dataclass(frozen=True, slots=True)
class _Words:
    known: frozenset[str]
    phrases: re.Pattern[str]
    pieces: re.Pattern[str]


@cache
def _words() -> _Words:
    data = language_data("smalltalk", "core.memory")
    return _Words(
        known=frozenset(data["words"].casefold().split()),
        phrases=re.compile(rf"(?<!\S)(?:{_any(data['phrases'])})(?!\S)"),
        # Possessive: a long row of them that ends in something else is not tried in every cut.
        pieces=re.compile(rf"(?:{_any(data['pieces'].casefold().split())})++"),
    )


def is_smalltalk(text: str) -> bool:
    """In whatever case and punctuation; True also when it is empty."""
    if len(text) > LIMIT_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    words = [word.strip("'") for word in kept.split() if any(map(str.isalnum, word))]
    return all(map(_is_filler, _words().phrases.sub("", " ".join(words)).split()))


def _is_filler(word: str) -> bool:
    words = _words()
    is_known = word in words.known or _DRAWN_OUT.sub(r"\1", word) in words.known
    return is_known or bool(_LAUGHTER.fullmatch(word) or words.pieces.fullmatch(word))


def _any(texts: Iterable[str]) -> str:
    """Longer ones first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))
