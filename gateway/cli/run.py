"""`mneme run`, `chat`, `remind`, `cron`, `approve`, `people`, `status`, `usage`, `check`: how it stands."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import Annotated, Literal

import structlog
import typer

from config.settings import Settings, SettingsError
from core.store.usage import Spending
from core.text.normalize import legible
from core.types import Scope
from gateway import logs
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, Words, Yes
from gateway.commands.registry import CommandContext
from gateway.services import Services, is_running

_COLOURS: dict[str, str | None] = {"right": "green", "wrong": "red", "off": None}


def add_commands(root: typer.Typer) -> None:
    for command in (_run, _chat, _remind, _cron, _approve, _people, _status, _usage, _check):
        root.command(command.__name__.removeprefix("_"))(command)


def _run(terminal: Annotated[bool, typer.Option("--terminal", help="Chat in this terminal too.")] = False) -> None:
    """Start Mneme: every platform that has a token, the scheduler; without any, a chat in this terminal."""
    _live(is_chat_only=False, has_terminal=terminal)


def _chat() -> None:
    """Talk here. In a pipe: one message a line, answers on standard output, until the input ends."""
    _live(is_chat_only=True, has_terminal=True)


def _live(*, is_chat_only: bool, has_terminal: bool) -> None:
    with shell.leaving():
        settings = Settings.load()
        named = [] if is_chat_only else settings.platforms
        is_shown = has_terminal or not named
        logs.configure(settings, settings.home / shell.LOG if is_shown else None)
        log = structlog.get_logger("mneme")
        platforms = ", ".join([*named, *["terminal"] * is_shown])
        log.info("Mneme starts", version=version("mneme-gateway"), home=str(settings.home), platforms=platforms)
        if settings.advice:
            log.warning(settings.advice)
        # The platforms' clients take a while to load.
        from gateway.app import run_gateway

        try:
            last = asyncio.run(run_gateway(settings, chat_only=is_chat_only, has_terminal=has_terminal))
        finally:
            log.info("Mneme has stopped")
        if last:
            typer.echo(last)


def _remind(words: Words = None, yes: Yes = False) -> None:
    """Remind you of something at a time ("tomorrow at 9 call Ana"), where you last wrote to me on a platform that is
    connected, else here."""
    shell.chat("reminders.ReminderCommands", "remind", words, None, yes=yes)


def _cron(words: Words = None, scope: InScope = None, as_json: AsJson = False, yes: Yes = False) -> None:
    """Reminders and scheduled questions: list, add, pause, resume, run (make it due now), remove.

    "add every monday at 8:30 what is open?" asks the assistant that and delivers the answer where you last wrote to me;
    the others take the number that the list shows.
    """

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        return [
            {
                "job_id": job.id,
                "when": services.appointments.when(job, is_full=False),
                "text": job.text,
                "is_prompt": job.is_prompt,
                "target": job.target.key,
                "scope": job.scope.key,
                "next_at": job.next_at.isoformat() if job.next_at else None,
                "is_paused": job.paused_at is not None,
            }
            for job in await services.appointments.jobs.of(scopes)
        ]

    action = next(iter(words or ()), "list")
    if as_json and action != "list":
        raise typer.BadParameter("only the list has it", param_hint="--json")
    shell.chat("reminders.ReminderCommands", "cron", words, scope, yes=yes, objects=objects if as_json else None)
    if action == "run" and not is_running(Settings.load().home):
        typer.echo("Mneme is not running; the reminder is delivered once it is started.")


def _approve(
    words: Words = None,
    owner: Annotated[bool, typer.Option("--owner", help="It is an account of your own: it sees what you see.")] = False,
) -> None:
    """Let in who showed you a code, or have two accounts linked; "no CODE": not those. Without a code, who waits."""
    from gateway.commands.accounts import let_in

    shell.visit(lambda services, _: let_in(services, " ".join(words or ()), as_owner=owner, by="cli"))


def _people(words: Words = None) -> None:
    """Who is served; "remove telegram:42" (may ask again), "block" (never), "revoke" (one account, also yours)."""
    shell.chat("accounts.AccountCommands", "people", words, None)


def _status(as_json: AsJson = False) -> None:
    """What works, what is kept and what waits; `mneme check` asks the platforms and the model too."""

    async def work(services: Services, _: CommandContext) -> None:
        from gateway.commands.status import StatusCommands

        state = "running" if is_running(services.settings.home) else "not running"
        lines = [f"**Mneme**: {state}", *await StatusCommands(services, None).lines()]
        if as_json:
            shell.say_json(dict(shell.plain(line).split(": ", 1) for line in lines))
        else:
            shell.tell("\n".join(shell.plain(line) for line in lines))

    shell.visit(work)


def _check(
    repair: Annotated[bool, typer.Option("--repair", help="First mend indexes, drop what was set aside.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check settings, SQLite, state.db, model and tokens: what is wrong, what to do."""
    from gateway.check import CheckResult, check, repaired

    async def work() -> None:
        problems: tuple[str, ...] = ()
        settings = None
        try:
            settings = Settings.load()
            logs.configure(settings, settings.home / shell.LOG)
        except SettingsError as error:
            problems = error.problems
        results = []
        if repair and settings is not None:
            if sys.stderr.isatty():
                typer.echo("The text indexes are being built anew; with a long history that takes minutes.", err=True)
            results.append(await repaired(settings))
        results += await check(settings, problems)
        if as_json:
            shell.say_json([{name: getattr(result, name) for name in CheckResult.__slots__} for result in results])
        else:
            width = max(len(result.subject) for result in results)
            for result in results:
                stop = "" if result.text.endswith(".") else "."
                text = f"{result.text}{stop} {result.advice}" if result.advice else result.text
                mark = typer.style(f"{result.state:<6}", fg=_COLOURS[result.state])
                typer.echo(f"{mark} {result.subject:<{width}}  {legible(text)}")
        if any(result.state == "wrong" for result in results):
            raise typer.Exit(1)

    with shell.leaving():
        asyncio.run(work())


def _usage(
    what: Annotated[
        Literal["lately", "months"], typer.Argument(help="The last 30 days, or each of the last twelve months.")
    ] = "lately",
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """What the model has cost, and how much came from the cache."""
    from gateway.commands.status import LATELY

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        report = services.usage_log
        if what == "months":
            return [_spent(spent, month=f"{day:%Y-%m}") for day, spent in await report.months(scopes)]
        return _spent(await report.spent(scopes, since=services.clock.now() - LATELY))

    words = ["months"] if what == "months" else []
    shell.chat("status.UsageCommands", "usage", words, scope, objects=objects if as_json else None)


def _spent(spending: Spending, **name: object) -> dict[str, object]:
    usage = spending.usage
    return {
        **name,
        "calls": spending.calls,
        "input_tokens": usage.sent,
        "plain_tokens": usage.input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cache_write_hour_tokens": usage.cache_write_hour,
        "output_tokens": usage.output,
        "from_cache": round(spending.cached, 4),
        "cost": None if spending.cost is None else round(spending.cost, 6),
        "cost_uncached": None if spending.plain_cost is None else round(spending.plain_cost, 6),
        "currency": spending.prices.currency,
        "unpriced": spending.unpriced,
        "kinds": {kind: part.calls for kind, part in spending.kinds},
        "misses": [{"cause": cause, "times": part.calls, "tokens": part.missed} for cause, part in spending.misses],
    }
