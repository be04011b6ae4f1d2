"""One entity of a formatted text, as Telegram counts: offsets and lengths in UTF-16 units.

A value only; `core.markup.render` makes it, an adapter turns it into the vendor's class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EntityKind = Literal["bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntity:
    """A stretch of text and what it is. `kind` is the type of a Telegram MessageEntity; `url` goes with text_link,
    `language` with pre."""

    kind: EntityKind
    offset: int
    length: int
    url: str | None = None
    language: str | None = None
