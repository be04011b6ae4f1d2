"""Whose facts are to be looked after next, and whether the house is quiet. Only reads; nothing of what is said."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from core.store import rows
from core.store.database import Database
from core.types import Scope


class FactRota:
    """Fills the role `core.memory.rota.Rota` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def following(self, scope: Scope | None) -> Scope | None:
        """The scope with open facts that comes after this one (None: the first); None after the last."""

        def work(connection: sqlite3.Connection) -> Scope | None:
            row = connection.execute(
                """
                SELECT key FROM scopes WHERE key > :after AND EXISTS (
                    SELECT 1 FROM facts WHERE facts.scope_id = scopes.id AND closed_at IS NULL
                ) ORDER BY key LIMIT 1
                """,
                {"after": scope.key if scope else ""},
            ).fetchone()
            return None if row is None else Scope(key=row["key"])

        return await self._database.read(work)

    async def last_change(self) -> int:
        """Counts up whenever a fact is learned or changed."""
        return await self._database.read(
            lambda connection: int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM fact_changes").fetchone()[0])
        )

    async def last_said_at(self) -> datetime | None:
        """When the latest message was stored; None when there is none."""

        def work(connection: sqlite3.Connection) -> datetime | None:
            row = connection.execute("SELECT created_at FROM messages ORDER BY id DESC LIMIT 1").fetchone()
            return None if row is None else rows.moment(row["created_at"])

        return await self._database.read(work)
