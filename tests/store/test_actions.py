"""The contract of Actions: a button does what it was made for, until it expires."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import StoreError
from core.store.actions import Actions, ButtonAction
from core.store.engine import Database
from core.store.mailbox import Inbox
from core.types import Account, Command
from tests.fixtures.clock import SteadyClock
from tests.fixtures.samples import ANA, NOON, inbound
from tests.store.conftest import OpenStore

HOUR = NOON + timedelta(hours=1)


def action(
    action_id: str, arguments: str = "Porto 2", account: Account | None = None
) -> ButtonAction:
    command = Command(name="recall", arguments=arguments)
    return ButtonAction(id=action_id, scope=ANA, account=account, command=command, expires_at=HOUR)


async def test_a_button_survives_a_restart_until_it_expires(
    database: Database, open_store: OpenStore, clock: SteadyClock
) -> None:
    stored = [action("a", account=Account(platform="telegram", user_id="4:2")), action("b", "")]
    await Actions(database, clock).add(stored)
    async with open_store() as other:
        actions = Actions(other, clock)
        assert [await actions.find(found.id, NOON) for found in stored] == stored
        assert await actions.find("a", HOUR) is None
        assert await actions.find("c\ud800", NOON) is None


async def test_stored_button_action_cannot_be_overwritten(
    database: Database, clock: SteadyClock
) -> None:
    actions = Actions(database, clock)
    await actions.add([action("a")])
    with pytest.raises(StoreError):
        await actions.add([action("b"), action("a", "other")])
    assert await actions.find("a", NOON) == action("a")
    assert await actions.find("b", NOON) is None
    await actions.add([])


async def test_expired_button_actions_are_deleted(database: Database, clock: SteadyClock) -> None:
    actions = Actions(database, clock)
    await actions.add([action("a")])
    clock.advance(hours=1)
    await actions.add([replace(action("b"), expires_at=HOUR + timedelta(days=1))])
    assert await actions.find("a", NOON) is None
    assert await actions.find("b", clock.now()) is not None


async def test_open_question_is_answered_only_by_the_first_event_accepted_after_it(
    database: Database, clock: SteadyClock
) -> None:
    actions, inbox = Actions(database, clock), Inbox(database, clock)
    first, second = inbound("1"), inbound("2")
    question = replace(action("a", account=first.account), address=first.address, origin="remind")
    for said in (first, second):
        assert (
            await actions.take(said.address, said.account, f"message:{said.message_id}", NOON) == ()
        )
    await actions.add([question])
    for said in (first, second, first):
        await inbox.accept(said, NOON)
    assert await actions.take(second.address, second.account, "message:2", NOON) == ()
    (taken,) = await actions.take(first.address, first.account, "message:1", NOON)
    assert taken.id == question.id
    await actions.add([replace(question, id="b")])
    await inbox.accept(first, NOON)
    (taken,) = await actions.take(second.address, second.account, "message:3", NOON)
    assert taken.id == "b", "what is known already ends nothing"
