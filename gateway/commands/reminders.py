"""/remind and /cron, `mneme remind` and `mneme cron`: reminders and scheduled questions."""

from __future__ import annotations

from typing import cast

from core.dates.schedule import Reading
from core.errors import Refused
from core.markup.markdown import escape
from core.scheduling.appointments import ACTIONS, Action
from core.store.actions import question
from core.types import LOCAL, Answer, Command, ToolContext
from gateway import texts
from gateway.commands.registry import CommandContext, announced, number_in
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
        if action in ("", "list"):
            lines = []
            for job in await self._appointments.jobs.of(context.scopes):
                elsewhere = "" if job.target == context.inbound.address else f" (to {job.target.key})"
                lines.append(f"- {escape(self._appointments.describe(job))}{elsewhere}")
            return Answer(text="\n".join(lines) or texts.NO_REMINDERS)
        if action not in ACTIONS:
            raise Refused(texts.CRON_USAGE)
        if (number := number_in(rest)) is None:
            raise Refused(f"Say which by its number: `/cron {action} 3`. `/cron` lists them.")
        by = None if context.is_owner else context.account
        return Answer(text=escape(await self._appointments.change(cast(Action, action), number, context.scopes, by)))

    async def _add(self, line: str, context: CommandContext, *, is_prompt: bool = False) -> Answer:
        if not line.strip():
            raise Refused(texts.REMIND_USAGE)
        reading = await self._appointments.read(line, is_prompt=is_prompt)
        if not reading.is_certain:
            return self._doubt(reading)
        target, scope = context.inbound.address, context.scope
        if context.is_shell:
            # What is planned there is said where the owner last talked to me in private.
            target, scope = await self._services.private_place(LOCAL) or (target, LOCAL)
        receipt = await self._appointments.add(
            reading, target, scope, account=context.account, origin=context.origin, epoch=context.epoch
        )
        if context.is_shell:
            where = "in the terminal" if scope == LOCAL else f"on {target.platform.capitalize()}"
            receipt = f"{receipt.removesuffix('.')} ({where})"
        return Answer(text=escape(receipt))

    def _doubt(self, reading: Reading) -> Answer:
        exact = self._appointments.exact(reading)
        name, words = ("cron", f"add {exact}") if reading.is_prompt else ("remind", exact)
        doubt = texts.JOB_DOUBT.format(when=self._appointments.when(reading), text=escape(reading.text))
        return Answer(text=doubt, confirm=Command(name=name, arguments=words))

    async def ask(self, reading: Reading, context: ToolContext, origin: str | None) -> str:
        """Lets a reminder that was asked for in plain words wait for a yes; returns the question."""
        doubt, address = self._doubt(reading), context.session.address
        assert doubt.confirm is not None
        now, origin = self._services.clock.now(), origin or address.key
        asked = question(doubt.confirm, context.account, context.scope, address, origin, now)
        await self._services.actions.add([asked])
        return doubt.text
