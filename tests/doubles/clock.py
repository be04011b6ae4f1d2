"""A clock that tests move by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SteadyClock:
    """Fills the role Clock. Stands still at `moment` until `advance`."""

    def __init__(self, moment: datetime = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def advance(self, **timespan: float) -> None:
        """Moves on by the arguments of timedelta."""
        self.moment += timedelta(**timespan)
