"""/recall, `mneme recall` and the page "Recall" also find notes, only those of who searches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.search.note_search import rank_notes
from tests.fixtures.command_line import good
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.page_browser import open_page
from tests.fixtures.populated_home import room
from tests.fixtures.scripted_model import ScriptedModel
from tests.fixtures.tables import each_row

NOTES = [
    "the boiler is a Vaillant",
    "bins go out on Mondays",
    "the boiler man is Joe",
    "我的医生是王医生",
]


async def tell(harness: GatewayHarness, *texts: str) -> str:
    """Send the texts one after the other. Return the answer to the last one."""
    replies = [await harness.say(text) for text in texts]
    return replies[-1].text


@each_row(
    ("query", "found"),
    [
        ("boiler", ["the boiler is a Vaillant", "the boiler man is Joe"]),
        ("boilers", ["the boiler is a Vaillant", "the boiler man is Joe"]),
        ("boiler Vaillant", ["the boiler is a Vaillant"]),
        ("what boiler do I have?", ["the boiler is a Vaillant", "the boiler man is Joe"]),
        ("boiler -Joe", ["the boiler is a Vaillant"]),
        ("boiler NOT vaillant", ["the boiler man is Joe"]),
        ('"boiler man"', ["the boiler man is Joe"]),
        ("Joe OR bins", ["bins go out on Mondays", "the boiler man is Joe"]),
        ("Vail*", ["the boiler is a Vaillant"]),
        ("医生", ["我的医生是王医生"]),
        ("我的医生是谁？", ["我的医生是王医生"]),
        ("zeppelin", []),
        ("-boiler", []),
        ("???", []),
        ("", []),
    ],
)
def test_notes_match_by_words_in_any_form_and_by_the_operators_of_queries(
    query: str, found: list[str]
) -> None:
    assert sorted(rank_notes(query, NOTES)) == sorted(found)


@pytest.mark.slow
async def test_recall_shows_a_note_apart_from_messages_and_names_it_as_one(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        told = await tell(harness, "/memory add the boiler is a Vaillant", "/recall boiler")
        assert told == "📝 **From your notes**\n\n> the boiler is a Vaillant"
        told = await tell(harness, "The boiler makes a noise", "/new", "/recall boiler")
        assert told.index("From your notes") < told.index("makes a noise")


@pytest.mark.slow
async def test_recall_in_another_language_names_the_notes_in_it(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        told = await tell(
            harness, "/language de", "/memory add mein Arzt ist Dr. Patil", "/recall Arzt"
        )
        assert told.startswith("📝 **Aus deinen Notizen**")


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [["/memory remove boiler"], ["/memory wrong boiler"], ["/memory replace Vaillant => Bosch"]],
)
async def test_recall_shows_no_note_that_was_removed_replaced_or_called_wrong(
    home: Path, before: list[str]
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        told = await tell(
            harness, "/memory add the boiler is a Vaillant", *before, "yes", "/recall Vaillant"
        )
        assert "From your notes" not in told


@pytest.mark.slow
@pytest.mark.parametrize("query", ["boiler role:user", "page:2 boiler", "in:1 boiler"])
async def test_recall_with_filters_or_a_further_page_shows_no_notes(home: Path, query: str) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        told = await tell(harness, "/memory add the boiler is a Vaillant", f"/recall {query}")
        assert "Vaillant" not in told


@pytest.mark.slow
async def test_recall_never_shows_a_note_of_another_person_or_chat(home: Path) -> None:
    (home / "mneme.toml").write_text('[access]\ntelegram = [43]\nrooms = ["telegram:-100"]\n')
    async with open_gateway(home, ScriptedModel()) as harness:
        group = room("owner", "telegram:-100")
        await harness.say("/memory add the boiler is a Vaillant")
        await harness.say("/memory add the boiler of the club is a Bosch", **group)
        assert "Vaillant" not in (await harness.say("/recall boiler", "43")).text
        in_group = (await harness.say("/recall boiler", **group)).text
        assert "Bosch" in in_group
        assert "Vaillant" not in in_group
        assert "Bosch" not in (await harness.say("/recall boiler")).text


@pytest.mark.slow
def test_recall_in_the_shell_prints_notes_as_text_and_as_json(home: Path) -> None:
    good(home, "memory", "add", "the boiler is a Vaillant")
    assert "the boiler is a Vaillant" in good(home, "recall", "boiler")
    found = json.loads(good(home, "recall", "boiler", "--json"))
    assert found["notes"] == [{"text": "the boiler is a Vaillant", "file": "MEMORY.md"}]
    assert "note" not in found
    assert "notes" not in json.loads(good(home, "recall", "zeppelin", "--json"))
    lines = good(home, "recall", "-", stdin="boiler\n")
    assert json.loads(lines)["notes"] == found["notes"]


@pytest.mark.slow
async def test_page_recall_shows_the_notes_that_match(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add the boiler is a Vaillant")
        shown = (await page.browser.open("/recall?q=boiler")).text
        assert "From your notes" in shown
        assert "the boiler is a Vaillant" in shown
        assert "From your notes" not in (await page.browser.open("/recall?q=zanzibar")).text
