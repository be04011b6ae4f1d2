"""`mneme memory`, `remember`, `facts` and `forget`: notes and facts, with the words that a chat has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.review.pending import ANYWAY
from core.store.facts import Fact
from core.types import Command, Json, Scope
from gateway import texts
from gateway.cli.providers import add_providers
from gateway.cli.runtime import (
    AsJson,
    Group,
    InScope,
    Limit,
    Words,
    Yes,
    chat,
    context_of,
    joined,
    print_json,
    say_json,
    tell,
    visit,
)
from gateway.services import Services

if TYPE_CHECKING:
    from gateway.commands.facts import FactCommands
    from gateway.commands.memory import MemoryCommands

Target = Literal["memory", "user"]
InTarget = Annotated[Target | None, typer.Option("--target", help="memory: what I learned; user: who you are.")]
Anyway = Annotated[bool, typer.Option("--anyway", help="Keep it although it looks like a secret or the like.")]


def add_commands(app: typer.Typer) -> None:
    memory = typer.Typer(cls=Group, help="What is noted and known for good, and what became of it.")
    memory.command("list")(_list)
    for action, help_text in texts.table("MEMORY_EDITS").items():
        memory.command(action, help=help_text)(_editing(action))
    for action, help_text in texts.table("MEMORY_ACTIONS").items():
        memory.command(action, help=help_text)(_same_as_chat(action))
    add_providers(memory)
    app.add_typer(memory, name="memory")
    app.command("remember")(_remember)
    app.command("facts")(_list_facts)
    app.command("forget")(_forget)


def facts_of(services: Services) -> FactCommands:
    """The chat's commands for facts, whose rules take a while to load."""
    from gateway.commands.facts import FactCommands

    return FactCommands(services)


def notes_of(services: Services) -> MemoryCommands:
    from gateway.commands.memory import MemoryCommands

    return MemoryCommands(services, facts_of(services))


def _same_as_chat(action: str) -> Callable[..., None]:
    def run(words: Words = None, scope: InScope = None, yes: Yes = False) -> None:
        chat(notes_of, Command(name="memory", arguments=f"{action} {joined(words)}".strip()), scope, yes=yes)

    return run


def _editing(action: str) -> Callable[..., None]:
    def run(words: Words = None, target: InTarget = None, scope: InScope = None, anyway: Anyway = False) -> None:
        text = joined(words)
        if action == "replace" and words and "=>" not in text:
            text = f"{words[0]} => {joined(words[1:])}"
        said = [action, *([ANYWAY] if anyway else []), *([f"{target}:"] if target else []), text]
        chat(notes_of, Command(name="memory", arguments=" ".join(said)), scope)

    return run


def _list(target: InTarget = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the notes and what is known."""

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        targets = ("memory", "user") if target is None else (target,)
        return {name: await services.notebook.entries(scopes, name) for name in targets}

    if as_json:
        print_json(objects, scope)
    else:
        chat(notes_of, Command(name="memory", arguments=f"list {target or ''}".strip()), scope)


def _remember(
    what: Annotated[list[str], typer.Argument(help="A sentence: Ana's birthday is on 3 May.")], scope: InScope = None
) -> None:
    """Remember a fact for good."""
    chat(facts_of, Command(name="remember", arguments=joined(what)), scope)


def _list_facts(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only what has to do with these words, best first.", show_default=False)
    ] = None,
    limit: Limit = 50,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """What I know, the latest first; with words, what has to do with them."""

    async def work(services: Services) -> None:
        commands = facts_of(services)
        facts = await commands.find(joined(words), await context_of(services, scope), limit)
        if not facts and not as_json:
            tell(f"I know nothing about “{joined(words)}”." if words else texts.NOTHING_YET)
        for fact in facts:
            say_json(_fact_object(fact)) if as_json else tell(f"f{fact.id}: {commands.known.line_of(fact)}")

    visit(work)


def _forget(
    what: Annotated[list[str], typer.Argument(help="As for mneme recall: words, a phrase in quotes, filters.")],
    yes: Yes = False,
    scope: InScope = None,
) -> None:
    """Erase what was said about something, and all that I made of it."""
    from gateway.commands.privacy import ForgetCommands

    chat(ForgetCommands, Command(name="forget", arguments=joined(what)), scope, yes=yes)


def _fact_object(fact: Fact) -> Json:
    names = ("id", "kind", "content", "is_pinned", "valid_from", "valid_to", "message_id")
    shown = {name: getattr(fact, name) for name in names}
    return shown | {"scope": fact.scope.key, "is_current": fact.is_open, "trust": round(fact.trust, 2)}
