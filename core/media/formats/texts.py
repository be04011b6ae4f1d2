"""Splits text files, mails, calendars and electronic books into labelled parts.

Only the worker process imports this module.
"""

from __future__ import annotations

import contextlib
import csv
import email
import email.policy
import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from core.media.formats.kinds import ARCHIVE_ERRORS, CUT_MARK, EPUB
from core.media.formats.text_encoding import decode_text

# A part of a plain text has about this many characters.
PART_CHARS = 4_000
# Further chapters of a book aren't read.
MAX_CHAPTERS = 500
# Archives that exceed these limits aren't opened: the total size of the entries, the ratio of that
# size to the size of the archive, and the number of entries.
MAX_ARCHIVE_BYTES = 200_000_000
MAX_ARCHIVE_RATIO = 200
MAX_ARCHIVE_ENTRIES = 20_000
# Errors of the readers of texts, archives and office documents.
ERRORS = (
    *ARCHIVE_ERRORS,
    SyntaxError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    csv.Error,
    NotImplementedError,
    RecursionError,
    MemoryError,
    OverflowError,
)
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_PACKAGE = "{http://www.idpf.org/2007/opf}"
_HEADING = re.compile(r"<h[1-3][^>]*>(.*?)</h[1-3]>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")

Part = tuple[str, str]
"""A label such as "line 121", and the text."""


def shorten_label(label: str, limit_chars: int) -> str:
    """Return a label of at most `limit_chars` characters. A cut label ends with "…"."""
    return label if len(label) <= limit_chars else f"{label[: limit_chars - 1]}…"


def is_archive_safe(path: Path) -> bool:
    """Return whether an archive can be unpacked without exceeding the limits on its size."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    packed_size = max(1, sum(entry.compress_size for entry in entries))
    if len(entries) > MAX_ARCHIVE_ENTRIES or size > MAX_ARCHIVE_BYTES:
        return False
    return size <= packed_size * MAX_ARCHIVE_RATIO


def read_text(content: bytes) -> Iterator[Part]:
    """Yield the parts of a plain text, labelled with the number of their first line."""
    text = decode_text(content)
    if text is None:
        raise ValueError("no text")
    yield from split_lines(text)


def split_lines(text: str) -> Iterator[Part]:
    """Yield the parts of a text, labelled with the number of their first line: "line 121"."""
    lines = text.splitlines()
    first = 1
    buffer: list[str] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        if buffer and size + len(line) > PART_CHARS:
            yield f"line {first}", "\n".join(buffer)
            buffer = []
            size = 0
            first = number
        buffer.append(line)
        size += len(line) + 1
    if buffer:
        yield f"line {first}", "\n".join(buffer)


def read_table(content: bytes, delimiter: str) -> Iterator[Part]:
    """Yield the rows of a table with " | " between the cells."""
    text = decode_text(content)
    if text is None:
        raise ValueError("no text")
    if delimiter == "," and text.partition("\n")[0].count(";") > text.partition("\n")[0].count(","):
        delimiter = ";"
    csv.field_size_limit(len(text) + 1)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    yield from split_lines("\n".join(" | ".join(cells) for cells in rows))


def read_mail(content: bytes) -> Iterator[Part]:
    """Yield the header of a mail, its text, and the names of its attachments."""
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    head = [
        f"{name}: {message[name]}" for name in ("From", "To", "Date", "Subject") if message[name]
    ]
    body = message.get_body(("plain", "html"))
    text = ""
    if body is not None:
        text = _read_body(body)
        if body.get_content_type() == "text/html":
            from core.media.formats.web_page import read_html

            text = read_html(text)
    names = [part.get_filename() or "a file" for part in message.iter_attachments()]
    if names:
        head.append(f"Attachments: {', '.join(names)}")
    yield from split_lines("\n".join([*head, "", text]))


def _read_body(body: MIMEPart) -> str:
    """Return the text of a mail. Its encoding is guessed if the mail doesn't state a known one."""
    content = body.get_payload(decode=True)
    assert isinstance(content, bytes)
    with contextlib.suppress(LookupError, UnicodeDecodeError):
        return content.decode(body.get_content_charset() or "ascii")
    return decode_text(content) or ""


def read_rtf(content: bytes) -> Iterator[Part]:
    """Yield the parts of a rich text, labelled with the number of their first line."""
    from striprtf.striprtf import rtf_to_text

    text = rtf_to_text(content.decode("latin-1"), errors="replace")  # type: ignore[no-untyped-call]
    yield from split_lines(text)


def read_book(path: Path) -> Iterator[Part]:
    """Yield the chapters of an electronic book in reading order, labelled with their headings."""
    from core.media.formats.web_page import read_all_text

    with zipfile.ZipFile(path) as archive:
        chapters = _list_chapters(archive)
        for number, name in enumerate(chapters[:MAX_CHAPTERS], start=1):
            html = archive.read(name).decode("utf-8", "replace")
            heading = _HEADING.search(html)
            title = " ".join(_TAG.sub("", heading[1]).split()) if heading else ""
            text = read_all_text(html)
            if text:
                yield f"chapter {number}{f', {shorten_label(title, 80)}' if title else ''}", text
        if len(chapters) > MAX_CHAPTERS:
            yield "", CUT_MARK


def _list_chapters(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the archive entries with the chapters, in reading order."""
    container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
    root_file = container.find(f".//{_CONTAINER}rootfile")
    if root_file is None:
        raise ValueError(f"no package in this {EPUB}")
    package_name = root_file.attrib["full-path"]
    package = ElementTree.fromstring(archive.read(package_name))
    names = {
        item.attrib["id"]: posixpath.normpath(
            posixpath.join(posixpath.dirname(package_name), unquote(item.attrib["href"]))
        )
        for item in package.iter(f"{_PACKAGE}item")
    }
    references = [item.attrib["idref"] for item in package.iter(f"{_PACKAGE}itemref")]
    entries = set(archive.namelist())
    return [names[reference] for reference in references if names.get(reference) in entries]
