"""The background review of memory: what it proposes, how often, and after a crash."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from core.models.claude import Claude
from core.types import LOCAL_SCOPE, Completion, Request, Scope
from gateway import services
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import GatewayHarness, notices, open_gateway
from tests.fixtures.loop_watch import watched
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

IDS = count(1)
SCOPES = frozenset((LOCAL_SCOPE, Scope.account("telegram", "42")))
OPTIONS = "[memory]\nreview_turns = 3\n"
LINES = (
    "I never want replies longer than three sentences",
    "the greenhouse is on the north side of the garden",
    "could you list some hardy herbs?",
)
NOTE = {
    "what": "note",
    "message": 1,
    "content": "I never want replies longer than three sentences",
    "target": "user",
}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteadyClock:
    clock = SteadyClock()
    monkeypatch.setattr(services, "WallClock", lambda: clock)
    return clock


class _Helper(ScriptedModel):
    """A helper model that answers reviews from a script, and everything else with nothing."""

    def __init__(self, *answers: object) -> None:
        super().__init__()
        self.answers = list(answers)
        self.reviews: list[Request] = []
        self.is_asked = asyncio.Event()

    async def complete(self, request: Request, on_text: Any, on_wait: Any) -> Completion:
        if request.kind != "review":
            return says("[]")
        self.reviews.append(request)
        self.is_asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        return says(json.dumps(self.answers.pop(0)))


@asynccontextmanager
async def open_reviewed(
    home: Path, helper: _Helper | None, options: str = OPTIONS
) -> AsyncIterator[GatewayHarness]:
    async with open_gateway(home, ScriptedModel(), options, helper) as harness:
        yield harness


async def write(harness: GatewayHarness, *lines: str, who: str = "42") -> None:
    for line in lines or LINES:
        await harness.say(line, who, message_id=f"m{next(IDS)}")


async def review(harness: GatewayHarness, clock: SteadyClock) -> list[str]:
    """Let a minute pass, review what is due, and return the texts of new notices."""
    clock.advance(minutes=2)
    assert harness.path.reviewer is not None
    while await harness.path.reviewer.tend():
        pass
    return [text for _, text in await notices(harness)]


async def test_review_proposes_one_list_that_is_approved_by_number(
    tmp_path: Path, clock: SteadyClock
) -> None:
    helper = _Helper([NOTE])
    async with open_reviewed(tmp_path, helper) as harness:
        await write(harness, *LINES[:2])
        assert await review(harness, clock) == [], "two messages aren't enough"
        await write(harness, LINES[2])
        (text,) = await review(harness, clock)
        assert "From what you wrote lately" in text
        assert "+ “I never want replies longer than three sentences”" in text
        assert "greenhouse" in json.dumps(helper.reviews[0].messages)
        assert await harness.services.notebook.entries(frozenset((LOCAL_SCOPE,)), "user") == []
        answer = await harness.say("/memory approve 1")
        assert "I never want" in (await harness.say("/memory")).text, answer.text
        assert await notices(harness) == [], "nothing else is announced"


async def test_rejected_proposal_never_comes_again_even_reworded_and_after_a_restart(
    tmp_path: Path, clock: SteadyClock
) -> None:
    other = {**NOTE, "message": 2, "content": LINES[1], "target": "memory"}
    async with open_reviewed(tmp_path, _Helper([NOTE])) as harness:
        await write(harness)
        (text,) = await review(harness, clock)
        assert "three sentences" in text
        assert (await harness.say("/memory reject 1")).text == "Rejected and deleted."
    reworded = {**NOTE, "content": "Never wants replies longer than three sentences"}
    repeated = {**NOTE, "message": 4}
    helper = _Helper([NOTE, reworded, repeated, other])
    async with open_reviewed(tmp_path, helper) as harness:
        clock.advance(days=2)
        await write(harness, LINES[0], "it rains", "the soup was good")
        (text,) = await review(harness, clock)
        assert len(helper.reviews) == 1
        assert "greenhouse" in text
        assert "three sentences" not in text


async def test_review_happens_once_a_day_and_not_again_after_a_restart(
    tmp_path: Path, clock: SteadyClock
) -> None:
    other_note = {**NOTE, "message": 6, "content": "I moved the greenhouse to the south side"}
    helper = _Helper([NOTE], [other_note])
    async with open_reviewed(tmp_path, helper) as harness:
        await write(harness)
        assert len(await review(harness, clock)) == 1
        await write(harness)
        assert await review(harness, clock) == []
    async with open_reviewed(tmp_path, helper) as harness:
        assert await review(harness, clock) == []
        assert len(helper.reviews) == 1
        clock.advance(days=1)
        await write(harness, "yes", "well", "I moved the greenhouse to the south side")
        await review(harness, clock)
        assert len(helper.reviews) == 2


async def test_review_that_a_crash_interrupts_is_left_out_and_proposes_nothing_twice(
    tmp_path: Path, clock: SteadyClock
) -> None:
    helper = _Helper()
    async with open_reviewed(tmp_path, helper) as harness:
        await write(harness)
        clock.advance(minutes=2)
        assert harness.path.reviewer is not None
        running = asyncio.create_task(harness.path.reviewer.tend())
        await helper.is_asked.wait()
        running.cancel()
        await asyncio.wait([running])
    helper.answers = [[NOTE], [NOTE]]
    async with open_reviewed(tmp_path, helper) as harness:
        assert await review(harness, clock) == []
        clock.advance(days=1)
        await write(harness)
        assert len(await review(harness, clock)) == 1
        clock.advance(days=1)
        await write(harness)
        assert await review(harness, clock) == [], "it waits already"
        assert len(await harness.services.notes.list_pending(SCOPES)) == 1


async def test_memory_review_of_long_pasted_texts_does_not_block_the_event_loop(
    tmp_path: Path, clock: SteadyClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = _Helper([{**NOTE, "message": 9}])
    async with open_reviewed(tmp_path, helper) as harness:
        for number in range(8):
            lines = (f"the {place} row of bed {number} has herbs" for place in range(2_000))
            await write(harness, "Ben wrote:\n" + "\n".join(lines))
        await write(harness)
        with watched(monkeypatch, tmp_path / "loop"):
            (text,) = await review(harness, clock)
        assert "I never want replies" in text


async def test_answer_of_a_turn_never_waits_for_the_review(
    tmp_path: Path, clock: SteadyClock
) -> None:
    helper = _Helper()
    async with open_reviewed(tmp_path, helper) as harness:
        await write(harness)
        clock.advance(minutes=2)
        assert harness.path.reviewer is not None
        running = asyncio.create_task(harness.path.reviewer.tend())
        await helper.is_asked.wait()
        assert (await harness.say("and now?")).text == "ok"
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])


async def test_end_of_a_fact_and_correction_of_a_skill_wait_and_can_be_approved(
    tmp_path: Path, clock: SteadyClock
) -> None:
    skill = tmp_path / "skills" / "sort-mail"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: sort-mail\ndescription: Sorts the mail.\n---\nPut bills into the red box.\n"
    )
    proposals = [
        {"what": "end", "message": 1, "fact": 1, "content": "I sold the Golf last week"},
        {
            "what": "skill",
            "message": 2,
            "skill": "sort-mail",
            "old_text": "Put bills into the red box.",
            "content": "put bills into the blue box",
        },
    ]
    helper = _Helper(proposals)
    async with open_reviewed(tmp_path, helper) as harness:
        await harness.say("/remember I drive a Golf")
        await harness.services.notes.update_skill(LOCAL_SCOPE, "sort-mail", used_at=clock.now())
        await write(
            harness,
            "I sold the Golf last week",
            "put bills into the blue box, not the red one",
            "thanks a lot for that",
        )
        (text,) = await review(harness, clock)
        assert "I drive a Golf" in text
        assert "blue box" in text
        pending = await harness.services.notes.list_pending(SCOPES)
        for note in pending:
            await harness.say(f"/memory approve {note.id}")
        assert "blue box" in (skill / "SKILL.md").read_text()
        facts = await harness.services.facts.list_page(SCOPES)
        assert [fact.is_open for fact in facts] == [False]


@pytest.mark.parametrize(
    "change",
    [
        {"content": "I always want replies in Portuguese"},
        {"message": 9},
        {"message": 0},
        {"what": "end", "fact": 7},
        {"what": "skill", "skill": "none", "old_text": "x"},
        {"what": "forget"},
        {"content": "key sk-ant-api03-" + "Aa0" * 30},
    ],
)
async def test_memory_review_proposes_no_change_without_evidence(
    tmp_path: Path, clock: SteadyClock, change: dict[str, object]
) -> None:
    async with open_reviewed(tmp_path, _Helper([{**NOTE, **change}])) as harness:
        await write(harness)
        assert await review(harness, clock) == []


async def test_memory_review_proposes_nothing_from_pasted_text_of_others(
    tmp_path: Path, clock: SteadyClock
) -> None:
    async with open_reviewed(tmp_path, _Helper([NOTE])) as harness:
        await write(harness, f"look at this:\n\n{LINES[0]}", *LINES[1:], "that is all I have")
        assert await review(harness, clock) == []


@pytest.mark.parametrize("has_helper", [True, False])
async def test_review_is_off_by_the_setting_and_without_a_model(
    tmp_path: Path, clock: SteadyClock, has_helper: bool
) -> None:
    options = "[memory]\nreview_turns = 0\n" if has_helper else OPTIONS
    helper = _Helper() if has_helper else None
    async with open_reviewed(tmp_path, helper, options) as harness:
        assert harness.path.reviewer is None


async def test_review_through_the_real_client_is_counted_in_usage(
    tmp_path: Path, clock: SteadyClock
) -> None:
    def answer(body: dict[str, Any]) -> str:
        is_review = "what the person typed" in json.dumps(body.get("system", ""))
        return json.dumps([NOTE]) if is_review else "[]"

    async with MessagesApi(answer, key="sk-ant-test") as api:
        claude = Claude(api_key="sk-ant-test", base_url=api.url, clock=clock)
        try:
            async with open_gateway(tmp_path, ScriptedModel(), OPTIONS, claude) as harness:
                await write(harness)
                assert len(await review(harness, clock)) == 1
                assert "to look over your messages for memory" in (await harness.say("/usage")).text
        finally:
            await claude.close()
    assert api.refusals == []
