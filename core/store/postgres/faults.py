"""Convert PostgreSQL's errors to sentences that say what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from core.errors import StoreError

CUT = "The connection to the database {name} was cut, and nothing was stored. Send it again."
CUT_WHILE_STORING = (
    "The connection to the database {name} was cut while the last change was stored. "
    "Look whether it is there, and send it again if it isn't."
)
TAKEN = "Another gateway uses the database {name}. Stop it, or give this one a database of its own."
_UNREACHABLE = "The database {name} can't be reached ({text}). Check that PostgreSQL runs there."
_SENTENCES: tuple[tuple[type[psycopg.Error], str], ...] = (
    (
        errors.InvalidPassword,
        "PostgreSQL refuses the user or password for {name}. Check url in [store].",
    ),
    (
        errors.InvalidCatalogName,
        "The database {name} doesn't exist. Create it with createdb, or check url in [store].",
    ),
    (
        errors.InsufficientPrivilege,
        "The user for {name} may not do this ({text}). Make the user the owner of the database.",
    ),
    (
        errors.ReadOnlySqlTransaction,
        "The database {name} is read-only. Connect to the primary server, not to a replica.",
    ),
    (
        errors.DiskFull,
        "The disk of the database {name} is full. Make room and try again; nothing stored was "
        "lost.",
    ),
    (
        errors.TooManyConnections,
        "The server of {name} takes no more connections. Raise max_connections, or stop another "
        "program.",
    ),
    (
        errors.LockNotAvailable,
        "The database {name} is locked by another program. Close it and try again.",
    ),
)
"""Sentences for people, by the class of the error."""


class StoreCutError(StoreError):
    """The connection was cut. The next transaction opens a new one."""


def to_store_error(name: str, error: psycopg.Error) -> StoreError:
    """Convert an error of PostgreSQL to a StoreError with a sentence that says what to do."""
    text = " ".join(str(error).split())
    for error_type, sentence in _SENTENCES:
        if isinstance(error, error_type):
            return StoreError(sentence.format(name=name, text=text))
    return StoreError(f"{name}: {text}")


def to_connect_error(name: str, error: psycopg.Error) -> StoreError:
    """Convert an error of opening a connection, which usually has no error code."""
    text = " ".join(str(error).split())
    if "password authentication failed" in text or "no password supplied" in text:
        error = errors.InvalidPassword(text)
    elif "does not exist" in text and "database" in text:
        error = errors.InvalidCatalogName(text)
    elif "too many clients" in text or "connection slots" in text:
        error = errors.TooManyConnections(text)
    else:
        return StoreError(_UNREACHABLE.format(name=name, text=text))
    return to_store_error(name, error)


def describe_url(url: str) -> str:
    """Return the host and database of a URL, such as ``db.example.org/mneme``.

    The user and password are left out. Raises StoreError if the URL is invalid.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreError(
            "url in [store] isn't an address of PostgreSQL. Write it as postgresql://host/database."
        ) from error
    host = parts.get("host") or "localhost"
    return f"{host}/{parts.get('dbname') or parts.get('user') or ''}"
