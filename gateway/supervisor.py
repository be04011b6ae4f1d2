"""Keeps each platform connected: opens it, listens, and begins again, more and more slowly, when it falls over.

A platform that refuses its token is given up with a sentence; the others go on. What an adapter or its library raises
by mistake ends here, or leaves as an error of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError, StoreError
from core.ports import Adapter, Sink
from core.types import CommandSpec

SHORTEST_REST_S = 1.0
LONGEST_REST_S = 60.0
MISTAKES = 4
"""How often one delivery may fail by a mistake in the code that does it: a mistake repeats itself, and what is
delivered after it at the same address has to wait."""


class Supervisor:
    """`on_open` is awaited once a platform has been opened, until it succeeds; nothing is listened to before."""

    def __init__(
        self,
        sink: Sink,
        commands: Sequence[CommandSpec],
        on_open: Callable[[Adapter], Awaitable[None]],
        shortest_rest_s: float = SHORTEST_REST_S,
    ) -> None:
        self._sink = sink
        self._commands = commands
        self._on_open = on_open
        self._shortest_rest_s = shortest_rest_s
        self._states: dict[str, str] = {}
        self._adapters: dict[str, Adapter] = {}
        self._log = structlog.get_logger("supervisor")

    @property
    def states(self) -> Mapping[str, str]:
        """One sentence on each platform, for /status."""
        states = dict(self._states)
        for platform, adapter in self._adapters.items():
            if states[platform] == "connected" and adapter.problem:
                states[platform] = f"out of reach ({adapter.problem}), trying again"
        return states

    async def run(self, adapter: Adapter) -> None:
        """Until cancelled, or until `listen` returns at the end of input. Raises ConfigError when the platform refuses
        us."""
        self._adapters[adapter.platform] = adapter
        rest_s = self._shortest_rest_s
        is_open = is_taken_up = False
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                if not is_open:
                    self._states[adapter.platform] = "connecting"
                    await adapter.open()
                    is_open = True
                if not is_taken_up:
                    await self._on_open(adapter)
                    is_taken_up = True
                self._states[adapter.platform] = "connected"
                self._log.info("a platform is connected", platform=adapter.platform)
                await adapter.listen(self._sink, self._commands)
                self._states[adapter.platform] = "ended"
                self._log.info("a platform has ended", platform=adapter.platform)
                return
            except ConfigError as error:
                self._states[adapter.platform] = f"given up: {error}"
                self._log.error("a platform was given up", platform=adapter.platform, reason=str(error))
                raise
            except StoreError as error:
                self._log.error("what a platform brings cannot be stored", platform=adapter.platform, error=str(error))
                self._states[adapter.platform] = f"out of reach ({error}), trying again"
                rest_s = self._shortest_rest_s
            except Exception as error:
                self._log.exception("a platform fell over", platform=adapter.platform)
                self._states[adapter.platform] = f"out of reach ({type(error).__name__}), trying again"
            if loop.time() - began > LONGEST_REST_S:
                rest_s = self._shortest_rest_s
            await asyncio.sleep(rest_s)
            rest_s = min(rest_s * 2, LONGEST_REST_S)


@contextmanager
def contained(attempts: int = 0) -> Iterator[None]:
    """What an adapter's reply raises by mistake leaves as a DeliveryError, permanent after MISTAKES `attempts`."""
    try:
        yield
    except MnemeError:
        raise
    except Exception as error:
        structlog.get_logger("supervisor").exception("an adapter made a mistake")
        raise DeliveryError(f"{type(error).__name__}: {error}", is_permanent=attempts + 1 >= MISTAKES) from error
