"""Answers one interaction: at once while it is quick, into a deferred message when it is not.

What is meant for one person is ephemeral and never becomes anything else; a dead token is a permanent error.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import timedelta

import discord

from adapters.discord.errors import answered, expired
from adapters.discord.messages import NOBODY, PACE_S, changed, dressed
from core.errors import DeliveryError
from core.markup.discord import to_discord
from core.markup.render import StyledText
from core.ports import Clock
from core.types import Answer

LIVES_FOR = timedelta(minutes=15)
LIMIT_CHARS = 2000
"""Whatever messages may hold, follow-ups of interactions are described with this limit."""

log = logging.getLogger(__name__)


class DiscordInteraction:
    """The `MessageApi` of one interaction. `is_private`: ephemeral, fixed with the first thing that is sent.

    States: nothing sent yet; deferred ("thinking"); answered. The lock keeps the deferral and the answer apart.
    """

    pace_s = PACE_S
    is_idempotent = True

    def __init__(
        self,
        interaction: discord.Interaction[discord.Client],
        clock: Clock,
        *,
        is_private: bool,
        limit_chars: int = LIMIT_CHARS,
    ) -> None:
        self.limit_chars = min(limit_chars, LIMIT_CHARS)
        self.is_private = is_private
        self._interaction = interaction
        self._clock = clock
        self._ends_at = clock.now() + LIVES_FOR
        self._lock = asyncio.Lock()
        self._settled = asyncio.Event()
        self._is_deferred = False
        self._is_answered = False
        self._public: list[str] = []
        self._lost: DeliveryError | None = None

    async def defer_after(self, seconds: float) -> None:
        """Acknowledges when there is still no answer after so many seconds. Never raises: a dead token is remembered
        and raised by the next call."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()
                return
        async with self._lock:
            if self._is_answered or self._lost:
                return
            try:
                with answered():
                    await self._interaction.response.defer(ephemeral=self.is_private, thinking=True)
                self._is_deferred = True
            except DeliveryError as error:
                self._lost = error if error.is_permanent else None
                log.warning("Discord did not take the deferral of interaction %d: %s", self._interaction.id, error)

    def settle(self) -> None:
        self._settled.set()

    async def dismiss(self) -> None:
        """Ends an interaction that gets no answer: acknowledged, and nothing stays to be seen. Never raises."""
        self.settle()
        async with self._lock:
            if self._is_answered or self._lost:
                return
            self._is_answered = True
            is_press = self._interaction.type is discord.InteractionType.component
            try:
                with answered():
                    if not self._is_deferred:
                        await self._interaction.response.defer(ephemeral=True, thinking=not is_press)
                    if self._is_deferred or not is_press:
                        await self._interaction.delete_original_response()
            except DeliveryError as error:
                log.info("Interaction %d could not be dismissed: %s", self._interaction.id, error)

    async def prepare(self, answer: Answer) -> None:
        """Before a private answer what stands in public is deleted, and what comes is ephemeral."""
        async with self._lock:
            if self.is_private or not answer.is_private:
                return
            self.is_private = True
            if not self._is_deferred and not self._public:
                return
            self._check()
            with answered():
                if self._is_deferred and not self._is_answered:
                    self._is_answered = True
                    await self._interaction.delete_original_response()
                while self._public:
                    await self._interaction.followup.delete_message(int(self._public.pop()))

    def measure(self, part: StyledText) -> int:
        return len(to_discord(part))

    async def typing(self) -> None:
        """Nothing to do: the deferral shows that an answer is being worked on."""

    async def draft(self, part: StyledText, nonce: str) -> bool:
        """Discord has none."""
        return False

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """The first one answers the interaction or fills its deferred message, later ones follow it."""
        async with self._lock:
            self._check()
            with answered():
                message_id = await self._send(to_discord(part), answer)
            if not self.is_private:
                self._public.append(str(message_id))
            self._is_answered = True
            self.settle()
            return str(message_id)

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Raises a DeliveryError with `is_missing` when the message is gone."""
        self._check()
        with answered():
            await self._interaction.followup.edit_message(
                int(message_id), content=to_discord(part), allowed_mentions=NOBODY, **changed(answer)
            )

    async def remove(self, message_id: str) -> None:
        """A message that is gone already is no error."""
        self._check()
        try:
            with answered():
                await self._interaction.followup.delete_message(int(message_id))
        except DeliveryError as error:
            if not error.is_missing:
                raise

    async def _send(self, text: str, answer: Answer | None) -> int:
        interaction = self._interaction
        if self._is_deferred and not self._is_answered:
            changes = {"content": text, "allowed_mentions": NOBODY, **changed(answer)}
            return (await interaction.edit_original_response(**changes)).id
        options = {"ephemeral": self.is_private, "allowed_mentions": NOBODY, **dressed(answer)}
        if self._is_answered:
            return (await interaction.followup.send(text, wait=True, **options)).id
        response = await interaction.response.send_message(text, **options)
        return response.message_id or (await interaction.original_response()).id

    def _check(self) -> None:
        if self._lost is None and self._clock.now() >= self._ends_at:
            self._lost = expired()
        if self._lost is not None:
            raise self._lost
