"""The one scope predicate: who may see a row of state.db.

Every statement that reads what people said (sessions, messages, jobs, notes, recall) joins `visible()` into its WHERE
clause and binds `scope_parameter()` as `:scopes`. An empty set, or one that holds unknown scopes only, sees nothing.
Decides nothing about which scopes a person has; that is `people.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from core.types import Scope


def visible(column: str = "sessions.scope_id") -> str:
    """The SQL condition that `column` (a scope id) is one of the scopes bound as ``:scopes``.

    `column` is a constant of the calling statement, never anything a person typed; all else than a dotted name raises
    ValueError.
    """
    if not all(part.isidentifier() for part in column.split(".")):
        raise ValueError(f"not a column: {column!r}")
    return f"{column} IN (SELECT id FROM scopes WHERE key IN (SELECT value FROM json_each(:scopes)))"


def scope_parameter(scopes: Iterable[Scope]) -> str:
    """The value of ``:scopes``: a JSON list of scope keys, ``[]`` for nobody.

    A key with a NUL is left out: SQLite's JSON reader ends a string there, which would make it another scope's key.
    """
    return json.dumps(sorted({scope.key for scope in scopes if "\0" not in scope.key}))
