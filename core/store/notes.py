"""The history of curated notes: one row a change, never changed itself. The notes are files and kept elsewhere."""

from __future__ import annotations

import sqlite3

from core.records import NoteChange
from core.store import codec, rows
from core.store.database import Database
from core.store.sight import scope_parameter, visible
from core.types import Scope


class Notes:
    """Fills the role `core.ports.Notes` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def log(self, change: NoteChange) -> None:
        """Keeps one version."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                """
                INSERT INTO notes (scope_id, target, action, before, after, account, message_id, at)
                VALUES (:scope, :target, :action, :before, :after, :account, :message, :at)
                """,
                {
                    "scope": rows.keep_scope(connection, change.scope),
                    "target": codec.clean(change.target),
                    "action": codec.clean(change.action),
                    "before": codec.maybe_clean(change.before),
                    "after": codec.maybe_clean(change.after),
                    "account": rows.account_key(change.account),
                    "message": change.message_id,
                    "at": rows.timestamp(change.at),
                },
            )

        await self._database.write(work)

    async def changes(self, scopes: frozenset[Scope], limit: int = 20) -> list[NoteChange]:
        """The latest versions, newest first."""
        values = {"scopes": scope_parameter(scopes), "limit": rows.bounded(max(0, limit))}

        def work(connection: sqlite3.Connection) -> list[NoteChange]:
            found = connection.execute(
                f"""
                SELECT notes.*, scopes.key AS scope_key FROM notes JOIN scopes ON scopes.id = notes.scope_id
                WHERE {visible("notes.scope_id")} ORDER BY notes.id DESC LIMIT :limit
                """,
                values,
            )
            return [_change(row) for row in found]

        return await self._database.read(work)


def _change(row: sqlite3.Row) -> NoteChange:
    return NoteChange(
        id=row["id"],
        scope=Scope(key=row["scope_key"]),
        target=row["target"],
        action=row["action"],
        before=row["before"],
        after=row["after"],
        at=rows.moment(row["at"]),
        account=rows.account_of(row["account"]),
        message_id=row["message_id"],
    )
