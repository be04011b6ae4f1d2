"""Copies the store to a PostgreSQL server, or from there to a file: `mneme store copy`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from config.settings import Settings
from core.transfer.store_copy import Progress
from gateway import logs
from gateway.cli import shell
from gateway.cli.shell import AsJson
from gateway.texts.catalog import SHELL as texts
from gateway.upkeep.store_copying import CopyResult, copy_store

Target = Annotated[str, typer.Option("--to", metavar="TARGET")]


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    shell.add_group(root, "store", {"copy": copy_command})


def copy_command(target: Target, as_json: AsJson = False) -> None:
    """Copy everything in the store to a PostgreSQL server, or from there to a new file.

    Stop Mneme first. Both sides are compared at the end. If the copy is interrupted, run the
    command again: it continues where it stopped. Settings don't change.
    """

    async def work(settings: Settings) -> CopyResult:
        general = settings.general.model_copy(update={"log_level": "warning"})
        log_settings = settings.model_copy(update={"general": general})
        logs.configure(log_settings, settings.home / shell.LOG_FILE_NAME)
        with _show_progress(is_quiet=as_json) as on_progress:
            return await copy_store(settings, target, on_progress)

    with shell.exit_on_error():
        settings = Settings.load()
        result = asyncio.run(work(settings))
        if as_json:
            shell.print_json(_to_json(result))
        else:
            shell.print_text(_describe(result, settings, target))


@contextmanager
def _show_progress(*, is_quiet: bool) -> Iterator[Progress]:
    """Show how many rows are copied if stderr is a terminal."""
    if is_quiet or not sys.stderr.isatty():
        yield lambda table, done, total: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:

        def show(table: str, done: int, total: int) -> None:
            key = "copy_progress" if table else "copy_indexing"
            status.update(texts.compose(key, table=table, done=done, total=total))

        yield show


def _describe(result: CopyResult, settings: Settings, target: str) -> str:
    """Return sentences about the copied and compared data, and about the next steps."""
    report = result.report
    sentences = [
        texts.compose("copied", rows=report.rows, tables=report.tables, target=result.target),
        texts.compose("copy_recall", equal=report.equal_samples, samples=report.samples),
    ]
    if report.repaired:
        sentences.append(texts.compose("copy_repaired", count=report.repaired))
    sentences.append(texts.compose("copy_files", home=settings.home))
    key = "copy_use_server" if result.is_on_server else "copy_use_file"
    sentences.append(texts.compose(key, target=target))
    return "\n".join(sentences)


def _to_json(result: CopyResult) -> dict[str, Any]:
    report = result.report
    return {
        "target": result.target,
        "tables": report.tables,
        "rows": report.rows,
        "replaced_texts": report.repaired,
        "equal_searches": report.equal_samples,
        "searches": report.samples,
    }
