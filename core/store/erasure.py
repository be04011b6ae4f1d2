"""What an erasure takes out of state.db: its list, the rows that may repeat what was said, and how each is erased.

Which rows do repeat it is decided in `core/privacy`. A list holds ids and no words: it is stored before the person is
asked, begun with the yes, and worked off in short transactions, after a crash by the next process.
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
ASKED_FOR, KNOWN_FOR = timedelta(minutes=15), timedelta(days=30)
"""How long lists are kept: unconfirmed ones a little longer than the question, finished ones for a repeated yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """Who asks: `scopes` are all that this person sees, `scope` and `address` where the question was put."""

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
    """`ids` by kind: "messages" were looked for, "repeats" repeat them, beside "fences" they were sent as context,
    "asked" are the command and its answer; the kinds of `COPIES`; digests of "entries" (notes) and "typed" (terminal
    history); "waiting" are inbox keys, of which `unread` are no messages yet. `notes`: entries in the files.
    `upto`: the last message id when it was made. `where`: key of the scope of the question."""

    scopes: list[str] = field(default_factory=list)
    notes: int = 0
    unread: int = 0
    upto: int = 0
    where: str = ""
    is_owner: bool = False
    ids: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def dump(self) -> str:
        return json.dumps({**self.ids, **{name: getattr(self, name) for name in _FIXED}})

    @classmethod
    def load(cls, encoded: str) -> ErasureList:
        values = json.loads(encoded)
        fixed = {name: values.pop(name) for name in _FIXED}
        return cls(**fixed, ids=defaultdict(list, values))

    @property
    def messages(self) -> list[int]:
        """Every message that goes but the question itself."""
        return [*self.ids["messages"], *self.ids["repeats"]]

    @property
    def is_limited(self) -> bool:
        return self.where.startswith("room:") and not self.is_owner

    @property
    def derived(self) -> int:
        """How many rows repeat or copy what goes."""
        return sum(len(self.ids[kind]) for kind in ("repeats", "fences", "typed", *_UNNAMED))

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """(name, number) of what a person knows by name, without zeros."""
        numbers = {
            "message": len(self.ids["messages"]) + self.unread,
            "fact": len(self.ids["facts"]),
            "note": self.notes,
            "job": len(self.ids["jobs"]),
        }
        return tuple((name, number) for name, number in numbers.items() if number)

    @property
    def is_empty(self) -> bool:
        return not (self.counts or self.derived)


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


_IDS = in_list("id", "ids")
COPIES: Mapping[str, tuple[str, str]] = {
    "facts": (_made("facts", "content"), f"DELETE FROM facts WHERE {_IDS}"),
    "fact_changes": (
        f"""
        SELECT id, NULL, at, before, after, reason FROM fact_changes
        WHERE {visible("fact_changes.scope_id")} AND NOT {in_list("fact_id", "facts")}
        """,
        f"DELETE FROM fact_changes WHERE {_IDS}",
    ),
    "note_changes": (_made("notes", "before, after", at="at"), f"DELETE FROM notes WHERE {_IDS}"),
    "pending_notes": (_made("pending_notes", "operations", at="at"), f"DELETE FROM pending_notes WHERE {_IDS}"),
    "jobs": (
        _made("jobs", "text", message_id="NULL"),
        f"UPDATE jobs SET text = '', next_at = NULL, ended_at = COALESCE(ended_at, :now) WHERE {_IDS}",
    ),
    "titles": (_of_sessions("title"), f"UPDATE sessions SET title = NULL WHERE {_IDS}"),
    "prompts": (_of_sessions("system_prompt"), f"UPDATE sessions SET system_prompt = '' WHERE {_IDS}"),
    "sources": (_of_sessions("external_id"), f"UPDATE sessions SET external_id = NULL WHERE {_IDS}"),
    "names": (
        f"""
        SELECT messages.id, NULL, NULL, messages.external_id
        FROM sessions JOIN messages ON messages.session_id = sessions.id
        WHERE sessions.external_id IS NOT NULL AND messages.external_id GLOB '*[^0-9]*' AND (
            {in_list("sessions.id", "sources")}
            OR sessions.id IN (SELECT session_id FROM messages WHERE {in_list("id", "touched")})
        )
        """,
        f"UPDATE messages SET external_id = NULL WHERE {_IDS}",
    ),
    "outbox": (
        f"SELECT id, message_id, NULL, payload FROM outbox WHERE payload IS NOT NULL AND lane IN ({LANES})",
        "UPDATE outbox SET payload = NULL, next_at = NULL, dead_at = COALESCE(dead_at, :now), error = 'forgotten' "
        f"WHERE done_at IS NULL AND {_IDS}",
    ),
    "actions": (
        f"{_made('actions', 'arguments', message_id='NULL', at='NULL')} AND address IS NULL",
        f"DELETE FROM actions WHERE {_IDS}",
    ),
    "updates": (
        f"""
        SELECT update_id, NULL, NULL, raw FROM raw_updates WHERE failed_at IS NOT NULL
            AND (:owner OR {in_list(f"platform || ':' || CASE WHEN json_valid(raw) THEN {SENDER} END", "own")})
        """,
        f"DELETE FROM raw_updates WHERE {in_list('update_id', 'ids')}",
    ),
}
"""What selects the rows that may repeat what was said (id, message from which it was made, moment, texts) and what
erases `:ids` of them, by kind. Messages that repeat others are in `CONVERSATION`."""
_UNNAMED = tuple(COPIES.keys() - {"facts", "jobs", "sources", "names"})
"""What a person sees as one number."""

CONVERSATION = f"""
SELECT id, session_id, role, kind, text, blocks, tools, sent, sender_id FROM messages
WHERE session_id IN (SELECT sessions.id FROM sessions WHERE {visible()}) AND (
    kind <> 'chat' OR blocks IS NOT NULL OR sent IS NOT NULL
    OR role <> 'user' AND id > :first
        AND session_id IN (SELECT session_id FROM messages AS found WHERE {in_list("found.id", "messages")})
)
"""
"""Messages that may repeat others: answers after `:first`, results of tools, commands, what was sent with context."""
OPENED_BY = f"""
SELECT messages.session_id FROM messages
WHERE {in_list("messages.id", "messages")} AND messages.role = 'user' AND NOT EXISTS (
    SELECT 1 FROM messages AS earlier
    WHERE earlier.session_id = messages.session_id AND earlier.id < messages.id AND earlier.role = 'user'
        AND earlier.kind = 'chat' AND earlier.text <> ''
)
"""
"""Sessions whose titles were made from one of these messages, their first."""
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
    """The rows of a kind of `COPIES`, without empty texts."""
    for row_id, message_id, at, *texts in connection.execute(COPIES[kind][0], values):
        yield row_id, message_id, at, [text for text in texts if text]


def said(connection: Connection, message_ids: list[int]) -> Iterator[Row]:
    """Role, sender, text and moment of these messages, oldest first."""
    return iter(connection.execute(_SAID, {"messages": list_value(message_ids)}))


def waiting(connection: Connection, scopes: list[str]) -> Iterator[tuple[str, Inbound, int | None]]:
    """The unanswered events in these scopes: a lasting key, the event, and the id of its message if there is one."""
    for row in connection.execute(_WAITING, {"scopes": list_value(scopes)}):
        yield f"{row['address_id']} {row['external_id']}", rows.load_inbound(row["inbound"]), row["message_id"]


class Erasures:
    """Lists and their work, over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._left: dict[str, list[int]] = {}
        """By token: messages left to erase; another process begins with all of them."""

    async def save(self, token: str, found: ErasureList, request: ErasureRequest) -> None:
        """Stores a list, unless it is empty, for a yes of the same account at the same address. The question is in no
        row, but may be in the write-ahead log, which is cut for it."""
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
        """Begins a list for good and returns it, also when it was begun before; None when this account has none of this
        name here. The question and its answer go along; from now on nothing is written that was read before."""
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
        await self._database.execute(
            "UPDATE erasures SET list = :list WHERE id = :id AND done_at IS NULL", {"id": token, "list": found.dump()}
        )

    async def begun(self, before: datetime | None = None) -> list[str]:
        """Tokens of unfinished lists that were begun (before a moment)."""
        found = await self._database.fetch_all(
            """
            SELECT id FROM erasures
            WHERE begun_at NOT NULL AND done_at IS NULL AND (:before IS NULL OR begun_at < :before)
            """,
            {"before": rows.maybe_timestamp(before)},
        )
        return [row["id"] for row in found]

    async def texts(self, found: ErasureList) -> list[str]:
        """What the messages that go still say, to find it outside of state.db."""
        return await self._database.read(lambda connection: [row["text"] for row in said(connection, found.messages)])

    async def step(self, token: str) -> bool:
        """One transaction of the work; False when the list is finished."""
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
        """Erases all but the messages; of the list stays what its receipt counts."""
        now = rows.timestamp(self._clock.now())
        for kind, (_, statement) in COPIES.items():
            connection.execute(statement, {"now": now, "ids": list_value(found.ids[kind])})
        _erase_contexts(connection, found.ids["fences"])
        _erase_prompts(connection, found)
        done = ErasureList(notes=found.notes, unread=found.unread)
        done.ids.update({kind: found.ids[kind] for kind in ("messages", "facts", "jobs")})
        connection.execute(
            "UPDATE erasures SET done_at = :now, number = :number, list = :list WHERE id = :id",
            {"id": token, "now": now, "number": epoch.count(connection), "list": done.dump()},
        )


def begun_row(connection: Connection, token: str) -> Row | None:
    """`list` and `account` of an unfinished list."""
    found: Row | None = connection.execute(
        "SELECT list, account FROM erasures WHERE id = :id AND begun_at NOT NULL AND done_at IS NULL", {"id": token}
    ).fetchone()
    return found


def _question(connection: Connection, found: ErasureList, request: ErasureRequest) -> list[int]:
    """The ids of the command that asked for it and its answer."""
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
    """Of events that waited: the inbox entries that are left, and the messages they became."""
    found: dict[str, list[int]] = {"inbox": [], "messages": []}
    for key in keys:
        address, _, external = key.partition(" ")
        for table, ids in found.items():
            statement = f"SELECT id FROM {table} WHERE address_id = :address AND external_id = :external"
            ids += [row["id"] for row in connection.execute(statement, {"address": int(address), "external": external})]
    return found["inbox"], set(found["messages"])


def _erase_messages(connection: Connection, ids: list[int]) -> list[int]:
    """Erases messages from the end of a list for `STEP_S`; returns those that are left."""
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
    """Leaves of what was sent only the time line and the question."""
    sent = connection.execute(
        f"SELECT id, sent FROM messages WHERE {in_list('id', 'ids')} AND sent NOT NULL", {"ids": list_value(ids)}
    ).fetchall()
    for row in sent:
        connection.execute(
            "UPDATE messages SET sent = :sent WHERE id = :id",
            {"id": row["id"], "sent": rows.dump(json.loads(row["sent"])[:2])},
        )


def _erase_prompts(connection: Connection, found: ErasureList) -> None:
    """Makes running sessions whose prefix had a part of it write a new prompt."""
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
