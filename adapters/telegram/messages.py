"""Sends, edits and deletes the messages of one answer in one Telegram chat.

Falls back where Telegram is strict: plain text when it refuses the formatting, the chat itself when a topic is gone,
the new chat when a group has moved. When what is sent is decided by `adapters.streaming`.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog
from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.constants import ChatAction
from telegram.error import BadRequest, ChatMigrated, TelegramError

from adapters.telegram.client import FloodError, delivery_error, is_about_formatting, is_said
from core.errors import DeliveryError
from core.markup.markdown import StyledText, utf16_length
from core.types import Address, Answer, File

T = TypeVar("T")

LIMIT_UTF16 = 4096
PACE_DIRECT_S = 1.0
PACE_GROUP_S = 3.0
BIGGEST_MESSAGE_ID = 2**31 - 1
SHORT_LABEL_CHARS = 14
BUTTONS_A_ROW = 3
MOST_ENTITIES = 100
_WEIGHT = {"text_link": 0, "pre": 1}
"""Of too many entities those stay that say what the text does not."""

_log = structlog.get_logger(__name__)


class TelegramMessages:
    """One chat or topic, for one answer. `reply_to`: the message that is answered; quoted in groups only."""

    limit_chars = LIMIT_UTF16
    is_idempotent = False

    def __init__(self, bot: Bot, address: Address, reply_to: str | None) -> None:
        self._bot = bot
        self._chat_id = int(address.chat_id)
        self._thread_id = int(address.thread_id) if address.thread_id else None
        is_group = self._chat_id < 0
        self.pace_s = PACE_GROUP_S if is_group else PACE_DIRECT_S
        # A pressed button has an id too, but it is none of a message.
        is_message = reply_to is not None and reply_to.isdecimal() and int(reply_to) <= BIGGEST_MESSAGE_ID
        self._reply_to = int(reply_to) if reply_to and is_message and is_group else None
        self._unfinished: dict[str, str] = {}
        self._files_sent = 0
        self._has_drafts = not is_group

    def measure(self, part: StyledText) -> int:
        """UTF-16 units."""
        return utf16_length(part.text)

    async def typing(self) -> None:
        """Failure is ignored: the message itself will show it."""
        try:
            await self._bot.send_chat_action(self._chat_id, ChatAction.TYPING, message_thread_id=self._thread_id)
        except TelegramError as error:
            _log.debug("telegram.typing_failed", error=error.message)

    async def prepare(self, answer: Answer) -> None:
        """Nothing is private in a group of Telegram; what may not be said there is refused by the commands."""

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """In private chats only, gone after half a minute. A server that does not know it is not asked again."""
        if not self._has_drafts:
            return False
        try:
            await self._bot.send_message_draft(
                self._chat_id,
                zlib.crc32(nonce.encode()) or 1,
                part.text,
                message_thread_id=self._thread_id,
                entities=_entities(part),
            )
        except FloodError as error:
            raise delivery_error(error) from error
        except TelegramError as error:
            _log.info("telegram.no_draft", error=error.message)
            self._has_drafts = False
        return self._has_drafts

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """When a file failed after the text was posted, the same `nonce` again goes on with the files."""
        message_id = self._unfinished.pop(nonce, None)
        if message_id is None and answer and answer.files and not part.text:
            return await self._send_files(answer.files)
        if message_id is None:
            message_id = await self._post(part, answer)
        if answer and answer.files:
            try:
                await self._send_files(answer.files)
            except DeliveryError:
                self._unfinished[nonce] = message_id
                raise
        return message_id

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone or cannot be edited any more."""

        async def change(entities: Sequence[MessageEntity]) -> None:
            try:
                await self._bot.edit_message_text(
                    part.text,
                    chat_id=self._chat_id,
                    message_id=int(message_id),
                    entities=entities,
                    reply_markup=_keyboard(answer),
                    link_preview_options=LinkPreviewOptions(is_disabled=True),
                )
            except BadRequest as error:
                if not is_said(error, "message is not modified"):
                    raise

        await self._delivered(change, _entities(part))
        if answer and answer.files:
            await self._send_files(answer.files)

    async def remove(self, message_id: str) -> None:
        """Raises DeliveryError: Telegram deletes nothing that is older than two days."""
        try:
            await self._bot.delete_message(self._chat_id, int(message_id))
        except TelegramError as error:
            raise delivery_error(error) from error

    async def _post(self, part: StyledText, answer: Answer | None) -> str:
        async def send(entities: Sequence[MessageEntity]) -> Message:
            return await self._bot.send_message(
                self._chat_id,
                part.text,
                entities=entities,
                message_thread_id=self._thread_id,
                reply_parameters=self._reply(),
                reply_markup=_keyboard(answer),
                link_preview_options=LinkPreviewOptions(is_disabled=True),
            )

        message = await self._delivered(send, _entities(part))
        self._reply_to = None  # the parts that follow stand under the first
        return str(message.message_id)

    async def _send_files(self, files: Sequence[File]) -> str:
        """Sends those not sent yet; returns the id of the last."""
        message_id = ""
        while self._files_sent < len(files):
            file = files[self._files_sent]

            async def send(_: Sequence[MessageEntity], file: File = file) -> Message:
                return await self._bot.send_document(
                    self._chat_id,
                    InputFile(file.content, filename=file.name),
                    message_thread_id=self._thread_id,
                    reply_parameters=self._reply(),
                )

            message_id = str((await self._delivered(send)).message_id)
            self._files_sent += 1
        return message_id

    def _reply(self) -> ReplyParameters | None:
        return ReplyParameters(self._reply_to, allow_sending_without_reply=True) if self._reply_to else None

    async def _delivered(
        self, call: Callable[[Sequence[MessageEntity]], Awaitable[T]], entities: Sequence[MessageEntity] = ()
    ) -> T:
        """Calls, following a group that moved, leaving a topic that is gone, and without entities when Telegram refuses
        what it was given; raises DeliveryError."""
        has_moved = False
        while True:
            try:
                return await call(entities)
            except TelegramError as error:
                if isinstance(error, ChatMigrated) and not has_moved:
                    self._chat_id, has_moved = error.new_chat_id, True
                elif self._thread_id is not None and is_said(error, "message thread not found"):
                    self._thread_id = None
                elif entities and is_about_formatting(error):
                    _log.warning("telegram.sent_plain", error=error.message)
                    entities = ()
                else:
                    raise delivery_error(error) from error


def _entities(part: StyledText) -> list[MessageEntity]:
    kept = [entity for entity in part.entities if entity.kind not in ("heading", "list_marker")]
    if len(kept) > MOST_ENTITIES:
        kept = sorted(kept, key=lambda entity: (_WEIGHT.get(entity.kind, 2), entity.offset))[:MOST_ENTITIES]
        kept.sort(key=lambda entity: (entity.offset, -entity.length))
    entities = [
        MessageEntity(entity.kind, entity.offset, entity.length, url=entity.url, language=entity.language)
        for entity in kept
    ]
    return list(MessageEntity.adjust_message_entities_to_utf_16(part.text, entities))


def _keyboard(answer: Answer | None) -> InlineKeyboardMarkup | None:
    """Buttons in the order given; short ones share a row."""
    rows: list[list[InlineKeyboardButton]] = []
    for button in answer.buttons if answer else ():
        last = rows[-1] if rows else []
        is_short = all(len(label) <= SHORT_LABEL_CHARS for label in (button.label, *(other.text for other in last)))
        if not (is_short and 0 < len(last) < BUTTONS_A_ROW):
            rows.append(last := [])
        last.append(InlineKeyboardButton(button.label, callback_data=button.id))
    return InlineKeyboardMarkup(rows) if rows else None
