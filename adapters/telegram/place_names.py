"""Remembers the names of groups and topics from the messages in them.

The Bot API gives the name of a topic only in messages: in the notice that opened or renamed it, and
in messages that refer to that notice. So a name is unknown from a start until the next message in
the topic.
"""

from __future__ import annotations

from collections import OrderedDict

from telegram import Bot, Message
from telegram.error import TelegramError

from adapters.telegram.errors import describe_error
from core.errors import DeliveryError
from core.types import Address

# The number of names that are kept. Names that were seen last are kept.
MAX_NAMES = 1000
SEPARATOR = " / "


class PlaceNames:
    """The names of one bot's groups and topics, by chat id and topic id (0 for the chat itself)."""

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[int, int], str] = OrderedDict()

    def note(self, message: Message) -> None:
        """Remember the names that a message in a group contains."""
        chat = message.chat
        self._put(chat.id, 0, chat.title or "")
        topic_id = message.message_thread_id
        if topic_id is None or not message.is_topic_message:
            return
        root = message.reply_to_message
        if message.forum_topic_edited is not None and message.forum_topic_edited.name:
            self._put(chat.id, topic_id, message.forum_topic_edited.name)
        elif message.forum_topic_created is not None:
            self._put(chat.id, topic_id, message.forum_topic_created.name)
        elif root is not None and root.forum_topic_created is not None:
            # This is the topic's first name, so a later name isn't replaced.
            self._names.setdefault((chat.id, topic_id), root.forum_topic_created.name)

    async def load(self, bot: Bot, address: Address) -> str:
        """Return the name of a group, with that of the topic: "Family / Travel".

        An unknown topic is named by its number. Raises DeliveryError if the group is unknown and
        Telegram doesn't name it.
        """
        chat_id = int(address.chat_id)
        name = self._names.get((chat_id, 0), "")
        if not name:
            try:
                name = (await bot.get_chat(chat_id)).title or ""
            except TelegramError as error:
                raise DeliveryError(describe_error(error)) from error
        if address.thread_id is None:
            return name
        topic = self._names.get((chat_id, int(address.thread_id)), address.thread_id)
        return f"{name}{SEPARATOR}{topic}"

    def _put(self, chat_id: int, topic_id: int, name: str) -> None:
        key = chat_id, topic_id
        if self._names.get(key) == name:
            return
        self._names[key] = name
        while len(self._names) > MAX_NAMES:
            self._names.popitem(last=False)
