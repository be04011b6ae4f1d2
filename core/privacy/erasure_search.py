"""Finds what an erasure takes: the messages of a query, and every row that repeats them. Only reads.

Messages are found as recall finds them, copies by the words and by stretches of what was said.
"""

from __future__ import annotations

from dataclasses import replace

from core.errors import Refused
from core.privacy.quoting import Quoting
from core.search.query import inflected
from core.store import erasure
from core.store.engine import Connection, Row
from core.store.erasure import ErasureItem, ErasureList
from core.store.query import DEFAULT_ROLES, SearchPlan, SearchQuery
from core.store.rows import load_inbound, moment
from core.store.sqlite.dialect import list_value
from core.store.sqlite.text_index import TextIndex, is_stale
from core.text.terms import stop_words

MESSAGES_MOST = 100_000
TOO_COMMON = "Nearly every text has these words. Name what it is about, or put what was said in quotes."
QUOTED_MESSAGES = 2_000
"""How many of the found messages, the newest, are looked for in copies."""
_SAYING = "all anything ever everything mention mentioned said say talk talked tell told"
"""With the stop words: what stands around the subject of a sentence that says what to forget."""


def find(connection: Connection, found: ErasureList, query: SearchQuery) -> Quoting:
    """Fills a list with what a query finds, of one that was shown with messages that were there then; gives what
    recognises repetitions. Raises Refused while indexes are rebuilt, and for words that every text has."""
    if is_stale(connection):
        raise Refused("The search index is being built anew, so something could be overlooked. Try again soon.")
    request = found.request
    is_narrowed = query != SearchQuery(text=query.text, scopes=query.scopes, asker=query.asker)
    roles = query.roles if query.roles != DEFAULT_ROLES else (*query.roles, "tool")
    query = replace(query, scopes=request.scopes, asker=request.account, roles=roles)
    if request.is_limited:
        query = replace(query, is_own=True, roles=("user",), scopes=frozenset({request.scope}))
    if found.made_at is None:
        found.upto = int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])
    else:
        found.ids["asked"] = [row["id"] for row in connection.execute(erasure.ASKED, found.values)]
    plan, ids = _messages(connection, query)
    ids.update(found.ids["messages"])
    said = connection.execute(erasure.SAID, {**found.values, "messages": list_value(ids)}).fetchall()
    found.ids["messages"], found.texts = [row["id"] for row in said], [row["text"] for row in said]
    for row in said:
        who = "I" if row["role"] != "user" else row["sender_name"] or ""
        found.shown.append(ErasureItem(kind="message", text=row["text"], at=moment(row["created_at"]), who=who))
    quoting = Quoting(plan.terms, found.texts[-QUOTED_MESSAGES:], is_any=len(plan.alternatives) > 1)
    _find_unanswered(connection, found, Quoting(()) if is_narrowed else quoting)
    _CopySearch(connection, found, quoting).run()
    return quoting


def _messages(connection: Connection, query: SearchQuery) -> tuple[SearchPlan, set[int]]:
    """What the words mean, and the messages that have them: of a sentence, those that have its subject."""
    plan, words = inflected(query.text), query.text.split()
    beside = stop_words().union(_SAYING.split())
    subject = [word for word in words if word.strip("?!.,").casefold() not in beside]
    if words and not subject:
        raise Refused(TOO_COMMON)
    ids = _matching(connection, plan, query)
    if not ids and len(subject) < len(words) and '"' not in query.text:
        plan = inflected(" ".join(subject))
        ids = _matching(connection, plan, query)
    return plan, ids


def _matching(connection: Connection, plan: SearchPlan, query: SearchQuery) -> set[int]:
    if not plan.alternatives and query.text.strip():
        return set()
    index = TextIndex(connection, query)
    return {one.message_id for one in (index.find(plan) if plan.alternatives else index.latest(MESSAGES_MOST))}


def _find_unanswered(connection: Connection, found: ErasureList, words: Quoting) -> None:
    """Adds the unanswered events that have the words, and shows those that are no messages yet."""
    known, request = set(found.ids["messages"]), found.request
    for row in connection.execute(erasure.WAITING, found.values):
        inbound = load_inbound(row["inbound"])
        arguments = inbound.command.arguments if inbound.command else None
        names = [one.name for one in inbound.attachments]
        is_message, is_own = row["message_id"] in known, inbound.sender.id == request.account.user_id
        if is_message or ((is_own or not request.is_limited) and words.has_words(inbound.text, arguments, *names)):
            found.ids["inbox"].append(row["id"])
            if not is_message and inbound.command is None:
                who = inbound.sender.name
                found.shown.append(ErasureItem(kind="message", text=inbound.text, at=inbound.sent_at, who=who))


class _CopySearch:
    """Fills `found` with everything that repeats its messages."""

    def __init__(self, connection: Connection, found: ErasureList, quoting: Quoting) -> None:
        self._connection = connection
        self._found = found
        self._quoting = quoting
        self._is_limited = found.request.is_limited
        self._made_from = set(found.ids["messages"])

    def run(self) -> None:
        self._conversation()
        self._made_from.update(self._found.ids["repeats"])
        for kind in erasure.COPIES:
            self._copies(kind)

    def _copies(self, kind: str) -> None:
        found, made_of_it = self._found, self._sessions(erasure.OPENED_BY) if kind == "titles" else set()
        for row_id, message_id, at, *columns in self._connection.execute(erasure.COPIES[kind][0], found.values):
            texts = [text for text in columns if text]
            is_made_of_it = message_id in self._made_from or row_id in made_of_it
            # Exports are made again rather than looked through.
            has_files = kind == "outbox" and '"files":[{' in texts[0]
            if not (is_made_of_it or has_files or self._is_meant(*texts, by_words=kind == "updates")):
                continue
            found.ids[kind].append(row_id)
            if kind == "note_changes":
                found.notes.update(texts[-1:] if is_made_of_it else [], filter(self._is_meant, texts))
            elif kind in ("facts", "jobs") and at is not None:
                found.shown.append(ErasureItem(kind="fact" if kind == "facts" else "job", text=texts[0], at=moment(at)))

    def _sessions(self, statement: str) -> set[int]:
        return {row[0] for row in self._connection.execute(statement, self._found.values)}

    def _is_meant(self, *texts: str, by_words: bool = False) -> bool:
        """In a room the words of a query are others' too: only what was said counts, unless the texts are one's own."""
        may_by_words = by_words or not self._is_limited
        return (may_by_words and self._quoting.has_words(*texts)) or self._quoting.repeats(*texts)

    def _conversation(self) -> None:
        near, values = self._sessions(erasure.SESSIONS_OF), self._found.values
        for row in self._connection.execute(erasure.CONVERSATION, values):
            is_apart = row["kind"] != "chat" or row["blocks"] is not None
            is_answer = row["session_id"] in near and row["id"] > values["first"]
            if row["id"] not in self._made_from and (is_apart or is_answer) and self._is_repeat(row, is_apart=is_apart):
                self._found.ids["repeats"].append(row["id"])
                self._found.texts.append(row["text"])

    def _is_repeat(self, row: Row, *, is_apart: bool) -> bool:
        """An answer goes for a longer stretch; a command or a tool's result also for the words and for short copies."""
        said = (row["text"], row["tools"], row["blocks"])
        is_own = row["role"] == "user" and row["sender_id"] == self._found.request.account.user_id
        if row["role"] == "user" and (row["kind"] != "command" or (self._is_limited and not is_own)):
            return False
        if not is_apart:
            return self._quoting.repeats(*said)
        may_by_words = is_own or not self._is_limited
        return (may_by_words and self._quoting.has_words(*said)) or self._quoting.copies(*said)
