"""Sets and changes reminders and scheduled questions: /remind, /snooze and /cron."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from core.dates.schedule import ParsedSchedule
from core.errors import Refused
from core.markup.markdown import escape
from core.scheduling.appointments import ACTIONS, Action, Requester
from core.scheduling.changes import JobChanges
from core.scheduling.phrases import drop_leads
from core.store.actions import build_question
from core.text.normalize import shorten
from core.types import LOCAL_SCOPE, Address, Answer, Command, Form, Scope, ToolContext
from gateway.commands.privacy import is_owner_alone
from gateway.commands.registry import (
    CommandContext,
    load_specs,
    make_button,
    parse_number,
    split_action,
)
from gateway.commands.reminder_talk import (
    ReminderTalk,
    describe_finished,
    describe_skipped,
    describe_snoozed,
    find_time_of_words,
    make_requester,
)
from gateway.commands.time_settings import hint_at_events, hint_at_zone
from gateway.services import Services
from gateway.texts.catalog import Texts

# The actions of /cron apart from `core.scheduling.appointments.ACTIONS`.
_OTHER_ACTIONS = ("count", "done", "edit", "end", "keep", "skip", "target", "urgent")
_ACTIONS_WITH_WORDS = ("count", "edit", "end", "keep", "target")
MAX_COUNT = 1_000
_MAX_EDITABLE_JOBS = 25
_MAX_LABEL_CHARS = 80
_DEFAULT_TIMES = {"brief": "7:30", "checkin": "18:00"}
_CLOCK_TIME = re.compile(r"\d{1,2}(?::\d\d)?(?:\s*[ap]m)?", re.IGNORECASE)


class ReminderCommands:
    specs = load_specs("remind", "cron", "snooze")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._appointments = services.appointments
        self._changes = JobChanges(services.appointments)
        self.talk = ReminderTalk(services)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run /remind, /snooze or /cron: set a job, list all jobs, or change one.

        Raises Refused if the action isn't possible.
        """
        texts = context.texts
        if command.name == "remind":
            line = drop_leads("remind_object", command.arguments) or command.arguments
            return await self._add(line, context, is_prompt=False)
        if command.name == "snooze":
            return await self._snooze(command.arguments, context)
        action, parameters = split_action(command.arguments)
        if action == "add":
            return await self._add(parameters, context, is_prompt=True)
        if action in ("", "list"):
            return await self._list(context)
        if action == "when" and parameters:
            return await self.talk.ask_time(parameters, context)
        if action in ("brief", "checkin"):
            return await self._add_ready_made(action, parameters, context)
        if action not in (*ACTIONS, *_OTHER_ACTIONS):
            raise Refused(texts.CRON_USAGE)
        return await self._change_numbered(action, parameters, context)

    async def _change_numbered(
        self, action: str, parameters: str, context: CommandContext
    ) -> Answer:
        """Change the job whose number begins `parameters`, or remove several jobs."""
        first, _, words = parameters.strip().partition(" ")
        number = parse_number(first)
        numbers = [parse_number(word) for word in parameters.split()]
        if action == "remove" and len(numbers) > 1 and None not in numbers:
            return await self._remove(list(filter(None, numbers)), context)
        if number is None or (words and action not in _ACTIONS_WITH_WORDS):
            raise Refused(context.texts.CRON_NEEDS_NUMBER.format(action=action))
        return await self._change(action, number, words, context)

    async def _remove(self, numbers: Sequence[int], context: CommandContext) -> Answer:
        """Remove several jobs. The answer has one line per job."""
        lines: list[str] = []
        for number in numbers:
            try:
                report = await self._change("remove", number, "", context)
            except Refused as refusal:
                lines.append(escape(context.texts.word(refusal)))
            else:
                lines.append(report.text)
        return Answer(text="\n".join(lines))

    async def _change(
        self, action: str, number: int, words: str, context: CommandContext
    ) -> Answer:
        """Run an action on the job with this number."""
        texts = context.texts
        requester = make_requester(context)
        if action == "edit":
            return await self.talk.edit(number, words, context)
        if action == "keep":
            return await self.talk.keep(number, context)
        if action in ("end", "count"):
            return await self._limit(texts, action, number, words, requester)
        if action == "target":
            return await self._set_target(number, words, context)
        if action == "urgent":
            is_urgent = await self._changes.toggle_urgent(number, requester)
            text = texts.URGENT_ON if is_urgent else texts.URGENT_OFF
            return Answer(text=text.format(id=number))
        if action == "done":
            report = describe_finished(texts, await self._changes.finish(number, requester))
        elif action == "skip":
            report = describe_skipped(texts, await self._changes.skip(number, requester))
        else:
            report = await self._change_state(texts, cast(Action, action), number, requester)
        return Answer(text=escape(report))

    async def _change_state(
        self, texts: Texts, action: Action, number: int, requester: Requester
    ) -> str:
        """Pause, resume, run, remove or restore a job, and return a confirmation."""
        return await self._appointments.change(
            action,
            number,
            requester.scopes,
            requester.account,
            words=texts.schedule_words,
        )

    async def _limit(
        self, texts: Texts, action: str, number: int, words: str, requester: Requester
    ) -> Answer:
        """Let a recurring job end at a time, or after a number of runs."""
        if not words:
            raise Refused(texts.END_USAGE.format(id=number))
        if action == "end":
            languages = (texts.request_language,)
            job = await self._changes.end(number, words, requester, languages)
        else:
            count = parse_number(words)
            if count is None or not 0 < count <= MAX_COUNT:
                raise Refused(texts.END_USAGE.format(id=number))
            job = await self._changes.limit_times(number, count, requester)
        return Answer(text=escape(texts.describe_set_job(self._appointments, job)))

    async def _set_target(self, number: int, words: str, context: CommandContext) -> Answer:
        """Set the chat that a job is delivered to, or list the possible chats."""
        texts = context.texts
        requester = make_requester(context)
        job = await self._appointments.find_changeable(number, requester)
        if not words:
            targets = await self._appointments.jobs.list_targets(job.scope)
            lines = [texts.TARGETS.format(id=number, current=job.target.key)]
            lines += [f"- `{target.key}`" for target in targets if target != job.target]
            return Answer(text="\n".join(lines))
        target = context.inbound.address
        if words != "here":
            targets = await self._appointments.jobs.list_targets(job.scope)
            by_key = {target.key: target for target in targets}
            if words not in by_key:
                raise Refused(texts.TARGET_UNKNOWN.format(id=number))
            target = by_key[words]
        job = await self._changes.retarget(number, target, requester)
        return Answer(text=texts.TARGET_SET.format(id=number, target=job.target.key))

    async def _add_ready_made(self, kind: str, words: str, context: CommandContext) -> Answer:
        """Add a morning brief or a check-in. Without a schedule in the words, it runs every day."""
        texts = context.texts
        question = texts.BRIEF_QUESTION if kind == "brief" else texts.CHECKIN_QUESTION
        for job in await self._appointments.jobs.list_visible(context.scopes):
            if job.text == question and job.target == context.inbound.address:
                line = texts.describe_job(self._appointments, job)
                raise Refused(texts.READY_MADE_EXISTS.format(id=job.id, job=line))
        when = words.strip() or _DEFAULT_TIMES[kind]
        if _CLOCK_TIME.fullmatch(when):
            when = f"daily at {when}"
        return await self._add(f"{when} | {question}", context, is_prompt=True)

    async def _snooze(self, arguments: str, context: CommandContext) -> Answer:
        """Snooze the reminder with a number, or the one that was last delivered in this chat.

        "3 10 minutes" names reminder 3, but "10 minutes" is only a time. Raises Refused if there is
        no such reminder, if the time can't be parsed, or if the person may not change it.
        """
        texts = context.texts
        languages = (texts.request_language,)
        said_at = find_time_of_words(context.inbound, self._services.clock.now())
        first, _, time_words = arguments.strip().partition(" ")
        number = parse_number(first)
        until = None
        if number is not None:
            until = await self._changes.read_snooze(time_words, context.account, languages, said_at)
        if number is None or until is None:
            until = await self._changes.read_snooze(arguments, context.account, languages, said_at)
            if until is None:
                raise Refused(texts.SNOOZE_USAGE)
            latest = await self._appointments.jobs.find_last_delivered(
                context.inbound.address, context.scopes
            )
            if latest is None:
                raise Refused(texts.NOTHING_TO_SNOOZE)
            number = latest.id
        job = await self._changes.snooze(
            number, until, make_requester(context), context.idempotency_key
        )
        return Answer(text=escape(describe_snoozed(texts, self._appointments, job, number)))

    async def _list(self, context: CommandContext) -> Answer:
        """List the jobs that are visible in this chat. A job for another chat names that chat."""
        texts = context.texts
        lines = []
        buttons = []
        title = texts.CHANGE_JOB
        for job in await self._appointments.jobs.list_visible(context.scopes):
            line = texts.describe_job(self._appointments, job)
            if job.target != context.inbound.address:
                line = texts.JOB_ELSEWHERE.format(job=line, chat=job.target.key)
            lines.append(f"- {escape(line)}")
            label = f"{job.id}: {shorten(job.text, _MAX_LABEL_CHARS)}"
            button = make_button(label, "cron", f"edit {job.id}")
            form = Form(title=title, value=job.text, is_needed=True)
            buttons.append(replace(button, form=form, menu=title))
        text = "\n".join(lines) or texts.NO_REMINDERS
        return Answer(text=text, buttons=tuple(buttons[:_MAX_EDITABLE_JOBS]))

    async def _add(self, line: str, context: CommandContext, *, is_prompt: bool) -> Answer:
        """Add a reminder, or a scheduled question if `is_prompt`.

        If the time in `line` is ambiguous, the person is asked to confirm the job first. If a
        reminder's time or text is missing, they are asked for it. Raises Refused if that isn't
        possible: in a shell or on a page.
        """
        texts = context.texts
        if not line.strip():
            raise Refused(texts.REMIND_USAGE)
        when, text = _split_fields(line) if context.inbound.is_interaction else (line, None)
        try:
            schedule = await self._appointments.interpret(
                when,
                text,
                is_prompt=is_prompt,
                account=context.account,
                languages=(texts.request_language,),
                said_at=find_time_of_words(context.inbound, self._services.clock.now()),
            )
        except Refused:
            # A page can't ask, because no message follows there.
            may_ask = context.inbound.kind != "action" and not context.is_shell
            is_dialogue = text is None and not is_prompt and may_ask
            question = await self.talk.ask_missing(line, context) if is_dialogue else None
            if question is None:
                raise
            return question
        if not schedule.is_certain:
            zone = await self._appointments.zone_of(context.account)
            return self._ask_to_confirm(texts, schedule, zone)
        target, scope = await self._find_target(context)
        job = await self._appointments.add_job(
            schedule,
            target,
            scope,
            account=context.account,
            origin=context.idempotency_key,
            epoch=context.epoch,
        )
        receipt = texts.describe_set_job(self._appointments, job)
        if context.is_shell:
            place = texts.PLACE_CHAT.format(platform=texts.name_platform(target.platform))
            if scope == LOCAL_SCOPE:
                place = texts.PLACE_TERMINAL
            receipt = texts.annotate(receipt.removesuffix("."), place)
        return Answer(text=escape(receipt) + await self._write_hints(schedule, context))

    async def _find_target(self, context: CommandContext) -> tuple[Address, Scope]:
        """Return the address that a new job is delivered to, and its scope.

        In a chat, the address is that of the chat. In a shell, it's the private chat that the owner
        used last, or the terminal.
        """
        if not context.is_shell:
            return context.inbound.address, context.scope
        private_chat = await self._services.find_private_chat(LOCAL_SCOPE)
        return private_chat or (context.inbound.address, LOCAL_SCOPE)

    async def _write_hints(self, schedule: ParsedSchedule, context: CommandContext) -> str:
        """Return sentences about the time zone and the calendar events of a new job, or ""."""
        texts = context.texts
        hints = ""
        if not context.is_shell:
            hints = await hint_at_zone(
                texts, self._services, context.account, is_owner=context.is_owner
            )
        if is_owner_alone(context):
            moment = next(iter(self._appointments.list_next_moments(schedule, 1)), None)
            hints += await hint_at_events(texts, self._services, context.account, moment)
        return hints

    async def ask(self, schedule: ParsedSchedule, context: ToolContext, origin: str | None) -> str:
        """Store a question that asks the person to confirm a new job, and return its text.

        The model's tool `reminder` calls this method. `origin` identifies the request, so that a
        repeated turn doesn't set the job twice. It's None if the request has no message.
        """
        texts = self._services.languages.of_scope(context.scope, context.account)
        zone = await self._appointments.zone_of(context.account)
        answer = self._ask_to_confirm(texts, schedule, zone)
        assert answer.confirm_command is not None
        address = context.session.address
        question = build_question(
            answer.confirm_command,
            context.account,
            context.scope,
            address,
            origin or address.key,
            self._services.clock.now(),
        )
        await self._services.actions.add([question])
        return answer.text

    def _ask_to_confirm(self, texts: Texts, schedule: ParsedSchedule, zone: str) -> Answer:
        """Ask whether a job was understood correctly. "Yes" adds it with its exact time.

        `zone` is the person's time zone.
        """
        exact_line = self._appointments.format_exact_line(schedule, zone)
        if schedule.is_prompt:
            command = Command(name="cron", arguments=f"add {exact_line}")
        else:
            command = Command(name="remind", arguments=exact_line)
        text = texts.JOB_DOUBT.format(
            when=texts.describe_time(self._appointments, schedule), text=escape(schedule.text)
        )
        return Answer(text=text, confirm_command=command)


def _split_fields(line: str) -> tuple[str, str | None]:
    """Return the time and the text of a line that was filled in as two fields.

    The time is read from the first field only, because the text may be another person's message. A
    line with rules, which a confirmation contains, isn't split.
    """
    when, bar, text = line.partition(" | ")
    return (when, text) if bar and not line.startswith("DTSTART") else (line, None)
