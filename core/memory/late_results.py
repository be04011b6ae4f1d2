"""Keeps what a memory found too late, or beforehand, until the next turn of the same conversation asks for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from core.types import Scope, ToolContext

SESSIONS = 64
"""What was found for so many conversations is kept; of others, what is oldest goes."""


class Shelf:
    """Lines by session and by what could be seen then: where less or more may be seen since, they are not given."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[int, frozenset[Scope]], tuple[str, ...]] = OrderedDict()

    def put(self, context: ToolContext, lines: Sequence[str]) -> None:
        """Keeps lines, in place of those that were there."""
        key = (context.session.id, context.scopes)
        self._held.pop(key, None)
        self._held[key] = tuple(lines)
        while len(self._held) > SESSIONS:
            self._held.popitem(last=False)

    def take(self, context: ToolContext) -> tuple[str, ...]:
        """What is there, which is not there any more then."""
        return self._held.pop((context.session.id, context.scopes), ())
