"""The HTTP layer under the Telegram client, and the Bot API's refusals as errors of ours.

Keeps the token out of messages and every call within Telegram's limits; decides nothing about trying again.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections import defaultdict, deque
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
from telegram.error import (
    BadRequest,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest, RequestData

from core.errors import DeliveryError

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 20.0
POOL_TIMEOUT_S = 10.0
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
_GONE = re.compile(
    "chat not found|user is deactivated|group chat was deactivated|peer_id_invalid|user_is_blocked"
    "|not enough rights|have no rights|chat_write_forbidden|bot is not a member|need administrator rights"
    "|chat_restricted|topic_closed"
)
_MISSING = re.compile("message to edit not found|message can't be edited|message_id_invalid")
"""No later edit of that message can succeed, so that it has to be posted anew."""
_UNSENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "LocalProtocolError"})
"""Of httpx: no byte of the call has left."""
_HALFWAY = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)
"""What a proxy says of a call that it passed on."""
_FORMATTING = re.compile("entit|can't parse|can't find end|url")


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


class TelegramRequest(HTTPXRequest):
    """One pool of connections. `connections` is how many calls may be under way at once."""

    def __init__(self, token: str, connections: int) -> None:
        # Each call looks at all connections that are kept.
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=8)
        super().__init__(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            write_timeout=READ_TIMEOUT_S,
            pool_timeout=POOL_TIMEOUT_S,
            httpx_kwargs={"limits": limits},
        )
        self._token = token
        self._limits = _Limits()

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *args: Any, **options: Any
    ) -> tuple[int, bytes]:
        """Raises FloodError for status 429 and for what would lead to it, LostReplyError where a call was sent and
        nobody says what became of it, else answers as its parent does."""
        name = url.rpartition("/")[2]
        chat_id = request_data.parameters.get("chat_id") if request_data else None
        if wait_s := self._limits.reserve(name, chat_id):
            await asyncio.sleep(wait_s)
        try:
            code, payload = await super().do_request(url, method, request_data, *args, **options)
        except NetworkError as error:
            kind = NetworkError if type(error.__cause__).__name__ in _UNSENT else LostReplyError
            # The cause would show the token in a traceback as well.
            raise kind(_network_clause(error, url).replace(self._token, "<token>")) from None
        if code in _HALFWAY:
            raise LostReplyError(f"Telegram answers with status {code}")
        if code != HTTPStatus.TOO_MANY_REQUESTS:
            if code >= HTTPStatus.BAD_REQUEST and b'"ok"' not in payload:
                # A proxy, or the page of a network that wants a login: what it refuses says nothing of the token.
                raise NetworkError(f"what answers with status {code} is no Bot API")
            return code, payload
        try:
            flood = FloodError(float(json.loads(payload)["parameters"]["retry_after"]))
        except (ValueError, KeyError, TypeError):
            flood = FloodError(1.0)
        self._limits.close(name, chat_id, flood.retry_after_s)
        raise flood


def _network_clause(error: NetworkError, url: str) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return f"the name {urlsplit(url).hostname} cannot be resolved"
        if isinstance(cause, ConnectionRefusedError):
            return f"{urlsplit(url).hostname} refuses the connection"
        cause = cause.__cause__ or cause.__context__
    return f"no answer in time ({error.message})" if isinstance(error, TimedOut) else error.message


def clause(error: TelegramError) -> str:
    """What is wrong with the connection, for a person."""
    if isinstance(error, InvalidToken | EndPointNotFound):
        return "the token is refused (401)"
    if isinstance(error, Conflict):
        return "a webhook takes the updates (409)" if "webhook" in error.message.lower() else CONFLICT
    return error.message


def is_said(error: TelegramError, phrase: str) -> bool:
    """Whether the server refused with this phrase (lower case)."""
    return isinstance(error, BadRequest) and phrase in error.message.lower()


def is_about_formatting(error: TelegramError) -> bool:
    """Whether the server complains of entities rather than of the message or the chat."""
    return isinstance(error, BadRequest) and bool(_FORMATTING.search(error.message.lower()))


def delivery_error(error: TelegramError) -> DeliveryError:
    """The same as an error of ours; raise it `from` the original."""
    said = error.message
    if isinstance(error, Forbidden):
        return DeliveryError(f"Telegram does not let the bot write there: {said}", is_permanent=True)
    if isinstance(error, BadRequest) and _GONE.search(said.lower()):
        return DeliveryError(f"Telegram has no such chat for the bot: {said}", is_permanent=True)
    if isinstance(error, BadRequest) and _MISSING.search(said.lower()):
        return DeliveryError(f"Telegram has no such message to edit: {said}", is_missing=True)
    delay_s = error.retry_after_s if isinstance(error, FloodError) else None
    said = f"Telegram did not take the message: {said}"
    return DeliveryError(said, retry_after_s=delay_s, is_uncertain=isinstance(error, LostReplyError))
