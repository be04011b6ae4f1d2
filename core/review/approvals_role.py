"""The role of whoever remembers which of the owner's files he has approved as they are."""

from __future__ import annotations

from typing import Protocol


class Seals(Protocol):
    """By the name of a file and the digest of what it says; the last one of each name counts."""

    async def put(self, name: str, digest: str) -> None:
        """The file is approved as long as it says this."""

    async def has(self, name: str, digest: str) -> bool:
        """Whether that was approved."""
