"""What `mneme check` asks SQLite: can it do what state.db needs, and is the file whole. Changes nothing."""

from __future__ import annotations

import sqlite3

from core.store.sqlite.database import Database

OLDEST = (3, 37, 0)
"""RETURNING is of 3.35, STRICT and the trigram tokenizer's present form of 3.37."""
REPORTED = 5


def version() -> str:
    """SQLite's version, as ``3.40.1``."""
    return sqlite3.sqlite_version


def missing_features() -> list[str]:
    """What this SQLite lacks, each as a few words; empty when it has everything."""
    missing = []
    if sqlite3.sqlite_version_info < OLDEST:
        missing.append(f"version {'.'.join(map(str, OLDEST))} or newer")
    connection = sqlite3.connect(":memory:")
    try:
        for tokenizer, name in (("unicode61", "FTS5, the full-text search"), ("trigram", "the trigram tokenizer")):
            try:
                connection.execute(f"CREATE VIRTUAL TABLE {tokenizer}_probe USING fts5(text, tokenize = '{tokenizer}')")
            except sqlite3.OperationalError:
                missing.append(name)
        try:
            connection.execute("SELECT json_each.value FROM json_each('[1]')")
        except sqlite3.OperationalError:
            missing.append("JSON functions")
    finally:
        connection.close()
    return missing


async def damage(database: Database) -> list[str]:
    """What `PRAGMA quick_check` and the foreign keys say is wrong with the file; empty when it is whole."""

    def work(connection: sqlite3.Connection) -> list[str]:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({REPORTED})")]
        broken = connection.execute("PRAGMA foreign_key_check").fetchmany(REPORTED)
        return [line for line in found if line != "ok"] + [f"a row of {row[0]} refers to nothing" for row in broken]

    return await database.read(work)
