"""Ends what somebody has who is not served any more: links, codes, buttons, jobs, and what has yet to leave for them.

What is being answered is the router's to end; who is served, `gateway.access` decides each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from core.store import epoch, people, rows
from core.store.mailbox import OPEN
from core.store.rows import Connection
from core.store.sqlite.indexing import want_checkpoint
from core.store.sqlite.schema import in_list, list_value
from core.types import Account, Scope

if TYPE_CHECKING:
    from core.store.sqlite.database import Database

NOT_SERVED = "Whoever planned it is not served any more."
_SCOPE = "(SELECT id FROM scopes WHERE key = :scope)"
_OWN = f"(scope_id = {_SCOPE} OR (:is_everywhere AND account = :account))"
DELETED = (
    "DELETE FROM pairings WHERE platform = :platform AND user_id = :user_id",
    """
    DELETE FROM links WHERE (platform = :platform AND user_id = :user_id)
        OR (claimed_platform = :platform AND claimed_user_id = :user_id)
    """,
    f"DELETE FROM actions WHERE {_OWN}",
    f"""
    UPDATE outbox SET dead_at = :now, next_at = NULL, payload = NULL, error = 'not served any more'
    WHERE {OPEN} AND (
        (:is_everywhere AND reply_to = '@' || :user_id AND lane LIKE :platform || ':%') OR lane IN (
            SELECT {rows.LANE} FROM sessions JOIN addresses ON addresses.id = sessions.address_id
            WHERE sessions.scope_id = {_SCOPE}
        )
    )
    """,
)
PAUSE = f"""
UPDATE jobs SET paused_at = :now, pause_reason = :reason WHERE ended_at IS NULL AND paused_at IS NULL AND {_OWN}
"""
REMOVE = """
UPDATE accounts SET admitted_at = NULL, admitted_by = NULL, removed_at = :now, is_blocked = :is_blocked
WHERE platform = :platform AND user_id = :user_id
"""
UNSERVED = f"""
SELECT accounts.platform, accounts.user_id FROM accounts JOIN people ON people.id = accounts.person_id
WHERE NOT people.is_owner AND NOT EXISTS (
    SELECT 1 FROM accounts AS linked WHERE linked.person_id = accounts.person_id AND (
        linked.admitted_at IS NOT NULL
        OR (linked.removed_at IS NULL AND {in_list("linked.platform || ':' || linked.user_id", "listed")})
    )
) AND EXISTS (
    SELECT 1 FROM scopes JOIN sessions ON sessions.scope_id = scopes.id
    WHERE scopes.key = 'account:' || accounts.platform || ':' || accounts.user_id
)
"""
"""Those that spoke in private and may not any more: neither approved nor named in the settings, nor linked with one."""


class Removals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, accounts: Sequence[Account], now: datetime, *, is_blocked: bool = False) -> int:
        """Nobody serves these accounts from now on, whatever the settings say, until they are approved again; one that
        `is_blocked` cannot even ask. Returns how many jobs were paused. Answers under way are begun anew."""

        def work(connection: Connection) -> int:
            seen = [people.scopes_in(connection, Scope.account(one.platform, one.user_id)) for one in accounts]
            paused = 0
            for account in accounts:
                people.add_account(connection, account, None)
                paused += _end(connection, account, now, is_everywhere=True)
                connection.execute(REMOVE, {**rows.values_of(account), "now": now, "is_blocked": is_blocked})
            epoch.part(connection, frozenset().union(*seen))
            want_checkpoint(connection)
            return paused

        return await self._database.write(work)

    async def settle(self, listed: Iterable[str], now: datetime) -> None:
        """At a start: the same for whoever was served in private and is not any more, because the settings have changed
        to `listed` (``telegram:42``); in rooms they may still be served."""

        def work(connection: Connection) -> None:
            for row in connection.execute(UNSERVED, {"listed": list_value(listed)}).fetchall():
                _end(connection, rows.account_in(row), now, is_everywhere=False)

        await self._database.write(work)


def _end(connection: Connection, account: Account, now: datetime, *, is_everywhere: bool) -> int:
    is_owner = people.is_owners(connection, account)
    if is_owner or len(connection.execute(people.LINKED, rows.values_of(account)).fetchall()) > 1:
        people.move_account(connection, account, people.add_person(connection), "revoked" if is_owner else None)
    values = {
        **rows.values_of(account),
        "account": account,
        "scope": Scope.account(account.platform, account.user_id),
        "is_everywhere": is_everywhere,
        "now": now,
        "reason": NOT_SERVED,
    }
    for statement in DELETED:
        connection.execute(statement, values)
    return connection.execute(PAUSE, values).rowcount
