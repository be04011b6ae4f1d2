"""Reads the text of PDF files with pypdf, page by page.

Only the worker process imports this module.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError

# Further pages aren't read.
MAX_PAGES = 1_000
# A document with fewer characters per page is a scan.
SCAN_CHARS_PER_PAGE = 15
ERRORS = (
    PyPdfError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    AssertionError,
)


class PdfFile:
    """A PDF file. Raises one of `ERRORS` if it's broken."""

    def __init__(self, path: Path) -> None:
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        self._reader = PdfReader(path, strict=False)
        self.is_locked = bool(self._reader.is_encrypted and not self._reader.decrypt(""))

    @property
    def pages(self) -> int:
        """The number of pages, or 0 if the file needs a password."""
        return 0 if self.is_locked else len(self._reader.pages)

    def read_pages(self, max_chars: int) -> Iterator[str]:
        """Yield the text of each page, stopping after about `max_chars` characters.

        A page that can't be read gives an empty text.
        """
        remaining_chars = max_chars
        for number in range(min(self.pages, MAX_PAGES)):
            try:
                text = self._reader.pages[number].extract_text() or ""
            except ERRORS:
                text = ""
            text = text[:remaining_chars]
            remaining_chars -= len(text)
            yield text
            if remaining_chars <= 0:
                return

    def read_scan(self, number: int) -> bytes | None:
        """Return the largest picture on a page, or None if it has none.

        Pages are counted from 0.
        """
        try:
            images = [image.data for image in self._reader.pages[number].images]
        except ERRORS:
            return None
        return max(images, key=len, default=None)
