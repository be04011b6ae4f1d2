"""Links accounts to one person and unlinks them: an offer under a code, a claim by who has it, a yes of each.

No message moves; who sees what follows from the person. The owner's accounts are set in settings and at the command
line only, never here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.errors import Refused
from core.store import epoch, people, rows
from core.store.engine import Connection, Row, Values
from core.store.people import new_code, typed_code
from core.store.rows import scope_parameter
from core.store.sqlite.database import Database
from core.types import Account, Address, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAccount:
    account: Account
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two persons that are about to be one, each with all accounts: `offered` asked for the code, at `address`,
    `claimed` typed it. `digest`: of the code, names the link in a yes. `is_joined`: both have said yes."""

    id: int
    digest: str
    offered: tuple[NamedAccount, ...]
    claimed: tuple[NamedAccount, ...]
    address: Address
    scope: Scope
    claimed_address: Address
    is_joined: bool = False


LIFE = timedelta(minutes=10)
"""Of a code (one of 27 ** 8), and then of each of the two questions."""
OWNERS = (
    "That account is my owner's. Accounts become the owner's only by the settings (`[owner]` in mneme.toml) or, at the "
    "machine, by `mneme approve CODE --owner`; never from a chat."
)
NOTHING = "Nothing is waiting for that, or not any more. `/link` in a direct chat on one of the platforms begins anew."
WRONG_CODE = (
    "That code is wrong, was used, or is older than ten minutes. `/link` in a direct chat with me on the other "
    "platform gives a new one."
)

DELETE_OLD = "DELETE FROM links WHERE expires_at <= :now"
DELETE_OFFER = "DELETE FROM links WHERE platform = :platform AND user_id = :user_id AND joined_at IS NULL"
INSERT_OFFER = """
INSERT INTO links (digest, platform, user_id, scope_id, address, expires_at)
VALUES (:digest, :platform, :user_id, :scope, :address, :expires_at)
"""
OFFER = """
SELECT * FROM links WHERE digest = :digest AND joined_at IS NULL AND expires_at > :now AND (
    claimed_platform IS NULL OR claimed_platform = :platform AND claimed_user_id = :user_id
)
"""
CLAIM = """
UPDATE links SET claimed_platform = :platform, claimed_user_id = :user_id, claimed_name = :name,
    claimed_address = :address, agreed_at = NULL, expires_at = :expires_at
WHERE digest = :digest
"""
CLAIMED = "SELECT * FROM links WHERE digest = :digest AND claimed_platform IS NOT NULL"
AGREE = "UPDATE links SET agreed_at = :now, expires_at = :expires_at WHERE digest = :digest"
LINK = """
SELECT links.*, scopes.key AS scope_key FROM links JOIN scopes ON scopes.id = links.scope_id WHERE digest = :digest
"""


class Links:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def offer(self, account: Account, address: Address, scope: Scope, now: datetime) -> str:
        """A code for this account, good once and for ten minutes; its earlier one is void. Refused for the owner."""
        code = new_code()

        def work(connection: Connection) -> None:
            _refuse_owner(connection, account)
            connection.execute(DELETE_OLD, {"now": now})
            people.add_account(connection, account, None)
            values = {
                **rows.values_of(account),
                "digest": _digest(code),
                "scope": rows.ensure_scope(connection, scope),
                "address": address,
                "expires_at": now + LIFE,
            }
            connection.execute(DELETE_OFFER, values)
            connection.execute(INSERT_OFFER, values)

        await self._database.write(work)
        return code

    async def claim(self, code: str, by: NamedAccount, address: Address, now: datetime) -> Link:
        """The account behind a code is to be one person with `by`. Refused for a wrong code, and for the owner's."""
        values = {
            **rows.values_of(by.account),
            "name": by.name,
            "address": address,
            "digest": _digest(code),
            "now": now,
            "expires_at": now + LIFE,
        }

        def work(connection: Connection) -> Link:
            _refuse_owner(connection, by.account)
            row = connection.execute(OFFER, values).fetchone()
            if row is None:
                raise Refused(WRONG_CODE)
            offered = rows.account_in(row)
            _refuse_owner(connection, offered)
            if by.account in [named.account for named in _accounts(connection, offered)]:
                raise Refused("That is this very account, or one that is linked with it already.")
            connection.execute(CLAIM, values)
            return _link(connection, values)

        return await self._database.write(work)

    async def agree(self, digest: str, account: Account, now: datetime) -> Link:
        """First who claimed says yes, then who offered: now they are one person. Refused for anybody else."""
        values = {"digest": digest, "now": now, "expires_at": now + LIFE}

        def work(connection: Connection) -> Link:
            connection.execute(DELETE_OLD, values)
            row = connection.execute(CLAIMED, values).fetchone()
            if row is None:
                raise Refused(NOTHING)
            offered, claimed = rows.account_in(row), _claimed(row)
            is_last = account == offered and row["agreed_at"] is not None
            if not is_last and account != claimed.account:
                raise Refused(NOTHING)
            if row["joined_at"] is None:
                _refuse_owner(connection, offered)
                _refuse_owner(connection, claimed.account)
                connection.execute(AGREE, values)
                if is_last:
                    _join(connection, offered, claimed)
                    connection.execute("UPDATE links SET joined_at = :now WHERE digest = :digest", values)
            return _link(connection, values)

        return await self._database.write(work)

    async def unlink(self, account: Account) -> Sequence[NamedAccount]:
        """Makes the account a person of its own; returns those it was linked with. Answers under way to any of them are
        begun anew. Refused for the owner's."""

        def work(connection: Connection) -> Sequence[NamedAccount]:
            _refuse_owner(connection, account)
            one, *others = _accounts(connection, account) or [NamedAccount(account=account, name="")]
            if others:
                people.move_account(connection, account, people.add_person(connection), None)
                accounts = [named.account for named in (one, *others)]
                scopes = frozenset(Scope.account(it.platform, it.user_id) for it in accounts)
                values = {"number": epoch.count(connection), "scopes": scope_parameter(scopes)}
                connection.execute("INSERT INTO partings (number, scopes) VALUES (:number, :scopes)", values)
            return others

        return await self._database.write(work)

    async def accounts(self, account: Account) -> Sequence[NamedAccount]:
        """The accounts of the person of an account, that one first; empty for one that was never met."""
        return await self._database.read(lambda connection: _accounts(connection, account))


def _refuse_owner(connection: Connection, account: Account) -> None:
    if people.is_owners(connection, account):
        raise Refused(OWNERS)


def _join(connection: Connection, offered: Account, claimed: NamedAccount) -> None:
    person = people.add_account(connection, offered, None)
    people.add_account(connection, claimed.account, claimed.name)
    for one in _accounts(connection, claimed.account):
        people.move_account(connection, one.account, person, None)


def _accounts(connection: Connection, account: Account) -> list[NamedAccount]:
    return [
        NamedAccount(account=rows.account_in(row), name=row["name"])
        for row in connection.execute(people.LINKED, rows.values_of(account))
    ]


def _link(connection: Connection, values: Values) -> Link:
    row = connection.execute(LINK, values).fetchone()
    claimed, is_joined = _claimed(row), row["joined_at"] is not None
    return Link(
        id=row["id"],
        digest=row["digest"],
        offered=tuple(_accounts(connection, rows.account_in(row))),
        claimed=(claimed,) if is_joined else tuple(_accounts(connection, claimed.account)) or (claimed,),
        address=Address.parse(row["address"]),
        scope=Scope(key=row["scope_key"]),
        claimed_address=Address.parse(row["claimed_address"]),
        is_joined=is_joined,
    )


def _claimed(row: Row) -> NamedAccount:
    account = Account(platform=row["claimed_platform"], user_id=row["claimed_user_id"])
    return NamedAccount(account=account, name=row["claimed_name"])


def _digest(code: str) -> str:
    return hashlib.sha256(typed_code(code).encode("utf-8", "replace")).hexdigest()
