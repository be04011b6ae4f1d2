"""The role of what joins the accounts of one person and parts them: for those who hold both ends of it, nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from core.records import Link, Named
from core.types import Account, Address, Scope


class Kinship(Protocol):
    """A person is a set of accounts. Raises Refused with a sentence wherever something may not be."""

    async def offer(self, account: Account, address: Address, scope: Scope, now: datetime) -> str:
        """A code for this account, good once and for ten minutes; the one before it is void."""

    async def claim(self, code: str, by: Named, address: Address, now: datetime) -> Link:
        """Whoever else has the code wants to be one with who asked for it; the same account may ask again."""

    async def agree(self, token: str, account: Account, now: datetime) -> Link:
        """One of the two says yes: first who claimed, then who offered; with the second they are one person."""

    async def asked(self, link_id: int) -> Link | None:
        """A link that waits for the yes of who offered the code, or did so within the last day."""

    async def call_off(self, link_id: int) -> None:
        """Nothing waits for this link any more; one that is joined stays."""

    async def part(self, account: Account) -> Sequence[Named]:
        """Makes the account a person of its own; returns those it was linked with, none: it was alone."""

    async def kin(self, account: Account) -> Sequence[Named]:
        """The accounts of a person by one of them, that one first."""
