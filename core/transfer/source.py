"""A file, a folder or a zip archive to import, recognised by its content and never by its name, as a stream of records.

Recognising reads beginnings only; the rest is read while the records are taken, so memory stays small.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from core.errors import HistoryError
from core.store.archive import Skipped, TransferRecord
from core.transfer import chatgpt, claude, discord, hermes, telegram
from core.transfer.formats import ArchiveFiles, Choices, json_events, read_lines

KINDS = {
    "telegram": "Telegram export",
    "chatgpt": "ChatGPT export",
    "claude": "Claude export",
    "discord": "Discord data package",
    "hermes": "state.db of Hermes",
    "lines": "file of JSON lines",
}
_READERS: dict[str, Callable[[BinaryIO, str, Choices], Iterator[TransferRecord | Skipped | None]]] = {
    "telegram": telegram.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
    "lines": read_lines,
}
_SHAPES = {
    ("mapping", "start_map"): "chatgpt",
    ("chat_messages", "start_array"): "claude",
    ("chats", "start_map"): "telegram",
    ("left_chats", "start_map"): "telegram",
}
"""The kind of a JSON document by the first of these, in it or in one of its conversations."""
_SQLITE = b"SQLite format 3\0"
_MARK = b"\xef\xbb\xbf"
_HEAD_BYTES = 4096
_LINE_BYTES, _LINES, _ITEMS = 1 << 20, 20, 5
_TAKEN = (
    "Taken are JSON lines, Telegram Desktop's export (result.json), the exports of ChatGPT and Claude "
    "(conversations.json), a Discord data package and the state.db of Hermes; also in a folder or a zip archive."
)


class Source:
    """What is imported, from `Source.open`."""

    def __init__(self, files: ArchiveFiles, parts: list[tuple[str, list[str]]], choices: Choices) -> None:
        self._files = files
        self._parts = parts
        self._choices = choices

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, choices: Choices, title: str | None = None) -> Iterator[Source]:
        """Recognises what is at `path`, shown to people as `title`; raises HistoryError when it cannot be imported."""
        with ArchiveFiles.open(path, title or str(path)) as files:
            parts = _recognised(files)
            if not parts:
                raise HistoryError(f"{title or path} is nothing that can be imported. {_TAKEN}")
            yield cls(files, parts, choices)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The keys of KINDS that were recognised."""
        return tuple(dict.fromkeys(kind for kind, _ in self._parts))

    @property
    def size_bytes(self) -> int | None:
        """The bytes to read; None where `done_bytes` is unknown."""
        if "hermes" in self.kinds:
            return None
        return sum(self._files.sizes[name] for _, names in self._parts for name in names)

    @property
    def done_bytes(self) -> int:
        return self._files.done_bytes

    def records(self) -> Iterator[TransferRecord | Skipped | None]:
        """Everything, file by file; None for a blank line. Raises HistoryError at the place where a file is broken."""
        for kind, names in self._parts:
            if kind == "discord":
                yield from discord.read(self._files, names, self._choices)
                continue
            (name,) = names
            title = self._files.title(name)
            if kind == "hermes":
                with self._files.on_disk(name) as path:
                    yield from hermes.read(path, title, self._choices)
            else:
                with self._files.reading(name) as stream:
                    yield from _READERS[kind](stream, title, self._choices)

    def notes(self) -> dict[str, list[str]]:
        """The notes beside it, by target ("memory", "user"); they are no records."""
        for kind, names in self._parts:
            if kind == "hermes" and (found := hermes.notes(self._files, names[0])):
                return found
        return {}


def _recognised(files: ArchiveFiles) -> list[tuple[str, list[str]]]:
    """Kinds with their members. Raises HistoryError for a broken member only where nothing else is found."""
    if names := discord.members(files):
        return [("discord", names)]
    parts: list[tuple[str, list[str]]] = []
    broken: HistoryError | None = None
    for name in files.sizes:
        try:
            kind = _kind(files, name)
        except HistoryError as error:
            broken = broken or error
        else:
            parts += [(kind, [name])] if kind else []
    if broken is not None and not parts:
        raise broken
    return parts


def _kind(files: ArchiveFiles, name: str) -> str | None:
    title = files.title(name)
    with files.reading(name, is_counted=False) as stream:
        head = stream.read(_HEAD_BYTES)
    if head.startswith(_SQLITE):
        with files.on_disk(name) as path:
            hermes.inspect(path, title)
        return "hermes"
    start = head.removeprefix(_MARK).lstrip()[:1]
    if start == b"<" and files.is_single:
        raise HistoryError(
            f"{title} is a web page. Export again and choose JSON (Telegram Desktop: “Machine-readable JSON”)."
        )
    broken: HistoryError | None = None
    if start in (b"{", b"["):
        with files.reading(name, is_counted=False) as stream:
            try:
                if kind := _document_kind(stream, title):
                    return kind
            except HistoryError as error:
                broken = error
    elif not files.is_single or b"\0" in head:
        # In an archive a text is just another file.
        return None
    with files.reading(name, is_counted=False) as stream:
        if _has_lines(stream):
            return "lines"
    if broken is None and start not in (b"", b"{", b"["):
        broken = HistoryError(f"{title} is a text, but no history: none of its first lines is a JSON line. {_TAKEN}")
    if broken is not None:
        raise broken
    return None


def _has_lines(stream: BinaryIO) -> bool:
    for _ in range(_LINES):
        line = stream.readline(_LINE_BYTES)
        with contextlib.suppress(ValueError, RecursionError):
            values = json.loads(line.removeprefix(_MARK).decode())
            if isinstance(values, dict) and not values.keys().isdisjoint(("session", "role")):
                return True
    return False


def _document_kind(stream: BinaryIO, title: str) -> str | None:
    """The kind of a JSON document by its first items; None for an unknown one."""
    items, has_id = 0, False
    for place, event, _ in json_events(stream, title):
        if place in ("item", "conversations.item") and event not in ("map_key", "end_map", "end_array"):
            items += 1
            if items > _ITEMS:
                return None
        inner = place.removeprefix("conversations.").removeprefix("item.")
        if kind := _SHAPES.get((inner, event)):
            return kind
        has_id = has_id or place == "id"
        if has_id and (place, event) == ("messages", "start_array"):
            return "telegram"
    return None
