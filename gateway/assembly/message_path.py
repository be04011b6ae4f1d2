"""Builds all parts that handle a message, from admission to delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from core.media.blocks import MediaBlocks
from core.media.leftovers import remove_orphaned_bytes
from core.ports import Adapter, Model
from core.store.ownership.people import EpochGuard
from core.types import Tool
from gateway.access_and_rates import Access
from gateway.assembly.agent import (
    PromptParts,
    build_agent,
    build_delegation_tool,
    build_prompt,
    build_prompt_parts,
    build_reviewer,
)
from gateway.assembly.commands import build_commands
from gateway.assembly.memory import Memory, build_memory
from gateway.assembly.models import Models, wrap_models
from gateway.assembly.tools import (
    build_reviewers,
    build_tool_runner,
    build_tools,
    record_tools,
)
from gateway.assembly.turns import build_delivery, build_turns, create_scheduler
from gateway.chats.admins import ChatAdmins
from gateway.process import MessagePath
from gateway.services import Services

# If other gateways share the home, younger files may belong to them.
LEFTOVER_LIFETIME_S = 24 * 3_600.0


async def build_message_path(
    services: Services,
    model: Model,
    helper: Model | None,
    platforms: Mapping[str, Adapter],
    tasks: asyncio.TaskGroup,
) -> MessagePath:
    """Build all parts that handle a message, and the scheduler.

    The caller must shut down the memory manager. `tasks` runs the turns, so it must be entered
    before the first event is served.
    """
    intake = services.create_intake(platforms)
    await _remove_leftovers(services)
    media = MediaBlocks(intake, services.settings.media)
    models = await wrap_models(services, model, helper, media)
    delivery_wakeup = asyncio.Event()
    memory = build_memory(services, models.helper, delivery_wakeup.set)
    admins = ChatAdmins(platforms)
    access = _build_access(services, memory, models, admins)

    parts = build_prompt_parts(services, models)
    reviewers = build_reviewers(services, memory, models.helper)
    tools = await build_tools(services, memory, models.helper, platforms, reviewers, parts)
    tools += _build_delegation(services, models, memory, tools, parts)
    prompt = build_prompt(services, models, memory.manager, tools, parts, media)
    tool_runner = build_tool_runner(services, tools, reviewers.gate, platforms)
    tools_since = await record_tools(services, tools) if models.has_model else None
    agent = build_agent(services, models, prompt, memory.manager, tool_runner, intake, tools_since)

    delivery = build_delivery(services, memory.manager, admins, delivery_wakeup)
    commands = build_commands(services, memory, agent, parts, delivery, platforms, tasks)
    scheduler = create_scheduler(services, access, delivery, platforms, has_model=models.has_model)
    adapters = {**platforms, scheduler.platform: scheduler}
    admission, turns = build_turns(services, agent, commands, delivery, access, adapters, tasks)
    return MessagePath(
        access=access,
        admission=admission,
        turns=turns,
        delivery=delivery,
        commands=commands,
        memory=memory.manager,
        scheduler=scheduler,
        reviewer=build_reviewer(services, models.helper),
        model_tally=getattr(helper, "tally", None),
        adapters=adapters,
        media=intake,
    )


async def _remove_leftovers(services: Services) -> None:
    """Delete the bytes of unrecorded files and the temporary copies of a killed process."""
    is_alone = services.membership is None
    lifetime_s = 0.0 if is_alone else LEFTOVER_LIFETIME_S
    await asyncio.to_thread(services.media_folder.remove_unfinished, lifetime_s)
    await remove_orphaned_bytes(services.unfinished_files, services.media_folder, lifetime_s)


def _build_access(services: Services, memory: Memory, models: Models, admins: ChatAdmins) -> Access:
    """Build the check of who gets answers. After an erasure, it empties the caches."""
    caches = (memory.manager, services.conversations, memory.recall, models.media)
    epoch_guard = EpochGuard(services.database, [cache.invalidate for cache in caches])
    return Access(services, epoch_guard, admins)


def _build_delegation(
    services: Services,
    models: Models,
    memory: Memory,
    tools: list[Tool],
    parts: PromptParts,
) -> list[Tool]:
    """Build the tool that delegates tasks, if there's a helper model and the settings allow it."""
    if models.helper is None or not services.settings.delegation.max_rounds:
        return []
    prompt = build_prompt(services, models, memory.manager, tools, parts)
    return [build_delegation_tool(services, models.helper, prompt, memory.manager, tools)]
