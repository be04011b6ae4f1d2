"""A connection to state.db, as `core.store.engine.Connection` describes it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from core.store import rows
from core.store.engine import Row, Values
from core.store.sqlite.text_index import FtsIndex


class StoreConnection(sqlite3.Connection):
    """A connection to state.db."""

    index = FtsIndex()
    # Whether a write may copy the log into the file.
    may_copy_log = True

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """Run a statement. Texts that aren't valid Unicode are repaired first."""
        try:
            return super().execute(statement, values)
        except UnicodeEncodeError:
            valid_values = dict(values)
            for name, value in valid_values.items():
                if isinstance(value, str):
                    valid_values[name] = rows.clean(value)
            return super().execute(statement, valid_values)

    def fetch_each(self, statement: str, values: Iterable[Values], /) -> list[list[Row]]:
        """Run a query once per item of `values`, and return the rows of each."""
        return [self.execute(statement, item).fetchall() for item in values]
