"""Where the answer to a form is shown, and what happens to its text if it isn't accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.types import LOCAL_SCOPE, Scope
from gateway.texts.catalog import load_texts
from tests.fixtures.page_browser import open_browser, open_page

pytestmark = pytest.mark.slow

TEXTS = load_texts("en")
WORDS = TEXTS.table("page")
OWNER = frozenset((Scope.account("telegram", "42"),))
# The scope of a browser that was logged in from a shell.
LOCAL = frozenset((LOCAL_SCOPE,))


async def test_each_tab_shows_the_answer_to_its_own_form_and_keeps_its_button(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I am allergic to peanuts")
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        asked = await page.browser.send(form, words="peanuts")
        noted = await page.browser.send(
            (await page.browser.open("/memory")).form("/do/remember"), text="I live in Lisbon"
        )
        assert "Lisbon" in noted.text
        assert all(form.action.startswith("/do/") for form in noted.forms)
        # A page that is opened by its own address shows no answer of another one.
        assert 'class="answer"' not in (await page.browser.open("/memory/forget")).body
        question = (await page.browser.open(asked.path)).form("/press/")
        await page.browser.send(question)
        assert 'class="answer"' not in (await page.browser.open(asked.path)).body


async def test_answers_that_repeat_what_was_erased_since_are_no_longer_shown(home: Path) -> None:
    async with open_page(home) as page:
        form = (await page.browser.open("/memory")).form("/do/remember")
        noted = await page.browser.send(form, text="I am allergic to peanuts")
        assert "peanuts" in noted.text
        draft = await page.browser.send(
            (await page.browser.open("/reminders")).form("/do/add-reminder"), line="peanuts"
        )
        assert 'value="peanuts"' in draft.body
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        asked = await page.browser.send(form, words="allergic")
        erased = await page.browser.send(asked.form("/press/"))
        assert 'class="answer"' in erased.body
        for answer in (noted, draft, asked):
            again = await page.browser.open(answer.path)
            assert "peanuts" not in again.body
            assert "allergic" not in again.body


async def test_open_form_survives_another_login_of_the_same_browser(home: Path) -> None:
    async with open_page(home) as page:
        form = (await page.browser.open("/memory")).form("/do/remember")
        await page.browser.log_in()
        assert "Lisbon" in (await page.browser.send(form, text="I live in Lisbon")).text


async def test_two_gateways_on_one_machine_keep_their_logins_apart(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with open_page(home) as page, open_page(tmp_path / "other") as other:
        await page.browser.log_in(other.server.create_owner_link())
        assert (await page.browser.open("/memory")).status == 200
        assert (await page.browser.open(f"{other.server.address}/memory")).status == 200


async def test_text_of_a_form_is_shown_again_when_its_login_has_ended(home: Path) -> None:
    async with open_page(home) as page, open_browser(page.server) as other:
        form = (await page.browser.open("/memory")).form("/do/remember")
        await other.log_in()
        logins = await other.open("/logins")
        await other.send(logins.form("/do/end-other-logins"))
        answer = await page.browser.send(form, text="I live in <Lisbon>")
        assert answer.status == 401
        assert "I live in &lt;Lisbon&gt;</textarea>" in answer.body


@pytest.mark.parametrize("path", ["/memory", "/memory/facts", "/memory/facts/1"])
async def test_unexpected_failure_is_told_on_a_page_in_the_persons_language(
    home: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("a fault of the program")

    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("/language de")
        form = (await page.browser.open("/memory")).form("/do/fact-correct")
        monkeypatch.setattr("gateway.web.memory.page.list_first_facts", fail)
        monkeypatch.setattr("gateway.web.memory.facts.list_latest_facts", fail)
        monkeypatch.setattr(type(page.harness.services.facts), "find", fail)
        shown = await page.browser.open(path)
        assert load_texts("de").table("page")["UNEXPECTED"] in shown.text
        assert "a fault" not in shown.body
        failed = await page.browser.send(form, text="I live in Porto")
        assert failed.status == 500
        assert "I live in Porto</textarea>" in failed.body


async def test_refusal_of_a_field_names_it_and_its_limit(home: Path) -> None:
    async with open_page(home) as page:
        memory = await page.browser.open("/memory")
        long = await page.browser.send(memory.form("/do/note-add"), text="x" * 30_000)
        assert WORDS["FIELD_LONG"].format(field=WORDS["FIELD_TEXT"], limit="20,000") in long.text
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        empty = await page.browser.send(form, words=" ")
        assert WORDS["FIELD_EMPTY"].format(field=WORDS["FIELD_WORDS"]) in empty.text


async def test_text_that_was_changed_elsewhere_is_replaced_only_if_it_is_saved_again(
    home: Path,
) -> None:
    async with open_page(home) as page:
        first = (await page.browser.open("/memory")).form("/do/instructions-set")
        second = (await page.browser.open("/memory")).form("/do/instructions-set")
        await page.browser.send(second, text="Answer in rhymes.")
        refused = await page.browser.send(first, text="Be brief.")
        assert WORDS["CHANGED_TEXT"] in refused.text
        assert "<blockquote>Answer in rhymes.</blockquote>" in refused.body
        assert ">Be brief.</textarea>" in refused.body
        entries = page.harness.services.notebook.entries
        assert await entries(LOCAL, "instructions") == ["Answer in rhymes."]
        await page.browser.send(refused.form("/do/instructions-set"), text="Be brief.")
        assert await entries(LOCAL, "instructions") == ["Be brief."]


async def test_corrected_fact_is_not_replaced_by_an_older_page(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I drive a red Fiat")
        stale = (await page.browser.open("/memory")).form("/do/fact-correct")
        await page.harness.say("/memory correct f1 I drive a green Volvo")
        refused = await page.browser.send(stale, text="I drive a blue Fiat")
        assert WORDS["CHANGED_TEXT"] in refused.text
        (fact,) = await page.harness.services.facts.list_page(OWNER, 5)
        assert fact.content == "I drive a green Volvo"


async def test_text_for_a_note_that_is_gone_is_shown_below_the_page(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add The plumber comes on Fridays")
        stale = (await page.browser.open("/memory")).form("/do/note-replace")
        await page.harness.say("/memory remove plumber")
        refused = await page.browser.send(stale, text="The plumber comes on Mondays")
        assert TEXTS.table("page_memory")["NOTE_GONE"] in refused.text
        assert WORDS["TYPED_HINT"] in refused.text
        assert "The plumber comes on Mondays</textarea>" in refused.body
