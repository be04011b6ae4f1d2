"""The owner's own files that stand in every prompt: SOUL.md, who the assistant is, and AGENTS.md, what he wants of it.

What reads like an order from elsewhere is left out until the owner says that he means it; then it stands as long as the
file says the same. Never writes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path

from core.errors import Refused
from core.guard.guard import suspicion
from core.store.notes import Approvals

NAMES = ("SOUL.md", "AGENTS.md")


class OwnerFiles:
    """Reads the files in `home` anew each time; `seals` remember what the owner has approved."""

    def __init__(self, home: Path, seals: Approvals) -> None:
        self._home = home
        self._seals = seals
        self._summon: Callable[[str, str, str], Awaitable[None]] | None = None

    def connect(self, summon: Callable[[str, str, str], Awaitable[None]]) -> None:
        """Who is to be told that a file is left out: its name, the reason, and a digest of what it says."""
        self._summon = summon

    async def text(self, name: str, limit_chars: int) -> tuple[str, str]:
        """What the file says, or a sentence on why it says nothing. What is too long is cut, with a mark."""
        text, reason = await self._read(name)
        if reason is not None:
            if self._summon is not None:
                await self._summon(name, reason, _digest(text))
            return "", f"({name} was left out: it contains {reason}.)"
        if len(text) > limit_chars:
            text = f"{text[:limit_chars]}\n[{name} is cut here: {len(text) - limit_chars:,} characters more]"
        return text, ""

    async def left_out(self) -> Sequence[tuple[str, str]]:
        """The files that stand in no prompt, each with what it contains."""
        read = [(name, (await self._read(name))[1]) for name in NAMES]
        return [(name, reason) for name, reason in read if reason is not None]

    async def approve(self, name: str) -> str:
        """Lets a file stand as it is now. Raises Refused when it is not left out."""
        text, reason = await self._read(name)
        if reason is None:
            raise Refused(f"{name} is not left out, so there is nothing to approve.")
        await self._seals.put(name, _digest(text))
        return f"{name} stands in the prompts of new conversations from now on, as long as it says what it says now."

    async def _read(self, name: str) -> tuple[str, str | None]:
        """What it says, and why it is left out."""

        def read() -> tuple[str, str | None]:
            try:
                # Editors on Windows open a file with a byte order mark, which is nothing to be suspicious of.
                text = (self._home / name).read_text(encoding="utf-8-sig", errors="replace").strip()
            except OSError:
                return "", None
            return text, suspicion(text)

        text, reason = await asyncio.to_thread(read)
        return text, None if reason and await self._seals.has(name, _digest(text)) else reason


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()
