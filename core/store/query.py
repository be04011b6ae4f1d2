"""What a query means to the text indexes: which of them to ask, and for what. Made by `query.py`, run by the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Route = Literal["words", "trigram", "pairs"]
"""words -> messages_fts · three or more unspaced characters -> messages_fts_trigram · one or two, and emoji ->
messages_fts_pairs."""

Clause = tuple[Route, str, bool]
"""An index, an FTS5 expression that it accepts, and whether what matches is left out instead of kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A message is found when all clauses of one alternative hold; a plan without alternatives finds nothing.

    ranking: one expression a route, any of the wanted terms; the sum of their bm25 orders what was found. terms: what
    to mark in a text, folded; ``ferr*`` is a prefix, a blank stands between the words of a phrase. is_typed: the
    query was taken as it was typed. is_loose: any of the words is enough. without: where nothing is typed but what to
    leave out; a message with all expressions of one of these is left out.
    """

    alternatives: tuple[tuple[Clause, ...], ...] = ()
    ranking: tuple[tuple[Route, str], ...] = ()
    terms: tuple[str, ...] = ()
    is_typed: bool = True
    is_loose: bool = False
    without: tuple[tuple[tuple[Route, str], ...], ...] = ()

    @property
    def single(self) -> tuple[Route, str] | None:
        """The one expression that says all, when one index can answer alone."""
        if len(self.alternatives) == 1 and len(self.alternatives[0]) == 1:
            route, expression, _ = self.alternatives[0][0]
            return route, expression
        return None
