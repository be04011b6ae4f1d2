"""Models in front of models: one whose every call is logged, and one backed by another, so that the assistant never
goes dumb when the first is out of reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import structlog

from config.settings import CacheLife
from core.errors import ModelError, StoreError
from core.ports import Clock, Model, Tell
from core.store.usage import ModelCall, UsageLog
from core.types import CallKind, Completion, Payer, Request


async def ask(
    model: Model, name: str, kind: CallKind, order: str, texts: Sequence[str], *, max_tokens: int, payer: Payer
) -> Completion:
    """One question to the model of this name, outside of any conversation. Raises ModelError."""
    request = Request(
        system=({"type": "text", "text": order},),
        messages=({"role": "user", "content": [{"type": "text", "text": text} for text in texts]},),
        model=name,
        max_tokens=max_tokens,
        kind=kind,
        payer=payer,
    )
    return await model.complete(request, lambda _: None, lambda _: None)


class MeteredModel:
    """Fills the role Model and logs what the calls of `model` used; the server keeps prefixes for `life`. The limits of
    the day are looked at before a turn begins, and here before any other call."""

    def __init__(self, model: Model, usage_log: UsageLog, clock: Clock, life: CacheLife = "5m") -> None:
        self._model = model
        self._usage_log = usage_log
        self._clock = clock
        self._lifetime = timedelta(minutes=5) if life == "5m" else timedelta(hours=1)
        self._log = structlog.get_logger("usage")

    async def check(self, payer: Payer) -> None:
        """Raises LimitReached."""
        await self._usage_log.check(payer, self._clock.now())

    async def complete(self, request: Request, on_text: Tell, on_wait: Tell) -> Completion:
        """Raises ModelError."""
        await self.check(request.payer)
        completion, call = await self.measured(request, on_text, on_wait)
        if call is not None:
            await self.keep(call)
        return completion

    async def measured(self, request: Request, on_text: Tell, on_wait: Tell) -> tuple[Completion, ModelCall | None]:
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


REST = timedelta(seconds=5)  # between two trials of a model that is out of reach
FAILED_TURNS = 2  # in a row, until it is taken to be out of reach for all
TOO_LONG = 413  # nothing is wrong with the model: the conversation has to be continued in a shorter one
REFUSED = (401, 402, 403, 404)  # refused for everybody until somebody mends it; other refusals concern one request


class FallbackModel:
    """Fills the role Model with `first`, and with `second` for the rest of a turn in which `first` failed. When turns
    in a row have failed, `second` answers at once, and one call at a time tries, once, whether `first` is back."""

    def __init__(self, first: Model, second: Model, clock: Clock) -> None:
        self._first = first
        self._second = second
        self._clock = clock
        self._failed: dict[str, tuple[str, str]] = {}
        """By turn since the last answer of `first`, what was wrong, for that turn and for others."""
        self._rests_until = clock.now()
        self._is_tried = False
        self._log = structlog.get_logger("model")

    async def complete(self, request: Request, on_text: Tell, on_wait: Tell) -> Completion:
        """The second model's answer stands below a sentence on what is wrong with the first. Raises ModelError only
        when the conversation is too long."""
        is_open = len(self._failed) >= FAILED_TURNS
        is_resting = is_open and (self._is_tried or self._clock.now() < self._rests_until)
        if is_resting or request.turn in self._failed:
            own = self._failed.get(request.turn)
            sentence = own[0] if own else list(self._failed.values())[-1][1]
        else:
            self._is_tried = is_open
            try:
                completion = await self._first.complete(replace(request, is_trial=is_open), on_text, on_wait)
            except ModelError as error:
                if error.status == TOO_LONG:
                    raise
                self._log.warning("the model is out of reach", error=error.logged)
                sentence = str(error)
                if error.is_retryable or error.status in REFUSED:
                    self._rests_until = self._clock.now() + REST
                    said = sentence, error.logged
                    self._failed = dict([*self._failed.items(), (request.turn, said)][-FAILED_TURNS:])
            else:
                self._failed.clear()
                return completion
            finally:
                self._is_tried = False
        prefix = f"_{sentence}_\n\n"
        completion = await self._second.complete(request, lambda text: on_text(prefix + text), on_wait)
        if not completion.text:
            return completion
        text = prefix + completion.text
        return replace(completion, text=text, blocks=({"type": "text", "text": text},))
