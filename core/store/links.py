"""Links accounts to one person and unlinks them: an offer under a code, a claim by who has it, a yes of each, and the
owner's where not both were let in.

No message moves; who sees what follows from the person. The owner's accounts are set in settings and at the command
line only, never here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.errors import Refused
from core.store import epoch, people, rows
from core.store.people import new_code, typed_code
from core.store.rows import Connection, Values
from core.store.sqlite.database import Database
from core.text.normalize import language_data
from core.types import Account, Address, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAccount:
    account: Account
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two persons that are about to be one, each with all accounts: `offered` asked for the code, at `address`,
    `claimed` typed it. `digest`: of the code, names the link in a yes. `token`: a code that names it to the owner,
    once both have said yes and the owner has to as well. `is_joined`: they are one."""

    digest: str
    offered: tuple[NamedAccount, ...]
    claimed: tuple[NamedAccount, ...]
    address: Address
    scope: Scope
    claimed_address: Address
    token: str | None = None
    is_joined: bool = False


LIFE = timedelta(minutes=10)
"""Of a code (one of 27 ** 8), and then of each of the two questions."""

LINK = """
SELECT links.*, claimed_platform || ':' || claimed_user_id AS claimed, scopes.key AS scope_key
FROM links JOIN scopes ON scopes.id = links.scope_id
WHERE digest = :digest AND expires_at > :now
"""
DELETE_OFFERS = """
DELETE FROM links
WHERE expires_at <= :now OR (platform = :platform AND user_id = :user_id AND joined_at IS NULL)
"""
INSERT_OFFER = rows.insertion("links", "digest", "platform", "user_id", "scope_id", "address", "expires_at")
CLAIM = """
UPDATE links SET claimed_platform = :platform, claimed_user_id = :user_id, claimed_name = :name,
    claimed_address = :address, agreed_at = NULL, token = NULL, expires_at = :expires_at
WHERE digest = :digest
"""
AGREE = "UPDATE links SET agreed_at = :now, expires_at = :expires_at WHERE digest = :digest"
ASK_OWNER = "UPDATE links SET token = :token, expires_at = :until WHERE digest = :digest"
FOR_OWNER = "SELECT digest FROM links WHERE token = COALESCE(:token, token) AND expires_at > :now ORDER BY id"
"""Those that wait for the owner, or did."""
SERVE_AGAIN = (
    "UPDATE accounts SET removed_at = NULL, is_blocked = 0 WHERE platform = :platform AND user_id = :user_id",
    "UPDATE pairings SET used_at = :now WHERE platform = :platform AND user_id = :user_id AND used_at IS NULL",
)
"""The owner's yes is the latest word, also on somebody who was removed before or waits to be let in."""

WHY_NOT = language_data("links", "core.store")


class Links:
    """`let_in`: the keys of accounts that the settings let in."""

    def __init__(self, database: Database, let_in: Collection[str] = ()) -> None:
        self._database = database
        self._let_in = let_in

    async def offer(self, account: Account, address: Address, scope: Scope, now: datetime) -> str:
        """A code for this account, good once and for ten minutes; its earlier one is void. Refused for the owner."""
        code = new_code()

        def work(connection: Connection) -> None:
            _refuse_owner(connection, account)
            people.add_account(connection, account, None)
            values = _values(_digest(code), now) | rows.values_of(account) | {"address": address}
            connection.execute(DELETE_OFFERS, values)
            connection.execute(INSERT_OFFER, {**values, "scope_id": rows.ensure_scope(connection, scope)})

        await self._database.write(work)
        return code

    async def claim(self, code: str, by: NamedAccount, address: Address, now: datetime) -> Link:
        """The account behind a code is to be one person with `by`. Refused for a wrong code, and for the owner's."""
        values = _values(_digest(code), now) | rows.values_of(by.account) | {"name": by.name, "address": address}

        def work(connection: Connection) -> Link:
            _refuse_owner(connection, by.account)
            row = connection.execute(LINK, values).fetchone()
            if row is None or row["joined_at"] is not None or row["claimed"] not in (None, by.account.key):
                raise Refused(WHY_NOT["wrong_code"])
            offered = rows.account_in(row)
            _refuse_owner(connection, offered)
            if by.account in [named.account for named in _accounts(connection, offered)]:
                raise Refused("That is this very account, or one that is linked with it already.")
            connection.execute(CLAIM, values)
            return _link(connection, values)

        return await self._database.write(work)

    async def agree(self, digest: str, account: Account, now: datetime) -> Link:
        """First who claimed says yes, then who offered: now they are one person, or wait for the owner for as long as
        who asks to be let in. Refused for anybody else."""
        values = _values(digest, now)

        def work(connection: Connection) -> Link:
            row = connection.execute(LINK, values).fetchone()
            claimed = None if row is None else rows.account_of(row["claimed"])
            if claimed is None:
                raise Refused(WHY_NOT["no_link"])
            offered = rows.account_in(row)
            is_last = account == offered and row["agreed_at"] is not None
            if not is_last and account != claimed:
                raise Refused(WHY_NOT["no_link"])
            if row["joined_at"] is None and row["token"] is None:
                _refuse_owner(connection, offered)
                _refuse_owner(connection, claimed)
                connection.execute(AGREE, values)
                if is_last and self._is_let_in(connection, offered) and self._is_let_in(connection, claimed):
                    _join(connection, _link(connection, values), values)
                elif is_last:
                    connection.execute(ASK_OWNER, values | {"token": new_code(), "until": now + people.CODE_LIFE})
            return _link(connection, values)

        return await self._database.write(work)

    async def for_owner(self, now: datetime) -> list[Link]:
        """Links that wait for the owner, oldest first."""
        found = await self._database.read(lambda connection: _for_owner(connection, None, now))
        return [link for link in found if not link.is_joined]

    async def decide(self, token: str, now: datetime, *, is_yes: bool) -> Link | None:
        """The owner's word on a link that waits for it: they are one person now, or it is over. None where no link has
        that token, also of one that was joined and is not to be any more."""

        def work(connection: Connection) -> Link | None:
            (link,) = _for_owner(connection, typed_code(token), now) or (None,)
            if link is None or (link.is_joined and not is_yes):
                return None
            values = _values(link.digest, now)
            if not is_yes:
                connection.execute("DELETE FROM links WHERE digest = :digest", values)
            elif not link.is_joined:
                _join(connection, link, values)
                for side in (link.offered[0], link.claimed[0]):
                    for statement in SERVE_AGAIN:
                        connection.execute(statement, {**rows.values_of(side.account), "now": now})
            return _link(connection, values) if is_yes else link

        return await self._database.write(work)

    async def unlink(self, account: Account) -> Sequence[NamedAccount]:
        """Makes the account a person of its own; returns those it was linked with. Answers under way to any of them are
        begun anew. Refused for the owner's."""

        def work(connection: Connection) -> Sequence[NamedAccount]:
            _refuse_owner(connection, account)
            accounts = _accounts(connection, account)
            if len(accounts) > 1:
                people.move_account(connection, account, people.add_person(connection), None)
                scopes = frozenset(Scope.account(one.account.platform, one.account.user_id) for one in accounts)
                epoch.part(connection, scopes)
            return accounts[1:]

        return await self._database.write(work)

    async def accounts(self, account: Account) -> Sequence[NamedAccount]:
        """The accounts of the person of an account, that one first; empty for one that was never met."""
        return await self._database.read(lambda connection: _accounts(connection, account))

    def _is_let_in(self, connection: Connection, account: Account) -> bool:
        scope = Scope.account(account.platform, account.user_id)
        return people.standing_in(connection, account, scope).is_let_in(account, self._let_in)


def _values(digest: str, now: datetime) -> dict[str, object]:
    return {"digest": digest, "now": now, "expires_at": now + LIFE}


def _refuse_owner(connection: Connection, account: Account) -> None:
    if people.is_owners(connection, account):
        raise Refused(WHY_NOT["owners"])


def _accounts(connection: Connection, account: Account) -> list[NamedAccount]:
    found = connection.execute(people.LINKED, rows.values_of(account))
    return [NamedAccount(account=rows.account_in(row), name=row["name"]) for row in found]


def _join(connection: Connection, link: Link, values: Values) -> None:
    """Moves the accounts of the side that claimed to the person of the side that offered. Refused for the owner's."""
    offered, claimed = link.offered[0].account, link.claimed[0]
    _refuse_owner(connection, offered)
    _refuse_owner(connection, claimed.account)
    person = people.add_account(connection, offered, None)
    people.add_account(connection, claimed.account, claimed.name)
    for one in link.claimed:
        people.move_account(connection, one.account, person, None)
    connection.execute("UPDATE links SET joined_at = :now WHERE digest = :digest", values)


def _for_owner(connection: Connection, token: str | None, now: datetime) -> list[Link]:
    found = connection.execute(FOR_OWNER, {"token": token, "now": now}).fetchall()
    return [_link(connection, _values(row["digest"], now)) for row in found]


def _link(connection: Connection, values: Values) -> Link:
    """A link that was claimed."""
    row = connection.execute(LINK, values).fetchone()
    account = Account(platform=row["claimed_platform"], user_id=row["claimed_user_id"])
    claimed, is_joined = NamedAccount(account=account, name=row["claimed_name"]), row["joined_at"] is not None
    return Link(
        **rows.columns(row, "digest", "token"),
        offered=tuple(_accounts(connection, rows.account_in(row))),
        claimed=(claimed,) if is_joined else tuple(_accounts(connection, account)) or (claimed,),
        address=Address.parse(row["address"]),
        scope=Scope(key=row["scope_key"]),
        claimed_address=Address.parse(row["claimed_address"]),
        is_joined=is_joined,
    )


def _digest(code: str) -> str:
    return hashlib.sha256(typed_code(code).encode("utf-8", "replace")).hexdigest()
