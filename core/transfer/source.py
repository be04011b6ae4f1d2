"""Finds the files with history in a file, folder or zip archive, and reads their records.

The format of a file is recognized by the file's content. Only the files of Discord channels are
recognized by their names. Recognizing a format reads only the beginning of a file. The rest is read
while the records are consumed, so little memory is needed.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.errors import HistoryError
from core.store.archive import SkippedRecord, TransferRecord
from core.store.sqlite.hermes import open_hermes
from core.text.normalize import shorten, to_single_line
from core.transfer import assistants, hermes, messengers
from core.transfer.formats import ImportOptions, read_lines
from core.transfer.json_stream import (
    BYTE_ORDER_MARK,
    MAX_SILENCE_S,
    MAX_VALUE_BYTES,
    json_events,
)

# The size of an archive's content may always be ALWAYS_ALLOWED_BYTES. A larger content may be
# MAX_RATIO times as large as the archive, but never more than MAX_UNPACKED_BYTES.
MAX_UNPACKED_BYTES = 4_000_000_000
ALWAYS_ALLOWED_BYTES = 100_000_000
MAX_RATIO = 100
MAX_ENTRIES = 100_000
# A folder may have more than an archive, because nothing is unpacked. The bytes are those of its
# texts and databases.
MAX_FOLDER_ENTRIES = 200_000
MAX_FOLDER_DEPTH = 32
MAX_FOLDER_BYTES = 20_000_000_000
MAX_NAME_CHARS = 100
_HEAD_BYTES = 4096
_READ_BYTES = 1 << 20
# How many lines of a file, or items of a JSON document, are read to recognise its format.
_MAX_LINES_TO_RECOGNISE = 20
_MAX_ITEMS_TO_RECOGNISE = 5
_SQLITE_START = b"SQLite format 3\0"
# The first bytes of a zip archive, and those of an empty one.
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGED_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    ValueError,
)


_ReadHistory = Callable[[BinaryIO, str, ImportOptions], Iterator[TransferRecord | SkippedRecord]]


def _read_lines(
    stream: BinaryIO, title: str, options: ImportOptions
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield a record for each JSON line. Lines that are too long are cut to save memory."""

    def cut_lines() -> Iterator[bytes]:
        """Yield each line, cut after `MAX_VALUE_BYTES` and one more byte, and skip the rest."""
        while line := stream.readline(MAX_VALUE_BYTES + 1):
            yield line
            while len(line) > MAX_VALUE_BYTES and not line.endswith(b"\n"):
                line = stream.readline(MAX_VALUE_BYTES + 1)

    return read_lines(cut_lines(), title, options)


FORMATS: Mapping[str, _ReadHistory] = {
    "telegram": messengers.read_telegram,
    "chatgpt": assistants.read_chatgpt,
    "claude": assistants.read_claude,
    "discord": messengers.read_discord,
    "hermes": hermes.read_hermes,
    "lines": _read_lines,
}
# The format of a JSON document, by a path and event that only documents of this format have.
_FORMAT_BY_EVENT = {
    ("item.mapping", "start_map"): "chatgpt",
    ("item.chat_messages", "start_array"): "claude",
    ("chats", "start_map"): "telegram",
    ("left_chats", "start_map"): "telegram",
}


@dataclass(frozen=True, slots=True)
class _HistoryFile:
    # A key of FORMATS.
    kind: str
    path: Path


class Source:
    """The files with history in a file or folder. Use `Source.open` to create a source.

    `title` is its name in error messages. `read_error` is a problem with a part of the content.
    It's raised after all other records have been read, or at once if no file contains history.
    """

    def __init__(
        self,
        root: Path,
        title: str,
        options: ImportOptions,
        read_error: HistoryError | None = None,
    ) -> None:
        self._read_error = read_error
        self._root = root
        self._title = title
        self._options = options
        self._files = self._find_files()

    @classmethod
    @contextlib.contextmanager
    def open(cls, origin: Path | BinaryIO, options: ImportOptions) -> Iterator[Source]:
        """Open a path or a stream, and recognize the formats of its files.

        A stream is first copied to a temporary file, because its content is read twice. An archive
        is unpacked to a temporary folder. Raises HistoryError if nothing can be imported, and
        OSError if the path or the stream can't be read.
        """
        is_archive = isinstance(origin, Path) and origin.is_file() and _is_zip(origin)
        if isinstance(origin, Path) and not is_archive:
            yield cls(origin, str(origin), options)
            return

        with tempfile.TemporaryDirectory(prefix="mneme-import-") as folder:
            read_error = None
            if isinstance(origin, Path):
                path = origin
                title = str(origin)
            else:
                path = Path(folder, "stdin")
                title = "stdin"
                read_error = _copy_stream(origin, path)
            if _is_zip(path):
                unpacked_folder = Path(folder, "unpacked")
                read_error = _unpack(path, unpacked_folder, title) or read_error
                path = unpacked_folder
            yield cls(path, title, options, read_error)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The formats of the files, as keys of FORMATS, without duplicates."""
        return tuple(dict.fromkeys(file.kind for file in self._files))

    @property
    def file_names(self) -> list[str]:
        """The paths of the files in a folder or archive. The list is empty for a single file."""
        return [
            _display_name(file.path.relative_to(self._root))
            for file in self._files
            if file.path != self._root
        ]

    def read_records(self) -> Iterator[TransferRecord | SkippedRecord]:
        """Yield the records of all files. Raises HistoryError at the first broken part."""
        for file in self._files:
            title = self._file_title(file.path)
            try:
                # Each time this thread waits for the file, the thread that writes gets the
                # interpreter. With a large buffer, this is rare.
                with file.path.open("rb", _READ_BYTES) as stream:
                    yield from FORMATS[file.kind](stream, title, self._options)
            except OSError as error:
                reason = error.strerror or str(error)
                raise HistoryError("history_unreadable", title=title, reason=reason) from error
        if self._read_error is not None:
            raise self._read_error

    def read_notes(self) -> dict[str, list[str]]:
        """Return the notes next to the first Hermes database that has any, by target.

        The targets are "memory" and "user". Without notes, the dictionary is empty.
        """
        for file in self._files:
            if file.kind == "hermes":
                notes = hermes.read_notes(file.path)
                if notes:
                    return notes
        return {}

    def _file_title(self, path: Path) -> str:
        """Return the name of a file in error messages."""
        if path == self._root:
            return self._title
        return f"{self._title}/{_display_name(path.relative_to(self._root))}"

    def _find_files(self) -> list[_HistoryFile]:
        """Return the files that contain history.

        Raises HistoryError if no file contains history. If another file contains history, broken
        files are ignored.
        """
        is_folder = self._root.is_dir()
        paths = self._list_folder() if is_folder else [self._root]
        channel_files = [
            _HistoryFile("discord", path) for path in paths if messengers.is_channel_file(path)
        ]
        if channel_files:
            return channel_files

        files: list[_HistoryFile] = []
        errors: list[HistoryError] = []
        for path in paths:
            try:
                kind = _recognise(path, self._file_title(path), is_alone=not is_folder)
                if kind is not None:
                    files.append(_HistoryFile(kind, path))
            except HistoryError as error:
                errors.append(error)
        if files:
            return files
        if self._read_error is not None:
            raise self._read_error
        if errors:
            raise errors[0]
        raise HistoryError("history_nothing", title=self._title)

    def _list_folder(self) -> list[Path]:
        """Return the files in the folder and its subfolders, sorted. Links aren't followed.

        Raises HistoryError if the folder can't be read, or if it exceeds a limit. If a subfolder
        can't be read, this is reported after the other files have been read.
        """
        paths: list[Path] = []
        entry_count = 0
        for folder, subfolders, names in os.walk(self._root, onerror=self._note_unreadable):
            entry_count += len(subfolders) + len(names)
            if entry_count > MAX_FOLDER_ENTRIES:
                raise HistoryError(
                    "history_many_files", title=self._title, limit=MAX_FOLDER_ENTRIES
                )
            if len(Path(folder).relative_to(self._root).parts) > MAX_FOLDER_DEPTH:
                raise HistoryError("history_deep_folder", title=self._title, limit=MAX_FOLDER_DEPTH)
            files = (Path(folder, name) for name in names)
            paths += [path for path in files if path.is_file() and not path.is_symlink()]
        if sum(map(_count_history_bytes, paths)) > MAX_FOLDER_BYTES:
            limit = MAX_FOLDER_BYTES // 10**9
            raise HistoryError("history_large_folder", title=self._title, limit=limit)
        return sorted(paths)

    def _note_unreadable(self, error: OSError) -> None:
        """Keep the error of a folder that can't be read. Raises it if it's the root folder."""
        path = Path(os.fsdecode(error.filename))
        reason = error.strerror or str(error)
        problem = HistoryError("history_unreadable", title=self._file_title(path), reason=reason)
        if path == self._root:
            raise problem from error
        self._read_error = self._read_error or problem


def _count_history_bytes(path: Path) -> int:
    """Return the size of a text or a database in bytes, or 0 for other files, such as pictures."""
    try:
        head = _read_head(path)
        is_history = head.startswith(_SQLITE_START) or b"\0" not in head
        return path.stat().st_size if is_history else 0
    except OSError:
        # Reading the file later reports it.
        return 0


def _copy_stream(stream: BinaryIO, path: Path) -> HistoryError | None:
    """Copy a stream to a file, up to `MAX_UNPACKED_BYTES`.

    If the stream is longer, returns an error without raising it.
    """
    remaining_bytes = MAX_UNPACKED_BYTES
    with path.open("wb") as copy:
        while data := stream.read(min(_READ_BYTES, remaining_bytes)):
            remaining_bytes -= copy.write(data)
    if remaining_bytes or not stream.read(1):
        return None
    return HistoryError("history_input_too_long", limit=MAX_UNPACKED_BYTES // 10**9)


def _read_head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def _is_zip(path: Path) -> bool:
    return _read_head(path).startswith(_ZIP_STARTS)


def _unpack(path: Path, folder: Path, title: str) -> HistoryError | None:
    """Unpack the texts and databases of an archive, but not its pictures, sounds or videos.

    If unpacking fails or a limit is exceeded, returns an error without raising it. If a limit is
    exceeded, nothing is unpacked.
    """
    # The part of the archive that an error message names.
    name = title
    folder.mkdir()
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_ENTRIES:
                return HistoryError(
                    "history_many_entries", title=title, count=len(entries), limit=MAX_ENTRIES
                )
            entries = [entry for entry in entries if _may_have_history(archive, entry)]
            size = sum(entry.file_size for entry in entries)
            allowed_by_ratio = MAX_RATIO * path.stat().st_size
            limit = min(MAX_UNPACKED_BYTES, max(ALWAYS_ALLOWED_BYTES, allowed_by_ratio))
            if size > limit:
                return HistoryError(
                    "history_unpacked_too_large", title=title, size=size, limit=limit
                )
            for entry in entries:
                name = f"{title}/{_display_name(entry.filename)}"
                archive.extract(entry, folder)
    except _DAMAGED_ARCHIVE_ERRORS:
        return HistoryError("history_damaged_archive", title=name)
    except (RuntimeError, OSError) as error:
        # The entry may have a password, an unknown compression, or a name that can't be written.
        reason = getattr(error, "strerror", None) or error
        return HistoryError("history_not_unpacked", title=name, reason=str(reason))
    return None


def _may_have_history(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Return whether an entry of an archive is a database or a text.

    If an entry can't be read, it counts as a text, so that unpacking it reports the error.
    """
    head = b""
    with (
        contextlib.suppress(*_DAMAGED_ARCHIVE_ERRORS, RuntimeError, OSError),
        archive.open(entry) as stream,
    ):
        head = stream.read(len(_SQLITE_START))
    return head == _SQLITE_START or b"\0" not in head


def _display_name(path: object) -> str:
    """Return the name of a file without characters that can't be shown."""
    printable = str(path).encode("utf-8", "replace").decode()
    return shorten(to_single_line(printable), MAX_NAME_CHARS)


def _recognise(path: Path, title: str, *, is_alone: bool) -> str | None:
    """Return the format of a file as a key of FORMATS, or None if the file contains no history.

    Raises HistoryError for a broken JSON document, and for a database that isn't from Hermes. If
    the file is the only one (`is_alone`), also raises HistoryError if the file is empty or a text
    without history.
    """
    head = _read_head(path)
    if is_alone and not head:
        raise HistoryError("history_empty", title=title)
    if head.startswith(_SQLITE_START):
        # This raises HistoryError unless the file is a Hermes database.
        with open_hermes(path, title):
            return "hermes"
    if b"\0" in head:
        return None
    start = head.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
    with path.open("rb") as stream:
        if _has_history_line(stream):
            return "lines"
        if start in (b"{", b"["):
            stream.seek(0)
            return _recognise_document(stream, title)
    if not is_alone or not start:
        return None
    if start == b"<":
        raise HistoryError("history_web_page", title=title)
    raise HistoryError("history_no_messages", title=title)


def _has_history_line(stream: BinaryIO) -> bool:
    """Return whether one of the first lines is a JSON object with a key of our own format."""
    for _ in range(_MAX_LINES_TO_RECOGNISE):
        line = stream.readline(MAX_VALUE_BYTES)
        with contextlib.suppress(ValueError, RecursionError):
            values = json.loads(line.removeprefix(BYTE_ORDER_MARK).decode())
            if isinstance(values, dict) and ("session" in values or "role" in values):
                return True
    return False


def _recognise_document(stream: BinaryIO, title: str) -> str | None:
    """Recognise the format of a JSON document from its first items.

    Returns a key of FORMATS, or None if the format is unknown.
    """
    items = 0
    has_id = False
    deadline = time.monotonic() + MAX_SILENCE_S
    for path, event, _ in json_events(stream, title):
        if time.monotonic() > deadline:
            raise HistoryError("history_too_slow", title=title, seconds=f"{MAX_SILENCE_S:g}")
        kind = _FORMAT_BY_EVENT.get((path, event))
        if kind:
            return kind
        if path == "id":
            has_id = True
        # An export of a single Telegram chat has an id and messages at the top level.
        if has_id and (path, event) == ("messages", "start_array"):
            return "telegram"
        if path == "item" and event not in ("map_key", "end_map", "end_array"):
            items += 1
        if items > _MAX_ITEMS_TO_RECOGNISE:
            return None
    return None
