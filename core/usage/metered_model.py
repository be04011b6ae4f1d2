"""A model whose every call is entered in the books, with the reason when its prefix was not in the cache.

Stands in front of any model and changes nothing of what it says. A book that cannot be written costs nobody an answer.

What a request was like, in a few characters: enough to tell later what of it has changed, and none of its words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import structlog

from config.settings import CacheLife
from core.errors import StoreError
from core.models import content_blocks
from core.ports import Clock, Model
from core.store.usage import MissCause, ModelCall, PreviousCall, UsageLog
from core.types import Completion, Json, Request

DIGEST_CHARS = 16
Part = Literal["model", "tools", "system", "messages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFingerprint:
    """Digests of the parts of a request without its cache marks; `blocks` counts those in its messages."""

    model: str
    tools: str
    system: str
    blocks: int
    messages: str

    @classmethod
    def of(cls, request: Request, blocks: int | None = None) -> RequestFingerprint:
        """The imprint of a request, or of what it was with only so many blocks in its messages."""
        bare = content_blocks.unmarked(request)
        row = list(_row(bare.messages))[:blocks]
        return cls(
            model=request.model,
            tools=_digest(bare.tools),
            system=_digest(bare.system),
            blocks=len(row),
            messages=_digest(row),
        )

    @classmethod
    def read(cls, text: str) -> RequestFingerprint:
        """The reverse of `written`."""
        model, tools, system, blocks, messages = json.loads(text)
        return cls(model=model, tools=tools, system=system, blocks=blocks, messages=messages)

    def written(self) -> str:
        """For the store."""
        return json.dumps([self.model, self.tools, self.system, self.blocks, self.messages])

    def broken_by(self, request: Request) -> Part | None:
        """The first part of the request of this imprint, in the order of the cache, that `request` does not go on
        with; None when it extends it."""
        now = RequestFingerprint.of(request, self.blocks)
        if now.model != self.model:
            return "model"
        if now.tools != self.tools:
            return "tools"
        if now.system != self.system:
            return "system"
        return None if (now.blocks, now.messages) == (self.blocks, self.messages) else "messages"


def _row(messages: Sequence[Json]) -> Iterator[list[Any]]:
    for message in messages:
        for block in message["content"]:
            yield [message["role"], block]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()[:DIGEST_CHARS]


LIFETIMES: Mapping[CacheLife, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
"""How long a server keeps a prefix after its last use."""
WHOLE = 0.99
"""A prefix of which this part was read counts as read: servers round."""
_SAID: dict[str, MissCause] = {"model": "model", "system": "system", "tools": "tools", "messages": "messages"}
_ORIGINS: dict[str, MissCause] = {"length": "length", "rights": "rights", "resumed": "resumed", "forget": "forget"}


class MeteredModel:
    """Fills the role Model with `model`, and enters in `tally` what its calls used; prefixes are kept for `life`."""

    def __init__(self, model: Model, tally: UsageLog, clock: Clock, life: CacheLife = "5m") -> None:
        self.name = model.name
        self._model = model
        self._tally = tally
        self._clock = clock
        self._lifetime = LIFETIMES[life]
        self._log = structlog.get_logger("meter")

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """The model's completion. Raises ModelError."""
        before, asked_at = await self._precedent(request), self._clock.now()
        if before.call is not None:
            request = replace(request, previous_id=before.call.reply_id)
        completion = await self._model.complete(request, on_text, on_wait)
        if completion.usage.sent or completion.usage.output:
            # Of what answers without a model, and of a server that counts nothing, there is nothing to enter.
            await self._keep(request, completion, before, asked_at)
        return completion

    async def _precedent(self, request: Request) -> PreviousCall:
        if request.kind != "chat" or request.payer.session_id is None:
            return PreviousCall()
        try:
            return await self._tally.precedent(request.payer.session_id)
        except StoreError as error:
            self._log.warning("the books cannot be read", error=str(error))
            return PreviousCall()

    async def _keep(self, request: Request, completion: Completion, before: PreviousCall, asked_at: datetime) -> None:
        is_chat = request.kind == "chat" and request.payer.session_id is not None
        cause, missed = self._miss(request, completion, before, asked_at) if is_chat else (None, 0)
        call = ModelCall(
            kind=request.kind,
            model=completion.model,
            usage=completion.usage,
            at=self._clock.now(),
            payer=request.payer,
            miss=cause,
            missed=missed,
            reply_id=completion.id if is_chat else None,
            imprint=RequestFingerprint.of(request).written() if is_chat else None,
        )
        try:
            await self._tally.keep(call, before.disturbance)
        except StoreError as error:
            self._log.warning("a call was not entered in the books", error=str(error))
        if cause not in (None, "first"):
            self._log.info("the prefix was not in the cache", cause=cause, tokens=missed)

    def _miss(
        self, request: Request, completion: Completion, before: PreviousCall, asked_at: datetime
    ) -> tuple[MissCause | None, int]:
        """Why not all of the previous request was read from the cache, and how many tokens of it were not."""
        used = completion.usage
        if before.call is None:
            origin = _ORIGINS.get(before.origin or "", "first")
            return (origin, used.sent - used.cache_read) if used.cache_write else (None, 0)
        held = before.call.usage.cache_read + before.call.usage.cache_write
        if used.cache_read >= WHOLE * held:
            return None, 0
        missed = held - used.cache_read
        if before.disturbance is not None:
            return before.disturbance, missed
        if (said := _SAID.get(completion.miss or "")) is not None:
            return said, missed
        broken = RequestFingerprint.read(before.call.imprint).broken_by(request) if before.call.imprint else None
        if broken is not None:
            return broken, missed
        return ("idle" if asked_at - before.call.at > self._lifetime else "evicted"), missed
