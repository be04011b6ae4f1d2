"""Removes positions from files inside other files: archives, mails, SVG drawings and web pages.

Only the worker process imports this module. `core.media.formats.pdf` does the same for PDF files.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import quopri
import re
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from core.media.formats import images

CleanFile = Callable[[bytes, str], bytes]
"""Returns a file inside another file without its position.

The second argument is the file's name. Raises ValueError if the position can't be removed.
"""

# A larger file inside another file isn't unpacked.
MAX_FILE_BYTES = 50_000_000
MAX_UNPACKED_BYTES = 200_000_000
ERRORS = (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, tarfile.TarError)
_ENCRYPTED = 1
# Pictures, archives, PDF files and videos in base64, as mails and the addresses of pictures in web
# pages have them. The beginning of each is that of its first bytes. In a quoted-printable part of a
# mail, "=" ends a line, and "=3D" means "=".
_BASE64_FILE = re.compile(
    rb"(?:/9j/|iVBORw0KGgo|UklGR|SUkqA|TU0AK|UEsDB|JVBERi0|AAAA[A-Za-z0-9+/]{2}Z0eX)"
    rb"(?:[A-Za-z0-9+/\r\n]|=\r?\n){40,}(?:=3D|=){0,2}"
)
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# A JPEG in hexadecimal digits, as RTF documents have it.
_HEX_PICTURE = re.compile(rb"ffd8ff[0-9a-f\s]{80,}", re.IGNORECASE)
# Properties with a position in XMP metadata, as attributes and as elements.
_XMP_POSITION = re.compile(
    rb"""[\w-]+:GPS\w+\s*=\s*(?:"[^"]*"|'[^']*')|<([\w-]+:GPS\w+)[^>]*>.*?</\1\s*>""", re.DOTALL
)


def clean_archive(path: Path, copy_path: Path, clean_file: CleanFile) -> bool:
    """Write a copy of an archive whose files have no position.

    If none of the files has a position, writes nothing and returns False. Raises ValueError if a
    position can't be removed, for example because an entry has a password.
    """
    with zipfile.ZipFile(path) as archive:
        changes: dict[str, bytes] = {}
        for entry in archive.infolist():
            content = _read_entry(archive, entry)
            clean_content = clean_file(content, entry.filename)
            if clean_content != content:
                changes[entry.filename] = clean_content
        if not changes:
            return False
        with zipfile.ZipFile(copy_path, "w") as copy:
            copy.comment = archive.comment
            for entry in archive.infolist():
                changed_content = changes.get(entry.filename)
                copy.writestr(
                    entry, archive.read(entry) if changed_content is None else changed_content
                )
    return True


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return an entry of an archive. Raises ValueError if it has a password or is too large."""
    if entry.flag_bits & _ENCRYPTED:
        raise ValueError("an entry has a password")
    if entry.file_size > MAX_FILE_BYTES:
        raise ValueError("an entry is too large")
    return archive.read(entry)


def check_packed(path: Path, clean_file: CleanFile) -> None:
    """Raise ValueError if a file that was packed with gzip may have a position."""
    with gzip.open(path) as file:
        content = file.read(MAX_UNPACKED_BYTES + 1)
    if len(content) > MAX_UNPACKED_BYTES:
        raise ValueError("the file is too large")
    if clean_file(content, "") != content:
        raise ValueError("a packed file has a position")


def check_tar(content: bytes, clean_file: CleanFile) -> None:
    """Raise ValueError if a file in a TAR archive may have a position."""
    with tarfile.open(fileobj=BytesIO(content), mode="r:") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            member_content = file.read()
            if clean_file(member_content, member.name) != member_content:
                raise ValueError("a file in the archive has a position")


def clean_text(content: bytes, clean_file: CleanFile) -> bytes:
    """Return a mail, drawing, web page or another text without the positions of files in it.

    Raises ValueError if a position can't be removed.
    """
    if content.startswith(_UTF_16_MARKS):
        text = content.decode("utf-16").encode()
        clean_content = clean_text(text, clean_file)
        return content if clean_content == text else clean_content.decode().encode("utf-16")
    for picture in _HEX_PICTURE.finditer(content):
        digits = b"".join(picture[0].split())
        if images.may_have_position(binascii.unhexlify(digits[: len(digits) // 2 * 2])):
            raise ValueError("a picture of the document has a position")
    if b"quoted-printable" in content.lower():
        decoded_content = quopri.decodestring(content)
        if images.may_have_position(decoded_content):
            raise ValueError("a picture of the mail has a position")
    return _BASE64_FILE.sub(lambda match: _clean_base64(match[0], clean_file), content)


def _clean_base64(text: bytes, clean_file: CleanFile) -> bytes:
    """Return a file in base64 without its position, in lines of the same length."""
    digits = re.sub(rb"=3D|[=\s]", b"", text)
    try:
        content = base64.b64decode(digits + b"=" * (-len(digits) % 4))
    except binascii.Error:
        # One digit more than a whole number of bytes: it's no file.
        return text
    clean_content = clean_file(content, "")
    if clean_content == content:
        return text
    clean_digits = base64.b64encode(clean_content)
    first_line, line_end = _split_first_line(text)
    if b"=3D" in text or line_end.startswith(b"="):
        clean_digits = clean_digits.replace(b"=", b"=3D")
    if len(first_line) == len(text):
        return clean_digits
    starts = range(0, len(clean_digits), len(first_line))
    lines = [clean_digits[start : start + len(first_line)] for start in starts]
    return line_end.join(lines) + text[len(text.rstrip()) :]


def _split_first_line(text: bytes) -> tuple[bytes, bytes]:
    """Return the first line of a file in base64, and the end of the line."""
    line_end = re.search(rb"=?\r?\n", text)
    return (text, b"") if line_end is None else (text[: line_end.start()], line_end[0])


def clean_properties(content: bytes) -> bytes:
    """Return XMP metadata, or a drawing that has some, without its position."""
    return _XMP_POSITION.sub(b"", content)
