"""Finds the messages that a plan asks for, best first: the statements over the three text indexes.

Scope and all filters stand in the WHERE of every statement, before any limit. Rows come lazily, so that a search stops
as soon as enough sessions are known. Reads only ids and ranks; texts are read by `passages.py`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.search.filters import DEFAULT_ROLES
from core.store.query import MessageMatch, Route, SearchPlan, SearchQuery
from core.store.rows import clean, scope_parameter, timestamp, visible
from core.text.normalize import SCOPE, bare, is_unspaced

VALUE_CHARS = 200
"""A title or a name is compared by so much of it; folding can make eighteen characters of one."""
FEW_SHARE = 0.2
LOOSE_ROWS = 1000
"""Of an any-of-the-words search over several indexes, at most so many rows are ranked together."""
NEWEST: Mapping[Route, int] = {"words": 4_000, "trigram": 300, "pairs": 300}
"""What matches more often is ranked among the newest so many first, and what is older only where these do not give
enough: to rank all is what costs. A word of a script without spaces is common sooner."""
SESSIONS_LOOKED_AT = 1_000
"""Where there are no words, the latest messages are looked for in so many sessions."""

_TABLES: Mapping[Route, str] = {
    "words": "messages_fts",
    "trigram": "messages_fts_trigram",
    "pairs": "messages_fts_pairs",
}

_JOINS = """
    CROSS JOIN messages ON messages.id = hits.rowid
    CROSS JOIN sessions ON sessions.id = messages.session_id
"""
_OWN = """messages.role = 'user' AND (
    sessions.scope_id IN (SELECT id FROM scopes WHERE key IN (SELECT value FROM json_each(:private)))
    OR addresses.platform || ':' || messages.sender_id IN (SELECT value FROM json_each(:accounts))
)"""
_LINEAGE = f"""COALESCE(sessions.root_id, sessions.id) = (
    SELECT COALESCE(own.root_id, own.id) FROM sessions AS own WHERE own.id = :session AND {visible("own.scope_id")}
)"""
_FIELDS = "messages.id, messages.session_id, COALESCE(sessions.root_id, sessions.id)"


def find(connection: sqlite3.Connection, plan: SearchPlan, query: SearchQuery) -> Iterator[MessageMatch]:
    """The messages of a plan, best first, lazily. Raises sqlite3.DatabaseError when an index is damaged."""
    conditions, parameters = filters(query)
    own = _few(connection, query)
    if plan.single is not None:
        route, expression = plan.single
        parameters["expression"] = _within(route, expression, own)
        yield from _ranked(connection, route, conditions, parameters)
        return
    if plan.alternatives:
        statement = _mixed(plan, conditions, parameters, own)
    else:
        return
    for row in connection.execute(statement, parameters):
        yield MessageMatch(*row)


def _ranked(
    connection: sqlite3.Connection, route: Route, conditions: str, parameters: dict[str, Any]
) -> Iterator[MessageMatch]:
    """What one index finds for ``:expression``: the newest by rank, then, where these do not give enough, all else by
    rank. The ranks are computed before anything is joined: asked for in one statement, FTS5 computes them twice."""
    matching = f"FROM {_TABLES[route]} WHERE {_TABLES[route]} MATCH :expression"
    ranked = f"SELECT rowid AS id, rank AS score {matching}"
    parameters["most"] = most = NEWEST[route]
    number = most
    for row in _joined(connection, f"{ranked} ORDER BY rowid DESC LIMIT :most", conditions, parameters):
        number = row[4]
        yield MessageMatch(*row[:4])
    if number < most:
        return
    split = connection.execute(
        f"SELECT rowid {matching} ORDER BY rowid DESC LIMIT 1 OFFSET :most", parameters
    ).fetchone()
    if split is not None:
        parameters["split"] = split[0]
        for row in _joined(connection, f"{ranked} AND rowid <= :split LIMIT -1", conditions, parameters):
            yield MessageMatch(*row[:4])


def _joined(
    connection: sqlite3.Connection, found: str, conditions: str, parameters: dict[str, Any]
) -> Iterator[sqlite3.Row]:
    """Of what was found, by score, what the conditions let through; behind each match, how many were found at all. A
    LIMIT, be it none, is what makes SQLite keep the order of a subquery."""
    return connection.execute(
        f"""
        WITH hits (rowid, score) AS MATERIALIZED (SELECT id, score FROM ({found}) ORDER BY score, id DESC LIMIT -1)
        SELECT {_FIELDS}, -hits.score, (SELECT COUNT(*) FROM hits)
        FROM hits {_JOINS} {places(conditions)} WHERE {conditions}
        """,
        parameters,
    )


def latest(
    connection: sqlite3.Connection, query: SearchQuery, most: int, plan: SearchPlan | None = None
) -> Iterator[MessageMatch]:
    """Without any words: messages that the filters let through and the plan does not leave out, of the session spoken
    in last first, the newest first, at most so many of each session."""
    conditions, parameters = filters(query)
    conditions += _kept(plan, parameters) if plan is not None else ""
    narrowed, wanted = session_filters(query)
    sessions = connection.execute(
        f"""
        SELECT sessions.id FROM sessions CROSS JOIN addresses ON addresses.id = sessions.address_id
        WHERE {visible("sessions.scope_id")} {narrowed} {"" if query.session is None else f"AND {_LINEAGE}"}
        ORDER BY sessions.last_at DESC LIMIT {SESSIONS_LOOKED_AT}
        """,
        {**parameters, **wanted},
    ).fetchall()
    for session in sessions:
        rows = connection.execute(
            f"""
            SELECT {_FIELDS}, 0.0 FROM messages
            CROSS JOIN sessions ON sessions.id = messages.session_id {places(conditions)}
            WHERE messages.session_id = :place AND messages.kind = 'chat' AND messages.text <> '' AND {conditions}
            ORDER BY messages.id DESC LIMIT :most
            """,
            {**parameters, "place": session[0], "most": most},
        )
        yield from (MessageMatch(*row) for row in rows)


def _kept(plan: SearchPlan, parameters: dict[str, Any]) -> str:
    """What is to be left out, asked of each message by its id: few are looked at, and many may match."""
    groups = []
    for number, group in enumerate(plan.without):
        held: list[str] = []
        for route, expression in group:
            name, table = f"without_{number}_{len(held)}", _TABLES[route]
            parameters[name] = expression
            held.append(f"EXISTS (SELECT 1 FROM {table} WHERE {table} MATCH :{name} AND {table}.rowid = messages.id)")
        groups.append(f" AND NOT ({' AND '.join(held)})")
    return "".join(groups)


def scan(connection: sqlite3.Connection, terms: tuple[str, ...], query: SearchQuery) -> Iterator[MessageMatch]:
    """The same without any index, for the time that one is damaged: most terms first, then the newest."""
    conditions, parameters = filters(query)
    parameters["terms"] = json.dumps([bare(clean(term.rstrip("*"))) for term in terms])
    statement = f"""
        SELECT {_FIELDS}, (
            SELECT COUNT(*) FROM json_each(:terms)
            WHERE instr(bare(messages.text) || ' ' || bare(messages.tools), json_each.value) > 0
        ) AS score
        FROM messages AS hits {_JOINS} {places(conditions)}
        WHERE {conditions} AND messages.kind = 'chat' AND score > 0
        ORDER BY score DESC, messages.id DESC LIMIT {LOOSE_ROWS}
    """
    for row in connection.execute(statement, parameters):
        yield MessageMatch(*row)


def filters(query: SearchQuery) -> tuple[str, dict[str, Any]]:
    """The conditions of a query on messages, sessions and addresses, and their parameters. Only what is asked for is
    in the statement, so that a plain search touches no more of a row than it must."""
    parts = [visible("sessions.scope_id")]
    parameters: dict[str, Any] = {"scopes": scope_parameter(query.scopes)}
    if query.roles == DEFAULT_ROLES:
        # To look into a list takes a table of its own, which costs as much as three rows.
        parts.append("messages.role IN ('user', 'assistant')")
    else:
        parts.append("messages.role IN (SELECT value FROM json_each(:roles))")
        parameters["roles"] = json.dumps(query.roles)
    if query.platforms:
        parts.append("addresses.platform IN (SELECT value FROM json_each(:platforms))")
        parameters["platforms"] = json.dumps(query.platforms)
    if query.title:
        parts.append("instr(bare(sessions.title), :title) > 0")
        parameters["title"] = bare(clean(query.title[:VALUE_CHARS]))
    if query.sender and (name := bare(clean(query.sender[:VALUE_CHARS])).strip()):
        # A name begins where a word begins: Ana is not Diana. Names without blanks are found inside of others.
        parts.append("(messages.sender_id = :sender_id OR instr(' ' || bare(messages.sender_name), :sender) > 0)")
        parameters["sender_id"] = clean(query.sender[:VALUE_CHARS])
        parameters["sender"] = name if is_unspaced(name) else f" {name}"
    if query.is_own:
        parts.append(_OWN)
        parameters |= _asker(query)
    if query.after is not None:
        parts.append("messages.created_at >= :after")
        parameters["after"] = timestamp(query.after)
    if query.before is not None:
        parts.append("messages.created_at < :before")
        parameters["before"] = timestamp(query.before)
    if query.session is not None:
        parts.append(_LINEAGE)
        parameters["session"] = bounded(query.session)
    for number, span in enumerate(query.hidden.spans if query.hidden else ()):
        names = [f"hidden_{part}_{number}" for part in ("session", "first", "last")]
        parts.append(f"(messages.session_id <> :{names[0]} OR messages.id NOT BETWEEN :{names[1]} AND :{names[2]})")
        parameters |= dict(zip(names, map(bounded, span), strict=True))
    return " AND ".join(parts), parameters


def places(conditions: str) -> str:
    """The join that conditions on the place need; to look up the place of each match costs a tenth of a search."""
    return "CROSS JOIN addresses ON addresses.id = sessions.address_id" if "addresses." in conditions else ""


def _asker(query: SearchQuery) -> dict[str, Any]:
    """The parameters of `_OWN`: where nobody else speaks, and who the asker is elsewhere."""
    private = [scope for scope in query.scopes if not scope.is_room]
    accounts = {scope.key.partition(":")[2] for scope in private} | ({query.asker.key} if query.asker else set())
    return {"private": scope_parameter(private), "accounts": json.dumps(sorted(clean(key) for key in accounts))}


def session_filters(
    query: SearchQuery, sessions: str = "sessions", addresses: str = "addresses"
) -> tuple[str, dict[str, Any]]:
    """What the filters say of whole sessions, to be joined to a WHERE: a session with a message of the time that is
    asked for began before its end and was spoken in after its beginning. The tables go by these names."""
    parts: list[str] = []
    parameters: dict[str, Any] = {}
    if query.platforms:
        parts.append(f"AND {addresses}.platform IN (SELECT value FROM json_each(:platforms))")
        parameters["platforms"] = json.dumps(query.platforms)
    if query.title:
        parts.append(f"AND instr(bare({sessions}.title), :title) > 0")
        parameters["title"] = bare(clean(query.title[:VALUE_CHARS]))
    if query.after is not None:
        parts.append(f"AND {sessions}.last_at >= :after")
        parameters["after"] = timestamp(query.after)
    if query.before is not None:
        parts.append(f"AND {sessions}.started_at < :before")
        parameters["before"] = timestamp(query.before)
    return " ".join(parts), parameters


def bounded(number: int) -> int:
    """An id as SQLite can take it; beyond 63 bits there is none."""
    return max(-1, min(number, 2**63 - 1))


def _mixed(plan: SearchPlan, conditions: str, parameters: dict[str, Any], own: Sequence[int]) -> str:
    """Several indexes: what any of them ranks, summed, as far as one of the alternatives holds."""
    ranked = []
    for number, (route, expression) in enumerate(plan.ranking):
        parameters[f"ranking_{number}"] = _within(route, expression, own)
        table = _TABLES[route]
        ranked.append(f"SELECT rowid AS id, rank AS score FROM {table} WHERE {table} MATCH :ranking_{number}")
    held = (
        []
        if plan.is_loose
        else [_alternative(plan, number, parameters, own) for number in range(len(plan.alternatives))]
    )
    return f"""
        WITH hits (rowid, score) AS (
            SELECT id, -SUM(score) FROM ({" UNION ALL ".join(ranked)})
            {"WHERE " + " OR ".join(held) if held else ""}
            GROUP BY id
        )
        SELECT {_FIELDS}, hits.score FROM hits {_JOINS} {places(conditions)}
        WHERE {conditions} ORDER BY hits.score DESC, messages.id DESC LIMIT {LOOSE_ROWS}
    """


def _alternative(plan: SearchPlan, number: int, parameters: dict[str, Any], own: Sequence[int]) -> str:
    parts = []
    for index, (route, expression, is_excluded) in enumerate(plan.alternatives[number]):
        name = f"clause_{number}_{index}"
        parameters[name] = _within(route, expression, own)
        table = _TABLES[route]
        parts.append(f"id {'NOT IN' if is_excluded else 'IN'} (SELECT rowid FROM {table} WHERE {table} MATCH :{name})")
    return "(" + " AND ".join(parts) + ")"


def _few(connection: sqlite3.Connection, query: SearchQuery) -> list[int]:
    """The scopes of the query as numbers where little of the store is theirs, else none: asking the index for them
    costs more than it spares when they hold much. Measured in chunks, whose counts are at hand; their last id is about
    how many there are."""
    rows = connection.execute(
        f"""
        SELECT scopes.id, (SELECT chunks FROM chunk_counts WHERE scope_id = scopes.id),
            (SELECT COALESCE(MAX(id), 0) FROM chunks)
        FROM scopes WHERE {visible("scopes.id")}
        """,
        {"scopes": scope_parameter(query.scopes)},
    ).fetchall()
    if not rows or sum(row[1] or 0 for row in rows) >= FEW_SHARE * rows[0][2]:
        return []
    return [row[0] for row in rows]


def _within(route: Route, expression: str, own: Sequence[int]) -> str:
    """The expression, tied to the word that names the scope where the scopes are few."""
    if not own or route == "trigram":
        return expression
    names = " OR ".join(f'"{SCOPE}{scope}"' for scope in own)
    return f"({expression}) AND ({names})"
