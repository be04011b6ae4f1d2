"""Sets up a bot's token and the owner's account: the steps "telegram" and "discord".

During the setup, the owner writes to the bot. The person in the shell then confirms that the
account is theirs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import contextmanager
from typing import Any

from core.ports import FirstMessage
from core.store.message_ids import note_first_message
from gateway.cli.setup.steps import Setup, StepFailed
from gateway.services import Services

MAX_SHOWN_CHARS = 60
# The bot's id, a colon and a secret.
TELEGRAM_TOKEN = re.compile(r"\d+:[\w-]+", re.ASCII)
Writers = AsyncIterator[FirstMessage]


def set_up_telegram(setup: Setup) -> None:
    """Test a token, store it, and wait for the owner's first message.

    Raises StepFailed or MnemeError if the token can't be used.
    """
    from adapters.telegram.bot_setup import TelegramSetup

    words = setup.words["telegram"]
    token = _find_token(setup, "TELEGRAM_BOT_TOKEN", words)
    if not TELEGRAM_TOKEN.fullmatch(token):
        raise StepFailed(words["no_token"])
    api_url = setup.draft.load().telegram_api_url
    with (
        asyncio.Runner() as runner,
        _enter_context(runner, TelegramSetup.open(token, api_url)) as bot,
    ):
        setup.dialog.tell(words["bot"].format(name=bot.username))
        setup.set_secret("TELEGRAM_BOT_TOKEN", token)
        if setup.dialog.is_interactive:
            setup.draft.write()
            if _ask_to_add_owner(setup, "telegram"):
                request = words["write"].format(name=bot.username)
                _wait_for_owner(setup, runner, request, "telegram", bot.watch_writers)


def set_up_discord(setup: Setup) -> None:
    """Test a token and the intents, show the invite links, and wait for the owner's first message.

    Raises StepFailed or MnemeError if the token can't be used.
    """
    from adapters.discord.bot_setup import GUILD_SCOPES, USER_SCOPES, DiscordSetup

    words = setup.words["discord"]
    token = _find_token(setup, "DISCORD_BOT_TOKEN", words)
    settings = setup.draft.load()
    login = DiscordSetup.start_setup(token, settings.discord_api_url, settings.discord_gateway_url)
    with asyncio.Runner() as runner, _enter_context(runner, login) as bot:
        name = str(bot.user)
        setup.dialog.tell(words["bot"].format(name=name))
        setup.dialog.tell(
            words["invite"].format(
                scopes=setup.texts.join_list(GUILD_SCOPES),
                user_scopes=setup.texts.join_list(USER_SCOPES),
                guild=bot.guild_invite,
                user=bot.user_invite,
            )
        )
        setup.dialog.show_qr_code(bot.guild_invite)
        setup.set_secret("DISCORD_BOT_TOKEN", token)
        _set_message_content(setup, has_intent=bot.has_message_content)
        if setup.dialog.is_interactive:
            setup.draft.write()
            if _ask_to_add_owner(setup, "discord"):
                request = words["write"].format(name=name)
                _wait_for_owner(setup, runner, request, "discord", bot.watch_writers)


def _find_token(setup: Setup, variable: str, words: Mapping[str, str]) -> str:
    """Return a token from the environment or secrets.env, or ask for it."""
    token = setup.find_secret(variable)
    if token and not setup.dialog.is_interactive:
        return token
    if not setup.dialog.is_interactive:
        raise StepFailed(setup.words["not_set"].format(name=variable))
    setup.dialog.tell(words["how"])
    return setup.ask_for_secret(variable, words["token"])


def _set_message_content(setup: Setup, *, has_intent: bool) -> None:
    """Ask whether to read all messages, or turn this off if the bot lacks the intent."""
    words = setup.words["discord"]
    is_used = setup.draft.own_options.get("discord", {}).get("message_content", False)
    if has_intent and not is_used and setup.dialog.is_interactive:
        if setup.dialog.confirm(words["content_on"], default=False):
            setup.set_option("discord.message_content", True)
    elif not has_intent and is_used:
        setup.set_option("discord.message_content", False)
        setup.dialog.warn(words["content_missing"])
    elif not has_intent:
        setup.dialog.tell(words["content_off"])


def _ask_to_add_owner(setup: Setup, platform: str) -> bool:
    """Return whether to add an owner's account. Ask only if the owner already has one."""
    words = setup.words["owner"]
    ids = setup.draft.own_options.get("owner", {}).get(platform, [])
    if not ids:
        return True
    name = setup.texts.name_platform(platform)
    question = words["existing"].format(platform=name, ids=", ".join(map(str, ids)))
    return setup.dialog.confirm(question, default=False)


def _wait_for_owner(
    setup: Setup,
    runner: asyncio.Runner,
    request: str,
    platform: str,
    watch: Callable[[], Writers],
) -> None:
    """Ask the person to write to the bot, wait for their message, and store the account.

    The person confirms in the shell that the message is theirs. Ctrl-C skips this.
    """
    words = setup.words["owner"]
    writers = watch()
    is_over = False

    async def read_next() -> FirstMessage:
        if is_over:
            # Ctrl-C was pressed after the runner had created this task, but before the task ran.
            raise asyncio.CancelledError
        return await anext(writers)

    async def close() -> None:
        closing = getattr(writers, "aclose", None)
        if closing is not None:
            await closing()

    refused_ids: set[str] = set()
    try:
        setup.dialog.tell(request)
        while True:
            message = runner.run(read_next())
            sender = message.sender
            if sender.id in refused_ids:
                continue
            excerpt = " ".join(message.text.split())[:MAX_SHOWN_CHARS]
            setup.dialog.tell(words["writer"].format(name=sender.name, id=sender.id, text=excerpt))
            if setup.dialog.confirm(words["is_it_you"], default=False):
                _store_owner(setup, runner, platform, message)
                return
            refused_ids.add(sender.id)
            setup.dialog.tell(words["not_you"])
    except (KeyboardInterrupt, asyncio.CancelledError):
        # The runner raises the second error if Ctrl-C is pressed while a request is being
        # cancelled.
        setup.dialog.tell(setup.words["left_out"].format(step=platform))
    finally:
        is_over = True
        runner.run(close())


def _store_owner(
    setup: Setup, runner: asyncio.Runner, platform: str, message: FirstMessage
) -> None:
    """Make the sender of a message an owner, and say that Mneme will answer the message."""
    words = setup.words["owner"]
    setup.add_owner(platform, message.sender.id)
    setup.draft.write()
    setup.dialog.tell(words["result"].format(key=f"{platform}:{message.sender.id}"))
    runner.run(_keep_for_start(setup, message))
    setup.dialog.tell(words["answers"])


async def _keep_for_start(setup: Setup, message: FirstMessage) -> None:
    """Make sure that Mneme answers the owner's first message when it starts.

    Telegram keeps the message until then. For Discord, its id is stored.
    """
    if message.address.platform == "discord":
        async with Services.open(setup.draft.load()) as services:
            await note_first_message(services.database, message.address, message.message_id)


@contextmanager
def _enter_context(runner: asyncio.Runner, context: Any) -> Any:
    """Run an asynchronous context manager from synchronous code, on the loop of a runner."""

    async def enter() -> Any:
        return await context.__aenter__()

    async def leave() -> None:
        await context.__aexit__(None, None, None)

    entered = runner.run(enter())
    try:
        yield entered
    finally:
        runner.run(leave())
