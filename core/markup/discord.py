"""Writes a rendered text as Discord's own Markdown: its marks are escaped in text, nobody is mentioned."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from core.markup.markdown import StyledText, TextEntity, addresses

_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
_MARK = re.compile(r"[*~`|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\\(?![A-Za-z0-9\s])|<(?=\S)|(?<=@)(?=everyone|here)")
"""What Discord reads as a mark of its own. To its patterns a letter with an accent is no letter."""
_LINE_MARK = re.compile(r"(?<=\n)([^\S\n]*)(?:([0-9]+)(?=[.)])|(?=[#>+-]))")
_GAP = "\u200b"
_DEEPEST_HEADING = 3


def to_discord(styled: StyledText) -> str:
    """The text to send. Nothing that a person typed is read as a mark of Discord's."""
    return _written(styled.text, 0, len(styled.text), styled.entities)


def _written(text: str, start: int, end: int, entities: Sequence[TextEntity], *, is_heading: bool = False) -> str:
    """The text between two positions; `entities` are those that lie there."""
    pieces: list[str] = []
    index = 0
    while index < len(entities):
        entity, first = entities[index], index + 1
        index = bisect_left(entities, entity.end, first, key=lambda other: other.offset)
        inner = entities[first:index]
        pieces.append(_plain(text, start, entity.offset))
        if entity.kind == "bold" and is_heading:
            pieces.append(_written(text, entity.offset, entity.end, inner))
        else:
            pieces.append(_entity(text, entity, inner))
        start = entity.end
    return "".join([*pieces, _plain(text, start, end)])


def _entity(text: str, entity: TextEntity, inner: Sequence[TextEntity]) -> str:
    said = text[entity.offset : entity.end]
    is_large = entity.kind == "heading" and entity.level <= _DEEPEST_HEADING
    written = _written(text, entity.offset, entity.end, inner, is_heading=is_large)
    match entity.kind:
        case "code":
            return _code_span(said)
        case "pre":
            return _code(said, entity.language or "")
        case "list_marker":
            return said.replace("•", "-")
        case "heading":
            return (f"{'#' * entity.level} " if is_large else "") + written.replace("\n", " ")
        case "blockquote":
            return "\n".join(f"> {line}" for line in written.split("\n"))
        case "text_link":
            return _link(written, entity.url or "")
        case _:
            styled, mark = written.strip(), _MARKS[entity.kind]
            # Marks with white space inside them are none.
            return written.replace(styled, f"{mark}{styled}{mark}") if styled else written


def _code(text: str, language: str) -> str:
    language = language if language.replace("+", "").replace("-", "").replace("#", "").isalnum() else ""
    return f"```{language}\n{text.replace('```', f'`{_GAP}`{_GAP}`')}\n```"


def _code_span(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    pad = "" if text.strip("`") == text else " "
    return f"``{pad}{text.replace('``', f'`{_GAP}`')}{pad}``"


def _link(label: str, url: str) -> str:
    """A masked link where Discord draws one (web addresses under a text that is none), else text and address."""
    if url.lower().startswith(("http://", "https://")) and "://" not in label:
        return f"[{label}](<{url}>)".replace("\n", " ")
    return f"{label} ({url.removeprefix('mailto:').removeprefix('tel:')})"


def _plain(text: str, start: int, end: int) -> str:
    """Text without entities: escaped, web addresses as they are, and no line of it a heading, list, quote or small
    print."""
    escaped = "".join(piece if is_url else _escaped(piece) for piece, is_url in addresses(text[start:end]))
    if start > 0 and text[start - 1] not in "\n ":
        return _LINE_MARK.sub(r"\1\2\\", escaped)
    return _LINE_MARK.sub(r"\1\2\\", f"\n{escaped}")[1:]


def _escaped(text: str) -> str:
    """A bracket is a mark only where a link could end behind it."""
    begin, middle, end = text.rpartition("](")
    begin = _MARK.sub(_escape, begin).replace("[", "\\[")
    return begin + _MARK.sub(_escape, middle + end)


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}" if found[0] else _GAP
