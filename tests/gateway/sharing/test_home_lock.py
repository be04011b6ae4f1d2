"""The lock of a home, which only one gateway holds."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from filelock import FileLock

from gateway.sharing import home_lock
from gateway.sharing.home_lock import LOCK_FILE, HomeLock


def test_gateway_that_starts_while_a_page_looks_at_the_lock_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_lock, "WAIT_S", 60)
    probe = FileLock(tmp_path / LOCK_FILE, thread_local=False)
    probe.acquire()
    release = threading.Timer(0.1, probe.release)
    release.start()
    lock = HomeLock(tmp_path)
    lock.acquire()
    assert lock.is_locked
    release.join()
    lock.release()
