"""Queues in the outbox what memory services are to keep or to forget, and turns a task back into a call when it is
delivered. Tasks follow from the rows of state.db: queued twice they are one, and what a crash left out is queued later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from core.errors import DeliveryError
from core.memory.provider import Forgotten, MemoryProvider, implements, is_remembered
from core.ports import Clock
from core.store.sync import NOTES, SessionRange, SyncQueue, SyncTask
from core.types import Message

LOOKS_BACK = timedelta(days=1)
"""What is older is only synced when somebody asks for a backfill."""

Call = Callable[[], Awaitable[None]]
"""A hook with its arguments."""


class Sync:
    """Syncs `providers`; forgetting asks every service that was ever told something, also one that is not loaded."""

    def __init__(self, queue: SyncQueue, clock: Clock, providers: Sequence[MemoryProvider] = ()) -> None:
        self.providers = providers
        self._queue = queue
        self._clock = clock

    async def tell(self, sessions: SessionRange) -> int:
        """What they do not know of these sessions; returns how many have turns to tell. Raises StoreError."""
        many = 0
        for one in self.providers:
            if implements(one, "sync_turn"):
                many += await self._queue.put_turns(one.name, sessions)
            if implements(one, "on_session_end"):
                await self._queue.put_ends(one.name, sessions)
        return many

    async def tell_notes(self) -> None:
        """Changes of notes, here or by another process."""
        await self._tell_notes(self._clock.now() - LOOKS_BACK)

    async def tell_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        told = [one.name for one in self.providers if implements(one, "on_session_switch")]
        await self._queue.put_switch(told, new_id, parent_id, reason)

    async def catch_up(self) -> None:
        """Queues what a process before this one did not."""
        await self.tell(SessionRange(since=self._clock.now() - LOOKS_BACK))
        await self.tell_notes()

    async def backfill(self, since: datetime) -> int:
        """Queues what was said since then, before a service was there; returns of how many sessions."""
        await self._tell_notes(since)
        return await self.tell(SessionRange(since=since, has_imported=True))

    async def call_of(self, task: SyncTask, provider: MemoryProvider) -> Call | None:
        """With what the ids stand for now; None when nothing is left of it. Raises StoreError, DeliveryError when the
        provider cannot erase."""
        if task.hook == "on_forget":
            return _forget_call(task, provider)
        if task.hook == "on_memory_write":
            found = await self._queue.change(int(task.turn))
            if found is None or (found[1] is not None and not is_remembered(found[1])):
                return None
            change = found[0]
            return lambda: provider.on_memory_write(change)
        session = await self._queue.session(int(task.session))
        if session is None:
            return None
        if task.hook == "on_session_switch":
            parent_id, reason, _ = task.turn.split(".")
            return lambda: provider.on_session_switch(session.id, int(parent_id) or None, reason)
        rows = await self._queue.rows(session.id)
        if task.hook == "on_session_end":
            return lambda: provider.on_session_end(session, rows)
        if task.is_repeated and not implements(provider, "on_forget"):
            # It forgets nothing, so it still has all of it.
            return None
        told = _between(rows, *task.turns)
        if not any(row.role == "user" for row in told):
            # The question is erased; the answer alone tells nothing.
            return None
        return lambda: provider.sync_turn(session, told, task.key)

    async def forget(self, message_ids: Sequence[int], note_ids: Sequence[int] = ()) -> str | None:
        """Asks every service that was told of any of it; again, with the same tasks. Raises StoreError."""
        tasks = await self._queue.forget_tasks(message_ids, note_ids)
        if not tasks:
            return None
        await self._queue.put(tasks)
        asked = list(dict.fromkeys(task.provider for task in tasks))
        were, are = ("was", "is") if len(asked) == 1 else ("were", "are")
        return (
            f"{' and '.join(asked)} {were} told of it and {are} being asked to erase it; when that cannot be done, "
            "the owner hears of it."
        )

    async def amended(self, message_id: int) -> None:
        """A message was edited or deleted on its platform: services that can erase forget it and get what is left."""
        able = [one.name for one in self.providers if implements(one, "on_forget")]
        tasks = await self._queue.forget_tasks([message_id], (), self._clock.now().isoformat())
        await self._queue.put([task for task in tasks if task.provider in able])

    async def _tell_notes(self, since: datetime) -> None:
        for one in self.providers:
            if implements(one, "on_memory_write"):
                await self._queue.put_changes(one.name, since)


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
