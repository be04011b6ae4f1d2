"""Builds the tools of the model, the approval gate, and the runner that calls the tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from adapters.terminal.local import LocalTerminals
from core.agent.delegation import TOOL_NAME as DELEGATE
from core.agent.tool_runner import ToolRunner
from core.media.tools import build_file_tools
from core.memory.manager import MemoryManager
from core.ports import Adapter, ChannelSource, Model
from core.review.carried_out import LinkChoices
from core.review.gate import Gate
from core.review.transcript import TranscriptReader
from core.review.wish_judge import WishJudge
from core.scheduling.tool import reminder_tool
from core.search.tool import session_search
from core.skills.tools import HEADING as SKILLS_HEADING
from core.store.ownership.people import TERMINAL
from core.store.tool_calls import record_tool_set
from core.text.normalize import language_data
from core.tools.switches import ToolSwitches
from core.types import Tool, ToolContext
from gateway.assembly.agent import PromptParts
from gateway.assembly.memory import Memory
from gateway.services import Services, is_owner
from gateway.texts.catalog import word_sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewers:
    """Decides whether a call of a tool must wait for a "yes"."""

    transcripts: TranscriptReader
    # Asks the helper model whether the person wanted the call. None without a helper model.
    judge: WishJudge | None
    gate: Gate


def build_reviewers(services: Services, memory: Memory, helper: Model | None) -> Reviewers:
    """Build the gate and the parts that it uses."""
    transcripts = TranscriptReader(
        services.conversations,
        _list_foreign_headings(memory.manager),
        services.mcp.list_descriptions if services.mcp is not None else tuple,
    )
    judge = None
    if helper is not None:
        judge = WishJudge(helper, services.settings.model.helper)
    gate = Gate(
        transcripts,
        services.notebook.review,
        memory.evidence.explain_untyped,
        LinkChoices(services.database),
        judge,
    )
    return Reviewers(transcripts=transcripts, judge=judge, gate=gate)


async def build_tools(
    services: Services,
    memory: Memory,
    helper: Model | None,
    platforms: Mapping[str, Adapter],
    reviewers: Reviewers,
    parts: PromptParts,
) -> list[Tool]:
    """Build the tools of memory, of the core and of MCP servers, in this order.

    Raises ConfigError if two tools have the same name.
    """
    core_tools = [
        session_search(memory.recall, services.settings.general.zone),
        reminder_tool(
            services.appointments,
            reviewers.transcripts,
            memory.evidence,
            services.notebook.review,
            parts.reminders.ask,
            reviewers.judge,
        ),
        *parts.skills.tools.tools,
        *build_file_tools(services.files),
        *_build_outside_tools(services, helper),
        *_build_channel_tools(services, platforms),
    ]
    reserved_names = [DELEGATE, *(tool.name for tool in core_tools)]
    tools = [*await memory.manager.tools(reserved_names), *core_tools]
    if services.mcp is not None:
        tools += await services.mcp.load_tools([DELEGATE, *(tool.name for tool in tools)])
    return tools


async def record_tools(services: Services, tools: Sequence[Tool]) -> datetime | None:
    """Record the tools that sessions have from now on, and return when they replaced others.

    Tools that only groups of one platform have don't count, because several gateways with one
    database may serve different platforms. The engines count, because a session keeps them, too.
    """
    definitions = [
        (tool.name, tool.description, tool.schema) for tool in tools if not tool.group_platform
    ]
    options = services.settings.web_tools
    engines = [options.search, options.fetch_with]
    text = json.dumps([definitions, engines], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return await record_tool_set(services.database, digest, services.clock.now())


def build_tool_runner(
    services: Services, tools: Sequence[Tool], gate: Gate, platforms: Mapping[str, Adapter]
) -> ToolRunner:
    """Build the runner, which shows the running tools in local terminals."""
    terminals = platforms.get(TERMINAL.platform)
    show_tools = terminals.show_tools if isinstance(terminals, LocalTerminals) else None
    return ToolRunner(
        tools,
        services.settings.model.tool_timeout_s,
        gate,
        show_tools,
        ToolSwitches(services.load_preference).check,
        word_sentence,
        services.conversations.load_stopped_outcome,
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


def _list_foreign_headings(memory: MemoryManager) -> list[str]:
    """Return the headings in the system prompt whose sections may contain text by other people."""
    files_heading = language_data("prompts", "core.agent")["files"].strip().splitlines()[0]
    return [files_heading, SKILLS_HEADING, *(f"## {name.upper()}\n" for name in memory.externals)]
