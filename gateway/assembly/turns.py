"""Builds the parts that admit events, run turns, deliver answers and keep appointments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from core.agent.turn import Agent
from core.memory.manager import MemoryManager
from core.ports import Adapter
from core.store.sync import PLATFORM as MEMORY
from gateway.access_and_rates import Access, RateLimiter
from gateway.admission import Admission
from gateway.answers.edits import Edits
from gateway.briefs import BriefWriter
from gateway.chats.admins import ChatAdmins
from gateway.chats.undelivered import UndeliveredNotices
from gateway.commands.registry import CommandRegistry
from gateway.delivery import Delivery, DeliveryWords, ReplyFactory, create_memory_reply
from gateway.failures import BatchSteps, Failures
from gateway.media.command_files import list_job_files
from gateway.queues import ConversationQueues
from gateway.scheduler import Scheduler
from gateway.services import Services
from gateway.turns import BatchRunner, TurnDispatcher, TurnRunner


def build_delivery(
    services: Services, memory: MemoryManager, admins: ChatAdmins, wakeup: asyncio.Event
) -> Delivery:
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
        prepare_notice=UndeliveredNotices(services, admins, memory.report_abandoned_task).prepare,
        words=DeliveryWords(
            find_texts=services.languages.of_address,
            late_after_s=services.settings.cron.late_after_s,
        ),
    )


def build_turns(
    services: Services,
    agent: Agent,
    commands: CommandRegistry,
    delivery: Delivery,
    access: Access,
    adapters: Mapping[str, Adapter],
    tasks: asyncio.TaskGroup,
) -> tuple[Admission, TurnDispatcher]:
    """Build `TurnDispatcher` and `Admission`, which answer events and admit them."""
    model = agent.model
    rates = RateLimiter(
        services.settings.limits,
        services.clock,
        services.usage_log,
        model.check_limits,
        is_free=model.is_free,
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
    edits = Edits(agent, commands, queues, delivery, batches.withdraw)
    turns = TurnDispatcher(runner, queues, batches, failures, agent.sessions, edits, tasks)
    admission = Admission(access, commands, delivery, turns, failures, rates, services.clock)
    return admission, turns


def create_scheduler(
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
        list_files=partial(list_job_files, services.files),
        write_brief=BriefWriter(services).write,
        has_model=has_model,
        languages=services.languages,
    )
