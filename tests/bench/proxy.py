"""A store for the speed benchmark that calls Mneme in another process through a pipe.

The peer pins other versions and has its own top-level package `gateway`, so the two can't share an
interpreter. This module needs only the standard library. MNEME_PYTHON names the interpreter of
Mneme's environment. The cost of the pipe is printed, and it is part of every figure.
"""

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
    """A store that sends each call as one line to `serve.py` and reads one line back."""

    name = "mneme"

    def open(self, folder: Path) -> None:
        """Start the process, and open a store in an empty folder."""
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
        """Import a session."""
        self._ask("fill", session, messages)

    def filled(self) -> None:
        """Wait until the background work is done."""
        self._ask("filled")

    def begin(self, session: Mapping[str, Any]) -> None:
        """Open a session for appends."""
        self._ask("begin", session)

    def append(self, session: str, role: str, text: str, at: float) -> int:
        """Append one message. It is durable when this returns."""
        return int(self._ask("append", session, role, text, at))

    def search(self, text: str, limit: int) -> list[int]:
        """Return the best messages."""
        return list(self._ask("search", text, limit))

    def discover(self, text: str) -> int:
        """Call the search tool, and return the number of sessions in its result."""
        return int(self._ask("discover", text))

    def scroll(self, session: str, message: int) -> int:
        """Return the number of messages around a message."""
        return int(self._ask("scroll", session, message))

    def browse(self) -> int:
        """List the latest sessions, and return their number."""
        return int(self._ask("browse"))

    def size(self) -> int:
        """Return the bytes on the disk."""
        return int(self._ask("size"))

    def close(self) -> None:
        """Stop the process."""
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
