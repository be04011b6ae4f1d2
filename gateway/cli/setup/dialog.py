"""Asks the questions of `mneme setup` in a terminal and prints the results."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.prompt import Confirm, InvalidResponse, Prompt, PromptBase
from rich.text import Text

from core.text.normalize import strip_controls
from gateway.cli.shell import read_yes_or_no
from gateway.texts.catalog import ENGLISH, Texts


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a numbered list of answers."""

    key: str
    label: str


class _NumberPrompt(PromptBase[int]):
    response_type = int


class _RequiredPrompt(PromptBase[str]):
    """A prompt that repeats its question until the answer isn't empty.

    `refusal` is printed after an empty answer.
    """

    response_type = str
    refusal = ""

    def process_response(self, value: str) -> str:
        if not value.strip():
            raise InvalidResponse(self.refusal)
        return value.strip()


class _Confirmation(Confirm):
    """A yes-or-no question in the person's language."""

    texts = ENGLISH

    def process_response(self, value: str) -> bool:
        is_yes = read_yes_or_no(value, self.texts)
        if is_yes is None:
            raise InvalidResponse(self.validate_error_message)
        return is_yes


@dataclass(kw_only=True)
class Dialog:
    """Talks to the person who runs the setup.

    If `is_interactive` is false, only `tell` works, and callers must not ask questions.
    """

    is_interactive: bool
    console: Console = field(default_factory=lambda: Console(highlight=False, emoji=False))
    texts: Texts = field(default=ENGLISH, repr=False)
    # The texts that are printed when it's certain that the setup succeeds, or None if each is
    # printed at once.
    held_texts: list[str] | None = None

    @property
    def words(self) -> Mapping[str, str]:
        """Return the texts of the questions themselves, such as "Write one of the numbers."."""
        words: dict[str, str] = self.texts.tables("setup")["dialog"]
        return words

    def tell(self, text: str) -> None:
        """Print a text without interpreting markup, because other people may have written it."""
        if self.held_texts is not None:
            self.held_texts.append(text)
            return
        self.console.print(Text(strip_controls(text)), soft_wrap=True)

    def print_held(self) -> None:
        """Print the held texts, and print the next ones at once."""
        texts, self.held_texts = self.held_texts or [], None
        for text in texts:
            self.tell(text)

    def warn(self, text: str) -> None:
        """Print an error."""
        self.console.print(Text(strip_controls(text), style="red"), soft_wrap=True)

    def ask(self, question: str, default: str = "") -> str:
        """Ask a question and return the answer. If there is a default, Enter accepts it."""
        if default:
            return Prompt.ask(Text(question), console=self.console, default=default).strip()
        return self._ask_again(question)

    def ask_secret(self, question: str, *, is_optional: bool = False) -> str:
        """Ask for a secret without showing what is typed, and return it."""
        question = f"{question} ({self.words['hidden']})"
        if is_optional:
            text = Text(question)
            return Prompt.ask(
                text, console=self.console, password=True, default="", show_default=False
            ).strip()
        return self._ask_again(question, is_secret=True)

    def _ask_again(self, question: str, *, is_secret: bool = False) -> str:
        """Repeat a question until the answer isn't empty."""
        prompt = _RequiredPrompt(Text(question), console=self.console, password=is_secret)
        prompt.refusal = f"[red]{self.words['empty']}"
        return prompt()

    def confirm(self, question: str, *, default: bool) -> bool:
        choices = [self.words["yes"], self.words["no"]]
        prompt = _Confirmation(Text(question), console=self.console, choices=choices)
        prompt.texts = self.texts
        prompt.validate_error_message = f"[red]{self.words['yes_or_no']}"
        return bool(prompt(default=default))

    def choose(self, question: str, choices: Sequence[Choice], default: str = "") -> str:
        """Return the key of the choice whose number the person types."""
        self.tell(question)
        default_number = 1
        for number, choice in enumerate(choices, 1):
            self.tell(f"  {number:>2}  {choice.label}")
            if choice.key == default:
                default_number = number
        prompt = _NumberPrompt(
            Text(self.words["number"]),
            console=self.console,
            choices=[str(number) for number in range(1, len(choices) + 1)],
            show_choices=False,
        )
        refusal = f"[red]{self.words['one_of_them']}"
        prompt.validate_error_message = prompt.illegal_choice_message = refusal
        return choices[prompt(default=default_number) - 1].key

    def show_qr_code(self, link: str) -> None:
        """Print a link as a QR code if the terminal is wide enough."""
        if not self.console.is_terminal:
            return
        # Imported here because only Discord's invite is shown this way.
        import segno

        output = io.StringIO()
        segno.make(link, error="l", boost_error=False).terminal(out=output, border=2, compact=True)
        lines = output.getvalue().splitlines()
        if lines and self.console.width >= len(Text.from_ansi(lines[0]).plain):
            for line in lines:
                self.console.print(Text.from_ansi(line), soft_wrap=True)
