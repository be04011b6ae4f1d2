"""Opens Discord's forms (modals) for buttons that ask for text, menus of messages, and commands.

A command opens a form if its text of several lines is left out, such as ``/ask``.

The text to edit in a form is kept in memory only. After a restart, the form of an older button is
empty, and its label says what the text will change. An open form of a message's menu expires with a
restart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import discord

from adapters.discord import normalize
from adapters.discord.commands import SLASH_COMMAND_TYPE, read_given_options, translate
from adapters.discord.components import FORM_PREFIX, MAX_FORM_CHARS, has_form
from adapters.discord.errors import translate_errors
from adapters.discord.normalize import FilledForm, MenuChoice
from core.menus.command_specs import CommandSpec, Option
from core.types import Button, Form

MAX_TITLE_CHARS = 45
MAX_LABEL_CHARS = 45
MAX_PLACEHOLDER_CHARS = 100
MAX_FIELDS = 5
# The number of the newest forms that are remembered.
MAX_REMEMBERED = 2000
# The `custom_id` of a menu's form is this and the id of the interaction.
_MENU_PREFIX = "menu:"
# The `custom_id` of a command's form is this, the name of the command and its action, if any.
_COMMAND_PREFIX = "command:"
# The name of the only field in a button's form.
_FIELD = "text"


class DiscordForms:
    """The forms of one bot that can be opened or are open."""

    def __init__(self) -> None:
        self._forms: OrderedDict[str, Form] = OrderedDict()
        self._choices: OrderedDict[str, MenuChoice] = OrderedDict()

    def remember(self, buttons: Sequence[Button]) -> None:
        """Store the forms of buttons that are about to be shown."""
        for button in buttons:
            if has_form(button):
                _put(self._forms, button.id, button.form)

    async def open_for(
        self, interaction: discord.Interaction[discord.Client], specs: Mapping[str, CommandSpec]
    ) -> bool:
        """Open the form of a button or a menu entry. Returns False if it has no form.

        Raises DeliveryError if Discord refuses the form.
        """
        modal = self._build(interaction, specs)
        if modal is None:
            return False
        # The library needn't remember the form, because `read` recognizes it by its id.
        modal.stop()
        with translate_errors(is_interaction=True):
            await interaction.response.send_modal(modal)
        return True

    def _build(
        self, interaction: discord.Interaction[discord.Client], specs: Mapping[str, CommandSpec]
    ) -> discord.ui.Modal | None:
        """Return the form of a button, a menu entry or a command, or None if it has no form."""
        data: dict[str, Any] = dict(interaction.data or {})
        if data.get("type") == SLASH_COMMAND_TYPE and (
            interaction.type is discord.InteractionType.application_command
        ):
            return _build_command_form(data, specs.get(str(data["name"])), str(interaction.locale))
        if interaction.type is discord.InteractionType.component:
            chosen = data.get("values")
            custom_id = str(chosen[0] if chosen else data["custom_id"])
            if not custom_id.startswith(FORM_PREFIX):
                return None
            button_id = custom_id.removeprefix(FORM_PREFIX)
            title, hint = _find_labels(interaction.message, custom_id)
            form = self._forms.get(button_id, Form(title=title))
            modal = discord.ui.Modal(
                title=_shorten(form.title, MAX_TITLE_CHARS), custom_id=button_id
            )
            modal.add_item(_build_field(_FIELD, form.title, hint, form.value, is_long=True))
            return modal

        choice = normalize.read_menu_choice(interaction, specs)
        if choice is None or not choice.spec.menu_asks:
            return None
        spec = choice.spec
        locale = str(interaction.locale)
        modal_id = f"{_MENU_PREFIX}{interaction.id}"
        _put(self._choices, modal_id, choice)
        title = translate(spec.menu, spec.menu_translations, locale)
        modal = discord.ui.Modal(title=_shorten(title, MAX_TITLE_CHARS), custom_id=modal_id)
        for option in spec.options:
            if option.name in spec.menu_asks:
                modal.add_item(_build_option_field(option, locale))
        return modal

    def read(
        self, interaction: discord.Interaction[discord.Client], specs: Mapping[str, CommandSpec]
    ) -> FilledForm | None:
        """Return the text that was typed into a form, or None for other interactions."""
        if interaction.type is not discord.InteractionType.modal_submit:
            return None
        data: dict[str, Any] = dict(interaction.data or {})
        values: dict[str, str] = {}
        for row in data.get("components", ()):
            fields = [row["component"]] if "component" in row else row.get("components", [])
            for field in fields:
                values[str(field["custom_id"])] = str(field.get("value") or "").strip()
        custom_id = str(data["custom_id"])
        if custom_id.startswith(_COMMAND_PREFIX):
            name, _, action_name = custom_id.removeprefix(_COMMAND_PREFIX).partition(" ")
            return FilledForm(values=values, spec=specs.get(name), action_name=action_name)
        return FilledForm(values=values, choice=self._choices.get(custom_id))


def _build_command_form(
    data: Mapping[str, Any], spec: CommandSpec | None, locale: str
) -> discord.ui.Modal | None:
    """Return the form of a slash command whose long option was left out, or None."""
    if spec is None:
        return None
    action_name, values = read_given_options(data)
    options = spec.find_asked_options(action_name, values)
    if not options:
        return None
    action = spec.find_action(action_name)
    description = spec.description if action is None else action.description
    translations = spec.translations if action is None else action.translations
    modal = discord.ui.Modal(
        title=_shorten(translate(description, translations, locale), MAX_TITLE_CHARS),
        custom_id=f"{_COMMAND_PREFIX}{spec.name} {action_name}".rstrip(),
    )
    for option in options[:MAX_FIELDS]:
        modal.add_item(_build_option_field(option, locale, values.get(option.name, "")))
    return modal


def _find_labels(message: discord.Message | None, custom_id: str) -> tuple[str, str]:
    """Return the title for the form of a button or choice, and a hint about what it changes.

    Both are read from the message with the button.
    """
    rows = [] if message is None else message.components
    for row in rows:
        for item in getattr(row, "children", ()):
            if isinstance(item, discord.Button) and item.custom_id == custom_id:
                return item.label or custom_id, ""
            if isinstance(item, discord.SelectMenu):
                for option in item.options:
                    if option.value == custom_id:
                        return item.placeholder or option.label, option.label
    return "…", ""


def _put(entries: OrderedDict[str, Any], key: str, value: object) -> None:
    entries[key] = value
    while len(entries) > MAX_REMEMBERED:
        entries.popitem(last=False)


def _build_option_field(option: Option, locale: str, value: str = "") -> discord.ui.Label[Any]:
    description = translate(option.description, option.translations, locale)
    return _build_field(
        option.name,
        description,
        description,
        value,
        is_long=option.is_long,
        is_required=option.is_required or option.is_long,
    )


def _build_field(
    name: str, label: str, hint: str, value: str, *, is_long: bool, is_required: bool = True
) -> discord.ui.Label[Any]:
    """Return a text field with a label. A long field has several lines."""
    style = discord.TextStyle.paragraph if is_long else discord.TextStyle.short
    field: discord.ui.TextInput[Any] = discord.ui.TextInput(
        custom_id=name,
        style=style,
        placeholder=_shorten(hint, MAX_PLACEHOLDER_CHARS) or None,
        default=value[:MAX_FORM_CHARS] or None,
        required=is_required,
        max_length=MAX_FORM_CHARS,
    )
    return discord.ui.Label(text=_shorten(label, MAX_LABEL_CHARS), component=field)


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
