"""Which messages were read for facts: a mark for each session, moved in the transaction that keeps what was read.

So a crash between an answer and its facts loses nothing, and reading again after one learns nothing twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from core.records import Fact
from core.store import rows
from core.store.facts import Facts
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, session_of
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import write_facts
from core.types import Message, Scope, Session

_OWN = """
messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> '' AND NOT messages.sender_is_nobody
    AND NOT messages.is_forward AND messages.created_at >= :since
"""
"""What a person has said in earnest."""
_NEW = "messages.id > COALESCE((SELECT message_id FROM fact_marks WHERE session_id = messages.session_id), 0)"
_EDITED = "messages.id IN (SELECT message_id FROM fact_rereads)"


class FactBacklog:
    """Fills the role `core.facts.backlog_role.Backlog` over state.db; `facts` learns."""

    def __init__(self, database: Database, facts: Facts) -> None:
        self._database = database
        self._facts = facts

    async def behind(self, since: datetime) -> Sequence[Session]:
        """The sessions with messages since a moment that were not read, but imported ones; open or ended."""

        def work(connection: sqlite3.Connection) -> list[Session]:
            found = connection.execute(
                f"""
                {SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
                    AND sessions.end_reason IS NOT 'import' AND EXISTS (
                        SELECT 1 FROM messages
                        WHERE messages.session_id = sessions.id AND {_OWN} AND ({_NEW} OR {_EDITED})
                    )
                ORDER BY sessions.id
                """,
                {"since": rows.timestamp(since)},
            )
            return [session_of(row) for row in found]

        return await self._database.read(work)

    async def unread(self, session_id: int, since: datetime, limit: int) -> Sequence[Message]:
        """Those of a session, oldest first."""

        def work(connection: sqlite3.Connection) -> list[Message]:
            found = connection.execute(
                f"""
                SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE messages.session_id = :session AND {_OWN} AND {_NEW}
                UNION
                SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE messages.session_id = :session AND {_OWN} AND {_EDITED}
                ORDER BY id LIMIT :limit
                """,
                {"session": session_id, "since": rows.timestamp(since), "limit": limit},
            )
            return [message_of(row) for row in found]

        return await self._database.read(work)

    async def keep(self, read: Sequence[Message], facts: Sequence[tuple[Fact, str]]) -> Sequence[Fact]:
        """Learns and marks in one transaction. Of what was edited meanwhile nothing is learned; it is read again. Of
        what another process has read meanwhile nothing is learned either."""

        def work(connection: sqlite3.Connection) -> list[Fact]:
            unread = _unread(connection, [message.id for message in read])
            for message in read:
                connection.execute(
                    """
                    INSERT INTO fact_marks (session_id, message_id) VALUES (:session, :message)
                    ON CONFLICT (session_id) DO UPDATE SET message_id = MAX(message_id, excluded.message_id)
                    """,
                    {"session": message.session_id, "message": message.id},
                )
                connection.execute(
                    """
                    DELETE FROM fact_rereads WHERE message_id = :message
                        AND :text = (SELECT text FROM messages WHERE id = :message)
                    """,
                    {"message": message.id, "text": message.text},
                )
            return [self._facts.take(connection, fact, heard) for fact, heard in facts if fact.message_id in unread]

        return await write_facts(self._database, work)

    async def source(self, message_id: int) -> tuple[Scope, str] | None:
        """Whose a message is and on which platform it was said; None when it is gone."""

        def work(connection: sqlite3.Connection) -> tuple[Scope, str] | None:
            row = connection.execute(
                f"{SESSIONS} WHERE sessions.id = (SELECT session_id FROM messages WHERE id = :id)", {"id": message_id}
            ).fetchone()
            if row is None:
                return None
            session = session_of(row)
            return session.scope, session.address.platform

        return await self._database.read(work)


def _unread(connection: sqlite3.Connection, message_ids: Sequence[int]) -> set[int]:
    """Those of these messages that have not been read yet."""
    found = connection.execute(
        f"SELECT id FROM messages WHERE id IN (SELECT value FROM json_each(:ids)) AND ({_NEW} OR {_EDITED})",
        {"ids": json.dumps(list(message_ids))},
    )
    return {row["id"] for row in found}
