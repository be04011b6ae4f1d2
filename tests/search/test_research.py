"""Recall with a model's help: the question keeps its filters, its searches are fused, and nothing
needs the model."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.errors import ModelError
from core.ports import Model
from core.search.expansion import NO_MODEL, NOT_EXPANDED, ExpandedRecall
from core.search.recall import Recall
from core.store.query import SearchResults
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, BEN, StoredHistory

pytestmark = pytest.mark.slow

MINE = search_query(scopes=frozenset({ANA}), sessions=5, is_expanded=True)


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


def _research(database: Database, model: Model | None) -> ExpandedRecall:
    clock = SteadyClock()
    return ExpandedRecall(
        Recall(database, clock),
        Conversations(database, clock),
        model,
        "small",
        clock,
        ZoneInfo("UTC"),
    )


async def _ask(database: Database, text: str, *searches: str, **changes: object) -> SearchResults:
    model = ScriptedModel(says(json.dumps(searches)))
    return await _research(database, model).recall(with_fields(MINE, text=text, **changes))


def _sessions(findings: SearchResults) -> list[int]:
    return [found.session.id for found in findings.sessions]


async def test_query_without_expansion_asks_no_model(
    stored: StoredHistory, database: Database
) -> None:
    await stored.session(["the ferry"])
    model = ScriptedModel()
    query = with_fields(MINE, text="ferry", is_expanded=False)
    findings = await _research(database, model).recall(query)
    assert replace(findings, took_ms=0.0) == replace(
        await Recall(database, SteadyClock()).recall(query), took_ms=0.0
    )
    assert not model.requests


async def test_research_finds_messages_by_the_helper_models_searches_beyond_the_questions_words(
    stored: StoredHistory, database: Database
) -> None:
    boat, *_ = await stored.session(["the boat to Porto", "booked"])
    ferry, *_ = await stored.session(["the ferry timetable"])
    findings = await _ask(
        database, "What about the ferry?", "boat Porto", "role:assistant zeppelin"
    )
    assert _sessions(findings) == [ferry, boat]
    assert findings.query == "What about the ferry?"
    assert findings.note is not None
    assert findings.note.endswith("I also searched for “boat Porto”, “role:assistant zeppelin”.")
    assert findings.sessions[0].score > findings.sessions[1].score
    nothing = await _ask(database, "What about the zeppelin?", "blimp")
    assert nothing.sessions == ()
    assert nothing.note is not None
    assert nothing.note.startswith("I looked for")
    rescued = await _ask(database, "What about the zeppelin?", "boat")
    assert _sessions(rescued) == [boat]
    assert rescued.note == "I also searched for “boat”.", (
        "what was said of the empty question is not said"
    )


async def test_filters_typed_in_the_question_hold_for_every_search(
    stored: StoredHistory, database: Database
) -> None:
    boat, _, answered = await stored.session(["the boat of Ana", "the boat is booked"])
    await stored.session(["the boat of Ben"], platform="discord", sender="Ben")
    await stored.session(["the boat of a stranger"], scope=BEN)
    findings = await _ask(
        database, "ferry on:telegram role:assistant after:2023", "boat", messages=9
    )
    assert _sessions(findings) == [boat]
    assert [hit.message_id for hit in findings.messages] == [answered]
    assert findings.query == "ferry on:telegram role:assistant after:2023"
    wrong = await _ask(database, "ferry on:tele role:assistant", "boat")
    assert wrong.note is not None
    assert wrong.note.startswith("“tele” is neither a platform")
    late = await _ask(database, "ferry", "boat", after=datetime(2024, 1, 1, tzinfo=UTC))
    assert late.sessions == ()
    hidden = await _ask(
        database, "ferry", "boat", hidden=((boat, 0, 2**62),), platforms=("telegram",)
    )
    assert hidden.sessions == ()


async def test_session_and_message_found_by_several_searches_are_listed_once(
    stored: StoredHistory, database: Database
) -> None:
    root, first = await stored.session(["the ferry"])
    child, second = await stored.session(["the boat"], parent_id=root)
    findings = await _ask(database, "ferry", "boat", "ferry", messages=9)
    assert len(findings.sessions) == 1
    assert {hit.message_id for hit in findings.sessions[0].matches} == {first, second}
    assert [hit.message_id for hit in findings.messages] == [first, second]
    assert {hit.session_id for hit in findings.messages} == {root, child}


async def test_original_question_weighs_more_than_one_expanded_search_and_less_than_several(
    stored: StoredHistory, database: Database
) -> None:
    ferry, *_ = await stored.session(["the ferry"])
    boat, *_ = await stored.session(["the boat"])
    assert _sessions(await _ask(database, "ferry", "boat")) == [ferry, boat]
    assert _sessions(await _ask(database, "ferry", "boat", "the boat", "boats")) == [boat, ferry]


async def test_pages_of_all_searches_together_are_everything_once(
    stored: StoredHistory, database: Database
) -> None:
    for number in range(6):
        await stored.session([f"the ferry {number}"])
        await stored.session([f"the boat {number}"])
    model = ScriptedModel(says('["boat"]'))
    research, query = _research(database, model), with_fields(MINE, text="ferry", sessions=4)
    pages = [await research.recall(with_fields(query, page=page)) for page in (1, 2, 3)]
    assert [page.has_more for page in pages] == [True, True, False]
    assert sorted(id_ for page in pages for id_ in _sessions(page)) == list(range(1, 13))
    assert {page.note for page in pages} == {"I also searched for “boat”."}
    assert len(model.requests) == 1


async def test_texts_of_expanded_recall_stay_within_the_callers_size_limit(
    stored: StoredHistory, database: Database
) -> None:
    for word in ("ferry", "boat", "ferry", "boat"):
        await stored.session([f"{word} " + "word " * 2000] * 3)
    findings = await _ask(database, "ferry", "boat", budget_chars=2_000, sessions=2)
    items = [
        item
        for one in findings.sessions
        for item in (*one.bookend_start, *one.window, *one.bookend_end)
    ]
    assert 1_000 < sum(len(item.text) for item in items) < 2_200


async def test_recall_searches_the_question_alone_if_its_expansion_fails(
    stored: StoredHistory, database: Database
) -> None:
    ferry, *_ = await stored.session(["the ferry"])
    query = replace(MINE, text="ferry on:telegram")
    for model, note in (
        (
            ScriptedModel(ModelError("The model is overloaded.")),
            f"{NOT_EXPANDED} The model is overloaded.",
        ),
        (ScriptedModel(says("No.")), f"{NOT_EXPANDED} The model suggested no searches."),
        (ScriptedModel(says("[]")), None),
        (None, f"{NOT_EXPANDED} {NO_MODEL}"),
    ):
        findings = await _research(database, model).recall(query)
        assert (_sessions(findings), findings.note, findings.query) == ([ferry], note, query.text)
    untouched = ScriptedModel()
    for changes in ({"text": " "}, {"text": "on:telegram"}, {"text": "ferry", "around": 1}):
        await _research(database, untouched).recall(with_fields(MINE, **changes))
    assert not untouched.requests, "there is nothing to expand"


async def test_recall_can_expand_the_query_and_summarise_the_results_together(
    stored: StoredHistory, database: Database
) -> None:
    await stored.session(["the boat to Porto"])
    model = ScriptedModel(says('["boat"]'), says("They took the boat."))
    findings = await _research(database, model).recall(
        with_fields(MINE, text="ferry", is_summarized=True)
    )
    assert findings.sessions[0].summary == "They took the boat."
    assert "What they look for: ferry" in model.sent()


async def test_read_and_listed_sessions_are_summarised_too(
    stored: StoredHistory, database: Database
) -> None:
    session, *_ = await stored.session(["the boat to Porto"])
    for changes in ({"session_id": session}, {"text": f"in:{session}"}, {}):
        model = ScriptedModel(says("About a boat."))
        query = with_fields(MINE, is_expanded=False, is_summarized=True, **changes)
        findings = await _research(database, model).recall(query)
        assert [found.summary for found in findings.sessions] == ["About a boat."]
        assert "nothing in particular" in model.sent()


async def test_the_model_asks_for_summaries_within_a_turn(home: Path) -> None:
    asked = {"query": "What about the ferry?", "summarize": True, "expand": True}
    model = ScriptedModel(says("Noon it is."), calls(("session_search", asked)), says("At noon."))
    titles = ScriptedModel(says("A trip"))
    # The tool may take longer than others: its own limit holds.
    options = "[model]\ntool_timeout_s = 30\n[memory]\nfacts = false\n"
    async with open_gateway(home, model, options, titles=titles) as harness:
        await harness.say("The boat leaves at noon.")
        await harness.say("/new")
        titles.script += [says('["boat leaves"]'), says("They settled on noon.")]
        reply = await harness.say("When does the ferry leave?")
        assert reply.text == "At noon."
        (block,) = model.requests[-1].messages[-1]["content"]
        result = json.loads(block["content"])
        assert [session["summary"] for session in result["sessions"]] == ["They settled on noon."]
        assert "I also searched for “boat leaves”." in result["note"]
        used = harness.services.settings.model.helper
        assert {request.model for request in titles.requests} == {used}
        before = len(titles.requests)
        assert "noon" in (await harness.say("/recall boat")).text
        assert len(titles.requests) == before, "nobody pays for what was not asked for"
