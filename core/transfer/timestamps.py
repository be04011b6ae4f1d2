"""Moments as exports write them: seconds since 1970 as number or text, or ISO 8601. Never raises."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

_LONGEST_CHARS = 64


def from_seconds(value: object) -> datetime | None:
    """Seconds since 1970 UTC, exact to the microsecond; None for what is no such number."""
    if isinstance(value, str) and len(value) > _LONGEST_CHARS:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_text(value: object, zone: tzinfo = UTC) -> datetime | None:
    """A moment in ISO 8601, with a space or a T; `zone` is where it was written when it does not say. None for what
    cannot be read."""
    if not isinstance(value, str) or len(value) > _LONGEST_CHARS:
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        return (at.replace(tzinfo=zone) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
