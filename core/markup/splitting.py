"""Cuts a text with entities into parts that fit a platform's limit for a message.

A part ends where a paragraph, a line, a sentence or a word ends, if possible.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from functools import lru_cache

from core.markup.markdown import CJK_CLOSERS, CJK_PAUSES, CJK_STOPS, StyledText

# A grapheme, such as an emoji with modifiers, has at most about this many characters.
_GRAPHEME_CHARS = 64
_SENTENCE_END = re.compile(rf"[.!?…](?=\s)|[{CJK_STOPS}](?![{CJK_CLOSERS}])")
# The position before white space, or after East Asian punctuation.
_WORD_END = re.compile(
    rf"(?=\s)|(?<=[{CJK_STOPS}{CJK_PAUSES}])(?![{CJK_STOPS}{CJK_PAUSES}{CJK_CLOSERS}])"
)


class _Boundary(Enum):
    """The kinds of places where a text may be cut, best first."""

    PARAGRAPH = "paragraph"
    LINE = "line"
    SENTENCE = "sentence"


# For each kind, the share of a message that must come before the cut. If it's less, the text is cut
# between words.
_MIN_SHARES = {_Boundary.PARAGRAPH: 0.5, _Boundary.LINE: 0.6, _Boundary.SENTENCE: 0.6}


def split(styled: StyledText, limit: int, measure: Callable[[StyledText], int]) -> list[StyledText]:
    """Cut a text into parts with ``measure(part) <= limit``. A blank text has no parts.

    `measure` returns the length of a part as the platform counts it. Only white space between the
    parts is lost.
    """
    styled = styled.strip_end()
    parts: list[StyledText] = []
    position = 0
    while position < len(styled.text):
        begin = _skip_blank_lines(styled, position)
        # Drop the entities before `begin`, so that they aren't checked again for each part.
        entities = tuple(entity for entity in styled.entities if entity.end > begin)
        styled = StyledText(styled.text, entities)
        lookahead = _cut_lookahead(styled, begin, limit, measure)
        part, length = _first_part(lookahead, limit, measure)
        parts.append(part)
        position = begin + length
    return [part for part in parts if part.text]


def _cut_lookahead(
    styled: StyledText, begin: int, limit: int, measure: Callable[[StyledText], int]
) -> StyledText:
    """Return the text after `begin` that is needed to find the end of the part there."""
    size = 2 * limit
    entities = bisect_left(styled.entities, begin + size, key=lambda entity: entity.offset)
    # Many entities fill a part with few characters, unless even the address of a link doesn't fit.
    if entities > limit // 4 and measure(styled.cut_out(begin, begin + 1)) <= limit:
        size = limit // 8
    while size < 2 * limit and measure(styled.cut_out(begin, begin + size).strip_end()) <= limit:
        size *= 2
    return styled.cut_out(begin, begin + min(size, 2 * limit) + _GRAPHEME_CHARS)


@lru_cache(64)
def _first_part(
    remaining: StyledText, limit: int, measure: Callable[[StyledText], int]
) -> tuple[StyledText, int]:
    """Return the first part of `remaining`, and how many characters of `remaining` the part covers.

    The first parts of a growing answer stay the same, so they are cached.
    """
    # The text is at most twice as long as its measure, so a longer text needn't be measured.
    while len(remaining.text) > 2 * limit or measure(remaining) > limit:
        # Find the longest beginning that fits, by bisection.
        sizes = range(min(len(remaining.text), 2 * limit) + 1)
        end = bisect_right(
            sizes, limit, key=lambda size: measure(remaining.cut_out(0, size).strip_end())
        )
        end -= 1
        if end > 0 or all(entity.offset > 0 for entity in remaining.entities):
            end = _find_boundary(remaining, max(end, 1))
            return remaining.cut_out(0, end).strip_end(), end
        # No beginning fits, because a link there has an address longer than a message. The text is
        # sent without the link.
        entities = tuple(entity for entity in remaining.entities if entity.offset > 0)
        remaining = replace(remaining, entities=entities)
    return remaining, len(remaining.text)


def _find_boundary(styled: StyledText, end: int) -> int:
    """Return the best position for a cut at or before `end`.

    The end of a paragraph is best, then the end of a line, a sentence, a word, and a grapheme.
    """
    text = styled.text
    for boundary, min_share in _MIN_SHARES.items():
        min_position = int(end * min_share)
        position = max(_list_boundaries(styled, boundary, end), default=0)
        if position > min_position and text[:position].strip():
            return position
    word_ends = [
        match.start() for match in _WORD_END.finditer(text, 0, end + 1) if 0 < match.start() <= end
    ]
    if word_ends and text[: word_ends[-1]].strip():
        return word_ends[-1]
    graphemes = [
        position for position in grapheme_ends(text[: end + _GRAPHEME_CHARS]) if position <= end
    ]
    return graphemes[-1] if graphemes else end


def _list_boundaries(styled: StyledText, boundary: _Boundary, end: int) -> Iterator[int]:
    """Yield the positions up to `end` at which a paragraph, line or sentence ends.

    A blank line in code doesn't end a paragraph. The end of a heading isn't a boundary, so that the
    heading stays with the text below it.
    """
    if boundary is _Boundary.SENTENCE:
        for match in _SENTENCE_END.finditer(styled.text, 0, end + 1):
            if match.end() <= end:
                yield match.end()
        return
    separator = "\n\n" if boundary is _Boundary.PARAGRAPH else "\n"
    code_spans = [(entity.offset, entity.end) for entity in styled.entities if entity.kind == "pre"]
    heading_ends = {entity.end for entity in styled.entities if entity.kind == "heading"}
    position = styled.text.find(separator)
    while 0 <= position <= end:
        is_in_code = any(start <= position < stop for start, stop in code_spans)
        is_paragraph_in_code = is_in_code and boundary is _Boundary.PARAGRAPH
        if position not in heading_ends and not is_paragraph_in_code:
            yield position
        position = styled.text.find(separator, position + 1)


def _skip_blank_lines(styled: StyledText, start: int) -> int:
    """Return the position after the white space at `start`. Indentation in code isn't skipped."""
    text = styled.text
    begin = len(text) - len(text[start:].lstrip())
    is_code = any(
        entity.kind == "pre" and entity.offset <= begin < entity.end for entity in styled.entities
    )
    if not is_code:
        return begin
    return max(start, text.rfind("\n", start, begin) + 1)


def grapheme_ends(text: str) -> list[int]:
    """Return the position after each grapheme, the user-perceived character of Unicode Annex 29."""
    # Imported here because it loads slowly, and it's needed only for a word longer than a message.
    import regex  # type: ignore[import-untyped]

    return [match.end() for match in regex.finditer(r"\X", text)]
