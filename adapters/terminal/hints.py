"""What stands for buttons in a terminal: the lines that do the same when they are typed."""

from __future__ import annotations

from core.markup.render import legible
from core.types import Answer


def hints(answer: Answer) -> list[str]:
    """One line a button: ``More: /recall page:2 ferry``."""
    lines = (f"{button.label}: /{button.command.name} {button.command.arguments}" for button in answer.buttons)
    return [legible(line).rstrip() for line in lines]
