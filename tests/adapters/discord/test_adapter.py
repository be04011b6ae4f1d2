"""What comes in from Discord: the real client library against the loopback double, places, people,
texts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import discord
import pytest

from core.errors import DeliveryError
from core.ports import Reply
from core.store.mailbox import Inbox
from core.types import Address, Answer, Command, Inbound, Scope
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.discord_world import BOT_ROLE, MANAGERS_ROLE
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


async def test_direct_discord_message_is_in_the_persons_scope_and_answered_once(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        await api.wait_for(lambda: channel in api.rest.typings)
        await reply.finish(Answer(text="Hello **Ana**!"))

    router.handler = handle
    async with listening(make(api, inbox), router, api):
        message_id = await api.user_says(channel, "Good morning", ana)
        assert await api.wait_for(lambda: api.said(channel)) == ["Hello **Ana**!"]
        inbound = router.seen[0]
        assert inbound.scope == Scope.account("discord", ana)
        assert inbound.address == Address(platform="discord", chat_id=channel)
        assert (inbound.kind, inbound.text, inbound.message_id) == (
            "message",
            "Good morning",
            message_id,
        )
        assert (inbound.sender.id, inbound.sender.name, inbound.sender.is_anonymous) == (
            ana,
            "Ana",
            False,
        )
        assert inbound.is_direct
        assert inbound.is_addressed
        assert inbound.sent_at == discord.utils.snowflake_time(int(message_id))
        await api.wait_for(lambda: len(router.served) == 1)
        assert router.receipts[0].message_ids == [api.messages(channel)[-1]["id"]]
        assert (
            len(router.seen) == 1
        )  # the answer came back through the gateway and was not taken for a question


async def test_in_a_guild_channel_a_mention_or_a_reply_addresses_the_bot(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    async with listening(make(api, inbox), router, api):
        channel = await api.channel("general")
        await api.user_says(channel, "nothing for you", ana)
        await api.user_says(channel, f"{api.mention()}, ask <@{bo}> about it", ana)
        await api.wait_for(lambda: len(router.seen) == 1)
        first = router.seen[0]
        assert first.text == "ask @Bo about it"
        assert first.scope == Scope.group("discord", channel)
        assert first.is_addressed
        assert not first.is_direct
        router.answering("Bo says hi")
        await api.user_says(channel, api.mention(), ana)
        answer = await api.wait_for(
            lambda: [m for m in api.messages(channel) if m["author"]["id"] == api.bot_id]
        )
        assert router.seen[1].text == ""
        assert answer[0]["message_reference"]["message_id"] == router.seen[1].message_id
        await api.user_says(
            channel, "unreadable without the content intent", ana, reply_to=answer[0]["id"]
        )
        await api.user_says(channel, f"really? {api.mention()}", ana, reply_to=answer[0]["id"])
        await api.wait_for(lambda: len(router.seen) == 3)
        assert router.seen[2].reply_to == answer[0]["id"]
        assert router.seen[2].text == "really? @Mneme"


async def test_discord_message_links_use_the_guild_id_or_me_in_direct_chats(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        channel = await api.channel("general")
        await api.user_says(channel, f"{api.mention()} hi", ana)
        await api.user_says(direct, "hi", ana)
        await api.wait_for(lambda: len(router.seen) == 2)
        bases = {inbound.is_direct: inbound.link_base for inbound in router.seen}
        assert bases[False] == f"https://discord.com/channels/{api.world.guild_id}/{channel}/"
        assert bases[True] == f"https://discord.com/channels/@me/{direct}/"


async def test_discord_adapter_with_the_content_intent_reads_unaddressed_messages_and_replies(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    async with listening(make(api, inbox, has_message_content=True), router, api):
        channel = await api.channel("general")
        bots = api.world.add_post(channel, api.bot_id, "earlier")["id"]
        await api.user_says(channel, "among ourselves", ana)
        await api.user_says(channel, "and why?", ana, reply_to=bots)
        await api.wait_for(lambda: len(router.seen) == 2)
        assert [(i.text, i.is_addressed) for i in router.seen] == [
            ("among ourselves", False),
            ("and why?", True),
        ]


@pytest.mark.parametrize(("has_content", "text"), [(True, "when is it?"), (False, "")])
async def test_mention_of_the_role_that_discord_created_for_the_bot_addresses_it(
    api: DiscordApi, router: FakeRouter, inbox: Inbox, has_content: bool, text: str
) -> None:
    ana = api.user("Ana")
    async with listening(make(api, inbox, has_message_content=has_content), router, api):
        channel = await api.channel("general")
        await api.user_says(channel, f"<@&{MANAGERS_ROLE}> when is it?", ana)
        await api.user_says(channel, f"<@&{BOT_ROLE}> when is it?", ana)
        await api.wait_for(lambda: any(inbound.is_addressed for inbound in router.seen))
        assert [(i.text, i.is_mention) for i in router.seen if i.is_addressed] == [(text, True)]


@pytest.mark.parametrize("is_announced", [True, False])
async def test_public_discord_threads_share_the_channels_scope_and_private_ones_have_their_own(
    api: DiscordApi, router: FakeRouter, is_announced: bool, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    router.answering("here")
    async with listening(make(api, inbox), router, api):
        channel = await api.channel("general")
        public = await api.thread(channel, "open", ana, is_announced=is_announced)
        private = await api.thread(
            channel, "closed", ana, is_private=True, is_announced=is_announced
        )
        await api.user_says(public, f"{api.mention()} one", ana)
        await api.user_says(private, f"{api.mention()} two", ana)
        await api.wait_for(lambda: api.said(public) and api.said(private))
        places = {i.text: (i.address, i.scope) for i in router.seen}
        address = Address(platform="discord", chat_id=channel, thread_id=public)
        assert places["one"] == (address, Scope.group("discord", channel))
        address = Address(platform="discord", chat_id=channel, thread_id=private)
        assert places["two"] == (address, Scope.group("discord", private))
        guild = f"https://discord.com/channels/{api.world.guild_id}"
        assert {i.text: i.link_base for i in router.seen} == {
            "one": f"{guild}/{public}/",
            "two": f"{guild}/{private}/",
        }


async def test_discord_group_chat_has_a_group_scope_and_is_not_direct(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    group = api.dm(ana, bo)
    async with listening(make(api, inbox), router, api):
        await api.user_says(group, f"{api.mention()} hello", ana)
        await api.wait_for(lambda: len(router.seen) == 1)
        assert router.seen[0].scope == Scope.group("discord", group)
        assert not router.seen[0].is_direct
        assert router.seen[0].link_base == f"https://discord.com/channels/@me/{group}/"


async def test_message_in_a_discord_channel_that_cannot_be_looked_up_is_not_served(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    lost, found = api.dm(ana), api.dm(bo)
    api.rest.fail("GET", f"/channels/{lost}", 403, 50001)
    async with listening(make(api, inbox), router, api):
        await api.user_says(lost, "hello", ana)
        await api.user_says(found, "hello", bo)
        await api.wait_for(lambda: len(router.seen) == 1)
        assert router.seen[0].address.chat_id == found


async def test_discord_webhooks_bots_and_system_messages_have_an_anonymous_sender(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, robot = api.user("Ana"), api.user("Robot", is_bot=True)
    async with listening(make(api, inbox), router, api):
        channel = await api.channel("general")
        await api.user_says(channel, f"{api.mention()} from a bot", robot)
        await api.user_says(channel, f"{api.mention()} from a hook", ana, webhook_id=robot)
        await api.user_says(channel, api.mention(), ana, type=6)
        await api.wait_for(lambda: len(router.seen) == 3)
        assert [inbound.sender.is_anonymous for inbound in router.seen] == [True, True, True]


async def test_discord_poll_becomes_text_and_its_outcome_an_edit(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    poll = {
        "question": {"text": "Which day?"},
        "answers": [
            {"answer_id": 1, "poll_media": {"text": "Monday"}},
            {"answer_id": 2, "poll_media": {"text": "Friday"}},
        ],
        "expiry": "2026-11-20T12:00:00+00:00",
        "allow_multiselect": False,
        "layout_type": 1,
    }
    counts = [{"id": 1, "count": 2, "me_voted": False}]
    results = {"is_finalized": True, "answer_counts": counts}
    endless = {"expiry": None}
    async with listening(make(api, inbox), router, api):
        message = await api.user_says(api.dm(ana), "", ana, poll=poll)
        await api.user_says(api.dm(ana), "", ana, poll={**poll, **endless, "results": results})
        await api.wait_for(lambda: len(router.seen) == 2)
        await api.end_poll(api.dm(ana), message, results)
        await api.wait_for(lambda: len(router.seen) == 3)
    outcome = "Closed poll: {Which day? Options: Monday (2); Friday (0)}"
    assert [(inbound.kind, inbound.text) for inbound in router.seen] == [
        ("message", "Poll: {Which day? Options: Monday; Friday}"),
        ("message", outcome),
        ("edit", outcome),
    ]
    assert router.seen[-1].message_id == message


async def test_attachment_of_a_message_is_listed_with_its_address_and_size(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    url = "http://127.0.0.1/cat.png"
    picture = {
        "id": "77",
        "filename": "cat.png",
        "size": 1234,
        "url": url,
        "proxy_url": url,
        "content_type": "image/png",
    }
    async with listening(make(api, inbox), router, api):
        await api.user_says(api.dm(ana), "", ana, attachments=[picture])
        await api.wait_for(lambda: len(router.seen) == 1)
        attachment = router.seen[0].attachments[0]
        assert (attachment.kind, attachment.name, attachment.mime) == (
            "image",
            "cat.png",
            "image/png",
        )
        assert (attachment.size_bytes, attachment.reference) == (1234, url)


async def test_discord_edits_without_a_change_are_ignored_and_deletes_of_unseen_messages_reported(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    direct = api.dm(ana)
    old = await api.user_says(direct, "before the bot came", ana, is_told=False)
    async with listening(make(api, inbox), router, api):
        channel = await api.channel("general")
        message = await api.user_says(direct, "Porto", ana)
        await api.embed(direct, message)
        await api.edit(direct, message, "Lisbon")
        await api.delete(direct, message)
        await api.delete(direct, old)
        others = [await api.user_says(channel, f"{api.mention()} {n}", ana) for n in "ab"]
        await api.delete(channel, *others)
        await api.wait_for(lambda: len(router.seen) == 8)
        told = [(i.kind, i.text, i.message_id) for i in router.seen if i.is_direct]
        assert told == [
            ("message", "Porto", message),
            ("edit", "Lisbon", message),
            ("delete", "", message),
            ("delete", "", old),
        ]
        assert {i.sender.id for i in router.seen if i.is_direct} == {ana}
        assert {i.scope for i in router.seen if i.is_direct} == {Scope.account("discord", ana)}
        assert [
            i.message_id for i in router.seen if i.kind == "delete" and not i.is_direct
        ] == others


async def test_a_command_typed_as_text_in_a_direct_chat_is_a_command(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    async with listening(make(api, inbox), router, api):
        await api.user_says(api.dm(ana), "/recall  Porto trip", ana)
        await api.user_says(api.dm(ana), "/etc/hosts is a file", ana)
        await api.wait_for(lambda: len(router.seen) == 2)
        assert router.seen[0].command == Command(name="recall", arguments="Porto trip")
        assert router.seen[1].command is None


async def test_messages_of_each_discord_channel_are_received_in_order(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    async with listening(make(api, inbox), router, api):
        for n in range(20):
            await api.user_says(api.dm(ana), f"a{n}", ana)
            await api.user_says(api.dm(bo), f"b{n}", bo)
        await api.wait_for(lambda: len(router.seen) == 40)
        for person, letter in ((ana, "a"), (bo, "b")):
            texts = [inbound.text for inbound in router.seen if inbound.sender.id == person]
            assert texts == [f"{letter}{n}" for n in range(20)]


async def test_discord_thumb_and_its_removal_are_reported_and_other_reactions_ignored(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)
    async with listening(make(api, inbox), router, api):
        message_id = await api.user_says(channel, "Good morning", ana)
        await api.wait_for(lambda: router.seen)
        await api.react(channel, message_id, "🎉", ana)
        await api.react(channel, message_id, "👍🏽", ana)
        await api.react(channel, message_id, "👍🏽", ana, is_removal=True)
        await api.wait_for(lambda: len(router.seen) == 3)
    changes = [(inbound.kind, inbound.text, inbound.message_id) for inbound in router.seen[1:]]
    assert changes == [("reaction", "up", message_id), ("reaction", "", message_id)]
    assert router.seen[1].scope == Scope.account("discord", ana)


async def test_message_gets_a_reaction_while_its_answer_is_prepared_if_configured(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana)

    async def handle(inbound: Inbound, reply: Reply) -> None:
        router.begin(inbound, reply)
        await api.wait_for(lambda: api.rest.reactions)
        await reply.finish(Answer(text="Done."))

    router.handler = handle
    async with listening(make(api, inbox, marks_working=True), router, api):
        message_id = await api.user_says(channel, "Work!", ana)
        await api.wait_for(lambda: len(api.rest.reactions) == 2)
    assert api.rest.reactions == [("+", channel, message_id), ("-", channel, message_id)]


async def test_people_with_manage_server_are_admins_of_its_channels(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, bo = api.user("Ana"), api.user("Bo")
    api.world.managers = {ana}
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        channel = await api.channel("general")
        await api.user_says(channel, f"{api.mention()} hi", ana)
        await api.user_says(channel, f"{api.mention()} hi", bo)
        await api.wait_for(lambda: len(router.seen) == 2)
        by_ana, by_bo = router.seen
        assert by_ana.server_id == api.world.guild_id
        assert by_ana.is_mention
        assert await adapter.is_admin(by_ana)
        assert not await adapter.is_admin(by_bo)
        assert "@everyone" in (await adapter.load_role_names(by_bo.server_id)).values()
        assert await adapter.load_place_name(by_bo.address) == "#general"
        stranger = replace(by_bo, sender=replace(by_bo.sender, id="100000000000000001"))
        with pytest.raises(DeliveryError):
            await adapter.is_admin(stranger)
