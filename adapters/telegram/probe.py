"""Asks Telegram who we are: whether the token is valid and the server in reach. Takes in and sends nothing."""

from __future__ import annotations

from telegram import Bot
from telegram.error import InvalidToken, TelegramError

from adapters.telegram.adapter import API_URL
from adapters.telegram.request import TelegramRequest
from core.errors import ConfigError, DeliveryError


async def probe_telegram(token: str, api_url: str | None) -> str:
    """A sentence that names the bot. Raises ConfigError when the token is refused, DeliveryError when out of reach."""
    root = (api_url or API_URL).rstrip("/")
    request = TelegramRequest(token, connections=1)
    try:
        bot = Bot(token, base_url=f"{root}/bot", request=request, get_updates_request=request)
        await request.initialize()
        me = await bot.get_me()
    except InvalidToken as error:
        raise ConfigError("Telegram refuses the token. Set TELEGRAM_BOT_TOKEN to the one from @BotFather.") from error
    except TelegramError as error:
        raise DeliveryError(f"Telegram cannot be reached at {root}: {error.message}") from error
    finally:
        await request.shutdown()
    return f"The token is valid; the bot is @{me.username}."
