"""The one door to the streaming JSON parser: a file of any size is walked event by event, and built only where asked.

An event is (kind, value) as ijson's `basic_parse` gives it. Whoever gets the first event of a value must take the
whole value: by `value`, `skip`, `items` or `fields`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO

import ijson  # type: ignore[import-untyped]

from core.errors import HistoryError

Event = tuple[str, Any]

DEEPEST = 100
"""Exports are 20 levels deep at most; deeper is an attack or an accident."""
_BUFFER_BYTES = 1 << 16
_ESCAPE = re.compile(rb"\\(?:x([01][0-9A-Fa-f])|.)", re.DOTALL)
_STARTS = ("start_map", "start_array")
_ENDS = ("end_map", "end_array")


def events(stream: BinaryIO, name: str) -> Iterator[Event]:
    """The events of one JSON document; raises HistoryError, after everything that can be read, when it is broken."""
    try:
        yield from ijson.basic_parse(_Mended(stream), buf_size=_BUFFER_BYTES)
    except (ijson.JSONError, ValueError) as error:
        text = str(error)
        if "EOF" in text or "Incomplete" in text:
            raise HistoryError(f"{name} breaks off in the middle: its end is missing.") from error
        raise HistoryError(f"{name} is broken: at some place it is not valid JSON.") from error


def value(first: Event, rest: Iterator[Event], depth: int = DEEPEST) -> Any:
    """Builds the value that begins with `first`; numbers with a fraction become floats."""
    kind, content = first
    if kind not in _STARTS:
        return float(content) if isinstance(content, Decimal) else content
    if not depth:
        raise HistoryError("The file is broken: it is nested too deeply.")
    if kind == "start_map":
        return {key: value(event, rest, depth - 1) for key, event in fields(rest)}
    return [value(event, rest, depth - 1) for event in items(rest)]


def skip(first: Event, rest: Iterator[Event]) -> None:
    """Passes over the value that begins with `first`, in no memory."""
    depth = 1 if first[0] in _STARTS else 0
    while depth:
        kind = next(rest)[0]
        if kind in _STARTS:
            depth += 1
        elif kind in _ENDS:
            depth -= 1


def fields(rest: Iterator[Event]) -> Iterator[tuple[str, Event]]:
    """The keys of the object whose start was just taken, each with the first event of its value."""
    for kind, key in rest:
        if kind == "end_map":
            return
        yield key, next(rest)


def items(rest: Iterator[Event]) -> Iterator[Event]:
    """The first event of every item of the array whose start was just taken."""
    for event in rest:
        if event[0] == "end_array":
            return
        yield event


def conversations(stream: BinaryIO, name: str) -> Iterator[Any]:
    """The conversations of an export, one at a time: a list of them, an object that has them as "conversations", or a
    single one."""
    rest = events(stream, name)
    first = next(rest)
    if first[0] == "start_array":
        for event in items(rest):
            yield value(event, rest)
    elif first[0] == "start_map":
        single: dict[str, Any] = {}
        for key, event in fields(rest):
            if key == "conversations" and event[0] == "start_array":
                for inner in items(rest):
                    yield value(inner, rest)
            else:
                single[key] = value(event, rest)
        if "mapping" in single or "chat_messages" in single:
            yield single


class _Mended:
    """Reads a file as JSON that a parser takes: without the mark some editors put in front, and with control characters
    escaped as JSON has it. Telegram Desktop writes them as \\x0B (`SerializeString` of its export_output_json.cpp)."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held = b""
        self._is_begun = False

    def read(self, size: int = -1) -> bytes:
        """About `size` bytes; an escape that is cut by the end of a buffer waits for the next."""
        if size == 0:
            return b""
        while True:
            chunk = self._stream.read(size)
            data = self._held + chunk
            if not self._is_begun and data:
                data = data.removeprefix(b"\xef\xbb\xbf")
                self._is_begun = True
            end = _whole(data) if chunk else len(data)
            data, self._held = data[:end], data[end:]
            if data or not chunk:
                return _ESCAPE.sub(_escaped, data) if b"\\x" in data else data


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u00" + found[1] if found[1] else found[0]


def _whole(data: bytes) -> int:
    """Where an escape begins that the end of the data cuts off; the length of the data when there is none."""
    at = data.rfind(b"\\", max(0, len(data) - 3))
    if at < 0 or data[at:] not in (b"\\", b"\\x", b"\\x0", b"\\x1"):
        return len(data)
    run = at + 1 - len(data[: at + 1].rstrip(b"\\"))
    return at if run % 2 else len(data)
