"""Calls all memory providers and merges their answers.

The manager calls the providers concurrently. A provider that fails or takes too long is skipped. If
its search finishes later, the lines are used in the next turn. Built-in providers come before
external ones (services and plugins). External providers receive all data that they store through
the outbox. Their answers are shortened, and left out if they look malicious.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakSet

import structlog

from core.errors import (
    ConfigError,
    DeliveryError,
    MnemeError,
    NotReadyError,
    Refused,
    Sentence,
    StoreError,
    ToolError,
    to_sentence,
    word_clause,
)
from core.guard.guard import clean_service_lines, clean_service_text
from core.memory.provider import MemoryProvider, describe_error, implemented_hooks
from core.memory.provider_thread import ProviderThread
from core.memory.provider_tools import check_tools
from core.ports import Clock
from core.store.rows import find_last_turn
from core.store.sync import SyncQueue, SyncTask
from core.text.normalize import to_single_line
from core.text.terms import is_smalltalk
from core.types import Json, Message, Scope, Session, Tool, ToolContext

T = TypeVar("T")
log = structlog.get_logger("memory")

# The kinds of notices for the owner. down: the provider is out of order. keeps: the provider didn't
# carry out an erasure.
MemoryNotice = Literal["down", "keeps"]

# The timeout of deliveries from the outbox, of tools and of calls at the start.
DELIVERY_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 1.0
# The timeout of an initialization, which continues if the call that began it times out.
START_TIMEOUT_S = 300.0
# How long `close` waits for an initialization. If it's cancelled, a library leaves files open.
START_CLOSE_TIMEOUT_S = 5.0
# The timeout of background work of built-in providers. After a pause, the work of several days may
# be pending.
BACKGROUND_TIMEOUT_S = 600.0
# The timeout of a search. If the search ends after its turn, the next turn gets its lines.
SEARCH_TIMEOUT_S = 20.0
# Built-in prompt blocks get this many times the timeout of a turn, because waiting is better than a
# whole session without notes.
BUILT_IN_BLOCK_TIMEOUTS = 5
# This many failures in a row open the circuit breaker.
FAILURES_TO_OPEN = 3
# How long an open circuit breaker blocks calls, at first and at most.
MIN_REST = timedelta(seconds=30)
MAX_REST = timedelta(hours=1)
REASON_CHARS = 120


class CircuitBreaker:
    """Stops calls to a provider that keeps failing.

    After `FAILURES_TO_OPEN` failures in a row, the breaker opens, calls `on_open` with the reason,
    and blocks calls for `MIN_REST`. If the first call after this rest fails too, the next rest is
    twice as long, up to `MAX_REST`. A call that ends during a rest began before it, so its result
    doesn't count.
    """

    def __init__(self, clock: Clock, on_open: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_open = on_open
        self._failures = 0
        self._rests_until = clock.now()
        # The reason for the last failure.
        self.reason = ""

    @property
    def is_open(self) -> bool:
        """Whether calls are blocked. After a rest, this stays True until a call succeeds."""
        return self._failures >= FAILURES_TO_OPEN

    @property
    def state(self) -> str:
        """A clause for the owner: "works", "failed 2 times in a row: …" or "out of order, …: …"."""
        if self.is_open:
            return f"out of order, tried again from time to time: {self.reason}"
        if self._failures == 1:
            return f"failed once: {self.reason}"
        if self._failures:
            return f"failed {self._failures} times in a row: {self.reason}"
        return "works"

    @property
    def rest_s(self) -> float:
        """Seconds until the next call may be made, or 0 if it may be made now."""
        if not self.is_open:
            return 0.0
        return max(0.0, (self._rests_until - self._clock.now()).total_seconds())

    def succeed(self) -> None:
        """Record that a call succeeded."""
        if not self.rest_s:
            self._failures = 0

    def fail(self, reason: str) -> None:
        """Record that a call failed, and start a rest after too many failures in a row."""
        self.reason = reason
        if self.rest_s:
            return
        self._failures += 1
        # Before the breaker opens, the rest has no effect (`rest_s`).
        doublings = min(self._failures - FAILURES_TO_OPEN, 10)
        self._rests_until = self._clock.now() + min(MIN_REST * 2**doublings, MAX_REST)
        if self._failures == FAILURES_TO_OPEN:
            self._on_open(reason)


class GuardedProvider:
    """Calls the hooks of a provider with a timeout and a circuit breaker.

    Only external providers have a `folder` for their files. Their hooks run in a thread of their
    own. When the circuit breaker opens, `on_open` is called with the provider's name and the
    reason.
    """

    def __init__(
        self,
        provider: MemoryProvider,
        folder: Path | None,
        clock: Clock,
        on_open: Callable[[str, str], None],
    ) -> None:
        """Prepare the breaker and the thread. The first call initializes the provider."""
        self.provider = provider
        self.name = provider.name
        self.hooks = implemented_hooks(provider)
        self.is_external = folder is not None
        self.breaker = CircuitBreaker(clock, partial(on_open, self.name))
        # The provider's description of itself (`MemoryProvider.probe`).
        self.description: Sentence | None = None
        self._folder = folder or Path()
        self._thread = ProviderThread(self.name) if self.is_external else None
        self._initialization: asyncio.Task[None] | None = None
        self._is_ready = False

    async def ask(self, timeout_s: float, hook: str, *arguments: object) -> Any:
        """Call a hook. Returns its answer, or None if the hook fails or isn't implemented.

        Answers of external providers are cleaned for the model. While the breaker is open, only
        search hooks are called (after each rest), to find out whether the provider works again.
        """
        if hook not in self.hooks:
            return None
        is_search = hook in ("prefetch", "queue_prefetch")
        is_blocked = self.breaker.rest_s > 0 if is_search else self.breaker.is_open
        if is_blocked:
            return None
        answer = await self.try_call(timeout_s, hook, *arguments)
        if answer is None or not self.is_external:
            return answer
        if is_search:
            return clean_service_lines(self.name, answer)
        if isinstance(answer, Sentence):
            return self._clean_sentence(answer)
        return clean_service_text(self.name, answer)

    def _clean_sentence(self, sentence: Sentence) -> Sentence | None:
        """Return a sentence with cleaned values, or None if one of them is suspicious."""
        values: dict[str, object] = {}
        for name, value in sentence.values.items():
            if isinstance(value, Sentence):
                value = self._clean_sentence(value)
            elif isinstance(value, str) and value:
                value = to_single_line(clean_service_text(self.name, value))[:REASON_CHARS] or None
            if value is None:
                return None
            values[name] = value
        return Sentence(sentence.key, values)

    async def load_description(self) -> None:
        """Set `description` to the answer of the hook `probe`, with its values on one line each."""
        answer = await self.ask(DELIVERY_TIMEOUT_S, "probe")
        if isinstance(answer, Sentence):
            self.description = answer
        elif answer:
            self.description = Sentence(to_single_line(answer)[:REASON_CHARS])

    async def close(self, timeout_s: float) -> None:
        """Shut the provider down and end its thread."""
        if (initialization := self._initialization) is not None:
            await asyncio.wait([initialization], timeout=START_CLOSE_TIMEOUT_S)
            initialization.cancel()
        if self._is_ready:
            await self.try_call(timeout_s, "shutdown")
        if self._thread is not None:
            await self._thread.close()

    async def try_call(self, timeout_s: float, hook: str, *arguments: object) -> Any:
        """Call a hook and return its answer. If the hook fails, log a warning and return None."""
        try:
            return await self.call(timeout_s, hook, *arguments)
        except MnemeError as error:
            log.warning(
                "a memory provider failed and was skipped",
                provider=self.name,
                hook=hook,
                error=error.log_message,
            )

    async def call(self, timeout_s: float, hook: str, *arguments: object) -> Any:
        """Call a hook and return its answer. The first call initializes the provider.

        Refused, NotReadyError, ToolError and StoreError are raised unchanged and don't count as
        failures. Other errors become a DeliveryError. During a rest of the breaker, all hooks
        except `tools` and `shutdown` raise DeliveryError at once.
        """
        if hook not in ("tools", "shutdown") and (rest_s := self.breaker.rest_s):
            raise DeliveryError(
                "service_rests", name=self.name, words=self.breaker.reason, retry_after_s=rest_s
            )
        try:
            async with asyncio.timeout(timeout_s) as timeout:
                if hook != "tools":
                    await self._initialize_once()
                answer = await self._run(getattr(self.provider, hook), *arguments)
        except (Refused, NotReadyError, ToolError, StoreError):
            # The provider works: it rejects this call or isn't ready, or our own store failed.
            self.breaker.succeed()
            raise
        except DeliveryError as error:
            self.breaker.fail(str(error))
            raise
        except Exception as error:
            if timeout.expired():
                reason = word_clause("service_timed_out", seconds=f"{timeout_s:g}")
            else:
                reason = describe_error(error, REASON_CHARS)
            self.breaker.fail(reason)
            raise DeliveryError("service_failed", name=self.name, words=reason) from error
        self.breaker.succeed()
        return answer

    async def call_tool(self, name: str, arguments: Json, context: ToolContext) -> str:
        """Run a tool of the provider and return its text. Raises ToolError if the tool fails."""
        try:
            answer = await self.call(DELIVERY_TIMEOUT_S, "call_tool", name, arguments, context)
        except (Refused, DeliveryError) as error:
            raise ToolError(f"{name} failed: {error} Go on without it.") from error
        if not isinstance(answer, str):
            raise ToolError(f"{name} returned no text. Go on without it.")
        return answer

    async def _initialize_once(self) -> None:
        """Wait until the provider is initialized, and begin that if no call has done so.

        The initialization continues if this call times out. Otherwise a library that opens its
        files slowly would never be ready: each call would begin to open them again.
        """
        if self._is_ready:
            return
        if self._initialization is None:
            self._initialization = asyncio.create_task(self._initialize())
        await asyncio.shield(self._initialization)

    async def _initialize(self) -> None:
        """Initialize the provider. If that fails, the next call tries again.

        Raises ConfigError if the provider isn't available.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                if not await self._run(self.provider.is_available):
                    raise ConfigError("memory_unavailable", name=self.name)
                if self.is_external:
                    await asyncio.to_thread(
                        self._folder.mkdir, mode=0o700, parents=True, exist_ok=True
                    )
                await self._run(self.provider.initialize, self._folder)
                self._is_ready = True
        finally:
            self._initialization = None

    async def _run(self, hook: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Call a hook, in the provider's thread if there is one, and return its answer."""
        call = partial(hook, *arguments)
        if self._thread is None:
            return await call()
        return await self._thread.run(call)


class MemoryManager:
    """Calls the built-in and the external providers.

    A method with the name of a hook calls this hook on each provider that implements it.
    """

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
        """Wrap each provider in a `GuardedProvider`. No provider is called before `start`.

        `timeout_s` limits each call that is made while a prompt is built. Tool calls have their own
        limit. `queue` stores the work of the external providers, which have folders in `home` for
        their files. `notify` sends the owner a notice. It gets the kind of notice, the name of the
        provider and a reason.
        """
        self._timeout_s = timeout_s
        self._queue = queue if externals else None
        self._notify_owner = notify
        self._builtins = [
            GuardedProvider(provider, None, clock, self._handle_outage) for provider in builtins
        ]
        self.externals = {
            provider.name: GuardedProvider(
                provider, home / "providers" / provider.name, clock, self._handle_outage
            )
            for provider in externals
        }
        self._providers = [*self._builtins, *self.externals.values()]
        self._tasks: set[asyncio.Task[Any]] = set()
        self._searches: WeakSet[asyncio.Task[None]] = WeakSet()
        # Lines for the next turn, by provider, session and visible scopes.
        self._prefetched: dict[tuple[str, int, frozenset[Scope]], list[str]] = {}
        # Problems with the settings, as sentences for the owner.
        self.warnings: list[Sentence] = []

    @property
    def states(self) -> Mapping[str, str]:
        """The state of each provider, by name."""
        return {provider.name: provider.breaker.state for provider in self._providers}

    @property
    def outages(self) -> Mapping[str, str]:
        """The states of the external providers that are out of order, by name."""
        return {
            name: provider.breaker.state
            for name, provider in self.externals.items()
            if provider.breaker.is_open
        }

    async def start(self) -> None:
        """Initialize the providers, and queue the work that an earlier process didn't queue."""
        await self._try_queue(lambda queue: queue.catch_up())
        await asyncio.gather(
            *(provider.try_call(DELIVERY_TIMEOUT_S, "is_available") for provider in self._providers)
        )
        for provider in self._providers:
            self._spawn(provider.load_description())

    async def tend(self) -> bool:
        """Run all pending work of built-in providers. Returns False: no work is left."""
        await self._ask_all(self._builtins, BACKGROUND_TIMEOUT_S, "catch_up")
        return False

    async def system_prompt_block(self, context: ToolContext) -> str:
        """Return the prompt blocks of all providers as one text.

        The block of an external provider gets the provider's name as its heading.
        """
        blocks = await asyncio.gather(
            *(
                self._load_prompt_block(provider, context)
                for provider in self._providers_for(context)
            )
        )
        return "\n\n".join(filter(None, blocks))

    async def _load_prompt_block(self, provider: GuardedProvider, context: ToolContext) -> str:
        timeout_s = self._timeout_s
        if not provider.is_external:
            timeout_s *= BUILT_IN_BLOCK_TIMEOUTS
        text = (await provider.ask(timeout_s, "system_prompt_block", context) or "").strip()
        if text and provider.is_external:
            return f"## {provider.name.upper()}\n{text}"
        return text

    async def prefetch(
        self, text: str, context: ToolContext, typed: str | None = None
    ) -> Sequence[str]:
        """Return the lines that all providers found for `text` or since the last turn.

        External providers get only `typed`, the typed part of `text`, if it's given. A slow search
        continues in the background for the next turn. Small talk isn't searched for.
        """
        providers = self._providers_for(context)
        if is_smalltalk(text):
            providers = [item for item in providers if not item.provider.is_searching]
        searches = []
        for provider in providers:
            query = text if typed is None or not provider.is_external else typed
            if query.strip():
                searches.append(self._start_search(provider, "prefetch", query, context))
        if searches:
            _, late = await asyncio.wait(searches, timeout=self._timeout_s)
            for search in late:
                log.warning(
                    "a memory provider took too long and was skipped", provider=search.get_name()
                )
        return self._pop_prefetched(providers, context)

    def _pop_prefetched(
        self, providers: Sequence[GuardedProvider], context: ToolContext
    ) -> Sequence[str]:
        """Remove and return the lines that the searches of the providers have found so far.

        The lines of providers that don't search come first, then the best line of each other
        provider, the second best of each, and so on. If there are too many lines for a turn, the
        last ones are dropped.
        """
        unranked_lists: list[list[str]] = []
        ranked_lists: list[list[str]] = []
        for provider in providers:
            key = (provider.name, context.session.id, context.scopes)
            lines = self._prefetched.pop(key, [])
            if provider.provider.is_searching:
                ranked_lists.append(lines)
            else:
                unranked_lists.append(lines)
        all_lines = chain(*unranked_lists, *zip_longest(*ranked_lists, fillvalue=""))
        return list(dict.fromkeys(line for line in all_lines if line.strip()))

    async def queue_prefetch(self, text: str, context: ToolContext) -> None:
        """Start searches for the next turn, in the background."""
        if not context.session.is_remembered or is_smalltalk(text):
            return
        for provider in self._providers_for(context):
            is_reflecting = provider.provider.is_reflecting
            if is_reflecting and "queue_prefetch" in provider.hooks:
                self._start_search(provider, "queue_prefetch", text, context)

    async def on_turn_end(self, session: Session, rows: Sequence[Message]) -> None:
        """Sync the last turn of `rows`, which are the messages of the session and its parents."""
        if not session.is_remembered:
            return
        turn = find_last_turn(rows)
        # If the session was compressed before the answer, the turn started in its parent.
        session_id = turn[0].session_id if turn else session.id
        await self._try_queue(lambda queue: queue.queue_turns(session_id))
        if turn:
            key = f"turn:{session_id}:{turn[0].id}"
            await self._ask_all(
                self._builtins, BACKGROUND_TIMEOUT_S, "sync_turn", session, turn, key
            )

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        """Sync the remaining turns of a session, and call the hook of the built-in providers."""
        if not session.is_remembered:
            return
        own_rows = [row for row in messages if row.session_id == session.id]
        await self._try_queue(lambda queue: queue.queue_turns(session.id))
        # The hooks run in the background, so that a new session doesn't have to wait for them.
        self._spawn(
            self._ask_all(self._builtins, BACKGROUND_TIMEOUT_S, "on_session_end", session, own_rows)
        )

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        await self._try_queue(lambda queue: queue.queue_switch(new_id, parent_id, reason))

    async def on_delegation(self, session: Session) -> None:
        await self._try_queue(lambda queue: queue.queue_delegation(session.id))

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        """Return a text with the parts of these messages that the providers want to preserve."""
        if not session.is_remembered:
            return ""
        answers = await self._ask_all(
            self._providers, self._timeout_s, "on_pre_compress", session, messages
        )
        return "\n\n".join(answers)

    async def on_memory_write(self) -> None:
        """Queue new changes of notes, including the changes made by other processes."""
        await self._try_queue(lambda queue: queue.queue_notes())

    async def resync_messages(self, *message_ids: int) -> None:
        """Queue updates of messages that were edited, deleted, undone or restored."""
        await self._try_queue(lambda queue: queue.queue_amended(*message_ids))

    async def tools(self, reserved: Collection[str] = ()) -> Sequence[Tool]:
        """Return the tools of all providers that have any.

        An external tool is left out with a warning if its name is in `reserved` or already used, or
        if the tool is malformed. A model server would reject every request with such a tool.
        """
        tools: list[Tool] = []
        for provider in self._providers:
            if "tools" not in provider.hooks:
                continue
            if provider.is_external and provider.provider.mode == "context":
                continue
            try:
                provider_tools = await provider.call(self._timeout_s, "tools")
            except MnemeError as error:
                values = {"name": provider.name, "reason": to_sentence(error)}
                self.warn(Sentence("memory_tools_unusable", values))
                continue
            if not provider.is_external:
                tools += provider_tools
                continue
            used_names = {*reserved, *(tool.name for tool in tools)}
            usable_tools, warnings = check_tools(provider.name, provider_tools, used_names)
            for warning in warnings:
                self.warn(Sentence(warning))
            for tool in usable_tools:
                run = partial(provider.call_tool, tool.name)
                tools.append(replace(tool, run=run, is_read_only=False, is_external=True))
        return tools

    def warn(self, sentence: Sentence) -> None:
        """Add a sentence to `warnings` and to the log unless it was added before."""
        if sentence not in self.warnings:
            log.warning("a memory provider or its settings have a problem", problem=str(sentence))
            self.warnings.append(sentence)

    async def deliver(self, task: SyncTask) -> None:
        """Call the hook of a task from the outbox.

        Raises DeliveryError if the call fails. The error is permanent if the provider was removed,
        refuses the call, or can't erase. Raises StoreError if the rows of the task can't be read.
        """
        provider = self.externals.get(task.provider)
        if provider is None or self._queue is None:
            raise DeliveryError("service_removed", name=task.provider, is_permanent=True)
        if "on_forget" not in provider.hooks:
            if task.hook == "on_forget":
                raise DeliveryError("service_cannot_erase", name=provider.name, is_permanent=True)
            # A dot in `turn` marks a turn that is sent again, for example after an edit. A provider
            # without `on_forget` can't replace its first copy, so the turn is skipped.
            if task.hook == "sync_turn" and "." in task.turn:
                return
        arguments = await self._queue.load_arguments(task)
        if arguments is None:
            return
        try:
            if task.hook == "on_forget" and "goes_along" in provider.hooks:
                message_ids = await provider.call(DELIVERY_TIMEOUT_S, "goes_along", *arguments)
                await self._queue.queue_resync(task, message_ids)
            await provider.call(DELIVERY_TIMEOUT_S, task.hook, *arguments)
        except (Refused, ToolError) as error:
            raise DeliveryError(
                "service_refuses", name=provider.name, words=str(error), is_permanent=True
            ) from error

    async def report_abandoned_task(self, key: str) -> None:
        """Notify the owner if the task with this key is an erasure that won't be retried."""
        task = SyncTask.parse(key)
        if task is not None and task.hook == "on_forget":
            await self._notify("keeps", task.provider)

    def invalidate(self) -> None:
        """Drop the lines found for later turns, and cancel running searches."""
        for search in self._searches:
            search.cancel()
        self._prefetched = {}

    async def shutdown(self) -> None:
        """Cancel running work, and close the providers in reverse order."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_TIMEOUT_S)
        for provider in reversed(self._providers):
            await provider.close(self._timeout_s)

    def _providers_for(self, context: ToolContext) -> list[GuardedProvider]:
        """Return the providers to search in a turn.

        Incognito sessions search only the built-in providers. External providers with the mode
        "tools" are never searched.
        """
        if context.session.is_incognito:
            return self._builtins
        externals = [item for item in self.externals.values() if item.provider.mode != "tools"]
        return [*self._builtins, *externals]

    def _start_search(
        self, provider: GuardedProvider, hook: str, text: str, context: ToolContext
    ) -> asyncio.Task[None]:
        """Start a task that calls a search hook and stores its lines for `_pop_prefetched`."""

        async def search() -> None:
            if lines := await provider.ask(SEARCH_TIMEOUT_S, hook, text, context):
                key = (provider.name, context.session.id, context.scopes)
                self._prefetched[key] = [*lines, *self._prefetched.get(key, ())]

        task = self._spawn(search(), provider.name)
        self._searches.add(task)
        return task

    def _spawn(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Start a background task, which `shutdown` cancels."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _handle_outage(self, name: str, reason: str) -> None:
        log.error("a memory provider is out of order", provider=name)
        self._spawn(self._notify("down", name, reason))

    async def _notify(self, notice: MemoryNotice, name: str, reason: str = "") -> None:
        try:
            if self._notify_owner is not None:
                await self._notify_owner(notice, name, reason)
        except MnemeError as error:
            log.error("a notice to the owner was not sent", error=str(error))

    async def _try_queue(self, work: Callable[[SyncQueue], Awaitable[object]]) -> None:
        """Queue work for external providers.

        After an error, the next `catch_up` repeats the work.
        """
        if self._queue is None:
            return
        try:
            await work(self._queue)
        except MnemeError as error:
            log.error("work for a memory provider was not queued", error=str(error))

    @staticmethod
    async def _ask_all(
        providers: Sequence[GuardedProvider], timeout_s: float, hook: str, *arguments: object
    ) -> list[Any]:
        """Call a hook of all providers concurrently.

        Returns the non-empty answers in the order of the providers.
        """
        answers = await asyncio.gather(
            *(provider.ask(timeout_s, hook, *arguments) for provider in providers)
        )
        return [answer for answer in answers if answer]
