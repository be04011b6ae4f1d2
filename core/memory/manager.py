"""All memory providers as one: asks them side by side, and joins what is not empty.

Every call is behind a time limit and a circuit breaker; one that fails or hangs is skipped, and what comes too late for
a turn is kept for the next one. Built-in providers come first; an external one runs in its own thread and is synced
through the outbox; what it says is cut, and left out where it looks wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from threading import Thread
from typing import Any, Literal, TypeVar
from weakref import WeakSet

import structlog

from config.masking import masked
from core.errors import ConfigError, DeliveryError, MnemeError, Refused, StoreError, ToolError
from core.guard.guard import service_lines, service_text, tool_fault
from core.memory.provider import MemoryProvider, awaited
from core.ports import Clock
from core.store.rows import turns
from core.store.sync import HOOKS, Hook, SyncQueue, SyncTask
from core.text.normalize import on_one_line
from core.text.terms import is_smalltalk
from core.types import Json, Message, Scope, Session, Tool, ToolContext

T = TypeVar("T")
MemoryNotice = Literal["down", "keeps"]
"""It is out of order; it did not erase what it was asked to."""
log = structlog.get_logger("memory")

WORK_S = 600.0
"""Limit of the work of built-in ones beside the turns, which may be that of some days."""
OWN_BLOCK_TIMEOUTS = 5
"""A built-in block may take so many times longer: a whole session without its notes is worse than to wait."""
FAILURES = 3
"""In a row, that open the circuit breaker."""
SHORTEST_REST = timedelta(seconds=30)
LONGEST_REST = timedelta(hours=1)
DELIVERY_S = 30.0
"""Limit of an external call: a delivery from the outbox, a tool, the start."""
SEARCH_S = 20.0
"""Limit of a search; what comes too late for its turn serves the next one."""
CLOSING_S = 1.0
REASON_CHARS = 120


class MemoryManager:
    """Over `builtins`, then `externals`, which `queue` tells, with folders under `home`. `timeout_s`: of each call that
    a turn waits for. `notify` tells the owner of a provider, with a reason. Its methods are hooks of `MemoryProvider`,
    or say what they are."""

    def __init__(
        self,
        builtins: Sequence[MemoryProvider],
        clock: Clock,
        timeout_s: float = 2.0,
        queue: SyncQueue | None = None,
        externals: Sequence[MemoryProvider] = (),
        home: Path = Path(),
        notify: Callable[[MemoryNotice, str, str], Awaitable[None]] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._queue = queue if externals else None
        self._notify_owner = notify
        self._own = [GuardedProvider(one, None, clock, self._opened) for one in builtins]
        folder = home / "providers"
        self.externals = {one.name: GuardedProvider(one, folder / one.name, clock, self._opened) for one in externals}
        self._all = [*self._own, *self.externals.values()]
        self._tasks: set[asyncio.Task[Any]] = set()
        self._searches: WeakSet[asyncio.Task[None]] = WeakSet()
        self._found: dict[tuple[str, int, frozenset[Scope]], list[str]] = {}
        """By provider, session and what may be seen: for the next turn, what earlier ones did not wait for."""
        self.warnings: list[str] = []
        """What is wrong with the settings, as sentences for the owner."""

    @property
    def states(self) -> Mapping[str, str]:
        return {one.name: one.breaker.state + (f" ({one.about})" if one.about else "") for one in self._all}

    @property
    def outages(self) -> Mapping[str, str]:
        """The states of those that are out of order."""
        return {name: one.breaker.state for name, one in self.externals.items() if one.breaker.is_open}

    async def start(self) -> None:
        """Initializes the providers, and queues what an earlier process did not tell them."""
        await self._tell(lambda queue: queue.catch_up())
        await asyncio.gather(*(one.tried(DELIVERY_S, "is_available") for one in self._all))
        for one in self._all:
            self._spawn(one.introduce())

    async def tend(self) -> bool:
        """As a chore of the maintenance."""
        await self._ask(self._own, WORK_S, "catch_up")
        return False

    async def system_prompt_block(self, context: ToolContext) -> str:
        async def block(one: GuardedProvider) -> str:
            limit_s = self._timeout_s * (1 if one.is_external else OWN_BLOCK_TIMEOUTS)
            text = (await one.ask(limit_s, "system_prompt_block", context) or "").strip()
            return f"## {one.name.upper()}\n{text}" if text and one.is_external else text

        return "\n\n".join(filter(None, await asyncio.gather(*map(block, self._asked(context)))))

    async def prefetch(self, text: str, context: ToolContext, typed: str | None = None) -> Sequence[str]:
        """Also what was found for this session since its last turn. `typed`: the part of `text` that services get."""
        asked = self._about(text, typed, context)
        if searches := [self._search(one, "prefetch", said, context) for one, said in asked.items() if said.strip()]:
            _, late = await asyncio.wait(searches, timeout=self._timeout_s)
            for search in late:
                log.warning("a memory took too long and was skipped", provider=search.get_name())
        found = {one: self._found.pop((one.name, context.session.id, context.scopes), []) for one in asked}
        first = [found[one] for one in asked if not one.provider.is_searching]
        others = [found[one] for one in asked if one.provider.is_searching]
        # The turn's budget cuts off the end: the best of each comes before the second best of any.
        lines = chain(*first, *zip_longest(*others, fillvalue=""))
        return list(dict.fromkeys(line for line in lines if line.strip()))

    async def queue_prefetch(self, text: str, context: ToolContext) -> None:
        if context.session.is_remembered and not is_smalltalk(text):
            for one in self._asked(context):
                if one.provider.is_reflecting and implements(one.provider, "queue_prefetch"):
                    self._search(one, "queue_prefetch", text, context)

    async def turn_over(self, session: Session, rows: Sequence[Message]) -> None:
        """`rows`: those of the whole session, with those that it carries on."""
        if session.is_remembered:
            last = turns(rows)[-1:]
            # Where it was asked: a compression may have come before the answer.
            session_id = last[0][0].session_id if last else session.id
            await self._tell(lambda queue: queue.tell(session_id))
            for turn in last:
                await self._ask(self._own, WORK_S, "sync_turn", session, turn, f"turn:{session_id}:{turn[0].id}")

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        if session.is_remembered:
            own = [row for row in messages if row.session_id == session.id]
            await self._tell(lambda queue: queue.tell(session.id))
            # A new session does not wait for this.
            self._spawn(self._ask(self._own, WORK_S, "on_session_end", session, own))

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        await self._tell(lambda queue: queue.tell_switch(new_id, parent_id, reason))

    async def on_delegation(self, session: Session) -> None:
        await self._tell(lambda queue: queue.tell_delegation(session.id))

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        asked = self._all if session.is_remembered else ()
        return "\n\n".join(await self._ask(asked, self._timeout_s, "on_pre_compress", session, messages))

    async def on_memory_write(self) -> None:
        """Also by another process."""
        await self._tell(lambda queue: queue.tell_notes())

    async def amended(self, *message_ids: int) -> None:
        await self._tell(lambda queue: queue.amended(*message_ids))

    async def tools(self, reserved: Collection[str] = ()) -> Sequence[Tool]:
        """Without external ones that are malformed (a model server would refuse them) or whose name is taken."""
        tools: list[Tool] = []
        for one in self._all:
            if not implements(one.provider, "tools") or (one.is_external and one.provider.mode == "context"):
                continue
            try:
                offered = await one.call(self._timeout_s, "tools")
            except MnemeError as error:
                self.warn(f"The memory {one.name} has no tools: they cannot be asked for: {error}.")
                continue
            for tool in offered if isinstance(offered, (list, tuple)) else [offered]:
                if not one.is_external:
                    tools.append(tool)
                elif why := tool_fault(tool, {*reserved, *(known.name for known in tools)}):
                    is_named = isinstance(tool, Tool) and isinstance(tool.name, str)
                    called = on_one_line(tool.name)[:64] if is_named else "without a name"
                    self.warn(f"The tool {called} of the memory {one.name} is left out: {why}.")
                else:
                    run = partial(one.call_tool, tool.name)
                    tools.append(replace(tool, run=run, is_reading=False, is_outside=True))
        return tools

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            log.warning("a memory is not as the settings want it", problem=sentence)
            self.warnings.append(sentence)

    async def deliver(self, task: SyncTask) -> None:
        """Raises DeliveryError, permanent when the provider refuses for good, cannot erase or is gone; StoreError."""
        one = self.externals.get(task.provider)
        if one is None or self._queue is None:
            raise DeliveryError(f"there is no memory {task.provider} any more", is_permanent=True)
        has_all = not implements(one.provider, "on_forget")
        if has_all and task.hook == "on_forget":
            raise DeliveryError(f"{one.name} has no way to erase what it was told", is_permanent=True)
        # What forgets nothing is told no turn anew, which its mark tells.
        is_anew = task.hook == "sync_turn" and "." in task.turn
        arguments = None if has_all and is_anew else await self._queue.arguments(task)
        if arguments is None:
            return
        try:
            if task.hook == "on_forget" and implements(one.provider, "goes_along"):
                await self._queue.tell_anew(task, await one.call(DELIVERY_S, "goes_along", *arguments))
            await one.call(DELIVERY_S, task.hook, *arguments)
        except (Refused, ToolError) as error:
            raise DeliveryError(f"{one.name} refused", words=str(error), is_permanent=True) from error

    async def given_up(self, key: str) -> None:
        """A task is not tried again; the owner is told where that was to erase something."""
        if (task := SyncTask.parse(key)) and task.hook == "on_forget":
            await self._notify("keeps", task.provider)

    def invalidate(self) -> None:
        """Drops what was or is being found for turns to come."""
        for search in self._searches:
            search.cancel()
        self._found = {}

    async def shutdown(self) -> None:
        """Cancels what still runs and closes the providers, the last first."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_S)
        for one in reversed(self._all):
            await one.close(self._timeout_s)

    def _asked(self, context: ToolContext) -> list[GuardedProvider]:
        """Before a turn: external ones not incognito, nor those that have tools only."""
        asked = [one for one in self.externals.values() if one.provider.mode != "tools"]
        return self._own if context.session.is_incognito else [*self._own, *asked]

    def _about(self, text: str, typed: str | None, context: ToolContext) -> dict[GuardedProvider, str]:
        """With what each is asked before a turn."""
        is_small = is_smalltalk(text)
        asked = [one for one in self._asked(context) if not (is_small and one.provider.is_searching)]
        return {one: text if typed is None or not one.is_external else typed for one in asked}

    def _search(self, one: GuardedProvider, hook: str, text: str, context: ToolContext) -> asyncio.Task[None]:
        async def search() -> None:
            if found := await one.ask(SEARCH_S, hook, text, context):
                key = one.name, context.session.id, context.scopes
                self._found[key] = [*found, *self._found.get(key, ())]

        task = self._spawn(search(), one.name)
        self._searches.add(task)
        return task

    def _spawn(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _opened(self, name: str, reason: str) -> None:
        log.error("a memory is out of order", provider=name)
        self._spawn(self._notify("down", name, reason))

    async def _notify(self, kind: MemoryNotice, name: str, reason: str = "") -> None:
        try:
            if self._notify_owner is not None:
                await self._notify_owner(kind, name, reason)
        except MnemeError as error:
            log.error("the owner was not told", error=str(error))

    async def _tell(self, work: Callable[[SyncQueue], Awaitable[object]]) -> None:
        """What cannot be queued now is found missing, and queued, by a later catch-up."""
        try:
            if self._queue is not None:
                await work(self._queue)
        except MnemeError as error:
            log.error("a memory cannot be told now", error=str(error))

    @staticmethod
    async def _ask(asked: Sequence[GuardedProvider], limit_s: float, hook: str, *arguments: object) -> list[Any]:
        """What they answer side by side, in their order, without those that failed."""
        return list(filter(None, await asyncio.gather(*(one.ask(limit_s, hook, *arguments) for one in asked))))


class CircuitBreaker:
    """Open after `FAILURES` in a row; calls are tried again when its rest is over, which doubles if they fail. A call
    that ends while it rests began before that, and tells nothing new. `on_open` gets the reason."""

    def __init__(self, clock: Clock, on_open: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_open = on_open
        self._failures = 0
        self._until = clock.now()
        self.reason = ""

    @property
    def is_open(self) -> bool:
        """Also while calls are tried again."""
        return self._failures >= FAILURES

    @property
    def state(self) -> str:
        """``works``, ``failed 2 times in a row: …`` or ``out of order: …``."""
        if self.is_open:
            return f"out of order, tried again now and then: {self.reason}"
        if self._failures:
            return f"failed {'once' if self._failures == 1 else f'{self._failures} times in a row'}: {self.reason}"
        return "works"

    @property
    def rest_s(self) -> float:
        """0 when a call may be made."""
        return max(0.0, (self._until - self._clock.now()).total_seconds()) if self.is_open else 0.0

    def succeed(self) -> None:
        if not self.rest_s:
            self._failures = 0

    def fail(self, reason: str) -> None:
        self.reason = reason
        if not self.rest_s:
            self._failures += 1
            self._until = self._clock.now() + min(SHORTEST_REST * 2 ** min(self._failures - FAILURES, 10), LONGEST_REST)
            if self._failures == FAILURES:
                self._on_open(reason)


class GuardedProvider:
    """`provider`, external where it has a `folder`. `on_open` is called with name and reason when the circuit breaker
    opens."""

    def __init__(
        self, provider: MemoryProvider, folder: Path | None, clock: Clock, on_open: Callable[[str, str], None]
    ) -> None:
        self.provider = provider
        self.name = provider.name
        self.is_external = folder is not None
        self.breaker = CircuitBreaker(clock, partial(on_open, self.name))
        self.about = ""
        self._folder = folder or Path()
        self._thread = ProviderThread(self.name) if self.is_external else None
        self._starting = asyncio.Lock()
        self._is_ready = False

    async def ask(self, limit_s: float, hook: str, *arguments: object) -> Any:
        """What a hook returns, of an external one as it may be sent; None where there is no answer. While the breaker
        is open, only a search tries whether it works again."""
        is_search = hook in ("prefetch", "queue_prefetch")
        is_resting = self.breaker.rest_s > 0 if is_search else self.breaker.is_open
        if is_resting or not implements(self.provider, hook):
            return None
        answer = await self.tried(limit_s, hook, *arguments)
        if answer is None or not self.is_external:
            return answer
        return service_lines(self.name, answer) if is_search else service_text(self.name, answer)

    async def introduce(self) -> None:
        if said := await self.ask(DELIVERY_S, "probe"):
            self.about = on_one_line(said)[:REASON_CHARS]

    async def close(self, limit_s: float) -> None:
        if self._is_ready:
            await self.tried(limit_s, "shutdown")
        if self._thread is not None:
            await self._thread.close()

    async def tried(self, limit_s: float, hook: str, *arguments: object) -> Any:
        """None where it fails."""
        try:
            return await self.call(limit_s, hook, *arguments)
        except MnemeError as error:
            log.warning("a memory failed and was skipped", provider=self.name, hook=hook, error=error.logged)

    async def call(self, limit_s: float, hook: str, *arguments: object) -> Any:
        """Raises Refused, ToolError and StoreError as they are, DeliveryError for everything else, at once while the
        breaker rests."""
        if hook not in ("tools", "shutdown") and (rest_s := self.breaker.rest_s):
            raise DeliveryError(f"{self.name} is out of order", words=self.breaker.reason, retry_after_s=rest_s)
        try:
            async with asyncio.timeout(limit_s) as limit:
                if hook != "tools":
                    await self._assert_ready()
                answer = await self._run(getattr(self.provider, hook), *arguments)
        except (Refused, ToolError, StoreError):
            # It works, it says no; or it is our store that does not.
            self.breaker.succeed()
            raise
        except DeliveryError as error:
            self.breaker.fail(str(error))
            raise
        except Exception as error:
            said = f"{type(error).__name__} {on_one_line(masked(str(error)))[:REASON_CHARS]}".strip()
            reason = f"no answer within {limit_s:g} s" if limit.expired() else said
            self.breaker.fail(reason)
            raise DeliveryError(f"{self.name} failed", words=reason) from error
        self.breaker.succeed()
        return answer

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        try:
            answer = await self.call(DELIVERY_S, "call_tool", name, arguments, context)
        except (Refused, DeliveryError) as error:
            raise ToolError(f"{name} failed: {error} Go on without it.") from error
        if not isinstance(answer, str):
            raise ToolError(f"{name} gave no text. Go on without it.")
        return answer

    async def _assert_ready(self) -> None:
        async with self._starting:
            if self._is_ready:
                return
            if not await self._run(self.provider.is_available):
                raise ConfigError(f"{self.name} is not available; `mneme memory setup` sets it up.")
            if self.is_external:
                await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
            await self._run(self.provider.initialize, self._folder)
            self._is_ready = True

    async def _run(self, hook: Callable[..., Awaitable[T]], *arguments: object) -> T:
        call = partial(hook, *arguments)
        return await (call() if self._thread is None else self._thread.run(call))


def implements(provider: MemoryProvider, hook: str) -> bool:
    """Whether the provider overrides this hook."""
    return getattr(type(provider), hook) is not getattr(MemoryProvider, hook)


def hooks_of(provider: MemoryProvider) -> frozenset[Hook]:
    """Those by which it is told what to keep, or to erase."""
    return frozenset(hook for hook in HOOKS if implements(provider, hook))


class ProviderThread:
    """A thread with an event loop for one provider: what blocks there holds up nobody else. Started when needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Calls it there, async or not; cancellation goes along. Raises DeliveryError for SystemExit and its like."""

        async def work() -> T:
            try:
                return await awaited(call())
            except Exception:
                raise
            except BaseException as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                # It would end the loop of this thread, or pass for a cancellation of the turn.
                raise DeliveryError(f"{self._name} raised {type(error).__name__}") from error

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=_run_loop, args=(self._loop,), name=f"memory {self._name}", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def close(self) -> None:
        """A thread that does not end is given up: it cannot keep the process alive."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
            await asyncio.to_thread(self._thread.join, CLOSING_S)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    # At its end the runner cancels what is left and closes the loop.
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()
        if running := asyncio.all_tasks(loop):
            for task in running:
                # After its first step: a connection that is cancelled before that is reported as never awaited.
                loop.call_soon(task.cancel)
            loop.run_until_complete(asyncio.wait(running))


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Turns what foreign code raises into a ConfigError about `what`."""
    try:
        yield
    except MnemeError:
        raise
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__} {on_one_line(masked(str(error)))[:300]}"
        raise ConfigError(f"{what} cannot be used: {said}") from error
