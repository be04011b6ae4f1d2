"""The history of curated notes: one row a change, never changed itself. The notes are files and kept elsewhere."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from core.memory.provenance import Provenance
from core.records import NoteChange
from core.store import codec, rows
from core.store.database import Database
from core.store.passages import PLATFORM_ID, link
from core.store.sight import scope_parameter, visible
from core.types import Scope

_VERSIONS = """
    SELECT notes.*, scopes.key AS scope_key FROM notes JOIN scopes ON scopes.id = notes.scope_id
"""

_IDLE = f"""
    WITH written AS (
        SELECT id, at FROM notes WHERE {visible("notes.scope_id")}
        UNION ALL
        SELECT 0, created_at FROM facts WHERE {visible("facts.scope_id")} AND origin = 'person'
    ), said AS (
        SELECT role, created_at, LAG(role) OVER (ORDER BY messages.id) AS role_before
        FROM messages JOIN sessions ON sessions.id = messages.session_id
        WHERE session_id = :session AND kind = 'chat' AND {visible()}
    )
    SELECT COUNT(*) AS turns, COALESCE((SELECT MAX(id) FROM written), 0) AS latest FROM said
    WHERE role = 'user' AND role_before IS NOT 'user' AND created_at > COALESCE((SELECT MAX(at) FROM written), 0)
"""


class Notes:
    """Fills the role `core.memory.versions.Versions` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def log(self, change: NoteChange) -> None:
        """Keeps one version."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                """
                INSERT INTO notes (
                    scope_id, target, action, before, after, account, message_id, undoes, is_insisted, at
                ) VALUES (
                    :scope, :target, :action, :before, :after, :account, :message, :undoes, :insisted, :at
                )
                """,
                {
                    "scope": rows.keep_scope(connection, change.scope),
                    "target": codec.clean(change.target),
                    "action": codec.clean(change.action),
                    "before": codec.maybe_clean(change.before),
                    "after": codec.maybe_clean(change.after),
                    "account": rows.account_key(change.account),
                    "message": change.message_id,
                    "undoes": change.undoes,
                    "insisted": change.is_insisted,
                    "at": rows.timestamp(change.at),
                },
            )

        await self._database.write(work)

    async def changes(self, scopes: frozenset[Scope], limit: int = 20, offset: int = 0) -> list[NoteChange]:
        """The latest versions, newest first, without the first `offset` of them."""
        values = {
            "scopes": scope_parameter(scopes),
            "limit": rows.bounded(max(0, limit)),
            "offset": rows.bounded(max(0, offset)),
        }
        return await self._read(
            f"{_VERSIONS} WHERE {visible('notes.scope_id')} ORDER BY notes.id DESC LIMIT :limit OFFSET :offset", values
        )

    async def since(self, scopes: frozenset[Scope], session_id: int, at: datetime) -> list[NoteChange]:
        """What was changed from a moment on, oldest first, and not from within that session: except what it asked for
        and was let in later."""
        values = {"scopes": scope_parameter(scopes), "session": session_id, "at": rows.timestamp(at)}
        return await self._read(
            f"""
            {_VERSIONS} LEFT JOIN messages ON messages.id = notes.message_id
            WHERE {visible("notes.scope_id")} AND notes.at >= :at
            AND (messages.session_id IS NOT :session OR notes.is_insisted)
            ORDER BY notes.id
            """,
            values,
        )

    async def find(self, scopes: frozenset[Scope], number: int) -> NoteChange | None:
        """The change with this id; None when it is not theirs or not there."""
        values = {"scopes": scope_parameter(scopes), "id": rows.bounded(number)}
        return await self._one(f"{_VERSIONS} WHERE notes.id = :id AND {visible('notes.scope_id')}", values)

    async def last(self, scopes: frozenset[Scope]) -> NoteChange | None:
        """The last change that is no undoing and was not undone; one that was made in several files is one."""
        return await self._one(
            f"""
            {_VERSIONS} WHERE {visible("notes.scope_id")} AND notes.action <> 'undo' AND NOT EXISTS (
                SELECT 1 FROM notes AS undoing JOIN notes AS undone ON undone.id = undoing.undoes
                WHERE undone.id = notes.id OR undone.at = notes.at AND undone.target = notes.target
                AND undone.before IS notes.before AND undone.after IS notes.after
            )
            ORDER BY notes.id DESC LIMIT 1
            """,
            {"scopes": scope_parameter(scopes)},
        )

    async def standing(self, scope: Scope, target: str) -> list[str]:
        """The entries that all changes of a file come to."""
        changes = await self._read(
            f"{_VERSIONS} WHERE scopes.key = :scope AND notes.target = :target ORDER BY notes.id",
            {"scope": scope.key, "target": codec.clean(target)},
        )
        entries: dict[str, None] = {}
        for change in changes:
            if change.before is not None:
                entries.pop(change.before, None)
            if change.after is not None:
                entries[change.after] = None
        return list(entries)

    async def origin(self, scopes: frozenset[Scope], entry: str) -> Provenance:
        """The last change that brought an entry, and the message it came from where that may be seen."""
        values: dict[str, object] = {"scopes": scope_parameter(scopes), "entry": codec.clean(entry)}
        change = await self._one(
            f"""
            {_VERSIONS} WHERE {visible("notes.scope_id")} AND notes.after = :entry ORDER BY notes.id DESC LIMIT 1
            """,
            values,
        )
        if change is None or change.message_id is None:
            return Provenance(entry=entry, change=change)
        values["message"] = change.message_id

        def work(connection: sqlite3.Connection) -> Provenance:
            row = connection.execute(
                f"""
                SELECT messages.text, messages.sender_name, addresses.link_base, {PLATFORM_ID} AS platform_id
                FROM messages JOIN sessions ON sessions.id = messages.session_id
                JOIN addresses ON addresses.id = messages.address_id
                WHERE messages.id = :message AND {visible()}
                """,
                values,
            ).fetchone()
            if row is None:
                return Provenance(entry=entry, change=change)
            return Provenance(
                entry=entry,
                change=change,
                said=row["text"],
                sender=row["sender_name"] or "",
                link=link(row["link_base"], row["platform_id"]),
            )

        return await self._database.read(work)

    async def insisted(self, scopes: frozenset[Scope]) -> frozenset[str]:
        """The entries that read like orders and were kept all the same."""
        changes = await self._read(
            f"{_VERSIONS} WHERE {visible('notes.scope_id')} AND is_insisted AND notes.after IS NOT NULL",
            {"scopes": scope_parameter(scopes)},
        )
        return frozenset(change.after for change in changes if change.after is not None)

    async def idle(self, scopes: frozenset[Scope], session_id: int) -> tuple[int, int]:
        """How many turns of a session have begun since anything was noted or remembered on purpose in these scopes,
        and the id of the last change of notes, 0 for none. What was said before it was answered is one turn."""

        def work(connection: sqlite3.Connection) -> tuple[int, int]:
            row = connection.execute(_IDLE, {"scopes": scope_parameter(scopes), "session": session_id}).fetchone()
            return row["turns"], row["latest"]

        return await self._database.read(work)

    async def _one(self, statement: str, values: dict[str, object]) -> NoteChange | None:
        return next(iter(await self._read(statement, values)), None)

    async def _read(self, statement: str, values: dict[str, object]) -> list[NoteChange]:
        return await self._database.read(
            lambda connection: [change_of(row) for row in connection.execute(statement, values)]
        )


def change_of(row: sqlite3.Row) -> NoteChange:
    """A row of `notes` with the key of its scope as ``scope_key``."""
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
        undoes=row["undoes"],
        is_insisted=bool(row["is_insisted"]),
    )
