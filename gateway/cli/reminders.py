"""`mneme remind` and `mneme cron`: reminders and scheduled questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from config.settings import Settings
from core.store.jobs import Job
from core.types import Address, Answer, Command, Scope
from gateway.cli.runtime import HERE, OWN, AsJson, Group, InScope, Yes, chat, joined, print_json, say
from gateway.commands.context import CommandContext
from gateway.commands.reminders import ReminderCommands
from gateway.services import Services, is_running

ID = Annotated[int, typer.Argument(metavar="ID", help="The number of a reminder.")]
When = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT", help="When and what: tomorrow at 9 call Ana, every monday at 8 stand-up.", show_default=False
    ),
]
_WHERE = "where you last wrote to me on a platform that is connected, else here"
_CHANGES = {
    "pause": "Stop a reminder until it is resumed.",
    "resume": "Let a paused reminder go on.",
    "run": "Make a reminder due now, besides its schedule; the running Mneme delivers it.",
    "remove": "Remove a reminder.",
}
LOOK_BACK = 1_000
"""How many sessions are looked through for a place to deliver to."""


def add_reminders(app: typer.Typer) -> None:
    cron = typer.Typer(cls=Group, help="Reminders and scheduled questions: list, add, pause, resume, run, remove.")
    cron.command("list")(_list)
    cron.command("add", help=f"Ask the assistant something at a time, and deliver the answer {_WHERE}.")(
        _adding("cron", "add ")
    )
    for action, help_text in _CHANGES.items():
        cron.command(action, help=help_text)(_changing(action))
    app.command("remind", help=f"Remind you of something at a time, {_WHERE}.")(_adding("remind"))
    app.add_typer(cron, name="cron")


def _list(scope: InScope = None, as_json: AsJson = False) -> None:
    """List what is planned, the next one first."""

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        return [_object(services, job) for job in await services.appointments.list(scopes)]

    print_json(objects, scope) if as_json else chat(ReminderCommands, Command(name="cron"), scope)


def _adding(name: str, action: str = "") -> Callable[..., None]:
    def run(words: When, yes: Yes = False) -> None:
        chat(_Planning, Command(name=name, arguments=f"{action}{joined(words)}"), None, yes=yes)

    return run


def _changing(action: str) -> Callable[..., None]:
    def run(job_id: ID, scope: InScope = None) -> None:
        chat(ReminderCommands, Command(name="cron", arguments=f"{action} {job_id}"), scope)
        if action == "run" and not is_running(Settings.load().home):
            say("Mneme is not running; the reminder is delivered once it is started.")

    return run


class _Planning(ReminderCommands):
    """Plans for the place where the owner last wrote, and says which that is."""

    async def run(self, command: Command, context: CommandContext) -> Answer:
        target, scope = await _usual(self._services)
        answer = await super().run(command, replace(context, target=target, scope=scope))
        if answer.confirm is not None:
            return answer
        where = "in the terminal" if target == HERE else f"on {target.platform.capitalize()}"
        return Answer(text=f"{answer.text.removesuffix('.')} ({where})")


async def _usual(services: Services) -> tuple[Address, Scope]:
    """Where the owner last wrote in person, on a platform that is connected; this terminal otherwise. What was imported
    may have been said to somebody else."""
    if connected := services.settings.platforms:
        for session in await services.transcripts.recent(await services.people.scopes(OWN), LOOK_BACK):
            address, scope = session.address, session.scope
            is_direct = scope.key.startswith(f"account:{address.platform}:")
            if address.platform in connected and is_direct and session.external_id is None:
                return address, scope
    return HERE, OWN


def _object(services: Services, job: Job) -> dict[str, object]:
    return {
        "job_id": job.id,
        "when": services.appointments.schedule_of(job),
        "text": job.text,
        "is_prompt": job.is_prompt,
        "target": job.target.key,
        "scope": job.scope.key,
        "next_at": job.next_at.isoformat() if job.next_at else None,
        "is_paused": job.paused_at is not None,
    }
