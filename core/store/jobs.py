"""Store reminders, scheduled questions and watches, and the messages that they delivered.

`core.dates.schedule` calculates when a job is due next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from core.dates.schedule import Schedule
from core.errors import Refused, StaleReadError
from core.ports import Clock
from core.store import rows
from core.store.actions import ButtonAction
from core.store.engine import Connection, Database, Row, Values
from core.store.incognito import IncognitoRegistry
from core.store.mailbox import OutboxItem, store_outbox_item
from core.store.messages import append_message
from core.store.sessions import ensure_session
from core.store.visibility import check_epoch, scope_parameter, visible
from core.types import LOCAL_SCOPE, Account, Address, ErasureEpoch, Message, Scope, Session

CALENDAR_FILE_ORIGIN = "ics:"
"""Begins the origin of a job that was imported from a calendar file."""
TOOL_ORIGIN = "tool:"
"""Begins the origin of a job that the model's tool set. The number of the message follows."""
TALK_ORIGIN = "talk:"
"""Begins the origin of a job that was set in plain words without a model."""
NOTHING_NEW = "NOTHING NEW"
"""The answer of a watch that has found nothing new. It isn't delivered."""
# Models put the line in quotation marks, brackets or bold type.
_NOTHING_NEW_LINE = re.compile(r"\W*NOTHING\s+NEW[\W_]*", re.IGNORECASE)


def is_nothing_new(answer: str) -> bool:
    """Return whether an answer ends with the line that a watch writes if it found nothing new."""
    lines = answer.strip().splitlines() or [""]
    return _NOTHING_NEW_LINE.fullmatch(lines[-1]) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A reminder, or a question that Mneme asks the model on a schedule."""

    schedule: Schedule
    text: str
    # The chat to which the text, or the answer to the question, is delivered.
    target: Address
    # Must equal the scope of `target`, both when the job is created and whenever it runs.
    scope: Scope
    created_at: datetime
    # Whether `text` is a question for the model. The text of a reminder is delivered unchanged.
    is_prompt: bool = False
    account: Account | None = None
    # Unique key of the command that created the job. A command that is handled twice creates only
    # one job.
    origin: str | None = None
    # An urgent reminder is also delivered in the person's quiet hours.
    is_urgent: bool = False
    # A watch delivers nothing if its answer is "nothing new".
    is_watch: bool = False
    # How many runs in a row have failed.
    failures: int = 0
    next_at: datetime | None = None
    paused_at: datetime | None = None
    pause_reason: str | None = None
    ended_at: datetime | None = None
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A run of a due job, with the message to send."""

    # The job as it was read. The run is dropped if the job has changed since then.
    job: Job
    # When the job is due after this run, or None if it isn't due again.
    next_at: datetime | None
    item: OutboxItem
    actions: Sequence[ButtonAction]
    # The erasure epoch at which the job's text was read.
    epoch: ErasureEpoch


class RunResult(Enum):
    """The result of queuing a run."""

    QUEUED = "queued"
    # The job was changed, paused, ended or erased after it was read. Nothing was queued.
    CHANGED = "changed"


class Delivery(NamedTuple):
    """A message that a job has delivered."""

    message_id: int
    at: datetime
    text: str


_SELECT_JOBS = """
SELECT jobs.*, addresses.platform, addresses.chat_id, addresses.thread_id, scopes.key AS scope_key
FROM jobs
JOIN addresses ON addresses.id = jobs.address_id
JOIN scopes ON scopes.id = jobs.scope_id
"""
_SELECT_JOB = f"{_SELECT_JOBS} WHERE jobs.id = :id"
_SELECT_VISIBLE_JOB = f"{_SELECT_JOB} AND {visible('jobs.scope_id')}"
_SELECT_BY_ORIGIN = f"{_SELECT_JOBS} WHERE jobs.origin = :origin AND scopes.key = :scope"
_SELECT_VISIBLE_JOBS = f"""
{_SELECT_JOBS} WHERE jobs.ended_at IS NULL AND {visible("jobs.scope_id")}
ORDER BY jobs.next_at NULLS LAST, jobs.id
"""
_SELECT_ENDED_JOBS = f"""
{_SELECT_JOBS} WHERE jobs.ended_at IS NOT NULL AND jobs.text <> '' AND {visible("jobs.scope_id")}
ORDER BY jobs.ended_at DESC, jobs.id DESC LIMIT 100
"""
_SELECT_ACTIVE_JOBS = f"""
{_SELECT_JOBS} WHERE jobs.ended_at IS NULL AND jobs.paused_at IS NULL ORDER BY jobs.id
"""
_SELECT_VISIBLE_REMINDER = f"""
{_SELECT_VISIBLE_JOB} AND NOT jobs.is_prompt AND jobs.text <> ''
"""
_SELECT_DELIVERY_IDS = f"""
SELECT external_id FROM messages
WHERE address_id = ({rows.ADDRESS_ID}) AND external_id > 'job:' AND external_id < 'job;'
ORDER BY id DESC LIMIT 10
"""
"""Selects the last deliveries of jobs at an address. Their ids are like ``job:7@2026-11-20…``."""
_SELECT_DUE_JOBS = f"""
{_SELECT_JOBS} WHERE jobs.ended_at IS NULL AND jobs.paused_at IS NULL AND jobs.next_at <= :now
ORDER BY jobs.next_at, jobs.id
"""
_SELECT_NEXT_DUE = """
SELECT MIN(next_at) AS next_at FROM jobs
WHERE ended_at IS NULL AND paused_at IS NULL AND next_at > :now
"""
_COLUMNS = (
    *("scope_id", "address_id", "account", "origin", "text", "is_prompt", "created_at"),
    *("zone", "recurrences", "cron", "every_s", "start_at", "at"),
    *("is_urgent", "is_watch", "next_at", "paused_at", "ended_at"),
)
_FROM_OPEN_JOBS = "FROM jobs WHERE ended_at IS NULL AND account IS :account"
_INSERT_JOB = f"""
INSERT INTO jobs ({", ".join(_COLUMNS)}) SELECT {", ".join(f":{name}" for name in _COLUMNS)}
WHERE (SELECT COUNT(*) {_FROM_OPEN_JOBS}) < :max_jobs
AND (NOT :is_prompt OR (SELECT COUNT(*) {_FROM_OPEN_JOBS} AND is_prompt) < :max_prompts)
RETURNING id
"""
"""Inserts a job unless its account has reached a limit. The limits count the jobs of all chats."""
# A job that isn't due again ends, unless it has a cron expression or an interval.
_FINISH_RUN = """
UPDATE jobs SET next_at = :next_at,
    ended_at = CASE WHEN :next_at IS NULL AND cron IS NULL AND every_s IS NULL
        THEN CAST(:now AS DOUBLE PRECISION) END
WHERE id = :id AND ended_at IS NULL AND next_at IS :due_at
"""
_CLAIM_RUN = f"{_FINISH_RUN} AND paused_at IS NULL AND text = :text"
"""Like `_FINISH_RUN`, but changes no job that was paused or reworded since it was read."""
_DELAY = """
UPDATE jobs SET next_at = :next_at WHERE id = :id AND ended_at IS NULL AND next_at IS :due_at
"""
_REOPEN = """
UPDATE jobs SET at = :at, next_at = :at, ended_at = NULL, paused_at = NULL, pause_reason = NULL
WHERE id = :id AND text <> '' AND recurrences = '[]' AND cron IS NULL AND every_s IS NULL
"""
_RESCHEDULE = """
UPDATE jobs SET zone = :zone, recurrences = :recurrences, cron = :cron, every_s = :every_s,
    start_at = :start_at, at = :at, next_at = :next_at, ended_at = NULL
WHERE id = :id AND text <> ''
"""
_SET_ADDRESS = "UPDATE jobs SET address_id = :address_id WHERE id = :id AND ended_at IS NULL"
_SELECT_TARGETS = f"""
SELECT addresses.platform, addresses.chat_id, addresses.thread_id, MAX(sessions.id) AS latest
FROM sessions JOIN addresses ON addresses.id = sessions.address_id
WHERE {visible("sessions.scope_id")} AND addresses.platform NOT IN ('cron', 'import')
GROUP BY addresses.id ORDER BY latest DESC LIMIT 20
"""
_COUNT_FAILURE = "UPDATE jobs SET failures = failures + 1 WHERE id = :id"
_CLEAR_FAILURES = "UPDATE jobs SET failures = 0 WHERE id = :id AND failures > 0"
_SELECT_SCOPE_OF_TARGET = """
SELECT COALESCE(
    (
        SELECT COALESCE(group_scopes.scope_key, scopes.key)
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        LEFT JOIN group_scopes ON group_scopes.key = scopes.key
        WHERE sessions.address_id = :address AND sessions.end_reason IS NOT 'import'
        ORDER BY sessions.ended_at IS NULL DESC, sessions.id DESC LIMIT 1
    ),
    (SELECT scope_key FROM group_scopes WHERE key = :group)
) AS key
"""
"""Selects the scope of the open session at an address, or else of the latest session.

Imported sessions don't count, because the person who imported them chose their scope. `rooms`
contains the current scope of groups that changed their id or were detached from the owner.
"""

_JOB_ITEM_KEY = re.compile(r"(?:job:|turn:cron:\d+:message:)(\d+)[:@](.+)")
"""Matches the outbox key of a job's run and captures the job's id and the time it was due.

Examples: ``job:7:2026-11-20T09:00:00+00:00`` for a reminder, and
``turn:cron:7:message:7@2026-11-20T09:00:00+00:00`` for the answer to a scheduled question.
"""
_SELECT_UNDELIVERED = """
SELECT outbox.address, outbox.payload, messages.id, messages.session_id,
    COALESCE(messages.kind, 'chat') AS kind
FROM outbox LEFT JOIN messages ON messages.id = outbox.message_id
WHERE outbox.key = :key AND outbox.done_at IS NULL AND outbox.payload IS NOT NULL
"""
_MARK_AS_COPY = "UPDATE messages SET kind = 'quote' WHERE id = :id AND kind = 'chat'"
"""Marks the answer in the cron session as a copy, so that recall finds only the delivered message.
"""
_SELECT_DELIVERIES = f"""
SELECT messages.id, messages.created_at, messages.text
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.address_id = ({rows.ADDRESS_ID}) AND messages.external_id > :first
    AND messages.external_id < :last AND {visible("sessions.scope_id")}
ORDER BY messages.external_id DESC LIMIT :limit
"""
_DECREASE_MESSAGE_COUNT = (
    "UPDATE sessions SET message_count = message_count - 1 WHERE id = :session_id"
)
_SET_MESSAGE_OF_ITEM = "UPDATE outbox SET message_id = :id WHERE key = :key"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMessages:
    """Adds the deliveries of jobs to the conversation in the job's target chat."""

    clock: Clock
    incognito: IncognitoRegistry
    # The model of a session that begins with a delivered message.
    model: str

    def store_delivery(self, connection: Connection, key: str) -> None:
        """Store the text of a job's outbox item as a message, and link the item to it.

        Do nothing if the conversation is incognito, if the item only explains why there is no
        answer, or if a watch found nothing new. A delivered answer resets the job's failure count.
        """
        item = connection.execute(_SELECT_UNDELIVERED, {"key": key}).fetchone()
        key_match = _JOB_ITEM_KEY.fullmatch(key)
        if item is None or key_match is None or item["kind"] not in ("chat", "quote"):
            return
        job_id, due_at = key_match.groups()
        connection.execute(_CLEAR_FAILURES, {"id": int(job_id)})
        job = connection.execute(_SELECT_JOB, {"id": int(job_id)}).fetchone()
        answer = rows.load_answer(item["payload"])
        if job is None or answer is None or (job["is_watch"] and is_nothing_new(answer.text)):
            return
        # A reminder's outbox item has the right address even if the job's group was detached after
        # the item was stored. The outbox item of a scheduled question has the cron session's
        # address.
        is_reminder = key.startswith("job:")
        address = Address.parse(item["address"]) if is_reminder else rows.read_address(job)
        if address in self.incognito.conversations:
            return

        scope = _find_scope(connection, address) or Scope(key=job["scope_key"])
        now = self.clock.now()
        new_session = Session(address=address, scope=scope, started_at=now, model=self.model)
        message = Message(
            role="assistant",
            kind=item["kind"],
            text=answer.text,
            session_id=ensure_session(connection, new_session).id,
            created_at=now,
            external_id=f"job:{job_id}@{due_at}",
            origin="job",
        )
        message_id = append_message(connection, message).id
        _mark_cron_answer_as_copy(connection, item)
        connection.execute(_SET_MESSAGE_OF_ITEM, {"id": message_id, "key": key})


def _mark_cron_answer_as_copy(connection: Connection, item: Row) -> None:
    """Mark the answer in the cron session as a copy, because the delivery stores it again.

    Does nothing for a reminder, which has no cron session.
    """
    cron_answer = rows.pick_columns(item, "id", "session_id")
    if connection.execute(_MARK_AS_COPY, cron_answer).rowcount:
        connection.execute(_DECREASE_MESSAGE_COUNT, cron_answer)


class Jobs:
    """Stores jobs, and finds those that are due.

    The limits count the open jobs of an account in all chats.
    """

    def __init__(self, database: Database, max_jobs: int = 100, max_prompts: int = 20) -> None:
        self._database = database
        self._max_jobs = max_jobs
        self._max_prompts = max_prompts

    async def add(self, job: Job, epoch: ErasureEpoch | None = None) -> Job:
        """Store a job and return it with its id.

        Raises Refused if the account has too many jobs, or if the job's scope differs from the
        scope of its target, because other people could then read the job.
        """

        def insert_job(connection: Connection) -> Job:
            """Insert and return the job, unless its scope is wrong or a limit is reached."""
            _check_scope(connection, job.target, job.scope)
            values = {
                **_schedule_values(job.schedule),
                **rows.field_values(job),
                "max_jobs": self._max_jobs,
                "max_prompts": self._max_prompts,
                "scope_id": rows.ensure_scope(connection, job.scope),
                "address_id": rows.ensure_address(connection, job.target),
            }
            new_jobs = connection.execute(_INSERT_JOB, values).fetchall()
            if not new_jobs:
                raise self._build_limit_error(connection, values)
            row = connection.execute(_SELECT_JOB, {"id": new_jobs[0]["id"]}).fetchone()
            return _read_job(row)

        return await self._database.write(insert_job, epoch)

    def _build_limit_error(self, connection: Connection, values: Values) -> Refused:
        """Return an error that says which limit the account has reached."""
        statement = f"SELECT COUNT(*) AS count {_FROM_OPEN_JOBS}"
        count = connection.execute(statement, values).fetchone()["count"]
        if count >= self._max_jobs:
            return Refused("too_many_reminders", count=count)
        return Refused("too_many_questions", count=self._max_prompts)

    async def find_by_origin(self, origin: str, scope: Scope) -> Job | None:
        """Return the job that this command has created, or None."""
        return await self._fetch_job(_SELECT_BY_ORIGIN, {"origin": origin, "scope": scope})

    async def list_visible(self, scopes: frozenset[Scope]) -> list[Job]:
        """List the open jobs that are visible in these scopes, ordered by their next run."""
        return await self._fetch_jobs(_SELECT_VISIBLE_JOBS, {"scopes": scope_parameter(scopes)})

    async def list_ended(self, scopes: frozenset[Scope]) -> list[Job]:
        """List the jobs that ended last and are visible in these scopes, the latest first."""
        return await self._fetch_jobs(_SELECT_ENDED_JOBS, {"scopes": scope_parameter(scopes)})

    async def find(self, job_id: int, scopes: frozenset[Scope]) -> Job | None:
        """Return an open or ended job, or None if the job isn't visible in these scopes."""
        values = {"id": rows.int64_or_zero(job_id), "scopes": scope_parameter(scopes)}
        return await self._fetch_job(_SELECT_VISIBLE_JOB, values)

    async def find_last_delivered(self, address: Address, scopes: frozenset[Scope]) -> Job | None:
        """Return the reminder that was last delivered at an address, or None.

        Search the last ten deliveries. Skip scheduled questions, erased reminders, and reminders
        that aren't visible in these scopes.
        """
        deliveries = await self._database.fetch_all(
            _SELECT_DELIVERY_IDS, rows.address_values(address)
        )
        for delivery in deliveries:
            job_id, _, _ = delivery["external_id"].removeprefix("job:").partition("@")
            values = {"id": int(job_id), "scopes": scope_parameter(scopes)}
            job = await self._fetch_job(_SELECT_VISIBLE_REMINDER, values)
            if job is not None:
                return job
        return None

    async def list_deliveries(
        self, job: Job, scopes: frozenset[Scope], limit: int
    ) -> list[Delivery]:
        """List the messages that a job has delivered in its chat, latest first."""
        values = rows.address_values(job.target) | {
            "first": f"job:{job.id}@",
            # The character after "@".
            "last": f"job:{job.id}A",
            "scopes": scope_parameter(scopes),
            "limit": limit,
        }
        deliveries = await self._database.fetch_all(_SELECT_DELIVERIES, values)
        return [
            Delivery(row["id"], rows.to_datetime(row["created_at"]), row["text"])
            for row in deliveries
        ]

    async def get(self, job_id: int) -> Job | None:
        """Return a job of any scope, open or ended, or None. Use this to run or deliver a job.

        To show a job to a person, use `find`, which checks the scope.
        """
        return await self._fetch_job(_SELECT_JOB, {"id": job_id})

    async def list_active(self) -> list[Job]:
        """List the jobs of all scopes that are neither ended nor paused."""
        return await self._fetch_jobs(_SELECT_ACTIVE_JOBS, {})

    async def list_due(self, now: datetime) -> list[Job]:
        """List the jobs of all scopes that are due."""
        return await self._fetch_jobs(_SELECT_DUE_JOBS, {"now": now})

    async def find_next_due(self, now: datetime) -> datetime | None:
        """Return the next time after `now` at which a job is due, or None."""
        row = await self._database.fetch_one(_SELECT_NEXT_DUE, {"now": now})
        return None if row is None else rows.to_optional_datetime(row["next_at"])

    async def update(
        self,
        job_id: int,
        epoch: ErasureEpoch | None = None,
        **changes: datetime | str | int | None,
    ) -> None:
        """Set some columns of a job, such as `next_at`. A job that has ended isn't changed."""
        assignments = ", ".join(f"{name} = :{name}" for name in changes)
        statement = f"UPDATE jobs SET {assignments} WHERE id = :id AND ended_at IS NULL"
        await self._database.execute(statement, {"id": job_id, **changes}, epoch)

    async def check_scope(self, job: Job) -> None:
        """Raise Refused if the job's scope differs from the current scope of its target."""
        await self._database.read(
            lambda connection: _check_scope(connection, job.target, job.scope)
        )

    async def reschedule(
        self, job_id: int, schedule: Schedule, next_at: datetime, epoch: ErasureEpoch | None = None
    ) -> None:
        """Give a job another schedule. An ended job continues, unless it was erased."""
        values = {**_schedule_values(schedule), "id": job_id, "next_at": next_at}
        await self._database.execute(_RESCHEDULE, values, epoch)

    async def retarget(self, job: Job, target: Address, epoch: ErasureEpoch | None = None) -> None:
        """Deliver a job at another address. Raises Refused if the address has another scope."""

        def set_address(connection: Connection) -> None:
            _check_scope(connection, target, job.scope)
            address_id = rows.ensure_address(connection, target)
            connection.execute(_SET_ADDRESS, {"id": job.id, "address_id": address_id})

        await self._database.write(set_address, epoch)

    async def list_targets(self, scope: Scope) -> list[Address]:
        """List the chats of a scope in which a job of this scope may be delivered."""
        values = {"scopes": scope_parameter(frozenset({scope}))}
        targets = await self._database.fetch_all(_SELECT_TARGETS, values)
        return [rows.read_address(row) for row in targets]

    async def finish(self, job: Job, now: datetime, next_at: datetime | None) -> None:
        """Record that a run was queued for delivery, and set when the job is due next.

        Without `next_at`, the job ends, unless it has a cron expression or an interval. If the due
        time changed during the run, for example because a person snoozed the job, the new due time
        stays.
        """
        values = {"id": job.id, "due_at": job.next_at, "now": now, "next_at": next_at}
        await self._database.execute(_FINISH_RUN, values)

    async def queue_runs(self, runs: Sequence[JobRun], now: datetime) -> list[RunResult | Refused]:
        """Queue the messages of runs for delivery, and set when their jobs are due next.

        All runs are queued in one transaction. Returns a result for each run: a `Refused` if the
        job's scope differs from the current scope of its target. If data that a run may repeat was
        erased since the run's epoch, the job counts as changed.
        """
        return await self._database.write(
            lambda connection: [_queue_run(connection, run, now) for run in runs]
        )

    async def delay(self, delays: Sequence[tuple[Job, datetime]]) -> None:
        """Make jobs due at other times, unless they have changed since they were read."""

        def set_times(connection: Connection) -> None:
            for job, next_at in delays:
                values = {"id": job.id, "due_at": job.next_at, "next_at": next_at}
                connection.execute(_DELAY, values)

        if delays:
            await self._database.write(set_times)

    async def count_failure(self, job_id: int) -> int:
        """Count a failed run, and return how many runs in a row have failed.

        Returns 0 if the job doesn't exist. The next delivered answer resets the count.
        """

        def count(connection: Connection) -> int:
            connection.execute(_COUNT_FAILURE, {"id": job_id})
            row = connection.execute(_SELECT_JOB, {"id": job_id}).fetchone()
            return 0 if row is None else int(row["failures"])

        return await self._database.write(count)

    async def reopen(self, job_id: int, at: datetime, epoch: ErasureEpoch | None = None) -> None:
        """Make a job with a single time due at another time, even if it has ended or is paused.

        A job whose text was erased doesn't change.
        """
        await self._database.execute(_REOPEN, {"id": job_id, "at": at}, epoch)

    async def _fetch_job(self, statement: str, values: Values) -> Job | None:
        row = await self._database.fetch_one(statement, values)
        return None if row is None else _read_job(row)

    async def _fetch_jobs(self, statement: str, values: Values) -> list[Job]:
        return [_read_job(row) for row in await self._database.fetch_all(statement, values)]


def _queue_run(connection: Connection, run: JobRun, now: datetime) -> RunResult | Refused:
    """Claim the run of a job, and put its message into the outbox.

    Each due time is claimed only once.
    """
    job = run.job
    try:
        check_epoch(connection, run.epoch)
        _check_scope(connection, job.target, job.scope)
    except StaleReadError:
        return RunResult.CHANGED
    except Refused as refusal:
        return refusal
    values = {
        "id": job.id,
        "due_at": job.next_at,
        "text": rows.clean(job.text),
        "now": now,
        "next_at": run.next_at,
    }
    if not connection.execute(_CLAIM_RUN, values).rowcount:
        return RunResult.CHANGED
    store_outbox_item(connection, run.item, now, actions=run.actions)
    return RunResult.QUEUED


def _check_scope(connection: Connection, target: Address, scope: Scope) -> None:
    """Raise Refused unless `target` has this scope."""
    actual = _find_scope(connection, target)
    if actual is None:
        raise Refused("chat_unknown", chat=target.key)
    if actual.key != rows.clean(scope.key):
        raise Refused("chat_has_readers", chat=target.key)


def _find_scope(connection: Connection, target: Address) -> Scope | None:
    """Return the scope of an address, or None if it has neither messages nor a group scope.

    Without messages, cron addresses and the terminal have the local scope.
    """
    values = {
        "address": rows.find_address(connection, target),
        "group": Scope.group(target.platform, target.chat_id),
    }
    key = connection.execute(_SELECT_SCOPE_OF_TARGET, values).fetchone()["key"]
    if key is not None:
        return Scope(key=key)
    # A cron address has no conversation, and neither has an unused terminal.
    return LOCAL_SCOPE if target.platform in ("cron", "terminal") else None


def _schedule_values(schedule: Schedule) -> dict[str, object]:
    """Return the columns of a schedule, with recurrences as a JSON list."""
    return {**rows.field_values(schedule), "recurrences": rows.dump_json(schedule.recurrences)}


def _read_job(row: Row) -> Job:
    return Job(
        **rows.read_fields(row, Job),
        schedule=Schedule(**rows.read_fields(row, Schedule)),
        target=rows.read_address(row),
        scope=Scope(key=row["scope_key"]),
    )
