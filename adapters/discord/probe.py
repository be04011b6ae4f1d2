"""Asks Discord who we are: whether the token is valid and the server in reach. Joins no gateway, sends nothing."""

from __future__ import annotations

import json

import aiohttp

from core.errors import ConfigError, DeliveryError

API_URL = "https://discord.com/api/v10"
AGENT = "DiscordBot (mneme, 0.1)"
TIMEOUT_S = 20.0
MESSAGE_CONTENT = 1 << 18 | 1 << 19
"""Flags of an application that may read message content: verified, or with few guilds."""


async def probe_discord(token: str, api_url: str | None, *, has_message_content: bool) -> str:
    """A sentence that names the bot. Raises ConfigError when the token or the intent is refused, DeliveryError when
    Discord is out of reach."""
    root = (api_url or API_URL).rstrip("/")
    headers = {"Authorization": f"Bot {token}", "User-Agent": AGENT}
    async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session:
        me = await _object(session, f"{root}/users/@me")
        if has_message_content:
            flags = (await _object(session, f"{root}/applications/@me")).get("flags")
            if not isinstance(flags, int) or not flags & MESSAGE_CONTENT:
                raise ConfigError(
                    "The token is valid, but the bot may not read message content. Switch on Message Content Intent in "
                    "the Developer Portal, or set discord.message_content to false."
                )
    return f"The token is valid; the bot is {me.get('username')}."


async def _object(session: aiohttp.ClientSession, url: str) -> dict[str, object]:
    try:
        async with session.get(url) as response:
            if response.status == 401:
                raise ConfigError(
                    "Discord refuses the token. Copy it again from the Developer Portal (your application, Bot, Reset "
                    "Token) into DISCORD_BOT_TOKEN."
                )
            if response.status != 200:
                raise DeliveryError(f"Discord answers {response.status} at {url}.")
            found = json.loads(await response.text())
    except (TimeoutError, aiohttp.ClientError, ValueError) as error:
        raise DeliveryError(f"Discord cannot be reached at {url}: {error or type(error).__name__}") from error
    if not isinstance(found, dict):
        raise DeliveryError(f"What answers at {url} is not Discord.")
    return found
