"""The terminal when a person sits at it: a prompt with history and completion, and rendered answers as they grow. One
line is edited or one answer is shown at a time; what arrives meanwhile (a reminder) is printed above.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from adapters.terminal.adapter import hints
from core.ports import DeliveryRecord, Reply
from core.text.normalize import legible
from core.types import Answer, CommandSpec, File

REFRESHES_PER_S = 8
WELCOME = "Write a message and press Enter. /help lists what I can do, /quit leaves, Ctrl-C stops an answer."
_SECRET = ("/approve", "/forget", "/link")
"""Not kept in the history."""


class TerminalScreen:
    """`save` stores a file of an answer and says where it is; `is_incognito`: no line is kept in the history now."""

    def __init__(
        self,
        stdin: TextIO,
        stdout: TextIO,
        history: Path,
        save: Callable[[File], str],
        is_incognito: Callable[[], bool],
    ) -> None:
        os.close(os.open(history, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        self._input = create_input(stdin)
        self._console = Console(file=stdout, force_terminal=True, highlight=False)
        bindings = KeyBindings()
        # Alt-Enter; a paste keeps its own new lines.
        bindings.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        self._session: PromptSession[str] = PromptSession(
            "> ",
            history=_History(str(history), is_incognito),
            complete_while_typing=True,
            key_bindings=bindings,
            input=self._input,
            output=create_output(stdout),
        )
        self._save = save
        self._is_prompting = False
        self._live: Live | None = None

    def welcome(self, commands: Sequence[CommandSpec]) -> None:
        """Greets, and completes these commands from then on."""
        described = {f"/{spec.name}": spec.description for spec in commands} | {"/quit": "Leave"}
        self._session.completer = WordCompleter([*described], meta_dict=described, ignore_case=True, sentence=True)
        self._console.print(Text(WELCOME, style="dim"))

    async def read(self) -> str | None:
        """The next message as typed or pasted; None when the person leaves (Ctrl-D, or Ctrl-C at an empty prompt)."""
        while True:
            self._is_prompting = True
            try:
                text = await self._session.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    return None
                continue
            finally:
                self._is_prompting = False
            text = text.encode("utf-8", "replace").decode("utf-8")
            if text.strip():
                return text.strip("\n")

    def reply(self) -> Reply:
        return _LiveReply(self)

    async def attend(self, work: Awaitable[None], stop: Callable[[], Awaitable[None]]) -> None:
        """Waits until the message is answered; Ctrl-C calls `stop`, other keys are kept for the next prompt."""
        is_stopped = asyncio.Event()
        typed: list[KeyPress] = []

        def take() -> None:
            for key in self._input.read_keys():
                if key.key == Keys.ControlC:
                    is_stopped.set()
                else:
                    typed.append(key)

        async def watch() -> None:
            await is_stopped.wait()
            await stop()

        with self._input.raw_mode(), self._input.attach(take):
            watcher = asyncio.ensure_future(watch())
            try:
                await work
            finally:
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)
        store_typeahead(self._input, typed)

    def start(self, reply: ConsoleRenderable) -> None:
        """Gives the changing part of the screen away, unless it is taken or the person is typing."""
        if self._live is None and not self._is_prompting:
            self._live = Live(reply, console=self._console, transient=True, refresh_per_second=REFRESHES_PER_S)
            self._live.start()

    def end(self, reply: ConsoleRenderable) -> None:
        """Clears it if it is this reply's."""
        if self._live is not None and self._live.get_renderable() is reply:
            self._live.stop()
            self._live = None

    async def show(self, answer: Answer) -> None:
        """Prints an answer for good, above the prompt if there is one."""

        def paint() -> None:
            self._console.print(Markdown(legible(answer.text)))
            for line in [*(f"  {hint}" for hint in hints(answer)), *map(self._save, answer.files)]:
                self._console.print(Text(line, style="dim"))
            self._console.print()

        await run_in_terminal(paint, in_executor=True)


class _LiveReply:
    """Fills the role Reply: a spinner, then the text as it grows, then the answer for good."""

    def __init__(self, screen: TerminalScreen) -> None:
        self._screen = screen
        self._text = ""
        self._spinner = Spinner("dots", Text("thinking", style="dim"))

    def begin(self, record: DeliveryRecord) -> None:
        self._screen.start(self)

    def show(self, text: str) -> None:
        self._text = text

    async def finish(self, answer: Answer) -> None:
        await self.abandon()
        await self._screen.show(answer)

    async def abandon(self) -> None:
        self._text = ""  # what it shows last is drawn here, and a long text would take long
        self._screen.end(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The end of the text so far: as many lines as the window has."""
        if not self._text:
            yield self._spinner
            return
        lines = console.render_lines(Markdown(legible(self._text)), options.update(height=None), pad=False)
        for line in lines[-max(1, options.size.height - 2) :]:
            yield from line
            yield Segment.line()


class _History(FileHistory):
    def __init__(self, filename: str, is_incognito: Callable[[], bool]) -> None:
        super().__init__(filename)
        self._is_incognito = is_incognito

    def store_string(self, string: str) -> None:
        if not string.lower().startswith(_SECRET) and not self._is_incognito():
            super().store_string(string)
