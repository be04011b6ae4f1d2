"""The entry point of the command line `mneme`.

Only the module of the given command is loaded. The owner is the only user of this command line.
Answers go to standard output, everything else to standard error. Errors never show a traceback, not
even while modules are being loaded.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gateway.installation import find_foreign_package, hide_packages

if TYPE_CHECKING:
    import typer

# The commands that each module of this package adds, with their lines in `mneme --help`. That loads
# no module, so a test compares the lines with what the commands say themselves.
COMMANDS_BY_MODULE: Mapping[str, Mapping[str, str]] = {
    "run": {
        "run": "Start Mneme on every platform that has a token.",
        "chat": "Chat in this terminal, also while Mneme runs.",
        "remind": 'Set a reminder, such as "tomorrow at 9 call Ana".',
        "cron": "List and change reminders and scheduled questions.",
        "approve": "Approve a pairing or link code.",
        "people": "List who has access, or end someone's access.",
        "status": "Show the state of platforms, model, memory and store.",
        "usage": "Show what the model has cost.",
        "check": "Check the settings, SQLite, state.db, the model and the tokens.",
    },
    "web": {
        "web": "Open what Mneme knows in your browser, for this machine only.",
    },
    "outbox": {
        "outbox": "Show messages that couldn't be delivered, and send them again or delete them.",
    },
    "media": {
        "media": "Show the files that people sent, and remove them.",
    },
    "setup.wizard": {
        "setup": (
            "Set up Mneme: time zone, model, Telegram, Discord, earlier conversations, backups,"
            " service."
        ),
    },
    "setup.service": {
        "service": "Run Mneme in the background, also after you log out or restart the machine.",
    },
    "configuration": {
        "config": "Show and change the settings in mneme.toml and secrets.env.",
    },
    "mcp_servers": {
        "mcp": "Connect programs and services whose tools the model may use (MCP servers).",
    },
    "completion": {
        "completion": (
            "Print the script with which your shell completes commands and options of mneme."
        ),
    },
    "backups": {
        "backup": "Copy everything into one file, also while Mneme runs.",
        "restore": "Replace everything by a backup, while Mneme is stopped.",
        "upgrade": "Say how Mneme was installed, and what to type to update it.",
    },
    "memory": {
        "memory": "Show and change notes and facts, and set up memory services.",
        "remember": 'Remember a fact, such as "Ana\'s birthday is on 3 May".',
        "facts": "List what Mneme knows.",
        "forget": "Erase all messages about a subject.",
        "skills": "Procedures that the assistant follows: folders with a SKILL.md.",
    },
    "history": {
        "recall": "Search the history, in your own words.",
        "sessions": "List earlier conversations.",
        "export": "Write all messages as JSON lines.",
        "import": "Import history from another program, or reminders from a calendar file.",
    },
}
HELP_OPTIONS = ("-h", "--help")
# `mneme` without a command prints this.
WELCOME = """\
Mneme is an assistant that remembers. What would you like to do?
  mneme setup         set it up: a model, Telegram, Discord
  mneme chat          talk to it in this terminal
  mneme run           start it on Telegram and Discord
  mneme --help        list all commands\
"""


def main() -> None:
    """Run the command line.

    If a package of another program would be imported in place of one of ours, exit with a message.
    """
    problem = find_foreign_package()
    if problem:
        sys.exit(problem)
    _open_missing_streams()
    _listen_to_ctrl_c()
    sys.excepthook = _report_crash
    threading.excepthook = _log_background_error
    sys.unraisablehook = _log_background_error
    # Only the owner may read the files of this process.
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    words = sys.argv[1:]
    from typer.main import get_command

    with _hide_early_typing(words):
        with _load_less():
            command = get_command(app(words))
        # Calling the typer app directly would replace our `sys.excepthook` with typer's.
        command(prog_name="mneme")


@contextmanager
def _load_less() -> Iterator[None]:
    """Load modules without the work that no command needs.

    The garbage collector would look for garbage among modules, again and again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _hide_early_typing(words: Sequence[str]) -> Iterator[None]:
    """While a chat starts, leave typed text to its prompt, which then shows it once.

    Otherwise, the terminal would echo it above the greeting, and the prompt would show it again.
    """
    is_chat = words[:1] == ["chat"] or (words[:1] == ["run"] and "--terminal" in words)
    if not (is_chat and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    attributes = termios.tcgetattr(descriptor)
    silent = [*attributes]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


def app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the command line. If `words` begin with a command, only its module is loaded.

    For the list of all commands, none is. Loading all modules would take a second.
    """
    import typer
    from typer.core import TyperGroup

    class RootGroup(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Print a short introduction if there is no command.

            Shell completion also parses without arguments, but must not print anything.
            """
            if not args and not ctx.resilient_parsing:
                typer.echo(WELCOME)
                ctx.exit()
            return super().parse_args(ctx, args)

    root = typer.Typer(
        cls=RootGroup,
        help="Mneme, a persistent assistant. Settings are in mneme.toml in $MNEME_HOME (~/.mneme).",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
    )

    def print_version(is_wanted: bool) -> None:
        if is_wanted:
            from importlib.metadata import version

            typer.echo(f"mneme {version('mneme-gateway')}")
            raise typer.Exit

    version_option = typer.Option(
        False,
        "--version",
        help="Show the version and exit.",
        is_eager=True,
        callback=print_version,
    )

    @root.callback()
    def _accept_global_options(is_version: bool = version_option) -> None:
        """Accept the options that come before a command."""

    first_word = words[0] if words else ""
    if first_word == "--version":
        return root
    if first_word in HELP_OPTIONS:
        for commands in COMMANDS_BY_MODULE.values():
            for name, sentence in commands.items():
                root.command(name, help=sentence)(_list_command)
        return root
    # structlog would use rich for colours, which we don't print.
    with hide_packages("rich"):
        import structlog  # noqa: F401
    modules = [module for module, commands in COMMANDS_BY_MODULE.items() if first_word in commands]
    for module in modules or COMMANDS_BY_MODULE:
        import_module(f"gateway.cli.{module}").add_commands(root)
    return root


def _list_command() -> None:
    """Stand for a command in the list of all commands. It never runs."""


def _open_missing_streams() -> None:
    """Connect each missing standard stream to the null device.

    Otherwise, the next file that is opened would get the file descriptor of the missing stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _listen_to_ctrl_c() -> None:
    """In a terminal, let Ctrl-C interrupt, also if the program that started us ignores it.

    A script that ignores the signal passes that on, and Python then leaves it ignored.
    """
    if sys.stdin.isatty() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _report_crash(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print one sentence about an unexpected error. Python then exits with code 1."""
    from config.masking import mask_secrets
    from core.text.normalize import strip_controls

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        return
    if isinstance(error, OSError):
        from gateway.cli.shell import describe_error

        sentence = describe_error(error)
    else:
        message = " ".join(mask_secrets(str(error)).split())[:200]
        place = ""
        frames = traceback.extract_tb(error.__traceback__)
        if frames:
            place = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}"
        sentence = f"Mneme failed: {type(error).__name__} {message}{place}. Please report this."
    sys.stderr.write(f"{strip_controls(sentence)}\n")


def _log_background_error(event: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """Log an error that occurred in a thread or while an object was being deleted."""
    error = event.exc_value
    logging.getLogger("mneme").warning(
        "failed in the background: %s %s", type(error).__name__, error
    )


if __name__ == "__main__":
    main()
