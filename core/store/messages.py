"""Messages as rows: inserted once, reworded, erased, and the forms in which they were sent. The text indexes follow by
triggers. Functions that take a connection run inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.store import rows
from core.store.engine import Connection, Row
from core.store.rows import MESSAGE_COLUMNS, message_of, place, scope_parameter, timestamp, visible
from core.store.sqlite.database import Database
from core.store.usage import disturb
from core.types import Address, Json, Message, Scope

INSERT = """
INSERT INTO messages (session_id, address_id, role, kind, text, blocks, sent, tools, tool_name, external_id,
    sender_id, sender_name, sender_is_nobody, origin, created_at, usage)
VALUES (:session_id, :address_id, :role, :kind, :text, :blocks, :sent, :tools, :tool_name, :external_id,
    :sender_id, :sender_name, :sender_is_nobody, :origin, :created_at, :usage)
"""

INSERT_IF_NEW = f"{INSERT} ON CONFLICT (address_id, external_id) WHERE external_id IS NOT NULL DO NOTHING"

KNOWN = f"""
SELECT {MESSAGE_COLUMNS}, messages.sent FROM messages WHERE address_id = :address_id AND external_id = :external_id
"""
_THERE = """
FROM addresses JOIN messages ON messages.address_id = addresses.id JOIN sessions ON sessions.id = messages.session_id
WHERE addresses.platform = :platform AND addresses.chat_id = :chat_id AND addresses.thread_id = :thread_id
    AND messages.external_id = :external_id
"""
BY_EXTERNAL_ID = f"SELECT messages.id, messages.session_id, messages.kind, messages.text, messages.blocks {_THERE}"
VISIBLE_BY_EXTERNAL_ID = f"SELECT {MESSAGE_COLUMNS} {_THERE} AND messages.kind = 'chat' AND {visible()}"
ERASE = """
UPDATE messages SET kind = 'command', text = '', blocks = NULL, sent = NULL, tools = NULL, tool_name = NULL,
    sender_id = NULL, sender_name = NULL
WHERE id = :id
"""
DELETE_TITLE_MADE_OF_IT = """
UPDATE sessions SET title = NULL
FROM sessions AS first
WHERE first.id = :session_id AND COALESCE(first.root_id, first.id) = first.id AND first.external_id IS NULL
    AND COALESCE(sessions.root_id, sessions.id) = first.id AND sessions.title = first.title
    AND NOT EXISTS (
        SELECT 1 FROM messages WHERE session_id = :session_id AND id < :id AND role = 'user' AND kind = 'chat'
    )
    AND NOT EXISTS (
        SELECT 1 FROM messages
        WHERE session_id = :session_id AND kind = 'command' AND text = '/title ' || first.title
    )
"""
"""Deletes the title made of the first words of a conversation from all its parts, not one given by hand or imported."""


def insert(connection: Connection, message: Message, address_id: int) -> tuple[Message, bool]:
    """Inserts a message, or finds the one known by its external id; returns it as it is read back, and whether it is
    new. `blocks` and `sent` are stored only where they differ from the plain message."""
    values = _values(message, address_id)
    # RETURNING would make a table for its one row, a fifth of the work.
    inserted = connection.execute(INSERT_IF_NEW, values)
    if inserted.rowcount:
        return message_of({**values, "id": inserted.lastrowid}), True
    return message_of(connection.execute(KNOWN, values).fetchone()), False


def set_sent(connection: Connection, message_id: int, blocks: Sequence[Json]) -> None:
    """Stores the block list as it is about to be sent, unless the message was erased meanwhile."""
    row = connection.execute(
        "SELECT text, blocks FROM messages WHERE id = :id AND NOT (kind = 'command' AND text = '')", {"id": message_id}
    ).fetchone()
    if row is not None:
        values = {"id": message_id, "sent": rows.dump_blocks(blocks, _usual(row["text"], row["blocks"]))}
        connection.execute("UPDATE messages SET sent = :sent WHERE id = :id", values)


def amend(connection: Connection, address: Address, external_id: str, text: str | None) -> int | None:
    """Rewords the message with this id of its platform, or erases it (None); returns its id here, None for none."""
    row = connection.execute(BY_EXTERNAL_ID, {**place(address), "external_id": rows.clean(external_id)}).fetchone()
    if row is None:
        return None
    is_talk = row["kind"] in ("chat", "quote")
    if text is None:
        erase(connection, row)
    elif is_talk and rows.clean(text) != row["text"]:
        _reword(connection, row, rows.clean(text))
    else:
        return int(row["id"])
    if is_talk:
        connection.execute(DELETE_TITLE_MADE_OF_IT, {"session_id": row["session_id"], "id": row["id"]})
        disturb(connection, row["session_id"], "edit")
    return int(row["id"])


def _values(message: Message, address_id: int) -> dict[str, object]:
    text = rows.clean(message.text)
    blocks = None if message.blocks is None else rows.dump_blocks(message.blocks, rows.text_block(text))
    sender = message.sender
    return {
        **rows.values_of(message),
        "address_id": address_id,
        "blocks": blocks,
        "sent": None if message.sent is None else rows.dump_blocks(message.sent, _usual(text, blocks)),
        "sender_id": sender and sender.id,
        "sender_name": sender and sender.name,
        "sender_is_nobody": sender is not None and sender.is_nobody,
        "created_at": timestamp(message.created_at),
        "usage": rows.dump_usage(message.usage),
    }


def _usual(text: str, blocks: str | None) -> Sequence[Json]:
    """The blocks of a message to which nothing is added."""
    exact = rows.load_blocks(blocks)
    return rows.text_block(text) if exact is None else exact


def _reword(connection: Connection, row: Row, text: str) -> None:
    blocks = rows.load_blocks(row["blocks"])
    encoded = None if blocks is None else rows.dump_blocks(_reworded(blocks, text), rows.text_block(text))
    values = {"id": row["id"], "text": text, "blocks": encoded}
    connection.execute("UPDATE messages SET text = :text, blocks = :blocks, sent = NULL WHERE id = :id", values)


def _reworded(blocks: Sequence[Json], text: str) -> list[Json]:
    """The same blocks with `text` in place of what they said; pictures and files stay."""
    is_text = [block.get("type") == "text" for block in blocks]
    first = is_text.index(True) if True in is_text else 0
    others = [block for block, is_old in zip(blocks, is_text, strict=True) if not is_old]
    return [*others[:first], *rows.text_block(text), *others[first:]]


def erase(connection: Connection, row: Row) -> None:
    """Leaves only the ids of a row (id, session_id, kind, text), of kind command, which nobody is shown."""
    if row["kind"] == "command" and not row["text"]:
        return
    connection.execute(ERASE, {"id": row["id"]})
    if row["kind"] == "chat":
        connection.execute("UPDATE sessions SET messages = messages - 1 WHERE id = :id", {"id": row["session_id"]})


async def find_original(
    database: Database, address: Address, external_id: str, scopes: frozenset[Scope]
) -> Message | None:
    """The chat message with this id of its platform; None when there is none in these scopes."""
    values = {**place(address), "external_id": rows.clean(external_id), "scopes": scope_parameter(scopes)}
    row = await database.fetch_one(VISIBLE_BY_EXTERNAL_ID, values)
    return None if row is None else message_of(row)
