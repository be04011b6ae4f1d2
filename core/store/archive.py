"""Imported and exported history as rows: finds or makes the session, tells what is known from what is new.

Functions that take a connection run inside the caller's transaction.

Imported sessions in the order of their times: messages are read by id, so those that came late are renumbered.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from core.store import messages as message_rows
from core.store import rows
from core.store.rows import visible
from core.store.sessions import SAID
from core.store.sqlite.index_maintenance import reindexed_at_once
from core.transfer.record import TITLE_CHARS, TransferRecord
from core.types import Address, Message, Sender

TITLE_FROM_TEXT_CHARS = 60
NOTED = 2000
"""So many messages that are there already are looked at in one transaction."""
_STORE_NAME = "archive_name"
"""Key of `state_meta`: names this state.db in exports, so that its own sessions are known when they come back."""

_QUOTE_ID = re.compile(r"(?P<store>mneme-[0-9a-f]{12})-quote-[0-9]{1,19}")
"""The id in an export of an answer that repeats what recall found: where it comes in, recall does not index it."""

_PAGE = f"""
SELECT {rows.MESSAGE_COLUMNS} FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
WHERE (messages.session_id, messages.id) > (:session, :message) AND {visible()}
AND (:only IS NULL OR messages.session_id = :only)
AND {SAID}
ORDER BY messages.session_id, messages.id LIMIT :limit
"""


def start(connection: sqlite3.Connection) -> None:
    """Makes the list of lines without an id: how many equal ones were stored before, how many the file has had so far.
    It is a temporary table, because a long file has more of them than should lie in memory."""
    finish(connection)
    connection.execute(
        """
        CREATE TEMPORARY TABLE nameless (
            session_id INTEGER NOT NULL,
            digest BLOB NOT NULL,
            stored INTEGER NOT NULL,
            met INTEGER NOT NULL,
            PRIMARY KEY (session_id, digest)
        ) WITHOUT ROWID
        """
    )


def finish(connection: sqlite3.Connection) -> None:
    """Forgets the list."""
    connection.execute("DROP TABLE IF EXISTS temp.nameless")


def store_name(connection: sqlite3.Connection) -> str:
    """The name of this state.db in session names of exports, made at the first use: ``mneme-4f1d0c2a9be3``."""
    name = rows.meta(connection, _STORE_NAME)
    if name is None:
        name = f"mneme-{secrets.token_hex(6)}"
        rows.keep_meta(connection, _STORE_NAME, name)
    return name


def store(connection: sqlite3.Connection, lines: Sequence[TransferRecord]) -> tuple[int, bool, int]:
    """Stores lines of one session; returns the session's id, whether it was made for them, and how many of them were
    new. What the session had before this import must have been noted."""
    own = rows.meta(connection, _STORE_NAME)
    session_id, address_id, is_new = _session(connection, lines)
    known = set() if is_new else _known(connection, address_id, lines)
    taken: list[Message] = []
    for line in lines:
        external_id = rows.maybe_clean(line.id)
        quote = _QUOTE_ID.fullmatch(external_id or "") if line.role == "assistant" else None
        if quote is not None and quote["store"] == own:
            # Here such an answer has no id.
            external_id = None
        if external_id in known or (external_id is None and not _is_next(connection, session_id, line)):
            continue
        if external_id is not None:
            known.add(external_id)
        message = Message(
            role=line.role,
            kind="chat" if quote is None else "quote",
            text=line.text,
            session_id=session_id,
            created_at=line.at,
            external_id=external_id,
            sender=None if line.sender is None else Sender(id="", name=line.sender),
            origin=line.origin,
        )
        taken.append(message)
    message_rows.add(connection, taken, address_id)
    if taken or is_new:
        _count(connection, session_id, lines, sum(message.kind == "chat" for message in taken))
    return session_id, is_new, len(taken)


def _known(connection: sqlite3.Connection, address_id: int, lines: Sequence[TransferRecord]) -> set[str]:
    """The ids of lines that were stored before. Asked one by one: SQLite's JSON ends a text at a NUL."""
    ids = {rows.clean(line.id) for line in lines if line.id is not None}
    statement = "SELECT 1 FROM messages WHERE address_id = :address AND external_id = :id"
    return {one for one in ids if connection.execute(statement, {"address": address_id, "id": one}).fetchone()}


def page(connection: sqlite3.Connection, store: str, values: Mapping[str, object]) -> list[tuple[int, int, str]]:
    """The next lines of an export, each after its session's and its message's id.

    `values`: the scopes, the ids of the last line (session, message), a limit, and the only session if there is one.
    """
    messages = [rows.message_of(row) for row in connection.execute(_PAGE, values)]
    sessions = {}
    for session_id in {message.session_id for message in messages}:
        row = connection.execute(f"{rows.SESSIONS} WHERE sessions.id = :id", {"id": session_id}).fetchone()
        sessions[session_id] = rows.session_of(row)
    found = []
    for message in messages:
        session = sessions[message.session_id]
        name = session.external_id or f"{store}-{session.id}"
        if message.kind == "quote" and message.external_id is None:
            message = replace(message, external_id=f"{store}-quote-{message.id}")
        found.append((session.id, message.id, TransferRecord.of(session, name, message).line()))
    return found


def find(connection: sqlite3.Connection, line: TransferRecord) -> int | None:
    """The session of a line, where there is one."""
    row = _found(connection, line)
    return None if row is None else int(row["id"])


def note_stored(connection: sqlite3.Connection, session_id: int, after: int, count: int = NOTED) -> int | None:
    """Counts those of the next `count` messages of a session that have no id; returns where the next begin (None: there
    are no more)."""
    found = connection.execute(
        """
        SELECT id, created_at, role, CASE WHEN external_id IS NULL THEN text END AS text FROM messages
        WHERE session_id = :session AND id > :after ORDER BY id LIMIT :count
        """,
        {"session": session_id, "after": after, "count": count},
    ).fetchall()
    connection.executemany(
        """
        INSERT INTO temp.nameless (session_id, digest, stored, met) VALUES (:session, :digest, 1, 0)
        ON CONFLICT (session_id, digest) DO UPDATE SET stored = stored + 1
        """,
        [
            {"session": session_id, "digest": _digest(row["created_at"], row["role"], row["text"])}
            for row in found
            if row["text"] is not None
        ],
    )
    return found[-1]["id"] if len(found) == count else None


def _session(connection: sqlite3.Connection, lines: Sequence[TransferRecord]) -> tuple[int, int, bool]:
    """The session of the lines, the address that their ids are unique at, and whether the session was made now."""
    row = _found(connection, lines[0])
    if row is None:
        session_id = _made(connection, lines)
        return session_id, _shelf(connection, session_id), True
    is_own = row["external_id"] is None
    return row["id"], row["address_id"] if is_own else _shelf(connection, row["id"]), False


def _found(connection: sqlite3.Connection, line: TransferRecord) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        """
        SELECT sessions.id, sessions.address_id, sessions.external_id FROM scopes
        CROSS JOIN sessions ON sessions.scope_id = scopes.id
        WHERE scopes.key = :scope
        AND (sessions.external_id = :external OR sessions.id = :own AND sessions.external_id IS NULL)
        """,
        {
            "scope": rows.clean(line.scope.key),
            "external": rows.clean(line.session),
            "own": _own_number(connection, line.session),
        },
    ).fetchone()
    return row


def _shelf(connection: sqlite3.Connection, session_id: int) -> int:
    """Ids of imported messages are unique in their session only, so they have an address of their own there."""
    return rows.keep_address(connection, Address(platform="import", chat_id=str(session_id)))


def _own_number(connection: sqlite3.Connection, name: str) -> int | None:
    """The id of a session that was exported from here."""
    store, _, number = name.rpartition("-")
    is_own = store and store == rows.meta(connection, _STORE_NAME) and number.isdecimal() and len(number) < 18
    return int(number) if is_own else None


def _made(connection: sqlite3.Connection, lines: Sequence[TransferRecord]) -> int:
    first = lines[0]
    moments = [rows.timestamp(line.at) for line in lines]
    row = connection.execute(
        """
        INSERT INTO sessions (address_id, scope_id, external_id, closes_at, title, started_at, last_at, ended_at,
            end_reason)
        VALUES (:address, :scope, :external, (SELECT COALESCE(MAX(id), 0) + 1 FROM messages), :title, :started_at,
            :last_at, :last_at, 'import')
        RETURNING id
        """,
        {
            "address": rows.keep_address(connection, first.address),
            "scope": rows.keep_scope(connection, first.scope),
            "external": rows.clean(first.session),
            "title": _title(lines),
            "started_at": min(moments),
            "last_at": max(moments),
        },
    ).fetchall()[0]
    connection.execute("UPDATE sessions SET root_id = id WHERE id = :id", {"id": row["id"]})
    return int(row["id"])


def _title(lines: Sequence[TransferRecord]) -> str:
    """The title that the lines give; else the beginning of what a person said first, else the session's name."""
    for line in lines:
        if line.title:
            return rows.clean(line.title)
    text = next((line.text for line in lines if line.role == "user"), lines[0].session)
    words = " ".join(text[: TITLE_CHARS * 2].split())
    if len(words) > TITLE_FROM_TEXT_CHARS:
        words = words[:TITLE_FROM_TEXT_CHARS].rpartition(" ")[0] or words[:TITLE_FROM_TEXT_CHARS]
        words += " …"
    return rows.clean(words)


def _is_next(connection: sqlite3.Connection, session_id: int, line: TransferRecord) -> bool:
    """Whether a line without an id is one more than the equal ones that were stored before."""
    digest = _digest(rows.timestamp(line.at), line.role, rows.clean(line.text))
    row = connection.execute(
        """
        INSERT INTO temp.nameless (session_id, digest, stored, met) VALUES (:session, :digest, 0, 1)
        ON CONFLICT (session_id, digest) DO UPDATE SET met = met + 1
        RETURNING met > stored AS is_next
        """,
        {"session": session_id, "digest": digest},
    ).fetchall()[0]
    return bool(row["is_next"])


def _digest(seconds: float, role: str, text: str) -> bytes:
    return hashlib.blake2b(f"{seconds!r} {role} {text}".encode(), digest_size=12).digest()


def _count(connection: sqlite3.Connection, session_id: int, lines: Sequence[TransferRecord], taken: int) -> None:
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


STEP_MESSAGES = 300
"""So many places are put right in one transaction, which moves at most twice as many messages: some 50 ms."""


def disordered(connection: sqlite3.Connection, session_ids: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """Those of the sessions in which a message stands behind a later one, each with its moves in order: (the id that
    a message has, the id that it should have), for all its messages. Equal times keep the order they have."""
    late = connection.execute(
        """
        SELECT DISTINCT session_id FROM (
            SELECT messages.session_id, messages.created_at,
                LAG(messages.created_at) OVER (PARTITION BY messages.session_id ORDER BY messages.id) AS before
            FROM json_each(:sessions) CROSS JOIN sessions ON sessions.id = json_each.value
            CROSS JOIN messages ON messages.session_id = sessions.id
            WHERE sessions.end_reason = 'import'
            AND NOT EXISTS (SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id)
        ) WHERE created_at < before
        """,
        {"sessions": rows.dump(sorted(session_ids))},
    )
    wanted = [row["session_id"] for row in late]
    found = connection.execute(
        """
        SELECT messages.session_id, messages.id FROM json_each(:sessions)
        CROSS JOIN messages ON messages.session_id = json_each.value
        ORDER BY messages.session_id, messages.created_at, messages.id
        """,
        {"sessions": rows.dump(wanted)},
    )
    moves = {}
    for session_id, group in groupby(found, key=lambda row: row["session_id"]):
        ids = [row["id"] for row in group]
        moves[session_id] = list(zip(ids, sorted(ids), strict=True))
    return moves


def steps(moves: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """The moves of a session cut into steps that may each be done alone: a step fills the next ids with the messages
    that belong there, and what stood there goes where these came from."""
    holds = {place: place for _, place in moves}
    """By id, which message (by its first id) has it now; `lies` is the reverse."""
    lies = dict(holds)
    for start in range(0, len(moves), STEP_MESSAGES):
        part = moves[start : start + STEP_MESSAGES]
        places = {place for _, place in part}
        coming = {lies[message]: place for message, place in part}
        vacated = sorted(set(coming) - places)
        displaced = sorted(places - set(coming))
        step = [*coming.items(), *zip(displaced, vacated, strict=True)]
        after = {new: holds[old] for old, new in step}
        holds |= after
        lies |= {message: place for place, message in after.items()}
        if changed := [(old, new) for old, new in step if old != new]:
            yield changed


def renumber(connection: sqlite3.Connection, step: Sequence[tuple[int, int]]) -> None:
    """Gives messages other ids, from among their own. The text indexes follow."""
    with reindexed_at_once(connection, [old for old, _ in step]):
        connection.execute(
            """
            CREATE TEMPORARY TABLE moved AS
            SELECT messages.*, json_extract(json_each.value, '$[1]') AS place FROM json_each(:step)
            CROSS JOIN messages ON messages.id = json_extract(json_each.value, '$[0]')
            """,
            {"step": rows.dump(step)},
        )
        connection.execute("DELETE FROM messages WHERE id IN (SELECT id FROM temp.moved)")
        connection.execute("UPDATE temp.moved SET id = place")
        connection.execute("ALTER TABLE temp.moved DROP COLUMN place")
        connection.execute("INSERT INTO messages SELECT * FROM temp.moved ORDER BY id")
        connection.execute("DROP TABLE temp.moved")
