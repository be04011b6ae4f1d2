"""Reads the text of PDF files with pypdf, page by page, and removes positions from their pictures.

Only the worker process imports this module.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.errors import PyPdfError
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject

from core.media.formats import images
from core.media.formats.document_position import CleanFile, clean_properties

# Further pages aren't read.
MAX_PAGES = 1_000
# A page with a picture and fewer characters is a scan.
SCAN_CHARS_PER_PAGE = 15
# PDF files without these names have neither pictures of cameras nor metadata.
_NAMES_WITH_POSITION = re.compile(rb"/(?:DCTDecode|DCT|JPXDecode|Metadata|EmbeddedFile)\b")
_PHOTO_FILTERS = frozenset({"/DCTDecode", "/DCT", "/JPXDecode"})
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


class LockedError(ValueError):
    """The position in a PDF can't be removed without its password."""


class PdfFile:
    """A PDF file. Raises one of `ERRORS` if it's broken."""

    def __init__(self, path: Path) -> None:
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        self.reader = PdfReader(path, strict=False)
        self.is_locked = bool(self.reader.is_encrypted and not self.reader.decrypt(""))

    @property
    def pages(self) -> int:
        """The number of pages, or 0 if the file needs a password."""
        return 0 if self.is_locked else len(self.reader.pages)

    def read_pages(self, max_chars: int) -> Iterator[str]:
        """Yield the text of each page, stopping after about `max_chars` characters.

        A page that can't be read gives an empty text.
        """
        remaining_chars = max_chars
        for number in range(min(self.pages, MAX_PAGES)):
            text = self._read_page(number)
            text = text[:remaining_chars]
            remaining_chars -= len(text)
            yield text
            if remaining_chars <= 0:
                return

    def _read_page(self, number: int) -> str:
        """Return the text of a page, followed by the filled fields of a form."""
        texts: list[str] = []
        with contextlib.suppress(*ERRORS):
            page = self.reader.pages[number]
            texts.append(page.extract_text() or "")
            texts += _list_form_fields(page)
        return "\n".join(filter(None, texts))

    def is_scan(self, number: int, text: str) -> bool:
        """Return whether a page with this text is a picture of a page. Pages are counted from 0."""
        if len(text) >= SCAN_CHARS_PER_PAGE:
            return False
        try:
            return len(self.reader.pages[number].images) > 0
        except ERRORS:
            return False

    def is_whole_scan(self, pages: Sequence[str]) -> bool:
        """Return whether a document with these texts of its pages is a scan.

        It is one if no page has text, or if the pages with little text have pictures. A short text
        without pictures, such as a label, is a text.
        """
        if any(len(text) >= SCAN_CHARS_PER_PAGE for text in pages):
            return False
        if not any(text.strip() for text in pages):
            return True
        return any(self.is_scan(number, text) for number, text in enumerate(pages))

    def read_scan(self, number: int) -> bytes | None:
        """Return the largest picture on a page, or None if it has none.

        Pages are counted from 0.
        """
        try:
            images = [image.data for image in self.reader.pages[number].images]
        except ERRORS:
            return None
        return max(images, key=len, default=None)


def _list_form_fields(page: PageObject) -> Iterator[str]:
    """Yield the filled fields of a form on a page, such as "Name: Ana"."""
    for annotation in page.annotations or ():
        widget = annotation.get_object()
        if not isinstance(widget, DictionaryObject) or widget.get("/Subtype") != "/Widget":
            continue
        parent = widget.get("/Parent")
        field = widget if parent is None or "/T" in widget else parent.get_object()
        value = str(widget.get("/V") or field.get("/V") or "").removeprefix("/")
        if value and value != "Off":
            yield f"{field.get('/T', '')}: {value}"


def clean_pdf(path: Path, copy_path: Path, clean_file: CleanFile) -> bool:
    """Write a copy of a PDF whose pictures, metadata and attached files have no position.

    If the file has no position, writes nothing and returns False. Raises one of `ERRORS` if a
    position can't be removed, for example because the file needs a password.
    """
    if not _NAMES_WITH_POSITION.search(path.read_bytes()):
        return False
    document = PdfFile(path)
    if document.is_locked:
        raise LockedError("the file needs a password")
    writer = PdfWriter(clone_from=document.reader)
    # Each stream is cleaned, so `any` must not stop at the first change.
    changes = [_replace(stream, _clean_metadata) for stream in _find_metadata(writer)]
    changes += [_replace(stream, _clean_picture) for stream in _find_photos(writer)]
    changes += [
        _replace(stream, lambda content: clean_file(content, ""))
        for stream in _find_attachments(writer)
    ]
    if not any(changes):
        return False
    writer.write(copy_path)
    if len(PdfReader(copy_path).pages) != document.pages:
        copy_path.unlink()
        raise ValueError("the copy is incomplete")
    return True


def _find_metadata(writer: PdfWriter) -> list[StreamObject]:
    """Return the XMP metadata of a PDF and of its parts."""
    owners = [entry for entry in writer._objects if isinstance(entry, DictionaryObject)]
    metadata = [owner["/Metadata"] for owner in owners if "/Metadata" in owner]
    return [stream for stream in metadata if isinstance(stream, StreamObject)]


def _find_photos(writer: PdfWriter) -> list[StreamObject]:
    """Return the photos of a PDF."""
    streams = [entry for entry in writer._objects if isinstance(entry, StreamObject)]
    return [stream for stream in streams if _PHOTO_FILTERS.intersection(_list_filters(stream))]


def _find_attachments(writer: PdfWriter) -> list[StreamObject]:
    """Return the files that are attached to a PDF."""
    attachments: list[StreamObject] = []
    for entry in writer._objects:
        files = entry.get("/EF") if isinstance(entry, DictionaryObject) else None
        files = files.get_object() if files is not None else None
        if isinstance(files, DictionaryObject):
            versions = [version.get_object() for version in files.values()]
            attachments += [each for each in versions if isinstance(each, StreamObject)]
    return attachments


def _replace(stream: StreamObject, clean: Callable[[bytes], bytes]) -> bool:
    """Replace the content of a stream with the result of `clean`.

    Returns whether the content is different now.
    """
    content = stream.get_data()
    clean_content = clean(content)
    if clean_content == content:
        return False
    stream._data = clean_content
    filters = _list_filters(stream)
    if len(filters) == 1 and filters[0] in _PHOTO_FILTERS:
        return True
    stream.pop("/DecodeParms", None)
    stream.pop("/Filter", None)
    if filters and filters[-1] in _PHOTO_FILTERS:
        stream[NameObject("/Filter")] = NameObject(filters[-1])
    return True


def _list_filters(stream: StreamObject) -> list[str]:
    """Return the names of the filters of a stream, in the order in which they are undone."""
    if "/Filter" not in stream:
        return []
    filters = stream["/Filter"]
    return [str(name) for name in filters] if isinstance(filters, ArrayObject) else [str(filters)]


def _clean_metadata(content: bytes) -> bytes:
    """Return XMP metadata without its position. If that fails, the result is empty."""
    clean_content = clean_properties(content)
    return b"" if b"GPSL" in clean_content.replace(b"\0", b"") else clean_content


def _clean_picture(content: bytes) -> bytes:
    """Return a picture without its position. Other contents are returned unchanged.

    Raises ValueError if it may have a position that can't be removed.
    """
    try:
        return images.clean_picture(content)
    except images.ERRORS as error:
        if images.may_have_position(content):
            raise ValueError("a picture may have a position") from error
        return content
