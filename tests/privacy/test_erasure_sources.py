"""What came from elsewhere is forgotten with the names that it had there."""

from __future__ import annotations

import pytest

from core.search.recall import Recall
from core.store.sqlite.database import Database
from tests.fixtures.annals import Annals
from tests.fixtures.clock import SteadyClock
from tests.fixtures.forgetful import claim_of, forget, forgetting_of, left_of

pytestmark = pytest.mark.slow


async def test_names_of_an_import_go_along(database: Database, clock: SteadyClock) -> None:
    annals = Annals(database)
    ids = await annals.session(["off to Zanzibar", "Fine"], external_id="zanzibar_trip.json")
    await annals.say(ids[0], "we took the train", external_id="zanzibar-17")
    await annals.say(ids[0], "and a boat", external_id="18")
    other = await annals.session(["to Lisbon", "Fine"], external_id="lisbon-trip")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {"message": 1}
    assert left_of("zanzibar", database.path) == []
    names = await annals.execute("SELECT id, external_id FROM sessions ORDER BY id")
    assert names == [(ids[0], None), (other[0], "lisbon-trip")]
    kept = await annals.execute("SELECT external_id FROM messages WHERE external_id IS NOT NULL")
    assert kept == [("18",)]
    assert await Recall(database, clock).verify() == []


async def test_a_name_with_an_underline_is_one_too(database: Database, clock: SteadyClock) -> None:
    annals = Annals(database)
    ids = await annals.session(["see zanzibar_map.pdf", "Fine"])
    await annals.say(ids[0], '{"file": "old_zanzibar_map.pdf"}', role="tool", kind="quote")
    assert await forget(forgetting_of(database, clock), "Zanzibar", claim_of()) == {"message": 1}
    assert left_of("zanzibar", database.path) == []
