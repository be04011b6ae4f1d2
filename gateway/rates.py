"""How fast people other than the owner are answered, and where talks of two assistants end.

In memory, on the machine's own clock: after a restart all may be used again.
"""

from time import monotonic

from config.settings import Limits
from core.types import Account, Command, Inbound, Scope

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
