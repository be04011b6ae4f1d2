"""Takes events of Discord in: finds their channel, keeps the order of each, gives them to the router.

Owns a task for each event; they outlive the gateway connection, so that an answer under way is not lost with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any
from weakref import WeakValueDictionary

import discord

from adapters.discord.errors import UNREACHABLE, UNREADABLE
from adapters.discord.interactions import DiscordInteraction
from adapters.discord.normalize import (
    DiscordChannel,
    channel_of,
    direct,
    from_command,
    from_delete,
    from_edit,
    from_message,
    from_press,
    room,
)
from adapters.streaming import StreamedReply
from core.errors import DeliveryError, MnemeError
from core.ports import Clock, Reply, Sink
from core.types import Address, CommandSpec, Inbound

DEFER_AFTER_S = 2.0
"""Discord waits three seconds for the first sign of an answer."""
CAUGHT_UP_FOR = timedelta(hours=24)
CAUGHT_UP_MESSAGES = 50
"""Of what was missed, the last so many messages of a channel within this time are taken in later."""
CAUGHT_UP_CHANNELS = 100
CHANNELS_KNOWN_FOR = timedelta(days=30)

log = logging.getLogger(__name__)


class DiscordEvents:
    """`client` gives a client that is logged in; `reply` makes a way back to an address; `last_seen` the last message
    id of every known channel."""

    def __init__(
        self,
        client: Callable[[], Awaitable[discord.Client]],
        reply: Callable[[Address, str | None], Reply],
        last_seen: Callable[[], Awaitable[Mapping[Address, str]]],
        clock: Clock,
        limit_chars: int,
    ) -> None:
        self._client = client
        self._reply = reply
        self._last_seen = last_seen
        self._clock = clock
        self._limit_chars = limit_chars
        self._defer_after_s = DEFER_AFTER_S
        self._sink: Sink | None = None
        self._specs: dict[str, CommandSpec] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._channels: dict[int, DiscordChannel] = {}
        self._interactions: set[int] = set()

    def begin(self, sink: Sink, commands: Sequence[CommandSpec], defer_after_s: float = DEFER_AFTER_S) -> None:
        self._defer_after_s = defer_after_s
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

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def catch_up(self) -> None:
        """Takes in what was said in known channels while there was no connection."""
        self.start(self._catch_up())

    def message(self, message: discord.Message) -> None:
        bot, specs = self._bot(message), self._specs
        self._start_taking(message.channel.id, message, lambda channel: from_message(message, channel, bot, specs))

    def edit(self, event: discord.RawMessageUpdateEvent) -> None:
        after, before, bot = event.message, event.cached_message, self._bot(event.message)
        self._start_taking(event.channel_id, after, lambda channel: from_edit(after, before, channel, bot))

    def delete(self, message_id: int, channel_id: int, before: discord.Message | None) -> None:
        """`before`: the message where the library still knew it."""
        now = self._clock.now()
        self._start_taking(channel_id, before, lambda channel: from_delete(message_id, before, channel, now))

    def interaction(self, interaction: discord.Interaction[discord.Client]) -> None:
        is_ours = interaction.type in (discord.InteractionType.application_command, discord.InteractionType.component)
        if self._sink is not None and is_ours and interaction.id not in self._interactions:
            self._interactions.add(interaction.id)
            self.start(self._take_interaction(self._sink, interaction))

    async def locate(self, channel_id: int, known: object = None) -> DiscordChannel | None:
        """A channel by id, asked of Discord when the library does not know it; None when that fails."""
        found = self._channels.get(channel_id) or channel_of(known)
        if found is None:
            try:
                client = await self._client()
                found = channel_of(client.get_channel(channel_id) or await client.fetch_channel(channel_id))
            except (DeliveryError, *UNREACHABLE, *UNREADABLE) as error:
                log.warning("Channel %d of Discord cannot be looked up, the event is skipped: %s", channel_id, error)
        if found is not None:
            self._channels[channel_id] = found
        return found

    async def _catch_up(self) -> None:
        oldest = discord.utils.time_snowflake(self._clock.now() - CAUGHT_UP_FOR)
        known_since = discord.utils.time_snowflake(self._clock.now() - CHANNELS_KNOWN_FOR)
        seen = [
            (int(last_id), address.thread_id or address.chat_id)
            for address, last_id in (await self._last_seen()).items()
        ]
        for last_id, channel_id in sorted(seen, reverse=True)[:CAUGHT_UP_CHANNELS]:
            if last_id < known_since:
                break
            after = discord.Object(max(last_id, oldest))
            try:
                client = await self._client()
                channel = client.get_channel(int(channel_id)) or await client.fetch_channel(int(channel_id))
                if not isinstance(channel, discord.abc.Messageable):
                    continue
                newest = channel.history(limit=CAUGHT_UP_MESSAGES, after=after, oldest_first=False)
                for message in reversed([message async for message in newest]):
                    self.message(message)
            except (DeliveryError, *UNREACHABLE, *UNREADABLE) as error:
                log.warning("What was missed in channel %s of Discord cannot be looked up: %s", channel_id, error)

    def _start_taking(
        self, channel_id: int, message: discord.Message | None, inbound: Callable[[DiscordChannel], Inbound | None]
    ) -> None:
        is_own = message is not None and message.author.id == self._bot(message).id
        if self._sink is not None and not is_own:
            self.start(self._take(self._sink, channel_id, message.channel if message else None, inbound))

    async def _take(
        self, sink: Sink, channel_id: int, known: object, inbound: Callable[[DiscordChannel], Inbound | None]
    ) -> None:
        async with self._ordered(channel_id):
            channel = await self.locate(channel_id, known)
            event = inbound(channel) if channel is not None else None
            entry_id = await self._admit(sink, event) if event is not None else None
        if entry_id is not None:
            await sink.serve(entry_id)

    async def _take_interaction(self, sink: Sink, interaction: discord.Interaction[discord.Client]) -> None:
        try:
            messages = DiscordInteraction(
                interaction, self._clock, is_private=self._is_private(interaction), limit_chars=self._limit_chars
            )
            async with asyncio.TaskGroup() as group:
                group.create_task(messages.defer_after(self._defer_after_s))
                await self._answer(sink, interaction, messages)
                messages.settle()
            await messages.dismiss()
        finally:
            self._interactions.discard(interaction.id)

    async def _answer(
        self, sink: Sink, interaction: discord.Interaction[discord.Client], messages: DiscordInteraction
    ) -> None:
        async with self._ordered(interaction.channel_id or interaction.id):
            channel = await self._locate_interaction(interaction)
            if channel is None:
                return
            if interaction.type is discord.InteractionType.component:
                inbound = from_press(interaction, channel)
            else:
                inbound = from_command(interaction, channel, self._specs)
            entry_id = await self._admit(sink, inbound, StreamedReply(messages))
        if entry_id is not None:
            await sink.serve(entry_id)

    async def _locate_interaction(self, interaction: discord.Interaction[discord.Client]) -> DiscordChannel | None:
        channel = interaction.channel
        if channel is None:
            log.warning("Interaction %d has no channel that can be read, it is dismissed", interaction.id)
            return None
        if interaction.context.private_channel:
            return room(channel.id)  # between people, the bot is a guest there
        if isinstance(channel, discord.DMChannel) and interaction.context.dm_channel:
            self._channels[channel.id] = direct(channel.id, interaction.user.id)
        return await self.locate(channel.id, channel)

    async def _admit(self, sink: Sink, inbound: Inbound, reply: Reply | None = None) -> int | None:
        """An event that cannot be written down is logged; the others go on."""
        quoted = inbound.message_id if inbound.kind == "message" and not inbound.is_direct else None
        try:
            return await sink.admit(inbound, reply or self._reply(inbound.address, quoted))
        except MnemeError as error:
            log.error("An event at %s was not taken in: %s", inbound.address.key, error)
            return None

    def _is_private(self, interaction: discord.Interaction[discord.Client]) -> bool:
        """What a button gives is for who pressed it; a command says so itself, an unknown one tells nobody else."""
        spec = self._specs.get(str(dict(interaction.data or {}).get("name")))
        return spec is None or spec.is_private

    def _ordered(self, channel_id: int) -> asyncio.Lock:
        """Locks are fair and tasks start in the order of their events, so each channel's events are admitted in it."""
        return self._locks.setdefault(channel_id, asyncio.Lock())

    @staticmethod
    def _bot(message: discord.Message) -> discord.ClientUser:
        bot: discord.ClientUser = message._state.user  # type: ignore[assignment]  # known since the login
        return bot

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("Work on a Discord event failed", exc_info=error)
