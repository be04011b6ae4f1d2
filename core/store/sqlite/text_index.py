"""What the text indexes answer within one transaction: messages for a plan, chunks for terms, words that were said.

Scope and filters stand in the WHERE of every statement, before any limit. Messages come lazily, as ids and scores only.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice
from threading import Lock
from typing import Any, TypeAlias

from core.store.query import (
    DEFAULT_ROLES,
    CandidateMessage,
    Clause,
    MessageMatch,
    SearchPlan,
    SearchQuery,
)
from core.store.rows import DELEGATED, Connection, bounded, clean, meta, scope_parameter, timestamp, visible
from core.store.sqlite.schema import SHOWN, STALE, day_of, in_list, list_value, scoped
from core.text.normalize import SCOPE, VERSION, bare, is_unspaced
from core.text.terms import is_of_oneself, is_question, name_terms, terms_of

Terms: TypeAlias = tuple[str, ...]
Choice: TypeAlias = tuple[Mapping[str, int], Sequence[str]]
"""A chunk is chosen by a leading term (given with its frequency); lending ones only rank it."""

SHORT_CHARS, LONG_CHARS = 500, 1_500_000
"""The terms of 1,000 texts up to the first are remembered, 1 MB as people write, and those of longer ones up to the
second in all, 3 MB; of both up to 30 MB if all is Chinese and as long as that."""
VALUE_CHARS = 200
"""A title or a name is compared by so much of it; folding can make eighteen characters of one."""
FEW_SHARE = 0.2
NEWEST, NEWEST_UNSPACED = 4_000, 300
"""What matches more often is ranked among the newest so many first, and what is older only where these do not give
enough: to rank all is what costs. A word of a script without spaces is common sooner."""
SESSIONS_LOOKED_AT = 1_000
"""Where there are no words, the latest messages are looked for in so many sessions."""
CHUNKS_READ, CHUNKS_FOR_A_TURN = 40, 10
"""Few passages are wanted for a turn: 78.3 / 93.8 at hit@1 / hit@5 of LoCoMo, with 40 chunks 78.2 / 93.9."""
RANKED_CHUNKS = 3_000
LINEAGES_READ = 12
DATED_CHUNKS, DATED = 200, 2
"""Of the best so many chunks, those of the time that the question names count so much more when conversations are
chosen: +0.7 / +2.4 at hit@1 / hit@5 on phone notes, 0 / +0.5 on chats in one store."""
VECTORS_AT_ONCE = 512
TAIL_MESSAGES = 256
"""What is in no chunk yet is read at search, up to this many messages."""

_VISIBLE = visible("sessions.scope_id")
_JOINS = """
    CROSS JOIN messages ON messages.id = hits.rowid
    CROSS JOIN sessions ON sessions.id = messages.session_id
"""
_OWN = """(messages.role = 'user' AND (
    sessions.scope_id IN (SELECT id FROM scopes WHERE key IN (SELECT value FROM json_each(:private)))
    OR addresses.platform || ':' || messages.sender_id IN (SELECT value FROM json_each(:accounts))
))"""
_SENDER = "(messages.sender_id = :sender_id OR instr(' ' || bare(messages.sender_name), :sender) > 0)"
_LINEAGE = f"""(sessions.id = :session OR COALESCE(sessions.root_id, (
    SELECT COALESCE(asking.root_id, asking.id) FROM sessions AS asking
    WHERE asking.id = sessions.parent_id AND sessions.is_delegated AND :has_delegated
), sessions.id) = (
    SELECT COALESCE(own.root_id, own.id) FROM sessions AS own WHERE own.id = :session AND {visible("own.scope_id")}
))"""
_ROOT = "COALESCE(sessions.root_id, sessions.id)"
_FIELDS = f"messages.id, messages.session_id, {_ROOT}"
_SCOPES = f"""
    SELECT scopes.id, (SELECT chunks FROM chunk_counts WHERE scope_id = scopes.id),
        (SELECT COALESCE(MAX(id), 0) FROM chunks)
    FROM scopes WHERE {visible("scopes.id")}
"""
_FREQUENCIES = """
    SELECT chunk_vocabulary.term, chunk_vocabulary.doc
    FROM json_each(:terms) CROSS JOIN chunk_vocabulary ON chunk_vocabulary.term = json_each.value
"""
EPOCH = date(1970, 1, 1).toordinal()
_CANDIDATE_TEXT = "messages.text, messages.sender_name, messages.created_at"

VERSION_KEY = "index_version"
UNTIL = "chunked_until"
"""Key of `state_meta`: the last message that chunks have taken in."""
_FRESH = """
SELECT 1 FROM state_meta WHERE key = :key AND value = :version AND NOT EXISTS (
    SELECT 1 FROM state_meta WHERE key = :stale
)
"""


def is_stale(connection: Connection) -> bool:
    """Whether the indexes are known not to hold what the messages say."""
    values = {"stale": STALE, "key": VERSION_KEY, "version": str(VERSION)}
    return connection.execute(_FRESH, values).fetchone() is None


def until(connection: Connection) -> int:
    return int(meta(connection, UNTIL) or 0)


class TextIndex:
    """The indexes as `query` may see them. Raises sqlite3.DatabaseError where one is damaged."""

    def __init__(self, connection: Connection, query: SearchQuery) -> None:
        self._connection = connection
        self._query = query
        self._conditions, self._parameters = _filters(query)  # beside `_VISIBLE`, which stands in every statement
        self._parameters["scopes"] = scope_parameter(query.scopes)
        self._held: set[str] = set()  # terms with their scopes that were counted in chunks
        self._places = _places(self._conditions)

    def find(self, plan: SearchPlan) -> Iterator[MessageMatch]:
        """The messages of a plan, best first, lazily."""
        if not plan.alternatives:
            return
        # Where the scopes hold little of the store, tied to the words that name them; else asking for these costs more.
        scopes, chunks, all_chunks = self._sizes
        expression = expression_of(plan)
        if scopes and chunks < FEW_SHARE * all_chunks:
            names = " OR ".join(f'"{SCOPE}{scope}"' for scope in scopes)
            expression = f"({expression}) AND ({names})"
        clauses = chain.from_iterable(plan.alternatives)
        is_unspaced_asked = any(is_unspaced(text) for one in clauses for phrase in one.phrases for text in phrase.texts)
        yield from self._ranked(expression, NEWEST_UNSPACED if is_unspaced_asked else NEWEST)

    def latest(self, most: int) -> Iterator[MessageMatch]:
        """Without words: what the filters let through, the newest, at most so many a session."""
        narrowed, wanted = session_filters(self._query)
        lineage = "" if self._query.session is None else f"AND {_LINEAGE}"
        for session in self._connection.execute(
            f"""
            SELECT sessions.id FROM sessions CROSS JOIN addresses ON addresses.id = sessions.address_id
            WHERE {_VISIBLE} {narrowed} {lineage}
            ORDER BY sessions.last_at DESC LIMIT {SESSIONS_LOOKED_AT}
            """,
            {**self._parameters, **wanted},
        ).fetchall():
            yield from self._matches(
                f"""
                SELECT {_FIELDS}, 0.0 FROM messages
                CROSS JOIN sessions ON sessions.id = messages.session_id {self._places}
                WHERE messages.session_id = :place AND messages.kind = 'chat' AND messages.text <> ''
                    AND {_VISIBLE} AND {self._conditions}
                ORDER BY messages.id DESC LIMIT :most
                """,
                {**self._parameters, "place": session[0], "most": most},
            )

    def vectors(self, model: str, size_bytes: int) -> Iterator[tuple[list[MessageMatch], bytes]]:
        """Messages with a vector of the model, unscored, and the vectors one behind the other: some at once, which stay
        in the processor's cache."""
        cursor = self._connection.execute(
            f"""
            SELECT {_FIELDS}, message_vectors.vector FROM sessions
            CROSS JOIN messages ON messages.session_id = sessions.id
            CROSS JOIN message_vectors ON message_vectors.message_id = messages.id {self._places}
            WHERE message_vectors.model = :model AND length(message_vectors.vector) = :size_bytes AND {SHOWN}
                AND {_VISIBLE} AND {self._conditions}
            """,
            {**self._parameters, "model": model, "size_bytes": size_bytes},
        )
        while rows := cursor.fetchmany(VECTORS_AT_ONCE):
            yield (
                [MessageMatch(id_, session, root, 0.0) for id_, session, root, _ in rows],
                b"".join(row[3] for row in rows),
            )

    def among(self, ids: Sequence[int]) -> list[MessageMatch]:
        """Those of the messages that are still there and that the query may see and wants, in this order."""
        statement = f"""
            SELECT {_FIELDS}, 0.0 FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value
            CROSS JOIN sessions ON sessions.id = messages.session_id {self._places}
            WHERE {SHOWN} AND {_VISIBLE} AND {self._conditions} ORDER BY json_each.key
        """
        return list(self._matches(statement, {**self._parameters, "ids": list_value(ids)}))

    def _matches(self, statement: str, parameters: Mapping[str, Any]) -> Iterator[MessageMatch]:
        return (MessageMatch(*row[:4]) for row in self._connection.execute(statement, parameters))

    @cached_property
    def _sizes(self) -> tuple[list[int], int, int]:
        """The numbers of the query's scopes, how many chunks these have, and about how many there are."""
        rows = self._connection.execute(_SCOPES, {"scopes": self._parameters["scopes"]}).fetchall()
        return [row[0] for row in rows], sum(row[1] or 0 for row in rows), rows[0][2] if rows else 0

    @property
    def chunks(self) -> int:
        """How many chunks the query may see."""
        return self._sizes[1]

    def frequencies(self, terms: Iterable[str], most_scopes: int | None = None) -> dict[str, int]:
        """In how many chunks that the query may see, or of so many of its scopes, each of the terms stands."""
        found = dict.fromkeys(terms, 0)
        known = {scoped(scope, term): term for term in found for scope in self._sizes[0][:most_scopes]}
        if known:
            for term, number in self._connection.execute(_FREQUENCIES, {"terms": list_value(known)}):
                found[known[term]] += number
                self._held.add(term)
        return found

    def _any_of(self, terms: Iterable[str]) -> str:
        """Only where a term stands: to look up each that a scope has not costs as much as one that it has."""
        return " OR ".join(
            f'"{one}"' for scope in self._sizes[0] for term in terms if (one := scoped(scope, term)) in self._held
        )

    @cached_property
    def latest_terms(self) -> Counter[str]:
        """The terms of what is in no chunk yet, of who said it and when, and how often each was said."""
        return Counter(chain.from_iterable((*one.terms, *one.name, *one.day) for _, one in self._tail))

    def candidates(self, choices: Iterable[Choice], part: int = 0) -> dict[int, list[CandidateMessage]]:
        """By lineage, messages of the best chunks and of none yet: those of the first choice, then those of the next.
        `part` 1 is the next lineages, so that no page changes the order of one before it."""
        chosen: list[int] = []
        parts: dict[int, int] = {}
        read = CHUNKS_FOR_A_TURN if self._query.is_turn else CHUNKS_READ
        ranked = chain.from_iterable(map(self._chunks_of, choices))
        for place, (chunk_id, root) in enumerate(islice(ranked, (part + 1) * read)):
            if parts.setdefault(root, max(len(parts) // LINEAGES_READ, place // read)) == part:
                chosen.append(chunk_id)
        found = [*map(_candidate, self._of_chunks(chosen)), *(self._tail if part == 0 else ())]
        lineages: dict[int, dict[int, CandidateMessage]] = {}
        for root, message in found:
            lineages.setdefault(root, {})[message.message_id] = message
        return {
            root: sorted(messages.values())
            for root, messages in lineages.items()
            if any(message.is_wanted for message in messages.values())
        }

    def _chunks_of(self, choice: Choice) -> Iterator[tuple[int, int]]:
        """`best_chunks`, of which those of the time that the query names go before."""
        leading, lending = choice
        expression = self._any_of(leading)
        if not expression:
            return iter(())
        if also := self._any_of(lending):
            expression = f"({expression}) AND ({expression} OR {also})"
        ranked = self.best_chunks(expression, sum(leading.values()))
        if periods := sorted(self._query.periods):
            begins, ends = zip(*periods, strict=True)
            ends = tuple(accumulate(ends, max))  # of those that have begun, the latest

            def score(one: tuple[int, int, float, float]) -> float:
                day = EPOCH + int(one[3] // 86_400)
                begun = bisect_right(begins, day + 1)
                return one[2] * (DATED if begun and day - 1 <= ends[begun - 1] else 1)

            ranked = chain(sorted(islice(ranked, DATED_CHUNKS), key=score), ranked)
        return ((chunk, root) for chunk, root, *_ in ranked)

    def best_chunks(
        self, expression: str, found: int, most: int = RANKED_CHUNKS
    ) -> Iterator[tuple[int, int, float, float]]:
        """Chunks with their lineage, bm25 (less is better) and first moment, best first; beyond `most` the newest come
        first, because to rank all is what costs."""
        parameters = {**self._parameters, "expression": expression}
        split = None
        if found > most:
            split = self._connection.execute(
                "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :expression "
                "ORDER BY rowid DESC LIMIT 1 OFFSET :most",
                {**parameters, "most": most},
            ).fetchone()
        parameters["split"] = 0 if split is None else split[0]
        for stretch in ("> :split",) if split is None else ("> :split", "<= :split"):
            yield from self._connection.execute(
                f"""
                SELECT chunks.id, {_ROOT}, chunks_fts.rank,
                    (SELECT created_at FROM messages WHERE messages.id = chunks.first_id)
                FROM chunks_fts
                CROSS JOIN chunks ON chunks.id = chunks_fts.rowid
                CROSS JOIN sessions ON sessions.id = chunks.session_id {self._places}
                WHERE chunks_fts MATCH :expression AND chunks_fts.rowid {stretch} AND {_VISIBLE}
                    AND EXISTS (
                        SELECT 1 FROM messages WHERE messages.session_id = chunks.session_id
                            AND messages.id BETWEEN chunks.first_id AND chunks.last_id AND {SHOWN}
                            AND {self._conditions}
                    )
                ORDER BY chunks_fts.rank
                """,
                parameters,
            )

    @cached_property
    def _is_own(self) -> Filter:
        """Whether a candidate is of who asks; of none where they do not ask about themselves."""
        return _own(self._query) if is_of_oneself(self._query.text) else ("0", {})

    def _of_chunks(self, ids: Sequence[int]) -> Iterable[Any]:
        own, values = self._is_own
        return self._connection.execute(
            f"""
            SELECT {_FIELDS}, chunks.place, {_CANDIDATE_TEXT}, ({self._conditions}) AS is_wanted, {own} AS is_own
            FROM json_each(:ids) CROSS JOIN chunks ON chunks.id = json_each.value
            CROSS JOIN messages ON messages.session_id = chunks.session_id
                AND messages.id BETWEEN chunks.first_id AND chunks.last_id
            CROSS JOIN sessions ON sessions.id = messages.session_id {_places(self._conditions, own)}
            WHERE {SHOWN} AND {_VISIBLE}
            """,
            {**self._parameters, **values, "ids": list_value(ids)},
        )

    @cached_property
    def _tail(self) -> list[tuple[int, CandidateMessage]]:
        """What is in no chunk yet, with the lineage of each."""
        own, values = self._is_own
        rows = self._connection.execute(
            f"""
            SELECT {_FIELDS},
                (SELECT COALESCE(MAX(place), -1) + 1 FROM chunks WHERE chunks.session_id = messages.session_id),
                {_CANDIDATE_TEXT}, ({self._conditions}) AS is_wanted, {own} AS is_own
            FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id {_places(self._conditions, own)}
            WHERE messages.id > :until AND {SHOWN} AND {_VISIBLE}
            ORDER BY messages.id DESC LIMIT {TAIL_MESSAGES}
            """,
            {**self._parameters, **values, "until": until(self._connection)},
        )
        return list(map(_candidate, rows))

    def _ranked(self, expression: str, most: int) -> Iterator[MessageMatch]:
        """The newest by rank, then all else. Ranked before anything is joined, or FTS5 computes ranks twice."""
        matching = "FROM messages_fts WHERE messages_fts MATCH :expression"
        ranked = f"SELECT rowid AS id, rank AS score {matching}"
        number = most
        parameters = {**self._parameters, "expression": expression, "most": most}
        for row in self._connection.execute(self._joined(f"{ranked} ORDER BY rowid DESC LIMIT :most"), parameters):
            number = row[4]
            yield MessageMatch(*row[:4])
        if number < most:
            return
        split = self._connection.execute(
            f"SELECT rowid {matching} ORDER BY rowid DESC LIMIT 1 OFFSET :most", parameters
        ).fetchone()
        if split is not None:
            rest = self._joined(f"{ranked} AND rowid <= :split LIMIT -1")
            yield from self._matches(rest, {**parameters, "split": split[0]})

    def _joined(self, found: str) -> str:
        """Rows that the conditions let through, and how many were found. A LIMIT, be it none, keeps a subquery's
        order."""
        return f"""
            WITH hits (rowid, score) AS MATERIALIZED (SELECT id, score FROM ({found}) ORDER BY score, id DESC LIMIT -1)
            SELECT {_FIELDS}, -hits.score, (SELECT COUNT(*) FROM hits)
            FROM hits {_JOINS} {self._places} WHERE {_VISIBLE} AND {self._conditions}
        """


def _places(*conditions: str) -> str:
    """The join that conditions on addresses need; to look up the place of each match costs a tenth of a search."""
    is_placed = any("addresses." in condition for condition in conditions)
    return "CROSS JOIN addresses ON addresses.id = sessions.address_id" if is_placed else ""


def _candidate(row: Sequence[Any]) -> tuple[int, CandidateMessage]:
    """A row of a statement over candidates: its lineage, and the message."""
    message_id, session_id, root, place, text, name, at, is_wanted, is_own = row
    said = (_short if len(text) <= SHORT_CHARS else _long)(text, name, at)
    day = EPOCH + int(at // 86_400)
    return root, CandidateMessage(message_id, session_id, place, *said, bool(is_wanted), day, bool(is_own))


_Said: TypeAlias = tuple[Terms, Terms, Terms, bool]


def _said(text: str, name: str | None, at: float) -> _Said:
    """Terms of the text, of who said it and when, and whether it is a question. Pairs of unspaced characters are made
    anew for each text; as one string for all they take a tenth."""
    return tuple(map(sys.intern, terms_of(text))), name_terms(name or ""), day_of(at), is_question(text)


_short = lru_cache(maxsize=1_000)(_said)
"""Of the latest messages, which are read over and over."""


class _Long:
    """The same of long texts, the latest asked for, by their characters in all; for any thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str | None, float], _Said] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def __call__(self, text: str, name: str | None, at: float) -> _Said:
        key = text, name, at
        with self._lock:
            if found := self._known.get(key):
                self._known.move_to_end(key)
                return found
        made = _said(*key)
        with self._lock:
            self._chars += len(text) * (key not in self._known)
            self._known[key] = made
            while self._chars > LONG_CHARS:
                self._chars -= len(self._known.popitem(last=False)[0][0])
        return made


_long = _Long()


Filter = tuple[str, dict[str, Any]]
"""A condition, and what its parameters are bound to."""


def session_filters(query: SearchQuery, sessions: str = "sessions", addresses: str = "addresses") -> Filter:
    """The filters on whole sessions, to be joined to a WHERE; the tables go by these names."""
    filters = _place_filters(query, sessions, addresses)
    if query.after is not None:
        filters.append((f"{sessions}.last_at >= :after", {"after": timestamp(query.after)}))
    if query.before is not None:
        filters.append((f"{sessions}.started_at < :before", {"before": timestamp(query.before)}))
    return _joined([("", {}), *filters])


def _joined(filters: Iterable[Filter]) -> Filter:
    conditions, values = zip(*filters, strict=True)
    return " AND ".join(conditions), {name: value for one in values for name, value in one.items()}


def _place_filters(query: SearchQuery, sessions: str, addresses: str) -> list[Filter]:
    filters: list[Filter] = []
    if query.session is None and not query.has_delegated:
        filters.append((f"{sessions}.id NOT IN ({DELEGATED})", {}))
    if query.platforms:
        filters.append((in_list(f"{addresses}.platform", "platforms"), {"platforms": list_value(query.platforms)}))
    if query.title:
        title = bare(clean(query.title[:VALUE_CHARS]))
        filters.append((f"instr(bare({sessions}.title), :title) > 0", {"title": title}))
    return filters


def _filters(query: SearchQuery) -> Filter:
    """Only what is asked for, so that a plain search reads little of a row."""
    filters: list[Filter] = []
    if query.roles == DEFAULT_ROLES:
        # To look into a list takes a table of its own, which costs as much as three rows.
        filters.append(("messages.role IN ('user', 'assistant')", {}))
    else:
        filters.append((in_list("messages.role", "roles"), {"roles": list_value(query.roles)}))
    filters += _place_filters(query, "sessions", "addresses")
    sender = clean((query.sender or "")[:VALUE_CHARS])
    if name := bare(sender).strip():
        # A name begins where a word begins: Ana is not Diana. Names without blanks are found inside of others.
        filters.append((_SENDER, {"sender_id": sender, "sender": name if is_unspaced(name) else f" {name}"}))
    if query.is_own:
        filters.append(_own(query))
    if query.after is not None:
        filters.append(("messages.created_at >= :after", {"after": timestamp(query.after)}))
    if query.before is not None:
        filters.append(("messages.created_at < :before", {"before": timestamp(query.before)}))
    if query.session is not None:
        filters.append((_LINEAGE, {"session": bounded(query.session), "has_delegated": query.has_delegated}))
    for number, span in enumerate(query.hidden):
        session, first, last = names = [f"hidden_{part}_{number}" for part in ("session", "first", "last")]
        is_elsewhere = f"(messages.session_id <> :{session} OR messages.id NOT BETWEEN :{first} AND :{last})"
        filters.append((is_elsewhere, dict(zip(names, map(bounded, span), strict=True))))
    return _joined(filters)


def _own(query: SearchQuery) -> Filter:
    """Said by who asks."""
    private = frozenset(scope for scope in query.scopes if not scope.is_room)
    accounts = {scope.key.partition(":")[2] for scope in private} | ({query.asker.key} if query.asker else set())
    return _OWN, {"private": scope_parameter(private), "accounts": list_value(sorted(map(clean, accounts)))}


def expression_of(plan: SearchPlan) -> str:
    """The plan as FTS5 has it."""
    whole = []
    for clauses in plan.alternatives:
        expression = f"({_all_of(clause for clause in clauses if not clause.is_excluded)})"
        if unwanted := " OR ".join(f"({_all_of([clause])})" for clause in clauses if clause.is_excluded):
            expression = f"({expression} NOT ({unwanted}))"
        whole.append(expression)
    return " OR ".join(whole)


def _all_of(clauses: Iterable[Clause]) -> str:
    """Quoted, so that nothing typed reaches FTS5 as syntax."""
    phrases: list[str] = []
    for phrase in chain.from_iterable(clause.phrases for clause in clauses):
        quoted = ['"' + text.replace('"', '""') + '"' + "*" * phrase.is_prefix for text in phrase.texts]
        phrases.append(quoted[0] if len(quoted) == 1 else f"({' OR '.join(quoted)})")
    return " AND ".join(phrases)


COMMON = 2_000
"""A word that is in more facts than this is not looked for where a rarer one is asked too."""


def text_scores(connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int) -> dict[int, float]:
    """bm25 above 0 by fact id. A word in very many facts counts only where all words are such, then the rarest."""
    words = [scoped(scope_id, term) for scope_id in scope_ids for term in terms]
    counted = connection.execute(
        f"SELECT term, doc FROM facts_vocabulary WHERE {in_list('term', 'words')}", {"words": list_value(words)}
    )
    found = {row["term"]: row["doc"] for row in counted}
    chosen = [word for word, count in found.items() if count <= COMMON] or sorted(found, key=found.__getitem__)[:1]
    if not chosen:
        return {}
    ranked = connection.execute(
        "SELECT rowid AS id, rank AS score FROM facts_fts WHERE facts_fts MATCH :words ORDER BY rank LIMIT :limit",
        {"words": " OR ".join(f'"{word}"' for word in chosen), "limit": limit},
    )
    # A word that is in over half of all facts has a negative weight in FTS5's bm25; it still counts a little.
    return {row["id"]: max(1e-6, -row["score"]) for row in ranked}
