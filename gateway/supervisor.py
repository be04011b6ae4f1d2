"""What goes on beside the messages as long as the process lives: each platform is kept connected, opened, listened to,
begun again more and more slowly when it falls over; state.db is maintained.

A platform that refuses its token is given up with a sentence; the others go on. What an adapter or its library raises
by mistake ends here, or leaves as an error of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from core.errors import ConfigError, DeliveryError, MnemeError, StoreError
from core.ports import Adapter, Sink
from core.types import CommandSpec

CONNECTING, CONNECTED, ENDED = "connecting", "connected", "ended"
LOOK_EVERY_S = 1.0
DEAD_AFTER_S = 300.0
"""How long a platform may be out of reach before the owner is told."""
SHORTEST_REST_S = 1.0
LONGEST_REST_S = 60.0
STORE_LOOK_EVERY_S = 0.5  # the command line promises that a running gateway notices changes within a second
TEND_EVERY_S = 5.0
STEP_REST_S = 0.05
MISTAKES = 4
"""How often one delivery may fail by a mistake in the code that does it: a mistake repeats itself, and what is
delivered after it at the same address has to wait."""
_log = structlog.get_logger("supervisor")
OnOutage = Callable[[str, str], Awaitable[None]]


@dataclass(slots=True)
class _Platform:
    """`state` is what `run` knows; `down_at` on the loop's clock, None while it is up."""

    adapter: Adapter
    down_at: float | None
    state: str = CONNECTING
    is_told: bool = False

    @property
    def sentence(self) -> str:
        if self.state == CONNECTED and self.adapter.problem:
            return f"out of reach ({self.adapter.problem}), trying again"
        return self.state


@dataclass(eq=False)
class Supervisor:
    """`on_open` is awaited once a platform has been opened, until it succeeds; nothing is listened to before."""

    sink: Sink
    commands: Sequence[CommandSpec]
    on_open: Callable[[Adapter], Awaitable[None]]
    _platforms: dict[str, _Platform] = field(default_factory=dict, init=False)

    @property
    def states(self) -> Mapping[str, str]:
        """One sentence on each platform, for /status."""
        return {name: platform.sentence for name, platform in self._platforms.items()}

    async def watch(
        self,
        on_change: Callable[[Mapping[str, str]], Awaitable[None]],
        on_outage: OnOutage,
        others: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Until cancelled: logs what becomes connected and what is so no more, and calls `on_change` with all states,
        also `others`, then; `on_outage` with a platform that is dead and its state, and once more when it is back."""
        known: Mapping[str, str] | None = None
        while True:
            try:
                for name, platform in self._platforms.items():
                    await self._look(name, platform, on_outage)
                if (states := {**self.states, **others()}) != known:
                    await on_change(states)
                    known = states
            except StoreError as error:
                _log.error("what became of a platform cannot be stored", error=str(error))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self, name: str, platform: _Platform, on_outage: OnOutage) -> None:
        state, now = platform.sentence, asyncio.get_running_loop().time()
        is_up = state in (CONNECTED, ENDED)
        if is_up != (platform.down_at is None):
            tell = _log.info if is_up else _log.warning
            tell("a platform is connected" if is_up else "a platform is not connected", platform=name, state=state)
            platform.down_at = None if is_up else now
        is_dead = platform.down_at is not None and now - platform.down_at > DEAD_AFTER_S
        if platform.is_told != is_dead and (is_up or is_dead):
            await on_outage(name, state)
            platform.is_told = is_dead

    async def run(self, adapter: Adapter) -> None:
        """Until cancelled, until `listen` returns at the end of input, or until the platform refuses us."""
        loop = asyncio.get_running_loop()
        platform = self._platforms[adapter.platform] = _Platform(adapter, loop.time())
        rest_s = SHORTEST_REST_S
        is_open = is_taken_up = False
        while True:
            began = loop.time()
            try:
                if not is_open:
                    await adapter.open()
                    is_open = True
                if not is_taken_up:
                    await self.on_open(adapter)
                    is_taken_up = True
                platform.state = CONNECTED
                await adapter.listen(self.sink, self.commands)
                platform.state = ENDED
                _log.info("a platform has ended", platform=adapter.platform)
                return
            except ConfigError as error:
                platform.state = f"given up: {error}"
                _log.error("a platform was given up", platform=adapter.platform, reason=str(error))
                return
            except StoreError as error:
                _log.error("what a platform brings cannot be stored", platform=adapter.platform, error=str(error))
                platform.state = f"out of reach ({error}), trying again"
                rest_s = SHORTEST_REST_S
            except Exception as error:
                _log.exception("a platform fell over", platform=adapter.platform)
                platform.state = f"out of reach ({type(error).__name__}), trying again"
            if loop.time() - began > LONGEST_REST_S:
                rest_s = SHORTEST_REST_S
            await asyncio.sleep(rest_s)
            rest_s = min(rest_s * 2, LONGEST_REST_S)


@contextlib.contextmanager
def contained(attempts: int = 0) -> Iterator[None]:
    """What an adapter's reply raises by mistake leaves as a DeliveryError, permanent after MISTAKES `attempts`."""
    try:
        yield
    except MnemeError:
        raise
    except Exception as error:
        _log.exception("an adapter made a mistake")
        raise DeliveryError(f"{type(error).__name__}: {error}", is_permanent=attempts + 1 >= MISTAKES) from error


async def watch_store(
    data_version: Callable[[], Awaitable[int]], changed: asyncio.Event, on_change: Callable[[], Awaitable[None]]
) -> None:
    """Until cancelled: awaits `on_change` when `data_version` tells of a write of another process, or this one has set
    `changed`. One that failed is repeated."""
    known: int | None = None
    while True:
        try:
            version = await data_version()
            if known not in (None, version):
                changed.set()
            known = version
            if changed.is_set():
                changed.clear()
                await on_change()
        except StoreError as error:
            _log.error("state.db cannot be read", error=str(error))
            await asyncio.sleep(STORE_LOOK_EVERY_S)
            changed.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STORE_LOOK_EVERY_S):
                await changed.wait()


async def tend(chores: Sequence[Callable[[], Awaitable[bool]]]) -> None:
    """Until cancelled: each of the chores does one small step a call and says whether there is more, so that no message
    waits for the indexes."""
    while True:
        try:
            has_more = any([await chore() for chore in chores])
        except StoreError as error:
            _log.error("the indexes cannot be tended", error=str(error))
            has_more = False
        await asyncio.sleep(STEP_REST_S if has_more else TEND_EVERY_S)
