"""Takes back turns, repeats a question, or branches a conversation: /undo, /retry and /branch.

A turn that was taken back is hidden from people and the model until it's restored. Changes by its
tools remain, and buttons offer to undo them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import Refused
from core.store.lineage import UndoRequest
from core.store.rows import join_interrupted, split_turns
from core.text.normalize import join_sentences, shorten, to_single_line
from core.types import Answer, Command, Message
from gateway.commands.registry import CommandContext, load_specs, make_button, parse_number
from gateway.commands.sessions import MAX_TITLE_CHARS
from gateway.queues import find_edited_id
from gateway.services import Services
from gateway.texts.catalog import Texts

if TYPE_CHECKING:
    from core.agent.sessions import SessionTracker
    from core.media.intake import MediaIntake
    from gateway.receipts import Receipt

_MAX_QUOTE_CHARS = 60


class UndoCommands:
    specs = load_specs("undo", "retry", "branch")

    def __init__(
        self, services: Services, tracker: SessionTracker, media: MediaIntake | None = None
    ) -> None:
        self._media = media
        self._services = services
        self._clock = services.clock
        self._conversations = services.conversations
        self._tracker = tracker

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run /undo, /undo back, /retry or /branch. Raises Refused if that isn't possible."""
        texts = context.texts
        if command.name == "retry":
            return await self._retry(context)
        if command.name == "branch":
            return await self._branch(" ".join(command.arguments.split()), context)
        arguments = command.arguments.strip()
        # "back", or "back KEY" from the button of an earlier /undo. Every key contains a "#".
        word, _, undo_key = arguments.partition(" ")
        if word.lower() == "back" and (not undo_key or "#" in undo_key):
            return await self._redo(undo_key or None, context)
        number = parse_number(arguments or "1")
        if not number:
            raise Refused(texts.TAKE_BACK_USAGE)
        return await self._undo(number, context)

    async def _undo(self, number: int, context: CommandContext) -> Answer:
        """Hide up to `number` of the last turns, and offer a button to restore them.

        Raises Refused if there is nothing to hide.
        """
        texts = context.texts
        turns = await self._load_last_turns(number, context)
        messages = [message for turn in turns for message in turn]
        receipts = await self._list_receipts(messages, context)
        hidden_messages = await self._hide(messages, context)
        if not hidden_messages:
            raise Refused(texts.NOTHING_TO_TAKE_BACK)
        count = len(turns)
        exchanges = texts.choose_plural(texts.table("EXCHANGES"), count).format(count=count)
        beginning = texts.quote(_cut_beginning(texts, hidden_messages))
        sentences = [texts.UNDONE.format(what=exchanges, words=beginning)]
        if len(turns) < number:
            sentences.append(texts.NO_MORE_TO_UNDO)
        buttons = [make_button(texts.BUTTON_BRING_BACK, "undo", f"back {context.idempotency_key}")]
        if receipts:
            changes = " · ".join(receipt.text for receipt in receipts)
            sentences.append(texts.UNDO_OFFERS.format(changes=changes))
            buttons += [receipt.undo for receipt in receipts if receipt.undo is not None]
        return Answer(text=join_sentences(sentences), buttons=tuple(buttons))

    async def _list_receipts(
        self, messages: Sequence[Message], context: CommandContext
    ) -> Sequence[Receipt]:
        """Return the changes that tools made in these turns, with buttons to undo them."""
        texts = context.texts
        if all(message.role != "tool" for message in messages):
            return []
        # Imported here because few turns contain tools.
        from gateway.receipts import ReceiptWriter

        return await ReceiptWriter(self._services).list_receipts(texts, messages, context.scopes)

    async def _redo(self, undo_key: str | None, context: CommandContext) -> Answer:
        """Restore the messages that an earlier /undo or /retry has hidden.

        If they are the answer before a /retry, the newer answer is hidden instead.
        `undo_key` is the idempotency key of that command. If it's None, the latest such command is
        undone. Raises Refused for members of a group, and if nothing is hidden.
        """
        texts = context.texts
        if context.is_member:
            raise Refused(texts.UNDO_OF_OTHERS)
        request = replace(self._undo_request(context), undo_origin=undo_key)
        messages = await self._conversations.redo(request, context.epoch)
        await self._tracker.memory.resync_messages(*(message.id for message in messages))
        if not messages:
            raise Refused(texts.NOTHING_TO_BRING_BACK)
        if all(message.role != "user" for message in messages):
            return Answer(text=texts.EARLIER_ANSWER_BACK)
        beginning = texts.quote(_cut_beginning(texts, messages))
        return Answer(text=texts.BROUGHT_BACK.format(words=beginning))

    async def _retry(self, context: CommandContext) -> Answer:
        """Hide the last answer, and answer its question again.

        Raises Refused if there is no question.
        """
        texts = context.texts
        edited_id = find_edited_id(context.inbound)
        messages = []
        for turn in await self._load_last_turns(1, context, is_own_question=bool(edited_id)):
            messages += [message for message in turn if message.kind != "command"]
        questions = [message for message in messages if message.role == "user"]
        if not questions:
            raise Refused(texts.NOTHING_TO_RETRY)
        first_hidden_id = questions[-1].id + 1
        question = _find_question(questions, edited_id)
        if question is None:
            raise Refused(texts.NOTHING_TO_RETRY)
        if question.external_id is None:
            # This question has no platform id, so it's stored a second time when it's asked again.
            # The first copy is hidden together with the answer.
            first_hidden_id = question.id
        # Before a crash, this command may already have hidden the answer and begun a new answer.
        if not context.has_begun_turn:
            answer = [message for message in messages if message.id >= first_hidden_id]
            await self._hide(answer, context)
        await self._fetch_missing_files(question, context)
        # The question keeps its sender, so the model acts with the rights of that person.
        question_event = replace(
            context.inbound,
            kind="message",
            text=question.text,
            message_id=question.external_id or context.inbound.message_id,
            sender=question.sender or context.inbound.sender,
            origin=question.origin,
            command=None,
            # Only an edit contains the files of the question.
            attachments=context.inbound.attachments if edited_id else (),
        )
        return Answer(text="", asks_again=question_event)

    async def _fetch_missing_files(self, question: Message, context: CommandContext) -> None:
        """Try the failed downloads of a question again. An edit brings its files along."""
        is_edit = find_edited_id(context.inbound) is not None
        if self._media is None or question.external_id is None or is_edit:
            return
        await self._media.fetch_missing(context.inbound.address, question.external_id)

    async def _branch(self, title: str, context: CommandContext) -> Answer:
        """Continue in a new session that starts with a copy of this history.

        Raises Refused if there is no history yet, or if the title is too long.
        """
        texts = context.texts
        session = context.session
        started_at = context.inbound.sent_at
        if not await self._conversations.load_history(session, context.scopes):
            raise Refused(texts.NOTHING_TO_BRANCH)
        if len(title) > MAX_TITLE_CHARS:
            raise Refused(texts.TITLE_TOO_LONG.format(most=MAX_TITLE_CHARS, chars=len(title)))
        if not title and session.title:
            title = texts.BRANCH_TITLE.format(title=texts.name_conversation(session.title))
        # If a crash interrupted this command, the open session is the branch that it started.
        is_new_branch = (
            session.parent_id is not None
            and not session.messages
            and session.started_at == started_at
        )
        if not is_new_branch:
            session = await self._tracker.branch(
                session, context.scopes, title or None, started_at, context.epoch
            )
        parent_id = session.parent_id
        text = texts.BRANCHED.format(title=texts.quote_title(session.title), number=parent_id)
        label = texts.BUTTON_BACK_TO.format(id=parent_id)
        back_button = make_button(label, "sessions", str(parent_id))
        return Answer(text=text, buttons=(back_button,))

    async def _load_last_turns(
        self, number: int, context: CommandContext, *, is_own_question: bool = False
    ) -> Sequence[Sequence[Message]]:
        """Return up to `number` of the last turns that can be taken back, oldest first.

        Turns that this command hid before a crash are included. Messages that got one answer after
        a restart are one turn. Turns without messages are skipped,
        and in a group also turns without an answer. Raises Refused if a group member would take
        back a turn that includes other people's messages. Both don't apply if `is_own_question`
        says that the person edited the question of the last turn.
        """
        texts = context.texts
        needs_answer = context.scope.is_group and not is_own_question
        required_roles = {"assistant"} if needs_answer else {"user", "assistant"}
        messages = await self._conversations.list_undoable(self._undo_request(context))
        turns = []
        for turn in join_interrupted(split_turns(messages)):
            roles = {message.role for message in turn if message.kind != "command"}
            if roles & required_roles:
                turns.append(turn)
        turns = turns[-number:]
        is_restricted = context.is_member and not is_own_question
        if is_restricted and _has_other_senders(turns, context.inbound.sender.id):
            raise Refused(texts.UNDO_OF_OTHERS)
        return turns

    async def _hide(
        self, messages: Sequence[Message], context: CommandContext
    ) -> Sequence[Message]:
        """Hide messages, and notify memory services. Returns the messages that are now hidden."""
        ids = [message.id for message in messages]
        request = self._undo_request(context)
        hidden_messages = await self._conversations.undo(request, ids, context.epoch)
        await self._tracker.memory.resync_messages(*(message.id for message in hidden_messages))
        return hidden_messages

    def _undo_request(self, context: CommandContext) -> UndoRequest:
        return UndoRequest(
            session=context.session, origin=context.idempotency_key, at=self._clock.now()
        )


def _find_question(questions: Sequence[Message], edited_id: str | None) -> Message | None:
    """Return the last question, or the edited one if `edited_id` is its id on the platform.

    Further messages of a burst or an album may follow an edited question. Returns None if it's
    gone.
    """
    if edited_id is None:
        return questions[-1]
    for question in questions:
        if question.external_id == edited_id:
            return question
    return None


def _has_other_senders(turns: Sequence[Sequence[Message]], sender_id: str) -> bool:
    """Return whether anyone but this sender wrote a message in one of the turns."""
    for turn in turns:
        for message in turn:
            if message.role == "user" and (
                message.sender is None or message.sender.id != sender_id
            ):
                return True
    return False


def _cut_beginning(texts: Texts, messages: Sequence[Message]) -> str:
    """Return the beginning of the first message that a person wrote.

    If no message is from a person, the beginning of the first message is returned.
    """
    user_messages = [message for message in messages if message.role == "user"]
    first = user_messages[0] if user_messages else messages[0]
    text = texts.result_words.word_text(first.text)
    return shorten(to_single_line(text), _MAX_QUOTE_CHARS)
