"""Learn, close, correct, undo, forget and search the facts in state.db.

The log records every change and its author, except repetitions. Lists are ordered by simple
criteria such as age; `core.facts.provider` ranks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple, TypeAlias

from core.errors import Refused, word_clause
from core.ports import Clock
from core.store import rows
from core.store.engine import Connection, Database, Row, in_list
from core.store.facts.contradictions import (
    CONFIRMATION_STEP,
    DOUBT_FACTOR,
    Lesson,
    close_contradicted,
    has_lost_source,
    learn_fact,
    learn_lesson,
    list_contradicted,
    list_earlier_ids,
    undo_last_change,
)
from core.store.facts.history import FIRST_PLACES_FIRST
from core.store.facts.rows import (
    FACT_COLUMNS,
    SELECT_VISIBLE,
    Fact,
    FactChange,
    find_fact,
    fold_content,
    list_facts,
    read_fact,
    update_fact,
)
from core.store.notes import Author
from core.store.rows import MESSAGE_COLUMNS, SELECT_SESSIONS, read_message, read_session
from core.store.visibility import current_epoch, encode_list, scope_parameter, visible
from core.text.normalize import plain_with_offsets, words_of
from core.text.terms import (
    ME,
    english_relation_words,
    entity_keys_in,
    names_in,
    relation_words,
    terms_of,
)
from core.types import Account, ErasureEpoch, Message, Scopes, Session

CORRECTED_TRUST = 0.95
"""The trust in a fact that a person has corrected."""
MAX_CANDIDATES = 100
"""The maximum number of facts that are ranked for a question."""
CANDIDATES_LIMIT_S = 0.005
"""How long the search for candidates may block the event loop.

Searching a few thousand facts takes 3 ms. Most people have fewer facts, so a search takes less time
than waking a reader thread.
"""
LOOKBACK = timedelta(days=3)
"""Unread messages older than this stay unread, because they were written while facts were turned
off."""
BATCH_MESSAGES = 20
"""How many messages are read for facts in one batch."""
MAX_DUE_SESSIONS = 20
DUE_MESSAGES = 8
"""A session with at least this many unread messages is due to be read."""
IDLE_TIME = timedelta(seconds=30)
"""A session that has been idle for this long is due if it has any unread message."""
_UNKNOWN_AUTHOR = Author()

_SELECT_PAGE = f"{SELECT_VISIBLE} {FIRST_PLACES_FIRST} OFFSET :offset"
_SELECT_CHANGES = f"""
SELECT *, json_extract(before, '$.content') AS content FROM fact_changes
WHERE {visible("scope_id")} AND fact_id = :id ORDER BY id
"""
_SELECT_CHANGED = f"""
SELECT fact_id, action FROM fact_changes
WHERE {visible("scope_id")} AND {in_list("message_id", "ids")} AND at >= :since ORDER BY id
"""
_COUNT_NAMES = f"""
SELECT fact_entities.fact_id AS fact_id, COUNT(*) AS names FROM entities
JOIN fact_entities ON fact_entities.entity_id = entities.id
WHERE {visible("entities.scope_id")} AND {in_list("entities.name", "names")}
GROUP BY fact_entities.fact_id
"""
"""Counts how many of ``:names`` each fact contains."""
_SCOPES_WITH_FACTS = f"""
SELECT id FROM scopes
WHERE {visible("scopes.id")} AND EXISTS (SELECT 1 FROM facts WHERE facts.scope_id = scopes.id)
"""
_SELECT_BY_NAMES = f"{_COUNT_NAMES} ORDER BY names DESC, fact_id DESC LIMIT :limit"
_SELECT_WITH_ALL_NAMES = f"""
SELECT {FACT_COLUMNS} FROM facts
WHERE id IN (SELECT fact_id FROM ({_COUNT_NAMES}) AS counts WHERE names = :count)
ORDER BY closed_at IS NOT NULL, last_at DESC, id DESC LIMIT :limit
"""
_SELECT_RELATED_NAMES = f"""
SELECT MAX(entities.display_name) AS display_name, COUNT(*) AS facts FROM ({_COUNT_NAMES}) AS near
JOIN fact_entities ON fact_entities.fact_id = near.fact_id
JOIN entities ON entities.id = fact_entities.entity_id
WHERE NOT {in_list("entities.name", "names")}
GROUP BY entities.name ORDER BY facts DESC, entities.name LIMIT :limit
"""
# Selects open facts about attributes with several values, e.g. two different homes.
_SELECT_CONFLICTS = f"""
{SELECT_VISIBLE} AND closed_at IS NULL AND attribute IN (
    SELECT attribute FROM facts
    WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND attribute IS NOT NULL
    GROUP BY attribute HAVING COUNT(DISTINCT value) > 1 LIMIT :limit
)
ORDER BY attribute, last_at DESC, id DESC
"""
_SELECT_BY_ATTRIBUTES = f"""
{SELECT_VISIBLE} AND closed_at IS NULL AND {in_list("attribute", "attributes")}
ORDER BY last_at, id
"""
_SELECT_CLOSED_BY = f"{SELECT_VISIBLE} AND {in_list('facts.closed_by', 'ids')}"
_SELECT_BY_IDS = f"{SELECT_VISIBLE} AND {in_list('facts.id', 'ids')}"

_IS_UNREAD = """
messages.session_id = {session} AND messages.id IN (
    SELECT id FROM messages WHERE session_id = {session}
        AND id > COALESCE((SELECT message_id FROM fact_watermarks WHERE session_id = {session}), 0)
    UNION ALL SELECT message_id FROM fact_rereads
) AND messages.role = 'user' AND messages.kind = 'chat' AND messages.text <> ''
    AND messages.origin = 'typed' AND NOT messages.sender_is_anonymous
    AND messages.created_at >= :since
"""
"""The SQL condition that a typed message hasn't been read for facts, or was edited afterwards."""
# Selects sessions with at least :due_messages unread messages, and ended or idle sessions with any
# unread message. The condition on `scope_id` makes SQLite use an index.
_SELECT_DUE_SESSIONS = f"""
{SELECT_SESSIONS} JOIN (
    SELECT sessions.id AS session_id, (
        SELECT COUNT(*) FROM messages WHERE {_IS_UNREAD.format(session="sessions.id")}
    ) AS unread
    FROM sessions WHERE sessions.id > :after AND sessions.scope_id IN (SELECT id FROM scopes)
        AND sessions.last_at >= :since AND sessions.end_reason IS NOT 'import'
) AS behind ON behind.session_id = sessions.id
WHERE unread >= :due_messages OR (
    unread > 0 AND (sessions.last_at <= :idle_since OR sessions.ended_at IS NOT NULL)
)
ORDER BY sessions.id LIMIT {MAX_DUE_SESSIONS}
"""
_SELECT_UNREAD = f"""
SELECT {MESSAGE_COLUMNS} FROM messages WHERE {_IS_UNREAD.format(session=":session")}
ORDER BY id LIMIT :limit
"""
_MARK_READ = """
INSERT INTO fact_watermarks (session_id, message_id) VALUES (:session, :message)
ON CONFLICT (session_id)
    DO UPDATE SET message_id = MAX(fact_watermarks.message_id, excluded.message_id)
"""
_DELETE_REREAD = """
DELETE FROM fact_rereads
WHERE message_id = :message AND :text = (SELECT text FROM messages WHERE id = :message)
"""
"""Deletes nothing if the message was edited in the meantime."""

MAX_ALIASES = 4
"""The maximum number of aliases that are used for a question."""
ALIAS_ATTRIBUTE = "called"
"""The attribute ``me|called|office`` has the real name of the place that a person calls "office".
"""
_RELATION = "substr(attribute, length(:subject) + 2)"
"""The part of an attribute after its subject, such as ``mother`` or ``sister|ana``."""
_RELATION_WITHOUT_VALUE = f"substr({_RELATION}, 1, MAX(length({_RELATION}) - length(value) - 1, 0))"
"""The relation without the value at its end, such as ``sister`` of ``sister|ana``."""
_SELECT_ALIASES = f"""
SELECT id, attribute, value, content FROM facts
WHERE {visible("facts.scope_id")} AND closed_at IS NULL AND value <> ''
    AND attribute >= :subject || '|' AND attribute < :subject || '}}' AND (
        {in_list(_RELATION, "relations")} OR {in_list(_RELATION_WITHOUT_VALUE, "relations")}
        OR substr({_RELATION}, 1, {len(ALIAS_ATTRIBUTE) + 1}) = '{ALIAS_ATTRIBUTE}|'
    )
"""
"""Selects facts with attributes such as ``me|mother``, ``me|sister|ana`` or ``me|called|office``.
"""


class FactCandidate(NamedTuple):
    """A fact that may answer a question, with the signals by which it is ranked."""

    fact: Fact
    # The BM25 score, above 0. It is 0 if only names match.
    text_score: float
    # How many names from the question the fact contains.
    name_count: int


class Alias(NamedTuple):
    """A name of a person or thing other than the name in a text, such as "Ana" for "my sister"."""

    # The name in the text, such as "sister".
    asked_name: str
    # The other name, such as "ana".
    name: str
    # The fact that connects the two names.
    fact_id: int

    def substitute_terms(self, terms: Sequence[str]) -> tuple[str, ...]:
        """Return the terms of a question with `name` in place of `asked_name`."""
        asked_terms = {*terms_of(self.asked_name)}
        kept_terms = [term for term in terms if term not in asked_terms]
        return tuple(dict.fromkeys([*terms_of(self.name), *kept_terms]))


Candidates = list[FactCandidate]
FactEdit: TypeAlias = Callable[[Fact], Fact]


class Facts:
    """Stores and searches the facts in state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def learn(
        self,
        fact: Fact,
        source_text: str | None = None,
        epoch: ErasureEpoch | None = None,
        by: Author | None = None,
    ) -> Fact:
        """Store a fact, and return the stored fact. See `learn_fact`.

        If the text of the fact's message is no longer `source_text`, nothing is stored, and the
        returned fact has no id.
        """
        return await self._database.write_indexed(
            lambda connection: learn_fact(connection, fact, source_text, self._clock.now(), by),
            epoch,
        )

    async def find(self, fact_id: int, scopes: Scopes) -> Fact | None:
        """Return a fact by its id, or None if it isn't visible in these scopes."""
        return await self._database.read(lambda connection: find_fact(connection, fact_id, scopes))

    async def list_page(self, scopes: Scopes, limit: int = 20, offset: int = 0) -> list[Fact]:
        """List visible facts: first pinned, then open, then former facts. Each group begins with
        the latest.

        To page by id, as the lists for people do, use `core/store/facts/history.py`.
        """
        offset = rows.int64_or_zero(max(0, offset))
        return await self._select_facts(_SELECT_PAGE, scopes, max(0, limit), offset=offset)

    async def find_candidates(
        self,
        terms: Sequence[str],
        keys: Sequence[str],
        scopes: Scopes,
        text: str = "",
        asker: Account | None = None,
    ) -> list[tuple[Alias | None, Candidates]]:
        """Find facts that contain any of the terms or any of the names in `keys`.

        Returns lists of at most `MAX_CANDIDATES` facts. The first list answers the question itself
        and has no alias. If `text` is given, one more list follows for each alias of a name in
        `text`, without the fact that gives the alias.
        """

        def search(connection: Connection) -> list[tuple[Alias | None, Candidates]]:
            """Search for the terms of the question, then for those of each alias."""
            results: list[tuple[Alias | None, Candidates]] = [
                (None, _find_candidates(connection, terms, keys, scopes))
            ]
            if not text:
                return results
            for alias in find_aliases(connection, text, scopes, asker):
                alias_terms = alias.substitute_terms(terms)
                alias_keys = [*keys, alias.name]
                candidates = _find_candidates(connection, alias_terms, alias_keys, scopes)
                other_candidates = [item for item in candidates if item.fact.id != alias.fact_id]
                results.append((alias, other_candidates))
            return results

        return await self._database.read_inline(search, limit_s=CANDIDATES_LIMIT_S)

    async def find_by_entities(
        self, keys: Sequence[str], scopes: Scopes, limit: int = 10
    ) -> list[Fact]:
        """Find the facts that contain all names in `keys`, open ones first, then the latest."""
        names = {key for key in keys if key}
        return await self._select_facts(
            _SELECT_WITH_ALL_NAMES, scopes, limit, names=encode_list(names), count=len(names)
        )

    async def find_by_attributes(
        self, attributes: Iterable[str], scopes: Scopes
    ) -> dict[str, Fact]:
        """Return the latest open fact for each of these attributes, by attribute.

        Attributes without an open fact are left out.
        """
        facts = await self._select_facts(
            _SELECT_BY_ATTRIBUTES, scopes, -1, attributes=encode_list(attributes)
        )
        # The facts are ordered by time, so the latest fact of an attribute replaces earlier ones.
        return {fact.attribute: fact for fact in facts if fact.attribute}

    async def find_by_ids(self, fact_ids: Iterable[int], scopes: Scopes) -> list[Fact]:
        """Return the visible facts with these ids, in no particular order."""
        return await self._select_facts(_SELECT_BY_IDS, scopes, -1, ids=encode_list(fact_ids))

    async def find_closed_by(self, fact_ids: Iterable[int], scopes: Scopes) -> list[Fact]:
        """Return the visible former facts that these facts have closed, in no particular order."""
        return await self._select_facts(_SELECT_CLOSED_BY, scopes, -1, ids=encode_list(fact_ids))

    async def list_related_names(
        self, keys: Sequence[str], scopes: Scopes, limit: int = 10
    ) -> list[tuple[str, int]]:
        """List the names that occur in the same facts as the names `keys`, most frequent first.

        Each item is a name as people write it, and the number of facts that contain it.
        """
        names = encode_list(keys)
        name_rows = await self._select(_SELECT_RELATED_NAMES, scopes, limit, names=names)
        return [(row["display_name"], row["facts"]) for row in name_rows]

    async def list_conflicts(self, scopes: Scopes, limit: int = 50) -> list[list[Fact]]:
        """List open facts that give an attribute different values.

        Each group has the facts about one attribute, latest first.
        """
        facts = await self._select_facts(_SELECT_CONFLICTS, scopes, limit)
        return [list(group) for _, group in groupby(facts, lambda fact: fact.attribute)]

    async def list_changes(self, fact_id: int, scopes: Scopes) -> list[FactChange]:
        """List the changes of a fact, oldest first."""
        changes = []
        for row in await self._select(_SELECT_CHANGES, scopes, id=fact_id):
            fields = rows.read_fields(row, FactChange)
            fields["before"] = row["content"]
            changes.append(FactChange(**fields))
        return changes

    async def list_changed(
        self, message_ids: Sequence[int], since: datetime, scopes: Scopes
    ) -> list[tuple[int, str]]:
        """List the changes that these messages have made to visible facts since a time.

        Each item is a fact's id and the action, such as "learn" or "correct".
        """
        changes = await self._select(
            _SELECT_CHANGED, scopes, ids=encode_list(message_ids), since=since
        )
        return [(row["fact_id"], row["action"]) for row in changes]

    async def record_feedback(
        self, fact_id: int, scopes: Scopes, is_right: bool, by: Author = _UNKNOWN_AUTHOR
    ) -> Fact | None:
        """Raise or lower the trust in a fact, and return the fact.

        Returns None if the fact isn't visible in these scopes.
        """

        def adjust_trust(fact: Fact) -> Fact:
            if is_right:
                return replace(fact, trust=fact.trust + (1 - fact.trust) * CONFIRMATION_STEP)
            return replace(fact, trust=fact.trust * DOUBT_FACTOR)

        reason = word_clause("fact_called_right" if is_right else "fact_called_wrong")
        return await self._edit(fact_id, scopes, adjust_trust, action="trust", by=by, reason=reason)

    async def pin(
        self, fact_id: int, scopes: Scopes, is_pinned: bool = True, by: Author = _UNKNOWN_AUTHOR
    ) -> Fact | None:
        """Pin or unpin a fact, and return it. Age doesn't lower the rank of a pinned fact.

        Returns None if the fact isn't visible in these scopes.
        """

        def set_pin(fact: Fact) -> Fact:
            return replace(fact, is_pinned=is_pinned)

        action = "pin" if is_pinned else "unpin"
        return await self._edit(fact_id, scopes, set_pin, action=action, by=by)

    async def correct(
        self,
        fact_id: int,
        scopes: Scopes,
        content: str,
        by: Author = _UNKNOWN_AUTHOR,
        apply_rules: FactEdit = lambda fact: fact,
        source_text: str = "",
    ) -> Fact | None:
        """Replace the content of a fact with a person's words, and return the new fact.

        `apply_rules` adds the fields that rules extract from the new words. Returns None if the
        fact isn't visible in these scopes, or if the text of the author's message is no longer
        `source_text`. Raises Refused if the words are empty, or if the same person has another open
        fact with these words.
        """
        text = " ".join(content.split())
        if not text:
            raise Refused("fact_is_empty")

        def reword(fact: Fact) -> Fact:
            """Return the fact with the new words, or unchanged if a person wrote the same words."""
            if text == fact.content and fact.origin == "person":
                return fact
            new_fact = replace(
                fact,
                content=text,
                value=fold_content(text) if fact.attribute else "",
                entities=names_in(text),
                trust=CORRECTED_TRUST,
                origin="person",
                last_at=self._clock.now(),
                message_id=by.message_id,
            )
            return apply_rules(new_fact)

        return await self._edit(
            fact_id, scopes, reword, action="correct", by=by, source_text=source_text
        )

    async def remove(
        self, fact_id: int, scopes: Scopes, by: Author = _UNKNOWN_AUTHOR
    ) -> Fact | None:
        """Close a fact that no longer holds, without replacing it.

        Returns the closed fact, or None if the fact isn't visible in these scopes.
        """
        now = self._clock.now()

        def close(fact: Fact) -> Fact:
            return replace(fact, valid_to=now, closed_at=now) if fact.is_open else fact

        return await self._edit(fact_id, scopes, close, action="remove", by=by)

    async def undo(self, fact_id: int, scopes: Scopes, by: Author = _UNKNOWN_AUTHOR) -> Fact | None:
        """Take back the last change of a fact, and return the fact.

        If that change created the fact, the fact is deleted with its history and returned without
        an id. Returns None if the fact isn't visible or has no changes. Raises Refused if the same
        person has another open fact with the words that would be restored.
        """

        def take_back(connection: Connection) -> Fact | None:
            """Take back the fact's last change, and return the fact as it is now.

            The id is 0 if the fact was deleted. Returns None if the fact or the change doesn't
            exist.
            """
            fact = find_fact(connection, fact_id, scopes)
            values = {"scopes": scope_parameter(scopes), "id": rows.int64_or_zero(fact_id)}
            change = connection.execute(f"{_SELECT_CHANGES} DESC LIMIT 1", values).fetchone()
            if fact is None or change is None:
                return None
            if undo_last_change(connection, fact, change, by, self._clock.now()) is None:
                return replace(fact, id=0)
            return find_fact(connection, fact_id, scopes)

        return await self._database.write_indexed(take_back)

    async def forget(self, fact_ids: Sequence[int], scopes: Scopes) -> int:
        """Erase facts with their names, index entries and history.

        Facts that aren't visible in these scopes stay. Returns how many facts were erased.
        """
        values = {
            "ids": encode_list(rows.int64_or_zero(fact_id) for fact_id in fact_ids),
            "scopes": scope_parameter(scopes),
        }
        statement = (
            f"DELETE FROM facts WHERE {in_list('id', 'ids')} AND {visible('facts.scope_id')}"
        )
        return await self._database.write_indexed(
            lambda connection: connection.execute(statement, values).rowcount
        )

    async def list_due_sessions(self, after_id: int = 0) -> Sequence[Session]:
        """List up to `MAX_DUE_SESSIONS` sessions whose messages should be read for facts, by id.

        A session is due if it has `DUE_MESSAGES` unread messages. If it has ended or has been idle
        for `IDLE_TIME`, one unread message is enough. Imported sessions, and sessions with ids up
        to `after_id`, are left out.
        """
        now = self._clock.now()
        values = {
            "after": after_id,
            "since": now - LOOKBACK,
            "idle_since": now - IDLE_TIME,
            "due_messages": DUE_MESSAGES,
        }
        session_rows = await self._database.read_inline(
            lambda connection: list(connection.execute(_SELECT_DUE_SESSIONS, values))
        )
        return [read_session(row) for row in session_rows]

    async def load_unread(self, session: Session) -> tuple[ErasureEpoch | None, Sequence[Message]]:
        """Load the current epoch and the unread messages of a session, oldest first.

        While data in the session's scope is being erased, the epoch is None and the list is empty.
        """

        def load(connection: Connection) -> tuple[ErasureEpoch | None, Sequence[Message]]:
            epoch = current_epoch(connection, scope_parameter(frozenset((session.scope,))))
            return epoch, () if epoch is None else self._list_unread(connection, session.id)

        return await self._database.read_inline(load)

    async def list_earlier_ids(self, message: Message, limit: int) -> list[int]:
        """Return the ids of the last user messages before a message of its session."""
        return await self._database.read_inline(
            lambda connection: list_earlier_ids(connection, message, limit)
        )

    async def learn_from_messages(
        self, messages: Sequence[Message], lessons: Sequence[Lesson]
    ) -> Sequence[Message]:
        """Learn facts, and mark the messages as read.

        Skip the facts of messages that were edited in the meantime, or that another process has
        already read. Returns the next unread messages of the session.
        """

        def learn_and_mark(connection: Connection) -> Sequence[Message]:
            """Mark the messages as read, and learn facts from those that were still unread."""
            session_id = messages[0].session_id
            unread_ids = {
                message.id for message in self._list_unread(connection, session_id, limit=-1)
            }
            for message in messages:
                connection.execute(_MARK_READ, {"session": session_id, "message": message.id})
                reread = {"message": message.id, "text": message.text}
                connection.execute(_DELETE_REREAD, reread)
            for lesson in lessons:
                if lesson.fact.message_id in unread_ids:
                    learn_lesson(connection, lesson, self._clock.now())
            return self._list_unread(connection, session_id)

        return await self._database.write_indexed(learn_and_mark)

    def _list_unread(
        self, connection: Connection, session_id: int, limit: int = BATCH_MESSAGES
    ) -> list[Message]:
        values = {"session": session_id, "since": self._clock.now() - LOOKBACK, "limit": limit}
        return [read_message(row) for row in connection.execute(_SELECT_UNREAD, values)]

    async def _edit(
        self,
        fact_id: int,
        scopes: Scopes,
        edit: FactEdit,
        *,
        action: str,
        by: Author,
        reason: str = "",
        source_text: str = "",
    ) -> Fact | None:
        """Change and log a fact.

        If its attribute changes, close the open facts that now contradict it. Returns the changed
        fact. Returns None if the fact isn't visible, or if the text of its message is no longer
        `source_text`.
        """

        def write(connection: Connection) -> Fact | None:
            """Store the edited fact if anything has changed, and return it.

            Returns None if the fact, or the message that states it, no longer exists.
            """
            fact = find_fact(connection, fact_id, scopes)
            if fact is None:
                return None
            new_fact = edit(fact)
            if source_text and has_lost_source(connection, new_fact, source_text):
                return None
            if new_fact == fact and action in ("correct", "remove"):
                return fact
            now = self._clock.now()
            update_fact(connection, fact, new_fact, action=action, by=by, now=now, reason=reason)
            if new_fact.attribute != fact.attribute and new_fact.is_open:
                others = list_contradicted(connection, new_fact)
                close_contradicted(connection, others, new_fact, by, now)
            return find_fact(connection, fact_id, scopes)

        return await self._database.write_indexed(write, by.epoch)

    async def _select_facts(
        self, statement: str, scopes: Scopes, limit: int, **values: object
    ) -> list[Fact]:
        return [read_fact(row) for row in await self._select(statement, scopes, limit, **values)]

    async def _select(
        self, statement: str, scopes: Scopes, limit: int = -1, **values: object
    ) -> list[Row]:
        """Run a statement for these scopes. A negative limit means no limit."""
        parameters = {
            "scopes": scope_parameter(scopes),
            "limit": rows.int64_or_zero(limit),
            **values,
        }
        return await self._database.fetch_all(statement, parameters)


def _find_candidates(
    connection: Connection, terms: Sequence[str], keys: Sequence[str], scopes: Scopes
) -> Candidates:
    """Find at most `MAX_CANDIDATES` facts with any of the terms or names, in no particular order.

    If more facts match, those with the most of these names are kept, then those with the best text
    score.
    """
    values = {
        "scopes": scope_parameter(scopes),
        "limit": MAX_CANDIDATES,
        "names": encode_list(keys),
    }
    scope_ids = [int(row["id"]) for row in connection.execute(_SCOPES_WITH_FACTS, values)]
    text_scores = connection.index.score_facts(connection, terms, scope_ids, MAX_CANDIDATES)
    name_rows = connection.execute(_SELECT_BY_NAMES, values)
    name_counts = {row["fact_id"]: row["names"] for row in name_rows}

    def preference(fact_id: int) -> tuple[int, float, int]:
        """Return a sort key: most names first, then the best text score, then the newest fact."""
        return -name_counts.get(fact_id, 0), -text_scores.get(fact_id, 0.0), -fact_id

    best_ids = sorted({*text_scores, *name_counts}, key=preference)[:MAX_CANDIDATES]
    facts = list_facts(connection, _SELECT_BY_IDS, {**values, "ids": encode_list(best_ids)})
    return [
        FactCandidate(fact, text_scores.get(fact.id, 0.0), name_counts.get(fact.id, 0))
        for fact in facts
    ]


# --- Aliases: "my sister" is also Ana ---


def find_aliases(
    connection: Connection, text: str, scopes: Scopes, asker: Account | None
) -> list[Alias]:
    """Find up to `MAX_ALIASES` other names for the people and things that a text mentions.

    The aliases come from facts of the asker, such as "my sister Ana".
    """
    subjects = [ME]
    # In a group, the subject of a member's facts is the member's account.
    if asker is not None and any(scope.is_group for scope in scopes):
        subjects.append(asker.key)
    aliases: list[Alias] = []
    for subject in subjects:
        values = {
            "scopes": scope_parameter(scopes),
            "subject": subject,
            "relations": encode_list(relation_words()),
        }
        fact_rows = connection.execute(_SELECT_ALIASES, values).fetchall()
        if fact_rows:
            text_names = {*entity_keys_in(text)}
            for row in fact_rows:
                aliases += _aliases_from_fact(row, subject, text_names)
    return aliases[:MAX_ALIASES]


def _aliases_from_fact(row: Row, subject: str, text_names: set[str]) -> list[Alias]:
    """Return the aliases that a fact gives for a name in the text.

    A fact such as "my sister Ana Lopes" connects the asker's word "sister" with the names "ana
    lopes" and "ana". If the text contains one side, the other side is the alias.
    """
    # "me|sister|ana" has the relation "sister". "me|called|office" has the called name "office".
    relation, _, called_name = row["attribute"].removeprefix(f"{subject}|").partition("|")
    names = [row["value"]]
    if relation == ALIAS_ATTRIBUTE:
        relation_names = [called_name]
    else:
        # The asker's words for an English relation, e.g. "Schwester" for "sister".
        plain_text, _ = plain_with_offsets(row["content"])
        english_words = english_relation_words()
        own_words = [word for word in words_of(plain_text) if english_words.get(word) == relation]
        relation_names = list(dict.fromkeys([*own_words, relation]))
        first_name, _, _ = row["value"].partition(" ")
        names.append(first_name)

    for asked_name in relation_names:
        if asked_name in text_names:
            # The full name is enough: it contains the first name.
            return [Alias(asked_name, names[0], row["id"])]
    for asked_name in names:
        if asked_name in text_names:
            return [Alias(asked_name, name, row["id"]) for name in relation_names]
    return []
