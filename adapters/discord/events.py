"""Takes events of Discord in: finds their channel, keeps the order of each, gives them to the router.

Owns a task for each event; they outlive the gateway connection, so that an answer under way is not lost with it. What
fails is tried again, and in the end set aside as it came; what the store cannot take waits for it.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import discord

from adapters.discord import normalize
from adapters.discord.messages import UNREACHABLE, UNREADABLE, DiscordInteraction, DiscordMessages, delivered
from adapters.discord.normalize import PLATFORM, DiscordChannel
from adapters.streaming import StreamedReply
from core.errors import DeliveryError, MnemeError, StoreError
from core.ports import Clock, Reply, Sink, Suggester
from core.types import Address, CommandSpec, Inbound

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

T = TypeVar("T")
_Reader = Callable[[DiscordChannel], Inbound | None]

TRIES = 3
CAUGHT_UP_FOR = timedelta(hours=24)
CAUGHT_UP_MESSAGES = 50
"""Of what was missed, the last so many messages of a channel within this time are taken in later."""
CAUGHT_UP_CHANNELS = 100
CAUGHT_UP_TRIES = 6
CAUGHT_UP_AT_ONCE = 10
"""Discord takes fifty calls a second, and answers go on meanwhile."""
SUGGESTIONS = 25
"""The most that Discord shows."""
_STRANGE = (MnemeError, RuntimeError, *UNREACHABLE, *UNREADABLE)
"""What an event raises that is not as documented, or that meets a mistake of ours."""

log = logging.getLogger(__name__)


class DiscordEvents:
    """`client` gives a client that is logged in, or raises DeliveryError. `defer_after_s`: how long an interaction may
    wait for its answer before it is acknowledged without one; Discord waits for three seconds. `rest_s`: between two
    tries."""

    rest_s = 1.0
    waiting_most = 1000
    """Events in memory; what comes while there are more is fetched later."""
    defer_after_s = 2.0

    def __init__(self, client: Callable[[], Awaitable[discord.Client]], inbox: Inbox, clock: Clock) -> None:
        self.client = client
        self._inbox = inbox
        self._clock = clock
        self._sink: Sink | None = None
        self._specs: dict[str, CommandSpec] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._channels: dict[int, DiscordChannel] = {}
        self._is_full = False
        self._fetching = asyncio.Semaphore(CAUGHT_UP_AT_ONCE)
        self._gate = asyncio.Lock()

    def begin(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        self._sink = sink
        self._specs = {spec.name: spec for spec in commands}

    def end(self) -> None:
        """Events are dropped from here on; what was taken in goes on."""
        self._sink = None

    async def close(self) -> None:
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return StreamedReply(DiscordMessages(self, address, reply_to))

    def take(self, event: str, told: Any, raw: Any) -> bool:
        """Whether this event of the library is one that is taken in. `raw`: as it came."""
        match event:
            case "message":
                # A copy: the library changes its own when an edit comes, perhaps before anybody has read it.
                message = copy.copy(told)
                self._start_taking(message.channel.id, message, raw, self._reader(message))
            case "raw_message_edit":
                after, before, bot = told.message, told.cached_message, _bot(told.message)
                self._start_taking(
                    told.channel_id, after, raw, lambda channel: normalize.from_edit(after, before, channel, bot)
                )
            case "raw_message_delete":
                self._start_deleting(told.channel_id, told.message_id, told.cached_message, raw)
            case "raw_bulk_message_delete":
                cached = {message.id: message for message in told.cached_messages}
                for message_id in sorted(told.message_ids):
                    self._start_deleting(told.channel_id, message_id, cached.get(message_id), raw)
            case "interaction" if told.type is discord.InteractionType.autocomplete:
                if isinstance(self._sink, Suggester) and self._has_room():
                    self.start(self._suggest(self._sink, told))
            case "interaction":
                is_ours = told.type in (discord.InteractionType.application_command, discord.InteractionType.component)
                if self._sink is not None and is_ours and self._has_room():
                    self.start(self._take_interaction(self._sink, told, raw))
            case _:
                return False
        return True

    async def locate(self, channel_id: int, known: object = None, user_id: int | None = None) -> DiscordChannel | None:
        """A channel by id, asked of Discord when the library does not know it; None where the bot may not see it.
        `known`: the library's object, `user_id`: whose direct chat it is."""
        found = self._channels.get(channel_id) or normalize.channel_of(known, user_id)
        if found is None:
            client = await self.client()
            try:
                found = normalize.channel_of(client.get_channel(channel_id) or await client.fetch_channel(channel_id))
            except (discord.Forbidden, discord.NotFound) as error:
                log.warning("Channel %d of Discord cannot be looked up: %s", channel_id, error)
        if found is not None:
            self._channels[channel_id] = found
        return found

    async def catch_up(self) -> None:
        """Takes in what was said in known channels while there was no connection, or no room; until it is known what
        that is, nothing newer is taken."""
        async with self._gate:
            last_seen = await self._insist(lambda: self._inbox.last_seen(PLATFORM))
            aside = await self._insist(lambda: self._inbox.set_aside_ids(PLATFORM))
            self._is_full = False
            oldest = discord.utils.time_snowflake(self._clock.now() - CAUGHT_UP_FOR)
            seen = [(int(last_id), int(place.thread_id or place.chat_id)) for place, last_id in last_seen.items()]
            for last_id, channel_id in sorted(seen, reverse=True)[:CAUGHT_UP_CHANNELS]:
                self.start(self._catch_up_in(channel_id, max(last_id, oldest), aside))
            await asyncio.sleep(0)  # until each of these has the lock of its channel

    async def _catch_up_in(self, channel_id: int, last_id: int, aside: Collection[int]) -> None:
        """What comes meanwhile in that channel waits behind what was missed; what was set aside is not tried again."""
        async with self._ordered(channel_id):
            for raw in await self._latest(channel_id):
                message_id = int(raw["id"])
                if (sink := self._sink) is not None and message_id > last_id and message_id not in aside:
                    entry_id = await self._admitted(raw, partial(self._admit_missed, sink, raw))
                    if entry_id is not None:
                        self.start(sink.serve(entry_id))

    async def _latest(self, channel_id: int) -> list[Any]:
        """The last messages of a channel as they come, oldest first; none where the bot may not see them, or where they
        cannot be had for about a minute: those who write now wait no longer."""
        for attempt in range(CAUGHT_UP_TRIES):
            try:
                async with self._fetching:
                    client = await self.client()
                    with delivered():
                        return (await client.http.logs_from(channel_id, CAUGHT_UP_MESSAGES))[::-1]
            except DeliveryError as error:
                log.warning("What was missed in channel %d of Discord cannot be looked up: %s", channel_id, error)
                if error.is_permanent:
                    break
                await asyncio.sleep(error.retry_after_s or self.rest_s * 2**attempt)
        return []

    async def _admit_missed(self, sink: Sink, raw: Any) -> int | None:
        channel_id = int(raw["channel_id"])
        client, place = await self.client(), await self.locate(channel_id)
        guild_id = None if place is None else place.guild_id
        channel: Any = client.get_channel(channel_id) or client.get_partial_messageable(channel_id, guild_id=guild_id)
        message = discord.Message(state=client._connection, channel=channel, data=raw)
        if message.author == client.user:
            return None
        return await self._admit(sink, channel_id, channel, self._reader(message))

    def _start_taking(self, channel_id: int, message: discord.Message | None, raw: Any, read: _Reader) -> None:
        sink, known = self._sink, message.channel if message else None
        if sink is None or (message is not None and message.author.id == _bot(message).id) or not self._has_room():
            return
        self.start(self._take(sink, channel_id, raw, partial(self._admit, sink, channel_id, known, read)))

    def _start_deleting(self, channel_id: int, message_id: int, before: discord.Message | None, raw: Any) -> None:
        """`before`: the message where the library still knew it."""
        now = self._clock.now()
        self._start_taking(channel_id, before, raw, lambda place: normalize.from_delete(message_id, before, place, now))

    async def _admit(self, sink: Sink, channel_id: int, known: object, read: _Reader) -> int | None:
        channel = await self.locate(channel_id, known)
        inbound = read(channel) if channel is not None else None
        if inbound is None:
            return None
        quoted = inbound.message_id if inbound.kind == "message" and not inbound.is_direct else None
        return await sink.admit(inbound, self.reply(inbound.address, quoted))

    def _reader(self, message: discord.Message) -> _Reader:
        bot, specs = _bot(message), self._specs
        return lambda channel: normalize.from_message(message, channel, bot, specs)

    async def _take_interaction(self, sink: Sink, interaction: discord.Interaction[discord.Client], raw: Any) -> None:
        # What a button gives is for who pressed it; a command says so itself, an unknown one tells nobody else.
        spec = self._specs.get(str(dict(interaction.data or {}).get("name")))
        is_private = spec is None or spec.is_private
        messages = DiscordInteraction(interaction, is_private=is_private)

        async def admit() -> int | None:
            channel = await self._place_of(interaction)
            if channel is None:
                return None
            inbound = normalize.from_interaction(interaction, channel, self._specs)
            return await sink.admit(inbound, StreamedReply(messages))

        loop = asyncio.get_running_loop()
        deferral = loop.call_later(self.defer_after_s, lambda: self.start(messages.defer()))
        try:
            await self._take(sink, interaction.channel_id or interaction.id, raw, admit)
        finally:
            deferral.cancel()
        await messages.dismiss()

    async def _suggest(self, sink: Suggester, interaction: discord.Interaction[discord.Client]) -> None:
        """What the option that is being typed may be. Discord asks again with the next letter, so a failure is over."""
        options = dict(interaction.data or {}).get("options")
        given = [one for one in options if one.get("focused")] if isinstance(options, list) else []
        try:
            if given and (channel := await self._place_of(interaction)) is not None:
                inbound = normalize.from_interaction(interaction, channel, self._specs)
                found = await sink.suggest(inbound, str(given[0]["value"]))
                choices = [discord.app_commands.Choice(name=name, value=value) for value, name in found.items()]
                await interaction.response.autocomplete(choices[:SUGGESTIONS])
        except _STRANGE as error:
            log.warning("Nothing was suggested on Discord: %s", error)

    async def _place_of(self, interaction: discord.Interaction[discord.Client]) -> DiscordChannel | None:
        is_own = isinstance(interaction.channel, discord.DMChannel) and interaction.context.dm_channel
        user_id = interaction.user.id if is_own else None
        return await self.locate(interaction.channel_id or 0, interaction.channel, user_id)

    async def _take(self, sink: Sink, channel_id: int, raw: Any, admit: Callable[[], Awaitable[int | None]]) -> None:
        async with self._gate:
            pass  # whoever comes later waits behind, also for the lock of the channel
        async with self._ordered(channel_id):
            entry_id = await self._admitted(raw, admit)
        if entry_id is not None:
            await sink.serve(entry_id)

    def _ordered(self, channel_id: int) -> asyncio.Lock:
        """Locks are fair and tasks start in the order of their events, so each channel's events are admitted in it."""
        return self._locks.setdefault(channel_id, asyncio.Lock())

    async def _admitted(self, raw: Any, admit: Callable[[], Awaitable[int | None]]) -> int | None:
        """The one place where an event may fail: after its last try it is set aside, and those behind it go on."""
        failure = ""
        for _ in range(TRIES):
            try:
                return await self._insist(admit)
            except _STRANGE as error:
                failure = f"{type(error).__name__}: {error}"
                log.warning("An event of Discord failed: %s", failure)
                await asyncio.sleep(self.rest_s)
        await self.set_aside(raw, failure)
        return None

    async def _insist(self, work: Callable[[], Awaitable[T]]) -> T:
        """Again and again while the store is out of order."""
        while True:
            try:
                return await work()
            except StoreError as error:
                log.warning("An event of Discord waits for the store: %s", error)
                await asyncio.sleep(self.rest_s)

    async def set_aside(self, raw: Any, error: str) -> None:
        found = str(raw.get("id")) if isinstance(raw, dict) else ""
        update_id = int(found) if found.isdecimal() else discord.utils.time_snowflake(self._clock.now())
        log.error("An event of Discord is set aside (%d): %s", update_id, error)
        await self._insist(lambda: self._inbox.set_aside(PLATFORM, update_id, raw, error))

    def _has_room(self) -> bool:
        """Once there is none, events are dropped until those that were left out can be fetched."""
        self._is_full = self._is_full or len(self._tasks) >= self.waiting_most
        return not self._is_full

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("Work on a Discord event failed", exc_info=error)
        if self._is_full and self._sink is not None and len(self._tasks) == self.waiting_most // 2:
            self.start(self.catch_up())


def _bot(message: discord.Message) -> discord.ClientUser:
    bot: discord.ClientUser = message._state.user  # type: ignore[assignment]  # known since the login
    return bot
