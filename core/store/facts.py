"""What is known for good, one row a fact: learned, closed by what contradicts it, corrected, undone, forgotten.

Nothing is overwritten by a contradiction: both stay, and the older one says until when it held. Every change but a
repetition is logged with who made it. Learning costs the same whatever is known already. `fact_search.py` finds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from core.errors import Refused
from core.facts.claims import Claim
from core.ports import Clock
from core.store import fact_rows, rows
from core.store import fact_rows as precedents
from core.store.fact_rows import Fact, FactChange
from core.store.notes import Author
from core.store.rows import scope_parameter, visible
from core.store.sqlite.database import Database
from core.store.sqlite.fact_index import write_facts
from core.text.names import names_in
from core.types import Scope

Scopes = frozenset[Scope]

CONFIRMED = 0.25
"""What is said again, or called right, comes this part of the way nearer to certain."""
DOUBTED = 0.5
"""What is called wrong keeps this part of its trust."""
SURE = 0.95
"""How far a person is trusted who puts a fact right."""
LAST = (1 << 63) - 1
_NOBODY = Author()


class Facts:
    """Fills the role `core.facts.facts_role.Facts` over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def learn(self, fact: Fact, heard: str | None = None) -> Fact:
        """Keeps a fact, or counts it once more where the same person has said the same; returns it as it stands. What
        it contradicts is closed from `valid_from` on, or from when it was said; where this one is the older of the two,
        by since when it holds or by when it was said, it is kept as what was so before. Learning the same from the same
        message twice is learning once. `heard` is the text of its message as it was read: from one that was edited or
        erased meanwhile nothing is learned, and what is returned has no id."""
        return await write_facts(self._database, lambda connection: self.take(connection, fact, heard))

    async def find(self, fact_id: int, scopes: Scopes) -> Fact | None:
        """A fact by id; None when it does not exist or is not of these scopes, which is the same answer."""
        return await self._database.read(lambda connection: _find(connection, fact_id, scopes))

    async def page(self, scopes: Scopes, offset: int = 0, limit: int = 20) -> list[Fact]:
        """All facts of these scopes: pinned, then open, then closed, each the latest first."""
        values = {
            "scopes": scope_parameter(scopes),
            "offset": rows.bounded(max(0, offset)),
            "limit": rows.bounded(max(0, limit)),
        }

        def work(connection: sqlite3.Connection) -> list[Fact]:
            found = connection.execute(
                f"""
                SELECT {fact_rows.COLUMNS} FROM facts WHERE {visible("facts.scope_id")}
                ORDER BY is_pinned DESC, closed_at IS NOT NULL, last_at DESC, id DESC LIMIT :limit OFFSET :offset
                """,
                values,
            )
            return [fact_rows.fact_of(row) for row in found]

        return await self._database.read(work)

    async def history(self, fact_id: int, scopes: Scopes) -> list[FactChange]:
        """What became of a fact, oldest first."""
        return await self._changes("fact_changes.fact_id = :id ORDER BY fact_changes.id", scopes, fact_id, -1)

    async def changes(self, scopes: Scopes, limit: int = 20, until: int | None = None) -> list[FactChange]:
        """The latest changes of all facts, newest first; of those up to the change `until`."""
        last = LAST if until is None else until
        return await self._changes("fact_changes.id <= :id ORDER BY fact_changes.id DESC", scopes, last, max(0, limit))

    async def feedback(self, fact_id: int, scopes: Scopes, is_right: bool, by: Author = _NOBODY) -> Fact | None:
        """Moves the trust in a fact. None: there is no such fact here."""

        def change(fact: Fact) -> Fact:
            trust = fact.trust + (1 - fact.trust) * CONFIRMED if is_right else fact.trust * DOUBTED
            return replace(fact, trust=trust)

        return await self._change(fact_id, scopes, change, "trust", by, "called right" if is_right else "called wrong")

    async def pin(self, fact_id: int, scopes: Scopes, is_pinned: bool = True, by: Author = _NOBODY) -> Fact | None:
        """Keeps a fact from ageing and from the curator, or lets it go."""
        action = "pin" if is_pinned else "unpin"
        return await self._change(fact_id, scopes, lambda fact: replace(fact, is_pinned=is_pinned), action, by)

    async def correct(
        self, fact_id: int, scopes: Scopes, content: str, by: Author = _NOBODY, read: Claim | None = None
    ) -> Fact | None:
        """Puts a fact into a person's own words, which are its source from then on; `read` is what rules make of them.
        From one message once. Raises Refused when that is empty or known already."""
        text = " ".join(content.split())
        if not text:
            raise Refused("Say what is right: a fact cannot be empty.")

        def change(fact: Fact) -> Fact:
            value = fact_rows.folded(text) if fact.attribute else ""
            fact = replace(fact, content=text, value=value, entities=names_in(text), trust=SURE, origin="person")
            fact = replace(fact, last_at=self._clock.now(), message_id=by.message_id)
            return fact if read is None else read.laid_over(fact)

        return await self._change(fact_id, scopes, change, "correct", by)

    async def merge(self, keep_id: int, drop_ids: Sequence[int], scopes: Scopes, reason: str) -> Fact | None:
        """Closes facts that say the same as another one, which takes over how often they were said; each is one change.
        Nothing is deleted; pinned facts stay as they are."""

        def work(connection: sqlite3.Connection) -> Fact | None:
            kept = _find(connection, keep_id, scopes)
            if kept is None:
                return None
            for fact_id in drop_ids:
                fact = _find(connection, fact_id, scopes)
                if fact is None or fact.id == kept.id or not fact.is_open or fact.is_pinned or fact.scope != kept.scope:
                    continue
                closed = replace(fact, closed_at=self._clock.now(), closed_by=kept.id)
                self._store(connection, fact, closed, "merge", _NOBODY, reason)
                _count(connection, kept.id, fact.said)
            return _find(connection, keep_id, scopes)

        return await write_facts(self._database, work)

    async def flag(self, fact_id: int, scopes: Scopes, reason: str) -> Fact | None:
        """Notes a doubt about a fact; the fact stays as it is."""
        return await self._change(fact_id, scopes, lambda fact: fact, "flag", _NOBODY, reason)

    async def undo(self, change_id: int, scopes: Scopes, by: Author = _NOBODY) -> Fact | None:
        """Takes a change back: the fact is as it was before; one that was learned then is gone, with its history. None
        when there is no such change here, or the fact is gone. Raises Refused when it was changed again since."""

        def work(connection: sqlite3.Connection) -> Fact | None:
            row = connection.execute(
                f"SELECT * FROM fact_changes WHERE id = :id AND {visible('fact_changes.scope_id')}",
                {"id": rows.bounded(change_id), "scopes": scope_parameter(scopes)},
            ).fetchone()
            fact = None if row is None else _find(connection, row["fact_id"], scopes)
            if row is None or fact is None:
                return None
            if row["before"] is None:
                connection.execute("DELETE FROM facts WHERE id = :id", {"id": fact.id})
                return fact
            now, was = fact_rows.state(connection, fact.id), json.loads(row["before"])
            after = json.loads(row["after"])
            if any(now[name] != after[name] for name in ("content", "closed_at", "is_pinned")):
                raise Refused("That fact has changed again since. Undo the later change first.")
            if row["action"] == "merge" and fact.closed_by is not None:
                _count(connection, fact.closed_by, -fact.said)
            self._bring_back(connection, fact, now | {name: was[name] for name in was if was[name] != after[name]})
            step = fact_rows.step(replace(fact, last_at=self._clock.now()), "undo", by, f"change {row['id']}")
            fact_rows.log(connection, step, now, fact_rows.state(connection, fact.id))
            return _find(connection, fact.id, scopes)

        return await write_facts(self._database, work)

    async def forget(self, fact_ids: Sequence[int], scopes: Scopes) -> int:
        """Erases facts with everything that hangs on them: names, index, history. Returns how many went."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(
                f"""
                DELETE FROM facts WHERE id IN (SELECT value FROM json_each(:ids)) AND {visible("facts.scope_id")}
                """,
                {"ids": json.dumps([rows.bounded(fact_id) for fact_id in fact_ids]), "scopes": scope_parameter(scopes)},
            ).rowcount

        return await write_facts(self._database, work)

    async def _changes(self, condition: str, scopes: Scopes, fact_id: int, limit: int) -> list[FactChange]:
        values = {"id": rows.bounded(fact_id), "scopes": scope_parameter(scopes), "limit": rows.bounded(limit)}

        def work(connection: sqlite3.Connection) -> list[FactChange]:
            found = connection.execute(
                f"""
                SELECT fact_changes.*, scopes.key AS scope_key
                FROM fact_changes JOIN scopes ON scopes.id = fact_changes.scope_id
                WHERE {visible("fact_changes.scope_id")} AND {condition} LIMIT :limit
                """,
                values,
            )
            return [fact_rows.change_of(row) for row in found]

        return await self._database.read(work)

    async def _change(
        self,
        fact_id: int,
        scopes: Scopes,
        change: Callable[[Fact], Fact],
        action: str,
        by: Author,
        reason: str = "",
    ) -> Fact | None:
        def work(connection: sqlite3.Connection) -> Fact | None:
            fact = _find(connection, fact_id, scopes)
            if fact is None:
                return None
            if action == "correct" and by.message_id is not None and by.message_id == fact.message_id:
                return fact
            changed = change(fact)
            self._store(connection, fact, changed, action, by, reason)
            if changed.attribute != fact.attribute and changed.is_open:
                scope_id = rows.keep_scope(connection, fact.scope)
                self._close(connection, precedents.rivals(connection, changed, scope_id), changed, by)
            return _find(connection, fact_id, scopes)

        return await write_facts(self._database, work)

    def take(self, connection: sqlite3.Connection, fact: Fact, heard: str | None) -> Fact:
        """`learn`, inside the caller's transaction."""
        if precedents.is_unheard(connection, fact, heard):
            return replace(fact, id=0)
        scope_id = rows.keep_scope(connection, fact.scope)
        known = precedents.told_by(connection, fact, scope_id) or precedents.told_before(connection, fact, scope_id)
        if known is not None:
            return _again(connection, known, fact)
        rivals = precedents.rivals(connection, fact, scope_id)
        over = [rival for rival in rivals if not precedents.is_before(fact, rival)]
        if len(over) < len(rivals):
            # "I moved to Lisbon in 2019", said after "I moved to Porto in 2024": true, and over.
            following = precedents.successor(connection, fact, scope_id)
            until = max(precedents.start(fact), precedents.start(following))
            fact = replace(fact, valid_to=until, closed_at=self._clock.now(), closed_by=following.id)
            over += precedents.predecessors(connection, fact, following.id)
        fact_id = fact_rows.insert(connection, fact, scope_id)
        by = Author(account=fact.account, message_id=fact.message_id)
        fact = replace(fact, id=fact_id)
        fact_rows.log(connection, fact_rows.step(fact, "learn", by), None, fact_rows.state(connection, fact_id))
        self._close(connection, over, fact, by)
        return replace(fact, last_at=fact.last_at or fact.created_at)

    def _close(self, connection: sqlite3.Connection, rivals: Sequence[Fact], fact: Fact, by: Author) -> None:
        """Lets what a fact contradicts end where the fact begins."""
        for rival in rivals:
            until = max(filter(None, (rival.valid_from, precedents.start(fact))))
            closed = replace(rival, valid_to=until, closed_at=self._clock.now(), closed_by=fact.id)
            # The words of one fact stay out of another's history, where they would outlive it.
            self._store(connection, rival, closed, "close", by, f"fact {fact.id}")

    def _store(
        self, connection: sqlite3.Connection, old: Fact, new: Fact, action: str, by: Author, reason: str = ""
    ) -> None:
        """Writes what differs between two forms of one fact, and logs it. Raises Refused where the new form is one that
        is known already."""
        before = fact_rows.state(connection, old.id)
        values: dict[str, Any] = {
            **before,
            "content": rows.clean(new.content),
            "folded": fact_rows.folded(rows.clean(new.content)),
            "attribute": rows.maybe_clean(new.attribute),
            "value": rows.clean(new.value),
            "trust": new.trust,
            "said": new.said,
            "valid_to": rows.maybe_timestamp(new.valid_to),
            "closed_at": rows.maybe_timestamp(new.closed_at),
            "closed_by": new.closed_by,
            "is_pinned": int(new.is_pinned),
            "origin": new.origin,
            "valid_from": rows.maybe_timestamp(new.valid_from),
            "grain": new.grain,
            "last_at": rows.timestamp(new.last_at or new.created_at),
            "message_id": new.message_id,
        }
        self._bring_back(connection, old, values, new)
        after = fact_rows.state(connection, old.id)
        fact_rows.log(
            connection, fact_rows.step(replace(new, last_at=self._clock.now()), action, by, reason), before, after
        )

    @staticmethod
    def _bring_back(connection: sqlite3.Connection, fact: Fact, kept: dict[str, Any], new: Fact | None = None) -> None:
        if kept["closed_at"] is None and _is_taken(connection, fact, kept["folded"]):
            raise Refused("That is known already as another fact.")
        fact_rows.restore(connection, fact.id, kept)
        if kept["content"] == fact.content:
            return
        attribute, content = kept["attribute"], kept["content"]
        shown = new or replace(fact, attribute=attribute, content=content, entities=names_in(content))
        scope_id = rows.keep_scope(connection, fact.scope)
        fact_rows.index(connection, fact.id, scope_id, shown)
        fact_rows.keep_names(connection, fact.id, scope_id, shown.entities)


def _count(connection: sqlite3.Connection, fact_id: int, times: int) -> None:
    connection.execute("UPDATE facts SET said = MAX(1, said + :times) WHERE id = :id", {"id": fact_id, "times": times})


def _find(connection: sqlite3.Connection, fact_id: int, scopes: Scopes) -> Fact | None:
    row = connection.execute(
        f"SELECT {fact_rows.COLUMNS} FROM facts WHERE id = :id AND {visible('facts.scope_id')}",
        {"id": rows.bounded(fact_id), "scopes": scope_parameter(scopes)},
    ).fetchone()
    return None if row is None else fact_rows.fact_of(row)


def _again(connection: sqlite3.Connection, known: Fact, fact: Fact) -> Fact:
    """The same was said once more: by another message it counts; what it says newly of time is taken."""
    is_same = fact.message_id is not None and fact.message_id == known.message_id
    if is_same and (known.valid_from is not None or fact.valid_from is None):
        return known
    connection.execute(
        """
        UPDATE facts SET said = said + :times, trust = MAX(:trust, trust + (1 - trust) * :step),
            last_at = MAX(last_at, :at),
            message_id = CASE WHEN :message IS NULL OR :at < last_at THEN message_id ELSE :message END,
            valid_from = COALESCE(valid_from, :valid_from),
            grain = CASE WHEN valid_from IS NULL THEN :grain ELSE grain END
        WHERE id = :id
        """,
        {
            "id": known.id,
            "times": 0 if is_same else 1,
            "trust": known.trust if is_same else fact.trust,
            "step": 0 if is_same else CONFIRMED,
            "at": rows.timestamp(fact.created_at),
            "message": fact.message_id,
            "valid_from": rows.maybe_timestamp(fact.valid_from),
            "grain": fact.grain if fact.valid_from else known.grain,
        },
    )
    found = _find(connection, known.id, frozenset((known.scope,)))
    return found or known


def _is_taken(connection: sqlite3.Connection, fact: Fact, folded: str) -> bool:
    """Whether another open fact of the same person says it."""
    found = connection.execute(
        """
        SELECT 1 FROM facts JOIN facts AS own ON own.id = :id
        WHERE facts.scope_id = own.scope_id AND facts.account = own.account AND facts.folded = :folded
            AND facts.closed_at IS NULL AND facts.id <> :id
        """,
        {"id": fact.id, "folded": folded},
    ).fetchone()
    return found is not None
