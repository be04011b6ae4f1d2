"""Several rankings of the same things become one, by reciprocal rank. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

DAMPING = 2
"""How little first places count more than later ones: the constant of Cormack, Clarke and Buettcher, "Reciprocal rank
fusion" (2009). Theirs is 60, for long lists; of ten sessions the first is the one that matters."""


def fused(rankings: Sequence[tuple[float, Sequence[K]]], damping: int = DAMPING) -> dict[K, float]:
    """What stands in any of the `rankings`, (weight, things, best first), with its score, best first: the sum of weight
    by ``damping + rank``. Of equals the one that an earlier ranking has comes first. A thing counts once a ranking."""
    scores: dict[K, float] = {}
    for weight, things in rankings:
        for rank, thing in enumerate(dict.fromkeys(things), 1):
            scores[thing] = scores.get(thing, 0.0) + weight / (damping + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))
