"""The painter: what a person sees while an answer grows, when it is done, and when the platform is in a bad mood."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapters.streaming import MessageApi, StreamedReply
from core.errors import DeliveryError, StoreError
from core.ports import DeliveryRecord, Reply
from core.store.outbox import INTENDED
from core.types import Answer, Button, Command, File
from tests.fixtures.canvas import ChatCanvas
from tests.fixtures.delivery_record import ListRecord

FLOOD = DeliveryError("too many requests", retry_after_s=0.01)
BLOCKED = DeliveryError("bot was blocked by the user", is_permanent=True)
BROKEN = DeliveryError("bad gateway")
LONG = "\n\n".join(f"Paragraph {number} has a few words." for number in range(12))
BUTTON = Button(label="Again", command=Command(name="recall"), id="x")


def painters() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("answer")]


async def until_no_task() -> None:
    if tasks := painters():
        await asyncio.wait(tasks, timeout=5)
    assert painters() == []


@pytest.fixture(autouse=True)
async def _no_task_remains() -> AsyncIterator[None]:
    yield
    await until_no_task()


def begun(canvas: ChatCanvas, receipt: ListRecord | None = None) -> StreamedReply:
    painter = StreamedReply(canvas, first_words_s=0)
    painter.begin(receipt or ListRecord())
    return painter


def test_it_fills_its_role() -> None:
    canvas: MessageApi = ChatCanvas()
    reply: Reply = StreamedReply(canvas)
    receipt: DeliveryRecord = ListRecord()
    assert reply
    assert receipt


async def test_a_short_answer_is_one_message() -> None:
    canvas, receipt = ChatCanvas(), ListRecord("turn:7")
    await begun(canvas, receipt).finish(Answer(text="Hello **you**"))
    assert canvas.shown == ["Hello you"]
    assert receipt.posted == ["101"]
    assert canvas.nonces == ["turn:7:0"]
    assert painters() == []


async def test_typing_is_shown_until_the_first_frame() -> None:
    canvas, receipt = ChatCanvas(), ListRecord()
    painter = begun(canvas, receipt)
    await canvas.until_typed(1)
    painter.show("Hel")
    await canvas.until_shown("Hel")
    painter.show("Hello")
    await canvas.until_shown("Hello")
    assert canvas.typed == 1
    assert receipt.posted == ["101"]
    await painter.finish(Answer(text="Hello."))
    assert canvas.calls == ["post Hel", "edit 101 Hello", "edit 101 Hello."]


async def test_typing_goes_on_while_nothing_is_posted() -> None:
    canvas = ChatCanvas()
    canvas.typing_refusal = BROKEN
    painter = StreamedReply(canvas, typing_every_s=0.001, first_words_s=0)
    painter.begin(ListRecord())
    await canvas.until_typed(3)
    await painter.finish(Answer(text="done"))
    assert canvas.shown == ["done"]


async def test_only_the_latest_text_is_painted() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    canvas.gate.clear()
    painter.show("a")
    await canvas.is_called.wait()
    for length in range(2, 200):
        painter.show("a" * length)
    canvas.gate.set()
    await canvas.until_shown("a" * 199)
    painted = ["post a", f"edit 101 {'a' * 199}"]
    assert canvas.calls == painted
    await painter.finish(Answer(text="a" * 199))
    assert canvas.calls == painted, "an equal frame is not painted again"


async def test_a_long_stream_grows_into_further_messages() -> None:
    canvas, receipt = ChatCanvas(limit_chars=100), ListRecord("k")
    painter = begun(canvas, receipt)
    paragraphs = LONG.split("\n\n")
    painter.show("\n\n".join(paragraphs[:3]))
    await canvas.until_shown("\n\n".join(paragraphs[:3]))
    painter.show("\n\n".join(paragraphs[:4]))
    await canvas.until_shown("\n\n".join(paragraphs[:3]), paragraphs[3])
    await painter.finish(Answer(text=LONG, buttons=(BUTTON,)))
    assert "\n\n".join(canvas.shown) == LONG
    assert receipt.posted == list(canvas.messages)
    assert canvas.nonces == [f"k:{index}" for index in range(4)]
    assert list(canvas.answers) == ["104"], "buttons go along with the last part only"
    first = [call for call in canvas.calls if call.startswith("edit 101")]
    assert first == [], "a full part is not painted twice"


async def test_a_text_that_shrinks_leaves_nothing_over() -> None:
    canvas = ChatCanvas(limit_chars=100)
    painter = begun(canvas)
    painter.show(LONG)
    await canvas.until_calls(4)
    painter.show("The call was started again")
    await canvas.until_shown("The call was started again", "…", "…", "…")
    await painter.finish(Answer(text="Short."))
    assert canvas.shown == ["Short."]


async def test_what_an_earlier_process_posted_is_edited() -> None:
    canvas = ChatCanvas(limit_chars=100)
    canvas.messages = {"7": "half an", "8": "old"}
    receipt = ListRecord(posted=["7", "8"])
    await begun(canvas, receipt).finish(Answer(text="A whole answer"))
    assert canvas.messages == {"7": "A whole answer"}
    assert receipt.posted == ["7", "8"]
    again = begun(canvas, receipt)
    await again.finish(Answer(text="A whole answer"))
    assert canvas.messages["7"] == "A whole answer"
    assert canvas.nonces == []


async def test_a_message_that_is_gone_is_replaced() -> None:
    canvas, receipt = ChatCanvas(limit_chars=100), ListRecord("k", posted=["7", "8"])
    canvas.messages = {"8": "old"}
    await begun(canvas, receipt).finish(Answer(text=LONG))
    assert "\n\n".join(canvas.shown) == LONG
    assert next(iter(canvas.messages)) == "8", "the next message takes its place, so that the order holds"
    assert canvas.nonces[0] == "k:2"
    assert sum(call.startswith("edit 7") for call in canvas.calls) == 1


async def test_an_edit_is_tried_twice_before_a_message_is_given_up() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    painter.show("Hel")
    await canvas.until_shown("Hel")
    canvas.refusals.append(BROKEN)
    await painter.finish(Answer(text="Hello"))
    assert canvas.messages == {"101": "Hello"}


async def test_a_message_that_cannot_be_edited_is_replaced_and_removed() -> None:
    canvas, receipt = ChatCanvas(), ListRecord(posted=["7"])
    canvas.messages = {"7": "too old"}
    canvas.refusals.extend([BROKEN, BROKEN])
    await begun(canvas, receipt).finish(Answer(text="Hello"))
    assert canvas.messages == {"101": "Hello"}
    assert receipt.posted == ["7", "101"]


async def test_when_nothing_gets_through_the_answer_can_be_finished_later() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    painter.show("Hel")
    await canvas.until_shown("Hel")
    canvas.refusals.extend([BROKEN, BROKEN, BROKEN])
    with pytest.raises(DeliveryError, match="bad gateway"):
        await painter.finish(Answer(text="Hello"))
    assert painters() == []
    await painter.finish(Answer(text="Hello"))
    assert canvas.messages == {"101": "Hello"}


async def test_a_refused_frame_is_dropped() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    canvas.refusals.extend([BROKEN, None])
    painter.show("one")
    await canvas.until_calls(1)
    painter.show("one two")
    await canvas.until_shown("one two")
    await painter.finish(Answer(text="one two three"))
    assert canvas.shown == ["one two three"]


async def test_a_flooded_frame_comes_after_the_delay() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    canvas.refusals.append(FLOOD)
    painter.show("one")
    await canvas.until_shown("one")
    assert canvas.calls == ["post one", "post one"]
    await painter.finish(Answer(text="one"))


async def test_the_end_does_not_wait_for_a_frame_that_waits() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    canvas.refusals.append(DeliveryError("flood", retry_after_s=3600))
    painter.show("one")
    await canvas.until_calls(1)
    async with asyncio.timeout(5):
        await painter.finish(Answer(text="one two"))
    assert canvas.shown == ["one two"]


async def test_the_last_word_waits_out_short_delays() -> None:
    canvas = ChatCanvas()
    canvas.refusals.extend([FLOOD, FLOOD])
    await begun(canvas).finish(Answer(text="Hello"))
    assert canvas.shown == ["Hello"]


async def test_long_delays_are_for_the_outbox() -> None:
    canvas = ChatCanvas()
    canvas.refusals.append(DeliveryError("flood", retry_after_s=31))
    with pytest.raises(DeliveryError) as caught:
        await begun(canvas).finish(Answer(text="Hello"))
    assert caught.value.retry_after_s == 31
    assert canvas.shown == []


async def test_a_refusal_for_good_stops_painting_and_is_told_at_the_end() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    canvas.refusals.extend([BLOCKED, BLOCKED])
    painter.show("one")
    await canvas.until_calls(1)
    painter.show("one two")
    with pytest.raises(DeliveryError) as caught:
        await painter.finish(Answer(text="one two three"))
    assert caught.value.is_permanent
    assert canvas.calls == ["post one", "post one two three"]


async def test_the_end_lets_a_call_in_flight_come_home() -> None:
    canvas, receipt = ChatCanvas(), ListRecord()
    painter = begun(canvas, receipt)
    canvas.gate.clear()
    painter.show("one")
    await canvas.is_called.wait()
    finishing = asyncio.create_task(painter.finish(Answer(text="one two")))
    await asyncio.wait([finishing], timeout=0.01)
    assert not finishing.done()
    canvas.gate.set()
    await finishing
    assert canvas.messages == {"101": "one two"}
    assert receipt.posted == ["101"]


async def test_cancelling_the_end_leaves_no_task() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    canvas.gate.clear()
    painter.show("one")
    await canvas.is_called.wait()
    finishing = asyncio.create_task(painter.finish(Answer(text="one two")))
    await asyncio.wait([finishing], timeout=0.01)
    finishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finishing
    assert painters() == []


async def test_abandoning_ends_typing_and_keeps_what_was_painted() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    painter.show("one")
    await canvas.until_shown("one")
    await painter.abandon()
    assert painters() == []
    assert canvas.shown == ["one"]
    await painter.abandon()
    await StreamedReply(canvas).abandon()


async def test_painting_ends_with_the_task_that_began_it() -> None:
    canvas = ChatCanvas()

    async def turn() -> None:
        begun(canvas)
        await asyncio.Event().wait()

    task = asyncio.create_task(turn())
    await canvas.until_typed(1)
    task.cancel()
    await asyncio.wait([task])
    await until_no_task()


async def test_a_receipt_that_fails_is_told_at_the_end() -> None:
    class _Broken(ListRecord):
        async def record(self, message_id: str, *, is_last: bool = False) -> None:
            raise StoreError("the disk is full")

    canvas = ChatCanvas()
    painter = begun(canvas, _Broken())
    painter.show("one")
    await canvas.until_shown("one")
    with pytest.raises(StoreError):
        await painter.finish(Answer(text="one two"))
    assert canvas.calls == ["post one"]
    abandoned = begun(ChatCanvas(), _Broken())
    abandoned.show("one")
    await abandoned.abandon()


@pytest.mark.parametrize("text", ["", "  \n ", "```\n```"])
async def test_an_empty_answer_says_so(text: str) -> None:
    canvas = ChatCanvas()
    await begun(canvas).finish(Answer(text=text))
    assert canvas.shown == ["(no text)"]


async def test_files_alone_need_no_text() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    painter.show("Making it")
    await canvas.until_shown("Making it")
    answer = Answer(text="", files=(File(name="a.txt", content=b"a"),))
    await painter.finish(answer)
    assert canvas.messages == {"102": ""}
    assert canvas.answers == {"102": answer}


async def test_buttons_come_although_the_text_is_painted_already() -> None:
    canvas = ChatCanvas()
    painter = begun(canvas)
    painter.show("one")
    await canvas.until_shown("one")
    await painter.finish(Answer(text="one", buttons=(BUTTON,)))
    assert canvas.answers["101"].buttons == (BUTTON,)


async def test_empty_frames_are_not_sent() -> None:
    canvas = ChatCanvas()
    painter = StreamedReply(canvas, typing_every_s=0.001, first_words_s=0)
    painter.begin(ListRecord())
    for text in ("```", "```p", "```py\n"):
        painter.show(text)
        await canvas.until_typed(canvas.typed + 2)
        assert canvas.calls == []
    painter.show("```py\nx")
    await canvas.until_shown("x")
    await painter.finish(Answer(text="```py\nx = 1\n```"))
    assert canvas.shown == ["x = 1"]


async def test_it_begins_once_and_before_it_ends() -> None:
    canvas = ChatCanvas()
    with pytest.raises(RuntimeError):
        await StreamedReply(canvas).finish(Answer(text="x"))
    painter = begun(canvas)
    with pytest.raises(RuntimeError):
        painter.begin(ListRecord())
    await painter.finish(Answer(text="x"))


async def kill() -> None:
    """Ends all calls where they stand, as the end of the process would."""
    tasks = painters()
    assert tasks
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)


async def test_killed_between_the_call_and_its_answer_the_next_process_marks_what_it_says() -> None:
    class _Unreached(ListRecord):
        async def record(self, message_id: str, *, is_last: bool = False) -> None:
            await asyncio.Event().wait()

    canvas, record = ChatCanvas(), _Unreached()
    begun(canvas, record).show("Half an")
    await canvas.until_shown("Half an")
    await kill()
    assert record.stored == [INTENDED]
    reply = begun(canvas, ListRecord(posted=record.stored))
    await reply.finish(Answer(text="Half an hour."))
    assert canvas.shown == ["Half an", "(you may have seen this; the connection broke)\n\nHalf an hour."]


async def test_behind_a_part_that_is_known_only_the_unknown_one_is_marked() -> None:
    canvas = ChatCanvas(limit_chars=100)
    await begun(canvas, first := ListRecord()).finish(Answer(text=LONG))
    known = first.posted[0]
    reply = begun(canvas, ListRecord(posted=[known, INTENDED]))
    await reply.finish(Answer(text=LONG))
    assert canvas.calls.count(f"edit {known} {canvas.messages[known]}") == 1
    assert [text for text in canvas.shown if text.startswith("(you may have seen")] == [
        "(you may have seen this; the connection broke)"
    ]


async def test_a_send_that_is_refused_leaves_no_intention() -> None:
    canvas, record = ChatCanvas(), ListRecord()
    canvas.refusals.append(BROKEN)
    with pytest.raises(DeliveryError):
        await begun(canvas, record).finish(Answer(text="Hello"))
    assert record.stored == []


async def test_a_platform_with_drafts_gets_one_message() -> None:
    canvas, record = ChatCanvas(has_drafts=True), ListRecord()
    reply = begun(canvas, record)
    reply.show("Hel")
    await canvas._until(lambda: canvas.drafts == ["Hel"])
    await reply.finish(Answer(text="Hello"))
    assert canvas.calls == ["post Hello"]
    assert record.posted == ["101"]
