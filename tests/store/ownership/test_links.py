"""The contract of Links where time and tries matter."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.errors import Refused
from core.store.engine import Database
from core.store.ownership.links import LINK_LIFETIME, Link, Links, NamedAccount
from core.store.ownership.people import People
from core.store.ownership.removal import Removals
from core.types import Account, Address, Scope
from tests.fixtures.samples import NOON

ANA = Account(platform="telegram", user_id="1")
HERE = Address(platform="telegram", chat_id="1")
SCOPE = Scope.account("telegram", "1")
THERE = Address(platform="discord", chat_id="d")
LET_IN = ("telegram:1", *(f"discord:{number}" for number in range(2, 8)))


def named(user_id: str) -> NamedAccount:
    return NamedAccount(account=Account(platform="discord", user_id=user_id), name=f"D{user_id}")


async def claimed(links: Links, by: str = "2") -> Link:
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    return await links.claim(code, named(by), THERE, NOON)


async def test_link_code_expires_after_ten_minutes_or_when_a_newer_one_is_made(
    database: Database,
) -> None:
    links = Links(database, LET_IN)
    first = await links.offer(ANA, HERE, SCOPE, NOON)
    second = await links.offer(ANA, HERE, SCOPE, NOON)
    with pytest.raises(Refused, match="wrong"):
        await links.claim(first, named("2"), THERE, NOON)
    with pytest.raises(Refused, match="wrong"):
        await links.claim(second, named("2"), THERE, NOON + LINK_LIFETIME)


async def test_five_wrong_codes_end_the_guesses_of_an_account_for_ten_minutes(
    database: Database,
) -> None:
    links = Links(database, LET_IN)
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    for _ in range(5):
        with pytest.raises(Refused, match="That code is wrong"):
            await links.claim("AAAAAAAA", named("2"), THERE, NOON)
    with pytest.raises(Refused, match="too many wrong codes"):
        await links.claim(code, named("2"), THERE, NOON)
    assert (await links.claim(code, named("3"), THERE, NOON)).digest
    later = NOON + LINK_LIFETIME
    new_code = await links.offer(ANA, HERE, SCOPE, later)
    assert (await links.claim(new_code, named("2"), THERE, later)).digest


async def test_code_of_a_link_is_not_stored_in_plain_text(database: Database) -> None:
    code = await Links(database).offer(ANA, HERE, SCOPE, NOON)
    rows = await database.read(
        lambda connection: [tuple(row) for row in connection.execute("SELECT * FROM links")]
    )
    assert code not in str(rows)


async def test_link_code_used_by_two_accounts_at_once_is_accepted_from_one_only(
    database: Database,
) -> None:
    links = Links(database, LET_IN)
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    results = await asyncio.gather(
        *(links.claim(code, named(str(number)), THERE, NOON) for number in range(2, 8)),
        return_exceptions=True,
    )
    won = [one for one in results if isinstance(one, Link)]
    assert len(won) == 1
    assert sum(isinstance(one, Refused) for one in results) == 5
    await links.confirm(won[0].digest, won[0].claiming_accounts[0].account, NOON)
    agreed = await asyncio.gather(*(links.confirm(won[0].digest, ANA, NOON) for _ in range(3)))
    assert all(link.is_joined for link in agreed)
    assert len(await links.list_accounts(ANA)) == 2


async def test_guessed_name_of_a_link_confirms_nothing(database: Database) -> None:
    links = Links(database, LET_IN)
    link = await claimed(links)
    for guess in ("", "1", f"{link.digest}x"):
        with pytest.raises(Refused, match="There is no link to confirm"):
            await links.confirm(guess, named("2").account, NOON)


async def test_repeated_link_confirmation_by_one_account_counts_once(database: Database) -> None:
    links, people = Links(database, LET_IN), People(database)
    link = await claimed(links)
    for _ in range(2):
        assert not (await links.confirm(link.digest, named("2").account, NOON)).is_joined
    for _ in range(2):
        assert (await links.confirm(link.digest, ANA, NOON)).is_joined
    assert await people.load_visible_scopes(SCOPE) == {SCOPE, Scope.account("discord", "2")}


async def test_link_code_used_by_its_own_account_is_refused(database: Database) -> None:
    links = Links(database, LET_IN)
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    with pytest.raises(Refused, match="belongs to your own account"):
        await links.claim(code, NamedAccount(account=ANA, name="Ana"), HERE, NOON)


async def test_each_link_question_can_be_answered_for_ten_minutes(database: Database) -> None:
    links = Links(database, LET_IN)
    link = await claimed(links)
    await links.confirm(link.digest, named("2").account, NOON + timedelta(minutes=9))
    assert (await links.confirm(link.digest, ANA, NOON + timedelta(minutes=18))).is_joined
    link = await claimed(links, "4")
    with pytest.raises(Refused, match="There is no link to confirm"):
        await links.confirm(link.digest, named("4").account, NOON + LINK_LIFETIME)


async def waiting(links: Links) -> Link:
    """A link with somebody who is not let in, to which both have said yes."""
    link = await claimed(links, "9")
    await links.confirm(link.digest, named("9").account, NOON)
    return await links.confirm(link.digest, ANA, NOON)


async def test_link_with_an_unapproved_account_waits_an_hour_for_the_owners_decision(
    database: Database,
) -> None:
    links, people = Links(database, LET_IN), People(database)
    link = await waiting(links)
    assert not link.is_joined
    assert link.token is not None
    assert [one.account for one in (*link.offering_accounts, *link.claiming_accounts)] == [
        ANA,
        named("9").account,
    ]
    almost, hour = NOON + timedelta(minutes=59), NOON + timedelta(hours=1)
    assert await links.list_for_owner(almost) == [link]
    assert await links.list_for_owner(hour) == []
    assert await links.decide(link.token, hour, is_yes=True) is None
    assert await people.load_visible_scopes(SCOPE) == {SCOPE}
    for _ in range(2):
        assert (await links.confirm(link.digest, ANA, almost)).token == link.token, (
            "the same yes again changes nothing"
        )
    for _ in range(2):
        joined = await links.decide(f" {link.token.lower()} ", almost, is_yes=True)
        assert joined is not None
        assert joined.is_joined
    assert await links.decide(link.token, almost, is_yes=False) is None
    assert await people.load_visible_scopes(SCOPE) == {SCOPE, Scope.account("discord", "9")}


async def test_owners_yes_after_a_no_or_a_new_claim_links_no_accounts(
    database: Database,
) -> None:
    links, people = Links(database, LET_IN), People(database)
    refused = await waiting(links)
    assert refused.token is not None
    assert await links.decide(refused.token, NOON, is_yes=False) == refused
    code = await links.offer(ANA, HERE, SCOPE, NOON)
    link = await links.claim(code, named("9"), THERE, NOON)
    await links.confirm(link.digest, named("9").account, NOON)
    asked = await links.confirm(link.digest, ANA, NOON)
    assert asked.token is not None
    await links.claim(code, named("9"), THERE, NOON)
    for token in (refused.token, asked.token, "", "X"):
        assert await links.decide(token, NOON, is_yes=True) is None
    assert await people.load_visible_scopes(SCOPE) == {SCOPE}


async def test_owners_confirmation_cannot_link_an_account_to_the_owner(database: Database) -> None:
    links, people = Links(database, LET_IN), People(database)
    link = await waiting(links)
    assert link.token is not None
    await people.set_owner([named("9").account], [])
    with pytest.raises(Refused, match="belongs to my owner"):
        await links.decide(link.token, NOON, is_yes=True)
    assert await people.load_visible_scopes(SCOPE) == {SCOPE}


async def test_access_of_one_account_applies_to_all_its_linked_accounts(
    database: Database,
) -> None:
    links, people = Links(database, ["telegram:1", "discord:2"]), People(database)
    ask = await people.request_pairing(named("9").account, "Nine", NOON)
    assert ask is not None
    await people.approve(ask.code, NOON)
    assert (await waiting(links)).is_joined, "who showed a code"
    code = await links.offer(named("9").account, THERE, Scope.account("discord", "9"), NOON)
    link = await links.claim(code, named("2"), THERE, NOON)
    await links.confirm(link.digest, named("2").account, NOON)
    assert (await links.confirm(link.digest, named("9").account, NOON)).is_joined


async def test_link_of_a_removed_account_waits_for_the_owner(database: Database) -> None:
    links, people = Links(database, LET_IN), People(database)
    await Removals(database).remove([ANA, named("2").account], NOON)
    link = await claimed(links)
    await links.confirm(link.digest, named("2").account, NOON)
    token = (await links.confirm(link.digest, ANA, NOON)).token
    assert token is not None
    await links.decide(token, NOON, is_yes=True)
    assert not (await people.load_access(ANA, SCOPE)).is_removed
    assert not (await people.load_access(named("2").account, SCOPE)).is_removed
