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
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import discord

from adapters.discord import normalize
from adapters.discord.channels import PAGE_MESSAGES, ClientSource, DiscordChannels
from adapters.discord.commands import find_focused_option, find_menu_command, join_options
from adapters.discord.components import shorten_to_cards
from adapters.discord.errors import CALL_ERRORS, translate_errors
from adapters.discord.forms import DiscordForms
from adapters.discord.messages import DiscordInteraction, DiscordMessages
from adapters.discord.normalize import PLATFORM, DiscordChannel, is_personal
from adapters.reactions import WORKING, WorkingMark
from adapters.streaming import StreamedReply
from core.errors import PAYLOAD_ERRORS, DeliveryError, MnemeError, StoreError
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
# The catch-up after a lost connection fetches messages of this period, at most this many per
# channel and from at most this many channels and threads. The owner is told if that isn't enough.
CATCH_UP_PERIOD = timedelta(hours=24)
CATCH_UP_MESSAGES = 1000
CATCH_UP_CHANNELS = 100
# Events of different channels aren't strictly in order. An event that is older than the newest one
# by more than this was certainly received before it.
EVENT_DISORDER = timedelta(minutes=1)
CATCH_UP_ATTEMPTS = 6
# Discord allows fifty calls per second, and answers need some of them.
CATCH_UP_CONCURRENCY = 10
# Discord shows at most this many choices.
MAX_AUTOCOMPLETE_CHOICES = 25
MAX_CHOICE_CHARS = 100
# The errors that can follow from an undocumented event, or from a mistake in the code that handles
# it.
EVENT_ERRORS = (MnemeError, RuntimeError, *CALL_ERRORS, *PAYLOAD_ERRORS)

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
        self._clock = clock
        self._sink: InboundSink | None = None
        self._specs: dict[str, CommandSpec] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        # Whether events were dropped since the last catch-up.
        self._is_full = False
        self._catch_up_slots = asyncio.Semaphore(CATCH_UP_CONCURRENCY)
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
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def start_task(self, work: Awaitable[None]) -> None:
        """Start a task. `close` cancels the task if it is still running."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

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

    async def catch_up(self) -> None:
        """Fetch messages that were missed because of a lost connection or an overload.

        Only the channels with the newest messages are checked. The task of each channel acquires
        the channel's lock before new events can, so missed messages are admitted first. Threads
        with messages that are newer than all stored messages are checked afterwards.
        """
        async with self._catch_up_lock:
            last_ids = await self._wait_for_store(
                lambda: self._inbox.load_last_message_ids(PLATFORM)
            )
            dead_letter_ids = await self._wait_for_store(
                lambda: self._inbox.list_dead_letter_ids(PLATFORM)
            )
            self._is_full = False
            heard_id = _subtract_time(self._newest_heard_id, EVENT_DISORDER)
            channels = [
                (int(last_id), int(address.thread_id or address.chat_id))
                for address, last_id in last_ids.items()
            ]
            if self._opens_threads:
                channels += _list_thread_parents(last_ids)
            channels.sort(reverse=True)
            for last_id, channel_id in channels[:CATCH_UP_CHANNELS]:
                self.start_task(
                    self._catch_up_channel(channel_id, last_id, heard_id, dead_letter_ids)
                )
            # Let each new task acquire the lock of its channel.
            await asyncio.sleep(0)
        if not channels:
            return
        newest_id = channels[0][0]
        known_ids = {channel_id for _, channel_id in channels}
        try:
            thread_ids = await self._list_active_threads(newest_id)
        except MnemeError as error:
            log.warning("The threads of Discord can't be listed: %s", error)
            return
        for thread_id in thread_ids:
            if thread_id not in known_ids:
                self.start_task(
                    self._catch_up_channel(thread_id, newest_id, heard_id, dead_letter_ids)
                )

    async def _list_active_threads(self, after_id: int) -> list[int]:
        """Return the ids of threads that began or got a message after the message `after_id`.

        If the threads of a server can't be listed, they are left out.
        """
        client = await self._channels.get_client()
        active_threads: list[tuple[int, int]] = []
        for guild in client.guilds:
            try:
                with translate_errors():
                    listing = await client.http.get_active_threads(guild.id)
                    for thread in listing["threads"]:
                        newest_id = int(thread.get("last_message_id") or thread["id"])
                        active_threads.append((newest_id, int(thread["id"])))
            except DeliveryError as error:
                log.warning("The threads of Discord server %d can't be listed: %s", guild.id, error)
        active_threads.sort(reverse=True)
        new_threads = [thread_id for newest_id, thread_id in active_threads if newest_id > after_id]
        return new_threads[:CATCH_UP_CHANNELS]

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
        self, channel_id: int, last_id: int, heard_id: int, dead_letter_ids: Collection[int]
    ) -> None:
        """Admit the missed messages of one channel after `last_id`, before any new messages.

        Messages that were set aside aren't tried again.
        """
        async with self._channel_lock(channel_id):
            for raw in await self._fetch_missed_messages(channel_id, last_id, heard_id):
                sink = self._sink
                if sink is None or int(raw["id"]) in dead_letter_ids:
                    continue
                entry_id = await self._try_admit(raw, partial(self._admit_missed, sink, raw))
                if entry_id is not None:
                    self.start_task(sink.serve(entry_id))

    async def _fetch_missed_messages(
        self, channel_id: int, last_id: int, heard_id: int
    ) -> list[Any]:
        """Return the raw data of the messages after `last_id`, oldest first.

        Messages that are too old, and the oldest ones if there are too many, are left out. This is
        reported to the sink if some of them may be addressed to the bot. Messages up to `heard_id`
        don't count, because the gateway has already delivered them.
        """
        oldest_id = discord.utils.time_snowflake(self._clock.now() - CATCH_UP_PERIOD)
        first_id = max(last_id, oldest_id)
        messages: list[Any] = []
        is_complete = False
        while not is_complete and len(messages) < CATCH_UP_MESSAGES:
            before_id = int(messages[-1]["id"]) if messages else None
            page = await self._fetch_page(channel_id, before_id)
            messages += page
            is_complete = len(page) < PAGE_MESSAGES or int(page[-1]["id"]) <= first_id

        unheard_id = max(last_id, heard_id)
        old_messages = [raw for raw in messages if unheard_id < int(raw["id"]) <= oldest_id]
        is_cut = not is_complete and int(messages[-1]["id"]) > heard_id
        if is_cut or await self._has_addressed(channel_id, old_messages):
            await self._report_missed(channel_id)
        missed_messages = [raw for raw in messages if int(raw["id"]) > first_id]
        return missed_messages[:CATCH_UP_MESSAGES][::-1]

    async def _has_addressed(self, channel_id: int, messages: Sequence[Any]) -> bool:
        """Return whether one of these messages is addressed to the bot.

        In a direct chat, all messages of the person are addressed to the bot. Elsewhere, messages
        that mention the bot are.
        """
        if not messages:
            return False
        channel = await self._channels.find(channel_id)
        client = await self._channels.get_client()
        if channel is None or client.user is None:
            return False
        if channel.guild_id is None:
            return any(int(raw["author"]["id"]) != client.user.id for raw in messages)
        mentions = [user for raw in messages for user in raw["mentions"]]
        return any(int(user["id"]) == client.user.id for user in mentions)

    async def _report_missed(self, channel_id: int) -> None:
        """Report to the sink that messages of a channel were left out."""
        log.warning("Not all missed messages of Discord channel %d are read", channel_id)
        channel = await self._channels.find(channel_id)
        sink = self._sink
        if channel is not None and isinstance(sink, MissedReporter):
            await self._wait_for_store(lambda: sink.report_missed(channel.address))

    async def _fetch_page(self, channel_id: int, before_id: int | None) -> list[Any]:
        """Return the raw data of the last messages before `before_id`, newest first.

        Returns an empty list if the bot may not see the messages, or if the attempts have failed
        for about a minute. New messages in the channel wait meanwhile.
        """
        for attempt in range(CATCH_UP_ATTEMPTS):
            try:
                async with self._catch_up_slots:
                    client = await self._channels.get_client()
                    with translate_errors():
                        page: list[Any] = await client.http.logs_from(
                            channel_id, PAGE_MESSAGES, before=before_id
                        )
                        return page
            except DeliveryError as error:
                log.warning(
                    "The missed messages of Discord channel %d cannot be fetched: %s",
                    channel_id,
                    error,
                )
                if error.is_permanent:
                    break
                await asyncio.sleep(error.retry_after_s or self.retry_delay_s * 2**attempt)
        return []

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
        if inbound.kind == "message" and not inbound.is_direct:
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
            self._newest_heard_id = 0
        return not self._is_full

    def _on_task_done(self, task: asyncio.Future[None]) -> None:
        """Log the failure of a task.

        If events were dropped, start a catch-up when the number of tasks has fallen to half of the
        maximum.
        """
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("Work on a Discord event failed", exc_info=error)
        is_half_full = len(self._tasks) == self.max_pending_events // 2
        if self._is_full and self._sink is not None and is_half_full:
            self.start_task(self.catch_up())


def _list_thread_parents(last_ids: Mapping[Address, str]) -> list[tuple[int, int]]:
    """Return the channels with stored messages only in threads, as (newest thread id, channel id).

    If every mention begins a thread, all messages for the bot in such a channel are in its threads.
    """
    known_ids = {address.chat_id for address in last_ids if address.thread_id is None}
    newest_ids: dict[str, int] = {}
    for address in last_ids:
        if address.thread_id is not None and address.chat_id not in known_ids:
            newest_id = max(newest_ids.get(address.chat_id, 0), int(address.thread_id))
            newest_ids[address.chat_id] = newest_id
    return [(newest_id, int(chat_id)) for chat_id, newest_id in newest_ids.items()]


def _subtract_time(snowflake: int, period: timedelta) -> int:
    """Return the id that a message would have if it had been sent earlier by `period`."""
    milliseconds = int(period.total_seconds() * 1000)
    return max(snowflake - (milliseconds << 22), 0)


def _get_bot(message: discord.Message) -> discord.ClientUser:
    # `user` isn't None, because the client is logged in.
    bot: discord.ClientUser = message._state.user  # type: ignore[assignment]
    return bot
