"""What must leave, once: an item for each answer, reminder and notice, in order within its address.

An item is held (a live process works on it), due, done or dead. Its unique key keeps it from leaving twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Row
from core.store.inbox import DELETE_FAILED, KEPT
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.types import Address, Answer, ErasureEpoch

OutboxKind = Literal["answer", "reminder", "notice", "memory"]

INTENDED = "?"
"""Stands in `posted` for a message that a process began to make, and of which it is not known whether it was made."""
EXPIRED = "expired: the process ended before it was answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """A row of the outbox. `key` is unique for ever. answer None: a turn is at work on it. `posted`: ids of the
    platform messages made for it, in order. `reply_to`: a message, or `@` and the id of the person whose interaction it
    answers. next_at None: held by a live turn. is_over: delivered or dead."""

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


OPEN = "done_at IS NULL AND dead_at IS NULL"
HEADS = f"""
SELECT MIN(id) FROM outbox WHERE {OPEN} AND payload IS NOT NULL AND (
    :platforms IS NULL OR {in_list("substr(lane, 1, instr(lane, ':') - 1)", "platforms")}
) GROUP BY lane, CASE kind WHEN 'notice' THEN id END
"""
"""The oldest item with content of each address: only that one may leave, so that answers keep their order. Notices
stand in no order: one that cannot be delivered holds up nothing."""
DUE = f"SELECT * FROM outbox WHERE id IN ({HEADS}) AND next_at <= :now ORDER BY id LIMIT :limit"
NEXT_AT = f"SELECT MIN(next_at) AS next_at FROM outbox WHERE id IN ({HEADS})"
OLDER = """
SELECT 1 FROM outbox AS older JOIN outbox AS item ON item.lane = older.lane AND older.id < item.id
WHERE item.key = :key AND older.done_at IS NULL AND older.dead_at IS NULL AND older.payload IS NOT NULL
    AND 'notice' NOT IN (older.kind, item.kind)
LIMIT 1
"""
COUNTS = f"""
SELECT
    COALESCE(SUM({OPEN} AND next_at IS NULL), 0) AS held,
    COALESCE(SUM({OPEN} AND next_at IS NOT NULL), 0) AS due,
    COALESCE(SUM(dead_at IS NOT NULL), 0) AS dead
FROM outbox
"""

INSERT = """
INSERT INTO outbox (key, lane, kind, payload, posted, reply_to, attempts, next_at, created_at)
VALUES (:key, :address, :kind, :payload, :posted, :reply_to, :attempts, :next_at, :created_at)
"""
INSERT_OR_FILL = f"""
{INSERT} ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, next_at = excluded.next_at
WHERE {OPEN}
"""
PUT = f"{INSERT_OR_FILL} AND payload IS NULL"
SET_POSTED_ID = """
UPDATE messages SET posted_id = NULLIF(json_extract(outbox.posted, '$[0]'), '?')
FROM outbox WHERE outbox.key = :key AND messages.id = outbox.message_id
"""
SET_POSTED = "UPDATE outbox SET posted = :posted WHERE key = :key"
DONE = """
UPDATE outbox SET done_at = :now, dead_at = NULL, payload = NULL, next_at = NULL, error = NULL
WHERE key = :key AND done_at IS NULL
"""
UNSEEN = """
SELECT * FROM outbox WHERE dead_at IS NOT NULL AND payload IS NOT NULL AND reply_to LIKE '@%' ORDER BY id
"""
POSTPONE = f"""
UPDATE outbox SET attempts = attempts + 1, next_at = :next_at, error = :error WHERE key = :key AND {OPEN}
"""
DEAD = f"UPDATE outbox SET dead_at = :now, next_at = NULL, error = :error WHERE key = :key AND {OPEN}"
CLAIM = f"UPDATE outbox SET next_at = NULL WHERE key = :key AND {OPEN}"
EXPIRE = f"""
UPDATE outbox SET dead_at = :now, error = :error
WHERE {OPEN} AND payload IS NULL AND kind = 'answer' AND lane NOT IN (
    SELECT {rows.LANE} FROM inbox JOIN addresses ON addresses.id = inbox.address_id
)
"""
RELEASE = f"UPDATE outbox SET next_at = :now WHERE {OPEN} AND payload IS NOT NULL AND next_at IS NULL"
DELETE_DONE = "DELETE FROM outbox WHERE done_at < :before AND NOT (kind = 'memory' AND key LIKE '%:on_memory_write')"
"""How far notes are synced is known by their items only."""


class Outbox:
    """The outbox in state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(self, outbox_item: OutboxItem) -> OutboxItem:
        """What an earlier process made of this item; else the item."""
        statement, values = "SELECT * FROM outbox WHERE key = :key", {"key": outbox_item.key}
        row = await self._database.fetch_one(statement, values)
        return outbox_item if row is None else _outbox_item(row)

    async def put(self, outbox_item: OutboxItem, *, is_own: bool = False, epoch: ErasureEpoch | None = None) -> bool:
        """Makes an item with its answer, due at `next_at` (None: this process delivers it), or fills the open one of
        that key if it has none yet, or `is_own`: held by this process. False where it has been made before."""
        statement = INSERT_OR_FILL if is_own else PUT
        return bool(await self._database.execute(statement, _values(outbox_item, self._clock.now()), epoch))

    async def set_posted(self, key: str, posted: Sequence[str]) -> None:
        """The platform messages made so far, behind them `INTENDED` while one is being made."""
        await self._change(SET_POSTED, key, posted=_posted(posted))

    async def due(self, now: datetime, platforms: Collection[str] | None = None, limit: int = 50) -> list[OutboxItem]:
        """Items to deliver now, oldest first, one for each address beside its notices; platforms None: all."""
        values = {"now": now, "platforms": _list(platforms), "limit": limit}
        return [_outbox_item(row) for row in await self._database.fetch_all(DUE, values)]

    async def next_at(self, platforms: Collection[str] | None = None) -> datetime | None:
        """When the next item for these platforms is due."""
        row = await self._database.fetch_one(NEXT_AT, {"platforms": _list(platforms)})
        return rows.maybe_moment(row["next_at"]) if row else None

    async def is_behind(self, key: str) -> bool:
        """Whether an older item with content has yet to leave for the same address."""
        return await self._database.fetch_one(OLDER, {"key": key}) is not None

    async def done(self, key: str, posted: Sequence[str] = ()) -> None:
        """Marks the item delivered by these messages, if any are named, and deletes its content, which stands in the
        conversation; the message there gets the platform's id of its first part."""
        values = {"key": key, "now": self._clock.now(), "posted": _posted(posted)}

        def work(connection: Connection) -> None:
            if posted:
                connection.execute(SET_POSTED, values)
            connection.execute(SET_POSTED_ID, values)
            connection.execute(DONE, values)

        await self._database.write(work)

    async def postpone(self, key: str, next_at: datetime, error: str) -> None:
        """Counts a failed attempt."""
        await self._change(POSTPONE, key, next_at=next_at, error=error)

    async def mark_dead(self, key: str, error: str) -> None:
        """Failed for good: kept for the owner to see."""
        await self._change(DEAD, key, now=self._clock.now(), error=error)

    async def unseen(self) -> list[OutboxItem]:
        """Answers to interactions that no way led to, oldest first."""
        return [_outbox_item(row) for row in await self._database.fetch_all(UNSEEN)]

    async def claim(self, key: str) -> None:
        """This process delivers the item itself: not due until postponed."""
        await self._change(CLAIM, key)

    async def counts(self) -> dict[str, int]:
        """How many are held, due (now or later) and dead."""
        row = await self._database.fetch_one(COUNTS)
        return {name: row[name] if row else 0 for name in ("held", "due", "dead")}

    async def recover(self, now: datetime) -> None:
        """At the start of a process: what the one before had claimed is due again; what is 30 days old is deleted.

        An answer without content stays held while an inbox entry waits at its address, whose turn is redone; else it
        is dead. Reminders are filled by their jobs.
        """

        def work(connection: Connection) -> None:
            values = {"now": now, "error": EXPIRED, "before": now - KEPT}
            for statement in (EXPIRE, RELEASE, DELETE_DONE, DELETE_FAILED):
                connection.execute(statement, values)

        await self._database.write(work)

    async def _change(self, statement: str, key: str, **values: object) -> None:
        await self._database.execute(statement, {"key": key, **values})


def fill_outbox_item(connection: Connection, outbox_item: OutboxItem, now: datetime, message_id: int | None) -> None:
    """Makes an item or fills the held one of that key, unless it is over; one without an answer is only held.
    `message_id`: of the same words in the conversation."""
    values = _values(outbox_item, now) | {"message_id": message_id}
    connection.execute(PUT if outbox_item.answer is None else INSERT_OR_FILL, values)
    if outbox_item.answer is not None:
        connection.execute(f"UPDATE outbox SET message_id = :message_id WHERE key = :key AND {OPEN}", values)


def _posted(message_ids: Sequence[str]) -> str:
    return rows.dump([rows.clean(message_id) for message_id in message_ids])


def _list(platforms: Collection[str] | None) -> str | None:
    return None if platforms is None else list_value(platforms)


def _values(outbox_item: OutboxItem, now: datetime) -> dict[str, object]:
    return {
        **rows.values_of(outbox_item),
        "payload": rows.dump_answer(outbox_item.answer),
        "posted": rows.dump(list(outbox_item.posted)),
        "created_at": now,
    }


def _outbox_item(row: Row) -> OutboxItem:
    return OutboxItem(
        **rows.columns(row, "id", "key", "kind", "reply_to", "attempts"),
        address=Address.parse(row["lane"]),
        answer=rows.load_answer(row["payload"]),
        posted=tuple(json.loads(row["posted"])),
        next_at=rows.maybe_moment(row["next_at"]),
        is_over=row["done_at"] is not None or row["dead_at"] is not None,
    )
