"""Answers whose interaction has expired, by the real process: nobody waits in vain, nothing private
is in public."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.live_system import LiveSystem

pytestmark = pytest.mark.slow

UNKNOWN_INTERACTION = 10062


@pytest.fixture
async def live(home: Path) -> AsyncIterator[LiveSystem]:
    async with LiveSystem.open(home) as system:
        await system.start()
        await system.until(lambda: bool(system.discord.commands))
        yield system


async def call_late(live: LiveSystem, channel: str, name: str, action: str = "") -> None:
    """A command whose answer comes when the token is dead."""
    live.discord.rest.fail("POST", "/callback", 404, UNKNOWN_INTERACTION, times=2)
    await live.discord.slash(channel, live.discord_person, name, action=action)


def list_answers(live: LiveSystem, channel: str) -> list[str]:
    """What the bot said in a channel, without the two sentences at first contact, which a kill may repeat with a mark."""
    return [said for said in live.discord.said(channel) if "I keep the messages" not in said]


async def test_late_discord_answer_is_posted_in_the_channel_and_a_private_one_in_the_direct_chat(
    live: LiveSystem,
) -> None:
    channel = await live.discord.channel("general")
    await call_late(live, channel, "new")
    await live.until(lambda: bool(list_answers(live, channel)))
    assert live.discord.said(live.channel) == []
    await call_late(live, channel, "memory", "list")
    await live.until(lambda: bool(live.discord.said(live.channel)))
    assert len(list_answers(live, channel)) == 1
    assert live.query("SELECT COUNT(*) FROM outbox WHERE dead_at IS NOT NULL") == [(0,)]


@pytest.mark.parametrize("is_direct", [False, True])
async def test_late_discord_answer_without_direct_messages_is_shown_at_the_next_contact(
    live: LiveSystem, is_direct: bool
) -> None:
    discord, ana = live.discord, live.discord_person
    channel = await discord.channel("general")
    discord.block(live.channel)
    await call_late(live, channel, "memory", "list")
    await live.until(
        lambda: live.query("SELECT COUNT(*) FROM outbox WHERE dead_at IS NOT NULL") == [(1,)]
    )
    await live.kill()
    await live.start()
    if is_direct:
        discord.world.blocked.clear()
        await live.tells_discord("/help")
        await live.until(lambda: any(texts.UNSEEN in said for said in discord.said(live.channel)))
    else:
        await discord.slash(channel, ana, "help")
        await live.until(
            lambda: any(texts.UNSEEN in said for said in discord.said(channel, viewer=ana))
        )
    assert list_answers(live, channel) == []
    await live.until(
        lambda: live.query("SELECT COUNT(*) FROM outbox WHERE dead_at IS NOT NULL") == [(0,)]
    )


async def test_command_called_before_a_kill_is_answered_after_it(live: LiveSystem) -> None:
    channel = await live.discord.channel("general")
    live.discord.rest.fail("POST", "/callback", 503, times=99)
    for name, action in (("new", ""), ("memory", "list")):
        await live.discord.slash(channel, live.discord_person, name, action=action)
    await live.until(
        lambda: live.query("SELECT COUNT(*) FROM outbox WHERE payload IS NOT NULL") == [(2,)]
    )
    await live.kill()
    await live.start()
    await live.until(
        lambda: bool(list_answers(live, channel)) and bool(live.discord.said(live.channel))
    )
    assert "note" in live.discord.said(live.channel)[0]
    assert len(list_answers(live, channel)) == 1
