"""A memory made of memories: asks them side by side, each in its time box, and joins what is not empty.

The agent cannot tell one from many. A memory that fails or hangs is logged and skipped; the turn goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import structlog

from core.memory.provider import MemoryProvider
from core.types import Message, Session, Tool, ToolContext

T = TypeVar("T")


class Memory(MemoryProvider):
    """The fan-out over `providers`, in their order; `timeout_s` is the time box of each call."""

    name = "memory"

    def __init__(self, providers: Sequence[MemoryProvider], timeout_s: float = 2.0) -> None:
        self._providers = tuple(providers)
        self._timeout_s = timeout_s
        self._log = structlog.get_logger("memory")

    async def system_prompt_block(self, context: ToolContext) -> str:
        blocks = await self._gather([(provider, provider.system_prompt_block(context)) for provider in self._providers])
        return "\n\n".join(block.strip() for block in blocks if block.strip())

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        answers = await self._gather([(provider, provider.prefetch(text, context)) for provider in self._providers])
        return [line for lines in answers for line in lines if line.strip()]

    async def sync_turn(self, session: Session, messages: Sequence[Message]) -> None:
        await self._gather([(provider, provider.sync_turn(session, messages)) for provider in self._providers])

    def tools(self) -> Sequence[Tool]:
        return [tool for provider in self._providers for tool in provider.tools()]

    async def _gather(self, calls: Sequence[tuple[MemoryProvider, Awaitable[T]]]) -> list[T]:
        async def boxed(provider: MemoryProvider, call: Awaitable[T]) -> list[T]:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return [await call]
            except TimeoutError:
                self._log.warning("a memory took too long and was skipped", provider=provider.name)
            except Exception:
                self._log.exception("a memory failed and was skipped", provider=provider.name)
            return []

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(boxed(provider, call)) for provider, call in calls]
        return [answer for task in tasks for answer in task.result()]
