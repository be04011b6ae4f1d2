"""The library's client: a payload that it cannot read costs one event, not the connection; sending needs no gateway."""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import discord
from discord.gateway import KeepAliveHandler

from adapters.discord.errors import UNREADABLE
from adapters.discord.messages import NOBODY

if TYPE_CHECKING:
    from adapters.discord.events import DiscordEvents

LONGEST_RATE_LIMIT_S = 30.0
HANG_UP_S = 3.0
VITAL = ("READY", "RESUMED")
"""Without these there is no session, so their failure has to end the connection."""

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
        parsers = self._connection.parsers
        for event, parse in parsers.items():
            if event not in VITAL:
                parsers[event] = _guarded(event, parse)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        if not initial:
            await asyncio.sleep(self._pause_s)

    async def hang_up(self) -> None:
        """Ends the gateway connection, if there is one; HTTP goes on."""
        socket: discord.gateway.DiscordWebSocket | None = self.ws
        if socket is not None and socket.open:
            try:
                async with asyncio.timeout(HANG_UP_S):
                    await socket.close(code=1000)
            except TimeoutError:
                log.debug("Discord did not answer the goodbye")
        # A connection that was cancelled halfway is known to nobody but the thread that keeps it alive.
        for thread in threading.enumerate():
            if isinstance(thread, KeepAliveHandler) and thread.ws._connection is self._connection:
                thread.stop()

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:
        """Events leave here and now, in their order. A message is copied, because the library changes its own in place
        when an edit comes, perhaps before anybody has read it."""
        match event:
            case "ready":
                self.is_identified = True
                self._events.catch_up()
            case "message":
                self._events.message(copy.copy(args[0]))
            case "raw_message_edit":
                self._events.edit(args[0])
            case "raw_message_delete":
                self._events.delete(args[0].message_id, args[0].channel_id, args[0].cached_message)
            case "raw_bulk_message_delete":
                cached = {message.id: message for message in args[0].cached_messages}
                for message_id in sorted(args[0].message_ids):
                    self._events.delete(message_id, args[0].channel_id, cached.get(message_id))
            case "interaction":
                self._events.interaction(args[0])
            case _:
                super().dispatch(event, *args, **kwargs)


def _guarded(event: str, parse: Callable[[Any], None]) -> Callable[[Any], None]:
    """The library's parsers are strict, and what they raise would end the whole client."""

    def guarded(data: Any) -> None:
        try:
            parse(data)
        except (*UNREADABLE, discord.DiscordException) as error:
            log.error("An event %s of Discord cannot be read, it is skipped: %r", event, error)

    return guarded
