"""Finds what an erasure takes: the messages of a query, and every row that repeats them. Only reads.

Messages are found as recall finds them, copies by the words asked for and by longer stretches of what was said. In a
room only the owner reaches beyond their own words.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from core.errors import Refused
from core.privacy.quoting import Quoting, digest
from core.search.query import inflected
from core.store import erasure
from core.store.engine import Connection, Row
from core.store.erasure import ErasureList, ErasureRequest
from core.store.query import SearchPlan, SearchQuery
from core.store.rows import account_key, account_of, moment
from core.store.sqlite import index_maintenance
from core.store.sqlite.dialect import list_value
from core.store.sqlite.text_index import TextIndex
from core.text.terms import stop_words
from core.types import Address, Inbound, Scope

MESSAGES_MOST = 100_000
QUOTED_MESSAGES = 2_000
"""How many of the found messages, the newest, are looked for in copies."""
_SAYING = "all anything ever everything mention mentioned said say talk talked tell told"
"""With the stop words: what stands around the subject of a sentence that says what to forget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureItem:
    """One thing to erase, as shown to the person."""

    kind: Literal["message", "fact", "note", "job"]
    text: str
    at: datetime
    who: str = ""


def find(
    connection: Connection, query: SearchQuery, request: ErasureRequest
) -> tuple[ErasureList, list[ErasureItem], Quoting]:
    """The list of a query (with its filters taken out of the text), what of it to show, messages oldest first, and what
    recognises repetitions. Raises Refused while the text indexes are being rebuilt."""
    if index_maintenance.is_stale(connection):
        raise Refused("The search index is being built anew, so something could be overlooked. Try again soon.")
    roles = query.roles if query.roles != ("user", "assistant") else (*query.roles, "tool")
    query = replace(query, scopes=request.scopes, asker=request.account, roles=roles)
    if request.is_limited:
        query = replace(query, is_own=True, roles=("user",), scopes=frozenset({request.scope}))
    found = ErasureList(
        scopes=sorted(scope.key for scope in query.scopes), where=request.scope.key, is_owner=request.is_owner
    )
    found.upto = int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])
    plan = inflected(query.text)
    ids = _matching(connection, plan, query)
    if not ids and len(query.text.split()) > 1 and '"' not in query.text:
        beside = stop_words().union(_SAYING.split())
        words = [word for word in query.text.split() if word.strip("?!.,").casefold() not in beside]
        plan = inflected(" ".join(words))
        ids = _matching(connection, plan, query)
    found.ids["messages"] = ids
    shown = [
        ErasureItem(
            kind="message",
            text=row["text"],
            at=moment(row["created_at"]),
            who="I" if row["role"] != "user" else row["sender_name"] or "",
        )
        for row in erasure.said(connection, ids)
    ]
    quoting = Quoting(plan.terms, [item.text for item in shown[-QUOTED_MESSAGES:]], is_any=len(plan.alternatives) > 1)
    shown += _unanswered(connection, found, query, quoting, request)
    search = _CopySearch(connection, found, quoting, request)
    search.run()
    return found, shown + search.shown, quoting


def widen(connection: Connection, token: str, words: Quoting) -> ErasureList | None:
    """An unfinished list with what was made of its messages since; None when it is finished. `words`: those asked for,
    where they are still known."""
    row = erasure.begun_row(connection, token)
    if row is None:
        return None
    found = ErasureList.load(row["list"])
    account = account_of(row["account"])
    if account is None:
        return found
    request = ErasureRequest(
        account=account,
        scope=Scope(key=found.where),
        scopes=frozenset(Scope(key=key) for key in found.scopes),
        address=Address(platform="", chat_id=""),
        is_owner=found.is_owner,
    )
    later = ErasureList(scopes=found.scopes)
    later.ids["messages"] = messages = found.ids["messages"]
    quoting = words.over(row["text"] for row in erasure.said(connection, messages[-QUOTED_MESSAGES:]))
    _CopySearch(connection, later, quoting, request).run()
    for kind, ids in later.ids.items():
        known = found.ids[kind]
        known += sorted(set(ids).difference(known))
    return found


def versions(connection: Connection, found: ErasureList) -> list[int]:
    """The versions of the notes on a list, also those made since: taking a note out of its file makes one."""
    gone = set(found.ids["entries"])
    values = {"scopes": list_value(found.scopes), "limited": False, "account": None}
    rows = erasure.copies(connection, "note_changes", values)
    later = {row_id for row_id, _, _, texts in rows if not gone.isdisjoint(map(digest, texts))}
    return sorted(later.union(found.ids["note_changes"]))


def _matching(connection: Connection, plan: SearchPlan, query: SearchQuery) -> list[int]:
    if plan.alternatives:
        found = TextIndex(connection, query).find(plan)
    elif query.text.strip():
        return []
    else:
        found = TextIndex(connection, query).latest(MESSAGES_MOST)
    return sorted({match.message_id for match in found})


def _unanswered(
    connection: Connection, found: ErasureList, query: SearchQuery, quoting: Quoting, request: ErasureRequest
) -> list[ErasureItem]:
    """Adds what is meant of the unanswered events and returns those that are no messages yet; a command goes for its
    words."""
    shown, known = [], set(found.ids["messages"])
    for key, inbound, message_id in erasure.waiting(connection, found.scopes):
        if request.is_limited and inbound.sender.id != request.account.user_id:
            continue
        texts = (inbound.text, inbound.command.arguments if inbound.command else "")
        has_words = quoting.has_words(*texts, *(attachment.name for attachment in inbound.attachments))
        is_meant = message_id in known or _is_asked_for(inbound, query, has_words=has_words)
        if is_meant and message_id not in known:
            found.unread += 1
            shown.append(ErasureItem(kind="message", text=inbound.text, at=inbound.sent_at, who=inbound.sender.name))
        if is_meant or (inbound.command and has_words):
            found.ids["waiting"].append(key)
    return shown


def _is_asked_for(inbound: Inbound, query: SearchQuery, *, has_words: bool) -> bool:
    """Whether a waiting message has the words and passes the filters that apply to it."""
    return (
        inbound.kind == "message"
        and inbound.command is None
        and (has_words or not query.text)
        and "user" in query.roles
        and query.session is None
        and query.title is None
        and (not query.platforms or inbound.address.platform in query.platforms)
        and (query.after is None or inbound.sent_at >= query.after)
        and (query.before is None or inbound.sent_at < query.before)
        and (not query.sender or query.sender.casefold() in (inbound.sender.id, inbound.sender.name.casefold()))
    )


class _CopySearch:
    """Fills `found` with everything that repeats its messages."""

    def __init__(self, connection: Connection, found: ErasureList, quoting: Quoting, request: ErasureRequest) -> None:
        self._connection = connection
        self._ids = found.ids
        self._quoting = quoting
        self._request = request
        self._made_from = set(found.ids["messages"])
        self.shown: list[ErasureItem] = []
        own = {scope.key.removeprefix("account:") for scope in request.scopes} | {request.account.key}
        self._values = {
            "scopes": list_value(found.scopes),
            "account": account_key(request.account),
            "limited": request.is_limited,
            "owner": request.is_owner,
            "own": list_value(sorted(own)),
        }

    def run(self) -> None:
        for kind in ("facts", "fact_changes", "note_changes", "pending_notes", "jobs"):
            self._copies(kind)
        self._conversation()
        self._made_from.update(self._ids["repeats"])
        self._copies("titles", made_of_it=self._sessions(erasure.OPENED_BY))
        for kind in ("prompts", "sources", "names", "outbox", "actions", "updates"):
            self._copies(kind)

    def _copies(self, kind: str, made_of_it: set[int] | frozenset[int] = frozenset()) -> None:
        touched = [*self._ids["messages"], *self._ids["repeats"], *self._ids["fences"]]
        values = {
            **self._values,
            "facts": list_value(self._ids["facts"]),
            "sources": list_value(self._ids["sources"]),
            "touched": list_value(touched),
        }
        found, entries = self._ids[kind], set(self._ids["entries"])
        for row_id, message_id, at, texts in erasure.copies(self._connection, kind, values):
            if kind == "outbox":
                texts = list(_delivered(texts[0]))
            is_made_of_it = message_id in self._made_from or row_id in made_of_it
            if not is_made_of_it and not self._is_meant(*texts, by_words=kind == "updates"):
                continue
            found.append(row_id)
            if kind == "note_changes":
                # The digests of what these versions say name the notes themselves.
                last = texts[-1:] if is_made_of_it else []
                entries.update(digest(text) for text in {*last, *filter(self._is_meant, texts)})
            elif kind in ("facts", "jobs") and at is not None:
                self.shown.append(ErasureItem(kind="fact" if kind == "facts" else "job", text=texts[0], at=moment(at)))
        self._ids["entries"] = sorted(entries)

    def _sessions(self, statement: str) -> set[int]:
        found = self._connection.execute(statement, {"messages": list_value(self._ids["messages"])})
        return {row[0] for row in found}

    def _is_meant(self, *texts: str, by_words: bool = False) -> bool:
        """In a room the words of a query are others' words too: only what was said counts, unless the texts are the
        asker's alone."""
        may_by_words = by_words or not self._request.is_limited
        return (may_by_words and self._quoting.has_words(*texts)) or self._quoting.repeats(*texts)

    def _conversation(self) -> None:
        known = self._made_from
        near, first = self._sessions(erasure.SESSIONS_OF), min(known, default=0)
        lines = [f"- m{one} " for one in self._ids["messages"]] + [f"- f{one} " for one in self._ids["facts"]]
        values = {**self._values, "first": first, "messages": list_value(self._ids["messages"])}
        for row in self._connection.execute(erasure.CONVERSATION, values):
            if row["id"] in known:
                continue
            is_apart = row["kind"] != "chat" or row["blocks"] is not None
            is_answer = row["session_id"] in near and row["id"] > first
            if (is_apart or is_answer) and self._is_repeat(row, is_apart=is_apart):
                self._ids["repeats"].append(row["id"])
            elif row["sent"] and self._is_in_context(row["sent"], lines):
                self._ids["fences"].append(row["id"])

    def _is_in_context(self, sent: str, lines: list[str]) -> bool:
        """Whether what was sent below the question repeats it, or names its id."""
        context = "\n".join(str(block.get("text", "")) for block in json.loads(sent)[2:])
        return bool(context) and (self._is_meant(context) or any(line in context for line in lines))

    def _is_repeat(self, row: Row, *, is_apart: bool) -> bool:
        """An answer goes for a longer stretch; what is not talk (commands, results of tools) also for the words alone
        and for short copies."""
        said = (row["text"], row["tools"], row["blocks"])
        is_own = row["role"] == "user" and row["sender_id"] == self._request.account.user_id
        if row["role"] == "user" and (row["kind"] != "command" or (self._request.is_limited and not is_own)):
            return False
        if not is_apart:
            return self._quoting.repeats(*said)
        may_by_words = is_own or not self._request.is_limited
        return (may_by_words and self._quoting.has_words(*said)) or self._quoting.copies(*said)


def _delivered(payload: str) -> Iterator[str]:
    yield payload
    for file in json.loads(payload).get("files", ()):
        content = base64.b64decode(file["content"])
        if file["mime"] == "application/gzip":
            content = gzip.decompress(content)
        yield content.decode("utf-8", "replace")
