"""Searches the text indexes over messages, chunks and facts, within one transaction.

Scope and filters are part of every statement and apply before any limit. Messages are yielded
lazily, as ids and scores.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from core.store.query import (
    DEFAULT_ROLES,
    CandidateMessage,
    Clause,
    MessageMatch,
    Phrase,
    SearchPlan,
    SearchQuery,
    TextKind,
)
from core.store.rows import (
    DELEGATED_SESSION_IDS,
    Connection,
    clean,
    int64_or_zero,
    to_timestamp,
)
from core.store.sqlite.schema import (
    IS_SHOWN,
    encode_list,
    in_list,
    last_chunked_id,
    scoped_term,
)
from core.store.visibility import scope_parameter, visible
from core.text.normalize import SCOPE_MARKER, comparison_form, is_unspaced
from core.text.terms import is_about_self, message_terms

# --- Limits ---

NEWEST_RANKED = 4_000
"""If a query matches more messages, the newest of them are ranked first.

Older ones follow only if these don't give enough, because ranking is the cost of a search.
"""
NEWEST_UNSPACED_RANKED = 300
"""The same for words of scripts without spaces, which become common sooner."""
SMALL_SHARE = 0.2
"""If the scopes of a query have a smaller share of all chunks, their names are searched too."""
MAX_LATEST_SESSIONS = 1_000
"""The latest messages are looked for in so many sessions."""
MAX_CHUNKS = 40
MAX_CHUNKS_FOR_TURN = 10
"""A turn needs few passages: 78.3 / 93.8 at hit@1 / hit@5 of LoCoMo; 40 chunks give 78.2 / 93.9."""
RANKED_CHUNKS = 3_000
LINEAGES_READ = 12
"""The number of lineages whose messages are read at once."""
MAX_BOOSTED_CHUNKS = 200
PERIOD_BOOST = 2
"""Of the best chunks, those of the period that the query names count this much more.

This is worth +0.7 / +2.4 at hit@1 / hit@5 on phone notes, and 0 / +0.5 on chats in one store.
"""
TAIL_MESSAGES = 256
"""Up to so many messages that aren't part of a chunk yet are read directly."""
VECTORS_AT_ONCE = 512
"""The number of vectors that fit into the cache of the processor."""
MAX_FILTER_CHARS = 200
"""A title or name is compared up to this length. Folding can make eighteen characters of one."""
COMMON_FACT_COUNT = 2_000
"""A word in more facts than this isn't searched if the query has a rarer one."""

# --- Filters ---


class SqlCondition(NamedTuple):
    """An SQL condition and the values of its parameters."""

    sql: str
    values: dict[str, Any]


_VISIBLE = visible("sessions.scope_id")
_IS_ASKERS_OWN = f"""(messages.role = 'user' AND (
    sessions.scope_id IN (SELECT id FROM scopes WHERE {in_list("key", "private")})
    OR {in_list("addresses.platform || ':' || messages.sender_id", "accounts")}
))"""
_IS_FROM_SENDER = (
    "(messages.sender_id = :sender_id OR instr(' ' || bare(messages.sender_name), :sender) > 0)"
)
_IS_IN_LINEAGE = f"""(sessions.id = :session OR COALESCE(sessions.root_id, (
    SELECT COALESCE(asking.root_id, asking.id) FROM sessions AS asking
    WHERE asking.id = sessions.parent_id AND sessions.is_delegated AND :has_delegated
), sessions.id) = (
    SELECT COALESCE(own.root_id, own.id) FROM sessions AS own
    WHERE own.id = :session AND {visible("own.scope_id")}
))"""


def session_filters(
    query: SearchQuery, sessions: str = "sessions", addresses: str = "addresses"
) -> SqlCondition:
    """The filters on whole sessions, beginning with AND.

    `sessions` and `addresses` are the names of the tables in the statement.
    """
    conditions = _session_conditions(query, sessions, addresses)
    after, before = query.filters.after, query.filters.before
    if after is not None:
        conditions.append(
            SqlCondition(f"{sessions}.last_at >= :after", {"after": to_timestamp(after)})
        )
    if before is not None:
        conditions.append(
            SqlCondition(f"{sessions}.started_at < :before", {"before": to_timestamp(before)})
        )
    return _join_conditions([SqlCondition("", {}), *conditions])


def _session_conditions(query: SearchQuery, sessions: str, addresses: str) -> list[SqlCondition]:
    """The filters that only depend on the session."""
    filters = query.filters
    conditions: list[SqlCondition] = []
    if filters.session_id is None and not filters.has_delegated:
        conditions.append(SqlCondition(f"{sessions}.id NOT IN ({DELEGATED_SESSION_IDS})", {}))
    if filters.platforms:
        is_on_platform = in_list(f"{addresses}.platform", "platforms")
        conditions.append(
            SqlCondition(is_on_platform, {"platforms": encode_list(filters.platforms)})
        )
    if filters.title:
        title = comparison_form(clean(filters.title[:MAX_FILTER_CHARS]))
        conditions.append(
            SqlCondition(f"instr(bare({sessions}.title), :title) > 0", {"title": title})
        )
    return conditions


def _message_filters(query: SearchQuery) -> SqlCondition:
    """All filters of a query, without those it doesn't set, so that a search reads few columns."""
    filters = query.filters
    conditions: list[SqlCondition] = []
    if filters.roles == DEFAULT_ROLES:
        # A bound list is read from a table of its own, which costs as much as three rows.
        conditions.append(SqlCondition("messages.role IN ('user', 'assistant')", {}))
    else:
        roles = encode_list(filters.roles)
        conditions.append(SqlCondition(in_list("messages.role", "roles"), {"roles": roles}))
    conditions += _session_conditions(query, "sessions", "addresses")
    sender = clean((filters.sender or "")[:MAX_FILTER_CHARS])
    name = comparison_form(sender).strip()
    if name:
        # A name matches at the beginning of a word, so "Ana" isn't found in "Diana". In scripts
        # without spaces it matches anywhere.
        beginning = name if is_unspaced(name) else f" {name}"
        conditions.append(SqlCondition(_IS_FROM_SENDER, {"sender_id": sender, "sender": beginning}))
    if filters.is_askers_own:
        conditions.append(_askers_own(query))
    if filters.after is not None:
        after = to_timestamp(filters.after)
        conditions.append(SqlCondition("messages.created_at >= :after", {"after": after}))
    if filters.before is not None:
        before = to_timestamp(filters.before)
        conditions.append(SqlCondition("messages.created_at < :before", {"before": before}))
    if filters.session_id is not None:
        lineage = {
            "session": int64_or_zero(filters.session_id),
            "has_delegated": filters.has_delegated,
        }
        conditions.append(SqlCondition(_IS_IN_LINEAGE, lineage))
    conditions += _not_hidden(query)
    return _join_conditions(conditions)


def _askers_own(query: SearchQuery) -> SqlCondition:
    """The condition that the asker sent a message."""
    private = frozenset(scope for scope in query.scopes if not scope.is_group)
    accounts = {scope.key.partition(":")[2] for scope in private}
    if query.asker is not None:
        accounts.add(query.asker.key)
    values = {
        "private": scope_parameter(private),
        "accounts": encode_list(sorted(map(clean, accounts))),
    }
    return SqlCondition(_IS_ASKERS_OWN, values)


def _not_hidden(query: SearchQuery) -> list[SqlCondition]:
    """The conditions that a message isn't in the model's context, one for each span."""
    conditions: list[SqlCondition] = []
    for number, (session_id, first_id, last_id) in enumerate(query.hidden):
        session, first, last = f"session_{number}", f"first_{number}", f"last_{number}"
        sql = f"(messages.session_id <> :{session} OR messages.id NOT BETWEEN :{first} AND :{last})"
        values = {
            session: int64_or_zero(session_id),
            first: int64_or_zero(first_id),
            last: int64_or_zero(last_id),
        }
        conditions.append(SqlCondition(sql, values))
    return conditions


def _join_conditions(conditions: Iterable[SqlCondition]) -> SqlCondition:
    conditions = list(conditions)
    values: dict[str, Any] = {}
    for condition in conditions:
        values |= condition.values
    return SqlCondition(" AND ".join(condition.sql for condition in conditions), values)


def _address_join(*conditions: str) -> str:
    """The join with addresses, if a condition needs it: it costs a tenth of a search."""
    if not any("addresses." in condition for condition in conditions):
        return ""
    return "CROSS JOIN addresses ON addresses.id = sessions.address_id"


# --- Expressions of FTS5 ---


def fts_expression(plan: SearchPlan) -> str:
    """The plan as an expression of FTS5."""
    alternatives = []
    for clauses in plan.alternatives:
        wanted_clauses = [clause for clause in clauses if not clause.is_excluded]
        expression = f"({_all_phrases(wanted_clauses)})"
        exclusions = [f"({_all_phrases([clause])})" for clause in clauses if clause.is_excluded]
        if exclusions:
            expression = f"({expression} NOT ({' OR '.join(exclusions)}))"
        alternatives.append(expression)
    return " OR ".join(alternatives)


def _all_phrases(clauses: Iterable[Clause]) -> str:
    """The expression that a message has all phrases of the clauses."""
    phrases: list[str] = []
    for clause in clauses:
        phrases += map(_phrase_expression, clause.phrases)
    return " AND ".join(phrases)


def _phrase_expression(phrase: Phrase) -> str:
    """Any text of a phrase. Texts are quoted, so FTS5 never reads them as syntax."""
    star = "*" if phrase.is_prefix else ""
    texts = ['"' + text.replace('"', '""') + f'"{star}' for text in phrase.texts]
    return texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"


def _has_unspaced(plan: SearchPlan) -> bool:
    """Whether the plan searches for a word of a script without spaces."""
    for clause in chain.from_iterable(plan.alternatives):
        for phrase in clause.phrases:
            if any(map(is_unspaced, phrase.texts)):
                return True
    return False


# --- Searching messages and chunks ---

_ROOT_ID = "COALESCE(sessions.root_id, sessions.id)"
_MATCH = f"messages.id, messages.session_id, {_ROOT_ID}"
_SCOPE_SIZES = f"""
    SELECT scopes.id, (SELECT chunks FROM chunk_counts WHERE scope_id = scopes.id),
        (SELECT COALESCE(MAX(id), 0) FROM chunks)
    FROM scopes WHERE {visible("scopes.id")}
"""
_TERM_FREQUENCIES = """
    SELECT chunk_vocabulary.term, chunk_vocabulary.doc
    FROM json_each(:terms) CROSS JOIN chunk_vocabulary ON chunk_vocabulary.term = json_each.value
"""
_NEXT_CHUNK_PLACE = """(
    SELECT COALESCE(MAX(place), -1) + 1 FROM chunks WHERE chunks.session_id = messages.session_id
)"""
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_S = 86_400


class ChunkChoice(NamedTuple):
    """The terms by which chunks are chosen."""

    # Terms with their frequencies. A chunk needs at least one.
    leading: Mapping[str, int]
    # Terms that only raise the rank of a chunk.
    lending: Sequence[str]


class RankedChunk(NamedTuple):
    """A chunk that has a term of the query."""

    chunk_id: int
    root_id: int
    # bm25: lower is better.
    score: float
    # The time of its first message, in seconds since 1970.
    started_at: float


class _ScopeSizes(NamedTuple):
    """How much the scopes of a query hold."""

    scope_ids: list[int]
    chunk_count: int
    # The approximate number of chunks in all scopes.
    total_chunk_count: int


class TextIndex:
    """The text indexes as one query may see them.

    Methods raise sqlite3.DatabaseError if an index is damaged.
    """

    def __init__(self, connection: Connection, query: SearchQuery) -> None:
        self._connection = connection
        self._query = query
        # Every statement contains `_VISIBLE`, too.
        self._filters, self._parameters = _message_filters(query)
        self._parameters["scopes"] = scope_parameter(query.scopes)
        self._address_join = _address_join(self._filters)
        # Scoped terms that occur in a chunk, as far as they were counted.
        self._known_terms: set[str] = set()

    def find_messages(self, plan: SearchPlan) -> Iterator[MessageMatch]:
        """The messages that a plan finds, best first, read lazily."""
        if not plan.alternatives:
            return
        expression = fts_expression(plan)
        sizes = self._sizes
        if sizes.scope_ids and sizes.chunk_count < SMALL_SHARE * sizes.total_chunk_count:
            # Searching the words that name the scopes pays only if they have few messages.
            names = " OR ".join(f'"{SCOPE_MARKER}{scope_id}"' for scope_id in sizes.scope_ids)
            expression = f"({expression}) AND ({names})"
        limit = NEWEST_UNSPACED_RANKED if _has_unspaced(plan) else NEWEST_RANKED
        yield from self._rank_messages(expression, limit)

    def _rank_messages(self, expression: str, limit: int) -> Iterator[MessageMatch]:
        """The newest `limit` messages by rank, then the others by rank.

        They are ranked before anything is joined. Otherwise FTS5 computes each rank twice.
        """
        matching = "FROM messages_fts WHERE messages_fts MATCH :expression"
        select = f"SELECT rowid AS id, rank AS score {matching}"
        parameters = {**self._parameters, "expression": expression, "limit": limit}
        newest = self._select_ranked(f"{select} ORDER BY rowid DESC LIMIT :limit")
        # If the filters let no row through, there may still be older ones.
        ranked_count = limit
        for row in self._connection.execute(newest, parameters):
            ranked_count = row[4]
            yield MessageMatch(*row[:4])
        if ranked_count < limit:
            return
        newest_older = self._connection.execute(
            f"SELECT rowid {matching} ORDER BY rowid DESC LIMIT 1 OFFSET :limit", parameters
        ).fetchone()
        if newest_older is not None:
            older = self._select_ranked(f"{select} AND rowid <= :newest_older LIMIT -1")
            yield from self._matches(older, {**parameters, "newest_older": newest_older[0]})

    def _select_ranked(self, ranking: str) -> str:
        """The matches among the rows of `ranking`, a statement, and the number of its rows.

        With a LIMIT, even of -1, a subquery keeps its order.
        """
        return f"""
            WITH hits (rowid, score) AS MATERIALIZED (
                SELECT id, score FROM ({ranking}) ORDER BY score, id DESC LIMIT -1
            )
            SELECT {_MATCH}, -hits.score, (SELECT COUNT(*) FROM hits)
            FROM hits CROSS JOIN messages ON messages.id = hits.rowid
            CROSS JOIN sessions ON sessions.id = messages.session_id {self._address_join}
            WHERE {_VISIBLE} AND {self._filters}
        """

    def latest_messages(self, limit_per_session: int) -> Iterator[MessageMatch]:
        """The latest messages of the latest sessions, for a query without words."""
        filters, values = session_filters(self._query)
        in_lineage = "" if self._query.filters.session_id is None else f"AND {_IS_IN_LINEAGE}"
        sessions = self._connection.execute(
            f"""
            SELECT sessions.id FROM sessions
            CROSS JOIN addresses ON addresses.id = sessions.address_id
            WHERE {_VISIBLE} {filters} {in_lineage}
            ORDER BY sessions.last_at DESC LIMIT {MAX_LATEST_SESSIONS}
            """,
            {**self._parameters, **values},
        ).fetchall()
        statement = f"""
            SELECT {_MATCH}, 0.0 FROM messages
            CROSS JOIN sessions ON sessions.id = messages.session_id {self._address_join}
            WHERE messages.session_id = :latest AND messages.kind = 'chat'
                AND messages.text <> '' AND {_VISIBLE} AND {self._filters}
            ORDER BY messages.id DESC LIMIT :limit
        """
        for session in sessions:
            parameters = {**self._parameters, "latest": session[0], "limit": limit_per_session}
            yield from self._matches(statement, parameters)

    def iter_vectors(
        self, model: str, size_bytes: int
    ) -> Iterator[tuple[list[MessageMatch], bytes]]:
        """Messages with a vector of a model, unscored, and the bytes of their vectors, joined.

        They come in batches that fit into the cache of the processor.
        """
        cursor = self._connection.execute(
            f"""
            SELECT {_MATCH}, message_vectors.vector FROM sessions
            CROSS JOIN messages ON messages.session_id = sessions.id
            CROSS JOIN message_vectors ON message_vectors.message_id = messages.id
            {self._address_join}
            WHERE message_vectors.model = :model AND length(message_vectors.vector) = :size_bytes
                AND {IS_SHOWN} AND {_VISIBLE} AND {self._filters}
            """,
            {**self._parameters, "model": model, "size_bytes": size_bytes},
        )
        while rows := cursor.fetchmany(VECTORS_AT_ONCE):
            matches = [MessageMatch(id_, session, root, 0.0) for id_, session, root, _ in rows]
            yield matches, b"".join(row[3] for row in rows)

    def filter_visible(self, ids: Sequence[int]) -> list[MessageMatch]:
        """Return the messages among `ids` that exist and that the query may see, in their order.

        Only messages that pass the filters of the query are returned.
        """
        statement = f"""
            SELECT {_MATCH}, 0.0
            FROM json_each(:ids) CROSS JOIN messages ON messages.id = json_each.value
            CROSS JOIN sessions ON sessions.id = messages.session_id {self._address_join}
            WHERE {IS_SHOWN} AND {_VISIBLE} AND {self._filters} ORDER BY json_each.key
        """
        return list(self._matches(statement, {**self._parameters, "ids": encode_list(ids)}))

    def _matches(self, statement: str, parameters: Mapping[str, Any]) -> Iterator[MessageMatch]:
        return (MessageMatch(*row[:4]) for row in self._connection.execute(statement, parameters))

    # --- Term frequencies ---

    @cached_property
    def _sizes(self) -> _ScopeSizes:
        values = {"scopes": self._parameters["scopes"]}
        rows = self._connection.execute(_SCOPE_SIZES, values).fetchall()
        return _ScopeSizes(
            scope_ids=[row[0] for row in rows],
            chunk_count=sum(row[1] or 0 for row in rows),
            total_chunk_count=rows[0][2] if rows else 0,
        )

    @property
    def chunk_count(self) -> int:
        """The number of chunks that the query may see."""
        return self._sizes.chunk_count

    def chunk_frequencies(
        self, terms: Iterable[str], max_scopes: int | None = None
    ) -> dict[str, int]:
        """The number of chunks with each term that the query may see.

        If `max_scopes` is given, only so many of its scopes are counted.
        """
        frequencies = dict.fromkeys(terms, 0)
        terms_by_scoped: dict[str, str] = {}
        for term in frequencies:
            for scope_id in self._sizes.scope_ids[:max_scopes]:
                terms_by_scoped[scoped_term(scope_id, term)] = term
        if terms_by_scoped:
            values = {"terms": encode_list(terms_by_scoped)}
            for index_term, count in self._connection.execute(_TERM_FREQUENCIES, values):
                frequencies[terms_by_scoped[index_term]] += count
                self._known_terms.add(index_term)
        return frequencies

    def _any_of(self, terms: Iterable[str]) -> str:
        """The expression for chunks with any of the terms; empty if no chunk has one.

        Unknown terms are left out, because looking one up costs as much as a known one.
        """
        terms = list(terms)
        quoted_terms: list[str] = []
        for scope_id in self._sizes.scope_ids:
            for term in terms:
                index_term = scoped_term(scope_id, term)
                if index_term in self._known_terms:
                    quoted_terms.append(f'"{index_term}"')
        return " OR ".join(quoted_terms)

    @cached_property
    def unchunked_term_counts(self) -> Counter[str]:
        """How often each term occurs in messages that aren't part of a chunk yet.

        The terms of senders' names and of days count too.
        """
        counts: Counter[str] = Counter()
        for _, message in self._tail:
            counts.update(message.terms)
            counts.update(message.name_terms)
            counts.update(message.day_terms)
        return counts

    # --- Candidates for ranking ---

    def load_candidates(
        self, choices: Iterable[ChunkChoice], part: int = 0
    ) -> dict[int, list[CandidateMessage]]:
        """The messages of the best chunks, by lineage.

        The chunks of the first choice come before those of the second. Part 0 also has the messages
        that aren't part of a chunk yet. Each further `part` has the next lineages, so that a later
        page doesn't change the order of the earlier ones.
        """
        messages = list(map(_read_candidate, self._select_chunks(self._chunk_ids(choices, part))))
        if part == 0:
            messages += self._tail
        lineages: dict[int, dict[int, CandidateMessage]] = {}
        for root_id, message in messages:
            lineages.setdefault(root_id, {})[message.message_id] = message
        candidates: dict[int, list[CandidateMessage]] = {}
        for root_id, by_id in lineages.items():
            if any(message.is_candidate for message in by_id.values()):
                candidates[root_id] = sorted(by_id.values())
        return candidates

    def _chunk_ids(self, choices: Iterable[ChunkChoice], part: int) -> list[int]:
        """The chunks of one part. All chunks of a lineage belong to the part of its best chunk."""
        is_turn = self._query.kind is TextKind.TURN
        limit = MAX_CHUNKS_FOR_TURN if is_turn else MAX_CHUNKS
        chunks = chain.from_iterable(map(self._choose_chunks, choices))
        parts: dict[int, int] = {}
        chunk_ids: list[int] = []
        for place, chunk in enumerate(islice(chunks, (part + 1) * limit)):
            if chunk.root_id not in parts:
                parts[chunk.root_id] = max(len(parts) // LINEAGES_READ, place // limit)
            if parts[chunk.root_id] == part:
                chunk_ids.append(chunk.chunk_id)
        return chunk_ids

    def _choose_chunks(self, choice: ChunkChoice) -> Iterator[RankedChunk]:
        """The chunks of one choice, best first. Those of a period that the query names rise."""
        expression = self._any_of(choice.leading)
        if not expression:
            return iter(())
        lending = self._any_of(choice.lending)
        if lending:
            expression = f"({expression}) AND ({expression} OR {lending})"
        chunks = self.best_chunks(expression, sum(choice.leading.values()))
        if not self._query.periods:
            return chunks
        best = sorted(islice(chunks, MAX_BOOSTED_CHUNKS), key=self._boosted_score)
        return chain(best, chunks)

    def _boosted_score(self, chunk: RankedChunk) -> float:
        """The score of a chunk, raised if it is within a day of a period of the query."""
        begins, latest_ends = self._period_bounds
        day = _EPOCH_ORDINAL + int(chunk.started_at // _DAY_S)
        begun_count = bisect_right(begins, day + 1)
        if begun_count and day - 1 <= latest_ends[begun_count - 1]:
            return chunk.score * PERIOD_BOOST
        return chunk.score

    @cached_property
    def _period_bounds(self) -> tuple[list[int], list[int]]:
        """The first days of the query's periods in order, and the latest end up to each of them."""
        periods = sorted(self._query.periods)
        begins = [begin for begin, _ in periods]
        return begins, list(accumulate((end for _, end in periods), max))

    def best_chunks(
        self, expression: str, match_count: int, limit: int = RANKED_CHUNKS
    ) -> Iterator[RankedChunk]:
        """Chunks that match, best first.

        If there are more than `limit`, the newest ones are ranked first and the others after them,
        because ranking is the cost of a search.
        """
        parameters = {**self._parameters, "expression": expression, "limit": limit, "split": 0}
        sides = ["> :split"]
        if match_count > limit:
            newest_older = self._connection.execute(
                "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :expression "
                "ORDER BY rowid DESC LIMIT 1 OFFSET :limit",
                parameters,
            ).fetchone()
            if newest_older is not None:
                parameters["split"] = newest_older[0]
                sides.append("<= :split")
        for side in sides:
            rows = self._connection.execute(
                f"""
                SELECT chunks.id, {_ROOT_ID}, chunks_fts.rank,
                    (SELECT created_at FROM messages WHERE messages.id = chunks.first_id)
                FROM chunks_fts
                CROSS JOIN chunks ON chunks.id = chunks_fts.rowid
                CROSS JOIN sessions ON sessions.id = chunks.session_id {self._address_join}
                WHERE chunks_fts MATCH :expression AND chunks_fts.rowid {side} AND {_VISIBLE}
                    AND EXISTS (
                        SELECT 1 FROM messages WHERE messages.session_id = chunks.session_id
                            AND messages.id BETWEEN chunks.first_id AND chunks.last_id
                            AND {IS_SHOWN} AND {self._filters}
                    )
                ORDER BY chunks_fts.rank
                """,
                parameters,
            )
            yield from map(RankedChunk._make, rows)

    @cached_property
    def _is_own(self) -> SqlCondition:
        """Whether the asker sent a message; never, if the query isn't about the asker."""
        if is_about_self(self._query.text):
            return _askers_own(self._query)
        return SqlCondition("0", {})

    def _candidate_columns(self, chunk_place: str) -> str:
        """The columns that `_read_candidate` reads."""
        return f"""{_MATCH}, {chunk_place}, messages.text, messages.sender_name,
            messages.created_at, ({self._filters}), {self._is_own.sql}"""

    def _select_chunks(self, chunk_ids: Sequence[int]) -> Iterable[Any]:
        """The rows of all messages of the chunks that people may see."""
        return self._connection.execute(
            f"""
            SELECT {self._candidate_columns("chunks.place")}
            FROM json_each(:ids) CROSS JOIN chunks ON chunks.id = json_each.value
            CROSS JOIN messages ON messages.session_id = chunks.session_id
                AND messages.id BETWEEN chunks.first_id AND chunks.last_id
            CROSS JOIN sessions ON sessions.id = messages.session_id
            {_address_join(self._filters, self._is_own.sql)}
            WHERE {IS_SHOWN} AND {_VISIBLE}
            """,
            {**self._parameters, **self._is_own.values, "ids": encode_list(chunk_ids)},
        )

    @cached_property
    def _tail(self) -> list[tuple[int, CandidateMessage]]:
        """The messages that aren't part of a chunk yet, each with its lineage."""
        until = last_chunked_id(self._connection)
        rows = self._connection.execute(
            f"""
            SELECT {self._candidate_columns(_NEXT_CHUNK_PLACE)}
            FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
            {_address_join(self._filters, self._is_own.sql)}
            WHERE messages.id > :until AND {IS_SHOWN} AND {_VISIBLE}
            ORDER BY messages.id DESC LIMIT {TAIL_MESSAGES}
            """,
            {**self._parameters, **self._is_own.values, "until": until},
        )
        return list(map(_read_candidate, rows))


def _read_candidate(row: Sequence[Any]) -> tuple[int, CandidateMessage]:
    """The lineage and the message of a row with `TextIndex._candidate_columns`."""
    message_id, session_id, root_id, place, text, name, created_at, is_candidate, is_own = row
    day_number = _EPOCH_ORDINAL + int(created_at // _DAY_S)
    return root_id, CandidateMessage(
        message_id,
        session_id,
        place,
        *message_terms(text, name or "", day_number),
        bool(is_candidate),
        day_number,
        bool(is_own),
    )


# --- Searching facts ---


def score_facts(
    connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int
) -> dict[int, float]:
    """The best facts with any of the terms: the bm25 score of each fact id, above 0.

    Very common terms are left out. If all are, the rarest of them is used.
    """
    words = [scoped_term(scope_id, term) for scope_id in scope_ids for term in terms]
    rows = connection.execute(
        f"SELECT term, doc FROM facts_vocabulary WHERE {in_list('term', 'words')}",
        {"words": encode_list(words)},
    )
    counts = {row["term"]: row["doc"] for row in rows}
    chosen_words = [word for word, count in counts.items() if count <= COMMON_FACT_COUNT]
    if not chosen_words:
        chosen_words = sorted(counts, key=counts.__getitem__)[:1]
    if not chosen_words:
        return {}
    rows = connection.execute(
        "SELECT rowid AS id, rank AS score FROM facts_fts WHERE facts_fts MATCH :words "
        "ORDER BY rank LIMIT :limit",
        {"words": " OR ".join(f'"{word}"' for word in chosen_words), "limit": limit},
    )
    # FTS5 gives a word that is in over half of all facts a negative weight. It still counts here.
    return {row["id"]: max(1e-6, -row["score"]) for row in rows}
