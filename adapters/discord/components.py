"""Builds the parts of a Discord message besides its text: buttons, menus, cards and files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import discord

from core.markup.discord import to_discord
from core.markup.markdown import render
from core.types import Answer, Button

MAX_LABEL_CHARS = 80
MAX_ROWS = 5
MAX_ROW_BUTTONS = 5
MAX_CHOICES = 25
MAX_CHOICE_CHARS = 100
MAX_PLACEHOLDER_CHARS = 150
MAX_FILES = 10
MAX_CARDS = 10
# The longest text of one card, and of all cards of a message.
MAX_CARD_CHARS = 4096
MAX_CARDS_CHARS = 6000
# The `custom_id` of a select menu is this and the id of its first button.
MENU_PREFIX = "choose:"
# The id of a button or choice that opens a form is this prefix and its stored id, so that the form
# can be recognized after a restart.
FORM_PREFIX = "form:"
# A longer text can't be edited in a form.
MAX_FORM_CHARS = 4000


def shorten_to_cards(answer: Answer) -> Answer:
    """Return an answer with only its title as text if its cards fit into one message.

    Otherwise, the answer is returned without cards.
    """
    if not answer.cards:
        return answer
    lengths = [len(card) for card in map(_render_card, answer.cards)]
    fits = len(lengths) <= MAX_CARDS and sum(lengths) <= MAX_CARDS_CHARS
    if fits and max(lengths) <= MAX_CARD_CHARS:
        return replace(answer, text=answer.cards_title)
    return replace(answer, cards=())


def build_parts(answer: Answer | None) -> dict[str, Any]:
    """Return buttons, cards and files as arguments for sending. A draft (None) has none.

    Link previews are turned off, because Discord would have to fetch the addresses. Turning them
    off would also hide cards, so an answer with cards keeps them. Its text above the cards contains
    no links.
    """
    options: dict[str, Any] = {"suppress_embeds": True}
    if answer is None:
        return options
    if answer.cards:
        options = {"embeds": _build_cards(answer)}
    if answer.buttons:
        options["view"] = build_view(answer.buttons)
    if answer.files:
        options["files"] = _build_files(answer)
    return options


def build_edited_parts(answer: Answer | None) -> dict[str, Any]:
    """Return buttons, cards and files as arguments for editing.

    A draft (None) doesn't change existing buttons. The final answer sets or removes buttons.
    """
    if answer is None:
        return {}
    options: dict[str, Any] = {"view": build_view(answer.buttons) if answer.buttons else None}
    if answer.cards:
        options["embeds"] = _build_cards(answer)
    if answer.files:
        options["attachments"] = _build_files(answer)
    return options


def _build_files(answer: Answer) -> list[discord.File]:
    return [
        discord.File(io.BytesIO(file.content), filename=file.name)
        for file in answer.files[:MAX_FILES]
    ]


def _build_cards(answer: Answer) -> list[discord.Embed]:
    return [discord.Embed(description=_render_card(card)) for card in answer.cards]


def _render_card(card: str) -> str:
    return to_discord(render(card))


def build_view(buttons: Sequence[Button]) -> discord.ui.View:
    """Arrange buttons in rows, and the buttons of one list in a select menu with its own row.

    Mneme finds the action of a press by the stored id of the button. The library needn't remember
    the view, so the view is stopped.
    """
    view = discord.ui.View(timeout=None)
    for items in list(_arrange_rows(buttons))[:MAX_ROWS]:
        for item in items:
            view.add_item(item)
    view.stop()
    return view


def _arrange_rows(buttons: Sequence[Button]) -> Iterator[list[discord.ui.Item[Any]]]:
    """Yield the items of each row: select menus first, then rows of up to five buttons."""
    singles: list[Button] = []
    by_menu = sorted(buttons, key=lambda button: button.menu)
    for menu, group in groupby(by_menu, key=lambda button: button.menu):
        choices = list(group)
        if menu and len(choices) > 1:
            yield [_build_select(menu, choices[:MAX_CHOICES])]
        else:
            singles += choices
    for start in range(0, len(singles), MAX_ROW_BUTTONS):
        yield [
            discord.ui.Button(
                label=_shorten(button.label, MAX_LABEL_CHARS), custom_id=_make_custom_id(button)
            )
            for button in singles[start : start + MAX_ROW_BUTTONS]
        ]


def _build_select(menu: str, choices: Sequence[Button]) -> discord.ui.Select[Any]:
    """Return a select menu with the buttons of one list as its choices."""
    options = [
        discord.SelectOption(
            label=_shorten(button.label, MAX_CHOICE_CHARS),
            value=_make_custom_id(button),
            description=_shorten(button.details, MAX_CHOICE_CHARS) or None,
        )
        for button in choices
    ]
    return discord.ui.Select(
        custom_id=f"{MENU_PREFIX}{choices[0].id}",
        placeholder=_shorten(menu, MAX_PLACEHOLDER_CHARS),
        options=options,
    )


def has_form(button: Button) -> bool:
    """Return whether a press on the button opens a form."""
    return button.form is not None and len(button.form.value) <= MAX_FORM_CHARS


def _make_custom_id(button: Button) -> str:
    return f"{FORM_PREFIX}{button.id}" if has_form(button) else button.id


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
