"""End the codes, links, buttons, jobs and deliveries of accounts that lose access.

This module handles private chats. The gateway stops running turns. In groups,
`gateway.access_and_rates` checks an account's access at each button press and each run of a job.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from core.errors import compose_sentence
from core.store import rows
from core.store.engine import Connection, Database
from core.store.erasure import epoch
from core.store.mailbox import IS_OPEN
from core.store.ownership import people
from core.store.rows import request_checkpoint
from core.types import Account, Scope

REMOVED_KEY = "author_removed"
"""The key of the reason that is stored when a job is paused because its author lost access."""
_SCOPE_ID = "(SELECT id FROM scopes WHERE key = :scope)"
# Cancels the open deliveries to an account's private chats, given its scope.
_CANCEL_DELIVERIES = f"""
UPDATE outbox SET dead_at = :now, next_at = NULL, payload = NULL, error = 'not served any more'
WHERE {IS_OPEN} AND address IN (
    SELECT {rows.CONVERSATION_KEY}
    FROM sessions JOIN addresses ON addresses.id = sessions.address_id
    WHERE sessions.scope_id = {_SCOPE_ID} AND sessions.external_id IS NULL
)
"""
# These statements delete or pause an account's rows in private chats.
_END_PRIVATE_ROWS = (
    "DELETE FROM pairings WHERE :account = platform || ':' || user_id",
    """
    DELETE FROM links
    WHERE :account IN (platform || ':' || user_id, claimed_platform || ':' || claimed_user_id)
    """,
    f"DELETE FROM actions WHERE scope_id = {_SCOPE_ID}",
    f"""
    UPDATE jobs SET paused_at = :now, pause_reason = :reason
    WHERE paused_at IS NULL AND scope_id = {_SCOPE_ID}
    """,
    _CANCEL_DELIVERIES,
)
_REMOVE_ACCOUNT = """
UPDATE accounts
SET admitted_at = NULL, admitted_by = NULL, removed_at = :now, is_blocked = :blocked
WHERE :account = platform || ':' || user_id
"""


class Removals:
    """Removes accounts, and cancels deliveries to accounts without access."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(
        self, accounts: Iterable[Account], now: datetime, *, is_blocked: bool = False
    ) -> None:
        """Remove the access of these accounts until they are approved again.

        This overrides settings. A blocked account can't even request access. Running turns that
        have seen the scopes of these accounts restart.
        """

        def write(connection: Connection) -> None:
            for account in accounts:
                _remove_account(connection, account, now, is_blocked=is_blocked)
            request_checkpoint(connection)

        await self._database.write(write)

    async def cancel_unserved_deliveries(self, listed: Collection[str], now: datetime) -> None:
        """Cancel private deliveries to accounts without access. Mneme calls this at its start.

        `listed` has the keys of the accounts that settings give access to.
        """

        def write(connection: Connection) -> None:
            for row in connection.execute("SELECT * FROM accounts").fetchall():
                account = rows.read_account(row)
                scope = Scope.account(account.platform, account.user_id)
                access = people.load_access(connection, account, scope)
                if not access.has_access(account, listed):
                    connection.execute(_CANCEL_DELIVERIES, {"scope": scope, "now": now})

        await self._database.write(write)


def _remove_account(
    connection: Connection, account: Account, now: datetime, *, is_blocked: bool
) -> None:
    """Remove an account's access, and end its private jobs, links and deliveries.

    The account becomes a person of its own.
    """
    people.ensure_account(connection, account, None)
    scope = Scope.account(account.platform, account.user_id)
    epoch.detach_scopes(connection, people.load_visible_scopes(connection, scope))
    owner_source = "revoked" if people.is_owner_account(connection, account) else None
    people.move_account(connection, account, people.add_person(connection), owner_source)
    values = {
        "account": account,
        "scope": scope,
        "now": now,
        "reason": removal_reason(),
        "blocked": is_blocked,
    }
    for statement in (*_END_PRIVATE_ROWS, _REMOVE_ACCOUNT):
        connection.execute(statement, values)


def removal_reason() -> str:
    """Return the stored English reason for pausing the jobs of a removed person."""
    return compose_sentence(REMOVED_KEY, {})
