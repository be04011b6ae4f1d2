"""Import and export of conversations. The file formats are in `core/transfer`.

An import that is repeated, or that was interrupted, stores nothing twice. Tool calls, their results
and commands aren't part of an export.
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

from core.errors import HistoryError, StoreError
from core.store import messages, personal_data, rows, sessions
from core.store.rows import Connection, Row
from core.store.sqlite import indexing
from core.store.sqlite.database import LOG_SPACE_WAIT_S, Database
from core.store.sqlite.indexing import defer_indexing, write_indexed_text
from core.store.visibility import scope_parameter, visible
from core.text.normalize import shorten
from core.types import Account, Address, MessageKind, Role, Scope, Session, SessionEnd

BATCH_RECORDS = 2_000
BATCH_CHARS = 200_000
"""The size of one transaction.

With messages of usual length it takes some 30 ms and adds 2 MB to the write-ahead log. Short
messages make larger batches, because each transaction is a segment of the index that must be
merged.
"""
MERGE_INTERVAL = 32
"""After so many batches the index is merged. At 64 segments FTS5 would merge all of them in one
long step."""
MERGE_PAGES = 200
LOG_SPACE_ERROR = (
    "Another program has been reading {path} for over a minute, so its log would grow. "
    "Close it and import again."
)
PROGRESS_RECORDS = 1000
MAX_REASONS = 100
"""How many refused lines are reported with their reason."""
PAGE_MESSAGES = 500
MAX_TITLE_CHARS = 200
TITLE_FROM_TEXT_CHARS = 60
_STORE_NAME_KEY = "archive_name"
"""Key of `state_meta`: the name of this state.db in exports. Its own sessions are recognised by it
when they are imported again."""

_SELECT_PAGE = f"""
SELECT messages.id, session_id, role, kind, text, sender_name, messages.external_id, created_at,
    title, platform, chat_id, thread_id, scopes.key AS scope_key,
    COALESCE(sessions.external_id, :store || '-' || sessions.id) AS name,
    (
        SELECT COALESCE(external_id, :store || '-' || id) FROM sessions AS one
        WHERE one.id = sessions.parent_id
    ) AS parent
FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
WHERE (messages.session_id, messages.id) > (:session, :message) AND {visible()}
    AND {messages.IS_READABLE}
ORDER BY messages.session_id, messages.id LIMIT :limit
"""
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
UPDATE sessions SET messages = messages + :messages,
    started_at = MIN(started_at, :first), last_at = MAX(last_at, :last),
    ended_at = CASE WHEN end_reason = 'import' THEN MAX(ended_at, :last) ELSE ended_at END
WHERE id = :session
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferConversation:
    """A session of another system."""

    # Its name there.
    name: str
    address: Address
    scope: Scope
    # The name of the session that it continues.
    parent: str | None = None
    title: str | None = None
    # Lower-case sender names that belong to the importing person. Files can't say so.
    own_names: frozenset[str] = frozenset()


class TransferRecord(NamedTuple):
    """One message of another system.

    An import makes hundreds of thousands of records. A tuple takes a third of the time of a frozen
    dataclass.
    """

    conversation: TransferConversation
    role: Role
    text: str
    at: datetime
    sender: str | None = None
    # Its id in the other system.
    id: str | None = None
    # A "quote" repeats what recall found, and isn't indexed.
    kind: MessageKind = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """A record that isn't imported."""

    # Why the line is refused. Without a line: what kind of thing this is, in the plural.
    reason: str
    # Line number. None: the record is only counted.
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What became of the records of an import."""

    line_count: int = 0
    imported_count: int = 0
    # Records that were stored before.
    known_count: int = 0
    refused_count: int = 0
    session_ids: set[int] = field(default_factory=set)
    # Of the first refused lines, such as ``line 7: reason``.
    reasons: list[str] = field(default_factory=list)
    # How many records were left out on purpose, by kind.
    skipped_counts: Counter[str] = field(default_factory=Counter)
    # Why the file couldn't be read to its end.
    read_error: str | None = None


class _MessageRow(NamedTuple):
    """The parameters of `_INSERT_MESSAGE`, by position: names would take half as long again."""

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
        """What makes a message unique in its session: its id, or time, role, sender and text."""
        if self.external_id is not None:
            return self.external_id
        return (self.created_at, self.role, self.sender_name, self.text)


class Archive:
    """Imports conversations into state.db, and exports them and all other personal data."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch_numbers = count(1)

    async def import_records(
        self, records: Iterable[TransferRecord | SkippedRecord], progress: Callable[[int], None]
    ) -> ImportReport:
        """Store messages in short transactions.

        `progress` is called with the number of records done. A HistoryError of `records` ends the
        import and is reported as `read_error`. The messages of one transaction are ordered by time;
        they come after the messages that their session has already.
        """
        report = ImportReport()
        transfer_records = _filter_records(records, report, progress)
        batch = _take_batch(transfer_records)
        while batch:
            await self._wait_for_log_space()
            writing, is_stored = self._begin_writing(batch)
            # The next records are read while these go to the disk. Earlier, both would compete for
            # the interpreter.
            await is_stored.wait()
            next_batch = _take_batch(transfer_records)
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
        """Store a batch in a task. The event is set when only the commit is left, or on failure."""
        loop = asyncio.get_running_loop()
        is_stored = asyncio.Event()

        def store(connection: Connection) -> Counter[int]:
            new_counts = _store_batch(connection, batch)
            loop.call_soon_threadsafe(is_stored.set)
            return new_counts

        writing = asyncio.create_task(write_indexed_text(self._database, store))
        writing.add_done_callback(lambda _: is_stored.set())
        return writing, is_stored

    async def _merge_index(self) -> None:
        """Merge segments of the text index, in small steps."""
        step = partial(indexing.merge_step, pages=MERGE_PAGES)
        while await self._database.write(step):
            await self._wait_for_log_space()

    async def _wait_for_log_space(self) -> None:
        if not await self._database.wait_for_log_space(LOG_SPACE_WAIT_S):
            raise StoreError(LOG_SPACE_ERROR.format(path=self._database.path))

    async def export(self, scopes: frozenset[Scope]) -> AsyncIterator[TransferRecord]:
        """Yield every readable message of visible sessions, the oldest session first."""
        values = {
            "scopes": scope_parameter(scopes),
            "limit": PAGE_MESSAGES,
            "session": 0,
            "message": 0,
            "store": await self._database.write(_ensure_store_name),
        }
        while page := await self._database.fetch_all(_SELECT_PAGE, values):
            for row in page:
                yield _read_record(row)
            values |= {"session": page[-1]["session_id"], "message": page[-1]["id"]}

    def export_personal_data(
        self, scopes: frozenset[Scope], accounts: Sequence[Account]
    ) -> AsyncIterator[Mapping[str, object]]:
        """See `personal_data.export_personal_data`."""
        return personal_data.export_personal_data(self._database, scopes, accounts)


def _filter_records(
    records: Iterable[TransferRecord | SkippedRecord],
    report: ImportReport,
    progress: Callable[[int], None],
) -> Iterator[TransferRecord]:
    """Yield the messages; report skipped records, and the end of a broken file."""
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
                    report.reasons.append(f"line {record.line}: {record.reason}")
            if report.line_count % PROGRESS_RECORDS == 0:
                progress(report.line_count)
    except HistoryError as error:
        report.read_error = str(error)


def _take_batch(records: Iterator[TransferRecord]) -> list[TransferRecord]:
    """Take the records of one transaction; none at the end."""
    batch: list[TransferRecord] = []
    chars = 0
    for record in records:
        batch.append(record)
        chars += len(record.text)
        if len(batch) == BATCH_RECORDS or chars > BATCH_CHARS:
            break
    return batch


def _store_batch(connection: Connection, batch: Sequence[TransferRecord]) -> Counter[int]:
    """Store records, and return the number of new messages by session id, zeros included."""
    by_conversation: dict[tuple[Scope, str], list[TransferRecord]] = {}
    for conversation, group in groupby(batch, attrgetter("conversation")):
        key = (conversation.scope, conversation.name)
        by_conversation.setdefault(key, []).extend(group)

    new_counts = Counter[int]()
    with defer_indexing(connection):
        for records in by_conversation.values():
            session_id, new_count = _store_conversation(connection, records)
            new_counts[session_id] = new_count
    return new_counts


def _store_conversation(
    connection: Connection, unsorted: Sequence[TransferRecord]
) -> tuple[int, int]:
    """Store records of one conversation; return its session id and the number of new messages."""
    records = sorted(unsorted, key=attrgetter("at"))
    conversation = records[0].conversation
    known_session = _find_session(connection, conversation.scope, conversation.name)
    session = known_session or _create_session(connection, records)
    address = session.address
    if session.external_id is not None:
        # Imported ids are unique only within their session, so each session has an address of its
        # own for them.
        address = Address(platform="import", chat_id=str(session.id))
    address_id = rows.ensure_address(connection, address)

    values = {"session": session.id, "first": records[0].at, "last": records[-1].at}
    new_rows: dict[object, _MessageRow] = {}
    for record in records:
        row = _build_row(record, session.id, address_id)
        new_rows.setdefault(row.identity, row)
    if known_session is not None:
        for identity in connection.execute(_SELECT_WITHOUT_ID, values):
            new_rows.pop(tuple(identity), None)

    counts = Counter[str]()
    for kind, group in groupby(new_rows.values(), attrgetter("kind")):
        counts[kind] += connection.executemany(_INSERT_MESSAGE, group).rowcount
    if counts.total():
        connection.execute(_UPDATE_SESSION, {**values, "messages": counts["chat"]})
    return session.id, counts.total()


def _build_row(record: TransferRecord, session_id: int, address_id: int) -> _MessageRow:
    """Build the row of a record. Its origin is `typed` only for the importing person."""
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
        None if record.sender is None else "",
        rows.clean_optional(record.sender),
        "typed" if is_own else "imported",
        rows.to_timestamp(record.at),
    )


def _find_session(connection: Connection, scope: Scope, name: str) -> Session | None:
    """Return the session with this name, imported before or exported from this state.db."""
    store_name, _, number = name.rpartition("-")
    own_id = None
    is_own = store_name and store_name == rows.get_meta(connection, _STORE_NAME_KEY)
    if is_own and number.isdecimal():
        own_id = rows.int64_or_zero(int(number[:20]))
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
    """Return the given title, or the beginning of the first question, or the session's name."""
    for record in records:
        if record.conversation.title:
            return record.conversation.title
    text = records[0].conversation.name
    for record in records:
        if record.role == "user":
            text = record.text
            break
    return shorten(text[: MAX_TITLE_CHARS * 2], TITLE_FROM_TEXT_CHARS)


def _ensure_store_name(connection: Connection) -> str:
    """Return the name of this state.db in exports, such as ``mneme-4f1d0c2a9be3``."""
    name = rows.get_meta(connection, _STORE_NAME_KEY)
    if name is None:
        name = f"mneme-{secrets.token_hex(6)}"
        rows.set_meta(connection, _STORE_NAME_KEY, name)
    return name


def _read_record(row: Row) -> TransferRecord:
    """Read a row of `_SELECT_PAGE`."""
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
