"""Decodes text files whose encoding isn't known.

Only the worker process imports this module.
"""

from __future__ import annotations

import codecs
import re

# At least this many bytes of a file are enough to find its type.
HEAD_BYTES = 4096
# The encoding of a text is guessed from about this many bytes.
GUESS_BYTES = 20_000
# A text is in a language without Latin letters if this share of its letters isn't ASCII.
FOREIGN_SHARE = 0.5
# The encoding of a shorter text can't be guessed.
MIN_FOREIGN_BYTES = 8
LATIN = "cp1252"
TURKISH = "cp1254"
_FOREIGN_ENCODINGS = [
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
    *("cp1251", "koi8_r", "cp866", "cp1253"),
]
# Letters such as ğ and ş in Turkish, which are ð and þ in Icelandic.
_TURKISH_BYTES = frozenset(b"\xf0\xfd\xfe\xd0\xdd\xde")
# The letters á, é, í, ó, ú and æ, which Icelandic has and Turkish doesn't.
_ICELANDIC_BYTES = frozenset(b"\xe1\xe9\xed\xf3\xfa\xe6")
# A declared encoding is read as the larger one that programs really write.
_SUPERSETS = {
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso8859-1": LATIN,
    "iso8859-9": TURKISH,
    "ascii": LATIN,
}
_DECLARABLE = re.compile(r"cp(125[0-8]|8\d\d|932|949|950)|iso8859-\d+|koi8-[rtu]|mac-\w+|euc_jp")
# <meta charset="…">, <meta … content="text/html; charset=…"> and <?xml … encoding="…"?>
_DECLARATION = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,30})""", re.IGNORECASE)


def decode_text(content: bytes) -> str | None:
    """Decode bytes as text. Returns None if they aren't text.

    The encoding is UTF-8 or UTF-16 with a byte order mark, or else the one that a page declares.
    Any other text has an older encoding, which is guessed from its letters.
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
    """Return the encoding of a text that isn't Unicode.

    A text with few bytes above 127 is in a language with Latin letters, or too short to be guessed.
    """
    sample = _take_sample(content)
    foreign_bytes = sum(byte > 127 for byte in sample)
    ascii_letters = sum(byte < 128 and chr(byte).isalpha() for byte in sample)
    if foreign_bytes < max(MIN_FOREIGN_BYTES, FOREIGN_SHARE * (foreign_bytes + ascii_letters)):
        is_turkish = _TURKISH_BYTES.intersection(sample) and _ICELANDIC_BYTES.isdisjoint(sample)
        return TURKISH if is_turkish else LATIN
    from charset_normalizer import from_bytes

    match = from_bytes(sample, cp_isolation=_FOREIGN_ENCODINGS).best()
    return LATIN if match is None else match.encoding


def _take_sample(content: bytes) -> bytes:
    """Return the beginning of a text. A character that's cut would rule out its encoding.

    Bytes up to 47, such as spaces and line breaks, are never a part of a longer character.
    """
    if len(content) <= GUESS_BYTES:
        return content
    end = GUESS_BYTES
    while end and content[end] > 47:
        end -= 1
    return content[:end] or content
