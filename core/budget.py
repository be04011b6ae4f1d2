"""What one turn may spend on the model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """At most `max_rounds` model calls a turn, each of at most `max_tokens` tokens of output."""

    max_rounds: int
    max_tokens: int
