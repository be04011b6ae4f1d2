"""What all tables share: the roles of connection and row, text, times and JSON columns, ids of addresses and scopes,
sessions and messages as values, and the one condition of who may see a row. Functions that take a connection run inside
the caller's transaction. `core/store/sqlite/` fills the roles; nothing above it imports an SQLite module.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Protocol, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json

from core.store.sqlite.schema import in_list, list_value
from core.types import Account, Address, Answer, Inbound, Json, Message, Quoted, Scope, Sender, Session, Usage

T = TypeVar("T")

Values = Mapping[str, object]


class Row(Protocol):
    """One row of a result: `row["name"]`, `row[0]`, `row[:3]`."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def keys(self) -> list[str]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    @property
    def lastrowid(self) -> int | None: ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def fetchmany(self, size: int, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Inside one transaction, which a function that is given one neither begins nor ends: rows by name and by place,
    statements with named parameters."""

    def execute(self, statement: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, statement: str, values: Iterable[Any], /) -> Cursor:
        """For each of the values, whose texts must be valid Unicode."""
        ...


SHOWN_SESSION = """
    sessions.id, addresses.platform, addresses.chat_id, addresses.thread_id, addresses.link_base, scopes.key,
    sessions.started_at, sessions.last_at, sessions.ended_at, sessions.end_reason, sessions.title, sessions.external_id,
    sessions.parent_id, COALESCE(sessions.root_id, sessions.id), sessions.messages, sessions.is_delegated
"""
"""What search shows of a session. Its system prompt, 10 KB and more, is not."""
SHOWN_COLUMNS = 16
SESSIONS = f"""
SELECT {SHOWN_SESSION}, sessions.system_prompt, sessions.model, sessions.opens_at, sessions.sight, sessions.head_from,
    sessions.head_until
FROM sessions
JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
"""

DELEGATED = "SELECT id FROM sessions WHERE is_delegated"
"""The ids of delegated sessions, from an index: in its row, the column stands behind the prompt."""

MESSAGE_FIELDS = (
    *("id", "session_id", "role", "kind", "text", "blocks", "tools", "tool_name", "external_id"),
    *("sender_id", "sender_name", "sender_is_nobody", "origin", "quoted", "created_at", "usage"),
)
MESSAGE_COLUMNS = ", ".join(f"messages.{name}" for name in MESSAGE_FIELDS)


def clean(text: str) -> str:
    """`text` as valid Unicode: surrogate pairs are joined, a lone surrogate becomes U+FFFD; all else is unchanged."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def maybe_clean(text: str | None) -> str | None:
    return None if text is None else clean(text)


def timestamp(at: datetime) -> float:
    """Seconds since 1970 UTC. Raises ValueError for a moment without a time zone."""
    if at.tzinfo is None:
        raise ValueError("a moment without a time zone cannot be stored")
    return at.timestamp()


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def maybe_moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment(seconds)


def bounded(number: int) -> int:
    """A number that a person typed, as an id of 64 bits; beyond that 0, the id of nothing."""
    return number if abs(number) < 1 << 63 else 0


def dump(value: object) -> str:
    """Compact JSON in the order of keys given: the model's cached prefix is compared by bytes."""
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_jsonable))


def _jsonable(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} cannot be stored in state.db")


def dump_blocks(blocks: Sequence[Json], text: str) -> str | None:
    """Content blocks as JSON; None where they are `text` and nothing else."""
    return None if list(blocks) == [{"type": "text", "text": text}] else dump(blocks)


def load_blocks(encoded: str | None) -> tuple[Json, ...] | None:
    return None if encoded is None else tuple(from_json(encoded))


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def dump_inbound(inbound: Inbound) -> str:
    """An event as JSON, without its epoch; its scope as the key alone, by which SQL finds it."""
    values = {**asdict(inbound), "scope": inbound.scope.key}
    return dump({name: value for name, value in values.items() if name != "epoch"})


def load_inbound(encoded: str) -> Inbound:
    """The reverse of `dump_inbound`, also for what a version without origins stored."""
    value = json.loads(encoded)
    value["scope"] = {"key": value["scope"]}
    value.setdefault("origin", "forwarded" if value.get("is_forward") else "typed")
    inbound: Inbound = _adapter(Inbound).validate_python(value)
    return inbound


def dump_answer(answer: Answer | None) -> str | None:
    """What is sent of an answer, as JSON, files in base64."""
    if answer is None:
        return None
    value = asdict(answer)
    return dump({key: value[key] for key in ("text", "buttons", "files", "is_private")})


def load_answer(encoded: str | None) -> Answer | None:
    if encoded is None:
        return None
    value = json.loads(encoded)
    for file in value["files"]:
        file["content"] = base64.b64decode(file["content"])
    answer: Answer = _adapter(Answer).validate_python(value)
    return answer


def load_quoted(encoded: str | None) -> Quoted | None:
    return None if encoded is None else _adapter(Quoted).validate_json(encoded)


LANE = """
addresses.platform || ':' || addresses.chat_id
    || CASE addresses.thread_id WHEN '' THEN '' ELSE '/' || addresses.thread_id END
"""
"""The key of an address, in SQL."""


def values_of(record: Any) -> dict[str, object]:
    """The fields of a dataclass by name, to be bound."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def place(address: Address) -> dict[str, str]:
    return {"platform": address.platform, "chat_id": address.chat_id, "thread_id": address.thread_id or ""}


ADDRESS = "SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id"
"""The id of the address of a `place`."""


def find_address(connection: Connection, address: Address) -> int | None:
    row = connection.execute(ADDRESS, place(address)).fetchone()
    return None if row is None else int(row["id"])


def ensure_address(connection: Connection, address: Address) -> int:
    values = place(address)
    return find_address(connection, address) or insert(connection, insertion("addresses", *values), values)


def ensure_scope(connection: Connection, scope: Scope) -> int:
    key = {"key": scope}
    row = connection.execute("SELECT id FROM scopes WHERE key = :key", key).fetchone()
    return int(row["id"]) if row else insert(connection, insertion("scopes", "key"), key)


def insert(connection: Connection, statement: str, values: Mapping[str, object]) -> int:
    """The id of a new row."""
    # A statement with RETURNING has to be read to its end before the next one.
    (row,) = connection.execute(f"{statement} RETURNING id", values).fetchall()
    return int(row["id"])


def insertion(table: str, *names: str) -> str:
    """The statement that stores a row under parameters that are called as the columns."""
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def account_of(key: str | None) -> Account | None:
    if not key:
        return None
    platform, _, user_id = key.partition(":")
    return Account(platform=platform, user_id=user_id)


def meta(connection: Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM state_meta WHERE key = :key", {"key": key}).fetchone()
    return None if row is None else str(row["value"])


def set_meta(connection: Connection, key: str, value: str) -> None:
    connection.execute("REPLACE INTO state_meta (key, value) VALUES (:key, :value)", {"key": key, "value": value})


def columns(row: Row | dict[str, Any], *names: str) -> dict[str, Any]:
    """The columns that are fields of the same name and value."""
    return {name: row[name] for name in names}


_READERS: Mapping[str, Callable[[Any], object]] = {
    "bool": bool, "datetime": moment, "datetime | None": maybe_moment, "Account | None": account_of,
    "Address | None": lambda key: key and Address.parse(key), "tuple[str, ...]": lambda ids: tuple(json.loads(ids)),
    "Inbound | None": lambda encoded: encoded and load_inbound(encoded),
}  # fmt: skip


def fields_in(row: Row, record: type[Any]) -> dict[str, Any]:
    """The fields of a dataclass that are columns of the same name, each read as its type says."""
    types = record.__dataclass_fields__
    found = {name: value for name, value in zip(row.keys(), row, strict=True) if name in types}
    return {name: read(one) if (read := _READERS.get(types[name].type)) else one for name, one in found.items()}


def account_in(row: Row) -> Account:
    return Account(platform=row["platform"], user_id=row["user_id"])


def address_of(row: Row) -> Address:
    return Address(platform=row["platform"], chat_id=row["chat_id"], thread_id=row["thread_id"] or None)


def session_of(row: Row | Sequence[Any]) -> Session:
    """`SHOWN_SESSION`, or a row that begins with the columns of `SESSIONS`."""
    # By place: a list has many rows, and by name a Row looks through all of its columns.
    session_id, platform, chat_id, thread_id, link_base, scope_key, started_at, last_at, ended_at = row[:9]
    end_reason, title, external_id, parent_id, root_id, messages, is_delegated = row[9:SHOWN_COLUMNS]
    rest = row[SHOWN_COLUMNS : SHOWN_COLUMNS + 6] or ("", "", None, None, None, None)
    system_prompt, model, opens_at, sight, head_from, head_until = rest
    return Session(
        id=session_id,
        address=Address(platform=platform, chat_id=chat_id, thread_id=thread_id or None),
        scope=Scope(key=scope_key),
        started_at=moment(started_at),
        link_base=link_base,
        system_prompt=system_prompt,
        sight=frozenset(Scope(key=key) for key in json.loads(sight)) if sight else frozenset(),
        model=model,
        title=title,
        parent_id=parent_id,
        root_id=root_id,
        opens_at=opens_at,
        head_from=head_from,
        head_until=head_until,
        external_id=external_id,
        last_at=moment(last_at),
        ended_at=maybe_moment(ended_at),
        end_reason=end_reason,
        messages=messages,
        is_delegated=bool(is_delegated),
    )


def message_of(row: Iterable[Any]) -> Message:
    """A row with `MESSAGE_COLUMNS`, then `sent` where the statement selects it: only the model's own history does."""
    # By place, as in `session_of`: a history has hundreds of rows.
    (id_, session_id, role, kind, text, blocks, tools, tool_name, external_id, *row) = row
    (sender_id, sender_name, is_nobody, origin, quoted, created_at, usage, *sent) = row
    return Message(
        id=id_,
        session_id=session_id,
        role=role,
        kind=kind,
        text=text,
        tools=tools,
        tool_name=tool_name,
        external_id=external_id,
        origin=origin,
        quoted=load_quoted(quoted),
        blocks=load_blocks(blocks),
        sent=load_blocks(sent[0]) if sent else None,
        sender=None if sender_id is None else Sender(id=sender_id, name=sender_name, is_nobody=bool(is_nobody)),
        created_at=moment(created_at),
        usage=None if usage is None else Usage(**from_json(usage)),
    )


def turns(said: Sequence[Message]) -> Sequence[Sequence[Message]]:
    """The rows of a session by turn: each begins with what people said since the last answer."""
    found: list[list[Message]] = []
    role = ""
    for row in said:
        if row.kind == "summary":
            continue
        if row.role == "user" != role:
            found.append([])
        if found:
            found[-1].append(row)
        role = row.role
    return found


def visible(column: str = "sessions.scope_id") -> str:
    """The SQL condition that `column`, a scope id, is one of the scopes bound as ``:scopes``."""
    return f"{column} IN (SELECT id FROM scopes WHERE {in_list('key', 'scopes')})"


@lru_cache(maxsize=256)
def scope_parameter(scopes: frozenset[Scope]) -> str:
    """The value of ``:scopes``. A key with a NUL is left out: SQLite's JSON reader ends a string there, which would
    make it another scope's key."""
    return list_value(sorted({scope.key for scope in scopes if "\0" not in scope.key}))
