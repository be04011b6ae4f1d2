"""The model's way into recall."""

from __future__ import annotations

import json
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from jsonschema import Draft202012Validator

from core.errors import ToolError
from core.search.expansion import ExpandedRecall
from core.search.recall import Recall
from core.search.tool import BUDGET_CHARS, session_search
from core.store.sessions import Conversations
from core.store.sqlite.database import Database
from core.types import Address, Sender, Session, Tool, ToolContext
from tests.fixtures.clock import SteadyClock
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.stored_history import ANA, BEN, StoredHistory


@pytest.fixture
def stored(database: Database) -> StoredHistory:
    return StoredHistory(database)


@pytest.fixture
def tool(database: Database, clock: SteadyClock) -> Tool:
    return session_search(Recall(database, clock))


@pytest.fixture
def context(clock: SteadyClock) -> ToolContext:
    session = Session(
        id=99, address=Address(platform="telegram", chat_id="1"), scope=ANA, started_at=clock.now()
    )
    return ToolContext(
        session=session,
        scope=ANA,
        scopes=frozenset({ANA}),
        sender=Sender(id="1", name="Ana"),
        now=clock.now(),
    )


def test_session_search_tool_has_a_valid_schema_and_its_results_are_not_indexed(tool: Tool) -> None:
    Draft202012Validator.check_schema(dict(tool.schema))
    assert tool.name == "session_search"
    assert tool.is_quote
    assert set(tool.schema["properties"]) == {
        "query", "role_filter", "before", "after", "title", "sender", "platform", "limit", "session_id",
        "around_message_id", "window", "budget_chars", "page", "expand", "rerank", "summarize",
    }  # fmt: skip


async def test_search_tool_finds_reads_scrolls_and_browses_sessions(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    session, first, second = await stored.session(["the ferry at noon", "noted"], title="Travel")
    found = json.loads(await tool.run({"query": "ferry"}, context))
    assert found["shape"] == "discovery"
    assert found["sessions"][0]["matches"][0]["message_id"] == first
    assert json.loads(await tool.run({"session_id": session}, context))["shape"] == "read"
    scrolled = json.loads(
        await tool.run({"session_id": session, "around_message_id": second, "window": 1}, context)
    )
    assert [item["message_id"] for item in scrolled["sessions"][0]["window"]] == [first, second]
    browsed = json.loads(await tool.run({}, context))
    assert browsed["shape"] == "browse"
    assert browsed["sessions"][0]["title"] == "Travel"


async def test_role_filter_of_the_search_tool_limits_matches_to_roles(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    _, _mine, yours = await stored.session(["ferry asked", "ferry answered"])
    found = json.loads(
        await tool.run({"query": "ferry", "role_filter": ["assistant"], "limit": None}, context)
    )
    assert [match["message_id"] for match in found["sessions"][0]["matches"]] == [yours]
    with pytest.raises(ToolError, match="'user', 'assistant' or 'tool'"):
        await tool.run({"query": "ferry", "role_filter": ["system"]}, context)


async def test_session_search_tool_without_a_result_returns_a_note_of_what_it_tried(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    note = json.loads(await tool.run({"query": "absent"}, context))["note"]
    assert note == "Nothing found. I looked for “absent”."
    assert "no such" in json.loads(await tool.run({"session_id": 12345}, context))["note"]
    assert "There are no conversations yet" in json.loads(await tool.run({}, context))["note"]


async def test_wrong_arguments_of_the_search_tool_are_refused_in_a_sentence(
    tool: Tool, context: ToolContext
) -> None:
    with pytest.raises(ToolError, match="limit"):
        await tool.run({"query": "x", "limit": "many"}, context)
    with pytest.raises(ToolError, match="before: 'banana' isn't a time"):
        await tool.run({"query": "x", "before": "banana"}, context)
    with pytest.raises(ToolError, match="colour"):
        await tool.run({"colour": "red"}, context)


async def test_long_messages_are_cut_to_the_budget(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    await stored.session([f"ferry {n} " + "word " * 2000 for n in range(12)])
    result = await tool.run({"query": "ferry"}, context)
    assert len(result) < 2 * BUDGET_CHARS


async def test_session_search_tool_limits_its_result_to_the_requested_characters(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    await stored.session([f"ferry {n} " + "word " * 2000 for n in range(12)])
    sizes = [
        len(await tool.run({"query": "ferry", "budget_chars": chars}, context))
        for chars in (-5, 20_000, 10**9)
    ]
    assert sizes[0] < 6_000 < sizes[1] < sizes[2] < 120_000


async def test_parameters_of_the_search_tool_filter_its_matches(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    _, a, b = await stored.session(
        ["ferry asked", "ferry answered"], title="Trip to Porto", sender="Ana"
    )
    _, c = await stored.session(["ferry noted"], platform="discord", title="Work", sender="Ben")
    begun = "2023-11-14"
    for arguments, expected in (
        ({"title": "porto"}, {a, b}),
        ({"sender": "ben"}, {c}),
        ({"sender": "assistant"}, {b}),
        ({"sender": "user"}, {a, c}),
        ({"platform": ["discord"]}, {c}),
        ({"platform": ["Telegram", "cron"]}, {a, b}),
        ({"after": begun, "before": "today"}, {a, b, c}),
        ({"before": begun}, set()),
        ({"after": "2023-11-15"}, set()),
        ({"query": "ferry from:ben"}, {c}),
    ):
        found = json.loads(await tool.run({"query": "ferry", **arguments}, context))
        assert {
            match["message_id"] for one in found["sessions"] for match in one["matches"]
        } == expected, arguments
    newest = json.loads(await tool.run({"sender": "ana"}, context))
    assert [one["matches"][0]["snippet"] for one in newest["sessions"]] == ["ferry asked"]
    listed = json.loads(await tool.run({"platform": ["discord"]}, context))
    assert [one["title"] for one in listed["sessions"]] == ["Work"]
    other = replace(context, scope=BEN, scopes=frozenset({BEN}))
    for asked in (
        {"sender": "ana"},
        {"title": "porto"},
        {"query": "ferry", "sender": "user"},
        {"after": begun},
    ):
        assert json.loads(await tool.run(asked, other))["sessions"] == []


async def test_pages_of_the_search_tool_follow_each_other(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    made = [(await stored.session([f"ferry {number}"]))[0] for number in range(3)]
    pages = [
        json.loads(await tool.run({"query": "ferry", "limit": 2, "page": page}, context))
        for page in (1, 2)
    ]
    assert sorted(one["session_id"] for page in pages for one in page["sessions"]) == made
    assert [page.get("has_more", False) for page in pages] == [True, False]


async def test_search_tool_expands_and_summarizes_with_a_model(
    stored: StoredHistory, database: Database, clock: SteadyClock, context: ToolContext
) -> None:
    await stored.session(["the boat", "noted"])
    model = ScriptedModel(says('["boat"]'), says("They took the boat."))
    recall, zone = Recall(database, clock), ZoneInfo("UTC")
    research = ExpandedRecall(recall, Conversations(database, clock), model, "small", clock, zone)
    tool = session_search(research)
    found = json.loads(
        await tool.run({"query": "ferry", "expand": True, "summarize": True}, context)
    )
    assert [one["summary"] for one in found["sessions"]] == ["They took the boat."]
    assert "“boat”" in found["note"]
    plain = json.loads(await tool.run({"query": "boat"}, context))
    assert "summary" not in plain["sessions"][0]
    assert len(model.requests) == 2
    assert tool.timeout_s > 2 * ExpandedRecall.model_timeout_s + ExpandedRecall.summaries_timeout_s


async def test_session_search_tool_shows_neither_foreign_messages_nor_those_in_the_prompt(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    session, first = await stored.session(["ferry"])
    other = replace(context, scope=BEN, scopes=frozenset({BEN}))
    assert json.loads(await tool.run({"query": "ferry"}, other))["sessions"] == []
    assert (
        json.loads(await tool.run({"session_id": session, "around_message_id": first}, other))[
            "sessions"
        ]
        == []
    )
    hidden = replace(context, window=((session, 0, 2**63 - 1),))
    assert json.loads(await tool.run({"query": "ferry"}, hidden))["sessions"] == []


async def test_each_message_of_a_short_session_is_listed_once(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    _, *ids = await stored.session(["the ferry at noon", "noted", "thanks", "bye"])
    (entry,) = json.loads(await tool.run({"query": "ferry"}, context))["sessions"]
    parts = [*entry["bookend_start"], *entry["window"], *entry["bookend_end"]]
    assert sorted(item["message_id"] for item in parts) == ids


async def test_browsing_in_a_first_conversation_says_that_it_is_the_first(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    session, first, last = await stored.session(["hello", "hi"])
    here = replace(context, window=((session, first, last),))
    note = json.loads(await tool.run({}, here))["note"]
    assert note == "This is the first conversation. There are no earlier ones."
