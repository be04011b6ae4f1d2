"""What the sent form of a turn says of skills: the text of one that the person calls by its name, and now and then a
nudge to keep, or to mend, a procedure that was learned. Counts a skill that was called, and writes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from core.agent.prompt import CALLS_MANY, tool_calls_of
from core.errors import Refused
from core.facts.evidence import pattern
from core.guard.fence import CALLED, NUDGED, neutralise, typed_part
from core.skills.folders import Skill
from core.skills.library import SkillTools
from core.store.rows import turns
from core.types import Message, Scope, ToolContext

TURNS_BETWEEN, LOOKED_AT = 8, 200
"""So many turns, within so many messages, have no second nudge."""
_CALL = re.compile(r"/(?P<by>skill(?:@\w+)?\s+)?(?P<name>[\w-]+)(?:@\w+)?(?:\s.*)?", re.DOTALL | re.IGNORECASE)
_WORKED = "the last turn took {calls} calls of tools. If that way will be needed again, "
_CORRECTED = "the person may be correcting how you do something. If so, and it holds for next time too, "
_KEEP = (
    "keep it with skill_manage, or mend the skill that you used where it fell short; what is true of people is a note"
)


@dataclass(frozen=True)
class SkillTurns:
    """`is_command`: whether a name is that of a built-in command, which wins."""

    tools: SkillTools
    is_command: Callable[[str], bool]

    @cached_property
    def cue(self) -> re.Pattern[str]:
        """A message that does not fit this calls no skill and corrects nothing."""
        return re.compile(rf"/|{pattern('no_at_first').pattern}", re.IGNORECASE)

    async def called(self, text: str, scopes: frozenset[Scope]) -> Skill | None:
        """The enabled skill that a message calls by its name. Hyphens may be underscores, which Telegram takes."""
        found = _CALL.fullmatch(text)
        if found is None or (not found["by"] and self.is_command(found["name"].lower())):
            return None
        with suppress(Refused):
            skill = await self.tools.skills.find(found["name"], scopes)
            return None if skill.is_disabled else skill
        return None

    async def frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[str, ...]]:
        """What goes along with each of the rows, which are answered together behind the `earlier` ones."""
        found = [await self._frame(row, context) for row in rows]
        nudge = self._nudge(rows, earlier, context)
        return [*found[:-1], (*found[-1], nudge) if nudge else found[-1]]

    async def _frame(self, row: Message, context: ToolContext) -> tuple[str, ...]:
        skill = await self.called(row.text, context.scopes) if _is_typed(row) else None
        if skill is None:
            return ()
        try:
            text = await self.tools.shown(skill, context)
        except Refused as refusal:
            text = str(refusal)
        asked = "what it says, for what stands behind its name, is what they ask you to do"
        return (f"[{CALLED} “{skill.name}”: {asked}.]\n{neutralise(text)}",)

    def _nudge(self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext) -> str:
        """Empty where there was one lately, and where nothing is learned: in a schedule, incognito, and in a room of
        others, whose skills the owner decides on."""
        latest = turns(earlier[-LOOKED_AT:])[-TURNS_BETWEEN:]
        is_foreign = context.scope.is_room and context.scopes == {context.scope}
        if not latest or is_foreign or not context.session.is_remembered or any(map(_is_nudged, latest)):
            return ""
        calls = tool_calls_of(latest[-1])
        if any(call["name"] == "skill_manage" for call in calls):
            return ""
        said = (row.text for row in rows if _is_typed(row) and not row.text.startswith("/"))
        if any(map(self.cue.match, said)) and not _asks(latest[-1]):
            return f"[{NUDGED}: {_CORRECTED}{_KEEP}.]"
        return f"[{NUDGED}: {_WORKED.format(calls=len(calls))}{_KEEP}.]" if len(calls) >= CALLS_MANY else ""


def _asks(turn: Sequence[Message]) -> bool:
    """Whether a turn ends with a question, or without an answer."""
    said = (row.text.rstrip() for row in reversed(turn) if row.role == "assistant" and row.origin != "job")
    return next(said, "?").endswith(("?", "？", "؟"))


def _is_nudged(turn: Sequence[Message]) -> bool:
    return any(str(block.get("text", "")).startswith(f"[{NUDGED}") for row in turn for block in row.sent or ())


def _is_typed(row: Message) -> bool:
    return row.origin == "typed" and bool(typed_part(row.text))
