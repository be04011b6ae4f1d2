"""Search the text indexes over messages and chunks, within one transaction.

Every statement applies the scopes and filters of the query before any limit. Matches are yielded
lazily, as ids with scores.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from core.store.engine import IS_SHOWN, LISTED_ID, NO_CONDITION, Connection, SqlCondition, listed
from core.store.query import (
    CandidateMessage,
    MessageMatch,
    SearchFilters,
    SearchPlan,
    SearchQuery,
    TextKind,
)
from core.store.rows import get_meta, scoped_term
from core.store.search.narrowing import narrow_chunks, narrow_messages
from core.store.visibility import (
    IS_IN_LINEAGE,
    address_join,
    askers_own,
    encode_list,
    message_filters,
    scope_parameter,
    session_filters,
    visible,
)
from core.text.normalize import TERMS_VERSION
from core.text.terms import has_cached_terms, is_about_self, message_terms

# --- Limits ---

SMALL_SHARE = 0.2
"""If the scopes of a query contain a smaller share of all chunks than this, the search also uses
the words that mark these scopes."""
MAX_LATEST_SESSIONS = 1_000
"""A query without words finds messages only in this many of the latest sessions."""
MAX_CHUNKS = 40
MAX_CHUNKS_FOR_TURN = 10
"""A search for a turn reads this many chunks, because it needs few passages. With 10 chunks,
LoCoMo's hit@1 / hit@5 are 78.3 / 93.8. With 40, they are 78.2 / 93.9."""
RANKED_CHUNKS = 3_000
LINEAGES_READ = 12
"""Each part of the candidates contains the messages of at most this many lineages."""
MAX_BOOSTED_CHUNKS = 200
"""Only this many of the best chunks are reordered by `PERIOD_BOOST`."""
PERIOD_BOOST = 2
"""The score of a chunk is multiplied by this if the query names the time of the chunk.

This improves hit@1 / hit@5 by 0.7 / 2.4 points on phone notes, and by 0 / 0.5 points on chats in
one store.
"""
FIRST_MESSAGES = 100
"""Most searches need at most this many ranked messages."""
FIRST_CHUNKS = 100
"""Most searches need at most this many ranked chunks, if the query names no period."""
MAX_COUNTED_TERMS = 10_000
"""Terms that are counted in one step."""
TAIL_MESSAGES = 256
"""Up to this many messages that aren't part of a chunk yet are read directly."""
VECTORS_AT_ONCE = 512
"""How many vectors are read at once. This number of vectors fits into the processor's cache."""
# --- Statements ---

_VISIBLE = visible("sessions.scope_id")
_ROOT_ID = "COALESCE(sessions.root_id, sessions.id)"
_MATCH = f"messages.id, messages.session_id, {_ROOT_ID}"
# A row for each visible scope: its id, its number of chunks, and the highest id of any chunk.
_SCOPE_SIZES = f"""
    SELECT scopes.id, (SELECT chunk_count FROM chunk_counts WHERE scope_id = scopes.id),
        (SELECT COALESCE(MAX(id), 0) FROM chunks)
    FROM scopes WHERE {visible("scopes.id")}
"""
_LISTED = listed("ids")
_NEXT_CHUNK_PLACE = """(
    SELECT COALESCE(MAX(position), -1) + 1 FROM chunks WHERE chunks.session_id = messages.session_id
)"""
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_S = 86_400


class ChunkChoice(NamedTuple):
    """The terms that select chunks, and the terms that only improve a chunk's rank."""

    # Each term, with the number of chunks that contain it. A chunk must contain at least one of
    # these terms.
    leading: Mapping[str, int]
    # Terms that only improve the rank of a chunk. They weigh half as much as leading terms. A term
    # that is listed twice weighs as much.
    lending: Sequence[str]


class RankedChunk(NamedTuple):
    """A chunk that contains a term of the query, with its score."""

    chunk_id: int
    root_id: int
    # bm25: lower is better.
    score: float
    # The time of the first message, in seconds since 1970.
    started_at: float


class _ScopeSizes(NamedTuple):
    """The scopes of a query, and how many chunks they contain."""

    scope_ids: list[int]
    # Without the scopes that have no chunk, such as chats with few messages.
    chunked_scope_ids: list[int]
    chunk_count: int
    # The approximate number of chunks in the whole database.
    total_chunk_count: int


class TooMuchTextError(Exception):
    """A search on the event loop would read more text than its `TextLimits` allow."""


class TextLimits(NamedTuple):
    """The amount of text that a search on the event loop may read."""

    # The total length of all candidate messages.
    max_chars: int
    # The length of a message whose terms aren't cached. Computing them can't be interrupted.
    max_new_chars: int
    # The CPU time, in seconds, for computing the terms of all messages.
    max_cpu_s: float


class TextSearch:
    """Runs the searches of one query, and returns only messages that the query may see.

    Methods raise the engine's error if an index is damaged.
    """

    def __init__(
        self, connection: Connection, query: SearchQuery, limits: TextLimits | None = None
    ) -> None:
        """Create a search. Without `limits`, it reads as much text as it needs."""
        self._connection = connection
        self._query = query
        self._limits = limits
        # Every statement contains `_VISIBLE`, too.
        self._filters, self._parameters = message_filters(query)
        self._parameters["scopes"] = scope_parameter(query.scopes)
        self._address_join = address_join(self._filters)
        # The scoped terms that `chunk_frequencies` has found in at least one chunk.
        self._known_terms: set[str] = set()

    def find_messages(self, plan: SearchPlan) -> Iterator[MessageMatch]:
        """Yield the messages that match a plan and pass the filters, best first.

        If many messages match, the newest are ranked and yielded first.
        """
        if not plan.alternatives:
            return
        sizes = self._sizes
        is_small = sizes.chunk_count < SMALL_SHARE * sizes.total_chunk_count
        index = self._connection.index
        condition = NO_CONDITION
        if self._query.filters != SearchFilters():
            condition = narrow_messages(self._query, index)
        rankings = index.rank_messages(
            self._connection, plan, sizes.scope_ids, condition, is_small=is_small
        )
        for ranking in rankings:
            # Each row has the number of ranked messages. Without a condition, the query may see
            # none of these messages. Then there is no row, and older messages may still match.
            ranked_count = 0 if condition.sql else ranking.limit
            parameters = {**self._parameters, **ranking.values}
            statement = self._select_ranked(ranking.sql)
            for row in self._read_hits(statement, parameters, FIRST_MESSAGES):
                ranked_count = row[4]
                yield MessageMatch(*row[:4])
            if ranked_count < ranking.limit:
                return

    def _select_ranked(self, ranking: str) -> str:
        """Return a statement that filters the ranked rows of the statement `ranking`.

        `ranking` selects message ids and scores. Each row of the result ends with the number of
        rows of `ranking`. The messages are ranked before other tables are joined, because otherwise
        FTS5 computes each rank twice.
        """
        index = self._connection.index
        return f"""
            {index.define_hits(ranking, "score, id DESC")}
            SELECT {_MATCH}, -hits.score, {index.count_of_hits}
            FROM hits CROSS JOIN messages ON messages.id = hits.id
            CROSS JOIN sessions ON sessions.id = messages.session_id {self._address_join}
            WHERE {_VISIBLE} AND {self._filters}
            {index.order_of_hits.format("hits.score, hits.id DESC")}
        """

    def _read_hits(
        self, statement: str, parameters: Mapping[str, Any], first_count: int
    ) -> Iterator[Any]:
        """Yield the rows of a statement that joins ranked hits with other tables.

        Each row must end with the number of ranked rows. Most searches need at most `first_count`
        hits, and joining takes longer than ranking. So if the engine computes all rows at once, the
        other hits are joined only if the caller needs them.
        """
        if not self._connection.index.sends_all_rows:
            yield from self._connection.execute(statement, parameters)
            return
        first = {**parameters, "hit_limit": first_count, "hit_offset": 0}
        rows = self._connection.execute(statement, first).fetchall()
        yield from rows
        if not rows or rows[0][-1] > first_count:
            rest = {**parameters, "hit_limit": -1, "hit_offset": first_count}
            yield from self._connection.execute(statement, rest)

    def latest_messages(self, limit_per_session: int) -> Iterator[MessageMatch]:
        """Yield the latest messages of each of the latest sessions, for a query without words."""
        filters, values = session_filters(self._query)
        in_lineage = "" if self._query.filters.session_id is None else f"AND {IS_IN_LINEAGE}"
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
        """Yield batches of messages with their vectors for a model, as concatenated bytes.

        A batch has up to `VECTORS_AT_ONCE` messages, each with score 0. Messages whose vector
        doesn't have `size_bytes` are skipped.
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
        """Return the messages among `ids` that the query may see, in the same order.

        Messages that don't exist or that the filters exclude are left out.
        """
        statement = f"""
            SELECT {_MATCH}, 0.0
            FROM {_LISTED} CROSS JOIN messages ON messages.id = {LISTED_ID}
            CROSS JOIN sessions ON sessions.id = messages.session_id {self._address_join}
            WHERE {IS_SHOWN} AND {_VISIBLE} AND {self._filters} ORDER BY listed.key
        """
        return list(self._matches(statement, {**self._parameters, "ids": encode_list(ids)}))

    def _matches(self, statement: str, parameters: Mapping[str, Any]) -> Iterator[MessageMatch]:
        return (MessageMatch(*row[:4]) for row in self._connection.execute(statement, parameters))

    # --- Term frequencies ---

    @cached_property
    def _sizes(self) -> _ScopeSizes:
        """The numbers of chunks in the scopes of the query."""
        values = {"scopes": self._parameters["scopes"]}
        rows = self._connection.execute(_SCOPE_SIZES, values).fetchall()
        return _ScopeSizes(
            scope_ids=[row[0] for row in rows],
            chunked_scope_ids=[row[0] for row in rows if row[1]],
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
        """Count the chunks that contain each term, in the scopes of the query.

        With `max_scopes`, only the first `max_scopes` scopes are counted.
        """
        frequencies = dict.fromkeys(terms, 0)
        terms_by_scoped: dict[str, str] = {}
        for scope_id in self._sizes.chunked_scope_ids[:max_scopes]:
            start = scoped_term(scope_id, "")
            for term in frequencies:
                terms_by_scoped[start + term] = term
        if terms_by_scoped:
            counts = self._connection.index.count_chunks(self._connection, terms_by_scoped)
            for index_term, count in counts:
                frequencies[terms_by_scoped[index_term]] += count
                self._known_terms.add(index_term)
        return frequencies

    def _add_scopes(self, terms: Iterable[str]) -> list[str]:
        """Return each term with the prefix of each scope of the query.

        Terms that `chunk_frequencies` found in no chunk are left out, because looking up a missing
        term takes as long as any other.
        """
        terms = list(terms)
        scoped_terms: list[str] = []
        for scope_id in self._sizes.chunked_scope_ids:
            start = scoped_term(scope_id, "")
            for term in terms:
                index_term = start + term
                if index_term in self._known_terms:
                    scoped_terms.append(index_term)
        return scoped_terms

    @cached_property
    def unchunked_term_counts(self) -> Counter[str]:
        """How often each term occurs in messages that aren't part of a chunk yet.

        Terms from senders' names and dates count, too.
        """
        counts: Counter[str] = Counter()
        for _, message in self._tail:
            # Counting all terms of a long message at once would stop all other threads.
            for start in range(0, len(message.terms), MAX_COUNTED_TERMS):
                counts.update(message.terms[start : start + MAX_COUNTED_TERMS])
            counts.update(message.name_terms)
            counts.update(message.day_terms)
        return counts

    def is_in_unchunked(self, term: str) -> bool:
        """Return whether a message that isn't part of a chunk yet contains a term."""
        return term in self._unchunked_terms

    @cached_property
    def _unchunked_terms(self) -> frozenset[str]:
        return frozenset().union(
            *(message.terms for _, message in self._tail),
            *(message.name_terms for _, message in self._tail),
            *(message.day_terms for _, message in self._tail),
        )

    # --- Candidates for ranking ---

    def load_candidates(
        self, choices: Iterable[ChunkChoice], part: int = 0
    ) -> dict[int, list[CandidateMessage]]:
        """Return the messages of the best chunks, by the root id of their lineage.

        Chunks of the first choice rank above those of the second. `part` selects one part of the
        chunks. All chunks of a lineage are in the same part, so loading a later part for another
        page of results doesn't change earlier pages. Part 0 also contains the messages that aren't
        part of a chunk yet. Lineages without a message that passes the filters are left out. Raises
        TooMuchTextError if the messages exceed the `TextLimits`.
        """
        rows = self._select_chunks(self._chunk_ids(choices, part))
        messages = self._read_candidates(rows)
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
        """Return the ids of the chunks in one part, best first.

        All chunks of a lineage are in the part of its best chunk.
        """
        is_turn = self._query.kind is TextKind.TURN
        limit = MAX_CHUNKS_FOR_TURN if is_turn else MAX_CHUNKS
        chunks = chain.from_iterable(map(self._choose_chunks, choices))
        parts: dict[int, int] = {}
        chunk_ids: list[int] = []
        for place, chunk in enumerate(islice(chunks, (part + 1) * limit)):
            if chunk.root_id not in parts:
                # Each part has at most `LINEAGES_READ` lineages, and their best chunks are among
                # the next `limit` chunks.
                parts[chunk.root_id] = max(len(parts) // LINEAGES_READ, place // limit)
            if parts[chunk.root_id] == part:
                chunk_ids.append(chunk.chunk_id)
        return chunk_ids

    def _choose_chunks(self, choice: ChunkChoice) -> Iterator[RankedChunk]:
        """Yield the chunks that a choice selects, best first.

        Chunks from a period that the query names get a better score.
        """
        leading = self._add_scopes(choice.leading)
        if not leading:
            return iter(())
        lending = self._add_scopes(choice.lending)
        chunks = self.best_chunks(leading, lending, sum(choice.leading.values()))
        if not self._query.periods:
            return chunks
        best = sorted(islice(chunks, MAX_BOOSTED_CHUNKS), key=self._boosted_score)
        return chain(best, chunks)

    def _boosted_score(self, chunk: RankedChunk) -> float:
        """Return a chunk's score, multiplied by `PERIOD_BOOST` if the query names the chunk's time.

        A chunk that begins one day before or after such a period also gets the boost.
        """
        begins, latest_ends = self._period_bounds
        day = _EPOCH_ORDINAL + int(chunk.started_at // _DAY_S)
        # Count the periods that begin by the day after the chunk. One of them contains the chunk if
        # the latest of their ends isn't before the day before the chunk.
        begun_count = bisect_right(begins, day + 1)
        if begun_count and day - 1 <= latest_ends[begun_count - 1]:
            return chunk.score * PERIOD_BOOST
        return chunk.score

    @cached_property
    def _period_bounds(self) -> tuple[list[int], list[int]]:
        """The periods' first days, in ascending order, and the running maximum of their last days.

        For example, the periods (1, 9), (2, 4), (10, 12) give [1, 2, 10] and [9, 9, 12].
        """
        periods = sorted(self._query.periods)
        begins = [begin for begin, _ in periods]
        return begins, list(accumulate((end for _, end in periods), max))

    def best_chunks(
        self,
        leading: Sequence[str],
        lending: Sequence[str],
        match_count: int,
        limit: int = RANKED_CHUNKS,
    ) -> Iterator[RankedChunk]:
        """Yield the chunks that contain a leading term, best first.

        Terms must have their scopes' prefixes. `match_count` is an upper bound of the number of
        matches. If more than `limit` chunks match, the newest `limit` chunks are ranked and yielded
        before all older ones, because ranking takes most of the time of a search.
        """
        index = self._connection.index
        condition = NO_CONDITION
        if self._query.filters != SearchFilters():
            condition = narrow_chunks(self._query, index)
        rankings = index.rank_chunks(
            self._connection, leading, lending, match_count, limit, condition
        )
        first_count = MAX_BOOSTED_CHUNKS if self._query.periods else FIRST_CHUNKS
        for ranking in rankings:
            # The chunks are ranked before other tables are joined, because otherwise FTS5 computes
            # each rank twice.
            statement = f"""
                {index.define_hits(ranking.sql, "score, id")}
                SELECT chunks.id, {_ROOT_ID}, hits.score,
                    (SELECT created_at FROM messages WHERE messages.id = chunks.first_id),
                    {index.count_of_hits}
                FROM hits
                CROSS JOIN chunks ON chunks.id = hits.id
                CROSS JOIN sessions ON sessions.id = chunks.session_id {self._address_join}
                WHERE {_VISIBLE} AND EXISTS (
                    SELECT 1 FROM messages WHERE messages.session_id = chunks.session_id
                        AND messages.id BETWEEN chunks.first_id AND chunks.last_id
                        AND {IS_SHOWN} AND {self._filters}
                )
                {index.order_of_hits.format("hits.score, hits.id")}
            """
            parameters = {**self._parameters, **ranking.values}
            rows = self._read_hits(statement, parameters, first_count)
            for row in rows:
                yield RankedChunk(*row[:4])

    @cached_property
    def _is_own(self) -> SqlCondition:
        """The SQL condition that the asker sent a message.

        This condition is used for queries about the asker, such as "my dentist". For any other
        query, no message meets the condition.
        """
        if is_about_self(self._query.text):
            return askers_own(self._query)
        return SqlCondition("0", {})

    def _candidate_columns(self, chunk_place: str) -> str:
        """Return the columns that `_read_candidate` unpacks.

        `chunk_place` is the SQL expression for the chunk's number within its session.
        """
        return f"""{_MATCH}, {chunk_place}, messages.text, messages.sender_name,
            messages.created_at, ({self._filters}), {self._is_own.sql}"""

    def _select_chunks(self, chunk_ids: Sequence[int]) -> Iterable[Any]:
        """Return the `_candidate_columns` of each shown message in the chunks.

        This includes messages that the query's filters exclude.
        """
        return self._connection.execute(
            f"""
            SELECT {self._candidate_columns("chunks.position")}
            FROM {_LISTED} CROSS JOIN chunks ON chunks.id = {LISTED_ID}
            CROSS JOIN messages ON messages.session_id = chunks.session_id
                AND messages.id BETWEEN chunks.first_id AND chunks.last_id
            CROSS JOIN sessions ON sessions.id = messages.session_id
            {address_join(self._filters, self._is_own.sql)}
            WHERE {IS_SHOWN} AND {_VISIBLE}
            """,
            {**self._parameters, **self._is_own.values, "ids": encode_list(chunk_ids)},
        )

    @cached_property
    def _tail(self) -> list[tuple[int, CandidateMessage]]:
        """The messages that aren't part of a chunk yet, each with the root id of its lineage."""
        until = last_chunked_id(self._connection)
        rows = self._connection.execute(
            f"""
            SELECT {self._candidate_columns(_NEXT_CHUNK_PLACE)}
            FROM messages CROSS JOIN sessions ON sessions.id = messages.session_id
            {address_join(self._filters, self._is_own.sql)}
            WHERE messages.id > :until AND {IS_SHOWN} AND {_VISIBLE}
            ORDER BY messages.id DESC LIMIT {TAIL_MESSAGES}
            """,
            {**self._parameters, **self._is_own.values, "until": until},
        )
        return self._read_candidates(rows)

    def _read_candidates(self, rows: Iterable[Sequence[Any]]) -> list[tuple[int, CandidateMessage]]:
        """Read rows with the `_candidate_columns`. Returns the root id and the message of each row.

        Raises TooMuchTextError if their texts exceed the `TextLimits`.
        """
        if self._limits is None:
            return list(map(_read_candidate, rows))
        rows = list(rows)
        if sum(len(row[_TEXT_COLUMN]) for row in rows) > self._limits.max_chars:
            raise TooMuchTextError
        ends_at_s = time.thread_time() + self._limits.max_cpu_s
        candidates: list[tuple[int, CandidateMessage]] = []
        for row in rows:
            if time.thread_time() > ends_at_s or self._is_long_and_new(row):
                raise TooMuchTextError
            candidates.append(_read_candidate(row))
        return candidates

    def _is_long_and_new(self, row: Sequence[Any]) -> bool:
        """Return whether computing a message's terms would exceed the `TextLimits`."""
        assert self._limits is not None
        _, _, _, _, text, name, created_at, _, _ = row
        if len(text) <= self._limits.max_new_chars:
            return False
        day_number = _EPOCH_ORDINAL + int(created_at // _DAY_S)
        return not has_cached_terms(text, name or "", day_number)


# The position of the text in `TextSearch._candidate_columns`.
_TEXT_COLUMN = 4


def _read_candidate(row: Sequence[Any]) -> tuple[int, CandidateMessage]:
    """Convert a row with `TextSearch._candidate_columns` to a root id and a message."""
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


# --- The state of the indexes ---

STALE_KEY = "index_stale"
"""A key in `state_meta` that is set while the indexes may differ from the messages."""
VERSION_KEY = "index_version"
"""A key in `state_meta` for the `TERMS_VERSION` with which the indexes were built."""
CHUNKED_UNTIL_KEY = "chunked_until"
"""A key in `state_meta` for the last message that was put into a chunk or skipped."""
_IS_FRESH = """
SELECT 1 FROM state_meta WHERE key = :key AND value = :version AND NOT EXISTS (
    SELECT 1 FROM state_meta WHERE key = :stale
)
"""
LAG_MESSAGES = 32
"""Up to this many new messages stay outside of the index, because reading them directly is
cheaper."""


def is_stale(connection: Connection) -> bool:
    """Return whether the indexes must be rebuilt.

    This is the case if another version built them, or if they are flagged for a rebuild.
    """
    values = {"stale": STALE_KEY, "key": VERSION_KEY, "version": str(TERMS_VERSION)}
    return connection.execute(_IS_FRESH, values).fetchone() is None


def last_chunked_id(connection: Connection) -> int:
    """Return the id of the last message that was put into a chunk or skipped, or 0."""
    return int(get_meta(connection, CHUNKED_UNTIL_KEY) or 0)


def is_behind(connection: Connection, lag: int) -> bool:
    """Return whether over `lag` new messages, or any changed chunk, aren't indexed."""
    has_changed_chunk = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM chunks WHERE is_indexed = 0)"
    ).fetchone()[0]
    if has_changed_chunk:
        return True
    return latest_message_id(connection) - last_chunked_id(connection) > lag


def latest_message_id(connection: Connection) -> int:
    """Return the highest message id, or 0 if there are no messages."""
    return int(connection.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()[0])


def has_files(connection: Connection) -> bool:
    """Return whether any file is stored. If not, a search needn't look for files."""
    return connection.execute("SELECT 1 FROM message_files LIMIT 1").fetchone() is not None
