"""Sends, edits and deletes the messages of one answer in one Discord channel, thread or direct channel, over HTTP.

Nobody is ever mentioned.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import discord

from adapters.discord.errors import THREAD_ARCHIVED, delivered
from core.errors import DeliveryError
from core.markup.discord import to_discord
from core.markup.render import StyledText
from core.types import Address, Answer

T = TypeVar("T")

PACE_S = 1.2
"""Five edits in five seconds is what one channel allows."""
LIMIT_NONCE, LIMIT_LABEL, LIMIT_BUTTONS, LIMIT_FILES = 25, 80, 25, 10
NOBODY = discord.AllowedMentions(everyone=False, users=False, roles=False, replied_user=False)

log = logging.getLogger(__name__)


class DiscordMessages:
    """One channel, for one answer. `client` gives a client that is logged in, or raises DeliveryError; `is_direct` says
    of a channel's id whether only one person reads there."""

    pace_s = PACE_S
    is_idempotent = True

    def __init__(
        self,
        client: Callable[[], Awaitable[discord.Client]],
        is_direct: Callable[[int], Awaitable[bool]],
        address: Address,
        reply_to: str | None,
        limit_chars: int,
    ) -> None:
        self.limit_chars = limit_chars
        self._client = client
        self._is_direct = is_direct
        self._address = address
        self._reply_to = int(reply_to) if reply_to and reply_to.isdecimal() else None

    def measure(self, part: StyledText) -> int:
        """Code points of the text as it is sent."""
        return len(to_discord(part))

    async def typing(self) -> None:
        """Failure is ignored: the message itself will show it."""
        try:
            with delivered():
                await (await self._channel()).typing()
        except DeliveryError as error:
            log.debug("Discord did not show typing: %s", error)

    async def prepare(self, answer: Answer) -> None:
        """A private answer is given in a direct chat only: elsewhere everybody would read it."""
        if answer.is_private and not await self._is_direct((await self._channel()).id):
            raise DeliveryError("expired: a private answer cannot be given in a room", is_permanent=True)

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """Discord has none."""
        return False

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """The same `nonce` within some minutes makes no second message: Discord gives back the first, as it was, so it
        is then edited to what it should show."""
        channel = await self._channel()
        options = dressed(answer)
        if self._reply_to is not None:
            options["reference"] = discord.MessageReference(
                message_id=self._reply_to, channel_id=channel.id, fail_if_not_exists=False
            )
        key = hashlib.sha256(nonce.encode()).hexdigest()[:LIMIT_NONCE]

        text = to_discord(part)
        message = await self._insisted(lambda: channel.send(text, nonce=key, allowed_mentions=NOBODY, **options))
        if message.content.split() != text.split():
            await self.edit(str(message.id), part, answer)
        self._reply_to = None  # the parts that follow stand under the first
        return str(message.id)

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone."""
        message = (await self._channel()).get_partial_message(int(message_id))
        text = to_discord(part)
        await self._insisted(lambda: message.edit(content=text, allowed_mentions=NOBODY, **changed(answer)))

    async def remove(self, message_id: str) -> None:
        """A message that is gone already is no error."""
        message = (await self._channel()).get_partial_message(int(message_id))
        try:
            with delivered():
                await message.delete()
        except DeliveryError as error:
            if not error.is_missing:
                raise

    async def _channel(self) -> discord.PartialMessageable:
        client = await self._client()
        channel_id = self._address.thread_id or self._address.chat_id
        if not channel_id.isdecimal():
            raise DeliveryError(f"{self._address.key} is no channel of Discord", is_permanent=True)
        return client.get_partial_messageable(int(channel_id))

    async def _insisted(self, call: Callable[[], Awaitable[T]]) -> T:
        """Opens an archived thread once more; only a locked one stays closed."""
        try:
            with delivered():
                return await call()
        except DeliveryError as error:
            cause = error.__cause__
            if not isinstance(cause, discord.HTTPException) or cause.code != THREAD_ARCHIVED:
                raise
        with delivered():
            client = await self._client()
            thread = await client.fetch_channel(int(self._address.thread_id or self._address.chat_id))
            if isinstance(thread, discord.Thread):
                await thread.edit(archived=False)
            return await call()


def dressed(answer: Answer | None) -> dict[str, Any]:
    """Buttons and files for a new message, as arguments of the library."""
    view = {"view": _view(answer)} if answer is not None and answer.buttons else {}
    return view | ({"files": _files(answer)} if answer is not None and answer.files else {})


def changed(answer: Answer | None) -> dict[str, Any]:
    """The same for an edit: a draft leaves buttons alone, the final answer sets or removes them."""
    if answer is None:
        return {}
    view = {"view": _view(answer) if answer.buttons else None}
    return view | ({"attachments": _files(answer)} if answer.files else {})


def _view(answer: Answer) -> discord.ui.View:
    """Buttons are rows of ours, so the library need not remember them: a stopped view is sent and forgotten."""
    view = discord.ui.View(timeout=None)
    for button in answer.buttons[:LIMIT_BUTTONS]:
        label = button.label if len(button.label) <= LIMIT_LABEL else button.label[: LIMIT_LABEL - 1] + "…"
        view.add_item(discord.ui.Button(label=label, custom_id=button.id))
    view.stop()
    return view


def _files(answer: Answer) -> list[discord.File]:
    return [discord.File(io.BytesIO(file.content), filename=file.name) for file in answer.files[:LIMIT_FILES]]
