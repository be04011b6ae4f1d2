"""The role of whoever keeps copies of what was said outside of state.db, as an erasure sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.types import Scope


class CopyHolder(Protocol):
    """A memory service, say. Asked once more after a crash."""

    async def forget(
        self, scopes: frozenset[Scope], message_ids: Sequence[int], note_ids: Sequence[int] = ()
    ) -> str | None:
        """Erases the copies made of these messages and of these changes of notes; returns a sentence about what is left
        to do, None: nothing."""

    def let_go(self) -> None:
        """The rows are gone now: what was looked up beforehand, for turns to come, is dropped."""
