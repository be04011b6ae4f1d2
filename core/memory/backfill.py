"""How much of what was said before a memory service was there it has still to be told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The sessions from `next_id` to `last_id` that something was said in since then are to be told."""

    since: datetime
    next_id: int
    last_id: int
