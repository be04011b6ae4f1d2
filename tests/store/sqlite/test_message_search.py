"""What is found very often is ranked in two stretches, the newest first; no filter loses the
second."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.search.query import plan_typed
from core.search.recall import Recall
from core.store.engine import Connection
from core.store.query import SearchQuery, SearchResults
from core.store.search.narrowing import narrow_messages
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import with_fields
from tests.fixtures.stored_history import ANA, StoredHistory

ASK = SearchQuery(scopes=frozenset({ANA}), text="缓存")


def _ids(findings: SearchResults) -> set[int]:
    return {hit.message_id for hit in findings.messages}


async def test_of_much_the_newest_comes_first_and_all_is_reached(
    database: Database, clock: SteadyClock
) -> None:
    stored, searching = StoredHistory(database), Recall(database, clock)
    first = (await stored.session(["缓存"], sender="Eva"))[1]
    other = (await stored.session(["then"]))[0]
    await stored.execute(
        """
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 320)
        INSERT INTO messages (session_id, address_id, role, text, sender_name, created_at)
        SELECT :session, 2, 'user', '清空缓存的日志', 'Ana', n FROM numbers
        """,
        session=other,
    )
    assert first not in _ids(await searching.recall(with_fields(ASK, sessions=1, messages=200)))
    assert len(_ids(await searching.recall(with_fields(ASK, sessions=1, messages=1_000)))) == 321
    assert _ids(await searching.recall(with_fields(ASK, sender="Eva", messages=9))) == {first}


@pytest.mark.parametrize(
    ("filters", "ranked_count"),
    [
        pytest.param({"before": datetime.fromtimestamp(2_000, UTC)}, 2, id="before"),
        pytest.param({"after": datetime.fromtimestamp(2_000, UTC)}, 4, id="after"),
        pytest.param({"title": "trip"}, 2, id="title"),
        pytest.param({"platforms": ("discord",)}, 2, id="platform"),
        pytest.param({"sender": "Eva"}, 2, id="sender"),
        pytest.param({"session_id": 3}, 2, id="session"),
        pytest.param({"file_kind": "photo"}, 0, id="file"),
        pytest.param({}, 6, id="none"),
    ],
)
async def test_index_ranks_only_the_messages_that_the_filters_keep(
    database: Database, filters: dict[str, object], ranked_count: int
) -> None:
    stored = StoredHistory(database)
    # The ids aren't in the order of time, as after an import.
    await stored.session(["ferry", "ferry"], at=3_000, title="Trip")
    await stored.session(["ferry", "ferry"], at=1_000, platform="discord")
    await stored.session(["ferry", "bus", "ferry"], at=4_000, sender="Eva")

    def rank(connection: Connection) -> int:
        query = with_fields(ASK, **filters)
        (ranking, *_) = connection.index.rank_messages(
            connection,
            plan_typed("ferry"),
            [1],
            narrow_messages(query, connection.index),
            is_small=False,
        )
        return len(connection.execute(ranking.sql, ranking.values).fetchall())

    assert await database.read(rank) == ranked_count
