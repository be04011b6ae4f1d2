"""Recognizes small talk: "ok", "thanks!", "👍", "ありがとう". The words are in `data/smalltalk.toml`.

A word that may also be a name, or a question, is none: searching for nothing costs less than not searching.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from core.text.normalize import language_data

LIMIT_CHARS = 80
"""A longer message is no small talk."""
PHRASE_WORDS = 4
PIECE_CHARS = 20
_LAUGHTER = re.compile(
    r"a?(?:h[aeiou]){2,}h?|(?:j[aeiou]){2,}|а?(?:х[аеи]){2,}х?|(?:rs)+|k{3,}|w{2,}|笑+|lo+l|xd+"
    "|[\u110b\u110f\u1112\u116e\u1172]+"
)
"""The last are single letters of Korean, as NFKC leaves them."""
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


@dataclass(frozen=True, slots=True)
class _Words:
    known: frozenset[str]
    phrases: frozenset[tuple[str, ...]]
    pieces: frozenset[str]


@cache
def _words() -> _Words:
    data = language_data("smalltalk", "core.memory")
    pieces = frozenset(data["pieces"].casefold().split())
    return _Words(
        known=pieces | frozenset(data["words"].casefold().split()),
        phrases=frozenset(tuple(phrase.split()) for phrase in data["phrases"]),
        pieces=pieces,
    )


def is_smalltalk(text: str) -> bool:
    """In whatever case and punctuation; True also when it is empty."""
    if len(text) > LIMIT_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    words = [word.strip("'") for word in kept.split() if any(map(str.isalnum, word))]
    reached = {0}
    for start in range(len(words)):
        if start in reached:
            ends = range(start + 1, start + 1 + PHRASE_WORDS)
            reached.update(end for end in ends if tuple(words[start:end]) in _words().phrases)
            reached.update({start + 1} if _is_filler(words[start]) else ())
    return len(words) in reached


def _is_filler(word: str) -> bool:
    known = _words().known
    if word in known or _LAUGHTER.fullmatch(word):
        return True
    return _is_made_of_pieces(word) if _UNSPACED.search(word) else _DRAWN_OUT.sub(r"\1", word) in known


def _is_made_of_pieces(run: str) -> bool:
    reached = {0}
    for start in range(len(run)):
        if start in reached:
            ends = range(start + 1, min(start + PIECE_CHARS, len(run)) + 1)
            reached.update(end for end in ends if run[start:end] in _words().pieces)
    return len(run) in reached
