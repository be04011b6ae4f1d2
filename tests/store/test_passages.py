"""Recent sessions: one for each lineage, the last that may be listed, whatever stands in its
way."""

from __future__ import annotations

import pytest

from core.search.recall import Recall
from core.store.engine import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, ROOM, StoredHistory

MINE = search_query(scopes=frozenset({ANA}), sessions=10)
ENDLESS = 2**63 - 1


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


@pytest.fixture
def recall(database: Database, clock: SteadyClock) -> Recall:
    return Recall(database, clock)


async def _browsed(recall: Recall, **changes: object) -> list[int]:
    findings = await recall.recall(with_fields(MINE, **changes))
    assert findings.shape == "browse"
    return [found.session.id for found in findings.sessions]


async def test_a_session_resumed_at_two_places_is_listed_once(
    stored: StoredHistory, recall: Recall
) -> None:
    first = (await stored.session(["the ferry"]))[0]
    await stored.session(["and then"], parent_id=first, platform="discord")
    last = (await stored.session(["again"], parent_id=first, platform="terminal"))[0]
    assert await _browsed(recall) == [last]
    await stored.say(first, "back where it began")
    assert await _browsed(recall) == [first]


async def test_continued_sessions_are_listed_as_one_even_across_an_empty_session(
    stored: StoredHistory, recall: Recall
) -> None:
    first = (await stored.session(["the ferry"]))[0]
    empty = (await stored.session([], parent_id=first))[0]
    assert await _browsed(recall) == [first]
    last = (await stored.session(["again"], parent_id=empty))[0]
    assert await _browsed(recall) == [last]


async def test_continued_sessions_of_two_scopes_are_listed_as_one_only_to_readers_of_both(
    stored: StoredHistory, recall: Recall
) -> None:
    mine = (await stored.session(["the ferry"]))[0]
    ours = (await stored.session(["for all"], parent_id=mine, scope=ROOM))[0]
    assert await _browsed(recall, scopes=frozenset({ANA, ROOM})) == [ours]
    assert await _browsed(recall) == [mine]
    assert await _browsed(recall, scopes=frozenset({ROOM})) == [ours]


async def test_filtered_session_does_not_stand_for_its_lineage(
    stored: StoredHistory, recall: Recall
) -> None:
    first = (await stored.session(["the ferry"], platform="telegram", title="Travel"))[0]
    child = (await stored.session(["and then"], parent_id=first, platform="discord", title="Work"))[
        0
    ]
    assert await _browsed(recall, platforms=("telegram",)) == [first]
    assert await _browsed(recall, platforms=("discord",)) == [child]
    assert await _browsed(recall, title="travel") == [first]


async def test_session_list_shows_the_parent_of_a_session_that_is_in_the_prompt(
    stored: StoredHistory, recall: Recall
) -> None:
    parent, *_ = await stored.session(["the ferry"])
    child, *_ = await stored.session(["and then"], parent_id=parent)
    assert await _browsed(recall, hidden=((child, 0, ENDLESS),)) == [parent]


async def test_reading_a_session_with_filters_returns_only_the_matching_messages(
    stored: StoredHistory, recall: Recall
) -> None:
    session, *ids = await stored.session(["one", "two", "three"], platform="discord")
    await stored.session(["elsewhere"], platform="telegram")

    async def found(**changes: object) -> list[int]:
        findings = await recall.recall(with_fields(MINE, session_id=session, **changes))
        return [hit.message_id for each in findings.sessions for hit in each.matches]

    whole = await recall.recall(with_fields(MINE, session_id=session))
    assert whole.shape == "read"
    between = whole.sessions[0].window[1].at
    assert await found(after=between) == [ids[2], ids[1]]
    assert await found(before=between) == [ids[0]]
    assert await found(platforms=("telegram",)) == await found(title="none") == []


async def test_an_old_session_is_looked_into_behind_a_thousand_newer_ones(
    stored: StoredHistory, recall: Recall
) -> None:
    session, message = await stored.session(["one"])
    await stored.execute(
        """
        WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1200)
        INSERT INTO sessions (id, address_id, scope_id, started_at, last_at, ended_at)
        SELECT n, 1, 1, 1800000000 + n, 1800000000 + n, 1800000000 + n FROM numbers
        """
    )
    findings = await recall.recall(with_fields(MINE, session_id=session, roles=("user",)))
    assert [hit.message_id for each in findings.sessions for hit in each.matches] == [message]


async def test_a_session_of_others_names_no_lineage(stored: StoredHistory, recall: Recall) -> None:
    mine, *_ = await stored.session(["the ferry"])
    await stored.session(["the ferry of all"], parent_id=mine, scope=ROOM)
    for changes in ({"text": "ferry"}, {"roles": ("user",)}, {}):
        asked = with_fields(MINE, scopes=frozenset({ROOM}), session_id=mine, **changes)
        absent = with_fields(asked, session_id=987)
        assert (await recall.recall(asked)).sessions == (await recall.recall(absent)).sessions == ()
