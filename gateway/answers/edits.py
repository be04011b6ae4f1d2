"""Applies edits and deletions of messages, and finds the edited questions to answer again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import chain

from core.agent.prompt import with_attachments
from core.agent.tool_runner import may_change
from core.agent.turn import Agent
from core.media.intake import is_replaced
from core.store.mailbox import OutboxItem
from core.store.message_ids import StoredQuestion
from core.types import Answer, Attachment, Command, Inbound, Scope, Tool
from gateway.commands.registry import CommandRegistry, is_command, resolve_names
from gateway.delivery import Delivery
from gateway.queues import ConversationQueues, PendingEvent, find_edited_id
from gateway.texts.catalog import load_texts

# A poll, a checklist or the like. The platform changes its text, for example when a poll closes.
_POLL_OR_CHECKLIST = re.compile(r"(?:^|\n)[\w ]+: \{[^{}]*\}$")

ALBUM_S = 5.0
"""So long after the first message of an album, another one may mention Mneme."""


class EditEffect(Enum):
    """What an edit of a message leads to."""

    NOTHING = "nothing"  # the message isn't a question, or has the same content
    NEW_QUESTION = "new question"  # the edit mentions Mneme in a message that wasn't kept
    ANSWER = "answer"  # only its answer follows the question, so it can be answered again
    TOO_LATE = "too late"  # more was said after the question
    MIGHT_REPEAT_CHANGE = "repeats change"  # a second answer might repeat a change
    RUNS_COMMAND = "runs command"  # the message was or is a command, which isn't run
    TAKEN_BACK = "taken back"  # the question was taken back or forgotten


# The texts for edits that get no new answer.
_NOTICES = {
    EditEffect.TOO_LATE: "EDIT_TOO_LATE",
    EditEffect.MIGHT_REPEAT_CHANGE: "EDIT_AFTER_CHANGE",
    EditEffect.RUNS_COMMAND: "EDIT_OF_COMMAND",
    EditEffect.TAKEN_BACK: "EDIT_TAKEN_BACK",
}


class Edits:
    """Changes messages that are waiting, running or stored.

    `withdraw` removes a waiting event without an answer.
    """

    def __init__(
        self,
        agent: Agent,
        commands: CommandRegistry,
        queues: ConversationQueues,
        delivery: Delivery,
        withdraw: Callable[[PendingEvent], Awaitable[None]],
    ) -> None:
        self._agent = agent
        self._commands = commands
        self._queues = queues
        self._delivery = delivery
        self._inbox = delivery.inbox
        self._withdraw = withdraw
        # The files of messages that don't address Mneme, by album and then by message id.
        self._album_files: dict[tuple[object, ...], dict[str | None, Sequence[Attachment]]] = {}

    async def read_command(self, edit: Inbound, scope: Scope) -> Inbound:
        """Return an edit with the command that its text now is, such as ``/help@mneme_bot``.

        The command may have its name in any language. A question with /ask or a skill has none.
        """
        match = re.match(r"/(\w+)(?:@\w+)?(?:\s+(.*))?$", edit.text, re.DOTALL)
        if match is None or not edit.is_addressed or edit.origin != "typed":
            return edit
        command = Command(name=match[1].lower(), arguments=(match[2] or "").strip())
        question = await self._commands.unwrap_question(replace(edit, command=command), scope)
        if question.command is None:
            return question
        named_edit = resolve_names(question)
        is_known = named_edit.command is not None and is_command(named_edit.command.name)
        return named_edit if is_known else edit

    async def amend(self, inbound: Inbound, scope: Scope) -> None:
        """Apply an edit or a deletion to a message that is waiting, running or stored.

        `scope` is the scope of the message's chat.
        """
        event = self._queues.find(inbound)
        if event is not None and event.is_waiting:
            if inbound.kind == "delete":
                await self._withdraw(event)
            else:
                event.apply_edit(inbound)
                await self._inbox.update(event.entry)
        is_stored = await self._agent.sessions.amend(inbound, scope)
        if not is_stored and event is not None and event.is_running:
            # The runner applies the change as soon as the message is stored.
            event.changes.append(inbound)

    async def apply(self, inbound: Inbound, scope: Scope) -> EditEffect:
        """Apply an edit to a message and its files, and return the effect.

        `inbound` is the result of `read_command`. A waiting command runs as it was sent. A waiting
        question that becomes a command is withdrawn.
        """
        event = self._queues.find(inbound)
        if event is not None and event.is_waiting:
            if event.inbound.command is not None:
                return EditEffect.RUNS_COMMAND
            if inbound.command is not None:
                await self._withdraw(event)
                return EditEffect.RUNS_COMMAND
        edit, has_new_file = inbound, False
        if self._agent.media is not None:
            edit, has_new_file = await self._agent.media.follow_edit(inbound, scope)
        effect = await self._find_effect(inbound, edit, has_new_file)
        await self.amend(edit, scope)
        return effect

    async def _find_effect(self, inbound: Inbound, edit: Inbound, has_new_file: bool) -> EditEffect:
        """Return the effect of an edit.

        `edit` is the edit `inbound` with the spoken words of the message. A message without an
        answer may also be unchanged, because a mention is no part of its text. While a message is
        being answered, nothing may wait behind it, and `TurnRunner` checks the effect afterwards.
        The answer to a waiting message uses the new words anyway.
        """
        event = self._queues.find(inbound)
        if event is not None:
            is_changed = has_new_file or _has_other_content(event.inbound, inbound)
            if not (event.is_running and is_changed):
                return EditEffect.NOTHING
            is_last = not self._queues.has_waiting(inbound.address)
            return EditEffect.ANSWER if is_last else EditEffect.TOO_LATE
        conversations = self._agent.sessions.conversations
        question = await conversations.load_question(inbound.address, inbound.message_id)
        if question is None:
            is_new = await self._is_new_question(inbound)
            return EditEffect.NEW_QUESTION if is_new else EditEffect.NOTHING
        effect = find_effect(self._agent, self._commands, question)
        if effect is not EditEffect.ANSWER and _POLL_OR_CHECKLIST.search(edit.text):
            return EditEffect.NOTHING
        is_first_answer = effect is EditEffect.ANSWER and not question.is_answered
        if is_first_answer or has_new_file:
            return effect
        is_changed = question.text != with_attachments(edit.text, edit.attachments)
        return effect if is_changed else EditEffect.NOTHING

    async def _is_new_question(self, edit: Inbound) -> bool:
        """Return whether an edit may add a mention to a message in a group that Mneme hasn't kept.

        A message that was admitted before isn't answered again, even if it has been forgotten
        since. Nor is an edited command run.
        """
        if edit.is_direct or edit.command is not None:
            return False
        return not await self._inbox.is_known(replace(edit, kind="message"))

    def join_burst(self, inbound: Inbound) -> Inbound:
        """Return a message as an addressed one if it continues an addressed one that waits."""
        if inbound.is_addressed or not self._queues.continues_burst(inbound):
            return inbound
        return replace(inbound, is_addressed=True)

    def join_album(self, inbound: Inbound) -> Inbound:
        """Return a message with the files of the earlier messages of its album in a group.

        An album is several messages, and people mention Mneme in any of them. The files of those
        before it are remembered for `ALBUM_S`, and aren't stored.
        """
        if inbound.is_direct or inbound.kind != "message":
            return inbound
        key = (inbound.address, inbound.account, inbound.group_id)
        if inbound.is_addressed:
            files = chain.from_iterable(self._album_files.pop(key, {}).values())
            return replace(inbound, attachments=(*files, *inbound.attachments))
        if key not in self._album_files:
            asyncio.get_running_loop().call_later(ALBUM_S, self._album_files.pop, key, None)
        self._album_files.setdefault(key, {})[inbound.message_id] = inbound.attachments
        return inbound


async def explain_edit(delivery: Delivery, inbound: Inbound, effect: EditEffect) -> None:
    """Tell a person why an edited message gets no new answer.

    `inbound` is the edit, or the event that should have answered it. A change is explained once for
    each message, and anything else once for each person in a chat, as long as the outbox keeps the
    keys of delivered items (30 days).
    """
    if effect not in _NOTICES:
        return
    message_id = find_edited_id(inbound) or inbound.message_id
    key = f"edit:{effect.value}:{inbound.address.key}:{inbound.sender.id}"
    if effect is EditEffect.MIGHT_REPEAT_CHANGE:
        key += f":{message_id}"
    text = getattr(load_texts(inbound.language), _NOTICES[effect])
    notice = OutboxItem(
        key=key,
        kind="notice",
        address=inbound.address,
        answer=Answer(text=text),
        reply_to=message_id,
        next_at=delivery.outbox.clock.now(),
    )
    if await delivery.outbox.put(notice):
        delivery.wake()


def _has_other_content(message: Inbound, edit: Inbound) -> bool:
    """Return whether an edit changes the text or the files of a message."""
    if message.text != edit.text or len(message.attachments) != len(edit.attachments):
        return True
    pairs = zip(message.attachments, edit.attachments, strict=True)
    return any(is_replaced(old.reference, new) for old, new in pairs)


def find_effect(agent: Agent, commands: CommandRegistry, question: StoredQuestion) -> EditEffect:
    """Return the effect that a change of a stored question has.

    Only its answer and commands may follow a question that is answered again. Neither these
    commands nor a tool of the answer may have changed anything.
    """
    if question.is_command:
        return EditEffect.RUNS_COMMAND
    if question.is_undone:
        return EditEffect.TAKEN_BACK
    if question.is_followed or not all(map(commands.is_read_only, _parse_commands(question))):
        return EditEffect.TOO_LATE
    if _may_have_changed(agent.tool_runner.tools, question):
        return EditEffect.MIGHT_REPEAT_CHANGE
    return EditEffect.ANSWER


def _parse_commands(question: StoredQuestion) -> Iterator[Command]:
    """Yield the commands that follow the answer to a question."""
    for line in question.commands:
        name, _, arguments = line.removeprefix("/").partition(" ")
        yield Command(name=name, arguments=arguments)


def _may_have_changed(tools: Mapping[str, Tool], question: StoredQuestion) -> bool:
    """Return whether a tool may have changed something for the answer to a question.

    A tool without a stored call may have, because rules did its work or the call was erased.
    """
    if not {call["name"] for call in question.calls}.issuperset(question.tool_names):
        return True
    return any(
        call["name"] not in tools or may_change(tools[call["name"]], call)
        for call in question.calls
    )
