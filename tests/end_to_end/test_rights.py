"""What somebody may see can shrink: then neither a frozen prompt nor what was recalled before may
stay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.agent.sessions import Turn
from core.types import Account, Address, Message, Scope, Sender, Session
from tests.fixtures.gateway_harness import KeptReply, notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")
IN_ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": ROOM,
    "is_direct": False,
}
OWNER = Account(platform="telegram", user_id="42")
LISTED = 'rooms = ["telegram:-100"]\n'


async def test_group_no_longer_the_owners_has_none_of_the_owners_notes_in_its_prompt(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await harness.services.people.set_owner([OWNER], [ROOM])
        await harness.say("/memory add the vault is green")
        await harness.say("My diary says quetzal.")
        await harness.say("What does my diary say?", **IN_ROOM)
        assert "the vault is green" in str(model.requests[-1])
        assert "quetzal" in str(model.requests[-1])
        await harness.services.people.set_owner([OWNER], [])
        await harness.say("hello there everybody", "666", **IN_ROOM)
        assert "the vault is green" not in str(model.requests[-1])
        assert "quetzal" not in str(model.requests[-1])


async def test_group_leaving_the_owner_drops_owner_messages_even_after_its_prompt_was_erased(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, LISTED) as harness:
        await harness.services.people.set_owner([OWNER], [ROOM])
        await harness.say("My diary says quetzal.")
        await harness.say("What does my diary say?", **IN_ROOM)
        await harness.say("I like kale.", **IN_ROOM)
        assert "quetzal" in str(model.requests[-1])
        await harness.say("/forget kale")
        await harness.say("yes")
        await harness.services.people.set_owner([OWNER], [])
        await harness.say("hello there everybody", "666", **IN_ROOM)
        assert "quetzal" not in str(model.requests[-1])


async def test_session_of_a_group_continues_when_its_rights_are_extended(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), LISTED) as harness:
        await harness.say("hello", **IN_ROOM)
        before = await harness.services.conversations.find_open(IN_ROOM["address"])
        await harness.services.people.set_owner([OWNER], [ROOM])
        await harness.say("hello again", **IN_ROOM)
        after = await harness.services.conversations.find_open(IN_ROOM["address"])
        assert before is not None
        assert after is not None
        assert before.id == after.id


async def test_account_removed_while_mneme_is_down_is_not_answered(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.admission.admit(harness.inbound("still there?", "7"), KeptReply())
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        # The list of the settings, without the person.
        harness.access._listed_people = frozenset()
        assert (
            await harness.admission.resume(harness.platforms["telegram"], timedelta(days=1)) == []
        )
        assert model.requests == []
        assert await harness.services.inbox.list_waiting() == []


async def test_first_message_and_a_simultaneous_command_share_one_session(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("hello"), says("again"))) as harness:
        await asyncio.gather(harness.say("/help"), harness.say("first"), harness.say("/whoami"))
        await harness.say("second")
        count = await harness.services.database.read(
            lambda connection: connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
        )
        assert count == 1


async def test_reminder_button_pressed_twice_sets_one_reminder(home: Path) -> None:
    async with open_gateway(home) as harness:
        doubt = await harness.say("/remind tomorrow at 5 feed the cat")
        assert doubt.answer is not None
        [button] = doubt.answer.buttons
        for _ in range(2):
            await harness.say(button.id, kind="action", command=None)
        assert len(await harness.services.jobs.list_active()) == 1


async def test_edit_and_deletion_apply_to_a_message_still_waiting_for_its_turn(home: Path) -> None:
    model = ScriptedModel(says("one"), says("rest"))
    model.gate = asyncio.Event()
    async with open_gateway(home, model) as harness, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(harness.say("first"))
        await model.began.wait()
        edited = harness.inbound("the old words")
        deleted = harness.inbound("words to be deleted")
        replies = [KeptReply(), KeptReply()]
        numbers = [
            await harness.admission.admit(inbound, reply)
            for inbound, reply in zip((edited, deleted), replies, strict=True)
        ]
        assert (
            await harness.admission.admit(
                replace(edited, kind="edit", text="the new words"), KeptReply()
            )
            is None
        )
        assert (
            await harness.admission.admit(replace(deleted, kind="delete", text=""), KeptReply())
            is None
        )
        model.gate.set()
        await first
        for number in numbers:
            assert number is not None
            await harness.admission.serve(number)
        asked = model.sent()
        assert "the new words" in asked
        assert "the old words" not in asked
        assert "deleted" not in str(model.requests)
        assert replies[1].is_abandoned
        assert await harness.services.inbox.list_waiting() == []


async def test_session_title_given_by_hand_is_not_replaced_by_a_model_title(home: Path) -> None:
    titles = ScriptedModel(says("Model title"))
    titles.gate = asyncio.Event()
    async with (
        open_gateway(home, ScriptedModel(), titles=titles) as harness,
        asyncio.TaskGroup() as tasks,
    ):
        turn = tasks.create_task(harness.say("The ferry to Lisbon"))
        await titles.began.wait()
        await harness.say("/title My own title")
        titles.gate.set()
        await turn
        assert "My own title" in (await harness.say("/sessions")).text


async def test_a_tool_never_writes_into_another_scope(home: Path) -> None:
    note = {"target": "memory", "action": "add", "content": "User likes tea"}
    async with open_gateway(home, ScriptedModel(calls(("memory", note)), says("noted"))) as harness:
        await harness.say("I like tea", "7")
        theirs = frozenset((Scope.account("telegram", "7"),))
        assert await harness.services.notebook.entries(theirs, "memory") == ["User likes tea"]
        assert "tea" not in (await harness.say("/memory")).text


async def test_owner_notice_about_an_access_request_names_the_person_but_not_the_code(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello")
        code = (await harness.say("let me in", "666")).text.split("`")[1]
        [outbox_item] = await harness.services.outbox.list_due(
            harness.services.clock.now(), ("telegram",)
        )
        assert outbox_item.address == harness.inbound("x").address
        assert outbox_item.answer is not None
        assert "**Person 666** (Telegram, id `666`) wants to talk to me." in outbox_item.answer.text
        assert code not in outbox_item.answer.text
        await harness.services.outbox.mark_done(outbox_item.key)
        assert "not in a room" not in (await harness.say(f"/approve {code}")).text
        assert (await harness.say("hello", "666")).text == "ok"


async def test_a_name_that_may_be_mistaken_is_marked_wherever_somebody_is_let_in_or_linked(
    home: Path,
) -> None:
    ana = {"sender": Sender(id="666", name="\u0410nna\u202e")}
    marked = "**\u0410nna\u2039U+202E\u203a** (⚠ letters of two alphabets and invisible characters; Telegram, id `666`)"
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("hello")
        code = (await harness.say("let me in", "666", **ana)).text.split("`")[1]
        [(_, asks)] = await notices(harness)
        assert asks.startswith(f"{marked} wants to talk to me.")
        assert marked in (await harness.say("/approve")).text
        assert (await harness.say(f"/approve {code}")).text.startswith(marked)
        offered = (await harness.say("/link", "666", **ana)).text.split("`")[1]
        assert marked in (await harness.say(f"/link {offered}", "7")).text
        await harness.say("hello", "666", **ana)
        assert "\u202e" not in model.sent(), "what a model reads has no such signs"


async def test_pairing_requests_are_not_listed_in_a_group(home: Path) -> None:
    async with open_gateway(home, options=LISTED) as harness:
        for command in ("/approve", "/status"):
            assert "Ask me in a direct chat" in (await harness.say(command, **IN_ROOM)).text


async def test_edit_of_a_waiting_message_survives_a_restart(home: Path) -> None:
    async with open_gateway(home) as harness:
        waiting = harness.inbound("the old words")
        await harness.admission.admit(waiting, KeptReply())
        await harness.admission.admit(
            replace(waiting, kind="edit", text="the new words"), KeptReply()
        )
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        for number in await harness.admission.resume(
            harness.platforms["telegram"], timedelta(days=1)
        ):
            await harness.admission.serve(number)
        assert "the new words" in model.sent()
        assert "the old words" not in model.sent()


async def test_message_deleted_while_its_turn_begins_is_removed_from_the_database(
    home: Path,
) -> None:
    async with open_gateway(home) as harness, asyncio.TaskGroup() as tasks:
        lineage = harness.agent.sessions
        opened, begun, gate = lineage.open, asyncio.Event(), asyncio.Event()

        async def held(turn: Turn) -> tuple[Session, list[Message]]:
            begun.set()
            await gate.wait()
            return await opened(turn)

        lineage.open = held  # type: ignore[method-assign]
        turn = tasks.create_task(harness.say("my password is hunter2", message_id="9"))
        await begun.wait()
        gone = replace(harness.inbound(""), message_id="9", kind="delete")
        assert await harness.admission.admit(gone, KeptReply()) is None
        gate.set()
        await turn
        left = await harness.services.database.read(
            lambda connection: connection.execute(
                "SELECT count(*) FROM messages WHERE text LIKE '%hunter2%' AND role = 'user'"
            ).fetchone()[0]
        )
        assert left == 0
