"""Finds out during setup which bot has a Discord token, how to invite it, and who writes to it.

No message is answered here. Discord doesn't list a bot's direct chats, so setup records where the
owner wrote, and Mneme fetches the message from there when it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import discord

from adapters.discord.client import log_in, set_server_urls
from adapters.discord.errors import CALL_ERRORS, describe_error
from adapters.discord.normalize import PLATFORM
from core.errors import PAYLOAD_ERRORS, AccessRefused, DeliveryError
from core.ports import FirstMessage
from core.types import Address, Sender

# What the bot may do in a guild: read and answer, also in threads, and send files.
PERMISSIONS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    read_message_history=True,
    attach_files=True,
    embed_links=True,
)
GUILD_SCOPES = ("bot", "applications.commands")
USER_SCOPES = ("applications.commands",)
# The values of `integration_type` in an invite link.
GUILD_INSTALL = 0
USER_INSTALL = 1

# A connection that isn't cancelled after this time is cancelled again.
CANCEL_AGAIN_S = 0.5


class DiscordSetup(discord.Client):
    """A bot during setup. Use `DiscordSetup.start_setup`."""

    def __init__(self) -> None:
        intents = discord.Intents(guilds=True, dm_messages=True, guild_messages=True)
        discord.VoiceClient.warn_nacl = False
        discord.VoiceClient.warn_dave = False
        super().__init__(intents=intents, allowed_mentions=discord.AllowedMentions.none())
        self._writers: asyncio.Queue[FirstMessage] = asyncio.Queue()

    @classmethod
    @asynccontextmanager
    async def start_setup(
        cls, token: str, api_url: str | None, gateway_url: str | None
    ) -> AsyncIterator[DiscordSetup]:
        """Log in, and return the setup.

        Raises AccessRefused if the token is refused, and DeliveryError if Discord can't be reached.
        """
        set_server_urls(api_url, gateway_url)
        client = cls()
        try:
            await log_in(client, token, has_message_content=False)
            yield client
        finally:
            await client.close()

    @property
    def has_message_content(self) -> bool:
        """Whether the bot may read guild messages that don't mention it."""
        flags = self.application_flags
        return flags.gateway_message_content or flags.gateway_message_content_limited

    @property
    def guild_invite(self) -> str:
        """The link that adds the bot to a server, with its scopes and permissions."""
        return (
            f"https://discord.com/oauth2/authorize?client_id={self.application_id}"
            f"&integration_type={GUILD_INSTALL}&scope={'+'.join(GUILD_SCOPES)}"
            f"&permissions={PERMISSIONS.value}"
        )

    @property
    def user_invite(self) -> str:
        """The link that adds the bot to a person's own apps, for direct chats."""
        return (
            f"https://discord.com/oauth2/authorize?client_id={self.application_id}"
            f"&integration_type={USER_INSTALL}&scope={'+'.join(USER_SCOPES)}"
        )

    async def on_message(self, message: discord.Message) -> None:
        """Record who wrote a direct message. The library calls this."""
        if message.author.bot or message.guild is not None:
            return
        user = message.author
        name = f"{user.display_name} (@{user.name})"
        first_message = FirstMessage(
            sender=Sender(id=str(user.id), name=name),
            text=message.content,
            address=Address(platform=PLATFORM, chat_id=str(message.channel.id)),
            message_id=str(message.id),
        )
        self._writers.put_nowait(first_message)

    async def watch_writers(self) -> AsyncIterator[FirstMessage]:
        """Yield each direct message, until the iteration is stopped.

        Raises AccessRefused if the token is refused, and DeliveryError if the connection fails.
        """
        connection = asyncio.create_task(self.connect(reconnect=False), name="discord setup")
        try:
            while True:
                writer = asyncio.create_task(self._writers.get())
                await asyncio.wait([connection, writer], return_when=asyncio.FIRST_COMPLETED)
                if writer.done():
                    yield writer.result()
                    continue
                writer.cancel()
                connection.result()
                raise DeliveryError("discord_closed")
        except discord.PrivilegedIntentsRequired as error:
            raise AccessRefused("discord_intent_refused") from error
        except (*CALL_ERRORS, *PAYLOAD_ERRORS) as error:
            raise DeliveryError("discord_unreachable", reason=describe_error(error)) from error
        finally:
            # Before Python 3.12, a request that ends just then swallows the cancellation.
            while not connection.done():
                connection.cancel()
                await asyncio.wait([connection], timeout=CANCEL_AGAIN_S)
            with contextlib.suppress(asyncio.CancelledError, *CALL_ERRORS):
                connection.result()
