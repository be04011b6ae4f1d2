"""The text indexes over messages: their tables, the triggers that keep them, the functions these call."""

from __future__ import annotations

import sqlite3

INDEXES = ""


def register(connection: sqlite3.Connection) -> None:
    """Gives a connection the SQL functions that the triggers and views use."""
