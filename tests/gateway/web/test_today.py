"""The page "Today": what waits for a yes, what comes next, what was noted, and the health."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.types import LOCAL_SCOPE, Scope
from gateway.texts.catalog import load_texts
from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

WORDS = load_texts("en").table("page_today")
OWNER_SCOPES = frozenset({Scope.account("telegram", "42"), LOCAL_SCOPE})
MAIL = "Dear Ana, the gate code is 4471. Regards, the caretaker"


async def let_a_note_wait(page: OpenPage, model: ScriptedModel, who: str = "42") -> None:
    """Let the model propose a note from a forwarded mail, which waits for a yes."""
    await page.harness.say(MAIL, who=who, origin="forwarded")
    note = {"action": "add", "target": "memory", "content": "The gate code is 4471."}
    model.script = [calls(("memory", note)), says("It waits.")]
    await page.harness.say("What does it say?", who=who)


async def list_notes(page: OpenPage) -> list[str]:
    return list(await page.harness.services.notebook.entries(OWNER_SCOPES, "memory"))


async def test_note_that_waits_is_approved_on_the_page(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/")).text
        await let_a_note_wait(page, model)
        today = await page.browser.open("/today")
        assert "The gate code is 4471." in today.text
        await page.browser.send(today.form("/do/approve-change"))
        assert await list_notes(page) == ["The gate code is 4471."]
        after = await page.browser.open("/today")
        assert WORDS["NOTHING_WAITS"] in after.text
        assert "<ins>" in after.body


async def test_note_that_waits_is_rejected_on_the_page(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await let_a_note_wait(page, model)
        today = await page.browser.open("/today")
        await page.browser.send(today.form("/do/reject-change"))
        assert await list_notes(page) == []
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/today")).text


async def test_note_that_waits_is_stored_in_other_words(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await let_a_note_wait(page, model)
        today = await page.browser.open("/today")
        form = today.form("/do/edit-pending")
        await page.browser.send(form, text="The gate code of the office is 4471.")
        assert await list_notes(page) == ["The gate code of the office is 4471."]
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/today")).text
        again = await page.browser.send(form, text="Once more")
        assert await list_notes(page) == ["The gate code of the office is 4471."]
        assert form.fields["number"] in again.text


async def test_page_neither_shows_nor_decides_the_pending_note_of_another_person(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await let_a_note_wait(page, model, who="7")
        today = await page.browser.open("/today")
        assert "4471" not in today.body
        await let_a_note_wait(page, model)
        form = (await page.browser.open("/today")).form("/do/approve-change")
        await page.browser.post(form.action, {**form.fields, "number": "1"})
        others = frozenset({Scope.account("telegram", "7")})
        assert await page.harness.services.notebook.entries(others, "memory") == []
        assert len(await page.harness.services.notebook.review.list_pending(others)) == 1


async def test_next_reminders_and_latest_changes_stand_on_the_page(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remind every day at 8 take the <b>pill</b>")
        await page.harness.say("/memory add The gate code is on the fridge")
        await page.harness.say("/remember I live in <i>Lisbon</i>")
        today = await page.browser.open("/")
        assert "I live in &lt;i&gt;Lisbon&lt;/i&gt;" in today.body
        assert "take the &lt;b&gt;pill&lt;/b&gt;" in today.body
        assert "every day at 08:00" in today.text
        await page.browser.send(today.form("/do/change-undo"))
        assert await list_notes(page) == []


async def test_health_and_checks_are_for_the_owner(home: Path) -> None:
    async with open_page(home) as page:
        today = await page.browser.open("/today")
        assert WORDS["HEALTH"] in today.text
        assert "state.db" in today.text
        checks = await page.browser.open("/today/checks")
        assert re.search(rf"{WORDS['STATE_RIGHT']} state\.db", checks.text)
        assert WORDS["STATE_OFF"] in checks.text
