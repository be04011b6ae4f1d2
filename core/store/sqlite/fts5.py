"""Operations on a single FTS5 table: merge its segments, and make a broken one usable again.

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
"""The tables behind an index with external content, as in "FTS5 Data Structures"."""


def merge_table(connection: Connection, table: str, pages: int) -> bool:
    """Merge at most `pages` pages of segments, or all if it is negative.

    Returns whether there was anything to do: FTS5 then changes at least two rows ("merge").
    """
    changes_before = connection.execute("SELECT total_changes()").fetchone()[0]
    connection.execute(
        f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages}
    )
    changes_after = connection.execute("SELECT total_changes()").fetchone()[0]
    return bool(changes_after - changes_before >= 2)


def reset_index(connection: Connection, table: str) -> None:
    """Make an index empty, so that it can be opened whatever was wrong with it.

    FTS5 refuses both 'delete-all' and DROP for a broken index, so this replaces the tables behind
    it by those of an empty one.
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
    """Set the options of an index again, as the schema does."""
    for line in (CREATE_INDEXES + SET_HASH_SIZE).splitlines():
        if line.startswith(f"INSERT INTO {table} ({table}, rank) VALUES"):
            connection.execute(line)
