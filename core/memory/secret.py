"""An option that nobody may read: a key, a token."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Secret:
    """A value from the environment, kept out of every repr. In mneme.toml stands the name of its variable only."""

    value: str = field(repr=False)
