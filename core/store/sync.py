"""What memory services are told: sync tasks as items of the outbox, how far each service was told (the outbox forgets
its keys after 30 days), and the rows that a task stands for. Tasks hold ids, never words; they follow from the rows of
state.db, so queued twice they are one, and what a crash left out is queued later.

It reads without a scope: what it finds goes to a service under its scope, and is shown to nobody.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal, get_args

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Row
from core.store.mailbox import OPEN, OutboxItem, fill_outbox_item
from core.store.notes import VERSIONS, NoteChange, change_of
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, session_of
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.types import Address, Answer, Message, Scope, Session

PLATFORM = "memory"
NOTES = "notes"
Hook = Literal["sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget"]
HOOKS: tuple[Hook, ...] = get_args(Hook)
LOOKS_BACK = timedelta(days=1)
"""What is older is only told when somebody asks for a backfill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTask:
    """`session`: a session id, or ``notes``. `turn`, by hook: the first message of a turn, ``12``, with a mark when it
    is told anew, ``12.3f09``; the last message of a session; its parent, the reason and when, ``7.length.1790000000``;
    a change of notes; ``forgotten.3f09``. `scope` and `ids` (of on_forget only): of the messages or changes of notes
    that are to be forgotten. What has one `lane`, a chat or notes, keeps its order in the outbox."""

    provider: str
    session: str
    turn: str
    hook: Hook
    scope: Scope | None = None
    ids: tuple[int, ...] = ()
    lane: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def address(self) -> Address:
        return Address(platform=PLATFORM, chat_id=self.provider, thread_id=self.lane)

    @property
    def first_id(self) -> int:
        """Of sync_turn: the first message of the turn."""
        return int(self.turn.partition(".")[0].partition("-")[0])

    @property
    def is_repeated(self) -> bool:
        """Of sync_turn: whether it was told before, with something that was forgotten."""
        return "." in self.turn

    @property
    def payload(self) -> str:
        return json.dumps([self.scope.key, *self.ids]) if self.scope else ""

    @classmethod
    def parse(cls, key: str, payload: str = "") -> SyncTask | None:
        """From `key` and `payload`; None for what is no task."""
        platform, _, rest = key.partition(":")
        parts = rest.split(":")
        hook = next((hook for hook in HOOKS if hook == parts[-1]), None)
        if platform != PLATFORM or len(parts) != 4 or hook is None:
            return None
        scope, *ids = json.loads(payload or "[null]")
        task = cls(provider=parts[0], session=parts[1], turn=parts[2], hook=hook, ids=tuple(ids))
        return replace(task, scope=Scope(key=scope)) if scope else task


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """Tasks that wait or were given up, and why the latest of them failed."""

    waiting: int = 0
    dead: int = 0
    reason: str = ""


PUT_AT_ONCE = 500
"""Tasks in one transaction: others write between."""
_OF_PREFIX = "key >= :first AND key < :last AND kind = 'memory'"
_MARK = """
INSERT INTO told (provider, subject, last_id) VALUES (:provider, :subject, :last_id)
ON CONFLICT DO UPDATE SET last_id = MAX(last_id, excluded.last_id)
"""
_COUNTS = f"""
SELECT COALESCE(SUM({OPEN}), 0) AS waiting, COALESCE(SUM(dead_at IS NOT NULL), 0) AS dead,
    MAX(CASE WHEN error IS NOT NULL THEN printf('%020d', id) || error END) AS reason
FROM outbox WHERE {_OF_PREFIX} AND done_at IS NULL AND payload IS NOT NULL
"""
_RETRY = f"""
UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = :now
WHERE {_OF_PREFIX} AND dead_at IS NOT NULL AND payload IS NOT NULL
"""
_SESSIONS = """
SELECT sessions.id FROM sessions JOIN addresses ON addresses.id = sessions.address_id
WHERE sessions.id BETWEEN :first_session AND :last_session AND sessions.last_at >= :since
    AND addresses.platform <> 'cron' AND (:has_imported OR sessions.end_reason IS NOT 'import')
"""
_UNTOLD_TURNS = f"""
SELECT rows.session_id, CAST(rows.session_id AS TEXT) AS subject, rows.id, sessions.address_id,
    COALESCE(LEAD(rows.id) OVER (PARTITION BY rows.session_id ORDER BY rows.id) - 1, rows.answered_id) AS last_id
FROM (
    SELECT id, session_id, role, LAG(role) OVER (PARTITION BY session_id ORDER BY id) AS role_before,
        MAX(CASE WHEN role = 'assistant' AND tool_name IS NULL THEN id END) OVER (PARTITION BY session_id)
            AS answered_id
    FROM messages WHERE kind IN ('chat', 'quote') AND session_id IN ({_SESSIONS})
) AS rows
JOIN sessions ON sessions.id = rows.session_id
LEFT JOIN told ON told.provider = :provider AND told.subject = CAST(rows.session_id AS TEXT)
WHERE rows.role = 'user' AND rows.role_before IS NOT 'user' AND rows.id < rows.answered_id
    AND rows.id > COALESCE(told.last_id, 0)
ORDER BY rows.session_id, rows.id
"""
"""A turn begins with what people said since the last answer. While its last row is a call of a tool or its result, it
is not answered yet."""
_UNTOLD_ENDS = f"""
SELECT messages.session_id, messages.session_id || '.end' AS subject, sessions.address_id,
    MAX(messages.id) AS id, MAX(messages.id) AS last_id
FROM messages
JOIN sessions ON sessions.id = messages.session_id AND sessions.ended_at IS NOT NULL
LEFT JOIN told ON told.provider = :provider AND told.subject = messages.session_id || '.end'
WHERE messages.kind IN ('chat', 'quote') AND messages.session_id IN ({_SESSIONS})
GROUP BY messages.session_id HAVING MAX(messages.id) > COALESCE(MAX(told.last_id), 0)
"""
_LANE = """
SELECT sessions.id AS session_id, sessions.address_id FROM sessions JOIN addresses ON addresses.id = sessions.address_id
WHERE sessions.id = :id AND addresses.platform <> 'cron'
"""
_UNTOLD_CHANGES = """
SELECT id, id AS last_id, 'notes' AS subject, 'notes' AS session_id, 'notes' AS address_id FROM notes
WHERE (at >= :since OR id > (SELECT last_id FROM told WHERE provider = :provider AND subject = 'notes'))
    AND 'memory:' || :provider || ':notes:' || notes.id || ':on_memory_write' NOT IN (SELECT key FROM outbox)
ORDER BY id
"""
_TOLD = f"""
WITH providers AS (SELECT DISTINCT provider FROM told)
SELECT DISTINCT told.provider, messages.session_id, sessions.address_id, scopes.key AS scope, messages.id
FROM providers JOIN messages ON {in_list("messages.id", "message_ids")}
JOIN sessions ON sessions.id = messages.session_id JOIN scopes ON scopes.id = sessions.scope_id
JOIN told ON told.provider = providers.provider AND told.last_id >= messages.id
    AND told.subject IN (CAST(messages.session_id AS TEXT), messages.session_id || '.end')
UNION ALL
SELECT told.provider, 'notes', 'notes', scopes.key, notes.id FROM told
JOIN notes ON {in_list("notes.id", "note_ids")} AND notes.id <= told.last_id JOIN scopes ON scopes.id = notes.scope_id
WHERE told.subject = 'notes'
ORDER BY 1, 2, 4, 5
"""
_ROWS = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session_id = :id AND kind IN ('chat', 'quote') ORDER BY id"


class SyncQueue:
    """`hooks`: which of them the services have that are on, by name. Forgetting asks every service that was ever told
    something, also one that is not on. `on_wake` is called when there is something to deliver."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        on_wake: Callable[[], None] = lambda: None,
        hooks: Mapping[str, Collection[Hook]] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._on_wake = on_wake
        self._hooks = hooks or {}

    async def tell(
        self, session_id: int | None = None, since: datetime | None = None, *, has_imported: bool = False
    ) -> int:
        """Queues what services do not know of a session, or of all with a message since then: answered turns, and that
        it is over. Returns how many sessions have turns to tell."""
        first, last = (0, 2**63 - 1) if session_id is None else (session_id, session_id)
        begins = rows.maybe_timestamp(since) or 0
        values = {"first_session": first, "last_session": last, "since": begins, "has_imported": has_imported}
        many = await self._tell("sync_turn", _UNTOLD_TURNS, values)
        await self._tell("on_session_end", _UNTOLD_ENDS, values)
        return many

    async def tell_notes(self, since: datetime | None = None) -> None:
        """Queues changes of notes, here or by another process: those since then, and all after the last one told."""
        since = since or self._clock.now() - LOOKS_BACK
        await self._tell("on_memory_write", _UNTOLD_CHANGES, {"since": rows.timestamp(since)})

    async def tell_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        """Queues that the conversation goes on in a session; not of one that is scheduled, or incognito."""
        row = await self._database.fetch_one(_LANE, {"id": new_id})
        if row is not None:
            turn = f"{parent_id or 0}.{reason}.{self._clock.now().timestamp():.0f}"
            hook: Hook = "on_session_switch"
            await self._put([_task(provider, row, turn, hook) for provider in self._listeners(hook)])

    async def catch_up(self) -> None:
        """Queues what a process before this one did not."""
        await self.tell(since=self._clock.now() - LOOKS_BACK)
        await self.tell_notes()

    async def backfill(self, since: datetime) -> int:
        """Queues what was said since then, before a service was there; returns of how many sessions."""
        await self.tell_notes(since)
        return await self.tell(since=since, has_imported=True)

    async def forget(self, message_ids: Sequence[int], note_ids: Sequence[int] = ()) -> Sequence[str]:
        """Asks every service that was told of any of it, and returns their names; again, with the same tasks."""
        tasks = await self.forget_tasks(message_ids, note_ids)
        await self._put(tasks)
        return list(dict.fromkeys(task.provider for task in tasks))

    async def amended(self, message_id: int) -> None:
        """A message was edited or deleted on its platform: services that can erase forget it and get what is left."""
        able = self._listeners("on_forget")
        tasks = await self.forget_tasks([message_id], (), self._clock.now().isoformat())
        await self._put([task for task in tasks if task.provider in able])

    async def forget_tasks(
        self, message_ids: Sequence[int], note_ids: Sequence[int], stamp: str = ""
    ) -> Sequence[SyncTask]:
        """For each service that was told of some of it: to forget that, and to be told the rest of those turns anew."""
        values = {"message_ids": list_value(message_ids), "note_ids": list_value(note_ids)}
        found = await self._database.fetch_all(_TOLD, values)
        tasks: list[SyncTask] = []
        for _, group in groupby(found, key=lambda row: (row["provider"], row["session_id"], row["scope"])):
            told = list(group)
            ids = tuple(row["id"] for row in told)
            mark = f"{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
            task = _task(told[0]["provider"], told[0], f"forgotten.{mark}", "on_forget")
            tasks.append(replace(task, scope=Scope(key=told[0]["scope"]), ids=ids))
            firsts = await self._firsts(task.provider, task.session)
            touched = {max((first for first in firsts if first <= one), default=0) for one in ids} - {0}
            tasks += [replace(task, turn=f"{first}.{mark}", hook="sync_turn") for first in sorted(touched)]
        return tasks

    async def counts(self, provider: str) -> QueueCounts:
        (row,) = await self._database.fetch_all(_COUNTS, _range(provider))
        return QueueCounts(waiting=row["waiting"], dead=row["dead"], reason=(row["reason"] or "")[20:])

    async def retry_dead(self, provider: str) -> int:
        return await self._database.execute(_RETRY, _range(provider) | {"now": self._clock.now()})

    async def session(self, session_id: int) -> Session | None:
        row = await self._database.fetch_one(f"{SESSIONS} WHERE sessions.id = :id", {"id": session_id})
        return None if row is None else session_of(row)

    async def rows(self, session_id: int) -> Sequence[Message]:
        """The session's own that the model may see, oldest first, without erased ones."""
        return [message_of(row) for row in await self._database.fetch_all(_ROWS, {"id": session_id})]

    async def change(self, change_id: int) -> NoteChange | None:
        row = await self._database.fetch_one(f"{VERSIONS} WHERE notes.id = :id", {"id": change_id})
        return None if row is None else change_of(row)

    async def _tell(self, hook: Hook, untold: str, values: Mapping[str, object]) -> int:
        """Queues for each service with this hook what it was not told; returns of how many sessions that is."""
        many = 0
        for provider in self._listeners(hook):
            found = await self._database.fetch_all(untold, {**values, "provider": provider})
            for start in range(0, len(found), PUT_AT_ONCE):
                some = found[start : start + PUT_AT_ONCE]
                tasks = [_task(provider, row, str(row["id"]), hook) for row in some]
                await self._put(tasks, {row["subject"]: row["last_id"] for row in some})
            many += len({row["session_id"] for row in found})
        return many

    async def _put(self, tasks: Sequence[SyncTask], told: Mapping[str, int] | None = None) -> None:
        """Queues tasks, due now, each unless it is there. `told`: up to which id, by subject, their service then is."""
        now = self._clock.now()

        def work(connection: Connection) -> None:
            for task in tasks:
                answer = Answer(text=task.payload)
                item = OutboxItem(key=task.key, kind="memory", address=task.address, answer=answer, next_at=now)
                fill_outbox_item(connection, item, now, None)
            for subject, last_id in (told or {}).items():
                connection.execute(_MARK, {"provider": tasks[0].provider, "subject": subject, "last_id": last_id})

        if tasks:
            await self._database.write(work)
            self._on_wake()

    async def _firsts(self, provider: str, session: str) -> Sequence[int]:
        """The first message of each turn that was told, as far as the outbox knows them."""
        found = await self._database.fetch_all(f"SELECT key FROM outbox WHERE {_OF_PREFIX}", _range(provider, session))
        tasks = [SyncTask.parse(row["key"]) for row in found]
        return [task.first_id for task in tasks if task is not None and task.hook == "sync_turn"]

    def _listeners(self, hook: Hook) -> Sequence[str]:
        return [name for name, hooks in self._hooks.items() if hook in hooks]


def _task(provider: str, row: Row, turn: str, hook: Hook) -> SyncTask:
    session, lane = str(row["session_id"]), str(row["address_id"])
    return SyncTask(provider=provider, session=session, turn=turn, hook=hook, lane=lane)


def _range(*parts: object) -> dict[str, object]:
    """The keys with this prefix, as a range of their index."""
    prefix = f"{PLATFORM}:{':'.join(map(str, parts))}:"
    return {"first": prefix, "last": prefix + "\U0010ffff"}
