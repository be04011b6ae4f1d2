"""Shows an answer on a platform while the model writes it: typing, drafts, the final answer.

Until `finish` is called, a single task makes all platform calls. After that, `finish` makes them.
So two calls for one answer never overlap. This module splits the answer into messages, stores their
ids and decides when they are updated. The platform's `MessageApi` makes the calls.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Protocol

import structlog

from adapters.reactions import WorkingMark
from core.errors import DeliveryError, MnemeError
from core.markup.markdown import StyledText, render, run_off_loop
from core.markup.splitting import split
from core.ports import DeliveryRecord, LostPost
from core.types import Answer, File

# `finish` waits at most this long in total if the platform asks for delays.
_MAX_DELAY_S = 30.0
# If the text of an answer begins within this time, no typing indicator is shown.
_FIRST_TYPING_S = 0.2
# A platform removes a draft a little later than this, so typing is shown then.
_DRAFT_LIFETIME_S = 25.0
# No draft is shown before this time. An answer that is complete by then is posted at once.
_FIRST_WORDS_S = 0.15
# The first draft has at least this many words or characters, unless the model needs more time for
# them than this.
_FIRST_WORDS = 3
_FIRST_CHARS = 20
_MAX_WORDS_WAIT_S = 0.6
# Words that arrive within this time are part of the first draft. The answer may be complete by
# then.
_SETTLING_S = 0.06
_log = structlog.get_logger("streaming")


@dataclass(frozen=True, slots=True)
class LostMessage:
    """A message that `find_lost` found for a lost post."""

    id: str
    # Whether the message may belong to another answer. In that case, the lost message may be a
    # different one.
    may_be_other: bool = False


ABSENT = LostMessage("")
"""The result of `find_lost` if the message certainly doesn't exist."""


class PostLock:
    """Prevents posts in a chat while a lost message is searched for.

    A message that is being posted has no known id yet, so a search could mistake it for the lost
    one. Several posts may run at the same time. A search waits for them, and new posts wait for the
    search.
    """

    def __init__(self) -> None:
        self._posts = 0
        self._is_searching = False
        # Set when a search, or the last post, ends.
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def hold_for_post(self) -> AsyncIterator[None]:
        """Wait for a running search, and prevent searches during the block."""
        while self._is_searching:
            await self._ended.wait()
        self._posts += 1
        self._ended.clear()
        try:
            yield
        finally:
            self._posts -= 1
            if not self._posts:
                self._ended.set()

    @asynccontextmanager
    async def hold_for_search(self) -> AsyncIterator[None]:
        """Wait for running posts and searches, and prevent both during the block."""
        while self._posts or self._is_searching:
            await self._ended.wait()
        self._is_searching = True
        self._ended.clear()
        try:
            yield
        finally:
            self._is_searching = False
            self._ended.set()


class MessageApi(Protocol):
    """The calls of one platform for one chat. Failed calls raise DeliveryError."""

    # The maximum length of one message of the platform, as `measure` counts it.
    limit_chars: int
    # The shortest time between two drafts. If drafts are edits of a message, the time grows up to
    # four times as long.
    pace_s: float
    # Whether each file is a separate message after the messages with the text.
    posts_files_alone: bool
    # The maximum number of files in an album, or attached to one message.
    max_files: int
    # Whether lost messages are searched for while drafts are shown. If a search edits messages,
    # only `finish` searches.
    can_read_history: bool

    def measure(self, part: StyledText) -> int:
        """Return the length of a part as the platform counts it."""

    async def show_typing(self) -> None:
        """Show the typing indicator. The platform hides it after a few seconds."""

    async def prepare(self, answer: Answer) -> None:
        """Prepare for the final answer. Raises DeliveryError if it can't be sent to this chat."""

    async def show_draft(self, part: StyledText, nonce: str) -> bool:
        """Show the text so far without creating a message, and return True.

        Returns False if the platform doesn't have such drafts.
        """

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """Create a message and return its id.

        `answer` is given only with the last part, and its buttons and files are attached to that
        message. The part is empty if the answer consists only of files. If `posts_files_alone`,
        each file is posted with a separate empty part.
        """

    def count_album_files(self, files: Sequence[File]) -> int:
        """Return how many of the first files can be posted as one album.

        The result 1 means that the first file is posted alone. Called only if `posts_files_alone`.
        """

    async def post_album(self, files: Sequence[File]) -> Sequence[str]:
        """Post files as one album, and return the ids of its messages, one for each file.

        Raises DeliveryError with `is_missing` if the platform refuses the album.
        """

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Replace the text of a message. An unchanged text is not an error.

        If `posts_files_alone`, an empty part only checks that the message is still a file.
        """

    async def delete(self, message_id: str) -> None:
        """Delete a message that the final answer doesn't need, because a draft was longer."""

    @property
    def post_lock(self) -> PostLock:
        """The lock of the chat, which all its answers share."""

    @property
    def newest_id(self) -> str:
        """The id of the newest known message of the chat, or "" if none is known."""

    async def find_lost(
        self,
        lost_post: LostPost,
        part: StyledText,
        answer: Answer | None,
        known_ids: Collection[str],
    ) -> LostMessage | None:
        """Search for the message of a lost post. Its `after_id` is a value of `newest_id`.

        `known_ids` are the ids of other messages of the bot. The part is empty if the message is a
        file. A platform without a history finds the message by replacing its text with `part`, and
        its buttons with those of `answer`. Returns ABSENT if the message certainly doesn't exist,
        or None if it wasn't found but may exist.
        """


@dataclass(slots=True)
class _PostedMessage:
    id: str
    # The part that the message shows. None if an earlier process posted the message.
    part: StyledText | None


@dataclass(frozen=True, slots=True)
class _Piece:
    """One message of the final answer. `answer` has the buttons and files of this message."""

    part: StyledText
    answer: Answer | None = None

    @property
    def is_file(self) -> bool:
        return not self.part.text and self.answer is not None and bool(self.answer.files)


class StreamedReply:
    """A `Reply` that shows the answer while the model writes it.

    The id of each new message is recorded as soon as the platform confirms the message. If an
    earlier process recorded messages of this answer, they are edited, not posted again.
    """

    def __init__(
        self,
        api: MessageApi,
        *,
        typing_every_s: float = 4.0,
        first_words_s: float = _FIRST_WORDS_S,
        mark: WorkingMark | None = None,
        adapt: Callable[[Answer], Answer] | None = None,
    ) -> None:
        self._api = api
        # Changes the final answer to what the platform shows. None if it shows the whole text.
        self._adapt = adapt
        # The mark on the person's message. None if marks are turned off.
        self._mark = mark
        self._first_words_s = first_words_s
        self._begun_at = 0.0
        self._typing_every_s = typing_every_s
        self._record: DeliveryRecord
        self._messages: list[_PostedMessage] = []
        # The ids of messages that `finish` has deleted.
        self._deleted_ids: set[str] = set()
        self._text = ""
        self._nonce_suffix = ""
        # Whether the latest text was shown as a draft of the platform, not as a message.
        self._is_draft_shown = False
        self._remaining_delay_s = 0.0
        self._text_changed = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, record: DeliveryRecord) -> None:
        """Start the task that shows typing and drafts. The task ends when the calling task ends.

        Call this once, inside a running event loop.
        """
        self._record = record
        self._messages = [_PostedMessage(message_id, None) for message_id in record.message_ids]
        loop = asyncio.get_running_loop()
        self._begun_at = loop.time()
        self._task = loop.create_task(self._stream(), name=f"answer {record.key}")
        caller = asyncio.current_task()
        if caller is not None:
            caller.add_done_callback(lambda _: self._end_soon())

    def show(self, text: str) -> None:
        """Set the text so far. The streaming task includes it in its next draft."""
        if text != self._text:
            self._text = text
            self._text_changed.set()

    async def finish(self, answer: Answer) -> None:
        """Post and edit messages until they show exactly the answer, and delete the other drafts.

        Raises DeliveryError if a call fails, or if the platform asks for delays of more than 30
        seconds in total. A further call then continues where this one stopped.
        """
        try:
            await self._finish(answer if self._adapt is None else self._adapt(answer))
        finally:
            if self._mark is not None:
                await self._mark.remove()

    async def _finish(self, answer: Answer) -> None:
        """End the streaming task, and make the messages show exactly the answer."""
        await self._stop()
        await self._api.prepare(answer)
        pieces = self._list_pieces(await run_off_loop(self._split, answer.text), answer)
        has_content = bool(answer.text or answer.files)
        self._remaining_delay_s = _MAX_DELAY_S
        if self._record.lost_posts and has_content:
            await self._find_lost_messages(pieces)
        if self._record.lost_posts and has_content:
            pieces = await self._finish_marked(pieces, answer)
        await self._finish_pieces(pieces)
        while len(self._messages) > len(pieces):
            await self._delete(self._messages[-1].id)
            del self._messages[-1]
        # The record counts the posts until now, because the nonces depend on their number.
        self._record.drop(self._deleted_ids)

    def _list_pieces(self, parts: Sequence[StyledText], answer: Answer) -> list[_Piece]:
        """Return the messages of the final answer: its text, then its files.

        The last message of the text has the buttons and, if the platform allows it, as many files
        as fit. Further files follow in messages without text.
        """
        attached_count = 0 if self._api.posts_files_alone else self._api.max_files
        files_per_message = 1 if self._api.posts_files_alone else self._api.max_files
        attached_files = answer.files[:attached_count]
        separate_files = answer.files[attached_count:]
        if attached_files != answer.files:
            answer = replace(answer, files=attached_files)
        if not parts and (attached_files or not separate_files):
            parts = [StyledText("" if attached_files else self._record.notices.no_text)]
        pieces = [_Piece(part) for part in parts]
        if pieces:
            pieces[-1] = _Piece(parts[-1], answer)
        for start in range(0, len(separate_files), files_per_message):
            files = separate_files[start : start + files_per_message]
            pieces.append(_Piece(StyledText(""), Answer(text="", files=files)))
        return pieces

    async def abandon(self, *, is_withdrawn: bool = False) -> None:
        """Stop typing and drafts. Messages stay for a later attempt unless `is_withdrawn`."""
        try:
            await self._stop()
            self._remaining_delay_s = _MAX_DELAY_S
            while is_withdrawn and self._messages:
                await self._delete(self._messages.pop().id)
            if self._mark is not None:
                await self._mark.remove()
        except MnemeError as error:
            _log.warning("abandoned", error=str(error))

    async def _find_lost_messages(self, pieces: Sequence[_Piece]) -> None:
        """Search for the messages of lost posts, and use them for their parts of the answer.

        If a found message may belong to another answer, the post stays lost and its part gets a
        notice.
        """
        remaining = 0
        while remaining < len(self._record.lost_posts):
            lost_post = self._record.lost_posts[remaining]
            index = min(lost_post.position, len(self._messages))
            piece = pieces[min(index, len(pieces) - 1)]
            async with self._api.post_lock.hold_for_search():
                known_ids = await self._record.load_known_ids()
                message = await self._api.find_lost(lost_post, piece.part, piece.answer, known_ids)
            if message is None:
                remaining += 1
            elif message == ABSENT:
                self._nonce_suffix = f":{secrets.token_hex(8)}"
                await self._record.record_absent(lost_post)
            else:
                self._messages.insert(index, _PostedMessage(message.id, None))
                await self._record.record_found(
                    lost_post, message.id, is_certain=not message.may_be_other
                )
                remaining += message.may_be_other

    async def _finish_marked(self, pieces: list[_Piece], answer: Answer) -> list[_Piece]:
        """Post the answer with notices, because some lost messages weren't found.

        The ids of the new messages limit the search for the lost ones, so the search is repeated.
        Returns the pieces that the messages must finally show, without the notices that turned out
        unnecessary.
        """
        unbounded = sum(not lost_post.before_id for lost_post in self._record.lost_posts)
        marked_pieces = await self._add_duplicate_notices(pieces, answer)
        await self._finish_pieces(marked_pieces, is_final=False)
        lost_count = len(self._record.lost_posts)
        if unbounded:
            await self._find_lost_messages(pieces)
        if len(self._record.lost_posts) == lost_count:
            return marked_pieces
        return await self._add_duplicate_notices(pieces, answer)

    async def _finish_pieces(self, pieces: Sequence[_Piece], *, is_final: bool = True) -> None:
        """Make the messages show these pieces.

        Unless `is_final`, they will be changed once more.
        """
        index = 0
        while index < len(pieces):
            count = 0
            if index == len(self._messages):
                count = await self._post_album(pieces[index:])
            if not count:
                count = 1
                is_last = is_final and index == len(pieces) - 1
                finish = partial(self._finish_piece, index, pieces[index], is_last=is_last)
                await self._retry(finish)
            index += count

    async def _post_album(self, pieces: Sequence[_Piece]) -> int:
        """Post the first pieces as an album if they are files that form one.

        Returns how many pieces were posted. The messages are recorded like those of single files.
        If the platform refuses the album, nothing is posted, so the caller posts the files one by
        one.
        """
        files = [
            piece.answer.files[0]
            for piece in takewhile(lambda piece: piece.is_file, pieces)
            if piece.answer is not None
        ]
        if len(files) < 2 or not self._api.posts_files_alone:
            return 0
        count = self._api.count_album_files(files)
        if count < 2:
            return 0
        try:
            await self._retry(partial(self._post_files, files[:count]))
        except DeliveryError as error:
            if not error.is_missing or error.is_permanent:
                raise
            _log.info("album refused", error=str(error))
            return 0
        return count

    async def _post_files(self, files: Sequence[File]) -> None:
        """Post files as one album and record the id of each message."""
        await self._record.intend(self._api.newest_id, count=len(files))
        try:
            async with self._api.post_lock.hold_for_post():
                message_ids = await self._api.post_album(files)
        except DeliveryError as error:
            if not error.is_uncertain:
                await self._record.retract()
            raise
        self._messages += [_PostedMessage(id_, StyledText("")) for id_ in message_ids]
        await self._record.record(*message_ids)

    async def _add_duplicate_notices(self, pieces: list[_Piece], answer: Answer) -> list[_Piece]:
        """Return the pieces with a notice before each piece that may appear twice.

        Messages with a known id are edited, so they don't appear twice. A lost post may have
        created a second message if its message wasn't found or isn't certain.
        """
        notice = self._record.notices.may_be_duplicate
        positions = {lost_post.position for lost_post in self._record.lost_posts}
        if 0 in positions:
            text = f"{notice}\n\n{answer.text}"
            pieces = self._list_pieces(await run_off_loop(self._split, text), answer)
        pieces = list(pieces)
        for position in sorted(positions - {0}):
            if position < len(pieces):
                pieces.insert(position, _Piece(StyledText(notice)))
        return pieces

    def _end_soon(self) -> None:
        """Make the streaming task end after its current call."""
        self._ending.set()
        self._text_changed.set()

    async def _stop(self) -> None:
        """Wait until the streaming task has ended after its current call.

        The call isn't cancelled, because the id of its message could be lost.
        """
        self._end_soon()
        task = self._task
        self._task = None
        if task is None:
            return
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise

    async def _stream(self) -> None:
        """Show typing and drafts until the reply ends. The pauses grow with each edit."""
        # None until the first words were shown.
        draft_delay_s: float | None = None
        typing_delay_s = _FIRST_TYPING_S
        edits = 0
        while not self._ending.is_set():
            has_message = any(message.part is not None for message in self._messages)
            try:
                async with asyncio.timeout(None if has_message else typing_delay_s):
                    await self._text_changed.wait()
            except TimeoutError:
                typing_delay_s = self._typing_every_s
                if self._mark is not None:
                    await self._mark.show()
                await self._try(self._api.show_typing)
                continue
            if draft_delay_s is None:
                await self._wait_for_words()
            else:
                await self._pause(draft_delay_s)
            self._text_changed.clear()
            if self._ending.is_set():
                return

            await self._try(self._show_draft)
            if self._is_draft_shown:
                typing_delay_s = _DRAFT_LIFETIME_S
            else:
                typing_delay_s = self._typing_every_s
                edits += 1
            draft_delay_s = self._api.pace_s * min(2**edits, 4)

    async def _wait_for_words(self) -> None:
        """Wait a limited time for the first words of the answer.

        If `first_words_s` is 0, this only gives other tasks a turn.
        """
        if not self._first_words_s:
            await self._pause(0)
            return
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + _MAX_WORDS_WAIT_S
        await self._pause(self._begun_at + self._first_words_s - loop.time())
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends_at):
                while not self._is_worth_draft() and not self._ending.is_set():
                    self._text_changed.clear()
                    await self._text_changed.wait()
        await self._pause(_SETTLING_S)

    def _is_worth_draft(self) -> bool:
        """Return whether the text is long enough for a draft.

        In some languages, there are no spaces between words.
        """
        return len(self._text) >= _FIRST_CHARS or len(self._text.split()) >= _FIRST_WORDS

    async def _try(self, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call for typing or a draft. If it fails, only this draft is lost.

        A permanent error ends all drafts. If the platform asks for a delay, the draft is tried
        again after that delay.
        """
        try:
            await call()
        except DeliveryError as error:
            _log.info("draft dropped", error=str(error), retry_after_s=error.retry_after_s)
            if error.is_permanent:
                self._end_soon()
            elif error.retry_after_s is not None:
                self._text_changed.set()
                await self._pause(error.retry_after_s)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but wake up as soon as the reply ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()

    async def _show_draft(self) -> None:
        """Show the text so far, as a draft of the platform if possible, otherwise as messages.

        Messages are edited as the text grows. When a message is full, the text continues in the
        next one. After a lost post, nothing is shown until its message is found or is known not to
        exist.
        """
        parts = await run_off_loop(self._split, self._text)
        is_draft_shown = False
        if parts and not self._messages:
            is_draft_shown = await self._api.show_draft(parts[-1], self._nonce)
        self._is_draft_shown = is_draft_shown
        if is_draft_shown or not parts:
            return
        if self._record.lost_posts and self._api.can_read_history:
            await self._find_lost_messages([_Piece(part) for part in parts])
        if self._record.lost_posts:
            return
        for index, part in enumerate(parts):
            if self._ending.is_set():
                return
            if index == len(self._messages):
                await self._post(part, None)
            else:
                await self._try_edit(index, part, None)

    async def _finish_piece(self, index: int, piece: _Piece, *, is_last: bool) -> None:
        """Make the message at `index` show its final piece.

        The message is edited, or posted if it doesn't exist yet. A file that an earlier attempt or
        process has posted stays. If the message no longer exists, can't be edited or would have no
        text, it is deleted, and the next message or a new one replaces it.
        """
        if index == len(self._messages):
            await self._post(piece.part, piece.answer, is_last=is_last)
            return
        can_stay = bool(piece.part.text) or (piece.is_file and self._api.posts_files_alone)
        if can_stay and await self._try_edit(index, piece.part, piece.answer):
            return

        unusable = self._messages.pop(index)
        try:
            await self._finish_piece(index, piece, is_last=False)
        except DeliveryError:
            self._messages.insert(index, unusable)
            raise
        await self._delete(unusable.id)

    async def _try_edit(self, index: int, part: StyledText, answer: Answer | None) -> bool:
        """Edit a message unless it already shows the part.

        Returns False if the message is gone or can no longer be edited.
        """
        message = self._messages[index]
        has_attachments = answer is not None and bool(
            answer.buttons or answer.files or answer.cards
        )
        if message.part == part and not has_attachments:
            return True
        try:
            await self._api.edit(message.id, part, answer)
        except DeliveryError as error:
            if not error.is_missing:
                raise
            _log.info("edit failed", error=str(error))
            return False
        message.part = part
        return True

    @property
    def _nonce(self) -> str:
        """Return the key of the next post: the answer's key and the number of recorded messages.

        If a lost post turned out to have no message, the key gets a random suffix. Otherwise the
        platform could return an earlier message that now belongs to another answer.
        """
        return f"{self._record.key}:{len(self._record.message_ids)}{self._nonce_suffix}"

    async def _post(
        self, part: StyledText, answer: Answer | None, *, is_last: bool = False
    ) -> None:
        """Create a message and record its id.

        The intention is recorded first, so that after a crash the next process knows that a message
        may exist. The intention is withdrawn if the message certainly wasn't created.
        """
        await self._record.intend(self._api.newest_id)
        try:
            async with self._api.post_lock.hold_for_post():
                message_id = await self._api.post(part, answer, self._nonce)
        except DeliveryError as error:
            if not error.is_uncertain:
                await self._record.retract()
            raise
        self._messages.append(_PostedMessage(message_id, part))
        await self._record.record(message_id, is_last=is_last)

    async def _delete(self, message_id: str) -> None:
        """Delete a message. If the platform refuses, the message stays, which isn't an error.

        Only a message that may be deleted later stays in the record. Raises DeliveryError if the
        platform can't be reached or asks for a long delay.
        """
        try:
            await self._retry(partial(self._api.delete, message_id))
        except DeliveryError as error:
            if error.retry_after_s is not None or error.is_unreachable:
                raise
            _log.info("not removed", message_id=message_id, error=str(error))
            if not (error.is_missing or error.is_permanent):
                return
        self._deleted_ids.add(message_id)

    async def _retry(self, call: Callable[[], Awaitable[None]]) -> None:
        """Make a call, and repeat it after each delay that the platform asks for.

        Raises DeliveryError if the call fails for another reason, or if the total delay would be
        too long.
        """
        while True:
            try:
                return await call()
            except DeliveryError as error:
                delay_s = error.retry_after_s
                if delay_s is None or error.is_permanent or delay_s > self._remaining_delay_s:
                    raise
            self._remaining_delay_s -= delay_s
            await asyncio.sleep(delay_s)

    def _split(self, text: str) -> list[StyledText]:
        """Render Markdown and cut it into parts that each fit into one message."""
        rendered = render(text).strip_end()
        is_single = bool(rendered.text) and not rendered.text[0].isspace()
        if is_single and self._api.measure(rendered) <= self._api.limit_chars:
            return [rendered]
        return split(rendered, self._api.limit_chars, self._api.measure)


class QuietReply:
    """A `Reply` that shows only the final answer. `send` gets the record and the answer."""

    def __init__(self, send: Callable[[DeliveryRecord, Answer], Awaitable[None]]) -> None:
        self._send = send

    def begin(self, record: DeliveryRecord) -> None:
        self._record = record

    def show(self, text: str) -> None:
        """Ignore text that isn't final."""

    async def finish(self, answer: Answer) -> None:
        await self._send(self._record, answer)

    async def abandon(self, *, is_withdrawn: bool = False) -> None:
        """Do nothing, because nothing was shown."""
