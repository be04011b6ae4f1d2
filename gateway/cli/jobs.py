"""`mneme cron`: reminders and scheduled questions from the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from core.errors import Refused
from core.scheduling.appointments import Appointments
from core.store.jobs import Job
from core.text.sanitize import on_one_line
from core.types import Account, Address, Scope
from gateway.cli.runtime import (
    HERE,
    OWN,
    AsJson,
    InScope,
    is_bare,
    is_running,
    joined,
    say,
    say_json,
    seen,
    tell,
    visit,
)
from gateway.services import Services

ID = Annotated[int, typer.Argument(metavar="ID", help="The number of a reminder.")]
LOOK_BACK = 1_000
"""How many sessions are looked through for a place to deliver to."""
_Step = Callable[[Appointments, int, frozenset[Scope]], Awaitable[Job]]


def add_jobs(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    cron = typer.Typer(help="Reminders and scheduled questions: list, add, pause, resume, run, remove.")
    cron.callback(invoke_without_command=True)(_cron)
    cron.command("list")(_list)
    cron.command("add")(_add)
    cron.command("pause")(_pause)
    cron.command("resume")(_resume)
    cron.command("run")(_run)
    cron.command("remove")(_remove)
    app.add_typer(cron, name="cron")


def _cron(context: typer.Context, scope: InScope = None, as_json: AsJson = False) -> None:
    if is_bare(context, scope, as_json):
        _list(scope, as_json)


def _list(scope: InScope = None, as_json: AsJson = False) -> None:
    """List what is planned, the next one first."""

    async def work(services: Services) -> None:
        jobs = await services.appointments.list(await seen(services, scope))
        if as_json:
            say_json([_object(services, job) for job in jobs])
        elif not jobs:
            say("Nothing is planned.")
        else:
            for job in jobs:
                tell(_line(services, job))

    visit(work)


def _add(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT",
            help="When and what: tomorrow at 9 call Ana, every monday at 8 stand-up.",
            show_default=False,
        ),
    ],
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask the assistant this each time, and deliver its answer.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(
            help="Where to deliver it: telegram:42, or terminal. If not given, where you last wrote to me on a "
            "platform that is connected, else in the terminal."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set a reminder."""

    async def work(services: Services) -> None:
        target, scope = await _place(services, to)
        account = Account(platform="terminal", user_id="local")
        job = await services.appointments.add(joined(words), target=target, scope=scope, account=account, is_prompt=ask)
        if as_json:
            say_json(_object(services, job))
        else:
            tell(f"Planned {services.appointments.describe(job)} ({_where(target)})")

    visit(work)


def _pause(job_id: ID, scope: InScope = None) -> None:
    """Stop a reminder until it is resumed."""
    _change(job_id, scope, lambda appointments, number, scopes: appointments.pause(number, scopes))


def _resume(job_id: ID, scope: InScope = None) -> None:
    """Let a paused reminder go on."""
    _change(job_id, scope, lambda appointments, number, scopes: appointments.resume(number, scopes))


def _run(job_id: ID, scope: InScope = None) -> None:
    """Make a reminder due now, besides its schedule; the running Mneme delivers it."""

    async def work(services: Services) -> None:
        job = await services.appointments.run(job_id, await seen(services, scope))
        later = (
            "" if is_running(services.settings.home) else " Mneme does not run now; it is delivered once it is started."
        )
        tell(f"Reminder {job.id} is due now ({_where(job.target)}): “{on_one_line(job.text)}”.{later}")

    visit(work)


def _remove(job_id: ID, scope: InScope = None) -> None:
    """Remove a reminder."""
    _change(job_id, scope, lambda appointments, number, scopes: appointments.remove(number, scopes), done="Removed ")


def _change(job_id: int, scope: str | None, step: _Step, done: str = "") -> None:
    async def work(services: Services) -> None:
        job = await step(services.appointments, job_id, await seen(services, scope))
        tell(done + _line(services, job))

    visit(work)


async def _place(services: Services, to: str | None) -> tuple[Address, Scope]:
    """Where a reminder goes and whose it is. A place is known by what was said there: only then is its scope."""
    if to is None:
        return await _usual(services)
    if to in (HERE.platform, HERE.key):
        return HERE, OWN
    try:
        target = Address.parse(to)
    except ValueError:
        raise typer.BadParameter("write platform:chat or platform:chat/thread", param_hint="--to") from None
    session = await services.conversations.current(target)
    if session is None or session.scope not in await services.people.scopes(OWN):
        raise Refused(
            f"Nobody of yours has talked to me at {to} yet. Say something there first; /whoami names the place."
        )
    return target, session.scope


async def _usual(services: Services) -> tuple[Address, Scope]:
    """Where the owner last wrote to me by himself, on a platform that is connected; this terminal otherwise. What was
    brought along from elsewhere may have been said to somebody else."""
    settings = services.settings
    connected = {
        name for name, is_on in (("telegram", settings.is_telegram_on), ("discord", settings.is_discord_on)) if is_on
    }
    if connected:
        for session in await services.transcripts.recent(await services.people.scopes(OWN), LOOK_BACK):
            address, scope = session.address, session.scope
            is_direct = scope.key.startswith(f"account:{address.platform}:")
            if address.platform in connected and is_direct and session.external_id is None:
                return address, scope
    return HERE, OWN


def _where(target: Address) -> str:
    """The end of a sentence: where something is delivered."""
    if target == HERE:
        return "in the terminal"
    return f"on {target.platform.capitalize()}"


def _line(services: Services, job: Job) -> str:
    where = "" if job.target == HERE else f" (to {job.target.key})"
    return services.appointments.describe(job) + where


def _object(services: Services, job: Job) -> dict[str, object]:
    return {
        "job_id": job.id,
        "when": services.appointments.when(job),
        "text": job.text,
        "is_prompt": job.is_prompt,
        "target": job.target.key,
        "scope": job.scope.key,
        "next_at": job.next_at.isoformat() if job.next_at else None,
        "is_paused": job.paused_at is not None,
    }
