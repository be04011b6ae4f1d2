"""Which conversations are incognito, for the next process: it has to say that they are gone. No word of them here."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from core.ports import Clock
from core.store import rows
from core.store.inbox import close_entries
from core.store.sqlite.compaction import want_pages
from core.store.sqlite.database import Database
from core.types import Address


class Veils:
    """Marks in state.db, one for each address."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def draw(self, address: Address) -> None:
        """The conversation at an address is incognito. What waits there already is for this process only: its words
        are taken out of the inbox."""
        now = rows.timestamp(self._clock.now())

        def work(connection: sqlite3.Connection) -> None:
            values = {"address": rows.keep_address(connection, address), "now": now}
            connection.execute(
                "INSERT INTO veils (address_id, at) VALUES (:address, :now) ON CONFLICT (address_id) DO NOTHING", values
            )
            waiting = connection.execute(
                """
                UPDATE inbox SET inbound = json_set(
                    inbound, '$.text', '', '$.command', NULL, '$.attachments', json('[]'), '$.reply_to', NULL
                ) WHERE address_id = :address
                """,
                values,
            )
            if waiting.rowcount:
                want_pages(connection)

        await self._database.write(work)

    async def lift(self, address: Address) -> None:
        """It is over."""

        def work(connection: sqlite3.Connection) -> None:
            values = {"address": rows.find_address(connection, address)}
            connection.execute("DELETE FROM veils WHERE address_id = :address", values)

        await self._database.write(work)

    async def fallen(self) -> Sequence[Address]:
        """At the start of a process: where one before it was incognito. What waited there is closed, since its words
        are gone; the marks stay until `lift`."""
        now = self._clock.now()

        def work(connection: sqlite3.Connection) -> Sequence[Address]:
            found = connection.execute(
                """
                SELECT platform, chat_id, thread_id FROM veils JOIN addresses ON addresses.id = veils.address_id
                ORDER BY veils.at, addresses.id
                """
            ).fetchall()
            waiting = connection.execute("SELECT id FROM inbox WHERE address_id IN (SELECT address_id FROM veils)")
            close_entries(connection, [row["id"] for row in waiting.fetchall()], now)
            return [rows.address_of(row) for row in found]

        return await self._database.write(work)
