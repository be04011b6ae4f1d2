"""What all nouns of the store share: moments as REAL, interned addresses and scopes, state_meta,
and how sessions and messages are read.

Functions that take a connection run inside the caller's transaction and never begin or end one.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from typing import Any

from core.store import codec
from core.types import Account, Address, Message, Scope, Sender, Session

SESSIONS = """
SELECT sessions.id, addresses.platform, addresses.chat_id, addresses.thread_id, scopes.key AS scope_key,
    sessions.started_at, sessions.last_at, sessions.ended_at, sessions.end_reason, sessions.title, sessions.external_id,
    sessions.parent_id, sessions.root_id, sessions.opens_at, sessions.messages, sessions.model, sessions.system_prompt,
    sessions.sight, addresses.link_base
FROM sessions
JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
"""

MESSAGE_COLUMNS = """
messages.id, messages.session_id, messages.role, messages.kind, messages.text, messages.blocks, messages.tools,
messages.tool_name, messages.external_id, messages.sender_id, messages.sender_name, messages.sender_is_nobody,
messages.is_forward, messages.created_at, messages.usage
"""


def timestamp(at: datetime) -> float:
    """Seconds since 1970 UTC. A naive moment has no place in the house: ValueError."""
    if at.tzinfo is None:
        raise ValueError("a moment without a time zone cannot be stored")
    return at.timestamp()


def maybe_timestamp(at: datetime | None) -> float | None:
    """`timestamp` for what may be absent."""
    return None if at is None else timestamp(at)


def moment(seconds: float) -> datetime:
    """The reverse of `timestamp`, exact to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC)


def maybe_moment(seconds: float | None) -> datetime | None:
    """`moment` for what may be absent."""
    return None if seconds is None else moment(seconds)


def bounded(number: int) -> int:
    """A number that a person typed, as SQLite can take it: beyond 64 bits it is the id of nothing, 0."""
    return number if abs(number) < 1 << 63 else 0


def place(address: Address) -> dict[str, str]:
    """The parameters by which an address is found in its table."""
    return {
        "platform": codec.clean(address.platform),
        "chat_id": codec.clean(address.chat_id),
        "thread_id": codec.clean(address.thread_id or ""),
    }


def find_address(connection: sqlite3.Connection, address: Address) -> int | None:
    """The row id of an address; None when nothing was ever said there."""
    row = connection.execute(
        "SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id",
        place(address),
    ).fetchone()
    return None if row is None else int(row["id"])


def keep_address(connection: sqlite3.Connection, address: Address) -> int:
    """The row id of an address, made when it is new."""
    known = find_address(connection, address)
    if known is not None:
        return known
    row = connection.execute(
        """
        INSERT INTO addresses (platform, chat_id, thread_id) VALUES (:platform, :chat_id, :thread_id) RETURNING id
        """,
        place(address),
    ).fetchall()[0]
    return int(row["id"])


def keep_link_base(connection: sqlite3.Connection, address_id: int, link_base: str | None) -> None:
    """Where the messages of an address can be opened; what is known stays where nothing new is said."""
    if link_base:
        connection.execute(
            "UPDATE addresses SET link_base = :base WHERE id = :id AND link_base IS NOT :base",
            {"id": address_id, "base": codec.clean(link_base)},
        )


def keep_scope(connection: sqlite3.Connection, scope: Scope) -> int:
    """The row id of a scope, made when it is new."""
    key = {"key": codec.clean(scope.key)}
    row = connection.execute("SELECT id FROM scopes WHERE key = :key", key).fetchone()
    if row is None:
        row = connection.execute("INSERT INTO scopes (key) VALUES (:key) RETURNING id", key).fetchall()[0]
    return int(row["id"])


def account_key(account: Account | None) -> str | None:
    """An account as one text."""
    return None if account is None else codec.clean(account.key)


def account_of(key: str | None) -> Account | None:
    """The reverse of `account_key`."""
    if key is None:
        return None
    platform, _, user_id = key.partition(":")
    return Account(platform=platform, user_id=user_id)


def meta(connection: sqlite3.Connection, key: str) -> str | None:
    """A value of state_meta."""
    row = connection.execute("SELECT value FROM state_meta WHERE key = :key", {"key": key}).fetchone()
    return None if row is None else str(row["value"])


def keep_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Sets a value of state_meta."""
    connection.execute(
        """
        INSERT INTO state_meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value
        """,
        {"key": key, "value": value},
    )


def address_of(row: sqlite3.Row) -> Address:
    """The address in a row joined with `addresses`."""
    return Address(platform=row["platform"], chat_id=row["chat_id"], thread_id=row["thread_id"] or None)


def session_of(row: sqlite3.Row) -> Session:
    """A row that begins with the columns of `SESSIONS`; read by place, since to look for a name compares them all."""
    session_id, platform, chat_id, thread_id, scope_key, started_at, last_at, ended_at, end_reason = row[:9]
    title, external_id, parent_id, root_id, opens_at, messages, model, system_prompt, sight = row[9:18]
    return Session(
        id=session_id,
        address=Address(platform=platform, chat_id=chat_id, thread_id=thread_id or None),
        scope=Scope(key=scope_key),
        started_at=moment(started_at),
        system_prompt=system_prompt,
        sight=frozenset(Scope(key=key) for key in json.loads(sight)),
        model=model,
        title=title,
        parent_id=parent_id,
        root_id=root_id,
        opens_at=opens_at,
        external_id=external_id,
        last_at=moment(last_at),
        ended_at=maybe_moment(ended_at),
        end_reason=end_reason,
        messages=messages,
        link_base=row[18],
    )


def message_of(row: sqlite3.Row | dict[str, Any]) -> Message:
    """A row with `MESSAGE_COLUMNS`, and `sent` where the statement selects it: only the model's own history does."""
    sender = None
    if row["sender_id"] is not None:
        sender = Sender(id=row["sender_id"], name=row["sender_name"], is_nobody=bool(row["sender_is_nobody"]))
    return Message(
        id=row["id"],
        session_id=row["session_id"],
        role=row["role"],
        kind=row["kind"],
        text=row["text"],
        blocks=codec.load_blocks(row["blocks"]),
        sent=codec.load_blocks(row["sent"]) if "sent" in row.keys() else None,  # noqa: SIM118 (a Row iterates values)
        tools=row["tools"],
        tool_name=row["tool_name"],
        external_id=row["external_id"],
        sender=sender,
        is_forward=bool(row["is_forward"]),
        created_at=moment(row["created_at"]),
        usage=codec.load_usage(row["usage"]),
    )
