"""Questions that name a time: what was said then comes first, and nothing is left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.search.recall import Recall
from core.store.query import SearchQuery
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.search_queries import with_fields
from tests.fixtures.stored_history import ANA, StoredHistory

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture
async def recall(database: Database) -> Recall:
    """A visit to the same dentist in each month of two years, on the tenth."""
    stored = StoredHistory(database)
    for year in (2025, 2026):
        for month in range(1, 13 if year == 2025 else 12):
            at = datetime(year, month, 10, 12, tzinfo=UTC).timestamp()
            await stored.session(
                [f"The dentist looked at tooth {year % 100 * 12 + month}", "Fine."], at=at
            )
    recall = Recall(database, SteadyClock(NOW))
    while await recall.tend():
        pass
    return recall


async def _months(recall: Recall, text: str, count: int = 2) -> set[str]:
    found = await recall.recall(
        with_fields(SearchQuery(scopes=frozenset({ANA})), text=text, sessions=count)
    )
    return {f"{one.session.started_at:%Y-%m}" for one in found.sessions}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did the dentist look at in April 2025?", {"2025-04"}),
        ("What did the dentist look at in early April?", {"2025-04", "2026-04"}),
        ("What did the dentist look at the two weeks after 3 December?", {"2025-12"}),
        ("What did the dentist look at last month?", {"2026-10"}),
        ("Was sah sich der dentist im April an?", {"2025-04", "2026-04"}),
        ("что dentist смотрел в апреле 2025 года?", {"2025-04"}),
        ("что было в апреле 2025 года?", {"2025-04"}),
        ("что было в апреле?", {"2025-04", "2026-04"}),
        ("2025年4月发生了什么?", {"2025-04"}),
        ("dentist 2025年4月看了什么?", {"2025-04"}),
    ],
)
async def test_message_of_the_named_time_is_found_first(
    recall: Recall, text: str, expected: set[str]
) -> None:
    assert await _months(recall, text, len(expected)) == expected


async def test_wrong_date_in_a_question_excludes_no_matching_message(recall: Recall) -> None:
    assert "2025-04" in await _months(recall, "What did the dentist look at on April 13, 2025?", 1)
    assert await _months(recall, "Which was tooth 304, in 2019?", 1) == {"2025-04"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["Which plumber came in May?", "Was the plumber here in February?", "Did April call the plumber?",
     "plumber im März?", "Did the plumber come last month?"],
)  # fmt: skip
async def test_a_time_hides_nothing_that_alone_has_a_word_of_the_question(
    database: Database, text: str
) -> None:
    """The time is misremembered, or is none."""
    stored = StoredHistory(database)
    for number in range(120):
        at = datetime(
            2025, 12 if number < 10 else number // 11 + 1, number % 28 + 1, 12, tzinfo=UTC
        ).timestamp()
        await stored.session(
            [f"We talked about the garden, number {number}", "And also about bread."], at=at
        )
    at = datetime(2026, 1, 20, 12, tzinfo=UTC).timestamp()
    plumber, *_ = await stored.session(
        ["The plumber said that the pipe costs 300 euros", "Fine."], at=at
    )
    recall = Recall(database, SteadyClock(NOW))
    while await recall.tend():
        pass
    found = await recall.recall(replace(SearchQuery(scopes=frozenset({ANA})), text=text))
    assert found.sessions[0].session.id == plumber
    other = await recall.recall(
        replace(SearchQuery(scopes=frozenset({ANA})), text="What did the price rise to in May?")
    )
    assert {one.session.started_at.month for one in other.sessions} == {5}
