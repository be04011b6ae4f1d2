"""A file, a folder or a zip archive to import, recognised by its content and never by its name, as a stream of records.

Recognising reads beginnings only; the rest is read while the records are taken, so memory stays small.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from core.errors import HistoryError
from core.store.archive import Skipped, TransferRecord
from core.store.sqlite.database import open_hermes
from core.text.normalize import on_one_line, shortened
from core.transfer import exports, hermes
from core.transfer.formats import BYTE_ORDER_MARK, VALUE_BYTES, Choices, json_events, read_lines


def _read_lines(stream: BinaryIO, title: str, choices: Choices) -> Iterator[TransferRecord | Skipped]:
    """Of a line that is too long no more is read than shows it."""

    def lines() -> Iterator[bytes]:
        while line := stream.readline(VALUE_BYTES + 1):
            yield line
            while len(line) > VALUE_BYTES and not line.endswith(b"\n"):
                line = stream.readline(VALUE_BYTES + 1)

    return read_lines(lines(), title, choices)


FORMATS: Mapping[str, tuple[str, Callable[[BinaryIO, str, Choices], Iterator[TransferRecord | Skipped]]]] = {
    "telegram": ("Telegram export", exports.read_telegram),
    "chatgpt": ("ChatGPT export", exports.read_chatgpt),
    "claude": ("Claude export", exports.read_claude),
    "discord": ("Discord data package", exports.read_discord),
    "hermes": ("state.db of Hermes", hermes.read),
    "lines": ("file of JSON lines", _read_lines),
}
"""What each kind is called, and what reads it."""
_SHAPES = {
    ("item.mapping", "start_map"): "chatgpt",
    ("item.chat_messages", "start_array"): "claude",
    ("chats", "start_map"): "telegram",
    ("left_chats", "start_map"): "telegram",
}
"""The kind of a JSON document by the first of these in it."""
_SQLITE = b"SQLite format 3\0"
_ZIPS = (b"PK\x03\x04", b"PK\x05\x06")
"""How a zip archive begins, and an empty one."""
UNPACKED_BYTES, FREE_BYTES, RATIO, ENTRIES = 4_000_000_000, 100_000_000, 100, 100_000
"""What an archive may unpack to: so much, and beyond the second only so many times its own size; its entries."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError)
_BY_HAND = "Unpack it yourself and import the folder."
_HEAD_BYTES = 4096
_LINE_BYTES, _LINES, _ITEMS = 1 << 20, 20, 5
_TAKEN = (
    "Taken are JSON lines, Telegram Desktop's export (result.json), the exports of ChatGPT and Claude "
    "(conversations.json), a Discord data package and the state.db of Hermes; also in a folder or a zip archive."
)


class Source:
    """What is imported, from `Source.open`: the files under `root` that are history. People know it as `title`.
    `trouble`: why it has no more of them."""

    def __init__(self, root: Path, title: str, choices: Choices, trouble: HistoryError | None = None) -> None:
        self._trouble = trouble
        self._root = root
        self._title = title
        self._choices = choices
        self._parts = self._found()

    @classmethod
    @contextlib.contextmanager
    def open(cls, given: Path | BinaryIO, choices: Choices) -> Iterator[Source]:
        """Recognises what is at a path, or what a stream gives, which is written down first because it is read more
        than once. Raises HistoryError when it cannot be imported, OSError."""
        is_plain = isinstance(given, Path) and not (given.is_file() and _head(given).startswith(_ZIPS))
        with contextlib.nullcontext("") if is_plain else tempfile.TemporaryDirectory(prefix="mneme-import-") as folder:
            trouble = None
            if isinstance(given, Path):
                path, title = given, str(given)
            else:
                path, title = Path(folder, "stdin"), "What came on stdin"
                trouble = _written(given, path)
            if path.is_file() and _head(path).startswith(_ZIPS):
                trouble = _unpack(path, Path(folder, "unpacked"), title) or trouble
                path = Path(folder, "unpacked")
            yield cls(path, title, choices, trouble)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _ in self._parts))

    @property
    def files(self) -> list[str]:
        """Where in a folder or an archive they lie; nothing for a file alone."""
        return [_name(path.relative_to(self._root)) for _, path in self._parts if path != self._root]

    def records(self) -> Iterator[TransferRecord | Skipped]:
        """Everything, file by file. Raises HistoryError at the place where a file is broken."""
        for kind, path in self._parts:
            (_, read), title = FORMATS[kind], self._shown(path)
            try:
                # Each time that a file is waited for, the thread that writes takes the interpreter.
                with path.open("rb", _LINE_BYTES) as stream:
                    yield from read(stream, title, self._choices)
            except OSError as error:
                raise HistoryError(f"{title} cannot be read: {error.strerror or error}.") from error
        if self._trouble is not None:
            raise self._trouble

    def notes(self) -> dict[str, list[str]]:
        """The notes beside it, by target ("memory", "user"); they are no records."""
        stores = [path for kind, path in self._parts if kind == "hermes"]
        return next((found for store in stores if (found := hermes.notes(store))), {})

    def _shown(self, path: Path) -> str:
        return self._title if path == self._root else f"{_name(path.relative_to(self._root))} in {self._title}"

    def _found(self) -> list[tuple[str, Path]]:
        """Kinds and paths of the files. Raises HistoryError where there are none, for a broken one only then."""
        is_folder = self._root.is_dir()
        found = self._root.rglob("*") if is_folder else [self._root]
        paths = sorted(path for path in found if path == self._root or (path.is_file() and not path.is_symlink()))
        parts = [("discord", path) for path in paths if exports.is_channel(path)]
        troubles: list[HistoryError] = []
        for path in () if parts else paths:
            try:
                if kind := _kind(path, self._shown(path), is_alone=not is_folder):
                    parts.append((kind, path))
            except HistoryError as error:
                troubles.append(error)
        if not parts:
            nothing = HistoryError(f"{self._title} is nothing that can be imported. {_TAKEN}")
            raise self._trouble or next(iter(troubles), nothing)
        return parts


def _written(given: BinaryIO, path: Path) -> HistoryError | None:
    """Writes down what a stream gives; what is wrong where it does not end."""
    left = UNPACKED_BYTES
    with path.open("wb") as copy:
        while part := given.read(min(_LINE_BYTES, left)):
            left -= copy.write(part)
    if left or not given.read(1):
        return None
    most = f"{UNPACKED_BYTES // 10**9} GB"
    return HistoryError(f"More than {most} came on stdin, and what is beyond that was not read. Import it as a file.")


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def _unpack(path: Path, folder: Path, title: str) -> HistoryError | None:
    """Unpacks texts and databases; pictures, sound and video stay where they are. Returns why it ended early; beyond
    the limits that is before anything is unpacked."""
    name, wanted = title, list[zipfile.ZipInfo]()
    folder.mkdir()
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > ENTRIES:
                return HistoryError(f"{title} has {len(members):,} entries; {ENTRIES:,} are the most. {_BY_HAND}")
            for member in members:
                head = b""
                with contextlib.suppress(*_DAMAGED, RuntimeError, OSError), archive.open(member) as stream:
                    head = stream.read(len(_SQLITE))
                wanted += [member] if head == _SQLITE or b"\0" not in head else []
            size = sum(member.file_size for member in wanted)
            most = min(UNPACKED_BYTES, max(FREE_BYTES, RATIO * path.stat().st_size))
            if size > most:
                return HistoryError(f"{title} would be {size:,} bytes when unpacked; {most:,} are the most. {_BY_HAND}")
            for member in wanted:
                name = f"{_name(member.filename)} in {title}"
                archive.extract(member, folder)
    except _DAMAGED:
        return HistoryError(f"{name} is damaged: get the archive anew.")
    except (RuntimeError, OSError) as error:
        # Of a password, of a compression that is not known here, of a name that cannot be written.
        return HistoryError(f"{name} cannot be unpacked here ({getattr(error, 'strerror', 0) or error}). {_BY_HAND}")
    return None


def _name(path: object) -> str:
    """Of a file, as it may be shown."""
    return shortened(on_one_line(str(path).encode("utf-8", "replace").decode()), 100)


def _kind(path: Path, title: str, *, is_alone: bool = False) -> str | None:
    """None for what is no history; where that is all there is, a text of a person's raises HistoryError."""
    head = _head(path)
    if is_alone and not head:
        raise HistoryError(f"{title} is empty.")
    if head.startswith(_SQLITE):
        with open_hermes(path, title):
            return "hermes"
    if b"\0" in head:
        return None
    with path.open("rb") as stream:
        for _ in range(_LINES):
            line = stream.readline(_LINE_BYTES)
            with contextlib.suppress(ValueError, RecursionError):
                values = json.loads(line.removeprefix(BYTE_ORDER_MARK).decode())
                if isinstance(values, dict) and not values.keys().isdisjoint(("session", "role")):
                    return "lines"
        start = head.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
        if start in (b"{", b"["):
            stream.seek(0)
            return _document_kind(stream, title)
    if not is_alone or not start:
        return None
    if start == b"<":
        raise HistoryError(
            f"{title} is a web page. Export again and choose JSON (Telegram Desktop: “Machine-readable JSON”)."
        )
    raise HistoryError(f"{title} is a text, but no history: none of its first lines is a JSON line. {_TAKEN}")


def _document_kind(stream: BinaryIO, title: str) -> str | None:
    """The kind of a JSON document by its first items; None for an unknown one."""
    items, has_id = 0, False
    for place, event, _ in json_events(stream, title):
        if kind := _SHAPES.get((place, event)):
            return kind
        items += place == "item" and event not in ("map_key", "end_map", "end_array")
        has_id = has_id or place == "id"
        if has_id and (place, event) == ("messages", "start_array"):
            return "telegram"
        if items > _ITEMS:
            return None
    return None
