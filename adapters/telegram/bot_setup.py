"""Finds out during setup which bot has a Telegram token, and who writes to the bot.

No message is answered or stored here. Messages aren't confirmed to Telegram, so Mneme gets and
answers them when it starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from telegram import Bot, Update
from telegram.error import Conflict, InvalidToken, TelegramError

from adapters.poll_lock import PollLock
from adapters.telegram.adapter import API_URL
from adapters.telegram.errors import describe_error
from adapters.telegram.messages import TelegramRequest
from adapters.telegram.normalize import PLATFORM
from core.errors import AccessRefused, DeliveryError
from core.ports import FirstMessage
from core.types import Address, Sender

POLL_TIMEOUT_S = 5
# The pause between polls while unconfirmed messages are there, because such polls return at once.
PAUSE_S = 0.5


class TelegramSetup:
    """A bot during setup. Use `TelegramSetup.open`."""

    def __init__(self, bot: Bot, username: str, root: str) -> None:
        self.username = username
        self._bot = bot
        self._root = root

    @classmethod
    @asynccontextmanager
    async def open(cls, token: str, api_url: str | None) -> AsyncIterator[TelegramSetup]:
        """Ask Telegram for the bot's name.

        Raises AccessRefused if the token is refused, and DeliveryError if Telegram can't be
        reached.
        """
        root = (api_url or API_URL).rstrip("/")
        request = TelegramRequest(token, connections=2)
        try:
            await request.initialize()
            with _translate_errors(root):
                bot = Bot(
                    token, base_url=f"{root}/bot", request=request, get_updates_request=request
                )
                me = await bot.get_me()
            yield cls(bot, me.username or me.first_name, root)
        finally:
            await request.shutdown()

    async def watch_writers(self) -> AsyncIterator[FirstMessage]:
        """Yield each direct message, until the iteration is stopped.

        Raises ConfigError if another process on this machine uses the bot, and DeliveryError if
        Telegram can't be reached.
        """
        lock = PollLock(PLATFORM, self._root, self._bot.token)
        await lock.acquire()
        try:
            known_ids: set[int] = set()
            while True:
                with _translate_errors(self._root):
                    updates = await self._bot.get_updates(timeout=POLL_TIMEOUT_S)
                for update in updates:
                    writer = None if update.update_id in known_ids else _read_writer(update)
                    known_ids.add(update.update_id)
                    if writer is not None:
                        yield writer
                await asyncio.sleep(PAUSE_S)
        finally:
            await lock.release()


def _read_writer(update: Update) -> FirstMessage | None:
    """Return the first message of a person from an update, or None for other updates."""
    message = update.message
    if message is None or message.from_user is None or message.chat.type != "private":
        return None
    user = message.from_user
    name = f"{user.full_name} (@{user.username})" if user.username else user.full_name
    return FirstMessage(
        sender=Sender(id=str(user.id), name=name),
        text=message.text or message.caption or "",
        address=Address(platform=PLATFORM, chat_id=str(message.chat.id)),
        message_id=str(message.message_id),
    )


@contextmanager
def _translate_errors(root: str) -> Iterator[None]:
    """Raise AccessRefused or DeliveryError in place of the library's errors."""
    try:
        yield
    except InvalidToken as error:
        raise AccessRefused("telegram_token_refused", root=root, reason=error.message) from error
    except Conflict as error:
        raise DeliveryError("telegram_read_elsewhere") from error
    except TelegramError as error:
        reason = describe_error(error)
        raise DeliveryError("telegram_unreachable", root=root, reason=reason) from error
