"""How the command line comes into the house and what it says on leaving: settings, one visit, one sentence when it
fails.

Every problem ends here as an exit code: 0 done (also when nothing was found), 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from zoneinfo import ZoneInfo

import typer
from filelock import FileLock, Timeout
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from config.settings import Settings, SettingsError
from core.errors import ConfigError, MnemeError
from core.text.sanitize import legible
from core.types import Account, Address, Scope
from gateway import logs
from gateway.services import Services

HERE = Address(platform="terminal", chat_id="local")
OWN = Scope.account("terminal", "local")
WIDTH_IN_A_PIPE = 160
LOG = "mneme.log"
LOCK = "gateway.lock"
_SCOPE = re.compile(r"(?:account|room):[a-z][a-z0-9_-]{0,31}:[^\s:]{1,100}")


def checked_scope(key: str | None) -> str | None:
    """For typer: refuses what has not the form of a scope, before anything is opened."""
    if key is not None and not _SCOPE.fullmatch(key):
        raise typer.BadParameter("write account:platform:id or room:platform:chat", param_hint="--scope")
    return key


AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON instead of text.")]
InScope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="Look at one scope only: account:telegram:42 or room:discord:77.",
        callback=checked_scope,
    ),
]


def visit(work: Callable[[Services], Awaitable[None]], *, level: str = "warning") -> None:
    """Opens the house, does `work` in it, closes it. Works beside a running gateway. What is logged meanwhile, from
    `level` on, goes into the log file: what concerns whoever sits here is said by the command."""

    async def inside() -> None:
        settings = load()
        logs.configure(
            settings.model_copy(update={"general": settings.general.model_copy(update={"log_level": level})}),
            settings.home / LOG,
        )
        async with Services.open(settings) as services:
            await work(services)

    finish(inside())


def finish(work: Coroutine[Any, Any, None]) -> None:
    """Runs to the end; what goes wrong becomes one sentence and an exit code."""
    with leaving():
        asyncio.run(work)


@contextmanager
def leaving() -> Iterator[None]:
    """Turns what stops a command into an exit code."""
    try:
        yield
    except MnemeError as error:
        fail(str(error))
    except BrokenPipeError:
        # Whoever read has enough.
        hush()
        raise typer.Exit(0) from None
    except OSError as error:
        fail(sentence_of(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BaseExceptionGroup as group:
        known, others = group.split((MnemeError, OSError))
        if known is None or others is not None:
            raise
        first = _first(known)
        fail(sentence_of(first) if isinstance(first, OSError) else str(first))


def fail(sentence: str) -> NoReturn:
    """Says what went wrong and ends with 1."""
    typer.echo(legible(sentence), err=True)
    raise typer.Exit(1)


def sentence_of(error: OSError) -> str:
    """What the system refused. What an output does not take is given up, or it would complain once more at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        hush()
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return f"Reading or writing failed: {reason}."
    remedy = " Let MNEME_HOME name a folder that can be written to." if error.errno == errno.EROFS else ""
    return f"{os.fsdecode(error.filename)} cannot be used: {reason}.{remedy}"


def hush() -> None:
    """Lets standard output lead nowhere; what is still buffered for it goes there too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def load() -> Settings:
    """The settings; ConfigError names all problems at once."""
    try:
        return Settings.load()
    except SettingsError as error:
        raise ConfigError(str(error)) from error


async def seen(services: Services, scope: str | None) -> frozenset[Scope]:
    """What the command looks at: the one scope that was named, else everything of the owner."""
    if scope is None:
        return await services.people.scopes(OWN)
    return frozenset({scope_of(scope)})


def scope_of(key: str | None) -> Scope:
    """The scope of an option; the terminal's own without one."""
    if key is None:
        return OWN
    checked_scope(key)
    return Scope(key=key)


async def is_somebodys(services: Services, scope: Scope) -> bool:
    """Whether anybody has this scope: the owner, somebody who was let in, or who has said something there."""
    _, platform, number = scope.key.split(":", 2)
    access = services.settings.access
    return (
        scope in await services.people.scopes(OWN)
        or f"{platform}:{number}" in (access.rooms if scope.is_room else access.people)
        or (not scope.is_room and await services.people.is_admitted(Account(platform=platform, user_id=number)))
        or bool(await services.transcripts.recent(frozenset({scope}), 1))
    )


def is_running(home: Path) -> bool:
    """Whether a gateway or a chat lives in this home now."""
    if not (home / LOCK).exists():
        return False
    lock = FileLock(home / LOCK)
    try:
        with lock.acquire(timeout=0):
            return False
    except Timeout:
        return True


def is_bare(context: typer.Context, *options: object) -> bool:
    """Whether a group of commands stands alone, so that it lists. Refuses options in front of a command, which would
    not be heard."""
    if context.invoked_subcommand is None:
        return True
    if any(options):
        name = f"{context.command_path} {context.invoked_subcommand}"
        raise typer.BadParameter(f"write options behind the command: {name} …")
    return False


def joined(words: list[str] | None) -> str:
    """The words of a last argument that need not be quoted."""
    return " ".join(words or ())


def counted(number: int, noun: str) -> str:
    """A number and what it counts: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(text: str) -> None:
    """One line, or several, on standard output, as they are: our own words, and what programs read."""
    typer.echo(text)


def tell(text: str) -> None:
    """Says what has words of others in it, to a person."""
    typer.echo(legible(text))


def say_json(value: object) -> None:
    """One JSON value on a line, at once."""
    typer.echo(json.dumps(value, ensure_ascii=False, default=str))


def console() -> Console:
    """For tables and texts, of others too. In a pipe a table is as wide as it needs to be read, not as narrow as an
    unknown window, and a text has the lines that it has."""
    if sys.stdout.isatty():
        return _Legible(file=sys.stdout, highlight=False, emoji=False)
    return _Legible(file=sys.stdout, width=WIDTH_IN_A_PIPE, soft_wrap=True, highlight=False, emoji=False)


def local(services: Services, at: datetime | None) -> str:
    """A moment for eyes: ``3 May 2026, 10:30``."""
    if at is None:
        return ""
    there = at.astimezone(ZoneInfo(services.settings.general.zone))
    return f"{there.day} {there:%b %Y, %H:%M}"


class _Legible(Console):
    """Shows nothing that a terminal would obey, but what is its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else legible(text), style, control)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
