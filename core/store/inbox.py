"""What was accepted and not yet answered, and the dead letters: what could not be read or handled, as it came.

An entry holds its message only until it is closed; then its id alone stays, so that it is never taken twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.types import Address, Inbound, RawUpdate

if TYPE_CHECKING:
    from core.store.incognito import IncognitoRegistry

KEPT = timedelta(days=30)
"""How long the id of an event that left no message is known (platforms redeliver for a day at most), an update that
cannot be read (it may be a stranger's), and the key of a delivered item of the outbox (no turn is redone later)."""

SET_ASIDE = """
INSERT INTO raw_updates (platform, update_id, raw, error, failed_at)
VALUES (:platform, :update_id, :raw, :error, :now)
ON CONFLICT (platform, update_id) DO UPDATE SET error = excluded.error, failed_at = excluded.failed_at
"""
SET_ENTRY_ASIDE = """
INSERT INTO raw_updates (platform, update_id, raw, error, failed_at)
SELECT addresses.platform, (SELECT MIN(COALESCE(MIN(update_id), 0), 0) - 1 FROM raw_updates), inbound, :error, :now
FROM inbox JOIN addresses ON addresses.id = inbox.address_id WHERE inbox.id = :id
"""
"""Its number is negative, that of an update of a platform is not."""
DEAD_LETTERS = (
    "SELECT platform, error, failed_at FROM raw_updates WHERE failed_at NOT NULL ORDER BY failed_at, update_id"
)
DELETE_FAILED = "DELETE FROM raw_updates WHERE failed_at < :before"
LEFT_RAW = """
SELECT update_id, raw FROM raw_updates WHERE platform = :platform AND error IS NULL ORDER BY update_id
"""
DELETE_RAW = "DELETE FROM raw_updates WHERE platform = :platform AND update_id = :update_id AND error IS NULL"
INSERT = """
INSERT INTO inbox (address_id, external_id, inbound, received_at)
SELECT :address, :external, :inbound, :received_at
WHERE NOT EXISTS (SELECT 1 FROM messages WHERE address_id = :address AND external_id = :external)
AND NOT EXISTS (SELECT 1 FROM answered WHERE address_id = :address AND external_id = :external)
ON CONFLICT (address_id, external_id) DO NOTHING
RETURNING id
"""
REMEMBER = f"""
INSERT INTO answered (address_id, external_id, at)
SELECT address_id, external_id, :now FROM inbox
WHERE {in_list("id", "ids")} AND NOT EXISTS (
    SELECT 1 FROM messages
    WHERE messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
)
ON CONFLICT (address_id, external_id) DO NOTHING
"""
WAITING = """
SELECT inbox.id, inbound, received_at, platform FROM inbox JOIN addresses ON addresses.id = inbox.address_id
WHERE :platform IS NULL OR platform = :platform ORDER BY inbox.id
"""
LAST_SEEN = """
SELECT chat_id, thread_id, MAX(
    COALESCE((SELECT MAX(external_id) FROM messages WHERE address_id = addresses.id AND external_id < ':'), ''),
    COALESCE((SELECT MAX(external_id) FROM answered WHERE address_id = addresses.id AND external_id < ':'), '')
) AS last_id
FROM addresses WHERE platform = :platform
"""
"""An id that is no number (an edit's) stands behind the colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """A row of the inbox: an accepted event that has not been answered yet."""

    id: int
    inbound: Inbound
    received_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What was set aside, without its words."""

    platform: str
    error: str
    failed_at: datetime


class Inbox:
    """The inbox in state.db. Of an event at an incognito address only the ids are stored. `on_set_aside` gets the
    platform of each dead letter."""

    def __init__(self, database: Database, clock: Clock, incognito: IncognitoRegistry | None = None) -> None:
        self._database = database
        self._clock = clock
        self._incognito = incognito
        self.on_set_aside: Callable[[str], Awaitable[None]] | None = None

    def is_incognito(self, address: Address) -> bool:
        return self._incognito is not None and self._incognito.has(address)

    def has_incognito(self, chat_id: str) -> bool:
        """Whether anything in this chat, a topic perhaps, is incognito."""
        return self._incognito is not None and any(one.chat_id == chat_id for one in self._incognito.conversations)

    async def set_aside(self, update: RawUpdate, error: str) -> None:
        """Keeps an update that cannot be read or handled, for 30 days."""
        now = self._clock.now()
        values = {**rows.values_of(update), "error": error, "now": now}

        def work(connection: Connection) -> None:
            connection.execute(DELETE_FAILED, {"before": now - KEPT})
            connection.execute(SET_ASIDE, values)

        await self._database.write(work)
        if self.on_set_aside is not None:
            await self.on_set_aside(update.platform)

    async def set_entry_aside(self, entry_id: int, platform: str, error: str) -> None:
        """The same for an entry, which is closed."""
        values = {"id": entry_id, "error": error, "now": self._clock.now()}

        def work(connection: Connection) -> int:
            is_there = connection.execute(SET_ENTRY_ASIDE, values).rowcount
            close_entries(connection, [entry_id], self._clock.now())
            return is_there

        if await self._database.write(work) and self.on_set_aside is not None:
            await self.on_set_aside(platform)

    async def dead_letters(self) -> list[DeadLetter]:
        """What was set aside in the last 30 days, oldest first."""
        return [
            DeadLetter(platform=row["platform"], error=row["error"] or "", failed_at=rows.moment(row["failed_at"]))
            for row in await self._database.fetch_all(DEAD_LETTERS)
        ]

    async def drop_dead_letters(self) -> int:
        """Deletes them and says how many there were."""
        return await self._database.execute(DELETE_FAILED, {"before": self._clock.now()})

    async def left_raw(self, platform: str) -> list[RawUpdate]:
        """Updates that a version before this one confirmed and did not come to handle, in order."""
        found = await self._database.fetch_all(LEFT_RAW, {"platform": platform})
        return [RawUpdate(platform=platform, update_id=row["update_id"], raw=row["raw"]) for row in found]

    async def remove_raw(self, platform: str, update_id: int) -> None:
        """Deletes one of these that was handled."""
        await self._database.execute(DELETE_RAW, {"platform": platform, "update_id": update_id})

    async def accept(self, inbound: Inbound, received_at: datetime) -> int | None:
        """Stores an event and returns the id of its entry; None when it is known."""

        def work(connection: Connection) -> int | None:
            address_id = rows.ensure_address(connection, inbound.address)
            rows.set_link_base(connection, address_id, inbound.link_base)
            values = {
                "address": address_id,
                "external": _external_id(inbound),
                "inbound": self._stored(inbound),
                "received_at": received_at,
            }
            inserted = connection.execute(INSERT, values).fetchall()
            return int(inserted[0]["id"]) if inserted else None

        return await self._database.write(work, inbound.epoch)

    async def last_seen(self, platform: str) -> dict[Address, str]:
        """The last message id of each known address of a platform whose ids are numbers of one length, in time."""
        return {
            Address(platform=platform, chat_id=row["chat_id"], thread_id=row["thread_id"] or None): row["last_id"]
            for row in await self._database.fetch_all(LAST_SEEN, {"platform": platform})
            if row["last_id"]
        }

    async def waiting(self, platform: str | None = None) -> list[InboxEntry]:
        """Entries (of a platform) without an answer, oldest first. One that cannot be read is set aside."""
        entries = []
        for row in await self._database.fetch_all(WAITING, {"platform": platform}):
            try:
                inbound = rows.load_inbound(row["inbound"])
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                await self.set_entry_aside(row["id"], row["platform"], f"it cannot be read: {type(error).__name__}")
            else:
                entries.append(InboxEntry(id=row["id"], inbound=inbound, received_at=rows.moment(row["received_at"])))
        return entries

    async def still_open(self, entry_ids: Sequence[int]) -> frozenset[int]:
        """Those of the entries that are neither closed nor erased."""
        return await self._database.glance(lambda connection: open_entries(connection, entry_ids))

    async def update(self, entry: InboxEntry) -> None:
        """Replaces the event of a waiting entry."""
        values = {"id": entry.id, "inbound": self._stored(entry.inbound)}
        await self._database.execute("UPDATE inbox SET inbound = :inbound WHERE id = :id", values)

    async def close(self, entry_ids: Sequence[int]) -> None:
        if entry_ids:
            now = self._clock.now()
            await self._database.write(lambda connection: close_entries(connection, entry_ids, now))

    def _stored(self, inbound: Inbound) -> str:
        if self.is_incognito(inbound.address):
            inbound = replace(inbound, text="", command=None, reply_to=None, attachments=())
        return rows.dump_inbound(inbound)


def open_entries(connection: Connection, entry_ids: Sequence[int]) -> frozenset[int]:
    """Those of the entries that are neither closed nor erased."""
    found = connection.execute(f"SELECT id FROM inbox WHERE {in_list('id', 'ids')}", {"ids": list_value(entry_ids)})
    return frozenset(row["id"] for row in found)


def close_entries(connection: Connection, entry_ids: Sequence[int], now: datetime) -> None:
    """Deletes entries; of those that left no message the id is kept, for a redelivery after a crash."""
    values = {"ids": list_value(entry_ids), "now": now}
    if connection.execute(REMEMBER, values).rowcount:
        connection.execute("DELETE FROM answered WHERE at < :before", {"before": now - KEPT})
    connection.execute(f"DELETE FROM inbox WHERE {in_list('id', 'ids')}", values)


def withdraw(connection: Connection, address: Address, external_id: str, now: datetime) -> None:
    """Closes the entry of a message that was deleted on its platform."""
    values = {"address": rows.find_address(connection, address), "external": external_id}
    found = connection.execute(
        "SELECT id FROM inbox WHERE address_id = :address AND external_id = :external", values
    ).fetchall()
    if found:
        close_entries(connection, [row["id"] for row in found], now)


def _external_id(inbound: Inbound) -> str:
    """What makes an event unique at its address; an edit or a deletion carries the id of its message."""
    if inbound.kind == "message":
        return inbound.message_id
    return f"{inbound.kind}:{inbound.message_id}:{rows.timestamp(inbound.sent_at)!r}"
