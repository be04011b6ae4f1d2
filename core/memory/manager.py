"""All memory providers as one: asks them side by side, and joins what is not empty.

Every call is behind a time limit and a circuit breaker; one that fails or hangs is skipped, and what comes too late for
a turn is kept for the next one. Built-in providers come first; an external one runs in its own thread and is synced
through the outbox; what it says is cut, and left out where it looks wrong.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import zlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError, Refused, StoreError, ToolError
from core.guard.fence import neutralise
from core.guard.guard import suspicion
from core.memory.provider import MemoryProvider, awaited
from core.ports import Clock
from core.store.rows import turns
from core.store.sync import HOOKS, Hook, SyncQueue, SyncTask
from core.text.normalize import on_one_line
from core.text.terms import is_smalltalk
from core.types import Json, Message, Scope, Session, Tool, ToolContext

T = TypeVar("T")

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
LINES = 12
LINE_CHARS = 600
TEXT_CHARS = 4_000
TOOL_BYTES = 20_000
"""A tool stands in every request."""
_TOKEN = re.compile(r"\S*\d\S* ")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class MemoryManager:
    """Over `builtins`, then `externals`, which `queue` tells, with folders under `home`. `timeout_s`: of each call that
    a turn waits for. `notify` takes a key that is never used again and a sentence for the owner. Its methods are hooks
    of `MemoryProvider`, or say what they are."""

    def __init__(
        self,
        builtins: Sequence[MemoryProvider],
        clock: Clock,
        timeout_s: float = 2.0,
        queue: SyncQueue | None = None,
        externals: Sequence[MemoryProvider] = (),
        home: Path = Path(),
        notify: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._queue = queue
        self._notify_owner = notify
        self._tasks: set[asyncio.Task[Any]] = set()

        def guarded(provider: MemoryProvider, folder: Path | None) -> GuardedProvider:
            return GuardedProvider(provider, folder, clock, timeout_s, self._spawn, self._opened)

        self._own = [guarded(one, None) for one in builtins]
        self._external = [guarded(one, home / "providers" / one.name) for one in externals]
        self._all = [*self._own, *self._external]
        self.warnings: list[str] = []
        """What is wrong with the settings, as sentences for the owner."""
        self._log = structlog.get_logger("memory")

    @property
    def states(self) -> Mapping[str, str]:
        return {one.provider.name: one.breaker.state for one in self._all}

    @property
    def externals(self) -> Sequence[str]:
        return [one.provider.name for one in self._external]

    async def start(self) -> None:
        """Initializes the providers, and queues what an earlier process did not tell them."""
        await self._tell(lambda queue: queue.catch_up())
        await asyncio.gather(*(one.start() for one in self._all))

    async def tend(self) -> bool:
        """As a chore of the maintenance."""
        await self._ask(self._own, "catch_up", timeout_s=WORK_S)
        return False

    async def system_prompt_block(self, context: ToolContext) -> str:
        async def block(one: GuardedProvider) -> str:
            timeout_s = self._timeout_s * (1 if one.is_external else OWN_BLOCK_TIMEOUTS)
            text = (await one.ask("system_prompt_block", context, timeout_s=timeout_s) or "").strip()
            return f"## {one.provider.name.upper()}\n{text}" if text and one.is_external else text

        return "\n\n".join(filter(None, await asyncio.gather(*map(block, self._asked(context)))))

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        is_small = is_smalltalk(text)
        asked = [one for one in self._asked(context) if not (is_small and one.provider.is_searching)]
        found = await asyncio.gather(*(one.prefetch(text, context) for one in asked))
        first = [lines for one, lines in zip(asked, found, strict=True) if not one.provider.is_searching]
        others = [lines for one, lines in zip(asked, found, strict=True) if one.provider.is_searching]
        # The turn's budget cuts off the end: the best of each comes before the second best of any.
        lines = chain(*first, *zip_longest(*others, fillvalue=""))
        return list(dict.fromkeys(line for line in lines if line.strip()))

    async def queue_prefetch(self, text: str, context: ToolContext) -> None:
        if context.session.is_remembered and not is_smalltalk(text):
            for one in self._asked(context):
                one.queue(text, context)

    async def turn_over(self, session: Session, rows: Sequence[Message]) -> None:
        """`rows`: those of the whole session, with those that it carries on."""
        if not session.is_remembered:
            return
        await self._tell(lambda queue: queue.tell(session.id))
        if own := turns([row for row in rows if row.session_id == session.id]):
            key = f"turn:{session.id}:{own[-1][0].id}"
            await self._ask(self._own, "sync_turn", session, own[-1], key, timeout_s=WORK_S)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        if session.is_remembered:
            own = [row for row in messages if row.session_id == session.id]
            await self._tell(lambda queue: queue.tell(session.id))
            # A new session does not wait for this.
            self._spawn(self._ask(self._own, "on_session_end", session, own, timeout_s=WORK_S))

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        await self._tell(lambda queue: queue.tell_switch(new_id, parent_id, reason))

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        asked = self._all if session.is_remembered else ()
        return "\n\n".join(filter(None, await self._ask(asked, "on_pre_compress", session, messages)))

    async def on_memory_write(self) -> None:
        """Also by another process."""
        await self._tell(lambda queue: queue.tell_notes())

    async def tools(self, reserved: Collection[str] = ()) -> Sequence[Tool]:
        """Without external ones that are malformed (a model server would refuse them) or whose name is taken."""
        tools: list[Tool] = []
        for one in self._all:
            try:
                offered = await one.tools()
            except ConfigError as error:
                self.warn(f"The memory {one.provider.name} has no tools: {error}.")
                continue
            for tool in offered:
                taken = {*reserved, *(known.name for known in tools)}
                why = tool_fault(tool) or ("the name is taken" if tool.name in taken else None)
                if one.is_external and why:
                    called = on_one_line(tool.name)[:64] if isinstance(tool.name, str) else "without a name"
                    self.warn(f"The tool {called} of the memory {one.provider.name} is left out: {why}.")
                else:
                    tools.append(tool)
        return tools

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self._log.warning("a memory is not as the settings want it", problem=sentence)
            self.warnings.append(sentence)

    async def deliver(self, task: SyncTask) -> None:
        """Raises DeliveryError, permanent when the provider refuses for good, cannot erase or is gone; StoreError."""
        one = next((one for one in self._external if one.provider.name == task.provider), None)
        if one is None or self._queue is None:
            raise DeliveryError(f"there is no memory {task.provider} any more", is_permanent=True)
        if task.hook == "on_forget" and not implements(one.provider, "on_forget"):
            raise DeliveryError(f"{task.provider} has no way to erase what it was told", is_permanent=True)
        # What forgets nothing still has all of what would be told anew.
        is_kept = task.is_repeated and not implements(one.provider, "on_forget")
        if not is_kept and (arguments := await self._queue.arguments(task)) is not None:
            await one.deliver(task.hook, *arguments)

    async def given_up(self, key: str) -> None:
        """A task is not tried again; the owner is told where that was to erase something."""
        task = SyncTask.parse(key)
        if task is not None and task.hook == "on_forget":
            await self._notify(
                f"memory-keeps:{task.provider}",
                f"My memory “{task.provider}” did not erase what it was asked to; `mneme memory providers` says why. "
                f"Have it erased there, or let `mneme memory sync {task.provider}` ask it again.",
            )

    async def amended(self, message_id: int) -> None:
        await self._tell(lambda queue: queue.amended(message_id))

    def invalidate(self) -> None:
        """Drops what was found for turns to come."""
        for one in self._all:
            one.invalidate()

    async def shutdown(self) -> None:
        """Cancels what still runs and closes the providers, the last first."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        for one in reversed(self._all):
            await one.close()

    def _asked(self, context: ToolContext) -> list[GuardedProvider]:
        return [one for one in self._all if one.is_asked(context.session)]

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _opened(self, name: str, reason: str) -> None:
        self._log.error("a memory is out of order", provider=name, reason=reason)
        sentence = f"My memory “{name}” is out of order ({reason}). I go on without it and try it again."
        self._spawn(self._notify(f"memory-down:{name}", sentence))

    async def _notify(self, key: str, sentence: str) -> None:
        """Once a day at most, also over restarts."""
        try:
            if self._notify_owner is not None:
                await self._notify_owner(f"{key}:{self._clock.now().date()}", sentence)
        except MnemeError as error:
            self._log.error("the owner was not told", error=str(error))

    async def _tell(self, work: Callable[[SyncQueue], Awaitable[object]]) -> None:
        """What cannot be queued now is found missing, and queued, by a later catch-up."""
        try:
            if self._queue is not None and self._external:
                await work(self._queue)
        except MnemeError as error:
            self._log.error("a memory cannot be told now", error=str(error))

    async def _ask(
        self, asked: Sequence[GuardedProvider], hook: str, *arguments: object, timeout_s: float | None = None
    ) -> list[Any]:
        """What they answer side by side, in their order, without those that failed."""
        answers = await asyncio.gather(*(one.ask(hook, *arguments, timeout_s=timeout_s) for one in asked))
        return list(filter(None, answers))


class CircuitBreaker:
    """Open after `FAILURES` in a row; calls are tried again when its rest is over, which doubles if they fail. A call
    that ends while it rests began before that, and tells nothing new."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
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

    def fail(self, reason: str) -> bool:
        """True when that opened it."""
        self.reason = reason
        if self.rest_s:
            return False
        self._failures += 1
        doubled = min(max(self._failures - FAILURES, 0), 10)
        self._until = self._clock.now() + min(SHORTEST_REST * 2**doubled, LONGEST_REST)
        return self._failures == FAILURES


class GuardedProvider:
    """`provider`, external where it has a `folder`. `spawn` starts a task that is cancelled at the end; `on_open` is
    called with name and reason when the circuit breaker opens."""

    def __init__(
        self,
        provider: MemoryProvider,
        folder: Path | None,
        clock: Clock,
        timeout_s: float,
        spawn: Callable[[Coroutine[Any, Any, list[str]]], asyncio.Task[list[str]]],
        on_open: Callable[[str, str], None],
    ) -> None:
        self.provider = provider
        self.is_external = folder is not None
        self.breaker = CircuitBreaker(clock)
        self._timeout_s = timeout_s
        self._folder = folder or Path()
        self._thread = ProviderThread(provider.name) if self.is_external else None
        self._spawn = spawn
        self._on_open = on_open
        self._searches: dict[tuple[int, frozenset[Scope]], list[asyncio.Task[list[str]]]] = {}
        """By session and what may be seen: for its next turn, and those that earlier turns did not wait for."""
        self._starting = asyncio.Lock()
        self._is_ready = False
        self._log = structlog.get_logger("memory").bind(provider=provider.name)

    def is_asked(self, session: Session) -> bool:
        """Whether a turn of this session may ask it; incognito is nothing for an external one."""
        return not self.is_external or (self.provider.mode != "tools" and not session.is_incognito)

    async def start(self) -> None:
        await self._tried(DELIVERY_S, "is_available")

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Lines for the turn about `text`, and those found for this session since the last one."""
        search = self._spawn(self._found("prefetch", text, context))
        key = context.session.id, context.scopes
        searches = self._searches[key] = [search, *self._searches.get(key, ())]
        await asyncio.wait({search}, timeout=self._timeout_s)
        if search.cancelled():
            # Something was erased meanwhile.
            return ()
        self._searches.pop(key, None)
        if late := [task for task in searches if not task.done()]:
            self._log.warning("a memory took too long and was skipped")
            self._searches[key] = late
        return [line for task in searches if task.done() and not task.cancelled() for line in task.result()]

    def queue(self, text: str, context: ToolContext) -> None:
        key = context.session.id, context.scopes
        if implements(self.provider, "queue_prefetch") and not self._searches.get(key):
            self._searches[key] = [self._spawn(self._found("queue_prefetch", text, context))]

    def invalidate(self) -> None:
        """Drops what was or is being found for turns to come."""
        for search in chain.from_iterable(self._searches.values()):
            search.cancel()
        self._searches = {}

    async def ask(self, hook: str, *arguments: object, timeout_s: float | None = None) -> Any:
        """What a hook returns, of an external one a text that may be sent; None where there is no answer."""
        if not implements(self.provider, hook) or self.breaker.is_open:
            return None
        answer = await self._tried(timeout_s or self._timeout_s, hook, *arguments)
        return service_text(self.provider.name, answer) if self.is_external else answer

    async def deliver(self, hook: str, *arguments: object) -> None:
        """Raises DeliveryError, permanent when the service refused for good."""
        try:
            await self._insist(hook, *arguments)
        except (Refused, ToolError) as error:
            raise DeliveryError(f"{self.provider.name} refused: {error}", is_permanent=True) from error

    async def tools(self) -> Sequence[Tool]:
        """Those of an external one run in its thread. Raises ConfigError when it cannot say them."""
        if (self.is_external and self.provider.mode == "context") or not implements(self.provider, "tools"):
            return ()
        try:
            given = await self._call(self._timeout_s, "tools")
        except MnemeError as error:
            raise ConfigError(f"they cannot be asked for: {error}") from error
        if not isinstance(given, (list, tuple)) or not all(isinstance(tool, Tool) for tool in given):
            raise ConfigError("something among them is no Tool")
        if not self.is_external:
            return given
        outside = {"is_reading": False, "is_outside": True}
        return [replace(tool, run=partial(self._call_tool, tool.name), **outside) for tool in given]

    async def close(self) -> None:
        if self._is_ready:
            await self._tried(self._timeout_s, "shutdown")
        if self._thread is not None:
            await self._thread.close()

    async def _call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        try:
            answer = await self._insist("call_tool", name, arguments, context)
        except (Refused, DeliveryError) as error:
            raise ToolError(f"{name} failed: {error} Go on without it.") from error
        if not isinstance(answer, str):
            raise ToolError(f"{name} gave no text. Go on without it.")
        return answer

    async def _found(self, hook: str, text: str, context: ToolContext) -> list[str]:
        found = None if self.breaker.rest_s > 0 else await self._tried(SEARCH_S, hook, text, context)
        if found is None:
            return []
        return service_lines(self.provider.name, found) if self.is_external else found

    async def _tried(self, timeout_s: float, hook: str, *arguments: object) -> Any:
        try:
            return await self._call(timeout_s, hook, *arguments)
        except MnemeError as error:
            self._log.warning("a memory failed and was skipped", hook=hook, error=str(error))

    async def _insist(self, hook: str, *arguments: object) -> Any:
        """Raises as `_call` does, at once while the breaker rests."""
        if rest_s := self.breaker.rest_s:
            reason = f"{self.provider.name} is out of order: {self.breaker.reason}"
            raise DeliveryError(reason, retry_after_s=rest_s)
        return await self._call(DELIVERY_S, hook, *arguments)

    async def _call(self, timeout_s: float, hook: str, *arguments: object) -> Any:
        """Raises Refused, ToolError and StoreError as they are, DeliveryError for everything else."""
        name = self.provider.name
        try:
            async with asyncio.timeout(timeout_s) as limit:
                if hook != "tools":
                    await self._assert_ready()
                answer = await self._run(partial(getattr(self.provider, hook), *arguments))
        except StoreError:
            raise
        except (Refused, ToolError):
            # It works, it says no.
            self.breaker.succeed()
            raise
        except Exception as error:
            reason = f"{type(error).__name__} {on_one_line(str(error))[:REASON_CHARS]}".strip()
            if isinstance(error, DeliveryError):
                reason = str(error)
            elif limit.expired():
                reason = f"no answer within {timeout_s:g} s"
            if self.breaker.fail(reason):
                self._on_open(name, reason)
            if isinstance(error, DeliveryError):
                raise
            raise DeliveryError(f"{name} failed: {reason}") from error
        self.breaker.succeed()
        return answer

    async def _assert_ready(self) -> None:
        async with self._starting:
            if self._is_ready:
                return
            if not await self._run(self.provider.is_available):
                raise ConfigError(f"{self.provider.name} is not available; `mneme memory setup` sets it up.")
            if self.is_external:
                await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
            await self._run(lambda: self.provider.initialize(self._folder))
            self._is_ready = True

    async def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        return await (call() if self._thread is None else self._thread.run(call))


def service_lines(name: str, found: Any) -> list[str]:
    """Lines of an external provider, cut, without suspicious ones, each with its name before its token."""
    taken = []
    for given in found[:LINES] if isinstance(found, (list, tuple)) else [[found]]:
        if line := " ".join(_checked(name, given, LINE_CHARS).split()):
            # Without a token of its own, its text is: two that begin alike are not the same.
            token = "" if _TOKEN.match(line) else f"{zlib.crc32(line.encode()):08x} "
            taken.append(f"{name}:{token}{line}")
    return taken


def service_text(name: str, given: Any) -> str:
    """A text for a prompt; empty when there is none that may be sent."""
    return neutralise(_checked(name, given, TEXT_CHARS).strip())


def _checked(name: str, given: Any, limit_chars: int) -> str:
    """The beginning of a text, without lone surrogates, which cannot be sent; empty for what is suspicious or none."""
    text = given if isinstance(given, str) else ""
    text = text[:limit_chars].encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    reason = suspicion(text) if given is None or isinstance(given, str) else f"it is no text but {type(given).__name__}"
    if reason is not None:
        structlog.get_logger("memory").warning("what a memory says was left out", provider=name, reason=reason)
        return ""
    return text


def tool_fault(tool: Tool) -> str | None:
    """Why a tool cannot be offered to a model; None when it can."""
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    if not isinstance(tool.name, str) or _TOOL_NAME.fullmatch(tool.name) is None:
        return "its name should be letters, digits, _ and -"
    if not isinstance(tool.description, str) or schema.get("type") != "object":
        return "it should have a description, and a schema of the type object"
    try:
        size = len(json.dumps([tool.description, tool.schema], ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        return f"its description or schema cannot be sent: {on_one_line(str(error))[:200]}"
    return f"it takes {size:,} bytes, more than {TOOL_BYTES:,}" if size > TOOL_BYTES else None


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
            name = f"memory {self._name}"
            self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name=name, daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def close(self) -> None:
        """A thread that does not end is given up: it cannot keep the process alive."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
            await asyncio.to_thread(self._thread.join, CLOSING_S)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    # At its end the runner cancels what still runs and closes the loop.
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


@contextmanager
def foreign(what: str) -> Iterator[None]:
    """Turns what foreign code raises into a ConfigError about `what`."""
    try:
        yield
    except MnemeError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{what} cannot be used: {type(error).__name__} {on_one_line(str(error))[:300]}") from error
