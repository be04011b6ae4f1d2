"""What memory services are told: sync tasks as items of the outbox, how far each service was told (the outbox forgets
its keys after 30 days), and the rows that a task stands for. Tasks hold ids, never words.

It reads without a scope: what it finds goes to a service under its scope, and is shown to nobody.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Literal

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Row
from core.store.notes import VERSIONS, NoteChange, change_of
from core.store.outbox import OPEN, OutboxItem, fill_outbox_item
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, message_of, session_of
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.types import Address, Answer, Message, Scope, Session

PLATFORM = "memory"
NOTES = "notes"
Hook = Literal["sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget"]
HOOKS: tuple[Hook, ...] = ("sync_turn", "on_session_end", "on_session_switch", "on_memory_write", "on_forget")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTask:
    """`session`: a session id, or ``notes``. `turn`, by hook: the first message of a turn, ``12``, or of the first and
    last of several that earlier versions told together, ``12-18``, with a mark when it is told anew, ``12-12.3f09``;
    the last message of a session; its parent, the reason and when, ``7.length.1790000000``; a change of notes;
    ``forgotten.3f09``. `scope` and `ids` (of on_forget only): of the messages or changes of notes that are to be
    forgotten. What has one `lane` keeps its order in the outbox: all of a chat, so that a session begins for a service
    when the one before is over, or notes."""

    provider: str
    session: str
    turn: str
    hook: Hook
    scope: Scope | None = None
    ids: tuple[int, ...] = ()
    lane: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """Unique for ever."""
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def address(self) -> Address:
        return Address(platform=PLATFORM, chat_id=self.provider, thread_id=self.lane)

    @property
    def turns(self) -> tuple[int, int]:
        """Of sync_turn: the first messages of the first and last turn."""
        first, _, last = self.turn.partition(".")[0].partition("-")
        return int(first), int(last or first)

    @property
    def is_repeated(self) -> bool:
        """Of sync_turn: whether it was told before, together with something that was forgotten."""
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
        task = cls(provider=parts[0], session=parts[1], turn=parts[2], hook=hook)
        if not payload:
            return task
        scope, *ids = json.loads(payload)
        return replace(task, scope=Scope(key=scope), ids=tuple(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRange:
    """One session, or all with a message since then, imported ones among them or not."""

    session_id: int | None = None
    since: datetime | None = None
    has_imported: bool = False

    @property
    def values(self) -> dict[str, object]:
        first, last = (0, 2**63 - 1) if self.session_id is None else (self.session_id, self.session_id)
        since = rows.maybe_timestamp(self.since) or 0
        return {"first_session": first, "last_session": last, "since": since, "has_imported": self.has_imported}


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
SELECT rows.session_id, rows.id, sessions.address_id,
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
SELECT messages.session_id, sessions.address_id, MAX(messages.id) AS last_id FROM messages
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
SELECT id, 'notes' AS session_id, 'notes' AS address_id FROM notes
WHERE (at >= :since OR id > (SELECT last_id FROM told WHERE provider = :provider AND subject = 'notes'))
    AND 'memory:' || :provider || ':notes:' || notes.id || ':on_memory_write' NOT IN (SELECT key FROM outbox)
ORDER BY id
"""
_PROVIDERS = "(SELECT DISTINCT provider FROM told) AS providers"
_TOLD_MESSAGES = f"""
SELECT DISTINCT told.provider, messages.session_id, sessions.address_id, scopes.key AS scope, messages.id
FROM {_PROVIDERS} JOIN messages ON {in_list("messages.id", "message_ids")}
JOIN sessions ON sessions.id = messages.session_id JOIN scopes ON scopes.id = sessions.scope_id
JOIN told ON told.provider = providers.provider AND told.last_id >= messages.id
    AND told.subject IN (CAST(messages.session_id AS TEXT), messages.session_id || '.end')
ORDER BY told.provider, messages.session_id, messages.id
"""
_TOLD_CHANGES = f"""
SELECT told.provider, 'notes' AS session_id, 'notes' AS address_id, scopes.key AS scope, notes.id
FROM {_PROVIDERS} JOIN notes ON {in_list("notes.id", "note_ids")} JOIN scopes ON scopes.id = notes.scope_id
JOIN told ON told.provider = providers.provider AND told.subject = 'notes' AND told.last_id >= notes.id
ORDER BY told.provider, scopes.key, notes.id
"""
_CHANGE = f"""
SELECT versions.*, messages.session_id FROM ({VERSIONS} WHERE notes.id = :id) AS versions
LEFT JOIN messages ON messages.id = versions.message_id
"""
_ROWS = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session_id = :id AND kind IN ('chat', 'quote') ORDER BY id"


class SyncQueue:
    """The tasks of every service, how far each was told, and what stands behind the ids of a task. `on_wake` is called
    when there is something to deliver."""

    def __init__(self, database: Database, clock: Clock, on_wake: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._clock = clock
        self._on_wake = on_wake

    async def put(self, tasks: Sequence[SyncTask], told: Mapping[str, int] | None = None) -> None:
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

    async def put_turns(self, provider: str, sessions: SessionRange) -> int:
        """Queues the answered turns that it does not know. Returns how many sessions they are of."""
        found = await self._database.fetch_all(_UNTOLD_TURNS, sessions.values | {"provider": provider})
        for start in range(0, len(found), PUT_AT_ONCE):
            turns = found[start : start + PUT_AT_ONCE]
            tasks = [_task(provider, row, str(row["id"]), "sync_turn") for row in turns]
            await self.put(tasks, {str(row["session_id"]): row["last_id"] for row in turns})
        return len({row["session_id"] for row in found})

    async def put_ends(self, provider: str, sessions: SessionRange) -> None:
        """Queues that sessions are over."""
        found = await self._database.fetch_all(_UNTOLD_ENDS, sessions.values | {"provider": provider})
        tasks = [_task(provider, row, str(row["last_id"]), "on_session_end") for row in found]
        await self.put(tasks, {f"{row['session_id']}.end": row["last_id"] for row in found})

    async def put_switch(self, providers: Sequence[str], new_id: int, parent_id: int | None, reason: str) -> None:
        """Queues that the conversation goes on in a session; not of one that is scheduled, or incognito."""
        row = await self._database.fetch_one(_LANE, {"id": new_id})
        if row is not None:
            turn = f"{parent_id or 0}.{reason}.{self._clock.now().timestamp():.0f}"
            await self.put([_task(provider, row, turn, "on_session_switch") for provider in providers])

    async def put_changes(self, provider: str, since: datetime) -> None:
        """Queues changes of notes: those since then, and all after the last that it was told."""
        values = {"provider": provider, "since": rows.timestamp(since)}
        found = await self._database.fetch_all(_UNTOLD_CHANGES, values)
        tasks = [_task(provider, row, str(row["id"]), "on_memory_write") for row in found]
        await self.put(tasks, {NOTES: found[-1]["id"]} if found else {})

    async def forget_tasks(
        self, message_ids: Sequence[int], note_ids: Sequence[int], stamp: str = ""
    ) -> Sequence[SyncTask]:
        """For every service that was told of some of it: to forget that, and to be told anew what else it was told with
        it. The same tasks for the same ids and `stamp`."""
        values = {"message_ids": list_value(message_ids), "note_ids": list_value(note_ids)}
        found = [
            *await self._database.fetch_all(_TOLD_MESSAGES, values),
            *await self._database.fetch_all(_TOLD_CHANGES, values),
        ]
        tasks: list[SyncTask] = []
        for _, group in groupby(found, key=lambda row: (row["provider"], row["session_id"], row["scope"])):
            told = list(group)
            ids = tuple(row["id"] for row in told)
            mark = f"{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
            task = _task(told[0]["provider"], told[0], f"forgotten.{mark}", "on_forget")
            tasks.append(replace(task, scope=Scope(key=told[0]["scope"]), ids=ids))
            batches = await self._batches(task.provider, task.session)
            touched = {max((batch for batch in batches if batch[0] <= one), default=None) for one in ids}
            for first, last in sorted(filter(None, touched)):
                tasks.append(replace(task, turn=f"{first}-{last}.{mark}", hook="sync_turn"))
        return tasks

    async def counts(self, provider: str) -> QueueCounts:
        (row,) = await self._database.fetch_all(_COUNTS, _range(provider))
        return QueueCounts(waiting=row["waiting"], dead=row["dead"], reason=(row["reason"] or "")[20:])

    async def retry_dead(self, provider: str) -> int:
        """Returns how many tasks are due again."""
        values = _range(provider) | {"now": rows.timestamp(self._clock.now())}
        return await self._database.execute(_RETRY, values)

    async def session(self, session_id: int) -> Session | None:
        row = await self._database.fetch_one(f"{SESSIONS} WHERE sessions.id = :id", {"id": session_id})
        return None if row is None else session_of(row)

    async def rows(self, session_id: int) -> Sequence[Message]:
        """The session's own that the model may see, oldest first, without erased ones."""
        return [message_of(row) for row in await self._database.fetch_all(_ROWS, {"id": session_id})]

    async def change(self, change_id: int) -> tuple[NoteChange, Session | None] | None:
        """With the session it was made in where that is known; None when it is gone."""
        row = await self._database.fetch_one(_CHANGE, {"id": change_id})
        if row is None:
            return None
        return change_of(row), None if row["session_id"] is None else await self.session(row["session_id"])

    async def _batches(self, provider: str, session: str) -> Sequence[tuple[int, int]]:
        """The first messages of the first and last turn of each sync_turn, as far as the outbox knows them."""
        found = await self._database.fetch_all(f"SELECT key FROM outbox WHERE {_OF_PREFIX}", _range(provider, session))
        tasks = [SyncTask.parse(row["key"]) for row in found]
        return [task.turns for task in tasks if task is not None and task.hook == "sync_turn"]


def _task(provider: str, row: Row, turn: str, hook: Hook) -> SyncTask:
    """About the session of a row."""
    session, lane = str(row["session_id"]), str(row["address_id"])
    return SyncTask(provider=provider, session=session, turn=turn, hook=hook, lane=lane)


def _range(*parts: object) -> dict[str, object]:
    """The keys with this prefix, as a range of their index."""
    prefix = f"{PLATFORM}:{':'.join(map(str, parts))}:"
    return {"first": prefix, "last": prefix + "\U0010ffff"}
