"""Handles the differences between Linux and macOS. Only this module checks the system.

Each function supports both systems, and its docstring describes any other system. WSL counts as
Linux. The code for macOS follows Apple's manuals, and the workflow in .github/ tests it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import resource
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

# The environment variables for the language of a shell. The first that is set decides.
LANGUAGE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
System = Literal["linux", "macos", "other"]
PS_TIMEOUT_S = 10.0
# How long the watch of a process pauses between two measurements of its memory.
WATCH_PAUSE_S = 0.1
# The largest file that a process with limits may write.
MAX_FILE_BYTES = 128 * 2**20
# The flag of `renameat2` and `renamex_np` that exchanges two paths.
EXCHANGE = 2
# The option of `prctl` for the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def find_shell_language(environment: Mapping[str, str]) -> str:
    """Return the language of a shell from LC_ALL, LC_MESSAGES or LANG, such as ``de_DE``, or ""."""
    for name in LANGUAGE_VARIABLES:
        if environment.get(name):
            code = re.split("[.@]", environment[name])[0]
            return "" if code in ("C", "POSIX") else code
    return ""


def find_system(platform: str = sys.platform) -> System:
    """Return the operating system for a platform name such as "linux" or "darwin"."""
    if platform.startswith("linux"):
        return "linux"
    return "macos" if platform == "darwin" else "other"


SYSTEM = find_system()
PLATFORM = sys.platform


def sync_file(descriptor: int, system: System = SYSTEM) -> None:
    """Write a file or folder to the disk, so that it survives a power loss.

    On macOS, fsync only passes the data to the drive, which may keep it in its cache. F_FULLFSYNC
    empties the cache, too. Some file systems, such as network folders, don't support it.
    """
    if system == "macos":
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
            return
    os.fsync(descriptor)


def exchange_paths(first: Path, second: Path, system: System = SYSTEM) -> bool:
    """Exchange two files or folders in one step. The paths are absolute.

    Returns False, and changes nothing, if a path is missing or the system doesn't support this.
    """
    # Imported here because most commands don't need it.
    import ctypes

    library = ctypes.CDLL(None)
    names = (os.fsencode(first), os.fsencode(second))
    with contextlib.suppress(AttributeError):
        if system == "macos":
            return bool(library.renamex_np(*names, EXCHANGE) == 0)
        # Only absolute paths are used, so these folder descriptors are ignored.
        return bool(library.renameat2(-100, names[0], -100, names[1], EXCHANGE) == 0)
    return False


def release_freed_memory(system: System = SYSTEM) -> bool:
    """Return memory to the system that the allocator keeps after a peak.

    Without this, glibc returns only the free memory at the end of its heap. The gaps between blocks
    in use stay, so the process would keep the memory of its highest peak. The call takes some
    milliseconds. Returns False if the C library, such as musl, has no such function.
    """
    # Imported here because most commands don't need it.
    import ctypes

    try:
        if system == "macos":
            ctypes.CDLL(None).malloc_zone_pressure_relief(None, ctypes.c_size_t(0))
        else:
            ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return False
    return True


def limit_resources(memory_mb: int, seconds: int, system: System = SYSTEM) -> None:
    """Limit the memory, the processor time and the file size of this process.

    macOS can't limit the memory of a process. There, the parent process uses `watch_memory`. If the
    system refuses a limit, only the timeout of the parent process applies.
    """
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: MAX_FILE_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    if system != "macos":
        limits[resource.RLIMIT_AS] = memory_mb * 2**20
    for limit, value in limits.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))


def limit_command(command: Sequence[str], memory_mb: int, system: System = SYSTEM) -> Sequence[str]:
    """Return a command that runs another one with limited memory.

    The limit holds from the start, and also for the programs that it starts. Files that they map
    and never change don't count. On macOS, which can't limit memory, the command stays as it is, so
    `watch_memory` is needed.
    """
    if system == "macos":
        return command
    script = f'ulimit -d {memory_mb * 1024} || :; ulimit -c 0 || :; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command]


@contextlib.asynccontextmanager
async def watch_memory(
    pid: int, memory_mb: int, kill: Callable[[], None], system: System = SYSTEM
) -> AsyncIterator[None]:
    """Call `kill` once a process and its descendants use more memory than allowed.

    Only macOS needs this, where a process can't limit its memory. The memory is measured several
    times a second. On other systems, nothing is measured.
    """
    if system != "macos":
        yield
        return
    # Imported here because most commands don't need it.
    import asyncio

    task = asyncio.create_task(_kill_if_too_large(pid, memory_mb, kill, system))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _kill_if_too_large(
    pid: int, memory_mb: int, kill: Callable[[], None], system: System
) -> None:
    import asyncio

    while True:
        if await asyncio.to_thread(measure_memory_mb, [pid], system) > memory_mb:
            kill()
            return
        await asyncio.sleep(WATCH_PAUSE_S)


def read_command_line(pid: int, system: System = SYSTEM) -> str:
    """Return the program and arguments of a process, or "" if the process doesn't exist."""
    if system == "linux":
        with contextlib.suppress(OSError):
            content = Path(f"/proc/{pid}/cmdline").read_bytes()
            return content.replace(b"\0", b" ").decode("utf-8", "replace").strip()
        return ""
    return _run_ps("-o", "args=", "-p", str(pid)).strip()


def end_with_parent(parent: int, system: System = SYSTEM) -> None:
    """Let this process get SIGTERM when its parent process with the id `parent` ends.

    Linux does this even if the parent is killed. Other systems don't, so the process continues.
    """
    if system != "linux":
        return
    # Imported here because few processes need it.
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        # The parent ended before the call.
        os._exit(1)


def measure_memory_mb(pids: Iterable[int], system: System = SYSTEM) -> int:
    """Return the memory of processes and all their descendants in MB, or 0 if it's unknown.

    On Linux, memory that several processes share is counted once.
    """
    if system == "linux":
        return sum(_read_pss_kb(pid) for pid in find_family(pids)) // 1024
    parents: dict[int, int] = {}
    sizes_kb: dict[int, int] = {}
    for line in _run_ps("-axo", "pid=,ppid=,rss=").splitlines():
        pid, parent, size_kb = (int(word) for word in line.split())
        parents[pid] = parent
        sizes_kb[pid] = size_kb
    return sum(sizes_kb.get(pid, 0) for pid in _find_family(pids, parents)) // 1024


def find_family(pids: Iterable[int]) -> set[int]:
    """Return processes and all their descendants. Needs Linux."""
    return _find_family(pids, _read_parents())


def _find_family(pids: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    """Return processes and all their descendants. `parents` has the parent of each process."""
    family = set(pids)
    while True:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        if not children:
            return family
        family |= children


def _read_parents() -> dict[int, int]:
    """Return the parent of each process, from /proc."""
    parents = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # "42 (my program) S 7 …": the name in parentheses may contain spaces.
            values_after_name = file.read_text().rpartition(")")[2].split()
            parents[int(file.parent.name)] = int(values_after_name[1])
    return parents


def _read_pss_kb(pid: int) -> int:
    """Return the memory of a process in kB. A page that n processes share counts 1/n."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(size) for size in re.findall(r"(?m)^Pss: +(\d+)", rollup))


def _run_ps(*arguments: str) -> str:
    """Return the output of `ps`, or "" if it fails or is missing."""
    # Imported here because most commands don't need it.
    import subprocess

    try:
        result = subprocess.run(
            ["ps", *arguments], capture_output=True, text=True, timeout=PS_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout
