"""The composition root: the only module that creates all parts from concrete classes.

state.db is opened first and closed last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import time, timedelta
from functools import partial

from adapters.terminal.local import LocalTerminals
from config.settings import SOUL, Settings
from core.agent.compression import Compressor, ContextWindows, Flush, Summarizer
from core.agent.context_files import ContextFiles, OwnerFiles
from core.agent.delegation import TOOL_NAME as DELEGATE
from core.agent.delegation import Delegator
from core.agent.memory_review import MemoryReviewer
from core.agent.offline import OUT_OF_REACH, OfflineModel
from core.agent.prompt_and_memory import PromptSections, PromptWriter
from core.agent.sessions import Boundary, SessionTracker
from core.agent.tool_runner import ToolRunner
from core.agent.turn import Agent
from core.errors import ConfigError
from core.facts.evidence import EvidenceSearch
from core.facts.extraction import FactReader
from core.facts.provider import FactRanking, FactSearch, FactsProvider
from core.media.blocks import MediaBlocks
from core.media.tools import build_file_tools
from core.memory.manager import MemoryManager
from core.memory.provider import MemoryProvider, sync_hooks_of
from core.models.wrappers import FallbackModel, HelperModel, MeteredModel
from core.notes.curator import Curator
from core.notes.provider import NotesProvider
from core.notes.verdicts import Verifier
from core.ports import Adapter, ChannelSource, Model
from core.review.gate import Gate
from core.review.transcript import TranscriptReader
from core.review.wish_judge import WishJudge
from core.scheduling.tool import reminder_tool
from core.search.expansion import ExpandedRecall
from core.search.recall import HistoryProvider, load_word_lists
from core.search.tool import session_search
from core.skills.tools import HEADING as SKILLS_HEADING
from core.store.facts.rows import FactKind
from core.store.ownership.people import TERMINAL, EpochGuard
from core.store.reviews import MemoryReviews
from core.store.sqlite.opening import wait_until_unlocked
from core.store.sync import PLATFORM as MEMORY
from core.store.sync import SyncQueue
from core.text.normalize import language_data
from core.tools.switches import ToolSwitches
from core.types import Tool, ToolContext
from gateway.access_and_rates import Access, RateLimiter
from gateway.admission import Admission
from gateway.briefs import BriefWriter
from gateway.chats.admins import ChatAdmins
from gateway.chats.setup import SetupCommands
from gateway.chats.undelivered import UndeliveredNotices
from gateway.commands.agenda import AgendaCommands
from gateway.commands.approvals_and_links import AccountCommands
from gateway.commands.export import ExportCommands
from gateway.commands.facts import FactCommands
from gateway.commands.files import FileCommands
from gateway.commands.instructions import InstructionCommands
from gateway.commands.language import LanguageCommands
from gateway.commands.memory import MemoryCommands
from gateway.commands.menus.suggestions import Suggestions
from gateway.commands.models import ModelCommands, ToolCommands
from gateway.commands.privacy import ForgetCommands
from gateway.commands.recall import RecallCommands, WhyCommand
from gateway.commands.registry import CommandGroup, CommandRegistry
from gateway.commands.reminders import ReminderCommands
from gateway.commands.sessions import SessionCommands, notify_lost_incognito
from gateway.commands.skills import SkillCommands
from gateway.commands.status import StatusCommands, UsageCommands
from gateway.commands.time_settings import TimeCommands
from gateway.commands.undo import UndoCommands
from gateway.delivery import Delivery, DeliveryWords, ReplyFactory, create_memory_reply
from gateway.failures import BatchSteps, Failures
from gateway.media.thumbs import ThumbReader
from gateway.media.voice import VoiceCommands
from gateway.platforms import create_platforms
from gateway.process import (
    GatewayProcess,
    MessagePath,
    configure_malloc,
    print_notice,
    shorten_thread_pauses,
)
from gateway.queues import ConversationQueues
from gateway.receipts import ReceiptWriter
from gateway.scheduler import Scheduler
from gateway.services import (
    STATE_FILE,
    Services,
    create_model_client,
    is_owner,
    load_providers,
    lock_home,
)
from gateway.texts.catalog import SHELL as texts
from gateway.texts.catalog import load_offline_texts, word_sentence
from gateway.turns import BatchRunner, TurnDispatcher, TurnRunner
from gateway.web.access import WebCommands


async def run_gateway(settings: Settings, *, chat_only: bool, has_terminal: bool) -> str | None:
    """Run the gateway until a stop signal arrives or the input of all platforms ends.

    Returns a message to print at the end, or None. Raises StoreError if state.db can't be used.
    Raises ConfigError if another gateway uses this home, or if no platform can start with these
    settings.
    """
    configure_malloc()
    change_event = asyncio.Event()
    # Load the word lists of recall now. It takes tens of milliseconds, which would delay the first
    # answer.
    await asyncio.to_thread(load_word_lists)
    with lock_home(settings.home):
        if not settings.store.url:
            await wait_until_unlocked(
                settings.home / STATE_FILE, lambda: print_notice(texts.STORE_IS_LOCKED)
            )
        async with (
            Services.open(settings, change_event.set, notifies_owner=True) as services,
            AsyncExitStack() as stack,
        ):
            await services.claim_database()
            await _recover(services)
            tasks = asyncio.TaskGroup()
            platforms = create_platforms(services, chat_only=chat_only, has_terminal=has_terminal)
            await services.model_outages.load()
            model, helper = _create_models(services, stack)
            path = await build_message_path(services, model, helper, platforms, tasks)
            stack.push_async_callback(path.memory.shutdown)
            process = GatewayProcess(services, path, tasks, change_event, stack)
            shorten_thread_pauses()
            refusals = await process.run()
    if not chat_only and not settings.platform_tokens:
        return texts.CONNECT
    if refusals:
        raise ConfigError("\n".join(refusals))
    return None


async def _recover(services: Services) -> None:
    """Finish work that an earlier process or a restored backup left unfinished."""
    # Load the languages first, so that reminders and notices after a start use them.
    await services.languages.load()
    now = services.clock.now()
    await services.outbox.recover(now)
    await services.removals.cancel_unserved_deliveries(services.settings.access.people, now)
    await notify_lost_incognito(services)
    await services.notebook.settle_interrupted_writes()
    await services.skills.settle_interrupted_writes()
    await services.forgetting.resume()
    if services.restore_report:
        print_notice(services.restore_report)
        key = f"restored:{services.clock.now().isoformat()}"
        await services.owner_notices.notify(key, services.restore_report)


async def build_message_path(
    services: Services,
    model: Model,
    helper: Model | None,
    platforms: Mapping[str, Adapter],
    tasks: asyncio.TaskGroup,
) -> MessagePath:
    """Build everything that handles a message, and the scheduler.

    The caller must shut down the memory manager. `tasks` runs the turns, so it must be entered
    before the first event is served.
    """
    settings = services.settings
    intake = services.create_intake(platforms)
    await asyncio.to_thread(services.media_folder.remove_unfinished)
    media = MediaBlocks(intake, settings.media)
    chat_model = _wrap_model(services, model, media)
    helper_model = await _build_helper(services, helper, media)
    # Only a client of a server can fetch window sizes. `getattr` recognizes such a client without
    # an import of its class, which would load 40 MB even without a model.
    windows = ContextWindows(settings.model, getattr(helper, "fetch_window_tokens", None))
    evidence = EvidenceSearch(services.conversations)
    delivery_wakeup = asyncio.Event()
    recall = ExpandedRecall(
        services.recall,
        services.conversations,
        helper_model,
        settings.model.helper,
        services.clock,
        services.zone,
        settings.recall.expand,
        settings.recall.rerank,
    )
    memory = _build_memory(services, helper_model, evidence, recall, delivery_wakeup.set)
    caches = (memory, services.conversations, recall, media)
    epoch_guard = EpochGuard(services.database, [cache.invalidate for cache in caches])
    access = Access(services, epoch_guard)
    context_files = ContextFiles(
        settings.home,
        settings.context,
        settings.chats,
        services.notebook,
        services.owner_notices.warn_about_file,
    )
    skills = SkillCommands(services, context_files.read_rule)
    transcripts = TranscriptReader(
        services.conversations,
        _list_foreign_headings(memory),
        services.mcp.list_descriptions if services.mcp is not None else tuple,
    )
    reminders = ReminderCommands(services)
    judge = None
    if helper_model is not None:
        judge = WishJudge(helper_model, settings.model.helper)
    core_tools = [
        session_search(recall, settings.general.zone),
        reminder_tool(
            services.appointments,
            transcripts,
            evidence,
            services.notebook.review,
            reminders.ask,
            judge,
        ),
        *skills.tools.tools,
        *build_file_tools(services.files),
        *_build_outside_tools(services, helper_model),
        *_build_channel_tools(services, platforms),
    ]
    reserved_names = [DELEGATE, *(tool.name for tool in core_tools)]
    tools = [*await memory.tools(reserved_names), *core_tools]
    if services.mcp is not None:
        tools += await services.mcp.load_tools([DELEGATE, *(tool.name for tool in tools)])
    gate = Gate(transcripts, services.notebook.review, evidence.explain_untyped, judge)
    if helper_model is not None and settings.delegation.max_rounds:
        task_prompt = _build_prompt(services, memory, tools, windows, context_files, skills)
        tools.append(_build_delegation_tool(services, helper_model, task_prompt, memory, tools))
    prompt = _build_prompt(services, memory, tools, windows, context_files, skills, media)
    terminals = platforms.get(TERMINAL.platform)
    show_tools = terminals.show_tools if isinstance(terminals, LocalTerminals) else None
    tool_runner = ToolRunner(
        tools,
        settings.model.tool_timeout_s,
        gate,
        show_tools,
        ToolSwitches(services.load_preference).check,
        word_sentence,
        services.conversations.load_stopped_outcome,
    )
    agent = replace(
        _build_agent(services, chat_model, helper_model, windows, prompt, memory, tool_runner),
        media=intake,
        add_receipts=ReceiptWriter(services, isinstance(model, OfflineModel)).add,
    )
    admins = ChatAdmins(platforms)
    is_expanded = settings.recall.expand or settings.recall.rerank
    groups: list[CommandGroup] = [
        SessionCommands(services, agent.sessions, agent.compressor),
        ModelCommands(services),
        ToolCommands(services, tools),
        UndoCommands(services, agent.sessions),
        RecallCommands(recall if is_expanded else services.recall, recall, services.zone),
        WhyCommand(services.conversations),
        FactCommands(services),
        MemoryCommands(services, tool_runner),
        InstructionCommands(services, context_files),
        ForgetCommands(services, admins),
        reminders,
        TimeCommands(services),
        LanguageCommands(services, admins),
        SetupCommands(services, admins),
        AgendaCommands(services),
        AccountCommands(services),
        StatusCommands(services, memory),
        ExportCommands(services),
        FileCommands(services),
        UsageCommands(services),
        WebCommands(services),
        skills,
        Suggestions(services),
    ]
    # Without a model, rules answer messages about reminders.
    talk = reminders.talk if isinstance(model, OfflineModel) else None
    delivery = _build_delivery(services, memory, delivery_wakeup)
    thumbs = ThumbReader(services, delivery.wake)
    voice = VoiceCommands(services, tasks, delivery.wake)
    commands = CommandRegistry(
        [*groups, voice],
        services.actions,
        services.clock,
        skills.is_skill_call,
        talk,
        thumbs,
        voice if services.speaker is not None else None,
    )
    has_model = not isinstance(model, OfflineModel)
    scheduler = _create_scheduler(services, access, delivery, platforms, has_model=has_model)
    adapters = {**platforms, scheduler.platform: scheduler}
    admission, turns = _build_turns(services, agent, commands, delivery, access, adapters, tasks)
    return MessagePath(
        access=access,
        admission=admission,
        turns=turns,
        delivery=delivery,
        commands=commands,
        memory=memory,
        scheduler=scheduler,
        reviewer=_build_reviewer(services, helper_model),
        model_tally=getattr(helper, "tally", None),
        adapters=adapters,
    )


def _build_outside_tools(services: Services, helper: Model | None) -> list[Tool]:
    """Build the web and calendar tools that the settings switch on.

    The `helper` model may search the web for them.
    """
    tools = []
    if services.web is not None:
        if helper is not None:
            services.web.ask_model = partial(
                helper.complete, on_text=lambda _: None, on_wait=lambda _: None
            )
        tools = services.web.list_tools()
    if services.calendars is not None:
        from core.tools.agenda import calendar_tool

        async def find_zone(context: ToolContext) -> str:
            return await services.appointments.zone_of(context.asker)

        tools.append(
            calendar_tool(services.calendars, find_zone, partial(is_owner, services.people))
        )
    return tools


def _build_channel_tools(services: Services, platforms: Mapping[str, Adapter]) -> list[Tool]:
    """Build the tool that reads posts, for each platform that lets bots read channels."""
    tools = []
    for name, adapter in platforms.items():
        if isinstance(adapter, ChannelSource) and adapter.can_read_channels:
            from core.tools.channel import channel_tool

            async def find_zone(context: ToolContext) -> str:
                return await services.appointments.zone_of(context.asker)

            rules = services.chat_rules
            stores_all = services.settings.room.listen
            tools.append(channel_tool(name, adapter, rules, find_zone, stores_all=stores_all))
    return tools


async def _build_helper(
    services: Services, helper: Model | None, media: MediaBlocks
) -> MeteredModel | None:
    """Return the helper model, or None if no helper is configured."""
    if helper is None:
        return None
    options = services.settings.model
    await services.helper_choices.load()
    helper_model = HelperModel(helper, options, services.helper_choices, services.clock)
    return _wrap_model(services, helper_model, media)


def _build_reviewer(services: Services, helper: Model | None) -> MemoryReviewer | None:
    """Build the background review of memory.

    Returns None if there's no helper model or reviews are switched off.
    """
    turns = services.settings.memory.review_turns
    if helper is None or not turns:
        return None
    return MemoryReviewer(
        MemoryReviews(services.database),
        services.people,
        services.conversations,
        services.notebook,
        services.facts,
        services.skills,
        services.clock,
        turns,
        helper,
        services.settings.model.helper,
        services.owner_notices.notify_review,
    )


def _wrap_model(services: Services, model: Model, media: MediaBlocks) -> MeteredModel:
    """Wrap a model so that its usage is logged and limited, and pictures are added to requests."""
    return MeteredModel(
        model,
        services.usage_log,
        services.clock,
        services.settings.model.cache,
        media.fill,
        media.collect_descriptions,
    )


def _build_memory(
    services: Services,
    helper: Model | None,
    evidence: EvidenceSearch,
    recall: ExpandedRecall,
    wake_delivery: Callable[[], None],
) -> MemoryManager:
    """Build the built-in memories and the memory services that the settings switch on.

    If a service can't be loaded, a warning is logged and the others are still used.
    """
    settings = services.settings
    clock = services.clock
    helper_name = settings.model.helper
    curator = Curator(
        services.notebook,
        services.notes,
        services.facts,
        clock,
        services.zone,
        helper,
        helper_name,
    )
    builtins: list[MemoryProvider] = [
        NotesProvider(
            services.notebook, evidence, curator, _build_verifier(services, helper, evidence)
        ),
        HistoryProvider(
            services.recall,
            settings.general.zone,
            recall if helper is not None and settings.recall.background else None,
        ),
    ]
    if settings.memory.facts:
        review = services.notebook.review
        reader = FactReader(
            services.facts,
            review,
            clock,
            services.zone,
            helper,
            helper_name,
            services.owner_notices.notify_closing,
        )
        search = FactSearch(services.facts, _create_fact_ranking(settings), services.zone)
        builtins.append(FactsProvider(services.facts, search, reader, evidence))

    externals, problems = load_providers(settings)
    queue = SyncQueue(
        services.database,
        clock,
        wake_delivery,
        {provider.name: sync_hooks_of(provider) for provider in externals},
        {provider.name: provider.every_turns for provider in externals},
    )
    memory = MemoryManager(
        builtins,
        clock,
        settings.memory.prefetch_timeout_s,
        queue,
        externals,
        settings.home,
        services.owner_notices.notify_memory_problem,
    )
    for problem in problems.values():
        memory.warn(problem)
    return memory


def _build_verifier(
    services: Services, helper: Model | None, evidence: EvidenceSearch
) -> Verifier | None:
    """Build the check of proposed notes by the helper model. Return None without a helper."""
    if helper is None:
        return None
    return Verifier(
        services.notebook,
        services.notes,
        evidence,
        helper,
        services.settings.model.helper,
        ReceiptWriter(services).show_verdict,
    )


def _create_fact_ranking(settings: Settings) -> FactRanking:
    """Build the ranking of facts from settings such as `memory.project_half_life_days`."""
    kinds: tuple[FactKind, ...] = ("project", "episode", "working")
    half_lives = {kind: getattr(settings.memory, f"{kind}_half_life_days") for kind in kinds}
    return FactRanking(hrr=settings.facts.hrr_weight, half_life_days=half_lives)


def _build_prompt(
    services: Services,
    memory: MemoryManager,
    tools: Sequence[Tool],
    windows: ContextWindows,
    context_files: ContextFiles,
    skills: SkillCommands,
    media: MediaBlocks | None = None,
) -> PromptWriter:
    """Build the prompt writer from the owner's context files, the skills, memory and tools."""
    settings = services.settings
    has_folders = len(context_files.folders) > 1
    sections = PromptSections(
        skill_frames=skills.turns.render_frames,
        skill_cue=skills.turns.cue,
        instructions=context_files.render_instructions,
        skills=skills.tools.prompt_section,
        context_files=context_files.render_files,
        rule_frames=context_files.render_rule_frames if has_folders else None,
        media_blocks=None if media is None else media.render,
    )
    return PromptWriter(
        OwnerFiles(settings.home, services.owner_notices.warn_about_file),
        SOUL.read_text(encoding="utf-8"),
        settings.general.zone,
        memory,
        settings.memory.prefetch_chars,
        tools,
        sections,
        windows.max_message_tokens,
    )


def _build_delegation_tool(
    services: Services,
    helper: Model,
    prompt: PromptWriter,
    memory: MemoryManager,
    tools: Sequence[Tool],
) -> Tool:
    """Build the tool that lets the model delegate a task to a separate session."""
    settings = services.settings
    delegator = Delegator(
        helper,
        services.conversations,
        prompt,
        memory,
        tools,
        services.clock,
        settings.model,
        settings.delegation,
    )
    return delegator.tool()


def _list_foreign_headings(memory: MemoryManager) -> list[str]:
    """Return the headings in the system prompt whose sections may contain text by other people."""
    files_heading = language_data("prompts", "core.agent")["files"].strip().splitlines()[0]
    return [files_heading, SKILLS_HEADING, *(f"## {name.upper()}\n" for name in memory.externals)]


def _build_agent(
    services: Services,
    chat_model: MeteredModel,
    helper: Model | None,
    windows: ContextWindows,
    prompt: PromptWriter,
    memory: MemoryManager,
    tool_runner: ToolRunner,
) -> Agent:
    """Build the agent with its session manager and compression."""
    settings = services.settings
    clock = services.clock
    conversations = services.conversations
    daily_at = settings.sessions.daily_at
    boundary = Boundary(
        idle=timedelta(hours=settings.sessions.idle_hours),
        daily_at=time.fromisoformat(daily_at) if daily_at else None,
        zone=services.zone,
    )
    flush = Flush(chat_model, tool_runner, settings.model, clock)
    sessions = SessionTracker(
        conversations, prompt, memory, clock, settings.model, helper, boundary, flush.run
    )
    compressor = Compressor(
        conversations,
        sessions,
        memory,
        flush,
        Summarizer(helper, settings.model.helper, windows, clock, services.zone),
        windows,
        settings.compression.threshold,
        services.files,
    )
    return Agent(
        chat_model,
        conversations,
        compressor,
        prompt,
        tool_runner,
        clock,
        settings.model,
    )


def _build_delivery(services: Services, memory: MemoryManager, wakeup: asyncio.Event) -> Delivery:
    """Build the `Delivery` that sends answers to platforms and turns to memory services."""
    replies: dict[str, ReplyFactory] = {}
    if memory.externals:
        replies[MEMORY] = lambda address, reply_to: create_memory_reply(memory)

    return Delivery(
        services.inbox,
        services.outbox,
        services.clock,
        replies,
        wakeup=wakeup,
        on_undelivered=UndeliveredNotices(services, memory.report_abandoned_task).tell,
        words=DeliveryWords(
            find_texts=services.languages.of_address,
            late_after_s=services.settings.cron.late_after_s,
        ),
    )


def _build_turns(
    services: Services,
    agent: Agent,
    commands: CommandRegistry,
    delivery: Delivery,
    access: Access,
    adapters: Mapping[str, Adapter],
    tasks: asyncio.TaskGroup,
) -> tuple[Admission, TurnDispatcher]:
    """Build `Turns` and `Admission`, which answer events and admit them."""
    model = agent.model
    rates = RateLimiter(
        services.settings.limits, services.clock, model.check_limits, is_free=model.is_free
    )
    options = services.settings.turn
    queues = ConversationQueues(
        rates.acquire_turn,
        services.inbox.is_incognito,
        options.gather_s,
        options.while_answering,
    )
    batches = BatchRunner(access, queues, delivery, adapters)
    steps = BatchSteps(begin=batches.begin, retry_stale_reads=batches.retry_stale_reads)
    failures = Failures(agent, commands, delivery, adapters, tasks, steps, options.error_replies)
    runner = TurnRunner(agent, commands, delivery, queues, batches, failures, rates)
    turns = TurnDispatcher(runner, queues, batches, failures, agent.sessions, services.inbox, tasks)
    admission = Admission(access, commands, delivery, turns, failures, rates, services.clock)
    return admission, turns


def _create_models(services: Services, stack: AsyncExitStack) -> tuple[Model, Model | None]:
    """Create the chat model, and the helper model for titles, summaries and searches.

    Without a configured model, the chat model is `OfflineModel`, which answers from the history,
    and the helper is None.
    """
    zone = services.settings.general.zone
    on_retired = partial(services.owner_notices.notify_retired_model, services.settings.model)
    client = create_model_client(
        services.settings, services.clock, services.model_limits, on_retired
    )
    if client is None:
        return OfflineModel(zone, load_texts=load_offline_texts), None
    stack.push_async_callback(client.close)
    fallback = OfflineModel(zone, OUT_OF_REACH, load_offline_texts)
    names = services.settings.model.chat_models
    model = FallbackModel(
        client, fallback, services.clock, names, services.model_outages, word_sentence
    )
    return model, client


def _create_scheduler(
    services: Services,
    access: Access,
    delivery: Delivery,
    platforms: Mapping[str, Adapter],
    *,
    has_model: bool,
) -> Scheduler:
    """Create the scheduler, which delivers to the given platforms."""
    return Scheduler(
        jobs=services.jobs,
        outbox=services.outbox,
        clock=services.clock,
        open_reply=lambda address: platforms[address.platform].reply(address),
        late_after_s=services.settings.cron.late_after_s,
        on_wake=delivery.wake,
        load_view=access.load_job_view,
        on_pause=services.owner_notices.notify_paused_job,
        find_quiet_end=services.find_quiet_end,
        write_brief=BriefWriter(services).write,
        has_model=has_model,
        languages=services.languages,
    )
