"""A circuit breaker: whoever fails again and again is left alone for a while, then tried once.

Only counts and tells the time; who is called, and what a failure is, is decided elsewhere.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from core.ports import Clock

FAILURES = 3
"""So many in a row open it."""
SHORTEST_REST = timedelta(seconds=30)
LONGEST_REST = timedelta(hours=1)


class Breaker:
    """Closed while calls succeed; open after `FAILURES` in a row; half-open for one call when its rest is over. Each
    call that fails then doubles the rest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._rest = SHORTEST_REST
        self._until: datetime | None = None
        self._is_probing = False
        self.reason = ""
        """Why the last call failed."""

    @property
    def is_open(self) -> bool:
        """Whether it has given up on calls for now; also while one is tried."""
        return self._until is not None

    @property
    def state(self) -> str:
        """``works``, ``failed 2 times in a row: …`` or ``out of order: …``."""
        if self._until is not None:
            return f"out of order, tried again now and then: {self.reason}"
        if self._failures:
            return f"failed {'once' if self._failures == 1 else f'{self._failures} times in a row'}: {self.reason}"
        return "works"

    @property
    def rest_s(self) -> float:
        """How long it stays open, in seconds; 0 when a call may be made."""
        return 0.0 if self._until is None else max(0.0, (self._until - self._clock.now()).total_seconds())

    def admit(self) -> bool:
        """Whether a call may be made now. Every call that was admitted ends in `succeed`, `fail` or `release`."""
        if self._until is None:
            return True
        if self._is_probing or self._clock.now() < self._until:
            return False
        self._is_probing = True
        return True

    def succeed(self) -> None:
        """A call did what it should: closed."""
        self._failures = 0
        self._rest = SHORTEST_REST
        self._until = None
        self._is_probing = False

    def fail(self, reason: str) -> bool:
        """A call failed; True when that opened it."""
        self.reason = reason
        self._failures += 1
        if self._until is not None:
            # Calls that began before it opened may fail after; only the probe tells something new.
            if self._is_probing:
                self._is_probing = False
                self._rest = min(2 * self._rest, LONGEST_REST)
                self._until = self._clock.now() + self._rest
            return False
        if self._failures < FAILURES:
            return False
        self._until = self._clock.now() + self._rest
        return True

    def release(self) -> None:
        """A call was given up before it told anything."""
        self._is_probing = False
