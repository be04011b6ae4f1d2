"""The files of an export, wherever they lie: one file, a folder, a zip archive. Reads only; counts what it has read.

What goes wrong with the files (a damaged archive, a password, no right to read) becomes HistoryError.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO

from core.errors import HistoryError

_COPY_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
"""How an archive begins, and one with nothing in it."""
_IGNORED = "__MACOSX/"


class ArchiveFiles:
    """Use `ArchiveFiles.open`. Members are named by their path inside, with slashes."""

    def __init__(self, path: Path, title: str, sizes: dict[str, int], archive: zipfile.ZipFile | None) -> None:
        self.path = path
        self._title = title
        self.sizes = sizes
        """Bytes of each member, by name, as they will be read."""
        self.done_bytes = 0
        self.is_single = archive is None and not path.is_dir()
        self._archive = archive

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, title: str) -> Iterator[ArchiveFiles]:
        """Opens what is at `path`, which a person knows as `title`; raises HistoryError when that cannot be read."""
        with contextlib.ExitStack() as stack:
            with _translated(title):
                if path.is_dir():
                    opened = cls(path, title, _files(path), None)
                elif _begins(path) in _ZIPS:
                    archive = stack.enter_context(zipfile.ZipFile(path))
                    members = [member for member in archive.infolist() if not member.is_dir()]
                    sizes = {m.filename: m.file_size for m in members if not m.filename.startswith(_IGNORED)}
                    opened = cls(path, title, sizes, archive)
                else:
                    opened = cls(path, title, {path.name: path.stat().st_size}, None)
            yield opened

    def title(self, name: str) -> str:
        """A member as a person should read it."""
        return self._title if self.is_single else f"{name} in {self._title}"

    @contextlib.contextmanager
    def reading(self, name: str, *, is_counted: bool = True) -> Iterator[BinaryIO]:
        """A member as a stream of its bytes, which raises HistoryError when they are damaged. Reading is added to
        `done_bytes` when `is_counted`."""
        with contextlib.ExitStack() as stack:
            with _translated(self.title(name)):
                inner = self._archive.open(name) if self._archive is not None else self._file(name).open("rb")
                stack.enter_context(inner)
            count = self._count if is_counted else lambda _: None
            yield io.BufferedReader(_CountedStream(inner, self.title(name), count), _READ_BYTES)

    @contextlib.contextmanager
    def on_disk(self, name: str) -> Iterator[Path]:
        """A member as a file, for what cannot be read as a stream; one out of an archive is copied and removed."""
        if self._archive is None:
            yield self._file(name)
            return
        with tempfile.TemporaryDirectory(prefix="mneme-import-") as folder:
            if self.sizes[name] > shutil.disk_usage(folder).free:
                raise HistoryError(f"{self.title(name)} does not fit on the disk. Make room, or unpack it elsewhere.")
            copy = Path(folder) / "member"
            with self.reading(name) as stream, copy.open("wb") as target, _translated(self.title(name)):
                shutil.copyfileobj(stream, target, _COPY_BYTES)
            yield copy

    def _file(self, name: str) -> Path:
        return self.path if self.is_single else self.path / name

    def _count(self, count: int) -> None:
        self.done_bytes += count


class _CountedStream(io.RawIOBase):
    """A stream that tells how much was read of it, and whose errors are ours."""

    def __init__(self, inner: IO[bytes], title: str, count: Callable[[int], None]) -> None:
        super().__init__()
        self._inner = inner
        self._title = title
        self._count = count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _translated(self._title):
            data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._count(len(data))
        return len(data)


def _files(folder: Path) -> dict[str, int]:
    """Regular files below a folder, in the order of their names."""
    found = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file():
                found[path.relative_to(folder).as_posix()] = path.stat().st_size
    return found


def _begins(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(len(_ZIPS[0]))


@contextlib.contextmanager
def _translated(title: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise HistoryError(f"{title} cannot be read: there is no such file.") from error
    except OSError as error:
        raise HistoryError(f"{title} cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise HistoryError(f"{title} is damaged: get the archive anew.") from error
    except (RuntimeError, NotImplementedError) as error:
        # What zipfile says of a password, and of a compression that it does not know.
        raise HistoryError(f"{title} cannot be unpacked here ({error}). Unpack it and import the folder.") from error
