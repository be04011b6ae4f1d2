"""Finds channels by their ids, and caches them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import discord

from adapters.discord.normalize import DiscordChannel, channel_of

ClientSource = Callable[[], Awaitable[discord.Client]]
"""Returns a client that is logged in, or raises DeliveryError."""

log = logging.getLogger(__name__)


class DiscordChannels:
    """A cache of channels. Unknown channels are fetched with the client of `get_client`."""

    def __init__(self, get_client: ClientSource) -> None:
        self.get_client = get_client
        self._channels: dict[int, DiscordChannel] = {}

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
        """Return the channel in which a command was called or a button pressed."""
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
