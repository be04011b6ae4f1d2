"""What is found very often is ranked in two stretches, the newest first; no filter loses the
second."""

from __future__ import annotations

from core.search.recall import Recall
from core.store.query import SearchQuery, SearchResults
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
