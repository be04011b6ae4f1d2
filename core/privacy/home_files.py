"""The files of the home beside state.db: what was typed in the terminal and the log lose what is forgotten; all of them
are looked through for a phrase. Beside the home stands the journal, by which a backup learns what was erased since.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from core.types import LOCAL, Scope

if TYPE_CHECKING:
    from core.privacy.forgetting import Quoting

HISTORY, LOG = "terminal_history", "mneme.log"
CHUNK_BYTES = 1 << 20
_ENTRY = re.compile(r"(?m)^(?=\n# )")


class HomeFiles:
    """`home`: an existing folder."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._journal = home.with_name(f"{home.name}.erasures")

    def typed(self, scopes: frozenset[Scope]) -> list[str]:
        """What was typed in the terminal, if that is of these scopes."""
        return list(filter(None, map(_typed, self._entries()))) if LOCAL in scopes else []

    def erase(self, scopes: frozenset[Scope], quoting: Quoting) -> list[str]:
        """Erases what repeats what was said, or was typed with the words; the names of files that cannot be written."""
        kept: dict[Path, list[str]] = {}
        is_owners = LOCAL in scopes
        for path in self._home.glob(f"{LOG}*"):
            # Words of people are logged by mistake only, and a single one may be one of ours.
            lines = _text_of(path).splitlines(keepends=True)
            kept[path] = [one for one in lines if not (quoting.repeats(one) or (is_owners and quoting.has_words(one)))]
        if is_owners:
            entries = [(entry, _typed(entry)) for entry in self._entries()]
            kept[self._home / HISTORY] = [
                entry for entry, typed in entries if not (quoting.has_words(typed) or quoting.copies(typed))
            ]
        return [path.name for path, parts in sorted(kept.items()) if not _is_rewritten(path, "".join(parts))]

    def having(self, phrase: str, has_words: Callable[[str], bool]) -> list[str]:
        """The files, by their place in the home, in whose bytes a phrase stands in any of its usual encodings, or that
        people write and that have a paragraph with the words; the log of a database counts as that."""
        wanted = encodings(phrase)
        installed = self._home / "engines" / "hindsight" / "environment"
        paths = [path for path in sorted(self._home.rglob("*")) if wanted and not path.is_relative_to(installed)]
        names = [_place(path.relative_to(self._home)) for path in paths if _has(path, wanted, has_words)]
        return list(dict.fromkeys(name.removesuffix("-wal") for name in names))

    def note(self, line: str) -> bool:
        """Puts a line into the journal; False where that cannot be written."""
        with contextlib.suppress(OSError):
            self._journal.touch(0o600)
            with self._journal.open("a", encoding="utf-8") as file:
                # What broke off before, on a full disk, must not take this along.
                file.write(f"\n{line}\n")
                file.flush()
                os.fsync(file.fileno())
            return True
        return False

    def noted(self) -> str:
        return _text_of(self._journal)

    def _entries(self) -> list[str]:
        """Of the history (prompt_toolkit: a blank line, the time behind #, the text behind +)."""
        return _ENTRY.split(_text_of(self._home / HISTORY))


def _place(path: Path) -> str:
    """Without what people have named, who may be others than the one who reads it: their skills."""
    is_of_skill = path.parts[:1] == ("memories",) and path.parts[2:3] == ("skills",)
    return "/".join(path.parts[:3] if is_of_skill else path.parts)


def encodings(phrase: str) -> frozenset[bytes]:
    """How a phrase may stand in a file whose ASCII letters are all small: composed or not, in JSON, HTML and URLs."""
    cased = {case(phrase.strip()) for case in (str, str.casefold, str.lower, str.upper, str.title)} - {""}
    forms = {unicodedata.normalize(form, one) for one in cased for form in ("NFC", "NFD")} | cased
    coded = {code(one) for one in forms for code in (str, html.escape, quote, quote_plus, json.dumps)}
    coded |= {one.encode("ascii", "xmlcharrefreplace").decode() for one in forms}
    return frozenset(one.strip('"').encode("utf-8", "replace").lower() for one in coded)


def _has(path: Path, wanted: frozenset[bytes], has_words: Callable[[str], bool]) -> bool:
    """Inside of longer words too: in the rows of a database nothing stands between one text and the next."""
    longest, tail = max(map(len, wanted)), b""
    # What is no file may be waited for in vain.
    with contextlib.suppress(OSError), (path if path.is_file() else Path(os.devnull)).open("rb") as file:
        if path.suffix in (".md", ".py", ".toml") and any(map(has_words, _text_of(path).split("\n\n"))):
            return True
        while chunk := file.read(CHUNK_BYTES):
            tail = tail[-longest:] + chunk.lower()
            if any(one in tail for one in wanted):
                return True
    return False


def _typed(entry: str) -> str:
    return "".join(line[1:] for line in entry.splitlines(keepends=True) if line.startswith("+")).strip()


def _text_of(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _is_rewritten(path: Path, text: str) -> bool:
    """In place, so that a process with the file open goes on appending to it; False where it cannot be."""
    content = text.encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size != len(content):
            with path.open("r+b") as file:
                file.write(content)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        return True
    return False
