"""The command line `mneme`: what there is, and the commands that concern the whole house.

Whoever sits here is the owner. Answers go to standard output, everything else to standard error; no traceback is ever
shown.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import traceback
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Annotated

import structlog
import typer
from rich.table import Table
from rich.text import Text

from config.settings import Settings, SettingsError
from core.errors import MnemeError
from core.legible import legible, on_one_line
from core.store.fact_index import FactIndex
from gateway import journal
from gateway.cli_facts import add_facts
from gateway.cli_forget import add_forget
from gateway.cli_history import add_history
from gateway.cli_jobs import add_jobs
from gateway.cli_memory import add_memory
from gateway.cli_recall import add_recall
from gateway.cli_usage import add_usage
from gateway.cli_visit import (
    LOG,
    AsJson,
    console,
    counted,
    fail,
    finish,
    leaving,
    load,
    say,
    say_json,
    sentence_of,
    tell,
    visit,
)
from gateway.finding import Finding
from gateway.house import House
from gateway.packages import DISTRIBUTION, assert_own_packages

_STYLES = {"right": "green", "wrong": "bold red", "off": "dim"}


def main() -> None:
    """The entry point of the console script."""
    _furnish()
    sys.excepthook = _last_words
    threading.excepthook = lambda failed: _log("a thread failed", failed.exc_value)
    sys.unraisablehook = lambda failed: _log("something failed on its way out", failed.exc_value)
    # Whatever this process makes is for its owner's eyes only.
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    # Called as typer.Typer calls itself, but for the hook that it would put in place of ours.
    typer.main.get_command(app())(prog_name="mneme")


def _furnish() -> None:
    """Opens what is missing of the three standard streams on nothing: the next file that is opened would take the
    number of one, and be read or written as if it were it."""
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is the one that is missing.
            os.set_inheritable(os.open(os.devnull, flags), True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        say(f"mneme {_version()}")
        raise typer.Exit


def app() -> typer.Typer:
    """The whole command line."""
    root = typer.Typer(
        help="Mneme, a persistent assistant. Settings are in mneme.toml in $MNEME_HOME (~/.mneme).",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    root.callback()(_root)
    root.command("run")(_run)
    root.command("chat")(_chat)
    add_recall(root)
    add_history(root)
    add_memory(root)
    add_facts(root)
    add_forget(root)
    add_jobs(root)
    add_usage(root)
    root.command("approve")(_approve)
    root.command("check")(_check)
    return root


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
    journal.configure(settings, settings.home / LOG if is_chat else None)
    finish(_live(settings, chat_only=False, has_terminal=terminal))


def _chat() -> None:
    """Talk here. In a pipe: one message a line, answers on standard output, until the input ends."""
    settings = _settled()
    journal.configure(settings, settings.home / LOG)
    finish(_live(settings, chat_only=True, has_terminal=True))


def _settled() -> Settings:
    with leaving():
        assert_own_packages()
        return load()


async def _live(settings: Settings, *, chat_only: bool, has_terminal: bool) -> None:
    # Only what talks to platforms needs their clients, and these take a while to load.
    from gateway.app import run_house

    log = structlog.get_logger("mneme")
    named = [
        name for name, is_on in (("telegram", settings.is_telegram_on), ("discord", settings.is_discord_on)) if is_on
    ]
    platforms = [] if chat_only else named
    shown = [*platforms, "terminal"] if has_terminal or not platforms else platforms
    log.info("Mneme starts", version=_version(), home=str(settings.home), platforms=", ".join(shown))
    try:
        last = await run_house(settings, chat_only=chat_only, has_terminal=has_terminal)
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

    async def work(house: House) -> None:
        now = house.clock.now()
        waiting = await house.people.pending(now)
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
        approved = await house.people.approve(code, now, owner)
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
            journal.configure(settings, settings.home / LOG)
        except SettingsError as error:
            problems = error.problems
        findings = [await _repaired(settings)] if repair and settings is not None else []
        findings += await checkup(settings, problems, _WallClock()).run()
        if as_json:
            say_json([{name: getattr(finding, name) for name in Finding.__slots__} for finding in findings])
        else:
            _show(findings)
        if any(finding.state == "wrong" for finding in findings):
            raise typer.Exit(1)

    finish(work())


async def _repaired(settings: Settings) -> Finding:
    """Builds the text indexes anew, to the end, and what is derived from them."""
    try:
        async with House.open(settings) as house:
            messages = await house.recall.rebuild()
            while await house.recall.tend():
                pass
            facts = await FactIndex(house.database).rebuild()
    except MnemeError as error:
        return Finding(subject="repair", state="wrong", text=str(error).partition(" Run `mneme check`")[0])
    held = counted(messages, "message") + (f" and {counted(facts, 'fact')}" if facts else "")
    text = f"The text indexes were built anew from {held}."
    return Finding(subject="repair", state="right", text=text)


def _show(findings: list[Finding]) -> None:
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


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For what nobody expected: one sentence with what a report of it needs. Python then ends with exit code 1."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError):
        typer.echo(legible(sentence_of(error)), err=True)
        return
    if isinstance(error, KeyboardInterrupt):
        return
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f", {Path(last[0].filename).name} line {last[0].lineno}" if last else ""
    what = " ".join(str(error).split())[:200]
    typer.echo(legible(f"Mneme has failed: {type(error).__name__} {what}{place}. Please report this."), err=True)


def _log(event: str, error: BaseException | None) -> None:
    """For what fails where nobody waits for it; nothing of it is for whoever sits here."""
    logging.getLogger("mneme").warning("%s: %s %s", event, type(error).__name__, error)


if __name__ == "__main__":
    main()
