"""The worker: side by side for all addresses, in order for each, and nothing that goes wrong ends
it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from core.errors import DeliveryError, StoreDamagedError, StoreError
from core.store.mailbox import OutboxCounts
from gateway.delivery import MAX_ATTEMPTS, MAX_MEMORY_ATTEMPTS
from gateway.supervisor import MAX_ADAPTER_ERRORS
from tests.fixtures.delivery_harness import DeliveryHarness, open_delivery
from tests.fixtures.delivery_record import hold

pytestmark = pytest.mark.slow

NOTHING = OutboxCounts(held=0, due=0, dead=0)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[DeliveryHarness]:
    async with open_delivery(tmp_path) as opened:
        yield opened


async def test_hanging_delivery_delays_only_deliveries_to_its_own_address(
    room: DeliveryHarness,
) -> None:
    gate = asyncio.Event()
    room.telegram.stage("1", gate)
    async with room.working():
        await room.send("a1")
        await room.send("a2")
        await room.send("b1", "2")
        await room.watch.until(lambda: room.telegram.said == [("2", "b1")])
        await room.send("c1", "3")
        await room.send("b2", "2")
        await room.watch.until(lambda: len(room.telegram.said) == 3)
        assert room.telegram.began.count("1") == 1
        gate.set()
        await room.watch.until(lambda: len(room.outbox.ends) == 5)
    assert [text for chat, text in room.telegram.said if chat == "1"] == ["a1", "a2"]
    assert [text for chat, text in room.telegram.said if chat == "2"] == ["b1", "b2"]
    assert await room.outbox.count_items() == NOTHING


async def test_undeliverable_notice_does_not_delay_answers_to_the_same_address(
    room: DeliveryHarness,
) -> None:
    gate = asyncio.Event()
    room.telegram.stage("1", DeliveryError("refused"), gate)
    async with room.working():
        await room.send("refused", kind="notice")
        await room.watch.until(lambda: room.outbox.ends == [("refused", "postponed")])
        await room.send("hanging", kind="notice")
        await room.watch.until(lambda: room.telegram.began == ["1", "1"])
        live = await room.answer(await room.drafted("live"))
        assert live.text == "live"
        await room.send("carried")
        await room.watch.until(lambda: room.outbox.ends[-1] == ("carried", "done"))
        gate.set()
        await room.later(seconds=1)
        await room.watch.until(lambda: len(room.outbox.ends) == 5)
    assert await room.outbox.count_items() == NOTHING


async def test_item_for_a_memory_that_failed_for_two_days_is_repeated_within_the_hour(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", DeliveryError("out of reach"))
    await room.send("old", kind="memory")
    attempts = {"attempts": MAX_MEMORY_ATTEMPTS - 2}
    await room.database.execute("UPDATE outbox SET attempts = :attempts", attempts)
    async with room.working():
        await room.watch.until(lambda: room.outbox.ends == [("old", "postponed")])
        await room.later(hours=1)
        await room.watch.until(lambda: room.outbox.ends[-1] == ("old", "done"))


async def test_items_for_a_closed_platform_do_not_delay_others(
    room: DeliveryHarness,
) -> None:
    for number in range(60):
        await room.send(f"d{number}", str(number), "discord")
    await room.send("t")
    async with room.working():
        await room.watch.until(lambda: room.outbox.ends == [("t", "done")])
        assert room.discord.began == []
        room.opened["discord"] = room.discord.reply
        room.delivery.wake()
        await room.watch.until(lambda: len(room.outbox.ends) == 61)
    assert sorted(text for _, text in room.discord.said) == sorted(
        f"d{number}" for number in range(60)
    )


async def test_outbox_delivery_continues_after_the_database_was_locked(
    room: DeliveryHarness,
) -> None:
    await room.send("a")
    await room.send("b", "2")
    with room.locked():
        async with room.working():
            await room.watch.until(lambda: room.outbox.refusals >= 2)
    assert room.telegram.said == []
    async with room.working():
        await room.watch.until(lambda: len(room.outbox.ends) == 2)
    assert sorted(room.telegram.said) == [("1", "a"), ("2", "b")]


async def test_outbox_delivery_continues_after_its_table_was_unreadable(
    room: DeliveryHarness,
) -> None:
    async def rename(old: str, new: str) -> None:
        await room.database.write(
            lambda connection: connection.execute(f"ALTER TABLE {old} RENAME TO {new}").close()
        )

    await room.send("a")
    await rename("outbox", "gone")
    async with room.working():
        await room.watch.until(lambda: room.outbox.refusals > 0)
        await rename("gone", "outbox")
        room.delivery.wake()
        await room.watch.until(lambda: room.outbox.ends == [("a", "done")])


async def test_item_delivered_while_the_store_is_locked_is_marked_later_and_sent_once(
    room: DeliveryHarness,
) -> None:
    gate = asyncio.Event()
    room.telegram.stage("1", gate)
    await room.send("a")
    await room.send("b")
    async with room.working():
        await room.watch.until(lambda: room.telegram.began == ["1"])
        [(_, reply)] = room.telegram.replies
        await room.watch.until(lambda: getattr(reply, "is_finishing", False))
        with room.locked():
            gate.set()
            await room.watch.until(
                lambda: room.telegram.said == [("1", "a")] and room.outbox.refusals > 0
            )
        room.delivery.wake()
        await room.watch.until(lambda: room.outbox.ends == [("a", "done"), ("b", "done")])
    assert room.telegram.said == [("1", "a"), ("1", "b")]
    posted = await room.database.read(
        lambda connection: connection.execute(
            "SELECT posted FROM outbox WHERE key = 'a'"
        ).fetchone()[0]
    )
    assert reply.receipt is not None
    assert posted == f'["{reply.receipt.message_ids[0]}"]'


@pytest.mark.parametrize(
    "mistake",
    [
        RuntimeError("this reply has begun already"),
        TimeoutError(),
        KeyError("result"),
        ExceptionGroup("unhandled", [OSError("closed")]),
        StoreError("state.db is locked"),
    ],
    ids=lambda mistake: type(mistake).__name__,
)
async def test_adapter_defect_during_delivery_is_a_failed_delivery_that_is_retried(
    room: DeliveryHarness, mistake: Exception
) -> None:
    room.telegram.stage("1", mistake)
    async with room.working():
        await room.send("a")
        await room.send("b", "2")
        await room.watch.until(
            lambda: sorted(room.outbox.ends) == [("a", "postponed"), ("b", "done")]
        )
        await room.later(seconds=1)
        await room.watch.until(lambda: room.outbox.ends[2:] == [("a", "done")])


async def test_write_to_a_damaged_row_of_the_outbox_does_not_stop_deliveries_to_others(
    room: DeliveryHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_done = room.outbox.mark_done

    async def mark_done_unless_damaged(
        key: str, posted: Sequence[str] = (), included_keys: Sequence[str] = ()
    ) -> None:
        if key == "damaged":
            raise StoreDamagedError("database disk image is malformed")
        await mark_done(key, posted, included_keys)

    monkeypatch.setattr(room.outbox, "mark_done", mark_done_unless_damaged)
    async with room.working():
        await room.send("damaged")
        await room.watch.until(lambda: room.telegram.said == [("1", "damaged")])
        await room.send("b", "2")
        await room.send("c", "3")
        await room.watch.until(lambda: sorted(room.outbox.ends) == [("b", "done"), ("c", "done")])
    assert sorted(room.telegram.said) == [("1", "damaged"), ("2", "b"), ("3", "c")]


async def test_message_id_is_kept_if_an_older_write_of_its_answer_is_repeated(
    room: DeliveryHarness,
) -> None:
    outbox_item = await room.drafted("a")
    reply = room.telegram.staged_reply(outbox_item.address)
    room.delivery.begin(outbox_item, reply)
    assert reply.receipt is not None
    await reply.receipt.intend("5")
    with room.locked():
        await reply.receipt.record("6")
    await reply.receipt.intend("6")
    await reply.receipt.record("7", is_last=True)
    async with room.working():
        await room.watch.until(lambda: len(room.outbox.posted) == 3)
    assert room.outbox.posted == [("?5",), ("6", "?6"), ("6", "7")]
    assert await room.outbox.list_posted_ids(await room.drafted("b")) == {"6", "7"}


async def test_waiting_item_is_sent_soon_although_the_clock_was_set_back(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", DeliveryError("away", is_unreachable=True))
    async with room.working():
        await room.send("a")
        await room.watch.until(lambda: room.outbox.ends == [("a", "postponed")])
        await room.later(hours=-3)
        await room.watch.until(lambda: room.telegram.said == [("1", "a")])


async def test_delivery_forgets_the_keys_of_items_that_were_erased_while_they_waited(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", DeliveryError("away", is_unreachable=True))
    async with room.working():
        await room.send("erased")
        await room.watch.until(lambda: room.outbox.ends == [("erased", "postponed")])
        await room.answer(await room.drafted("erased, too"))
        assert room.delivery._waiting_since
        assert room.delivery._postponed
        await room.database.execute("UPDATE outbox SET payload = NULL, dead_at = 1, next_at = NULL")
    await room.delivery._pause_s()
    assert not room.delivery._waiting_since
    assert not room.delivery._postponed


async def test_delivery_that_fails_repeatedly_by_a_defect_is_given_up_and_unblocks_its_chat(
    room: DeliveryHarness,
) -> None:
    room.telegram.stage("1", *[ValueError("cannot be painted")] * MAX_ADAPTER_ERRORS)
    async with room.working():
        await room.send("a")
        await room.send("b")
        for count in range(1, MAX_ADAPTER_ERRORS):
            await room.watch.until(
                lambda count=count: room.outbox.ends == [("a", "postponed")] * count  # type: ignore[misc]
            )
            await room.later(seconds=2**count)
        await room.watch.until(lambda: room.outbox.ends[-1] == ("b", "done"))
    assert room.outbox.ends[-2] == ("a", "buried")
    assert room.telegram.said == [("1", "b")]


async def test_delivery_to_an_invalid_address_is_given_up_and_does_not_delay_others(
    room: DeliveryHarness,
) -> None:
    async with room.working():
        await room.send("a", "not a number")
        await room.send("b", "2")
        await room.watch.until(
            lambda: sorted(room.outbox.ends) == [("a", "postponed"), ("b", "done")]
        )
        for _ in range(MAX_ADAPTER_ERRORS):
            await room.later(minutes=1)
            count = len(room.outbox.ends)
            if ("a", "buried") in room.outbox.ends:
                break
            await room.watch.until(lambda count=count: len(room.outbox.ends) > count)  # type: ignore[misc]
        assert ("a", "buried") in room.outbox.ends
    errors = await room.database.read(
        lambda connection: [
            row[0] for row in connection.execute("SELECT error FROM outbox WHERE dead_at NOT NULL")
        ]
    )
    assert errors == ["ValueError: invalid literal for int() with base 10: 'not a number'"]


async def test_delivery_is_retried_after_the_platforms_stated_delay_and_given_up_after_the_maximum(
    room: DeliveryHarness,
) -> None:
    refusals = [DeliveryError("slow down", retry_after_s=40.0)]
    refusals += [DeliveryError("odd")] * MAX_ATTEMPTS
    room.telegram.stage("1", *refusals)
    async with room.working():
        outbox_item = await room.send("a")
        await room.watch.until(lambda: room.outbox.ends == [("a", "postponed")])
        next_at = await room.outbox.find_next_due()
        assert next_at is not None
        assert 39 < (next_at - room.clock.now()).total_seconds() <= 40
        for count in range(2, MAX_ATTEMPTS + 2):
            await room.later(hours=1)
            await room.watch.until(lambda count=count: len(room.outbox.ends) == count)  # type: ignore[misc]
    assert room.outbox.ends[-2:] == [("a", "postponed"), ("a", "buried")]
    assert (await hold(room.outbox, outbox_item)).attempts == MAX_ATTEMPTS


async def test_a_cancelled_delivery_is_made_by_the_next_process(room: DeliveryHarness) -> None:
    room.telegram.stage("1", asyncio.Event())
    await room.send("a")
    async with room.working() as task:
        await room.watch.until(lambda: room.telegram.began == ["1"])
        await room.watch.until(lambda: getattr(room.telegram.replies[0][1], "is_finishing", False))
    assert task.cancelled()
    assert await room.outbox.count_items() == OutboxCounts(held=1, due=0, dead=0)
    await room.outbox.recover(room.clock.now())
    async with room.working():
        await room.watch.until(lambda: room.outbox.ends == [("a", "done")])
