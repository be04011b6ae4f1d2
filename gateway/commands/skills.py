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
from core.skills.format import SKILL_FILE, Skill
from core.skills.tools import SkillTools, described
from core.store.notes import Operation
from core.text.normalize import shortened
from core.types import Answer, Command, Inbound, Scope
from gateway import texts
from gateway.commands.registry import CommandContext, announced, is_command
from gateway.services import Services

SHOWN, SUGGESTED = 50, 25
DESCRIPTION_CHARS = 200
UNUSED_FOR = timedelta(days=90)
CONFIRMED = "--confirmed"
_CHANGING = ("add", "remove", "enable", "disable")


class SkillCommands:
    specs = announced("skills", "skill")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._skills = services.skills
        self.tools = SkillTools(services.skills, services.conversations)
        self.turns = SkillTurns(self.tools, is_command)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        word, _, rest = command.arguments.strip().partition(" ")
        action, text = word.lower(), rest.strip()
        if command.name == "skill":
            # What calls a skill came as a message: see `is_call`.
            if not word:
                raise Refused(texts.SKILL_USAGE)
            await self._skills.find(_named(word), context.scopes)
            raise Refused(texts.SKILL_OFF)
        if context.is_member and action in _CHANGING:
            raise Refused(texts.OWNER_OF_SKILLS)
        match action:
            case "show":
                return await self._show(text, context)
            case "add":
                return await self._add(text, context)
            case "remove":
                return await self._remove(text, context)
            case "enable" | "disable":
                is_off = action == "disable"
                skill = await self._skills.switch(_named(text), context.scopes, is_disabled=is_off)
                return Answer(text=texts.SKILL_SWITCHED.format(name=skill.name, state="off" if is_off else "on"))
        return await self._list(text if action == "list" else command.arguments, context)

    async def is_call(self, inbound: Inbound, scope: Scope) -> bool:
        """Whether a message calls a skill that is seen there."""
        return await self.turns.called(inbound.text, await self._services.people.scopes(scope)) is not None

    async def suggest(self, typed: str, scope: Scope) -> Mapping[str, str]:
        """Names of skills."""
        skills, _ = await self._skills.listed(await self._services.people.scopes(scope))
        names = [skill.name for skill in skills if _named(typed) in skill.name]
        names = sorted(names, key=lambda name: (not name.startswith(_named(typed)), name))[:SUGGESTED]
        return dict(zip(names, names, strict=True))

    async def _list(self, words: str, context: CommandContext) -> Answer:
        """With what cannot be read, and what nobody has used for long."""
        found, troubles = await self._skills.listed(context.scopes, words)
        lines = [self._line(skill) for skill in found[:SHOWN]]
        if len(found) > SHOWN:
            lines.append(texts.MORE_SKILLS.format(number=len(found) - SHOWN))
        if not lines:
            lines = [texts.NO_SUCH_SKILLS if words else texts.NO_SKILLS]
        lines += [f"- ⚠ {escape(trouble)}" for trouble in troubles[:SHOWN]]
        unused = await self._skills.unused(context.scopes, self._services.clock.now() - UNUSED_FOR)
        if unused and not words:
            names = texts.listed([f"`{skill.name}`" for skill in unused[:SHOWN]])
            lines += ["", texts.UNUSED_SKILLS.format(days=UNUSED_FOR.days, names=names)]
        return Answer(text="\n".join(lines))

    def _line(self, skill: Skill) -> str:
        line = described(replace(skill, description=shortened(skill.description, DESCRIPTION_CHARS)))
        if skill.used_at is None:
            return f"- {escape(line[2:])}"
        used = f"used {texts.counted(skill.uses, 'time')}, last on {texts.day(skill.used_at, self._services.zone)}"
        return f"- {escape(line[2:])}; {used}"

    async def _show(self, text: str, context: CommandContext) -> Answer:
        """The text of a skill, or of one of its files, letter by letter."""
        name, _, path = text.partition(" ")
        skill = await self._skills.find(_named(name), context.scopes)
        written = cleaned(await self._skills.text(skill, path.strip() or SKILL_FILE))
        ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", written)), 3)
        files = [f"- {escape(one)} ({size:,} bytes)" for one, size in (await self._skills.files(skill)).items()]
        listed = ["", texts.SKILL_FILES.format(name=skill.name), *files] if files and not path else []
        return Answer(text="\n".join([self._line(skill), "", f"{ticks}\n{written.rstrip()}\n{ticks}", *listed]))

    async def _add(self, text: str, context: CommandContext) -> Answer:
        place, is_insisting = insisting(text)
        if not (place and context.is_shell):
            raise Refused(texts.ADD_SKILLS_IN_SHELL)
        author = replace(context.author, is_insisting=is_insisting)
        names = await self._skills.add(Path(place), context.scope, context.scopes, author)
        return Answer(text=texts.SKILLS_ADDED.format(names=texts.listed([f"`{name}`" for name in names])))

    async def _remove(self, text: str, context: CommandContext) -> Answer:
        name, _, confirmed = text.partition(" ")
        skill = await self._skills.find(_named(name), context.scopes)
        if confirmed.strip() != CONFIRMED and skill.is_own:
            files = texts.counted(len(await self._skills.files(skill)), "file")
            asked = Command(name="skills", arguments=f"remove {skill.name} {CONFIRMED}")
            return Answer(text=texts.REMOVE_SKILL.format(name=skill.name, files=files), confirm=asked)
        removal = Operation(action="delete", path=skill.name)
        return Answer(text=escape(await self._skills.apply(context.scope, context.scopes, removal, context.author)))


def _named(typed: str) -> str:
    return typed.strip().lower().replace("_", "-")
