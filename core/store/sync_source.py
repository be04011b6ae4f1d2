"""Sessions, turns and changes of notes by id, for the relay that carries them to memories. Never writes.

The one reader without a scope: what it finds goes to a memory under the scope that it has, and is shown to nobody.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from core.store import rows
from core.store import rows as codec
from core.store.notes import VERSIONS, NoteChange, change_of
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, session_of
from core.store.sqlite.database import Database
from core.store.sync_queue import Backfill
from core.types import Address, Message, Scope, Session


class SyncSource:
    """Fills the role `core.memory.sync_source.SyncSource` over state.db."""

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

    async def past(self, past: Backfill, limit: int) -> Sequence[Session]:
        """The first sessions of what is to be told of the past, also imported ones."""
        values = {
            "since": rows.timestamp(past.since),
            "next_id": past.next_id,
            "last_id": past.last_id,
            "limit": limit,
        }

        def work(connection: sqlite3.Connection) -> list[Session]:
            found = connection.execute(
                f"""
                {SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.messages > 0
                AND sessions.last_at >= :since AND sessions.id BETWEEN :next_id AND :last_id
                ORDER BY sessions.id LIMIT :limit
                """,
                values,
            )
            return [session_of(row) for row in found]

        return await self._database.read(work)

    async def changes(self, since: datetime, after_id: int) -> Sequence[int]:
        """The ids of the changes of notes since, and after that one, oldest first."""

        def work(connection: sqlite3.Connection) -> list[int]:
            found = connection.execute(
                "SELECT id FROM notes WHERE at >= :since AND id > :after ORDER BY id",
                {"since": rows.timestamp(since), "after": after_id},
            )
            return [row["id"] for row in found]

        return await self._database.read(work)

    async def change(self, change_id: int) -> tuple[NoteChange, Session | None] | None:
        """A change of notes, with the session it was made in where that is known; None when it is gone."""

        def work(connection: sqlite3.Connection) -> tuple[NoteChange, Session | None] | None:
            row = connection.execute(
                f"""
                SELECT versions.*, messages.session_id FROM ({VERSIONS} WHERE notes.id = :id) AS versions
                LEFT JOIN messages ON messages.id = versions.message_id
                """,
                {"id": change_id},
            ).fetchone()
            if row is None:
                return None
            session = None if row["session_id"] is None else _session(connection, row["session_id"])
            return change_of(row), session

        return await self._database.read(work)

    async def owners(self, change_ids: Sequence[int]) -> Sequence[tuple[Scope, Sequence[int]]]:
        """Whose these changes of notes are."""

        def work(connection: sqlite3.Connection) -> list[tuple[Scope, Sequence[int]]]:
            found = connection.execute(
                """
                SELECT scopes.key, json_group_array(notes.id) AS ids
                FROM json_each(:ids) JOIN notes ON notes.id = json_each.value JOIN scopes ON scopes.id = notes.scope_id
                GROUP BY scopes.key ORDER BY scopes.key
                """,
                {"ids": codec.dump(list(change_ids))},
            )
            return [(Scope(key=row["key"]), sorted(json.loads(row["ids"]))) for row in found]

        return await self._database.read(work)

    async def places(self, message_ids: Sequence[int]) -> Sequence[tuple[Session, Sequence[int]]]:
        """The sessions that these messages are in, erased ones too."""

        def work(connection: sqlite3.Connection) -> list[tuple[Session, Sequence[int]]]:
            found = connection.execute(
                """
                SELECT session_id, json_group_array(messages.id) AS ids
                FROM json_each(:ids) JOIN messages ON messages.id = json_each.value
                GROUP BY session_id ORDER BY session_id
                """,
                {"ids": codec.dump(list(message_ids))},
            ).fetchall()
            places = [(_session(connection, row["session_id"]), sorted(json.loads(row["ids"]))) for row in found]
            return [(session, ids) for session, ids in places if session is not None]

        return await self._database.read(work)

    async def message(self, address: Address, external_id: str) -> tuple[Session, int] | None:
        """The message that a platform knows by this id, with its session."""

        def work(connection: sqlite3.Connection) -> tuple[Session, int] | None:
            row = connection.execute(
                """
                SELECT id, session_id FROM messages WHERE address_id = :address AND external_id = :external_id
                """,
                {"address": rows.find_address(connection, address), "external_id": codec.clean(external_id)},
            ).fetchone()
            session = None if row is None else _session(connection, row["session_id"])
            return None if session is None else (session, row["id"])

        return await self._database.read(work)


def _session(connection: sqlite3.Connection, session_id: int) -> Session | None:
    row = connection.execute(f"{SESSIONS} WHERE sessions.id = :id", {"id": session_id}).fetchone()
    return None if row is None else session_of(row)
