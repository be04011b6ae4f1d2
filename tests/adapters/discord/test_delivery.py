"""What goes out to Discord: streaming, splitting, files, idempotent posts, refusals; nobody is ever
mentioned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from core.errors import ChatRefused, DeliveryError, StoreError
from core.ports import Reply
from core.store.mailbox import Inbox
from core.types import Address, Answer, Button, Command, File, Inbound
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


async def test_streamed_discord_answer_edits_one_message_instead_of_posting_several(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        reply.show("One")
        await api.wait_for(lambda: api.said(channel) == ["One"])
        reply.show("One two")
        await api.wait_for(lambda: api.said(channel) == ["One two"])
        await reply.finish(Answer(text="One two three"))

    router.handler = handle
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "count", ana)
        await api.wait_for(lambda: router.served)
        assert api.said(channel) == ["One two three"]
        assert len(api.sent("POST", "/messages")) == 1


async def test_no_message_makes_discord_fetch_a_link(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    link = "see https://evil.example/?q=walrus"
    whole = f"{link} or [this](https://evil.example/?q=plan)\n\n" + "x" * 2_000

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        reply.show(link)
        await api.wait_for(lambda: bool(api.said(channel)))
        await reply.finish(Answer(text=whole))

    router.handler = handle
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "go", ana)
        await api.wait_for(lambda: router.served)
        posts = api.sent("POST", "/messages")
        assert len(posts) == 2
        assert (
            "<https://evil.example/?q=walrus> or this (<https://evil.example/?q=plan>)"
            in (api.said(channel)[0])
        )
        assert api.world.previews == []


async def test_a_long_answer_is_split_and_mentions_nobody(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    router.answering(
        "\n\n".join(f"{n} " + "x" * 700 + " 😀 @everyone <@123456789012345678>" for n in range(5))
    )
    async with listening(make(api, inbox), router, api):
        channel = await api.channel("general")
        await api.user_says(channel, f"{api.mention()} tell me all", ana)
        await api.wait_for(lambda: router.served)
        parts = api.said(channel)
        assert len(parts) == 3
        assert all(len(part) <= 2000 for part in parts)
        assert not any(message["mention_everyone"] for message in api.messages(channel))
        references = [
            "message_reference" in m
            for m in api.messages(channel)
            if m["author"]["id"] == api.bot_id
        ]
        assert references == [True, False, False]


async def test_discord_answer_is_sent_with_its_files_and_shortened_button_labels(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    button = Button(label="More " * 40, command=Command(name="recall", arguments="2"), id="abc")
    router.answering(
        Answer(text="", files=(File(name="chat.txt", content=b"hello"),), buttons=(button,))
    )
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "export", ana)
        await api.wait_for(lambda: router.served)
        message = api.messages(channel)[-1]
        assert [(a["filename"], a["size"]) for a in message["attachments"]] == [("chat.txt", 5)]
        shown = message["components"][0]["components"][0]
        assert shown["custom_id"] == "abc"
        assert len(shown["label"]) <= 80


async def test_discord_delivery_repeated_by_a_second_process_posts_one_message(
    api: DiscordApi, inbox: Inbox
) -> None:
    channel = api.dm(api.user("Ana"))
    adapter = make(api, inbox)
    await adapter.open()
    for _ in range(2):  # the second process does not know what the first one posted
        reply = adapter.reply(Address(platform="discord", chat_id=channel))
        reply.begin(ListRecord("reminder:7"))
        await reply.finish(Answer(text="Tea!"))
    assert api.said(channel) == ["Tea!"]
    await adapter.close()


async def test_a_draft_that_was_posted_but_not_recorded_is_found_again(
    api: DiscordApi, inbox: Inbox
) -> None:
    class _Unreached(ListRecord):
        async def record(self, *message_ids: str, is_last: bool = False) -> None:
            raise StoreError("killed before this could be written")

    channel = api.dm(api.user("Ana"))
    adapter = make(api, inbox)
    await adapter.open()
    first = adapter.reply(Address(platform="discord", chat_id=channel))
    first.begin(_Unreached("turn:7"))
    first.show("Half an")
    await api.wait_for(lambda: api.said(channel) == ["Half an"])
    await first.abandon()
    again = adapter.reply(Address(platform="discord", chat_id=channel))
    again.begin(ListRecord("turn:7"))
    await again.finish(Answer(text="The whole answer"))
    assert api.said(channel) == ["The whole answer"]
    await adapter.close()


async def test_discord_answer_after_a_restart_edits_its_message_or_reposts_a_deleted_one(
    api: DiscordApi, inbox: Inbox
) -> None:
    channel = api.dm(api.user("Ana"))
    standing = api.world.add_post(channel, api.bot_id, "half an ans")["id"]
    adapter = make(api, inbox)
    await adapter.open()
    for posted, answer in (([standing], "the answer"), (["424242424242424242"], "another answer")):
        reply = adapter.reply(Address(platform="discord", chat_id=channel))
        reply.begin(ListRecord(f"turn:{answer}", posted))
        await reply.finish(Answer(text=answer))
    assert api.said(channel) == ["the answer", "another answer"]
    await adapter.close()


@pytest.mark.parametrize(("status", "code"), [(400, 50035), (403, 50005), (403, 0)])
async def test_new_message_replaces_one_that_discord_refuses_to_edit(
    api: DiscordApi, inbox: Inbox, status: int, code: int
) -> None:
    channel = api.dm(api.user("Ana"))
    message_id = api.world.add_post(channel, api.bot_id, "the first answer")["id"]
    api.rest.fail("PATCH", f"/channels/{channel}/messages/{message_id}", status, code, times=9)
    adapter = make(api, inbox)
    await adapter.open()
    reply = adapter.reply(Address(platform="discord", chat_id=channel))
    reply.begin(ListRecord("turn:7", [message_id]))
    await reply.finish(Answer(text="the new answer"))
    assert api.said(channel) == ["the new answer"]
    assert len(api.sent("PATCH", f"/channels/{channel}/messages")) == 1
    await adapter.close()


async def test_failed_delivery_says_whether_trying_again_helps(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    blocked, gone, slow = (api.dm(api.user(name)) for name in ("Ana", "Bo", "Cy"))
    api.block(blocked)
    api.rest.fail("POST", f"/channels/{slow}/messages", 429, retry_after=90.0)
    adapter = make(api, inbox)
    await adapter.open()

    async def refusal(chat_id: str) -> DeliveryError:
        reply = adapter.reply(Address(platform="discord", chat_id=chat_id))
        reply.begin(ListRecord(f"reminder:{chat_id}"))
        with pytest.raises(DeliveryError) as caught:
            await reply.finish(Answer(text="hello"))
        return caught.value

    assert (await refusal(blocked)).is_permanent
    assert (await refusal("123456789012345678")).is_permanent
    assert (await refusal("nonsense")).is_permanent
    error = await refusal(slow)
    assert not error.is_permanent
    assert error.retry_after_s == 90.0
    api.hide(gone)
    assert (await refusal(gone)).is_permanent
    await adapter.close()
    assert not (await refusal(slow)).is_permanent  # closed is not refused


@pytest.mark.parametrize(
    ("method", "route"),
    [("POST", "/messages"), ("PATCH", "/messages/"), ("DELETE", "/messages/"), ("POST", "/typing")],
)
async def test_every_call_waits_out_a_rate_limit(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, method: str, route: str
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        await api.wait_for(lambda: channel in api.rest.typings or api.sent("POST", "/typing"))
        reply.show("word " * 500)
        await api.wait_for(lambda: len(api.said(channel)) == 2)
        await reply.finish(Answer(text="the end"))

    router.handler = handle
    api.rest.fail(method, route, 429, retry_after=0.05, times=2)
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "tell me all", ana)
        await api.wait_for(lambda: router.served)
        assert not router.errors
        assert api.said(channel) == ["the end"]
        assert [failure["times"] for failure in api.rest.failures] == [0]


async def test_discord_rate_limit_of_one_channel_delays_others_only_if_it_is_global(
    api: DiscordApi, inbox: Inbox
) -> None:
    slow, other = api.dm(api.user("Ana")), api.dm(api.user("Bo"))
    adapter = make(api, inbox)
    await adapter.open()

    async def send(channel: str, key: str) -> None:
        reply = adapter.reply(Address(platform="discord", chat_id=channel))
        reply.begin(ListRecord(key))
        await reply.finish(Answer(text=key))

    for is_global in (False, True):
        api.requests.clear()
        api.rest.fail(
            "POST", f"/channels/{slow}/messages", 429, retry_after=0.3, is_global=is_global
        )
        limited = asyncio.create_task(send(slow, f"slow {is_global}"))
        await api.wait_for(
            lambda: [request for request in api.sent("POST", slow) if request["status"] == 429]
        )
        await asyncio.gather(limited, send(other, f"other {is_global}"))
        posts = [
            request["path"] for request in api.sent("POST", "/messages") if request["status"] == 200
        ]
        assert [other in path for path in posts] == [not is_global, is_global]
    await adapter.close()


async def test_discord_answer_is_sent_without_waiting_for_a_rate_limited_typing_signal(
    api: DiscordApi, inbox: Inbox
) -> None:
    channel = api.dm(api.user("Ana"))
    api.rest.fail("POST", "/typing", 429, retry_after=25.0)
    adapter = make(api, inbox)
    await adapter.open()
    reply = adapter.reply(Address(platform="discord", chat_id=channel))
    reply.begin(ListRecord("turn:1"))
    await api.wait_for(lambda: api.sent("POST", "/typing"))
    async with asyncio.timeout(2):
        await reply.finish(Answer(text="hello"))
    assert api.said(channel) == ["hello"]
    await adapter.close()


async def test_an_archived_thread_is_opened_and_a_locked_one_refused(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        channel = await api.channel("general")
        thread = await api.thread(channel, "old", ana)
        address = Address(platform="discord", chat_id=channel, thread_id=thread)
        standing = api.world.add_post(thread, api.bot_id, "half")["id"]
        api.archive(thread)
        reply = adapter.reply(address)
        reply.begin(ListRecord("turn:1", [standing]))
        await reply.finish(Answer(text="whole"))
        assert api.said(thread) == ["whole"]
        api.archive(thread, is_locked=True)
        reply = adapter.reply(address)
        reply.begin(ListRecord("turn:2"))
        with pytest.raises(DeliveryError) as caught:
            await reply.finish(Answer(text="too late"))
        assert caught.value.is_permanent


async def test_a_private_answer_is_never_posted_in_a_room(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        channel = await api.channel("general")
        secret = Answer(text="x" * 3000, is_private=True)
        reply = adapter.reply(Address(platform="discord", chat_id=channel))
        reply.begin(ListRecord("turn:1"))
        with pytest.raises(DeliveryError, match="expired") as caught:
            await reply.finish(secret)
        assert caught.value.is_permanent
        assert api.messages(channel) == []
        reply = adapter.reply(Address(platform="discord", chat_id=direct))
        reply.begin(ListRecord("turn:2"))
        await reply.finish(secret)
        assert len(api.said(direct)) == 2


async def test_private_answer_to_a_typed_message_of_a_channel_is_sent_in_the_direct_chat(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        channel = await api.channel("general")
        question = await api.user_says(channel, "@Mneme /facts", ana)
        reply = adapter.reply(Address(platform="discord", chat_id=channel), question)
        reply.begin(ListRecord("turn:1"))
        await reply.finish(Answer(text="You live in Porto.", is_private=True))
        assert api.said(direct) == ["You live in Porto."]
        assert "You live in Porto." not in api.said(channel)


async def test_private_answer_moved_from_a_channel_to_the_direct_chat_has_no_buttons(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    adapter = make(api, inbox)
    more = Button(label="More", command=Command(name="recall", arguments="2"), id="abc")
    answer = Answer(text="You live in Porto.", is_private=True, buttons=(more,))
    async with listening(adapter, router, api):
        channel = await api.channel("general")
        question = await api.user_says(channel, "@Mneme /facts", ana)
        reply = adapter.reply(Address(platform="discord", chat_id=channel), question)
        reply.begin(ListRecord("turn:1"))
        await reply.finish(answer)
        assert [message.get("components") for message in api.messages(direct)] == [[]]
        reply = adapter.reply(Address(platform="discord", chat_id=direct))
        reply.begin(ListRecord("turn:2"))
        await reply.finish(answer)
        assert api.messages(direct)[-1]["components"] != []


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    [
        (404, 10003, "gone"),
        (403, 50001, "no_rights"),
        (403, 50013, "no_rights"),
        (403, 50007, "blocked"),
        (403, 40007, "gone"),
        (403, 50009, "no_rights"),
        (400, 160005, "closed"),
    ],
)
async def test_discord_chat_that_refuses_messages_is_a_permanent_failure_after_one_attempt(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, status: int, code: int, cause: str
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    router.answering("hello")
    api.rest.fail("POST", f"/channels/{channel}/messages", status, code, times=9)
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "hi", ana)
        await api.wait_for(lambda: router.served)
    (error,) = router.errors
    assert isinstance(error, ChatRefused)
    assert (error.cause, error.is_permanent) == (cause, True)
    assert len(api.sent("POST", f"/channels/{channel}/messages")) == 1


@pytest.mark.parametrize(
    ("status", "page", "is_permanent"),
    [
        (403, "<html>Access denied</html>", False),
        (404, "<html>nginx</html>", False),
        # A file that is too large stays too large.
        (413, "<html>Request Entity Too Large</html>", True),
    ],
)
async def test_refusal_by_a_proxy_before_discord_is_an_outage_and_not_permanent(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, status: int, page: str, is_permanent: bool
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    router.answering("hello")
    api.rest.fail("POST", f"/channels/{channel}/messages", status, times=9, page=page)
    async with listening(make(api, inbox), router, api):
        await api.user_says(channel, "hi", ana)
        await api.wait_for(lambda: router.served)
    (error,) = router.errors
    assert isinstance(error, DeliveryError)
    assert error.is_permanent == is_permanent
    assert error.is_unreachable != is_permanent
