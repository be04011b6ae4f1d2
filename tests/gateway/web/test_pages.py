"""What the pages show, and what their forms do, for a browser without scripts."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.store.archive import TransferConversation, TransferRecord
from core.store.facts.rows import Fact
from core.types import LOCAL_SCOPE, Account, Address, Quote, Scope
from gateway.texts.catalog import list_languages, load_texts
from gateway.web import chat
from gateway.web.memory import facts as facts_page
from gateway.web.memory import history as history_page
from gateway.web.pages import PAGES
from gateway.web.rendering import shorten_attachments
from tests.fixtures.page_browser import open_page
from tests.fixtures.page_year import list_records
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.fixtures.sweeps import list_cases
from tests.gateway.web.test_hostile import check_document

pytestmark = pytest.mark.slow

WORDS = load_texts("en").table("page_recall")
OWNER_SCOPES = frozenset({Scope.account("telegram", "42"), LOCAL_SCOPE})
PATHS = (
    "/",
    "/people",
    "/settings",
    "/settings/model",
    "/recall",
    "/reminders",
    "/use",
    "/conversations",
    "/chat",
    "/memory",
    "/memory/facts",
    "/memory/history",
    "/memory/forget",
    "/memory/skills",
    "/memory/prompt",
    "/logins",
)
SKILL = "---\nname: tidy-inbox\ndescription: Tidies the inbox\n---\nSort what is unread.\n"
SHARED = load_texts("en").table("page")
MEMORY = load_texts("en").table("page_memory")
CONVERSATIONS = load_texts("en").table("page_conversations")


async def test_search_shows_snippets_and_opens_the_conversation_at_the_message(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("The ferry to Barreiro leaves at nine")
        await page.harness.say("My bicycle is green")
        found = await page.browser.open("/recall?q=ferry")
        assert "<mark>ferry</mark> to Barreiro" in found.body
        assert "bicycle" not in found.text
        link = re.search(r'href="(/conversations/at/\d+)"', found.body)
        assert link is not None
        opened = await page.browser.open(link[1])
        assert 'class="message user anchor"' in opened.body
        assert "My bicycle is green" in opened.text
        assert SHARED["NOTHING"] in (await page.browser.open("/recall?q=zanzibar")).text
        assert WORDS["LATEST"] in (await page.browser.open("/recall")).text


async def test_memory_shows_notes_and_facts_with_their_source(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("/memory add The gate code is on the fridge")
        memory = await page.browser.open("/memory")
        assert "I live in Lisbon" in memory.text
        assert "The gate code is on the fridge" in memory.text
        fact = await page.browser.open("/memory/facts/1")
        assert MEMORY["NO_MESSAGE"] in fact.text
        assert "learned" in fact.text
        history = await page.browser.open("/memory/history")
        assert "added" in history.text


@pytest.mark.parametrize("path", ["/memory", "/memory/facts", "/memory/facts/1"])
async def test_fact_that_was_only_learned_has_an_undo_and_says_what_each_button_does(
    home: Path, path: str
) -> None:
    async with open_page(home) as page:
        await page.harness.say("I live in Lisbon")
        shown = await page.browser.open(path)
        for sentence in ("“Trust it less” deletes nothing", "“Undo the last change” takes back"):
            assert sentence in shown.text
        asked = await page.browser.send(shown.form("/do/fact-undo"))
        assert "It was only just learned" in asked.text
        await page.browser.send(asked.form("/press/", "Yes"))
        assert (await page.browser.open("/memory/facts/1")).status == 404


async def test_fact_that_was_corrected_since_is_unlearned_and_its_message_stays(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("I live in Lisbon")
        fact = await page.browser.open("/memory/facts/1")
        assert "/do/fact-unlearn" not in fact.body
        corrected = await page.browser.send(fact.form("/do/fact-correct"), text="I live in Porto")
        assert MEMORY["UNDO_LEARNED"] in corrected.text
        fields = corrected.form("/do/fact-undo").fields
        asked = await page.browser.post("/do/fact-unlearn", fields)
        assert MEMORY["UNLEARN_ALL_ASK"].format(fact="I live in Porto") in asked.text
        await page.browser.send(asked.form("/press/", "Yes"))
        assert (await page.browser.open("/memory/facts/1")).status == 404
        assert "I live in Lisbon" in (await page.browser.open("/conversations/1")).text


async def test_fact_is_corrected_pinned_undone_and_forgotten_by_forms(home: Path) -> None:
    async with open_page(home) as page:
        browser = page.browser
        memory = await browser.open("/memory")
        kept = await browser.send(memory.form("/do/remember"), text="I live in Lisbon")
        assert "I live in Lisbon" in kept.text
        fact = await browser.open("/memory/facts/1")
        content = fact.body.partition("</h1>")[2]
        buttons = content.partition('<div class="buttons">')[2].lstrip()
        assert buttons.startswith('<details class="change">')
        corrected = await browser.send(fact.form("/do/fact-correct"), text="I live in Porto")
        assert re.search(r"<del>Lisbon</del><ins>Porto</ins>", corrected.body)
        await browser.send(corrected.form("/do/fact-pin"))
        undone = await browser.send((await browser.open("/memory/facts/1")).form("/do/fact-unpin"))
        undone = await browser.send(undone.form("/do/fact-undo"))
        undone = await browser.send((await browser.open("/memory/facts/1")).form("/do/fact-undo"))
        question = await browser.send(undone.form("/do/fact-forget"))
        assert (await browser.open("/memory/facts/1")).status == 200
        gone = await browser.send(question.form("/press/", SHARED["ERASE"]))
        assert (await browser.open("/memory/facts/1")).status == 404
        assert gone.status == 200
        # The same button does nothing again.
        again = await browser.send(question.form("/press/", SHARED["ERASE"]))
        assert again.status == gone.status


async def test_fact_shows_the_messages_that_it_comes_from_and_who_said_them(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("I live in Lisbon")
        once = await page.browser.open("/memory/facts/1")
        source, _, changes = once.text.partition(MEMORY["FACT_HISTORY"])
        for part in (f"{MEMORY['SAID_BY']}You", "You I live in Lisbon", SHARED["OPEN_MESSAGE"]):
            assert part in source.partition(MEMORY["SOURCE"])[2]
        assert "learned · You" in changes
        assert f"{MEMORY['SOURCE']}:You I live in Lisbon" in changes
        assert "<ins>I live in Lisbon</ins>" in once.body
        await page.harness.say("/memory correct f1 I live in Porto")
        history = await page.browser.open("/memory/history")
        assert f"{MEMORY['SOURCE']}:You I live in Lisbon" in history.text
        fact = await page.browser.open("/memory/facts/1")
        assert "You corrected it" in fact.text
        source = fact.text.partition(MEMORY["SOURCE"])[2].partition(MEMORY["FACT_HISTORY"])[0]
        assert "You I live in Lisbon" in source
        # The history shows the correction, and the button that takes it back is at the top.
        assert fact.body.count("<ins>Porto</ins>") == 1
        undo_forms = [form for form in fact.forms if form.action == "/do/fact-undo"]
        undo_label = MEMORY["UNDO_TO"].format(text="I live in Lisbon")
        assert [form.label for form in undo_forms] == [undo_label]
        assert history.form("/do/fact-undo").label == undo_label
        # A correction that was typed as a command has no message, so the page says how it was made.
        corrected = source.partition(MEMORY["BY_COMMAND"])[0]
        assert load_texts("en").table("FACT_DONE")["correct"] in corrected
        assert SHARED["OPEN_MESSAGE"] in source
        for path in ("/memory", "/memory/facts", "/memory/facts/1", "/memory/history"):
            shown = (await page.browser.open(path)).text
            assert "Person 42" not in shown
            assert "telegram:42" not in shown


async def test_rating_a_fact_on_the_web_page_changes_its_trust(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        fact = await page.browser.open("/memory/facts/1")
        right = await page.browser.send(fact.form("/do/fact-right"))
        wrong = await page.browser.send(right.form("/do/fact-wrong"))
        trusts = [
            int(number) for number in re.findall(r"(\d+) % How sure", right.text + wrong.text)
        ]
        assert trusts[0] != trusts[-1]


async def test_note_is_added_changed_pinned_removed_and_brought_back(home: Path) -> None:
    async with open_page(home) as page:
        browser = page.browser
        note = 'The "gate" code => is on the fridge'
        added = await browser.send((await browser.open("/memory")).form("/do/note-add"), text=note)
        assert note in added.text
        changed = await browser.send(added.form("/do/note-replace"), text="The code is 7 f")
        assert "gate" not in (await browser.open("/memory")).text
        assert "The code is 7 f" in changed.text
        history = await browser.open("/memory/history")
        assert "<del>" in history.body
        pinned = await browser.send((await browser.open("/memory")).form("/do/note-pin"))
        assert "pinned" in pinned.text
        asked = await browser.send((await browser.open("/memory")).form("/do/note-forget"))
        removed = await browser.send(asked.form("/press/", MEMORY["TAKE_OUT"]))
        assert "The code is 7 f" in removed.text
        assert "The code is 7 f" not in (await browser.open("/memory")).text
        await browser.send((await browser.open("/memory/history")).form("/do/change-undo"))
        assert "The code is 7 f" in (await browser.open("/memory")).text


async def test_question_before_erasing_says_what_each_button_does_and_keeps_the_note(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add The gate code is on the fridge")
        asked = await page.browser.send(
            (await page.browser.open("/memory")).form("/do/note-forget")
        )
        box, _, rest = asked.body.partition("<h1")
        assert 'class="answer"' in box
        assert 'class="answer"' not in rest
        texts = load_texts("en")
        assert texts.CONFIRM_ERASURE.replace("**", "") not in asked.text
        assert SHARED["CONFIRM_ERASURE"] in asked.text
        for label in (SHARED["ERASE"], MEMORY["TAKE_OUT"]):
            assert asked.form("/press/", label)
        keep = re.search(rf'<a class="button" href="([^"]+)">{SHARED["KEEP"]}', asked.body)
        assert keep is not None
        kept = await page.browser.open(keep[1])
        assert 'class="answer"' not in kept.body
        assert "The gate code is on the fridge" in kept.text


async def test_page_of_a_note_undoes_its_last_change_with_one_button(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add The gate code is 1234")
        await page.harness.say("/memory replace 1234 => 4471")
        memory = await page.browser.open("/memory")
        link = re.search(r'href="(/memory/notes/\d+)"', memory.body)
        assert link is not None
        note = await page.browser.open(link[1])
        assert note.text.count(MEMORY["UNDO_LAST"]) == 1
        source = note.text.partition(MEMORY["SOURCE"])[2].partition(MEMORY["FACT_HISTORY"])[0]
        assert "/memory replace 1234 => 4471" in source
        assert load_texts("en").BUTTON_UNDO not in [form.label for form in note.forms]
        fields = note.form("/do/note-forget").fields
        await page.browser.post("/do/change-undo", fields)
        assert "The gate code is 1234" in (await page.browser.open("/memory")).text


async def test_suspicious_note_is_asked_about_as_in_a_chat(home: Path) -> None:
    async with open_page(home) as page:
        form = (await page.browser.open("/memory")).form("/do/note-add")
        asked = await page.browser.send(form, text="My key is sk-ant-api03-abcdefghijklmnop")
        assert await page.harness.services.notebook.entries(OWNER_SCOPES, "memory") == []
        kept = await page.browser.send(asked.form("/press/", "Keep it anyway"))
        assert "My key is" in kept.text
        assert len(await page.harness.services.notebook.entries(OWNER_SCOPES, "memory")) == 1


async def test_instructions_are_set_and_forgotten(home: Path) -> None:
    async with open_page(home) as page:
        form = (await page.browser.open("/memory")).form("/do/instructions-set")
        await page.browser.send(form, text="Answer in one sentence")
        memory = await page.browser.open("/memory")
        assert "Answer in one sentence</textarea>" in memory.body
        asked = await page.browser.send(memory.form("/do/instructions-forget"))
        assert "Answer in one sentence</textarea>" in asked.body
        await page.browser.send(asked.form("/press/", SHARED["ERASE"]))
        assert "one sentence" not in (await page.browser.open("/memory")).text
        assert "one sentence" not in (await page.browser.open("/memory/history")).text


async def test_topic_is_forgotten_after_a_preview(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("The zeppelin lands at nine")
        form = (await page.browser.open("/memory/forget")).form("/do/forget-words")
        preview = await page.browser.send(form, words="zeppelin")
        assert "The zeppelin lands at nine" in preview.text
        assert "zeppelin" in (await page.browser.open("/recall?q=zeppelin")).text
        receipt = await page.browser.send(preview.form("/press/", SHARED["ERASE"]))
        assert "Forgotten: " in receipt.text
        found = await page.browser.open("/recall?q=zeppelin")
        assert SHARED["NOTHING"] in found.text


async def test_imported_private_chat_names_who_wrote_each_message(home: Path) -> None:
    async with open_page(home) as page:
        services = page.harness.services
        records = [
            import_line("Duarte", "The rent of the boathouse rises in May"),
            import_line("Deleted account", "The boathouse is sold"),
            import_line(None, "I would like to see the boathouse"),
            import_line("Lia", "I paid for the boathouse", own_names=frozenset({"lia"})),
        ]
        await services.archive.import_records(records, lambda _: None)
        await services.recall.tend()
        await page.harness.say("My boathouse is green")
        german = {"Accept-Language": "de"}
        transcript = await page.browser.open("/conversations/1", **german)
        names = re.findall(r'<p class="meta"><bdi>(.*?)</bdi>', transcript.body)
        assert sorted(names) == ["Du", "Du", "Duarte", "Gelöschtes Konto"]
        chat_page = await page.browser.open("/chat?session=1", **german)
        assert "<bdi>Duarte</bdi> · " in chat_page.body
        complete = await page.browser.open("/messages/1")
        assert "<bdi>Duarte</bdi>" in complete.body
        found = await page.browser.open("/recall?q=rent of the boathouse", **german)
        assert "<b><bdi>Duarte</bdi></b> The <mark>rent</mark>" in found.body
        assert "<b><bdi>Du</bdi></b> My <mark>boathouse</mark>" in found.body
        chip = re.search(r'class="chip" href="(/recall\?q=from[^"]*Duarte[^"]*)"', found.body)
        assert chip is not None
        assert "My boathouse" not in (await page.browser.open(chip[1])).text
        own = (await page.browser.open("/recall?q=from:me boathouse")).text
        assert "My boathouse" in own
        assert "The rent" not in own


async def test_lines_of_platforms_are_in_the_language_of_the_reader_on_every_page(
    home: Path,
) -> None:
    async with open_page(home) as page:
        line = import_line("Duarte", "Location: {Pier 7}")
        await page.harness.services.archive.import_records([line], lambda _: None)
        await page.harness.services.recall.tend()
        forward = Quote(text="", name="Ana", kind="forward")
        await page.harness.say("See the harbour", quote=forward)
        paths = (
            "/messages/1",
            "/conversations/1",
            "/conversations/1?q=pier",
            "/recall",
            "/recall?q=pier",
            "/recall?q=around:1",
        )
        for path in paths:
            shown = (await page.browser.open(path, **{"Accept-Language": "de"})).text
            assert "Standort: Pier 7" in shown, path
            assert "Location" not in shown, path
        harbour = await page.browser.open("/recall?q=harbour")
        (number,) = re.findall(r"/conversations/at/(\d+)", harbour.body)
        around = await page.browser.open(f"/recall?q=around:{number}", **{"Accept-Language": "de"})
        assert "weitergeleitet von Ana" in around.text


def import_line(
    sender: str | None, text: str, own_names: frozenset[str] = frozenset()
) -> TransferRecord:
    """Return a message of an exported private chat.."""
    conversation = TransferConversation(
        name="duarte",
        address=Address(platform="telegram", chat_id="77"),
        scope=Scope.account("telegram", "42"),
        title="Duarte",
        own_names=own_names,
    )
    at = datetime(2026, 4, 1, 9, len(text), tzinfo=UTC)
    return TransferRecord(conversation, "user", text, at, sender)


async def test_transcript_is_paged_searched_renamed_saved_and_forgotten(home: Path) -> None:
    async with open_page(home) as page:
        browser = page.browser
        for number in range(30):
            await page.harness.say(f"Line {number} about the harbour")
        listed = await browser.open("/conversations")
        link = re.search(r'href="(/conversations/(\d+))"', listed.body)
        assert link is not None
        last = await browser.open(link[1])
        assert "Line 29 about" in last.text
        assert "Line 3 about" not in last.text
        earlier = re.search(r'rel="prev" href="([^"]+)"', last.body)
        assert earlier is not None
        first = await browser.open(earlier[1])
        assert "Line 3 about" in first.text
        later = re.search(r'rel="next" href="([^"]+)"', first.body)
        assert later is not None
        assert "Line 29 about" in (await browser.open(later[1])).text
        hits = await browser.open(f"{link[1]}?q=17")
        assert "Line <mark>17</mark>" in hits.body
        renamed = await browser.send(last.form("/do/rename"), title="Harbour lines")
        assert "Harbour lines" in renamed.text
        assert "Harbour lines" in (await browser.open("/conversations?q=harbour")).text
        saved = await browser.open(f"{link[1]}/export")
        assert saved.headers["Content-Disposition"].startswith("attachment")
        assert len(saved.body.splitlines()) == 60
        preview = await browser.send(renamed.form("/do/forget-conversation"))
        assert "Line 29 about the harbour" in (await browser.open(link[1])).text
        await browser.send(preview.form("/press/", SHARED["ERASE"]))
        assert SHARED["NOTHING"] in (await browser.open("/recall?q=harbour")).text


async def test_branch_of_a_conversation_is_below_it_in_the_tree_and_linked_from_it(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.say("The ferry leaves at nine")
        await page.harness.say("/title Ferries")
        await page.harness.say("/branch Trains instead")
        await page.harness.say("And the train?")
        listed = await page.browser.open("/conversations")
        first, _, branches = listed.body.partition('class="branches"')
        assert "Ferries" in first
        assert "Trains instead" in branches
        origin = re.search(r'href="(/conversations/\d+)"><bdi>Ferries', first)
        assert origin is not None
        opened = await page.browser.open(origin[1])
        related = re.search(r'href="(/conversations/\d+)"><bdi>Trains instead', opened.body)
        assert related is not None
        assert "And the train?" in (await page.browser.open(related[1])).text


async def test_compressed_conversation_is_one_in_the_tree_and_lists_its_parts(home: Path) -> None:
    model = ScriptedModel()
    async with open_page(home, model) as page:
        for number in range(6):
            await page.harness.say(f"Line {number} about the harbour")
        model.script = [says("The harbour has lines.")]
        await page.harness.say("/compress")
        await page.harness.say("And the lighthouse?")
        listed = await page.browser.open("/conversations")
        links = re.findall(r'class="title" href="(/conversations/\d+)"', listed.body)
        assert len(links) == 1
        opened = await page.browser.open(links[0])
        assert CONVERSATIONS["RELATED"] in opened.text
        assert "And the lighthouse?" in opened.text


async def test_tool_calls_are_folded_in_the_transcript(home: Path) -> None:
    call = calls(("session_search", {"query": "ferry"}))
    async with open_page(home, ScriptedModel(call, says("Nothing found"))) as page:
        await page.harness.say("Where is the ferry?")
        listed = await page.browser.open("/conversations")
        link = re.search(r'href="(/conversations/\d+)"', listed.body)
        assert link is not None
        shown = await page.browser.open(link[1])
        assert re.search(r"<details class=\"tool\">\s*<summary>Tool session_search", shown.body)
        assert "Result of session_search" in shown.text
        prompt = await page.browser.open("/memory/prompt")
        assert re.search(r"[\d,]+ tokens", prompt.text)


@pytest.mark.parametrize("path", ["/memory/facts/0", "/memory/facts/x", "/memory/facts/1e9", "/x"])
async def test_web_page_of_a_missing_item_has_a_sentence_and_status_404(
    home: Path, path: str
) -> None:
    async with open_page(home) as page:
        answer = await page.browser.open(path)
        assert answer.status == 404
        assert SHARED["NOT_FOUND"] in answer.text


@pytest.mark.parametrize("language", list_cases(list_languages(), "de", "ja"))
async def test_web_pages_are_valid_and_in_the_language_of_the_browser(
    home: Path, language: str
) -> None:
    words = load_texts(language).table("page")
    async with open_page(home) as page:
        for path in PATHS:
            answer = await page.browser.open(path, **{"Accept-Language": f"{language},en;q=0.5"})
            assert f'<html lang="{language}">' in answer.body
            assert words["NAV_MEMORY"] in answer.text
            check_document(answer, path)


async def test_web_chat_without_a_running_gateway_names_the_command_that_starts_it(
    home: Path,
) -> None:
    async with open_page(home) as page:
        empty = await page.browser.open("/chat")
        assert "no message is answered" in empty.text
        form = empty.form("/chat/send")
        answer = await page.browser.send(form, text="hello")
        assert "mneme run" in answer.text


async def test_conversations_of_a_month_come_first_when_it_is_chosen(home: Path) -> None:
    async with open_page(home) as page:
        now = datetime(2026, 7, 1, tzinfo=UTC)
        records = list_records(24, 2, now)
        await page.harness.services.archive.import_records(records, lambda _: None)
        form = (await page.browser.open("/conversations")).form("/conversations", "Go")
        # The list begins with the latest conversation, whatever month it is in.
        assert form.fields["month"] == ""
        shown = await page.browser.open("/conversations?month=2026-04")
        days = re.findall(r'<time datetime="(\d{4}-\d{2})', shown.body)
        assert days[0] == "2026-04"
        assert max(days) == "2026-04"
        assert 'value="2026-04"' in shown.body
        for wrong in ("2026-13", "0001-01", "x"):
            assert (await page.browser.open(f"/conversations?month={wrong}")).status == 200


async def test_filter_chips_on_the_web_page_add_and_remove_search_filters(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("The ferry leaves at nine")
        found = await page.browser.open("/recall?q=ferry")
        added = re.search(r'class="chip" href="([^"]+)"><bdi>From me', found.body)
        assert added is not None
        narrow = await page.browser.open(added[1])
        assert 'value="from:me ferry"' in narrow.body
        assert "<mark>ferry</mark>" in narrow.body
        removed = re.search(r'class="chip on" href="([^"]+)"[^>]*><bdi>From me', narrow.body)
        assert removed is not None
        assert 'value="ferry"' in (await page.browser.open(removed[1])).body


async def test_kind_of_files_is_changed_by_one_chip_after_another(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("The ferry leaves at nine")
        voices = await page.browser.open("/recall?q=has:voice ferry since:2020-01-01")
        photos = re.search(r'class="chip" href="([^"]+)"><bdi>Photos', voices.body)
        assert photos is not None
        shown = await page.browser.open(photos[1])
        assert 'value="since:2020-01-01 has:photo ferry"' in shown.body
        assert re.search(r'class="chip on" href="[^"]+"[^>]*><bdi>since:2020-01-01', shown.body)


async def test_search_names_the_speakers_of_a_direct_chat_you_and_assistant(home: Path) -> None:
    async with open_page(home, ScriptedModel(says("The ferry is late."))) as page:
        await page.harness.say("When does the ferry leave?")
        found = await page.browser.open("/recall?q=ferry")
        assert f"{SHARED['YOU']} When does the ferry leave?" in found.text
        assert f"{SHARED['ASSISTANT']} The ferry is late." in found.text
        assert "Person 42" not in found.text
        opened = await page.browser.open("/conversations/1")
        assert "Person 42" not in opened.text
        words = load_texts("en").table("page_conversations")
        assert f"2 messages ({words['WITHOUT_COMMANDS']})" in opened.text


async def test_chat_says_that_earlier_messages_come_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "MESSAGES_SHOWN", 2)
    words = load_texts("en").table("page_chat")
    async with open_page(home) as page:
        await page.harness.say("The ferry leaves at nine")
        assert words["PART_ONLY"] not in (await page.browser.open("/chat?session=1")).text
        await page.harness.say("The bus leaves at ten")
        part = await page.browser.open("/chat?session=1")
        assert words["PART_ONLY"] in part.text
        shown = part.text.partition(words["PART_ONLY"])[2]
        assert "The ferry" not in shown
        assert "The bus" in shown


async def test_resumed_conversation_offers_a_new_one_if_the_terminal_has_none(home: Path) -> None:
    words = load_texts("en").table("page_chat")
    async with open_page(home) as page:
        await page.harness.say("The ferry leaves at nine")
        resumed = await page.browser.open("/chat?session=1")
        assert words["NEW_INSTEAD"] in resumed.text
        assert words["NOT_THIS"] not in resumed.text
        # Mneme isn't running.
        assert resumed.form("/do/start-mneme")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Mine [attached document: lease.pdf (2,633 bytes)]", "Mine 📄 lease.pdf"),
        ("[attached photo: a (1).jpg (image/jpeg, 20 bytes)] x", "📄 a (1).jpg x"),
        ("This is the lease of my flat [attached document: …", "This is the lease of my flat …"),
        ("[attached voice: note.ogg]", "📄 note.ogg"),
        ("We are [attached to] it", "We are [attached to] it"),
    ],
)
def test_attached_files_are_named_without_size_and_kind(text: str, shown: str) -> None:
    assert shorten_attachments(text) == shown


async def test_search_of_an_empty_home_says_that_there_is_nothing_yet(home: Path) -> None:
    async with open_page(home) as page:
        assert SHARED["EMPTY"] in (await page.browser.open("/recall")).text
        assert SHARED["NOTHING"] in (await page.browser.open("/recall?q=ferry")).text


async def test_recall_page_explains_the_query_while_it_is_typed(home: Path) -> None:
    async with open_page(home) as page:
        reading = await page.browser.open("/recall/reading?q=ferry since:2026-05-01 fr")
        assert "Searches for: ferry fr" in reading.text
        assert "since 1 May 2026" in reading.text
        assert "from:ana" in reading.text
        wrong = await page.browser.open("/recall/reading?q=ferry since:banana")
        assert "banana" in wrong.text
        assert "problem" in wrong.body


async def test_each_entry_of_the_navigation_leads_to_its_own_page(home: Path) -> None:
    paths = [view.path for entry in PAGES for view in entry.views]
    assert len(set(paths)) == len(paths)
    async with open_page(home) as page:
        for entry in PAGES:
            path = entry.views[0].path
            shown = await page.browser.open(path)
            assert f'<a href="{path}" aria-current="page">' in shown.body, path


async def test_history_shows_changes_of_facts_and_notes_each_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_page, "CHANGES_PER_PAGE", 3)
    async with open_page(home) as page:
        for number in range(4):
            await page.harness.say(f"/remember I own {number} boats")
            await page.harness.say(f"/memory add Berth {number} is free")
        path = "/memory/history"
        shown = []
        while path:
            answer = await page.browser.open(path)
            shown += re.findall(r"<ins>(?:I own \d boats|Berth \d is)", answer.body)
            # What is new meanwhile moves nothing to another page.
            await page.harness.say(f"/memory add user: Likes boats {len(shown)}")
            older = re.search(r'rel="next" href="([^"]+)"', answer.body)
            path = older[1].replace("&amp;", "&") if older else ""
        expected = [f"<ins>Berth {number} is" for number in range(4)]
        expected += [f"<ins>I own {number} boats" for number in range(4)]
        assert sorted(shown) == expected


async def test_last_change_of_a_fact_is_undone_in_the_history(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("/memory correct f1 I live in Porto")
        history = await page.browser.open("/memory/history")
        assert len([form for form in history.forms if form.action == "/do/fact-undo"]) == 1
        await page.browser.send(history.form("/do/fact-undo"))
        assert "I live in Lisbon" in (await page.browser.open("/memory")).text


async def test_web_page_of_facts_lists_every_fact_without_gaps_across_pages(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_page, "FACTS_PER_PAGE", 2)
    async with open_page(home) as page:
        for number in range(5):
            await page.harness.say(f"/remember I own {number} boats")
        path = "/memory/facts"
        shown = []
        while path:
            answer = await page.browser.open(path)
            shown += re.findall(r'<div class="said" dir="auto">I own (\d) boats', answer.body)
            older = re.search(r'rel="next" href="([^"]+)"', answer.body)
            path = older[1] if older else ""
        assert shown == ["4", "3", "2", "1", "0"]


async def test_note_leads_to_who_wrote_it_and_to_its_whole_history(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add The gate code is on the fridge")
        await page.harness.say("/memory add The bins go out on Monday")
        await page.harness.say('/memory replace "the fridge" => the pin board')
        listed = await page.browser.open("/memory")
        links = re.findall(r'href="(/memory/notes/\d+)"', listed.body)
        pages = [await page.browser.open(link) for link in links]
        shown = next(each for each in pages if "pin board" in each.text)
        assert "<del>fridge</del>" in shown.body
        assert "/memory add The gate code is on the fridge" in shown.text
        assert SHARED["YOU"] in shown.text
        assert "bins" not in shown.text
        undone = await page.browser.send(shown.form("/do/change-undo"))
        assert "The gate code is on the fridge" in undone.text
        notes = await page.harness.services.notebook.entries(OWNER_SCOPES, "memory")
        assert "The gate code is on the fridge" in notes


async def test_note_is_corrected_pinned_and_removed_where_its_history_is(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add The gate code is on the fridge")
        shown = await page.browser.open("/memory/notes/1")
        pinned = await page.browser.send(shown.form("/do/note-pin"))
        assert MEMORY["PINNED"] in pinned.text
        unpinned = await page.browser.send(pinned.form("/do/note-unpin"))
        corrected = await page.browser.send(
            unpinned.form("/do/note-replace"), text="The gate code is on the door"
        )
        assert "<ins>door</ins>" in corrected.body
        asked = await page.browser.send(corrected.form("/do/note-forget"))
        removed = await page.browser.send(asked.form("/press/", MEMORY["TAKE_OUT"]))
        assert "<del>The gate code is on the door</del>" in removed.body
        assert await page.harness.services.notebook.entries(OWNER_SCOPES, "memory") == []


async def test_skill_leads_to_its_history(home: Path) -> None:
    skill = {"action": "create", "name": "tidy-inbox", "content": SKILL}
    model = ScriptedModel(calls(("skill_manage", skill)), says("Done"))
    async with open_page(home, model) as page:
        await page.harness.say("Make a skill that tidies my inbox")
        today = await page.browser.open("/today")
        if any(form.action == "/do/approve-change" for form in today.forms):
            await page.browser.send(today.form("/do/approve-change"))
        history = await page.browser.open("/memory/history")
        link = re.search(r'href="(/memory/notes/\d+)"', history.body)
        assert link is not None
        shown = await page.browser.open(link[1])
        assert "Sort what is unread" in shown.text
        assert "tidy-inbox" in shown.text


async def test_contradicting_facts_stand_side_by_side(home: Path) -> None:
    async with open_page(home) as page:
        services = page.harness.services
        for user, place in (("42", "Lisbon"), ("7", "Rome")):
            fact = Fact(
                scope=Scope.account("telegram", "42"),
                content=f"Ana lives in {place}",
                kind="identity",
                attribute="ana|home",
                value=place.lower(),
                origin="rule",
                created_at=services.clock.now(),
                account=Account(platform="telegram", user_id=user),
            )
            await services.facts.learn(fact)
        memory = await page.browser.open("/memory")
        group = re.search(r'<ul class="items side">(.*?)</ul>', memory.body, re.DOTALL)
        assert group is not None
        assert "Ana lives in Lisbon" in group[1]
        assert "Ana lives in Rome" in group[1]
        assert MEMORY["CONFLICTS"] in memory.text


async def test_prompt_of_a_conversation_is_shown_in_parts_with_their_tokens(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/memory add The gate code is on the fridge")
        await page.harness.say("/new")
        await page.harness.say("What is on the fridge?")
        prompt = await page.browser.open("/memory/prompt")
        assert "The gate code is on the fridge" in prompt.text
        numbers = re.findall(r"(\d[\d,]*) tokens", prompt.text)
        weights = [int(number.replace(",", "")) for number in numbers]
        assert sum(weights[1:]) == weights[0] > 0
        sections = re.findall(r"<summary><bdi>(.+?)</bdi>", html.unescape(prompt.body))
        titles = load_texts("en").table("page")
        assert {titles["NOTES_MEMORY"], titles["NOTES_USER"], MEMORY["PROMPT_PLACE"]} <= set(
            sections
        )
        # The headings of the prompt speak to Mneme, not to the reader.
        assert not re.search(r"MEMORY|USER|Where you|How you|Your", " ".join(sections))


async def test_chip_with_the_title_of_a_conversation_searches_only_there(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("The ferry leaves at nine")
        await page.harness.say("/title Trip")
        await page.harness.say("/new")
        await page.harness.say("The ferry is late")
        found = await page.browser.open("/recall?q=ferry")
        chip = re.search(r'class="chip" href="([^"]+)"><bdi>Trip', found.body)
        assert chip is not None
        there = await page.browser.open(chip[1])
        assert "at nine" in there.text
        assert "is late" not in there.text
