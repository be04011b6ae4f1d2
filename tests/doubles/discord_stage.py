"""Sets the stage for tests of the Discord adapter: the double, the adapter, a desk that listens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from adapters.discord import Discord
from core.ports import Clock
from core.types import CommandSpec, Option
from tests.doubles.clock import SteadyClock
from tests.doubles.desk import Desk
from tests.doubles.discord_api import TOKEN, DiscordApi

SPECS = (
    CommandSpec(name="help", description="What I can do"),
    CommandSpec(
        name="recall",
        description="Search all conversations",
        options=(Option(name="query", description="What to look for"),),
        is_private=True,
    ),
)


@contextlib.asynccontextmanager
async def checked(api: DiscordApi) -> AsyncIterator[DiscordApi]:
    """The double, running; at the end nothing that was sent may be wrong or mention anybody."""
    async with api:
        yield api
        assert api.violations == []
        for request in api.requests:
            body = request["body"]
            if request["method"] in ("POST", "PATCH") and isinstance(body, dict) and "content" in str(body):
                assert (body.get("data") or body)["allowed_mentions"] == {"parse": []}


def make(api: DiscordApi, clock: Clock | None = None, **options: Any) -> Discord:
    """An adapter that talks to the double and does not wait long for anything."""
    adapter = Discord(
        token=TOKEN, api_url=api.rest_url, gateway_url=api.gateway_url, clock=clock or SteadyClock(), **options
    )
    adapter.pause_s = 0.01
    adapter.defer_after_s = 0.05
    return adapter


@contextlib.asynccontextmanager
async def listening(
    adapter: Discord, desk: Desk, api: DiscordApi, specs: Sequence[CommandSpec] = SPECS
) -> AsyncIterator[asyncio.Task[None]]:
    """The adapter opened and connected, its events going to the desk; closed at the end."""
    await adapter.open()
    task = asyncio.create_task(adapter.listen(desk, specs))
    try:
        await api.wait_connected()
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await adapter.close()
