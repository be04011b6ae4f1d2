"""Extends the library's client, which logs in once for HTTP and reconnects to the gateway.

The client here passes gateway events to `DiscordEvents` at once, reports whether the connection is
alive, and sets aside events that the library can't parse.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import discord
import yarl
from discord.gateway import KeepAliveHandler

from adapters.discord.errors import CALL_ERRORS, describe_error
from adapters.discord.events import DiscordEvents
from adapters.discord.normalize import add_poll_end
from config.open_files import bound_connections
from core.errors import PAYLOAD_ERRORS, AccessRefused, ConfigError, DeliveryError

API_URL = "https://discord.com"
API_PATH = "/api/v10"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
CLOSE_TIMEOUT_S = 3.0
# A connection is down if the acknowledgement of a heartbeat is later than this.
ACK_TIMEOUT_S = 10.0
MAX_RATE_LIMIT_S = 30.0
# The size of the connection pool. The gateway connection is one of them.
CONNECTIONS = 64
# These events start a session. If one of them can't be parsed, the connection must end.
SESSION_EVENTS = ("READY", "RESUMED")

log = logging.getLogger(__name__)


class DiscordClient(discord.Client):
    """A client that passes its events to `events`.

    `pause_s` is the pause before each identification except the first. Discord allows one
    identification every five seconds.
    """

    def __init__(
        self,
        events: DiscordEvents,
        *,
        has_message_content: bool,
        pause_s: float,
        presence: str = "",
    ) -> None:
        intents = discord.Intents(
            guilds=True, guild_messages=True, dm_messages=True, reactions=True
        )
        intents.message_content = has_message_content
        # Voice isn't used, so warnings about missing voice libraries are useless.
        discord.VoiceClient.warn_nacl = False
        discord.VoiceClient.warn_dave = False
        super().__init__(
            intents=intents,
            allowed_mentions=discord.AllowedMentions.none(),
            max_ratelimit_timeout=MAX_RATE_LIMIT_S,
            activity=discord.CustomActivity(presence) if presence else None,
        )
        # Whether a new session was started since the adapter last set this to False. Discord limits
        # the number of sessions.
        self.is_identified = False
        # Why the gateway isn't connected. Only valid while it isn't connected.
        self.failure = "not connected yet"
        self._events = events
        self._pause_s = pause_s
        # The connection that has a session.
        self._session_connection: discord.gateway.DiscordWebSocket | None = None
        # When it got the session, in seconds of `time.monotonic`.
        self.session_began_at = 0.0
        # The data of the event that is being parsed.
        self._raw: Any = None
        parsers = self._connection.parsers
        for event, parse in parsers.items():
            if event not in SESSION_EVENTS:
                parsers[event] = self._guard_parser(event, parse)

    @property
    def problem(self) -> str:
        """A clause that says why events can't arrive.

        It's empty if there is a session and heartbeats are acknowledged.
        """
        connection: discord.gateway.DiscordWebSocket | None = self.ws
        if connection is None or not connection.open or connection is not self._session_connection:
            return self.failure
        heartbeat = connection._keep_alive
        if heartbeat is None:
            return ""
        silence_s = time.perf_counter() - heartbeat._last_ack
        if silence_s < (heartbeat.interval or 0.0) + ACK_TIMEOUT_S:
            return ""
        return "Discord does not acknowledge the heartbeat"

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Wait before each identification except the first. The library calls this."""
        if not initial:
            await asyncio.sleep(self._pause_s)

    async def close_gateway(self) -> None:
        """Close the gateway connection, if there is one. HTTP calls still work."""
        connection: discord.gateway.DiscordWebSocket | None = self.ws
        if connection is not None and connection.open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await connection.close(code=1000)
        # If connecting was cancelled halfway, `self.ws` isn't set yet, but the heartbeat thread of
        # the new connection may already run. It is found among all threads of the process.
        for thread in threading.enumerate():
            if isinstance(thread, KeepAliveHandler) and thread.ws._connection is self._connection:
                thread.stop()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Handle an event at once, so that events stay in order. The library calls this."""
        match event:
            case "connect" | "resumed":
                # "connect" is sent when the session begins. The library's "ready" event is sent
                # seconds later, when all guilds are known.
                self._session_connection = self.ws
                self.session_began_at = time.monotonic()
                self.is_identified = True
                if event == "connect":
                    self._events.start_catch_up()
            case "disconnect":
                # The library reconnects by itself and only logs the error, so remember the error
                # here.
                self.failure = describe_error(sys.exception())
            case _:
                payload = args[0] if args else None
                if not self._events.accept_event(event, payload, self._raw):
                    super().dispatch(event, *args, **kwargs)

    def _guard_parser(self, event: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
        """Wrap a parser of the library so that an unexpected payload doesn't end the connection."""

        def parse_or_set_aside(data: Any) -> None:
            """Parse an event. If that fails, set the raw data of a message or interaction aside."""
            self._raw = data
            try:
                if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
                    add_poll_end(data)
                parse(data)
            except (*PAYLOAD_ERRORS, discord.DiscordException) as error:
                log.error(
                    "An event %s of Discord cannot be read, it is set aside: %r", event, error
                )
                if event.startswith(("MESSAGE_", "INTERACTION_")):
                    self._events.start_task(self._events.set_aside(data, repr(error)))

        return parse_or_set_aside


async def log_in(client: discord.Client, token: str, *, has_message_content: bool) -> None:
    """Log in over HTTP. With `has_message_content`, also check that the bot has that intent.

    Raises AccessRefused if Discord refuses the token or the intent, and DeliveryError if Discord
    can't be reached.
    """
    # The library logs each failed reconnection with a traceback. The adapter logs one line instead.
    logging.getLogger("discord").setLevel(logging.WARNING)
    logging.getLogger("discord.client").setLevel(logging.CRITICAL)
    # The library's own pool has no limit.
    client.http.connector = aiohttp.TCPConnector(limit=bound_connections(CONNECTIONS))
    try:
        await client.login(token)
        flags = client.application_flags
        is_allowed = flags.gateway_message_content or flags.gateway_message_content_limited
        if has_message_content and not is_allowed:
            raise AccessRefused("discord_intent_refused")
    except discord.LoginFailure as error:
        raise AccessRefused("discord_token_refused") from error
    except (*CALL_ERRORS, *PAYLOAD_ERRORS) as error:
        reason = describe_error(error)
        raise DeliveryError("discord_unreachable", is_unreachable=True, reason=reason) from error


def set_server_urls(api_url: str | None, gateway_url: str | None) -> None:
    """Make the library use other servers. None leaves a server unchanged: at first, Discord's own.

    The library has only class attributes for this, so the change applies to the whole process.
    Raises ConfigError if the token would be sent unencrypted to another machine.
    """
    _check_encryption("MNEME_DISCORD_API_URL", api_url)
    _check_encryption("MNEME_DISCORD_GATEWAY_URL", gateway_url)
    if api_url:
        root = api_url.rstrip("/")
        has_path = bool(urlsplit(root).path)
        discord.http.Route.BASE = root if has_path else root + API_PATH
    if gateway_url:
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url.rstrip("/") + "/")


def _check_encryption(variable: str, url: str | None) -> None:
    """Raise ConfigError unless the URL is encrypted or stays on this machine."""
    parts = urlsplit(url or API_URL)
    is_encrypted = parts.scheme in ("https", "wss") and bool(parts.hostname)
    is_local = parts.scheme in ("http", "ws") and parts.hostname in LOOPBACK_HOSTS
    if not (is_encrypted or is_local):
        raise ConfigError("discord_unencrypted", variable=variable, url=repr(url))
