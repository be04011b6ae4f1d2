"""What a request was like, in a few characters: enough to tell later what of it has changed, and none of its words.

A request that extends an earlier one has the same model, tools and system, and begins with the same blocks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.models import content_blocks
from core.types import Json, Request

DIGEST_CHARS = 16
Part = Literal["model", "tools", "system", "messages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imprint:
    """Digests of the parts of a request without its cache marks; `blocks` counts those in its messages."""

    model: str
    tools: str
    system: str
    blocks: int
    messages: str

    @classmethod
    def of(cls, request: Request, blocks: int | None = None) -> Imprint:
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
    def read(cls, text: str) -> Imprint:
        """The reverse of `written`."""
        model, tools, system, blocks, messages = json.loads(text)
        return cls(model=model, tools=tools, system=system, blocks=blocks, messages=messages)

    def written(self) -> str:
        """For the store."""
        return json.dumps([self.model, self.tools, self.system, self.blocks, self.messages])

    def broken_by(self, request: Request) -> Part | None:
        """The first part of the request of this imprint, in the order of the cache, that `request` does not go on
        with; None when it extends it."""
        now = Imprint.of(request, self.blocks)
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
