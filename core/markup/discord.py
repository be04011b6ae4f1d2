"""Renders the tree as Discord's own Markdown: its marks escaped in text, tables as code blocks, nobody mentioned."""

from __future__ import annotations

from collections.abc import Sequence

from core.markup.parse import MarkupNode, parse
from core.markup.telegram import inline_text
from core.markup.text import addresses, table_lines

_ESCAPED = frozenset("*~`|")
_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}
_GAP = "\u200b"
_BLANK = ("", False)


def to_discord(markdown: str) -> str:
    """The text to send. Nothing that a person typed is read as a mark of Discord's."""
    return "\n".join(line for line, _ in _blocks(parse(markdown))).strip("\n").rstrip()


def _blocks(nodes: Sequence[MarkupNode], is_tight: bool = False) -> list[tuple[str, bool]]:
    """Lines, each with whether it belongs to a code block, which is never indented."""
    lines: list[tuple[str, bool]] = []
    for index, node in enumerate(nodes):
        if index and node.is_apart and not is_tight:
            lines.append(_BLANK)
        lines.extend(_block(node))
    return lines


def _block(node: MarkupNode) -> list[tuple[str, bool]]:
    match node.kind:
        case "heading":
            return [(_heading(node), False)]
        case "list":
            return _items(node)
        case "quote":
            return [(f"> {line}", is_code) for line, is_code in _blocks(node.children) or [_BLANK]]
        case "code":
            return _fenced(node.text, node.language or "")
        case "table":
            rows = [[inline_text(cell.children) for cell in row.children] for row in node.children]
            return _fenced("\n".join(table_lines(rows, [cell.align for cell in node.children[0].children])), "")
        case "rule":
            return [("———", False)]
        case _:
            return [(_line(line), False) for line in _inlines(node.children).split("\n")]


def _heading(node: MarkupNode) -> str:
    line = _inlines(node.children).replace("\n", " ")
    return f"{'#' * node.level} {line}" if node.level <= 3 or not line else f"**{line}**"


def _fenced(text: str, language: str) -> list[tuple[str, bool]]:
    language = language if language.replace("+", "").replace("-", "").replace("#", "").isalnum() else ""
    text = text.replace("```", f"`{_GAP}`{_GAP}`")
    return [(line, True) for line in (f"```{language}", *text.split("\n"), "```")]


def _items(node: MarkupNode) -> list[tuple[str, bool]]:
    lines: list[tuple[str, bool]] = []
    for index, item in enumerate(node.children):
        if index and not node.is_tight:
            lines.append(_BLANK)
        mark = "- " if node.start is None else f"{node.start + index}. "
        inner = _blocks(item.children, node.is_tight) or [_BLANK]
        if inner[0][1]:
            inner.insert(0, _BLANK)
        lines.append((mark + inner[0][0], False))
        for line, is_code in inner[1:]:
            lines.append((line if is_code or not line else " " * len(mark) + line, is_code))
    return lines


def _line(line: str) -> str:
    """A line of text that does not begin like a heading, list, quote or small print."""
    stripped = line.lstrip()
    number = stripped[: len(stripped) - len(stripped.lstrip("0123456789"))]
    if stripped[:1] in ("#", ">", "-", "+"):
        return f"\\{stripped}"
    if number and stripped[len(number) : len(number) + 1] in (".", ")"):
        return f"{number}\\{stripped[len(number) :]}"
    return line


def _inlines(nodes: Sequence[MarkupNode]) -> str:
    pieces: list[str] = []
    for node in nodes:
        match node.kind:
            case "text":
                pieces.append(_text(node.text))
            case "code_span":
                pieces.append(_code(node.text))
            case "link":
                pieces.append(_link(node))
            case _:
                mark = _MARKS[node.kind]
                pieces.append(f"{mark}{_inlines(node.children)}{mark}")
    return "".join(pieces)


def _link(node: MarkupNode) -> str:
    """A masked link where Discord draws one (web addresses under a text that is none), else text and address."""
    label, url = _inlines(node.children), node.url or ""
    if url.lower().startswith(("http://", "https://")) and "://" not in label:
        return f"[{label}](<{url}>)".replace("\n", " ")
    return f"{label} ({url.removeprefix('mailto:').removeprefix('tel:')})"


def _code(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    return (
        f"``{text.replace('``', f'`{_GAP}`')}``"
        if text.strip("`") == text
        else f"`` {text.replace('``', f'`{_GAP}`')} ``"
    )


def _text(text: str) -> str:
    return "".join(piece if is_url else _escaped(piece) for piece, is_url in addresses(text))


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
