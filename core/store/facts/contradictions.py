"""Learn new facts, and decide which facts about the same attribute are current.

A new fact may repeat, contradict or reword a known fact. If two facts contradict each other, both
stay stored and the older one gets an end time. If two facts give the same value of an attribute in
different words, one of them is closed. All functions run inside their caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from core.store import rows
from core.store.engine import Connection, Row
from core.store.facts.rows import (
    LOGGED_COLUMNS,
    SELECT_SAME_PERSON,
    SELECT_SAME_WORDS,
    Fact,
    fact_values,
    find_fact,
    insert_fact,
    list_facts,
    load_columns,
    log_new_fact,
    store_unlogged,
    update_fact,
)
from core.store.notes import Author
from core.text.terms import names_in
from core.types import Message

CONFIRMATION_STEP = 0.25
"""When a fact is said again or called right, its trust grows by this share of the distance to 1."""
DOUBT_FACTOR = 0.5
"""Trust is multiplied by this factor when a fact is called wrong."""
_MIN_DISTANCE = {
    "day": timedelta(hours=20),
    "month": timedelta(days=28),
    "year": timedelta(days=365),
}
"""How much earlier than another date a date must be to count as earlier, by its precision.

For example, "2023" (precision year) counts as earlier than 5 May 2024, but not than 5 May 2023.
"""

_SELECT_FROM_SAME_MESSAGE = f"""
{SELECT_SAME_PERSON} AND message_id = :message_id
    AND (comparison_form = :comparison_form
        OR (attribute = :attribute AND value = :value AND value <> ''))
ORDER BY comparison_form = :comparison_form DESC, id LIMIT 1
"""
"""Selects the open or closed fact that was learned from the same message and has the same words or
the same value."""
_SELECT_REPEATED = f"""
{SELECT_SAME_WORDS}
UNION ALL
{SELECT_SAME_PERSON} AND closed_at IS NULL AND attribute = :attribute
    AND :attribute LIKE '%|birthday' AND value LIKE :value || '._%'
LIMIT 1
"""
"""Selects the open fact with the same words. A new birthday without a year (``3.5``) also repeats a
known birthday with a year (``3.5.1990``)."""
_SELECT_OTHER_VALUES = f"""
{SELECT_SAME_PERSON} AND attribute = :attribute AND value <> :value
    AND (closed_at IS NULL OR valid_to IS NOT NULL)
"""
"""Selects facts with another value of the attribute that still hold or have ended."""
_SELECT_SAME_VALUE = f"""
{SELECT_SAME_PERSON} AND attribute = :attribute AND value = :value
    AND value <> '' AND closed_at IS NULL
    AND (valid_from IS NULL OR :valid_from IS NULL OR valid_from = :valid_from)
"""
"""Selects open facts that say the same in other words."""


_SELECT_EARLIER_MESSAGES = """
SELECT id FROM messages WHERE session_id = :session_id AND id < :id AND role = 'user'
ORDER BY id DESC LIMIT :limit
"""


def list_earlier_ids(connection: Connection, message: Message, limit: int) -> list[int]:
    """Return the ids of the last user messages before a message in its session, latest first."""
    values = {"session_id": message.session_id, "id": message.id, "limit": limit}
    return [int(row[0]) for row in connection.execute(_SELECT_EARLIER_MESSAGES, values)]


class Lesson(NamedTuple):
    """A fact to learn from a message, and the id of the fact that it replaces."""

    fact: Fact
    # The text of the message when it was read.
    source_text: str
    # The id of the fact that this one replaces or ends, or 0.
    replaced_id: int = 0


def learn_lesson(connection: Connection, lesson: Lesson, now: datetime) -> None:
    """Learn a fact, and close the fact that it replaces."""
    fact = learn_fact(connection, lesson.fact, lesson.source_text, now)
    replaced_fact = find_fact(connection, lesson.replaced_id, frozenset((fact.scope,)))
    if not fact.id or not fact.is_open or replaced_fact is None or replaced_fact.id == fact.id:
        return
    if replaced_fact.is_open and not replaced_fact.is_pinned:
        author = Author(account=fact.account, message_id=fact.message_id)
        close_contradicted(connection, [replaced_fact], fact, author, now)


def learn_fact(
    connection: Connection,
    fact: Fact,
    source_text: str | None,
    now: datetime,
    by: Author | None = None,
) -> Fact:
    """Store a fact, or count a repetition if the same person has already said it.

    The new fact closes the facts that it contradicts. If it began to hold before one of them, it is
    stored as a former fact instead. Returns the stored fact. If the text of the fact's message is
    no longer `source_text`, nothing is stored, and the returned fact has no id.

    `by` is the author who adds the fact now. Without `by`, the log names the fact's speaker as its
    author.
    """
    if has_lost_source(connection, fact, source_text):
        return replace(fact, id=0)
    values = fact_values(connection, fact)
    known_facts = list_facts(connection, _SELECT_FROM_SAME_MESSAGE, values)
    if not known_facts:
        known_facts = list_facts(connection, _SELECT_REPEATED, values)
    if known_facts:
        return _count_repetition(connection, known_facts[0], fact)

    other_values = list_facts(connection, _SELECT_OTHER_VALUES, values)
    same_value = list_facts(connection, _SELECT_SAME_VALUE, values)
    open_rivals = [other for other in other_values if other.is_open]
    earlier_rivals = [other for other in open_rivals if not _holds_before(fact, other)]
    has_later_rival = len(earlier_rivals) < len(open_rivals)
    if has_later_rival:
        fact = _end_before_next(fact, other_values, now)
    else:
        # A known fact with the same meaning may be preferred. If so, it closes the new fact.
        for other in same_value:
            if _is_preferred(other, fact):
                fact = replace(fact, closed_at=now, closed_by=other.id)
                break

    fact = replace(fact, id=insert_fact(connection, fact), last_at=fact.last_said_at)
    author = _log_learning(connection, fact, by, now)
    close_contradicted(connection, earlier_rivals, fact, author, now)
    if fact.is_open:
        _merge_reworded(connection, same_value, fact, author, now)
    return fact


def _end_before_next(fact: Fact, other_values: Sequence[Fact], now: datetime) -> Fact:
    """Return the fact with an end: when the first later value of its attribute began.

    Such a fact was true earlier but no longer holds. An example is "I moved to Lisbon in 2019",
    said after "I moved to Porto in 2024".
    """
    later_facts = [other for other in other_values if _holds_before(fact, other)]
    next_fact = min(later_facts, key=lambda other: other.starts_at)
    ended_at = max(fact.starts_at, next_fact.starts_at)
    return replace(fact, valid_to=ended_at, closed_at=now, closed_by=next_fact.id)


def _log_learning(connection: Connection, fact: Fact, by: Author | None, now: datetime) -> Author:
    """Log a new fact, and return its author: `by`, or else the fact's speaker."""
    if by is not None:
        log_new_fact(connection, fact, by, now)
        return by
    speaker = Author(account=fact.account, message_id=fact.message_id)
    log_new_fact(connection, fact, speaker, fact.last_said_at)
    return speaker


def close_contradicted(
    connection: Connection, others: Iterable[Fact], fact: Fact, by: Author, now: datetime
) -> None:
    """Close the facts that `fact` contradicts, as of the time when `fact` began to hold."""
    for other in others:
        ended_at = fact.starts_at
        if other.valid_from is not None:
            ended_at = max(other.valid_from, ended_at)
        closed_fact = replace(other, valid_to=ended_at, closed_at=now, closed_by=fact.id)
        # The reason is the new fact's id, e.g. "f12". If it contained the new fact's words, they
        # would stay in this log when the new fact is erased.
        reason = f"f{fact.id}"
        update_fact(connection, other, closed_fact, action="close", by=by, now=now, reason=reason)


def list_contradicted(connection: Connection, fact: Fact) -> list[Fact]:
    """List the open facts with another value of the same attribute."""
    others = list_facts(connection, _SELECT_OTHER_VALUES, fact_values(connection, fact))
    return [other for other in others if other.is_open]


def undo_last_change(
    connection: Connection, fact: Fact, change: Row, by: Author, now: datetime
) -> Fact | None:
    """Take back the last change of a fact. `change` is the log entry of that change.

    Only the columns that the change modified get their old values. If the change created the fact,
    the fact is deleted with its history. Returns the restored fact, or None if it was deleted.
    """
    if change["before"] is None:
        connection.execute("DELETE FROM facts WHERE id = :id", {"id": fact.id})
        return None
    before = json.loads(change["before"])
    after = json.loads(change["after"])
    changed_names = [name for name in LOGGED_COLUMNS if before[name] != after[name]]
    earlier = replace(fact, **load_columns(change["before"], changed_names))
    earlier = replace(earlier, entities=names_in(earlier.content))
    update_fact(connection, fact, earlier, action="undo", by=by, now=now)
    return earlier


def has_lost_source(connection: Connection, fact: Fact, source_text: str | None) -> bool:
    """Return whether the text of a fact's message is no longer `source_text`.

    If `source_text` is None, return whether the message was erased. Returns False for a fact
    without a message.
    """
    if fact.message_id is None:
        return False
    statement = "SELECT text FROM messages WHERE id = :id"
    row = connection.execute(statement, {"id": fact.message_id}).fetchone()
    if source_text is None:
        return row is not None and not row["text"]
    return row is None or row["text"] != rows.clean(source_text)


def _count_repetition(connection: Connection, known: Fact, fact: Fact) -> Fact:
    """Record that the person said the fact `known` again, unless it was in the same message.

    If `known` has no start time, it gets that of `fact`. Returns the updated fact.
    """
    counted_fact = known
    if known.valid_from is None and fact.valid_from is not None:
        counted_fact = replace(counted_fact, valid_from=fact.valid_from, precision=fact.precision)
    if fact.message_id is None or fact.message_id != known.message_id:
        message_id = known.message_id
        if fact.message_id is not None and fact.created_at >= known.last_said_at:
            message_id = fact.message_id
        confirmed_trust = known.trust + (1 - known.trust) * CONFIRMATION_STEP
        counted_fact = replace(
            counted_fact,
            mention_count=known.mention_count + 1,
            trust=max(fact.trust, confirmed_trust),
            last_at=max(known.last_said_at, fact.created_at),
            message_id=message_id,
        )
    store_unlogged(connection, counted_fact)
    return counted_fact


def _merge_reworded(
    connection: Connection, others: Iterable[Fact], fact: Fact, by: Author, now: datetime
) -> None:
    """Close facts that say the same as `fact`, unless a person wrote or pinned them."""
    for other in others:
        if _is_replaceable(other):
            closed_fact = replace(other, closed_at=now, closed_by=fact.id)
            reason = f"f{fact.id}"
            update_fact(
                connection, other, closed_fact, action="merge", by=by, now=now, reason=reason
            )


def _holds_before(fact: Fact, other: Fact) -> bool:
    """Return whether `fact` began to hold before `other`.

    If a start date is unknown, or if the dates are too vague to compare, compare when the facts
    were last said. The order of ids doesn't help, because facts aren't always learned in the order
    in which people said them.
    """
    if fact.valid_from is not None and other.valid_from is not None:
        if fact.valid_from + _MIN_DISTANCE[fact.precision] <= other.valid_from:
            return True
        if other.valid_from + _MIN_DISTANCE[other.precision] <= fact.valid_from:
            return False
    return fact.last_said_at < other.last_said_at


def _is_replaceable(fact: Fact) -> bool:
    """Return whether a fact may be closed in favour of another one with the same meaning.

    Facts that a person wrote or pinned may not be closed.
    """
    return fact.origin != "person" and not fact.is_pinned


def _is_preferred(known: Fact, fact: Fact) -> bool:
    """Return whether `known` stays open instead of `fact`, which has the same meaning."""
    if fact.origin == "person":
        return False
    if fact.valid_from is not None and known.valid_from is None:
        return False
    if known.valid_from is not None and fact.valid_from is None:
        return True
    return not _is_replaceable(known)
