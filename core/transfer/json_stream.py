"""Reads JSON documents of any size piece by piece.

All limits are far above the values in real exports.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import ijson  # type: ignore[import-untyped]

from core.errors import HistoryError

# The maximum size of a value in a document, and of a JSON line.
MAX_VALUE_BYTES = 10_000_000
MAX_DEPTH = 100
# The maximum number of events in one value that `json_values` builds.
MAX_ENTRY_EVENTS = 5_000_000
# Reading fails if `json_values` finds no value for this long.
MAX_SILENCE_S = 300.0
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_READ_BYTES = 1 << 16
# A piece with more brackets than this is passed to the parser in small steps.
_MAX_BRACKETS = 2000
_STEP_BYTES = 1 << 10
# An escape such as \n or \x0B. Group 1 is the two digits of \x.
_ESCAPE = re.compile(rb"\\(?:x([01][0-9A-Fa-f])|.)", re.DOTALL)
# The beginning of an escape at the end of a piece, whose rest is in the next piece.
_CUT_ESCAPE = re.compile(rb"\\(?:x[01]?)?\Z")


def json_events(stream: BinaryIO, title: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, kind and value of each event in a JSON document, as `ijson.parse` does.

    If the document is broken or exceeds a limit, HistoryError is raised after all earlier events.
    """
    depth = 0
    # The bytes that were read since the last event, which all belong to one value.
    unparsed_bytes = 0

    def read_pieces() -> Iterator[bytes]:
        """Yield the content in pieces. Raises HistoryError if a value is too long."""
        nonlocal unparsed_bytes
        for data in _repair_escapes(stream):
            # The parser reads a whole piece before it reports the first event of the piece. If a
            # piece has many brackets, small steps make sure that the depth is checked in time.
            brackets = data.count(b"[") + data.count(b"{")
            step = _STEP_BYTES if brackets > _MAX_BRACKETS else len(data)
            for start in range(0, len(data), step):
                yield data[start : start + step]
            unparsed_bytes += len(data)
            if unparsed_bytes > MAX_VALUE_BYTES:
                raise HistoryError("history_value_too_long", title=title, limit=MAX_VALUE_BYTES)

    try:
        # With use_float, a number of 5,000 digits is an error that can be caught. Without it, such
        # a number would end the process.
        for path, event, value in ijson.parse(ijson.from_iter(read_pieces()), use_float=True):
            unparsed_bytes = 0
            if event.startswith("start_"):
                depth += 1
            elif event.startswith("end_"):
                depth -= 1
            if depth > MAX_DEPTH:
                raise HistoryError("history_too_deep", title=title, limit=MAX_DEPTH)
            yield path, event, value
    except (ijson.JSONError, ValueError) as error:
        raise _explain_error(error, title) from error


def json_values(
    stream: BinaryIO, title: str, paths: Collection[str], starts: Collection[str] = ()
) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each value at one of the paths.

    An example of a path is "chats.list.item.name". Only one value is in memory at a time. When an
    object or array begins at one of the paths in `starts`, (path, None) is yielded. Raises
    HistoryError as `json_events` does, and also if a value has too many parts, or if no value ends
    within `MAX_SILENCE_S` seconds.
    """
    # Builds the value that is being read; None between values.
    builder = None
    value_path = ""
    events = 0
    deadline = time.monotonic() + MAX_SILENCE_S
    for path, event, value in json_events(stream, title):
        if time.monotonic() > deadline:
            raise HistoryError("history_too_slow", title=title, seconds=f"{MAX_SILENCE_S:g}")
        if builder is None:
            if path in starts and event in ("start_map", "start_array"):
                yield path, None
            if path not in paths or event in ("end_map", "end_array", "map_key"):
                continue
            builder = ijson.ObjectBuilder()
            value_path = path
            events = 0
        builder.event(event, value)
        events += 1
        if events > MAX_ENTRY_EVENTS:
            raise HistoryError("history_entry_too_large", title=title)
        if path == value_path and event not in ("start_map", "start_array", "map_key"):
            yield value_path, builder.value
            builder = None
            deadline = time.monotonic() + MAX_SILENCE_S


def _explain_error(error: Exception, title: str) -> HistoryError:
    """Return an error for people about an error of the JSON parser."""
    message = str(error)
    if "overflow" in message:
        return HistoryError("history_number_too_long", title=title)
    if "EOF" in message or "Incomplete" in message:
        return HistoryError("history_cut_off", title=title)
    return HistoryError("history_not_json", title=title)


def _repair_escapes(stream: BinaryIO) -> Iterator[bytes]:
    r"""Yield the content in pieces, without a byte order mark and with valid escapes.

    Telegram Desktop writes control characters as \x0B (`SerializeString` in its
    export_output_json.cpp). JSON requires \u000B.
    """
    head = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
    while data := head + stream.read(_READ_BYTES):
        head = b""
        # If the piece ends within an escape, read on until the escape is complete.
        while _CUT_ESCAPE.search(data) and (more := stream.read(1)):
            data += more
        if b"\\x" in data:
            data = _ESCAPE.sub(_repair_escape, data)
        yield data


def _repair_escape(match: re.Match[bytes]) -> bytes:
    r"""Return \u000B for \x0B, and any other escape unchanged."""
    digits = match[1]
    return b"\\u00" + digits if digits else match[0]
