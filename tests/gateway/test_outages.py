"""Outages of any length lose nothing: items wait for their platform, and leave in order when it's
back. The real Telegram client talks to a Bot API server that goes off the net; time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.telegram.adapter import Telegram
from core.ports import Reply
from core.types import Inbound
from gateway import supervisor as supervisor_module
from gateway.supervisor import Supervisor
from tests.fixtures.bot_api import BotApi
from tests.fixtures.delivery_harness import DeliveryHarness, open_delivery
from tests.fixtures.sweeps import keep_first

pytestmark = pytest.mark.slow

CHAT = 42
SENT_LATE = "I couldn't send this earlier. It was due {late} ago."


@dataclass(kw_only=True)
class Office:
    """A delivery whose Telegram is the real client of the Bot API server `api`."""

    room: DeliveryHarness
    api: BotApi
    telegram: Telegram


class SilentSink:
    """Fills the role InboundSink; no one is answered."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        return None

    async def serve(self, entry_id: int) -> None:
        raise AssertionError("no entry was admitted")

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError("no group has moved")


async def do_nothing(*_: object) -> None:
    return None


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with open_delivery(tmp_path) as room, BotApi() as api:
        telegram = Telegram(token=api.token, api_url=api.url, inbox=room.inbox, clock=room.clock)
        api.user_says(CHAT, "hello")
        await telegram.open()
        room.opened["telegram"] = telegram.reply
        try:
            yield Office(room=room, api=api, telegram=telegram)
        finally:
            await telegram.close()


async def pass_time(room: DeliveryHarness, hours: float, step_minutes: float = 20.0) -> None:
    """Let time pass in steps; after each one, an attempt that was due has failed."""
    for _ in range(int(hours * 60 / step_minutes)):
        count = len(room.outbox.ends)
        await room.later(minutes=step_minutes)
        await room.watch.until(lambda count=count: len(room.outbox.ends) > count)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("minutes", "late"), keep_first(2, [(1, ""), (40, "40 minutes"), (3 * 24 * 60, "3 days")])
)
async def test_deliveries_due_during_a_platform_outage_are_sent_in_order_and_marked_late_after_it(
    office: Office, minutes: int, late: str
) -> None:
    room, api = office.room, office.api
    await api.stop()
    async with room.working():
        await room.send("first", str(CHAT), kind="reminder")
        await room.send("second", str(CHAT))
        await room.watch.until(lambda: room.outbox.ends == [("first", "postponed")])
        await pass_time(room, minutes / 60, step_minutes=min(minutes, 20))
        assert set(room.outbox.ends) == {("first", "postponed")}
        await api.start()
        await room.delivery.resume(["telegram"])
        await room.watch.until(lambda: ("second", "done") in room.outbox.ends)
    first, second = api.texts(CHAT)
    assert first == ("first\n\n" + SENT_LATE.format(late=late) if late else "first")
    assert second == "second"
    assert room.outbox.ends[-2:] == [("first", "done"), ("second", "done")]


async def test_restored_platform_connection_delivers_the_waiting_items_at_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "STATE_POLL_S", 0.01)
    room, api, telegram = office.room, office.api, office.telegram
    telegram.pause_s = 0.01
    supervisor = Supervisor(SilentSink(), (), do_nothing)
    async with room.working(), asyncio.TaskGroup() as tasks:
        watch = supervisor.watch_platforms(
            do_nothing, do_nothing, lambda platform: room.delivery.resume([platform]), dict
        )
        background = [tasks.create_task(supervisor.run(telegram)), tasks.create_task(watch)]
        await api.wait_for(lambda: "getUpdates" in api.paths)
        await api.stop()
        await room.send("first", str(CHAT))
        await room.watch.until(lambda: len(room.outbox.ends) == 1)
        await pass_time(room, hours=1)
        assert await room.outbox.list_due(room.clock.now()) == []
        await api.start()
        await room.watch.until(lambda: room.outbox.ends[-1] == ("first", "done"))
        for task in background:
            task.cancel()
    assert api.texts(CHAT) == ["first"]


@pytest.mark.parametrize(
    ("hours_off", "minutes_away", "late"),
    [(5, 40, "5 hours 40 minutes"), (5, 0, ""), (0.025, 1, "2 minutes")],
)
async def test_reminder_that_was_late_before_the_outage_says_when_it_was_due(
    office: Office, hours_off: float, minutes_away: int, late: str
) -> None:
    """Mneme was off when the reminder was due, such as on a laptop that starts without network.

    Without an outage, the reminder's own text says how late it is.
    """
    room, api = office.room, office.api
    due_at = room.clock.now() - timedelta(hours=hours_off)
    key = f"job:1:{due_at.isoformat()}"
    if minutes_away:
        await api.stop()
    async with room.working():
        await room.send(key, str(CHAT), kind="reminder")
        await room.watch.until(lambda: len(room.outbox.ends) == 1)
        if minutes_away:
            await room.later(minutes=minutes_away)
            await api.start()
            await room.delivery.resume(["telegram"])
        await room.watch.until(lambda: (key, "done") in room.outbox.ends)
    notice = "\n\n" + SENT_LATE.format(late=late) if late else ""
    assert api.texts(CHAT) == [key + notice]


async def test_item_that_waits_for_its_platform_is_tried_every_few_minutes(office: Office) -> None:
    room = office.room
    await office.api.stop()
    async with room.working():
        await room.send("first", str(CHAT))
        await room.watch.until(lambda: len(room.outbox.ends) == 1)
        await pass_time(room, hours=2)
        next_at = await room.outbox.find_next_due()
        assert next_at is not None
        assert 60 < (next_at - room.clock.now()).total_seconds() <= 300


async def test_item_that_a_reachable_platform_refuses_is_dead_at_once(office: Office) -> None:
    room = office.room
    office.api.fail(400, "Bad Request: odd", method="sendMessage")
    async with room.working():
        await room.send("first", str(CHAT))
        await room.watch.until(lambda: room.outbox.ends == [("first", "buried")])


async def test_item_that_was_refused_permanently_is_sent_when_the_owner_asks_for_it_again(
    office: Office,
) -> None:
    room, api = office.room, office.api
    api.fail(403, "Forbidden: bot was blocked by the user", method="sendMessage")
    async with room.working():
        await room.send("first", str(CHAT))
        await room.watch.until(lambda: room.outbox.ends == [("first", "buried")])
        (dead_item,) = await room.outbox.list_dead()
        assert "bot was blocked by the user" in dead_item.error
        assert await room.outbox.revive([dead_item.item.id]) == 1
        room.delivery.wake()
        await room.watch.until(lambda: room.outbox.ends[-1] == ("first", "done"))
    assert api.texts(CHAT) == ["first"]


async def test_failures_of_an_outage_do_not_count_against_the_attempts_afterwards(
    office: Office,
) -> None:
    room, api = office.room, office.api
    await api.stop()
    async with room.working():
        await room.send("first", str(CHAT))
        await room.watch.until(lambda: len(room.outbox.ends) == 1)
        await pass_time(room, hours=12)
        row = await room.database.fetch_one("SELECT attempts FROM outbox", {})
        assert row is not None
        assert row[0] == 0
        await api.start()
        await room.delivery.resume(["telegram"])
        await room.watch.until(lambda: room.outbox.ends[-1] == ("first", "done"))
    assert api.texts(CHAT) == ["first"]
