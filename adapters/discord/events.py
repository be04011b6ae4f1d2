"""Accepts Discord's events, finds their channels, and passes the events to the sink in order.

Each event has its own task. Tasks outlive the gateway connection, so no answer is lost with the
connection. An event that fails is tried again. After the last attempt, the event is set aside with
its raw data. While the store is unavailable, events wait for it.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import discord

from adapters.discord import normalize
from adapters.discord.catch_up import MissedMessages, list_thread_parents, subtract_time
from adapters.discord.channels import ClientSource, DiscordChannels
from adapters.discord.commands import find_focused_option, find_menu_command, join_options
from adapters.discord.components import shorten_to_cards
from adapters.discord.errors import CALL_ERRORS, translate_errors
from adapters.discord.forms import DiscordForms
from adapters.discord.messages import DiscordInteraction, DiscordMessages
from adapters.discord.normalize import PLATFORM, DiscordChannel, is_personal
from adapters.reactions import WORKING, WorkingMark
from adapters.streaming import StreamedReply
from core.errors import PAYLOAD_ERRORS, MnemeError, StoreError
from core.menus.command_specs import CommandSpec
from core.ports import Autocompleter, Clock, InboundSink, MissedReporter, PastMessage, Reply
from core.types import Address, Inbound

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

T = TypeVar("T")
# Builds the Inbound of an event when the channel is known. None means that the event is ignored.
_ReadInbound = Callable[[DiscordChannel], Inbound | None]
# Admits an event and returns the id of its inbox entry, if there is one.
_Admit = Callable[[], Awaitable[int | None]]

# An event that fails this often is set aside.
MAX_ATTEMPTS = 3
# Events of different channels aren't strictly in order. An event that is older than the newest one
# by more than this was certainly received before it.
EVENT_DISORDER = timedelta(minutes=1)
# A message may have arrived this long before the newest stored one, and not have been stored when
# the previous process was killed.
UNSTORED_PERIOD = timedelta(minutes=10)
# Discord shows at most this many choices.
MAX_AUTOCOMPLETE_CHOICES = 25
MAX_CHOICE_CHARS = 100
# The errors that can follow from an undocumented event, or from a mistake in the code that handles
# it.
EVENT_ERRORS = (MnemeError, RuntimeError, *CALL_ERRORS, *PAYLOAD_ERRORS)

# The name under which the bound of the threads is stored among those of the channels.
THREADS = "threads"

log = logging.getLogger(__name__)


class DiscordEvents:
    """Processes the events of one bot.

    `get_client` returns a client that is logged in, or raises DeliveryError.
    """

    # The delay between two attempts.
    retry_delay_s = 1.0
    # While this many events are in memory, further events are dropped. A catch-up fetches them
    # later.
    max_pending_events = 1000
    # An interaction without an answer is acknowledged after this time. Discord waits 3 seconds.
    defer_after_s = 2.0

    def __init__(
        self,
        get_client: ClientSource,
        inbox: Inbox,
        clock: Clock,
        *,
        marks_working: bool = False,
        opens_threads: bool = False,
        max_lines: int = 0,
    ) -> None:
        # Whether a mention in a channel begins a thread.
        self._opens_threads = opens_threads
        self._max_lines = max_lines
        # Whether a message has a reaction while its answer is being prepared.
        self._marks_working = marks_working
        self._channels = DiscordChannels(get_client, clock)
        self._forms = DiscordForms()
        # The last messages with which a thread has begun.
        self._thread_starts: deque[str] = deque(maxlen=1000)
        self._inbox = inbox
        self._unread = inbox.unread_bounds
        self._clock = clock
        self._sink: InboundSink | None = None
        self._specs: dict[str, CommandSpec] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        # Whether events were dropped since the last catch-up.
        self._is_full = False
        # Before the first dropped message, or None if none was dropped since the last catch-up.
        self._dropped_after: int | None = None
        self.missed = MissedMessages(self._channels, clock)
        # The tasks of catch-ups. They don't count as pending events.
        self._catch_up_tasks: set[asyncio.Future[None]] = set()
        self._catch_up_number = 0
        # The newest message that the gateway has delivered, or 0 if events were dropped since.
        self._newest_heard_id = 0
        # Acquired while a catch-up starts. New events wait for it.
        self._catch_up_lock = asyncio.Lock()

    def begin(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Accept events from now on, and pass them to `sink`."""
        self._sink = sink
        self._specs = {spec.name: spec for spec in commands}

    def end(self) -> None:
        """Ignore all further events. Events that were accepted before are still answered."""
        self._sink = None

    async def close(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        tasks = [*self._tasks, *self._catch_up_tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def start_task(self, work: Awaitable[None]) -> None:
        """Start a task. `close` cancels the task if it is still running."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def start_catch_up(self) -> None:
        """Start to fetch the messages that were missed. Call it when a session begins."""
        self._start_reading(self._catch_up())

    def _start_reading(self, work: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._catch_up_tasks.add(task)
        task.add_done_callback(self._catch_up_tasks.discard)
        task.add_done_callback(_log_failure)
        return task

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        messages = self._make_messages(address, reply_to)
        return StreamedReply(messages, adapt=shorten_to_cards)

    def _make_messages(
        self, address: Address, reply_to: str | None, thread_name: str = ""
    ) -> DiscordMessages:
        return DiscordMessages(
            self._channels,
            self.start_task,
            address,
            reply_to,
            self._forms,
            thread_name=thread_name,
            max_lines=self._max_lines,
        )

    def accept_event(self, event: str, payload: Any, raw: Any) -> bool:
        """Start the tasks for an event of the library. Returns False for other kinds of events.

        Events that concern nobody, such as messages of the bot, start no task.
        `payload` is the library's object, and `raw` is the data from which it was made.
        """
        match event:
            case "message":
                # Copy the object, because the library changes it when an edit arrives, which may be
                # before the task reads it.
                message = copy.copy(payload)
                self._newest_heard_id = max(self._newest_heard_id, message.id)
                self._channels.note_seen(message.channel.id, message.id)
                read_inbound = self._message_reader(message)
                self._start_message_task(message.channel.id, message, raw, read_inbound)
            case "raw_message_edit":
                self._start_edit_task(payload, raw)
            case "raw_message_delete":
                cached_message = payload.cached_message
                self._start_delete_task(payload.channel_id, payload.message_id, cached_message, raw)
            case "raw_bulk_message_delete":
                cached_messages = {message.id: message for message in payload.cached_messages}
                for message_id in sorted(payload.message_ids):
                    self._start_delete_task(
                        payload.channel_id, message_id, cached_messages.get(message_id), raw
                    )
            case "interaction":
                self._start_interaction_task(payload, raw)
            case "raw_reaction_add" | "raw_reaction_remove":
                self._start_reaction_task(payload, raw)
            case _:
                return False
        return True

    async def _catch_up(self) -> None:
        """Fetch messages that were missed because of a lost connection or an overload.

        The channels with the newest messages come first. The task of each channel acquires the
        channel's lock before new events can, so missed messages are admitted first. Threads with
        messages that are newer than nearly all stored messages are checked afterwards. This bound
        is stored, so that a later catch-up finds the threads that this one didn't reach.
        """
        async with self._catch_up_lock:
            self._catch_up_number += 1
            self.missed.members.clear()
            last_ids = await self._wait_for_store(
                lambda: self._inbox.load_last_message_ids(PLATFORM)
            )
            dead_letter_ids = await self._wait_for_store(
                lambda: self._inbox.list_dead_letter_ids(PLATFORM)
            )
            bounds = await self._wait_for_store(lambda: self._unread.load(PLATFORM))
            self._is_full = False
            heard_id = subtract_time(self._newest_heard_id, EVENT_DISORDER)
            channels = {
                int(address.thread_id or address.chat_id): int(last_id)
                for address, last_id in last_ids.items()
            }
            if self._opens_threads:
                channels |= list_thread_parents(last_ids)
            if not channels:
                return
            is_first = self._catch_up_number == 1
            unsure_period = UNSTORED_PERIOD if is_first else EVENT_DISORDER
            newest_id = subtract_time(max(channels.values()), unsure_period)
            if self._dropped_after is not None:
                newest_id = min(newest_id, self._dropped_after)
                self._dropped_after = None
            threads_after = await self._wait_for_store(
                lambda: self._unread.lower(PLATFORM, THREADS, newest_id)
            )
            for channel, last_id in bounds.items():
                if channel != THREADS:
                    channels[int(channel)] = min(last_id, channels.get(int(channel), last_id))
            read = partial(
                self._catch_up_channel,
                heard_id=heard_id,
                dead_letter_ids=dead_letter_ids,
                number=self._catch_up_number,
            )
            for last_id, channel_id in sorted(
                ((last_id, channel_id) for channel_id, last_id in channels.items()), reverse=True
            ):
                self._start_reading(read(channel_id, last_id))
            # Let each new task acquire the lock of its channel.
            await asyncio.sleep(0)
        await self._catch_up_threads(threads_after, set(channels), read)

    async def _catch_up_threads(
        self, after_id: int, known_ids: Collection[int], read: Callable[[int, int], Awaitable[None]]
    ) -> None:
        """Read the unknown threads with a message after `after_id`.

        A server whose threads can't be listed is tried again for a day.
        """
        number = self._catch_up_number
        client = await self._channels.get_client()
        tasks: list[asyncio.Future[None]] = []
        listed_ids: set[int] = set()
        for pause_s in self.missed.list_pauses():
            failed_ids: list[int] = []
            for guild_id in [guild.id for guild in client.guilds if guild.id not in listed_ids]:
                try:
                    thread_ids = await self.missed.list_active_threads(guild_id, after_id)
                except EVENT_ERRORS as error:
                    log.warning("The threads of server %d can't be listed: %s", guild_id, error)
                    failed_ids.append(guild_id)
                    continue
                listed_ids.add(guild_id)
                tasks += [
                    self._start_reading(read(thread_id, after_id))
                    for thread_id in thread_ids
                    if thread_id not in known_ids
                ]
            if not failed_ids:
                break
            await asyncio.sleep(pause_s)
            if self._is_over(number):
                return
        for guild_id in failed_ids:
            await self._report_missed_at(Address(platform=PLATFORM, chat_id=str(guild_id)))
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self._is_over(number):
            await self._wait_for_store(lambda: self._unread.delete(PLATFORM, THREADS))

    async def read_channel(
        self, address: Address, since: datetime | None, limit: int
    ) -> list[PastMessage]:
        """Return the last messages of a channel: see `core.ports.ChannelSource`."""
        channel_id = int(address.thread_id or address.chat_id)
        client = await self._channels.get_client()
        channel: Any = client.get_channel(channel_id) or client.get_partial_messageable(channel_id)
        messages = []
        for raw in await self._channels.list_last(channel_id, since, limit):
            message = normalize.build_message(client._connection, channel, raw)
            messages.append(normalize.convert_past_message(message, _get_bot(message)))
        return messages

    async def set_aside(self, raw: Any, error: str) -> None:
        """Store the raw data of an event that can't be handled.

        An event without an id is stored under an id that is generated from the current time.
        """
        event_id = str(raw.get("id")) if isinstance(raw, dict) else ""
        if event_id.isdecimal():
            update_id = int(event_id)
        else:
            update_id = discord.utils.time_snowflake(self._clock.now())
        log.error("An event of Discord is set aside (%d): %s", update_id, error)
        await self._wait_for_store(
            lambda: self._inbox.store_dead_letter(PLATFORM, update_id, raw, error)
        )

    async def _catch_up_channel(
        self,
        channel_id: int,
        last_id: int,
        *,
        heard_id: int,
        dead_letter_ids: Collection[int],
        number: int,
    ) -> None:
        """Admit the missed messages of one channel after `last_id`, before any new messages.

        If they can't be fetched, `last_id` is stored, new messages are admitted, and the missed
        ones are tried again for a day, and after a restart. Messages that were set aside aren't
        tried again. `number` is the number of the catch-up.
        """
        channel = str(channel_id)
        for pause_s in self.missed.list_pauses():
            async with self._channel_lock(channel_id):
                try:
                    if await self._admit_missed_messages(
                        channel_id, last_id, heard_id, dead_letter_ids
                    ):
                        await self._wait_for_store(lambda: self._unread.delete(PLATFORM, channel))
                        return
                except EVENT_ERRORS as error:
                    log.warning("Discord channel %d is read later: %s", channel_id, error)
                await self._wait_for_store(lambda: self._unread.lower(PLATFORM, channel, last_id))
            await asyncio.sleep(pause_s)
            if self._is_over(number):
                return
        await self._report_missed(channel_id)
        await self._wait_for_store(lambda: self._unread.delete(PLATFORM, channel))

    async def _admit_missed_messages(
        self, channel_id: int, last_id: int, heard_id: int, dead_letter_ids: Collection[int]
    ) -> bool:
        """Admit the missed messages of one channel. Returns False if the sink was removed.

        Reports to the sink if messages that may be addressed to the bot were left out.
        """
        messages, is_cut = await self.missed.fetch(channel_id, last_id, heard_id)
        if is_cut:
            await self._report_missed(channel_id)
        for raw in messages:
            sink = self._sink
            if sink is None:
                return False
            if int(raw["id"]) in dead_letter_ids:
                continue
            entry_id = await self._try_admit(raw, partial(self._admit_missed, sink, raw))
            if entry_id is not None:
                self.start_task(sink.serve(entry_id))
        return True

    def _is_over(self, number: int) -> bool:
        """Return whether a catch-up must not be repeated, because a later one reads the rest."""
        return self._sink is None or number != self._catch_up_number

    async def _report_missed(self, channel_id: int) -> None:
        """Report to the sink that messages of a channel were left out."""
        log.warning("Not all missed messages of Discord channel %d are read", channel_id)
        channel = await self._channels.find(channel_id)
        if channel is not None:
            await self._report_missed_at(channel.address)

    async def _report_missed_at(self, address: Address) -> None:
        sink = self._sink
        if isinstance(sink, MissedReporter):
            await self._wait_for_store(lambda: sink.report_missed(address))

    async def _admit_missed(self, sink: InboundSink, raw: Any) -> int | None:
        """Admit a message that was fetched as raw data, unless the bot itself wrote it.

        Returns the id of its inbox entry, or None if the message isn't admitted.
        """
        channel_id = int(raw["channel_id"])
        client = await self._channels.get_client()
        channel = await self._channels.find(channel_id)
        library_channel: Any = client.get_channel(channel_id)
        if library_channel is None:
            guild_id = None if channel is None else channel.guild_id
            library_channel = client.get_partial_messageable(channel_id, guild_id=guild_id)
        await self.missed.add_member(raw, None if channel is None else channel.guild_id)
        message = normalize.build_message(client._connection, library_channel, raw)
        if message.author == client.user:
            return None
        return await self._admit(sink, channel_id, library_channel, self._message_reader(message))

    def _start_edit_task(self, payload: Any, raw: Any) -> None:
        """Start a task for an edit. The library may have cached the message as it was before."""
        after = payload.message
        before = payload.cached_message
        bot = _get_bot(after)

        def read_inbound(channel: DiscordChannel) -> Inbound | None:
            return normalize.from_edit(after, before, channel, bot)

        self._start_message_task(payload.channel_id, after, raw, read_inbound)

    def _start_delete_task(
        self, channel_id: int, message_id: int, before: discord.Message | None, raw: Any
    ) -> None:
        """Start a task for a deletion. `before` is the cached copy of the message, if any."""
        now = self._clock.now()

        def read_inbound(channel: DiscordChannel) -> Inbound:
            return normalize.from_delete(message_id, before, channel, now)

        self._start_message_task(channel_id, before, raw, read_inbound)

    def _start_reaction_task(self, change: discord.RawReactionActionEvent, raw: Any) -> None:
        """Start a task for a reaction to a message, or for its removal."""
        now = self._clock.now()

        def read_inbound(channel: DiscordChannel) -> Inbound | None:
            return normalize.from_reaction(change, channel, now)

        self._start_message_task(change.channel_id, None, raw, read_inbound)

    def _start_message_task(
        self, channel_id: int, message: discord.Message | None, raw: Any, read_inbound: _ReadInbound
    ) -> None:
        """Start a task for a new, edited or deleted message, unless the bot itself wrote it."""
        sink = self._sink
        if sink is None:
            return
        if message is not None and message.author.id == _get_bot(message).id:
            return
        if not self._has_room():
            return
        library_channel = message.channel if message else None
        admit = partial(self._admit, sink, channel_id, library_channel, read_inbound)
        self.start_task(self._process(sink, channel_id, raw, admit))

    def _start_interaction_task(
        self, interaction: discord.Interaction[discord.Client], raw: Any
    ) -> None:
        """Start a task for a command, a button press, a form, or a request for autocompletion."""
        sink = self._sink
        if interaction.type is discord.InteractionType.autocomplete:
            if isinstance(sink, Autocompleter) and self._has_room():
                self.start_task(self._autocomplete(sink, interaction))
            return
        is_answerable = interaction.type in (
            discord.InteractionType.application_command,
            discord.InteractionType.component,
            discord.InteractionType.modal_submit,
        )
        if sink is not None and is_answerable and self._has_room():
            self.start_task(self._process_interaction(sink, interaction, raw))

    def _message_reader(self, message: discord.Message) -> _ReadInbound:
        """Return a function that builds the `Inbound` of a message when its channel is known."""
        bot = _get_bot(message)
        specs = self._specs
        return lambda channel: normalize.from_message(message, channel, bot, specs)

    async def _process(self, sink: InboundSink, channel_id: int, raw: Any, admit: _Admit) -> None:
        """Admit an event after the earlier events of its channel, and then answer it."""
        # If a catch-up is starting, wait until its tasks have acquired the locks of their channels.
        async with self._catch_up_lock:
            pass
        async with self._channel_lock(channel_id):
            entry_id = await self._try_admit(raw, admit)
        if entry_id is not None:
            await sink.serve(entry_id)

    async def _process_interaction(
        self, sink: InboundSink, interaction: discord.Interaction[discord.Client], raw: Any
    ) -> None:
        """Answer a command, a button press or a form, and acknowledge it in time."""
        try:
            if await self._forms.open_for(interaction, self._specs):
                return
        except EVENT_ERRORS as error:
            log.warning("A form can't be opened on Discord: %s", error)
            return
        form = self._forms.read(interaction, self._specs)
        messages = DiscordInteraction(
            interaction,
            is_private=is_personal(interaction) or self._is_private(interaction),
            forms=self._forms,
            max_lines=self._max_lines,
        )

        async def admit() -> int | None:
            channel = await self._channels.find_for_interaction(interaction)
            if channel is None:
                return None
            inbound = normalize.from_interaction(interaction, channel, self._specs, form)
            return await sink.admit(inbound, StreamedReply(messages, adapt=shorten_to_cards))

        loop = asyncio.get_running_loop()
        deferral = loop.call_later(self.defer_after_s, lambda: self.start_task(messages.defer()))
        try:
            await self._process(sink, interaction.channel_id or interaction.id, raw, admit)
        finally:
            deferral.cancel()
        await messages.dismiss()

    def _is_private(self, interaction: discord.Interaction[discord.Client]) -> bool:
        """Return whether the answer to an interaction will be ephemeral.

        Answers to buttons and unknown commands are ephemeral. For known commands, `is_private` of
        the command or of its action decides.
        """
        data: dict[str, Any] = dict(interaction.data or {})
        form = self._forms.read(interaction, self._specs)
        if form is not None and form.choice is not None:
            return form.choice.spec.is_private
        if form is not None and form.spec is not None:
            return form.spec.is_private or form.spec.is_private_action(form.action_name)
        spec = find_menu_command(data, self._specs) or self._specs.get(str(data.get("name")))
        if spec is None:
            return True
        action = spec.find_action(join_options(data.get("options"), spec).partition(" ")[0])
        return spec.is_private or (action is not None and action.is_private)

    async def _autocomplete(
        self, sink: Autocompleter, interaction: discord.Interaction[discord.Client]
    ) -> None:
        """Send suggestions for the option that is being typed.

        A failure is only logged, because Discord asks again with the next letter.
        """
        data: dict[str, Any] = dict(interaction.data or {})
        spec = self._specs.get(str(data.get("name")))
        focused = None if spec is None else find_focused_option(data, spec)
        if focused is None:
            return
        option, typed = focused
        try:
            channel = await self._channels.find_for_interaction(interaction)
            if channel is None:
                return
            inbound = normalize.from_interaction(interaction, channel, self._specs)
            labels = await sink.autocomplete(inbound, typed, option.suggests)
            choices = [
                discord.app_commands.Choice(name=label[:MAX_CHOICE_CHARS], value=value)
                for value, label in labels.items()
                if label and len(value) <= MAX_CHOICE_CHARS
            ]
            await interaction.response.autocomplete(choices[:MAX_AUTOCOMPLETE_CHOICES])
        except EVENT_ERRORS as error:
            log.warning("Nothing was suggested on Discord: %s", error)

    async def _admit(
        self,
        sink: InboundSink,
        channel_id: int,
        library_channel: object,
        read_inbound: _ReadInbound,
    ) -> int | None:
        """Normalize an event and admit it.

        Returns the id of its inbox entry, or None if the event isn't admitted.
        """
        channel = await self._channels.find(channel_id, library_channel)
        if channel is None:
            return None
        inbound = read_inbound(channel)
        if inbound is None:
            return None
        if inbound.text or inbound.attachments or inbound.kind != "message":
            # A mention without a text is answered in the channel.
            inbound = self._move_to_thread(inbound, channel)
        return await sink.admit(inbound, self._reply_to_message(inbound))

    def _move_to_thread(self, inbound: Inbound, channel: DiscordChannel) -> Inbound:
        """Return a mention in a channel as the beginning of a thread, if the settings say so.

        A thread that begins with a message has the id of the message, so the address is known
        before the thread exists. The reply creates the thread. Later events of that message belong
        to the thread, too.
        """
        if not self._opens_threads or channel.guild_id is None or inbound.address.thread_id:
            return inbound
        is_mention = inbound.kind == "message" and inbound.is_addressed and not inbound.command
        if is_mention:
            self._thread_starts.append(inbound.message_id)
        if not is_mention and inbound.message_id not in self._thread_starts:
            return inbound
        return replace(inbound, address=replace(inbound.address, thread_id=inbound.message_id))

    def _reply_to_message(self, inbound: Inbound) -> Reply:
        """Create the reply to an event. In a group, the answer replies to the message."""
        reply_to = None
        if inbound.kind in ("message", "edit") and not inbound.is_direct:
            reply_to = inbound.message_id
        messages = self._make_messages(inbound.address, reply_to, inbound.text)
        if not self._marks_working or inbound.kind != "message":
            return StreamedReply(messages, adapt=shorten_to_cards)

        async def change(is_shown: bool) -> None:
            """Add or remove the mark on the person's message."""
            client = await self._channels.get_client()
            channel_id = int(inbound.address.thread_id or inbound.address.chat_id)
            if inbound.address.thread_id == inbound.message_id:
                channel_id = int(inbound.address.chat_id)
            channel = client.get_partial_messageable(channel_id)
            message = channel.get_partial_message(int(inbound.message_id))
            with translate_errors():
                if is_shown:
                    await message.add_reaction(WORKING)
                elif client.user is not None:
                    await message.remove_reaction(WORKING, client.user)

        return StreamedReply(messages, mark=WorkingMark(change), adapt=shorten_to_cards)

    async def _try_admit(self, raw: Any, admit: _Admit) -> int | None:
        """Admit an event, or set it aside after the last failed attempt.

        Later events can then continue. Returns the id of its inbox entry, or None if the event
        isn't admitted.
        """
        failure = ""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._wait_for_store(admit)
            except EVENT_ERRORS as error:
                failure = f"{type(error).__name__}: {error}"
                log.warning("An event of Discord failed: %s", failure)
                await asyncio.sleep(self.retry_delay_s)
        await self.set_aside(raw, failure)
        return None

    async def _wait_for_store(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` until it succeeds with the store available, and return its result."""
        while True:
            try:
                return await work()
            except StoreError as error:
                log.warning("An event of Discord waits for the store: %s", error)
                await asyncio.sleep(self.retry_delay_s)

    def _channel_lock(self, channel_id: int) -> asyncio.Lock:
        """Return the lock that keeps a channel's events in order.

        Tasks start in the order of their events, and asyncio's locks are fair.
        """
        return self._locks.setdefault(channel_id, asyncio.Lock())

    def _has_room(self) -> bool:
        """Return whether another event fits into memory.

        After an event was dropped, the result is False until a catch-up fetches the dropped events.
        """
        if len(self._tasks) >= self.max_pending_events:
            self._is_full = True
            if self._dropped_after is None:
                self._dropped_after = subtract_time(self._newest_heard_id, EVENT_DISORDER)
            self._newest_heard_id = 0
        return not self._is_full

    def _on_task_done(self, task: asyncio.Future[None]) -> None:
        """Log the failure of a task.

        If events were dropped, start a catch-up when the number of tasks has fallen to half of the
        maximum.
        """
        self._tasks.discard(task)
        _log_failure(task)
        is_half_full = len(self._tasks) == self.max_pending_events // 2
        if self._is_full and self._sink is not None and is_half_full:
            self.start_catch_up()


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("Work on a Discord event failed", exc_info=error)


def _get_bot(message: discord.Message) -> discord.ClientUser:
    # `user` isn't None, because the client is logged in.
    bot: discord.ClientUser = message._state.user  # type: ignore[assignment]
    return bot
