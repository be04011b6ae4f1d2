"""Uses input and output for programs: each line is a message, and only answers are printed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TextIO

from adapters.streaming import QuietReply
from core.errors import DeliveryError, Sentence
from core.markup.markdown import run_off_loop, to_plain
from core.ports import DeliveryRecord, Reply
from core.text.normalize import strip_controls
from core.types import Answer, File

READ_BYTES = 65536
# Returns the values for the option of a command that is being typed, with their labels.
CompleteOption = Callable[[str], Awaitable[Mapping[str, str]]]


class TerminalPipe:
    """Reads lines and prints answers. Blank lines are ignored.

    Reading needs no thread and never blocks the event loop, so the process can end at any moment.
    `save_file` stores a file of an answer and returns a sentence with its path.
    """

    def __init__(
        self,
        stdin: TextIO,
        stdout: TextIO,
        save_file: Callable[[File], str],
        word: Callable[[Sentence], str] = str,
    ) -> None:
        self._input = stdin.fileno()
        self._output = stdout.fileno()
        self._save_file = save_file
        self._word = word
        # Bytes that were read but not returned yet.
        self._buffer = b""
        self._has_input_ended = False
        self._is_output_closed = False

    def welcome(self, commands: Mapping[str, str], greeting: str, complete: CompleteOption) -> None:
        """Do nothing, because a program needs no greeting."""

    def show_tools(self, names: Sequence[str]) -> None:
        """Do nothing, because a program gets only final answers."""

    async def read_message(self) -> str | None:
        """Return the next message, or None if the input has ended or the output is closed."""
        while not self._is_output_closed:
            line = await self._read_line()
            if line is None:
                return None
            text = line.decode("utf-8-sig", "replace").rstrip("\r\n")
            if text.strip():
                return text
        return None

    async def wait_for_answer(
        self, work: Awaitable[object], stop: Callable[[], Awaitable[None]]
    ) -> bool:
        """Wait for an answer. `stop` is never called, because a program can't press Ctrl-C.

        Returns False, because a program never leaves before its input ends.
        """
        await work
        return False

    def reply(self) -> Reply:
        return QuietReply(self._print)

    async def _print(self, record: DeliveryRecord, answer: Answer) -> None:
        """Write an answer as plain text in UTF-8, whatever the locale is.

        Raises DeliveryError if the reading end of the output was closed.
        """
        text = await run_off_loop(
            lambda markdown: strip_controls(to_plain(markdown)).strip("\n"), answer.text
        )
        parts = [text, *describe_buttons(answer, self._word), *map(self._save_file, answer.files)]
        output = "\n".join(part for part in parts if part) + "\n"
        remaining = memoryview(output.encode("utf-8", "replace"))
        try:
            while remaining:
                remaining = remaining[os.write(self._output, remaining) :]
        except OSError as error:
            self._is_output_closed = True
            raise DeliveryError(
                f"the output was closed ({error.strerror})", is_unreachable=True
            ) from error

    async def _read_line(self) -> bytes | None:
        """Return the next line without its line feed, or None at the end of the input."""
        while b"\n" not in self._buffer and not self._has_input_ended:
            await self._wait_until_readable()
            try:
                chunk = os.read(self._input, READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                # The input is a folder or was opened for writing only.
                chunk = b""
            if not chunk:
                self._has_input_ended = True
            self._buffer += chunk
        line, line_feed, self._buffer = self._buffer.partition(b"\n")
        return line if line or line_feed else None

    async def _wait_until_readable(self) -> None:
        """Wait until a read won't block.

        The event loop can't watch regular files (PermissionError), but reading them never blocks.
        """
        loop = asyncio.get_running_loop()
        is_readable = asyncio.Event()
        try:
            loop.add_reader(self._input, is_readable.set)
        except PermissionError:
            return
        try:
            await is_readable.wait()
        finally:
            loop.remove_reader(self._input)


def describe_buttons(answer: Answer, word: Callable[[Sentence], str]) -> list[str]:
    """Return a line with the command for each button: ``More: /recall page:2 ferry``.

    `word` returns a sentence in the person's language.
    """
    lines = []
    for button in answer.buttons:
        command = f"/{button.command.name} {button.command.arguments}".rstrip()
        line = word(Sentence("terminal_button", {"label": button.label, "command": command}))
        lines.append(strip_controls(line))
    return lines
