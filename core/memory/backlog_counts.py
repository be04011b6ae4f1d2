"""What lies in the outbox for one memory service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrears:
    """How many parcels are `waiting` and were given up (`dead`), and why the latest of them failed."""

    waiting: int = 0
    dead: int = 0
    reason: str = ""
