"""The files of an export: one file, those of a folder, or those of a zip archive, which is unpacked meanwhile."""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import HistoryError

SQLITE = b"SQLite format 3\0"
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
"""How a zip archive begins, and an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFiles:
    """`paths`: by the name inside, with slashes, in the order of the names. `title` names the whole for people."""

    paths: Mapping[str, Path]
    title: str
    is_single: bool

    def title_of(self, name: str) -> str:
        return self.title if self.is_single else f"{name} in {self.title}"


@contextlib.contextmanager
def open_files(path: Path, title: str) -> Iterator[ExportFiles]:
    """The files of what is at `path`; raises HistoryError when that cannot be read."""
    with contextlib.ExitStack() as stack:
        with readable(title):
            folder = path
            if path.is_file() and _begins(path) in _ZIPS:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mneme-import-")))
                _unpack(path, folder, title)
            is_single = not folder.is_dir()
            if is_single and not path.stat().st_size:
                raise HistoryError(f"{title} is empty.")
            found = [path] if is_single else sorted(one for one in folder.rglob("*") if one.is_file())
        paths = {path.name if is_single else one.relative_to(folder).as_posix(): one for one in found}
        yield ExportFiles(paths=paths, title=title, is_single=is_single)


@contextlib.contextmanager
def readable(title: str) -> Iterator[None]:
    """Turns what is wrong with a file into a HistoryError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise HistoryError(f"{title} cannot be read: there is no such file.") from error
    except OSError as error:
        raise HistoryError(f"{title} cannot be read: {error.strerror or error}.") from error


def _begins(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(len(_ZIPS[0]))


def _unpack(path: Path, folder: Path, title: str) -> None:
    """Unpacks texts and databases; pictures, sound and video stay where they are."""
    name = title
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = f"{member.filename} in {title}"
                with archive.open(member) as stream:
                    head = stream.read(len(SQLITE))
                if head == SQLITE or b"\0" not in head:
                    archive.extract(member, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise HistoryError(f"{name} is damaged: get the archive anew.") from error
    except (RuntimeError, NotImplementedError) as error:
        # What zipfile says of a password, and of a compression that it does not know.
        raise HistoryError(f"{name} cannot be unpacked here ({error}). Unpack it and import the folder.") from error
