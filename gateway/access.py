"""Who is served: the owner, listed people, members of listed rooms, and whoever the owner approved, nobody else; how
often, where it is not the owner; and where talks of two assistants end.

Decides on numeric ids alone. A stranger may ask to be let in and link with an account that is; nothing is kept of that
but account, name, code and, as long as that lasts, the text of one message, to be answered then. Rates are in memory,
on the machine's own clock: after a restart all may be used again.
"""

from __future__ import annotations

from time import monotonic
from typing import Literal

from config.settings import Limits, Settings
from core.ports import Clock
from core.store.jobs import Job
from core.store.people import Pairing, People, Standing
from core.types import Account, Command, Inbound, Scope
from gateway import texts
from gateway.owner_notices import OwnerNotices

CRON = "cron"  # the platform of scheduled questions
Verdict = Literal["served", "overheard", "stranger", "ignored"]


class Access:
    """By the access lists of the settings and by what the owner approved."""

    def __init__(self, directory: People, clock: Clock, settings: Settings, owner_notices: OwnerNotices) -> None:
        self.directory = directory
        self._owner_notices = owner_notices
        self._clock = clock
        self._people = frozenset(settings.access.people)
        self._rooms = frozenset(settings.access.rooms)
        self._is_listening = settings.room.listen
        self._greeted: dict[Account, str] = {}
        self._served: set[tuple[str, Account]] = set()
        self._named = self._people.union(settings.owner.accounts)

    async def judge(self, inbound: Inbound) -> tuple[Verdict, Scope, bool]:
        """What to do with an event, the scope of its place (a room that has moved keeps the one it had), and whether it
        is the owner's."""
        if inbound.kind == "delete":
            # Discord does not say who wrote what was deleted; whoever it was, here it goes too.
            return "served", inbound.scope, False
        if inbound.sender.is_nobody:
            return "ignored", inbound.scope, False
        is_planned = inbound.address.platform == CRON
        account = inbound.scope.speaker(inbound.sender.id) if is_planned else inbound.account
        standing = await self.directory.standing(account, inbound.scope)
        verdict = self._verdict(inbound, account, standing)
        if verdict == "served":
            self._served.add((inbound.address.key, account))
            if inbound.origin == "via_bot":
                verdict = "overheard"  # the words of a bot, which nothing is answered to
        verdict = "ignored" if is_planned and verdict == "stranger" else verdict
        return verdict, standing.scope, standing.is_owner

    async def serves(self, job: Job) -> bool:
        """Whether whoever planned a job is still served where it is said."""
        account = job.scope.speaker(job.account.user_id if job.account else CRON)
        return self._is_served(account, await self.directory.standing(account, job.scope), job.scope)

    def _verdict(self, inbound: Inbound, account: Account, standing: Standing) -> Verdict:
        is_served = self._is_served(account, standing, inbound.scope)
        if inbound.is_direct and not standing.scope.is_room:
            return "served" if is_served else "ignored" if standing.is_blocked else "stranger"
        if is_served and (inbound.is_addressed or inbound.kind == "edit"):
            return "served"
        return "overheard" if is_served and self._is_listening else "ignored"

    def _is_served(self, account: Account, standing: Standing, place: Scope) -> bool:
        """Who was removed is served nowhere, whoever else is."""
        if standing.scope.is_room and standing.scopes != {standing.scope}:
            # A room that the owner declared as theirs alone shows more than itself, so nobody else is served there.
            return standing.is_owner
        rooms = (standing.scope, place)  # settings may name the place by the id it had or the one it has now
        keys = {room.key.removeprefix("room:").partition("#")[0] for room in rooms if room.is_room}
        is_listed = not keys.isdisjoint(self._rooms)
        return standing.is_let_in(account, self._people) or (is_listed and not standing.is_removed)

    def is_known(self, inbound: Inbound) -> bool:
        """Whether this is somebody to be served, as far as that can be told while the store is out of order."""
        if inbound.is_direct and inbound.account.key in self._named:
            return True
        return inbound.is_addressed and (inbound.address.key, inbound.account) in self._served

    async def greet(self, inbound: Inbound) -> None:
        """Notes the account and its present name; a database write only when that is news."""
        account, name = inbound.account, inbound.sender.name
        if inbound.address.platform != CRON and self._greeted.get(account) != name:
            await self.directory.greet(account, name)
            self._greeted[account] = name

    async def pair(self, inbound: Inbound) -> Pairing | None:
        """A code for a stranger, of whom the owner is told; None when they have one already or too many are waiting."""
        pairing = await self.directory.ask(inbound.account, inbound.sender.name, self._clock.now(), inbound)
        if pairing is not None:
            # Not with the code, which the stranger has to pass on.
            person = texts.person(pairing.name, pairing.account)
            asks = texts.ASKS_TO_BE_LET_IN.format(person=person, key=pairing.account.key)
            await self._owner_notices.tell(f"pairing:{pairing.account.key}:{pairing.expires_at.isoformat()}", asks)
        return pairing


MINUTE_S = 60.0
IN_A_ROW = 6
"""After so many turns with one account of a room it is only listened to. Platforms mark their bots, which have no turn;
an assistant behind a person's account is known by nothing but going on and on. A person who is alone there gives a
command to go on."""
QUIET_S = 120.0
"""After so long without a word it begins anew."""
_KEPT = 1_000


class TokenBuckets:
    """A bucket of `most` tokens for each key, which fills within a minute."""

    def __init__(self, most: int) -> None:
        self._each_s = MINUTE_S / most
        self._full_at: dict[Account | Scope, float] = {}
        """When a bucket will be full again; what is not named here is full."""

    def rest_s(self, key: Account | Scope) -> float:
        """In how many seconds there is a token: 0 where there is one."""
        return max(0.0, self._full_at.get(key, 0.0) - monotonic() - MINUTE_S + self._each_s)

    def take(self, key: Account | Scope) -> None:
        """Takes a token."""
        now = monotonic()
        if len(self._full_at) >= _KEPT:
            self._full_at = {one: full_at for one, full_at in self._full_at.items() if full_at > now}
        self._full_at[key] = max(self._full_at.get(key, 0.0), now) + self._each_s


class Rates:
    """What `limits` allow an account, and all accounts of a room together."""

    def __init__(self, limits: Limits) -> None:
        self._turns = TokenBuckets(limits.turns_per_minute)
        self._room_turns = TokenBuckets(limits.room_turns_per_minute)
        self._commands = TokenBuckets(limits.commands_per_minute)
        self._talks: dict[Scope, tuple[Account, int, float]] = {}
        """Who has spoken last in a room, in how many turns in a row, and when."""

    def turn(self, inbound: Inbound) -> float:
        """Counts a turn and returns 0, or in how many seconds to ask again."""
        rest_s = self._turns.rest_s(inbound.account)
        if inbound.scope.is_room:
            rest_s = max(rest_s, self._room_turns.rest_s(inbound.scope))
        if not rest_s:
            self._turns.take(inbound.account)
            self._room_turns.take(inbound.scope)
        return rest_s

    def command(self, inbound: Inbound, command: Command | None) -> bool:
        """Counts a command or a press; False where it is one too many."""
        if command is None and inbound.kind == "message":
            return True
        if self._commands.rest_s(inbound.account):
            return False
        self._commands.take(inbound.account)
        self._talks.pop(inbound.scope, None)
        return True

    def in_a_row(self, inbound: Inbound, *, is_turn: bool) -> int:
        """Notes what was said, and returns how many turns an account of a room has had with nobody else speaking."""
        if not inbound.scope.is_room or inbound.address.platform == "cron":
            return 0
        now, (account, turns, heard_at) = monotonic(), self._talks.get(inbound.scope, (None, 0, 0.0))
        turns = is_turn + (turns if account == inbound.account and now - heard_at <= QUIET_S else 0)
        self._talks[inbound.scope] = (inbound.account, turns, now)
        return turns
