"""What all formats share, and the format of our own, JSON lines:

{"session": str, "parent": str?, "title": str?, "platform": str?, "chat": str?, "scope": str?,
 "role": "user"|"assistant"|"tool", "sender": str?, "text": str, "at": ISO 8601 (naive = UTC), "id": str?,
 "kind": "quote"?}
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, BinaryIO, get_args

import ijson  # type: ignore[import-untyped]
from pydantic_core import CoreConfig, SchemaValidator
from pydantic_core.core_schema import literal_schema, nullable_schema, str_schema, typed_dict_field, typed_dict_schema

from core.errors import HistoryError
from core.store.archive import TITLE_CHARS, Conversation, Skipped, TransferRecord
from core.types import LOCAL, Address, MessageKind, Role, Scope

EMPTY = "messages without text or media"
TIMELESS = "messages without a time"
SHAPELESS = "entries of an unknown shape"
HIDDEN = "messages and parts that are not shown there (thoughts, tools, the system's, undone, copies)"

VALUE_BYTES = 10_000_000
"""The longest line, or value of a JSON document."""
DEEPEST, ENTRY_EVENTS, SILENT_S = 100, 5_000_000, 300.0
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_READ_BYTES = 1 << 16
_ESCAPE = re.compile(rb"\\(?:x([01][0-9A-Fa-f])|.)", re.DOTALL)
_CUT_ESCAPE = re.compile(rb"\\(?:x[01]?)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choices:
    """What a file cannot say. `zone`: of times without one; `assistants`, `own`: names or ids of senders who are the
    assistant, and names of those who are the person. Asked for with each line, so compared as an object."""

    scope: Scope = LOCAL
    zone: tzinfo = UTC
    assistants: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()


def is_among(known: frozenset[str], *names: str) -> bool:
    return not set(map(str.casefold, known)).isdisjoint(map(str.casefold, names))


def conversation_of(
    address: Address, choices: Choices, title: object, name: str | None = None, parent: str | None = None
) -> Conversation:
    """What the messages of one conversation share; its name is that of its address unless it has another."""
    return Conversation(
        name=name or address.key,
        parent=parent,
        title=text_of(title).strip()[:TITLE_CHARS] or None,
        address=address,
        scope=choices.scope,
        own=frozenset(map(str.casefold, choices.own)),
    )


def record_of(
    conversation: Conversation, role: Role, text: str, at: datetime | None, id_: str | None, sender: str | None = None
) -> TransferRecord | Skipped:
    """The record of a message; Skipped without words or a time."""
    if not text.strip():
        return Skipped(reason=EMPTY)
    if at is None:
        return Skipped(reason=TIMELESS)
    return TransferRecord(conversation, role, text, at, sender, id_)


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def from_seconds(value: object) -> datetime | None:
    """Seconds since 1970 UTC; None for what is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_text(value: object, zone: tzinfo = UTC) -> datetime | None:
    """A time in ISO 8601, in `zone` when it names none; None for what cannot be read."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        return (at.replace(tzinfo=zone) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_lines(
    stream: Iterable[bytes | str], title: str = "", choices: Choices = Choices()
) -> Iterator[TransferRecord | Skipped]:
    """Reads JSON lines but blank ones; Skipped with its number for a bad one."""
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK) if isinstance(line, bytes) else line.removeprefix("\ufeff")
        try:
            yield parse_line(line, choices)
        except ValueError as error:
            if line.strip():
                yield Skipped(reason=str(error), line=number)


_FIELDS = {"session", "parent", "title", "platform", "chat", "scope", "role", "sender", "text", "at", "id", "kind"}
_ROLES = frozenset(get_args(Role))
_SCOPE = re.compile(r"(?:account|room):[^:\0]+:[^\0]+", re.DOTALL)
_REQUIRED = typed_dict_field(str_schema(strict=True, min_length=1))
_OPTIONAL = typed_dict_field(nullable_schema(str_schema(strict=True)), required=False)
_LINE = SchemaValidator(
    typed_dict_schema(
        dict.fromkeys(_FIELDS, _OPTIONAL)
        | dict.fromkeys(("session", "text", "at"), _REQUIRED)
        | {"role": typed_dict_field(literal_schema(list(_ROLES)))}
    ),
    CoreConfig(cache_strings="keys"),
)
"""A line with nothing wrong, read in a quarter of the time of `_fields`."""


def parse_line(line: str | bytes, choices: Choices = Choices()) -> TransferRecord:
    """Reads one line; raises ValueError with a reason for a person."""
    if len(line) > VALUE_BYTES:
        raise ValueError(f"is longer than {VALUE_BYTES:,} bytes")
    try:
        said = _LINE.validate_json(line)
    except ValueError:
        said = _fields(line)
    given = said.get
    shared = given("parent"), given("title"), given("platform"), given("chat"), given("scope")
    conversation = _conversation(choices, said["session"], *shared)
    at, text = from_text(said["at"]), said["text"]
    if at is None:
        raise ValueError(f'"at" is not a moment in ISO 8601: {said["at"][:40]!r}')
    if not text.strip():
        raise ValueError('"text" is empty')
    kind: MessageKind = "quote" if given("kind") == "quote" else "chat"
    return TransferRecord(conversation, said["role"], text, at, given("sender") or None, given("id") or None, kind)


def _fields(line: str | bytes) -> dict[str, Any]:
    """What is odd, such as half of an emoji, is taken as `json` takes it; what is wrong is told."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON ({str(error).partition(':')[0]})") from None
    if not isinstance(values, dict):
        raise ValueError("is not a JSON object")
    said = {key: value for key, value in values.items() if value is not None and key in _FIELDS}
    for key, value in said.items():
        if not isinstance(value, str):
            raise ValueError(f'"{key}" is not a string')
    for key in ("session", "at", "text"):
        if not said.get(key):
            raise ValueError(f'"{key}" is missing or empty')
    if said.get("role") not in _ROLES:
        raise ValueError('"role" is not user, assistant or tool')
    return said


@lru_cache(maxsize=64)
def _conversation(choices: Choices, session: str, *shared: str | None) -> Conversation:
    """`chat` as in `Address.key`, with its thread after a slash."""
    parent, title, platform, chat, scope = shared
    if ":" in (platform := platform or "terminal"):
        raise ValueError('"platform" cannot contain a colon')
    if scope and not _SCOPE.fullmatch(scope):
        raise ValueError('"scope" is neither account:platform:id nor room:platform:chat')
    address = Address.parse(f"{platform}:{chat}") if chat else Address(platform=platform, chat_id=session)
    choices = replace(choices, scope=Scope(key=scope)) if scope else choices
    return conversation_of(address, choices, title, session, parent or None)


def to_line(record: TransferRecord) -> str:
    """The reverse of `parse_line`, without an end of line."""
    conversation, address = record.conversation, record.conversation.address
    values = {
        "session": conversation.name,
        "parent": conversation.parent,
        "title": conversation.title,
        "platform": address.platform,
        "chat": None if address.chat_id == conversation.name else address.key.partition(":")[2],
        "scope": conversation.scope.key,
        "role": record.role,
        "sender": record.sender,
        "text": record.text,
        "at": record.at.astimezone(UTC).isoformat(),
        "id": record.id,
        "kind": None if record.kind == "chat" else record.kind,
    }
    return json.dumps({key: value for key, value in values.items() if value is not None}, ensure_ascii=False)


def json_events(stream: BinaryIO, title: str) -> Iterator[tuple[str, str, Any]]:
    """A JSON document of any size, as `ijson.parse` gives it: place, kind, value. Raises HistoryError where it is
    broken, after everything before."""
    depth = unread_bytes = 0

    def pieces() -> Iterator[bytes]:
        nonlocal unread_bytes
        for data in _mended(stream):
            # The parser goes through a piece, however deep, before it tells of its beginning.
            step = 1 << 10 if data.count(b"[") + data.count(b"{") > 2000 else len(data)
            yield from (data[at : at + step] for at in range(0, len(data), step))
            unread_bytes += len(data)
            if unread_bytes > VALUE_BYTES:
                raise HistoryError(f"{title} has a value of more than {VALUE_BYTES:,} bytes, which no message has.")

    try:
        # As a Python integer, a number of 5,000 digits would end the process.
        for place, event, value in ijson.parse(ijson.from_iter(pieces()), use_float=True):
            unread_bytes = 0
            depth += event.startswith("start_") - event.startswith("end_")
            if depth > DEEPEST:
                raise HistoryError(f"{title} is nested more than {DEEPEST} levels deep, which no history is.")
            yield place, event, value
    except (ijson.JSONError, ValueError) as error:
        text = str(error)
        if "overflow" in text:
            raise HistoryError(f"{title} has a number with more digits than any id or time.") from error
        if "EOF" in text or "Incomplete" in text:
            raise HistoryError(f"{title} breaks off in the middle: its end is missing.") from error
        raise HistoryError(f"{title} is broken: at some place it is not valid JSON.") from error


def json_values(
    stream: BinaryIO, title: str, places: Collection[str], starts: Collection[str] = ()
) -> Iterator[tuple[str, Any]]:
    """The places and values of these places ("chats.list.item.name"), each built alone; (place, None) where an object
    or array begins at one of `starts`."""
    builder, at, events, until_s = None, "", 0, time.monotonic() + SILENT_S
    for place, event, value in json_events(stream, title):
        if time.monotonic() > until_s:
            raise HistoryError(f"{title} was read for {SILENT_S:g} seconds, and nothing came of it.")
        is_end = event in ("end_map", "end_array", "map_key")
        if builder is None:
            if place in starts and event in ("start_map", "start_array"):
                yield place, None
            if place not in places or is_end:
                continue
            builder, at, events = ijson.ObjectBuilder(), place, 0
        builder.event(event, value)
        if (events := events + 1) > ENTRY_EVENTS:
            raise HistoryError(f"{title} has an entry of more parts than any message or conversation.")
        if place == at and event not in ("start_map", "start_array", "map_key"):
            yield at, builder.value
            builder, until_s = None, time.monotonic() + SILENT_S


def _mended(stream: BinaryIO) -> Iterator[bytes]:
    """A file without its byte order mark, with control characters escaped as JSON has it: Telegram Desktop writes
    \\x0B (`SerializeString` of its export_output_json.cpp)."""
    head = stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
    while data := head + stream.read(_READ_BYTES):
        while _CUT_ESCAPE.search(data) and (more := stream.read(1)):
            data += more
        yield _ESCAPE.sub(lambda found: b"\\u00" + found[1] if found[1] else found[0], data) if b"\\x" in data else data
        head = b""
