"""Discord: gateway in, HTTP out. Direct chats, mentions in guild channels, threads, application commands, buttons.

One client of the library serves both ways; it is logged in once and connected to the gateway as often as needed.
Decides nothing about who is served; that is the router's part.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import discord
import yarl
from discord.gateway import KeepAliveHandler

from adapters.discord.events import DiscordEvents
from adapters.discord.messages import UNREACHABLE, UNREADABLE, reason
from adapters.discord.normalize import PLATFORM, described
from adapters.poll_lock import PollLock
from core.errors import ConfigError, DeliveryError, MnemeError
from core.ports import Clock, Reply, Sink
from core.text.normalize import language_data
from core.types import Address, CommandSpec

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

API_URL = "https://discord.com"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
API_PATH = "/api/v10"
PAUSE_MOST_S = 300.0
"""Between sessions, of which Discord allows a thousand a day; where there was none it is tried again at once."""
STEADY_AFTER_S = 60.0
"""A connection that lasted so long was a good one: the next failure is a first one again."""
CANCEL_EVERY_S = 0.2
BAD_TOKEN = 4004
HANG_UP_S = 3.0
ACKNOWLEDGED_WITHIN_S = 10.0
VITAL = ("READY", "RESUMED")
"""Without these there is no session, so their failure has to end the connection."""
LONGEST_RATE_LIMIT_S = 30.0
REFUSALS = language_data("refusals", "adapters")

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class Discord:
    """`api_url` and `gateway_url` are for a loopback server, Discord's own when None. `has_message_content`: asks for
    the privileged intent, so that guild messages that do not mention the bot can be read too. `pause_s`: the wait after
    a first lost connection; it doubles with each further session that is lost soon."""

    platform = PLATFORM
    contact = "your bot"
    hint = language_data("hints", "adapters")[PLATFORM]
    pause_s = 4.0
    down_s = 5.0
    """How long the library may try to come back by itself: its pauses grow to a quarter of an hour."""

    token: str
    api_url: str | None
    gateway_url: str | None
    inbox: InitVar[Inbox]
    clock: InitVar[Clock]
    has_message_content: bool = False

    def __post_init__(self, inbox: Inbox, clock: Clock) -> None:
        self._lock = PollLock(PLATFORM, self.api_url or API_URL, self.token)
        self.events = DiscordEvents(self._ready, inbox, clock)
        self._login = asyncio.Lock()
        self._client: DiscordClient | None = None
        self._is_closed = False
        self._failure = "not connected yet"

    @property
    def problem(self) -> str:
        return self._failure if self._client is None else self._client.problem

    async def open(self) -> None:
        """Raises ConfigError when the token or an address is refused, or another process has the token. Discord out of
        reach is no reason to fail: `listen` waits."""
        redirect(self.api_url, self.gateway_url)
        await self._lock.acquire()
        try:
            await self._ready()
        except DeliveryError as error:
            log.warning("%s; trying again later", error)

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Connects until cancelled. Raises ConfigError when the token or the intent is refused. Answers under way go
        on when it ends; `close` is what stops them."""
        self.events.begin(sink, commands)
        is_announced = False
        pause_s = self.pause_s
        loop = asyncio.get_running_loop()
        try:
            while True:
                started_at = loop.time()
                try:
                    client = await self._ready()
                    if not is_announced:
                        self.events.start(_announce(client, commands))
                        is_announced = True
                    await self._connect(client)
                    is_lost_soon = client.is_identified and loop.time() - started_at <= STEADY_AFTER_S
                except DeliveryError as error:
                    log.warning("%s; trying again later", error)
                    is_lost_soon = False
                pause_s = pause_s if is_lost_soon else self.pause_s
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_MOST_S)
        finally:
            self.events.end()

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return self.events.reply(address, reply_to)

    async def close(self) -> None:
        """Cancels answers still under way."""
        self._is_closed = True
        await self.events.close()
        if self._client is not None:
            await self._client.close()
            self._client = None
        await self._lock.release()

    async def _ready(self) -> DiscordClient:
        """A client that is logged in. Raises DeliveryError when Discord is out of reach, ConfigError when refused."""
        async with self._login:
            if self._client is not None and not self._client.is_closed():
                return self._client
            self._client = None
            if self._is_closed:
                raise DeliveryError("Discord: the adapter is closed")
            client = DiscordClient(self.events, has_message_content=self.has_message_content, pause_s=self.pause_s)
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
        """One gateway connection with its resumes; returns when it is lost for good, or down for `down_s`, so that a
        new one can be made."""
        client.is_identified = False
        connection = asyncio.create_task(client.connect(), name="discord gateway")
        loop = asyncio.get_running_loop()
        alive_at = loop.time()
        try:
            while not connection.done() and loop.time() - alive_at < self.down_s:
                await asyncio.wait([connection], timeout=self.down_s / 4)
                alive_at = alive_at if self.problem else loop.time()
            if connection.done():
                connection.result()
        except discord.PrivilegedIntentsRequired as error:
            raise ConfigError(REFUSALS["intent"]) from error
        except (*UNREACHABLE, *UNREADABLE) as error:
            if isinstance(error, discord.ConnectionClosed) and error.code == BAD_TOKEN:
                raise ConfigError(REFUSALS["token_of_discord"]) from error
            client.failure = reason(error)
            log.error("The gateway connection to Discord broke, it is made anew: %r", error)
        finally:
            # Until it is done: the library waits in a way that loses a cancellation which comes as it connects.
            while not connection.done():
                connection.cancel()
                await asyncio.wait([connection], timeout=CANCEL_EVERY_S)
            if not connection.cancelled():
                connection.exception()
            await client.hang_up()


class DiscordClient(discord.Client):
    """`pause_s`: the wait before a session is identified anew, which Discord allows every five seconds."""

    def __init__(self, events: DiscordEvents, *, has_message_content: bool, pause_s: float) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
        intents.message_content = has_message_content
        # Voice is not used, so that its missing parts need no warning.
        discord.VoiceClient.warn_nacl = False
        discord.VoiceClient.warn_dave = False
        nobody = discord.AllowedMentions.none()
        super().__init__(intents=intents, allowed_mentions=nobody, max_ratelimit_timeout=LONGEST_RATE_LIMIT_S)
        self.is_identified = False
        """Whether there was a session since this was last set to False: Discord counts them."""
        self._events = events
        self._pause_s = pause_s
        self._proven: discord.gateway.DiscordWebSocket | None = None
        """The connection that has a session."""
        self.failure = "not connected yet"
        """Why there is no connection, while there is none."""
        self._raw: Any = None
        parsers = self._connection.parsers
        for event, parse in parsers.items():
            if event not in VITAL:
                parsers[event] = self._guarded(event, parse)

    @property
    def problem(self) -> str:
        """Why no event can come in; empty after READY, while heartbeats are acknowledged."""
        connection: discord.gateway.DiscordWebSocket | None = self.ws
        if connection is None or not connection.open or connection is not self._proven:
            return self.failure
        beat = connection._keep_alive
        if beat is None or time.perf_counter() - beat._last_ack < (beat.interval or 0.0) + ACKNOWLEDGED_WITHIN_S:
            return ""
        return "Discord does not acknowledge the heartbeat"

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            await asyncio.sleep(self._pause_s)

    async def hang_up(self) -> None:
        """Ends the gateway connection, if there is one; HTTP goes on."""
        connection: discord.gateway.DiscordWebSocket | None = self.ws
        if connection is not None and connection.open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HANG_UP_S):
                    await connection.close(code=1000)
        # A connection that was cancelled halfway is known to nobody but the thread that keeps it alive.
        for thread in threading.enumerate():
            if isinstance(thread, KeepAliveHandler) and thread.ws._connection is self._connection:
                thread.stop()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """What is said goes on here and now, in its order."""
        match event:
            case "connect" | "resumed":
                # With READY; the event "ready" comes seconds later, when all guilds are known.
                self._proven = self.ws
                self.is_identified = True
                if event == "connect":
                    self._events.start(self._events.catch_up())
            case "disconnect":
                # The library tries again by itself, and tells of the error to nobody but its log.
                self.failure = reason(sys.exception())
            case _ if not self._events.take(event, args[0] if args else None, self._raw):
                super().dispatch(event, *args, **kwargs)

    def _guarded(self, event: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
        """The library's parsers are strict, and what they raise would end the whole client."""

        def guarded(data: Any) -> None:
            self._raw = data
            try:
                parse(data)
            except (*UNREADABLE, discord.DiscordException) as error:
                log.error("An event %s of Discord cannot be read, it is set aside: %r", event, error)
                if event.startswith(("MESSAGE_", "INTERACTION_")):
                    self._events.start(self._events.set_aside(data, repr(error)))

        return guarded


async def check_discord(token: str, api_url: str | None, *, has_message_content: bool) -> str:
    """A sentence that names the bot. Raises ConfigError when the token or the intent is refused, DeliveryError when
    Discord is out of reach."""
    redirect(api_url, None)
    client = discord.Client(intents=discord.Intents.none())
    try:
        await log_in(client, token, has_message_content=has_message_content)
        return f"The token is valid; the bot is {client.user}."
    finally:
        await client.close()


async def log_in(client: discord.Client, token: str, *, has_message_content: bool) -> None:
    """Raises ConfigError when the token or the intent is refused, DeliveryError when Discord is out of reach."""
    # The library logs every reconnection, each failed one with its traceback; what matters is logged here.
    logging.getLogger("discord").setLevel(logging.WARNING)
    logging.getLogger("discord.client").setLevel(logging.CRITICAL)
    try:
        await client.login(token)
        flags = client.application_flags
        is_allowed = flags.gateway_message_content or flags.gateway_message_content_limited
        if has_message_content and not is_allowed:
            raise ConfigError(REFUSALS["intent"])
    except discord.LoginFailure as error:
        raise ConfigError(REFUSALS["token_of_discord"]) from error
    except (*UNREACHABLE, *UNREADABLE) as error:
        raise DeliveryError(f"Discord cannot be reached: {reason(error)}") from error


async def _announce(client: discord.Client, specs: Sequence[CommandSpec]) -> None:
    """Registers the commands globally; the same again changes nothing. A failure is logged: the old ones stay."""
    wanted = [payload for spec in specs for payload in described(spec)]
    try:
        await client.http.bulk_upsert_global_commands(client.application_id or 0, wanted)
    except (*UNREACHABLE, *UNREADABLE) as error:
        log.warning("Discord did not take the commands, those registered before stay: %s", error)


def redirect(api_url: str | None, gateway_url: str | None) -> None:
    """Points the library at other servers: it knows its addresses as attributes of two classes only. Raises ConfigError
    where the token would leave this machine unencrypted."""
    for name, url in (("MNEME_DISCORD_API_URL", api_url), ("MNEME_DISCORD_GATEWAY_URL", gateway_url)):
        parts = urlsplit(url or API_URL)
        is_plain = parts.scheme in ("http", "ws") and parts.hostname in LOOPBACK
        if not (is_plain or (parts.scheme in ("https", "wss") and parts.hostname)):
            raise ConfigError(f"{name}: {url!r} must begin with https:// or wss://, but on this machine itself.")
    if api_url:
        root = api_url.rstrip("/")
        discord.http.Route.BASE = root + ("" if urlsplit(root).path else API_PATH)
    if gateway_url:
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url.rstrip("/") + "/")
