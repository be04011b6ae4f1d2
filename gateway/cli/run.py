"""`mneme run`, `chat`, `approve`, `status` and `check`: the commands that concern all of Mneme."""

from __future__ import annotations

import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

import structlog
import typer
from rich.table import Table
from rich.text import Text

from config.settings import Settings, SettingsError
from core.errors import MnemeError
from core.store.sqlite.fact_index import FactIndex
from core.text.sanitize import on_one_line
from gateway import logs, texts
from gateway.cli.runtime import (
    LOG,
    AsJson,
    console,
    fail,
    finish,
    is_running,
    leaving,
    load,
    plain,
    say,
    say_json,
    tell,
    visit,
)
from gateway.packages import DISTRIBUTION, assert_own_packages
from gateway.services import Services

_SAY_EVERY_S = 2.0
_STYLES = {"right": "green", "wrong": "bold red", "off": "dim"}


def add_run(root: typer.Typer) -> None:
    """Puts the commands, and what stands before a command, on the command line."""
    root.callback()(_root)
    root.command("run")(_run)
    root.command("chat")(_chat)
    root.command("approve")(_approve)
    root.command("status")(_status)
    root.command("check")(_check)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        say(f"mneme {_version()}")
        raise typer.Exit


def _root(
    is_version: Annotated[
        bool, typer.Option("--version", help="Show the version and leave.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """What stands before a command."""


def _run(
    terminal: Annotated[bool, typer.Option("--terminal", help="Chat in this terminal too.")] = False,
) -> None:
    """Start Mneme: every platform that has a token, the scheduler; without any, a chat in this terminal."""
    _live(is_chat_only=False, has_terminal=terminal)


def _chat() -> None:
    """Talk here. In a pipe: one message a line, answers on standard output, until the input ends."""
    _live(is_chat_only=True, has_terminal=True)


def _live(*, is_chat_only: bool, has_terminal: bool) -> None:
    with leaving():
        assert_own_packages()
        settings = load()
    named = [] if is_chat_only else [*["telegram"] * settings.is_telegram_on, *["discord"] * settings.is_discord_on]
    is_shown = has_terminal or not named
    logs.configure(settings, settings.home / LOG if is_shown else None)

    async def work() -> None:
        # Only what talks to platforms needs their clients, and these take a while to load.
        from gateway.app import run_gateway

        log = structlog.get_logger("mneme")
        platforms = ", ".join([*named, *["terminal"] * is_shown])
        log.info("Mneme starts", version=_version(), home=str(settings.home), platforms=platforms)
        for warning in settings.warnings:
            log.warning(warning)
        try:
            last = await run_gateway(settings, chat_only=is_chat_only, has_terminal=has_terminal)
        finally:
            log.info("Mneme has stopped")
        if last:
            say(last)

    finish(work())


def _approve(
    code: Annotated[str, typer.Argument(help="The eight characters; without them, who is waiting.")] = "",
    owner: Annotated[bool, typer.Option("--owner", help="It is an account of your own: it sees what you see.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let somebody in who was given a code. At a terminal you are shown who it is and asked first."""

    async def work(services: Services) -> None:
        now = services.clock.now()
        waiting = await services.people.pending(now)
        if not code and as_json:
            say_json([{"account": pairing.account.key, "name": pairing.name} for pairing in waiting])
        elif not code:
            lines = [f"{on_one_line(one.name)} ({one.account.platform}, id {one.account.user_id})" for one in waiting]
            tell("\n".join(lines) or texts.NOBODY_WAITS)
        if not code:
            return
        wanted = "".join(sign for sign in code.upper() if sign.isalnum())
        for pairing in waiting:
            if pairing.code == wanted and sys.stdin.isatty() and not as_json:
                rights = " as yourself, with all your history" if owner else ""
                typer.confirm(f"Let in {on_one_line(pairing.name)} ({pairing.account.key}){rights}?", abort=True)
        approved = await services.people.approve(code, now, owner)
        if approved is None:
            fail(texts.WRONG_CODE)
        if as_json:
            say_json({"account": approved.account.key, "name": approved.name, "is_owner": owner})
        else:
            tell(plain(texts.let_in(on_one_line(approved.name), approved.account, is_owner=owner)))

    visit(work)


def _status(as_json: AsJson = False) -> None:
    """Show what is kept and what waits; `mneme check` asks the platforms and the model too."""

    async def work(services: Services) -> None:
        from core.agent.offline import MODEL as OFFLINE
        from gateway.commands.status import StatusReport

        settings = services.settings
        has_model = settings.anthropic_api_key is not None or settings.anthropic_base_url is not None
        report = StatusReport(services, settings.model.chat if has_model else OFFLINE)
        state = "running" if is_running(settings.home) else "not running"
        lines = [f"**Mneme**: {state}", *await report.lines()]
        if as_json:
            say_json(dict(plain(line).split(": ", 1) for line in lines))
        else:
            tell("\n".join(plain(line) for line in lines))

    visit(work)


def _check(
    repair: Annotated[bool, typer.Option("--repair", help="Build the text indexes anew before the check.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the settings, the packages, SQLite, state.db, the model and the tokens: what is wrong and what to do."""
    # It asks the platforms, whose clients no other command should wait for.
    from gateway.check import CheckResult, check

    async def work() -> None:
        problems: tuple[str, ...] = ()
        settings = None
        try:
            settings = Settings.load()
            logs.configure(settings, settings.home / LOG)
        except SettingsError as error:
            problems = error.problems
        results = []
        if repair and settings is not None:
            state, text = await _repaired(settings)
            results.append(CheckResult(subject="repair", state=state, text=text))
        results += await check(settings, problems)
        if as_json:
            say_json([{name: getattr(result, name) for name in CheckResult.__slots__} for result in results])
        else:
            table = Table(box=None, pad_edge=False, show_header=False)
            table.add_column(no_wrap=True)
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            for result in results:
                cell = Text(result.text)
                if result.advice:
                    cell.append(f"{'' if result.text.endswith('.') else '.'} {result.advice}", style="italic")
                table.add_row(Text(result.state, style=_STYLES[result.state]), result.subject, cell)
            console().print(table)
        if any(result.state == "wrong" for result in results):
            raise typer.Exit(1)

    finish(work())


class _Progress:
    """Says on standard error how many messages are indexed, every two seconds."""

    def __init__(self) -> None:
        self._said_at = time.monotonic()

    def __call__(self, done: int) -> None:
        if time.monotonic() - self._said_at >= _SAY_EVERY_S:
            self._said_at = time.monotonic()
            typer.echo(f"The text indexes are being built anew: {texts.counted(done, 'message')} so far.", err=True)


async def _repaired(settings: Settings) -> tuple[Literal["right", "wrong"], str]:
    """Builds the text indexes anew, to the end, and what is derived from them."""
    try:
        async with Services.open(settings) as services:
            progress = _Progress()
            messages = await services.recall.rebuild(progress)
            while await services.recall.tend():
                progress(messages)
            facts = await FactIndex(services.database).rebuild()
    except MnemeError as error:
        return "wrong", str(error).partition(" Run `mneme check`")[0]
    held = texts.counted(messages, "message") + (f" and {texts.counted(facts, 'fact')}" if facts else "")
    return "right", f"The text indexes were built anew from {held}."


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "of this folder, not installed"
