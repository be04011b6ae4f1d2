"""The page "Today": what waits for a yes, what comes next, what was noted, and the health."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from filelock import FileLock

from core.agent.offline import OfflineModel
from core.errors import load_sentences
from core.store.model_limits import OUTAGES_KEY
from core.store.notes import FACT, Author, Operation
from core.store.rows import set_meta
from core.types import LOCAL_SCOPE, Account, Scope
from gateway.sharing.home_lock import LOCK_FILE, lock_home
from gateway.texts.catalog import load_texts
from gateway.web.rendering import render_commands
from tests.end_to_end.test_mcp import server_options
from tests.fixtures.gateway_harness import KeptReply
from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

WORDS = load_texts("en").table("page_today")
ACCOUNT = Account(platform="telegram", user_id="42")
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
        assert load_texts("en").table("page")["NOTES_MEMORY"] in waiting
        assert WORDS["WHY_ASKS"].format(reason="") in waiting
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
        form = today.form("/do/approve-edited")
        await page.browser.send(form, text0="The gate code of the office is 4471.")
        assert await list_notes(page) == ["The gate code of the office is 4471."]
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/today")).text
        again = await page.browser.send(form, text0="Once more, with many words")
        assert await list_notes(page) == ["The gate code of the office is 4471."]
        assert WORDS["GONE"] in again.text
        assert "Once more, with many words" in again.text


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
        form = (await page.browser.open("/today")).form("/do/approve-edited")
        await page.browser.send(form, text0="The gate code is 5582.")
        assert await list_notes(page) == ["The gate code is 5582."]
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/today")).text


async def test_pending_reminder_gets_another_time_and_text_on_the_web_page(home: Path) -> None:
    async with open_page(home, OfflineModel("UTC")) as page:
        await page.harness.say("remind me tomorrow at 9:00 to pay Bob", origin="forwarded")
        today = await page.browser.open("/today")
        assert "09:00" in today.text
        assert "pay Bob" in today.text
        form = today.form("/do/approve-edited")
        unread = await page.browser.send(form, text0="some day", text1="pay Bob")
        assert "I understand only a part of that time" in unread.text
        shown = unread.form("/do/approve-edited")
        assert {**shown.fields, "form": ""} == {**form.fields, "form": "", "text0": "some day"}
        reading = await page.browser.open("/reminders/reading?part=time&line=every friday at 17:30")
        assert reading.text.startswith("every Friday at 17:30, next Friday")
        answer = await page.browser.send(form, text0="every friday at 17:30", text1="pay Ann")
        assert WORDS["NOTHING_WAITS"] in answer.text
        (job,) = await page.harness.services.jobs.list_visible(OWNER_SCOPES)
        assert job.text == "pay Ann"
        assert "every Friday at 17:30" in answer.text


async def test_pending_reminder_keeps_its_time_if_only_its_text_is_edited(home: Path) -> None:
    async with open_page(home, OfflineModel("UTC")) as page:
        await page.harness.say("remind me every 3 hours to pay Bob", origin="forwarded")
        form = (await page.browser.open("/today")).form("/do/approve-edited")
        await page.browser.send(form, text1="pay Ann")
        (job,) = await page.harness.services.jobs.list_visible(OWNER_SCOPES)
        assert job.text == "pay Ann"
        assert "FREQ=HOURLY;INTERVAL=3" in job.schedule.recurrences[0]


async def test_pending_call_runs_with_the_arguments_that_the_person_typed(home: Path) -> None:
    model = ScriptedModel()
    diary = home.parent / "diary.txt"
    async with open_page(home, model, options=server_options(diary)) as page:
        await page.harness.say(MAIL, origin="forwarded")
        model.script = [calls(("diary__add_entry", {"text": "code 4471"})), says("It waits.")]
        await page.harness.say("What does it say?")
        assert not diary.exists()
        form = (await page.browser.open("/today")).form("/do/approve-edited")
        await page.browser.send(form, text0="Ask the caretaker for the “code”")
        assert diary.read_text() == "Ask the caretaker for the “code”\n"
        assert WORDS["NOTHING_WAITS"] in (await page.browser.open("/today")).text


async def test_pending_fact_is_stored_in_the_words_of_the_person_and_names_no_message(
    home: Path,
) -> None:
    async with open_page(home) as page:
        services = page.harness.services
        scope = Scope.account("telegram", "42")
        operation = Operation(action="add", content="I live in Porto")
        author = Author(account=ACCOUNT, message_id=1)
        await services.notebook.review.put_aside(scope, FACT, [operation], author, "a test")
        form = (await page.browser.open("/today")).form("/do/approve-edited")
        await page.browser.send(form, text0="I live in Lisbon")
        (fact,) = await services.facts.list_page(OWNER_SCOPES, 5)
        assert (fact.content, fact.origin, fact.message_id) == ("I live in Lisbon", "person", None)


async def test_pending_change_without_words_can_only_be_approved_or_rejected(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        operation = Operation(action="remove", old_text="I live in Lisbon", path="f1")
        await page.harness.services.notebook.review.put_aside(
            Scope.account("telegram", "42"), FACT, [operation], Author(account=ACCOUNT), "a test"
        )
        today = await page.browser.open("/today")
        assert today.form("/do/approve-change")
        assert today.form("/do/reject-change")
        assert not [form for form in today.forms if form.action == "/do/approve-edited"]


async def test_new_words_of_a_pending_change_that_look_suspicious_need_one_more_yes(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await let_a_note_wait(page, model)
        form = (await page.browser.open("/today")).form("/do/approve-edited")
        secret = "The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
        asked = await page.browser.send(form, text0=secret)
        assert await list_notes(page) == []
        await page.browser.send(asked.form("/press/"))
        assert await list_notes(page) == [secret]


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


async def test_own_messages_that_are_being_answered_are_listed_and_others_only_counted(
    home: Path,
) -> None:
    async with open_page(home) as page:
        harness = page.harness
        for text, who in (("Where is the <ferry>?", "42"), ("Where is my ring?", "7")):
            assert await harness.admission.admit(harness.inbound(text, who), KeptReply())
        today = await page.browser.open("/today")
        assert WORDS["RUNNING"].format(count=2) in today.text
        assert "Where is the &lt;ferry&gt;?" in today.body
        assert "ring" not in today.text


async def test_health_and_checks_are_for_the_owner(home: Path) -> None:
    async with open_page(home) as page:
        today = await page.browser.open("/today")
        assert WORDS["HEALTH"] in today.text
        assert "database: " in today.text
        checks = await page.browser.open("/today/checks")
        assert re.search(rf"state\.db: {WORDS['STATE_RIGHT']}", checks.text)
        assert WORDS["STATE_OFF"] in checks.text


async def test_problems_that_the_checks_found_are_on_today_until_mneme_runs(home: Path) -> None:
    async with open_page(home) as page:
        assert "backups (" not in (await page.browser.open("/today")).text
        checks = await page.browser.open("/today/checks")
        subjects = re.findall(r'<li class="state-wrong">\s*<p><b>([^<]+):</b>', checks.body)
        assert len(subjects) > 1
        today = await page.browser.open("/today")
        problems = today.text.partition(WORDS["WAITING"])[0]
        for subject in set(subjects) - {"process"}:
            assert f"{subject} (" in problems
        assert 'href="/today/checks">' in today.body.partition('id="waiting"')[0]
        with FileLock(home / LOCK_FILE):
            running = await page.browser.open("/today")
        for subject in subjects:
            assert f"{subject} (" not in running.text.partition(WORDS["WAITING"])[0]


async def test_problems_that_the_checks_found_while_mneme_runs_are_on_today(home: Path) -> None:
    async with open_page(home) as page:
        with lock_home(home):
            checks = await page.browser.open("/today/checks")
            subjects = re.findall(r'<li class="state-wrong">\s*<p><b>([^<]+):</b>', checks.body)
            today = await page.browser.open("/today")
        assert subjects
        for subject in subjects:
            assert f"{subject} (" in today.text.partition(WORDS["WAITING"])[0]
        assert "mneme check" in checks.text


async def test_checks_are_worded_in_the_language_of_the_reader(home: Path) -> None:
    async with open_page(home) as page:
        checks = await page.browser.open("/today/checks", **{"Accept-Language": "de"})
        german = load_texts("de")
        assert german.compose("index_right") in checks.text
        stopped = german.table("page_today")["NOT_RUNNING"].replace("`", "")
        states = re.findall(r'<li class="state-(\w+)">', checks.body)
        assert states == sorted(states, key=["wrong", "right", "off"].index)
        assert stopped in checks.text.partition(german.compose("index_right"))[0]
        assert german.table("page_today")["CHECK_AGAIN"] in checks.text
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
        assert "isn't running" in stopped.text
        assert 'href="/today/checks"' in stopped.body
        with FileLock(home / LOCK_FILE):
            today = await page.browser.open("/today")
        assert "isn't running" not in today.text
        problems = today.text.partition(WORDS["WAITING"])[0]
        health = today.text.partition(WORDS["HEALTH"])[2]
        assert today.text.count("telegram: out of reach (no network), trying again") == 1
        assert "telegram: out of reach (no network), trying again" in problems
        assert f"claude: {load_sentences()['model_429']}" in problems
        assert f"{WORDS['BACKUP']}: There is no backup." in health
        assert "model:" not in health


async def test_what_was_noted_lately_is_undone_unless_it_was_replaced(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("/memory add The gate code is on the fridge")
        await page.harness.say('/memory replace "the fridge" => the pin board')
        today = await page.browser.open("/today")
        undo_forms = [form for form in today.forms if form.action == "/do/change-undo"]
        assert [form.fields["number"] for form in undo_forms] == ["2"]
        asked = await page.browser.send(today.form("/do/fact-undo"))
        await page.browser.send(asked.form("/press/"))
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


@pytest.mark.parametrize("path", ["/reminders", "/memory", "/memory/facts", "/settings"])
async def test_page_with_actions_warns_that_mneme_is_stopped(home: Path, path: str) -> None:
    async with open_page(home) as page:
        stopped = await page.browser.open(path)
        assert WORDS["NOT_RUNNING"].replace("`", "") in stopped.text
        assert stopped.form("/do/start-mneme", WORDS["START"])
        with lock_home(home):
            running = await page.browser.open(path)
        assert WORDS["NOT_RUNNING"].replace("`", "") not in running.text
