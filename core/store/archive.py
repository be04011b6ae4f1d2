"""Import conversations into state.db, and export them. `core/transfer` handles the file formats.

Repeating an import, or resuming an interrupted one, stores no message twice. An export leaves out
tool calls, tool results and commands.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count, groupby
from operator import attrgetter
from typing import NamedTuple

from core.errors import HistoryError, StoreDamagedError, StoreError, word_clause
from core.store import messages, rows, sessions
from core.store.engine import LOG_SPACE_WAIT_S, Connection, Database, Row
from core.store.erasure import personal_data
from core.store.search.chunks import merge_step
from core.store.visibility import scope_parameter, visible
from core.text.normalize import shorten
from core.types import Account, Address, MessageKind, Role, Scope, Session, SessionEnd

BATCH_RECORDS = 2_000
BATCH_CHARS = 200_000
"""The largest size of one transaction.

With messages of typical length, a transaction takes about 30 ms and adds 2 MB to the write-ahead
log. Smaller batches would be slower, because each transaction adds a segment to the text index, and
segments must be merged later.
"""
MERGE_INTERVAL = 32
"""The index is merged after this many batches. With 64 segments, FTS5 would merge all of them in
one long step."""
MERGE_PAGES = 200
"""How many pages of the index one step merges."""
PROGRESS_RECORDS = 1000
"""How many records are read between two progress reports."""
MAX_REASONS = 100
"""How many refused lines are reported with a reason. Further ones are only counted."""
PAGE_MESSAGES = 500
MAX_TITLE_CHARS = 200
TITLE_FROM_TEXT_CHARS = 60
_STORE_NAME_KEY = "archive_name"
"""The key in `state_meta` of this state.db's name in exports. An import uses the name to find the
sessions that were exported from the same state.db."""

# Selects the next page of an export: the readable messages after a given session and message. A
# session that wasn't imported is named after this state.db and its id, e.g.
# "mneme-4f1d0c2a9be3-17".
_SELECT_PAGE = f"""
SELECT messages.id, session_id, role, kind, text, sender_name, messages.external_id, created_at,
    title, platform, chat_id, thread_id, scopes.key AS scope_key,
    COALESCE(sessions.external_id, :store || '-' || sessions.id) AS name,
    (
        SELECT COALESCE(external_id, :store || '-' || id) FROM sessions AS parent_sessions
        WHERE parent_sessions.id = sessions.parent_id
    ) AS parent
FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
WHERE (messages.session_id, messages.id) > (:session, :message) AND {visible()}
    AND {messages.IS_READABLE}
ORDER BY messages.session_id, messages.id LIMIT :limit
"""
_SELECT_NEXT_ID = """
SELECT session_id, id FROM messages INDEXED BY messages_by_session
WHERE (session_id, id) > (:session, :message) ORDER BY session_id, id LIMIT 1
"""
"""Selects the ids of the next message and its session, even if the message can't be read."""
_SELECT_BY_NAME = f"""
{rows.SELECT_SESSIONS} WHERE scopes.key = :scope
AND (sessions.external_id = :name OR sessions.id = :own_id AND sessions.external_id IS NULL)
"""
_INSERT_MESSAGE = """
INSERT INTO messages (session_id, address_id, external_id, role, kind, text, sender_id,
    sender_name, origin, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (address_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
"""
_SELECT_WITHOUT_ID = """
SELECT created_at, role, sender_name, text FROM messages
WHERE session_id = :session AND external_id IS NULL AND created_at BETWEEN :first AND :last
"""
_UPDATE_SESSION = """
UPDATE sessions SET message_count = message_count + :messages,
    started_at = MIN(started_at, :first), last_at = MAX(last_at, :last),
    ended_at = CASE WHEN end_reason = 'import' THEN MAX(ended_at, :last) ELSE ended_at END
WHERE id = :session
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferConversation:
    """A conversation of another system, to which imported records belong."""

    # The session's name in the other system.
    name: str
    address: Address
    scope: Scope
    # The name of the session that this one continues.
    parent: str | None = None
    title: str | None = None
    # Sender names of the importing person, in lower case. They come from the import's options,
    # because a file can't be trusted to name them.
    own_names: frozenset[str] = frozenset()


class TransferRecord(NamedTuple):
    """A message of another system, as an import reads it.

    An import creates hundreds of thousands of records, and a named tuple is created three times as
    fast as a frozen dataclass.
    """

    conversation: TransferConversation
    role: Role
    text: str
    at: datetime
    sender: str | None = None
    # The message's id in the other system.
    id: str | None = None
    # A "quote" repeats what recall found and isn't indexed.
    kind: MessageKind = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that an import leaves out, and the reason."""

    # The reason for refusing the line. Without `line`, the plural name of this kind of record.
    reason: str
    # The line number, or None for records that are skipped on purpose and only counted.
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """The counts and errors that an import returns."""

    line_count: int = 0
    imported_count: int = 0
    # Records that state.db already contains.
    known_count: int = 0
    refused_count: int = 0
    session_ids: set[int] = field(default_factory=set)
    # The first refused lines, such as ``line 7: reason``.
    reasons: list[str] = field(default_factory=list)
    # How many records were skipped on purpose, by kind.
    skipped_counts: Counter[str] = field(default_factory=Counter)
    # Why the file couldn't be read to its end.
    read_error: str | None = None


class _MessageRow(NamedTuple):
    """The positional parameters of `_INSERT_MESSAGE`. Named parameters would take 50 % longer."""

    session_id: int
    address_id: int
    external_id: str | None
    role: str
    kind: str
    text: str
    sender_id: str | None
    sender_name: str | None
    origin: str
    created_at: float

    @property
    def identity(self) -> object:
        """The value that identifies a message in its session: its external id or its columns."""
        if self.external_id is not None:
            return self.external_id
        return (self.created_at, self.role, self.sender_name, self.text)


class Archive:
    """Imports conversations into state.db, and exports them with all other personal data."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch_numbers = count(1)

    async def import_records(
        self, records: Iterable[TransferRecord | SkippedRecord], progress: Callable[[int], None]
    ) -> ImportReport:
        """Store messages in short transactions and return a report.

        `progress` is called with the number of records processed. If `records` raises HistoryError,
        the import ends and the report contains the error as `read_error`. Each transaction stores
        its messages in order of time, after the existing messages of their session. Raises
        StoreError if another program keeps the database's log from being truncated.
        """
        report = ImportReport()
        transfer_records = _filter_records(records, report, progress)
        batch = _read_batch(transfer_records)
        while batch:
            await self._wait_for_log_space()
            writing, is_stored = self._begin_writing(batch)
            # Read the next records while the commit writes to the disk. Earlier, reading and
            # inserting would compete for the interpreter.
            await is_stored.wait()
            next_batch = _read_batch(transfer_records)
            new_counts = await writing
            report.session_ids.update(new_counts)
            report.imported_count += new_counts.total()
            report.known_count += len(batch) - new_counts.total()
            if next(self._batch_numbers) % MERGE_INTERVAL == 0:
                await self._merge_index()
            batch = next_batch
        progress(report.line_count)
        return report

    def _begin_writing(
        self, batch: Sequence[TransferRecord]
    ) -> tuple[asyncio.Task[Counter[int]], asyncio.Event]:
        """Start a task that stores a batch and returns the number of new messages per session id.

        The event is set when only the commit remains, or when the task fails.
        """
        loop = asyncio.get_running_loop()
        is_stored = asyncio.Event()

        def store(connection: Connection) -> Counter[int]:
            new_counts = _store_batch(connection, batch)
            loop.call_soon_threadsafe(is_stored.set)
            return new_counts

        writing = asyncio.create_task(self._database.write_indexed(store))
        writing.add_done_callback(lambda _: is_stored.set())
        return writing, is_stored

    async def _merge_index(self) -> None:
        """Merge segments of the text index in small steps, until there is nothing to merge."""
        step = partial(merge_step, pages=MERGE_PAGES)
        while await self._database.write(step):
            await self._wait_for_log_space()

    async def _wait_for_log_space(self) -> None:
        """Wait until the write-ahead log can be truncated. Raises StoreError after a timeout."""
        if not await self._database.wait_for_log_space(LOG_SPACE_WAIT_S):
            raise StoreError("import_log_large", path=self._database.name)

    async def export(
        self, scopes: frozenset[Scope], on_unreadable: Callable[[], None] = lambda: None
    ) -> AsyncIterator[TransferRecord]:
        """Yield the readable messages of all visible sessions, starting with the oldest session.

        `on_unreadable` is called for each message that can't be read because state.db is damaged.
        """
        values: dict[str, object] = {
            "scopes": scope_parameter(scopes),
            "limit": PAGE_MESSAGES,
            "session": 0,
            "message": 0,
            "store": await self._database.write(_ensure_store_name),
        }
        while True:
            try:
                page = await self._database.fetch_all(_SELECT_PAGE, values)
            except StoreDamagedError:
                values |= await self._go_around_damage(values, on_unreadable)
                continue
            if not page:
                return
            for row in page:
                yield _read_record(row)
            values |= {"session": page[-1]["session_id"], "message": page[-1]["id"]}

    async def _go_around_damage(
        self, values: Mapping[str, object], on_unreadable: Callable[[], None]
    ) -> Mapping[str, object]:
        """Return the parameters of the page that follows an unreadable page.

        The messages of the unreadable page are read again, one at a time, and those that can't be
        read are skipped. Raises StoreError if no readable message follows.
        """
        if values["limit"] != 1:
            return {"limit": 1}
        row = await self._database.fetch_one(_SELECT_NEXT_ID, dict(values))
        on_unreadable()
        if row is None:
            raise StoreError("export_unreadable")
        return {"session": row["session_id"], "message": row["id"], "limit": PAGE_MESSAGES}

    def export_personal_data(
        self, scopes: frozenset[Scope], accounts: Sequence[Account]
    ) -> AsyncIterator[Mapping[str, object]]:
        """Export all personal data except messages. See `personal_data.export_personal_data`."""
        return personal_data.export_personal_data(self._database, scopes, accounts)


def _filter_records(
    records: Iterable[TransferRecord | SkippedRecord],
    report: ImportReport,
    progress: Callable[[int], None],
) -> Iterator[TransferRecord]:
    """Yield the messages among `records`, and add skipped records and read errors to `report`."""
    try:
        for record in records:
            report.line_count += 1
            if isinstance(record, TransferRecord):
                yield record
            elif record.line is None:
                report.skipped_counts[record.reason] += 1
            else:
                report.refused_count += 1
                if report.refused_count <= MAX_REASONS:
                    reason = word_clause("import_line", number=record.line, reason=record.reason)
                    report.reasons.append(reason)
            if report.line_count % PROGRESS_RECORDS == 0:
                progress(report.line_count)
    except HistoryError as error:
        report.read_error = str(error)


def _read_batch(records: Iterator[TransferRecord]) -> list[TransferRecord]:
    """Return the records for the next transaction, or an empty list at the end."""
    batch: list[TransferRecord] = []
    chars = 0
    for record in records:
        batch.append(record)
        chars += len(record.text)
        if len(batch) == BATCH_RECORDS or chars > BATCH_CHARS:
            break
    return batch


def _store_batch(connection: Connection, batch: Sequence[TransferRecord]) -> Counter[int]:
    """Store a batch, and return the number of new messages per session id, including zeros."""
    records_by_conversation: dict[tuple[Scope, str], list[TransferRecord]] = {}
    for conversation, group in groupby(batch, attrgetter("conversation")):
        key = (conversation.scope, conversation.name)
        records_by_conversation.setdefault(key, []).extend(group)

    new_counts = Counter[int]()
    with connection.index.defer(connection):
        for records in records_by_conversation.values():
            session_id, new_count = _store_conversation(connection, records)
            new_counts[session_id] = new_count
    return new_counts


def _store_conversation(
    connection: Connection, unsorted: Sequence[TransferRecord]
) -> tuple[int, int]:
    """Store the records of one conversation that aren't stored yet.

    Returns the session's id and the number of new messages.
    """
    records = sorted(unsorted, key=attrgetter("at"))
    conversation = records[0].conversation
    known_session = _find_session(connection, conversation.scope, conversation.name)
    session = known_session or _create_session(connection, records)
    address = session.address
    if session.external_id is not None:
        # The database requires unique message ids per address, but imported ids are unique only
        # within their session. So each imported session gets an address of its own.
        address = Address(platform="import", chat_id=str(session.id))
    address_id = rows.ensure_address(connection, address)

    values = {"session": session.id, "first": records[0].at, "last": records[-1].at}
    new_rows: dict[object, _MessageRow] = {}
    for record in records:
        row = _build_row(record, session.id, address_id)
        new_rows.setdefault(row.identity, row)
    if known_session is not None:
        # Stored messages without an id are recognised by their columns, in the order of `identity`.
        # For messages with an id, the insert statement ignores duplicates.
        for identity in connection.execute(_SELECT_WITHOUT_ID, values):
            new_rows.pop(tuple(identity), None)

    # Insert runs of messages of one kind together, to count the new messages by kind.
    counts = Counter[str]()
    for kind, group in groupby(new_rows.values(), attrgetter("kind")):
        counts[kind] += connection.executemany(_INSERT_MESSAGE, group).rowcount
    if counts.total():
        connection.execute(_UPDATE_SESSION, {**values, "messages": counts["chat"]})
    return session.id, counts.total()


def _build_row(record: TransferRecord, session_id: int, address_id: int) -> _MessageRow:
    """Build the row of a record. Only messages of the importing person get the origin `typed`."""
    is_own = (
        record.role == "user"
        and record.sender is not None
        and record.sender.casefold() in record.conversation.own_names
    )
    return _MessageRow(
        session_id,
        address_id,
        rows.clean_optional(record.id) or None,
        record.role,
        record.kind,
        rows.clean(record.text),
        None if record.sender is None else "",  # the sender's platform id is unknown
        rows.clean_optional(record.sender),
        "typed" if is_own else "imported",
        rows.to_timestamp(record.at),
    )


def _find_session(connection: Connection, scope: Scope, name: str) -> Session | None:
    """Return the session with this name, or None.

    It may be an imported session, or one that was exported from this state.db. An exported session
    is named after the store and the session's id, e.g. "mneme-4f1d0c2a9be3-17".
    """
    store_name, _, number = name.rpartition("-")
    own_store_name = rows.get_meta(connection, _STORE_NAME_KEY)
    own_id = None
    if own_store_name is not None and store_name == own_store_name and number.isdecimal():
        own_id = rows.int64_or_zero(int(number[:20]))  # no id has 20 digits
    values = {"scope": scope, "name": name, "own_id": own_id}
    row = connection.execute(_SELECT_BY_NAME, values).fetchone()
    return None if row is None else rows.read_session(row)


def _create_session(connection: Connection, records: Sequence[TransferRecord]) -> Session:
    """Create an ended session for the records of a new conversation."""
    conversation = records[0].conversation
    last_at = records[-1].at
    parent = None
    if conversation.parent:
        parent = _find_session(connection, conversation.scope, conversation.parent)
    session = Session(
        address=conversation.address,
        scope=conversation.scope,
        external_id=conversation.name,
        parent_id=None if parent is None else parent.id,
        title=_choose_title(records),
        started_at=records[0].at,
        last_at=last_at,
        end=SessionEnd(at=last_at, reason="import"),
    )
    return sessions.create_session(connection, session)


def _choose_title(records: Sequence[TransferRecord]) -> str:
    """Return the conversation's title in the file, or else the beginning of its first user message.

    If it has neither, return its name.
    """
    for record in records:
        if record.conversation.title:
            return record.conversation.title
    text = records[0].conversation.name
    for record in records:
        if record.role == "user":
            text = record.text
            break
    # The text may be very long, so only its beginning is passed to `shorten`.
    return shorten(text[: MAX_TITLE_CHARS * 2], TITLE_FROM_TEXT_CHARS)


def _ensure_store_name(connection: Connection) -> str:
    """Return the name of this state.db in exports, e.g. "mneme-4f1d0c2a9be3".

    The first export creates the name.
    """
    name = rows.get_meta(connection, _STORE_NAME_KEY)
    if name is None:
        name = f"mneme-{secrets.token_hex(6)}"
        rows.set_meta(connection, _STORE_NAME_KEY, name)
    return name


def _read_record(row: Row) -> TransferRecord:
    """Convert a row of `_SELECT_PAGE` to a record."""
    conversation = TransferConversation(
        **rows.pick_columns(row, "name", "parent", "title"),
        address=rows.read_address(row),
        scope=Scope(key=row["scope_key"]),
    )
    return TransferRecord(
        **rows.pick_columns(row, "role", "text", "kind"),
        conversation=conversation,
        sender=row["sender_name"] or None,
        at=rows.to_datetime(row["created_at"]),
        id=row["external_id"],
    )
