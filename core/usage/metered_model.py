"""A model whose every call is logged.

Stands in front of any model and changes nothing of what it says. A log that cannot be written costs nobody an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog

from config.settings import CacheLife
from core.errors import StoreError
from core.ports import Clock, Model
from core.store.usage import ModelCall, UsageLog
from core.types import Completion, Request

LIFETIMES: Mapping[CacheLife, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}


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
        cached_from = self._clock.now() - self._lifetime
        completion = await self._model.complete(request, on_text, on_wait)
        if not (completion.usage.sent or completion.usage.output):
            return completion, None
        return completion, ModelCall(
            kind=request.kind,
            model=completion.model,
            usage=completion.usage,
            at=self._clock.now(),
            payer=request.payer,
            cached_from=cached_from,
        )

    async def keep(self, call: ModelCall) -> None:
        """Logs a call."""
        try:
            await self._usage_log.keep(call)
        except StoreError as error:
            self._log.warning("a call was not logged", error=str(error))
