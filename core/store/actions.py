"""Buttons that survive a restart: each an id that a platform carries, and the command behind it, for a while.

Says what a button does, not who may press it; that is asked of its scope and account by the router.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from core.ports import Clock
from core.records import Action
from core.store import codec, rows
from core.store.database import Database
from core.types import Command, Scope


class Actions:
    """Fills the role `core.ports.Actions` over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, actions: Sequence[Action]) -> None:
        """Stores buttons under the ids they come with, random and short; expired ones are let go of.

        Raises StoreError for an id that exists: a button must never change what it does.
        """
        now = rows.timestamp(self._clock.now())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM actions WHERE expires_at <= :now", {"now": now})
            connection.executemany(
                """
                INSERT INTO actions (id, scope_id, account, command, arguments, expires_at)
                VALUES (:id, :scope, :account, :command, :arguments, :expires_at)
                """,
                [
                    {
                        "id": codec.clean(action.id),
                        "scope": rows.keep_scope(connection, action.scope),
                        "account": rows.account_key(action.account),
                        "command": codec.clean(action.command.name),
                        "arguments": codec.clean(action.command.arguments),
                        "expires_at": rows.timestamp(action.expires_at),
                    }
                    for action in actions
                ],
            )

        if actions:
            await self._database.write(work)

    async def find(self, action_id: str, now: datetime) -> Action | None:
        """The button behind an id, unless it has expired."""
        values = {"id": codec.clean(action_id), "now": rows.timestamp(now)}

        def work(connection: sqlite3.Connection) -> Action | None:
            row = connection.execute(
                """
                SELECT actions.*, scopes.key AS scope_key FROM actions JOIN scopes ON scopes.id = actions.scope_id
                WHERE actions.id = :id AND actions.expires_at > :now
                """,
                values,
            ).fetchone()
            return None if row is None else _action(row)

        return await self._database.read(work)


def _action(row: sqlite3.Row) -> Action:
    return Action(
        id=row["id"],
        scope=Scope(key=row["scope_key"]),
        account=rows.account_of(row["account"]),
        command=Command(name=row["command"], arguments=row["arguments"]),
        expires_at=rows.moment(row["expires_at"]),
    )
