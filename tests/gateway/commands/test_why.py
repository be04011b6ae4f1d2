"""/why: what an answer was based on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from core.errors import ModelError
from core.types import Scope
from gateway.answers.explanation import MAX_LINES, ExplanationWriter
from gateway.texts.catalog import load_texts
from tests.end_to_end.test_job_messages import planned
from tests.end_to_end.test_job_messages import run as run_jobs
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import make_pdf
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.web_pages import loopback_client, serve_pages

pytestmark = pytest.mark.slow

POSTED_OF_JOBS = """
SELECT outbox.posted FROM outbox JOIN messages ON messages.id = outbox.message_id
WHERE messages.origin = 'job' ORDER BY messages.id
"""
OWNER = Scope.account("telegram", "42")
PAGE = """<html><head><title>Ferry times</title></head><body><main><h1>Ferry times</h1>
<p>The Sunday ferry leaves at 10:40 from the harbour of Porto.</p></main></body></html>"""
NOT_AN_ANSWER = "I can only explain my answers to your messages and to scheduled questions."


async def test_why_lists_recalled_lines_and_searches_of_the_last_answer(home: Path) -> None:
    model = ScriptedModel(says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("My sister Ana lives in Porto")
        await harness.say("/new")
        await harness.say("The boiler was repaired by Marta in May")
        await harness.say("/new")
        search = calls(("session_search", {"query": "boiler *repair*"}))
        model.script = [search, says("Marta did it."), says("Hello.")]
        await harness.say("Who repaired the boiler?")
        why = (await harness.say("/why")).text
        assert "The boiler was repaired by Marta in May" in why
        assert "`/sessions m" in why
        assert "I used `session_search`: boiler \\*repair\\*" in why
        assert "Porto" not in why
        number = why.split("`/sessions m")[1].split("`")[0]
        assert "Marta" in (await harness.say(f"/sessions m{number}")).text


async def test_why_shows_times_as_a_person_writes_them_and_no_limits(home: Path) -> None:
    arguments = {
        "query": "dentist",
        "limit": 5,
        "empty": "",
        "span": {"start": "2026-11-30T12:22:00", "end": "2026-12-01", "max_results": 3},
        "odd": ["2026-99-99", "from 2026-11-30T12:22Z to 2026-12-01, room 4711-2026-11-30"],
    }
    lines = {
        "en": "- I used `x`: dentist · 30 Nov 2026, 12:22 · 1 December 2026 · 2026-99-99"
        " · from 30 Nov 2026, 12:22 to 1 December 2026, room 4711-2026-11-30",
        "de": "- Ich habe `x` benutzt: dentist · 30. Nov. 2026, 12:22 · 1. Dezember 2026 · 2026-99-99"
        " · from 30. Nov. 2026, 12:22 to 1. Dezember 2026, room 4711-2026-11-30",
    }
    async with open_gateway(home, ScriptedModel()) as harness:
        for language, line in lines.items():
            writer = ExplanationWriter(
                harness.services, load_texts(language), frozenset({OWNER}), UTC
            )
            assert writer._render_call("x", arguments) == line
            assert writer._render_call("x", {"limit": 5}) == line.partition(":")[0]


async def test_why_shows_times_in_the_time_zone_of_the_person(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        search = calls(("session_search", {"query": "tea", "after": "2026-11-30T20:00:00Z"}))
        model.script = [search, says("Nothing.")]
        await harness.say("When did I drink tea?")
        await harness.say("/timezone Tokyo")
        why = (await harness.say("/why")).text
        assert "tea · 1 Dec 2026, 05:00" in why


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


async def test_why_does_not_take_a_reminder_for_the_answer_to_a_question_without_one(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        model.script = [
            calls(("session_search", {"query": "first"})),
            says("A."),
            ModelError("The model doesn't answer."),
        ]
        await harness.say("One")
        await harness.say("Two")
        await planned(harness, "feed the cat")
        await run_jobs(harness)
        assert "I used `session_search`: first" in (await harness.say("/why")).text


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


async def test_why_names_the_facts_the_model_searched_for_and_those_it_recalled(home: Path) -> None:
    model = ScriptedModel(says("Noted."))
    async with open_gateway(home, model) as harness:
        await harness.say("/remember My sister Ana lives in Porto")
        await harness.say("/remember The boiler is from 2019")
        await harness.say("/new")
        model.script = [calls(("facts", {"mode": "search", "query": "boiler"})), says("In Porto.")]
        await harness.say("Where does my sister live?")
        why = (await harness.say("/why")).text
        facts = await harness.services.facts.list_page(frozenset({OWNER}))
    numbers = {fact.content: fact.id for fact in facts}
    porto = numbers["My sister Ana lives in Porto"]
    boiler = numbers["The boiler is from 2019"]
    assert re.search(rf"^- My sister Ana lives in Porto .*\(`/memory why f{porto}`\)$", why, re.M)
    assert f"\n- The boiler is from 2019 (`/memory why f{boiler}`)" in why


async def test_why_names_the_pages_files_and_notes_of_an_answer(home: Path) -> None:
    model = ScriptedModel(says("Kept."))
    async with serve_pages() as pages, open_gateway(home, model) as harness:
        pages.add("/times", PAGE)
        url = pages.url("/times")
        assert harness.services.web is not None
        harness.services.web.client = loopback_client()
        await harness.say("/memory add Ana is the person's sister")
        await harness.send(make_pdf(), "contract.pdf")
        model.script = [calls(("read_document", {"file_id": 1, "page": 7})), says("Two years.")]
        await harness.say("How often is the boiler serviced?")
        of_file = (await harness.say("/why")).text
        model.script = [calls(("web_fetch", {"url": url})), says("At 10:40.")]
        await harness.say(f"Open {url}")
        of_page = (await harness.say("/why")).text
        day = f"{harness.services.clock.now():%-d %B %Y}"
    assert "- file 1, contract.pdf (`/files send 1`)" in of_file
    assert f"- [Ferry times](<{url}>), read on {day}" in of_page
    assert "contract.pdf" not in of_page
    assert "`web_fetch`" not in of_page
    assert "- note: Ana is the person's sister" in of_page


async def test_why_counts_the_notes_over_its_limit(home: Path) -> None:
    model = ScriptedModel(says("Hello."))
    async with open_gateway(home, model) as harness:
        for number in range(MAX_LINES + 2):
            await harness.say(f"/memory add Note number {number}")
        await harness.say("Hello")
        why = (await harness.say("/why")).text
    assert why.count("- note: Note number") == MAX_LINES
    assert why.endswith("\n- … and 2 more")


async def reply(harness: GatewayHarness, text: str, target: str) -> str:
    """Send a text as a reply to a message of a platform, and return the answer."""
    return (await harness.say(text, reply_to=target)).text


async def test_why_as_a_reply_explains_the_answer_also_of_an_earlier_conversation(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        model.script = [calls(("session_search", {"query": "first"})), says("A."), says("B.")]
        answer = await harness.say("One", message_id="q1")
        await harness.say("/new")
        await harness.say("Two")
        assert answer.receipt is not None
        (posted,) = answer.receipt.message_ids
        assert "I used `session_search`: first" in await reply(harness, "/why", posted)
        assert "I used `session_search`: first" in await reply(harness, "/why", "q1")
        assert "first" not in await reply(harness, "/why 1", posted)


async def test_why_explains_the_answer_to_a_scheduled_question_and_no_reminder(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        model.script = [
            says("Hello."),
            calls(("session_search", {"query": "ferry"})),
            says("Late."),
        ]
        await harness.say("Hi", message_id="q1")
        await planned(harness, "Is the ferry late?", is_prompt=True)
        await run_jobs(harness)
        used = "I used `session_search`: ferry"
        assert used in (await harness.say("/why", message_id="w1")).text
        (scheduled,) = await harness.services.database.fetch_all(POSTED_OF_JOBS)
        assert used in await reply(harness, "/why", json.loads(scheduled["posted"])[0])

        await harness.say("Good", message_id="q2")
        assert used not in (await harness.say("/why", message_id="w2")).text
        await planned(harness, "feed the cat")
        await run_jobs(harness)
        assert used not in (await harness.say("/why", message_id="w3")).text
        *_, reminder = await harness.services.database.fetch_all(POSTED_OF_JOBS)
        posted = json.loads(reminder["posted"])[0]
        assert (await reply(harness, "/why", posted)).startswith(NOT_AN_ANSWER)


async def test_why_as_a_reply_to_no_answer_or_to_another_persons_says_how_to_ask(
    home: Path,
) -> None:
    model = ScriptedModel(says("A."))
    async with open_gateway(home, model) as harness:
        answer = await harness.say("The secret is walrus", message_id="q1")
        help_text = await harness.say("/help")
        assert answer.receipt is not None
        assert help_text.receipt is not None
        for target in ("nowhere", *help_text.receipt.message_ids):
            assert (await reply(harness, "/why", target)).startswith(NOT_AN_ANSWER)
        inbound = replace(harness.inbound("/why", "7"), address=harness.inbound("", "42").address)
        (posted,) = answer.receipt.message_ids
        other = await harness.say(
            "/why", "7", address=inbound.address, is_direct=False, reply_to=posted
        )
        assert other.text.startswith(NOT_AN_ANSWER)
