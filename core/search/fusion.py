"""Merge several ranked lists into one by reciprocal rank fusion.

The method is described in: G. V. Cormack, C. L. A. Clarke, S. Buettcher, "Reciprocal rank fusion
outperforms Condorcet and individual rank learning methods" (SIGIR 2009).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from core.store.query import MessageMatch

DAMPING = 2
"""The higher the damping, the smaller the lead of the first items in a list. The paper uses 60 for
long lists. Here, the first of ten sessions matters most."""
NEAR_WEIGHT = 1 / 3
"""The weight of messages that were found by the meaning of a question.

Messages that were found by words have the weight 1. On chats of real people, the messages found by
meaning add 0 / 0.5 points to hit@1 / hit@5 with multilingual-e5-small. With equal weights, the
results get worse.
"""
NEAR_REMARK_WEIGHT = 1.5
"""The weight of messages that were found by the meaning of a remark: "the dog chewed up my shoes".

A remark has few words in common with the messages that fit it, so meaning counts more. Measured on
73 remarks about LoCoMo's conversations; see `docs/recall.md`.
"""

K = TypeVar("K", bound=Hashable)


class RankedMatches(NamedTuple):
    """The messages and lineages that a search found, best first."""

    # The score of each lineage, by root id.
    scores: Mapping[int, float]
    matches: list[MessageMatch]
    # The text of the query, with the terms that were added to it.
    text: str
    # Maps typed words that no message contains to the words that were searched instead.
    corrections: Mapping[str, str]


class RankedList(NamedTuple):
    """A ranked list of messages from a source other than the words of the query.

    For example, they were found by their meaning.
    """

    # The weight of the list. The list of messages that were found by words has the weight 1.
    weight: float
    # The ids of the messages, best first.
    message_ids: Sequence[int]
    # Patterns that are highlighted in the texts because of this list.
    highlights: Sequence[str] = ()


class WeightedMatches(NamedTuple):
    """A ranked list with its weight. It contains only messages that the query may see."""

    weight: float
    matches: Sequence[MessageMatch]


def fuse_rankings(
    rankings: Sequence[tuple[float, Sequence[K]]], damping: int = DAMPING
) -> dict[K, float]:
    """Return each item with its score, best first.

    An item's score is the sum of weight / (damping + rank) over all rankings. Each ranking consists
    of its weight and its items, best first. Items with equal scores keep the order in which they
    first appear.
    """
    scores: dict[K, float] = {}
    for weight, items in rankings:
        for rank, item in enumerate(dict.fromkeys(items), 1):
            scores[item] = scores.get(item, 0.0) + weight / (damping + rank)
    return dict(sorted(scores.items(), key=lambda entry: -entry[1]))


def fuse_matches(ranking: RankedMatches, others: Sequence[WeightedMatches]) -> RankedMatches:
    """Fuse the ranking of a search with other lists of messages.

    Messages and lineages are fused separately. Without other lists, the ranking is returned
    unchanged.
    """
    if not any(other.matches for other in others):
        return ranking
    lists = [WeightedMatches(1.0, ranking.matches), *others]
    message_rankings = []
    root_rankings = []
    for weight, matches in lists:
        message_rankings.append((weight, [match.message_id for match in matches]))
        root_rankings.append((weight, [match.root_id for match in matches]))
    if ranking.scores:
        # In the search itself, lineages have scores of their own.
        root_rankings[0] = (1.0, list(ranking.scores))

    matches_by_id: dict[int, MessageMatch] = {}
    # The search's own matches come last, so they replace those of other lists.
    for _, matches in (*lists[1:], lists[0]):
        for match in matches:
            matches_by_id[match.message_id] = match
    message_scores = fuse_rankings(message_rankings)
    return ranking._replace(
        scores=fuse_rankings(root_rankings),
        matches=[
            matches_by_id[message_id]._replace(score=score)
            for message_id, score in message_scores.items()
        ],
    )
