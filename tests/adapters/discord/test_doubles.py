"""A post whose response is lost leaves neither an unmarked double nor half a message on Discord: the
message is found in the channel's history and edited, or what follows is marked. The real client
talks to a loopback server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapters.discord.adapter import Discord
from adapters.discord.messages import DiscordMessages
from adapters.streaming import StreamedReply
from core.store.mailbox import Inbox
from core.types import Address, Answer, Button, Command
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow

TEXT = "Half an hour, I think."
MARK = "(you may have seen this; the connection broke)"


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


@pytest.fixture
async def discord(api: DiscordApi, inbox: Inbox, router: FakeRouter) -> AsyncIterator[Discord]:
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        yield adapter


def begin_reply(
    discord: Discord, channel: str, record: ListRecord, trigger: str | None = None
) -> StreamedReply:
    """Begin an answer in a channel, with short delays."""
    reply = discord.reply(Address(platform="discord", chat_id=channel), trigger)
    assert isinstance(reply, StreamedReply)
    reply._first_words_s = 0
    reply._api.pace_s = 0.01
    reply.begin(record)
    return reply


async def kill_replies() -> None:
    """End all calls, as the end of the process would."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("answer")]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def kill_after_first_part(
    api: DiscordApi, discord: Discord, channel: str, trigger: str | None = None
) -> ListRecord:
    """Begin an answer, and end everything while its first part is accepted but not known.

    The nonce is forgotten afterwards. Returns what the next process finds.
    """
    record = ListRecord()
    api.rest.reply_delay_s = 60
    begin_reply(discord, channel, record, trigger).show("Half")
    await api.wait_for(lambda: "Half" in api.said(channel))
    await kill_replies()
    api.rest.reply_delay_s = 0
    api.rest.forget_nonces()
    return ListRecord(posted=record.stored)


@pytest.mark.parametrize("is_closed", [False, True])
async def test_discord_message_whose_post_response_was_lost_is_edited_into_the_whole_answer(
    api: DiscordApi, discord: Discord, *, is_closed: bool
) -> None:
    """The connection is closed, or a proxy answers with an empty body."""
    ana = api.user("Ana")
    channel = await api.channel("general")
    trigger = await api.user_says(channel, f"{api.mention()} how long?", ana)
    record = ListRecord()
    api.rest.lose("/messages", is_closed=is_closed)
    reply = begin_reply(discord, channel, record, trigger)
    reply.show("Half")
    await api.wait_for(lambda: api.said(channel) == ["Half"])
    await api.user_says(channel, "And a bystander says something.", ana)
    api.rest.forget_nonces()
    await reply.finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]
    assert len(record.message_ids) == 1
    assert record.lost_posts == []


@pytest.mark.parametrize("is_direct", [False, True])
async def test_first_part_of_a_killed_process_becomes_the_answer_of_the_next_one(
    api: DiscordApi, discord: Discord, *, is_direct: bool
) -> None:
    ana = api.user("Ana")
    channel = api.dm(ana) if is_direct else await api.channel("general")
    trigger = await api.user_says(channel, f"{api.mention()} how long?", ana)
    await api.user_says(channel, "A second message was faster.", ana)
    record = await kill_after_first_part(api, discord, channel, None if is_direct else trigger)
    await api.user_says(channel, "And another one.", ana)
    reply = begin_reply(discord, channel, record, None if is_direct else trigger)
    reply.show("Half an")
    await api.wait_for(lambda: api.said(channel) == ["Half an"])
    await reply.finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]


async def test_lost_discord_reply_to_one_message_is_edited_into_the_reply_to_several(
    api: DiscordApi, discord: Discord
) -> None:
    """Messages that wait while the process is off are answered together, by a reply to another."""
    ana = api.user("Ana")
    channel = await api.channel("general")
    trigger = await api.user_says(channel, f"{api.mention()} how long?", ana)
    second = await api.user_says(channel, f"{api.mention()} and why?", ana)
    record = await kill_after_first_part(api, discord, channel, second)
    await begin_reply(discord, channel, record, trigger).finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]


async def test_reminder_posted_by_a_killed_process_is_found_in_an_otherwise_empty_discord_chat(
    api: DiscordApi, discord: Discord
) -> None:
    channel = api.dm(api.user("Ana"))
    record = await kill_after_first_part(api, discord, channel)
    await begin_reply(discord, channel, record).finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]


@pytest.mark.parametrize("is_same_process", [False, True])
async def test_discord_message_already_used_by_another_answer_is_not_edited(
    api: DiscordApi, discord: Discord, *, is_same_process: bool
) -> None:
    """Discord still knows the nonce with which it was posted."""
    channel = api.dm(api.user("Ana"))
    record, other = ListRecord("job:1"), ListRecord("turn:2", posted=["?1"])
    api.rest.reply_delay_s = 60
    begin_reply(discord, channel, record).show("Tea.")
    await api.wait_for(lambda: api.said(channel) == ["Tea."])
    await kill_replies()
    api.rest.reply_delay_s = 0
    await begin_reply(discord, channel, other).finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]
    record = ListRecord("job:1", record.stored, known_ids=other.message_ids)
    reply = begin_reply(discord, channel, record)
    if not is_same_process:
        assert isinstance(reply._api, DiscordMessages)
        reply._api._channels._posted.clear()
    await reply.finish(Answer(text="Tea."))
    assert api.said(channel) == [TEXT, f"{MARK}\n\nTea."]


async def test_second_part_of_a_killed_process_becomes_the_second_part_of_the_next_one(
    api: DiscordApi, discord: Discord
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    trigger = await api.user_says(channel, f"{api.mention()} how long?", ana)
    first = api.world.add_post(channel, api.bot_id, "The first")["id"]
    api.world.add_post(channel, api.bot_id, "The sec")
    record = ListRecord(posted=[first, f"?{first}"])
    text = "\n\n".join(f"{number} " + "x" * 700 for number in range(4))
    await begin_reply(discord, channel, record, trigger).finish(Answer(text=text))
    assert "\n\n".join(api.said(channel)) == text
    assert len(api.said(channel)) == 2


async def test_post_that_never_arrived_is_repeated_without_a_mark(
    api: DiscordApi, discord: Discord
) -> None:
    """The history shows the question, so it would show the answer, too."""
    ana = api.user("Ana")
    channel = api.dm(ana)
    trigger = await api.user_says(channel, "How long?", ana)
    record = ListRecord(posted=[f"?{trigger}"])
    await begin_reply(discord, channel, record).finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]
    assert record.lost_posts == []


async def test_repeated_discord_post_is_marked_if_the_channel_history_cannot_be_read(
    api: DiscordApi, discord: Discord
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    trigger = await api.user_says(channel, f"{api.mention()} how long?", ana)
    record = await kill_after_first_part(api, discord, channel, trigger)
    api.rest.has_history = False
    await begin_reply(discord, channel, record, trigger).finish(Answer(text=TEXT))
    assert api.said(channel) == ["Half", f"{MARK}\n\n{TEXT}"]


async def test_search_for_a_lost_discord_post_ignores_other_answers_in_the_channel(
    api: DiscordApi, discord: Discord
) -> None:
    ana = api.user("Ana")
    channel = await api.channel("general")
    trigger = await api.user_says(channel, f"{api.mention()} how long?", ana)
    known = api.world.add_post(channel, api.bot_id, "A reminder")["id"]
    other = await api.user_says(channel, f"{api.mention()} and you?", ana)
    reference = {"type": 0, "channel_id": channel, "message_id": other}
    api.world.add_post(channel, api.bot_id, "To another", message_reference=reference)
    own = ListRecord("turn:2")
    await begin_reply(discord, channel, own, other).finish(Answer(text="Of this process"))
    record = ListRecord(posted=[f"?{trigger}/{trigger}"], known_ids=[known])
    await begin_reply(discord, channel, record, trigger).finish(Answer(text=TEXT))
    assert api.said(channel) == ["A reminder", "To another", "Of this process", TEXT]


async def test_two_lost_posts_are_each_edited_into_one_of_two_answers_searching_at_once(
    api: DiscordApi, discord: Discord
) -> None:
    channel = api.dm(api.user("Ana"))
    for _ in range(2):
        api.world.add_post(channel, api.bot_id, "Half")
    first_id = int(api.messages(channel)[0]["id"]) - 1
    records = [ListRecord(key, [f"?{first_id}"]) for key in ("turn:1", "turn:2")]
    replies = [begin_reply(discord, channel, record) for record in records]
    await asyncio.gather(
        *(reply.finish(Answer(text=text)) for reply, text in zip(replies, "AB", strict=True))
    )
    assert sorted(api.said(channel)) == ["A", "B"]


async def test_discord_nonce_does_not_return_a_message_already_used_by_another_answer(
    api: DiscordApi, discord: Discord
) -> None:
    """Two posts were cut, and one of them arrived: it doesn't matter which answer finds it."""
    ana = api.user("Ana")
    channel = api.dm(ana)
    trigger = await api.user_says(channel, "How long?", ana)
    record = ListRecord("turn:1")
    api.rest.reply_delay_s = 60
    begin_reply(discord, channel, record).show("Half")
    await api.wait_for(lambda: api.said(channel) == ["Half"])
    await kill_replies()
    api.rest.reply_delay_s = 0
    for key, posted, text in (
        ("turn:2", [f"?{trigger}"], "Another"),
        ("turn:1", record.stored, TEXT),
    ):
        await begin_reply(discord, channel, ListRecord(key, posted)).finish(Answer(text=text))
    assert api.said(channel) == ["Another", TEXT]


async def test_message_still_being_posted_is_not_mistaken_for_a_lost_one(
    api: DiscordApi, discord: Discord
) -> None:
    """Its id isn't known before Discord responds."""
    ana = api.user("Ana")
    channel = api.dm(ana)
    trigger = await api.user_says(channel, "How long?", ana)
    api.rest.reply_delay_s = 1
    other = begin_reply(discord, channel, ListRecord("turn:2"))
    posting = asyncio.create_task(other.finish(Answer(text="Another")))
    await api.wait_for(lambda: api.said(channel) == ["Another"])
    reply = begin_reply(discord, channel, ListRecord(posted=[f"?{trigger}"]))
    await reply.finish(Answer(text=TEXT))
    await posting
    assert api.said(channel) == ["Another", TEXT]


async def test_buttons_are_added_to_a_message_that_the_nonce_gives_back(
    api: DiscordApi, discord: Discord
) -> None:
    channel = api.dm(api.user("Ana"))
    button = Button(label="More", command=Command(name="recall", arguments="2"), id="abc")
    await begin_reply(discord, channel, ListRecord()).finish(Answer(text=TEXT))
    answer = Answer(text=TEXT, buttons=(button,))
    await begin_reply(discord, channel, ListRecord()).finish(answer)
    assert api.said(channel) == [TEXT]
    assert api.messages(channel)[0]["components"][0]["components"][0]["custom_id"] == "abc"


async def test_answer_to_a_command_that_a_kill_interrupts_is_completed_in_the_channel(
    api: DiscordApi, discord: Discord, router: FakeRouter
) -> None:
    # However busy the machine is, the lost response is that of the answer, not of a deferral.
    discord.events.defer_after_s = 3600
    ana = api.user("Ana")
    channel = await api.channel("general")
    await api.wait_for(lambda: api.commands)
    api.rest.lose("/callback")
    router.answering("Half")
    await api.slash(channel, ana, "help")
    await api.wait_for(lambda: api.said(channel) == ["Half"] and router.errors)
    record = ListRecord(posted=router.receipts[-1].stored)
    reply = begin_reply(discord, channel, record, f"@{ana}")
    await reply.finish(Answer(text=TEXT))
    assert api.said(channel) == [TEXT]
