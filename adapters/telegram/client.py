"""The HTTP layer under the Telegram client, and the Bot API's refusals as errors of ours.

Keeps the token out of messages; decides nothing about trying again.
"""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

from telegram.error import BadRequest, Forbidden, NetworkError, TelegramError
from telegram.request import HTTPXRequest

from core.errors import DeliveryError

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 20.0
POOL_TIMEOUT_S = 10.0
_GONE = re.compile(
    "chat not found|user is deactivated|group chat was deactivated|peer_id_invalid|user_is_blocked"
    "|not enough rights|have no rights|chat_write_forbidden|bot is not a member|need administrator rights"
    "|chat_restricted|topic_closed"
)
_MISSING = re.compile("message to edit not found|message can't be edited|message_id_invalid")
"""No later edit of that message can succeed, so that it has to be posted anew."""
_UNSENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "LocalProtocolError"})
"""Of httpx: no byte of the call has left."""
_FORMATTING = re.compile("entit|can't parse|can't find end|url")


class FloodError(TelegramError):
    """Status 429. The library's own RetryAfter warns of a coming change each time it is made."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Flood control exceeded. Retry in {retry_after_s:g} seconds")
        self.retry_after_s = retry_after_s


class LostReplyError(NetworkError):
    """The connection broke after a call was sent: it may have been carried out."""


class TelegramRequest(HTTPXRequest):
    """One pool of connections. `connections` is how many calls may be under way at once."""

    def __init__(self, token: str, connections: int) -> None:
        super().__init__(
            connection_pool_size=connections,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            write_timeout=READ_TIMEOUT_S,
            pool_timeout=POOL_TIMEOUT_S,
        )
        self._token = token

    async def do_request(self, *args: Any, **options: Any) -> tuple[int, bytes]:
        """Raises FloodError for status 429, LostReplyError where a call was sent and nothing came back, else answers as
        its parent does."""
        try:
            code, payload = await super().do_request(*args, **options)
        except NetworkError as error:
            kind = NetworkError if type(error.__cause__).__name__ in _UNSENT else LostReplyError
            # The cause would show the token in a traceback as well.
            raise kind(error.message.replace(self._token, "<token>")) from None
        if code != HTTPStatus.TOO_MANY_REQUESTS:
            return code, payload
        try:
            raise FloodError(float(json.loads(payload)["parameters"]["retry_after"]))
        except (ValueError, KeyError, TypeError):
            raise FloodError(1.0) from None


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
