"""The owner's own files that stand in every prompt: SOUL.md, who the assistant is, and AGENTS.md, what is wanted of it.

They are the owner's word and never left out; of what looks wrong in one the owner is warned, once for what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from core.guard.guard import cleaned, suspicion

NAMES = ("SOUL.md", "AGENTS.md")


class OwnerFiles:
    """Reads the files in `home` anew each time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._warn: Callable[[str, str, str], Awaitable[None]] | None = None

    def connect(self, warn: Callable[[str, str, str], Awaitable[None]]) -> None:
        """Who is to be told what a file contains: its name, the reason, and a digest of what it says."""
        self._warn = warn

    async def text(self, name: str, limit_chars: int) -> str:
        """What the file says, without what nobody can see; empty where there is none. What is too long is cut, with a
        mark."""

        def read() -> tuple[str, str | None, str]:
            try:
                # Editors on Windows open a file with a byte order mark, which is no part of it.
                text = (self._home / name).read_text(encoding="utf-8-sig", errors="replace").strip()
            except OSError:
                return "", None, ""
            shown = text[:limit_chars]
            if len(text) > limit_chars:
                shown += f"\n[{name} is cut here: {len(text) - limit_chars:,} characters more]"
            digest = sha256(text.encode("utf-8", "replace")).hexdigest()
            return cleaned(shown), suspicion(text[:limit_chars]), digest

        text, reason, digest = await asyncio.to_thread(read)
        if reason is not None and self._warn is not None:
            await self._warn(name, reason, digest)
        return text
