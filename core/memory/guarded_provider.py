"""Every call to a provider: behind a time limit and a circuit breaker; what it raises leaves as an error of ours.

What comes too late for a turn is kept for the next one. An external provider runs in a thread of its own; what it says
is cut, and left out where it looks wrong.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError, Refused, StoreError, ToolError
from core.guard.fence import neutralise
from core.guard.guard import suspicion
from core.memory.provider import MemoryProvider, awaited, implements
from core.ports import Clock
from core.text.sanitize import on_one_line
from core.types import Json, Scope, Session, Tool, ToolContext

T = TypeVar("T")

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


class CircuitBreaker:
    """Open after `FAILURES` in a row; calls are tried again when its rest is over, which doubles if they fail."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._until: datetime | None = None
        self.reason = ""

    @property
    def is_open(self) -> bool:
        """Also while calls are tried again."""
        return self._until is not None

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
        return 0.0 if self._until is None else max(0.0, (self._until - self._clock.now()).total_seconds())

    def succeed(self) -> None:
        self._failures, self._until = 0, None

    def fail(self, reason: str) -> bool:
        """True when that opened it."""
        self.reason = reason
        if self.rest_s > 0:
            # The call began before it opened, and tells nothing new.
            return False
        was_open = self.is_open
        self._failures += 1
        if self._failures >= FAILURES:
            rest = min(SHORTEST_REST * 2 ** min(self._failures - FAILURES, 10), LONGEST_REST)
            self._until = self._clock.now() + rest
        return self.is_open and not was_open


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
        await self._tried(DELIVERY_S, "is_available", is_proof=True)

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

    async def ask(self, hook: str, *arguments: object, timeout_s: float | None = None) -> list[Any]:
        """What a hook returns, none or one; of an external one a text that may be sent."""
        if not implements(self.provider, hook) or self.breaker.is_open:
            return []
        answers = await self._tried(timeout_s or self._timeout_s, hook, *arguments)
        if self.is_external:
            answers = [service_text(self.provider.name, answer) for answer in answers]
        return list(filter(None, answers))

    async def deliver(self, hook: str, *arguments: object) -> None:
        """Raises DeliveryError, permanent when the service refused for good."""
        try:
            await self._call(self._hook(hook, *arguments), DELIVERY_S, is_proof=True)
        except (Refused, ToolError) as error:
            raise DeliveryError(f"{self.provider.name} refused: {error}", is_permanent=True) from error

    async def tools(self) -> Sequence[Tool]:
        """Raises ConfigError when it cannot say them."""
        if (self.is_external and self.provider.mode == "context") or not implements(self.provider, "tools"):
            return ()
        try:
            given = await self._call(self.provider.tools, self._timeout_s, is_started=False)
        except MnemeError as error:
            raise ConfigError(f"they cannot be asked for: {error}") from error
        if not isinstance(given, (list, tuple)) or not all(isinstance(tool, Tool) for tool in given):
            raise ConfigError("something among them is no Tool")
        return tuple(given)

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        try:
            answer = await self._call(self._hook("call_tool", name, arguments, context), DELIVERY_S, is_proof=True)
        except (Refused, DeliveryError) as error:
            raise ToolError(f"{name} failed: {error} Go on without it.") from error
        if not isinstance(answer, str):
            raise ToolError(f"{name} gave no text. Go on without it.")
        return answer

    async def close(self) -> None:
        if self._is_ready:
            await self._tried(self._timeout_s, "shutdown")
        if self._thread is not None:
            await self._thread.close()

    def _hook(self, name: str, *arguments: object) -> Callable[[], Awaitable[Any]]:
        return partial(getattr(self.provider, name), *arguments)

    async def _found(self, hook: str, text: str, context: ToolContext) -> list[str]:
        if self.breaker.rest_s > 0:
            return []
        found = await self._tried(SEARCH_S, hook, text, context, is_proof=True)
        given = [service_lines(self.provider.name, lines) for lines in found] if self.is_external else found
        return list(chain.from_iterable(given))

    async def _tried(self, timeout_s: float, hook: str, *arguments: object, is_proof: bool = False) -> list[Any]:
        """None or one answer."""
        try:
            return [await self._call(self._hook(hook, *arguments), timeout_s, is_proof=is_proof)]
        except MnemeError as error:
            self._log.warning("a memory failed and was skipped", hook=hook, error=str(error))
            return []

    async def _call(
        self, call: Callable[[], Awaitable[T]], timeout_s: float, *, is_proof: bool = False, is_started: bool = True
    ) -> T:
        """`is_proof`: not while the breaker rests, and success closes the breaker. Raises Refused, ToolError and
        StoreError as they are, DeliveryError for everything else."""
        if is_proof and self.breaker.rest_s > 0:
            reason = f"{self.provider.name} is out of order: {self.breaker.reason}"
            raise DeliveryError(reason, retry_after_s=self.breaker.rest_s)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                if is_started:
                    await self._assert_ready()
                answer = await self._run(call)
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
                self._on_open(self.provider.name, reason)
            if isinstance(error, DeliveryError):
                raise
            raise DeliveryError(f"{self.provider.name} failed: {reason}") from error
        if is_proof:
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
    if not isinstance(found, (list, tuple)):
        _leave_out(name, f"it is no list of lines but {type(found).__name__}")
        return []
    taken = []
    for given in found[:LINES]:
        if line := " ".join(_checked(name, given, LINE_CHARS).split()):
            # Without a token of its own, its text is: two that begin alike are not the same.
            token = "" if _TOKEN.match(line) else f"{zlib.crc32(line.encode()):08x} "
            taken.append(f"{name}:{token}{line}")
    return taken


def service_text(name: str, given: Any) -> str:
    """A text for a prompt; empty when there is none that may be sent."""
    return neutralise(_checked(name, given, TEXT_CHARS).strip())


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


def _checked(name: str, given: Any, limit_chars: int) -> str:
    """The beginning of a text, without lone surrogates, which cannot be sent; empty for what is suspicious or none."""
    if not isinstance(given, str):
        reason = None if given is None else f"it is no text but {type(given).__name__}"
    else:
        given = given[:limit_chars].encode("utf-8", "replace").decode("utf-8").replace("\0", "")
        reason = suspicion(given)
    if reason is not None:
        _leave_out(name, reason)
    return "" if reason is not None or given is None else given


def _leave_out(name: str, reason: str) -> None:
    structlog.get_logger("memory").warning("what a memory says was left out", provider=name, reason=reason)


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
