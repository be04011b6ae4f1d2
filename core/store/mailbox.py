"""The inbox of events that aren't answered yet, and the outbox of items to deliver exactly once.

An inbox entry contains its event until the entry is closed. After that, only the event's id is
kept, so that a redelivered event isn't accepted twice.

An outbox item is an answer, a reminder, a notice or a task for a memory service. It has one of four
states: held (a running process works on it), due, done or dead (its delivery has failed). Items for
one address are delivered in order, except notices. Each item has a unique key.

Dead letters are updates and entries that Mneme can't read or handle.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from config.masking import mask_secrets
from core.ports import Clock
from core.store import message_ids, rows
from core.store.actions import CLAIM_QUESTIONS, ButtonAction, insert_actions
from core.store.engine import Connection, Database, Row, in_list
from core.store.incognito import IncognitoRegistry, is_any_mentioned
from core.store.ownership.chats import ChatOwnership
from core.store.visibility import encode_list
from core.types import Address, Answer, ErasureEpoch, Inbound

_INSERT_DEAD_LETTER = """
INSERT INTO raw_updates (platform, update_id, raw, error, failed_at)
VALUES (:platform, :update_id, :raw, :error, :now)
ON CONFLICT (platform, update_id)
    DO UPDATE SET error = excluded.error, failed_at = excluded.failed_at
"""
_INSERT_DEAD_ENTRY = """
INSERT INTO raw_updates (platform, update_id, raw, error, failed_at)
SELECT addresses.platform,
    (SELECT MIN(COALESCE(MIN(update_id), 0), 0) - 1 FROM raw_updates), inbound, :error, :now
FROM inbox JOIN addresses ON addresses.id = inbox.address_id WHERE inbox.id = :id
"""
"""Stores an inbox entry as a dead letter. Its number is negative, unlike the numbers of updates."""
_SELECT_DEAD_LETTERS = """
SELECT failed_at, platform, error FROM raw_updates WHERE failed_at IS NOT NULL ORDER BY 1, update_id
"""
DELETE_LETTERS = "DELETE FROM raw_updates WHERE failed_at < :before"
_INSERT_ENTRY = """
INSERT INTO inbox (id, address_id, external_id, inbound, received_at)
SELECT candidates.id, :address, :external, :inbound, :received_at
FROM (SELECT CAST(:received_at * 1e6 AS BIGINT) AS id
    UNION ALL SELECT 1 + COALESCE(MAX(id), 0) FROM inbox) AS candidates
WHERE NOT EXISTS (SELECT 1 FROM messages WHERE address_id = :address AND external_id = :external)
AND NOT EXISTS (
    SELECT 1 FROM answered_events WHERE address_id = :address AND external_id = :external
)
ORDER BY candidates.id DESC LIMIT 1
ON CONFLICT (address_id, external_id) DO NOTHING
RETURNING id
"""
"""Stores an event unless it is known. Its id is the time in microseconds or the next free id, so no
later entry gets the id of a closed one."""
_SET_LINK_BASE = """
UPDATE addresses SET link_base = :link_base WHERE id = :address AND link_base IS NOT :link_base
"""
_SELECT_WAITING = """
SELECT inbox.id, inbound, received_at, platform
FROM inbox JOIN addresses ON addresses.id = inbox.address_id
WHERE :platform IS NULL OR platform = :platform ORDER BY inbox.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxEntry:
    """An event that was accepted and isn't answered yet."""

    # Never reused for another entry.
    id: int
    inbound: Inbound
    received_at: datetime


class Inbox:
    """Accepts and closes events. Events at an incognito address are stored without their text."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        incognito: IncognitoRegistry | None = None,
        prepare_notice: Callable[[str], Awaitable[Notice | None]] | None = None,
        on_notice: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self.chat_messages = message_ids.ChatMessages(database)
        self.sent_menus = message_ids.SentMenus(database)
        self.unread_bounds = message_ids.UnreadBounds(database)
        self._clock = clock
        self._incognito = incognito
        # Returns the owner's notice of a dead letter from a platform.
        self._prepare_notice = prepare_notice
        # Called after a notice was stored.
        self._on_notice = on_notice

    def is_incognito(self, address: Address) -> bool:
        return self._incognito is not None and address in self._incognito.conversations

    async def store_dead_letter(
        self, platform: str, update_id: int, raw: object, error: str
    ) -> None:
        """Keep an update that can't be read or handled as a dead letter.

        `raw` is any JSON value. If it contains the id of an incognito chat, an empty object is
        stored instead.
        """
        now = self._clock.now()
        raw_json = json.dumps(raw)
        values: dict[str, object] = {"platform": platform, "update_id": update_id}
        values |= {"raw": raw_json, "error": mask_secrets(error), "now": now}

        def write(connection: Connection) -> bool:
            if is_any_mentioned(connection, platform, raw_json):
                values["raw"] = "{}"
            connection.execute(DELETE_LETTERS, {"before": now - message_ids.RETENTION})
            return connection.execute(_INSERT_DEAD_LETTER, values).rowcount > 0

        await self._write_dead_letter(platform, write)

    async def close_as_dead_letter(self, entry_id: int, platform: str, error: str) -> None:
        """Close an entry that can't be read or handled, and keep it as a dead letter."""
        now = self._clock.now()
        values = {"id": entry_id, "error": mask_secrets(error), "now": now}

        def write(connection: Connection) -> bool:
            is_open = connection.execute(_INSERT_DEAD_ENTRY, values).rowcount > 0
            close_entries(connection, [entry_id], now)
            return is_open

        await self._write_dead_letter(platform, write)

    async def _write_dead_letter(self, platform: str, write: Callable[[Connection], bool]) -> None:
        """Run a write and, if it returns True, store the owner's notice in its transaction."""
        notice = None if self._prepare_notice is None else await self._prepare_notice(platform)
        now = self._clock.now()

        def write_with_notice(connection: Connection) -> None:
            if write(connection) and notice is not None:
                store_notice(connection, notice, now)

        await self._database.write(write_with_notice)
        if notice is not None:
            self._on_notice()

    async def list_dead_letters(self) -> list[tuple[datetime, str, str]]:
        """List the time, platform and error of each dead letter, oldest first."""
        letters = await self._database.fetch_all(_SELECT_DEAD_LETTERS)
        return [
            (rows.to_datetime(failed_at), platform, error or "")
            for failed_at, platform, error in letters
        ]

    async def delete_dead_letters(self) -> int:
        """Delete all dead letters and return their number."""
        return await self._database.execute(DELETE_LETTERS, {"before": self._clock.now()})

    async def list_dead_letter_ids(self, platform: str) -> frozenset[int]:
        """Return the update numbers of a platform's dead letters."""
        statement = "SELECT update_id FROM raw_updates WHERE platform = :platform"
        letters = await self._database.fetch_all(statement, {"platform": platform})
        return frozenset(row["update_id"] for row in letters)

    async def accept(self, inbound: Inbound, received_at: datetime) -> int | None:
        """Store an event and return the id of its entry, or None if the event was accepted before.

        A new event also claims the questions that Mneme has asked its account at its address.
        """
        taker = f"{inbound.kind}:{inbound.message_id}"

        def insert(connection: Connection) -> int | None:
            """Store the entry with its address. Returns None if it is already stored."""
            values = {
                "address": rows.ensure_address(connection, inbound.address),
                "external": _external_id(inbound),
                "inbound": self._encode(inbound),
                "received_at": received_at,
                "link_base": inbound.link_base,
            }
            if inbound.link_base:
                connection.execute(_SET_LINK_BASE, values)
            new_entries = connection.execute(_INSERT_ENTRY, values).fetchall()
            if not new_entries:
                return None
            claim = {"address": inbound.address, "account": inbound.account, "taker": taker}
            connection.execute(CLAIM_QUESTIONS, {**claim, "now": received_at})
            return int(new_entries[0]["id"])

        entry_id = await self._database.write(insert, inbound.epoch, is_short=True)
        if entry_id is not None and self._incognito is not None and self._incognito.conversations:
            self._incognito.take(inbound.address, inbound.account, taker, received_at)
        return entry_id

    async def is_known(self, inbound: Inbound) -> bool:
        """Return whether the event was accepted before."""
        values = {**rows.address_values(inbound.address), "external": _external_id(inbound)}
        return await self._database.fetch_one(message_ids.SELECT_KNOWN, values) is not None

    async def load_last_message_ids(self, platform: str) -> dict[Address, str]:
        """Return the latest message id of each address of a platform.

        The platform's ids must be numbers that grow with time and all have the same length.
        """
        return await message_ids.load_last_message_ids(self._database, platform)

    async def list_waiting(self, platform: str | None = None) -> list[InboxEntry]:
        """List the open entries of a platform, or of all platforms, oldest first.

        Unreadable entries are closed and kept as dead letters.
        """
        entries = []
        for row in await self._database.fetch_all(_SELECT_WAITING, {"platform": platform}):
            try:
                inbound = rows.load_inbound(row["inbound"])
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                reason = f"it cannot be read: {type(error).__name__}"
                await self.close_as_dead_letter(row["id"], row["platform"], reason)
                continue
            received_at = rows.to_datetime(row["received_at"])
            entries.append(InboxEntry(id=row["id"], inbound=inbound, received_at=received_at))
        return entries

    async def update(self, entry: InboxEntry) -> None:
        """Replace the event of an open entry."""
        values = {"id": entry.id, "inbound": self._encode(entry.inbound)}
        await self._database.execute("UPDATE inbox SET inbound = :inbound WHERE id = :id", values)

    async def close(self, entry_ids: Sequence[int]) -> None:
        """Close entries, and keep the ids of events that weren't stored as messages."""
        if entry_ids:
            now = self._clock.now()
            await self._database.write(lambda connection: close_entries(connection, entry_ids, now))

    def _encode(self, inbound: Inbound) -> str:
        """Encode an event as JSON. At an incognito address, leave out its text and attachments."""
        if self.is_incognito(inbound.address):
            inbound = replace(
                inbound, text="", command=None, reply_to=None, quote=None, attachments=()
            )
        return rows.dump_inbound(inbound)


def _external_id(inbound: Inbound) -> str:
    """Return an id that is unique among the events at an address.

    A message may have several edits, deletions and button presses, so their ids also contain the
    kind and time, e.g. "edit:12:1790000000.5".
    """
    if inbound.kind == "message":
        return inbound.message_id
    return f"{inbound.kind}:{inbound.message_id}:{rows.to_timestamp(inbound.sent_at)!r}"


def close_entries(connection: Connection, entry_ids: Sequence[int], now: datetime) -> None:
    """Delete entries, and keep the ids of events that were never stored as messages.

    These ids stop an event from being accepted again if the platform redelivers it after a crash.
    """
    values = {"ids": encode_list(entry_ids), "now": now}
    if connection.execute(message_ids.REMEMBER_IDS, values).rowcount:
        connection.execute(
            "DELETE FROM answered_events WHERE at < :before",
            {"before": now - message_ids.RETENTION},
        )
    connection.execute(f"DELETE FROM inbox WHERE {in_list('id', 'ids')}", values)


# --- Outbox ---

OutboxKind = Literal["answer", "reminder", "notice", "memory"]

INTENT_MARK = "?"
"""The first character of the last entry of `posted` while a message is being sent.

The rest of the entry is the id of the previous message in the chat. If the entry is still there
after a crash, the message may or may not have been sent.
"""
JOB_KEY_PREFIXES = ("job:", "turn:cron:")
"""The prefixes of the keys of reminders and of answers to scheduled questions."""
EXPIRED_ERROR = "expired: the process ended before it was answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """An answer, reminder, notice or sync task to deliver once to an address."""

    # Unique among all items, including delivered ones.
    key: str
    kind: OutboxKind
    address: Address
    # None while a turn is producing the answer.
    answer: Answer | None = None
    # Ids of the platform messages that were sent for the item, in order.
    posted: tuple[str, ...] = ()
    # Id of the message that the item answers. For an interaction: "@" and the person's user id.
    reply_to: str | None = None
    attempts: int = 0
    # None while a running turn holds the item.
    next_at: datetime | None = None
    # When the item was stored; None if it isn't stored yet.
    created_at: datetime | None = field(default=None, compare=False)
    # Whether the item was delivered or is dead.
    is_over: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice that is stored in one transaction with what it is about."""

    item: OutboxItem
    # The key of an item whose text the notice repeats. Both are erased together.
    sibling_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxCounts:
    """The numbers of undelivered items by state, and the latest error."""

    held: int
    # Due now or later.
    due: int
    dead: int
    # Why the latest failed item failed.
    error: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadItem:
    """An item whose delivery has failed for the last time. Its content is kept."""

    item: OutboxItem
    dead_at: datetime
    error: str
    # The cause of a `core.errors.ChatRefused`, or "".
    cause: str = ""


IS_OPEN = "done_at IS NULL AND dead_at IS NULL"
_PLATFORM = "substr(address, 1, MAX(instr(address, ':') - 1, 0))"
# Replaced by the condition for the items of this gateway. See `ChatOwnership.own_items`.
_OWN = "/* own */"
_FIRST_IDS = f"""
SELECT MIN(id) FROM outbox WHERE {IS_OPEN} AND payload IS NOT NULL AND (
    :platforms = 'null' OR {in_list(_PLATFORM, "platforms")}
) {_OWN} GROUP BY address, CASE kind WHEN 'notice' THEN id END
"""
"""Selects the oldest open item with content of each address. Later items wait for that item.

Notices aren't ordered, so a notice that can't be delivered doesn't delay other items.
"""
_SELECT_DUE = f"""
SELECT * FROM outbox WHERE id IN ({_FIRST_IDS}) AND next_at <= :now ORDER BY id LIMIT :limit
"""
_SELECT_NEXT_DUE = f"SELECT MIN(next_at) AS next_at FROM outbox WHERE id IN ({_FIRST_IDS})"
_SELECT_OLDER = """
SELECT 1 FROM outbox AS older
JOIN outbox AS item ON item.address = older.address AND older.id < item.id
WHERE item.key = :key AND older.done_at IS NULL AND older.dead_at IS NULL
    AND older.payload IS NOT NULL AND 'notice' NOT IN (older.kind, item.kind)
LIMIT 1
"""
_HAS_PREFIX = "substr(key, 1, length(:prefix)) = :prefix"
# `error` is the error of the latest item that has one.
_COUNT_ITEMS = f"""
SELECT
    COUNT(*) FILTER (WHERE {IS_OPEN} AND next_at IS NULL) AS held,
    COUNT(*) FILTER (WHERE {IS_OPEN} AND next_at IS NOT NULL) AS due,
    COUNT(*) FILTER (WHERE dead_at IS NOT NULL) AS dead,
    COALESCE((
        SELECT error FROM outbox WHERE {_HAS_PREFIX} AND error IS NOT NULL ORDER BY id DESC LIMIT 1
    ), '') AS error
FROM outbox WHERE {_HAS_PREFIX}
"""
_RETRY_DEAD = f"""
UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = :now
WHERE {_HAS_PREFIX} AND dead_at IS NOT NULL AND payload IS NOT NULL
"""
_IS_UNDELIVERED = "dead_at IS NOT NULL AND payload IS NOT NULL AND kind <> 'memory'"
"""The SQL condition for a `DeadItem`. Items for memory services are left out, because people handle
them with other commands."""
_SELECT_DEAD = f"SELECT * FROM outbox WHERE {_IS_UNDELIVERED} ORDER BY id"
_REVIVE_DEAD = f"""
UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = :now
WHERE {_IS_UNDELIVERED} AND {in_list("id", "ids")}
"""
_DROP_DEAD = f"""
UPDATE outbox SET dead_at = NULL, done_at = :now, payload = NULL, next_at = NULL
WHERE {_IS_UNDELIVERED} AND {in_list("id", "ids")}
"""
"""Marks dead items as done and deletes their content. The keys are kept for a while, so that these
items aren't created again."""
# Inserts an item, or replaces the content of the open item with the same key.
_INSERT_OR_REPLACE = """
INSERT INTO outbox
    (key, address, kind, payload, posted, message_id, reply_to, attempts, next_at, created_at)
VALUES
    (:key, :address, :kind, :payload, :posted, :message_id, :reply_to, :attempts, :next_at,
    :created_at)
ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, next_at = excluded.next_at,
    message_id = COALESCE(excluded.message_id, outbox.message_id)
WHERE outbox.done_at IS NULL AND outbox.dead_at IS NULL
"""
_INSERT_OR_FILL = f"{_INSERT_OR_REPLACE} AND outbox.payload IS NULL"
"""Like `_INSERT_OR_REPLACE`, but changes an existing item only if it has no content yet."""
_SET_POSTED = "UPDATE outbox SET posted = :posted WHERE key = :key"
_MARK_DONE = """
UPDATE outbox SET posted = COALESCE(:posted, posted), done_at = :now, dead_at = NULL,
    payload = NULL, next_at = NULL, error = NULL
WHERE key = :key AND done_at IS NULL
"""
_SELECT_UNSEEN = f"SELECT * FROM outbox WHERE {_IS_UNDELIVERED} AND reply_to LIKE '@%' ORDER BY id"
_RECORD_FAILURE = f"""
UPDATE outbox SET attempts = attempts + :refusals, next_at = :next_at,
    dead_at = CASE WHEN :next_at IS NULL THEN CAST(:now AS DOUBLE PRECISION) END,
    error = :error, cause = :cause
WHERE key = :key AND {IS_OPEN}
"""
_MAKE_DUE = f"""
UPDATE outbox SET next_at = :now
WHERE {IS_OPEN} AND next_at > :now AND {in_list(_PLATFORM, "platforms")}
"""
_CLAIM = f"UPDATE outbox SET next_at = NULL WHERE {in_list('key', 'keys')} AND {IS_OPEN}"
# Answers without content become dead if no inbox entry waits at their address. Speech is resumed.
EXPIRE_ITEMS = f"""
UPDATE outbox SET dead_at = :now, error = :error
WHERE {IS_OPEN} AND payload IS NULL AND kind = 'answer' AND key NOT LIKE 'voice:%'
    AND address NOT IN (
    SELECT {rows.CONVERSATION_KEY} FROM inbox JOIN addresses ON addresses.id = inbox.address_id
)
"""
RELEASE_ITEMS = f"""
UPDATE outbox SET next_at = :now WHERE {IS_OPEN} AND payload IS NOT NULL AND next_at IS NULL
"""
DELETE_DONE = """
DELETE FROM outbox
WHERE done_at < :before AND NOT (kind = 'memory' AND key LIKE '%:on_memory_write')
    OR dead_at < :before AND payload IS NULL AND kind <> 'memory'
"""
"""Deletes old items that were delivered, except the only records of which notes were synced, and
old dead items without content, which can't be sent again."""


@dataclass(eq=False)
class Outbox:
    """Stores items until they are delivered, and tracks their state in state.db."""

    database: Database
    clock: Clock
    # Called with the key of a job's item, in the transaction that marks the item as done.
    on_done: Callable[[Connection, str], None] | None = None
    # Set if several gateways share the database. Each delivers the items of its own chats.
    ownership: ChatOwnership | None = None

    async def find(self, outbox_item: OutboxItem) -> OutboxItem:
        """Return the stored item with the key of `outbox_item`, or `outbox_item` if there is none.

        The query runs on the writer thread, after all writes that this process has already queued.
        """
        statement = "SELECT * FROM outbox WHERE key = :key"
        row = await self.database.write(
            lambda connection: connection.execute(statement, {"key": outbox_item.key}).fetchone()
        )
        return outbox_item if row is None else _read_item(row)

    async def put(
        self,
        outbox_item: OutboxItem,
        *,
        is_claimed: bool = False,
        epoch: ErasureEpoch | None = None,
        actions: Sequence[ButtonAction] = (),
        sibling_key: str = "",
    ) -> bool:
        """Store an item with its buttons, or fill the open item with the same key.

        `sibling_key` is the key of another item for the same message; both are erased together.
        This process itself delivers an item without `next_at`. An item that already has content is
        replaced only if this process has claimed it (`is_claimed`). Returns False if nothing was
        stored.
        """
        now = self.clock.now()

        def write(connection: Connection) -> bool:
            message_id = _find_message_id(connection, sibling_key)
            return store_outbox_item(
                connection, outbox_item, now, message_id, actions, is_claimed=is_claimed
            )

        return await self.database.write(write, epoch)

    async def set_posted(self, key: str, posted: Sequence[str]) -> None:
        """Store the ids of the platform messages that were sent so far.

        An entry that begins with `INTENT_MARK` represents a message whose id isn't known.
        """
        await self._update(_SET_POSTED, key=key, posted=rows.dump_json(list(posted)))

    async def list_posted_ids(self, outbox_item: OutboxItem) -> set[str]:
        """Return the ids of the platform messages that were last posted in an item's chat.

        For the answer to a scheduled question, return the ids of all chats.
        """
        address = outbox_item.address
        is_scheduled = outbox_item.key.startswith(JOB_KEY_PREFIXES[1])
        chat = None if is_scheduled else replace(address, thread_id=None).key
        return await message_ids.load_posted_ids(self.database, chat)

    async def list_due(
        self, now: datetime, platforms: Sequence[str] | None = None, limit: int = 50
    ) -> list[OutboxItem]:
        """List the items that this gateway delivers now, oldest first.

        The list has at most one item per address, plus any number of notices.
        """
        values = {"now": now, "platforms": rows.dump_json(platforms), "limit": limit}
        statement = self._restrict(_SELECT_DUE)
        return [_read_item(row) for row in await self.database.fetch_all(statement, values)]

    async def find_next_due(self, platforms: Sequence[str] | None = None) -> datetime | None:
        """Return when the next item for these platforms is due, or None if no item is waiting."""
        values = {"platforms": rows.dump_json(platforms)}
        row = await self.database.fetch_one(self._restrict(_SELECT_NEXT_DUE), values)
        return None if row is None else rows.to_optional_datetime(row["next_at"])

    async def has_older_item(self, key: str) -> bool:
        """Return whether an older item with content waits at the same address."""
        return await self.database.fetch_one(_SELECT_OLDER, {"key": key}) is not None

    async def mark_done(
        self, key: str, posted: Sequence[str] = (), included_keys: Sequence[str] = ()
    ) -> None:
        """Mark an item as delivered, and store the ids of its platform messages, if given.

        The item's content is deleted, because the conversation already contains it. The message in
        the conversation gets the platform id of the first part that was sent. The items with
        `included_keys` were part of the same messages.
        """
        values = {
            "key": key,
            "now": self.clock.now(),
            "posted": rows.dump_json(list(posted)) if posted else None,
        }
        on_done = self.on_done if key.startswith(JOB_KEY_PREFIXES) else None

        def write(connection: Connection) -> None:
            if on_done is not None:
                on_done(connection, key)
            connection.execute(_MARK_DONE, values)
            connection.execute(message_ids.SET_POSTED_ID, values)
            for included_key in included_keys:
                connection.execute(_MARK_DONE, {**values, "key": included_key, "posted": None})

        await self.database.write_indexed(write, is_short=on_done is None)

    async def record_failure(
        self,
        key: str,
        error: str,
        next_at: datetime | None = None,
        *,
        is_refusal: bool = True,
        cause: str = "",
        notice: Notice | None = None,
    ) -> None:
        """Record why a delivery failed, and when to try again.

        The failure counts as an attempt only if the platform has refused the message
        (`is_refusal`). Without `next_at`, the item becomes dead and stays in the list that the
        owner sees, and the `notice` is stored.
        """
        now = self.clock.now()
        values: dict[str, object] = {"key": key, "error": error, "next_at": next_at, "now": now}
        values |= {"refusals": int(is_refusal), "cause": cause}

        def write(connection: Connection) -> None:
            if connection.execute(_RECORD_FAILURE, values).rowcount and notice is not None:
                store_notice(connection, notice, now)

        await self.database.write(write, is_short=True)

    async def make_due(self, platforms: Sequence[str], now: datetime) -> None:
        """Make all waiting items of these platforms due."""
        values = {"platforms": encode_list(platforms), "now": now}
        await self.database.execute(_MAKE_DUE, values)

    async def list_unseen(self) -> list[OutboxItem]:
        """List the answers to interactions that could not be delivered, oldest first."""
        return [_read_item(row) for row in await self.database.fetch_all(_SELECT_UNSEEN)]

    async def claim(self, *keys: str) -> None:
        """Reserve items for this process. They aren't due again until `next_at` is set."""
        await self._update(_CLAIM, keys=encode_list(keys))

    async def count_items(self, prefix: str = "") -> OutboxCounts:
        """Count the items whose keys begin with `prefix`, by state."""
        (row,) = await self.database.fetch_all(_COUNT_ITEMS, {"prefix": prefix})
        return OutboxCounts(**row)

    async def retry_dead(self, prefix: str) -> int:
        """Make dead items whose keys begin with `prefix` due again, and return their number."""
        return await self.database.execute(_RETRY_DEAD, {"prefix": prefix, "now": self.clock.now()})

    async def list_dead(self) -> list[DeadItem]:
        """List the dead items, oldest first, without those for memory services."""
        return [
            DeadItem(item=_read_item(row), **rows.read_fields(row, DeadItem))
            for row in await self.database.fetch_all(_SELECT_DEAD)
        ]

    async def revive(self, ids: Sequence[int]) -> int:
        """Make dead items due again, except those for memory services. Returns their number."""
        values = {"ids": encode_list(ids), "now": self.clock.now()}
        return await self.database.execute(_REVIVE_DEAD, values)

    async def drop(self, ids: Sequence[int]) -> int:
        """Mark dead items as done, except those for memory services. Returns their number."""
        values = {"ids": encode_list(ids), "now": self.clock.now()}
        return await self.database.execute(_DROP_DEAD, values)

    async def recover(self, now: datetime) -> None:
        """Clean up after the previous process. Call this when a process starts.

        Held items with content become due again. Old items that are done, and old dead letters, are
        deleted. An answer without content stays held if an inbox entry waits at its address,
        because that turn will run again. Otherwise the answer becomes dead. Reminders without
        content are filled later by their jobs.
        """
        values = {"now": now, "error": EXPIRED_ERROR, "before": now - message_ids.RETENTION}

        def write(connection: Connection) -> None:
            for statement in (EXPIRE_ITEMS, RELEASE_ITEMS, DELETE_DONE, DELETE_LETTERS):
                connection.execute(statement, values)

        await self.database.write(write)

    def _restrict(self, statement: str) -> str:
        """Return a statement that selects only the items of this gateway."""
        condition = "" if self.ownership is None else f"AND {self.ownership.own_items}"
        return statement.replace(_OWN, condition)

    async def _update(self, statement: str, **values: object) -> None:
        await self.database.write(
            lambda connection: connection.execute(statement, values), is_short=True
        )


def store_outbox_item(
    connection: Connection,
    outbox_item: OutboxItem,
    now: datetime,
    message_id: int | None = None,
    actions: Sequence[ButtonAction] = (),
    *,
    is_claimed: bool = False,
) -> bool:
    """Store an item with its buttons. See `Outbox.put`, which runs this in its own transaction.

    `message_id` is the id of the message in the conversation that has the same text.
    """
    statement = _INSERT_OR_REPLACE if is_claimed else _INSERT_OR_FILL
    values = {
        **rows.field_values(outbox_item),
        "payload": rows.dump_answer(outbox_item.answer),
        "posted": rows.dump_json(list(outbox_item.posted)),
        "message_id": message_id,
        "created_at": now,
    }
    is_stored = connection.execute(statement, values).rowcount > 0
    if is_stored and actions:
        insert_actions(connection, actions, now)
    return is_stored


def store_notice(connection: Connection, notice: Notice, now: datetime) -> None:
    """Store a notice, unless one with its key was stored before."""
    message_id = _find_message_id(connection, notice.sibling_key)
    store_outbox_item(connection, notice.item, now, message_id)


def _find_message_id(connection: Connection, key: str) -> int | None:
    """Return the id of the message in the conversation that has the text of an item, or None."""
    row = connection.execute("SELECT message_id FROM outbox WHERE key = ?", (key,)).fetchone()
    return None if row is None else row["message_id"]


def _read_item(row: Row) -> OutboxItem:
    return OutboxItem(
        **rows.read_fields(row, OutboxItem),
        answer=rows.load_answer(row["payload"]),
        is_over=row["done_at"] is not None or row["dead_at"] is not None,
    )
