"""The tables of what is being erased: lists of ids, never words; and room for zeros where erased words lay.
`number` counts those that were done, see `vantage.py`."""

from __future__ import annotations

ERASURE_TABLES = """
CREATE TABLE erasures (
    id TEXT PRIMARY KEY,
    lane TEXT NOT NULL,
    account TEXT NOT NULL,
    scopes TEXT NOT NULL,
    number INTEGER,
    made_at REAL NOT NULL,
    begun_at REAL,
    done_at REAL,
    list TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE zeros (
    id INTEGER PRIMARY KEY,
    zeros BLOB NOT NULL
);
"""
