"""Lists, shows, adds, removes, switches and calls skills: /skills and /skill."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from core.agent.skill_turns import SkillTurns
from core.errors import Refused, Report
from core.guard.guard import clean_text
from core.markup.markdown import escape
from core.review.pending import split_anyway
from core.skills.format import Skill
from core.skills.tools import RuleReader, SkillTools, render_files, render_skill
from core.store.notes import Operation
from core.text.normalize import join_sentences
from core.types import Account, Answer, Command, Inbound, Scope
from gateway.commands.registry import (
    CommandContext,
    is_command,
    load_specs,
    make_button,
    split_action,
)
from gateway.services import Services
from gateway.texts.catalog import Texts

_MAX_LISTED_SKILLS = 50
_MAX_DESCRIPTION_CHARS = 200
# If a skill wasn't used for this long, the end of the list names it.
_UNUSED_PERIOD = timedelta(days=90)
_CHANGING_ACTIONS = ("add", "remove", "enable", "disable", "right", "wrong", "pin", "unpin")
# A confirmed removal ends with this word.
_CONFIRMED = "--confirmed"


class SkillCommands:
    specs = load_specs("skills", "skill")
    suggests = ("skills",)

    def __init__(self, services: Services, read_rule: RuleReader | None = None) -> None:
        self._services = services
        self._skills = services.skills
        self.tools = SkillTools(services.skills, services.conversations, read_rule)
        self.turns = SkillTurns(self.tools, is_command)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run the action named by the first word, or list the skills that contain the words.

        Raises Refused if a group member tries to change skills, or if the action isn't possible.
        """
        texts = context.texts
        if command.name == "skill":
            return await self._refuse_call(command.arguments.strip(), context)
        action, text = split_action(command.arguments)
        if context.is_member and action in _CHANGING_ACTIONS:
            raise Refused(texts.OWNER_OF_SKILLS)
        match action:
            case "show":
                return await self._show(text, context)
            case "add":
                return await self._add(text, context)
            case "remove":
                return await self._remove(text, context)
            case "enable" | "disable":
                return await self._switch(text, context, is_disabled=action == "disable")
            case "right" | "wrong":
                return await self._judge(text, context, is_right=action == "right")
            case "pin" | "unpin":
                return await self._pin(text, context, is_pinned=action == "pin")
            case "list":
                return await self._list(text, context)
        return await self._list(command.arguments, context)

    async def is_skill_call(self, inbound: Inbound, scope: Scope) -> bool:
        """Return whether a message calls an enabled skill that is visible in this scope."""
        scopes = await self._services.people.load_visible_scopes(scope)
        return await self.turns.find_called_skill(inbound.text, scopes) is not None

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the names of skills that contain `typed`.

        Names that begin with `typed` come first.
        """
        scopes = await self._services.people.load_visible_scopes(scope)
        skills, _ = await self._skills.list_skills(scopes)
        part = typed.strip().lower().replace("_", "-")
        names = [skill.name for skill in skills if part in skill.name]
        names.sort(key=lambda name: not name.startswith(part))
        return {name: name for name in names}

    async def _refuse_call(self, arguments: str, context: CommandContext) -> Answer:
        """Raise Refused for a /skill command that doesn't name an enabled skill.

        A valid call is handled as a message for the model (see `CommandRegistry.resolve`), so it
        never gets here.
        """
        texts = context.texts
        name, _, _ = arguments.partition(" ")
        if not name:
            raise Refused(texts.SKILL_USAGE)
        await self._skills.find(name, context.scopes)
        raise Refused(texts.SKILL_OFF)

    async def _list(self, words: str, context: CommandContext) -> Answer:
        """List the skills that contain all `words`, and then the folders with problems.

        Without `words`, unused skills are also named. After `_MAX_LISTED_SKILLS` skills, a sentence
        says how many more there are.
        """
        texts = context.texts
        skills, problems = await self._skills.list_skills(context.scopes, words)
        lines = []
        for skill in skills[:_MAX_LISTED_SKILLS]:
            description = render_skill(skill, _MAX_DESCRIPTION_CHARS).removeprefix("- ")
            lines.append(f"- {escape(description)}")
        if len(skills) > _MAX_LISTED_SKILLS:
            lines.append(texts.MORE_SKILLS.format(number=len(skills) - _MAX_LISTED_SKILLS))
        if not lines:
            lines.append(texts.NO_SUCH_SKILLS if words else texts.NO_SKILLS)
        lines += [f"- ⚠ {escape(texts.word(problem))}" for problem in problems[:_MAX_LISTED_SKILLS]]
        if not words:
            unused_names = self._list_unused_names(skills)
            if unused_names:
                names = texts.join_list([f"`{name}`" for name in unused_names])
                lines.append("")
                lines.append(texts.UNUSED_SKILLS.format(days=_UNUSED_PERIOD.days, names=names))
        return Answer(text="\n".join(lines))

    def _list_unused_names(self, skills: Sequence[Skill]) -> list[str]:
        """Return the names of own skills that weren't used for `_UNUSED_PERIOD`.

        If a skill was never used, the time since its last change counts. Skills that are off or
        pinned are left out.
        """
        since = self._services.clock.now() - _UNUSED_PERIOD
        names = []
        for skill in skills:
            last_at = skill.used_at or skill.changed_at or since
            is_kept = skill.is_disabled or skill.is_pinned
            if skill.is_own and not is_kept and last_at <= since:
                names.append(skill.name)
        return names[:_MAX_LISTED_SKILLS]

    async def _show(self, text: str, context: CommandContext) -> Answer:
        """Show the text of a skill, or of one of its files, as a code block."""
        texts = context.texts
        name, _, path = text.partition(" ")
        skill = await self._skills.find(name, context.scopes)
        content = clean_text(await self._skills.read_text(skill, path.strip())).rstrip()
        # A fence must be longer than any run of backticks in the text.
        backtick_runs = re.findall("`+", content)
        fence = "`" * max([3, *(len(run) + 1 for run in backtick_runs)])
        lines = [f"{fence}\n{content}\n{fence}"]
        files = render_files(skill)
        if files and not path:
            lines += ["", texts.SKILL_FILES.format(name=skill.name)]
            lines += [escape(file) for file in files]
        return Answer(text="\n".join(lines))

    async def _add(self, text: str, context: CommandContext) -> Answer:
        """Add the skills of a local folder or zip file.

        Raises Refused outside the shell, or if the skills can't be added.
        """
        texts = context.texts
        path, is_insisting = split_anyway(text)
        if not path or not context.is_shell:
            raise Refused(texts.ADD_SKILLS_IN_SHELL)
        author = replace(context.author, is_insisting=is_insisting)
        results = await self._skills.add(Path(path), context.scope, context.scopes, author)
        quoted_names = texts.join_list([f"`{name}`" for name in results.names])
        lines = [texts.SKILLS_ADDED.format(names=quoted_names)]
        if results.problems:
            lines.append(texts.SKILLS_LEFT_OUT)
            lines += [f"- {escape(texts.word(problem))}" for problem in results.problems]
        return Answer(text="\n".join(lines))

    async def _remove(self, text: str, context: CommandContext) -> Answer:
        """Remove a skill after a confirmation."""
        texts = context.texts
        name, _, confirmation = text.partition(" ")
        skill = await self._skills.find(name, context.scopes)
        is_confirmed = confirmation.strip() == _CONFIRMED and not context.is_typed_command
        if skill.is_own and not is_confirmed:
            files = texts.format_count(len(render_files(skill)), "file")
            return Answer(
                text=texts.REMOVE_SKILL.format(name=skill.name, files=files),
                confirm_command=Command(
                    name="skills", arguments=f"remove {skill.name} {_CONFIRMED}"
                ),
            )
        removal = Operation(action="delete", path=skill.name)
        report = await self._skills.apply(context.scope, context.scopes, removal, context.author)
        return describe_change(context.texts, report)

    async def _switch(self, name: str, context: CommandContext, *, is_disabled: bool) -> Answer:
        """Disable or enable a skill."""
        texts = context.texts
        skill = await self._skills.find(name, context.scopes)
        await self._services.notes.update_skill(skill.scope, skill.name, is_disabled=is_disabled)
        template = texts.SKILL_SWITCHED_OFF if is_disabled else texts.SKILL_SWITCHED
        return Answer(text=template.format(name=skill.name))

    async def _judge(self, name: str, context: CommandContext, *, is_right: bool) -> Answer:
        """Record that a skill is right or wrong. A wrong skill is switched off."""
        texts = context.texts
        skill = await self._skills.find(name, context.scopes)
        await self._skills.judge(skill, context.author, is_right=is_right)
        template = texts.SKILL_RIGHT if is_right else texts.SKILL_WRONG
        return Answer(text=template.format(name=f"`{skill.name}`"))

    async def _pin(self, name: str, context: CommandContext, *, is_pinned: bool) -> Answer:
        """Pin or unpin a skill."""
        texts = context.texts
        skill = await self._skills.find(name, context.scopes)
        await self._services.notes.update_skill(skill.scope, skill.name, is_pinned=is_pinned)
        template = texts.SKILL_PINNED if is_pinned else texts.SKILL_UNPINNED
        return Answer(text=template.format(name=f"`{skill.name}`"))


def describe_change(texts: Texts, report: Report) -> Answer:
    """Return what was done to a skill, with a button instead of the command that undoes it."""
    buttons = []
    lines = []
    for sentence in report.sentences:
        if sentence.key == "undo_with":
            command = f"undo {sentence.values['change']}"
            buttons.append(make_button(texts.BUTTON_UNDO, "memory", command))
        else:
            lines.append(escape(texts.word(sentence)))
    return Answer(text=join_sentences(lines), buttons=tuple(buttons))
