"""Processes of the command line without what importing costs: one has imported it and forks for each call.

Every call is a process of its own, with its own arguments, environment, folder, streams and exit code, and ends as
Python ends. `call` starts the one that forks; a call that outlasts a minute is killed.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import gateway.cli

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


def call(arguments: Sequence[str], environ: Mapping[str, str], folder: Path, given: bytes) -> tuple[int, bytes, bytes]:
    """The exit code and both outputs of ``mneme arguments`` in `folder`; `environ` is all of its environment, and
    what Python itself reads of it at its start must be the same in each call."""
    with tempfile.TemporaryDirectory(prefix="zygote") as streams:
        paths = [Path(streams, name) for name in ("in", "out", "error")]
        paths[0].write_bytes(given)
        order = {"arguments": arguments, "environ": environ, "folder": str(folder), "streams": [*map(str, paths)]}
        process = _started(tuple(sorted((name, environ[name]) for name in environ if name.startswith(("PYTHON", "L")))))
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        return int(process.stdout.readline()), paths[1].read_bytes(), paths[2].read_bytes()


@cache
def _started(environ: tuple[tuple[str, str], ...]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.doubles.zygote"]
    variables = dict(environ) | {"PATH": os.environ["PATH"]}
    process = subprocess.Popen(command, stdin=-1, stdout=-1, env=variables, cwd=ROOT)
    atexit.register(process.communicate)
    return process


def _serve() -> None:
    """Forks for each line of the standard input and writes the exit code; returns in the forked process only."""
    orders, codes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Loads all of the commands.
    gateway.cli.app()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    for line in orders:
        order = json.loads(line)
        number = os.fork()
        if number == 0:
            _become(order)
            return
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        codes.write(f"{code}\n".encode())
        codes.flush()
    sys.exit()


def _become(order: Mapping[str, Any]) -> None:
    signal.alarm(LIMIT_S)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    for stream, path in enumerate(order["streams"]):
        os.dup2(os.open(path, os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = [str(gateway.cli.__file__), *order["arguments"]]


if __name__ == "__main__":
    _serve()
    gateway.cli.main()
