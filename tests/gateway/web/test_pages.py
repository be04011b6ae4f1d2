"""What the pages show, and what their forms do, for a browser without scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.texts.catalog import list_languages, load_texts
from tests.fixtures.page_browser import open_page

WORDS = load_texts("en").table("page_recall")


async def test_search_shows_snippets_and_opens_the_conversation_at_the_message(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("The ferry to Barreiro leaves at nine")
        await page.harness.say("My bicycle is green")
        found = await page.browser.open("/recall?q=ferry")
        assert "<mark>ferry</mark> to Barreiro" in found.body
        assert "bicycle" not in found.text
        link = re.search(r'href="(/recall\?q=around:\d+)"', found.body)
        assert link is not None
        opened = await page.browser.open(link[1])
        assert 'class="message user anchor"' in opened.body
        assert "My bicycle is green" in opened.text
        assert WORDS["NOTHING"] in (await page.browser.open("/recall?q=zanzibar")).text
        assert WORDS["LATEST"] in (await page.browser.open("/")).text


async def test_memory_shows_notes_and_facts_with_their_source(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("/memory add The gate code is on the fridge")
        memory = await page.browser.open("/memory")
        assert "I live in Lisbon" in memory.text
        assert "The gate code is on the fridge" in memory.text
        fact = await page.browser.open("/memory/facts/1")
        assert "Trust: " in fact.text
        assert "learned" in fact.text
        history = await page.browser.open("/memory/history")
        assert "added" in history.text


@pytest.mark.parametrize("path", ["/memory/facts/0", "/memory/facts/x", "/memory/facts/1e9", "/x"])
async def test_missing_thing_gets_a_sentence_and_404(home: Path, path: str) -> None:
    async with open_page(home) as page:
        answer = await page.browser.open(path)
        assert answer.status == 404
        assert load_texts("en").table("page")["NOT_FOUND"] in answer.text


@pytest.mark.parametrize("language", list_languages())
async def test_page_speaks_the_language_of_the_browser(home: Path, language: str) -> None:
    words = load_texts(language).table("page")
    async with open_page(home) as page:
        for path in ("/", "/memory", "/memory/facts", "/memory/history", "/logins"):
            answer = await page.browser.open(path, **{"Accept-Language": f"{language},en;q=0.5"})
            assert f'<html lang="{language}">' in answer.body
            assert words["NAV_MEMORY"] in answer.text
