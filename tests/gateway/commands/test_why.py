"""/why: what an answer was based on."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.types import Scope
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

OWNER = Scope.account("telegram", "42")


async def test_why_lists_recalled_lines_and_searches_of_the_last_answer(home: Path) -> None:
    model = ScriptedModel(says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("The boiler was repaired by Marta in May")
        await harness.say("My sister Ana lives in Porto")
        await harness.say("/new")
        search = calls(("session_search", {"query": "boiler *repair*"}))
        model.script = [search, says("Marta did it."), says("Hello.")]
        await harness.say("Who repaired the boiler?")
        why = (await harness.say("/why")).text
        assert "The boiler was repaired by Marta in May" in why
        assert "`/recall around:" in why
        assert "I used `session_search`: boiler \\*repair\\*" in why
        assert "Porto" not in why
        around = why.split("`/recall around:")[1].split("`")[0]
        assert "Marta" in (await harness.say(f"/recall around:{around}")).text


async def test_why_counts_answers_back_and_refuses_what_is_not_there(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        assert (await harness.say("/why")).text == "There is no such answer in this conversation."
        model.script = [calls(("session_search", {"query": "first"})), says("A."), says("B.")]
        await harness.say("One")
        await harness.say("Two")
        assert "first" not in (await harness.say("/why")).text
        assert "I used `session_search`: first" in (await harness.say("/why 2")).text
        assert (await harness.say("/why 9")).text == "There is no such answer in this conversation."
        assert "Write `/why`" in (await harness.say("/why banana")).text


async def test_why_leaves_out_calls_that_failed_and_arguments_that_are_no_object(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        bad = calls(("no_such_tool", {"query": "walrus"}))
        model.script = [bad, says("I can't.")]
        await harness.say("Find it")
        assert "walrus" not in (await harness.say("/why")).text


async def test_why_after_an_erasure_shows_nothing_of_it(home: Path) -> None:
    model = ScriptedModel(says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("The boiler was repaired by Marta in May")
        await harness.say("/new")
        model.script = [says("Marta did it.")]
        await harness.say("Who repaired the boiler?")
        assert "Marta in May" in (await harness.say("/why")).text
        await harness.say("/forget repaired")
        await harness.say("yes")
        assert "Marta in May" not in (await harness.say("/why")).text
