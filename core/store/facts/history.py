"""Read facts and their changes in pages, latest first.

A page starts after a given id, and each scope has an index in this order. So every page reads only
its own rows, however long the list is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from core.store import rows
from core.store.engine import Connection, Database, Row, in_list
from core.store.facts.rows import FACT_COLUMNS, SELECT_VISIBLE, Fact, read_fact
from core.store.visibility import encode_list, scope_parameter, visible
from core.types import Account, Scopes

# Higher than all ids.
LAST_ID = 2**62

_IS_NEXT_IN_SCOPE = (
    "scope_id = (SELECT id FROM scopes WHERE key = :scope) AND id < :before "
    "ORDER BY id DESC LIMIT :limit"
)
_SELECT_FACTS = f"SELECT {FACT_COLUMNS} FROM facts WHERE facts.{_IS_NEXT_IN_SCOPE}"
_SELECT_CHANGES = f"""
SELECT fact_changes.*, id = (
    SELECT MAX(later.id) FROM fact_changes AS later WHERE later.fact_id = fact_changes.fact_id
) AS is_last, (
    SELECT COUNT(*) FROM fact_changes AS each WHERE each.fact_id = fact_changes.fact_id
) AS total
FROM fact_changes WHERE {_IS_NEXT_IN_SCOPE}
"""
# A fact's position in a list: pinned, then open, then closed facts, each group latest first.
_PLACE = "is_pinned, closed_at IS NULL, last_at, id"
FIRST_PLACES_FIRST = (
    "ORDER BY is_pinned DESC, closed_at IS NULL DESC, last_at DESC, id DESC LIMIT :limit"
)
_SELECT_FIRST = f"""
SELECT {FACT_COLUMNS} FROM facts WHERE facts.scope_id = (SELECT id FROM scopes WHERE key = :scope)
{FIRST_PLACES_FIRST}
"""
_PLACE_OF_BOUND = f"(SELECT {_PLACE} FROM facts WHERE id = :bound AND {visible('facts.scope_id')})"
_SELECT_AFTER = f"{SELECT_VISIBLE} AND ({_PLACE}) < {_PLACE_OF_BOUND} {FIRST_PLACES_FIRST}"
_SELECT_BEFORE = f"""
{SELECT_VISIBLE} AND ({_PLACE}) > {_PLACE_OF_BOUND}
ORDER BY is_pinned, closed_at IS NULL, last_at, id LIMIT :limit
"""
_SELECT_CHANGED = f"""
SELECT fact_id, COUNT(*) AS number FROM fact_changes
WHERE {visible("scope_id")} AND {in_list("fact_id", "ids")}
GROUP BY fact_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedFactChange:
    """A change of a fact, as a person's history shows it."""

    id: int
    fact_id: int
    # The same as in `FactChange`.
    action: str
    at: datetime
    reason: str
    account: Account | None
    message_id: int | None
    # The wording before the change, or None if the fact is new.
    before: str | None
    # The wording after the change.
    after: str
    # Whether this is the fact's last change, which can be undone.
    is_last: bool
    # How many changes the fact has.
    total: int


class _Numbered(Protocol):
    @property
    def id(self) -> int: ...


Item = TypeVar("Item", bound=_Numbered)


async def list_latest_facts(
    database: Database, scopes: Scopes, limit: int, before: int = LAST_ID
) -> list[Fact]:
    """List visible facts with an id below `before`, in reverse order of learning."""
    return await database.read(
        lambda connection: _walk(connection, _SELECT_FACTS, read_fact, scopes, limit, before)
    )


async def list_first_facts(database: Database, scopes: Scopes, limit: int) -> list[Fact]:
    """List the first visible facts in the order of `Facts.list_page`, without reading the rest.

    Each scope takes one statement, so don't use this while a message waits for its answer.
    """

    def read(connection: Connection) -> list[Fact]:
        facts: list[Fact] = []
        for key in _list_keys(scopes):
            values = {"scope": key, "limit": limit}
            facts += [read_fact(row) for row in connection.execute(_SELECT_FIRST, values)]
        facts.sort(key=_find_place, reverse=True)
        return facts[:limit]

    return await database.read(read)


def _find_place(fact: Fact) -> tuple[bool, bool, datetime, int]:
    """Return the sort key of a fact in the list. Facts with a higher key come first."""
    return fact.is_pinned, fact.is_open, fact.last_said_at, fact.id


async def list_facts_after(
    database: Database, scopes: Scopes, fact_id: int, limit: int
) -> list[Fact]:
    """List the visible facts that follow `fact_id` in the order of `Facts.list_page`.

    The list is empty if that fact isn't visible.
    """
    return await _list_around(database, _SELECT_AFTER, scopes, fact_id, limit)


async def list_facts_before(
    database: Database, scopes: Scopes, fact_id: int, limit: int
) -> list[Fact]:
    """List the visible facts right before `fact_id` in the order of `Facts.list_page`.

    The list is empty if that fact isn't visible.
    """
    return (await _list_around(database, _SELECT_BEFORE, scopes, fact_id, limit))[::-1]


async def _list_around(
    database: Database, statement: str, scopes: Scopes, fact_id: int, limit: int
) -> list[Fact]:
    """List the facts before or after a fact.

    `statement` selects them and has the id of the fact as a parameter.
    """
    values = {
        "scopes": scope_parameter(scopes),
        "bound": rows.int64_or_zero(fact_id),
        "limit": limit,
    }
    return [read_fact(row) for row in await database.fetch_all(statement, values)]


async def list_latest_changes(
    database: Database, scopes: Scopes, limit: int, before: int = LAST_ID
) -> list[LoggedFactChange]:
    """List visible changes of facts with an id below `before`, latest first."""
    return await database.read(
        lambda connection: _walk(connection, _SELECT_CHANGES, _read_change, scopes, limit, before)
    )


async def count_changes(
    database: Database, scopes: Scopes, facts: Sequence[Fact]
) -> Mapping[int, int]:
    """Return how many changes each fact has, by fact id. The first change learned the fact."""
    ids = encode_list([fact.id for fact in facts])
    values = {"ids": ids, "scopes": scope_parameter(scopes)}
    changed_rows = await database.fetch_all(_SELECT_CHANGED, values)
    return {row["fact_id"]: row["number"] for row in changed_rows}


def _walk(
    connection: Connection,
    statement: str,
    read: Callable[[Row], Item],
    scopes: Scopes,
    limit: int,
    before: int,
) -> list[Item]:
    """Return the items with the highest ids among all scopes."""
    items: list[Item] = []
    for key in _list_keys(scopes):
        values = {"scope": key, "before": before, "limit": limit}
        items += [read(row) for row in connection.execute(statement, values)]
    items.sort(key=lambda item: item.id, reverse=True)
    return items[:limit]


def _list_keys(scopes: Scopes) -> Iterator[str]:
    """Yield the keys of scopes, but not keys with a NUL, which the store doesn't contain."""
    for scope in scopes:
        if "\0" not in scope.key:
            yield rows.clean(scope.key)


def _read_change(row: Row) -> LoggedFactChange:
    before = json.loads(row["before"]) if row["before"] else None
    after = json.loads(row["after"]) if row["after"] else before
    fields = rows.read_fields(row, LoggedFactChange)
    fields["before"] = None if before is None else before["content"]
    fields["after"] = "" if after is None else after["content"]
    return LoggedFactChange(**fields)
