"""The shared text renderer: Markdown in, what a platform takes out. The one door to the Markdown parser.

Plain functions over a parsed tree; any text is taken, none raises. Knows formats, not connections.
"""

from __future__ import annotations

from collections.abc import Callable

from core.markup.discord import render_discord
from core.markup.entity import TextEntity
from core.markup.parse import parse
from core.markup.source import escape
from core.markup.split import split_markdown
from core.markup.telegram import render_plain, render_telegram
from core.markup.text import utf16_length
from core.text.sanitize import legible

__all__ = [
    "TextEntity",
    "escape",
    "legible",
    "split",
    "to_discord",
    "to_plain",
    "to_telegram",
    "utf16_length",
]


def to_telegram(markdown: str) -> tuple[str, tuple[TextEntity, ...]]:
    """Text and its entities (at most 100, in order, outer before inner); offsets and lengths in UTF-16 units."""
    return render_telegram(parse(markdown))


def to_discord(markdown: str) -> str:
    """Discord's own Markdown. What is no mark in the source is escaped; tables come as code blocks."""
    return render_discord(parse(markdown))


def to_plain(markdown: str) -> str:
    """Text alone: lists, quotes and tables stay recognisable, the address of a link follows it in brackets."""
    return render_plain(parse(markdown))


def split(markdown: str, limit: int, measure: Callable[[str], int]) -> list[str]:
    """Parts of a text, each valid Markdown with ``measure(part) <= limit``; `[]` for blank text, a text that fits comes
    back as the one part. `measure` is the length of one part as the platform counts it once rendered.

    Nothing is lost or doubled but white space and table heads. A limit too small for one character is not kept.
    """
    return split_markdown(markdown, limit, measure)
