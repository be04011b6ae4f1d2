"""The terminal as a platform: whoever sits at it is the owner. Lines become events, answers are printed.

A person gets a prompt (`screen`), a program gets plain lines (`pipe`); one message is answered before the next is read.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from adapters.terminal.pipe import TerminalPipe
from adapters.terminal.screen import TerminalScreen
from core.errors import StoreError
from core.ports import Clock, Reply, Sink
from core.types import Address, Command, CommandSpec, File, Inbound, Scope, Sender

ADDRESS = Address(platform="terminal", chat_id="local")
SCOPE = Scope.account("terminal", "local")
HISTORY = "terminal_history"
FILES = "files"
# A path like /etc/hosts is no command.
_COMMAND = re.compile(r"/(\w[\w-]{0,63})(?:\s+|$)")
AGAIN_S = 1.0
_LEAVING = frozenset({"quit", "exit"})


class Terminal:
    """Fills the role Adapter. `home` takes the history of typed lines and the files of answers. `is_incognito`: whether
    what is typed is to be kept nowhere."""

    platform = "terminal"
    problem = ""
    hint = (
        "The person reads you in a terminal. Markdown is rendered there: headings, lists, tables and code blocks are "
        "fine, pictures and buttons are not shown."
    )

    def __init__(
        self,
        *,
        home: Path,
        clock: Clock,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        is_incognito: Callable[[Address], bool] = lambda _: False,
    ) -> None:
        self._is_incognito = is_incognito
        self._home = home
        self._clock = clock
        self._stdin = stdin or sys.stdin
        self._stdout = stdout or sys.stdout
        self._sender = Sender(id="local", name=_user_name())
        self._screen: TerminalPipe | TerminalScreen | None = None

    async def open(self) -> None:
        self._opened()

    async def listen(self, sink: Sink, commands: Sequence[CommandSpec]) -> None:
        screen = self._opened()
        if isinstance(screen, TerminalScreen):
            screen.welcome(commands)

        async def stop() -> None:
            entry_id = await _admitted(sink, self._inbound("/stop"), screen)
            if entry_id is not None:
                await sink.serve(entry_id)

        while (text := await screen.read()) is not None:
            inbound = self._inbound(text)
            if inbound.command is not None and inbound.command.name in _LEAVING:
                return
            entry_id = await _admitted(sink, inbound, screen)
            if entry_id is not None:
                await screen.attend(sink.serve(entry_id), stop)

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return self._opened().reply()

    async def close(self) -> None:
        """Nothing is connected."""

    def _opened(self) -> TerminalPipe | TerminalScreen:
        if self._screen is None and self._stdin.isatty() and self._stdout.isatty():
            self._screen = TerminalScreen(
                self._stdin, self._stdout, self._home / HISTORY, self._save, lambda: self._is_incognito(ADDRESS)
            )
        self._screen = self._screen or TerminalPipe(self._stdin, self._stdout, self._save)
        return self._screen

    def _inbound(self, text: str) -> Inbound:
        return Inbound(
            kind="message",
            address=ADDRESS,
            scope=SCOPE,
            sender=self._sender,
            text=text,
            message_id=uuid.uuid4().hex,
            sent_at=self._clock.now(),
            is_direct=True,
            command=_command(text),
        )

    def _save(self, file: File) -> str:
        """Stores a file in the home beside an earlier one of the same name."""
        folder = self._home / FILES
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / (re.sub(r"[^\w.-]+", "_", file.name).lstrip(".") or "file")
        if path.exists():
            path = folder / f"{path.stem}-{uuid.uuid4().hex[:8]}{path.suffix}"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
            opened.write(file.content)
        return f"The file is in {path}"


def _command(text: str) -> Command | None:
    match = _COMMAND.match(text)
    return None if match is None else Command(name=match[1].lower(), arguments=text[match.end() :].strip())


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "local"


async def _admitted(sink: Sink, inbound: Inbound, screen: TerminalPipe | TerminalScreen) -> int | None:
    """Waits while the store is out of order, of which the sink tells."""
    while True:
        try:
            return await sink.admit(inbound, screen.reply())
        except StoreError:
            await asyncio.sleep(AGAIN_S)
