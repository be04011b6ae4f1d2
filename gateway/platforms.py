"""Creates the adapters of the platforms that the settings switch on.

Like the modules of `gateway/assembly/`, this module creates concrete classes. A platform's library
is imported only if the platform is on.
"""

from __future__ import annotations

from adapters.terminal.adapter import Terminal
from adapters.terminal.local import LocalTerminals
from core.ports import Adapter
from gateway.installation import hide_packages
from gateway.local.greeting import Greeting
from gateway.local.sockets import find_socket
from gateway.services import Services
from gateway.texts.catalog import SHELL, load_texts


def create_platforms(
    services: Services, *, chat_only: bool, has_terminal: bool
) -> dict[str, Adapter]:
    """Create an adapter for each platform with a token, and one for terminals of this machine.

    The terminal of this process is used if `has_terminal` is true, or if no platform has a token.
    """
    settings = services.settings
    clock = services.clock
    tokens = {} if chat_only else settings.platform_tokens
    adapters: list[Adapter] = []
    if "telegram" in tokens:
        adapters.append(_create_telegram(services, tokens["telegram"]))
    if "discord" in tokens:
        adapters.append(_create_discord(services, tokens["discord"]))
    greet = Greeting(services).write
    is_incognito = services.inbox.is_incognito
    language_option = settings.general.language
    language = "" if language_option == "auto" else language_option
    foreground = None
    if has_terminal or not adapters:
        foreground = Terminal(
            home=settings.home,
            clock=clock,
            greet=greet,
            is_incognito=is_incognito,
            word=(load_texts(language) if language else SHELL).word,
            language=language,
        )
    socket = find_socket(settings.home, "chat")
    adapters.append(LocalTerminals(socket, clock, greet, is_incognito, foreground, language))
    return {adapter.platform: adapter for adapter in adapters}


def _create_telegram(services: Services, token: str) -> Adapter:
    # httpx needs click only for its command line, and Telegram needs cryptography for Passport.
    with hide_packages("click", "cryptography"):
        from adapters.telegram.adapter import Telegram

    settings = services.settings
    return Telegram(
        token=token,
        api_url=settings.telegram_api_url,
        inbox=services.inbox,
        clock=services.clock,
        marks_working=settings.turn.working_reaction,
        webhook=settings.telegram,
        owner_ids=settings.owner.telegram,
    )


def _create_discord(services: Services, token: str) -> Adapter:
    from adapters.discord.adapter import Discord

    settings = services.settings
    return Discord(
        token,
        settings.discord_api_url,
        settings.discord_gateway_url,
        services.inbox,
        services.clock,
        settings.discord.message_content,
        settings.turn.working_reaction,
        settings.discord.auto_threads,
        settings.discord.max_lines,
        settings.discord.presence,
    )
