"""One process a token, however that process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters import poll_lock
from adapters.poll_lock import PollLock
from core.errors import ConfigError

HOLDER = """
import asyncio, time
from adapters.poll_lock import PollLock
lock = PollLock("telegram", "http://here", "1:secret")
asyncio.run(lock.acquire())
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The runtime folder of these tests."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


def lock(server: str = "http://here", token: str = "1:secret") -> PollLock:
    return PollLock("telegram", server, token)


@pytest.mark.slow
def test_poll_lock_names_the_process_that_holds_it_and_is_free_after_that_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(poll_lock, "LOCK_TIMEOUT_S", 0.0)
    mine = lock()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            ConfigError, match=f"process {holder.pid} .* same bot token. Stop that process"
        ):
            asyncio.run(mine.acquire())
        holder.send_signal(signal.SIGKILL)
    asyncio.run(mine.acquire())
    asyncio.run(mine.release())


@pytest.mark.slow
def test_a_process_that_is_ending_is_waited_for() -> None:
    ending = HOLDER.replace("60", "0.3")
    with subprocess.Popen(
        [sys.executable, "-c", ending], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        mine = lock()
        asyncio.run(mine.acquire())
        asyncio.run(mine.release())


def test_poll_lock_can_be_taken_again_after_its_release() -> None:
    for _ in range(2):
        one = lock()
        asyncio.run(one.acquire())
        asyncio.run(one.acquire())
        asyncio.run(one.release())
        asyncio.run(one.release())


def test_poll_locks_of_different_bots_and_servers_do_not_conflict(own_folder: Path) -> None:
    locks = [lock(), lock(token="2:other"), lock(server="http://there")]
    for one in locks:
        asyncio.run(one.acquire())
    files = [*own_folder.glob("*/*")]
    assert len(files) == 3
    assert all("secret" not in file.name + file.read_text() for file in files)
    assert (files[0].parent.stat().st_mode & 0o777) == 0o700
    for one in locks:
        asyncio.run(one.release())


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_poll_lock_is_acquired_even_if_its_folder_is_not_writable(own_folder: Path) -> None:
    own_folder.chmod(0o500)
    asyncio.run(lock().acquire())


def test_poll_lock_is_acquired_even_if_a_file_is_in_place_of_its_folder(own_folder: Path) -> None:
    (own_folder / f"mneme-{os.getuid()}").write_text("")
    asyncio.run(lock().acquire())


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give folders away")
def test_poll_lock_writes_no_file_into_a_folder_of_another_user(own_folder: Path) -> None:
    folder = own_folder / f"mneme-{os.getuid()}"
    folder.mkdir(mode=0o777)
    os.chown(folder, 12345, 12345)
    one = lock()
    asyncio.run(one.acquire())
    assert [*folder.iterdir()] == []
    asyncio.run(one.release())
