"""The role of the files beside state.db in which words of people may stand, as an erasure sees them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from core.privacy.quoting import Quoting
from core.types import Scope


class Filing(Protocol):
    """History of the terminal, log, copies of notes. Blocks: to be called from a thread."""

    def find(self, scopes: frozenset[Scope], words: Quoting) -> list[str]:
        """Digests of what was typed in the terminal with these words, where that is of these scopes."""

    def erase(
        self, scopes: frozenset[Scope], texts: Sequence[str], words: Quoting, digests: Collection[str]
    ) -> Sequence[str]:
        """Takes `texts`, which were said in `scopes`, longer stretches of them, and what has the words out of every
        file; of what was typed also what has these digests. Returns the files that have some of it and cannot be
        changed."""
