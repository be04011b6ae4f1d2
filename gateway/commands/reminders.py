"""/remind and /cron: reminders and scheduled questions."""

from __future__ import annotations

from typing import cast

from core.dates.resolution import Reading
from core.errors import Refused
from core.markup.markdown import escape
from core.scheduling.appointments import ACTIONS, Action
from core.store.jobs import Job
from core.types import Answer, Command, ToolContext
from gateway import texts
from gateway.commands.registry import CommandContext, Confirmations, announced, number_in
from gateway.services import Services


class ReminderCommands:
    """Over the appointments of `services`, in a chat and in the shell."""

    specs = announced("remind", "cron")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._appointments = services.appointments

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if command.name == "remind":
            return await self._add(command.arguments, context)
        word, _, rest = command.arguments.strip().partition(" ")
        action = word.lower()
        if action == "add":
            return await self._add(rest, context, is_prompt=True)
        if action in ACTIONS:
            return await self._change(cast(Action, action), rest, context)
        if action in ("", "list"):
            jobs = await self._appointments.list(context.scopes)
            here = context.inbound.address
            lines = [
                f"- {escape(self._appointments.describe(job))}{'' if job.target == here else f' (to {job.target.key})'}"
                for job in jobs
            ]
            return Answer(text="\n".join(lines) or texts.NO_REMINDERS)
        raise Refused(texts.CRON_USAGE)

    async def _add(self, line: str, context: CommandContext, *, is_prompt: bool = False) -> Answer:
        if not line.strip():
            raise Refused(texts.REMIND_USAGE)
        appointments = self._appointments
        reading = await appointments.read(line, is_prompt=is_prompt)
        if not reading.is_certain:
            return self._doubt(reading, is_prompt=is_prompt)
        job = Job(
            schedule=reading.schedule,
            text=reading.text,
            target=context.target or context.inbound.address,
            scope=context.scope,
            created_at=context.inbound.sent_at,
            account=context.account,
            origin=context.origin,
            is_prompt=is_prompt,
        )
        job = await appointments.add(job, context.epoch)
        return Answer(text=escape(appointments.receipt(job)))

    def _doubt(self, reading: Reading, *, is_prompt: bool = False) -> Answer:
        exact = self._appointments.exact(reading)
        yes = Command(name="cron", arguments=f"add {exact}") if is_prompt else Command(name="remind", arguments=exact)
        doubt = texts.JOB_DOUBT.format(when=self._appointments.when(reading), text=escape(reading.text))
        return Answer(text=doubt, confirm=yes)

    async def ask(self, reading: Reading, context: ToolContext, origin: str | None) -> str:
        """Lets a reminder that was asked for in plain words wait for a yes; returns the question."""
        doubt, address = self._doubt(reading), context.session.address
        assert doubt.confirm is not None
        confirmations = Confirmations(self._services.actions, self._services.clock)
        await confirmations.ask(doubt.confirm, context.account, context.scope, address, origin or address.key)
        return doubt.text

    async def _change(self, action: Action, rest: str, context: CommandContext) -> Answer:
        if (number := number_in(rest)) is None:
            raise Refused(f"Say which by its number: `/cron {action} 3`. `/cron` lists them.")
        by = None if context.is_owner else context.account
        job = await self._appointments.change(action, number, context.scopes, by)
        return Answer(text=escape(self._appointments.changed(action, job)))
