"""Renders Markdown as text with entities, of which every platform's messages are made, and as text alone (pipes).

Follows the rules of Telegram's Bot API: nothing nests in code and pre, and quotes do not nest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.markup.parse import MarkupNode, parse
from core.markup.text import table_lines

EntityKind = Literal[
    "bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote", "heading", "list_marker"
]


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
    writer = _Writer(is_plain=False)
    writer.blocks(parse(markdown))
    text = "".join(writer.chunks)
    entities = sorted(writer.entities, key=lambda entity: (entity.offset, -entity.length, entity.kind != "heading"))
    return StyledText(text, tuple(entities)).part(0, len(text.rstrip()))


def to_plain(markdown: str) -> str:
    """Text without any marks but those of lists, quotes and tables; the address of a link follows it in brackets."""
    writer = _Writer(is_plain=True)
    writer.blocks(parse(markdown))
    return "".join(writer.chunks).rstrip()


def inline_text(nodes: Sequence[MarkupNode]) -> str:
    """The visible text of inlines, addresses included; one line."""
    writer = _Writer(is_plain=True)
    writer.inlines(nodes)
    return "".join(writer.chunks).replace("\n", " ").strip()


class _Writer:
    """Collects text and entities. `prefix` stands at the beginning of every line of the present block."""

    def __init__(self, *, is_plain: bool) -> None:
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

    def blocks(self, nodes: Sequence[MarkupNode], is_tight: bool = False) -> None:
        for index, node in enumerate(nodes):
            if index:
                is_apart = node.is_apart and not is_tight
                self.write(("\n\n" if is_apart else "\n") + self.prefix)
            self.block(node)

    def block(self, node: MarkupNode) -> None:
        match node.kind:
            case "heading":
                start = self.offset
                self.styled("bold", node)
                self.entity("heading", start, level=node.level)
            case "list":
                self.items(node)
            case "quote":
                self.quote(node)
            case "code":
                self.code(node.text, node.language)
            case "table":
                rows = [[inline_text(cell.children) for cell in row.children] for row in node.children]
                self.code("\n".join(table_lines(rows, [cell.align for cell in node.children[0].children])), None)
            case "rule":
                self.write("———")
            case _:
                self.inlines(node.children)

    def items(self, node: MarkupNode) -> None:
        prefix = self.prefix
        for index, item in enumerate(node.children):
            if index:
                self.write(("\n" if node.is_tight else "\n\n") + prefix)
            mark = "• " if node.start is None else f"{node.start + index}. "
            self.write(mark)
            self.entity("list_marker", self.offset - len(mark))
            self.prefix = prefix + " " * len(mark)
            self.blocks(item.children, node.is_tight)
            self.prefix = prefix

    def quote(self, node: MarkupNode) -> None:
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

    def inlines(self, nodes: Sequence[MarkupNode]) -> None:
        for node in nodes:
            match node.kind:
                case "text":
                    self.write(node.text.replace("\n", "\n" + self.prefix))
                case "code_span":
                    start = self.offset
                    self.write(node.text)
                    if "text_link" not in self.active:
                        self.holes.append((start, self.offset))
                        self.entity("code", start)
                case "bold" | "italic" | "strikethrough":
                    self.styled(node.kind, node)
                case _:
                    self.link(node)

    def link(self, node: MarkupNode) -> None:
        start = self.offset
        self.active.add("text_link")
        self.inlines(node.children)
        self.active.discard("text_link")
        if self.is_plain:
            self.write(f" ({(node.url or '').removeprefix('mailto:').removeprefix('tel:')})")
        self.entity("text_link", start, url=node.url)

    def styled(self, kind: EntityKind, node: MarkupNode) -> None:
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
