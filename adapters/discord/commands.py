"""Describes our commands to Discord as application commands, and reads a call back into one line.

They are within Discord's limits as `commands.toml` names them; a test holds that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import discord

from adapters.discord.messages import UNREACHABLE, UNREADABLE
from core.types import CommandSpec, Option

CHAT_INPUT, MESSAGE = 1, 3
"""Kinds of application commands: typed, and in the menu of a message."""
STRING = 3
"""Kind of option."""
PLACES = {"contexts": [0, 1], "integration_types": [0]}
"""Used in guilds and direct chats, installed in guilds."""
QUOTES = frozenset('"\u201c\u201d\u201e\u2033')

log = logging.getLogger(__name__)


def entry(spec: CommandSpec) -> dict[str, Any]:
    """The payload of an entry in the menu of a message; Discord shows its name as it is, and takes no description."""
    return {"type": MESSAGE, "name": spec.menu, **PLACES}


def chosen(data: Mapping[str, Any], specs: Mapping[str, CommandSpec]) -> CommandSpec | None:
    """The command whose entry was chosen; None where the call is none of a menu."""
    if data.get("type") != MESSAGE:
        return None
    return next((spec for spec in specs.values() if spec.menu and spec.menu == data.get("name")), None)


async def announce(client: discord.Client, specs: Sequence[CommandSpec]) -> None:
    """Registers the commands globally; the same again changes nothing. A failure is logged: the old ones stay."""
    application_id = client.application_id
    if application_id is None:
        return
    wanted = [*map(described, specs), *(entry(spec) for spec in specs if spec.menu)]
    try:
        await client.http.bulk_upsert_global_commands(application_id, wanted)
    except (*UNREACHABLE, *UNREADABLE) as error:
        log.warning("Discord did not take the commands, those registered before stay: %s", error)


def described(spec: CommandSpec) -> dict[str, Any]:
    """The payload of one command. Discord wants required options first; the order of values is restored in `joined`."""
    options = sorted(spec.options, key=lambda option: not option.is_required)
    return {
        "type": CHAT_INPUT,
        "name": spec.name,
        "description": spec.description,
        "options": [_option(option) for option in options],
        **PLACES,
    }


def joined(options: object, spec: CommandSpec | None) -> str:
    """The values of a call, in the order of the command's options, as one line; switches and what has a prefix stand
    before the rest, whatever quotes that has."""
    given = {str(option["name"]): str(option["value"]) for option in options} if isinstance(options, list) else {}
    if spec is None:
        return " ".join(given.values()).strip()
    ordered = sorted(spec.options, key=lambda option: (not option.is_switch, not option.prefix))
    values = [_typed(option, given[option.name]) for option in ordered if option.name in given]
    return spec.joiner.join(value for value in values if value).strip()


def _typed(option: Option, value: str) -> str:
    """A value as a person would type it, in quotes; quotes inside of it cannot be escaped and are left out."""
    if option.is_switch:
        return option.prefix if value == "true" else ""
    if not option.prefix:
        return value
    words = " ".join("".join(character for character in value if character not in QUOTES).split())
    return f'{option.prefix}"{words}"' if words else ""


def _option(option: Option) -> dict[str, Any]:
    described = {"type": STRING, "name": option.name, "description": option.description, "required": option.is_required}
    choices = [{"name": choice, "value": choice} for choice in option.choices]
    return described | ({"choices": choices} if choices else {})
