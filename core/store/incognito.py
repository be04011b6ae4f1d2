"""Hold incognito conversations, which are never written to state.db.

They end with the process, or with `/incognito off`. Their sessions have `Session.is_incognito` set.
The ids of their sessions and messages are negative.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any

from core.errors import StaleReadError
from core.ports import EditJudge
from core.store.engine import Connection
from core.store.message_ids import StoredQuestion
from core.store.rows import split_turns
from core.types import Account, Address, Json, Message, Scope, Session

# Appears above every answer of an incognito conversation.
INCOGNITO_BADGE = "🕶 _incognito_"


_SELECT_PLACES = """
SELECT chat_id, thread_id FROM incognito_addresses
JOIN addresses ON addresses.id = incognito_addresses.address_id WHERE platform = :platform
"""


def is_any_mentioned(connection: Connection, platform: str, raw: str) -> bool:
    """Return whether a platform's raw JSON update contains the id of an incognito chat."""
    possible_ids = {*re.findall(r"-?\d+", raw)}  # e.g. "-1001234"
    for row in connection.execute(_SELECT_PLACES, {"platform": platform}):
        if row["chat_id"] in possible_ids or row["thread_id"] in possible_ids:
            return True
    return False


@dataclass(slots=True)
class AskedQuestion:
    """A question at the end of an answer, which a "yes" of one account may confirm."""

    answer_id: int
    account: Account
    expires_at: datetime
    # The question repeats foreign text, so a "yes" confirms nothing.
    is_repetition: bool
    # The event that took the question, such as "message:12".
    taker: str = ""


@dataclass(slots=True)
class IncognitoConversation:
    """The session and messages of one incognito conversation."""

    # None until the first message.
    session: Session | None = None
    messages: list[Message] = field(default_factory=list)
    # Ids of hidden messages, by the key of the command that hid them.
    undone: dict[str, Collection[int]] = field(default_factory=dict)
    # Ids of messages that are shown again, by the key of the /redo command.
    redone: dict[str, Collection[int]] = field(default_factory=dict)
    asked: list[AskedQuestion] = field(default_factory=list)

    def find(self, external_id: str | None) -> Message | None:
        """Return the message with this id on its platform, or None."""
        if external_id is None:
            return None
        for message in self.messages:
            if message.external_id == external_id:
                return message
        return None

    def find_question(self, external_id: str) -> StoredQuestion | None:
        """Return the question or command with this id on its platform, or None.

        No tool of an incognito conversation changes anything. See `message_ids.load_question`.
        """
        question = self.find(external_id)
        if question is None or question.role != "user":
            return None
        shown_messages = self._list_shown()
        if question not in shown_messages or not question.text:
            return StoredQuestion(text=question.text, is_undone=True, is_followed=True)
        is_answered = False
        commands = []
        for message in shown_messages:
            if message.id <= question.id:
                continue
            if message.role == "user" and message.kind == "command":
                commands += [message.text] if is_answered else []
            elif message.role == "user":
                if is_answered or message.sender != question.sender:
                    return StoredQuestion(text=question.text, is_followed=True)
            elif message.role == "assistant" and message.kind != "command":
                is_answered = True
        return StoredQuestion(
            text=question.text,
            is_command=question.kind == "command",
            is_answered=is_answered,
            commands=commands,
        )

    def take(self, account: Account, taker: str, now: datetime) -> list[AskedQuestion]:
        """Let an event take this account's open questions. See `IncognitoRegistry.take`."""
        taken = [question for question in self.asked if question.taker == taker]
        for question in self.asked if not taken else ():
            if not question.taker and question.account == account and question.expires_at > now:
                question.taker = taker
                taken.append(question)
        return taken

    def load_takers(self) -> dict[int, str]:
        """Return which event took the question of each answer. See `messages.load_takers`."""
        return {
            question.answer_id: "" if question.is_repetition else question.taker
            for question in self.asked
            if question.is_repetition or question.taker
        }

    def change(self, **values: Any) -> None:
        """Replace fields of the conversation's session, if it has one."""
        if self.session is not None:
            self.session = replace(self.session, **values)

    def amend(self, message: Message, text: str | None, judge: EditJudge | None = None) -> None:
        """Set the text of a chat message, or erase any message if `text` is None.

        All messages that quote the changed message lose the quote.
        """
        if text is None:
            self._replace(message, kind="command", text="", blocks=None, sent_blocks=None)
        elif message.kind == "chat":
            origin = judge(message.origin, message.text, text) if judge else message.origin
            self._replace(message, text=text, origin=origin, blocks=None, sent_blocks=None)
        for position, other in enumerate(self.messages):
            if other.quote is not None and other.quote.message_id == message.id:
                self.messages[position] = replace(other, quote=None, sent_blocks=None)

    def list_undoable(self) -> list[Message]:
        """List the messages that /undo may hide. See `lineage.list_undoable`."""
        undoable = []
        for message in reversed(self._list_shown()):
            if message.kind == "summary":
                break
            if message.kind in ("chat", "quote") or not message.text:
                undoable.append(message)
        return undoable[::-1]

    def undo(self, origin: str, ids: Collection[int]) -> Sequence[Message]:
        """Hide the messages with these ids and return them. See `lineage.undo`.

        If the command `origin` is repeated, `ids` is ignored and the same messages are returned.
        """
        hidden_ids = self.undone.setdefault(origin, ids)
        return self._select(hidden_ids)

    def redo(self, origin: str) -> Sequence[Message]:
        """Show the messages that were hidden last and return them. See `lineage.redo`.

        If the command `origin` is repeated, the same messages are returned.
        """
        if origin not in self.redone:
            ids: Collection[int] = ()
            # Skip commands whose hidden messages no longer exist.
            while self.undone and not self._select(ids):
                _, ids = self.undone.popitem()
            self.redone[origin] = ids
            self._undo_other_answer(origin, ids)
        return self._select(self.redone[origin])

    def load_history(self, scopes: frozenset[Scope]) -> list[Message]:
        """List the messages that the model sees.

        The list is empty if `scopes` doesn't contain the session's scope.
        """
        if self.session is None or self.session.scope not in scopes:
            return []
        kinds = ("chat", "quote", "summary")
        return [message for message in self._list_shown() if message.kind in kinds]

    def has_erased(self) -> bool:
        """Return whether a person's message was erased."""
        return any(
            message.role == "user" and message.kind == "command" and not message.text
            for message in self.messages
        )

    def _undo_other_answer(self, origin: str, ids: Collection[int]) -> None:
        """Hide the newer answer to a question if `ids` are the messages of an older answer."""
        has_question = any(message.role == "user" for message in self._select(ids))
        if has_question:
            return
        for turn in split_turns(self.list_undoable()):
            if any(message.id in ids for message in turn):
                answer_ids = [message.id for message in turn if message.role != "user"]
                self.undo(origin, [answer_id for answer_id in answer_ids if answer_id not in ids])
                return

    def _replace(self, message: Message, **values: Any) -> None:
        self.messages[self.messages.index(message)] = replace(message, **values)

    def _select(self, ids: Collection[int]) -> list[Message]:
        return [message for message in self.messages if message.id in ids]

    def _list_shown(self) -> list[Message]:
        """List the messages that /undo hasn't hidden."""
        hidden_ids: set[int] = set()
        for ids in self.undone.values():
            hidden_ids.update(ids)
        return [message for message in self.messages if message.id not in hidden_ids]


class IncognitoRegistry:
    """Finds the incognito conversations of this process by their address.

    When a group gets a new id, its old and new addresses share one conversation.
    """

    def __init__(self) -> None:
        self.conversations: dict[Address, IncognitoConversation] = {}
        # Generates ascending negative ids. The ids in state.db are positive.
        self._ids = count(-(2**62))

    def find_by_session(self, session_id: int) -> IncognitoConversation | None:
        """Return the conversation whose current session has this id, or None."""
        for conversation in self.conversations.values():
            if conversation.session is not None and conversation.session.id == session_id:
                return conversation
        return None

    def take(
        self, address: Address, account: Account, taker: str, now: datetime
    ) -> list[AskedQuestion]:
        """Let an event take this account's open questions. See `Actions.take`."""
        conversation = self.conversations.get(address)
        return [] if conversation is None else conversation.take(account, taker, now)

    def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Register the conversations of a group under its new id as well."""
        for address, conversation in list(self.conversations.items()):
            if (address.platform, address.chat_id) == (platform, old_chat_id):
                new_address = replace(address, chat_id=new_chat_id)
                self.conversations.setdefault(new_address, conversation)

    def open_session(self, conversation: IncognitoConversation, session: Session) -> Session:
        """Start `session` in a conversation. It replaces the previous session and its messages.

        Returns the session with its new id.
        """
        new_session = replace(session, id=next(self._ids), is_incognito=True)
        conversation.messages = []
        conversation.asked = []
        conversation.session = new_session
        return new_session

    def set_model(self, session_id: int, model: str) -> None:
        """Set the model that answers in an incognito session. Other sessions stay unchanged."""
        conversation = self.find_by_session(session_id)
        if conversation is not None and conversation.session is not None:
            conversation.session = replace(conversation.session, model=model)

    def compress(
        self,
        session: Session,
        summary: Message | None,
        sent_blocks: Mapping[int, tuple[Json, ...]],
    ) -> Session:
        """Replace the parent of `session` with `session`, and return it with its new id.

        Messages that the new session takes over are kept. The summary goes between the first
        exchange and the latest messages. `sent_blocks` maps message ids to the content blocks that
        the model gets from now on. Raises StaleReadError if the parent has ended.
        """
        conversation = self.find_by_session(session.parent_id or 0)
        if conversation is None:
            raise StaleReadError("conversation_ended")
        root_id = session.root_id or session.parent_id
        child = replace(session, id=next(self._ids), root_id=root_id, is_incognito=True)
        messages = [
            replace(message, sent_blocks=sent_blocks.get(message.id, message.sent_blocks))
            for message in conversation.messages
            if message.kind != "summary"
        ]
        carry_over = session.carry_over
        # Ids are negative, so the range 0 to 0 contains no message.
        head_from = carry_over.head_from or 0
        head_until = carry_over.head_until or 0
        carried = [message for message in messages if head_from <= message.id <= head_until]
        if summary is not None:
            carried.append(replace(summary, id=next(self._ids), session_id=child.id))
        if carry_over.parent_from is not None:
            carried += [message for message in messages if message.id >= carry_over.parent_from]
        conversation.session = child
        conversation.messages = carried
        return child

    def append(self, message: Message) -> Message:
        """Append a message to its session and return it with its id.

        If the conversation has a message with the same external id, return that message instead. If
        the session has ended, the message gets an id but isn't stored.
        """
        conversation = self.find_by_session(message.session_id)
        if conversation is not None and (duplicate := conversation.find(message.external_id)):
            return duplicate
        with_id = replace(message, id=next(self._ids))
        if conversation is not None and conversation.session is not None:
            conversation.messages.append(with_id)
            message_count = conversation.session.messages
            if with_id.kind == "chat":
                message_count += 1
            conversation.change(messages=message_count, last_at=with_id.created_at)
        return with_id

    def invalidate(self) -> None:
        """Delete all content that may repeat erased words.

        This includes system prompts, summaries, tool results, quotes, and the content blocks that
        were sent to the model.
        """
        for conversation in self.conversations.values():
            if conversation.session is not None:
                prompt = replace(conversation.session.prompt, text="")
                conversation.change(prompt=prompt)
            conversation.messages = [
                replace(message, sent_blocks=None, quote=None)
                for message in conversation.messages
                if message.role != "tool" and message.kind != "summary"
            ]
