"""Functions that the import formats share, and Mneme's own format: JSON lines.

Each line is an object with these keys. Keys with "?" may be missing or null::

    "session": str, "parent": str?, "title": str?, "platform": str?, "chat": str?, "scope": str?,
    "role": "user" | "assistant" | "tool", "sender": str?, "text": str,
    "at": a time in ISO 8601 (UTC if it names no zone), "id": str?, "kind": "quote"?,
    "whose": "owner"?
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, get_args

from pydantic_core import CoreConfig, SchemaValidator
from pydantic_core.core_schema import (
    literal_schema,
    nullable_schema,
    str_schema,
    typed_dict_field,
    typed_dict_schema,
)

from core.errors import word_clause
from core.store.archive import MAX_TITLE_CHARS, SkippedRecord, TransferConversation, TransferRecord
from core.transfer.json_stream import BYTE_ORDER_MARK, MAX_VALUE_BYTES
from core.types import LOCAL_SCOPE, Address, MessageKind, Role, Scope

# The reasons to skip a record. Reports show them after a number.
NO_TEXT = word_clause("import_no_text")
NO_TIME = word_clause("import_no_time")
UNKNOWN_SHAPE = word_clause("import_unknown_format")
HIDDEN = word_clause("import_hidden")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportOptions:
    """Information that an import needs and that isn't in the file.

    Options are compared by identity, so that using them as a cache key for each line is cheap.
    """

    scope: Scope = LOCAL_SCOPE
    # The scopes of the importing person. If a line belonged to the owner of another home, and its
    # scope isn't among these, it gets `scope`.
    own_scopes: frozenset[Scope] = frozenset()
    # The time zone for times without a time zone.
    zone: tzinfo = UTC
    # Names or ids of the senders whose messages are the assistant's.
    assistant_names: frozenset[str] = frozenset()
    # Sender names of the person who imports the file.
    own_names: frozenset[str] = frozenset()


def matches_any_name(names: frozenset[str], *candidates: str) -> bool:
    """Return whether one of the candidates is among the names, ignoring case."""
    folded_names = {name.casefold() for name in names}
    return any(candidate.casefold() in folded_names for candidate in candidates)


def build_conversation(
    address: Address,
    options: ImportOptions,
    title: object,
    name: str | None = None,
    parent: str | None = None,
) -> TransferConversation:
    """Return a new conversation for the records of its messages.

    Without a `name`, the address is the name. `parent` is the name of the conversation that this
    one continues.
    """
    return TransferConversation(
        name=name or address.key,
        parent=parent,
        title=as_text(title).strip()[:MAX_TITLE_CHARS] or None,
        address=address,
        scope=options.scope,
        own_names=frozenset(map(str.casefold, options.own_names)),
    )


def build_record(
    conversation: TransferConversation,
    role: Role,
    text: str,
    at: datetime | None,
    id_: str | None,
    sender: str | None = None,
) -> TransferRecord | SkippedRecord:
    """Return the record of a message, or a skipped record if the message has no text or time."""
    if not text.strip():
        return SkippedRecord(reason=NO_TEXT)
    if at is None:
        return SkippedRecord(reason=NO_TIME)
    return TransferRecord(conversation, role, text, at, sender, id_)


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def parse_seconds(value: object) -> datetime | None:
    """Convert seconds since 1970 (UTC) to a time. Returns None for an invalid value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def parse_iso(value: object, zone: tzinfo = UTC) -> datetime | None:
    """Parse a time in ISO 8601, and return it in UTC, or None for an invalid value.

    A time without a zone is in `zone`.
    """
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        if at.tzinfo is None:
            at = at.replace(tzinfo=zone)
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def read_lines(
    stream: Iterable[bytes | str], title: str = "", options: ImportOptions = ImportOptions()
) -> Iterator[TransferRecord | SkippedRecord]:
    """Yield a record for each JSON line.

    For an invalid line, yields a skipped record with the number of the line and the reason. Blank
    lines are ignored.
    """
    for number, line in enumerate(stream, start=1):
        if number == 1:
            line = _remove_byte_order_mark(line)
        try:
            yield parse_line(line, options)
        except ValueError as error:
            if line.strip():
                yield SkippedRecord(reason=str(error), line=number)


def _remove_byte_order_mark(line: bytes | str) -> bytes | str:
    if isinstance(line, bytes):
        return line.removeprefix(BYTE_ORDER_MARK)
    return line.removeprefix("\ufeff")


_FIELDS = {
    "session",
    "parent",
    "title",
    "platform",
    "chat",
    "scope",
    "role",
    "sender",
    "text",
    "at",
    "id",
    "kind",
    "whose",
}
# The value of "whose" for messages in the scopes of the owner.
OWNER = "owner"
_ROLES = frozenset(get_args(Role))
_SCOPE = re.compile(r"(?:account|room):[^:\0]+:[^\0]+", re.DOTALL)
_REQUIRED = typed_dict_field(str_schema(strict=True, min_length=1))
_OPTIONAL = typed_dict_field(nullable_schema(str_schema(strict=True)), required=False)
# Parses a valid line in a quarter of the time that `_load_fields` needs.
_LINE_VALIDATOR = SchemaValidator(
    typed_dict_schema(
        dict.fromkeys(_FIELDS, _OPTIONAL)
        | dict.fromkeys(("session", "text", "at"), _REQUIRED)
        | {"role": typed_dict_field(literal_schema(list(_ROLES)))}
    ),
    CoreConfig(cache_strings="keys"),
)


def parse_line(line: str | bytes, options: ImportOptions = ImportOptions()) -> TransferRecord:
    """Return the record in a JSON line. Raises ValueError with a readable reason."""
    if len(line) > MAX_VALUE_BYTES:
        raise ValueError(word_clause("import_line_too_long", limit=MAX_VALUE_BYTES))
    try:
        fields = _LINE_VALIDATOR.validate_json(line)
    except ValueError:
        fields = _load_fields(line)
    get = fields.get
    conversation = _load_conversation(
        options,
        fields["session"],
        get("parent"),
        get("title"),
        get("platform"),
        get("chat"),
        _choose_scope(options, get("scope"), get("whose")),
    )
    at = parse_iso(fields["at"])
    if at is None:
        raise ValueError(word_clause("import_not_a_moment", value=repr(fields["at"][:40])))
    text = fields["text"]
    if not text.strip():
        raise ValueError(word_clause("import_empty_text"))
    kind: MessageKind = "quote" if get("kind") == "quote" else "chat"
    return TransferRecord(
        conversation, fields["role"], text, at, get("sender") or None, get("id") or None, kind
    )


def _load_fields(line: str | bytes) -> dict[str, Any]:
    """Parse a line that `_LINE_VALIDATOR` rejects, and return its fields.

    Lines with invalid characters, such as half of an emoji, are accepted here. Raises ValueError
    with a readable reason if the line is invalid.
    """
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition(":")[0]
        raise ValueError(word_clause("import_not_json", reason=reason)) from None
    if not isinstance(values, dict):
        raise ValueError(word_clause("import_no_object"))
    fields = {key: value for key, value in values.items() if value is not None and key in _FIELDS}
    for key, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(word_clause("import_no_string", field=key))
    for key in ("session", "at", "text"):
        if not fields.get(key):
            raise ValueError(word_clause("import_missing", field=key))
    if fields.get("role") not in _ROLES:
        raise ValueError(word_clause("import_bad_role"))
    return fields


def _choose_scope(options: ImportOptions, scope: str | None, whose: str | None) -> str | None:
    """Return the scope of a line, or None for the scope of the person who imports it.

    The owner of another home may have accounts that aren't the owner's here, for example because
    they were approved by a code. Their messages belong to the person who imports them.
    """
    if whose == OWNER and scope and Scope(key=scope) not in options.own_scopes:
        return None
    return scope


@lru_cache(maxsize=64)
def _load_conversation(
    options: ImportOptions,
    session: str,
    parent: str | None,
    title: str | None,
    platform: str | None,
    chat: str | None,
    scope: str | None,
) -> TransferConversation:
    """Return the conversation that a line belongs to.

    `chat` may end with a slash and the id of a thread. Raises ValueError if the platform or scope
    is invalid.
    """
    platform = platform or "terminal"
    if ":" in platform:
        raise ValueError(word_clause("import_bad_platform"))
    if scope and not _SCOPE.fullmatch(scope):
        raise ValueError(word_clause("import_bad_scope"))
    if chat:
        address = Address.parse(f"{platform}:{chat}")
    else:
        address = Address(platform=platform, chat_id=session)
    if scope:
        options = replace(options, scope=Scope(key=scope))
    return build_conversation(address, options, title, session, parent or None)


def format_line(record: TransferRecord, *, is_owners: bool = False) -> str:
    """Return a record as a JSON line without a line break, in the format of `parse_line`.

    With `is_owners`, the line says that the message belongs to the owner of this home.
    """
    conversation = record.conversation
    address = conversation.address
    is_named_by_chat = address.chat_id == conversation.name
    values = {
        "session": conversation.name,
        "parent": conversation.parent,
        "title": conversation.title,
        "platform": address.platform,
        "chat": None if is_named_by_chat else address.key.partition(":")[2],
        "scope": conversation.scope.key,
        "role": record.role,
        "sender": record.sender,
        "text": record.text,
        "at": record.at.astimezone(UTC).isoformat(),
        "id": record.id,
        "kind": None if record.kind == "chat" else record.kind,
        "whose": OWNER if is_owners else None,
    }
    present_values = {key: value for key, value in values.items() if value is not None}
    return json.dumps(present_values, ensure_ascii=False)
