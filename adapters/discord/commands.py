"""Describes our commands as Discord's application commands, and reads the options of calls.

The descriptions are data (`core.menus.command_specs`). This module doesn't depend on the names of
commands. A test checks that all commands respect Discord's limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.menus.command_specs import Action, CommandSpec, Option

Payload = dict[str, Any]

# Kinds of application commands: typed as /name, or chosen from the menu of a message.
SLASH_COMMAND_TYPE = 1
MESSAGE_COMMAND_TYPE = 3
# Types of options.
SUB_COMMAND_TYPE = 1
STRING_TYPE = 3
INTEGER_TYPE = 4
BOOLEAN_TYPE = 5
FILE_TYPE = 11
_TYPES_BY_KIND = {"text": STRING_TYPE, "number": INTEGER_TYPE, "file": FILE_TYPE}
# Commands work in guilds (0), in direct chats with the bot (1) and between other people (2). A
# guild can install the bot (0), and so can a person (1), who then has the commands everywhere.
AVAILABILITY = {"contexts": [0, 1, 2], "integration_types": [0, 1]}
QUOTATION_MARKS = frozenset('"\u201c\u201d\u201e\u2033')
# Discord's codes of languages for which Mneme uses other codes.
LOCALES: Mapping[str, Sequence[str]] = {"es": ("es-ES", "es-419"), "zh": ("zh-CN",)}
MAX_MENU_WORDS_CHARS = 200
_NO_WORD = re.compile(r"[^\w\s'’]+")


def command_payloads(spec: CommandSpec) -> list[Payload]:
    """Return a command for Discord, and its entry in the menu of a message if it has one."""
    slash_command = {
        "type": SLASH_COMMAND_TYPE,
        "name": spec.name,
        "description": spec.description,
        "options": [_describe_action(action) for action in spec.actions]
        or _describe_options(spec.options),
        **_localize("name", spec.name_translations),
        **_localize("description", spec.translations),
        **AVAILABILITY,
    }
    if not spec.menu:
        return [slash_command]
    menu_command = {
        "type": MESSAGE_COMMAND_TYPE,
        "name": spec.menu,
        **_localize("name", spec.menu_translations),
        **AVAILABILITY,
    }
    return [slash_command, menu_command]


def _describe_action(action: Action) -> Payload:
    return {
        "type": SUB_COMMAND_TYPE,
        "name": action.name,
        "description": action.description,
        "options": _describe_options(action.options),
        **_localize("name", action.name_translations),
        **_localize("description", action.translations),
    }


def _describe_options(options: Sequence[Option]) -> list[Payload]:
    """Return the options for Discord, which requires that required options come first.

    `join_options` restores the original order.
    """
    payloads = []
    for option in sorted(options, key=lambda option: option.is_long or not option.is_required):
        payload: Payload = {
            "type": BOOLEAN_TYPE if option.is_switch else _TYPES_BY_KIND[option.kind],
            "name": option.name,
            "description": option.description,
            # If a long option is left out, a form asks for it.
            "required": option.is_required and not option.is_long,
            **_localize("name", option.name_translations),
            **_localize("description", option.translations),
        }
        if payload["type"] == STRING_TYPE:
            payload["choices"] = [_describe_choice(option, choice) for choice in option.choices]
            payload["autocomplete"] = bool(option.suggests)
        payloads.append(payload)
    return payloads


def _describe_choice(option: Option, choice: str) -> Payload:
    translations = option.choice_translations.get(choice, {})
    return {"name": choice, "value": choice, **_localize("name", translations)}


def _localize(key: str, translations: Mapping[str, str]) -> Payload:
    if not translations:
        return {}
    return {
        f"{key}_localizations": {
            locale: text
            for code, text in translations.items()
            for locale in LOCALES.get(code, (code,))
        }
    }


def translate(text: str, translations: Mapping[str, str], locale: str) -> str:
    """Return a text in the language of a person, or the given English text."""
    for code, translation in translations.items():
        if locale in LOCALES.get(code, (code,)):
            return translation
    return text


def join_options(options: object, spec: CommandSpec | None) -> str:
    """Return the line that a person would have typed for the options of a slash command.

    The name of an action comes first, then switches, then options with a prefix, then other
    options: "--summary from:Ana ferry". In another order, an unpaired quotation mark in a value
    could turn them into quoted text.
    """
    raw_options = _list_raw_options(options)
    if raw_options and raw_options[0].get("type") == SUB_COMMAND_TYPE:
        name = str(raw_options[0]["name"])
        action_options = _list_raw_options(raw_options[0].get("options"))
        action = None if spec is None else spec.find_action(name)
        if action is None:
            return " ".join([name, *(_read_value(option) for option in action_options)])
        values = {str(option["name"]): _read_value(option) for option in action_options}
        return f"{name} {join_values(values, action.options, action.joiner)}".rstrip()
    values = {str(option["name"]): _read_value(option) for option in raw_options}
    if spec is None:
        return " ".join(values.values()).strip()
    return join_values(values, spec.options, spec.joiner)


def join_values(values: Mapping[str, str], options: Sequence[Option], joiner: str) -> str:
    """Return the line for option values by name. Files are left out. See `join_options`."""
    options_in_order = sorted(options, key=lambda option: (not option.is_switch, not option.prefix))
    words = [
        _render_option(option, values[option.name])
        for option in options_in_order
        if option.name in values and option.kind != "file"
    ]
    return joiner.join(word for word in words if word).strip()


def find_focused_option(data: Mapping[str, Any], spec: CommandSpec) -> tuple[Option, str] | None:
    """Return the option that is being typed and its text so far, or None.

    If the suggestions depend on another option, its value precedes the text: "listen al".
    """
    raw_options = _list_raw_options(data.get("options"))
    action_name = ""
    if raw_options and raw_options[0].get("type") == SUB_COMMAND_TYPE:
        action_name = str(raw_options[0]["name"])
        raw_options = _list_raw_options(raw_options[0].get("options"))
    values = {str(raw_option["name"]): str(raw_option["value"]) for raw_option in raw_options}
    focused_names = [raw["name"] for raw in raw_options if raw.get("focused")]
    for option in spec.list_options(action_name):
        if option.name in focused_names:
            typed = values[option.name]
            if option.suggests_after:
                typed = f"{values.get(option.suggests_after, '')} {typed}"
            return option, typed
    return None


def read_given_options(data: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the action of a slash command, or "", and the values of its options by name."""
    action_name = ""
    raw_options = _list_raw_options(data.get("options"))
    if raw_options and raw_options[0].get("type") == SUB_COMMAND_TYPE:
        action_name = str(raw_options[0]["name"])
        raw_options = _list_raw_options(raw_options[0].get("options"))
    return action_name, {str(raw["name"]): _read_value(raw) for raw in raw_options}


def join_form(spec: CommandSpec, action_name: str, values: Mapping[str, str]) -> str:
    """Return the line for the values of a command's form. See `join_options`."""
    action = spec.find_action(action_name)
    joiner = spec.joiner if action is None else action.joiner
    line = join_values(values, spec.list_options(action_name), joiner)
    return f"{action_name} {line}".strip()


def list_file_ids(data: Mapping[str, Any]) -> list[str]:
    """Return the ids of the files that a command was given."""
    raw_options = _list_raw_options(data.get("options"))
    if raw_options and raw_options[0].get("type") == SUB_COMMAND_TYPE:
        raw_options = _list_raw_options(raw_options[0].get("options"))
    return [str(option["value"]) for option in raw_options if option.get("type") == FILE_TYPE]


def find_menu_command(
    data: Mapping[str, Any], specs: Mapping[str, CommandSpec]
) -> CommandSpec | None:
    """Return the command that was chosen from the menu of a message, or None."""
    if data.get("type") != MESSAGE_COMMAND_TYPE:
        return None
    name = str(data["name"])
    for spec in specs.values():
        if spec.menu == name:
            return spec
    return None


def keep_words(text: str) -> str:
    """Return the words of a message without characters that a search would read as operators."""
    words = " ".join(_NO_WORD.sub(" ", text).lower().split())
    if len(words) <= MAX_MENU_WORDS_CHARS:
        return words
    return words[:MAX_MENU_WORDS_CHARS].rpartition(" ")[0]


def _list_raw_options(options: object) -> list[Payload]:
    return list(options) if isinstance(options, list) else []


def _read_value(raw_option: Payload) -> str:
    value = raw_option["value"]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _render_option(option: Option, value: str) -> str:
    """Return an option's value as a person would type it.

    A value with a prefix is quoted. Quotation marks in the value can't be escaped, so they are left
    out.
    """
    if option.is_switch:
        return option.prefix if value == "true" else ""
    if not option.prefix:
        return value
    characters = [character for character in value if character not in QUOTATION_MARKS]
    words = " ".join("".join(characters).split())
    return f'{option.prefix}"{words}"' if words else ""
