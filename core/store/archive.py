"""Import and export of history; the formats are in `core/transfer`.

An import that is repeated or was cut off changes nothing twice. Tool calls, their results and commands are not
exported."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, groupby

from core.errors import HistoryError, StoreError
from core.store import messages as message_rows
from core.store import rows
from core.store.engine import Connection, Row
from core.store.rows import scope_parameter, visible
from core.store.sessions import SAID
from core.store.sqlite import index_maintenance
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.store.sqlite.index_maintenance import indexed_at_once, reindexed_at_once, write_text
from core.types import Address, Message, Origin, Role, Scope, Sender, Session

BATCH_LINES, BATCH_CHARS = 500, 500_000
"""A transaction ends with the line that reaches one of these; it takes some 30 ms."""
BUFFER_LINES, BUFFER_CHARS = 2000, 8_000_000
"""How much waits in memory for the rest of its session."""
STEP_MESSAGES = 300
"""How many messages one transaction puts in order, moving at most twice as many: some 50 ms."""
MERGE_SEGMENTS, MERGE_PAGES = 32, 200
"""After so many new segments the indexes are merged in small steps: at 64 FTS5 would do it in one long one."""
PROGRESS_LINES = 1000
REASONS = 100  # refused lines that are reported with their reason
PAGE_MESSAGES = PAGE_SESSIONS = 500
TITLE_CHARS, TITLE_FROM_TEXT_CHARS = 200, 60
_STORE_NAME = "archive_name"
"""Key of `state_meta`: the name of this state.db in exports, by which its own sessions are recognised later."""
_QUOTE_ID = re.compile(r"(?P<store>mneme-[0-9a-f]{12})-quote-[0-9]{1,19}")
"""The exported id of an answer that repeats what recall found: it is not indexed when it is imported."""
_PAGE = f"""
SELECT {rows.MESSAGE_COLUMNS} FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
WHERE (messages.session_id, messages.id) > (:session, :message) AND {visible()}
AND (:only IS NULL OR messages.session_id = :only)
AND {SAID}
ORDER BY messages.session_id, messages.id LIMIT :limit
"""
_LEFT_OUT = f"""
SELECT COUNT(*) AS number FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE {visible()} AND (:only IS NULL OR messages.session_id = :only) AND NOT ({SAID})
AND (messages.text <> '' OR messages.blocks IS NOT NULL)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRecord:
    """One message of another system. `session`, `parent` (which it continues) and `id` are the names it has there.
    `origin`: "typed" where the importing person named the sender as themselves; no file can say so."""

    session: str
    role: Role
    text: str
    at: datetime
    address: Address
    scope: Scope
    parent: str | None = None
    title: str | None = None
    sender: str | None = None
    id: str | None = None
    origin: Origin = "imported"


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
    its end; `scopes`: whose the messages are, taken or known."""

    lines: int = 0
    taken: int = 0
    known: int = 0
    refused: int = 0
    sessions: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    broken: str | None = None
    scopes: Counter[Scope] = field(default_factory=Counter)

    def skip(self, record: Skipped) -> None:
        if record.line is None:
            self.skipped[record.reason] += 1
            return
        self.refused += 1
        if len(self.reasons) < REASONS:
            self.reasons.append(f"line {record.line}: {record.reason}")


@dataclass(frozen=True, slots=True)
class _Stored:
    session_id: int
    is_new: bool
    scope: Scope
    lines: int
    taken: int
    unnamed: Counter[bytes]


class Archive:
    """Import and export of history in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._unmerged = 0

    async def import_records(
        self, records: Iterable[TransferRecord | Skipped | None], progress: Callable[[int], None]
    ) -> ImportReport:
        """Stores messages in short transactions; `progress` is called with the number of records done.

        A message is known by (session, id), without an id the n-th equal (session, at, role, text) of the file is the
        n-th stored one. A HistoryError of the records ends them and is reported in `broken`. Sessions whose messages
        came out of order are put in order at the end.
        """
        report, unnamed, pieced = ImportReport(), dict[int, Counter[bytes]](), set[int]()
        waiting: dict[tuple[Scope, str], list[TransferRecord]] = {}
        buffered = chars = 0
        for record in _until_broken(records, report):
            report.lines += 1
            if isinstance(record, TransferRecord):
                waiting.setdefault((record.scope, record.session), []).append(record)
                buffered, chars = buffered + 1, chars + len(record.text)
            elif record is not None:
                report.skip(record)
            if report.lines % PROGRESS_LINES == 0:
                progress(report.lines)
            if buffered >= BUFFER_LINES or chars >= BUFFER_CHARS:
                pieced |= await self._store(waiting, report, unnamed)
                buffered = chars = 0
        pieced |= await self._store(waiting, report, unnamed)
        await self._put_in_order(sorted(pieced))
        progress(report.lines)
        return report

    async def export(self, scopes: frozenset[Scope], session_id: int | None = None) -> AsyncIterator[TransferRecord]:
        """Every message of these scopes (or of one session), oldest session first."""
        store = await self._database.write(_store_name)
        values = {"scopes": scope_parameter(scopes), "only": session_id, "limit": PAGE_MESSAGES}
        place = {"session": 0, "message": 0}
        while True:
            page = await self._database.read(partial(_page, store=store, values={**values, **place}))
            for message, record in page:
                place = {"session": message.session_id, "message": message.id}
                yield record
            if len(page) < PAGE_MESSAGES:
                return

    async def left_out(self, scopes: frozenset[Scope], session_id: int | None = None) -> int:
        """How many messages `export` leaves out, without those that were erased."""
        row = await self._database.fetch_one(_LEFT_OUT, {"scopes": scope_parameter(scopes), "only": session_id})
        return int(row["number"]) if row else 0

    async def _store(
        self,
        waiting: dict[tuple[Scope, str], list[TransferRecord]],
        report: ImportReport,
        unnamed: dict[int, Counter[bytes]],
    ) -> set[int]:
        """Stores and empties `waiting`; returns the sessions that were there before their part of it. `unnamed`: by
        id of such sessions, their stored messages without an id that the file has not had yet."""
        pieced = set()
        lines = chain.from_iterable(sorted(session, key=lambda line: line.at) for session in waiting.values())
        for batch in _batches(lines):
            pieces = [list(piece) for _, piece in groupby(batch, key=lambda line: (line.scope, line.session))]
            firsts = [piece[0] for piece in pieces]
            unnamed |= await self._database.read(partial(_unnamed, firsts=firsts, met=report.sessions))
            stored = await write_text(self._database, partial(_store_batch, pieces=pieces, unnamed=unnamed))
            for one in stored:
                report.sessions.add(one.session_id)
                if not one.is_new:
                    pieced.add(one.session_id)
                if one.session_id in unnamed:
                    unnamed[one.session_id] -= one.unnamed
                report.taken += one.taken
                report.known += one.lines - one.taken
                report.scopes[one.scope] += one.lines
            if any(one.taken for one in stored):
                await self._merge(1)
        waiting.clear()
        return pieced

    async def _merge(self, segments: int) -> None:
        self._unmerged += segments
        if self._unmerged < MERGE_SEGMENTS:
            return
        self._unmerged = 0
        # Index maintenance repairs a damaged index, and a full disk is met at the next message.
        with contextlib.suppress(StoreError):
            while await self._database.write(lambda connection: index_maintenance.merge(connection, MERGE_PAGES)):
                pass

    async def _put_in_order(self, session_ids: Sequence[int]) -> None:
        """Renumbers what came late into these sessions, in small transactions."""
        for start in range(0, len(session_ids), PAGE_SESSIONS):
            part = session_ids[start : start + PAGE_SESSIONS]
            found = await self._database.read(partial(disordered, session_ids=part))
            for step in chain.from_iterable(map(steps, found.values())):
                await write_text(self._database, partial(renumber, step=step))
                # Deletions make segments as additions do.
                await self._merge(2)


def _until_broken(
    records: Iterable[TransferRecord | Skipped | None], report: ImportReport
) -> Iterator[TransferRecord | Skipped | None]:
    try:
        yield from records
    except HistoryError as error:
        report.broken = str(error)


def _batches(lines: Iterable[TransferRecord]) -> Iterator[list[TransferRecord]]:
    batch: list[TransferRecord] = []
    chars = 0
    for line in lines:
        batch.append(line)
        chars += len(line.text)
        if len(batch) == BATCH_LINES or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _store_name(connection: Connection) -> str:
    """The name of this state.db in exports, made at the first use: ``mneme-4f1d0c2a9be3``."""
    name = rows.meta(connection, _STORE_NAME)
    if name is None:
        name = f"mneme-{secrets.token_hex(6)}"
        rows.set_meta(connection, _STORE_NAME, name)
    return name


def _page(connection: Connection, store: str, values: Mapping[str, object]) -> list[tuple[Message, TransferRecord]]:

    def named(session_id: int) -> tuple[Session, str]:
        row = connection.execute(f"{rows.SESSIONS} WHERE sessions.id = :id", {"id": session_id}).fetchone()
        session = rows.session_of(row)
        return session, session.external_id or f"{store}-{session.id}"

    found = []
    known: dict[int, tuple[Session, str]] = {}
    for message in [rows.message_of(row) for row in connection.execute(_PAGE, values)]:
        if message.session_id not in known:
            known[message.session_id] = named(message.session_id)
        session, name = known[message.session_id]
        parent = None if session.parent_id is None else named(session.parent_id)[1]
        is_unnamed_quote = message.kind == "quote" and message.external_id is None
        record = TransferRecord(
            session=name,
            parent=parent,
            title=session.title,
            address=session.address,
            scope=session.scope,
            role=message.role,
            sender=message.sender.name or None if message.sender else None,
            text=message.text,
            at=message.created_at,
            id=f"{store}-quote-{message.id}" if is_unnamed_quote else message.external_id,
        )
        found.append((message, record))
    return found


def _unnamed(
    connection: Connection, firsts: Sequence[TransferRecord], met: Collection[int]
) -> dict[int, Counter[bytes]]:
    """How many equal messages without an id the sessions have that were there before this import, by session id."""
    found = {}
    for line in firsts:
        session = _found(connection, line.scope, line.session)
        if session is not None and session["id"] not in met:
            stored = connection.execute(
                "SELECT created_at, role, text FROM messages WHERE session_id = :id AND external_id IS NULL",
                {"id": session["id"]},
            )
            found[session["id"]] = Counter(_digest(*row) for row in stored)
    return found


def _store_batch(
    connection: Connection,
    pieces: Sequence[Sequence[TransferRecord]],
    unnamed: Mapping[int, Counter[bytes]],
) -> list[_Stored]:
    with indexed_at_once(connection):
        return [_store_piece(connection, piece, unnamed) for piece in pieces]


def _store_piece(
    connection: Connection, lines: Sequence[TransferRecord], unnamed: Mapping[int, Counter[bytes]]
) -> _Stored:
    first = lines[0]
    row = _found(connection, first.scope, first.session)
    session_id = _new_session(connection, lines) if row is None else int(row["id"])
    if row is not None and row["external_id"] is None:
        address_id = row["address_id"]
    else:
        # Ids of imported messages are unique in their session only, so they have an address of their own there.
        address_id = rows.ensure_address(connection, Address(platform="import", chat_id=str(session_id)))
    known = set() if row is None else _known(connection, address_id, lines)
    stored, used = unnamed.get(session_id, Counter()), Counter[bytes]()
    own_store, taken = rows.meta(connection, _STORE_NAME), list[Message]()
    for line in lines:
        message = _message(line, session_id, own_store)
        if message.external_id is None:
            digest = _digest(rows.timestamp(line.at), line.role, rows.clean(line.text))
            used[digest] += 1
            is_known = used[digest] <= stored[digest]
        else:
            is_known = message.external_id in known
            known.add(message.external_id)
        if not is_known:
            taken.append(message)
    message_rows.add(connection, taken, address_id)
    if taken or row is None:
        _count(connection, session_id, lines, sum(message.kind == "chat" for message in taken))
    return _Stored(session_id, row is None, first.scope, len(lines), len(taken), used)


def _message(line: TransferRecord, session_id: int, own_store: str | None) -> Message:
    external_id = rows.maybe_clean(line.id)
    quote = _QUOTE_ID.fullmatch(external_id or "") if line.role == "assistant" else None
    return Message(
        role=line.role,
        kind="chat" if quote is None else "quote",
        text=line.text,
        session_id=session_id,
        created_at=line.at,
        # Here such an answer has no id.
        external_id=None if quote is not None and quote["store"] == own_store else external_id,
        sender=None if line.sender is None else Sender(id="", name=line.sender),
        origin=line.origin,
    )


def _known(connection: Connection, address_id: int, lines: Sequence[TransferRecord]) -> set[str]:
    """The stored ids among those of the lines. One by one: a list as a parameter ends a text at a NUL."""
    ids = {rows.clean(line.id) for line in lines if line.id is not None}
    statement = "SELECT 1 FROM messages WHERE address_id = :address AND external_id = :id"
    return {one for one in ids if connection.execute(statement, {"address": address_id, "id": one}).fetchone()}


def _found(connection: Connection, scope: Scope, name: str) -> Row | None:
    """The session of this name, of another system or as exported from here."""
    store, _, number = name.rpartition("-")
    is_own = store and store == rows.meta(connection, _STORE_NAME) and number.isdecimal() and len(number) < 18
    row: Row | None = connection.execute(
        """
        SELECT sessions.id, sessions.root_id, sessions.address_id, sessions.external_id FROM scopes
        CROSS JOIN sessions ON sessions.scope_id = scopes.id
        WHERE scopes.key = :scope
        AND (sessions.external_id = :external OR sessions.id = :own AND sessions.external_id IS NULL)
        """,
        {
            "scope": rows.clean(scope.key),
            "external": rows.clean(name),
            "own": int(number) if is_own else None,
        },
    ).fetchone()
    return row


def _new_session(connection: Connection, lines: Sequence[TransferRecord]) -> int:
    first = lines[0]
    moments = [rows.timestamp(line.at) for line in lines]
    parent = _found(connection, first.scope, first.parent) if first.parent else None
    row = connection.execute(
        """
        INSERT INTO sessions (address_id, scope_id, external_id, parent_id, closes_at, title, started_at, last_at,
            ended_at, end_reason)
        VALUES (:address, :scope, :external, :parent, (SELECT COALESCE(MAX(id), 0) + 1 FROM messages), :title,
            :started_at, :last_at, :last_at, 'import')
        RETURNING id
        """,
        {
            "address": rows.ensure_address(connection, first.address),
            "scope": rows.ensure_scope(connection, first.scope),
            "external": rows.clean(first.session),
            "parent": parent["id"] if parent else None,
            "title": _title(lines),
            "started_at": min(moments),
            "last_at": max(moments),
        },
    ).fetchall()[0]
    root_id = (parent["root_id"] or parent["id"]) if parent else row["id"]
    connection.execute("UPDATE sessions SET root_id = :root WHERE id = :id", {"id": row["id"], "root": root_id})
    return int(row["id"])


def _title(lines: Sequence[TransferRecord]) -> str:
    """The given title, else the beginning of what a person said first, else the session's name."""
    for line in lines:
        if line.title:
            return rows.clean(line.title)
    text = next((line.text for line in lines if line.role == "user"), lines[0].session)
    words = " ".join(text[: TITLE_CHARS * 2].split())
    if len(words) > TITLE_FROM_TEXT_CHARS:
        words = words[:TITLE_FROM_TEXT_CHARS].rpartition(" ")[0] or words[:TITLE_FROM_TEXT_CHARS]
        words += " …"
    return rows.clean(words)


def _digest(seconds: float, role: str, text: str) -> bytes:
    return hashlib.blake2b(f"{seconds!r} {role} {text}".encode(), digest_size=12).digest()


def _count(connection: Connection, session_id: int, lines: Sequence[TransferRecord], taken: int) -> None:
    moments = [rows.timestamp(line.at) for line in lines]
    connection.execute(
        """
        UPDATE sessions SET messages = messages + :taken, started_at = MIN(started_at, :first),
            last_at = MAX(last_at, :last),
            ended_at = CASE WHEN end_reason = 'import' THEN MAX(ended_at, :last) ELSE ended_at END
        WHERE id = :id
        """,
        {"id": session_id, "taken": taken, "first": min(moments), "last": max(moments)},
    )


def disordered(connection: Connection, session_ids: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """Those of the sessions that are not in the order of time, each with (present id, right id) of all its messages,
    ordered. Equal times keep their order; what a model has been sent keeps its ids."""
    late = connection.execute(
        f"""
        SELECT DISTINCT session_id FROM (
            SELECT messages.session_id, messages.created_at,
                LAG(messages.created_at) OVER (PARTITION BY messages.session_id ORDER BY messages.id) AS before
            FROM sessions JOIN messages ON messages.session_id = sessions.id
            WHERE {in_list("sessions.id", "sessions")} AND sessions.end_reason = 'import' AND NOT EXISTS (
                SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id AND child.opens_at IS NOT NULL
            )
        ) WHERE created_at < before
        """,
        {"sessions": list_value(sorted(session_ids))},
    )
    found = connection.execute(
        f"""
        SELECT session_id, id FROM messages WHERE {in_list("session_id", "sessions")}
        ORDER BY session_id, created_at, id
        """,
        {"sessions": list_value([row["session_id"] for row in late])},
    )
    moves = {}
    for session_id, group in groupby(found, key=lambda row: int(row["session_id"])):
        ids = [row["id"] for row in group]
        moves[session_id] = list(zip(ids, sorted(ids), strict=True))
    return moves


def steps(moves: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """The moves of a session in steps that may each be done alone: a step fills the next ids with the messages that
    belong there; what stood there goes where these came from."""
    holds = {place: place for _, place in moves}
    lies = dict(holds)  # by first id of a message where it is now; `holds` is the reverse
    for start in range(0, len(moves), STEP_MESSAGES):
        part = moves[start : start + STEP_MESSAGES]
        places = {place for _, place in part}
        coming = {lies[message]: place for message, place in part}
        vacated, displaced = sorted(set(coming) - places), sorted(places - set(coming))
        step = [*coming.items(), *zip(displaced, vacated, strict=True)]
        after = {new: holds[old] for old, new in step}
        holds |= after
        lies |= {message: place for place, message in after.items()}
        if changed := [(old, new) for old, new in step if old != new]:
            yield changed


def renumber(connection: Connection, step: Sequence[tuple[int, int]]) -> None:
    """Exchanges ids of messages among them, in the text indexes too."""
    moves = [{"old": old, "new": new} for old, new in step]
    values = {"ids": list_value([old for old, _ in step])}
    with reindexed_at_once(connection, [old for old, _ in step]):
        connection.execute(
            f"CREATE TEMPORARY TABLE moved AS SELECT * FROM messages WHERE {in_list('id', 'ids')}", values
        )
        connection.execute(f"DELETE FROM messages WHERE {in_list('id', 'ids')}", values)
        connection.execute("CREATE INDEX temp.moved_by_id ON moved (id)")
        # New ids are negative at first, since they may equal old ones.
        connection.executemany("UPDATE temp.moved SET id = -:new WHERE id = :old", moves)
        connection.execute("UPDATE temp.moved SET id = -id")
        connection.execute("INSERT INTO messages SELECT * FROM temp.moved ORDER BY id")
        connection.execute("DROP TABLE temp.moved")
