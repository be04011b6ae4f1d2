"""A model whose every call is logged, with the reason when its prefix was not in the cache.

Stands in front of any model and changes nothing of what it says. A log that cannot be written costs nobody an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog

from config.settings import CacheLife
from core.errors import StoreError
from core.ports import Clock, Model
from core.store.usage import MissCause, ModelCall, PreviousCall, UsageLog
from core.types import Completion, Request

LIFETIMES: Mapping[CacheLife, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
WHOLE = 0.99  # a prefix of which this part was read counts as read: servers round


class MeteredModel:
    """Fills the role Model and logs what the calls of `model` used; the server keeps prefixes for `life`."""

    def __init__(self, model: Model, usage_log: UsageLog, clock: Clock, life: CacheLife = "5m") -> None:
        self.name = model.name
        self._model = model
        self._usage_log = usage_log
        self._clock = clock
        self._lifetime = LIFETIMES[life]
        self._log = structlog.get_logger("usage")

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """Raises ModelError."""
        completion, call = await self.measured(request, on_text, on_wait)
        if call is not None:
            await self.keep(call)
        return completion

    async def measured(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> tuple[Completion, ModelCall | None]:
        """The same for who logs the call beside the answer; None for what answers without a model, and for a server
        that counts nothing."""
        before, asked_at = await self._previous(request), self._clock.now()
        completion = await self._model.complete(request, on_text, on_wait)
        if not (completion.usage.sent or completion.usage.output):
            return completion, None
        cause, missed = self._miss(completion, before, asked_at)
        if cause not in (None, "first"):
            self._log.info("the prefix was not in the cache", cause=cause, tokens=missed)
        return completion, ModelCall(
            kind=request.kind,
            model=completion.model,
            usage=completion.usage,
            at=self._clock.now(),
            payer=request.payer,
            miss=cause,
            missed=missed,
            disturbance=before.cause,
        )

    async def keep(self, call: ModelCall) -> None:
        """Logs a call."""
        try:
            await self._usage_log.keep(call)
        except StoreError as error:
            self._log.warning("a call was not logged", error=str(error))

    async def _previous(self, request: Request) -> PreviousCall:
        """An empty one for what extends no request: all but the answers in a conversation."""
        if request.kind != "chat" or request.payer.session_id is None:
            return PreviousCall()
        try:
            return await self._usage_log.previous(request.payer.session_id)
        except StoreError as error:
            self._log.warning("the usage log cannot be read", error=str(error))
            return PreviousCall()

    def _miss(self, completion: Completion, before: PreviousCall, asked_at: datetime) -> tuple[MissCause | None, int]:
        """Why not all of the previous request was read from the cache, and how many tokens were not."""
        used, last = completion.usage, before.call
        if last is None:
            return (before.cause, used.sent - used.cache_read) if before.cause and used.cache_write else (None, 0)
        missed = last.usage.cache_read + last.usage.cache_write - used.cache_read
        if used.cache_read >= WHOLE * (missed + used.cache_read):
            return None, 0
        if before.cause is not None:
            return before.cause, missed
        if completion.model != last.model:
            return "model", missed
        return "idle" if asked_at - last.at > self._lifetime else "evicted", missed
