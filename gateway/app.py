"""Run the gateway. state.db is opened first and closed last."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from config.settings import Settings
from core.errors import ConfigError
from core.search.recall import load_word_lists
from core.store.sqlite.opening import wait_until_unlocked
from gateway.assembly.message_path import build_message_path
from gateway.assembly.models import create_models
from gateway.commands.sessions import notify_lost_incognito
from gateway.platforms import create_platforms
from gateway.process import GatewayProcess, configure_malloc, print_notice, shorten_thread_pauses
from gateway.services import STATE_FILE, Services, lock_home
from gateway.texts.catalog import SHELL as texts


async def run_gateway(settings: Settings, *, chat_only: bool, has_terminal: bool) -> str | None:
    """Run the gateway until a stop signal arrives or the input of all platforms ends.

    Returns a message to print at the end, or None. Raises StoreError if state.db can't be used.
    Raises ConfigError if another gateway uses this home, or if no platform can start with these
    settings.
    """
    configure_malloc()
    change_event = asyncio.Event()
    # Load the word lists of recall now. It takes tens of milliseconds, which would delay the first
    # answer.
    await asyncio.to_thread(load_word_lists)
    with lock_home(settings.home):
        if not settings.store.url:
            await wait_until_unlocked(
                settings.home / STATE_FILE, lambda: print_notice(texts.STORE_IS_LOCKED)
            )
        async with (
            Services.open(settings, change_event.set, notifies_owner=True) as services,
            AsyncExitStack() as stack,
        ):
            await services.claim_database()
            await _recover(services)
            tasks = asyncio.TaskGroup()
            platforms = create_platforms(services, chat_only=chat_only, has_terminal=has_terminal)
            await services.model_outages.load()
            model, helper = create_models(services, stack)
            path = await build_message_path(services, model, helper, platforms, tasks)
            stack.push_async_callback(path.memory.shutdown)
            process = GatewayProcess(services, path, tasks, change_event, stack)
            shorten_thread_pauses()
            refusals = await process.run()
    if not chat_only and not settings.platform_tokens:
        return texts.CONNECT
    if refusals:
        raise ConfigError("\n".join(refusals))
    return None


async def _recover(services: Services) -> None:
    """Finish work that an earlier process or a restored backup left unfinished."""
    # Load the languages first, so that reminders and notices after a start use them.
    await services.languages.load()
    now = services.clock.now()
    await services.outbox.recover(now)
    await services.removals.cancel_unserved_deliveries(services.settings.access.people, now)
    await notify_lost_incognito(services)
    await services.notebook.settle_interrupted_writes()
    await services.skills.settle_interrupted_writes()
    await services.forgetting.resume()
    if services.restore_report:
        print_notice(services.restore_report)
        key = f"restored:{services.clock.now().isoformat()}"
        await services.owner_notices.notify(key, services.restore_report)
