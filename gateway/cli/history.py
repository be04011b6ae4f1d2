"""`mneme recall`, `sessions`, `export`, `import`: what was said, to be found, looked at, taken away, brought along."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import MnemeError, Refused
from core.search.recall import HistorySearch
from core.search.results import CLOSE, OPEN, no_results, to_json, to_markdown
from core.store.archive import ImportReport
from core.store.notes import Author, Operation
from core.store.query import SearchQuery
from core.types import LOCAL, Payer, Scope, Session
from gateway import texts
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, Limit, Words
from gateway.commands.registry import CommandContext
from gateway.commands.sessions import find_sessions, list_sessions
from gateway.services import Services

if TYPE_CHECKING:
    from core.transfer.source import Source

STDIN = "-"
SHOWN_FILES = 5
"""Of a folder or an archive, how many are named."""


def add_commands(root: typer.Typer) -> None:
    for command in (recall, sessions, export):
        root.command(command.__name__)(command)
    root.command("import")(import_file)


def recall(  # noqa: PLR0913  The options are read off the signature.
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to look for, in your own words; filters may stand in it (from:Ana before:May on:telegram in:12 "
            "around:345 page:2); - reads one query a line."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10, help="How many sessions.")] = 3,
    messages: Annotated[int, typer.Option(min=0, max=1000, help="Add the N best messages over all sessions.")] = 0,
    window: Annotated[int, typer.Option(min=0, max=100, help="How many messages on each side of around:345.")] = 5,
    summary: Annotated[
        bool, typer.Option("--summary", help="Add a summary to each session, by the model; takes up to 90 seconds.")
    ] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="Also search for what the model makes of the question; takes seconds.")
    ] = False,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Have the model put what is found in order; takes seconds.")
    ] = False,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """Find what was said, in your own words.

    Sessions with the best match and what stands around it; without a query, the latest ones.
    """
    text = " ".join(query or ())

    async def work(services: Services, context: CommandContext) -> object:
        asked = SearchQuery(scopes=context.scopes, text=text, window=window, limit=limit, messages=messages)
        asked = replace(asked, is_summarized=summary, is_expanded=expand, is_reranked=rerank, payer=Payer(scope=LOCAL))
        async with _searching(services, asked) as search:
            if text == STDIN:
                await _stream(search, asked)
                return None
            results = await search.recall(asked)
        if not results.sessions and results.shape in ("read", "scroll"):
            raise Refused(no_results(results))
        if as_json:
            return to_json(results)
        shell.show(to_markdown(results, services.zone))
        for hit in results.messages:
            shell.tell(f"{hit.message_id} {hit.snippet.replace(OPEN, '').replace(CLOSE, '')}")
        return None

    shell.visit(work, scope)


@asynccontextmanager
async def _searching(services: Services, query: SearchQuery) -> AsyncIterator[HistorySearch]:
    """What answers the query; a model helps only where that is asked for."""
    unasked = services.settings.recall.expand, services.settings.recall.rerank
    if not any((query.is_expanded, query.is_summarized, query.is_reranked, *unasked)):
        yield services.recall
        return
    from core.models.wrappers import MeteredModel
    from core.search.expansion import ExpandedRecall
    from gateway.services import client

    settings = services.settings
    model = client(settings, services.clock)
    try:
        helper = None if model is None else MeteredModel(model, services.usage_log, services.clock)
        cheap = settings.model.helper
        conversations, clock = services.conversations, services.clock
        yield ExpandedRecall(services.recall, conversations, helper, cheap, clock, services.zone, *unasked)
    finally:
        if model is not None:
            await model.close()


async def _stream(search: HistorySearch, query: SearchQuery) -> None:
    """One JSON object for each line, also a blank one; what fails says so in ``error``."""
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        try:
            shell.say_json(to_json(await search.recall(replace(query, text=text))))
        except MnemeError as error:
            shell.say_json({"query": text, "error": str(error)})


def sessions(words: Words = None, limit: Limit = 20, scope: InScope = None, as_json: AsJson = False) -> None:
    """Earlier conversations: the latest, or those with these words; `mneme recall in:3` shows number 3."""
    text = " ".join(words[1:] if words and words[0] == "list" else words or ())

    async def work(services: Services, context: CommandContext) -> object:
        if as_json:
            return [_object(one) for one in await find_sessions(services, context.scopes, text, limit)]
        return await list_sessions(services, context, text, limit)

    shell.visit(work, scope)


def export(scope: InScope = None) -> None:
    """Write all history as JSON lines, one message a line.

    Calls of tools and what they returned, and commands, are left out.
    """

    async def work(services: Services, context: CommandContext) -> None:
        from core.transfer.formats import to_line

        async for record in services.archive.export(context.scopes):
            typer.echo(to_line(record))

    shell.visit(work, scope)


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
    of Hermes with the notes beside it; also in a folder or a zip archive (100,000 entries, 4 GB unpacked).

    What is known is passed over, so an import that was interrupted goes on when it is started again.
    """
    from rich.console import Console

    from core.transfer.formats import Choices
    from core.transfer.source import Source

    async def work(services: Services, context: CommandContext) -> None:
        assistants, own = frozenset(assistant or ()), frozenset(me or ())
        choices = Choices(scope=context.scope, zone=services.zone, assistants=assistants, own=own)
        with Source.open(sys.stdin.buffer if file == STDIN else Path(file), choices) as source:
            with Console(stderr=True).status("reading") as status:
                report = await services.archive.import_records(
                    source.records(), lambda done: status.update(f"reading, {done:,} entries")
                )
                # So that the first question need not wait.
                status.update("indexing")
                while await services.recall.tend():
                    pass
            _show_report(report, source, as_json)
            await _take_notes(services, choices.scope, source.notes(), as_json)
        if report.broken:
            shell.fail(f"{report.broken} What comes before that was taken in; import it again once it is whole.")
        if report.refused and not report.taken and not report.known:
            raise typer.Exit(1)

    shell.visit(work, scope)


def _show_report(report: ImportReport, source: Source, as_json: bool) -> None:
    from core.transfer.source import FORMATS

    if as_json:
        values = {name: getattr(report, name) for name in ImportReport.__slots__}
        values["sessions"] = len(report.sessions)
        values["notes"] = {target: len(entries) for target, entries in source.notes().items()}
        shell.say_json({"kinds": source.kinds, **values})
        return
    known = f" ({report.known:,} {'was' if report.known == 1 else 'were'} known already)" if report.known else ""
    taken, sessions = texts.counted(report.taken, "message"), texts.counted(len(report.sessions), "session")
    typer.echo(f"This is a {' and a '.join(FORMATS[kind][0] for kind in source.kinds)}.")
    if source.files:
        more = len(source.files) - SHOWN_FILES
        typer.echo(f"Read: {', '.join(source.files[:SHOWN_FILES])}{f' and {more:,} more' if more > 0 else ''}.")
    typer.echo(f"Took in {taken}{known}; {sessions} in the file.")
    if report.skipped:
        typer.echo("Not taken:")
    for reason, number in report.skipped.most_common():
        typer.echo(f"  {number:,} {reason}")
    if report.refused:
        more = report.refused - len(report.reasons)
        lines = [f"Refused {texts.counted(report.refused, 'line')}:", *(f"  {reason}" for reason in report.reasons)]
        typer.echo("\n".join([*lines, *([f"  and {more:,} more"] if more > 0 else [])]), err=True)


async def _take_notes(services: Services, scope: Scope, found: dict[str, list[str]], is_quiet: bool) -> None:
    """Takes the notes of Hermes; nobody typed them here, so they wait for a yes."""
    scopes = frozenset({scope})
    for target, entries in found.items():
        for entry in entries:
            addition = [Operation(action="add", content=entry)]
            try:
                await services.notebook.apply(scope, scopes, target, addition, Author())
            except Refused as refusal:
                typer.echo(f"Not taken: {refusal}", err=True)
    waiting = len(await services.notebook.review.waiting(scopes))
    if found and waiting and not is_quiet:
        typer.echo(f"{texts.counted(waiting, 'note')} wait for your yes: `mneme memory pending` lists them.")


def _object(session: Session) -> dict[str, object]:
    return {
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
