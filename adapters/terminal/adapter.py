"""The terminal as a platform: whoever sits at it is the owner. Lines become events, answers are printed.

A person gets a prompt (`screen`), a program gets plain lines; one message is answered before the next is read.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from adapters.streaming import QuietReply
from core.errors import DeliveryError, StoreError
from core.markup.markdown import off_loop, to_plain
from core.ports import Clock, DeliveryRecord, Reply, Sink
from core.text.normalize import language_data, legible
from core.types import LOCAL, Address, Answer, Command, CommandSpec, File, Inbound, Sender

if TYPE_CHECKING:
    from adapters.terminal.screen import TerminalScreen

ADDRESS = Address(platform="terminal", chat_id="local")
HISTORY = "terminal_history"
FILES = "files"
AGAIN_S = 1.0
CHUNK_BYTES, TEXT_CHARS = 65536, 1_000_000
# A path like /etc/hosts is no command.
_COMMAND = re.compile(r"/(\w[\w-]{0,63})(?:\s+|$)")
_LEAVING = frozenset({"quit", "exit"})


@dataclass(eq=False, kw_only=True)
class Terminal:
    """Fills the role Adapter. `home` takes the history of typed lines and the files of answers. `is_incognito`: whether
    what is typed is to be kept nowhere."""

    platform = "terminal"
    problem = contact = ""
    hint = language_data("hints", "adapters")["terminal"]

    home: Path
    clock: Clock
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    is_incognito: Callable[[Address], bool] = lambda _: False

    def __post_init__(self) -> None:
        self._sender = Sender(id="local", name=_user_name())
        self._screen: TerminalPipe | TerminalScreen

    async def open(self) -> None:
        if self.stdin.isatty() and self.stdout.isatty():
            # Only a person needs the libraries behind a prompt, which take 13 MB.
            from adapters.terminal.screen import TerminalScreen

            history, is_incognito = self.home / HISTORY, partial(self.is_incognito, ADDRESS)
            self._screen = TerminalScreen(self.stdin, self.stdout, history, self._save, is_incognito)
        else:
            self._screen = TerminalPipe(self.stdin, self.stdout, self._save)

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        screen = self._screen
        screen.welcome(commands)

        async def admitted(inbound: Inbound) -> int | None:
            """Waits while the store is out of order, of which the sink tells."""
            while True:
                try:
                    return await sink.admit(inbound, screen.reply())
                except StoreError:
                    await asyncio.sleep(AGAIN_S)

        async def stop() -> None:
            entry_id = await admitted(self._inbound("/stop"))
            if entry_id is not None:
                await sink.serve(entry_id)

        while (text := await screen.read()) is not None:
            inbound = self._inbound(text)
            if inbound.command is not None and inbound.command.name in _LEAVING:
                return
            entry_id = await admitted(inbound)
            if entry_id is not None:
                await screen.attend(sink.serve(entry_id), stop)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return self._screen.reply()

    async def close(self) -> None:
        """Nothing is connected."""

    def _inbound(self, text: str) -> Inbound:
        text = text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS]} […]"
        match = _COMMAND.match(text)
        return Inbound(
            kind="message",
            address=ADDRESS,
            scope=LOCAL,
            sender=self._sender,
            text=text,
            message_id=uuid.uuid4().hex,
            sent_at=self.clock.now(),
            is_direct=True,
            command=Command(name=match[1].lower(), arguments=text[match.end() :].strip()) if match else None,
        )

    def _save(self, file: File) -> str:
        """Stores a file in the home beside an earlier one of the same name."""
        folder = self.home / FILES
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / (re.sub(r"[^\w.-]+", "_", file.name).lstrip(".") or "file")
        if path.exists():
            path = folder / f"{path.stem}-{uuid.uuid4().hex[:8]}{path.suffix}"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
            opened.write(file.content)
        return f"The file is in {path}"


class TerminalPipe:
    """A program at one end: one message a line, blank lines are none; only whole answers are printed. `save` stores a
    file of an answer and says where it is.

    Never blocks the event loop on input and needs no thread, so the process can end at any moment.
    """

    def __init__(self, stdin: TextIO, stdout: TextIO, save: Callable[[File], str]) -> None:
        self._input = stdin.fileno()
        self._output = stdout.fileno()
        self._save = save
        self._unread = b""
        self._has_ended = False
        self._is_broken = False

    def welcome(self, commands: Sequence[CommandSpec]) -> None:
        """A program wants none."""

    async def read(self) -> str | None:
        """The next message; None at the end of input, or when nobody reads the answers any more."""
        while not self._is_broken and (raw := await self._line()) is not None:
            text = raw.decode("utf-8-sig", "replace").rstrip("\r\n")
            if text.strip():
                return text
        return None

    async def attend(self, work: Awaitable[None], stop: Callable[[], Awaitable[None]]) -> None:
        await work

    def reply(self) -> Reply:
        return QuietReply(self._print)

    async def _print(self, record: DeliveryRecord, answer: Answer) -> None:
        """UTF-8 whatever the locale says."""
        text = await off_loop(lambda markdown: legible(to_plain(markdown)).strip("\n"), answer.text)
        parts = [text, *hints(answer), *map(self._save, answer.files)]
        rest = memoryview(("\n".join(part for part in parts if part) + "\n").encode("utf-8", "replace"))
        try:
            while rest:
                rest = rest[os.write(self._output, rest) :]
        except OSError as error:
            self._is_broken = True
            raise DeliveryError(f"nobody reads the answers any more ({error.strerror})") from error

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


def hints(answer: Answer) -> list[str]:
    """What stands for buttons in a terminal, the lines that do the same: ``More: /recall page:2 ferry``."""
    lines = (f"{button.label}: /{button.command.name} {button.command.arguments}" for button in answer.buttons)
    return [legible(line).rstrip() for line in lines]


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "local"
