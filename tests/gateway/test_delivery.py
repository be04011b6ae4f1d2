"""The mail room: an answer leaves once, in the order of its address, whatever platform and store do
meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.store.mailbox import OutboxCounts
from core.types import Answer
from gateway.delivery import MAX_PAUSE_S
from tests.fixtures.delivery_harness import DeliveryHarness, open_delivery
from tests.fixtures.delivery_record import hold
from tests.fixtures.samples import inbound

NOTHING = OutboxCounts(held=0, due=0, dead=0)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[DeliveryHarness]:
    async with open_delivery(tmp_path) as opened:
        yield opened


async def test_answer_is_delivered_at_once_when_no_older_delivery_waits_in_its_chat(
    room: DeliveryHarness,
) -> None:
    await room.drafted("working")
    reply = await room.answer(await room.drafted("a"))
    assert reply.text == "a"
    assert room.outbox.ends == [("a", "done")]


async def test_answer_is_not_delivered_before_an_older_one_of_the_same_chat(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", DeliveryError("flood", retry_after_s=30.0))
    first, second = await room.drafted("a"), await room.drafted("b")
    await room.answer(first)
    late = await room.answer(second)
    await room.answer(await room.drafted("elsewhere", "2"))
    assert late.is_abandoned
    assert not late.is_finishing
    assert room.telegram.said == [("2", "elsewhere")]
    async with room.working():
        await room.later(seconds=30)
        await room.watch.until(lambda: len(room.outbox.ends) == 4)
    assert room.telegram.said[1:] == [("1", "a"), ("1", "b")]
    assert await room.outbox.count_items() == NOTHING


async def test_an_answer_behind_two_others_is_sent_after_the_second(room: DeliveryHarness) -> None:
    first, second, third = [await room.drafted(key) for key in "abc"]
    for outbox_item in (first, second):
        await room.outbox.put(replace(outbox_item, answer=Answer(text=outbox_item.key)))
    async with room.working():
        assert (await room.answer(third)).is_abandoned
        await room.answer(first)
        await asyncio.sleep(0.1)
        await room.answer(second)
        async with asyncio.timeout(MAX_PAUSE_S / 2):
            await room.watch.until(lambda: len(room.outbox.ends) == 3)
    assert room.telegram.said == [("1", "a"), ("1", "b"), ("1", "c")]


async def test_ids_of_other_answers_are_those_of_the_chat_and_of_scheduled_questions(
    room: DeliveryHarness,
) -> None:
    """In groups, messages of different chats have the same ids."""
    await room.outbox.set_posted((await room.drafted("here")).key, ["1"])
    await room.outbox.set_posted((await room.drafted("elsewhere", "-100")).key, ["2"])
    question = await room.drafted("turn:cron:7:message:7@2026", "7", "cron")
    await room.outbox.set_posted(question.key, ["3", "?3"])

    async def load(key: str, chat_id: str = "1", platform: str = "telegram") -> set[str]:
        outbox_item = await room.drafted(key, chat_id, platform)
        reply = room.telegram.staged_reply(outbox_item.address)
        room.delivery.begin(outbox_item, reply)
        assert reply.receipt is not None
        return {*await reply.receipt.load_known_ids()} - {"?3"}

    assert await load("new") == {"1", "3"}
    assert await load("turn:cron:8:message:8@2026", "8", "cron") == {"1", "2", "3"}


async def test_message_that_a_live_answer_posted_is_edited_by_the_later_delivery(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", DeliveryError("flood", retry_after_s=30.0))
    await room.answer(await room.drafted("a"))
    outbox_item = await room.drafted("b")
    live = room.telegram.staged_reply(outbox_item.address)
    room.delivery.begin(outbox_item, live)
    assert live.receipt is not None
    await live.receipt.record("501")
    await room.outbox.put(replace(outbox_item, answer=Answer(text="b")))
    assert not await room.delivery.deliver(outbox_item, live, Answer(text="b"))
    async with room.working():
        await room.later(seconds=30)
        await room.watch.until(lambda: room.outbox.ends[-1] == ("b", "done"))
    receipt = room.telegram.replies[-1][1].receipt
    assert receipt is not None
    assert (receipt.key, list(receipt.message_ids)) == ("b", ["501"])


async def test_answer_waits_for_the_answer_that_is_being_sent_to_the_same_chat(
    room: DeliveryHarness,
) -> None:
    gate = asyncio.Event()
    room.telegram.stage("1", gate)
    first, second = await room.drafted("a"), await room.drafted("b")
    async with asyncio.TaskGroup() as turns:
        turns.create_task(room.answer(first))
        await room.watch.until(
            lambda: any(reply.is_finishing for _, reply in room.telegram.replies)  # type: ignore[attr-defined]
        )
        waiting = turns.create_task(room.answer(second))
        await room.answer(await room.drafted("elsewhere", "2"))
        assert room.telegram.said == [("2", "elsewhere")]
        gate.set()
    assert waiting.result().text == "b"
    assert room.telegram.said[1:] == [("1", "a"), ("1", "b")]


async def test_live_answer_and_queued_delivery_never_write_to_one_chat_at_the_same_time(
    room: DeliveryHarness,
) -> None:
    gate = asyncio.Event()
    room.telegram.stage("1", gate)
    async with room.working():
        await room.send("reminder")
        await room.watch.until(
            lambda: any(reply.is_finishing for _, reply in room.telegram.replies)  # type: ignore[attr-defined]
        )
        outbox_item = await room.drafted("answer")
        async with asyncio.TaskGroup() as turns:
            turn = turns.create_task(room.answer(outbox_item))
            await room.answer(await room.drafted("elsewhere", "2"))
            gate.set()
        assert turn.result().text == "answer"
    assert room.telegram.said == [("2", "elsewhere"), ("1", "reminder"), ("1", "answer")]


async def test_adapter_defect_while_answering_postpones_the_delivery_and_not_the_turn(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", AttributeError("'NoneType' object has no attribute 'id'"))
    reply = await room.answer(await room.drafted("a"))
    assert reply.answer is None
    assert room.outbox.ends == [("a", "postponed")]
    async with room.working():
        await room.later(seconds=1)
        await room.watch.until(lambda: room.outbox.ends[1:] == [("a", "done")])


async def test_answer_sent_while_the_database_is_locked_is_recorded_afterwards(
    room: DeliveryHarness,
) -> None:
    outbox_item = await room.drafted("a")
    reply = room.telegram.staged_reply(outbox_item.address)
    room.delivery.begin(outbox_item, reply)
    await room.outbox.put(replace(outbox_item, answer=Answer(text="a")))
    with room.locked():
        assert await room.delivery.deliver(outbox_item, reply, Answer(text="a"))
    assert reply.text == "a"
    assert await room.outbox.count_items() == OutboxCounts(held=1, due=0, dead=0)
    await room.answer(await room.drafted("b"))
    async with room.working():
        await room.watch.until(lambda: room.outbox.ends == [("a", "done"), ("b", "done")])
    assert room.telegram.said == [("1", "a"), ("1", "b")]
    assert reply.receipt is not None
    assert (await hold(room.outbox, outbox_item)).posted == tuple(reply.receipt.message_ids)


async def test_unstored_reply_to_a_stranger_is_attempted_once_and_never_queued(
    room: DeliveryHarness,
) -> None:
    event = inbound()
    room.telegram.stage(
        "42", None, DeliveryError("blocked", is_permanent=True), TypeError("a mistake")
    )
    told = room.telegram.staged_reply(event.address)
    await room.delivery.send_unstored(event, told, Answer(text="your code"))
    assert told.text == "your code"
    for _ in range(2):
        await room.delivery.send_unstored(
            event, room.telegram.staged_reply(event.address), Answer(text="your code")
        )
    assert room.telegram.said == [("42", "your code")]
    assert await room.outbox.count_items() == NOTHING
