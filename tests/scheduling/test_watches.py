"""Watches: scheduled questions that say nothing if there is nothing to tell."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.store.jobs import is_nothing_new
from core.types import Address, Answer
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scheduler_harness import CHAT, NOON, lifetime
from tests.fixtures.tables import each_row


@each_row(
    ("answer", "is_nothing"),
    [
        ("NOTHING NEW", True),
        ("(NOTHING NEW)", True),
        ("„NOTHING NEW“", True),
        ("> nothing  new… 👍", True),
        ("⏰ Question 3: rain?\n\n**Nothing new.**", True),
        ("There is nothing new about the roof, but the gutter leaks.", False),
        ("NOTHING NEW\n\nExcept that it rains.", False),
        ("", False),
    ],
)
def test_watch_answer_is_nothing_new_only_if_its_whole_last_line_says_so(
    answer: str, is_nothing: bool
) -> None:
    assert is_nothing_new(answer) is is_nothing


async def test_watch_answer_nothing_new_is_not_delivered_and_other_answers_are_delivered(
    tmp_path: Path,
) -> None:
    async with lifetime(tmp_path) as life:
        later = NOON + timedelta(days=1)
        watch = await life.add(is_prompt=True, is_watch=True, due_at=later)
        question = await life.add(is_prompt=True, due_at=later)
        for job in (watch, question):
            for text in ("NOTHING NEW", "It rains."):
                reply = life.cron.reply(Address(platform="cron", chat_id=str(job.id)))
                reply.begin(ListRecord(f"turn:cron:{job.id}:{text}"))
                await reply.finish(Answer(text=text))
        assert life.said == [(CHAT, "It rains."), (CHAT, "NOTHING NEW"), (CHAT, "It rains.")]


async def test_watch_prompt_tells_the_model_what_to_answer_when_nothing_is_new(
    tmp_path: Path,
) -> None:
    async with lifetime(tmp_path) as life:
        await life.add(is_prompt=True, is_watch=True, text="tell me only if it rains")
        async with life.listening():
            await life.watch.until(lambda: life.sink.served == 1)
        ((inbound, _),) = life.sink.admitted
        assert inbound.text.startswith("tell me only if it rains (If there is nothing to tell")


@pytest.mark.parametrize(
    ("question", "is_watch"),
    [
        ("tell me only if it rains today", True),
        ("sag mir nur Bescheid, wenn es regnet", True),
        ("what is on my list?", False),
    ],
)
async def test_question_with_a_condition_becomes_a_watch(
    home: Path, question: str, is_watch: bool
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say(f"/cron add daily at 8 | {question}")
        (job,) = await harness.services.jobs.list_active()
        assert job.is_watch is is_watch
        assert ("watches: " in (await harness.say("/cron")).text) is is_watch
