"""Calls the Bot API within its limits, and sends, edits and deletes the messages of one answer.

Errors are converted to `DeliveryError`, and the token never appears in them. Some refusals are
handled here. If Telegram rejects the formatting, plain text is sent. If a topic was deleted, the
message is sent to its chat. If a group has a new chat id, the new id is used. `adapters.streaming`
decides when messages are sent.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakValueDictionary

import aiohttp
import httpx
import structlog
import telegram
from telegram.error import ChatMigrated, NetworkError, TelegramError
from telegram.request import BaseRequest, RequestData

from adapters.streaming import ABSENT, LostMessage, PostLock
from adapters.telegram.errors import (
    FloodError,
    LostReplyError,
    describe_network_error,
    is_refusal,
    may_be_forwarded,
    to_delivery_error,
)
from adapters.telegram.rich import RichMessages
from adapters.telegram.uploads import (
    MAX_ALBUM_FILES,
    count_album_files,
    send_album,
    send_file,
)
from core.errors import DeliveryError
from core.markup.markdown import StyledText, utf16_length
from core.ports import LostPost
from core.types import Address, Answer, File

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 20.0
# The limit for a whole call, including an upload over a slow connection.
CALL_TIMEOUT_S = 300.0
# Telegram accepts this many calls per period.
MAX_CALLS = 30
CALLS_PERIOD_S = 1.0
# Of these calls, this many are reserved for messages, so typing and drafts can't use them.
RESERVED_CALLS = 10
# Telegram accepts this many messages to one group per period.
MAX_GROUP_MESSAGES = 20
GROUP_PERIOD_S = 60.0
# If a call would have to wait longer than this, it fails, and its caller decides when to try again.
MAX_WAIT_S = 5.0
POLL_METHOD = "getUpdates"
_MESSAGE_METHODS = frozenset(
    {
        "sendMessage",
        "sendRichMessage",
        "sendDocument",
        "sendPhoto",
        "sendVideo",
        "sendAudio",
        "sendVoice",
        "sendMediaGroup",
        "editMessageText",
    }
)
# Methods that only show progress. They are dropped rather than delayed.
_COSMETIC_METHODS = frozenset({"sendChatAction", "sendMessageDraft"})
# A pattern for error messages, in lower case, if Telegram rejects the formatting.
_BAD_FORMATTING = "entit|can't parse|can't find end|url"
# Errors that occur before the first byte of a call is sent.
_UNSENT_ERRORS = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
# Statuses of a proxy that has forwarded a call, so Telegram may have executed the call.
_GATEWAY_STATUSES = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)

# To find a lost message, this many messages after the newest known message are tried. Each try
# counts against the limits of a group.
MAX_LOST_TRIES = 8

# Telegram's limit for one message, in UTF-16 units.
LIMIT_UTF16 = 4096
# Telegram ignores further entities of a message.
MAX_ENTITIES = 100
PACE_DIRECT_S = 1.0
PACE_GROUP_S = 3.0
# Buttons with labels up to this length share a row.
SHORT_LABEL_CHARS = 14
MAX_BUTTONS_PER_ROW = 3
# Kinds of entities in `StyledText` that Telegram doesn't have.
_UNSUPPORTED_ENTITIES = frozenset({"heading", "list_marker"})
_NO_PREVIEW = telegram.LinkPreviewOptions(is_disabled=True)

_log = structlog.get_logger(__name__)


class _RateLimits:
    """Decides how long a call must wait.

    A call waits because of the rate limits that Telegram publishes, or because Telegram has asked
    for a delay with status 429. Such a delay applies to a chat, or to a method that has no chat.
    """

    def __init__(self) -> None:
        # Times of the latest calls, and of the latest messages to each group.
        self._calls: deque[float] = deque(maxlen=MAX_CALLS)
        self._groups: defaultdict[int, deque[float]] = defaultdict(
            partial(deque, maxlen=MAX_GROUP_MESSAGES)
        )
        # The time at which a requested delay ends, by chat id or method.
        self._blocked_until: dict[object, float] = {}

    def block(self, method: str, chat_id: Any, retry_after_s: float) -> None:
        """Record a delay that Telegram has asked for."""
        self._blocked_until[chat_id or method] = time.monotonic() + retry_after_s

    def reserve(self, method: str, chat_id: Any) -> float:
        """Count a call, and return how many seconds to wait before it.

        Raises FloodError, and counts nothing, if the wait would be too long. Calls that aren't
        essential, such as for the typing indicator, never wait.
        """
        now = time.monotonic()
        is_cosmetic = method in _COSMETIC_METHODS
        start_at = max(now, self._blocked_until.get(chat_id or method, now))
        counters: list[deque[float]] = []
        if method != POLL_METHOD:
            counters.append(self._calls)
            if len(self._calls) == MAX_CALLS:
                # `_calls` has the last 30 times, oldest first. The next call is allowed one period
                # after the oldest. A cosmetic call is allowed only when 10 further calls would be
                # allowed, too, which is one period after the call at index 10.
                freeing_call = self._calls[RESERVED_CALLS if is_cosmetic else 0]
                start_at = max(start_at, freeing_call + CALLS_PERIOD_S)
        if method in _MESSAGE_METHODS and isinstance(chat_id, int) and chat_id < 0:
            group = self._groups[chat_id]
            counters.append(group)
            if len(group) == MAX_GROUP_MESSAGES:
                start_at = max(start_at, group[0] + GROUP_PERIOD_S)

        wait_s = start_at - now
        if wait_s > (0 if is_cosmetic else MAX_WAIT_S):
            raise FloodError(wait_s)
        for times in counters:
            times.append(start_at)
        return wait_s


@cache
def create_tls_context() -> ssl.SSLContext:
    """Return the TLS context that all connections share. Reading the certificates takes 20 ms."""
    return httpx.create_ssl_context()


class TelegramRequest(BaseRequest):
    """Makes the HTTP calls of the library with one aiohttp connection pool.

    The library's own implementation takes four times as long. `connections` is the maximum number
    of concurrent calls.
    """

    def __init__(self, token: str, connections: int) -> None:
        self._token = token
        self._connections = connections
        # Calls that don't fit wait here, because the timeouts of aiohttp would include the wait.
        # One connection is kept for waiting for updates.
        self._free_connections = asyncio.Semaphore(max(1, connections - 1))
        self._limits = _RateLimits()
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float:
        return READ_TIMEOUT_S

    async def initialize(self) -> None:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=create_tls_context())
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar()
            )

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        *_: Any,
        **options: Any,
    ) -> tuple[int, bytes]:
        """Make a call within the rate limits, and return the status and the body.

        Raises FloodError for status 429 and for calls that would cause it, LostReplyError if the
        call was sent but its outcome is unknown, and NetworkError if it wasn't sent.
        """
        api_method = url.rpartition("/")[2]
        chat_id = request_data.parameters.get("chat_id") if request_data else None
        wait_s = self._limits.reserve(api_method, chat_id)
        if wait_s:
            await asyncio.sleep(wait_s)
        read_timeout_s = options.get("read_timeout")
        if not isinstance(read_timeout_s, int | float):
            read_timeout_s = READ_TIMEOUT_S
        try:
            if api_method == "getUpdates":
                status, body = await self._send(url, method, request_data, read_timeout_s)
            else:
                async with self._free_connections:
                    status, body = await self._send(url, method, request_data, read_timeout_s)
        except (aiohttp.ClientError, OSError) as error:
            error_type = NetworkError if isinstance(error, _UNSENT_ERRORS) else LostReplyError
            message = describe_network_error(error, url).replace(self._token, "<token>")
            # `from None`, because a traceback of the cause would show the token.
            raise error_type(message) from None
        if status in _GATEWAY_STATUSES:
            raise LostReplyError(f"Telegram answers with status {status}")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            retry_after_s = _read_retry_after(body)
            self._limits.block(api_method, chat_id, retry_after_s)
            raise FloodError(retry_after_s)
        if status == HTTPStatus.OK and api_method in _MESSAGE_METHODS and _is_cut_off(body):
            raise LostReplyError("Telegram's answer was cut off")
        if b'"ok"' not in body:
            message = f"the answer with status {status} isn't from a Bot API"
            if api_method in _MESSAGE_METHODS and may_be_forwarded(status):
                raise LostReplyError(message)
            # The answer comes from a proxy or the login page of a network. Its status says nothing
            # about the token.
            raise NetworkError(message)
        return status, body

    async def _send(
        self, url: str, method: str, data: RequestData | None, read_timeout_s: float
    ) -> tuple[int, bytes]:
        """Make one HTTP request, and return the status and the body."""
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(
            total=CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S, sock_read=read_timeout_s
        )
        async with self._session.request(
            method,
            url,
            data=_build_body(data),
            timeout=timeout,
            proxy=_find_proxy(url.rpartition("/bot")[0]),
            allow_redirects=False,
        ) as response:
            return response.status, await response.read()

    async def download(self, url: str, limit_bytes: int) -> tuple[int, bytes]:
        """Return the status and the bytes of a file. Reading stops one byte after the limit.

        Raises NetworkError if the download breaks off or stalls.
        """
        assert self._session is not None
        timeout = aiohttp.ClientTimeout(
            total=CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S
        )
        proxy = _find_proxy(url.rpartition("/file/")[0])
        content = bytearray()
        try:
            async with (
                self._free_connections,
                self._session.get(
                    url, timeout=timeout, proxy=proxy, allow_redirects=False
                ) as response,
            ):
                async for piece in response.content.iter_chunked(1 << 16):
                    content += piece
                    if len(content) > limit_bytes:
                        break
        except (aiohttp.ClientError, OSError) as error:
            message = describe_network_error(error, url).replace(self._token, "<token>")
            raise NetworkError(message) from None
        return response.status, bytes(content[: limit_bytes + 1])


def _is_cut_off(body: bytes) -> bool:
    """Return whether a response with status 200 has neither a result nor an error, as in `{}`.

    The result is False for a web page, such as the login page of a network, because it isn't from
    Telegram at all.
    """
    if body.lstrip().startswith(b"<"):
        return False
    try:
        response = json.loads(body)
    except ValueError:
        return True
    return not isinstance(response, dict) or not {"result", "error_code"} & response.keys()


def _build_body(data: RequestData | None) -> Any:
    """Return the parameters of a call, as a multipart form if there are files."""
    if data is None:
        return None
    if not data.contains_files:
        return data.json_parameters
    form = aiohttp.FormData(data.json_parameters, quote_fields=False)
    for field, (file_name, content, mime) in data.multipart_data.items():
        # aiohttp sends file objects in pieces, so a large file doesn't delay other chats.
        file = BytesIO(content) if isinstance(content, bytes) else content
        form.add_field(field, file, filename=file_name, content_type=mime)
    return form


def _read_retry_after(body: bytes) -> float:
    """Return the delay in seconds that a response with status 429 asks for."""
    try:
        return float(json.loads(body)["parameters"]["retry_after"])
    except (ValueError, KeyError, TypeError):
        return 1.0


@cache
def _find_proxy(root: str) -> str | None:
    """Return the proxy for a server from the environment, or None if none is set.

    aiohttp could also find the proxy, but would start a thread for each call.
    """
    parts = urlsplit(root)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


class ChatHistory:
    """The ids of messages that this process has seen or posted.

    In each chat, ids grow with time. In a supergroup, they are consecutive.
    """

    def __init__(self) -> None:
        self._newest_ids: dict[int, int] = {}
        # Chat and id of the messages that were posted last.
        self._posted: deque[tuple[int, int]] = deque(maxlen=1000)
        # Messages that an answer is trying to edit, because one of them may be its lost message.
        self._claimed: set[tuple[int, int]] = set()
        self._locks: WeakValueDictionary[int, PostLock] = WeakValueDictionary()
        self.rich = RichMessages()

    def note_seen(self, chat_id: int, message_id: int) -> None:
        """Remember that a chat has a message."""
        self._newest_ids[chat_id] = max(message_id, self._newest_ids.get(chat_id, 0))

    def note_posted(self, chat_id: int, message_id: int) -> None:
        """Remember that the bot has posted a message."""
        self.note_seen(chat_id, message_id)
        self._posted.append((chat_id, message_id))

    def get_post_lock(self, chat_id: int) -> PostLock:
        """Return the lock of a chat."""
        return self._locks.setdefault(chat_id, PostLock())

    @contextmanager
    def claim(self, chat_id: int, message_id: int) -> Iterator[None]:
        """Treat a message as posted for the duration of the `with` block."""
        self._claimed.add((chat_id, message_id))
        try:
            yield
        finally:
            self._claimed.discard((chat_id, message_id))

    def find_newest(self, chat_id: int) -> int:
        """Return the newest id of a chat, or 0 if none is known."""
        return self._newest_ids.get(chat_id, 0)

    def is_posted(self, chat_id: int, message_id: int) -> bool:
        message = (chat_id, message_id)
        return message in self._posted or message in self._claimed


class TelegramMessages:
    """The messages of one answer in a chat or topic.

    `reply_to` is the id of the message to answer. The answer is sent as a reply only in groups. All
    answers of the bot share the `history`.
    """

    limit_chars = LIMIT_UTF16
    can_read_history = False
    posts_files_alone = True
    max_files = MAX_ALBUM_FILES

    def __init__(
        self,
        bot: telegram.Bot,
        address: Address,
        reply_to: str | None,
        history: ChatHistory | None = None,
    ) -> None:
        self._bot = bot
        self._history = history or ChatHistory()
        self._chat_id = int(address.chat_id)
        self._thread_id = int(address.thread_id) if address.thread_id else None
        is_group = self._chat_id < 0
        self.pace_s = PACE_GROUP_S if is_group else PACE_DIRECT_S
        self._reply_to: int | None = None
        # The id of a scheduled question ("7@2026-05-03…") isn't the number of a message.
        if is_group and reply_to and reply_to.isdecimal():
            self._reply_to = int(reply_to)
        self._has_drafts = not is_group

    def measure(self, part: StyledText) -> int:
        """Return the length in UTF-16 units, or a larger number if there are many entities.

        A message is full with 4,096 units or with 100 entities, so each entity counts as a
        hundredth of the limit. For 50 entities, the result is at least 2,048.
        """
        entities = sum(1 for entity in part.entities if entity.kind not in _UNSUPPORTED_ENTITIES)
        return max(utf16_length(part.text), entities * LIMIT_UTF16 // MAX_ENTITIES)

    async def show_typing(self) -> None:
        """Show typing.

        A failure is only logged, because posting the message will show the same problem.
        """
        try:
            await self._call(
                self._bot.send_chat_action, action="typing", message_thread_id=self._thread_id
            )
        except DeliveryError as error:
            _log.debug("telegram.typing_failed", error=str(error))

    async def prepare(self, answer: Answer) -> None:
        """Do nothing, because Telegram has no private messages in groups."""

    async def show_draft(self, part: StyledText, nonce: str) -> bool:
        """Show a draft, which is possible only in direct chats. It disappears after half a minute.

        Returns False if drafts aren't possible. After a server has refused a draft, no further
        drafts are sent.
        """
        if not self._has_drafts:
            return False
        try:
            await self._call(
                self._bot.send_message_draft,
                draft_id=zlib.crc32(nonce.encode()) or 1,
                text=part.text,
                entities=_convert_entities(part),
                message_thread_id=self._thread_id,
            )
        except DeliveryError as error:
            if error.retry_after_s is not None:
                raise
            _log.info("telegram.no_draft", error=str(error))
            self._has_drafts = False
        return self._has_drafts

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """Create a message with a text or a file, and return its id. A refusal is permanent."""
        try:
            if part.text:
                message = await self._post_text(part, answer)
            else:
                assert answer is not None
                (file,) = answer.files
                message = await send_file(self._bot, self._call, file, self._place())
        except DeliveryError as error:
            error.is_permanent = error.is_permanent or error.is_missing
            raise
        self._note_posted(message)
        return str(message.message_id)

    def _write_rich(self, part: StyledText) -> str:
        """Return the HTML of a rich message for a text with a table, or ""."""
        if not any(entity.table is not None for entity in part.entities):
            return ""
        return self._history.rich.write(part)

    async def _post_text(self, part: StyledText, answer: Answer | None) -> Any:
        """Create a message with a text. If the text has a table, the message is a rich one."""
        html = self._write_rich(part)
        if html:
            try:
                send = partial(self._history.rich.send, self._bot, html)
                markup = _build_keyboard(answer)
                return await self._call(send, reply_markup=markup, **self._place())
            except DeliveryError as error:
                if not error.is_missing or error.is_permanent:
                    raise
                _log.info("telegram.no_rich_message", error=str(error))
        arguments = _text_arguments(part, answer)
        return await self._call(self._bot.send_message, **self._place(), **arguments)

    def count_album_files(self, files: Sequence[File]) -> int:
        return count_album_files(files)

    async def post_album(self, files: Sequence[File]) -> Sequence[str]:
        """Post files as one album and return the ids of its messages.

        Raises a DeliveryError with `is_missing` if Telegram refuses the album.
        """
        messages = await send_album(self._bot, self._call, files, self._place())
        for message in messages:
            self._note_posted(message)
        return [str(message.message_id) for message in messages]

    def _note_posted(self, message: telegram.Message) -> None:
        self._history.note_posted(self._chat_id, message.message_id)
        # Only the first message is shown as a reply; the others follow it.
        self._reply_to = None

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Replace the text of a message.

        Raises a DeliveryError with `is_missing` if the message is gone or can't be edited.
        """
        await self._edit_text(message_id, part, answer)

    async def _edit_text(self, message_id: str, part: StyledText, answer: Answer | None) -> bool:
        """Replace the text and the buttons of a message. Returns whether they were different."""
        id_ = int(message_id)
        if not part.text:
            # The message is a file. Setting the same empty caption fails if the message isn't a
            # file.
            return await self._call(self._bot.edit_message_caption, message_id=id_) is not None
        html = self._write_rich(part)
        if html:
            try:
                edit = partial(self._history.rich.edit, self._bot, html)
                markup = _build_keyboard(answer)
                return await self._call(edit, message_id=id_, reply_markup=markup) is not None
            except DeliveryError as error:
                if not error.is_missing or error.is_permanent:
                    raise
                _log.info("telegram.no_rich_message", error=str(error))
        change = await self._call(
            self._bot.edit_message_text, message_id=id_, **_text_arguments(part, answer)
        )
        return change is not None

    @property
    def post_lock(self) -> PostLock:
        return self._history.get_post_lock(self._chat_id)

    @property
    def newest_id(self) -> str:
        """The id of the newest known message of the chat, or "" if none is known."""
        newest_id = max(self._history.find_newest(self._chat_id), self._reply_to or 0)
        return str(newest_id) if newest_id else ""

    async def find_lost(
        self,
        lost_post: LostPost,
        part: StyledText,
        answer: Answer | None,
        known_ids: Collection[str],
    ) -> LostMessage | None:
        """Search for a lost message by editing the messages between `after_id` and `before_id`.

        Telegram lets the bot edit only its own messages, so other people's messages don't change.
        At most `MAX_LOST_TRIES` messages are tried. In a direct chat, where messages don't grow, a
        message with another text may be the lost message of another answer. Returns None if none of
        them is the lost message.
        """
        if not lost_post.after_id:
            return None
        candidates, are_all = self._list_candidates(lost_post, known_ids)
        if lost_post.before_id and not are_all:
            return None  # the first of them were tried before the message `before_id` was posted
        for candidate in candidates:
            # Another answer that looks for its message at the same time must not find this one.
            with self._history.claim(self._chat_id, candidate):
                try:
                    is_different = await self._edit_text(str(candidate), part, answer)
                except DeliveryError as error:
                    if not error.is_missing:
                        raise
                    continue
                self._history.note_posted(self._chat_id, candidate)
                _log.info("telegram.lost_message_found", message_id=candidate)
                may_be_other = is_different and self._has_drafts
                return LostMessage(str(candidate), may_be_other=may_be_other)
        return ABSENT if are_all else None

    def _list_candidates(
        self, lost_post: LostPost, known_ids: Collection[str]
    ) -> tuple[list[int], bool]:
        """Return the ids that a lost message may have, and whether these are all possible ids."""
        candidates: list[int] = []
        candidate = int(lost_post.after_id)
        # A group that becomes a supergroup counts from 1 again, so its ids aren't compared.
        end = max(int(lost_post.before_id or 0), candidate)
        while len(candidates) <= MAX_LOST_TRIES:
            candidate += 1
            if candidate == end:
                return candidates, True
            if not (
                str(candidate) in known_ids or self._history.is_posted(self._chat_id, candidate)
            ):
                candidates.append(candidate)
        return candidates[:MAX_LOST_TRIES], False

    async def delete(self, message_id: str) -> None:
        """Delete a message. Raises DeliveryError if it is more than two days old."""
        await self._call(self._bot.delete_message, message_id=int(message_id))

    def _place(self) -> dict[str, Any]:
        """Return the topic and the message to reply to as arguments of a call."""
        reply = None
        if self._reply_to:
            reply = telegram.ReplyParameters(self._reply_to, allow_sending_without_reply=True)
        return {"message_thread_id": self._thread_id, "reply_parameters": reply}

    async def _call(self, method: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """Make a call for this chat, and repeat it without the part that Telegram refuses.

        The call is repeated with the new chat id of a group, without a topic that was deleted, or
        without entities that Telegram rejects. Returns None if the message already has this text.
        Raises DeliveryError for all other errors.
        """
        has_moved = False
        while True:
            try:
                return await method(chat_id=self._chat_id, **arguments)
            except TelegramError as error:
                if isinstance(error, ChatMigrated) and not has_moved:
                    self._chat_id = error.new_chat_id
                    has_moved = True
                elif arguments.get("message_thread_id") and is_refusal(
                    error, "message thread not found"
                ):
                    self._thread_id = None
                    arguments["message_thread_id"] = None
                elif arguments.get("entities") and is_refusal(error, _BAD_FORMATTING):
                    _log.warning("telegram.sent_plain", error=error.message)
                    arguments["entities"] = ()
                elif is_refusal(error, "message is not modified"):
                    return None
                else:
                    raise to_delivery_error(error) from error


def _text_arguments(part: StyledText, answer: Answer | None) -> dict[str, Any]:
    """Return a text and its buttons as arguments of a call."""
    return {
        "text": part.text,
        "entities": _convert_entities(part),
        "reply_markup": _build_keyboard(answer),
        "link_preview_options": _NO_PREVIEW,
    }


def _convert_entities(part: StyledText) -> list[telegram.MessageEntity]:
    """Convert entities with offsets in code points to Telegram's entities with UTF-16 units."""
    entities = [
        telegram.MessageEntity(
            entity.kind, entity.offset, entity.length, url=entity.url, language=entity.language
        )
        for entity in part.entities
        if entity.kind not in _UNSUPPORTED_ENTITIES
    ]
    return list(telegram.MessageEntity.adjust_message_entities_to_utf_16(part.text, entities))


def _build_keyboard(answer: Answer | None) -> telegram.InlineKeyboardMarkup | None:
    """Arrange the buttons in rows, in their order. Returns None if there are no buttons.

    Up to three buttons with short labels share a row.
    """
    if answer is None or not answer.buttons:
        return None
    rows: list[list[telegram.InlineKeyboardButton]] = []
    for button in answer.buttons:
        row = rows[-1] if rows else []
        labels = [button.label, *(other.text for other in row)]
        is_short = all(len(label) <= SHORT_LABEL_CHARS for label in labels)
        if not row or len(row) == MAX_BUTTONS_PER_ROW or not is_short:
            row = []
            rows.append(row)
        row.append(telegram.InlineKeyboardButton(button.label, callback_data=button.id))
    return telegram.InlineKeyboardMarkup(rows)
