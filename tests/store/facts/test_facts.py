"""What is known, row by row: said again, contradicted, corrected, undone, forgotten; and nobody
else's business."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import Refused
from core.store.engine import Database
from core.store.facts.facts import Facts
from core.store.facts.history import (
    list_facts_after,
    list_facts_before,
    list_first_facts,
)
from core.store.facts.rows import Fact
from core.store.notes import Author
from core.store.sessions import Conversations
from core.store.sqlite.database import Database as SqliteDatabase
from core.types import Account, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, message, opened

pytestmark = pytest.mark.slow

OWN = frozenset((ANA,))
WRONG = (frozenset[Scope](), frozenset((BOB,)), frozenset((Scope.account("discord", "42"),)))
ME = Account(platform="telegram", user_id="42")


def fact(content: str, **changes: Any) -> Fact:
    """Something that Ana said at noon."""
    return Fact(
        **{
            "scope": ANA,
            "content": content,
            "kind": "identity",
            "origin": "rule",
            "created_at": NOON,
            "account": ME,
            "speaker": "Ana",
            **changes,
        }
    )


def home(place: str, **changes: Any) -> Fact:
    return fact(
        f"I live in {place}", attribute="me|home", value=place.lower(), entities=(place,), **changes
    )


@pytest.fixture
def facts(database: Database, clock: SteadyClock) -> Facts:
    return Facts(database, clock)


async def test_learned_fact_is_found_by_its_id(facts: Facts) -> None:
    learned = await facts.learn(home("Porto", message_id=7, valid_from=NOON, precision="month"))
    assert await facts.find(learned.id, OWN) == replace(learned, last_at=NOON)
    assert learned.entities == ("Porto",)
    assert [step.action for step in await facts.list_changes(learned.id, OWN)] == ["learn"]


async def test_repeated_fact_raises_its_mention_count_and_confidence(facts: Facts) -> None:
    first = await facts.learn(home("Porto", message_id=1))
    later = NOON + timedelta(days=1)
    again = await facts.learn(
        replace(home("Porto"), content="i live in porto!", message_id=2, created_at=later)
    )
    assert (again.id, again.mention_count, again.message_id, again.last_at) == (
        first.id,
        2,
        2,
        later,
    )
    assert first.trust < again.trust < 1
    assert await facts.learn(home("Porto", message_id=2)) == again, "the same message twice is once"
    assert len(await facts.list_page(OWN)) == 1


async def test_contradicting_fact_closes_the_old_fact_and_both_stay_stored(
    facts: Facts, database: Database
) -> None:
    lisbon = await facts.learn(home("Lisbon"))
    may = datetime(2026, 5, 1, tzinfo=UTC)
    porto = await facts.learn(home("Porto", valid_from=may, message_id=2))
    closed = await facts.find(lisbon.id, OWN)
    assert closed is not None
    assert (closed.closed_by, closed.valid_to, closed.is_open) == (porto.id, may, False)
    assert [known.content for known in await facts.list_page(OWN)] == [
        "I live in Porto",
        "I live in Lisbon",
    ]
    closing = (await facts.list_changes(lisbon.id, OWN))[-1]
    assert (closing.action, closing.reason, closing.account) == ("close", f"f{porto.id}", ME)
    logged = await database.fetch_all("SELECT message_id FROM fact_changes WHERE action = 'close'")
    assert [row["message_id"] for row in logged] == [2]
    back = await facts.learn(home("Lisbon", message_id=3))
    assert back.id not in (lisbon.id, porto.id)
    assert [known.is_open for known in await facts.list_page(OWN)] == [True, False, False]
    await facts.learn(home("Porto", valid_from=may, message_id=2))
    assert (await facts.list_page(OWN))[0].id == back.id, (
        "an old message replayed brings nothing back"
    )


async def test_pages_of_facts_go_on_from_a_fact_in_both_directions(
    facts: Facts, database: Database
) -> None:
    for number in range(7):
        await facts.learn(fact(f"Shelf {number} is full", message_id=number + 1))
    await facts.pin(2, OWN)
    await facts.learn(home("Lisbon", message_id=8))
    await facts.learn(home("Porto", message_id=9))
    order = [known.id for known in await facts.list_page(OWN)]
    assert (order[0], order[-1]) == (2, 8), "the pinned one first, the closed one last"
    for place, fact_id in enumerate(order):
        after = await list_facts_after(database, OWN, fact_id, 3)
        assert [known.id for known in after] == order[place + 1 : place + 4]
        before = await list_facts_before(database, OWN, fact_id, 3)
        assert [known.id for known in before] == order[max(0, place - 3) : place]
    for scopes in WRONG:
        assert await list_facts_after(database, scopes, order[0], 3) == []
        assert await list_facts_before(database, scopes, order[-1], 3) == []


async def test_earlier_value_of_a_fact_is_stored_as_past(facts: Facts) -> None:
    now = await facts.learn(home("Porto", valid_from=datetime(2024, 1, 1, tzinfo=UTC)))
    before = await facts.learn(home("Lisbon", valid_from=datetime(2019, 1, 1, tzinfo=UTC)))
    assert (before.is_open, before.valid_to) == (False, now.valid_from)
    assert [known.content for known in await facts.list_page(OWN) if known.is_open] == [
        "I live in Porto"
    ]


async def test_fact_learned_late_does_not_close_a_newer_one(facts: Facts) -> None:
    now = await facts.learn(home("Porto", created_at=NOON + timedelta(days=2), message_id=9))
    late = await facts.learn(home("Lisbon", message_id=1))
    assert (late.is_open, late.closed_by, late.valid_to) == (False, now.id, now.created_at)
    again = await facts.learn(home("Porto", created_at=NOON + timedelta(days=1), message_id=5))
    assert (again.id, again.last_at, again.message_id) == (now.id, now.created_at, 9)
    year = await facts.learn(
        home("Faro", created_at=NOON + timedelta(days=3), valid_from=YEARS[2026], precision="year")
    )
    assert year.is_open, "this year is not before what was said this year"


async def test_birthday_without_its_year_is_merged_with_the_same_date_with_a_year(
    facts: Facts,
) -> None:
    whole = await facts.learn(
        fact("I was born on 3 May 1990", attribute="me|birthday", value="3.5.1990")
    )
    again = await facts.learn(
        fact("My birthday is 3 May", attribute="me|birthday", value="3.5", message_id=2)
    )
    assert (again.id, again.mention_count, again.content) == (whole.id, 2, whole.content)
    other = await facts.learn(
        fact("My birthday is 3 June", attribute="me|birthday", value="3.6", message_id=3)
    )
    assert [known.id for known in await facts.list_page(OWN) if known.is_open] == [other.id]


YEARS = {year: datetime(year, 1, 1, tzinfo=UTC) for year in range(2015, 2027)}


async def _moves(facts: Facts, *moves: tuple[str, int]) -> dict[str, int]:
    """Learns of moves in this order, from a message each; the ids by place."""
    found = {}
    for number, (place, year) in enumerate(moves, 1):
        known = await facts.learn(
            home(place, valid_from=YEARS[year], precision="year", message_id=number)
        )
        found[place] = known.id
    return found


async def _spans(facts: Facts) -> dict[str, tuple[int | None, int | None]]:
    """From which year to which, by place; no second year: it is still so."""
    known = await facts.list_page(OWN)
    return {
        one.value: (
            one.valid_from.year if one.valid_from else None,
            None if one.is_open or one.valid_to is None else one.valid_to.year,
        )
        for one in known
    }


async def test_past_fact_ends_when_the_next_begins_even_after_one_between_is_forgotten(
    facts: Facts,
) -> None:
    ids = await _moves(facts, ("Porto", 2020), ("Faro", 2024), ("Lisbon", 2015))
    assert await _spans(facts) == {
        "lisbon": (2015, 2020),
        "porto": (2020, 2024),
        "faro": (2024, None),
    }
    await facts.forget([ids["Porto"]], OWN)
    assert await _spans(facts) == {"lisbon": (2015, 2024), "faro": (2024, None)}
    await facts.forget([ids["Faro"]], OWN)
    assert await _spans(facts) == {"lisbon": (2015, None)}


async def test_fact_of_one_group_member_is_not_closed_by_a_fact_of_another_member(
    facts: Facts,
) -> None:
    room = Scope.group("telegram", "-9")
    hers = await facts.learn(
        fact("Ana lives in Porto", scope=room, attribute="ana|home", value="porto")
    )
    other = Account(platform="telegram", user_id="7")
    his = await facts.learn(
        fact(
            "Ana lives in Rome",
            scope=room,
            attribute="ana|home",
            value="rome",
            account=other,
            speaker="Bob",
        )
    )
    sight = frozenset((room,))
    assert {known.id for known in await facts.list_page(sight) if known.is_open} == {
        hers.id,
        his.id,
    }
    assert [{known.id for known in group} for group in await facts.list_conflicts(sight)] == [
        {hers.id, his.id}
    ]


async def test_feedback_on_a_fact_raises_or_halves_its_trust(facts: Facts) -> None:
    known = await facts.learn(home("Porto"))
    surer = await facts.record_feedback(known.id, OWN, True)
    assert surer is not None
    doubted = await facts.record_feedback(known.id, OWN, False, Author(account=ME))
    assert doubted is not None
    assert surer.trust > known.trust
    assert doubted.trust == pytest.approx(surer.trust / 2)


async def test_corrected_fact_is_changed_and_its_correction_can_be_undone(
    facts: Facts, database: Database
) -> None:
    known = await facts.learn(home("Lisbon"))
    corrected = await facts.correct(
        known.id, OWN, "  I live  in Braga ", Author(account=ME, message_id=9)
    )
    assert corrected is not None
    assert (corrected.content, corrected.origin, corrected.entities) == (
        "I live in Braga",
        "person",
        ("Braga",),
    )
    assert await facts.find_by_entities(["lisbon"], OWN) == []
    step = (await facts.list_changes(known.id, OWN))[-1]
    assert (step.action, step.before, corrected.message_id) == ("correct", "I live in Lisbon", 9)
    logged = "SELECT json_extract(after, '$.content') AS after, message_id FROM fact_changes WHERE action = 'correct'"
    assert [tuple(row) for row in await database.fetch_all(logged)] == [("I live in Braga", 9)]
    undone = await facts.undo(known.id, OWN)
    assert undone is not None
    assert (undone.content, undone.trust, undone.origin) == (
        "I live in Lisbon",
        known.trust,
        "rule",
    )
    assert [found.id for found in await facts.find_by_entities(["lisbon"], OWN)] == [known.id]
    assert await facts.find_candidates(["braga"], [], OWN) == [(None, [])]
    with pytest.raises(Refused, match="empty"):
        await facts.correct(known.id, OWN, "  ")


async def test_a_correction_that_is_known_already_is_refused(facts: Facts) -> None:
    await facts.learn(fact("I like tea"))
    other = await facts.learn(fact("I like coffee"))
    with pytest.raises(Refused, match="already says that"):
        await facts.correct(other.id, OWN, "I like tea.")


async def test_undo_of_a_fact_reverts_only_its_last_change(facts: Facts) -> None:
    known = await facts.learn(home("Porto"))
    await facts.pin(known.id, OWN)
    await facts.learn(home("Porto"))
    for is_pinned in (False, True):
        undone = await facts.undo(known.id, OWN)
        assert undone is not None
        assert (undone.is_pinned, undone.mention_count) == (is_pinned, 2), "an undo is a change"
    assert await facts.undo(10_000, OWN) is None


async def test_undoing_a_learned_fact_removes_it_and_reopens_the_fact_it_closed(
    facts: Facts,
) -> None:
    lisbon = await facts.learn(home("Lisbon"))
    porto = await facts.learn(home("Porto"))
    taken_back = await facts.undo(porto.id, OWN)
    assert taken_back is not None
    assert (taken_back.content, taken_back.id) == (porto.content, 0)
    assert await facts.find(porto.id, OWN) is None
    reopened = await facts.find(lisbon.id, OWN)
    assert reopened is not None
    assert reopened.is_open
    assert reopened.valid_to is None


async def test_merged_facts_of_equal_meaning_can_be_separated_again(facts: Facts) -> None:
    pinned = await facts.learn(home("Porto"))
    await facts.pin(pinned.id, OWN)
    also = await facts.learn(
        fact("My home is Porto", attribute="me|home", value="porto", origin="person")
    )
    heard = await facts.learn(fact("Porto is my home", attribute="me|home", value="porto"))
    known = await facts.list_page(OWN)
    assert [one.id for one in known] == [pinned.id, also.id, heard.id], "nothing is deleted"
    assert [one.is_open for one in known] == [True, True, False], (
        "what a person wrote or pinned stays"
    )
    dated = await facts.learn(replace(home("Porto", valid_from=NOON), content="I moved to Porto"))
    assert dated.is_open, "it says more than they do"


async def test_of_repeated_facts_the_dated_or_later_one_stays_current(facts: Facts) -> None:
    first = await facts.learn(home("Porto"))
    dated = await facts.learn(replace(home("Porto", valid_from=NOON), content="I moved to Porto"))
    last = await facts.learn(replace(home("Porto"), content="Porto is where I live"))
    assert [one.id for one in await facts.list_page(OWN) if one.is_open] == [dated.id]
    step = (await facts.list_changes(first.id, OWN))[-1]
    assert (step.action, step.reason) == ("merge", f"f{dated.id}")
    parted = await facts.undo(first.id, OWN)
    assert parted is not None
    assert parted.is_open
    assert not (await facts.list_page(OWN))[-1].is_open
    await facts.forget([dated.id], OWN)
    assert {one.id for one in await facts.list_page(OWN) if one.is_open} == {first.id, last.id}, (
        "they are told again"
    )


async def test_forgotten_fact_leaves_no_row_behind(facts: Facts, database: Database) -> None:
    lisbon = await facts.learn(home("Lisbon"))
    porto = await facts.learn(home("Porto"))
    assert await facts.forget([porto.id, porto.id, 999, 1 << 70], OWN) == 1
    assert await facts.forget([lisbon.id], frozenset((BOB,))) == 0
    assert [known.content for known in await facts.list_page(OWN)] == ["I live in Lisbon"]
    assert (await facts.list_page(OWN))[0].is_open
    assert await facts.find_candidates(["porto"], ["porto"], OWN) == [(None, [])]
    assert await facts.forget([lisbon.id], OWN) == 1
    index = "facts_fts" if isinstance(database, SqliteDatabase) else "fact_terms"
    left = await database.read(
        lambda connection: [
            connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
            for table in ("facts", "entities", "fact_entities", "fact_changes", index)
        ]
    )
    assert left == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("text", [None, "I moved to Braga"])
async def test_fact_is_deleted_when_its_source_message_is_edited_or_deleted(
    facts: Facts, database: Database, clock: SteadyClock, text: str | None
) -> None:
    conversations = Conversations(database, clock)
    session = await opened(conversations)
    said = (await conversations.append([message(session.id, "I moved to Porto", external_id="1")]))[
        0
    ]
    await facts.learn(home("Lisbon"))
    await facts.learn(home("Porto", message_id=said.id))
    assert [known.message_id for known in await facts.list_page(OWN)] == [said.id, None]
    assert await conversations.amend(CHAT, "1", text)
    assert [(known.content, known.is_open) for known in await facts.list_page(OWN)] == [
        ("I live in Lisbon", True)
    ]


@pytest.mark.parametrize("wrong", WRONG, ids=("nobody", "another", "another platform"))
async def test_fact_of_another_scope_is_answered_like_a_missing_fact(
    facts: Facts, wrong: frozenset[Scope]
) -> None:
    known = await facts.learn(home("Porto", message_id=5, trust=0.1))
    await facts.learn(
        fact(
            "My home is Lisbon", attribute="ana|home", value="lisbon", entities=("Porto", "Lisbon")
        )
    )
    await facts.learn(fact("I said hello", scope=BOB, entities=("Hello",)))
    assert await facts.find(known.id, wrong) is None
    assert await facts.list_changes(known.id, wrong) == []
    assert all(fact.scope != ANA for fact in await facts.list_page(wrong))
    assert await facts.record_feedback(known.id, wrong, True) is None
    assert await facts.pin(known.id, wrong) is None
    assert await facts.correct(known.id, wrong, "x") is None
    assert await facts.undo(known.id, wrong) is None
    assert await facts.forget([known.id], wrong) == 0
    assert await facts.find_candidates(["porto", "live"], ["porto"], wrong) == [(None, [])]
    assert await facts.find_by_entities(["porto"], wrong) == []
    assert await facts.list_related_names(["porto"], wrong) == []
    assert await facts.list_conflicts(wrong) == []
    assert (await facts.find(known.id, OWN)) == replace(known, last_at=NOON)


async def test_facts_are_found_by_one_entity_name_or_by_several_together(facts: Facts) -> None:
    both = await facts.learn(fact("Ana and Ben share a flat", entities=("Ana", "Ben")))
    await facts.learn(fact("Ana likes tea", entities=("Ana",)))
    await facts.learn(fact("Ben met Clara in Gaia", entities=("Ben", "Clara", "Gaia")))
    assert [known.id for known in await facts.find_by_entities(["ana", "ben"], OWN)] == [both.id]
    assert len(await facts.find_by_entities(["ana"], OWN)) == 2
    assert await facts.find_by_entities(["ana", "nobody"], OWN) == []
    assert await facts.find_by_entities([], OWN) == []
    assert await facts.list_related_names(["ben"], OWN) == [("Ana", 1), ("Clara", 1), ("Gaia", 1)]


async def test_of_a_message_that_was_erased_meanwhile_nothing_is_learned(
    facts: Facts, database: Database, clock: SteadyClock
) -> None:
    conversations = Conversations(database, clock)
    session = await opened(conversations)
    (said,) = await conversations.append([message(session.id, "I live in Porto", external_id="9")])
    await conversations.amend(CHAT, "9", None)
    await facts.learn(home("Porto", message_id=said.id))
    assert await facts.list_page(OWN) == []


@pytest.mark.parametrize("term", ['"', "*", "a OR b", "", "()", "x\0", "端"])
async def test_fact_search_accepts_any_term_without_an_error(facts: Facts, term: str) -> None:
    await facts.learn(home("Porto"))
    assert await facts.find_candidates([term], [term], OWN) == [(None, [])]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=st.lists(st.sampled_from(["Porto", "Lisbon", "Faro", "Braga"]), min_size=1, max_size=12)
)
async def test_only_the_latest_fact_of_one_attribute_is_current(
    facts: Facts, database: Database, places: list[str]
) -> None:
    await facts.forget([known.id for known in await facts.list_page(OWN, limit=100)], OWN)
    for number, place in enumerate(places, 1):
        at = NOON + timedelta(days=number)
        await facts.learn(home(place, message_id=number, created_at=at))
    known = await facts.list_page(OWN, limit=100)
    assert [found.entities for found in known if found.is_open] == [(places[-1],)]
    assert all(
        found.valid_to is not None and found.valid_to >= found.created_at
        for found in known
        if not found.is_open
    )


async def test_first_facts_are_those_of_the_first_page_in_the_same_order(
    facts: Facts, database: Database
) -> None:
    for number in range(12):
        scope = ANA if number % 3 else BOB
        at = NOON + timedelta(hours=number * 5 % 7)
        known = await facts.learn(
            fact(f"Box {number} is red", scope=scope, created_at=at, last_at=at)
        )
        if number % 4 == 0:
            await facts.pin(known.id, frozenset({scope}), is_pinned=True)
        if number % 5 == 0:
            await facts.remove(known.id, frozenset({scope}))
    for scopes in (OWN, frozenset({ANA, BOB}), frozenset[Scope]()):
        for limit in (0, 3, 20):
            page = await facts.list_page(scopes, limit)
            assert await list_first_facts(database, scopes, limit) == page
