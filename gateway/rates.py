"""How fast people other than the owner are answered, and where talks of two assistants end.

In memory, on the machine's own clock: after a restart all may be used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from config.settings import Limits
from core.types import Account, Inbound, Scope

MINUTE_S = 60.0
TURNS_IN_A_ROW = 12
"""With one account of a room, which is then only listened to ..."""
QUIET_S = 120.0
"""... until somebody else speaks there, or it was quiet for so long."""
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
        """Takes a token, where there is none of those to come."""
        now = monotonic()
        if len(self._full_at) >= _KEPT:
            self._full_at = {one: full_at for one, full_at in self._full_at.items() if full_at > now}
        self._full_at[key] = max(self._full_at.get(key, 0.0), now) + self._each_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How what was said is served: a command after `rest_s`, a message with an answer if it `is_heard`. Platforms mark
    their bots, which never are; an assistant behind a person's account is only known by going on and on."""

    rest_s: float = 0.0
    is_heard: bool = True


@dataclass(slots=True)
class _Talk:
    account: Account
    turns: int = 0
    heard_at: float = 0.0


class Rates:
    """What `limits` allow an account, and all accounts of a room together."""

    def __init__(self, limits: Limits) -> None:
        self._turns = TokenBuckets(limits.turns_per_minute)
        self._room_turns = TokenBuckets(limits.room_turns_per_minute)
        self._commands = TokenBuckets(limits.commands_per_minute)
        self._talks: dict[Scope, _Talk] = {}

    def turn(self, inbound: Inbound) -> float:
        """Counts a turn and returns 0, or in how many seconds to ask again."""
        asked: list[tuple[TokenBuckets, Account | Scope]] = [(self._turns, inbound.account)]
        if inbound.scope.is_room:
            asked.append((self._room_turns, inbound.scope))
        rest_s = max(buckets.rest_s(key) for buckets, key in asked)
        if not rest_s:
            for buckets, key in asked:
                buckets.take(key)
        return rest_s

    def pace(self, inbound: Inbound, *, is_command: bool, is_owner: bool) -> Pace | None:
        """Counts what was said; None: there are more commands than can run within a minute, so it is passed over."""
        if is_command or inbound.kind == "action":
            rest_s = 0.0 if is_owner else self._commands.rest_s(inbound.account)
            if rest_s > MINUTE_S:
                return None
            self._commands.take(inbound.account)
            return Pace(rest_s=rest_s)
        return Pace(is_heard=not _is_in_room(inbound) or self._goes_on(inbound) or is_owner)

    def _goes_on(self, inbound: Inbound) -> bool:
        now, talk = monotonic(), self._talks.get(inbound.scope)
        if talk is None or talk.account != inbound.account or now - talk.heard_at > QUIET_S:
            talk = self._talks[inbound.scope] = _Talk(inbound.account)
        talk.heard_at = now
        return talk.turns < TURNS_IN_A_ROW

    def count(self, inbound: Inbound) -> bool:
        """Counts a turn; whether it is the last one in a room."""
        talk = self._talks.get(inbound.scope) if _is_in_room(inbound) else None
        if talk is None or talk.account != inbound.account:
            return False
        talk.turns += 1
        return talk.turns == TURNS_IN_A_ROW


def _is_in_room(inbound: Inbound) -> bool:
    return inbound.scope.is_room and inbound.address.platform != "cron"
