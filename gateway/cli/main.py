"""The command line `mneme`: where a process begins and ends, and what commands there are.

Whoever sits here is the owner. Answers go to standard output, everything else to standard error; no traceback is ever
shown, also when it ends while it is still loading.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from config.masking import masked
from core.text.normalize import legible

if TYPE_CHECKING:
    import typer

MODULES: Mapping[str, Sequence[str]] = {
    "run": ("run", "chat", "remind", "cron", "approve", "people", "status", "usage", "check"),
    "memory": ("memory", "remember", "facts", "forget", "skills"),
    "history": ("recall", "sessions", "export", "import"),
}
"""The commands of each module beside this one."""


def main() -> None:
    # A stream that is missing leads nowhere, or the next file that is opened would take its number.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    sys.excepthook = _last_words
    threading.excepthook = sys.unraisablehook = _log
    # All files of this process are the owner's alone.
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    from typer.main import get_command

    # As typer.Typer calls itself, but for the hook that it would put in place of ours.
    get_command(app(sys.argv[1:]))(prog_name="mneme")


def app(words: Sequence[str] = ()) -> typer.Typer:
    """All commands; of what `words` name, that one alone, because the others take a while to load."""
    import typer

    root = typer.Typer(
        help="Mneme, a persistent assistant. Settings are in mneme.toml in $MNEME_HOME (~/.mneme).",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show(is_wanted: bool) -> None:
        if is_wanted:
            typer.echo(f"mneme {version('mneme-gateway')}")
            raise typer.Exit

    show_version = typer.Option(False, "--version", help="Show the version and leave.", is_eager=True, callback=show)

    @root.callback()
    def _root(is_version: bool = show_version) -> None:
        """What stands before a command."""

    first = next(iter(words), "")
    named = [module for module, commands in MODULES.items() if first in commands]
    for module in () if first == "--version" else named or MODULES:
        import_module(f"gateway.cli.{module}").add_commands(root)
    return root


def _last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Reports an unexpected error in one sentence; Python then ends with exit code 1."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        return
    if isinstance(error, OSError):
        from gateway.cli.shell import sentence_of

        said = sentence_of(error)
    else:
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = f", {Path(last[0].filename).name} line {last[0].lineno}" if last else ""
        what = " ".join(masked(str(error)).split())[:200]
        said = f"Mneme has failed: {type(error).__name__} {what}{place}. Please report this."
    sys.stderr.write(f"{legible(said)}\n")


def _log(failed: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """Of a thread, or of something that failed while it was cleared away."""
    error = failed.exc_value
    logging.getLogger("mneme").warning("failed in the background: %s %s", type(error).__name__, error)


if __name__ == "__main__":
    main()
