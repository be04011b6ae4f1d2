"""The tables of what memory services were told: how far, by ids, and of what past they are still to be told."""

from __future__ import annotations

ERRAND_TABLES = """
CREATE TABLE told (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    last_id INTEGER NOT NULL,
    PRIMARY KEY (provider, subject)
) WITHOUT ROWID;

CREATE TABLE pasts (
    provider TEXT PRIMARY KEY,
    since REAL NOT NULL,
    next_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL
) WITHOUT ROWID;
"""
