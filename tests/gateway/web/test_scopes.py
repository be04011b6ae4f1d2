"""Another person's things on the page: by id, by search and by form, they answer like what doesn't
exist. The members of `VIEWS` and `FORMS` are everything that takes an id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from core.store.notes import FACT, INSTRUCTIONS, Author, Operation
from core.types import LOCAL_SCOPE, Account, Address, Scope
from gateway.texts.catalog import load_texts
from gateway.web.logins import Visitor
from gateway.web.pages import PAGES
from tests.fixtures.media_samples import make_pdf
from tests.fixtures.page_browser import Form, open_browser, open_page

pytestmark = pytest.mark.slow

OWNER = Scope.account("telegram", "42")
ANA = Visitor(
    account=Account(platform="telegram", user_id="7"),
    address=Address(platform="telegram", chat_id="7"),
    scope=Scope.account("telegram", "7"),
    name="Ana",
)
# The addresses of views that take an id, with the id of something of the owner's, and one of nothing.
VIEWS: Mapping[str, tuple[str, str]] = {
    "/conversations/{session}": ("{session}", "987654"),
    "/conversations/{session}/export": ("{session}", "987654"),
    "/conversations/at/{message}": ("{message}", "987654"),
    "/messages/{message}": ("{message}", "987654"),
    "/files/{file}": ("{file}", "987654"),
    "/files/{file}/view": ("{file}", "987654"),
    "/files/{file}/original": ("{file}", "987654"),
    "/memory/facts/{fact}": ("{fact}", "987654"),
    "/memory/notes/{number}": ("{change}", "987654"),
    "/memory/skills/{skill}": ("tidy-inbox", "no-such-skill"),
    r"/reminders/{number:\d+}": ("{job}", "987654"),
}
# Settings and backups belong to nobody, and files of answers to a login. They have tests of their own.
WITHOUT_OWNER = {"/settings/{section}", "/settings/backups/{backup}", "/chat/files/{file}"}
# The actions that take an id, or the scope of a chat.
FORMS = (
    "rename",
    "forget-conversation",
    "fact-right",
    "fact-wrong",
    "fact-pin",
    "fact-unpin",
    "fact-undo",
    "fact-unlearn",
    "fact-restore",
    "fact-forget",
    "fact-correct",
    "change-undo",
    "note-pin",
    "note-unpin",
    "note-right",
    "note-wrong",
    "note-replace",
    "note-forget",
    "instructions-set",
    "instructions-right",
    "instructions-wrong",
    "instructions-pin",
    "instructions-unpin",
    "instructions-forget",
    "skill-right",
    "skill-wrong",
    "skill-pin",
    "skill-unpin",
    "skill-enable",
    "skill-disable",
    "skill-edit",
    "skill-forget",
    "edit-reminder",
    "delay-reminder",
    "snooze-reminder",
    "end-reminder",
    "pause-reminder",
    "resume-reminder",
    "skip-reminder",
    "run-reminder",
    "urgent-reminder",
    "remove-reminder",
    "restore-reminder",
    "end-login",
    "approve-change",
    "approve-edited",
    "reject-change",
)
# The other actions of a person who isn't the owner.
FORMS_WITHOUT_ID = {
    "add-reminder",
    "end-other-logins",
    "forget-words",
    "note-add",
    "raise-line",
    "remember",
    "start-mneme",
}
SECRET = "Nero"
HINT = load_texts("en").table("page_logins")["HINT"]


async def test_web_requests_for_another_persons_data_are_answered_like_missing_data(
    home: Path,
) -> None:
    skill = home / "skills" / "tidy-inbox"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: tidy-inbox\ndescription: {SECRET}\n---\n{SECRET}\n"
    )
    async with open_page(home, options="people = true") as page, open_browser(page.server) as ana:
        await page.harness.say(f"/remember My cat is called {SECRET}")
        note = f"The vet of {SECRET} is in Almada"
        await page.harness.say(f"/memory add {note}")
        await page.harness.say(f"/instructions set Call {SECRET} a tiger")
        await page.harness.say(f"/remind tomorrow at 9 feed {SECRET}")
        await page.harness.say("yes")
        await page.harness.send(make_pdf(), f"{SECRET}.pdf", text=f"{SECRET} sleeps")
        services = page.harness.services
        key = services.page_logins.create_key(ANA)
        await ana.log_in(f"/login?key={key}")
        ids = {"skill": "tidy-inbox", "note": note, "scope": OWNER.key}
        tables = {"session": "sessions", "message": "messages", "fact": "facts"}
        for name, table in {**tables, "file": "message_files", "change": "note_changes"}.items():
            row = await services.database.fetch_one(f"SELECT MAX(id) AS id FROM {table}", {})
            assert row is not None
            ids[name] = str(row["id"])
        (job,) = await services.jobs.list_visible(frozenset({OWNER}))
        logins = await page.browser.open("/logins")
        ids["login"] = logins.form("/do/end-login").fields["login"]
        review = services.notebook.review
        waiting = [Operation(action="add", content=f"{SECRET} likes fish")]
        await review.put_aside(OWNER, FACT, waiting, Author(), "a test")
        ids["job"] = str(job.id)

        taking_ids = {v.path for p in PAGES for v in p.views if "{" in v.path}
        assert taking_ids - WITHOUT_OWNER == set(VIEWS)
        for path, (of_owner, of_nobody) in VIEWS.items():
            before, _, rest = path.partition("{")
            after = rest.partition("}")[2]
            own_path = f"{before}{of_owner.format(**ids)}{after}"
            assert (await page.browser.open(own_path)).status == 200, path
            foreign = await ana.open(own_path)
            missing = await ana.open(f"{before}{of_nobody}{after}")
            assert (foreign.status, foreign.body) == (missing.status, missing.body), path
            assert foreign.status == 404, path

        for view in (v for p in PAGES for v in p.views if "{" not in v.path):
            for query in ("", "?q=sleeps", "?q=called", f"?session={ids['session']}"):
                shown = await ana.open(view.path + query)
                assert SECRET not in shown.body, view.path + query

        token = (await ana.open("/logins")).form("/do/").fields["token"]
        facts = await services.facts.list_page(frozenset({OWNER}))
        is_for_all = {a.name for p in PAGES if not p.is_for_owner for a in p.actions}
        assert is_for_all == {*FORMS, *FORMS_WITHOUT_ID}
        for action in FORMS:
            answers = []
            for values in (ids, dict.fromkeys(ids, "987654")):
                fields = {
                    **values,
                    "number": values["job" if action.endswith("-reminder") else "fact"],
                    "target": "memory",
                    "changes": "1",
                    "minutes": "60",
                    "when": "tomorrow at 8",
                    "words": "tomorrow",
                    "text": "x",
                    "text0": "x",
                    "title": "x",
                }
                form = Form(f"/do/{action}", {**fields, "token": token, "back": "/logins"})
                shown = await ana.send(form)
                answers.append(shown.text.partition(HINT)[2].partition("Another program")[0])
            owns, missing_one = (a.replace("987654", "N") for a in answers)
            for value in ids.values():
                owns = owns.replace(value, "N")
            assert SECRET not in owns, action
            assert owns[:80].split("N")[0] == missing_one[:80].split("N")[0], action
        assert await services.facts.list_page(frozenset({OWNER})) == facts
        assert await services.jobs.list_visible(frozenset({OWNER})) == [job]
        assert await services.notebook.load_verdicts(frozenset({OWNER})) == {}
        for target, text in (("memory", note), (INSTRUCTIONS, f"Call {SECRET} a tiger")):
            assert await services.notebook.entries(frozenset({OWNER}), target) == [text]
        kept = await services.skills.find("tidy-inbox", frozenset({LOCAL_SCOPE}))
        assert not kept.is_disabled
        assert not kept.is_pinned
        assert (await page.browser.open("/logins")).status == 200
        (pending,) = await review.list_pending(frozenset({OWNER}))
        assert (str(pending.id), list(pending.operations)) == (ids["fact"], waiting)
