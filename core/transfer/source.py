"""What a person brings to an import, recognised by its content and never by its name, as one stream of records.

A source is a file, a folder or a zip archive. Recognising reads beginnings only; reading happens while the records are
taken, so that memory stays small whatever the size.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from core.errors import HistoryError
from core.store.sqlite import hermes
from core.transfer import chatgpt, claude, discord, json_stream, record, telegram
from core.transfer.archive_files import ArchiveFiles
from core.transfer.json_stream import Event
from core.transfer.record import Choices, Skipped, TransferRecord

KINDS = {
    "telegram": "Telegram export",
    "chatgpt": "ChatGPT export",
    "claude": "Claude export",
    "discord": "Discord data package",
    "hermes": "state.db of Hermes",
    "lines": "file of JSON lines",
}
_READERS: dict[str, Callable[[BinaryIO, str, Choices], Iterator[TransferRecord | Skipped]]] = {
    "telegram": telegram.read,
    "chatgpt": chatgpt.read,
    "claude": claude.read,
}
_SQLITE = b"SQLite format 3\0"
_MARK = b"\xef\xbb\xbf"
_HEAD_BYTES = 4096
_LINE_BYTES = 1 << 20
_LINES = 20
_ITEMS = 5
_TAKEN = (
    "Taken are JSON lines, Telegram Desktop's export (result.json), the exports of ChatGPT and Claude "
    "(conversations.json), a Discord data package and the state.db of Hermes; also in a folder or a zip archive."
)


class Source:
    """Use `Source.open`."""

    def __init__(self, bundle: ArchiveFiles, parts: list[tuple[str, list[str]]], choices: Choices) -> None:
        self._bundle = bundle
        self._parts = parts
        self._choices = choices

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, choices: Choices, title: str | None = None) -> Iterator[Source]:
        """Looks at what is at `path`, which a person knows as `title`; raises HistoryError with a sentence when there
        is nothing to import."""
        with ArchiveFiles.open(path, title or str(path)) as bundle:
            parts = _recognised(bundle)
            if not parts:
                raise HistoryError(f"{title or path} is nothing that can be imported. {_TAKEN}")
            yield cls(bundle, parts, choices)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What was recognised, as keys of KINDS."""
        return tuple(dict.fromkeys(kind for kind, _ in self._parts))

    @property
    def size_bytes(self) -> int | None:
        """How much there is to read; None where `done_bytes` cannot be told."""
        if "hermes" in self.kinds:
            return None
        return sum(self._bundle.sizes[name] for _, names in self._parts for name in names)

    @property
    def done_bytes(self) -> int:
        """How much of it has been read."""
        return self._bundle.done_bytes

    def records(self) -> Iterator[TransferRecord | Skipped | None]:
        """Everything, in the order of the files; None stands for a blank line. HistoryError is raised where a file is
        broken, after what comes before."""
        for line in self._records():
            if isinstance(line, TransferRecord) and line.role == "user" and self._choices.is_own(line.sender):
                line = replace(line, origin="typed")
            yield line

    def _records(self) -> Iterator[TransferRecord | Skipped | None]:
        for kind, names in self._parts:
            if kind == "discord":
                yield from discord.read(self._bundle, names, self._choices)
                continue
            for name in names:
                yield from self._member(kind, name)

    def _member(self, kind: str, name: str) -> Iterator[TransferRecord | Skipped | None]:
        if kind == "hermes":
            with self._bundle.on_disk(name) as path:
                yield from hermes.read(path, self._bundle.title(name), self._choices)
            return
        with self._bundle.reading(name) as stream:
            if kind == "lines":
                yield from record.read(stream, self._choices.scope)
            else:
                yield from _READERS[kind](stream, self._bundle.title(name), self._choices)


def _recognised(bundle: ArchiveFiles) -> list[tuple[str, list[str]]]:
    """Kinds with their members. What is broken matters only where nothing else is found: then it is raised."""
    if names := discord.members(bundle):
        return [("discord", names)]
    parts: list[tuple[str, list[str]]] = []
    broken: HistoryError | None = None
    for name in bundle.sizes:
        try:
            kind = _kind(bundle, name)
        except HistoryError as error:
            broken = broken or error
        else:
            parts += [(kind, [name])] if kind else []
    if broken is not None and not parts:
        raise broken
    return parts


def _kind(bundle: ArchiveFiles, name: str) -> str | None:
    with bundle.reading(name, is_counted=False) as stream:
        head = stream.read(_HEAD_BYTES)
    if head.startswith(_SQLITE):
        with bundle.on_disk(name) as path:
            hermes.inspect(path, bundle.title(name))
        return "hermes"
    start = head.removeprefix(_MARK).lstrip()[:1]
    if start == b"<" and bundle.is_single:
        raise HistoryError(
            f"{bundle.title(name)} is a web page. Export again and choose JSON "
            "(Telegram Desktop: “Machine-readable JSON”)."
        )
    if start not in (b"{", b"["):
        # Told by number are the bad lines of a text that was named; in an archive it is just another file.
        return "lines" if bundle.is_single and b"\0" not in head else None
    broken: HistoryError | None = None
    with bundle.reading(name, is_counted=False) as stream:
        try:
            kind = _shape(stream, bundle.title(name))
        except HistoryError as error:
            kind, broken = None, error
    if kind is None:
        with bundle.reading(name, is_counted=False) as stream:
            kind = "lines" if _is_lines(stream) else None
    if kind is None and broken is not None:
        raise broken
    return kind


def _is_lines(stream: BinaryIO) -> bool:
    """Whether one of the first lines is an object of its own, with a session."""
    for _ in range(_LINES):
        line = stream.readline(_LINE_BYTES)
        with contextlib.suppress(ValueError, RecursionError):
            if "session" in json.loads(line.removeprefix(_MARK).decode()):
                return True
    return False


def _shape(stream: BinaryIO, name: str) -> str | None:
    """The kind of a JSON document, by the first key that decides; None for an unknown one."""
    rest = json_stream.events(stream, name)
    return _of_list(rest) if next(rest)[0] == "start_array" else _of_object(rest)


def _of_list(rest: Iterator[Event]) -> str | None:
    for count, item in enumerate(json_stream.items(rest)):
        if count == _ITEMS:
            return None
        if item[0] != "start_map":
            json_stream.skip(item, rest)
        elif (kind := _of_object(rest)) in ("chatgpt", "claude"):
            return kind
    return None


def _of_object(rest: Iterator[Event]) -> str | None:
    """Takes the object up to the key that decides, or to its end."""
    met: set[str] = set()
    for key, event in json_stream.fields(rest):
        starts = event[0]
        if key == "mapping" and starts == "start_map":
            return "chatgpt"
        if key == "chat_messages" and starts == "start_array":
            return "claude"
        if key == "messages" and starts == "start_array" and "id" in met:
            return "telegram"
        if key in ("chats", "left_chats") and starts == "start_map":
            return "telegram"
        if key == "conversations" and starts == "start_array":
            return _of_list(rest)
        met.add(key)
        json_stream.skip(event, rest)
    return None
