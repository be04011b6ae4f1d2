"""Plain text: its length in UTF-16 units, its width in a monospaced font, where it may be cut, the web addresses in it,
and how it is written inside Markdown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

URL_CHARS = 2000
"""Longer addresses are text like any other."""
CJK_STOPS = "\u3002\uff01\uff1f"
"""Full stop, exclamation and question mark of East Asian scripts, which no space follows."""
CJK_PAUSES = "\u3001\uff0c\uff1b\uff1a"
CJK_CLOSERS = "\u300d\u300f\uff09\u3011\u300b"
_CJK_OPENERS = "\uff08\u300c\u300e\u3010\u300a"
_URL_STOPS = frozenset("<>\"'`[]|\\{}^" + CJK_STOPS + CJK_PAUSES + CJK_CLOSERS + _CJK_OPENERS)
_URL_TRAIL = frozenset(".,;:!?*~")
_WIDEST_COLUMN = 40
_ESCAPED = frozenset("\\`*_[]<>~|&#")
_ESCAPED_AT_START = frozenset("+-=:")


def utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units, as Telegram counts it."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def well_formed(text: str) -> str:
    """The text with line breaks as one character and without what no platform takes (NUL, half surrogates)."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def url_end(text: str, colon: int, limit: int) -> int:
    """Where the bare web address ends whose ``://`` is at `colon`; 0 when there is none. `limit` is the text's end."""
    before = text[max(colon - 5, 0) : colon].lower()
    scheme = next((name for name in ("https", "http") if before.endswith(name)), None)
    begin = colon - len(scheme or "")
    if scheme is None or (begin and (text[begin - 1].isalnum() or text[begin - 1] == "\\")):
        return 0
    start = end = colon + 3
    limit = min(limit, start + URL_CHARS)
    while end < limit and text[end] > " " and text[end] not in _URL_STOPS and not text[end].isspace():
        if text[end : end + 2] in ("**", "~~"):
            break
        end += 1
    end = _trimmed(text, start, end, is_underscored=begin > 0 and text[begin - 1] == "_")
    return end if end > start else 0


def _trimmed(text: str, start: int, end: int, is_underscored: bool) -> int:
    """The end of an address without the punctuation and closing brackets that belong to the sentence around it."""
    surplus = text.count(")", start, end) - text.count("(", start, end)
    while end > start:
        last = text[end - 1]
        if last == ")" and surplus > 0:
            surplus -= 1
        elif last not in _URL_TRAIL and not (last == "_" and is_underscored):
            break
        end -= 1
    return end


def addresses(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is a bare web address."""
    done = 0
    colon = text.find("://")
    while colon >= 0:
        end = url_end(text, colon, len(text))
        begin = colon - (5 if text[max(0, colon - 5) : colon].lower() == "https" else 4)
        if end and begin >= done:
            if begin > done:
                yield text[done:begin], False
            yield text[begin:end], True
            done = end
        colon = text.find("://", max(end, colon + 3))
    if done < len(text):
        yield text[done:], False


def escape(text: str) -> str:
    """Markdown that reads as exactly this text: for names, titles and quotations inside a composed message."""
    pieces: list[str] = []
    is_start = True
    for piece, is_url in addresses(well_formed(text)):
        if is_url:
            pieces.append(piece)
        else:
            for index, line in enumerate(piece.split("\n")):
                pieces.append("\n" if index else "")
                pieces.append(_escaped_line(line, is_start or index > 0))
        is_start = False
    return "".join(pieces)


def _escaped_line(line: str, is_start: bool) -> str:
    pieces = [f"\\{character}" if character in _ESCAPED else character for character in line]
    if is_start:
        indent = len(line) - len(line.lstrip())
        pieces[:indent] = ""
        line = line[indent:]
        digits = len(line) - len(line.lstrip("0123456789"))
        if line[:1] in _ESCAPED_AT_START and line:
            pieces[0] = f"\\{line[0]}"
        elif digits and line[digits : digits + 1] in (".", ")"):
            pieces[digits] = f"\\{line[digits]}"
    return "".join(pieces)


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
    columns = 0
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


def table_lines(rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> list[str]:
    """Rows of cells as lines with aligned columns; a ruled line under the first row."""
    count = len(rows[0])
    widths = [0] * count
    for row in rows:
        for index, cell in enumerate(row[:count]):
            widths[index] = max(widths[index], min(width(cell), _WIDEST_COLUMN))
    lines: list[str] = []
    for row in rows:
        cells: list[str] = []
        for index, cell in enumerate(row[:count]):
            room = max(0, widths[index] - width(cell))
            left = {"right": room, "center": room // 2}.get(aligns[index], 0)
            cells.append(" " * left + cell + " " * (room - left))
        lines.append(" | ".join(cells).rstrip())
        if len(lines) == 1:
            lines.append("-+-".join("-" * columns for columns in widths))
    return lines
