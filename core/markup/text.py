"""Plain text: its length in UTF-16 units, its width in a monospaced font, where it may be cut, the web addresses in it,
and how it is written inside Markdown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

URL_CHARS = 2000
"""Longer addresses are text like any other."""
CJK_STOPS = "\u3002\uff01\uff1f"
"""Full stop, exclamation and question mark of East Asian scripts, which no space follows."""
CJK_PAUSES = "\u3001\uff0c\uff1b\uff1a"
CJK_CLOSERS = "\u300d\u300f\uff09\u3011\u300b"
_CJK_OPENERS = "\uff08\u300c\u300e\u3010\u300a"
_URL = re.compile(
    rf"(?<![^\W_])(?<!\\)https?://(?:(?!\*\*|~~)[^\s<>\"'`\[\]|\\{{}}^{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}{_CJK_OPENERS}])"
    f"{{1,{URL_CHARS}}}",
    re.IGNORECASE,
)
_URL_TRAIL = ".,;:!?*~"
_WIDEST_COLUMN = 40
_ESCAPED = re.compile(r"[\\`*_\[\]<>~|&#]")
_INDENT = re.compile(r"\n[^\S\n]+")
_LINE_MARK = re.compile(r"(?<=\n)(?:([0-9]+)(?=[.)])|(?=[+\-=:]))")


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units, as Telegram counts it."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def well_formed(text: str) -> str:
    """The text with line breaks as one character and without what no platform takes (NUL, half surrogates)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def url_at(text: str, colon: int) -> str:
    """The bare web address whose ``://`` is at `colon`; empty when there is none."""
    begin = colon - (5 if text[max(colon - 5, 0) : colon].lower() == "https" else 4)
    found = _URL.match(text, begin) if begin >= 0 else None
    return _trimmed(found[0]) if found else ""


def _trimmed(url: str) -> str:
    """Without the punctuation and closing brackets that belong to the sentence around an address."""
    surplus = url.count(")") - url.count("(")
    while (last := url[-1]) in _URL_TRAIL or (last == ")" and surplus > 0):
        surplus -= last == ")"
        url = url[:-1]
    return "" if url.endswith("/") and url.count("/") == 2 else url


def addresses(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is a bare web address."""
    done = 0
    for found in _URL.finditer(text):
        if url := _trimmed(found[0]):
            yield text[done : found.start()], False
            yield url, True
            done = found.start() + len(url)
    yield text[done:], False


def escape(text: str) -> str:
    """Markdown that reads as exactly this text: for names, titles and quotations inside a composed message."""
    pieces = []
    for piece, is_url in addresses("\n" + well_formed(text)):
        escaped = _INDENT.sub("\n", _ESCAPED.sub(r"\\\g<0>", piece))
        pieces.append(piece if is_url else _LINE_MARK.sub(r"\1\\", escaped))
    return "".join(pieces)[1:]


def is_cjk(character: str) -> bool:
    """Whether the character is of a script written without spaces or its punctuation."""
    is_wide = character >= "\u1100" and unicodedata.east_asian_width(character) in "WF"
    return is_wide and unicodedata.category(character) not in ("So", "Sk")


def grapheme_ends(text: str) -> list[int]:
    """The positions after each user-perceived character (Unicode Annex 29)."""
    # It takes a while to load and is needed for words longer than a message only.
    import regex  # type: ignore[import-untyped]

    return [match.end() for match in regex.finditer(r"\X", text)]


def width(text: str) -> int:
    """Columns that the text takes in a monospaced font."""
    if text.isascii():
        return len(text)
    shown = (character for character in text if unicodedata.category(character) not in ("Mn", "Me", "Cf"))
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown)


def table_lines(rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> list[str]:
    """Rows of equally many cells as lines with aligned columns; a ruled line under the first row."""
    widths = [min(max(map(width, column)), _WIDEST_COLUMN) for column in zip(*rows, strict=True)]
    lines = [" | ".join(map(_padded, row, widths, aligns)).rstrip() for row in rows]
    return [lines[0], "-+-".join("-" * columns for columns in widths), *lines[1:]]


def _padded(cell: str, columns: int, align: str) -> str:
    room = max(0, columns - width(cell))
    left = {"right": room, "center": room // 2}.get(align, 0)
    return " " * left + cell + " " * (room - left)
