"""The ways of Linux and macOS. Those of macOS that also run on Linux run here; see the module."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from config import operating_system
from config.operating_system import (
    MAX_FILE_BYTES,
    System,
    exchange_paths,
    find_system,
    measure_memory_mb,
    read_command_line,
    release_freed_memory,
    sync_file,
    watch_memory,
)
from core.errors import ConfigError
from gateway.local.launchd import Launchd
from gateway.local.manager import find_manager
from gateway.local.systemd import Systemd
from tests.fixtures.tables import each_row

ROOT = Path(__file__).parents[2]
BOTH: tuple[System, ...] = ("linux", "macos")
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")


@each_row(
    ("platform", "system"),
    [("linux", "linux"), ("linux2", "linux"), ("darwin", "macos"), ("freebsd14", "other")],
)
def test_operating_system_is_derived_from_the_platform_name(platform: str, system: System) -> None:
    assert find_system(platform) == system


def test_service_manager_is_the_one_of_the_system(tmp_path: Path) -> None:
    assert isinstance(find_manager(tmp_path, "linux"), Systemd)
    assert isinstance(find_manager(tmp_path, "macos"), Launchd)
    with pytest.raises(ConfigError, match="mneme run"):
        find_manager(tmp_path, "other")


@pytest.mark.parametrize("system", BOTH)
def test_file_and_folder_are_synced_where_the_full_sync_is_missing_too(
    tmp_path: Path, system: System
) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    for path in (file, tmp_path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            sync_file(descriptor, system)
        finally:
            os.close(descriptor)


def test_sync_of_a_closed_file_is_an_error(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_file(descriptor, "macos")


@pytest.mark.parametrize("system", BOTH)
def test_folders_are_exchanged_with_the_function_of_the_system_or_stay(
    tmp_path: Path, system: System
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / folder.name).touch()
    is_exchanged = exchange_paths(first, second, system)
    assert is_exchanged == (system == operating_system.SYSTEM)
    assert (first / "second").exists() == (second / "first").exists() == is_exchanged
    assert (first / "first").exists() == (second / "second").exists() != is_exchanged
    assert not exchange_paths(first, tmp_path / "none", system)


@each_row("system", BOTH)
def test_memory_is_released_only_with_the_function_of_the_system(system: System) -> None:
    if release_freed_memory(system):
        assert system == operating_system.SYSTEM
    else:
        # The function of the other system, or a C library without one.
        assert system != operating_system.SYSTEM or operating_system.SYSTEM == "linux"


@needs_proc
@pytest.mark.parametrize("system", BOTH)
def test_command_line_of_this_process_is_read_and_of_no_process_is_empty(system: System) -> None:
    command = read_command_line(os.getpid(), system)
    assert Path(sys.executable).name.rstrip("0123456789.") in command
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert read_command_line(done.pid, system) == ""


@needs_proc
@pytest.mark.parametrize("system", BOTH)
def test_measured_memory_includes_child_processes(system: System) -> None:
    script = (
        "import sys; data = bytearray(80_000_000); print('ready', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        own_mb = measure_memory_mb([child.pid], system)
        assert own_mb >= 76
        assert measure_memory_mb([os.getpid()], system) >= own_mb
    finally:
        child.kill()
        child.communicate()
    assert measure_memory_mb([child.pid], system) == 0


@each_row("system", BOTH)
def test_limits_hold_in_a_child_and_memory_is_limited_except_on_macos(system: System) -> None:
    script = (
        "import resource as r, sys\n"
        "from config.operating_system import limit_resources\n"
        "limit_resources(512, 7, sys.argv[1])\n"
        "print(r.getrlimit(r.RLIMIT_CPU)[0], r.getrlimit(r.RLIMIT_FSIZE)[0],"
        " r.getrlimit(r.RLIMIT_AS)[0] == 512 * 2**20)\n"
    )
    arguments = [sys.executable, "-c", script, system]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    is_limited = system == "linux" and operating_system.SYSTEM == "linux"
    assert done.stdout.split() == ["7", str(MAX_FILE_BYTES), str(is_limited)]


@needs_proc
async def test_process_that_uses_too_much_memory_is_killed_where_the_system_has_no_limit() -> None:
    # The child of the watched process needs the memory.
    greedy = "import sys; data = b'x' * 80_000_000; sys.stdin.read()"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {greedy!r}])"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdin=asyncio.subprocess.PIPE, start_new_session=True
    )

    def kill() -> None:
        os.killpg(process.pid, signal.SIGKILL)

    async with watch_memory(process.pid, 60, kill, "macos"):
        assert await process.wait() == -signal.SIGKILL


def test_only_the_operating_system_module_contains_system_specific_calls() -> None:
    pattern = re.compile(
        r"sys\.platform|platform\.system|\"/proc|malloc_trim|F_FULLFSYNC|renameat2|renamex_np"
        r"|os\.fsync\("
    )
    offenders = [
        str(path.relative_to(ROOT))
        for package in ("config", "core", "adapters", "gateway")
        for path in sorted((ROOT / package).rglob("*.py"))
        if pattern.search(path.read_text("utf-8")) and path.name != "operating_system.py"
    ]
    assert offenders == []
