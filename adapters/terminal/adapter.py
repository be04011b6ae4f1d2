"""Uses the terminal as a platform: typed lines become messages of the owner, answers are printed.

A person gets a prompt (module `screen`), and a program gets plain lines (module `pipe`). Each
message is answered before the next one is read.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from adapters.terminal.pipe import TerminalPipe
from config.operating_system import LANGUAGE_VARIABLES, find_shell_language
from config.variables import select_variables
from core.errors import Sentence, StoreError
from core.menus.command_specs import CommandSpec
from core.ports import Autocompleter, Clock, InboundSink, Reply
from core.text.normalize import language_data
from core.types import LOCAL_SCOPE, Address, Command, File, Inbound, Sender

if TYPE_CHECKING:
    from adapters.terminal.screen import TerminalScreen

# The conversation of `mneme chat`, and of the terminal in which the gateway runs.
ADDRESS = Address(platform="terminal", chat_id="local")
# The conversation of `mneme chat` next to a gateway that itself has a terminal.
SECOND_ADDRESS = Address(platform="terminal", chat_id="chat")
# Names of a file and a folder in the home.
HISTORY_FILE = "terminal_history"
FILES_FOLDER = "files"
# The pause before a message is admitted again if the store wasn't available.
RETRY_DELAY_S = 1.0
# Longer messages are cut.
TEXT_CHARS = 1_000_000
# A slash and a name, followed by a space or the end of the text. A path like /etc/hosts isn't a
# command.
_COMMAND = re.compile(r"/(\w[\w-]{0,63})(?:\s+|$)")
_EXIT_COMMANDS = frozenset({"quit", "exit"})


@dataclass(eq=False, kw_only=True)
class Terminal:
    """The adapter for the terminal."""

    platform = "terminal"
    problem = contact = ""
    accepted_at = 0.0
    hint = language_data("hints", "adapters")["terminal"]

    # The folder in which the history of typed lines and the files of answers are stored.
    home: Path
    clock: Clock
    stdin: TextIO = field(default_factory=lambda: sys.stdin)
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    # Returns the line that greets a person.
    greet: Callable[[Address], Awaitable[str]] | None = None
    # Returns whether typed lines must not be stored in the history at the moment.
    is_incognito: Callable[[Address], bool] = lambda _: False
    # Returns a sentence in the person's language.
    word: Callable[[Sentence], str] = str
    # The language of the typed text. Empty: the language of the shell.
    language: str = ""

    def __post_init__(self) -> None:
        self._save_file = partial(save_file, self.home, word=self.word)
        self._screen: TerminalPipe | TerminalScreen

    async def open(self) -> None:
        """Open a prompt if input and output are a terminal, otherwise a pipe."""
        if not (self.stdin.isatty() and self.stdout.isatty()):
            self._screen = TerminalPipe(self.stdin, self.stdout, self._save_file, self.word)
            return
        # Imported here because the libraries of the prompt take 13 MB, which a pipe doesn't need.
        from adapters.terminal.screen import TerminalScreen

        self._screen = TerminalScreen(
            self.stdin,
            self.stdout,
            self.home / HISTORY_FILE,
            self._save_file,
            partial(self.is_incognito, ADDRESS),
            self.word,
        )

    async def listen(self, sink: InboundSink, commands: Sequence[CommandSpec]) -> None:
        """Read and answer messages until the person leaves or the input ends."""
        screen = self._screen

        async def complete(text: str) -> Mapping[str, str]:
            inbound = make_inbound(text, self.clock, self.language)
            if inbound.command is None or not isinstance(sink, Autocompleter):
                return {}
            return await sink.autocomplete(inbound, inbound.command.arguments)

        greeting = await self.greet(ADDRESS) if self.greet is not None else ""
        screen.welcome(describe_commands(commands, self.language), greeting, complete)

        async def admit(inbound: Inbound) -> int | None:
            """Admit a message. If the store isn't available, try again until it is.

            Returns the result of `InboundSink.admit`.
            """
            while True:
                try:
                    return await sink.admit(inbound, screen.reply())
                except StoreError:
                    await asyncio.sleep(RETRY_DELAY_S)

        async def stop() -> None:
            entry_id = await admit(make_inbound("/stop", self.clock, self.language))
            if entry_id is not None:
                await sink.serve(entry_id)

        while (text := await screen.read_message()) is not None:
            if is_exit(text):
                return
            entry_id = await admit(make_inbound(text, self.clock, self.language))
            if entry_id is not None and await screen.wait_for_answer(sink.serve(entry_id), stop):
                return

    def reply(self, address: Address, reply_to: str | None = None) -> Reply:
        return self._screen.reply()

    async def close(self) -> None:
        """Do nothing, because there is no connection."""

    def show_tools(self, names: Sequence[str]) -> None:
        """Show which tools are running for the answer that is being written."""
        self._screen.show_tools(names)


def is_exit(text: str) -> bool:
    """Return whether a typed line asks to leave."""
    match = _COMMAND.match(text)
    return match is not None and match[1].lower() in _EXIT_COMMANDS


def _find_language(language: str) -> str:
    """Return a language, or the language of the shell if it's empty."""
    return language or find_shell_language(select_variables(LANGUAGE_VARIABLES))


def describe_commands(commands: Sequence[CommandSpec], language: str) -> Mapping[str, str]:
    """Map the names of commands to their descriptions in a language.

    If the language is empty, it's the language of the shell.
    """
    code = _find_language(language)
    return {spec.name: spec.describe(code) for spec in commands}


def make_inbound(
    text: str, clock: Clock, language: str = "", address: Address = ADDRESS
) -> Inbound:
    """Return an event for typed text, with a command if the text begins with one.

    A text of more than `TEXT_CHARS` characters is cut. Without a `language`, the language of the
    shell is used.
    """
    if len(text) > TEXT_CHARS:
        text = f"{text[:TEXT_CHARS]} […]"
    command = None
    match = _COMMAND.match(text)
    if match:
        command = Command(name=match[1].lower(), arguments=text[match.end() :].strip())
    return Inbound(
        kind="message",
        address=address,
        scope=LOCAL_SCOPE,
        sender=Sender(id="local", name=_user_name()),
        text=text,
        message_id=uuid.uuid4().hex,
        sent_at=clock.now(),
        is_direct=True,
        command=command,
        language=_find_language(language),
    )


def save_file(home: Path, file: File, word: Callable[[Sentence], str] = str) -> str:
    """Store a file of an answer in the home, and return a sentence with its path.

    If a file with this name exists, the new one gets another name.
    """
    folder = home / FILES_FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "_", file.name).lstrip(".") or "file"
    path = folder / name
    if path.exists():
        path = folder / f"{path.stem}-{uuid.uuid4().hex[:8]}{path.suffix}"
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(file.content)
    return word(Sentence("terminal_file", {"path": str(path)}))


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "local"
