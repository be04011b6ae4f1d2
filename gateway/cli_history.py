"""`mneme sessions`, `mneme import`, `mneme export`: conversations to look at, to bring along and to take away."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from core.records import ImportReport
from core.types import Session
from gateway.cli_visit import AsJson, InScope, console, fail, local, say, say_json, seen, visit
from gateway.house import House

TITLE_CHARS = 120
ID = Annotated[int, typer.Argument(metavar="ID", help="The number of a session.")]


def add_history(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    sessions = typer.Typer(help="Earlier conversations: list, show, title, export.")
    sessions.callback(invoke_without_command=True)(_sessions)
    sessions.command("list")(_list)
    sessions.command("show")(_show)
    sessions.command("title")(_title)
    sessions.command("export")(_export_one)
    app.add_typer(sessions, name="sessions")
    app.command("import")(_import)
    app.command("export")(_export)


def _sessions(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        _list()


def _list(
    text: Annotated[str, typer.Argument(help="Only those with these words in title or first message.")] = "",
    limit: Annotated[int, typer.Option(help="How many, the latest first.")] = 20,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """List the latest sessions."""

    async def work(house: House) -> None:
        found = await house.transcripts.recent(await seen(house, scope), limit, text or None)
        if as_json:
            say_json([_object(session) for session in found])
            return
        if not found:
            say("There are no sessions.")
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("Session", "When", "Platform", "Messages"):
            table.add_column(name, no_wrap=True, justify="right" if name in ("Session", "Messages") else "left")
        table.add_column("Title", overflow="fold")
        for session in found:
            when = local(house, session.last_at or session.started_at)
            title = Text(session.title or "")
            table.add_row(str(session.id), when, session.address.platform, str(session.messages), title)
        console().print(table)

    visit(work)


def _show(session_id: ID, scope: InScope = None, as_json: AsJson = False) -> None:
    """Show what was said in a session."""

    async def work(house: House) -> None:
        scopes = await seen(house, scope)
        session = await _found(house, session_id, scope)
        messages = await house.transcripts.transcript(session.id, scopes)
        if as_json:
            said = [
                {
                    "message_id": message.id,
                    "role": message.role,
                    "sender": message.sender.name if message.sender else None,
                    "at": message.created_at.isoformat(),
                    "text": message.text,
                }
                for message in messages
            ]
            say_json({**_object(session), "messages": said})
            return
        say(f"Session {session.id}, {session.title or 'without a title'}, {local(house, session.started_at)}\n")
        for message in messages:
            name = (message.sender.name if message.sender else "") or message.role
            head = f"{message.id}  {local(house, message.created_at)}  {name}: "
            console().print(Text.assemble((head, "dim"), message.text))

    visit(work)


def _title(session_id: ID, text: Annotated[str, typer.Argument(help="The title.")], scope: InScope = None) -> None:
    """Give a session a title."""
    title = " ".join(text.split())
    if not title or len(title) > TITLE_CHARS:
        raise typer.BadParameter(f"a title has 1 to {TITLE_CHARS} characters", param_hint="TEXT")

    async def work(house: House) -> None:
        session = await _found(house, session_id, scope)
        await house.conversations.retitle(session.id, title)
        say(f"Session {session.id} is called “{title}” now.")

    visit(work)


def _export_one(session_id: ID, scope: InScope = None) -> None:
    """Write one session as JSON lines."""

    async def work(house: House) -> None:
        session = await _found(house, session_id, scope)
        async for line in house.archive.export(frozenset({session.scope}), session.id):
            say(line)

    visit(work)


def _export(scope: InScope = None) -> None:
    """Write all history as JSON lines, one message a line; what tools were asked and answered is left out."""

    async def work(house: House) -> None:
        scopes = await seen(house, scope)
        async for line in house.archive.export(scopes):
            say(line)
        if count := await house.archive.left_out(scopes):
            typer.echo(f"Left out: {_count(count, 'message')} of tools, or with calls of tools in them.", err=True)

    visit(work)


def _import(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON lines, one message a line; - reads them from stdin.")
    ],
    as_json: AsJson = False,
) -> None:
    """Bring history along. The same file may be imported again: what is known is passed over."""

    async def work(house: House) -> None:
        with _lines(file) as (stream, total), _bar() as bar:
            task = bar.add_task("lines", total=total)
            report = await house.archive.import_lines(stream, lambda done: bar.update(task, completed=done))
        if as_json:
            say_json({name: getattr(report, name) for name in ImportReport.__slots__})
        else:
            _tell(report)
        if report.refused and not report.taken and not report.known:
            raise typer.Exit(1)

    visit(work)


def _tell(report: ImportReport) -> None:
    known = f", {report.known:,} were known already" if report.known else ""
    say(f"Took in {_count(report.taken, 'message')}; {_count(report.sessions, 'session')} in the file{known}.")
    if report.refused:
        typer.echo(f"Refused {_count(report.refused, 'line')}:", err=True)
        for reason in report.reasons:
            typer.echo(f"  {reason}", err=True)
        if report.refused > len(report.reasons):
            typer.echo(f"  and {report.refused - len(report.reasons):,} more", err=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def _lines(file: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file's lines, and how many there are where that can be known beforehand."""
    if str(file) == "-":
        yield sys.stdin.buffer, None
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.")
    with stream:
        total = None
        if stream.seekable():
            total = sum(1 for _ in stream)
            stream.seek(0)
        yield stream, total


def _bar() -> Progress:
    """Progress on standard error, for people only."""
    shown = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=shown, transient=True, disable=not sys.stderr.isatty())


async def _found(house: House, session_id: int, scope: str | None) -> Session:
    session = await house.conversations.find(session_id, await seen(house, scope))
    if session is None:
        fail(f"There is no session {session_id}.")
    return session


def _object(session: Session) -> dict[str, object]:
    values: dict[str, object] = {
        "session_id": session.id,
        "external_session": session.external_id,
        "title": session.title,
        "platform": session.address.platform,
        "address": session.address.key,
        "scope": session.scope.key,
        "started_at": session.started_at.isoformat(),
        "last_at": session.last_at.isoformat() if session.last_at else None,
        "ended_at": session.ended_at.isoformat() if session.ended_at else None,
        "messages": session.messages,
    }
    return {key: value for key, value in values.items() if key != "external_session" or value is not None}
