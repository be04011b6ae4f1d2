"""Registers this gateway among the gateways that share a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

import structlog

from core.store.ownership.chats import ChatOwnership

if TYPE_CHECKING:
    from core.store.postgres.database import Database

# The exit code of a gateway that was given up by the others. Service managers start it again.
GIVEN_UP_CODE = 75
_log = structlog.get_logger("sharing")


class Membership:
    """Registers this gateway in the database, and moves chats between gateways."""

    def __init__(self, database: Database, ownership: ChatOwnership) -> None:
        self._database = database
        self.ownership = ownership

    @classmethod
    async def join(cls, database: Database) -> Membership:
        """Register this process as one of the gateways of the database."""
        number = await database.join(_exit_at_once)
        return cls(database, ChatOwnership(number))

    @property
    def number(self) -> int:
        return self.ownership.number

    async def become_front(self, timeout_s: float) -> None:
        """Become the front, which works on all chats that no other gateway has.

        Waits for the end of an earlier front. Raises StoreError if a gateway with another home uses
        the database.
        """
        await self._database.claim_for_gateway(timeout_s)
        self.ownership.is_front = True

    async def load_owners(self) -> frozenset[int]:
        """Read which gateway works on which chat, and return the numbers of the other gateways."""
        from core.store.postgres.gateways import load_membership

        membership = await self._database.read(load_membership)
        self.ownership.owners.clear()
        self.ownership.owners.update(membership.owners)
        return membership.gateways - {self.number}

    async def read_owners(self) -> dict[str, int]:
        """Return the number of the gateway that works on each chat, according to the database."""
        from core.store.postgres.gateways import load_membership

        return (await self._database.read(load_membership)).owners

    async def list_others(self) -> frozenset[int]:
        """Return the numbers of the other gateways, including dead ones."""
        from core.store.postgres.gateways import list_gateways

        return await self._database.read(list_gateways) - {self.number}

    async def assign(self, chat: str, gateway: int) -> int:
        """Let a gateway work on a chat that has no owner. Returns the number of the owner."""
        from core.store.postgres.gateways import assign_chat

        work = partial(assign_chat, chat=chat, gateway=gateway)
        owner = await self._database.write(work)
        self.ownership.owners[chat] = owner
        return owner

    async def give_up(self, gateway: int) -> frozenset[str] | None:
        """Take over the unfinished chats of a dead gateway. Returns None if it isn't dead yet."""
        from core.store.postgres.gateways import give_up_gateway

        work = partial(give_up_gateway, gateway=gateway, heir=self.number)
        return await self._database.write(work)

    async def claim_unowned(self, platforms: Collection[str]) -> frozenset[str]:
        """Take the chats of these platforms that have waiting events and no owner."""
        from core.store.postgres.gateways import claim_unowned_chats

        work = partial(claim_unowned_chats, gateway=self.number, platforms=platforms)
        return await self._database.write(work)


def _exit_at_once() -> None:
    """End the process like a crash, because other gateways already work on its chats.

    If it continued, work could be done twice.
    """
    _log.critical("the other gateways have given this one up, so it ends")
    os._exit(GIVEN_UP_CODE)
