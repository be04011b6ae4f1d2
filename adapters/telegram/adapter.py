"""Telegram: receives updates without losing one, and gives a way to answer them.

Polls by itself: an update is in the inbox, committed, before it is confirmed to Telegram; one that cannot be read is
set aside as it came. Decides nothing about who is served; that is the router's part.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import structlog
from telegram import Bot, BotCommand, Update, User
from telegram.error import Conflict, InvalidToken, NetworkError, TelegramError

from adapters.poll_lock import PollLock
from adapters.streaming import StreamedReply
from adapters.telegram.client import FloodError, TelegramRequest
from adapters.telegram.messages import TelegramMessages
from adapters.telegram.normalize import PLATFORM, moved, normalize
from core.errors import ConfigError, DeliveryError
from core.ports import Clock, Reply, Sink
from core.types import Address, CommandSpec, Inbound, Json, RawUpdate

if TYPE_CHECKING:
    from core.store.inbox import Inbox

API_URL = "https://api.telegram.org"
KINDS = ("message", "edited_message", "callback_query", "my_chat_member")
POLL_TIMEOUT_S = 30
POLL_GRACE_S = 10
BACKOFF_S = 1.0
BACKOFF_MOST_S = 60.0
CONNECTIONS = 64
"""One of them is held by the poll."""
COMMAND_DESCRIPTION_CHARS = 256
SUPERGROUP = "-100"
HINT = (
    "The conversation takes place on Telegram, mostly read on a phone. Markdown is rendered: bold, italic, "
    "strikethrough, links, `code`, fenced code blocks with a language, quotes and lists. Headings appear as bold "
    "lines and tables as monospaced text, so prefer short lists to wide tables. Images cannot be embedded. "
    "Answers over 4096 characters are split into several messages."
)

_log = structlog.get_logger(__name__)
_STRANGE = (TelegramError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError)
"""What an update raises that is not as documented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParsedUpdate:
    """An update as it came, and what it says; `error` where it cannot be read."""

    raw: RawUpdate
    update: Update | None = None
    inbound: Inbound | None = None
    error: str | None = None


class Telegram:
    """`api_url` is the root of a Bot API server, the public one when None.

    `poll_timeout_s`: how long Telegram may hold a poll open when there is nothing new. `backoff_s`: the wait after a
    first failed poll; it doubles with each further one, up to a minute.
    """

    platform = PLATFORM
    hint = HINT

    def __init__(
        self,
        *,
        token: str,
        api_url: str | None,
        inbox: Inbox,
        clock: Clock,
        poll_timeout_s: int = POLL_TIMEOUT_S,
        backoff_s: float = BACKOFF_S,
    ) -> None:
        self._token = token.strip()
        self._root = (api_url or API_URL).rstrip("/")
        self._lock = PollLock(PLATFORM, self._root, self._token)
        self._inbox = inbox
        self._clock = clock
        self._poll_timeout_s = poll_timeout_s
        self._backoff_s = backoff_s
        self._request = TelegramRequest(self._token, connections=CONNECTIONS)
        self._opened: Bot | None = None
        self._me: User | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.problem = "not reached yet"

    async def open(self) -> None:
        """Raises ConfigError when the token is refused or another process polls with it. Telegram out of reach is no
        reason to fail: `listen` waits."""
        _quiet_http_logs()
        try:
            self._opened = Bot(
                self._token,
                base_url=f"{self._root}/bot",
                base_file_url=f"{self._root}/file/bot",
                request=self._request,
                get_updates_request=self._request,
            )
        except InvalidToken as error:
            raise ConfigError("telegram: the token is empty. Set TELEGRAM_BOT_TOKEN to the one from @BotFather.") from (
                error
            )
        self._lock.acquire()
        await self._request.initialize()
        try:
            await self._get_me()
        except TelegramError as error:
            self.problem = error.message
            _log.warning("telegram.out_of_reach", error=error.message)

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Polls until cancelled. Raises ConfigError when the token is revoked. Answers under way go on when it ends;
        `close` is what stops them."""
        offset: int | None = None
        failures = 0
        is_announced = False
        while True:
            try:
                me = self._me or await self._get_me()
                if not is_announced:
                    await self._announce(commands)
                    for raw in await self._inbox.left_raw(PLATFORM):
                        await self._take(self._parsed(raw, me), sink)
                        await self._inbox.remove_raw(PLATFORM, raw.update_id)
                    is_announced = True
                updates = await self._poll(offset)
            except TelegramError as error:
                self.problem = "another process polls with this token" if isinstance(error, Conflict) else error.message
                await self._recover(error, failures)
                failures += 1
                continue
            failures = 0
            self.problem = ""
            if updates:
                await self._receive([self._parsed(_raw(update), me) for update in updates], sink)
                offset = max(update["update_id"] for update in updates) + 1

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return StreamedReply(TelegramMessages(self._bot, address, reply_to))

    async def close(self) -> None:
        """Cancels answers still under way."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._request.shutdown()
        self._lock.release()

    @property
    def _bot(self) -> Bot:
        if self._opened is None:
            raise RuntimeError("open() comes first")
        return self._opened

    async def _get_me(self) -> User:
        """Asks who we are; mentions cannot be told without it. Raises ConfigError when the token is refused."""
        try:
            self._me = await self._bot.get_me()
        except InvalidToken as error:
            raise ConfigError(
                f"telegram: {self._root} refused the token ({error.message}). Copy it again from @BotFather (/mybots, "
                "API Token) into TELEGRAM_BOT_TOKEN; with a server of your own check MNEME_TELEGRAM_API_URL too."
            ) from error
        self.problem = ""
        return self._me

    async def _announce(self, commands: Sequence[CommandSpec]) -> None:
        """Fills the command menu. A menu that stays as it was is no reason to stop."""
        menu = [BotCommand(spec.name, spec.description[:COMMAND_DESCRIPTION_CHARS]) for spec in commands]
        try:
            await self._bot.set_my_commands(menu)
        except TelegramError as error:
            _log.warning("telegram.menu_refused", error=error.message)

    async def _poll(self, offset: int | None) -> list[dict[str, Any]]:
        """The next updates as they came: the client's own method parses, and fails on all for a strange one."""
        query: dict[str, Any] = {"timeout": self._poll_timeout_s, "allowed_updates": json.dumps(KINDS)}
        query |= {} if offset is None else {"offset": offset}
        result: Any = await self._request.post(
            f"{self._bot.base_url}/getUpdates?{urlencode(query)}", read_timeout=self._poll_timeout_s + POLL_GRACE_S
        )
        if not isinstance(result, list) or not all(_is_update(update) for update in result):
            raise NetworkError("the answer to getUpdates is no list of updates")
        return result

    async def _recover(self, error: TelegramError, failures: int) -> None:
        """Waits before the next poll; raises ConfigError when there is no use in one."""
        if isinstance(error, InvalidToken):
            # One method's refusal proves nothing: an unknown path looks the same. Asking who we are decides.
            self._me = None
        if isinstance(error, Conflict) and "webhook" in error.message.lower():
            _log.warning("telegram.webhook_removed", reason="updates are polled")
            try:
                await self._bot.delete_webhook()
            except TelegramError as failure:
                _log.warning("telegram.webhook_stays", error=failure.message)
        elif isinstance(error, Conflict):
            _log.warning("telegram.second_poller", advice="stop the other process, or give it a bot of its own")
        else:
            _log.warning("telegram.poll_failed", error=error.message)
        backoff_s = min(self._backoff_s * 2 ** min(failures, 10), BACKOFF_MOST_S)
        await asyncio.sleep(max(error.retry_after_s, backoff_s) if isinstance(error, FloodError) else backoff_s)

    async def _receive(self, updates: Sequence[_ParsedUpdate], sink: Sink) -> None:
        """Gives updates to the router in order."""
        # What is incognito in a group is so at its new id too, before anything of that is written down.
        for parsed in updates:
            if parsed.update is not None and (move := moved(parsed.update)):
                await sink.moved(PLATFORM, *move)
        for parsed in updates:
            await self._take(parsed, sink)

    def _parsed(self, raw: RawUpdate, me: User) -> _ParsedUpdate:
        update: Update | None = None
        try:
            update = Update.de_json(json.loads(raw.raw), self._bot)
            return _ParsedUpdate(raw=raw, update=update, inbound=normalize(update, me, self._clock.now()))
        except _STRANGE as error:
            return _ParsedUpdate(raw=raw, update=update, error=f"{type(error).__name__}: {error}")

    async def _take(self, parsed: _ParsedUpdate, sink: Sink) -> None:
        update, update_id = parsed.update, parsed.raw.update_id
        if update is None or parsed.error is not None:
            _log.error("telegram.update_skipped", update_id=update_id, error=parsed.error)
            await self._inbox.set_aside(parsed.raw, parsed.error or "")
            return
        if update.my_chat_member:
            member = update.my_chat_member
            _log.info("telegram.membership", status=member.new_chat_member.status, chat_id=member.chat.id)
        if update.callback_query:
            self._start(self._acknowledge(update.callback_query.id))
        if inbound := parsed.inbound:
            # The answer to a press refers to the message with the buttons.
            answered = inbound.reply_to if inbound.kind == "action" else inbound.message_id
            entry_id = await sink.admit(inbound, self.reply(inbound.address, answered))
            if entry_id is not None:
                self._start(sink.serve(entry_id))

    async def _acknowledge(self, query_id: str) -> None:
        """Ends the button's spinner. Telegram refuses late and repeated ones, which does no harm."""
        try:
            await self._bot.answer_callback_query(query_id)
        except TelegramError as error:
            _log.debug("telegram.press_not_acknowledged", error=error.message)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """A task that outlives `listen`: an answer under way is not lost because polling stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("telegram.serve_failed", exc_info=error)


def _is_update(update: object) -> bool:
    return isinstance(update, dict) and isinstance(update.get("update_id"), int)


def _raw(update: Json) -> RawUpdate:
    return RawUpdate(platform=PLATFORM, update_id=update["update_id"], raw=json.dumps(update))


def _quiet_http_logs() -> None:
    """The HTTP libraries log each address, and the token is part of it."""
    for name in ("httpx", "httpcore"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))


async def check_telegram(token: str, api_url: str | None) -> str:
    """A sentence that names the bot. Raises ConfigError when the token is refused, DeliveryError when out of reach."""
    root = (api_url or API_URL).rstrip("/")
    request = TelegramRequest(token, connections=1)
    try:
        bot = Bot(token, base_url=f"{root}/bot", request=request, get_updates_request=request)
        await request.initialize()
        me = await bot.get_me()
    except InvalidToken as error:
        raise ConfigError("Telegram refuses the token. Set TELEGRAM_BOT_TOKEN to the one from @BotFather.") from error
    except TelegramError as error:
        raise DeliveryError(f"Telegram cannot be reached at {root}: {error.message}") from error
    finally:
        await request.shutdown()
    return f"The token is valid; the bot is @{me.username}."
