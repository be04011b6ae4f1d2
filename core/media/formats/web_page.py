"""Reads the text of HTML pages with trafilatura, as Markdown. Linked files aren't loaded.

Only the worker process imports this module.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from html.parser import HTMLParser

import trafilatura

# Text inside these elements isn't shown to people.
_HIDDEN = frozenset({"script", "style", "head", "noscript", "template"})


def read_html(html: str) -> str:
    """Return the article of a page, or all its text if no article is recognized."""
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    article = trafilatura.extract(
        html, output_format="markdown", include_tables=True, include_links=False
    )
    return article or read_all_text(html)


@dataclass(frozen=True, slots=True)
class Article:
    """The text, title and date of a web page."""

    title: str
    # ISO format, or empty if the page doesn't say.
    date: str
    # Markdown, with the addresses of links.
    text: str


def read_article(html: str, url: str) -> Article:
    """Return the article of a page, or all its text if no article is recognized.

    `url` is the address of the page, for its links.
    """
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    text = trafilatura.extract(
        html,
        url=url,
        output_format="markdown",
        include_tables=True,
        include_links=True,
        favor_recall=True,
    )
    metadata = trafilatura.extract_metadata(html, default_url=url)
    title = str(getattr(metadata, "title", None) or "")
    day = str(getattr(metadata, "date", None) or "")
    return Article(title, day, text or read_all_text(html))


def read_all_text(html: str) -> str:
    """Return all visible text of a page, with a line for each piece."""
    reader = _TextReader()
    reader.feed(html)
    reader.close()
    return "\n".join(reader.pieces)


class _TextReader(HTMLParser):
    """Collects the visible pieces of text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden_depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN and self._hidden_depth:
            self._hidden_depth -= 1

    def handle_data(self, data: str) -> None:
        if not self._hidden_depth and data.strip():
            self.pieces.append(" ".join(data.split()))
