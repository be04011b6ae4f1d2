"""Shows due times as a list and as a week, and past deliveries, on the page "Reminders"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.dates.schedule import load_zone, resolve_wall_time
from core.errors import Refused
from core.markup.markdown import escape
from core.scheduling.changes import JobChanges
from core.scheduling.due import next_due
from core.store.jobs import Job
from core.types import Answer, Command
from gateway.commands.registry import make_button
from gateway.commands.reminder_talk import make_requester
from gateway.web.views import (
    Action,
    Page,
    PageRequest,
    Values,
    View,
    read_field,
    run_command,
)

DELIVERIES = 20
# By how many minutes a button moves a reminder.
DELAYS = (60, 120, 1_440)
MAX_LINE_CHARS = 2_000
# If a job is due more than this many times in a week, only its first times are shown.
MAX_TIMES_A_WEEK = 50
WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job, and its due time in the person's language."""

    job: Job
    time: str


@dataclass(frozen=True, slots=True)
class WeekDay:
    """A day of the week view with the due times of jobs."""

    day: date
    # Such as "Monday 30 November".
    title: str
    entries: Sequence[tuple[datetime, Job]]


async def load_reminders(request: PageRequest) -> Values:
    """Return the active jobs in the order of their next due times."""
    jobs = await request.services.jobs.list_visible(request.scopes)
    return {"jobs": [_describe(request, job) for job in jobs]}


async def load_reading(request: PageRequest) -> Values:
    """Return how a line for a new reminder is parsed, or why it can't be.

    With the parameter ``part=time``, the line has only the time. With ``part=snooze``, it says how
    long or until when to snooze.
    """
    line = request.parameter("line").strip()[:MAX_LINE_CHARS]
    appointments = request.services.appointments
    if not line:
        return {"reading": "", "text": "", "problem": ""}
    if request.parameter("part") == "snooze":
        return await _read_snooze(request, line)
    # The text isn't shown, so any text is possible.
    text = "…" if request.parameter("part") == "time" else None
    try:
        reading = await appointments.interpret(
            line,
            text,
            account=request.context.account,
            languages=(request.texts.request_language,),
        )
    except Refused as refusal:
        return {"reading": "", "text": "", "problem": request.texts.word(refusal)}
    time_words = request.texts.describe_time(appointments, reading)
    return {"reading": time_words, "text": "" if text else reading.text, "problem": ""}


async def _read_snooze(request: PageRequest, line: str) -> Values:
    """Return when a job would be delivered again, or that the words can't be read."""
    changes = JobChanges(request.services.appointments)
    account = request.context.account
    snooze = await changes.read_snooze(line, account, (request.texts.request_language,))
    if snooze is None:
        return {"reading": "", "text": "", "problem": request.words["SNOOZE_UNREAD"]}
    # Without a time, the job is snoozed until the same time tomorrow.
    time_words = line
    if snooze.at is not None:
        zone = load_zone(await request.services.appointments.zone_of(account))
        time_words = request.texts.format_moment(snooze.at, zone)
    return {"reading": time_words, "text": "", "problem": ""}


async def load_week(request: PageRequest) -> Values:
    """Return seven days, beginning at the day in the address or today."""
    zone = load_zone(await request.services.appointments.zone_of(request.context.account))
    first_day = _read_day(request.parameter("day"), request.services.clock.now(), zone)
    first = resolve_wall_time(datetime.combine(first_day, time()), zone)
    last = resolve_wall_time(datetime.combine(first_day + WEEK, time()), zone)
    entries: list[tuple[datetime, Job]] = []
    for job in await request.services.jobs.list_visible(request.scopes):
        if not job.paused_at:
            entries += [(at, job) for at in _list_times(request, job, first, last)]
    entries.sort(key=lambda entry: entry[0])
    local = [(at.astimezone(zone), job) for at, job in entries]
    days = []
    for number in range(7):
        day = first_day + timedelta(days=number)
        title = request.texts.format_weekday(datetime.combine(day, time()))
        days.append(WeekDay(day, title, [entry for entry in local if entry[0].date() == day]))
    return {
        "days": days,
        "today": request.services.clock.now().astimezone(zone).date(),
        "earlier": first_day - WEEK,
        "later": first_day + WEEK,
    }


async def load_reminder(request: PageRequest) -> Values | None:
    """Return a job with its next due times and last deliveries, or None if there is no such job."""
    services = request.services
    job = await services.jobs.find(request.number("number"), request.scopes)
    if job is None or not job.text:
        return None
    return {
        "listed": _describe(request, job),
        "moments": [] if job.ended_at else services.appointments.list_next_moments(job),
        "delays": _list_delays(job),
        "can_restore": job.ended_at is not None
        and next_due(job.schedule, services.clock.now()) is not None,
        "deliveries": await services.jobs.list_deliveries(job, request.scopes, DELIVERIES),
    }


def _list_delays(job: Job) -> list[tuple[int, datetime]]:
    """Return the minutes of each button that moves a job, and its time after that."""
    due = job.schedule.at
    if due is None or job.next_at is None:
        return []
    return [(minutes, due + timedelta(minutes=minutes)) for minutes in DELAYS]


async def add_reminder(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Add a reminder or a scheduled question from a line of plain text."""
    line = read_field(request, form, "line")
    if form.get("kind") == "question":
        command = Command(name="cron", arguments=f"add {line}")
    else:
        command = Command(name="remind", arguments=line)
    return await request.commands.run(command, request.context)


async def edit_reminder(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Change the time and the text of a job. Raises Refused if the time can't be read."""
    number = int(read_field(request, form, "number"))
    time_words = read_field(request, form, "when")
    text = read_field(request, form, "text")
    appointments, requester = request.services.appointments, make_requester(request.context)
    job = await appointments.find_changeable(number, requester)
    schedule = None
    if time_words != form.get("shown_time", "").strip():
        reading = await appointments.interpret(
            time_words,
            text,
            is_prompt=job.is_prompt,
            account=request.context.account,
            languages=(request.texts.request_language,),
        )
        schedule = reading.schedule
    job = await JobChanges(appointments).edit(number, requester, schedule, text)
    return Answer(text=escape(request.texts.describe_set_job(appointments, job)))


async def delay_reminder(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Move a reminder with a single time by a number of minutes.

    Raises Refused if it has been moved or ended since the form was shown.
    """
    number = int(read_field(request, form, "number"))
    minutes = int(read_field(request, form, "minutes"))
    appointments, requester = request.services.appointments, make_requester(request.context)
    job = await appointments.find_changeable(number, requester)
    shown_time = read_field(request, form, "shown_time")
    is_unchanged = _describe(request, job).time == shown_time
    if job.schedule.at is None or minutes not in DELAYS or not is_unchanged:
        raise Refused(request.words["WRONG_FIELD"])
    schedule = replace(job.schedule, at=job.schedule.at + timedelta(minutes=minutes))
    job = await JobChanges(appointments).edit(number, requester, schedule, job.text)
    return Answer(text=escape(request.texts.describe_set_job(appointments, job)))


async def snooze_reminder(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Deliver a job again later, like /snooze. Raises Refused if the time can't be read."""
    number = read_field(request, form, "number")
    words = read_field(request, form, "words")
    changes = JobChanges(request.services.appointments)
    languages = (request.texts.request_language,)
    if await changes.read_snooze(words, request.context.account, languages) is None:
        raise Refused(request.words["SNOOZE_UNREAD"])
    command = Command(name="snooze", arguments=f"{number} {words}")
    return await request.commands.run(command, request.context)


async def remove_reminder(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Remove a job, like `/cron remove`. The answer has a button that brings it back."""
    number = read_field(request, form, "number")
    command = Command(name="cron", arguments=f"remove {number}")
    answer = await request.commands.run(command, request.context)
    restore = make_button(request.texts.BUTTON_UNDO, "cron", f"restore {number}")
    return replace(answer, buttons=(restore,))


def _describe(request: PageRequest, job: Job) -> ListedJob:
    """Return when a job is due in words, such as "every Monday at 08:30"."""
    appointments = request.services.appointments
    return ListedJob(job, request.texts.describe_time(appointments, job, is_full=False))


def _list_times(
    request: PageRequest, job: Job, first: datetime, last: datetime
) -> Iterator[datetime]:
    """Yield the due times of a job within a period."""
    moments = request.services.appointments.list_moments(job, first)
    for count, moment in enumerate(moments):
        if moment >= last or count == MAX_TIMES_A_WEEK:
            return
        yield moment


def _read_day(text: str, now: datetime, zone: ZoneInfo) -> date:
    """Parse a date in ISO format. Returns today if it's invalid."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = now.astimezone(zone).date()
    # The calendar begins and ends in these years, so that the weeks around them can be counted.
    return min(max(day, date(1970, 1, 8)), date(9000, 1, 1))


PAGE = Page(
    "reminders",
    views=(
        View("/reminders", "reminders.html", load_reminders, is_streamed=True),
        View("/reminders/week", "week.html", load_week),
        View("/reminders/reading", "reading.html", load_reading),
        View("/reminders/{number:\\d+}", "reminder.html", load_reminder),
    ),
    actions=(
        Action("add-reminder", add_reminder),
        Action("edit-reminder", edit_reminder),
        Action("end-reminder", run_command("cron", "end {number} {words}")),
        Action("delay-reminder", delay_reminder),
        Action("snooze-reminder", snooze_reminder),
        Action("pause-reminder", run_command("cron", "pause {number}")),
        Action("resume-reminder", run_command("cron", "resume {number}")),
        Action("skip-reminder", run_command("cron", "skip {number}")),
        Action("run-reminder", run_command("cron", "run {number}")),
        Action("urgent-reminder", run_command("cron", "urgent {number}")),
        Action("remove-reminder", remove_reminder),
        Action("restore-reminder", run_command("cron", "restore {number}")),
    ),
)
