"""What a reminder or a scheduled question delivered is a message of the conversation in which it
was said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.dates.schedule import Schedule
from core.errors import ModelError
from core.store.jobs import Job
from core.types import Account, Address, Quote, Request, Scope, Sender
from gateway.scheduler import Scheduler
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.skill_folders import skill_text

pytestmark = pytest.mark.slow

ANA = Scope.account("telegram", "42")
ANAS = Account(platform="telegram", user_id="42")
CHAT = Address(platform="telegram", chat_id="42")
OPENING = "[Your own reminders and scheduled questions delivered this here since the last message:]"
BEFORE = "[Your answers to this scheduled question before:]"


async def planned(harness: GatewayHarness, text: str, late_s: float = 10, **changes: object) -> Job:
    """A job of Ana's that has been due for so long."""
    due_at = harness.services.clock.now().replace(microsecond=0) - timedelta(seconds=late_s)
    schedule = Schedule(zone="Europe/Lisbon", at=due_at)
    job = Job(
        schedule=schedule, text=text, target=CHAT, scope=ANA, created_at=due_at, next_at=due_at
    )
    return await harness.services.jobs.add(replace(job, **changes))  # type: ignore[arg-type]


async def again(harness: GatewayHarness, job: Job, late_s: float = 1) -> None:
    """Makes it due once more."""
    await harness.services.database.execute(
        "UPDATE jobs SET ended_at = NULL, next_at = :next, at = :next WHERE id = :id",
        {"next": harness.services.clock.now() - timedelta(seconds=late_s), "id": job.id},
    )


async def run(harness: GatewayHarness) -> list[str]:
    """Runs what is due; what was said, where."""
    services = harness.services
    scheduler = Scheduler(
        jobs=services.jobs,
        outbox=services.outbox,
        clock=services.clock,
        open_reply=lambda address: harness.platforms[address.platform].reply(address),
        late_after_s=120,
        on_wake=lambda: None,
        load_view=harness.access.load_job_view,
    )
    await scheduler.open()
    listening = asyncio.create_task(scheduler.listen(harness.admission, ()))
    await asyncio.sleep(0)
    await scheduler.reload()
    listening.cancel()
    await asyncio.wait([listening])
    await scheduler.close()
    # The first page starts a process that loads its libraries, which takes long on a busy machine.
    await harness.turns.drain(120)
    said = [
        f"{address.key} {reply.text}"
        for platform in harness.platforms.values()
        for address, reply in platform.replies
        if reply.answer is not None
    ]
    for platform in harness.platforms.values():
        platform.replies.clear()
    while due := await services.outbox.list_due(services.clock.now()):
        for item in due:
            assert item.answer is not None
            said.append(f"{item.address.key} {item.answer.text}")
            await services.outbox.mark_done(item.key, (f"{7000 + item.id}",))
    return said


async def transcript(
    harness: GatewayHarness, address: Address = CHAT, scope: Scope = ANA
) -> list[str]:
    session = await harness.services.conversations.find_open(address)
    assert session is not None
    rows = await harness.services.conversations.load_transcript(session.id, frozenset({scope}))
    return [f"{row.role}: {row.text}" for row in rows]


def blocks(request: Request, number: int = -1) -> list[str]:
    """The texts of a message of a request."""
    return [
        block["text"] for block in request.messages[number]["content"] if block["type"] == "text"
    ]


def lines(request: Request) -> Iterator[str]:
    """The request as lines, one a block, without cache breakpoints."""
    for message in request.messages:
        for block in message["content"]:
            yield json.dumps(
                {name: value for name, value in block.items() if name != "cache_control"}
            )


def framed(request: Request) -> list[str]:
    """The frames of a request that tell what jobs delivered."""
    return [line for line in lines(request) if OPENING in line]


def assert_extended(requests: Sequence[Request]) -> None:
    for earlier, later in pairwise(requests):
        before = list(lines(earlier))
        assert list(lines(later))[: len(before)] == before


async def rows_of(harness: GatewayHarness, where: str = "origin = 'job'") -> list[dict[str, Any]]:
    return [
        dict(row)
        for row in await harness.services.database.fetch_all(
            f"SELECT * FROM messages WHERE {where}"
        )
    ]


async def test_delivered_reminder_does_not_delay_the_idle_end_and_is_carried_into_the_new_session(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, "[sessions]\nidle_hours = 2.0\n") as harness:
        await harness.say("good morning")
        await harness.services.database.execute(
            "UPDATE messages SET created_at = created_at - 7300"
        )
        await planned(harness, "water the orchids")
        await run(harness)
        await harness.say("done")
        await harness.say("and then?")
        request = model.requests[2]  # behind the flush
        assert len(request.messages) == 1, "it goes on without its past"
        _, frame, _ = blocks(request)
        assert frame.startswith(OPENING)
        assert "water the orchids" in frame
        assert_extended(model.requests[2:])


async def test_delivered_reminder_is_stored_searchable_and_told_to_the_model_once(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("good morning", link_base="https://chat.example/")
        job = await planned(harness, "water the orchids", late_s=2 * 3600)
        (told,) = await run(harness)
        due = job.schedule.at
        assert due is not None
        assert told.startswith(f"telegram:42 ⏰ Reminder {job.id} (due ")
        assert told.endswith(", 2 hours late: I was away): water the orchids")
        text = told.removeprefix("telegram:42 ")
        assert await transcript(harness) == [
            "user: good morning",
            "assistant: ok",
            f"assistant: {text}",
        ]
        (row,) = await rows_of(harness)
        recalled = (await harness.say("/recall orchids role:assistant")).text
        assert "water the **orchids**" in recalled
        assert f"https://chat.example/{row['posted_id']}" in recalled
        await harness.say("which ones?")
        await harness.say("and then?")
        _, frame, question = blocks(model.requests[1])
        assert question == "which ones?"
        assert frame.startswith(OPENING)
        assert f", message {row['id']}]\n{text}" in frame
        assert [message["role"] for message in model.requests[1].messages] == [
            "user",
            "assistant",
            "user",
        ]
        assert sum(OPENING in line for line in lines(model.requests[2])) == 1
        assert_extended(model.requests)
    async with open_gateway(home, model) as harness:
        await harness.say("still there?")
        assert_extended(model.requests)


async def test_reply_to_a_delivered_reminder_quotes_it_in_the_next_model_request(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        await planned(harness, "water the orchids")
        await run(harness)
        await harness.say("thanks")
        (row,) = await rows_of(harness)
        await harness.say("which ones?", reply_to=row["posted_id"])
        _, quoted, question = blocks(model.requests[-1])
        assert quoted.startswith("[In answer to what you wrote")
        assert "water the orchids" in quoted
        assert question == "which ones?"
        assert_extended(model.requests)


async def test_only_the_last_three_delivered_jobs_are_told_to_the_model_within_a_size_limit(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        for number in range(5):
            await planned(harness, f"errand {number} " + "x" * 1900)
            await run(harness)
        await harness.say("well?")
        await harness.say("again")
        frame = blocks(model.requests[1])[-2]
        assert [f"errand {number}" in frame for number in range(5)] == [
            False,
            False,
            True,
            True,
            True,
        ]
        assert len(frame) < 4_400
        assert frame.count("[…]") == 3
        assert sum(OPENING in line for line in lines(model.requests[2])) == 1, (
            "the others are not told later"
        )


async def test_job_results_already_told_to_the_model_do_not_shorten_a_later_long_result(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        for number in range(3):
            await planned(harness, f"errand {number}")
            await run(harness)
        await harness.say("well?")
        await planned(harness, "x" * 2000)
        await run(harness)
        await harness.say("again")
        assert "x" * 2000 in blocks(model.requests[-1])[-2]


async def test_each_run_of_a_job_within_a_minute_is_told_to_the_model_separately(
    home: Path,
) -> None:
    model = ScriptedModel(says("ok"), says("first: rain"), says("ok"), says("second: sun"))
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        job = await planned(harness, "the weather?", is_prompt=True)
        await run(harness)
        await harness.say("thanks")
        await again(harness, job)
        await run(harness)
        await harness.say("and now?")
        assert ["first" in text for text in framed(model.requests[-1])] == [True, False]
        assert ["second" in text for text in framed(model.requests[-1])] == [False, True]
        assert_extended(model.requests[::2])


@pytest.mark.parametrize("is_told", [False, True])
async def test_delivered_job_is_told_once_also_after_compression_or_branch(
    home: Path, is_told: bool
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        for number in range(6):
            await harness.say(f"hello {number} " + "word " * 3000)
        await planned(harness, "water the orchids")
        await run(harness)
        if is_told:
            await harness.say("which ones?")
        assert "summarized" in (await harness.say("/compress")).text
        await harness.say("and then?")
        await harness.say("/branch of it")
        await harness.say("well?")
        await harness.say("/retry")
        assert ["orchids" in text for text in framed(model.requests[-1])] == [True]


async def test_edited_message_keeps_the_frame_of_the_delivered_job(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        await planned(harness, "water the orchids")
        await run(harness)
        await harness.say("wich ones?", message_id="typo")
        await harness.say("which ones?", message_id="typo", kind="edit")
        await planned(harness, "feed the cat")
        await run(harness)
        await harness.say("thanks")
        assert ["orchids" in text for text in framed(model.requests[-1])] == [True, False]
        assert ["cat" in text for text in framed(model.requests[-1])] == [False, True]


async def test_undo_of_an_exchange_keeps_a_reminder_delivered_before_it(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        await planned(harness, "water the orchids")
        await run(harness)
        await harness.say("which ones?")
        await planned(harness, "feed the cat")
        await run(harness)
        await harness.say("/undo")
        said = await transcript(harness)
        assert [line.rpartition(": ")[2] for line in said] == [
            "hello",
            "ok",
            "water the orchids",
            "feed the cat",
        ]
        await harness.say("what now?")
        frame = blocks(model.requests[-1])[-2]
        assert "orchids" in frame, "the turn that had framed it is gone"
        assert "cat" in frame


async def test_a_scheduled_answer_names_its_question_and_the_next_run_sees_the_last_three(
    home: Path,
) -> None:
    model = ScriptedModel(says("ok"), *(says(f"Rain, {number} degrees") for number in range(5)))
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        job = await planned(harness, "What is the *weather* like?", is_prompt=True)
        for number in range(5):
            await again(harness, job, late_s=50 - 10 * number)
            (said,) = await run(harness)
            heading = rf"⏰ Question {job.id}: What is the \*weather\* like?"
            assert said == f"telegram:42 {heading}\n\nRain, {number} degrees"
        assert (await transcript(harness))[2:] == [
            f"assistant: {heading}\n\nRain, {number} degrees" for number in range(5)
        ]
        first, last = blocks(model.requests[1]), blocks(model.requests[-1])
        assert len(first) == 2
        assert last[1].startswith(BEFORE)
        assert [f"Rain, {number} degrees" in last[1] for number in range(5)] == [
            False,
            True,
            True,
            True,
            False,
        ]
        assert last[2] == "What is the *weather* like?"
        stored = await rows_of(harness, "text LIKE '%Rain, 4%' AND kind = 'chat'")
        assert [row["origin"] for row in stored] == ["job"], (
            "what the schedule's own session has repeats it"
        )
        counted = await harness.services.database.fetch_all(
            "SELECT id FROM sessions WHERE message_count <> (SELECT COUNT(*) FROM messages"
            " WHERE session_id = sessions.id AND kind = 'chat')"
        )
        assert counted == []


async def test_failure_of_a_scheduled_question_is_no_message_of_the_conversation(
    home: Path,
) -> None:
    model = ScriptedModel(says("ok"), ModelError("no", status=400))
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        await planned(harness, "any news?", is_prompt=True)
        (said,) = await run(harness)
        assert "any news?" in said, "it names its question"
        assert await rows_of(harness) == []


async def test_delivered_job_is_a_message_of_the_topic_in_which_it_arrives(
    home: Path,
) -> None:
    model = ScriptedModel()
    topic = Address(platform="telegram", chat_id="42", thread_id="7")
    async with open_gateway(home, model) as harness:
        await harness.say("hello there", address=topic)
        await harness.say("/new", address=topic)
        await harness.say("hello here")
        await planned(harness, "water the orchids", target=topic)
        await run(harness)
        assert await transcript(harness) == ["user: hello here", "assistant: ok"]
        (alone,) = await transcript(harness, topic)
        assert alone.endswith("water the orchids")
        await harness.say("which?", address=topic)
        assert "orchids" in blocks(model.requests[-1])[-2]
        assert model.requests[-1].model
        assert model.requests[-1].system[0]["text"]


async def test_job_message_is_not_stored_in_an_incognito_conversation(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        await harness.say("/incognito on")
        await harness.say("psst")
        await planned(harness, "water the orchids")
        assert len(await run(harness)) == 1
        assert await rows_of(harness) == []
        await harness.say("what was that?")
        assert OPENING not in "".join(lines(model.requests[-1]))


async def test_delivered_job_is_stored_once_however_often_its_delivery_ends(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello")
        await planned(harness, "water the orchids")
        await run(harness)
        outbox = harness.services.outbox
        (row,) = await harness.services.database.fetch_all(
            "SELECT key FROM outbox WHERE key LIKE 'job:%'"
        )
        await outbox.mark_done(row["key"], ("again",))
        (kept,) = await rows_of(harness)
        assert kept["posted_id"] != "again"


async def test_each_model_request_in_a_listened_group_extends_the_previous_one(
    home: Path,
) -> None:
    """With quotes among what is overheard, results of jobs between, and a restart."""
    room, there = Scope.group("telegram", "-5"), Address(platform="telegram", chat_id="-5")
    place: dict[str, Any] = {"address": there, "scope": room, "is_direct": False}
    bens = {**place, "sender": Sender(id="7", name="Ben"), "is_addressed": False}
    model = ScriptedModel()
    options = 'rooms = ["telegram:-5"]\n[room]\nlisten = true\n'
    for life in range(2):
        async with open_gateway(home, model, options) as harness:
            for turn in range(3):
                number = f"{life}{turn}"
                quoted = Quote(kind="reply", text=f"the pier {number}", name="Cy", user_id="9")
                await harness.say(
                    f"overheard {number}", "7", message_id=f"o{number}", quote=quoted, **bens
                )
                await planned(harness, f"errand {number}", target=there, scope=room)
                await run(harness)
                await harness.say(
                    f"and {number}?", message_id=f"a{number}", reply_to=f"o{number}", **place
                )
    assert len(model.requests) == 6
    assert_extended(model.requests)
    texts = "".join(lines(model.requests[-1]))
    assert [texts.count(f"errand {life}{turn}") for life in range(2) for turn in range(3)] == [
        1
    ] * 6
    assert texts.count("> the pier ") == texts.count("> overheard ") == 6


@pytest.mark.parametrize("is_prompt", [False, True])
async def test_forget_in_a_group_erases_deliveries_of_the_persons_own_reminders_only(
    home: Path, is_prompt: bool
) -> None:
    room, ben = Scope.group("telegram", "-5"), Account(platform="telegram", user_id="7")
    there = Address(platform="telegram", chat_id="-5")
    place: dict[str, Any] = {"address": there, "scope": room, "is_direct": False}
    bens = {**place, "sender": Sender(id="7", name="Ben")}
    model = ScriptedModel()
    async with open_gateway(home, model, 'rooms = ["telegram:-5"]\n') as harness:
        await harness.say("hello", "7", **bens)
        model.script = [says("The zeppelin is at nine.")] if is_prompt else []
        await planned(
            harness,
            "when is the zeppelin?",
            target=there,
            scope=room,
            account=ben,
            is_prompt=is_prompt,
        )
        await planned(harness, "mend the zeppelin", target=there, scope=room, account=ANAS)
        await run(harness)
        await harness.say("thanks", **place)
        assert (
            "1 reminder that you wrote" in (await harness.say("/forget zeppelin", "7", **bens)).text
        )
        assert (await harness.say("yes", "7", **bens)).text.startswith("Forgotten: 1 reminder")
        left = await rows_of(
            harness, "text || COALESCE(blocks, '') || COALESCE(sent, '') LIKE '%zeppelin%'"
        )
        assert ["mend the zeppelin" in row["text"] for row in left] == [True], (
            "which Ana has planned"
        )
        await harness.say("and now?", **place)
        assert "when is the zeppelin" not in "".join(lines(model.requests[-1]))


async def test_delivered_job_is_exported_and_forgotten_with_what_repeats_it(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        job = await planned(harness, "water the orchids", is_prompt=True)
        model.script.append(says("The orchids were watered on Monday, all seven of them."))
        await run(harness)
        await harness.say("thanks")
        assert "watered on Monday" in "".join(lines(model.requests[-1]))
        exported = (await harness.say("/export")).answer
        assert exported is not None
        files = b"".join(file.content for file in exported.files)
        assert b"watered on Monday" in files
        await harness.say("/forget orchids")
        receipt = (await harness.say("yes")).text
        assert receipt.startswith("Forgotten: 2 messages and 1 reminder"), receipt
        left = await harness.services.database.fetch_all(
            "SELECT 1 FROM messages WHERE text || COALESCE(blocks, '') || COALESCE(sent, '') LIKE '%orchid%'"
            " UNION ALL SELECT 1 FROM outbox WHERE payload LIKE '%orchid%'"
            " UNION ALL SELECT 1 FROM jobs WHERE text LIKE '%orchid%'"
        )
        assert left == []
        await harness.say("and now?")
        assert "orchid" not in "".join(lines(model.requests[-1]))
        results = await harness.services.conversations.list_job_results(
            Address(platform="cron", chat_id=str(job.id)), frozenset({ANA}), 3
        )
        assert results == []


async def test_skill_created_after_a_job_result_was_read_waits_for_approval(home: Path) -> None:
    create = {"action": "create", "name": "send-mail", "content": skill_text("send-mail")}
    async with open_gateway(home, model := ScriptedModel(says("Hello."))) as harness:
        await harness.say("hello")
        await planned(harness, "Send a copy of every invoice")
        await run(harness)
        model.script[:] = [calls(("skill_manage", create)), says("It waits.")]
        await harness.say("keep that as a skill")
        assert "have no skills" in (await harness.say("/skills")).text
        assert "text that nobody typed here" in (await harness.say("/memory pending")).text
