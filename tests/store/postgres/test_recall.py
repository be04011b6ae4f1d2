"""Recall on PostgreSQL: the tests of `tests/search/test_recall.py` on the other engine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from core.store.postgres.database import Database as PostgresDatabase
from tests.search.test_recall import *  # noqa: F403

pytestmark = pytest.mark.slow

# `make postgres` runs all spellings on a server.
del test_message_is_found_by_other_spellings_of_its_words  # noqa: F821
# It searches state.db.
del test_keywords_found_as_typed_need_no_numpy  # noqa: F821
# No search on a server runs on the event loop.
del test_turn_with_much_text_to_read_is_searched_off_the_event_loop  # noqa: F821


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[PostgresDatabase]:
    async with PostgresDatabase.open(postgres_url) as opened:
        yield opened
