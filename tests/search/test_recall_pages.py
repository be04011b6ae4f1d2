"""Pages of results: together they are everything, nothing twice, and a lineage is one result on
whichever page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.search import results
from core.search.recall import Recall
from core.store.query import SearchQuery, SearchResults
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, BEN, StoredHistory

pytestmark = pytest.mark.slow

MINE = search_query(scopes=frozenset({ANA}), sessions=3)


@pytest.fixture
async def roots(database: Database) -> dict[int, int]:
    """Twenty conversations about the ferry, every second of them continued once or twice, by
    session id; each session's root. Some of Ben's stand between."""
    stored = StoredHistory(database)
    roots: dict[int, int] = {}
    for number in range(20):
        (first, *_) = await stored.session([f"ferry {number}", f"ferry answer {number}"])
        roots[first] = parent = first
        for generation in range(number % 3):
            (child, *_) = await stored.session(
                [f"ferry {number}, part {generation}", "what?"], parent_id=parent
            )
            roots[child], parent = first, child
        await stored.session(["the ferry of Ben"], scope=BEN)
    return roots


async def _pages(recall: Recall, query: SearchQuery) -> list[SearchResults]:
    pages = [await recall.recall(query)]
    while pages[-1].has_more:
        pages.append(await recall.recall(with_fields(query, page=len(pages) + 1)))
    return pages


@pytest.mark.parametrize("is_tended", [False, True])
async def test_pages_of_recall_together_list_every_result_exactly_once(
    database: Database, clock: SteadyClock, roots: dict[int, int], is_tended: bool
) -> None:
    recall = Recall(database, clock)
    while is_tended and await recall.tend():
        pass
    for text in (
        "ferry",
        "ferry OR boat",
        "What about the ferry?",
        "role:user",
        "from:Ana ferry",
        "",
    ):
        pages = await _pages(recall, replace(MINE, text=text))
        assert [len(page.sessions) for page in pages] == [3, 3, 3, 3, 3, 3, 2], text
        shown = [roots[found.session.id] for page in pages for found in page.sessions]
        assert sorted(shown) == sorted(set(roots.values())), text
        said = [
            hit.message_id for page in pages for found in page.sessions for hit in found.matches
        ]
        assert len(said) == len(set(said)), text
        whole = await recall.recall(with_fields(MINE, text=text, sessions=10))
        listed = [found.session.id for page in pages[:4] for found in page.sessions]
        assert [found.session.id for found in whole.sessions] == listed[:10], text


async def test_recall_page_beyond_the_last_states_that_there_are_no_more_results(
    database: Database, clock: SteadyClock, roots: dict[int, int]
) -> None:
    recall = Recall(database, clock)
    for text in ("page:8 ferry", "page:10", "page:11 ferry", "page:999999999999999999 ferry"):
        findings = await recall.recall(replace(MINE, text=text))
        assert findings.sessions == ()
        assert not findings.has_more
        assert findings.note is not None
        assert findings.note.startswith("There are no more results on page ")
    assert len((await recall.recall(replace(MINE, text="page:7 ferry"))).sessions) == 2
    assert roots


async def test_recall_shows_at_most_ten_pages_and_states_so(
    database: Database, clock: SteadyClock, roots: dict[int, int]
) -> None:
    recall = Recall(database, clock)
    for text in ("ferry", "", "role:user", "ferry -boat", "What about the ferry?"):
        last, behind = [
            await recall.recall(with_fields(MINE, text=text, sessions=1, page=page))
            for page in (10, 11)
        ]
        assert (len(last.sessions), last.has_more) == (1, False), text
        assert last.note is not None, text
        assert str(results.LAST_PAGE_NOTE) in last.note
        assert (behind.sessions, behind.note) == ((), "There are no more results on page 11."), text
    assert len(set(roots.values())) > 11
