"""Build SQL conditions for the rows that a read may return: scopes and search filters.

A person may see a row only if its scope is one of the person's scopes, which
`People.load_visible_scopes` loads. Every statement that reads for a person contains the condition
`visible`, and no caller filters the results. `check_epoch` refuses a write if the data on which it
is based was erased since (see `core/store/erasure`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from core.errors import StaleReadError
from core.store.engine import Connection, SqlCondition, in_list, overlaps
from core.store.query import DEFAULT_ROLES, FILE_KINDS, SearchFilters, SearchQuery
from core.store.rows import DELEGATED_SESSION_IDS, clean, get_meta, int64_or_zero, to_timestamp
from core.text.normalize import comparison_form, is_unspaced
from core.types import ErasureEpoch, Scope


def encode_list(values: Iterable[int | str]) -> str:
    """Encode a list as JSON, to bind it to a statement or to store it in a column."""
    return json.dumps(list(values))


# --- Scopes ---


@cache
def visible(column: str = "sessions.scope_id") -> str:
    """Return the SQL condition that `column` contains the id of one of the scopes ``:scopes``."""
    return f"{column} IN (SELECT id FROM scopes WHERE {in_list('key', 'scopes')})"


@lru_cache(maxsize=256)
def scope_parameter(scopes: frozenset[Scope]) -> str:
    """Encode scopes as the value of ``:scopes``.

    Keys with a NUL character are left out. SQLite's JSON reader would end such a key at the NUL,
    and the shortened key could be the key of another scope.
    """
    return encode_list(sorted({scope.key for scope in scopes if "\0" not in scope.key}))


# --- Filters of a search ---

MAX_FILTER_CHARS = 200
"""A title or name in a filter is cut to this length. Folding can turn one character into 18."""


# An exported private chat has the name of the other person.
_IS_OF_OTHER_PERSON = """(
    messages.origin = 'imported' AND COALESCE(messages.sender_name = sessions.title, FALSE)
)"""
_IS_ASKERS_OWN = f"""(messages.role = 'user' AND (
    sessions.scope_id IN (SELECT id FROM scopes WHERE {in_list("key", "private")})
    AND NOT {_IS_OF_OTHER_PERSON}
    OR {in_list("addresses.platform || ':' || messages.sender_id", "accounts")}
))"""
_IS_FROM_SENDER = (
    "(messages.sender_id = :sender_id OR instr(' ' || bare(messages.sender_name), :sender) > 0)"
)
_HAS_FILE = f"""EXISTS (
    SELECT 1 FROM message_files WHERE message_files.message_id = {{message_id}}
        AND (:file_kinds IS NULL OR {in_list("message_files.kind", "file_kinds")})
        AND instr(bare(message_files.name), :file_name) > 0
)"""
# The session `:session`, or any session of its lineage. With `:has_delegated`, a delegated session
# belongs to the lineage of the session that started it.
IS_IN_LINEAGE = f"""(sessions.id = :session OR COALESCE(sessions.root_id, (
    SELECT COALESCE(asking.root_id, asking.id) FROM sessions AS asking
    WHERE asking.id = sessions.parent_id AND sessions.is_delegated AND :has_delegated
), sessions.id) = (
    SELECT COALESCE(own.root_id, own.id) FROM sessions AS own
    WHERE own.id = :session AND {visible("own.scope_id")}
))"""


def session_filters(
    query: SearchQuery, sessions: str = "sessions", addresses: str = "addresses"
) -> SqlCondition:
    """Return a query's filters on whole sessions as a condition that begins with AND.

    The condition is empty if the query has no such filter. `sessions` and `addresses` are the names
    of these tables in the statement.
    """
    conditions = _session_conditions(query, sessions, addresses)
    after, before = query.filters.after, query.filters.before
    if after is not None:
        conditions.append(
            SqlCondition(f"{sessions}.last_at >= :after", {"after": to_timestamp(after)})
        )
    if before is not None:
        conditions.append(
            SqlCondition(f"{sessions}.started_at < :before", {"before": to_timestamp(before)})
        )
    # The empty first condition makes the result begin with " AND ".
    return _join_conditions([SqlCondition("", {}), *conditions])


def _session_conditions(query: SearchQuery, sessions: str, addresses: str) -> list[SqlCondition]:
    """Return a query's filters on sessions, without those on the session's time."""
    filters = query.filters
    conditions: list[SqlCondition] = []
    if filters.session_id is None and not filters.has_delegated:
        conditions.append(SqlCondition(f"{sessions}.id NOT IN ({DELEGATED_SESSION_IDS})", {}))
    if filters.platforms:
        is_on_platform = in_list(f"{addresses}.platform", "platforms")
        conditions.append(
            SqlCondition(is_on_platform, {"platforms": encode_list(filters.platforms)})
        )
    if filters.title:
        title = comparison_form(clean(filters.title[:MAX_FILTER_CHARS]))
        conditions.append(
            SqlCondition(f"instr(bare({sessions}.title), :title) > 0", {"title": title})
        )
    return conditions


def message_filters(query: SearchQuery) -> SqlCondition:
    """Return all filters of a query as one condition on a message and its session."""
    filters = query.filters
    conditions = [
        _has_role(filters),
        *_session_conditions(query, "sessions", "addresses"),
        *_is_from_sender(filters),
    ]
    if filters.is_askers_own:
        conditions.append(askers_own(query))
    if filters.after is not None:
        after = to_timestamp(filters.after)
        conditions.append(SqlCondition("messages.created_at >= :after", {"after": after}))
    if filters.before is not None:
        before = to_timestamp(filters.before)
        conditions.append(SqlCondition("messages.created_at < :before", {"before": before}))
    if filters.session_id is not None:
        lineage = {
            "session": int64_or_zero(filters.session_id),
            "has_delegated": filters.has_delegated,
        }
        conditions.append(SqlCondition(IS_IN_LINEAGE, lineage))
    if filters.file_kind or filters.file_name:
        conditions.append(file_condition(filters, "messages.id"))
    conditions += _not_hidden(query)
    return _join_conditions(conditions)


def _has_role(filters: SearchFilters) -> SqlCondition:
    """Return the condition that a message has one of the roles."""
    if filters.roles == DEFAULT_ROLES:
        # Constants are faster, because SQLite reads a bound list like a table.
        return SqlCondition("messages.role IN ('user', 'assistant')", {})
    return SqlCondition(in_list("messages.role", "roles"), {"roles": encode_list(filters.roles)})


def _is_from_sender(filters: SearchFilters) -> list[SqlCondition]:
    """Return the condition that a message has the sender, or none without this filter.

    A name matches at the beginning of a word, so "Ana" isn't found in "Diana". In scripts without
    spaces, it matches anywhere.
    """
    sender = clean((filters.sender or "")[:MAX_FILTER_CHARS])
    name = comparison_form(sender).strip()
    if not name:
        return []
    beginning = name if is_unspaced(name) else f" {name}"
    return [SqlCondition(_IS_FROM_SENDER, {"sender_id": sender, "sender": beginning})]


def file_condition(filters: SearchFilters, message_id: str) -> SqlCondition:
    """Return the condition that a message has a file of a kind or with a name.

    `message_id` is the column with the id of the message.
    """
    kinds = None
    if filters.file_kind is not None:
        kinds = encode_list(FILE_KINDS.get(filters.file_kind, (filters.file_kind,)))
    name = comparison_form(clean(filters.file_name[:MAX_FILTER_CHARS])).strip()
    sql = _HAS_FILE.format(message_id=message_id)
    return SqlCondition(sql, {"file_kinds": kinds, "file_name": name})


def askers_own(query: SearchQuery) -> SqlCondition:
    """Return the condition that the asker sent a message.

    In private scopes, the asker sent all messages with the role "user", except those of the other
    person in an imported chat. In groups, the sender must be one of the asker's accounts.
    """
    private = frozenset(scope for scope in query.scopes if not scope.is_group)
    accounts = {scope.key.partition(":")[2] for scope in private}
    if query.asker is not None:
        accounts.add(query.asker.key)
    values = {
        "private": scope_parameter(private),
        "accounts": encode_list(sorted(map(clean, accounts))),
    }
    return SqlCondition(_IS_ASKERS_OWN, values)


def _not_hidden(query: SearchQuery) -> list[SqlCondition]:
    """Return conditions that exclude messages in the model's context, one per span of ids."""
    conditions: list[SqlCondition] = []
    for number, (session_id, first_id, last_id) in enumerate(query.hidden):
        session, first, last = f"session_{number}", f"first_{number}", f"last_{number}"
        sql = f"(messages.session_id <> :{session} OR messages.id NOT BETWEEN :{first} AND :{last})"
        values = {
            session: int64_or_zero(session_id),
            first: int64_or_zero(first_id),
            last: int64_or_zero(last_id),
        }
        conditions.append(SqlCondition(sql, values))
    return conditions


def _join_conditions(conditions: Iterable[SqlCondition]) -> SqlCondition:
    conditions = list(conditions)
    values: dict[str, Any] = {}
    for condition in conditions:
        values |= condition.values
    return SqlCondition(" AND ".join(condition.sql for condition in conditions), values)


def address_join(*conditions: str) -> str:
    """Return the SQL that joins addresses, or "" if no condition needs it.

    Without the join, a search is about a tenth faster.
    """
    if not any("addresses." in condition for condition in conditions):
        return ""
    return "CROSS JOIN addresses ON addresses.id = sessions.address_id"


EPOCH_META_KEY = "erasures"
"""The key in `state_meta` for the number of the epoch.

The number increases when an erasure begins or finishes, and when scopes are detached. As long as
the number doesn't change, a write needs no other check of its epoch.
"""
# Selects a row if data in the epoch's scopes is being erased, or was erased or detached since.
_SELECT_CONFLICT = f"""
SELECT 1 FROM erasures
WHERE started_at IS NOT NULL AND COALESCE(epoch, 9223372036854775807) > :number
    AND {overlaps("erasures.scopes", "scopes")}
UNION ALL
SELECT 1 FROM scope_detachments
WHERE epoch > :number AND {overlaps("scope_detachments.scopes", "scopes")}
LIMIT 1
"""


def current_epoch(connection: Connection, scopes: str) -> ErasureEpoch | None:
    """Return the current epoch, or None while an erasure runs in one of these scopes.

    `scopes` is a result of `scope_parameter`.
    """
    epoch = ErasureEpoch(scopes, epoch_number(connection))
    return None if _has_conflict(connection, epoch) else epoch


def check_epoch(connection: Connection, epoch: ErasureEpoch | None) -> None:
    """Raise StaleReadError if data in the epoch's scopes was erased since the epoch.

    A running erasure counts, and so do scopes that were detached since the epoch.
    """
    if epoch is None or epoch_number(connection) == epoch.number:
        return
    if _has_conflict(connection, epoch):
        raise StaleReadError("forgotten_meanwhile")


def epoch_number(connection: Connection) -> int:
    return int(get_meta(connection, EPOCH_META_KEY) or 0)


def _has_conflict(connection: Connection, epoch: ErasureEpoch) -> bool:
    values = {"number": epoch.number, "scopes": epoch.scopes}
    return connection.execute(_SELECT_CONFLICT, values).fetchone() is not None
