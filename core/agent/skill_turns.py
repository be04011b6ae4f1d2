"""Adds blocks about skills to the messages that the model gets.

If a message calls a skill, such as ``/tidy-inbox``, the text of that skill is added. After a
correction or a long procedure, a nudge asks the model to save the procedure as a skill, or to
improve the skill that it used. Each use of a skill is counted. Nothing else is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.agent.prompt import MANY_TOOL_CALLS, list_recent_tool_calls
from core.errors import Refused
from core.facts.wording import evidence_pattern
from core.guard.origin_and_fence import NUDGE_LEAD, SKILL_LEAD, neutralise, typed_part
from core.skills.format import Skill
from core.skills.tools import SkillTools
from core.store.rows import split_turns
from core.types import Message, Scope, ToolContext

# After a nudge, this many turns get no nudge.
TURNS_BETWEEN_NUDGES = 8
# Earlier nudges are searched for in at most this many messages.
NUDGE_LOOKBACK_MESSAGES = 200
# "/tidy-inbox the old ones", "/tidy_inbox@my_bot" or "/skill tidy-inbox".
_SKILL_CALL = re.compile(
    r"/(?P<by>skill(?:@\w+)?\s+)?(?P<name>[\w-]+)(?:@\w+)?(?:\s.*)?", re.DOTALL | re.IGNORECASE
)
_MANY_CALLS_REASON = (
    "the last turn took {calls} tool calls. If this procedure will be useful again, "
)
_CORRECTION_REASON = (
    "the person may be correcting how you do something. If the correction also applies next time, "
)
_ADVICE = (
    "save it with skill_manage, or improve the skill that you used; "
    "what you learned about people belongs in a note instead"
)
_QUESTION_MARKS = ("?", "？", "؟")


@dataclass(frozen=True)
class SkillTurns:
    """Writes the blocks about skills that are added to messages."""

    tools: SkillTools
    # Returns True for the name of a built-in command. A skill with that name needs "/skill name".
    is_command: Callable[[str], bool]

    @cached_property
    def cue(self) -> re.Pattern[str]:
        """A pattern for the start of messages that may call a skill or correct the assistant.

        It also matches some other messages. Most messages don't match and so need no full check.
        """
        return re.compile(rf"/|{evidence_pattern('leading_no').pattern}", re.IGNORECASE)

    async def find_called_skill(self, text: str, scopes: frozenset[Scope]) -> Skill | None:
        """Return the enabled skill that a message calls, or None.

        A message calls a skill with ``/name …`` or ``/skill name …``. The hyphens of a name may be
        written as underscores, because Telegram's commands can't contain hyphens.
        """
        call = _SKILL_CALL.fullmatch(text)
        if call is None:
            return None
        is_bare_name = not call["by"]
        if is_bare_name and self.is_command(call["name"].lower()):
            return None
        try:
            skill = await self.tools.skills.find(call["name"], scopes)
        except Refused:
            return None
        return None if skill.is_disabled else skill

    async def render_frames(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> list[tuple[str, ...]]:
        """Return the blocks about skills for each row of a turn, or () for a row without any.

        The last row may also get a nudge.
        """
        frames = [await self._render_skill(row, context) for row in rows]
        nudge = self._render_nudge(rows, earlier, context)
        if nudge:
            frames[-1] = (*frames[-1], nudge)
        return frames

    async def _render_skill(self, row: Message, context: ToolContext) -> tuple[str, ...]:
        """Return a block with the text of the skill that a typed message calls.

        If the skill can't be read, the block gives the reason instead. Returns () if the message
        calls no skill.
        """
        if not _is_typed(row):
            return ()
        skill = await self.find_called_skill(row.text, context.scopes)
        if skill is None:
            return ()
        try:
            text = await self.tools.show_skill(skill, context)
        except Refused as refusal:
            text = str(refusal)
        request = "they ask you to follow it, for the text after its name"
        return (f"[{SKILL_LEAD} “{skill.name}”: {request}.]\n{neutralise(text)}",)

    def _render_nudge(
        self, rows: Sequence[Message], earlier: Sequence[Message], context: ToolContext
    ) -> str:
        """Return a nudge after a correction or after a turn with many tool calls, otherwise "".

        The nudge is left out if one of the last turns had one, or if the model has just saved a
        skill. Scheduled and incognito sessions get no nudge, because they may not store skills.
        Groups that see only their own data don't get one either, because the owner decides about
        their skills.
        """
        turns = split_turns(earlier[-NUDGE_LOOKBACK_MESSAGES:])[-TURNS_BETWEEN_NUDGES:]
        is_others_group = context.scope.is_group and context.scopes == {context.scope}
        if not turns or is_others_group or not context.session.is_remembered:
            return ""
        if any(_has_nudge(turn) for turn in turns):
            return ""
        calls = list_recent_tool_calls(turns[-1])
        if any(call["name"] == "skill_manage" for call in calls):
            return ""
        if any(map(self._may_correct, rows)) and not _ends_with_question(turns[-1]):
            return f"[{NUDGE_LEAD}: {_CORRECTION_REASON}{_ADVICE}.]"
        if len(calls) >= MANY_TOOL_CALLS:
            reason = _MANY_CALLS_REASON.format(calls=len(calls))
            return f"[{NUDGE_LEAD}: {reason}{_ADVICE}.]"
        return ""

    def _may_correct(self, row: Message) -> bool:
        if not _is_typed(row) or row.text.startswith("/"):
            return False
        return self.cue.match(row.text) is not None


def _ends_with_question(turn: Sequence[Message]) -> bool:
    """Return whether a turn has no answer, or a last answer that is a question."""
    for row in reversed(turn):
        if row.role == "assistant" and row.origin != "job":
            return row.text.rstrip().endswith(_QUESTION_MARKS)
    return True


def _has_nudge(turn: Sequence[Message]) -> bool:
    """Return whether a message of the turn was sent with a nudge."""
    for row in turn:
        for block in row.sent_blocks or ():
            if str(block.get("text", "")).startswith(f"[{NUDGE_LEAD}"):
                return True
    return False


def _is_typed(row: Message) -> bool:
    return row.origin == "typed" and bool(typed_part(row.text, sender_name=row.sender_name))
