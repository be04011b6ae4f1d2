"""Who is served: the owner, listed people, members of listed rooms, and whoever the owner approved. Nobody else.

Decides on numeric ids alone. A stranger may ask to be let in and link with an account that is; nothing is kept of that
but account, name and code.
"""

from __future__ import annotations

from typing import Literal

from core.ports import Clock
from core.store.people import Pairing, People
from core.types import Account, Inbound, Scope
from gateway.owner_notices import OwnerNotices

CRON = "cron"  # the platform of scheduled questions
Verdict = Literal["served", "overheard", "stranger", "ignored"]


class Access:
    """`people` and `rooms` are the access lists of the settings: ``"telegram:42"``, ``"discord:77"``."""

    def __init__(
        self,
        directory: People,
        clock: Clock,
        people: frozenset[str],
        rooms: frozenset[str],
        is_listening: bool,
        owner_notices: OwnerNotices,
    ) -> None:
        self._directory = directory
        self._owner_notices = owner_notices
        self._clock = clock
        self._people = people
        self._rooms = rooms
        self._is_listening = is_listening
        self._greeted: dict[Account, str] = {}

    async def judge(self, inbound: Inbound, scope: Scope) -> Verdict:
        """What to do with an event whose kept scope is `scope`."""
        if inbound.kind == "delete":
            # Discord does not say who wrote what was deleted; whoever it was, here it goes too.
            return "served"
        if inbound.sender.is_nobody:
            return "ignored"
        account = Account(platform=inbound.address.platform, user_id=inbound.sender.id)
        if inbound.address.platform == CRON:
            return "served" if await self._may_plan(inbound.sender.id, scope) else "ignored"
        if inbound.is_direct and not scope.is_room:
            return "served" if await self._is_allowed(account) else "stranger"
        if not await self._may_speak_in(account, scope, (scope, inbound.scope)):
            return "ignored"
        if inbound.is_addressed or inbound.kind == "edit":
            return "served"
        return "overheard" if self._is_listening else "ignored"

    async def greet(self, inbound: Inbound) -> None:
        """Notes the account and its present name; a database write only when that is news."""
        if inbound.address.platform == CRON or inbound.kind == "delete":
            return
        account = Account(platform=inbound.address.platform, user_id=inbound.sender.id)
        if self._greeted.get(account) != inbound.sender.name:
            await self._directory.greet(account, inbound.sender.name)
            self._greeted[account] = inbound.sender.name

    async def pair(self, inbound: Inbound) -> Pairing | None:
        """A code for a stranger, of whom the owner is told; None when they have one already or too many are waiting."""
        account = Account(platform=inbound.address.platform, user_id=inbound.sender.id)
        pairing = await self._directory.ask(account, inbound.sender.name[:100], self._clock.now())
        if pairing is not None:
            await self._owner_notices.announce(pairing)
        return pairing

    async def scope(self, inbound: Inbound) -> Scope:
        """A room that has moved keeps the scope it had."""
        return await self._directory.room(inbound.scope) if inbound.scope.is_room else inbound.scope

    async def scopes(self, scope: Scope) -> frozenset[Scope]:
        return await self._directory.scopes(scope)

    async def is_owner(self, inbound: Inbound) -> bool:
        account = Account(platform=inbound.address.platform, user_id=inbound.sender.id)
        return not inbound.sender.is_nobody and await self._directory.is_owner(account)

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        await self._directory.moved(platform, old_chat_id, new_chat_id)

    async def _may_plan(self, user_id: str, scope: Scope) -> bool:
        """A scheduled question is asked where it was planned, as long as who planned it is served there."""
        _, platform, place = scope.key.split(":", 2)
        if scope.is_room:
            return await self._may_speak_in(Account(platform=platform, user_id=user_id), scope, (scope,))
        return await self._is_allowed(Account(platform=platform, user_id=place))

    async def _is_allowed(self, account: Account) -> bool:
        return (
            account.key in self._people
            or await self._directory.is_owner(account)
            or await self._directory.is_admitted(account)
            or await self._is_linked(account)
        )

    async def _is_linked(self, account: Account) -> bool:
        """Whether the lists name another account of the same person: who is let in is let in with all of them."""
        seen = await self._directory.scopes(Scope.account(account.platform, account.user_id))
        return any(scope.key.removeprefix("account:") in self._people for scope in seen if not scope.is_room)

    async def _may_speak_in(self, account: Account, scope: Scope, rooms: tuple[Scope, ...]) -> bool:
        """`rooms`: the place under the id it has kept and under the one it has now; settings may name either."""
        if await self._is_own(scope):
            return await self._directory.is_owner(account)
        is_listed = any(room.key.removeprefix("room:") in self._rooms for room in rooms)
        return is_listed or await self._is_allowed(account)

    async def _is_own(self, scope: Scope) -> bool:
        """A room that the owner declared as theirs alone shows more than itself, so nobody else is served there."""
        return await self._directory.scopes(scope) != frozenset((scope,))
