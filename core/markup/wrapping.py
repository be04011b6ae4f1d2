"""Wraps a text to the columns of a terminal, also in scripts with wide characters."""

from __future__ import annotations

import re

from core.markup.tables import measure_width

# Chinese and Japanese put no spaces between words, so a line may end after each character.
_UNSPACED = r"\u2e80-\u2fdf\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff10-\uff5a\uff66-\uff9f"
# A line can't end with an opening bracket, or begin with a closing one or a mark.
_OPENING = r"(\[{「『（〈《【“‘"  # noqa: RUF001
_CLOSING = r")\]}」』）〉》】”’、。，．：；！？・…ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々"  # noqa: RUF001
_PIECE = re.compile(
    rf"[{_OPENING}]*(?:(?![{_CLOSING}])[{_UNSPACED}]|[^{_UNSPACED}{_OPENING}]+|[{_CLOSING}])"
    rf"[{_CLOSING}]*|[{_OPENING}]+"
)


def wrap_columns(text: str, width: int) -> list[str]:
    """Return the lines of a text, each at most `width` terminal columns wide.

    Spaces and line breaks are replaced by single spaces. A word without a place to break may be
    wider than a line.
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        separator = " " if line else ""
        for piece in _PIECE.findall(word):
            if line and measure_width(f"{line}{separator}{piece}") > width:
                lines.append(line)
                line = piece
            else:
                line += separator + piece
            separator = ""
    return [*lines, line] if line else lines
