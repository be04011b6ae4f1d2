"""Search and fill the text indexes of state.db, and open connections that use them.

`FtsIndex` implements `TextIndex` with FTS5, and `StoreConnection` implements
`core.store.engine.Connection`.

Functions for maintenance and rare writes are in `indexing.py` and `fact_index.py`, which are
imported on first use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

from core.store.engine import Connection, Ranking, Row, SqlCondition, T, Values, in_list
from core.store.query import Clause, Phrase, SearchPlan
from core.store.rows import clean, scoped_term
from core.store.sqlite.faults import close_cursors
from core.store.visibility import encode_list
from core.text.normalize import SCOPE_MARKER, is_unspaced

# --- Limits ---

NEWEST_RANKED = 4_000
"""If a query matches more messages, only this many of the newest ones are ranked at first.

Older matches are ranked only if the caller needs more results, because ranking takes most of the
time of a search.
"""
NEWEST_UNSPACED_RANKED = 300
"""The same limit for scripts without spaces, such as Chinese. It is lower because their words match
more messages."""
COMMON_FACT_COUNT = 2_000
"""A word in more facts than this is ignored, unless all words of the query are that common."""

# --- Expressions of FTS5 ---

CHECKPOINT_PAGES = 1_500
"""When the log has this many pages of 4 KB, SQLite copies them into the file.

If no connection is reading, the log then starts from its beginning, so it usually stays below 6 MB.
"""


def fts_expression(plan: SearchPlan) -> str:
    """Return a plan as an FTS5 expression, such as ``(("ferry" AND "ana") NOT (("bus")))``."""
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
    """Return the FTS5 expression for messages that contain all phrases of the clauses."""
    phrases: list[str] = []
    for clause in clauses:
        phrases += map(_phrase_expression, clause.phrases)
    return " AND ".join(phrases)


def _phrase_expression(phrase: Phrase) -> str:
    """Return the FTS5 expression for any spelling of a phrase, e.g. ``("colour"* OR "color"*)``.

    Spellings are quoted, so FTS5 never parses them as operators.
    """
    star = "*" if phrase.is_prefix else ""
    texts = [_quote(text) + star for text in phrase.texts]
    return texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"


def _has_unspaced(plan: SearchPlan) -> bool:
    """Return whether the plan has a word in a script without spaces between words."""
    for clause in chain.from_iterable(plan.alternatives):
        for phrase in clause.phrases:
            if any(map(is_unspaced, phrase.texts)):
                return True
    return False


# --- The role ---

_TERM_FREQUENCIES = """
    SELECT chunk_vocabulary.term, chunk_vocabulary.doc
    FROM json_each(:terms) CROSS JOIN chunk_vocabulary ON chunk_vocabulary.term = json_each.value
"""
_NEWEST_OLDER_MESSAGE = """
    SELECT rowid FROM messages_fts WHERE messages_fts MATCH :expression {condition}
    ORDER BY rowid DESC LIMIT 1 OFFSET :limit
"""
_RANKED_MESSAGES = """
    SELECT rowid AS id, rank AS score FROM messages_fts
    WHERE messages_fts MATCH :expression {condition}
"""
_NEWEST_OLDER_CHUNK = """
    SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH :expression {condition}
    ORDER BY rowid DESC LIMIT 1 OFFSET :limit
"""
_RANKED_CHUNKS = """
    SELECT chunks_fts.rowid AS id, chunks_fts.rank AS score
    FROM json_each(:expressions) AS scopes CROSS JOIN chunks_fts
    WHERE chunks_fts MATCH scopes.value AND chunks_fts.rowid {side} {condition}
"""
"""Each chunk belongs to one scope, so each scope is searched on its own.

For each row, FTS5 compares all terms of an expression. With one expression for all scopes, the time
would grow with the square of their number. The scores are the same.
"""
_RANKED_FILE_PARTS = """
    SELECT rowid AS part_id, rank AS score FROM files_fts
    WHERE files_fts MATCH :words AND +rowid IN (
        SELECT id FROM file_parts WHERE hash IN (SELECT hash FROM shown)
    )
"""
"""The plus sign keeps FTS5 from looking up each id on its own."""


class FtsIndex:
    """The FTS5 indexes of state.db. Methods raise sqlite3.DatabaseError if an index is damaged."""

    # Rows that are joined in the order of a CROSS JOIN stay in order.
    order_of_hits = ""
    count_of_hits = "(SELECT COUNT(*) FROM hits)"
    sends_all_rows = False
    message_hit = "messages_fts.rowid"
    chunk_hit = "chunks_fts.rowid"

    def define_hits(self, ranking: str, order: str) -> str:
        """Return the WITH clause for `hits`: the ids and scores that `ranking` selects, in `order`.

        LIMIT -1 makes SQLite keep the order of the subquery. Without MATERIALIZED, FTS5 would
        compute each score twice.
        """
        return f"""
            WITH hits (id, score) AS MATERIALIZED (
                SELECT id, score FROM ({ranking}) AS ranked ORDER BY {order} LIMIT -1
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

        Only messages that meet the condition are ranked. If more than `NEWEST_RANKED` messages do,
        the first ranking contains only the newest ones.
        """
        expression = fts_expression(plan)
        if scope_ids and is_small:
            # Each indexed message contains a word for its scope. Searching for this word makes a
            # search faster only if the scopes have few messages.
            scope_words = " OR ".join(f'"{SCOPE_MARKER}{scope_id}"' for scope_id in scope_ids)
            expression = f"({expression}) AND ({scope_words})"
        limit = NEWEST_UNSPACED_RANKED if _has_unspaced(plan) else NEWEST_RANKED
        values = {**condition.values, "expression": expression, "limit": limit}
        ranked = _RANKED_MESSAGES.format(condition=condition.sql)
        yield Ranking(f"{ranked} ORDER BY rowid DESC LIMIT :limit", values, limit)
        find_newest_older = _NEWEST_OLDER_MESSAGE.format(condition=condition.sql)
        newest_older = connection.execute(find_newest_older, values).fetchone()
        if newest_older is not None:
            values["newest_older"] = newest_older[0]
            yield Ranking(f"{ranked} AND rowid <= :newest_older LIMIT -1", values, 0)

    def count_chunks(self, connection: Connection, terms: Iterable[str]) -> Iterable[Sequence[Any]]:
        """Count the chunks that contain each term. Terms in no chunk are left out."""
        return connection.execute(_TERM_FREQUENCIES, {"terms": encode_list(terms)})

    def rank_chunks(
        self,
        connection: Connection,
        leading: Sequence[str],
        lending: Sequence[str],
        match_count: int,
        limit: int,
        condition: SqlCondition,
    ) -> Iterator[Ranking]:
        """Yield rankings of the chunks that contain a leading term, newest chunks first.

        FTS5 adds up the scores of all terms of the expression, so it counts leading terms twice.
        """
        expressions = [
            _chunk_expression(*terms) for terms in _group_by_scope(leading, lending).values()
        ]
        values = {
            **condition.values,
            "expression": " OR ".join(expressions),
            "expressions": encode_list(expressions),
            "limit": limit,
            "split": 0,
        }
        sides = ["> :split"]
        if match_count > limit:
            find_newest_older = _NEWEST_OLDER_CHUNK.format(condition=condition.sql)
            newest_older = connection.execute(find_newest_older, values).fetchone()
            if newest_older is not None:
                values["split"] = newest_older[0]
                sides.append("<= :split")
        for side in sides:
            sql = _RANKED_CHUNKS.format(side=side, condition=condition.sql)
            yield Ranking(sql, values, limit)

    def score_facts(
        self, connection: Connection, terms: Sequence[str], scope_ids: Sequence[int], limit: int
    ) -> dict[int, float]:
        """Return the bm25 scores, by fact id, of the best facts that contain any of the terms.

        Terms in more than `COMMON_FACT_COUNT` facts are ignored. If all terms are that common, only
        the rarest one is used. All scores are positive.
        """
        words: list[str] = []
        for scope_id in scope_ids:
            words += [scoped_term(scope_id, term) for term in terms]
        rows = connection.execute(
            f"SELECT term, doc FROM facts_vocabulary WHERE {in_list('term', 'words')}",
            {"words": encode_list(words)},
        )
        counts = {row["term"]: row["doc"] for row in rows}
        scored_words = [word for word, count in counts.items() if count <= COMMON_FACT_COUNT]
        if not scored_words:
            scored_words = sorted(counts, key=counts.__getitem__)[:1]
        if not scored_words:
            return {}
        rows = connection.execute(
            "SELECT rowid AS id, rank AS score FROM facts_fts WHERE facts_fts MATCH :words "
            "ORDER BY rank LIMIT :limit",
            {"words": " OR ".join(f'"{word}"' for word in scored_words), "limit": limit},
        )
        # FTS5's rank is negative. It becomes positive for a word in over half of all facts, but
        # such a fact is still a match, so its score stays above 0.
        return {row["id"]: max(1e-6, -row["score"]) for row in rows}

    def rank_file_parts(self, terms: Sequence[str], *, needs_all: bool) -> Ranking:
        """Return a subquery that ranks the file parts with these terms."""
        words = (" AND " if needs_all else " OR ").join(map(_quote, terms))
        return Ranking(_RANKED_FILE_PARTS, {"words": words}, 0)

    # --- Filling ---

    def index_messages(self, connection: Connection, after: int, last: int) -> None:
        """Add the chat messages with ids greater than `after` and up to `last`."""
        from core.store.sqlite import indexing

        indexing.index_messages(connection, after, last)

    def defer(self, connection: Connection) -> AbstractContextManager[None]:
        """Index the messages that the `with` block inserts, all at once when the block ends."""
        from core.store.sqlite import indexing

        return indexing.defer_indexing(connection)

    def index_chunks(self, connection: Connection, chunk_ids: Sequence[int]) -> None:
        """Add chunks, and mark them as indexed."""
        from core.store.sqlite import indexing

        indexing.index_chunks(connection, chunk_ids)

    def remove_chunk(self, connection: Connection, chunk_id: int) -> None:
        from core.store.sqlite import indexing

        indexing.remove_chunk(connection, chunk_id)

    def index_fact(self, connection: Connection, fact_id: int) -> None:
        """Add a fact, or replace its indexed version."""
        from core.store.sqlite import fact_index

        fact_index.index_fact(connection, fact_id)

    def index_file_part(self, connection: Connection, part_id: int, text: str) -> None:
        from core.store.sqlite import fact_index

        fact_index.index_file_part(connection, part_id, text)

    # --- Upkeep ---

    def begin_rebuild(self, connection: Connection) -> None:
        """Empty the indexes over messages and chunks, and rebuild those over facts and files."""
        from core.store.sqlite import indexing

        indexing.begin_rebuild(connection)

    def merge(self, connection: Connection, pages: int) -> bool:
        """Merge some segments of the indexes over messages and chunks."""
        from core.store.sqlite import indexing

        return indexing.merge_indexes(connection, pages)

    def find_damage(self, connection: Connection) -> list[str]:
        """Check the indexes, and return one sentence per problem."""
        from core.store.sqlite import indexing

        return indexing.find_damage(connection)


def _group_by_scope(
    leading: Iterable[str], lending: Iterable[str]
) -> dict[str, tuple[list[str], list[str]]]:
    """Return the leading and the lending terms of each scope that has a leading term."""
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for term in leading:
        groups.setdefault(_scope_of(term), ([], []))[0].append(term)
    for term in lending:
        scope = _scope_of(term)
        if scope in groups:
            groups[scope][1].append(term)
    return groups


def _scope_of(index_term: str) -> str:
    """Return the scope's id in a `scoped_term`: ``7`` for ``7xcoffee``."""
    return index_term.partition("x")[0]


def _chunk_expression(leading: Sequence[str], lending: Sequence[str]) -> str:
    """Return the FTS5 expression for the chunks of a scope that contain a leading term.

    The lending terms don't select chunks, but they count for the score.
    """
    expression = _any_of(leading)
    if not lending:
        return f"({expression})"
    return f"(({expression}) AND ({expression} OR {_any_of(lending)}))"


def _any_of(terms: Iterable[str]) -> str:
    """Return the FTS5 expression for chunks that contain any of the terms."""
    return " OR ".join(f'"{term}"' for term in terms)


def _quote(text: str) -> str:
    """Quote a text as an FTS5 string, in which no character has a special meaning."""
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


# --- The connection ---


class StoreConnection(sqlite3.Connection):
    """A connection to state.db with the text indexes. Invalid Unicode is repaired."""

    index = FtsIndex()
    # Whether a write may copy the log into the file.
    may_copy_log = True

    def transact(self, begin: str, work: Callable[[StoreConnection], T]) -> T:
        """Run `work` in a transaction that begins with the statement `begin`."""
        try:
            self.execute(begin)
            result = work(self)
            self.execute("COMMIT")
        except BaseException as error:
            # An expired time limit would interrupt ROLLBACK, too.
            self.set_progress_handler(None, 0)
            close_cursors(error)
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise
        return result

    def let_copy_log(self, *, may_copy: bool) -> None:
        """Set whether a write copies the log into the file once the log is large."""
        if may_copy is not self.may_copy_log:
            self.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES if may_copy else 0}")
            self.may_copy_log = may_copy

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Run a statement. Texts that aren't valid Unicode are repaired first."""
        try:
            return super().execute(statement, values)
        except UnicodeEncodeError:
            valid_values = dict(values)
            for name, value in valid_values.items():
                if isinstance(value, str):
                    valid_values[name] = clean(value)
            return super().execute(statement, valid_values)

    def fetch_each(self, statement: str, values: Iterable[Values], /) -> list[list[Row]]:
        """Run a query once for each item of `values`, and return the rows of each run."""
        return [self.execute(statement, item).fetchall() for item in values]
