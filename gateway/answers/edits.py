"""Applies edits and deletions of messages, and finds the edited questions to answer again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

from core.agent.prompt import with_attachments
from core.agent.tool_runner import may_change
from core.agent.turn import Agent
from core.media.intake import is_replaced
from core.store.mailbox import Inbox
from core.store.message_ids import LatestQuestion
from core.types import Address, Command, Inbound, Scope, Tool
from gateway.commands.registry import CommandRegistry
from gateway.queues import ConversationQueues, PendingEvent


class Edits:
    """Changes messages that are waiting, running or stored.

    `withdraw` removes a waiting event without an answer.
    """

    def __init__(
        self,
        agent: Agent,
        commands: CommandRegistry,
        queues: ConversationQueues,
        inbox: Inbox,
        withdraw: Callable[[PendingEvent], Awaitable[None]],
    ) -> None:
        self._agent = agent
        self._commands = commands
        self._queues = queues
        self._inbox = inbox
        self._withdraw = withdraw

    async def amend(self, inbound: Inbound) -> None:
        """Apply an edit or a deletion to a message that is waiting, running or stored."""
        event = self._queues.find(inbound)
        if event is not None and event.is_waiting:
            if inbound.kind == "delete":
                await self._withdraw(event)
            else:
                event.apply_edit(inbound)
                await self._inbox.update(event.entry)
        is_stored = await self._agent.sessions.amend(inbound)
        if not is_stored and event is not None and event.is_running:
            # The runner applies the change as soon as the message is stored.
            event.changes.append(inbound)

    async def apply(self, inbound: Inbound, scope: Scope) -> bool:
        """Apply an edit to a message and its files.

        Returns whether the edit changes a question that only its answer follows, so that the
        question may be answered again.
        """
        edit, has_new_file = inbound, False
        if self._agent.media is not None:
            edit, has_new_file = await self._agent.media.follow_edit(inbound, scope)
        is_new_question = await self._changes_latest_question(inbound, edit, has_new_file)
        await self.amend(edit)
        return is_new_question

    async def _changes_latest_question(
        self, inbound: Inbound, edit: Inbound, has_new_file: bool
    ) -> bool:
        """Return whether a message has other words or files, and at most its answer follows it.

        A message without an answer may also be unchanged, because a mention is no part of its text.

        `edit` is the edit `inbound` with the spoken words of the message. Returns False for
        incognito messages, and if a tool may have changed something for the answer, because a
        second answer might do that again. While the message is being answered, nothing may wait
        behind it, and `TurnRunner` checks the tools afterwards.
        """
        if self._inbox.is_incognito(inbound.address):
            return False
        event = self._queues.find(inbound)
        if event is not None:
            is_last = event.is_running and not self._queues.has_waiting(inbound.address)
            return is_last and (has_new_file or _has_other_content(event.inbound, inbound))
        question = await load_repeatable_question(
            self._agent, self._commands, inbound.address, inbound.message_id
        )
        if question is None:
            return False
        if not question.is_answered:
            # The message wasn't for Mneme before the edit.
            return True
        return has_new_file or question.text != with_attachments(edit.text, edit.attachments)


def _has_other_content(message: Inbound, edit: Inbound) -> bool:
    """Return whether an edit changes the text or the files of a message."""
    if message.text != edit.text or len(message.attachments) != len(edit.attachments):
        return True
    pairs = zip(message.attachments, edit.attachments, strict=True)
    return any(is_replaced(old.reference, new) for old, new in pairs)


async def load_repeatable_question(
    agent: Agent, commands: CommandRegistry, address: Address, message_id: str
) -> LatestQuestion | None:
    """Return a question that may be answered again, or None.

    Only its answer and commands may follow it. Neither these commands nor a tool of the answer may
    have changed anything.
    """
    question = await agent.sessions.conversations.load_latest_question(address, message_id)
    if question is None or not all(map(commands.is_read_only, _parse_commands(question))):
        return None
    return None if _may_have_changed(agent.tool_runner.tools, question) else question


def _parse_commands(question: LatestQuestion) -> Iterator[Command]:
    """Yield the commands that follow the answer to a question."""
    for line in question.commands:
        name, _, arguments = line.removeprefix("/").partition(" ")
        yield Command(name=name, arguments=arguments)


def _may_have_changed(tools: Mapping[str, Tool], question: LatestQuestion) -> bool:
    """Return whether a tool may have changed something for the answer to a question.

    A tool without a stored call may have, because rules did its work or the call was erased.
    """
    if not {call["name"] for call in question.calls}.issuperset(question.tool_names):
        return True
    return any(
        call["name"] not in tools or may_change(tools[call["name"]], call)
        for call in question.calls
    )
