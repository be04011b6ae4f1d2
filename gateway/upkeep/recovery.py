"""Finishes work that an earlier process or a restored backup left unfinished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from core.store.ownership.chats import chat_key
from core.store.ownership.recovery import (
    delete_old_rows,
    is_posting,
    recover_chats,
    recover_incognito,
    recover_unowned,
)
from core.types import Address
from gateway.commands.sessions import notify_lost_incognito
from gateway.logs import print_notice
from gateway.services import Services

# How long a platform may take to show a message whose sender has died.
POST_TIMEOUT_S = 1.0


async def recover(services: Services) -> None:
    """Recover all chats when the only gateway of a store starts."""
    # Load the languages first, so that reminders and notices after a start use them.
    await services.languages.load()
    await services.chat_rules.load()
    await services.outbox.recover(services.clock.now())
    await _recover_rest(services, await services.conversations.recover_incognito())


async def recover_front(services: Services, chats: Collection[str]) -> None:
    """Recover the unfinished work of a dead front, when this gateway takes its place.

    `chats` are the chats that were taken over from dead gateways. Chats of running gateways,
    including this gateway, aren't touched.
    """
    assert services.membership is not None
    owners = services.membership.ownership.owners

    def is_lost(address: Address) -> bool:
        """Return whether the process that had an incognito conversation is dead."""
        chat = chat_key(address)
        return chat in chats or chat not in owners

    await services.languages.load()
    await services.chat_rules.load()
    await _wait_for_posts(services, chats)
    now = services.clock.now()
    await recover_chats(services.database, chats, now)
    await recover_unowned(services.database, now)
    await delete_old_rows(services.database, now)
    await _recover_rest(services, await recover_incognito(services.database, is_lost, now))


async def recover_gateway(
    services: Services, adopted: Collection[str], chats: Collection[str]
) -> None:
    """Recover the chats of a dead gateway, when the front takes them over.

    `adopted` are its chats with unfinished work, and `chats` all of them.
    """
    await _wait_for_posts(services, adopted)
    now = services.clock.now()
    await recover_chats(services.database, adopted, now)
    is_lost: Callable[[Address], bool] = lambda address: chat_key(address) in chats  # noqa: E731
    addresses = await recover_incognito(services.database, is_lost, now)
    await notify_lost_incognito(services, addresses)


async def _wait_for_posts(services: Services, chats: Collection[str]) -> None:
    """If a dead gateway was posting a message, wait until the platform has shown it.

    Otherwise, the message could appear after it was searched for in vain and posted again.
    """
    if await is_posting(services.database, chats):
        await asyncio.sleep(POST_TIMEOUT_S)


async def _recover_rest(services: Services, lost_incognito: Sequence[Address]) -> None:
    """Notify lost incognito chats, and complete deliveries, notes, skills and erasures."""
    now = services.clock.now()
    await services.removals.cancel_unserved_deliveries(services.settings.access.people, now)
    await notify_lost_incognito(services, lost_incognito)
    await services.notebook.settle_interrupted_writes()
    await services.skills.settle_interrupted_writes()
    await services.forgetting.resume()
    if services.restore_report:
        print_notice(services.restore_report)
        key = f"restored:{services.clock.now().isoformat()}"
        await services.owner_notices.notify(key, services.restore_report)
