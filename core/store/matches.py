"""Finds the messages that a plan asks for, best first: the statements over the three text indexes.

Scope and all filters stand in the WHERE of every statement, before any limit. Rows come lazily, so that a search stops
as soon as enough sessions are known. Reads only ids and ranks; texts are read by `passages.py`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.folding import SCOPE
from core.plan import Plan, Route
from core.store.codec import clean
from core.store.indexes import plainly
from core.store.match import Match
from core.store.rows import timestamp
from core.store.sight import scope_parameter, visible
from core.types import Query

FEW_SHARE = 0.2
LOOSE_ROWS = 1000
"""Of an any-of-the-words search over several indexes, at most so many rows are ranked together."""


_TABLES: Mapping[Route, str] = {
    "words": "messages_fts",
    "trigram": "messages_fts_trigram",
    "pairs": "messages_fts_pairs",
}

_JOINS = """
    CROSS JOIN messages ON messages.id = hits.rowid
    CROSS JOIN sessions ON sessions.id = messages.session_id
    CROSS JOIN addresses ON addresses.id = sessions.address_id
"""
_FIELDS = "messages.id, messages.session_id, COALESCE(sessions.root_id, sessions.id)"


def find(connection: sqlite3.Connection, plan: Plan, query: Query) -> Iterator[Match]:
    """The messages of a plan, best first, lazily. Raises sqlite3.DatabaseError when an index is damaged."""
    conditions, parameters = filters(query)
    own = _few(connection, query)
    if plan.single is not None:
        route, expression = plan.single
        statement = (
            f"SELECT {_FIELDS}, -hits.rank FROM {_TABLES[route]} AS hits {_JOINS} "
            f"WHERE hits.{_TABLES[route]} MATCH :expression AND {conditions} ORDER BY hits.rank"
        )
        parameters["expression"] = _within(route, expression, own)
    elif plan.alternatives:
        statement = _mixed(plan, conditions, parameters, own)
    else:
        return
    for row in connection.execute(statement, parameters):
        yield Match(*row)


def scan(connection: sqlite3.Connection, terms: tuple[str, ...], query: Query) -> Iterator[Match]:
    """The same without any index, for the time that one is damaged: most terms first, then the newest."""
    conditions, parameters = filters(query)
    parameters["terms"] = json.dumps([plainly(clean(term.rstrip("*"))) for term in terms])
    statement = f"""
        SELECT {_FIELDS}, (
            SELECT COUNT(*) FROM json_each(:terms)
            WHERE instr(plainly(messages.text) || ' ' || plainly(messages.tools), json_each.value) > 0
        ) AS score
        FROM messages AS hits {_JOINS}
        WHERE {conditions} AND messages.kind = 'chat' AND score > 0
        ORDER BY score DESC, messages.id DESC LIMIT {LOOSE_ROWS}
    """
    for row in connection.execute(statement, parameters):
        yield Match(*row)


def filters(query: Query) -> tuple[str, dict[str, Any]]:
    """The conditions of a query on messages, sessions and addresses, and their parameters. Only what is asked for is
    in the statement, so that a plain search touches no more of a row than it must."""
    parts = [visible("sessions.scope_id"), "messages.role IN (SELECT value FROM json_each(:roles))"]
    parameters: dict[str, Any] = {"scopes": scope_parameter(query.scopes), "roles": json.dumps(query.roles)}
    if query.platforms:
        parts.append("addresses.platform IN (SELECT value FROM json_each(:platforms))")
        parameters["platforms"] = json.dumps(query.platforms)
    if query.title:
        parts.append("instr(plainly(sessions.title), :title) > 0")
        parameters["title"] = plainly(clean(query.title))
    if query.sender:
        parts.append("(messages.sender_id = :sender_id OR instr(plainly(messages.sender_name), :sender) > 0)")
        parameters["sender_id"] = clean(query.sender)
        parameters["sender"] = plainly(clean(query.sender))
    if query.after is not None:
        parts.append("messages.created_at >= :after")
        parameters["after"] = timestamp(query.after)
    if query.before is not None:
        parts.append("messages.created_at < :before")
        parameters["before"] = timestamp(query.before)
    if query.session is not None:
        parts.append(
            "COALESCE(sessions.root_id, sessions.id) = "
            "(SELECT COALESCE(own.root_id, own.id) FROM sessions AS own WHERE own.id = :session)"
        )
        parameters["session"] = bounded(query.session)
    if query.hidden is not None:
        parts.append(
            "(messages.id < :hidden_from OR messages.session_id NOT IN (SELECT value FROM json_each(:hidden)))"
        )
        parameters["hidden_from"] = bounded(query.hidden.from_id)
        parameters["hidden"] = json.dumps(query.hidden.session_ids)
    return " AND ".join(parts), parameters


def bounded(number: int) -> int:
    """An id as SQLite can take it; beyond 63 bits there is none."""
    return max(-1, min(number, 2**63 - 1))


def _mixed(plan: Plan, conditions: str, parameters: dict[str, Any], own: Sequence[int]) -> str:
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
        SELECT {_FIELDS}, hits.score FROM hits {_JOINS}
        WHERE {conditions} ORDER BY hits.score DESC, messages.id DESC LIMIT {LOOSE_ROWS}
    """


def _alternative(plan: Plan, number: int, parameters: dict[str, Any], own: Sequence[int]) -> str:
    parts = []
    for index, (route, expression, is_excluded) in enumerate(plan.alternatives[number]):
        name = f"clause_{number}_{index}"
        parameters[name] = _within(route, expression, own)
        table = _TABLES[route]
        parts.append(f"id {'NOT IN' if is_excluded else 'IN'} (SELECT rowid FROM {table} WHERE {table} MATCH :{name})")
    return "(" + " AND ".join(parts) + ")"


def _few(connection: sqlite3.Connection, query: Query) -> list[int]:
    """The scopes of the query as numbers where little of the store is theirs, else none: asking the index for them
    costs more than it spares when they hold much. Measured in chunks, whose counts are at hand."""
    scopes = {"scopes": scope_parameter(query.scopes)}
    own, total = connection.execute(
        f"""
        SELECT COALESCE(SUM(chunks) FILTER (WHERE {visible("chunk_counts.scope_id")}), 0), COALESCE(SUM(chunks), 0)
        FROM chunk_counts
        """,
        scopes,
    ).fetchone()
    if total == 0 or own > FEW_SHARE * total:
        return []
    rows = connection.execute(f"SELECT id FROM scopes WHERE {visible('scopes.id')}", scopes)
    return [row[0] for row in rows]


def _within(route: Route, expression: str, own: Sequence[int]) -> str:
    """The expression, tied to the word that names the scope where the scopes are few."""
    if not own or route == "trigram":
        return expression
    names = " OR ".join(f'"{SCOPE}{scope}"' for scope in own)
    return f"({expression}) AND ({names})"
