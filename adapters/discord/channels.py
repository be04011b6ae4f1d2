"""Finds channels by their ids, caches them, and reads their messages."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakValueDictionary

import discord

from adapters.discord.errors import translate_errors
from adapters.discord.normalize import DiscordChannel, channel_of, is_personal
from adapters.streaming import PostLock
from core.ports import Clock

ClientSource = Callable[[], Awaitable[discord.Client]]
"""A function that returns a client that is logged in, or raises DeliveryError."""

# Discord returns at most this many messages at once.
PAGE_MESSAGES = 100
# To find a lost message, at most this many messages are read.
MAX_LOOKUP_MESSAGES = 500
# The maximum difference between this machine's clock and Discord's clock. Discord's ids contain
# times.
CLOCK_TOLERANCE = timedelta(minutes=5)

log = logging.getLogger(__name__)


class DiscordChannels:
    """A cache of channels. Unknown channels are fetched with the client from `get_client`.

    It also stores which messages this process has seen or posted.
    """

    def __init__(self, get_client: ClientSource, clock: Clock) -> None:
        self.get_client = get_client
        self._clock = clock
        self._channels: dict[int, DiscordChannel] = {}
        self._newest_ids: dict[int, int] = {}
        # Ids of the messages that were posted last.
        self._posted: deque[str] = deque(maxlen=1000)
        self._post_locks: WeakValueDictionary[str, PostLock] = WeakValueDictionary()

    def get_post_lock(self, channel_id: str) -> PostLock:
        """Return the lock of a channel, which prevents posts during searches for lost messages."""
        return self._post_locks.setdefault(channel_id, PostLock())

    def note_seen(self, channel_id: int, message_id: int) -> None:
        """Remember that a channel has a message."""
        self._newest_ids[channel_id] = max(message_id, self._newest_ids.get(channel_id, 0))

    def note_posted(self, channel_id: int, message_id: int) -> None:
        """Remember that the bot has posted a message."""
        self.note_seen(channel_id, message_id)
        self._posted.append(str(message_id))

    def is_posted(self, message_id: str) -> bool:
        """Return whether this process has posted a message."""
        return message_id in self._posted

    def find_newest(self, channel_id: int, other_id: int = 0) -> int:
        """Return the newest known message id of a channel, which is at least `other_id`.

        If no id is known, returns the id that a message from a few minutes ago would have.
        """
        newest_id = max(self._newest_ids.get(channel_id, 0), other_id)
        return newest_id or discord.utils.time_snowflake(self._clock.now() - CLOCK_TOLERANCE)

    async def list_from(self, channel_id: int, first_id: int) -> tuple[list[Any], bool]:
        """Return the raw data of the messages from `first_id` on, oldest first.

        Also returns whether the list is certainly complete. It may be incomplete if there are too
        many messages. It may also be incomplete if the message `first_id` is missing, because
        Discord returns an empty list if the bot may not read a channel. Raises DeliveryError if the
        messages can't be fetched.
        """
        client = await self.get_client()
        messages: list[Any] = []
        while len(messages) < MAX_LOOKUP_MESSAGES:
            after_id = int(messages[-1]["id"]) if messages else first_id - 1
            with translate_errors():
                page: list[Any] = await client.http.logs_from(
                    channel_id, PAGE_MESSAGES, after=after_id
                )
            messages += sorted(page, key=_read_id)
            if len(page) < PAGE_MESSAGES:
                return messages, bool(messages) and _read_id(messages[0]) == first_id
        return messages, False

    async def list_last(self, channel_id: int, since: datetime | None, limit: int) -> list[Any]:
        """Return the raw data of the last messages of a channel since a time, oldest first.

        Raises DeliveryError if the messages can't be fetched.
        """
        client = await self.get_client()
        first_id = 0 if since is None else discord.utils.time_snowflake(since)
        messages: list[Any] = []
        while len(messages) < limit:
            before_id = int(messages[-1]["id"]) if messages else None
            size = min(PAGE_MESSAGES, limit - len(messages))
            with translate_errors():
                page: list[Any] = await client.http.logs_from(channel_id, size, before=before_id)
            messages += [raw for raw in page if _read_id(raw) >= first_id]
            if len(page) < size or _read_id(page[-1]) < first_id:
                break
        return messages[::-1]

    async def find(
        self, channel_id: int, library_channel: object = None, user_id: int | None = None
    ) -> DiscordChannel | None:
        """Return the channel with this id, or None if the bot may not see it.

        The channel is fetched from Discord only if neither this cache nor the library has it.
        `library_channel` is the library's object for the channel, if there is one. `user_id` is the
        person of a direct chat.
        """
        channel = self._channels.get(channel_id) or channel_of(library_channel, user_id)
        if channel is None:
            channel = await self._fetch(channel_id)
        if channel is not None:
            self._channels[channel_id] = channel
        return channel

    async def find_for_interaction(
        self, interaction: discord.Interaction[discord.Client]
    ) -> DiscordChannel | None:
        """Return the channel in which a command was called or a button pressed.

        If only the person has installed the bot, the channel is their direct chat with the bot.
        Returns None if the bot may not see the channel.
        """
        if is_personal(interaction):
            client = await self.get_client()
            with translate_errors():
                direct_chat = await client.create_dm(discord.Object(interaction.user.id))
            return await self.find(direct_chat.id, direct_chat, interaction.user.id)
        user_id = None
        is_direct = isinstance(interaction.channel, discord.DMChannel)
        if is_direct and interaction.context.dm_channel:
            user_id = interaction.user.id
        return await self.find(interaction.channel_id or 0, interaction.channel, user_id)

    async def _fetch(self, channel_id: int) -> DiscordChannel | None:
        """Return the channel from the library's cache or from Discord.

        Returns None if the bot may not see the channel.
        """
        client = await self.get_client()
        try:
            library_channel = client.get_channel(channel_id)
            if library_channel is None:
                return channel_of(await client.fetch_channel(channel_id))
            return channel_of(library_channel)
        except (discord.Forbidden, discord.NotFound) as error:
            log.warning("Channel %d of Discord cannot be looked up: %s", channel_id, error)
            return None


def _read_id(raw: Any) -> int:
    return int(raw["id"])
