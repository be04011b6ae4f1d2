"""The deep search: one call of a model sorts the messages and adds searches, also in the
background of a turn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.errors import ModelError
from core.search.expansion import DEEP_CACHE_TIME, ExpandedRecall
from core.search.recall import Recall
from core.store.query import SearchResults
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import BillingScope, Completion, Request
from tests.bench.expanded import Deep
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.search_queries import search_query, with_fields
from tests.fixtures.stored_history import ANA, StoredHistory

pytestmark = pytest.mark.slow

MINE = search_query(
    scopes=frozenset({ANA}),
    sessions=5,
    messages=30,
    text="Which hobby does Ben have?",
    is_expanded=True,
    is_reranked=True,
)

# The search of a question ends at some time after its answer, so at most so many turns wait for it.
MAX_TURNS = 30


def answer(order: list[int], *searches: str) -> str:
    return json.dumps({"order": order, "searches": searches})


class _World:
    """Five conversations, and a recall with a scripted model."""

    def __init__(self, database: Database, *script: Any) -> None:
        self.clock = SteadyClock()
        self.model = ScriptedModel(*script)
        self.database = database
        self.recall = ExpandedRecall(
            Recall(database, self.clock),
            Conversations(database, self.clock),
            self.model,
            "small",
            self.clock,
            ZoneInfo("UTC"),
        )

    async def fill(self) -> None:
        stored = StoredHistory(self.database)
        for text in ("Ben has a hobby horse", "Ben asked which train to take", "Ben has a cold"):
            await stored.session([text])
        await stored.session(["he develops his photographs in the cellar"])

    async def search(self, **changes: Any) -> SearchResults:
        return await self.recall.recall(with_fields(MINE, **changes))


def _texts(results: SearchResults) -> list[str]:
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in results.messages]


async def test_deep_search_sorts_messages_and_finds_a_member_of_the_category(
    database: Database,
) -> None:
    world = _World(database, says(answer([], "photographs cellar")))
    await world.fill()
    results = await world.search()
    (request,) = world.model.requests
    assert request.kind == "deep"
    assert "1. (" in world.model.sent()
    assert "Which hobby does Ben have?" in world.model.sent()
    assert "he develops his photographs in the cellar" in _texts(results)
    assert results.note == "I also searched for “photographs cellar”."


async def test_deep_search_results_chosen_by_the_model_rank_above_its_other_searches(
    database: Database,
) -> None:

    def cold_first(request: Request) -> Completion:
        lines = str(request.messages[-1]["content"][0]["text"]).splitlines()
        number = next(int(line.partition(".")[0]) for line in lines if "cold" in line)
        return says(answer([number, 99], "photographs cellar"))

    world = _World(database, cold_first)
    await world.fill()
    texts = _texts(await world.search())
    assert texts[0] == "Ben has a cold"
    assert "he develops his photographs in the cellar" in texts


@pytest.mark.parametrize(
    "step",
    [
        says("no idea"),
        says("[1, 2]"),
        says('{"order": ["1"], "searches": []}'),
        says('{"order": [1], "searches": [7]}'),
        ModelError("out of reach"),
    ],
    ids=["prose", "list", "texts", "numbers", "failure"],
)
async def test_unreadable_answer_leaves_the_plain_result_and_is_named(
    database: Database, step: Any
) -> None:
    world = _World(database, step)
    await world.fill()
    plain = await world.search(is_expanded=False, is_reranked=False)
    results = await world.search()
    assert _texts(results) == _texts(plain)
    assert (results.note or "").startswith("The model couldn't help with the search.")


async def test_same_search_is_answered_from_the_cache_until_time_or_an_erasure(
    database: Database,
) -> None:
    world = _World(database, *[says(answer([1])) for _ in range(4)])
    await world.fill()
    await world.search()
    await world.search(billing=BillingScope(session_id=7))
    await world.search(page=2)
    assert len(world.model.requests) == 1
    world.clock.moment += DEEP_CACHE_TIME
    await world.search()
    assert len(world.model.requests) == 2
    world.recall.invalidate()
    await world.search()
    assert len(world.model.requests) == 3


async def test_request_is_bounded_whatever_the_messages_say(database: Database) -> None:
    world = _World(database, says(answer([1])))
    stored = StoredHistory(database)
    for number in range(30):
        await stored.session([f"Ben has a hobby, {number} " + "which is long " * 500])
    await world.search(text="Which hobby does Ben have? " + "hobby " * 2_000)
    assert len(world.model.sent()) < 12_000


@pytest.mark.parametrize("switch", ["--deep", "--expand", "--rerank"])
async def test_each_option_for_deep_recall_runs_the_same_deep_search(
    tmp_path: Path, switch: str
) -> None:
    helper = ScriptedModel()
    async with open_gateway(tmp_path, ScriptedModel(), titles=helper) as harness:
        await harness.say("the ferry leaves at nine")
        helper.requests.clear()
        helper.script[:] = [says(answer([1], "boat"))]
        text = (await harness.say(f"/recall {switch} when does the ferry leave")).text
        assert [request.kind for request in helper.requests] == ["deep"]
        assert "I also searched for “boat”." in text


@pytest.mark.parametrize("is_on", [True, False])
async def test_background_deep_search_adds_its_results_to_a_later_turn_if_turned_on(
    tmp_path: Path, is_on: bool
) -> None:
    asked: list[Request] = []
    is_deep = asyncio.Event()

    def assist(request: Request) -> Completion:
        asked.append(request)
        if request.kind == "deep":
            is_deep.set()
        return says(answer([], "photographs") if request.kind == "deep" else "[]")

    helper = ScriptedModel(*[assist] * 20)
    model = ScriptedModel()
    options = f"[recall]\nbackground = {str(is_on).lower()}\n"
    async with open_gateway(tmp_path, model, options, helper) as harness:
        await harness.say("Ben develops his photographs in the cellar")
        await harness.say("/new")
        await harness.say("which pastime has my brother got?")
        if is_on:
            await asyncio.wait_for(is_deep.wait(), 30)
        for _ in range(MAX_TURNS):
            await harness.say("tell me more")
            has_lines = "photographs" in str(model.requests[-1].messages)
            if has_lines or not is_on:
                break
        assert has_lines is is_on
        assert any(request.kind == "deep" for request in asked) is is_on


async def test_bench_measures_the_deep_search_of_a_configured_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [
        {
            "id": f"s{number}",
            "started_at": 1_770_000_000 + number,
            "messages": [
                {
                    "id": f"m{number}",
                    "speaker": "Ana",
                    "text": text,
                    "role": "user",
                    "ts": 1_770_000_000 + number,
                }
            ],
        }
        for number, text in enumerate(("I like chess a lot", "the train was late again"))
    ]
    async with MessagesApi(lambda body: answer([1], "chess"), key="sk-ant-bench") as api:
        monkeypatch.setenv("MNEME_HOME", str(tmp_path))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-bench")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)

        def measure() -> list[tuple[str, str]]:
            searcher = Deep()
            searcher.index(sessions)
            try:
                return searcher.search("which hobby does Ana have?", 5)
            finally:
                searcher.close()

        assert ("s0", "m0") in await asyncio.to_thread(measure)
    assert api.refusals == []
    assert len(api.requests) == 1
