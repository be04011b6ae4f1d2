"""What memory services are told: sync tasks as items of the outbox, how far each service was told (the outbox forgets
its keys after 30 days), and the rows that a task stands for. Tasks hold ids, never words.

`SyncSource` is the one reader without a scope: what it finds goes to a service under its scope, and is shown to nobody.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
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
    """`session`: a session id, or ``notes``. `turn`, by hook: the first messages of the first and last turn, ``12-18``,
    or ``12-18.3f09`` when they are told anew; the last message of a session; its parent, the reason and when,
    ``7.length.1790000000``; a change of notes; ``forgotten.3f09``. `scope` and `ids` (of on_forget only): of the
    messages or changes of notes that are to be forgotten."""

    provider: str
    session: str
    turn: str
    hook: Hook
    scope: Scope | None = None
    ids: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Unique for ever."""
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def address(self) -> Address:
        """In the outbox: what concerns one session keeps its order."""
        return Address(platform=PLATFORM, chat_id=self.provider, thread_id=self.session)

    @property
    def turns(self) -> tuple[int, int]:
        """Of sync_turn: the first messages of the first and last turn."""
        first, _, last = self.turn.partition(".")[0].partition("-")
        return int(first), int(last)

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


def forget_task(provider: str, session: str, scope: Scope, ids: Sequence[int], stamp: str = "") -> SyncTask:
    """`stamp` tells the task from another one about the same ids."""
    turn = f"forgotten.{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
    return SyncTask(provider=provider, session=session, turn=turn, hook="on_forget", scope=scope, ids=tuple(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """The sessions from `next_id` to `last_id` with a message since then are to be told."""

    since: datetime
    next_id: int
    last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """Tasks that wait or were given up, and why the latest of them failed."""

    waiting: int = 0
    dead: int = 0
    reason: str = ""


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
_SESSIONS_SINCE = """
SELECT COUNT(*) AS many, COALESCE(MAX(sessions.id), 0) AS last_id FROM sessions
JOIN addresses ON addresses.id = sessions.address_id
WHERE sessions.messages > 0 AND last_at >= :since AND addresses.platform <> 'cron'
"""
_BACKFILL = "SELECT * FROM pasts WHERE provider = :provider"
_ASK_BACKFILL = """
INSERT INTO pasts (provider, since, next_id, last_id) VALUES (:provider, :since, 1, :last_id)
ON CONFLICT DO UPDATE SET since = excluded.since, next_id = 1, last_id = excluded.last_id
"""


class SyncQueue:
    """The tasks of every service, and how far each was told."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put(self, tasks: Sequence[SyncTask], subject: str = "", last_id: int = 0) -> None:
        """Queues tasks of one service, due now, each unless it is there; in the same transaction marks all of `subject`
        up to `last_id` as told."""
        now = self._clock.now()

        def work(connection: Connection) -> None:
            for task in tasks:
                answer = Answer(text=task.payload)
                item = OutboxItem(key=task.key, kind="memory", address=task.address, answer=answer, next_at=now)
                fill_outbox_item(connection, item, now, None)
            if subject and tasks:
                connection.execute(_MARK, {"provider": tasks[0].provider, "subject": subject, "last_id": last_id})

        await self._database.write(work, has_words=False)

    async def last_told(self, provider: str, subject: str) -> int:
        """Up to which id a subject is told; 0 for nothing."""
        statement = "SELECT last_id FROM told WHERE provider = :provider AND subject = :subject"
        row = await self._database.fetch_one(statement, {"provider": provider, "subject": subject})
        return 0 if row is None else int(row["last_id"])

    async def providers(self) -> Sequence[str]:
        """The services that were ever told something."""
        found = await self._database.fetch_all("SELECT DISTINCT provider FROM told ORDER BY provider")
        return [row["provider"] for row in found]

    async def batches(self, provider: str, session: str) -> Sequence[tuple[int, int]]:
        """The first messages of the first and last turn of each sync_turn, oldest first, as far as known."""
        found = await self._database.fetch_all(f"SELECT key FROM outbox WHERE {_OF_PREFIX}", _range(provider, session))
        tasks = [SyncTask.parse(row["key"]) for row in found]
        return sorted({task.turns for task in tasks if task is not None and task.hook == "sync_turn"})

    async def counts(self, provider: str) -> QueueCounts:
        (row,) = await self._database.fetch_all(_COUNTS, _range(provider))
        return QueueCounts(waiting=row["waiting"], dead=row["dead"], reason=(row["reason"] or "")[20:])

    async def retry_dead(self, provider: str) -> int:
        """Returns how many tasks are due again."""
        values = _range(provider) | {"now": rows.timestamp(self._clock.now())}
        return await self._database.execute(_RETRY, values, has_words=False)

    async def request_backfill(self, provider: str, since: datetime) -> int:
        """Returns how many sessions have a message since then; what was told is not told again."""
        values = {"provider": provider, "since": rows.timestamp(since)}

        def work(connection: Connection) -> int:
            row = connection.execute(_SESSIONS_SINCE, values).fetchone()
            connection.execute(_ASK_BACKFILL, values | {"last_id": row["last_id"]})
            return int(row["many"])

        return await self._database.write(work, has_words=False)

    async def backfill(self, provider: str) -> Backfill | None:
        return _backfill(await self._database.fetch_one(_BACKFILL, {"provider": provider}))

    async def advance_backfill(self, provider: str, next_id: int) -> Backfill | None:
        """Everything before session `next_id` is queued; returns what is left."""
        values = {"provider": provider, "next_id": next_id}

        def work(connection: Connection) -> Backfill | None:
            connection.execute("UPDATE pasts SET next_id = :next_id WHERE provider = :provider", values)
            connection.execute("DELETE FROM pasts WHERE provider = :provider AND next_id > last_id", values)
            return _backfill(connection.execute(_BACKFILL, values).fetchone())

        return await self._database.write(work, has_words=False)


def _backfill(row: Row | None) -> Backfill | None:
    if row is None:
        return None
    return Backfill(since=rows.moment(row["since"]), next_id=row["next_id"], last_id=row["last_id"])


def _range(*parts: str) -> dict[str, object]:
    """The keys with this prefix, as a range of their index."""
    prefix = f"{':'.join((PLATFORM, *parts))}:"
    return {"first": prefix, "last": prefix + "\U0010ffff"}


_LATELY = f"""
{SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
AND sessions.end_reason IS NOT 'import' ORDER BY sessions.id
"""
_BACKFILLED = f"""
{SESSIONS} WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.messages > 0
AND sessions.last_at >= :since AND sessions.id BETWEEN :next_id AND :last_id ORDER BY sessions.id LIMIT :limit
"""
_CHANGE = f"""
SELECT versions.*, messages.session_id FROM ({VERSIONS} WHERE notes.id = :id) AS versions
LEFT JOIN messages ON messages.id = versions.message_id
"""
_MESSAGE = """
SELECT messages.id, messages.session_id FROM messages JOIN addresses ON addresses.id = messages.address_id
WHERE addresses.platform = :platform AND addresses.chat_id = :chat_id AND addresses.thread_id = :thread_id
    AND messages.external_id = :external_id
"""
_OWNERS = f"""
SELECT scopes.key, notes.id FROM notes JOIN scopes ON scopes.id = notes.scope_id
WHERE {in_list("notes.id", "ids")} ORDER BY scopes.key, notes.id
"""


class SyncSource:
    """Sessions, turns and changes of notes by id, whosever they are. Never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def session(self, session_id: int) -> Session | None:
        row = await self._database.fetch_one(f"{SESSIONS} WHERE sessions.id = :id", {"id": session_id})
        return None if row is None else session_of(row)

    async def rows(self, session_id: int) -> Sequence[Message]:
        """The session's own that the model may see, oldest first, without erased ones."""
        statement = f"""
            SELECT {MESSAGE_COLUMNS} FROM messages WHERE session_id = :id AND kind IN ('chat', 'quote') ORDER BY id
        """
        return [message_of(row) for row in await self._database.fetch_all(statement, {"id": session_id})]

    async def recent_sessions(self, since: datetime) -> Sequence[Session]:
        """With a message since then, open or ended, without imported ones."""
        found = await self._database.fetch_all(_LATELY, {"since": rows.timestamp(since)})
        return [session_of(row) for row in found]

    async def backfill_sessions(self, backfill: Backfill, limit: int) -> Sequence[Session]:
        """The first ones of a backfill, also imported ones."""
        span = {"since": rows.timestamp(backfill.since), "next_id": backfill.next_id, "last_id": backfill.last_id}
        return [session_of(row) for row in await self._database.fetch_all(_BACKFILLED, span | {"limit": limit})]

    async def changes(self, since: datetime, after_id: int) -> Sequence[int]:
        """Ids of changes of notes, oldest first."""
        statement = "SELECT id FROM notes WHERE at >= :since AND id > :after ORDER BY id"
        values = {"since": rows.timestamp(since), "after": after_id}
        return [row["id"] for row in await self._database.fetch_all(statement, values)]

    async def change(self, change_id: int) -> tuple[NoteChange, Session | None] | None:
        """With the session it was made in where that is known; None when it is gone."""
        row = await self._database.fetch_one(_CHANGE, {"id": change_id})
        if row is None:
            return None
        return change_of(row), None if row["session_id"] is None else await self.session(row["session_id"])

    async def owners(self, change_ids: Sequence[int]) -> Sequence[tuple[Scope, Sequence[int]]]:
        """These changes of notes by scope."""
        found: dict[str, list[int]] = {}
        for row in await self._database.fetch_all(_OWNERS, {"ids": list_value(change_ids)}):
            found.setdefault(row["key"], []).append(row["id"])
        return [(Scope(key=key), ids) for key, ids in found.items()]

    async def sessions_of(self, message_ids: Sequence[int]) -> Sequence[tuple[Session, Sequence[int]]]:
        """These messages by session, erased ones too."""
        statement = f"SELECT session_id, id FROM messages WHERE {in_list('id', 'ids')} ORDER BY session_id, id"
        found: dict[int, list[int]] = {}
        for row in await self._database.fetch_all(statement, {"ids": list_value(message_ids)}):
            found.setdefault(row["session_id"], []).append(row["id"])
        sessions = [(await self.session(session_id), ids) for session_id, ids in found.items()]
        return [(session, ids) for session, ids in sessions if session is not None]

    async def message(self, address: Address, external_id: str) -> tuple[Session, int] | None:
        """The message that a platform knows by this id, with its session."""
        row = await self._database.fetch_one(_MESSAGE, rows.place(address) | {"external_id": rows.clean(external_id)})
        session = None if row is None else await self.session(row["session_id"])
        return None if row is None or session is None else (session, row["id"])
