"""The contract of Links where time and tries matter."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.errors import Refused
from core.store.links import LIFE, Link, Links, NamedAccount
from core.store.people import People
from core.store.sqlite.database import Database
from core.types import Account, Address, Scope
from tests.fixtures.samples import NOON

ANA = Account(platform="telegram", user_id="1")
HERE = Address(platform="telegram", chat_id="1")
SCOPE = Scope.account("telegram", "1")
THERE = Address(platform="discord", chat_id="d")


def named(user_id: str) -> NamedAccount:
    return NamedAccount(account=Account(platform="discord", user_id=user_id), name=f"D{user_id}")


async def claimed(links: Links, by: str = "2") -> Link:
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    return await links.claim(code, named(by), THERE, NOON)


async def test_a_code_lives_ten_minutes_and_the_newest_alone_counts(database: Database) -> None:
    links = Links(database)
    first = await links.offer(ANA, HERE, SCOPE, NOON)
    second = await links.offer(ANA, HERE, SCOPE, NOON)
    with pytest.raises(Refused, match="wrong"):
        await links.claim(first, named("2"), THERE, NOON)
    with pytest.raises(Refused, match="wrong"):
        await links.claim(second, named("2"), THERE, NOON + LIFE)


async def test_a_code_stands_nowhere(database: Database) -> None:
    code = await Links(database).offer(ANA, HERE, SCOPE, NOON)
    rows = await database.read(lambda connection: [tuple(row) for row in connection.execute("SELECT * FROM links")])
    assert code not in str(rows)


async def test_two_who_use_one_code_at_once_are_not_both_asked(database: Database) -> None:
    links = Links(database)
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    results = await asyncio.gather(
        *(links.claim(code, named(str(number)), THERE, NOON) for number in range(2, 8)), return_exceptions=True
    )
    won = [one for one in results if isinstance(one, Link)]
    assert len(won) == 1
    assert sum(isinstance(one, Refused) for one in results) == 5
    await links.agree(won[0].digest, won[0].claimed[0].account, NOON)
    agreed = await asyncio.gather(*(links.agree(won[0].digest, ANA, NOON) for _ in range(3)))
    assert all(link.is_joined for link in agreed)
    assert len(await links.accounts(ANA)) == 2


async def test_what_names_a_link_is_no_number_to_be_guessed(database: Database) -> None:
    links = Links(database)
    link = await claimed(links)
    for guess in (str(link.id), "", "1", f"{link.digest}x"):
        with pytest.raises(Refused, match="Nothing is waiting"):
            await links.agree(guess, named("2").account, NOON)


async def test_the_same_yes_twice_is_once(database: Database) -> None:
    links, people = Links(database), People(database)
    link = await claimed(links)
    for _ in range(2):
        assert not (await links.agree(link.digest, named("2").account, NOON)).is_joined
    for _ in range(2):
        assert (await links.agree(link.digest, ANA, NOON)).is_joined
    assert await people.scopes(SCOPE) == {SCOPE, Scope.account("discord", "2")}


async def test_an_own_code_links_nobody(database: Database) -> None:
    links = Links(database)
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    with pytest.raises(Refused, match="this very account"):
        await links.claim(code, NamedAccount(account=ANA, name="Ana"), HERE, NOON)


async def test_questions_wait_ten_minutes_each(database: Database) -> None:
    links = Links(database)
    link = await claimed(links)
    await links.agree(link.digest, named("2").account, NOON + timedelta(minutes=9))
    assert (await links.agree(link.digest, ANA, NOON + timedelta(minutes=18))).is_joined
    link = await claimed(links, "4")
    with pytest.raises(Refused, match="Nothing is waiting"):
        await links.agree(link.digest, named("4").account, NOON + LIFE)
