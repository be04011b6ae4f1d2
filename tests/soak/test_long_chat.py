"""A chat of thousands of messages at the terminal, in several lives of the house: it stays one
conversation, all of it is found, and what was decided stays before the model, however often its
earlier part is condensed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from core.search.recall import Recall
from core.store.sqlite.database import Database
from tests.bench.speed import SCOPES, Store
from tests.fixtures.clock import SteadyClock
from tests.fixtures.command_line import good
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.search_queries import search_query

LIVES, TURNS = 10, 250
SESSION, RARE, ROUNDS, WARM, SLOWER = 20, 400, 20, 5, 3.0
TYPED = "Albatross Cascais"
ASKED = (TYPED, '"Albatross and lies"', "What is the name of my boat in Cascais?")
FIRST = "My boat is called Albatross and lies in Cascais."
DECISIONS = {
    40: "We decided to paint the hull green.",
    900: "We decided to leave on 12 June with the crew of Marta.",
    1700: "We decided not to paint the hull green, but blue.",
}


def answer(body: dict[str, Any]) -> ModelReply:
    """Talks, and is no help in making summaries: these are made by rules."""
    return ModelReply.say("That is on the list." if body.get("tools") else "A boat and its errands")


@pytest.mark.timeout(1800)
async def test_conversation_of_five_thousand_messages_stays_one_session_with_fast_recall(
    home: Path,
) -> None:
    (home / "mneme.toml").write_text("[model]\nwindow_tokens = 20000\n[memory]\nfacts = false\n")
    lines = [
        FIRST,
        *(
            f"Errand {n}: carry lantern{n % RARE} to shed {n % 37}."
            for n in range(1, LIVES * TURNS)
        ),
    ]
    for number, decision in DECISIONS.items():
        lines[number] = decision
    async with MessagesApi(answer) as api:
        options = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "k"}
        for life in range(LIVES):
            typed = "\n".join(lines[life * TURNS : (life + 1) * TURNS])
            said = await asyncio.to_thread(good, home, "chat", stdin=typed, **options)
            assert said.count("That is on the list.") == TURNS
        assert api.refusals == []
        talked = [request for request in api.requests if request.get("tools")]
        last = json.dumps(talked[-1]["messages"])
        assert len(last) < 80_000, "it is short"
        assert [
            decision
            for decision in (FIRST, *DECISIONS.values())
            if decision.rstrip(".") not in last
        ] == []
        asked = "/recall Albatross Cascais\n/sessions\n"
        told = await asyncio.to_thread(good, home, "chat", stdin=asked, **options)
    assert FIRST in told
    (row,) = [line for line in told.splitlines() if line.startswith("• ")]
    assert f"{2 * LIVES * TURNS:,} messages" in row
    found = json.loads(good(home, "recall", "What is the name of my boat in Cascais?", "--json"))
    assert FIRST in found["sessions"][0]["matches"][0]["snippet"].replace(">>>", "").replace(
        "<<<", ""
    )
    here, apart = home / "state.db", await filled(home / "apart", lines)
    rare = [(apart, f"lantern{number}") for number in range(0, RARE, RARE // ROUNDS)]
    times = await took_ms([(path, asked) for path in (here, apart) for asked in ASKED] + rare)
    to_table = times[here, TYPED] / median(times[one] for one in rare)
    to_apart = {asked: times[here, asked] / times[apart, asked] for asked in ASKED}
    assert to_table < 2.0, "against typed words that stand in a few messages of such a store"
    assert max(to_apart.values()) < SLOWER, to_apart


async def filled(folder: Path, lines: list[str]) -> Path:
    """A store like that of the table of speed (`make bench -- --only speed`): the same words in
    sessions of 20."""
    await asyncio.to_thread(folder.mkdir)
    store = Store()
    await store.open(folder)
    said = [
        (role, text)
        for line in lines
        for role, text in (("user", line), ("assistant", "That is on the list."))
    ]
    for at in range(0, len(said), SESSION):
        messages = [
            {"role": role, "text": text, "ts": 1.7e9 + at} for role, text in said[at : at + SESSION]
        ]
        await store.fill({"id": f"s{at}", "started_at": 1.7e9 + at}, messages)
    await store.filled()
    await store.close()
    return folder / "state.db"


async def took_ms(questions: Sequence[tuple[Path, str]]) -> dict[tuple[Path, str], float]:
    """How long recall takes in each store with each question, on average; warm; they take turns."""
    spent: dict[tuple[Path, str], list[float]] = {}
    async with AsyncExitStack() as stack:
        recalls: dict[Path, Recall] = {}
        for path in dict.fromkeys(path for path, _ in questions):
            recalls[path] = Recall(
                await stack.enter_async_context(Database.open(path)), SteadyClock()
            )
            while await recalls[path].tend():
                pass
        for path, asked in [*questions] * ROUNDS:
            found = [
                await recalls[path].recall(search_query(scopes=SCOPES, text=asked, sessions=3))
                for _ in range(WARM)
            ]
            assert asked.rpartition(" ")[2].strip('"?') in str(found[-1].sessions)
            spent.setdefault((path, asked), []).append(min(one.took_ms for one in found))
    return {asked: median(times) for asked, times in spent.items()}
