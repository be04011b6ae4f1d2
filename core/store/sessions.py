"""Store sessions and their messages, and load them for the agent and for people.

Each write of `Conversations` is one transaction. Incognito conversations exist only in memory. For
these, state.db contains only the ids of their events and a mark for each address. The marks let the
next process tell people that their conversations are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from core.errors import StaleReadError, StoreError
from core.ports import Clock, EditJudge
from core.store import lineage, messages, rows
from core.store.actions import ButtonAction, insert_actions, keep_questions
from core.store.engine import Connection, Database, in_list
from core.store.incognito import IncognitoConversation, IncognitoRegistry
from core.store.lineage import UndoRequest
from core.store.mailbox import OutboxItem, close_entries, store_outbox_item
from core.store.message_ids import StoredQuestion, load_question
from core.store.messages import append_message, list_answered_calls, set_sent_blocks
from core.store.rows import MESSAGE_COLUMNS, address_values, read_message, request_checkpoint
from core.store.tool_calls import CallOutcome, forget_calls, read_call_outcomes
from core.store.usage_limits import ModelCall, log_call
from core.store.visibility import encode_list, scope_parameter, visible
from core.text.normalize import LONG_TEXT_CHARS, comparison_form, prepare_indexed_words
from core.types import (
    Address,
    EndReason,
    ErasureEpoch,
    Inbound,
    Json,
    Message,
    Quote,
    Scope,
    Session,
    SessionPrompt,
    ToolCallKey,
)

_SELECT_SESSION = f"{rows.SELECT_SESSIONS} WHERE sessions.id = :id"
_SELECT_VISIBLE_SESSION = f"{_SELECT_SESSION} AND {visible()}"
_SELECT_SESSION_OF_MESSAGE = f"""{rows.SELECT_SESSIONS}
WHERE sessions.id = (SELECT session_id FROM messages WHERE id = :id) AND {visible()}"""
_SELECT_OPEN_SESSION = f"""
{rows.SELECT_SESSIONS}
WHERE addresses.platform = :platform AND addresses.chat_id = :chat_id
    AND addresses.thread_id = :thread_id AND sessions.ended_at IS NULL
"""
# A session inherits the lineage (`root_id`) of its parent, unless it is a branch or delegated.
_INSERT_SESSION = """
INSERT INTO sessions (address_id, scope_id, external_id, parent_id, root_id, parent_from, head_from,
    head_until, parent_until, title, model, system_prompt, visible_scopes, started_at, last_at,
    ended_at, end_reason, is_delegated)
VALUES (:address, :scope, :external_id, :parent_id,
    (SELECT COALESCE(root_id, id) FROM sessions
        WHERE id = :parent_id AND NOT :is_delegated AND :ending <> 'branch'),
    :parent_from, :head_from, :head_until, (SELECT COALESCE(MAX(id), 0) + 1 FROM messages), :title,
    :model, :system_prompt, :visible_scopes, :started_at, :last_at, :ended_at, :end_reason,
    :is_delegated)
"""
_END_SESSION = """
UPDATE sessions SET ended_at = :at, end_reason = :reason WHERE id = :id AND ended_at IS NULL
"""
_REOPEN_SESSION = "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = :id"
_END_OPEN_SESSION = f"""
UPDATE sessions SET ended_at = :at, end_reason = :reason
WHERE address_id = ({rows.ADDRESS_ID}) AND ended_at IS NULL
"""
_SET_PROMPT = """
UPDATE sessions SET system_prompt = :prompt, visible_scopes = :visible_scopes
WHERE id = :id AND system_prompt IN ('', :prompt)
"""
_SELECT_LATEST_FROM_OUTSIDE = f"""
SELECT {MESSAGE_COLUMNS}, messages.sent FROM messages
WHERE messages.role IN ('user', 'tool') AND messages.kind IN ('chat', 'quote')
AND messages.session_id IN (SELECT id FROM sessions WHERE {visible()})
ORDER BY messages.id DESC LIMIT :limit
"""
"""Selects the latest messages that may contain text of other people."""
_SELECT_BY_IDS = f"""
SELECT {MESSAGE_COLUMNS} FROM messages WHERE {in_list("messages.id", "ids")}
AND messages.session_id IN (SELECT id FROM sessions WHERE {visible()})
"""
_SELECT_LAST_MESSAGE_TIME = """
SELECT MAX(created_at) AS at FROM messages
WHERE address_id = (SELECT address_id FROM sessions WHERE id = :session) AND origin <> 'job'
"""

_INSERT_MARK = """
INSERT INTO incognito_addresses (address_id, at) VALUES (:address, :now)
ON CONFLICT (address_id) DO NOTHING
"""
_DELETE_MARK = f"DELETE FROM incognito_addresses WHERE address_id = ({rows.ADDRESS_ID})"
_SELECT_MARKS = """
SELECT platform, chat_id, thread_id
FROM incognito_addresses JOIN addresses ON addresses.id = incognito_addresses.address_id
ORDER BY incognito_addresses.at, addresses.id
"""
_EMPTY_INBOX_ENTRIES = """
UPDATE inbox SET inbound = json_remove(
    json_set(inbound, '$.text', ''), '$.command', '$.attachments', '$.reply_to', '$.quoted'
) WHERE address_id = :address
"""
_SELECT_MARKED_ENTRIES = (
    "SELECT id FROM inbox WHERE address_id IN (SELECT address_id FROM incognito_addresses)"
)
_SELECT_ENTRY = f"""
SELECT id FROM inbox WHERE address_id = ({rows.ADDRESS_ID}) AND external_id = :external_id
"""


class Conversations:
    """Stores and loads sessions and messages: incognito ones in memory, all others in state.db."""

    def __init__(
        self, database: Database, clock: Clock, incognito: IncognitoRegistry | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._incognito = incognito or IncognitoRegistry()
        self._histories = messages.HistoryCache()

    def invalidate(self) -> None:
        """Delete all cached data that may repeat erased words."""
        self._histories.clear()
        self._incognito.invalidate()

    async def find_open(self, address: Address) -> Session | None:
        """Return the open session of an address, or None if there is none."""
        if conversation := self._incognito.conversations.get(address):
            return conversation.session
        return await self._database.read_inline(partial(_find_open, address=address))

    async def load_open(
        self, address: Address, scopes: frozenset[Scope]
    ) -> tuple[Session, list[Message]] | None:
        """Return the open session of an address and its history, or None if no session is open.

        The history is the same as that of `load_history`.
        """
        if conversation := self._incognito.conversations.get(address):
            if conversation.session is None:
                return None
            return conversation.session, conversation.load_history(scopes)

        def load(connection: Connection) -> tuple[Session, list[Message]] | None:
            session = _find_open(connection, address)
            if session is None:
                return None
            return session, self._histories.load_and_keep(connection, session, scopes)

        return await self._database.read_inline(load)

    async def ensure(self, session: Session) -> Session:
        """Return the open session of `session.address`.

        If none is open, or if the open one has another scope, create and return `session`.
        """
        open_session = await self.find_open(session.address)
        if open_session is not None and open_session.scope == session.scope:
            return open_session
        if conversation := self._incognito.conversations.get(session.address):
            return self._incognito.open_session(conversation, session)
        return await self._database.write(lambda connection: ensure_session(connection, session))

    async def create(
        self,
        session: Session,
        ending: EndReason = "new",
        epoch: ErasureEpoch | None = None,
        *,
        summary: Message | None = None,
        sent_blocks: Mapping[int, tuple[Json, ...]] | None = None,
    ) -> Session:
        """Open a session, and end its address's previous session for the reason `ending`.

        `summary` replaces the messages that aren't carried over. `sent_blocks` has new content
        blocks for messages that are carried over, by message id. Returns the session with its id.
        Raises StaleReadError if `session` continues a compressed session that has already ended.
        See `create_session`.
        """
        new_blocks = sent_blocks or {}
        if session.is_incognito:
            return self._incognito.compress(session, summary, new_blocks)
        if conversation := self._incognito.conversations.get(session.address):
            return self._incognito.open_session(conversation, session)

        def store(connection: Connection) -> Session:
            """Store the session, its summary and the new content blocks."""
            new_session = create_session(connection, session, ending)
            if summary is not None:
                own_summary = replace(
                    summary, session_id=new_session.id, created_at=session.started_at
                )
                append_message(connection, own_summary)
            set_sent_blocks(connection, new_blocks.items())
            return new_session

        return await self._database.write(store, epoch)

    async def end(self, session_id: int, reason: EndReason, at: datetime) -> None:
        """End a session. If it has already ended, its end reason stays.

        An incognito conversation is deleted. The next session at its address is stored in state.db.
        """
        if session_id >= 0:
            values = {"id": session_id, "reason": reason, "at": at}
            await self._database.execute(_END_SESSION, values)
            return
        ended_conversation = self._incognito.find_by_session(session_id)
        for address, conversation in list(self._incognito.conversations.items()):
            if conversation is ended_conversation:
                del self._incognito.conversations[address]
                await self.unmark_incognito(address)

    async def reopen(self, session_id: int, at: datetime) -> Session:
        """Open an ended session again at its address, with its stored system prompt.

        The session that is open there ends for the reason `resumed`. A session that is still open
        is returned unchanged. Raises StoreError if the session doesn't exist.
        """

        def write(connection: Connection) -> Session:
            session = _load_session(connection, session_id)
            if session.end is None:
                return session
            _end_open(connection, session.address, "resumed", at)
            connection.execute(_REOPEN_SESSION, {"id": session_id})
            return _load_session(connection, session_id)

        return await self._database.write(write)

    async def find(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        """Return a session by its id, or None if it isn't visible in these scopes."""
        values = _visible_session_values(session_id, scopes)
        row = await self._database.fetch_one(_SELECT_VISIBLE_SESSION, values)
        return None if row is None else rows.read_session(row)

    async def find_by_message(self, message_id: int, scopes: frozenset[Scope]) -> Session | None:
        """Return the session of a message, or None if it isn't visible in these scopes."""
        values = _visible_session_values(message_id, scopes)
        row = await self._database.fetch_one(_SELECT_SESSION_OF_MESSAGE, values)
        return None if row is None else rows.read_session(row)

    async def retitle(self, session_id: int, title: str, epoch: ErasureEpoch | None = None) -> None:
        """Set the title of a session in state.db. Incognito sessions have no title."""
        statement = "UPDATE sessions SET title = :title WHERE id = :id"
        await self._database.execute(statement, {"id": session_id, "title": title}, epoch)

    async def set_model(self, session_id: int, model: str, epoch: ErasureEpoch | None) -> None:
        """Set the model of a session."""
        self._incognito.set_model(session_id, model)
        statement = "UPDATE sessions SET model = :model WHERE id = :id"
        await self._database.execute(statement, {"id": session_id, "model": model}, epoch)

    async def append(
        self,
        new_messages: Sequence[Message],
        closed_entry_ids: Sequence[int] = (),
        outbox_item: OutboxItem | None = None,
        *,
        sent_blocks: Sequence[tuple[int, tuple[Json, ...]]] = (),
        calls: Sequence[ModelCall] = (),
        actions: Sequence[ButtonAction] = (),
        epoch: ErasureEpoch | None = None,
    ) -> list[Message]:
        """Append messages, and store everything that belongs to them, in one transaction.

        This closes the inbox entries `closed_entry_ids`, logs the model `calls` and stores the
        `actions` of buttons. The outbox item is filled, or held if it has no answer yet.
        `sent_blocks` has new content blocks for earlier messages, by message id. For incognito
        messages, the outbox item is ignored, so that their text isn't stored.

        Returns the stored messages. If a message's external id already exists at the address, the
        existing message is returned. Raises StoreError and stores nothing if a session doesn't
        exist.
        """
        is_incognito = any(message.session_id < 0 for message in new_messages)
        if is_incognito or any(message_id < 0 for message_id, _ in sent_blocks):
            stored = [action for action in actions if action.command.name != "yes"]
            if closed_entry_ids or calls or stored:
                # state.db is written first. If it refuses the epoch, memory keeps nothing, either.
                await self.append((), closed_entry_ids, calls=calls, actions=stored, epoch=epoch)
            appended = self._append_incognito(new_messages, dict(sent_blocks))
            return keep_questions(self._incognito, appended, actions)

        now = self._clock.now()
        answered_calls = list_answered_calls(new_messages)

        def write_turn(connection: Connection) -> list[Message]:
            """Store the messages and everything else that `append` receives."""
            stored_messages = [append_message(connection, message) for message in new_messages]
            if answered_calls:
                forget_calls(connection, answered_calls)
            set_sent_blocks(connection, sent_blocks)
            for call in calls:
                log_call(connection, call)
            if actions:
                insert_actions(connection, actions, now)
            if closed_entry_ids:
                close_entries(connection, closed_entry_ids, now)
            if outbox_item is not None:
                answer_ids = [
                    message.id for message in stored_messages if message.role == "assistant"
                ]
                answer_id = answer_ids[-1] if answer_ids else None
                has_answer = outbox_item.answer is not None
                store_outbox_item(connection, outbox_item, now, answer_id, is_claimed=has_answer)
            return stored_messages

        texts = [text for row in new_messages for text in (row.text, row.tools) if text]
        is_short = sum(map(len, texts)) < LONG_TEXT_CHARS
        if not is_short:
            await asyncio.to_thread(prepare_indexed_words, texts)
        return await self._database.write_indexed(write_turn, epoch, is_short=is_short)

    async def load_call_outcomes(self, session_id: int) -> dict[str, CallOutcome]:
        """Return the recorded outcomes of tool calls whose results aren't stored."""
        return await self._database.read(
            lambda connection: read_call_outcomes(connection, session_id)
        )

    async def load_stopped_outcome(self, call: ToolCallKey) -> CallOutcome | None:
        """Return what was recorded of a tool call that was stopped before its result was stored.

        The outcome says whether the call is done or waits for approval. Wait for a write that the
        call has begun. Returns None if the call stored nothing. Raises StoreError if another
        program locks the store.
        """
        # Writes run one after the other, so this runs after the writes of the call.
        outcomes = await self._database.write(
            lambda connection: read_call_outcomes(connection, call.session_id)
        )
        return outcomes.get(call.call_id)

    def _append_incognito(
        self, new_messages: Sequence[Message], sent_blocks: Mapping[int, tuple[Json, ...]]
    ) -> list[Message]:
        """Append messages to an incognito conversation, and return them.

        If a message's external id is known, the known message is returned instead. Messages of an
        ended conversation aren't kept.
        """
        for conversation in self._incognito.conversations.values():
            for position, message in enumerate(conversation.messages):
                if message.id in sent_blocks:
                    conversation.messages[position] = replace(
                        message, sent_blocks=sent_blocks[message.id]
                    )
        return [self._incognito.append(message) for message in new_messages]

    async def load_history(self, session: Session, scopes: frozenset[Scope]) -> list[Message]:
        """List the messages of a session and its parents that the model sees, oldest first.

        A parent's messages are included from `CarryOver.parent_from` on, if the parent is visible
        in these scopes. If a parent could see more scopes than these, the blocks that memory added
        to its messages are left out.
        """
        if session.id < 0:
            conversation = self._incognito.find_by_session(session.id)
            return [] if conversation is None else conversation.load_history(scopes)
        return await self._database.read(
            lambda connection: self._histories.load(connection, session, scopes)
        )

    async def list_latest_from_outside(self, scopes: frozenset[Scope], limit: int) -> list[Message]:
        """List the latest messages of people and results of tools, oldest first."""

        def read(connection: Connection) -> list[Message]:
            values = {"scopes": scope_parameter(scopes), "limit": limit}
            latest = connection.execute(_SELECT_LATEST_FROM_OUTSIDE, values).fetchall()
            return [read_message(row) for row in reversed(latest)]

        return await self._database.read(read)

    async def has_erased(self, session: Session, ids: Collection[int]) -> bool:
        """Return whether a message of a person was erased in one of these sessions."""
        if conversation := self._incognito.find_by_session(session.id):
            return conversation.has_erased()
        return await messages.has_erased(self._database, ids)

    async def load_takers(self, session: Session, answer_ids: Sequence[int]) -> Mapping[int, str]:
        """Return which event took the question of each answer. See `messages.load_takers`."""
        if conversation := self._incognito.find_by_session(session.id):
            return conversation.load_takers()
        return await messages.load_takers(self._database, answer_ids) if answer_ids else {}

    async def load_messages(self, ids: Collection[int], scopes: frozenset[Scope]) -> list[Message]:
        """Load the messages with these ids that are visible in these scopes."""
        values = {"ids": encode_list(ids), "scopes": scope_parameter(scopes)}

        def read(connection: Connection) -> list[Message]:
            return [read_message(row) for row in connection.execute(_SELECT_BY_IDS, values)]

        return await self._database.read(read)

    async def last_message_at(self, session: Session) -> datetime | None:
        """Return the time of the last message at a session's address, or None.

        Messages and commands of all sessions count, but not the deliveries of jobs.
        """
        row = await self._database.fetch_one(_SELECT_LAST_MESSAGE_TIME, {"session": session.id})
        return None if row is None else rows.to_optional_datetime(row["at"])

    async def list_job_results(
        self, address: Address, scopes: frozenset[Scope], limit: int
    ) -> list[Message]:
        """List the latest deliveries of the job with this cron address, oldest first."""
        return await self._database.read(
            lambda connection: messages.list_job_results(connection, address.chat_id, scopes, limit)
        )

    async def store_prompt(
        self,
        session_id: int,
        prompt: str,
        visible_scopes: frozenset[Scope] = frozenset(),
        epoch: ErasureEpoch | None = None,
    ) -> Session:
        """Store a session's system prompt and the scopes that were visible to it.

        If the session already has a prompt, it isn't replaced. Returns the stored session.
        """
        conversation = self._incognito.find_by_session(session_id)
        if conversation is not None and conversation.session is not None:
            if conversation.session.prompt.text in ("", prompt):
                conversation.change(
                    prompt=SessionPrompt(text=prompt, visible_scopes=visible_scopes)
                )
            return conversation.session

        values = {
            "id": session_id,
            "prompt": prompt,
            "visible_scopes": scope_parameter(visible_scopes),
        }

        def write(connection: Connection) -> Session:
            connection.execute(_SET_PROMPT, values)
            return _load_session(connection, session_id)

        return await self._database.write(write, epoch)

    async def amend(
        self, address: Address, external_id: str, text: str | None, judge: EditJudge | None = None
    ) -> int | None:
        """Replace the text of an edited message, or erase the message if `text` is None.

        Returns the message's id, or None if it isn't stored. The content blocks that were sent to
        the model are deleted, because the edit may be meant to remove words from them. An erased
        message keeps its ids, so that it isn't accepted again. Its inbox entry is closed, because
        it needs no answer. A command's text is never replaced, because its arguments may be secret.
        """
        now = self._clock.now()
        conversation = self._incognito.conversations.get(address)
        incognito_message = conversation.find(external_id) if conversation else None
        if conversation is not None and incognito_message is not None:
            conversation.amend(incognito_message, text, judge)
            if text is not None:
                return incognito_message.id
            # A deleted message may still have an inbox entry in state.db, which is closed below.

        def write(connection: Connection) -> int | None:
            message_id = messages.amend_message(connection, address, external_id, text, judge)
            if text is None:
                values = {**address_values(address), "external_id": external_id}
                entries = connection.execute(_SELECT_ENTRY, values).fetchall()
                close_entries(connection, [row["id"] for row in entries], now)
            return message_id

        message_id = await self._database.write_indexed(write)
        return message_id if incognito_message is None else incognito_message.id

    async def load_question(self, address: Address, external_id: str) -> StoredQuestion | None:
        """Load a question and the known parts of its answer. See `core.store.message_ids`."""
        if conversation := self._incognito.conversations.get(address):
            return conversation.find_question(external_id)
        return await load_question(self._database, address, external_id)

    async def resolve_quote(self, inbound: Inbound, scopes: frozenset[Scope]) -> Quote | None:
        """Return the quote in an incoming message, shortened to the stored length.

        If the message replies to a stored message that is visible in these scopes, the quote has
        the stored text. Otherwise, it has the platform's text. Returns None if the message quotes
        nothing.
        """
        quote = inbound.quote
        is_reply = inbound.kind == "message" and inbound.reply_to is not None
        is_forward = quote is not None and quote.kind == "forward"
        if is_reply and not is_forward:
            quote = await self._quote_stored(inbound, scopes) or quote
        if quote is None:
            return None
        text = messages.limit_quote(quote.text)
        return replace(quote, text=text, name=quote.name[: messages.MAX_NAME_CHARS])

    async def _quote_stored(self, inbound: Inbound, scopes: frozenset[Scope]) -> Quote | None:
        """Quote the message that `inbound` replies to, or return None if it isn't visible."""
        conversation = self._incognito.conversations.get(inbound.address)
        if conversation and (incognito_message := conversation.find(inbound.reply_to)):
            return messages.quote_message(incognito_message, inbound.quote)
        values = {
            **address_values(inbound.address),
            "external_id": inbound.reply_to,
            "scopes": scope_parameter(scopes),
        }
        row = await self._database.read_inline(
            lambda connection: connection.execute(messages.SELECT_QUOTED, values).fetchone()
        )
        if row is None:
            return None
        *columns, is_later_part = row
        message = read_message(columns)
        return messages.quote_message(message, inbound.quote, is_later_part=bool(is_later_part))

    async def begin_incognito(self, address: Address) -> None:
        """Keep an address's conversation only in memory until its session ends.

        The texts of inbox entries at the address are deleted.
        """
        now = self._clock.now()

        def write(connection: Connection) -> None:
            values = {"address": rows.ensure_address(connection, address), "now": now}
            connection.execute(_INSERT_MARK, values)
            if connection.execute(_EMPTY_INBOX_ENTRIES, values).rowcount:
                request_checkpoint(connection)

        # Write the mark first. If the process ends before the next line, the next process reports
        # the loss of a conversation that never began, which does no harm.
        await self._database.write(write)
        self._incognito.conversations.setdefault(address, IncognitoConversation())

    async def recover_incognito(self) -> Sequence[Address]:
        """Return the addresses that were incognito in the previous process.

        Closes their inbox entries, because their texts are lost.
        """
        now = self._clock.now()

        def write(connection: Connection) -> Sequence[Address]:
            entries = connection.execute(_SELECT_MARKED_ENTRIES).fetchall()
            close_entries(connection, [row["id"] for row in entries], now)
            return [rows.read_address(row) for row in connection.execute(_SELECT_MARKS)]

        return await self._database.write(write)

    async def unmark_incognito(self, address: Address) -> None:
        """Delete the mark of an incognito address."""
        await self._database.execute(_DELETE_MARK, rows.address_values(address))

    async def list_recent(
        self,
        scopes: frozenset[Scope],
        limit: int,
        text: str | None = None,
        roots: Collection[int] | None = None,
        before: Session | None = None,
    ) -> list[Session]:
        """List conversations whose titles contain `text`. See `lineage.list_latest`."""
        needle = comparison_form(rows.clean_optional(text)).strip() or None
        return await self._database.read(
            lambda connection: lineage.list_latest(connection, scopes, limit, needle, roots, before)
        )

    async def list_relatives(self, session: Session, scopes: frozenset[Scope]) -> list[Session]:
        """List related sessions. See `lineage.list_relatives`."""
        return await self._database.read(
            lambda connection: lineage.list_relatives(connection, session, scopes)
        )

    async def load_transcript_page(
        self,
        session_id: int,
        scopes: frozenset[Scope],
        bound: int,
        limit: int,
        *,
        is_later: bool,
    ) -> list[Message]:
        """List messages before `bound`, or from it on if `is_later`, oldest first.

        See `lineage.load_transcript_page`.
        """
        return await self._database.read(
            lambda connection: lineage.load_transcript_page(
                connection, session_id, scopes, bound, limit, is_later=is_later
            )
        )

    async def find_tip(self, session_id: int, scopes: frozenset[Scope]) -> Session | None:
        """Find the last session of a conversation. See `lineage.find_tip`."""
        return await self._database.read(
            lambda connection: lineage.find_tip(connection, session_id, scopes)
        )

    async def list_undoable(self, request: UndoRequest) -> Sequence[Message]:
        """List the messages that a command may hide. See `lineage.list_undoable`."""
        if conversation := self._incognito.find_by_session(request.session.id):
            return conversation.list_undoable()
        return await self._database.read(
            lambda connection: lineage.list_undoable(connection, request)
        )

    async def undo(
        self, request: UndoRequest, ids: Sequence[int], epoch: ErasureEpoch | None = None
    ) -> Sequence[Message]:
        """Hide messages, and return them. See `lineage.undo`.

        A title that was derived from the first hidden message is deleted.
        """
        if conversation := self._incognito.find_by_session(request.session.id):
            return conversation.undo(request.origin, ids)

        def write(connection: Connection) -> Sequence[Message]:
            hidden_messages = lineage.undo(connection, request, ids)
            questions = [message for message in hidden_messages if message.role == "user"]
            if questions:
                first = questions[0]
                messages.delete_derived_title(connection, first.session_id, first.id)
            return hidden_messages

        return await self._database.write_indexed(write, epoch)

    async def redo(
        self, request: UndoRequest, epoch: ErasureEpoch | None = None
    ) -> Sequence[Message]:
        """Show hidden messages again. See `lineage.redo`."""
        if conversation := self._incognito.find_by_session(request.session.id):
            return conversation.redo(request.origin)
        return await self._database.write_indexed(
            lambda connection: lineage.redo(connection, request), epoch
        )

    async def load_transcript(self, session_id: int, scopes: frozenset[Scope]) -> list[Message]:
        """List the messages of a session that people can read, oldest first.

        The list is empty if the session isn't visible in these scopes.
        """
        values = _visible_session_values(session_id, scopes)
        return await self._database.read(
            lambda connection: messages.load_transcript(connection, values)
        )


def ensure_session(connection: Connection, session: Session) -> Session:
    """Return the open session of the address, or a new one. See `Conversations.ensure`."""
    open_session = _find_open(connection, session.address)
    if open_session is not None and open_session.scope == session.scope:
        return open_session
    return create_session(connection, session, "rights")


def create_session(connection: Connection, session: Session, ending: EndReason = "new") -> Session:
    """Store a session, and return it with its id.

    End the address's open session, with `ending` as the reason, unless `session` itself has already
    ended, as in an import or a delegated task. Raises StaleReadError if
    `ending` is "compression" and the parent of `session` has already ended.
    """
    parent = None if session.parent_id is None else _load_session(connection, session.parent_id)
    if ending == "compression" and parent is not None and parent.end is not None:
        raise StaleReadError("conversation_ended")
    if session.end is None:
        _end_open(connection, session.address, ending, session.started_at)
    values = {
        "address": rows.ensure_address(connection, session.address),
        "scope": rows.ensure_scope(connection, session.scope),
        "ending": ending,
        "visible_scopes": scope_parameter(session.prompt.visible_scopes),
        **rows.session_values(session),
    }
    return _load_session(connection, rows.insert(connection, _INSERT_SESSION, values))


def _find_open(connection: Connection, address: Address) -> Session | None:
    row = connection.execute(_SELECT_OPEN_SESSION, address_values(address)).fetchone()
    return None if row is None else rows.read_session(row)


def _end_open(connection: Connection, address: Address, reason: EndReason, at: datetime) -> None:
    values = {**address_values(address), "reason": reason, "at": at}
    connection.execute(_END_OPEN_SESSION, values)


def _load_session(connection: Connection, session_id: int) -> Session:
    """Return a session of any scope. Raises StoreError if it doesn't exist."""
    row = connection.execute(_SELECT_SESSION, {"id": session_id}).fetchone()
    if row is None:
        raise StoreError(f"There is no session {session_id}.")
    return rows.read_session(row)


def _visible_session_values(session_id: int, scopes: frozenset[Scope]) -> dict[str, object]:
    return {"id": rows.int64_or_zero(session_id), "scopes": scope_parameter(scopes)}
