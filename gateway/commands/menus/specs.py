"""Translates the descriptions of commands for the menus of platforms, and renders them as help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from core.command_specs import Action, CommandSpec, Option
from gateway.texts.catalog import Texts, list_languages, load_texts

# Returns the texts of one item in a language, given those of its command.
_Pick = Callable[[Any], str]


def translate_specs(specs: Sequence[CommandSpec]) -> tuple[CommandSpec, ...]:
    """Return the specs with their descriptions in all languages, for the menus of platforms."""
    return tuple(map(_translate_spec, specs))


def _translate_spec(spec: CommandSpec) -> CommandSpec:
    def translate(pick: _Pick) -> dict[str, str]:
        return {
            language: pick(load_texts(language).tables("commands")[spec.name])
            for language in list_languages()
            if language != "en"
        }

    def translate_options(options: Sequence[Option]) -> tuple[Option, ...]:
        return tuple(
            replace(
                option, translations=translate(lambda words, n=option.name: words["options"][n])
            )
            for option in options
        )

    def translate_action(action: Action) -> Action:
        return replace(
            action,
            translations=translate(lambda words: words["actions"][action.name]),
            options=translate_options(action.options),
        )

    menu_translations = {}
    if spec.menu:
        menu_translations = translate(lambda words: words["menu"])
    return replace(
        spec,
        translations=translate(lambda words: words["description"]),
        menu_translations=menu_translations,
        options=translate_options(spec.options),
        actions=tuple(map(translate_action, spec.actions)),
    )


def list_commands(texts: Texts, specs: Sequence[CommandSpec]) -> str:
    """List commands as Markdown, one line each."""
    words = texts.tables("commands")
    lines = [f"- `{_render_usage(spec)}`: {words[spec.name]['description']}" for spec in specs]
    return "\n".join(lines)


def describe_command(texts: Texts, spec: CommandSpec) -> str:
    """Explain a command with its actions and options as Markdown."""
    words = texts.tables("commands")[spec.name]
    lines = [f"`{_render_usage(spec)}`: {words['description']}."]
    for action in spec.actions:
        usage = " ".join([action.name, *_render_arguments(action.options)])
        lines.append(f"- `{usage}`: {words['actions'][action.name]}")
    described: set[str] = set()
    options = [*spec.options, *(option for action in spec.actions for option in action.options)]
    for option in options:
        if option.name not in described:
            described.add(option.name)
            lines.append(_render_option(option, words["options"][option.name]))
    return "\n".join(lines)


def _render_usage(spec: CommandSpec) -> str:
    """Render the usage of a command, such as ``/help [command]``.

    Options with a prefix are left out, because they may be typed anywhere.
    """
    words = [f"/{spec.name}"]
    if spec.actions:
        words.append("[action]")
    return " ".join([*words, *_render_arguments(spec.options)])


def _render_arguments(options: Sequence[Option]) -> list[str]:
    words = []
    for option in options:
        if not option.prefix and option.kind != "file":
            words.append(f"<{option.name}>" if option.is_required else f"[{option.name}]")
    return words


def _render_option(option: Option, description: str) -> str:
    """Render one line of a command's help, such as ``- *title*: the title``."""
    name = f"`{option.prefix}`" if option.prefix else f"*{option.name}*"
    if not option.prefix.endswith(":"):
        name += ":"
    choices = ""
    if option.choices and not option.is_switch:
        choices = f" ({', '.join(option.choices)})"
    return f"- {name} {description}{choices}"
