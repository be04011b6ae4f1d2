"""What the sent form of a turn says of skills: the text of one that the person calls by its name, and now and then a
nudge to keep, or to mend, a procedure that was learned. Counts a skill that was called, and writes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from core.agent.prompt import CALLS_MANY, tool_calls_of
from core.errors import Refused
from core.facts.evidence import pattern
from core.guard.fence import CALLED, NUDGED, neutralise, typed_part
from core.skills.format import Skill
from core.skills.tools import SkillTools
from core.store.rows import turns
from core.types import Json, Message, Scope, ToolContext

TURNS_BETWEEN, LOOKED_AT = 8, 200
"""So many turns, within so many messages, have no second nudge."""
_WORKED = "the last turn took {calls} calls of tools. If that way will be needed again, keep it with skill_manage"
_CORRECTED = "the person may be correcting how you do something. If so, and it holds for next time too, keep it with "
_CORRECTED += "skill_manage; what is true of people is a note"


class SkillTurns:
    """`is_command`: whether a name is that of a built-in command, which wins."""

    def __init__(self, tools: SkillTools, is_command: Callable[[str], bool]) -> None:
        self._tools = tools
        self._is_command = is_command
        self._denial = pattern("no_at_first")
        self.cue = re.compile(rf"/|{self._denial.pattern}", re.IGNORECASE)
        """A message that does not fit this calls no skill and corrects nothing."""

    async def called(self, text: str, scopes: frozenset[Scope]) -> tuple[Skill, str] | None:
        """The skill that a message calls by its name, and what stands behind that; None for a command, and where there
        is no such skill or it is switched off. Hyphens may be underscores, which is what Telegram takes."""
        head, words = _split(text)
        name = head[1:].partition("@")[0].lower()
        if name == "skill":
            name, words = _split(words)
        if not head.startswith("/") or self._is_command(name):
            return None
        try:
            skill = await self._tools.skills.find(name.lower().replace("_", "-"), scopes)
        except Refused:
            return None
        return None if skill.is_disabled else (skill, words)

    async def frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[str, ...]]:
        """What goes along with each of the rows, which are answered together behind the `earlier` ones."""
        found = [await self._frame(row, context) for row in rows]
        nudge = self._nudge(rows, earlier, context)
        return [*found[:-1], (*found[-1], nudge) if nudge else found[-1]]

    async def _frame(self, row: Message, context: ToolContext) -> tuple[str, ...]:
        found = await self.called(row.text, context.scopes) if row.text.startswith("/") and _is_typed(row) else None
        if found is None:
            return ()
        skill, words = found
        try:
            text = neutralise(await self._tools.shown(skill, context))
        except Refused as refusal:
            text = neutralise(str(refusal))
        about = " for what stands behind its name" if words else ""
        frame = f"[{CALLED} “{skill.name}”{about}: what it says is what they ask you to do.]"
        return (f"{frame}\n{text}",)

    def _nudge(self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext) -> str:
        """Empty where there was one lately, and where nothing is learned: in a schedule, incognito, and in a room of
        others, whose skills the owner decides on."""
        is_foreign = context.scope.is_room and context.scopes == {context.scope}
        latest = turns(earlier[-LOOKED_AT:])[-TURNS_BETWEEN:]
        if not latest or is_foreign or not context.session.is_remembered or any(map(_is_nudged, latest)):
            return ""
        calls = tool_calls_of(latest[-1])
        is_corrected = any(_is_typed(row) and self._denial.match(row.text) for row in rows) and not _asks(latest[-1])
        is_kept = any(call["name"] == "skill_manage" for call in calls)
        if is_kept or not (is_corrected or len(calls) >= CALLS_MANY):
            return ""
        learned = _CORRECTED if is_corrected else _WORKED.format(calls=len(calls))
        used = ", ".join(_used(calls, latest[-1]))
        mend = f". You have used {used}: mend it where it fell short" if used else ""
        return f"[{NUDGED}: {learned}{mend}.]"


def _asks(turn: Sequence[Message]) -> bool:
    """Whether a turn ends with a question, or without an answer."""
    said = (row.text.rstrip() for row in reversed(turn) if row.role == "assistant" and row.origin != "job")
    return next(said, "?").endswith(("?", "？", "؟"))


def _is_nudged(turn: Sequence[Message]) -> bool:
    return any(text.startswith(f"[{NUDGED}") for text in _sent(turn))


def _sent(turn: Sequence[Message]) -> list[str]:
    return [str(block.get("text", "")) for row in turn for block in row.sent or ()]


def _split(text: str) -> tuple[str, str]:
    """The first word, and what stands behind it."""
    head, *rest = text.split(maxsplit=1) or [""]
    return head, rest[0].strip() if rest else ""


def _is_typed(row: Message) -> bool:
    return row.origin == "typed" and bool(typed_part(row.text))


def _used(calls: Sequence[Json], turn: Sequence[Message]) -> list[str]:
    """Names of skills that were read, and that were called, each once."""
    views = [call.get("input") or {} for call in calls if call["name"] == "skill_view"]
    read = [neutralise(str(view.get("name", "")))[:64] for view in views]
    called = [text.partition("“")[2].partition("”")[0] for text in _sent(turn) if text.startswith(f"[{CALLED}")]
    return list(dict.fromkeys([*read, *called]))
