"""Handles failures: the sender gets a notice instead of an answer.

Events that would fail again at every start are set aside as dead letters.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import structlog

from core.agent.sessions import Turn
from core.agent.turn import Agent
from core.errors import DeliveryError, StoreError
from core.ports import Adapter, Reply
from core.store.mailbox import InboxEntry
from core.store.ownership.people import View
from core.types import Answer, Command, Inbound
from gateway.commands.registry import CommandContext, CommandRegistry, make_button_actions
from gateway.delivery import Delivery
from gateway.queues import Batch, ReplyState
from gateway.scheduler import Scheduler
from gateway.supervisor import contain_adapter_errors
from gateway.texts.catalog import load_texts

# A function that stores data for a turn and returns True.
StoringWork = Callable[[Turn], Awaitable[bool]]
_log = structlog.get_logger("failures")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSteps:
    """The methods of `gateway.turns.BatchRunner` that `Failures` calls."""

    begin: Callable[[Batch], Awaitable[bool]]
    retry_stale_reads: Callable[[Batch, StoringWork], Awaitable[bool | None]]


class Failures:
    """Reports failures to senders, and sets aside events that can't be handled.

    `error_replies` decides where people are notified of failed answers. See `config/default.toml`.
    """

    def __init__(
        self,
        agent: Agent,
        commands: CommandRegistry,
        delivery: Delivery,
        adapters: Mapping[str, Adapter],
        tasks: asyncio.TaskGroup,
        steps: BatchSteps,
        error_replies: Literal["everywhere", "direct", "never"] = "everywhere",
    ) -> None:
        self._agent = agent
        self._commands = commands
        self._delivery = delivery
        self._adapters = adapters
        self._tasks = tasks
        self._begin = steps.begin
        self._retry_stale_reads = steps.retry_stale_reads
        self._error_replies = error_replies

    async def apologize(self, batch: Batch, error: Exception) -> None:
        """Notify the senders of a batch that their turn failed, with an incident id for the log.

        Their messages are still stored. If that fails too, the inbox entries stay open for the next
        start. Raises `error` if the batch was already answered.
        """
        if batch.last.reply_state is ReplyState.ANSWERED:
            raise error
        address = batch.last.inbound.address
        incident = secrets.token_hex(4)
        _log.error("a turn failed", incident=incident, address=address.key, exc_info=error)
        is_kept = not self._delivery.inbox.is_incognito(address)
        is_scheduled = isinstance(self._adapters.get(address.platform), Scheduler)
        texts = load_texts(batch.last.inbound.language)
        text = texts.failure_notice(error, incident, is_kept=is_kept, is_scheduled=is_scheduled)
        is_sent = is_scheduled or self._reports_failures(batch.last.inbound)
        await self.answer_instead(batch, Answer(text=text), is_silent=not is_sent)

    def _reports_failures(self, inbound: Inbound) -> bool:
        """Return whether people in this chat are notified of failed answers.

        The settings decide this for messages. Failed commands are always reported.
        """
        if inbound.command is not None or inbound.is_interaction:
            return True
        if self._error_replies == "direct":
            return inbound.is_direct
        return self._error_replies == "everywhere"

    async def answer_instead(
        self, batch: Batch, answer: Answer, *, is_silent: bool = False
    ) -> None:
        """Send `answer` without running a turn, and store it together with the messages.

        If `is_silent`, only the messages are stored, and what was shown of the model's answer is
        deleted. Group messages that aren't addressed to Mneme are also only stored, and so is a
        scheduled question whose failure was already reported. If the store is unavailable, the
        answer is sent without being stored.
        """
        event = batch.last
        inbound = event.inbound
        is_sent = event.is_addressed and not is_silent
        scheduler = self._adapters.get(inbound.address.platform)
        if isinstance(scheduler, Scheduler):
            notice = await scheduler.record_failure(inbound.address, answer.text)
            is_sent = notice is not None
            answer = replace(answer, text=notice or answer.text)
        if inbound.heading:
            answer = replace(answer, text=f"{inbound.heading}\n\n{answer.text}")
        if not await self._begin(batch):
            return
        event.reply_state = ReplyState.ANSWERED

        async def store(turn: Turn) -> bool:
            await self._store_instead(turn, inbound, answer, is_sent=is_sent)
            return True

        try:
            is_stored = await self._retry_stale_reads(batch, store)
        except StoreError as error:
            _log.error("an answer cannot be stored", address=inbound.address.key, error=error)
            if is_sent:
                # The rows of buttons can't be stored either.
                answer = replace(answer, buttons=())
                await self._delivery.send_unstored(inbound, event.reply, answer, batch.outbox_item)
            return
        if is_stored and is_sent:
            await self._delivery.deliver(batch.outbox_item, event.reply, answer)
        else:
            await event.reply.abandon(is_withdrawn=bool(is_stored and is_silent))

    async def _store_instead(
        self, turn: Turn, inbound: Inbound, answer: Answer, *, is_sent: bool
    ) -> None:
        """Store the messages of a turn with the answer that replaces the model's answer."""
        if inbound.command is None and inbound.kind != "action":
            presser = inbound.account if inbound.is_direct else None
            now = self._agent.clock.now()
            actions = make_button_actions(answer.buttons, turn.scope, presser, now)
            await self._agent.store_notice(turn, answer if is_sent else None, actions)
            return
        text = "[a button]"
        if inbound.command is not None:
            text = self._commands.render_stored_text(inbound.command)
        session = await self._agent.sessions.ensure_session(turn)
        await self._agent.store_command(turn, session, text, answer)

    async def set_aside(self, entry: InboxEntry, error: Exception) -> None:
        """Mark an entry as a dead letter, because handling it would fail at every start.

        If `error` is a StoreError, it's raised again, and the entry stays in the inbox for the next
        start.
        """
        address = entry.inbound.address
        _log.error("an event failed", address=address.key, exc_info=error)
        if isinstance(error, StoreError):
            raise error
        reason = f"{type(error).__name__}: {error}"
        await self._delivery.inbox.close_as_dead_letter(entry.id, address.platform, reason)

    async def answer_unstored(
        self, command: Command, inbound: Inbound, reply: Reply, view: View
    ) -> None:
        """Answer a read-only command while nothing can be stored.

        The answer has no buttons, because their rows can't be stored. Raises StoreError if the
        store can't be read, either.
        """
        session = await self._agent.sessions.find_session(inbound.address, view.scope)
        context = CommandContext(
            inbound=inbound,
            scope=view.scope,
            scopes=view.scopes,
            session=session,
            is_owner=view.is_owner,
            epoch=view.epoch,
            zone=view.zone,
        )
        answer, _ = await self._commands.answer(command, context)
        answer = replace(answer, buttons=())
        self._tasks.create_task(self._delivery.send_unstored(inbound, reply, answer))

    def report_outage(self, inbound: Inbound, error: StoreError) -> None:
        """Tell a sender that the store is unavailable, without using the store.

        The notice uses a new reply, because the event's own reply is kept for its answer.
        """
        adapter = self._adapters.get(inbound.address.platform)
        if adapter is None:
            return
        # The reason is shown only in a direct chat.
        texts = load_texts(inbound.language)
        reason = f"{texts.word(error)} " if inbound.is_direct else ""
        answer = Answer(text=texts.OUTAGE.format(reason=reason))
        with contextlib.suppress(DeliveryError), contain_adapter_errors():
            reply = adapter.reply(inbound.address)
            self._tasks.create_task(self._delivery.send_unstored(inbound, reply, answer))
