"""A message that a search has found, before its text is read."""

from __future__ import annotations

from typing import NamedTuple


class Match(NamedTuple):
    """`root_id` names the lineage of the session; a higher `score` is better."""

    message_id: int
    session_id: int
    root_id: int
    score: float
