"""A store for the speed benchmark that asks Mneme in a process of its own, behind a pipe.

The peer pins other versions and owns a top-level `gateway`, so the two cannot share an interpreter.
Needs nothing but the standard library; MNEME_PYTHON names the interpreter that Mneme is installed
for. What the pipe itself costs is printed, and is part of every figure."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROUND_TRIPS = 1_000


class Mneme:
    """Each call is one line to `serve.py` and one line back."""

    name = "mneme"

    def open(self, folder: Path) -> None:
        """Starts the process and opens a store in an empty folder."""
        command = [os.environ.get("MNEME_PYTHON", sys.executable), "-m", "tests.bench.serve"]
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith("PYTHON")
        }
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=inherited, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._ask("open", str(folder))
        times = []
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            self._ask("nothing")
            times.append(time.perf_counter() - started)
        sys.stdout.write(
            f"mneme: {statistics.median(times) * 1e3:.3f} ms an empty round trip through the pipe\n\n"
        )

    def fill(self, session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> None:
        """Imports a session."""
        self._ask("fill", session, messages)

    def filled(self) -> None:
        """Lets the background work come to its end."""
        self._ask("filled")

    def begin(self, session: Mapping[str, Any]) -> None:
        """Opens a session for appends."""
        self._ask("begin", session)

    def append(self, session: str, role: str, text: str, at: float) -> int:
        """Appends one message; it is durable when this returns."""
        return int(self._ask("append", session, role, text, at))

    def search(self, text: str, limit: int) -> list[int]:
        """The best messages."""
        return list(self._ask("search", text, limit))

    def discover(self, text: str) -> int:
        """How many sessions the whole tool call gave."""
        return int(self._ask("discover", text))

    def scroll(self, session: str, message: int) -> int:
        """How many messages stand around one."""
        return int(self._ask("scroll", session, message))

    def browse(self) -> int:
        """How many of the latest sessions were listed."""
        return int(self._ask("browse"))

    def size(self) -> int:
        """Bytes on disk."""
        return int(self._ask("size"))

    def close(self) -> None:
        """Ends the process."""
        self._ask("close")
        self._process.communicate()

    def _ask(self, method: str, *arguments: Any) -> Any:
        asked, answered = self._process.stdin, self._process.stdout
        if asked is None or answered is None:
            raise RuntimeError("the process has no pipes")
        asked.write(json.dumps([method, *arguments]).encode() + b"\n")
        asked.flush()
        line = answered.readline()
        if not line:
            raise RuntimeError("Mneme has ended; what it said stands above")
        return json.loads(line)[0]
