"""What a new fact meets: its source as it stands now, the same said before, and what it contradicts.

All functions run inside the caller's transaction, so that what they find still holds when the fact is written.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from core.records import Fact
from core.store import codec, fact_rows, rows


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
    """The open fact in which the same person said the same."""
    row = connection.execute(
        f"""
        SELECT {fact_rows.COLUMNS} FROM facts
        WHERE scope_id = :scope AND account = :account AND folded = :folded AND closed_at IS NULL
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
        WHERE scope_id = :scope AND attribute = :attribute AND account = :account AND closed_at IS NULL
            AND value <> :value
        """,
        _told(fact, scope_id),
    )
    return [fact_rows.fact_of(row) for row in found]


def is_before(fact: Fact, rival: Fact) -> bool:
    """Whether both say since when, and `fact` the earlier moment."""
    return fact.valid_from is not None and rival.valid_from is not None and fact.valid_from < rival.valid_from


def _told(fact: Fact, scope_id: int) -> dict[str, Any]:
    return {
        "scope": scope_id,
        "account": rows.account_key(fact.account) or "",
        "folded": fact_rows.folded(codec.clean(fact.content)),
        "message": fact.message_id,
        "attribute": codec.maybe_clean(fact.attribute),
        "value": codec.clean(fact.value),
    }
