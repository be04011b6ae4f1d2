"""The contract of Removals: who is not served any more loses links, codes, buttons, jobs, and what
was on its way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.dates.schedule import Schedule
from core.errors import StaleReadError
from core.store.actions import Actions, ButtonAction
from core.store.engine import Database
from core.store.jobs import Job, Jobs
from core.store.mailbox import Outbox, OutboxItem
from core.store.ownership.links import Links, NamedAccount
from core.store.ownership.people import EpochGuard, People
from core.store.ownership.removal import Removals, removal_reason
from core.store.sessions import Conversations
from core.types import LOCAL_SCOPE, Account, Address, Answer, Command, Scope, Session
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import NOON

pytestmark = pytest.mark.slow

ANA = Account(platform="telegram", user_id="7")
BOB = Account(platform="discord", user_id="77")
OWNER = Account(platform="telegram", user_id="42")
CHAT = Address(platform="telegram", chat_id="7")
THERE = Address(platform="discord", chat_id="d")
GROUP = Address(platform="telegram", chat_id="-5")
SCOPE, ROOM = Scope.account("telegram", "7"), Scope.group("telegram", "-5")


async def planned(database: Database, target: Address, scope: Scope) -> Job:
    """A reminder for a place in which somebody has spoken."""
    conversations = Conversations(database, SteadyClock(NOON))
    if await conversations.find_open(target) is None:
        await conversations.create(Session(address=target, scope=scope, started_at=NOON))
    job = Job(
        schedule=Schedule(zone="UTC", at=NOON),
        text="call",
        target=target,
        scope=scope,
        created_at=NOON,
        account=ANA,
        next_at=NOON,
    )
    return await Jobs(database).add(job)


async def standing(database: Database, account: Account) -> tuple[bool, bool, bool]:
    found = await People(database).load_access(
        account, Scope.account(account.platform, account.user_id)
    )
    return found.is_approved, found.is_removed, found.is_blocked


async def admitted(database: Database, account: Account, *, is_owner: bool = False) -> None:
    people = People(database)
    pairing = await people.request_pairing(account, "Ana", NOON)
    assert pairing is not None
    assert (
        await people.approve(pairing.code, NOON, is_owner, "cli" if is_owner else "chat")
        is not None
    )


async def linked(database: Database) -> None:
    links = Links(database, [ANA.key, BOB.key])
    code = await links.offer(ANA, CHAT, SCOPE, NOON)
    link = await links.claim(
        code, NamedAccount(account=BOB, name="Bob"), Address(platform="discord", chat_id="d"), NOON
    )
    await links.confirm(link.digest, BOB, NOON)
    assert (await links.confirm(link.digest, ANA, NOON)).is_joined


async def test_a_removed_account_is_not_served_until_it_is_approved_again(
    database: Database,
) -> None:
    await admitted(database, ANA)
    assert await standing(database, ANA) == (True, False, False)
    await Removals(database).remove([ANA], NOON)
    assert await standing(database, ANA) == (False, True, False)
    await Removals(database).remove([ANA], NOON, is_blocked=True)
    assert await standing(database, ANA) == (False, True, True)
    await Removals(database).remove([ANA], NOON)
    assert await standing(database, ANA) == (False, True, False)
    await admitted(database, ANA)
    assert await standing(database, ANA) == (True, False, False)
    (known,) = await People(database).list_accounts(())
    assert (known.account, known.why, known.at) == (ANA, "chat", NOON)


async def test_removing_a_person_ends_their_account_links_and_open_link_codes(
    database: Database,
) -> None:
    await linked(database)
    code = await Links(database).offer(ANA, CHAT, SCOPE, NOON)
    view = await EpochGuard(database).view(Scope.account("discord", "77"))
    assert SCOPE in view.scopes
    await Removals(database).remove([ANA], NOON)
    assert [one.account for one in await Links(database).list_accounts(BOB)] == [BOB]
    assert await database.fetch_all("SELECT 1 FROM links WHERE joined_at IS NULL") == [], code
    # What was being answered with the sight of both is not kept.
    with pytest.raises(StaleReadError):
        await database.write(lambda connection: None, view.epoch)


async def test_pairing_code_issued_before_a_removal_is_no_longer_accepted(
    database: Database,
) -> None:
    people = People(database)
    pairing = await people.request_pairing(ANA, "Ana", NOON)
    assert pairing is not None
    await Removals(database).remove([ANA], NOON)
    assert await people.approve(pairing.code, NOON) is None
    assert await people.request_pairing(ANA, "Ana", NOON) is not None


async def test_removing_a_person_ends_their_jobs_buttons_and_pending_deliveries(
    database: Database,
) -> None:
    clock = SteadyClock(NOON)
    jobs, actions, outbox = Jobs(database), Actions(database, clock), Outbox(database, clock)
    mine = [await planned(database, CHAT, SCOPE), await planned(database, GROUP, ROOM)]
    later, command = NOON + timedelta(days=1), Command(name="recall")
    await actions.add(
        [
            ButtonAction(id="mine", scope=SCOPE, account=ANA, command=command, expires_at=later),
            ButtonAction(id="room", scope=ROOM, account=ANA, command=command, expires_at=later),
        ]
    )
    for key, address in (("mine", CHAT), ("room", GROUP)):
        item = OutboxItem(
            key=key, kind="reminder", address=address, answer=Answer(text="call"), next_at=NOON
        )
        assert await outbox.put(item)
    await Removals(database).remove([ANA], NOON)
    found = [await jobs.get(job.id) for job in mine]
    # In a room both are judged when it comes to it.
    assert [job.pause_reason for job in found if job is not None] == [removal_reason(), None]
    left = [name for name in ("mine", "room") if await actions.find(name, NOON) is not None]
    assert left == ["room"]
    assert [item.key for item in await outbox.list_due(NOON)] == ["room"]
    assert (
        await database.fetch_all("SELECT 1 FROM outbox WHERE key = 'mine' AND payload IS NOT NULL")
        == []
    )


async def test_revoked_account_of_the_owner_stays_revoked_while_the_settings_name_it(
    database: Database,
) -> None:
    people, scope = People(database), Scope.account("telegram", "42")
    await people.set_owner([OWNER], [])
    await Removals(database).remove([OWNER], NOON)
    # Approved by mistake in a chat: served, and not the owner's.
    await admitted(database, OWNER)
    await people.set_owner([OWNER], [])
    assert not (await people.load_access(OWNER, scope)).is_owner
    assert await people.load_visible_scopes(LOCAL_SCOPE) == {LOCAL_SCOPE}
    # Nor does a link change that.
    await people.record_name(BOB, "Bob")
    await Links(database).unlink(OWNER)
    await people.set_owner([OWNER], [])
    assert not (await people.load_access(OWNER, scope)).is_owner
    # Who can write the settings can take it out and put it back.
    await people.set_owner([], [])
    await people.set_owner([OWNER], [])
    assert (await people.load_access(OWNER, scope)).is_owner


async def test_an_owner_of_the_command_line_is_revoked_and_approved_again_there(
    database: Database,
) -> None:
    people, scope = People(database), Scope.account("telegram", "42")
    for _ in range(2):
        await admitted(database, OWNER, is_owner=True)
        assert (await people.load_access(OWNER, scope)).is_owner
        await Removals(database).remove([OWNER], NOON)
        await people.set_owner([], [])
        assert not (await people.load_access(OWNER, scope)).is_owner


async def test_due_item_for_a_person_removed_from_the_settings_is_cancelled_at_start(
    database: Database,
) -> None:
    outbox = Outbox(database, SteadyClock(NOON))
    await linked(database)
    await planned(database, CHAT, SCOPE)
    item = OutboxItem(
        key="mine", kind="reminder", address=CHAT, answer=Answer(text="call"), next_at=NOON
    )
    assert await outbox.put(item)
    removals = Removals(database)
    await removals.cancel_unserved_deliveries([BOB.key], NOON)
    assert [one.key for one in await outbox.list_due(NOON)] == ["mine"]
    await removals.cancel_unserved_deliveries([], NOON)
    assert await outbox.list_due(NOON) == []
    assert await standing(database, ANA) == (False, False, False)
