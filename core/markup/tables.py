"""Aligns the columns of a table in a monospaced font."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_COLUMN_WIDTH = 40


def align_table(rows: Sequence[Sequence[str]], alignments: Sequence[str]) -> list[str]:
    """Return the lines of a table, with a rule under the first row.

    All rows must have the same number of cells. An alignment is "left", "right", "center" or "".
    Cells longer than `MAX_COLUMN_WIDTH` aren't cut, but extend beyond their column.
    """
    widths = [
        min(max(map(measure_width, column)), MAX_COLUMN_WIDTH) for column in zip(*rows, strict=True)
    ]
    lines = [" | ".join(map(_pad_cell, row, widths, alignments)).rstrip() for row in rows]
    rule = "-+-".join("-" * width for width in widths)
    return [lines[0], rule, *lines[1:]]


def measure_width(text: str) -> int:
    """Return how many columns a text takes in a monospaced font. Wide characters take two."""
    if text.isascii():
        return len(text)
    columns = 0
    for character in text:
        # Combining marks and invisible formatting characters take no column.
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


def _pad_cell(cell: str, width: int, alignment: str) -> str:
    """Return the cell padded with spaces to `width` columns."""
    padding = max(0, width - measure_width(cell))
    left_padding = {"right": padding, "center": padding // 2}.get(alignment, 0)
    return " " * left_padding + cell + " " * (padding - left_padding)
