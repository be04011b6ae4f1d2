"""A post whose reply is lost leaves neither an unmarked double nor half a message: the message is
found and edited, or what follows is marked. The real client talks to a Bot API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.streaming import StreamedReply
from adapters.telegram.adapter import Telegram
from adapters.telegram.messages import MAX_LOST_TRIES, ChatHistory
from core.errors import DeliveryError
from core.markup.markdown import StyledText
from core.store.mailbox import Inbox
from core.store.sqlite.database import Database
from core.types import Address, Answer
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.new_database import place

pytestmark = pytest.mark.slow

GROUP = -1001234
ADDRESS = Address(platform="telegram", chat_id=str(GROUP))
TEXT = "Half an hour, I think."
MARK = "(you may have seen this; the connection broke)"


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as api:
        api.group(GROUP)
        yield api
        assert api.violations == []


@pytest.fixture
async def telegram(api: BotApi, tmp_path: Path) -> AsyncIterator[Telegram]:
    async with Database.open(place(tmp_path / "state.db")) as database:
        clock = SteadyClock()
        adapter = Telegram(
            token=api.token, api_url=api.url, inbox=Inbox(database, clock), clock=clock
        )
        await adapter.open()
        yield adapter
        await adapter.close()


def begin_reply(telegram: Telegram, trigger: int, record: ListRecord) -> StreamedReply:
    """Begin the answer to a message of the group, with short delays."""
    reply = telegram.reply(ADDRESS, str(trigger))
    assert isinstance(reply, StreamedReply)
    reply._first_words_s = 0
    reply._api.pace_s = 0.01
    reply.begin(record)
    return reply


def ask(api: BotApi, text: str = "How long?") -> int:
    message_id: int = api.user_says(GROUP, text, user_id=7)["message"]["message_id"]
    return message_id


async def kill_replies() -> None:
    """End all calls, as the end of the process would."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("answer")]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.parametrize("status", [0, 200])
async def test_telegram_message_whose_send_response_was_lost_is_edited_into_the_whole_answer(
    api: BotApi, telegram: Telegram, status: int
) -> None:
    """0: the connection is closed; 200: a proxy answers `{}`."""
    record = ListRecord()
    api.lose(status, method="sendMessage")
    reply = begin_reply(telegram, ask(api), record)
    reply.show("Half")
    await api.wait_for(lambda: api.texts(GROUP) == ["Half"])
    reply.show("Half an")
    ask(api, "And a bystander says something.")
    await reply.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == [TEXT]
    assert len(record.message_ids) == 1


async def test_first_part_of_a_killed_process_becomes_the_answer_of_the_next_one(
    api: BotApi, telegram: Telegram
) -> None:
    trigger, record = ask(api), ListRecord()
    ask(api, "A bystander was faster.")
    api.reply_delay_s = 60
    begin_reply(telegram, trigger, record).show("Half")
    await api.wait_for(lambda: api.texts(GROUP) == ["Half"])
    await kill_replies()
    api.reply_delay_s = 0
    ask(api, "Another bystander.")
    reply = begin_reply(telegram, trigger, ListRecord(posted=record.stored))
    reply.show("Half an")
    reply.show("Half an hour")
    await reply.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == [TEXT]


async def test_part_of_a_draft_whose_deletion_was_interrupted_is_deleted_at_the_next_attempt(
    api: BotApi, telegram: Telegram
) -> None:
    trigger, record = ask(api), ListRecord()
    reply = begin_reply(telegram, trigger, record)
    reply.show("A draft is long. " * 300)
    await api.wait_for(lambda: len(api.texts(GROUP)) == 2)
    api.drop(method="deleteMessage")
    with pytest.raises(DeliveryError) as caught:
        await reply.finish(Answer(text=TEXT))
    assert caught.value.is_unreachable
    reply = begin_reply(telegram, trigger, ListRecord(posted=record.stored))
    await reply.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == [TEXT]


async def test_search_for_a_lost_telegram_message_ignores_other_answers_in_the_group(
    api: BotApi, telegram: Telegram
) -> None:
    trigger, record, other = ask(api), ListRecord(), ListRecord("turn:2")
    api.drop(method="sendMessage")
    reply = begin_reply(telegram, trigger, record)
    reply.show("Half")
    await api.wait_for(lambda: len(api.called("sendMessage")) == 1)
    await begin_reply(telegram, ask(api, "Another question"), other).finish(Answer(text="Another"))
    reply = begin_reply(telegram, trigger, ListRecord(posted=record.stored, known_ids=other.stored))
    await reply.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == ["Another", TEXT]


async def test_two_lost_posts_are_each_edited_into_one_of_two_answers_searching_at_once(
    api: BotApi, telegram: Telegram
) -> None:
    trigger, records = ask(api), [ListRecord("turn:1"), ListRecord("turn:2")]
    api.reply_delay_s = 60
    for record in records:
        begin_reply(telegram, trigger, record).show("Half")
    await api.wait_for(lambda: api.texts(GROUP) == ["Half", "Half"])
    await kill_replies()
    api.reply_delay_s = 0
    replies = [
        begin_reply(telegram, trigger, ListRecord(record.key, record.stored)) for record in records
    ]
    await asyncio.gather(
        *(reply.finish(Answer(text=text)) for reply, text in zip(replies, "AB", strict=True))
    )
    assert sorted(api.texts(GROUP)) == ["A", "B"]


async def test_message_still_being_posted_is_not_mistaken_for_a_lost_one(
    api: BotApi, telegram: Telegram
) -> None:
    """Its id isn't known before Telegram responds."""
    trigger = ask(api)
    api.reply_delay_s = 1
    other = begin_reply(telegram, trigger, ListRecord("turn:2"))
    posting = asyncio.create_task(other.finish(Answer(text="Another")))
    await api.wait_for(lambda: api.texts(GROUP) == ["Another"])
    reply = begin_reply(telegram, trigger, ListRecord(posted=[f"?{trigger}"]))
    await reply.finish(Answer(text=TEXT))
    await posting
    assert api.texts(GROUP) == ["Another", TEXT]


async def test_repeated_telegram_answer_keeps_its_mark_when_a_later_process_finishes_it(
    api: BotApi, telegram: Telegram
) -> None:
    """The lost message might be any of the many messages since."""
    trigger, record = ask(api), ListRecord()
    api.drop(method="sendMessage")
    reply = begin_reply(telegram, trigger, record)
    reply.show("Half")
    await api.wait_for(lambda: len(api.called("sendMessage")) == 1)
    for number in range(MAX_LOST_TRIES + 1):
        ask(api, f"Bystander {number}")
    await reply.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == [f"{MARK}\n\n{TEXT}"]
    again = begin_reply(telegram, trigger, ListRecord(posted=record.stored))
    await again.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == [f"{MARK}\n\n{TEXT}"]


@pytest.mark.parametrize("chat", [GROUP, 7])
@pytest.mark.parametrize("bystanders", [0, 1])
async def test_answer_whose_lost_message_was_never_created_has_no_mark_in_the_end(
    api: BotApi, telegram: Telegram, chat: int, bystanders: int
) -> None:
    """The new message shows that none can lie between it and the newest message before."""
    seen_id = api.user_says(chat, "How long?", user_id=7)["message"]["message_id"]
    for number in range(bystanders):
        api.user_says(chat, f"And another question {number}", user_id=7)
    record = ListRecord(posted=[f"?{seen_id}"])
    reply = telegram.reply(Address(platform="telegram", chat_id=str(chat)))
    reply.begin(record)
    await reply.finish(Answer(text=TEXT))
    assert api.texts(chat) == [TEXT]
    assert [call["text"] for call in api.called("sendMessage")] == [f"{MARK}\n\n{TEXT}"]
    assert record.lost_posts == []


async def test_mark_of_a_repeated_telegram_answer_is_removed_by_the_process_after_a_kill(
    api: BotApi, telegram: Telegram
) -> None:
    person = Address(platform="telegram", chat_id="7")
    seen_id = api.user_says(7, "How long?")["message"]["message_id"]
    earlier = ListRecord()
    reply = telegram.reply(person)
    reply.begin(earlier)
    await reply.finish(Answer(text=f"{MARK}\n\n{TEXT}"))
    record = ListRecord(posted=[f"?{seen_id}", *earlier.message_ids])
    reply = telegram.reply(person)
    reply.begin(record)
    await reply.finish(Answer(text=TEXT))
    assert api.texts(7) == [TEXT]
    assert record.stored == list(earlier.message_ids)


async def test_lost_telegram_message_that_arrives_late_is_used_and_its_marked_copy_deleted(
    api: BotApi, telegram: Telegram
) -> None:
    """Telegram takes the lost message only after Mneme has looked for it."""
    trigger = ask(api)
    record = ListRecord(posted=[f"?{trigger}"])
    reply = begin_reply(telegram, trigger, record)
    post = reply._api.post

    async def post_after_late_arrival(part: StyledText, answer: Answer | None, nonce: str) -> str:
        late = telegram.reply(ADDRESS, str(trigger))
        assert isinstance(late, StreamedReply)
        late_id = await late._api.post(StyledText("Half"), None, "late")
        telegram._history._posted.remove((GROUP, int(late_id)))
        return await post(part, answer, nonce)

    reply._api.post = post_after_late_arrival  # type: ignore[method-assign]
    await reply.finish(Answer(text=TEXT))
    assert api.texts(GROUP) == [TEXT]


async def test_telegram_answer_that_may_have_been_shown_already_is_marked(
    api: BotApi, telegram: Telegram
) -> None:
    """The other answer can't look for its message, because no message of the chat was known."""
    person = Address(platform="telegram", chat_id="7")
    seen_id = api.user_says(7, "Hello")["message"]["message_id"]
    answers = {ListRecord("job:1"): "Tea.", ListRecord("turn:2"): TEXT}
    posts = []

    async def lose_answer(record: ListRecord, text: str) -> None:
        reply = telegram.reply(person)
        reply.begin(record)
        posts.append(asyncio.create_task(reply.finish(Answer(text=text)), name=f"answer {text}"))
        await api.wait_for(lambda: text in api.texts(7))

    api.reply_delay_s = 60
    for record, text in answers.items():
        await lose_answer(record, text)
        # The update of an earlier message arrives late.
        telegram._history.note_seen(7, seen_id)
    await kill_replies()
    api.reply_delay_s = 0
    telegram._history = ChatHistory()
    for record, text in reversed(answers.items()):
        reply = telegram.reply(person)
        reply.begin(ListRecord(record.key, record.stored))
        await reply.finish(Answer(text=text))
    assert sorted(api.texts(7)) == [f"{MARK}\n\n{TEXT}", f"{MARK}\n\nTea.", TEXT]
