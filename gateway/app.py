"""The composition root: the only place that names concrete classes, and the life of the process.

Intake stops first, the queues drain with a deadline, state.db closes last.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import time, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from adapters.terminal.adapter import Terminal
from config.settings import SOUL, Settings
from core.agent.compression import Compressor, Flush, Summarizer, Windows
from core.agent.context_files import ContextFiles, OwnerFiles
from core.agent.delegation import NAME as DELEGATE
from core.agent.delegation import Delegate
from core.agent.offline import Offline
from core.agent.prompt import Prompt, Sections
from core.agent.sessions import Boundary, SessionTracker
from core.agent.tool_runner import ToolRunner
from core.agent.turn import Agent
from core.errors import ConfigError
from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader
from core.facts.provider import FactRanking, FactsProvider, KnownFacts
from core.memory.manager import MemoryManager, hooks_of
from core.memory.provider import MemoryProvider
from core.models.wrappers import FallbackModel, MeteredModel
from core.notes.curator import Curator
from core.notes.provider import NotesProvider
from core.ports import Adapter, Model
from core.scheduling.appointments import reminder
from core.search.expansion import ExpandedRecall
from core.search.recall import HistoryProvider, session_search
from core.store.facts import FactKind
from core.store.people import TERMINAL
from core.store.sync import PLATFORM as MEMORY
from core.store.sync import SyncQueue
from gateway import texts
from gateway.access import Access
from gateway.commands.accounts import AccountCommands
from gateway.commands.export import ExportCommands
from gateway.commands.facts import FactCommands
from gateway.commands.instructions import InstructionCommands
from gateway.commands.memory import MemoryCommands
from gateway.commands.privacy import ForgetCommands
from gateway.commands.recall import RecallCommands
from gateway.commands.registry import CommandGroup, Commands
from gateway.commands.reminders import ReminderCommands
from gateway.commands.sessions import SessionCommands, tell_of_restart
from gateway.commands.skills import SkillCommands
from gateway.commands.status import StatusCommands, UsageCommands
from gateway.commands.undo import UndoCommands
from gateway.delivery import Delivery, ReplyFactory, memory_reply
from gateway.owner_notices import OwnerNotices
from gateway.router import Router
from gateway.scheduler import Scheduler
from gateway.services import LOCK, Services, chosen, client
from gateway.supervisor import Supervisor, tend, watch_store

DRAIN_S = 5.0
"""How long after a stop signal, or after the last answer since, the others have to be finished."""
CLOSE_S = 2.0
"""How long the connections have then to say goodbye."""


async def run_gateway(settings: Settings, *, chat_only: bool, has_terminal: bool) -> str | None:
    """Runs until a stop signal, or the end of input of a terminal that is all there is; returns what is left to say
    then. Raises StoreError; ConfigError when another gateway has this home, or when a platform has refused us and every
    other one has ended."""
    changed = asyncio.Event()
    with _locked(settings.home):
        async with Services.open(settings, changed.set) as services, AsyncExitStack() as stack:
            await services.outbox.recover(services.clock.now())
            await services.removals.settle(settings.access.people, services.clock.now())
            await tell_of_restart(services)
            await services.forgetting.resume()
            if services.restored:
                _tell(services.restored)
                await OwnerNotices(services).tell(f"restored:{services.clock.now().isoformat()}", services.restored)
            adapters = _platforms(services, chat_only=chat_only, has_terminal=has_terminal)
            refusals = await _Process(services, adapters, changed, stack).live()
    if not chat_only and not settings.platforms:
        return texts.CONNECT
    if refusals:
        raise ConfigError("\n".join(refusals))
    return None


class _Process:
    """What lives only as long as the process does."""

    def __init__(
        self, services: Services, adapters: Sequence[Adapter], changed: asyncio.Event, stack: AsyncExitStack
    ) -> None:
        self._services = services
        self._stack = stack
        self._opened: dict[str, ReplyFactory] = {}
        self._delivery = Delivery(services.inbox, services.outbox, services.clock, self._opened)
        self._scheduler = Scheduler(
            jobs=services.jobs,
            outbox=services.outbox,
            clock=services.clock,
            deliver=lambda address: self._adapters[address.platform].reply(address),
            late_after_s=services.settings.cron.late_after_s,
            on_wake=self._delivery.wake,
            view=lambda job: self._router.view(job),
        )
        self._adapters: dict[str, Adapter] = {adapter.platform: adapter for adapter in (*adapters, self._scheduler)}
        self._changed = changed
        self._stop = asyncio.Event()
        self._is_interrupted = False
        self._limit_age = timedelta(seconds=services.settings.turn.answer_after_restart_s)
        self._resumed: set[str] = set()

    async def live(self) -> Sequence[str]:
        """Returns which platforms have refused us; none after a stop signal, since the others have worked."""
        model, helper = _models(self._services, self._stack)
        self._router, commands, self._memory = await build_router(self._services, model, helper, self._delivery)
        self._stack.push_async_callback(self._memory.shutdown)
        self._supervisor = Supervisor(self._router, commands.specs, self._on_open)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, self._interrupt, number)
        notices = OwnerNotices(self._services)
        self._scheduler.on_pause = notices.tell_of_pause
        database, forgetting, embeddings = (
            self._services.database, self._services.forgetting, self._services.embeddings
        )  # fmt: skip
        async with asyncio.TaskGroup() as tasks:
            self._router.connect(self._adapters, tasks)
            background = [
                tasks.create_task(work)
                for work in (
                    self._delivery.run(),
                    watch_store(database.data_version, self._changed, self._on_change),
                    tend((self._services.recall.tend, forgetting.tend)),
                    tend([embeddings.tend] if embeddings else []),
                    self._memory.start(),
                    tend((self._memory.tend,)),
                    self._supervisor.watch(self._services.note_platforms, notices.tell_of_outage, self._outages),
                )
            ]
            if self._memory.externals:
                self._opened[MEMORY] = lambda address, reply_to: memory_reply(self._memory)
                self._delivery.on_memory_given_up = self._memory.given_up
            intake = {name: tasks.create_task(self._supervisor.run(one)) for name, one in self._adapters.items()}
            # Once every platform has refused us or has ended, nobody can say anything any more.
            listening = [intake[name] for name in intake if name != self._scheduler.platform]
            tasks.create_task(asyncio.wait(listening)).add_done_callback(lambda _: self._stop.set())
            await self._stop.wait()
            for task in intake.values():
                task.cancel()
            await self._router.drain(DRAIN_S)
            _tell(texts.unfinished(self._router.unanswered))
            if self._is_interrupted:
                # Not even a thread that hangs in a name resolution keeps the process: all that counts is stored.
                timer = threading.Timer(CLOSE_S, os._exit, (0,))
                timer.daemon = True
                timer.start()
            for task in background:
                task.cancel()
            self._router.cancel()
        states = () if self._is_interrupted else self._supervisor.states.values()
        return [state for state in states if state.startswith("given up")]

    def _interrupt(self, number: int) -> None:
        """The first signal ends the intake and lets answers be finished, the second ends the process where it is."""
        count = self._router.unanswered
        if self._is_interrupted:
            _tell(texts.unfinished(count))
            os._exit(128 + number)
        self._is_interrupted = True
        self._stop.set()
        if count:
            _tell(texts.FINISHING.format(answers=texts.counted(count, "answer"), patience_s=DRAIN_S))

    async def _on_open(self, adapter: Adapter) -> None:
        if adapter.platform not in self._opened:
            self._opened[adapter.platform] = adapter.reply
            self._stack.push_async_callback(adapter.close)
        owners = {one.account.platform for one in await self._services.links.accounts(TERMINAL)}
        if adapter.contact and adapter.platform not in owners:
            _tell(texts.FIRST_CONTACT.format(platform=adapter.platform.title(), contact=adapter.contact))
        for number in await self._router.resume(adapter, self._limit_age):
            self._router.serve(number)
        # From now on what was accepted is served, whatever fails: taken up again, it would be answered twice.
        self._resumed.add(adapter.platform)
        self._changed.set()

    def _outages(self) -> Mapping[str, str]:
        return {f"{MEMORY} {name}": state for name, state in self._memory.outages.items()}

    async def _on_change(self) -> None:
        await self._router.on_change()
        await self._router.answer_admitted(self._resumed, self._limit_age)
        await self._scheduler.reload()
        await self._memory.on_memory_write()
        self._delivery.wake()


def _tell(sentence: str) -> None:
    if sentence:
        with contextlib.suppress(OSError):
            print(sentence, file=sys.stderr, flush=True)  # noqa: T201


async def build_router(
    services: Services, model: Model, helper: Model | None, delivery: Delivery
) -> tuple[Router, Commands, MemoryManager]:
    """The way of a message through the core, without platforms. The caller shuts the memory down."""
    settings, zone = services.settings, services.settings.general.zone
    conversations, clock = services.conversations, services.clock
    metered = MeteredModel(model, services.usage_log, clock, settings.model.cache)
    # Only the client of a server knows; to import its class would load 40 MB also where there is no model.
    windows = Windows(settings.model, getattr(helper, "window", None))
    helper = None if helper is None else MeteredModel(helper, services.usage_log, clock, settings.model.cache)
    owner_notices = OwnerNotices(services)
    services.inbox.on_set_aside = owner_notices.tell_of_dead_letter
    services.usage_log.on_near = owner_notices.tell_of_budget
    evidence = EvidenceSearch(conversations)
    memory = _memory(services, helper, evidence, owner_notices, delivery)
    for cache in (memory, conversations):
        services.epoch_guard.caches.append(cache.invalidate)
    cheap = settings.model.helper
    unasked = settings.recall.expand, settings.recall.rerank
    recall = ExpandedRecall(services.recall, conversations, helper, cheap, clock, services.zone, *unasked)
    services.epoch_guard.caches.append(recall.invalidate)
    reminders, review = ReminderCommands(services), services.notebook.review
    plan = reminder(services.appointments, conversations, evidence, review, reminders.ask)
    skills = SkillCommands(services)
    home, warn = settings.home, owner_notices.warn_of_file
    context_files = ContextFiles(home, settings.context, settings.chats, services.notebook, warn)
    skills.tools.rule = context_files.rule
    core_tools = [session_search(recall, zone), plan, *skills.tools.all]
    tools = [*await memory.tools([DELEGATE, *(tool.name for tool in core_tools)]), *core_tools]
    soul, budget_chars = SOUL.read_text(encoding="utf-8"), settings.memory.prefetch_chars
    sections = Sections(
        frames=skills.turns.frames,
        cue=skills.turns.cue,
        instructions=context_files.instructions,
        skills=skills.tools.section,
        context_files=context_files.section,
        rules=context_files.frames if len(context_files.folders) > 1 else None,
    )
    prompt = Prompt(OwnerFiles(home, warn), soul, zone, memory, budget_chars, tools, sections)
    if helper is not None and settings.delegation.max_rounds:
        delegate = Delegate(helper, conversations, prompt, memory, tools, clock, settings.model, settings.delegation)
        tools.append(delegate.tool())
    boundary = Boundary(
        idle=timedelta(hours=settings.sessions.idle_hours),
        daily_at=time.fromisoformat(settings.sessions.daily_at) if settings.sessions.daily_at else None,
        zone=services.zone,
    )
    sessions = SessionTracker(conversations, prompt, memory, clock, settings.model, helper, boundary)
    prompt.longest = windows.longest
    tool_runner = ToolRunner(tools, settings.model.tool_timeout_s)
    flush = Flush(metered, tool_runner, settings.model, clock)
    summarizer = Summarizer(helper, cheap, windows, clock, services.zone)
    threshold = settings.compression.threshold
    compressor = Compressor(conversations, sessions, memory, flush, summarizer, windows, threshold)
    agent = Agent(metered, conversations, compressor, prompt, tool_runner, clock, settings.model)
    groups: list[CommandGroup] = [
        SessionCommands(services, sessions, compressor),
        UndoCommands(services, sessions),
        RecallCommands(recall if any(unasked) else services.recall, recall, services.zone),
        FactCommands(services),
        MemoryCommands(services),
        InstructionCommands(services, context_files),
        ForgetCommands(services),
        reminders,
        AccountCommands(services),
        StatusCommands(services, memory),
        ExportCommands(services),
        UsageCommands(services),
        skills,
    ]
    commands = Commands(groups, services.actions, clock, skills)
    access = Access(services.people, clock, settings, owner_notices)
    router = Router(access, delivery, agent, services.epoch_guard, commands, clock, settings.limits)
    return router, commands, memory


def _memory(
    services: Services, helper: Model | None, evidence: EvidenceSearch, owner_notices: OwnerNotices, delivery: Delivery
) -> MemoryManager:
    """Built-in memories and the services of the settings; one that cannot be had is a warning."""
    settings, zone, review = services.settings, services.settings.general.zone, services.notebook.review
    notebook, clock, cheap, options = services.notebook, services.clock, settings.model.helper, settings.memory
    curator = Curator(notebook, services.notes, services.facts, clock, services.zone, helper, cheap)
    notes, history = NotesProvider(notebook, evidence, curator), HistoryProvider(services.recall, zone)
    builtins: list[MemoryProvider] = [notes, history]
    if options.facts:
        kinds: tuple[FactKind, ...] = ("project", "episode", "working")
        half_lives = {kind: getattr(options, f"{kind}_half_life_days") for kind in kinds}
        blend = FactRanking(hrr=settings.facts.hrr_weight, half_life_days=half_lives)
        reader = FactReader(services.facts, review, clock, services.zone, helper, cheap)
        known = KnownFacts(services.facts, blend, services.zone)
        builtins.append(FactsProvider(services.facts, known, reader, evidence))
    found, wrong = chosen(settings)
    hooks, every = {one.name: hooks_of(one) for one in found}, {one.name: one.every_turns for one in found}
    queue = SyncQueue(services.database, clock, delivery.wake, hooks, every)
    timeout_s, notify = options.prefetch_timeout_s, owner_notices.tell_of_memory
    memory = MemoryManager(builtins, clock, timeout_s, queue, found, settings.home, notify)
    for problem in wrong.values():
        memory.warn(problem)
    notebook.on_change = memory.on_memory_write
    review.on_pending, review.on_warning = owner_notices.tell_of_pending, owner_notices.warn_of_note
    return memory


def _models(services: Services, stack: AsyncExitStack) -> tuple[Model, Model | None]:
    """The model that talks, and the cheap one for titles, summaries and searches."""
    zone = services.settings.general.zone
    claude = client(services.settings, services.clock)
    if claude is None:
        return Offline(zone), None
    stack.push_async_callback(claude.close)
    offline = Offline(zone, "The model is out of reach")
    return FallbackModel(claude, offline, services.clock), claude


def _platforms(services: Services, *, chat_only: bool, has_terminal: bool) -> list[Adapter]:
    settings, inbox, clock = services.settings, services.inbox, services.clock
    tokens = {} if chat_only else settings.platforms
    adapters: list[Adapter] = []
    if token := tokens.get("telegram"):
        from adapters.telegram.adapter import Telegram

        adapters.append(Telegram(token=token, api_url=settings.telegram_api_url, inbox=inbox, clock=clock))
    if token := tokens.get("discord"):
        from adapters.discord.adapter import Discord

        urls, has_content = (settings.discord_api_url, settings.discord_gateway_url), settings.discord.message_content
        adapters.append(Discord(token, *urls, inbox, clock, has_content))
    if has_terminal or not adapters:
        adapters.append(Terminal(home=settings.home, clock=clock, is_incognito=inbox.is_incognito))
    return adapters


def _locked(home: Path) -> contextlib.AbstractContextManager[object]:
    try:
        return FileLock(home / LOCK).acquire(timeout=0)
    except Timeout as error:
        raise ConfigError(texts.RUNS_ALREADY.format(home=home)) from error
