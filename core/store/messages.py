"""Store, edit, erase, quote and list messages.

Functions that take a connection run inside their caller's transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from core.errors import StoreError
from core.ports import EditJudge
from core.store import rows
from core.store.actions import YES_TO_MODEL, YES_TO_REPETITION, YES_TO_SEVERAL
from core.store.engine import Connection, Database, Row, Values, in_list
from core.store.mailbox import INTENT_MARK
from core.store.media.sent_forms import forget_results_of_message
from core.store.rows import MESSAGE_COLUMNS, History, address_values, read_message
from core.store.usage_limits import record_prefix_break
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import (
    Address,
    Json,
    Message,
    Quote,
    Scope,
    Session,
    ToolCallKey,
    is_memory_block,
)

MAX_QUOTE_CHARS = 500
"""The maximum length of a quote's text, as it is stored and shown to the model."""
MAX_TURN_ROWS = 100
"""The question of an answer is searched for in at most this many rows before the answer."""
MAX_NAME_CHARS = 80
"""The maximum length of a quoted person's name, as it is stored and shown to the model."""

IS_READABLE = """
(messages.kind = 'chat' OR messages.kind = 'quote' AND messages.role = 'assistant')
AND messages.text <> '' AND (messages.role <> 'tool' OR messages.blocks IS NULL)
"""
"""The condition for messages that people can read.

These are chat messages, and answers of kind `quote`, which repeat history. Tool calls and results
are left out. Imported tool lines have no blocks and are readable.
"""
_SELECT_ANSWER_SECONDS = f"""
SELECT answers.created_at - MAX(questions.created_at) AS seconds
FROM sessions
CROSS JOIN messages AS answers ON answers.session_id = sessions.id
    AND answers.role = 'assistant' AND answers.kind = 'chat' AND answers.usage IS NOT NULL
CROSS JOIN messages AS questions ON questions.session_id = sessions.id
    AND questions.id < answers.id AND questions.id > answers.id - {MAX_TURN_ROWS}
    AND questions.role = 'user'
WHERE {visible("sessions.scope_id")} AND sessions.last_at >= :since
    AND answers.created_at >= :since
GROUP BY answers.id
"""
_SELECT_DELIVERED = f"""
SELECT address, posted, reply_to FROM outbox WHERE done_at IS NOT NULL AND kind = 'answer'
    AND (reply_to IS NULL OR reply_to NOT LIKE '@%') AND key NOT LIKE 'turn:cron:%'
    AND {in_list("message_id", "ids")}
ORDER BY id DESC LIMIT 1
"""
_SELECT_UNDELIVERED = f"""
SELECT 1 FROM outbox WHERE done_at IS NULL AND dead_at IS NULL AND payload IS NOT NULL
    AND kind = 'answer' AND {in_list("message_id", "ids")}
LIMIT 1
"""
_SELECT_TAKERS = f"""
SELECT outbox.message_id, '' AS taker
FROM actions JOIN outbox ON outbox.key = actions.outbox_key
WHERE actions.command = 'yes' AND actions.arguments = :repetition
    AND {in_list("outbox.message_id", "ids")}
UNION ALL
SELECT outbox.message_id, actions.taker
FROM actions JOIN outbox ON outbox.key = actions.outbox_key
WHERE actions.command = 'yes' AND actions.arguments = :model AND actions.taker IS NOT NULL
    AND {in_list("outbox.message_id", "ids")}
    AND NOT EXISTS (
        SELECT 1 FROM actions AS others
        WHERE others.address = actions.address AND others.taker = actions.taker
            AND others.command = 'yes' AND others.arguments = :several
    )
"""
_SELECT_TRANSCRIPT = f"""
SELECT {MESSAGE_COLUMNS} FROM sessions JOIN messages ON messages.session_id = sessions.id
WHERE sessions.id = :id AND {visible()} AND {IS_READABLE}
ORDER BY CASE sessions.end_reason WHEN 'import' THEN messages.created_at END NULLS FIRST,
    messages.id
"""
"""Orders imported sessions by time, because their older messages may have been imported later."""
_SELECT_JOB_RESULTS = f"""
SELECT {MESSAGE_COLUMNS} FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
    AND messages.external_id >= 'job:' || :job || '@'
    AND messages.external_id < 'job:' || :job || 'A'
    AND {visible()} AND {IS_READABLE} ORDER BY messages.id DESC LIMIT :limit
"""
"""Selects the deliveries of a job, whose ids look like ``job:7@2026-11-20T09:00:00+00:00``.

The id range works because "A" follows "@" in ASCII. Deliveries may be at several addresses, because
the job's group may have changed its id or been detached.
"""

_HISTORY_PARTS = f"""
WITH RECURSIVE line (
    id, parent_id, parent_from, parent_until, from_id, until_id, visible_scopes
) AS (
    SELECT id, parent_id, parent_from, parent_until, CAST(0 AS BIGINT),
        CAST(9223372036854775807 AS BIGINT), NULLIF(visible_scopes, visible_scopes) FROM sessions
    WHERE id = :session AND {visible()}
    UNION
    SELECT sessions.id, sessions.parent_id, sessions.parent_from, sessions.parent_until,
        (SELECT parent_from FROM sessions WHERE id = :session), line.parent_until,
        sessions.visible_scopes
    FROM line JOIN sessions ON sessions.id = line.parent_id
    WHERE line.parent_from IS NOT NULL AND {visible()}
), parts (id, from_id, until_id, visible_scopes) AS (
    SELECT id, from_id, until_id, visible_scopes FROM line
    UNION ALL
    SELECT sessions.id, own.head_from, own.head_until + 1, sessions.visible_scopes
    FROM sessions AS own CROSS JOIN messages AS head ON head.id = own.head_from
    CROSS JOIN sessions ON sessions.id = head.session_id
    WHERE own.id = :session AND {visible()}
)
"""
"""Selects the messages of a session and its parents, in the order in which the model sees them.

`line` is the session and its chain of parents. `parts` adds the first exchange of the lineage, if a
compression kept it (`head_from` to `head_until`). Each parent ends where its child was opened.
Later messages at the parent's own address must not appear in the middle of the child's prefix.
After a compression, the order is: first exchange, summary, messages from `parent_from` on.
"""
_SELECT_HISTORY = f"""{_HISTORY_PARTS}
SELECT {MESSAGE_COLUMNS}, messages.sent, parts.visible_scopes
FROM parts CROSS JOIN messages ON messages.session_id = parts.id
    AND messages.id >= parts.from_id AND messages.id < parts.until_id
WHERE messages.kind IN ('chat', 'quote') OR messages.kind = 'summary' AND parts.id = :session
ORDER BY CASE messages.kind
    WHEN 'summary' THEN COALESCE(
        (SELECT parent_from FROM sessions WHERE id = :session) - 1, messages.id
    )
    ELSE messages.id END, messages.id
"""
# The parts of a history, and how often their messages were changed or deleted. See `HistoryCache`.
_SELECT_HISTORY_PARTS = f"""{_HISTORY_PARTS}
SELECT parts.id, parts.from_id, parts.until_id, parts.visible_scopes, history_changes.changes
FROM parts LEFT JOIN history_changes ON history_changes.session_id = parts.id
"""
_SELECT_HISTORY_SINCE = f"""
SELECT {MESSAGE_COLUMNS}, messages.sent FROM messages
WHERE session_id = :session AND id >= :since AND kind IN ('chat', 'quote', 'summary') ORDER BY id
"""
_SELECT_ERASED = f"""
SELECT 1 FROM messages
WHERE role = 'user' AND kind = 'command' AND text = '' AND {in_list("session_id", "sessions")}
LIMIT 1
"""
MAX_CACHED_MESSAGES = 12_000
MAX_CACHED_CHARS = 4_000_000
"""The maximum numbers of messages, and of characters of their rows, that are kept in memory for all
histories."""

# Inserts nothing if the address already has a message with the same external id.
_INSERT_MESSAGE = """
INSERT INTO messages (session_id, address_id, role, kind, text, blocks, sent, tools, tool_name,
    external_id, sender_id, sender_name, sender_is_anonymous, origin, quoted, created_at, usage)
SELECT id, address_id, :role, :kind, :text, :blocks, :sent, :tools, :tool_name, :external_id,
    :sender_id, :sender_name, :sender_is_anonymous, :origin, :quoted, :created_at, :usage
FROM sessions WHERE id = :session_id
ON CONFLICT (address_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
"""
_COUNT_MESSAGE = """
UPDATE sessions SET message_count = message_count + :messages,
    started_at = MIN(started_at, :at), last_at = MAX(last_at, :at)
WHERE id = :id
"""
_SELECT_KNOWN = f"""
SELECT {MESSAGE_COLUMNS}, messages.sent
FROM sessions JOIN messages ON messages.address_id = sessions.address_id
WHERE sessions.id = :session_id AND messages.external_id = :external_id
"""

_FROM_CHAT = """
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.address_id IN (
    SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id
)
"""
_FROM_CHAT_BY_EXTERNAL_ID = f"{_FROM_CHAT} AND messages.external_id = :external_id"
_OWN_TOPIC_FIRST = f"ORDER BY messages.address_id <> ({rows.ADDRESS_ID})"
"""Prefers messages in the given topic. A message that was answered in another topic of its chat is
stored in that topic."""
_SELECT_TO_AMEND = f"""
SELECT messages.id, messages.session_id, messages.kind, messages.text, messages.blocks,
    messages.origin
{_FROM_CHAT_BY_EXTERNAL_ID} {_OWN_TOPIC_FIRST}
"""
_SELECT_ORIGINAL = f"""
SELECT {MESSAGE_COLUMNS} {_FROM_CHAT_BY_EXTERNAL_ID} AND messages.kind = 'chat' AND {visible()}
{_OWN_TOPIC_FIRST}
"""
_IDS_BY_DELIVERY = f"""
SELECT outbox.message_id FROM outbox
WHERE outbox.address IN (
    SELECT {rows.CONVERSATION_KEY} FROM addresses WHERE platform = :platform AND chat_id = :chat_id
) AND instr(outbox.posted, '"' || :external_id || '"') > 0
"""
SELECT_QUOTED = f"""
SELECT {MESSAGE_COLUMNS}, 0 {_FROM_CHAT_BY_EXTERNAL_ID} AND {visible()}
UNION ALL
SELECT {MESSAGE_COLUMNS}, 0 {_FROM_CHAT} AND messages.posted_id = :external_id AND {visible()}
UNION ALL
SELECT {MESSAGE_COLUMNS}, 1 {_FROM_CHAT} AND messages.id IN ({_IDS_BY_DELIVERY}) AND {visible()}
LIMIT 1
"""
"""Selects a message of a chat by an id of its platform.

The id belongs to a person's message, to the first part of an answer, or to a later part of an
answer. The last column is 1 for a later part.
"""

_SET_SENT_BLOCKS = """
UPDATE messages SET sent = :sent WHERE id = :id AND NOT (kind = 'command' AND text = '')
"""
"""Changes nothing if the message was erased in the meantime."""
_REWORD = """
UPDATE messages SET text = :text, origin = :origin, blocks = NULL, sent = NULL WHERE id = :id
"""
_REWORD_QUOTES = """
UPDATE messages SET sent = NULL,
    quoted = json_set(quoted, '$.kind', 'reply', '$.text', :quote_text)
WHERE id > :id
    AND address_id IN (SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id)
    AND CAST(quoted ->> 'message_id' AS BIGINT) = :id
    AND NOT (quoted ->> 'kind' = 'part' AND instr(:text, quoted ->> 'text') > 0)
RETURNING session_id
"""
"""Updates the text of the quotes of a message. A quote of a selected part isn't changed if the new
text still contains that part."""
_ERASE = """
UPDATE messages SET kind = 'command', text = '', blocks = NULL, sent = NULL, tools = NULL,
    tool_name = NULL, sender_id = NULL, sender_name = NULL, quoted = NULL
WHERE id = :id
"""
# Deletes the title that was derived from the message :id, in the first session of a conversation
# and in the sessions that continue it, e.g. "Lisbon", "Lisbon #2" and "Lisbon (branch)". The last
# word is in the person's language. Keeps the title if :id isn't the first user message, or if the
# title was set with /title.
_DELETE_DERIVED_TITLE = """
UPDATE sessions SET title = NULL
FROM sessions AS first
WHERE first.id = :session_id AND first.parent_id IS NULL AND first.external_id IS NULL
    AND (COALESCE(sessions.root_id, sessions.id) = first.id OR sessions.parent_id IN (
        SELECT id FROM sessions AS part WHERE COALESCE(part.root_id, part.id) = first.id
    ))
    AND (sessions.title = first.title OR instr(sessions.title, first.title || ' #') = 1
        OR instr(sessions.title, first.title || ' (') = 1)
    AND NOT EXISTS (
        SELECT 1 FROM messages
        WHERE session_id = :session_id AND id < :id AND role = 'user' AND kind = 'chat'
    )
    AND NOT EXISTS (
        SELECT 1 FROM messages
        WHERE session_id = :session_id AND kind = 'command' AND text = '/title ' || first.title
    )
"""


def append_message(connection: Connection, message: Message) -> Message:
    """Insert a message, and return it with its id, exactly as a later read returns it.

    If a message with the same external id exists, insert nothing and return the existing message.
    The message's `blocks` are stored only if they differ from its text. Raises StoreError if the
    session doesn't exist.
    """
    values = _message_values(message)
    # The statement has no RETURNING clause, because SQLite would create a temporary table for the
    # returned row. That takes a fifth of the time.
    insertion = connection.execute(_INSERT_MESSAGE, values)
    if not insertion.rowcount:
        known_row = connection.execute(_SELECT_KNOWN, values).fetchone()
        if known_row is None:
            raise StoreError(f"There is no session {message.session_id}.")
        return read_message(known_row)

    count_values = {
        "id": message.session_id,
        "messages": 1 if message.kind == "chat" else 0,
        "at": message.created_at,
    }
    connection.execute(_COUNT_MESSAGE, count_values)
    values["id"] = insertion.lastrowid
    return read_message(values[name] for name in (*rows.MESSAGE_FIELDS, "sent"))


def _message_values(message: Message) -> dict[str, object]:
    """Return the columns of a message."""
    text = rows.clean(message.text)
    blocks = message.blocks
    sender = message.sender
    return {
        **rows.field_values(message),
        "blocks": None if blocks is None else rows.dump_blocks(blocks, text),
        "sent": None if message.sent_blocks is None else rows.dump_json(message.sent_blocks),
        "sender_id": None if sender is None else sender.id,
        "sender_name": None if sender is None else sender.name,
        "sender_is_anonymous": sender is not None and sender.is_anonymous,
        "quoted": None if message.quote is None else rows.dump_json(asdict(message.quote)),
        "created_at": rows.to_timestamp(message.created_at),
        "usage": None if message.usage is None else rows.dump_json(asdict(message.usage)),
    }


def set_sent_blocks(
    connection: Connection, sent_blocks: Iterable[tuple[int, Sequence[Json]]]
) -> None:
    """Store the content blocks that the model got for each message."""
    for message_id, blocks in sent_blocks:
        values = {"id": message_id, "sent": rows.dump_json(blocks)}
        connection.execute(_SET_SENT_BLOCKS, values)


def amend_message(
    connection: Connection,
    address: Address,
    external_id: str,
    text: str | None,
    judge: EditJudge | None = None,
) -> int | None:
    """Replace the text of a message, also where later messages quote it. None erases the text.

    `external_id` is the message's id on its platform. The text of a command is never replaced.
    Without a `judge`, its origin stays the same. Returns the message's id in state.db, or None if
    it isn't stored.
    """
    values: dict[str, object] = {
        **address_values(address),
        "external_id": rows.clean(external_id),
        "text": text or "",
        "quote_text": limit_quote(text or ""),
    }
    row = connection.execute(_SELECT_TO_AMEND, values).fetchone()
    if row is None:
        return None
    message_id = int(row["id"])
    values["id"] = message_id
    is_conversation = row["kind"] in ("chat", "quote", "undone")
    if text is None:
        erase_message(connection, row)
    elif is_conversation and rows.clean(text) != row["text"]:
        values["origin"] = judge(row["origin"], row["text"], text) if judge else row["origin"]
        connection.execute(_REWORD, values)
    else:
        return message_id  # nothing has changed, or the message is a command

    quoting_rows = connection.execute(_REWORD_QUOTES, values).fetchall()
    changed_sessions = {quoting_row["session_id"] for quoting_row in quoting_rows}
    if is_conversation:
        delete_derived_title(connection, row["session_id"], message_id)
        changed_sessions.add(row["session_id"])
    for session_id in changed_sessions:
        record_prefix_break(connection, session_id, "edit")
    return message_id


def erase_message(connection: Connection, row: Row) -> None:
    """Erase the message of a row with the columns id, session_id, kind and text.

    An empty message of kind `command` remains. It keeps the platform's id, so that a redelivered
    message isn't accepted again.
    """
    if row["kind"] == "command" and not row["text"]:
        return  # already erased
    forget_results_of_message(connection, row["id"])
    connection.execute(_ERASE, {"id": row["id"]})
    if row["kind"] == "chat":
        statement = "UPDATE sessions SET message_count = message_count - 1 WHERE id = :id"
        connection.execute(statement, {"id": row["session_id"]})


async def has_erased(database: Database, session_ids: Collection[int]) -> bool:
    """Return whether a message of a person was erased in one of these sessions."""
    values = {"sessions": encode_list(session_ids)}
    return await database.fetch_one(_SELECT_ERASED, values) is not None


def delete_derived_title(connection: Connection, session_id: int, message_id: int) -> None:
    """Delete a title that was derived from this message, in all sessions of its conversation.

    The title stays if the message isn't the first of its conversation, or if the title was imported
    or set with `/title`.
    """
    values = {"session_id": session_id, "id": message_id}
    connection.execute(_DELETE_DERIVED_TITLE, values)


def quote_message(
    message: Message, platform_quote: Quote | None, *, is_later_part: bool = False
) -> Quote:
    """Quote a stored message with its stored text.

    If the person selected a part of the message, or if the platform quotes a later part of an
    answer, use the text of `platform_quote` instead. The quote of an erased message has no text,
    even if `platform_quote` has one.
    """
    quote = Quote(kind="reply", is_ours=message.role == "assistant")
    if message.origin == "forwarded":
        # The quote of a forwarded message has the name of the original author.
        quote = message.quote or quote
    elif message.sender is not None:
        quote = replace(quote, name=message.sender.name, user_id=message.sender.id)

    text = message.text
    if platform_quote is not None and message.text:
        is_part_of_answer = is_later_part and message.kind == "chat"
        if platform_quote.kind == "part" or is_part_of_answer:
            text = platform_quote.text
    return replace(
        quote,
        kind="reply" if platform_quote is None else platform_quote.kind,
        text=text,
        at=message.created_at,
        message_id=message.id,
    )


def limit_quote(text: str) -> str:
    """Cut the text of a quote to at most `MAX_QUOTE_CHARS`."""
    if len(text) <= MAX_QUOTE_CHARS:
        return text
    return f"{text[: MAX_QUOTE_CHARS - 2].rstrip()} …"


def load_transcript(connection: Connection, values: Values) -> list[Message]:
    """List the readable messages of session ``:id``, oldest first.

    The list is empty if the session isn't visible in ``:scopes``.
    """
    return [read_message(row) for row in connection.execute(_SELECT_TRANSCRIPT, values)]


def list_job_results(
    connection: Connection, job_id: str, scopes: frozenset[Scope], limit: int
) -> list[Message]:
    """List the latest deliveries of a job that are visible in these scopes, oldest first."""
    values = {"job": job_id, "scopes": scope_parameter(scopes), "limit": limit}
    latest_first = connection.execute(_SELECT_JOB_RESULTS, values).fetchall()
    return [read_message(row) for row in reversed(latest_first)]


async def find_original(
    database: Database, address: Address, external_id: str, scopes: frozenset[Scope]
) -> Message | None:
    """Return the chat message with this platform id, or None if it isn't visible."""
    values = {
        **address_values(address),
        "external_id": rows.clean(external_id),
        "scopes": scope_parameter(scopes),
    }
    row = await database.fetch_one(_SELECT_ORIGINAL, values)
    return None if row is None else read_message(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredAnswer:
    """The address of an answer and the ids of its platform messages. Used to edit the answer."""

    address: Address
    # Ids of the platform messages, in order.
    posted: tuple[str, ...]
    reply_to: str | None


async def load_answer_seconds(
    database: Database, scopes: frozenset[Scope], since: datetime
) -> list[float]:
    """Return how many seconds the model took for each of its answers since a time."""
    values = {"scopes": scope_parameter(scopes), "since": since}
    answers = await database.fetch_all(_SELECT_ANSWER_SECONDS, values)
    return [max(0.0, float(row["seconds"])) for row in answers]


async def find_delivered_answer(
    database: Database, message_ids: Sequence[int]
) -> DeliveredAnswer | None:
    """Return the delivered answer that contains one of these messages, if it can still be edited.

    Answers to interactions and scheduled questions can't be edited. An answer with a part that may
    have been posted twice can't be edited either. Returns None if there is no answer to edit.
    """
    row = await database.fetch_one(_SELECT_DELIVERED, {"ids": encode_list(message_ids)})
    if row is None:
        return None
    posted = tuple(json.loads(row["posted"]))
    if not posted or any(entry.startswith(INTENT_MARK) for entry in posted):
        return None
    return DeliveredAnswer(
        address=Address.parse(row["address"]), posted=posted, reply_to=row["reply_to"]
    )


async def has_undelivered_answer(database: Database, message_ids: Sequence[int]) -> bool:
    """Return whether an answer that contains one of these messages is still being delivered."""
    values = {"ids": encode_list(message_ids)}
    return await database.fetch_one(_SELECT_UNDELIVERED, values) is not None


async def load_takers(database: Database, answer_ids: Sequence[int]) -> Mapping[int, str]:
    """Return, by answer, the event that took the question at the end of the shown answer.

    It has the form "message:12", or is "" if the question repeated foreign text. An answer is
    missing if its question wasn't alone, if no event answered it after its delivery, or if that
    event could have answered something else.
    """
    values = {"ids": encode_list(answer_ids)}
    values |= {"model": YES_TO_MODEL.arguments, "several": YES_TO_SEVERAL.arguments}
    values["repetition"] = YES_TO_REPETITION.arguments
    taken = await database.fetch_all(_SELECT_TAKERS, values)
    return {row["message_id"]: row["taker"] for row in taken}


def list_answered_calls(rows_of_turn: Sequence[Message]) -> list[ToolCallKey]:
    """Return the tool calls that have a result among these rows."""
    calls: list[ToolCallKey] = []
    for message in rows_of_turn:
        if message.role == "tool":
            ids = [block["tool_use_id"] for block in message.blocks or ()]
            calls += [ToolCallKey(message.session_id, id_) for id_ in ids]
    return calls


# --- Histories ---


@dataclass(slots=True)
class _History:
    """The cached history of a session, and the scopes for which it was loaded."""

    session_id: int
    scopes: frozenset[Scope]
    # The rows of `_SELECT_HISTORY_PARTS`.
    parts: list[tuple[Any, ...]]
    messages: History
    # The last row of the session itself, or None if there is none.
    last_row: tuple[Any, ...] | None
    char_count: int

    @property
    def is_visible(self) -> bool:
        """Whether the session itself is visible.

        Its first exchange may be visible in another session even if the session isn't.
        """
        return any(part[0] == self.session_id and not part[1] for part in self.parts)

    def is_of(
        self, session_id: int, scopes: frozenset[Scope], parts: Sequence[tuple[Any, ...]]
    ) -> bool:
        """Return whether this is the current history of a session in these scopes."""
        return self.session_id == session_id and self.scopes == scopes and self.parts == parts


class HistoryCache:
    """Loads the histories of sessions, and caches those of open sessions.

    Every turn needs the whole history. If it is cached, only newer messages are read. If any
    process has changed or deleted one of its messages, the whole history is read again; triggers
    count such changes for each session. The cache is limited by the number of messages and by their
    total length. It is safe to share between threads.
    """

    def __init__(
        self, max_messages: int = MAX_CACHED_MESSAGES, max_chars: int = MAX_CACHED_CHARS
    ) -> None:
        self._max_messages = max_messages
        self._max_chars = max_chars
        # The histories of open sessions, the most recently used one last.
        self._histories: dict[Address, _History] = {}
        self._lock = threading.Lock()
        # The totals of all cached histories.
        self.message_count = 0
        self.char_count = 0

    def clear(self) -> None:
        """Drop all cached histories."""
        with self._lock:
            self._histories.clear()
            self.message_count = 0
            self.char_count = 0

    def load(
        self, connection: Connection, session: Session, scopes: frozenset[Scope]
    ) -> list[Message]:
        """Load a session's history from state.db. See `Conversations.load_history`."""
        return self._load(connection, session, scopes).messages.share()

    def load_and_keep(
        self, connection: Connection, session: Session, scopes: frozenset[Scope]
    ) -> list[Message]:
        """Load an open session's history, and cache it until its address opens another session."""
        history = self._load(connection, session, scopes)
        with self._lock:
            self._forget(session.address)
            self._histories[session.address] = history
            self.message_count += len(history.messages)
            self.char_count += history.char_count
            while self.message_count > self._max_messages or self.char_count > self._max_chars:
                self._forget(next(iter(self._histories)))
        return history.messages.share()

    def _load(self, connection: Connection, session: Session, scopes: frozenset[Scope]) -> _History:
        values = {"session": session.id, "scopes": scope_parameter(scopes)}
        parts = [tuple(row) for row in connection.execute(_SELECT_HISTORY_PARTS, values)]
        cached = self._histories.get(session.address)
        history = None
        if cached is not None and cached.is_of(session.id, scopes, parts):
            history = _continue_history(connection, cached)
        return history or _load_whole_history(connection, session.id, scopes, parts)

    def _forget(self, address: Address) -> None:
        history = self._histories.pop(address, None)
        if history is not None:
            self.message_count -= len(history.messages)
            self.char_count -= history.char_count


def _continue_history(connection: Connection, history: _History) -> _History | None:
    """Extend a history with the messages that were added to its session since.

    Returns None if the last known message has changed. Also return None if a summary was added,
    because a summary comes first in a history.
    """
    if not history.is_visible:
        return None
    last_row = history.last_row
    since = 0 if last_row is None else last_row[0]
    values = {"session": history.session_id, "since": since}
    added_rows = [tuple(row) for row in connection.execute(_SELECT_HISTORY_SINCE, values)]
    if last_row is not None and (not added_rows or added_rows.pop(0) != last_row):
        return None
    if not added_rows:
        return history
    added_messages = [read_message(row) for row in added_rows]
    if any(message.kind == "summary" for message in added_messages):
        return None
    return replace(
        history,
        messages=history.messages.extend_copy(added_messages),
        last_row=added_rows[-1],
        char_count=history.char_count + sum(map(_count_chars, added_rows)),
    )


def _load_whole_history(
    connection: Connection,
    session_id: int,
    scopes: frozenset[Scope],
    parts: list[tuple[Any, ...]],
) -> _History:
    """Load the history of a session with all parts, for the cache."""
    visible_keys = {scope.key for scope in scopes}
    messages: list[Message] = []
    last_row = None
    char_count = 0
    values = {"session": session_id, "scopes": scope_parameter(scopes)}
    for *columns, seen_keys in connection.execute(_SELECT_HISTORY, values):
        row = tuple(columns)
        message = read_message(row)
        if message.sent_blocks is not None and not _is_subset(seen_keys, visible_keys):
            message = _without_memory_blocks(message)
        messages.append(message)
        char_count += _count_chars(row)
        if message.session_id == session_id and message.kind != "summary":
            last_row = row
    return _History(session_id, scopes, parts, History(messages), last_row, char_count)


def _is_subset(encoded_keys: str | None, keys: set[str]) -> bool:
    """Return whether all scope keys of a JSON list are among `keys`. None means an empty list."""
    return encoded_keys is None or keys.issuperset(json.loads(encoded_keys))


def _without_memory_blocks(message: Message) -> Message:
    blocks = message.sent_blocks or ()
    return replace(
        message, sent_blocks=tuple(block for block in blocks if not is_memory_block(block))
    )


def _count_chars(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, str))
