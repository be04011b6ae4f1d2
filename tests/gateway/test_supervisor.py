"""The supervisor: a platform is opened once, taken up once, and listened to again and again;
mistakes end there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from core.errors import AccessRefused, ConfigError, DeliveryError, StoreError
from core.menus.command_specs import CommandSpec
from core.ports import Adapter, InboundSink, Reply
from core.types import Inbound
from gateway import supervisor as supervisor_module
from gateway.supervisor import MAX_ADAPTER_ERRORS, Supervisor, contain_adapter_errors
from tests.fixtures.gateway_harness import KeptPlatform


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "MIN_BACKOFF_S", 0.001)


class Deaf:
    """Fills the role Sink; nothing ever comes in."""

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        raise AssertionError("nothing comes in")

    async def serve(self, entry_id: int) -> None:
        raise AssertionError("nothing comes in")

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        raise AssertionError("nothing moves")


class Fragile(KeptPlatform):
    """A platform whose life goes as staged: errors of `open` and `listen`, one a call. Then its
    input ends."""

    def __init__(self, opens: Sequence[Exception] = (), listens: Sequence[Exception] = ()) -> None:
        super().__init__("telegram")
        self.steps: list[str] = []
        self._opens = list(opens)
        self._listens = list(listens)

    async def open(self) -> None:
        self.steps.append("open")
        if self._opens:
            raise self._opens.pop(0)

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        self.steps.append("listen")
        if self._listens:
            raise self._listens.pop(0)


async def life(platform: Fragile, *failures: Exception) -> tuple[list[str], Supervisor]:
    """What happened to a platform until its input ended; `failures` are raised when it is taken up,
    one a try."""
    left = list(failures)

    async def take_up(adapter: Adapter) -> None:
        assert adapter is platform
        platform.steps.append("take up")
        if left:
            raise left.pop(0)

    supervisor = Supervisor(Deaf(), (), take_up)
    async with asyncio.timeout(5):
        await supervisor.run(platform)
    return platform.steps, supervisor


async def test_supervisor_opens_a_platform_resumes_its_messages_and_listens() -> None:
    steps, supervisor = await life(Fragile())
    assert steps == ["open", "take up", "listen"]
    assert supervisor.states == {"telegram": "ended"}


async def test_supervisor_retries_resuming_messages_and_listens_only_afterwards() -> None:
    steps, supervisor = await life(Fragile(), StoreError("locked"), RuntimeError("a mistake"))
    assert steps == ["open", "take up", "take up", "take up", "listen"]
    assert supervisor.states == {"telegram": "ended"}


async def test_supervisor_resumes_waiting_messages_only_once() -> None:
    platform = Fragile([OSError("no network")], [KeyError("strange event"), OSError("gone")])
    steps, _ = await life(platform, StoreError("locked"))
    assert steps == ["open", "open", "take up", "take up", "listen", "listen", "listen"]


async def test_a_platform_that_cannot_be_taken_up_is_not_called_connected() -> None:
    platform, tries = Fragile(), asyncio.Semaphore(0)

    async def take_up(adapter: Adapter) -> None:
        tries.release()
        raise StoreError("locked")

    supervisor = Supervisor(Deaf(), (), take_up)
    task = asyncio.create_task(supervisor.run(platform))
    async with asyncio.timeout(5):
        for _ in range(3):
            await tries.acquire()
    assert supervisor.states == {"telegram": "out of reach (locked), trying again"}
    assert platform.steps == ["open"]
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_platform_that_cannot_work_with_the_settings_is_given_up() -> None:
    steps, supervisor = await life(Fragile([ConfigError("telegram: the token is in use")]))
    assert steps == ["open"]
    assert supervisor.states == {"telegram": "given up: telegram: the token is in use"}


async def test_adapter_defect_becomes_a_delivery_error_that_is_permanent_after_several_attempts() -> (
    None
):
    for attempts, is_hopeless in (
        (0, False),
        (MAX_ADAPTER_ERRORS - 2, False),
        (MAX_ADAPTER_ERRORS - 1, True),
        (MAX_ADAPTER_ERRORS, True),
    ):
        with (
            pytest.raises(DeliveryError, match=r"ValueError: no number") as caught,
            contain_adapter_errors(attempts),
        ):
            raise ValueError("no number")
        assert caught.value.is_permanent is is_hopeless
        assert isinstance(caught.value.__cause__, ValueError)


async def test_delivery_and_store_errors_and_cancellation_are_raised_unchanged_by_the_supervisor() -> (
    None
):
    refusal, locked = DeliveryError("flood", retry_after_s=3.0), StoreError("locked")
    for error in (refusal, locked, asyncio.CancelledError()):
        with pytest.raises(type(error)) as caught, contain_adapter_errors(MAX_ADAPTER_ERRORS):
            raise error
        assert caught.value is error
    assert not refusal.is_permanent


async def test_platform_that_reports_a_problem_is_not_shown_as_connected() -> None:
    class Waiting(Fragile):
        async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
            assert supervisor.states == {"telegram": "connected"}
            self.problem = "no route to host"
            assert supervisor.states == {
                "telegram": "out of reach (no route to host), trying again"
            }

    async def take_up(adapter: Adapter) -> None:
        return None

    supervisor = Supervisor(Deaf(), (), take_up)
    await supervisor.run(Waiting())
    assert supervisor.states == {"telegram": "ended"}


async def test_platform_connection_and_loss_are_logged_once_each_and_an_outage_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor_module, "STATE_POLL_S", 0.005)
    monkeypatch.setattr(supervisor_module, "DEAD_AFTER_S", 0.05)
    told = list[tuple[str, str]]()
    noted, connected, changed = list[str](), list[str](), asyncio.Event()

    class Open(Fragile):
        async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
            await asyncio.Event().wait()

    async def take_up(adapter: Adapter) -> None:
        return None

    async def note(states: Mapping[str, str]) -> None:
        noted.append(states["telegram"])
        assert states["memory shelf"] == "out of order"
        changed.set()

    async def tell(name: str, state: str) -> None:
        told.append((name, state))
        changed.set()

    async def connect(name: str) -> None:
        connected.append(name)

    async def until(count: int, seen: Sequence[object]) -> None:
        async with asyncio.timeout(5):
            while len(seen) < count:
                changed.clear()
                await changed.wait()

    platform = Open()
    platform.problem = "not reached yet"
    supervisor = Supervisor(Deaf(), (), take_up)
    with capture_logs() as logs:
        running = asyncio.create_task(supervisor.run(platform))
        await asyncio.sleep(0)
        watching = asyncio.create_task(
            supervisor.watch_platforms(
                note, tell, connect, lambda: {"memory shelf": "out of order"}
            )
        )
        await until(1, noted)
        assert noted == ["out of reach (not reached yet), trying again"]
        for problem in ("", "no route to host"):
            platform.problem = problem
            await until(len(noted) + 1, noted)
        await until(1, told)
        platform.problem = "no name"
        await until(4, noted)
        platform.problem = ""
        await until(2, told)
        for task in (running, watching):
            task.cancel()
        await asyncio.wait([running, watching])
    assert told == [
        ("telegram", "out of reach (no route to host), trying again"),
        ("telegram", "connected"),
    ]
    assert connected == ["telegram", "telegram"]
    assert [entry["event"] for entry in logs] == [
        "a platform is connected",
        "a platform is not connected",
        "a platform is connected",
    ]


async def test_outage_after_a_token_was_refused_once_and_accepted_again_is_called_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The refusal ends before the states are looked at again."""
    monkeypatch.setattr(supervisor_module, "STATE_POLL_S", 0.005)
    monkeypatch.setattr(supervisor_module, "DEAD_AFTER_S", 0.05)
    refusing, looked, reported = asyncio.Event(), asyncio.Event(), asyncio.Event()
    told = list[str]()

    class RefusedOnce(Fragile):
        async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
            await super().listen(sink, commands)
            await (refusing if len(self.steps) == 2 else asyncio.Event()).wait()
            raise AccessRefused("discord_token_refused")

    async def do_nothing(*_: object) -> None:
        return None

    async def tell(name: str, state: str) -> None:
        told.append(state)
        reported.set()

    def look() -> Mapping[str, str]:
        looked.set()
        return {}

    async def look_twice() -> None:
        for _ in range(2):
            looked.clear()
            await looked.wait()

    platform = RefusedOnce()
    supervisor = Supervisor(Deaf(), (), do_nothing)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        watch = supervisor.watch_platforms(do_nothing, tell, do_nothing, look)
        background = [tasks.create_task(supervisor.run(platform)), tasks.create_task(watch)]
        await look_twice()
        refusing.set()
        while platform.steps.count("listen") < 2:
            await look_twice()
        await look_twice()
        platform.problem = "no route to host"
        await reported.wait()
        for task in background:
            task.cancel()
    assert told == ["out of reach (no route to host), trying again"]


async def test_outage_in_the_second_in_which_a_refused_token_is_accepted_is_called_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The states aren't looked at in between."""
    monkeypatch.setattr(supervisor_module, "MIN_BACKOFF_S", 0.005)

    states: list[str] = []

    class RefusedAndAccepted(Fragile):
        async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
            self.problem = "no route to host"
            await super().listen(sink, commands)
            states.append(supervisor.states["telegram"])
            self.accepted_at = time.monotonic()
            states.append(supervisor.states["telegram"])

    async def do_nothing(_: Adapter) -> None:
        return None

    supervisor = Supervisor(Deaf(), (), do_nothing)
    await supervisor.run(RefusedAndAccepted(listens=[AccessRefused("discord_token_refused")]))
    assert states == [
        f"out of reach ({reason}), trying again"
        for reason in ("the token is refused", "no route to host")
    ]
