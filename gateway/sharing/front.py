"""Receives all events as the front, and passes them to the gateways that work on their chats.

A new chat goes to the gateway with the fewest chats. If a gateway dies, the front takes over its
chats with unfinished work. Its other chats go to any gateway when someone writes there again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path

import structlog

from core.errors import StoreError
from core.ports import Reply
from core.store.ownership.chats import chat_key
from core.types import Address, Inbound
from gateway.admission import Admission
from gateway.sharing.membership import Membership
from gateway.sharing.peers import Peer, PeerLostError

# How often the front looks for new and dead gateways. It notices a lost connection immediately.
LOOK_INTERVAL_S = 0.5
# How often it tries to give up a gateway whose connection is lost.
GIVE_UP_INTERVAL_S = 0.1
# How long an event waits until the chats of a dead gateway have been taken over. After that, the
# platform delivers it again.
TAKEOVER_TIMEOUT_S = 15.0
_log = structlog.get_logger("sharing")


class Front:
    """Implements `InboundSink`, `Autocompleter`, `UnstoredAnswerer` and `MissedReporter`.

    Only chats on `platforms` are shared. `find_path` returns the socket of a gateway. `take_over`
    is called with the number of a dead gateway and the chats that this gateway takes over from it.
    Until it returns, the front doesn't pass on events of these chats.
    """

    def __init__(
        self,
        membership: Membership,
        admission: Admission,
        platforms: Collection[str],
        find_path: Callable[[int], Path],
        take_over: Callable[[frozenset[str], Collection[str]], Awaitable[None]],
    ) -> None:
        self._membership = membership
        self._ownership = membership.ownership
        self._admission = admission
        self._platforms = platforms
        self._find_path = find_path
        self._take_over = take_over
        self._peers: dict[int, Peer] = {}
        # The gateways that have admitted events for the front, by the ids of the entries.
        self._admitters: dict[int, Peer] = {}
        # The chats with unfinished work of gateways that were given up, until it continues here.
        self._takeovers: dict[int, frozenset[str]] = {}
        self._lost = asyncio.Event()

    # --- Events ---

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        """Admit an event here, or let the gateway of its chat admit it.

        See `core.ports.InboundSink`.
        """
        if inbound.address.platform not in self._platforms:
            return await self._admission.admit(inbound, reply)
        chat = chat_key(inbound.address)
        ends_at = asyncio.get_running_loop().time() + TAKEOVER_TIMEOUT_S
        while asyncio.get_running_loop().time() < ends_at:
            owner = self._ownership.owners.get(chat)
            if owner is None:
                owner = await self._membership.assign(chat, self._choose_gateway())
            if owner == self._membership.number:
                return await self._admission.admit(inbound, reply)
            peer = self._peers.get(owner)
            if peer is not None:
                with contextlib.suppress(PeerLostError):
                    entry_id = await peer.admit(inbound)
                    if entry_id is not None:
                        self._admitters[entry_id] = peer
                    return entry_id
            await asyncio.sleep(GIVE_UP_INTERVAL_S / 2)
        raise StoreError("the gateway of this chat doesn't answer")

    def _choose_gateway(self) -> int:
        """Return the number of the gateway with the fewest chats."""
        counts = Counter(self._ownership.owners.values())
        peers = [number for number, peer in self._peers.items() if not peer.is_lost]
        return min((*peers, self._membership.number), key=lambda number: counts[number])

    def serve(self, entry_id: int) -> Awaitable[None]:
        """Start to answer a stored event, here or in the gateway that has admitted it."""
        peer = self._admitters.pop(entry_id, None)
        if peer is None:
            return self._admission.serve(entry_id)
        peer.serve(entry_id)
        return asyncio.sleep(0)

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Store the new id of a group, and work on it here, where its settings are known."""
        await self._admission.migrate_group(platform, old_chat_id, new_chat_id)
        chat = Address(platform=platform, chat_id=new_chat_id).key
        await self._membership.assign(chat, self._membership.number)

    async def autocomplete(
        self, inbound: Inbound, typed: str, source: str = ""
    ) -> Mapping[str, str]:
        """Suggest values for an option of a command. See `core.ports.Autocompleter`."""
        return await self._admission.autocomplete(inbound, typed, source)

    async def answer_unstored(self, inbound: Inbound, reply: Reply) -> bool:
        """Answer a read-only command of our own chats. See `core.ports.UnstoredAnswerer`."""
        if not self._ownership.is_ours(inbound.address):
            return False
        return await self._admission.answer_unstored(inbound, reply)

    async def report_missed(self, address: Address) -> None:
        """Notify the owner of messages that weren't read. See `core.ports.MissedReporter`."""
        await self._admission.report_missed(address)

    # --- Gateways ---

    @property
    def gateway_count(self) -> int:
        """How many gateways work, including this one."""
        return 1 + sum(not peer.is_lost for peer in self._peers.values())

    async def watch(self) -> None:
        """Connect to new gateways, and take over the chats of dead ones, until cancelled."""
        while True:
            pause_s = LOOK_INTERVAL_S
            self._lost.clear()
            try:
                others = await self._membership.list_others()
                await self._find_takeovers(others)
                await self._finish_takeovers()
                for number in others:
                    if not await self.connect(number) and not await self._bury(number):
                        pause_s = GIVE_UP_INTERVAL_S
            except StoreError as error:
                _log.error("the gateways cannot be read", error=error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._lost.wait()

    async def connect(self, number: int) -> bool:
        """Connect to a gateway unless it's connected.

        Returns False if its process doesn't listen.
        """
        peer = self._peers.get(number)
        if peer is not None and not peer.is_lost:
            return True
        try:
            path = self._find_path(number)
            self._peers[number] = await Peer.connect(number, path, self._lost.set)
        except OSError:
            self._peers.pop(number, None)
            return False
        _log.info("a gateway has joined", gateway=number)
        return True

    async def _bury(self, number: int) -> bool:
        """Take over the chats of a gateway if it's dead. Returns False if it may be alive."""
        adopted = await self._membership.give_up(number)
        if adopted is None:
            return False
        self._takeovers[number] = adopted
        await self._finish_takeovers()
        self._find_path(number).unlink(missing_ok=True)
        return True

    async def _find_takeovers(self, others: Collection[int]) -> None:
        """Find gateways that were given up in a write whose result was lost with the connection."""
        known = {self._membership.number, *others, *self._takeovers}
        for number in set(self._ownership.owners.values()) - known:
            stored_owners = await self._membership.read_owners()
            self._takeovers[number] = frozenset(
                chat
                for chat in self._list_chats(number)
                if stored_owners.get(chat) == self._membership.number
            )

    async def _finish_takeovers(self) -> None:
        """Continue the unfinished work of dead gateways. After an error, this is repeated."""
        owners = self._ownership.owners
        for number, adopted in list(self._takeovers.items()):
            chats = self._list_chats(number) | adopted
            _log.warning("a gateway is dead", gateway=number, chats=len(adopted))
            await self._take_over(adopted, chats)
            for chat in chats:
                owners.pop(chat, None)
            owners.update(dict.fromkeys(adopted, self._membership.number))
            del self._takeovers[number]

    def _list_chats(self, number: int) -> set[str]:
        """Return the chats that a gateway works on, according to the front."""
        return {chat for chat, owner in self._ownership.owners.items() if owner == number}

    def close(self) -> None:
        """End the connections to the other gateways."""
        for peer in self._peers.values():
            peer.close()
