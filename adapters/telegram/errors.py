"""Describes failures of Telegram and the network, and converts them to `DeliveryError`."""

from __future__ import annotations

import re
from http import HTTPStatus
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
from core.errors import ChatRefused, DeliveryError

CONFLICT = "another process polls with this token (409)"
# Patterns for error messages, in lower case, if the bot can't write to the chat at all, by the
# cause of a `ChatRefused`.
_CHAT_REFUSALS = {
    "blocked": "blocked by the user|user is deactivated|user_is_blocked|user_deactivated"
    "|you_blocked_user|can't initiate conversation",
    "closed": "topic_closed|topic is closed",
    "deleted": "topic_deleted",
    # Only some accounts may write to the person: see the settings of Telegram.
    "private": r"privacy_premium_required|allow_payment_required|premium_account_required"
    r"|\buser_privacy_restricted",
    "no_rights": "not enough rights|have no rights|chat_write_forbidden|chat_restricted"
    "|need administrator rights|chat_(?:send_[a-z]+|guest_send)_forbidden|user_restricted"
    "|chat_admin_required|user_banned_in_channel|right_forbidden|user_not_participant",
    "gone": "chat not found|group chat was deactivated|group chat was deleted|peer_id_invalid"
    "|bot is not a member|was kicked|channel_private|can't send messages to (?:bots|the)"
    "|chat_id_invalid|channel_invalid|chat_forbidden|user not found|user_id_invalid",
}
# Errors that the library raises if Telegram refuses the token, and also for unknown methods.
_TOKEN_REFUSALS = (InvalidToken, telegram.error.EndPointNotFound)


class FloodError(TelegramError):
    """Raised if Telegram asks for a delay (status 429).

    The library's RetryAfter isn't used, because it emits a deprecation warning.
    """

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Flood control exceeded. Retry in {retry_after_s:g} seconds")
        self.retry_after_s = retry_after_s


class LostReplyError(NetworkError):
    """Raised if the response to a call was lost, so Telegram may have executed the call."""


def may_be_forwarded(status: int) -> bool:
    """Return whether a proxy with this status may have forwarded the call before it gave up.

    nginx uses 499 if the client has left, and other proxies use their own numbers above 500.
    """
    return status in (HTTPStatus.REQUEST_TIMEOUT, 499) or status >= 500


def describe_network_error(error: Exception, url: str) -> str:
    """Return a clause that says why a call failed: ``the proxy refuses the connection``."""
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
    """Return a clause that says why Telegram can't be used: ``the token is refused (401)``."""
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


def _find_cause(message: str) -> str:
    """Return why Telegram accepts no messages for a chat, or "" if the error doesn't say so."""
    for cause, pattern in _CHAT_REFUSALS.items():
        if re.search(pattern, message.lower()):
            return cause
    return ""


def to_delivery_error(error: TelegramError) -> DeliveryError:
    """Convert an error from Telegram to a DeliveryError."""
    message = error.message
    if isinstance(error, Forbidden | BadRequest):
        cause = _find_cause(message)
        if cause or isinstance(error, Forbidden):
            text = f"Telegram does not let the bot write there: {message}"
            return ChatRefused(text, cause or "no_rights")
    # The library makes BadRequest a subclass of NetworkError, although Telegram answered.
    is_network_error = isinstance(error, NetworkError) and not isinstance(error, BadRequest)
    return DeliveryError(
        f"Telegram refused the message: {message}",
        retry_after_s=error.retry_after_s if isinstance(error, FloodError) else None,
        # If an edit was refused, it would fail again, so a new message must be posted instead.
        is_missing=isinstance(error, BadRequest),
        is_uncertain=isinstance(error, LostReplyError),
        is_unreachable=is_network_error or isinstance(error, _TOKEN_REFUSALS),
    )
