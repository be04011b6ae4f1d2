"""Finds the commands and actions that people type in their own language."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import replace

from core.menus.command_specs import CommandSpec
from core.text.normalize import language_data, without_marks
from core.types import Command, Inbound
from gateway.texts.catalog import Texts, list_languages, load_texts
from gateway.texts.text_files import ENGLISH_CODE, match_language

# The letters from ぁ to ゖ have Katakana 96 code points after them.
_TO_KATAKANA = {letter: letter + 0x60 for letter in range(0x3041, 0x3097)}


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


def suggest_commands(texts: Texts, name: str, known: Collection[str], platform: str) -> str:
    """Return an answer to an unknown command that suggests similar names.

    `known` are the names of the commands. The names of the person's language are suggested, too.
    """
    names = find_similar_commands(texts, name, known, platform)
    suggestion = ""
    if names:
        alternatives = texts.join_alternatives([f"/{shown}" for shown in names])
        suggestion = texts.DID_YOU_MEAN.format(names=alternatives)
    return texts.UNKNOWN_COMMAND.format(name=name[:40], suggestion=suggestion)


def find_similar_commands(
    texts: Texts, name: str, known: Collection[str], platform: str
) -> list[str]:
    """Return up to three names of commands that a person may have meant by an unknown name."""
    commands = {known_name: known_name for known_name in known}
    for command, words in language_data("synonyms", "gateway.commands").items():
        if command in known or platform == "terminal":
            commands[command] = command
            commands.update(dict.fromkeys(words, command))
    aliases = set()
    for command, words in texts.table("aliases").items():
        aliases.update(words.split())
        commands.update(dict.fromkeys(words.split(), command))
    matches = [name] if name in commands else find_similar_names(name, commands)
    names: dict[str, str] = {}
    for match in matches:
        names.setdefault(commands[match], match if match in aliases else commands[match])
    return list(names.values())


def is_for_another_bot(inbound: Inbound, specs: Collection[CommandSpec]) -> bool:
    """Return whether a group message is probably a command for another bot.

    This is the case if its name resembles none of Mneme's commands, and if the message neither
    names Mneme nor replies to it.
    """
    command = inbound.command
    if command is None or inbound.is_direct or inbound.is_interaction or inbound.is_mention:
        return False
    is_reply = inbound.quote is not None and inbound.quote.is_ours
    is_named = "@" in inbound.text.partition(" ")[0]
    known = {"start", *(spec.name for spec in specs)}
    if is_reply or is_named or command.name in known:
        return False
    texts = load_texts(inbound.language)
    return not find_similar_commands(texts, command.name, known, inbound.address.platform)


def find_similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that a person may have mistyped, the most similar first.

    Accents aren't compared. Hiragana counts as Katakana: ``へルフ`` is similar to ``ヘルプ``.
    """
    names_by_form: dict[str, list[str]] = {}
    for candidate in names:
        names_by_form.setdefault(_to_form(candidate), []).append(candidate)
    # Names in Chinese characters and Kana are short.
    cutoff = 0.5 if len(name) <= 3 and not name.isascii() else 0.65
    forms = difflib.get_close_matches(_to_form(name), names_by_form, n=3, cutoff=cutoff)
    return [candidate for form in forms for candidate in names_by_form[form]][:3]


def _to_form(name: str) -> str:
    """Return a name without marks, in Katakana instead of Hiragana."""
    return without_marks(name.casefold()).translate(_TO_KATAKANA)
