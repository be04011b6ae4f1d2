"""`mneme remind` and `mneme cron`: reminders and scheduled questions, in the words of the chat."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from config.settings import Settings
from core.store.jobs import Job
from core.types import Address, Answer, Command, Scope
from gateway.cli.runtime import HERE, OWN, AsJson, InScope, Words, Yes, chat, joined, print_json, say
from gateway.commands.registry import CommandContext
from gateway.commands.reminders import ReminderCommands
from gateway.services import Services, is_running

LOOK_BACK = 1_000
"""How many sessions are looked through for a place to deliver to."""


def remind(
    words: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="When and what: tomorrow at 9 call Ana.", show_default=False)
    ],
    yes: Yes = False,
) -> None:
    """Remind you of something at a time, where you last wrote to me on a platform that is connected, else here."""
    chat(_Planning, Command(name="remind", arguments=joined(words)), None, yes=yes)


def cron(words: Words = None, scope: InScope = None, as_json: AsJson = False, yes: Yes = False) -> None:
    """Reminders and scheduled questions: list, add, pause, resume, run (make it due now), remove.

    "add every monday at 8:30 what is open?" asks the assistant that and delivers the answer where you last wrote to me;
    the others take the number that the list shows.
    """

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        return [_object(services, job) for job in await services.appointments.list(scopes)]

    action = next(iter(words or ()), "list")
    if as_json and action != "list":
        raise typer.BadParameter("only the list has it", param_hint="--json")
    if as_json:
        print_json(objects, scope)
        return
    group = _Planning if action == "add" else ReminderCommands
    chat(group, Command(name="cron", arguments=joined(words)), scope, yes=yes)
    if action == "run" and not is_running(Settings.load().home):
        say("Mneme is not running; the reminder is delivered once it is started.")


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
