"""What must leave, once: a parcel for each answer, reminder and notice, in order within its address.

A parcel is held (a live process works on it), due, done or dead. Its key is the promise that nothing leaves twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from core.errors import StoreError
from core.ports import Clock
from core.store import rows
from core.store.inbox import delete_failed
from core.store.sqlite.database import Database
from core.types import Address, Answer

OutboxKind = Literal["answer", "reminder", "notice", "memory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """A row of the outbox: something that must leave reliably, once. `key` is unique for ever.

    answer None: a turn is still working on it. `posted`: ids of the platform messages already made for it, in order.
    next_at None: held by a live turn, not due. is_over: delivered or buried, nothing more leaves for this key.
    """

    key: str
    kind: OutboxKind
    address: Address
    answer: Answer | None = None
    posted: tuple[str, ...] = ()
    reply_to: str | None = None
    attempts: int = 0
    next_at: datetime | None = None
    is_over: bool = False
    id: int = 0


KEPT = timedelta(days=30)
"""How long the key of a delivered parcel is known; no turn is redone after so long."""

OPEN = "done_at IS NULL AND dead_at IS NULL"

HEADS = f"""
SELECT MIN(id) AS id FROM outbox WHERE {OPEN} AND payload IS NOT NULL AND (
    :platforms IS NULL OR substr(lane, 1, instr(lane, ':') - 1) IN (SELECT value FROM json_each(:platforms))
) GROUP BY lane
"""
"""The oldest parcel of each lane that has content: only that one may leave, so that answers keep their order. One
without content belongs to a turn at work and holds up nobody."""

LOST = "expired: the process ended before it was answered"


class Outbox:
    """Fills the role `core.ports.Outbox` over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def hold(self, outbox_item: OutboxItem) -> OutboxItem:
        """Makes the parcel, not yet due, unless its key exists; returns what is stored."""
        values = _values(outbox_item, self._clock.now()) | {"next_at": None}

        def work(connection: sqlite3.Connection) -> OutboxItem:
            connection.execute(f"{INSERT} ON CONFLICT (key) DO NOTHING", values)
            row = connection.execute("SELECT * FROM outbox WHERE key = :key", values).fetchone()
            return _outbox_item(row)

        return await self._database.write(work, has_words=outbox_item.answer is not None)

    async def fill(self, key: str, answer: Answer, next_at: datetime | None) -> None:
        """Gives a held parcel its content; due at `next_at`, None: this process delivers it itself. One that is done
        stays done; StoreError without one."""
        values = {
            "key": rows.clean(key),
            "payload": rows.dump_answer(answer),
            "next_at": rows.maybe_timestamp(next_at),
        }

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM outbox WHERE key = :key", values).fetchone() is None:
                raise StoreError(f"There is no parcel {key!r} to fill. Hold it first.")
            connection.execute(
                f"UPDATE outbox SET payload = :payload, next_at = :next_at WHERE key = :key AND {OPEN}", values
            )

        await self._database.write(work)

    async def record(self, key: str, message_id: str) -> None:
        """One more platform message exists for the parcel."""
        await self._change(
            """
            UPDATE outbox SET posted = json_insert(posted, '$[#]', :message_id)
            WHERE key = :key AND NOT EXISTS (SELECT 1 FROM json_each(posted) WHERE value = :message_id)
            """,
            key,
            message_id=rows.clean(message_id),
        )

    async def due(self, now: datetime, platforms: Collection[str] | None = None, limit: int = 50) -> list[OutboxItem]:
        """Parcels to deliver now, oldest first, at most one for each address; None: on whatever platform."""
        values = {"now": rows.timestamp(now), "platforms": _names(platforms), "limit": limit}

        def work(connection: sqlite3.Connection) -> list[OutboxItem]:
            found = connection.execute(
                f"SELECT * FROM outbox WHERE id IN ({HEADS}) AND next_at <= :now ORDER BY id LIMIT :limit", values
            )
            return [_outbox_item(row) for row in found]

        return await self._database.read(work)

    async def next_at(self, platforms: Collection[str] | None = None) -> datetime | None:
        """When the earliest parcel that may leave for these platforms becomes due."""
        values = {"platforms": _names(platforms)}

        def work(connection: sqlite3.Connection) -> datetime | None:
            row = connection.execute(
                f"SELECT MIN(next_at) AS next_at FROM outbox WHERE id IN ({HEADS})", values
            ).fetchone()
            return rows.maybe_moment(row["next_at"])

        return await self._database.read(work)

    async def is_behind(self, key: str) -> bool:
        """Whether an older parcel with content has yet to leave for the same address."""
        values = {"key": rows.clean(key)}

        def work(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                f"""
                SELECT 1 FROM outbox WHERE {OPEN} AND payload IS NOT NULL
                AND lane = (SELECT lane FROM outbox WHERE key = :key)
                AND id < (SELECT id FROM outbox WHERE key = :key)
                LIMIT 1
                """,
                values,
            ).fetchone()
            return row is not None

        return await self._database.read(work)

    async def done(self, key: str) -> None:
        """Delivered. The key stays, the words do not: they stand in the conversation, where the message that holds them
        learns under which id it (the first part of it) can be opened on the platform."""
        values = {"key": rows.clean(key), "now": rows.timestamp(self._clock.now())}

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                """
                UPDATE messages SET posted_id = json_extract(outbox.posted, '$[0]')
                FROM outbox WHERE outbox.key = :key AND messages.id = outbox.message_id
                """,
                values,
            )
            connection.execute(
                f"""
                UPDATE outbox SET done_at = :now, payload = NULL, next_at = NULL, error = NULL
                WHERE key = :key AND {OPEN}
                """,
                values,
            )

        await self._database.write(work, has_words=False)

    async def postpone(self, key: str, next_at: datetime, error: str) -> None:
        """Failed for now: counts the attempt."""
        await self._change(
            f"""
            UPDATE outbox SET attempts = attempts + 1, next_at = :next_at, error = :error WHERE key = :key AND {OPEN}
            """,
            key,
            next_at=rows.timestamp(next_at),
            error=rows.clean(error),
        )

    async def mark_dead(self, key: str, error: str) -> None:
        """Failed for good: kept for the owner to see, not tried again."""
        await self._change(
            f"UPDATE outbox SET dead_at = :now, next_at = NULL, error = :error WHERE key = :key AND {OPEN}",
            key,
            now=rows.timestamp(self._clock.now()),
            error=rows.clean(error),
        )

    async def claim(self, key: str) -> None:
        """A live process delivers the parcel itself: not due any more until postponed."""
        await self._change(f"UPDATE outbox SET next_at = NULL WHERE key = :key AND {OPEN}", key)

    async def counts(self) -> dict[str, int]:
        """How many are held, due (now or later) and dead."""

        def work(connection: sqlite3.Connection) -> dict[str, int]:
            row = connection.execute(
                f"""
                SELECT
                    COALESCE(SUM({OPEN} AND next_at IS NULL), 0) AS held,
                    COALESCE(SUM({OPEN} AND next_at IS NOT NULL), 0) AS due,
                    COALESCE(SUM(dead_at IS NOT NULL), 0) AS dead
                FROM outbox
                """
            ).fetchone()
            return {"held": row["held"], "due": row["due"], "dead": row["dead"]}

        return await self._database.read(work)

    async def recover(self, now: datetime) -> None:
        """At the start of a process: what one before it had claimed is due again; delivered keys and updates that
        failed are kept 30 days.

        An answer without content stays held while an entry waits at its address: the entry's turn is redone and finds
        `posted`. Where none waits, nothing will ever fill it, and it is buried. Reminders are filled by their jobs.
        """

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"""
                UPDATE outbox SET dead_at = :now, error = :error
                WHERE {OPEN} AND payload IS NULL AND kind = 'answer' AND lane NOT IN (
                    SELECT addresses.platform || ':' || addresses.chat_id
                        || CASE addresses.thread_id WHEN '' THEN '' ELSE '/' || addresses.thread_id END
                    FROM inbox JOIN addresses ON addresses.id = inbox.address_id
                )
                """,
                {"now": rows.timestamp(now), "error": LOST},
            )
            connection.execute(
                f"UPDATE outbox SET next_at = :now WHERE {OPEN} AND payload IS NOT NULL AND next_at IS NULL",
                {"now": rows.timestamp(now)},
            )
            # How far a session is told is known without its parcels; of notes the parcels themselves say it.
            connection.execute(
                "DELETE FROM outbox WHERE done_at < :before AND NOT (kind = 'memory' AND key GLOB '*:on_memory_write')",
                {"before": rows.timestamp(now - KEPT)},
            )
            delete_failed(connection, now)

        await self._database.write(work)

    async def _change(self, statement: str, key: str, **values: object) -> None:
        parameters = {"key": rows.clean(key), **values}
        await self._database.write(
            lambda connection: connection.execute(statement, parameters).close(), has_words=False
        )


INSERT = """
INSERT INTO outbox (key, lane, kind, payload, posted, reply_to, attempts, next_at, created_at)
VALUES (:key, :lane, :kind, :payload, :posted, :reply_to, :attempts, :next_at, :created_at)
"""


def fill_outbox_item(
    connection: sqlite3.Connection, outbox_item: OutboxItem, now: datetime, message_id: int | None
) -> None:
    """Makes a parcel or gives the held one of that key its content; one that is over stays as it is. `message_id`: the
    row of the conversation that has the same words."""
    values = _values(outbox_item, now) | {"message_id": message_id}
    connection.execute(
        f"""
        {INSERT} ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, next_at = excluded.next_at
        WHERE done_at IS NULL AND dead_at IS NULL
        """,
        values,
    )
    connection.execute(f"UPDATE outbox SET message_id = :message_id WHERE key = :key AND {OPEN}", values)


def _names(platforms: Collection[str] | None) -> str | None:
    return None if platforms is None else rows.dump(list(platforms))


def _values(outbox_item: OutboxItem, now: datetime) -> dict[str, object]:
    return {
        "key": rows.clean(outbox_item.key),
        "lane": rows.clean(outbox_item.address.key),
        "kind": outbox_item.kind,
        "payload": rows.dump_answer(outbox_item.answer),
        "posted": rows.dump(list(outbox_item.posted)),
        "reply_to": rows.maybe_clean(outbox_item.reply_to),
        "attempts": outbox_item.attempts,
        "next_at": rows.maybe_timestamp(outbox_item.next_at),
        "created_at": rows.timestamp(now),
    }


def _outbox_item(row: sqlite3.Row) -> OutboxItem:
    return OutboxItem(
        id=row["id"],
        key=row["key"],
        kind=row["kind"],
        address=Address.parse(row["lane"]),
        answer=rows.load_answer(row["payload"]),
        posted=tuple(json.loads(row["posted"])),
        reply_to=row["reply_to"],
        attempts=row["attempts"],
        next_at=rows.maybe_moment(row["next_at"]),
        is_over=row["done_at"] is not None or row["dead_at"] is not None,
    )
