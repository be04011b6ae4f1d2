"""Helps shell commands to open services, run chat commands, print texts, and report errors.

An error is printed as one sentence. The exit code is 0 for success (even if a search finds
nothing), 1 for a failure, and 2 for wrong usage.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import sys
import termios
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from config.settings import Settings, SettingsError
from core.errors import MnemeError, Refused
from core.markup.markdown import reveal_addresses, to_plain
from core.menus.command_specs import CommandSpec
from core.text.normalize import (
    isolate_right_to_left,
    language_data,
    strip_controls,
    without_marks,
)
from core.types import LOCAL_SCOPE, Address, Answer, Command, Inbound, Scope, Sender, Session
from gateway import logs
from gateway.installation import ROOT, list_unreadable_files
from gateway.texts.catalog import SHELL as texts
from gateway.texts.catalog import Texts
from gateway.texts.settings_problems import word_settings_error
from gateway.texts.text_files import describe_unreadable_files

# The services are loaded when they are opened, so that a chat with a running Mneme starts fast.
if TYPE_CHECKING:
    from core.ports import AutocompletingGroup
    from gateway.commands.registry import CommandContext, CommandGroup
    from gateway.services import Services

TERMINAL_ADDRESS = Address(platform="terminal", chat_id="local")
OWNER = Sender(id="local", name="Owner")
LOG_FILE_NAME = "mneme.log"
# "account:telegram:42" or "room:discord:77".
_SCOPE_KEY = re.compile(r"(?:account|room):[a-z][a-z0-9_-]{0,31}:[^\s:]{1,100}")
_SHARED_COMMANDS = (
    "approve|cron|facts|forget|memory|people|recall|remember|remind|sessions|skills|status|usage"
)
# The beginning of a quoted chat command that also exists in the shell: "`/" in "`/status`".
_CHAT_COMMAND = re.compile(rf"`/(?=(?:{_SHARED_COMMANDS})\b)")

# A function that does the work of a shell command. It returns an answer, a value to print as JSON,
# or None.
Work = Callable[["Services", "CommandContext"], Awaitable[object]]
# A function that loads the value that a command prints as JSON.
JsonLoader = Callable[["Services", frozenset[Scope]], Awaitable[object]]


def complete_words(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Suggest the next word of a shell command that is also a chat command, such as `mneme cron`.

    Returns nothing if an error occurs, because the person is still typing.
    """
    from gateway.commands.registry import list_all_specs

    name, *path = context.command_path.split()[1:]
    spec = list_all_specs().get(name)
    if spec is None:
        return []
    line = " ".join([*path, *(context.params.get("words") or ()), incomplete])
    try:
        lines = asyncio.run(_complete_line(spec, line))
    except (MnemeError, SettingsError, OSError):
        return []
    # The shell replaces only the word that is being typed.
    start = len(line) - len(incomplete)
    return [(text[start:], label) for text, label in lines.items() if text.startswith(line[:start])]


async def _complete_line(spec: CommandSpec, line: str) -> Mapping[str, str]:
    """Return the lines that complete the beginning of a line. See `CommandSpec.complete`."""
    from core.store.ownership.people import TERMINAL
    from gateway.services import STATE_FILE, Services

    settings = Settings.load()

    async def load(source: str, typed: str) -> Mapping[str, str]:
        if not source or not (settings.home / STATE_FILE).exists():
            return {}
        logs.configure(settings, settings.home / LOG_FILE_NAME)
        async with Services.open(settings) as services:
            group = _make_completer(source, services)
            if group is None:
                return {}
            return await group.autocomplete(source, typed, LOCAL_SCOPE, TERMINAL)

    return await spec.complete(line, load)


def _make_completer(source: str, services: Services) -> AutocompletingGroup | None:
    # Imported here because only completion needs them.
    from gateway.commands.menus.suggestions import Suggestions
    from gateway.commands.skills import SkillCommands

    if source == "skills":
        return SkillCommands(services)
    return Suggestions(services) if source in Suggestions.suggests else None


# Options and arguments of several commands.
AsJson = Annotated[bool, typer.Option("--json")]
InScope = Annotated[str | None, typer.Option("--scope", metavar="SCOPE")]
Words = Annotated[
    list[str] | None, typer.Argument(show_default=False, autocompletion=complete_words)
]
Yes = Annotated[bool, typer.Option("--yes")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000)]


class DefaultCommandGroup(TyperGroup):
    """A group of commands whose first command is the default.

    For example, `mneme memory --json` means `mneme memory list --json`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        starts_with_option = not args or args[0].startswith("-")
        names_command_or_help = not {*self.commands, *ctx.help_option_names}.isdisjoint(args)
        if starts_with_option and not names_command_or_help and not ctx.resilient_parsing:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def add_group(
    root: typer.Typer, name: str, commands: Mapping[str, Callable[..., None]]
) -> typer.Typer:
    """Add a group of commands, such as `mneme outbox`. The first command is the default."""
    group = typer.Typer(cls=DefaultCommandGroup)
    for command_name, function in commands.items():
        # A value of `mneme config set` may be negative, so it may begin like an option.
        context = {"ignore_unknown_options": command_name == "set"}
        group.command(command_name, context_settings=context)(function)
    root.add_typer(group, name=name)
    return group


@contextmanager
def show_typing() -> Iterator[None]:
    """Let the terminal show typed text and edit lines, which a starting chat has turned off."""
    descriptor = sys.stdin.fileno()
    attributes = termios.tcgetattr(descriptor)
    shown = [*attributes]
    shown[3] |= termios.ECHO | termios.ICANON
    termios.tcsetattr(descriptor, termios.TCSANOW, shown)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


def run_as_owner(work: Work, scope: str | None = None, *, notifies_owner: bool = False) -> None:
    """Run `work` with the rights of the owner, and print its result.

    An `Answer` is printed as text and any other value as JSON. None prints nothing. With a `scope`,
    the work can read and write only that scope. This also works while the gateway is running.
    Warnings go to the log file. With `notifies_owner`, changes that wait for confirmation are
    announced in a chat. Raises BadParameter if the scope is invalid.
    """
    refuse_empty("--scope", scope)
    if scope is not None and not _SCOPE_KEY.fullmatch(scope):
        raise typer.BadParameter(texts.compose("wrong_scope"), param_hint="--scope")

    async def open_services_and_run() -> None:
        """Open the services, run `work`, and print its result."""
        from gateway.services import Services

        settings = Settings.load()
        general = settings.general.model_copy(update={"log_level": "warning"})
        log_settings = settings.model_copy(update={"general": general})
        logs.configure(log_settings, settings.home / LOG_FILE_NAME)
        async with Services.open(settings, notifies_owner=notifies_owner) as services:
            if services.restore_report:
                typer.echo(render_plain(services.restore_report), err=True)
            context = await make_context(services, scope)
            result = await work(services, context)
            if isinstance(result, Answer):
                print_markdown(result.text)
            elif result is not None:
                print_json(result)

    with exit_on_error():
        asyncio.run(open_services_and_run())


async def make_context(services: Services, scope_key: str | None) -> CommandContext:
    """Return a command context for the owner in this shell."""
    from gateway.commands.registry import CommandContext

    if scope_key is None:
        scope = LOCAL_SCOPE
        scopes = await services.people.load_visible_scopes(LOCAL_SCOPE)
    else:
        scope = Scope(key=scope_key)
        scopes = frozenset({scope})
    now = services.clock.now()
    inbound = Inbound(
        kind="message",
        address=TERMINAL_ADDRESS,
        scope=scope,
        sender=OWNER,
        text="",
        message_id=uuid.uuid4().hex,
        sent_at=now,
        is_direct=True,
        language=texts.language,
    )
    return CommandContext(
        inbound=inbound,
        scope=scope,
        scopes=scopes,
        session=Session(address=TERMINAL_ADDRESS, scope=scope, started_at=now),
        is_owner=True,
        is_shell=True,
        zone=await services.appointments.zone_of(inbound.account),
    )


def run_chat_command(
    group: str,
    name: str,
    words: Sequence[str] | None,
    scope: str | None,
    *,
    is_confirmed: bool = False,
    load_json: JsonLoader | None = None,
) -> None:
    """Run the chat command /`name` with these words, and print its answer.

    `group` is a module of gateway/commands/ and a class in it, such as "status.UsageCommands". The
    module is imported here because it takes a while to load. If the command asks for confirmation,
    the answer is read from stdin, unless `is_confirmed`. If `load_json` is given, its result is
    printed instead, and the command isn't run.
    """

    async def work(services: Services, context: CommandContext) -> object:
        """Return the JSON value, or run the command and return its answer."""
        if load_json is not None:
            return await load_json(services, context.scopes)
        module_name, _, class_name = group.partition(".")
        module = import_module(f"gateway.commands.{module_name}")
        commands: CommandGroup = getattr(module, class_name)(services)
        command = Command(name=name, arguments=" ".join(words or ()))
        answer = await commands.run(command, context)
        if answer.confirm_command is None:
            return answer
        if not is_confirmed:
            require_yes(answer.text)
        return await commands.run(answer.confirm_command, context)

    run_as_owner(work, scope)


def require_yes(markdown: str) -> None:
    """Print a question and read the answer. Exits with 2 if the answer isn't "yes"."""
    print_markdown(markdown)
    try:
        is_confirmed = confirm(texts.compose("confirm"), default=False)
    except typer.Abort:
        is_confirmed = False
    if not is_confirmed:
        # If no answer was given, the question has no end of line.
        yes = texts.tables("setup")["dialog"]["yes"]
        typer.echo(f"\n{texts.compose('not_confirmed', yes=yes)}", err=True)
        raise typer.Exit(2)


def confirm(question: str, *, default: bool) -> bool:
    """Ask a question until the answer is yes or no in the shell's language, and return it.

    An empty answer is the default. Raises typer.Abort if the input ends.
    """
    words = texts.tables("setup")["dialog"]
    choices = f"{words['yes'].upper()}/{words['no']}"
    if not default:
        choices = f"{words['yes']}/{words['no'].upper()}"
    while True:
        answer = typer.prompt(f"{question} [{choices}]", default="", show_default=False)
        if not answer.strip():
            return default
        is_yes = read_yes_or_no(answer, texts)
        if is_yes is not None:
            return is_yes
        typer.echo(words["yes_or_no"])


def read_yes_or_no(answer: str, texts: Texts) -> bool | None:
    """Return whether an answer is a yes or a no, or None if it is neither.

    The words that confirm a command in a chat work, and so do words without their accents, such as
    "si".
    """
    word = _fold_word(answer)
    letters = texts.tables("setup")["dialog"]
    words = language_data("confirmations", "gateway.commands")
    for kind, is_yes in (("yes", True), ("no", False)):
        common_words = map(_fold_word, words[kind].split())
        if word in (letters[kind], _fold_word(texts.compose(kind)), kind[0], *common_words):
            return is_yes
    return None


def _fold_word(word: str) -> str:
    """Return a word in lower case and without marks. Turkish letters "i" are all the same."""
    return without_marks(word.strip().lower()).replace("\N{LATIN SMALL LETTER DOTLESS I}", "i")


def print_markdown(markdown: str) -> None:
    """Print a chat text: formatted in a terminal, as plain text in a pipe."""
    if not sys.stdout.isatty():
        print_text(render_plain(markdown))
        return
    # Rich takes a while to load.
    from rich.console import Console
    from rich.markdown import Markdown

    text = Markdown(make_showable(_use_shell_commands(markdown)))
    reveal_addresses(text.parsed)
    Console(highlight=False, emoji=False).print(text)


def render_plain(markdown: str) -> str:
    """Convert a chat text to plain text for the shell."""
    return to_plain(_use_shell_commands(markdown))


def _use_shell_commands(markdown: str) -> str:
    """Replace chat commands in a text with shell commands: `/status` -> `mneme status`."""
    return _CHAT_COMMAND.sub("`mneme ", markdown)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print an expected error to standard error as a sentence, and exit with its code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (MnemeError, SettingsError, OSError, BaseExceptionGroup) as error:
        # If several tasks failed, only the first error is reported.
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, BrokenPipeError):
            # The program that reads the pipe, such as `head`, has ended.
            _silence_stdout()
            raise typer.Exit(0) from None
        if not isinstance(cause, MnemeError | SettingsError | OSError):
            raise
        fail(describe_error(cause))


def fail(sentence: str, exit_code: int = 1) -> NoReturn:
    """Print a sentence to standard error, and exit with a code."""
    typer.echo(strip_controls(sentence), err=True)
    raise typer.Exit(exit_code)


def refuse_empty(name: str, value: str | None) -> None:
    """Exit with a sentence if an option or argument was given without a text.

    This happens in scripts with an unset variable. Otherwise, an empty path would mean the current
    folder. None is an option that wasn't given.
    """
    if value is not None and not value.strip():
        words = texts.tables("setup")
        fail(f"{words['option_empty'].format(option=name)} {words['unchanged']}")


def describe_error(error: Exception) -> str:
    """Return one sentence about an error.

    If the error is a closed standard output, the null device replaces it. Otherwise, Python would
    report the error again when it exits.
    """
    if isinstance(error, Refused):
        return render_plain(texts.word(error))
    if isinstance(error, SettingsError):
        return word_settings_error(texts, error)
    if not isinstance(error, OSError):
        return texts.word(error)
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()
    reason = texts.word_stored(error.strerror or str(error) or type(error).__name__)
    if error.filename is None:
        return texts.compose("input_failed", reason=reason)
    path = os.fsdecode(error.filename)
    unreadable = list_unreadable_files() if Path(path).is_relative_to(ROOT) else []
    if unreadable:
        return describe_unreadable_files(unreadable)
    if error.errno == errno.ENOENT:
        return texts.compose("file_missing", path=path)
    sentence = texts.compose("file_unusable", path=path, reason=reason)
    return f"{sentence} {texts.compose('read_only')}" if error.errno == errno.EROFS else sentence


def _silence_stdout() -> None:
    """Replace standard output with the null device, and discard what is still buffered."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)


def print_text(text: str) -> None:
    """Print a text without control characters, because other people may have written it."""
    typer.echo(make_showable(text))


def make_showable(text: str) -> str:
    """Return a text without control characters.

    Text that is written from right to left is reordered.
    """
    text = strip_controls(text)
    return isolate_right_to_left(text) if sys.stdout.isatty() else text


def count_cells(text: str) -> int:
    """Return the width of a text in terminal columns: 2 for 漢, 0 for a combining accent."""
    # Imported here because few commands print columns.
    from rich.cells import cell_len

    return cell_len(text)


def pad_cells(text: str, width: int) -> str:
    """Return a text with trailing spaces so that it fills `width` terminal columns."""
    return text + " " * (width - count_cells(text))


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, default=_to_json))


def _to_json(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
