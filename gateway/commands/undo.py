"""/undo, /retry, /branch: the last turns of a conversation taken back, answered anew, or left as they are in a branch.

What is undone is hidden from everybody and from the model until it is brought back; what tools did in it stays done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import Refused
from core.markup.markdown import escape
from core.store.lineage import Undoing
from core.store.rows import turns
from core.text.normalize import on_one_line, shortened
from core.types import Answer, Command, Message
from gateway import texts
from gateway.commands.registry import CommandContext, announced, button, number_in
from gateway.commands.sessions import TITLE_CHARS
from gateway.services import Services

if TYPE_CHECKING:
    from core.agent.sessions import SessionTracker

QUOTED_CHARS = 60


class UndoCommands:
    """Over the conversations of `services`; `tracker` tells memory."""

    specs = announced("undo", "retry", "branch")

    def __init__(self, services: Services, tracker: SessionTracker) -> None:
        self._services = services
        self._tracker = tracker

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if command.name == "retry":
            return await self._retry(context)
        if command.name == "branch":
            return await self._branch(" ".join(command.arguments.split()), context)
        back, _, act = command.arguments.strip().partition(" ")
        if back.lower() == "back" and (not act or "#" in act):
            return await self._bring_back(act or None, context)
        number = number_in(command.arguments.strip() or "1")
        if not number:
            raise Refused(texts.TAKE_BACK_USAGE)
        return await self._undo(number, context)

    async def _undo(self, number: int, context: CommandContext) -> Answer:
        chosen = await self._last(number, context)
        undone = await self._hide([row for turn in chosen for row in turn], context)
        if not undone:
            raise Refused(texts.NOTHING_TO_TAKE_BACK)
        what = "our last exchange" if len(chosen) == 1 else f"our last {len(chosen)} exchanges"
        lines = [texts.UNDONE.format(what=what, words=_quoted(undone))]
        if len(chosen) < number:
            lines.append(texts.NO_MORE_TO_UNDO)
        if any(row.role == "tool" for row in undone):
            lines.append(texts.TOOLS_STAY_DONE)
        return Answer(text=" ".join(lines), buttons=(button("Bring it back", "undo", f"back {context.origin}"),))

    async def _bring_back(self, act: str | None, context: CommandContext) -> Answer:
        """What the command with this key has taken back; without one, the last."""
        if context.is_member:
            raise Refused(texts.UNDO_OF_OTHERS)
        back = await self._services.conversations.bring_back(replace(self._undoing(context), act=act), context.epoch)
        await self._tracker.memory.amended(*(row.id for row in back))
        if not back:
            raise Refused(texts.NOTHING_TO_BRING_BACK)
        if all(row.role != "user" for row in back):
            return Answer(text=texts.EARLIER_ANSWER_BACK)
        return Answer(text=texts.BROUGHT_BACK.format(words=_quoted(back)))

    async def _retry(self, context: CommandContext) -> Answer:
        """Hides the last answer, and asks the model again what it answered."""
        said = [row for turn in await self._last(1, context) for row in turn if row.kind != "command"]
        question = next((row for row in reversed(said) if row.role == "user"), None)
        if question is None:
            raise Refused(texts.NOTHING_TO_RETRY)
        # One without an id of its platform cannot be taken up where it stands.
        first = question.id if question.external_id is None else question.id + 1
        if not context.has_asked:
            await self._hide([row for row in said if row.id >= first], context)
        # Whoever asked it asks it again: what the model does for it is done with their rights, in their name.
        sender, number = question.sender or context.inbound.sender, question.external_id or context.inbound.message_id
        again = replace(context.inbound, kind="message", text=question.text, message_id=number, sender=sender)
        return Answer(text="", asks=replace(again, origin=question.origin, command=None))

    async def _branch(self, title: str, context: CommandContext) -> Answer:
        session, at = context.session, context.inbound.sent_at
        if not await self._services.conversations.history(session, context.scopes):
            raise Refused(texts.NOTHING_TO_BRANCH)
        if len(title) > TITLE_CHARS:
            raise Refused(texts.TITLE_TOO_LONG.format(most=TITLE_CHARS, chars=len(title)))
        title = title or f"{session.title} (branch)" if title or session.title else ""
        # After a crash the session is the branch that this command has opened.
        if session.messages or session.parent_id is None or session.started_at != at:
            session = await self._tracker.branch(session, context.scopes, title or None, at, context.epoch)
        text = texts.BRANCHED.format(title=texts.titled(session.title), number=session.parent_id)
        return Answer(text=text, buttons=(button(f"Back to {session.parent_id}", "sessions", str(session.parent_id)),))

    async def _last(self, number: int, context: CommandContext) -> Sequence[Sequence[Message]]:
        """The last turns that may be taken back, or that this command has, oldest first; none of which all was erased,
        or, in a room, that has no answer. Raises Refused where a member of a room would hide what others said, or the
        answers to them."""
        least = {"assistant"} if context.scope.is_room else {"user", "assistant"}
        said = turns(await self._services.conversations.undoable(self._undoing(context)))
        found = [turn for turn in said if any(row.kind != "command" and row.role in least for row in turn)][-number:]
        senders = {row.sender and row.sender.id for turn in found for row in turn if row.role == "user"}
        if context.is_member and senders - {context.inbound.sender.id}:
            raise Refused(texts.UNDO_OF_OTHERS)
        return found

    async def _hide(self, rows: Sequence[Message], context: CommandContext) -> Sequence[Message]:
        ids = [row.id for row in rows]
        undone = await self._services.conversations.undo(self._undoing(context), ids, context.epoch)
        await self._tracker.memory.amended(*(row.id for row in undone))
        return undone

    def _undoing(self, context: CommandContext) -> Undoing:
        return Undoing(session=context.session, origin=context.origin, at=self._services.clock.now())


def _quoted(rows: Sequence[Message]) -> str:
    first = next((row.text for row in rows if row.role == "user"), rows[0].text)
    return escape(shortened(on_one_line(first), QUOTED_CHARS))
