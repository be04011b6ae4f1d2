"""Every event passes here once: admitted (access, written down), then served (a command, or a turn in its queue).

Catches what a turn could not, and composes what a person reads then.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import structlog

from config.settings import Limits
from core.agent.sessions import Turn
from core.agent.turn import Agent, RunningTurn
from core.errors import DeliveryError, LimitReached, Refused, StaleReadError, StoreError
from core.ports import Adapter, Clock, Reply
from core.store.epoch import EpochGuard, View
from core.store.jobs import Job
from core.store.mailbox import InboxEntry, OutboxItem
from core.store.removal import NOT_SERVED
from core.text.normalize import on_one_line
from core.types import Address, Answer, Command, Inbound, Payer, Scope, Session
from gateway import texts
from gateway.access import CRON, IN_A_ROW, Access, Rates
from gateway.commands.registry import CommandContext, Commands, may_answer
from gateway.delivery import Delivery
from gateway.queues import ConversationQueues, PendingEvent
from gateway.supervisor import contained

NAME_CHARS = 100
UNSERVED = ("stranger", "ignored")
REFUSED_AGAIN = timedelta(hours=1)  # in a room, that a limit of the day is reached
T = TypeVar("T")


class Router:
    """Fills the role Sink, once `connect` was called."""

    def __init__(
        self,
        access: Access,
        delivery: Delivery,
        agent: Agent,
        epoch_guard: EpochGuard,
        commands: Commands,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._access = access
        self._inbox = delivery.inbox
        self._delivery = delivery
        self._agent = agent
        self._epoch_guard = epoch_guard
        self._commands = commands
        self._rates = Rates(limits)
        self._queues = ConversationQueues(self._rates.turn, self._inbox.is_incognito)
        self._clock = clock
        self._has_owner_limits = limits.day_for_owner
        self._refused_at: dict[Payer, datetime] = {}
        self._adapters: Mapping[str, Adapter] = {}
        self._tasks: asyncio.TaskGroup
        self._running: dict[asyncio.Task[None], PendingEvent] = {}
        self._unanswered: set[PendingEvent] = set()
        self._answered_at = 0.0
        self._events: dict[int, PendingEvent] = {}
        self._removals = 0
        self._told_of_outage: set[Address] = set()
        self._log = structlog.get_logger("router")

    def connect(self, adapters: Mapping[str, Adapter], tasks: asyncio.TaskGroup) -> None:
        """`tasks` owns the turns: a platform that stops listening must not take its running turns with it."""
        self._adapters = adapters
        self._tasks = tasks

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """See `core.ports.Sink`."""
        sender = replace(inbound.sender, name=inbound.sender.name[:NAME_CHARS])
        # What somebody passes on is not their command.
        command = inbound.command if inbound.origin == "typed" else None
        inbound = replace(inbound, sender=sender, command=command)
        try:
            return await self._admitted(inbound, reply)
        except StoreError as error:
            self._tell_of_outage(inbound, error)
            raise

    async def _admitted(self, inbound: Inbound, reply: Reply) -> int | None:
        removals = self._removals
        verdict, scope, is_owner = await self._access.judge(inbound)
        if inbound.kind == "delete" or (verdict == "stranger" and inbound.kind == "edit"):
            await self._access.directory.amend(inbound)
        if verdict == "stranger":
            await self._answer_stranger(inbound, reply, scope)
        if verdict in UNSERVED:
            return None
        if inbound.kind in ("edit", "delete"):
            await self._amend(inbound)
            return None
        await self._access.greet(inbound)
        # Where somebody is let in or linked it is shown as it is, hidden signs marked; here it is read, by models too.
        name = on_one_line(inbound.sender.name) or inbound.sender.id
        if name != inbound.sender.name:
            inbound = replace(inbound, sender=replace(inbound.sender, name=name))
        if may_answer(inbound) and await self._inbox.is_known(inbound):
            return None  # redelivered: it answers nothing that was asked since
        inbound = await self._commands.as_said(inbound, scope)
        command = await self._commands.given(inbound, scope)
        if not (is_owner or self._rates.command(inbound, command)):
            return None
        now = self._clock.now()
        entry_id = await self._inbox.accept(self._commands.discreet(inbound), now)
        if entry_id is None:
            return None
        self._told_of_outage.clear()
        event = PendingEvent(
            entry=InboxEntry(id=entry_id, inbound=inbound, received_at=now),
            reply=reply,
            scope=scope,
            outbox_item=self._delivery.draft(inbound),
            command=command,
            is_overheard=verdict == "overheard",
            is_metered=not is_owner,
        )
        self._join(event)
        if removals != self._removals:
            await self._drop_unserved((event,))
        return entry_id

    async def suggest(self, inbound: Inbound, typed: str) -> Mapping[str, str]:
        """See `core.ports.Suggester`."""
        verdict, scope, _ = await self._access.judge(inbound)
        if inbound.command is None or verdict != "served":
            return {}
        return await self._commands.suggest(inbound.command.name, typed, scope)

    def _tell_of_outage(self, inbound: Inbound, error: StoreError) -> None:
        """Once at each address in each outage, by a message that needs no store; `reply` stays for the answer."""
        adapter = self._adapters.get(inbound.address.platform)
        if adapter is None or inbound.address in self._told_of_outage:
            return
        if inbound.kind in ("message", "action") and self._access.is_known(inbound):
            self._told_of_outage.add(inbound.address)
            with contextlib.suppress(DeliveryError), contained():
                reply = adapter.reply(inbound.address)
                answer = Answer(text=texts.OUTAGE.format(reason=f"{error} " if inbound.is_direct else ""))
                self._tasks.create_task(self._delivery.tell(inbound, reply, answer))

    async def _answer_stranger(self, inbound: Inbound, reply: Reply, scope: Scope) -> None:
        """In a stranger's direct chat: the answer to /link, the only command that is theirs, or at most a code."""
        if inbound.kind not in ("message", "action") or not self._rates.command(inbound, inbound.command):
            return
        command = await self._commands.confirmed(inbound) or inbound.command
        if command is not None and command.name == "link" and command.arguments.strip():
            session = Session(address=inbound.address, scope=scope, started_at=self._clock.now())
            scopes = frozenset((scope,))
            context = CommandContext(inbound=inbound, scope=scope, scopes=scopes, session=session, is_owner=False)
            answer, actions = await self._commands.answer(command, context)
            await self._commands.actions.add(actions)
            await self._delivery.tell(inbound, reply, answer)
        elif inbound.kind == "message" and (pairing := await self._access.pair(inbound)) is not None:
            await self._delivery.tell(inbound, reply, Answer(text=texts.STRANGER.format(code=pairing.code)))

    def serve(self, entry_id: int) -> Awaitable[None]:
        """See `core.ports.Sink`. A failed turn is apologised for, with an incident id that stands in the log."""
        event = self._events.pop(entry_id)
        if not event.is_overheard:
            self._unanswered.add(event)
        task = self._tasks.create_task(self._serve(event))
        self._running[task] = event
        task.add_done_callback(self._running.pop)
        return asyncio.shield(task)

    @property
    def unanswered(self) -> int:
        """How many answers are being made or sent."""
        return len(self._unanswered)

    async def drain(self, patience_s: float) -> None:
        """Waits until all has been served, at most `patience_s` after the last answer; what is held goes on after the
        next start."""
        for task, event in self._running.items():
            if not event.is_ready.is_set() and not event.is_beside:
                task.cancel()
        clock = asyncio.get_running_loop().time
        self._answered_at = clock()
        while self._running and (rest_s := self._answered_at + patience_s - clock()) > 0:
            await asyncio.wait(self._running, timeout=rest_s)

    def cancel(self) -> None:
        """Gives up what is being served; it is stored, and goes on after the next start."""
        for task in self._running:
            task.cancel()

    async def on_change(self) -> None:
        """Somebody may have been removed, here or by another process: nothing that is under way for them goes on."""
        self._removals += 1
        await self._drop_unserved((*self._events.values(), *self._unanswered))

    async def view(self, job: Job) -> View:
        """What may be seen for a job that is due. Raises Refused where whoever planned it is not served any more."""
        if not await self._access.serves(job):
            raise Refused(NOT_SERVED)
        return await self._epoch_guard.view(job.scope)

    async def _drop_unserved(self, events: Sequence[PendingEvent]) -> None:
        """Gives up what is under way for those who are not served any more; what is left of it is begun anew."""
        gone = [one for one in events if not one.is_dropped and (await self._access.judge(one.inbound))[0] in UNSERVED]
        waiting = [event for event in gone if not event.is_taken and not event.is_beside]
        for event in gone:
            event.is_dropped = True
            if event in waiting:
                self._queues.withdraw(event)
            elif event.is_taken:
                self._queues.stop(event.place)
        await self._inbox.close([event.entry.id for event in gone])
        for event in waiting:
            await event.reply.abandon()

    async def answer_admitted(self, platforms: Collection[str], limit_age: timedelta) -> None:
        """Tells those who were approved, by whomever, and answers what they had asked, unless it is older than
        `limit_age`; on platforms whose inbox was resumed. A crash leaves some to be done again: what was, is known."""
        for pairing in await self._access.directory.admitted():
            inbound, platform, now = pairing.inbound, pairing.account.platform, self._clock.now()
            if inbound is None or platform not in platforms:
                continue
            is_late = bool(inbound.text) and now - inbound.sent_at > limit_age
            text = f"{texts.ADMITTED}\n\n{texts.away(now - inbound.sent_at)}" if is_late else texts.ADMITTED
            key = f"admitted:{pairing.account.key}:{pairing.expires_at.isoformat()}"
            # An answer, so that the next one waits behind it.
            told = OutboxItem(key=key, kind="answer", address=inbound.address, answer=Answer(text=text), next_at=now)
            await self._delivery.outbox.put(told)
            self._delivery.wake()
            if inbound.text and not is_late:
                with contextlib.suppress(DeliveryError), contained():
                    entry_id = await self.admit(inbound, self._adapters[platform].reply(inbound.address))
                    if entry_id is not None:
                        self.serve(entry_id)
            await self._access.directory.drop(pairing)

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """See `core.ports.Sink`."""
        await self._access.directory.moved(platform, old_chat_id, new_chat_id)

    async def resume(self, adapter: Adapter, limit_age: timedelta) -> list[int]:
        """Takes up what an earlier process accepted and did not answer; returns what is to be served. What is older
        than `limit_age` is declined."""
        events = []
        for entry in await self._inbox.waiting(adapter.platform):
            try:
                if event := await self._resumed(entry, adapter, limit_age):
                    events.append(event)
            except Exception as error:
                await self._set_aside(entry, error)
        # Joined last: when something fails before, all of it is tried again, and nothing stands in a queue twice.
        for event in events:
            self._join(event)
        return [event.entry.id for event in events]

    async def _resumed(self, entry: InboxEntry, adapter: Adapter, limit_age: timedelta) -> PendingEvent | None:
        """None when the entry is not to be answered any more."""
        inbound = entry.inbound
        verdict, scope, is_owner = await self._access.judge(inbound)
        if verdict not in ("served", "overheard"):
            # Whoever wrote this is not let in any more.
            await self._inbox.close([entry.id])
            return None
        outbox_item = await self._delivery.outbox.find(self._delivery.draft(inbound))
        event = PendingEvent(
            entry=entry,
            reply=adapter.reply(inbound.address, outbox_item.reply_to),
            scope=scope,
            outbox_item=outbox_item,
            command=await self._commands.given(inbound, scope),
            is_overheard=verdict == "overheard",
            is_metered=not is_owner,
        )
        age = self._clock.now() - entry.received_at
        if inbound.kind == "message" and not event.is_overheard and age > limit_age:
            await self._answer_instead((event,), Answer(text=texts.away(age)))
            return None
        return event

    async def _set_aside(self, entry: InboxEntry, error: Exception) -> None:
        """What fails by itself would fail at every start. When the store fails, the entry stays for the next one."""
        self._log.error("an event failed", address=entry.inbound.address.key, exc_info=error)
        if isinstance(error, StoreError):
            raise error
        await self._inbox.set_entry_aside(entry.id, entry.inbound.address.platform, f"{type(error).__name__}: {error}")

    async def _amend(self, inbound: Inbound) -> None:
        event = self._queues.find(inbound)
        if event is not None and not event.is_taken and inbound.kind == "delete":
            self._queues.withdraw(event)
            await self._inbox.close([event.entry.id])
            await event.reply.abandon()
        elif event is not None and not event.is_taken:
            event.entry = replace(event.entry, inbound=replace(event.inbound, text=inbound.text))
            event.command = event.inbound.command  # a yes that is reworded is none
            await self._inbox.update(event.entry)
        is_known = await self._agent.sessions.amend(inbound)
        if not is_known and event is not None and event.is_taken:
            event.changes.append(inbound)

    def _join(self, event: PendingEvent) -> None:
        # What only reads, and a button that has expired, is served at once, beside the running turn.
        is_press = event.inbound.kind == "action"
        event.is_beside = is_press if event.command is None else self._commands.is_reading(event.command)
        self._events[event.entry.id] = event
        if not event.is_beside:
            self._queues.join(event)

    async def _serve(self, event: PendingEvent) -> None:
        try:
            if event.is_beside:
                answered = await self._answer([event])
            else:
                # Nothing may be awaited before the queue is entered: turns run in the order in which serving began.
                async with self._queues.enter(event) as batch:
                    answered = await self._answer(batch)
            self._settle(event)
            if answered is not None:
                # After an erasure it waits for the next turn.
                with contextlib.suppress(StaleReadError):
                    await self._agent.sessions.turn_over(answered.turn, answered.session, answered.rows)
        except Exception as error:
            # What was answered before is closed and stays so.
            with contextlib.suppress(StoreError):
                await self._set_aside(event.entry, error)
        self._settle(event)

    def _settle(self, event: PendingEvent) -> None:
        if event in self._unanswered:
            self._unanswered.remove(event)
            self._answered_at = asyncio.get_running_loop().time()

    async def _answer(self, batch: list[PendingEvent]) -> RunningTurn | None:
        """One command, or one turn over the batch. Whoever was taken along is not served again: all of them are told of
        a failure, while the queue is still theirs."""
        if not batch:
            return None
        taken, last = [*batch], batch[-1]
        try:
            if last.command is not None:
                return await self._command(batch, last.command)
            if last.is_beside:
                await self._inbox.close([last.entry.id])
                gone = Answer(text=texts.BUTTON_EXPIRED, is_private=True)
                await self._delivery.tell(last.inbound, last.reply, gone)
            else:
                turns = self._rates.in_a_row(last.inbound, is_turn=not last.is_overheard)
                if not (last.is_overheard or (last.is_metered and turns > IN_A_ROW)):
                    return await self._ask(batch, is_last=last.is_metered and turns == IN_A_ROW)
                await self._repeat(batch, self._agent.listen)
        except Exception as error:
            await self._apologise(batch, error)
        finally:
            for change in [change for one in dict.fromkeys([*taken, *batch]) for change in one.changes]:
                await self._agent.sessions.amend(change)
        return None

    async def _ask(self, batch: list[PendingEvent], *, is_last: bool) -> RunningTurn | None:
        """One turn of the model, answered through the reply that came last."""
        if not await self._within_limits(batch):
            return None
        for event in batch[:-1]:
            await event.reply.abandon()
        if not await self._begin(batch):
            return None
        answered = await self._repeat(batch, partial(self._model_answer, batch))
        answer = None if answered is None else answered.answer
        if answered is not None and answer is not None:
            said = [answer.text, *([texts.IN_A_ROW] if is_last else ())]
            if answered.has_condensed:
                said.append(texts.CONDENSED_INCOGNITO if answered.session.is_incognito else texts.CONDENSED)
            said += [texts.TOO_LONG] if answered.is_too_long else []
            answer = replace(answer, text="\n\n".join(said))
        await self._deliver(batch, answer)
        return answered

    async def _within_limits(self, batch: list[PendingEvent]) -> bool:
        """Tells those whose limit of the day is reached (in rooms and of what is scheduled once an hour; what they said
        is stored all the same) and takes it out of the batch; False where nothing is left."""
        has_limits = [event for event in batch if event.is_metered or self._has_owner_limits]
        for user_id in dict.fromkeys(event.inbound.sender.id for event in has_limits):
            mine = [event for event in batch if event.inbound.sender.id == user_id]
            payer, last, now = Payer(scope=batch[0].scope, user_id=user_id), mine[-1], self._clock.now()
            try:
                await self._agent.model.check(payer)
                continue
            except LimitReached as reached:
                answer = Answer(text=str(reached))
            for event in mine[:-1]:
                await event.reply.abandon()
            is_heard_by_one = last.inbound.is_direct and last.inbound.address.platform != CRON
            if not is_heard_by_one and now - self._refused_at.get(payer, now - REFUSED_AGAIN) < REFUSED_AGAIN:
                await self._repeat(mine, self._agent.listen)
                await last.reply.abandon()
            else:
                self._refused_at[payer] = now
                await self._answer_instead(mine, answer)
            batch[:] = [event for event in batch if event not in mine]
        return bool(batch)

    async def _command(self, batch: list[PendingEvent], command: Command) -> RunningTurn | None:
        """/stop stops before it waits; the answer that it stopped says so itself. What a command, alone in its `batch`,
        asks the model is a turn."""
        event, inbound = batch[0], batch[0].inbound
        is_stopped = command.name == "stop" and self._queues.stop(inbound.address)
        is_silent = is_stopped and not inbound.is_interaction
        if is_stopped:
            # What it stopped may still be on its way: that it stopped is told at once, to the caller alone.
            event.outbox_item = replace(event.outbox_item, kind="notice")

        async def answered(turn: Turn) -> Answer:
            session = await self._agent.sessions.place(turn)
            context = CommandContext(
                inbound=inbound,
                scope=turn.scope,
                scopes=turn.scopes,
                session=session,
                is_owner=turn.is_owner,
                is_stopped=is_stopped,
                has_asked=bool(turn.outbox_item.id),
                epoch=turn.epoch,
            )
            answer, actions = await self._commands.answer(command, context)
            if answer.asks is not None:
                return answer
            turn = replace(turn, epoch=None) if answer.has_erased else turn
            await self._agent.keep(turn, session, self._commands.kept(command), answer, actions, is_silent=is_silent)
            return answer

        if is_silent:
            await self._repeat((event,), answered)
            event.is_answered = True
            await event.reply.abandon()
        elif await self._begin((event,)):
            answer = await self._repeat((event,), answered)
            if answer is not None and answer.asks is not None:
                event.entry, event.command = replace(event.entry, inbound=answer.asks), None
                return await self._ask(batch, is_last=False)
            await self._deliver((event,), answer)
        return None

    async def _begin(self, batch: Sequence[PendingEvent]) -> bool:
        """Shows typing, once; False where an earlier process has delivered the answer."""
        last, outbox_item = batch[-1], batch[0].outbox_item
        if outbox_item.is_over:
            await self._inbox.close([event.entry.id for event in batch])
            await last.reply.abandon()
        elif not last.has_begun:
            last.has_begun = True
            self._delivery.begin(outbox_item, last.reply)
        return not outbox_item.is_over

    async def _deliver(self, batch: Sequence[PendingEvent], answer: Answer | None) -> None:
        """None: all of it was forgotten, or an answer stored as somebody of the batch was removed."""
        last = batch[-1]
        last.is_answered = True
        if all(event.is_dropped for event in batch):
            await self._delivery.outbox.fail(batch[0].outbox_item.key, "not served any more")
            await last.reply.abandon()
            return
        if answer is None:
            answer = (await self._delivery.outbox.find(batch[0].outbox_item)).answer or Answer(text=texts.FORGOTTEN)
        # Behind it, what could not reach its person before.
        unseen = await self._delivery.unseen(last.inbound)
        for missed in [item.answer for item in unseen if item.answer is not None]:
            text = f"{answer.text}\n\n{texts.UNSEEN}\n\n{missed.text}"
            files, buttons = (*answer.files, *missed.files), (*answer.buttons, *missed.buttons)
            answer = replace(answer, text=text, files=files, buttons=buttons, is_private=True)
        if await self._delivery.deliver(batch[0].outbox_item, last.reply, answer):
            for outbox_item in unseen:
                await self._delivery.outbox.done(outbox_item.key)

    async def _model_answer(self, batch: list[PendingEvent], turn: Turn) -> RunningTurn:
        """Raises StaleReadError where `batch` has grown, so that the turn is begun anew with all of it."""
        first, last = batch[0], batch[-1]
        try:
            async with self._queues.stoppable(turn.address, lambda: self._agent.interrupt(turn)) as running:
                if not first.is_stopped:
                    return await self._agent.answer(turn, last.reply.show)
        except (TimeoutError, StaleReadError) as error:
            if isinstance(error, TimeoutError) and not running.expired():
                raise
            if await self._queues.extend(turn.address):
                if batch[-1] is not last:
                    await last.reply.abandon()
                    await self._begin(batch)
                raise StaleReadError("More was said before anything was answered.") from None
            if isinstance(error, StaleReadError) or any(event.is_dropped for event in batch):
                raise StaleReadError(str(error) or "Somebody is not served any more.") from None
        first.is_stopped = True
        # It may have been stopped while the whole answer was being stored.
        return await self._agent.stop(turn, (await self._delivery.outbox.find(turn.outbox_item)).answer)

    async def _repeat(self, batch: Sequence[PendingEvent], work: Callable[[Turn], Awaitable[T]]) -> T | None:
        """What `work` gives for what is left of the batch, once nothing was forgotten while it ran; None when all of it
        was forgotten."""
        first, address = batch[0], batch[-1].inbound.address
        adapter = self._adapters.get(address.platform)
        while True:
            view = await self._epoch_guard.view(first.scope, batch[-1].inbound.account, [one.entry.id for one in batch])
            turn = Turn(
                address=address,
                scope=view.scope,
                scopes=view.scopes,
                entries=tuple(one.entry for one in batch if one.entry.id in view.open_ids and not one.is_dropped),
                # That of the first entry: after a crash it is found again whatever else waits by then.
                outbox_item=first.outbox_item,
                is_owner=view.is_owner,
                epoch=view.epoch,
                hint=adapter.hint if adapter else "",
                is_fresh=address.platform == CRON,
            )
            try:
                return await work(turn) if turn.entries else None
            except StaleReadError as stale:
                self._log.info("begun anew", reason=str(stale))
                await self._drop_unserved(batch)

    async def _apologise(self, batch: Sequence[PendingEvent], error: Exception) -> None:
        """What the person said is kept all the same; when not even that can be stored, the entries stay for the next
        start. Raises the error when they were answered before."""
        if batch[-1].is_answered:
            raise error
        incident = secrets.token_hex(4)
        inbound = batch[-1].inbound
        self._log.error("a turn failed", incident=incident, address=inbound.address.key, exc_info=error)
        is_kept = not self._inbox.is_incognito(inbound.address)
        await self._answer_instead(batch, Answer(text=texts.failed(error, incident, is_kept=is_kept)))

    async def _answer_instead(self, batch: Sequence[PendingEvent], answer: Answer) -> None:
        """Stores what the person said, with what is told instead of an answer."""
        last, inbound = batch[-1], batch[-1].inbound
        last.is_answered = True
        answer = replace(answer, text=f"{inbound.heading}\n\n{answer.text}") if inbound.heading else answer

        async def kept(turn: Turn) -> Turn:
            if inbound.command is None and inbound.kind != "action":
                await self._agent.notify(turn, None if last.is_overheard else answer)
            else:
                text = self._commands.kept(inbound.command) if inbound.command else "[a button]"
                await self._agent.keep(turn, await self._agent.sessions.place(turn), text, answer)
            return turn

        if not await self._begin(batch):
            return
        try:
            is_kept = await self._repeat(batch, kept) is not None
        except StoreError as failure:
            self._log.error("what is told cannot be stored", address=inbound.address.key, error=str(failure))
            if not last.is_overheard:
                await self._delivery.tell(inbound, last.reply, answer, has_begun=last.has_begun)
            return
        if is_kept and not last.is_overheard:
            await self._delivery.deliver(batch[0].outbox_item, last.reply, answer)
        else:
            await last.reply.abandon()
