"""Runs several gateways as child processes: `mneme run --workers N`.

This process opens neither the store nor a platform. It starts the gateways, which share the chats
as if each had been started by hand. If one ends unexpectedly, it is started again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from config.operating_system import end_with_parent
from config.settings import Settings
from core.errors import ConfigError
from gateway.local.control import ask_gateway
from gateway.logs import print_notice
from gateway.sharing.joining import SHARED_PLATFORMS
from gateway.texts.catalog import SHELL as texts

# How long a gateway may take until it has joined the others.
JOIN_TIMEOUT_S = 120.0
JOIN_INTERVAL_S = 0.1
# The pause before a gateway is started again. It doubles with each end, unless the gateway has
# worked for the longest pause.
MIN_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
_log = structlog.get_logger("workers")


@dataclass(eq=False, slots=True)
class Worker:
    """A gateway that runs as a child process."""

    process: asyncio.subprocess.Process
    # Whether it has been asked to end.
    is_leaving: bool = False

    def stop(self) -> None:
        """Ask the gateway to finish its answers and end. If asked again, it ends at once."""
        self.is_leaving = True
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)


def check_settings(settings: Settings) -> None:
    """Raise ConfigError if several gateways can't share the chats with these settings."""
    if not settings.store.url:
        raise ConfigError(texts.compose("workers_need_server"))
    if not set(SHARED_PLATFORMS).intersection(settings.platform_tokens):
        raise ConfigError(texts.compose("workers_need_telegram"))


class WorkerPool:
    """Keeps `count` gateways running with one home."""

    def __init__(self, home: Path, count: int) -> None:
        self._home = home
        self._count = count
        self._workers: list[Worker] = []
        self._stopping = asyncio.Event()
        self._must_restart = asyncio.Event()
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> int:
        """Run the gateways until a stop signal arrives, and return the exit code.

        If a gateway can't start, the others end, too, and its exit code is returned.
        """
        self._handle_signals()
        async with self._tasks:
            failed = await self._start_all()
            if failed is None:
                restarts = self._tasks.create_task(self._restart_on_request())
                await self._stopping.wait()
                restarts.cancel()
            else:
                self._stop()
        return 0 if failed is None else failed.process.returncode or 1

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._stop)
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._must_restart.set)

    def _stop(self) -> None:
        """Ask all gateways to end. The second signal makes them end at once."""
        self._stopping.set()
        for worker in self._workers:
            worker.stop()

    async def _start_all(self) -> Worker | None:
        """Start the gateways one after the other. Returns the one that couldn't start, or None."""
        for _ in range(self._count):
            worker = await self._add_worker()
            if not await self._wait_until_joined(worker) and not self._stopping.is_set():
                worker.stop()
                await worker.process.wait()
                return worker
            if self._stopping.is_set():
                return None
        print_notice(texts.compose("workers_run", count=self._count, process=os.getpid()))
        return None

    async def _add_worker(self) -> Worker:
        """Start a gateway that is started again if it ends."""
        worker = Worker(await self._start_process())
        self._workers.append(worker)
        self._tasks.create_task(self._keep_running(worker))
        return worker

    async def _start_process(self) -> asyncio.subprocess.Process:
        # Its own process group doesn't get the Ctrl-C of the terminal, which it would count as the
        # second signal.
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "gateway.cli.main", "run"),
            stdin=asyncio.subprocess.DEVNULL,
            process_group=0,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )

    async def _keep_running(self, worker: Worker) -> None:
        """Start a gateway again whenever it ends, until it has been asked to end."""
        loop = asyncio.get_running_loop()
        pause_s = MIN_PAUSE_S
        while True:
            started_at = loop.time()
            code = await worker.process.wait()
            if worker.is_leaving or self._stopping.is_set():
                break
            if loop.time() - started_at > MAX_PAUSE_S:
                pause_s = MIN_PAUSE_S
            _log.error("a gateway has ended and is started again", code=code, pause_s=pause_s)
            if await self._sleep_until_stop(pause_s) or worker.is_leaving:
                break
            pause_s = min(2 * pause_s, MAX_PAUSE_S)
            worker.process = await self._start_process()
            if self._stopping.is_set():
                worker.stop()
        self._workers.remove(worker)

    async def _sleep_until_stop(self, pause_s: float) -> bool:
        """Wait for a pause. Returns True if Mneme is stopped meanwhile."""
        try:
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _wait_until_joined(self, worker: Worker) -> bool:
        """Wait until the front knows all gateways. Returns False if this one ends or can't join."""
        process = worker.process
        ends_at = asyncio.get_running_loop().time() + JOIN_TIMEOUT_S
        while asyncio.get_running_loop().time() < ends_at:
            state = await asyncio.to_thread(ask_gateway, self._home, "state")
            running = sum(other.process.returncode is None for other in self._workers)
            if state is not None and state["gateways"] >= running:
                return process.returncode is None
            if process.returncode is not None or await self._sleep_until_stop(JOIN_INTERVAL_S):
                return False
        return False

    async def _restart_on_request(self) -> None:
        """Replace the gateways after each SIGHUP, until cancelled."""
        while True:
            await self._must_restart.wait()
            self._must_restart.clear()
            is_complete = await self._replace_all()
            if not self._stopping.is_set():
                key = "workers_restarted" if is_complete else "workers_not_restarted"
                print_notice(texts.compose(key))

    async def _replace_all(self) -> bool:
        """Replace each gateway by a new one. The front comes last, so its work moves only once.

        Returns False if a new one can't join. The gateways that aren't replaced yet work on.
        """
        state = await asyncio.to_thread(ask_gateway, self._home, "state")
        front = None if state is None else state["process"]
        for worker in sorted(self._workers, key=lambda other: other.process.pid == front):
            successor = await self._add_worker()
            if not await self._wait_until_joined(successor):
                successor.stop()
                return False
            worker.stop()
            await worker.process.wait()
        return True
