"""A model that many ask at once: counts them, answers each by what it was asked, and may be held back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.types import Completion, Request
from tests.doubles.scripted_model import says


class CrowdModel:
    """Fills the role Model. `answer` makes the text of a request's answer from the text it was sent, or an exception to
    raise; None: it never answers. All wait together until `party` of them are there."""

    name = "crowd"

    def __init__(self, answer: Callable[[str], str | Exception | None], party: int = 1) -> None:
        self._answer = answer
        self._party = party
        self._there = asyncio.Condition()
        self.inside = 0
        self.most = 0
        self.sent: list[str] = []
        self.requests: list[Request] = []

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        text = "\n".join(block["text"] for block in request.messages[-1]["content"])
        self.requests.append(request)
        self.sent.append(text)
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            async with self._there:
                self._there.notify_all()
                await self._there.wait_for(lambda: len(self.sent) >= self._party)
            answer = self._answer(text)
            if answer is None:
                await asyncio.Event().wait()
        finally:
            self.inside -= 1
        if isinstance(answer, Exception):
            raise answer
        return says(str(answer))
