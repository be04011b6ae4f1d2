"""The composition root: the only place that names concrete classes, and the life of the process.

Intake stops first, the lanes drain with a deadline, state.db closes last.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import structlog
from filelock import FileLock, Timeout

from adapters.terminal import Terminal
from config.settings import SOUL, Settings
from core.aftercare import Aftercare
from core.agent import Agent
from core.budget import Budget
from core.envelope import Envelope
from core.errors import ConfigError
from core.fallback import Fallback
from core.lineage import Lineage
from core.memory.curated import Curated
from core.memory.memory import Memory
from core.memory.recollection import Recollection
from core.offline import Offline
from core.ports import Adapter, Model
from core.prompt import Prompt
from core.titler import Titler
from core.toolbox import Toolbox
from core.tools.reminder import reminder
from core.tools.session_search import session_search
from gateway.access import Access
from gateway.caretaker import Caretaker
from gateway.commands import Commands
from gateway.courier import Courier
from gateway.cron import Cron
from gateway.doorbell import Doorbell
from gateway.family import Family
from gateway.house import House
from gateway.house_commands import HouseCommands
from gateway.job_commands import JobCommands
from gateway.lanes import Lanes
from gateway.post import Post
from gateway.recall_commands import RecallCommands
from gateway.report import Report
from gateway.router import Router
from gateway.session_commands import SessionCommands
from gateway.supervisor import Supervisor

DRAIN_S = 20.0
CONNECT = (
    "To talk to me elsewhere, set TELEGRAM_BOT_TOKEN (a token from @BotFather) or DISCORD_BOT_TOKEN (from the Discord "
    "developer portal) and start again; with ANTHROPIC_API_KEY a model answers. `mneme check` says what is missing."
)


async def run_house(settings: Settings, *, chat_only: bool, has_terminal: bool) -> str | None:
    """Runs the gateway until it is told to stop, or the input ends of a terminal that is all there is. Returns what is
    left to say then.

    Raises ConfigError when another gateway has this home, or when every platform refused us; StoreError.
    """
    changed = asyncio.Event()
    with _locked(settings.home):
        async with House.open(settings, changed.set) as house, AsyncExitStack() as stack:
            await house.outbox.recover(house.clock.now())
            adapters = _platforms(house, chat_only=chat_only, has_terminal=has_terminal)
            supervisor = await _Process(house, adapters, changed, stack).live()
    if not chat_only and not (settings.is_telegram_on or settings.is_discord_on):
        return CONNECT
    if refusals := [state for state in supervisor.states.values() if state.startswith("given up")]:
        raise ConfigError("\n".join(refusals))
    return None


class _Process:
    """One run: what lives only as long as the process does."""

    def __init__(
        self, house: House, adapters: Sequence[Adapter], changed: asyncio.Event, stack: AsyncExitStack
    ) -> None:
        self._house = house
        self._stack = stack
        self._opened: dict[str, Adapter] = {}
        self._post = Post(house.inbox, house.outbox, house.clock)
        self._courier = Courier(house.outbox, self._post, self._opened, house.clock)
        self._cron = Cron(
            jobs=house.jobs,
            outbox=house.outbox,
            people=house.people,
            clock=house.clock,
            deliver=lambda address: self._adapters[address.platform].reply(address),
            late_after_s=house.settings.cron.late_after_s,
            on_wake=self._courier.wake,
        )
        self._adapters: dict[str, Adapter] = {adapter.platform: adapter for adapter in (*adapters, self._cron)}
        model, cheap = _models(house, stack)
        report = Report(house, model.name)
        self._router, commands = corridor(house, model, cheap, self._post, report, self._courier.wake)
        self._supervisor = Supervisor(self._router, commands.specs, self._on_open)
        report.supervisor = self._supervisor
        self._caretaker = Caretaker(house.database, house.recall, changed, self._on_change)
        self._stop = asyncio.Event()
        self._log = structlog.get_logger("app")

    async def live(self) -> Supervisor:
        """Listens, serves, delivers, until the stop signal or the end of the terminal's input."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self._stop.set)
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._router.connect(self._adapters, tasks)
            background = [
                tasks.create_task(work)
                for work in (self._courier.run(), self._caretaker.watch(), self._caretaker.tend())
            ]
            intake = [tasks.create_task(self._listen(adapter)) for adapter in self._adapters.values()]
            await self._stop.wait()
            for task in intake:
                task.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_S):
                    await self._router.drained()
            for task in background:
                task.cancel()
            self._router.cancel()
        return self._supervisor

    async def _listen(self, adapter: Adapter) -> None:
        try:
            await self._supervisor.run(adapter)
        except ConfigError:
            if not any(
                state in ("connecting", "connected") or state.startswith("out of reach")
                for platform, state in self._supervisor.states.items()
                if platform != self._cron.platform
            ):
                self._stop.set()
        else:
            if set(self._adapters) == {Terminal.platform, self._cron.platform}:
                self._stop.set()

    async def _on_open(self, adapter: Adapter) -> None:
        if adapter.platform not in self._opened:
            self._opened[adapter.platform] = adapter
            self._stack.push_async_callback(adapter.close)
        limit = timedelta(seconds=self._house.settings.turn.answer_after_restart_s)
        for number in await self._router.resume(adapter, limit):
            self._tasks.create_task(self._router.serve(number))
        self._courier.wake()

    async def _on_change(self) -> None:
        await self._cron.reload()
        self._courier.wake()


def corridor(
    house: House, model: Model, cheap: Model | None, post: Post, report: Report, on_wake: Callable[[], None]
) -> tuple[Router, Commands]:
    """The way of a message through the core, with everything on it but platforms: what a process runs, and tests.
    `on_wake` is called when something was put into the outbox."""
    settings, zone = house.settings, house.settings.general.zone
    memory = Memory([Curated(house.notebook), Recollection(house.recall, zone)], settings.memory.prefetch_timeout_s)
    prompt = Prompt(settings.home, SOUL.read_text(encoding="utf-8"), zone, memory)
    lineage = Lineage(house.conversations, prompt, house.clock, settings.model.chat, settings.model.window_tokens)
    tools = [*memory.tools(), session_search(house.recall, zone), reminder(house.appointments)]
    agent = Agent(
        model=model,
        conversations=house.conversations,
        lineage=lineage,
        envelope=Envelope(memory, zone, settings.memory.prefetch_chars),
        toolbox=Toolbox(tools, settings.model.tool_timeout_s),
        clock=house.clock,
        budget=Budget(max_rounds=settings.model.max_rounds, max_tokens=settings.model.max_tokens),
    )
    families: list[Family] = [
        SessionCommands(house.conversations, house.transcripts, lineage, house.clock, zone),
        RecallCommands(house.recall, house.notebook, zone),
        JobCommands(house.appointments),
        HouseCommands(house.people, house.transcripts, house.clock, report.lines),
    ]
    commands = Commands(families, house.actions, house.clock)
    people, rooms = frozenset(settings.access.people), frozenset(settings.access.rooms)
    doorbell = Doorbell(house.people, house.transcripts, house.outbox, house.clock, on_wake)
    router = Router(
        access=Access(house.people, house.clock, people, rooms, settings.room.listen, doorbell),
        post=post,
        agent=agent,
        aftercare=Aftercare(house.conversations, memory, Titler(house.conversations, cheap, settings.model.cheap)),
        commands=commands,
        lanes=Lanes(),
        clock=house.clock,
    )
    return router, commands


def _models(house: House, stack: AsyncExitStack) -> tuple[Model, Model | None]:
    """The model that talks, and the one for titles: none without a key and without a server of one's own."""
    settings = house.settings
    if settings.anthropic_api_key is None and settings.anthropic_base_url is None:
        return Offline(settings.general.zone), None
    # The vendors' packages take a second or two to load: only who is configured is.
    from core.claude import Claude

    key = settings.anthropic_api_key.get_secret_value() if settings.anthropic_api_key else None
    claude = Claude(
        api_key=key,
        base_url=settings.anthropic_base_url,
        clock=house.clock,
        tries=settings.model.tries,
        patience_s=settings.model.patience_s,
    )
    stack.push_async_callback(claude.close)
    offline = Offline(settings.general.zone, "The model is out of reach")
    return Fallback(claude, offline, house.clock), claude


def _platforms(house: House, *, chat_only: bool, has_terminal: bool) -> list[Adapter]:
    settings = house.settings
    adapters: list[Adapter] = []
    if not chat_only and settings.is_telegram_on and settings.telegram_token:
        from adapters.telegram import Telegram

        adapters.append(
            Telegram(
                token=settings.telegram_token.get_secret_value(),
                api_url=settings.telegram_api_url,
                inbox=house.inbox,
                clock=house.clock,
            )
        )
    if not chat_only and settings.is_discord_on and settings.discord_token:
        from adapters.discord import Discord

        adapters.append(
            Discord(
                token=settings.discord_token.get_secret_value(),
                api_url=settings.discord_api_url,
                gateway_url=settings.discord_gateway_url,
                clock=house.clock,
                limit_chars=settings.discord.limit_chars,
                has_message_content=settings.discord.message_content,
            )
        )
    if has_terminal or not adapters:
        adapters.append(Terminal(home=settings.home, clock=house.clock))
    return adapters


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    lock = FileLock(home / "gateway.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ConfigError(
            f"Mneme runs already with the home {home}. Stop it first, or use another MNEME_HOME; recall, sessions, "
            "memory and cron work beside it."
        ) from error
    try:
        yield
    finally:
        lock.release()
