"""Answers messages about reminders without a model: requests, corrections and questions.

`core.scheduling.dialogue` decides what a message means. This module carries out the decision and
words the answer. With most answers, it stores an open question that the person's next message may
answer. The question contains the dialogue so far, so the dialogue can continue after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from core.dates.lexicon import lexicon_languages, load_triggers
from core.dates.period_name import Interval
from core.dates.requests.parts import Assumption, Missing, Problem
from core.dates.requests.reader import ReminderReading
from core.dates.schedule import ParsedSchedule, Schedule
from core.errors import Refused
from core.markup.markdown import escape
from core.scheduling.appointments import Appointments, Requester
from core.scheduling.changes import JobChanges, SkippedTime
from core.scheduling.dialogue import decide, decide_edit
from core.scheduling.phrases import list_phrases
from core.scheduling.talk.agenda_questions import PhraseIndex
from core.scheduling.talk.revisions import read_dialogue
from core.scheduling.talk.steps import Dialogue, Move, Situation, Step, ask_if_past
from core.store.actions import ButtonAction, build_question
from core.store.jobs import TALK_ORIGIN, Job
from core.text.normalize import join_sentences
from core.types import Account, Address, Answer, Button, Command, Inbound
from gateway.commands.agenda import describe_period
from gateway.commands.privacy import is_owner_alone
from gateway.commands.registry import (
    CommandContext,
    TalkAnswer,
    assign_button_ids,
    make_button,
    make_button_actions,
)
from gateway.commands.time_settings import hint_at_events, hint_at_zone
from gateway.services import Services
from gateway.texts.catalog import Texts

# How long the next message may answer a question or correct a reminder.
DIALOGUE_LIFETIME = timedelta(hours=12)
# Platforms keep messages for a day. If one seems to be older, the clock of this machine is wrong.
MAX_MESSAGE_DELAY = timedelta(days=1)
# A message that waited longer than this opens a question as if it had waited only so long.
MAX_DIALOGUE_DELAY = timedelta(hours=6)
# Lists show at most this many reminders.
MAX_LISTED = 10
# The steps that change a reminder. They aren't repeated if the person edits their message.
_CHANGES = frozenset(
    {Move.SET, Move.CHANGE, Move.REMOVE, Move.SKIP, Move.PAUSE, Move.SNOOZE, Move.DONE}
)
# The action of /cron that a "yes" after a receipt runs. It says that the reminder is set.
_SHOW = "keep"
# The action of /cron that a "yes" after "Which reminder do you mean?" runs. The request follows.
_CHOOSE = "list"
# The kinds of phrases in `core.scheduling.phrases` that are triggers, too.
_TRIGGERS = ("snooze", "done", "remove", "move", "skip", "pause", "stop_reminding")
# The keys of the texts for assumptions that a person must know about.
_ASSUMPTION_TEXTS = {
    Assumption.HOUR: "ASSUMED_HOUR",
    Assumption.DAY_ORDER: "ASSUMED_DAY_ORDER",
    Assumption.FIRST_DAY: "ASSUMED_FIRST_DAY",
    Assumption.WEEKDAY: "ASSUMED_WEEKDAY",
    Assumption.SHORT_MONTHS: "ASSUMED_SHORT_MONTHS",
    Assumption.HALF_OF_DAY: "ASSUMED_HALF_OF_DAY",
    Assumption.MORNING: "ASSUMED_MORNING",
    Assumption.MINUTES: "ASSUMED_MINUTES",
    Assumption.RHYTHM: "ASSUMED_RHYTHM",
}
_PROBLEM_TEXTS = {
    Problem.PAST: "ASK_PAST",
    Problem.NO_SUCH_DATE: "ASK_NO_SUCH_DATE",
    Problem.WRONG_WEEKDAY: "ASK_WRONG_WEEKDAY",
    Problem.SEVERAL_TIMES: "ASK_SEVERAL_TIMES",
    Problem.SEVERAL_DAYS: "ASK_SEVERAL_TIMES",
    Problem.NO_DAY: "ASK_DATE",
    Problem.VAGUE: "ASK_VAGUE",
    Problem.TOO_FAR: "ASK_TOO_FAR",
}


class ReminderTalk:
    """Carries out the steps of dialogues about reminders."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._appointments = services.appointments
        self._changes = JobChanges(services.appointments)
        # See `gateway.commands.registry.ReminderTalk`.
        self.triggers: PhraseIndex | None = None
        self.open_dialogues: set[tuple[Address, Account]] = set()
        # Held while the triggers are loaded. The first messages of several chats wait for that.
        self._load_lock = asyncio.Lock()

    async def load(self) -> None:
        """Load the words of reminder messages and the open dialogues."""
        async with self._load_lock:
            if self.triggers is not None:
                return
            questions = await self._services.actions.list_open_questions(("remind", "cron"))
            self.open_dialogues |= questions
            self.triggers = await asyncio.to_thread(_load_triggers)

    async def answer(self, context: CommandContext) -> TalkAnswer | None:
        """Answer a message, or return None if it doesn't concern reminders."""
        inbound = context.inbound
        self.open_dialogues.discard((inbound.address, inbound.account))
        dialogue = await self._take_dialogue(context)
        situation = await self._load_situation(context, dialogue)
        step = await asyncio.to_thread(decide, inbound.text, situation)
        if step.move is Move.NONE:
            return None
        step = ask_if_past(step, self._services.clock.now())
        if inbound.origin == "spoken" and step.move in _CHANGES - {Move.SET}:
            return await self._ask_for_tap(step, context)
        if step.period is not None:
            return await self._list_period(step, step.period, context)
        try:
            talk_answer = await self._carry_out(step, context)
            return replace(talk_answer, is_change=step.move in _CHANGES)
        except Refused as refusal:
            return self._build(escape(context.texts.word(refusal)), (), (), context)

    # --- Commands ---

    async def edit(self, job_id: int, words: str, context: CommandContext) -> Answer:
        """Change the time or the text of a reminder, as in "/cron edit 3 10:00".

        Without words, the person's next message is read as the change.
        """
        texts = context.texts
        job = await self._appointments.find_changeable(
            job_id, make_requester(context), include_ended=True
        )
        if words.strip():
            situation = await self._load_situation(context, None)
            step = await asyncio.to_thread(decide_edit, words, job, situation)
            is_clear = step.move is Move.CHANGE
            result = await self._change(step, context) if is_clear else self._ask(step, context)
        else:
            question = self._build_question_about(job, (), context)
            text = texts.EDIT_HOW.format(
                job=escape(texts.describe_job(self._appointments, job)), id=job.id
            )
            result = self._build(text, (), question, context)
        await self._services.actions.add(
            [action for action in result.actions if action.address is not None]
        )
        return result.answer

    async def ask_time(self, request: str, context: CommandContext) -> Answer:
        """Ask for the time of a reminder after the person pressed the button for another time.

        The next message is read as the time. `request` contains the messages so far, one per line.
        """
        texts = context.texts
        command = Command(name="remind", arguments=request)
        result = self._build(
            texts.ASK_OTHER_TIME, (), (self._build_question(command, context),), context
        )
        await self._services.actions.add(
            [action for action in result.actions if action.address is not None]
        )
        return result.answer

    async def ask_missing(self, request: str, context: CommandContext) -> Answer | None:
        """Ask for the part that the arguments of /remind lack, or return None if they lack none.

        `request` contains the messages so far, one per line.
        """
        situation = await self._load_situation(context, None)
        dialogue = Dialogue(lines=tuple(request.split("\n")), asked_at=situation.now)
        reading = await asyncio.to_thread(read_dialogue, dialogue, situation)
        if not reading.missing:
            return None
        result = self._ask(Step(move=Move.ASK, reading=reading, lines=dialogue.lines), context)
        await self._services.actions.add(
            [action for action in result.actions if action.address is not None]
        )
        return result.answer

    async def keep(self, job_id: int, context: CommandContext) -> Answer:
        """Confirm that a reminder is set. This answers a "yes" after the reminder's receipt."""
        texts = context.texts
        job = await self._appointments.find_changeable(
            job_id, make_requester(context), include_ended=True
        )
        return Answer(
            text=texts.STAYS_SET.format(job=escape(texts.describe_job(self._appointments, job)))
        )

    # --- Dialogues ---

    async def _load_situation(
        self, context: CommandContext, dialogue: Dialogue | None
    ) -> Situation:
        """Return the time of the message, the person's zone, and the jobs that they may change."""
        jobs = await self._appointments.jobs.list_visible(context.scopes)
        return Situation(
            now=find_time_of_words(context.inbound, self._services.clock.now()),
            zone=ZoneInfo(await self._appointments.zone_of(context.account)),
            jobs=[job for job in jobs if context.can_change(job.account)],
            dialogue=dialogue,
            languages=(context.texts.request_language,),
        )

    async def _take_dialogue(self, context: CommandContext) -> Dialogue | None:
        """Remove and return the dialogue that this message may continue, or return None."""
        inbound = context.inbound
        now = self._services.clock.now()
        questions = await self._services.actions.take(
            inbound.address, inbound.account, f"{inbound.kind}:{inbound.message_id}", now
        )
        for question in questions:
            asked_at = question.expires_at - DIALOGUE_LIFETIME
            arguments = question.command.arguments
            if question.command.name == "remind":
                return Dialogue(lines=tuple(arguments.split("\n")), asked_at=asked_at)
            if question.command.name == "cron" and arguments.startswith(f"{_CHOOSE} "):
                request = arguments.removeprefix(f"{_CHOOSE} ")
                return Dialogue(asked_at=asked_at, unclear_request=request)
            if question.command.name == "cron" and arguments.startswith(f"{_SHOW} "):
                number, _, lines = arguments.removeprefix(f"{_SHOW} ").partition(" ")
                job = await self._appointments.jobs.find(int(number), context.scopes)
                if job is None or not job.text:
                    return None
                return Dialogue(
                    lines=tuple(filter(None, lines.split("\n"))), asked_at=asked_at, job=job
                )
        return None

    # --- Steps ---

    async def _carry_out(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Carry out a step, and return the answer. Raises Refused if that isn't possible."""
        texts = context.texts
        match step.move:
            case Move.SET:
                return await self._set(step, context)
            case Move.ASK:
                return self._ask(step, context)
            case Move.CHANGE:
                return await self._change(step, context)
            case Move.SNOOZE:
                return await self._snooze(step, context)
            case Move.LIST | Move.NEXT | Move.UNKNOWN | Move.REMOVE_ALL:
                return await self._list(step.move, context)
            case Move.EXPLAIN:
                return self._build(texts.HOW_TO_REMIND, (), (), context)
            case Move.EXPLAIN_WATCH:
                return self._build(texts.WATCH_NEEDS_MODEL, (), (), context)
            case Move.OFFER_OWN:
                return await self._offer_own(step, context)
            case Move.DROP:
                return self._build(texts.NOTHING_SET, (), (), context)
        assert step.job is not None
        return await self._answer_about_job(step, step.job, context)

    async def _answer_about_job(self, step: Step, job: Job, context: CommandContext) -> TalkAnswer:
        """Remove, pause, skip or finish a job.

        For any other step, ask for a change or confirm the job.
        """
        texts = context.texts
        requester = make_requester(context)
        match step.move:
            case Move.REMOVE | Move.PAUSE:
                report = await self._appointments.change(
                    "remove" if step.move is Move.REMOVE else "pause",
                    job.id,
                    requester.scopes,
                    requester.account,
                    requester.epoch,
                    texts.schedule_words,
                )
                return self._build(escape(report), (), (), context)
            case Move.SKIP:
                report = describe_skipped(texts, await self._changes.skip(job.id, requester))
                question = self._build_question_about(job, (), context)
                return self._build(escape(report), (), question, context)
            case Move.DONE:
                report = describe_finished(texts, await self._changes.finish(job.id, requester))
                return self._build(escape(report), (), (), context)
        template = texts.ASK_CHANGE if step.move is Move.ASK_CHANGE else texts.STAYS_SET
        text = template.format(job=escape(texts.describe_job(self._appointments, job)))
        return self._build(text, (), self._build_question_about(job, step.lines, context), context)

    async def _ask_for_tap(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Show a button for a change that the person asked for by voice, which may be misheard.

        If the change is more than a new time, the answer asks for it in writing.
        """
        texts = context.texts
        job = step.job or await self._appointments.jobs.find_last_delivered(
            context.inbound.address, context.scopes
        )
        if job is None:
            return self._build(texts.NOTHING_TO_SNOOZE, (), (), context)
        button = await self._make_tap_button(replace(step, job=job), job, context)
        if button is None:
            return await self._answer_about_job(
                replace(step, move=Move.ASK_CHANGE, job=job), job, context
            )
        line = escape(texts.describe_job(self._appointments, job))
        return self._build(texts.SPEECH_NEEDS_TAP.format(job=line), (button,), (), context)

    async def _make_tap_button(
        self, step: Step, job: Job, context: CommandContext
    ) -> Button | None:
        """Return the button that carries out a spoken change, or None if it needs more words."""
        texts = context.texts
        words = texts.tables("commands")
        if step.move is Move.SNOOZE:
            label = words["snooze"]["description"]
            return make_button(label, "snooze", f"{job.id} {step.words}".strip())
        if step.move is not Move.CHANGE:
            action = step.move.value
            return make_button(words["cron"]["actions"][action], "cron", f"{action} {job.id}")
        reading = step.reading
        if reading is None or reading.moment is None or reading.task != job.text:
            return None
        zone = await self._appointments.zone_of(context.account)
        label = f"{texts.BUTTON_CHANGE}: {texts.describe_moment(reading.moment, zone)}"
        local = reading.moment.astimezone(ZoneInfo(zone))
        return make_button(label, "cron", f"edit {job.id} {local:%Y-%m-%d %H:%M}")

    async def _set(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Set a reminder and return its receipt, or say that the same reminder already exists."""
        texts = context.texts
        reading = step.reading
        assert reading is not None
        zone = await self._appointments.zone_of(context.account)
        schedule = make_schedule(reading, zone)
        existing = await self._find_duplicate(schedule, reading.task, context)
        if existing is not None:
            text = texts.EXISTS_ALREADY.format(
                job=escape(texts.describe_job(self._appointments, existing))
            )
            question = self._build_question_about(existing, step.lines, context)
            return self._build(text, _make_change_buttons(texts, existing), question, context)
        job = await self._appointments.add_job(
            ParsedSchedule(schedule=schedule, text=reading.task, is_certain=True),
            context.inbound.address,
            context.scope,
            account=context.account,
            origin=f"{TALK_ORIGIN}{context.idempotency_key}",
            epoch=context.epoch,
        )
        text = self.read_back(texts, job, reading)
        text += await hint_at_zone(
            texts, self._services, context.account, is_owner=context.is_owner
        )
        if is_owner_alone(context):
            text += await hint_at_events(texts, self._services, context.account, job.next_at)
        question = self._build_question_about(job, step.lines, context)
        return self._build(text, _make_change_buttons(texts, job), question, context)

    async def _find_duplicate(
        self, schedule: Schedule, task: str, context: CommandContext
    ) -> Job | None:
        """Return a reminder in this chat with the same text and due times, or None."""
        parsed_schedule = ParsedSchedule(schedule=schedule, text=task, is_certain=True)
        moments = self._appointments.list_next_moments(parsed_schedule)
        for job in await self._appointments.jobs.list_visible(context.scopes):
            is_same_text = job.text.casefold() == task.casefold() and not job.is_prompt
            is_here = job.target == context.inbound.address and job.paused_at is None
            if not (is_same_text and is_here):
                continue
            job_moments = self._appointments.list_next_moments(job)
            if [at.replace(second=0) for at in job_moments] == [
                at.replace(second=0) for at in moments
            ]:
                return job
        return None

    def _ask(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Ask for the missing part of a request, such as the time."""
        texts = context.texts
        reading = step.reading
        assert reading is not None
        text = _write_question(texts, reading)
        if step.job is not None:
            question = self._build_question_about(step.job, step.lines, context)
            return self._build(text, (), question, context)
        buttons: tuple[Button, ...] = ()
        if reading.task and Missing.TIME in reading.missing:
            buttons = _make_time_buttons(texts, reading.task, step.lines)
        command = Command(name="remind", arguments="\n".join(map(_one_line, step.lines)))
        return self._build(text, buttons, (self._build_question(command, context),), context)

    async def _offer_own(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Say that no one else is reminded, and offer the reminder to this person.

        In a group, the others can read the reminder. A "yes" sets it.
        """
        texts = context.texts
        reading = step.reading
        assert reading is not None
        lead = texts.REMINDS_THE_GROUP if context.scope.is_group else texts.REMINDS_ONLY_YOU
        if not reading.is_complete:
            question = self._ask(step, context)
            text = join_sentences([lead, question.answer.text])
            return replace(question, answer=replace(question.answer, text=text))
        zone = await self._appointments.zone_of(context.account)
        planned = ParsedSchedule(
            schedule=make_schedule(reading, zone), text=reading.task, is_certain=True
        )
        line = self._appointments.format_exact_line(planned, zone)
        when = texts.describe_time(self._appointments, planned)
        offer = texts.OFFER_OWN.format(when=when, text=escape(reading.task))
        button = make_button(texts.BUTTON_YES, "remind", line)
        yes = self._build_question(Command(name="remind", arguments=line), context)
        return self._build(join_sentences([lead, offer]), (button,), (yes,), context)

    async def _change(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Change the time or the text of a reminder, and return its receipt."""
        texts = context.texts
        reading = step.reading
        job = step.job
        assert reading is not None
        assert job is not None
        requester = make_requester(context)
        schedule = None
        if reading.moment is not None or reading.recurrences:
            schedule = make_schedule(reading, job.schedule.zone)
        new_job = await self._changes.edit(job.id, requester, schedule, reading.task)
        text = self.read_back(texts, new_job, reading)
        question = self._build_question_about(new_job, step.lines, context)
        return self._build(text, _make_change_buttons(texts, new_job), question, context)

    async def _snooze(self, step: Step, context: CommandContext) -> TalkAnswer:
        """Snooze the reminder that was last delivered in this chat."""
        texts = context.texts
        job = step.job or await self._appointments.jobs.find_last_delivered(
            context.inbound.address, context.scopes
        )
        if job is None:
            return self._build(texts.NOTHING_TO_SNOOZE, (), (), context)
        languages = (texts.request_language,)
        said_at = find_time_of_words(context.inbound, self._services.clock.now())
        snooze = await self._changes.read_snooze(step.words, context.account, languages, said_at)
        if snooze is None:
            return self._build(texts.SNOOZE_USAGE, (), (), context)
        later = await self._changes.snooze(
            job.id, snooze, make_requester(context), context.idempotency_key
        )
        question = self._build_question_about(job, (), context)
        report = describe_snoozed(texts, self._appointments, later, job.id)
        return self._build(escape(report), (), question, context)

    async def _list(self, move: Move, context: CommandContext) -> TalkAnswer:
        """List the reminders of this chat, or only the next one."""
        texts = context.texts
        jobs = await self._appointments.jobs.list_visible(context.scopes)
        if move is Move.REMOVE_ALL:
            jobs = [job for job in jobs if context.can_change(job.account)]
        if not jobs:
            return self._build(texts.NO_REMINDERS_YET, (), (), context)
        if move is Move.NEXT:
            active = [job for job in jobs if job.paused_at is None and job.next_at is not None]
            jobs = active[:1] or jobs[:1]
        heading = {
            Move.LIST: texts.REMINDERS_HEADING,
            Move.NEXT: texts.NEXT_REMINDER_HEADING,
            Move.UNKNOWN: texts.WHICH_REMINDER,
            Move.REMOVE_ALL: texts.REMOVE_ALL,
        }[move]
        lines = [heading]
        lines += [
            f"- {escape(texts.describe_job(self._appointments, job))}" for job in jobs[:MAX_LISTED]
        ]
        if len(jobs) > MAX_LISTED:
            lines.append(texts.MORE_REMINDERS.format(count=len(jobs) - MAX_LISTED))
        question = self._build_question_about_list(move, jobs, context)
        return self._build("\n".join(lines), _list_buttons(texts, move, jobs), question, context)

    async def _list_period(
        self, step: Step, period: Interval, context: CommandContext
    ) -> TalkAnswer | None:
        """List the reminders and events of a period, or return None if no reminder is due then.

        The next message may still correct the dialogue's reminder, which is `step.job`.
        """
        text, jobs = await describe_period(self._services, period, context)
        if not jobs:
            return None
        job = step.job if step.job is not None or len(jobs) > 1 else jobs[0]
        question = self._build_question_about(job, step.lines, context) if job is not None else ()
        buttons = _make_change_buttons(context.texts, jobs[0]) if len(jobs) == 1 else ()
        return self._build(text, buttons, question, context)

    def _build_question_about_list(
        self, move: Move, jobs: Sequence[Job], context: CommandContext
    ) -> Sequence[ButtonAction]:
        """Return the question that the person's next message may answer after a list."""
        if move is Move.REMOVE_ALL:
            numbers = " ".join(str(job.id) for job in jobs)
            command = Command(name="cron", arguments=f"remove {numbers}")
            return (self._build_question(command, context),)
        if move is Move.UNKNOWN:
            # A "yes" doesn't answer which reminder is meant, so it shows the numbers.
            arguments = f"{_CHOOSE} {_one_line(context.inbound.text)}"
            return (self._build_question(Command(name="cron", arguments=arguments), context),)
        return self._build_question_about(jobs[0], (), context) if len(jobs) == 1 else ()

    # --- Answers ---

    def read_back(self, texts: Texts, job: Job, reading: ReminderReading) -> str:
        """Return the receipt of a reminder: its time and zone, next due times, and assumptions."""
        is_recurring = job.schedule.at is None
        sentences = [texts.describe_set_job(self._appointments, job, is_full=not is_recurring)]
        if is_recurring:
            moments = self._appointments.list_next_moments(job)
            times = texts.SEMICOLON.join(map(texts.schedule_words.format_moment, moments))
            sentences.append(texts.NEXT_TIMES.format(times=times))
        for assumption, key in _ASSUMPTION_TEXTS.items():
            if assumption in reading.assumptions:
                sentences.append(texts[key].format(time=_write_other_half(job, assumption)))
        return join_sentences(map(escape, sentences))

    def _build_question_about(
        self, job: Job, lines: Sequence[str], context: CommandContext
    ) -> tuple[ButtonAction, ...]:
        """Return a question for the next message, which may then correct a reminder."""
        arguments = f"{_SHOW} {job.id} " + "\n".join(map(_one_line, lines))
        command = Command(name="cron", arguments=arguments.strip())
        return (self._build_question(command, context),)

    def _build_question(self, command: Command, context: CommandContext) -> ButtonAction:
        now = self._services.clock.now()
        question = build_question(
            command,
            context.account,
            context.scope,
            context.inbound.address,
            context.idempotency_key,
            now,
        )
        # The next message's dialogue computes the time of this message from the expiry.
        asked_at = max(find_time_of_words(context.inbound, now), now - MAX_DIALOGUE_DELAY)
        return replace(question, expires_at=asked_at + DIALOGUE_LIFETIME)

    def _build(
        self,
        text: str,
        buttons: Sequence[Button],
        questions: Sequence[ButtonAction],
        context: CommandContext,
    ) -> TalkAnswer:
        """Return an answer with its buttons, and the rows to store with it."""
        presser = None if context.scope.is_group else context.account
        if questions:
            self.open_dialogues.add((context.inbound.address, context.account))
        labelled_buttons = assign_button_ids(buttons)
        now = self._services.clock.now()
        actions = [*make_button_actions(labelled_buttons, context.scope, presser, now), *questions]
        return TalkAnswer(Answer(text=text, buttons=labelled_buttons), actions)


def find_time_of_words(inbound: Inbound, now: datetime) -> datetime:
    """Return the time from which words such as "in 10 minutes" count, at `now`.

    It's when the person sent the message, even if the message waited before it was read. Presses of
    buttons count from now, because their `sent_at` is that of the message with the button.
    """
    if inbound.kind not in ("message", "edit"):
        return now
    is_clock_wrong = now - inbound.sent_at > MAX_MESSAGE_DELAY
    return now if is_clock_wrong else min(inbound.sent_at, now)


def make_requester(context: CommandContext) -> Requester:
    """Return the person who wants to change a job.

    The owner may change all jobs, other people only their own.
    """
    account = None if context.is_owner else context.account
    return Requester(scopes=context.scopes, account=account, epoch=context.epoch)


def make_schedule(reading: ReminderReading, zone: str) -> Schedule:
    """Return the schedule of a complete request, with wall-clock times in `zone`."""
    own_zone = reading.parts.zone or zone
    if reading.moment is not None:
        return Schedule(zone=own_zone, at=reading.moment)
    return Schedule(zone=own_zone, recurrences=reading.recurrences)


def _write_question(texts: Texts, reading: ReminderReading) -> str:
    """Return a question about the missing or impossible part of a request."""
    task = escape(reading.task)
    if reading.problem is Problem.VAGUE and not task:
        return texts.ASK_TIME_AND_TASK
    if reading.problem is not None:
        return texts[_PROBLEM_TEXTS[reading.problem]].format(task=task)
    if Missing.TIME in reading.missing:
        return texts.ASK_TIME.format(task=task) if task else texts.ASK_TIME_AND_TASK
    if Missing.DATE in reading.missing:
        return texts.ASK_DATE.format(task=task)
    return texts.ASK_TASK


def _write_other_half(job: Job, assumption: Assumption) -> str:
    """Return the clock time of a job in the half of the day that wasn't assumed: "5:50"."""
    if job.next_at is None:
        return ""
    local = job.next_at.astimezone(ZoneInfo(job.schedule.zone))
    hour = local.hour % 12 or 12
    if assumption is Assumption.MORNING:
        hour = local.hour % 12 + 12
    return f"{hour}:{local:%M}"


def _make_time_buttons(texts: Texts, task: str, lines: Sequence[str]) -> tuple[Button, ...]:
    """Return buttons with likely times, and a button to type another time.

    `lines` are the messages of the request.
    """
    request = "\n".join(map(_one_line, lines))
    return (
        make_button(texts.BUTTON_IN_ONE_HOUR, "remind", f"in 1 hour | {task}"),
        make_button(texts.BUTTON_TONIGHT, "remind", f"today at 20:00 | {task}"),
        make_button(texts.BUTTON_TOMORROW_AT_NINE, "remind", f"tomorrow at 9:00 | {task}"),
        make_button(texts.BUTTON_OTHER_TIME, "cron", f"when {request}"),
    )


def _list_buttons(texts: Texts, move: Move, jobs: Sequence[Job]) -> tuple[Button, ...]:
    """Return the buttons below a list of reminders."""
    if move is Move.REMOVE_ALL:
        numbers = " ".join(str(job.id) for job in jobs)
        text = texts.BUTTON_REMOVE_ALL.format(count=len(jobs))
        return (make_button(text, "cron", f"remove {numbers}"),)
    if move is Move.UNKNOWN:
        return tuple(_remove_button(texts, job) for job in jobs[:5])
    return _make_change_buttons(texts, jobs[0]) if len(jobs) == 1 else ()


def describe_finished(texts: Texts, job: Job) -> str:
    """Return a sentence that a reminder is done, and when it's due again if it recurs."""
    if job.ended_at is not None:
        return texts.JOB_FINISHED.format(text=job.text)
    if job.next_at is None:
        return texts.JOB_FINISHED_LAST
    moment = texts.describe_moment(job.next_at, job.schedule.zone)
    return texts.JOB_FINISHED_NEXT.format(moment=moment)


def describe_skipped(texts: Texts, time: SkippedTime) -> str:
    """Return which occurrence of a recurring reminder is skipped, and when the next one is due."""
    zone = time.job.schedule.zone
    return texts.JOB_SKIPPED.format(
        skipped=texts.describe_moment(time.skipped, zone),
        following=texts.describe_moment(time.following, zone),
    )


def describe_snoozed(texts: Texts, appointments: Appointments, job: Job, snoozed_id: int) -> str:
    """Return when a snoozed reminder is sent again.

    If the reminder recurs, snoozing sets an additional reminder.
    """
    if job.id != snoozed_id or job.next_at is None:
        return texts.describe_set_job(appointments, job)
    moment = texts.describe_moment(job.next_at, job.schedule.zone)
    return texts.JOB_SNOOZED.format(moment=moment, text=job.text)


def _make_change_buttons(texts: Texts, job: Job) -> tuple[Button, ...]:
    return (
        make_button(texts.BUTTON_CHANGE, "cron", f"edit {job.id}"),
        make_button(texts.BUTTON_REMOVE, "cron", f"remove {job.id}"),
    )


def _remove_button(texts: Texts, job: Job) -> Button:
    return make_button(texts.BUTTON_REMOVE_NUMBER.format(id=job.id), "cron", f"remove {job.id}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


@cache
def _load_triggers() -> PhraseIndex:
    """Return the words that are typical of messages about reminders."""
    phrases = {phrase for kind in _TRIGGERS for phrase in list_phrases(kind)}
    for language in lexicon_languages():
        triggers = load_triggers(language)
        phrases |= triggers.asking | triggers.rewritten
    return PhraseIndex(phrases)
