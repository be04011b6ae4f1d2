"""Sends, edits and deletes the messages of one answer: in a Discord channel, or with the token of an interaction. What
Discord and the network refuse becomes errors of ours.

Nobody is ever mentioned, as the client says with every message. What is meant for one person is ephemeral or stands in
a direct chat.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import discord

from core.errors import DeliveryError
from core.markup.discord import to_discord
from core.markup.markdown import StyledText
from core.types import Address, Answer

if TYPE_CHECKING:
    from adapters.discord.events import DiscordEvents

LIMIT_NONCE, LIMIT_LABEL, LIMIT_BUTTONS, LIMIT_FILES = 25, 80, 25, 10

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
"""What the library raises for a payload that is shaped otherwise than it expects."""
UNREACHABLE = (discord.DiscordException, aiohttp.ClientError, OSError)
"""What a call raises that did not come through; timeouts are OSErrors."""
UNKNOWN_MESSAGE, THREAD_ARCHIVED, ACKNOWLEDGED = 10008, 50083, 40060
EXPIRED = (10062, ACKNOWLEDGED, 10015, 50027)
"""Unknown interaction, acknowledged already, unknown webhook, invalid webhook token."""
DEAD_TOKEN = "expired: the Discord interaction can no longer be answered"

log = logging.getLogger(__name__)


def reason(error: BaseException | None) -> str:
    """What stands between us and Discord, as a clause."""
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
def delivered(*, has_token: bool = False) -> Iterator[None]:
    """Around a call. One with the token of an interaction has no nonce: it may have come through where its answer did
    not come back; and a dead token forbids no other way to the person."""
    try:
        yield
    except discord.RateLimited as error:
        raise DeliveryError("Discord asks to slow down", retry_after_s=error.retry_after) from error
    except discord.InteractionResponded as error:
        raise DeliveryError(DEAD_TOKEN) from error
    except (*UNREACHABLE, *UNREADABLE) as error:
        raise _delivery(error, has_token=has_token) from error


def _delivery(error: Exception, *, has_token: bool) -> DeliveryError:
    if not isinstance(error, discord.HTTPException):
        is_answer = not isinstance(error, UNREACHABLE)
        said = f"gave an answer that cannot be read: {error!r}" if is_answer else f"cannot be reached: {reason(error)}"
        is_unsent = isinstance(error, aiohttp.ClientConnectorError)
        return DeliveryError(f"Discord {said}", is_uncertain=has_token and not is_unsent)
    said = f"{error.text or 'no reason given'} (status {error.status}, code {error.code})"
    if error.status in (408, 429):
        asked_s = error.response.headers.get("Retry-After", "")
        delay_s = float(asked_s) if asked_s.replace(".", "", 1).isdecimal() else None
        return DeliveryError(f"Discord asks to slow down: {said}", retry_after_s=delay_s)
    # In an archived thread nothing can be edited; a new message opens it again.
    is_archived = error.code == THREAD_ARCHIVED and error.response.method == "PATCH"
    if error.code == UNKNOWN_MESSAGE or is_archived:
        return DeliveryError(f"Discord has no such message to edit: {said}", is_missing=True)
    if has_token and (error.status == 404 or error.code in EXPIRED):
        return DeliveryError(DEAD_TOKEN)
    # Another try of a request that was understood and refused cannot help.
    is_refused = 400 <= error.status < 500
    said = f"Discord did not take the message: {said}"
    return DeliveryError(said, is_permanent=is_refused, is_uncertain=has_token and not is_refused)


class _Messages:
    """What a `MessageApi` of Discord is in any case."""

    limit_chars = 2000
    """Discord announces more in places, but this is what every kind of message takes."""
    pace_s = 1.2
    """Five edits in five seconds is what one channel allows."""

    def measure(self, part: StyledText) -> int:
        """Code points of the text as it is sent."""
        return len(to_discord(part))

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """Discord has none."""
        return False


class DiscordMessages(_Messages):
    """One channel, thread or direct chat, for one answer. `reply_to`: a message, or `@` and the id of the person for
    whom a private answer is."""

    is_idempotent = True

    def __init__(self, events: DiscordEvents, address: Address, reply_to: str | None) -> None:
        self._events = events
        self._channel_id = address.thread_id or address.chat_id
        self._reply_to = int(reply_to) if reply_to and reply_to.isdecimal() else None
        self._person_id = int(reply_to[1:]) if reply_to and reply_to.startswith("@") else None
        self._is_typing = False

    async def typing(self) -> None:
        """Never waited for, since Discord may ask for patience; and never cancelled, since the library would then hold
        up every other call for good."""
        if not self._is_typing:
            self._is_typing = True
            self._events.start(self._type())

    async def prepare(self, answer: Answer) -> None:
        """A private answer is given in a direct chat only: elsewhere everybody would read it."""
        if not answer.is_private:
            return
        channel = await self._channel()
        with delivered():
            place = await self._events.locate(channel.id)
            if place is not None and place.is_direct:
                return
            if self._person_id is None:
                raise DeliveryError("expired: a private answer cannot be given in a room", is_permanent=True)
            client = await self._events.client()
            self._channel_id = str((await client.create_dm(discord.Object(self._person_id))).id)

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """The same `nonce` within some minutes makes no second message: Discord gives back the first, as it was, so it
        is then edited to what it should show."""
        channel = await self._channel()
        options = dressed(answer)
        if self._reply_to is not None:
            answered = channel.get_partial_message(self._reply_to)
            options["reference"] = answered.to_reference(fail_if_not_exists=False)
        key = hashlib.sha256(nonce.encode()).hexdigest()[:LIMIT_NONCE]
        text = to_discord(part)
        with delivered():
            message = await channel.send(text, nonce=key, **options)
        if message.content.split() != text.split():
            await self.edit(str(message.id), part, answer)
        self._reply_to = None  # the parts that follow stand under the first
        return str(message.id)

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone."""
        message = (await self._channel()).get_partial_message(int(message_id))
        with delivered():
            await message.edit(content=to_discord(part), **dressed(answer, is_edit=True))

    async def remove(self, message_id: str) -> None:
        message = (await self._channel()).get_partial_message(int(message_id))
        with delivered():
            await message.delete()

    async def _type(self) -> None:
        try:
            with delivered():
                await (await self._channel()).typing()
        except DeliveryError as error:
            log.debug("Discord did not show typing: %s", error)
        finally:
            self._is_typing = False

    async def _channel(self) -> discord.PartialMessageable:
        client = await self._events.client()
        if not self._channel_id.isdecimal():
            raise DeliveryError(f"{self._channel_id} is no channel of Discord", is_permanent=True)
        return client.get_partial_messageable(int(self._channel_id))


class DiscordInteraction(_Messages):
    """One interaction. `is_private`: ephemeral, fixed with the first thing that is sent. States: nothing sent yet;
    deferred ("thinking", the response is done); answered. The lock keeps the deferral and the answer apart."""

    is_idempotent = False

    def __init__(self, interaction: discord.Interaction[discord.Client], *, is_private: bool) -> None:
        self._interaction = interaction
        self._is_private = self._was_private = is_private
        self._lock = asyncio.Lock()
        self._is_answered = False

    async def defer(self) -> None:
        """Acknowledges where there is still no answer. Never raises."""
        async with self._lock:
            if self._is_answered:
                return
            try:
                with delivered(has_token=True):
                    await self._interaction.response.defer(ephemeral=self._is_private, thinking=True)
            except DeliveryError as error:
                log.warning("Discord did not take the deferral of interaction %d: %s", self._interaction.id, error)

    async def dismiss(self) -> None:
        """Ends an interaction that gets no answer: acknowledged, and nothing stays to be seen. Never raises."""
        async with self._lock:
            if self._is_answered:
                return
            self._is_answered = True
            response = self._interaction.response
            # A press that was not deferred shows nothing that could be deleted.
            is_seen = response.is_done() or self._interaction.type is not discord.InteractionType.component
            try:
                with delivered(has_token=True):
                    if not response.is_done():
                        await response.defer(ephemeral=True, thinking=is_seen)
                    if is_seen:
                        await self._interaction.delete_original_response()
            except DeliveryError as error:
                log.info("Interaction %d could not be dismissed: %s", self._interaction.id, error)

    async def typing(self) -> None:
        """Nothing to do: the deferral shows that an answer is being worked on."""

    async def prepare(self, answer: Answer) -> None:
        """Before a private answer a public deferral is deleted, and what comes is ephemeral."""
        async with self._lock:
            if self._is_private or not answer.is_private:
                return
            self._is_private = True
            if self._interaction.response.is_done() and not self._is_answered:
                self._is_answered = True
                with delivered(has_token=True):
                    await self._interaction.delete_original_response()

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """The first one answers the interaction or fills its deferred message, later ones follow it."""
        async with self._lock:
            with delivered(has_token=True):
                message_id = await self._send(to_discord(part), answer)
            self._is_answered = True
            return str(message_id)

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone."""
        shown = {"content": to_discord(part), **dressed(answer, is_edit=True)}
        with delivered(has_token=True):
            await self._interaction.followup.edit_message(int(message_id), **shown)

    async def remove(self, message_id: str) -> None:
        with delivered(has_token=True):
            await self._interaction.followup.delete_message(int(message_id))

    async def _send(self, text: str, answer: Answer | None) -> int:
        interaction = self._interaction
        options = {"ephemeral": self._is_private, **dressed(answer)}
        if self._is_answered:
            return (await interaction.followup.send(text, wait=True, **options)).id
        if not interaction.response.is_done():
            try:
                response = await interaction.response.send_message(text, **options)
                return response.message_id or (await interaction.original_response()).id
            except discord.HTTPException as error:
                # An earlier try came through, of which nobody heard. What it shows in public stays without secrets.
                if error.code != ACKNOWLEDGED or self._is_private != self._was_private:
                    raise
        return (await interaction.edit_original_response(content=text, **dressed(answer, is_edit=True))).id


def dressed(answer: Answer | None, *, is_edit: bool = False) -> dict[str, Any]:
    """Buttons and files as arguments of the library. A draft leaves buttons alone, the final answer sets or removes
    them."""
    if answer is None:
        return {}
    view = {"view": _view(answer) if answer.buttons else None} if answer.buttons or is_edit else {}
    files = [discord.File(io.BytesIO(file.content), filename=file.name) for file in answer.files[:LIMIT_FILES]]
    return view | ({"attachments" if is_edit else "files": files} if files else {})


def _view(answer: Answer) -> discord.ui.View:
    """Buttons are rows of ours, so the library need not remember them: a stopped view is sent and forgotten."""
    view = discord.ui.View(timeout=None)
    for button in answer.buttons[:LIMIT_BUTTONS]:
        label = button.label if len(button.label) <= LIMIT_LABEL else button.label[: LIMIT_LABEL - 1] + "…"
        view.add_item(discord.ui.Button(label=label, custom_id=button.id))
    view.stop()
    return view
