"""Link accounts to one person, and unlink them.

One account asks for a code, which offers the link. Another account sends the code, which claims the
link. Then both accounts confirm the link. If one of them has no access of its own, the owner must
confirm, too. Linking moves no messages. Afterwards, all accounts of the person see the same scopes.
A link can't make an account the owner's; only settings or the command line can.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.errors import Refused
from core.store import rows
from core.store.engine import Connection, Database, Values
from core.store.erasure import epoch
from core.store.ownership import people
from core.store.ownership.pairing import generate_code, normalize_code
from core.types import Account, Address, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedAccount:
    account: Account
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A request to join the accounts of two persons, at any step of its confirmation."""

    # Digest of the code. It identifies the link in a confirmation.
    digest: str
    # All accounts of the person who asked for the code, beginning with the account that asked.
    offering_accounts: tuple[NamedAccount, ...]
    # All accounts of the person who typed the code, beginning with the account that typed it.
    claiming_accounts: tuple[NamedAccount, ...]
    # The chat in which the code was requested.
    address: Address
    scope: Scope
    # The chat in which the code was typed.
    claiming_address: Address
    # The code by which the owner identifies the link. It is set once both sides have confirmed and
    # the owner must decide.
    token: str | None = None
    # Whether the accounts already belong to one person.
    is_joined: bool = False


LINK_LIFETIME = timedelta(minutes=10)
"""How long a code is valid, and how long each of the two accounts has to confirm."""
MAX_WRONG_CODES = 5
"""After this many wrong codes within `LINK_LIFETIME`, an account can't claim a link."""

_SELECT_LINK = """
SELECT links.*, claimed_platform || ':' || claimed_user_id AS claimed, scopes.key AS scope_key
FROM links JOIN scopes ON scopes.id = links.scope_id
WHERE digest = :digest AND expires_at > :now
"""
_DELETE_OLD_OFFERS = """
DELETE FROM links
WHERE expires_at <= :now OR (platform = :platform AND user_id = :user_id AND joined_at IS NULL)
"""
_INSERT_OFFER = rows.insert_statement(
    "links", "digest", "platform", "user_id", "scope_id", "address", "expires_at"
)
_SET_CLAIM = """
UPDATE links SET claimed_platform = :platform, claimed_user_id = :user_id, claimed_name = :name,
    claimed_address = :address, confirmed_at = NULL, token = NULL, expires_at = :expires_at
WHERE digest = :digest
"""
_SET_CONFIRMED = (
    "UPDATE links SET confirmed_at = :now, expires_at = :expires_at WHERE digest = :digest"
)
_SET_TOKEN = "UPDATE links SET token = :token, expires_at = :until WHERE digest = :digest"
_SET_JOINED = "UPDATE links SET joined_at = :now WHERE digest = :digest"
_SELECT_FOR_OWNER = """
SELECT digest FROM links WHERE token = COALESCE(:token, token) AND expires_at > :now ORDER BY id
"""
"""Selects links that wait for the owner's decision or were confirmed by the owner."""
_GIVE_ACCESS = (
    """
    UPDATE accounts SET removed_at = NULL, is_blocked = FALSE
    WHERE platform = :platform AND user_id = :user_id
    """,
    """
    UPDATE pairings SET used_at = :now
    WHERE platform = :platform AND user_id = :user_id AND used_at IS NULL
    """,
)
"""Cancels an earlier removal of an account, and closes its pending request for access."""


class Links:
    """Stores the offers, claims and confirmations of links."""

    def __init__(self, database: Database, listed_accounts: Collection[str] = ()) -> None:
        self._database = database
        # Keys of the accounts to which settings give access.
        self._listed_accounts = listed_accounts
        # When each account typed a wrong code within the last `LINK_LIFETIME`.
        self._wrong_codes: dict[Account, list[datetime]] = {}

    async def offer(self, account: Account, address: Address, scope: Scope, now: datetime) -> str:
        """Create a code with which another account can link to this one.

        The account's earlier codes stop working. Raises Refused if the account is the owner's.
        """
        code = generate_code()

        def store_offer(connection: Connection) -> None:
            """Store the new offer, and delete the account's earlier offers."""
            _refuse_owner(connection, account)
            people.ensure_account(connection, account, None)
            values = {
                **_link_values(_hash_code(code), now),
                **rows.field_values(account),
                "address": address,
                "scope_id": rows.ensure_scope(connection, scope),
            }
            connection.execute(_DELETE_OLD_OFFERS, values)
            connection.execute(_INSERT_OFFER, values)

        await self._database.write(store_offer)
        return code

    async def claim(self, code: str, by: NamedAccount, address: Address, now: datetime) -> Link:
        """Claim the link that another account offers with this code, and return the link.

        Raises Refused if the code is wrong, if the accounts are already linked, or if one of them
        is the owner's. After `MAX_WRONG_CODES` wrong codes, every code is refused for a while.
        """
        values = {
            **_link_values(_hash_code(code), now),
            **rows.field_values(by.account),
            "name": by.name,
            "address": address,
        }

        def store_claim(connection: Connection) -> Link:
            """Store the account that claims the code. Raises Refused if it may not."""
            _refuse_owner(connection, by.account)
            row = connection.execute(_SELECT_LINK, values).fetchone()
            if row is None or row["joined_at"] is not None:
                raise Refused("link_wrong_code")
            if row["claimed"] not in (None, by.account.key):
                raise Refused("link_wrong_code")
            offering = rows.read_account(row)
            _refuse_owner(connection, offering)
            if by.account in [other.account for other in _list_accounts(connection, offering)]:
                raise Refused("link_own_code")
            connection.execute(_SET_CLAIM, values)
            return _load_link(connection, values)

        self._refuse_guesses(by.account, now)
        try:
            return await self._database.write(store_claim)
        except Refused as refusal:
            if refusal.key == "link_wrong_code":
                self._wrong_codes.setdefault(by.account, []).append(now)
            raise

    def _refuse_guesses(self, account: Account, now: datetime) -> None:
        """Raise Refused if an account has typed too many wrong codes."""
        for guesser, times in list(self._wrong_codes.items()):
            recent = [time for time in times if time > now - LINK_LIFETIME]
            if recent:
                self._wrong_codes[guesser] = recent
            else:
                del self._wrong_codes[guesser]
        if len(self._wrong_codes.get(account, ())) >= MAX_WRONG_CODES:
            raise Refused("link_guesses")

    async def confirm(self, digest: str, account: Account, now: datetime) -> Link:
        """Record a confirmation. The claiming account confirms first, then the offering account.

        After both confirmations, the accounts belong to one person, or the link waits for the
        owner. Returns the link. Raises Refused if `account` can't confirm the link now.
        """
        values = _link_values(digest, now)

        def store_confirmation(connection: Connection) -> Link:
            """Store the confirmation, and join the accounts after both have confirmed.

            Raises Refused if the account can't confirm the link now.
            """
            row = connection.execute(_SELECT_LINK, values).fetchone()
            claiming = None if row is None else rows.parse_account(row["claimed"])
            if claiming is None:
                raise Refused("link_expired")
            offering = rows.read_account(row)
            is_second_confirmation = account == offering and row["confirmed_at"] is not None
            if not is_second_confirmation and account != claiming:
                raise Refused("link_expired")
            has_both_confirmations = row["joined_at"] is not None or row["token"] is not None
            if not has_both_confirmations:
                _refuse_owner(connection, offering)
                _refuse_owner(connection, claiming)
                connection.execute(_SET_CONFIRMED, values)
                if is_second_confirmation:
                    self._join_or_ask_owner(connection, offering, claiming, values, now)
            return _load_link(connection, values)

        return await self._database.write(store_confirmation)

    def _join_or_ask_owner(
        self,
        connection: Connection,
        offering: Account,
        claiming: Account,
        values: Values,
        now: datetime,
    ) -> None:
        """Join the accounts if both have access.

        Otherwise store a token for the owner's decision.
        """
        if self._has_access(connection, offering) and self._has_access(connection, claiming):
            _join(connection, _load_link(connection, values), values)
            return
        # The owner may take as long to decide as for a pairing.
        until = now + people.CODE_LIFETIME
        connection.execute(_SET_TOKEN, {**values, "token": generate_code(), "until": until})

    async def list_for_owner(self, now: datetime) -> list[Link]:
        """List the links that wait for the owner, oldest first."""
        links = await self._database.read(lambda connection: _list_links(connection, None, now))
        return [link for link in links if not link.is_joined]

    async def decide(self, token: str, now: datetime, *, is_yes: bool) -> Link | None:
        """Join the two persons of a link if the owner accepts it, or delete the link.

        Returns the link. Returns None if no link has this token, or if the owner rejects a link
        that they have already accepted.
        """

        def store_decision(connection: Connection) -> Link | None:
            """Find the link by its token, and join its persons or delete it.

            Returns None if no link has this token.
            """
            links = _list_links(connection, normalize_code(token), now)
            if not links:
                return None
            link = links[0]
            values = _link_values(link.digest, now)
            if not is_yes:
                if link.is_joined:
                    return None
                connection.execute("DELETE FROM links WHERE digest = :digest", values)
                return link
            if not link.is_joined:
                _join(connection, link, values)
                _give_access(connection, link, now)
            return _load_link(connection, values)

        return await self._database.write(store_decision)

    async def unlink(self, account: Account) -> Sequence[NamedAccount]:
        """Separate an account from its person, and return the person's other accounts.

        The account becomes a person of its own. Running turns that have seen the scope of any of
        these accounts restart. Raises Refused if the account is the owner's.
        """

        def detach(connection: Connection) -> Sequence[NamedAccount]:
            """Move the account to a new person if its person has other accounts."""
            _refuse_owner(connection, account)
            accounts = _list_accounts(connection, account)
            if len(accounts) > 1:
                people.move_account(connection, account, people.add_person(connection), None)
                scopes = frozenset(
                    Scope.account(other.account.platform, other.account.user_id)
                    for other in accounts
                )
                epoch.detach_scopes(connection, scopes)
            return accounts[1:]

        return await self._database.write(detach)

    async def list_accounts(self, account: Account) -> Sequence[NamedAccount]:
        """List all accounts of a person, starting with the given account.

        The list is empty if the account is unknown.
        """
        return await self._database.read(lambda connection: _list_accounts(connection, account))

    def _has_access(self, connection: Connection, account: Account) -> bool:
        scope = Scope.account(account.platform, account.user_id)
        access = people.load_access(connection, account, scope)
        return access.has_access(account, self._listed_accounts)


def _link_values(digest: str, now: datetime) -> dict[str, object]:
    return {"digest": digest, "now": now, "expires_at": now + LINK_LIFETIME}


def _refuse_owner(connection: Connection, account: Account) -> None:
    if people.is_owner_account(connection, account):
        raise Refused("link_owners")


def _list_accounts(connection: Connection, account: Account) -> list[NamedAccount]:
    account_rows = connection.execute(people.SELECT_LINKED_ACCOUNTS, rows.field_values(account))
    return [NamedAccount(account=rows.read_account(row), name=row["name"]) for row in account_rows]


def _join(connection: Connection, link: Link, values: Values) -> None:
    """Move the accounts of the claiming person to the offering person.

    Raises Refused if one of the persons is the owner.
    """
    offering = link.offering_accounts[0].account
    claiming = link.claiming_accounts[0]
    _refuse_owner(connection, offering)
    _refuse_owner(connection, claiming.account)
    person_id = people.ensure_account(connection, offering, None)
    people.ensure_account(connection, claiming.account, claiming.name)
    for named_account in link.claiming_accounts:
        people.move_account(connection, named_account.account, person_id, None)
    connection.execute(_SET_JOINED, values)


def _give_access(connection: Connection, link: Link, now: datetime) -> None:
    """Give access to both accounts of a link that the owner has confirmed."""
    for named_account in (link.offering_accounts[0], link.claiming_accounts[0]):
        values = {**rows.field_values(named_account.account), "now": now}
        for statement in _GIVE_ACCESS:
            connection.execute(statement, values)


def _list_links(connection: Connection, token: str | None, now: datetime) -> list[Link]:
    """List the links that wait for the owner. With `token`, list only the link with that token."""
    link_rows = connection.execute(_SELECT_FOR_OWNER, {"token": token, "now": now}).fetchall()
    return [_load_link(connection, _link_values(row["digest"], now)) for row in link_rows]


def _load_link(connection: Connection, values: Values) -> Link:
    """Load a claimed link with the accounts of both persons.

    If the persons are already joined, `claiming_accounts` has only the account that claimed the
    code.
    """
    row = connection.execute(_SELECT_LINK, values).fetchone()
    is_joined = row["joined_at"] is not None
    claiming_account = Account(platform=row["claimed_platform"], user_id=row["claimed_user_id"])
    claiming = [NamedAccount(account=claiming_account, name=row["claimed_name"])]
    if not is_joined:
        # An account that has never written a message isn't stored yet.
        claiming = _list_accounts(connection, claiming_account) or claiming
    return Link(
        **rows.pick_columns(row, "digest", "token"),
        offering_accounts=tuple(_list_accounts(connection, rows.read_account(row))),
        claiming_accounts=tuple(claiming),
        address=Address.parse(row["address"]),
        scope=Scope(key=row["scope_key"]),
        claiming_address=Address.parse(row["claimed_address"]),
        is_joined=is_joined,
    )


def _hash_code(code: str) -> str:
    return hashlib.sha256(normalize_code(code).encode("utf-8", "replace")).hexdigest()
