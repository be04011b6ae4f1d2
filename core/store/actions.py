"""Buttons that survive a restart, and questions that wait for a yes: an id, and the command behind it, for a while.

Who may press a button, the router decides by its scope and account.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.ports import Clock
from core.store import rows
from core.store.rows import Connection, Row
from core.store.sqlite.database import Database
from core.store.sqlite.schema import in_list, list_value
from core.types import Account, Address, Command, ErasureEpoch, Scope

LIFETIME = timedelta(minutes=10)
"""Of a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonAction:
    """A button: pressing it runs `command` as its person, in its scope, until it expires. With an `address` it is a
    question that is taken once, by a press or by the person's next message there. With an `outbox_item` (a key) it
    waits from when that has arrived. `origin` names the event it was asked for: asked again, it replaces the first
    one."""

    id: str
    scope: Scope
    account: Account | None
    command: Command
    expires_at: datetime
    address: Address | None = None
    outbox_item: str | None = None
    origin: str | None = None


def question(
    command: Command, account: Account, scope: Scope, address: Address, origin: str, now: datetime
) -> ButtonAction:
    """Lets `command`, once this is stored, wait for a yes of the account at `address`, given by message or with the
    button."""
    return ButtonAction(
        id=secrets.token_urlsafe(12),
        scope=scope,
        account=account,
        command=command,
        expires_at=now + LIFETIME,
        address=address,
        origin=origin,
    )


ACTIONS = "SELECT actions.*, scopes.key AS scope_key FROM actions JOIN scopes ON scopes.id = actions.scope_id"
FIND = f"{ACTIONS} WHERE actions.id = :id AND actions.expires_at > :now AND actions.address IS NULL"
WAITING = f"""
{ACTIONS}
WHERE actions.address = :address AND actions.account = :account AND actions.expires_at > :now
    AND (actions.taker IS NULL OR actions.taker = :taker)
    AND (actions.parcel IS NULL OR EXISTS (
        SELECT 1 FROM outbox
        WHERE outbox.key = actions.parcel AND (outbox.done_at IS NOT NULL OR outbox.posted <> '[]')
    ))
ORDER BY actions.taker IS NULL, actions.expires_at DESC
"""
DELETE_ASKED_BEFORE = """
DELETE FROM actions WHERE address = :address AND account = :account AND origin = :origin AND taker IS NULL
"""
INSERT = """
INSERT INTO actions (id, scope_id, account, command, arguments, expires_at, address, parcel, origin)
VALUES (:id, :scope, :account, :name, :arguments, :expires_at, :address, :outbox_item, :origin)
"""
TAKE = f"UPDATE actions SET taker = :taker WHERE {in_list('id', 'ids')}"
CLAIM_QUESTIONS = f"UPDATE actions SET taker = :taker WHERE taker IS NULL AND id IN (SELECT id FROM ({WAITING}))"
"""As an event is accepted: what was asked before is answered by it or is over."""


class Actions:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, actions: Sequence[ButtonAction], epoch: ErasureEpoch | None = None) -> None:
        """Stores buttons; see `insert_actions`."""
        now = self._clock.now()
        if actions:
            await self._database.write(lambda connection: insert_actions(connection, actions, now), epoch)

    async def find(self, action_id: str, now: datetime) -> ButtonAction | None:
        """The button behind an id, unless it has expired or is a question, which is only taken."""
        row = await self._database.fetch_one(FIND, {"id": action_id, "now": now})
        return None if row is None else _action(row)

    async def take(self, address: Address, account: Account, taker: str, now: datetime) -> Sequence[ButtonAction]:
        """The questions that were seen and wait for this account here, latest first, once; the same `taker` (a message,
        a press) gets them again after a crash."""
        values = {"address": address, "account": account, "taker": taker, "now": now}

        def work(connection: Connection) -> Sequence[ButtonAction]:
            found = connection.execute(WAITING, values).fetchall()
            # After a crash: questions that came since were not there to be answered.
            taken = [row for row in found if row["taker"] is not None]
            if not taken:
                connection.execute(TAKE, {**values, "ids": list_value(row["id"] for row in found)})
            return [_action(row) for row in taken or found]

        if await self._database.fetch_one(WAITING, values) is None:
            return ()
        return await self._database.write(work)


def insert_actions(connection: Connection, actions: Sequence[ButtonAction], now: datetime) -> None:
    """Stores buttons; deletes expired ones, and open questions that have the origin of a new one."""
    connection.execute("DELETE FROM actions WHERE expires_at <= :now", {"now": now})
    for action in actions:
        connection.execute(DELETE_ASKED_BEFORE, rows.values_of(action))
    for action in actions:
        scope = rows.ensure_scope(connection, action.scope)
        connection.execute(INSERT, rows.values_of(action) | rows.values_of(action.command) | {"scope": scope})


def _action(row: Row) -> ButtonAction:
    command = Command(name=row["command"], arguments=row["arguments"])
    found = rows.fields_in(row, ButtonAction) | {"command": command, "outbox_item": row["parcel"]}
    return ButtonAction(**found, scope=Scope(key=row["scope_key"]))
