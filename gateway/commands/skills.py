"""/skills and `mneme skills`: the procedures that are kept; /skill, which calls one by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from core.agent.skill_turns import SkillTurns
from core.errors import Refused
from core.guard.guard import cleaned
from core.markup.markdown import escape
from core.review.pending import insisting
from core.skills.library import SkillTools, described, files_of
from core.store.notes import Operation
from core.types import Answer, Command, Inbound, Scope
from gateway import texts
from gateway.commands.registry import CommandContext, announced, is_command
from gateway.services import Services

SHOWN, DESCRIPTION_CHARS = 50, 200
UNUSED_FOR = timedelta(days=90)
CONFIRMED = "--confirmed"


class SkillCommands:
    specs = announced("skills", "skill")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._skills = services.skills
        self.tools = SkillTools(services.skills, services.conversations)
        self.turns = SkillTurns(self.tools, is_command)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        word, _, text = command.arguments.strip().partition(" ")
        action, text = word.lower(), text.strip()
        if command.name == "skill":
            # What calls a skill came as a message: see `is_call`.
            if word:
                await self._skills.find(word, context.scopes)
            raise Refused(texts.SKILL_OFF if word else texts.SKILL_USAGE)
        if context.is_member and action in ("add", "remove", "enable", "disable"):
            raise Refused(texts.OWNER_OF_SKILLS)
        match action:
            case "show":
                return await self._show(text, context)
            case "add":
                return await self._add(text, context)
            case "remove":
                return await self._remove(text, context)
            case "enable" | "disable":
                skill, is_off = await self._skills.find(text, context.scopes), action == "disable"
                await self._services.notes.note_skill(skill.scope, skill.name, is_disabled=is_off)
                return Answer(text=texts.SKILL_SWITCHED.format(name=skill.name, state="off" if is_off else "on"))
        return await self._list(text if action == "list" else command.arguments, context)

    async def is_call(self, inbound: Inbound, scope: Scope) -> bool:
        """Whether a message calls a skill that is seen there."""
        return await self.turns.called(inbound.text, await self._services.people.scopes(scope)) is not None

    async def suggest(self, typed: str, scope: Scope) -> Mapping[str, str]:
        """Names of skills."""
        skills, _ = await self._skills.listed(await self._services.people.scopes(scope))
        begun = typed.strip().lower().replace("_", "-")
        names = sorted((one.name for one in skills if begun in one.name), key=lambda name: not name.startswith(begun))
        return {name: name for name in names}

    async def _list(self, words: str, context: CommandContext) -> Answer:
        """With what cannot be read, and what nobody has used for long."""
        found, troubles = await self._skills.listed(context.scopes, words)
        lines = [f"- {escape(described(skill, DESCRIPTION_CHARS)[2:])}" for skill in found[:SHOWN]]
        lines += [texts.MORE_SKILLS.format(number=len(found) - SHOWN)] * (len(found) > SHOWN)
        lines = lines or [texts.NO_SUCH_SKILLS if words else texts.NO_SKILLS]
        lines += [f"- ⚠ {escape(trouble)}" for trouble in troubles[:SHOWN]]
        since = self._services.clock.now() - UNUSED_FOR
        own = [] if words else [skill for skill in found if skill.is_own and not skill.is_disabled]
        if unused := [f"`{one.name}`" for one in own if (one.used_at or one.changed_at or since) <= since][:SHOWN]:
            lines += ["", texts.UNUSED_SKILLS.format(days=UNUSED_FOR.days, names=texts.listed(unused))]
        return Answer(text="\n".join(lines))

    async def _show(self, text: str, context: CommandContext) -> Answer:
        """The text of a skill, or of one of its files, letter by letter."""
        name, _, path = text.partition(" ")
        skill = await self._skills.find(name, context.scopes)
        written = cleaned(await self._skills.text(skill, path.strip())).rstrip()
        ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", written)), 3)
        files = [] if path else list(map(escape, files_of(skill)))
        listed = ["", texts.SKILL_FILES.format(name=skill.name), *files] if files else []
        return Answer(text="\n".join([f"{ticks}\n{written}\n{ticks}", *listed]))

    async def _add(self, text: str, context: CommandContext) -> Answer:
        place, is_insisting = insisting(text)
        if not (place and context.is_shell):
            raise Refused(texts.ADD_SKILLS_IN_SHELL)
        author = replace(context.author, is_insisting=is_insisting)
        names = await self._skills.add(Path(place), context.scope, context.scopes, author)
        return Answer(text=texts.SKILLS_ADDED.format(names=texts.listed([f"`{name}`" for name in names])))

    async def _remove(self, text: str, context: CommandContext) -> Answer:
        name, _, confirmed = text.partition(" ")
        skill = await self._skills.find(name, context.scopes)
        if confirmed.strip() != CONFIRMED and skill.is_own:
            asked = Command(name="skills", arguments=f"remove {skill.name} {CONFIRMED}")
            files = texts.counted(len(files_of(skill)), "file")
            return Answer(text=texts.REMOVE_SKILL.format(name=skill.name, files=files), confirm=asked)
        removal = Operation(action="delete", path=skill.name)
        return Answer(text=escape(await self._skills.apply(context.scope, context.scopes, removal, context.author)))
