"""A memory made of memories: asks them side by side, each in its time box, and joins what is not empty.

The agent cannot tell one from many. What is built in comes first; a service of the user's choice is told through the
outbox. A memory that fails or hangs is skipped, and left alone for a while when it goes on so; the turn goes on.

The memories of the user's choice, with all that the house needs to live with them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError
from core.memory import provider_text
from core.memory.guarded_provider import CircuitBreaker, GuardedProvider
from core.memory.provider import MemoryProvider, implements
from core.memory.smalltalk import is_remembered, is_smalltalk
from core.memory.sync import Sync, SyncForget
from core.ports import Clock
from core.store.notes import NoteChange
from core.store.sync_queue import SyncTask
from core.text.sanitize import on_one_line
from core.types import Address, Message, Scope, Session, Tool, ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalProviders:
    """`providers` with mode and rhythm set; `relay` puts into the outbox what they are to be told, `copies` what they
    are to forget; under `home` they keep what is theirs; `tell` is given a key, unique for ever, and a sentence for the
    owner."""

    providers: tuple[MemoryProvider, ...]
    relay: Sync
    copies: SyncForget
    home: Path
    tell: Callable[[str, str], Awaitable[None]]


T = TypeVar("T")

SETTLE_S = 60.0
"""Nobody waits for what happens after an answer, but it must not hold up the next turn for ever."""
CATCH_UP_S = 600.0
"""Nor for what is made up for after the start, which may be the work of some days."""


class MemoryManager(MemoryProvider):
    """The fan-out over `builtins`, then the providers of `services`. `timeout_s` is the time box of each call that a
    turn waits for."""

    name = "memory"

    def __init__(
        self,
        builtins: Sequence[MemoryProvider],
        clock: Clock,
        timeout_s: float = 2.0,
        services: ExternalProviders | None = None,
    ) -> None:
        self._clock = clock
        self._services = services
        self._externals = services.providers if services else ()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._own = [GuardedProvider(one, None, CircuitBreaker(clock), timeout_s, self) for one in builtins]
        self._others = [
            GuardedProvider(one, services.home / "providers" / one.name, CircuitBreaker(clock), timeout_s, self)
            for one in self._externals
            if services
        ]
        self._seats = [*self._own, *self._others]
        self._warnings: list[str] = []
        self._log = structlog.get_logger("memory")

    @property
    def states(self) -> Mapping[str, str]:
        """One sentence on each memory."""
        return {seat.provider.name: seat.state for seat in self._seats}

    @property
    def warnings(self) -> Sequence[str]:
        """What of the settings cannot be had, as sentences for the owner."""
        return self._warnings

    @property
    def externals(self) -> Sequence[str]:
        """The names of the services: those whom parcels are carried to."""
        return [one.name for one in self._externals]

    async def is_available(self) -> bool:
        """Always: what is built in is there."""
        return True

    async def initialize(self, folder: Path) -> None:
        """Nothing: each memory comes up when it is first needed, or by `start`."""

    async def start(self) -> None:
        """Puts into the outbox what an earlier process did not come to tell, and brings the services up before they are
        needed."""
        await self._post(lambda relay: relay.catch_up(self._externals))
        async with asyncio.TaskGroup() as group:
            for seat in self._others:
                group.create_task(seat.come_up())

    async def on_start(self) -> None:
        await self._ask(self._own, "on_start", box_s=CATCH_UP_S)

    async def system_prompt_block(self, context: ToolContext) -> str:
        seats = [seat for seat in self._seats if seat.is_asked(context.session)]
        found = await self._each(seats, lambda seat: seat.block(context))
        return "\n\n".join(block.strip() for block in found if block.strip())

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        is_small = is_smalltalk(text)
        seats = [
            seat
            for seat in self._seats
            if seat.is_asked(context.session) and not (is_small and seat.provider.is_searching)
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [(seat, group.create_task(seat.prefetch(text, context))) for seat in seats]
        first = [line for seat, task in tasks if not seat.provider.is_searching for line in task.result()]
        # The budget of a turn is cut off at the end: the best of each comes before the second best of any.
        rounds = zip_longest(*(task.result() for seat, task in tasks if seat.provider.is_searching), fillvalue="")
        lines = [*first, *(line for best in rounds for line in best)]
        return list(dict.fromkeys(line for line in lines if line.strip()))

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        if is_remembered(context.session) and not is_smalltalk(text):
            for seat in self._seats:
                if seat.is_asked(context.session):
                    seat.queue(text, context)
        return ()

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        if is_remembered(session):
            await self._ask(self._own, "sync_turn", session, messages, key, box_s=SETTLE_S)

    async def turn_over(self, session: Session, rows: Sequence[Message]) -> None:
        """A turn is over and stored; `rows` are those of the whole session, its own ones and what it carries on."""
        if not is_remembered(session):
            return
        own = [row for row in rows if row.session_id == session.id]
        await self._post(lambda relay: relay.turns(self._externals, session, own))
        turn = last_turn(own)
        if turn:
            await self.sync_turn(session, turn, f"turn:{session.id}:{turn[0].id}")

    async def on_turn_start(self, context: ToolContext) -> None:
        seats = [seat for seat in self._seats if seat.is_asked(context.session) and seat.is_told(context.session)]
        await self._ask(seats, "on_turn_start", context)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        if not is_remembered(session):
            return
        own = [row for row in messages if row.session_id == session.id]
        await self._post(lambda relay: relay.end(self._externals, session, own))
        # Whoever begins anew does not wait for what is made of the old.
        self.spawn(self._ask(self._own, "on_session_end", session, own, box_s=SETTLE_S))

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        await self._post(lambda relay: relay.switch(self._externals, new_id, parent_id, reason))
        await self._ask(self._own, "on_session_switch", new_id, parent_id, reason)

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        if not is_remembered(session):
            return ""
        found = await self._each(self._seats, lambda seat: seat.survivors(session, messages))
        return "\n\n".join(filter(None, found))

    async def on_delegation(self, task: str, result: str, context: ToolContext) -> None:
        if is_remembered(context.session):
            await self._ask(self._seats, "on_delegation", task, result, context)

    async def on_memory_write(self, change: NoteChange) -> None:
        await self._ask(self._own, "on_memory_write", change)
        await self.notes_changed()

    async def notes_changed(self) -> None:
        """Notes may have been changed, or the past may have been asked for, by whatever process: services are to be
        told."""
        await self._post(lambda relay: relay.notes(self._externals))
        await self._post(lambda relay: relay.feed(self._externals))

    async def tools(self) -> Sequence[Tool]:
        return await self.tools_beside(())

    async def tools_beside(self, reserved: Collection[str]) -> Sequence[Tool]:
        """The tools of all memories. One of a service is refused when its name is in `reserved`, or taken, or when no
        model could be told of it: one that a model server refuses would silence every conversation."""
        names, tools = set(reserved), []
        for seat in self._seats:
            for tool in await self._tools_of(seat):
                why = None
                if seat.is_external:
                    why = provider_text.fault(tool) or ("the name is taken" if tool.name in names else None)
                if why is not None:
                    self.warn(f"The tool {_name(tool)} of the memory {seat.provider.name} is left out: {why}.")
                    continue
                names.add(tool.name)
                tools.append(_outside(tool, seat) if seat.is_external else tool)
        return tools

    def warn(self, sentence: str) -> None:
        """Something of the settings cannot be had."""
        if sentence not in self._warnings:
            self._log.warning("a memory is not as the settings want it", problem=sentence)
            self._warnings.append(sentence)

    async def deliver(self, errand: SyncTask) -> None:
        """Brings a parcel of the outbox to its memory. Raises DeliveryError, permanent when the memory says no for
        good or is not there any more; StoreError."""
        seat = next((seat for seat in self._others if seat.provider.name == errand.provider), None)
        if seat is None or self._services is None:
            raise DeliveryError(f"there is no memory {errand.provider} any more", is_permanent=True)
        relay, provider = self._services.relay, seat.provider
        call = await relay.unpacked(errand, provider)
        if call is not None:
            await seat.bring(call)
        await self._post(lambda relay: relay.delivered(provider))

    async def given_up(self, key: str) -> None:
        """A parcel of that key is not tried again: that somebody keeps what he was to erase, the owner is told."""
        errand = SyncTask.parse(key)
        if errand is not None and errand.hook == "on_forget":
            await self._tell(
                f"memory-keeps:{errand.provider}:{self._clock.now().date()}",
                f"My memory “{errand.provider}” did not erase what it was asked to; `mneme memory providers` says why. "
                f"Have it erased there, or let `mneme memory sync {errand.provider}` ask it again.",
            )

    async def forget(
        self, scopes: frozenset[Scope], message_ids: Sequence[int], note_ids: Sequence[int] = ()
    ) -> str | None:
        """See `core.privacy.forgetting.CopyHolder`. What services keep is asked for by `core.memory.sync`, also where
        nobody runs."""
        self.let_go()
        return None

    async def amended(self, address: Address, external_id: str) -> None:
        """A message was edited or deleted on its platform, and so was its row."""
        names = [one.name for one in self._externals if implements(one, "on_forget")]
        if self._services is not None and names:
            copies = self._services.copies
            await self._post(lambda _: copies.amended(names, address, external_id))

    def let_go(self) -> None:
        """Something was erased: what was looked up beforehand, for turns to come, is dropped."""
        for seat in self._seats:
            seat.let_go()

    async def shutdown(self) -> None:
        """Gives up what still runs and closes the memories, the last first."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        for seat in reversed(self._seats):
            await seat.close()

    def searches(self) -> list[asyncio.Task[None]]:
        """What is being looked for beside the turns."""
        return [task for seat in self._seats for task in seat.searches()]

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that ends with this memory at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def opened(self, name: str, reason: str) -> None:
        """A memory has failed too often: the owner is told, once a day at most."""
        self._log.error("a memory is out of order", provider=name, reason=reason)
        if self._services is not None:
            # Once a day at most, also over restarts: one that comes and goes is the same news.
            key = f"memory-down:{name}:{self._clock.now().date()}"
            self.spawn(
                self._tell(key, f"My memory “{name}” is out of order ({reason}). I go on without it and try it again.")
            )

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Looked at, so that what nobody waits for any more is not reported as forgotten.
            task.exception()

    async def _tools_of(self, seat: GuardedProvider) -> Sequence[Tool]:
        try:
            return await seat.tools()
        except ConfigError as error:
            self.warn(f"The memory {seat.provider.name} has no tools: {error}.")
            return ()

    async def _post(self, posting: Callable[[Sync], Awaitable[None]]) -> None:
        """What cannot be put into the outbox now is found missing, and put there, by a later look."""
        if self._services is None or not self._externals:
            return
        try:
            await posting(self._services.relay)
        except MnemeError as error:
            self._log.error("a memory cannot be told now", error=str(error))

    async def _tell(self, key: str, sentence: str) -> None:
        try:
            if self._services is not None:
                await self._services.tell(key, sentence)
        except MnemeError as error:
            self._log.error("the owner was not told", error=str(error))

    async def _ask(
        self, seats: Sequence[GuardedProvider], hook: str, *arguments: object, box_s: float | None = None
    ) -> list[Any]:
        return await self._each(seats, lambda seat: seat.ask(hook, *arguments, box_s=box_s))

    async def _each(
        self, seats: Sequence[GuardedProvider], ask: Callable[[GuardedProvider], Coroutine[Any, Any, Sequence[T]]]
    ) -> list[T]:
        """What `ask` gives for each, side by side, joined in their order."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(seat)) for seat in seats]
        return [answer for task in tasks for answer in task.result()]


def _outside(tool: Tool, seat: GuardedProvider) -> Tool:
    """A tool of a service: called through its seat, and nothing that only reads what is here."""
    # A copy: nothing may change in it while sessions have it in their prefix.
    schema = json.loads(json.dumps(dict(tool.schema)))
    return replace(tool, run=partial(seat.call, tool.name), schema=schema, is_reading=False, is_outside=True)


def _name(tool: Tool) -> str:
    return on_one_line(tool.name)[:64] if isinstance(tool.name, str) else "without a name"


def last_turn(rows: Sequence[Message]) -> Sequence[Message]:
    """The rows from the last messages of people on that were answered together."""
    start = max((i for i, row in enumerate(rows) if row.role == "user"), default=len(rows))
    while 0 < start < len(rows) and rows[start - 1].role == "user":
        start -= 1
    return rows[start:]
