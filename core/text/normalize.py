"""The one form in which text is compared, in the indexes and in queries; and text as a terminal may show it. Pure.

Raise `VERSION` when a function of `core/text` returns something else: every index is then rebuilt. Text of scripts
without spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Burmese) is cut into "runs".
"""

from __future__ import annotations

import re
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import cycle
from typing import Any

import snowballstemmer  # type: ignore[import-untyped]

VERSION = 7

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0edf\u1000-\u109f\u1100-\u11ff\u1780-\u17d3\u17dc\u17dd\u2e80-\u2fdf"
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7fb\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
LETTER = rf"[^\W_{_UNSPACED}]"
"""As part of a regular expression: a letter or digit of a script written with spaces."""
_ABOVE = (
    "\u0300-\u036f\u0483-\u0487\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0981-\u0983\u09bc-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03"
    "\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d81-\u0d83"
    "\u0dca-\u0ddf\u0f35\u0f37\u0f39\u0f71-\u0f84\u135d-\u135f\u180b-\u180d\u1ab0-\u1ace\u1dc0-\u1dff\u20d0-\u20dc"
)
"""Signs that belong to the letter before them: vowels of Indian scripts, accents that have no letter of their own."""
WORD = re.compile(rf"[^\W_]++(?:[{_ABOVE}]++[^\W_]*+)*+")
"""A word of folded text, as the tokenizer of the index over messages cuts it."""

SCOPE = "\ue000"
"""Begins the word that names a scope in an index; folding removes it from all other text, so nobody can type it."""

_RUN = re.compile(f"[{_UNSPACED}]+")
_ONLY_RUNS = re.compile(f"[\0-\x7f{_UNSPACED}]*")
"""Runs and ASCII, where each character is folded by itself."""
_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u00ad\ue000"
_DIGITS = "٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹०१२३४५६७८९০১২৩৪৫৬৭৮৯๐๑๒๓๔๕๖๗๘๙"
"""As Arabic, Persian, Hindi, Bengali and Thai write them."""
_SISTERS = "ёЁάέήίόύώΆΈΉΊΌΎΏΐΰϊϋΪΫأإآٱىیکةøØłŁđĐıİ"
_PLAIN = "еЕαεηιουωΑΕΗΙΟΥΩιυιυΙΥااااييكهoOlLdDiI"  # noqa: RUF001
"""Letters that are as often written without their sign, and that SQLite's tokenizer keeps apart. Arabic as in Lucene's
ArabicNormalizer (after Larkey et al., 2002), with the Persian kaf and yeh."""
_WIDE = (("\uff0c", ","), ("\uff1f", "?"), ("\uff01", "!"), ("\uff1a", ":"), ("\u3000", " "))
"""NFKC does the same, but text without these is often normal already, which is ten times as fast to see."""
_PIECE = re.compile(f"([{_UNSPACED}]+)|([\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff])")
_SIGNED = re.compile(
    rf"(?<![\w#/&.])(#)({WORD.pattern})|(?<!\S)(\.)([^\W\d_]{WORD.pattern})|(?<!\w)([^\W_]++)(\+\+(?!\+)|#(?![\w#]))"
)
"""A word to which a sign belongs: ``#holiday``, ``.NET``, ``C++``, ``C#``."""
_JOINED = re.compile(
    "[\u1100-\u115f\ua960-\ua97c][\u1160-\u11a7\ud7b0-\ud7c6][\u11a8-\u11ff\ud7cb-\ud7fb]?|[\uffa1-\uffbe][\uffc2-\uffdc]"
    "|[\u3046-\u3062\u304b-\u307b\u30a6-\u30db\u30ef-\u30f2\uff73-\uff8e\uff9c][\u3099\u309a\uff9e\uff9f]"
)
"""What NFKC joins to one character across two or three: Hangul in letters, Kana with a sound mark behind."""
_FAR = re.compile("[\u0e01-\u1dff\u2300-\U0010ffff]")
"""Where runs, symbols and what is joined stand: in most texts of scripts with spaces nowhere, which is quick to see."""
_UNIT = re.compile(f"{_JOINED.pattern}|.", re.DOTALL)
_ACCENTS = re.compile("[\u0300-\u036f]")
_YOUNG = re.compile("[^\\w\0-\u057f\u0900-\u2064]")
"""Where signs stand that may be younger than SQLite's tokenizer, which takes them for letters: most emoji, skin tones,
currencies like the rouble's, isolates around a name. ``thanks🥰`` would be one word."""

LIMIT_CHARS = 10_000  # what is typed beyond this is not searched for
LIMIT_TERMS = 64
_QUOTES = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\0": " "})


@lru_cache(maxsize=32)
def language_data(name: str, package: str = "core.text") -> Mapping[str, Any]:
    """What `data/<name>.toml` in a package holds: word lists, patterns, texts."""
    return tomllib.loads(files(package).joinpath("data", f"{name}.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def replaced() -> tuple[re.Pattern[str], Mapping[str, str]]:
    """What folding replaces besides NFKC, in one class (one scan of the text), and by what: Han (traditional, Japanese
    and variant characters by the simplified ones of OpenCC, none itself a variant), sisters; marks by nothing."""
    han = "".join(files("core.text").joinpath("data", "han.txt").read_text("utf-8").split())  # in pairs
    known = dict(zip(han[::2], han[1::2], strict=True)) | dict(
        zip(_SISTERS + _DIGITS, _PLAIN + "0123456789" * 5, strict=True)
    )
    return re.compile(f"[{_MARKS}{''.join(known)}]"), known


def fold(text: str) -> str:
    """NFKC, Han simplified, `_SISTERS` as plain letters, digits as 0 to 9; no soft hyphens, Hebrew points, Arabic
    vowels, tatweel, `SCOPE`."""
    if text.isascii():
        return text
    for wide, narrow in _WIDE:
        text = text.replace(wide, narrow)
    changed, known = replaced()
    return changed.sub(lambda match: known.get(match[0], ""), unicodedata.normalize("NFKC", text))


def clean(text: str) -> str:
    """What was typed: folded, at most `LIMIT_CHARS` long, without what SQLite cannot take (lone surrogates, NUL)."""
    whole = text[:LIMIT_CHARS].encode("utf-8", "replace").decode("utf-8")
    return fold(whole.translate(_QUOTES))[:LIMIT_CHARS]


def indexed_words(text: str | None) -> str:
    """What the index holds of a text: its words, folded; the pairs and single characters of its runs, symbols by code
    point (``👍`` is ``u1f44d``), and the terms of its signed words (``C++``)."""
    if not text:
        return ""
    tokens: list[str] = []
    if not text.isascii():
        text, parts = parted(text)
        text = _YOUNG.sub(_apart, text)
        for run, symbol in parts:
            tokens += [*pairs_of(run), *run] if run else [symbol_token(symbol)]
    tokens += signed_terms(text)
    return " ".join([text, *tokens]) if tokens else text


def _apart(match: re.Match[str]) -> str:
    return match[0] if unicodedata.category(match[0]) in ("Mn", "Mc") else " "


def signed_terms(text: str) -> list[str]:
    """A term for each word of folded text that has a sign of its own: ``C++`` gives ``cu2bu2b``, ``#12`` ``u2312``."""
    if "#" not in text and not ("+" in text and "++" in text) and " ." not in text and text[:1] != ".":
        return []
    return [
        "".join("".join(map(symbol_token, part)) if part in ("#", ".", "++") else part for part in match.groups(""))
        for match in _SIGNED.finditer(text.casefold())
    ]


def parted(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A folded text without its runs and symbols, and these in order, as ``(run, "")`` or ``("", symbol)``."""
    folded = fold(text)
    return (_PIECE.sub(" ", folded), _PIECE.findall(folded)) if _FAR.search(folded) else (folded, [])


def pairs_of(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(len(run) - 1)]


def symbol_token(symbol: str) -> str:
    """A sign or emoji as a token; spelled out, because tokenizers know only the emoji of their own year."""
    return f"u{ord(symbol):x}"


def pieces(text: str) -> list[tuple[str, str]]:
    """Folded text as ``("words" | "run" | "symbol", part)``; parts without a letter, digit or symbol are dropped."""
    if text.isascii():
        return [("words", text)] if WORD.search(text) else []
    cut = zip(cycle(("words", "run", "symbol")), _PIECE.split(text), strict=False)
    found = [(kind, _YOUNG.sub(_apart, part) if kind == "words" else part) for kind, part in cut if part]
    return [(kind, part) for kind, part in found if kind != "words" or WORD.search(part)]


def bare(text: str | None) -> str:
    """Text as names and titles are compared: folded, without case and accents."""
    folded = fold(text or "")
    if not folded.isascii():
        folded = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", folded)))
    return folded.casefold()


def is_unspaced(text: str) -> bool:
    """Whether folded text begins with a run or a symbol: it is then found inside others, without word limits."""
    return _PIECE.match(text) is not None


def words_of(text: str) -> list[str]:
    """The words of folded text, with their case."""
    return WORD.findall(text)


@lru_cache(maxsize=4096)
def plain_character(character: str) -> str:
    """A character and its signs as compared for marking matches: folded, lower case, no Latin diacritics."""
    folded = fold(character)
    if _RUN.match(folded):
        return folded
    bare = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return (bare or folded).lower()


def plain(text: str) -> tuple[str, list[int] | None]:
    """Text as compared for marking matches, and the index in `text` of each character (None: the same)."""
    if text.isascii():
        return text.lower(), None
    if _ONLY_RUNS.fullmatch(text) and unicodedata.is_normalized("NFKC", text):
        return fold(text).lower(), None
    if not _FAR.search(text) or not _JOINED.search(text):
        parts = list(map(plain_character, text))
        compared = "".join(parts)
        if len(compared) == len(text) and "" not in parts:
            return compared, None
        return compared, [start for start, part in enumerate(parts) for _ in part]
    units = [(match.start(), plain_character(match[0])) for match in _UNIT.finditer(text)]
    return "".join(part for _, part in units), [start for start, part in units for _ in part]


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 controls but tab and new line, and the signs that turn the direction of what follows."""


def legible(text: str) -> str:
    """Text of several lines without what a terminal would obey; lines end with a new line alone."""
    return _OBEYED.sub("", text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """A name or a title: `legible`, and any white space is one space."""
    return " ".join(legible(text).split())


def shortened(text: str, limit_chars: int) -> str:
    """The text on one line, cut at a word with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else line[:limit_chars].rsplit(" ", 1)[0] + " …"


def cut_in_the_middle(text: str, limit_chars: int, name: str) -> str:
    """The text, or where it is longer its head (70 % of the limit) and tail (20 %) with a mark that says how much of
    `name` is left out between them."""
    if len(text) <= limit_chars:
        return text
    head, tail = limit_chars * 7 // 10, limit_chars // 5
    mark = f"[{name} is cut here: {len(text) - head - tail:,} characters are left out]"
    return f"{text[:head]}\n{mark}\n{text[len(text) - tail :]}"


ALGORITHMS = frozenset(snowballstemmer.algorithms())
_LOCK = threading.Lock()
"""A stemmer holds the word at hand; searches run in several threads. PyStemmer, if installed, is 15 times as fast."""


@lru_cache(maxsize=64)
def stemmer(algorithm: str) -> Callable[[str], str]:
    """The stemmer of that name, for small letters; for any thread."""
    stem_word = snowballstemmer.stemmer(algorithm).stemWord

    def stem(word: str) -> str:
        with _LOCK:
            return str(stem_word(word))

    return stem
