"""How the command line comes into the house and what it says on leaving: settings, one visit, one sentence when it
fails.

Every problem ends here as an exit code: 0 done (also when nothing was found), 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any, NoReturn
from zoneinfo import ZoneInfo

import typer
from rich.console import Console

from config.settings import Settings, SettingsError
from core.errors import ConfigError, MnemeError
from core.types import Address, Scope
from gateway import journal
from gateway.house import House

HERE = Address(platform="terminal", chat_id="local")
OWN = Scope.account("terminal", "local")
WIDTH_IN_A_PIPE = 160

AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON instead of text.")]
InScope = Annotated[
    str | None,
    typer.Option("--scope", metavar="SCOPE", help="Look at one scope only: account:telegram:42 or room:discord:77."),
]


def visit(work: Callable[[House], Awaitable[None]], *, level: str = "warning") -> None:
    """Opens the house, does `work` in it, closes it. Works beside a running gateway."""

    async def inside() -> None:
        settings = load()
        journal.configure(
            settings.model_copy(update={"general": settings.general.model_copy(update={"log_level": level})})
        )
        async with House.open(settings) as house:
            await work(house)

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
        # Whoever read has enough. What is buffered must not complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BaseExceptionGroup as group:
        ours, others = group.split(MnemeError)
        if ours is None or others is not None:
            raise
        fail(str(_first(ours)))


def fail(sentence: str) -> NoReturn:
    """Says what went wrong and ends with 1."""
    typer.echo(sentence, err=True)
    raise typer.Exit(1)


def load() -> Settings:
    """The settings; ConfigError names all problems at once."""
    try:
        return Settings.load()
    except SettingsError as error:
        raise ConfigError(str(error)) from error


async def seen(house: House, scope: str | None) -> frozenset[Scope]:
    """What the command looks at: the one scope that was named, else everything of the owner."""
    if scope is None:
        return await house.people.scopes(OWN)
    return frozenset({scope_of(scope)})


def scope_of(key: str | None) -> Scope:
    """The scope of an option; the terminal's own without one."""
    if key is None:
        return OWN
    kind, _, rest = key.partition(":")
    platform, _, number = rest.partition(":")
    if kind not in ("account", "room") or not platform or not number:
        raise typer.BadParameter("write account:platform:id or room:platform:chat", param_hint="--scope")
    return Scope(key=key)


def counted(number: int, noun: str) -> str:
    """A number and what it counts: ``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(text: str) -> None:
    """One line, or several, on standard output."""
    typer.echo(text)


def say_json(value: object) -> None:
    """One JSON value on a line, at once."""
    typer.echo(json.dumps(value, ensure_ascii=False, default=str))


def console() -> Console:
    """For tables. In a pipe they are as wide as they need to be read, not as narrow as an unknown window."""
    is_terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if is_terminal else WIDTH_IN_A_PIPE, highlight=False, emoji=False)


def local(house: House, at: datetime | None) -> str:
    """A moment for eyes: ``3 May 2026, 10:30``."""
    if at is None:
        return ""
    there = at.astimezone(ZoneInfo(house.settings.general.zone))
    return f"{there.day} {there:%b %Y, %H:%M}"


def _first(group: BaseExceptionGroup[MnemeError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
