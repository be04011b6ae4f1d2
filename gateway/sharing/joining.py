"""Lets several gateways work with one home and one PostgreSQL database.

The gateway that has locked the home is the front: it receives all messages and does the upkeep. The
other gateways work on the chats that the front gives them. If the front ends, one of them takes its
place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

import structlog

from config.settings import Settings
from core.errors import MnemeError
from core.ports import Adapter, InboundSink, SharedAdapter
from core.store.ownership.chats import chat_key
from core.types import Address, Inbound
from gateway.admission import Admission
from gateway.local.control import ask_gateway
from gateway.local.sockets import find_gateway_socket
from gateway.services import Services
from gateway.sharing.front import GIVE_UP_INTERVAL_S, Front
from gateway.sharing.home_lock import HomeLock
from gateway.sharing.membership import Membership
from gateway.sharing.peers import EventServer
from gateway.upkeep.recovery import recover_front, recover_gateway

# The platforms whose chats several gateways can work on.
SHARED_PLATFORMS = ("telegram",)
# How often a gateway tries to become the front.
LOCK_INTERVAL_S = 0.1
# How long a process that has locked the home waits until the server has noticed the end of the last
# front: at a start, and if it has worked for that front.
START_TIMEOUT_S = 5.0
FRONT_TIMEOUT_S = 30.0
# How long a process waits for an answer of a front that is starting.
ANSWER_TIMEOUT_S = 60.0
# The pause before a gateway tries again to connect to a platform.
JOIN_RETRY_S = 2.0
_log = structlog.get_logger("sharing")


async def lock_or_join(home_lock: HomeLock, settings: Settings, *, can_join: bool) -> None:
    """Lock the home, unless this process can join the gateway that has locked it.

    A process can join if the store is on a server, and if the running gateway receives messages
    on a platform that several gateways can work on. Raises ConfigError if it can't join.
    """
    platforms = set(SHARED_PLATFORMS).intersection(settings.platform_tokens)
    if not (can_join and settings.store.url and platforms):
        home_lock.acquire()
        return
    ends_at = asyncio.get_running_loop().time() + ANSWER_TIMEOUT_S
    while not home_lock.try_acquire():
        state = await asyncio.to_thread(ask_gateway, settings.home, "state")
        if state is not None and platforms.intersection(state["platforms"]):
            return
        if state is not None or asyncio.get_running_loop().time() > ends_at:
            # The home belongs to `mneme chat`, or to a gateway that doesn't answer.
            home_lock.acquire()
            return
        await asyncio.sleep(LOCK_INTERVAL_S)


class Sharing:
    """The part of a gateway that works together with others."""

    def __init__(self, services: Services, membership: Membership, home_lock: HomeLock) -> None:
        self._services = services
        self._membership = membership
        self._ownership = membership.ownership
        self._home_lock = home_lock
        # Chats of dead gateways whose waiting events must be answered here.
        self._adopted: set[str] = set()
        # The chats that this gateway worked on before it became the front.
        self._earlier_chats: frozenset[str] = frozenset()

    async def claim(self) -> None:
        """Take the database for the process that has locked the home.

        Does nothing in other processes. Raises StoreError if a gateway with another home uses the
        database.
        """
        if self._home_lock.is_locked:
            await self._membership.become_front(START_TIMEOUT_S)

    def is_ours(self, address: Address) -> bool:
        """Return whether this gateway works on the chat of an address."""
        return self._ownership.is_ours(address)

    def must_resume(self, address: Address) -> bool:
        """Return whether the waiting events of an address must be queued after a start."""
        return address.platform not in SHARED_PLATFORMS or chat_key(address) in self._adopted

    async def serve_front(
        self,
        sink: InboundSink,
        adapters: Mapping[str, Adapter],
        is_leaving: Callable[[], bool],
    ) -> None:
        """Admit the events that the front passes to this gateway, until cancelled."""

        def note_chat(inbound: Inbound) -> None:
            self._ownership.owners[chat_key(inbound.address)] = self._ownership.number

        path = self._find_path(self._membership.number)
        shared = _select_shared(adapters)
        await EventServer(path, sink, shared, is_leaving, note_chat).run()

    async def wait_to_be_front(
        self, adapters: Mapping[str, Adapter], on_joined: Callable[[Adapter], None]
    ) -> None:
        """Work for the front until its process ends, and take its place.

        Returns at once if this process has locked the home. `on_joined` is called with each
        platform that messages can be sent to. Raises StoreError if a gateway with another home has
        taken the database.
        """
        if self._home_lock.is_locked:
            return
        _log.info("this gateway works for the front", gateway=self._membership.number)
        async with asyncio.TaskGroup() as tasks:
            joining = [
                tasks.create_task(_join(adapters[name], shared, on_joined))
                for name, shared in _select_shared(adapters).items()
            ]
            while not self._home_lock.try_acquire():  # noqa: ASYNC110 - a file lock has no event
                await asyncio.sleep(LOCK_INTERVAL_S)
            for task in joining:
                task.cancel()
        _log.warning("the front has ended, and this gateway takes its place")
        self._earlier_chats = frozenset(self._ownership.owners)
        await self._membership.become_front(FRONT_TIMEOUT_S)

    async def create_front(
        self,
        admission: Admission,
        adapters: Mapping[str, Adapter],
        resume: Callable[[str, Callable[[Address], bool]], Awaitable[None]],
    ) -> Front:
        """Take over the chats of all dead gateways, and return the front.

        `resume` queues the waiting events of a platform at the addresses for which a function
        returns True.
        """

        async def take_over(adopted: frozenset[str], chats: Collection[str]) -> None:
            await recover_gateway(self._services, adopted, chats)
            for platform in SHARED_PLATFORMS:
                await resume(platform, lambda address: chat_key(address) in adopted)

        front = Front(self._membership, admission, SHARED_PLATFORMS, self._find_path, take_over)
        for number in await self._membership.list_others():
            await self._connect_or_give_up(front, number)
        await self._membership.claim_unowned(SHARED_PLATFORMS)
        await self._membership.load_owners()
        number = self._membership.number
        owned = {chat for chat, owner in self._ownership.owners.items() if owner == number}
        self._adopted = owned - self._earlier_chats
        await recover_front(self._services, self._adopted)
        return front

    async def _connect_or_give_up(self, front: Front, number: int) -> None:
        """Try to connect to another gateway until it answers. If it's dead, take over its chats."""
        while not await front.connect(number):
            if await self._membership.give_up(number) is not None:
                return
            # The gateway is starting, or the server hasn't noticed its end yet.
            await asyncio.sleep(GIVE_UP_INTERVAL_S)

    def _find_path(self, number: int) -> Path:
        return find_gateway_socket(self._services.settings.home, number)


def _select_shared(adapters: Mapping[str, Adapter]) -> dict[str, SharedAdapter]:
    return {
        name: adapter
        for name, adapter in adapters.items()
        if isinstance(adapter, SharedAdapter) and name in SHARED_PLATFORMS
    }


async def _join(
    adapter: Adapter, shared: SharedAdapter, on_joined: Callable[[Adapter], None]
) -> None:
    """Connect to a platform to send messages. If that fails, try again."""
    while True:
        try:
            await shared.join()
            break
        except MnemeError as error:
            _log.warning("a platform can't be joined", platform=adapter.platform, error=str(error))
        await asyncio.sleep(JOIN_RETRY_S)
    on_joined(adapter)
