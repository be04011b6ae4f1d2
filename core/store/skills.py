"""What is kept of skills (which are folders) in state.db: how often each was used, and whether it is switched off.
Their versions stand with those of notes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from core.store import rows
from core.store.rows import Connection, scope_parameter, visible
from core.store.sqlite.database import Database
from core.types import ErasureEpoch, Scope

RECORDS = f"""
SELECT skills.*, scopes.key AS scope_key FROM skills JOIN scopes ON scopes.id = skills.scope_id
WHERE {visible("skills.scope_id")}
"""
COUNT = """
INSERT INTO skills (scope_id, name, uses, used_at) VALUES (:scope_id, :name, 1, :at)
ON CONFLICT (scope_id, name) DO UPDATE SET uses = uses + 1, used_at = excluded.used_at
"""
SWITCH = """
INSERT INTO skills (scope_id, name, is_disabled) VALUES (:scope_id, :name, :is_disabled)
ON CONFLICT (scope_id, name) DO UPDATE SET is_disabled = excluded.is_disabled
"""


class SkillRecords:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def records(self, scopes: frozenset[Scope]) -> dict[tuple[Scope, str], dict[str, Any]]:
        """By scope and name what is kept: uses, used_at, is_disabled."""
        return {
            (Scope(key=row["scope_key"]), row["name"]): {
                "uses": row["uses"],
                "used_at": rows.maybe_moment(row["used_at"]),
                "is_disabled": bool(row["is_disabled"]),
            }
            for row in await self._database.fetch_all(RECORDS, {"scopes": scope_parameter(scopes)})
        }

    async def count(self, scope: Scope, name: str, at: datetime, epoch: ErasureEpoch | None = None) -> None:
        """The skill was used once more."""
        await self._keep(COUNT, scope, epoch, name=name, at=at)

    async def switch(self, scope: Scope, name: str, *, is_disabled: bool) -> None:
        await self._keep(SWITCH, scope, None, name=name, is_disabled=is_disabled)

    async def _keep(self, statement: str, scope: Scope, epoch: ErasureEpoch | None, **values: object) -> None:
        def work(connection: Connection) -> None:
            connection.execute(statement, {**values, "scope_id": rows.ensure_scope(connection, scope)})

        await self._database.write(work, epoch)
