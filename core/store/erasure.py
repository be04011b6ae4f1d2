"""What an erasure takes out of state.db: its list, the rows that may repeat what was said, and how each is erased.

Which rows do repeat it is decided in `core/privacy`, again after the yes, and after a crash by the next process.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from core.ports import Clock
from core.store import epoch, rows
from core.store.mailbox import close_entries
from core.store.notes import OF_NOTES
from core.store.rows import Connection, Row, scope_parameter, visible
from core.store.sessions import erase_message
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import want_checkpoint, want_compaction, write_text
from core.store.sqlite.schema import in_list, list_value, overlaps
from core.store.usage import disturb
from core.types import Account, Address, ErasureEpoch, Scope

STEP_MESSAGES = 100
"""Erased in one transaction, in which nobody else can write: about 50 ms."""
ASKED_FOR, KNOWN_FOR = timedelta(minutes=15), timedelta(days=30)
"""How long lists are kept: unconfirmed ones a little longer than the question, finished ones for a repeated yes."""
_STORED = ("text", "upto", "counts", "derived")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureItem:
    """One thing to erase, as shown to the person."""

    kind: Literal["message", "fact", "note", "skill", "job", "room"]
    text: str
    at: datetime
    who: str = ""


@dataclass(kw_only=True)
class ErasureList:
    """What is erased for a `request` that asked for `text`, under the `token` that a yes carries. `upto`: the last
    message id when it was `shown`; `counts` by the name that a person knows, `derived` is how much repeats it. `ids` by
    kind: "messages" were looked for (only these are stored), "repeats" are messages that repeat them, "asked" the
    command and its answer, "inbox" entries without an answer, "summaries" with what is left of them; the kinds of
    `COPIES`. `texts`: of the messages; `notes`: entries of the files. `phrase`, `has_words`: what was looked for. Once
    erased: `asked` are memory services, `stuck` files that cannot be written; `is_clean`: no byte is left; `is_noted`:
    for backups; `left`: what still has the words, by the names of `SCANNED`; `files`: what has them in the home, if the
    owner is told."""

    request: ErasureRequest
    text: str = ""
    token: str = ""
    made_at: datetime | None = None
    is_done: bool = False
    upto: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    derived: int = 0
    ids: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    texts: list[str] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    shown: list[ErasureItem] = field(default_factory=list)
    asked: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    is_clean: bool = False
    is_noted: bool = False
    phrase: str = ""
    has_words: Callable[..., bool] = lambda *_: False
    is_narrowed: bool = False
    left: Counter[str] | None = None
    files: tuple[str, ...] | None = None

    @property
    def values(self) -> dict[str, object]:
        """What the statements below are bound to."""
        request = self.request
        own = {scope.key.removeprefix("account:") for scope in request.scopes} | {request.account.key}
        return {
            **rows.place(request.address),
            "scopes": scope_parameter(request.scopes),
            "account": request.account,
            "sender": request.account.user_id,
            "own": list_value(sorted(own)),
            "limited": request.is_limited,
            "owner": request.is_owner,
            "made_at": self.made_at,
            "upto": self.upto,
            "messages": list_value(self.ids["messages"]),
            "first": min(self.ids["messages"], default=0),
            "facts": list_value(self.ids["facts"]),
        }

    def dump(self) -> str:
        request, stored = self.request, {name: getattr(self, name) for name in _STORED}
        asked = {"where": request.scope.key, "is_owner": request.is_owner, "address": asdict(request.address)}
        return rows.dump({**asked, **stored, "messages": self.ids["messages"]})


_PATHS = ("message.from", "edited_message.from", "callback_query.from", "my_chat_member.from", "sender")
_SENDERS = ", ".join(f"json_extract(raw, '$.{path}.id')" for path in _PATHS)
SENDING = f"platform || ':' || CASE WHEN json_valid(raw) THEN CAST(COALESCE({_SENDERS}) AS TEXT) END"
"""The account that sent a raw update of Telegram, or an event that was set aside."""
_ASKING = "platform || ':' || user_id"
LANES = f"SELECT {rows.LANE} FROM addresses WHERE id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})"


def _made(table: str, texts: str, message_id: str = "message_id", at: str = "created_at", also: str = "0") -> str:
    """Rows that are the asker's, or in a direct chat of the asker's scopes; or for which `also` holds."""
    return f"""
        SELECT id, {message_id}, {at}, {texts} FROM {table}
        WHERE {visible(f"{table}.scope_id")} AND (NOT :limited OR account = :account OR {also})
    """


def _of_sessions(column: str, message_id: str = "NULL") -> str:
    return f"SELECT id, {message_id}, NULL, {column} FROM sessions WHERE {visible()} AND {column} <> ''"


_FIRST = """(
    SELECT id FROM messages WHERE session_id = sessions.id AND role = 'user' AND kind = 'chat' AND text <> ''
    ORDER BY id LIMIT 1
)"""
"""The message from which the title of a session was made."""
SESSIONS = f"SELECT sessions.id FROM sessions WHERE {visible()}"
IMPORTED = f"address_id IN (SELECT id FROM addresses WHERE platform = 'import') AND session_id IN ({SESSIONS})"
_IDS = in_list("id", "ids")
_UNQUOTE = f"UPDATE messages SET quoted = NULL, sent = NULL WHERE {_IDS}"
COPIES: Mapping[str, tuple[str, str]] = {
    "facts": (_made("facts", "content, value"), f"DELETE FROM facts WHERE {_IDS}"),
    "fact_changes": (
        "SELECT id, NULL, at, before, after, reason FROM fact_changes "
        f"WHERE {visible('fact_changes.scope_id')} AND NOT {in_list('fact_id', 'facts')}",
        f"DELETE FROM fact_changes WHERE {_IDS}",
    ),
    "note_changes": (f"{_made('notes', 'before, after', at='at')} AND {OF_NOTES}", f"DELETE FROM notes WHERE {_IDS}"),
    "skill_changes": (
        f"{_made('notes', 'target, before, after', at='at')} AND NOT {OF_NOTES}",
        f"DELETE FROM notes WHERE {_IDS}",
    ),
    "pending_notes": (
        # A draft repeats what others have noted.
        _made("pending_notes", "operations, reason", at="at", also="is_draft"),
        f"DELETE FROM pending_notes WHERE {_IDS}",
    ),
    "skills": (
        f"SELECT id, NULL, NULL, name FROM skills WHERE {visible('skills.scope_id')}",
        f"DELETE FROM skills WHERE {_IDS}",
    ),
    "jobs": (
        _made("jobs", "text", message_id="NULL"),
        f"UPDATE jobs SET text = '', next_at = NULL, ended_at = COALESCE(ended_at, :now) WHERE {_IDS}",
    ),
    "titles": (_of_sessions("title", _FIRST), f"UPDATE sessions SET title = NULL WHERE {_IDS}"),
    "sources": (_of_sessions("external_id"), f"UPDATE sessions SET external_id = NULL WHERE {_IDS}"),
    "quotes": (
        "SELECT id, quoted ->> '$.message_id', NULL, quoted ->> '$.text', quoted ->> '$.name' FROM messages "
        f"WHERE quoted NOT NULL AND session_id IN ({SESSIONS})",
        _UNQUOTE,
    ),
    "own_quotes": (
        "SELECT id, NULL, NULL, quoted ->> '$.text', quoted ->> '$.name' FROM messages "
        f"WHERE :limited AND quoted ->> '$.user_id' = :sender AND session_id IN ({SESSIONS})",
        _UNQUOTE,
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
        f"SELECT update_id, NULL, NULL, raw, error FROM raw_updates WHERE failed_at IS NOT NULL "
        f"AND (:owner OR {in_list(SENDING, 'own')})",
        f"DELETE FROM raw_updates WHERE {in_list('update_id', 'ids')}",
    ),
    "pairings": (
        "SELECT code, NULL, NULL, json_extract(inbound, '$.text') FROM pairings "
        f"WHERE :owner OR {in_list(_ASKING, 'own')}",
        f"UPDATE pairings SET inbound = json_set(inbound, '$.text', '') WHERE {in_list('code', 'ids')}",
    ),
    "errors": (
        f"SELECT id, NULL, NULL, error FROM outbox WHERE error <> '' AND (:owner OR lane IN ({LANES}))",
        f"UPDATE outbox SET error = 'forgotten' WHERE {_IDS}",
    ),
    # Of what was brought from elsewhere, names go too; those that a platform gives come with every message.
    "senders": (
        f"SELECT DISTINCT sender_name, NULL, NULL, sender_name FROM messages WHERE {IMPORTED}",
        # Naming `tools` makes the triggers index the messages anew.
        "UPDATE messages SET sender_name = '', sent = NULL, tools = tools "
        f"WHERE {in_list('sender_name', 'ids')} AND {IMPORTED}",
    ),
    "message_names": (
        f"SELECT id, NULL, NULL, external_id FROM messages WHERE external_id GLOB '*[^0-9a-f-]*' AND {IMPORTED}",
        f"UPDATE messages SET external_id = NULL WHERE {_IDS}",
    ),
    "places": (
        # Nobody has talked there.
        "SELECT id, NULL, NULL, chat_id, thread_id FROM addresses "
        f"WHERE id IN (SELECT address_id FROM sessions WHERE {visible()}) "
        "AND id NOT IN (SELECT address_id FROM sessions WHERE end_reason IS NOT 'import')",
        f"UPDATE addresses SET chat_id = 'forgotten-' || id, thread_id = '' WHERE {_IDS}",
    ),
}
"""What selects the rows that may repeat what was said (id, message from which it was made, moment, texts) and what
erases `:ids` of them, by kind. Messages that repeat others are in `CONVERSATION`."""
UNNAMED = ("repeats", "summaries", *(COPIES.keys() - {"facts", "jobs"}))
"""What a person sees as one number."""

INBOX = f"""
    inbox.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
    OR {in_list("json_extract(inbox.inbound, '$.scope')", "scopes")}
"""
ENCODED = f"""
SELECT id, text FROM messages
WHERE session_id IN ({SESSIONS}) AND (NOT :limited OR sender_id = :sender)
    AND (kind = 'chat' AND text GLOB '*[%&\\ßẞ*_~`|]*' OR kind = 'undone')
"""
"""Messages that may have the words as URLs, HTML, JSON and markup write them, or with ß, and what was undone: the index
has neither."""
CONVERSATION = f"""
SELECT id, role, origin, kind, text, blocks, tools, sender_id, :limited AND :account IS (
    SELECT account FROM jobs WHERE id = 0 + CASE messages.origin WHEN 'job' THEN substr(messages.external_id, 5)
        ELSE (SELECT chat_id FROM addresses WHERE id = messages.address_id AND platform = 'cron') END
) AS is_of_own_job FROM messages
WHERE session_id IN (SELECT sessions.id FROM sessions WHERE {visible()}) AND (
    kind <> 'chat' OR blocks IS NOT NULL OR is_of_own_job
    OR role <> 'user' AND id > :first
        AND session_id IN (SELECT session_id FROM messages AS found WHERE {in_list("found.id", "messages")})
    OR session_id IN ({rows.DELEGATED})
)
"""
"""Messages that may repeat others: answers after `:first`, results of tools, commands."""
SAID = f"""
SELECT id, text, role, sender_name, created_at FROM messages
WHERE {in_list("id", "messages")} AND text <> '' AND (id <= :upto OR created_at < :made_at) ORDER BY id
"""
"""Of messages, those that were there when the list was shown."""
WAITING = f"""
SELECT inbox.id, inbox.inbound, messages.id AS message_id
FROM inbox LEFT JOIN messages
    ON messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
WHERE (:made_at IS NULL OR inbox.received_at <= :made_at) AND ({INBOX}) ORDER BY inbox.id
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
IN_ROOMS = f"""
FROM messages JOIN sessions ON sessions.id = messages.session_id JOIN scopes ON scopes.id = sessions.scope_id
JOIN addresses ON addresses.id = messages.address_id
WHERE scopes.key GLOB 'room:*' AND NOT {visible()} AND NOT sender_is_nobody
    AND {in_list("platform || ':' || sender_id", "own")}
"""
_QUOTED = "(quoted ->> '$.user_id')"
QUOTED_IN_ROOMS = IN_ROOMS.replace("sender_id", _QUOTED)
"""What a person has said in rooms that are not seen from his direct chat, and what others there quote of him."""
_ROOMS = f"SELECT scopes.id, scopes.key AS scope, platform, sender_id AS user_id {IN_ROOMS}"
ROOMS = f"{_ROOMS} UNION {_ROOMS.replace('sender_id', _QUOTED)}"
_INSERT = rows.insertion("erasures", "id", "lane", "account", "scopes", "list", "made_at")
_OUTDATED = (
    "erasures WHERE begun_at IS NULL AND made_at < :unasked OR done_at < :old",
    # What a stranger wrote waits no longer than the code; of whoever was approved, until the platform is there again.
    "pairings WHERE expires_at <= :now AND (used_at IS NULL OR used_at < :old)",
)
_DELETE_NOTE_CHANGES = f"""
DELETE FROM notes
WHERE {visible("notes.scope_id")} AND ({in_list("before", "notes")} OR {in_list("after", "notes")})
"""
"""Also the change that took the note out of its file."""
_CUT_CONTEXTS = f"""
UPDATE messages SET sent = NULL WHERE json_array_length(sent) > 2 AND session_id IN ({SESSIONS})
"""
"""What was sent with more than its time line and its text is made anew when it is sent again, without memory."""
_BEGUN = "SELECT * FROM erasures WHERE begun_at < COALESCE(:before, begun_at + 1) AND done_at IS NULL"
_DELETE_OTHERS = f"""
DELETE FROM erasures WHERE begun_at IS NULL AND id <> :id AND {overlaps("erasures.scopes", "scopes")}
AND (NOT :limited OR account = :account)
"""
"""They have words that may be those that go."""
_FINISH = "UPDATE erasures SET done_at = :now, number = :number, list = :list WHERE id = :id AND done_at IS NULL"


class Erasures:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def save(self, found: ErasureList) -> None:
        """Stores a list for a yes of the same account at the same address."""
        values = self._values(found.token, found.request)
        values |= {"scopes": scope_parameter(found.request.scopes), "list": found.dump()}
        values["made_at"] = found.made_at or values["now"]
        await self._database.execute(f"{_INSERT} ON CONFLICT (id) DO NOTHING", values, found.request.epoch)

    async def prune(self) -> None:
        """Deletes lists and pairing codes that nobody has confirmed in time, and in the end the finished lists."""
        now = self._clock.now()
        values = {"unasked": rows.timestamp(now - ASKED_FOR), "old": rows.timestamp(now - KNOWN_FOR), "now": now}

        def work(connection: Connection) -> None:
            for some in _OUTDATED:
                connection.execute(f"DELETE FROM {some}", values)
            want_checkpoint(connection)

        if await self._database.fetch_one(" UNION ALL ".join(f"SELECT 1 FROM {some}" for some in _OUTDATED), values):
            await self._database.write(work)

    async def begin(self, token: str, request: ErasureRequest) -> ErasureList | None:
        """Begins a list for good, or finds it begun; None when this account has none of this name here. From now on
        nothing is written that was read before."""
        values = self._values(token, request)

        def work(connection: Connection) -> ErasureList | None:
            one = "SELECT * FROM erasures WHERE id = :id AND lane = :lane AND account = :account"
            row = connection.execute(one, values).fetchone()
            found = None if row is None else _list_of(row)
            if found is None or row["begun_at"] is not None:
                return found
            if not request.scopes.issuperset(found.request.scopes):
                # Accounts were unlinked since: not all of it is this person's any more.
                return None
            connection.execute(_DELETE_OTHERS, {**found.values, **values})
            connection.execute("UPDATE erasures SET begun_at = :now WHERE id = :id", values)
            epoch.count(connection)
            return found

        return await self._database.write(work)

    async def begun(self, before: datetime | None = None) -> list[ErasureList]:
        """Unfinished lists that were begun (before a moment)."""
        return list(map(_list_of, await self._database.fetch_all(_BEGUN, {"before": before})))

    async def finish(self, found: ErasureList) -> None:
        """Erases all rows of the list. What was looked for goes last: after a crash it is found again."""
        now = self._clock.now()
        await write_text(self._database, lambda connection: _erase_copies(connection, found, now))
        ids = [*found.ids["asked"], *found.ids["repeats"], *found.ids["messages"]]
        for start in range(0, len(ids), STEP_MESSAGES):
            await write_text(self._database, partial(erase_messages, ids=ids[start : start + STEP_MESSAGES]))

        def finish(connection: Connection) -> None:
            want_compaction(connection)
            values = {"id": found.token, "now": now, "list": replace(found, text="").dump()}
            connection.execute(_FINISH, {**values, "number": epoch.count(connection)})

        await self._database.write(finish)

    def _values(self, token: str, request: ErasureRequest) -> dict[str, object]:
        return {"id": token, "lane": request.address, "account": request.account, "now": self._clock.now()}


def _list_of(row: Row) -> ErasureList:
    values = json.loads(row["list"])
    account = rows.account_of(row["account"])
    assert account is not None
    request = ErasureRequest(
        account=account,
        scope=Scope(key=values["where"]),
        scopes=frozenset(Scope(key=key) for key in json.loads(row["scopes"])),
        # Earlier versions stored neither address nor text, but all that they had found.
        address=Address(**values.get("address", {"platform": "", "chat_id": ""})),
        is_owner=values["is_owner"],
    )
    return ErasureList(
        request=request,
        token=row["id"],
        made_at=rows.moment(row["made_at"]),
        is_done=row["done_at"] is not None,
        ids=defaultdict(list, {kind: ids for kind, ids in values.items() if isinstance(ids, list)}),
        **{name: values[name] for name in _STORED if name in values},
    )


def _erase_copies(connection: Connection, found: ErasureList, now: datetime) -> None:
    want_compaction(connection)
    close_entries(connection, found.ids["inbox"], now)
    values = {**found.values, "now": now}
    for kind, (_, statement) in COPIES.items():
        connection.execute(statement, {**values, "ids": list_value(found.ids[kind])})
    for message_id, rest in found.ids["summaries"]:
        connection.execute("UPDATE messages SET text = :text WHERE id = :id", {"id": message_id, "text": rest})
    connection.execute(_DELETE_NOTE_CHANGES, {**values, "notes": list_value(found.notes)})
    connection.execute(_CUT_CONTEXTS, values)
    for row in connection.execute(f"{SESSIONS} AND ended_at IS NULL AND system_prompt <> ''", values).fetchall():
        disturb(connection, row["id"], "forget")
    connection.execute(f"UPDATE sessions SET system_prompt = '' WHERE id IN ({SESSIONS})", values)


def erase_messages(connection: Connection, ids: Sequence[int]) -> None:
    want_compaction(connection)
    messages = f"SELECT id, session_id, kind, text FROM messages WHERE {_IDS}"
    for row in connection.execute(messages, {"ids": list_value(ids)}).fetchall():
        erase_message(connection, row)
