"""Keeps each platform connected: opens it, listens, and begins again, more and more slowly, when it falls over.

A platform that refuses its token is given up with a sentence; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from core.errors import ConfigError
from core.ports import Adapter, Sink
from core.types import CommandSpec

SHORTEST_REST_S = 1.0
LONGEST_REST_S = 60.0


class Supervisor:
    """Runs adapters against `sink`. `on_open` is awaited each time a platform has been opened."""

    def __init__(
        self, sink: Sink, commands: Sequence[CommandSpec], on_open: Callable[[Adapter], Awaitable[None]]
    ) -> None:
        self._sink = sink
        self._commands = commands
        self._on_open = on_open
        self.states: dict[str, str] = {}
        """One sentence on each platform, for /status."""
        self._log = structlog.get_logger("supervisor")

    async def run(self, adapter: Adapter) -> None:
        """Until cancelled, until `listen` returns by itself (end of input), or until the platform refuses us for good:
        then ConfigError is raised."""
        rest_s = SHORTEST_REST_S
        is_open = False
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                if not is_open:
                    self.states[adapter.platform] = "connecting"
                    await adapter.open()
                    is_open = True
                    await self._on_open(adapter)
                self.states[adapter.platform] = "connected"
                await adapter.listen(self._sink, self._commands)
                self.states[adapter.platform] = "ended"
                return
            except ConfigError as error:
                self.states[adapter.platform] = f"given up: {error}"
                self._log.error("a platform was given up", platform=adapter.platform, reason=str(error))
                raise
            except Exception as error:
                self._log.exception("a platform fell over", platform=adapter.platform)
                self.states[adapter.platform] = f"out of reach ({type(error).__name__}), trying again"
            if loop.time() - began > LONGEST_REST_S:
                rest_s = SHORTEST_REST_S
            await asyncio.sleep(rest_s)
            rest_s = min(rest_s * 2, LONGEST_REST_S)
