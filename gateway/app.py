"""Runs the gateway. state.db is opened first and closed last."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import AsyncExitStack

from config.settings import Settings
from core.errors import ConfigError
from core.search.recall import load_word_lists
from core.store.sqlite.opening import wait_until_unlocked
from gateway.assembly.message_path import build_message_path
from gateway.assembly.models import create_models
from gateway.logs import print_notice
from gateway.platforms import create_platforms
from gateway.process import GatewayProcess, configure_malloc, shorten_thread_pauses
from gateway.services import STATE_FILE, Services
from gateway.sharing.home_lock import HomeLock
from gateway.sharing.joining import Sharing, lock_or_join
from gateway.texts.catalog import SHELL as texts
from gateway.upkeep.recovery import recover

# By this time, a chat in a terminal shows its prompt.
PROMPT_TIME_S = 1.0


async def run_gateway(settings: Settings, *, chat_only: bool, has_terminal: bool) -> str | None:
    """Run the gateway until a stop signal arrives or the input of all platforms ends.

    Returns a message to print at the end, or None. Raises StoreError if state.db can't be used.
    Raises ConfigError if another gateway uses this home, or if no platform can start with these
    settings.
    """
    configure_malloc()
    change_event = asyncio.Event()
    # This takes over a hundred milliseconds, which would delay the first answer. In a chat, it
    # would also delay the prompt, so it happens while the person types. With a memory service, it
    # happens first, because the import of numpy fails if the service's thread imports it, too.
    has_service = any(options.enabled for options in settings.memory.providers.values())
    if chat_only and not has_service:
        asyncio.get_running_loop().call_later(PROMPT_TIME_S, _load_word_lists_in_thread)
    else:
        await asyncio.to_thread(load_word_lists)
    home_lock = HomeLock(settings.home)
    with contextlib.ExitStack() as locks:
        locks.callback(home_lock.release)
        await lock_or_join(home_lock, settings, can_join=not chat_only and not has_terminal)
        if not settings.store.url:
            await wait_until_unlocked(
                settings.home / STATE_FILE, lambda: print_notice(texts.STORE_IS_LOCKED)
            )
        async with (
            Services.open(settings, change_event.set, notifies_owner=True, joins=True) as services,
            AsyncExitStack() as stack,
        ):
            sharing = None
            if services.membership is not None:
                sharing = Sharing(services, services.membership, home_lock)
                await sharing.claim()
            else:
                await recover(services)
            tasks = asyncio.TaskGroup()
            platforms = create_platforms(services, chat_only=chat_only, has_terminal=has_terminal)
            await services.model_outages.load()
            model, helper = create_models(services, stack)
            path = await build_message_path(services, model, helper, platforms, tasks)
            stack.push_async_callback(path.memory.shutdown)
            process = GatewayProcess(services, path, tasks, change_event, stack, sharing)
            shorten_thread_pauses()
            refusals = await process.run()
    if not chat_only and not settings.platform_tokens:
        return texts.CONNECT
    if refusals:
        raise ConfigError("\n".join(refusals))
    return None


def _load_word_lists_in_thread() -> None:
    """Load the word lists in a thread that doesn't delay the end of the process."""
    threading.Thread(target=load_word_lists, name="word lists", daemon=True).start()
