"""Locks a home, so that only one process receives messages with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import ConfigError
from gateway.texts.catalog import SHELL as texts

LOCK_FILE = "gateway.lock"
# `is_running` holds the lock for a moment, so a gateway that starts just then tries for so long.
WAIT_S = 1.0
_INTERVAL_S = 0.02


class HomeLock:
    """The lock of a home. Only one process may receive messages with this home."""

    def __init__(self, home: Path) -> None:
        # Few commands lock the home.
        from filelock import FileLock

        self._home = home
        self._lock = FileLock(home / LOCK_FILE)

    @property
    def is_locked(self) -> bool:
        return self._lock.is_locked

    def try_acquire(self, timeout_s: float = 0) -> bool:
        """Lock the home for this process. Returns False if another process keeps it locked."""
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=timeout_s, poll_interval=_INTERVAL_S)
            return True
        except Timeout:
            return False

    def acquire(self) -> None:
        """Lock the home for this process. Raises ConfigError if another process has locked it."""
        if not self.try_acquire(WAIT_S):
            raise ConfigError(texts.RUNS_ALREADY.format(home=self._home))

    def release(self) -> None:
        self._lock.release()


@contextmanager
def lock_home(home: Path) -> Iterator[None]:
    """Lock the home for this process. Raises ConfigError if another gateway uses it."""
    lock = HomeLock(home)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def is_running(home: Path) -> bool:
    """Return whether a gateway or a chat is running in this home."""
    if not (home / LOCK_FILE).exists():
        return False
    from filelock import FileLock, Timeout

    try:
        with FileLock(home / LOCK_FILE).acquire(timeout=0):
            return False
    except Timeout:
        return True
