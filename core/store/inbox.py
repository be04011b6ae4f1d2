"""What was accepted and not yet answered, and platform updates as they came, until they are normalised.

An entry holds what a person said only until it is closed; what stays of it is its id, so that it is never taken twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.ports import Clock
from core.store import rows
from core.store.sqlite.database import Database
from core.types import Address, Inbound, RawUpdate


class IncognitoRegistry:
    """Asked by whoever is about to write what was said."""

    def __init__(self) -> None:
        self._covered: set[Address] = set()
        self._homes: dict[Address, Address] = {}
        """For the new address of a chat that has moved, the one where it was covered."""

    def covers(self, address: Address) -> bool:
        """Whether what is said there is not to be written down."""
        return self.home(address) in self._covered

    def home(self, address: Address) -> Address:
        """Where the conversation began that goes on at an address; the address itself unless its chat has moved."""
        return self._homes.get(address, address)

    def places(self, address: Address) -> list[Address]:
        """All addresses of the conversation that is held there, the first one first."""
        home = self.home(address)
        return [home, *(new for new, old in self._homes.items() if old == home)]

    def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """What is covered in a chat is covered at its new id as well."""
        for address in [*self._covered, *self._homes]:
            if (address.platform, address.chat_id) == (platform, old_chat_id) and self.covers(address):
                self._homes.setdefault(replace(address, chat_id=new_chat_id), self.home(address))

    def draw(self, address: Address) -> None:
        """From now on nothing."""
        self._covered.add(address)

    def lift(self, address: Address) -> None:
        """From now on as everywhere."""
        for place in self.places(address):
            self._covered.discard(place)
            self._homes.pop(place, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """A row of the inbox: an accepted event that has not been answered yet."""

    id: int
    inbound: Inbound
    received_at: datetime


REMEMBERED = timedelta(days=30)
"""How long the id of an answered event that left no message is known; platforms redeliver for a day at most."""
PUZZLED_OVER = timedelta(days=30)
"""How long an update that cannot be parsed is kept. It may be anybody's, also a stranger's, so it must go one day."""


class Inbox:
    """Fills the role `core.ports.Inbox` over state.db."""

    def __init__(self, database: Database, clock: Clock, veil: IncognitoRegistry | None = None) -> None:
        self._database = database
        self._clock = clock
        self._veil = veil or IncognitoRegistry()

    def is_incognito(self, address: Address) -> bool:
        """Whether of what is said there nothing but the id is written down: the conversation is incognito."""
        return self._veil.covers(address)

    async def keep_raw(self, updates: Sequence[RawUpdate]) -> None:
        """Stores updates as they came; those known already are left alone. Committed when it returns. Forgets those
        that failed 30 days ago."""
        now = self._clock.now()

        def work(connection: sqlite3.Connection) -> None:
            forget_failed(connection, now)
            connection.executemany(
                """
                INSERT INTO raw_updates (platform, update_id, raw) VALUES (:platform, :update_id, :raw)
                ON CONFLICT (platform, update_id) DO NOTHING
                """,
                [
                    {"platform": update.platform, "update_id": update.update_id, "raw": rows.clean(update.raw)}
                    for update in updates
                ],
            )

        if updates:
            await self._database.write(work)

    async def raw(self, platform: str) -> list[RawUpdate]:
        """Updates kept and not yet dropped, in order, without those that failed."""

        def work(connection: sqlite3.Connection) -> list[RawUpdate]:
            found = connection.execute(
                """
                SELECT update_id, raw FROM raw_updates WHERE platform = :platform AND error IS NULL ORDER BY update_id
                """,
                {"platform": platform},
            )
            return [RawUpdate(platform=platform, update_id=row["update_id"], raw=row["raw"]) for row in found]

        return await self._database.read(work)

    async def drop_raw(self, platform: str, update_id: int) -> None:
        """The update was normalised and admitted, or is nothing for us."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM raw_updates WHERE platform = :platform AND update_id = :update_id",
                {"platform": platform, "update_id": update_id},
            )

        await self._database.write(work)

    async def fail_raw(self, platform: str, update_id: int, error: str) -> None:
        """The update cannot be parsed: it stays for 30 days, marked, and is not offered again."""
        values = {
            "platform": platform,
            "update_id": update_id,
            "error": rows.clean(error),
            "now": rows.timestamp(self._clock.now()),
        }

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                """
                UPDATE raw_updates SET error = :error, failed_at = :now
                WHERE platform = :platform AND update_id = :update_id
                """,
                values,
            )

        await self._database.write(work)

    async def accept(self, inbound: Inbound, received_at: datetime) -> int | None:
        """Writes an event down and returns its entry; None when it is known, waiting or answered."""

        def work(connection: sqlite3.Connection) -> int | None:
            address_id = rows.keep_address(connection, inbound.address)
            rows.keep_link_base(connection, address_id, inbound.link_base)
            values = {
                "address": address_id,
                "external": _external_id(inbound),
                "inbound": self._written(inbound),
                "received_at": rows.timestamp(received_at),
            }
            inserted = connection.execute(
                """
                INSERT INTO inbox (address_id, external_id, inbound, received_at)
                SELECT :address, :external, :inbound, :received_at
                WHERE NOT EXISTS (SELECT 1 FROM messages WHERE address_id = :address AND external_id = :external)
                AND NOT EXISTS (SELECT 1 FROM answered WHERE address_id = :address AND external_id = :external)
                ON CONFLICT (address_id, external_id) DO NOTHING
                RETURNING id
                """,
                values,
            ).fetchall()
            return int(inserted[0]["id"]) if inserted else None

        return await self._database.write(work)

    async def waiting(self) -> list[InboxEntry]:
        """Entries without an answer, oldest first: what a restart has to go on with."""

        def work(connection: sqlite3.Connection) -> list[InboxEntry]:
            return [
                InboxEntry(
                    id=row["id"],
                    inbound=rows.load_inbound(row["inbound"]),
                    received_at=rows.moment(row["received_at"]),
                )
                for row in connection.execute("SELECT id, inbound, received_at FROM inbox ORDER BY id")
            ]

        return await self._database.read(work)

    async def still(self, entry_ids: Sequence[int]) -> frozenset[int]:
        """Those of the entries that are to be answered, and were not closed or forgotten."""
        values = {"ids": json.dumps(list(entry_ids))}

        def work(connection: sqlite3.Connection) -> frozenset[int]:
            found = connection.execute("SELECT id FROM inbox WHERE id IN (SELECT value FROM json_each(:ids))", values)
            return frozenset(row["id"] for row in found)

        return await self._database.glance(work)

    async def reword(self, entry: InboxEntry) -> None:
        """Writes the event of a waiting entry anew."""
        values = {"id": entry.id, "inbound": self._written(entry.inbound)}
        await self._database.write(
            lambda connection: connection.execute("UPDATE inbox SET inbound = :inbound WHERE id = :id", values).close()
        )

    async def close(self, entry_ids: Sequence[int]) -> None:
        """The entries need nothing more."""
        if entry_ids:
            now = self._clock.now()
            await self._database.write(lambda connection: close_entries(connection, entry_ids, now))

    def _written(self, inbound: Inbound) -> str:
        if self.is_incognito(inbound.address):
            inbound = replace(inbound, text="", command=None, reply_to=None, attachments=())
        return rows.dump_inbound(inbound)


def close_entries(connection: sqlite3.Connection, entry_ids: Sequence[int], now: datetime) -> None:
    """Deletes entries; of those that left no message the id alone is remembered, for a redelivery after a crash."""
    values = {"ids": json.dumps(list(entry_ids)), "now": rows.timestamp(now)}
    remembered = connection.execute(
        """
        INSERT INTO answered (address_id, external_id, at)
        SELECT address_id, external_id, :now FROM inbox
        WHERE id IN (SELECT value FROM json_each(:ids)) AND NOT EXISTS (
            SELECT 1 FROM messages
            WHERE messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
        )
        ON CONFLICT (address_id, external_id) DO NOTHING
        """,
        values,
    )
    if remembered.rowcount:
        connection.execute("DELETE FROM answered WHERE at < :before", {"before": rows.timestamp(now - REMEMBERED)})
    connection.execute("DELETE FROM inbox WHERE id IN (SELECT value FROM json_each(:ids))", values)


def withdraw(connection: sqlite3.Connection, address: Address, external_id: str, now: datetime) -> None:
    """A message was deleted on the platform: it needs no answer any more, waiting or under way."""
    values = {"address": rows.find_address(connection, address), "external": rows.clean(external_id)}
    found = connection.execute(
        "SELECT id FROM inbox WHERE address_id = :address AND external_id = :external", values
    ).fetchall()
    if found:
        close_entries(connection, [row["id"] for row in found], now)


def forget_failed(connection: sqlite3.Connection, now: datetime) -> None:
    """Deletes updates that could not be parsed and have been looked at long enough."""
    connection.execute(
        "DELETE FROM raw_updates WHERE failed_at < :before", {"before": rows.timestamp(now - PUZZLED_OVER)}
    )


def _external_id(inbound: Inbound) -> str:
    """What makes an event unique at its address. An edit or a deletion carries the id of the message it is about."""
    if inbound.kind == "message":
        return rows.clean(inbound.message_id)
    return rows.clean(f"{inbound.kind}:{inbound.message_id}:{rows.timestamp(inbound.sent_at)!r}")
