"""Shows the part of a text that matters: the match between ``>>>`` and ``<<<``, cut at words. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from core.search.marker import Marker

OPEN, CLOSE, CUT = ">>>", "<<<", "…"
WIDTH_CHARS = 200


def snippet(text: str, marker: Marker, width_chars: int = WIDTH_CHARS) -> str:
    """About `width_chars` of `text` on one line, where most different terms stand close together, all of them marked;
    the beginning where nothing matches."""
    spans = marker.spans(text)
    start, end = excerpt(text, spans, width_chars)
    parts = [CUT if start > 0 else ""]
    position = start
    for first, last in spans:
        if first >= position and last <= end:
            parts += [text[position:first], OPEN, text[first:last], CLOSE]
            position = last
    parts += [text[position:end], CUT if end < len(text) else ""]
    return " ".join("".join(parts).split())


def excerpt(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """The part of a text to show: (start, end) around the densest marks, a quarter of what is left before them, cut
    between words where there is a blank nearby."""
    if len(text) <= width_chars:
        return 0, len(text)
    first, last = _densest(text, spans, width_chars)
    room = max(0, width_chars - (last - first))
    start = max(0, first - room // 4)
    end = min(len(text), start + width_chars)
    start = max(0, min(start, end - width_chars))
    if start > 0:
        blank = text.find(" ", start, min(first, start + 20) + 1)
        start = blank + 1 if blank >= 0 else start
    if end < len(text):
        blank = text.rfind(" ", max(last, end - 20), end)
        end = blank if blank > 0 else end
    return start, end


def _densest(text: str, spans: Sequence[tuple[int, int]], width_chars: int) -> tuple[int, int]:
    """The stretch no longer than the width that holds most different matches; (0, 0) without any."""
    best, best_count = (0, 0), 0
    starts = [start for start, _ in spans]
    for index, (start, _) in enumerate(spans):
        inside = spans[index : bisect_left(starts, start + width_chars)]
        held = [span for span in inside if span[1] <= start + width_chars] or inside[:1]
        count = len({text[a:b].casefold() for a, b in held})
        if count > best_count:
            best, best_count = (start, min(held[-1][1], start + width_chars)), count
    return best
