"""How words are read by the slow reference of recall: straight from what recall promises, with tables for the few words
that its stories are made of. No code of `core`: what both had wrong would never be seen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

Kind = Literal["words", "run", "symbol"]

FORMS = {
    "ferries": "ferry", "ferrie": "ferry", "ferri": "ferry", "gardens": "garden", "went": "go", "kettl": "kettle",
    "decided": "decide", "decid": "decide", "redi": "redis",
}  # fmt: skip
"""Forms of one word, as a question takes them, and beginnings that are taken for one; all other words stand for
themselves."""
SMALL = frozenset(["what", "about", "the", "or", "and", "not", "did", "we", "of", "a", "is", "t"])
"""Words that no question is about."""
_UNSPACED = frozenset(["CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "THAI", "IDEOGRAPHIC"])
_SIMPLE = str.maketrans("數據庫緩務", "数据库缓务")
"""The traditional characters of the vocabulary and the simplified ones that they are the same as."""
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = {4: "april", 5: "may", 6: "june"}


class Term(NamedTuple):
    """Something to look for as typed: bare or in quotes, as a beginning (``ferr*``), or to be left out."""

    text: str
    is_quoted: bool = False
    is_prefix: bool = False
    is_excluded: bool = False

    def typed(self) -> str:
        """The term as a person writes it."""
        body = f'"{self.text}"' if self.is_quoted else self.text
        return ("-" if self.is_excluded else "") + body + ("*" if self.is_prefix else "")


class Piece(NamedTuple):
    """A part of a text: the words between others, a run of characters without spaces, or an emoji."""

    kind: Kind
    words: tuple[str, ...]
    text: str


@lru_cache(maxsize=100_000)
def pieces(text: str) -> tuple[Piece, ...]:
    """A text cut into its parts, each in the form in which it is compared."""
    found: list[Piece] = []
    for kind, group in groupby(_folded(text), _kind):
        if kind == "symbol":
            found += [Piece(kind, (), symbol) for symbol in group]
        elif kind == "run":
            found.append(Piece(kind, (), "".join(group)))
        elif words := _words("".join(group)):
            found.append(Piece(kind, words, ""))
    return tuple(found)


def holds(term: Term, *fields: str | None) -> bool:
    """Whether a term holds for a message with these texts; each of its parts may be in another of them."""
    asked = pieces(term.text)
    found = all(
        any(
            _stands(piece, term.is_prefix and index == len(asked) - 1, pieces(field))
            for field in fields
            if field is not None
        )
        for index, piece in enumerate(asked)
    )
    return found != term.is_excluded


def is_within(text: str, *fields: str | None) -> bool:
    """Whether any of the words stands in one of the texts as it is, any two neighbouring characters of a run, or its
    only one."""
    return any(_stands(piece, False, pieces(field)) for piece in _loose(text) for field in fields if field is not None)


def is_inside(text: str, *fields: str | None) -> bool:
    """The same, also inside of other words."""
    needles = ["".join(piece.words) or piece.text for piece in _loose(text)]
    return any(needle in bare(field) for needle in needles for field in fields if field is not None)


def answers(text: str, said: str) -> bool:
    """Whether what is said must come up for a question, by one word of it: in any form, a whole run, an emoji."""
    asked = pieces(text)
    return bool(_forms(text) & _forms(said)) or any(
        _stands(piece, False, pieces(said)) for piece in asked if piece.kind != "words"
    )


def is_related(text: str, said: str) -> bool:
    """Whether what is said may come up for a question: of a run one character is enough, of a word its beginning."""
    is_kin = any(one[:4] == other[:4] for one in _forms(text) for other in _forms(said) if len(one) > 3)
    return answers(text, said) or is_kin or bool(_characters(text) & _characters(said))


@lru_cache(maxsize=100_000)
def _forms(text: str) -> frozenset[str]:
    words = (word for piece in pieces(text) for word in piece.words)
    return frozenset(FORMS.get(word, word) for word in words if word not in SMALL)


@lru_cache(maxsize=100_000)
def _characters(text: str) -> frozenset[str]:
    return frozenset("".join(piece.text for piece in pieces(text)))


def _loose(text: str) -> list[Piece]:
    """What is looked for when any of it is enough; small words only where there is nothing else."""
    words = [Piece("words", (word,), "") for piece in pieces(text) for word in piece.words]
    pairs = [Piece("run", (), pair) for piece in pieces(text) if piece.kind == "run" for pair in _pairs(piece.text)]
    others = [*pairs, *(piece for piece in pieces(text) if piece.kind == "symbol")]
    telling = [piece for piece in words if piece.words[0] not in SMALL]
    return [*telling, *others] or words


def day(at: datetime) -> str:
    """A day (UTC) in words."""
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month]} {at.year}"


@lru_cache(maxsize=100_000)
def bare(text: str) -> str:
    """A text for comparing names: without case and accents."""
    return unicodedata.normalize("NFC", _unaccented(_folded(text))).casefold()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_SIMPLE)


def begins_unspaced(text: str) -> bool:
    """Whether a text begins with a character of a script without spaces, or an emoji."""
    return text != "" and _kind(text[0]) != "words"


def _kind(character: str) -> Kind:
    name, category = unicodedata.name(character, "?"), unicodedata.category(character)
    if name.split(" ")[0] in _UNSPACED and category[0] in "LNM":
        return "run"
    return "symbol" if character >= "\u2300" and category in ("So", "Sk") else "words"


def _words(text: str) -> tuple[str, ...]:
    spaced = "".join(one if unicodedata.category(one)[0] in "LN" else " " for one in bare(text))
    return tuple(spaced.split())


def _unaccented(text: str) -> str:
    """Latin letters without what stands above or below them."""
    return "".join(
        letters[0] if letters[0].isascii() else one for one in text if (letters := unicodedata.normalize("NFD", one))
    )


def _pairs(run: str) -> list[str]:
    return [first + second for first, second in pairwise(run)] or [run]


def _stands(piece: Piece, is_prefix: bool, field: Sequence[Piece]) -> bool:
    if piece.kind == "run":
        return any(piece.text in other.text for other in field if other.kind == "run")
    if piece.kind == "symbol":
        return any(piece.text == other.text for other in field)
    said = [word for other in field for word in other.words]
    size = len(piece.words)
    return any(_is_phrase(piece.words, said[at : at + size], is_prefix) for at in range(len(said) - size + 1))


def _is_phrase(asked: Sequence[str], said: Sequence[str], is_prefix: bool) -> bool:
    if is_prefix:
        return list(asked[:-1]) == list(said[:-1]) and said[-1].startswith(asked[-1])
    return list(asked) == list(said)
