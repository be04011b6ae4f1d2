"""Search and fill the text indexes on PostgreSQL. Implements `TextIndex`.

An index is a `tsvector` of our own terms, so the server doesn't analyse text. BM25 needs to know
how often a document contains a term. `ts_rank`, or reading the vectors, would be too slow. So a
term that occurs several times is also indexed with marks (see `words.py`). The scores of the marks
are added up from the index alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, pairwise
from typing import Any

from core.store.engine import Connection, Ranking, SqlCondition, Values
from core.store.postgres import indexing
from core.store.postgres.words import (
    CHUNK_COUNTS,
    MESSAGE_COUNTS,
    TOOLS_MARK,
    PhraseQuery,
    mark_of,
    phrase_queries,
    quote_term,
    scoped_query,
    split_scope,
)
from core.store.query import SearchPlan

MIN_IDF = 1e-6
"""The lowest weight of a term. FTS5 has the same."""
K1, B = 1.2, 0.75
"""The parameters of BM25, with the values of FTS5: saturation, and influence of the length."""
NEWEST_RANKED = 4_000
"""If more messages match, only this many of the newest are ranked at first."""
COUNTED_MESSAGES = 10_000
"""The matches of a phrase are counted up to this number, to find out how rare it is."""
TOOLS_COUNT = 0.5
"""A word of a tool call counts as half a word."""
COMMON_FACT_COUNT = 2_000
"""A word in more facts than this is ignored, unless all words of the query are that common."""
_LEVELS = (
    ("", 0.0, 1.0),
    *((mark_of(high), float(low), float(high)) for low, high in pairwise((1, *CHUNK_COUNTS))),
)
"""For each mark, the count of a term without the mark, and the count with it."""
_MARK_COUNTS = (
    *((mark_of(count), count) for count in reversed(MESSAGE_COUNTS)),
    (TOOLS_MARK, TOOLS_COUNT),
)
"""The marks of a word in a message with its count, the highest first."""

_HAS_WORDS = "words @@ CAST(:{0} AS tsquery)"
_MESSAGES_WITH = f"""message_id IN (
    SELECT message_id FROM message_index WHERE scope_id = ANY(:scope_ids) AND {_HAS_WORDS}
)"""
_COUNT_MESSAGES = """
SELECT count(*) FROM (
    SELECT 1 FROM message_index
    WHERE scope_id = ANY(:scope_ids) AND words @@ CAST(:query AS tsquery) LIMIT :limit
) AS matching
"""
_COUNT_SCOPES = """
SELECT COALESCE(SUM(message_count), 0) FROM sessions WHERE scope_id = ANY(:scope_ids)
"""
_COUNT_CHUNKS = """
SELECT term, doc FROM chunk_vocabulary WHERE scope_id = ANY(:scope_ids) AND term = ANY(:terms)
"""
_CHUNK_TOTALS = """
SELECT COALESCE(SUM(chunk_count), 0), COALESCE(SUM(length), 0) FROM chunk_lengths
WHERE scope_id = ANY(:scope_ids)
"""
_SATURATION = "{count} * {factor} / ({count} + :k1 * (1 - :b + :b * length / :average))"
_RANK_CHUNKS = f"""
SELECT chunk_id AS id, -SUM(weight * (
    {_SATURATION.format(count="high", factor="(:k1 + 1)")}
    - {_SATURATION.format(count="low", factor="(:k1 + 1)")}
)) AS score
FROM unnest(
    CAST(:scope_ids AS bigint[]), CAST(:queries AS text[]), CAST(:weights AS double precision[]),
    CAST(:lows AS double precision[]), CAST(:highs AS double precision[]),
    CAST(:leading AS boolean[])
) AS terms (scope_id, query, weight, low, high, is_leading)
CROSS JOIN LATERAL (
    -- OFFSET 0 makes the server look up each term in the index. Otherwise, it may compare each term
    -- with each chunk.
    SELECT chunk_id, length FROM chunk_index
    WHERE chunk_index.scope_id = terms.scope_id
        AND chunk_index.terms @@ CAST(terms.query AS tsquery) {{condition}}
    OFFSET 0
) AS matching
GROUP BY chunk_id HAVING bool_or(is_leading)
"""
_NEWEST_OLDER_CHUNK = """
SELECT chunk_id FROM chunk_index
WHERE scope_id = ANY(:scope_ids) AND terms @@ CAST(:query AS tsquery) {condition}
ORDER BY chunk_id DESC LIMIT 1 OFFSET :limit
"""
_COUNT_FACTS = """
SELECT scope_id, term, count(*) AS doc FROM fact_terms
WHERE scope_id = ANY(:scope_ids) AND term = ANY(:terms) GROUP BY scope_id, term
"""
_FACT_TOTALS = """
SELECT COUNT(*), COALESCE(AVG(length), 1) FROM (
    SELECT DISTINCT fact_id, length FROM fact_terms WHERE scope_id = ANY(:scope_ids)
) AS lengths
"""
_SCORE_FACTS = f"""
SELECT fact_id AS id, SUM(
    terms.weight * {_SATURATION.format(count="fact_terms.weight", factor="(:k1 + 1)")}
) AS score
FROM unnest(
    CAST(:scopes AS bigint[]), CAST(:terms AS text[]), CAST(:weights AS double precision[])
) AS terms (scope_id, term, weight)
JOIN fact_terms ON fact_terms.scope_id = terms.scope_id AND fact_terms.term = terms.term
GROUP BY fact_id ORDER BY score DESC, id DESC LIMIT :limit
"""
_RANK_FILE_PARTS = """
SELECT part_id, -SUM(
    ln(1 + (total + 0.5) / (doc + 0.5)) * occurrences * 2.2 / (occurrences + 1.2)
) AS score
FROM (
    SELECT file_index.part_id, words.position, COUNT(*) OVER (PARTITION BY words.position) AS doc,
        (SELECT COUNT(*) FROM file_parts WHERE hash IN (SELECT hash FROM shown)) AS total,
        CASE WHEN terms @@ CAST(words.many AS tsquery) THEN 4.0
            WHEN terms @@ CAST(words.few AS tsquery) THEN 2.0 ELSE 1.0 END AS occurrences
    FROM unnest(CAST(:once AS text[]), CAST(:few AS text[]), CAST(:many AS text[]))
        WITH ORDINALITY AS words (once, few, many, position)
    JOIN file_index ON terms @@ CAST(words.once AS tsquery)
    JOIN file_parts ON file_parts.id = file_index.part_id
    WHERE file_parts.hash IN (SELECT hash FROM shown)
) AS matching
GROUP BY part_id HAVING COUNT(*) >= :word_count
"""
_COLLECT_STATISTICS = """
ANALYZE sessions, messages, message_index, chunks, chunk_index, chunk_vocabulary, facts, fact_terms
"""
_HAS_STATISTICS = """
SELECT COUNT(*) = 0 FROM pg_class
WHERE oid IN (to_regclass('messages'), to_regclass('chunks')) AND reltuples < 0
"""


class PostgresIndex:
    """The text indexes of a store on PostgreSQL."""

    order_of_hits = "ORDER BY {}"
    count_of_hits = "(SELECT COUNT(*) FROM ranked)"
    sends_all_rows = True
    message_hit = "message_index.message_id"
    chunk_hit = "chunk_index.chunk_id"

    def define_hits(self, ranking: str, order: str) -> str:
        """Return the WITH clause for `hits`: the ids and scores that `ranking` selects, in `order`.

        The parameters `hit_limit` and `hit_offset` limit the hits, so the server joins only those.
        """
        return f"""
            WITH ranked (id, score) AS MATERIALIZED ({ranking}),
            hits (id, score) AS MATERIALIZED (
                SELECT id, score FROM ranked ORDER BY {order} LIMIT :hit_limit OFFSET :hit_offset
            )
        """

    def rank_messages(
        self,
        connection: Connection,
        plan: SearchPlan,
        scope_ids: Sequence[int],
        condition: SqlCondition,
        *,
        is_small: bool,
    ) -> Iterator[Ranking]:
        """Yield rankings of the messages that match a plan: first the newest, then the rest.

        Only messages that meet the condition are ranked. Each indexed term contains its scope, so
        `is_small` has no effect.
        """
        query = scoped_query(plan, scope_ids)
        if not query:
            return
        values: dict[str, object] = {
            **condition.values,
            "scope_ids": list(scope_ids),
            "query": query,
            "limit": NEWEST_RANKED,
            "k1": K1,
            "b": B,
        }
        score = self._score_messages(connection, plan, scope_ids, values)
        matching = f"""
            FROM message_index WHERE scope_id = ANY(:scope_ids)
            AND words @@ CAST(:query AS tsquery) {condition.sql}
        """
        select = f"""
            SELECT message_id AS id, {score} AS score FROM (
                SELECT message_id, words, length, AVG(length) OVER () AS average FROM (
                    SELECT message_id, words, length {matching} {{part}}
                ) AS part
            ) AS matching
        """
        newest = "ORDER BY message_id DESC LIMIT :limit"
        yield Ranking(select.format(part=newest), values, NEWEST_RANKED)
        older = connection.execute(
            f"SELECT message_id {matching} ORDER BY message_id DESC LIMIT 1 OFFSET :limit", values
        ).fetchone()
        if older is not None:
            values["newest_older"] = older[0]
            yield Ranking(select.format(part="AND message_id <= :newest_older"), values, 0)

    def _score_messages(
        self,
        connection: Connection,
        plan: SearchPlan,
        scope_ids: Sequence[int],
        values: dict[str, object],
    ) -> str:
        """Return the SQL for a message's score, and add its parameters to `values`.

        Only the phrases of the alternatives that the message matches count, as in FTS5.
        """
        alternatives = [phrase_queries(clauses, scope_ids) for clauses in plan.alternatives]
        phrases = list(dict.fromkeys(chain.from_iterable(alternatives)))
        weights = self._weigh_phrases(connection, phrases, values)
        is_only = len(phrases) == len(alternatives) == 1
        scores = {
            phrase: _score_phrase(number, phrase, weights[number], values, is_only=is_only)
            for number, phrase in enumerate(phrases)
        }
        parts: list[str] = []
        for number, phrase_counts in enumerate(alternatives):
            products = [f"{count} * {scores[phrase]}" for phrase, count in phrase_counts.items()]
            total = " + ".join(products) or "0.0"
            query = scoped_query(SearchPlan((plan.alternatives[number],)), scope_ids)
            if len(alternatives) == 1 or not query:
                parts.append(f"({total})")
                continue
            values[f"alternative{number}"] = query
            condition = _HAS_WORDS.format(f"alternative{number}")
            parts.append(f"CASE WHEN {condition} THEN {total} ELSE 0.0 END")
        return f"-({' + '.join(parts)})"

    def _weigh_phrases(
        self, connection: Connection, phrases: Sequence[PhraseQuery], values: Values
    ) -> list[float]:
        """Return the weight of each phrase. A plan with one phrase needs no weights."""
        if len(phrases) < 2:
            return [1.0] * len(phrases)
        total = connection.execute(_COUNT_SCOPES, values).fetchone()[0]
        weights = []
        for phrase in phrases:
            counting = {**values, "query": phrase.query, "limit": COUNTED_MESSAGES}
            count = connection.execute(_COUNT_MESSAGES, counting).fetchone()[0]
            weights.append(_idf(count, max(count, total)))
        return weights

    def count_chunks(self, connection: Connection, terms: Iterable[str]) -> Iterable[Sequence[Any]]:
        """Count the chunks that contain each term. Terms in no chunk are left out."""
        listed = list(terms)
        values = {"scope_ids": sorted(set(map(split_scope, listed))), "terms": listed}
        return connection.execute(_COUNT_CHUNKS, values).fetchall()

    def rank_chunks(
        self,
        connection: Connection,
        leading: Sequence[str],
        lending: Sequence[str],
        match_count: int,
        limit: int,
        condition: SqlCondition,
    ) -> Iterator[Ranking]:
        """Yield rankings of the chunks that contain a leading term, newest chunks first."""
        values = condition.values | self._chunk_values(connection, leading, lending)
        ranked = _RANK_CHUNKS.format(condition=condition.sql)
        if match_count <= limit:
            yield Ranking(ranked, values, limit)
            return
        query = " | ".join(map(quote_term, leading))
        splitting = {**values, "query": query, "limit": limit}
        find_newest_older = _NEWEST_OLDER_CHUNK.format(condition=condition.sql)
        split = connection.execute(find_newest_older, splitting).fetchone()
        values["split"] = 0 if split is None else split[0]
        for side in [">"] if split is None else [">", "<="]:
            part = f"WHERE chunk_id {side} :split GROUP BY chunk_id"
            yield Ranking(ranked.replace("GROUP BY chunk_id", part), values, limit)

    def _chunk_values(
        self, connection: Connection, leading: Sequence[str], lending: Sequence[str]
    ) -> dict[str, object]:
        """Return the parameters of `_RANK_CHUNKS`: one row for each indexed term and mark."""
        is_leading = dict.fromkeys(lending, False) | dict.fromkeys(leading, True)
        # As in FTS5, a leading term counts twice if there are lending terms.
        shares = Counter(chain(leading, leading if lending else (), lending))
        marked_terms = [term + mark for term in is_leading for mark, _, _ in _LEVELS]
        counts = {row[0]: row[1] for row in self.count_chunks(connection, marked_terms)}
        scope_ids = sorted(set(map(split_scope, is_leading)))
        totals = connection.execute(_CHUNK_TOTALS, {"scope_ids": scope_ids}).fetchone()
        chunk_count, total_length = totals[0], totals[1]
        # The columns of the rows, in the order of the row below.
        names = ("scope_ids", "queries", "weights", "lows", "highs", "leading")
        columns: dict[str, list[object]] = {name: [] for name in names}
        for term, leads in is_leading.items():
            weight = shares[term] * _idf(counts.get(term, 0), chunk_count)
            for mark, low, high in _LEVELS:
                if term + mark in counts:
                    query = quote_term(term + mark)
                    row = (split_scope(term), query, weight, low, high, leads)
                    for name, value in zip(names, row, strict=True):
                        columns[name].append(value)
        average = max(1.0, total_length / max(1, chunk_count))
        return {**columns, "k1": K1, "b": B, "average": average}

    def score_facts(
        self, connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int
    ) -> dict[int, float]:
        """Return the BM25 scores, by fact id, of the best facts that contain any of the terms.

        Terms in more than `COMMON_FACT_COUNT` facts are ignored. If all terms are that common, only
        the rarest one is used. All scores are positive.
        """
        values = {"scope_ids": list(scope_ids), "terms": list(terms)}
        # The number of facts by scope id and term.
        counts = {(row[0], row[1]): row[2] for row in connection.execute(_COUNT_FACTS, values)}
        scored_keys = [key for key, count in counts.items() if count <= COMMON_FACT_COUNT]
        if not scored_keys:
            scored_keys = sorted(counts, key=counts.__getitem__)[:1]
        if not scored_keys:
            return {}
        total, average = connection.execute(_FACT_TOTALS, values).fetchone()
        scoring = {
            "scopes": [scope_id for scope_id, _ in scored_keys],
            "terms": [term for _, term in scored_keys],
            "weights": [_idf(counts[key], total) for key in scored_keys],
            "average": max(1.0, float(average)),
            "limit": limit,
            "k1": K1,
            "b": B,
        }
        rows = connection.execute(_SCORE_FACTS, scoring)
        return {row["id"]: max(1e-6, row["score"]) for row in rows}

    def rank_file_parts(self, terms: Sequence[str], *, needs_all: bool) -> Ranking:
        """Return a subquery that ranks the file parts with these terms."""
        words = list(dict.fromkeys(terms))
        values = {
            "once": [quote_term(f"0x{word}") for word in words],
            "few": [quote_term(f"0x{word}{mark_of(2)}") for word in words],
            "many": [quote_term(f"0x{word}{mark_of(4)}") for word in words],
            "word_count": len(words) if needs_all else 1,
        }
        return Ranking(_RANK_FILE_PARTS, values, 0)

    # --- Filling ---

    def index_messages(self, connection: Connection, after: int, last: int) -> None:
        """Add the chat messages with ids greater than `after` and up to `last`."""
        indexing.index_messages(connection, range(after + 1, last + 1))

    def defer(self, connection: Connection) -> AbstractContextManager[None]:
        """Do nothing, because the end of each transaction indexes its messages."""
        return nullcontext()

    def index_chunks(self, connection: Connection, chunk_ids: Sequence[int]) -> None:
        """Add chunks, and mark them as indexed."""
        indexing.index_chunks(connection, chunk_ids)

    def remove_chunk(self, connection: Connection, chunk_id: int) -> None:
        indexing.remove_chunk(connection, chunk_id)

    def index_fact(self, connection: Connection, fact_id: int) -> None:
        """Add a fact, or replace its indexed version."""
        indexing.index_fact(connection, fact_id)

    def index_file_part(self, connection: Connection, part_id: int, text: str) -> None:
        indexing.index_file_part(connection, part_id, text)

    # --- Upkeep ---

    def begin_rebuild(self, connection: Connection) -> None:
        """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
        indexing.begin_rebuild(connection)

    def merge(self, connection: Connection, pages: int) -> bool:
        """Collect statistics of new tables, and return False.

        The server does all other upkeep by itself. It would collect the statistics too, but only
        after a minute, and without them it reads whole tables.
        """
        if connection.execute(_HAS_STATISTICS, {}).fetchone()[0]:
            return False
        connection.execute(_COLLECT_STATISTICS, {})
        return True

    def find_damage(self, connection: Connection) -> list[str]:
        """Compare the indexes with the rows, and return one sentence per difference."""
        return indexing.find_damage(connection)


def _idf(count: int, total: int) -> float:
    """Return the weight (inverse document frequency) of a term in `count` of `total` documents.

    As in FTS5, a term in over half of the documents has almost no weight.
    """
    return max(MIN_IDF, math.log((max(0, total - count) + 0.5) / (count + 0.5)))


def _score_phrase(
    number: int, phrase: PhraseQuery, weight: float, values: dict[str, object], *, is_only: bool
) -> str:
    """Return the SQL for the score of a phrase, and add its parameters to `values`.

    With `is_only`, the phrase is the whole plan, so all ranked messages contain it. The marks are
    then looked up in the index, because reading the words of each message takes longer.
    """
    values[f"phrase{number}"] = phrase.query
    values[f"weight{number}"] = weight
    cases = ""
    if phrase.words:
        for mark, count in _MARK_COUNTS:
            name = f"phrase{number}_{mark[1:]}"
            values[name] = phrase.with_mark(mark)
            condition = _MESSAGES_WITH if is_only else _HAS_WORDS
            cases += f" WHEN {condition.format(name)} THEN {float(count)}"
    otherwise = "1.0"
    if not is_only:
        otherwise = f"CASE WHEN {_HAS_WORDS.format(f'phrase{number}')} THEN 1.0 END"
    occurrences = f"CASE{cases} ELSE {otherwise} END" if cases else f"({otherwise})"
    # This is n * (k1 + 1) / (n + saturation), with a number n that is computed only once.
    saturation = f":k1 * (1 - :b + :b * length / average) / {occurrences}"
    return f"COALESCE(:weight{number} * (:k1 + 1) / (1 + {saturation}), 0.0)"
