"""The files of the curated notes: a MEMORY.md and a USER.md in a folder a scope, entries separated by a ``§`` line; and
the owner's own files. Read anew each time, replaced atomically; a file that cannot be read as notes is left alone.
Knows nothing of limits, or of who may see what.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout

from config.files import leftovers, replace_file
from core.errors import Refused
from core.guard.guard import cleaned, suspicion
from core.types import Scope

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
SEPARATOR = "\n§\n"
_SEPARATORS = re.compile(r"^[^\S\n]*§[^\S\n]*$", re.MULTILINE)
"""As a person may write them by hand, with blanks that nobody sees."""
LIMIT_BYTES = 200_000
"""A longer file is no file of notes."""
_LOCK_TIMEOUT_S = 10.0


class NoteFiles:
    """All methods but `lock` block: they are called in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """One lock over all scopes, because limits count them together. Raises Refused when it cannot be had."""
        # First among ourselves: who waits for a file lock holds a thread, which its holder needs to go on.
        async with self._turn:
            lock = FileLock(self._folder / ".lock", timeout=_LOCK_TIMEOUT_S, thread_local=False)
            try:
                await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True, mode=0o700)
                await asyncio.to_thread(lock.acquire)
            except Timeout as error:
                raise Refused("The notes are being changed by another program; try again in a moment.") from error
            except OSError as error:
                raise Refused(f"The folder {self._folder.name}/ cannot be used ({error.strerror or error}).") from error
            try:
                yield
            finally:
                lock.release()

    def keep(self, scope: Scope, target: str, entries: Sequence[str]) -> None:
        """Replaces all entries. Raises Refused where they cannot be written."""
        path = self._path(scope, target)
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            self.sweep(scope, target)
            replace_file(path, (SEPARATOR.join(entries) + "\n" if entries else "").encode())
        except OSError as error:
            raise Refused(f"{_shown(path)} cannot be written ({error.strerror or error}); it is as it was.") from error

    def sweep(self, scope: Scope, target: str) -> None:
        """Removes what a killed process left beside the file. Called under the lock."""
        for left in leftovers(self._path(scope, target)):
            left.unlink(missing_ok=True)

    def state(self, scope: Scope, target: str) -> tuple[int, ...] | None:
        """Differs whenever the file does; None when it is not there."""
        try:
            found = self._path(scope, target).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _path(self, scope: Scope, target: str) -> Path:
        return self._folder / quote(scope.key, safe="") / FILES[target]

    def read(self, scope: Scope, target: str) -> tuple[list[str], str | None]:
        """The entries, each once, and why the file cannot be read, as a sentence; neither where there is no file."""
        path = self._path(scope, target)
        try:
            content = path.read_bytes()
            # Editors on Windows open a file with a byte order mark, which is no part of the first note.
            text = with_plain_lines(content.decode("utf-8-sig"))
        except FileNotFoundError:
            return [], None
        except OSError as error:
            return [], f"{_shown(path)} cannot be read ({error.strerror or error}); nothing is written there."
        except UnicodeDecodeError as error:
            return [], _unreadable(path, f"it is not UTF-8 text (byte {error.start + 1:,})")
        if len(content) > LIMIT_BYTES:
            return [], _unreadable(path, f"it is over {LIMIT_BYTES:,} bytes long")
        entries = (entry.strip() for entry in _SEPARATORS.split(text))
        return list(dict.fromkeys(entry for entry in entries if entry)), None


def with_plain_lines(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text)


def has_separator(text: str) -> bool:
    """Whether it would be read as more than one entry. Wants plain lines."""
    return _SEPARATORS.search(text) is not None


def _unreadable(path: Path, reason: str) -> str:
    return (
        f"{_shown(path)} cannot be read: {reason}. I leave it alone. Mend or remove the file; until then nothing is "
        "noted in it."
    )


def _shown(path: Path) -> str:
    return f"memories/{path.parent.name}/{path.name}"


class OwnerFiles:
    """The files in `home` that stand in every prompt. They are never left out; of what looks wrong the owner is warned,
    once for what it says."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._warn: Callable[[str, str, str], Awaitable[None]] | None = None

    def connect(self, warn: Callable[[str, str, str], Awaitable[None]]) -> None:
        """`warn` is called with a file's name, the reason, and a digest of its text."""
        self._warn = warn

    async def text(self, name: str, limit_chars: int) -> str:
        """The file without hidden characters, cut with a mark where it is too long; empty where there is none."""

        def read() -> tuple[str, str | None, str]:
            try:
                # Editors on Windows open a file with a byte order mark, which is no part of it.
                text = (self._home / name).read_text(encoding="utf-8-sig", errors="replace").strip()
            except OSError:
                return "", None, ""
            shown, more = text[:limit_chars], len(text) - limit_chars
            cut = f"\n[{name} is cut here: {more:,} characters more]" if more > 0 else ""
            return cleaned(shown + cut), suspicion(shown), sha256(text.encode("utf-8", "replace")).hexdigest()

        text, reason, digest = await asyncio.to_thread(read)
        if reason is not None and self._warn is not None:
            await self._warn(name, reason, digest)
        return text
