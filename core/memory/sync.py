"""Puts what memory services are to keep, or to forget, into the outbox, and turns a task back into a call when it is
delivered. Tasks follow from the rows of state.db: queued twice they are one, and what a crash left out is queued later.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from core.errors import DeliveryError
from core.memory.provider import Forgotten, MemoryProvider, implements, is_remembered
from core.ports import Clock
from core.store.sync import NOTES, Hook, SyncQueue, SyncSource, SyncTask, forget_task
from core.types import Address, Message, Scope, Session

LOOKS_BACK = timedelta(days=1)
"""What is older is only synced when somebody asks for a backfill."""
PORTION = 20
"""So many sessions of a backfill are queued at a time, and more when so few tasks are left."""
TASK_IDS = 500
"""Of one task to forget."""

Call = Callable[[], Awaitable[None]]
"""A hook with its arguments."""


class Sync:
    """Syncs `providers`; forgetting asks every service that was ever told something, also one that is not loaded.
    `on_wake` is called when there is something to deliver."""

    def __init__(
        self,
        queue: SyncQueue,
        source: SyncSource,
        clock: Clock,
        on_wake: Callable[[], None],
        providers: Sequence[MemoryProvider] = (),
    ) -> None:
        self.providers = providers
        self._queue = queue
        self._source = source
        self._clock = clock
        self._on_wake = on_wake
        self._told: dict[tuple[str, str], int] = {}
        """By service and subject, as in `SyncQueue.last_told`."""
        self._behind: set[str] = set()
        """Services with a backfill under way."""
        self._backfilling = asyncio.Lock()

    async def turns(self, session: Session, rows: Sequence[Message]) -> None:
        """`rows` are the session's own."""
        await self._tell_rows(self.providers, session, rows, is_over=False)

    async def end(self, session: Session, rows: Sequence[Message]) -> None:
        """As `turns`, then that the session is over."""
        await self._tell_rows(self.providers, session, rows, is_over=True)

    async def switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        session = await self._source.session(new_id)
        if session is not None and is_remembered(session):
            turn = f"{parent_id or 0}.{reason}.{self._clock.now().timestamp():.0f}"
            for provider in self.providers:
                await self._put(provider, str(new_id), [turn], "on_session_switch")

    async def notes(self) -> None:
        """Changes of notes, here or by another process."""
        for provider in self.providers:
            told = await self._last_told(provider, NOTES)
            since = datetime.fromtimestamp(0, UTC) if told else self._clock.now() - LOOKS_BACK
            await self._put_changes(provider, await self._source.changes(since, told))

    async def catch_up(self) -> None:
        """Queues what a process before this one did not."""
        if self.providers:
            for session in await self._source.recent_sessions(self._clock.now() - LOOKS_BACK):
                await self._tell_session(self.providers, session)
            await self.notes()
            await self.backfill()

    async def backfill(self) -> None:
        """Queues the next portion of a requested past, when the last is delivered."""
        async with self._backfilling:
            for provider in self.providers:
                await self._backfill(provider)

    async def delivered(self, provider: MemoryProvider) -> None:
        """After a delivery its backfill goes on."""
        if provider.name in self._behind:
            async with self._backfilling:
                await self._backfill(provider)

    async def call_of(self, task: SyncTask, provider: MemoryProvider) -> Call | None:
        """With what the ids stand for now; None when nothing is left of it. Raises StoreError, DeliveryError when the
        provider cannot erase."""
        if task.hook == "on_forget":
            return _forget_call(task, provider)
        if task.hook == "on_memory_write":
            return await self._note_call(task, provider)
        session = await self._source.session(int(task.session))
        if session is None:
            return None
        if task.hook == "on_session_switch":
            parent_id, reason, _ = task.turn.split(".")
            return lambda: provider.on_session_switch(session.id, int(parent_id) or None, reason)
        if task.hook == "sync_turn" and task.is_repeated and not implements(provider, "on_forget"):
            # It forgets nothing, so it still has all of it.
            return None
        rows = await self._source.rows(session.id)
        if task.hook == "on_session_end":
            return lambda: provider.on_session_end(session, rows)
        told = _between(rows, *task.turns)
        if not any(row.role == "user" for row in told):
            # The question is erased; the answer alone tells nothing.
            return None
        return lambda: provider.sync_turn(session, told, task.key)

    async def _note_call(self, task: SyncTask, provider: MemoryProvider) -> Call | None:
        found = await self._source.change(int(task.turn))
        if found is None or (found[1] is not None and not is_remembered(found[1])):
            return None
        change = found[0]
        return lambda: provider.on_memory_write(change)

    async def forget(
        self, scopes: frozenset[Scope], message_ids: Sequence[int], note_ids: Sequence[int] = ()
    ) -> str | None:
        """Asks every service that was told of any of it; again, with the same tasks. Raises StoreError."""
        names = await self._queue.providers()
        sessions = await self._source.sessions_of(message_ids) if names else ()
        owners = await self._source.owners(note_ids) if names else ()
        asked = []
        for name in names:
            last = await self._queue.last_told(name, NOTES)
            tasks: list[SyncTask] = []
            for scope, ids in owners:
                tasks += _forget_tasks(name, NOTES, scope, [one for one in ids if one <= last])
            for session, ids in sessions:
                tasks += await self._forgetting(name, session, ids) if is_remembered(session) else []
            if tasks:
                await self._queue.put(tasks)
                asked.append(name)
        if not asked:
            return None
        self._on_wake()
        were, are = ("was", "is") if len(asked) == 1 else ("were", "are")
        return (
            f"{' and '.join(asked)} {were} told of it and {are} being asked to erase it; when that cannot be done, "
            "the owner hears of it."
        )

    def invalidate(self) -> None:
        """Nothing is cached."""

    async def amended(self, address: Address, external_id: str) -> None:
        """A message was edited or deleted on its platform: services that can erase forget it and get what is left."""
        found = await self._source.message(address, external_id)
        if found is None or not is_remembered(found[0]):
            return
        session, message_id = found
        for provider in self.providers:
            if implements(provider, "on_forget"):
                stamp = self._clock.now().isoformat()
                await self._send(await self._forgetting(provider.name, session, [message_id], stamp))

    async def _backfill(self, provider: MemoryProvider) -> None:
        past = await self._queue.backfill(provider.name)
        while past is not None and (await self._queue.counts(provider.name)).waiting < PORTION:
            if past.next_id <= 1:
                await self._put_changes(provider, await self._source.changes(past.since, 0))
            sessions = await self._source.backfill_sessions(past, PORTION)
            for session in sessions:
                await self._tell_session((provider,), session)
            next_id = sessions[-1].id + 1 if sessions else past.last_id + 1
            past = await self._queue.advance_backfill(provider.name, next_id)
        if past is None:
            self._behind.discard(provider.name)
        else:
            self._behind.add(provider.name)

    async def _tell_session(self, providers: Sequence[MemoryProvider], session: Session) -> None:
        rows = await self._source.rows(session.id)
        await self._tell_rows(providers, session, rows, is_over=session.ended_at is not None)

    async def _tell_rows(
        self, providers: Sequence[MemoryProvider], session: Session, rows: Sequence[Message], *, is_over: bool
    ) -> None:
        for provider in providers if is_remembered(session) and rows else ():
            await self._put_turns(provider, session, turns_of(rows), is_over=is_over)
            subject, last = f"{session.id}.end", rows[-1].id
            if is_over and last > await self._last_told(provider, subject):
                await self._put(provider, str(session.id), [str(last)], "on_session_end", subject, last)

    async def _put_turns(
        self, provider: MemoryProvider, session: Session, turns: Sequence[Sequence[Message]], *, is_over: bool
    ) -> None:
        """`sync_every_turns` turns make a task; when the session is over, also the rest."""
        subject = str(session.id)
        told = await self._last_told(provider, subject)
        size = max(1, provider.sync_every_turns)
        fresh = [turn for turn in turns if turn[0].id > told]
        batches = [fresh[start : start + size] for start in range(0, len(fresh), size)]
        if batches and len(batches[-1]) < size and not is_over:
            batches.pop()
        if batches:
            spans = [f"{batch[0][0].id}-{batch[-1][0].id}" for batch in batches]
            await self._put(provider, subject, spans, "sync_turn", subject, batches[-1][-1][-1].id)

    async def _put_changes(self, provider: MemoryProvider, changes: Sequence[int]) -> None:
        if changes:
            await self._put(provider, NOTES, [str(one) for one in changes], "on_memory_write", NOTES, changes[-1])

    async def _put(
        self,
        provider: MemoryProvider,
        session: str,
        turns: Sequence[str],
        hook: Hook,
        subject: str = "",
        last_id: int = 0,
    ) -> None:
        if implements(provider, hook):
            tasks = [SyncTask(provider=provider.name, session=session, turn=turn, hook=hook) for turn in turns]
            await self._send(tasks, subject, last_id)
            if subject:
                self._told[provider.name, subject] = max(last_id, self._told.get((provider.name, subject), 0))

    async def _send(self, tasks: Sequence[SyncTask], subject: str = "", last_id: int = 0) -> None:
        if tasks:
            await self._queue.put(tasks, subject, last_id)
            self._on_wake()

    async def _last_told(self, provider: MemoryProvider, subject: str) -> int:
        key = (provider.name, subject)
        if key not in self._told:
            self._told[key] = await self._queue.last_told(*key)
        return self._told[key]

    async def _forgetting(self, name: str, session: Session, ids: Sequence[int], stamp: str = "") -> list[SyncTask]:
        """Tasks to forget those messages that were told, and to tell anew what was told with them."""
        number = str(session.id)
        told = max(await self._queue.last_told(name, number), await self._queue.last_told(name, f"{number}.end"))
        ids = [one for one in ids if one <= told]
        tasks = _forget_tasks(name, number, session.scope, ids, stamp)
        batches = await self._queue.batches(name, number)
        touched = {max((batch for batch in batches if batch[0] <= one), default=None) for one in ids}
        again = f"{zlib.crc32(repr((sorted(ids), stamp)).encode()):08x}"
        for first, last in sorted(batch for batch in touched if batch is not None):
            tasks.append(SyncTask(provider=name, session=number, turn=f"{first}-{last}.{again}", hook="sync_turn"))
        return tasks


def turns_of(rows: Sequence[Message]) -> list[list[Message]]:
    """The answered turns: what people said since the last answer, then all that followed."""
    turns: list[list[Message]] = []
    asked: list[Message] = []
    for row in rows:
        if row.role == "user":
            asked.append(row)
        elif asked:
            turns.append([*asked, row])
            asked = []
        elif turns:
            turns[-1].append(row)
    # While the last row is a call of a tool or its result, the answer is still being worked on.
    if turns and not asked and (turns[-1][-1].role != "assistant" or turns[-1][-1].tool_name):
        turns.pop()
    return turns


def _between(rows: Sequence[Message], first: int, last: int) -> list[Message]:
    """The rows of the turns that begin with `first` to `last`."""
    end = next(
        (row.id for before, row in pairwise(rows) if row.id > last and row.role == "user" and before.role != "user"),
        None,
    )
    return [row for row in rows if row.id >= first and (end is None or row.id < end)]


def _forget_call(task: SyncTask, provider: MemoryProvider) -> Call | None:
    if task.scope is None:
        return None
    if not implements(provider, "on_forget"):
        raise DeliveryError(f"{provider.name} has no way to erase what it was told", is_permanent=True)
    is_notes = task.session == NOTES
    forgotten = Forgotten(scope=task.scope, messages=() if is_notes else task.ids, notes=task.ids if is_notes else ())
    return lambda: provider.on_forget(forgotten)


def _forget_tasks(name: str, session: str, scope: Scope, ids: Sequence[int], stamp: str = "") -> list[SyncTask]:
    parts = [ids[start : start + TASK_IDS] for start in range(0, len(ids), TASK_IDS)]
    return [forget_task(name, session, scope, part, stamp) for part in parts]
