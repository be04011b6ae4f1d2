"""The Bot API as we call it: within its limits, its refusals as errors of ours, the token in no message; and the
messages of one answer in one chat, sent, edited and deleted.

Falls back where Telegram is strict: plain text when it refuses the formatting, the chat itself when a topic is gone,
the new chat when a group has moved. When what is sent is decided by `adapters.streaming`.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from functools import cache, partial
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
import structlog
import telegram
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, NetworkError, TelegramError
from telegram.request import BaseRequest, RequestData

from config.masking import masked
from core.errors import DeliveryError
from core.markup.markdown import StyledText, utf16_length
from core.types import Address, Answer

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 300.0
"""Also for what is written slowly."""
CALLS, CALLS_S = 30, 1.0
"""So many calls Telegram takes in that time."""
FREE_CALLS = 10
"""Of these what nobody waits for leaves free."""
GROUP_MESSAGES, GROUP_MESSAGES_S = 20, 60.0
LONGEST_WAIT_S = 5.0
"""What takes longer is for the caller to try again."""
POLL = "getUpdates"
CONFLICT = "another process polls with this token (409)"
_MESSAGES = frozenset({"sendMessage", "sendDocument", "editMessageText"})
_COSMETIC = frozenset({"sendChatAction", "sendMessageDraft"})
_GONE = (
    "chat not found|user is deactivated|group chat was deactivated|peer_id_invalid|user_is_blocked"
    "|not enough rights|have no rights|chat_write_forbidden|bot is not a member|need administrator rights"
    "|chat_restricted|topic_closed"
)
_UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
"""No byte of the call has left."""
_HALFWAY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)
"""What a proxy says of a call that it passed on."""
_FORMATTING = "entit|can't parse|can't find end|url"
LIMIT_UTF16 = 4096
PACE_DIRECT_S = 1.0
PACE_GROUP_S = 3.0
SHORT_LABEL_CHARS = 14
BUTTONS_A_ROW = 3
MOST_ENTITIES = 100
"""Of one message; Telegram leaves out what is more."""
_UNKNOWN = frozenset({"heading", "list_marker"})
_NO_PREVIEW = telegram.LinkPreviewOptions(is_disabled=True)

_log = structlog.get_logger(__name__)


class FloodError(TelegramError):
    """Status 429. The library's own RetryAfter warns of a coming change each time it is made."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Flood control exceeded. Retry in {retry_after_s:g} seconds")
        self.retry_after_s = retry_after_s


class LostReplyError(NetworkError):
    """Nobody heard what became of a call that was sent: it may have been carried out."""


class _Limits:
    """When the next call may be made: by the numbers that Telegram publishes, and by what it asked for, which is
    counted for each chat, and for each method that has none."""

    def __init__(self) -> None:
        self._calls: deque[float] = deque(maxlen=CALLS)
        self._groups: defaultdict[int, deque[float]] = defaultdict(partial(deque, maxlen=GROUP_MESSAGES))
        self._closed_until: dict[object, float] = {}

    def close(self, method: str, chat_id: Any, retry_after_s: float) -> None:
        self._closed_until[chat_id or method] = time.monotonic() + retry_after_s

    def reserve(self, method: str, chat_id: Any) -> float:
        """The seconds to wait before this call. Raises FloodError where they are many, or where it is only for show."""
        now = time.monotonic()
        is_cosmetic = method in _COSMETIC
        free_at = [now, self._closed_until.get(chat_id or method, now)]
        taken = []
        if method != POLL:
            taken.append(self._calls)
            if len(self._calls) == CALLS:
                free_at.append(self._calls[FREE_CALLS if is_cosmetic else 0] + CALLS_S)
        if method in _MESSAGES and isinstance(chat_id, int) and chat_id < 0:
            taken.append(self._groups[chat_id])
            if len(taken[-1]) == GROUP_MESSAGES:
                free_at.append(taken[-1][0] + GROUP_MESSAGES_S)
        wait_s = max(free_at) - now
        if wait_s > (0 if is_cosmetic else LONGEST_WAIT_S):
            raise FloodError(wait_s)
        for times in taken:
            times.append(now + wait_s)
        return wait_s


class TelegramRequest(BaseRequest):
    """One pool of connections, of aiohttp: a call takes a quarter of the time that the client's own library needs.
    `connections` is how many calls may be under way at once."""

    def __init__(self, token: str, connections: int) -> None:
        self._token = token
        self._connections = connections
        self._limits = _Limits()
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float:
        return READ_TIMEOUT_S

    async def initialize(self) -> None:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=httpx.create_ssl_context())
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **options: Any
    ) -> tuple[int, bytes]:
        """Raises FloodError for status 429 and for what would lead to it, LostReplyError where a call was sent and
        nobody says what became of it, NetworkError where it was not."""
        name = url.rpartition("/")[2]
        chat_id = request_data.parameters.get("chat_id") if request_data else None
        if wait_s := self._limits.reserve(name, chat_id):
            await asyncio.sleep(wait_s)
        asked_s = options.get("read_timeout")
        read_s = asked_s if isinstance(asked_s, int | float) else READ_TIMEOUT_S
        try:
            code, payload = await self._call(url, method, request_data, read_s)
        except (aiohttp.ClientError, OSError) as error:
            kind = NetworkError if isinstance(error, _UNSENT) else LostReplyError
            # The cause would show the token in a traceback as well.
            raise kind(_network_clause(error, url).replace(self._token, "<token>")) from None
        if code in _HALFWAY:
            raise LostReplyError(f"Telegram answers with status {code}")
        if code != HTTPStatus.TOO_MANY_REQUESTS:
            if b'"ok"' not in payload:
                # A proxy, or the page of a network that wants a login: what it says, says nothing of the token.
                raise NetworkError(f"what answers with status {code} is no Bot API")
            return code, payload
        try:
            flood = FloodError(float(json.loads(payload)["parameters"]["retry_after"]))
        except (ValueError, KeyError, TypeError):
            flood = FloodError(1.0)
        self._limits.close(name, chat_id, flood.retry_after_s)
        raise flood

    async def _call(self, url: str, method: str, data: RequestData | None, read_s: float) -> tuple[int, bytes]:
        assert self._session is not None
        body: Any = data.json_parameters if data else None
        if data and data.contains_files:
            body = aiohttp.FormData(body, quote_fields=False)
            for field, (file_name, content, mime) in data.multipart_data.items():
                # As a file it is written piece by piece, so that other chats do not wait for a large one.
                file = BytesIO(content) if isinstance(content, bytes) else content
                body.add_field(field, file, filename=file_name, content_type=mime)
        timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S, sock_read=read_s)
        options: Any = {"timeout": timeout, "proxy": _proxy(url.rpartition("/bot")[0]), "allow_redirects": False}
        async with self._session.request(method, url, data=body, **options) as response:
            return response.status, await response.read()


@cache
def _proxy(root: str) -> str | None:
    """What the environment names for a server; aiohttp would ask it in a thread, for each call."""
    parts, proxies = urlsplit(root), getproxies()
    named = None if proxy_bypass(parts.netloc) else proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{named}" if named and "://" not in named else named


def _network_clause(error: Exception, url: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {urlsplit(url).hostname} cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
        who = "the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else urlsplit(url).hostname
        return f"{who} refuses the connection"
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def clause(error: TelegramError) -> str:
    """What is wrong with the connection, for a person."""
    if isinstance(error, InvalidToken | telegram.error.EndPointNotFound):
        return "the token is refused (401)"
    if isinstance(error, Conflict):
        return "a webhook takes the updates (409)" if "webhook" in error.message.lower() else CONFLICT
    return masked(error.message)


def is_said(error: TelegramError, phrase: str) -> bool:
    """Whether the server refused with this phrase (a pattern, lower case)."""
    return isinstance(error, BadRequest) and re.search(phrase, error.message.lower()) is not None


def delivery_error(error: TelegramError) -> DeliveryError:
    """The same as an error of ours; raise it `from` the original."""
    said = error.message
    if isinstance(error, Forbidden):
        return DeliveryError(f"Telegram does not let the bot write there: {said}", is_permanent=True)
    if is_said(error, _GONE):
        return DeliveryError(f"Telegram has no such chat for the bot: {said}", is_permanent=True)
    delay_s = error.retry_after_s if isinstance(error, FloodError) else None
    return DeliveryError(
        f"Telegram did not take the message: {said}",
        retry_after_s=delay_s,
        # No later edit of that message can succeed, so that it has to be posted anew.
        is_missing=isinstance(error, BadRequest),
        is_uncertain=isinstance(error, LostReplyError),
    )


class TelegramMessages:
    """One chat or topic, for one answer. `reply_to`: the message that is answered; quoted in groups only."""

    limit_chars = LIMIT_UTF16
    is_idempotent = False

    def __init__(self, bot: telegram.Bot, address: Address, reply_to: str | None) -> None:
        self._bot = bot
        self._chat_id = int(address.chat_id)
        self._thread_id = int(address.thread_id) if address.thread_id else None
        is_group = self._chat_id < 0
        self.pace_s = PACE_GROUP_S if is_group else PACE_DIRECT_S
        # What a schedule says has an id too, but it is none of a message.
        self._reply_to = int(reply_to) if is_group and reply_to and reply_to.isdecimal() else None
        self._text_id: str | None = None
        """Of a text whose files are not all sent."""
        self._files_sent = 0
        self._has_drafts = not is_group

    def measure(self, part: StyledText) -> int:
        """UTF-16 units, or the share of its entities in what a message may have, as if it were a length."""
        entities = sum(1 for entity in part.entities if entity.kind not in _UNKNOWN)
        return max(utf16_length(part.text), entities * LIMIT_UTF16 // MOST_ENTITIES)

    async def typing(self) -> None:
        """Failure is ignored: the message itself will show it."""
        try:
            await self._call(self._bot.send_chat_action, action="typing", message_thread_id=self._thread_id)
        except DeliveryError as error:
            _log.debug("telegram.typing_failed", error=str(error))

    async def prepare(self, answer: Answer) -> None:
        """Nothing is private in a group of Telegram; what may not be said there is refused by the commands."""

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """In private chats only, gone after half a minute. A server that does not know it is not asked again."""
        if not self._has_drafts:
            return False
        draft_id = zlib.crc32(nonce.encode()) or 1
        shown = {"text": part.text, "entities": _entities(part), "message_thread_id": self._thread_id}
        try:
            await self._call(self._bot.send_message_draft, draft_id=draft_id, **shown)
        except DeliveryError as error:
            if error.retry_after_s is not None:
                raise
            _log.info("telegram.no_draft", error=str(error))
            self._has_drafts = False
        return self._has_drafts

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """When a file failed after the text was posted, the next call goes on with the files."""
        if part.text and self._text_id is None:
            message = await self._call(self._bot.send_message, **self._place(), **_shown(part, answer))
            self._text_id = str(message.message_id)
            self._reply_to = None  # the parts that follow stand under the first
        last_file_id = await self._send_files(answer)
        message_id, self._text_id = self._text_id or last_file_id, None
        return message_id

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone or cannot be edited any more."""
        await self._call(self._bot.edit_message_text, message_id=int(message_id), **_shown(part, answer))
        await self._send_files(answer)

    async def remove(self, message_id: str) -> None:
        """Raises DeliveryError: Telegram deletes nothing that is older than two days."""
        await self._call(self._bot.delete_message, message_id=int(message_id))

    async def _send_files(self, answer: Answer | None) -> str:
        """Sends those not sent yet; returns the id of the last."""
        message_id, files = "", answer.files if answer else ()
        while self._files_sent < len(files):
            file = files[self._files_sent]
            document = telegram.InputFile(file.content, filename=file.name)
            message_id = str((await self._call(self._bot.send_document, document=document, **self._place())).message_id)
            self._files_sent += 1
        return message_id

    def _place(self) -> dict[str, Any]:
        reply = telegram.ReplyParameters(self._reply_to, allow_sending_without_reply=True) if self._reply_to else None
        return {"message_thread_id": self._thread_id, "reply_parameters": reply}

    async def _call(self, method: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """Calls for this chat, following a group that moved, leaving a topic that is gone, and without entities when
        Telegram refuses what it was given; raises DeliveryError."""
        has_moved = False
        while True:
            try:
                return await method(chat_id=self._chat_id, **arguments)
            except TelegramError as error:
                if isinstance(error, ChatMigrated) and not has_moved:
                    self._chat_id, has_moved = error.new_chat_id, True
                elif arguments.get("message_thread_id") and is_said(error, "message thread not found"):
                    self._thread_id = arguments["message_thread_id"] = None
                elif arguments.get("entities") and is_said(error, _FORMATTING):
                    _log.warning("telegram.sent_plain", error=error.message)
                    arguments["entities"] = ()
                elif is_said(error, "message is not modified"):
                    return None
                else:
                    raise delivery_error(error) from error


def _shown(part: StyledText, answer: Answer | None) -> dict[str, Any]:
    """A text with its buttons, as arguments of the library."""
    shown = {"text": part.text, "entities": _entities(part), "reply_markup": _keyboard(answer)}
    return {**shown, "link_preview_options": _NO_PREVIEW}


def _entities(part: StyledText) -> list[telegram.MessageEntity]:
    entities = [
        telegram.MessageEntity(entity.kind, entity.offset, entity.length, url=entity.url, language=entity.language)
        for entity in part.entities
        if entity.kind not in _UNKNOWN
    ]
    return list(telegram.MessageEntity.adjust_message_entities_to_utf_16(part.text, entities))


def _keyboard(answer: Answer | None) -> telegram.InlineKeyboardMarkup | None:
    """Buttons in the order given; short ones share a row."""
    rows: list[list[telegram.InlineKeyboardButton]] = []
    for button in answer.buttons if answer else ():
        last = rows[-1] if rows else []
        is_short = all(len(label) <= SHORT_LABEL_CHARS for label in (button.label, *(other.text for other in last)))
        if not (is_short and 0 < len(last) < BUTTONS_A_ROW):
            rows.append(last := [])
        last.append(telegram.InlineKeyboardButton(button.label, callback_data=button.id))
    return telegram.InlineKeyboardMarkup(rows) if rows else None
