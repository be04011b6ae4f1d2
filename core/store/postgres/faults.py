"""Convert PostgreSQL's errors to sentences that say what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from core.errors import StoreError

# The keys of sentences for people, by the class of the error.
_KEYS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.InvalidPassword, "pg_password"),
    (errors.InvalidCatalogName, "pg_no_database"),
    (errors.ReadOnlySqlTransaction, "pg_read_only"),
    (errors.DiskFull, "pg_full"),
    (errors.TooManyConnections, "pg_connections"),
    (errors.LockNotAvailable, "pg_locked"),
)


GIVEN_UP = "MN001"
"""The error code of `check_gateway` in functions.sql."""


class GivenUpError(StoreError):
    """Another gateway has taken over this gateway's chats, so this one must not write."""


class StoreCutError(StoreError):
    """The connection was cut. The next transaction opens a new one."""


def to_store_error(name: str, error: psycopg.Error) -> StoreError:
    """Convert an error of PostgreSQL to a StoreError. Its sentence says what to do."""
    text = " ".join(str(error).split())
    if error.sqlstate == GIVEN_UP:
        return GivenUpError("pg_given_up", name=name)
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError("pg_privilege", name=name, text=text)
    for error_type, key in _KEYS:
        if isinstance(error, error_type):
            return StoreError(key, name=name)
    return StoreError(f"{name}: {text}")


def to_connect_error(name: str, error: psycopg.Error) -> StoreError:
    """Convert an error that occurred while connecting. Such an error usually has no error code."""
    text = " ".join(str(error).split())
    if "password authentication failed" in text or "no password supplied" in text:
        error = errors.InvalidPassword(text)
    elif "does not exist" in text and "database" in text:
        error = errors.InvalidCatalogName(text)
    elif "too many clients" in text or "connection slots" in text:
        error = errors.TooManyConnections(text)
    else:
        return StoreError("pg_unreached", name=name, text=text)
    return to_store_error(name, error)


def describe_url(url: str) -> str:
    """Return the host and database of a URL, such as ``db.example.org/mneme``.

    The user and password are left out. Raises StoreError if the URL is invalid.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreError("pg_url") from error
    host = parts.get("host") or "localhost"
    return f"{host}/{parts.get('dbname') or parts.get('user') or ''}"
