"""Queue conversations and notes for memory services.

A sync task is an outbox item that calls one hook of one service. It contains ids but no words; the
words are loaded from state.db when the task runs. Equal tasks have equal keys, so a task that is
queued twice exists only once. If a crash prevents a task from being queued, the next start queues
it. The table `sync_watermarks` records the last row of each session that a service has received.

The statements of this module don't filter by scope. Their results go to a service under their own
scope, and are never shown to a person.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Literal, get_args

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Database, Row, in_list
from core.store.lineage import IS_PERSONS_MESSAGE, WITH_TURN_PARTS
from core.store.mailbox import OutboxItem, store_outbox_item
from core.store.notes import IS_NOTE_CHANGE, SELECT_CHANGES, read_change
from core.store.rows import (
    MESSAGE_COLUMNS,
    SELECT_SESSIONS,
    read_message,
    read_session,
    split_turns,
)
from core.store.visibility import encode_list
from core.types import Address, Answer, Message, Scope, Session

Turn = Sequence[Message]
PLATFORM = "memory"
"""The platform in the addresses of sync tasks."""
NOTES = "notes"
"""Replaces the session id in tasks about notes."""
Hook = Literal[
    "sync_turn",
    "on_session_end",
    "on_session_switch",
    "on_delegation",
    "on_memory_write",
    "on_forget",
]
HOOKS: tuple[Hook, ...] = get_args(Hook)
LOOKBACK = timedelta(days=1)
"""Older messages are synced only if a person requests a backfill."""
MAX_ROW_ID = 2**63 - 1
# Matches the key of a task, e.g. "memory:honcho:12:31-40:sync_turn".
_TASK_KEY = re.compile(
    rf"{PLATFORM}:(?P<provider>[^:]*):(?P<session>[^:]*):(?P<turn>[^:]*):"
    rf"(?P<hook>{'|'.join(HOOKS)})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTask:
    """One call of a hook of a memory service.

    The form of its subject `turn` depends on the hook:

    - sync_turn: ``12`` is the first message of a turn; ``12-18`` are the first and the last message
      of several turns; ``12.3f09`` is a turn that is sent again after an erasure
    - on_session_end: the last message of the session
    - on_session_switch: the parent session, the reason and the time: ``7.length.1790000000``
    - on_delegation: ``0``
    - on_memory_write: the id of a note change
    - on_forget: ``forgotten.3f09``
    """

    provider: str
    # A session id, or NOTES.
    session: str
    turn: str
    hook: Hook
    # The scope and the ids of erased messages or note changes. They are set for on_forget, and for
    # turns that are sent again.
    scope: Scope | None = None
    ids: tuple[int, ...] = ()
    # Tasks with the same key keep their order in the outbox. The key is the id of an address, or
    # NOTES.
    conversation_key: str = field(default="", compare=False)
    # The last row that the service has received after this task, or 0 if the task sends no new
    # rows.
    last_id: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        return f"{PLATFORM}:{self.provider}:{self.session}:{self.turn}:{self.hook}"

    @property
    def payload(self) -> str:
        return json.dumps([self.scope.key, *self.ids]) if self.scope else ""

    @classmethod
    def parse(cls, key: str, payload: str = "") -> SyncTask | None:
        """Decode a task from its key and payload.

        Returns None if the key doesn't belong to a task.
        """
        match = _TASK_KEY.fullmatch(key)
        if match is None:
            return None
        scope_key, *ids = json.loads(payload or "[null]")
        scope = Scope(key=scope_key) if scope_key else None
        return cls(**match.groupdict(), scope=scope, ids=tuple(ids))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The ids of messages or note changes that a service must erase.

    It contains no texts, because they are already erased. A service must also erase each copy that
    it derived from several messages or notes if one of them is listed.
    """

    scope: Scope
    # Ids of messages that the service got from `sync_turn`, all from one session.
    messages: tuple[int, ...] = ()
    # Ids of note changes that the service got from `on_memory_write`.
    notes: tuple[int, ...] = ()


_SET_SYNCED = """
INSERT INTO sync_watermarks (provider, subject, last_id) VALUES (:provider, :subject, :last_id)
ON CONFLICT (provider, subject)
    DO UPDATE SET last_id = MAX(sync_watermarks.last_id, excluded.last_id)
"""
_SELECT_IS_SYNCED = """
SELECT 1 FROM sync_watermarks
WHERE provider = :provider AND subject = :subject AND last_id >= CAST(:first AS BIGINT)
"""
# One row per session that a service may get: its latest message, the last message that is recorded
# as synced, and the last message when its end was synced. A delegated session is included only if
# a single session is selected (:first = :last).
_SELECT_SYNC_STATES = """
SELECT :provider AS provider, sessions.id AS session_id, sessions.address_id, sessions.ended_at,
    COALESCE(turns.last_id, 0) AS synced_id, COALESCE(ends.last_id, 0) AS synced_end_id,
    (
        SELECT MAX(id) FROM messages
        WHERE session_id = sessions.id AND kind IN ('chat', 'quote') AND origin <> 'job'
    ) AS last_id
FROM sessions JOIN addresses ON addresses.id = sessions.address_id
LEFT JOIN sync_watermarks AS turns
    ON turns.provider = :provider AND turns.subject = CAST(sessions.id AS TEXT)
LEFT JOIN sync_watermarks AS ends
    ON ends.provider = :provider AND ends.subject = sessions.id || '.end'
WHERE sessions.id BETWEEN :first AND :last AND sessions.last_at >= :since
    AND addresses.platform <> 'cron' AND (NOT sessions.is_delegated OR :first = :last)
    AND (:has_imported OR sessions.end_reason IS NOT 'import')
ORDER BY sessions.id
"""
# Selects the changes that made the current notes. A verdict such as "right" changes no note.
_MADE_CURRENT_NOTE = """
note_changes.after IS NOT NULL AND note_changes.action NOT IN ('right', 'wrong') AND NOT EXISTS (
    SELECT 1 FROM note_changes AS later
    WHERE later.scope_id = note_changes.scope_id AND later.id > note_changes.id
        AND later.target = note_changes.target AND later.before = note_changes.after
        AND later.action NOT IN ('right', 'wrong')
)
"""
# Note changes without a task that were made since a given time or after the last synced change. A
# service that has received no note yet also gets all current notes.
_SELECT_UNSYNCED_CHANGES = f"""
SELECT :provider AS provider, id, 'notes' AS session_id, 'notes' AS address_id FROM note_changes
WHERE (
    at >= :since
    OR id > (SELECT last_id FROM sync_watermarks WHERE provider = :provider AND subject = 'notes')
    OR NOT EXISTS (
        SELECT 1 FROM sync_watermarks WHERE provider = :provider AND subject = 'notes'
    ) AND {_MADE_CURRENT_NOTE}
) AND {IS_NOTE_CHANGE}
    AND 'memory:' || :provider || ':notes:' || note_changes.id || ':on_memory_write'
        NOT IN (SELECT key FROM outbox)
ORDER BY id
"""
_SELECT_SYNCED_ROWS = f"""
WITH providers AS (SELECT DISTINCT provider FROM sync_watermarks),
gone (id, own_id, session_id, address_id, scope) AS (
    SELECT messages.id, sessions.id,
        CASE WHEN sessions.parent_id IS NULL THEN sessions.id ELSE COALESCE((
            SELECT asked.session_id FROM messages AS asked
            WHERE asked.id <= messages.id AND asked.address_id = messages.address_id
                AND {IS_PERSONS_MESSAGE}
            ORDER BY asked.id DESC LIMIT 1
        ), sessions.id) END,
        sessions.address_id, scopes.key
    FROM messages JOIN sessions ON sessions.id = messages.session_id
    JOIN scopes ON scopes.id = sessions.scope_id
    WHERE {in_list("messages.id", "message_ids")}
)
SELECT DISTINCT marks.provider, CAST(gone.session_id AS TEXT) AS session_id,
    CAST(gone.address_id AS TEXT) AS address_id, gone.scope, gone.id
FROM providers CROSS JOIN gone
JOIN sync_watermarks AS marks ON marks.provider = providers.provider AND marks.last_id >= gone.id
    AND marks.subject IN (
        CAST(gone.session_id AS TEXT), gone.session_id || '.end', gone.own_id || '.end'
    )
UNION ALL
SELECT marks.provider, 'notes', 'notes', scopes.key, note_changes.id FROM sync_watermarks AS marks
JOIN note_changes ON {in_list("note_changes.id", "note_ids")} AND note_changes.id <= marks.last_id
JOIN scopes ON scopes.id = note_changes.scope_id
WHERE marks.subject = 'notes'
ORDER BY 1, 2, 4, 5
"""
"""Selects the messages among ``:message_ids`` and the note changes among ``:note_ids`` that a
service has received.

A message is listed under the session in which its turn began. If a compression interrupted the
turn, that is the session before the compression.
"""
# The messages of a session and of the rest of its last turn, except deliveries of jobs.
_SELECT_MESSAGES = f"""
{WITH_TURN_PARTS}
SELECT {MESSAGE_COLUMNS} FROM parts
JOIN messages ON messages.session_id = parts.id AND messages.id < parts.until_id
WHERE messages.id > :after AND origin <> 'job'
    AND (kind IN ('chat', 'quote') OR {in_list("messages.id", "erased")})
ORDER BY messages.id
"""


@dataclass(frozen=True, slots=True)
class SyncQueue:
    """Queues sync tasks, and loads the arguments of their hooks when they run."""

    database: Database
    clock: Clock
    # Called when a task is ready to be delivered.
    on_wake: Callable[[], None] = lambda: None
    # The hooks of each service that is turned on, by the service's name. Erasures are also sent to
    # services that are turned off, if they were synced before.
    hooks: Mapping[str, Collection[Hook]] = field(default_factory=dict)
    # How many turns a service gets at once, by its name. The default is 1.
    batch_sizes: Mapping[str, int] = field(default_factory=dict)

    async def queue_turns(
        self,
        session_id: int | None = None,
        since: datetime | None = None,
        *,
        has_imported: bool = False,
    ) -> int:
        """Queue the answered turns and ended sessions that services don't have yet.

        With a `session_id`, this covers one session; while it is open, its turns wait until a batch
        is full. Otherwise, this covers all sessions with a message since `since`. Imported sessions
        are covered only with `has_imported`. Returns the number of sessions with queued turns,
        counted once per service.
        """
        session_count = 0
        for provider, hooks in self.hooks.items():
            for state in await self._fetch_states(session_id, provider, since, has_imported):
                allows_partial_batch = not session_id or state["ended_at"] is not None
                tasks: list[SyncTask] = []
                if "sync_turn" in hooks:
                    tasks = await self._build_turn_tasks(
                        state, allows_partial_batch=allows_partial_batch
                    )
                if tasks:
                    session_count += 1
                last_id = state["last_id"] or 0
                has_ended = state["ended_at"] and state["synced_end_id"] < last_id
                if "on_session_end" in hooks and has_ended:
                    tasks.append(_build_task(state, str(last_id), "on_session_end", last_id))
                # One transaction per session lets other writes run in between.
                await self._store_tasks(tasks)
        return session_count

    async def _build_turn_tasks(self, state: Row, *, allows_partial_batch: bool) -> list[SyncTask]:
        """Build a task for each batch of answered turns that a service doesn't have yet.

        Leave out an incomplete last batch, unless `allows_partial_batch` is set.
        """
        if state["synced_id"] >= (state["last_id"] or 0):
            return []
        messages = await self._load_messages(state["session_id"], state["synced_id"])
        # A turn that ends with a tool call or its result isn't answered yet.
        answered_count = 0
        for position, message in enumerate(messages, 1):
            if message.role == "assistant" and not message.tool_name:
                answered_count = position
        turns = split_turns(messages[:answered_count])
        batch_size = self.batch_sizes.get(state["provider"], 1)
        if not allows_partial_batch:
            # With batches of 3, only the first 6 of 7 turns are sent.
            turns = turns[: len(turns) - len(turns) % batch_size]
        tasks = []
        for start in range(0, len(turns), batch_size):
            batch = turns[start : start + batch_size]
            first_id = batch[0][0].id
            last_id = batch[-1][-1].id
            # "12" for the turn that begins with message 12, "12-18" for several turns.
            subject = f"{first_id}" if len(batch) == 1 else f"{first_id}-{last_id}"
            tasks.append(_build_task(state, subject, "sync_turn", last_id))
        return tasks

    async def queue_notes(self, since: datetime | None = None) -> None:
        """Queue the note changes that this or another process has made.

        These are the changes since `since` (by default `LOOKBACK` ago), and all changes after the
        last synced change. A service that has received no note yet gets all current notes.
        """
        begin = rows.to_timestamp(since or self.clock.now() - LOOKBACK)
        for provider in self._list_providers("on_memory_write"):
            values = {"since": begin, "provider": provider}
            changes = await self.database.fetch_all(_SELECT_UNSYNCED_CHANGES, values)
            tasks = [
                _build_task(row, str(row["id"]), "on_memory_write", row["id"]) for row in changes
            ]
            await self._store_tasks(tasks)

    async def queue_switch(self, new_id: int, parent_id: int | None, reason: str) -> None:
        """Queue tasks that tell services that a conversation continues in the session `new_id`.

        Nothing is queued if that session belongs to a scheduled job.
        """
        turn = f"{parent_id or 0}.{reason}.{self.clock.now().timestamp():.0f}"
        for provider in self._list_providers("on_session_switch"):
            for state in await self._fetch_states(new_id, provider):
                await self._store_tasks([_build_task(state, turn, "on_session_switch")])

    async def queue_delegation(self, session_id: int) -> None:
        """Queue a delegated session with its task and answer.

        Nothing is queued if the session belongs to a scheduled job.
        """
        for provider in self._list_providers("on_delegation"):
            for state in await self._fetch_states(session_id, provider):
                task = _build_task(state, "0", "on_delegation", state["last_id"])
                await self._store_tasks([task])

    async def catch_up(self, since: datetime | None = None) -> int:
        """Queue the notes and turns that the previous process didn't queue.

        `since` is set for the first sync of a new service. Then all notes and turns since that time
        are queued, including imported sessions. Returns the same number as `queue_turns`.
        """
        await self.queue_notes(since)
        return await self.queue_turns(
            since=since or self.clock.now() - LOOKBACK, has_imported=since is not None
        )

    async def forget(
        self,
        message_ids: Sequence[int],
        note_ids: Sequence[int] = (),
        stamp: str = "",
        providers: Collection[str] = (),
    ) -> Sequence[str]:
        """Queue the erasure of rows that have already changed. See `queue_erasure`.

        If `providers` isn't empty, ask only these services. Returns the names of the services that
        were asked.
        """
        names = await self.database.write(
            partial(self.queue_erasure, message_ids, note_ids, stamp=stamp, among=providers)
        )
        self.on_wake()
        return names

    def queue_erasure(
        self,
        message_ids: Sequence[int],
        note_ids: Sequence[int],
        connection: Connection,
        *,
        stamp: str = "",
        among: Collection[str] = (),
    ) -> Sequence[str]:
        """Ask every service that has these messages or note changes to erase them.

        The other messages of the affected turns are sent again. Call this in the transaction that
        erases the rows, because a service that is asked earlier could get the words again. Call
        `on_wake` after the transaction. If `among` isn't empty, ask only these services. The same
        ids and `stamp` result in the same tasks. Returns the names of the services that were asked.
        """
        values = {"message_ids": encode_list(message_ids), "note_ids": encode_list(note_ids)}
        synced_rows = connection.execute(_SELECT_SYNCED_ROWS, values).fetchall()
        tasks: list[SyncTask] = []
        for (provider, session, _), group in groupby(
            synced_rows, key=itemgetter("provider", "session_id", "scope")
        ):
            if among and provider not in among:
                continue
            task, mark = _build_forget_task(list(group), stamp)
            tasks.append(task)
            if session == NOTES:
                continue
            for turn in split_turns(_list_messages(connection, session, erased=task.ids)):
                if any(message.id in task.ids for message in turn):
                    tasks.append(replace(task, turn=f"{turn[0].id}.{mark}", hook="sync_turn"))
        self._insert_tasks(connection, tasks)
        return list(dict.fromkeys(task.provider for task in tasks))

    async def queue_resync(self, task: SyncTask, message_ids: Collection[int]) -> None:
        """Send the turns that contain these messages again, after an `on_forget` task.

        A repeated call results in the same tasks.
        """
        if not message_ids:
            return
        _, _, mark = task.turn.partition(".")  # "3f09" in "forgotten.3f09"
        for state in await self._fetch_states(int(task.session), task.provider):
            messages = await self._load_messages(state["session_id"], erased=task.ids)
            tasks = []
            for turn in split_turns(messages):
                if any(message.id in message_ids for message in turn):
                    resync = _build_task(state, f"{turn[0].id}.{mark}", "sync_turn")
                    tasks.append(replace(resync, scope=task.scope, ids=task.ids))
            await self._store_tasks(tasks)

    async def queue_amended(self, *message_ids: int) -> None:
        """Ask services to erase messages that have changed, and send them the new text.

        A message changes if it is edited or deleted on its platform, undone or redone. Services
        without `on_forget` keep their copies.
        """
        providers = self._list_providers("on_forget")
        if providers:
            await self.forget(message_ids, (), self.clock.now().isoformat(), providers)

    async def load_arguments(self, task: SyncTask) -> tuple[object, ...] | None:
        """Load the arguments for a task's hook from the current rows.

        Returns None if there is nothing left to send.
        """
        if task.hook == "on_forget":
            if task.scope is None:
                return None
            if task.session == NOTES:
                return (Forgotten(scope=task.scope, notes=task.ids),)
            return (Forgotten(scope=task.scope, messages=task.ids),)
        if task.hook == "on_memory_write":
            statement = f"{SELECT_CHANGES} WHERE note_changes.id = :id"
            row = await self.database.fetch_one(statement, {"id": int(task.turn)})
            if row is None or row["action"] in ("right", "wrong"):
                # A verdict changes no text.
                return None
            return (read_change(row),)

        statement = f"{SELECT_SESSIONS} WHERE sessions.id = :id"
        row = await self.database.fetch_one(statement, {"id": int(task.session)})
        if row is None:
            return None
        session = read_session(row)
        if session.is_delegated:
            is_delegation = task.hook == "on_delegation"
            return await self._load_delegation(session) if is_delegation else None
        if task.hook == "on_session_switch":
            parent_id, reason, _ = task.turn.split(".")
            return session.id, int(parent_id) or None, reason
        if task.hook == "on_session_end":
            return session, await self._load_messages(session.id)
        return await self._load_turns(session, task)

    async def _load_turns(self, session: Session, task: SyncTask) -> tuple[object, ...] | None:
        """Load the arguments of `sync_turn`, or None if the question was erased.

        Erased messages are loaded to find where a turn begins, but aren't part of the result.
        """
        # "12-18" and "12.3f09" have the first message 12. Only "12-18" has a last message, 18.
        id_range, _, _ = task.turn.partition(".")
        first, _, last = id_range.partition("-")
        turns = split_turns(await self._load_messages(session.id, int(first) - 1, task.ids))
        messages: list[Message] = []
        for turn in turns:
            if int(first) <= turn[0].id <= int(last or first):
                messages += [message for message in turn if message.kind in ("chat", "quote")]
        if not any(message.role == "user" for message in messages):
            return None
        return session, messages, task.key

    async def _load_delegation(self, session: Session) -> tuple[object, ...] | None:
        """Load a delegated session's task and answer, or None if either is missing."""
        texts = [
            message.text
            for message in await self._load_messages(session.id)
            if message.role != "tool" and not message.tool_name
        ]
        return (session, *texts) if len(texts) == 2 else None

    async def _load_messages(
        self, session_id: int, after: int = 0, erased: Sequence[int] = ()
    ) -> Sequence[Message]:
        """Load messages of a session. See `_list_messages`."""
        return await self.database.read(
            lambda connection: _list_messages(connection, session_id, after=after, erased=erased)
        )

    async def _fetch_states(
        self,
        session_id: int | None,
        provider: str,
        since: datetime | None = None,
        has_imported: bool = True,
    ) -> Sequence[Row]:
        """Fetch a row of `_SELECT_SYNC_STATES` for each session.

        Without `session_id`, these are all sessions with a message since `since`. Sessions of
        scheduled jobs are left out.
        """
        values = {
            "first": session_id or 0,
            "last": session_id or MAX_ROW_ID,
            "since": since or 0,
            "provider": provider,
            "has_imported": has_imported,
        }
        return await self.database.fetch_all(_SELECT_SYNC_STATES, values)

    async def _store_tasks(self, tasks: Sequence[SyncTask]) -> None:
        if tasks:
            await self.database.write(lambda connection: self._insert_tasks(connection, tasks))
            self.on_wake()

    def _insert_tasks(self, connection: Connection, tasks: Sequence[SyncTask]) -> None:
        """Queue tasks that are due now, and record the last row that each service will have.

        Tasks that are already queued are skipped.
        """
        now = self.clock.now()
        for task in tasks:
            # Another process may have queued some of the same turns in a batch with another key.
            # So this batch is skipped if its first turn is recorded as synced.
            is_batch = (
                task.hook == "sync_turn"
                and task.last_id > 0
                and self.batch_sizes.get(task.provider, 1) > 1
            )
            progress = _progress_values(task)
            if is_batch and connection.execute(_SELECT_IS_SYNCED, progress).fetchone():
                continue
            item = OutboxItem(
                key=task.key,
                kind="memory",
                address=Address(
                    platform=PLATFORM, chat_id=task.provider, thread_id=task.conversation_key
                ),
                answer=Answer(text=task.payload),
                next_at=now,
            )
            store_outbox_item(connection, item, now, is_claimed=True)
            if task.last_id:
                connection.execute(_SET_SYNCED, progress)

    def _list_providers(self, hook: Hook) -> Sequence[str]:
        """List the services that have a hook."""
        return [name for name, hooks in self.hooks.items() if hook in hooks]


def _list_messages(
    connection: Connection, session_id: int, *, after: int = 0, erased: Sequence[int] = ()
) -> Sequence[Message]:
    """List the messages of a session that services may get, oldest first.

    Deliveries of jobs are left out. If a compression interrupted the last turn, the rest of that
    turn is included. Erased messages are included only if their ids are in `erased`.
    """
    values = {"id": session_id, "after": after, "erased": encode_list(erased)}
    return [read_message(row) for row in connection.execute(_SELECT_MESSAGES, values).fetchall()]


def _progress_values(task: SyncTask) -> Mapping[str, object]:
    """Return the parameters of `_SET_SYNCED` and `_SELECT_IS_SYNCED`.

    `subject` is the session, or the end of it. `first` and `last_id` are message ids.
    """
    subject = f"{task.session}.end" if task.hook == "on_session_end" else task.session
    return {
        "provider": task.provider,
        "subject": subject,
        "last_id": task.last_id,
        # "12-18" are several turns, from message 12 on. Other hooks don't use `first`.
        "first": task.turn.partition("-")[0],
    }


def _build_forget_task(synced_rows: Sequence[Row], stamp: str) -> tuple[SyncTask, str]:
    """Build the task that asks a service to erase these rows of a session.

    Returns the task with its mark, e.g. "3f09a2c1". The same ids and stamp result in the same mark
    and so in the same task keys.
    """
    ids = tuple(row["id"] for row in synced_rows)
    mark = f"{zlib.crc32(json.dumps([*ids, stamp]).encode()):08x}"
    task = _build_task(synced_rows[0], f"forgotten.{mark}", "on_forget")
    return replace(task, scope=Scope(key=synced_rows[0]["scope"]), ids=ids), mark


def _build_task(row: Row, turn: str, hook: Hook, last_id: int = 0) -> SyncTask:
    """Build a task for a row with `provider`, `session_id` and `address_id`."""
    return SyncTask(
        provider=row["provider"],
        session=str(row["session_id"]),
        turn=turn,
        hook=hook,
        conversation_key=str(row["address_id"]),
        last_id=last_id,
    )
