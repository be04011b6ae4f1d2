"""Fetches the messages that were written in a channel while the gateway wasn't connected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import discord

from adapters.discord.channels import PAGE_MESSAGES, DiscordChannels
from adapters.discord.errors import translate_errors
from core.errors import DeliveryError
from core.ports import Clock
from core.types import Address

# The catch-up after a lost connection fetches messages of this period, at most this many per
# channel. The owner is told if that isn't enough.
CATCH_UP_PERIOD = timedelta(hours=24)
CATCH_UP_MESSAGES = 1000
# How often a page is requested before the catch-up of its channel is put off.
CATCH_UP_ATTEMPTS = 6
# Discord allows fifty calls per second, and answers need some of them.
CATCH_UP_CONCURRENCY = 10
# The pauses before what couldn't be fetched is tried again, as multiples of the delay between two
# attempts, which is a second. All pauses together take a day.
FIRST_PAUSE = 60
MAX_PAUSE = 600
MAX_PAUSES = 148

log = logging.getLogger(__name__)


class MissedMessages:
    """Fetches the missed messages of channels, some channels at a time."""

    # The delay between two attempts.
    retry_delay_s = 1.0

    def __init__(self, channels: DiscordChannels, clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._slots = asyncio.Semaphore(CATCH_UP_CONCURRENCY)
        # The raw members of servers, by server and person, as the current catch-up fetched them.
        # The value is None for people who have left.
        self.members: dict[tuple[int, int], Any] = {}

    def list_pauses(self) -> Iterator[float]:
        """Return how many seconds to wait before each further try, for a day."""
        for number in range(MAX_PAUSES):
            yield min(FIRST_PAUSE * 2**number, MAX_PAUSE) * self.retry_delay_s

    async def fetch(self, channel_id: int, last_id: int, heard_id: int) -> tuple[list[Any], bool]:
        """Return the raw data of the messages after `last_id`, oldest first.

        Messages that are too old, and the oldest ones if there are too many, are left out. Also
        returns whether some of these may be addressed to the bot. Messages up to `heard_id` don't
        count, because the gateway has already delivered them. Raises DeliveryError if a page can't
        be fetched.
        """
        oldest_id = discord.utils.time_snowflake(self._clock.now() - CATCH_UP_PERIOD)
        first_id = max(last_id, oldest_id)
        messages: list[Any] = []
        is_complete = False
        while not is_complete and len(messages) < CATCH_UP_MESSAGES:
            before_id = int(messages[-1]["id"]) if messages else None
            page = await self._fetch_page(channel_id, before_id)
            messages += page
            is_complete = len(page) < PAGE_MESSAGES or int(page[-1]["id"]) <= first_id

        unheard_id = max(last_id, heard_id)
        old_messages = [raw for raw in messages if unheard_id < int(raw["id"]) <= oldest_id]
        is_cut = not is_complete and int(messages[-1]["id"]) > heard_id
        is_cut = is_cut or await self._has_addressed(channel_id, old_messages)
        missed_messages = [raw for raw in messages if int(raw["id"]) > first_id]
        return missed_messages[:CATCH_UP_MESSAGES][::-1], is_cut

    async def _has_addressed(self, channel_id: int, messages: Sequence[Any]) -> bool:
        """Return whether one of these messages is addressed to the bot.

        In a direct chat, all messages of the person are addressed to the bot. Elsewhere, messages
        that mention the bot are.
        """
        if not messages:
            return False
        channel = await self._channels.find(channel_id)
        client = await self._channels.get_client()
        if channel is None or client.user is None:
            return False
        if channel.guild_id is None:
            return any(int(raw["author"]["id"]) != client.user.id for raw in messages)
        mentions = [user for raw in messages for user in raw["mentions"]]
        return any(int(user["id"]) == client.user.id for user in mentions)

    async def _fetch_page(self, channel_id: int, before_id: int | None) -> list[Any]:
        """Return the raw data of the last messages before `before_id`, newest first.

        Returns an empty list if the bot may not see the messages. Raises DeliveryError if the
        attempts have failed for about a minute. New messages in the channel wait meanwhile.
        """
        attempt = 0
        while True:
            try:
                async with self._slots:
                    client = await self._channels.get_client()
                    with translate_errors():
                        page: list[Any] = await client.http.logs_from(
                            channel_id, PAGE_MESSAGES, before=before_id
                        )
                        return page
            except DeliveryError as error:
                log.warning(
                    "The missed messages of Discord channel %d cannot be fetched: %s",
                    channel_id,
                    error,
                )
                if error.is_permanent:
                    return []
                attempt += 1
                if attempt == CATCH_UP_ATTEMPTS:
                    raise
                await asyncio.sleep(error.retry_after_s or self.retry_delay_s * 2 ** (attempt - 1))

    async def add_member(self, raw: Any, guild_id: int | None) -> None:
        """Add the sender's membership of the server, which has their roles, to a raw message.

        Discord sends it with new messages, but not with fetched ones.
        """
        author = raw["author"]
        client = await self._channels.get_client()
        is_person = not author.get("bot") and raw.get("webhook_id") is None
        if guild_id is None or not is_person or client.get_guild(guild_id) is None:
            return
        key = guild_id, int(author["id"])
        if key not in self.members:
            try:
                with translate_errors():
                    self.members[key] = await client.http.get_member(*key)
            except DeliveryError as error:
                log.info(
                    "The member %d of Discord server %d isn't known: %s", key[1], guild_id, error
                )
                if error.is_missing or error.is_permanent:
                    self.members[key] = None
        if member := self.members.get(key):
            raw["member"] = dict(member)

    async def list_active_threads(self, guild_id: int, after_id: int) -> list[int]:
        """Return the ids of threads that began or got a message after the message `after_id`.

        The newest are first. Raises DeliveryError if the threads can't be listed.
        """
        client = await self._channels.get_client()
        with translate_errors():
            listing = await client.http.get_active_threads(guild_id)
            threads = [
                (int(thread.get("last_message_id") or thread["id"]), int(thread["id"]))
                for thread in listing["threads"]
            ]
        threads.sort(reverse=True)
        return [thread_id for newest_id, thread_id in threads if newest_id > after_id]


def list_thread_parents(last_ids: Mapping[Address, str]) -> dict[int, int]:
    """Return the newest thread of each channel with stored messages only in threads.

    If every mention begins a thread, all messages for the bot in such a channel are in its threads.
    """
    known_ids = {address.chat_id for address in last_ids if address.thread_id is None}
    newest_ids: dict[int, int] = {}
    for address in last_ids:
        if address.thread_id is not None and address.chat_id not in known_ids:
            channel_id = int(address.chat_id)
            newest_id = max(newest_ids.get(channel_id, 0), int(address.thread_id))
            newest_ids[channel_id] = newest_id
    return newest_ids


def subtract_time(snowflake: int, period: timedelta) -> int:
    """Return the id that a message would have if it had been sent earlier by `period`."""
    milliseconds = int(period.total_seconds() * 1000)
    return max(snowflake - (milliseconds << 22), 0)
