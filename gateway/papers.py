"""The files beside state.db in which words of people may stand: what was typed in the terminal, the log, old notes.

Takes what is forgotten out of them. The notes themselves and their versions are the notebook's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from core.memory.notebook import FILES, SEPARATOR
from core.quoting import Quoting
from core.types import Scope

HISTORY = "terminal_history"
LOG = "mneme.log"
_TERMINAL = Scope.account("terminal", "local")


class Papers:
    """Over the files of one home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def erase(self, scopes: frozenset[Scope], texts: Sequence[str]) -> None:
        """Takes `texts`, which were said in `scopes`, and longer stretches of them out of every file."""
        quoting, whole = Quoting((), texts), {text.strip() for text in texts}
        for path in sorted(self._home.glob(f"{LOG}*")):
            _keep_lines(path, [line for line in _lines(path) if not quoting.repeats(line)])
        if _TERMINAL in scopes:
            path = self._home / HISTORY
            _keep_lines(
                path,
                [line for entry in _entries(_lines(path)) if not _is_gone(entry, quoting, whole) for line in entry],
            )
        for scope in scopes:
            for path in (self._home / "memories" / quote(scope.key, safe="")).glob("*"):
                # What lies beside the notes are copies of them.
                if path.name not in FILES.values() and path.is_file() and _holds(path, quoting, whole):
                    path.unlink(missing_ok=True)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except OSError:
        return []


def _keep_lines(path: Path, lines: Sequence[str]) -> None:
    """In place: whoever has the file open goes on to append to it."""
    content = "".join(lines).encode("utf-8", "replace")
    if not path.is_file() or path.stat().st_size == len(content):
        return
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


def _entries(lines: Sequence[str]) -> list[list[str]]:
    """The history as the prompt keeps it: a line with the time, then the lines that were typed, each behind a +."""
    entries: list[list[str]] = []
    for line in lines:
        if not entries or (line.strip() == "" and any(one.startswith("+") for one in entries[-1])):
            entries.append([])
        entries[-1].append(line)
    return entries


def _is_gone(entry: Sequence[str], quoting: Quoting, whole: set[str]) -> bool:
    typed = "".join(line[1:] for line in entry if line.startswith("+")).strip()
    return bool(typed) and (typed in whole or quoting.repeats(typed))


def _holds(path: Path, quoting: Quoting, whole: set[str]) -> bool:
    content = "".join(_lines(path))
    return quoting.repeats(content) or any(entry.strip() in whole for entry in content.split(SEPARATOR))
