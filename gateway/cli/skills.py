"""`mneme skills`: the procedures that are kept, with the words that a chat has for them."""

from __future__ import annotations

from collections.abc import Callable

import typer

from core.review.pending import ANYWAY
from core.types import Scope
from gateway import texts
from gateway.cli import shell
from gateway.cli.memory import Anyway
from gateway.cli.shell import AsJson, InScope, Words, Yes
from gateway.services import Services

FIELDS = ("name", "description", "category", "version", "is_disabled", "has_scripts", "uses", "used_at")


def add_commands(app: typer.Typer) -> None:
    skills = typer.Typer(cls=shell.Group, help="Procedures that the assistant follows: folders with a SKILL.md.")
    skills.command("list")(_list)
    for action, help_text in texts.table("SKILL_ACTIONS").items():
        skills.command(action, help=help_text)(_same_as_chat(action))
    app.add_typer(skills, name="skills")


def _list(words: Words = None, scope: InScope = None, as_json: AsJson = False) -> None:
    """List the skills, those with these words, and what was not used for long."""
    from gateway.commands.skills import SkillCommands

    async def objects(services: Services, scopes: frozenset[Scope]) -> object:
        found, troubles = await services.skills.listed(scopes, " ".join(words or ()))
        return {
            "skills": [{name: getattr(one, name) for name in FIELDS} | {"scope": one.scope.key} for one in found],
            "troubles": troubles,
        }

    shell.chat(SkillCommands, "skills", ["list", *(words or ())], scope, objects=objects if as_json else None)


def _same_as_chat(action: str) -> Callable[..., None]:
    def run(words: Words = None, scope: InScope = None, anyway: Anyway = False, yes: Yes = False) -> None:
        from gateway.commands.skills import SkillCommands

        said = [action, *([ANYWAY] if anyway else []), *(words or ())]
        shell.chat(SkillCommands, "skills", said, scope, yes=yes)

    return run
