"""The memories that the settings name, made; with a sentence for each that cannot be had."""

from __future__ import annotations

from collections.abc import Mapping

from config.settings import ProviderOptions, Settings
from core.errors import ConfigError
from core.memory.plugins import Plugins
from core.memory.provider import MemoryProvider


def chosen(settings: Settings) -> tuple[list[MemoryProvider], list[str]]:
    """The providers that are on, in the order of mneme.toml, and what is wrong with the others."""
    found, wrong = examined(settings)
    return found, list(wrong.values())


def examined(settings: Settings) -> tuple[list[MemoryProvider], Mapping[str, str]]:
    """The providers that are on, in the order of mneme.toml, and by name what is wrong with the others."""
    plugins = Plugins(settings.home)
    found: list[MemoryProvider] = []
    wrong: dict[str, str] = {}
    for name, table in settings.memory.providers.items():
        if not table.enabled:
            continue
        if len(found) >= settings.memory.max_external:
            wrong[name] = (
                f"The memory {name} is off: no more than {settings.memory.max_external} may be on at a time, and "
                f"{', '.join(one.name for one in found) or 'that is none'} comes first. Set enabled = false for one of "
                "them, or raise memory.max_external."
            )
            continue
        try:
            found.append(_made(plugins, settings, name, table))
        except ConfigError as error:
            wrong[name] = str(error)
    return found, wrong


def _made(plugins: Plugins, settings: Settings, name: str, table: ProviderOptions) -> MemoryProvider:
    variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}
    provider = plugins.made(name, table.model_extra or {}, variables)
    provider.mode = table.mode
    provider.sync_every_turns = table.sync_every_turns
    return provider
