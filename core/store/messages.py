"""Stores, edits, erases, quotes and lists messages.

Functions that take a connection run inside their caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from core.errors import StoreError
from core.store import rows
from core.store.mailbox import INTENT_MARK
from core.store.rows import MESSAGE_COLUMNS, Connection, Row, address_values, read_message
from core.store.sqlite.database import Database
from core.store.sqlite.schema import in_list
from core.store.usage_and_limits import record_prefix_break
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import Address, Json, Message, Quote, Scope

MAX_QUOTE_CHARS = 500
"""The maximum length of a quote's text, as it is stored and shown to the model."""
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
_SELECT_DELIVERED = f"""
SELECT lane, posted, reply_to FROM outbox WHERE done_at IS NOT NULL AND kind = 'answer'
    AND (reply_to IS NULL OR reply_to NOT LIKE '@%') AND key NOT LIKE 'turn:cron:%'
    AND {in_list("message_id", "ids")}
ORDER BY id DESC LIMIT 1
"""
_SELECT_TRANSCRIPT = f"""
SELECT {MESSAGE_COLUMNS} FROM sessions JOIN messages ON messages.session_id = sessions.id
WHERE sessions.id = :id AND {visible()} AND {IS_READABLE}
ORDER BY CASE sessions.end_reason WHEN 'import' THEN messages.created_at END, messages.id
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

# Does nothing if the address already has a message with the same external id.
_INSERT_MESSAGE = """
INSERT INTO messages (session_id, address_id, role, kind, text, blocks, sent, tools, tool_name,
    external_id, sender_id, sender_name, sender_is_nobody, origin, quoted, created_at, usage)
SELECT id, address_id, :role, :kind, :text, :blocks, :sent, :tools, :tool_name, :external_id,
    :sender_id, :sender_name, :sender_is_nobody, :origin, :quoted, :created_at, :usage
FROM sessions WHERE id = :session_id
ON CONFLICT (address_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
"""
_COUNT_MESSAGE = """
UPDATE sessions SET messages = messages + :messages,
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
"""Prefers messages in the given topic. If a message was answered in another topic of its chat, the
message is stored in that topic."""
_SELECT_TO_AMEND = f"""
SELECT messages.id, messages.session_id, messages.kind, messages.text, messages.blocks
{_FROM_CHAT_BY_EXTERNAL_ID} {_OWN_TOPIC_FIRST}
"""
_SELECT_ORIGINAL = f"""
SELECT {MESSAGE_COLUMNS} {_FROM_CHAT_BY_EXTERNAL_ID} AND messages.kind = 'chat' AND {visible()}
{_OWN_TOPIC_FIRST}
"""
_IDS_BY_DELIVERY = f"""
SELECT outbox.message_id FROM outbox
WHERE outbox.lane IN (
    SELECT {rows.CONVERSATION_KEY} FROM addresses WHERE platform = :platform AND chat_id = :chat_id
) AND instr(outbox.posted, '"' || :external_id || '"')
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
"""Doesn't change a message that was erased in the meantime."""
_REWORD = "UPDATE messages SET text = :text, blocks = NULL, sent = NULL WHERE id = :id"
_REWORD_QUOTES = """
UPDATE messages SET sent = NULL,
    quoted = json_set(quoted, '$.kind', 'reply', '$.text', :quote_text)
WHERE id > :id
    AND address_id IN (SELECT id FROM addresses WHERE platform = :platform AND chat_id = :chat_id)
    AND quoted ->> '$.message_id' = :id
    AND NOT (quoted ->> '$.kind' = 'part' AND instr(:text, quoted ->> '$.text'))
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
# and in the sessions that continue it, e.g. "Lisbon", "Lisbon #2" and "Lisbon (branch)". Keeps the
# title if :id isn't the first user message, or if the title was set with /title.
_DELETE_DERIVED_TITLE = """
UPDATE sessions SET title = NULL
FROM sessions AS first
WHERE first.id = :session_id AND first.parent_id IS NULL AND first.external_id IS NULL
    AND (COALESCE(sessions.root_id, sessions.id) = first.id OR sessions.parent_id IN (
        SELECT id FROM sessions AS part WHERE COALESCE(part.root_id, part.id) = first.id
    ))
    AND (sessions.title = first.title OR instr(sessions.title, first.title || ' #') = 1
        OR instr(sessions.title, first.title || ' (branch)') = 1)
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
    """Insert a message, and return it with its id as it would be read from the database.

    If a message with the same external id exists, that message is returned and nothing is inserted.
    `blocks` are stored only if they differ from the plain text. Raises StoreError if the session
    doesn't exist.
    """
    text = rows.clean(message.text)
    blocks = message.blocks
    sender = message.sender
    values = {
        **rows.field_values(message),
        "blocks": None if blocks is None else rows.dump_blocks(blocks, text),
        "sent": None if message.sent_blocks is None else rows.dump_json(message.sent_blocks),
        "sender_id": None if sender is None else sender.id,
        "sender_name": None if sender is None else sender.name,
        "sender_is_nobody": sender is not None and sender.is_anonymous,
        "quoted": None if message.quote is None else rows.dump_json(asdict(message.quote)),
        "created_at": rows.to_timestamp(message.created_at),
        "usage": None if message.usage is None else rows.dump_json(asdict(message.usage)),
    }
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


def set_sent_blocks(
    connection: Connection, sent_blocks: Iterable[tuple[int, Sequence[Json]]]
) -> None:
    """Store the content blocks that were sent to the model for each message id."""
    for message_id, blocks in sent_blocks:
        values = {"id": message_id, "sent": rows.dump_json(blocks)}
        connection.execute(_SET_SENT_BLOCKS, values)


def amend_message(
    connection: Connection, address: Address, external_id: str, text: str | None
) -> int | None:
    """Replace the text of a message and of its quotes, or erase the message if `text` is None.

    `external_id` is the message's id on its platform. Returns the message's id in state.db, or None
    if there is no such message. The text of a command is never replaced.
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
    """Erase a message, given by a row with the columns id, session_id, kind and text.

    An empty message of kind `command` remains. Its id on the platform is kept, so that the message
    isn't accepted again.
    """
    if row["kind"] == "command" and not row["text"]:
        return  # already erased
    connection.execute(_ERASE, {"id": row["id"]})
    if row["kind"] == "chat":
        statement = "UPDATE sessions SET messages = messages - 1 WHERE id = :id"
        connection.execute(statement, {"id": row["session_id"]})


def delete_derived_title(connection: Connection, session_id: int, message_id: int) -> None:
    """Delete the title that was derived from this message in all sessions of its conversation.

    Does nothing if the message isn't the first of its conversation, or if the title was imported or
    set with `/title`.
    """
    values = {"session_id": session_id, "id": message_id}
    connection.execute(_DELETE_DERIVED_TITLE, values)


def quote_message(
    message: Message, platform_quote: Quote | None, *, is_later_part: bool = False
) -> Quote:
    """Return a quote of a stored message with the stored text.

    The text of `platform_quote` is used instead if a person selected a part of the message, or if
    the platform quotes a later part of an answer. The quote of an erased message has no text, even
    if `platform_quote` has one.
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
    """Cut the text of a quote to `MAX_QUOTE_CHARS`."""
    if len(text) <= MAX_QUOTE_CHARS:
        return text
    return f"{text[: MAX_QUOTE_CHARS - 2].rstrip()} …"


def load_transcript(connection: Connection, values: rows.Values) -> list[Message]:
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
    """Return the chat message with this id on its platform, or None if it isn't visible."""
    values = {
        **address_values(address),
        "external_id": rows.clean(external_id),
        "scopes": scope_parameter(scopes),
    }
    row = await database.fetch_one(_SELECT_ORIGINAL, values)
    return None if row is None else read_message(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredAnswer:
    """Where an answer was posted, so that it can be edited."""

    address: Address
    # Ids of the platform messages, in order.
    posted: tuple[str, ...]
    reply_to: str | None


async def find_delivered_answer(
    database: Database, message_ids: Sequence[int]
) -> DeliveredAnswer | None:
    """Return the delivered answer with one of these messages, if it can be edited later.

    Answers to interactions and to scheduled questions can't be, nor answers of which a part may
    have been posted twice.
    """
    row = await database.fetch_one(_SELECT_DELIVERED, {"ids": encode_list(message_ids)})
    if row is None:
        return None
    posted = tuple(json.loads(row["posted"]))
    if not posted or any(entry.startswith(INTENT_MARK) for entry in posted):
        return None
    return DeliveredAnswer(
        address=Address.parse(row["lane"]), posted=posted, reply_to=row["reply_to"]
    )
