"""The pages "Settings" and "People": for the owner only, and every change is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.settings import Settings
from core.store.ownership.links import NamedAccount
from core.types import Account, Address, Scope
from gateway.texts.catalog import load_texts
from gateway.web.logins import Visitor
from gateway.web.owner import settings as owner
from tests.fixtures.page_browser import OpenPage, PageBrowser, open_browser, open_page
from tests.fixtures.provider_harness import plugged
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

WORDS = load_texts("en").table("page_settings")
PEOPLE = load_texts("en").table("page_people")
SETTINGS = load_texts("en").table("page_settings")
SHARED = load_texts("en").table("page")


@pytest.fixture
def page_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that this process takes for its own, because the page changes its settings."""
    monkeypatch.setenv("MNEME_HOME", str(home))
    return home


async def log_in_ana(page: OpenPage, browser: PageBrowser) -> None:
    """Log in a person who is served but isn't the owner."""
    visitor = Visitor(
        account=Account(platform="telegram", user_id="7"),
        address=Address(platform="telegram", chat_id="7"),
        scope=Scope.account("telegram", "7"),
        name="Ana",
    )
    await browser.log_in(f"/login?key={page.harness.services.page_logins.create_key(visitor)}")


async def set_option(page: OpenPage, option: str, value: str) -> str:
    """Set an option with its form, and return the text of the page that follows."""
    settings = await page.browser.open(f"/settings/{option.partition('.')[0]}")
    form = next(form for form in settings.forms if form.fields.get("option") == option)
    return (await page.browser.send(form, value=value)).text


async def test_option_has_its_reason_and_is_changed_and_reset(page_home: Path) -> None:
    async with open_page(page_home) as page:
        settings = await page.browser.open("/settings/cron")
        assert "cron.late_after_s" in settings.text
        answer = await set_option(page, "cron.late_after_s", "90")
        assert "cron.late_after_s is saved" in answer
        assert "late_after_s = 90" in (page_home / "mneme.toml").read_text()
        changed = await page.browser.open("/settings/cron")
        await page.browser.send(changed.form("/do/reset-option"))
        assert "late_after_s" not in (page_home / "mneme.toml").read_text()


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("model.chat", "[", "the name of a model"),
        ("model.chat", '["a b"]', "the name of a model"),
        ("backup.encrypt_to", "[", "it should be a public key of age"),
    ],
)
async def test_malformed_value_is_refused_with_a_sentence_and_not_stored(
    page_home: Path, option: str, value: str, problem: str
) -> None:
    async with open_page(page_home) as page:
        before = (page_home / "mneme.toml").read_text()
        assert problem in await set_option(page, option, value)
        assert (page_home / "mneme.toml").read_text() == before


async def test_options_that_need_no_restart_are_marked(page_home: Path) -> None:
    async with open_page(page_home) as page:
        general = await page.browser.open("/settings/general")
        assert SETTINGS["RESTART_HINT"].format(mark=SETTINGS["APPLIES_NOW"]) in general.text
        assert f"general.log_level {SETTINGS['APPLIES_NOW']}" in general.text
        assert f"general.zone {SETTINGS['APPLIES_NOW']}" not in general.text
        limits = await page.browser.open("/settings/limits")
        assert f"limits.owner_day {SETTINGS['APPLIES_NOW']}" in limits.text
        assert f"limits.jobs {SETTINGS['APPLIES_NOW']}" not in limits.text
        assert "To restart: mneme service stop" in limits.text
        assert SETTINGS["MONEY_HINT"] in limits.text
        cron = await page.browser.open("/settings/cron")
        assert SETTINGS["RESTART_ALL"] in cron.text
        assert SETTINGS["APPLIES_NOW"] not in cron.text


async def test_limit_that_the_owner_sets_on_the_page_counts_from_the_next_message_on(
    page_home: Path,
) -> None:
    without_limit = "[limits.owner_day]\nmoney = 0\ntokens = 0"
    async with open_page(page_home, ScriptedModel(), without_limit) as page:
        answered = await page.harness.say("Hello")
        form = (await page.browser.open("/settings/limits")).form("/do/set-option")
        assert form.fields["option"] == "limits.owner_day"
        await page.browser.send(form, **{"limit-tokens": "1"})
        refused = await page.harness.say("And again")
        assert "/usage more" in refused.text
        assert "/usage more" not in answered.text


async def test_settings_file_with_a_mistake_is_named_on_the_page(page_home: Path) -> None:
    async with open_page(page_home) as page:
        (page_home / "mneme.toml").write_text("[limits\n")
        broken = await page.browser.open("/settings/limits")
        assert broken.status == 422
        assert "mneme.toml" in broken.text


async def test_reset_of_an_option_that_has_its_default_is_no_error(page_home: Path) -> None:
    async with open_page(page_home) as page:
        await set_option(page, "cron.late_after_s", "90")
        form = (await page.browser.open("/settings/cron")).form("/do/reset-option")
        for number in range(2):
            fields = {**form.fields, "form": f"tab {number}"}
            answer = await page.browser.post(form.action, fields)
            assert "cron.late_after_s is saved" in answer.text
        unknown = {**form.fields, "form": "other", "option": "general.nonsense"}
        assert SHARED["WRONG_FIELD"] in (await page.browser.post(form.action, unknown)).text


async def test_reason_of_an_option_is_in_the_language_of_the_reader(page_home: Path) -> None:
    async with open_page(page_home) as page:
        german = {"Accept-Language": "de"}
        settings = await page.browser.open("/settings/backup", **german)
        assert "Wie viele unverschlüsselte Sicherungen bleiben" in settings.text
        found = await page.browser.open("/settings?q=unverschlüsselte", **german)
        assert "backup.keep" in found.text
        assert "backup.every" not in found.text


async def test_wrong_value_is_refused_with_a_sentence_and_changes_nothing(page_home: Path) -> None:
    async with open_page(page_home) as page:
        before = (page_home / "mneme.toml").read_text()
        answer = await set_option(page, "cron.late_after_s", "soon")
        assert "cron.late_after_s" in answer
        assert (page_home / "mneme.toml").read_text() == before
        form = (await page.browser.open("/settings/cron")).form("/do/set-option")
        unknown = {**form.fields, "option": "general.nonsense", "value": "1"}
        assert SHARED["WRONG_FIELD"] in (await page.browser.post(form.action, unknown)).text
        assert (page_home / "mneme.toml").read_text() == before


@pytest.mark.parametrize("own", ["", "[limits.owner_day]\nmoney = 5.0\n"])
async def test_limit_of_a_day_has_a_box_for_each_resource(page_home: Path, own: str) -> None:
    async with open_page(page_home) as page:
        file = page_home / "mneme.toml"
        file.write_text(own)
        settings = await page.browser.open("/settings/limits")
        boxes = [form for form in settings.forms if form.action == "/do/set-option"]
        forms = {form.fields["option"]: form for form in boxes}
        form = forms["limits.owner_day"]
        assert "limit-money" not in form.fields
        title = f"{SETTINGS['LIMIT_OWNER_DAY']} · {SETTINGS['LIMIT_TOKENS']} limits.owner_day"
        assert title in settings.text
        assert "limit-answers" in forms["limits.room_day"].fields
        changed = await page.browser.send(form, **{"limit-tokens": ""})
        assert "limits.owner_day is saved" in changed.text
        limits = Settings.load(own_text=file.read_text(), own_secrets={}).limits
        assert limits.owner_day == {"money": 5 if own else 20, "tokens": 0}


async def test_money_for_a_day_is_limited_for_everyone_in_one_form(page_home: Path) -> None:
    async with open_page(page_home) as page:
        file = page_home / "mneme.toml"
        file.write_text("[limits.owner_day]\nmoney = 5.0\n")
        form = (await page.browser.open("/settings/limits")).form("/do/set-day-money")
        names = ("limits.owner_day", "limits.day", "limits.room_day")
        assert [form.fields[name] for name in names] == ["5", "10", "20"]
        amounts = {"limits.owner_day": "5", "limits.day": "7,5", "limits.room_day": ""}
        changed = await page.browser.send(form, **amounts)
        assert "Daily budget, in $ is saved" in changed.text
        limits = Settings.load(own_text=file.read_text(), own_secrets={}).limits
        own_money = [table["money"] for table in (limits.owner_day, limits.day, limits.room_day)]
        assert own_money == [5, 7.5, 0]
        assert limits.day["answers"] == 300
        before = file.read_text()
        for typed in ("seven", "1,000"):
            refused = await page.browser.send(form, **{"limits.day": typed})
            money = SETTINGS["LIMIT_MONEY"].format(currency="$")
            assert SHARED["FIELD_NUMBER"].format(field=money) in refused.text
        assert file.read_text() == before


async def test_yes_no_option_is_chosen_from_a_list_below_its_plain_name(page_home: Path) -> None:
    async with open_page(page_home) as page:
        settings = await page.browser.open("/settings/limits")
        assert "<b>Whether members of a listed group may schedule questions</b>" in settings.body
        choice = settings.body.partition('<select id="o-limits.room_questions"')[2]
        assert '<option value="false" selected>No</option>' in choice.partition("</select>")[0]
        assert settings.body.index('id="limits.owner_day"') < settings.body.index(
            'id="limits.jobs"'
        )
        answer = await set_option(page, "limits.room_questions", "true")
        assert "limits.room_questions is saved" in answer
        assert "room_questions = true" in (page_home / "mneme.toml").read_text()


@pytest.mark.parametrize(
    ("reason", "name", "rest"),
    [
        ("The folder. Older ones go.", "The folder", "Older ones go."),
        ("一个账号的数量。旧的删除。", "一个账号的数量", "旧的删除。"),
        ('How often: "12h" or "1d".', "How often", '"12h" or "1d".'),
        ('Such as "query: ". No other.', 'Such as "query: "', "No other."),
        ("Yes: an example (e.g. this) helps.", "Yes: an example (e.g. this) helps", ""),
        ('"auto": on with a token. Else off.', '"auto": on with a token', "Else off."),
    ],
)
def test_reason_of_an_option_is_split_after_its_first_sentence(
    reason: str, name: str, rest: str
) -> None:
    assert owner.split_reason(reason) == (name, rest)


async def test_settings_page_finds_an_option_by_words_of_its_description(page_home: Path) -> None:
    async with open_page(page_home) as page:
        found = await page.browser.open("/settings?q=searxng")
        assert "web_tools.searxng_url" in found.text
        assert "cron.late_after_s" not in found.text
        nothing = await page.browser.open("/settings?q=zanzibar")
        assert WORDS["NO_OPTION"] in nothing.text
        assert (await page.browser.open("/settings/nonsense")).status == 404


async def test_backup_is_made_from_the_web_page(page_home: Path) -> None:
    async with open_page(
        page_home, options=f'[backup]\nfolder = "{page_home.parent}/copies"\n'
    ) as page:
        settings = await page.browser.open("/settings")
        made = await page.browser.send(settings.form("/do/back-up"))
        (archive,) = (page_home.parent / "copies").glob("mneme-*")
        assert archive.name in made.text
        # The list may be lost with the disk, so the way to restore a saved file is outside it.
        assert SETTINGS["RESTORE_ELSEWHERE"].replace("`", "") in settings.text


async def test_keys_and_tokens_are_never_shown(page_home: Path) -> None:
    async with open_page(page_home) as page:
        for path in ("/settings", "/settings/model", "/settings?q=key"):
            answer = await page.browser.open(path)
            assert "sk-ant-none" not in answer.body
            assert "no-token" not in answer.body


async def test_settings_and_people_are_for_the_owner_only(page_home: Path) -> None:
    async with open_page(page_home, options="people = true") as page:
        form = (await page.browser.open("/settings/cron")).form("/do/set-option")
        async with open_browser(page.server) as ana:
            await log_in_ana(page, ana)
            for path in ("/settings", "/settings/cron", "/people"):
                assert (await ana.open(path)).status == 404
            memory = await ana.open("/memory")
            assert 'href="/settings"' not in memory.body
            token = memory.forms[0].fields["token"]
            fields = {**form.fields, "token": token, "value": "90"}
            assert (await ana.post(form.action, fields)).status == 404
        assert "late_after_s" not in (page_home / "mneme.toml").read_text()


async def test_people_are_listed_with_the_reason_and_lose_their_access(page_home: Path) -> None:
    async with open_page(page_home) as page:
        services = page.harness.services
        ana = Account(platform="telegram", user_id="7")
        await page.harness.say("/status", who="7")
        people = await page.browser.open("/people")
        assert "Person 7" in people.text
        assert f"{PEOPLE['TERMINAL']} {SHARED['YOU']}" in people.text
        assert "mneme.toml" not in people.text
        assert f"Person 7 {SHARED['YOU']}" not in people.text
        # Nobody ends their own access here.
        assert PEOPLE["REVOKE"] not in people.text
        assert PEOPLE["NO_GROUPS"] in people.text
        form = next(form for form in people.forms if form.fields.get("account") == ana.key)
        removed = await page.browser.send(form)
        assert "Person 7" in removed.text
        access = await services.people.load_access(ana, Scope.account("telegram", "7"))
        assert not access.has_access(ana, ())


async def test_person_is_let_in_by_their_number_with_their_limits_and_a_stranger_isnt_removed(
    page_home: Path,
) -> None:
    async with open_page(page_home) as page:
        people = await page.browser.open("/people")
        wrong = await page.browser.send(people.form("/do/add-person"), text="Ana")
        assert PEOPLE["NO_ACCOUNT"] in wrong.text
        unknown = {**people.form("/do/add-person").fields, "account": "telegram:999"}
        answer = await page.browser.post("/do/remove-person", unknown)
        assert load_texts("en").PEOPLE_UNKNOWN.format(account="telegram:999") in answer.text
        added = await page.browser.send(people.form("/do/add-person"), text="telegram:8")
        assert PEOPLE["PERSON_ADDED"].format(account="telegram:8") in added.text
        assert "let in by you on the page" in added.text
        assert "0 of 300 answers" in added.text
        await page.harness.say("hello", who="8")
        removed = await page.browser.send(added.form("/do/remove-person"))
        assert "removed on" in removed.text
        again = await page.browser.send(removed.form("/do/add-person"), text="telegram:8")
        assert "removed on" not in again.text


async def test_people_who_have_not_written_and_groups_are_listed_with_the_reason(
    page_home: Path,
) -> None:
    async with open_page(page_home) as page:
        services = page.harness.services
        groups = {"rooms": ("discord:77",), "roles": ("discord:123",)}
        access = services.settings.access.model_copy(update=groups)
        services.settings = services.settings.model_copy(update={"access": access})
        people = await page.browser.open("/people")
        assert f"telegram:7 {PEOPLE['WHY_LISTED']}" in people.text
        group = people.text.partition(f"discord:77 {PEOPLE['WHY_ROOM']}")[2]
        assert "0 of 600 answers" in group.partition("discord:123")[0]
        assert f"discord:123 {PEOPLE['WHY_ROLE']}" in people.text


@pytest.mark.parametrize("action", ["/do/approve-person", "/do/reject-link"])
async def test_link_that_waits_for_the_owner_is_decided_on_the_page(
    page_home: Path, action: str
) -> None:
    async with open_page(page_home) as page:
        services = page.harness.services
        links, now = services.links, services.clock.now()
        ana, stranger = (Account(platform="telegram", user_id=number) for number in ("7", "8"))
        chat = Address(platform="telegram", chat_id="7")
        code = await links.offer(ana, chat, Scope.account("telegram", "7"), now)
        link = await links.claim(code, NamedAccount(account=stranger, name="Eva"), chat, now)
        for account in (stranger, ana):
            await links.confirm(link.digest, account, now)
        people = await page.browser.open("/people")
        assert "Eva" in people.text
        await page.browser.send(people.form(action))
        assert await links.list_for_owner(services.clock.now()) == []
        accounts = await links.list_accounts(ana)
        assert len(accounts) == (2 if action == "/do/approve-person" else 1)


async def test_access_request_is_approved_on_the_web_page(page_home: Path) -> None:
    async with open_page(page_home) as page:
        await page.harness.say("Hello, may I?", who="99")
        people = await page.browser.open("/people")
        assert "Person 99" in people.text
        assert f"telegram:99 · {PEOPLE['UNTIL']}" in people.text
        badge = f'<span class="badge" title="{SHARED["WAITING_BADGE"].format(count=1)}">1</span>'
        assert f"{SHARED['NAV_PEOPLE']} {badge}" in people.body
        assert f"{PEOPLE['REQUESTS']} (1)" in (await page.browser.open("/today")).text
        approved = await page.browser.send(people.form("/do/approve-person"))
        assert 'class="badge"' not in approved.body
        stranger = Account(platform="telegram", user_id="99")
        access = await page.harness.services.people.load_access(
            stranger, Scope.account("telegram", "99")
        )
        assert access.has_access(stranger, ())


def test_every_section_of_the_settings_is_in_a_group_with_a_title() -> None:
    sections = {option.path.partition(".")[0] for option in owner.list_described_options()}
    grouped = [name for _, names in owner.GROUPS for name in names]
    assert sorted(grouped) == sorted(sections)
    words = WORDS
    assert all(f"GROUP_{group}" in words for group, _ in owner.GROUPS)
    assert all(f"ABOUT_{name.upper()}" in words for name in grouped)


async def test_memory_service_is_listed_with_its_queue_and_tested_by_a_button(
    page_home: Path,
) -> None:
    plugged(page_home, "diary")
    async with open_page(page_home, options="[memory.providers.diary]") as page:
        await page.harness.say("The ferry leaves at nine")
        settings = await page.browser.open("/settings")
        services = settings.text.partition(SETTINGS["SERVICES"])[2]
        waiting = load_texts("en").table("SYNC_WAITING")["one"].format(count=1)
        assert f"diary {waiting}" in services
        tested = await page.browser.send(settings.form("/do/test-service"))
        assert "diary" in tested.text.partition(SETTINGS["LEAD"])[2]


async def test_models_are_listed_with_their_tasks_and_asked_by_a_button(page_home: Path) -> None:
    options = '[model]\nchat = "ollama/qwen4"\nhelper = "ollama/small"\n'
    # Nothing listens on this port.
    options += '[model.servers.ollama]\nurl = "http://127.0.0.1:9/v1"\n'
    async with open_page(page_home, options=options) as page:
        settings = await page.browser.open("/settings")
        assert f"ollama/qwen4 {WORDS['MODEL_CHAT']}" in settings.text
        assert f"ollama/small {WORDS['MODEL_HELPER']}" in settings.text
        answer = await page.browser.send(settings.form("/do/test-models"))
        assert "ollama/qwen4" in answer.text.partition(WORDS["FIND"])[0]
