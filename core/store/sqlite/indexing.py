"""Fills the text indexes over messages, chunks and facts: takes in what is new, rebuilds, merges and checks them, a
small step a call; bulk inserts; writes past a damaged index; gets what was erased out of the bytes.

Chunks are stretches of 8 to 16 messages as documents, so that a question finds the session. They come behind the
writers: what comes after `chunked_until` is read at search; a changed chunk leaves the index (by trigger) until
`advance` puts it back. Terms carry their scope's number, so that an owner of little searches little. Functions over a
connection run inside one write transaction of their caller, so that writers never wait long.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby

from core.errors import StoreError
from core.store.rows import Connection, T, clean, insert, meta, set_meta
from core.store.sqlite.database import Database
from core.store.sqlite.schema import (
    CURSOR,
    FACTS_CONTENT,
    FACTS_RANK,
    HASH_SIZE,
    INDEXES,
    SHOWN,
    STALE,
    TABLES,
    in_list,
    list_value,
    scoped,
)
from core.store.sqlite.text_index import UNTIL, VERSION_KEY, is_stale, until
from core.text.normalize import VERSION
from core.text.terms import entity_key, hints_of, terms_of
from core.types import ErasureEpoch

CHUNK_MESSAGES = 8
"""A chunk grows to twice this, then its first half is sealed. As good as whole sessions, and less to read."""
STEP_MESSAGES = 500
LAG_MESSAGES = 32
"""New messages are taken in when there are so many; fewer are cheaper to read than to index."""
_UNINDEX = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id = :id"
)
_MEMBERS = f"""
    SELECT id FROM messages WHERE session_id = :session_id AND id BETWEEN :first_id AND :last_id AND {SHOWN} ORDER BY id
"""
_CHUNKS_FROM = "SELECT id, first_id FROM chunks WHERE session_id = :session AND last_id >= :first"
_SHOWN_FROM = f"""
    SELECT id FROM messages WHERE session_id = :session AND id BETWEEN :first AND :until AND {SHOWN} ORDER BY id
"""
_ADD = """
    INSERT INTO chunks (session_id, scope_id, place, first_id, last_id, messages)
    VALUES (:session, :scope, :place, :first, :last, :messages) RETURNING id
"""


def advance(connection: Connection, count: int = STEP_MESSAGES) -> int:
    """Takes in `count` more messages and what waits to be indexed again; returns how many, 0 when all is done."""
    waiting = [row[0] for row in connection.execute("SELECT id FROM chunks WHERE is_indexed = 0 LIMIT 20")]
    changed = list(waiting)
    rows = connection.execute(
        f"""
        SELECT messages.id, messages.session_id, sessions.scope_id, {SHOWN} AS is_shown
        FROM messages JOIN sessions ON sessions.id = messages.session_id
        WHERE messages.id > :until ORDER BY messages.id LIMIT :count
        """,
        {"until": until(connection), "count": count},
    ).fetchall()
    if rows:
        shown = sorted((row["session_id"], row["scope_id"], row["id"]) for row in rows if row["is_shown"])
        for (session_id, scope_id), group in groupby(shown, key=lambda one: one[:2]):
            changed += _extend(connection, session_id, scope_id, [message_id for _, _, message_id in group])
        set_meta(connection, UNTIL, str(rows[-1]["id"]))
    # All in one statement: with one for each, FTS5 would write a segment for each.
    these, listed = {"ids": list_value(changed)}, in_list("id", "ids")
    connection.execute(f"UPDATE chunks SET is_indexed = 1 WHERE {listed}", these)
    connection.execute(f"INSERT INTO chunks_fts (rowid, terms) SELECT id, terms FROM chunk_texts WHERE {listed}", these)
    return len(waiting) + len(rows)


def is_behind(connection: Connection, lag: int) -> bool:
    """Whether more than `lag` messages, or any changed chunk, wait to be taken in."""
    waiting = connection.execute("SELECT EXISTS (SELECT 1 FROM chunks WHERE is_indexed = 0)").fetchone()[0]
    return bool(waiting) or latest(connection) - until(connection) > lag


def latest(connection: Connection) -> int:
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])


def _extend(connection: Connection, session_id: int, scope_id: int, message_ids: list[int]) -> list[int]:
    """Returns the chunks to index; whether messages come one by one or at once, the chunks are the same."""
    last = connection.execute(
        "SELECT * FROM chunks WHERE session_id = :session ORDER BY place DESC LIMIT 1", {"session": session_id}
    ).fetchone()
    place = 0
    if last is not None:
        place = last["place"] + 1
        if last["messages"] <= 2 * CHUNK_MESSAGES:
            place = last["place"]
            message_ids = [row[0] for row in connection.execute(_MEMBERS, dict(last))] + message_ids
            connection.execute(_UNINDEX, {"id": last["id"]})
            connection.execute("DELETE FROM chunks WHERE id = :id", {"id": last["id"]})
    made: list[int] = []
    while message_ids:
        size = len(message_ids) if len(message_ids) <= 2 * CHUNK_MESSAGES else CHUNK_MESSAGES
        part, message_ids = message_ids[:size], message_ids[size:]
        row = {"session": session_id, "scope": scope_id, "place": place}
        row |= {"first": part[0], "last": part[-1], "messages": len(part)}
        made += [added[0] for added in connection.execute(_ADD, row)]
        place += 1
    return made


@contextmanager
def rechunked(connection: Connection, first_ids: Mapping[int, int]) -> Iterator[None]:
    """In a write transaction: messages that the block makes visible again, the first of each session by its id, get
    their place in the chunks of the session, from there on made anew."""
    if is_stale(connection):
        yield
        return
    changed = []
    for session, first in first_ids.items():
        values = {"session": session, "first": first, "until": until(connection)}
        for chunk in connection.execute(_CHUNKS_FROM, values).fetchall():
            connection.execute(_UNINDEX, {"id": chunk["id"]})
            connection.execute("DELETE FROM chunks WHERE id = :id", {"id": chunk["id"]})
            values["first"] = min(values["first"], chunk["first_id"])
        changed.append(values)
    yield
    for values in changed:
        scope, *_ = connection.execute("SELECT scope_id FROM sessions WHERE id = :session", values).fetchone()
        shown = [row["id"] for row in connection.execute(_SHOWN_FROM, values)]
        _extend(connection, values["session"], scope, shown)


REBUILD_MESSAGES = 2_000
MERGE_PAGES = 16


def flag(connection: Connection) -> None:
    """Says that the indexes must be built anew, from the first message."""
    set_meta(connection, STALE, "1")
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": CURSOR})


def rebuild(connection: Connection, count: int = REBUILD_MESSAGES) -> int:
    """Indexes the next `count` messages, beginning a rebuild when none is under way; returns how many, 0 at the end."""
    if meta(connection, CURSOR) is None:
        set_meta(connection, STALE, "1")
        set_meta(connection, CURSOR, "0")
        for table in TABLES:
            try:
                connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")
            except sqlite3.DatabaseError:
                blank(connection, table)
        connection.execute("DELETE FROM chunks")
        connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": UNTIL})
        _renew_facts(connection)
    cursor = int(meta(connection, CURSOR) or 0)
    last, found = connection.execute(
        "SELECT MAX(id), COUNT(*) FROM (SELECT id FROM messages WHERE id > :cursor ORDER BY id LIMIT :count)",
        {"cursor": cursor, "count": count},
    ).fetchone()
    if not found:
        set_meta(connection, VERSION_KEY, str(VERSION))
        connection.execute("DELETE FROM state_meta WHERE key IN (:stale, :cursor)", {"stale": STALE, "cursor": CURSOR})
        return 0
    _index_messages(connection, "id > :cursor AND id <= :last", {"cursor": cursor, "last": last})
    set_meta(connection, CURSOR, str(last))
    return int(found)


def merge(connection: Connection, pages: int = MERGE_PAGES) -> bool:
    """One small step towards fewer segments in every index; False when there was nothing to merge."""
    return sum(merge_table(connection, table, pages) for table in TABLES) > 0


def wrong(connection: Connection) -> list[str]:
    """Sentences about each index that is damaged or does not agree with what it is of; empty when all is well."""
    if is_stale(connection):
        return ["The search indexes are flagged for a rebuild, which has not been finished yet."]
    sentences = _wrong_facts(connection)
    for table in TABLES:
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            sentences.append(f"The search index {table} does not agree with the messages ({error}).")
    return sentences


def flag_wrong(connection: Connection) -> bool:
    """Flags the indexes for a rebuild where something is wrong with them; whether it is."""
    if is_wrong := bool(wrong(connection)):
        flag(connection)
    return is_wrong


@contextmanager
def indexed_at_once(connection: Connection) -> Iterator[None]:
    """In a write transaction: messages inserted in the block are indexed when it ends, or by a pending rebuild."""
    if meta(connection, STALE) is not None:
        yield
        return
    last = latest(connection)
    # The triggers rest while this flag is set; nobody else sees it.
    set_meta(connection, STALE, "1")
    yield
    connection.execute("DELETE FROM state_meta WHERE key = :stale", {"stale": STALE})
    _index_messages(connection, "id > :last", {"last": last})


def _index_messages(connection: Connection, condition: str, parameters: Mapping[str, object]) -> None:
    connection.execute(
        "INSERT INTO messages_fts (rowid, text, tools, scope) "
        f"SELECT id, text, tools, scope FROM messages_words WHERE {condition} ORDER BY id",
        parameters,
    )


async def write_text(
    database: Database, work: Callable[[Connection], T], epoch: ErasureEpoch | None = None, *, is_short: bool = False
) -> T:
    """`Database.write` for work that changes indexed text. On index damage it is tried again over a new index of the
    facts, or, where that is whole, with the others emptied and flagged for a rebuild; else the error is raised."""
    try:
        return await database.write(work, epoch, is_short=is_short)
    except StoreError as error:
        if not _is_index_damage(error):
            raise
    if await database.write(mend):
        return await write_text(database, work, epoch)

    def over_empty_ones(connection: Connection) -> T:
        empty_indexes(connection)
        return work(connection)

    return await database.write(over_empty_ones, epoch)


def empty_indexes(connection: Connection) -> None:
    """Makes every index of messages an empty one that can be opened, whatever became of it, and flags them all for a
    rebuild."""
    flag(connection)
    for table in TABLES:
        blank(connection, table)


def _is_index_damage(error: StoreError) -> bool:
    """A broken FTS5 table is corrupt, cannot be opened, or gives a bare `constraint failed`; our own constraints are
    named."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.DatabaseError):
        return False
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return str(cause) == "constraint failed"
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)


def merge_table(connection: Connection, table: str, pages: int) -> bool:
    """Merges at most `pages` (all if negative); whether there was anything to do (https://sqlite.org/fts5.html,
    "merge")."""
    before = connection.execute("SELECT total_changes()").fetchone()[0]
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages})
    return bool(connection.execute("SELECT total_changes()").fetchone()[0] - before >= 2)


def blank(connection: Connection, table: str) -> None:
    """Makes an index empty and openable by resetting its tables: FTS5 refuses 'delete-all' and DROP for a broken
    one."""
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for part, columns in _PARTS:
        connection.execute(f"CREATE TABLE IF NOT EXISTS main.{table}_{part} ({columns}")
        connection.execute(f"DELETE FROM main.{table}_{part}")
        connection.execute(f"INSERT INTO main.{table}_{part} SELECT * FROM temp.blank_{part}")
    connection.execute("DROP TABLE temp.blank")
    for line in (INDEXES + HASH_SIZE).splitlines():
        if line.startswith(f"INSERT INTO {table} ({table}, rank) VALUES"):
            connection.execute(line)


_PARTS = (
    ("data", "id INTEGER PRIMARY KEY, block BLOB)"),
    ("idx", "segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID"),
    ("docsize", "id INTEGER PRIMARY KEY, sz BLOB)"),
    ("config", "k PRIMARY KEY, v) WITHOUT ROWID"),
)
"""The tables behind an index with external content (https://sqlite.org/fts5.html, "FTS5 Data Structures")."""


_INDEXED = "SELECT id, scope_id, content, speaker, attribute FROM facts WHERE id = :id"
_DIFFERING = """
SELECT (SELECT COUNT(*) FROM facts WHERE id NOT IN (SELECT id FROM facts_fts_content))
    + (SELECT COUNT(*) FROM facts_fts_content WHERE id NOT IN (SELECT id FROM facts))
"""
_NAME = """
INSERT INTO entities (scope_id, name, shown) VALUES (:scope, :name, :shown)
ON CONFLICT (scope_id, name) DO UPDATE SET shown = shown
"""
_TIE = """
INSERT INTO fact_entities (entity_id, fact_id) VALUES (:entity, :fact) ON CONFLICT (entity_id, fact_id) DO NOTHING
"""


def index_fact(connection: Connection, fact_id: int) -> None:
    row = connection.execute(_INDEXED, {"id": fact_id}).fetchone()
    kinds = {"terms": (*terms_of(row["content"]), *terms_of(row["speaker"])), "hints": hints_of(row["attribute"])}
    values: dict[str, object] = {"id": fact_id}
    for kind, terms in kinds.items():
        values[kind] = " ".join(scoped(row["scope_id"], term) for term in terms)
    connection.execute("DELETE FROM facts_fts WHERE rowid = :id", values)
    connection.execute("INSERT INTO facts_fts (rowid, terms, hints) VALUES (:id, :terms, :hints)", values)


def keep_names(connection: Connection, fact_id: int, scope_id: int, names: Iterable[str]) -> None:
    connection.execute("DELETE FROM fact_entities WHERE fact_id = :fact", {"fact": fact_id})
    for shown in map(clean, names):
        if name := entity_key(shown):
            entity_id = insert(connection, _NAME, {"scope": scope_id, "name": name, "shown": shown})
            connection.execute(_TIE, {"entity": entity_id, "fact": fact_id})


def mend(connection: Connection) -> bool:
    """Makes the index of the facts anew where it cannot be used or does not hold what it should; False where all is
    well."""
    if is_wrong := bool(_wrong_facts(connection)):
        _renew_facts(connection)
    return is_wrong


def _wrong_facts(connection: Connection) -> list[str]:
    try:
        connection.execute("SELECT rowid FROM facts_fts WHERE facts_fts MATCH 'x' LIMIT 1").fetchall()
        connection.execute("INSERT INTO facts_fts (facts_fts, rank) VALUES ('integrity-check', 1)")
        differing = connection.execute(_DIFFERING).fetchone()[0]
    except sqlite3.DatabaseError as error:
        return [f"The search index of the facts is damaged ({error})."]
    return (
        [f"Facts that their search index lacks, or that it holds and that are gone: {differing}."] if differing else []
    )


def _renew_facts(connection: Connection) -> None:
    """All at once, since a person's facts are few."""
    blank(connection, "facts_fts")
    connection.execute(FACTS_CONTENT)
    connection.execute("DELETE FROM facts_fts_content")
    # FTS5 keeps in mind what it has read of its tables; this makes it look again.
    connection.execute("INSERT INTO facts_fts (facts_fts) VALUES ('rebuild')")
    connection.execute(FACTS_RANK)
    for row in connection.execute("SELECT id FROM facts").fetchall():
        index_fact(connection, row["id"])


COMPACTION = "erasure_compaction"
"""Key of `state_meta`: "all" after every erasure, then "merging" and "log"; absent when nothing is to do."""
COMPACTION_PAGES, COMPACTION_S = 16, 0.01
"""A transaction merges so many pages at once, for so long: each costs a write to the disk."""
PATIENCE_MS = 250
"""How long writers wait for a reader of an old state, before they go first and the log is cut another time."""


async def compact(database: Database, limit_s: float) -> bool:
    """Goes on for `limit_s` seconds at most; whether no erased word lies in the files any more. Words stay in older
    segments of an index until these are merged, in small steps, so that no writer waits long. Freed pages are
    overwritten by SQLite (`PRAGMA secure_delete = ON`). A program that reads an old state keeps the bytes."""
    ends_at = time.monotonic() + limit_s
    while await compact_step(database) and time.monotonic() < ends_at:
        pass
    return await database.read(lambda connection: meta(connection, COMPACTION)) is None


async def compact_step(database: Database) -> bool:
    """One small step; True while there is more to do now."""
    stage = await database.read(lambda connection: meta(connection, COMPACTION))
    if stage not in (None, "log"):
        await database.write(_compact_indexes)
        return True
    if stage == "log" and await database.checkpoint(PATIENCE_MS):
        await database.execute("DELETE FROM state_meta WHERE key = :key AND value = 'log'", {"key": COMPACTION})
    return False


def want_compaction(connection: Connection) -> None:
    """Notes that something was erased."""
    set_meta(connection, COMPACTION, "all")


def want_checkpoint(connection: Connection) -> None:
    """Notes that something was deleted that no text index had: only the log may hold it."""
    if meta(connection, COMPACTION) is None:
        set_meta(connection, COMPACTION, "log")


def _compact_indexes(connection: Connection) -> None:
    ends_at, is_marked = time.monotonic() + COMPACTION_S, meta(connection, COMPACTION) == "merging"
    for table in (*TABLES, "facts_fts"):
        # A negative number marks all segments of an index to become one.
        while merge_table(connection, table, COMPACTION_PAGES if is_marked else -COMPACTION_PAGES) and is_marked:
            if time.monotonic() > ends_at:
                return
    set_meta(connection, COMPACTION, "log" if is_marked else "merging")
