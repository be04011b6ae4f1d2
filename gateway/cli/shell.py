"""What every shell command is made of: settings, opened services, a chat command's answer as text, JSON for programs.

Every problem ends here as one sentence and an exit code: 0 done (also when nothing was found), 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from config.settings import Settings, SettingsError
from core.errors import MnemeError, Refused
from core.markup.markdown import to_plain
from core.text.normalize import legible
from core.types import LOCAL, Address, Answer, Command, Inbound, Scope, Sender, Session
from gateway import logs
from gateway.commands.registry import CommandContext, CommandGroup
from gateway.services import Services

HERE = Address(platform="terminal", chat_id="local")
OWNER = Sender(id="local", name="Owner")
LOG = "mneme.log"
_SCOPE = re.compile(r"(?:account|room):[a-z][a-z0-9_-]{0,31}:[^\s:]{1,100}")
_SHARED = "approve|cron|facts|forget|memory|people|recall|remember|remind|sessions|skills|status|usage"
_CHAT_COMMAND = re.compile(rf"`/(?=(?:{_SHARED})\b)")
"""A command that exists here too, as texts for a chat name it."""


AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON instead of text.")]
_WHOSE = "Whose: account:telegram:42 or room:discord:77; without it all of the owner's."
InScope = Annotated[str | None, typer.Option("--scope", metavar="SCOPE", help=_WHOSE)]
Words = Annotated[list[str] | None, typer.Argument(help="As in a chat; no quotes are needed.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many, the latest first.")]


class Group(TyperGroup):
    """Commands of which the first runs where none is named: `mneme memory --json` is `mneme memory list --json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_bare = not args or args[0].startswith("-")
        if is_bare and not ctx.resilient_parsing and not {*args} & {*self.commands, *ctx.help_option_names}:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def visit(work: Callable[[Services, CommandContext], Awaitable[object]], scope: str | None = None) -> None:
    """Runs `work` for the owner at this terminal, who sees and writes to `scope` alone where one is named, and prints
    its answer as text, anything else as JSON. Works beside a running gateway too; warnings go into the log file."""

    if scope is not None and not _SCOPE.fullmatch(scope):
        raise typer.BadParameter("write account:platform:id or room:platform:chat", param_hint="--scope")

    async def inside() -> None:
        settings = Settings.load()
        general = settings.general.model_copy(update={"log_level": "warning"})
        logs.configure(settings.model_copy(update={"general": general}), settings.home / LOG)
        async with Services.open(settings) as services:
            if services.restored:
                typer.echo(plain(services.restored), err=True)
            now, own = services.clock.now(), LOCAL if scope is None else Scope(key=scope)
            inbound = Inbound(
                kind="message",
                address=HERE,
                scope=own,
                sender=OWNER,
                text="",
                message_id=uuid.uuid4().hex,
                sent_at=now,
                is_direct=True,
            )
            context = CommandContext(
                inbound=inbound,
                scope=own,
                scopes=await services.people.scopes(LOCAL) if scope is None else frozenset({own}),
                session=Session(address=HERE, scope=own, started_at=now),
                is_owner=True,
                is_shell=True,
            )
            answer = await work(services, context)
            if isinstance(answer, Answer):
                show(answer.text)
            elif answer is not None:
                say_json(answer)

    with leaving():
        asyncio.run(inside())


def chat(
    group: str,
    name: str,
    words: Sequence[str] | None,
    scope: str | None,
    *,
    yes: bool = False,
    objects: Callable[[Services, frozenset[Scope]], Awaitable[object]] | None = None,
) -> None:
    """Runs /`name` of a `group`, a module and class in gateway/commands/, which take a while to load, with these words;
    where it asks for a yes, that is read from stdin unless `yes` was said. With `objects` prints these as JSON instead.
    """

    async def work(services: Services, context: CommandContext) -> object:
        if objects is not None:
            return await objects(services, context.scopes)
        module, _, title = group.partition(".")
        commands: CommandGroup = getattr(import_module(f"gateway.commands.{module}"), title)(services)
        answer = await commands.run(Command(name=name, arguments=" ".join(words or ())), context)
        if answer.confirm is None:
            return answer
        if not yes:
            ask_for_yes(answer.text)
        return await commands.run(answer.confirm, context)

    visit(work, scope)


def ask_for_yes(markdown: str) -> None:
    """Raises BadParameter without one."""
    show(markdown)
    try:
        typer.confirm("Yes?", abort=True)
    except typer.Abort:
        raise typer.BadParameter(
            "nothing was done; answer yes, or add --yes, if this is what you mean", param_hint="--yes"
        ) from None


def show(markdown: str) -> None:
    """A text for a chat, with the commands that exist here as they are typed here; rendered where a person reads it."""
    if not sys.stdout.isatty():
        tell(plain(markdown))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(highlight=False, emoji=False).print(Markdown(legible(_CHAT_COMMAND.sub("`mneme ", markdown))))


def plain(markdown: str) -> str:
    return to_plain(_CHAT_COMMAND.sub("`mneme ", markdown))


@contextmanager
def leaving() -> Iterator[None]:
    """Turns what stops a command into an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (MnemeError, SettingsError, OSError, BaseExceptionGroup) as error:
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, BrokenPipeError):
            _silence_stdout()
            raise typer.Exit(0) from None
        if not isinstance(cause, MnemeError | SettingsError | OSError):
            raise
        fail(sentence_of(cause))


def fail(sentence: str) -> NoReturn:
    typer.echo(legible(sentence), err=True)
    raise typer.Exit(1)


def sentence_of(error: Exception) -> str:
    """What went wrong; output that cannot be written is given up, or it would complain once more at the end."""
    if not isinstance(error, OSError):
        return plain(str(error)) if isinstance(error, Refused) else str(error)
    try:
        sys.stdout.flush()
    except OSError:
        _silence_stdout()
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"Reading or writing failed: {reason}."
    remedy = " Let MNEME_HOME name a folder that can be written to." if error.errno == errno.EROFS else ""
    return f"{os.fsdecode(error.filename)} cannot be used: {reason}.{remedy}"


def _silence_stdout() -> None:
    """Lets standard output lead nowhere, with what is still buffered for it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def tell(text: str) -> None:
    """Prints text that may have words of others in it, without what drives a terminal."""
    typer.echo(legible(text))


def say_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, default=str))
