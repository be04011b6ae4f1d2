"""`mneme memory`, `remember`, `facts` and `forget`: notes and facts, with the words that a chat has for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from core.store.notes import NoteChange
from core.types import Command, Json
from gateway import texts
from gateway.cli.providers import add_providers
from gateway.cli.runtime import (
    AsJson,
    InScope,
    Limit,
    Words,
    Yes,
    assert_somebodys,
    chat,
    context_of,
    is_bare,
    joined,
    run_command,
    say_json,
    show,
    tell,
    visit,
)
from gateway.services import Services

if TYPE_CHECKING:
    from gateway.commands.facts import FactCommands
    from gateway.commands.memory import MemoryCommands

Target = Literal["memory", "user"]
_TARGETS: tuple[Target, ...] = ("memory", "user")
InTarget = Annotated[Target | None, typer.Option("--target", help="memory: what I learned; user: who you are.")]
Anyway = Annotated[bool, typer.Option("--anyway", help="Keep it although it looks like a secret or the like.")]
_ACTIONS = {
    "undo": "Take back the last change of a note, or one by its number; a fact's by f3 or c7.",
    "why": "Tell where a note or a fact (f3) comes from.",
    "pending": "List what waits for your decision.",
    "approve": "Keep what was waiting, by its number.",
    "reject": "Drop what was waiting, by its number.",
    "facts": "List what is known, or what is known about some words.",
    "changes": "List what changed in what is known, up to now or to c7.",
    "pin": "Keep a fact (f3) as it is, however old it gets.",
    "unpin": "Let a fact (f3) fade with age again.",
    "right": "Confirm a fact (f3).",
    "wrong": "Doubt a fact (f3).",
    "correct": "Correct a fact: f3 and the sentence that is right.",
    "forget": "Erase a fact (f3) and what was said of it, for good.",
}


def add_memory(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    memory = typer.Typer(help="What is noted and known for good, and what became of it.")
    memory.callback(invoke_without_command=True)(_memory)
    memory.command("list")(_list)
    memory.command("add")(_add)
    memory.command("replace")(_replace)
    memory.command("remove")(_remove)
    memory.command("history")(_history)
    for action, help_text in _ACTIONS.items():
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
    """The chat's /memory."""
    from gateway.commands.memory import MemoryCommands

    return MemoryCommands(services, facts_of(services))


def _same_as_chat(action: str) -> Callable[..., None]:
    def run(words: Words = None, scope: InScope = None, yes: Yes = False) -> None:
        chat(notes_of, Command(name="memory", arguments=f"{action} {joined(words)}".strip()), scope, yes=yes)

    return run


def _memory(context: typer.Context, target: InTarget = None, scope: InScope = None, as_json: AsJson = False) -> None:
    if is_bare(context, target, scope, as_json):
        _list(target, scope, as_json)


def _list(target: InTarget = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the notes."""
    targets = _TARGETS if target is None else (target,)

    async def work(services: Services) -> None:
        context = await context_of(services, scope)
        if as_json:
            say_json({name: await services.notebook.entries(context.scopes, name) for name in targets})
        else:
            show(await notes_of(services).list(context, targets))

    visit(work)


def _add(
    text: Annotated[list[str], typer.Argument(help="The note.")],
    target: InTarget = None,
    scope: InScope = None,
    anyway: Anyway = False,
) -> None:
    """Add a note."""
    _change("add", scope, target=target or "memory", new=joined(text), is_insisting=anyway)


def _replace(
    old: Annotated[str, typer.Argument(help="A part of the note that no other note has.")],
    text: Annotated[list[str] | None, typer.Argument(help="What to note instead.")] = None,
    target: InTarget = None,
    scope: InScope = None,
    anyway: Anyway = False,
) -> None:
    """Replace a note; also in a chat's words: "likes tea => likes mate"."""
    new = joined(text)
    if text is None:
        old, sign, new = (part.strip() for part in old.partition("=>"))
        if not sign:
            raise typer.BadParameter("say what to note instead", param_hint="TEXT")
    _change("replace", scope, target=target or "", old=old, new=new, is_insisting=anyway)


def _remove(
    part: Annotated[list[str], typer.Argument(help="A part of the note that no other note has.")],
    target: InTarget = None,
    scope: InScope = None,
) -> None:
    """Remove a note."""
    _change("remove", scope, target=target or "", old=joined(part))


def _change(
    action: str, scope: str | None, *, target: str, old: str = "", new: str = "", is_insisting: bool = False
) -> None:
    async def work(services: Services) -> None:
        from gateway.commands.memory import NoteEdit

        await assert_somebodys(services, scope)
        edit = NoteEdit(action=action, target=target, old=old, new=new, is_insisting=is_insisting)
        answer = await notes_of(services).change(edit, await context_of(services, scope))
        show(answer.text)

    visit(work)


def _history(
    page: Annotated[int, typer.Option("--page", min=1, help="1 is the latest.")] = 1,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """List what was changed in the notes, latest first."""

    async def work(services: Services) -> None:
        from gateway.commands.memory import PAGE

        context = await context_of(services, scope)
        if as_json:
            changes = await services.notebook.history(context.scopes, PAGE, PAGE * (page - 1))
            say_json([_change_object(change) for change in changes])
        else:
            answer = await run_command(notes_of(services), Command(name="memory", arguments=f"history {page}"), context)
            show(answer.text)

    visit(work)


def _remember(
    what: Annotated[list[str], typer.Argument(help="A sentence: Ana's birthday is on 3 May.")], scope: InScope = None
) -> None:
    """Remember a fact for good."""

    async def work(services: Services) -> None:
        await assert_somebodys(services, scope)
        command = Command(name="remember", arguments=joined(what))
        show((await run_command(facts_of(services), command, await context_of(services, scope))).text)

    visit(work)


def _list_facts(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only what has to do with these words, best first.", show_default=False)
    ] = None,
    limit: Limit = 50,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """List what is known."""

    async def work(services: Services) -> None:
        context = await context_of(services, scope)
        commands = facts_of(services)
        facts = await commands.find(joined(words), context, limit)
        if not facts and not as_json:
            tell(texts.NOTHING_YET)
        for fact in facts:
            if not as_json:
                tell(f"f{fact.id}: {commands.known.line_of(fact)}")
                continue
            say_json(
                {
                    "id": fact.id,
                    "scope": fact.scope.key,
                    "kind": fact.kind,
                    "content": fact.content,
                    "is_current": fact.is_open,
                    "is_pinned": fact.is_pinned,
                    "trust": round(fact.trust, 2),
                    "valid_from": fact.valid_from,
                    "valid_to": fact.valid_to,
                    "message_id": fact.message_id,
                }
            )

    visit(work)


def _forget(
    what: Annotated[list[str], typer.Argument(help="As for mneme recall: words, a phrase in quotes, filters.")],
    yes: Yes = False,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """Erase what was said about something, and all that was made of it, for good."""
    from gateway.commands.privacy import ForgetCommands

    if not as_json:
        chat(ForgetCommands, Command(name="forget", arguments=joined(what)), scope, yes=yes)
        return
    if not yes:
        raise typer.BadParameter("nothing was erased: add --yes if this is what you mean", param_hint="--yes")

    async def work(services: Services) -> None:
        request = (await context_of(services, scope)).erasure_request
        traces = await services.forgetting.look(joined(what), request)
        if traces is None:
            say_json({"forgotten": {}})
            return
        receipt = await services.forgetting.erase(traces.token, request)
        say_json(
            {
                "forgotten": dict(receipt.counts),
                "derived": receipt.derived,
                "is_clean": receipt.is_clean,
                "pending": receipt.pending,
            }
        )

    visit(work)


def _change_object(change: NoteChange) -> Json:
    return asdict(change) | {
        "scope": change.scope.key,
        "at": change.at.isoformat(),
        "account": None if change.account is None else change.account.key,
        "address": None if change.address is None else change.address.key,
    }
