"""Several gateways as real processes over one PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fixtures.gateways import Gateways, Storm, open_gateways
from tests.fixtures.kill_storm import REPLY_DELAY_S, answer_all, choose_seed
from tests.fixtures.live_system import KEY
from tests.fixtures.messages_api import MessagesApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PEOPLE = [5000 + number for number in range(6)]
KILLS = 5


@pytest.fixture
async def storm(home: Path, postgres_url: str) -> AsyncIterator[Storm]:
    """People who write to three gateways."""
    model = MessagesApi(answer_all, key=KEY)
    async with open_gateways(home, postgres_url, model, len(PEOPLE)) as gateways:
        for _ in range(3):
            await gateways.start()
        yield Storm(gateways, PEOPLE, choose_seed())


def list_numbers(gateways: Gateways) -> set[int]:
    """Return the numbers of the gateways that work on a chat."""
    return set(gateways.list_owners().values())


async def test_chats_are_spread_over_gateways_and_each_message_is_answered_once(
    storm: Storm,
) -> None:
    for _ in range(2):
        for person in PEOPLE:
            storm.say(person)
        await storm.settle()
    assert len(list_numbers(storm.gateways)) == 3
    assert storm.list_damage() == []


async def test_killed_gateways_lose_double_and_reorder_nothing(storm: Storm) -> None:
    storm.gateways.telegram.reply_delay_s = REPLY_DELAY_S
    for person in PEOPLE:
        storm.say(person)
    await storm.settle()
    for _ in range(KILLS):
        storm.say_something()
        await asyncio.sleep(storm.chance.random())
        await storm.gateways.kill(storm.chance.choice(storm.gateways.living))
        storm.say_something()
        await storm.gateways.start()
    await storm.settle()
    assert storm.list_damage() == []


async def test_rolling_restart_under_load_loses_doubles_and_reorders_nothing(
    storm: Storm,
) -> None:
    for person in PEOPLE:
        storm.say(person)
    await storm.settle()
    for process in storm.gateways.living:
        storm.say_something()
        assert await storm.gateways.stop(process) == 0
        storm.say_something()
        await storm.gateways.start()
    await storm.settle()
    assert storm.list_damage() == []
    shown = [text for person in PEOPLE for text in storm.gateways.telegram.texts(person)]
    assert [text for text in shown if "Answer to" not in text] == []
