"""Build conditions that exclude most hits of an index before they are ranked.

Ranking takes most of the time of a search. If the filters keep only a few hits, such as those of
one day, it is much faster to look up each hit by its id first. A query without filters needs no
condition. A condition may keep too many hits, because the search applies all filters to the ranked
hits.
"""

from __future__ import annotations

from dataclasses import replace

from core.store.engine import NO_CONDITION, SqlCondition, TextIndex
from core.store.query import SearchFilters, SearchQuery
from core.store.visibility import (
    address_join,
    file_condition,
    message_filters,
    scope_parameter,
    session_filters,
    visible,
)

_VISIBLE = visible("sessions.scope_id")
_SESSIONS = f"""
    SELECT sessions.id FROM sessions CROSS JOIN addresses ON addresses.id = sessions.address_id
    WHERE {_VISIBLE}
"""
_LINEAGE = f"""
    SELECT part.id FROM sessions AS part WHERE COALESCE(part.root_id, part.id) = (
        SELECT COALESCE(own.root_id, own.id) FROM sessions AS own
        WHERE own.id = :session AND {visible("own.scope_id")}
    )
"""
# The bounds are read from an index, so the text index reads no hits outside of them.
_IN_LINEAGE = f"""
    AND {{hit}} >= (
        SELECT MIN(bound.id) FROM {{table}} AS bound WHERE bound.session_id IN ({_LINEAGE})
    ) AND {{hit}} <= (
        SELECT MAX(bound.id) FROM {{table}} AS bound WHERE bound.session_id IN ({_LINEAGE})
    )
"""
_HAS_FILE = """
    AND {hit} >= (
        SELECT MIN(bound.message_id) FROM message_files AS bound WHERE bound.message_id IS NOT NULL
    ) AND {hit} <= (
        SELECT MAX(bound.message_id) FROM message_files AS bound WHERE bound.message_id IS NOT NULL
    ) AND {condition}
"""


def narrow_messages(query: SearchQuery, index: TextIndex) -> SqlCondition:
    """Return a condition on the messages that an index finds. It begins with AND, or is empty."""
    filters = query.filters
    conditions: list[SqlCondition] = []
    if filters.session_id is not None and not filters.has_delegated:
        conditions.append(_in_lineage(query, index.message_hit, "messages"))
    if filters.file_kind or filters.file_name:
        condition = file_condition(filters, index.message_hit)
        sql = _HAS_FILE.format(hit=index.message_hit, condition=condition.sql)
        conditions.append(SqlCondition(sql, condition.values))
    if filters.platforms or filters.title:
        conditions.append(_in_sessions(query, "messages", index.message_hit))
    row_filters = SearchFilters(
        roles=filters.roles,
        sender=filters.sender,
        is_askers_own=filters.is_askers_own,
        after=filters.after,
        before=filters.before,
        # Which delegated sessions are searched depends on filters that aren't applied here.
        has_delegated=True,
    )
    if row_filters != SearchFilters(has_delegated=True):
        conditions.append(_in_messages(replace(query, filters=row_filters, hidden=()), index))
    return _join(query, conditions)


def narrow_chunks(query: SearchQuery, index: TextIndex) -> SqlCondition:
    """Return a condition on the chunks that an index finds. It begins with AND, or is empty.

    It keeps the chunks of every session that may have a message that passes the filters.
    """
    filters = query.filters
    conditions: list[SqlCondition] = []
    if filters.session_id is not None and not filters.has_delegated:
        conditions.append(_in_lineage(query, index.chunk_hit, "chunks"))
    has_time = filters.after is not None or filters.before is not None
    if has_time or filters.platforms or filters.title:
        conditions.append(_in_sessions(query, "chunks", index.chunk_hit))
    return _join(query, conditions)


def _in_lineage(query: SearchQuery, hit: str, table: str) -> SqlCondition:
    """Return the condition that the id of a hit is between the first and last id of a lineage."""
    lineage = replace(query, filters=SearchFilters(session_id=query.filters.session_id), hidden=())
    sql = _IN_LINEAGE.format(hit=hit, table=table)
    return SqlCondition(sql, {"session": message_filters(lineage).values["session"]})


def _in_sessions(query: SearchQuery, table: str, hit: str) -> SqlCondition:
    """Return the condition that a hit is in a session that passes the filters on sessions.

    If no session passes, the first part of the condition is false for all hits, so no hit is looked
    up.
    """
    conditions, values = session_filters(query)
    sql = f"""AND EXISTS ({_SESSIONS} {conditions}) AND EXISTS (
        SELECT 1 FROM {table} AS narrowed
        WHERE narrowed.id = {hit} AND narrowed.session_id IN ({_SESSIONS} {conditions})
    )"""
    return SqlCondition(sql, values)


def _in_messages(query: SearchQuery, index: TextIndex) -> SqlCondition:
    """Return the condition that a hit passes the filters on messages."""
    filters, values = message_filters(query)
    sql = f"""AND EXISTS (
        SELECT 1 FROM messages
        CROSS JOIN sessions ON sessions.id = messages.session_id {address_join(filters)}
        WHERE messages.id = {index.message_hit} AND {filters}
    )"""
    return SqlCondition(sql, values)


def _join(query: SearchQuery, conditions: list[SqlCondition]) -> SqlCondition:
    if not conditions:
        return NO_CONDITION
    values: dict[str, object] = {"scopes": scope_parameter(query.scopes)}
    for condition in conditions:
        values |= condition.values
    return SqlCondition(" ".join(condition.sql for condition in conditions), values)
