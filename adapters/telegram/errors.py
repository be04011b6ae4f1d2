"""Turns what the Bot API refuses into our errors, with sentences that say what happened.

Knows the server's phrases; decides nothing about trying again.
"""

from __future__ import annotations

import re

from telegram.error import BadRequest, Forbidden, TelegramError

from core.errors import DeliveryError

_GONE = re.compile(
    "chat not found|user is deactivated|group chat was deactivated|peer_id_invalid|user_is_blocked"
    "|not enough rights|have no rights|chat_write_forbidden|bot is not a member|need administrator rights"
    "|chat_restricted|topic_closed"
)
_MISSING = re.compile("message to edit not found|message can't be edited|message_id_invalid")
"""No later edit of that message can succeed, so that it has to be posted anew."""
_FORMATTING = re.compile("entit|can't parse|can't find end|url")


class _Flood(TelegramError):
    """Status 429. The library's own RetryAfter warns of a coming change each time it is made."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"Flood control exceeded. Retry in {retry_after_s:g} seconds")
        self.retry_after_s = retry_after_s


def flood(retry_after_s: float) -> TelegramError:
    """The error for a call that has to wait so many seconds."""
    return _Flood(retry_after_s)


def delay_s(error: TelegramError) -> float | None:
    """How many seconds the server asked to wait, if it did."""
    return error.retry_after_s if isinstance(error, _Flood) else None


def is_said(error: TelegramError, phrase: str) -> bool:
    """Whether the server refused with this phrase (lower case)."""
    return isinstance(error, BadRequest) and phrase in error.message.lower()


def is_about_formatting(error: TelegramError) -> bool:
    """Whether the server complains of entities rather than of the message or the chat."""
    return isinstance(error, BadRequest) and bool(_FORMATTING.search(error.message.lower()))


def delivery(error: TelegramError) -> DeliveryError:
    """The same as an error of ours; raise it `from` the original."""
    said = error.message
    if isinstance(error, Forbidden):
        return DeliveryError(f"Telegram does not let the bot write there: {said}", is_permanent=True)
    if isinstance(error, BadRequest) and _GONE.search(said.lower()):
        return DeliveryError(f"Telegram has no such chat for the bot: {said}", is_permanent=True)
    if isinstance(error, BadRequest) and _MISSING.search(said.lower()):
        return DeliveryError(f"Telegram has no such message to edit: {said}", is_missing=True)
    return DeliveryError(f"Telegram did not take the message: {said}", retry_after_s=delay_s(error))
