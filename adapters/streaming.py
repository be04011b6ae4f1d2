"""Shows one answer on a platform as it grows: typing, drafts of the text so far, the final answer.

One task makes all platform calls until `finish` takes over, so no two calls of one answer ever overlap. Knows parts,
message ids and pace; how a platform renders, counts and refuses is its `MessageApi`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

import structlog

from core.errors import DeliveryError, MnemeError
from core.markup.markdown import StyledText, off_loop, render, split
from core.ports import DeliveryRecord
from core.types import Answer

_PATIENCE_S = 30.0
_NO_TEXT = StyledText("(no text)")
_TYPING_AFTER_S = 0.2
"""What is answered by then needs no typing."""
_DRAFT_S = 25.0
"""A draft fades a little later."""
_FIRST_WORDS_S = 0.6
"""An answer that is ready by then is shown at once, and not as a draft before."""
_SEEN = "(you may have seen this; the connection broke)"

_log = structlog.get_logger("streaming")


class MessageApi(Protocol):
    """One chat of one platform. Raises DeliveryError."""

    limit_chars: int
    """Longest text of one platform message, measured by `measure`."""
    pace_s: float
    """Shortest time between two drafts; edits of a message become rarer, up to a fourth as many."""
    is_idempotent: bool
    """Whether the same nonce, again, makes no second message."""

    def measure(self, part: StyledText) -> int:
        """The length of one part as the platform counts it."""

    async def typing(self) -> None:
        """Shows that an answer is being worked on; fades by itself after a few seconds."""

    async def prepare(self, answer: Answer) -> None:
        """Before the final answer is shown. Raises DeliveryError where it cannot be given here."""

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """Shows the text so far without making a message of it; False where the platform has no such thing."""

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """Makes a message, returns its id. `answer` is given with the last part: its buttons and files go along; where
        they are all there is, the part is empty."""

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Replaces the text of a message. Equal text is not an error."""

    async def remove(self, message_id: str) -> None:
        """Deletes a message that is no longer needed (a draft was longer than the answer)."""


class StreamedReply:
    """Every new message is recorded once the platform has answered, and those an earlier process recorded are edited,
    not posted again."""

    def __init__(self, api: MessageApi, *, typing_every_s: float = 4.0, first_words_s: float = _FIRST_WORDS_S) -> None:
        self._api = api
        self._first_words_s = first_words_s
        self._typing_every_s = typing_every_s
        self._record: DeliveryRecord
        self._posted: list[tuple[str, StyledText | None]] = []
        """Message ids, each with the part it shows; None where an earlier process made them."""
        self._text = ""
        self._is_drafted = False
        self._patience_s = 0.0
        self._is_uncertain = False
        self._news = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, record: DeliveryRecord) -> None:
        """Starts typing and drafts, which end when the calling task ends. Called once, inside a running event loop."""
        self._record = record
        self._posted = [(message_id, None) for message_id in record.posted]
        self._is_uncertain = record.is_uncertain
        self._task = asyncio.get_running_loop().create_task(self._stream(), name=f"answer {record.key}")
        caller = asyncio.current_task()
        if caller is not None:
            caller.add_done_callback(lambda _: self._end_soon())

    def show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self._news.set()

    async def finish(self, answer: Answer) -> None:
        """Makes the platform's messages equal to the answer. Waits out delays that the platform asks for, 30 seconds in
        all; raises DeliveryError beyond, and then goes on where it was when called again."""
        await self._stop()
        await self._api.prepare(answer)
        parts = await off_loop(self._parts, answer.text)
        # A message whose id is known is edited; one of which it is not known whether it was made may be there twice.
        unknown = len(self._posted) if self._is_uncertain else len(parts)
        if unknown == 0 and parts:
            parts = await off_loop(self._parts, f"{_SEEN}\n\n{answer.text}")
        elif unknown < len(parts):
            parts.insert(unknown, StyledText(_SEEN))
        self._patience_s = _PATIENCE_S
        # Files need no text.
        parts = parts or [StyledText("") if answer.files else _NO_TEXT]
        for index, part in enumerate(parts):
            last = answer if index == len(parts) - 1 else None
            await self._insist(partial(self._finish_part, index, part, last))
        while len(self._posted) > len(parts):
            await self._remove(self._posted[-1][0])
            del self._posted[-1]

    async def abandon(self) -> None:
        """Ends typing and drafts; what was shown stays, for the process that takes the answer up again."""
        try:
            await self._stop()
        except MnemeError as error:
            _log.warning("abandoned", error=str(error))

    def _end_soon(self) -> None:
        self._ending.set()
        self._news.set()

    async def _stop(self) -> None:
        """Lets the call in flight end, so that no message is made whose id is not known."""
        self._end_soon()
        task, self._task = self._task, None
        if task is None:
            return
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise

    async def _stream(self) -> None:
        wait_s, quiet_s, edits = self._first_words_s, _TYPING_AFTER_S, 0
        while not self._ending.is_set():
            is_posted = any(part is not None for _, part in self._posted)
            try:
                async with asyncio.timeout(None if is_posted else quiet_s):
                    await self._news.wait()
            except TimeoutError:
                quiet_s = self._typing_every_s
                await self._guarded(self._api.typing)
                continue
            await self._pause(wait_s)
            self._news.clear()
            if not self._ending.is_set():
                await self._guarded(self._show_draft)
                edits += not self._is_drafted
                wait_s = self._api.pace_s * min(2**edits, 4)
                quiet_s = _DRAFT_S if self._is_drafted else self._typing_every_s

    async def _guarded(self, call: Callable[[], Awaitable[None]]) -> None:
        """A draft may be dropped; a permanent refusal ends them."""
        try:
            await call()
        except DeliveryError as error:
            _log.info("draft dropped", error=str(error), retry_after_s=error.retry_after_s)
            if error.is_permanent:
                self._end_soon()
            elif error.retry_after_s is not None:
                self._news.set()
                await self._pause(error.retry_after_s)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def _show_draft(self) -> None:
        """Full parts are shown as they will stay; the text goes on in the next message."""
        parts = await off_loop(self._parts, self._text)
        self._is_drafted = bool(parts) and not self._posted and await self._api.draft(parts[-1], self._nonce)
        if self._is_drafted:
            return
        for index, part in enumerate(parts):
            if self._ending.is_set():
                return
            if index == len(self._posted):
                await self._post(part, None)
            else:
                await self._is_edited(index, part, None)

    async def _finish_part(
        self, index: int, part: StyledText, answer: Answer | None, *, is_replacing: bool = False
    ) -> None:
        """A message that is gone, cannot be edited or is to lose its text is replaced by the next or a new one, and
        removed."""
        if index == len(self._posted):
            await self._post(part, answer, is_last=answer is not None and not is_replacing)
        elif not (part.text and await self._is_edited(index, part, answer)):
            unusable = self._posted.pop(index)
            try:
                await self._finish_part(index, part, answer, is_replacing=True)
            except DeliveryError:
                self._posted.insert(index, unusable)
                raise
            await self._remove(unusable[0])

    async def _is_edited(self, index: int, part: StyledText, answer: Answer | None) -> bool:
        """False where the message is gone or cannot be edited any more."""
        message_id, shown = self._posted[index]
        if shown != part or (answer is not None and (answer.buttons or answer.files)):
            try:
                await self._api.edit(message_id, part, answer)
            except DeliveryError as error:
                if not error.is_missing:
                    raise
                _log.info("edit failed", error=str(error))
                return False
            self._posted[index] = (message_id, part)
        return True

    @property
    def _nonce(self) -> str:
        """It counts recorded messages, so that a replacement gets a new one."""
        return f"{self._record.key}:{len(self._record.posted)}"

    async def _post(self, part: StyledText, answer: Answer | None, *, is_last: bool = False) -> None:
        if not self._api.is_idempotent:
            await self._record.intend()
        try:
            message_id = await self._api.post(part, answer, self._nonce)
        except DeliveryError as error:
            if not self._api.is_idempotent and not error.is_uncertain:
                await self._record.retract()
            self._is_uncertain = self._is_uncertain or error.is_uncertain
            raise
        self._posted.append((message_id, part))
        await self._record.record(message_id, is_last=is_last)

    async def _remove(self, message_id: str) -> None:
        """A message that cannot be removed is no reason to deliver the answer again."""
        try:
            await self._insist(partial(self._api.remove, message_id))
        except DeliveryError as error:
            if error.retry_after_s is not None:
                raise
            _log.info("not removed", message_id=message_id, error=str(error))

    async def _insist(self, call: Callable[[], Awaitable[None]]) -> None:
        """Repeats a call as often as the platform asks for a delay, while there is patience left."""
        while True:
            try:
                return await call()
            except DeliveryError as error:
                delay_s = error.retry_after_s
                if delay_s is None or error.is_permanent or delay_s > self._patience_s:
                    raise
            self._patience_s -= delay_s
            await asyncio.sleep(delay_s)

    def _parts(self, text: str) -> list[StyledText]:
        return split(render(text), self._api.limit_chars, self._api.measure)


class QuietReply:
    """Fills the role Reply where nothing is shown on the way: `send` gets what was begun with, and the answer."""

    def __init__(self, send: Callable[[DeliveryRecord, Answer], Awaitable[None]]) -> None:
        self._send = send

    def begin(self, record: DeliveryRecord) -> None:
        self._record = record

    def show(self, text: str) -> None:
        """Nobody looks."""

    async def finish(self, answer: Answer) -> None:
        await self._send(self._record, answer)

    async def abandon(self) -> None:
        """Nothing was shown."""
