"""Connects to Telegram: receives updates without losing any, and creates replies.

This module polls without the library's updater, so that an update is confirmed to Telegram only
after the inbox has stored it. If an update can't be handled, its raw data is set aside. The sink
decides who gets an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from telegram import (
    Bot,
    CallbackQuery,
    Message,
    Update,
    User,
)
from telegram.error import Conflict, EndPointNotFound, InvalidToken, NetworkError, TelegramError

from adapters.poll_lock import PollLock
from adapters.reactions import WORKING, WorkingMark
from adapters.streaming import StreamedReply
from adapters.telegram.errors import CONFLICT, FloodError, describe_error
from adapters.telegram.menus import send_menus
from adapters.telegram.messages import (
    ChatHistory,
    TelegramMessages,
    TelegramRequest,
)
from adapters.telegram.normalize import PLATFORM, group_migration, normalize
from adapters.telegram.place_names import PlaceNames
from config.open_files import bound_connections
from config.settings import TelegramOptions
from core.errors import (
    PAYLOAD_ERRORS,
    AccessRefused,
    ConfigError,
    DeliveryError,
    MnemeError,
    StoreError,
)
from core.menus.command_specs import CommandSpec
from core.ports import Clock, InboundSink, Reply, UnstoredAnswerer
from core.text.normalize import language_data
from core.types import Address, Attachment, Inbound, Json

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

API_URL = "https://api.telegram.org"
UPDATE_KINDS = (
    "message",
    "edited_message",
    "callback_query",
    "message_reaction",
    "my_chat_member",
    "poll",
)
# The states of a chat member who manages the chat.
ADMIN_STATES = ("creator", "administrator")
# For this many of the latest polls, an outcome can be recognized.
MAX_POLLS = 200
# How much later than the requested hold time the response to a poll may arrive.
POLL_GRACE_S = 10
# An update that fails this often is set aside.
MAX_ATTEMPTS = 3
MAX_PAUSE_S = 8.0
# The size of the connection pool. The poll occupies one connection.
CONNECTIONS = 64
# Errors that an undocumented update causes, or a mistake in the code that handles an update.
UPDATE_ERRORS = (MnemeError, TelegramError, RuntimeError, OSError, *PAYLOAD_ERRORS)

_log = structlog.get_logger(__name__)


class OpenPolls:
    """The messages with the latest polls. They are forgotten when the process ends.

    Telegram sends the outcome of a poll with the poll's id only, without its chat.
    """

    def __init__(self) -> None:
        self._messages: OrderedDict[str, Json] = OrderedDict()

    def resolve(self, raw: Json) -> dict[str, Any]:
        """Return the outcome of a known poll as an edit of its message.

        Other updates are returned unchanged.
        """
        message = raw.get("message") or raw.get("edited_message")
        if isinstance(message, Mapping) and isinstance(message.get("poll"), Mapping):
            self._messages[str(message["poll"].get("id"))] = message
            while len(self._messages) > MAX_POLLS:
                self._messages.popitem(last=False)
        outcome = raw.get("poll")
        if not isinstance(outcome, Mapping) or not outcome.get("is_closed"):
            return dict(raw)
        poll_message = self._messages.get(str(outcome.get("id")))
        if poll_message is None:
            return dict(raw)
        edit = {**poll_message, "poll": outcome, "edit_date": poll_message["date"]}
        return {"update_id": raw["update_id"], "edited_message": edit}


class Telegram:
    """The adapter for one bot.

    `api_url` is the root of a Bot API server; None means Telegram's own server.
    """

    platform = PLATFORM
    contact = "your bot"
    hint = language_data("hints", "adapters")[PLATFORM]
    # How long Telegram may hold a poll open when there are no updates.
    poll_timeout_s = 30
    # The pause after a failed poll, and between polls that aren't held open. Each further failure
    # doubles the pause, up to MAX_PAUSE_S.
    pause_s = 1.0

    def __init__(
        self,
        *,
        token: str,
        api_url: str | None,
        inbox: Inbox,
        clock: Clock,
        marks_working: bool = False,
        webhook: TelegramOptions | None = None,
        owner_ids: Sequence[str] = (),
    ) -> None:
        # The owner's accounts. Their direct chats have a menu with the owner's commands.
        self._owner_ids = owner_ids
        # Set if Telegram sends the updates to a webhook.
        self._webhook = webhook if webhook is not None and webhook.webhook_url else None
        # Whether a message has a reaction while its answer is being prepared.
        self._marks_working = marks_working
        self._root = (api_url or API_URL).rstrip("/")
        self._lock = PollLock(PLATFORM, self._root, token)
        self._inbox = inbox
        self._clock = clock
        self._request = TelegramRequest(token, connections=bound_connections(CONNECTIONS))
        self._bot = Bot(
            token,
            base_url=f"{self._root}/bot",
            base_file_url=f"{self._root}/file/bot",
            request=self._request,
            get_updates_request=self._request,
        )
        self._me: User | None = None
        self._history = ChatHistory()
        self._place_names = PlaceNames()
        self._polls = OpenPolls()
        self._tasks: set[asyncio.Future[Any]] = set()
        # The number of failed attempts, by update id.
        self._failed_attempts: dict[int, int] = {}
        # Why the last poll failed. Empty if it succeeded.
        self._failure = "not reached yet"
        self._failed_polls = 0
        self._polled_at = 0.0

    @property
    def problem(self) -> str:
        """A clause that says why updates can't arrive.

        It's empty if a poll was answered recently.
        """
        if self._failure:
            return self._failure
        silence_s = time.monotonic() - self._polled_at
        if silence_s > self.poll_timeout_s + 2 * POLL_GRACE_S:
            return f"no poll was answered for {silence_s:.0f} seconds"
        return ""

    @property
    def accepted_at(self) -> float:
        return self._polled_at

    async def open(self) -> None:
        """Acquire the lock of the token, and ask Telegram for the bot's name.

        Raises AccessRefused if the token is refused, and ConfigError if another process uses it. If
        Telegram can't be reached, this is only logged, and `listen` tries again.
        """
        await self._lock.acquire()
        await self.join()

    async def join(self) -> None:
        """Ask Telegram for the bot's name, to send messages only. See `core.ports.SharedAdapter`.

        Raises the same errors as `open`.
        """
        await self._load_history()
        await self._request.initialize()
        try:
            self._me = await _get_me(self._bot, self._root)
            self.contact = f"@{self._me.username} (https://t.me/{self._me.username})"
        except ConfigError:
            await self.close()
            raise
        except TelegramError as error:
            self._failure = describe_error(error)
            _log.warning("telegram.out_of_reach", error=self._failure)

    async def _load_history(self) -> None:
        """Load the newest stored message of each chat.

        Otherwise, the first message that is posted in a chat after a start can't be searched for if
        it's lost.
        """
        try:
            newest_ids = await self._inbox.chat_messages.load_newest_ids(PLATFORM)
        except StoreError as error:
            _log.warning("telegram.no_history", error=error)
            return
        for chat_id, message_id in newest_ids.items():
            self._history.note_seen(int(chat_id), message_id)

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Receive updates until cancelled. Answers in progress continue until `close`.

        Raises AccessRefused if the token is revoked, and ConfigError if the address of the webhook
        can't be used.
        """
        if self._webhook is not None:
            await self._listen_by_webhook(self._webhook, sink, commands)
            return
        is_menu_sent = False
        offset: int | None = None
        previous_ids: set[int] = set()
        retry_ids: set[int] = set()
        while True:
            started_at = time.monotonic()
            # After a failure, a poll with timeout 0 shows at once whether the connection works
            # again. A conflict with a second process is detected only while a poll waits, so after
            # a conflict the timeout stays the same.
            timeout_s = self.poll_timeout_s if self._failure in ("", CONFLICT) else 0
            updates = await self._poll(offset, timeout_s)
            if updates is None:
                continue
            if not is_menu_sent:
                self._start_menus(commands)
                is_menu_sent = True

            # A poll returns unconfirmed updates again. Updates that were admitted are skipped, so
            # only new updates and updates to try again are pending.
            new_ids = updates.keys() - previous_ids
            previous_ids = set(updates)
            pending = {id_: updates[id_] for id_ in updates if id_ in retry_ids or id_ in new_ids}
            retry_ids = await self._receive(pending, sink)
            if updates:
                # The offset confirms all updates below it. Updates to try again stay unconfirmed.
                offset = min(retry_ids, default=max(updates) + 1)
            if retry_ids:
                await asyncio.sleep(self.pause_s)
            elif timeout_s and not new_ids:
                elapsed_s = time.monotonic() - started_at
                await asyncio.sleep(max(self.pause_s - elapsed_s, 0))

    async def _listen_by_webhook(
        self, webhook: TelegramOptions, sink: InboundSink, commands: Sequence[CommandSpec]
    ) -> None:
        """Receive updates from Telegram with a server in this process.

        Regularly checks that Telegram still has the address of the webhook.
        """
        # Imported here because polling needs no server.
        from adapters.telegram.webhook import WebhookServer

        server = WebhookServer(partial(self._receive, sink=sink))
        is_registered = False
        async with server.listen(webhook.webhook_url, webhook.webhook_listen):
            while True:
                try:
                    self._me = self._me or await _get_me(self._bot, self._root)
                    info = await self._bot.get_webhook_info()
                    if not is_registered or info.url != webhook.webhook_url:
                        await self._bot.set_webhook(
                            webhook.webhook_url,
                            allowed_updates=UPDATE_KINDS,
                            # More connections would lose the order of messages.
                            max_connections=1,
                            secret_token=server.secret,
                        )
                        if not is_registered:
                            self._start_menus(commands)
                        is_registered = True
                except TelegramError as error:
                    await self._recover(error)
                    continue
                self._failure = ""
                self._failed_polls = 0
                self._polled_at = time.monotonic()
                await asyncio.sleep(self.poll_timeout_s)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return StreamedReply(TelegramMessages(self._bot, address, reply_to, self._history))

    def reply_to_event(self, inbound: Inbound) -> Reply:
        """Create the reply to an event. The answer to a button press replies to its message."""
        if inbound.kind == "message" and inbound.message_id.isdecimal():
            # Another gateway may have received the message.
            self._history.note_seen(int(inbound.address.chat_id), int(inbound.message_id))
        is_press = inbound.kind == "action"
        reply_to = inbound.reply_to if is_press else inbound.message_id or None
        if not self._marks_working or inbound.kind != "message":
            return self.reply(inbound.address, reply_to)

        async def change(is_shown: bool) -> None:
            try:
                await self._bot.set_message_reaction(
                    int(inbound.address.chat_id),
                    int(inbound.message_id),
                    WORKING if is_shown else (),
                )
            except TelegramError as error:
                raise DeliveryError(describe_error(error)) from error

        messages = TelegramMessages(self._bot, inbound.address, reply_to, self._history)
        return StreamedReply(messages, mark=WorkingMark(change))

    async def fetch_file(
        self, attachment: Attachment, address: Address, message_id: str, limit_bytes: int
    ) -> bytes:
        """Download a file by the id that Telegram gave it: see `core.ports.FileSource`."""
        from adapters.telegram.files import fetch_file

        return await fetch_file(self._bot, self._request, attachment, limit_bytes)

    async def is_admin(self, inbound: Inbound) -> bool:
        """Return whether the sender is an admin of the group: see `core.ports.AdminSource`.

        Only admins can write in the name of the group, which is then the sender.
        """
        if inbound.sender.id == inbound.address.chat_id:
            return True
        try:
            member = await self._bot.get_chat_member(
                int(inbound.address.chat_id), int(inbound.sender.id)
            )
        except TelegramError as error:
            raise DeliveryError(describe_error(error)) from error
        return member.status in ADMIN_STATES

    async def hears_all(self, address: Address) -> bool:
        """Return whether Telegram passes on all messages: see `core.ports.HearingSource`.

        While "Group Privacy" is on, which is the default, it does so only if the bot is an admin.
        """
        try:
            me = await self._bot.get_me()
            if me.can_read_all_group_messages:
                return True
            member = await self._bot.get_chat_member(int(address.chat_id), me.id)
        except TelegramError as error:
            raise DeliveryError(describe_error(error)) from error
        return member.status in ADMIN_STATES

    async def load_place_name(self, address: Address) -> str:
        """Return the name of a group and topic: see `core.ports.PlaceSource`."""
        return await self._place_names.load(self._bot, address)

    async def close(self) -> None:
        """Cancel answers in progress and close all connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._request.shutdown()
        await self._lock.release()

    async def _poll(self, offset: int | None, timeout_s: int) -> dict[int, Json] | None:
        """Return the raw data of the next updates, by id.

        The library's own method isn't used, because it fails if it can't parse a single update. If
        the poll fails, waits for the necessary pause and returns None. Raises AccessRefused if the
        token is refused.
        """
        query: dict[str, Any] = {
            "timeout": timeout_s,
            "allowed_updates": UPDATE_KINDS,
            "offset": offset,
        }
        try:
            self._me = self._me or await _get_me(self._bot, self._root)
            # With the spelling "getUpdates", the library warns that it has its own method for this.
            result: Any = await self._bot.do_api_request(
                "get_Updates", api_kwargs=query, read_timeout=timeout_s + POLL_GRACE_S
            )
            updates = {int(update["update_id"]): update for update in result}
        except TelegramError as error:
            await self._recover(error)
            return None
        except (TypeError, KeyError, ValueError):
            await self._recover(NetworkError("the answer to getUpdates isn't a list of updates"))
            return None
        self._failure = ""
        self._failed_polls = 0
        self._polled_at = time.monotonic()
        return updates

    async def _recover(self, error: TelegramError) -> None:
        """Log a failed poll, remove its cause if possible, and wait before the next poll."""
        self._failure = describe_error(error)
        if isinstance(error, InvalidToken | EndPointNotFound):
            # A server gives the same answer for an unknown path, so the token may still be valid.
            # The next poll first asks for the bot's name, which raises AccessRefused if it isn't.
            self._me = None
        if not isinstance(error, Conflict):
            _log.warning("telegram.poll_failed", error=error.message)
        elif self._failure == CONFLICT:
            _log.warning(
                "telegram.second_poller",
                advice="stop the other process, or give it a bot of its own",
            )
        else:
            _log.warning("telegram.webhook_removed", reason="updates are polled")
            await self._try_call(self._bot.delete_webhook)

        pause_s = min(self.pause_s * 2 ** min(self._failed_polls, 10), MAX_PAUSE_S)
        self._failed_polls += 1
        if isinstance(error, FloodError):
            pause_s = max(error.retry_after_s, pause_s)
        await asyncio.sleep(pause_s)

    async def _receive(self, updates: Mapping[int, Json], sink: InboundSink) -> set[int]:
        """Admit updates in order, and then begin to answer them.

        Returns the ids of updates to try again: updates that couldn't be stored, later updates of
        the same chat, and failed updates that haven't been set aside yet.
        """
        retry_ids: set[int] = set()
        blocked_addresses: set[str] = set()
        entry_ids: list[int] = []
        for update_id, raw in updates.items():
            try:
                entry_id = await self._admit(raw, sink, blocked_addresses)
                if entry_id is not None:
                    entry_ids.append(entry_id)
            except StoreError as error:
                _log.error("telegram.update_not_stored", update_id=update_id, error=error)
                retry_ids.add(update_id)
            except UPDATE_ERRORS as error:
                description = f"{type(error).__name__}: {error}"
                if not await self._set_aside_if_hopeless(update_id, raw, description):
                    retry_ids.add(update_id)
        for entry_id in entry_ids:
            self._start_task(sink.serve(entry_id))
        return retry_ids

    async def _admit(self, raw: Json, sink: InboundSink, blocked_addresses: set[str]) -> int | None:
        """Normalize and admit an update. Returns the id of its inbox entry, or None if it has none.

        If the update can't be stored, its address is added to `blocked_addresses`, and StoreError
        is raised. StoreError is also raised if the address is already blocked, so that the updates
        of a chat stay in order. Raises one of UPDATE_ERRORS if the update is malformed.
        """
        update = Update.de_json(self._polls.resolve(raw), self._bot)
        if update.effective_message is not None:
            message = update.effective_message
            self._history.note_seen(message.chat.id, message.message_id)
            if message.chat.title and isinstance(message, Message):
                self._place_names.note(message)
        migration = group_migration(update)
        if migration is not None:
            await sink.migrate_group(PLATFORM, *migration)
        assert self._me is not None
        inbound = normalize(update, self._me, self._clock.now())
        if inbound is None:
            return None
        if update.callback_query is not None:
            inbound = await self._find_topic(inbound, update.callback_query)
        reply = self.reply_to_event(inbound)
        if inbound.address.key in blocked_addresses:
            if isinstance(sink, UnstoredAnswerer) and await sink.answer_unstored(inbound, reply):
                return None
            raise StoreError("an earlier update of this chat is not stored yet")
        try:
            entry_id = await sink.admit(inbound, reply)
        except StoreError:
            blocked_addresses.add(inbound.address.key)
            raise
        if update.callback_query:
            # This stops the spinner of the button.
            self._start_task(
                self._try_call(self._bot.answer_callback_query, update.callback_query.id)
            )
        return entry_id

    async def _find_topic(self, inbound: Inbound, press: CallbackQuery) -> Inbound:
        """Return a press with the topic of its message.

        Telegram no longer describes an old message, so its topic is looked up.
        """
        if press.message is None or press.message.is_accessible:
            return inbound
        address = await self._inbox.chat_messages.find_posted_address(
            inbound.address, inbound.reply_to or ""
        )
        if address is None or address.thread_id is None:
            return inbound
        return replace(inbound, address=address, is_in_general=False)

    async def _set_aside_if_hopeless(self, update_id: int, raw: Json, error: str) -> bool:
        """Count a failed attempt to process an update. After the last attempt, store its raw data.

        Returns whether the update was set aside. If not, the update must be tried again.
        """
        failures = self._failed_attempts.get(update_id, 0) + 1
        self._failed_attempts[update_id] = failures
        _log.error("telegram.update_failed", update_id=update_id, failures=failures, error=error)
        if failures < MAX_ATTEMPTS:
            return False
        try:
            await self._inbox.store_dead_letter(PLATFORM, update_id, raw, error)
        except StoreError as failure:
            _log.error("telegram.update_not_set_aside", update_id=update_id, error=failure)
            return False
        del self._failed_attempts[update_id]
        return True

    async def _try_call(self, method: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """Make a call that may fail, such as for a button. A failure is only logged."""
        try:
            await method(*arguments)
        except TelegramError as error:
            _log.warning("telegram.call_failed", method=method.__name__, error=error.message)

    def _start_task(self, work: Awaitable[object]) -> None:
        """Start a task that outlives `listen`, so that answers continue when polling stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _start_menus(self, commands: Sequence[CommandSpec]) -> None:
        menus = send_menus(self._bot, self._inbox, commands, self._owner_ids)
        self._start_task(menus)

    def _on_task_done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("telegram.serve_failed", exc_info=error)


async def check_telegram(token: str, api_url: str | None) -> str:
    """Check the token, and return a sentence with the name of the bot.

    Raises AccessRefused if the token is refused, and DeliveryError if the server can't be reached.
    """
    root = (api_url or API_URL).rstrip("/")
    request = TelegramRequest(token, connections=1)
    bot = Bot(token, base_url=f"{root}/bot", request=request, get_updates_request=request)
    try:
        await request.initialize()
        me = await _get_me(bot, root)
    except TelegramError as error:
        raise DeliveryError(
            f"Telegram ({root}) cannot be reached: {describe_error(error)}"
        ) from error
    finally:
        await request.shutdown()
    return f"The token is valid; the bot is @{me.username}."


async def _get_me(bot: Bot, root: str) -> User:
    """Return the bot's own account.

    Raises AccessRefused if the token is refused.
    """
    try:
        return await bot.get_me()
    except InvalidToken as error:
        raise AccessRefused("telegram_token_refused", root=root, reason=error.message) from error
