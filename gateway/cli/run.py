"""`mneme run`, `mneme chat`, `mneme approve` and `mneme check`: the commands that concern the whole house, and what
stands before a command."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import structlog
import typer
from rich.table import Table
from rich.text import Text

from config.settings import Settings, SettingsError
from core.errors import MnemeError
from core.store.sqlite.fact_index import FactIndex
from core.text.sanitize import on_one_line
from gateway import logs
from gateway.check import CheckResult
from gateway.cli.runtime import LOG, AsJson, console, counted, fail, finish, leaving, load, say, say_json, tell, visit
from gateway.packages import DISTRIBUTION, assert_own_packages
from gateway.services import Services

_STYLES = {"right": "green", "wrong": "bold red", "off": "dim"}


def add_house(root: typer.Typer) -> None:
    """Puts the commands, and what stands before a command, on the command line."""
    root.callback()(_root)
    root.command("run")(_run)
    root.command("chat")(_chat)
    root.command("approve")(_approve)
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
    settings = _settled()
    is_chat = terminal or not (settings.is_telegram_on or settings.is_discord_on)
    logs.configure(settings, settings.home / LOG if is_chat else None)
    finish(_live(settings, chat_only=False, has_terminal=terminal))


def _chat() -> None:
    """Talk here. In a pipe: one message a line, answers on standard output, until the input ends."""
    settings = _settled()
    logs.configure(settings, settings.home / LOG)
    finish(_live(settings, chat_only=True, has_terminal=True))


def _settled() -> Settings:
    with leaving():
        assert_own_packages()
        return load()


async def _live(settings: Settings, *, chat_only: bool, has_terminal: bool) -> None:
    # Only what talks to platforms needs their clients, and these take a while to load.
    from gateway.app import run_gateway

    log = structlog.get_logger("mneme")
    named = [
        name for name, is_on in (("telegram", settings.is_telegram_on), ("discord", settings.is_discord_on)) if is_on
    ]
    platforms = [] if chat_only else named
    shown = [*platforms, "terminal"] if has_terminal or not platforms else platforms
    log.info("Mneme starts", version=_version(), home=str(settings.home), platforms=", ".join(shown))
    try:
        last = await run_gateway(settings, chat_only=chat_only, has_terminal=has_terminal)
    finally:
        log.info("Mneme has stopped")
    if last:
        say(last)


def _approve(
    code: Annotated[str, typer.Argument(help="The eight characters; without them, who is waiting.")] = "",
    owner: Annotated[bool, typer.Option("--owner", help="It is an account of your own: it sees what you see.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let somebody in who was given a code. At a terminal you are shown who it is and asked first."""

    async def work(services: Services) -> None:
        now = services.clock.now()
        waiting = await services.people.pending(now)
        if not code:
            if as_json:
                say_json([{"account": pairing.account.key, "name": pairing.name} for pairing in waiting])
                return
            for pairing in waiting:
                tell(f"{on_one_line(pairing.name)} ({pairing.account.platform}, id {pairing.account.user_id})")
            if not waiting:
                say("Nobody is waiting to be let in.")
            return
        wanted = "".join(sign for sign in code.upper() if sign.isalnum())
        for pairing in waiting:
            if pairing.code == wanted and sys.stdin.isatty() and not as_json:
                rights = " as yourself, with all your history" if owner else ""
                typer.confirm(f"Let in {on_one_line(pairing.name)} ({pairing.account.key}){rights}?", abort=True)
        approved = await services.people.approve(code, now, owner)
        if approved is None:
            fail("That code is wrong, was used, or is older than an hour. Ask for a new one.")
        if as_json:
            say_json({"account": approved.account.key, "name": approved.name, "is_owner": owner})
            return
        role = "is yours now and sees what you see" if owner else "may talk to me now, apart from your history"
        tell(f"{on_one_line(approved.name)} ({approved.account.platform}, id {approved.account.user_id}) {role}.")

    visit(work)


def _check(
    repair: Annotated[bool, typer.Option("--repair", help="Build the text indexes anew before the check.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the settings, the packages, SQLite, state.db, the model and the tokens: what is wrong and what to do."""

    from gateway.probes import checkup

    async def work() -> None:
        problems: tuple[str, ...] = ()
        settings = None
        try:
            settings = Settings.load()
            logs.configure(settings, settings.home / LOG)
        except SettingsError as error:
            problems = error.problems
        findings = [await _repaired(settings)] if repair and settings is not None else []
        findings += await checkup(settings, problems, _WallClock()).run()
        if as_json:
            say_json([{name: getattr(finding, name) for name in CheckResult.__slots__} for finding in findings])
        else:
            _show(findings)
        if any(finding.state == "wrong" for finding in findings):
            raise typer.Exit(1)

    finish(work())


async def _repaired(settings: Settings) -> CheckResult:
    """Builds the text indexes anew, to the end, and what is derived from them."""
    try:
        async with Services.open(settings) as services:
            messages = await services.recall.rebuild()
            while await services.recall.tend():
                pass
            facts = await FactIndex(services.database).rebuild()
    except MnemeError as error:
        return CheckResult(subject="repair", state="wrong", text=str(error).partition(" Run `mneme check`")[0])
    held = counted(messages, "message") + (f" and {counted(facts, 'fact')}" if facts else "")
    text = f"The text indexes were built anew from {held}."
    return CheckResult(subject="repair", state="right", text=text)


def _show(findings: list[CheckResult]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        text = Text(finding.text)
        if finding.advice:
            end = "" if finding.text.endswith(".") else "."
            text.append(f"{end} {finding.advice}", style="italic")
        table.add_row(Text(finding.state, style=_STYLES[finding.state]), finding.subject, text)
    console().print(table)


class _WallClock:
    """Fills the role Clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "of this folder, not installed"
