"""The page "Memory": what a person says about notes and skills, and what is undone."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from core.types import LOCAL_SCOPE, Scope
from gateway.texts.catalog import load_texts
from tests.fixtures.page_browser import OpenPage, open_page
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.web.test_pages import SKILL, import_line

pytestmark = pytest.mark.slow

MEMORY = load_texts("en").table("page_memory")
DONE = load_texts("en").table("NOTE_DONE")
WORDS = load_texts("en").table("page")
OWNER_SCOPES = frozenset({Scope.account("telegram", "42"), LOCAL_SCOPE})
NOTE = "The gate code is 1234."


async def read_prompt(page: OpenPage, model: ScriptedModel) -> str:
    """Begin a new conversation, and return its first request as text."""
    await page.harness.say("/new")
    model.script = [says("Hello.")]
    await page.harness.say("Hi")
    return json.dumps(model.requests[-1].system, default=str, ensure_ascii=False)


async def test_note_called_wrong_leaves_new_prompts_until_it_is_called_right(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        await page.harness.say(f"/memory add {NOTE}")
        assert NOTE in await read_prompt(page, model)
        memory = await page.browser.open("/memory")
        judged = await page.browser.send(memory.form("/do/note-wrong"))
        assert DONE["wrong"] in judged.text
        assert NOTE in judged.text
        # The answer offers to remove the note, and the form next to it to correct it.
        assert judged.form("/press/", load_texts("en").BUTTON_REMOVE)
        assert judged.form("/do/note-replace")
        model.script = [says("I see.")]
        await page.harness.say("What is the code?")
        told = json.dumps(model.requests[-1].messages, default=str, ensure_ascii=False)
        assert f"The person says that this note is wrong: “{NOTE}”" in told
        assert NOTE not in await read_prompt(page, model)
        again = await page.browser.send(judged.form("/do/note-right"))
        assert DONE["right"] in again.text
        assert NOTE in await read_prompt(page, model)


async def test_verdict_on_a_note_ends_with_its_correction_or_its_undo(home: Path) -> None:
    async with open_page(home) as page:
        notebook = page.harness.services.notebook
        await page.harness.say(f"/memory add {NOTE}")
        wrong = await page.browser.send((await page.browser.open("/memory")).form("/do/note-wrong"))
        assert await notebook.load_verdicts(OWNER_SCOPES) == {("memory", NOTE): "wrong"}
        history = await page.browser.open("/memory/history")
        assert DONE["wrong"] in history.text
        await page.browser.send(history.form("/do/change-undo"))
        assert await notebook.load_verdicts(OWNER_SCOPES) == {}
        assert await notebook.entries(OWNER_SCOPES, "memory") == [NOTE]
        wrong = await page.browser.send(wrong.form("/do/note-wrong"))
        await page.browser.send(wrong.form("/do/note-replace"), text="The gate code is 4471.")
        assert await notebook.load_verdicts(OWNER_SCOPES) == {}


async def test_skill_is_judged_corrected_and_undone_where_its_history_is(home: Path) -> None:
    skill = {"action": "create", "name": "tidy-inbox", "content": SKILL}
    model = ScriptedModel(calls(("skill_manage", skill)), says("Done"))
    async with open_page(home, model) as page:
        await page.harness.say("Make a skill that tidies my inbox")
        path = "/memory/skills/tidy-inbox"
        opened = await page.browser.open(path)
        assert "Make a skill that tidies my inbox" in opened.text
        assert f'tabindex="0">{SKILL.strip()}' in opened.body
        assert "/do/skill-disable" not in opened.body
        wrong = await page.browser.send(opened.form("/do/skill-wrong"))
        assert DONE["wrong"] in wrong.text
        skills = page.harness.services.skills
        assert (await skills.find("tidy-inbox", OWNER_SCOPES)).is_disabled
        assert "tidy-inbox" not in await skills.render_index(OWNER_SCOPES)
        pinned = await page.browser.send(wrong.form("/do/skill-pin"))
        assert MEMORY["PINNED"] in pinned.text
        assert (await skills.find("tidy-inbox", OWNER_SCOPES)).is_pinned
        assert (await page.browser.send(pinned.form("/do/skill-unpin"))).form("/do/skill-pin")
        right = await page.browser.send(wrong.form("/do/skill-right"))
        assert not (await skills.find("tidy-inbox", OWNER_SCOPES)).is_disabled
        text = SKILL.replace("Sort what is unread", "Sort what is older")
        edited = await page.browser.send(right.form("/do/skill-edit"), text=text)
        assert "<ins>older</ins>" in edited.body
        assert "/memory undo" not in edited.text
        assert edited.form("/press/", load_texts("en").BUTTON_UNDO)
        assert await skills.find_verdict(await skills.find("tidy-inbox", OWNER_SCOPES)) == ""
        await page.browser.send(edited.form("/do/change-undo"))
        restored = await skills.find("tidy-inbox", OWNER_SCOPES)
        assert await skills.read_text(restored) == SKILL


async def test_undo_of_a_fact_that_was_only_learned_is_asked_about(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        asked = await page.browser.send((await page.browser.open("/today")).form("/do/fact-undo"))
        assert MEMORY["UNLEARN_ASK"].format(fact="I live in Lisbon") in asked.text
        facts = page.harness.services.facts
        assert len(await facts.list_page(OWNER_SCOPES, 5)) == 1
        await page.browser.send(asked.form("/press/"))
        assert await facts.list_page(OWNER_SCOPES, 5) == []


@pytest.mark.parametrize("path", ["/memory/history", "/memory/facts/1", "/memory/facts"])
async def test_undo_of_a_fact_that_has_changed_since_is_refused(home: Path, path: str) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I drive a red Fiat")
        await page.harness.say("/memory correct f1 I drive a blue Fiat")
        stale = (await page.browser.open(path)).form("/do/fact-undo")
        await page.harness.say("/memory correct f1 I drive a green Volvo")
        assert MEMORY["CHANGED_SINCE"] in (await page.browser.send(stale)).text
        (fact,) = await page.harness.services.facts.list_page(OWNER_SCOPES, 5)
        assert fact.content == "I drive a green Volvo"


@pytest.mark.parametrize(
    ("path", "action", "field", "text"),
    [
        ("/memory", "/do/instructions-set", "text", "> A pasted line.\n> And more."),
        ("/memory", "/do/fact-correct", "text", "My words, too long. " * 1_100),
        ("/memory", "/do/note-replace", "text", "My words, too long. " * 1_100),
        ("/reminders", "/do/add-reminder", "line", "gibberish without a time"),
    ],
)
async def test_text_of_a_refused_form_stays_in_its_field_until_another_page_is_opened(
    home: Path, path: str, action: str, field: str, text: str
) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say(f"/memory add {NOTE}")
        form = (await page.browser.open(path)).form(action)
        refused = await page.browser.send(form, **{field: text})
        assert "My words" not in text or '<details class="change" open>' in refused.body
        for answer in (refused, await page.browser.open(refused.path)):
            assert text.split(".")[0].lstrip("> ") in answer.body
        assert text.split(".")[0].lstrip("> ") not in (await page.browser.open(path)).body


async def test_preview_of_forgetting_and_its_words_survive_a_reload(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I am allergic to peanuts")
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        asked = await page.browser.send(form, words="peanuts")
        reloaded = await page.browser.open(asked.path)
        assert reloaded.form("/do/forget-words").fields["words"] == "peanuts"
        erased = await page.browser.send(reloaded.form("/press/"))
        assert "allergic" not in erased.body
        assert await page.harness.services.facts.list_page(OWNER_SCOPES, 5) == []
        assert (
            not (await page.browser.open("/memory/forget")).form("/do/forget-words").fields["words"]
        )


async def test_everything_that_would_be_erased_is_listed_page_by_page_until_it_is_erased(
    home: Path,
) -> None:
    async with open_page(home) as page:
        services = page.harness.services
        records = [
            import_line("Duarte", f"Entry {number}: the landlord wrote about the lease")
            for number in range(60)
        ]
        await services.archive.import_records(records, lambda _: None)
        await services.recall.tend()
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        asked = await page.browser.send(form, words="landlord lease")
        assert MEMORY["FORGET_ALL_WORDS"].format(words="“landlord lease”") in asked.text
        link = re.search(r'href="(/memory/forget\?whole=1&amp;answer=\w+)#list"', asked.body)
        assert link is not None
        first = await page.browser.open(html.unescape(link[1]))
        more = re.search(r'rel="next" href="([^"#]+)', first.body)
        assert more is not None
        second = await page.browser.open(html.unescape(more[1]))
        pages = [answer.body.partition('id="list"')[2] for answer in (first, second)]
        listed = [set(re.findall(r"Entry (\d+):", content)) for content in pages]
        assert len(listed[0]) == 50
        assert listed[0] | listed[1] == {str(number) for number in range(60)}
        assert not listed[0] & listed[1]
        count = sum(content.count("•") for content in pages)
        assert MEMORY["FORGET_WHOLE_LIST"].format(count=count) in second.text
        # The address has no token that would confirm the erasure.
        rows = await services.database.fetch_all("SELECT id FROM erasures", {})
        assert not any(row["id"] in second.path for row in rows)
        erased = await page.browser.send(second.form("/press/", WORDS["ERASE"]))
        assert "Forgotten: 60 messages" in erased.text
        assert 'id="list"' not in (await page.browser.open(second.path)).body


async def test_question_before_forgetting_says_that_one_of_several_words_is_enough(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("The zeppelin lands at nine")
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        asked = await page.browser.send(form, words="zeppelin OR airship")
        assert MEMORY["FORGET_ANY_WORD"].format(words="“zeppelin OR airship”") in asked.text


async def test_forgetting_a_fact_on_its_page_ends_on_the_page_above_with_the_answer(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        asked = await page.browser.send(
            (await page.browser.open("/memory/facts/1")).form("/do/fact-forget")
        )
        erased = await page.browser.send(asked.form("/press/"))
        assert erased.status == 200
        assert 'class="answer"' in erased.body
        assert MEMORY["LEAD"] in erased.text
        assert (await page.browser.open("/memory/facts/1")).status == 404


async def test_forgotten_note_is_erased_with_its_history_and_what_was_said_about_it(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("My note for you: the gate code is 1234.")
        await page.harness.say("/memory add The plumber comes on Fridays")
        await page.harness.say(f"/memory add {NOTE}")
        notes = (await page.browser.open("/memory")).forms
        forgets = [form for form in notes if form.action == "/do/note-forget"]
        (form,) = [form for form in forgets if form.fields["note"] == NOTE]
        asked = await page.browser.send(form)
        assert "My note for you" in asked.text
        entries = page.harness.services.notebook.entries
        assert NOTE in await entries(OWNER_SCOPES, "memory")
        await page.browser.send(asked.form("/press/", WORDS["ERASE"]))
        assert await entries(OWNER_SCOPES, "memory") == ["The plumber comes on Fridays"]
        for path in ("/memory", "/memory/history", "/recall?q=gate"):
            assert "1234" not in (await page.browser.open(path)).body, path


async def test_note_that_was_changed_since_is_not_forgotten(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say(f"/memory add {NOTE}")
        stale = (await page.browser.open("/memory")).form("/do/note-forget")
        await page.harness.say("/memory replace 1234 => 4471")
        assert MEMORY["NOTE_GONE"] in (await page.browser.send(stale)).text


async def test_skill_is_forgotten_with_its_history_or_only_taken_out(home: Path) -> None:
    skill = {"action": "create", "name": "tidy-inbox", "content": SKILL}
    model = ScriptedModel(calls(("skill_manage", skill)), says("Done"))
    async with open_page(home, model) as page:
        await page.harness.say("Make a skill that tidies my inbox")
        path = "/memory/skills/tidy-inbox"
        asked = await page.browser.send((await page.browser.open(path)).form("/do/skill-forget"))
        assert (await page.browser.open(path)).status == 200
        taken = await page.browser.send(asked.form("/press/", MEMORY["TAKE_OUT"]))
        assert (await page.browser.open(path)).status == 404
        await page.browser.send(taken.form("/press/", load_texts("en").BUTTON_UNDO))
        asked = await page.browser.send((await page.browser.open(path)).form("/do/skill-forget"))
        await page.browser.send(asked.form("/press/", WORDS["ERASE"]))
        assert (await page.browser.open(path)).status == 404
        assert "Sort what is unread" not in (await page.browser.open("/memory/history")).text


async def test_instructions_lead_to_their_history_and_are_undone(home: Path) -> None:
    async with open_page(home) as page:
        memory = await page.browser.open("/memory")
        await page.browser.send(memory.form("/do/instructions-set"), text="Answer briefly")
        memory = await page.browser.open("/memory")
        await page.browser.send(memory.form("/do/instructions-set"), text="Answer at length")
        memory = await page.browser.open("/memory")
        instructions = memory.body.partition('id="instructions"')[2]
        link = instructions.partition('href="/memory/notes/')[2].partition('"')[0]
        history = await page.browser.open(f"/memory/notes/{link}")
        assert "Answer at length" in history.text
        assert MEMORY["KIND_INSTRUCTIONS"] in history.text
        assert MEMORY["KIND_NOTE"] not in history.text
        assert not [form for form in history.forms if form.action == "/do/note-forget"]
        assert "<del>briefly</del>" in history.body
        await page.browser.send(history.form("/do/change-undo"))
        memory = await page.browser.open("/memory")
        assert "Answer at length" not in memory.text
        assert "Answer briefly" in memory.text


async def test_instructions_are_judged_and_pinned_on_the_page(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        memory = await page.browser.open("/memory")
        chats = [form for form in memory.forms if form.action == "/do/instructions-set"]
        assert [form.fields["scope"] for form in chats] == [LOCAL_SCOPE.key, "account:telegram:42"]
        assert MEMORY["INSTRUCTIONS_LABEL"].format(place="Telegram") in memory.text
        memory = await page.browser.send(chats[1], text="Answer in verse.")
        assert "Answer in verse." in await read_prompt(page, model)
        switch_off = memory.form("/do/instructions-wrong", f"✗ {MEMORY['WRONG_OFF']}")
        wrong = await page.browser.send(switch_off)
        assert DONE["wrong"] in wrong.text.partition(MEMORY["INSTRUCTIONS"])[2]
        assert "Answer in verse." not in await read_prompt(page, model)
        assert MEMORY["SWITCHED_OFF"] in wrong.text
        switch_on = wrong.form("/do/instructions-right", MEMORY["SWITCH_ON"])
        right = await page.browser.send(switch_on)
        assert DONE["right"] in right.text
        assert "Answer in verse." in await read_prompt(page, model)
        pinned = await page.browser.send(right.form("/do/instructions-pin"))
        assert MEMORY["PINNED"] in pinned.text.partition(MEMORY["INSTRUCTIONS"])[2]
        assert (await page.browser.send(pinned.form("/do/instructions-unpin"))).form(
            "/do/instructions-pin"
        )
