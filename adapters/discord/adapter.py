"""Connects to Discord: direct chats, mentions in guild channels, threads, commands and buttons.

Events arrive over Discord's gateway (a WebSocket), and answers are sent over HTTP. The library's
client does both. It logs in once and connects to the gateway as often as necessary. The sink
decides who gets an answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import discord

from adapters.discord.client import (
    API_URL,
    DiscordClient,
    log_in,
    set_server_urls,
)
from adapters.discord.commands import command_payloads
from adapters.discord.errors import CALL_ERRORS, describe_error, translate_errors
from adapters.discord.events import DiscordEvents
from adapters.discord.normalize import PLATFORM
from adapters.poll_lock import PollLock
from core.errors import PAYLOAD_ERRORS, AccessRefused, DeliveryError, FileError, MnemeError
from core.menus.command_specs import CommandSpec
from core.ports import Clock, InboundSink, PastMessage, Reply
from core.text.normalize import language_data
from core.types import Address, Attachment, Inbound

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

# The longest pause between two sessions. Discord allows a thousand sessions per day.
MAX_PAUSE_S = 300.0
# If a connection lasted longer than this, the next pause is short again.
STABLE_AFTER_S = 60.0
# A cancellation that arrives while the library connects can get lost, so it is repeated at this
# interval.
CANCEL_INTERVAL_S = 0.2
# The close code of the gateway if the token is invalid.
INVALID_TOKEN = 4004
# Stands between the names of a channel and a thread.
SEPARATOR = " / "

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Discord:
    """The adapter for one bot."""

    platform = PLATFORM
    contact = "your bot"
    hint = language_data("hints", "adapters")[PLATFORM]
    # The pause after the first lost connection. Each session that is lost soon doubles the pause.
    pause_s = 4.0
    # How long the library may try to reconnect. After that, the adapter makes a new connection,
    # because the library's own pauses grow to a quarter of an hour.
    max_downtime_s = 5.0

    token: str
    # The URLs of the servers. None means Discord's own servers.
    api_url: str | None
    gateway_url: str | None
    inbox: InitVar[Inbox]
    clock: InitVar[Clock]
    # Whether to use the privileged intent with which the bot reads guild messages without a
    # mention.
    has_message_content: bool = False
    # Whether a message has a reaction while its answer is being prepared.
    marks_working: bool = False
    # Whether a mention in a channel begins a thread.
    opens_threads: bool = False
    # The maximum number of lines in one message. 0: no limit.
    max_lines: int = 0
    # The description in the profile of the bot.
    presence: str = ""

    def __post_init__(self, inbox: Inbox, clock: Clock) -> None:
        self._lock = PollLock(PLATFORM, self.api_url or API_URL, self.token)
        self.events = DiscordEvents(
            self._get_client,
            inbox,
            clock,
            marks_working=self.marks_working,
            opens_threads=self.opens_threads,
            max_lines=self.max_lines,
        )
        self._login_lock = asyncio.Lock()
        self._client: DiscordClient | None = None
        self._is_closed = False
        self._failure = "not connected yet"

    @property
    def problem(self) -> str:
        return self._failure if self._client is None else self._client.problem

    @property
    def accepted_at(self) -> float:
        return 0.0 if self._client is None else self._client.session_began_at

    async def open(self) -> None:
        """Acquire the lock of the token, and log in.

        Raises AccessRefused if Discord refuses the token or the intent. Raises ConfigError if the
        token would be sent unencrypted, or if another process uses the token. If Discord can't be
        reached, this is only logged, and `listen` tries again.
        """
        set_server_urls(self.api_url, self.gateway_url)
        await self._lock.acquire()
        try:
            await self._get_client()
        except DeliveryError as error:
            log.warning("%s; trying again later", error)

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Stay connected until cancelled. Answers in progress continue until `close`.

        Raises AccessRefused if the token or the intent is refused.
        """
        self.events.begin(sink, commands)
        are_commands_registered = False
        pause_s = self.pause_s
        loop = asyncio.get_running_loop()
        try:
            while True:
                started_at = loop.time()
                is_lost_soon = False
                try:
                    client = await self._get_client()
                    if not are_commands_registered:
                        self.events.start_task(_register_commands(client, commands))
                        are_commands_registered = True
                    await self._connect(client)
                    duration_s = loop.time() - started_at
                    is_lost_soon = client.is_identified and duration_s <= STABLE_AFTER_S
                except DeliveryError as error:
                    log.warning("%s; trying again later", error)
                if not is_lost_soon:
                    pause_s = self.pause_s
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, MAX_PAUSE_S)
        finally:
            self.events.end()

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return self.events.reply(address, reply_to)

    async def fetch_file(
        self, attachment: Attachment, address: Address, message_id: str, limit_bytes: int
    ) -> bytes:
        """Download a file from Discord's file server: see `core.ports.FileSource`."""
        from adapters.discord.files import fetch_file

        try:
            client = await self._get_client()
        except DeliveryError as error:
            raise FileError(str(error)) from error
        return await fetch_file(client, attachment, address, message_id, limit_bytes)

    @property
    def can_read_channels(self) -> bool:
        return self.has_message_content

    async def read_channel(
        self, address: Address, since: datetime | None, limit: int
    ) -> Sequence[PastMessage]:
        """Return the last messages of a channel: see `core.ports.ChannelSource`."""
        return await self.events.read_channel(address, since, limit)

    async def is_admin(self, inbound: Inbound) -> bool:
        """Return whether the sender may manage the server: see `core.ports.AdminSource`."""
        if not inbound.server_id:
            return False
        with translate_errors():
            guild = await self._load_guild(inbound.server_id)
            member = await guild.fetch_member(int(inbound.sender.id))
        return member.guild_permissions.manage_guild

    async def load_role_names(self, server_id: str) -> dict[str, str]:
        """Return the names of a server's roles, by id: see `core.ports.RoleSource`."""
        with translate_errors():
            guild = await self._load_guild(server_id)
        return {str(role.id): role.name for role in guild.roles}

    async def load_place_name(self, address: Address) -> str:
        """Return the name of a channel and thread: see `core.ports.PlaceSource`."""
        client = await self._get_client()
        names = []
        for channel_id in filter(None, (address.chat_id, address.thread_id)):
            channel = client.get_channel(int(channel_id))
            if channel is None:
                with translate_errors():
                    channel = await client.fetch_channel(int(channel_id))
            names.append(str(getattr(channel, "name", "") or channel_id))
        return f"#{SEPARATOR.join(names)}"

    async def _load_guild(self, server_id: str) -> discord.Guild:
        """Return a server, from the client's copy if it has it."""
        client = await self._get_client()
        guild_id = int(server_id)
        return client.get_guild(guild_id) or await client.fetch_guild(guild_id)

    async def close(self) -> None:
        """Cancel answers in progress and close all connections."""
        self._is_closed = True
        await self.events.close()
        if self._client is not None:
            await self._client.close()
            self._client = None
        await self._lock.release()

    async def _get_client(self) -> DiscordClient:
        """Return the client, logging in first if necessary.

        Raises AccessRefused if Discord refuses the token or the intent, and DeliveryError if
        Discord can't be reached.
        """
        async with self._login_lock:
            if self._client is not None and not self._client.is_closed():
                return self._client
            self._client = None
            if self._is_closed:
                raise DeliveryError("Discord: the adapter is closed", is_unreachable=True)
            client = DiscordClient(
                self.events,
                has_message_content=self.has_message_content,
                pause_s=self.pause_s,
                presence=self.presence,
            )
            try:
                await log_in(client, self.token, has_message_content=self.has_message_content)
                self._client = client
                self.contact = f"{client.user} (https://discord.com/users/{client.application_id})"
            except MnemeError as error:
                self._failure = str(error)
                raise
            finally:
                if self._client is None:
                    await client.close()
            return client

    async def _connect(self, client: DiscordClient) -> None:
        """Connect to the gateway, and return when the connection is lost.

        After an interruption, the library has `max_downtime_s` seconds to resume the session.
        Raises AccessRefused if the token or the intent is refused.
        """
        client.is_identified = False
        connection = asyncio.create_task(client.connect(), name="discord gateway")
        loop = asyncio.get_running_loop()
        alive_at = loop.time()
        try:
            while not connection.done() and loop.time() - alive_at < self.max_downtime_s:
                await asyncio.wait([connection], timeout=self.max_downtime_s / 4)
                if not self.problem:
                    alive_at = loop.time()
            if connection.done():
                connection.result()
        except discord.PrivilegedIntentsRequired as error:
            raise AccessRefused("discord_intent_refused") from error
        except (*CALL_ERRORS, *PAYLOAD_ERRORS) as error:
            if isinstance(error, discord.ConnectionClosed) and error.code == INVALID_TOKEN:
                raise AccessRefused("discord_token_refused") from error
            client.failure = describe_error(error)
            log.error("The gateway connection to Discord broke and is opened again: %r", error)
        finally:
            await _cancel_until_done(connection)
            await client.close_gateway()


async def check_discord(token: str, api_url: str | None, *, has_message_content: bool) -> str:
    """Check the token and the intent, and return a sentence with the name of the bot.

    Raises AccessRefused if Discord refuses the token or the intent, and DeliveryError if Discord
    can't be reached.
    """
    set_server_urls(api_url, None)
    client = discord.Client(intents=discord.Intents.none())
    try:
        await log_in(client, token, has_message_content=has_message_content)
        return f"The token is valid; the bot is {client.user}."
    finally:
        await client.close()


async def _cancel_until_done(task: asyncio.Task[None]) -> None:
    """Cancel a task repeatedly until it ends. Its error is ignored.

    `exception` is called so that asyncio doesn't log the error.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_INTERVAL_S)
    if not task.cancelled():
        task.exception()


async def _register_commands(client: discord.Client, specs: Sequence[CommandSpec]) -> None:
    """Register the commands for all guilds and direct chats.

    A failure is only logged. Commands from an earlier registration stay.
    """
    payloads = []
    for spec in specs:
        payloads.extend(command_payloads(spec))
    try:
        await client.http.bulk_upsert_global_commands(client.application_id or 0, payloads)
    except (*CALL_ERRORS, *PAYLOAD_ERRORS) as error:
        log.warning("Discord refused the commands. The commands registered before stay: %s", error)
