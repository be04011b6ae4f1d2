"""What a Discord channel is to us: its address, its scope, and where its messages are found.

Fails closed: a channel whose kind is not certain is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import discord

from core.types import Address, Scope

PLATFORM = "discord"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordChannel:
    """`user_id`: the person of a direct channel. `guild_id`: None outside of guilds."""

    address: Address
    scope: Scope
    is_direct: bool
    user_id: str | None = None
    guild_id: int | None = None

    @property
    def link_base(self) -> str:
        """What with a message id behind it opens that message; of channels outside of guilds for their people."""
        channel_id = self.address.thread_id or self.address.chat_id
        return f"https://discord.com/channels/{self.guild_id or '@me'}/{channel_id}/"


def channel_of(channel: Any) -> DiscordChannel | None:
    """A channel object of the library; None when only an id is known, so that it has to be fetched."""
    if isinstance(channel, discord.DMChannel):
        return direct(channel.id, channel.recipient.id) if channel.recipient is not None else None
    if isinstance(channel, discord.GroupChannel):
        return room(channel.id)
    if isinstance(channel, discord.Thread):
        owner_id = channel.id if channel.is_private() else channel.parent_id
        return DiscordChannel(
            address=Address(platform=PLATFORM, chat_id=str(channel.parent_id), thread_id=str(channel.id)),
            scope=Scope.room(PLATFORM, str(owner_id)),
            is_direct=False,
            guild_id=channel.guild.id,
        )
    if isinstance(channel, discord.abc.GuildChannel):
        return room(channel.id, channel.guild.id)
    return None


def direct(channel_id: int, user_id: int) -> DiscordChannel:
    """The direct channel of the bot with one person."""
    return DiscordChannel(
        address=Address(platform=PLATFORM, chat_id=str(channel_id)),
        scope=Scope.account(PLATFORM, str(user_id)),
        is_direct=True,
        user_id=str(user_id),
    )


def room(channel_id: int, guild_id: int | None = None) -> DiscordChannel:
    """A channel that several people see."""
    return DiscordChannel(
        address=Address(platform=PLATFORM, chat_id=str(channel_id)),
        scope=Scope.room(PLATFORM, str(channel_id)),
        is_direct=False,
        guild_id=guild_id,
    )
