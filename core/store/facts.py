"""What is known for good, one row a fact: learned, closed by what contradicts it, corrected, undone, forgotten.

A contradiction overwrites nothing: both facts stay, the older one with until when it held; of two that say the same of
one attribute one is closed. Every change but a repetition is logged with who made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeAlias

from core.errors import Refused
from core.ports import Clock
from core.store import rows
from core.store.epoch import taken
from core.store.notes import Author
from core.store.rows import MESSAGE_COLUMNS, SESSIONS, Connection, Row, message_of, scope_parameter, session_of, visible
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import index_fact, keep_names, write_text
from core.store.sqlite.schema import in_list, list_value
from core.store.sqlite.text_index import text_scores
from core.text.normalize import fold, plain, words_of
from core.text.terms import ME, english_kin, keys_in, kin_words, names_in, terms_of
from core.types import Account, ErasureEpoch, Message, Scope, Scopes, Session

FactKind = Literal["identity", "project", "episode", "working"]
"""identity: who somebody is and what they prefer. working: what matters for some days only."""
FactOrigin = Literal["person", "rule", "model"]
"""person: asked for it to be remembered. rule, model: what took it out of the person's words."""
Grain = Literal["day", "month", "year"]

CONFIRMED = 0.25
"""The part of the way to certain that a fact goes when it is said again or called right."""
DOUBTED = 0.5
"""The part of its trust that a fact called wrong keeps."""
SURE = 0.95
"""The trust in a fact that a person has corrected."""
CANDIDATES = 100
"""Most that are ranked."""
_NOBODY = Author()
_SHORTEST = {"day": timedelta(hours=20), "month": timedelta(days=28), "year": timedelta(days=365)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that a person has said to be so. `attribute`: what can have one value only, such as ``me|home``, with
    its folded `value`; None where several are true side by side. `trust`: 0 to 1. `said`: how often, in these words. It
    holds from `valid_from` (known to the `grain`; None: unknown) until before `valid_to`; since `closed_at` it is known
    not to hold, because of fact `closed_by`. `account` and `speaker`: who said it; `message_id`: where last."""

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
        return self.closed_at is None

    @property
    def is_over(self) -> bool:
        """Whether it held once; not of what another fact says in other words."""
        return self.closed_at is not None and self.valid_to is not None

    @property
    def said_at(self) -> datetime:
        return self.last_at or self.created_at

    @property
    def starts_at(self) -> datetime:
        return self.valid_from or self.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """A change of a fact. `action`: learn, close, correct, remove, pin, unpin, trust, merge, undo, or flag (a doubt, in
    earlier versions). `before`: its content; None: it was not there."""

    action: str
    before: str | None
    at: datetime
    reason: str
    account: Account | None


Change: TypeAlias = Callable[[Fact], Fact]
NAMES = """
(SELECT json_group_array(entities.shown) FROM fact_entities JOIN entities ON entities.id = fact_entities.entity_id
    WHERE fact_entities.fact_id = facts.id) AS names
"""
_COLUMNS = f"facts.*, (SELECT key FROM scopes WHERE scopes.id = facts.scope_id) AS scope_key, {NAMES}"
"""For `_fact_of`."""

_PLAIN = (
    "content", "kind", "attribute", "value", "trust", "said", "grain", "closed_by", "message_id", "origin", "is_pinned",
)  # fmt: skip
_MOMENTS = ("last_at", "valid_from", "valid_to", "closed_at")
_KEPT = (*_PLAIN, *_MOMENTS)
"""What may change, and so stands in the history."""

_VISIBLE = f"SELECT {_COLUMNS} FROM facts WHERE {visible('facts.scope_id')}"
_PAGE = f"""
{_VISIBLE} ORDER BY is_pinned DESC, closed_at IS NOT NULL, last_at DESC, id DESC LIMIT :limit OFFSET :offset
"""
_HISTORY = f"""
SELECT *, json_extract(before, '$.content') AS content FROM fact_changes
WHERE {visible("scope_id")} AND fact_id = :id ORDER BY id
"""

_INSERT = rows.insertion("facts", "scope_id", *_KEPT, "folded", "created_at", "account", "speaker")
_UPDATE = f"UPDATE facts SET {', '.join(f'{name} = :{name}' for name in (*_KEPT, 'folded'))} WHERE id = :id"
_LOG = rows.insertion(
    "fact_changes", "scope_id", "fact_id", "action", "before", "after", "reason", "at", "account", "message_id"
)

_SAME_PERSON = f"SELECT {_COLUMNS} FROM facts WHERE scope_id = :scope_id AND account = :account AND id <> :id"
_FROM_SAME_MESSAGE = f"""
{_SAME_PERSON} AND message_id = :message_id
    AND (folded = :folded OR (attribute = :attribute AND value = :value AND value <> ''))
ORDER BY folded = :folded DESC, id LIMIT 1
"""
"""What was learned from the same message, in these words or with this value, open or closed."""
_IN_SAME_WORDS = f"{_SAME_PERSON} AND closed_at IS NULL AND folded = :folded"
_SAID_BEFORE = f"""
{_IN_SAME_WORDS}
UNION ALL
{_SAME_PERSON} AND closed_at IS NULL AND attribute = :attribute
    AND :attribute LIKE '%|birthday' AND value LIKE :value || '._%'
LIMIT 1
"""
"""The open fact in which the same was said, or the same birthday with its year."""
_OF_ATTRIBUTE = f"{_SAME_PERSON} AND attribute = :attribute AND value"
_OTHER_VALUES = f"{_OF_ATTRIBUTE} <> :value AND (closed_at IS NULL OR valid_to IS NOT NULL)"
"""Other values of the attribute, open or over."""
_OTHER_WORDS = f"""
{_OF_ATTRIBUTE} = :value AND value <> '' AND closed_at IS NULL
    AND (valid_from IS NULL OR :valid_from IS NULL OR valid_from = :valid_from)
"""
"""The open facts in which the same was said in other words."""


_NAMED = f"""
SELECT fact_entities.fact_id AS fact_id, COUNT(*) AS names FROM entities
JOIN fact_entities ON fact_entities.entity_id = entities.id
WHERE {visible("entities.scope_id")} AND {in_list("entities.name", "names")}
GROUP BY fact_entities.fact_id
"""
"""How many of the names are in which fact."""
_BY_NAME = f"{_NAMED} ORDER BY names DESC, fact_id DESC LIMIT :limit"
_TOGETHER = f"""
SELECT {_COLUMNS} FROM facts WHERE id IN (SELECT fact_id FROM ({_NAMED}) WHERE names = :count)
ORDER BY closed_at IS NOT NULL, last_at DESC, id DESC LIMIT :limit
"""
_RELATED = f"""
SELECT entities.shown AS shown, COUNT(*) AS facts FROM ({_NAMED}) AS near
JOIN fact_entities ON fact_entities.fact_id = near.fact_id JOIN entities ON entities.id = fact_entities.entity_id
WHERE NOT {in_list("entities.name", "names")}
GROUP BY entities.name ORDER BY facts DESC, entities.name LIMIT :limit
"""
_CONFLICTS = f"""
{_VISIBLE} AND closed_at IS NULL AND attribute IN (
    SELECT attribute FROM facts
    WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IS NOT NULL
    GROUP BY attribute HAVING COUNT(DISTINCT value) > 1 LIMIT :limit
)
ORDER BY attribute, last_at DESC, id DESC
"""
_OF_ATTRIBUTES = f"{_VISIBLE} AND closed_at IS NULL AND {in_list('attribute', 'attributes')} ORDER BY last_at, id"
_BY_IDS = f"{_VISIBLE} AND {in_list('facts.id', 'ids')}"

OTHERS_ASKED = 4
"""Of a question about many at once the first will do."""
CALLED = "called"
"""``me|called|office`` is what somebody calls the office in Porto."""
_WHAT = "substr(attribute, length(:subject) + 2)"
_ALIASES = f"""
SELECT id, attribute, value, content FROM facts
WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND value <> ''
    AND attribute >= :subject || '|' AND attribute < :subject || '}}' AND (
        {in_list(_WHAT, "kin")} OR {in_list(f"substr({_WHAT}, 1, length({_WHAT}) - length(value) - 1)", "kin")}
        OR attribute GLOB :subject || '|{CALLED}|*'
    )
"""
"""``me|mother``, ``me|sister|ana`` and what is called otherwise."""

LOOKS_BACK = timedelta(days=3)
"""What is older and unread was said while facts were turned off."""
AT_ONCE = 20
"""So many messages are read together."""
MUCH, RESTED = 8, timedelta(seconds=30)
"""From so many unread messages, or after so long a rest, a conversation is due to be read."""
_UNREAD_IN = """
messages.session_id = {session} AND messages.id IN (
    SELECT id FROM messages WHERE session_id = {session}
        AND id > COALESCE((SELECT message_id FROM fact_marks WHERE session_id = {session}), 0)
    UNION ALL SELECT message_id FROM fact_rereads
) AND messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> '' AND messages.origin = 'typed'
    AND NOT messages.sender_is_nobody AND messages.created_at >= :since
"""
"""What a person has said in earnest, and nobody has read for facts, or it was edited since."""
_DUE = f"""
{SESSIONS} JOIN (
    SELECT sessions.id AS session_id, (
        SELECT COUNT(*) FROM messages WHERE {_UNREAD_IN.format(session="sessions.id")}
    ) AS unread
    FROM sessions WHERE sessions.scope_id IN (SELECT id FROM scopes) AND sessions.last_at >= :since
        AND sessions.end_reason IS NOT 'import'
) AS behind ON behind.session_id = sessions.id
WHERE unread >= :much OR (unread > 0 AND (sessions.last_at <= :rested OR sessions.ended_at IS NOT NULL))
ORDER BY sessions.id
"""
_UNREAD = f"""
SELECT {MESSAGE_COLUMNS} FROM messages WHERE {_UNREAD_IN.format(session=":session")} ORDER BY id LIMIT :limit
"""
_MARK = """
INSERT INTO fact_marks (session_id, message_id) VALUES (:session, :message)
ON CONFLICT (session_id) DO UPDATE SET message_id = MAX(message_id, excluded.message_id)
"""
_REREAD = """
DELETE FROM fact_rereads
WHERE message_id = :message AND :text = (SELECT text FROM messages WHERE id = :message)
"""


def _fact_of(row: Row) -> Fact:
    """A row with `_COLUMNS`."""
    scope, entities = Scope(key=row["scope_key"]), tuple(json.loads(row["names"]))
    return Fact(**rows.fields_in(row, Fact), scope=scope, entities=entities)


Candidates = list[tuple[Fact, float, int]]
"""Facts with bm25 from above 0, or 0, and how many of the names asked for they have."""


class OtherName(NamedTuple):
    """What is `asked` for (``my sister``) is called `name` too (``ana``), as fact `fact_id` says."""

    asked: str
    name: str
    fact_id: int

    def replaced(self, terms: Sequence[str]) -> tuple[str, ...]:
        """The terms of a question with this name in the place of the one asked for."""
        asked = {*terms_of(self.asked)}
        return tuple(dict.fromkeys([*terms_of(self.name), *(term for term in terms if term not in asked)]))


def other_names(connection: Connection, text: str, scopes: Scopes, asker: Account | None) -> list[OtherName]:
    """What somebody or something that a text names is called too by who asks, where a fact says so."""
    found = list[OtherName]()
    for subject in (ME, *([asker.key] if asker is not None and any(scope.is_room for scope in scopes) else [])):
        values = {"scopes": scope_parameter(scopes), "subject": subject, "kin": _kin_list()}
        if known := connection.execute(_ALIASES, values).fetchall():
            named = {*keys_in(text)}
            found += [one for row in known for one in _named_otherwise(row, subject, named)]
    return found[:OTHERS_ASKED]


def _named_otherwise(row: Row, subject: str, named: set[str]) -> list[OtherName]:
    what, _, alias = row["attribute"].removeprefix(f"{subject}|").partition("|")
    said = (word for word in words_of(plain(row["content"])[0]) if english_kin().get(word) == what)
    ones = [alias] if what == CALLED else list(dict.fromkeys([*said, what]))
    # Of a person's full name the first will do.
    others = [row["value"], *([] if what == CALLED else [row["value"].partition(" ")[0]])]
    for asked, names in ((ones, others[:1]), (others, ones)):
        if (one := next(filter(named.__contains__, asked), None)) is not None:
            return [OtherName(one, name, row["id"]) for name in names]
    return []


@lru_cache(maxsize=1)
def _kin_list() -> str:
    return list_value(kin_words())


def folded(content: str) -> str:
    """The words of a fact without case and punctuation, which two tellings of it have in common."""
    return " ".join(words_of(plain(content)[0])) or fold(content)


def insert(connection: Connection, fact: Fact) -> int:
    values = _values(connection, fact)
    fact_id = rows.insert(connection, _INSERT, values)
    index_fact(connection, fact_id)
    keep_names(connection, fact_id, values["scope_id"], fact.entities)
    return fact_id


class Facts:
    """The facts in state.db. Orders by nothing but age and bm25; `core.facts.provider` ranks."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def learn(self, fact: Fact, heard: str | None = None, epoch: ErasureEpoch | None = None) -> Fact:
        """Stores a fact, or counts it once more where the same person has said the same before; closes what it
        contradicts, or itself if it is the older of the two. Returns it as it stands, without an id where its message
        no longer says what was `heard`: then nothing is learned."""
        return await write_text(self._database, lambda connection: self.take(connection, fact, heard), epoch)

    async def find(self, fact_id: int, scopes: Scopes) -> Fact | None:
        """A fact by id; None when there is none in these scopes."""
        return await self._database.read(lambda connection: _find(connection, fact_id, scopes))

    async def page(self, scopes: Scopes, offset: int = 0, limit: int = 20) -> list[Fact]:
        """All facts of these scopes: pinned, then open, then closed, each the latest first."""
        return await self._select_facts(_PAGE, scopes, max(0, limit), offset=rows.bounded(max(0, offset)))

    async def candidates(
        self, terms: Sequence[str], keys: Sequence[str], scopes: Scopes, text: str = "", asker: Account | None = None
    ) -> list[tuple[OtherName | None, Candidates]]:
        """At most `CANDIDATES` with any of the terms or names; then by each of the `other_names` of what `text` names,
        without the fact that says so."""

        def work(connection: Connection) -> list[tuple[OtherName | None, Candidates]]:
            found: list[tuple[OtherName | None, Candidates]] = [(None, _candidates(connection, terms, keys, scopes))]
            for other in other_names(connection, text, scopes, asker) if text else ():
                named = _candidates(connection, other.replaced(terms), [*keys, other.name], scopes)
                found.append((other, [one for one in named if one[0].id != other.fact_id]))
            return found

        # Of some thousand facts in 3 ms; to wake a reader for the few that most people have costs more.
        return await self._database.glance(work, limit_s=0.005)

    async def of_entities(self, keys: Sequence[str], scopes: Scopes, limit: int = 10) -> list[Fact]:
        """The facts about all of these names together: open ones first, then the latest."""
        names = {key for key in keys if key}
        return await self._select_facts(_TOGETHER, scopes, limit, names=list_value(names), count=len(names))

    async def of_attributes(self, attributes: Iterable[str], scopes: Scopes) -> dict[str, Fact]:
        """The open fact of each of these attributes, the one that was said last."""
        found = await self._select_facts(_OF_ATTRIBUTES, scopes, -1, attributes=list_value(attributes))
        return {fact.attribute: fact for fact in found if fact.attribute}

    async def related(self, keys: Sequence[str], scopes: Scopes, limit: int = 10) -> list[tuple[str, int]]:
        """The names that stand in facts together with these, as (name as written, in how many), most first."""
        found = await self._select(_RELATED, scopes, limit, names=list_value(keys))
        return [(row["shown"], row["facts"]) for row in found]

    async def conflicts(self, scopes: Scopes, limit: int = 50) -> list[list[Fact]]:
        """Open facts of one attribute that say different things, each group the latest first."""
        found = await self._select_facts(_CONFLICTS, scopes, limit)
        return [list(group) for _, group in groupby(found, lambda fact: fact.attribute)]

    async def _select_facts(self, statement: str, scopes: Scopes, limit: int, **values: object) -> list[Fact]:
        return [_fact_of(row) for row in await self._select(statement, scopes, limit, **values)]

    async def _select(self, statement: str, scopes: Scopes, limit: int = -1, **values: object) -> list[Row]:
        bound = {"scopes": scope_parameter(scopes), "limit": rows.bounded(limit), **values}
        return await self._database.fetch_all(statement, bound)

    async def history(self, fact_id: int, scopes: Scopes) -> list[FactChange]:
        """The changes of a fact, oldest first."""
        found = await self._select(_HISTORY, scopes, id=fact_id)
        return [FactChange(**rows.fields_in(row, FactChange) | {"before": row["content"]}) for row in found]

    async def feedback(self, fact_id: int, scopes: Scopes, is_right: bool, by: Author = _NOBODY) -> Fact | None:
        """Raises or lowers the trust in a fact; None: there is none in these scopes."""

        def change(fact: Fact) -> Fact:
            return replace(fact, trust=fact.trust + (1 - fact.trust) * CONFIRMED if is_right else fact.trust * DOUBTED)

        return await self._change(fact_id, scopes, change, "trust", by, "called right" if is_right else "called wrong")

    async def pin(self, fact_id: int, scopes: Scopes, is_pinned: bool = True, by: Author = _NOBODY) -> Fact | None:
        """A pinned fact does not age."""
        action = "pin" if is_pinned else "unpin"
        return await self._change(fact_id, scopes, lambda fact: replace(fact, is_pinned=is_pinned), action, by)

    async def correct(
        self,
        fact_id: int,
        scopes: Scopes,
        content: str,
        by: Author = _NOBODY,
        reading: Change = lambda fact: fact,
        heard: str = "",
    ) -> Fact | None:
        """Gives a fact the words of a person; `reading` adds what rules read in them. None where the message that the
        author names no longer says what was `heard`. Raises Refused when they are empty or known already."""
        text = " ".join(content.split())
        if not text:
            raise Refused("Say what is right: a fact cannot be empty.")

        def change(fact: Fact) -> Fact:
            if text == fact.content and fact.origin == "person":
                return fact
            value = folded(text) if fact.attribute else ""
            worded = replace(fact, content=text, value=value, entities=names_in(text), trust=SURE, origin="person")
            return reading(replace(worded, last_at=self._clock.now(), message_id=by.message_id))

        return await self._change(fact_id, scopes, change, "correct", by, heard=heard)

    async def remove(self, fact_id: int, scopes: Scopes, by: Author = _NOBODY) -> Fact | None:
        """Closes a fact that is no longer so, because of no other; `undo` opens it again."""
        over = partial(replace, valid_to=self._clock.now(), closed_at=self._clock.now())
        return await self._change(fact_id, scopes, lambda fact: over(fact) if fact.is_open else fact, "remove", by)

    async def undo(self, fact_id: int, scopes: Scopes, by: Author = _NOBODY) -> Fact | None:
        """Takes the last change of a fact back; one that was just learned is deleted with its history and returned
        without an id. None: there is nothing to take back in these scopes."""

        def work(connection: Connection) -> Fact | None:
            fact = _find(connection, fact_id, scopes)
            values = {"scopes": scope_parameter(scopes), "id": rows.bounded(fact_id)}
            row = connection.execute(f"{_HISTORY} DESC LIMIT 1", values).fetchone()
            if fact is None or row is None:
                return None
            if row["before"] is None:
                connection.execute("DELETE FROM facts WHERE id = :id", values)
                return replace(fact, id=0)
            before, after = json.loads(row["before"]), json.loads(row["after"])
            # The fact as it was, where the change has touched it.
            touched = {name: before[name] for name in _KEPT if before[name] != after[name]}
            touched |= {name: rows.maybe_moment(touched[name]) for name in _MOMENTS if name in touched}
            was = replace(fact, **touched)
            self._update(connection, fact, replace(was, entities=names_in(was.content)), "undo", by)
            return _find(connection, fact_id, scopes)

        return await write_text(self._database, work)

    async def forget(self, fact_ids: Sequence[int], scopes: Scopes) -> int:
        """Erases facts with names, index and history; returns how many."""
        values = {"ids": list_value(map(rows.bounded, fact_ids)), "scopes": scope_parameter(scopes)}
        statement = f"DELETE FROM facts WHERE {in_list('id', 'ids')} AND {visible('facts.scope_id')}"
        return await write_text(self._database, lambda connection: connection.execute(statement, values).rowcount)

    async def due(self) -> Sequence[Session]:
        """The sessions with enough unread messages, or with any where nothing is said at the moment; open or ended,
        not imported ones."""
        now = self._clock.now()
        values = {"since": now - LOOKS_BACK, "rested": now - RESTED, "much": MUCH}
        found = await self._database.glance(lambda connection: list(connection.execute(_DUE, values)))
        return [session_of(row) for row in found]

    async def unread(self, session: Session) -> tuple[ErasureEpoch | None, Sequence[Message]]:
        """The messages of a session that were not read for facts yet, oldest first, as of an epoch; none while
        something there is being erased."""

        def work(connection: Connection) -> tuple[ErasureEpoch | None, Sequence[Message]]:
            epoch = taken(connection, scope_parameter(frozenset((session.scope,))))
            return epoch, self._unread(connection, session.id) if epoch else ()

        return await self._database.glance(work)

    async def keep(self, read: Sequence[Message], facts: Sequence[tuple[Fact, str]]) -> Sequence[Message]:
        """Learns and marks in one transaction; nothing of what was edited or read by another process meanwhile. Returns
        what is `unread` then."""

        def work(connection: Connection) -> Sequence[Message]:
            session_id = read[0].session_id
            unread = {message.id for message in self._unread(connection, session_id, limit=-1)}
            for message in read:
                connection.execute(_MARK, {"session": session_id, "message": message.id})
                connection.execute(_REREAD, {"message": message.id, "text": message.text})
            for fact, heard in facts:
                if fact.message_id in unread:
                    self.take(connection, fact, heard)
            return self._unread(connection, session_id)

        return await write_text(self._database, work)

    def _unread(self, connection: Connection, session_id: int, limit: int = AT_ONCE) -> list[Message]:
        values = {"session": session_id, "since": self._clock.now() - LOOKS_BACK, "limit": limit}
        return [message_of(row) for row in connection.execute(_UNREAD, values)]

    def take(self, connection: Connection, fact: Fact, heard: str | None) -> Fact:
        """`learn`, inside the caller's transaction."""
        if _is_source_gone(connection, fact, heard):
            return replace(fact, id=0)
        values = _values(connection, fact)
        known = _facts(connection, _FROM_SAME_MESSAGE, values) or _facts(connection, _SAID_BEFORE, values)
        if known:
            return _again(connection, known[0], fact)
        others, same = _facts(connection, _OTHER_VALUES, values), _facts(connection, _OTHER_WORDS, values)
        rivals = [other for other in others if other.is_open]
        over = [rival for rival in rivals if not _is_before(fact, rival)]
        if len(over) < len(rivals):
            # "I moved to Lisbon in 2019", said after "I moved to Porto in 2024": true, and over.
            following = min((other for other in others if _is_before(fact, other)), key=lambda other: other.starts_at)
            until = max(fact.starts_at, following.starts_at)
            fact = replace(fact, valid_to=until, closed_at=self._clock.now(), closed_by=following.id)
        elif better := next((one for one in same if _is_better(one, fact)), None):
            fact = replace(fact, closed_at=self._clock.now(), closed_by=better.id)
        fact = replace(fact, id=insert(connection, fact), last_at=fact.said_at)
        by = Author(account=fact.account, message_id=fact.message_id)
        self._log(connection, None, fact, "learn", by)
        self._close(connection, over, fact, by, "close")
        if fact.is_open:
            self._close(connection, filter(_may_merge, same), fact, by, "merge")
        return fact

    def _close(self, connection: Connection, others: Iterable[Fact], fact: Fact, by: Author, action: str) -> None:
        """Closes others because of `fact`: "close" what it contradicts, "merge" what it says in other words."""
        for one in others:
            until = max(filter(None, (one.valid_from, fact.starts_at))) if action == "close" else one.valid_to
            closed = replace(one, valid_to=until, closed_at=self._clock.now(), closed_by=fact.id)
            # Without the words of the fact, which would outlive it in another's history.
            self._update(connection, one, closed, action, by, f"f{fact.id}")

    async def _change(
        self, fact_id: int, scopes: Scopes, change: Change, action: str, by: Author, reason: str = "", heard: str = ""
    ) -> Fact | None:
        def work(connection: Connection) -> Fact | None:
            fact = _find(connection, fact_id, scopes)
            changed = None if fact is None else change(fact)
            if changed is not None and heard and _is_source_gone(connection, changed, heard):
                return None
            if fact is None or changed is None or (action in ("correct", "remove") and changed == fact):
                return fact
            self._update(connection, fact, changed, action, by, reason)
            if changed.attribute != fact.attribute and changed.is_open:
                others = _facts(connection, _OTHER_VALUES, _values(connection, changed))
                self._close(connection, [other for other in others if other.is_open], changed, by, "close")
            return _find(connection, fact_id, scopes)

        return await write_text(self._database, work, by.epoch)

    def _update(self, connection: Connection, old: Fact, new: Fact, action: str, by: Author, reason: str = "") -> None:
        """Raises Refused where another open fact of the same person says the same."""
        values = _values(connection, new)
        if new.is_open and _facts(connection, _IN_SAME_WORDS, values):
            raise Refused("That is known already as another fact.")
        connection.execute(_UPDATE, values)
        if (new.content, new.attribute) != (old.content, old.attribute):
            index_fact(connection, new.id)
        if new.content != old.content:
            keep_names(connection, new.id, values["scope_id"], new.entities)
        self._log(connection, old, new, action, by, reason)

    def _log(
        self, connection: Connection, old: Fact | None, new: Fact, action: str, by: Author, reason: str = ""
    ) -> None:
        values = _values(connection, new)
        before = None if old is None else rows.dump(rows.columns(_values(connection, old), *_KEPT))
        after = rows.dump(rows.columns(values, *_KEPT))
        at = new.said_at if old is None else self._clock.now()
        log = {"fact_id": new.id, "action": action, "before": before, "after": after, "reason": reason, "at": at}
        connection.execute(_LOG, values | by.source | log)


def _values(connection: Connection, fact: Fact) -> dict[str, Any]:
    """All columns, with moments as numbers, as they are kept in the history."""
    return {
        **rows.values_of(fact),
        **{name: (at := getattr(fact, name)) and rows.timestamp(at) for name in _MOMENTS},
        "last_at": rows.timestamp(fact.said_at),
        "folded": folded(rows.clean(fact.content)),
        "account": "" if fact.account is None else rows.clean(fact.account.key),
        "scope_id": rows.ensure_scope(connection, fact.scope),
    }


def _find(connection: Connection, fact_id: int, scopes: Scopes) -> Fact | None:
    values = {"id": rows.bounded(fact_id), "scopes": scope_parameter(scopes)}
    return next(iter(_facts(connection, f"{_VISIBLE} AND id = :id", values)), None)


def _candidates(connection: Connection, terms: Sequence[str], keys: Sequence[str], scopes: Scopes) -> Candidates:
    values = {"scopes": scope_parameter(scopes), "limit": CANDIDATES, "names": list_value(keys)}
    own = connection.execute(f"SELECT id FROM scopes WHERE {visible('scopes.id')}", values)
    scores = text_scores(connection, terms, [int(row["id"]) for row in own], CANDIDATES)
    names = {row["fact_id"]: row["names"] for row in connection.execute(_BY_NAME, values)}
    chosen = sorted({*scores, *names}, key=lambda id: (-names.get(id, 0), -scores.get(id, 0.0), -id))[:CANDIDATES]
    found = map(_fact_of, connection.execute(_BY_IDS, values | {"ids": list_value(chosen)}))
    return [(fact, scores.get(fact.id, 0.0), names.get(fact.id, 0)) for fact in found]


def _is_source_gone(connection: Connection, fact: Fact, heard: str | None) -> bool:
    """Whether the message of a fact was edited, erased or deleted since it said `heard` (None: erased)."""
    if fact.message_id is None:
        return False
    row = connection.execute("SELECT text FROM messages WHERE id = :id", {"id": fact.message_id}).fetchone()
    if heard is None:
        return row is not None and not row["text"]
    return row is None or row["text"] != rows.clean(heard)


def _again(connection: Connection, known: Fact, fact: Fact) -> Fact:
    """Counts `known` once more if another message says it, and takes the time of `fact` where it had none."""
    again = known
    if known.valid_from is None and fact.valid_from is not None:
        again = replace(again, valid_from=fact.valid_from, grain=fact.grain)
    if fact.message_id is None or fact.message_id != known.message_id:
        is_source = fact.message_id is not None and fact.created_at >= known.said_at
        again = replace(
            again,
            said=known.said + 1,
            trust=max(fact.trust, known.trust + (1 - known.trust) * CONFIRMED),
            last_at=max(known.said_at, fact.created_at),
            message_id=fact.message_id if is_source else known.message_id,
        )
    connection.execute(_UPDATE, _values(connection, again))
    return again


def _is_before(fact: Fact, rival: Fact) -> bool:
    """Whether `fact` held earlier: by since when they hold, as exactly as known; else by when they were said, which is
    not always the order in which they are learned."""
    if fact.valid_from is not None and rival.valid_from is not None:
        if fact.valid_from + _SHORTEST[fact.grain] <= rival.valid_from:
            return True
        if rival.valid_from + _SHORTEST[rival.grain] <= fact.valid_from:
            return False
    return fact.said_at < rival.said_at


def _may_merge(fact: Fact) -> bool:
    """Whether nobody has written or pinned it."""
    return fact.origin != "person" and not fact.is_pinned


def _is_better(known: Fact, fact: Fact) -> bool:
    """Whether `known`, which says the same in other words, is the one to keep."""
    if fact.origin == "person" or (fact.valid_from is not None and known.valid_from is None):
        return False
    is_dated = known.valid_from is not None and fact.valid_from is None
    return is_dated or not _may_merge(known)


def _facts(connection: Connection, statement: str, values: dict[str, Any]) -> list[Fact]:
    return [_fact_of(row) for row in connection.execute(statement, values)]
