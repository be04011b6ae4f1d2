"""Gateways that share a database: who works on a chat, and what happens when one dies."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest

from core.errors import StoreError
from core.store.postgres.database import Database
from core.store.postgres.faults import GivenUpError
from core.store.postgres.gateways import (
    assign_chat,
    claim_unowned_chats,
    give_up_gateway,
    load_membership,
)
from core.store.postgres.schema import SCHEMA, prepare_schema
from core.store.rows import set_meta

pytestmark = pytest.mark.slow

JOIN_AND_WAIT = """
import asyncio, sys
from core.store.postgres.database import Database

async def main():
    async with Database.open(sys.argv[1]) as database:
        print(await database.join(lambda: None), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
PUT_ENTRY = f"""
WITH place AS (
    INSERT INTO {SCHEMA}.addresses (platform, chat_id, thread_id)
    VALUES ('telegram', %s, %s) RETURNING id
)
INSERT INTO {SCHEMA}.inbox (address_id, external_id, inbound, received_at)
SELECT id, '1', '{{}}', 0 FROM place
"""


@contextmanager
def run_gateway(url: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Let another process join the gateways. Yields its number and the process."""
    command = [sys.executable, "-c", JOIN_AND_WAIT, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.kill()


def put_entry(url: str, chat_id: str, thread_id: str = "") -> None:
    with psycopg.connect(url) as connection:
        connection.execute(PUT_ENTRY.encode(), (chat_id, thread_id))


async def test_killed_gateway_gives_its_unfinished_chats_to_the_heir_and_frees_the_others(
    postgres_url: str,
) -> None:
    async with Database.open(postgres_url) as heir:
        own = await heir.join(lambda: None)
        with run_gateway(postgres_url) as (number, process):
            for chat in ("telegram:5", "telegram:6"):
                assign = partial(assign_chat, chat=chat, gateway=number)
                assert await heir.write(assign) == number
            put_entry(postgres_url, "5", "7")
            give_up = partial(give_up_gateway, gateway=number, heir=own)
            assert await heir.write(give_up) is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            while (adopted := await heir.write(give_up)) is None:
                pass
        assert adopted == {"telegram:5"}
        membership = await heir.read(load_membership)
        assert membership.gateways == {own}
        assert membership.owners == {"telegram:5": own}
        assert await heir.write(partial(assign_chat, chat="telegram:6", gateway=own)) == own


async def test_chat_that_has_an_owner_keeps_it(postgres_url: str) -> None:
    async with Database.open(postgres_url) as first, Database.open(postgres_url) as second:
        numbers = [await database.join(lambda: None) for database in (first, second)]
        for database, number in zip((first, second), numbers, strict=True):
            assign = partial(assign_chat, chat="telegram:5", gateway=number)
            assert await database.write(assign) == numbers[0]


async def test_waiting_chats_without_an_owner_are_claimed_on_the_given_platforms_only(
    postgres_url: str,
) -> None:
    put_entry(postgres_url, "5")
    put_entry(postgres_url, "6")
    async with Database.open(postgres_url) as database:
        number = await database.join(lambda: None)
        await database.write(partial(assign_chat, chat="telegram:5", gateway=number))
        for platforms, chats in ((["discord"], set()), (["telegram"], {"telegram:6"})):
            claim = partial(claim_unowned_chats, gateway=number, platforms=platforms)
            assert await database.write(claim) == chats


async def test_gateway_that_was_cut_off_and_given_up_can_write_no_more(postgres_url: str) -> None:
    given_up: list[bool] = []
    async with Database.open(postgres_url) as cut, Database.open(postgres_url) as heir:
        number = await cut.join(lambda: given_up.append(True))
        own = await heir.join(lambda: None)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN "
                "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = %s)",
                (number,),
            )
        give_up = partial(give_up_gateway, gateway=number, heir=own)
        while await heir.write(give_up) is None:
            pass
        with pytest.raises(GivenUpError, match="Start it again"):
            await cut.write(lambda connection: set_meta(connection, "key", "value"))
        assert given_up


async def test_gateway_that_was_only_cut_off_stays_a_gateway(postgres_url: str) -> None:
    async with Database.open(postgres_url) as cut, Database.open(postgres_url) as other:
        number = await cut.join(lambda: None)
        own = await other.join(lambda: None)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        await cut.write(lambda connection: set_meta(connection, "key", "value"))
        give_up = partial(give_up_gateway, gateway=number, heir=own)
        assert await other.write(give_up) is None


async def test_schema_of_an_earlier_version_is_not_upgraded_while_a_gateway_runs(
    postgres_url: str,
) -> None:
    async with Database.open(postgres_url) as database:
        await database.join(lambda: None)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"UPDATE {SCHEMA}.schema_version SET version = version - 1")
            with pytest.raises(StoreError, match="Stop all gateways"):
                prepare_schema(connection)
