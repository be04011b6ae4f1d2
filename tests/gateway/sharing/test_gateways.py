"""Several gateways as real processes over one PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.command_line import mneme
from tests.fixtures.gateways import Gateways, Storm, open_gateways
from tests.fixtures.kill_storm import REPLY_DELAY_S, answer_all, choose_seed
from tests.fixtures.live_system import KEY
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply
from tests.fixtures.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PEOPLE = [5000 + number for number in range(6)]
KILLS = 5


def answer(body: dict[str, Any]) -> ModelReply:
    """Answer like `answer_all`, and tell a story that doesn't end if someone asks for one."""
    if "a long story" in json.dumps(body["messages"][-1]) and body.get("tools"):
        return ModelReply.say("Once upon a time, " * 20, after_events=8, hold=asyncio.Event())
    return answer_all(body)


@pytest.fixture
async def storm(home: Path, postgres_url: str) -> AsyncIterator[Storm]:
    """People who write to three gateways."""
    model = MessagesApi(answer, key=KEY)
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


async def find_person_of_a_worker(storm: Storm) -> int:
    """Return someone whose chat another gateway than the front works on."""
    for person in PEOPLE:
        storm.say(person)
    await storm.settle()
    owners = storm.gateways.list_owners()
    # The front was started first.
    return next(person for person in PEOPLE if owners[f"telegram:{person}"] != min(owners.values()))


async def test_edit_reaches_the_gateway_of_its_chat_and_is_answered_again(storm: Storm) -> None:
    person = await find_person_of_a_worker(storm)
    telegram = storm.gateways.telegram
    question = next(
        message_id
        for message_id, message in telegram.history[person].items()
        if str(message.get("text", "")).startswith("message")
    )
    telegram.user_edits(person, question, f"message t{person}q77 please")
    await storm.gateways.until(lambda: f"t{person}q77" in storm.list_answered(person))


async def test_stop_reaches_the_gateway_that_is_answering(storm: Storm) -> None:
    person = await find_person_of_a_worker(storm)
    telegram = storm.gateways.telegram
    telegram.user_says(person, "a long story please")
    await storm.gateways.until(lambda: any("Once" in text for _, text in telegram.drafts))
    telegram.user_says(person, "/stop")
    await storm.gateways.until(lambda: any("stopped" in text for text in telegram.texts(person)))


async def test_incognito_text_of_another_gateways_chat_is_never_stored_and_its_end_is_told(
    storm: Storm,
) -> None:
    person = await find_person_of_a_worker(storm)
    gateways, telegram = storm.gateways, storm.gateways.telegram
    telegram.user_says(person, "/incognito")
    await gateways.until(lambda: any("Incognito is on" in text for text in telegram.texts(person)))
    telegram.user_says(person, f"message t{person}q55 please, xylophone")
    await gateways.until(lambda: f"t{person}q55" in storm.list_answered(person))
    tables = gateways.query("SELECT tablename FROM pg_tables WHERE schemaname = 'mneme'")
    for (table,) in tables:
        statement = f"SELECT 1 FROM {table} AS stored WHERE stored::text ILIKE '%xyloph%' LIMIT 1"
        assert gateways.query(statement) == [], table

    number = gateways.list_owners()[f"telegram:{person}"]
    await gateways.kill(gateways.processes[number - 1])
    await gateways.until(lambda: any("I was restarted" in text for text in telegram.texts(person)))
    telegram.user_says(person, f"message t{person}q66 please")
    await gateways.until(lambda: f"t{person}q66" in storm.list_answered(person))


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


async def test_restart_of_the_database_server_loses_doubles_and_reorders_nothing(
    storm: Storm, postgres_server: PostgresServer
) -> None:
    for person in PEOPLE:
        storm.say(person)
    await storm.settle()
    storm.say_something()
    # The server ends with the thread that has started it, so this can't run in another thread.
    postgres_server.halt()
    storm.say_something()
    await asyncio.sleep(1)
    postgres_server.run()
    storm.say_something()
    await storm.settle()
    assert storm.list_damage() == []
    assert len(storm.gateways.living) == 3


async def test_gateway_without_a_platform_to_share_is_refused_while_another_one_runs(
    storm: Storm,
) -> None:
    home = storm.gateways.home
    result = await asyncio.to_thread(mneme, home, "run")
    assert result.returncode != 0
    assert f"Mneme is already running with home {home}." in result.stderr


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
