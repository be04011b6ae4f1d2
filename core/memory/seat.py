"""One memory at the table: every call to it goes through here, with a time box and a circuit breaker around it.

Whatever its code does ends here or leaves as an error of ours. What comes too late for a turn waits for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError, Refused, StoreError, ToolError
from core.fence import neutralise
from core.legible import on_one_line
from core.memory.attention import may_consult
from core.memory.breaker import Breaker
from core.memory.guard import suspicion
from core.memory.provider import MemoryProvider, implements
from core.memory.shelf import Shelf
from core.types import Json, Session, Tool, ToolContext

T = TypeVar("T")

DELIVERY_S = 30.0
"""How long a service may take for what it is told through the outbox, and to come up."""
LATE_S = 20.0
"""So long a call that came too late for its turn goes on: what it finds serves the next one."""
LINES = 12
LINE_CHARS = 600
"""How many lines of a service are taken, and the longest: each is looked at for orders, which takes its time."""
BLOCK_CHARS = 4_000
"""The longest block of a service for the prompt."""
REASON_CHARS = 120


class _Host(Protocol):
    """Who owns the tasks of a seat, and is told when its memory is out of order."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]: ...

    def opened(self, name: str, reason: str) -> None: ...


@dataclass(slots=True)
class _Search:
    """One that runs beside the turns. `is_late`: a turn has waited for it already."""

    task: asyncio.Task[None]
    is_late: bool


class Seat:
    """`provider`, asked within `timeout_s`. One with a `folder` of its own is a service outside: it learns what it is
    asked, and its words are those of a stranger."""

    def __init__(
        self,
        provider: MemoryProvider,
        folder: Path | None,
        breaker: Breaker,
        timeout_s: float,
        host: _Host,
    ) -> None:
        self.provider = provider
        self.is_external = folder is not None
        self._breaker = breaker
        self._timeout_s = timeout_s
        self._folder = folder
        self._host = host
        self._shelf = Shelf()
        self._searches: dict[int, _Search] = {}
        self._lock = asyncio.Lock()
        self._is_ready = False
        self._log = structlog.get_logger("memory").bind(provider=provider.name)

    @property
    def state(self) -> str:
        """One sentence for a report."""
        return self._breaker.state

    def is_asked(self, session: Session) -> bool:
        """Whether a turn of this session may ask it."""
        return not self.is_external or (self.provider.mode != "tools" and may_consult(session))

    async def come_up(self) -> None:
        """Makes it ready, if it can be."""
        try:
            await self._admitted(_nothing, DELIVERY_S)
        except MnemeError as error:
            self._log.warning("a memory did not come up", error=str(error))

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Lines for the turn about `text`, and those that were found for this conversation since the last one."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._timeout_s
        search = self._searches.get(context.session.id)
        if search is not None and not search.task.done():
            if not search.is_late:
                await asyncio.wait({search.task}, timeout=self._timeout_s)
            if not search.task.done():
                # One turn has waited for it; the others do not.
                search.is_late = True
                return self._shelf.take(context)
        shelved = self._shelf.take(context)
        if not self._breaker.admit():
            return shelved
        task = self._host.spawn(self._work(lambda: self.provider.prefetch(text, context)))
        await self._waited(task, max(0.0, ends_at - loop.time()))
        if task.done():
            try:
                return [*self._lines(self._outcome(task)), *shelved]
            except MnemeError as error:
                self._log.warning("a memory failed and was skipped", error=str(error))
                return shelved
        self._log.warning("a memory took too long and was skipped")
        self._search(task, context, is_late=True)
        return shelved

    def queue(self, text: str, context: ToolContext) -> None:
        """Lets it look for the next turn while nobody waits."""
        search = self._searches.get(context.session.id)
        is_searching = search is not None and not search.task.done()
        if implements(self.provider, "queue_prefetch") and not is_searching and self._breaker.admit():
            task = self._host.spawn(self._work(lambda: self.provider.queue_prefetch(text, context)))
            self._search(task, context, is_late=False)

    def searches(self) -> list[asyncio.Task[None]]:
        """What it is looking for beside the turns."""
        return [search.task for search in self._searches.values() if not search.task.done()]

    def let_go(self) -> None:
        """Drops what waits for turns to come, also what is being looked for now."""
        for search in self._searches.values():
            search.task.cancel()
        self._shelf = Shelf()

    async def block(self, context: ToolContext) -> Sequence[str]:
        """Its text for the prompt, as none or one; without one of a service that reads like an order."""
        blocks: list[str] = await self.ask("system_prompt_block", context)
        if not self.is_external:
            return blocks
        kept = []
        for block in (block.strip()[:BLOCK_CHARS] for block in blocks if isinstance(block, str)):
            if block and (reason := suspicion(block)) is not None:
                self._log.warning("what a memory has for the prompt was left out", reason=reason)
            elif block:
                kept.append(f"## {self.provider.name.upper()}\n{neutralise(block)}")
        return kept

    async def ask(self, hook: str, *arguments: object, box_s: float | None = None) -> list[Any]:
        """What a hook returns, as none or one. One that the memory has not written is not called: that it does nothing
        must not count as success."""
        if not implements(self.provider, hook) or self._breaker.is_open:
            return []
        call = getattr(self.provider, hook)
        task = self._host.spawn(self._work(lambda: call(*arguments)))
        await self._waited(task, box_s or self._timeout_s)
        try:
            if task.done():
                return [self._outcome(task, is_telling=False)]
            raise self._overdue(task, box_s or self._timeout_s)
        except MnemeError as error:
            self._log.warning("a memory failed and was skipped", hook=hook, error=str(error))
            return []

    async def bring(self, call: Callable[[], Awaitable[T]]) -> T:
        """A delivery. Raises DeliveryError, permanent when the memory refused for good; StoreError."""
        try:
            return await self._admitted(call, DELIVERY_S)
        except (Refused, ToolError) as error:
            raise DeliveryError(f"{self.provider.name} refused: {error}", is_permanent=True) from error

    def tools(self) -> Sequence[Tool]:
        """Its tools for the model."""
        if self.is_external and self.provider.mode == "context":
            return ()
        with foreign(f"the tools of {self.provider.name}"):
            tools = tuple(self.provider.tools())
            if not all(isinstance(tool, Tool) for tool in tools):
                raise TypeError("something among them is no Tool")
            return tools

    async def call(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Runs a tool. Raises ToolError."""
        if not may_consult(context.session):
            raise ToolError(f"{name} asks a service outside, which is not done in an incognito conversation.")
        try:
            answer = await self._admitted(lambda: self.provider.call_tool(name, arguments, context), DELIVERY_S)
        except (Refused, DeliveryError) as error:
            raise ToolError(f"{name} failed: {error} Go on without it.") from error
        return str(answer)

    async def close(self) -> None:
        """The process ends."""
        if self._is_ready:
            task = self._host.spawn(self._work(self.provider.shutdown))
            await self._waited(task, self._timeout_s)
            if not task.done() or (not task.cancelled() and task.exception() is not None):
                task.cancel()
                self._log.warning("a memory did not close")

    async def _admitted(self, call: Callable[[], Awaitable[T]], box_s: float) -> T:
        if not self._breaker.admit():
            raise DeliveryError(
                f"{self.provider.name} is out of order: {self._breaker.reason}", retry_after_s=self._breaker.rest_s
            )
        task = self._host.spawn(self._work(call))
        await self._waited(task, box_s)
        if task.done():
            return self._outcome(task)
        raise self._overdue(task, box_s)

    async def _work(self, call: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            if not self._is_ready:
                if not await self.provider.is_available():
                    raise ConfigError(f"{self.provider.name} is not available; `mneme memory setup` sets it up.")
                if self._folder is not None:
                    await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
                await self._contained(lambda: self.provider.initialize(self._folder or Path()))
                self._is_ready = True
        return await self._contained(call)

    async def _contained(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await call()
        except SystemExit as error:
            # It would end the event loop, and with it all of us.
            raise DeliveryError(f"{self.provider.name} wanted to end the process.") from error

    async def _waited(self, task: asyncio.Task[Any], box_s: float) -> None:
        """Until the task is done or its time is over; a task that does not mind being cancelled holds up nobody."""
        try:
            await asyncio.wait({task}, timeout=box_s)
        except asyncio.CancelledError:
            task.cancel()
            self._breaker.release()
            raise

    def _outcome(self, task: asyncio.Task[T], *, is_telling: bool = True) -> T:
        """What a finished call gave. `is_telling`: whether that it succeeded says that the memory works."""
        try:
            answer = task.result()
        except asyncio.CancelledError:
            self._breaker.release()
            raise DeliveryError(f"{self.provider.name} was given up.") from None
        except (Refused, ToolError):
            # It works, it says no.
            self._breaker.succeed()
            raise
        except StoreError:
            self._breaker.release()
            raise
        except DeliveryError as error:
            self._failed(str(error))
            raise
        except Exception as error:
            reason = f"{type(error).__name__} {on_one_line(str(error))[:REASON_CHARS]}".strip()
            self._failed(reason)
            raise DeliveryError(f"{self.provider.name} failed: {reason}") from error
        if is_telling:
            self._breaker.succeed()
        return answer

    def _overdue(self, task: asyncio.Task[Any], box_s: float) -> DeliveryError:
        task.cancel()
        reason = f"no answer within {box_s:g} s"
        self._failed(reason)
        return DeliveryError(f"{self.provider.name}: {reason}")

    def _failed(self, reason: str) -> None:
        if self._breaker.fail(reason):
            self._host.opened(self.provider.name, reason)

    def _search(self, task: asyncio.Task[Sequence[str]], context: ToolContext, *, is_late: bool) -> None:
        self._searches = {key: search for key, search in self._searches.items() if not search.task.done()}
        self._searches[context.session.id] = _Search(self._host.spawn(self._shelve(task, context)), is_late)

    async def _shelve(self, task: asyncio.Task[Sequence[str]], context: ToolContext) -> None:
        await self._waited(task, LATE_S)
        try:
            if not task.done():
                raise self._overdue(task, LATE_S)
            self._shelf.put(context, self._lines(self._outcome(task)))
        except MnemeError as error:
            self._log.warning("a memory failed beside the turns", error=str(error))

    def _lines(self, found: Sequence[str]) -> list[str]:
        """Lines as they may be sent. Those of a service have its name before their token, so that two memories never
        take each other's for known; one that reads like an order is left out."""
        if not self.is_external:
            return list(found)
        if not isinstance(found, (list, tuple)):
            self._log.warning("what a memory recalled is no list of lines", kind=type(found).__name__)
            return []
        lines = []
        for line in found[:LINES]:
            line = " ".join(str(line).split())[:LINE_CHARS]
            if line and (reason := suspicion(line)) is not None:
                self._log.warning("what a memory recalled was left out", reason=reason)
            elif line:
                lines.append(f"{self.provider.name}:{line}")
        return lines


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Around code of somebody else that runs at once: what it raises leaves as a ConfigError about `what`."""
    try:
        yield
    except MnemeError:
        raise
    except SystemExit as error:
        raise ConfigError(f"{what} cannot be used: it wanted to end the process") from error
    except Exception as error:
        raise ConfigError(f"{what} cannot be used: {type(error).__name__} {on_one_line(str(error))[:300]}") from error


async def _nothing() -> None:
    """Only that the memory is made ready."""
