"""Defines the model's tools for skills, and the section about skills in the prompt.

A change by the model waits for confirmation if the conversation contains text that the person
didn't type, such as a web page or a forwarded message, because the change may come from that text.
It doesn't wait if each instruction follows from the person's typed words (`support.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pydantic import Field

from core.errors import ToolError, word_clause
from core.guard.guard import clean_text
from core.guard.tool_definitions import ToolArguments, build_tool, parse_arguments
from core.review.pending import explain_suspicion, find_foreign_source
from core.skills.format import DESCRIPTION_CHARS, SKILL_FILE, Skill
from core.skills.library import NO_SHELL, Skills
from core.store.notes import Author, Operation
from core.store.sessions import Conversations
from core.text.normalize import shorten
from core.types import Effect, Json, Subject, Tool, ToolContext

HEADING = (
    "# Skills\nProcedures that you keep. Before you do what one is for, read it with skill_view, "
    "and follow it."
)
SHOWN_CHARS = 20_000
# In a list, the version, the platforms and other details of a skill are cut to this length.
DETAIL_CHARS = 100
# Tools whose results contain only text that the person typed or approved.
_OWN_TOOLS = ("skills_list", "skill_view", "skill_manage", "memory", "reminder")


class _List(ToolArguments):
    words: str = ""
    line: int = Field(default=1, ge=1)


class _View(ToolArguments):
    name: str
    path: str = ""
    line: int = Field(default=1, ge=1)


class _Manage(ToolArguments):
    action: Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]
    name: str
    content: str = ""
    old_text: str = ""
    path: str = ""


_EFFECTS = {
    "create": Effect.ADD,
    "patch": Effect.CHANGE,
    "edit": Effect.CHANGE,
    "delete": Effect.REMOVE,
    "write_file": Effect.CHANGE,
    "remove_file": Effect.REMOVE,
}

# Returns the text of a rule in the owner's projects by its name, or None if there is no such rule.
RuleReader = Callable[[str, ToolContext], Awaitable[str | None]]


@dataclass
class SkillTools:
    """Builds the tools `skills_list`, `skill_view` and `skill_manage`, and runs their calls."""

    skills: Skills
    conversations: Conversations
    # Reads the rules of the owner's projects, which `skill_view` also shows.
    read_rule: RuleReader | None = None

    @property
    def tools(self) -> Sequence[Tool]:
        build = partial(build_tool, package="core.skills", is_quote=True)
        return (
            build("skills_list", _List, self._run_list, effects=Effect.READ, is_read_only=True),
            build("skill_view", _View, self._run_view, effects=Effect.READ, is_read_only=True),
            build(
                "skill_manage",
                _Manage,
                self._run_manage,
                effects=_EFFECTS,
                can_hold=True,
                find_subjects=self._find_subjects,
            ),
        )

    async def prompt_section(self, context: ToolContext) -> str:
        """Return the section of the system prompt, or an empty string if there are no skills."""
        index = await self.skills.render_index(context.scopes)
        return f"{HEADING}\n{index}" if index else ""

    async def _run_list(self, arguments: _List, context: ToolContext) -> str:
        """List the skills that match the words, and the folders that aren't valid skills."""
        skills, problems = await self.skills.list_skills(context.scopes, arguments.words)
        lines = [render_skill(skill) for skill in skills]
        lines += [f"({problem})" for problem in problems]
        return _cut_from_line("\n".join(lines) or "There are no such skills.", arguments.line)

    async def _run_view(self, arguments: _View, context: ToolContext) -> str:
        """Return the text of a rule or of a file of a skill, starting at the given line.

        Raises ToolError if the skill is disabled.
        """
        if self.read_rule is not None:
            rule = await self.read_rule(arguments.name, context)
            if rule is not None:
                return _cut_from_line(rule, arguments.line)
        skill = await self.skills.find(arguments.name, context.scopes)
        if skill.is_disabled:
            raise ToolError(
                f"The skill {skill.name} is switched off; the person can switch it on with /skills."
            )
        if arguments.path in ("", SKILL_FILE):
            return await self.show_skill(skill, context, arguments.line)
        text = await self.skills.read_text(skill, arguments.path)
        return _cut_from_line(clean_text(text), arguments.line)

    async def show_skill(self, skill: Skill, context: ToolContext, line: int = 1) -> str:
        """Return SKILL.md starting at a line, and the list of the skill's other files.

        This counts as a use of the skill, except in incognito sessions.
        """
        text = _cut_from_line(clean_text(await self.skills.read_text(skill)), line).rstrip()
        if not context.session.is_incognito:
            await self.skills.notes.update_skill(
                skill.scope, skill.name, context.epoch, used_at=context.now
            )
        files = render_files(skill)
        if not files:
            return text
        return "\n".join([text, "", "Its files, for skill_view with a path:", *files])

    async def _run_manage(self, arguments: _Manage, context: ToolContext) -> str:
        """Change a skill, or store the change until a person confirms it. Returns a report.

        Raises ToolError in an incognito conversation, and Refused if the change isn't possible.
        """
        if not context.session.is_remembered:
            raise ToolError("Nothing is kept in this conversation; read skills only.")
        path = arguments.name
        if arguments.action in ("patch", "write_file", "remove_file"):
            path = "/".join(filter(None, (arguments.name, arguments.path)))
        operation = Operation(
            action=arguments.action,
            content=arguments.content.encode("utf-8", "replace").decode(),
            old_text=arguments.old_text,
            path=path,
        )
        author = await self._build_author(operation, context)
        report = await self.skills.apply(context.scope, context.scopes, operation, author)
        return str(report)

    async def _find_subjects(self, arguments: Json, context: ToolContext) -> Sequence[Subject]:
        """Return the skill that a call changes."""
        parsed_arguments = parse_arguments(_Manage, arguments)
        if parsed_arguments.action == "create":
            return []
        skill = await self.skills.find(parsed_arguments.name, context.scopes)
        skills, _ = await self.skills.list_skills(context.scopes, "")
        others = [other.name for other in skills if other.name != skill.name]
        return [
            Subject(
                label=word_clause("label_skill"),
                text=skill.name,
                is_pinned=skill.is_pinned,
                kind="skill",
                others=others,
            )
        ]

    async def _build_author(self, operation: Operation, context: ToolContext) -> Author:
        """Return the author of a change by the model.

        The author's origin is "typed" if the change may be made at once. Otherwise the change waits
        for confirmation, and `author.reason` says why.
        """
        author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
        # The owner's own groups see more than their own scope.
        is_others_group = context.scope.is_group and context.scopes == {context.scope}
        if is_others_group:
            return replace(author, origin="member", reason=word_clause("waits_group_skills"))
        reason = explain_suspicion([operation]) or None
        if reason is None:
            reason = await self._find_doubt(operation, context)
        if reason is None:
            return replace(author, origin="typed")
        return replace(author, reason=reason)

    async def _find_doubt(self, operation: Operation, context: ToolContext) -> str | None:
        """Return a clause that says why a change may not come from the person, or None.

        A change that the approval gate stops waits for confirmation, unless it only adds
        instructions that the person typed.
        """
        hold_reason = context.hold_reason or None
        if operation.action in ("delete", "remove_file") or await self._is_pinned(
            operation, context
        ):
            return hold_reason
        rows = await self.conversations.load_history(context.session, context.scopes)
        source = find_foreign_source(rows, context, _OWN_TOOLS)
        if hold_reason is None and source is None:
            return None
        old_text = await self._load_old_text(operation, context)
        # Imported here because few conversations write skills.
        from core.facts.evidence import EvidenceSearch
        from core.skills.support import SkillSupport, adds_only

        evidence = await EvidenceSearch(self.conversations).load_session(
            context.session, context.scopes
        )

        def is_supported() -> bool:
            support = SkillSupport.collect(evidence, rows, context.sender)
            return support.supports(operation.content, old_text)

        if not await asyncio.to_thread(is_supported):
            return hold_reason or source
        return None if adds_only(operation.content, old_text) else hold_reason

    async def _is_pinned(self, operation: Operation, context: ToolContext) -> bool:
        """Return whether an operation changes a skill that a person has pinned."""
        if operation.action == "create":
            return False
        name, _, _ = operation.path.partition("/")
        return (await self.skills.find(name, context.scopes)).is_pinned

    async def _load_old_text(self, operation: Operation, context: ToolContext) -> str:
        """Return the text that an operation replaces, or "" if it creates a skill or a file."""
        if operation.action == "edit":
            skill = await self.skills.find(operation.path, context.scopes)
            return await self.skills.read_text(skill)
        return operation.old_text if operation.action == "patch" else ""


def _cut_from_line(text: str, line: int) -> str:
    """Return a text starting at a line.

    If more than `SHOWN_CHARS` characters remain, the text is cut, and a note at the end says so.
    """
    remaining_text = "".join(text.splitlines(keepends=True)[line - 1 :])
    if len(remaining_text) <= SHOWN_CHARS:
        return remaining_text
    excerpt = remaining_text[:SHOWN_CHARS]
    # The last line is probably cut, so it's left out unless it's the only one.
    excerpt = excerpt.rpartition("\n")[0] or excerpt
    next_line = line + excerpt.count("\n") + 1
    return f"{excerpt}\n[cut: it goes on with line={next_line}]"


def render_files(skill: Skill) -> list[str]:
    """Return an item of a list for each file of a skill except SKILL.md."""
    return [
        f"- {path} ({size:,} bytes)" for path, size in skill.files.items() if path != SKILL_FILE
    ]


def render_skill(skill: Skill, limit_chars: int = DESCRIPTION_CHARS) -> str:
    """Return a skill as an item of a list, with its description and details."""
    details = []
    for name in ("category", "version", "platforms", "tags"):
        value = skill.category if name == "category" else skill.front_value(name)
        if value:
            details.append(f"{name} {clean_text(shorten(value, DETAIL_CHARS))}")
    if skill.needs_shell:
        details.append(NO_SHELL)
    if skill.is_disabled:
        details.append("switched off")
    if skill.used_at:
        details.append(f"uses: {skill.uses:,}, last on {skill.used_at:%Y-%m-%d}")
    line = f"- {skill.name}: {clean_text(shorten(skill.description, limit_chars))}"
    return f"{line} ({'; '.join(details)})" if details else line
