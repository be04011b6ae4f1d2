"""The tool `reminder`, with which the model creates, lists, pauses, resumes and removes jobs.

The model names the moment, the recurrence, the zone, the kind and the task. The date engine reads
the person's own words, too. If the two mean different times, nothing is created, and the person
gets a button for each time (`read_choices`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from core.dates.recurrence import next_recurrence
from core.dates.schedule import ParsedSchedule, Schedule, load_zone, resolve_wall_time
from core.errors import Refused, ToolError, word_clause
from core.guard.foreign_texts import CALENDAR_FILE_MARK
from core.guard.tool_definitions import ToolArguments, build_tool, parse_arguments
from core.review.carried_out import may_want_several
from core.review.naming import resembles
from core.review.pending import Review
from core.review.transcript import Transcript, TranscriptReader
from core.review.wish_judge import WishedCall, WishJudge
from core.review.wishes import find_wishes
from core.scheduling.appointments import HELD_ACTIONS, Action, Appointments, Requester
from core.scheduling.phrases import find_phrase
from core.scheduling.planning import (
    explain_untyped_schedule,
    find_typed_alternative,
    find_typed_request,
    is_same_task,
    may_be_meant,
    repeats_job,
)
from core.scheduling.zones import find_zones
from core.store.jobs import CALENDAR_FILE_ORIGIN, TOOL_ORIGIN, Job
from core.store.notes import JOB_CHANGE, QUESTION, REMINDER, Author, Operation
from core.text.exact_words import Difference, compare_exactly
from core.text.normalize import to_single_line
from core.types import Account, Command, Effect, Json, Subject, Tool, ToolContext

if TYPE_CHECKING:
    from core.facts.evidence import EvidenceSearch

_CHOICE_LEAD = "Not set yet: the person's own words mean another time. They get these buttons:"
_CHOICE_END = "Tell the person to choose. Set nothing before they have answered."
_CHOICE = re.compile(r"^- (remind|cron) (.+)$", re.MULTILINE)
# The beginning of a question whose answers Mneme sends only if they contain news (a watch).
_WATCH_LEAD = "Tell me only if something is new"
# Servers that convert patterns to a grammar don't support escapes such as \d.
_MOMENT_PATTERN = r"^([0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){1,2})?$"
_RECURRENCE_PATTERN = (
    r"^(FREQ=(MINUTELY|HOURLY|DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[A-Z0-9,+-]+)*)?$"
)
NEEDS_TIME = "add needs moment, recurrence or both."
"""Begins the error of a call whose task is a whole line without a readable time."""
# Units of time with a fixed length, on which clock changes have no effect.
_FIXED_UNITS = ("FREQ=MINUTELY", "FREQ=HOURLY")


class _Arguments(ToolArguments):
    action: Literal["add", "list", "pause", "resume", "remove"]
    moment: str = Field("", pattern=_MOMENT_PATTERN)
    recurrence: str = Field("", pattern=_RECURRENCE_PATTERN)
    zone: str = ""
    kind: Literal["reminder", "question", "watch"] = "reminder"
    task: str = ""
    job_id: int | None = None

    @property
    def is_prompt(self) -> bool:
        """Whether the task is a question to the model."""
        return self.kind != "reminder"

    @property
    def is_whole_line(self) -> bool:
        """Whether the task contains the time, as in "tomorrow at 9 call Ana"."""
        return not self.moment and not self.recurrence


_EFFECTS = {
    "add": Effect.PLAN,
    "list": Effect.READ,
    "pause": Effect.WEAKEN,
    "resume": Effect.PLAN,
    "remove": Effect.REMOVE,
}

Ask = Callable[[ParsedSchedule, ToolContext, str | None], Awaitable[str]]
"""Stores a question that asks the person to confirm a new job, and returns its text. The last
argument becomes the origin of the job after a yes."""


def reminder_tool(
    appointments: Appointments,
    transcripts: TranscriptReader,
    evidence: EvidenceSearch,
    review: Review,
    ask: Ask,
    judge: WishJudge | None = None,
) -> Tool:
    """Build the tool `reminder`, with which the model creates, lists and changes jobs.

    `judge` asks the helper model whether the person asked for a reminder in other words.
    """
    tool = _ReminderTool(appointments, transcripts, evidence, review, ask, judge)
    return build_tool(
        "reminder",
        _Arguments,
        tool.run,
        "core.scheduling",
        _EFFECTS,
        can_hold=True,
        find_subjects=tool.find_subjects,
    )


@dataclass(frozen=True, slots=True)
class _ReminderTool:
    """Runs the tool `reminder` when the model calls it."""

    appointments: Appointments
    transcripts: TranscriptReader
    evidence: EvidenceSearch
    review: Review
    ask: Ask
    judge: WishJudge | None

    async def run(self, arguments: _Arguments, context: ToolContext) -> str:
        """Run a call, and return its result for the model.

        Raises ToolError if the arguments are wrong, and Refused if the action isn't possible.
        """
        if arguments.action == "add":
            return await self._add(arguments, context)
        if arguments.action == "list":
            jobs = await self.appointments.jobs.list_visible(context.scopes)
            lines = list(map(self._describe_job, jobs))
            return "\n".join(lines) or "There are no reminders here."
        if arguments.job_id is None:
            raise ToolError(
                f"{arguments.action} needs job_id, the number of the reminder. "
                "The action 'list' shows the numbers."
            )
        if context.hold_reason:
            return await self._hold_change(arguments.action, arguments.job_id, context)
        return await self.appointments.change(
            arguments.action, arguments.job_id, context.scopes, context.account, context.epoch
        )

    def _describe_job(self, job: Job) -> str:
        """Return the line of a job in a list, which says if the job is from a calendar file."""
        line = self.appointments.describe_job(job)
        is_imported = (job.origin or "").startswith(CALENDAR_FILE_ORIGIN)
        return f"{line} {CALENDAR_FILE_MARK}" if is_imported else line

    async def find_subjects(self, arguments: Json, context: ToolContext) -> Sequence[Subject]:
        """Return the job that a call changes, in a list."""
        call = parse_arguments(_Arguments, arguments)
        if call.job_id is None:
            return []
        job = await self.appointments.jobs.find(call.job_id, context.scopes)
        if job is None:
            return []
        jobs = await self.appointments.jobs.list_visible(context.scopes)
        return [
            Subject(
                label=word_clause("label_reminder", number=job.id),
                text=job.text,
                number=str(job.id),
                kind="reminder",
                others=[other.text for other in jobs if other.id != job.id],
            )
        ]

    async def _hold_change(self, action: Action, job_id: int, context: ToolContext) -> str:
        """Store a change of a job that waits for approval, and return the result for the model.

        Raises Refused if the job doesn't exist, or if too many changes wait.
        """
        job = await self.appointments.find_changeable(
            job_id, Requester(scopes=context.scopes, account=context.account, epoch=context.epoch)
        )
        operation = Operation(action=HELD_ACTIONS[action], path=str(job.id), old_text=job.text)
        author = _author_of(context)
        return await self.review.put_aside(
            job.scope, JOB_CHANGE, [operation], author, context.hold_reason
        )

    async def _add(self, arguments: _Arguments, context: ToolContext) -> str:
        """Create a job, or ask the person first.

        A job is created at once if the person typed its text and their words don't mean another
        time. Otherwise the person is asked. If the model has read foreign text that may have
        suggested the job, the job waits for approval instead. The person is also asked about an
        ambiguous time if the task is a whole line, as `core.agent.offline` passes it. Raises
        ToolError in a scheduled session, and Refused if the text or the time can't be used.
        """
        if context.session.address.platform == "cron":
            raise ToolError(
                "A scheduled session can't set reminders or scheduled questions. "
                "Say in your answer what to set."
            )
        reading = await self._interpret(arguments, _account_of(context))
        transcript = await self.transcripts.load(context)
        # A clause about why the text may not be the person's, or None if they typed it.
        reason = await self._explain_text(reading, transcript, context)
        waits = context.hold_reason or await self._explain_schedule(reading, transcript, context)
        if waits or (reason and transcript.foreign):
            if not await self._is_meant(reading, transcript, context):
                return await self._put_aside(reading, context, reason or waits or "")
            reason = None

        origin = _request_origin(_name_request(arguments, reading, transcript), context)
        if await self._is_second(reading, origin, context):
            reason = word_clause("waits_nobody_asked")
            return await self._put_aside(reading, context, reason)
        alternative = await self._find_alternative(arguments, reading, transcript, context)
        if alternative is not None:
            return await self._ask_which((alternative, reading), context)
        if reason or (arguments.is_whole_line and not reading.is_certain):
            return await self.ask(reading, context, origin)
        return await self.appointments.add(
            reading,
            context.session.address,
            context.scope,
            account=_account_of(context),
            origin=origin,
            epoch=context.epoch,
        )

    async def _is_second(
        self, reading: ParsedSchedule, origin: str | None, context: ToolContext
    ) -> bool:
        """Return whether another job was set for the same request."""
        if origin is None:
            return False
        job = await self.appointments.jobs.find_by_origin(origin, context.scope)
        return job is not None and not repeats_job(reading, job, self.appointments.clock.now())

    async def _interpret(self, arguments: _Arguments, account: Account | None) -> ParsedSchedule:
        """Return the schedule and the text of a new job.

        Without a moment and a recurrence, the task must contain the time. Raises ToolError if the
        arguments don't fit together, and Refused if the text or the time can't be used.
        """
        appointments = self.appointments
        if arguments.is_whole_line:
            try:
                line = f"remind me {arguments.task}"
                return await appointments.interpret(
                    line, is_prompt=arguments.is_prompt, account=account
                )
            except Refused as refusal:
                raise ToolError(
                    f"{NEEDS_TIME} Ask the person if you don't know the time. {refusal}"
                ) from refusal
        text = appointments.clean_text(arguments.task)
        if not text:
            raise ToolError("add needs task, the text of the reminder or of the question.")
        if arguments.kind == "watch" and not find_phrase("watch", text):
            text = f"{_WATCH_LEAD}: {text}"
        zone = await appointments.zone_of(account)
        if arguments.zone:
            zone = _find_zone(arguments.zone)
        schedule = _build_schedule(arguments, zone, appointments.clock.now())
        return ParsedSchedule(
            schedule=schedule, text=text, is_certain=True, is_prompt=arguments.is_prompt
        )

    async def _explain_text(
        self, reading: ParsedSchedule, transcript: Transcript, context: ToolContext
    ) -> str | None:
        """Return why the text of a new job may not be the person's, or None.

        Without foreign text, it's enough that the person typed half of the words. A number must
        have its typed sign and decimals. The task that their own words mean is theirs, such as
        "\uc57d \uba39\uae30" after "\uc57d \uba39\uc73c\ub77c\uace0 \uc54c\ub824\uc918".
        """
        text = _without_lead(reading.text)
        reason = await self.evidence.explain_missing([text], context)
        typed = [transcript.typed, transcript.previous]
        if not reason:
            difference = await asyncio.to_thread(compare_exactly, text, typed)
            if difference is Difference.CHANGED:
                return word_clause("waits_other_wording")
        if reason and not transcript.foreign and resembles(text, transcript.typed):
            return None
        typed_reading = await self._read_typed(reading, transcript, context)
        if typed_reading is not None and is_same_task(reading, typed_reading):
            return None
        return reason

    async def _explain_schedule(
        self, reading: ParsedSchedule, transcript: Transcript, context: ToolContext
    ) -> str | None:
        """Return why the time, frequency or kind of a new job needs approval, or None."""
        typed_reading = await self._read_typed(reading, transcript, context)
        min_interval = timedelta(seconds=self.appointments.planned_question_every_s)
        now = self.appointments.clock.now()
        return explain_untyped_schedule(reading, typed_reading, transcript, now, min_interval)

    async def _read_typed(
        self, reading: ParsedSchedule, transcript: Transcript, context: ToolContext
    ) -> ParsedSchedule | None:
        """Return the meaning of the person's own words as a request, or None if they are none."""
        with contextlib.suppress(Refused):
            return await self.appointments.interpret(
                find_typed_request(reading.text, transcript), account=_account_of(context)
            )
        return None

    async def _is_meant(
        self, reading: ParsedSchedule, transcript: Transcript, context: ToolContext
    ) -> bool:
        """Return whether the helper model says that the person asked for a new reminder.

        It is asked only if the person typed the time, and most of the text.
        """
        if self.judge is None or context.hold_reason:
            return False
        zone = load_zone(await self.appointments.zone_of(_account_of(context)))
        now = self.appointments.clock.now()
        if not may_be_meant(reading, transcript, now, zone, _languages_of(context)):
            return False
        wished = WishedCall("reminder", Effect.PLAN, {}, (), {"remind of": reading.text})
        return await self.judge.is_wished(wished, transcript, context)

    async def _find_alternative(
        self,
        arguments: _Arguments,
        reading: ParsedSchedule,
        transcript: Transcript,
        context: ToolContext,
    ) -> ParsedSchedule | None:
        """Return the job at the time that the person's words mean.

        Returns None if the time is the same.
        """
        if arguments.is_whole_line:
            return None
        zone = load_zone(await self.appointments.zone_of(_account_of(context)))
        typed = find_typed_request(reading.text, transcript)
        now = self.appointments.clock.now()
        schedule = find_typed_alternative(reading, typed, now, zone, _languages_of(context))
        return None if schedule is None else replace(reading, schedule=schedule)

    async def _ask_which(self, readings: Sequence[ParsedSchedule], context: ToolContext) -> str:
        """Write a result that lets the person choose a time. `read_choices` reads it."""
        zone = await self.appointments.zone_of(_account_of(context))
        lines = [_CHOICE_LEAD]
        for reading in readings:
            line = to_single_line(self.appointments.format_exact_line(reading, zone))
            lines.append(f"- cron add {line}" if reading.is_prompt else f"- remind {line}")
        return "\n".join([*lines, _CHOICE_END])

    async def _put_aside(self, reading: ParsedSchedule, context: ToolContext, reason: str) -> str:
        """Store a job that waits for approval, and return the result for the model.

        In a group, the owner approves it. `reason` is a clause that says why the job isn't created
        at once. Raises Refused if too many changes wait.
        """
        author = _author_of(context)
        zone = await self.appointments.zone_of(author.account)
        line = self.appointments.format_exact_line(reading, zone)
        operation = Operation(action="add", content=line)
        target = QUESTION if reading.is_prompt else REMINDER
        return await self.review.put_aside(context.scope, target, [operation], author, reason)


def _languages_of(context: ToolContext) -> tuple[str, ...]:
    """Return the language of the conversation, or none if it isn't known."""
    return (context.language,) if context.language else ()


def _author_of(context: ToolContext) -> Author:
    return Author(
        account=_account_of(context),
        message_id=context.message_id,
        address=context.session.address,
        epoch=context.epoch,
    )


def _account_of(context: ToolContext) -> Account | None:
    """Return the account of the person, or None if the sender is anonymous."""
    return None if context.sender.is_anonymous else context.account


def read_choices(result: str) -> list[Command]:
    """Return the commands among which the person chooses after a call of the tool."""
    if not result.startswith(_CHOICE_LEAD):
        return []
    return [Command(name=name, arguments=line) for name, line in _CHOICE.findall(result)]


def _without_lead(text: str) -> str:
    """Return the text of a watch without the beginning that the tool has added."""
    return text.removeprefix(f"{_WATCH_LEAD}: ")


def _find_zone(words: str) -> str:
    """Return the time zone that the model names. Raises ToolError unless only one zone matches."""
    zones = find_zones(words)
    if len(zones) == 1:
        return zones[0]
    raise ToolError(f"'{words[:40]}' isn't one time zone. Write an IANA name like Europe/Lisbon.")


def _build_schedule(arguments: _Arguments, zone: str, now: datetime) -> Schedule:
    """Return the schedule of a moment, a recurrence, or both.

    With both, the moment is the first time. Raises ToolError if the time can't be used.
    """
    start = None
    if arguments.moment:
        try:
            start = datetime.fromisoformat(arguments.moment)
        except ValueError as error:
            raise ToolError(
                f"'{arguments.moment}' isn't a date that exists. Write it like 2026-12-01T10:00."
            ) from error
    if not arguments.recurrence:
        assert start is not None
        return Schedule(zone=zone, at=resolve_wall_time(start, load_zone(zone)))
    is_interval = arguments.recurrence.startswith(_FIXED_UNITS)
    if start is None and not is_interval and "BYHOUR=" not in arguments.recurrence:
        raise ToolError("A recurrence of days or longer needs moment, its first time.")
    local = start or now.astimezone(load_zone(zone)).replace(second=0, microsecond=0, tzinfo=None)
    beginning = f"DTSTART;TZID={zone}:{local:%Y%m%dT%H%M%S}"
    if is_interval and "BY" not in arguments.recurrence:
        moment = resolve_wall_time(local, load_zone(zone)).astimezone(UTC)
        beginning = f"DTSTART:{moment:%Y%m%dT%H%M%SZ}"
    schedule = Schedule(zone=zone, recurrences=(f"{beginning}\nRRULE:{arguments.recurrence}",))
    if next_recurrence(schedule.recurrences, now) is None:
        raise ToolError("That recurrence has no time in the future.")
    return schedule


def _name_request(arguments: _Arguments, reading: ParsedSchedule, transcript: Transcript) -> str:
    """Return a text that is the same for all calls that are meant for the same request.

    If the typed request is for a single job, it is this text, so that the request doesn't create a
    second job. While foreign text may have suggested the job, each request counts as a request for
    one job.
    """
    request = find_typed_request(reading.text, transcript)
    is_single = not may_want_several(transcript.messages) and not transcript.questions
    if transcript.foreign or (is_single and find_wishes(transcript.messages, Effect.PLAN)):
        return request
    return arguments.model_dump_json()


def _request_origin(request: str, context: ToolContext) -> str | None:
    """Return a key that is the same for equal requests in a turn, or None without a message.

    If the turn runs again after a crash, the key prevents a second job.
    """
    if context.message_id is None:
        return None
    digest = hashlib.sha256(request.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{TOOL_ORIGIN}{context.message_id}:{digest}"
