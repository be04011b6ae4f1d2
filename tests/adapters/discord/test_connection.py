"""The life of the Discord adapter: tokens, intents, broken and dropped connections, sending without
a gateway."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest

from adapters import poll_lock
from adapters.discord.adapter import Discord, check_discord
from core.errors import ConfigError, DeliveryError
from core.ports import Reply
from core.store.mailbox import Inbox
from core.store.sqlite.database import Database
from core.types import Address, Answer, Inbound, Scope, Sender
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.discord_api import TOKEN, DiscordApi
from tests.fixtures.discord_setup import SPECS, checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


async def see(inbox: Inbox, chat_id: str, message_id: str) -> None:
    """A message that an earlier process has answered."""
    address = Address(platform="discord", chat_id=chat_id)
    inbound = Inbound(
        kind="message",
        address=address,
        scope=Scope.group("discord", chat_id),
        sender=Sender(id="1", name="Ana"),
        text="before",
        message_id=message_id,
        sent_at=SteadyClock().now(),
        is_direct=False,
    )
    entry_id = await inbox.accept(inbound, SteadyClock().now())
    assert entry_id is not None
    await inbox.close([entry_id])


async def test_unreadable_discord_event_is_skipped_without_a_reconnect(
    api: DiscordApi, router: FakeRouter, caplog: pytest.LogCaptureFixture, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    async with listening(make(api, inbox), router, api):
        await api.malformed("MESSAGE_CREATE")
        await api.malformed("INTERACTION_CREATE", {"id": "1"})
        await api.malformed("GUILD_CREATE", {"id": api.world.guild_id, "channels": [{"type": 0}]})
        await api.malformed("MESSAGE_DELETE", [])
        await api.user_says(channel, "still there?", ana)
        await api.wait_for(lambda: router.seen)
        assert len(api.gateway.identifies) == 1
        assert sum("cannot be read" in record.message for record in caplog.records) == 4


async def test_broken_discord_connection_is_reestablished_and_receives_messages(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    async with listening(make(api, inbox), router, api):
        await api.gateway.order(
            10, {}
        )  # a greeting without its interval: the library raises and gives up
        await api.wait_for(lambda: len(api.gateway.identifies) == 2 and api.gateway.is_connected)
        await api.user_says(api.dm(ana), "again", ana)
        await api.wait_for(lambda: router.seen)


async def test_dropped_discord_socket_is_resumed_without_missing_messages(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "before", ana)
        await api.wait_for(lambda: len(router.seen) == 1)
        await api.gateway.drop()
        await api.user_says(channel, "meanwhile", ana)
        await api.wait_for(lambda: len(router.seen) == 2)
        assert [inbound.text for inbound in router.seen] == ["before", "meanwhile"]
        assert len(api.gateway.resumes) == 1
        await api.gateway.order(7)
        await api.wait_for(lambda: len(api.gateway.resumes) == 2 and api.gateway.is_connected)
        await api.gateway.order(9, False)
        await api.wait_for(lambda: len(api.gateway.identifies) == 2 and api.gateway.is_connected)
        await api.user_says(channel, "after", ana)
        await api.wait_for(lambda: len(router.seen) == 3)


async def test_message_missed_while_offline_is_admitted_after_connecting(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, eve = api.user("Ana"), api.user("Eve")
    known, unknown = api.dm(ana), api.dm(eve)
    room = await api.channel("general")
    await see(inbox, known, await api.user_says(known, "before", ana, is_told=False))
    await see(inbox, room, await api.user_says(room, "before", eve, is_told=False))
    await see(inbox, "123456789012345678", api.world.snowflake())
    for channel, text, user in (
        (known, "are you there?", ana),
        (unknown, "who is this?", eve),
        (room, f"{api.mention()} when is lunch?", eve),
        (known, "hello?", ana),
    ):
        await api.user_says(channel, text, user, is_told=False)

    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: len(router.seen) == 3)
        assert [one.text for one in router.seen if one.is_direct] == ["are you there?", "hello?"]
        assert [(one.text, one.is_addressed) for one in router.seen if not one.is_direct] == [
            ("when is lunch?", True)
        ]
        await api.user_says(known, "meanwhile", ana, is_told=False)
        await see(inbox, known, router.seen[-1].message_id)
        router.seen.clear()
        await api.gateway.order(9, False)
        await api.wait_for(lambda: "meanwhile" in [one.text for one in router.seen])


async def test_unreachable_discord_gateway_is_reconnected_repeatedly_without_tracebacks_in_the_log(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    ana = api.user("Ana")
    adapter = make(api, inbox)
    adapter.max_downtime_s = 0.05
    async with listening(adapter, router, api):
        api.gateway.is_out = True
        await api.gateway.drop()
        tried = api.gateway.attempts
        # The library alone would wait longer and longer, in the end a quarter of an hour.
        await api.wait_for(lambda: api.gateway.attempts >= tried + 12)
        api.gateway.is_out = False
        await api.wait_connected()
        await api.user_says(api.dm(ana), "back", ana)
        await api.wait_for(lambda: router.seen)
    assert not any(record.exc_info for record in caplog.records), "an hour of it would fill the log"


async def test_discord_adapter_still_sends_after_listening_ended_and_can_listen_again(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    adapter = make(api, inbox)
    go_on = asyncio.Event()

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        await go_on.wait()
        await reply.finish(Answer(text="late but here"))

    router.handler = handle
    async with listening(adapter, router, api) as task:
        await api.user_says(channel, "think", ana)
        await api.wait_for(lambda: router.seen)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await api.wait_for(lambda: not api.gateway.is_connected)
        go_on.set()
        await api.wait_for(lambda: router.served)
        reply = adapter.reply(Address(platform="discord", chat_id=channel))
        reply.begin(ListRecord("reminder:1"))
        await reply.finish(Answer(text="a reminder"))
        assert api.said(channel) == ["late but here", "a reminder"]
        again = asyncio.create_task(adapter.listen(router, SPECS))
        await api.wait_connected()
        await api.user_says(channel, "second", ana)
        await api.wait_for(lambda: len(router.seen) == 2)
        again.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await again


async def test_discord_commands_are_registered_once_per_start(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: api.commands)
        await api.gateway.order(9, False)
        await api.wait_for(lambda: len(api.gateway.identifies) == 2 and api.gateway.is_connected)
    assert len(api.sent("PUT", "/commands")) == 1
    recall = next(command for command in api.commands if command["name"] == "recall")
    assert (recall["contexts"], recall["integration_types"]) == ([0, 1, 2], [0, 1])
    assert recall["options"][0]["description"] == "What to look for"


async def test_refused_commands_do_not_stop_the_conversation(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    api.rest.fail("PUT", "/commands", 400, 50035)
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: api.sent("PUT", "/commands"))
        await api.user_says(api.dm(ana), "hello", ana)
        await api.wait_for(lambda: router.seen)


async def test_wrong_discord_token_is_refused_naming_the_variable_and_never_logged(
    api: DiscordApi, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "MTA.wrong-token.secret"
    for token in (wrong, ""):
        adapter = Discord(
            token=token,
            api_url=api.rest_url,
            gateway_url=api.gateway_url,
            inbox=inbox,
            clock=SteadyClock(),
        )
        with pytest.raises(ConfigError, match="DISCORD_BOT_TOKEN") as caught:
            await adapter.open()
        await adapter.close()
        assert wrong not in str(caught.value)
        assert wrong not in repr(adapter)
    assert wrong not in caplog.text


async def test_revoked_discord_token_stops_listening_with_an_error_naming_the_token_variable(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    adapter = make(api, inbox)
    await adapter.open()
    api.gateway.token = "another"
    with pytest.raises(ConfigError, match="DISCORD_BOT_TOKEN"):
        await adapter.listen(router, SPECS)
    await adapter.close()


async def test_missing_message_content_intent_of_discord_is_named_in_the_error(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    api.world.is_content_allowed = False
    adapter = make(api, inbox, has_message_content=True)
    with pytest.raises(ConfigError, match="Message Content Intent"):
        await adapter.open()
    api.world.is_content_allowed = True
    await adapter.open()
    api.world.is_content_allowed = False
    with pytest.raises(ConfigError, match="Message Content Intent"):
        await adapter.listen(router, SPECS)
    await adapter.close()


async def test_discord_adapter_starts_while_discord_is_unreachable_and_listens_once_it_is_back(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    api.rest.fail("GET", "/users/@me", 403, 0, times=2)
    async with listening(make(api, inbox), router, api):
        await api.user_says(api.dm(ana), "hello", ana)
        await api.wait_for(lambda: router.seen)
        assert len(api.sent("GET", "/users/@me")) == 3


@pytest.mark.parametrize(
    ("api_url", "gateway_url"),
    [
        ("http://discord.example/api/v10", None),
        (None, "ws://203.0.113.5/"),
        ("ftp://127.0.0.1", None),
        ("nonsense", None),
    ],
)
async def test_unencrypted_discord_url_to_another_machine_is_refused(
    inbox: Inbox, api_url: str | None, gateway_url: str | None
) -> None:
    adapter = Discord(
        token=TOKEN, api_url=api_url, gateway_url=gateway_url, inbox=inbox, clock=SteadyClock()
    )
    with pytest.raises(ConfigError, match="MNEME_DISCORD"):
        await adapter.open()


async def test_listen_can_be_cancelled_at_any_moment(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    for steps in range(4, 28):
        adapter = make(api, inbox)
        await adapter.open()
        task = asyncio.create_task(adapter.listen(router, SPECS))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(5):
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await adapter.close()
    for thread in threading.enumerate():
        if "keep-alive" in thread.name:
            await asyncio.to_thread(thread.join, 5)
            assert not thread.is_alive()


async def test_connected_means_that_there_is_a_session_and_its_heartbeat_is_acknowledged(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.discord.client.ACK_TIMEOUT_S", 0.1)
    api.gateway.heartbeat_interval_ms = 50
    api.gateway.is_answering = False
    adapter = make(api, inbox)
    assert adapter.problem == "not connected yet"
    await adapter.open()
    listens = asyncio.create_task(adapter.listen(router, SPECS))
    await api.wait_for(lambda: api.gateway.identifies)
    assert adapter.problem == "not connected yet"
    assert adapter.accepted_at == 0
    api.gateway.is_answering = True
    await api.gateway.drop()
    await api.wait_for(lambda: not adapter.problem)
    assert adapter.accepted_at > 0
    api.gateway.is_acking = False
    await api.wait_for(lambda: adapter.problem == "Discord does not acknowledge the heartbeat")
    api.gateway.is_acking = True
    await api.wait_for(lambda: not adapter.problem)
    api.gateway.is_out = True
    await api.gateway.drop()
    await api.wait_for(lambda: adapter.problem == "Discord answers with status 503")
    listens.cancel()
    await asyncio.gather(listens, return_exceptions=True)
    await adapter.close()


@pytest.mark.parametrize(
    ("api_url", "problem"),
    [
        ("https://discord.invalid", "the name of Discord's server cannot be resolved"),
        ("http://127.0.0.1:9", "the network does not reach 127.0.0.1:9"),
    ],
)
async def test_problem_of_a_connection_has_the_same_words_in_status_and_delivery(
    inbox: Inbox, api_url: str, problem: str
) -> None:
    adapter = Discord(
        token=TOKEN, api_url=api_url, gateway_url=None, inbox=inbox, clock=SteadyClock()
    )
    await adapter.open()
    assert problem in adapter.problem
    await adapter.close()
    with pytest.raises(DeliveryError, match=problem):
        await check_discord(TOKEN, api_url, has_message_content=False)


async def test_second_process_with_the_same_token_is_refused_until_the_first_ends(
    api: DiscordApi, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_lock, "LOCK_TIMEOUT_S", 0.0)
    first, second = make(api, inbox), make(api, inbox)
    await first.open()
    with pytest.raises(ConfigError, match="uses the same bot token"):
        await second.open()
    await first.close()
    await second.open()
    await second.close()


async def test_message_after_an_outage_is_admitted_behind_the_missed_ones(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    await see(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    texts = [f"message {number:02}" for number in range(40)]
    for text in texts[:3]:
        await api.user_says(channel, text, ana, is_told=False)
    api.rest.fail("GET", f"/channels/{channel}/messages", 429, retry_after=0.2)
    async with listening(make(api, inbox), router, api):
        for text in texts[3:]:
            await api.user_says(channel, text, ana)
        await api.wait_for(lambda: {inbound.text for inbound in router.seen} == {*texts})
        # This router knows nothing of duplicates.
        firsts = dict.fromkeys(inbound.text for inbound in router.seen)
        assert [*firsts] == texts


async def test_missed_discord_messages_are_fetched_with_retries_except_in_forbidden_channels(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    known, hidden = api.dm(ana), api.dm(bo)
    for channel, user in ((known, ana), (hidden, bo)):
        await see(inbox, channel, await api.user_says(channel, "before", user, is_told=False))
        await api.user_says(channel, "missed", user, is_told=False)
    api.rest.fail("GET", f"/channels/{known}/messages", 408, times=3)
    api.rest.fail("GET", f"/channels/{hidden}/messages", 403, 50001)
    async with listening(make(api, inbox), router, api):
        for channel, user in ((known, ana), (hidden, bo)):
            await api.user_says(channel, "now", user)
        await api.wait_for(lambda: len(router.served) >= 3)
        # This router knows nothing of duplicates.
        assert [one.text for one in router.seen if one.sender.id == ana][:2] == ["missed", "now"]
        assert [one.text for one in router.seen if one.sender.id == bo] == ["now"]


async def test_discord_channel_with_unreadable_history_still_receives_new_messages(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    await see(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    api.rest.fail("GET", f"/channels/{channel}/messages", 408, times=999)
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "now", ana)
        await api.wait_for(lambda: router.served)
        assert [one.text for one in router.seen] == ["now"]


async def test_unreadable_missed_discord_message_is_set_aside_and_the_others_served(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, database: Database
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    await see(inbox, channel, await api.user_says(channel, "before", ana, is_told=False))
    odd = await api.user_says(channel, "odd", ana, is_told=False)
    await api.user_says(channel, "missed", ana, is_told=False)
    post = api.world.post(channel, odd)
    assert post is not None
    post["attachments"] = [{"of": "a new kind"}]
    async with listening(make(api, inbox), router, api):
        await api.wait_for(lambda: router.seen)
        assert [inbound.text for inbound in router.seen] == ["missed"]
        (row,) = await database.fetch_all("SELECT update_id FROM raw_updates")
        assert row["update_id"] == int(odd)
    api.violations.clear()  # of the odd message, which no description knows
