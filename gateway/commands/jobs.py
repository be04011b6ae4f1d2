"""/remind and /cron: appointments."""

from __future__ import annotations

from core.dates.schedule import Reading
from core.errors import Refused
from core.markup.render import escape
from core.scheduling.appointments import Appointments
from core.types import Answer, Button, Command, CommandSpec, Option
from gateway.commands.context import CommandContext

_REMIND = CommandSpec(
    name="remind",
    description="Remind you of something at a time",
    options=(
        Option(name="when", description="tomorrow at 9, in 20 minutes, every monday at 8:30", is_required=True),
        Option(name="text", description="what to remind you of", is_required=True),
    ),
    joiner=" | ",
)
_CRON = CommandSpec(
    name="cron",
    description="Reminders and scheduled questions: list, add, pause, resume, remove",
    options=(
        Option(name="action", description="what to do", choices=("list", "add", "pause", "resume", "remove")),
        Option(name="text", description="add: when | what to ask me each time; otherwise the number"),
    ),
)
_CHANGES = ("add", "pause", "resume", "remove")
_DONE = {"pause": "Paused", "resume": "Goes on", "remove": "Removed"}


class JobCommands:
    """The chat's face of `appointments`."""

    specs = (_REMIND, _CRON)

    def __init__(self, appointments: Appointments) -> None:
        self._appointments = appointments

    def is_reading(self, command: Command) -> bool:
        """Only a list changes nothing."""
        return command.name == "cron" and _action(command)[0] not in _CHANGES

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        if command.name == "remind":
            return await self._add("remind", command.arguments, caller)
        action, rest = _action(command)
        if action == "add":
            return await self._add("cron", rest, caller)
        if action in _DONE:
            return await self._change(action, rest, caller)
        if action in ("", "list"):
            return await self._list(caller)
        raise Refused("I can list, add, pause, resume and remove: `/cron remove 3`, `/cron add daily at 8 | news?`.")

    async def _add(self, name: str, line: str, caller: CommandContext) -> Answer:
        if not line.strip():
            raise Refused("Say when and what: `/remind tomorrow at 9 call Ana`.")
        reading = await self._appointments.read(line)
        if not reading.is_certain:
            return self._doubt(name, reading)
        job = await self._appointments.add(
            reading,
            target=caller.inbound.address,
            scope=caller.scope,
            account=caller.account,
            origin=caller.origin,
            is_prompt=name == "cron",
        )
        kind = "Schedule" if job.is_prompt else "Reminder"
        return Answer(text=f"{kind} {job.id}: “{escape(job.text)}”, {self._appointments.when(job)}.")

    def _doubt(self, name: str, reading: Reading) -> Answer:
        """A time that could be meant otherwise is asked back, in a form that leaves no doubt; where buttons are shown,
        one is enough."""
        exact = self._appointments.exact(reading)
        arguments = exact if name == "remind" else f"add {exact}"
        return Answer(
            text=f"Do you mean {self._appointments.when(reading)}, “{escape(reading.text)}”? "
            f"Then send `/{name} {arguments}`.",
            buttons=(Button(label="Yes", command=Command(name=name, arguments=arguments)),),
        )

    async def _change(self, action: str, rest: str, caller: CommandContext) -> Answer:
        number = rest.strip().lstrip("#")
        if not (number.isascii() and number.isdigit() and len(number) < 18):
            raise Refused(f"Say which by its number: `/cron {action} 3`. `/cron` lists them.")
        change = {
            "pause": self._appointments.pause,
            "resume": self._appointments.resume,
            "remove": self._appointments.remove,
        }[action]
        job = await change(int(number), caller.scopes, None if caller.is_owner else caller.account)
        return Answer(text=f"{_DONE[action]}: {escape(self._appointments.describe(job))}")

    async def _list(self, caller: CommandContext) -> Answer:
        jobs = await self._appointments.list(caller.scopes)
        if not jobs:
            return Answer(text="Nothing is planned. `/remind tomorrow at 9 call Ana` makes a reminder.")
        return Answer(text="\n".join(f"- {escape(self._appointments.describe(job))}" for job in jobs))


def _action(command: Command) -> tuple[str, str]:
    word, _, rest = command.arguments.strip().partition(" ")
    return word.lower(), rest.strip()
