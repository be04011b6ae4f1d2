"""Define facts, and read, store and log their rows.

All functions run inside their caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from core.errors import Refused
from core.store import rows
from core.store.engine import Connection, Row
from core.store.notes import Author
from core.store.visibility import scope_parameter, visible
from core.text.normalize import fold, plain_with_offsets, words_of
from core.text.terms import entity_key
from core.types import Account, Scope, Scopes

FactKind = Literal["identity", "project", "episode", "working"]
"""identity: who a person is, and what they own or prefer. project: plans and decisions. episode: an
event. working: matters only for a few days."""
FactOrigin = Literal["person", "rule", "model"]
"""person: a person asked Mneme to remember the fact. rule, model: a rule or a model found the fact
in a person's words."""
Precision = Literal["day", "month", "year"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A statement that a person has made, such as "my sister lives in Rome"."""

    scope: Scope
    content: str
    kind: FactKind
    origin: FactOrigin
    created_at: datetime
    # From 0 to 1. Facts with less trust rank lower.
    trust: float = 0.6
    # A property with only one value, such as ``me|home``. None if several facts of this kind can be
    # true at once.
    attribute: str | None = None
    # The attribute's value, folded for comparison.
    value: str = ""
    entities: tuple[str, ...] = ()
    # How often the person has said the fact in these words.
    mention_count: int = 1
    # The fact holds from `valid_from` until just before `valid_to`. None means unknown.
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    # How exactly `valid_from` is known.
    precision: Precision = "day"
    # When the fact was last said.
    last_at: datetime | None = None
    # When the fact was closed, and the id of the fact that replaced it.
    closed_at: datetime | None = None
    closed_by: int | None = None
    # The last message that says the fact.
    message_id: int | None = None
    # The account of the person who said the fact.
    account: Account | None = None
    speaker: str = ""
    is_pinned: bool = False
    id: int = 0

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def has_ended(self) -> bool:
        """Whether the fact held only until a known time.

        False for an open fact, and for a fact that was closed because another fact says the same.
        """
        return self.closed_at is not None and self.valid_to is not None

    @property
    def last_said_at(self) -> datetime:
        return self.last_at or self.created_at

    @property
    def starts_at(self) -> datetime:
        return self.valid_from or self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """A change of a fact, as it was logged."""

    # One of learn, close, correct, remove, pin, unpin, trust, merge and undo. Earlier versions also
    # stored `flag` for a doubtful fact.
    action: str
    # The content before the change, or None if the fact is new.
    before: str | None
    at: datetime
    reason: str
    account: Account | None
    # The message that made the change, if a message did.
    message_id: int | None = None


ENTITY_NAMES = """
(
    SELECT json_group_array(entities.display_name)
    FROM fact_entities JOIN entities ON entities.id = fact_entities.entity_id
    WHERE fact_entities.fact_id = facts.id
) AS names
"""
FACT_COLUMNS = f"""
facts.*, (SELECT key FROM scopes WHERE scopes.id = facts.scope_id) AS scope_key, {ENTITY_NAMES}
"""
"""The columns that `read_fact` reads."""
SELECT_VISIBLE = f"SELECT {FACT_COLUMNS} FROM facts WHERE {visible('facts.scope_id')}"
SELECT_SAME_PERSON = f"""
SELECT {FACT_COLUMNS} FROM facts
WHERE scope_id = :scope_id AND account = :account AND id <> :id
"""
"""Selects other facts that the same person has stated in the same scope. Its parameters come from
`fact_values`."""
SELECT_SAME_WORDS = (
    f"{SELECT_SAME_PERSON} AND closed_at IS NULL AND comparison_form = :comparison_form"
)

TIME_COLUMNS = ("last_at", "valid_from", "valid_to", "closed_at")
LOGGED_COLUMNS = (
    *("content", "kind", "attribute", "value", "trust", "mention_count", "precision", "closed_by"),
    *("message_id", "origin", "is_pinned"),
    *TIME_COLUMNS,
)
"""The columns that may change. Their values before and after each change are logged."""
_UPDATED_COLUMNS = (*LOGGED_COLUMNS, "comparison_form")
_INSERT_NAME = """
INSERT INTO entities (scope_id, name, display_name) VALUES (:scope, :name, :display_name)
ON CONFLICT (scope_id, name) DO UPDATE SET display_name = entities.display_name
"""
_LINK_NAME_TO_FACT = """
INSERT INTO fact_entities (entity_id, fact_id) VALUES (:entity, :fact)
ON CONFLICT (entity_id, fact_id) DO NOTHING
"""
_INSERT_FACT = rows.insert_statement(
    "facts", "scope_id", *_UPDATED_COLUMNS, "created_at", "account", "speaker"
)
_UPDATE_FACT = f"""
UPDATE facts SET {", ".join(f"{name} = :{name}" for name in _UPDATED_COLUMNS)} WHERE id = :id
"""
_INSERT_CHANGE = rows.insert_statement(
    "fact_changes",
    *("scope_id", "fact_id", "action", "before", "after", "reason", "at", "account"),
    "message_id",
)


def read_fact(row: Row) -> Fact:
    """Convert a row with `FACT_COLUMNS` to a fact."""
    return Fact(
        **rows.read_fields(row, Fact),
        scope=Scope(key=row["scope_key"]),
        entities=tuple(json.loads(row["names"])),
    )


def list_facts(connection: Connection, statement: str, values: Mapping[str, object]) -> list[Fact]:
    return [read_fact(row) for row in connection.execute(statement, values)]


def find_fact(connection: Connection, fact_id: int, scopes: Scopes) -> Fact | None:
    """Return a fact by its id, or None if it isn't visible in these scopes."""
    values = {"id": rows.int64_or_zero(fact_id), "scopes": scope_parameter(scopes)}
    row = connection.execute(f"{SELECT_VISIBLE} AND id = :id", values).fetchone()
    return None if row is None else read_fact(row)


def fold_content(content: str) -> str:
    """Return a fact's words in lower case without punctuation, to recognise repetitions."""
    plain_text, _ = plain_with_offsets(content)
    return " ".join(words_of(plain_text)) or fold(content)


def fact_values(connection: Connection, fact: Fact) -> dict[str, Any]:
    """Return all columns of a fact. Times are numbers, as in the log."""
    values: dict[str, Any] = rows.field_values(fact)
    for name in TIME_COLUMNS:
        at = getattr(fact, name)
        values[name] = None if at is None else rows.to_timestamp(at)
    values["last_at"] = rows.to_timestamp(fact.last_said_at)
    values["comparison_form"] = fold_content(rows.clean(fact.content))
    values["account"] = "" if fact.account is None else rows.clean(fact.account.key)
    values["scope_id"] = rows.ensure_scope(connection, fact.scope)
    return values


def insert_fact(connection: Connection, fact: Fact) -> int:
    """Store and index a new fact, and return its id."""
    values = fact_values(connection, fact)
    fact_id = rows.insert(connection, _INSERT_FACT, values)
    connection.index.index_fact(connection, fact_id)
    store_fact_names(connection, fact_id, values["scope_id"], fact.entities)
    return fact_id


def store_fact_names(
    connection: Connection, fact_id: int, scope_id: int, names: Iterable[str]
) -> None:
    """Store the names that a fact contains, and delete its earlier names."""
    connection.execute("DELETE FROM fact_entities WHERE fact_id = :fact", {"fact": fact_id})
    for name in map(rows.clean, names):
        key = entity_key(name)
        if not key:
            continue
        values = {"scope": scope_id, "name": key, "display_name": name}
        entity_id = rows.insert(connection, _INSERT_NAME, values)
        connection.execute(_LINK_NAME_TO_FACT, {"entity": entity_id, "fact": fact_id})


def store_unlogged(connection: Connection, fact: Fact) -> None:
    """Update a fact without a log entry. Its words and attribute must be unchanged."""
    connection.execute(_UPDATE_FACT, fact_values(connection, fact))


def update_fact(
    connection: Connection,
    old: Fact,
    new: Fact,
    *,
    action: str,
    by: Author,
    now: datetime,
    reason: str = "",
) -> None:
    """Update, index and log a fact.

    Raises Refused if the same person has another open fact with the same words.
    """
    values = fact_values(connection, new)
    if new.is_open and list_facts(connection, SELECT_SAME_WORDS, values):
        raise Refused("fact_exists")
    connection.execute(_UPDATE_FACT, values)
    if (new.content, new.attribute) != (old.content, old.attribute):
        connection.index.index_fact(connection, new.id)
    if new.content != old.content:
        store_fact_names(connection, new.id, values["scope_id"], new.entities)
    _log_change(connection, old, new, action=action, by=by, at=now, reason=reason)


def log_new_fact(connection: Connection, fact: Fact, by: Author, at: datetime) -> None:
    """Log that `by` added a new fact."""
    _log_change(connection, None, fact, action="learn", by=by, at=at)


def _log_change(
    connection: Connection,
    old: Fact | None,
    new: Fact,
    *,
    action: str,
    by: Author,
    at: datetime,
    reason: str = "",
) -> None:
    """Log a fact's columns before and after a change. `old` is None for a new fact."""
    before = None
    if old is not None:
        before = _dump_columns(fact_values(connection, old))
    values = fact_values(connection, new)
    change = {
        **values,
        **by.source_values,
        "fact_id": new.id,
        "action": action,
        "before": before,
        "after": _dump_columns(values),
        "reason": reason,
        "at": at,
    }
    connection.execute(_INSERT_CHANGE, change)


def _dump_columns(values: dict[str, Any]) -> str:
    return rows.dump_json(rows.pick_columns(values, *LOGGED_COLUMNS))


def load_columns(encoded: str, names: Sequence[str]) -> dict[str, Any]:
    """Decode the columns `names` of a log entry, as fields of a `Fact`."""
    columns = rows.pick_columns(json.loads(encoded), *names)
    for name in TIME_COLUMNS:
        if name in columns:
            columns[name] = rows.to_optional_datetime(columns[name])
    return columns
