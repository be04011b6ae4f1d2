"""/unlink parts at once: whatever was made while two accounts were one shows the other's no
more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.types import Button
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.commands.test_links import link, on_discord

pytestmark = pytest.mark.slow

LET_IN = frozenset({"telegram:7", "discord:77"})


@asynccontextmanager
async def joined(
    home: Path, model: ScriptedModel, before: str = ""
) -> AsyncIterator[GatewayHarness]:
    """telegram:7 has said where the key is, and is one with discord:77, who is let in for himself
    too and has said `before`."""
    async with open_gateway(home, model) as harness:
        harness.access._listed_people = LET_IN
        await harness.say("the boathouse key is under the fern", "7")
        await harness.say("/memory add the fern is in the hall", "7")
        await harness.say("/remember The fern belongs to Ana", "7")
        await harness.say("/remind tomorrow at 9 water the fern", "7")
        if before:
            await harness.say(before, **on_discord())
        await link(harness)
        yield harness


def button(reply: KeptReply, begin: str) -> Button:
    assert reply.answer is not None
    return next(one for one in reply.answer.buttons if one.label.startswith(begin))


@pytest.mark.parametrize("is_older", [False, True])
async def test_unlinked_conversation_continues_without_the_other_accounts_messages_in_its_prompt(
    home: Path, is_older: bool
) -> None:
    """Also one that is older than the link."""
    model = ScriptedModel()
    async with joined(home, model, "good morning" if is_older else "") as harness:
        if not is_older:
            await harness.say("/new", **on_discord())
        await harness.say("where is the boathouse key?", **on_discord())
        assert "fern" in str(model.requests[-1])
        # What the next turn may need of it has been looked up beforehand by now.
        assert "Separated" in (await harness.say("/unlink", "7")).text
        before = len(model.requests)
        for text in (
            "and the boathouse key?",
            "what else do you know of the key?",
            "/new",
            "the boathouse key?",
        ):
            await harness.say(text, **on_discord())
        assert "fern" not in str(model.requests[before:])


async def test_buttons_from_before_unlinking_show_nothing_of_the_other_account(home: Path) -> None:
    async with joined(home, ScriptedModel()) as harness:
        found = await harness.say("/recall boathouse", **on_discord())
        listed = await harness.say("/sessions", **on_discord())
        known = await harness.say("/memory", **on_discord())
        assert "fern" in found.text
        pressed = [button(found, "Around"), button(listed, "Continue"), button(known, "f1")]
        await harness.say("/unlink", **on_discord())
        for one in pressed:
            assert "fern" not in (await harness.say(one.id, kind="action", **on_discord())).text
        assert "fern" not in str(
            [reply.text for reply in [await harness.say("/cron", **on_discord())]]
        )


async def test_forget_confirmed_after_unlinking_erases_nothing_of_the_other_account(
    home: Path,
) -> None:
    async with joined(home, ScriptedModel()) as harness:
        assert "fern" in (await harness.say("/forget fern", **on_discord())).text
        await harness.say("/unlink", "7")
        answer = (await harness.say("yes", **on_discord())).text
        assert "Forgotten" not in answer
        assert "under the fern" in (await harness.say("/recall boathouse", "7")).text
        assert "fern" in (await harness.say("/memory list", "7")).text


async def test_unlinked_account_cannot_change_the_other_accounts_reminders_and_notes(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with joined(home, model) as harness:
        assert "fern" in (await harness.say("/cron", **on_discord())).text
        await harness.say("/unlink", "7")
        for text in (
            "/cron remove 1",
            "/memory remove hall",
            "/memory undo",
            "/memory forget f1",
            "/sessions 1",
        ):
            assert "fern" not in (await harness.say(text, **on_discord())).text
        model.script[:] = [calls(("reminder", {"action": "remove", "job_id": 1})), says("done")]
        await harness.say("remove it", **on_discord())
        for text in ("/cron", "/memory list", "/memory facts", "/recall boathouse"):
            assert "fern" in (await harness.say(text, "7")).text


async def test_turn_running_during_unlinking_restarts_without_the_other_accounts_words(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with joined(home, model) as harness:
        await harness.say("/new", **on_discord())
        model.gate = asyncio.Event()
        model.began.clear()
        model.script[:] = [calls(("session_search", {"query": "boathouse"})), says("done")]
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(harness.say("look for the shed", **on_discord()))
            await model.began.wait()
            gate, model.gate = model.gate, None
            assert "Separated" in (await harness.say("/unlink", "7")).text
            assert gate is not None
            gate.set()
            await turn
        assert "fern" not in str(model.requests[-1]), "it was begun anew"
        assert turn.result().text == "done"


async def test_answer_in_progress_during_unlinking_is_replaced_by_one_without_the_others_words(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with joined(home, model) as harness:
        model.gate = asyncio.Event()
        model.began.clear()
        model.script[:] = [says("The key is under the fern."), says("I do not know.")]
        async with asyncio.TaskGroup() as tasks:
            turn = tasks.create_task(harness.say("where is the key?", **on_discord()))
            await model.began.wait()
            gate, model.gate = model.gate, None
            assert "Separated" in (await harness.say("/unlink", "7")).text
            assert gate is not None
            gate.set()
            await turn
        assert turn.result().text == "I do not know."
        assert "fern" not in str(model.requests[-1])


async def test_export_after_unlinking_contains_nothing_of_the_other_account(home: Path) -> None:
    model = ScriptedModel()
    async with joined(home, model, "good morning") as harness:
        model.script = [
            calls(("session_search", {"query": "boathouse key"})),
            says("I know where it is."),
        ]
        await harness.say("where is the boathouse key?", **on_discord())
        assert "fern" in str(model.requests[-1])
        await harness.say("/unlink", "7")
        answer = (await harness.say("/export", **on_discord())).answer
        assert answer is not None
        lines = [
            json.loads(line) for file in answer.files for line in file.content.decode().splitlines()
        ]
        assert lines
        assert "fern" not in str(lines)
