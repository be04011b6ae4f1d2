"""Writes the tree back as Markdown that parses to the same visible text, whatever characters stand in it.

Also lays inlines out as a flat row of leaves, which is how the splitter cuts a paragraph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.markup.parse import MarkupNode, parse
from core.markup.text import addresses, well_formed

Leaf = tuple[MarkupNode, tuple[MarkupNode, ...]]
"""A text or code_span node and the nodes around it, outermost first."""

_ALWAYS = frozenset("\\`*_[]<>~|&#")
_AT_START = frozenset("+-=:")
_MARKS = {"bold": "**", "italic": "*", "strikethrough": "~~"}


def leaves(nodes: Sequence[MarkupNode], around: tuple[MarkupNode, ...] = ()) -> list[Leaf]:
    """The texts and code spans of inlines in order."""
    found: list[Leaf] = []
    for node in nodes:
        if node.kind in ("text", "code_span"):
            found.append((node, around))
        else:
            found.extend(leaves(node.children, (*around, node)))
    return found


def grown(row: Sequence[Leaf], depth: int = 0) -> tuple[MarkupNode, ...]:
    """The reverse of `leaves`: neighbours under the same node come under one node again."""
    nodes: list[MarkupNode] = []
    index = 0
    while index < len(row):
        leaf, around = row[index]
        if len(around) == depth:
            nodes.append(leaf)
            index += 1
            continue
        parent = around[depth]
        end = index
        while end < len(row) and len(row[end][1]) > depth and row[end][1][depth] is parent:
            end += 1
        nodes.append(replace(parent, children=grown(row[index:end], depth + 1)))
        index = end
    return tuple(nodes)


def visible(nodes: Sequence[MarkupNode]) -> str:
    """All text of a tree without any white space: what must survive every rewriting."""
    found: list[str] = []
    for node in nodes:
        found.append(node.text or visible(node.children))
    return "".join("".join(found).split())


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
    pieces = [f"\\{character}" if character in _ALWAYS else character for character in line]
    if is_start:
        indent = len(line) - len(line.lstrip())
        pieces[:indent] = ""
        line = line[indent:]
        digits = len(line) - len(line.lstrip("0123456789"))
        if line[:1] in _AT_START and line:
            pieces[0] = f"\\{line[0]}"
        elif digits and line[digits : digits + 1] in (".", ")"):
            pieces[digits] = f"\\{line[digits]}"
    return "".join(pieces)


def blocks_source(nodes: Sequence[MarkupNode], is_tight: bool = False) -> str:
    """Blocks as Markdown. A top-level block that is as it was written is written so."""
    pieces: list[str] = []
    for index, node in enumerate(nodes):
        before = nodes[index - 1] if index else None
        if before is not None:
            pieces.append(_separator(before, node, is_tight))
        if node.source is not None:
            pieces.append(node.source)
        else:
            is_second = before is not None and before.kind == "list" and pieces[0] != "" and before.source is None
            pieces.append(_block(node, is_second))
    return "".join(pieces)


def _separator(before: MarkupNode, node: MarkupNode, is_tight: bool) -> str:
    if before.source is not None and node.source is not None:
        return "\n\n" if node.is_apart else "\n"
    if (
        is_tight
        and before.kind == "paragraph"
        and (node.kind == "code" or (node.kind == "list" and node.start is None))
    ):
        return "\n"
    return "\n\n"


def _block(node: MarkupNode, is_second: bool) -> str:
    match node.kind:
        case "heading":
            return "#" * node.level + " " + inlines_source(node.children, is_line=True)
        case "list":
            return _items(node, is_second)
        case "quote":
            return "\n".join(f"> {line}".rstrip() for line in blocks_source(node.children).split("\n"))
        case "code":
            return _fenced(node)
        case "table":
            return _table(node)
        case "rule":
            return "***"
        case _:
            return inlines_source(node.children)


def _items(node: MarkupNode, is_second: bool) -> str:
    """`is_second`: right after another list, from which another mark keeps it apart."""
    lines: list[str] = []
    for index, item in enumerate(node.children):
        if index and not node.is_tight:
            lines.append("")
        if node.start is None:
            mark = "+ " if is_second else "- "
        else:
            mark = f"{min(node.start + index, 999_999_999)}{')' if is_second else '.'} "
        inner = blocks_source(item.children, node.is_tight).split("\n")
        lines.append((mark + inner[0]).rstrip())
        lines.extend((" " * len(mark) + line) if line else "" for line in inner[1:])
    return "\n".join(lines)


def _longest_run(text: str, mark: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == mark else 0
        longest = max(longest, run)
    return longest


def _fenced(node: MarkupNode) -> str:
    fence = "`" * max(3, _longest_run(node.text, "`") + 1)
    return f"{fence}{(node.language or '').replace('`', '')}\n{node.text}\n{fence}"


def _table(node: MarkupNode) -> str:
    lines: list[str] = []
    rules = {"right": "--:", "center": ":-:", "left": ":--"}
    for row in node.children:
        lines.append("| " + " | ".join(inlines_source(cell.children, is_line=True) for cell in row.children) + " |")
        if len(lines) == 1:
            lines.append("|" + "|".join(rules.get(cell.align, "---") for cell in row.children) + "|")
    return "\n".join(lines)


def inlines_source(nodes: Sequence[MarkupNode], is_line: bool = False) -> str:
    """Inlines as Markdown; without their marks where these would be read otherwise (marks next to marks can be).
    `is_line`: on one line."""
    row = leaves(nodes)
    if all(not around and leaf.kind == "text" for leaf, around in row):
        return _joined("".join(leaf.text for leaf, _ in row), is_line)
    written = _joined_inlines(nodes, is_line)
    blocks = parse(written)
    if len(blocks) == 1 and blocks[0].kind == "paragraph" and visible(blocks) == visible(nodes):
        return written
    return _joined("".join(leaf.text for leaf, _ in row), is_line)


def _joined(text: str, is_line: bool) -> str:
    return escape(text.replace("\n", " ") if is_line else text).strip()


def _joined_inlines(nodes: Sequence[MarkupNode], is_line: bool) -> str:
    text = _inlines(nodes)
    return (text.replace("\n", " ") if is_line else text).strip()


def _inlines(nodes: Sequence[MarkupNode]) -> str:
    pieces: list[str] = []
    for node in nodes:
        match node.kind:
            case "text":
                pieces.append(_in_place(node.text, not pieces))
            case "code_span":
                pieces.append(_code_span(node.text))
            case "link":
                url = (node.url or "").replace("\\", "%5C").replace("<", "%3C").replace(">", "%3E")
                pieces.append(f"[{_inlines(node.children)}](<{url}>)")
            case _:
                mark = _MARKS[node.kind]
                pieces.append(f"{mark}{_inlines(node.children)}{mark}")
    return "".join(pieces)


def _in_place(text: str, is_start: bool) -> str:
    """Escaped text in the midst of other inlines: white space at its ends stays."""
    indent = len(text) - len(text.lstrip())
    body = escape(text[indent:])
    return body if is_start and not text[:indent] else text[:indent] + body


def _code_span(text: str) -> str:
    fence = "`" * (_longest_run(text, "`") + 1)
    is_padded = text.startswith("`") or text.endswith("`") or (text[:1] == " " == text[-1:] and text.strip() != "")
    pad = " " if is_padded else ""
    return f"{fence}{pad}{text}{pad}{fence}"
