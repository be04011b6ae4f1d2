"""Every event passes here once: admitted (access, written down), then served (a command, or a turn in its lane).

One of the few places that compose what a person reads; and the one that catches what a turn could not.

An event as it may be shown: what somebody calls himself is his own choice, and what he passes on is not his word.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count

import structlog

from core.agent.post_turn import PostTurn
from core.agent.turn import Agent
from core.agent.user_message import Turn
from core.errors import DeliveryError, Refused, StoreError
from core.ports import Adapter, Clock, Reply
from core.store.inbox import InboxEntry
from core.text.sanitize import on_one_line
from core.types import Answer, Command, Inbound, Scope
from gateway import texts
from gateway.access import Access, PairingReplies
from gateway.commands.confirmations import is_dictated
from gateway.commands.context import CommandContext
from gateway.commands.registry import Commands
from gateway.delivery import Delivery
from gateway.queues import ConversationQueues, PendingEvent
from gateway.retry import Retry
from gateway.supervisor import contained

NAME_CHARS = 100


def presentable(inbound: Inbound) -> Inbound:
    """People choose their names themselves: on one line, without anything that a terminal would obey. And what somebody
    passes on is not his command, whatever it looks like."""
    name = on_one_line(inbound.sender.name)[:NAME_CHARS] or inbound.sender.id
    if inbound.origin != "typed":
        inbound = replace(inbound, command=None)
    return replace(inbound, sender=replace(inbound.sender, name=name))


class Router:
    """Fills the role Sink, once `connect` has told it the platforms."""

    def __init__(
        self,
        *,
        access: Access,
        post: Delivery,
        agent: Agent,
        aftercare: PostTurn,
        attempts: Retry,
        commands: Commands,
        clock: Clock,
    ) -> None:
        self._access = access
        self._post = post
        self._agent = agent
        self._aftercare = aftercare
        self._attempts = attempts
        self._commands = commands
        self._lanes = ConversationQueues()
        self._clock = clock
        self._doorstep = PairingReplies(access, commands, post, clock)
        self._adapters: Mapping[str, Adapter] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._tickets: dict[int, PendingEvent] = {}
        self._numbers = count(1)
        self._under_way: dict[tuple[str, str], list[Inbound]] = {}
        """Messages being answered, and what was changed in them before they were stored."""
        self._log = structlog.get_logger("router")

    def connect(self, adapters: Mapping[str, Adapter], tasks: asyncio.TaskGroup) -> None:
        """The platforms of this process, known once they are made, and the group that owns the turns: a platform that
        stops listening must not take its running turns with it."""
        self._adapters = adapters
        self._tasks = tasks

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """See `core.ports.Sink`."""
        inbound = presentable(inbound)
        scope = await self._access.scope(inbound)
        verdict = await self._access.judge(inbound, scope)
        if verdict == "stranger":
            await self._doorstep.answer(inbound, reply, scope)
        if verdict in ("stranger", "ignored"):
            return None
        if inbound.kind in ("edit", "delete"):
            await self._amend(inbound)
            return None
        entry = await self._post.accept(inbound, self._commands.discreet(inbound))
        if entry is None:
            return None
        number = self._join(self._ticket(entry, reply, scope, is_overheard=verdict == "overheard"))
        try:
            await self._access.greet(inbound)
        except StoreError as error:
            self._log.warning("a name was not noted", error=str(error))
        return number

    async def serve(self, entry_id: int) -> None:
        """See `core.ports.Sink`. A turn that fails is apologised for, with an incident id that stands in the log."""
        ticket = self._tickets.pop(entry_id, None)
        if ticket is None or self._tasks is None:
            return
        task = self._tasks.create_task(self._served(ticket))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def drained(self) -> None:
        """Returns when nothing is being served."""
        while self._running:
            await asyncio.wait(self._running)

    def cancel(self) -> None:
        """Gives up what is still being served; it is stored, and goes on after the next start."""
        for task in self._running:
            task.cancel()

    async def _served(self, ticket: PendingEvent) -> None:
        try:
            try:
                await self._serve(ticket)
            except Exception as error:
                if ticket.is_answered:
                    raise
                await self._apologise((ticket,), error)
        except Exception:
            self._log.exception("failed beside an answer", address=ticket.entry.inbound.address.key)

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """See `core.ports.Sink`."""
        await self._access.moved(platform, old_chat_id, new_chat_id)

    async def resume(self, adapter: Adapter, limit_age: timedelta) -> list[int]:
        """Takes up what an earlier process accepted from a platform and did not answer. Returns what is to be served.
        What is older than `limit_age` is told to the person instead; a lost interaction has expired."""
        tickets = []
        for entry in await self._post.waiting():
            if entry.inbound.address.platform != adapter.platform:
                continue
            ticket = await self._taken_up(entry, adapter)
            if ticket is None:
                continue
            age = self._clock.now() - entry.received_at
            if entry.inbound.kind == "message" and not ticket.is_overheard and age > limit_age:
                await self._decline(ticket, age)
            else:
                tickets.append(ticket)
        # Joined last: when something fails before, all of it is tried again, and nothing stands in a lane twice.
        return [self._join(ticket) for ticket in tickets]

    async def _taken_up(self, entry: InboxEntry, adapter: Adapter) -> PendingEvent | None:
        """The ticket of an entry that waited over a restart; None when it is not to be answered any more."""
        scope = await self._access.scope(entry.inbound)
        verdict = await self._access.judge(entry.inbound, scope)
        if entry.inbound.is_interaction:
            await self._post.expire(entry)
            return None
        if verdict not in ("served", "overheard"):
            # Whoever wrote this is not let in any more.
            await self._post.close([entry])
            return None
        try:
            with contained():
                reply = adapter.reply(entry.inbound.address, self._post.draft(entry.inbound).reply_to)
        except DeliveryError as error:
            self._log.warning("an answer has no way back", address=entry.inbound.address.key, error=str(error))
            await self._post.expire(entry)
            return None
        return self._ticket(entry, reply, scope, is_overheard=verdict == "overheard")

    @staticmethod
    def _ticket(entry: InboxEntry, reply: Reply, scope: Scope, *, is_overheard: bool) -> PendingEvent:
        is_plain = entry.inbound.kind == "message" and entry.inbound.command is None
        return PendingEvent(entry=entry, reply=reply, scope=scope, is_plain=is_plain, is_overheard=is_overheard)

    async def _amend(self, inbound: Inbound) -> None:
        """An edit or a deletion: of what still waits, or of what is stored."""
        waiting = self._lanes.amend(inbound)
        if waiting is not None and inbound.kind == "delete":
            await self._post.close([waiting.entry])
            await waiting.reply.abandon()
        elif waiting is not None:
            await self._post.update(waiting.entry)
        is_known = await self._agent.amend(inbound)
        late = self._under_way.get((inbound.address.key, inbound.message_id))
        if not is_known and late is not None:
            late.append(inbound)

    async def _decline(self, ticket: PendingEvent, age: timedelta) -> None:
        """Too old to be answered: it is kept, and the person is told."""
        turn = await self._begin(ticket, self._turn((ticket,), await self._access.scopes(ticket.scope)))
        answer = Answer(text=texts.away(age))
        command = ticket.entry.inbound.command
        if command is None:
            await self._agent.notify(turn, answer)
        else:
            session = await self._agent.place(turn)
            await self._agent.keep(turn, session, self._commands.kept(command), answer, has_outbox_item=True)
        await self._post.deliver(turn.outbox_item, ticket.reply, answer)

    def _join(self, ticket: PendingEvent) -> int:
        number = next(self._numbers)
        self._tickets[number] = ticket
        if ticket.is_plain or not self._is_beside(ticket.entry.inbound):
            self._lanes.join(ticket)
        return number

    def _is_beside(self, inbound: Inbound) -> bool:
        """Whether an event is served at once, beside the running turn: presses, and commands that only read."""
        if inbound.kind == "message":
            return inbound.command is not None and self._commands.is_reading(inbound.command)
        return inbound.kind == "action"

    async def _serve(self, ticket: PendingEvent) -> None:
        inbound = ticket.entry.inbound
        if not ticket.is_plain and self._is_beside(inbound):
            await self._beside(ticket, await self._access.scopes(ticket.scope))
            return
        # Nothing may be awaited before the lane is entered: turns run in the order in which serving began.
        async with self._lanes.enter(ticket) as batch:
            if not batch:
                return
            names = [(one.entry.inbound.address.key, one.entry.inbound.message_id) for one in batch]
            self._under_way.update((name, []) for name in names)
            try:
                scopes = await self._access.scopes(ticket.scope)
                batch = await self._after_answers(batch, scopes)
                if batch and inbound.command is not None:
                    await self._command(ticket, inbound.command, scopes)
                elif batch and ticket.is_overheard:
                    await self._attempts.answer(self._turn(batch, scopes), self._agent.listen)
                elif batch:
                    await self._converse(batch, scopes)
            except Exception as error:
                # Whoever was taken along is not served again: all of them are told, while the lane is still theirs.
                batch = tuple(one for one in batch if not one.is_answered)
                if not batch:
                    raise
                await self._apologise(batch, error)
                return
            finally:
                for late in [change for name in names for change in self._under_way.pop(name, ())]:
                    await self._agent.amend(late)
        if batch and ticket.is_plain and not ticket.is_overheard:
            await self._attempts.run(scopes, partial(self._aftercare.run, inbound.address, scopes))

    async def _after_answers(self, batch: Sequence[PendingEvent], scopes: frozenset[Scope]) -> tuple[PendingEvent, ...]:
        """What of a batch is left when those that say yes to a question have been served."""
        left = []
        for ticket in batch:
            confirmed = await self._commands.confirmed(ticket.entry.inbound)
            if confirmed is None:
                left.append(ticket)
            else:
                await self._command(ticket, confirmed, scopes, is_said=is_dictated(ticket.entry.inbound))
        return tuple(left)

    async def _beside(self, ticket: PendingEvent, scopes: frozenset[Scope]) -> None:
        inbound = ticket.entry.inbound
        if inbound.kind == "action":
            command = await self._commands.pressed(inbound, ticket.scope)
        else:
            await self._commands.confirmed(inbound)
            command = inbound.command
        if command is None:
            await self._post.close([ticket.entry])
            await self._post.tell(inbound, ticket.reply, Answer(text=texts.BUTTON_EXPIRED, is_private=True))
        elif self._commands.is_reading(command):
            await self._command(ticket, command, scopes)
        else:
            self._lanes.join(ticket)
            async with self._lanes.enter(ticket):
                await self._command(ticket, command, scopes)

    async def _converse(self, batch: Sequence[PendingEvent], scopes: frozenset[Scope]) -> None:
        """One turn over the batch, answered through the reply that came last."""
        *earlier, last = batch
        for ticket in earlier:
            await ticket.reply.abandon()
        turn = self._turn(batch, scopes)
        try:
            turn = await self._begin(last, turn)
            if turn.outbox_item.is_over:
                await self._post.close(turn.entries)
                await last.reply.abandon()
                return
            answer = await self._attempts.answer(turn, partial(self._answered, ticket=last)) or Answer(
                text=texts.FORGOTTEN
            )
        except Exception as error:
            await self._apologise(batch, error)
            return
        for ticket in batch:
            ticket.is_answered = True
        await self._post.deliver(turn.outbox_item, last.reply, answer, is_once=last.entry.inbound.is_interaction)

    async def _answered(self, turn: Turn, ticket: PendingEvent) -> Answer:
        try:
            async with self._lanes.stoppable(turn.address) as running:
                if not ticket.is_stopped:
                    return await self._agent.answer(turn, ticket.reply.show)
        except TimeoutError:
            if not running.expired():
                raise
        ticket.is_stopped = True
        # It may have been stopped while the whole answer was being stored.
        stored = await self._post.hold(turn.outbox_item)
        return stored.answer or await self._agent.stop(turn)

    async def _command(
        self, ticket: PendingEvent, command: Command, scopes: frozenset[Scope], *, is_said: bool = False
    ) -> None:
        """`is_said`: the message is no command but gave this one its words. /stop stops before it waits."""
        inbound = ticket.entry.inbound
        turn = await self._begin(ticket, self._turn((ticket,), scopes))
        if turn.outbox_item.is_over:
            await self._post.close(turn.entries)
            await ticket.reply.abandon()
            return
        is_stopped = command.name == "stop" and self._lanes.stop(inbound.address)
        run = partial(self._commanded, ticket, command, is_said=is_said, is_stopped=is_stopped)
        answer = await self._attempts.answer(turn, run) or Answer(text=texts.FORGOTTEN)
        ticket.is_answered = True
        await self._post.deliver(turn.outbox_item, ticket.reply, answer, is_once=inbound.is_interaction)

    async def _commanded(
        self, ticket: PendingEvent, command: Command, turn: Turn, is_said: bool, is_stopped: bool
    ) -> Answer:
        """Runs a command and keeps it with its answer."""
        inbound, scopes = ticket.entry.inbound, turn.scopes
        said_id = await self._agent.hear(turn) if is_said else None
        session = await self._agent.place(turn)
        caller = CommandContext(
            inbound=inbound,
            scope=ticket.scope,
            scopes=scopes,
            session=session,
            is_owner=await self._access.is_owner(inbound),
            is_stopped=is_stopped,
            said_id=said_id,
        )
        try:
            answer = await self._commands.run(command, caller)
        except Refused as refusal:
            answer = Answer(text=str(refusal))
        answer = await self._commands.prepared(answer, command, caller)
        has_outbox_item = not inbound.is_interaction
        kept = self._commands.kept(command)
        await self._agent.keep(turn, session, kept, answer, has_outbox_item=has_outbox_item, is_said=is_said)
        return answer

    def _turn(self, batch: Sequence[PendingEvent], scopes: frozenset[Scope]) -> Turn:
        """The parcel is that of the first entry: after a crash it is found again whatever else waits by then."""
        first = batch[0]
        platform = first.entry.inbound.address.platform
        adapter = self._adapters.get(platform)
        return Turn(
            address=first.entry.inbound.address,
            scope=first.scope,
            scopes=scopes,
            entries=tuple(ticket.entry for ticket in batch),
            outbox_item=self._post.draft(first.entry.inbound),
            hint=adapter.hint if adapter else "",
            is_fresh=platform == "cron",
        )

    async def _begin(self, ticket: PendingEvent, turn: Turn) -> Turn:
        outbox_item = await self._post.hold(turn.outbox_item)
        if not ticket.has_begun:
            ticket.has_begun = True
            self._post.begin(outbox_item, ticket.reply)
        return replace(turn, outbox_item=outbox_item)

    async def _apologise(self, batch: Sequence[PendingEvent], error: Exception) -> None:
        """Says that it went wrong; what the person said is kept all the same. When not even that can be stored, the
        entries stay, and are taken up after the next start."""
        incident = secrets.token_hex(4)
        last = batch[-1]
        inbound = last.entry.inbound
        self._log.error("a turn failed", incident=incident, address=inbound.address.key, exc_info=error)
        answer = Answer(text=texts.failed(error, incident, is_kept=not self._post.is_incognito(inbound.address)))
        for ticket in batch:
            ticket.is_answered = True
        try:
            turn = await self._attempts.left(self._turn(batch, await self._access.scopes(last.scope)))
            if turn is None:
                await last.reply.abandon()
                return
            turn = await self._begin(last, turn)
            if last.is_overheard:
                await self._agent.notify(turn, None)
            elif inbound.command is not None or inbound.kind == "action":
                kept = self._commands.kept(inbound.command) if inbound.command else "[a button]"
                session = await self._agent.place(turn)
                await self._agent.keep(turn, session, kept, answer, has_outbox_item=not inbound.is_interaction)
            else:
                await self._agent.notify(turn, answer)
        except StoreError as failure:
            self._log.error("the apology could not be stored", incident=incident, error=str(failure))
            if not last.is_overheard:
                await self._post.tell(inbound, last.reply, answer, has_begun=last.has_begun)
            return
        if not last.is_overheard:
            await self._post.deliver(turn.outbox_item, last.reply, answer, is_once=inbound.is_interaction)
