"""The document tree of a Markdown text: one frozen node for blocks and inlines alike.

Made by `core.markup.parse`, read by the renderers and the splitter. Nothing here knows a parser or a platform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MarkupKind = Literal[
    "paragraph",
    "heading",
    "list",
    "item",
    "quote",
    "table",
    "row",
    "cell",
    "code",
    "rule",
    "text",
    "code_span",
    "bold",
    "italic",
    "strikethrough",
    "link",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkupNode:
    """One node. Leaves carry `text`, the others `children`.

    paragraph, heading (`level`), cell (`align`): inlines. list (`start` is the first number, None for bullets): items;
    item, quote: blocks. table: rows, the first is the head. code (`language`): `text` without the last line break.
    link: `url` is absolute. `text` of a text node may hold line breaks. is_apart: a blank line stands before the block.
    source: the Markdown of a top-level block as it was written, None for one that was put together.
    """

    kind: MarkupKind
    text: str = ""
    children: tuple[MarkupNode, ...] = ()
    url: str | None = None
    language: str | None = None
    start: int | None = None
    level: int = 1
    align: str = ""
    is_tight: bool = True
    is_apart: bool = True
    source: str | None = None
