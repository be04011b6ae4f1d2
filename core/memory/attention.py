"""Which sessions a memory hears of. The one place that decides it."""

from __future__ import annotations

from core.types import Session


def is_remembered(session: Session) -> bool:
    """Whether memories may keep anything of the session: not of what was scheduled, nor of what is incognito."""
    return session.address.platform != "cron" and not session.is_incognito


def may_consult(session: Session) -> bool:
    """Whether a service outside may be asked on behalf of the session: it learns the question. Its tools may also keep
    something, so that they need more: `is_remembered`."""
    return not session.is_incognito
