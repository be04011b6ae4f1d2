"""Answers admitted events: runs commands, and lets the model answer messages.

Each event has its own task, which waits in the queue of the event's address. In its turn, it
answers the whole batch at the head of the queue, unless another task has already answered it.

If something is erased or a sender loses access, an answer in progress may be based on data that it
may no longer use. Such an answer is discarded, and the rest of the batch is answered again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from core.agent.prompt import with_attachments
from core.agent.sessions import SessionTracker, Turn
from core.agent.turn import Agent, AnsweredTurn
from core.errors import StaleReadError, StoreError
from core.ports import Adapter
from core.store.actions import ButtonAction
from core.types import Answer, Button, Command, Inbound, Session
from gateway.access_and_rates import CRON, MAX_TURNS_IN_A_ROW, Access, RateLimiter
from gateway.answers.edits import EditEffect, Edits, explain_edit, find_effect
from gateway.answers.notices import (
    add_notices,
    append_unseen,
    describe_files,
    describe_speech,
)
from gateway.commands.registry import (
    CommandContext,
    CommandRegistry,
    assign_button_ids,
    make_button,
)
from gateway.delivery import Delivery, FullAnswer
from gateway.failures import Failures
from gateway.media.command_files import run_with_files
from gateway.media.spoken_answers import answer_spoken_yes
from gateway.queues import (
    Batch,
    ConversationQueues,
    EventKind,
    EventState,
    PendingEvent,
    ReplyState,
    find_edited_id,
)
from gateway.texts.catalog import load_texts

T = TypeVar("T")
_log = structlog.get_logger("turns")


class TurnDispatcher:
    """Answers admitted events in the order of their queues, and tracks the unanswered ones."""

    def __init__(
        self,
        runner: TurnRunner,
        queues: ConversationQueues,
        batches: BatchRunner,
        failures: Failures,
        sessions: SessionTracker,
        edits: Edits,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._runner = runner
        self._queues = queues
        self._batches = batches
        self._failures = failures
        self._sessions = sessions
        self.edits = edits
        # Owns the serving tasks, so that they survive when a platform stops listening.
        self._tasks = tasks
        # Events that were admitted but aren't served yet, by the id of their inbox entry.
        self._admitted: dict[int, PendingEvent] = {}
        self._serving: dict[asyncio.Task[None], PendingEvent] = {}
        # Served events whose answer isn't delivered yet.
        self._unanswered: set[PendingEvent] = set()
        # When the last answer was delivered, on the event loop's clock.
        self._answered_at = 0.0
        # Grows whenever someone may have lost access.
        self.access_version = 0

    def enqueue(self, event: PendingEvent) -> None:
        """Queue an admitted event. It's answered after `serve` is called with its entry id."""
        self._admitted[event.entry.id] = event
        if event.kind is not EventKind.IMMEDIATE:
            self._queues.add(event)

    def serve(self, entry_id: int) -> Awaitable[None]:
        """Start a task that answers an admitted event. See `core.ports.InboundSink`.

        The caller may await the result. Cancelling the caller doesn't cancel the task.
        """
        event = self._admitted.pop(entry_id)
        if event.is_addressed:
            self._unanswered.add(event)
        task = self._tasks.create_task(self._serve(event))
        self._serving[task] = event
        task.add_done_callback(self._serving.pop)
        return asyncio.shield(task)

    async def _serve(self, event: PendingEvent) -> None:
        """Wait for the event's turn, answer it, and then update its session and the memory."""
        try:
            # Await nothing before this line. Otherwise tasks could enter the queue in another order
            # than the order of the calls of `serve`.
            answered_turn = await self._answer_in_turn(event)
            self._mark_answered(event)
            if answered_turn is not None:
                # If data was erased meanwhile, the next turn also finishes this turn.
                with contextlib.suppress(StaleReadError):
                    await self._sessions.finish_turn(
                        answered_turn.turn, answered_turn.session, answered_turn.rows
                    )
        except Exception as error:
            # `set_aside` doesn't change the entry if the event was already answered.
            with contextlib.suppress(StoreError):
                await self._failures.set_aside(event.entry, error)
        self._mark_answered(event)

    async def _answer_in_turn(self, event: PendingEvent) -> AnsweredTurn | None:
        """Wait for the event's turn in the queue, and answer its batch.

        Returns the model's turn, or None if the model didn't answer.
        """
        if event.kind is EventKind.IMMEDIATE:
            return await self._runner.answer(Batch([event]))
        async with self._queues.wait_for_turn(event) as batch:
            return await self._runner.answer(batch)

    def _mark_answered(self, event: PendingEvent) -> None:
        """Remove an event from the unanswered ones, and record the time for `drain`."""
        if event in self._unanswered:
            self._unanswered.remove(event)
            self._answered_at = asyncio.get_running_loop().time()

    @property
    def unanswered_count(self) -> int:
        """Return how many events have an answer that is being written or delivered."""
        return len(self._unanswered)

    async def drain(self, timeout_s: float) -> None:
        """Wait until all events are answered. Give up if no answer is finished for `timeout_s`.

        Events over a rate limit are cancelled at once. They are stored, so the next process answers
        them.
        """
        for task, event in self._serving.items():
            if event.is_held:
                task.cancel()
        clock = asyncio.get_running_loop().time
        self._answered_at = clock()
        while self._serving:
            rest_s = self._answered_at + timeout_s - clock()
            if rest_s <= 0:
                return
            await asyncio.wait(self._serving, timeout=rest_s)

    def cancel(self) -> None:
        """Cancel all serving tasks. The next process answers their events."""
        for task in self._serving:
            task.cancel()

    async def recheck_access(self) -> None:
        """Withdraw the events of senders who lost access, in this or in another process."""
        self.access_version += 1
        await self.revoke_unserved((*self._admitted.values(), *self._unanswered))

    async def revoke_unserved(self, events: Sequence[PendingEvent]) -> None:
        """Withdraw the events whose senders have lost access. See `BatchRunner`."""
        await self._batches.revoke_unserved(events)


class TurnRunner:
    """Answers one batch: runs its command, or lets the model answer its messages."""

    def __init__(
        self,
        agent: Agent,
        commands: CommandRegistry,
        delivery: Delivery,
        queues: ConversationQueues,
        batches: BatchRunner,
        failures: Failures,
        rates: RateLimiter,
    ) -> None:
        self._agent = agent
        self._commands = commands
        self._delivery = delivery
        self._queues = queues
        self._batches = batches
        self._failures = failures
        self._rates = rates

    async def answer(self, batch: Batch) -> AnsweredTurn | None:
        """Answer a batch, and return the model's turn, or None if the model didn't answer.

        If answering fails, the senders of the batch get a notice. Edits that arrived before their
        message was stored are applied at the end.
        """
        if not batch.events:
            return None
        try:
            return await self._answer(batch)
        except Exception as error:
            await self._failures.apologize(batch, error)
            return None
        finally:
            for event in (*batch.refused, *batch.events):
                for change in event.changes:
                    await self._agent.sessions.amend(change, event.scope)

    async def _answer(self, batch: Batch) -> AnsweredTurn | None:
        """Run the command of a batch, or let the model answer its messages.

        Some messages are only stored: group messages that aren't addressed to Mneme, and those of a
        sender who has had too many turns in a row. Returns the model's turn, or None.
        """
        event = batch.last
        if event.command is not None:
            return await self._run_command(batch, event.command)
        if event.kind is EventKind.IMMEDIATE:
            await self._answer_expired_button(event)
            return None
        turns_in_a_row = self._rates.count_turns_in_a_row(event.inbound, is_turn=event.is_addressed)
        is_limited = event.counts_against_limits
        is_over_limit = is_limited and turns_in_a_row > MAX_TURNS_IN_A_ROW
        if is_over_limit or not event.is_addressed:
            store = self._agent.store_unanswered if is_over_limit else self._store_talk
            await self._batches.retry_stale_reads(batch, store)
            return None
        has_files = any(event.inbound.attachments for event in batch.events)
        if not has_files and await self._commands.may_concern_reminders(event.inbound):
            answered_turn = await self._talk_about_reminders(batch)
            if answered_turn is not None:
                return answered_turn
        is_last_turn = is_limited and turns_in_a_row == MAX_TURNS_IN_A_ROW
        return await self._ask_model(batch, is_last_turn=is_last_turn)

    async def _store_talk(self, turn: Turn) -> None:
        """Store unaddressed group messages, with their files if the settings say so."""
        media = self._agent.media
        has_files = any(entry.inbound.attachments for entry in turn.entries)
        if has_files and media is not None and media.options.group_talk:
            turn, _ = await self._agent.receive_files(turn)
            media.forget_transient(turn.address)
        await self._agent.store_unanswered(turn)

    async def _talk_about_reminders(self, batch: Batch) -> AnsweredTurn | None:
        """Answer a batch without a model, or return None if no message concerns reminders."""
        if not await self._batches.begin(batch):
            return None
        answered_turn = await self._batches.retry_stale_reads(batch, self._answer_by_rules)
        if answered_turn is not None:
            await self._deliver(batch, answered_turn.answer)
        return answered_turn

    async def _talk_about_files(self, batch: Batch, turn: Turn) -> AnsweredTurn | None:
        """Answer a spoken "yes", or voice notes and captions about reminders, without a model.

        Returns None for other messages, and if the turn was stopped.
        """
        newest = turn.entries[-1].inbound
        if batch.is_stopped:
            return None
        if await self._commands.may_concern_reminders(newest):
            answered_turn = await self._answer_by_rules(turn)
            if answered_turn is not None:
                return answered_turn
        now = self._agent.clock.now()
        answer = await answer_spoken_yes(newest, turn.scope, self._commands, now)
        if answer is None:
            return None
        return await self._agent.store_exchange(turn, *answer, tool_name=None)

    async def _answer_by_rules(self, turn: Turn) -> AnsweredTurn | None:
        """Answer the messages of a turn one after the other, and store the answers as one.

        Returns None if no message concerns reminders.
        """
        session = await self._agent.sessions.ensure_session(turn)
        talk = self._commands.talk
        if talk is None or session.is_incognito:
            return None
        answers: list[Answer] = []
        actions: list[ButtonAction] = []
        tool_name = None
        for entry in turn.entries:
            context = _build_context(turn, entry.inbound, session)
            talk_answer = await talk.answer(context)
            if talk_answer is not None:
                answers.append(talk_answer.answer)
                actions += talk_answer.actions
                if talk_answer.is_change:
                    tool_name = "reminder"
        if not answers:
            return None
        answer = Answer(
            text="\n\n".join(answer.text for answer in answers),
            buttons=tuple(button for answer in answers for button in answer.buttons),
        )
        return await self._agent.store_exchange(turn, answer, actions, tool_name)

    async def _answer_expired_button(self, event: PendingEvent) -> None:
        """Close the inbox entry of a press, and say that the button expired or isn't theirs."""
        inbound = event.inbound
        await self._delivery.inbox.close([event.entry.id])
        texts = load_texts(inbound.language)
        place = inbound.address, inbound.scope
        is_others = await self._commands.actions.is_of_others(inbound.text, *place, inbound.account)
        text = texts.NOT_YOUR_BUTTON if is_others else texts.BUTTON_EXPIRED
        answer = Answer(text=text, is_private=True)
        await self._delivery.send_unstored(event.inbound, event.reply, answer)

    async def _run_command(self, batch: Batch, command: Command) -> AnsweredTurn | None:
        """Run a command. Its batch has no other event but the parts of its album.

        `/stop` stops the running turn before it waits for anything. That turn's answer says so.
        `/stop` itself is answered only as an interaction, which would be shown as failed otherwise.

        Returns the turn of the model if it answers, as after `/retry`. Otherwise returns None.
        """
        event = batch.last
        inbound = event.inbound
        question_id = find_edited_id(inbound)
        if question_id and not await self._may_answer_again(event, question_id):
            await self._delivery.inbox.close([event.entry.id])
            await event.reply.abandon()
            return None
        has_stopped_turn = command.name == "stop" and self._queues.stop(inbound.address)
        if has_stopped_turn:
            # An answer would wait until the stopped turn's answer is delivered. A notice doesn't.
            event.outbox_item = replace(event.outbox_item, kind="notice")
        is_silent = has_stopped_turn and not (inbound.is_interaction or inbound.attachments)
        run = partial(
            self._run_and_store,
            command,
            inbound,
            has_stopped_turn=has_stopped_turn,
            is_silent=is_silent,
        )

        if is_silent:
            await self._batches.retry_stale_reads(batch, run)
            event.reply_state = ReplyState.ANSWERED
            await event.reply.abandon()
            return None
        if not await self._batches.begin(batch):
            return None
        answer = await self._batches.retry_stale_reads(batch, run)
        if answer is not None and answer.asks_again is not None:
            event.become_message(answer.asks_again)
            return await self._ask_model(batch)
        await self._deliver(batch, answer)
        return None

    async def _run_and_store(
        self,
        command: Command,
        inbound: Inbound,
        turn: Turn,
        *,
        has_stopped_turn: bool,
        is_silent: bool,
    ) -> Answer:
        """Run a command, store its answer and return it.

        If the answer has `asks_again`, the model will answer instead, so nothing is stored.
        """
        session = await self._agent.sessions.ensure_session(turn)
        context = replace(
            _build_context(turn, inbound, session),
            has_stopped_turn=has_stopped_turn,
            has_begun_turn=bool(turn.outbox_item.id),
        )
        if inbound.attachments and self._agent.media is not None:
            answer, actions = await run_with_files(
                self._agent, self._commands, command, context, turn
            )
        else:
            answer, actions = await self._commands.answer(command, context)
        if answer.asks_again is not None:
            return answer
        if answer.has_erased_data:
            # The command's own erasure doesn't make its answer stale.
            turn = replace(turn, epoch=None)
        line = self._commands.render_stored_text(command)
        text = with_attachments(line, inbound.attachments) if inbound.attachments else line
        await self._agent.store_command(turn, session, text, answer, actions, is_silent=is_silent)
        return answer

    async def _may_answer_again(self, event: PendingEvent, question_id: str) -> bool:
        """Return whether an edited question may get a new answer in place of its first answer.

        It may not if a tool of its answer may have changed something, or if messages followed it.
        The person is told so.
        """
        if event.outbox_item.id:
            return True  # An earlier process has begun the new answer.
        conversations = self._agent.sessions.conversations
        question = await conversations.load_question(event.inbound.address, question_id)
        if question is None:
            return False
        effect = find_effect(self._agent, self._commands, question)
        if effect is not EditEffect.ANSWER:
            await explain_edit(self._delivery, event.inbound, effect)
            return False
        event.outbox_item = replace(event.outbox_item, posted=question.answer_ids)
        return True

    async def _ask_model(self, batch: Batch, *, is_last_turn: bool = False) -> AnsweredTurn | None:
        """Let the model answer a batch, and send the answer as a reply to the newest event.

        If `is_last_turn`, the answer says that Mneme won't answer the sender's next messages.
        Returns None if nothing is left to answer, or if an earlier process has delivered the
        answer.
        """
        await self._refuse_over_limit(batch)
        if not batch.events:
            return None
        for event in batch.events[:-1]:
            await event.reply.abandon()
        if not await self._batches.begin(batch):
            return None
        try:
            answered_turn = await self._batches.retry_stale_reads(
                batch, partial(self._run_model, batch)
            )
        finally:
            self._forget_transient_files(batch)
        answer = None
        if answered_turn is not None:
            texts = load_texts(batch.last.inbound.language)
            answer = answered_turn.answer
            if is_last_turn or _needs_notice(answered_turn):
                answer = add_notices(texts, answered_turn, is_last_turn=is_last_turn)
            media = self._agent.media
            if batch.receptions and media is not None:
                sees_pictures = media.gets_pictures(answered_turn.session.model)
                notices = describe_files(texts, batch.receptions, sees_pictures=sees_pictures)
                answer = replace(answer, text="\n\n".join([answer.text, *notices]))
            # Before the delivery, so that the next process knows of it if this one is killed.
            await self._speak(batch, answered_turn)
        await self._deliver(batch, answer)
        return answered_turn

    async def _speak(self, batch: Batch, answered_turn: AnsweredTurn) -> None:
        """Start to speak an answer, except in an incognito conversation."""
        voice = self._commands.voice
        if voice and not (answered_turn.session.is_incognito or batch.is_all_revoked):
            await voice.speak(batch.last.inbound, batch.outbox_item, answered_turn.answer)

    def _forget_transient_files(self, batch: Batch) -> None:
        """Remove the files of an incognito conversation, also after a failed turn."""
        media = self._agent.media
        if media is not None and any(event.inbound.attachments for event in batch.events):
            media.forget_transient(batch.last.inbound.address)

    async def _receive_files(self, batch: Batch, turn: Turn) -> Turn:
        """Download and store the files of a turn, and record the result for each file."""
        turn, batch.receptions = await self._agent.receive_files(turn)
        media = self._agent.media
        shows_transcript = media is not None and media.options.show_transcript
        heading = describe_speech(load_texts(batch.last.inbound.language), batch.receptions)
        if not heading or not shows_transcript:
            return turn
        first, *others = turn.entries
        first = replace(first, inbound=replace(first.inbound, heading=heading))
        return replace(turn, entries=(first, *others))

    async def _refuse_over_limit(self, batch: Batch) -> None:
        """Remove messages of senders over a daily limit from the batch, and notify these senders.

        The messages are still stored.
        """
        sender_ids = dict.fromkeys(
            event.inbound.sender.id
            for event in batch.events
            if event.counts_against_limits or self._rates.limits_owner
        )
        for sender_id in sender_ids:
            own_events = [event for event in batch.events if event.inbound.sender.id == sender_id]
            newest = own_events[-1]
            texts = load_texts(newest.inbound.language)
            refusal = await self._rates.find_daily_refusal(newest.inbound, batch.scope)
            if refusal is None:
                continue
            for event in own_events[:-1]:
                await event.reply.abandon()
            own_batch = Batch(own_events)
            if refusal.is_silent:
                await self._batches.retry_stale_reads(own_batch, self._agent.store_unanswered)
                await newest.reply.abandon()
            else:
                buttons: tuple[Button, ...] = ()
                if refusal.can_be_raised:
                    buttons = (make_button(texts.RAISE_LINE, "usage", "more"),)
                answer = Answer(text=refusal.text, buttons=assign_button_ids(buttons))
                await self._failures.answer_instead(own_batch, answer)
            batch.refuse(own_events)

    async def _run_model(self, batch: Batch, turn: Turn) -> AnsweredTurn:
        """Run a turn of the model until it is answered or stopped.

        Raises StaleReadError if the turn must be repeated: something was erased, a sender lost
        access, or more messages arrived before any part of the answer was shown and were added.
        """
        event = batch.last
        interrupt = partial(self._agent.interrupt, turn)
        try:
            async with self._queues.stoppable_turn(turn.address, interrupt) as timeout:
                if any(entry.inbound.attachments for entry in turn.entries):
                    turn = await self._receive_files(batch, turn)
                    answered_turn = await self._talk_about_files(batch, turn)
                    if answered_turn is not None:
                        return answered_turn
                if not batch.is_stopped:
                    return await self._agent.answer(turn, event.reply.show)
        except (TimeoutError, StaleReadError) as error:
            if isinstance(error, TimeoutError) and not timeout.expired():
                raise
            if await self._queues.extend_batch(turn.address):
                if batch.last is not event:
                    await event.reply.abandon()
                    await self._batches.begin(batch)
                raise StaleReadError(
                    "More messages arrived before any part of the answer was shown."
                ) from None
            if isinstance(error, StaleReadError):
                raise
            if batch.is_any_revoked:
                raise StaleReadError("A sender has lost access.") from None

        batch.is_stopped = True
        # The whole answer may have been stored before the turn was stopped.
        stored_item = await self._delivery.outbox.find(turn.outbox_item)
        return await self._agent.stop(turn, stored_item.answer)

    async def _deliver(self, batch: Batch, answer: Answer | None) -> None:
        """Deliver the answer to a batch.

        If `answer` is None, the answer may have been stored in the outbox before a sender lost
        access. If it isn't in the outbox either, the messages were erased, and the reply says so.
        Answers that the person couldn't receive earlier are appended.
        """
        event = batch.last
        texts = load_texts(event.inbound.language)
        event.reply_state = ReplyState.ANSWERED
        if batch.is_all_revoked:
            await self._delivery.outbox.record_failure(batch.outbox_item.key, "not served any more")
            await event.reply.abandon()
            return
        if answer is None:
            stored_item = await self._delivery.outbox.find(batch.outbox_item)
            answer = stored_item.answer or Answer(text=texts.FORGOTTEN)

        unseen_items = await self._delivery.list_unseen(event.inbound)
        shown_answer = answer
        for item in unseen_items:
            if item.answer is not None:
                shown_answer = append_unseen(texts, shown_answer, item.answer)
        full_answer = FullAnswer(shown_answer, tuple(item.key for item in unseen_items))
        await self._delivery.deliver(batch.outbox_item, event.reply, answer, full_answer)


class BatchRunner:
    """Begins replies to batches, repeats work on outdated data, and removes events from batches."""

    def __init__(
        self,
        access: Access,
        queues: ConversationQueues,
        delivery: Delivery,
        adapters: Mapping[str, Adapter],
    ) -> None:
        self._access = access
        self._queues = queues
        self._delivery = delivery
        self._adapters = adapters

    async def begin(self, batch: Batch) -> bool:
        """Show that an answer is being written, once per reply. Returns True if it's still needed.

        If an earlier process has already delivered the answer, the batch is closed and False is
        returned.
        """
        event = batch.last
        if batch.outbox_item.is_over:
            await self._delivery.inbox.close(batch.entry_ids)
            await event.reply.abandon()
            return False
        if event.reply_state is ReplyState.UNUSED:
            event.reply_state = ReplyState.BEGUN
            self._delivery.begin(batch.outbox_item, event.reply)
        return True

    async def retry_stale_reads(
        self, batch: Batch, work: Callable[[Turn], Awaitable[T]]
    ) -> T | None:
        """Run `work` on the batch, and repeat it after each StaleReadError.

        Returns None if the batch has no open entries left, because all were erased or answered.
        """
        while True:
            turn = await self._build_turn(batch)
            if not turn.entries:
                return None
            try:
                return await work(turn)
            except StaleReadError as error:
                _log.info("work is repeated", reason=str(error))
                await self.revoke_unserved(batch.events)

    async def _build_turn(self, batch: Batch) -> Turn:
        """Build a turn from the open entries of a batch, except those of revoked events.

        Waits while something that the conversation can see is being erased. Raises StoreError if
        that takes too long.
        """
        newest = batch.last.inbound
        view = await self._access.load_view(batch.scope, newest.account, batch.entry_ids)
        entries = tuple(
            event.entry
            for event in batch.events
            if event.entry.id in view.open_entry_ids and event.state is not EventState.REVOKED
        )
        adapter = self._adapters.get(newest.address.platform)
        return Turn(
            address=newest.address,
            scope=view.scope,
            scopes=view.scopes,
            entries=entries,
            outbox_item=batch.outbox_item,
            is_owner=view.is_owner,
            epoch=view.epoch,
            hint=adapter.hint if adapter else "",
            is_new_session=newest.address.platform == CRON,
            language=newest.language,
            zone=view.zone,
        )

    async def revoke_unserved(self, events: Sequence[PendingEvent]) -> None:
        """Withdraw all events whose senders have lost access, and close their inbox entries.

        Waiting events are removed from their queues. Running turns stop, and restart without the
        events.
        """
        revoked_events = [event for event in events if await self._has_lost_access(event)]
        withdrawn = [event for event in revoked_events if event.is_waiting]
        for event in revoked_events:
            if event in withdrawn:
                self._queues.withdraw(event)
                continue
            event.state = EventState.REVOKED
            if event.kind is not EventKind.IMMEDIATE:
                self._queues.stop(event.queue_address)
        await self._delivery.inbox.close([event.entry.id for event in revoked_events])
        for event in withdrawn:
            await event.reply.abandon()

    async def _has_lost_access(self, event: PendingEvent) -> bool:
        """Return whether the sender has lost access and the event isn't revoked yet."""
        if event.state in (EventState.REVOKED, EventState.WITHDRAWN):
            return False
        judgement = await self._access.judge(event.inbound)
        return not judgement.verdict.is_accepted

    async def withdraw(self, event: PendingEvent) -> None:
        """Remove a waiting event from its queue and close its inbox entry, without an answer."""
        self._queues.withdraw(event)
        await self._delivery.inbox.close([event.entry.id])
        await event.reply.abandon()


def _build_context(turn: Turn, inbound: Inbound, session: Session) -> CommandContext:
    return CommandContext(
        inbound=inbound,
        scope=turn.scope,
        scopes=turn.scopes,
        session=session,
        is_owner=turn.is_owner,
        epoch=turn.epoch,
        zone=turn.zone,
    )


def _needs_notice(answered_turn: AnsweredTurn) -> bool:
    """Return whether an answer needs a notice or may contain a mark such as "[stopped]"."""
    text = answered_turn.answer.text
    is_marked = text.startswith(("[", "(")) or "\n\n[" in text or "\n\n(" in text
    return is_marked or answered_turn.has_compressed or answered_turn.is_too_long
