"""A model backed by another: when the first is out of reach the second answers, so the assistant never goes dumb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from core.errors import ModelError
from core.ports import Clock, Model
from core.types import Completion, Request

REST = timedelta(seconds=60)  # after a failure of the first model, so that each round of a turn does not wait anew
TOO_LONG = 413  # nothing is wrong with the model: the conversation has to be continued in a shorter one
REFUSED = (401, 402, 403, 404)  # refused for everybody until somebody mends it; other refusals concern one request


class FallbackModel:
    """Fills the role Model with `first`, and with `second` while `first` fails."""

    def __init__(self, first: Model, second: Model, clock: Clock) -> None:
        self.name = first.name
        self._first = first
        self._second = second
        self._clock = clock
        self._rests_until: datetime | None = None
        self._sentence = ""
        self._log = structlog.get_logger("model")

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """The second model's answer stands below a sentence on what is wrong with the first. Raises ModelError only
        when the conversation is too long."""
        if self._rests_until is None or self._clock.now() >= self._rests_until:
            try:
                completion = await self._first.complete(request, on_text, on_wait)
            except ModelError as error:
                if error.status == TOO_LONG:
                    raise
                self._log.warning("the model is out of reach", error=str(error))
                sentence = str(error)
                if error.is_retryable or error.status in REFUSED:
                    self._sentence = sentence
                    self._rests_until = self._clock.now() + REST
            else:
                self._rests_until = None
                return completion
        else:
            sentence = self._sentence
        prefix = f"_{sentence}_\n\n"
        on_text("")
        completion = await self._second.complete(request, lambda text: on_text(prefix + text), on_wait)
        if not completion.text:
            return completion
        text = prefix + completion.text
        return replace(completion, text=text, blocks=({"type": "text", "text": text},))
