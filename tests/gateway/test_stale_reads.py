"""What is under way while something is forgotten: nothing of it is kept, and it is begun anew
without what is gone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from core.store.engine import Connection
from core.store.jobs import Job, Jobs
from core.store.sqlite.database import Database
from core.types import Account, Address, Answer
from gateway.scheduler import Scheduler
from tests.fixtures.forgetting import left_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ELSEWHERE: dict[str, Any] = {"address": Address(platform="telegram", chat_id="42", thread_id="9")}
"""Another lane of the same person."""


def left(harness: GatewayHarness, word: str) -> list[str]:
    return left_of(word, harness.services.database.path)


async def forgotten(harness: GatewayHarness, what: str) -> KeptReply:
    await harness.say(f"/forget {what}")
    return await harness.say("yes")


async def begun(
    harness: GatewayHarness, model: ScriptedModel, text: str
) -> asyncio.Task[KeptReply]:
    """A turn in another lane whose model has spoken and holds its answer back."""
    model.began.clear()
    model.gate = asyncio.Event()
    task = asyncio.create_task(harness.say(text, **ELSEWHERE))
    await model.began.wait()
    return task


async def test_an_answer_under_way_elsewhere_is_not_kept_and_made_anew(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("You live in Zanzibar."), says("I do not know."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/memory add Lives in Zanzibar")
        task = await begun(harness, model, "Where do I live?")
        gate, model.gate = model.gate, None
        assert "Zanzibar" in str(model.requests[-1])
        receipt = await forgotten(harness, "Zanzibar")
        assert "nothing of it is left" in receipt.text
        assert left(harness, "Zanzibar") == []
        assert gate is not None
        gate.set()
        assert (await task).text == "I do not know."
        assert "Zanzibar" not in str(model.requests[-1])
        assert left(harness, "Zanzibar") == []
        assert "nothing to forget" in (await harness.say("/forget Zanzibar")).text


async def test_memory_tool_called_after_an_erasure_stores_no_forgotten_words(home: Path) -> None:
    noting = calls(("memory", {"action": "add", "target": "user", "content": "Lives in Zanzibar"}))
    model = ScriptedModel(says("ok"), noting, says("Fine."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        task = await begun(harness, model, "Note where I live.")
        gate, model.gate = model.gate, None
        await forgotten(harness, "Zanzibar")
        assert gate is not None
        gate.set()
        assert (await task).text == "Fine."
        assert left(harness, "Zanzibar") == []
        assert "Zanzibar" not in (await harness.say("/memory")).text


async def test_question_forgotten_while_it_is_being_answered_gets_no_answer(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("It is far."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        task = await begun(harness, model, "How far is Zanzibar?")
        gate, model.gate = model.gate, None
        waiting = asyncio.create_task(harness.say("And does it rain in Zanzibar?", **ELSEWHERE))
        while len(await harness.services.inbox.list_waiting()) < 2:
            await asyncio.wait({task}, timeout=0.01)
        shown = await harness.say("/forget Zanzibar")
        assert "3 messages" in shown.text
        assert "does it rain" in shown.text, "what waits is shown as well"
        assert "3 messages" in (await harness.say("yes")).text
        assert left(harness, "Zanzibar") == []
        assert gate is not None
        gate.set()
        for one in (task, waiting):
            assert "won't answer it" in (await one).text
        assert left(harness, "Zanzibar") == []
        assert await harness.services.inbox.list_waiting() == []
        assert len(model.requests) == 2, "nobody was asked again"


async def test_copy_of_a_message_made_before_the_forget_confirmation_is_erased_too(
    home: Path,
) -> None:
    model = ScriptedModel(says("ok"), says("Zanzibar it is."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        await harness.say("/recall Zanzibar", **ELSEWHERE)
        await harness.say("/title Off to Zanzibar", **ELSEWHERE)
        await harness.say("yes")
        assert left(harness, "Zanzibar") == []


async def test_forget_confirmed_after_a_restart_erases_answers_that_repeat_the_message(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar with my cat in May.")
        await harness.say("/forget Zanzibar")
    async with open_gateway(home) as harness:
        await harness.say("/recall cat", message_id="901", **ELSEWHERE)
        assert left(harness, "Zanzibar")
        await harness.say("yes", message_id="902")
        assert left(harness, "Zanzibar") == []


async def test_forgetting_by_one_person_does_not_restart_the_running_turn_of_another(
    home: Path,
) -> None:
    model = ScriptedModel(says("ok"), says("A fine place."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        model.began.clear()
        gate = model.gate = asyncio.Event()
        task = asyncio.create_task(harness.say("How is Lisbon?", "7"))
        await model.began.wait()
        model.gate = None
        await forgotten(harness, "Zanzibar")
        gate.set()
        assert (await task).text == "A fine place."
        assert len(model.requests) == 2


async def test_an_erasure_by_another_process_counts_as_well(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("You live in Zanzibar."), says("I do not know."))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        task = await begun(harness, model, "Where do I live?")
        gate, model.gate = model.gate, None
        async with open_gateway(home) as other:
            await other.say("/forget Zanzibar", message_id="901")
            assert "Forgotten" in (await other.say("yes", message_id="902")).text
        assert gate is not None
        gate.set()
        assert (await task).text == "I do not know."
        assert left(harness, "Zanzibar") == []


async def test_forget_removes_the_words_from_a_running_incognito_conversation(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("/memory add Lives in Zanzibar")
        await harness.say("/incognito", **ELSEWHERE)
        await harness.say("hello there", **ELSEWHERE)
        assert "Zanzibar" in str(model.requests[-1].system)
        await forgotten(harness, "Zanzibar")
        await harness.say("where do I live?", **ELSEWHERE)
        assert "Zanzibar" not in str(model.requests[-1])
        assert "hello there" in str(model.requests[-1])


async def test_erasure_begun_by_a_killed_process_is_finished_by_the_next(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        await harness.services.database.write(
            lambda connection: connection.execute("UPDATE erasures SET started_at = 1")
        )
        assert await harness.services.forgetting.maintain()
        while await harness.services.forgetting.maintain():
            pass
        assert left(harness, "Zanzibar") == []
        assert (await harness.say("hello")).text == "ok"


async def test_remaining_messages_of_a_turn_are_answered_after_one_was_forgotten(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        number = await harness.admission.admit(
            harness.inbound("Is Zanzibar hot?", **ELSEWHERE), KeptReply()
        )
        reply = KeptReply()
        second = await harness.admission.admit(
            harness.inbound("And do you like tea?", **ELSEWHERE), reply
        )
        assert number is not None
        assert second is not None
        await forgotten(harness, "Zanzibar")
        await harness.admission.serve(number)
        assert reply.text == "ok"
        assert "Zanzibar" not in str(replace(model.requests[-1], tools=()))
        assert "like tea" in model.sent()
        assert left(harness, "Zanzibar") == []


async def test_a_reminder_that_is_due_meanwhile_is_not_given(home: Path) -> None:
    class Slow(Jobs):
        """Lets a job be forgotten after it was read."""

        def __init__(self, database: Database, forget: Callable[[], Awaitable[object]]) -> None:
            super().__init__(database)
            self.forget = forget
            self.reads = 0

        async def list_due(self, now: datetime) -> list[Job]:
            jobs = await super().list_due(now)
            self.reads += 1
            if self.reads == 1:
                assert len(jobs) == 1
                await self.forget()
            return jobs

    async with open_gateway(home) as harness:
        services = harness.services
        await harness.say("/remind in 1 minute buy a map of Zanzibar")
        await services.database.write(
            lambda connection: connection.execute("UPDATE jobs SET next_at = 5, at = 5")
        )
        jobs = Slow(services.database, lambda: forgotten(harness, "Zanzibar"))
        cron = Scheduler(
            jobs=jobs,
            outbox=services.outbox,
            clock=services.clock,
            open_reply=lambda _: KeptReply(),
            late_after_s=60,
            on_wake=lambda: None,
            load_view=harness.access.load_job_view,
        )
        await cron.open()
        listening = asyncio.create_task(cron.listen(harness.admission, ()))
        while jobs.reads < 1 or cron._reload_lock.locked():
            await asyncio.wait({listening}, timeout=0.01)
        listening.cancel()
        await cron.close()
        assert left(harness, "Zanzibar") == []


async def test_a_title_and_facts_that_are_being_made_are_not_kept(home: Path) -> None:
    fact = {"facts": [{"content": "User moved to Zanzibar", "kind": "identity", "source": 1}]}
    helper = ScriptedModel(
        says("A trip to Zanzibar"), says(json.dumps(fact)), says(json.dumps(fact))
    )
    gate = helper.gate = asyncio.Event()
    async with open_gateway(home, ScriptedModel(says("How nice.")), titles=helper) as harness:
        task = asyncio.create_task(harness.say("I moved to Zanzibar in May."))
        await helper.began.wait()
        assert "Forgotten" in (await forgotten(harness, "Zanzibar")).text
        gate.set()
        await task
        assert left(harness, "Zanzibar") == []
        assert (await harness.say("/memory facts")).text.count("f1") == 0


async def test_message_is_answered_while_an_interrupted_search_continues_in_a_reader_thread(
    home: Path,
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def search(connection: Connection) -> int:
        """Breaks off in the event loop's thread with rows that are not read yet; waits in that of a
        reader."""
        rows = iter(connection.execute("SELECT id FROM messages"))
        first = int(next(rows)[0])
        if threading.current_thread() is threading.main_thread():
            endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
            connection.execute(endless).fetchone()
        began.set()
        assert may_end.wait(20)
        return first + len(list(rows))

    model = ScriptedModel(says("ok"), says("It is noon."))
    async with open_gateway(home, model) as harness:
        await harness.say("Good morning.")
        searching = asyncio.create_task(harness.services.database.read_inline(search))
        assert await asyncio.to_thread(began.wait, 20)
        assert (await harness.say("What time is it?")).text == "It is noon."
        assert await harness.services.inbox.list_waiting() == []
        may_end.set()
        assert await searching == 2


async def test_removal_of_a_person_does_not_cancel_a_later_message_of_another(home: Path) -> None:
    model = ScriptedModel(says("ok"), says("Hello, you."), says("It is noon."))
    leaving, may_leave = asyncio.Event(), asyncio.Event()

    class SlowReply(KeptReply):
        async def finish(self, answer: Answer) -> None:
            leaving.set()
            await may_leave.wait()
            await super().finish(answer)

    async with open_gateway(home, model) as harness:
        await harness.say("Good morning.")
        number = await harness.admission.admit(harness.inbound("Hello", "7"), SlowReply())
        assert number is not None
        member = harness.admission.serve(number)
        await leaving.wait()
        # The answer to the member is stored, and on its way; now the owner asks, and the member is
        # removed.
        reply = KeptReply()
        asked = await harness.admission.admit(harness.inbound("What time is it?"), reply)
        assert asked not in (None, number)
        people, now = harness.services.removals, harness.services.clock.now()
        await people.remove([Account(platform="telegram", user_id="7")], now)
        await harness.turns.recheck_access()
        await harness.admission.serve(asked or 0)
        assert reply.text == "It is noon."
        may_leave.set()
        await member
