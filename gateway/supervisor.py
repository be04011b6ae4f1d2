"""Keeps platforms connected and maintains state.db while the process runs.

A platform that fails is restarted after growing delays. If a platform rejects its token for some
minutes, it counts as off and is retried every hour, while the other platforms continue. If only a
change of the settings can help, Mneme gives up on the platform and says why. Unexpected errors from
an adapter or its library are caught here.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from core.errors import AccessRefused, ConfigError, DeliveryError, MnemeError, StoreError
from core.menus.command_specs import CommandSpec
from core.ports import Adapter, InboundSink

# States of a platform. A reason follows `OFF`. Two more states contain a reason: "given up: …" and
# "out of reach (…), trying again".
CONNECTING = "connecting"
CONNECTED = "connected"
ENDED = "ended"
OFF = "off: "
# How often `watch_platforms` looks at the states.
STATE_POLL_S = 1.0
# If a platform is out of reach for this long, the owner is told. If it refuses the token for this
# long, it counts as off.
DEAD_AFTER_S = 300.0
# How often a platform that is off is tried again.
REFUSED_RETRY_S = 3600.0
# Delays before a platform is restarted. They double.
MIN_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
# The interval between checks for changes by other processes. The command line tells people that a
# running gateway notices changes within a second.
STORE_POLL_S = 0.5
# How long `run_chores` pauses if there is nothing to do, and between two steps.
CHORES_INTERVAL_S = 5.0
CHORE_STEP_PAUSE_S = 0.05
# After this many unexpected errors in the adapter's code, a delivery fails permanently. More
# attempts would probably fail, too, and later messages to the same address would have to wait.
MAX_ADAPTER_ERRORS = 4
_log = structlog.get_logger("supervisor")
OnOutage = Callable[[str, str], Awaitable[None]]
OnConnected = Callable[[str], Awaitable[None]]


class WallClock:
    """Implements `Clock` with the machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(slots=True)
class _Platform:
    adapter: Adapter
    # When the platform was last connected, in seconds of `time.monotonic`. None while it is.
    down_since: float | None
    # The state that `Supervisor.run` has set.
    known_state: str = CONNECTING
    # Whether the owner was told that the platform is down.
    is_outage_reported: bool = False
    # The time since which the platform refuses the token, in seconds of `time.monotonic`. None if
    # it doesn't.
    refused_since: float | None = None
    # A sentence with the reason why the platform refuses the token, and with advice.
    refusal: str = ""
    # True if the platform refused the token before it was ever connected.
    is_refused_at_start: bool = False
    # Whether the adapter was opened.
    is_open: bool = False
    # Whether `Supervisor.on_open` has succeeded.
    is_ready: bool = False

    def note_refusal(self, reason: str, *, is_at_start: bool) -> None:
        """Record that the platform has rejected the token."""
        self.known_state = CONNECTING
        self.refusal = reason
        self.is_refused_at_start = is_at_start
        if not self.is_refused:
            self.refused_since = time.monotonic()

    def note_connection(self) -> None:
        """Record that the platform is connected, so it also accepts the token."""
        self.down_since = None
        self.refused_since = None

    @property
    def is_refused(self) -> bool:
        """Return whether the platform has rejected the token, and hasn't accepted it since."""
        return self.refused_since is not None and self.adapter.accepted_at <= self.refused_since

    @property
    def is_refused_for_long(self) -> bool:
        """Return whether the platform has rejected the token for some minutes."""
        return self.is_refused and _is_over(self.refused_since)

    @property
    def is_off(self) -> bool:
        """Return whether the token is rejected, for some minutes or since the start."""
        return self.is_refused and (self.is_refused_at_start or self.is_refused_for_long)

    @property
    def is_dead(self) -> bool:
        """Return whether the platform has been down long enough that the owner should know."""
        if self.down_since is None:
            return False
        if self.is_outage_reported:
            return True
        return self.is_off if self.is_refused else _is_over(self.down_since)

    @property
    def state(self) -> str:
        """Return the current state. A connected adapter may still report a `problem`."""
        has_problem = self.known_state != CONNECTED or bool(self.adapter.problem)
        if self.is_refused and has_problem:
            return OFF + self.refusal if self.is_off else _describe_outage("the token is refused")
        if self.known_state == CONNECTED and has_problem:
            return _describe_outage(self.adapter.problem)
        return self.known_state


@dataclass(eq=False)
class Supervisor:
    """Keeps platforms connected. Their events go to `sink`.

    After a platform was opened, `on_open` is awaited and repeated until it succeeds. Only then does
    the supervisor listen to the platform.
    """

    sink: InboundSink
    commands: Sequence[CommandSpec]
    on_open: Callable[[Adapter], Awaitable[None]]
    _platforms: dict[str, _Platform] = field(default_factory=dict, init=False)

    @property
    def states(self) -> Mapping[str, str]:
        """Return the state of each platform, as `/status` shows it."""
        return {name: platform.state for name, platform in self._platforms.items()}

    async def watch_platforms(
        self,
        on_change: Callable[[Mapping[str, str]], Awaitable[None]],
        on_outage: OnOutage,
        on_connected: OnConnected,
        load_other_states: Callable[[], Mapping[str, str]],
    ) -> None:
        """Report changes of the platforms' states until cancelled.

        When a state changes, `on_change` gets all states, including those of `load_other_states`.
        `on_outage` gets the name and the state of a platform that has been down for `DEAD_AFTER_S`,
        and again when it's connected. `on_connected` gets the name of each platform whenever it's
        connected.
        """
        reported_states: Mapping[str, str] | None = None
        while True:
            try:
                for name, platform in self._platforms.items():
                    if self._note_connection(name, platform):
                        await on_connected(name)
                    await self._report_outage(name, platform, on_outage)
                states = {**self.states, **load_other_states()}
                if states != reported_states:
                    await on_change(states)
                    reported_states = states
            except StoreError as error:
                _log.error("the state of a platform cannot be stored", error=error)
            await asyncio.sleep(STATE_POLL_S)

    def _note_connection(self, name: str, platform: _Platform) -> bool:
        """Log that a platform was connected or lost. Returns whether it was just connected."""
        state = platform.state
        is_up = state in (CONNECTED, ENDED)
        was_up = platform.down_since is None
        if is_up:
            # Also if it was up before, because a refusal may have been short.
            platform.note_connection()
        if is_up and not was_up:
            _log.info("a platform is connected", platform=name, state=state)
        elif was_up and not is_up:
            _log.warning("a platform is not connected", platform=name, state=state)
            platform.down_since = time.monotonic()
        return is_up and not was_up

    async def _report_outage(self, name: str, platform: _Platform, on_outage: OnOutage) -> None:
        """Report an outage and its end, once each."""
        if platform.is_dead != platform.is_outage_reported:
            await on_outage(name, platform.state)
            platform.is_outage_reported = platform.is_dead

    async def run(self, adapter: Adapter) -> None:
        """Keep a platform connected until cancelled.

        Ends earlier if the input of the platform ends, or if only a change of the settings can
        help. If the platform rejects the token, it's retried, after some minutes only once an hour.
        """
        platform = _Platform(adapter, time.monotonic())
        self._platforms[adapter.platform] = platform
        backoff_s = MIN_BACKOFF_S
        while True:
            began_at = time.monotonic()
            try:
                await self._listen(platform)
                return
            except AccessRefused as error:
                platform.note_refusal(str(error), is_at_start=not platform.is_ready)
                _log.error(
                    "a platform refuses the token", platform=adapter.platform, reason=str(error)
                )
                if platform.is_refused_for_long:
                    await asyncio.sleep(REFUSED_RETRY_S)
                    continue
            except ConfigError as error:
                platform.known_state = f"given up: {error}"
                _log.error("a platform was given up", platform=adapter.platform, reason=str(error))
                return
            except StoreError as error:
                _log.error("an event cannot be stored", platform=adapter.platform, error=error)
                platform.known_state = _describe_outage(str(error))
                backoff_s = MIN_BACKOFF_S
            except Exception as error:
                _log.exception("a platform failed", platform=adapter.platform)
                platform.known_state = _describe_outage(type(error).__name__)
            if time.monotonic() - began_at > MAX_BACKOFF_S:
                backoff_s = MIN_BACKOFF_S
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, MAX_BACKOFF_S)

    async def _listen(self, platform: _Platform) -> None:
        """Open a platform unless it's open already, and listen to it until its input ends."""
        adapter = platform.adapter
        if not platform.is_open:
            await adapter.open()
            platform.is_open = True
        if not platform.is_ready:
            await self.on_open(adapter)
            platform.is_ready = True
        platform.known_state = CONNECTED
        await adapter.listen(self.sink, self.commands)
        platform.known_state = ENDED
        _log.info("a platform has ended", platform=adapter.platform)


def _is_over(since: float | None) -> bool:
    """Return whether a problem that began at `since` has lasted for over `DEAD_AFTER_S`."""
    if since is None:
        return False
    return time.monotonic() - since > DEAD_AFTER_S


def _describe_outage(reason: str) -> str:
    return f"out of reach ({reason}), trying again"


@contextlib.contextmanager
def contain_adapter_errors(attempts: int = 0) -> Iterator[None]:
    """Turn an unexpected error from an adapter's reply into a DeliveryError.

    `attempts` is the number of earlier failed attempts. After `MAX_ADAPTER_ERRORS` attempts, the
    error is permanent.
    """
    try:
        yield
    except MnemeError:
        raise
    except Exception as error:
        _log.exception("an adapter made a mistake")
        is_permanent = attempts + 1 >= MAX_ADAPTER_ERRORS
        raise DeliveryError(
            f"{type(error).__name__}: {error}", is_permanent=is_permanent
        ) from error


async def watch_store(
    data_version: Callable[[], Awaitable[int]],
    changed: asyncio.Event,
    on_change: Callable[[], Awaitable[None]],
) -> None:
    """Await `on_change` after each change of the store, until cancelled.

    A new `data_version` means that another process has changed the store. This process sets
    `changed` after its own changes. If the store can't be read, `on_change` is called again later.
    """
    known_version: int | None = None
    while True:
        try:
            version = await data_version()
            if known_version not in (None, version):
                changed.set()
            known_version = version
            if changed.is_set():
                changed.clear()
                await on_change()
        except StoreError as error:
            _log.error("state.db cannot be read", error=error)
            await asyncio.sleep(STORE_POLL_S)
            changed.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STORE_POLL_S):
                await changed.wait()


async def run_chores(chores: Sequence[Callable[[], Awaitable[bool]]]) -> None:
    """Run maintenance in small steps until cancelled.

    Each call of a chore does one step and returns True if there is more to do. The steps are small
    so that messages needn't wait for them.
    """
    while True:
        has_more = False
        try:
            for chore in chores:
                if await chore():
                    has_more = True
        except StoreError as error:
            _log.error("maintenance failed", error=error)
            has_more = False
        await asyncio.sleep(CHORE_STEP_PAUSE_S if has_more else CHORES_INTERVAL_S)
