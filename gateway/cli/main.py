"""Starts the command line `mneme`.

Only the module of the given command is loaded. The owner is the only user of this command line.
Answers go to standard output, all other texts to standard error. Errors never show a traceback, not
even while modules are being loaded.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gateway.installation import find_foreign_package, hide_packages, list_unreadable_files

if TYPE_CHECKING:
    import typer

# The commands that each module of this package adds, in the order of `mneme --help`.
COMMANDS_BY_MODULE: Mapping[str, Sequence[str]] = {
    "run": (*("run", "chat", "remind", "cron", "approve", "people", "status", "usage", "check"),),
    "web": ("web",),
    "outbox": ("outbox",),
    "media": ("media",),
    "setup.wizard": ("setup",),
    "setup.service": ("service",),
    "configuration": ("config",),
    "mcp_servers": ("mcp",),
    "completion": ("completion",),
    "backups": ("backup", "restore", "upgrade"),
    "setup.store": ("store",),
    "memory": ("memory", "remember", "facts", "forget", "skills"),
    "history": ("recall", "sessions", "export", "import"),
}
HELP_OPTIONS = ("-h", "--help")


def main() -> None:
    """Run the command line.

    If another installed package would be imported instead of a package of Mneme, exit with a
    message.
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
        sys.exit(run_command(command))


def run_command(command: Any, words: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Without `words`, the command line of this process is run. Wrong usage is reported in the shell's
    language.
    """
    from typer import Abort, echo
    from typer._click.exceptions import ClickException
    from typer._completion_classes import completion_init

    from config.variables import select_variables

    completion_init()
    if select_variables(["_MNEME_COMPLETE"]):
        from gateway.cli.completion import register_shells

        register_shells()
    try:
        # Calling the typer app directly would replace our `sys.excepthook` with typer's.
        code = command(words, prog_name="mneme", standalone_mode=False)
    except ClickException as error:
        echo(_describe_usage_error(error), err=True)
        return error.exit_code
    except Abort:
        from gateway.texts.text_files import load_shell_table

        echo(load_shell_table("USAGE_ERRORS")["aborted"], err=True)
        return 1
    return code if isinstance(code, int) else 0


def _describe_usage_error(error: Any) -> str:
    """Return the usage of the command, how to show its help, and a description of the mistake."""
    from gateway.texts.text_files import load_shell_table

    table = load_shell_table("USAGE_ERRORS")
    lines = []
    context = getattr(error, "ctx", None)
    if context is not None:
        word_help(context.find_root().command)
        usage = _join_colon(load_shell_table("CLI_HELP")["words"]["usage"])
        pieces = context.command.collect_usage_pieces(context)
        lines.append(usage + " ".join([context.command_path, *pieces]))
        lines.append(table["try_help"].format(command=f"{context.command_path} {HELP_OPTIONS[0]}"))
        lines.append("")
    lines.append(table["error"].format(problem=_word_usage_problem(error.format_message())))
    return "\n".join(lines)


def _word_usage_problem(problem: str) -> str:
    """Translate a problem of the library to the shell's language.

    Problems of Mneme aren't changed.
    """
    from gateway.texts.text_files import list_patterns, load_shell_table

    problem = re.sub(r"\AMissing (?:argument|option|parameter) ", "Missing ", problem)
    problem = problem.removeprefix("Value error, ")
    for key, pattern in list_patterns("USAGE_ERRORS"):
        match = pattern.fullmatch(problem)
        if match is None or key == "error":
            continue
        values = match.groupdict()
        if "problem" in values:
            values["problem"] = _word_usage_problem(values["problem"])
        return str(load_shell_table("USAGE_ERRORS")[key].format(**values))
    return problem


@contextmanager
def _load_less() -> Iterator[None]:
    """Disable the garbage collector while modules are loaded.

    Modules contain almost no garbage, and each collection would search all of them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _hide_early_typing(words: Sequence[str]) -> Iterator[None]:
    """Turn off the terminal's echo and its editing of lines while a chat starts.

    The prompt gets the keys that were typed early, and shows them. With echo, the text would also
    appear above the greeting. With editing, an early Ctrl-D would be lost.
    """
    is_chat = words[:1] == ["chat"] or (words[:1] == ["run"] and "--terminal" in words)
    if not (is_chat and sys.stdin.isatty() and sys.stdout.isatty()):
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    attributes = termios.tcgetattr(descriptor)
    silent = [*attributes]
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


def app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the command line. If `words` begin with a command, only its module is loaded.

    The list of all commands is shown without loading any module, because loading all of them takes
    a second.
    """
    import typer

    root = typer.Typer(
        cls=_load_root_class(),
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        # `mneme completion` prints, installs and removes it.
        add_completion=False,
        context_settings={"help_option_names": list(HELP_OPTIONS)},
    )

    version_option = typer.Option(False, "--version", is_eager=True, callback=_print_version)

    @root.callback()
    def _accept_global_options(is_version: bool = version_option) -> None:
        """Accept the options that come before a command."""
        _complete_restore()

    first_word = words[0] if words else ""
    if first_word in HELP_OPTIONS:
        for commands in COMMANDS_BY_MODULE.values():
            for name in commands:
                root.command(name)(_list_command)
    elif first_word != "--version":
        _add_commands(root, first_word)
    return root


def _complete_restore() -> None:
    """Complete a restore that was killed while it swapped the home with the backup."""
    from config.variables import locate_home, locate_swap_file

    try:
        home = locate_home()
        is_incomplete = locate_swap_file(home).exists()
    except (RuntimeError, ValueError):
        # The command itself reports that the path of the home is unusable.
        return
    if is_incomplete:
        from gateway.cli.backups import complete_restore

        complete_restore(home)


def _load_root_class() -> Any:
    """Return the class of the command line. It prints an introduction and translates help texts."""
    import typer
    from typer.core import TyperGroup

    class RootGroup(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Print a short introduction if no command is given, and translate help texts.

            Shell completion also parses an empty command line. It gets the descriptions of the
            commands, and nothing is printed.
            """
            if not args and not ctx.resilient_parsing:
                from gateway.texts.text_files import load_shell_table

                typer.echo(load_shell_table("CLI")["welcome"])
                ctx.exit()
            if ctx.resilient_parsing or not {*HELP_OPTIONS}.isdisjoint(args):
                word_help(self)
                ctx.formatter_class = _load_context_class().formatter_class
            return super().parse_args(ctx, args)

    return RootGroup


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        import typer

        typer.echo(f"mneme {version('mneme-gateway')}")
        raise typer.Exit


def _add_commands(root: typer.Typer, first_word: str) -> None:
    """Load the module of a command and add its commands. If it's unknown, load all modules."""
    # structlog would use rich for colours, which we don't print.
    with hide_packages("rich"):
        import structlog  # noqa: F401
    modules = [module for module, commands in COMMANDS_BY_MODULE.items() if first_word in commands]
    for module in modules or COMMANDS_BY_MODULE:
        import_module(f"gateway.cli.{module}").add_commands(root)


# Texts of the library that every help contains, by their keys in [CLI_HELP.words].
_LIBRARY_WORDS = {
    "Arguments": "arguments",
    "Options": "options",
    "Commands": "commands",
    "Show this message and exit.": "show_help",
}
# The keys in [CLI_HELP.values] of arguments and options that aren't named like their key.
_VALUE_KEYS = {
    "assistant": "name",
    "backup": "folder",
    "before": "number",
    "encrypt": "key",
    "env": "assignment",
    "given": "assignment",
    "header": "assignment",
    "http": "port",
    "import_files": "file",
    "key": "option",
    "limit": "count",
    "lines": "count",
    "me": "name",
    "messages": "count",
    "numbers": "number",
    "owner": "account",
    "query": "words",
    "restore.key": "file",
    "setup.page": "port",
    "shell_name": "shell",
    "since": "time",
    "what": "period",
    "window": "count",
    "workers": "count",
}
# The note that the library adds to a help text, such as "  [default: 3; 1<=x<=10]".
_NOTE = re.compile(r"(?:  |\A)\[((?:default: |required|\d+<=x|x[<>]=)[^\]]*)\]\Z")
_RANGE = re.compile(r"(\d+)<=x<=(\d+)")


def word_help(command: Any, path: str = "") -> None:
    """Set the help of a command, its options and its subcommands in the shell's language.

    The table `CLI_HELP` of a language has texts by the name of a command, such as "memory.add", and
    by the name of an option, such as "scope" or "recall.limit".
    """
    from gateway.texts.text_files import load_shell_table

    tables = load_shell_table("CLI_HELP")
    command.context_class = _load_context_class()
    command.help = tables["commands"].get(path or "mneme", command.help)
    # The list of commands shows the first paragraph.
    command.short_help = (command.help or "").partition("\n\n")[0]
    command.options_metavar = tables["words"]["options_place"]
    if hasattr(command, "subcommand_metavar"):
        command.subcommand_metavar = tables["words"]["command_place"]
    for parameter in command.params:
        specific_text = tables["options"].get(f"{path}.{parameter.name}")
        text = specific_text or tables["options"].get(parameter.name)
        if text and hasattr(parameter, "help"):
            parameter.help = text
        _name_value(parameter, path, tables["values"])
    for name, subcommand in getattr(command, "commands", {}).items():
        word_help(subcommand, f"{path}.{name}".lstrip("."))


def _name_value(parameter: Any, path: str, names: Mapping[str, str]) -> None:
    """Set the name of a value in the shell's language, instead of its type in Python.

    If there is a choice of values, an argument shows them behind its name, and an option instead
    of it.
    """
    key = _VALUE_KEYS.get(f"{path}.{parameter.name}") or _VALUE_KEYS.get(
        parameter.name, parameter.name
    )
    has_choices = parameter.type_descriptor.is_choice
    is_argument = parameter.param_type_name == "argument"
    if key in names and (is_argument or not has_choices):
        parameter.metavar = names[key]
    if is_argument and not has_choices:
        parameter.display_type_rich = lambda ctx: None


@cache
def _load_context_class() -> Any:
    """Return a click context class whose help is worded in the shell's language.

    The library counts characters. This formatter counts columns, because East Asian characters
    take two.
    """
    from typer import Context
    from typer._click import formatting

    from core.markup.tables import measure_width
    from core.markup.wrapping import wrap_columns
    from gateway.texts.text_files import load_shell_table

    def load_words() -> Mapping[str, str]:
        words: Mapping[str, str] = load_shell_table("CLI_HELP")["words"]
        return words

    class HelpFormatter(formatting.HelpFormatter):
        def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
            super().write_usage(prog, args, _join_colon(load_words()["usage"]))

        def write_heading(self, heading: str) -> None:
            words = load_words()
            self.write(f"{words.get(_LIBRARY_WORDS.get(heading, ''), heading)}{words['colon']}\n")

        def write_text(self, text: str) -> None:
            indent = " " * self.current_indent
            paragraphs = [
                [f"{indent}{line}" for line in wrap_columns(paragraph, self.width - len(indent))]
                for paragraph in text.split("\n\n")
            ]
            self.write("\n\n".join("\n".join(lines) for lines in paragraphs) + "\n")

        def write_dl(
            self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
        ) -> None:
            words = load_words()
            indent = " " * self.current_indent
            widths = [measure_width(name) for name, _ in rows]
            column = min(max(widths), col_max) + col_spacing
            for (name, text), width in zip(rows, widths, strict=True):
                lines = wrap_columns(_word_help_text(text, words), max(self.width - column - 2, 10))
                if width > column - col_spacing:
                    self.write(f"{indent}{name}\n")
                else:
                    gap = " " * (column - width)
                    self.write(f"{indent}{name}{gap}{''.join(lines[:1])}".rstrip() + "\n")
                    lines = lines[1:]
                for line in lines:
                    self.write(f"{indent}{' ' * column}{line}\n")

    class HelpContext(Context):
        formatter_class = HelpFormatter

    return HelpContext


def _join_colon(heading: str) -> str:
    """Return a heading that ends with a colon, and a space unless the colon is a wide one."""
    return heading if heading.endswith("\N{FULLWIDTH COLON}") else f"{heading} "


def _word_help_text(text: str, words: Mapping[str, str]) -> str:
    """Return the help of an option or a command with the library's texts in the shell's language.

    The library's texts are one sentence, and notes such as "[default: 3; 1<=x<=10]".
    """
    if text in _LIBRARY_WORDS:
        return words[_LIBRARY_WORDS[text]]
    match = _NOTE.search(text)
    if match is None:
        return text
    notes = []
    for note in match[1].split("; "):
        default = note.removeprefix("default: ")
        if default != note:
            note = words["default"].format(value=default)
        elif note == "required":
            note = words["required"]
        notes.append(_RANGE.sub("\\1–\\2", note))
    return f"{text[: match.start()]} [{words['semicolon'].join(notes)}]".lstrip()


def _list_command() -> None:
    """Serve as a placeholder for each command in the list of all commands. It never runs."""


def _open_missing_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Otherwise, the next opened file would get the file descriptor of the missing stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _listen_to_ctrl_c() -> None:
    """Let Ctrl-C interrupt the program in a terminal, even if the parent process ignores it.

    Child processes inherit an ignored signal, and Python then also ignores it.
    """
    if sys.stdin.isatty() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _report_crash(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print one sentence about an unexpected error. Python then exits with code 1."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        return
    unreadable = list_unreadable_files()
    if unreadable:
        from gateway.texts.text_files import describe_unreadable_files

        sentence = describe_unreadable_files(unreadable)
    else:
        sentence = _describe_crash(error)
    sys.stderr.write(f"{sentence}\n")


def _describe_crash(error: BaseException) -> str:
    from config.masking import mask_secrets
    from core.text.normalize import strip_controls

    if isinstance(error, OSError):
        from gateway.cli.shell import describe_error

        return strip_controls(describe_error(error))
    message = " ".join(mask_secrets(str(error)).split())[:200]
    place = ""
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        place = f", {Path(frames[-1].filename).name} line {frames[-1].lineno}"
    from gateway.texts.text_files import load_shell_table

    sentence = load_shell_table("CLI")["crash"].format(
        kind=type(error).__name__, message=message, place=place
    )
    return strip_controls(sentence)


def _log_background_error(event: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """Log an error that was raised in a thread or by a destructor."""
    error = event.exc_value
    logging.getLogger("mneme").warning(
        "failed in the background: %s %s", type(error).__name__, error
    )


if __name__ == "__main__":
    main()
