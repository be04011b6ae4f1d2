"""What nobody means well: hostile queries through every face of recall, senseless numbers, and what
is not yours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ToolError
from core.search.recall import Recall
from core.search.tool import session_search
from core.store.sqlite.database import Database
from core.types import Address, Sender, Session, Tool, ToolContext
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import mneme
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.stored_history import ANA, BEN, StoredHistory
from tests.fixtures.sweeps import keep_first
from tests.gateway.cli.test_main import imported

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
HOSTILE = {
    "one word": "a" * MEGABYTE,
    "words": "ferry " * (MEGABYTE // 6),
    "other words": " ".join(map(str, range(150_000))),
    "quotes": '"' * MEGABYTE,
    "quoted": '"a b" ' * (MEGABYTE // 6),
    "open quote": '"' + "ferry " * 1000,
    "operators": "a OR NOT -b AND " * (MEGABYTE // 16),
    "beginnings": "f* " * (MEGABYTE // 3),
    "one endless phrase": "a." * (MEGABYTE // 2),
    "brackets": "(" * MEGABYTE,
    "an expression that explodes": "(a+)+$" * (MEGABYTE // 6),
    "blanks": " \t" * (MEGABYTE // 2) + "x",
    "dashes": "-" * MEGABYTE,
    "NUL": "\0" * MEGABYTE,
    "NUL inside": "fer\0ry",
    "lone surrogates": "\ud83d ferry \udfff" * 1000,
    "replacement": "\ufffd" * MEGABYTE,
    "Han": "数" * (MEGABYTE // 3),
    "many Han": "".join(chr(0x4E00 + number % 20_000) for number in range(MEGABYTE // 3)),
    "emoji": "👍" * (MEGABYTE // 4),
    "marks": "e\u0301\u0334\u0335" * (MEGABYTE // 7),
    "what grows when it is folded": "\ufdfa" * (MEGABYTE // 3),
    "right to left": "\u202e" * (MEGABYTE // 3),
    "filters": "from:from:" * (MEGABYTE // 10),
    "one filter often": "before:may in:1 " * (MEGABYTE // 16),
    "dates": "1.1.1 may to " * (MEGABYTE // 13),
    "SQL": "'); DROP TABLE messages; -- %_\\",
    "FTS5": "NEAR(a b, 10) {text}: ^x col:y * + -",
    "numbers": "in:99999999999999999999 around:-1 page:0 page:1e9 limit:-5",
}
HUGE = (10**9, 10**30, -1, -(10**30), 0)


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


async def answered(tool: Tool, context: ToolContext, **arguments: Any) -> dict[str, Any]:
    """What the tool says, without what a clock has in it."""
    result: dict[str, Any] = json.loads(await tool.run(arguments, context))
    del result["took_ms"]
    return result


@pytest.mark.parametrize("name", keep_first(8, HOSTILE))
async def test_search_tool_answers_hostile_text_with_visible_rows_only(
    stored: StoredHistory, tool: Tool, context: ToolContext, name: str
) -> None:
    await stored.session(["the ferry at noon 数据库", "a b, noted 👍"])
    await stored.session(["secret ferry"], scope=BEN)
    for arguments in (
        {"query": HOSTILE[name]},
        {"query": "ferry", "title": HOSTILE[name], "sender": HOSTILE[name]},
    ):
        found = await answered(tool, context, **arguments)
        assert found["shape"] == "discovery"
        assert "secret" not in json.dumps(found["sessions"])
    with pytest.raises(ToolError, match="isn't a time I understand"):
        await tool.run({"query": "ferry", "before": HOSTILE[name]}, context)
    assert len((await answered(tool, context, query="ferry"))["sessions"]) == 1, (
        "and goes on as before"
    )


@pytest.mark.parametrize("number", HUGE)
async def test_search_tool_limits_absurd_numbers_in_its_arguments(
    stored: StoredHistory, tool: Tool, context: ToolContext, number: int
) -> None:
    for _ in range(12):
        session, first, *_ = await stored.session([f"the ferry {n}" for n in range(8)])
    found = await answered(tool, context, query="ferry", limit=number, budget_chars=number)
    assert 1 <= len(found["sessions"]) <= 10
    scrolled = await answered(
        tool, context, session_id=session, around_message_id=first, window=number
    )
    assert 1 <= len(scrolled["sessions"][0]["window"]) <= 8
    assert len((await answered(tool, context, query="ferry", page=number))["sessions"]) <= 3
    for arguments in (
        {"session_id": number},
        {"around_message_id": number},
        {"query": "ferry", "session_id": number},
    ):
        assert (await answered(tool, context, **arguments))["sessions"] == []


async def test_search_tool_answers_for_another_persons_session_as_for_a_missing_one(
    stored: StoredHistory, tool: Tool, context: ToolContext
) -> None:
    mine, first = await stored.session(["my ferry"])
    theirs, message = await stored.session(["their ferry"], scope=BEN, title="Theirs")
    command = await stored.say(mine, "/recall", kind="command")
    for place in ({}, {"session_id": mine}, {"session_id": theirs}, {"session_id": 10**6}):
        absent = await answered(tool, context, **place, around_message_id=10**6)
        for id_ in (message, command):
            assert await answered(tool, context, **place, around_message_id=id_) == absent
    absent = await answered(tool, context, session_id=10**6)
    assert await answered(tool, context, session_id=theirs) == absent
    absent = await answered(tool, context, session_id=10**6, around_message_id=first)
    assert await answered(tool, context, session_id=theirs, around_message_id=first) == absent
    for typed in ("ferry in:{}", "in:{}", "around:{}", 'ferry title:"Theirs" in:{}'):
        told = [
            json.dumps(await answered(tool, context, query=typed.format(id_)), ensure_ascii=False)
            for id_ in (theirs, 10**6)
        ]
        assert told[0].replace(str(theirs), "N") == told[1].replace(str(10**6), "N")


async def test_chat_answers_hostile_commands_within_one_message(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("When does the ferry leave?")
        await harness.say("their secret", who="7")
        # The tool and the shell search with all of them.
        for name, text in [*HOSTILE.items()][::6]:
            reply = await harness.say("/recall " + text)
            assert 0 < len(reply.text) < 5_000, name
            assert "secret" not in reply.text
        for typed in ("around:{}", "in:{}", "ferry in:{}"):
            told = [(await harness.say("/recall " + typed.format(id_))).text for id_ in (3, 10**6)]
            assert told[0].replace("3", "N") == told[1].replace(str(10**6), "N")


@pytest.mark.slow
def test_recall_command_answers_hostile_queries_without_a_traceback(home: Path) -> None:
    imported(home)
    stdin = "\n".join(HOSTILE.values()).encode("utf-8", "surrogatepass")
    done = mneme(home, "recall", "-", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]
    assert [answer["shape"] for answer in answers] == ["discovery"] * len(HOSTILE)
    for wrong in (("--limit", "1000000000"), ("--window", "-1")):
        done = mneme(home, "recall", "ferry", *wrong)
        assert (done.returncode, done.stdout) == (2, "")
    beyond = mneme(home, "recall", f"around:{10**17}", "--json")
    assert (beyond.returncode, beyond.stdout) == (1, "")
    assert "There is no such message here" in beyond.stderr
