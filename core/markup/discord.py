"""Writes a rendered text as Discord's own Markdown: its marks are escaped in text, nobody is mentioned."""

from __future__ import annotations

from collections.abc import Sequence

from core.markup.render import StyledText, TextEntity
from core.markup.text import addresses

_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
_ESCAPED = frozenset("*~`|")
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
        entity = entities[index]
        behind = index + 1
        while behind < len(entities) and entities[behind].offset < entity.end:
            behind += 1
        pieces.append(_plain(text, start, entity.offset))
        if entity.kind == "bold" and is_heading:
            pieces.append(_written(text, entity.offset, entity.end, entities[index + 1 : behind]))
        else:
            pieces.append(_entity(text, entity, entities[index + 1 : behind]))
        start, index = entity.end, behind
    pieces.append(_plain(text, start, end))
    return "".join(pieces)


def _entity(text: str, entity: TextEntity, inner: Sequence[TextEntity]) -> str:
    said = text[entity.offset : entity.end]
    match entity.kind:
        case "code":
            return _code_span(said)
        case "pre":
            return _code(said, entity.language or "")
        case "list_marker":
            return said.replace("•", "-")
        case "heading":
            is_large = entity.level <= _DEEPEST_HEADING
            written = _written(text, entity.offset, entity.end, inner, is_heading=is_large).replace("\n", " ")
            return f"{'#' * entity.level} {written}" if is_large else written
        case "blockquote":
            written = _written(text, entity.offset, entity.end, inner)
            return "\n".join(f"> {line}" for line in written.split("\n"))
        case "text_link":
            return _link(_written(text, entity.offset, entity.end, inner), entity.url or "")
        case _:
            written = _written(text, entity.offset, entity.end, inner)
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
    first, *others = escaped.split("\n")
    is_line_start = start == 0 or text[start - 1] in "\n "
    return "\n".join([_line(first) if is_line_start else first, *map(_line, others)])


def _line(line: str) -> str:
    stripped = line.lstrip()
    indent = line[: len(line) - len(stripped)]
    number = stripped[: len(stripped) - len(stripped.lstrip("0123456789"))]
    if stripped[:1] in ("#", ">", "-", "+"):
        return f"{indent}\\{stripped}"
    if number and stripped[len(number) : len(number) + 1] in (".", ")"):
        return f"{indent}{number}\\{stripped[len(number) :]}"
    return line


def _is_word(character: str) -> bool:
    """As Discord's patterns see it: a letter with an accent is none."""
    return character.isascii() and character.isalnum()


def _escaped(text: str) -> str:
    last_bracket = text.rfind("](")
    pieces = [
        f"\\{character}" if _is_mark(text, index) or (character == "[" and index < last_bracket) else character
        for index, character in enumerate(text)
    ]
    return "".join(pieces).replace("@everyone", f"@{_GAP}everyone").replace("@here", f"@{_GAP}here")


def _is_mark(text: str, index: int) -> bool:
    """Whether Discord would read a character as a mark of its own."""
    character = text[index]
    before, after = text[index - 1] if index else " ", text[index + 1 : index + 2]
    match character:
        case "_":
            return not (_is_word(before) and _is_word(after))
        case "\\":
            return not (_is_word(after) or after.isspace())
        case "<":
            return after != "" and not after.isspace()
        case _:
            return character in _ESCAPED
