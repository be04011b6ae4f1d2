"""Decodes what stands encoded in a text: base64, hexadecimal, percent signs, character references, escapes,
Morse signs.

Gives what comes out when it is text again. Ids, hashes and addresses come out as noise and are left alone. Never
judges what was decoded.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

_WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/]{40})\s*\n\s*(?=[A-Za-z0-9+/]{8})")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:]?){8,}(?![0-9A-Fa-f])")
_HEX_PREFIX = re.compile(r"0x|\\x|[ ,:]")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_REFERENCE = re.compile(r"&(?:#\d{2,6}|#x[0-9A-Fa-f]{2,5}|[a-z]{2,8});")
_ESCAPE = re.compile(r"\\u\{?([0-9A-Fa-f]{4,6})\}?|\\x([0-9A-Fa-f]{2})")
_BITS = re.compile(r"(?:[01]{8}[ ,]?){8,}")
_NUMBERS = re.compile(r"(?:\b(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])\b[ ,]+){10,}(?:\d{2,3})")

_MORSE = re.compile(r"(?:[.\-]{1,5}[ /|]{1,3}){8,}[.\-]{1,5}")
_MORSE_LETTERS = (
    "a.- b-... c-.-. d-.. e. f..-. g--. h.... i.. j.--- k-.- l.-.. m-- n-. o--- p.--. q--.- r.-. s... t- u..- v...- "
    "w.-- x-..- y-.-- z--.."
)
_MORSE_SIGNS = {letter[1:]: letter[0] for letter in _MORSE_LETTERS.split()}

_BLOB = re.compile(r"(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/]{180,}={0,2}")
_LETTERS_PER_SIGN = 0.5
_SIGNS_OF_NOISE = 30


def decoded(text: str) -> Iterator[str]:
    """Every piece that is text again once decoded, and the whole text with its escapes undone."""
    whole = _WRAPPED.sub("", text)
    for found in _BASE64.finditer(whole):
        # An URL-safe alphabet and a plain one differ in two signs; padding is often cut off.
        code = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        # A length of one more than a multiple of four cannot be: the piece has lost its first or last sign.
        yield from _text(_from_base64(code[: len(code) - (len(code) % 4 == 1)]))
    for found in _HEX.finditer(whole):
        yield from _text(_from_hex(_HEX_PREFIX.sub("", found[0])))
    for found in _BITS.finditer(whole):
        bits = re.sub("[ ,]", "", found[0])
        yield from _text(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8)))
    for found in _NUMBERS.finditer(whole):
        yield from _text(bytes(int(number) for number in re.findall(r"\d+", found[0]) if int(number) < 256))
    for found in _MORSE.finditer(text):
        words = re.split(r" ?[/|] ?| {2,}", found[0])
        yield " ".join("".join(_MORSE_SIGNS.get(sign, "") for sign in word.split()) for word in words)
    if len(_PERCENT.findall(text)) > 3:
        yield unquote(text, errors="replace")
    if _REFERENCE.search(text):
        yield html.unescape(text)
    if _ESCAPE.search(text):
        yield _ESCAPE.sub(_unescaped, text)


def has_blob(text: str) -> bool:
    """Whether the text holds a long piece in base64 that nobody can read and that is no picture."""
    whole = _WRAPPED.sub("", text)
    return any(
        _looks_random(found[0]) and "data:image/" not in whole[max(0, found.start() - 60) : found.start()]
        for found in _BLOB.finditer(whole)
    )


def _looks_random(piece: str) -> bool:
    """Both cases and digits, and many of them: no ruler of dashes, no scream, no word list."""
    kinds = (str.isupper, str.islower, str.isdigit)
    return all(any(map(kind, piece)) for kind in kinds) and len(set(piece)) > _SIGNS_OF_NOISE


def _unescaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]


def _from_base64(code: str) -> bytes:
    try:
        return base64.b64decode(code + "=" * (-len(code) % 4))
    except (binascii.Error, ValueError):
        return b""


def _from_hex(code: str) -> bytes:
    return bytes.fromhex(code[: len(code) - len(code) % 2])


def _text(raw: bytes) -> Iterator[str]:
    """The text of `raw` when it is one: UTF-8 or UTF-16, mostly letters and blanks."""
    for encoding in ("utf-8", "utf-16-le"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        plain = sum(sign.isalpha() or sign in " \n,." for sign in text)
        is_readable = (
            len(text) >= 8 and plain >= _LETTERS_PER_SIGN * len(text) and text.replace("\n", " ").isprintable()
        )
        if is_readable and (encoding == "utf-8" or text.isascii()):
            yield text
