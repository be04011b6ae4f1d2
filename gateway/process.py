"""Connects the platforms, runs background work, and shuts down the gateway.

On shutdown, the process first stops accepting events. Then it waits until the running answers are
finished or time out. Finally, it closes the connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog

from adapters.terminal.local import LocalTerminals
from config.operating_system import release_freed_memory
from config.settings import PLATFORMS
from core.agent.memory_review import MemoryReviewer
from core.errors import StoreError
from core.media.intake import MediaIntake
from core.memory.manager import MemoryManager
from core.menus.command_specs import CommandSpec
from core.models.wrappers import ModelTally
from core.ports import Adapter, InboundSink
from core.store.ownership.people import TERMINAL
from core.store.sqlite.database import Database as SqliteDatabase
from core.store.sync import PLATFORM as MEMORY
from core.types import Address
from gateway.access_and_rates import CRON, Access
from gateway.admission import Admission
from gateway.commands.menus.specs import translate_specs
from gateway.commands.registry import CommandRegistry
from gateway.delivery import Delivery
from gateway.local.control import ControlServer, LiveState
from gateway.local.sockets import find_socket
from gateway.logs import print_notice
from gateway.media.voice import VoiceCommands
from gateway.scheduler import Scheduler
from gateway.services import Services
from gateway.sharing.front import Front
from gateway.sharing.joining import Sharing
from gateway.store_watch import StoreWatch
from gateway.supervisor import Supervisor, run_chores, watch_store
from gateway.texts.catalog import SHELL as texts
from gateway.turns import TurnDispatcher
from gateway.upkeep.growth import SizeLog
from gateway.upkeep.retention import RetentionKeeper

if TYPE_CHECKING:
    from gateway.upkeep.backups import BackupScheduler
    from gateway.upkeep.metrics import Metrics
    from gateway.web.server import PageServer

# The time that answers get to finish after a stop signal. It starts again whenever an answer
# finishes.
DRAIN_TIMEOUT_S = 5.0
# The time that the connections then get to close.
CLOSE_TIMEOUT_S = 2.0
# The options of glibc's `mallopt`, and their values: the number of arenas, and the size in bytes
# from which a block gets pages of its own.
MALLOC_ARENA_MAX = -8
MALLOC_ARENAS = 2
MALLOC_MMAP_THRESHOLD = -3
MALLOC_OWN_PAGES_BYTES = 128 * 1024
# How often freed memory is returned to the system.
RELEASE_INTERVAL_S = 60.0
# The pause before a new front tries again to take over the chats of dead gateways.
TAKEOVER_RETRY_S = 1.0
# How long a busy thread keeps the interpreter while another thread waits for it.
THREAD_SWITCH_S = 0.001
_log = structlog.get_logger("process")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePath:
    """The parts that handle a message on its way to the agent and back."""

    access: Access
    admission: Admission
    turns: TurnDispatcher
    delivery: Delivery
    commands: CommandRegistry
    memory: MemoryManager
    scheduler: Scheduler
    # Reviews memory in the background. None without a helper model, or if reviews are switched off.
    reviewer: MemoryReviewer | None
    # Counts the calls and tokens of the models since the start. None without a model.
    model_tally: ModelTally | None
    # The adapters by platform, including the scheduler.
    adapters: Mapping[str, Adapter]
    # Downloads and stores the files that people send.
    media: MediaIntake


class GatewayProcess:
    """Runs the platforms and the background work, and shuts them down."""

    def __init__(
        self,
        services: Services,
        path: MessagePath,
        tasks: asyncio.TaskGroup,
        changed: asyncio.Event,
        stack: AsyncExitStack,
        sharing: Sharing | None = None,
    ) -> None:
        self._services = services
        self._path = path
        self._tasks = tasks
        # Set after this process has changed data that the scheduler or the outbox needs.
        self._changed = changed
        # Closes the connections at the end.
        self._stack = stack
        # Set if other gateways may share the store.
        self._sharing = sharing
        self._front: Front | None = None
        self._supervisor = self._create_supervisor(path.admission)
        # Why this process had to end.
        self._refusals: list[str] = []
        self._stop = asyncio.Event()
        self._is_interrupted = False
        self._max_question_age = timedelta(seconds=services.settings.turn.answer_after_restart_s)
        self._page = self._create_page()
        self._metrics: Metrics | None = None
        # Created when it's needed first.
        self._backups: BackupScheduler | None = None
        # Platforms whose stored events have been queued again.
        self._resumed: dict[str, Adapter] = {}

    async def run(self) -> Sequence[str]:
        """Run until the process is stopped or the input of all platforms ends.

        Returns the states of the platforms that can't work with these settings. After a stop
        signal, the list is empty, because at least one platform was still working.
        """
        self._handle_signals()
        async with self._tasks:
            background = self._start_common_work()
            intake: list[asyncio.Task[None]] = []
            if await self._become_front():
                background += self._start_background()
                intake = self._start_intake()
                await self._stop.wait()
            for task in intake:
                task.cancel()
            await self._path.turns.drain(DRAIN_TIMEOUT_S)
            print_notice(texts.unfinished_notice(self._path.turns.unanswered_count))
            if self._is_interrupted:
                _exit_after(CLOSE_TIMEOUT_S)
            for task in background:
                task.cancel()
            self._path.turns.cancel()
            if self._front is not None:
                self._front.close()
        if self._is_interrupted:
            return []
        if self._refusals:
            return self._refusals
        return [state for state in self._supervisor.states.values() if state.startswith("given up")]

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self._interrupt, number)

    def _interrupt(self, number: int) -> None:
        """On the first signal, finish the running answers and stop.

        On the second one, exit at once.
        """
        count = self._path.turns.unanswered_count
        if self._is_interrupted:
            print_notice(texts.unfinished_notice(count))
            os._exit(128 + number)
        self._is_interrupted = True
        self._stop.set()
        if count:
            answers = texts.format_count(count, "answer")
            print_notice(texts.FINISHING.format(answers=answers, timeout_s=DRAIN_TIMEOUT_S))

    def _create_supervisor(self, sink: InboundSink) -> Supervisor:
        specs: Sequence[CommandSpec] = self._path.commands.specs
        # Only platforms show menus in all languages, and reading ten languages delays the start.
        if self._sharing is not None or not self._path.adapters.keys().isdisjoint(PLATFORMS):
            specs = translate_specs(specs)
        return Supervisor(sink, specs, self._on_open)

    async def _become_front(self) -> bool:
        """Wait until this process may receive messages. Returns False if it was stopped before.

        Without other gateways, it may receive messages at once. Otherwise, it works for the front
        until then.
        """
        sharing = self._sharing
        if sharing is None:
            return True
        adapters = self._path.adapters
        waiting = self._tasks.create_task(sharing.wait_to_be_front(adapters, self._add_platform))
        stopping = self._tasks.create_task(self._stop.wait())
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        stopping.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            return False
        except StoreError as error:
            self._refusals.append(str(error))
            return False
        while not self._stop.is_set():
            try:
                front = await sharing.create_front(self._path.admission, adapters, self._resume)
            except StoreError as error:
                _log.error("the chats of other gateways can't be taken over", error=error)
                await asyncio.sleep(TAKEOVER_RETRY_S)
            else:
                self._front = front
                self._supervisor = self._create_supervisor(front)
                return True
        return False

    def _start_common_work(self) -> list[asyncio.Task[None]]:
        """Start the tasks that each gateway runs, also while another one receives the messages."""
        services = self._services
        memory = self._path.memory
        work = [
            self._path.delivery.run(),
            watch_store(services.database.data_version, self._changed, self._on_change),
            memory.start(),
            run_chores([memory.tend]),
            release_memory_regularly(),
        ]
        if self._sharing is not None:
            path = self._path
            work.append(self._sharing.serve_front(path.admission, path.adapters, self._stop.is_set))
        return [self._tasks.create_task(coroutine) for coroutine in work]

    def _start_background(self) -> list[asyncio.Task[None]]:
        """Start the tasks that run concurrently with the platforms."""
        services = self._services
        embeddings = services.embeddings
        work = [
            run_chores([services.recall.tend, services.forgetting.maintain]),
            run_chores([embeddings.tend] if embeddings else []),
            run_chores([SizeLog(services.settings, services.database, services.clock).tend]),
            run_chores([RetentionKeeper(services, services.clock).tend]),
            run_chores([self._path.reviewer.tend] if self._path.reviewer else []),
            self._create_control_server().run(),
            self._supervisor.watch_platforms(
                services.save_platform_states,
                services.owner_notices.notify_outage,
                self._on_connected,
                self._list_memory_outages,
            ),
        ]
        if isinstance(services.database, SqliteDatabase):
            store_watch = self._create_store_watch(services.database)
            work += [store_watch.run(), run_chores([store_watch.check_integrity])]
        work += [run_chores([chore]) for chore in self._list_optional_chores()]
        terminals = self._path.adapters.get(TERMINAL.platform)
        if isinstance(terminals, LocalTerminals):
            work.append(self._resume_terminals(terminals))
        if self._front is not None:
            work.append(self._front.watch())
        if self._page is not None:
            work.append(self._page.run())
        if services.settings.metrics.enabled:
            work.append(self._serve_metrics())
        return [self._tasks.create_task(coroutine) for coroutine in work]

    def _list_optional_chores(self) -> list[Callable[[], Awaitable[bool]]]:
        """Return the chores that the settings switch on.

        Their modules are imported here, because by default none of them is on.
        """
        services = self._services
        settings = services.settings
        chores: list[Callable[[], Awaitable[bool]]] = [self._tend_backups]
        if settings.usage.month_line:
            from gateway.upkeep.spending import MonthLine

            chores.append(MonthLine(services, services.clock).tend)
        if any(source.remind_minutes for source in settings.calendar.values()):
            from gateway.upkeep.event_reminders import EventReminders

            chores.append(EventReminders(services, services.clock).tend)
        return chores

    async def _tend_backups(self) -> bool:
        """Make a backup if one is due, and delete expired ones.

        Until there are backups, nothing is loaded for them.
        """
        settings = self._services.settings
        if self._backups is None:
            if not settings.backup.every and not (settings.home / "backups.json").exists():
                return False
            from gateway.upkeep.backups import BackupScheduler

            self._backups = BackupScheduler(
                settings, self._services.clock, self._services.owner_notices
            )
        return await self._backups.tend()

    async def _serve_metrics(self) -> None:
        """Serve metrics until cancelled."""
        # Imported here because most gateways serve no metrics.
        from gateway.upkeep.metrics import Metrics

        services = self._services
        self._metrics = Metrics(
            services,
            self._path.turns,
            self._path.memory,
            self._path.model_tally,
            services.clock,
            services.settings.metrics.port,
        )
        await self._metrics.run()

    def _list_taken_ports(self) -> list[str]:
        """Return the options of the ports that another program uses."""
        servers = {"web.port": self._page, "metrics.port": self._metrics}
        return [
            option
            for option, server in servers.items()
            if server is not None and server.is_port_taken
        ]

    def _create_control_server(self) -> ControlServer:
        """Create the server that reports this process's state to other commands."""
        state = LiveState(
            self._services,
            lambda: {**self._supervisor.states, **self._list_memory_outages()},
            lambda: self._path.turns.unanswered_count,
            lambda: 1 if self._front is None else self._front.gateway_count,
            self._list_taken_ports,
        )
        handlers = {"state": state.describe, "reload": state.reload, "web": self._create_page_link}
        return ControlServer(find_socket(self._services.settings.home, "control"), handlers)

    def _create_page(self) -> PageServer | None:
        """Create the server of the local page, or return None if the page is switched off."""
        if not self._services.settings.web.enabled:
            return None
        # Imported here because most gateways don't serve the page.
        from gateway.web.server import PageServer

        return PageServer(self._services, self._path.commands)

    async def _create_page_link(self) -> dict[str, Any]:
        """Return a link that opens the owner's page once, or no link if the page isn't served."""
        if self._page is None or not self._services.page_logins.is_page_served:
            return {}
        return {"link": self._page.create_owner_link()}

    def _create_store_watch(self, database: SqliteDatabase) -> StoreWatch:
        """Create the watch over the files of state.db. A database on a server needs none."""
        services = self._services
        # On Telegram, the direct chat with a person has their id.
        ids = services.settings.owner.telegram
        owner_chat = Address(platform="telegram", chat_id=str(ids[0])) if ids else None
        return StoreWatch(
            database,
            services.owner_notices,
            services.clock,
            services.find_private_chat,
            self._path.delivery.notify_unstored,
            owner_chat if "telegram" in services.settings.platform_tokens else None,
        )

    def _start_intake(self) -> list[asyncio.Task[None]]:
        """Start listening to all platforms. When all of them have ended, the process stops."""
        intake: list[asyncio.Task[None]] = []
        platforms: list[asyncio.Task[None]] = []
        for adapter in self._path.adapters.values():
            task = self._tasks.create_task(self._supervisor.run(adapter))
            intake.append(task)
            if not self._runs_without_input(adapter):
                platforms.append(task)
        all_ended = self._tasks.create_task(asyncio.wait(platforms))
        all_ended.add_done_callback(lambda _: self._stop.set())
        return intake

    @staticmethod
    def _runs_without_input(adapter: Adapter) -> bool:
        """Return whether the process may end although this adapter still listens."""
        is_socket_only = isinstance(adapter, LocalTerminals) and adapter.foreground is None
        return adapter.platform == CRON or is_socket_only

    async def _resume_terminals(self, terminals: LocalTerminals) -> None:
        """Deliver waiting messages whenever a terminal connects, until cancelled."""
        while True:
            await terminals.connected.wait()
            terminals.connected.clear()
            await self._path.delivery.resume([terminals.platform])

    async def _on_open(self, adapter: Adapter) -> None:
        """When a platform is open, continue the work that an earlier process left unfinished."""
        self._add_platform(adapter)
        await self._print_first_contact(adapter)
        must_resume = self._sharing.must_resume if self._sharing is not None else _is_any
        await self._resume(adapter.platform, must_resume)
        # All stored events of this platform are being served now.
        self._resumed[adapter.platform] = adapter
        self._changed.set()

    def _add_platform(self, adapter: Adapter) -> None:
        """Deliver to a platform that is open."""
        if self._path.delivery.add_platform(adapter.platform, adapter.reply):
            self._stack.push_async_callback(adapter.close)

    async def _resume(self, platform: str, is_ours: Callable[[Address], bool]) -> None:
        """Answer the waiting events of a platform at addresses for which `is_ours` is true."""
        admission = self._path.admission
        adapter = self._path.adapters.get(platform)
        if adapter is None:
            return
        for entry_id in await admission.resume(adapter, self._max_question_age, is_ours):
            admission.serve(entry_id)
        await self._path.media.resume_downloads(platform, is_ours)
        voice = self._path.commands.voice
        if isinstance(voice, VoiceCommands):
            await voice.resume(platform, is_ours)

    async def _on_connected(self, platform: str) -> None:
        """Send the items that wait for a platform, including answers to scheduled questions."""
        await self._path.delivery.resume([platform, CRON])

    async def _print_first_contact(self, adapter: Adapter) -> None:
        """Print how to reach the bot if the owner has no account on a platform yet."""
        owner_accounts = await self._services.links.list_accounts(TERMINAL)
        owner_platforms = {account.account.platform for account in owner_accounts}
        if adapter.contact and adapter.platform not in owner_platforms:
            platform = texts.name_platform(adapter.platform)
            print_notice(texts.FIRST_CONTACT.format(platform=platform, contact=adapter.contact))

    def _list_memory_outages(self) -> Mapping[str, str]:
        """Return the states of memory services that are down, by names such as ``memory mem0``."""
        outages = self._path.memory.outages
        return {f"{MEMORY} {name}": state for name, state in outages.items()}

    async def _on_change(self) -> None:
        """React to a change of the store by this or another process."""
        services = self._services
        if self._sharing is not None:
            # Another gateway may have changed data that this gateway keeps in memory.
            await services.languages.load()
            await services.chat_rules.reload()
        await self._path.turns.recheck_access()
        adapters = list(self._resumed.values())
        await self._path.admission.answer_approved(
            adapters, self._max_question_age, services.is_ours
        )
        await self._path.scheduler.reload()
        if self._sharing is None or self._front is not None:
            await self._path.memory.on_memory_write()
        self._path.delivery.wake()


def _is_any(_: Address) -> bool:
    return True


def configure_malloc() -> None:
    """Limit the freed memory that glibc's allocator keeps. Call this before threads start.

    All threads share two arenas. By default, each thread gets its own arena and keeps the memory
    that it has freed. With a dozen threads, this adds up to tens of megabytes.

    Large blocks always get their own pages, which are returned to the system when the block is
    freed. By default, glibc raises its threshold after such a block is freed, and then places large
    blocks among small ones, where they leave gaps. With other C libraries, this function does
    nothing.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(MALLOC_ARENA_MAX, MALLOC_ARENAS)
        library.mallopt(MALLOC_MMAP_THRESHOLD, MALLOC_OWN_PAGES_BYTES)


async def release_memory_regularly() -> None:
    """Return freed memory to the system about once a minute, until cancelled."""
    while True:
        await asyncio.sleep(RELEASE_INTERVAL_S)
        await asyncio.to_thread(release_freed_memory)


def shorten_thread_pauses() -> None:
    """Keep work in threads, such as rendering a long answer, from blocking the event loop.

    Threads switch after a millisecond, so the loop gets the interpreter back quickly. The garbage
    collector was off until now, and stops all threads while it runs. The objects that exist now are
    excluded from its runs, which makes them short.
    """
    sys.setswitchinterval(THREAD_SWITCH_S)
    gc.freeze()
    gc.enable()
    gc.collect()


def _exit_after(delay_s: float) -> None:
    """Exit after a delay, even if a thread hangs. Everything important is stored by then."""
    timer = threading.Timer(delay_s, os._exit, (0,))
    timer.daemon = True
    timer.start()
