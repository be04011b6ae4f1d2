"""Admits events: checks the sender's access, stores the event and queues it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from core.errors import DeliveryError, StoreError
from core.ports import Adapter, Clock, Reply
from core.store.actions import YES_TO_SEVERAL
from core.store.mailbox import InboxEntry, OutboxItem
from core.store.ownership.pairing import Pairing
from core.store.preferences import stranger_key
from core.text.normalize import language_data, to_single_line
from core.types import Account, Address, Answer, Command, Inbound, Scope, Sender, Session
from gateway.access_and_rates import Access, Introduction, Judgement, RateLimiter, Verdict
from gateway.answers.edits import EditEffect, explain_edit
from gateway.answers.notices import build_welcome
from gateway.commands.registry import (
    CommandContext,
    CommandRegistry,
    ResolvedInbound,
    can_confirm,
    is_command,
    is_yes,
    resolve_names,
)
from gateway.delivery import Delivery
from gateway.failures import Failures
from gateway.queues import Batch, EventKind, PendingEvent, make_edit_key
from gateway.supervisor import contain_adapter_errors
from gateway.texts.catalog import load_texts
from gateway.texts.command_names import find_alias, is_for_another_bot
from gateway.turns import TurnDispatcher

MAX_NAME_CHARS = 100


class Admission:
    """Accepts the events of all platforms.

    Implements `InboundSink`, `Autocompleter` and `UnstoredAnswerer`.
    """

    def __init__(
        self,
        access: Access,
        commands: CommandRegistry,
        delivery: Delivery,
        turns: TurnDispatcher,
        failures: Failures,
        rates: RateLimiter,
        clock: Clock,
    ) -> None:
        self._access = access
        self._commands = commands
        self._delivery = delivery
        self._inbox = delivery.inbox
        self._turns = turns
        self._failures = failures
        self._rates = rates
        self._clock = clock
        # The addresses at which the current outage of the store was reported.
        self._outage_addresses: set[Address] = set()
        # Strangers who are just being told that they get no answers. See `stranger_key`.
        self._told_strangers: set[str] = set()

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Store and queue an event, and return the id of its inbox entry.

        See `core.ports.InboundSink`.
        """
        inbound = _limit_inbound(inbound)
        try:
            return await self._admit(inbound, reply)
        except StoreError as error:
            self._report_outage(inbound, error)
            raise

    async def _admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Store and queue an event, and return the id of its inbox entry.

        Returns None if the event doesn't enter a queue: the sender has no access or is over a
        limit, or the event was stored before. Edits, deletions and messages from strangers are
        handled at once, so they usually return None, too.
        """
        access_version = self._turns.access_version
        inbound = await self._access.apply_chat_rules(await self._press_for_group(inbound))
        is_cancel = False
        if not inbound.is_addressed:
            inbound, is_cancel = await self._address(inbound)
        if inbound.group_id is not None:
            inbound = self._turns.edits.join_album(inbound)
        judgement = await self._access.judge(inbound)
        if is_cancel and judgement.may_cancel:
            await self._cancel_question(inbound, reply, judgement)
            return None
        if not judgement.verdict.is_accepted:
            await self._answer_unserved(inbound, reply, judgement)
            return None
        if inbound.kind not in ("message", "action"):
            return await self._apply(inbound, reply, judgement)

        inbound = _explain_bare_mention(inbound)
        named_inbound = inbound
        inbound = _clean_sender_name(await self._access.set_language(inbound, judgement))
        inbound = _read_remember_this(inbound)
        if can_confirm(inbound) and await self._inbox.is_known(inbound):
            # The platform delivered an old event again. It mustn't confirm a newer question.
            return None
        resolved_inbound = await self._commands.resolve(inbound, judgement.scope)
        if not self._may_run(resolved_inbound, judgement):
            return None
        try:
            await self._access.record_name(named_inbound)
            event = await self._store(resolved_inbound, reply, judgement)
        except StoreError:
            if await self._answer_unstored(resolved_inbound, reply, judgement):
                return None
            raise
        if event is None:
            return None
        self._outage_addresses.clear()
        if judgement.scope.is_group:
            await self._introduce(inbound, judgement)
        self._turns.enqueue(event)
        if self._turns.access_version != access_version:
            # The sender may have lost access since `judge`.
            await self._turns.revoke_unserved([event])
        return event.entry.id

    async def _press_for_group(self, press: Inbound) -> Inbound:
        """Return an admin's press on a button for an anonymous admin, in the name of the group.

        Telegram shows the account of whoever presses, but not the account of an anonymous admin
        who asked. So every admin of the group may answer such a question. Other events are
        returned unchanged.
        """
        if press.kind != "action" or press.is_direct:
            return press
        group = Account(platform=press.address.platform, user_id=press.address.chat_id)
        owner = await self._commands.actions.find_account(press.text, press.address)
        if owner != group or not await self._access.admins.is_admin(press):
            return press
        sender = Sender(id=group.user_id, name=press.sender.name, is_anonymous=True)
        return replace(press, sender=sender)

    async def _address(self, inbound: Inbound) -> tuple[Inbound, bool]:
        """Address Mneme by a message that answers its question or continues a burst.

        Returns the message, and whether it is a "no" to a question.
        """
        if await self._answers_question(inbound):
            return replace(inbound, is_addressed=True), not can_confirm(inbound)
        return self._turns.edits.join_burst(inbound), False

    async def _answers_question(self, inbound: Inbound) -> bool:
        """Return whether a message is only "yes" or "no", and answers a question to its sender."""
        if inbound.kind != "message" or not (can_confirm(inbound) or is_yes(inbound, kind="no")):
            return False
        if inbound.quote is not None and not inbound.quote.is_ours:
            return False
        return await self._commands.actions.has_question(inbound.address, inbound.account)

    def _may_run(self, resolved_inbound: ResolvedInbound, judgement: Judgement) -> bool:
        """Count a command, and return whether it's for Mneme and within its sender's rate limit."""
        inbound = resolved_inbound.inbound
        is_group_command = inbound.command is not None and not inbound.is_direct
        if is_group_command and is_for_another_bot(inbound, self._commands.specs):
            return False
        return judgement.is_owner or self._rates.acquire_command(inbound, resolved_inbound.command)

    async def _answer_unserved(self, inbound: Inbound, reply: Reply, judgement: Judgement) -> None:
        """Reply to someone without access if their event gets a reply. Ignored events get none."""
        if is_for_another_bot(inbound, self._commands.specs):
            return
        inbound = await self._access.set_group_language(inbound, judgement)
        if judgement.may_set_up and await self._run_command_without_access(
            inbound, reply, judgement
        ):
            return
        if judgement.verdict is Verdict.STRANGER:
            if inbound.kind == "edit":
                await self._access.people.amend_waiting(inbound)
            await self._answer_stranger(inbound, reply, judgement.scope)
        elif judgement.verdict is Verdict.OUTSIDER:
            await self._answer_outsider(inbound, reply)
        elif judgement.verdict is Verdict.ROLELESS and inbound.is_interaction:
            await self._tell(inbound, reply, load_texts(inbound.language).ROLE_NEEDED)
        elif judgement.verdict is Verdict.ANONYMOUS and self._rates.acquire_command(inbound, None):
            text = await self._access.explain_anonymity(inbound, judgement.scope)
            await self._tell(inbound, reply, text)

    async def _tell(self, inbound: Inbound, reply: Reply, text: str) -> None:
        """Answer an event of a sender without access, in private if the platform allows it."""
        answer = Answer(text=text, is_private=inbound.is_interaction)
        await self._delivery.send_unstored(inbound, reply, answer)

    async def _run_command_without_access(
        self, inbound: Inbound, reply: Reply, judgement: Judgement
    ) -> bool:
        """Run `/setup` of a sender who isn't answered here, but may manage the group.

        Members may also run `/forget`, because earlier words of theirs may be stored. The messages
        themselves aren't stored. Returns False for any other event.
        """
        is_command = inbound.kind == "message" and inbound.command is not None
        if not (is_command or (inbound.kind != "edit" and can_confirm(inbound))):
            return False
        resolved_inbound = await self._commands.resolve(inbound, judgement.scope)
        command = resolved_inbound.command
        names = {"setup"} if inbound.sender.is_anonymous else {"setup", "forget"}
        if command is None or (command.name not in names and command != YES_TO_SEVERAL):
            return False
        is_roleless = judgement.verdict is Verdict.ROLELESS
        is_served = is_roleless or await self._access.is_group_served(inbound, judgement.scope)
        if command.name == "forget" and not is_served:
            return False
        if not self._rates.acquire_command(inbound, command):
            return True
        inbound = _clean_sender_name(resolved_inbound.inbound)
        if is_served:
            await self._run_unstored(command, inbound, reply, judgement.scope)
        else:
            await self._tell(inbound, reply, self._access.explain_unserved_group(inbound))
        return True

    async def _apply(self, inbound: Inbound, reply: Reply, judgement: Judgement) -> int | None:
        """Apply an edit, a deletion, a reaction or a bot's arrival in a group at once.

        Returns the id of an inbox entry if the event leads to an answer, otherwise None.
        """
        if inbound.kind == "edit":
            return await self._apply_edit(inbound, reply, judgement)
        if inbound.kind == "reaction":
            return await self._apply_reaction(inbound, reply, judgement)
        if inbound.kind == "arrival":
            await self._introduce(await self._access.set_language(inbound, judgement), judgement)
            return None
        await self._access.people.amend_waiting(inbound)
        await self._turns.edits.amend(inbound, judgement.scope)
        return None

    async def _apply_reaction(
        self, inbound: Inbound, reply: Reply, judgement: Judgement
    ) -> int | None:
        """Treat a thumb as a reply to a question, or record it as feedback on an answer.

        On a message with a question, a thumb up presses its "Yes" button and a thumb down cancels
        the question.
        """
        account = inbound.account
        question = None
        if inbound.text in ("up", "down"):
            actions = self._commands.actions
            question = await actions.find_question(inbound.address, inbound.message_id, account)
        if question is None or question.address is None:
            return await self._record_thumb(inbound, reply, judgement)

        press = replace(
            inbound,
            kind="action",
            address=question.address,
            text=question.id if inbound.text == "up" else "",
            message_id=f"{inbound.text}:{inbound.message_id}:{inbound.sent_at.timestamp()}",
            reply_to=inbound.message_id,
        )
        if question.address != inbound.address:
            # Telegram doesn't say in which topic a member reacted.
            reply = self._delivery.create_reply(question.address)
        if inbound.text == "up":
            return await self._admit(press, reply)
        await self._cancel_question(press, reply, judgement)
        return None

    async def _record_thumb(
        self, inbound: Inbound, reply: Reply, judgement: Judgement
    ) -> int | None:
        """Record a thumb on an answer, or undo the answer's only change after a thumb down.

        Returns the id of the inbox entry of the command that undoes the change, or None.
        """
        thumbs = self._commands.thumbs
        if thumbs is None:
            return None
        inbound = await self._access.set_language(inbound, judgement)
        view = await self._access.load_view(judgement.scope, inbound.account)
        undo = await thumbs.find_undo(inbound, view.scopes)
        if undo is None:
            await thumbs.record(inbound, view.scope, view.scopes, view.is_owner)
            return None
        # The key isn't a message id. It's the same if the platform repeats the reaction.
        key = f"down:{inbound.message_id}:{inbound.sent_at.timestamp():.0f}"
        return await self._run_command(inbound, reply, judgement, undo, key)

    async def _cancel_question(self, press: Inbound, reply: Reply, judgement: Judgement) -> None:
        """Cancel the questions that wait for this person in this chat, and confirm that."""
        if await self._commands.take_confirmed_command(press) is None:
            press = await self._access.set_language(press, judgement)
            texts = load_texts(press.language)
            await self._delivery.send_unstored(press, reply, Answer(text=texts.QUESTION_CANCELLED))

    async def _apply_edit(self, inbound: Inbound, reply: Reply, judgement: Judgement) -> int | None:
        """Apply an edit to the stored message, and answer it again if it's the latest question.

        If it can't be answered again, the person is told why. Returns the id of the inbox entry of
        the `/retry` command that answers it, or None.
        """
        inbound = _clean_sender_name(await self._access.set_language(inbound, judgement))
        inbound = await self._turns.edits.read_command(inbound, judgement.scope)
        effect = await self._turns.edits.apply(inbound, judgement.scope)
        is_question = inbound.is_addressed and inbound.origin == "typed"
        has_content = bool(inbound.text or inbound.attachments)
        if effect is EditEffect.NOTHING or not (is_question and has_content):
            return None
        if effect is EditEffect.NEW_QUESTION:
            return await self._admit(replace(inbound, kind="message"), reply)
        if not judgement.is_owner and self._rates.has_too_many_turns(inbound):
            return None
        if inbound.command is not None:
            effect = EditEffect.RUNS_COMMAND
        if effect is not EditEffect.ANSWER:
            await explain_edit(self._delivery, inbound, effect)
            return None
        command = Command(name="retry")
        return await self._run_command(inbound, reply, judgement, command, make_edit_key(inbound))

    async def _run_command(
        self, inbound: Inbound, reply: Reply, judgement: Judgement, command: Command, key: str
    ) -> int | None:
        """Queue a command as if the person who edited or reacted had typed it.

        `key` is used as the message id, so a repeated event queues the command only once. Returns
        the id of the command's inbox entry, or None if the sender is over a limit or the command
        was queued before.
        """
        request = replace(
            inbound,
            kind="message",
            text=f"/{command.name} {command.arguments}".rstrip(),
            message_id=key,
            command=command,
            is_addressed=True,
            quote=None,
        )
        if not judgement.is_owner and not self._rates.acquire_command(request, command):
            return None
        resolved_inbound = await self._commands.resolve(request, judgement.scope)
        event = await self._store(resolved_inbound, reply, judgement)
        if event is None:
            return None
        self._turns.enqueue(event)
        return event.entry.id

    async def answer_unstored(self, inbound: Inbound, reply: Reply) -> bool:
        """Answer a read-only command without storing it: see `core.ports.UnstoredAnswerer`."""
        inbound = _limit_inbound(inbound)
        if inbound.command is None or not self._commands.is_read_only(inbound.command):
            return False
        judgement = await self._access.judge(inbound)
        if judgement.verdict is not Verdict.SERVED:
            return False
        resolved_inbound = await self._commands.resolve(
            _clean_sender_name(inbound), judgement.scope
        )
        if not self._may_run(resolved_inbound, judgement):
            return True
        return await self._answer_unstored(resolved_inbound, reply, judgement)

    async def report_missed(self, address: Address) -> None:
        """Notify the owner of messages that weren't read: see `core.ports.MissedReporter`."""
        await self._access.report_missed(address)

    async def _answer_unstored(
        self, resolved_inbound: ResolvedInbound, reply: Reply, judgement: Judgement
    ) -> bool:
        """Answer a read-only command whose event can't be stored.

        Returns False, without an answer, for any other event.
        """
        command = resolved_inbound.command
        is_served = judgement.verdict is Verdict.SERVED
        if command is None or not resolved_inbound.is_immediate or not is_served:
            return False
        inbound = resolved_inbound.inbound
        view = await self._access.load_view(judgement.scope, inbound.account)
        await self._failures.answer_unstored(command, inbound, reply, view)
        return True

    def _report_outage(self, inbound: Inbound, error: StoreError) -> None:
        """Tell a sender that the store is unavailable, once per address and outage."""
        if inbound.kind not in ("message", "action") or inbound.address in self._outage_addresses:
            return
        if self._access.is_probably_served(inbound):
            self._outage_addresses.add(inbound.address)
            self._failures.report_outage(self._access.set_known_language(inbound), error)

    async def _store(
        self, resolved_inbound: ResolvedInbound, reply: Reply, judgement: Judgement
    ) -> PendingEvent | None:
        """Store an event in the inbox. Returns None if it was stored before."""
        now = self._clock.now()
        entry_id = await self._inbox.accept(resolved_inbound.stored_inbound, now)
        if entry_id is None:
            return None
        inbound = resolved_inbound.inbound
        return PendingEvent(
            entry=InboxEntry(id=entry_id, inbound=inbound, received_at=now),
            reply=reply,
            scope=judgement.scope,
            outbox_item=self._delivery.draft_outbox_item(inbound),
            command=resolved_inbound.command,
            kind=_classify(resolved_inbound.command, is_immediate=resolved_inbound.is_immediate),
            is_addressed=judgement.verdict is Verdict.SERVED,
            counts_against_limits=not judgement.is_owner,
        )

    async def _answer_stranger(self, inbound: Inbound, reply: Reply, scope: Scope) -> None:
        """Answer a stranger in a direct chat.

        The only command for strangers is `/link`. Any other message is answered with a pairing
        code, unless the stranger already has one.
        """
        if inbound.kind not in ("message", "action"):
            return
        if not self._rates.acquire_command(inbound, inbound.command):
            return
        command = await self._commands.take_confirmed_command(inbound)
        command = command or resolve_names(inbound).command
        if command is not None and command.name == "link" and command.arguments.strip():
            await self._run_unstored(command, inbound, reply, scope)
        elif inbound.kind == "message":
            pairing = await self._access.create_pairing(inbound)
            if pairing is not None:
                texts = load_texts(inbound.language)
                answer = Answer(text=texts.STRANGER.format(code=pairing.code))
                await self._delivery.send_unstored(inbound, reply, answer)

    async def _answer_outsider(self, inbound: Inbound, reply: Reply) -> None:
        """Tell each person without access once in each group or server that they get no answers.

        The answer to a slash command is visible to one person only, so each command gets it.
        """
        text = load_texts(inbound.language).STRANGER_IN_GROUP
        if inbound.is_interaction:
            await self._tell(inbound, reply, text)
            return
        rules = self._access.chat_rules
        await rules.load()
        key = stranger_key(inbound)
        is_told = key in self._told_strangers or rules.get(key).refused_at is not None
        if is_told or not self._rates.acquire_refusal(inbound):
            return
        # The person may write in several channels at once.
        self._told_strangers.add(key)
        try:
            await self._tell(inbound, reply, text)
            # If the process crashes before this line, the sentence is repeated. In the other order,
            # it would be lost.
            await rules.save(key, refused_at=self._clock.now())
        finally:
            self._told_strangers.discard(key)

    async def _introduce(self, inbound: Inbound, judgement: Judgement) -> None:
        """Send a group or server its introduction, unless it knows what is stored and who reads it.

        A thread that begins with this message may not exist yet, so the channel gets the text. The
        outbox stores the text before it's recorded, so a crash in between loses nothing. Its key
        prevents a second introduction.
        """
        introduction = await self._access.find_introduction(inbound, judgement)
        if introduction is None:
            return
        await self._send_introduction(inbound, introduction)
        await self._access.record_introduction(introduction)

    async def _send_introduction(self, inbound: Inbound, introduction: Introduction) -> None:
        now = self._clock.now()
        address = inbound.address
        if address.thread_id == inbound.message_id:
            address = replace(address, thread_id=None)
        notice = OutboxItem(
            key=introduction.outbox_key,
            kind="notice",
            address=address,
            answer=Answer(text=introduction.text),
            next_at=now,
        )
        await self._delivery.outbox.put(notice)
        self._delivery.wake()

    async def _run_unstored(
        self, command: Command, inbound: Inbound, reply: Reply, scope: Scope
    ) -> None:
        """Run a command of someone without access, without storing the message or a session."""
        context = CommandContext(
            inbound=inbound,
            scope=scope,
            scopes=frozenset((scope,)),
            session=Session(address=inbound.address, scope=scope, started_at=self._clock.now()),
            is_owner=False,
        )
        answer, actions = await self._commands.answer(command, context)
        await self._commands.actions.add(actions)
        await self._delivery.send_unstored(inbound, reply, answer)

    def serve(self, entry_id: int) -> Awaitable[None]:
        """Start to answer a stored event. See `core.ports.InboundSink`."""
        return self._turns.serve(entry_id)

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Record the new chat id of a group. See `core.ports.InboundSink`."""
        await self._access.people.migrate_group(platform, old_chat_id, new_chat_id)
        await self._access.chat_rules.migrate_group(platform, old_chat_id, new_chat_id)

    async def autocomplete(
        self, inbound: Inbound, typed: str, source: str = ""
    ) -> Mapping[str, str]:
        """Suggest values for an option of a command. See `core.ports.Autocompleter`."""
        judgement = await self._access.judge(inbound)
        name = "" if inbound.command is None else inbound.command.name
        may_type = judgement.may_set_up and name == "setup"
        if not (name and (may_type or judgement.verdict is Verdict.SERVED)):
            return {}
        return await self._commands.autocomplete(inbound, typed, source, judgement.scope)

    async def resume(
        self,
        adapter: Adapter,
        max_age: timedelta,
        is_ours: Callable[[Address], bool] = lambda _: True,
    ) -> list[int]:
        """Queue the events that an earlier process left unanswered. Returns their ids.

        Pass the ids to `serve`. A message older than `max_age` gets a notice instead of an answer.
        Events at addresses for which `is_ours` returns False belong to other gateways.
        """
        events: list[PendingEvent] = []
        for entry in await self._inbox.list_waiting(adapter.platform):
            if not is_ours(entry.inbound.address):
                continue
            try:
                event = await self._resume_entry(entry, adapter, max_age)
            except Exception as error:
                await self._failures.set_aside(entry, error)
            else:
                if event is not None:
                    events.append(event)
        # The events are queued last. If an earlier step fails, all entries are resumed again, and
        # no event may be queued twice.
        for event in events:
            self._turns.enqueue(event)
        return [event.entry.id for event in events]

    async def _resume_entry(
        self, entry: InboxEntry, adapter: Adapter, max_age: timedelta
    ) -> PendingEvent | None:
        """Rebuild the event of an inbox entry that an earlier process left open.

        Returns None if the sender has lost access, or if the message is older than `max_age`. An
        old message gets a notice.
        """
        inbound = entry.inbound
        judgement = await self._access.judge(inbound)
        if not judgement.verdict.is_accepted:
            # The sender has lost access.
            await self._inbox.close([entry.id])
            return None
        outbox_item = await self._delivery.outbox.find(self._delivery.draft_outbox_item(inbound))
        command = await self._commands.resolve_command(inbound, judgement.scope)
        is_immediate = inbound.kind == "action"
        if command is not None:
            is_immediate = self._commands.is_read_only(command)
        event = PendingEvent(
            entry=entry,
            reply=adapter.reply(inbound.address, outbox_item.reply_to),
            scope=judgement.scope,
            outbox_item=outbox_item,
            command=command,
            kind=_classify(command, is_immediate=is_immediate),
            is_addressed=judgement.verdict is Verdict.SERVED,
            counts_against_limits=not judgement.is_owner,
        )
        age = self._clock.now() - entry.received_at
        if inbound.kind == "message" and event.is_addressed and age > max_age:
            notice = Answer(text=load_texts(inbound.language).away_notice(age))
            await self._failures.answer_instead(Batch([event]), notice)
            return None
        return event

    async def answer_approved(
        self,
        adapters: Collection[Adapter],
        max_age: timedelta,
        is_ours: Callable[[Address], bool] = lambda _: True,
    ) -> None:
        """Notify everyone who was approved recently, and answer their first message.

        This covers people on the platforms of `adapters` only. A message older than `max_age` gets
        a notice instead of an answer. If the process crashes, the next one repeats this, and
        nothing is sent twice. `is_ours` is that of `resume`.
        """
        adapters_by_platform = {adapter.platform: adapter for adapter in adapters}
        for pairing in await self._access.people.list_approved():
            adapter = adapters_by_platform.get(pairing.account.platform)
            if adapter is None or pairing.inbound is None:
                continue
            if is_ours(pairing.inbound.address):
                await self._welcome(pairing, pairing.inbound, adapter, max_age)
                await self._access.people.drop_pairing(pairing)

    async def _welcome(
        self, pairing: Pairing, inbound: Inbound, adapter: Adapter, max_age: timedelta
    ) -> None:
        """Notify a person that they were approved, and answer their earlier message."""
        now = self._clock.now()
        age = now - inbound.sent_at
        is_too_old = age > max_age
        texts = load_texts(inbound.language)
        text = texts.ADMITTED
        if inbound.text and is_too_old:
            text = f"{text}\n\n{texts.away_notice(age)}"
        await self._delivery.outbox.put(build_welcome(pairing, inbound, text, now))
        self._delivery.wake()
        if inbound.text and not is_too_old:
            with contextlib.suppress(DeliveryError), contain_adapter_errors():
                entry_id = await self.admit(inbound, adapter.reply(inbound.address))
                if entry_id is not None:
                    self.serve(entry_id)


def _explain_bare_mention(inbound: Inbound) -> Inbound:
    """Return a message that only mentions the bot as an ``/ask`` without a question.

    The model couldn't know the question. ``/ask`` explains how to ask.
    """
    has_content = inbound.text or inbound.attachments or inbound.quote is not None
    if inbound.kind != "message" or has_content or not inbound.is_mention:
        return inbound
    return replace(inbound, command=Command(name="ask"))


def _read_remember_this(inbound: Inbound) -> Inbound:
    """Return ``/remember this`` as a command or message that says what "this" is.

    Below a file, it becomes a message, because the model can look at the file. Otherwise, the
    command points to the message that it replies to. Other events are returned unchanged.
    """
    command = inbound.command
    if command is None or not _points_only(command.arguments):
        return inbound
    name = command.name
    if not is_command(name):
        name = find_alias(name, inbound.language) or name
    if name != "remember":
        return inbound
    if inbound.attachments and not inbound.is_interaction:
        return replace(inbound, command=None, text=inbound.text.removeprefix("/"))
    return replace(inbound, command=replace(command, arguments=""))


def _points_only(arguments: str) -> bool:
    """Return whether the arguments consist of a pointing word, such as "this" or "das"."""
    words = arguments.casefold().strip(" .!。！").split()
    pointing_words = language_data("confirmations", "gateway.commands")["pointing"].split()
    return len(words) <= 1 and set(words) <= set(pointing_words)


def _limit_inbound(inbound: Inbound) -> Inbound:
    """Return the event with the sender's name shortened to `MAX_NAME_CHARS`.

    The event keeps its command only if the sender typed it. A person who forwards someone else's
    command doesn't mean to run it.
    """
    if len(inbound.sender.name) > MAX_NAME_CHARS:
        sender = replace(inbound.sender, name=inbound.sender.name[:MAX_NAME_CHARS])
        inbound = replace(inbound, sender=sender)
    if inbound.command is not None and inbound.origin != "typed":
        inbound = replace(inbound, command=None)
    return inbound


def _clean_sender_name(inbound: Inbound) -> Inbound:
    """Return the event with the sender's name on one line, without hidden characters.

    People and models read this name. Approvals and links show the original name with its hidden
    characters marked.
    """
    name = to_single_line(inbound.sender.name) or inbound.sender.id
    if name == inbound.sender.name:
        return inbound
    return replace(inbound, sender=replace(inbound.sender, name=name))


def _classify(command: Command | None, *, is_immediate: bool) -> EventKind:
    if is_immediate:
        return EventKind.IMMEDIATE
    return EventKind.MESSAGE if command is None else EventKind.COMMAND
