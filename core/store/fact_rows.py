"""How a fact becomes rows and a row a fact: columns, index terms, names, and the log of what was changed.

All functions run inside the caller's transaction. Decides nothing about what is true.

What a new fact meets: its source as it stands now, the same said before, and what it contradicts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from core.facts.attributes import ME, hints_of
from core.facts.patterns import KINDS_OF_KIN
from core.store import rows
from core.store.notes import Author
from core.store.sqlite.text_index import scoped
from core.text.names import entity_key
from core.text.normalize import fold, plain, words_of
from core.text.terms import terms_of
from core.types import Account, Scope

FactKind = Literal["identity", "project", "episode", "working"]
"""identity: who somebody is and what they prefer. working: what matters for some days only."""
FactOrigin = Literal["person", "rule", "model"]
"""person: they asked for it to be remembered. rule, model: what took it out of their words."""
Grain = Literal["day", "month", "year"]
"""How exactly a moment is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that a person has said to be so. `attribute` names what can have one value only, such as ``me|home``,
    `value` its folded value; None where several are true side by side. `trust` is from 0 to 1, `said` how often they
    said it. It holds from `valid_from` (known to the `grain`; None: it was not said) until before `valid_to`;
    `closed_at`: since when it is known not to hold any more, `closed_by` by which fact. `account` and `speaker`: who
    said it; `message_id`: where they said it last."""

    scope: Scope
    content: str
    kind: FactKind
    origin: FactOrigin
    created_at: datetime
    trust: float = 0.6
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    said: int = 1
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    grain: Grain = "day"
    last_at: datetime | None = None
    closed_at: datetime | None = None
    closed_by: int | None = None
    message_id: int | None = None
    account: Account | None = None
    speaker: str = ""
    is_pinned: bool = False
    id: int = 0

    @property
    def is_open(self) -> bool:
        """Whether nothing is known against it."""
        return self.closed_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """One step in the life of a fact. `action`: learn, repeat, close, correct, pin, unpin, trust, merge, flag, undo.
    `before` and `after` are its content then; None: it was not there."""

    fact_id: int
    scope: Scope
    action: str
    before: str | None
    after: str | None
    at: datetime
    reason: str = ""
    account: Account | None = None
    message_id: int | None = None
    id: int = 0


COLUMNS = """
facts.*, (SELECT key FROM scopes WHERE scopes.id = facts.scope_id) AS scope_key,
(SELECT json_group_array(entities.shown) FROM fact_entities JOIN entities ON entities.id = fact_entities.entity_id
    WHERE fact_entities.fact_id = facts.id) AS names
"""
"""What `fact_of` reads."""

_STATE = (
    "content", "folded", "kind", "attribute", "value", "trust", "said", "valid_from", "valid_to", "grain", "closed_at",
    "closed_by", "is_pinned", "origin", "last_at", "message_id",
)  # fmt: skip
"""What a change may change, and undoing it brings back."""


def fact_of(row: sqlite3.Row) -> Fact:
    """A row with `COLUMNS`."""
    return Fact(
        id=row["id"],
        scope=Scope(key=row["scope_key"]),
        content=row["content"],
        kind=row["kind"],
        origin=row["origin"],
        created_at=rows.moment(row["created_at"]),
        trust=row["trust"],
        attribute=row["attribute"],
        value=row["value"],
        entities=tuple(json.loads(row["names"])),
        said=row["said"],
        valid_from=rows.maybe_moment(row["valid_from"]),
        valid_to=rows.maybe_moment(row["valid_to"]),
        grain=row["grain"],
        last_at=rows.moment(row["last_at"]),
        closed_at=rows.maybe_moment(row["closed_at"]),
        closed_by=row["closed_by"],
        message_id=row["message_id"],
        account=rows.account_of(row["account"] or None),
        speaker=row["speaker"],
        is_pinned=bool(row["is_pinned"]),
    )


def folded(content: str) -> str:
    """What two tellings of one fact have in common: their words, whatever the case and the signs between them."""
    return " ".join(words_of(plain(content)[0])) or fold(content)


def insert(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> int:
    """Writes a new fact with its names and index terms; returns its id."""
    made = connection.execute(
        """
        INSERT INTO facts (scope_id, content, folded, kind, attribute, value, trust, said, valid_from, valid_to, grain,
            created_at, last_at, closed_at, closed_by, message_id, account, speaker, origin, is_pinned)
        VALUES (:scope, :content, :folded, :kind, :attribute, :value, :trust, :said, :valid_from, :valid_to, :grain,
            :created_at, :last_at, :closed_at, :closed_by, :message, :account, :speaker, :origin, :is_pinned)
        RETURNING id
        """,
        {
            "scope": scope_id,
            "content": rows.clean(fact.content),
            "folded": folded(rows.clean(fact.content)),
            "kind": fact.kind,
            "attribute": rows.maybe_clean(fact.attribute),
            "value": rows.clean(fact.value),
            "trust": fact.trust,
            "said": fact.said,
            "valid_from": rows.maybe_timestamp(fact.valid_from),
            "valid_to": rows.maybe_timestamp(fact.valid_to),
            "grain": fact.grain,
            "created_at": rows.timestamp(fact.created_at),
            "last_at": rows.timestamp(fact.last_at or fact.created_at),
            "closed_at": rows.maybe_timestamp(fact.closed_at),
            "closed_by": fact.closed_by,
            "message": fact.message_id,
            "account": rows.account_key(fact.account) or "",
            "speaker": rows.clean(fact.speaker),
            "origin": fact.origin,
            "is_pinned": fact.is_pinned,
        },
    ).fetchall()
    fact_id = int(made[0]["id"])
    index(connection, fact_id, scope_id, fact)
    keep_names(connection, fact_id, scope_id, fact.entities)
    return fact_id


def index(connection: sqlite3.Connection, fact_id: int, scope_id: int, fact: Fact) -> None:
    """Puts the terms of a fact into the text index, in place of those that stood there."""
    connection.execute("DELETE FROM facts_fts WHERE rowid = :id", {"id": fact_id})
    held, hints = terms(scope_id, fact)
    connection.execute(
        "INSERT INTO facts_fts (rowid, terms, hints) VALUES (:id, :terms, :hints)",
        {"id": fact_id, "terms": held, "hints": hints},
    )


def terms(scope_id: int, fact: Fact) -> tuple[str, str]:
    """What the text index holds of a fact: its terms, and the words its attribute is asked by, each behind its
    scope."""
    words = [*terms_of(rows.clean(fact.content)), *terms_of(rows.clean(fact.speaker))]
    return (
        " ".join(scoped(scope_id, term) for term in words),
        " ".join(scoped(scope_id, term) for term in hints_of(fact.attribute)),
    )


def keep_names(connection: sqlite3.Connection, fact_id: int, scope_id: int, names: tuple[str, ...]) -> None:
    """Ties a fact to exactly these names."""
    connection.execute("DELETE FROM fact_entities WHERE fact_id = :fact", {"fact": fact_id})
    for shown in names:
        name = entity_key(rows.clean(shown))
        if not name:
            continue
        values = {"scope": scope_id, "name": name, "shown": rows.clean(shown)}
        made = connection.execute(
            """
            INSERT INTO entities (scope_id, name, shown) VALUES (:scope, :name, :shown)
            ON CONFLICT (scope_id, name) DO UPDATE SET shown = shown RETURNING id
            """,
            values,
        ).fetchall()
        connection.execute(
            """
            INSERT INTO fact_entities (entity_id, fact_id) VALUES (:entity, :fact)
            ON CONFLICT (entity_id, fact_id) DO NOTHING
            """,
            {"entity": made[0]["id"], "fact": fact_id},
        )


def state(connection: sqlite3.Connection, fact_id: int) -> dict[str, Any]:
    """What a change may change of a fact, as it stands."""
    row = connection.execute("SELECT * FROM facts WHERE id = :id", {"id": fact_id}).fetchone()
    return {name: row[name] for name in _STATE}


def restore(connection: sqlite3.Connection, fact_id: int, kept: dict[str, Any]) -> None:
    """Brings back what `state` gave."""
    connection.execute(
        """
        UPDATE facts SET content = :content, folded = :folded, kind = :kind, attribute = :attribute, value = :value,
            trust = :trust, said = :said, valid_from = :valid_from, valid_to = :valid_to, grain = :grain,
            closed_at = :closed_at, closed_by = :closed_by, is_pinned = :is_pinned, origin = :origin,
            last_at = :last_at, message_id = :message_id
        WHERE id = :id
        """,
        {**kept, "id": fact_id},
    )


def log(
    connection: sqlite3.Connection, change: FactChange, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    """Keeps one step in the life of a fact, with all that it needs to be undone."""
    connection.execute(
        """
        INSERT INTO fact_changes (scope_id, fact_id, action, before, after, reason, at, account, message_id)
        SELECT scope_id, id, :action, :before, :after, :reason, :at, :account, :message FROM facts WHERE id = :fact
        """,
        {
            "fact": change.fact_id,
            "action": change.action,
            "before": None if before is None else json.dumps(before, ensure_ascii=False),
            "after": None if after is None else json.dumps(after, ensure_ascii=False),
            "reason": rows.clean(change.reason),
            "at": rows.timestamp(change.at),
            "account": rows.account_key(change.account),
            "message": change.message_id,
        },
    )


def change_of(row: sqlite3.Row) -> FactChange:
    """A row of fact_changes with `scope_key`."""
    return FactChange(
        id=row["id"],
        fact_id=row["fact_id"],
        scope=Scope(key=row["scope_key"]),
        action=row["action"],
        before=_content(row["before"]),
        after=_content(row["after"]),
        reason=row["reason"],
        at=rows.moment(row["at"]),
        account=rows.account_of(row["account"]),
        message_id=row["message_id"],
    )


def _content(kept: str | None) -> str | None:
    return None if kept is None else str(json.loads(kept)["content"])


def step(fact: Fact, action: str, by: Author, reason: str = "") -> FactChange:
    """A change of `fact` as `log` takes it; its moment is the fact's last."""
    return FactChange(
        fact_id=fact.id,
        scope=fact.scope,
        action=action,
        before=None,
        after=None,
        at=fact.last_at or fact.created_at,
        reason=reason,
        account=by.account,
        message_id=by.message_id,
    )


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
    return row is None or row["text"] != rows.clean(heard)


def told_by(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> Fact | None:
    """What was learned from the same message already, in these words or of the same attribute with the same value,
    whatever became of it since."""
    row = connection.execute(
        f"""
        SELECT {COLUMNS} FROM facts
        WHERE message_id = :message AND scope_id = :scope AND account = :account
            AND (folded = :folded OR (attribute = :attribute AND value = :value AND value <> ''))
        ORDER BY folded = :folded DESC, id LIMIT 1
        """,
        _told(fact, scope_id),
    ).fetchone()
    return None if row is None else fact_of(row)


def told_before(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> Fact | None:
    """The open fact in which the same person said the same, or the same birthday with its year."""
    row = connection.execute(
        f"""
        SELECT {COLUMNS} FROM facts
        WHERE scope_id = :scope AND account = :account AND closed_at IS NULL AND folded = :folded
        UNION ALL
        SELECT {COLUMNS} FROM facts
        WHERE scope_id = :scope AND account = :account AND closed_at IS NULL AND attribute = :attribute
            AND :attribute LIKE '%|birthday' AND value LIKE :value || '._%'
        LIMIT 1
        """,
        _told(fact, scope_id),
    ).fetchone()
    return None if row is None else fact_of(row)


def rivals(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> list[Fact]:
    """What the same person said of the same attribute otherwise; nobody closes what another has said."""
    if fact.attribute is None:
        return []
    found = connection.execute(
        f"""
        SELECT {COLUMNS} FROM facts
        WHERE scope_id = :scope AND attribute IN (SELECT value FROM json_each(:attributes)) AND account = :account
            AND closed_at IS NULL AND facts.value <> :value
        """,
        {**_told(fact, scope_id), "attributes": json.dumps(_names_of(connection, fact, scope_id))},
    )
    return [fact_of(row) for row in found]


def successor(connection: sqlite3.Connection, fact: Fact, scope_id: int) -> Fact:
    """What came next after a fact that is known to be over: the first that the same person said otherwise of the
    attribute, still so or over itself. There must be one."""
    found = connection.execute(
        f"""
        SELECT {COLUMNS} FROM facts
        WHERE scope_id = :scope AND attribute IN (SELECT value FROM json_each(:attributes)) AND account = :account
            AND facts.value <> :value AND (closed_at IS NULL OR valid_to IS NOT NULL)
        """,
        {**_told(fact, scope_id), "attributes": json.dumps(_names_of(connection, fact, scope_id))},
    )
    return min((rival for rival in map(fact_of, found) if is_before(fact, rival)), key=start)


def predecessors(connection: sqlite3.Connection, fact: Fact, next_id: int) -> list[Fact]:
    """What `next_id` has closed, though `fact` lies between."""
    found = connection.execute(
        f"SELECT {COLUMNS} FROM facts WHERE closed_by = :next AND valid_to IS NOT NULL", {"next": next_id}
    )
    known = [fact_of(row) for row in found]
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
    attribute = rows.maybe_clean(fact.attribute) or ""
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
        "folded": folded(rows.clean(fact.content)),
        "message": fact.message_id,
        "attribute": rows.maybe_clean(fact.attribute),
        "value": rows.clean(fact.value),
    }
