"""Whose facts are to be looked after next, and whether the house is quiet. Only reads; nothing of what is said."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from core.store import rows
from core.store.scope_filter import scope_parameter, visible
from core.store.sqlite.database import Database
from core.types import Scope


class FactRota:
    """Fills the role `core.facts.curator_role.Rota` over state.db."""

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

    async def past(self, scope: Scope) -> list[tuple[int, str, datetime]]:
        """When each fact of a scope was doubted last, and when a change of it was taken back, as (fact, ``flag`` or
        ``undo``, when)."""

        def work(connection: sqlite3.Connection) -> list[tuple[int, str, datetime]]:
            found = connection.execute(
                f"""
                SELECT fact_id, action, MAX(at) AS at FROM fact_changes
                WHERE {visible("fact_changes.scope_id")} AND action IN ('flag', 'undo') GROUP BY fact_id, action
                """,
                {"scopes": scope_parameter(frozenset((scope,)))},
            )
            return [(row["fact_id"], row["action"], rows.moment(row["at"])) for row in found]

        return await self._database.read(work)

    async def last_said_at(self) -> datetime | None:
        """When somebody was last there: when a message came, was stored or was answered, also incognito; None when
        nobody ever was."""

        def work(connection: sqlite3.Connection) -> datetime | None:
            row = connection.execute(
                """
                SELECT MAX(at) FROM (
                    SELECT created_at AS at FROM messages WHERE id = (SELECT MAX(id) FROM messages)
                    UNION ALL SELECT MAX(at) FROM answered
                    UNION ALL SELECT MAX(received_at) FROM inbox
                )
                """
            ).fetchone()
            return rows.maybe_moment(row[0])

        return await self._database.read(work)
