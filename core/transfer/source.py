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
from core.transfer.files import SQLITE, ExportFiles, open_files, readable
from core.transfer.formats import BYTE_ORDER_MARK, Choices, json_events, read_lines

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
    ("item.mapping", "start_map"): "chatgpt",
    ("item.chat_messages", "start_array"): "claude",
    ("chats", "start_map"): "telegram",
    ("left_chats", "start_map"): "telegram",
}
"""The kind of a JSON document by the first of these in it."""
_HEAD_BYTES = 4096
_LINE_BYTES, _LINES, _ITEMS = 1 << 20, 20, 5
_TAKEN = (
    "Taken are JSON lines, Telegram Desktop's export (result.json), the exports of ChatGPT and Claude "
    "(conversations.json), a Discord data package and the state.db of Hermes; also in a folder or a zip archive."
)


class Source:
    """What is imported, from `Source.open`."""

    def __init__(self, files: ExportFiles, parts: list[tuple[str, str]], choices: Choices) -> None:
        self._files = files
        self._parts = parts
        self._choices = choices

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, choices: Choices, title: str | None = None) -> Iterator[Source]:
        """Recognises what is at `path`, shown to people as `title`; raises HistoryError when it cannot be imported."""
        with open_files(path, title or str(path)) as files:
            parts = _recognised(files)
            if not parts:
                raise HistoryError(f"{files.title} is nothing that can be imported. {_TAKEN}")
            yield cls(files, parts, choices)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The keys of KINDS that were recognised."""
        return tuple(dict.fromkeys(kind for kind, _ in self._parts))

    def records(self) -> Iterator[TransferRecord | Skipped | None]:
        """Everything, file by file; None for a blank line. Raises HistoryError at the place where a file is broken."""
        for kind, name in self._parts:
            path, title = self._files.paths[name], self._files.title_of(name)
            with readable(title), path.open("rb") as stream:
                if kind == "hermes":
                    yield from hermes.read(path, title, self._choices)
                elif kind == "discord":
                    yield from discord.read(stream, self._files, name, self._choices)
                else:
                    yield from _READERS[kind](stream, title, self._choices)

    def notes(self) -> dict[str, list[str]]:
        """The notes beside it, by target ("memory", "user"); they are no records."""
        stores = [self._files.paths[name] for kind, name in self._parts if kind == "hermes"]
        return next((found for store in stores if (found := hermes.notes(store))), {})


def _recognised(files: ExportFiles) -> list[tuple[str, str]]:
    """Files with their kinds. Raises HistoryError for a broken one only where nothing else is found."""
    if names := discord.members(files):
        return [("discord", name) for name in names]
    parts: list[tuple[str, str]] = []
    broken: HistoryError | None = None
    for name in files.paths:
        try:
            kind = _kind(files, name)
        except HistoryError as error:
            broken = broken or error
        else:
            parts += [(kind, name)] if kind else []
    if broken is not None and not parts:
        raise broken
    return parts


def _kind(files: ExportFiles, name: str) -> str | None:
    path, title = files.paths[name], files.title_of(name)
    with readable(title), path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
        if head.startswith(SQLITE):
            hermes.inspect(path, title)
            return "hermes"
        if b"\0" in head:
            return None
        stream.seek(0)
        if _has_lines(stream):
            return "lines"
        start = head.removeprefix(BYTE_ORDER_MARK).lstrip()[:1]
        if start in (b"{", b"["):
            stream.seek(0)
            return _document_kind(stream, title)
    if not files.is_single or not start:
        # In a folder or an archive a text is just another file.
        return None
    if start == b"<":
        raise HistoryError(
            f"{title} is a web page. Export again and choose JSON (Telegram Desktop: “Machine-readable JSON”)."
        )
    raise HistoryError(f"{title} is a text, but no history: none of its first lines is a JSON line. {_TAKEN}")


def _has_lines(stream: BinaryIO) -> bool:
    for _ in range(_LINES):
        line = stream.readline(_LINE_BYTES)
        with contextlib.suppress(ValueError, RecursionError):
            values = json.loads(line.removeprefix(BYTE_ORDER_MARK).decode())
            if isinstance(values, dict) and not values.keys().isdisjoint(("session", "role")):
                return True
    return False


def _document_kind(stream: BinaryIO, title: str) -> str | None:
    """The kind of a JSON document by its first items; None for an unknown one."""
    items, has_id = 0, False
    for place, event, _ in json_events(stream, title):
        if place == "item" and event not in ("map_key", "end_map", "end_array"):
            items += 1
            if items > _ITEMS:
                return None
        if kind := _SHAPES.get((place, event)):
            return kind
        has_id = has_id or place == "id"
        if has_id and (place, event) == ("messages", "start_array"):
            return "telegram"
    return None
