"""A model that says what a test wrote down, and keeps every request it was given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from core.types import Completion, Request, Usage


class ScriptedModel:
    """Fills the role Model. Each call takes the next of `script`: a completion, an exception to raise, or a function of
    the request. When the script has run out it answers "ok"."""

    name = "scripted"

    def __init__(self, *script: Completion | Exception | Callable[[Request], Completion]) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.gate: asyncio.Event | None = None
        """When set to an event, a call shows its text and then waits for it."""
        self.began = asyncio.Event()

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        self.requests.append(request)
        step = self.script.pop(0) if self.script else says("ok")
        if isinstance(step, Exception):
            raise step
        completion = step if isinstance(step, Completion) else step(request)
        for end in range(1, len(completion.text) + 1):
            on_text(completion.text[:end])
        self.began.set()
        if self.gate is not None:
            await self.gate.wait()
        return completion

    def sent(self, number: int = -1) -> str:
        """The text blocks of a request's last user message, joined."""
        content = self.requests[number].messages[-1]["content"]
        return "\n".join(block["text"] for block in content if block["type"] == "text")


def says(text: str, stop_reason: str = "end_turn", usage: Usage | None = None) -> Completion:
    """A plain answer."""
    blocks = ({"type": "text", "text": text},) if text else ()
    return Completion(
        blocks=blocks, text=text, stop_reason=stop_reason, usage=usage or Usage(input=10, output=5), model="scripted"
    )


def calls(*named: tuple[str, dict[str, Any]], text: str = "") -> Completion:
    """Tool calls, several of them in parallel, with or without a word before."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for name, arguments in named:
        id = f"toolu_{abs(hash((name, json.dumps(arguments), len(blocks)))):020d}"
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
    return Completion(
        blocks=tuple(blocks), text=text, stop_reason="tool_use", usage=Usage(input=10, output=5), model="scripted"
    )
