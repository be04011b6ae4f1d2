"""Texts that nobody means well, in every field and on every page: shown as text, and nothing runs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import html5lib
import pytest

from core.store.archive import TransferConversation, TransferRecord
from core.store.notes import TOOL_CALL, Author, Operation
from core.types import LOCAL_SCOPE, Address, Scope
from gateway.web.memory.facts import FACT_ACTIONS
from gateway.web.pages import ACTIONS, PAGES
from gateway.web.rendering import render_commands, render_markdown, render_snippet
from gateway.web.views import View
from tests.fixtures.page_browser import Form, OpenPage, PageAnswer, open_page

MARK = "hostileMark"
SCRIPT = f"<script>{MARK}()</script>"
# Each kind of text breaks out of some place, or breaks a layout. MARK would run.
TEXTS: Sequence[str] = (
    SCRIPT,
    f"</textarea>{SCRIPT}",
    f"</title>{SCRIPT}",
    f"</style>{SCRIPT}",
    f"</pre></div></li>{SCRIPT}",
    f"<ScRiPt src=//evil.example/{MARK}.js></sCrIpT>",
    f"<img src=x onerror={MARK}()>",
    f"<img src=x onerror='{MARK}()'>",
    f"<svg onload={MARK}()>",
    f"<svg><script>{MARK}()</script></svg>",
    f"<svg><a xlink:href='javascript:{MARK}()'><text>x</text></a></svg>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror={MARK}()>",
    f"<iframe srcdoc='{SCRIPT}'></iframe>",
    f"<iframe src=javascript:{MARK}()></iframe>",
    f"<object data=javascript:{MARK}()>",
    f"<embed src=javascript:{MARK}()>",
    f"<body onload={MARK}()>",
    f"<details open ontoggle={MARK}()>",
    f"<video><source onerror={MARK}()>",
    f"<input autofocus onfocus={MARK}()>",
    f"<form action=javascript:{MARK}()><button>x</button></form>",
    f"<base href=//evil.example/{MARK}/>",
    f"<link rel=stylesheet href=//evil.example/{MARK}.css>",
    f"<meta http-equiv=refresh content=0;url=javascript:{MARK}()>",
    f"<a href=javascript:{MARK}()>x</a>",
    f"[x](javascript:{MARK}())",
    f"[x](JaVaScRiPt:{MARK}())",
    f"[x](data:text/html,{SCRIPT})",
    f"![x](javascript:{MARK}())",
    f'[x](http://evil.example/"onmouseover="{MARK}())',
    f"<http://evil.example/'onclick='{MARK}()>",
    f"`{SCRIPT}`",
    f"```html\n{SCRIPT}\n```",
    f"> {SCRIPT}",
    f'" onfocus="{MARK}()" autofocus x="',
    f"' onfocus='{MARK}()' autofocus x='",
    f"--><!--{SCRIPT}-->",
    f"<![CDATA[{SCRIPT}]]>",
    f"&lt;script&gt;{MARK}()&lt;/script&gt;",
    f"&#60;script&#62;{MARK}()&#60;/script&#62;",
    f">>>{SCRIPT}<<<",
    f"{{{{ {MARK} }}}}",
    f"{{% for x in {MARK} %}}x{{% endfor %}}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    f"${{{MARK}()}} #{{{MARK}()}} <%= {MARK}() %>",
    f"\u202e{MARK}\u202d\u2066\u2067",
    f"{MARK} \x00\x07\x1b[31m\x7f\u0085\u2028\u2029",
    f"{MARK}\u200b\u200d\ufeff" + "\u0301" * 300,
    f"{MARK} " + "W" * 5_000,
    f"{MARK} " + "\u05d0\u05d1 " * 2_000,
)
# A script, the end of a field, and an attribute that runs.
FEW_TEXTS = (TEXTS[0], TEXTS[1], TEXTS[6])
FEW_OR_ALL = pytest.mark.parametrize(
    "texts",
    [pytest.param(FEW_TEXTS, id="few"), pytest.param(TEXTS, id="all", marks=pytest.mark.sweep)],
)


def is_document(view: View) -> bool:
    """Whether a view needs no number, and is a whole document."""
    is_fragment = view.path.endswith("/reading")
    return "{" not in view.path and bool(view.template) and not is_fragment


PATHS = (
    "/recall?q={mark}",
    "/conversations?q={mark}",
    "/conversations/{session}",
    "/conversations/{session}?q={mark}",
    "/memory/notes/1",
    *(view.path for page in PAGES for view in page.views if is_document(view)),
)
# The actions whose forms have nothing but numbers or fixed values. They get one text.
WITHOUT_TEXT = frozenset(
    {
        "approve-change",
        "back-up",
        "change-undo",
        "end-reminder",
        "fact-unlearn",
        "forget-conversation",
        "note-pin",
        "note-right",
        "note-unpin",
        "note-wrong",
        "pause-reminder",
        "raise-line",
        "reject-change",
        "remove-reminder",
        "resume-reminder",
        "run-reminder",
        "skip-reminder",
        "urgent-reminder",
        *(f"fact-{name}" for name in FACT_ACTIONS),
    }
)
# The fields of all forms. Some actions read only a valid text in one of those that have a value.
FIELDS: Mapping[str, str | None] = {
    "account": None,
    "back": "/logins",
    "backup": None,
    "changes": "1",
    "code": None,
    "fact": "1",
    "kind": "reminder",
    "limit-answers": None,
    "limit-files": None,
    "limit-input_tokens": None,
    "limit-money": None,
    "limit-output_tokens": None,
    "limit-reminders": None,
    "limit-scheduled_questions": None,
    "limit-tokens": None,
    "limits.day": None,
    "limits.owner_day": None,
    "limits.room_day": None,
    "line": None,
    "login": None,
    "minutes": "60",
    "note": None,
    # A number that names nothing, so that nothing else is changed.
    "number": "987654",
    "option": "general.language",
    "scope": LOCAL_SCOPE.key,
    "service": None,
    "session": "1",
    "shown": None,
    "shown_time": None,
    "skill": None,
    "target": "memory",
    "text": None,
    "text0": None,
    "title": None,
    "value": None,
    "when": None,
    "words": None,
}
# The fields that every form has, or that a page reads from its address.
OTHER_FIELDS = {"token", "form", "q", "month"}
OWNER = Scope.account("telegram", "42")


def check_document(page: PageAnswer, where: str) -> None:
    """The document is valid, and nothing in it came from the texts as markup."""
    parser = html5lib.HTMLParser()
    document = parser.parse(page.body)
    assert [code for _, code, _ in parser.errors] == [], where
    for element in document.iter():
        tag = str(element.tag).rpartition("}")[2]
        assert tag not in ("iframe", "object", "embed", "base", "video", "math"), where
        if tag == "script":
            assert re.fullmatch(r"/static/\w+\.js\?\w+", element.get("src", "")), where
            assert not (element.text or "").strip(), where
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on"), (where, tag, name)
            if name in ("href", "src", "action"):
                assert not re.match(r"\s*(javascript|data|vbscript):", value, re.I), (where, value)


async def fill(page: OpenPage) -> None:
    """Put the texts wherever a stranger's words can be: titles, messages, names, and facts.

    Each text is the title of a conversation. The last conversation has all of them as messages.
    """
    address = Address(platform="telegram", chat_id="42")
    records = []
    for number, text in enumerate([*TEXTS, *TEXTS]):
        is_message = number >= len(TEXTS)
        name = "all" if is_message else str(number)
        conversation = TransferConversation(
            name=f"hostile-{name}", address=address, scope=OWNER, title=text[:200]
        )
        records.append(
            TransferRecord(
                conversation=conversation,
                role="user" if number % 2 else "assistant",
                text=text if is_message else MARK,
                at=datetime(2026, 5, 3, 10 + is_message, number % 60, tzinfo=UTC),
                id=f"hostile-{number}",
                sender=text[:80],
            )
        )
    await page.harness.services.archive.import_records(records, lambda _: None)
    for text in TEXTS[::12]:
        await page.harness.say(f"/remember {text}")
    await page.harness.say(f"/memory add The gate code is {SCRIPT}")


async def list_form_fields(page: OpenPage) -> set[str]:
    """Return the names of the fields of all forms that the pages have."""
    paths = [view.path for each in PAGES for view in each.views if is_document(view)]
    details = ["/memory/facts/1", "/conversations/1", "/settings/limits", "/settings/general"]
    answers = [await page.browser.open(path) for path in (*paths, *details)]
    return {name for answer in answers for form in answer.forms for name in form.fields}


@pytest.mark.slow
async def test_hostile_texts_are_shown_as_text_on_every_page(home: Path) -> None:
    async with open_page(home) as page:
        await fill(page)
        services = page.harness.services
        row = await services.database.fetch_one("SELECT MAX(id) AS id FROM sessions", {})
        assert row is not None
        for path in PATHS:
            address: str | None = path.format(mark=MARK, session=row["id"] - 1)
            # Follow the list to its end.
            while address is not None:
                answer = await page.browser.open(address)
                assert answer.status in (200, 404), address
                check_document(answer, address)
                assert len(answer.body) < 150_000, address
                later = re.search(r'rel="(?:next|prev)" href="([^"]+before=[^"]+)"', answer.body)
                address = None if later is None else html.unescape(later[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
@FEW_OR_ALL
async def test_hostile_texts_in_every_field_of_a_form(home: Path, texts: Sequence[str]) -> None:
    async with open_page(home) as page:
        await page.harness.say("/remember I live in Lisbon")
        await page.harness.say("The ferry leaves at nine")
        token = (await page.browser.open("/logins")).form("/do/").fields["token"]
        assert await list_form_fields(page) <= {*FIELDS, *OTHER_FIELDS}
        # Starting Mneme reads no field, and would leave a process running.
        for number, action in enumerate(sorted(set(ACTIONS) - {"start-mneme"})):
            fixed = {name: value for name, value in FIELDS.items() if value is not None}
            sent = [
                {**dict.fromkeys(FIELDS, text), **fixed}
                for text in (texts[:1] if action in WITHOUT_TEXT else texts)
            ]
            # Each action also gets one of the texts where it expects a number or a name.
            sent.append(dict.fromkeys(FIELDS, texts[number % len(texts)]))
            for fields in sent:
                answer = await page.browser.send(Form(f"/do/{action}", {**fields, "token": token}))
                assert answer.status in (200, 422), (action, fields["text"][:60])
                check_document(answer, f"{action} {fields['text'][:60]}")
        check_document(await page.browser.open("/conversations"), "/conversations")
        check_document(await page.browser.open("/memory"), "/memory")
        check_document(await page.browser.open("/memory/facts"), "/memory/facts")


@pytest.mark.slow
@pytest.mark.timeout(600)
@FEW_OR_ALL
async def test_hostile_texts_that_wait_are_shown_and_edited_as_text(
    home: Path, texts: Sequence[str]
) -> None:
    async with open_page(home) as page:
        services = page.harness.services
        for number, text in enumerate(texts):
            content = json.dumps({f"argument {text}": text, "number": number})
            call = Operation(action="call", path="no_such_tool", content=content)
            note = Operation(action="add", content=f"{number} {text}")
            for target, operation in ((TOOL_CALL, call), ("memory", note)):
                await services.notebook.review.put_aside(
                    OWNER, target, [operation], Author(), "a test"
                )
            today = await page.browser.open("/today")
            check_document(today, f"waiting {text[:60]}")
            forms = [form for form in today.forms if form.action == "/do/approve-edited"]
            assert len(forms) == 2, text[:60]
            for form in forms:
                edited = await page.browser.send(form, text0=f"edited {number} {text}")
                check_document(edited, f"edited {text[:60]}")
            for pending in await services.notebook.review.list_pending(frozenset({OWNER})):
                await services.notes.drop(pending.id)


def test_page_shows_addresses_with_data_in_full_and_links_only_others() -> None:
    text = "[tea](https://evil.example/?q=walrus) [map](https://good.example/a)"
    rendered = str(render_markdown(text))
    assert "tea (https://evil.example/?q=walrus)" in rendered
    assert re.findall('href="([^"]*)"', rendered) == ["https://good.example/a"]


@pytest.mark.parametrize("text", TEXTS)
def test_markdown_and_snippets_have_no_element_of_their_own(text: str) -> None:
    for rendered in map(str, (render_markdown(text), render_snippet(text), render_commands(text))):
        elements = set(re.findall(r"<(\w+)", rendered))
        assert elements <= {"div", "b", "i", "s", "code", "pre", "blockquote", "span", "a", "mark"}
        assert not re.search(r"<[^>]*\son\w+=", rendered)
        for url in re.findall(r'href="([^"]*)"', rendered):
            assert html.unescape(url).startswith(("http://", "https://", "mailto:"))


def make_long_conversation(texts: Sequence[str]) -> list[TransferRecord]:
    """Return the messages of an imported conversation of the owner."""
    address = Address(platform="telegram", chat_id="42")
    conversation = TransferConversation(name="long", address=address, scope=OWNER, title="long")
    at = datetime(2026, 5, 3, tzinfo=UTC)
    return [
        TransferRecord(
            conversation=conversation,
            role="user",
            text=text,
            at=at + timedelta(minutes=number),
            id=f"long-{number}",
            sender="",
        )
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("letter", ["漢", '"'])
@pytest.mark.slow
async def test_conversation_of_long_messages_is_read_in_small_pages_without_a_gap(
    home: Path, letter: str
) -> None:
    async with open_page(home) as page:
        texts = [f"number {number} {letter * 2_900}" for number in range(100)]
        records = make_long_conversation(texts)
        await page.harness.services.archive.import_records(records, lambda _: None)
        session = (await page.harness.services.conversations.list_recent(frozenset({OWNER}), 1))[0]
        for rel, start in (("prev", ""), ("next", "?from=1")):
            address: str | None = f"/conversations/{session.id}{start}"
            numbers: list[int] = []
            while address is not None:
                shown = await page.browser.open(address)
                assert len(shown.body.encode()) < 150_000, address
                here = [int(number) for number in re.findall(r"number (\d+) ", shown.text)]
                numbers = here + numbers if rel == "prev" else numbers + here
                link = re.search(rf'rel="{rel}" href="([^"]+)"', shown.body)
                address = None if link is None else html.unescape(link[1])
            assert numbers == list(range(100)), rel
        middle = re.search(r'id="m(\d+)"', shown.body)
        assert middle is not None
        around = await page.browser.open(f"/conversations/at/{int(middle[1]) - 50}")
        assert "anchor" in around.body
        assert len(around.body.encode()) < 150_000


@pytest.mark.slow
async def test_lists_of_long_facts_and_changes_are_small_pages_without_a_gap(home: Path) -> None:
    async with open_page(home) as page:
        letters = "漢" * 380
        for number in range(60):
            await page.harness.say(f"/remember thing {number} {letters}")
        memory = await page.browser.open("/memory")
        assert len(memory.body.encode()) < 150_000
        assert 'href="/memory/facts"' in memory.body
        for address in ("/memory/facts", "/memory/history"):
            seen: list[int] = []
            following: str | None = address
            while following is not None:
                shown = await page.browser.open(following)
                assert len(shown.body.encode()) < 150_000, following
                seen += map(int, re.findall(r'href="/memory/facts/(\d+)"', shown.body))
                link = re.search(r'rel="next" href="([^"]+)"', shown.body)
                following = None if link is None else html.unescape(link[1])
            assert seen == list(range(60, 0, -1)), address


@pytest.mark.slow
async def test_a_megabyte_in_a_field_is_refused_and_a_long_message_is_cut(home: Path) -> None:
    async with open_page(home) as page:
        form = (await page.browser.open("/memory")).form("/do/remember")
        for name in FIELDS:
            answer = await page.browser.send(form, **{name: "x" * 1_020_000})
            assert answer.status == 413, name
        answer = await page.browser.send(form, text="x" * 100_000)
        assert "too long" in answer.text
        await page.harness.say(f"{MARK} " + "long words " * 100_000)
        sessions = await page.harness.services.conversations.list_recent(frozenset({OWNER}), 1)
        shown = await page.browser.open(f"/conversations/{sessions[0].id}")
        assert len(shown.body) < 150_000
        link = re.search(r'href="(/messages/\d+)"', shown.body)
        assert link is not None
        whole = await page.browser.open(link[1])
        assert len(whole.body) < 150_000
        parts = await page.browser.open(f"{link[1]}?part=2")
        assert 'rel="prev"' in parts.body
