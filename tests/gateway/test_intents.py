"""A message is sent only after state.db says that it may exist, so that a kill leaves no unmarked
double. The real Telegram client talks to a Bot API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from adapters.streaming import StreamedReply
from adapters.telegram.adapter import Telegram
from core.errors import StoreError
from core.ports import Reply
from core.store.mailbox import INTENT_MARK, OutboxItem
from core.types import Address, Answer
from gateway import delivery as delivery_module
from tests.fixtures.bot_api import BotApi
from tests.fixtures.delivery_harness import DeliveryHarness, open_delivery
from tests.fixtures.samples import inbound

pytestmark = pytest.mark.slow

GROUP = -1001234
ANSWER = Answer(text="Half an hour, I think.")


@dataclass(kw_only=True)
class GroupChat:
    """A delivery to a group on Telegram."""

    room: DeliveryHarness
    api: BotApi
    telegram: Telegram

    async def begin(self) -> tuple[OutboxItem, StreamedReply]:
        """Begin an answer to the group, with short delays."""
        item = await self.room.drafted("a", str(GROUP))
        reply = self.telegram.reply(item.address)
        assert isinstance(reply, StreamedReply)
        reply._first_words_s = 0
        reply._api.pace_s = 0.01
        self.room.delivery.begin(item, reply)
        return item, reply

    async def deliver(self, item: OutboxItem, reply: Reply) -> bool:
        return await self.room.delivery.deliver(item, reply, ANSWER)


@pytest.fixture(autouse=True)
def retry_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "STORE_RETRY_S", 0.1)


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[GroupChat]:
    async with open_delivery(tmp_path) as room, BotApi() as api:
        api.group(GROUP)
        telegram = Telegram(token=api.token, api_url=api.url, inbox=room.inbox, clock=room.clock)
        await telegram.open()
        room.opened["telegram"] = telegram.reply
        try:
            yield GroupChat(room=room, api=api, telegram=telegram)
        finally:
            await telegram.close()


async def test_answer_whose_intent_cannot_be_stored_is_sent_once_when_the_store_is_back(
    chat: GroupChat,
) -> None:
    item, reply = await chat.begin()
    await chat.room.outbox.put(replace(item, answer=ANSWER))
    with chat.room.locked():
        delivery = asyncio.create_task(chat.deliver(item, reply))
        await chat.room.watch.until(lambda: chat.room.outbox.refusals > 1)
        assert chat.api.texts(GROUP) == []
    assert await delivery
    assert chat.api.texts(GROUP) == [ANSWER.text]
    assert chat.room.outbox.posted[0] == (INTENT_MARK,)


async def test_answer_waits_in_the_outbox_while_its_intent_cannot_be_stored_for_long(
    chat: GroupChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "STORE_RETRY_S", 60.0)
    item, reply = await chat.begin()
    await chat.room.outbox.put(replace(item, answer=ANSWER))
    with chat.room.locked():
        assert not await chat.deliver(item, reply)
        assert chat.api.texts(GROUP) == []
    async with chat.room.working():
        await chat.room.watch.until(lambda: chat.room.outbox.ends == [("a", "postponed")])
        await chat.room.later(seconds=60)
        await chat.room.watch.until(lambda: chat.room.outbox.ends[-1] == ("a", "done"))
    assert chat.api.texts(GROUP) == [ANSWER.text]


async def test_first_part_whose_intent_cannot_be_stored_is_shown_when_the_store_is_back(
    chat: GroupChat,
) -> None:
    item, reply = await chat.begin()
    with chat.room.locked():
        reply.show("Half an hour")
        await chat.room.watch.until(lambda: chat.room.outbox.refusals > 1)
        assert chat.api.texts(GROUP) == []
    await chat.api.wait_for(lambda: chat.api.texts(GROUP) == ["Half an hour"])
    await chat.room.outbox.put(replace(item, answer=ANSWER))
    assert await chat.deliver(item, reply)
    assert chat.api.texts(GROUP) == [ANSWER.text]


async def test_answer_is_sent_although_an_older_write_of_another_answer_keeps_failing(
    chat: GroupChat,
) -> None:
    """A damaged row mustn't keep other answers from being sent."""

    async def fail() -> None:
        raise StoreError("a row is damaged")

    await chat.room.delivery._write_outbox(fail)
    item, reply = await chat.begin()
    await chat.room.outbox.put(replace(item, answer=ANSWER))
    assert await chat.deliver(item, reply)
    assert chat.api.texts(GROUP) == [ANSWER.text]


async def test_message_of_another_answer_is_not_overwritten_while_the_outbox_cannot_be_read(
    chat: GroupChat,
) -> None:
    item, reply = await chat.begin()
    await chat.room.outbox.put(replace(item, answer=ANSWER))
    chat.api.drop(method="sendMessage")
    assert not await chat.deliver(item, reply)
    other = await chat.room.drafted("other", str(GROUP))
    other_reply = chat.telegram.reply(other.address)
    chat.room.delivery.begin(other, other_reply)
    await other_reply.finish(Answer(text="Another answer"))

    await chat.room.database.execute("ALTER TABLE outbox RENAME TO gone")
    again = chat.telegram.reply(item.address)
    chat.room.delivery.begin(replace(item, posted=("?",)), again)
    is_delivered = await chat.deliver(item, again)
    assert chat.api.texts(GROUP) == ["Another answer"]
    assert not is_delivered


@pytest.mark.parametrize("answered_id", ["1", "2"])
async def test_notice_of_a_failure_is_sent_although_its_intent_cannot_be_stored(
    chat: GroupChat, answered_id: str
) -> None:
    """The answer of several messages has the key of the first one and the reply of the last one."""
    address = Address(platform="telegram", chat_id=str(GROUP))
    first = inbound(address=address, message_id="1")
    answered = inbound(address=address, message_id=answered_id)
    reply = chat.telegram.reply(address)
    item = chat.room.delivery.draft_outbox_item(first)
    chat.room.delivery.begin(item, reply)
    with chat.room.locked():
        await chat.room.delivery.send_unstored(answered, reply, ANSWER, item)
        assert chat.api.texts(GROUP) == [ANSWER.text]


async def test_incognito_answer_is_sent_although_its_intent_cannot_be_stored(
    chat: GroupChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, reply = await chat.begin()
    monkeypatch.setattr(chat.room.inbox, "is_incognito", lambda address: True)
    with chat.room.locked():
        assert await chat.deliver(item, reply)
        assert chat.api.texts(GROUP) == [ANSWER.text]
