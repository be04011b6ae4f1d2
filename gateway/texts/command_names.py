"""Finds the commands and actions that people type in their own language."""

from __future__ import annotations

from dataclasses import replace

from core.menus.command_specs import CommandSpec
from core.types import Command
from gateway.texts.catalog import list_languages, load_texts
from gateway.texts.text_files import ENGLISH_CODE, match_language


def find_alias(word: str, language: str) -> str | None:
    """Return the command with this name in a language, or None.

    The person's language is tried first.
    """
    for code in (match_language(language) or ENGLISH_CODE, *list_languages()):
        for command, words in load_texts(code).table("aliases").items():
            if word in words.split():
                return command
    return None


def translate_action(command: Command, spec: CommandSpec, language: str) -> Command:
    """Return a command with the English name of its action: "add Tea" for "hinzufügen Tea".

    If its arguments don't begin with the name of an action in this language, the command isn't
    changed.
    """
    word, separator, rest = command.arguments.strip().partition(" ")
    names = load_texts(language).table("ACTION_NAMES")
    for action in spec.actions:
        if names[action.name] == word.lower() and spec.find_action(word.lower()) is None:
            return replace(command, arguments=f"{action.name}{separator}{rest}")
    return command
