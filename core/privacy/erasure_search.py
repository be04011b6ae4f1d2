"""Finds all that an erasure has to take: what a query means, and every row in which it is repeated. Only reads.

Messages are found through the routes of recall; copies of them by the words that were asked for and by longer stretches
of what was said. Scope stands in every statement; in a room nobody but the owner reaches beyond his own words.

Finds what an erasure has to take of what has come in and is no message yet: events that wait for their answer, and
updates that could not be read. Only reads.
"""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.privacy.quoting import Quoting, digest
from core.search.query import STOPWORDS
from core.store import rows as codec
from core.store.erasure_list import ErasureItem, ErasureList, ErasureRequest
from core.store.query import SearchPlan, SearchQuery
from core.store.rows import account_key, moment, visible
from core.store.sqlite import message_search
from core.text.inflections import inflected
from core.types import Account, Address, Inbound, Role, Scope

SENDER = """
CAST(COALESCE(
    json_extract(raw, '$.message.from.id'), json_extract(raw, '$.edited_message.from.id'),
    json_extract(raw, '$.callback_query.from.id'), json_extract(raw, '$.my_chat_member.from.id')
) AS TEXT)
"""
"""Whose an update is, as far as it says so where everybody else's does."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An event in the inbox; `key` names it for ever, `message_id` is its row where it has one already."""

    key: str
    inbound: Inbound
    message_id: int | None


def waiting(connection: sqlite3.Connection, claim: ErasureRequest, scopes: list[str]) -> Iterator[_Waiting]:
    """What waits in these scopes; for who is limited to his own words, his."""
    rows = connection.execute(
        f"""
        SELECT inbox.address_id, inbox.external_id, inbox.inbound, messages.id AS message_id
        FROM inbox LEFT JOIN messages
            ON messages.address_id = inbox.address_id AND messages.external_id = inbox.external_id
        WHERE inbox.address_id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
            OR json_extract(inbox.inbound, '$.scope') IN (SELECT value FROM json_each(:scopes))
        ORDER BY inbox.id
        """,
        {"scopes": json.dumps(scopes)},
    )
    for row in rows:
        inbound = codec.load_inbound(row["inbound"])
        if not claim.is_limited or inbound.sender.id == claim.account.user_id:
            yield _Waiting(f"{row['address_id']} {row['external_id']}", inbound, row["message_id"])


def is_asked_for(inbound: Inbound, query: SearchQuery, quoting: Quoting) -> bool:
    """Whether a message that waits has the words, and what else can be told of it is as it should be."""
    is_so = (
        (not query.text or quoting.has_words(*said(inbound)))
        and "user" in query.roles
        and query.session is None
        and query.title is None
        and (not query.platforms or inbound.address.platform in query.platforms)
        and (query.after is None or inbound.sent_at >= query.after)
        and (query.before is None or inbound.sent_at < query.before)
        and (not query.sender or query.sender.casefold() in (inbound.sender.id, inbound.sender.name.casefold()))
    )
    return is_so and inbound.kind == "message" and inbound.command is None


def said(inbound: Inbound) -> tuple[str, ...]:
    """All words of an event."""
    typed = inbound.command.arguments if inbound.command else ""
    return (inbound.text, typed, *(attachment.name for attachment in inbound.attachments))


def rows_of(connection: sqlite3.Connection, found: ErasureList) -> tuple[list[int], list[int]]:
    """What became of those that waited: the inbox entries that are there still, and the messages they are by now."""
    pairs = [key.partition(" ") for key in found.waiting]
    values = {"pairs": json.dumps([[int(address), external] for address, _, external in pairs])}
    entries, messages = (
        [
            row[0]
            for row in connection.execute(
                f"""
                SELECT {table}.id FROM json_each(:pairs) AS pair CROSS JOIN {table}
                ON {table}.address_id = json_extract(pair.value, '$[0]')
                    AND {table}.external_id = json_extract(pair.value, '$[1]')
                """,
                values,
            )
        ]
        for table in ("inbox", "messages")
    )
    return entries, messages


def failed_updates(
    connection: sqlite3.Connection, claim: ErasureRequest, quoting: Quoting, scopes: list[str]
) -> list[int]:
    """Updates that could not be read and have the words: all of them for the owner, one's own for everybody else."""
    own = {key.removeprefix("account:") for key in scopes} | {claim.account.key}
    rows = connection.execute(
        f"""
        SELECT update_id, platform, raw, CASE WHEN json_valid(raw) THEN {SENDER} END AS sender
        FROM raw_updates WHERE failed_at IS NOT NULL
        """
    )
    return [
        row["update_id"]
        for row in rows
        if (claim.is_owner or Account(platform=row["platform"], user_id=row["sender"] or "").key in own)
        and quoting.has_words(_readable(row["raw"]))
    ]


def _readable(raw: str) -> str:
    """An update as platforms send it, with every letter as itself."""
    try:
        return codec.dump(json.loads(raw))
    except ValueError:
        return raw


NOWHERE = Address(platform="", chat_id="")
ALL_ROLES: tuple[Role, ...] = ("user", "assistant", "tool")
MOST = 100_000
RAW_TEXTS = 2_000
"""Longer stretches are looked for of so many of the found messages, the newest."""
_SAYING = "all anything ever everything mention mentioned said say talk talked tell told"
_AROUND = STOPWORDS | frozenset(_SAYING.split())
"""What stands around the subject when somebody says what to forget in a sentence."""
_OWN_SESSIONS = f"SELECT sessions.id FROM sessions WHERE {visible()}"


def _narrowed(query: SearchQuery, claim: ErasureRequest) -> SearchQuery:
    """A room's member looks through his own words alone."""
    roles = ALL_ROLES if query.roles == ("user", "assistant") else query.roles
    query = replace(query, scopes=claim.scopes, asker=claim.account, roles=roles)
    if claim.is_limited:
        query = replace(query, is_own=True, roles=("user",), scopes=frozenset({claim.scope}))
    return query


def listed(
    connection: sqlite3.Connection, query: SearchQuery, claim: ErasureRequest
) -> tuple[ErasureList, list[ErasureItem], Quoting]:
    """Everything to erase of a query (its filters taken out of the text), with what of it a person should see, messages
    oldest first, and what tells repetitions. Empty where nothing is found."""
    query = _narrowed(query, claim)
    found = ErasureList(scopes=sorted(scope.key for scope in query.scopes))
    found.upto = int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])
    plan = inflected(query.text)
    found.messages = _seeds(connection, plan, query)
    if not found.messages and len(query.text.split()) > 1 and '"' not in query.text:
        words = [word for word in query.text.split() if word.strip("?!.,").casefold() not in _AROUND]
        plan = inflected(" ".join(words))
        found.messages = _seeds(connection, plan, query)
    shown = list(_messages(connection, found.messages))
    texts = [trace.text for trace in shown[-RAW_TEXTS:]]
    quoting = Quoting(plan.terms, texts, is_any=_is_any(plan))
    found.where, found.is_owner = claim.scope.key, claim.is_owner
    shown += _unread(connection, found, query, quoting, claim)
    search = _Search(connection, found, quoting, claim)
    search.run()
    return found, shown + search.shown, quoting


def widen(connection: sqlite3.Connection, found: ErasureList, account: Account, words: Quoting) -> None:
    """Adds to a list what was made of its messages since. `words`: those that were asked for, where they are still
    known; what was said tells repetitions as well."""
    claim = ErasureRequest(
        account=account,
        scope=Scope(key=found.where),
        scopes=frozenset(Scope(key=key) for key in found.scopes),
        address=NOWHERE,
        is_owner=found.is_owner,
    )
    later = ErasureList(scopes=found.scopes, messages=found.messages, upto=found.upto)
    quoting = words.over(trace.text for trace in _messages(connection, found.messages[-RAW_TEXTS:]))
    _Search(connection, later, quoting, claim).run()
    found.widen(later)


def _is_any(plan: SearchPlan) -> bool:
    return len(plan.alternatives) > 1 or any('") OR (' in part for group in plan.alternatives for _, part, _ in group)


def _seeds(connection: sqlite3.Connection, plan: SearchPlan, query: SearchQuery) -> list[int]:
    if plan.alternatives:
        found = message_search.find(connection, plan, query)
    elif query.text.strip():
        return []
    else:
        found = message_search.latest(connection, query, MOST)
    return sorted({match.message_id for match in found})


def _unread(
    connection: sqlite3.Connection, found: ErasureList, query: SearchQuery, quoting: Quoting, claim: ErasureRequest
) -> list[ErasureItem]:
    """What is meant of that which waits for its answer. What is a message already is shown as one; a command goes for
    its words, as it does once it is kept."""
    shown, known = [], set(found.messages)
    for one in waiting(connection, claim, found.scopes):
        inbound = one.inbound
        is_meant = one.message_id in known or is_asked_for(inbound, query, quoting)
        if is_meant and one.message_id not in known:
            found.unread += 1
            shown.append(ErasureItem(kind="message", text=inbound.text, at=inbound.sent_at, who=inbound.sender.name))
        if is_meant or (inbound.command and quoting.has_words(*said(inbound))):
            found.waiting.append(one.key)
    return shown


def _messages(connection: sqlite3.Connection, ids: list[int]) -> Iterator[ErasureItem]:
    rows = connection.execute(
        """
        SELECT messages.text, messages.role, messages.sender_name, messages.created_at
        FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value ORDER BY messages.id
        """,
        {"ids": json.dumps(ids)},
    )
    for row in rows:
        who = "I" if row["role"] != "user" else row["sender_name"] or ""
        yield ErasureItem(kind="message", text=row["text"], at=moment(row["created_at"]), who=who)


class _Search:
    """One walk over everything that may repeat what was found."""

    def __init__(
        self, connection: sqlite3.Connection, found: ErasureList, quoting: Quoting, claim: ErasureRequest
    ) -> None:
        self._connection = connection
        self._found = found
        self._quoting = quoting
        self._claim = claim
        # In a room the words of a query are others' words too: there only what was said counts.
        self._has_words = not claim.is_limited
        self.shown: list[ErasureItem] = []
        self._values = {
            "scopes": json.dumps(found.scopes),
            "account": account_key(claim.account),
            "limited": claim.is_limited,
        }

    def run(self) -> None:
        self._facts()
        self._notes()
        self._jobs()
        self._conversation()
        self._sessions()
        self._parcels()
        self._buttons()
        self._found.updates = failed_updates(self._connection, self._claim, self._quoting, self._found.scopes)

    def _meant(self, *texts: str | None) -> bool:
        return (self._has_words and self._quoting.has_words(*texts)) or self._quoting.repeats(*texts)

    def _facts(self) -> None:
        known = set(self._found.messages)
        rows = self._connection.execute(
            f"""
            SELECT id, content, message_id, created_at, account FROM facts
            WHERE {visible("facts.scope_id")} AND (NOT :limited OR account = :account) ORDER BY id
            """,
            self._values,
        )
        for row in rows:
            if row["message_id"] in known or self._meant(row["content"]):
                self._found.facts.append(row["id"])
                self.shown.append(ErasureItem(kind="fact", text=row["content"], at=moment(row["created_at"])))
        gone = set(self._found.facts)
        rows = self._connection.execute(
            f"SELECT id, fact_id, before, after, reason FROM fact_changes WHERE {visible('fact_changes.scope_id')}",
            self._values,
        )
        self._found.fact_changes = [
            row["id"]
            for row in rows
            if row["fact_id"] not in gone and self._meant(row["before"], row["after"], row["reason"])
        ]

    def _notes(self) -> None:
        """Versions of notes; which of the notes themselves go is known by the digests of what these say."""
        known = set(self._found.messages)
        rows = self._connection.execute(
            f"""
            SELECT id, before, after, message_id FROM notes
            WHERE {visible("notes.scope_id")} AND (NOT :limited OR account = :account)
            """,
            self._values,
        )
        entries: set[str] = set()
        for row in rows:
            meant = [text for text in (row["before"], row["after"]) if text and self._meant(text)]
            if row["message_id"] in known and row["after"]:
                meant.append(row["after"])
            if meant:
                self._found.note_changes.append(row["id"])
                entries |= {digest(text) for text in meant}
        self._found.entries = sorted(entries)
        rows = self._connection.execute(
            f"""
            SELECT id, operations, message_id FROM pending_notes
            WHERE {visible("pending_notes.scope_id")} AND (NOT :limited OR account = :account)
            """,
            self._values,
        )
        for row in rows:
            texts = [text for operation in json.loads(row["operations"]) for text in operation[1:]]
            if row["message_id"] in known or self._meant(*texts):
                self._found.pending_notes.append(row["id"])

    def _jobs(self) -> None:
        rows = self._connection.execute(
            f"""
            SELECT id, text, created_at, ended_at FROM jobs
            WHERE {visible("jobs.scope_id")} AND (NOT :limited OR account = :account)
            """,
            self._values,
        )
        for row in rows:
            if self._meant(row["text"]):
                self._found.jobs.append(row["id"])
                self.shown.append(ErasureItem(kind="job", text=row["text"], at=moment(row["created_at"])))

    def _conversation(self) -> None:
        """Rows that repeat: what the model said, what tools gave, commands, and what was sent beside a question."""
        known = set(self._found.messages)
        near, first = self._sessions_of(known), min(known, default=0)
        marks = [f"- m{one} " for one in self._found.messages] + [f"- f{one} " for one in self._found.facts]
        rows = self._connection.execute(
            f"""
            SELECT id, session_id, role, kind, text, blocks, tools, sent, sender_id FROM messages
            WHERE session_id IN ({_OWN_SESSIONS}) AND (
                kind <> 'chat' OR blocks IS NOT NULL OR sent IS NOT NULL
                OR role <> 'user' AND id > :first AND session_id IN (SELECT value FROM json_each(:near))
            )
            """,
            {**self._values, "first": first, "near": json.dumps(sorted(near))},
        )
        repeats: list[int] = []
        for row in rows:
            if row["id"] in known:
                continue
            is_apart = row["kind"] != "chat" or row["blocks"] is not None
            if (is_apart or row["session_id"] in near) and self._is_repeat(
                row, is_apart=is_apart, is_later=row["id"] > first
            ):
                repeats.append(row["id"])
            elif row["sent"] and self._is_in_fence(row["sent"], marks):
                self._found.fences.append(row["id"])
        self._found.repeats = repeats

    def _is_repeat(self, row: sqlite3.Row, *, is_apart: bool, is_later: bool) -> bool:
        """Of an answer a longer stretch counts; what is no part of the talk itself (commands, results of tools) goes
        for the words alone, and for anything that it copies."""
        said = (row["text"], row["tools"], row["blocks"])
        is_own = row["sender_id"] == self._claim.account.user_id
        if row["role"] == "user" and (row["kind"] != "command" or (self._claim.is_limited and not is_own)):
            return False
        if not is_apart:
            return is_later and self._quoting.repeats(*said)
        may_by_words = self._has_words or (self._claim.is_limited and is_own and row["role"] == "user")
        return (may_by_words and self._quoting.has_words(*said)) or self._quoting.copies(*said)

    def _is_in_fence(self, sent: str, marks: list[str]) -> bool:
        beside = "\n".join(str(block.get("text", "")) for block in json.loads(sent)[2:])
        return bool(beside) and (self._meant(beside) or any(mark in beside for mark in marks))

    def _sessions_of(self, ids: set[int]) -> set[int]:
        rows = self._connection.execute(
            "SELECT DISTINCT session_id FROM messages WHERE id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(sorted(ids))},
        )
        return {row[0] for row in rows}

    def _sessions(self) -> None:
        found = self._found
        ids = {*found.messages, *found.repeats, *found.fences}
        found.touched = sorted(self._sessions_of(ids))
        touched, firsts, named = set(found.touched), self._beginnings(), self._named_by(found.messages)
        for row in self._connection.execute(
            f"SELECT id, title, system_prompt, external_id FROM sessions WHERE {visible()}", self._values
        ):
            title = row["title"] or ""
            is_made_of_it = row["id"] in named or (row["id"] in touched and title.rstrip("…").strip() in firsts)
            if title and (is_made_of_it or self._meant(title)):
                found.titles.append(row["id"])
            if row["external_id"] and self._meant(row["external_id"]):
                found.sources.append(row["id"])
            if row["system_prompt"] and self._meant(row["system_prompt"]):
                found.prompts.append(row["id"])

        self._names()

    def _names(self) -> None:
        """Messages that an import has named so."""
        found = self._found
        rows = self._connection.execute(
            """
            SELECT messages.id, messages.external_id FROM sessions
            JOIN messages ON messages.session_id = sessions.id
            WHERE sessions.id IN (SELECT value FROM json_each(:ids)) AND sessions.external_id IS NOT NULL
                AND messages.external_id GLOB '*[^0-9]*'
            """,
            {"ids": json.dumps([*found.touched, *found.sources])},
        )
        found.names = [row["id"] for row in rows if self._meant(row["external_id"])]

    def _named_by(self, ids: list[int]) -> set[int]:
        """Sessions that begin with one of these messages: their titles were made from it, in whatever words."""
        rows = self._connection.execute(
            """
            SELECT messages.session_id FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value
            WHERE messages.role = 'user' AND NOT EXISTS (
                SELECT 1 FROM messages AS earlier
                WHERE earlier.session_id = messages.session_id AND earlier.id < messages.id AND earlier.role = 'user'
                    AND earlier.kind = 'chat' AND earlier.text <> ''
            )
            """,
            {"ids": json.dumps(ids)},
        )
        return {row[0] for row in rows}

    def _beginnings(self) -> set[str]:
        """How titles begin that were made from what goes."""
        rows = self._connection.execute(
            "SELECT text FROM messages WHERE id IN (SELECT value FROM json_each(:ids))",
            {"ids": json.dumps(self._found.messages)},
        )
        begun: set[str] = set()
        for row in rows:
            words = " ".join(row["text"][:200].split())
            begun |= {words[:size] for size in range(1, min(len(words), 70) + 1)}
        return begun

    def _parcels(self) -> None:
        gone = {*self._found.messages, *self._found.repeats}
        lanes = f"""
            SELECT addresses.platform || ':' || addresses.chat_id
                || CASE addresses.thread_id WHEN '' THEN '' ELSE '/' || addresses.thread_id END
            FROM addresses WHERE id IN (SELECT sessions.address_id FROM sessions WHERE {visible()})
        """
        rows = self._connection.execute(
            f"SELECT id, payload, message_id FROM outbox WHERE payload IS NOT NULL AND lane IN ({lanes})", self._values
        )
        self._found.parcels = [
            row["id"] for row in rows if row["message_id"] in gone or self._meant(*_told(row["payload"]))
        ]

    def _buttons(self) -> None:
        rows = self._connection.execute(
            f"""
            SELECT id, arguments FROM actions
            WHERE {visible("actions.scope_id")} AND address IS NULL AND (NOT :limited OR account = :account)
            """,
            self._values,
        )
        self._found.actions = [row["id"] for row in rows if self._meant(row["arguments"])]


def _told(payload: str) -> Iterator[str]:
    """What a parcel says, its files too."""
    yield payload
    for file in json.loads(payload).get("files", ()):
        content = base64.b64decode(file["content"])
        if file["mime"] == "application/gzip":
            content = gzip.decompress(content)
        yield content.decode("utf-8", "replace")
