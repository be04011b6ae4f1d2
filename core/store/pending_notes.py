"""Changes of curated notes that read like orders, until a person has looked at them."""

from __future__ import annotations

import json
import sqlite3

from core.memory.operation import Operation
from core.memory.pending_note import PendingNote
from core.store import codec, rows
from core.store.database import Database
from core.store.sight import scope_parameter, visible
from core.types import Scope

LIMIT = 50
"""So many wait in a scope at most: whoever floods it is not kept."""


class PendingNotes:
    """Fills the role `core.memory.quarantine.Quarantine` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, note: PendingNote) -> bool:
        """Keeps it, once for the same operations in a scope. False when too many wait there already."""

        def work(connection: sqlite3.Connection) -> bool:
            values = {
                "scope": rows.keep_scope(connection, note.scope),
                "target": codec.clean(note.target),
                "operations": json.dumps(
                    [[one.action, codec.clean(one.content), codec.clean(one.old_text)] for one in note.operations],
                    ensure_ascii=False,
                ),
                "reason": codec.clean(note.reason),
                "account": rows.account_key(note.account),
                "message": note.message_id,
                "at": rows.timestamp(note.at),
            }
            there = connection.execute(
                "SELECT target, operations FROM pending_notes WHERE scope_id = :scope", values
            ).fetchall()
            if any((row["target"], row["operations"]) == (values["target"], values["operations"]) for row in there):
                return True
            if len(there) >= LIMIT:
                return False
            connection.execute(
                """
                INSERT INTO pending_notes (scope_id, target, operations, reason, account, message_id, at)
                VALUES (:scope, :target, :operations, :reason, :account, :message, :at)
                """,
                values,
            )
            return True

        return await self._database.write(work)

    async def waiting(self, scopes: frozenset[Scope]) -> list[PendingNote]:
        """What waits in these scopes, oldest first."""

        def work(connection: sqlite3.Connection) -> list[PendingNote]:
            found = connection.execute(
                f"""
                SELECT pending_notes.*, scopes.key AS scope_key FROM pending_notes
                JOIN scopes ON scopes.id = pending_notes.scope_id
                WHERE {visible("pending_notes.scope_id")} ORDER BY pending_notes.id
                """,
                {"scopes": scope_parameter(scopes)},
            )
            return [_note(row) for row in found]

        return await self._database.read(work)

    async def drop(self, note_id: int) -> None:
        """It was decided."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM pending_notes WHERE id = :id", {"id": rows.bounded(note_id)})

        await self._database.write(work)


def _note(row: sqlite3.Row) -> PendingNote:
    return PendingNote(
        id=row["id"],
        scope=Scope(key=row["scope_key"]),
        target=row["target"],
        operations=tuple(
            Operation(action=action, content=content, old_text=old_text)
            for action, content, old_text in json.loads(row["operations"])
        ),
        reason=row["reason"],
        at=rows.moment(row["at"]),
        account=rows.account_of(row["account"]),
        message_id=row["message_id"],
    )
