"""Errands to memory services as parcels of the outbox, and how far each service was told. Ids only, no words.

A watermark for each session outlives the parcels, whose keys are forgotten after 30 days: so what is asked for twice is
told once, however often turns are put together differently.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from core.memory.sync_task import PLATFORM, Arrears, Errand, Past
from core.ports import Clock
from core.records import Parcel
from core.store import rows
from core.store.outbox import OPEN, fill_parcel
from core.store.sqlite.database import Database
from core.types import Answer

OF_PROVIDER = "key >= :first AND key < :last AND kind = 'memory'"


class Errands:
    """Fills the role `core.memory.sync_queue.Satchel` over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(self, errands: Sequence[Errand], subject: str = "", last_id: int = 0) -> None:
        """Puts errands of one service into the outbox, due now, each unless it is there, and in the same transaction
        notes that of `subject` everything up to `last_id` is told."""
        now = self._clock.now()

        def work(connection: sqlite3.Connection) -> None:
            for errand in errands:
                answer = Answer(text=errand.burden)
                parcel = Parcel(key=errand.key, kind="memory", address=errand.address, answer=answer, next_at=now)
                fill_parcel(connection, parcel, now, None)
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
            errands = [Errand.parse(row["key"]) for row in found]
            return sorted({errand.turns for errand in errands if errand is not None and errand.hook == "sync_turn"})

        return await self._database.read(work)

    async def arrears(self, provider: str) -> Arrears:
        """What lies there for a service."""
        values = _range(f"{PLATFORM}:{provider}:")

        def work(connection: sqlite3.Connection) -> Arrears:
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
            return Arrears(waiting=row["waiting"], dead=row["dead"], reason=(row["reason"] or "")[20:])

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

    async def past(self, provider: str) -> Past | None:
        """What of the past it is to be told."""
        return await self._database.read(lambda connection: _past(connection, provider))

    async def go_on(self, provider: str, next_id: int) -> Past | None:
        """Everything before session `next_id` is in the outbox; what is left."""
        values = {"provider": provider, "next_id": next_id}

        def work(connection: sqlite3.Connection) -> Past | None:
            connection.execute("UPDATE pasts SET next_id = :next_id WHERE provider = :provider", values)
            connection.execute("DELETE FROM pasts WHERE provider = :provider AND next_id > last_id", values)
            return _past(connection, provider)

        return await self._database.write(work, has_words=False)


def _past(connection: sqlite3.Connection, provider: str) -> Past | None:
    row = connection.execute("SELECT * FROM pasts WHERE provider = :provider", {"provider": provider}).fetchone()
    if row is None:
        return None
    return Past(since=rows.moment(row["since"]), next_id=row["next_id"], last_id=row["last_id"])


def _range(prefix: str) -> dict[str, object]:
    """The keys that begin so, as a span of the index over keys."""
    return {"first": prefix, "last": prefix + "\U0010ffff"}
