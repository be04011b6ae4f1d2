"""The rule for who may see a row: the scope of the row must be one of the reader's scopes.

Every statement that reads for a person contains this condition. No caller filters the results.
"""

from __future__ import annotations

from functools import cache, lru_cache

from core.store.sqlite.schema import encode_list, in_list
from core.types import Scope


@cache
def visible(column: str = "sessions.scope_id") -> str:
    """Return the SQL condition that the scope id `column` is one of the scopes ``:scopes``."""
    return f"{column} IN (SELECT id FROM scopes WHERE {in_list('key', 'scopes')})"


@lru_cache(maxsize=256)
def scope_parameter(scopes: frozenset[Scope]) -> str:
    """Encode scopes as the value of ``:scopes``.

    Keys that contain a NUL character are left out. SQLite's JSON reader would end such a key at the
    NUL, and the shortened key could be the key of another scope.
    """
    return encode_list(sorted({scope.key for scope in scopes if "\0" not in scope.key}))
