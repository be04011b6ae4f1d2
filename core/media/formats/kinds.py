"""Detects the type of a file from its bytes. The name and the platform's type count only for text.

The worker process calls this module, because the type of an archive depends on its entries.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePath

from core.media.formats.text_encoding import HEAD_BYTES, decode_text

CUT_MARK = "[…]"
"""The text of the last part of a document if the rest of the document isn't read."""
TAR = "application/x-tar"
SVG = "image/svg+xml"
# The first bytes of a file, after an offset, and the type that they mean.
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    *(
        (4, b"ftyp" + brand, "image/heic")
        for brand in (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
    ),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!", "application/vnd.rar"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    *((0, b"BZh%d1AY&SY" % level, "application/x-bzip2") for level in range(1, 10)),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (257, b"ustar", TAR),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-executable"),
)
# Errors of an archive that is damaged, or packed or locked in a way that Python doesn't support.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    RuntimeError,
    EOFError,
)
_ARCHIVE_ENTRIES: Mapping[str, str] = {
    "word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt/presentation.xml": (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    ),
    "META-INF/container.xml": "application/epub+zip",
}
DOCX, XLSX, PPTX, EPUB = _ARCHIVE_ENTRIES.values()
ODT, ODS, ODP = (
    f"application/vnd.oasis.opendocument.{kind}" for kind in ("text", "spreadsheet", "presentation")
)
RTF = "text/rtf"
# Short names of types whose own names are long.
_SHORT_NAMES = {
    DOCX: "docx",
    XLSX: "xlsx",
    PPTX: "pptx",
    ODT: "odt",
    ODS: "ods",
    ODP: "odp",
    EPUB: "epub",
}
# Types of text, by the ending of the name. Any other text is plain text.
_TEXT_SUFFIXES: Mapping[str, str] = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".htm": "text/html",
    ".html": "text/html",
    ".xhtml": "text/html",
    ".eml": "message/rfc822",
    ".ics": "text/calendar",
    ".md": "text/markdown",
    ".json": "application/json",
    ".svg": SVG,
    ".xml": "text/xml",
}
UNKNOWN = "application/octet-stream"
# The first box of a video that an older camera wrote, after the four bytes of its size.
_QUICKTIME_BOXES = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")


def find_type(path: Path, name: str) -> str:
    """Return the MIME type of a file. `name` matters only for text.

    Raises OSError if the file can't be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    for offset, signature, mime in _SIGNATURES:
        if head.startswith(signature, offset) and _fits_container(head, offset):
            return mime
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _find_archive_type(path)
    if head[4:8] in _QUICKTIME_BOXES and decode_text(head) is None:
        return "video/mp4"
    return _find_text_type(head, name)


def name_type(mime: str) -> str:
    """Return a short name of a type, such as "pdf" for application/pdf."""
    return _SHORT_NAMES.get(mime, mime.rpartition("/")[2].removeprefix("x-"))


def _fits_container(head: bytes, offset: int) -> bool:
    """Return whether a signature at byte 8 is in a RIFF file, as required."""
    return offset != 8 or head.startswith(b"RIFF")


def is_text(mime: str) -> bool:
    """Return whether a type is a kind of text."""
    return mime.startswith(("text/", "message/")) or mime in ("application/json", SVG)


def _find_archive_type(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if {"mimetype", "content.xml"} <= names:
                with archive.open("mimetype") as file:
                    mime = file.read(100).decode("ascii", "replace").strip()
                if mime in (ODT, ODS, ODP):
                    return mime
    except ARCHIVE_ERRORS:
        return "application/zip"
    for entry, mime in _ARCHIVE_ENTRIES.items():
        if entry in names:
            return mime
    return "application/zip"


def _find_text_type(head: bytes, name: str) -> str:
    """Return the MIME type of a text from its beginning and the suffix of its name."""
    text = decode_text(head)
    if text is None:
        return UNKNOWN
    if text.startswith("{\\rtf"):
        return RTF
    start = text.lstrip("\ufeff \t\r\n")[:200].lower()
    if start.startswith(("<!doctype html", "<html")):
        return "text/html"
    if start.startswith("begin:vcalendar"):
        return "text/calendar"
    if "<svg" in start:
        return SVG
    return _TEXT_SUFFIXES.get(PurePath(name).suffix.lower(), "text/plain")
