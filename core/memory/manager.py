"""All memory providers as one: asks them side by side, each within its time limit, and joins what is not empty.

Built-in ones come first; external ones are synced through the outbox. One that fails or hangs is skipped.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError
from core.memory.guarded_provider import GuardedProvider, tool_fault
from core.memory.provider import Forgotten, MemoryProvider, implements, is_remembered
from core.ports import Clock
from core.store.notes import NoteChange
from core.store.sync import NOTES, SyncQueue, SyncTask
from core.text.normalize import language_data
from core.text.sanitize import on_one_line
from core.types import Message, Session, Tool, ToolContext

T = TypeVar("T")

SETTLE_S = 60.0
"""Limit of the work after an answer."""
CATCH_UP_S = 600.0
"""Limit of the work that waited, which may be that of some days."""
OWN_BLOCK_TIMEOUTS = 5
"""A built-in block may take so many times longer: a whole session without its notes is worse than to wait."""


SMALLTALK_CHARS = 80
"""A longer message is no small talk."""
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


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
        await self._ask(self._own, "catch_up", timeout_s=CATCH_UP_S)
        return False

    async def system_prompt_block(self, context: ToolContext) -> str:
        async def block(one: GuardedProvider) -> list[str]:
            title = f"## {one.provider.name.upper()}\n" if one.is_external else ""
            timeout_s = self._timeout_s * (1 if one.is_external else OWN_BLOCK_TIMEOUTS)
            given = await one.ask("system_prompt_block", context, timeout_s=timeout_s)
            return [f"{title}{text.strip()}" for text in given if text.strip()]

        return "\n\n".join(chain.from_iterable(await asyncio.gather(*map(block, self._asked(context)))))

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
        if is_remembered(context.session) and not is_smalltalk(text):
            for one in self._asked(context):
                one.queue(text, context)

    async def turn_over(self, session: Session, rows: Sequence[Message]) -> None:
        """`rows`: those of the whole session, with those that it carries on."""
        if not is_remembered(session):
            return
        await self._tell(lambda queue: queue.tell(session.id))
        if turn := last_turn([row for row in rows if row.session_id == session.id]):
            key = f"turn:{session.id}:{turn[0].id}"
            await self._ask(self._own, "sync_turn", session, turn, key, timeout_s=SETTLE_S)

    async def on_session_end(self, session: Session, messages: Sequence[Message]) -> None:
        if is_remembered(session):
            own = [row for row in messages if row.session_id == session.id]
            await self._tell(lambda queue: queue.tell(session.id))
            # A new session does not wait for this.
            self._spawn(self._ask(self._own, "on_session_end", session, own, timeout_s=SETTLE_S))

    async def on_session_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        await self._tell(lambda queue: queue.tell_switch(new_id, parent_id, reason))

    async def on_pre_compress(self, session: Session, messages: Sequence[Message]) -> str:
        asked = self._all if is_remembered(session) else ()
        return "\n\n".join(filter(None, await self._ask(asked, "on_pre_compress", session, messages)))

    async def on_memory_write(self, change: NoteChange | None = None) -> None:
        """None: notes may have been changed by another process."""
        await self._tell(lambda queue: queue.tell_notes())

    async def tools(self, reserved: Collection[str] = ()) -> Sequence[Tool]:
        """Without external ones that are malformed (a model server would refuse them) or whose name is taken."""
        tools: list[Tool] = []
        for one in self._all:
            name = one.provider.name
            try:
                offered = await one.tools()
            except ConfigError as error:
                self.warn(f"The memory {name} has no tools: {error}.")
                continue
            for tool in offered if one.is_external else ():
                taken = {*reserved, *(known.name for known in tools)}
                if why := tool_fault(tool) or ("the name is taken" if tool.name in taken else None):
                    called = on_one_line(tool.name)[:64] if isinstance(tool.name, str) else "without a name"
                    self.warn(f"The tool {called} of the memory {name} is left out: {why}.")
                    continue
                run = partial(one.call_tool, tool.name)
                tools.append(replace(tool, run=run, is_reading=False, is_outside=True))
            tools += () if one.is_external else offered
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
        if (arguments := await _arguments(task, one.provider, self._queue)) is not None:
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
        return list(chain.from_iterable(answers))


def last_turn(rows: Sequence[Message]) -> Sequence[Message]:
    """The rows from the last messages of people on that were answered together."""
    start = max((i for i, row in enumerate(rows) if row.role == "user"), default=len(rows))
    while 0 < start < len(rows) and rows[start - 1].role == "user":
        start -= 1
    return rows[start:]


async def _arguments(task: SyncTask, provider: MemoryProvider, queue: SyncQueue) -> tuple[object, ...] | None:
    """Of the task's hook, with what its ids stand for now; None when nothing is left of it. Raises StoreError."""
    if task.hook == "on_forget":
        if task.scope is None:
            return None
        kind = "notes" if task.session == NOTES else "messages"
        return (Forgotten(scope=task.scope, **{kind: task.ids}),)
    if task.hook == "on_memory_write":
        change = await queue.change(int(task.turn))
        return None if change is None else (change,)
    session = await queue.session(int(task.session))
    if session is None:
        return None
    if task.hook == "on_session_switch":
        parent_id, reason, _ = task.turn.split(".")
        return session.id, int(parent_id) or None, reason
    rows = await queue.rows(session.id)
    if task.hook == "on_session_end":
        return session, rows
    if task.is_repeated and not implements(provider, "on_forget"):
        # It forgets nothing, so it still has all of it.
        return None
    told = _turn(rows, task.first_id)
    # Where the question is erased, the answer alone tells nothing.
    return (session, told, task.key) if any(row.role == "user" for row in told) else None


def _turn(rows: Sequence[Message], first_id: int) -> list[Message]:
    begins = (row.id for before, row in pairwise(rows) if row.role == "user" and before.role != "user")
    end = next((begin for begin in begins if begin > first_id), None)
    return [row for row in rows if row.id >= first_id and (end is None or row.id < end)]


def is_smalltalk(text: str) -> bool:
    """Whether it is only "ok", "thanks!", "👍" or the like (`data/smalltalk.toml`), or empty. A word that may also be a
    name, or a question, is none: searching for nothing costs less than not searching."""
    if len(text) > SMALLTALK_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    said = " ".join(word.strip("'") for word in kept.split() if any(map(str.isalnum, word)))
    known, phrases, fillers = _patterns()
    rest = phrases.sub("", said).split()
    return all(
        word in known or _DRAWN_OUT.sub(r"\1", word) in known or fillers.fullmatch(word) is not None for word in rest
    )


@cache
def _patterns() -> tuple[frozenset[str], re.Pattern[str], re.Pattern[str]]:
    """Small words, phrases, and what may stand for a word: laughter, or pieces of a script without spaces."""
    data = language_data("smalltalk", "core.memory")
    # Possessive: a long row of pieces that ends in something else is not tried in every cut.
    pieces = rf"(?:{_any(data['pieces'].casefold().split())})++"
    phrases = re.compile(rf"(?<!\S)(?:{_any(data['phrases'])})(?!\S)")
    return frozenset(data["words"].casefold().split()), phrases, re.compile(rf"{data['laughter']}|{pieces}")


def _any(texts: Iterable[str]) -> str:
    """Longer ones first."""
    return "|".join(sorted(map(re.escape, texts), key=len, reverse=True))
