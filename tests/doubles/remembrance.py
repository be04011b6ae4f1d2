"""A memory with one service, over a real state.db and the real mail room: turns go in, what the service is told comes
out. The clock runs and can be moved."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.memory.copies import Copies
from core.memory.errand import PLATFORM
from core.memory.memory import Memory
from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider
from core.memory.relay import Relay
from core.memory.services import Services
from core.ports import Adapter
from core.store.conversations import Conversations
from core.store.database import Database
from core.store.errands import Errands
from core.store.inbox import Inbox
from core.store.notes import Notes
from core.store.turns import Turns
from core.types import Address, Message, Scope, Sender, Session, ToolContext
from gateway.courier import Courier
from gateway.memory_door import MemoryDoor
from gateway.post import Post
from tests.doubles.lifetime import RunningClock, Watch
from tests.doubles.mailroom import ToldOutbox

PLUGINS = Path(__file__).with_name("plugins")
ANA = Scope.account("telegram", "1")
BEN = Scope.account("telegram", "2")


def plugged(home: Path, name: str) -> None:
    """Puts a plugin of the tests into the home."""
    (home / "plugins").mkdir(exist_ok=True)
    shutil.copy(PLUGINS / f"{name}.py", home / "plugins")


def provider(home: Path, name: str, table: Mapping[str, Any], variables: Mapping[str, str]) -> MemoryProvider:
    """One of the plugins of the tests, found in the home."""
    plugged(home, name)
    return Plugins(home).made(name, table, variables)


@dataclass(kw_only=True)
class Remembrance:
    """`notices` is what the owner was told, as (key, sentence)."""

    database: Database
    conversations: Conversations
    notes: Notes
    outbox: ToldOutbox
    courier: Courier
    memory: Memory
    errands: Errands
    copies: Copies
    clock: RunningClock
    watch: Watch
    notices: list[tuple[str, str]]
    opened: dict[str, Adapter] = field(default_factory=dict)

    async def session(self, scope: Scope = ANA, platform: str = "telegram") -> Session:
        """The open session of somebody's chat."""
        address = Address(platform=platform, chat_id=scope.key.rpartition(":")[2])
        return await self.conversations.ensure(Session(address=address, scope=scope, started_at=self.clock.now()))

    async def turn(self, *texts: str, scope: Scope = ANA, platform: str = "telegram", answer: str = "Noted.") -> None:
        """Somebody says all of this, and is answered; memory is told that the turn is over."""
        session = await self.session(scope, platform)
        sender = Sender(id="1", name="Ana")
        said = [self._row(session, "user", text, sender) for text in texts]
        await self.conversations.append([*said, self._row(session, "assistant", answer, None)])
        await self.over(session)

    async def over(self, session: Session) -> None:
        """Tells memory that the turn is over."""
        await self.memory.turn_over(session, await self.conversations.history(session, frozenset({session.scope})))

    def _row(self, session: Session, role: Any, text: str, sender: Sender | None) -> Message:
        return Message(role=role, text=text, session_id=session.id, created_at=self.clock.now(), sender=sender)

    async def context(self, *scopes: Scope, session: Session | None = None) -> ToolContext:
        """A turn of somebody who sees these scopes, in the session of the first."""
        own = session or await self.session(scopes[0])
        return ToolContext(
            session=own,
            scope=own.scope,
            scopes=frozenset(scopes),
            sender=Sender(id="1", name="Ana"),
            now=self.clock.now(),
        )

    async def recalled(self, text: str, *scopes: Scope) -> Sequence[str]:
        """The lines for a turn about `text`."""
        return await self.memory.prefetch(text, await self.context(*(scopes or (ANA,))))

    async def carried(self, many: int) -> None:
        """Until so many parcels have been delivered, postponed or buried."""
        await self.watch.until(lambda: len(self.outbox.ends) >= many)

    async def later(self, **timespan: float) -> None:
        """Time passes, and the courier looks."""
        self.clock.advance(**timespan)
        self.courier.wake()

    @property
    def ends(self) -> list[str]:
        """What became of the parcels, in order."""
        return [end for _, end in self.outbox.ends]

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The courier at work."""
        task = asyncio.create_task(self.courier.run())
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.wait([task])


@asynccontextmanager
async def remembrance(
    home: Path,
    services: Sequence[MemoryProvider] = (),
    timeout_s: float = 2.0,
    builtins: Callable[[Database, RunningClock], Sequence[MemoryProvider]] | None = None,
) -> AsyncIterator[Remembrance]:
    """One life of the process as far as its memories go. `builtins` makes those that live in state.db."""
    async with Database.open(home / "state.db") as database:
        clock, watch = RunningClock(), Watch()
        outbox = ToldOutbox(database, clock, watch)
        await outbox.recover(clock.now())
        post = Post(Inbox(database, clock), outbox, clock)
        notices: list[tuple[str, str]] = []
        opened: dict[str, Adapter] = {}
        courier = Courier(outbox, post, opened, clock)

        async def tell(key: str, sentence: str) -> None:
            notices.append((key, sentence))
            watch.tell()

        errands, turns = Errands(database, clock), Turns(database)
        attached = Services(
            providers=tuple(services),
            relay=Relay(errands, turns, clock, courier.wake),
            copies=Copies(errands, turns, clock, courier.wake),
            home=home,
            tell=tell,
        )
        own = builtins(database, clock) if builtins else ()
        memory = Memory(own, clock, timeout_s, attached)
        post.heed(f"{PLATFORM}:", memory.given_up)
        door = MemoryDoor(memory)
        opened[door.platform] = door
        try:
            yield Remembrance(
                database=database,
                conversations=Conversations(database, clock),
                notes=Notes(database),
                outbox=outbox,
                courier=courier,
                memory=memory,
                errands=errands,
                copies=attached.copies,
                clock=clock,
                watch=watch,
                notices=notices,
                opened=opened,
            )
        finally:
            await memory.shutdown()
