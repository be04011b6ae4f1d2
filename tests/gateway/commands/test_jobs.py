"""What is planned in a room is changed by who planned it, or by the owner."""

from __future__ import annotations

from pathlib import Path

from core.agent.offline import Offline
from core.types import Address, Scope
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, notices, open_gateway

ROOM = Scope.room("telegram", "-100")


async def in_room(harness: GatewayHarness, text: str, who: str) -> KeptReply:
    address = Address(platform="telegram", chat_id="-100")
    return await harness.say(text, who, address=address, scope=ROOM, is_direct=False)


async def test_in_a_room_a_plan_is_its_makers_and_the_owners(home: Path) -> None:
    async with open_gateway(home, Offline("UTC"), options='rooms = ["telegram:-100"]\n') as harness:
        await in_room(harness, "/remind tomorrow at 9 call Ana", "42")
        await in_room(harness, "/remind tomorrow at 10 feed the cat", "7")
        for action in ("pause", "resume", "remove"):
            assert "only who made" in (await in_room(harness, f"/cron {action} 1", "7")).text
        assert "only who made" in (await in_room(harness, "/cron remove 2", "8")).text
        assert "call Ana" in (await in_room(harness, "/cron", "7")).text
        assert "add, pause, resume, run and remove" in (await in_room(harness, "/cron frob", "7")).text
        assert "What should I be asked then?" in (await in_room(harness, "/cron add daily at 8", "7")).text
        assert (await in_room(harness, "/cron pause 2", "7")).text.startswith("Paused")
        assert (await in_room(harness, "/cron remove 2", "42")).text.startswith("Removed")


async def test_a_forwarded_request_is_planned_after_a_yes(home: Path) -> None:
    async with open_gateway(home, Offline("UTC")) as harness:
        asked = await harness.say("remind me tomorrow at 9:00 to pay Bob", origin="forwarded")
        assert "It waits for the person to say yes" in asked.text
        [(lane, told)] = await notices(harness)
        assert (lane, told[:21]) == ("telegram:42", "Before I plan somethi")
        pending = (await harness.say("/memory pending")).text
        assert "a reminder, for telegram:42; nobody here has typed" in pending
        assert "pay Bob" in pending
        assert "Reminder 1 is set: " in (await harness.say("/memory approve 1")).text
        assert "pay Bob" in (await harness.say("/cron")).text
