"""Merges the segments of an FTS5 index, and replaces a broken index by an empty one.

See https://sqlite.org/fts5.html.
"""

from __future__ import annotations

from core.store.rows import Connection
from core.store.sqlite.schema import CREATE_INDEXES, SET_HASH_SIZE

_SHADOW_TABLES = {
    "data": "(id INTEGER PRIMARY KEY, block BLOB)",
    "idx": "(segid, term, pgno, PRIMARY KEY (segid, term)) WITHOUT ROWID",
    "docsize": "(id INTEGER PRIMARY KEY, sz BLOB)",
    "config": "(k PRIMARY KEY, v) WITHOUT ROWID",
}
"""The tables in which FTS5 stores an index with external content, and their columns.

See "FTS5 Data Structures" in the documentation.
"""


def merge_table(connection: Connection, table: str, pages: int) -> bool:
    """Merge about `pages` pages of an index's segments. Returns whether there was work to do.

    A negative number of pages first marks all segments, so that they are merged into one. FTS5
    changes at least two rows when there is something to merge (see "The 'merge' Command").
    """
    changes_before = connection.execute("SELECT total_changes()").fetchone()[0]
    connection.execute(
        f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages}
    )
    changes_after = connection.execute("SELECT total_changes()").fetchone()[0]
    return bool(changes_after - changes_before >= 2)


def reset_index(connection: Connection, table: str) -> None:
    """Empty an index, even if it is too damaged to be opened.

    FTS5 refuses both 'delete-all' and DROP for a broken index. So the rows of its internal tables
    are replaced by those of a new, empty index.
    """
    connection.execute("CREATE VIRTUAL TABLE temp.blank USING fts5(text)")
    for suffix, columns in _SHADOW_TABLES.items():
        shadow = f"main.{table}_{suffix}"
        connection.execute(f"CREATE TABLE IF NOT EXISTS {shadow} {columns}")
        connection.execute(f"DELETE FROM {shadow}")
        connection.execute(f"INSERT INTO {shadow} SELECT * FROM temp.blank_{suffix}")
    connection.execute("DROP TABLE temp.blank")
    _restore_options(connection, table)


def _restore_options(connection: Connection, table: str) -> None:
    """Set the options of an index, such as its rank function, to those of the schema."""
    for line in (CREATE_INDEXES + SET_HASH_SIZE).splitlines():
        if line.startswith(f"INSERT INTO {table} ({table}, rank) VALUES"):
            connection.execute(line)
