"""Telegram: receives updates without losing one, and gives a way to answer them.

Polls by itself: an update is in the inbox, committed, before it is confirmed to Telegram; one that cannot be read is
set aside as it came. Decides nothing about who is served; that is the router's part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog

from adapters.poll_lock import PollLock
from adapters.streaming import StreamedReply
from adapters.telegram.messages import CONFLICT, TelegramApi, TelegramError, TelegramMessages, clause
from adapters.telegram.normalize import PLATFORM, moved, normalize
from core.errors import ConfigError, DeliveryError, MnemeError, StoreError
from core.ports import Clock, Reply, Sink
from core.types import Address, CommandSpec, Json

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

API_URL = "https://api.telegram.org"
KINDS = ("message", "edited_message", "callback_query")
POLL_TIMEOUT_S = 30
POLL_GRACE_S = 10
TRIES = 3
"""How often an update may fail before it is set aside."""
PAUSE_S = 1.0
PAUSE_MOST_S = 8.0
CONNECTIONS = 64
"""One of them is held by the poll."""
COMMAND_DESCRIPTION_CHARS = 256
HINT = (
    "The conversation takes place on Telegram, mostly read on a phone. Markdown is rendered: bold, italic, "
    "strikethrough, links, `code`, fenced code blocks with a language, quotes and lists. Headings appear as bold "
    "lines and tables as monospaced text, so prefer short lists to wide tables. Images cannot be embedded. "
    "Answers over 4096 characters are split into several messages."
)

_log = structlog.get_logger(__name__)
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
_STRANGE = (MnemeError, RuntimeError, OSError, *_UNREADABLE)
"""What an update raises that is not as documented, or that the code behind it cannot handle."""


class Telegram:
    """`api_url` is the root of a Bot API server, the public one when None.

    `poll_timeout_s`: how long Telegram may hold a poll open when there is nothing new. `pause_s`: from one poll that
    brings nothing new to the next where it is not held open, and after a first failed one; then it doubles, up to eight
    seconds.
    """

    platform = PLATFORM
    hint = HINT
    poll_timeout_s = POLL_TIMEOUT_S
    pause_s = PAUSE_S

    def __init__(self, *, token: str, api_url: str | None, inbox: Inbox, clock: Clock) -> None:
        self._api = _api(token, api_url, CONNECTIONS)
        self._lock = PollLock(PLATFORM, self._api.root, self._api.token)
        self._inbox = inbox
        self._clock = clock
        self._me: Json | None = None
        self._tasks: set[asyncio.Task[None]] = set()
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
        await self._api.open()
        try:
            self._me = await _get_me(self._api)
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
        is_announced = False
        while True:
            began_at = time.monotonic()
            # A poll that need not wait proves the connection at once; it would never show that there are two pollers.
            timeout_s = self.poll_timeout_s if self._failure in ("", CONFLICT) else 0
            updates = await self._next_updates(offset, timeout_s)
            if updates is None:
                continue
            if not is_announced:
                self._start(self._attempt("setMyCommands", commands=[_described(spec) for spec in commands]))
                is_announced = True
            new, known = updates.keys() - known, {*updates}
            held = await self._receive({key: updates[key] for key in updates if key in held | new}, sink)
            if updates:
                offset = min(held, default=max(updates) + 1)
            if held or (timeout_s and not new):
                await asyncio.sleep(max(self.pause_s - (0 if held else time.monotonic() - began_at), 0))

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return StreamedReply(TelegramMessages(self._api, address, reply_to))

    async def close(self) -> None:
        """Cancels answers still under way."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._api.close()
        await self._lock.release()

    async def _next_updates(self, offset: int | None, timeout_s: int) -> dict[int, Json] | None:
        """The next updates as they came, by id; None after the pause that a failed poll asks for. Raises ConfigError
        when there is no use in another one."""
        query: dict[str, Any] = {"timeout": timeout_s, "allowed_updates": KINDS, "offset": offset}
        try:
            self._me = self._me or await _get_me(self._api)
            result = await self._api.call("getUpdates", read_timeout_s=timeout_s + POLL_GRACE_S, **query)
            updates = {int(update["update_id"]): update for update in result}
        except TelegramError as error:
            await self._recover(error)
        except (TypeError, LookupError, ValueError):
            await self._recover(TelegramError("the answer to getUpdates is no list of updates"))
        else:
            self._failure, self._failures, self._polled_at = "", 0, time.monotonic()
            return updates
        return None

    async def _recover(self, error: TelegramError) -> None:
        """Removes what is in the way, and waits before the next poll."""
        self._failure = clause(error)
        if error.is_refused_token:
            # One method's refusal proves nothing. Asking who we are decides.
            self._me = None
        if error.code != HTTPStatus.CONFLICT:
            _log.warning("telegram.poll_failed", error=error.said)
        elif self._failure == CONFLICT:
            _log.warning("telegram.second_poller", advice="stop the other process, or give it a bot of its own")
        else:
            _log.warning("telegram.webhook_removed", reason="updates are polled")
            await self._attempt("deleteWebhook")
        pause_s = min(self.pause_s * 2 ** min(self._failures, 10), PAUSE_MOST_S)
        self._failures += 1
        await asyncio.sleep(max(error.retry_after_s or 0.0, pause_s))

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
        if move := moved(raw):
            await sink.moved(PLATFORM, *move)
        assert self._me is not None
        inbound = normalize(raw, self._me, self._clock.now())
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
        if inbound.kind == "action":
            # Ends the button's spinner.
            self._start(self._attempt("answerCallbackQuery", callback_query_id=inbound.message_id))
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

    async def _attempt(self, method: str, **parameters: Any) -> None:
        """A call that may fail: a command menu that is refused stays as it was, and late answers to a press are."""
        try:
            await self._api.call(method, **parameters)
        except TelegramError as error:
            _log.warning("telegram.call_failed", method=method, error=error.said)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """A task that outlives `listen`: an answer under way is not lost because polling stops."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("telegram.serve_failed", exc_info=error)


async def check_telegram(token: str, api_url: str | None) -> str:
    """A sentence that names the bot. Raises ConfigError when the token is refused, DeliveryError when out of reach."""
    api = _api(token, api_url, connections=1)
    try:
        await api.open()
        return f"The token is valid; the bot is @{(await _get_me(api))['username']}."
    except TelegramError as error:
        raise DeliveryError(f"Telegram cannot be reached at {api.root}: {clause(error)}") from error
    finally:
        await api.close()


def _api(token: str, api_url: str | None, connections: int) -> TelegramApi:
    return TelegramApi(token.strip(), (api_url or API_URL).rstrip("/"), connections)


def _described(spec: CommandSpec) -> Json:
    return {"command": spec.name, "description": spec.description[:COMMAND_DESCRIPTION_CHARS]}


async def _get_me(api: TelegramApi) -> Json:
    """Who we are; mentions cannot be told without it. Raises ConfigError when the token is empty or refused."""
    if not api.token:
        raise ConfigError("telegram: the token is empty. Set TELEGRAM_BOT_TOKEN to the one from @BotFather.")
    try:
        me: Json = await api.call("getMe")
    except TelegramError as error:
        if not error.is_refused_token:
            raise
        raise ConfigError(
            f"telegram: {api.root} refused the token ({error.said}). Copy it again from @BotFather (/mybots, "
            "API Token) into TELEGRAM_BOT_TOKEN; with a server of your own check MNEME_TELEGRAM_API_URL too."
        ) from error
    return me
