"""Encode values and read rows, for all modules of the store.

A function that takes a connection runs inside its caller's transaction.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from core.store.engine import Connection, Row, T
from core.types import (
    Account,
    Address,
    Answer,
    CarryOver,
    Inbound,
    Json,
    Message,
    Quote,
    Scope,
    Sender,
    Session,
    SessionEnd,
    SessionPrompt,
    Usage,
)

# --- Statements that several modules extend ---

SESSION_SUMMARY_COLUMNS = """
    sessions.id, addresses.platform, addresses.chat_id, addresses.thread_id,
    addresses.link_base, scopes.key,
    sessions.started_at, sessions.last_at, sessions.ended_at, sessions.end_reason,
    sessions.title, sessions.external_id,
    sessions.parent_id, COALESCE(sessions.root_id, sessions.id), sessions.message_count,
    sessions.is_delegated
"""
"""The columns of a session that search results need. The system prompt is left out, because it is
often larger than 10 KB."""
SESSION_SUMMARY_WIDTH = 16
"""The number of columns in `SESSION_SUMMARY_COLUMNS`."""
SELECT_SESSIONS = f"""
SELECT {SESSION_SUMMARY_COLUMNS}, sessions.system_prompt, sessions.model, sessions.parent_from,
    sessions.visible_scopes, sessions.head_from, sessions.head_until
FROM sessions
JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
"""
_SESSION_WIDTH = SESSION_SUMMARY_WIDTH + 6

DELEGATED_SESSION_IDS = "SELECT id FROM sessions WHERE is_delegated"
"""SQLite answers this query from an index. Reading `is_delegated` from the rows would be slower,
because each row stores that column after the long system prompt."""

MESSAGE_FIELDS = (
    *("id", "session_id", "role", "kind", "text", "blocks", "tools", "tool_name", "external_id"),
    *("sender_id", "sender_name", "sender_is_anonymous", "origin", "quoted", "created_at", "usage"),
)
MESSAGE_COLUMNS = ", ".join(f"messages.{name}" for name in MESSAGE_FIELDS)

CONVERSATION_KEY = """
addresses.platform || ':' || addresses.chat_id
    || CASE addresses.thread_id WHEN '' THEN '' ELSE '/' || addresses.thread_id END
"""
"""`Address.key` as an SQL expression over `addresses`."""

ADDRESS_ID = """
SELECT id FROM addresses
WHERE platform = :platform AND chat_id = :chat_id AND thread_id = :thread_id
"""
"""Selects the id of an address. Its parameters come from `address_values`."""


# --- Texts, times and numbers ---


def clean(text: str) -> str:
    """Return `text` as valid Unicode.

    Surrogate pairs are joined, and each lone surrogate becomes U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_optional(text: str | None) -> str | None:
    return None if text is None else clean(text)


def to_clean_key(value: Account | Address | Scope) -> str:
    """Convert to the key as it is stored."""
    return clean(value.key)


def to_timestamp(at: datetime) -> float:
    """Return a time as seconds since 1970 UTC. Raises ValueError if `at` has no time zone."""
    if at.tzinfo is None:
        raise ValueError("a time without a time zone cannot be stored")
    return at.timestamp()


def to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def to_optional_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else to_datetime(seconds)


def int64_or_zero(number: int) -> int:
    """Return a number that a person typed, or 0 if it doesn't fit into 64 bits.

    No row has the id 0, so such a number finds nothing.
    """
    return number if abs(number) < 1 << 63 else 0


# --- JSON columns ---


def dump_json(value: object) -> str:
    """Encode a value as compact JSON.

    Keys keep their order, because model providers find a cached prefix by comparing bytes.
    """
    return clean(
        json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_convert_for_json)
    )


def _convert_for_json(value: object) -> Any:
    """Convert a value that `json` can't encode.

    A dataclass and a mapping become a dict, bytes become base64, and a datetime becomes an ISO 8601
    string in UTC. Raises TypeError for any other type.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return field_values(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} cannot be stored in state.db")


def dump_blocks(blocks: Sequence[Json], text: str) -> str | None:
    """Encode content blocks as JSON. Returns None if the only block is a text block with `text`."""
    if list(blocks) == [{"type": "text", "text": text}]:
        return None
    return dump_json(blocks)


def load_blocks(encoded: str | None) -> tuple[Json, ...] | None:
    return None if encoded is None else tuple(from_json(encoded))


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def dump_inbound(inbound: Inbound) -> str:
    """Encode an event as JSON, with its scope as a key, without its epoch and `replied_files`.

    The keys `quoted` and `is_nobody` keep their older names, because SQL statements read them.
    """
    values = field_values(inbound)
    del values["epoch"], values["replied_files"]
    values["scope"] = inbound.scope.key
    values["quoted"] = values.pop("quote")
    sender = field_values(inbound.sender)
    sender["is_nobody"] = sender.pop("is_anonymous")
    values["sender"] = sender
    return dump_json(values)


def load_inbound(encoded: str) -> Inbound:
    """Decode an event. Earlier versions stored `is_forward` instead of an origin."""
    values = json.loads(encoded)
    values["scope"] = {"key": values["scope"]}
    values["quote"] = values.pop("quoted", None)
    if "is_nobody" in values["sender"]:
        values["sender"]["is_anonymous"] = values["sender"].pop("is_nobody")
    values.setdefault("origin", "forwarded" if values.get("is_forward") else "typed")
    inbound: Inbound = _adapter(Inbound).validate_python(values)
    return inbound


def dump_answer(answer: Answer | None) -> str | None:
    """Encode an answer for delivery, with files in base64. None stays None."""
    if answer is None:
        return None
    values = field_values(answer)
    return dump_json({key: values[key] for key in ("text", "buttons", "files", "is_private")})


def load_answer(encoded: str | None) -> Answer | None:
    """Decode an answer that `dump_answer` has encoded. None stays None."""
    if encoded is None:
        return None
    values = json.loads(encoded)
    for file in values["files"]:
        file["content"] = base64.b64decode(file["content"])
    answer: Answer = _adapter(Answer).validate_python(values)
    return answer


def load_quote(encoded: str | None) -> Quote | None:
    return None if encoded is None else _adapter(Quote).validate_json(encoded)


# --- Parameters and inserts ---


def field_values(record: Any) -> dict[str, object]:
    """Return the fields of a dataclass by name, as the parameters of a statement."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def address_values(address: Address) -> dict[str, str]:
    return {
        "platform": address.platform,
        "chat_id": address.chat_id,
        "thread_id": address.thread_id or "",
    }


def find_address(connection: Connection, address: Address) -> int | None:
    row = connection.execute(ADDRESS_ID, address_values(address)).fetchone()
    return None if row is None else int(row["id"])


def ensure_address(connection: Connection, address: Address) -> int:
    """Return the id of an address, and store the address if it is new."""
    address_id = find_address(connection, address)
    if address_id is not None:
        return address_id
    values = address_values(address)
    return insert(connection, insert_statement("addresses", *values), values)


def ensure_scope(connection: Connection, scope: Scope) -> int:
    """Return the id of a scope, and store the scope if it is new."""
    values = {"key": scope}
    row = connection.execute("SELECT id FROM scopes WHERE key = :key", values).fetchone()
    if row is not None:
        return int(row["id"])
    return insert(connection, insert_statement("scopes", "key"), values)


def insert(connection: Connection, statement: str, values: Mapping[str, object]) -> int:
    """Run an INSERT statement and return the id of the new row."""
    # All rows of a statement with RETURNING must be read before the next statement runs.
    (row,) = connection.execute(f"{statement} RETURNING id", values).fetchall()
    return int(row["id"])


def insert_statement(table: str, *names: str) -> str:
    """Return an INSERT statement for a table, with one named parameter per column."""
    parameters = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({parameters})"


_SET_META = """
INSERT INTO state_meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""


def get_meta(connection: Connection, key: str) -> str | None:
    statement = "SELECT value FROM state_meta WHERE key = :key"
    row = connection.execute(statement, {"key": key}).fetchone()
    return None if row is None else str(row["value"])


def set_meta(connection: Connection, key: str, value: str) -> None:
    connection.execute(_SET_META, {"key": key, "value": value})


COPY_KEY = "store_copy"
"""A key in `state_meta` for the position that an unfinished copy of another store has reached."""


# --- Erased bytes ---

COMPACTION_KEY = "erasure_compaction"
"""A key in `state_meta` for the stage at which the removal of erased bytes continues. The key is
missing if no bytes must be removed. See `Database.compact`."""
COMPACT_ALL = "all"
"""The first stage: erased words may be in text indexes."""
COMPACT_LOG = "log"
"""The last stage: erased words may be in the log of recent writes."""


def request_compaction(connection: Connection) -> None:
    """Record that words were deleted from a text index, so that all compaction stages run."""
    set_meta(connection, COMPACTION_KEY, COMPACT_ALL)


def request_checkpoint(connection: Connection) -> None:
    """Record that the log must be truncated, because data outside of the indexes was deleted.

    If a compaction is already recorded, nothing changes, because each one ends by truncating the
    log.
    """
    if get_meta(connection, COMPACTION_KEY) is None:
        set_meta(connection, COMPACTION_KEY, COMPACT_LOG)


# --- Rows as values ---


def parse_account(key: str | None) -> Account | None:
    """Parse an account's key. Returns None if the key is empty."""
    if not key:
        return None
    platform, _, user_id = key.partition(":")
    return Account(platform=platform, user_id=user_id)


def pick_columns(row: Row | dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


_COLUMN_READERS: Mapping[str, Callable[[Any], object]] = {
    "bool": bool,
    "datetime": to_datetime,
    "datetime | None": to_optional_datetime,
    "Account | None": parse_account,
    "Address": Address.parse,
    # `value and convert(value)` returns None unchanged.
    "Address | None": lambda key: key and Address.parse(key),
    "tuple[str, ...]": lambda encoded: tuple(json.loads(encoded)),
    "Inbound | None": lambda encoded: encoded and load_inbound(encoded),
}
"""Functions that convert the value of a column, by the annotation of the dataclass field."""


def read_fields(row: Row, record: type[Any]) -> dict[str, Any]:
    """Return the columns of a row that are fields of `record`, by name.

    Each value is converted to its field's type.
    """
    fields = record.__dataclass_fields__
    values: dict[str, Any] = {}
    for name, value in zip(row.keys(), row, strict=True):
        if name in fields:
            reader = _COLUMN_READERS.get(fields[name].type)
            values[name] = reader(value) if reader else value
    return values


def read_account(row: Row) -> Account:
    return Account(platform=row["platform"], user_id=row["user_id"])


def read_address(row: Row) -> Address:
    return Address(
        platform=row["platform"], chat_id=row["chat_id"], thread_id=row["thread_id"] or None
    )


def read_session(row: Row | Sequence[Any]) -> Session:
    """Convert a row to a session.

    The row begins with `SESSION_SUMMARY_COLUMNS` or with the columns of `SELECT_SESSIONS`.
    """
    # Columns are read by position, because a name lookup searches all columns of the row.
    session_id, platform, chat_id, thread_id, link_base, scope_key = row[:6]
    started_at, last_at, ended_at, end_reason, title, external_id = row[6:12]
    parent_id, root_id, message_count, is_delegated = row[12:SESSION_SUMMARY_WIDTH]
    model = ""
    prompt = SessionPrompt()
    carry_over = CarryOver()
    if details := row[SESSION_SUMMARY_WIDTH:_SESSION_WIDTH]:
        prompt_text, model, parent_from, scope_keys, head_from, head_until = details
        scopes = frozenset(Scope(key=key) for key in json.loads(scope_keys or "[]"))
        prompt = SessionPrompt(text=prompt_text, visible_scopes=scopes)
        carry_over = CarryOver(parent_from=parent_from, head_from=head_from, head_until=head_until)

    return Session(
        id=session_id,
        address=Address(platform=platform, chat_id=chat_id, thread_id=thread_id or None),
        scope=Scope(key=scope_key),
        started_at=to_datetime(started_at),
        link_base=link_base,
        prompt=prompt,
        model=model,
        title=title,
        parent_id=parent_id,
        root_id=root_id,
        carry_over=carry_over,
        external_id=external_id,
        last_at=to_datetime(last_at),
        end=None if ended_at is None else SessionEnd(at=to_datetime(ended_at), reason=end_reason),
        messages=message_count,
        is_delegated=bool(is_delegated),
    )


def session_values(session: Session) -> dict[str, object]:
    """Return the columns of a session that the table `sessions` stores itself."""
    return {
        "external_id": session.external_id,
        "parent_id": session.parent_id,
        **field_values(session.carry_over),
        "title": session.title,
        "model": session.model,
        "system_prompt": session.prompt.text,
        "started_at": session.started_at,
        "last_at": session.last_at or session.started_at,
        "ended_at": None if session.end is None else session.end.at,
        "end_reason": None if session.end is None else session.end.reason,
        "is_delegated": session.is_delegated,
    }


def read_message(row: Iterable[Any]) -> Message:
    """Convert a row to a message.

    The row has `MESSAGE_COLUMNS` and, if the statement selects it, the column `sent`.
    """
    # Columns are read by position, as in `read_session`, because a history has hundreds of rows.
    (message_id, session_id, role, kind, text, blocks, tools, tool_name, external_id, *others) = row
    (sender_id, sender_name, is_anonymous, origin, quote, created_at, usage, *optional) = others
    sender = None
    if sender_id is not None:
        sender = Sender(id=sender_id, name=sender_name, is_anonymous=bool(is_anonymous))
    return Message(
        id=message_id,
        session_id=session_id,
        role=role,
        kind=kind,
        text=text,
        tools=tools,
        tool_name=tool_name,
        external_id=external_id,
        origin=origin,
        quote=load_quote(quote),
        blocks=load_blocks(blocks),
        sent_blocks=load_blocks(optional[0]) if optional else None,
        sender=sender,
        created_at=to_datetime(created_at),
        usage=None if usage is None else Usage(**from_json(usage)),
    )


def split_turns(messages: Sequence[Message]) -> Sequence[Sequence[Message]]:
    """Split the messages of a session into turns, and leave out summaries.

    A turn begins with a user message. User messages that follow it directly belong to the same
    turn. Messages before the first user message are left out.
    """
    turns: list[list[Message]] = []
    previous_role = ""
    for message in messages:
        if message.kind == "summary":
            continue
        if message.role == "user" and previous_role != "user":
            turns.append([])
        if turns:
            turns[-1].append(message)
        previous_role = message.role
    return turns


def join_interrupted(turns: Sequence[Sequence[Message]]) -> list[list[Message]]:
    """Return turns in which one with tool calls but no answer is joined with the next turn.

    After a restart, messages that arrived in the meantime join the interrupted turn.
    """
    joined: list[list[Message]] = []
    for turn in turns:
        if joined and not has_answer(joined[-1]) and joined[-1][-1].role != "user":
            joined[-1] += turn
        else:
            joined.append(list(turn))
    return joined


def is_first_after_compression(session: Session, rows: Sequence[Message]) -> bool:
    """Return whether this is the first turn after an automatic compression.

    A summary with a `tool_name` belongs to a compression that the person asked for.
    """
    may_have_summary = session.parent_id is not None or session.is_incognito
    if not may_have_summary or not any(
        row.kind == "summary" and row.session_id == session.id and not row.tool_name for row in rows
    ):
        return False
    roles = [row.role for row in rows if row.session_id == session.id and row.kind != "summary"]
    if "assistant" not in roles:
        return True
    first_answer = roles.index("assistant")
    return "user" not in roles[first_answer:]


def find_last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the last turn of a session, in the sense of `split_turns`.

    Returns an empty list if there is no turn.
    """
    turn: list[Message] = []
    for message in reversed(messages):
        if message.kind == "summary":
            continue
        if turn and turn[-1].role == "user" and message.role != "user":
            break
        turn.append(message)
    while turn and turn[-1].role != "user":
        turn.pop()
    turn.reverse()
    return turn


def find_answered_rows(messages: Sequence[Message], message_ids: Set[str]) -> Sequence[Message]:
    """Return the last turn of a session, which answers the messages with these ids.

    If a restart interrupted the turn and another message joined it, the turn begins with the first
    message and the tool calls before the restart.
    """
    turn = find_last_turn(messages)
    if message_ids <= {message.external_id for message in turn}:
        return turn
    for earlier_turn in reversed(split_turns(messages)[:-1]):
        is_joined = any(message.external_id in message_ids for message in earlier_turn)
        if not is_joined or has_answer(earlier_turn):
            break
        turn = [*earlier_turn, *turn]
    return turn


def find_open_calls(messages: Sequence[Message], session_id: int) -> list[Json]:
    """Return the tool calls in a session's last message of the assistant that have no results.

    Results of jobs, and messages that aren't answered, may have been stored since the calls.
    """
    answered_ids: set[str] = set()
    for message in reversed(messages):
        blocks = message.blocks or ()
        if message.role == "assistant" and message.origin != "job":
            if message.session_id != session_id:
                return []
            calls = [block for block in blocks if block["type"] == "tool_use"]
            return [call for call in calls if call["id"] not in answered_ids]
        answered_ids |= {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
    return []


def has_answer(turn: Sequence[Message]) -> bool:
    """Return whether a turn ends with an answer instead of tool calls or their results.

    Results of jobs don't count. They are stored whenever they are delivered.
    """
    last = next(message for message in reversed(turn) if message.origin != "job")
    if last.role != "assistant":
        return False
    return all(block.get("type") != "tool_use" for block in last.blocks or ())


def is_first_turn(messages: Sequence[Message], last_turn: Sequence[Message]) -> bool:
    """Return True if no turn comes before the last one."""
    for message in messages:
        if message.role == "user" and message.kind != "summary":
            return message is last_turn[0]
    return True


class History(list[Message]):
    """The messages of a session, oldest first. Messages are only ever appended.

    A turn needs several results of `fold`. Computing them from the beginning would take longer with
    every message, so copies share the results for their first `shared_count` messages.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        super().__init__(messages)
        self.shared_count = len(self)
        # For each function: how many rows were folded, and the result.
        self.shared_values: dict[object, Any] = {}

    def extend_copy(self, messages: Iterable[Message]) -> History:
        """Return a copy with more messages.

        The copy keeps the results that are already computed.
        """
        extended = History(self)
        extended.extend(messages)
        extended.shared_count = len(extended)
        extended.shared_values = dict(self.shared_values)
        return extended

    def share(self) -> History:
        """Return a copy to which a turn may append messages without changing this history."""
        shared = History(self)
        shared.shared_values = self.shared_values
        return shared


def fold(messages: Sequence[Message], add: Callable[[T, Message], T], initial: T) -> T:
    """Reduce the messages to one value with `add(value, message)`, starting with `initial`.

    `add` must be a module-level function that is always used with the same `initial`, and must not
    change its first argument. For a `History`, `add` runs only for messages that were appended
    since the last call.
    """
    count, value = 0, initial
    if isinstance(messages, History):
        count, value = messages.shared_values.get(add, (0, initial))
        while count < messages.shared_count:
            value = add(value, messages[count])
            count += 1
        messages.shared_values[add] = (count, value)
    for index in range(count, len(messages)):
        value = add(value, messages[index])
    return value


def leave_out(history: Sequence[Message], messages: Sequence[Message]) -> Sequence[Message]:
    """Return a history without some messages. Messages that aren't stored yet have the id 0."""
    ids = {message.id for message in messages if message.id}
    return [message for message in history if message.id not in ids] if ids else history


def has_pictures(messages: Sequence[Message]) -> bool:
    """Return whether the model sees a picture in any of the messages."""
    return fold(messages, _note_picture, initial=False)


def _note_picture(is_known: bool, message: Message) -> bool:
    blocks = message.sent_blocks or message.blocks or ()
    return is_known or any(block.get("type") == "image" for block in blocks)


def list_job_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages that are results of jobs."""
    return fold(messages, _add_job_result, ())


def _add_job_result(results: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
    return (*results, message) if message.origin == "job" else results


def join_memory(messages: Sequence[Message]) -> str:
    """Return the recalled memory that the messages contain."""
    return fold(messages, _add_memory, "")


def _add_memory(memory: str, message: Message) -> str:
    return memory + "".join(block["text"] for block in message.memory_blocks)


def find_missing_sent_forms(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the indexes of the people's chat messages that lack their sent form."""
    return fold(messages, _add_if_missing, _NO_MESSAGES)[1]


# How many messages were counted, and the indexes of those without a sent form.
_MissingForms = tuple[int, tuple[int, ...]]
_NO_MESSAGES: _MissingForms = (0, ())


def _add_if_missing(counted: _MissingForms, message: Message) -> _MissingForms:
    count, missing = counted
    if message.role == "user" and message.kind == "chat" and message.sent_blocks is None:
        missing = (*missing, count)
    return count + 1, missing


def scoped_term(scope_id: int, term: str) -> str:
    """Return the indexed form of a term, with its scope's id: ``7xcoffee`` for scope 7."""
    return f"{scope_id}x{term}"
