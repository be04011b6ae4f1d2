"""Import and export of history (the formats are in `core/transfer`), and whatever else is stored about a person.

An import that is repeated or was cut off changes nothing twice. Tool calls, their results and commands are no history.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from core.errors import HistoryError, StoreError
from core.store import erasure, rows, sessions
from core.store.erasure import COPIES, IMPORTED, IN_ROOMS, INBOX, LANES, SENDING, SESSIONS, ErasureList, ErasureRequest
from core.store.facts import NAMES
from core.store.rows import Connection, Row
from core.store.sqlite import indexing
from core.store.sqlite.database import ROOM_WAIT_S, Database
from core.store.sqlite.indexing import indexed_at_once, write_text
from core.store.sqlite.schema import in_list, is_within, list_value, sent_words
from core.text.normalize import shortened
from core.types import Account, Address, MessageKind, Role, Scope, Session

BATCH_LINES, BATCH_CHARS = 2_000, 200_000
"""Of one transaction, which takes some 30 ms and puts 2 MB into the log with messages of usual length; more of short
lines, because each transaction is a part of the index that has to be merged."""
HELD_UP = "Another program has been reading {path} for over a minute, so its log would grow. Close it and import again."
PROGRESS_LINES = 1000
REASONS = 100  # refused lines that are reported with their reason
PAGE_MESSAGES = 500
TITLE_CHARS, TITLE_FROM_TEXT_CHARS = 200, 60
_STORE_NAME = "archive_name"
"""Key of `state_meta`: the name of this state.db in exports, by which its own sessions are recognised later."""
_PAGE = f"""
SELECT messages.id, session_id, role, kind, text, sender_name, messages.external_id, created_at, title,
    platform, chat_id, thread_id, scopes.key AS scope_key,
    COALESCE(sessions.external_id, :store || '-' || sessions.id) AS name,
    (SELECT COALESCE(external_id, :store || '-' || id) FROM sessions AS one WHERE one.id = sessions.parent_id) AS parent
FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
WHERE (messages.session_id, messages.id) > (:session, :message) AND {rows.visible()}
AND {sessions.SAID}
ORDER BY messages.session_id, messages.id LIMIT :limit
"""
_NAMED = f"""
{rows.SESSIONS} WHERE scopes.key = :scope
AND (sessions.external_id = :name OR sessions.id = :own AND sessions.external_id IS NULL)
"""
_ADD = """
INSERT INTO messages (session_id, address_id, external_id, role, kind, text, sender_id, sender_name, origin, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (address_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
"""
_WITHOUT_ID = """
SELECT created_at, role, sender_name, text FROM messages
WHERE session_id = :session AND external_id IS NULL AND created_at BETWEEN :first AND :last
"""
_COUNT = """
UPDATE sessions SET messages = messages + :messages,
    started_at = MIN(started_at, :first), last_at = MAX(last_at, :last),
    ended_at = CASE WHEN end_reason = 'import' THEN MAX(ended_at, :last) ELSE ended_at END
WHERE id = :session
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session of another system. `name` and `parent` (which it continues) are the names it has there. `own`: names,
    in lower case, of senders that the importing person is; no file can say so."""

    name: str
    address: Address
    scope: Scope
    parent: str | None = None
    title: str | None = None
    own: frozenset[str] = frozenset()


class TransferRecord(NamedTuple):
    """One message of another system. `id` is the name it has there. `kind`: "quote" repeats what recall found and is
    not indexed. Made by the hundred thousand, in a third of the time of a frozen dataclass."""

    conversation: Conversation
    role: Role
    text: str
    at: datetime
    sender: str | None = None
    id: str | None = None
    kind: MessageKind = "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something that is not imported: line `line`, refused for `reason`; without `line`, one of what `reason` names in
    the plural, to be counted."""

    reason: str
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What became of the records of an import. `known`: stored before; `sessions`: ids; `reasons`: of the first
    `refused` lines, as ``line 7: reason``; `skipped`: left out on purpose; `broken`: why the file could not be read to
    its end."""

    lines: int = 0
    taken: int = 0
    known: int = 0
    refused: int = 0
    sessions: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    broken: str | None = None


_SEEN_NOW = is_within("sessions.sight", "scopes")
_PROMPT = f"CASE WHEN {_SEEN_NOW} THEN system_prompt END AS system_prompt"
"""Not one that was written when more could be seen: it has notes of an account that was unlinked since."""
_FOUND_BEFORE = f"(role = 'tool' AND kind = 'quote' AND NOT {_SEEN_NOW})"
"""What tools have found when more could be seen."""


def _mine(column: str) -> str:
    return in_list(column, "own")


def _in_scope(table: str, also: str = "", more: str = "") -> str:
    """All columns of a table where its scope is the person's, or `also` holds."""
    return f"""
        SELECT {table}.*, scopes.key AS scope{more} FROM {table} JOIN scopes ON scopes.id = {table}.scope_id
        WHERE {rows.visible(f"{table}.scope_id")} {f"OR {also}" if also else ""}
    """


_BESIDE = f"""
    SELECT messages.id, messages.session_id, scopes.key AS scope, role, kind, text, blocks, tool_name, sender_id,
        sender_name, created_at
    FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
    CROSS JOIN messages ON messages.session_id = sessions.id
    WHERE {rows.visible()} AND NOT ({sessions.SAID}) AND NOT {_FOUND_BEFORE}
        AND (messages.text <> '' OR messages.blocks IS NOT NULL)
"""
"""Messages that are not in the conversations of an export."""
_ACCOUNT = "platform || ':' || user_id"
KINDS: Mapping[str, str] = {
    "account": f"SELECT platform, user_id, name, admitted_at FROM accounts WHERE {_mine(_ACCOUNT)}",
    "session": f"""
        SELECT sessions.id, scopes.key AS scope, addresses.platform, addresses.chat_id, addresses.thread_id, title,
            model, {_PROMPT}, started_at, last_at, ended_at, end_reason, messages,
            NULLIF(is_delegated, 0) AS is_delegated
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        JOIN addresses ON addresses.id = sessions.address_id WHERE {rows.visible()}
    """,
    "command, notice or tool": f"{_BESIDE} AND messages.kind <> 'undone'",
    "undone": f"{_BESIDE} AND messages.kind = 'undone'",
    "said in a room": f"""
        SELECT messages.id, messages.session_id, scopes.key AS scope, kind, text, sender_id, sender_name, created_at
        {IN_ROOMS} AND text <> ''
    """,
    "quoted in a room": f"SELECT messages.id, session_id, scopes.key AS scope, quoted {erasure.QUOTED_IN_ROOMS}",
    "what a message answers": f"""
        SELECT messages.id, messages.session_id, scopes.key AS scope, quoted
        FROM sessions JOIN scopes ON scopes.id = sessions.scope_id
        CROSS JOIN messages ON messages.session_id = sessions.id WHERE {rows.visible()} AND quoted NOT NULL
    """,
    "fact": _in_scope("facts", _mine("account"), f", {NAMES}"),
    "change of a fact": _in_scope("fact_changes", _mine("account")),
    "change of a note": _in_scope("notes", _mine("account")),
    "change of a note put aside": _in_scope("pending_notes", _mine("account")),
    "use of a skill": _in_scope("skills"),
    "job": _in_scope("jobs", _mine("account")),
    "waiting": f"""
        SELECT inbound, received_at FROM inbox
        WHERE address_id IN (SELECT address_id FROM sessions WHERE {rows.visible()})
        OR {_mine("json_extract(inbound, '$.address.platform') || ':' || json_extract(inbound, '$.sender.id')")}
    """,
    "update that could not be read": f"""
        SELECT platform, raw, error, failed_at FROM raw_updates
        WHERE failed_at NOT NULL AND {_mine(SENDING)}
    """,
    "to be delivered": f"""
        SELECT lane, kind, payload, created_at FROM outbox WHERE payload NOT NULL AND lane IN ({LANES})
    """,
    "model call": _in_scope("calls", _mine("account")),
}
"""What is stored about a person, by its name in an export."""

_TEXTS = "SELECT NULL, NULL, NULL,"
_QUOTED = "inbound ->> '$.quoted.text', inbound ->> '$.quoted.name'"
_SENT = sent_words(of_memory=False)
SCANNED: Sequence[tuple[str, str]] = (
    ("message", f"{_TEXTS} text, blocks, tools, {_SENT} FROM messages WHERE session_id IN ({SESSIONS})"),
    ("thing", f"{_TEXTS} system_prompt FROM sessions WHERE {rows.visible()}"),
    ("thing", f"{_TEXTS} shown FROM entities WHERE {rows.visible('entities.scope_id')}"),
    ("recollection", f"{_TEXTS} {sent_words(of_memory=True)} FROM messages WHERE session_id IN ({SESSIONS})"),
    ("thing", f"{_TEXTS} inbound ->> '$.text', inbound ->> '$.command.arguments', {_QUOTED} FROM inbox WHERE {INBOX}"),
    *(({"facts": "fact", "jobs": "reminder"}.get(kind, "thing"), COPIES[kind][0]) for kind in COPIES),
    ("name", f"{_TEXTS} sender_name FROM messages WHERE session_id IN ({SESSIONS}) AND NOT ({IMPORTED}) GROUP BY 4"),
    ("name", f"{_TEXTS} name FROM accounts WHERE :owner OR {_mine(_ACCOUNT)}"),
    ("message", f"{_TEXTS} text {IN_ROOMS} AND :is_alone"),
)
"""All words that somebody may see, each behind three other columns, and what a person calls what has them."""
_UNSAID = {"scope_id", "address_id", "folded", "reply_id"}
"""Digests, and columns that repeat others."""
_JSON = {"blocks", "files", "inbound", "names", "operations", "payload", "quoted"}


class Archive:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._batches = count(1)

    async def import_records(
        self, records: Iterable[TransferRecord | Skipped], progress: Callable[[int], None]
    ) -> ImportReport:
        """Stores messages in short transactions; `progress` is called with the number of records done. A message is
        known by (session, id), without an id by (session, at, role, sender, text). A HistoryError of the records ends
        them and is reported in `broken`. The messages of one transaction are put in the order of their times; what is
        older than the messages that a session has stands behind them."""
        report, loop = ImportReport(), asyncio.get_running_loop()
        lines = _counted(records, report, progress)
        following = _batch(lines)
        while batch := following:
            await self._wait_for_room()
            # The next lines are read while these go to the disk: before that, both would fight for the interpreter.
            stored = asyncio.Event()
            store = partial(_store, lines=batch, done=partial(loop.call_soon_threadsafe, stored.set))
            writing = asyncio.create_task(write_text(self._database, store))
            writing.add_done_callback(lambda _, stored=stored: stored.set())  # type: ignore[misc]  # where it failed
            await stored.wait()
            following = _batch(lines)
            taken = await writing
            report.sessions.update(taken)
            report.taken += taken.total()
            report.known += len(batch) - taken.total()
            # At 64 segments FTS5 would merge them all in one long step.
            if next(self._batches) % 32 == 0:
                while await self._database.write(partial(indexing.merge, pages=200)):
                    await self._wait_for_room()
        progress(report.lines)
        return report

    async def _wait_for_room(self) -> None:
        if not await self._database.has_room(ROOM_WAIT_S):
            raise StoreError(HELD_UP.format(path=self._database.path))

    async def export(self, scopes: frozenset[Scope]) -> AsyncIterator[TransferRecord]:
        """Every message of these scopes, oldest session first."""
        values = {"scopes": rows.scope_parameter(scopes), "limit": PAGE_MESSAGES, "session": 0, "message": 0}
        values["store"] = await self._database.write(_store_name)
        while page := await self._database.fetch_all(_PAGE, values):
            for row in page:
                yield _record(row)
            values |= {"session": page[-1]["session_id"], "message": page[-1]["id"]}

    async def held(self, scopes: frozenset[Scope], accounts: Sequence[Account]) -> AsyncIterator[Mapping[str, object]]:
        """Everything of a person beside what `export` gives, as ``{"kind": ..., ...}``: times in ISO 8601, nothing that
        runs out by itself (codes, buttons), of rooms only what this person said and made."""
        values = {
            "scopes": rows.scope_parameter(scopes),
            "own": list_value(rows.clean(account.key) for account in accounts if "\0" not in account.key),
            "limit": PAGE_MESSAGES,
        }
        for kind, statement in KINDS.items():
            paged = f"{statement} ORDER BY 1 LIMIT :limit OFFSET :offset"
            for offset in count(0, PAGE_MESSAGES):
                page = await self._database.fetch_all(paged, {**values, "offset": offset})
                for row in page:
                    yield {"kind": kind, **_plain(dict(row))}
                if len(page) < PAGE_MESSAGES:
                    break


def scan(connection: Connection, request: ErasureRequest, has_words: Callable[..., bool]) -> Counter[str]:
    """What the asker may see and has the words, counted by the names of `SCANNED`."""
    values, found = ErasureList(request=request).values, Counter[str]()
    values |= {"limited": False, "is_alone": not request.scope.is_room}
    for name, statement in SCANNED:
        found[name] += sum(has_words(*row[3:]) for row in connection.execute(statement, values))
    return +found


def _counted(
    records: Iterable[TransferRecord | Skipped], report: ImportReport, progress: Callable[[int], None]
) -> Iterator[TransferRecord]:
    """The records that are messages; the others and the end of a broken file go into the report."""
    try:
        for record in records:
            report.lines += 1
            if isinstance(record, TransferRecord):
                yield record
            elif record.line is None:
                report.skipped[record.reason] += 1
            else:
                report.refused += 1
                if report.refused <= REASONS:
                    report.reasons.append(f"line {record.line}: {record.reason}")
            if report.lines % PROGRESS_LINES == 0:
                progress(report.lines)
    except HistoryError as error:
        report.broken = str(error)


def _batch(lines: Iterator[TransferRecord]) -> list[TransferRecord]:
    batch, chars = list[TransferRecord](), 0
    for line in lines:
        batch.append(line)
        chars += len(line.text)
        if len(batch) == BATCH_LINES or chars > BATCH_CHARS:
            break
    return batch


def _store_name(connection: Connection) -> str:
    """The name of this state.db in exports, made at the first use: ``mneme-4f1d0c2a9be3``."""
    name = rows.meta(connection, _STORE_NAME)
    if name is None:
        name = f"mneme-{secrets.token_hex(6)}"
        rows.set_meta(connection, _STORE_NAME, name)
    return name


def _record(row: Row) -> TransferRecord:
    conversation = Conversation(
        **rows.columns(row, "name", "parent", "title"), address=rows.address_of(row), scope=Scope(key=row["scope_key"])
    )
    return TransferRecord(
        **rows.columns(row, "role", "text", "kind"),
        conversation=conversation,
        sender=row["sender_name"] or None,
        at=rows.moment(row["created_at"]),
        id=row["external_id"],
    )


def _store(connection: Connection, lines: Sequence[TransferRecord], done: Callable[[], object]) -> Counter[int]:
    """The number of lines taken, by session, also where it is 0. `done` is called when only the commit is left."""
    by_session: dict[tuple[Scope, str], list[TransferRecord]] = {}
    for conversation, group in groupby(lines, attrgetter("conversation")):
        by_session.setdefault((conversation.scope, conversation.name), []).extend(group)
    with indexed_at_once(connection):
        taken = Counter(dict(_store_session(connection, session) for session in by_session.values()))
    done()
    return taken


def _store_session(connection: Connection, unsorted: Sequence[TransferRecord]) -> tuple[int, int]:
    lines = sorted(unsorted, key=attrgetter("at"))
    found = _find(connection, lines[0].conversation.scope, lines[0].conversation.name)
    session = found or _create(connection, lines)
    address = session.address
    if session.external_id is not None:
        # Ids of imported messages are unique in their session only, so they have an address of their own there.
        address = Address(platform="import", chat_id=str(session.id))
    address_id = rows.ensure_address(connection, address)
    values = {"session": session.id, "address": address_id, "first": lines[0].at, "last": lines[-1].at}
    taken: dict[object, tuple[object, ...]] = {}
    for line in lines:
        row = _row(line, session.id, address_id)
        taken.setdefault(_key(row), row)
    if found:
        for key in connection.execute(_WITHOUT_ID, values):
            taken.pop(tuple(key), None)
    added = Counter[object]()
    for kind, group in groupby(taken.values(), itemgetter(4)):
        added[kind] += connection.executemany(_ADD, group).rowcount
    if added.total():
        connection.execute(_COUNT, {**values, "messages": added["chat"]})
    return session.id, added.total()


def _row(line: TransferRecord, session_id: int, address_id: int) -> tuple[object, ...]:
    """What `_ADD` binds by place, in two thirds of the time of names."""
    is_own = line.role == "user" and line.sender is not None and line.sender.casefold() in line.conversation.own
    return (
        session_id,
        address_id,
        rows.maybe_clean(line.id) or None,
        line.role,
        line.kind,
        rows.clean(line.text),
        None if line.sender is None else "",
        rows.maybe_clean(line.sender),
        "typed" if is_own else "imported",
        rows.timestamp(line.at),
    )


def _key(row: tuple[object, ...]) -> object:
    """By what a message is known in its session: its id, else as `_WITHOUT_ID` gives it."""
    return row[2] or (row[9], row[3], row[7], row[5])


def _find(connection: Connection, scope: Scope, name: str) -> Session | None:
    """The session of this name, of another system or as exported from here."""
    store, _, number = name.rpartition("-")
    is_own = store and store == rows.meta(connection, _STORE_NAME) and number.isdecimal()
    values = {"scope": scope, "name": name, "own": rows.bounded(int(number[:20])) if is_own else None}
    row = connection.execute(_NAMED, values).fetchone()
    return None if row is None else rows.session_of(row)


def _create(connection: Connection, lines: Sequence[TransferRecord]) -> Session:
    one, last_at = lines[0].conversation, lines[-1].at
    parent = _find(connection, one.scope, one.parent) if one.parent else None
    session = Session(
        address=one.address,
        scope=one.scope,
        external_id=one.name,
        parent_id=parent.id if parent else None,
        title=_title(lines),
        started_at=lines[0].at,
        last_at=last_at,
        ended_at=last_at,
        end_reason="import",
    )
    return sessions.create(connection, session)


def _title(lines: Sequence[TransferRecord]) -> str:
    """The given title, else the beginning of what a person said first, else the session's name."""
    if title := next((line.conversation.title for line in lines if line.conversation.title), None):
        return title
    text = next((line.text for line in lines if line.role == "user"), lines[0].conversation.name)
    return shortened(text[: TITLE_CHARS * 2], TITLE_FROM_TEXT_CHARS)


def _plain(row: Mapping[str, Any]) -> dict[str, object]:
    """A row without empty and repeating columns; its own column `kind` becomes `sort`."""
    plain: dict[str, object] = {}
    for name, value in row.items():
        if value is None or value == "" or name in _UNSAID:
            continue
        key = "sort" if name == "kind" else name
        if isinstance(value, float) and (name == "at" or name.endswith("_at") or name.startswith("valid_")):
            plain[key] = rows.moment(value).isoformat()
        else:
            plain[key] = json.loads(value) if name in _JSON else value
    return plain
