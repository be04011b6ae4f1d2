"""What memory services are told: sync tasks as items of the outbox, how far each service was told, and the rows that a
task stands for. Tasks hold ids, never words; they follow from the rows of state.db, so queued twice they are one, and
what a crash left out is queued later.

It reads without a scope: what it finds goes to a service under its scope, and is shown to nobody.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Literal, get_args

from core.ports import Clock
from core.store import rows
from core.store.lineage import ASKED, PARTS_OF_TURN
from core.store.mailbox import OutboxItem, fill_outbox_item
from core.store.notes import OF_NOTES, VERSIONS, change_of
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, Connection, Row, message_of, session_of, turns
from core.store.sqlite.database import Database
from core.store.sqlite.schema import in_list, list_value
from core.types import Address, Answer, Message, Scope, Session

Turn = Sequence[Message]
PLATFORM = "memory"
NOTES = "notes"
Hook = Literal["sync_turn", "on_session_end", "on_session_switch", "on_delegation", "on_memory_write", "on_forget"]
HOOKS: tuple[Hook, ...] = get_args(Hook)
LOOKS_BACK = timedelta(days=1)
"""What is older is only told when somebody asks for a backfill."""
_KEY = re.compile(rf"{PLATFORM}:(?P<provider>[^:]*):(?P<session>[^:]*):(?P<turn>[^:]*):(?P<hook>{'|'.join(HOOKS)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTask:
    """`session`: a session id, or ``notes``. `turn`, by hook: the first message of a turn, ``12``, of several the last
    one too, ``12-18``, with a mark when it is told anew, ``12.3f09``; the last message of a session; its parent, the
    reason and when, ``7.length.1790000000``; a change of notes; ``forgotten.3f09``. `scope` and `ids` (of what is to be
    forgotten or told anew): of the messages or changes of notes that go. What has one `lane`, a chat or notes, keeps
    its order in the outbox. `last_id`: up to which the service is told with it."""

    provider: str
    session: str
    turn: str
    hook: Hook
    scope: Scope | None = None
    ids: tuple[int, ...] = ()
    lane: str = field(default="", compare=False)
    last_id: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def payload(self) -> str:
        return json.dumps([self.scope.key, *self.ids]) if self.scope else ""

    @classmethod
    def parse(cls, key: str, payload: str = "") -> SyncTask | None:
        """From `key` and `payload`; None for what is no task."""
        if (found := _KEY.fullmatch(key)) is None:
            return None
        scope, *ids = json.loads(payload or "[null]")
        return cls(**found.groupdict(), scope=Scope(key=scope) if scope else None, ids=tuple(ids))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What is to be erased, by ids, because the words are gone: `messages` as `sync_turn` gave them, all of one session
    of `scope`; `notes` as `on_memory_write` gave them. A copy made of several goes when one of them does."""

    scope: Scope
    messages: tuple[int, ...] = ()
    notes: tuple[int, ...] = ()


_MARK = """
INSERT INTO told (provider, subject, last_id) VALUES (:provider, :subject, :last_id)
ON CONFLICT DO UPDATE SET last_id = MAX(last_id, excluded.last_id)
"""
_IS_TOLD = """
SELECT 1 FROM told WHERE provider = :provider AND subject = :subject AND last_id >= CAST(:first AS INTEGER)
"""
_SESSIONS = """
SELECT :provider AS provider, sessions.id AS session_id, sessions.address_id, sessions.ended_at,
    COALESCE(told.last_id, 0) AS told_id, COALESCE(ends.last_id, 0) AS end_id,
    (SELECT MAX(id) FROM messages WHERE session_id = sessions.id AND kind IN ('chat', 'quote') AND origin <> 'job')
        AS last_id
FROM sessions JOIN addresses ON addresses.id = sessions.address_id
LEFT JOIN told ON told.provider = :provider AND told.subject = CAST(sessions.id AS TEXT)
LEFT JOIN told AS ends ON ends.provider = :provider AND ends.subject = sessions.id || '.end'
WHERE sessions.id BETWEEN :first AND :last AND sessions.last_at >= :since
    AND addresses.platform <> 'cron' AND (NOT sessions.is_delegated OR :first = :last)
    AND (:has_imported OR sessions.end_reason IS NOT 'import')
ORDER BY sessions.id
"""
_UNTOLD_CHANGES = f"""
SELECT :provider AS provider, id, 'notes' AS session_id, 'notes' AS address_id FROM notes
WHERE (at >= :since OR id > (SELECT last_id FROM told WHERE provider = :provider AND subject = 'notes'))
    AND {OF_NOTES}
    AND 'memory:' || :provider || ':notes:' || notes.id || ':on_memory_write' NOT IN (SELECT key FROM outbox)
ORDER BY id
"""
_TOLD_OF = f"""
WITH providers AS (SELECT DISTINCT provider FROM told), gone (id, own_id, session_id, address_id, scope) AS (
    SELECT messages.id, sessions.id, CASE WHEN sessions.parent_id IS NULL THEN sessions.id ELSE COALESCE((
        SELECT asked.session_id FROM messages AS asked
        WHERE asked.id <= messages.id AND asked.address_id = messages.address_id AND {ASKED}
        ORDER BY asked.id DESC LIMIT 1
    ), sessions.id) END, sessions.address_id, scopes.key
    FROM messages JOIN sessions ON sessions.id = messages.session_id JOIN scopes ON scopes.id = sessions.scope_id
    WHERE {in_list("messages.id", "message_ids")}
)
SELECT DISTINCT told.provider, gone.session_id, gone.address_id, gone.scope, gone.id
FROM providers CROSS JOIN gone JOIN told ON told.provider = providers.provider AND told.last_id >= gone.id
    AND told.subject IN (CAST(gone.session_id AS TEXT), gone.session_id || '.end', gone.own_id || '.end')
UNION ALL
SELECT told.provider, 'notes', 'notes', scopes.key, notes.id FROM told
JOIN notes ON {in_list("notes.id", "note_ids")} AND notes.id <= told.last_id JOIN scopes ON scopes.id = notes.scope_id
WHERE told.subject = 'notes'
ORDER BY 1, 2, 4, 5
"""
_ROWS = f"""
{PARTS_OF_TURN}
SELECT {MESSAGE_COLUMNS} FROM parts JOIN messages ON messages.session_id = parts.id AND messages.id < parts.until_id
WHERE messages.id > :after AND origin <> 'job' AND (kind IN ('chat', 'quote') OR {in_list("messages.id", "erased")})
ORDER BY messages.id
"""


@dataclass(frozen=True, slots=True)
class SyncQueue:
    """`hooks`: which of them the services have that are on, by name; `every`: of those that are told several turns at
    once, of how many. Forgetting asks every service that was ever told
    something, also one that is not on. `on_wake` is called when there is something to deliver."""

    database: Database
    clock: Clock
    on_wake: Callable[[], None] = lambda: None
    hooks: Mapping[str, Collection[Hook]] = field(default_factory=dict)
    every: Mapping[str, int] = field(default_factory=dict)

    async def tell(self, session_id: int | None = None, since: datetime | None = None, *, is_all: bool = False) -> int:
        """Queues what services do not know of a session, or of those with a message since then (`is_all`: imported ones
        as well): answered turns, and that it is over. Turns of one session wait while it is open until there are
        enough. Returns how many sessions have turns to tell."""
        many = 0
        for provider, hooks in self.hooks.items():
            for row in await self._sessions(session_id, provider, since, is_all):
                last_id = row["last_id"] or 0
                is_behind = "sync_turn" in hooks and row["told_id"] < last_id
                said = await self._rows(row["session_id"], row["told_id"]) if is_behind else ()
                # While the last row is a call of a tool or its result, the last turn is not answered yet.
                answers = [place for place, one in enumerate(said, 1) if one.role == "assistant" and not one.tool_name]
                told = turns(said[: max(answers, default=0)])
                groups = _groups(told, self.every.get(provider, 1), is_whole=not session_id or bool(row["ended_at"]))
                tasks = [_task(row, _span(some), "sync_turn", some[-1][-1].id) for some in groups]
                if "on_session_end" in hooks and row["ended_at"] and row["end_id"] < last_id:
                    tasks.append(_task(row, str(last_id), "on_session_end", last_id))
                # Others write between.
                await self._put(tasks)
                many += bool(groups)
        return many

    async def tell_notes(self, since: datetime | None = None) -> None:
        """Queues changes of notes, here or by another process: those since then, and all after the last one told."""
        begins = rows.timestamp(since or self.clock.now() - LOOKS_BACK)
        for provider in self._listeners("on_memory_write"):
            found = await self.database.fetch_all(_UNTOLD_CHANGES, {"since": begins, "provider": provider})
            await self._put([_task(row, str(row["id"]), "on_memory_write", row["id"]) for row in found])

    async def tell_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        """Queues that the conversation goes on in a session; not of one that is scheduled, or incognito."""
        turn = f"{parent_id or 0}.{reason}.{self.clock.now().timestamp():.0f}"
        for provider in self._listeners("on_session_switch"):
            for row in await self._sessions(new_id, provider):
                await self._put([_task(row, turn, "on_session_switch")])

    async def tell_delegation(self, session_id: int) -> None:
        """Queues what a delegated session was to do and has answered; not of one in a schedule."""
        for provider in self._listeners("on_delegation"):
            for row in await self._sessions(session_id, provider):
                await self._put([_task(row, "0", "on_delegation", row["last_id"])])

    async def catch_up(self, since: datetime | None = None) -> int:
        """Queues what a process before this one did not; with `since`, all that was said from then on, before a service
        was there. Returns of how many sessions."""
        await self.tell_notes(since)
        return await self.tell(since=since or self.clock.now() - LOOKS_BACK, is_all=since is not None)

    async def forget(
        self, message_ids: Sequence[int], note_ids: Sequence[int] = (), stamp: str = "", among: Collection[str] = ()
    ) -> Sequence[str]:
        """Asks every service that was told of any of it, or those `among`, to erase it, tells them the rest of those
        turns anew, and returns their names; again with the same tasks, unless the `stamp` is another."""
        values = {"message_ids": list_value(message_ids), "note_ids": list_value(note_ids)}
        found = await self.database.fetch_all(_TOLD_OF, values)
        tasks: list[SyncTask] = []
        for (provider, session, scope), group in groupby(found, key=itemgetter("provider", "session_id", "scope")):
            if among and provider not in among:
                continue
            told = list(group)
            ids = tuple(row["id"] for row in told)
            mark = f"{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
            task = replace(_task(told[0], f"forgotten.{mark}", "on_forget"), scope=Scope(key=scope), ids=ids)
            said = () if session == NOTES else turns(await self._rows(session, erased=ids))
            touched = [turn[0].id for turn in said if any(row.id in ids for row in turn)]
            tasks += [task, *(replace(task, turn=f"{id_}.{mark}", hook="sync_turn") for id_ in touched)]
        await self._put(tasks)
        return list(dict.fromkeys(task.provider for task in tasks))

    async def tell_anew(self, task: SyncTask, message_ids: Collection[int]) -> None:
        """Queues, behind a task that forgets, the turns with these messages; again with the same tasks."""
        mark = task.turn.partition(".")[2]
        for row in await self._sessions(int(task.session), task.provider) if message_ids else ():
            said = turns(await self._rows(row["session_id"], erased=task.ids))
            firsts = [turn[0].id for turn in said if not {*message_ids}.isdisjoint(one.id for one in turn)]
            anew = [_task(row, f"{first}.{mark}", "sync_turn") for first in firsts]
            await self._put([replace(one, scope=task.scope, ids=task.ids) for one in anew])

    async def amended(self, *message_ids: int) -> None:
        """Messages were edited or deleted on their platform, undone or brought back: services that can erase forget
        them and get what is left."""
        if able := self._listeners("on_forget"):
            await self.forget(message_ids, (), self.clock.now().isoformat(), able)

    async def arguments(self, task: SyncTask) -> tuple[object, ...] | None:
        """Of the task's hook, with what its ids stand for now; None when nothing is left of it."""
        if task.hook == "on_forget":
            kind = {NOTES: "notes"}.get(task.session, "messages")
            return (Forgotten(scope=task.scope, **{kind: task.ids}),) if task.scope else None
        if task.hook == "on_memory_write":
            row = await self.database.fetch_one(f"{VERSIONS} WHERE notes.id = :id", {"id": int(task.turn)})
            return None if row is None else (change_of(row),)
        row = await self.database.fetch_one(f"{SESSIONS} WHERE sessions.id = :id", {"id": int(task.session)})
        if row is None:
            return None
        session = session_of(row)
        if session.is_delegated:
            return await self._delegated(session) if task.hook == "on_delegation" else None
        if task.hook == "on_session_switch":
            parent_id, reason, _ = task.turn.split(".")
            return session.id, int(parent_id) or None, reason
        if task.hook == "on_session_end":
            return session, await self._rows(session.id)
        return await self._turn(session, task)

    async def _turn(self, session: Session, task: SyncTask) -> tuple[object, ...] | None:
        first, _, until = task.turn.partition(".")[0].partition("-")
        said = turns(await self._rows(session.id, int(first) - 1, task.ids))
        # With what was erased since, a turn still begins where it began.
        meant = [turn for turn in said if int(first) <= turn[0].id <= int(until or first)]
        told = [row for turn in meant for row in turn if row.kind in ("chat", "quote")]
        # Where the question is erased, the answer alone tells nothing.
        return (session, told, task.key) if any(row.role == "user" for row in told) else None

    async def _delegated(self, session: Session) -> tuple[object, ...] | None:
        """With its task and its result; None where one of them is erased."""
        texts = [row.text for row in await self._rows(session.id) if row.role != "tool" and not row.tool_name]
        return (session, *texts) if len(texts) == 2 else None

    async def _rows(self, session_id: int, after: int = 0, erased: Sequence[int] = ()) -> Sequence[Message]:
        """The session's own that the model may see, oldest first, without erased ones but these."""
        values = {"id": session_id, "after": after, "erased": list_value(erased)}
        return [message_of(row) for row in await self.database.fetch_all(_ROWS, values)]

    async def _sessions(
        self, session_id: int | None, provider: str, since: datetime | None = None, has_imported: bool = True
    ) -> Sequence[Row]:
        """One or all with a message since then, and how far a service was told of them."""
        between = {"first": session_id or 0, "last": session_id or 2**63 - 1, "since": since or 0}
        values = {**between, "provider": provider, "has_imported": has_imported}
        return await self.database.fetch_all(_SESSIONS, values)

    async def _put(self, tasks: Sequence[SyncTask]) -> None:
        """Queues tasks, due now, each unless it is there, and marks how far their service then is."""
        now = self.clock.now()

        def work(connection: Connection) -> None:
            for task in tasks:
                # Their keys tell not whether somebody else has queued some of them meanwhile.
                is_grouped = task.hook == "sync_turn" and task.last_id and self.every.get(task.provider, 1) > 1
                if is_grouped and connection.execute(_IS_TOLD, _told_of(task)).fetchone():
                    continue
                address = Address(platform=PLATFORM, chat_id=task.provider, thread_id=task.lane)
                answer = Answer(text=task.payload)
                item = OutboxItem(key=task.key, kind="memory", address=address, answer=answer, next_at=now)
                fill_outbox_item(connection, item, now, None)
                if task.last_id:
                    connection.execute(_MARK, _told_of(task))

        if tasks:
            await self.database.write(work)
            self.on_wake()

    def _listeners(self, hook: Hook) -> Sequence[str]:
        return [name for name, hooks in self.hooks.items() if hook in hooks]


def _told_of(task: SyncTask) -> Mapping[str, object]:
    subject, first = task.session + (".end" if task.hook == "on_session_end" else ""), task.turn.partition("-")[0]
    return {"provider": task.provider, "subject": subject, "last_id": task.last_id, "first": first}


def _groups(told: Sequence[Turn], size: int, *, is_whole: bool) -> Sequence[Sequence[Turn]]:
    """Of so many turns each; the last may have fewer where all are to be told."""
    end = len(told) if is_whole else len(told) - len(told) % size
    return [told[place : min(place + size, end)] for place in range(0, end, size)]


def _span(some: Sequence[Turn]) -> str:
    """How a task names its turns."""
    return f"{some[0][0].id}" if len(some) == 1 else f"{some[0][0].id}-{some[-1][-1].id}"


def _task(row: Row, turn: str, hook: Hook, last_id: int = 0) -> SyncTask:
    session, lane = str(row["session_id"]), str(row["address_id"])
    return SyncTask(provider=row["provider"], session=session, turn=turn, hook=hook, lane=lane, last_id=last_id)
