"""The page "Reminders": the list, the week, one reminder, and what its forms do."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest

from core.types import Scope
from gateway.texts.catalog import list_languages, load_texts
from tests.end_to_end.test_job_messages import run as run_jobs
from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.sweeps import list_cases

pytestmark = pytest.mark.slow

WORDS = load_texts("en").table("page_reminders")
OWNER = frozenset((Scope.account("telegram", "42"),))


async def add(page: OpenPage, line: str, kind: str = "reminder") -> str:
    """Add a reminder with the form, and return the text of the page that follows."""
    form = (await page.browser.open("/reminders")).form("/do/add-reminder")
    return (await page.browser.send(form, line=line, kind=kind)).text


async def test_reminder_entered_on_the_web_page_is_set_for_the_owners_chat(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/status")
        answer = await add(page, "in 2 hours call Ana")
        assert "call Ana" in answer
        (job,) = await page.harness.services.jobs.list_visible(OWNER)
        assert (job.text, job.target.key) == ("call Ana", "telegram:42")
        assert "call Ana" in (await page.harness.say("/cron")).text


async def test_form_sent_twice_by_a_double_click_acts_once_and_shows_its_answer(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("/status")
        form = (await page.browser.open("/reminders")).form("/do/add-reminder")
        line = "in 2 hours call Ana"
        first, second = await asyncio.gather(
            page.browser.send(form, line=line, kind="reminder"),
            page.browser.send(form, line=line, kind="reminder"),
        )
        assert len(await page.harness.services.jobs.list_visible(OWNER)) == 1
        assert "call Ana" in first.text
        assert "call Ana" in second.text


async def test_reminder_is_moved_by_a_button_and_only_once_from_an_old_page(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/status")
        await add(page, "tomorrow at 9 call Ana")
        (job,) = await page.harness.services.jobs.list_visible(OWNER)
        opened = await page.browser.open(f"/reminders/{job.id}")
        forms = [form for form in opened.forms if form.action == "/do/delay-reminder"]
        assert [form.fields["minutes"] for form in forms] == ["60", "120", "1440"]
        assert WORDS["SNOOZE_EXAMPLE"] in opened.body
        assert re.search(r"\+2 hours → [^→]*, 11:00", opened.text)
        moved = await page.browser.send(forms[1])
        assert "at 11:00" in moved.text
        assert (
            load_texts("en").table("page")["WRONG_FIELD"]
            in (await page.browser.send(forms[2])).text
        )
        (later,) = await page.harness.services.jobs.list_visible(OWNER)
        assert later.schedule.at is not None
        assert job.schedule.at is not None
        assert later.schedule.at - job.schedule.at == timedelta(hours=2)


async def test_web_reminder_without_a_time_is_refused_with_examples_and_not_set(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("/status")
        answer = await add(page, "call Ana")
        assert "I couldn't find a time in that." in answer
        assert WORDS["NONE"] in answer


async def test_reading_shows_how_a_line_is_understood_while_it_is_typed(home: Path) -> None:
    async with open_page(home) as page:
        reading = await page.browser.open("/reminders/reading?line=every+Monday+at+8+bins+%3Cb%3E")
        assert "every Monday at 08:00" in reading.text
        assert "bins &lt;b&gt;" in reading.body
        assert "<html" not in reading.body
        problem = await page.browser.open("/reminders/reading?line=call+Ana")
        assert 'class="problem"' in problem.body
        assert (await page.browser.open("/reminders/reading?line=")).body.strip() == ""
        snooze = await page.browser.open("/reminders/reading?part=snooze&line=tomorrow+at+18:00")
        assert snooze.text.endswith(", 18:00")
        unread = await page.browser.open("/reminders/reading?part=snooze&line=blah")
        assert WORDS["SNOOZE_UNREAD"] in unread.text


async def test_week_shows_each_time_on_its_day_and_leads_to_other_weeks(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remind every day at 8 take the pill")
        await page.harness.say("/remind every Monday at 9 <b>bins</b>")
        now = page.harness.services.clock.now()
        later = (now + timedelta(days=14)).date()
        week = await page.browser.open(f"/reminders/week?day={later}")
        assert week.text.count("08:00 take the pill") == 7
        assert week.body.count("&lt;b&gt;bins&lt;/b&gt;") == 1
        assert (await page.browser.open("/reminders/week?day=0001-01-01")).status == 200
        assert (await page.browser.open("/reminders/week?day=9999-12-31")).status == 200
        assert (await page.browser.open("/reminders/week?day=nonsense")).status == 200


async def test_reminder_is_changed_paused_and_removed_by_its_forms(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remind every day at 8 take the pill")
        details = await page.browser.open("/reminders/1")
        changed = await page.browser.send(
            details.form("/do/edit-reminder"), when="every day at 9:30", text="take the pill"
        )
        assert "every day at 09:30" in changed.text
        reworded = await page.browser.send(
            changed.form("/do/edit-reminder"), text="take both pills at 7"
        )
        assert "every day at 09:30" in reworded.text
        (job,) = await page.harness.services.jobs.list_visible(OWNER)
        assert job.text == "take both pills at 7"
        unread = await page.browser.send(reworded.form("/do/edit-reminder"), when="blah", text="x")
        assert unread.form("/do/edit-reminder").fields["when"] == "blah"
        unread = await page.browser.send(unread.form("/do/snooze-reminder"), words="blah")
        assert WORDS["SNOOZE_UNREAD"] in unread.text
        snoozed = await page.browser.send(
            changed.form("/do/snooze-reminder"), words="next friday at 10"
        )
        assert "10:00" in snoozed.text
        # The snoozed time is a reminder of its own.
        await page.browser.send(
            (await page.browser.open("/reminders/2")).form("/do/remove-reminder")
        )
        ended = await page.browser.send(snoozed.form("/do/end-reminder"), words="31 December 2027")
        assert "2027" in ended.text
        paused = await page.browser.send(ended.form("/do/pause-reminder"))
        assert WORDS["PAUSED"] in paused.text
        resumed = await page.browser.send(paused.form("/do/resume-reminder"))
        assert all(form.action != "/do/resume-reminder" for form in resumed.forms)
        removed = await page.browser.send(resumed.form("/do/remove-reminder"))
        assert WORDS["ENDED"] in removed.text
        assert WORDS["NONE"] in (await page.browser.open("/reminders")).text
        restored = await page.browser.send(removed.form("/press/", load_texts("en").BUTTON_UNDO))
        assert WORDS["ENDED"] not in restored.text
        await page.browser.send(restored.form("/do/remove-reminder"))
        opened = await page.browser.open("/reminders/1")
        await page.browser.send(opened.form("/do/restore-reminder"))
        assert WORDS["NONE"] not in (await page.browser.open("/reminders")).text


async def test_web_page_of_a_reminder_lists_its_deliveries_with_links_to_the_conversation(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remind every day at 8 take the pill")
        assert WORDS["NOT_YET"] in (await page.browser.open("/reminders/1")).text
        await page.harness.say("/cron run 1")
        await run_jobs(page.harness)
        details = await page.browser.open("/reminders/1")
        assert WORDS["NOT_YET"] not in details.text
        link = re.search(r'href="(/conversations/at/\d+)"', details.body)
        assert link is not None
        assert "anchor" in (await page.browser.open(link[1])).body


async def test_reminder_of_another_person_is_missing(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remind tomorrow at 8 secret of Ana", who="7")
        assert (await page.browser.open("/reminders/1")).status == 404
        assert "secret" not in (await page.browser.open("/reminders")).body
        own = await add(page, "tomorrow at 9 call Ana")
        assert "call Ana" in own
        form = (await page.browser.open("/reminders")).form("/do/remove-reminder")
        refused = await page.browser.post(form.action, {**form.fields, "number": "1"})
        assert "1" in refused.text
        (job,) = await page.harness.services.jobs.list_visible(
            frozenset((Scope.account("telegram", "7"),))
        )
        assert job.text == "secret of Ana"


@pytest.mark.parametrize("language", list_cases(list_languages(), "ja"))
async def test_reminders_speak_the_language_of_the_browser(home: Path, language: str) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remind every day at 8 take the pill")
        for path in ("/reminders", "/reminders/week", "/reminders/1"):
            answer = await page.browser.open(path, **{"Accept-Language": language})
            assert answer.status == 200
            assert load_texts(language).table("page")["NAV_REMINDERS"] in answer.text
