"""One memory at the table: every call to it goes through here, with a time box and a circuit breaker around it.

Whatever its code does ends here or leaves as an error of ours. What comes too late for a turn waits for the next one.
A service of the user's choice runs in a room of its own, and what it says is the word of a stranger.

A circuit breaker: whoever fails again and again is left alone for a while, then tried once.
Keeps what a memory found too late, or beforehand, until the next turn of the same conversation asks for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any, ParamSpec, Protocol, TypeVar

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError, Refused, StoreError, ToolError
from core.memory import provider_text
from core.memory.provider import MemoryProvider, implements
from core.memory.provider_thread import ProviderThread
from core.memory.smalltalk import is_remembered, may_consult
from core.ports import Clock
from core.text.sanitize import on_one_line
from core.types import Json, Message, Scope, Session, Tool, ToolContext

FAILURES = 3
"""So many in a row open it."""
SHORTEST_REST = timedelta(seconds=30)
LONGEST_REST = timedelta(hours=1)


class CircuitBreaker:
    """Closed while calls succeed; open after `FAILURES` in a row; half-open for one call when its rest is over. Each
    call that fails then doubles the rest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._rest = SHORTEST_REST
        self._until: datetime | None = None
        self._is_probing = False
        self.reason = ""
        """Why the last call failed."""

    @property
    def is_open(self) -> bool:
        """Whether it has given up on calls for now; also while one is tried."""
        return self._until is not None

    @property
    def state(self) -> str:
        """``works``, ``failed 2 times in a row: …`` or ``out of order: …``."""
        if self._until is not None:
            return f"out of order, tried again now and then: {self.reason}"
        if self._failures:
            return f"failed {'once' if self._failures == 1 else f'{self._failures} times in a row'}: {self.reason}"
        return "works"

    @property
    def rest_s(self) -> float:
        """How long it stays open, in seconds; 0 when a call may be made."""
        return 0.0 if self._until is None else max(0.0, (self._until - self._clock.now()).total_seconds())

    def admit(self) -> bool:
        """Whether a call may be made now. Every call that was admitted ends in `succeed`, `fail` or `release`."""
        if self._until is None:
            return True
        if self._is_probing or self._clock.now() < self._until:
            return False
        self._is_probing = True
        return True

    def succeed(self) -> None:
        """A call did what it should: closed."""
        self._failures = 0
        self._rest = SHORTEST_REST
        self._until = None
        self._is_probing = False

    def fail(self, reason: str) -> bool:
        """A call failed; True when that opened it."""
        self.reason = reason
        self._failures += 1
        if self._until is not None:
            # Calls that began before it opened may fail after; only the probe tells something new.
            if self._is_probing:
                self._is_probing = False
                self._rest = min(2 * self._rest, LONGEST_REST)
                self._until = self._clock.now() + self._rest
            return False
        if self._failures < FAILURES:
            return False
        self._until = self._clock.now() + self._rest
        return True

    def release(self) -> None:
        """A call was given up before it told anything."""
        self._is_probing = False


SESSIONS = 64
"""What was found for so many conversations is kept; of others, what is oldest goes."""


class LateResults:
    """Lines by session and by what could be seen then: where less or more may be seen since, they are not given."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int, frozenset[Scope]], tuple[str, ...]] = OrderedDict()

    def put(self, context: ToolContext, lines: Sequence[str]) -> None:
        """Keeps lines, in place of those that were there."""
        key = (context.session.id, context.scopes)
        self._held.pop(key, None)
        self._held[key] = tuple(lines)
        while len(self._held) > SESSIONS:
            self._held.popitem(last=False)

    def take(self, context: ToolContext) -> tuple[str, ...]:
        """What is there, which is not there any more then."""
        return self._held.pop((context.session.id, context.scopes), ())


T = TypeVar("T")
P = ParamSpec("P")

DELIVERY_S = 30.0
"""How long a service may take for what it is told through the outbox, and to come up."""
LATE_S = 20.0
"""So long a call that came too late for its turn goes on: what it finds serves the next one."""
OWN_BLOCK_BOXES = 5
"""So many time boxes for a block of what is built in, which reads our own files: a whole session without its notes is
worse than to wait."""
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


class GuardedProvider:
    """`provider`, asked within `timeout_s`. One with a `folder` of its own is a service outside: it learns what it is
    asked, and its words are those of a stranger."""

    def __init__(
        self,
        provider: MemoryProvider,
        folder: Path | None,
        breaker: CircuitBreaker,
        timeout_s: float,
        host: _Host,
    ) -> None:
        self.provider = provider
        self.is_external = folder is not None
        self._breaker = breaker
        self._timeout_s = timeout_s
        self._folder = folder
        self._room = None if folder is None else room(provider.name)
        self._host = host
        self._shelf = LateResults()
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

    def is_told(self, session: Session) -> bool:
        """Whether it may hear what happens in this session."""
        return not self.is_external or is_remembered(session)

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
        search, shelf = self._searches.get(context.session.id), self._shelf
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
        self._search(task, context, shelf, is_late=True)
        return shelved

    def queue(self, text: str, context: ToolContext) -> None:
        """Lets it look for the next turn while nobody waits."""
        search = self._searches.get(context.session.id)
        is_searching = search is not None and not search.task.done()
        if implements(self.provider, "queue_prefetch") and not is_searching and self._breaker.admit():
            task = self._host.spawn(self._work(lambda: self.provider.queue_prefetch(text, context)))
            self._search(task, context, self._shelf, is_late=False)

    def searches(self) -> list[asyncio.Task[None]]:
        """What it is looking for beside the turns."""
        return [search.task for search in self._searches.values() if not search.task.done()]

    def let_go(self) -> None:
        """Drops what waits for turns to come, also what is being looked for now."""
        for search in self._searches.values():
            search.task.cancel()
        self._shelf = LateResults()

    async def block(self, context: ToolContext) -> Sequence[str]:
        """Its text for the prompt, as none or one; without one of a service that reads like an order."""
        box_s = None if self.is_external else OWN_BLOCK_BOXES * self._timeout_s
        blocks: list[str] = await self.ask("system_prompt_block", context, box_s=box_s)
        if not self.is_external:
            return blocks
        return [block for given in blocks if (block := provider_text.block(self.provider.name, given))]

    async def survivors(self, session: Session, messages: Sequence[Message]) -> Sequence[str]:
        """What it wants to survive of a session that is too long, as none or one."""
        texts: list[str] = await self.ask("on_pre_compress", session, messages)
        return [text for given in texts if (text := provider_text.text(self.provider.name, given))]

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

    async def tools(self) -> Sequence[Tool]:
        """Its tools for the model. Raises ConfigError when it cannot say them."""
        if self.is_external and self.provider.mode == "context":
            return ()
        if not implements(self.provider, "tools"):
            return ()
        task = self._host.spawn(self._contained(self.provider.tools))
        await self._waited(task, self._timeout_s)
        try:
            if not task.done():
                raise self._overdue(task, self._timeout_s)
            given = self._outcome(task, is_telling=False)
        except MnemeError as error:
            raise ConfigError(f"they cannot be asked for: {error}") from error
        if not isinstance(given, (list, tuple)) or not all(isinstance(tool, Tool) for tool in given):
            raise ConfigError("something among them is no Tool")
        return tuple(given)

    async def call(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Runs a tool. Raises ToolError."""
        if not is_remembered(context.session):
            raise ToolError(f"{name} asks a service outside, which is not done here. Go on without it.")
        try:
            answer = await self._admitted(lambda: self.provider.call_tool(name, arguments, context), DELIVERY_S)
        except (Refused, DeliveryError) as error:
            raise ToolError(f"{name} failed: {error} Go on without it.") from error
        if not isinstance(answer, str):
            raise ToolError(f"{name} gave no text. Go on without it.")
        return answer

    async def close(self) -> None:
        """The process ends."""
        if self._is_ready:
            task = self._host.spawn(self._work(self.provider.shutdown))
            await self._waited(task, self._timeout_s)
            if not task.done() or (not task.cancelled() and task.exception() is not None):
                task.cancel()
                self._log.warning("a memory did not close")
        if self._room is not None:
            await self._room.close()

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
                if not await self._contained(self.provider.is_available):
                    raise ConfigError(f"{self.provider.name} is not available; `mneme memory setup` sets it up.")
                if self._folder is not None:
                    await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
                await self._contained(lambda: self.provider.initialize(self._folder or Path()))
                self._is_ready = True
        return await self._contained(call)

    async def _contained(self, call: Callable[[], Awaitable[T]]) -> T:
        return await (call() if self._room is None else self._room.do(lambda: _tamed(self.provider.name, call)))

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

    def _search(
        self, task: asyncio.Task[Sequence[str]], context: ToolContext, shelf: LateResults, *, is_late: bool
    ) -> None:
        """`shelf`: the one that was there when it began; what it finds after `let_go` is put on none that is asked."""
        self._searches = {key: search for key, search in self._searches.items() if not search.task.done()}
        self._searches[context.session.id] = _Search(self._host.spawn(self._shelve(task, context, shelf)), is_late)

    async def _shelve(self, task: asyncio.Task[Sequence[str]], context: ToolContext, shelf: LateResults) -> None:
        await self._waited(task, LATE_S)
        try:
            if not task.done():
                raise self._overdue(task, LATE_S)
            shelf.put(context, self._lines(self._outcome(task)))
        except MnemeError as error:
            self._log.warning("a memory failed beside the turns", error=str(error))

    def _lines(self, found: Sequence[str]) -> list[str]:
        return provider_text.lines(self.provider.name, found) if self.is_external else list(found)


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Around code of somebody else that runs at once: what it raises leaves as a ConfigError about `what`."""
    try:
        yield
    except MnemeError:
        raise
    except (SystemExit, KeyboardInterrupt) as error:
        raise ConfigError(f"{what} cannot be used: it wanted to end the process") from error
    except Exception as error:
        raise ConfigError(f"{what} cannot be used: {type(error).__name__} {on_one_line(str(error))[:300]}") from error


def room(name: str) -> ProviderThread:
    """Where the code of a service runs. Nothing that hangs there, nor its threads, keeps the process from ending."""
    return ProviderThread(name, _Hands())


class _Hands(ThreadPoolExecutor):
    """A thread for each call, which the end of the process does not wait for."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                answer = fn(*args, **kwargs)
            except BaseException as error:
                # It belongs to whoever waits for the future.
                future.set_exception(error)
            else:
                future.set_result(answer)

        Thread(target=work, daemon=True).start()
        return future


async def _tamed(name: str, call: Callable[[], Awaitable[T]]) -> T:
    """In the room: what would pass by every catch becomes an error of ours."""
    try:
        return await call()
    except (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise DeliveryError(f"{name} raised {type(error).__name__}") from error


async def _nothing() -> None:
    """Only that the memory is made ready."""
