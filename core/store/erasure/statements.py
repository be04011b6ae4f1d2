"""Store the lists of rows to erase, and define the statements that find and erase rows.

The statements select every row that may repeat the erased words. `core/privacy` then checks which
rows really contain the words. This check runs when the list is shown, when the person confirms it,
and when an erasure resumes after a crash.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple

from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Database, Row, in_list, overlaps
from core.store.erasure import epoch, expiry
from core.store.mailbox import close_entries
from core.store.media.sent_forms import forget_results
from core.store.messages import erase_message
from core.store.notes import IS_NOTE_CHANGE
from core.store.rows import request_checkpoint, request_compaction
from core.store.sync import SyncQueue
from core.store.usage_limits import record_prefix_break
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import Account, Address, ErasureEpoch, Scope

STEP_MESSAGES = 100
"""How many messages one transaction erases. This blocks other writers for about 50 ms."""
UNCONFIRMED_LIFETIME = timedelta(minutes=15)
"""How long a list can be confirmed. The question to the person expires a little earlier."""
FINISHED_LIFETIME = timedelta(days=30)
"""How long a finished list is kept, in case the person confirms it again."""
# Fields of an `ErasureList` that are stored under their own names.
_STORED_FIELDS = ("text", "upto", "counts", "derived", "thread_id")
_STORED_TIMES = ("expires_before", "first_said_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """A request to erase data: the account that asks, and the chat in which it asks."""

    account: Account
    # The scope of the chat.
    scope: Scope
    # All scopes that are visible in the chat.
    scopes: frozenset[Scope]
    # The address of the chat.
    address: Address
    is_owner: bool
    epoch: ErasureEpoch | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the account may erase only its own words.

        True in a group, unless the owner asks.
        """
        return self.scope.is_group and not self.is_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureItem:
    """An item of the list that the person sees before confirming an erasure."""

    kind: Literal["message", "fact", "note", "skill", "job", "room", "file"]
    text: str
    at: datetime
    author: str = ""


@dataclass(kw_only=True)
class ErasureList:
    """The rows and texts that an erasure deletes, and later the result of the erasure."""

    request: ErasureRequest
    # The person's description of what to forget.
    text: str = ""
    # Identifies the list when the person confirms it.
    token: str = ""
    made_at: datetime | None = None
    is_done: bool = False
    # If set, everything older is erased because of the retention settings.
    expires_before: datetime | None = None
    # If set, only the messages of this topic or thread expire, or of "" for those outside of any.
    thread_id: str | None = None

    # The last message id when the list was shown.
    upto: int = 0
    # How many items of each kind the person sees in the list.
    counts: dict[str, int] = field(default_factory=dict)
    # How many other rows repeat these items.
    derived: int = 0
    # When the oldest message was sent. None if other texts, such as notes, may be older.
    first_said_at: datetime | None = None
    # Ids of rows by kind. A kind is a key of `COPY_STATEMENTS`, or one of these:
    # - messages: the messages that the person asked to erase; only these ids are stored
    # - repeats: messages that repeat those messages
    # - asked: the command that asked for the erasure, and its answer
    # - inbox: entries without an answer
    # - summaries: pairs of an id and the text that remains of the summary
    ids: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    message_texts: list[str] = field(default_factory=list)
    # Entries of note files.
    note_entries: set[str] = field(default_factory=set)
    items: list[ErasureItem] = field(default_factory=list)
    # The kinds and texts of the readable rows among those that are counted in `derived`.
    repeats: list[tuple[str, str]] = field(default_factory=list)
    # The ids and names of files of other messages that are equal to erased files. They stay.
    equal_files: list[tuple[int, str]] = field(default_factory=list)
    # The names of erased files that remaining answers of a model may describe in other words.
    described_files: list[str] = field(default_factory=list)

    # The words to search for, and a function that tests whether a text contains them.
    phrase: str = ""
    has_words: Callable[..., bool] = lambda *_: False
    # Whether the search was limited, e.g. to a period or a sender.
    is_narrowed: bool = False

    # The memory services that were asked to erase their copies.
    services: tuple[str, ...] = ()
    # Files that contain erased words but can't be written.
    unwritable_files: tuple[str, ...] = ()
    # Whether all erased bytes are gone from state.db.
    is_clean: bool = False
    # Whether the erasure is recorded in the journal for backups.
    is_journaled: bool = False
    # How many texts still contain the words, by the names of `personal_data.SCAN_STATEMENTS`.
    remaining_counts: Counter[str] | None = None
    # Files of the home that still contain the words. None unless the owner asks.
    remaining_files: tuple[str, ...] | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters that the statements of this module need."""
        request = self.request
        own_keys = {scope.key.removeprefix("account:") for scope in request.scopes}
        own_keys.add(request.account.key)
        return {
            **rows.address_values(request.address),
            "scopes": scope_parameter(request.scopes),
            "account": request.account,
            "sender": request.account.user_id,
            "own": encode_list(sorted(own_keys)),
            "limited": request.is_limited,
            "owner": request.is_owner,
            "made_at": self.made_at,
            "upto": self.upto,
            "messages": encode_list(self.ids["messages"]),
            "first": min(self.ids["messages"], default=0),
            "facts": encode_list(self.ids["facts"]),
            "before": self.expires_before,
            "thread": "*" if self.thread_id is None else self.thread_id,
        }

    def dump(self) -> str:
        """Encode the list for the table `erasures`."""
        values = {
            "where": self.request.scope.key,
            "is_owner": self.request.is_owner,
            "address": asdict(self.request.address),
            **{name: getattr(self, name) for name in _STORED_FIELDS},
            "messages": self.ids["messages"],
        }
        for name in _STORED_TIMES:
            if (moment := getattr(self, name)) is not None:
                values[name] = moment.isoformat()
        return rows.dump_json(values)


# --- Rows that may repeat erased words ---

_SENDER_PATHS = (
    "message.from",
    "edited_message.from",
    "callback_query.from",
    "my_chat_member.from",
    "sender",
)
_SENDER_IDS = ", ".join(f"json_extract(raw, '$.{path}.id')" for path in _SENDER_PATHS)
RAW_UPDATE_SENDER = f"""
platform || ':' || CASE WHEN json_valid(raw) THEN CAST(COALESCE({_SENDER_IDS}) AS TEXT) END
"""
"""An SQL expression for the account that sent a dead letter. A dead letter is an update of Telegram
or a stored event."""
_PAIRING_ACCOUNT = "platform || ':' || user_id"
VISIBLE_SESSION_IDS = f"SELECT sessions.id FROM sessions WHERE {visible()}"
_VISIBLE_ADDRESS_IDS = f"SELECT sessions.address_id FROM sessions WHERE {visible()}"
VISIBLE_CONVERSATION_KEYS = f"""
SELECT {rows.CONVERSATION_KEY} FROM addresses WHERE id IN ({_VISIBLE_ADDRESS_IDS})
"""
IS_IMPORTED = f"""
address_id IN (SELECT id FROM addresses WHERE platform = 'import')
AND session_id IN ({VISIBLE_SESSION_IDS})
"""
_IN_IDS = in_list("id", "ids")
_TITLE_MESSAGE_ID = """(
    SELECT id FROM messages
    WHERE session_id = sessions.id AND role = 'user' AND kind = 'chat' AND text <> ''
    ORDER BY id LIMIT 1
)"""
"""Selects the message from which the title of a session was derived."""


def _select_own(
    table: str,
    texts: str,
    message_id: str = "message_id",
    at: str = "created_at",
    also: str = "FALSE",
) -> str:
    """Return a statement that selects the rows of a table that the person may erase.

    In a direct chat, these are all rows of the visible scopes. In a group, unless the owner asks,
    they are the person's own rows and the rows for which `also` holds.
    """
    return f"""
        SELECT id, {message_id}, {at}, {texts} FROM {table}
        WHERE {visible(f"{table}.scope_id")} AND (NOT :limited OR account = :account OR {also})
    """


def _select_from_sessions(column: str, message_id: str = "NULL") -> str:
    """Return a statement that selects the texts in a column of all visible sessions."""
    return f"""
        SELECT id, {message_id}, NULL, {column} FROM sessions WHERE {visible()} AND {column} <> ''
    """


class CopyStatements(NamedTuple):
    """The statements that find and erase one kind of row that may repeat erased words."""

    # Selects a row's id, the id of the message from which the row was derived, its time and texts.
    select: str
    # Erases the rows ``:ids``.
    erase: str


_ERASE_QUOTE = f"UPDATE messages SET quoted = NULL, sent = NULL WHERE {_IN_IDS}"
COPY_STATEMENTS: Mapping[str, CopyStatements] = {
    "facts": CopyStatements(
        _select_own("facts", "content, value"),
        f"DELETE FROM facts WHERE {_IN_IDS}",
    ),
    "fact_changes": CopyStatements(
        f"""
        SELECT id, NULL, at, before, after, reason FROM fact_changes
        WHERE {visible("fact_changes.scope_id")} AND NOT {in_list("fact_id", "facts")}
        """,
        f"DELETE FROM fact_changes WHERE {_IN_IDS}",
    ),
    "note_changes": CopyStatements(
        f"{_select_own('note_changes', 'before, after', at='at')} AND {IS_NOTE_CHANGE}",
        f"DELETE FROM note_changes WHERE {_IN_IDS}",
    ),
    "skill_changes": CopyStatements(
        f"{_select_own('note_changes', 'target, before, after', at='at')} AND NOT {IS_NOTE_CHANGE}",
        f"DELETE FROM note_changes WHERE {_IN_IDS}",
    ),
    "pending_notes": CopyStatements(
        # A draft repeats other people's notes, so every member may erase it.
        _select_own("pending_notes", "operations, reason", at="at", also="is_draft"),
        f"DELETE FROM pending_notes WHERE {_IN_IDS}",
    ),
    "files": CopyStatements(
        _select_own(
            "message_files",
            "name, (SELECT group_concat(text, '\n') FROM file_parts "
            "WHERE file_parts.hash = message_files.hash)",
            at="at",
        ),
        f"DELETE FROM message_files WHERE {_IN_IDS}",
    ),
    "skills": CopyStatements(
        f"SELECT id, NULL, NULL, name FROM skills WHERE {visible('skills.scope_id')}",
        f"DELETE FROM skills WHERE {_IN_IDS}",
    ),
    "jobs": CopyStatements(
        _select_own("jobs", "text", message_id="NULL"),
        f"""
        UPDATE jobs SET text = '', next_at = NULL, ended_at = COALESCE(ended_at, :now)
        WHERE {_IN_IDS}
        """,
    ),
    "titles": CopyStatements(
        _select_from_sessions("title", _TITLE_MESSAGE_ID),
        f"UPDATE sessions SET title = NULL WHERE {_IN_IDS}",
    ),
    "sources": CopyStatements(
        _select_from_sessions("external_id"),
        f"UPDATE sessions SET external_id = NULL WHERE {_IN_IDS}",
    ),
    "quotes": CopyStatements(
        f"""
        SELECT id, CAST(quoted ->> 'message_id' AS BIGINT), NULL, quoted ->> 'text',
            quoted ->> 'name'
        FROM messages WHERE quoted IS NOT NULL AND session_id IN ({VISIBLE_SESSION_IDS})
        """,
        _ERASE_QUOTE,
    ),
    "own_quotes": CopyStatements(
        f"""
        SELECT id, NULL, NULL, quoted ->> 'text', quoted ->> 'name' FROM messages
        WHERE :limited AND quoted ->> 'user_id' = :sender
            AND session_id IN ({VISIBLE_SESSION_IDS})
        """,
        _ERASE_QUOTE,
    ),
    "outbox": CopyStatements(
        f"""
        SELECT id, message_id, NULL, payload FROM outbox
        WHERE payload IS NOT NULL AND address IN ({VISIBLE_CONVERSATION_KEYS})
        """,
        f"""
        UPDATE outbox SET payload = NULL, next_at = NULL, dead_at = COALESCE(dead_at, :now),
            error = 'forgotten'
        WHERE done_at IS NULL AND {_IN_IDS}
        """,
    ),
    "actions": CopyStatements(
        _select_own("actions", "arguments", message_id="NULL", at="NULL"),
        f"DELETE FROM actions WHERE {_IN_IDS}",
    ),
    "updates": CopyStatements(
        f"""
        SELECT update_id, NULL, NULL, raw, error FROM raw_updates
        WHERE failed_at IS NOT NULL AND (:owner OR {in_list(RAW_UPDATE_SENDER, "own")})
        """,
        f"DELETE FROM raw_updates WHERE {in_list('update_id', 'ids')}",
    ),
    "pairings": CopyStatements(
        f"""
        SELECT code, NULL, NULL, json_extract(inbound, '$.text') FROM pairings
        WHERE :owner OR {in_list(_PAIRING_ACCOUNT, "own")}
        """,
        f"""
        UPDATE pairings SET inbound = json_set(inbound, '$.text', '')
        WHERE {in_list("code", "ids")}
        """,
    ),
    "errors": CopyStatements(
        f"""
        SELECT id, NULL, NULL, error FROM outbox
        WHERE error <> '' AND (:owner OR address IN ({VISIBLE_CONVERSATION_KEYS}))
        """,
        f"UPDATE outbox SET error = 'forgotten' WHERE {_IN_IDS}",
    ),
    # Names in imported history are erased, too. Names from a platform stay, because the next
    # message would bring them back.
    "senders": CopyStatements(
        f"SELECT DISTINCT sender_name, NULL, NULL, sender_name FROM messages WHERE {IS_IMPORTED}",
        # `tools = tools` makes the triggers index the messages again.
        f"""
        UPDATE messages SET sender_name = '', sent = NULL, tools = tools
        WHERE {in_list("sender_name", "ids")} AND {IS_IMPORTED}
        """,
    ),
    "message_names": CopyStatements(
        f"""
        SELECT id, NULL, NULL, external_id FROM messages
        WHERE external_id GLOB '*[^0-9a-f-]*' AND {IS_IMPORTED}
        """,
        f"UPDATE messages SET external_id = NULL WHERE {_IN_IDS}",
    ),
    "places": CopyStatements(
        # These addresses were created only by imports, so no message can arrive from them.
        f"""
        SELECT id, NULL, NULL, chat_id, thread_id FROM addresses
        WHERE id IN ({_VISIBLE_ADDRESS_IDS})
            AND id NOT IN (SELECT address_id FROM sessions WHERE end_reason IS NOT 'import')
        """,
        f"UPDATE addresses SET chat_id = 'forgotten-' || id, thread_id = '' WHERE {_IN_IDS}",
    ),
}
"""The rows that may repeat erased words, by kind. Messages are in `SELECT_POSSIBLE_REPEATS`."""
UNLISTED_KINDS = ("repeats", "summaries", *(COPY_STATEMENTS.keys() - {"facts", "jobs", "files"}))
"""Kinds of rows that repeat the listed items. They are counted together."""

IS_VISIBLE_ENTRY = f"""
inbox.address_id IN ({_VISIBLE_ADDRESS_IDS})
OR {in_list("json_extract(inbox.inbound, '$.scope')", "scopes")}
"""
# The external id of a reminder is ``job:12@1700000000``. The chat of a scheduled question is the id
# of its job.
_IS_OF_OWN_JOB = """(:limited AND :account IS (
    SELECT account FROM jobs WHERE id = CAST(CASE messages.origin
        WHEN 'job' THEN NULLIF(
            substr(messages.external_id, 5, MAX(instr(messages.external_id, '@') - 5, 0)), ''
        )
        ELSE (
            SELECT chat_id FROM addresses WHERE id = messages.address_id AND platform = 'cron'
        )
    END AS BIGINT)
))"""
READ_CHANNEL = "read_channel"
"""The name of the tool whose results may contain messages of the person that aren't stored."""
SELECT_POSSIBLE_REPEATS = f"""
SELECT id, role, origin, kind, text, blocks, tools, tool_name, sender_id,
    {_IS_OF_OWN_JOB} AS is_of_own_job
FROM messages
WHERE session_id IN ({VISIBLE_SESSION_IDS}) AND (
    kind <> 'chat' OR blocks IS NOT NULL OR {_IS_OF_OWN_JOB}
    OR role <> 'user' AND id > :first AND session_id IN (
        SELECT session_id FROM messages AS listed WHERE {in_list("listed.id", "messages")}
    )
    OR session_id IN ({rows.DELEGATED_SESSION_IDS})
)
ORDER BY id
"""
"""Selects messages that may repeat other messages, oldest first.

Examples are answers after the message ``:first``, tool results and commands. `is_of_own_job` is 1
in a group if the message belongs to a job of the person. The job's id is in the external id of a
delivery (``job:7@2026-11-20T09:00:00``), or in the address of the cron session.
"""
SELECT_LISTED_MESSAGES = f"""
SELECT id, text, role, sender_name, created_at FROM messages
WHERE {in_list("id", "messages")} AND text <> '' AND (id <= :upto OR created_at < :made_at)
ORDER BY id
"""
"""Selects the messages among ``:messages`` that existed when the list was shown."""
SELECT_OPEN_ENTRIES = f"""
SELECT inbox.id, inbox.inbound, messages.id AS message_id
FROM inbox LEFT JOIN messages
    ON messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
WHERE (:made_at IS NULL OR inbox.received_at <= :made_at) AND ({IS_VISIBLE_ENTRY})
ORDER BY inbox.id
"""
"""Selects events that had no answer when the list was shown, each with its message, if any."""
SELECT_REQUEST_MESSAGES = f"""
SELECT messages.id FROM messages
JOIN sessions ON sessions.id = messages.session_id
JOIN addresses ON addresses.id = messages.address_id
WHERE messages.id > :upto AND messages.kind = 'command' AND {visible()}
    AND (messages.role <> 'user' OR messages.sender_id = :sender)
    AND addresses.platform = :platform AND addresses.chat_id = :chat_id
    AND addresses.thread_id = :thread_id
"""
"""Selects the command that asked for the erasure, and its answer."""
FROM_OWN_GROUP_MESSAGES = f"""
FROM messages JOIN sessions ON sessions.id = messages.session_id
JOIN scopes ON scopes.id = sessions.scope_id
JOIN addresses ON addresses.id = messages.address_id
WHERE scopes.key >= 'room:' AND scopes.key < 'room;' AND NOT {visible()} AND NOT sender_is_anonymous
    AND {in_list("platform || ':' || sender_id", "own")}
"""
"""The FROM clause for a person's messages in groups that their direct chat doesn't show."""
_QUOTED_USER_ID = "(quoted ->> 'user_id')"
FROM_GROUP_QUOTES = FROM_OWN_GROUP_MESSAGES.replace("sender_id", _QUOTED_USER_ID)
"""The FROM clause for quotes of the person in groups that aren't visible in their direct chat."""
_SELECT_OWN_GROUPS = f"""
SELECT scopes.id, scopes.key AS scope, platform, sender_id AS user_id {FROM_OWN_GROUP_MESSAGES}
"""
SELECT_GROUPS = f"""
{_SELECT_OWN_GROUPS} UNION {_SELECT_OWN_GROUPS.replace("sender_id", _QUOTED_USER_ID)}
"""
"""Selects the groups with a person's messages or with quotes of the person, and the person's
account in each group."""

# --- The lists ---

_INSERT_LIST = f"""
{rows.insert_statement("erasures", "id", "address", "account", "scopes", "list", "made_at")}
ON CONFLICT (id) DO NOTHING
"""
SELECT_LIST = "SELECT * FROM erasures WHERE id = :id AND address = :address AND account = :account"
_OUTDATED_ROWS = (
    "erasures WHERE started_at IS NULL AND made_at < :unconfirmed OR done_at < :finished",
    # A stranger's message is kept until the code expires or, after an approval, until it is
    # answered. The platform may delay the answer.
    "pairings WHERE expires_at <= :now AND (used_at IS NULL OR used_at < :finished)",
)
_DELETE_NOTE_CHANGES = f"""
DELETE FROM note_changes
WHERE {visible("note_changes.scope_id")}
    AND ({in_list("before", "notes")} OR {in_list("after", "notes")})
"""
"""Deletes all changes of the erased notes, including the one that removed them from their file."""
_DROP_SENT_FORMS = f"""
UPDATE messages SET sent = NULL
WHERE json_array_length(sent) > 2 AND session_id IN ({VISIBLE_SESSION_IDS})
"""
"""Deletes the sent forms that have more than two blocks (a time line and the text).

Other blocks may repeat erased words. The sent forms are built again without memory blocks.
"""
_DROP_PROMPTS = f"UPDATE sessions SET system_prompt = '' WHERE id IN ({VISIBLE_SESSION_IDS})"
_SELECT_OPEN_WITH_PROMPT = f"{VISIBLE_SESSION_IDS} AND ended_at IS NULL AND system_prompt <> ''"
_SELECT_UNFINISHED = """
SELECT * FROM erasures WHERE started_at < COALESCE(:before, started_at + 1) AND done_at IS NULL
"""
_DELETE_OTHER_LISTS = f"""
DELETE FROM erasures
WHERE started_at IS NULL AND id <> :id AND {overlaps("erasures.scopes", "scopes")}
    AND (NOT :limited OR account = :account)
"""
"""Deletes unconfirmed lists in the same scopes, because they may contain the words to erase."""
_MARK_FINISHED = """
UPDATE erasures SET done_at = :now, epoch = :epoch, list = :list
WHERE id = :id AND done_at IS NULL
"""


class Erasures:
    """Stores erasures, from the unconfirmed list to the finished erasure."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def save(self, erasure_list: ErasureList) -> None:
        """Store a list, so that the same account can confirm it at the same address."""
        request = erasure_list.request
        values = self._list_values(erasure_list.token, request)
        values["scopes"] = scope_parameter(request.scopes)
        values["list"] = erasure_list.dump()
        values["made_at"] = erasure_list.made_at or values["now"]
        await self._database.execute(_INSERT_LIST, values, request.epoch)

    async def prune(self) -> None:
        """Delete expired lists and pairing codes, and old finished lists."""
        now = self._clock.now()
        values = {
            "unconfirmed": rows.to_timestamp(now - UNCONFIRMED_LIFETIME),
            "finished": rows.to_timestamp(now - FINISHED_LIFETIME),
            "now": now,
        }

        def delete(connection: Connection) -> None:
            for condition in _OUTDATED_ROWS:
                connection.execute(f"DELETE FROM {condition}", values)
            request_checkpoint(connection)

        has_outdated = " UNION ALL ".join(
            f"SELECT 1 FROM {condition}" for condition in _OUTDATED_ROWS
        )
        if await self._database.fetch_one(has_outdated, values):
            await self._database.write(delete)

    async def begin(self, token: str, request: ErasureRequest) -> ErasureList | None:
        """Begin the erasure of a list, if it hasn't begun yet, and return the list.

        From now on, writes that are based on earlier reads are refused. Returns None if this
        account has no list with this token at this address, or no longer sees all scopes of the
        list.
        """
        values = self._list_values(token, request)

        def mark_begun(connection: Connection) -> ErasureList | None:
            """Mark the list as begun, and delete other lists that may contain the words.

            Returns None if the person no longer has the list.
            """
            row = connection.execute(SELECT_LIST, values).fetchone()
            if row is None:
                return None
            erasure_list = read_list(row)
            if row["started_at"] is not None:
                return erasure_list
            if not request.scopes.issuperset(erasure_list.request.scopes):
                # Accounts were unlinked meanwhile, so part of the list belongs to another person.
                return None
            connection.execute(_DELETE_OTHER_LISTS, {**erasure_list.parameters, **values})
            connection.execute("UPDATE erasures SET started_at = :now WHERE id = :id", values)
            epoch.advance_epoch(connection)
            return erasure_list

        return await self._database.write(mark_begun)

    async def list_unfinished(self, before: datetime | None = None) -> list[ErasureList]:
        """List the erasures that have begun but aren't finished.

        If `before` is given, only erasures that began before that time are listed.
        """
        list_rows = await self._database.fetch_all(_SELECT_UNFINISHED, {"before": before})
        return [read_list(row) for row in list_rows]

    async def finish(self, erasure_list: ErasureList, sync_queue: SyncQueue | None = None) -> None:
        """Erase all rows of a list, and ask the memory services to erase their copies.

        Both happen in one transaction. If a service were asked earlier, it could get the words
        again. The list is marked as finished last, so a crash before that repeats the erasure.
        """
        now = self._clock.now()

        def ask_services(
            message_ids: Sequence[int], note_ids: Sequence[int], connection: Connection
        ) -> None:
            if sync_queue is not None:
                names = sync_queue.queue_erasure(message_ids, note_ids, connection)
                erasure_list.services = tuple(sorted({*erasure_list.services, *names}))

        def erase_copies(connection: Connection) -> None:
            ask_services([], erasure_list.ids["note_changes"], connection)
            _erase_copies(connection, erasure_list, now)

        def erase_batch(connection: Connection, ids: Sequence[int]) -> None:
            ask_services(ids, [], connection)
            erase_messages(connection, ids)

        ids = erasure_list.ids
        message_ids = [*ids["asked"], *ids["repeats"], *ids["messages"]]
        await self._database.write_indexed(erase_copies)
        for start in range(0, len(message_ids), STEP_MESSAGES):
            batch = message_ids[start : start + STEP_MESSAGES]
            await self._database.write_indexed(partial(erase_batch, ids=batch))
        await self._database.write(lambda connection: _mark_finished(connection, erasure_list, now))
        if sync_queue is not None:
            sync_queue.on_wake()

    def _list_values(self, token: str, request: ErasureRequest) -> dict[str, object]:
        return {
            "id": token,
            "address": request.address,
            "account": request.account,
            "now": self._clock.now(),
        }


def erase_messages(connection: Connection, ids: Sequence[int]) -> None:
    """Erase messages. The next compaction removes their last bytes from the file."""
    request_compaction(connection)
    statement = f"SELECT id, session_id, kind, text FROM messages WHERE {_IN_IDS}"
    for row in connection.execute(statement, {"ids": encode_list(ids)}).fetchall():
        erase_message(connection, row)


def _erase_copies(connection: Connection, erasure_list: ErasureList, now: datetime) -> None:
    """Erase everything on a list except its messages.

    Also delete the visible sessions' system prompts, and sent forms that may repeat erased words.
    """
    request_compaction(connection)
    close_entries(connection, erasure_list.ids["inbox"], now)
    values = {**erasure_list.parameters, "now": now}
    if erasure_list.expires_before is not None:
        connection.execute(expiry.DETACH_KEPT_FACTS, values)
    forget_results(connection, erasure_list.ids["files"])
    for kind, statements in COPY_STATEMENTS.items():
        connection.execute(statements.erase, values | {"ids": encode_list(erasure_list.ids[kind])})
    for message_id, remaining_text in erasure_list.ids["summaries"]:
        summary = {"id": message_id, "text": remaining_text}
        connection.execute("UPDATE messages SET text = :text WHERE id = :id", summary)
    note_entries = encode_list(erasure_list.note_entries)
    connection.execute(_DELETE_NOTE_CHANGES, {**values, "notes": note_entries})

    connection.execute(_DROP_SENT_FORMS, values)
    for row in connection.execute(_SELECT_OPEN_WITH_PROMPT, values).fetchall():
        record_prefix_break(connection, row["id"], "forget")
    connection.execute(_DROP_PROMPTS, values)


def _mark_finished(connection: Connection, erasure_list: ErasureList, now: datetime) -> None:
    """Mark a list as finished, and delete the person's words from it."""
    request_compaction(connection)
    values = {
        "id": erasure_list.token,
        "now": now,
        "list": replace(erasure_list, text="").dump(),
        "epoch": epoch.advance_epoch(connection),
    }
    connection.execute(_MARK_FINISHED, values)


def read_list(row: Row) -> ErasureList:
    """Convert a row of the table `erasures` to a list."""
    values = json.loads(row["list"])
    account = rows.parse_account(row["account"])
    assert account is not None
    request = ErasureRequest(
        account=account,
        scope=Scope(key=values["where"]),
        scopes=frozenset(Scope(key=key) for key in json.loads(row["scopes"])),
        # Earlier versions stored the ids of every kind, but no address and no text.
        address=Address(**values.get("address", {"platform": "", "chat_id": ""})),
        is_owner=values["is_owner"],
    )
    ids = {kind: value for kind, value in values.items() if isinstance(value, list)}
    texts = {name: values[name] for name in _STORED_TIMES if values.get(name)}
    times: dict[str, Any] = {name: datetime.fromisoformat(text) for name, text in texts.items()}
    return ErasureList(
        request=request,
        token=row["id"],
        made_at=rows.to_datetime(row["made_at"]),
        is_done=row["done_at"] is not None,
        ids=defaultdict(list, ids),
        **times,
        **{name: values[name] for name in _STORED_FIELDS if name in values},
    )
