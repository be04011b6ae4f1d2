"""Store the bytes of files in the home: ``media/ab/abcdef…``, by the SHA-256 of the bytes.

The view of a picture is stored next to it: a scaled copy for the model, without EXIF data. A scan
has a view for each of its first pages, and a video has a few. A view is made only once, so that a
picture has the same bytes in every request.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from config.operating_system import sync_file

FOLDER = "media"
# The folder in it for temporary copies of files.
SCRATCH = "scratch"
VIEW_SUFFIX = ".view"
# A scan or a video has at most this many views.
MAX_VIEWS = 10
_HASH = re.compile(r"[0-9a-f]{64}")


def number_view(view_path: Path, number: int) -> Path:
    """Return the path of a view, such as ``abc.view.1``.

    The path of view 0 is `view_path` itself.
    """
    return view_path.with_name(f"{view_path.name}.{number}") if number else view_path


def list_views(view_path: Path) -> list[Path]:
    """Return the paths of the views that exist, in order."""
    paths = [number_view(view_path, number) for number in range(MAX_VIEWS)]
    return [path for path in paths if path.exists()]


class MediaFolder:
    """The folder with the bytes of files. It's created when the first file is stored."""

    def __init__(self, home: Path) -> None:
        self.root = home / FOLDER
        self.scratch_path = self.root / SCRATCH

    def path_of(self, content_hash: str) -> Path:
        """Return the path of the content with a hash. Raises ValueError if the hash is invalid."""
        if not _HASH.fullmatch(content_hash):
            raise ValueError("not a SHA-256 hash")
        return self.root / content_hash[:2] / content_hash

    def view_path_of(self, content_hash: str) -> Path:
        path = self.path_of(content_hash)
        return path.with_name(path.name + VIEW_SUFFIX)

    def write(self, content: bytes) -> str:
        """Store bytes and return their hash. Bytes that are already stored aren't written again.

        Raises OSError if the disk is full or the folder can't be written.
        """
        content_hash = hashlib.sha256(content).hexdigest()
        path = self.path_of(content_hash)
        if path.exists() and path.stat().st_size == len(content):
            return content_hash
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new_path = path.with_name(f"{secrets.token_hex(8)}.part")
        try:
            descriptor = os.open(new_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                sync_file(file.fileno())
            new_path.replace(path)
        except OSError:
            new_path.unlink(missing_ok=True)
            raise
        return content_hash

    def read(self, content_hash: str) -> bytes | None:
        """Return the bytes with a hash, or None if they are gone."""
        with contextlib.suppress(OSError, ValueError):
            return self.path_of(content_hash).read_bytes()
        return None

    def read_view(self, content_hash: str, number: int = 0) -> bytes | None:
        """Return a view of a picture, scan or video, or None if it doesn't exist."""
        with contextlib.suppress(OSError, ValueError):
            return number_view(self.view_path_of(content_hash), number).read_bytes()
        return None

    def count_views(self, content_hash: str) -> int:
        return len(list_views(self.view_path_of(content_hash)))

    def remove(self, content_hash: str) -> None:
        """Delete the bytes with a hash and their views, and the folder if it becomes empty.

        Raises OSError if a file can't be deleted.
        """
        path = self.path_of(content_hash)
        path.unlink(missing_ok=True)
        for view_path in list_views(self.view_path_of(content_hash)):
            view_path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()

    def list_hashes(self) -> Iterator[str]:
        """Yield the hashes of all stored files."""
        for path in sorted(self.root.glob("??/*")):
            if _HASH.fullmatch(path.name):
                yield path.name

    def list_old_hashes(self, lifetime_s: float) -> list[str]:
        """Return the hashes of the stored files that are at least `lifetime_s` seconds old."""
        return [
            content_hash
            for content_hash in self.list_hashes()
            if _is_older(self.path_of(content_hash), lifetime_s)
        ]

    def remove_unfinished(self, lifetime_s: float = 0.0) -> None:
        """Delete incomplete files and temporary copies that a killed process left behind.

        Files that are younger than `lifetime_s` seconds stay, because another process may still
        use them.
        """
        for path in (*self.root.glob("??/*.part"), *self.root.glob("??/*.part.?")):
            if _is_older(path, lifetime_s):
                path.unlink(missing_ok=True)
        for path in self.scratch_path.glob("*"):
            if _is_older(path, lifetime_s):
                shutil.rmtree(path, ignore_errors=True)


def _is_older(path: Path, lifetime_s: float) -> bool:
    """Return whether a file was last changed at least `lifetime_s` seconds ago."""
    if not lifetime_s:
        return True
    with contextlib.suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime >= lifetime_s
    return False
