"""What `mneme check` asks the memory services of one's choice: whether each can be loaded, has its options, is
available, and has taken what it was told."""

from __future__ import annotations

import asyncio
from functools import partial

from config.settings import Settings
from core.errors import ConfigError
from core.memory.guarded import foreign, room
from core.memory.provider import MemoryProvider
from core.store.sync_queue import Errands
from gateway.check import Probe
from gateway.provider_status import given_up, standing
from gateway.providers import examined
from gateway.services import House

AVAILABLE_S = 5.0


def provider_probes(settings: Settings) -> dict[str, Probe]:
    """A probe for each service that the settings switch on, by subject."""
    named = [name for name, table in settings.memory.providers.items() if table.enabled]
    return {f"memory {name}": partial(_probe, settings, name) for name in named}


async def _probe(settings: Settings, name: str) -> str:
    found, wrong = await asyncio.to_thread(examined, settings)
    if name in wrong:
        raise ConfigError(wrong[name])
    await _available(next(one for one in found if one.name == name))
    async with House.open(settings) as house:
        errands = Errands(house.database, house.clock)
        arrears = await errands.arrears(name)
        if arrears.dead:
            raise ConfigError(f"{given_up(arrears).capitalize()}. `mneme memory sync {name}` sends it again.")
        still = await standing(errands, name)
    return f"It can be used; {still}." if still else "It can be used, and has taken all that it was told."


async def _available(provider: MemoryProvider) -> None:
    """Raises ConfigError unless the provider says in time that it has what it needs."""
    apart = room(provider.name)
    try:
        async with asyncio.timeout(AVAILABLE_S):
            with foreign(f"The memory {provider.name}"):
                is_available = await apart.do(provider.is_available)
    except TimeoutError as error:
        raise ConfigError(f"It did not say within {AVAILABLE_S:g} s whether it is available.") from error
    finally:
        await apart.close()
    if not is_available:
        raise ConfigError(f"It says that it is not available. `mneme memory setup {provider.name}` sets it up.")
