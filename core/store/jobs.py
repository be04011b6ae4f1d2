"""Reminders and cron sessions as rows, and what they delivered as messages of the conversation in which it was said.

When a job is due next is calculated in `core.dates.schedule`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from core.dates.schedule import Schedule
from core.errors import Refused
from core.ports import Clock
from core.store import rows
from core.store.incognito import IncognitoRegistry
from core.store.rows import Connection, Row, Values
from core.store.sessions import append, ensure
from core.store.sqlite.database import Database
from core.types import LOCAL, Account, Address, ErasureEpoch, Message, Scope, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A reminder (`is_prompt` False: `text` is delivered as it stands) or a cron session (`text` is asked of the agent
    and the answer delivered). `scope` must equal the scope of `target` at creation and at run. `origin` is unique, so
    that a command handled twice makes one job."""

    schedule: Schedule
    text: str
    target: Address
    scope: Scope
    created_at: datetime
    is_prompt: bool = False
    account: Account | None = None
    origin: str | None = None
    next_at: datetime | None = None
    paused_at: datetime | None = None
    pause_reason: str | None = None
    ended_at: datetime | None = None
    id: int = 0


JOBS = """
SELECT jobs.*, addresses.platform, addresses.chat_id, addresses.thread_id, scopes.key AS scope_key
FROM jobs
JOIN addresses ON addresses.id = jobs.address_id
JOIN scopes ON scopes.id = jobs.scope_id
"""
JOB = f"{JOBS} WHERE jobs.id = :id"
VISIBLE_JOB = f"{JOB} AND {rows.visible('jobs.scope_id')}"
OF_ORIGIN = f"{JOBS} WHERE jobs.origin = :origin AND scopes.key = :scope"
OF_SCOPES = f"""
{JOBS} WHERE jobs.ended_at IS NULL AND {rows.visible("jobs.scope_id")} ORDER BY jobs.next_at NULLS LAST, jobs.id
"""
ACTIVE = f"{JOBS} WHERE jobs.ended_at IS NULL AND jobs.paused_at IS NULL ORDER BY jobs.id"
_JOB = ("scope_id", "address_id", "account", "origin", "text", "is_prompt", "created_at")
_SCHEDULE = ("zone", "cron", "every_s", "start_at", "at", "next_at", "paused_at", "ended_at")
_NAMES = (*_JOB, *_SCHEDULE)
_OF_ACCOUNT = "FROM jobs WHERE ended_at IS NULL AND account IS :account"
INSERT = f"""
INSERT INTO jobs ({", ".join(_NAMES)}) SELECT {", ".join(f":{name}" for name in _NAMES)}
WHERE (SELECT COUNT(*) {_OF_ACCOUNT}) < :most
AND (NOT :is_prompt OR (SELECT COUNT(*) {_OF_ACCOUNT} AND is_prompt) < :most_prompts)
"""
"""In every chat together: each is only stored as long as its account has fewer."""
FINISH = """
UPDATE jobs SET next_at = :next_at,
    ended_at = CASE WHEN :next_at IS NULL AND cron IS NULL AND every_s IS NULL THEN :now END
WHERE id = :id AND ended_at IS NULL
"""
SCOPE_OF_TARGET = """
SELECT COALESCE(
    (
        SELECT COALESCE(rooms.scope_key, scopes.key) FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        LEFT JOIN rooms ON rooms.key = scopes.key
        WHERE sessions.address_id = :address AND sessions.end_reason IS NOT 'import'
        ORDER BY sessions.ended_at IS NULL DESC, sessions.id DESC LIMIT 1
    ),
    (SELECT scope_key FROM rooms WHERE key = :room)
) AS key
"""
"""That of its open session, or of the last one; imported ones say nothing, their scope was chosen by whoever imported.
A room that has moved keeps its scope, and one that has ceased to be the owner's has its new one, also before anybody
has spoken there."""


_KEY = re.compile(r"(?:job:|turn:cron:\d+:message:)(\d+)[:@](.+)")
"""The number of the job, and when it was due."""
_LEAVING = """
SELECT outbox.lane, outbox.payload, messages.id, messages.session_id, COALESCE(messages.kind, 'chat') AS kind
FROM outbox LEFT JOIN messages ON messages.id = outbox.message_id
WHERE outbox.key = :key AND outbox.done_at IS NULL AND outbox.payload IS NOT NULL
"""
_IS_COPY = "UPDATE messages SET kind = 'quote' WHERE id = :id AND kind = 'chat'"
"""Of what a cron session answered, the message in the conversation is found, and this one repeats it."""
_COUNT_LESS = "UPDATE sessions SET messages = messages - 1 WHERE id = :session_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMessages:
    """`model`: of a conversation that begins with one."""

    clock: Clock
    incognito: IncognitoRegistry
    model: str

    def keep(self, connection: Connection, key: str) -> None:
        """Makes what is delivered by the outbox item of a job a message of the open conversation there, of which the
        item knows; not where that is incognito, nor what only says why there is no answer."""
        row, found = connection.execute(_LEAVING, {"key": key}).fetchone(), _KEY.fullmatch(key)
        job = None if found is None else connection.execute(JOB, {"id": int(found[1])}).fetchone()
        answer = None if row is None else rows.load_answer(row["payload"])
        if found is None or job is None or answer is None or row["kind"] not in ("chat", "quote"):
            return
        # A reminder may have been sent elsewhere since it was planned: its room has parted.
        address = Address.parse(row["lane"]) if key.startswith("job:") else rows.address_of(job)
        if address in self.incognito.conversations:
            return
        now = self.clock.now()
        scope = _scope_of(connection, address) or Scope(key=job["scope_key"])
        message = Message(
            role="assistant",
            kind=row["kind"],
            text=answer.text,
            session_id=ensure(connection, Session(address=address, scope=scope, started_at=now, model=self.model)).id,
            created_at=now,
            external_id=f"job:{found[1]}@{found[2]}",
            origin="job",
        )
        stored = append(connection, message)
        answered = rows.columns(row, "id", "session_id")
        if connection.execute(_IS_COPY, answered).rowcount:
            connection.execute(_COUNT_LESS, answered)
        connection.execute("UPDATE outbox SET message_id = :id WHERE key = :key", {"id": stored.id, "key": key})


class Jobs:
    """An account has at most `most` at a time, and of those that ask the model `most_prompts`."""

    def __init__(self, database: Database, most: int = 100, most_prompts: int = 20) -> None:
        self._database = database
        self._most = {"most": most, "most_prompts": most_prompts}

    async def add(self, job: Job, epoch: ErasureEpoch | None = None) -> Job:
        """Stores a job. Raises Refused when the scope is not the target's, since what is due here would be said there,
        and when the account has as many as it may."""

        def work(connection: Connection) -> Job:
            _check(connection, job.target, job.scope)
            values = {
                **rows.values_of(job.schedule),
                **rows.values_of(job),
                **self._most,
                "scope_id": rows.ensure_scope(connection, job.scope),
                "address_id": rows.ensure_address(connection, job.target),
            }
            inserted = connection.execute(INSERT, values)
            if not inserted.rowcount:
                count = connection.execute(f"SELECT COUNT(*) AS count {_OF_ACCOUNT}", values).fetchone()["count"]
                if count >= self._most["most"]:
                    raise Refused(f"You have {count} reminders, which is the most I keep. Remove one first.")
                number = self._most["most_prompts"]
                raise Refused(f"You have {number} scheduled questions, which is the most I keep. Remove one first.")
            return _job(connection.execute(JOB, {"id": inserted.lastrowid}).fetchone())

        return await self._database.write(work, epoch)

    async def of_origin(self, origin: str, scope: Scope) -> Job | None:
        return await self._one(OF_ORIGIN, {"origin": origin, "scope": scope})

    async def of(self, scopes: frozenset[Scope]) -> list[Job]:
        return list(map(_job, await self._database.fetch_all(OF_SCOPES, {"scopes": rows.scope_parameter(scopes)})))

    async def find(self, job_id: int, scopes: frozenset[Scope]) -> Job | None:
        """A job by id, ended or not; None when it is not of these scopes."""
        return await self._one(VISIBLE_JOB, {"id": rows.bounded(job_id), "scopes": rows.scope_parameter(scopes)})

    async def get(self, job_id: int) -> Job | None:
        """A job by id, of any scope, ended or not: to run it and to deliver its result, never to show it."""
        return await self._one(JOB, {"id": job_id})

    async def _one(self, statement: str, values: Values) -> Job | None:
        row = await self._database.fetch_one(statement, values)
        return None if row is None else _job(row)

    async def active(self) -> list[Job]:
        return list(map(_job, await self._database.fetch_all(ACTIVE)))

    async def change(self, job_id: int, **changes: datetime | str | None) -> None:
        """Sets moments, or `pause_reason`. A job that has ended stays so; its row is history."""
        changed = ", ".join(f"{name} = :{name}" for name in changes)
        statement = f"UPDATE jobs SET {changed} WHERE id = :id AND ended_at IS NULL"
        await self._database.execute(statement, {"id": job_id, **changes})

    async def check(self, job: Job) -> None:
        """Raises Refused when the scope of a job is not, or no longer, its target's."""
        await self._database.read(lambda connection: _check(connection, job.target, job.scope))

    async def finish(self, job_id: int, now: datetime, next_at: datetime | None) -> None:
        """The run was handed over for delivery; the job is next due at `next_at`. A job of one moment has ended then,
        unless there is a next one."""
        await self._database.execute(FINISH, {"id": job_id, "now": now, "next_at": next_at})


def _check(connection: Connection, target: Address, scope: Scope) -> None:
    actual = _scope_of(connection, target)
    if actual is None:
        raise Refused(f"Nobody has spoken with me at {target.key} yet, so nothing can be planned for it.")
    if actual.key != rows.clean(scope.key):
        raise Refused(f"What is planned here cannot be delivered at {target.key}: others would see it there.")


def _scope_of(connection: Connection, target: Address) -> Scope | None:
    values = {"address": rows.find_address(connection, target), "room": Scope.room(target.platform, target.chat_id)}
    key = connection.execute(SCOPE_OF_TARGET, values).fetchone()["key"]
    if key is None and target.platform in ("cron", "terminal"):
        return LOCAL  # delivered where nobody has spoken yet: at the terminal, or nowhere
    return None if key is None else Scope(key=key)


def _job(row: Row) -> Job:
    return Job(
        **rows.fields_in(row, Job),
        schedule=Schedule(**rows.fields_in(row, Schedule)),
        target=rows.address_of(row),
        scope=Scope(key=row["scope_key"]),
    )
