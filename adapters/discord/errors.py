"""Converts failures of Discord, the network and the library to `DeliveryError`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import aiohttp
import discord

from core.errors import PAYLOAD_ERRORS, ChatRefused, DeliveryError

# Raised by a call that failed. OSError includes timeouts.
CALL_ERRORS = (discord.DiscordException, aiohttp.ClientError, OSError)

# Error codes of Discord's API.
UNKNOWN_MESSAGE = 10008
UNKNOWN_INTERACTION = 10062
UNKNOWN_WEBHOOK = 10015
ALREADY_ACKNOWLEDGED = 40060
INVALID_WEBHOOK_TOKEN = 50027
THREAD_ARCHIVED = 50083
EXPIRED_INTERACTION_CODES = (
    UNKNOWN_INTERACTION,
    ALREADY_ACKNOWLEDGED,
    UNKNOWN_WEBHOOK,
    INVALID_WEBHOOK_TOKEN,
)

# The reason why Discord accepts no messages for a channel, by error code: see
# `core.errors.ChatRefused`.
_CHAT_REFUSALS = {
    10003: "gone",
    10004: "gone",
    10013: "gone",
    # The bot is banned from the server.
    40007: "gone",
    50001: "no_rights",
    50007: "blocked",
    50008: "no_rights",
    50009: "no_rights",
    50013: "no_rights",
    50083: "closed",
    50278: "blocked",
    160005: "closed",
}

EXPIRED_INTERACTION = "expired: the Discord interaction can no longer be answered"


def describe_error(error: BaseException | None) -> str:
    """Return a clause that says why Discord can't be used: ``Discord refuses the token (401)``."""
    match error:
        case discord.LoginFailure():
            return "Discord refuses the token (401)"
        case discord.ConnectionClosed():
            return f"Discord closed the connection with code {error.code}"
        case discord.HTTPException() | aiohttp.ClientResponseError():
            return f"Discord answers with status {error.status}"
        case socket.gaierror() | aiohttp.ClientConnectorDNSError():
            return "the name of Discord's server cannot be resolved"
        case aiohttp.ClientConnectorError():
            return f"the network does not reach {error.host}:{error.port} ({error.strerror})"
        case discord.gateway.ReconnectWebSocket():
            return "the connection broke"
        case TimeoutError():
            return "Discord does not answer in time"
        case _:
            return f"the connection broke ({type(error).__name__})"


@contextmanager
def translate_errors(
    *, is_interaction: bool = False, is_post: bool = False, is_edit: bool = False
) -> Iterator[None]:
    """Raise DeliveryError for any failure of the call inside the `with` block.

    `is_post` marks calls that create a message. `is_interaction` marks calls that use the token of
    an interaction. If the response of such a call is lost, the error is marked as uncertain. An
    expired token isn't a permanent failure, because the answer can still be sent to the channel.
    `is_edit` marks edits that a new message may replace, so a refusal is marked with `is_missing`.
    """
    may_be_done = is_interaction or is_post
    try:
        yield
    except discord.RateLimited as error:
        message = "Discord asks to slow down"
        raise DeliveryError(message, retry_after_s=error.retry_after) from error
    except discord.InteractionResponded as error:
        raise DeliveryError(EXPIRED_INTERACTION) from error
    except discord.HTTPException as error:
        delivery_error = _response_error(
            error, is_interaction=is_interaction, may_be_done=may_be_done
        )
        if is_edit and delivery_error.is_permanent and not isinstance(delivery_error, ChatRefused):
            delivery_error.is_permanent = False
            delivery_error.is_missing = True
        raise delivery_error from error
    except CALL_ERRORS as error:
        is_unsent = isinstance(error, aiohttp.ClientConnectorError)
        raise DeliveryError(
            f"Discord cannot be reached: {describe_error(error)}",
            is_uncertain=may_be_done and not is_unsent,
            is_unreachable=True,
        ) from error
    except PAYLOAD_ERRORS as error:
        raise DeliveryError(
            f"Discord sent an answer that cannot be read: {error!r}", is_uncertain=may_be_done
        ) from error


def _response_error(
    error: discord.HTTPException, *, is_interaction: bool, may_be_done: bool
) -> DeliveryError:
    """Convert an error status to a DeliveryError with the flags that decide how to continue.

    Status 408 and 429 ask for a delay. Other errors mean that the message no longer exists, that
    the interaction has expired, or that Discord has refused the call.
    """
    details = f"{error.text or 'no reason given'} (status {error.status}, code {error.code})"
    if error.status in (408, 429):
        retry_after = error.response.headers.get("Retry-After", "")
        is_number = retry_after.replace(".", "", 1).isdecimal()
        delay_s = float(retry_after) if is_number else None
        message = f"Discord asks to slow down: {details}"
        return DeliveryError(message, retry_after_s=delay_s, is_unreachable=True)

    # In an archived thread, messages can't be edited, but a new message reopens the thread. Only
    # responses of synchronous webhooks, which Mneme doesn't use, have no method.
    method = getattr(error.response, "method", "")
    is_archived = error.code == THREAD_ARCHIVED and method == "PATCH"
    if error.code == UNKNOWN_MESSAGE or is_archived:
        return DeliveryError(f"Discord can't edit the message: {details}", is_missing=True)
    if is_interaction and (error.status == 404 or error.code in EXPIRED_INTERACTION_CODES):
        return DeliveryError(EXPIRED_INTERACTION)

    # A status of 400 to 499 means that Discord refused the request, so another attempt can't help.
    # A refused token (401) is different: the message can be sent when the token is valid again. So
    # is a page of a proxy, unless it says that the request is too large. Discord sends JSON.
    is_refused = 400 <= error.status < 500 and error.status != HTTPStatus.UNAUTHORIZED
    if not error.response.headers.get("Content-Type", "").startswith("application/json"):
        is_refused = error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    message = f"Discord refused the message: {details}"
    if is_refused and error.code in _CHAT_REFUSALS:
        return ChatRefused(message, _CHAT_REFUSALS[error.code])
    return DeliveryError(
        message,
        is_permanent=is_refused,
        is_uncertain=may_be_done and not is_refused,
        is_unreachable=not is_refused,
    )
