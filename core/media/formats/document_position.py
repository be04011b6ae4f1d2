"""Removes the position from pictures inside archives, such as Word documents and books.

Only the worker process imports this module. `core.media.formats.pdf` does the same for PDF files.
"""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

from core.media.formats import images

# The endings of pictures that may have a position.
_PICTURES = frozenset({".jpg", ".jpeg", ".jpe", ".png", ".webp", ".tif", ".tiff", ".gif", ".avif"})
# Pictures that can't be written again without their position.
_UNREADABLE_PICTURES = frozenset({".heic", ".heif"})
# A larger picture isn't unpacked.
MAX_PICTURE_BYTES = 50_000_000
_ENCRYPTED = 1


def clean_archive(path: Path, copy_path: Path) -> bool:
    """Write a copy of an archive whose pictures have no position.

    If none of the pictures has a position, writes nothing and returns False. Entries with a
    password aren't read. Raises ValueError if a position can't be removed.
    """
    with zipfile.ZipFile(path) as archive:
        pictures = {
            entry.filename: clean_content
            for entry in archive.infolist()
            if (clean_content := _clean_entry(archive, entry)) is not None
        }
        if not pictures:
            return False
        with zipfile.ZipFile(copy_path, "w") as copy:
            copy.comment = archive.comment
            for entry in archive.infolist():
                content = pictures.get(entry.filename)
                copy.writestr(entry, archive.read(entry) if content is None else content)
    return True


def has_pictures(path: Path) -> bool:
    """Return whether an archive contains pictures that may have a position."""
    with zipfile.ZipFile(path) as archive:
        return any(map(_is_picture, archive.infolist()))


def _is_picture(entry: zipfile.ZipInfo) -> bool:
    ending = PurePosixPath(entry.filename).suffix.lower()
    return ending in _PICTURES or ending in _UNREADABLE_PICTURES


def _clean_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes | None:
    """Return a picture without its position, or None if the entry stays as it is."""
    if entry.flag_bits & _ENCRYPTED or not _is_picture(entry):
        return None
    if entry.file_size > MAX_PICTURE_BYTES:
        raise ValueError("a picture is too large")
    content = archive.read(entry)
    if PurePosixPath(entry.filename).suffix.lower() in _UNREADABLE_PICTURES:
        if images.may_have_position(content):
            raise ValueError("a picture may have a position")
        return None
    try:
        clean_content = images.clean_picture(content)
    except images.ERRORS as error:
        if images.may_have_position(content):
            raise ValueError("a damaged picture may have a position") from error
        return None
    return None if clean_content == content else clean_content
