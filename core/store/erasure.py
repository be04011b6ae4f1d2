"""What an erasure takes out of state.db: its list, the rows that may repeat what was said, and how each is erased.

Which rows do repeat it is decided in `core/privacy`. What was asked for is stored until it is done: it is looked for
again after the yes, and after a crash by the next process.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from core.ports import Clock
from core.store import epoch, messages, rows
from core.store.engine import Connection, Row
from core.store.inbox import close_entries
from core.store.rows import scope_parameter, visible
from core.store.sqlite.database import Database
from core.store.sqlite.dialect import in_list, list_value, overlaps
from core.store.sqlite.erase_bytes import want, want_checkpoint
from core.store.sqlite.index_maintenance import write_text
from core.store.usage import disturb
from core.types import Account, Address, ErasureEpoch, Scope

STEP_MESSAGES = 100
"""Erased in one transaction, in which nobody else can write: about 50 ms."""
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
    epoch: ErasureEpoch | None = None

    @property
    def is_limited(self) -> bool:
        """Whether only one's own words may be erased: in a room, unless the owner asks."""
        return self.scope.is_room and not self.is_owner


@dataclass(kw_only=True)
class ErasureList:
    """What is erased for a `request` that asked for `text`. `upto`: the last message id when it was shown; `counts`
    were shown by the name that a person knows, `derived` is how much repeats it. `ids` by kind: "messages" were looked
    for (only these are stored), "repeats" are messages that repeat them, "asked" the command and its answer, "inbox"
    entries without an answer; the kinds of `COPIES`. `texts`: of the messages; `notes`: entries of the files."""

    request: ErasureRequest
    text: str
    made_at: datetime | None = None
    upto: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    derived: int = 0
    ids: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    texts: list[str] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)

    @property
    def values(self) -> dict[str, object]:
        """What the statements below are bound to."""
        request = self.request
        own = {scope.key.removeprefix("account:") for scope in request.scopes} | {request.account.key}
        return {
            **rows.place(request.address),
            "scopes": scope_parameter(request.scopes),
            "account": rows.account_key(request.account),
            "sender": rows.clean(request.account.user_id),
            "own": list_value(sorted(own)),
            "limited": request.is_limited,
            "owner": request.is_owner,
            "made_at": rows.maybe_timestamp(self.made_at),
            "upto": self.upto,
            "messages": list_value(self.ids["messages"]),
            "first": min(self.ids["messages"], default=0),
            "facts": list_value(self.ids["facts"]),
        }

    def count(self, *, messages: int, notes: int, typed: int) -> None:
        """Sets `counts`, without zeros, and `derived`."""
        numbers = {"message": messages, "fact": len(self.ids["facts"]), "note": notes, "job": len(self.ids["jobs"])}
        self.counts = {name: number for name, number in numbers.items() if number}
        self.derived = typed + sum(len(self.ids[kind]) for kind in ("repeats", *_UNNAMED))

    def dump(self) -> str:
        values = {
            "where": self.request.scope.key,
            "is_owner": self.request.is_owner,
            "address": asdict(self.request.address),
            "text": self.text,
            "upto": self.upto,
            "counts": self.counts,
            "derived": self.derived,
            "messages": self.ids["messages"],
        }
        return json.dumps(values)


SENDER = """
CAST(COALESCE(
    json_extract(raw, '$.message.from.id'), json_extract(raw, '$.edited_message.from.id'),
    json_extract(raw, '$.callback_query.from.id'), json_extract(raw, '$.my_chat_member.from.id'),
    json_extract(raw, '$.sender.id')
) AS TEXT)
"""
"""Who sent a raw update of Telegram, or an event that was set aside."""
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
    "sources": (_of_sessions("external_id"), f"UPDATE sessions SET external_id = NULL WHERE {_IDS}"),
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
_UNNAMED = tuple(COPIES.keys() - {"facts", "jobs", "sources"})
"""What a person sees as one number."""

HAS_FILES = '"files":[{'
"""Stands in what leaves with files: exports, which are made again rather than looked through."""

CONVERSATION = f"""
SELECT id, session_id, role, kind, text, blocks, tools, sender_id FROM messages
WHERE session_id IN (SELECT sessions.id FROM sessions WHERE {visible()}) AND (
    kind <> 'chat' OR blocks IS NOT NULL
    OR role <> 'user' AND id > :first
        AND session_id IN (SELECT session_id FROM messages AS found WHERE {in_list("found.id", "messages")})
)
"""
"""Messages that may repeat others: answers after `:first`, results of tools, commands."""
SESSIONS_OF = f"SELECT DISTINCT session_id FROM messages WHERE {in_list('id', 'messages')}"
OPENED_BY = f"""
SELECT session_id FROM messages WHERE session_id IN ({SESSIONS_OF}) AND role = 'user' AND kind = 'chat' AND text <> ''
GROUP BY session_id HAVING {in_list("MIN(id)", "messages")}
"""
"""Sessions whose titles were made from one of these messages, their first."""
SAID = f"""
SELECT id, text, role, sender_name, created_at FROM messages
WHERE {in_list("id", "messages")} AND text <> '' AND (id <= :upto OR created_at < :made_at) ORDER BY id
"""
"""Of messages, those that were there when the list was shown."""
WAITING = f"""
SELECT inbox.id, inbox.inbound, messages.id AS message_id
FROM inbox LEFT JOIN messages
    ON messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
WHERE (:made_at IS NULL OR inbox.received_at <= :made_at) AND (
    inbox.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
    OR {in_list("json_extract(inbox.inbound, '$.scope')", "scopes")}
)
ORDER BY inbox.id
"""
"""The events that had no answer when the list was shown, with the id of their message if there is one."""
ASKED = f"""
SELECT messages.id FROM messages
JOIN sessions ON sessions.id = messages.session_id JOIN addresses ON addresses.id = messages.address_id
WHERE messages.id > :upto AND messages.kind = 'command' AND {visible()}
    AND (messages.role <> 'user' OR messages.sender_id = :sender)
    AND addresses.platform = :platform AND addresses.chat_id = :chat_id AND addresses.thread_id = :thread_id
"""
"""The command that asked for it and its answer."""
_INSERT = """
INSERT INTO erasures (id, lane, account, scopes, list, made_at) VALUES (:id, :lane, :account, :scopes, :list, :now)
"""
_OUTDATED = "begun_at IS NULL AND made_at < :unasked OR done_at < :old"
_DELETE_NOTE_CHANGES = f"""
DELETE FROM notes
WHERE {visible("notes.scope_id")} AND ({in_list("before", "notes")} OR {in_list("after", "notes")})
"""
"""Also the change that took the note out of its file."""
_SESSIONS = f"SELECT sessions.id FROM sessions WHERE {visible()}"
_CUT_CONTEXTS = f"""
UPDATE messages SET sent = json_array(json_extract(sent, '$[0]'), json_extract(sent, '$[1]'))
WHERE sent NOT NULL AND json_array_length(sent) > 2 AND session_id IN ({_SESSIONS})
"""
"""Leaves of what was sent only the time line and the question."""
_LIST = "SELECT list, scopes, account, made_at, begun_at FROM erasures WHERE id = :id"
_DELETE_OTHERS = f"""
DELETE FROM erasures WHERE begun_at IS NULL AND id <> :id AND {overlaps("erasures.scopes", "scopes")}
"""
"""They have words that may be those that go."""
_FINISH = "UPDATE erasures SET done_at = :now, number = :number, list = :list WHERE id = :id AND done_at IS NULL"
_MESSAGES = f"SELECT id, session_id, kind, text FROM messages WHERE {_IDS}"


class Erasures:
    """Lists and their work, over state.db."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def save(self, token: str, found: ErasureList) -> None:
        """Stores a list for a yes of the same account at the same address."""
        values = {
            "id": token,
            "lane": rows.clean(found.request.address.key),
            "account": rows.account_key(found.request.account),
            "scopes": scope_parameter(found.request.scopes),
            "list": found.dump(),
            "now": rows.timestamp(self._clock.now()),
        }
        await self._database.execute(_INSERT, values, found.request.epoch)

    async def prune(self) -> None:
        """Deletes the lists that nobody has confirmed, and in the end the finished ones."""
        now = self._clock.now()
        values = {"unasked": rows.timestamp(now - ASKED_FOR), "old": rows.timestamp(now - KNOWN_FOR)}

        def work(connection: Connection) -> None:
            connection.execute(f"DELETE FROM erasures WHERE {_OUTDATED}", values)
            want_checkpoint(connection)

        if await self._database.fetch_one(f"SELECT 1 FROM erasures WHERE {_OUTDATED}", values):
            await self._database.write(work)

    async def begin(self, token: str, request: ErasureRequest) -> ErasureList | None:
        """Begins a list for good and returns it, also when it was begun before; None when this account has none of this
        name here. From now on nothing is written that was read before."""
        values = {
            "id": rows.clean(token),
            "lane": rows.clean(request.address.key),
            "account": rows.account_key(request.account),
            "now": rows.timestamp(self._clock.now()),
        }

        def work(connection: Connection) -> ErasureList | None:
            row = connection.execute(f"{_LIST} AND lane = :lane AND account = :account", values).fetchone()
            if row is None:
                return None
            found = _list_of(row)
            if row["begun_at"] is None:
                if not request.scopes.issuperset(found.request.scopes):
                    # Accounts were unlinked since: not all of it is this person's any more.
                    return None
                connection.execute(_DELETE_OTHERS, {**found.values, **values})
                connection.execute("UPDATE erasures SET begun_at = :now WHERE id = :id", values)
                epoch.count(connection)
            return found

        return await self._database.write(work)

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

    async def load(self, token: str) -> ErasureList | None:
        """A list that was begun; None when there is none, or it is finished."""
        row = await self._database.fetch_one(f"{_LIST} AND begun_at NOT NULL AND done_at IS NULL", {"id": token})
        return None if row is None else _list_of(row)

    async def finish(self, token: str, found: ErasureList) -> None:
        """Erases all rows of the list. What was looked for goes last: after a crash it is found again."""
        now = self._clock.now()
        await write_text(self._database, lambda connection: _erase_copies(connection, found, now))
        ids = [*found.ids["asked"], *found.ids["repeats"], *found.ids["messages"]]
        for start in range(0, len(ids), STEP_MESSAGES):
            await write_text(self._database, partial(erase_messages, ids=ids[start : start + STEP_MESSAGES]))

        def finish(connection: Connection) -> None:
            want(connection)
            values = {"id": token, "now": rows.timestamp(now), "list": replace(found, text="").dump()}
            connection.execute(_FINISH, {**values, "number": epoch.count(connection)})

        await self._database.write(finish)


def _list_of(row: Row) -> ErasureList:
    values = json.loads(row["list"])
    platform, _, user_id = row["account"].partition(":")
    request = ErasureRequest(
        account=Account(platform=platform, user_id=user_id),
        scope=Scope(key=values["where"]),
        scopes=frozenset(Scope(key=key) for key in json.loads(row["scopes"])),
        address=Address(**values.get("address", {"platform": "", "chat_id": ""})),
        is_owner=values["is_owner"],
    )
    shown = {name: values[name] for name in ("text", "upto", "counts", "derived") if name in values}
    # Earlier versions stored all that they had found, and no text.
    ids = {name: value for name, value in values.items() if isinstance(value, list)}
    return ErasureList(
        request=request, made_at=rows.moment(row["made_at"]), ids=defaultdict(list, ids), **{"text": "", **shown}
    )


def _erase_copies(connection: Connection, found: ErasureList, now: datetime) -> None:
    want(connection)
    close_entries(connection, found.ids["inbox"], now)
    for kind, (_, statement) in COPIES.items():
        connection.execute(statement, {"now": rows.timestamp(now), "ids": list_value(found.ids[kind])})
    values = found.values
    connection.execute(_DELETE_NOTE_CHANGES, {**values, "notes": list_value(found.notes)})
    connection.execute(_CUT_CONTEXTS, values)
    for row in connection.execute(f"{_SESSIONS} AND ended_at IS NULL AND system_prompt <> ''", values).fetchall():
        disturb(connection, row["id"], "forget")
    connection.execute(f"UPDATE sessions SET system_prompt = '' WHERE id IN ({_SESSIONS})", values)


def erase_messages(connection: Connection, ids: Sequence[int]) -> None:
    want(connection)
    for row in connection.execute(_MESSAGES, {"ids": list_value(ids)}).fetchall():
        messages.erase(connection, row)
