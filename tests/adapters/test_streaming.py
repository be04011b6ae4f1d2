"""The reply that grows: what a person sees of an answer on its way, when it is done, and when the
platform refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters import streaming
from adapters.streaming import MessageApi, StreamedReply
from core.errors import DeliveryError, StoreError
from core.markup.markdown import StyledText, render
from core.markup.splitting import split
from core.ports import DeliveryRecord, Reply
from core.store.mailbox import INTENT_MARK
from core.types import Answer, Button, Command, File
from gateway.delivery import PostedRecord
from gateway.texts.catalog import load_texts
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.fake_chat import FakeChat
from tests.fixtures.hostile import ANSWERS
from tests.fixtures.loop_watch import watched
from tests.fixtures.markdowns import discord_length
from tests.fixtures.sweeps import keep_first

FLOOD = DeliveryError("too many requests", retry_after_s=0.01)
BLOCKED = DeliveryError("bot was blocked by the user", is_permanent=True)
BROKEN = DeliveryError("bad gateway")
LONG = "\n\n".join(f"Paragraph {number} has a few words." for number in range(12))
BUTTON = Button(label="Again", command=Command(name="recall"), id="x")


def reply_tasks() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("answer")]


async def until_no_task() -> None:
    if tasks := reply_tasks():
        await asyncio.wait(tasks, timeout=5)
    assert reply_tasks() == []


@pytest.fixture(autouse=True)
async def _no_task_remains() -> AsyncIterator[None]:
    yield
    await until_no_task()


def begun(chat: FakeChat, receipt: ListRecord | None = None) -> StreamedReply:
    painter = StreamedReply(chat, first_words_s=0)
    painter.begin(receipt or ListRecord())
    return painter


def test_streamed_reply_implements_the_reply_and_delivery_record_ports() -> None:
    chat: MessageApi = FakeChat()
    reply: Reply = StreamedReply(chat)
    receipt: DeliveryRecord = ListRecord()
    assert reply
    assert receipt


async def test_short_streamed_answer_is_posted_as_one_message() -> None:
    chat, receipt = FakeChat(), ListRecord("turn:7")
    await begun(chat, receipt).finish(Answer(text="Hello **you**"))
    assert chat.shown == ["Hello you"]
    assert receipt.message_ids == ["101"]
    assert chat.nonces == ["turn:7:0"]
    assert reply_tasks() == []


async def test_typing_is_shown_until_the_first_frame() -> None:
    chat, receipt = FakeChat(), ListRecord()
    painter = begun(chat, receipt)
    await chat.until_typed(1)
    painter.show("Hel")
    await chat.until_shown("Hel")
    painter.show("Hello")
    await chat.until_shown("Hello")
    assert chat.typed == 1
    assert receipt.message_ids == ["101"]
    await painter.finish(Answer(text="Hello."))
    assert chat.calls == ["post Hel", "edit 101 Hello", "edit 101 Hello."]


async def test_typing_signal_repeats_until_the_answer_is_posted() -> None:
    chat = FakeChat()
    chat.typing_refusal = BROKEN
    painter = StreamedReply(chat, typing_every_s=0.001, first_words_s=0)
    painter.begin(ListRecord())
    await chat.until_typed(3)
    await painter.finish(Answer(text="done"))
    assert chat.shown == ["done"]


async def test_streamed_answer_edits_only_to_the_latest_text_and_skips_equal_text() -> None:
    chat = FakeChat()
    painter = begun(chat)
    chat.gate.clear()
    painter.show("a")
    await chat.is_called.wait()
    for length in range(2, 200):
        painter.show("a" * length)
    chat.gate.set()
    await chat.until_shown("a" * 199)
    painted = ["post a", f"edit 101 {'a' * 199}"]
    assert chat.calls == painted
    await painter.finish(Answer(text="a" * 199))
    assert chat.calls == painted, "an equal frame is not painted again"


async def test_a_long_stream_grows_into_further_messages() -> None:
    chat, receipt = FakeChat(limit_chars=100), ListRecord("k")
    painter = begun(chat, receipt)
    paragraphs = LONG.split("\n\n")
    painter.show("\n\n".join(paragraphs[:3]))
    await chat.until_shown("\n\n".join(paragraphs[:3]))
    painter.show("\n\n".join(paragraphs[:4]))
    await chat.until_shown("\n\n".join(paragraphs[:3]), paragraphs[3])
    await painter.finish(Answer(text=LONG, buttons=(BUTTON,)))
    assert "\n\n".join(chat.shown) == LONG
    assert receipt.message_ids == list(chat.messages)
    assert chat.nonces == [f"k:{index}" for index in range(4)]
    assert list(chat.answers) == ["104"], "buttons go along with the last part only"
    first = [call for call in chat.calls if call.startswith("edit 101")]
    assert first == [], "a full part is not painted twice"


async def test_streamed_answer_that_becomes_shorter_removes_its_extra_messages() -> None:
    chat = FakeChat(limit_chars=100)
    painter = begun(chat)
    painter.show(LONG)
    await chat.until_calls(4)
    painter.show("The call was started again")
    await chat._until(lambda: chat.shown[0] == "The call was started again")
    await painter.finish(Answer(text="Short."))
    assert chat.shown == ["Short."]


async def test_messages_that_a_shorter_answer_removed_are_not_removed_again() -> None:
    chat, receipt = FakeChat(limit_chars=100), ListRecord(posted=["7", "8", "9"])
    chat.messages = dict.fromkeys("789", "old")
    for text in ("Short.", "Shorter."):
        await begun(chat, receipt).finish(Answer(text=text))
        assert receipt.message_ids == ["7"]
        receipt = ListRecord("turn:2", posted=receipt.message_ids)
    assert [call for call in chat.calls if call.startswith("remove")] == ["remove 9", "remove 8"]


async def test_extra_message_stays_recorded_if_the_platform_fails_to_remove_it() -> None:
    chat, receipt = FakeChat(), ListRecord(posted=["7", "8"])
    chat.messages = dict.fromkeys("78", "old")
    chat.refusals.extend([None, BROKEN])
    await begun(chat, receipt).finish(Answer(text="Short."))
    assert chat.shown == ["Short.", "old"]
    assert receipt.message_ids == ["7", "8"]


async def test_message_posted_by_an_earlier_process_is_edited_to_the_answer() -> None:
    chat = FakeChat(limit_chars=100)
    chat.messages = {"7": "half an", "8": "old"}
    receipt = ListRecord(posted=["7", "8"])
    await begun(chat, receipt).finish(Answer(text="A whole answer"))
    assert chat.messages == {"7": "A whole answer"}
    assert receipt.message_ids == ["7"]
    again = begun(chat, receipt)
    await again.finish(Answer(text="A whole answer"))
    assert chat.messages["7"] == "A whole answer"
    assert chat.nonces == []


async def test_a_message_that_is_gone_is_replaced() -> None:
    chat, receipt = FakeChat(limit_chars=100), ListRecord("k", posted=["7", "8"])
    chat.messages = {"8": "old"}
    await begun(chat, receipt).finish(Answer(text=LONG))
    assert "\n\n".join(chat.shown) == LONG
    assert next(iter(chat.messages)) == "8", (
        "the next message takes its place, so that the order holds"
    )
    assert chat.nonces[0] == "k:2"
    assert sum(call.startswith("edit 7") for call in chat.calls) == 1


async def test_a_message_that_cannot_be_edited_is_replaced_and_removed() -> None:
    chat, receipt = FakeChat(), ListRecord(posted=["7"])
    chat.messages = {"7": "too old"}
    chat.refusals.append(DeliveryError("it cannot be edited", is_missing=True))
    await begun(chat, receipt).finish(Answer(text="Hello"))
    assert chat.messages == {"101": "Hello"}
    assert receipt.message_ids == ["101"]


async def test_streamed_answer_that_failed_to_send_can_be_finished_later_in_the_same_message() -> (
    None
):
    chat = FakeChat()
    painter = begun(chat)
    painter.show("Hel")
    await chat.until_shown("Hel")
    chat.refusals.append(BROKEN)
    with pytest.raises(DeliveryError, match="bad gateway"):
        await painter.finish(Answer(text="Hello"))
    assert reply_tasks() == []
    await painter.finish(Answer(text="Hello"))
    assert chat.messages == {"101": "Hello"}, "the same message, edited when it gets through"


async def test_refused_edit_of_a_streamed_answer_is_skipped() -> None:
    chat = FakeChat()
    painter = begun(chat)
    chat.refusals.extend([BROKEN, None])
    painter.show("one")
    await chat.until_calls(1)
    painter.show("one two")
    await chat.until_shown("one two")
    await painter.finish(Answer(text="one two three"))
    assert chat.shown == ["one two three"]


async def test_rate_limited_edit_of_a_streamed_answer_is_repeated_after_the_delay() -> None:
    chat = FakeChat()
    painter = begun(chat)
    chat.refusals.append(FLOOD)
    painter.show("one")
    await chat.until_shown("one")
    assert chat.calls == ["post one", "post one"]
    await painter.finish(Answer(text="one"))


async def test_final_text_of_an_answer_does_not_wait_for_a_delayed_edit() -> None:
    chat = FakeChat()
    painter = begun(chat)
    chat.refusals.append(DeliveryError("flood", retry_after_s=3600))
    painter.show("one")
    await chat.until_calls(1)
    async with asyncio.timeout(5):
        await painter.finish(Answer(text="one two"))
    assert chat.shown == ["one two"]


async def test_final_text_of_an_answer_waits_for_short_rate_limit_delays() -> None:
    chat = FakeChat()
    chat.refusals.extend([FLOOD, FLOOD])
    await begun(chat).finish(Answer(text="Hello"))
    assert chat.shown == ["Hello"]


async def test_long_rate_limit_delay_is_raised_for_later_delivery() -> None:
    chat = FakeChat()
    chat.refusals.append(DeliveryError("flood", retry_after_s=31))
    with pytest.raises(DeliveryError) as caught:
        await begun(chat).finish(Answer(text="Hello"))
    assert caught.value.retry_after_s == 31
    assert chat.shown == []


async def test_permanent_refusal_stops_streaming_edits_and_is_raised_at_the_end() -> None:
    chat = FakeChat()
    painter = begun(chat)
    chat.refusals.extend([BLOCKED, BLOCKED])
    painter.show("one")
    await chat.until_calls(1)
    painter.show("one two")
    with pytest.raises(DeliveryError) as caught:
        await painter.finish(Answer(text="one two three"))
    assert caught.value.is_permanent
    assert chat.calls == ["post one", "post one two three"]


async def test_finishing_a_streamed_answer_waits_for_the_platform_call_in_progress() -> None:
    chat, receipt = FakeChat(), ListRecord()
    painter = begun(chat, receipt)
    chat.gate.clear()
    painter.show("one")
    await chat.is_called.wait()
    finishing = asyncio.create_task(painter.finish(Answer(text="one two")))
    await asyncio.wait([finishing], timeout=0.01)
    assert not finishing.done()
    chat.gate.set()
    await finishing
    assert chat.messages == {"101": "one two"}
    assert receipt.message_ids == ["101"]


async def test_cancelled_finish_of_a_streamed_answer_leaves_no_task_running() -> None:
    chat = FakeChat()
    painter = begun(chat)
    chat.gate.clear()
    painter.show("one")
    await chat.is_called.wait()
    finishing = asyncio.create_task(painter.finish(Answer(text="one two")))
    await asyncio.wait([finishing], timeout=0.01)
    finishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finishing
    assert reply_tasks() == []


async def test_abandoned_streamed_answer_stops_typing_and_keeps_its_posted_text() -> None:
    chat = FakeChat()
    painter = begun(chat)
    painter.show("one")
    await chat.until_shown("one")
    await painter.abandon()
    assert reply_tasks() == []
    assert chat.shown == ["one"]
    await painter.abandon()
    await StreamedReply(chat).abandon()


async def test_withdrawn_streamed_answer_deletes_its_posted_text() -> None:
    chat = FakeChat()
    painter = begun(chat)
    painter.show("one")
    await chat.until_shown("one")
    await painter.abandon(is_withdrawn=True)
    assert chat.shown == []


async def test_streaming_of_an_answer_stops_when_its_turn_is_cancelled() -> None:
    chat = FakeChat()

    async def turn() -> None:
        begun(chat)
        await asyncio.Event().wait()

    task = asyncio.create_task(turn())
    await chat.until_typed(1)
    task.cancel()
    await asyncio.wait([task])
    await until_no_task()


async def test_failure_to_record_a_posted_message_is_raised_at_the_end_of_the_answer() -> None:
    class _Broken(ListRecord):
        async def record(self, *message_ids: str, is_last: bool = False) -> None:
            raise StoreError("the disk is full")

    chat = FakeChat()
    painter = begun(chat, _Broken())
    painter.show("one")
    await chat.until_shown("one")
    with pytest.raises(StoreError):
        await painter.finish(Answer(text="one two"))
    assert chat.calls == ["post one"]
    abandoned = begun(FakeChat(), _Broken())
    abandoned.show("one")
    await abandoned.abandon()


@pytest.mark.parametrize("text", ["", "  \n ", "```\n```"])
async def test_empty_answer_is_posted_as_no_text(text: str) -> None:
    chat = FakeChat()
    await begun(chat).finish(Answer(text=text))
    assert chat.shown == ["(no text)"]


async def test_answer_with_only_files_is_sent_without_text() -> None:
    chat = FakeChat()
    painter = begun(chat)
    painter.show("Making it")
    await chat.until_shown("Making it")
    answer = Answer(text="", files=(File(name="a.txt", content=b"a"),))
    await painter.finish(answer)
    assert chat.messages == {"102": ""}
    assert chat.answers == {"102": answer}


async def test_files_that_do_not_fit_into_one_message_follow_in_further_messages() -> None:
    chat = FakeChat()
    chat.max_files = 2
    files = tuple(File(name=f"{number}.csv", content=b"1") for number in range(5))
    await begun(chat).finish(Answer(text="Here", files=files))
    assert chat.shown == ["Here", "", ""]
    assert [len(answer.files) for answer in chat.answers.values()] == [2, 2, 1]


async def test_buttons_are_added_to_an_answer_whose_text_is_already_shown() -> None:
    chat = FakeChat()
    painter = begun(chat)
    painter.show("one")
    await chat.until_shown("one")
    await painter.finish(Answer(text="one", buttons=(BUTTON,)))
    assert chat.answers["101"].buttons == (BUTTON,)


async def test_short_streamed_answer_takes_at_most_four_platform_calls() -> None:
    """At a tenth of the time: 280 characters in four seconds, one edit a second allowed."""
    chat = FakeChat(pace_s=0.1)
    reply = StreamedReply(chat, first_words_s=0.06)
    reply.begin(ListRecord())
    for length in range(7, 281, 7):
        reply.show("a" * length)
        await asyncio.sleep(0.01)
    await reply.finish(Answer(text="a" * 280))
    assert chat.shown == ["a" * 280]
    assert len(chat.calls) + max(chat.typed, 1) <= 4, chat.calls


@pytest.mark.parametrize("text", ["The ferry leaves", "渡船九点从旧港口出发，请准时到达码头等候。"])
async def test_first_draft_waits_for_a_few_words(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_MAX_WORDS_WAIT_S", 1_000.0)
    chat = FakeChat()
    reply = StreamedReply(chat, first_words_s=0.001)
    reply.begin(ListRecord())
    for letters in range(1, 6):
        reply.show(text[:letters])
        await asyncio.sleep(0.02)
    assert chat.calls == []
    reply.show(text)
    await chat.until_shown(text)
    await reply.finish(Answer(text=text))
    assert chat.calls == [f"post {text}"]


async def test_first_draft_has_a_single_word_if_others_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "_MAX_WORDS_WAIT_S", 0.01)
    chat = FakeChat()
    reply = StreamedReply(chat, first_words_s=0.001)
    reply.begin(ListRecord())
    reply.show("Well,")
    await chat.until_shown("Well,")
    await reply.finish(Answer(text="Well, yes."))


async def test_answer_that_is_complete_at_once_is_posted_in_one_call_without_typing() -> None:
    chat = FakeChat()
    reply = StreamedReply(chat)
    reply.begin(ListRecord())
    reply.show("Rea")
    await reply.finish(Answer(text="Ready"))
    assert (chat.typed, chat.calls) == (0, ["post Ready"])


async def test_leftover_message_is_removed_however_often_that_is_delayed() -> None:
    chat, receipt = FakeChat(limit_chars=100), ListRecord(posted=["7", "8"])
    chat.messages = {"7": "half an", "8": "old"}
    chat.refusals.extend([None, FLOOD, FLOOD])
    await begun(chat, receipt).finish(Answer(text="A whole answer"))
    assert chat.shown == ["A whole answer"]
    chat.messages["8"], receipt = "old", ListRecord(posted=["7", "8"])
    chat.refusals.extend([None, DeliveryError("flood", retry_after_s=31)])
    with pytest.raises(DeliveryError):
        await begun(chat, receipt).finish(Answer(text="A whole answer"))


async def test_streamed_text_without_visible_characters_is_not_sent() -> None:
    chat = FakeChat()
    painter = StreamedReply(chat, typing_every_s=0.001, first_words_s=0)
    painter.begin(ListRecord())
    for text in ("```", "```p", "```py\n"):
        painter.show(text)
        await chat.until_typed(chat.typed + 2)
        assert chat.calls == []
    painter.show("```py\nx")
    await chat.until_shown("x")
    await painter.finish(Answer(text="```py\nx = 1\n```"))
    assert chat.shown == ["x = 1"]


async def kill() -> None:
    """Ends all calls where they stand, as the end of the process would."""
    tasks = reply_tasks()
    assert tasks
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)


async def test_answer_repeated_after_a_kill_during_posting_is_marked_as_possibly_seen() -> None:
    class _Unreached(ListRecord):
        async def record(self, *message_ids: str, is_last: bool = False) -> None:
            await asyncio.Event().wait()

    chat, record = FakeChat(), _Unreached()
    begun(chat, record).show("Half an")
    await chat.until_shown("Half an")
    await kill()
    assert record.stored == [INTENT_MARK]
    reply = begun(chat, ListRecord(posted=record.stored))
    await reply.finish(Answer(text="Half an hour."))
    assert chat.shown == [
        "Half an",
        "(you may have seen this; the connection broke)\n\nHalf an hour.",
    ]


async def test_notice_above_a_repeated_answer_is_in_the_language_of_its_chat() -> None:
    chat = FakeChat()
    german = load_texts("de")
    record = PostedRecord("turn:1", [INTENT_MARK], find_texts=lambda: german)
    reply = StreamedReply(chat, first_words_s=0)
    reply.begin(record)
    await reply.finish(Answer(text="Um neun."))
    assert chat.shown == [f"{german.MAY_BE_DUPLICATE}\n\nUm neun."]


async def test_only_the_unconfirmed_part_of_a_repeated_answer_is_marked_as_possibly_seen() -> None:
    chat = FakeChat(limit_chars=100)
    await begun(chat, first := ListRecord()).finish(Answer(text=LONG))
    known = first.message_ids[0]
    reply = begun(chat, ListRecord(posted=[known, INTENT_MARK]))
    await reply.finish(Answer(text=LONG))
    assert chat.calls.count(f"edit {known} {chat.messages[known]}") == 1
    assert [text for text in chat.shown if text.startswith("(you may have seen")] == [
        "(you may have seen this; the connection broke)"
    ]


async def test_refused_post_leaves_no_pending_delivery_record() -> None:
    chat, record = FakeChat(), ListRecord()
    chat.refusals.append(BROKEN)
    with pytest.raises(DeliveryError):
        await begun(chat, record).finish(Answer(text="Hello"))
    assert record.stored == []


async def test_streamed_answer_on_a_platform_with_drafts_is_posted_as_one_message() -> None:
    chat, record = FakeChat(has_drafts=True), ListRecord()
    reply = begun(chat, record)
    reply.show("Hel")
    await chat._until(lambda: chat.drafts == ["Hel"])
    await reply.finish(Answer(text="Hello"))
    assert chat.calls == ["post Hello"]
    assert record.message_ids == ["101"]


class DiscordChat(FakeChat):
    """Measures as Discord does, which takes longest."""

    def __init__(self) -> None:
        super().__init__(limit_chars=2000)
        self.measured = 0

    def measure(self, part: StyledText) -> int:
        self.measured += len(part.text)
        return discord_length(part)


@pytest.mark.slow
@pytest.mark.parametrize("name", keep_first(3, ANSWERS))
async def test_rendering_of_long_answers_does_not_block_the_event_loop(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chat, text = DiscordChat(), ANSWERS[name]
    with watched(monkeypatch, tmp_path / "loop"):
        painter = begun(chat)
        for end in range(5_000, len(text), 10_000):
            painter.show(text[:end])
            await asyncio.sleep(0)
        await painter.finish(Answer(text=text))
    assert chat.shown == [part.text for part in split(render(text), 2000, discord_length)]
