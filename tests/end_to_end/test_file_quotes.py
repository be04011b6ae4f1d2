"""After a file is removed or forgotten, tool results and summaries no longer quote it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.privacy.quotes import remove_quoting_lines
from gateway.commands.privacy import render_repeat
from gateway.texts.catalog import ENGLISH
from tests.end_to_end.test_erased import forget
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.media_samples import make_pdf
from tests.fixtures.scripted_model import ScriptedModel, calls, says

PAGES = [
    "The rent is due on the first day of each month",
    "The heron in the attic is named Ottokar",
]


def make_model() -> ScriptedModel:
    return ScriptedModel(
        says("Kept."),
        calls(("read_document", {"file_id": 1, "part": "page 2"})),
        says("I see."),
        calls(("find_files", {"words": "heron"})),
        says("One."),
        says("Nothing."),
    )


async def read_contract(harness: GatewayHarness) -> None:
    """Send a contract, and let the model read it and find it."""
    await harness.send(make_pdf(PAGES), "contract.pdf", text="For the house", message_id="70")
    await harness.say("/new")
    await harness.say("Look into it")
    await harness.say("Which files are there?")


async def list_results(harness: GatewayHarness) -> str:
    rows = await harness.services.database.fetch_all(
        "SELECT text, blocks, sent FROM messages WHERE role = 'tool' OR kind = 'summary'"
    )
    return json.dumps([[row["text"], row["blocks"], row["sent"]] for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["/files remove 1", "/forget house", "deleted on the platform"])
async def test_tool_results_do_not_quote_a_file_that_was_removed_or_forgotten(
    home: Path, way: str
) -> None:
    model = make_model()
    async with open_gateway(home, model) as harness:
        await read_contract(harness)
        assert "Ottokar" in await list_results(harness)
        if way.startswith("/files"):
            await harness.say(way)
        elif way.startswith("/forget"):
            await forget(harness, "house")
        else:
            await harness.say("", kind="delete", message_id="70", command=None)
        results = await list_results(harness)
        assert "Ottokar" not in results
        assert results.count("quoted a file that has been removed") == 4, "text and block of both"
        await harness.say("And now?")
        assert "Ottokar" not in json.dumps(model.requests[-1].messages)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["/files remove 1", "/forget house"])
async def test_summary_does_not_quote_a_file_that_was_removed_or_forgotten(
    home: Path, way: str
) -> None:
    async with open_gateway(home, make_model()) as harness:
        await read_contract(harness)
        (row,) = await harness.services.database.fetch_all(
            "SELECT MAX(id) AS id FROM messages WHERE role = 'assistant'"
        )
        await harness.services.database.execute(
            "UPDATE messages SET kind = 'summary', text = :text WHERE id = :id",
            {
                "id": row["id"],
                "text": "- We moved.\n- The heron in the attic is named Ottokar.\n- It rains.",
            },
        )
        if way.startswith("/files"):
            await harness.say(way)
        else:
            await forget(harness, "house")
        rows = await harness.services.database.fetch_all(
            "SELECT text FROM messages WHERE kind = 'summary'"
        )
        assert [row["text"] for row in rows] == ["- We moved.\n- It rains."]


def test_summary_loses_the_line_of_a_picture_and_keeps_a_short_phrase() -> None:
    summary = "- Picture “p.jpg” (file 12): a mill\n- Picture “q.jpg” (file 1): a quay\n- Rent due."
    remaining = "- Picture “q.jpg” (file 1): a quay\n- Rent due."
    assert remove_quoting_lines(summary, ["The rent is due on Monday"], {12}) == remaining


@pytest.mark.slow
async def test_forgetting_a_file_erases_answers_that_quote_it_and_says_what_may_remain(
    home: Path,
) -> None:
    model = ScriptedModel(
        says("Kept."),
        says("The heron in the attic is named Ottokar."),
        says("Mind the bird upstairs."),
        says("As it says: The heron in the attic is named Ottokar. Nice."),
    )
    async with open_gateway(home, model) as harness:
        await harness.send(make_pdf(PAGES), "contract.pdf", text="For the house")
        await harness.say("Who lives upstairs?")
        await harness.say("Anything to mind?")
        await harness.say("/new")
        await harness.say("And what is the bird called?")
        question = await harness.say("/forget house")
        assert "In an answer: The heron in the attic is named Ottokar." in question.text
        receipt = (await harness.say("yes")).text
        rows = await harness.services.database.fetch_all("SELECT text FROM messages")
    assert not [row["text"] for row in rows if "Ottokar" in row["text"]]
    assert "Mind the bird upstairs." in [row["text"] for row in rows]
    assert (
        "Only my earlier answers may still say in other words what was in contract.pdf." in receipt
    )


@pytest.mark.slow
async def test_receipt_names_an_equal_file_of_another_message(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.send(make_pdf(PAGES), "contract.pdf", text="The alpha contract")
        await harness.send(make_pdf(PAGES), "copy.pdf", text="The bravo contract")
        sentence = "came with other messages and stays there: copy.pdf (/files remove 2)."
        question = await harness.say("/forget alpha")
        assert sentence in question.text.replace("`", "")
        receipt = (await harness.say("yes")).text.replace("`", "")
        assert sentence in receipt
        assert "nothing of it is left" not in receipt
        assert "No file in Mneme's home" not in receipt
        assert "nothing of it is left" in await forget(harness, "bravo")


def test_file_in_a_text_that_repeats_another_is_shown_by_its_name() -> None:
    line = render_repeat(
        ENGLISH, "title", "The mill [attached photo: mill.jpg (image/jpeg, 5,473 …"
    )
    assert line == "- In a title: The mill 📎 mill.jpg"


@pytest.mark.slow
async def test_removal_names_an_equal_file_of_another_message(home: Path) -> None:
    async with open_gateway(home, OfflineModel("Europe/Lisbon")) as harness:
        await harness.send(make_pdf(PAGES), "contract.pdf")
        await harness.send(make_pdf(PAGES), "copy.pdf")
        sentence = "stays there: copy.pdf (`/files remove 2`)."
        assert sentence in (await harness.say("/files remove contract")).text
        assert sentence in (await harness.say("yes")).text
        assert "stays there" not in (await harness.say("/files remove 2")).text
