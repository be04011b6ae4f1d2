"""What came in and is not answered yet, what must leave once, and the dead letters: what could not be read or handled.

An entry of the inbox holds its message only until it is closed; then its id alone stays, so that it is never taken
twice. An item of the outbox (an answer, a reminder, a notice) is held (a live process works on it), due, done or dead;
items leave in order within their address, and its unique key keeps each from leaving twice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from config.masking import masked
from core.ports import Clock
from core.store import rows
from core.store.actions import CLAIM_QUESTIONS
from core.store.incognito import IncognitoRegistry
from core.store.rows import Connection, Row
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import write_text
from core.store.sqlite.schema import in_list, list_value
from core.types import Address, Answer, ErasureEpoch, Inbound

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
DEAD_LETTERS = "SELECT failed_at, platform, error FROM raw_updates WHERE failed_at NOT NULL ORDER BY 1, update_id"
DELETE_FAILED = "DELETE FROM raw_updates WHERE failed_at < :before"
ACCEPT = """
INSERT INTO inbox (id, address_id, external_id, inbound, received_at)
SELECT MAX(CAST(:received_at * 1e6 AS INTEGER), 1 + (SELECT COALESCE(MAX(id), 0) FROM inbox)),
    :address, :external, :inbound, :received_at
WHERE NOT EXISTS (SELECT 1 FROM messages WHERE address_id = :address AND external_id = :external)
AND NOT EXISTS (SELECT 1 FROM answered WHERE address_id = :address AND external_id = :external)
ON CONFLICT (address_id, external_id) DO NOTHING
"""
KNOWN = " UNION ALL ".join(
    f"SELECT 1 FROM {table} WHERE address_id = ({rows.ADDRESS}) AND external_id = :external"
    for table in ("inbox", "messages", "answered")
)
SET_LINK_BASE = "UPDATE addresses SET link_base = :link_base WHERE id = :address AND link_base IS NOT :link_base"
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
    """A row of the inbox: an accepted event that has not been answered yet. No later one gets its id, once closed."""

    id: int
    inbound: Inbound
    received_at: datetime


class Inbox:
    """The inbox in state.db. Of an event at an incognito address only the ids are stored. `on_set_aside` gets the
    platform of each dead letter."""

    def __init__(self, database: Database, clock: Clock, incognito: IncognitoRegistry | None = None) -> None:
        self._database = database
        self._clock = clock
        self._incognito = incognito
        self.on_set_aside: Callable[[str], Awaitable[None]] | None = None

    def is_incognito(self, address: Address) -> bool:
        return self._incognito is not None and address in self._incognito.conversations

    async def set_aside(self, platform: str, update_id: int, raw: object, error: str) -> None:
        """Keeps an update that cannot be read or handled, for 30 days; of one that names an incognito chat the number
        alone. `raw` is anything that JSON can hold."""
        now, written = self._clock.now(), json.dumps(raw)
        if self._incognito is not None and self._incognito.is_named(platform, written):
            written = "{}"
        values = {"platform": platform, "update_id": update_id, "raw": written, "error": masked(error), "now": now}

        def work(connection: Connection) -> None:
            connection.execute(DELETE_FAILED, {"before": now - KEPT})
            connection.execute(SET_ASIDE, values)

        await self._database.write(work)
        if self.on_set_aside is not None:
            await self.on_set_aside(platform)

    async def set_entry_aside(self, entry_id: int, platform: str, error: str) -> None:
        """The same for an entry, which is closed."""
        values = {"id": entry_id, "error": masked(error), "now": self._clock.now()}

        def work(connection: Connection) -> int:
            is_there = connection.execute(SET_ENTRY_ASIDE, values).rowcount
            close_entries(connection, [entry_id], self._clock.now())
            return is_there

        if await self._database.write(work) and self.on_set_aside is not None:
            await self.on_set_aside(platform)

    async def dead_letters(self) -> list[tuple[datetime, str, str]]:
        """When, from which platform and why something was set aside in the last 30 days, oldest first."""
        found = await self._database.fetch_all(DEAD_LETTERS)
        return [(rows.moment(failed_at), platform, error or "") for failed_at, platform, error in found]

    async def drop_dead_letters(self) -> int:
        """Deletes them and says how many there were."""
        return await self._database.execute(DELETE_FAILED, {"before": self._clock.now()})

    async def set_aside_ids(self, platform: str) -> frozenset[int]:
        """Of the updates of a platform that were set aside."""
        statement = "SELECT update_id FROM raw_updates WHERE platform = :platform"
        found = await self._database.fetch_all(statement, {"platform": platform})
        return frozenset(row["update_id"] for row in found)

    async def accept(self, inbound: Inbound, received_at: datetime) -> int | None:
        """Stores an event and returns the id of its entry; None when it is known. What makes an event unique at its
        address: an edit or a deletion carries the id of its message."""
        taker = f"{inbound.kind}:{inbound.message_id}"

        def work(connection: Connection) -> int | None:
            values = {
                "address": rows.ensure_address(connection, inbound.address),
                "external": _external_id(inbound),
                "inbound": self._stored(inbound),
                "received_at": received_at,
                "link_base": inbound.link_base,
            }
            if inbound.link_base:
                connection.execute(SET_LINK_BASE, values)
            inserted = connection.execute(ACCEPT, values)
            if not inserted.rowcount:
                return None
            asked = {"address": inbound.address, "account": inbound.account, "taker": taker, "now": received_at}
            connection.execute(CLAIM_QUESTIONS, asked)
            return inserted.lastrowid

        return await self._database.write(work, inbound.epoch, is_short=True)

    async def is_known(self, inbound: Inbound) -> bool:
        """Whether the event was accepted before."""
        values = {**rows.place(inbound.address), "external": _external_id(inbound)}
        return await self._database.fetch_one(KNOWN, values) is not None

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
            inbound = replace(inbound, text="", command=None, reply_to=None, quoted=None, attachments=())
        return rows.dump_inbound(inbound)


def _external_id(inbound: Inbound) -> str:
    if inbound.kind == "message":
        return inbound.message_id
    return f"{inbound.kind}:{inbound.message_id}:{rows.timestamp(inbound.sent_at)!r}"


def close_entries(connection: Connection, entry_ids: Sequence[int], now: datetime) -> None:
    """Deletes entries; of those that left no message the id is kept, for a redelivery after a crash."""
    values = {"ids": list_value(entry_ids), "now": now}
    if connection.execute(REMEMBER, values).rowcount:
        connection.execute("DELETE FROM answered WHERE at < :before", {"before": now - KEPT})
    connection.execute(f"DELETE FROM inbox WHERE {in_list('id', 'ids')}", values)


OutboxKind = Literal["answer", "reminder", "notice", "memory"]

INTENDED = "?"
"""Stands in `posted` for a message that a process began to make, and of which it is not known whether it was made."""
OF_JOBS = ("job:", "turn:cron:")
"""How the keys of reminders and of the answers to scheduled questions begin."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxCounts:
    """How many items are held, due (now or later) and dead; `error`: why the latest of those that failed did."""

    held: int
    due: int
    dead: int
    error: str = field(default="", compare=False)


OPEN = "done_at IS NULL AND dead_at IS NULL"
HEADS = f"""
SELECT MIN(id) FROM outbox WHERE {OPEN} AND payload IS NOT NULL AND (
    :platforms = 'null' OR {in_list("substr(lane, 1, instr(lane, ':') - 1)", "platforms")}
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
_OF_PREFIX = "substr(key, 1, length(:prefix)) = :prefix"
COUNTS = f"""
SELECT
    COALESCE(SUM({OPEN} AND next_at IS NULL), 0) AS held,
    COALESCE(SUM({OPEN} AND next_at IS NOT NULL), 0) AS due,
    COALESCE(SUM(dead_at IS NOT NULL), 0) AS dead,
    COALESCE(substr(MAX(CASE WHEN error IS NOT NULL THEN printf('%020d', id) || error END), 21), '') AS error
FROM outbox WHERE {_OF_PREFIX}
"""
RETRY_DEAD = f"""
UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = :now
WHERE {_OF_PREFIX} AND dead_at IS NOT NULL AND payload IS NOT NULL
"""

INSERT_OR_FILL = f"""
INSERT INTO outbox (key, lane, kind, payload, posted, message_id, reply_to, attempts, next_at, created_at)
VALUES (:key, :address, :kind, :payload, :posted, :message_id, :reply_to, :attempts, :next_at, :created_at)
ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, next_at = excluded.next_at,
    message_id = COALESCE(excluded.message_id, message_id)
WHERE {OPEN}
"""
PUT = f"{INSERT_OR_FILL} AND payload IS NULL"
SET_POSTED_ID = """
UPDATE messages SET posted_id = NULLIF(json_extract(outbox.posted, '$[0]'), '?')
FROM outbox WHERE outbox.key = :key AND messages.id = outbox.message_id
"""
SET_POSTED = "UPDATE outbox SET posted = :posted WHERE key = :key"
DONE = """
UPDATE outbox SET posted = COALESCE(:posted, posted), done_at = :now, dead_at = NULL, payload = NULL, next_at = NULL,
    error = NULL
WHERE key = :key AND done_at IS NULL
"""
UNSEEN = """
SELECT * FROM outbox WHERE dead_at IS NOT NULL AND payload IS NOT NULL AND reply_to LIKE '@%' ORDER BY id
"""
FAIL = f"""
UPDATE outbox SET attempts = attempts + 1, next_at = :next_at, dead_at = CASE WHEN :next_at IS NULL THEN :now END,
    error = :error
WHERE key = :key AND {OPEN}
"""
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


@dataclass(eq=False)
class Outbox:
    """The outbox in state.db. `on_done` takes part in the transaction in which an item of a job is done, before its
    content goes."""

    database: Database
    clock: Clock
    on_done: Callable[[Connection, str], None] | None = None

    async def find(self, outbox_item: OutboxItem) -> OutboxItem:
        """What was made of this item, here (also of what is being written) or by an earlier process; else the item."""
        of_key = ("SELECT * FROM outbox WHERE key = :key", {"key": outbox_item.key})
        row = await self.database.write(lambda connection: connection.execute(*of_key).fetchone())
        return outbox_item if row is None else _outbox_item(row)

    async def put(self, outbox_item: OutboxItem, *, is_own: bool = False, epoch: ErasureEpoch | None = None) -> bool:
        """Makes an item with its answer, due at `next_at` (None: this process delivers it), or fills the open one of
        that key if it has none yet, or `is_own`: held by this process. False where it has been made before."""
        statement = INSERT_OR_FILL if is_own else PUT
        return bool(await self.database.execute(statement, _values(outbox_item, self.clock.now()), epoch))

    async def set_posted(self, key: str, posted: Sequence[str]) -> None:
        """The platform messages made so far, behind them `INTENDED` while one is being made."""
        await self._change(SET_POSTED, key, posted=rows.dump(list(posted)))

    async def due(self, now: datetime, platforms: Sequence[str] | None = None, limit: int = 50) -> list[OutboxItem]:
        """Items to deliver now, oldest first, one for each address beside its notices; platforms None: all."""
        values = {"now": now, "platforms": rows.dump(platforms), "limit": limit}
        return [_outbox_item(row) for row in await self.database.fetch_all(DUE, values)]

    async def next_at(self, platforms: Sequence[str] | None = None) -> datetime | None:
        """When the next item for these platforms is due."""
        row = await self.database.fetch_one(NEXT_AT, {"platforms": rows.dump(platforms)})
        return rows.maybe_moment(row["next_at"]) if row else None

    async def is_behind(self, key: str) -> bool:
        """Whether an older item with content has yet to leave for the same address."""
        return await self.database.fetch_one(OLDER, {"key": key}) is not None

    async def done(self, key: str, posted: Sequence[str] = ()) -> None:
        """Marks the item delivered by these messages, if any are named, and deletes its content, which stands in the
        conversation; the message there gets the platform's id of its first part."""
        values = {"key": key, "now": self.clock.now(), "posted": rows.dump(list(posted)) if posted else None}
        is_of_job = self.on_done is not None and key.startswith(OF_JOBS)

        def work(connection: Connection) -> None:
            if is_of_job and self.on_done is not None:
                self.on_done(connection, key)
            connection.execute(DONE, values)
            connection.execute(SET_POSTED_ID, values)

        await write_text(self.database, work, is_short=not is_of_job)

    async def fail(self, key: str, error: str, next_at: datetime | None = None) -> None:
        """Counts a failed attempt. next_at None: it failed for good, and is kept for the owner to see."""
        await self._change(FAIL, key, error=error, next_at=next_at, now=self.clock.now())

    async def unseen(self) -> list[OutboxItem]:
        """Answers to interactions that no way led to, oldest first."""
        return [_outbox_item(row) for row in await self.database.fetch_all(UNSEEN)]

    async def claim(self, key: str) -> None:
        """This process delivers the item itself: not due until postponed."""
        await self._change(CLAIM, key)

    async def counts(self, prefix: str = "") -> OutboxCounts:
        """Of the items whose keys begin so."""
        (row,) = await self.database.fetch_all(COUNTS, {"prefix": prefix})
        return OutboxCounts(**row)

    async def retry_dead(self, prefix: str) -> int:
        """Makes those whose keys begin so due again; returns how many."""
        return await self.database.execute(RETRY_DEAD, {"prefix": prefix, "now": self.clock.now()})

    async def recover(self, now: datetime) -> None:
        """At the start of a process: what the one before had claimed is due again; what is 30 days old is deleted. An
        answer without content stays held while an inbox entry waits at its address, whose turn is redone; else it is
        dead. Reminders are filled by their jobs."""

        def work(connection: Connection) -> None:
            values = {"now": now, "error": EXPIRED, "before": now - KEPT}
            for statement in (EXPIRE, RELEASE, DELETE_DONE, DELETE_FAILED):
                connection.execute(statement, values)

        await self.database.write(work)

    async def _change(self, statement: str, key: str, **values: object) -> None:
        await self.database.write(lambda one: one.execute(statement, {"key": key, **values}), is_short=True)


def fill_outbox_item(connection: Connection, outbox_item: OutboxItem, now: datetime, message_id: int | None) -> None:
    """Makes an item or fills the held one of that key, unless it is over; one without an answer is only held.
    `message_id`: of the same words in the conversation."""
    statement = PUT if outbox_item.answer is None else INSERT_OR_FILL
    connection.execute(statement, _values(outbox_item, now, message_id))


def _values(outbox_item: OutboxItem, now: datetime, message_id: int | None = None) -> dict[str, object]:
    return {
        **rows.values_of(outbox_item),
        "payload": rows.dump_answer(outbox_item.answer),
        "posted": rows.dump(list(outbox_item.posted)),
        "message_id": message_id,
        "created_at": now,
    }


def _outbox_item(row: Row) -> OutboxItem:
    return OutboxItem(
        **rows.fields_in(row, OutboxItem),
        address=Address.parse(row["lane"]),
        answer=rows.load_answer(row["payload"]),
        is_over=row["done_at"] is not None or row["dead_at"] is not None,
    )
