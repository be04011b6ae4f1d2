"""Sessions, turns and changes of notes by id, for the relay that carries them to memories. Never writes.

The one reader without a scope: what it finds goes to a memory under the scope that it has, and is shown to nobody.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from core.records import NoteChange
from core.store import rows
from core.store.database import Database
from core.store.notes import change_of
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, session_of
from core.types import Message, Session


class Turns:
    """Fills the role `core.memory.minutes.Minutes` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def session(self, session_id: int) -> Session | None:
        """A session by id, whosever it is."""
        return await self._database.read(lambda connection: _session(connection, session_id))

    async def rows(self, session_id: int) -> Sequence[Message]:
        """What the model may see of the session itself, oldest first, without what was erased."""

        def work(connection: sqlite3.Connection) -> list[Message]:
            found = connection.execute(
                f"""
                SELECT {MESSAGE_COLUMNS} FROM messages
                WHERE session_id = :id AND kind IN ('chat', 'quote') ORDER BY id
                """,
                {"id": session_id},
            )
            return [message_of(row) for row in found]

        return await self._database.read(work)

    async def lately(self, since: datetime) -> Sequence[Session]:
        """The sessions that something was said in since, but imported ones; open or ended."""

        def work(connection: sqlite3.Connection) -> list[Session]:
            found = connection.execute(
                f"""
                {SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
                AND sessions.end_reason IS NOT 'import' ORDER BY sessions.id
                """,
                {"since": rows.timestamp(since)},
            )
            return [session_of(row) for row in found]

        return await self._database.read(work)

    async def changes(self, since: datetime) -> Sequence[int]:
        """The ids of the changes of notes since, oldest first."""

        def work(connection: sqlite3.Connection) -> list[int]:
            found = connection.execute(
                "SELECT id FROM notes WHERE at >= :since ORDER BY id", {"since": rows.timestamp(since)}
            )
            return [row["id"] for row in found]

        return await self._database.read(work)

    async def change(self, change_id: int) -> tuple[NoteChange, Session | None] | None:
        """A change of notes, with the session it was made in where that is known; None when it is gone."""

        def work(connection: sqlite3.Connection) -> tuple[NoteChange, Session | None] | None:
            row = connection.execute(
                """
                SELECT notes.*, scopes.key AS scope_key, messages.session_id FROM notes
                JOIN scopes ON scopes.id = notes.scope_id LEFT JOIN messages ON messages.id = notes.message_id
                WHERE notes.id = :id
                """,
                {"id": change_id},
            ).fetchone()
            if row is None:
                return None
            session = None if row["session_id"] is None else _session(connection, row["session_id"])
            return change_of(row), session

        return await self._database.read(work)


def _session(connection: sqlite3.Connection, session_id: int) -> Session | None:
    row = connection.execute(f"{SESSIONS} WHERE sessions.id = :id", {"id": session_id}).fetchone()
    return None if row is None else session_of(row)
