"""Turns what Discord and the network refuse into DeliveryErrors; decides nothing about trying again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import aiohttp
import discord

from core.errors import DeliveryError

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
"""What the library raises for a payload that is shaped otherwise than it expects."""
UNREACHABLE = (discord.DiscordException, aiohttp.ClientError, OSError)
"""What a call raises that did not come through; timeouts are OSErrors."""

UNKNOWN_MESSAGE = 10008
THREAD_ARCHIVED = 50083
EXPIRED = (10062, 40060, 10015, 50027)
"""Unknown interaction, acknowledged already, unknown webhook, invalid webhook token."""
TRY_AGAIN_STATUS = (408, 429)


@contextlib.contextmanager
def delivered() -> Iterator[None]:
    """Around a call for a channel."""
    try:
        yield
    except UNREACHABLE as error:
        raise _delivery(error) from error
    except UNREADABLE as error:
        raise DeliveryError(f"Discord gave an answer that cannot be read: {error!r}") from error


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Around a call with the token of an interaction: a dead token is a permanent error that says so."""
    try:
        with delivered():
            yield
    except DeliveryError as error:
        cause = error.__cause__
        is_gone = isinstance(cause, discord.NotFound) and cause.code != UNKNOWN_MESSAGE
        is_dead = isinstance(cause, discord.HTTPException) and (is_gone or cause.code in EXPIRED)
        if is_dead or isinstance(cause, discord.InteractionResponded):
            raise expired() from cause
        raise


def expired() -> DeliveryError:
    return DeliveryError("expired: the Discord interaction can no longer be answered", is_permanent=True)


def _delivery(error: Exception) -> DeliveryError:
    if isinstance(error, discord.RateLimited):
        return DeliveryError("Discord asks to slow down", retry_after_s=error.retry_after)
    if not isinstance(error, discord.HTTPException):
        return DeliveryError(f"Discord cannot be reached: {type(error).__name__}: {error}")
    said = f"{error.text or 'no reason given'} (status {error.status}, code {error.code})"
    if error.status in TRY_AGAIN_STATUS:
        return DeliveryError(f"Discord asks to slow down: {said}", retry_after_s=_delay_s(error))
    if error.code == UNKNOWN_MESSAGE:
        return DeliveryError(f"Discord has no such message any more: {said}", is_missing=True)
    # Another try of a request that was understood and refused cannot help.
    return DeliveryError(f"Discord did not take the message: {said}", is_permanent=400 <= error.status < 500)


def _delay_s(error: discord.HTTPException) -> float | None:
    try:
        return float(error.response.headers.get("Retry-After", ""))
    except ValueError:
        return None
