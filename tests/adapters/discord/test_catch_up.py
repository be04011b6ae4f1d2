"""What was said on Discord during an outage is read afterwards: all of it, also in new threads. If
it's too much, the owner is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import discord
import pytest

from adapters.discord import catch_up
from core.errors import StoreError
from core.ports import Reply
from core.store.mailbox import Inbox
from core.types import Address, Inbound, Scope, Sender
from tests.fixtures.clock import SteadyClock
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


async def know(inbox: Inbox, channel_id: str, message_id: str) -> None:
    """Let the inbox know a message that an earlier process has answered."""
    inbound = Inbound(
        kind="message",
        address=Address(platform="discord", chat_id=channel_id),
        scope=Scope.group("discord", channel_id),
        sender=Sender(id="1", name="Ana"),
        text="before",
        message_id=message_id,
        sent_at=SteadyClock().now(),
        is_direct=False,
    )
    entry_id = await inbox.accept(inbound, SteadyClock().now())
    assert entry_id is not None
    await inbox.close([entry_id])


async def say_unheard(api: DiscordApi, channel: str, user: str, count: int) -> list[str]:
    """Write messages of which the gateway tells nothing, and return them."""
    texts = [f"message {number:03}" for number in range(count)]
    for text in texts:
        await api.user_says(channel, text, user, is_told=False)
    return texts


async def test_messages_missed_in_a_long_outage_are_read_in_order(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    texts = await say_unheard(api, channel, ana, 260)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) >= len(texts))
        assert [inbound.text for inbound in router.seen] == texts
        assert router.missed == []


async def test_sender_of_missed_messages_has_their_roles(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    role, ana = "123456789", api.user("Ana")
    api.world.guild_roles.append(role)
    api.world.roles[ana] = [role]
    channel = await api.channel("general")
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    await say_unheard(api, channel, ana, 3)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) == 3)
    assert all(role in inbound.sender.roles for inbound in router.seen)
    routes = [request["route"] for request in api.requests]
    assert routes.count("/guilds/{guild_id}/members/{user_id}") == 1


async def test_sender_who_has_left_the_server_is_looked_for_once(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    await say_unheard(api, channel, ana, 3)
    del api.world.users[ana]
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) == 3)
    routes = [request["route"] for request in api.requests]
    assert routes.count("/guilds/{guild_id}/members/{user_id}") == 1


async def test_thread_that_began_during_an_outage_is_read(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    room = await api.channel("general")
    await know(inbox, room, await api.user_says(room, "before", ana, is_told=False))
    thread = await api.thread(room, "Plans", ana, is_announced=False)
    await api.user_says(thread, f"{api.mention()} what now?", ana, is_told=False)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
        (inbound,) = router.seen
        assert (inbound.text, inbound.address.thread_id) == ("what now?", thread)


async def test_oldest_messages_are_left_out_and_reported_if_there_are_too_many(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "CATCH_UP_MESSAGES", 100)
    ana = api.user("Ana")
    channel = api.dm(ana)
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    texts = await say_unheard(api, channel, ana, 130)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) >= 100 and router.missed)
        assert [inbound.text for inbound in router.seen] == texts[30:]
        assert [address.chat_id for address in router.missed] == [channel]


async def test_messages_older_than_the_limit_are_left_out_and_reported(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, clock: SteadyClock
) -> None:
    ana = api.user("Ana")
    channel, quiet = api.dm(ana), await api.channel("general")
    old = clock.now() - catch_up.CATCH_UP_PERIOD - timedelta(hours=1)
    for place in (channel, quiet):
        for minutes in (0, 1):
            message_id = str(discord.utils.time_snowflake(old + timedelta(minutes=minutes)))
            api.world.add_post(place, ana, "too old", id=message_id)
            if minutes == 0:
                await know(inbox, place, message_id)
    await api.user_says(channel, "new enough", ana, is_told=False)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen and router.missed)
        assert [inbound.text for inbound in router.seen] == ["new enough"]
        assert [address.chat_id for address in router.missed] == [channel], "no one was addressed"


async def test_channel_whose_pages_cannot_be_fetched_is_read_later_and_completely(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    texts = await say_unheard(api, channel, ana, 130)
    api.rest.fail("GET", f"/channels/{channel}/messages", 503, times=catch_up.CATCH_UP_ATTEMPTS + 1)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) >= len(texts))
        assert [inbound.text for inbound in router.seen] == texts
        assert router.missed == []


async def test_channel_that_could_not_be_read_is_read_after_a_restart_despite_newer_messages(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    await api.user_says(channel, "missed", ana, is_told=False)
    api.rest.fail("GET", f"/channels/{channel}/messages", 503, times=10_000)
    async with listening(make(api, inbox), router, api):
        live_id = await api.user_says(channel, "live", ana)
        await api.wait_for(lambda: router.seen)
        assert [inbound.text for inbound in router.seen] == ["live"]
    await know(inbox, channel, live_id)
    api.rest.failures.clear()
    router.seen.clear()
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
        assert router.seen[0].text == "missed"


async def test_channel_that_cannot_be_read_for_a_day_is_reported(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "MAX_PAUSES", 1)
    monkeypatch.setattr(catch_up, "FIRST_PAUSE", 1)
    ana = api.user("Ana")
    channel = api.dm(ana)
    await know(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    api.rest.fail("GET", f"/channels/{channel}/messages", 503, times=10_000)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.missed)
        assert [address.chat_id for address in router.missed] == [channel]


async def test_threads_that_cannot_be_listed_are_listed_later(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    room = await api.channel("general")
    await know(inbox, room, await api.user_says(room, "before", ana, is_told=False))
    thread = await api.thread(room, "Plans", ana, is_announced=False)
    await api.user_says(thread, f"{api.mention()} what now?", ana, is_told=False)
    api.rest.fail("GET", "/threads/active", 503)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
        assert router.seen[0].address.thread_id == thread


async def test_server_whose_threads_cannot_be_listed_for_a_day_is_reported(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "MAX_PAUSES", 1)
    monkeypatch.setattr(catch_up, "FIRST_PAUSE", 1)
    ana = api.user("Ana")
    room = await api.channel("general")
    await know(inbox, room, await api.user_says(room, "before", ana, is_told=False))
    api.rest.fail("GET", "/threads/active", 503, times=10_000)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.missed)
        assert [address.chat_id for address in router.missed] == [api.world.guild_id]


async def test_more_than_a_hundred_channels_and_threads_are_all_read(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    people = [api.user(f"Person {number}") for number in range(105)]
    room = await api.channel("general")
    chats = [api.dm(person) for person in people]
    for chat, person in zip(chats, people, strict=True):
        await know(inbox, chat, await api.user_says(chat, "before", person, is_told=False))
    for chat, person in zip(chats, people, strict=True):
        await api.user_says(chat, "missed", person, is_told=False)
        thread = await api.thread(room, "Plans", person, is_announced=False)
        await api.user_says(thread, f"{api.mention()} what now?", person, is_told=False)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) >= 210)
        texts = sorted(inbound.text for inbound in router.seen)
        assert texts == ["missed"] * 105 + ["what now?"] * 105


async def test_thread_that_a_stopped_catch_up_did_not_reach_is_read_by_the_next(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    room = await api.channel("general")
    await know(inbox, room, await api.user_says(room, "before", ana, is_told=False))
    thread = await api.thread(room, "Plans", ana, is_announced=False)
    await api.user_says(thread, f"{api.mention()} what now?", ana, is_told=False)
    missed_id = await api.user_says(room, f"{api.mention()} missed", ana, is_told=False)
    api.rest.fail("GET", "/threads/active", 503, times=10_000)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
    await know(inbox, room, missed_id)
    api.rest.failures.clear()
    router.seen.clear()
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
        assert [inbound.address.thread_id for inbound in router.seen] == [thread]


async def test_message_in_a_new_thread_is_read_after_a_kill_although_a_later_one_was_stored(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    """Both messages had arrived, but the earlier one wasn't stored yet."""
    ana = api.user("Ana")
    room, other_room = await api.channel("general"), await api.channel("other")
    thread = await api.thread(room, "Plans", ana, is_announced=False)
    await api.user_says(thread, f"{api.mention()} what now?", ana, is_told=False)
    await know(inbox, room, await api.user_says(room, "known", ana, is_told=False))
    await know(inbox, other_room, await api.user_says(other_room, "later", ana, is_told=False))
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
        (inbound,) = router.seen
        assert (inbound.text, inbound.address.thread_id) == ("what now?", thread)


async def test_messages_dropped_by_an_overload_are_read_after_a_kill(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    class FullRouter(FakeRouter):
        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            if adapter.events._dropped_after is not None:
                has_dropped.set()
            if inbound.text != "before":
                raise StoreError("the disk is full")
            return await super().admit(inbound, reply)

    has_dropped = asyncio.Event()
    texts = [f"waits {number}" for number in range(8)]
    ana = api.user("Ana")
    room, chat = await api.channel("general"), api.dm(ana)
    await know(inbox, room, await api.user_says(room, "before", ana, is_told=False))
    adapter, full_router = make(api, inbox), FullRouter()
    adapter.events.max_pending_events = 4
    async with listening(adapter, full_router, api):
        before_id = await api.user_says(chat, "before", ana)
        await api.wait_for(lambda: full_router.seen)
        await know(inbox, chat, before_id)
        for text in texts:
            await api.user_says(chat, text, ana)
        await has_dropped.wait()
        thread = await api.thread(room, "Plans", ana)
        await api.user_says(thread, f"{api.mention()} what now?", ana)
        await api.user_says(chat, "last", ana)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) >= len(texts) + 2)
        seen = [inbound.text for inbound in router.seen]
        assert [text for text in seen if text != "what now?"] == [*texts, "last"]
        assert seen.count("what now?") == 1
