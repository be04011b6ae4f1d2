"""Which of the owner's files he has approved as they are, as digests in state_meta."""

from __future__ import annotations

import sqlite3

from core.store import rows
from core.store.sqlite.database import Database

_KEY = "approved:"


class Approvals:
    """Fills the role `core.review.approvals_role.Seals` over state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, name: str, digest: str) -> None:
        """The file is approved as long as it says this."""

        def work(connection: sqlite3.Connection) -> None:
            rows.keep_meta(connection, f"{_KEY}{name}", digest)

        await self._database.write(work)

    async def has(self, name: str, digest: str) -> bool:
        """Whether that was approved."""
        return await self._database.read(lambda connection: rows.meta(connection, f"{_KEY}{name}") == digest)
