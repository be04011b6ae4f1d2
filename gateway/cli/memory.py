"""Defines the shell commands `mneme memory`, `remember`, `facts`, `forget` and `skills`.

They show and change notes, facts and skills by running the chat commands of the same names. The
commands for memory services are in `gateway/cli/memory_services.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from core.notes.notebook import FILES
from core.review.pending import ANYWAY
from core.store.facts.rows import Fact
from core.store.notes import NoteChange, PendingNote
from core.types import Scope
from gateway.cli import shell
from gateway.cli.memory_services import add_service_commands
from gateway.cli.shell import AsJson, InScope, JsonLoader, Limit, Words, Yes
from gateway.commands.registry import CommandContext
from gateway.services import Services
from gateway.texts.catalog import SHELL as texts

# A page of the history, in JSON.
CHANGES_PER_PAGE = 20
_MEMORY_COMMANDS = "memory.MemoryCommands"
_SKILL_COMMANDS = "skills.SkillCommands"
# The attributes of skills and facts that are printed as JSON.
_SKILL_FIELDS = (
    "name",
    "description",
    "category",
    "front",
    "is_disabled",
    "is_pinned",
    "needs_shell",
    "uses",
    "used_at",
)
_FACT_FIELDS = ("id", "kind", "content", "is_pinned", "valid_from", "valid_to", "message_id")
Anyway = Annotated[bool, typer.Option("--anyway")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    memory = shell.add_group(app, "memory", {"list": list_notes_command})
    _add_chat_actions(memory, _MEMORY_COMMANDS, "memory", texts.table("MEMORY_ACTIONS"))
    memory.command("history")(list_changes_command)
    memory.command("pending")(list_pending_command)
    memory.command("facts")(list_known_command)
    add_service_commands(memory)

    skills = shell.add_group(app, "skills", {"list": list_skills_command})
    _add_chat_actions(skills, _SKILL_COMMANDS, "skills", texts.table("SKILLS_ACTIONS"))

    app.command("remember")(remember_command)
    app.command("facts")(list_facts_command)
    app.command("forget")(forget_command)


def _add_chat_actions(
    app: typer.Typer, group: str, name: str, help_texts: Mapping[str, str]
) -> None:
    """Add a shell command for each action of the chat command /`name`.

    `help_texts` maps each action to its help. For `group`, see `shell.run_chat_command`.
    """
    for action, help_text in help_texts.items():
        app.command(action, help=help_text)(_make_chat_action(group, name, action))


def _make_chat_action(group: str, name: str, action: str) -> Callable[..., None]:
    """Return a function that runs one action of the chat command /`name` from the shell."""

    def run_action(
        words: Words = None, scope: InScope = None, anyway: Anyway = False, yes: Yes = False
    ) -> None:
        """Join the words to the arguments of the chat command, and run it."""
        arguments = list(words or ())
        if action == "replace" and arguments and "=>" not in " ".join(arguments):
            # In a shell, the old and the new text are two quoted arguments.
            arguments.insert(1, "=>")
        if anyway:
            arguments.insert(0, ANYWAY)
        shell.run_chat_command(group, name, [action, *arguments], scope, is_confirmed=yes)

    return run_action


def list_notes_command(words: Words = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the notes and the facts.

    "memory" lists only the notes about what the assistant learned, "user" only those about you.
    """

    async def load_json(services: Services, scopes: frozenset[Scope]) -> object:
        targets = [target for target in FILES if not words or target in words]
        return {target: await services.notebook.entries(scopes, target) for target in targets}

    shell.run_chat_command(
        _MEMORY_COMMANDS,
        "memory",
        ["list", *(words or ())],
        scope,
        load_json=load_json if as_json else None,
    )


def list_changes_command(
    before: Annotated[int | None, typer.Argument(min=1)] = None,
    scope: InScope = None,
    as_json: AsJson = False,
) -> None:
    """List changes to notes and skills, latest first. With a number, it lists those before it."""

    async def load_json(services: Services, scopes: frozenset[Scope]) -> object:
        bound = {} if before is None else {"before": before}
        changes = await services.notebook.history(scopes, CHANGES_PER_PAGE, **bound)
        return [_change_to_json(change) for change in changes]

    _run_list(
        ["history", *([] if before is None else [str(before)])],
        scope,
        load_json if as_json else None,
    )


def list_pending_command(scope: InScope = None, as_json: AsJson = False) -> None:
    """List the changes that wait for your decision."""

    async def load_json(services: Services, scopes: frozenset[Scope]) -> object:
        pending_notes = await services.notebook.review.list_pending(scopes)
        return [_pending_to_json(note) for note in pending_notes]

    _run_list(["pending"], scope, load_json if as_json else None)


def list_known_command(words: Words = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List facts, or those that match some words."""
    if as_json:
        list_facts_command(words, scope=scope, as_json=True)
    else:
        _run_list(["facts", *(words or ())], scope, None)


def _run_list(words: list[str], scope: str | None, load_json: JsonLoader | None) -> None:
    shell.run_chat_command(_MEMORY_COMMANDS, "memory", words, scope, load_json=load_json)


def _change_to_json(change: NoteChange) -> dict[str, object]:
    folder, path = change.skill or (None, None)
    return {
        "id": change.id,
        "at": change.at,
        "action": change.action,
        "target": change.target,
        "skill": folder,
        "path": path,
        "before": change.before,
        "after": change.after,
        "undoes": change.undoes,
        "scope": change.scope.key,
        "account": change.account.key if change.account else None,
        "message_id": change.message_id,
    }


def _pending_to_json(note: PendingNote) -> dict[str, object]:
    return {
        "id": note.id,
        "at": note.at,
        "target": note.target,
        "reason": note.reason,
        "is_draft": note.is_draft,
        "operations": [asdict(operation) for operation in note.operations],
        "scope": note.scope.key,
        "account": note.account.key if note.account else None,
        "message_id": note.message_id,
    }


def list_skills_command(
    words: Words = None, scope: InScope = None, as_json: AsJson = False
) -> None:
    """List the skills, or those that contain these words.

    Without words, the last line names the skills that weren't used for a long time.
    """

    async def load_json(services: Services, scopes: frozenset[Scope]) -> object:
        skills, problems = await services.skills.list_skills(scopes, " ".join(words or ()))
        rows = []
        for skill in skills:
            row = {name: getattr(skill, name) for name in _SKILL_FIELDS}
            rows.append(row | {"scope": skill.scope.key})
        return {"skills": rows, "troubles": list(map(texts.word, problems))}

    shell.run_chat_command(
        _SKILL_COMMANDS,
        "skills",
        ["list", *(words or ())],
        scope,
        load_json=load_json if as_json else None,
    )


def remember_command(words: Words = None, scope: InScope = None) -> None:
    """Remember a fact, such as "Ana's birthday is on 3 May"."""
    shell.run_chat_command("facts.FactCommands", "remember", words, scope)


def list_facts_command(
    words: Words = None, limit: Limit = 50, scope: InScope = None, as_json: AsJson = False
) -> None:
    """List what Mneme knows.

    The latest facts come first. With words, it lists the facts that match them, best first.
    """

    async def work(services: Services, context: CommandContext) -> None:
        """Find the facts and return them, or print them."""
        from gateway.commands.facts import FactCommands

        commands = FactCommands(services)
        text = " ".join(words or ())
        facts = await commands.find_facts(text, context, limit)
        if as_json:
            shell.print_json([_fact_to_json(fact) for fact in facts])
            return
        if not facts:
            shell.print_text(
                texts.compose("nothing_about", text=text) if words else texts.NOTHING_YET
            )
        zone = services.zone_of(context.zone)
        for fact in facts:
            line = texts.describe_fact(fact, commands.known_facts.zone, zone)
            shell.print_text(texts.pair(f"f{fact.id}", line))

    shell.run_as_owner(work, scope)


def _fact_to_json(fact: Fact) -> dict[str, object]:
    row = {name: getattr(fact, name) for name in _FACT_FIELDS}
    row["scope"] = fact.scope.key
    row["is_current"] = fact.is_open
    row["trust"] = round(fact.trust, 2)
    return row


def forget_command(words: Words = None, yes: Yes = False, scope: InScope = None) -> None:
    """Erase all messages about a subject.

    Everything that was made from them is erased, too. You can use words, a phrase in quotes, and
    the filters of `mneme recall`.
    """
    shell.run_chat_command("privacy.ForgetCommands", "forget", words, scope, is_confirmed=yes)
