"""Writes rendered text as HTML for Telegram's rich messages, which can show tables.

Only texts with a table need rich messages. All other texts look the same in an ordinary message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from html import escape

from core.markup.markdown import StyledText, Table, TextEntity

# Telegram's limits for the blocks of a message and the columns of a table.
MAX_BLOCKS = 500
MAX_COLUMNS = 20
_TAGS = {"bold": "b", "italic": "i", "strikethrough": "s", "code": "code"}
# Entities that are blocks of their own. All others are part of a paragraph.
_BLOCK_KINDS = frozenset({"pre", "blockquote", "heading"})


def to_rich_html(styled: StyledText) -> str:
    """Return a text with a table as HTML, or "" if it has no table or exceeds a limit."""
    tables = [entity.table for entity in styled.entities if entity.table is not None]
    if not tables or any(len(table.alignments) > MAX_COLUMNS for table in tables):
        return ""
    # Each line becomes at most one block, and a quote or a table one more.
    if styled.text.count("\n") + len(styled.entities) >= MAX_BLOCKS:
        return ""
    return "".join(_write_blocks(styled))


def _write_blocks(styled: StyledText) -> Iterator[str]:
    """Yield the blocks of a text: those with their own entities, and the lines between them."""
    start = 0
    for entity in styled.entities:
        if entity.kind in _BLOCK_KINDS and entity.offset >= start:
            yield from _write_lines(styled.cut_out(start, entity.offset))
            yield _write_block(entity, styled.cut_out(entity.offset, entity.end))
            start = entity.end
    yield from _write_lines(styled.cut_out(start, len(styled.text)))


def _write_lines(styled: StyledText) -> Iterator[str]:
    """Yield a paragraph for each line that isn't blank."""
    start = 0
    for line in styled.text.split("\n"):
        if line.strip():
            yield f"<p>{_write_inline(styled.cut_out(start, start + len(line)))}</p>"
        start += len(line) + 1


def _write_block(entity: TextEntity, styled: StyledText) -> str:
    """Return the block of an entity.

    `styled` is the text that the entity covers. Its entities include this one.
    """
    inner = StyledText(
        styled.text, tuple(other for other in styled.entities if other.kind != entity.kind)
    )
    match entity.kind:
        case "heading":
            return f"<h{entity.level}>{_write_inline(inner)}</h{entity.level}>"
        case "blockquote":
            return f"<blockquote>{''.join(_write_blocks(inner))}</blockquote>"
    if entity.table is not None:
        return _write_table(entity.table)
    if entity.language:
        language = escape(entity.language)
        return f'<pre><code class="language-{language}">{escape(styled.text)}</code></pre>'
    return f"<pre>{escape(styled.text)}</pre>"


def _write_table(table: Table) -> str:
    rows = [_write_row(table.rows[0], table.alignments, "th")]
    rows += [_write_row(row, table.alignments, "td") for row in table.rows[1:]]
    return f"<table bordered>{''.join(rows)}</table>"


def _write_row(row: Sequence[str], alignments: Sequence[str], tag: str) -> str:
    cells = []
    for cell, alignment in zip(row, alignments, strict=True):
        align = f' align="{alignment}"' if alignment else ""
        cells.append(f"<{tag}{align}>{escape(cell)}</{tag}>")
    return f"<tr>{''.join(cells)}</tr>"


def _write_inline(styled: StyledText) -> str:
    """Return a text without blocks, with the tags of its entities."""
    return _write_range(styled.text, 0, len(styled.text), styled.entities)


def _write_range(text: str, start: int, end: int, entities: Sequence[TextEntity]) -> str:
    """Return the text from `start` to `end` with the tags of its entities."""
    pieces: list[str] = []
    index = 0
    while index < len(entities):
        entity = entities[index]
        # The entities inside this entity follow it in the list.
        next_index = bisect_left(entities, entity.end, index + 1, key=lambda other: other.offset)
        content = _write_range(text, entity.offset, entity.end, entities[index + 1 : next_index])
        pieces += [escape(text[start : entity.offset]), _put_tag_around(content, entity)]
        start = entity.end
        index = next_index
    pieces.append(escape(text[start:end]))
    return "".join(pieces)


def _put_tag_around(content: str, entity: TextEntity) -> str:
    if entity.kind == "text_link":
        return f'<a href="{escape(entity.url or "")}">{content}</a>'
    tag = _TAGS.get(entity.kind)
    return f"<{tag}>{content}</{tag}>" if tag else content
