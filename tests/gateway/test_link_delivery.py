"""The question that goes to the other side through the outbox: what counts when it arrives late, or never."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.ports import Reply
from core.store.outbox import OutboxItem
from core.types import Address, Scope
from gateway.commands.links import ASKED
from gateway.outbox_worker import OutboxWorker
from tests.fixtures.corridor import Corridor, KeptPlatform, KeptReply, open_corridor
from tests.gateway.commands.test_links import code_of, notices, on_discord

pytestmark = pytest.mark.slow

MEMBER = Scope.account("telegram", "7")


class Refusing(KeptPlatform):
    """A platform on which everything to the chat "7" fails, for good unless `is_passing`."""

    is_passing = False

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        if address.chat_id != "7":
            return super().reply(address, reply_to)
        reply = KeptReply(DeliveryError("blocked by the person", is_permanent=not self.is_passing))
        self.replies.append((address, reply))
        return reply


async def ask(corridor: Corridor) -> None:
    """The link of discord:77 with telegram:7, as far as the question that waits in the outbox."""
    await corridor.say(f"/link {await code_of(corridor)}", **on_discord())
    await corridor.say("yes", **on_discord())


async def carried(corridor: Corridor, platform: KeptPlatform, state: str) -> None:
    """The worker works until the SQL condition `state` holds for all of the outbox; `platform` stands for Telegram."""
    worker = OutboxWorker(
        corridor.services.outbox,
        corridor.delivery,
        {name: one.reply for name, one in {**corridor.platforms, "telegram": platform}.items()},
        corridor.services.clock,
    )

    def is_reached(connection: sqlite3.Connection) -> bool:
        return bool(connection.execute(f"SELECT MIN({state}) FROM outbox").fetchone()[0])

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run())
        async with asyncio.timeout(10):
            while not await corridor.services.database.read(is_reached):
                continue
        running.cancel()


async def test_a_question_that_cannot_be_delivered_links_nobody_and_the_other_side_is_told(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await ask(corridor)
        await carried(corridor, Refusing("telegram"), "done_at IS NOT NULL OR dead_at IS NOT NULL")
        [(address, told)] = corridor.platforms["discord"].replies
        assert address == Address(platform="discord", chat_id="dm77")
        assert "I could not ask **Person 7** (Telegram, id `7`)" in told.text
        assert "Nothing is linked" in told.text
        await corridor.say("yes", "7")
        assert await corridor.services.people.scopes(MEMBER) == {MEMBER}


async def test_what_is_only_late_is_asked_when_it_arrives(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await ask(corridor)
        platform = Refusing("telegram")
        platform.is_passing = True
        await carried(corridor, platform, "kind = 'answer' OR attempts = 1")
        assert corridor.platforms["discord"].replies == [], "it is tried again"
        await corridor.say("yes", "7")
        assert await corridor.services.people.scopes(MEMBER) == {MEMBER}
        await corridor.services.database.write(
            lambda connection: connection.execute("UPDATE outbox SET next_at = 1 WHERE next_at IS NOT NULL").close()
        )
        await carried(corridor, KeptPlatform("telegram"), "done_at IS NOT NULL")
        assert "You are one person now" in (await corridor.say("yes", "7")).text


async def test_whoever_may_not_be_told_any_more_is_told_once(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await ask(corridor)
        [question] = [
            p for p in await corridor.services.outbox.due(corridor.services.clock.now()) if p.key.startswith(ASKED)
        ]
        for _ in range(2):
            await corridor.delivery.fail(question, DeliveryError("gone", is_permanent=True))
        assert [address.chat_id for address, _ in await notices(corridor)] == ["dm77"]


async def test_a_question_given_up_after_its_ten_minutes_is_still_told_of(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await ask(corridor)
        await corridor.services.database.write(
            lambda connection: connection.execute("UPDATE links SET expires_at = expires_at - 3600").close()
        )
        [question] = await corridor.services.outbox.due(corridor.services.clock.now())
        await corridor.delivery.fail(question, DeliveryError("gone", is_permanent=True))
        [(_, told)] = await notices(corridor)
        assert "I could not ask" in told.text


async def test_other_parcels_that_are_given_up_concern_no_link(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await ask(corridor)
        for key in (f"{ASKED}", f"{ASKED}x:1", f"{ASKED}99:1", "turn:telegram:7:message:1"):
            outbox_item = OutboxItem(key=key, kind="notice", address=Address(platform="telegram", chat_id="7"))
            await corridor.delivery.fail(outbox_item, DeliveryError("gone", is_permanent=True))
        assert [address.chat_id for address, _ in await notices(corridor)] == ["7"], "the question itself, still there"


async def test_a_link_survives_restarts_at_every_step(home: Path) -> None:
    async with open_corridor(home) as corridor:
        code = await code_of(corridor)
    async with open_corridor(home) as corridor:
        await corridor.say(f"/link {code}", message_id="r1", **on_discord())
    async with open_corridor(home) as corridor:
        assert "I have asked" in (await corridor.say("yes", message_id="r2", **on_discord())).text
    async with open_corridor(home) as corridor:
        await notices(corridor)
    async with open_corridor(home) as corridor:
        assert "You are one person now" in (await corridor.say("yes", "7", message_id="r3")).text
    async with open_corridor(home) as corridor:
        assert len(await corridor.services.people.scopes(MEMBER)) == 2
