"""Persons as sets of accounts: who is the owner, who was admitted, and what may be seen where.

Decides scopes, never reads messages. What is unknown sees its own scope only, and what is no scope nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.store import rows
from core.store.rows import Connection, Row
from core.store.sqlite.schema import in_list, list_value
from core.types import LOCAL, Account, Address, Inbound, Scope

if TYPE_CHECKING:
    from core.store.incognito import IncognitoRegistry
    from core.store.sqlite.database import Database

TERMINAL = Account(platform="terminal", user_id="local")
"""Always the owner's."""
ALPHABET = "ACDEFGHJKMNPQRTUVWXYZ234679"
"""Letters and digits that are not mistaken for each other."""
CODE_CHARS = 8
CODE_LIFE = timedelta(hours=1)
PENDING = 20
WAITING_CHARS = 4096
"""Of the one message that is kept of whoever asks to be let in."""

LINKED = """
SELECT linked.platform, linked.user_id, linked.name, linked.admitted_at, linked.removed_at, linked.is_blocked
FROM accounts JOIN accounts AS linked ON linked.person_id = accounts.person_id
WHERE accounts.platform = :platform AND accounts.user_id = :user_id
ORDER BY linked.platform <> :platform OR linked.user_id <> :user_id, linked.platform, linked.user_id
"""
PERSON = """
SELECT people.id, people.is_owner FROM accounts JOIN people ON people.id = accounts.person_id
WHERE accounts.platform = :platform AND accounts.user_id = :user_id
"""
OWNER = "SELECT id FROM people WHERE is_owner = 1 ORDER BY id LIMIT 1"
OWNER_OF_ROOM = """
SELECT people.id FROM own_rooms JOIN people ON people.is_owner = 1 WHERE scope_key = :scope AND NOT is_past
"""
SCOPES = """
SELECT 'account:' || platform || ':' || user_id AS key FROM accounts WHERE person_id = :person
UNION SELECT scope_key FROM own_rooms JOIN people ON people.id = :person AND people.is_owner = 1
"""
ROOM_SCOPE = "SELECT COALESCE((SELECT scope_key FROM rooms WHERE key = :scope), :scope) AS key"
MOVE_ROOM = (
    """
    INSERT INTO rooms (key, scope_key) VALUES (:new, :scope)
    ON CONFLICT (key) DO UPDATE SET scope_key = excluded.scope_key
    """,
    "UPDATE rooms SET scope_key = :scope WHERE scope_key = :left",
    """
    INSERT INTO own_rooms (scope_key) SELECT :scope FROM own_rooms WHERE scope_key = :left AND NOT is_past
    ON CONFLICT DO NOTHING
    """,
    "UPDATE own_rooms SET is_past = 1 WHERE scope_key = :left",
)
"""Every id of a room leads to its scope at once; what the owner has said under the new id before stays the owner's."""
PRIVATE = f"""
SELECT addresses.platform, addresses.chat_id, addresses.thread_id, scopes.key, sessions.scope_id, sessions.address_id
FROM sessions JOIN addresses ON addresses.id = sessions.address_id JOIN scopes ON scopes.id = sessions.scope_id
WHERE {rows.visible()} AND sessions.external_id IS NULL AND scopes.key LIKE 'account:' || addresses.platform || ':%'
    AND scopes.key NOT IN (SELECT 'account:' || platform || ':' || user_id FROM accounts WHERE removed_at NOT NULL)
GROUP BY addresses.id, scopes.id
ORDER BY addresses.platform = 'terminal', MAX(sessions.last_at) DESC, MAX(sessions.id) DESC
"""
"""What was imported may have been said to somebody else; the rest is rooms, what was planned, and who was removed."""
PART_ROOM = (
    "UPDATE rooms SET scope_key = :next WHERE scope_key = :scope",
    "INSERT INTO rooms (key, scope_key) VALUES (:scope, :next)",
    "UPDATE own_rooms SET is_past = 1 WHERE scope_key = :scope",
    "DELETE FROM actions WHERE scope_id = :id",
    "UPDATE jobs SET scope_id = :scope_id, address_id = :address_id WHERE scope_id = :id AND ended_at IS NULL",
    f"""
    UPDATE outbox SET message_id = NULL, reply_to = NULL, posted = '[]',
        lane = (SELECT {rows.LANE} FROM addresses WHERE id = :address_id)
    WHERE done_at IS NULL AND dead_at IS NULL AND payload IS NOT NULL AND lane IN (
        SELECT {rows.LANE} FROM sessions JOIN addresses ON addresses.id = sessions.address_id
        WHERE sessions.scope_id = :id AND sessions.external_id IS NULL
    )
    """,
)
"""What is planned there, and what has yet to arrive there, goes to where the owner talks in private. Work that began in
this generation finds the next one."""
_OF_ACCOUNT = "WHERE platform = :platform AND user_id = :user_id"
INSERT_ACCOUNT = """
INSERT INTO accounts (platform, user_id, person_id, name) VALUES (:platform, :user_id, :person, COALESCE(:name, ''))
"""
MOVE_ACCOUNT = """
UPDATE accounts SET person_id = :person, removed_at = CASE WHEN :owner_by IS NULL THEN removed_at END,
    owner_by = CASE owner_by WHEN 'revoked' THEN COALESCE(:owner_by, 'revoked') ELSE :owner_by END
"""
ADMIT = "UPDATE accounts SET admitted_at = :now, admitted_by = :by, removed_at = NULL, is_blocked = 0"
KNOWN = f"""
SELECT accounts.platform, user_id, name, person_id, COALESCE(removed_at, admitted_at) AS at,
    CASE WHEN removed_at NOT NULL THEN CASE is_blocked WHEN 1 THEN 'blocked' ELSE 'removed' END
        WHEN is_owner THEN owner_by WHEN {in_list("accounts.platform || ':' || user_id", "listed")} THEN 'listed'
        WHEN admitted_at NOT NULL THEN COALESCE(admitted_by, 'code') ELSE '' END AS why, (
        SELECT MAX(sessions.last_at) FROM scopes JOIN sessions ON sessions.scope_id = scopes.id
        JOIN addresses ON addresses.id = sessions.address_id AND addresses.platform = accounts.platform
        WHERE scopes.key = 'account:' || accounts.platform || ':' || accounts.user_id AND sessions.external_id IS NULL
    ) AS seen_at
FROM accounts JOIN people ON people.id = person_id ORDER BY is_owner DESC, person_id, accounts.platform, user_id
"""
ADMITTED = "SELECT * FROM pairings WHERE used_at IS NOT NULL AND inbound IS NOT NULL ORDER BY used_at"
PENDING_PAIRINGS = "SELECT * FROM pairings WHERE used_at IS NULL AND expires_at > :now ORDER BY created_at, code"
USE_PAIRING = """
UPDATE pairings SET used_at = :now WHERE code = :code AND used_at IS NULL AND expires_at > :now RETURNING *
"""
INSERT_PAIRING = """
INSERT INTO pairings (code, platform, user_id, name, created_at, expires_at, inbound)
SELECT :code, :platform, :user_id, :name, :now, :expires_at, :inbound
WHERE NOT EXISTS (SELECT 1 FROM pairings WHERE platform = :platform AND user_id = :user_id AND expires_at > :now)
AND (SELECT COUNT(*) FROM pairings WHERE used_at IS NULL AND expires_at > :now) < :pending
"""
SET_WAITING = f"""
UPDATE pairings SET inbound = :inbound {_OF_ACCOUNT} AND expires_at > :now AND json_extract(inbound, '$.text') = ''
"""
AMEND_WAITING = """
UPDATE pairings SET inbound = :inbound WHERE (:platform, :chat_id, :message_id)
    = (platform, json_extract(inbound, '$.address.chat_id'), json_extract(inbound, '$.message_id'))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A stranger's request to be admitted. The owner approves `code` after seeing platform, name and id. `inbound`:
    their first message that is no command, to be answered then; before there is one, any, without its text."""

    code: str
    account: Account
    name: str
    expires_at: datetime
    inbound: Inbound | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of an account in a place: the `scope` of the place and what may be seen there, and the `accounts` of
    the person, of whom one `is_admitted` if it was approved by pairing. `is_removed`, `is_blocked`: see `Removals`."""

    scope: Scope
    scopes: frozenset[Scope]
    accounts: frozenset[Scope]
    is_owner: bool
    is_admitted: bool
    is_removed: bool
    is_blocked: bool

    def is_let_in(self, account: Account, listed: Collection[str]) -> bool:
        """By approval or as one of the people `listed` in settings; whoever is let in is with all linked accounts."""
        accounts = (account.key, *(scope.key.removeprefix("account:") for scope in self.accounts))
        is_known = self.is_admitted or any(key in listed for key in accounts)
        return self.is_owner or (is_known and not self.is_removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAccount:
    """`why`: what let it in or out (see `KNOWN`), and when; `seen_at`: when it last talked in private."""

    account: Account
    name: str
    person_id: int
    why: str
    at: datetime | None
    seen_at: datetime | None


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))


def typed_code(code: str) -> str:
    """A code in capitals, without the spaces and dashes it was typed with."""
    return "".join(sign for sign in code[:100].upper() if sign.isalnum())


def add_person(connection: Connection, is_owner: bool = False) -> int:
    return rows.insert(connection, rows.insertion("people", "is_owner"), {"is_owner": is_owner})


def add_account(connection: Connection, account: Account, name: str | None) -> int:
    """Makes the account a person of its own when it is new; sets its name when one is given. The person's id."""
    values = {**rows.values_of(account), "name": name}
    row = connection.execute(PERSON, values).fetchone()
    person = add_person(connection) if row is None else int(row["id"])
    if row is None:
        connection.execute(INSERT_ACCOUNT, {**values, "person": person})
    elif name is not None:
        connection.execute(f"UPDATE accounts SET name = :name {_OF_ACCOUNT}", values)
    return person


def move_account(connection: Connection, account: Account, person_id: int, owner_by: str | None) -> None:
    """Moves an account to a person; `owner_by`: what made it the owner's, settings, cli or nothing. One that was
    `revoked` stays so until it is the owner's again."""
    values = {**rows.values_of(account), "person": person_id, "owner_by": owner_by}
    connection.execute(f"{MOVE_ACCOUNT} {_OF_ACCOUNT}", values)
    connection.execute("DELETE FROM people WHERE is_owner = 0 AND id NOT IN (SELECT person_id FROM accounts)")


def is_owners(connection: Connection, account: Account) -> bool:
    row = connection.execute(PERSON, rows.values_of(account)).fetchone()
    return account == TERMINAL or (row is not None and bool(row["is_owner"]))


class People:
    """Accounts, persons, pairings and rooms in state.db."""

    def __init__(self, database: Database, incognito: IncognitoRegistry | None = None) -> None:
        self._database = database
        self._incognito = incognito

    async def set_owner(self, accounts: Sequence[Account], rooms: Sequence[Scope]) -> None:
        """Makes exactly these accounts, the terminal, and those approved as owner at the command line the owner's, and
        exactly these rooms the owner's own; an account no longer listed becomes a person of its own. What was said in a
        room no longer listed stays the owner's: the room begins with a new scope. Writes only what differs: every
        command line begins with this, beside a running gateway."""

        def work(connection: Connection) -> None:
            owner = _owner(connection)
            listed = dict.fromkeys((TERMINAL, *accounts))
            theirs = "SELECT * FROM accounts WHERE person_id = :owner OR owner_by = 'revoked'"
            found = connection.execute(theirs, {"owner": owner}).fetchall()
            present = {rows.account_in(row): row["owner_by"] for row in found}
            for account, owner_by in present.items():
                if owner_by == "revoked" and account not in listed:
                    # From now on the settings may name it again.
                    connection.execute(f"UPDATE accounts SET owner_by = NULL {_OF_ACCOUNT}", rows.values_of(account))
                elif owner_by != "cli" and account not in listed:
                    move_account(connection, account, add_person(connection), None)
            for account in listed:
                if account not in present:
                    add_account(connection, account, None)
                    move_account(connection, account, owner, "settings")
            own = {room_scope(connection, room) for room in rooms}
            listed_before = connection.execute("SELECT scope_key AS key FROM own_rooms WHERE NOT is_past").fetchall()
            before = {Scope(key=row["key"]) for row in listed_before}
            for room in before - own:
                _part_room(connection, room)
            new = [{"scope_key": room} for room in own - before]
            connection.executemany(rows.insertion("own_rooms", "scope_key"), new)

        await self._database.write(work)

    async def scopes(self, scope: Scope) -> frozenset[Scope]:
        """See `scopes_in`."""
        return await self._database.read(lambda connection: scopes_in(connection, scope))

    async def private(self, scope: Scope) -> list[tuple[Address, Scope]]:
        """Where the person of an account has talked to me in private, latest first and the terminal last: on a platform
        itself, and each with the scope, which is the account there."""
        found = await self._database.fetch_all(PRIVATE, {"scopes": rows.scope_parameter(await self.scopes(scope))})
        return [(rows.address_of(row), Scope(key=row["key"])) for row in found]

    async def standing(self, account: Account, scope: Scope) -> Standing:
        """What decides whether an account is served in the place of `scope`."""
        return await self._database.glance(lambda connection: standing_in(connection, account, scope))

    async def greet(self, account: Account, name: str) -> None:
        await self._database.write(lambda connection: add_account(connection, account, name))

    async def ask(self, account: Account, name: str, now: datetime, inbound: Inbound | None = None) -> Pairing | None:
        """A pairing code for whoever wrote `inbound`; None when one was given within the hour or 20 are pending."""
        waiting, name, expires_at = inbound and _waiting(inbound), rows.clean(name), now + CODE_LIFE
        pairing = Pairing(code=new_code(), account=account, name=name, expires_at=expires_at, inbound=waiting)
        values = rows.values_of(pairing) | rows.values_of(account) | {"now": now, "pending": PENDING}
        values["inbound"] = waiting and rows.dump_inbound(waiting)

        def work(connection: Connection) -> Pairing | None:
            if connection.execute(INSERT_PAIRING, values).rowcount:
                return pairing
            connection.execute(SET_WAITING, values)
            return None

        return await self._database.write(work)

    async def amend(self, inbound: Inbound) -> None:
        """What a stranger's edit or deletion does to a message that waits."""
        values = {**rows.place(inbound.address), "message_id": inbound.message_id}
        await self._database.execute(AMEND_WAITING, values | {"inbound": rows.dump_inbound(_waiting(inbound))})

    async def pending(self, now: datetime) -> list[Pairing]:
        """Requests that can be approved, oldest first."""
        found = await self._database.fetch_all(PENDING_PAIRINGS, {"now": now})
        return [_pairing(row) for row in found]

    async def approve(self, code: str, now: datetime, is_owner: bool = False, by: str = "chat") -> Pairing | None:
        """Admits the account behind a typed code; None when the code is wrong, used or expired. `is_owner`: for
        good the owner's, for the command line only. `by`: chat or cli."""
        values = {"code": typed_code(code), "now": now}

        def work(connection: Connection) -> Pairing | None:
            used = connection.execute(USE_PAIRING, values).fetchall()
            if not used:
                return None
            pairing = _pairing(used[0])
            add_account(connection, pairing.account, pairing.name)
            admitted = {**rows.values_of(pairing.account), "now": now, "by": by}
            connection.execute(f"{ADMIT} {_OF_ACCOUNT}", admitted)
            if is_owner:
                move_account(connection, pairing.account, _owner(connection), "cli")
            return pairing

        return await self._database.write(work)

    async def known(self, listed: Collection[str]) -> list[KnownAccount]:
        """All that were met, those of one person together, the owner's first."""
        found = await self._database.fetch_all(KNOWN, {"listed": list_value(listed)})
        return [KnownAccount(**rows.fields_in(row, KnownAccount), account=rows.account_in(row)) for row in found]

    async def admitted(self) -> list[Pairing]:
        """Requests that were approved, until `drop`, by whomever."""
        return [_pairing(row) for row in await self._database.fetch_all(ADMITTED)]

    async def drop(self, pairing: Pairing) -> None:
        await self._database.execute("DELETE FROM pairings WHERE code = :code", {"code": pairing.code})

    async def moved(self, platform: str, old_chat_id: str, new_chat_id: str) -> None:
        """A room has a new id; its scope stays that of the old one."""
        old, new = Scope.room(platform, old_chat_id), Scope.room(platform, new_chat_id)

        def work(connection: Connection) -> None:
            scope, left = room_scope(connection, old), room_scope(connection, new)
            if scope == left:
                return
            values = {"new": new, "scope": scope, "left": left}
            for statement in MOVE_ROOM:
                connection.execute(statement, values)
            # What is planned there and where it is incognito follow the room; messages stay where they were said.
            addresses = {
                "new": rows.ensure_address(connection, Address(platform=platform, chat_id=new_chat_id)),
                "old": rows.find_address(connection, Address(platform=platform, chat_id=old_chat_id)),
            }
            connection.execute("UPDATE jobs SET address_id = :new WHERE address_id = :old", addresses)
            connection.execute("UPDATE OR REPLACE veils SET address_id = :new WHERE address_id = :old", addresses)

        if self._incognito is not None:
            self._incognito.move(platform, old_chat_id, new_chat_id)
        await self._database.write(work)


def _owner(connection: Connection) -> int:
    """The id of the owner's person, made when there is none."""
    row = connection.execute(OWNER).fetchone()
    return add_person(connection, is_owner=True) if row is None else int(row["id"])


def room_scope(connection: Connection, scope: Scope) -> Scope:
    """The scope of a room whatever its id is by now, in its present generation; any other as it is."""
    return Scope(key=connection.execute(ROOM_SCOPE, {"scope": scope}).fetchone()["key"])


def standing_in(connection: Connection, account: Account, scope: Scope) -> Standing:
    """See `People.standing`."""
    linked = connection.execute(LINKED, rows.values_of(account)).fetchall()
    is_removed = bool(linked) and linked[0]["removed_at"] is not None
    return Standing(
        scope=room_scope(connection, scope),
        scopes=scopes_in(connection, scope),
        accounts=frozenset(Scope.account(row["platform"], row["user_id"]) for row in linked),
        is_owner=is_owners(connection, account),
        is_admitted=any(row["admitted_at"] is not None for row in linked),
        is_removed=is_removed,
        is_blocked=is_removed and bool(linked[0]["is_blocked"]),
    )


def _part_room(connection: Connection, scope: Scope) -> None:
    """Gives a room the next generation of its scope (``room:telegram:-5#2``); the one before stays the owner's. Answers
    under way are begun anew."""
    from core.store import epoch  # which asks this module who may see what

    place, _, number = scope.key.partition("#")
    seen = rows.scope_parameter(scopes_in(connection, LOCAL))
    private = connection.execute(PRIVATE, {"scopes": seen}).fetchone() or {
        "scope_id": rows.ensure_scope(connection, LOCAL),
        "address_id": rows.ensure_address(connection, Address(platform=TERMINAL.platform, chat_id=TERMINAL.user_id)),
    }
    values = {
        **rows.columns(private, "scope_id", "address_id"),
        "scope": scope,
        "next": Scope(key=f"{place}#{int(number or 1) + 1}"),
        "id": rows.ensure_scope(connection, scope),
    }
    for statement in PART_ROOM:
        connection.execute(statement, values)
    epoch.part(connection, frozenset((scope,)))


def scopes_in(connection: Connection, scope: Scope) -> frozenset[Scope]:
    """What may be seen in `scope`: for an account the scopes of its person's accounts, for the owner's also those of
    rooms while they are or were the owner's own; for a room the present one, for one of the owner's own the owner's.
    Empty for what is no scope."""
    kind, _, rest = scope.key.partition(":")
    platform, _, user_id = rest.partition(":")
    if kind == "room":
        scope = room_scope(connection, scope)
        person = connection.execute(OWNER_OF_ROOM, {"scope": scope}).fetchone()
    elif kind == "account" and platform and user_id:
        person = connection.execute(PERSON, {"platform": platform, "user_id": user_id}).fetchone()
    else:
        return frozenset()
    if person is None:
        return frozenset((scope,))
    return frozenset(Scope(key=row["key"]) for row in connection.execute(SCOPES, {"person": person["id"]}))


def _pairing(row: Row) -> Pairing:
    return Pairing(**rows.fields_in(row, Pairing), account=rows.account_in(row))


def _waiting(inbound: Inbound) -> Inbound:
    """What is kept of a message until the stranger who wrote it is let in."""
    text = inbound.text[:WAITING_CHARS] if inbound.command is None else ""
    return replace(inbound, kind="message", text=text, command=None, reply_to=None, quoted=None, attachments=())
