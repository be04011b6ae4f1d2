"""`mneme memory history`, `undo`, `why`, `pending`, `approve`, `reject`: what became of notes, and what waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from core.notes.owner_files import NAMES
from core.store.notes import Author, NoteChange
from core.types import Account, Json
from gateway.cli.runtime import AsJson, InScope, joined, say_json, scope_of, seen, tell, visit
from gateway.commands.notes import PAGE, aside, explained, listed
from gateway.services import Services

_AUTHOR = Author(account=Account(platform="terminal", user_id="local"))
Number = Annotated[int, typer.Argument(help="As `mneme memory pending` shows it.")]


def add_versions(memory: typer.Typer) -> None:
    """Puts the commands into `mneme memory`."""
    memory.command("history")(_history)
    memory.command("undo")(_undo)
    memory.command("why")(_why)
    memory.command("pending")(_pending)
    memory.command("approve")(_approve)
    memory.command("reject")(_reject)


def _history(
    page: Annotated[int, typer.Option("--page", min=1, help="1 is the latest.")] = 1,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """List what was changed, latest first."""

    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        changes = await services.notebook.history(scopes, PAGE, PAGE * (page - 1))
        if as_json:
            say_json([_plain(change) for change in changes])
        else:
            tell(
                listed(await services.notebook.sources(scopes, changes), _zone(services), str)
                or "Nothing was changed yet."
            )

    visit(work)


def _undo(
    number: Annotated[int | None, typer.Argument(help="Of the change; the last one when it is left out.")] = None,
    scope: InScope = None,
) -> None:
    """Undo a change."""

    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        change = await services.notebook.change(scopes, number)
        tell(await services.notebook.undo(change, scope_of(scope), scopes, _AUTHOR))

    visit(work)


def _why(
    part: Annotated[list[str], typer.Argument(help="A part of the note that no other note has.")],
    scope: InScope = None,
) -> None:
    """Tell where a note comes from."""

    async def work(services: Services) -> None:
        tell(explained(await services.notebook.origin(await seen(services, scope), joined(part)), _zone(services), str))

    visit(work)


def _pending(scope: InScope = None) -> None:
    """List what was put aside because it reads like an order."""

    async def work(services: Services) -> None:
        waiting = await services.notebook.pending(await seen(services, scope))
        files = await services.owner_files.left_out() if scope is None else ()
        tell(aside(waiting, _zone(services), files, str) if waiting or files else "Nothing waits to be looked at.")

    visit(work)


def _approve(
    what: Annotated[str, typer.Argument(help="A number as `mneme memory pending` shows it; SOUL.md; AGENTS.md.")],
    scope: InScope = None,
) -> None:
    """Note what was put aside, or let a file of your own stand."""
    if what in NAMES:
        visit(_let_stand(what))
    elif what.isdecimal():
        _decide(int(what[:18]), scope, is_approved=True)
    else:
        raise typer.BadParameter("it is a number, SOUL.md or AGENTS.md.")


def _let_stand(name: str) -> Callable[[Services], Awaitable[None]]:
    async def work(services: Services) -> None:
        tell(await services.owner_files.approve(name))

    return work


def _reject(number: Number, scope: InScope = None) -> None:
    """Drop what was put aside."""
    _decide(number, scope, is_approved=False)


def _decide(number: int, scope: str | None, *, is_approved: bool) -> None:
    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        note = await services.notebook.waiting(scopes, number)
        tell(await services.notebook.decide(note, scopes, is_approved, _AUTHOR))

    visit(work)


def _zone(services: Services) -> ZoneInfo:
    return ZoneInfo(services.settings.general.zone)


def _plain(change: NoteChange) -> Json:
    account = change.account
    return asdict(change) | {
        "scope": change.scope.key,
        "at": change.at.isoformat(),
        "account": None if account is None else f"{account.platform}:{account.user_id}",
        "address": None if change.address is None else change.address.key,
    }
