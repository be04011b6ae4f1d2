"""A new message of a growing answer is posted empty, recorded, then filled: what stays when the process is killed."""

from __future__ import annotations

import asyncio

from adapters.streaming import StreamedReply
from core.errors import DeliveryError
from core.types import Answer
from tests.fixtures.canvas import ChatCanvas, ListReceipt

FLOOD = DeliveryError("too many requests", retry_after_s=0.01)
LONG_FLOOD = DeliveryError("too many requests", retry_after_s=3600)
LONG = "\n\n".join(f"Paragraph {number} has a few words." for number in range(12))


def begun(canvas: ChatCanvas, receipt: ListReceipt) -> StreamedReply:
    painter = StreamedReply(canvas)
    painter.begin(receipt)
    return painter


async def kill() -> None:
    """Ends painting where it stands, as the end of the process would."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("answer")]
    assert tasks
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)


async def test_killed_between_post_and_record_only_a_placeholder_stays() -> None:
    class _Unreached(ListReceipt):
        async def record(self, message_id: str, *, is_last: bool = False) -> None:
            await asyncio.Event().wait()

    canvas, receipt = ChatCanvas(limit_chars=100), _Unreached("k")
    begun(canvas, receipt).show(LONG)
    await canvas.until_shown("…")
    await kill()
    assert canvas.calls == ["post …"]
    assert receipt.posted == []
    painter = begun(canvas, ListReceipt("k"))
    painter.show("Hello")
    await canvas.until_shown("…", "Hello")
    await painter.finish(Answer(text="Hello you"))
    assert canvas.shown == ["…", "Hello you"], "the answer is there once"


async def test_killed_between_record_and_frame_the_placeholder_is_filled() -> None:
    canvas, receipt = ChatCanvas(), ListReceipt()
    canvas.refusals.extend([None, LONG_FLOOD])
    begun(canvas, receipt).show("Hel")
    await canvas.until_calls(2)
    await kill()
    assert (canvas.shown, receipt.posted) == (["…"], ["101"])
    await begun(canvas, receipt).finish(Answer(text="Hello"))
    assert canvas.messages == {"101": "Hello"}


async def test_each_further_message_begins_empty_and_is_recorded_before_it_is_filled() -> None:
    canvas = ChatCanvas(limit_chars=100)
    shown_at_record: list[str] = []

    class _Watchful(ListReceipt):
        async def record(self, message_id: str, *, is_last: bool = False) -> None:
            await super().record(message_id, is_last=is_last)
            shown_at_record.append(canvas.messages[message_id])

    painter = begun(canvas, _Watchful())
    painter.show(LONG)
    await canvas.until_calls(8)
    await painter.finish(Answer(text=LONG))
    assert shown_at_record == ["…"] * 4
    assert "\n\n".join(canvas.shown) == LONG


async def test_a_flood_between_placeholder_and_frame_makes_no_second_message() -> None:
    canvas, receipt = ChatCanvas(), ListReceipt()
    canvas.refusals.extend([None, FLOOD])
    painter = begun(canvas, receipt)
    painter.show("one")
    await canvas.until_shown("one")
    assert canvas.calls == ["post …", "edit 101 one", "edit 101 one"]
    assert receipt.posted == ["101"]
    await painter.finish(Answer(text="one"))
