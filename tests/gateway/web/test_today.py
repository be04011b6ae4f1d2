"""The page "Today": what waits for a yes, what comes next, what was noted, and the health."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from filelock import FileLock

from core.errors import load_sentences
from core.store.model_limits import OUTAGES_KEY
from core.store.rows import set_meta
from core.types import LOCAL_SCOPE, Scope
from gateway.services import LOCK_FILE
from gateway.texts.catalog import load_texts
from gateway.web.rendering import render_commands
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
        waiting = today.text.partition(WORDS["WAITING"])[2].partition(WORDS["WISHES"])[0]
        assert load_texts("en").table("NOTE_TITLES")["memory"] in waiting
        assert "MEMORY.md" not in waiting
        assert "telegram:42" not in waiting
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


async def test_pending_note_can_be_reworded_on_the_web_page_before_it_is_stored(home: Path) -> None:
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


async def test_pending_replacement_can_be_reworded_on_the_web_page_before_it_is_stored(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await page.harness.say("/memory add The gate code is 1234.")
        await page.harness.say(MAIL, origin="forwarded")
        change = {"action": "replace", "target": "memory", "old_text": "The gate code is 1234."}
        model.script = [
            calls(("memory", {**change, "content": "The gate code is 4471."})),
            says("It waits."),
        ]
        await page.harness.say("What does it say?")
        form = (await page.browser.open("/today")).form("/do/edit-pending")
        await page.browser.send(form, text="The gate code is 5582.")
        assert await list_notes(page) == ["The gate code is 5582."]
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/today")).text


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
        assert "database: " in today.text
        checks = await page.browser.open("/today/checks")
        assert re.search(rf"state\.db: {WORDS['STATE_RIGHT']}", checks.text)
        assert WORDS["STATE_OFF"] in checks.text


async def test_checks_are_worded_in_the_language_of_the_reader(home: Path) -> None:
    async with open_page(home) as page:
        checks = await page.browser.open("/today/checks", **{"Accept-Language": "de"})
        german = load_texts("de")
        assert german.compose("index_right") in checks.text
        assert german.compose("settings_complete", home=home) in checks.text
        today = await page.browser.open("/today", **{"Accept-Language": "de"})
        assert german.BACKUP_NONE in today.text


async def test_health_shows_what_is_known_to_be_wrong_and_leads_to_the_checks(home: Path) -> None:
    async with open_page(home) as page:
        services = page.harness.services
        await services.save_platform_states({"telegram": "out of reach (no network), trying again"})
        outage = json.dumps(
            {"outages": {"claude": {"reason": "model_429", "answered_by": {}}}, "turns": {}}
        )
        await services.database.write(lambda connection: set_meta(connection, OUTAGES_KEY, outage))
        stopped = await page.browser.open("/today")
        assert "isn’t running" in stopped.text
        assert 'href="/today/checks"' in stopped.body
        with FileLock(home / LOCK_FILE):
            today = await page.browser.open("/today")
        assert "isn’t running" not in today.text
        problems = today.text.partition(WORDS["WAITING"])[0]
        health = today.text.partition(WORDS["HEALTH"])[2]
        assert today.text.count("telegram: out of reach (no network), trying again") == 1
        assert "telegram: out of reach (no network), trying again" in problems
        assert f"claude: {load_sentences()['model_429']}" in problems
        assert f"{WORDS['BACKUP']}: There is no backup." in health


async def test_what_was_noted_lately_is_undone_unless_it_was_replaced(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("/memory add The gate code is on the fridge")
        await page.harness.say('/memory replace "the fridge" => the pin board')
        today = await page.browser.open("/today")
        undo_forms = [form for form in today.forms if form.action == "/do/change-undo"]
        assert [form.fields["number"] for form in undo_forms] == ["2"]
        await page.browser.send(today.form("/do/fact-undo"))
        assert "Lisbon" not in (await page.browser.open("/memory/facts")).text


async def test_memory_leads_to_the_change_that_waits_on_today(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await let_a_note_wait(page, model)
        memory = await page.browser.open("/memory")
        assert 'href="/today#waiting"' in memory.body
        badge = load_texts("en").table("page")["WAITING_BADGE"].format(count=1)
        for path in ("/memory", "/memory/facts", "/settings"):
            assert f'title="{badge}"' in (await page.browser.open(path)).body
        assert "/memory pending" not in memory.text
        assert 'id="waiting"' in (await page.browser.open("/today")).body


def test_commands_of_an_advice_are_set_off_as_code() -> None:
    advice = "Type mneme setup or mneme config set ANTHROPIC_API_KEY. Or chmod 600 /home/a."
    assert render_commands(advice) == (
        "Type <code>mneme setup</code> or <code>mneme config set ANTHROPIC_API_KEY</code>. "
        "Or <code>chmod 600 /home/a</code>."
    )
    assert render_commands("<b> `mneme check --repair`") == (
        "&lt;b&gt; <code>mneme check --repair</code>"
    )
