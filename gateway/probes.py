"""What `mneme check` asks outside: the model, Telegram, Discord. Names the clients, as app.py does for a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from adapters.discord.client import probe_discord
from adapters.telegram.adapter import probe_telegram
from config.settings import Settings
from core.models.claude import Claude
from core.ports import Clock
from core.search.recall import Recall
from core.store.sqlite.database import Database
from gateway.check import HealthCheck, Probe, provider_probes
from gateway.services import Services

ADVICE = {
    "model": "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own. Without one I answer from memory.",
    "telegram": "Get a token from @BotFather and set TELEGRAM_BOT_TOKEN.",
    "discord": "Make an application with a bot in Discord's developer portal and set DISCORD_BOT_TOKEN.",
}


def checkup(settings: Settings | None, problems: Sequence[str], clock: Clock) -> HealthCheck:
    """A check of these settings; None when they could not be read because of `problems`."""
    if settings is None:
        return HealthCheck(home=None, problems=problems, opened=_nothing, probes={}, advice={})
    return HealthCheck(
        home=settings.home,
        problems=(),
        opened=_opener(settings),
        probes={
            "model": _model(settings, clock),
            "telegram": _telegram(settings),
            "discord": _discord(settings),
            **provider_probes(settings),
        },
        advice=ADVICE,
    )


def _opener(settings: Settings) -> Callable[[], AbstractAsyncContextManager[tuple[Database, Recall]]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Database, Recall]]:
        async with Services.open(settings) as services:
            yield services.database, services.recall

    return opened


def _nothing() -> AbstractAsyncContextManager[tuple[Database, Recall]]:
    raise AssertionError("without a home there is nothing to open")


def _model(settings: Settings, clock: Clock) -> Probe | None:
    if settings.anthropic_api_key is None and settings.anthropic_base_url is None:
        return None

    async def probe() -> str:
        key = settings.anthropic_api_key
        claude = Claude(
            api_key=key.get_secret_value() if key else None,
            base_url=settings.anthropic_base_url,
            clock=clock,
            tries=1,
            patience_s=settings.model.patience_s,
        )
        try:
            return " ".join([await claude.reach(name) for name in {settings.model.chat: 0, settings.model.cheap: 0}])
        finally:
            await claude.close()

    return probe


def _telegram(settings: Settings) -> Probe | None:
    token = settings.telegram_token
    if token is None or not settings.is_telegram_on:
        return None
    return lambda: probe_telegram(token.get_secret_value(), settings.telegram_api_url)


def _discord(settings: Settings) -> Probe | None:
    token = settings.discord_token
    if token is None or not settings.is_discord_on:
        return None
    has_message_content = settings.discord.message_content
    return lambda: probe_discord(
        token.get_secret_value(), settings.discord_api_url, has_message_content=has_message_content
    )
