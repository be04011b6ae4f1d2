"""Telegram: receives updates without losing one, and gives a way to answer them.

Polls by itself: an update is in the inbox, committed, before it is confirmed to Telegram; one that cannot be read is
set aside as it came. Decides nothing about who is served; that is the router's part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import structlog
from telegram import Bot, BotCommand, Update, User
from telegram.error import Conflict, EndPointNotFound, InvalidToken, NetworkError, TelegramError

from adapters.poll_lock import PollLock
from adapters.streaming import StreamedReply
from adapters.telegram.messages import CONFLICT, FloodError, TelegramMessages, TelegramRequest, clause
from adapters.telegram.normalize import PLATFORM, moved, normalize
from core.errors import ConfigError, DeliveryError, MnemeError, StoreError
from core.ports import Clock, Reply, Sink
from core.text.normalize import language_data
from core.types import Address, CommandSpec, Json

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

API_URL = "https://api.telegram.org"
KINDS = ("message", "edited_message", "callback_query")
POLL_GRACE_S = 10
TRIES = 3
"""How often an update may fail before it is set aside."""
PAUSE_MOST_S = 8.0
CONNECTIONS = 64
"""One of them is held by the poll."""
DESCRIPTION_CHARS = 256

_log = structlog.get_logger(__name__)
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
_STRANGE = (MnemeError, TelegramError, RuntimeError, OSError, *_UNREADABLE)
"""What an update raises that is not as documented, or that the code behind it cannot handle."""


class Telegram:
    """`api_url` is the root of a Bot API server, the public one when None. `poll_timeout_s`: how long Telegram may hold
    a poll open when there is nothing new. `pause_s`: from one poll that brings nothing new to the next where it is not
    held open, and after a first failed one; then it doubles, up to 8 s."""

    platform = PLATFORM
    contact = "your bot"
    hint = language_data("hints", "adapters")[PLATFORM]
    poll_timeout_s = 30
    pause_s = 1.0

    def __init__(self, *, token: str, api_url: str | None, inbox: Inbox, clock: Clock) -> None:
        self._root = (api_url or API_URL).rstrip("/")
        self._lock = PollLock(PLATFORM, self._root, token)
        self._inbox = inbox
        self._clock = clock
        self._request = TelegramRequest(token, connections=CONNECTIONS)
        self._bot = Bot(token, base_url=f"{self._root}/bot", request=self._request, get_updates_request=self._request)
        self._me: User | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        self._failed_tries: dict[int, int] = {}
        """By the id of an update that cannot be handled."""
        self._failure = "not reached yet"
        self._failures = 0
        self._polled_at = 0.0

    @property
    def problem(self) -> str:
        """Empty once a poll was answered, and not too long ago."""
        silence_s = time.monotonic() - self._polled_at
        is_silent = silence_s > self.poll_timeout_s + 2 * POLL_GRACE_S
        return self._failure or (f"no poll was answered for {silence_s:.0f} seconds" if is_silent else "")

    async def open(self) -> None:
        """Raises ConfigError when the token is refused or another process polls with it. Telegram out of reach is no
        reason to fail: `listen` waits."""
        await self._lock.acquire()
        await self._request.initialize()
        try:
            self._me = await _get_me(self._bot, self._root)
            self.contact = f"@{self._me.username} (https://t.me/{self._me.username})"
        except ConfigError:
            await self.close()
            raise
        except TelegramError as error:
            self._failure = clause(error)
            _log.warning("telegram.out_of_reach", error=self._failure)

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        """Polls until cancelled. Raises ConfigError when the token is revoked. Answers under way go on when it ends;
        `close` is what stops them."""
        offset: int | None = None
        known: set[int] = set()
        held: set[int] = set()
        menu = [BotCommand(spec.name, spec.description[:DESCRIPTION_CHARS]) for spec in commands]
        is_announced = False
        while True:
            began_at = time.monotonic()
            # A poll that need not wait proves the connection at once; it would never show that there are two pollers.
            timeout_s = self.poll_timeout_s if self._failure in ("", CONFLICT) else 0
            updates = await self._next_updates(offset, timeout_s)
            if updates is None:
                continue
            if not is_announced:
                self._start(self._attempt(self._bot.set_my_commands, menu))
                is_announced = True
            new, known = updates.keys() - known, {*updates}
            held = await self._receive({key: updates[key] for key in updates if key in held | new}, sink)
            if updates:
                offset = min(held, default=max(updates) + 1)
            if held or (timeout_s and not new):
                await asyncio.sleep(max(self.pause_s - (0 if held else time.monotonic() - began_at), 0))

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return StreamedReply(TelegramMessages(self._bot, address, reply_to))

    async def close(self) -> None:
        """Cancels answers still under way."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._request.shutdown()
        await self._lock.release()

    async def _next_updates(self, offset: int | None, timeout_s: int) -> dict[int, Json] | None:
        """The next updates as they came, by id: the client's own method parses, and fails on all for a strange one.
        None after the pause that a failed poll asks for. Raises ConfigError when there is no use in another one."""
        query: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": KINDS, "offset": offset}
        try:
            self._me = self._me or await _get_me(self._bot, self._root)
            # Spelled so that the client does not advise its own method.
            call = self._bot.do_api_request("get_Updates", api_kwargs=query, read_timeout=timeout_s + POLL_GRACE_S)
            result: Any = await call
            updates = {int(update["update_id"]): update for update in result}
        except TelegramError as error:
            await self._recover(error)
        except (TypeError, KeyError, ValueError):
            await self._recover(NetworkError("the answer to getUpdates is no list of updates"))
        else:
            self._failure, self._failures, self._polled_at = "", 0, time.monotonic()
            return updates
        return None

    async def _recover(self, error: TelegramError) -> None:
        """Removes what is in the way, and waits before the next poll."""
        self._failure = clause(error)
        if isinstance(error, InvalidToken | EndPointNotFound):
            # One method's refusal proves nothing: an unknown path looks the same. Asking who we are decides.
            self._me = None
        if not isinstance(error, Conflict):
            _log.warning("telegram.poll_failed", error=error.message)
        elif self._failure == CONFLICT:
            _log.warning("telegram.second_poller", advice="stop the other process, or give it a bot of its own")
        else:
            _log.warning("telegram.webhook_removed", reason="updates are polled")
            await self._attempt(self._bot.delete_webhook)
        pause_s = min(self.pause_s * 2 ** min(self._failures, 10), PAUSE_MOST_S)
        self._failures += 1
        await asyncio.sleep(max(error.retry_after_s, pause_s) if isinstance(error, FloodError) else pause_s)

    async def _receive(self, updates: Mapping[int, Json], sink: Sink) -> set[int]:
        """Gives updates to the router in order, then has them served. Returns the ids of those that are to be tried
        again: what the store does not take, with what follows in the same chat, and what is handled wrongly."""
        held: set[int] = set()
        held_addresses: set[str] = set()
        entry_ids: list[int] = []
        for update_id, raw in updates.items():
            try:
                entry_id = await self._admit(raw, sink, held_addresses)
                if entry_id is not None:
                    entry_ids.append(entry_id)
            except StoreError as error:
                _log.error("telegram.update_not_stored", update_id=update_id, error=str(error))
                held.add(update_id)
            except _STRANGE as error:
                if not await self._is_set_aside(update_id, raw, f"{type(error).__name__}: {error}"):
                    held.add(update_id)
        for entry_id in entry_ids:
            self._start(sink.serve(entry_id))
        return held

    async def _admit(self, raw: Json, sink: Sink, held_addresses: set[str]) -> int | None:
        """The entry to be served. Raises StoreError, and whatever is strange about the update."""
        update = Update.de_json(dict(raw), self._bot)
        if move := moved(update):
            await sink.moved(PLATFORM, *move)
        assert self._me is not None
        inbound = normalize(update, self._me, self._clock.now())
        if inbound is None:
            return None
        if inbound.address.key in held_addresses:
            raise StoreError("what came before it at this address is not stored yet")
        # The answer to a press refers to the message with the buttons.
        answered = inbound.reply_to if inbound.kind == "action" else inbound.message_id
        try:
            entry_id = await sink.admit(inbound, self.reply(inbound.address, answered))
        except StoreError:
            held_addresses.add(inbound.address.key)
            raise
        if update.callback_query:  # ends the button's spinner
            self._start(self._attempt(self._bot.answer_callback_query, update.callback_query.id))
        return entry_id

    async def _is_set_aside(self, update_id: int, raw: Json, error: str) -> bool:
        """Counts the failures of an update; sets it aside after the last of its tries."""
        failures = self._failed_tries[update_id] = self._failed_tries.get(update_id, 0) + 1
        _log.error("telegram.update_failed", update_id=update_id, failures=failures, error=error)
        if failures < TRIES:
            return False
        try:
            await self._inbox.set_aside(PLATFORM, update_id, raw, error)
        except StoreError as failure:
            _log.error("telegram.update_not_set_aside", update_id=update_id, error=str(failure))
            return False
        del self._failed_tries[update_id]
        return True

    async def _attempt(self, method: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """A call that may fail: a command menu that is refused stays as it was, and late answers to a press are."""
        try:
            await method(*arguments)
        except TelegramError as error:
            _log.warning("telegram.call_failed", method=method.__name__, error=error.message)

    def _start(self, work: Awaitable[None]) -> None:
        """What outlives `listen`: an answer under way is not lost because polling stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("telegram.serve_failed", exc_info=error)


async def check_telegram(token: str, api_url: str | None) -> str:
    """A sentence that names the bot. Raises ConfigError when the token is refused, DeliveryError when out of reach."""
    root = (api_url or API_URL).rstrip("/")
    request = TelegramRequest(token, connections=1)
    bot = Bot(token, base_url=f"{root}/bot", request=request, get_updates_request=request)
    try:
        await request.initialize()
        me = await _get_me(bot, root)
    except TelegramError as error:
        raise DeliveryError(f"Telegram cannot be reached at {root}: {clause(error)}") from error
    finally:
        await request.shutdown()
    return f"The token is valid; the bot is @{me.username}."


async def _get_me(bot: Bot, root: str) -> User:
    """Who we are; mentions cannot be told without it. Raises ConfigError when the token is refused."""
    try:
        return await bot.get_me()
    except InvalidToken as error:
        refusal = language_data("refusals", "adapters")["token_of_telegram"]
        raise ConfigError(refusal.format(root=root, reason=error.message)) from error
