"""Describes the commands as data, for platform menus and forms, and for the help.

`gateway/commands/data/commands.toml` contains the commands. The texts of a language contain the
descriptions for people. An adapter builds its menus from this data and contains no code for single
commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

OptionKind = Literal["text", "number", "file"]

CommandPlace = Literal["", "direct", "group"]
# How the entry of a message's context menu uses the message: the option `menu_fills` becomes its
# text or its words, the command quotes it, or the command is about the answer that it belongs to.
MenuUse = Literal["text", "words", "quote", "answer"]
# Loads the values of a source, such as "facts", that fit the typed text, with their labels.
ValueLoader = Callable[[str, str], Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One argument of a command."""

    name: str
    description: str
    kind: OptionKind = "text"
    is_required: bool = False
    choices: tuple[str, ...] = ()
    # Precedes the value in a typed line, such as ``from:``. An option whose prefix has no colon,
    # such as ``--summary``, is a switch; it's on if its value is "true".
    prefix: str = ""
    # The source of the values that are suggested while the person types, such as "facts". Empty for
    # no suggestions.
    suggests: str = ""
    # Another option on which the suggestions depend. Its value then precedes the text.
    suggests_after: str = ""
    # The value may have several lines. If the person leaves it out, a form with a large field asks
    # for it on platforms with forms.
    is_long: bool = False
    # The description and the name in other languages, by codes such as "de" and "pt-BR".
    translations: Mapping[str, str] = field(default_factory=dict)
    name_translations: Mapping[str, str] = field(default_factory=dict)
    # The labels of each choice by the same codes.
    choice_translations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_switch(self) -> bool:
        return bool(self.prefix) and not self.prefix.endswith(":")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action of a command: the word after the command, such as "add" in ``/memory add``."""

    name: str
    description: str
    options: tuple[Option, ...] = ()
    # See `CommandSpec.joiner`.
    joiner: str = " "
    # The answer is visible only to the person, even if the answers of other actions aren't.
    is_private: bool = False
    translations: Mapping[str, str] = field(default_factory=dict)
    name_translations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """The description of a command, for platforms and for people."""

    name: str
    description: str
    options: tuple[Option, ...] = ()
    # If a command has actions, the first word of the line names one of them, and `options` is
    # empty.
    actions: tuple[Action, ...] = ()
    # The separator when option values are joined to the line that a person would type: switches
    # first, then values with a prefix, then all other values.
    joiner: str = " "
    # The answer is visible only to the person who gives the command.
    is_private: bool = False
    # The help lists the command for the owner only.
    is_for_owner: bool = False
    # The kind of chats that the command is for: "direct" or "group". "" means all.
    place: CommandPlace = ""
    # The entry of a message's context menu that runs the command; the message is in `reply_to`.
    menu: str = ""
    menu_use: MenuUse = "text"
    # The option that the message becomes.
    menu_fills: str = ""
    # The options that a form asks for after the entry was chosen.
    menu_asks: tuple[str, ...] = ()
    # A pattern of the arguments that change data. None if the command never changes data.
    changes: str | None = None
    # The description in other languages, by codes such as "de" and "pt-BR".
    translations: Mapping[str, str] = field(default_factory=dict)
    # The name in the languages in which the command has another name.
    name_translations: Mapping[str, str] = field(default_factory=dict)
    # The same for `menu`.
    menu_translations: Mapping[str, str] = field(default_factory=dict)

    def describe(self, language: str) -> str:
        """Return the description for a language code such as "de" or ``pt_BR``.

        It's English if there's no translation.
        """
        main = language.replace("_", "-").partition("-")[0].lower()
        for code, description in self.translations.items():
            if code.partition("-")[0] == main:
                return description
        return self.description

    def find_action(self, name: str) -> Action | None:
        """Return the action with this name, or None."""
        for action in self.actions:
            if action.name == name:
                return action
        return None

    def is_private_action(self, arguments: str) -> bool:
        """Return True if arguments begin with an action whose answer is for one person only.

        Without arguments, the first action counts.
        """
        if not self.actions:
            return False
        action = self.find_action(arguments.partition(" ")[0].lower() or self.actions[0].name)
        return action is not None and action.is_private

    def list_options(self, action_name: str = "") -> Sequence[Option]:
        """Return the options of an action, or the options of a command without actions."""
        action = self.find_action(action_name)
        return self.options if action is None else action.options

    def find_asked_options(self, action_name: str, given: Collection[str]) -> Sequence[Option]:
        """Return the options that a form asks for, or none if no form is needed.

        A form is needed if a long option isn't among the `given` names. It asks for the other
        options, too. A command with a file needs no text.
        """
        options = self.list_options(action_name)
        missing = [option for option in options if option.is_long and option.name not in given]
        has_file = any(option.kind == "file" and option.name in given for option in options)
        if not missing or has_file:
            return ()
        return [option for option in options if option.kind != "file" and not option.is_switch]

    async def complete(self, typed: str, load: ValueLoader) -> dict[str, str]:
        """Return the completions of a partly typed line, with their labels.

        The line doesn't include the name of the command. The completion of "pau" is "pause", and
        those of "pause " are "pause 1" and "pause 2". Only actions and their first option are
        completed.
        """
        action, separator, after_action = typed.partition(" ")
        if self.actions and not separator:
            return {item.name: item.name for item in self.actions if item.name.startswith(typed)}
        action_prefix = f"{action} " if self.actions else ""
        value = after_action if self.actions else typed
        for option in self.list_options(action):
            if not option.prefix:
                values = {name: name for name in option.choices if name.startswith(value)}
                values |= await load(option.suggests, value)
                return {f"{action_prefix}{name}": label for name, label in values.items()}
        return {}
