"""The contract of People: who is the owner, who was admitted, and what is seen where."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.store.engine import Database
from core.store.ownership.pairing import ALPHABET
from core.store.ownership.people import AccountAccess, People
from core.types import Account, Scope
from tests.fixtures.samples import NOON
from tests.store.conftest import OpenStore

pytestmark = pytest.mark.slow

TERMINAL = Account(platform="terminal", user_id="local")
TELEGRAM = Account(platform="telegram", user_id="1")
DISCORD = Account(platform="discord", user_id="1")
STRANGER = Account(platform="telegram", user_id="99")
ROOM = Scope.group("telegram", "-5")
OWN = Scope.group("telegram", "-6")


@pytest.fixture
def people(database: Database) -> People:
    return People(database)


def of(*accounts: Account) -> frozenset[Scope]:
    return frozenset(Scope.account(account.platform, account.user_id) for account in accounts)


async def standing(people: People, account: Account) -> AccountAccess:
    return await people.load_access(account, Scope.account(account.platform, account.user_id))


async def is_owner(people: People, account: Account) -> bool:
    return (await standing(people, account)).is_owner


async def is_admitted(people: People, account: Account) -> bool:
    return (await standing(people, account)).is_approved


async def seen(people: People, account: Account) -> frozenset[Scope]:
    return await people.load_visible_scopes(Scope.account(account.platform, account.user_id))


async def code_for(people: People, account: Account) -> str:
    pairing = await people.request_pairing(account, "name", NOON)
    assert pairing is not None
    return pairing.code


async def test_owner_accounts_are_those_in_the_settings_and_the_terminal(people: People) -> None:
    assert await is_owner(people, TERMINAL)
    assert not await is_owner(people, TELEGRAM)
    await people.set_owner([TELEGRAM, DISCORD], [OWN])
    for account in (TERMINAL, TELEGRAM, DISCORD):
        assert await is_owner(people, account)
        assert await seen(people, account) == of(TERMINAL, TELEGRAM, DISCORD) | {OWN}
    assert not await is_owner(people, STRANGER)
    assert not await is_owner(people, Account(platform="telegram", user_id="local"))


async def test_an_account_not_listed_any_more_becomes_its_own_person(people: People) -> None:
    await people.set_owner([TELEGRAM, DISCORD], [OWN])
    await people.set_owner([DISCORD], [])
    assert not await is_owner(people, TELEGRAM)
    assert await seen(people, TELEGRAM) == of(TELEGRAM)
    assert await seen(people, DISCORD) == of(TERMINAL, DISCORD) | {OWN}
    await people.set_owner([TELEGRAM], [])
    assert await seen(people, TERMINAL) == of(TERMINAL, TELEGRAM) | {OWN}


async def test_naming_the_same_owner_again_writes_nothing(
    people: People, database: Database, open_store: OpenStore
) -> None:
    await people.set_owner([TELEGRAM], [OWN])
    async with open_store() as other:
        before = await database.data_version()
        await People(other).set_owner([TELEGRAM], [OWN])
        assert await database.data_version() == before
        await People(other).set_owner([], [OWN])
        assert await database.data_version() != before


async def test_group_reads_only_its_own_scope_unless_it_is_the_owners_private_group(
    people: People,
) -> None:
    await people.set_owner([TELEGRAM], [OWN])
    assert await people.load_visible_scopes(ROOM) == {ROOM}
    assert await people.load_visible_scopes(OWN) == of(TERMINAL, TELEGRAM) | {OWN}


@pytest.mark.parametrize(
    "key",
    ["", "account", "account:", "account:telegram", "account:telegram:", "person:1", "rooms:x"],
)
async def test_invalid_scope_key_sees_no_scope(people: People, key: str) -> None:
    await people.set_owner([TELEGRAM], [OWN])
    assert await people.load_visible_scopes(Scope(key=key)) == frozenset()


async def test_an_unknown_account_sees_its_own_scope(people: People) -> None:
    assert await seen(people, STRANGER) == of(STRANGER)
    assert await people.load_visible_scopes(Scope(key="account:telegram:a:b")) == {
        Scope(key="account:telegram:a:b")
    }


async def test_a_greeted_account_is_a_person_but_not_admitted(
    people: People, database: Database
) -> None:
    for name in ("Bob", "Bob the \ud800"):
        await people.record_name(STRANGER, name)
    assert not await is_admitted(people, STRANGER)
    assert await seen(people, STRANGER) == of(STRANGER)
    found = await database.read(
        lambda connection: connection.execute("SELECT name FROM accounts").fetchall()
    )
    assert [row["name"] for row in found] == ["Bob the \ufffd"]
    await people.record_name(TELEGRAM, "Ana")
    await people.set_owner([TELEGRAM], [])
    assert await is_owner(people, TELEGRAM)


async def test_stranger_is_admitted_by_approving_their_pairing_code(people: People) -> None:
    pairing = await people.request_pairing(STRANGER, "Bob", NOON)
    assert pairing is not None
    assert len(pairing.code) == 8
    assert set(pairing.code) <= set(ALPHABET)
    assert await people.list_pending(NOON) == [pairing]
    assert not await is_admitted(people, STRANGER)
    typed = f" {pairing.code[:4].lower()}-{pairing.code[4:]} "
    assert await people.approve(typed, NOON) == pairing
    assert await is_admitted(people, STRANGER)
    assert not await is_owner(people, STRANGER)
    assert await people.list_pending(NOON) == []
    assert await people.approve(pairing.code, NOON) is None


async def test_pairing_code_is_valid_for_an_hour_and_a_new_one_given_after_it(
    people: People,
) -> None:
    pairing = await people.request_pairing(STRANGER, "Bob", NOON)
    assert pairing is not None
    almost, hour = NOON + timedelta(minutes=59), NOON + timedelta(hours=1)
    assert pairing.expires_at == hour
    assert await people.request_pairing(STRANGER, "Bob", almost) is None
    assert (
        await people.request_pairing(Account(platform="discord", user_id="99"), "Bob", almost)
        is not None
    )
    assert await people.approve(pairing.code, hour) is None
    again = await people.request_pairing(STRANGER, "Bob", hour)
    assert again is not None
    assert again.code != pairing.code
    assert await people.approve(again.code, hour) == again


async def test_account_gets_no_second_code_within_ten_minutes_although_its_first_one_was_used_up(
    people: People,
) -> None:
    pairing = await people.request_pairing(STRANGER, "Bob", NOON)
    assert pairing is not None
    await people.approve(pairing.code, NOON)
    for minutes in (0, 5, 9):
        moment = NOON + timedelta(minutes=minutes)
        assert await people.request_pairing(STRANGER, "Bob", moment) is None
        assert await people.list_pending(moment) == []


async def test_three_strangers_of_a_platform_wait_and_silence_no_other_platform(
    people: People,
) -> None:
    asked = [
        await people.request_pairing(Account(platform="telegram", user_id=str(n)), "x", NOON)
        for n in range(4)
    ]
    assert [pairing is None for pairing in asked] == [False] * 3 + [True]
    friend = Account(platform="discord", user_id="7")
    assert await people.request_pairing(friend, "Bo", NOON) is not None
    assert asked[0] is not None
    await people.approve(asked[0].code, NOON)
    later = NOON + timedelta(minutes=11)
    stranger = Account(platform="telegram", user_id="9")
    assert await people.request_pairing(stranger, "x", later) is not None
    assert len(await people.list_pending(later)) == 4
    assert await people.list_pending(later + timedelta(hours=1)) == []


async def test_an_owner_approved_at_the_command_line_stays_across_starts(people: People) -> None:
    await people.set_owner([TELEGRAM], [])
    await people.approve(await code_for(people, DISCORD), NOON, is_owner=True)
    for listed in ([TELEGRAM], [TELEGRAM, DISCORD], []):
        await people.set_owner(listed, [])
        assert await is_owner(people, DISCORD)
        assert await is_admitted(people, DISCORD)
        assert await seen(people, TERMINAL) == of(TERMINAL, DISCORD, *listed)
    assert not await is_owner(people, TELEGRAM)


async def test_group_migrated_to_another_chat_id_keeps_its_scope(people: People) -> None:
    assert await people.load_visible_scopes(ROOM) == {ROOM}
    await people.migrate_group("telegram", "-5", "-1005")
    await people.migrate_group("telegram", "-1005", "-2005")
    await people.migrate_group("telegram", "-1005", "-2005")
    for chat in ("-5", "-1005", "-2005"):
        assert (await people.load_access(STRANGER, Scope.group("telegram", chat))).scope == ROOM
        assert await people.load_visible_scopes(Scope.group("telegram", chat)) == {ROOM}
    elsewhere = Scope.group("discord", "-1005")
    assert await people.load_visible_scopes(elsewhere) == {elsewhere}


async def test_circular_or_reversed_group_migrations_keep_one_scope(people: People) -> None:
    first = {Scope.group("telegram", "a")}
    await people.migrate_group("telegram", "b", "c")
    await people.migrate_group("telegram", "a", "b")
    assert await people.load_visible_scopes(Scope.group("telegram", "c")) == first
    await people.migrate_group("telegram", "c", "a")
    await people.migrate_group("telegram", "a", "a")
    assert await people.load_visible_scopes(Scope.group("telegram", "c")) == first


def generation(number: int) -> Scope:
    return Scope(key=f"{OWN.key}#{number}")


async def test_group_that_is_no_longer_the_owners_gets_a_new_empty_scope(people: People) -> None:
    await people.set_owner([TELEGRAM], [OWN])
    for _ in range(2):
        await people.set_owner([TELEGRAM], [])
        assert await people.load_visible_scopes(OWN) == {generation(2)}
        assert (await people.load_access(STRANGER, OWN)).scope == generation(2)
        assert await seen(people, TELEGRAM) == of(TERMINAL, TELEGRAM) | {OWN}, (
            "what was said there before is the owner's"
        )
    await people.set_owner([TELEGRAM], [OWN])
    everything = of(TERMINAL, TELEGRAM) | {OWN, generation(2)}
    assert await people.load_visible_scopes(OWN) == await seen(people, TELEGRAM) == everything
    await people.set_owner([TELEGRAM], [])
    assert await people.load_visible_scopes(OWN) == {generation(3)}
    assert await seen(people, TELEGRAM) == everything


@pytest.mark.parametrize("is_moved_first", [False, True])
async def test_a_room_that_moves_takes_its_generation_along(
    people: People, is_moved_first: bool
) -> None:
    moved = Scope.group("telegram", "-1006")
    await people.set_owner([TELEGRAM], [OWN])
    if is_moved_first:
        await people.migrate_group("telegram", "-6", "-1006")
    await people.set_owner([TELEGRAM], [])
    for old, new in (("-6", "-1006"), ("-1006", "-6")):
        await people.migrate_group("telegram", old, new)
        for room in (OWN, moved):
            assert await people.load_visible_scopes(room) == {generation(2)}
            assert (await people.load_access(STRANGER, room)).scope == generation(2)
    assert await seen(people, TELEGRAM) == of(TERMINAL, TELEGRAM) | {OWN}
    await people.set_owner([TELEGRAM], [moved])
    assert await people.load_visible_scopes(OWN) == of(TERMINAL, TELEGRAM) | {OWN, generation(2)}


async def test_removing_one_of_the_owners_groups_leaves_the_other_group_visible_to_the_owner(
    people: People,
) -> None:
    await people.set_owner([TELEGRAM], [OWN, ROOM])
    await people.set_owner([TELEGRAM], [ROOM])
    assert await people.load_visible_scopes(ROOM) == of(TERMINAL, TELEGRAM) | {OWN, ROOM}
    assert await people.load_visible_scopes(OWN) == {generation(2)}


async def test_owners_private_group_stays_the_owners_after_its_chat_id_migrates(
    people: People,
) -> None:
    everything = of(TERMINAL, TELEGRAM) | {OWN}
    await people.set_owner([TELEGRAM], [OWN])
    await people.migrate_group("telegram", "-6", "-1006")
    moved = Scope.group("telegram", "-1006")
    assert await people.load_visible_scopes(moved) == everything
    await people.set_owner([TELEGRAM], [moved])
    assert await people.load_visible_scopes(moved) == everything
    await people.set_owner([TELEGRAM], [Scope.group("telegram", "-1007")])
    await people.migrate_group("telegram", "-6", "-1007")
    # The id in the settings changed before Telegram has told of the move.
    assert await people.load_visible_scopes(OWN) == everything | {
        generation(2),
        Scope.group("telegram", "-1007"),
    }
