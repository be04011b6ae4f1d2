"""The one form in which text is compared: what the indexes hold of a message and what a query is turned into.

Pure. Index and query must be folded alike: whoever changes what a function here returns raises `VERSION`, and every
index is rebuilt. Scripts written without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) come as "runs".
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

VERSION = 2

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0edf\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u17dc\u17dd\u2e80-\u2fdf"
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7fb\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
LETTER = rf"[^\W_{_UNSPACED}]"
"""As part of a regular expression: a letter or digit of a script written with spaces."""

SCOPE = "\ue000"
"""Begins the word that names a scope in an index; folding takes it out of all else, so nobody can type it."""

_RUN = re.compile(f"[{_UNSPACED}]+")
_MARKS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u00ad\ue000]"
)
_PIECE = re.compile(f"([{_UNSPACED}]+)|([\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff])")
_WORD = re.compile(r"[^\W_]+")


def fold(text: str) -> str:
    """NFKC (full and half width, ligatures), without soft hyphens, Hebrew points, Arabic vowel signs, tatweel, and the
    character that begins a scope's word."""
    if text.isascii():
        return text
    return _MARKS.sub("", unicodedata.normalize("NFKC", text))


def spaced_words(text: str | None) -> str:
    """What `messages_fts` holds: the folded text without its unspaced runs, so that ``修改youer服务端`` gives youer."""
    if not text or text.isascii():
        return text or ""
    return _RUN.sub(" ", fold(text))


def unspaced_runs(*texts: str | None) -> str:
    """What `messages_fts_trigram` holds: the unspaced runs alone, a blank between two; empty for most messages."""
    return " ".join(run for text in texts if text and not text.isascii() for run in _RUN.findall(fold(text)))


def unspaced_pairs(*texts: str | None) -> str:
    """What `messages_fts_pairs` holds: every two neighbouring characters of each run, every single one, and symbols
    (emoji) by code point. ``数据库 👍`` gives ``数据 据库 数 据 库 u1f44d``."""
    tokens: list[str] = []
    for text in texts:
        if text and not text.isascii():
            for piece in _PIECE.finditer(fold(text)):
                tokens.extend([*pairs_of(piece[1]), *piece[1]] if piece[1] else [symbol_token(piece[2])])
    return " ".join(tokens)


def unspaced_terms(text: str) -> list[str]:
    """The same for ranking: pairs, or the character of a run that has but one, and symbols."""
    return [
        token
        for piece in _PIECE.finditer(fold(text))
        for token in ((pairs_of(piece[1]) or [piece[1]]) if piece[1] else [symbol_token(piece[2])])
    ]


def pairs_of(run: str) -> list[str]:
    """Every two neighbouring characters of a run."""
    return [run[index : index + 2] for index in range(len(run) - 1)]


def symbol_token(symbol: str) -> str:
    """An emoji as a token; spelled out, because tokenizers know only the emoji of their own year."""
    return f"u{ord(symbol):x}"


def pieces(text: str) -> list[tuple[str, str]]:
    """Cuts folded text into ``("words" | "run" | "symbol", part)``; what is neither letter, digit nor symbol is left
    in the words parts, and parts without any of these are dropped."""
    found: list[tuple[str, str]] = []
    end = 0
    for match in _PIECE.finditer(text):
        found.append(("words", text[end : match.start()]))
        found.append(("run", match[1]) if match[1] else ("symbol", match[2]))
        end = match.end()
    found.append(("words", text[end:]))
    return [(kind, part) for kind, part in found if kind != "words" or _WORD.search(part)]


def is_unspaced(text: str) -> bool:
    """Whether folded text begins with a run or a symbol: it is then found inside of others, without word limits."""
    return _PIECE.match(text) is not None


def words_of(text: str) -> list[str]:
    """The words of folded text, as the tokenizer of `messages_fts` cuts them but with their case."""
    return _WORD.findall(text)


@lru_cache(maxsize=4096)
def plain_character(character: str) -> str:
    """One character as it is compared for marking matches: folded, lower case, Latin diacritics removed."""
    folded = fold(character)
    if _RUN.match(folded):
        return folded
    bare = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return (bare or folded).lower()


def plain(text: str) -> tuple[str, list[int] | None]:
    """Text as it is compared for marking matches, and for each of its characters the index in `text` it came from
    (None: the same index)."""
    if text.isascii():
        return text.lower(), None
    characters: list[str] = []
    origins: list[int] = []
    for index, character in enumerate(text):
        for part in plain_character(character):
            characters.append(part)
            origins.append(index)
    return "".join(characters), origins
