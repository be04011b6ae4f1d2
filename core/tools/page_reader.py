"""Reads the text of downloaded pages and files in the worker process of `core/media`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import ToolError
from core.media.decoding import Decoder, Note
from core.tools.web import PageText
from core.tools.web_client import Download

# The keys of the sentences that say why a file has no text.
_NOTES: dict[Note, str] = {
    "scan": "page_scan",
    "locked": "page_locked",
    "broken": "page_damaged",
    "bomb": "page_too_large",
    "unknown": "page_unknown_type",
}


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads web pages, PDFs and office files in the worker process."""

    decoder: Decoder

    async def read(self, download: Download) -> PageText:
        """Return the text of a download. Raises ToolError if it has no text."""
        with self.decoder.open_scratch() as folder:
            path = Path(folder) / "page"
            path.write_bytes(download.body)
            decoded = await self.decoder.read_page(path, download.url, _file_name(download))
        text = "\n\n".join(
            f"[{part.label}]\n{part.text}" if part.label else part.text for part in decoded.parts
        )
        if not text and decoded.note:
            raise ToolError(_NOTES[decoded.note])
        return PageText(decoded.title, decoded.date, text)


def _file_name(download: Download) -> str:
    """Return a file name for a download whose extension shows the type."""
    if "html" in download.content_type:
        return "page.html"
    return Path(urlsplit(download.url).path).name or "page.txt"
