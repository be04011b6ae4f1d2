"""Renders Markdown as text with entities, of which every platform's messages are made, or as text alone (pipes).

Follows the rules of Telegram's Bot API: nothing nests in code and pre, and quotes do not nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from core.markup.parse import parse
from core.markup.text import table_lines, well_formed

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

EntityKind = Literal[
    "bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote", "heading", "list_marker"
]
_STYLES: dict[str, EntityKind] = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")
_RULE = "———"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntity:
    """A stretch of text, in characters, and what it is. `kind` is the type of a Telegram MessageEntity, or a heading
    (of `level`, bold as well) or the marker of a list item, which are for Discord. `url` goes with text_link,
    `language` with pre."""

    kind: EntityKind
    offset: int
    length: int
    url: str | None = None
    language: str | None = None
    level: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class StyledText:
    """`entities` in order of their offset, an outer one before the inner; they nest and never cross."""

    text: str
    entities: tuple[TextEntity, ...] = ()

    def part(self, start: int, end: int) -> StyledText:
        """The text between two positions, with what is left of its entities."""
        kept = [entity for entity in self.entities if entity.offset < end and entity.end > start]
        spans = [(entity, max(entity.offset, start), min(entity.end, end)) for entity in kept]
        clipped = [replace(entity, offset=first - start, length=last - first) for entity, first, last in spans]
        return StyledText(self.text[start:end], tuple(clipped))


def render(markdown: str) -> StyledText:
    """Without white space at its end; empty where nothing is visible."""
    writer = _written(markdown, is_plain=False)
    text = "".join(writer.chunks)
    entities = sorted(writer.entities, key=lambda entity: (entity.offset, -entity.length, entity.kind != "heading"))
    return StyledText(text, tuple(entities)).part(0, len(text.rstrip()))


def to_plain(markdown: str) -> str:
    """Text without any marks but those of lists, quotes and tables; the address of a link follows it in brackets."""
    return "".join(_written(markdown, is_plain=True).chunks).rstrip()


def _written(markdown: str, *, is_plain: bool) -> _Writer:
    text = well_formed(markdown)
    writer = _Writer(text.split("\n"), is_plain=is_plain)
    writer.blocks(parse(text).children)
    return writer


class _Writer:
    """Collects text and entities. `prefix` stands at the beginning of every line of the present block."""

    def __init__(self, lines: Sequence[str], *, is_plain: bool) -> None:
        self.lines = lines
        self.is_plain = is_plain
        self.chunks: list[str] = []
        self.entities: list[TextEntity] = []
        self.offset = 0
        self.prefix = ""
        self.active: set[str] = set()
        self.holes: list[tuple[int, int]] = []

    def write(self, text: str) -> None:
        self.chunks.append(text)
        self.offset += len(text)

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for index, node in enumerate(nodes):
            if index:
                self.write(self.gap(node) + self.prefix)
            self.block(node)

    def gap(self, node: SyntaxTreeNode) -> str:
        """What stands before a block: a blank line where one was written."""
        first = node.map[0] if node.map else 0
        return "\n\n" if node.map is None or (first > 0 and not self.lines[first - 1].strip(" \t>")) else "\n"

    def block(self, node: SyntaxTreeNode) -> None:
        match node.type:
            case "heading" if node.markup == "-":
                # A line of dashes under a paragraph is meant as a ruled line in chats.
                self.inlines(node.children)
                self.write(f"\n{self.prefix}{_RULE}")
            case "heading":
                start = self.offset
                self.styled("bold", node)
                self.entity("heading", start, level=int(node.tag[1:]))
            case "bullet_list" | "ordered_list":
                self.items(node)
            case "blockquote":
                self.quote(node)
            case "fence" | "code_block":
                self.code(node.content.removesuffix("\n"), next(iter(node.info.split()), None))
            case "table":
                self.code("\n".join(_table_lines(node)), None)
            case "hr":
                self.write(_RULE)
            case _:
                self.inlines(node.children)

    def items(self, node: SyntaxTreeNode) -> None:
        prefix = self.prefix
        first = int(node.attrs.get("start", 1))
        for index, item in enumerate(node.children):
            if index:
                self.write(self.gap(item) + prefix)
            mark = "• " if node.type == "bullet_list" else f"{first + index}. "
            self.write(mark)
            self.entity("list_marker", self.offset - len(mark))
            self.prefix = prefix + " " * len(mark)
            self.blocks(item.children)
            self.prefix = prefix

    def quote(self, node: SyntaxTreeNode) -> None:
        prefix = self.prefix
        if self.is_plain or "blockquote" in self.active:
            self.write("> ")
            self.prefix = prefix + "> "
            self.blocks(node.children)
        else:
            start = self.offset
            self.active.add("blockquote")
            self.blocks(node.children)
            self.active.discard("blockquote")
            self.entity("blockquote", start)
        self.prefix = prefix

    def code(self, text: str, language: str | None) -> None:
        """A code block. With entities it stands at the left edge: spaces before its lines would belong to the code."""
        if self.is_plain:
            self.write(text.replace("\n", "\n" + self.prefix))
            return
        if self.prefix and self.chunks and self.chunks[-1].endswith("\n" + self.prefix):
            self.chunks[-1] = self.chunks[-1].removesuffix(self.prefix)
            self.offset -= len(self.prefix)
        if self.chunks and not self.chunks[-1].endswith("\n"):
            self.write("\n")
        start = self.offset
        self.write(text)
        self.holes.append((start, self.offset))
        self.entity("pre", start, language=language)

    def inlines(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            match node.type:
                case "inline":
                    self.inlines(node.children)
                case "softbreak" | "hardbreak":
                    self.write("\n" + self.prefix)
                case "code_inline":
                    start = self.offset
                    self.write(node.content)
                    if "text_link" not in self.active:
                        self.holes.append((start, self.offset))
                        self.entity("code", start)
                case "strong" | "em" | "s":
                    self.styled(_STYLES[node.type], node)
                case "link" | "image":
                    self.link(node)
                case _:
                    self.write(node.content.replace("\n", " "))

    def link(self, node: SyntaxTreeNode) -> None:
        """A link where the address can be opened; otherwise the address stands in the text, so that it is not lost."""
        url = str(node.attrs.get("href") or node.attrs.get("src") or "")
        is_link = url.lower().startswith(_SCHEMES) and not self.is_plain
        start, first_chunk = self.offset, len(self.chunks)
        if node.type == "image":
            self.write(node.content.replace("\n", " "))
        elif is_link:
            self.active.add("text_link")
            self.inlines(node.children)
            self.active.discard("text_link")
        else:
            self.inlines(node.children)
        label = "".join(self.chunks[first_chunk:])
        if not label.strip():
            self.write(url)
        elif label == url or node.info == "auto":
            return
        elif is_link:
            self.entity("text_link", start, url=url)
        elif url:
            self.write(f" ({url.removeprefix('mailto:').removeprefix('tel:')})")

    def styled(self, kind: EntityKind, node: SyntaxTreeNode) -> None:
        """Children in a style, cut around code, which takes none."""
        if kind in self.active:
            self.inlines(node.children)
            return
        start, first_hole = self.offset, len(self.holes)
        self.active.add(kind)
        self.inlines(node.children)
        self.active.discard(kind)
        end = self.offset
        for hole_start, hole_end in self.holes[first_hole:]:
            self.entity(kind, start, hole_start)
            start = hole_end
        self.entity(kind, start, end)

    def entity(self, kind: EntityKind, start: int, end: int | None = None, **extra: Any) -> None:
        end = self.offset if end is None else end
        if end > start:
            self.entities.append(TextEntity(kind=kind, offset=start, length=end - start, **extra))


def _table_lines(table: SyntaxTreeNode) -> list[str]:
    rows = [row.children for part in table.children for row in part.children]
    aligns = [str(cell.attrs.get("style", "")).removeprefix("text-align:") for cell in rows[0]]
    return table_lines([[_inline_text(cell) for cell in row] for row in rows], aligns)


def _inline_text(cell: SyntaxTreeNode) -> str:
    """The visible text of a cell, addresses included; one line."""
    writer = _Writer((), is_plain=True)
    writer.inlines(cell.children)
    return "".join(writer.chunks).replace("\n", " ").strip()
