"""The chats of the Bot API's double: who says what where, what the bot has not confirmed yet, what a person sees.

The people's side of the double, driven by tests; `BotApi` adds the bot's side over HTTP. Update and message objects
are the ones that the Bot API describes, as plain JSON values.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from tests.doubles.bot_contract import BotContract

Object = dict[str, Any]
T = TypeVar("T")

_COMMAND = re.compile(r"(?<![\w/@])/([A-Za-z0-9_]{1,32})(@[A-Za-z0-9_]{3,32})?(?![\w/])")
_MENTION = re.compile(r"(?<![\w/@])@[A-Za-z0-9_]{3,32}(?!\w)")
GROUP_ADMIN = 1087968824


class BotChats:
    """Everything said in the chats of one bot, and the updates that wait for it.

    A positive chat id is the direct chat of the user with that id and needs no making; rooms are made by `group`.
    Every method that makes an update returns it.
    """

    def __init__(self, username: str = "mneme_bot", bot_id: int = 110201543) -> None:
        self.bot: Object = {"id": bot_id, "is_bot": True, "first_name": "Mneme", "username": username}
        self.updates: list[Object] = []
        """What the bot has not confirmed."""
        self.blocked: set[int] = set()
        """Chats that answer 403, as after a block or a kick."""
        self.contract = BotContract.load()
        self.violations: list[str] = []
        """What was not as the Bot API documents it, on either side."""
        self.chats: dict[int, Object] = {}
        self.people: dict[int, Object] = {}
        self.history: dict[int, dict[int, Object]] = {}
        self.topics: dict[int, set[int]] = {}
        self.allowed: frozenset[str] = frozenset()
        """Kinds of updates that the last poll asked for; empty: all."""
        self.presses: set[str] = set()
        """Ids of presses that nobody answered yet."""
        self._next_update = itertools.count(870_000_001)
        self._next_message: dict[int, itertools.count[int]] = {}
        self._next_press = itertools.count(4_382_000_000_000_000_001)
        self._pulse = asyncio.Event()

    def person(self, user_id: int, name: str = "Ana", username: str | None = None) -> Object:
        """Makes or renames a person; without it everybody is called Ana."""
        user: Object = {"id": user_id, "is_bot": False, "first_name": name, "language_code": "en"}
        if username:
            user["username"] = username
        self.people[user_id] = user
        return user

    def group(self, chat_id: int, title: str = "Family", *, is_forum: bool = False) -> Object:
        """Makes a room: a supergroup when the id starts with -100, else a basic group."""
        is_super = str(chat_id).startswith("-100")
        chat: Object = {"id": chat_id, "type": "supergroup" if is_super else "group", "title": title}
        if is_forum:
            chat["is_forum"] = True
        self.chats[chat_id] = chat
        return chat

    def topic(self, chat_id: int, name: str = "Plans") -> int:
        """Opens a topic of a forum, or of a direct chat with topics; returns its thread id."""
        root = self.enter(chat_id, self._person(GROUP_ADMIN if chat_id < 0 else chat_id))
        root |= {
            "forum_topic_created": {"name": name, "icon_color": 7322096},
            "message_thread_id": root["message_id"],
            "is_topic_message": True,
        }
        self.topics.setdefault(chat_id, set()).add(root["message_id"])
        self._queue(message=dict(root))
        return int(root["message_id"])

    def user_says(
        self,
        chat_id: int,
        text: str,
        *,
        user_id: int | None = None,
        thread_id: int | None = None,
        reply_to: int | None = None,
        **fields: Any,
    ) -> Object:
        """A person writes. `fields` are added to the message as they stand (``photo=[...]``, ``sender_chat={...}``);
        with an attachment `text` is its caption. Entities of mentions and commands are found as Telegram finds them."""
        message = self.enter(
            chat_id, self._person(user_id or self._speaker(chat_id)), thread_id=thread_id, reply_to=reply_to
        )
        is_caption = not {"photo", "document", "voice", "audio", "video", "animation"}.isdisjoint(fields)
        if text:
            message["caption" if is_caption else "text"] = text
        entities = _entities(text)
        if entities:
            message["caption_entities" if is_caption else "entities"] = entities
        message |= fields
        return self._queue(message=dict(message))

    def user_edits(self, chat_id: int, message_id: int, text: str) -> Object:
        """A person changes what they wrote."""
        message = self.history[chat_id][message_id]
        message |= {"text": text, "edit_date": self.now()}
        message.pop("entities", None)
        if entities := _entities(text):
            message["entities"] = entities
        return self._queue(edited_message=dict(message))

    def user_presses(self, chat_id: int, message_id: int, label: str, *, user_id: int | None = None) -> Object:
        """A person presses the button with this label under a message of the bot."""
        message = self.history[chat_id][message_id]
        rows = message["reply_markup"]["inline_keyboard"]
        data = next(button["callback_data"] for row in rows for button in row if button["text"] == label)
        press_id = str(next(self._next_press))
        self.presses.add(press_id)
        query = {
            "id": press_id,
            "from": self._person(user_id or self._speaker(chat_id)),
            "chat_instance": str(chat_id),
            "message": dict(message),
            "data": data,
        }
        return self._queue(callback_query=query)

    def user_blocks(self, chat_id: int) -> Object:
        """A person blocks the bot: from now on the chat answers 403."""
        self.blocked.add(chat_id)
        member = {"user": self.bot, "status": "kicked", "until_date": 0}
        change = {
            "chat": self._chat(chat_id),
            "from": self._person(chat_id),
            "date": self.now(),
            "old_chat_member": {"user": self.bot, "status": "member"},
            "new_chat_member": member,
        }
        return self._queue(my_chat_member=change)

    def migrate(self, chat_id: int, new_chat_id: int) -> tuple[Object, Object]:
        """A group becomes a supergroup; the two service messages."""
        old = self.enter(chat_id, self._person(GROUP_ADMIN), migrate_to_chat_id=new_chat_id)
        self.group(new_chat_id, self.chats[chat_id]["title"])
        new = self.enter(new_chat_id, self._person(GROUP_ADMIN), migrate_from_chat_id=chat_id)
        self.chats[chat_id]["moved_to"] = new_chat_id
        return self._queue(message=old), self._queue(message=new)

    def push(self, **payload: Any) -> Object:
        """Queues an update with this payload as it stands; the way to send what no client can parse. As on the real
        server an update of a kind that the last poll did not ask for is lost."""
        update: Object = {"update_id": next(self._next_update), **payload}
        if not self.allowed or not self.allowed.isdisjoint(payload):
            self.updates.append(update)
            self.changed()
        return update

    def _queue(self, **payload: Any) -> Object:
        update = self.push(**payload)
        self.violations += self.contract.value("Update", update)
        return update

    def messages(self, chat_id: int, thread_id: int | None = None) -> list[Object]:
        """The bot's messages that a person sees in a chat now, oldest first: after edits, without deleted ones."""
        return [
            message
            for message in self.history.get(chat_id, {}).values()
            if message["from"]["id"] == self.bot["id"] and thread_id in (None, message.get("message_thread_id"))
        ]

    def texts(self, chat_id: int, thread_id: int | None = None) -> list[str]:
        """The texts (or captions) of `messages`."""
        return [str(message.get("text", message.get("caption", ""))) for message in self.messages(chat_id, thread_id)]

    async def wait_for(self, predicate: Callable[[], T], timeout_s: float = 5.0) -> T:
        """Returns what `predicate` gives as soon as that is true; asked again at every change. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while not (found := predicate()):
                await self._pulse.wait()
            return found

    def enter(
        self,
        chat_id: int,
        sender: Object,
        *,
        thread_id: int | None = None,
        reply_to: int | None = None,
        **fields: Any,
    ) -> Object:
        """A new message in a chat, seen by everybody in it."""
        number = next(self._next_message.setdefault(chat_id, itertools.count(1)))
        message: Object = {"message_id": number, "from": sender, "chat": self._chat(chat_id), "date": self.now()}
        if thread_id is not None:
            message |= {"message_thread_id": thread_id, "is_topic_message": True}
        # In a topic every message that answers nothing answers the service message that opened the topic.
        answered = self.history.get(chat_id, {}).get(reply_to or thread_id or 0)
        if answered:
            message["reply_to_message"] = {k: v for k, v in answered.items() if k != "reply_to_message"}
        message |= fields
        self.history.setdefault(chat_id, {})[number] = message
        return message

    def changed(self) -> None:
        """Wakes everyone who waits for something to happen."""
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()

    @staticmethod
    def now() -> int:
        """The present as the Bot API writes it: whole seconds since 1970."""
        return int(datetime.now(UTC).timestamp())

    def _person(self, user_id: int) -> Object:
        if user_id == GROUP_ADMIN:
            return {"id": GROUP_ADMIN, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
        return self.people.get(user_id) or self.person(user_id)

    @staticmethod
    def _speaker(chat_id: int) -> int:
        return chat_id if chat_id > 0 else 42

    def _chat(self, chat_id: int) -> Object:
        if chat_id > 0:
            user = self._person(chat_id)
            return {"id": chat_id, "type": "private", "first_name": user["first_name"]}
        return {name: value for name, value in self.chats[chat_id].items() if name != "moved_to"}


def utf16(text: str) -> int:
    """The length of a text in UTF-16 code units, as Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _entities(text: str) -> list[Object]:
    found = []
    for kind, pattern in (("bot_command", _COMMAND), ("mention", _MENTION)):
        for match in pattern.finditer(text):
            offset = utf16(text[: match.start()])
            found.append({"type": kind, "offset": offset, "length": utf16(match.group())})
    return sorted(found, key=lambda entity: int(entity["offset"]))
