"""`mneme import`: brings history along from elsewhere, and says what was taken and what was not, and why."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from core.errors import Refused
from core.store.archive import ImportReport
from core.store.notes import Author, Operation
from core.types import Scope
from gateway import texts
from gateway.cli.runtime import AsJson, InScope, fail, say, say_json, visit
from gateway.commands.registry import CommandContext
from gateway.services import Services

if TYPE_CHECKING:
    from core.transfer.source import Source

STDIN = "-"
SHOWN_FILES = 5
"""Of a folder or an archive, how many are named."""


def add_commands(root: typer.Typer) -> None:
    root.command("import")(import_file)


def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, a folder or a zip archive; - reads stdin.")],
    scope: InScope = None,
    assistant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Who is an assistant in a Telegram export: name or id. May be repeated."),
    ] = None,
    me: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Who is you: what you said there counts as typed by you. May be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring history along: JSON lines (as `mneme export` writes them), Telegram Desktop's export (result.json, of a
    chat or of everything), the exports of ChatGPT and Claude (conversations.json), a Discord data package, the state.db
    of Hermes with the notes beside it; also in a folder or a zip archive.

    What is known is passed over, so an import that was interrupted goes on when it is started again.
    """
    from core.transfer.formats import Choices
    from core.transfer.source import Source

    async def work(services: Services, context: CommandContext) -> None:
        choices = Choices(
            scope=context.scope,
            zone=services.zone,
            assistants=frozenset(assistant or ()),
            own=frozenset(me or ()),
        )
        with _at(file) as (path, title), Source.open(path, choices, title) as source:
            with Console(stderr=True).status("reading") as status:
                report = await services.archive.import_records(
                    source.records(), lambda done: status.update(f"reading, {done:,} entries")
                )
                # So that the first question need not wait.
                status.update("indexing")
                while await services.recall.tend():
                    pass
            _show(report, source, as_json)
            await _take_notes(services, choices.scope, source.notes(), as_json)
        if report.broken:
            fail(f"{report.broken} What comes before that was taken in; import it again once it is whole.")
        if report.refused and not report.taken and not report.known:
            raise typer.Exit(1)

    visit(work, scope)


def _show(report: ImportReport, source: Source, as_json: bool) -> None:
    from core.transfer.source import KINDS

    if as_json:
        values = {name: getattr(report, name) for name in ImportReport.__slots__}
        values["sessions"] = len(report.sessions)
        values["notes"] = {target: len(entries) for target, entries in source.notes().items()}
        say_json({"kinds": source.kinds, **values})
        return
    known = f" ({report.known:,} {'was' if report.known == 1 else 'were'} known already)" if report.known else ""
    taken, sessions = texts.counted(report.taken, "message"), texts.counted(len(report.sessions), "session")
    say(f"This is a {' and a '.join(KINDS[kind] for kind in source.kinds)}.")
    if source.files:
        more = len(source.files) - SHOWN_FILES
        say(f"Read: {', '.join(source.files[:SHOWN_FILES])}{f' and {more:,} more' if more > 0 else ''}.")
    say(f"Took in {taken}{known}; {sessions} in the file.")
    if report.skipped:
        say("\n".join(["Not taken:", *(f"  {number:,} {reason}" for reason, number in report.skipped.most_common())]))
    if report.refused:
        more = report.refused - len(report.reasons)
        lines = [f"Refused {texts.counted(report.refused, 'line')}:", *(f"  {reason}" for reason in report.reasons)]
        typer.echo("\n".join([*lines, *([f"  and {more:,} more"] if more > 0 else [])]), err=True)


async def _take_notes(services: Services, scope: Scope, found: dict[str, list[str]], is_quiet: bool) -> None:
    """Takes the notes of Hermes; nobody typed them here, so they wait for a yes."""
    scopes = frozenset({scope})
    before = len(await services.notebook.review.waiting(scopes))
    for target, entries in found.items():
        for entry in entries:
            addition = [Operation(action="add", content=entry)]
            try:
                await services.notebook.apply(scope, scopes, target, addition, Author())
            except Refused as refusal:
                typer.echo(f"Not taken: {refusal}", err=True)
    waiting = len(await services.notebook.review.waiting(scopes)) - before
    if waiting and not is_quiet:
        say(f"{texts.counted(waiting, 'note')} wait for your yes: `mneme memory pending` lists them.")


@contextmanager
def _at(file: str) -> Iterator[tuple[Path, str]]:
    """The file's path and title; standard input is written down first, because it is read more than once."""
    if file != STDIN:
        yield Path(file), file
        return
    with tempfile.TemporaryDirectory(prefix="mneme-import-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path, "What came on stdin"
