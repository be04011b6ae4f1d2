"""The library's client, and what Discord and the network refuse as errors of ours.

A payload that the client cannot read costs one event, not the connection; sending needs no gateway. Decides nothing
about trying again.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
from discord.gateway import KeepAliveHandler

from core.errors import DeliveryError

if TYPE_CHECKING:
    from adapters.discord.events import DiscordEvents

LONGEST_RATE_LIMIT_S = 30.0
HANG_UP_S = 3.0
ACKNOWLEDGED_WITHIN_S = 10.0
VITAL = ("READY", "RESUMED")
"""Without these there is no session, so their failure has to end the connection."""
NOBODY = discord.AllowedMentions(everyone=False, users=False, roles=False, replied_user=False)

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
"""What the library raises for a payload that is shaped otherwise than it expects."""
UNREACHABLE = (discord.DiscordException, aiohttp.ClientError, OSError)
"""What a call raises that did not come through; timeouts are OSErrors."""
UNKNOWN_MESSAGE, THREAD_ARCHIVED, ACKNOWLEDGED = 10008, 50083, 40060
EXPIRED = (10062, ACKNOWLEDGED, 10015, 50027)
"""Unknown interaction, acknowledged already, unknown webhook, invalid webhook token."""

log = logging.getLogger(__name__)


class DiscordClient(discord.Client):
    """`pause_s`: the wait before a session is identified anew, which Discord allows every five seconds."""

    def __init__(self, events: DiscordEvents, *, has_message_content: bool, pause_s: float) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
        intents.message_content = has_message_content
        # Voice is not used, so that its missing parts need no warning.
        discord.VoiceClient.warn_nacl = False
        discord.VoiceClient.warn_dave = False
        super().__init__(intents=intents, allowed_mentions=NOBODY, max_ratelimit_timeout=LONGEST_RATE_LIMIT_S)
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
        """Events leave here and now, in their order. A message is copied, because the library changes its own in place
        when an edit comes, perhaps before anybody has read it."""
        match event:
            case "connect" | "resumed":
                # With READY; the event "ready" comes seconds later, when all guilds are known.
                self._proven = self.ws
                self.is_identified = True
                if event == "connect":
                    self._events.catch_up()
            case "disconnect":
                # The library tries again by itself, and tells of the error to nobody but its log.
                self.failure = reason(sys.exception())
            case "message":
                self._events.message(copy.copy(args[0]), self._raw)
            case "raw_message_edit":
                self._events.edit(args[0], self._raw)
            case "raw_message_delete":
                self._events.delete(args[0].message_id, args[0].channel_id, args[0].cached_message)
            case "raw_bulk_message_delete":
                cached = {message.id: message for message in args[0].cached_messages}
                for message_id in sorted(args[0].message_ids):
                    self._events.delete(message_id, args[0].channel_id, cached.get(message_id))
            case "interaction":
                self._events.interaction(args[0], self._raw)
            case _:
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
                    self._events.set_aside(data, error)

        return guarded


def reason(error: BaseException | None) -> str:
    """What stands between us and Discord, as a clause."""
    match error:
        case discord.LoginFailure():
            return "Discord refuses the token (401)"
        case discord.ConnectionClosed():
            return f"Discord closed the connection with code {error.code}"
        case discord.HTTPException() | aiohttp.ClientResponseError():
            return f"Discord answers with status {error.status}"
        case socket.gaierror() | aiohttp.ClientConnectorDNSError():
            return "the name of Discord's server cannot be resolved"
        case aiohttp.ClientConnectorError():
            return f"the network does not reach {error.host}:{error.port} ({error.strerror})"
        case discord.gateway.ReconnectWebSocket():
            return "the connection broke"
        case TimeoutError():
            return "Discord does not answer in time"
        case _:
            return f"the connection broke ({type(error).__name__})"


@contextlib.contextmanager
def delivered() -> Iterator[None]:
    """Around a call for a channel."""
    try:
        yield
    except UNREACHABLE as error:
        raise _delivery(error) from error
    except UNREADABLE as error:
        raise DeliveryError(f"Discord gave an answer that cannot be read: {error!r}") from error


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Around a call with the token of an interaction. Such a call has no nonce: it may have come through where its
    answer did not come back; and a dead token forbids no other way to the person."""
    try:
        with delivered():
            yield
    except DeliveryError as error:
        cause = error.__cause__
        status, code = (cause.status, cause.code) if isinstance(cause, discord.HTTPException) else (0, 0)
        is_dead = code in EXPIRED or (status == 404 and not error.is_missing)
        if is_dead or isinstance(cause, discord.InteractionResponded):
            raise DeliveryError("expired: the Discord interaction can no longer be answered") from cause
        if 400 <= status < 500 or isinstance(cause, aiohttp.ClientConnectorError):
            raise
        raise DeliveryError(str(error), is_uncertain=True) from cause


def _delivery(error: Exception) -> DeliveryError:
    if isinstance(error, discord.RateLimited):
        return DeliveryError("Discord asks to slow down", retry_after_s=error.retry_after)
    if not isinstance(error, discord.HTTPException):
        return DeliveryError(f"Discord cannot be reached: {reason(error)}")
    said = f"{error.text or 'no reason given'} (status {error.status}, code {error.code})"
    if error.status in (408, 429):
        asked_s = error.response.headers.get("Retry-After", "")
        delay_s = float(asked_s) if asked_s.replace(".", "", 1).isdecimal() else None
        return DeliveryError(f"Discord asks to slow down: {said}", retry_after_s=delay_s)
    # In an archived thread nothing can be edited; a new message opens it again.
    is_archived = error.code == THREAD_ARCHIVED and error.response.method == "PATCH"
    if error.code == UNKNOWN_MESSAGE or is_archived:
        return DeliveryError(f"Discord has no such message to edit: {said}", is_missing=True)
    # Another try of a request that was understood and refused cannot help.
    return DeliveryError(f"Discord did not take the message: {said}", is_permanent=400 <= error.status < 500)
