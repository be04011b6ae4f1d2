"""Writes the tree back as Markdown that parses to the same visible text, whatever characters stand in it.

Also lays inlines out as a flat row of leaves, which is how the splitter cuts a paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from core.markup.parse import MarkupNode, parse
from core.markup.text import addresses, well_formed

Leaf = tuple[MarkupNode, tuple[MarkupNode, ...]]
"""A text or code_span node and the nodes around it, outermost first."""

Line = tuple[str, bool]
"""A line, and whether it is never indented."""

_BLANK: Line = ("", False)
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
    found = "".join(node.text or visible(node.children) for node in nodes)
    return "".join(found.split())


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


def blocks_source(nodes: Sequence[MarkupNode]) -> str:
    """Blocks as Markdown. A top-level block that is as it was written is written so."""
    return MarkdownWriter().document(nodes)


class MarkdownWriter:
    """Writes CommonMark; a dialect overrides what it reads otherwise."""

    rule = "***"
    bullets = ("- ", "+ ")
    dots = (".", ")")
    """What marks the items of a list, and those of a list right behind another one."""

    def document(self, nodes: Sequence[MarkupNode]) -> str:
        return "\n".join(line for line, _ in self.blocks(nodes))

    def blocks(self, nodes: Sequence[MarkupNode], is_tight: bool = False) -> list[Line]:
        lines: list[Line] = []
        before: MarkupNode | None = None
        for node in nodes:
            if before is not None and self.is_apart(before, node, is_tight):
                lines.append(_BLANK)
            is_second = before is not None and before.kind == "list" and before.source is None
            lines.extend(self.block(node, is_second))
            before = node
        return lines

    def is_apart(self, before: MarkupNode, node: MarkupNode, is_tight: bool) -> bool:
        """Whether a blank line stands between two blocks."""
        if before.source is not None and node.source is not None:
            return node.is_apart
        is_joinable = node.kind == "code" or (node.kind == "list" and node.start is None)
        return not (is_tight and before.kind == "paragraph" and is_joinable)

    def block(self, node: MarkupNode, is_second: bool) -> list[Line]:
        if node.source is not None:
            return _lines(node.source)
        match node.kind:
            case "heading":
                return [(self.heading(node), False)]
            case "list":
                return self.items(node, is_second)
            case "quote":
                return [(f"> {line}", is_fixed) for line, is_fixed in self.blocks(node.children) or [_BLANK]]
            case "code":
                return self.code(node.text, node.language or "")
            case "table":
                return self.table(node)
            case "rule":
                return [(self.rule, False)]
            case _:
                return _lines(self.paragraph(node.children))

    def items(self, node: MarkupNode, is_second: bool) -> list[Line]:
        lines: list[Line] = []
        for index, item in enumerate(node.children):
            if index and not node.is_tight:
                lines.append(_BLANK)
            mark = self.bullets[is_second]
            if node.start is not None:
                mark = f"{min(node.start + index, 999_999_999)}{self.dots[is_second]} "
            inner = self.blocks(item.children, node.is_tight) or [_BLANK]
            if inner[0][1]:
                inner.insert(0, _BLANK)
            lines.append((mark + inner[0][0], False))
            for line, is_fixed in inner[1:]:
                lines.append((line if is_fixed or not line else " " * len(mark) + line, is_fixed))
        return lines

    def heading(self, node: MarkupNode) -> str:
        return f"{'#' * node.level} {self.paragraph(node.children, is_line=True)}"

    def code(self, text: str, language: str) -> list[Line]:
        fence = "`" * max(3, _longest_ticks(text) + 1)
        return _lines(f"{fence}{language.replace('`', '')}\n{text}\n{fence}")

    def table(self, node: MarkupNode) -> list[Line]:
        rows = [
            " | ".join(self.paragraph(cell.children, is_line=True) for cell in row.children) for row in node.children
        ]
        rules = {"right": "--:", "center": ":-:", "left": ":--"}
        ruled = "|".join(rules.get(cell.align, "---") for cell in node.children[0].children)
        lines = [f"| {row} |" for row in rows]
        return [(line, False) for line in (lines[0], f"|{ruled}|", *lines[1:])]

    def paragraph(self, nodes: Sequence[MarkupNode], is_line: bool = False) -> str:
        """Inlines, without their marks where these would be read otherwise (marks next to marks can be). `is_line`: on
        one line."""
        row = leaves(nodes)
        if any(around or leaf.kind != "text" for leaf, around in row):
            written = self.inlines(nodes)
            written = (written.replace("\n", " ") if is_line else written).strip()
            blocks = parse(written)
            if len(blocks) == 1 and blocks[0].kind == "paragraph" and visible(blocks) == visible(nodes):
                return written
        plain = "".join(leaf.text for leaf, _ in row)
        return escape(plain.replace("\n", " ") if is_line else plain).strip()

    def inlines(self, nodes: Sequence[MarkupNode]) -> str:
        pieces: list[str] = []
        for node in nodes:
            match node.kind:
                case "text":
                    pieces.append(self.text(node.text))
                case "code_span":
                    pieces.append(self.code_span(node.text))
                case "link":
                    pieces.append(self.link(self.inlines(node.children), node.url or ""))
                case _:
                    mark = _MARKS[node.kind]
                    pieces.append(f"{mark}{self.inlines(node.children)}{mark}")
        return "".join(pieces)

    def text(self, text: str) -> str:
        """Escaped; in the midst of other inlines the white space at its ends stays."""
        indent = len(text) - len(text.lstrip())
        return text[:indent] + escape(text[indent:])

    def code_span(self, text: str) -> str:
        fence = "`" * (_longest_ticks(text) + 1)
        is_padded = text.startswith("`") or text.endswith("`") or (text[:1] == " " == text[-1:] and text.strip() != "")
        pad = " " if is_padded else ""
        return f"{fence}{pad}{text}{pad}{fence}"

    def link(self, label: str, url: str) -> str:
        url = url.replace("\\", "%5C").replace("<", "%3C").replace(">", "%3E")
        return f"[{label}](<{url}>)"


def _lines(text: str) -> list[Line]:
    return [(line, False) for line in text.split("\n")]


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
