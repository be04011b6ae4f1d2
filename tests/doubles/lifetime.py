"""One life of the process as far as its schedules go: the real Cron over a real state.db, with a clock that runs.

The sink answers at once in capitals; what is delivered stands in `said`. Tests wait on what is told, never on time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.appointments import Appointments
from core.errors import DeliveryError, StoreError
from core.ports import Receipt, Reply
from core.records import Job, Parcel, Schedule
from core.store.conversations import Conversations
from core.store.database import Database
from core.store.jobs import Jobs
from core.store.outbox import Outbox
from core.store.people import People
from core.types import Address, Answer, Inbound, Scope, Session
from gateway.cron import Cron

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CHAT = Address(platform="telegram", chat_id="42")
ANA = Scope.account("telegram", "42")
ROOM = Scope.room("telegram", "-5")
GROUP = Address(platform="telegram", chat_id="-5")
ZONE = "Europe/Lisbon"


class RunningClock:
    """Fills the role Clock: begins at `moment` and goes on as real time does; `advance` jumps."""

    def __init__(self, moment: datetime = NOON) -> None:
        self._offset = moment - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._offset

    def advance(self, **span: float) -> None:
        self._offset += timedelta(**span)


class Watch:
    """Something that tests wait for: `until` returns once a condition holds, looked at whenever it is `told`."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def tell(self) -> None:
        self._changed.set()

    def next(self) -> asyncio.Event:
        """Set when the next thing happens."""
        self._changed.clear()
        return self._changed

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not is_so():
                await self.next().wait()


class ToldJobs(Jobs):
    """The store's, that tells when a run has ended."""

    def __init__(self, database: Database, watch: Watch) -> None:
        super().__init__(database)
        self._watch = watch

    async def finish(self, job_id: int, due_at: datetime, now: datetime, next_at: datetime | None) -> None:
        await super().finish(job_id, due_at, now, next_at)
        self._watch.tell()

    async def pause(self, job_id: int, at: datetime) -> None:
        await super().pause(job_id, at)
        self._watch.tell()


class HastyCron(Cron):
    """Tries again, and looks at the clock, sooner than a test has patience."""

    retry_s = 0.02
    pulse_s = 0.05


class HeardReply:
    """Fills the role Reply; what is said stands in `said`."""

    def __init__(self, address: Address, said: list[tuple[Address, str]], error: DeliveryError | None) -> None:
        self._address = address
        self._said = said
        self._error = error
        self.receipts: list[Receipt] = []

    def begin(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)

    def show(self, text: str) -> None:
        raise AssertionError("nothing is shown of a scheduled session")

    async def finish(self, answer: Answer) -> None:
        if self._error is not None:
            raise self._error
        self._said.append((self._address, answer.text))

    async def abandon(self) -> None:
        return


class BareReceipt:
    """Fills the role Receipt."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.posted: list[str] = []

    async def record(self, message_id: str) -> None:
        self.posted.append(message_id)


class CapitalSink:
    """Fills the role Sink: answers with the text in capitals. Knows message ids across restarts, as the inbox does."""

    def __init__(self, watch: Watch, known: set[str]) -> None:
        self._watch = watch
        self._known = known
        self.admitted: list[tuple[Inbound, Reply]] = []
        self.served = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[StoreError] = []

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        if self.errors:
            raise self.errors.pop()
        if inbound.message_id in self._known:
            return None
        self._known.add(inbound.message_id)
        self.admitted.append((inbound, reply))
        self._watch.tell()
        return len(self.admitted)

    async def serve(self, entry_id: int) -> None:
        await self.gate.wait()
        inbound, reply = self.admitted[entry_id - 1]
        reply.begin(BareReceipt(f"turn:{inbound.address.key}:message:{inbound.message_id}"))
        reply.show("never seen")
        await reply.finish(Answer(text=inbound.text.upper()))
        self.served += 1
        self._watch.tell()

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError


class Lifetime:
    """One process over a state.db."""

    def __init__(self, database: Database, clock: RunningClock, known: set[str]) -> None:
        self.clock = clock
        self.watch = Watch()
        self.jobs = ToldJobs(database, self.watch)
        self.people = People(database)
        self.outbox = Outbox(database, clock)
        self.sink = CapitalSink(self.watch, known)
        self.said: list[tuple[Address, str]] = []
        self.replies: list[HeardReply] = []
        self.wakes = 0
        self.error: DeliveryError | None = None
        self.appointments = Appointments(self.jobs, clock, ZONE, lambda: None)
        self.cron = self.made(self.jobs)

    def made(self, jobs: Jobs, kind: type[Cron] = Cron) -> Cron:
        return kind(
            jobs=jobs,
            outbox=self.outbox,
            people=self.people,
            clock=self.clock,
            deliver=self._deliver,
            late_after_s=120,
            on_wake=self._woken,
        )

    def _deliver(self, address: Address) -> Reply:
        if address.platform not in ("telegram", "discord"):
            raise KeyError(address.platform)
        reply = HeardReply(address, self.said, self.error)
        self.replies.append(reply)
        return reply

    def _woken(self) -> None:
        self.wakes += 1
        self.watch.tell()

    @asynccontextmanager
    async def listening(self, cron: Cron | None = None) -> AsyncIterator[Cron]:
        """The adapter's life: open, listen, cancelled, closed."""
        cron = cron or self.cron
        await cron.open()
        intake = asyncio.create_task(cron.listen(self.sink, ()))
        try:
            yield cron
        finally:
            intake.cancel()
            await asyncio.wait([intake])
            await cron.close()
            assert intake.cancelled(), intake.exception()

    async def woken(self, count: int = 1) -> list[Parcel]:
        """What lies in the outbox once it was told of `count` reminders."""
        await self.watch.until(lambda: self.wakes >= count)
        return await self.parcels()

    async def parcels(self) -> list[Parcel]:
        parcels: list[Parcel] = []
        while due := await self.outbox.due(self.clock.now()):
            for parcel in due:
                await self.outbox.done(parcel.key)
            parcels += due
        return parcels

    async def settled(self, job: Job) -> Job:
        """The row of a job once its run is finished."""
        async with asyncio.timeout(30):
            while True:
                told = self.watch.next()
                row = await self.jobs.behind(job.id)
                if row is not None and row != job:
                    return row
                await told.wait()

    async def add(self, **changes: object) -> Job:
        """A reminder of Ana's that was due ten seconds ago, or as `changes` say."""
        due_at = changes.pop("due_at", NOON - timedelta(seconds=10))
        assert isinstance(due_at, datetime)
        job = Job(
            schedule=Schedule(zone=ZONE, at=due_at),
            text="call Bob",
            target=CHAT,
            scope=ANA,
            created_at=NOON - timedelta(days=30),
            next_at=due_at,
        )
        return await self.jobs.add(replace(job, **changes))  # type: ignore[arg-type]


@asynccontextmanager
async def lifetime(
    folder: Path, clock: RunningClock | None = None, known: set[str] | None = None
) -> AsyncIterator[Lifetime]:
    async with Database.open(folder / "state.db") as database:
        clock = clock or RunningClock()
        conversations = Conversations(database, clock)
        for address, scope in ((CHAT, ANA), (GROUP, ROOM)):
            if await conversations.current(address) is None:
                await conversations.create(Session(address=address, scope=scope, started_at=clock.now()))
        yield Lifetime(database, clock, known if known is not None else set())
