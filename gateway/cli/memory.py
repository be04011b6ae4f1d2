"""`mneme memory`: the curated notes from the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from core.store.notes import Author
from core.types import Account
from gateway.cli.providers import add_providers
from gateway.cli.runtime import (
    AsJson,
    InScope,
    fail,
    is_bare,
    is_somebodys,
    joined,
    say_json,
    scope_of,
    seen,
    tell,
    visit,
)
from gateway.cli.versions import add_versions
from gateway.services import Services

Target = Literal["memory", "user"]
AUTHOR = Author(account=Account(platform="terminal", user_id="local"), is_typed=True)
Which = Annotated[Target, typer.Option("--target", help="memory: what I learned; user: who you are.")]
Anyway = Annotated[bool, typer.Option("--anyway", help="Keep it although it reads like an order.")]
Either = Annotated[Target | None, typer.Option("--target", help="memory: what I learned; user: who you are.")]
Old = Annotated[str, typer.Argument(help="A part of the note that no other note has.")]
Part = Annotated[list[str], typer.Argument(help="A part of the note that no other note has.")]


def add_memory(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    memory = typer.Typer(help="What is noted for good, and what became of it.")
    memory.callback(invoke_without_command=True)(_memory)
    memory.command("list")(_list)
    memory.command("add")(_add)
    memory.command("replace")(_replace)
    memory.command("remove")(_remove)
    add_versions(memory)
    add_providers(memory)
    app.add_typer(memory, name="memory")


def _memory(context: typer.Context, target: Either = None, scope: InScope = None, as_json: AsJson = False) -> None:
    if is_bare(context, target, scope, as_json):
        _list(target, scope, as_json)


def _list(target: Either = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the notes."""
    targets: tuple[Target, ...] = ("memory", "user") if target is None else (target,)

    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        entries = {name: await services.notebook.entries(scopes, name) for name in targets}
        if as_json:
            say_json(entries)
            return
        for name in targets:
            tell(f"{name.upper()} ({await services.notebook.heading(scopes, name)})")
            tell("\n".join(f"- {entry}" for entry in entries[name]) or "Nothing yet.")
        if waiting := [
            *await services.notebook.pending(scopes),
            *(await services.owner_files.left_out() if scope is None else ()),
        ]:
            tell(f"{len(waiting)} put aside because they read like orders: mneme memory pending.")
        for trouble in await services.notebook.troubles(scopes):
            tell(trouble)

    visit(work)


def _add(
    text: Annotated[list[str], typer.Argument(help="The note.")],
    target: Which = "memory",
    scope: InScope = None,
    anyway: Anyway = False,
) -> None:
    """Add a note."""

    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        if not await is_somebodys(services, scope_of(scope)):
            fail(f"Nobody has the scope {scope}: who was let in or has written to me has one; /whoami tells it.")
        tell(await services.notebook.add(scope_of(scope), scopes, target, joined(text), _author(anyway)))

    visit(work)


def _replace(
    old: Old,
    text: Annotated[list[str], typer.Argument(help="What to note instead.")],
    target: Either = None,
    scope: InScope = None,
    anyway: Anyway = False,
) -> None:
    """Replace a note."""

    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        name = target or await services.notebook.target_of(scopes, old)
        tell(await services.notebook.replace(scope_of(scope), scopes, name, old, joined(text), _author(anyway)))

    visit(work)


def _remove(part: Part, target: Either = None, scope: InScope = None) -> None:
    """Remove a note."""
    old = joined(part)

    async def work(services: Services) -> None:
        scopes = await seen(services, scope)
        name = target or await services.notebook.target_of(scopes, old)
        tell(await services.notebook.remove(scope_of(scope), scopes, name, old, AUTHOR))

    visit(work)


def _author(is_insisting: bool) -> Author:
    return replace(AUTHOR, is_insisting=is_insisting)
