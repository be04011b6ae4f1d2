"""Accounts and the persons they belong to as rows; what is done with them is in `people.py` and `links.py`.

Functions that take a connection run inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3

from core.store import codec
from core.types import Account

TERMINAL = Account(platform="terminal", user_id="local")
"""Whoever sits at the machine is the owner."""


def place(account: Account) -> dict[str, str]:
    """The parameters by which an account is found."""
    return {"platform": codec.clean(account.platform), "user_id": codec.clean(account.user_id)}


def person(connection: sqlite3.Connection, is_owner: bool = False) -> int:
    """A new person without accounts."""
    made = connection.execute("INSERT INTO people (is_owner) VALUES (:is_owner) RETURNING id", {"is_owner": is_owner})
    return int(made.fetchall()[0]["id"])


def keep(connection: sqlite3.Connection, account: Account, name: str | None) -> None:
    """Makes the account a person of its own when it is new; notes its name when one is given."""
    values = {**place(account), "name": codec.maybe_clean(name)}
    known = connection.execute(
        "SELECT name FROM accounts WHERE platform = :platform AND user_id = :user_id", values
    ).fetchone()
    if known is None:
        connection.execute(
            """
            INSERT INTO accounts (platform, user_id, person_id, name)
            VALUES (:platform, :user_id, :person, COALESCE(:name, ''))
            """,
            {**values, "person": person(connection)},
        )
    elif name is not None:
        connection.execute("UPDATE accounts SET name = :name WHERE platform = :platform AND user_id = :user_id", values)


def give(connection: sqlite3.Connection, account: Account, person_id: int, owner_by: str | None) -> None:
    """Moves an account to a person; `owner_by` says who made it the owner's: settings, cli or nobody."""
    connection.execute(
        """
        UPDATE accounts SET person_id = :person, owner_by = :owner_by
        WHERE platform = :platform AND user_id = :user_id
        """,
        {**place(account), "person": person_id, "owner_by": owner_by},
    )
    connection.execute("DELETE FROM people WHERE is_owner = 0 AND id NOT IN (SELECT person_id FROM accounts)")


def person_of(connection: sqlite3.Connection, account: Account) -> int | None:
    """The person an account belongs to; None for one that was never met."""
    row = connection.execute(
        "SELECT person_id FROM accounts WHERE platform = :platform AND user_id = :user_id", place(account)
    ).fetchone()
    return None if row is None else int(row["person_id"])


def is_owners(connection: sqlite3.Connection, account: Account) -> bool:
    """Whether the account is the owner's; whoever sits at the machine is the owner, known or not."""
    if account == TERMINAL:
        return True
    row = connection.execute(
        """
        SELECT people.is_owner FROM accounts JOIN people ON people.id = accounts.person_id
        WHERE accounts.platform = :platform AND accounts.user_id = :user_id
        """,
        place(account),
    ).fetchone()
    return row is not None and bool(row["is_owner"])


def linked(connection: sqlite3.Connection, account: Account) -> list[sqlite3.Row]:
    """The accounts of the person that an account belongs to, itself first, as platform, user_id, name."""
    return connection.execute(
        """
        SELECT linked.platform, linked.user_id, linked.name
        FROM accounts JOIN accounts AS linked ON linked.person_id = accounts.person_id
        WHERE accounts.platform = :platform AND accounts.user_id = :user_id
        ORDER BY linked.platform <> :platform OR linked.user_id <> :user_id, linked.platform, linked.user_id
        """,
        place(account),
    ).fetchall()
