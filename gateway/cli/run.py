"""Defines shell commands that start Mneme, set reminders, manage access, and show the state.

`mneme run` and `chat` start Mneme. `remind`, `cron`, `approve` and `people` work as in a chat.
`status`, `usage` and `check` show the state, the costs and any problems.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import structlog
import typer

from config.settings import Settings, SettingsError
from core.text.normalize import end_sentence, join_sentences
from core.types import Scope
from gateway import logs
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, Words, Yes
from gateway.local.control import ask_gateway
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import SHELL as texts

if TYPE_CHECKING:
    from core.store.usage_limits import Spending
    from gateway.commands.registry import CommandContext
    from gateway.security_check import Finding
    from gateway.services import Services
    from gateway.upkeep.home_checks import CheckResult

# How often `mneme status --watch` shows the status again.
WATCH_INTERVAL_S = 2.0
# The colours of the states of a check.
_COLOURS: dict[str, str | None] = {
    "right": "green",
    "wrong": "red",
    "off": None,
    "ok": "green",
    "look": "yellow",
    "fix": "red",
}
# The colours of the levels of a security finding.


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    root.command("run")(run_command)
    root.command("chat")(chat_command)
    root.command("remind")(remind_command)
    root.command("cron")(cron_command)
    root.command("approve")(approve_command)
    root.command("people")(people_command)
    root.command("status")(status_command)
    root.command("usage")(usage_command)
    root.command("check")(check_command)


def run_command(
    terminal: Annotated[bool, typer.Option("--terminal")] = False,
    workers: Annotated[int, typer.Option("--workers", min=1)] = 1,
) -> None:
    """Start Mneme on every platform that has a token.

    The scheduler starts as well. If no platform has a token, you chat in this terminal.
    """
    if workers > 1:
        if terminal:
            raise typer.BadParameter(texts.compose("workers_no_terminal"), param_hint="--workers")
        _run_workers(workers)
        return
    _run_gateway(is_chat_only=False, has_terminal=terminal)


def chat_command() -> None:
    """Chat in this terminal, even while Mneme is running.

    In a pipe, each line is a message. Answers go to standard output until the input ends.
    """
    with shell.exit_on_error():
        settings = Settings.load()
        if is_running(settings.home):
            # Imported here because only a chat beside the gateway needs it.
            from gateway.local.chat import LocalChat

            logs.configure(settings, settings.home / shell.LOG_FILE_NAME)
            asyncio.run(LocalChat(settings.home).run())
            return
    _run_gateway(is_chat_only=True, has_terminal=True)


def _run_gateway(*, is_chat_only: bool, has_terminal: bool) -> None:
    """Run Mneme until it's stopped. If `has_terminal`, the log goes to a file."""
    with shell.exit_on_error():
        if not is_chat_only:
            _offer_setup()
        settings = Settings.load()
        platforms = [] if is_chat_only else list(settings.platform_tokens)
        if has_terminal or not platforms:
            platforms.append("terminal")
        log_file = settings.home / shell.LOG_FILE_NAME if "terminal" in platforms else None
        logs.configure(settings, log_file)
        log = structlog.get_logger("mneme")
        log.info(
            "Mneme starts",
            version=version("mneme-gateway"),
            home=str(settings.home),
            platforms=", ".join(platforms),
        )
        if settings.advice:
            log.warning(settings.advice)
        # During the start, a garbage collection would only search modules, which contain almost no
        # garbage.
        gc.disable()
        # Loading the clients of the platforms takes a while.
        from gateway.app import run_gateway

        try:
            last_words = asyncio.run(
                run_gateway(settings, chat_only=is_chat_only, has_terminal=has_terminal)
            )
        finally:
            log.info("Mneme has stopped")
        if last_words:
            typer.echo(last_words)


def _run_workers(count: int) -> None:
    """Run several gateways as child processes until they're stopped."""
    with shell.exit_on_error():
        settings = Settings.load()
        logs.configure(settings, None)
        # Imported here because few people run several gateways.
        from gateway.sharing.workers import WorkerPool, check_settings

        check_settings(settings)
        code = asyncio.run(WorkerPool(settings.home, count).run())
    if code:
        raise typer.Exit(code)


def _offer_setup() -> None:
    """Offer the setup before the first start in a terminal. Scripts are never asked."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        # Imported here because only the first start offers the setup.
        from gateway.cli.setup.wizard import offer_setup

        offer_setup()


def remind_command(words: Words = None, yes: Yes = False) -> None:
    """Set a reminder, such as "tomorrow at 9 call Ana".

    The reminder is sent to the private chat that you used last, or else shown in the terminal.
    """
    shell.run_chat_command("reminders.ReminderCommands", "remind", words, None, is_confirmed=yes)


def cron_command(
    words: Words = None, scope: InScope = None, as_json: AsJson = False, yes: Yes = False
) -> None:
    """List and change reminders and scheduled questions.

    "add every monday at 8:30 what is open?" asks the assistant that question and sends you the
    answer where you last wrote to Mneme. "pause", "resume", "run" (make it due now) and "remove"
    take the number that "list" shows. With --json, "when" is an English text; "schedule" and "next"
    are its fields.
    """
    action = words[0] if words else "list"
    if as_json and action != "list":
        raise typer.BadParameter(texts.compose("json_list_only"), param_hint="--json")
    shell.run_chat_command(
        "reminders.ReminderCommands",
        "cron",
        words,
        scope,
        is_confirmed=yes,
        load_json=_load_jobs if as_json else None,
    )
    if action == "run" and not is_running(Settings.load().home):
        typer.echo(texts.CRON_NOT_RUNNING)


async def _load_jobs(services: Services, scopes: frozenset[Scope]) -> object:
    """Return the jobs that the owner can see as JSON objects."""
    jobs = await services.appointments.jobs.list_visible(scopes)
    return [
        {
            "job_id": job.id,
            "when": services.appointments.describe_time(job, is_full=False),
            "schedule": asdict(job.schedule),
            "text": job.text,
            "is_prompt": job.is_prompt,
            "target": job.target.key,
            "scope": job.scope.key,
            "next_at": job.next_at.isoformat() if job.next_at else None,
            "next": [moment.isoformat() for moment in services.appointments.list_next_moments(job)],
            "is_paused": job.paused_at is not None,
            "pause_reason": job.pause_reason,
            "is_urgent": job.is_urgent,
            "is_watch": job.is_watch,
            "account": job.account.key if job.account else None,
        }
        for job in jobs
    ]


def approve_command(
    words: Words = None,
    owner: Annotated[
        bool,
        typer.Option("--owner"),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Approve a pairing or link code.

    Use "no CODE" to reject a code. Without a code, everyone who is waiting for approval is listed.
    """

    if as_json and words:
        raise typer.BadParameter(texts.compose("json_list_only"), param_hint="--json")

    async def work(services: Services, _: CommandContext) -> object:
        if as_json:
            return await _load_waiting(services)
        from gateway.commands.stranger_approvals_and_links import approve_code

        return await approve_code(texts, services, " ".join(words or ()), as_owner=owner, by="cli")

    shell.run_as_owner(work)


async def _load_waiting(services: Services) -> object:
    """Return the people who wait for approval as JSON objects, without their codes."""
    return [
        {
            "account": pairing.account.key,
            "name": pairing.name,
            "expires_at": pairing.expires_at.isoformat(),
        }
        for pairing in await services.people.list_pending(services.clock.now())
    ]


def people_command(words: Words = None, as_json: AsJson = False) -> None:
    """List who has access, or end someone's access.

    "remove telegram:42" ends the access of a person with all their accounts. "block telegram:42"
    also ignores their later requests. "revoke telegram:42" ends the access of this account only,
    which may be one of your own.
    """
    if as_json and words:
        raise typer.BadParameter(texts.compose("json_list_only"), param_hint="--json")
    load_json = _load_people if as_json else None
    shell.run_chat_command(
        "stranger_approvals_and_links.AccountCommands", "people", words, None, load_json=load_json
    )


async def _load_people(services: Services, _: frozenset[Scope]) -> object:
    """Return everyone who has or had access as JSON objects."""
    from gateway.services import load_persons

    persons = await load_persons(services.people, services.settings.access.people)
    return [
        {
            "account": account.account.key,
            "name": account.name,
            # Null for an account of the settings that hasn't written yet.
            "person": account.person_id or None,
            "access": account.why,
            "since": account.at.isoformat() if account.at else None,
            "seen_at": account.seen_at.isoformat() if account.seen_at else None,
        }
        for accounts in persons
        for account in accounts
        if account.why
    ]


def status_command(
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch")] = False,
    alive: Annotated[
        bool,
        typer.Option("--alive"),
    ] = False,
) -> None:
    """Show the state of platforms, model, memory and store.

    `mneme check` also calls the platforms and the model.
    """
    if watch and (as_json or not sys.stdout.isatty()):
        raise typer.BadParameter(texts.compose("watch_needs_terminal"), param_hint="--watch")

    if alive:
        with shell.exit_on_error():
            if ask_gateway(Settings.load().home, "state") is None:
                shell.fail(texts.NOT_ALIVE)
            typer.echo(texts.ALIVE)
        return

    async def work(services: Services, _: CommandContext) -> None:
        """Print the status with one line per subject, or return it for JSON."""
        if watch:
            await _watch_status(services)
        if as_json:
            from gateway.commands.status import load_state

            live = ask_gateway(services.settings.home, "state")
            shell.print_json(await load_state(services, live))
        else:
            shell.print_text("\n".join(await _render_status(services)))

    shell.run_as_owner(work)


async def _render_status(services: Services) -> list[str]:
    """Return the lines of the status, including the report of the running gateway."""
    from gateway.commands.status import StatusCommands

    live = ask_gateway(services.settings.home, "state")
    if live:
        state = texts.STATUS_RUNNING.format(process=live["process"], unanswered=live["unanswered"])
    elif is_running(services.settings.home):
        state = texts.STATUS_UNREACHED
    else:
        state = texts.STATUS_OFF
    status_lines = await StatusCommands(services, None, live).render_lines(texts)
    return [shell.render_plain(line) for line in (texts.pair("**Mneme**", state), *status_lines)]


async def _watch_status(services: Services) -> NoReturn:
    """Print the status repeatedly until Ctrl-C."""
    # Loading Rich takes a while.
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False) as live:
        while True:
            text = "\n".join([*await _render_status(services), "", texts.compose("watch_end")])
            live.update(Text(shell.make_showable(text)), refresh=True)
            await asyncio.sleep(WATCH_INTERVAL_S)


def check_command(
    repair: Annotated[bool, typer.Option("--repair")] = False,
    security: Annotated[
        bool,
        typer.Option("--security"),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the settings, SQLite, state.db, the model and the tokens.

    The output describes each problem and how to solve it. With --security, nothing is called: the
    output lists who gets answers and why, groups, limits, servers, plugins, skills and rights.
    With --json, each result has a "key" for scripts, and "values" such as paths.
    """
    from gateway.check import repair_indexes, run_checks

    if security:
        _print_findings(as_json=as_json)
        return

    async def work() -> list[CheckResult]:
        """Load the settings, repair the indexes if asked to, and run all checks."""
        problems: tuple[str, ...] = ()
        settings = None
        try:
            settings = Settings.load()
            logs.configure(settings, settings.home / shell.LOG_FILE_NAME)
        except SettingsError as error:
            problems = error.located_problems
        results = []
        if repair and settings is not None:
            if sys.stderr.isatty():
                typer.echo(texts.compose("rebuilding"), err=True)
            results.append(await repair_indexes(settings))
        return results + await run_checks(settings, problems)

    with shell.exit_on_error():
        results = asyncio.run(work())
        if as_json:
            shell.print_json([_result_to_json(result) for result in results])
        else:
            _print_results(results)
        if any(result.state == "wrong" for result in results):
            raise typer.Exit(1)


def _print_findings(*, as_json: bool) -> None:
    """Print the results of the security check. Exit with 1 if one of them requires a change."""
    from gateway.security_check import list_findings

    async def work() -> list[Finding]:
        settings = Settings.load()
        logs.configure(settings, settings.home / shell.LOG_FILE_NAME)
        return await list_findings(settings)

    with shell.exit_on_error():
        findings = asyncio.run(work())
        if as_json:
            shell.print_json([asdict(finding) for finding in findings])
        else:
            _print_rows(
                [
                    (
                        finding.level,
                        texts.compose(f"level_{finding.level}"),
                        _name_subject(finding.subject),
                        f"{finding.text} {finding.advice}".rstrip(),
                    )
                    for finding in findings
                ]
            )
        if any(finding.level == "fix" for finding in findings):
            raise typer.Exit(1)


def _result_to_json(result: CheckResult) -> dict[str, object]:
    return {name: getattr(result, name) for name in type(result).__slots__}


def _print_results(results: Sequence[CheckResult]) -> None:
    """Print the state, the subject and the advice of each result."""
    rows = []
    for result in results:
        text = result.text
        if result.advice:
            text = join_sentences([end_sentence(text), result.advice])
        state = texts.compose(f"state_{result.state}")
        rows.append((result.state, state, _name_subject(result.subject), text))
    _print_rows(rows)


def _name_subject(subject: str) -> str:
    """Return the subject of a check in the shell's language.

    Names of services aren't translated.
    """
    subjects = texts.table("CHECK_SUBJECTS")
    kind, separator, name = subject.partition(" ")
    if separator and kind in ("calendar", "memory"):
        return subjects[kind].format(name=name)
    return subjects.get(subject, subject)


def _print_rows(rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Print one line per row: a coloured word, the subject and the text.

    The first value of a row is the key of its colour.
    """
    word_width = max(shell.count_cells(word) for _, word, _, _ in rows)
    subject_width = max(shell.count_cells(subject) for _, _, subject, _ in rows)
    for key, word, subject, text in rows:
        coloured_word = typer.style(shell.pad_cells(word, word_width), fg=_COLOURS[key])
        padded_subject = shell.pad_cells(subject, subject_width)
        typer.echo(f"{coloured_word}  {padded_subject}  {shell.make_showable(text)}")


def usage_command(
    what: Annotated[
        Literal["lately", "months"],
        typer.Argument(),
    ] = "lately",
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """Show what the model has cost.

    The output also shows how much of the model's input came from the cache.
    """
    from gateway.commands.status import OVERVIEW_PERIOD

    async def load_json(services: Services, scopes: frozenset[Scope]) -> object:
        """Return the usage of each month, or of the last 30 days."""
        if what == "months":
            months = await services.usage_log.list_months(scopes)
            return [
                {"month": f"{month:%Y-%m}"} | _spending_to_json(spending)
                for month, spending in months
            ]
        since = services.clock.now() - OVERVIEW_PERIOD
        return _spending_to_json(await services.usage_log.load_spending(scopes, since=since))

    words = ["months"] if what == "months" else []
    shell.run_chat_command(
        "status.UsageCommands", "usage", words, scope, load_json=load_json if as_json else None
    )


def _spending_to_json(spending: Spending) -> dict[str, object]:
    """Return the tokens, costs and cache misses of model calls as a JSON object."""
    usage = spending.usage
    cost = spending.cost
    uncached_cost = spending.uncached_cost
    return {
        "calls": spending.calls,
        "input_tokens": usage.total_input,
        "plain_tokens": usage.input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cache_write_hour_tokens": usage.cache_write_hour,
        "output_tokens": usage.output,
        "web_searches": usage.web_searches,
        "from_cache": round(spending.cached_share, 4),
        "cost": None if cost is None else round(cost, 6),
        "cost_uncached": None if uncached_cost is None else round(uncached_cost, 6),
        "currency": spending.prices.currency,
        "unpriced": spending.unpriced_models,
        "kinds": {kind: part.calls for kind, part in spending.by_kind},
        "misses": [
            {"cause": cause, "times": part.calls, "tokens": part.missed_tokens}
            for cause, part in spending.by_miss_cause
        ],
    }
