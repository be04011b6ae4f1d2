"""Defines the shell commands `mneme recall`, `sessions`, `export` and `import`.

They search the history, list its sessions, and export or import messages.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast
from zoneinfo import ZoneInfo

import typer

from core.dates.schedule import load_zone
from core.errors import MnemeError, Refused
from core.notes.notebook import Notebook
from core.search.note_search import add_notes
from core.search.recall import HistorySearch
from core.search.rendering import describe_no_results, to_json, to_markdown
from core.search.results import MATCH_END, MATCH_START
from core.store.media.files import FileFilter
from core.store.notes import Author, Operation
from core.store.query import FileHit, ModelHelp, ResultLimits, SearchQuery, SearchResults
from core.types import LOCAL_SCOPE, BillingScope, Scope
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, Limit, Words, Yes
from gateway.commands.registry import CommandContext
from gateway.services import Services
from gateway.texts.catalog import SHELL as texts

if TYPE_CHECKING:
    from core.store.archive import ImportReport
    from core.transfer.formats import ImportOptions
    from core.transfer.source import Source

STDIN = "-"
# The report names at most this many files of a folder or archive.
_MAX_SHOWN_FILES = 5
# The beginning of a file that shows its format.
HEAD_BYTES = 32
# `mneme recall --files` without words lists at most this many files.
_MAX_LATEST_FILES = 10


def add_commands(root: typer.Typer) -> None:
    # A query may contain an excluded word, such as "-podman", which looks like an option.
    root.command("recall", context_settings={"ignore_unknown_options": True})(recall_command)
    root.command("sessions")(sessions_command)
    root.command("export")(export_command)
    root.command("import")(import_command)


def recall_command(  # noqa: PLR0913  Typer reads the options from the signature.
    query: Annotated[
        list[str] | None,
        typer.Argument(),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10)] = 3,
    messages: Annotated[int, typer.Option(min=0, max=1000)] = 0,
    window: Annotated[int, typer.Option(min=0, max=100)] = 5,
    summary: Annotated[
        bool,
        typer.Option("--summary"),
    ] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            "--expand",
            "--rerank",
        ),
    ] = False,
    files: Annotated[bool, typer.Option("--files")] = False,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """Search the history, in your own words.

    The result is a list of the best sessions, each with its best messages, and of the notes that
    match. Without a query, the latest sessions are listed.
    """
    search_query = SearchQuery(
        scopes=frozenset(),
        text=" ".join(query or ()),
        limits=ResultLimits(window=window, sessions=limit, messages=messages),
        help=ModelHelp(
            is_summarized=summary,
            is_expanded=deep,
            is_reranked=deep,
            billing=BillingScope(scope=LOCAL_SCOPE),
        ),
    )

    async def work(services: Services, context: CommandContext) -> object:
        visible_query = replace(search_query, scopes=context.scopes)
        async with _open_search(services, visible_query.help) as search:
            if visible_query.text == STDIN:
                await _answer_lines(search, services.notebook, visible_query)
                return None
            results = await search.recall(visible_query)
        if files:
            results = replace(results, sessions=(), messages=(), has_more=False)
        else:
            results = await add_notes(results, services.notebook, visible_query)
        if files and not visible_query.text.strip():
            results = replace(results, files=await _list_latest_files(services, visible_query))
        if not results.sessions and results.shape in ("read", "scroll"):
            raise Refused(describe_no_results(results, texts.result_words))
        if as_json:
            return to_json(results)
        _print_results(results, services.zone_of(context.zone))
        return None

    shell.run_as_owner(work, scope)


async def _list_latest_files(services: Services, query: SearchQuery) -> tuple[FileHit, ...]:
    """Return the latest files. Raises Refused if there are none."""
    files = await services.files.list_latest(query.scopes, FileFilter(), _MAX_LATEST_FILES)
    if not files:
        raise Refused(texts.NO_FILES_YET)
    return tuple(
        FileHit(file.id, file.name, file.kind, "", "", file.at, file.message_id) for file in files
    )


def _print_results(results: SearchResults, zone: ZoneInfo) -> None:
    """Print the sessions of a search, or a line for each message if messages were searched."""
    shell.print_markdown(to_markdown(results, zone, texts.result_words))
    for hit in results.messages:
        snippet = hit.snippet.replace(MATCH_START, "").replace(MATCH_END, "")
        shell.print_text(f"{hit.message_id} {snippet}")


@asynccontextmanager
async def _open_search(services: Services, model_help: ModelHelp) -> AsyncIterator[HistorySearch]:
    """Yield a search. It uses a model only if the query or the settings require one."""
    options = services.settings.recall
    needs_model = (
        model_help.is_expanded
        or model_help.is_summarized
        or model_help.is_reranked
        or options.expand
        or options.rerank
    )
    if not needs_model:
        yield services.recall
        return
    # Loading the client of the model takes a while.
    from core.models.wrappers import MeteredModel
    from core.search.expansion import ExpandedRecall
    from gateway.services import create_model_client

    clock = services.clock
    model = create_model_client(services.settings, clock)
    try:
        yield ExpandedRecall(
            services.recall,
            services.conversations,
            None if model is None else MeteredModel(model, services.usage_log, clock),
            services.settings.model.helper,
            clock,
            services.zone,
            options.expand,
            options.rerank,
        )
    finally:
        if model is not None:
            await model.close()


async def _answer_lines(search: HistorySearch, notebook: Notebook, query: SearchQuery) -> None:
    """Search for each line of stdin, and print one JSON object per line, even for a blank line.

    If a search fails, the field ``error`` of its object contains the reason.
    """
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        try:
            line_query = replace(query, text=text)
            results = await search.recall(line_query)
            shell.print_json(to_json(await add_notes(results, notebook, line_query)))
        except MnemeError as error:
            shell.print_json({"query": text, "error": str(error)})


def sessions_command(
    words: Words = None, limit: Limit = 20, scope: InScope = None, as_json: AsJson = False
) -> None:
    """List earlier conversations.

    The latest come first. With words, it lists the conversations that contain them.
    `mneme recall in:3` shows the conversation with the number 3.
    """
    words = words or []
    if words and words[0] == "list":
        words = words[1:]
    text = " ".join(words)

    async def work(services: Services, context: CommandContext) -> object:
        from gateway.commands.sessions import (
            find_sessions,
            list_sessions,
            read_message_number,
            session_to_json,
        )

        number = read_message_number(text)
        if number is not None:
            query = SearchQuery(scopes=context.scopes, text="", around=number)
            results = await services.recall.recall(query)
            if not results.sessions:
                raise Refused(describe_no_results(results, texts.result_words))
            if as_json:
                return to_json(results)
            _print_results(results, services.zone_of(context.zone))
            return None
        if as_json:
            sessions = await find_sessions(services, context.scopes, text, limit, texts)
            return [session_to_json(session) for session in sessions]
        return await list_sessions(services, context, text, limit)

    shell.run_as_owner(work, scope)


def export_command(
    scope: InScope = None,
    ics: Annotated[bool, typer.Option("--ics")] = False,
    everything: Annotated[bool, typer.Option("--all")] = False,
) -> None:
    """Write all messages as JSON lines.

    Commands, tool calls and their results are left out. With --ics, your reminders are written as a
    calendar file, which Thunderbird and Google Calendar can read.

    With --all, the output is one compressed file with everything but secrets: people, groups,
    links, messages, jobs, notes, facts, skills, usage and settings. `mneme import` reads it in a
    new home: mneme export --all > mneme.tar.gz
    """
    shell.refuse_empty("--scope", scope)
    if everything:
        if scope is not None or ics:
            shell.fail(texts.compose("all_alone"), exit_code=2)
        # Imported here because few exports need it.
        from gateway.cli.backups import write_everything

        write_everything(sys.stdout.buffer)
        return

    async def work(services: Services, context: CommandContext) -> None:
        if ics:
            await _write_calendar(services, context)
        else:
            await _write_messages(services, context, is_owners=scope is None)

    shell.run_as_owner(work, scope)


async def _write_calendar(services: Services, context: CommandContext) -> None:
    """Write the reminders as a calendar file to standard output."""
    from core.dates.calendar_file import write_calendar
    from core.scheduling.rules import list_calendar_entries

    jobs = await services.jobs.list_visible(context.scopes)
    entries = list_calendar_entries(jobs, services.clock.now())
    sys.stdout.buffer.write(write_calendar(entries))
    sys.stdout.buffer.flush()


async def _write_messages(services: Services, context: CommandContext, *, is_owners: bool) -> None:
    """Write the messages as JSON lines. Exit with code 1 if some of them can't be read."""
    from core.transfer.formats import format_line

    unreadable: list[None] = []
    async for message in services.archive.export(context.scopes, lambda: unreadable.append(None)):
        typer.echo(format_line(message, is_owners=is_owners))
    if unreadable:
        count = texts.format_count(len(unreadable), "message")
        typer.echo(texts.EXPORT_INCOMPLETE.format(messages=count), err=True)
        raise typer.Exit(1)


def _import_calendar(path: Path, scope: str | None, *, is_confirmed: bool) -> None:
    """Set a reminder for each event and task of a calendar file, after a confirmation."""

    async def work(services: Services, context: CommandContext) -> None:
        from core.dates.calendar_file import read_calendar
        from gateway.commands.calendars import describe_items, set_reminders

        try:
            content = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            reason = texts.word_stored(error.strerror or str(error))
            message = texts.compose("file_unreadable", path=path, reason=reason)
            raise Refused(message) from error
        zone = load_zone(await services.appointments.zone_of(context.account))
        items = read_calendar(content, services.clock.now(), zone)
        if not items:
            typer.echo(texts.CALENDAR_EMPTY)
            return
        if not is_confirmed:
            shell.require_yes(describe_items(texts, items, zone))
        shell.print_text(await set_reminders(services, items, zone, context))

    shell.run_as_owner(work, scope)


def import_command(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE"),
    ],
    scope: InScope = None,
    assistant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
        ),
    ] = None,
    me: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
        ),
    ] = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    """Import history from another program, or reminders from a calendar file.

    It reads JSON lines as `mneme export` writes them, the export of Telegram Desktop (result.json,
    of one chat or of all), the exports of ChatGPT and Claude (conversations.json), a Discord data
    package, and the state.db of Hermes together with its notes. Each may be in a folder or a zip
    archive of up to 100,000 entries and 4 GB unpacked.

    Messages that are already known are skipped, so you can repeat an interrupted import.

    The events and tasks of a calendar file (trip.ics) become reminders. They are listed first, and
    you're asked to confirm.

    A file from `mneme export --all` is restored unchanged into a new home.
    """
    # Imported here because other commands of this module don't need it.
    from core.transfer.backup import looks_like_backup

    shell.refuse_empty("FILE", file)
    for option, names in (("--assistant", assistant), ("--me", me)):
        for name in names or ():
            shell.refuse_empty(option, name)
    # A stream is read again after a look at its beginning.
    stream = BufferedReader(cast(Any, sys.stdin.buffer)) if file == STDIN else None
    if stream is None:
        is_archive = is_archive_of_home(Path(file))
    else:
        is_archive = looks_like_backup(stream.peek())
    if is_archive:
        # Imported here because few imports need it.
        from gateway.cli.backups import import_everything

        with shell.exit_on_error(), _save_stream(file, stream) as path:
            import_everything(path, is_confirmed=yes)
        return
    if file.lower().endswith(".ics"):
        _import_calendar(Path(file), scope, is_confirmed=yes)
        return

    async def work(services: Services, context: CommandContext) -> None:
        from core.transfer.formats import ImportOptions

        options = ImportOptions(
            scope=context.scope,
            own_scopes=context.scopes,
            zone=services.zone,
            assistant_names=frozenset(assistant or ()),
            own_names=frozenset(me or ()),
        )
        await _import_history(services, stream or Path(file), options, as_json=as_json)

    shell.run_as_owner(work, scope)


def is_archive_of_home(path: Path) -> bool:
    """Return whether a file looks like a file of `mneme export --all`."""
    from core.transfer.backup import looks_like_backup

    try:
        with path.open("rb") as content:
            return looks_like_backup(content.read(HEAD_BYTES))
    except OSError:
        # The import reports it.
        return False


@contextmanager
def _save_stream(file: str, stream: BufferedReader | None) -> Iterator[Path]:
    """Yield the path of a file. The standard input is first copied to a temporary file."""
    if stream is None:
        yield Path(file)
        return
    with tempfile.TemporaryDirectory(prefix="mneme-import-") as folder:
        path = Path(folder, "stdin")
        with path.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
        yield path


async def _import_history(
    services: Services, origin: Path | BinaryIO, options: ImportOptions, *, as_json: bool
) -> None:
    """Import a path or a stream, and print a report.

    Exits with code 1 if nothing could be imported.
    """
    from rich.console import Console

    from core.transfer.source import Source

    with ExitStack() as stack:
        with Console(stderr=True).status(texts.compose("reading")):
            source = stack.enter_context(Source.open(origin, options))
        report = await _import_records(services, source)
        notes = source.read_notes()
        if as_json:
            _print_report_as_json(report, source, notes)
        else:
            _print_report(report, source)
        await _propose_notes(services, options.scope, notes, is_quiet=as_json)
    if report.read_error:
        shell.fail(f"{report.read_error} {texts.compose('import_broken')}")
    if report.refused_count and not report.imported_count and not report.known_count:
        raise typer.Exit(1)


async def _import_records(services: Services, source: Source) -> ImportReport:
    """Import the records of a source and index them, with a progress line on standard error."""

    from rich.console import Console

    def show_progress(count: int) -> None:
        status.update(texts.compose("reading_entries", count=texts.format_number(count)))

    with Console(stderr=True).status(texts.compose("reading")) as status:
        report = await services.archive.import_records(source.read_records(), show_progress)
        # Index the messages now, because otherwise the first search would have to do it.
        status.update(texts.compose("indexing"))
        while await services.recall.tend():
            pass
    return report


def _print_report_as_json(
    report: ImportReport, source: Source, notes: Mapping[str, Sequence[str]]
) -> None:
    """Print how many messages were imported, known, refused and skipped, as JSON.

    The JSON object also has the reasons.
    """
    shell.print_json(
        {
            "kinds": source.kinds,
            "lines": report.line_count,
            "taken": report.imported_count,
            "known": report.known_count,
            "refused": report.refused_count,
            "sessions": len(report.session_ids),
            "reasons": report.reasons,
            "skipped": report.skipped_counts,
            "broken": report.read_error,
            "notes": {target: len(entries) for target, entries in notes.items()},
        }
    )


def _print_report(report: ImportReport, source: Source) -> None:
    """Print which files were read, and how many messages were imported, skipped and refused.

    At most `_MAX_SHOWN_FILES` files are named.
    """
    formats = texts.join_list([texts.compose(f"format_{kind}") for kind in source.kinds])
    typer.echo(texts.compose("import_format", formats=formats))
    if source.file_names:
        names = ", ".join(source.file_names[:_MAX_SHOWN_FILES])
        unnamed_count = len(source.file_names) - _MAX_SHOWN_FILES
        if unnamed_count > 0:
            names += f", {texts.compose('more', count=texts.format_number(unnamed_count))}"
        typer.echo(texts.compose("import_read", names=names))

    messages = texts.format_count(report.imported_count, "message")
    sessions = texts.format_count(len(report.session_ids), "session")
    sentence = texts.compose("imported", messages=messages, sessions=sessions)
    if report.known_count:
        known_messages = texts.format_count(report.known_count, "message")
        sentence += f" {texts.compose('known_already', messages=known_messages)}"
    typer.echo(sentence)

    if report.skipped_counts:
        typer.echo(texts.compose("skipped"))
        for reason, count in report.skipped_counts.most_common():
            values = {"count": texts.format_number(count), "reason": texts.word_stored(reason)}
            typer.echo(f"  {texts.compose('skipped_kind', **values)}")
    if report.refused_count:
        _print_refused_lines(report)


def _print_refused_lines(report: ImportReport) -> None:
    """Print how many lines were refused, and why, to standard error."""
    lines = texts.format_count(report.refused_count, "line")
    typer.echo(texts.compose("rejected", lines=lines), err=True)
    for reason in report.reasons:
        typer.echo(f"  {texts.word_stored(reason)}", err=True)
    unnamed_count = report.refused_count - len(report.reasons)
    if unnamed_count > 0:
        more = texts.compose("more", count=texts.format_number(unnamed_count))
        typer.echo(f"  {more}", err=True)


async def _propose_notes(
    services: Services, scope: Scope, notes: Mapping[str, Sequence[str]], *, is_quiet: bool
) -> None:
    """Store imported notes as pending, so that the owner confirms them first.

    If `is_quiet`, no hint about the pending notes is printed.
    """
    scopes = frozenset({scope})
    for target, entries in notes.items():
        for entry in entries:
            addition = Operation(action="add", content=entry)
            try:
                await services.notebook.apply(scope, scopes, target, [addition], Author())
            except Refused as refusal:
                reason = texts.word(refusal)
                typer.echo(texts.compose("note_not_imported", reason=reason), err=True)
    pending = await services.notebook.review.list_pending(scopes)
    if notes and pending and not is_quiet:
        count = texts.format_count(len(pending), "note")
        typer.echo(texts.compose("notes_wait", notes=count))
