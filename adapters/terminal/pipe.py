"""The terminal when a program is at one end: plain lines in, plain answers out. Never blocks the event loop on input
and needs no thread, so the process can end at any moment.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TextIO

from adapters.terminal.screen import hints
from core.errors import DeliveryError
from core.markup.render import to_plain
from core.ports import DeliveryRecord, Reply
from core.text.sanitize import legible
from core.types import Answer, File

CHUNK_BYTES = 65536


class TerminalPipe:
    """One message a line; blank lines are none. `save` stores a file of an answer and says where it is."""

    def __init__(self, stdin: TextIO, stdout: TextIO, save: Callable[[File], str]) -> None:
        self._input = stdin.fileno()
        self._output = stdout.fileno()
        self._save = save
        self._unread = b""
        self._is_first = True
        self._has_ended = False
        self._is_broken = False

    async def read(self) -> str | None:
        """The next message; None at the end of input, or when nobody reads the answers any more."""
        while not self._is_broken and (raw := await self._line()) is not None:
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            if self._is_first:
                text = text.removeprefix("\ufeff")
            self._is_first = False
            if text.strip():
                return text
        return None

    def reply(self) -> Reply:
        return _PlainReply(self._print)

    async def attend(self, work: Awaitable[None], _stop: Callable[[], Awaitable[None]]) -> None:
        await work

    async def _line(self) -> bytes | None:
        while b"\n" not in self._unread and not self._has_ended:
            await self._readable()
            try:
                chunk = os.read(self._input, CHUNK_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                # A folder, or something open for writing only.
                chunk = b""
            self._has_ended = not chunk
            self._unread += chunk
        line, end, self._unread = self._unread.partition(b"\n")
        return line if line or end else None

    async def _readable(self) -> None:
        """Returns when a read will not wait. Files cannot be watched, but never make one wait."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._input, ready.set)
        except PermissionError:
            return
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._input)

    def _print(self, answer: Answer) -> None:
        """UTF-8 whatever the locale says."""
        parts = [legible(to_plain(answer.text)).strip("\n"), *hints(answer), *map(self._save, answer.files)]
        rest = memoryview(("\n".join(part for part in parts if part) + "\n").encode("utf-8", "replace"))
        try:
            while rest:
                rest = rest[os.write(self._output, rest) :]
        except OSError as error:
            self._is_broken = True
            raise DeliveryError(f"nobody reads the answers any more ({error.strerror})") from error


class _PlainReply:
    """Fills the role Reply: only the whole answer is printed."""

    def __init__(self, write: Callable[[Answer], None]) -> None:
        self._write = write

    def begin(self, receipt: DeliveryRecord) -> None:
        pass

    def show(self, text: str) -> None:
        pass

    async def finish(self, answer: Answer) -> None:
        self._write(answer)

    async def abandon(self) -> None:
        pass
