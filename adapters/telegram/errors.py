"""Describes failures of Telegram and the network, and converts them to `DeliveryError`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import aiohttp
import telegram
from telegram.error import (
    BadRequest,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
)

from config.masking import mask_secrets
from core.errors import DeliveryError

CONFLICT = "another process polls with this token (409)"
# A pattern for error messages, in lower case, if the bot can't write to the chat at all.
_CHAT_GONE = (
    "chat not found|user is deactivated|group chat was deactivated|peer_id_invalid|user_is_blocked"
    "|not enough rights|have no rights|chat_write_forbidden|bot is not a member"
    "|need administrator rights|chat_restricted|topic_closed"
)
# Errors that the library raises if Telegram refuses the token, and also for unknown methods.
_TOKEN_REFUSALS = (InvalidToken, telegram.error.EndPointNotFound)


class FloodError(TelegramError):
    """Telegram asks for a delay (status 429).

    The library's RetryAfter isn't used, because it emits a deprecation warning.
    """

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Flood control exceeded. Retry in {retry_after_s:g} seconds")
        self.retry_after_s = retry_after_s


class LostReplyError(NetworkError):
    """A call was sent but its response was lost, so Telegram may have executed the call."""


def describe_network_error(error: Exception, url: str) -> str:
    """Describe why a call failed, as a clause: ``the proxy refuses the connection``."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {urlsplit(url).hostname} cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(
        error.os_error, ConnectionRefusedError
    ):
        is_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        host = "the proxy" if is_proxy else urlsplit(url).hostname
        return f"{host} refuses the connection"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


def describe_error(error: TelegramError) -> str:
    """Describe why Telegram can't be used, as a clause: ``the token is refused (401)``."""
    if isinstance(error, _TOKEN_REFUSALS):
        return "the token is refused (401)"
    if isinstance(error, Conflict):
        is_webhook = "webhook" in error.message.lower()
        return "a webhook takes the updates (409)" if is_webhook else CONFLICT
    return mask_secrets(error.message)


def is_refusal(error: TelegramError, pattern: str) -> bool:
    """Return whether Telegram refused a call with an error message that matches the pattern.

    The pattern is matched against the message in lower case.
    """
    return isinstance(error, BadRequest) and re.search(pattern, error.message.lower()) is not None


def to_delivery_error(error: TelegramError) -> DeliveryError:
    """Convert an error of Telegram to a DeliveryError."""
    message = error.message
    if isinstance(error, Forbidden):
        return DeliveryError(
            f"Telegram does not let the bot write there: {message}", is_permanent=True
        )
    if is_refusal(error, _CHAT_GONE):
        return DeliveryError(f"Telegram has no such chat for the bot: {message}", is_permanent=True)
    # The library makes BadRequest a subclass of NetworkError, although Telegram answered.
    is_network_error = isinstance(error, NetworkError) and not isinstance(error, BadRequest)
    return DeliveryError(
        f"Telegram did not take the message: {message}",
        retry_after_s=error.retry_after_s if isinstance(error, FloodError) else None,
        # If an edit was refused, it would fail again, so a new message must be posted instead.
        is_missing=isinstance(error, BadRequest),
        is_uncertain=isinstance(error, LostReplyError),
        is_unreachable=is_network_error or isinstance(error, _TOKEN_REFUSALS),
    )
