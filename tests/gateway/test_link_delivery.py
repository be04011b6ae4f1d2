"""The question that goes to the other side through the outbox: what counts when it arrives late, or
never."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from core.errors import DeliveryError
from core.ports import Reply
from core.types import Address, Scope
from gateway.delivery import Delivery
from tests.fixtures.gateway_harness import GatewayHarness, KeptPlatform, KeptReply, open_gateway
from tests.gateway.commands.test_links import OTHER, code_of, let_in, notices, on_discord

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


async def ask(harness: GatewayHarness) -> None:
    """The link of discord:77 with telegram:7, as far as the question that waits in the outbox."""
    await let_in(harness, OTHER)
    await harness.say(f"/link {await code_of(harness)}", **on_discord())
    await harness.say("yes", **on_discord())


async def carried(harness: GatewayHarness, platform: KeptPlatform, state: str) -> None:
    """The worker works until the SQL condition `state` holds for all of the outbox; `platform`
    stands for Telegram."""
    worker = Delivery(
        harness.services.inbox,
        harness.services.outbox,
        harness.services.clock,
        {name: one.reply for name, one in {**harness.platforms, "telegram": platform}.items()},
    )

    def is_reached(connection: sqlite3.Connection) -> bool:
        return bool(connection.execute(f"SELECT MIN({state}) FROM outbox").fetchone()[0])

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run())
        async with asyncio.timeout(10):
            while not await harness.services.database.read(is_reached):
                continue
        running.cancel()


async def test_late_question_about_a_link_is_asked_when_it_arrives(home: Path) -> None:
    async with open_gateway(home) as harness:
        await ask(harness)
        platform = Refusing("telegram")
        platform.is_passing = True
        await carried(harness, platform, "kind = 'answer' OR attempts = 1")
        assert harness.platforms["discord"].replies == [], "it is tried again"
        await harness.say("yes", "7")
        assert await harness.services.people.load_visible_scopes(MEMBER) == {MEMBER}
        await harness.services.database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET next_at = 1 WHERE next_at IS NOT NULL"
            ).close()
        )
        await carried(harness, KeptPlatform("telegram"), "done_at IS NOT NULL")
        assert "Your accounts are linked" in (await harness.say("yes", "7")).text


async def test_a_link_survives_restarts_at_every_step(home: Path) -> None:
    async with open_gateway(home) as harness:
        await let_in(harness, OTHER)
        code = await code_of(harness)
    async with open_gateway(home) as harness:
        await harness.say(f"/link {code}", message_id="r1", **on_discord())
    async with open_gateway(home) as harness:
        assert "I've asked" in (await harness.say("yes", message_id="r2", **on_discord())).text
    async with open_gateway(home) as harness:
        await notices(harness)
    async with open_gateway(home) as harness:
        assert "Your accounts are linked" in (await harness.say("yes", "7", message_id="r3")).text
    async with open_gateway(home) as harness:
        assert len(await harness.services.people.load_visible_scopes(MEMBER)) == 2
