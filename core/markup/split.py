"""Cuts rendered text into parts that each fit into one message, where a reader would."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace

from core.markup.markdown import CJK_CLOSERS, CJK_PAUSES, CJK_STOPS, StyledText

_SENTENCE_END = re.compile(rf"[.!?…](?=\s)|[{CJK_STOPS}](?![{CJK_CLOSERS}])")
_WORD_END = re.compile(rf"(?=\s)|(?<=[{CJK_STOPS}{CJK_PAUSES}])(?![{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}])")
_LEAST_SHARE = {"\n\n": 0.5, "\n": 0.6, "sentence": 0.6}
"""A cut at such a boundary may leave so much of the part unused; one between words any share."""


def split(styled: StyledText, limit: int, measure: Callable[[StyledText], int]) -> list[StyledText]:
    """Parts with ``measure(part) <= limit``; `[]` for blank text. `measure` is the length of one part as the platform
    counts it. Nothing is lost or doubled but white space between parts."""
    parts: list[StyledText] = []
    rest = _stripped(styled)
    while rest.text:
        # Whatever the platform counts, a text is not sent shorter than it is by much.
        if len(rest.text) <= 2 * limit and measure(rest) <= limit:
            parts.append(rest)
            break
        end = _fitting(rest, limit, measure)
        if end == 0 and any(entity.offset == 0 for entity in rest.entities):
            # An address longer than the message: better the words without it than nothing.
            rest = replace(rest, entities=tuple(entity for entity in rest.entities if entity.offset > 0))
            continue
        end = _boundary(rest, max(end, 1))
        parts.append(_stripped(rest.part(0, end)))
        rest = _stripped(rest.part(end, len(rest.text)))
    return [part for part in parts if part.text]


def _fitting(styled: StyledText, limit: int, measure: Callable[[StyledText], int]) -> int:
    """The number of characters that fit; 0 when not even one does."""
    sizes = range(min(len(styled.text), 2 * limit) + 1)
    return bisect_right(sizes, limit, key=lambda size: measure(_stripped(styled.part(0, size)))) - 1


def _boundary(styled: StyledText, end: int) -> int:
    """The best place for a cut at or before `end`."""
    text = styled.text
    for sign, share in _LEAST_SHARE.items():
        least = int(end * share)
        places = (place for place in _places(styled, sign, end) if place > least)
        if (place := max(places, default=0)) and text[:place].strip():
            return place
    words = [found.start() for found in _WORD_END.finditer(text, 0, end + 1) if 0 < found.start() <= end]
    if words and text[: words[-1]].strip():
        return words[-1]
    graphemes = [place for place in grapheme_ends(text[: end + 64]) if place <= end]
    return graphemes[-1] if graphemes else end


def grapheme_ends(text: str) -> list[int]:
    """The positions after each user-perceived character (Unicode Annex 29)."""
    # It takes a while to load and is needed for words longer than a message only.
    import regex  # type: ignore[import-untyped]

    return [match.end() for match in regex.finditer(r"\X", text)]


def _places(styled: StyledText, sign: str, end: int) -> Iterator[int]:
    """Positions up to `end` before which a blank line, a line, or a sentence ends. Inside of code there are only lines,
    and a heading goes with what follows it."""
    if sign == "sentence":
        yield from (found.end() for found in _SENTENCE_END.finditer(styled.text, 0, end + 1) if found.end() <= end)
        return
    code = [(entity.offset, entity.end) for entity in styled.entities if entity.kind == "pre"]
    headings = {entity.end for entity in styled.entities if entity.kind == "heading"}
    place = styled.text.find(sign)
    while 0 <= place <= end:
        is_in_code = any(start <= place < stop for start, stop in code)
        if place not in headings and not (is_in_code and sign == "\n\n"):
            yield place
        place = styled.text.find(sign, place + 1)


def _stripped(styled: StyledText) -> StyledText:
    """Without blank lines around it, and white space at its end; indentation in code stays."""
    text = styled.text
    start = len(text) - len(text.lstrip())
    if any(entity.kind == "pre" and entity.offset <= start < entity.end for entity in styled.entities):
        start = text.rfind("\n", 0, start) + 1
    return styled.part(start, max(start, len(text.rstrip())))
