"""Buttons that survive a restart: each an id that a platform carries, and the command behind it, for a while.

Says what a button does, not who may press it; that is asked of its scope and account by the router. A question that
waits for a yes is a button too, which is taken once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.ports import Clock
from core.store import rows
from core.store.sqlite.database import Database
from core.types import Account, Address, Command, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonAction:
    """A button as a row: pressing it runs `command` as its person, in its scope, until it expires. With an `address` it
    is a question that waits for the person's yes there: it is taken once, by a press or by the next message. One that
    leaves in an `outbox_item` of that key waits only from when it has arrived. One that `takes_words` waits for a
    sentence instead, which is put behind the command's arguments. `origin` names the event that it was asked for:
    asked again, after a crash or since the work was begun anew, it takes the place of the first one."""

    id: str
    scope: Scope
    account: Account | None
    command: Command
    expires_at: datetime
    address: Address | None = None
    outbox_item: str | None = None
    takes_words: bool = False
    origin: str | None = None


class Actions:
    """Fills the role `core.ports.Actions` over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, actions: Sequence[ButtonAction]) -> None:
        """Stores buttons under the ids they come with, random and short; expired ones are let go of, and questions that
        have the origin of a new one and were not taken.

        Raises StoreError for an id that exists: a button must never change what it does.
        """
        now = rows.timestamp(self._clock.now())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM actions WHERE expires_at <= :now", {"now": now})
            values = [_values(connection, action) for action in actions]
            connection.executemany(
                """
                DELETE FROM actions WHERE address = :address AND account = :account AND origin = :origin
                    AND takes_words = :takes_words AND taker IS NULL
                """,
                values,
            )
            connection.executemany(
                """
                INSERT INTO actions
                    (id, scope_id, account, command, arguments, expires_at, address, parcel, takes_words, origin)
                VALUES
                    (:id, :scope, :account, :command, :arguments, :expires_at, :address, :parcel, :takes_words, :origin)
                """,
                values,
            )

        if actions:
            await self._database.write(work)

    async def find(self, action_id: str, now: datetime) -> ButtonAction | None:
        """The button behind an id, unless it has expired, or is a question, which is only ever taken."""
        values = {"id": rows.clean(action_id), "now": rows.timestamp(now)}

        def work(connection: sqlite3.Connection) -> ButtonAction | None:
            row = connection.execute(
                """
                SELECT actions.*, scopes.key AS scope_key FROM actions JOIN scopes ON scopes.id = actions.scope_id
                WHERE actions.id = :id AND actions.expires_at > :now AND actions.address IS NULL
                """,
                values,
            ).fetchone()
            return None if row is None else _action(row)

        return await self._database.read(work)

    async def take(self, address: Address, account: Account, taker: str, now: datetime) -> Sequence[ButtonAction]:
        """The questions that wait for this account here, the latest first, which wait for nothing else from then on;
        the same `taker` (a message, a press) gets them again, after a crash. One whose parcel has not arrived has been
        seen by nobody and goes on waiting. Costs no write where nothing waits."""
        values = {
            "address": rows.clean(address.key),
            "account": rows.account_key(account),
            "taker": rows.clean(taker),
            "now": rows.timestamp(now),
        }

        def look(connection: sqlite3.Connection) -> list[sqlite3.Row]:
            found = connection.execute(
                """
                SELECT actions.*, scopes.key AS scope_key FROM actions JOIN scopes ON scopes.id = actions.scope_id
                WHERE actions.address = :address AND actions.account = :account AND actions.expires_at > :now
                    AND (actions.taker IS NULL OR actions.taker = :taker)
                    AND (actions.parcel IS NULL OR EXISTS (
                        SELECT 1 FROM outbox
                        WHERE outbox.key = actions.parcel AND (outbox.done_at IS NOT NULL OR outbox.posted <> '[]')
                    ))
                ORDER BY actions.taker IS NULL, actions.expires_at DESC
                """,
                values,
            ).fetchall()
            # What was taken before a crash is what was meant; what came to wait since was not there to be answered.
            known = [row for row in found if row["taker"] is not None]
            return known or found

        def work(connection: sqlite3.Connection) -> Sequence[ButtonAction]:
            found = look(connection)
            if found and found[0]["taker"] is not None:
                return [_action(row) for row in found]
            connection.execute(
                "UPDATE actions SET taker = :taker WHERE id IN (SELECT value FROM json_each(:ids))",
                {**values, "ids": rows.dump([row["id"] for row in found])},
            )
            return [_action(row) for row in found]

        if not await self._database.read(look):
            return ()
        return await self._database.write(work)


def _values(connection: sqlite3.Connection, action: ButtonAction) -> dict[str, object]:
    return {
        "id": rows.clean(action.id),
        "scope": rows.keep_scope(connection, action.scope),
        "account": rows.account_key(action.account),
        "command": rows.clean(action.command.name),
        "arguments": rows.clean(action.command.arguments),
        "expires_at": rows.timestamp(action.expires_at),
        "address": None if action.address is None else rows.clean(action.address.key),
        "parcel": rows.maybe_clean(action.outbox_item),
        "takes_words": action.takes_words,
        "origin": rows.maybe_clean(action.origin),
    }


def _action(row: sqlite3.Row) -> ButtonAction:
    return ButtonAction(
        id=row["id"],
        scope=Scope(key=row["scope_key"]),
        account=rows.account_of(row["account"]),
        command=Command(name=row["command"], arguments=row["arguments"]),
        expires_at=rows.moment(row["expires_at"]),
        address=None if row["address"] is None else Address.parse(row["address"]),
        outbox_item=row["parcel"],
        takes_words=bool(row["takes_words"]),
    )
