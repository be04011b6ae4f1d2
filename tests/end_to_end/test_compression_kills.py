"""The process is killed at each step of a compression; afterwards the conversation goes on as if it
had not been."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.search.recall import Recall
from tests.fixtures.clock import SteadyClock
from tests.fixtures.echo_model import said
from tests.fixtures.kill_storm import TOKEN
from tests.fixtures.live_system import KEY, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.stores import hold_writes, open_store

pytestmark = pytest.mark.slow

# The guidance and the tools take about 7,000 tokens of each request. With the last turns, a summary
# and the next message they must stay below three quarters of the window, or the continued
# conversation is compressed a second time, as it should be.
SMALL = "[model]\nwindow_tokens = 20000\n"
LONG = "the quay is long and the ferry is slow. " * 170
SUMMARY = "## Goal\n- Catch the ferry.\n## Decisions, and what they replaced\n- Nine, not ten."
NOTE = {"target": "memory", "action": "add", "content": "We decided to take the ferry at nine"}


class Brain:
    """Names the token that it is asked; waits once, at this `step` of a compression, with
    `after_events` of its answer given."""

    def __init__(self, step: str, after_events: int = 0) -> None:
        self.may_go = asyncio.Event()
        self.is_there = False
        self._step = step
        self._after_events = after_events

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        step, reply = self._step_of(body)
        if step != self._step or self.is_there:
            return reply
        self.is_there = True
        return replace(reply, hold=self.may_go, after_events=self._after_events)

    def _step_of(self, body: dict[str, Any]) -> tuple[str, ModelReply]:
        sent, last = json.dumps(body["messages"]), body["messages"][-1]["content"]
        if not body.get("tools"):
            is_summary = "You condense" in json.dumps(body["system"])
            return (
                ("summary", ModelReply.say(SUMMARY))
                if is_summary
                else ("title", ModelReply.say("A title"))
            )
        if "about to be condensed" in sent:
            has_kept = last[0]["type"] == "tool_result"
            return "flush", ModelReply.say("done") if has_kept else ModelReply.call(
                ("memory", NOTE)
            )
        answer = ModelReply.say(f"Answer to {' '.join(TOKEN.findall(said(last)))}.", chunk_chars=3)
        return "answer" if "is for reference" in sent else "chat", answer


@contextmanager
def unwritable(live: LiveSystem) -> Iterator[None]:
    """Another process holds state.db, so that nothing is written."""
    with hold_writes(live.home):
        yield


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("step", "after_events", "sessions"),
    [
        pytest.param("flush", 0, 1, id="before the flush", marks=pytest.mark.sweep),
        pytest.param("summary", 0, 1, id="before the summary", marks=pytest.mark.sweep),
        pytest.param("transaction", 0, 1, id="before the transaction"),
        pytest.param("answer", 0, 2, id="after it", marks=pytest.mark.sweep),
        pytest.param("answer", 4, 2, id="within the answer"),
    ],
)
async def test_process_killed_at_any_step_of_compression_loses_and_duplicates_no_message(
    home: Path, step: str, after_events: int, sessions: int
) -> None:
    brain = Brain("summary" if step == "transaction" else step, after_events)
    async with LiveSystem.open(home, MessagesApi(brain, key=KEY), SMALL) as live:
        await live.start()
        many = 0
        while not brain.is_there:
            many += 1
            first = f"{NOTE['content']}. x{many}q1"
            await live.types(first if many == 1 else f"x{many}q1 {LONG}.")
            await live.until(lambda: brain.is_there or f"Answer to x{many}q1" in shown(live))  # noqa: B023
        if step == "transaction":
            with unwritable(live):
                brain.may_go.set()
                await live.until(lambda: not live.model.held)
                await live.kill()
        else:
            await live.until(lambda: live.model.held == 1)
            await live.kill()
        assert live.query("SELECT count(*) FROM sessions") == [(sessions,)]
        await live.start()
        await live.until(lambda: f"Answer to x{many}q1" in shown(live))
        await live.types(f"x{many + 1}q1 and now?")
        await live.until(lambda: f"Answer to x{many + 1}q1" in shown(live))
        assert await live.stop() == 0
        assert await damage(live, many + 1) == []


def shown(live: LiveSystem) -> str:
    return "\n".join(live.printed)


async def damage(live: LiveSystem, many: int) -> list[str]:
    """What is not as it would be without the kill."""
    rows = live.query("SELECT role, kind, text FROM messages ORDER BY id")
    wanted = [f"x{number}q1" for number in range(1, many + 1)]
    asked = [
        token
        for role, kind, text in rows
        if (role, kind) == ("user", "chat")
        for token in TOKEN.findall(str(text))
    ]
    answers = [
        token for role, _, text in rows if role == "assistant" for token in TOKEN.findall(str(text))
    ]
    wrong = [f"asked are {asked}"] if asked != wanted else []
    wrong += [f"answered are {answers}"] if answers != wanted else []
    if Counter(kind for _, kind, _ in rows)["summary"] != 1:
        wrong.append("there is not one summary")
    sessions = live.query("SELECT parent_id, end_reason, title FROM sessions ORDER BY id")
    if sessions != [(None, "compression", "A title"), (1, None, "A title #2")]:
        wrong.append(f"the sessions are {sessions}")
    notes = "".join(path.read_text() for path in live.home.rglob("memories/**/*.md"))
    if notes.count(NOTE["content"]) != 1:
        wrong.append(f"the notes are {notes}")
    async with open_store(live.home / "state.db") as database:
        wrong += await Recall(database, SteadyClock()).verify()
    return wrong + live.model.refusals
