"""Sends those menus of commands to Telegram that Telegram doesn't have yet.

There is a menu for direct chats, a menu for groups and a menu for the owner, each in English and in
every language with descriptions. Menus rarely change between two starts, so state.db stores a
fingerprint of each menu that Telegram has accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeChat,
)
from telegram.error import TelegramError

from core.errors import StoreError
from core.menus.command_specs import CommandSpec

if TYPE_CHECKING:
    from core.store.mailbox import Inbox

# Telegram's limit for the description of a command.
DESCRIPTION_CHARS = 256

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Menu:
    """The commands of one scope in one language. `scope` None is the scope of all other chats."""

    scope: BotCommandScope | None
    # Telegram's code of the language, with two letters. None for English.
    language: str | None
    commands: tuple[BotCommand, ...]
    fingerprint: str


async def send_menus(
    bot: Bot, inbox: Inbox, specs: Sequence[CommandSpec], owner_ids: Sequence[str]
) -> None:
    """Send the menus that Telegram doesn't have yet. Failures are only logged.

    After a failure, the other menus of the scope are left out. They would be refused, too, for
    example because the owner hasn't written yet. The next start sends them.
    """
    bot_key = f"telegram:{bot.token.partition(':')[0]}"
    try:
        sent_before = await inbox.sent_menus.load(bot_key)
        accepted = set()
        refused_scopes = []
        # In a thread, because all menus together take a tenth of a second.
        for menu in await asyncio.to_thread(_list_menus, specs, owner_ids):
            if menu.fingerprint in sent_before:
                accepted.add(menu.fingerprint)
            elif menu.scope not in refused_scopes:
                if await _send_menu(bot, menu):
                    accepted.add(menu.fingerprint)
                else:
                    refused_scopes.append(menu.scope)
        if accepted != sent_before:
            await inbox.sent_menus.save(bot_key, accepted)
    except StoreError as error:
        _log.warning("telegram.menus_not_stored", error=error)


def _list_menus(specs: Sequence[CommandSpec], owner_ids: Sequence[str]) -> Sequence[_Menu]:
    """Return the menus for direct chats, for groups and for the owner, in all languages."""
    menus = []
    owner_scopes = [BotCommandScopeChat(int(owner_id)) for owner_id in owner_ids]
    languages = {code for spec in specs for code in spec.translations}
    for scope in (None, BotCommandScopeAllGroupChats(), *owner_scopes):
        place = "group" if isinstance(scope, BotCommandScopeAllGroupChats) else "direct"
        is_owner = isinstance(scope, BotCommandScopeChat)
        for code in ("", *sorted(languages)):
            commands = [
                BotCommand(
                    spec.name, spec.translations.get(code, spec.description)[:DESCRIPTION_CHARS]
                )
                for spec in specs
                if spec.place in ("", place) and (is_owner or not spec.is_for_owner)
            ]
            language = code.partition("-")[0] or None
            fingerprint = _compute_fingerprint(scope, language, commands)
            menus.append(_Menu(scope, language, tuple(commands), fingerprint))
    return menus


def _compute_fingerprint(
    scope: BotCommandScope | None, language: str | None, commands: Sequence[BotCommand]
) -> str:
    """Return a short hash of everything that a menu consists of."""
    content = json.dumps(
        [
            None if scope is None else scope.to_dict(),
            language,
            [command.to_dict() for command in commands],
        ],
        sort_keys=True,
    )
    return hashlib.sha256(content.encode()).hexdigest()[:16]


async def _send_menu(bot: Bot, menu: _Menu) -> bool:
    """Send one menu, and return whether Telegram accepted it."""
    try:
        await bot.set_my_commands(menu.commands, language_code=menu.language, scope=menu.scope)
        return True
    except TelegramError as error:
        _log.warning("telegram.call_failed", method="set_my_commands", error=error.message)
        return False
