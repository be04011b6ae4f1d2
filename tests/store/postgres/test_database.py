"""Transactions on a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import signal
import threading
from datetime import UTC, datetime

import psycopg
import pytest

from core.errors import StoreError
from core.store.postgres.connection import StoreConnection
from core.store.postgres.database import Database
from core.store.postgres.dialect import translate
from core.store.rows import get_meta, set_meta
from core.types import Scope
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow


def test_row_is_read_by_name_position_and_slice(postgres_url: str) -> None:
    connection = StoreConnection(postgres_url)
    row = connection.execute("SELECT 7 AS id, 'Ana' AS name, NULL AS gone", ()).fetchone()
    connection.close()
    assert row is not None
    assert (row["id"], row[1], row[:2], row.keys()) == (
        7,
        "Ana",
        (7, "Ana"),
        ["id", "name", "gone"],
    )
    id_, name, gone = row
    assert (id_, name, gone) == (7, "Ana", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('it\'s 100 % \\ "sure"', 'it\'s 100 % \\ "sure"'),
        ("a\0b", "a\ufffdb"),
        ("\ud83d\ude00 \ud800", "\U0001f600 \ufffd"),
        (Scope(key="room:telegram:-5"), "room:telegram:-5"),
        (2**62, 2**62),
        (-3, -3),
        (True, True),
        (0.1, 0.1),
        (datetime(2026, 11, 20, 12, 0, 0, 250_000, UTC), 1795176000.25),
        (b"\0\xff", b"\0\xff"),
        (None, None),
    ],
)
def test_value_bound_in_a_postgres_statement_is_returned_unchanged(
    postgres_url: str, value: object, expected: object
) -> None:
    connection = StoreConnection(postgres_url)
    row = connection.execute("SELECT :value AS value, :value IS NULL", {"value": value}).fetchone()
    connection.close()
    assert row is not None
    assert tuple(row) == (expected, value is None)


def test_totals_of_numbers_come_back_as_int_or_float(postgres_url: str) -> None:
    connection = StoreConnection(postgres_url)
    statement = "SELECT SUM(value::bigint), SUM(value::numeric / 2), total(value::bigint)"
    row = connection.execute(f"{statement} FROM json_each('[1, 2]')", ()).fetchone()
    connection.close()
    assert row is not None
    assert list(map(repr, row)) == ["3", "1.5", "3.0"]


@each_row(
    ("statement", "expected"),
    [
        ("SELECT ':no', a::text, ? LIKE '5%'", "SELECT ':no', a::text, %s LIKE '5%%'"),
        (
            "DELETE FROM t WHERE id NOT IN (SELECT value FROM json_each(:ids))",
            "DELETE FROM t WHERE id <> ALL(%(ids__list)s)",
        ),
        (
            "INSERT OR IGNORE INTO t (a) VALUES (:a) RETURNING id",
            "INSERT INTO t (a) VALUES (%(a)s) ON CONFLICT DO NOTHING RETURNING id",
        ),
        ("SELECT a IS NOT :b, c IS NULL", "SELECT a IS DISTINCT FROM %(b)s, c IS NULL"),
        ("SELECT 1 FROM a CROSS JOIN b ON b.id = a.id", "SELECT 1 FROM a JOIN b ON b.id = a.id"),
        ("SELECT 1 FROM a CROSS JOIN b", "SELECT 1 FROM a CROSS JOIN b"),
        ("SELECT a GLOB 'room:*[^0-9].?'", "SELECT a ~ '^(?:room:.*[^0-9]\\..)$'"),
        ("SELECT CAST(a AS INTEGER) LIMIT -1", "SELECT CAST(a AS bigint) LIMIT ALL"),
    ],
)
def test_sqlite_statement_is_translated_to_postgres(statement: str, expected: str) -> None:
    assert translate(statement).sql == expected


async def test_write_that_fails_changes_nothing_and_leaves_the_connection_usable(
    postgres_url: str,
) -> None:
    async with Database.open(postgres_url) as database:

        def fail(connection: StoreConnection) -> None:
            set_meta(connection, "key", "value")
            connection.execute("SELECT * FROM no_such_table", ())

        with pytest.raises(StoreError, match="no_such_table"):
            await database.write(fail)
        assert await database.read(lambda connection: get_meta(connection, "key")) is None
        await database.write(lambda connection: set_meta(connection, "key", "second"))
        assert await database.read(lambda connection: get_meta(connection, "key")) == "second"


async def test_postgres_read_transaction_cannot_write(postgres_url: str) -> None:
    async with Database.open(postgres_url) as database:
        with pytest.raises(StoreError, match="read-only"):
            await database.read(lambda connection: set_meta(connection, "key", "value"))


async def test_postgres_writes_of_several_processes_are_serialised(postgres_url: str) -> None:
    def increase(connection: StoreConnection) -> None:
        set_meta(connection, "count", str(int(get_meta(connection, "count") or 0) + 1))

    async with Database.open(postgres_url) as first, Database.open(postgres_url) as second:
        await asyncio.gather(*(database.write(increase) for database in [first, second] * 50))
        assert await first.read(lambda connection: get_meta(connection, "count")) == "100"


async def test_version_of_the_data_changes_only_with_writes_of_others(postgres_url: str) -> None:
    async with Database.open(postgres_url) as first, Database.open(postgres_url) as second:
        await first.write(lambda connection: set_meta(connection, "key", "a"))
        version = await first.data_version()
        await first.write(lambda connection: set_meta(connection, "key", "b"))
        assert await first.data_version() == version
        await second.write(lambda connection: set_meta(connection, "key", "c"))
        assert await first.data_version() != version


def cut_connections(url: str) -> None:
    """End all other connections to the database, as a restart of the server does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_connection_cut_while_idle_is_opened_again_unnoticed(postgres_url: str) -> None:
    async with Database.open(postgres_url) as database:
        await database.read(lambda connection: get_meta(connection, "key"))
        cut_connections(postgres_url)
        await database.write(lambda connection: set_meta(connection, "key", "value"))
        assert await database.read(lambda connection: get_meta(connection, "key")) == "value"


async def test_postgres_connection_lost_during_a_write_stores_nothing_and_raises_an_error(
    postgres_url: str,
) -> None:
    async with Database.open(postgres_url) as database:

        def write_and_cut(connection: StoreConnection) -> None:
            set_meta(connection, "key", "value")
            cut_connections(postgres_url)
            set_meta(connection, "key", "second")

        with pytest.raises(StoreError, match=r"was cut, and nothing was stored\. Send it again"):
            await database.write(write_and_cut)
        assert await database.read(lambda connection: get_meta(connection, "key")) is None
        await database.write(lambda connection: set_meta(connection, "key", "value"))


async def test_server_that_is_away_is_named_and_used_again_when_it_is_back(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with Database.open(postgres_url) as database:
        postgres_server.halt(signal.SIGINT)
        try:
            with pytest.raises(StoreError, match="can't be reached"):
                await database.fetch_one("SELECT 1")
        finally:
            postgres_server.run()
        row = await database.fetch_one("SELECT 1 AS one")
        assert row is not None
        assert row["one"] == 1


async def test_password_is_not_in_the_sentence_about_an_unreachable_server() -> None:
    url = "postgresql://mneme:secret@127.0.0.1:1/mneme"
    with pytest.raises(StoreError, match=r"127\.0\.0\.1/mneme can't be reached") as caught:
        async with Database.open(url):
            pass
    assert "secret" not in str(caught.value)


async def test_url_that_is_no_address_is_refused_with_an_example() -> None:
    with pytest.raises(StoreError, match="postgresql://host/database"):
        async with Database.open("postgresql://[/x"):
            pass


async def test_second_gateway_on_a_database_is_refused_also_after_the_first_was_cut(
    postgres_url: str,
) -> None:
    async with Database.open(postgres_url) as first, Database.open(postgres_url) as second:
        await first.claim_for_gateway()
        with pytest.raises(StoreError, match="Another gateway uses the database"):
            await second.claim_for_gateway()
        cut_connections(postgres_url)
        await first.write(lambda connection: set_meta(connection, "key", "value"))
        with pytest.raises(StoreError, match="Another gateway uses the database"):
            await second.claim_for_gateway()
    async with Database.open(postgres_url) as third:
        await third.claim_for_gateway()


async def test_queued_write_whose_caller_is_cancelled_is_still_stored(postgres_url: str) -> None:
    is_busy, may_end = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        is_busy.set()
        assert may_end.wait(20)

    async with Database.open(postgres_url) as database:
        first = asyncio.create_task(database.write(wait))
        assert await asyncio.to_thread(is_busy.wait, 20)
        second = asyncio.create_task(
            database.write(lambda connection: set_meta(connection, "answer", "stored"))
        )
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        may_end.set()
        await first
        # As on SQLite, this write runs after the queued one, so it sees whether that was stored.
        stored = await database.write(lambda connection: get_meta(connection, "answer"))
        assert stored == "stored"
