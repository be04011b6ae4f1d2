"""Translates the descriptions of commands for the menus of chat platforms, and renders the help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.menus.command_specs import CommandSpec, Option
from gateway.texts.catalog import Texts, list_languages, read_catalog


def translate_specs(specs: Sequence[CommandSpec]) -> tuple[CommandSpec, ...]:
    """Return the specs with descriptions in all languages, for the menus of platforms.

    The languages' texts aren't kept in memory, because most of them aren't used for anything else.
    """
    catalogs = {
        language: read_catalog(language) for language in list_languages() if language != "en"
    }
    return tuple(_translate_spec(spec, catalogs) for spec in specs)


def _translate_spec(spec: CommandSpec, catalogs: Mapping[str, Mapping[str, Any]]) -> CommandSpec:
    """Return a copy of a spec with translations. `catalogs` has the texts of each language."""

    def translate(*keys: str) -> dict[str, str]:
        translations = {}
        for language, catalog in catalogs.items():
            text: Any = catalog["commands"][spec.name]
            for key in keys:
                text = text[key]
            translations[language] = str(text)
        return translations

    def translate_options(options: Sequence[Option]) -> tuple[Option, ...]:
        return tuple(
            replace(
                option,
                translations=translate("options", option.name),
                name_translations=_list_translations("OPTION_NAMES", option.name, catalogs),
                choice_translations=_list_choice_translations(option, catalogs),
            )
            for option in options
        )

    actions = [
        replace(
            action,
            translations=translate("actions", action.name),
            name_translations=_list_translations("ACTION_NAMES", action.name, catalogs),
            options=translate_options(action.options),
        )
        for action in spec.actions
    ]
    return replace(
        spec,
        translations=translate("description"),
        name_translations=_list_names(spec.name, catalogs),
        menu_translations=translate("menu") if spec.menu else {},
        options=translate_options(spec.options),
        actions=tuple(actions),
    )


def _list_names(command: str, catalogs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the translated names of a command by language.

    Languages without a translated name are left out.
    """
    names = {}
    for language, catalog in catalogs.items():
        words = catalog["aliases"].get(command, "").split()
        if words:
            names[language] = words[0]
    return names


def _list_translations(
    table: str, name: str, catalogs: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Return the translations of a name in one table of the texts, by language."""
    return {language: catalog[table][name] for language, catalog in catalogs.items()}


def _list_choice_translations(
    option: Option, catalogs: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Return the labels of an option's choices: by choice, and then by language."""
    if option.is_switch or not option.choices:
        return {}
    labels = {
        language: catalog["CHOICE_NAMES"][option.name] for language, catalog in catalogs.items()
    }
    return {
        choice: {language: table[choice] for language, table in labels.items()}
        for choice in option.choices
    }


def list_commands(texts: Texts, specs: Sequence[CommandSpec]) -> str:
    """Return a Markdown list of commands, one per line."""
    words = texts.tables("commands")
    lines = [
        "- " + texts.pair(f"`{_render_usage(texts, spec)}`", words[spec.name]["description"])
        for spec in specs
    ]
    return "\n".join(lines)


def describe_command(texts: Texts, spec: CommandSpec) -> str:
    """Return the help of a command in Markdown, with its actions and options."""
    words = texts.tables("commands")[spec.name]
    lines = [texts.pair(f"`{_render_usage(texts, spec)}`", words["description"]) + "."]
    for action in spec.actions:
        usage = " ".join([action.name, *_render_arguments(texts, action.options)])
        lines.append("- " + texts.pair(f"`{usage}`", words["actions"][action.name]))
    described: set[str] = set()
    options = [*spec.options, *(option for action in spec.actions for option in action.options)]
    for option in options:
        if option.name not in described:
            described.add(option.name)
            lines.append(_render_option(texts, option, words["options"][option.name]))
    return "\n".join(lines)


def _render_usage(texts: Texts, spec: CommandSpec) -> str:
    """Render the usage of a command, such as ``/help [command]``.

    Options with a prefix are left out because they may be typed in any position.
    """
    words = [f"/{spec.name}"]
    if spec.actions:
        words.append(f"[{texts.table('OPTION_NAMES')['action']}]")
    return " ".join([*words, *_render_arguments(texts, spec.options)])


def _render_arguments(texts: Texts, options: Sequence[Option]) -> list[str]:
    names = texts.table("OPTION_NAMES")
    words = []
    for option in options:
        if not option.prefix and option.kind != "file":
            name = names.get(option.name, option.name)
            words.append(f"<{name}>" if option.is_required else f"[{name}]")
    return words


def _render_option(texts: Texts, option: Option, description: str) -> str:
    """Render one line of a command's help, such as ``- *title*: the title``."""
    name = f"`{option.prefix}`"
    if not option.prefix:
        name = f"*{texts.table('OPTION_NAMES').get(option.name, option.name)}*"
    if not option.prefix.endswith(":"):
        name += ":"
    choices = ""
    if option.choices and not option.is_switch:
        choices = f" ({', '.join(option.choices)})"
    return f"- {name} {description}{choices}"
