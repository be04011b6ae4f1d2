"""The chunk index: stretches of 8 to 16 messages as documents, so that a question finds the session, not the word.

Kept behind the writers: `advance` takes in what was said since the last time, and what comes after `chunked_until` is
read at search. A change to a message takes its chunk out of the index (by trigger) until `advance` puts it back. Terms
carry the number of their scope, so that an owner of little searches little; the index holds terms, no text.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

from core.search.ranking import RankedMessage, is_question
from core.store.engine import Connection
from core.store.query import SearchQuery, TermCounts
from core.store.rows import keep_meta, meta, scope_parameter, visible
from core.store.sqlite.message_search import filters, places
from core.store.sqlite.text_index import SHOWN, STALE, day_of, scoped
from core.text.terms import name_terms, terms_of

CHUNK_MESSAGES = 8
"""A chunk grows to twice this, then its first half is sealed. As good as whole sessions, and less to read."""
CHUNKS_READ = 40
RANKED_CHUNKS = 3_000
LINEAGES_READ = 12
FARTHEST = 100
"""Pages beyond so many lineages are not asked for."""
TAIL_MESSAGES = 256
"""What is not in a chunk yet is read at search, up to this many messages."""
STEP_MESSAGES = 500
LAG_MESSAGES = 32
"""New messages are taken in when there are so many; fewer are cheaper to read than to index."""
UNTIL = "chunked_until"


def advance(connection: sqlite3.Connection, count: int = STEP_MESSAGES) -> int:
    """Takes up to `count` more messages into chunks, and indexes again what waits; returns how many of both there
    were, 0 when all is done."""
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
        keep_meta(connection, UNTIL, str(rows[-1]["id"]))
    _index(connection, changed)
    return len(waiting) + len(rows)


def is_behind(connection: sqlite3.Connection, lag: int = LAG_MESSAGES) -> bool:
    """Whether more than `lag` messages, or any changed chunk, wait to be taken in."""
    latest = connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0]
    waiting = connection.execute("SELECT EXISTS (SELECT 1 FROM chunks WHERE is_indexed = 0)").fetchone()[0]
    return bool(waiting) or int(latest) - until(connection) > lag


def until(connection: Connection) -> int:
    """Messages up to this id are in chunks."""
    return int(meta(connection, UNTIL) or 0)


def cover(connection: Connection, message_id: int, session_id: int) -> None:
    """A message that was empty when its stretch was taken in, and says something now, joins the chunk beside it, which
    waits to be indexed again."""
    if message_id > until(connection) or meta(connection, STALE) is not None:
        return
    row = connection.execute(
        """
        SELECT id, first_id, last_id FROM chunks WHERE session_id = :session
        ORDER BY first_id <= :message DESC, ABS(first_id - :message) LIMIT 1
        """,
        {"session": session_id, "message": message_id},
    ).fetchone()
    if row is None:
        connection.execute(
            """
            INSERT INTO chunks (session_id, scope_id, place, first_id, last_id, messages)
            SELECT id, scope_id, 0, :message, :message, 1 FROM sessions WHERE id = :session
            """,
            {"session": session_id, "message": message_id},
        )
    elif not row["first_id"] <= message_id <= row["last_id"]:
        # Its terms leave the index as they stand there, before the stretch grows.
        connection.execute(
            "INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts "
            "WHERE id = :id",
            {"id": row["id"]},
        )
        connection.execute(
            """
            UPDATE chunks SET first_id = MIN(first_id, :message), last_id = MAX(last_id, :message),
                messages = messages + 1, is_indexed = 0
            WHERE id = :id
            """,
            {"id": row["id"], "message": message_id},
        )


def clear(connection: sqlite3.Connection) -> None:
    """Begins anew."""
    connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')")
    connection.execute("DELETE FROM chunks")
    connection.execute("DELETE FROM state_meta WHERE key = :key", {"key": UNTIL})


def frequencies(connection: sqlite3.Connection, terms: Sequence[str], query: SearchQuery) -> TermCounts:
    """Counts the terms of a query in the chunks that it may see."""
    scopes = [
        row[0]
        for row in connection.execute(
            f"SELECT id FROM scopes WHERE {visible('scopes.id')}", {"scopes": scope_parameter(query.scopes)}
        )
    ]
    known = {scoped(scope, term): term for scope in scopes for term in terms}
    found = dict.fromkeys(terms, 0)
    for row in connection.execute(
        "SELECT chunk_vocabulary.term, chunk_vocabulary.doc FROM json_each(:terms) "
        "CROSS JOIN chunk_vocabulary ON chunk_vocabulary.term = json_each.value",
        {"terms": json.dumps(list(known))},
    ):
        found[known[row[0]]] += row[1]
    count = connection.execute(
        f"SELECT COALESCE(SUM(chunks), 0) FROM chunk_counts WHERE {visible('chunk_counts.scope_id')}",
        {"scopes": scope_parameter(query.scopes)},
    ).fetchone()[0]
    return TermCounts(scopes, found, int(count))


def candidates(
    connection: sqlite3.Connection,
    leading: Mapping[str, int],
    lending: Sequence[str],
    scopes: Sequence[int],
    query: SearchQuery,
    helping: int = 0,
) -> dict[int, list[RankedMessage]]:
    """By lineage, the messages of the best chunks and those in no chunk yet, in order. A chunk has one of the leading
    terms (and in how many each stands); by the lending ones it is only ranked. Each further `helping` has the chunks of
    the next lineages: the same however many are asked for, so that no page changes the order of one before it."""
    expression = _any_of(leading, scopes)
    if not expression:
        return {}
    if lending:
        expression = f"({expression}) AND ({expression} OR {_any_of(lending, scopes)})"
    chosen: list[int] = []
    served: dict[int, int] = {}
    ranked = best(connection, expression, sum(leading.values()), query)
    for place, (chunk_id, root) in enumerate(islice(ranked, (helping + 1) * CHUNKS_READ)):
        if served.setdefault(root, max(len(served) // LINEAGES_READ, place // CHUNKS_READ)) == helping:
            chosen.append(chunk_id)
    tail = _tail(connection, query) if helping == 0 else ()
    return _by_lineage([*_of_chunks(connection, chosen, query), *tail])


def helpings(query: SearchQuery) -> int:
    """How many helpings it takes to fill the page that is asked for."""
    return 1 + max(0, min(query.page * query.limit, FARTHEST)) // LINEAGES_READ


def best(
    connection: sqlite3.Connection, expression: str, found: int, query: SearchQuery, most: int = RANKED_CHUNKS
) -> Iterator[tuple[int, int]]:
    """Chunks with their lineage, lazily, best first; where more than `most` may be `found`, the newest of them come
    before all else, because to rank all is what costs."""
    conditions, parameters = filters(query)
    parameters["expression"] = expression
    split = None
    if found > most:
        split = connection.execute(
            "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :expression ORDER BY rowid DESC LIMIT 1 OFFSET :most",
            {**parameters, "most": most},
        ).fetchone()
    parameters["split"] = 0 if split is None else split[0]
    for stretch in ("> :split",) if split is None else ("> :split", "<= :split"):
        for row in connection.execute(
            f"""
            SELECT chunks.id, COALESCE(sessions.root_id, sessions.id) FROM chunks_fts
            CROSS JOIN chunks ON chunks.id = chunks_fts.rowid
            CROSS JOIN sessions ON sessions.id = chunks.session_id {places(conditions)}
            WHERE chunks_fts MATCH :expression AND chunks_fts.rowid {stretch} AND {visible("sessions.scope_id")}
                AND EXISTS (
                    SELECT 1 FROM messages WHERE messages.session_id = chunks.session_id
                        AND messages.id BETWEEN chunks.first_id AND chunks.last_id AND {SHOWN} AND {conditions}
                )
            ORDER BY chunks_fts.rank
            """,
            parameters,
        ):
            yield row[0], row[1]


def _any_of(terms: Iterable[str], scopes: Sequence[int]) -> str:
    return " OR ".join(f'"{scoped(scope, term)}"' for scope in scopes for term in terms)


def _of_chunks(connection: sqlite3.Connection, ids: Sequence[int], query: SearchQuery) -> Iterator[sqlite3.Row]:
    conditions, parameters = filters(query)
    return connection.execute(
        f"""
        SELECT messages.id, messages.session_id, COALESCE(sessions.root_id, sessions.id) AS root, chunks.place,
            messages.text, messages.sender_name, messages.created_at, ({conditions}) AS is_wanted
        FROM json_each(:ids) CROSS JOIN chunks ON chunks.id = json_each.value
        CROSS JOIN messages ON messages.session_id = chunks.session_id
            AND messages.id BETWEEN chunks.first_id AND chunks.last_id
        CROSS JOIN sessions ON sessions.id = messages.session_id {places(conditions)}
        WHERE {SHOWN} AND {visible("sessions.scope_id")}
        """,
        {**parameters, "ids": json.dumps(list(ids))},
    )


def _tail(connection: sqlite3.Connection, query: SearchQuery) -> Iterator[sqlite3.Row]:
    conditions, parameters = filters(query)
    return connection.execute(
        f"""
        SELECT messages.id, messages.session_id, COALESCE(sessions.root_id, sessions.id) AS root,
            (SELECT COALESCE(MAX(place), -1) + 1 FROM chunks WHERE chunks.session_id = messages.session_id) AS place,
            messages.text, messages.sender_name, messages.created_at, ({conditions}) AS is_wanted
        FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id {places(conditions)}
        WHERE messages.id > :until AND {SHOWN} AND {visible("sessions.scope_id")}
        ORDER BY messages.id DESC LIMIT {TAIL_MESSAGES}
        """,
        {**parameters, "until": until(connection)},
    )


def _by_lineage(rows: Iterable[sqlite3.Row]) -> dict[int, list[RankedMessage]]:
    lineages: dict[int, dict[int, RankedMessage]] = {}
    for message_id, session_id, root, place, text, sender_name, created_at, is_wanted in rows:
        lineages.setdefault(root, {})[message_id] = RankedMessage(
            message_id=message_id,
            session_id=session_id,
            block=place,
            terms=terms_of(text),
            name=name_terms(sender_name or ""),
            day=day_of(created_at),
            is_question=is_question(text),
            is_wanted=bool(is_wanted),
        )
    return {root: sorted(found.values()) for root, found in lineages.items()}


def _extend(connection: Connection, session_id: int, scope_id: int, message_ids: list[int]) -> list[int]:
    """Adds messages to the last chunk of a session, then opens the next ones; returns what is to be indexed. Whether
    they come one by one or all at once, the chunks are the same."""
    last = connection.execute(
        "SELECT * FROM chunks WHERE session_id = :session ORDER BY place DESC LIMIT 1", {"session": session_id}
    ).fetchone()
    place = 0
    if last is not None:
        place = last["place"] + 1
        if last["messages"] <= 2 * CHUNK_MESSAGES:
            place = last["place"]
            message_ids = _members(connection, last) + message_ids
            _drop(connection, last["id"])
    made: list[Mapping[str, Any]] = []
    while message_ids:
        size = len(message_ids) if len(message_ids) <= 2 * CHUNK_MESSAGES else CHUNK_MESSAGES
        part, message_ids = message_ids[:size], message_ids[size:]
        made.append({"place": place, "first": part[0], "last": part[-1], "messages": len(part)})
        place += 1
    return [
        connection.execute(
            """
            INSERT INTO chunks (session_id, scope_id, place, first_id, last_id, messages)
            VALUES (:session, :scope, :place, :first, :last, :messages) RETURNING id
            """,
            {**one, "session": session_id, "scope": scope_id},
        ).fetchall()[0][0]
        for one in made
    ]


def _members(connection: Connection, chunk: sqlite3.Row) -> list[int]:
    rows = connection.execute(
        f"SELECT id FROM messages WHERE session_id = :session AND id BETWEEN :first AND :last AND {SHOWN} ORDER BY id",
        {"session": chunk["session_id"], "first": chunk["first_id"], "last": chunk["last_id"]},
    )
    return [row[0] for row in rows]


def _drop(connection: Connection, chunk_id: int) -> None:
    connection.execute(
        "INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id = :id",
        {"id": chunk_id},
    )
    connection.execute("DELETE FROM chunks WHERE id = :id", {"id": chunk_id})


def _index(connection: Connection, ids: Sequence[int]) -> None:
    """All in one statement: with one for each, FTS5 would write a segment for each."""
    these = {"ids": json.dumps(list(ids))}
    connection.execute("UPDATE chunks SET is_indexed = 1 WHERE id IN (SELECT value FROM json_each(:ids))", these)
    connection.execute(
        "INSERT INTO chunks_fts (rowid, terms) SELECT id, terms FROM chunk_texts "
        "WHERE id IN (SELECT value FROM json_each(:ids))",
        these,
    )
