"""What a new fact meets: its source as it stands now, the same said before, and what it contradicts.

All functions run inside the caller's transaction, so that what they find still holds when the fact is written.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from core.facts.attributes import ME
from core.facts.patterns_english import KINDS_OF_KIN
from core.records import Fact, Grain
from core.store import codec, fact_rows, rows

_GRAINS: Mapping[Grain, timedelta] = {
    "day": timedelta(hours=20),
    "month": timedelta(days=28),
    "year": timedelta(days=365),
}
"""The least that a day, a month and a year may last."""


def is_unheard(connection: sqlite3.Connection, fact: Fact, heard: str | None) -> bool:
    """Whether the message of a fact does not say any more what was `heard` when the fact was read out of it: it was
    edited, erased or deleted meanwhile. None: it is enough that it was not erased."""
    if fact.message_id is None:
        return False
    row = connection.execute("SELECT text FROM messages WHERE id = :id", {"id": fact.message_id}).fetchone()
    if heard is None:
        return row is not None and not row["text"]
    return row is None or row["text"] != codec.clean(heard)


def told_by(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> Fact | None:
    """What was learned from the same message already, in these words or of the same attribute with the same value,
    whatever became of it since."""
    row = connection.execute(
        f"""
        SELECT {fact_rows.COLUMNS} FROM facts
        WHERE message_id = :message AND scope_id = :scope AND account = :account
            AND (folded = :folded OR (attribute = :attribute AND value = :value AND value <> ''))
        ORDER BY folded = :folded DESC, id LIMIT 1
        """,
        _told(fact, scope_id),
    ).fetchone()
    return None if row is None else fact_rows.fact_of(row)


def told_before(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> Fact | None:
    """The open fact in which the same person said the same, or the same birthday with its year."""
    row = connection.execute(
        f"""
        SELECT {fact_rows.COLUMNS} FROM facts
        WHERE scope_id = :scope AND account = :account AND closed_at IS NULL AND folded = :folded
        UNION ALL
        SELECT {fact_rows.COLUMNS} FROM facts
        WHERE scope_id = :scope AND account = :account AND closed_at IS NULL AND attribute = :attribute
            AND :attribute LIKE '%|birthday' AND value LIKE :value || '._%'
        LIMIT 1
        """,
        _told(fact, scope_id),
    ).fetchone()
    return None if row is None else fact_rows.fact_of(row)


def rivals(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> list[Fact]:
    """What the same person said of the same attribute otherwise; nobody closes what another has said."""
    if fact.attribute is None:
        return []
    found = connection.execute(
        f"""
        SELECT {fact_rows.COLUMNS} FROM facts
        WHERE scope_id = :scope AND attribute IN (SELECT value FROM json_each(:attributes)) AND account = :account
            AND closed_at IS NULL AND facts.value <> :value
        """,
        {**_told(fact, scope_id), "attributes": json.dumps(_names_of(connection, fact, scope_id))},
    )
    return [fact_rows.fact_of(row) for row in found]


def successor(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> Fact:
    """What came next after a fact that is known to be over: the first that the same person said otherwise of the
    attribute, still so or over itself. There must be one."""
    found = connection.execute(
        f"""
        SELECT {fact_rows.COLUMNS} FROM facts
        WHERE scope_id = :scope AND attribute IN (SELECT value FROM json_each(:attributes)) AND account = :account
            AND facts.value <> :value AND (closed_at IS NULL OR valid_to IS NOT NULL)
        """,
        {**_told(fact, scope_id), "attributes": json.dumps(_names_of(connection, fact, scope_id))},
    )
    return min((rival for rival in map(fact_rows.fact_of, found) if is_before(fact, rival)), key=start)


def predecessors(connection: sqlite3.Connection, fact: Fact, next_id: int) -> list[Fact]:
    """What `next_id` has closed, though `fact` lies between."""
    found = connection.execute(
        f"SELECT {fact_rows.COLUMNS} FROM facts WHERE closed_by = :next AND valid_to IS NOT NULL", {"next": next_id}
    )
    known = [fact_rows.fact_of(row) for row in found]
    return [one for one in known if one.id != fact.id and one.value != fact.value and not is_before(fact, one)]


def is_before(fact: Fact, rival: Fact) -> bool:
    """Whether `fact` held earlier: by since when they hold, as exactly as it is known; else by when they were said,
    which is not always the order in which they are learned."""
    if fact.valid_from is not None and rival.valid_from is not None:
        if fact.valid_from + _GRAINS[fact.grain] <= rival.valid_from:
            return True
        if rival.valid_from + _GRAINS[rival.grain] <= fact.valid_from:
            return False
    return (fact.last_at or fact.created_at) < (rival.last_at or rival.created_at)


def start(fact: Fact) -> datetime:
    """Since when it is known to hold."""
    return fact.valid_from or fact.created_at


def _names_of(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> list[str]:
    """The attribute of a fact, also under its other name: "my sister" and "ana" are one where there is one sister, and
    she is known to be Ana. Of rooms, where several have a sister, only the one name."""
    attribute = codec.maybe_clean(fact.attribute) or ""
    subject, _, what = attribute.partition("|")
    if fact.scope.is_room or subject == ME or not what:
        return [attribute]
    is_kin = subject.startswith("my ")
    kinds = [subject.removeprefix("my ")] if is_kin else list(KINDS_OF_KIN)
    known = connection.execute(
        """
        SELECT kin.value AS kin, facts.value AS name FROM json_each(:kinds) AS kin CROSS JOIN facts
        WHERE facts.scope_id = :scope AND facts.account = :account AND facts.closed_at IS NULL AND facts.value <> ''
            AND facts.attribute >= :me || kin.value AND facts.attribute < :me || kin.value || '}'
            AND facts.attribute IN (:me || kin.value, :me || kin.value || '|' || facts.value)
        """,
        {
            "kinds": json.dumps(kinds),
            "me": f"{ME}|",
            "scope": scope_id,
            "account": rows.account_key(fact.account) or "",
        },
    ).fetchall()
    named: dict[str, set[str]] = {}
    for row in known:
        named.setdefault(row["kin"], set()).add(row["name"])
    only = {kin: next(iter(names)) for kin, names in named.items() if len(names) == 1}
    others = [name if is_kin else f"my {kin}" for kin, name in only.items() if is_kin or name == subject]
    return [attribute, *(f"{other}|{what}" for other in others)]


def _told(fact: Fact, scope_id: int) -> dict[str, Any]:
    return {
        "scope": scope_id,
        "account": rows.account_key(fact.account) or "",
        "folded": fact_rows.folded(codec.clean(fact.content)),
        "message": fact.message_id,
        "attribute": codec.maybe_clean(fact.attribute),
        "value": codec.clean(fact.value),
    }
