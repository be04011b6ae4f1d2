"""The files beside state.db in which words of people may stand: what was typed in the terminal, the log, old notes.

Takes what is forgotten out of them. The notes themselves and their versions are the notebook's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from core.notes.notebook import FILES
from core.privacy.quoting import Quoting, digest
from core.types import Scope

HISTORY = "terminal_history"
LOG = "mneme.log"
_SEPARATOR = re.compile(r"(?m)^\s*§\s*$")
_TERMINAL = Scope.account("terminal", "local")


class HomeFiles:
    """Fills the role `core.privacy.files_role.HomeFiles` over the files of one home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def find(self, scopes: frozenset[Scope], words: Quoting) -> list[str]:
        """Digests of what was typed in the terminal with these words, where that is of these scopes."""
        return [digest(typed) for entry in self._typed(scopes) if words.has_words(typed := _said(entry))]

    def erase(
        self, scopes: frozenset[Scope], texts: Sequence[str], words: Quoting, digests: Collection[str]
    ) -> Sequence[str]:
        """See `core.privacy.files_role.HomeFiles`."""
        quoting, whole, gone = words.over(texts), {text.strip() for text in texts}, set(digests)

        def is_meant(text: str) -> bool:
            return text.strip() in whole or quoting.repeats(text) or quoting.has_words(text)

        stuck: list[Path] = []
        for path in sorted(self._home.glob(f"{LOG}*")):
            # What people say is not logged but by a slip, and a word of theirs may be one of ours.
            if not _keep_lines(path, [line for line in _lines(path) if not quoting.repeats(line)]):
                stuck.append(path)
        if _TERMINAL in scopes:
            kept = [
                entry
                for entry in self._typed(scopes)
                if not is_meant(_said(entry)) and digest(_said(entry)) not in gone
            ]
            if not _keep_lines(self._home / HISTORY, [line for entry in kept for line in entry]):
                stuck.append(self._home / HISTORY)
        for path in self._copies(scopes):
            if any(map(is_meant, _SEPARATOR.split("".join(_lines(path))))) and not _remove(path):
                stuck.append(path)
        return [str(path.relative_to(self._home)) for path in stuck]

    def held(self, scopes: frozenset[Scope]) -> Iterator[dict[str, object]]:
        """What stands there about who sees these scopes, for him: what he typed, copies of his notes."""
        for entry in self._typed(scopes):
            if said := _said(entry):
                yield {"kind": "typed in the terminal", "text": said}
        for path in self._copies(scopes):
            yield {"kind": "copy of notes", "name": path.name, "text": "".join(_lines(path))}

    def _typed(self, scopes: frozenset[Scope]) -> list[list[str]]:
        return _entries(_lines(self._home / HISTORY)) if _TERMINAL in scopes else []

    def _copies(self, scopes: frozenset[Scope]) -> Iterator[Path]:
        """What lies beside the notes are copies of them."""
        for scope in sorted(scopes):
            for path in sorted((self._home / "memories" / quote(scope.key, safe="")).glob("*")):
                if path.name not in FILES.values() and path.is_file():
                    yield path


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except OSError:
        return []


def _keep_lines(path: Path, lines: Sequence[str]) -> bool:
    """In place: whoever has the file open goes on to append to it. False where it cannot be written."""
    content = "".join(lines).encode("utf-8", "replace")
    if not path.is_file() or path.stat().st_size == len(content):
        return True
    try:
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return False
    return True


def _remove(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _entries(lines: Sequence[str]) -> list[list[str]]:
    """The history as the prompt keeps it: a line with the time, then the lines that were typed, each behind a +."""
    entries: list[list[str]] = []
    for line in lines:
        if not entries or (line.strip() == "" and any(one.startswith("+") for one in entries[-1])):
            entries.append([])
        entries[-1].append(line)
    return entries


def _said(entry: Sequence[str]) -> str:
    """What was typed, without the time and the marks around it."""
    return "".join(line[1:] for line in entry if line.startswith("+")).strip()
