"""`mneme remind` and `mneme cron`: reminders and scheduled questions, in the words of the chat."""

from __future__ import annotations

from typing import Annotated

import typer

from config.settings import Settings
from core.types import Command, Scope
from gateway.cli.runtime import AsJson, InScope, Words, Yes, chat, joined, say
from gateway.commands.reminders import ReminderCommands
from gateway.services import Services, is_running


def add_commands(root: typer.Typer) -> None:
    root.command("remind")(remind)
    root.command("cron")(cron)


def remind(
    words: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="When and what: tomorrow at 9 call Ana.", show_default=False)
    ],
    yes: Yes = False,
) -> None:
    """Remind you of something at a time, where you last wrote to me on a platform that is connected, else here."""
    chat(ReminderCommands, Command(name="remind", arguments=joined(words)), None, yes=yes)


def cron(words: Words = None, scope: InScope = None, as_json: AsJson = False, yes: Yes = False) -> None:
    """Reminders and scheduled questions: list, add, pause, resume, run (make it due now), remove.

    "add every monday at 8:30 what is open?" asks the assistant that and delivers the answer where you last wrote to me;
    the others take the number that the list shows.
    """

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        return [
            {
                "job_id": job.id,
                "when": services.appointments.schedule_of(job),
                "text": job.text,
                "is_prompt": job.is_prompt,
                "target": job.target.key,
                "scope": job.scope.key,
                "next_at": job.next_at.isoformat() if job.next_at else None,
                "is_paused": job.paused_at is not None,
            }
            for job in await services.appointments.list(scopes)
        ]

    action = next(iter(words or ()), "list")
    if as_json and action != "list":
        raise typer.BadParameter("only the list has it", param_hint="--json")
    command = Command(name="cron", arguments=joined(words))
    chat(ReminderCommands, command, scope, yes=yes, objects=objects if as_json else None)
    if action == "run" and not is_running(Settings.load().home):
        say("Mneme is not running; the reminder is delivered once it is started.")
