"""Ends what somebody has in private who is not served any more: links, codes, buttons, jobs, what is on its way there.

What is being answered is the router's to end. In rooms, each press and each job is judged by `gateway.access`.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from core.store import epoch, people, rows
from core.store.mailbox import OPEN
from core.store.rows import Connection
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import want_checkpoint
from core.types import Account, Scope

NOT_SERVED = "Whoever planned it is not served any more."
_SCOPE = "(SELECT id FROM scopes WHERE key = :scope)"
END = (
    "DELETE FROM pairings WHERE :account = platform || ':' || user_id",
    "DELETE FROM links WHERE :account IN (platform || ':' || user_id, claimed_platform || ':' || claimed_user_id)",
    f"DELETE FROM actions WHERE scope_id = {_SCOPE}",
    f"UPDATE jobs SET paused_at = :now, pause_reason = :reason WHERE paused_at IS NULL AND scope_id = {_SCOPE}",
    f"""
    UPDATE outbox SET dead_at = :now, next_at = NULL, payload = NULL, error = 'not served any more'
    WHERE {OPEN} AND lane IN (
        SELECT {rows.LANE} FROM sessions JOIN addresses ON addresses.id = sessions.address_id
        WHERE sessions.scope_id = {_SCOPE} AND sessions.external_id IS NULL
    )
    """,
)
REMOVE = """
UPDATE accounts SET admitted_at = NULL, admitted_by = NULL, removed_at = :now, is_blocked = :blocked
WHERE :account = platform || ':' || user_id
"""


class Removals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, accounts: Iterable[Account], now: datetime, *, is_blocked: bool = False) -> None:
        """Nobody serves these accounts from now on, whatever the settings say, until they are approved again; one that
        `is_blocked` cannot even ask. Answers under way are begun anew."""

        def work(connection: Connection) -> None:
            for account in accounts:
                people.add_account(connection, account, None)
                scope = Scope.account(account.platform, account.user_id)
                epoch.part(connection, people.scopes_in(connection, scope))
                is_owner = people.is_owners(connection, account)
                people.move_account(connection, account, people.add_person(connection), "revoked" if is_owner else None)
                values = {"account": account, "scope": scope, "now": now, "reason": NOT_SERVED, "blocked": is_blocked}
                for statement in (*END, REMOVE):
                    connection.execute(statement, values)
            want_checkpoint(connection)

        await self._database.write(work)

    async def settle(self, listed: Collection[str], now: datetime) -> None:
        """At a start: nothing is delivered in private to who is not `listed` in the settings any more."""

        def work(connection: Connection) -> None:
            for account in map(rows.account_in, connection.execute("SELECT * FROM accounts").fetchall()):
                scope = Scope.account(account.platform, account.user_id)
                if not people.standing_in(connection, account, scope).is_let_in(account, listed):
                    connection.execute(END[-1], {"scope": scope, "now": now})

        await self._database.write(work)
