"""Changes of curated notes that read like orders, until a person has looked at them."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from core.notes.operation import Operation
from core.review.pending import PendingNote
from core.store import codec, rows
from core.store.scope_filter import scope_parameter, visible
from core.store.sqlite.database import Database
from core.types import Scope

LIMIT = 50
"""So many wait in a scope at most: whoever floods it is not kept."""


class PendingNotes:
    """Fills the role `core.review.pending_role.Quarantine` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, note: PendingNote) -> datetime | None:
        """Keeps it, once for the same operations in a scope. Since when something has waited in its scope without a
        break; None when too many wait there already: what others ask for, and what stands in files, each for itself."""

        now = rows.timestamp(note.at)

        def work(connection: sqlite3.Connection) -> datetime | None:
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
                "address": None if note.address is None else rows.keep_address(connection, note.address),
                "external": codec.maybe_clean(note.external_id),
                "written": note.is_written,
                "at": now,
            }
            there = connection.execute(
                "SELECT target, operations, is_written, began_at FROM pending_notes WHERE scope_id = :scope", values
            ).fetchall()
            began_at: float = there[0]["began_at"] if there else now
            same = (values["target"], values["operations"], note.is_written)
            if any((row["target"], row["operations"], bool(row["is_written"])) == same for row in there):
                return rows.moment(began_at)
            if sum(bool(row["is_written"]) == note.is_written for row in there) >= LIMIT:
                return None
            connection.execute(
                """
                INSERT INTO pending_notes (
                    scope_id, target, operations, reason, account, message_id, address_id, external_id, is_written,
                    began_at, at
                ) VALUES (
                    :scope, :target, :operations, :reason, :account, :message, :address, :external, :written,
                    :began, :at
                )
                """,
                {**values, "began": began_at},
            )
            return rows.moment(began_at)

        return await self._database.write(work)

    async def waiting(self, scopes: frozenset[Scope]) -> list[PendingNote]:
        """What waits in these scopes, oldest first."""

        def work(connection: sqlite3.Connection) -> list[PendingNote]:
            found = connection.execute(
                f"""
                SELECT pending_notes.*, scopes.key AS scope_key,
                    addresses.platform, addresses.chat_id, addresses.thread_id
                FROM pending_notes JOIN scopes ON scopes.id = pending_notes.scope_id
                LEFT JOIN addresses ON addresses.id = pending_notes.address_id
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
        address=None if row["platform"] is None else rows.address_of(row),
        external_id=row["external_id"],
        is_written=bool(row["is_written"]),
    )
