"""What one turn may spend on the model."""

from __future__ import annotations

from dataclasses import dataclass

from config.settings import CacheLife, ModelOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """At most `max_rounds` model calls a turn, each of at most `max_tokens` tokens of output. `cache`: how long the
    server is asked to keep what was sent."""

    max_rounds: int
    max_tokens: int
    cache: CacheLife = "5m"

    @classmethod
    def of(cls, options: ModelOptions) -> Budget:
        """What the settings allow."""
        return cls(max_rounds=options.max_rounds, max_tokens=options.max_tokens, cache=options.cache)
