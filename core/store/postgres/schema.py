"""Create the schema of a store on PostgreSQL, and upgrade earlier versions.

All objects are in the schema `mneme`, so other programs can use the same database. `schema.sql` has
the same tables and columns as SQLite's, but different text indexes. `functions.sql` has the SQL
functions, and `upgrades.sql` the steps from earlier versions.
"""

from __future__ import annotations

import re
import secrets
from itertools import chain
from pathlib import Path
from typing import Any

from psycopg import Connection, sql

from core.errors import StoreError
from core.store import engine as store
from core.text.normalize import TERMS_VERSION, comparison_form, to_normal_form

SCHEMA = "mneme"
SCHEMA_VERSION = 7
"""The version of `schema.sql`. It's stored in the table `schema_version`."""
SCHEMA_LOCK = 7_236_650_017
"""The advisory lock that processes take while they create or upgrade the schema."""
GATEWAY_LOCK = 7_236_650_019
"""The advisory lock of the gateway that receives the messages of all platforms."""
LIFE_LOCK = 723_665
"""The first key of the advisory locks that gateways hold while they live. The second key is the
gateway's number."""
MIN_SERVER_VERSION = 150_000
_COUNT_GATEWAYS = """
SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid = %(life)s AND objsubid = 2)
        OR (classid = %(gateway)s >> 32 AND objid = %(gateway)s & 4294967295 AND objsubid = 1))
"""

_UPGRADE_STEP = re.compile(r"^-- version (\d+)\n", re.MULTILINE)


def prepare_schema(connection: Connection[Any]) -> None:
    """Create the schema if it is missing, and upgrade it if it is of an earlier version.

    The connection must have no open transaction. Several processes may call this at the same time.
    One of them creates or upgrades the schema in one transaction, and the others wait. Raises
    StoreError if the server is too old, if the schema is newer than this version of Mneme, or if it
    is older and a gateway still uses it.
    """
    version = connection.info.server_version
    if version < MIN_SERVER_VERSION:
        raise StoreError("pg_old", version=version // 10_000)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
        stored = read_schema_version(connection)
        if stored is None:
            _create_schema(connection)
        elif stored > SCHEMA_VERSION:
            raise StoreError("pg_newer", schema=stored, known=SCHEMA_VERSION)
        elif stored < SCHEMA_VERSION:
            if count_gateways(connection):
                raise StoreError("pg_in_use")
            _upgrade_schema(connection, stored)


def read_schema_version(connection: Connection[Any]) -> int | None:
    """Return the version of the stored schema, or None if the database has none."""
    table = f"{SCHEMA}.schema_version"
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
    if row is None or not row[0]:
        return None
    row = connection.execute(f"SELECT version FROM {table}").fetchone()
    return None if row is None else int(row[0])


def count_gateways(connection: Connection[Any]) -> int:
    """Count the locks that the running gateways of the database hold."""
    values = {"life": LIFE_LOCK, "gateway": GATEWAY_LOCK}
    row = connection.execute(_COUNT_GATEWAYS, values).fetchone()
    return 0 if row is None else int(row[0])


def _create_schema(connection: Connection[Any]) -> None:
    """Create all tables, and insert the initial rows of a store."""
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
    _create_bare(connection)
    connection.execute(_read_script("functions"))
    connection.execute(_read_script("schema"))
    connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (SCHEMA_VERSION,))
    values = {
        "index_version": str(TERMS_VERSION),
        "facts_version": str(TERMS_VERSION),
        # See `core.store.erasure.epoch.JOURNAL_META_KEY`.
        "erasure_key": secrets.token_hex(32),
    }
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO state_meta (key, value) VALUES (%s, %s)", list(values.items())
        )


def _upgrade_schema(connection: Connection[Any], stored: int) -> None:
    """Run the upgrade steps from the version `stored` to the present one."""
    connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
    steps = _UPGRADE_STEP.split(_read_script("upgrades").decode())
    for version, script in zip(steps[1::2], steps[2::2], strict=True):
        if int(version) > stored:
            connection.execute(script.encode())
    connection.execute(_read_script("functions"))
    connection.execute("UPDATE schema_version SET version = %s", (SCHEMA_VERSION,))


def _read_script(name: str) -> bytes:
    return Path(__file__).with_name(f"{name}.sql").read_bytes()


def measure_bytes(connection: store.Connection) -> int:
    """Return the size of all tables and indexes of the store."""
    statement = "SELECT COALESCE(SUM(pg_total_relation_size(oid)), 0) FROM pg_class"
    condition = "relkind IN ('r', 'm') AND relnamespace = to_regnamespace(:schema)"
    row = connection.execute(f"{statement} WHERE {condition}", {"schema": SCHEMA}).fetchone()
    return int(row[0])


def describe_server(connection: store.Connection) -> str:
    """Return the version of the server, such as ``PostgreSQL 15.13``."""
    row = connection.execute("SELECT current_setting('server_version')", {}).fetchone()
    return f"PostgreSQL {str(row[0]).partition(' ')[0]}"


# --- The function `bare` ---

_REMOVED_MARKS = (
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670]"
)
"""Accents and vowel marks, as in a regular expression."""
_CREATE_BARE = """
CREATE FUNCTION bare(name text) RETURNS text LANGUAGE sql IMMUTABLE AS {body}
"""
_BARE = """
SELECT replace(translate(lower(normalize(regexp_replace(
    normalize(COALESCE(name, ''), NFKD), {marks}, '', 'g'
), NFKC) COLLATE "und-x-icu"), {letters}, {replacements}), 'ß', 'ss')
"""


def _create_bare(connection: Connection[Any]) -> None:
    """Create the SQL function `bare`, the counterpart of the Python function `comparison_form`.

    The server can lower case and remove accents by itself. The function lists the other letters
    that `comparison_form` replaces, such as traditional Han characters.
    """
    replacements: dict[str, str] = {}
    for letter in map(chr, chain(range(0x80, 0xAC00), range(0xF900, 0xFFFE))):
        replacement = comparison_form(letter)
        is_single = len(replacement) == 1 and replacement != letter
        if is_single and _reduce(letter) == letter:
            replacements[letter] = replacement
    body = sql.SQL(_BARE).format(
        marks=sql.Literal(_REMOVED_MARKS),
        letters=sql.Literal("".join(replacements)),
        replacements=sql.Literal("".join(replacements.values())),
    )
    statement = sql.SQL(_CREATE_BARE).format(body=sql.Literal(body.as_string(connection)))
    connection.execute(statement)


def _reduce(letter: str) -> str:
    """Return a letter in lower case and without accents, as the server converts it."""
    letters = re.sub(_REMOVED_MARKS, "", to_normal_form("NFKD", letter))
    return to_normal_form("NFKC", letters).lower()
