"""Group accounts into persons, and decide who has access and which scopes they see.

This module never reads messages. An unknown account sees only its own scope. An invalid scope sees
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.errors import StoreError
from core.store import rows
from core.store.engine import Connection, Database, Row, in_list
from core.store.erasure import epoch
from core.store.incognito import IncognitoRegistry
from core.store.ownership.pairing import (
    Pairing,
    generate_code,
    limit_waiting_message,
    normalize_code,
)
from core.store.visibility import current_epoch, encode_list, scope_parameter, visible
from core.types import LOCAL_SCOPE, Account, Address, ErasureEpoch, Inbound, Scope

TERMINAL = Account(platform="terminal", user_id="local")
"""The account of the terminal, which is always the owner's."""
CODE_LIFETIME = timedelta(hours=1)
MAX_PENDING_PAIRINGS = 3
"""How many strangers of one platform may wait for an approval at the same time."""
PAIRING_PAUSE = timedelta(minutes=10)
"""How long an account must wait before it can ask again, even if its request was answered."""
VIEW_POLL_INTERVAL_S = 0.05
VIEW_TIMEOUT_S = 120.0
"""The time limit for waiting until an erasure finishes. If the erasing process died, maintenance
finishes the erasure sooner."""
_SELECT_OPEN_ENTRIES = f"SELECT id FROM inbox WHERE {in_list('id', 'ids')}"

SELECT_LINKED_ACCOUNTS = """
SELECT linked.platform, linked.user_id, linked.name, linked.admitted_at, linked.removed_at,
    linked.is_blocked
FROM accounts JOIN accounts AS linked ON linked.person_id = accounts.person_id
WHERE accounts.platform = :platform AND accounts.user_id = :user_id
ORDER BY linked.platform <> :platform OR linked.user_id <> :user_id, linked.platform, linked.user_id
"""
"""Selects all accounts of the person who has this account, beginning with this account."""
_SELECT_PERSON = """
SELECT people.id, people.is_owner FROM accounts JOIN people ON people.id = accounts.person_id
WHERE accounts.platform = :platform AND accounts.user_id = :user_id
"""
_SELECT_ZONE = """
SELECT zone FROM preferences
WHERE zone IS NOT NULL AND (account = :account OR account IN (
    SELECT linked.platform || ':' || linked.user_id
    FROM accounts JOIN accounts AS linked ON linked.person_id = accounts.person_id
    WHERE accounts.platform = :platform AND accounts.user_id = :user_id
))
ORDER BY account <> :account, account LIMIT 1
"""
_SELECT_OWNER = "SELECT id FROM people WHERE is_owner ORDER BY id LIMIT 1"
_SELECT_OWNER_OF_GROUP = """
SELECT people.id FROM owner_groups JOIN people ON people.is_owner
WHERE scope_key = :scope AND NOT is_past
"""
_SELECT_SCOPES_OF_PERSON = """
SELECT 'account:' || platform || ':' || user_id AS key FROM accounts WHERE person_id = :person
UNION
SELECT scope_key FROM owner_groups JOIN people ON people.id = :person AND people.is_owner
"""
_SELECT_GROUP_SCOPE = """
SELECT COALESCE((SELECT scope_key FROM group_scopes WHERE key = :scope), :scope) AS key
"""
_MIGRATE_GROUP = (
    """
    INSERT INTO group_scopes (key, scope_key) VALUES (:new, :scope)
    ON CONFLICT (key) DO UPDATE SET scope_key = excluded.scope_key
    """,
    "UPDATE group_scopes SET scope_key = :scope WHERE scope_key = :replaced",
    """
    INSERT INTO owner_groups (scope_key)
    SELECT :scope FROM owner_groups WHERE scope_key = :replaced AND NOT is_past
    ON CONFLICT DO NOTHING
    """,
    "UPDATE owner_groups SET is_past = TRUE WHERE scope_key = :replaced",
)
"""Maps all ids of a group to one scope, which replaces the scope of the new id.

If the replaced scope was the owner's own group, the remaining scope becomes the owner's own, and
the owner still sees the messages in the replaced scope.
"""
_MOVE_TO_ADDRESS = (
    "UPDATE jobs SET address_id = :new WHERE address_id = :old",
    "DELETE FROM incognito_addresses WHERE address_id = :new "
    "AND EXISTS (SELECT 1 FROM incognito_addresses WHERE address_id = :old)",
    "UPDATE incognito_addresses SET address_id = :new WHERE address_id = :old",
)
_SELECT_PRIVATE_CHATS = f"""
SELECT addresses.platform, addresses.chat_id, addresses.thread_id, scopes.key, sessions.scope_id,
    sessions.address_id
FROM sessions JOIN addresses ON addresses.id = sessions.address_id
JOIN scopes ON scopes.id = sessions.scope_id
WHERE {visible()} AND sessions.external_id IS NULL
    AND scopes.key LIKE 'account:' || addresses.platform || ':%'
    AND scopes.key NOT IN (
        SELECT 'account:' || platform || ':' || user_id FROM accounts WHERE removed_at IS NOT NULL
    )
GROUP BY addresses.id, scopes.id, sessions.scope_id, sessions.address_id
ORDER BY addresses.platform = 'terminal', MAX(sessions.last_at) DESC, MAX(sessions.id) DESC
"""
"""Selects private chats, the latest first and the terminal last. Groups, cron sessions and removed
accounts are left out, and so are imports, which may be chats with another person."""
_DETACH_GROUP = (
    "UPDATE group_scopes SET scope_key = :next WHERE scope_key = :scope",
    "INSERT INTO group_scopes (key, scope_key) VALUES (:scope, :next)",
    "UPDATE owner_groups SET is_past = TRUE WHERE scope_key = :scope",
    "DELETE FROM actions WHERE scope_id = :id",
    """
    UPDATE jobs SET scope_id = :scope_id, address_id = :address_id
    WHERE scope_id = :id AND ended_at IS NULL
    """,
    f"""
    UPDATE outbox SET message_id = NULL, reply_to = NULL, posted = '[]',
        address = (SELECT {rows.CONVERSATION_KEY} FROM addresses WHERE id = :address_id)
    WHERE done_at IS NULL AND dead_at IS NULL AND payload IS NOT NULL AND address IN (
        SELECT {rows.CONVERSATION_KEY}
        FROM sessions JOIN addresses ON addresses.id = sessions.address_id
        WHERE sessions.scope_id = :id AND sessions.external_id IS NULL
    )
    """,
)
"""Gives a group a new scope, e.g. ``room:telegram:-5#2``. The group's jobs and undelivered answers
move to the owner's private chat."""
_WHERE_ACCOUNT = "WHERE platform = :platform AND user_id = :user_id"
_INSERT_ACCOUNT = """
INSERT INTO accounts (platform, user_id, person_id, name)
VALUES (:platform, :user_id, :person, COALESCE(:name, ''))
"""
# An account that becomes the owner's (`:owner_source` isn't NULL) is no longer removed. The value
# 'revoked' stays until the account becomes the owner's again.
_MOVE_ACCOUNT = f"""
UPDATE accounts SET person_id = :person,
    removed_at = CASE WHEN :owner_source IS NULL THEN removed_at END,
    owner_source = CASE owner_source WHEN 'revoked' THEN COALESCE(:owner_source, 'revoked')
        ELSE :owner_source END
{_WHERE_ACCOUNT}
"""
_APPROVE_ACCOUNT = f"""
UPDATE accounts SET admitted_at = :now, admitted_by = :by, removed_at = NULL, is_blocked = FALSE
{_WHERE_ACCOUNT}
"""
# All accounts. `why` is the reason for each account's access or removal, and `seen_at` is the time
# of its last message in a private chat.
_SELECT_ALL_ACCOUNTS = f"""
SELECT accounts.platform, user_id, name, person_id, COALESCE(removed_at, admitted_at) AS at,
    CASE
        WHEN removed_at IS NOT NULL THEN CASE WHEN is_blocked THEN 'blocked' ELSE 'removed' END
        WHEN is_owner THEN owner_source
        WHEN {in_list("accounts.platform || ':' || user_id", "listed")} THEN 'listed'
        WHEN admitted_at IS NOT NULL THEN COALESCE(admitted_by, 'code')
        ELSE ''
    END AS why,
    (
        SELECT MAX(sessions.last_at) FROM scopes JOIN sessions ON sessions.scope_id = scopes.id
        JOIN addresses ON addresses.id = sessions.address_id
            AND addresses.platform = accounts.platform
        WHERE scopes.key = 'account:' || accounts.platform || ':' || accounts.user_id
            AND sessions.external_id IS NULL
    ) AS seen_at
FROM accounts JOIN people ON people.id = person_id
ORDER BY is_owner DESC, person_id, accounts.platform, user_id
"""
_SELECT_APPROVED_PAIRINGS = """
SELECT * FROM pairings WHERE used_at IS NOT NULL AND inbound IS NOT NULL ORDER BY used_at
"""
_SELECT_PENDING_PAIRINGS = """
SELECT * FROM pairings WHERE used_at IS NULL AND expires_at > :now ORDER BY created_at, code
"""
_USE_PAIRING = """
UPDATE pairings SET used_at = :now
WHERE code = :code AND used_at IS NULL AND expires_at > :now RETURNING *
"""
# Inserts nothing if the account has a valid code or asked a moment ago, or if too many requests of
# its platform wait.
_INSERT_PAIRING = """
INSERT INTO pairings (code, platform, user_id, name, created_at, expires_at, inbound)
SELECT :code, :platform, :user_id, :name, :now, :expires_at, :inbound
WHERE NOT EXISTS (
    SELECT 1 FROM pairings
    WHERE platform = :platform AND user_id = :user_id
        AND (expires_at > :now OR created_at > :pause_began_at)
) AND (
    SELECT COUNT(*) FROM pairings
    WHERE platform = :platform AND used_at IS NULL AND expires_at > :now
) < :max_pending
"""
_SET_WAITING_MESSAGE = f"""
UPDATE pairings SET inbound = :inbound
{_WHERE_ACCOUNT} AND expires_at > :now AND json_extract(inbound, '$.text') = ''
"""
"""Stores the stranger's message in place of the command that started the pairing. The command is
stored without text."""
_AMEND_WAITING_MESSAGE = """
UPDATE pairings SET inbound = :inbound WHERE (:platform, :chat_id, :message_id) = (
    platform, json_extract(inbound, '$.address.chat_id'), json_extract(inbound, '$.message_id')
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAccess:
    """The facts that decide whether Mneme answers an account in a chat."""

    scope: Scope
    # All scopes that are visible in the chat.
    scopes: frozenset[Scope]
    # The scopes of all accounts of the same person.
    accounts: frozenset[Scope]
    is_owner: bool
    # Whether one of the person's accounts was approved by pairing.
    is_approved: bool
    is_removed: bool  # See `Removals`.
    is_blocked: bool

    @property
    def is_owners_group(self) -> bool:
        """Whether the chat is in `owner.rooms`: only the owner uses it, with all their scopes."""
        return self.scope.is_group and self.scopes != {self.scope}

    def has_access(self, account: Account, listed: Collection[str]) -> bool:
        """Return whether Mneme answers the account.

        The owner always has access. Any other account must not be removed, and the account itself
        or a linked one must be approved or `listed` in settings.
        """
        if self.is_owner:
            return True
        if self.is_removed:
            return False
        keys = {scope.key.removeprefix("account:") for scope in self.accounts} | {account.key}
        return self.is_approved or any(key in listed for key in keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAccount:
    """An account that has written at least once, or that settings name."""

    account: Account
    name: str
    person_id: int
    # Why the account has access (settings, cli, chat, code or listed) or why it lost access
    # (removed or blocked). Empty if the account never had access.
    why: str
    # When the account was approved or removed.
    at: datetime | None
    # When the account last wrote in a private chat.
    seen_at: datetime | None


def add_person(connection: Connection, is_owner: bool = False) -> int:
    """Store a new person without accounts and return the person's id."""
    statement = rows.insert_statement("people", "is_owner")
    return rows.insert(connection, statement, {"is_owner": is_owner})


def ensure_account(connection: Connection, account: Account, name: str | None) -> int:
    """Store an account, update its name if one is given, and return its person's id.

    A new account becomes a person of its own.
    """
    values = {**rows.field_values(account), "name": name}
    row = connection.execute(_SELECT_PERSON, values).fetchone()
    if row is None:
        person_id = add_person(connection)
        connection.execute(_INSERT_ACCOUNT, {**values, "person": person_id})
        return person_id
    if name is not None:
        connection.execute(f"UPDATE accounts SET name = :name {_WHERE_ACCOUNT}", values)
    return int(row["id"])


def move_account(
    connection: Connection, account: Account, person_id: int, owner_source: str | None
) -> None:
    """Move an account to another person, and delete persons that have no accounts left.

    `owner_source` records why the account is the owner's: ``settings`` or ``cli``. Pass ``revoked``
    for an account that the owner loses, and None for accounts of other people. A stored ``revoked``
    stays until the account becomes the owner's again.
    """
    values = {**rows.field_values(account), "person": person_id, "owner_source": owner_source}
    connection.execute(_MOVE_ACCOUNT, values)
    connection.execute(
        "DELETE FROM people WHERE NOT is_owner AND id NOT IN (SELECT person_id FROM accounts)"
    )


def is_owner_account(connection: Connection, account: Account) -> bool:
    row = connection.execute(_SELECT_PERSON, rows.field_values(account)).fetchone()
    return account == TERMINAL or (row is not None and bool(row["is_owner"]))


def load_zone_name(connection: Connection, account: Account) -> str:
    """Return the time zone that a person has set, as an IANA name, or "" if they have set none.

    The zone that was set with this account comes before that of the person's other accounts.
    """
    values = {**rows.field_values(account), "account": account}
    row = connection.execute(_SELECT_ZONE, values).fetchone()
    return "" if row is None else str(row["zone"])


def current_group_scope(connection: Connection, scope: Scope) -> Scope:
    """Return the current scope of a group, given the scope of any of its ids.

    The scope changes if the group stops being the owner's own. The scope of an account is returned
    unchanged.
    """
    row = connection.execute(_SELECT_GROUP_SCOPE, {"scope": scope}).fetchone()
    return Scope(key=row["key"])


def load_visible_scopes(connection: Connection, scope: Scope) -> frozenset[Scope]:
    """Return all scopes that are visible in a chat with this scope.

    - An account sees the scopes of all accounts of its person. The owner's accounts also see the
      groups that are or were the owner's own.
    - A group sees its current scope. A group that is currently the owner's own sees what the owner
      sees.
    - An invalid scope sees nothing.
    """
    # A key looks like "account:telegram:42" or "room:telegram:-5".
    kind, _, platform_and_id = scope.key.partition(":")
    platform, _, user_id = platform_and_id.partition(":")
    if kind == "room":
        scope = current_group_scope(connection, scope)
        person = connection.execute(_SELECT_OWNER_OF_GROUP, {"scope": scope}).fetchone()
    elif kind == "account" and platform and user_id:
        values = {"platform": platform, "user_id": user_id}
        person = connection.execute(_SELECT_PERSON, values).fetchone()
    else:
        return frozenset()
    if person is None:
        return frozenset((scope,))
    scope_rows = connection.execute(_SELECT_SCOPES_OF_PERSON, {"person": person["id"]})
    return frozenset(Scope(key=row["key"]) for row in scope_rows)


def load_access(connection: Connection, account: Account, scope: Scope) -> AccountAccess:
    """Load the facts that decide whether Mneme answers an account in a chat with this scope."""
    account_rows = connection.execute(SELECT_LINKED_ACCOUNTS, rows.field_values(account)).fetchall()
    # The first row is the account itself, if the account is stored.
    is_removed = bool(account_rows) and account_rows[0]["removed_at"] is not None
    return AccountAccess(
        scope=current_group_scope(connection, scope),
        scopes=load_visible_scopes(connection, scope),
        accounts=frozenset(Scope.account(row["platform"], row["user_id"]) for row in account_rows),
        is_owner=is_owner_account(connection, account),
        is_approved=any(row["admitted_at"] is not None for row in account_rows),
        is_removed=is_removed,
        is_blocked=is_removed and bool(account_rows[0]["is_blocked"]),
    )


class People:
    """Stores accounts, persons, pairing requests and groups in state.db."""

    def __init__(self, database: Database, incognito: IncognitoRegistry | None = None) -> None:
        self._database = database
        self._incognito = incognito

    async def set_owner(self, accounts: Sequence[Account], groups: Sequence[Scope]) -> None:
        """Make exactly these accounts and groups the owner's.

        The terminal, and accounts that were approved as owner at the command line, stay the
        owner's. An account that is no longer listed becomes a person of its own. A group that is no
        longer listed gets a new scope, and only the owner still sees its earlier messages. Only
        differences are written, because every command calls this at its start, even while a gateway
        runs.
        """

        def write(connection: Connection) -> None:
            _set_owner_accounts(connection, accounts)
            _set_owner_groups(connection, groups)

        await self._database.write(write)

    async def load_visible_scopes(self, scope: Scope) -> frozenset[Scope]:
        """Return all scopes that are visible in a chat with this scope."""
        return await self._database.read(lambda connection: load_visible_scopes(connection, scope))

    async def list_private_chats(self, scope: Scope) -> list[tuple[Address, Scope]]:
        """List the private chats that are visible in `scope`, each with its own scope.

        The chat with the latest message comes first, and the terminal last.
        """
        scopes = await self.load_visible_scopes(scope)
        values = {"scopes": scope_parameter(scopes)}
        chats = await self._database.fetch_all(_SELECT_PRIVATE_CHATS, values)
        return [(rows.read_address(row), Scope(key=row["key"])) for row in chats]

    async def load_access(self, account: Account, scope: Scope) -> AccountAccess:
        """Load the facts that decide whether Mneme answers an account in this chat."""
        return await self._database.read_inline(
            lambda connection: load_access(connection, account, scope)
        )

    async def record_name(self, account: Account, name: str) -> None:
        """Store an account with its current name."""
        await self._database.write(lambda connection: ensure_account(connection, account, name))

    async def request_pairing(
        self, account: Account, name: str, now: datetime, inbound: Inbound | None = None
    ) -> Pairing | None:
        """Store a pairing request with a new code for the stranger who wrote `inbound`.

        Returns None if the account has a valid code, if it asked a moment ago, or if too many
        requests of its platform wait. If the stored request contains only a command, `inbound`
        replaces it.
        """
        waiting_message = None if inbound is None else limit_waiting_message(inbound)
        pairing = Pairing(
            code=generate_code(),
            account=account,
            name=rows.clean(name),
            expires_at=now + CODE_LIFETIME,
            inbound=waiting_message,
        )
        values = {
            **rows.field_values(account),
            "code": pairing.code,
            "name": pairing.name,
            "now": now,
            "expires_at": pairing.expires_at,
            "inbound": None if waiting_message is None else rows.dump_inbound(waiting_message),
            "pause_began_at": now - PAIRING_PAUSE,
            "max_pending": MAX_PENDING_PAIRINGS,
        }

        def write(connection: Connection) -> Pairing | None:
            if connection.execute(_INSERT_PAIRING, values).rowcount:
                return pairing
            connection.execute(_SET_WAITING_MESSAGE, values)
            return None

        return await self._database.write(write)

    async def amend_waiting(self, inbound: Inbound) -> None:
        """Apply an edit or deletion to the message in a stranger's pairing request."""
        values = {
            **rows.address_values(inbound.address),
            "message_id": inbound.message_id,
            "inbound": rows.dump_inbound(limit_waiting_message(inbound)),
        }
        await self._database.execute(_AMEND_WAITING_MESSAGE, values)

    async def list_pending(self, now: datetime) -> list[Pairing]:
        """List the requests that can be approved, oldest first."""
        pairings = await self._database.fetch_all(_SELECT_PENDING_PAIRINGS, {"now": now})
        return [_read_pairing(row) for row in pairings]

    async def approve(
        self, code: str, now: datetime, is_owner: bool = False, by: str = "chat"
    ) -> Pairing | None:
        """Approve the account with this code, and return its pairing request.

        Returns None if the code is wrong, used or expired. `is_owner` makes the account the
        owner's, which only the command line may do. `by` is ``chat`` or ``cli``.
        """

        def use_code(connection: Connection) -> Pairing | None:
            """Mark the code as used and approve its account. Returns None if the code is wrong."""
            values = {"code": normalize_code(code), "now": now}
            used_rows = connection.execute(_USE_PAIRING, values).fetchall()
            if not used_rows:
                return None
            pairing = _read_pairing(used_rows[0])
            _give_access(connection, pairing.account, pairing.name, now, by)
            if is_owner:
                move_account(connection, pairing.account, _ensure_owner(connection), "cli")
            return pairing

        return await self._database.write(use_code)

    async def give_access(self, account: Account, now: datetime, by: str) -> None:
        """Give access to an account that the owner names, also after it was removed or blocked.

        `by` says how, such as ``page``. The key of its text is in the table `[PEOPLE_WHY]`.
        """
        await self._database.write(
            lambda connection: _give_access(connection, account, None, now, by)
        )

    async def list_accounts(self, listed: Collection[str]) -> list[KnownAccount]:
        """List all known accounts, grouped by person, starting with the owner's.

        `listed` has the keys of the accounts that settings give access to.
        """
        values = {"listed": encode_list(listed)}
        return [
            KnownAccount(**rows.read_fields(row, KnownAccount), account=rows.read_account(row))
            for row in await self._database.fetch_all(_SELECT_ALL_ACCOUNTS, values)
        ]

    async def list_approved(self) -> list[Pairing]:
        """List the approved requests whose message isn't answered yet, oldest first."""
        pairings = await self._database.fetch_all(_SELECT_APPROVED_PAIRINGS)
        return [_read_pairing(row) for row in pairings]

    async def drop_pairing(self, pairing: Pairing) -> None:
        """Delete a pairing request, for example after its message was answered."""
        statement = "DELETE FROM pairings WHERE code = :code"
        await self._database.execute(statement, {"code": pairing.code})

    async def migrate_group(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """Give a group a new id, with the scope of the old id.

        Jobs and the incognito state move to the new id. Stored messages keep their old address.
        """
        old = Scope.group(platform, old_chat_id)
        new = Scope.group(platform, new_chat_id)

        def point_to_scope(connection: Connection) -> None:
            """Map the new id to the old id's scope, and move jobs and incognito marks."""
            scope = current_group_scope(connection, old)
            new_id_scope = current_group_scope(connection, new)
            if scope == new_id_scope:
                return
            values = {"new": new, "scope": scope, "replaced": new_id_scope}
            for statement in _MIGRATE_GROUP:
                connection.execute(statement, values)
            new_address = Address(platform=platform, chat_id=new_chat_id)
            old_address = Address(platform=platform, chat_id=old_chat_id)
            ids = {
                "new": rows.ensure_address(connection, new_address),
                "old": rows.find_address(connection, old_address),
            }
            for statement in _MOVE_TO_ADDRESS:
                connection.execute(statement, ids)

        if self._incognito is not None:
            self._incognito.migrate_group(platform, old_chat_id, new_chat_id)
        await self._database.write(point_to_scope)


def _give_access(
    connection: Connection, account: Account, name: str | None, now: datetime, by: str
) -> None:
    ensure_account(connection, account, name)
    connection.execute(_APPROVE_ACCOUNT, {**rows.field_values(account), "now": now, "by": by})


def _ensure_owner(connection: Connection) -> int:
    """Return the id of the owner's person, and create the person if there is none."""
    row = connection.execute(_SELECT_OWNER).fetchone()
    return add_person(connection, is_owner=True) if row is None else int(row["id"])


def _set_owner_accounts(connection: Connection, accounts: Sequence[Account]) -> None:
    """Make these accounts and the terminal the owner's; see `People.set_owner`."""
    owner_id = _ensure_owner(connection)
    owner_accounts = list(dict.fromkeys((TERMINAL, *accounts)))
    statement = "SELECT * FROM accounts WHERE person_id = :owner OR owner_source = 'revoked'"
    owner_rows = connection.execute(statement, {"owner": owner_id}).fetchall()
    owner_by_account = {rows.read_account(row): row["owner_source"] for row in owner_rows}

    for account, owner_source in owner_by_account.items():
        if account in owner_accounts:
            continue
        if owner_source == "revoked":
            # Settings no longer list this account. If they list it again, it becomes the owner's
            # again.
            connection.execute(
                f"UPDATE accounts SET owner_source = NULL {_WHERE_ACCOUNT}",
                rows.field_values(account),
            )
        elif owner_source != "cli":
            move_account(connection, account, add_person(connection), None)
    # A revoked account is also in `owner_by_account`, so it isn't added while it is still listed.
    for account in owner_accounts:
        if account not in owner_by_account:
            ensure_account(connection, account, None)
            move_account(connection, account, owner_id, "settings")


def _set_owner_groups(connection: Connection, groups: Sequence[Scope]) -> None:
    """Make exactly these groups the owner's own; see `People.set_owner`."""
    owner_groups = {current_group_scope(connection, group) for group in groups}
    statement = "SELECT scope_key AS key FROM owner_groups WHERE NOT is_past"
    stored_groups = {Scope(key=row["key"]) for row in connection.execute(statement).fetchall()}
    for group in stored_groups - owner_groups:
        _detach_group(connection, group)
    new_rows = [{"scope_key": group} for group in owner_groups - stored_groups]
    connection.executemany(rows.insert_statement("owner_groups", "scope_key"), new_rows)


def _detach_group(connection: Connection, scope: Scope) -> None:
    """Give a group that is no longer the owner's own a new scope, e.g. ``room:telegram:-5#2``.

    The owner still sees the previous scope. Running turns that have seen it restart. The group's
    jobs and undelivered answers move to the owner's latest private chat, or to the terminal.
    """
    owner_scopes = {"scopes": scope_parameter(load_visible_scopes(connection, LOCAL_SCOPE))}
    private_chat = connection.execute(_SELECT_PRIVATE_CHATS, owner_scopes).fetchone()
    if private_chat is not None:
        target = rows.pick_columns(private_chat, "scope_id", "address_id")
    else:
        terminal = Address(platform=TERMINAL.platform, chat_id=TERMINAL.user_id)
        target = {
            "scope_id": rows.ensure_scope(connection, LOCAL_SCOPE),
            "address_id": rows.ensure_address(connection, terminal),
        }
    # The scope after "room:telegram:-5" is "room:telegram:-5#2", and the next one ends with "#3".
    first_key, _, generation = scope.key.partition("#")
    values = {
        **target,
        "scope": scope,
        "next": Scope(key=f"{first_key}#{int(generation or 1) + 1}"),
        "id": rows.ensure_scope(connection, scope),
    }
    for statement in _DETACH_GROUP:
        connection.execute(statement, values)
    epoch.detach_scopes(connection, frozenset((scope,)))


def _read_pairing(row: Row) -> Pairing:
    return Pairing(**rows.read_fields(row, Pairing), account=rows.read_account(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The scopes that a turn or job may see at a given epoch."""

    # The scope of the chat. A group's scope is its current one.
    scope: Scope
    # All scopes that are visible in the chat.
    scopes: frozenset[Scope]
    is_owner: bool
    # The time zone that the person has set, as an IANA name, or "".
    zone: str
    # Ids of the inbox entries of this turn that are still open.
    open_entry_ids: frozenset[int]
    epoch: ErasureEpoch


class EpochGuard:
    """Loads views, and clears caches after any process has erased data."""

    def __init__(
        self, database: Database, cache_invalidators: Sequence[Callable[[], None]] = ()
    ) -> None:
        self._database = database
        # Each function clears a cache of rows from the store.
        self._cache_invalidators = cache_invalidators
        self._last_epoch_number: int | None = None

    async def view(
        self, scope: Scope, account: Account | None = None, entry_ids: Sequence[int] = ()
    ) -> View:
        """Wait until no erasure runs in the scopes that `scope` sees, and return the view.

        If data was erased since the last call, all caches are cleared first. Raises StoreError if
        an erasure takes longer than `VIEW_TIMEOUT_S`.
        """

        def load(connection: Connection) -> View | None:
            return _load_view(connection, scope, account, entry_ids)

        loop = asyncio.get_running_loop()
        deadline = loop.time() + VIEW_TIMEOUT_S
        while (view := await self._database.read_inline(load)) is None:
            if loop.time() > deadline:
                raise StoreError("still_forgetting")
            await asyncio.sleep(VIEW_POLL_INTERVAL_S)

        if self._last_epoch_number not in (None, view.epoch.number):
            for invalidate in self._cache_invalidators:
                invalidate()
        self._last_epoch_number = view.epoch.number
        return view


def _load_view(
    connection: Connection, scope: Scope, account: Account | None, entry_ids: Sequence[int]
) -> View | None:
    """Return the current view, or None while an erasure runs in a scope that `scope` sees."""
    scopes = load_visible_scopes(connection, scope)
    erasure_epoch = current_epoch(connection, scope_parameter(scopes))
    if erasure_epoch is None:
        return None
    open_entries = connection.execute(_SELECT_OPEN_ENTRIES, {"ids": encode_list(entry_ids)})
    return View(
        scope=current_group_scope(connection, scope) if scope.is_group else scope,
        scopes=scopes,
        is_owner=account is not None and is_owner_account(connection, account),
        zone="" if account is None else load_zone_name(connection, scope.speaker(account.user_id)),
        open_entry_ids=frozenset(row["id"] for row in open_entries),
        epoch=erasure_epoch,
    )
