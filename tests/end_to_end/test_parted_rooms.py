"""A room that ceases to be the owner's begins anew: what was said there before is the owner's past,
not the room's."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from core.store.mailbox import OutboxItem
from core.store.ownership.people import People
from core.store.sqlite.database import Database
from core.types import Account, Address, Answer, Scope
from gateway.services import STATE_FILE, Services
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

OWNER = Account(platform="telegram", user_id="42")
ROOM = Scope.group("telegram", "-100")
NEXT = Scope(key="room:telegram:-100#2")
IN_ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": ROOM,
    "is_direct": False,
}
IN_TOPIC = {**IN_ROOM, "address": Address(platform="telegram", chat_id="-100", thread_id="3")}
LISTED = 'rooms = ["telegram:-100"]\n'
SECRET = "The quetzal nests behind the mill"
LOOKS = (
    "/recall nests behind the mill",
    "/sessions",
    "/memory",
    "/memory facts",
    "/memory history",
    "/cron",
)


async def own(harness: GatewayHarness, *rooms: Scope) -> None:
    await harness.services.people.set_owner([OWNER], rooms)


async def furnish(harness: GatewayHarness, model: ScriptedModel) -> None:
    """The owner's own room, with the quetzal in all that is kept of it."""
    await own(harness, ROOM)
    await harness.say("hello")
    await harness.say(SECRET, **IN_ROOM, message_id="said")
    await harness.say("/title All about the quetzal", **IN_ROOM)
    await harness.say("/memory add the quetzal is green", **IN_ROOM)
    await harness.say("/remember The quetzal belongs to Ana", **IN_ROOM)
    await harness.say("/remind tomorrow at 9 feed the quetzal", **IN_ROOM)
    await harness.say(SECRET, **IN_TOPIC)
    model.requests.clear()


async def test_former_private_group_of_the_owner_reads_nothing_old_and_the_owner_all_of_it(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        await own(harness)
        for who in ("666", "42"):
            for place in (IN_ROOM, IN_TOPIC):
                for text in LOOKS:
                    assert "quetzal" not in (await harness.say(text, who, **place)).text
                model.script[:] = [
                    calls(("session_search", {"query": "nests behind the mill"})),
                    says("Nothing."),
                ]
                await harness.say("what nests behind the mill?", who, **place, reply_to="said")
        assert "quetzal" not in str(model.requests)
        assert {request.messages[0]["role"] for request in model.requests} == {"user"}
        for text in LOOKS:
            assert "quetzal" in (await harness.say(text)).text
        await harness.say("/new")
        await harness.say("what do you know of my bird behind the mill?")
        assert "the quetzal is green" in str(model.requests[-1])


async def test_new_messages_of_a_given_up_group_belong_to_the_group_alone(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        await own(harness)
        await harness.say("The heron stands in the pond", "666", **IN_ROOM)
        await harness.say("/memory add the heron is grey", **IN_ROOM)
        await harness.say("/remind tomorrow at 9 feed the heron", "666", **IN_ROOM)
        for text in ("/recall stands in the pond", "/memory", "/cron"):
            assert "heron" in (await harness.say(text, "7", **IN_ROOM)).text
            assert "heron" not in (await harness.say(text)).text
        assert "room:telegram:-100#2" in (await harness.say("/whoami", "666", **IN_ROOM)).text
        # A reminder of the room is one of its present scope, in a room that the settings name by
        # its id.
        [job] = [job for job in await harness.services.jobs.list_active() if "heron" in job.text]
        await harness.services.jobs.check_scope(job)
        await harness.access.load_job_view(job)


async def test_reminders_of_a_group_leaving_the_owner_move_to_the_owners_private_chat(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        await own(harness)
        [job] = await harness.services.jobs.list_active()
        assert (job.target, job.scope) == (
            Address(platform="telegram", chat_id="42"),
            Scope.account("telegram", "42"),
        )
        await harness.services.jobs.check_scope(job)
        assert "quetzal" in (await harness.say("/cron")).text


async def test_jobs_of_a_group_leaving_the_owner_move_to_the_terminal_without_a_private_chat(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(), LISTED) as harness:
        await own(harness, ROOM)
        await harness.say("/remind tomorrow at 9 feed the quetzal", **IN_ROOM)
        await own(harness)
        [job] = await harness.services.jobs.list_active()
        assert job.target == Address(platform="terminal", chat_id="local")
        await harness.services.jobs.check_scope(job)


async def test_an_answer_that_has_not_arrived_yet_goes_to_the_owner_in_private(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        await notices(harness)
        now = harness.services.clock.now()
        left = OutboxItem(
            key="left",
            kind="answer",
            address=IN_TOPIC["address"],
            answer=Answer(text=SECRET),
            next_at=now,
        )
        await harness.services.outbox.put(left)
        await own(harness)
        [item] = await harness.services.outbox.list_due(harness.services.clock.now())
        assert (item.key, item.address.key) == ("left", "telegram:42")


@pytest.mark.parametrize("is_said", [False, True])
async def test_buttons_and_open_questions_expire_when_a_group_is_no_longer_the_owners(
    home: Path, is_said: bool
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        found = (await harness.say("/recall quetzal", **IN_ROOM)).answer
        asked = (await harness.say("/forget quetzal", **IN_ROOM)).answer
        assert found is not None
        assert asked is not None
        await own(harness)
        if is_said:
            assert (await harness.say("yes", **IN_ROOM)).text == "ok"
        for button in (*asked.buttons, *found.buttons):
            assert "expired" in (await harness.say(button.id, kind="action", **IN_ROOM)).text


@pytest.mark.parametrize("text", ["/title All about the heron", "All about the heron"])
async def test_parted_room_does_not_change_the_title_of_an_earlier_session(
    home: Path, text: str
) -> None:
    async with open_gateway(home, ScriptedModel(), LISTED) as harness:
        await own(harness, ROOM)
        await harness.say("/title All about the quetzal", **IN_ROOM)
        await own(harness)
        await harness.say(text, "666", **IN_ROOM)
        titles = {"All about the quetzal": ROOM.key, "All about the heron": NEXT.key}
        assert await harness.services.database.read(_scopes_of_titles) == titles


@pytest.mark.parametrize("is_command", [False, True])
async def test_answer_in_progress_restarts_without_old_messages_when_a_group_leaves_the_owner(
    home: Path, is_command: bool
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        model.gate = asyncio.Event()
        model.began.clear()
        model.script[:] = [says("It is the quetzal."), says("I do not know.")]
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(harness.say("which bird is it?", **IN_ROOM))
            await model.began.wait()
            behind = (
                tasks.create_task(harness.say("/memory add the mill is old", **IN_ROOM))
                if is_command
                else None
            )
            await asyncio.sleep(0)
            gate, model.gate = model.gate, None
            assert gate is not None
            await own(harness)
            gate.set()
        assert turn.result().text == "I do not know."
        assert "quetzal" not in str(model.requests[-1])
        assert behind is None or "Noted" in behind.result().text
        assert (
            "mill is old" in (await harness.say("/memory", "666", **IN_ROOM)).text
        ) == is_command


async def test_group_removed_again_from_the_owner_is_answered_without_the_owners_messages(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        for rooms in ([ROOM], [], [ROOM]):
            await own(harness, *rooms)
        await harness.say(SECRET, **IN_ROOM)
        model.gate = asyncio.Event()
        model.began.clear()
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(harness.say("which bird is it?", **IN_ROOM))
            await model.began.wait()
            assert "quetzal" in str(model.requests[-1])
            await own(harness)
            model.gate.set()
        assert turn.result().text == "ok"
        assert "quetzal" not in str(model.requests[-1])
        assert "which bird" in (await harness.say("/recall bird", "666", **IN_ROOM)).text


def _scopes_of_titles(connection: sqlite3.Connection) -> dict[str, str]:
    found = connection.execute(
        "SELECT sessions.title, scopes.key FROM sessions JOIN scopes ON scopes.id = sessions.scope_id"
    )
    return {row[0]: row[1] for row in found if row[0]}


async def test_group_that_becomes_the_owners_again_shows_messages_of_both_periods(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        await own(harness)
        await harness.say("The heron stands in the pond", "666", **IN_ROOM)
        await own(harness, ROOM)
        for where in ({}, IN_ROOM):
            assert "nests behind" in (await harness.say("/recall quetzal", **where)).text
            assert "in the pond" in (await harness.say("/recall heron", **where)).text
        assert (await harness.say("and I?", "666", **IN_ROOM)).answer is None
        await own(harness)
        for text in ("/recall quetzal", "/recall heron"):
            found = (await harness.say(text, "666", **IN_ROOM)).text
            assert "nests behind" not in found
            assert "in the pond" not in found


async def test_an_incognito_conversation_of_before_is_not_gone_on_with(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await own(harness, ROOM)
        await harness.say("/incognito on", **IN_ROOM)
        await harness.say(SECRET, **IN_ROOM)
        await own(harness)
        await harness.say("which bird is it?", "666", **IN_ROOM)
        assert "quetzal" not in str(model.requests[-1])


async def test_waiting_message_is_answered_without_the_past_of_a_given_up_group(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)
        await harness.admission.admit(harness.inbound("which bird is it?", **IN_ROOM), KeptReply())
    async with open_gateway(home, model, LISTED) as harness:
        # The settings of the harness name no room of the owner's.
        [number] = await harness.admission.resume(harness.platforms["telegram"], timedelta(days=1))
        await harness.admission.serve(number)
        assert "which bird is it?" in str(model.requests[-1])
        assert "quetzal" not in str(model.requests[-1])


async def test_groups_join_or_leave_the_owner_at_a_start_with_changed_settings(home: Path) -> None:
    for rooms, seen in (
        ('["telegram:-100"]', ROOM),
        ("[]", NEXT),
        ("[]", NEXT),
        ('["telegram:-100"]', NEXT),
    ):
        (home / "mneme.toml").write_text(f"[owner]\ntelegram = [42]\nrooms = {rooms}\n")
        async with Services.open(Settings.load({"MNEME_HOME": str(home)})) as services:
            scopes = await services.people.load_visible_scopes(ROOM)
            assert seen in scopes
            assert (len(scopes) > 1) == (rooms != "[]")


@pytest.mark.sqlite
@pytest.mark.slow
def test_process_killed_while_a_group_leaves_the_owner_changes_everything_or_nothing(
    home: Path,
) -> None:
    asyncio.run(_furnished(home))
    outcomes = []
    for statement in range(1, 60, 6):
        copy = home / f"{statement}.db"
        with (
            closing(sqlite3.connect(home / STATE_FILE)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        child = os.fork()
        if child == 0:
            asyncio.run(_part(copy, statement))
            os._exit(0)
        is_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        assert asyncio.run(_scopes(copy)) == (
            "room:telegram:-100" if is_killed else "account:telegram:42",
            not is_killed,
        )
        asyncio.run(_part(copy))
        assert asyncio.run(_scopes(copy)) == ("account:telegram:42", True)
        outcomes.append(is_killed)
        if not is_killed:
            break
    assert outcomes[0]
    assert not outcomes[-1]


async def _furnished(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await furnish(harness, model)


async def _part(path: Path, killed_at: int = 0) -> None:
    """The room is taken out of the settings; the process ends at that statement."""
    async with Database.open(path) as database:
        statements = itertools.count(1)

        def work(connection: sqlite3.Connection) -> None:
            connection.set_trace_callback(
                lambda _: (
                    os.kill(os.getpid(), signal.SIGKILL) if next(statements) == killed_at else None
                )
            )

        await database.write(work)
        await People(database).set_owner([OWNER], [])


async def _scopes(path: Path) -> tuple[str, bool]:
    """That of the reminder, and whether the room has its next one."""
    async with Database.open(path) as database:
        job = await database.fetch_one(
            "SELECT key FROM jobs JOIN scopes ON scopes.id = jobs.scope_id"
        )
        assert job is not None
        return job["key"], await People(database).load_visible_scopes(ROOM) == {NEXT}
