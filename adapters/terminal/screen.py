"""Shows a prompt with history and completion to a person, and renders answers.

The screen shows either the line that is being edited or the answer that is being written. Other
messages that arrive meanwhile, such as reminders, are printed above the prompt.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, WordCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from adapters.terminal.pipe import CompleteOption, describe_buttons
from core.errors import Sentence
from core.markup.markdown import reveal_addresses
from core.ports import DeliveryRecord, Reply
from core.text.normalize import isolate_right_to_left, strip_controls
from core.types import Answer, File

REFRESHES_PER_S = 8
# Lines with these commands may contain secrets, so they aren't stored in the history.
_SECRET_COMMANDS = ("/approve", "/forget", "/link")


def _make_showable(text: str) -> str:
    """Return a text without control characters, and with right-to-left words isolated."""
    return isolate_right_to_left(strip_controls(text))


def _format_markdown(text: str) -> ConsoleRenderable:
    # Imported here because it takes a while, and the prompt doesn't need it.
    from rich.markdown import Markdown

    markdown = Markdown(_make_showable(text))
    reveal_addresses(markdown.parsed)
    return markdown


class TerminalScreen:
    """A prompt, and a live area that shows one answer while it is written.

    `save_file` stores a file of an answer and returns a sentence with its path. While
    `is_incognito` returns True, no lines are stored in the history. `word` returns a sentence in
    the person's language.
    """

    def __init__(
        self,
        stdin: TextIO,
        stdout: TextIO,
        history: Path,
        save_file: Callable[[File], str],
        is_incognito: Callable[[], bool],
        word: Callable[[Sentence], str] = str,
    ) -> None:
        # Create the history so that only the user can read it.
        os.close(os.open(history, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        self._input = create_input(stdin)
        self._console = Console(file=stdout, force_terminal=True, highlight=False)
        bindings = KeyBindings()
        # Alt-Enter inserts a line break. Pasted text keeps its line breaks.
        bindings.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        self._session: PromptSession[str] = PromptSession(
            "> ",
            history=_History(str(history), is_incognito),
            complete_while_typing=True,
            key_bindings=bindings,
            input=self._input,
            output=create_output(stdout),
        )
        self._save_file = save_file
        self._word = word
        self._is_prompting = False
        self._live: Live | None = None

    def welcome(self, commands: Mapping[str, str], greeting: str, complete: CompleteOption) -> None:
        """Print a greeting, and set the commands that the prompt completes, with descriptions.

        `complete` returns the values for a command's option that is being typed.
        """
        descriptions = {f"/{name}": description for name, description in commands.items()}
        descriptions["/quit"] = self._word(Sentence("terminal_leave"))
        self._session.completer = _CommandCompleter(descriptions, complete)
        if greeting:
            self._console.print(Text(_make_showable(greeting)))
        self._print_hint(Sentence("terminal_hint"))

    def show_tools(self, names: Sequence[str]) -> None:
        """Show which tools are running until the answer continues."""
        reply = self._live.get_renderable() if self._live is not None else None
        if isinstance(reply, _LiveReply):
            reply.show_tools(names)

    async def read_message(self) -> str | None:
        """Return the next message as typed or pasted.

        Returns None if the person leaves with Ctrl-D, or with Ctrl-C twice at an empty prompt.
        """
        is_leaving = False
        while True:
            self._is_prompting = True
            try:
                text = await self._session.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                is_empty = not self._session.default_buffer.text
                if is_empty and is_leaving:
                    self._print_hint(Sentence("terminal_bye"))
                    return None
                is_leaving = is_empty
                if is_leaving:
                    self._print_hint(Sentence("terminal_again"))
                continue
            finally:
                self._is_prompting = False
            text = text.encode("utf-8", "replace").decode("utf-8")
            if text.strip():
                return text.strip("\n")

    def _print_hint(self, sentence: Sentence) -> None:
        self._console.print(Text(self._word(sentence), style="dim"))

    def reply(self) -> Reply:
        return _LiveReply(self, self._word)

    async def wait_for_answer(
        self, work: Awaitable[object], stop: Callable[[], Awaitable[None]]
    ) -> bool:
        """Wait for an answer. Ctrl-C calls `stop`. Other keys become input of the next prompt.

        Returns True if the person leaves by pressing Ctrl-C twice.
        """
        is_interrupted = asyncio.Event()
        is_leaving = asyncio.Event()
        typed_ahead: list[KeyPress] = []

        def read_keys() -> None:
            for key in self._input.read_keys():
                if key.key != Keys.ControlC:
                    typed_ahead.append(key)
                elif is_interrupted.is_set():
                    is_leaving.set()
                else:
                    is_interrupted.set()

        async def stop_on_interrupt() -> None:
            await is_interrupted.wait()
            await stop()

        with self._input.raw_mode(), self._input.attach(read_keys):
            answered = asyncio.ensure_future(work)
            stopping = asyncio.create_task(stop_on_interrupt())
            leaving = asyncio.create_task(is_leaving.wait())
            try:
                await asyncio.wait([leaving, answered], return_when=asyncio.FIRST_COMPLETED)
                if answered.done():
                    answered.result()
                    if is_interrupted.is_set():
                        # The answer to `stop` is printed before the prompt returns.
                        await asyncio.wait([leaving, stopping], return_when=asyncio.FIRST_COMPLETED)
            finally:
                tasks = (answered, stopping, leaving)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        if is_leaving.is_set():
            if self._live is not None:
                self._live.stop()
                self._live = None
            self._print_hint(Sentence("terminal_left"))
            return True
        store_typeahead(self._input, typed_ahead)
        return False

    def start_live(self, reply: ConsoleRenderable) -> None:
        """Show a reply in the live area, unless another reply is shown or the person is typing."""
        if self._live is None and not self._is_prompting:
            self._live = Live(
                reply,
                console=self._console,
                transient=True,
                refresh_per_second=REFRESHES_PER_S,
            )
            self._live.start()

    def stop_live(self, reply: ConsoleRenderable) -> None:
        """Clear the live area if it shows this reply."""
        if self._live is not None and self._live.get_renderable() is reply:
            self._live.stop()
            self._live = None

    async def print_answer(self, answer: Answer) -> None:
        """Print a finished answer, above the prompt if there is one."""

        def print_now() -> None:
            self._console.print(_format_markdown(answer.text))
            for line in describe_buttons(answer, self._word):
                self._console.print(Text(f"  {line}", style="dim"))
            for file in answer.files:
                self._console.print(Text(self._save_file(file), style="dim"))
            self._console.print()

        await run_in_terminal(print_now, in_executor=True)


class _LiveReply:
    """A `Reply` that shows a spinner, then the growing text, then the finished answer."""

    def __init__(self, screen: TerminalScreen, word: Callable[[Sentence], str]) -> None:
        self._screen = screen
        self._word = word
        self._text = ""
        self._spinner = Spinner("dots", Text(word(Sentence("terminal_thinking")), style="dim"))
        # The running tools. Empty while the model writes.
        self._tools = ""

    def begin(self, record: DeliveryRecord) -> None:
        self._screen.start_live(self)

    def show(self, text: str) -> None:
        self._text = text
        self._set_tools("")

    def show_tools(self, names: Sequence[str]) -> None:
        self._set_tools(", ".join(names))

    def _set_tools(self, names: str) -> None:
        if names != self._tools:
            self._tools = names
            sentence = Sentence("terminal_thinking")
            if names:
                sentence = Sentence("terminal_tools", {"names": names})
            self._spinner.update(text=Text(_make_showable(self._word(sentence)), style="dim"))

    async def finish(self, answer: Answer) -> None:
        await self.abandon()
        await self._screen.print_answer(answer)

    async def abandon(self, *, is_withdrawn: bool = False) -> None:
        # The live area draws its content once more before it is cleared. Without the text, even a
        # long answer is cleared quickly.
        self._text = ""
        self._screen.stop_live(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render as many of the last lines of the text as fit into the window."""
        if not self._text:
            yield self._spinner
            return
        if self._tools:
            yield self._spinner
        text = _format_markdown(self._text)
        lines = console.render_lines(text, options.update(height=None), pad=False)
        visible_lines = max(1, options.size.height - 3)
        for line in lines[-visible_lines:]:
            yield from line
            yield Segment.line()


class _CommandCompleter(Completer):
    """Completes the names of commands and the values of their options."""

    def __init__(self, descriptions: Mapping[str, str], complete: CompleteOption) -> None:
        self._names = WordCompleter(
            list(descriptions), meta_dict=dict(descriptions), ignore_case=True, sentence=True
        )
        self._complete = complete

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Complete only the name of a command, because options need the event loop."""
        return self._names.get_completions(document, complete_event)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield completions for the text before the cursor."""
        text = document.text_before_cursor
        name, separator, typed = text.partition(" ")
        if not separator or not name.startswith("/"):
            for completion in self._names.get_completions(document, complete_event):
                yield completion
            return
        for value, label in (await self._complete(text)).items():
            yield Completion(value, start_position=-len(typed), display=label)


class _History(FileHistory):
    """A history file that stores neither secrets nor the lines of incognito conversations."""

    def __init__(self, filename: str, is_incognito: Callable[[], bool]) -> None:
        super().__init__(filename)
        self._is_incognito = is_incognito

    def store_string(self, string: str) -> None:
        if not string.lower().startswith(_SECRET_COMMANDS) and not self._is_incognito():
            super().store_string(string)
