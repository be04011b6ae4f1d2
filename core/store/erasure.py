"""What an erasure takes out of state.db: its list, the rows that may repeat what was said, and how each of them is
erased.

Which of these rows do repeat it is decided in `core/privacy`. A list holds ids and no words: it is kept before the
person is asked, begun with the yes, and worked off in short transactions. Stopped anywhere, it is finished after the
next start.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.ports import Clock
from core.store import epoch, messages, rows
from core.store.engine import Connection, Row
from core.store.inbox import close_entries
from core.store.rows import visible
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value
from core.store.sqlite.erase_bytes import want, want_checkpoint
from core.store.sqlite.index_maintenance import write_text
from core.store.usage import disturb
from core.types import Account, Address, Inbound, Scope

STEP_S = 0.05
"""About how long one transaction takes, in which nobody else can write."""
ASKED_FOR = timedelta(minutes=15)
"""How long an unconfirmed list is kept; a little longer than the question."""
KNOWN_FOR = timedelta(days=30)
"""How long a finished list is known, for a yes that comes again after a crash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """Who asks: `scopes` is all that this person sees, `scope` and `address` where the question was put."""

    account: Account
    scope: Scope
    scopes: frozenset[Scope]
    address: Address
    is_owner: bool

    @property
    def is_limited(self) -> bool:
        """Whether only one's own words may be erased: in a room, unless the owner asks."""
        return self.scope.is_room and not self.is_owner


_FIXED = ("scopes", "notes", "unread", "upto", "where", "is_owner")


@dataclass(kw_only=True)
class ErasureList:
    """`ids` by kind: "messages" were looked for, "repeats" are messages that repeat them, "fences" messages beside
    which they were sent, "asked" the command and its answer; further the kinds of `COPIES`. By digest: "entries"
    (notes) and "typed" (lines of the terminal's history). "waiting": inbox keys, of which `unread` are no messages yet.
    `notes`: how many entries stand in the files. `upto`: the last message id when the list was made. `where`: the scope
    in which it was asked."""

    scopes: list[str] = field(default_factory=list)
    notes: int = 0
    unread: int = 0
    upto: int = 0
    where: str = ""
    is_owner: bool = False
    ids: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def dump(self) -> str:
        """As a flat JSON object."""
        return json.dumps({**self.ids, **{name: getattr(self, name) for name in _FIXED}})

    @classmethod
    def load(cls, encoded: str) -> ErasureList:
        """The reverse of `dump`."""
        values = json.loads(encoded)
        fixed = {name: values.pop(name) for name in _FIXED}
        return cls(**fixed, ids=defaultdict(list, values))

    @property
    def messages(self) -> list[int]:
        """Every message that goes, but for the question itself."""
        return [*self.ids["messages"], *self.ids["repeats"]]

    @property
    def is_limited(self) -> bool:
        """See `ErasureRequest`."""
        return self.where.startswith("room:") and not self.is_owner

    @property
    def derived(self) -> int:
        """How many rows only repeat or copy what goes."""
        return sum(len(self.ids[kind]) for kind in ("repeats", "fences", "typed", *_UNNAMED))

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many of what a person knows by name."""
        facts, jobs = len(self.ids["facts"]), len(self.ids["jobs"])
        numbers = (
            ("message", len(self.ids["messages"]) + self.unread),
            ("fact", facts),
            ("note", self.notes),
            ("job", jobs),
        )
        return tuple((name, number) for name, number in numbers if number)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to erase."""
        return not (self.counts or self.derived)


@dataclass(frozen=True, slots=True)
class _Copies:
    """`select` gives an id, the message from which the row was made, a moment, and its texts; `erase` ends before the
    condition on the ids."""

    select: str
    erase: str


SENDER = """
CAST(COALESCE(
    json_extract(raw, '$.message.from.id'), json_extract(raw, '$.edited_message.from.id'),
    json_extract(raw, '$.callback_query.from.id'), json_extract(raw, '$.my_chat_member.from.id')
) AS TEXT)
"""
"""Who sent a raw update of Telegram."""
LANES = f"""
SELECT addresses.platform || ':' || addresses.chat_id
    || CASE addresses.thread_id WHEN '' THEN '' ELSE '/' || addresses.thread_id END
FROM addresses WHERE id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
"""


def _made(table: str, texts: str, message_id: str = "message_id", at: str = "created_at") -> str:
    """Rows that are the asker's, or in a direct chat of the asker's scopes."""
    return f"""
        SELECT id, {message_id}, {at}, {texts} FROM {table}
        WHERE {visible(f"{table}.scope_id")} AND (NOT :limited OR account = :account)
    """


def _of_sessions(column: str) -> str:
    return f"SELECT id, NULL, NULL, {column} FROM sessions WHERE {visible()} AND {column} <> ''"


COPIES: Mapping[str, _Copies] = {
    "facts": _Copies(_made("facts", "content"), "DELETE FROM facts"),
    "fact_changes": _Copies(
        f"""
        SELECT id, NULL, at, before, after, reason FROM fact_changes
        WHERE {visible("fact_changes.scope_id")} AND NOT {in_list("fact_id", "facts")}
        """,
        "DELETE FROM fact_changes",
    ),
    "note_changes": _Copies(_made("notes", "before, after", at="at"), "DELETE FROM notes"),
    "pending_notes": _Copies(_made("pending_notes", "operations", at="at"), "DELETE FROM pending_notes"),
    "jobs": _Copies(
        _made("jobs", "text", message_id="NULL"),
        "UPDATE jobs SET text = '', next_at = NULL, ended_at = COALESCE(ended_at, :now)",
    ),
    "titles": _Copies(_of_sessions("title"), "UPDATE sessions SET title = NULL"),
    "prompts": _Copies(_of_sessions("system_prompt"), "UPDATE sessions SET system_prompt = ''"),
    "sources": _Copies(_of_sessions("external_id"), "UPDATE sessions SET external_id = NULL"),
    "names": _Copies(
        f"""
        SELECT messages.id, NULL, NULL, messages.external_id
        FROM sessions JOIN messages ON messages.session_id = sessions.id
        WHERE sessions.external_id IS NOT NULL AND messages.external_id GLOB '*[^0-9]*' AND (
            {in_list("sessions.id", "sources")}
            OR sessions.id IN (SELECT session_id FROM messages WHERE {in_list("id", "touched")})
        )
        """,
        "UPDATE messages SET external_id = NULL",
    ),
    "outbox": _Copies(
        f"SELECT id, message_id, NULL, payload FROM outbox WHERE payload IS NOT NULL AND lane IN ({LANES})",
        "UPDATE outbox SET payload = NULL, next_at = NULL, dead_at = COALESCE(dead_at, :now), error = 'forgotten' "
        "WHERE done_at IS NULL",
    ),
    "actions": _Copies(
        f"{_made('actions', 'arguments', message_id='NULL', at='NULL')} AND address IS NULL", "DELETE FROM actions"
    ),
    "updates": _Copies(
        f"""
        SELECT update_id, NULL, NULL, raw FROM raw_updates WHERE failed_at IS NOT NULL
            AND (:owner OR {in_list(f"platform || ':' || CASE WHEN json_valid(raw) THEN {SENDER} END", "own")})
        """,
        "DELETE FROM raw_updates",
    ),
}
"""The rows that may repeat what was said, by kind; those of messages themselves are in `CONVERSATION`."""
_UNNAMED = tuple(COPIES.keys() - {"facts", "jobs", "sources", "names"})
"""What a person has no name for, and is told of in one number."""

CONVERSATION = f"""
SELECT id, session_id, role, kind, text, blocks, tools, sent, sender_id FROM messages
WHERE session_id IN (SELECT sessions.id FROM sessions WHERE {visible()}) AND (
    kind <> 'chat' OR blocks IS NOT NULL OR sent IS NOT NULL
    OR role <> 'user' AND id > :first
        AND session_id IN (SELECT session_id FROM messages AS found WHERE {in_list("found.id", "messages")})
)
"""
"""The messages that may repeat others: answers after `first` in their sessions, results of tools, commands, and what
was sent with a context beside it."""
OPENED_BY = f"""
SELECT messages.session_id FROM messages
WHERE {in_list("messages.id", "messages")} AND messages.role = 'user' AND NOT EXISTS (
    SELECT 1 FROM messages AS earlier
    WHERE earlier.session_id = messages.session_id AND earlier.id < messages.id AND earlier.role = 'user'
        AND earlier.kind = 'chat' AND earlier.text <> ''
)
"""
"""Sessions that begin with one of these messages: their titles were made from it."""
SESSIONS_OF = f"SELECT DISTINCT session_id FROM messages WHERE {in_list('id', 'messages')}"
_SAID = f"""
SELECT text, role, sender_name, created_at FROM messages WHERE {in_list("id", "messages")} AND text <> '' ORDER BY id
"""
_WAITING = f"""
SELECT inbox.address_id, inbox.external_id, inbox.inbound, messages.id AS message_id
FROM inbox LEFT JOIN messages
    ON messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
WHERE inbox.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
    OR {in_list("json_extract(inbox.inbound, '$.scope')", "scopes")}
ORDER BY inbox.id
"""


def copies(
    connection: Connection, kind: str, values: Mapping[str, object]
) -> Iterator[tuple[Any, int | None, float | None, list[str]]]:
    """The rows of a kind of `COPIES`: id, message from which it was made, moment, texts."""
    for row_id, message_id, at, *texts in connection.execute(COPIES[kind].select, values):
        yield row_id, message_id, at, [text for text in texts if text]


def said(connection: Connection, message_ids: list[int]) -> Iterator[Row]:
    """Role, sender, text and moment of these messages, oldest first."""
    return iter(connection.execute(_SAID, {"messages": list_value(message_ids)}))


def waiting(connection: Connection, scopes: list[str]) -> Iterator[tuple[str, Inbound, int | None]]:
    """The events in these scopes that are not answered yet: a key that names each for ever, the event, and its message
    where there is one already."""
    for row in connection.execute(_WAITING, {"scopes": list_value(scopes)}):
        yield f"{row['address_id']} {row['external_id']}", rows.load_inbound(row["inbound"]), row["message_id"]


class Erasures:
    """Lists and their work, over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._left: dict[str, list[int]] = {}
        """By token: the messages that this process has yet to erase; another process begins with all of them."""

    async def save(self, token: str, found: ErasureList, request: ErasureRequest) -> None:
        """Keeps a list for a yes of the same account at the same address; an empty one is not kept. The question stands
        in no row, but it may stand in the write-ahead log, which is cut for it."""
        now = self._clock.now()
        values = {
            "id": token,
            "lane": rows.clean(request.address.key),
            "account": rows.account_key(request.account),
            "scopes": list_value(found.scopes),
            "list": found.dump(),
            "now": rows.timestamp(now),
            "unasked": rows.timestamp(now - ASKED_FOR),
            "old": rows.timestamp(now - KNOWN_FOR),
        }

        def work(connection: Connection) -> None:
            connection.execute(
                "DELETE FROM erasures WHERE begun_at IS NULL AND made_at < :unasked OR done_at < :old", values
            )
            if not found.is_empty:
                connection.execute(
                    """
                    INSERT INTO erasures (id, lane, account, scopes, list, made_at)
                    VALUES (:id, :lane, :account, :scopes, :list, :now)
                    """,
                    values,
                )
            want_checkpoint(connection)

        await self._database.write(work)

    async def begin(self, token: str, request: ErasureRequest) -> ErasureList | None:
        """Begins to work off a list, for good; None when there is none of this name for this account, here. The
        question and what was shown with it go along, and from here on nothing is written that was made before. Again:
        the same list, which may be worked off by now."""
        now = self._clock.now()
        values = {
            "id": rows.clean(token),
            "lane": rows.clean(request.address.key),
            "account": rows.account_key(request.account),
        }

        def work(connection: Connection) -> ErasureList | None:
            row = connection.execute(
                "SELECT list, begun_at FROM erasures WHERE id = :id AND lane = :lane AND account = :account", values
            ).fetchone()
            if row is None:
                return None
            found = ErasureList.load(row["list"])
            if row["begun_at"] is not None:
                return found
            if not {scope.key for scope in request.scopes}.issuperset(found.scopes):
                # Accounts were unlinked since: not all of it is this person's any more.
                return None
            found.ids["asked"] = _question(connection, found, request)
            entries, answered = _arrived(connection, found.ids["waiting"])
            found.unread -= len(answered - set(found.ids["messages"]))
            found.ids["messages"] = sorted({*found.ids["messages"], *answered})
            close_entries(connection, entries, now)
            connection.execute(
                "UPDATE erasures SET begun_at = :now, list = :list WHERE id = :id",
                {"id": values["id"], "now": rows.timestamp(now), "list": found.dump()},
            )
            epoch.count(connection)
            return found

        return await self._database.write(work)

    async def update(self, token: str, found: ErasureList) -> None:
        """Replaces a list that is not worked off."""
        await self._database.execute(
            "UPDATE erasures SET list = :list WHERE id = :id AND done_at IS NULL", {"id": token, "list": found.dump()}
        )

    async def begun(self, before: datetime | None = None) -> list[str]:
        """The lists that were begun, before a moment, and are not worked off."""
        found = await self._database.fetch_all(
            """
            SELECT id FROM erasures
            WHERE begun_at NOT NULL AND done_at IS NULL AND (:before IS NULL OR begun_at < :before)
            """,
            {"before": rows.maybe_timestamp(before)},
        )
        return [row["id"] for row in found]

    async def texts(self, found: ErasureList) -> list[str]:
        """What the messages still say that are to go: for what is kept outside of state.db."""
        return await self._database.read(lambda connection: [row["text"] for row in said(connection, found.messages)])

    async def step(self, token: str) -> bool:
        """One transaction of the work; False when the list is worked off."""
        left = self._left.get(token)

        def work(connection: Connection) -> list[int] | None:
            row = begun_row(connection, token)
            if row is None:
                return None
            want(connection)
            if left:
                return _erase_messages(connection, left)
            found = ErasureList.load(row["list"])
            if left is None:
                return [*found.ids["asked"], *found.ids["repeats"], *found.ids["messages"]]
            self._finish(connection, token, found)
            return None

        rest = await write_text(self._database, work)
        if rest is None:
            self._left.pop(token, None)
            return False
        self._left[token] = rest
        return True

    def _finish(self, connection: Connection, token: str, found: ErasureList) -> None:
        """All that is no message, in one transaction. What stays of the list are the numbers for its receipt."""
        now = rows.timestamp(self._clock.now())
        for kind, one in COPIES.items():
            condition = f"{'AND' if 'WHERE' in one.erase else 'WHERE'} {in_list(_KEYS.get(kind, 'id'), 'ids')}"
            connection.execute(f"{one.erase} {condition}", {"now": now, "ids": list_value(found.ids[kind])})
        _erase_contexts(connection, found.ids["fences"])
        _erase_prompts(connection, found)
        done = ErasureList(notes=found.notes, unread=found.unread)
        done.ids.update({kind: found.ids[kind] for kind in ("messages", "facts", "jobs")})
        connection.execute(
            "UPDATE erasures SET done_at = :now, number = :number, list = :list WHERE id = :id",
            {"id": token, "now": now, "number": epoch.count(connection), "list": done.dump()},
        )


_KEYS = {"updates": "update_id"}


def begun_row(connection: Connection, token: str) -> Row | None:
    """`list` and `account` of a list that was begun and is not worked off."""
    found: Row | None = connection.execute(
        "SELECT list, account FROM erasures WHERE id = :id AND begun_at NOT NULL AND done_at IS NULL", {"id": token}
    ).fetchone()
    return found


def _question(connection: Connection, found: ErasureList, request: ErasureRequest) -> list[int]:
    """The command that asked for it, and what was answered."""
    asked = connection.execute(
        f"""
        SELECT messages.id FROM messages JOIN sessions ON sessions.id = messages.session_id
        WHERE messages.id > :upto AND messages.kind = 'command' AND {visible()}
            AND messages.address_id = :address AND (messages.role <> 'user' OR messages.sender_id = :sender)
        """,
        {
            "sender": rows.clean(request.account.user_id),
            "upto": found.upto,
            "scopes": list_value(found.scopes),
            "address": rows.find_address(connection, request.address),
        },
    )
    return [row["id"] for row in asked]


def _arrived(connection: Connection, keys: list[str]) -> tuple[list[int], set[int]]:
    """What became of events that waited: the inbox entries that are there still, and the messages they are by now."""
    found: dict[str, list[int]] = {"inbox": [], "messages": []}
    for key in keys:
        address, _, external = key.partition(" ")
        for table, ids in found.items():
            statement = f"SELECT id FROM {table} WHERE address_id = :address AND external_id = :external"
            ids += [row["id"] for row in connection.execute(statement, {"address": int(address), "external": external})]
    return found["inbox"], set(found["messages"])


def _erase_messages(connection: Connection, ids: list[int]) -> list[int]:
    """Erases messages from the end of a list, for as long as a transaction may take; returns those that are left."""
    ends_at = time.monotonic() + STEP_S
    count = 0
    while count < len(ids) and time.monotonic() < ends_at:
        count += 1
        row = connection.execute(
            "SELECT id, session_id, kind, text FROM messages WHERE id = :id", {"id": ids[-count]}
        ).fetchone()
        if row is not None:
            messages.erase(connection, row)
    return ids[:-count]


def _erase_contexts(connection: Connection, ids: list[int]) -> None:
    """Of what was sent with a question only the time line and the question stay."""
    sent = connection.execute(
        f"SELECT id, sent FROM messages WHERE {in_list('id', 'ids')} AND sent NOT NULL", {"ids": list_value(ids)}
    ).fetchall()
    for row in sent:
        connection.execute(
            "UPDATE messages SET sent = :sent WHERE id = :id",
            {"id": row["id"], "sent": rows.dump(json.loads(row["sent"])[:2])},
        )


def _erase_prompts(connection: Connection, found: ErasureList) -> None:
    """Running sessions whose prefix had a part of it get a new prompt at their next turn."""
    running = connection.execute(
        f"""
        SELECT id FROM sessions WHERE ended_at IS NULL AND COALESCE(root_id, id) IN (
            SELECT COALESCE(touched.root_id, touched.id) FROM sessions AS touched
            WHERE {in_list("touched.id", "prompts")}
                OR touched.id IN (SELECT session_id FROM messages WHERE {in_list("messages.id", "messages")})
        )
        """,
        {
            "prompts": list_value(found.ids["prompts"]),
            "messages": list_value([*found.messages, *found.ids["fences"]]),
        },
    ).fetchall()
    for row in running:
        connection.execute("UPDATE sessions SET system_prompt = '' WHERE id = :id", {"id": row["id"]})
        disturb(connection, row["id"], "forget")
