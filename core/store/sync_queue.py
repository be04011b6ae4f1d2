"""Errands to memory services as parcels of the outbox, and how far each service was told. Ids only, no words.

A watermark for each session outlives the parcels, whose keys are forgotten after 30 days: so what is asked for twice is
told once, however often turns are put together differently.

What a parcel to a memory says: which hook of whom, about what. All of it are ids; words are in none.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from core.ports import Clock
from core.store import rows
from core.store.outbox import OPEN, OutboxItem, fill_outbox_item
from core.store.sqlite.database import Database
from core.types import Address, Answer, Scope

PLATFORM = "memory"
NOTES = "notes"
Hook = Literal["sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget"]
HOOKS: tuple[Hook, ...] = ("sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTask:
    """`session`: a session id, or ``notes``. `turn`: what it is about, by hook: the first messages of the first and
    last turn, ``12-18``, or ``12-18.3f09`` when they are told anew; the last message of a session; its parent, the
    reason and when, ``7.length.1790000000``; a change of notes; ``forgotten.3f09``. `scope` and `ids`, of on_forget
    only, are inside the parcel: whose the messages or changes of notes were that are to be forgotten."""

    provider: str
    session: str
    turn: str
    hook: Hook
    scope: Scope | None = None
    ids: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Unique for ever."""
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def address(self) -> Address:
        """Its lane in the outbox: what concerns one session keeps its order."""
        return Address(platform=PLATFORM, chat_id=self.provider, thread_id=self.session)

    @property
    def turns(self) -> tuple[int, int]:
        """Of sync_turn: the first messages of the first and last turn."""
        first, _, last = self.turn.partition(".")[0].partition("-")
        return int(first), int(last)

    @property
    def is_anew(self) -> bool:
        """Of sync_turn: whether it was told already, together with something that was to be forgotten."""
        return "." in self.turn

    @property
    def burden(self) -> str:
        """What is inside the parcel."""
        return json.dumps([self.scope.key, *self.ids]) if self.scope else ""

    @classmethod
    def parse(cls, key: str, burden: str = "") -> SyncTask | None:
        """The reverse of `key` and `burden`; None for what is no errand."""
        platform, _, rest = key.partition(":")
        parts = rest.split(":")
        if platform != PLATFORM or len(parts) != 4:
            return None
        hook = next((hook for hook in HOOKS if hook == parts[3]), None)
        if hook is None:
            return None
        errand = cls(provider=parts[0], session=parts[1], turn=parts[2], hook=hook)
        if not burden:
            return errand
        scope, *ids = json.loads(burden)
        return replace(errand, scope=Scope(key=scope), ids=tuple(ids))


def forget_task(provider: str, session: str, scope: Scope, ids: Sequence[int], stamp: str = "") -> SyncTask:
    """The errand to forget these ids. `stamp`: what tells it from another one about the same ids."""
    name = f"{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
    return SyncTask(
        provider=provider, session=session, turn=f"forgotten.{name}", hook="on_forget", scope=scope, ids=tuple(ids)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """The sessions from `next_id` to `last_id` that something was said in since then are to be told."""

    since: datetime
    next_id: int
    last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """How many parcels are `waiting` and were given up (`dead`), and why the latest of them failed."""

    waiting: int = 0
    dead: int = 0
    reason: str = ""


OF_PROVIDER = "key >= :first AND key < :last AND kind = 'memory'"


class SyncQueue:
    """Fills the role `core.memory.sync_queue.SyncQueue` over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(self, errands: Sequence[SyncTask], subject: str = "", last_id: int = 0) -> None:
        """Puts errands of one service into the outbox, due now, each unless it is there, and in the same transaction
        notes that of `subject` everything up to `last_id` is told."""
        now = self._clock.now()

        def work(connection: sqlite3.Connection) -> None:
            for errand in errands:
                answer = Answer(text=errand.burden)
                outbox_item = OutboxItem(
                    key=errand.key, kind="memory", address=errand.address, answer=answer, next_at=now
                )
                fill_outbox_item(connection, outbox_item, now, None)
            if subject and errands:
                connection.execute(
                    """
                    INSERT INTO told (provider, subject, last_id) VALUES (:provider, :subject, :last_id)
                    ON CONFLICT DO UPDATE SET last_id = MAX(last_id, excluded.last_id)
                    """,
                    {"provider": errands[0].provider, "subject": subject, "last_id": last_id},
                )

        await self._database.write(work, has_words=False)

    async def told(self, provider: str, subject: str) -> int:
        """Up to which id everything of a subject is told; 0 for nothing."""

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                "SELECT last_id FROM told WHERE provider = :provider AND subject = :subject",
                {"provider": provider, "subject": subject},
            ).fetchone()
            return 0 if row is None else int(row["last_id"])

        return await self._database.read(work)

    async def providers(self) -> Sequence[str]:
        """The services that were ever told something."""

        def work(connection: sqlite3.Connection) -> list[str]:
            return [
                row["provider"] for row in connection.execute("SELECT DISTINCT provider FROM told ORDER BY provider")
            ]

        return await self._database.read(work)

    async def batches(self, provider: str, session: str) -> Sequence[tuple[int, int]]:
        """The first messages of the first and last turn of what was told of a session together, oldest first, as far
        as that is known."""
        values = _range(f"{PLATFORM}:{provider}:{session}:")

        def work(connection: sqlite3.Connection) -> list[tuple[int, int]]:
            found = connection.execute(f"SELECT key FROM outbox WHERE {OF_PROVIDER}", values)
            errands = [SyncTask.parse(row["key"]) for row in found]
            return sorted({errand.turns for errand in errands if errand is not None and errand.hook == "sync_turn"})

        return await self._database.read(work)

    async def arrears(self, provider: str) -> QueueCounts:
        """What lies there for a service."""
        values = _range(f"{PLATFORM}:{provider}:")

        def work(connection: sqlite3.Connection) -> QueueCounts:
            row = connection.execute(
                f"""
                SELECT
                    COALESCE(SUM({OPEN}), 0) AS waiting,
                    COALESCE(SUM(dead_at IS NOT NULL), 0) AS dead,
                    MAX(CASE WHEN error IS NOT NULL THEN printf('%020d', id) || error END) AS reason
                FROM outbox WHERE {OF_PROVIDER} AND done_at IS NULL AND payload IS NOT NULL
                """,
                values,
            ).fetchone()
            return QueueCounts(waiting=row["waiting"], dead=row["dead"], reason=(row["reason"] or "")[20:])

        return await self._database.read(work)

    async def revive(self, provider: str) -> int:
        """What was given up is due again; how many parcels that are."""
        values = _range(f"{PLATFORM}:{provider}:") | {"now": rows.timestamp(self._clock.now())}

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(
                f"""
                UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = :now
                WHERE {OF_PROVIDER} AND dead_at IS NOT NULL AND payload IS NOT NULL
                """,
                values,
            ).rowcount

        return await self._database.write(work, has_words=False)

    async def ask_past(self, provider: str, since: datetime) -> int:
        """A service is to be told of all sessions that something was said in since; how many those are. What it was
        told already is not told again."""
        values = {"provider": provider, "since": rows.timestamp(since)}

        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                """
                SELECT COUNT(*) AS many, COALESCE(MAX(sessions.id), 0) AS last_id FROM sessions
                JOIN addresses ON addresses.id = sessions.address_id
                WHERE sessions.messages > 0 AND last_at >= :since AND addresses.platform <> 'cron'
                """,
                values,
            ).fetchone()
            connection.execute(
                """
                INSERT INTO pasts (provider, since, next_id, last_id) VALUES (:provider, :since, 1, :last_id)
                ON CONFLICT DO UPDATE SET since = excluded.since, next_id = 1, last_id = excluded.last_id
                """,
                values | {"last_id": row["last_id"]},
            )
            return int(row["many"])

        return await self._database.write(work, has_words=False)

    async def past(self, provider: str) -> Backfill | None:
        """What of the past it is to be told."""
        return await self._database.read(lambda connection: _past(connection, provider))

    async def go_on(self, provider: str, next_id: int) -> Backfill | None:
        """Everything before session `next_id` is in the outbox; what is left."""
        values = {"provider": provider, "next_id": next_id}

        def work(connection: sqlite3.Connection) -> Backfill | None:
            connection.execute("UPDATE pasts SET next_id = :next_id WHERE provider = :provider", values)
            connection.execute("DELETE FROM pasts WHERE provider = :provider AND next_id > last_id", values)
            return _past(connection, provider)

        return await self._database.write(work, has_words=False)


def _past(connection: sqlite3.Connection, provider: str) -> Backfill | None:
    row = connection.execute("SELECT * FROM pasts WHERE provider = :provider", {"provider": provider}).fetchone()
    if row is None:
        return None
    return Backfill(since=rows.moment(row["since"]), next_id=row["next_id"], last_id=row["last_id"])


def _range(prefix: str) -> dict[str, object]:
    """The keys that begin so, as a span of the index over keys."""
    return {"first": prefix, "last": prefix + "\U0010ffff"}
