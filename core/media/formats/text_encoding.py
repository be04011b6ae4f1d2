"""Decodes text files whose encoding isn't known.

Only the worker process imports this module. A text that is neither Unicode nor a page that declares
its encoding is decoded in each known encoding. The result whose letters and words are the most
likely ones in a language of that encoding counts (`data/encodings.toml`).
"""

from __future__ import annotations

import codecs
import math
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# At least this many bytes of a file are enough to find its type.
HEAD_BYTES = 4096
# The encoding of a text is guessed from about this many bytes.
GUESS_BYTES = 4_000
LATIN = "cp1252"
TRADITIONAL = "big5hkscs"
LANGUAGE: ContextVar[str] = ContextVar("LANGUAGE", default="")
"""The language of the person who sent the file, such as "pl", or ""."""

# The logarithms of how likely a character is, for those that aren't letters of the language.
_ASCII_LETTER = -3.0
_ASCII_SIGN = -5.0
_SIGN_OF_NUMBER = -3.5
_OTHER_WIDE_LETTER = -10.5
_SIGN = -6.0
_NO_BREAK_SPACE = -3.0
_OTHER_LETTER = -9.0
_UNLIKELY = -13.0
# What each of these makes a text less likely by.
_CAPITAL = -2.0
# A capital after a small letter, a letter of another script next to one in ASCII, or a letter that
# is alone although it isn't a word.
_ODD_LETTER = -6.0
_LETTER_AT_DIGIT = -3.0
# The second, third and fourth encoding of a language.
_ENCODING_RANKS = (0.0, -1.5, -6.0, -7.0)
# What each of these makes a text more likely by.
_COMMON_WORD = 2.0
_OWN_LANGUAGE = 4.0
# The share of the frequent characters in a text of Chinese, Japanese or Korean.
_FREQUENT_SHARE = 0.7
_KANA = -4.5
_WORD = re.compile(r"[^\W\d_]+")
# A declared encoding is read as the larger one that programs really write.
_SUPERSETS = {
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": TRADITIONAL,
    "iso8859-1": LATIN,
    "iso8859-9": "cp1254",
    "ascii": LATIN,
}
_DECLARABLE = re.compile(r"cp(125[0-8]|8\d\d|932|949|950)|iso8859-\d+|koi8-[rtu]|mac-\w+|euc_jp")
# <meta charset="…">, <meta … content="text/html; charset=…"> and <?xml … encoding="…"?>
_DECLARATION = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,30})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Language:
    """A language in one of its encodings."""

    name: str
    encoding: str
    # The logarithm of how likely each letter is, in lower case.
    letters: Mapping[str, float]
    words: frozenset[str]
    # The logarithm of how likely a text is in this language and encoding, compared with others.
    bonus: float
    is_latin: bool = True
    # Whether a character takes two or more bytes.
    is_wide: bool = False


def decode_text(content: bytes) -> str | None:
    """Decode bytes as text. Returns None if they aren't text.

    The encoding is UTF-8 or UTF-16 with a byte order mark, or else the one that a page declares.
    Any other text has an older encoding, which is guessed from its letters and words. If two
    languages are likely, the one of the person who sent the file counts.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content[: len(content) // 2 * 2].decode("utf-16", "replace")
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The end of the head may be in the middle of a character. A shorter text isn't cut.
        if error.reason == "unexpected end of data" and len(content) >= HEAD_BYTES:
            return content[: error.start].decode("utf-8-sig")
    if any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in content):
        return None
    encoding = _read_declaration(content) or _guess_encoding(content)
    return content.decode(encoding, "replace")


def _read_declaration(content: bytes) -> str | None:
    """Return the encoding that a page declares at its beginning, or None without a known one."""
    if not content.lstrip().startswith(b"<"):
        return None
    declaration = _DECLARATION.search(content[:1024])
    if declaration is None:
        return None
    try:
        name = codecs.lookup(declaration[1].decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    name = _SUPERSETS.get(name, name)
    is_known = _DECLARABLE.fullmatch(name) or name in _SUPERSETS.values()
    return name if is_known else None


def _guess_encoding(content: bytes) -> str:
    """Return the most likely encoding of a text that isn't Unicode."""
    sample = _take_sample(content)
    own_language = LANGUAGE.get().lower().partition("-")[0]
    texts: dict[str, str] = {}
    best_encoding, best_score = LATIN, -math.inf
    for language in _load_languages():
        if language.encoding not in texts:
            texts[language.encoding] = sample.decode(language.encoding, "replace")
        score = _score(texts[language.encoding], language)
        # People whose programs are in English write in all languages.
        if language.name == own_language != "en":
            score += _OWN_LANGUAGE
        if score > best_score:
            best_encoding, best_score = language.encoding, score
    return best_encoding


def _take_sample(content: bytes) -> bytes:
    """Return the beginning of the lines that aren't ASCII.

    If possible, it's cut at a byte up to 47, such as a space or a line break, which is never a part
    of a longer character. Half a character would rule out its encoding.
    """
    lines = [line for line in content.splitlines() if not line.isascii()]
    sample = b"\n".join(lines)
    if len(sample) <= GUESS_BYTES:
        return sample
    end = GUESS_BYTES
    while end and sample[end] > 47:
        end -= 1
    return sample[: end or GUESS_BYTES]


def _score(text: str, language: _Language) -> float:
    """Return the logarithm of how likely a text is in a language."""
    words = set(_WORD.findall(text.lower()))
    score = language.bonus + _COMMON_WORD * len(words & language.words)
    before = " "
    for index, character in enumerate(text):
        if character < "\x80":
            is_common = character.isalnum() or character in " \n.,-"
            score += _ASCII_LETTER if is_common else _ASCII_SIGN
        else:
            after = text[index + 1 : index + 2] or " "
            score += _score_character(before, character, after, language)
        before = character
    return score


def _score_character(before: str, character: str, after: str, language: _Language) -> float:
    """Return the logarithm of how likely a character that isn't ASCII is in a language."""
    if language.is_wide:
        return _score_wide_character(character, language)
    score = _score_letter(character, language)
    if score is None:
        return _score_sign(before, character, after)
    is_single = not before.isalpha() and not after.isalpha()
    is_odd = (character.isupper() and before.islower()) or (
        is_single and character.lower() not in language.words
    )
    if not language.is_latin and (_is_ascii_letter(before) or _is_ascii_letter(after)):
        is_odd = True
    is_at_digit = before.isdigit() or after.isdigit()
    return score + _ODD_LETTER * is_odd + _LETTER_AT_DIGIT * is_at_digit


def _score_letter(character: str, language: _Language) -> float | None:
    """Return the logarithm of how likely a letter is, or None if the language doesn't have it."""
    score = language.letters.get(character)
    if score is not None or character.islower():
        return score
    score = language.letters.get(character.lower())
    return None if score is None else score + _CAPITAL


def _score_sign(before: str, character: str, after: str) -> float:
    """Return the logarithm of how likely a character is that isn't a letter of the language."""
    is_in_word = before.isalpha() and after.isalpha()
    if character == "\xa0":
        return _SIGN if is_in_word else _NO_BREAK_SPACE
    data = _load_data()
    if character in data["signs"]:
        is_odd = is_in_word or (after.isalpha() and character in data["closing_signs"])
        if is_odd and character != "’":
            return _UNLIKELY
        return _SIGN_OF_NUMBER if before.isdigit() or after.isdigit() else _SIGN
    return _OTHER_LETTER if character.isalpha() else _UNLIKELY


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _score_wide_character(character: str, language: _Language) -> float:
    """Return the logarithm of how likely a character of Chinese, Japanese or Korean is."""
    score = language.letters.get(character)
    if score is None and language.encoding == TRADITIONAL:
        from core.text.normalize import fold

        score = language.letters.get(fold(character))
    if score is not None:
        return score
    if character in _load_data()["wide_signs"]:
        return _SIGN
    is_kana = "\u3040" <= character <= "\u30ff"
    if language.name == "ja" and is_kana:
        return _KANA
    is_syllable = "\uac00" <= character <= "\ud7a3"
    is_letter = is_syllable if language.name == "ko" else "\u4e00" <= character <= "\u9fff"
    return _OTHER_WIDE_LETTER if is_letter else 2 * _UNLIKELY


@cache
def _load_data() -> Mapping[str, Any]:
    path = Path(__file__).parents[1] / "data" / "encodings.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def _load_languages() -> tuple[_Language, ...]:
    """Return each known language in each of its encodings."""
    data = _load_data()
    languages = []
    for alphabet in data["alphabets"]:
        for name, entry in alphabet["languages"].items():
            for rank, encoding in enumerate(alphabet["encodings"]):
                letters = _rank_letters(entry["letters"])
                words = frozenset(entry["words"].split())
                bonus = alphabet.get("bonus", 0.0) + _ENCODING_RANKS[rank]
                is_latin = "LATIN" in unicodedata.name(entry["letters"][0])
                languages.append(_Language(name, encoding, letters, words, bonus, is_latin))
    for name, entry in data["characters"].items():
        # Line breaks in the file don't count.
        frequent = "".join(entry["letters"].split())
        letters = dict.fromkeys(frequent, math.log(_FREQUENT_SHARE / len(frequent)))
        for encoding in entry["encodings"]:
            languages.append(_Language(name, encoding, letters, frozenset(), 0.0, is_wide=True))
    return tuple(languages)


def _rank_letters(letters: str) -> Mapping[str, float]:
    """Return how likely each letter is, as a logarithm, by its rank among the letters."""
    total = sum(1 / (rank + 2) for rank in range(len(letters)))
    return {letter: -math.log(total * (rank + 2)) for rank, letter in enumerate(letters)}
