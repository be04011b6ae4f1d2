"""Imported sessions in the order of their times: messages are read by id, so those that came late are renumbered.

Only sessions that nobody went on with here: what a model has seen of a conversation must stay as it is. The ids of a
session stay the same set, so what stands between two of them (a chunk) stays in that session.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from core.store import codec
from core.store.sqlite.bulk import reindexed_at_once

STEP_MESSAGES = 300
"""So many places are put right in one transaction, which moves at most twice as many messages: some 50 ms."""


def disordered(connection: sqlite3.Connection, session_ids: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """Those of the sessions in which a message stands behind a later one, each with its moves in order: (the id that
    a message has, the id that it should have), for all its messages. Equal times keep the order they have."""
    late = connection.execute(
        """
        SELECT DISTINCT session_id FROM (
            SELECT messages.session_id, messages.created_at,
                LAG(messages.created_at) OVER (PARTITION BY messages.session_id ORDER BY messages.id) AS before
            FROM json_each(:sessions) CROSS JOIN sessions ON sessions.id = json_each.value
            CROSS JOIN messages ON messages.session_id = sessions.id
            WHERE sessions.end_reason = 'import'
            AND NOT EXISTS (SELECT 1 FROM sessions AS child WHERE child.parent_id = sessions.id)
        ) WHERE created_at < before
        """,
        {"sessions": codec.dump(sorted(session_ids))},
    )
    wanted = [row["session_id"] for row in late]
    found = connection.execute(
        """
        SELECT messages.session_id, messages.id FROM json_each(:sessions)
        CROSS JOIN messages ON messages.session_id = json_each.value
        ORDER BY messages.session_id, messages.created_at, messages.id
        """,
        {"sessions": codec.dump(wanted)},
    )
    moves = {}
    for session_id, group in groupby(found, key=lambda row: row["session_id"]):
        ids = [row["id"] for row in group]
        moves[session_id] = list(zip(ids, sorted(ids), strict=True))
    return moves


def steps(moves: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """The moves of a session cut into steps that may each be done alone: a step fills the next ids with the messages
    that belong there, and what stood there goes where these came from."""
    holds = {place: place for _, place in moves}
    """By id, which message (by its first id) has it now; `lies` is the reverse."""
    lies = dict(holds)
    for start in range(0, len(moves), STEP_MESSAGES):
        part = moves[start : start + STEP_MESSAGES]
        places = {place for _, place in part}
        coming = {lies[message]: place for message, place in part}
        vacated = sorted(set(coming) - places)
        displaced = sorted(places - set(coming))
        step = [*coming.items(), *zip(displaced, vacated, strict=True)]
        after = {new: holds[old] for old, new in step}
        holds |= after
        lies |= {message: place for place, message in after.items()}
        if changed := [(old, new) for old, new in step if old != new]:
            yield changed


def renumber(connection: sqlite3.Connection, step: Sequence[tuple[int, int]]) -> None:
    """Gives messages other ids, from among their own. The text indexes follow."""
    with reindexed_at_once(connection, [old for old, _ in step]):
        connection.execute(
            """
            CREATE TEMPORARY TABLE moved AS
            SELECT messages.*, json_extract(json_each.value, '$[1]') AS place FROM json_each(:step)
            CROSS JOIN messages ON messages.id = json_extract(json_each.value, '$[0]')
            """,
            {"step": codec.dump(step)},
        )
        connection.execute("DELETE FROM messages WHERE id IN (SELECT id FROM temp.moved)")
        connection.execute("UPDATE temp.moved SET id = place")
        connection.execute("ALTER TABLE temp.moved DROP COLUMN place")
        connection.execute("INSERT INTO messages SELECT * FROM temp.moved ORDER BY id")
        connection.execute("DROP TABLE temp.moved")
