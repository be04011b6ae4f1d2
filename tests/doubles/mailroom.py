"""A mail room over a real state.db, with platforms whose deliveries go as a test has staged them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from core.errors import StoreError
from core.ports import Adapter, Reply
from core.records import Parcel
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.outbox import Outbox
from core.types import Address, Answer
from gateway.courier import Courier
from gateway.post import Post
from tests.doubles.corridor import KeptPlatform, KeptReply
from tests.doubles.lifetime import RunningClock, Watch

Event = Exception | asyncio.Event | None
"""What happens to one delivery: it fails, it hangs until the event is set, or it arrives."""


class StagedReply(KeptReply):
    """Arrives in the `said` of its platform, unless something else is staged for it."""

    def __init__(self, platform: StagedPlatform, address: Address, event: Event) -> None:
        super().__init__()
        self._platform = platform
        self._address = address
        self._event = event
        self.is_finishing = False

    async def finish(self, answer: Answer) -> None:
        self.is_finishing = True
        self._platform.watch.tell()
        if isinstance(self._event, asyncio.Event):
            await self._event.wait()
        elif self._event is not None:
            raise self._event
        await super().finish(answer)
        self._platform.said.append((self._address.chat_id, answer.text))
        self._platform.watch.tell()


class StagedPlatform(KeptPlatform):
    """Chats are numbers, as on Telegram: any other chat id is a ValueError, which no library translates."""

    def __init__(self, platform: str, watch: Watch) -> None:
        super().__init__(platform)
        self.watch = watch
        self.said: list[tuple[str, str]] = []
        """Chat and text of what arrived, in order."""
        self.began: list[str] = []
        """The chat of each reply that was asked for."""
        self._staged: dict[str, list[Event]] = {}

    def stage(self, chat_id: str, *events: Event) -> None:
        """What happens to the next deliveries to a chat."""
        self._staged.setdefault(chat_id, []).extend(events)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        self.began.append(address.chat_id)
        self.watch.tell()
        return self.staged_reply(Address(platform=self.platform, chat_id=str(int(address.chat_id))))

    def staged_reply(self, address: Address) -> StagedReply:
        """The same, for an event that is answered live."""
        staged = self._staged.get(address.chat_id)
        reply = StagedReply(self, address, staged.pop(0) if staged else None)
        self.replies.append((address, reply))
        return reply


class ToldOutbox(Outbox):
    """The store's, that tells when something became of a parcel, and counts what it could not claim."""

    def __init__(self, database: Database, clock: RunningClock, watch: Watch) -> None:
        super().__init__(database, clock)
        self._watch = watch
        self.ends: list[tuple[str, str]] = []
        """Key and end of each booking: done, postponed or buried."""
        self.refusals = 0

    async def claim(self, key: str) -> None:
        await self._told(key, "", super().claim(key))

    async def done(self, key: str) -> None:
        await self._told(key, "done", super().done(key))

    async def postpone(self, key: str, next_at: datetime, error: str) -> None:
        await self._told(key, "postponed", super().postpone(key, next_at, error))

    async def bury(self, key: str, error: str) -> None:
        await self._told(key, "buried", super().bury(key, error))

    async def due(self, now: datetime, platforms: object = None, limit: int = 50) -> list[Parcel]:
        try:
            return await super().due(now, platforms, limit)  # type: ignore[arg-type]
        except StoreError:
            self.refusals += 1
            self._watch.tell()
            raise

    async def _told(self, key: str, end: str, change: object) -> None:
        try:
            await change  # type: ignore[misc]
            if end:
                self.ends.append((key, end))
        except StoreError:
            self.refusals += 1
            raise
        finally:
            self._watch.tell()


@dataclass(kw_only=True)
class Mailroom:
    """`telegram` is open from the beginning, `discord` once a test puts it into `opened`."""

    database: Database
    clock: RunningClock
    watch: Watch
    inbox: Inbox
    outbox: ToldOutbox
    post: Post
    courier: Courier
    telegram: StagedPlatform
    discord: StagedPlatform
    opened: dict[str, Adapter] = field(default_factory=dict)

    async def send(self, key: str, chat_id: str = "1", platform: str = "telegram") -> Parcel:
        """A parcel that is due now and says its key; the courier is called."""
        parcel = await self.drafted(key, chat_id, platform)
        await self.outbox.fill(key, Answer(text=key), self.clock.now())
        self.courier.wake()
        return parcel

    async def drafted(self, key: str, chat_id: str = "1", platform: str = "telegram") -> Parcel:
        """A parcel that a turn works on."""
        return await self.outbox.hold(
            Parcel(key=key, kind="answer", address=Address(platform=platform, chat_id=chat_id))
        )

    async def answer(self, parcel: Parcel, *, is_once: bool = False) -> StagedReply:
        """A turn has ended: stores and delivers its answer, which is the key of its parcel."""
        reply = self.telegram.staged_reply(parcel.address)
        self.post.begin(parcel, reply)
        answer = Answer(text=parcel.key)
        await self.post.fill(parcel, answer)
        await self.post.deliver(parcel, reply, answer, is_once=is_once)
        return reply

    async def later(self, **timespan: float) -> None:
        """Time passes, and the courier looks."""
        self.clock.advance(**timespan)
        self.courier.wake()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[asyncio.Task[None]]:
        """The courier at work; it is still so at the end."""
        task = asyncio.create_task(self.courier.run())
        try:
            yield task
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait([task])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Another program holds the write lock of state.db."""
        other = sqlite3.connect(self.database.path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            yield
        finally:
            other.close()


@asynccontextmanager
async def open_mailroom(folder: Path, patience_s: float = 5.0) -> AsyncIterator[Mailroom]:
    """A mail room whose store gives up waiting for a lock after some milliseconds."""
    async with Database.open(folder / "state.db") as database:
        await database.write(lambda connection: connection.execute("PRAGMA busy_timeout = 20").close())
        clock, watch = RunningClock(), Watch()
        outbox = ToldOutbox(database, clock, watch)
        inbox = Inbox(database, clock)
        post = Post(inbox, outbox, clock, patience_s)
        telegram, discord = StagedPlatform("telegram", watch), StagedPlatform("discord", watch)
        opened: dict[str, Adapter] = {"telegram": telegram}
        yield Mailroom(
            database=database,
            clock=clock,
            watch=watch,
            inbox=inbox,
            outbox=outbox,
            post=post,
            courier=Courier(outbox, post, opened, clock),
            telegram=telegram,
            discord=discord,
            opened=opened,
        )
