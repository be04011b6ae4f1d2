"""Builds the agent with its prompt, sessions and compression, and the background review."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from config.settings import SOUL
from core.agent.compression import Compressor, Flush, Summarizer
from core.agent.context_files import ContextFiles, OwnerFiles
from core.agent.delegation import Delegator
from core.agent.memory_review import MemoryReviewer
from core.agent.prompt import PromptSections, PromptWriter
from core.agent.sessions import Boundary, SessionTracker
from core.agent.tool_runner import ToolRunner
from core.agent.turn import Agent
from core.media.blocks import MediaBlocks
from core.media.intake import MediaIntake
from core.memory.manager import MemoryManager
from core.ports import Model
from core.store.reviews import MemoryReviews
from core.types import Tool
from gateway.assembly.models import Models
from gateway.commands.registry import ReminderTalk
from gateway.commands.reminders import ReminderCommands
from gateway.commands.skills import SkillCommands
from gateway.receipts import ReceiptWriter
from gateway.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptParts:
    """Instructions, skills and reminders, which are in the prompt and also have commands."""

    context_files: ContextFiles
    skills: SkillCommands
    reminders: ReminderCommands
    # Rules that answer messages about reminders. None if a model answers them.
    talk: ReminderTalk | None


def build_prompt_parts(services: Services, models: Models) -> PromptParts:
    """Build the parts of the prompt that also have commands."""
    settings = services.settings
    context_files = ContextFiles(
        settings.home,
        settings.context,
        settings.chats,
        services.notebook,
        services.owner_notices.warn_about_file,
    )
    reminders = ReminderCommands(services)
    return PromptParts(
        context_files=context_files,
        skills=SkillCommands(services, context_files.read_rule),
        reminders=reminders,
        talk=None if models.has_model else reminders.talk,
    )


def build_prompt(
    services: Services,
    models: Models,
    memory: MemoryManager,
    tools: Sequence[Tool],
    parts: PromptParts,
    media: MediaBlocks | None = None,
) -> PromptWriter:
    """Build the prompt writer from the owner's context files, the skills, memory and tools."""
    settings = services.settings
    context_files, skills = parts.context_files, parts.skills
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
        models.windows.max_message_tokens,
    )


def build_delegation_tool(
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


def build_agent(
    services: Services,
    models: Models,
    prompt: PromptWriter,
    memory: MemoryManager,
    tool_runner: ToolRunner,
    intake: MediaIntake,
    tools_since: datetime | None,
) -> Agent:
    """Build the agent with its session manager and compression.

    `tools_since` is the time at which the tools replaced others (`SessionTracker`).
    """
    settings = services.settings
    flush = Flush(models.chat, tool_runner, settings.model, services.clock)
    sessions = SessionTracker(
        services.conversations,
        prompt,
        memory,
        services.clock,
        settings.model,
        models.helper,
        _build_boundary(services),
        flush.run,
        tools_since,
    )
    return Agent(
        models.chat,
        services.conversations,
        _build_compressor(services, models, memory, sessions, flush),
        prompt,
        tool_runner,
        services.clock,
        settings.model,
        media=intake,
        add_receipts=ReceiptWriter(services, is_offline=not models.has_model).add,
    )


def _build_boundary(services: Services) -> Boundary:
    """Build the rule that decides when a session ends. The settings determine it."""
    settings = services.settings.sessions
    return Boundary(
        idle=timedelta(hours=settings.idle_hours),
        daily_at=time.fromisoformat(settings.daily_at) if settings.daily_at else None,
        zone=services.zone,
    )


def _build_compressor(
    services: Services,
    models: Models,
    memory: MemoryManager,
    sessions: SessionTracker,
    flush: Flush,
) -> Compressor:
    """Build the compression of long sessions."""
    settings = services.settings
    summarizer = Summarizer(
        models.helper, settings.model.helper, models.windows, services.clock, services.zone
    )
    return Compressor(
        services.conversations,
        sessions,
        memory,
        flush,
        summarizer,
        models.windows,
        settings.compression.threshold,
        services.files,
    )


def build_reviewer(services: Services, helper: Model | None) -> MemoryReviewer | None:
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
