"""The model's tools for skills, and their section of the prompt. What the model keeps waits for a yes, unless all that
it has read in the conversation was typed by the person or is the person's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Literal

from pydantic import Field

from core.errors import ToolError
from core.guard.guard import Arguments, cleaned, tool_of
from core.review.pending import is_foreign, reason_to_wait
from core.skills.format import FOLDERS, SKILL_FILE, Skill
from core.skills.library import SCRIPTED, Skills
from core.store.notes import Author, Operation
from core.store.sessions import Conversations
from core.text.normalize import shortened
from core.types import Tool, ToolContext

HEADING = "# Skills\nProcedures that you keep. Before you do what one is for, read it with skill_view, and follow it."
LIST_CHARS = VIEW_CHARS = 20_000
FILES_SHOWN = 50
_OWN = ("skills_list", "skill_view", "skill_manage", "memory", "reminder")
"""Tools that tell only what the person has typed or said yes to."""


class _List(Arguments):
    words: str = Field(default="", description="Only skills with these words in name, description, category or tags.")


class _View(Arguments):
    name: str
    path: str = Field(default="", description="A file of the skill, such as references/steps.md; without it SKILL.md.")
    line: int = Field(default=1, ge=1, description="Where to begin, when an answer was cut.")


class _Manage(Arguments):
    action: Literal["create", "patch", "edit", "delete", "write_file", "remove_file"]
    name: str = Field(description="Small letters, digits and single hyphens: tidy-inbox.")
    content: str = Field(
        default="",
        description="create, edit: all of SKILL.md: ---, lines `name:` and `description:` (what it does and when to "
        "use it, in quotes), ---, then the steps in Markdown. write_file: all of the file. patch: the new text.",
    )
    old_text: str = Field(default="", description="patch: what to replace; it must stand there exactly once.")
    path: str = Field(default="", description=f"The file: SKILL.md, or one in {', '.join(FOLDERS)}.")


class SkillTools:
    def __init__(self, skills: Skills, conversations: Conversations) -> None:
        self.skills = skills
        self._conversations = conversations

    @property
    def all(self) -> Sequence[Tool]:
        of_skills = partial(tool_of, package="core.skills", is_quote=True)
        return (
            of_skills("skills_list", _List, self._list, is_reading=True),
            of_skills("skill_view", _View, self._view, is_reading=True),
            of_skills("skill_manage", _Manage, self._manage),
        )

    async def section(self, context: ToolContext) -> str:
        """Of the prompt of a session; empty where there are no skills."""
        index = await self.skills.index(context.scopes)
        return f"{HEADING}\n{index}" if index else ""

    async def _list(self, asked: _List, context: ToolContext) -> str:
        found, troubles = await self.skills.listed(context.scopes, asked.words)
        lines = [*map(described, found), *(f"({trouble})" for trouble in troubles)]
        sizes = accumulate(len(line) + 1 for line in lines)
        shown = [line for line, size in zip(lines, sizes, strict=True) if size <= LIST_CHARS]
        left = [f"({len(lines) - len(shown):,} more: give words)"] * (len(shown) < len(lines))
        return "\n".join([*shown, *left]) or "There are no such skills."

    async def _view(self, asked: _View, context: ToolContext) -> str:
        skill = await self.skills.find(asked.name, context.scopes)
        if skill.is_disabled:
            raise ToolError(f"The skill {skill.name} is switched off; the person can switch it on with /skills.")
        if asked.path not in ("", SKILL_FILE):
            return _from(cleaned(await self.skills.text(skill, asked.path)), asked.line)
        return await self.shown(skill, context, asked.line)

    async def shown(self, skill: Skill, context: ToolContext, line: int = 1) -> str:
        """Its SKILL.md from a line on, and which files it has; counts it as used."""
        text = _from(cleaned(await self.skills.text(skill)), line)
        if not context.session.is_incognito:
            await self.skills.used(skill, context.epoch)
        held = list((await self.skills.files(skill)).items())
        files = [f"- {path} ({size:,} bytes)" for path, size in held[:FILES_SHOWN]]
        files += [f"- and {len(held) - FILES_SHOWN:,} more"] if len(held) > FILES_SHOWN else []
        return "\n".join([text.rstrip(), *(["", "Its files, for skill_view with a path:", *files] if files else [])])

    async def _manage(self, asked: _Manage, context: ToolContext) -> str:
        if not context.session.is_remembered:
            raise ToolError("Nothing is kept in this conversation; read skills only.")
        is_of_file = asked.action in ("patch", "write_file", "remove_file")
        path = "/".join(filter(None, (asked.name, asked.path))) if is_of_file else asked.name
        done = Operation(action=asked.action, content=asked.content, old_text=asked.old_text, path=path)
        author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
        if context.scope.is_room and context.scopes == {context.scope}:
            reason: str | None = "in a room the owner decides which skills there are"
            author = replace(author, origin="member")
        else:
            reason = reason_to_wait([done]) or await self._foreign(context)
        author = replace(author, origin="typed") if reason is None else replace(author, reason=reason)
        return await self.skills.apply(context.scope, context.scopes, done, author)

    async def _foreign(self, context: ToolContext) -> str | None:
        """Why what the model writes may be somebody else's, as a clause."""
        rows = await self._conversations.history(context.session, context.scopes)
        found = next((row for row in rows if row.kind == "summary" or is_foreign(row, context.sender, _OWN)), None)
        if found is None:
            return None
        which = f"what {found.tool_name} has found" if found.role == "tool" else "what somebody else wrote"
        return f"this conversation has {which}, which may be where it comes from"


def _from(text: str, line: int) -> str:
    """What stands from a line on, as much as is shown at a time."""
    rest = "".join(text.splitlines(keepends=True)[line - 1 :])
    if len(rest) <= VIEW_CHARS:
        return rest
    shown = rest[:VIEW_CHARS].rpartition("\n")[0] or rest[:VIEW_CHARS]
    return f"{shown}\n[cut: it goes on with line={line + shown.count(chr(10)) + 1}]"


def described(skill: Skill) -> str:
    """A skill as one line of a list."""
    tags = ", ".join(skill.tags)
    about = {"category": skill.category, "version": skill.version, "for": ", ".join(skill.platforms), "tags": tags}
    marks = [f"{name} {cleaned(shortened(value, 100))}" for name, value in about.items() if value]
    marks += [SCRIPTED] if skill.has_scripts else []
    marks += ["switched off"] if skill.is_disabled else []
    more = f" ({'; '.join(marks)})" if marks else ""
    return f"- {skill.name}: {cleaned(skill.description)}{more}"
