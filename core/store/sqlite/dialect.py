"""The few expressions of SQL that every engine words otherwise, as SQLite words them."""

from __future__ import annotations

import json
from collections.abc import Iterable


def in_list(column: str, parameter: str) -> str:
    """The condition that a column is one of a bound `list_value`. Both names are constants of the calling statement."""
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def overlaps(column: str, parameter: str) -> str:
    """The condition that a column, which holds a `list_value`, has something in common with a bound one."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {in_list('value', parameter)})"


def is_within(column: str, parameter: str) -> str:
    """The condition that a column, which holds a `list_value`, has nothing that a bound one has not."""
    return f"NOT EXISTS (SELECT 1 FROM json_each({column}) WHERE NOT {in_list('value', parameter)})"


def list_value(values: Iterable[int | str]) -> str:
    return json.dumps(list(values))
