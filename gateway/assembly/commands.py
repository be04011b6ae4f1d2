"""Builds the registry of all commands."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from core.agent.turn import Agent
from core.ports import Adapter
from gateway.assembly.agent import PromptParts
from gateway.assembly.memory import Memory
from gateway.chats.admins import ChatAdmins
from gateway.chats.setup import SetupCommands
from gateway.commands.agenda import AgendaCommands
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
from gateway.commands.sessions import SessionCommands
from gateway.commands.status import StatusCommands, UsageCommands
from gateway.commands.stranger_approvals_and_links import AccountCommands
from gateway.commands.time_settings import TimeCommands
from gateway.commands.undo import UndoCommands
from gateway.delivery import Delivery
from gateway.media.thumbs import ThumbReader
from gateway.media.voice import VoiceCommands
from gateway.services import Services
from gateway.web.access import WebCommands


def build_commands(
    services: Services,
    memory: Memory,
    agent: Agent,
    parts: PromptParts,
    delivery: Delivery,
    platforms: Mapping[str, Adapter],
    tasks: asyncio.TaskGroup,
) -> CommandRegistry:
    """Build the registry of all commands. The help lists them in the order of these groups.

    `tasks` runs the speech of answers.
    """
    admins = ChatAdmins(platforms)
    voice = VoiceCommands(services, tasks, delivery.wake)
    groups = [
        *_build_conversation_commands(services, agent, memory),
        *_build_memory_commands(services, agent, parts, admins),
        parts.reminders,
        *_build_settings_commands(services, memory, admins),
        parts.skills,
        Suggestions(services),
        voice,
    ]
    return CommandRegistry(
        groups,
        services.actions,
        services.clock,
        parts.skills.is_skill_call,
        parts.talk,
        ThumbReader(services, delivery.wake),
        voice if services.speaker is not None else None,
    )


def _build_conversation_commands(
    services: Services, agent: Agent, memory: Memory
) -> list[CommandGroup]:
    """Build the commands of sessions, models, tools and recall."""
    options = services.settings.recall
    recall = memory.recall if options.expand or options.rerank else services.recall
    recall_commands = RecallCommands(services, recall, memory.recall)
    return [
        SessionCommands(services, agent.sessions, agent.compressor, recall_commands),
        ModelCommands(services),
        ToolCommands(services, agent.tool_runner.tools.values()),
        UndoCommands(services, agent.sessions, agent.media),
        recall_commands,
        WhyCommand(services),
    ]


def _build_memory_commands(
    services: Services, agent: Agent, parts: PromptParts, admins: ChatAdmins
) -> list[CommandGroup]:
    """Build the commands of facts, notes, instructions and erasures."""
    return [
        FactCommands(services),
        MemoryCommands(services, agent.tool_runner),
        InstructionCommands(services, parts.context_files),
        ForgetCommands(services, admins),
    ]


def _build_settings_commands(
    services: Services, memory: Memory, admins: ChatAdmins
) -> list[CommandGroup]:
    """Build the commands of people and chats, of the process, and of exported data."""
    return [
        TimeCommands(services),
        LanguageCommands(services, admins),
        SetupCommands(services, admins),
        AgendaCommands(services),
        AccountCommands(services),
        StatusCommands(services, memory.manager),
        ExportCommands(services),
        FileCommands(services),
        UsageCommands(services),
        WebCommands(services),
    ]
