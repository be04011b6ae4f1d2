"""The connection of `mneme setup discord`, which waits for the owner's first message."""

from __future__ import annotations

import asyncio
import contextlib

from adapters.discord import bot_setup
from adapters.discord.bot_setup import DiscordSetup


async def test_wait_for_a_writer_ends_although_its_connection_swallows_a_cancellation() -> None:
    """In Python 3.11, `asyncio.wait_for` does this if its request ends in the same moment."""
    connected = asyncio.Event()

    class Connection(DiscordSetup):
        async def connect(self, *, reconnect: bool = True) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                connected.set()
                await asyncio.Event().wait()
            await asyncio.Event().wait()

    writers = Connection().watch_writers()
    reading = asyncio.ensure_future(anext(writers))
    await connected.wait()
    reading.cancel()
    async with asyncio.timeout(20 * bot_setup.CANCEL_AGAIN_S):
        await asyncio.gather(reading, return_exceptions=True)
    assert reading.cancelled()
