"""The Bot API as we call it: within its limits, its refusals as errors of ours, the token in no message; and the
messages of one answer in one chat, sent, edited and deleted.

Falls back where Telegram is strict: plain text when it refuses the formatting, the chat itself when a topic is gone,
the new chat when a group has moved. When what is sent is decided by `adapters.streaming`.
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
import re
import ssl
import time
import zlib
from collections import defaultdict, deque
from functools import cache, partial
from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
import structlog

from core.errors import DeliveryError
from core.markup.markdown import StyledText, utf16_length
from core.types import Address, Answer, File, Json

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
FLOOD = HTTPStatus.TOO_MANY_REQUESTS
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

_log = structlog.get_logger(__name__)


class TelegramError(DeliveryError):
    """What the Bot API or the network refuses, `said` in their words. `code`: the status of a Bot API's answer, 0 where
    none came; `parameters` as the Bot API has them. Uncertain: nobody heard what became of a call that was sent."""

    def __init__(self, said: str, code: int = 0, parameters: Json | None = None, *, is_uncertain: bool = False) -> None:
        self.said = said
        self.code = code
        self.new_chat_id: int | None = (parameters or {}).get("migrate_to_chat_id")
        is_flood, is_closed, is_gone = code == FLOOD, code == HTTPStatus.FORBIDDEN, self.says(_GONE)
        lead = "does not let the bot write there" if is_closed else "has no such chat for the bot" if is_gone else ""
        super().__init__(
            f"Telegram {lead or 'did not take the message'}: {said}",
            is_permanent=is_closed or is_gone,
            retry_after_s=float((parameters or {}).get("retry_after", 1.0)) if is_flood else None,
            # No later edit of that message can succeed, so that it has to be posted anew.
            is_missing=code == HTTPStatus.BAD_REQUEST and not is_gone,
            is_uncertain=is_uncertain,
        )

    @property
    def is_refused_token(self) -> bool:
        """Of one method it proves nothing: an unknown path looks the same."""
        return self.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND)

    def says(self, phrase: str) -> bool:
        """Whether the server refused what it was given, with this phrase (a pattern, lower case)."""
        return self.code == HTTPStatus.BAD_REQUEST and re.search(phrase, self.said.lower()) is not None


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
        """The seconds to wait before this call. Raises TelegramError where they are many, or it is only for show."""
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
            raise TelegramError(f"Flood control exceeded. Retry in {wait_s:g} seconds", FLOOD, {"retry_after": wait_s})
        for times in taken:
            times.append(now + wait_s)
        return wait_s


class TelegramApi:
    """The Bot API at `root`. `connections` is how many calls may be under way at once."""

    def __init__(self, token: str, root: str, connections: int) -> None:
        self.token = token
        self.root = root
        self._connections = connections
        self._limits = _Limits()
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        if self._session is None:
            trusted = ssl.create_default_context()
            # Some systems have none of their own.
            trusted.load_verify_locations(certifi.where())
            connector = aiohttp.TCPConnector(limit=self._connections, ssl=trusted)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self, method: str, *, document: File | None = None, read_timeout_s: float = READ_TIMEOUT_S, **parameters: Any
    ) -> Any:
        """The result. Parameters that are None are left out. Raises TelegramError, with `retry_after_s` for status 429
        and for what would lead to it."""
        chat_id = parameters.get("chat_id")
        if wait_s := self._limits.reserve(method, chat_id):
            await asyncio.sleep(wait_s)
        form = aiohttp.FormData(quote_fields=False)
        for name, value in parameters.items():
            if value is not None:
                form.add_field(name, value if isinstance(value, str) else json.dumps(value))
        if document is not None:
            # As a file it is written piece by piece, so that other chats do not wait for a large one.
            mime = mimetypes.guess_type(document.name)[0] or "application/octet-stream"
            form.add_field("document", BytesIO(document.content), filename=document.name, content_type=mime)
        status, payload = await self._post(method, form, read_timeout_s)
        if status in _HALFWAY:
            raise TelegramError(f"Telegram answers with status {status}", is_uncertain=True)
        try:
            answer = json.loads(payload)
            if answer["ok"]:
                return answer["result"]
            said, more = str(answer["description"]), dict(answer.get("parameters", {}))
        except (ValueError, LookupError, TypeError):
            # A proxy, or the page of a network that wants a login: what it says, says nothing of the token.
            said, more = f"what answers with status {status} is no Bot API", {}
            status = status if status == FLOOD else 0
        error = TelegramError(said, status, more)
        if error.retry_after_s is not None:
            self._limits.close(method, chat_id, error.retry_after_s)
        raise error

    async def _post(self, method: str, form: aiohttp.FormData, read_timeout_s: float) -> tuple[int, bytes]:
        assert self._session is not None
        url, proxy = f"{self.root}/bot{self.token}/{method}", _proxy(self.root)
        timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S, sock_read=read_timeout_s)
        try:
            async with self._session.post(
                url, data=form, timeout=timeout, proxy=proxy, allow_redirects=False
            ) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, OSError) as error:
            said = _network_clause(error, self.root).replace(self.token, "<token>")
            # The cause would show the token in a traceback as well.
            raise TelegramError(said, is_uncertain=not isinstance(error, _UNSENT)) from None


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
    if error.is_refused_token:
        return "the token is refused (401)"
    if error.code == HTTPStatus.CONFLICT:
        return "a webhook takes the updates (409)" if "webhook" in error.said.lower() else CONFLICT
    return error.said


class TelegramMessages:
    """One chat or topic, for one answer. `reply_to`: the message that is answered; quoted in groups only."""

    limit_chars = LIMIT_UTF16
    is_idempotent = False

    def __init__(self, api: TelegramApi, address: Address, reply_to: str | None) -> None:
        self._api = api
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
            await self._call("sendChatAction", action="typing")
        except DeliveryError as error:
            _log.debug("telegram.typing_failed", error=str(error))

    async def prepare(self, answer: Answer) -> None:
        """Nothing is private in a group of Telegram; what may not be said there is refused by the commands."""

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """In private chats only, gone after half a minute. A server that does not know it is not asked again."""
        if not self._has_drafts:
            return False
        draft_id = zlib.crc32(nonce.encode()) or 1
        try:
            await self._call("sendMessageDraft", draft_id=draft_id, text=part.text, entities=_entities(part))
        except DeliveryError as error:
            if error.retry_after_s is not None:
                raise
            _log.info("telegram.no_draft", error=str(error))
            self._has_drafts = False
        return self._has_drafts

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """When a file failed after the text was posted, the next call goes on with the files."""
        if part.text and self._text_id is None:
            message = await self._call("sendMessage", reply_parameters=self._reply(), **_shown(part, answer))
            self._text_id = str(message["message_id"])
            self._reply_to = None  # the parts that follow stand under the first
        last_file_id = await self._send_files(answer)
        message_id, self._text_id = self._text_id or last_file_id, None
        return message_id

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone or cannot be edited any more."""
        await self._call("editMessageText", message_id=int(message_id), **_shown(part, answer))
        await self._send_files(answer)

    async def remove(self, message_id: str) -> None:
        """Raises DeliveryError: Telegram deletes nothing that is older than two days."""
        await self._call("deleteMessage", message_id=int(message_id))

    async def _send_files(self, answer: Answer | None) -> str:
        """Sends those not sent yet; returns the id of the last."""
        message_id, files = "", answer.files if answer else ()
        while self._files_sent < len(files):
            file = files[self._files_sent]
            message = await self._call("sendDocument", reply_parameters=self._reply(), document=file)
            message_id = str(message["message_id"])
            self._files_sent += 1
        return message_id

    def _reply(self) -> Json | None:
        return {"message_id": self._reply_to, "allow_sending_without_reply": True} if self._reply_to else None

    async def _call(self, method: str, **parameters: Any) -> Any:
        """Calls for this chat, and its topic where something is sent: following a group that moved, leaving a topic
        that is gone, and without entities when Telegram refuses what it was given; raises DeliveryError."""
        has_moved = False
        while True:
            thread_id = self._thread_id if method.startswith("send") else None
            try:
                return await self._api.call(method, chat_id=self._chat_id, message_thread_id=thread_id, **parameters)
            except TelegramError as error:
                if error.new_chat_id is not None and not has_moved:
                    self._chat_id, has_moved = error.new_chat_id, True
                elif thread_id is not None and error.says("message thread not found"):
                    self._thread_id = None
                elif parameters.get("entities") and error.says(_FORMATTING):
                    _log.warning("telegram.sent_plain", error=error.said)
                    parameters["entities"] = None
                elif error.says("message is not modified"):
                    return None
                else:
                    raise


def _shown(part: StyledText, answer: Answer | None) -> dict[str, Any]:
    """A text with its buttons, as parameters."""
    return {
        "text": part.text,
        "entities": _entities(part),
        "reply_markup": _keyboard(answer),
        "link_preview_options": {"is_disabled": True},
    }


def _entities(part: StyledText) -> list[Json]:
    """Counted in UTF-16 units."""
    entities: list[Json] = []
    for entity in part.entities:
        if entity.kind not in _UNKNOWN:
            offset, length = (
                utf16_length(part.text[: entity.offset]),
                utf16_length(part.text[entity.offset : entity.end]),
            )
            told = {
                "type": entity.kind,
                "offset": offset,
                "length": length,
                "url": entity.url,
                "language": entity.language,
            }
            entities.append({name: value for name, value in told.items() if value is not None})
    return entities


def _keyboard(answer: Answer | None) -> Json | None:
    """Buttons in the order given; short ones share a row."""
    rows: list[list[dict[str, str]]] = []
    for button in answer.buttons if answer else ():
        last = rows[-1] if rows else []
        is_short = all(len(label) <= SHORT_LABEL_CHARS for label in (button.label, *(other["text"] for other in last)))
        if not (is_short and 0 < len(last) < BUTTONS_A_ROW):
            rows.append(last := [])
        last.append({"text": button.label, "callback_data": button.id})
    return {"inline_keyboard": rows} if rows else None
