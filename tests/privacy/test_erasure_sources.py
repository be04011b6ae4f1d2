"""What came from elsewhere is forgotten with the name that it had there."""

from __future__ import annotations

import pytest

from core.search.recall import Recall
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.forgetting import claim_of, forget, forgetting_of, remains_of
from tests.fixtures.stored_history import StoredHistory

pytestmark = pytest.mark.slow


async def test_forget_erases_the_external_name_of_an_imported_session_that_contains_the_word(
    database: Database, clock: SteadyClock
) -> None:
    stored = StoredHistory(database)
    ids = await stored.session(["off to Zanzibar", "Fine"], external_id="zanzibar_trip.json")
    other = await stored.session(["to Lisbon", "Fine"], external_id="lisbon-trip")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {"message": 1}
    assert await remains_of("zanzibar", database) == []
    names = await stored.execute("SELECT id, external_id FROM sessions ORDER BY id")
    assert names == [(ids[0], None), (other[0], "lisbon-trip")]
    assert await Recall(database, clock).verify() == []


async def test_forget_finds_a_word_inside_a_file_name_with_underscores(
    database: Database, clock: SteadyClock
) -> None:
    stored = StoredHistory(database)
    ids = await stored.session(["see zanzibar_map.pdf", "Fine"])
    await stored.say(ids[0], '{"file": "old_zanzibar_map.pdf"}', role="tool", kind="quote")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {"message": 1}
    assert await remains_of("zanzibar", database) == []
