"""Who may open the page, and which requests it refuses. A real server and a real HTTP client."""

from __future__ import annotations

import asyncio
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.settings import Settings, SettingsError
from core.errors import StoreError
from core.store.query import SearchQuery, SearchResults
from core.transfer.backup import is_left_out
from core.types import Account, Address, Scope
from gateway.security_check import list_findings
from gateway.texts.catalog import load_texts
from gateway.web import server as web_server
from gateway.web.access import name_browser
from gateway.web.logins import LOGINS_FILE, MAX_WRONG_KEYS, Visitor
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.page_browser import Form, find_free_port, open_browser, open_page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
OWNER_SCOPE = Scope.account("telegram", "42")
WORDS = load_texts("en").table("page")


async def test_login_link_works_once_and_sets_a_strict_cookie(home: Path) -> None:
    async with open_page(home, is_logged_in=False) as page:
        assert (await page.browser.open("/memory")).status == 401
        link = page.server.create_owner_link()
        welcome = await page.browser.log_in(link)
        assert (welcome.status, welcome.headers["Location"]) == (303, "/")
        cookie = welcome.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert (await page.browser.open("/memory")).status == 200
        async with open_browser(page.server) as other:
            again = await other.log_in(link)
            assert again.status == 401
            assert "has been used" in again.text
            assert (await other.open("/memory")).status == 401


async def test_web_login_survives_a_restart_and_a_revoked_login_stays_revoked(home: Path) -> None:
    async with open_page(home) as page, open_browser(page.server) as other:
        await other.log_in()
        jar = page.browser.session.cookie_jar
        cookies = {cookie.key: cookie.value for cookie in jar}
        ended = {cookie.key: cookie.value for cookie in other.session.cookie_jar}
        mine = (await page.browser.open("/logins")).forms
        await other.send((await other.open("/logins")).form("/do/end-login"))
        kept = (home / LOGINS_FILE).read_text()
        cookie = page.server.cookie
        assert cookies[cookie] not in kept
        assert mine[0].fields["token"] not in kept
        assert stat.S_IMODE((home / LOGINS_FILE).stat().st_mode) == 0o600
    async with open_page(home, is_logged_in=False) as page:
        headers = {"Cookie": f"{page.server.cookie}={cookies[cookie]}"}
        again = await page.browser.open("/logins", **headers)
        assert again.status == 200
        # A form that was open before the restart still works.
        assert again.forms[0].fields["token"] == mine[0].fields["token"]
        gone = await page.browser.open("/logins", Cookie=f"{page.server.cookie}={ended[cookie]}")
        assert gone.status == 401


@pytest.mark.parametrize("content", ["", "[]", '{"logins": [{"digest": "x"}]}', '{"logins": 1}'])
async def test_damaged_file_of_logins_logs_everybody_out(home: Path, content: str) -> None:
    (home / LOGINS_FILE).write_text(content)
    async with open_page(home, is_logged_in=False) as page:
        assert (await page.browser.open("/memory")).status == 401
        assert (await page.browser.log_in()).status == 303


def test_backup_leaves_out_the_file_of_web_logins() -> None:
    assert is_left_out(LOGINS_FILE)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:{port}", "127.0.0.1", ""])
async def test_request_for_another_host_is_refused(home: Path, host: str) -> None:
    async with open_page(home) as page:
        port = page.server.address.rpartition(":")[2]
        for path in ("/memory", "/login?key=x", "/static/page.css"):
            answer = await page.browser.open(path, Host=host.format(port=port))
            assert answer.status == 421, path
        answer = await page.browser.open("/memory", Host=f"localhost:{port}")
        # The name is right, but the cookie belongs to 127.0.0.1.
        assert answer.status in (200, 401)


async def test_web_form_without_its_origin_or_token_is_refused(home: Path) -> None:
    async with open_page(home) as page:
        form = (await page.browser.open("/logins")).form("/do/end-login")
        address = page.server.address
        origins = [
            {},
            {"Origin": "null"},
            {"Origin": "http://evil.example"},
            {"Origin": f"{address}.evil.example"},
            {"Origin": address.replace("127.0.0.1", "localhost")},
        ]
        for headers in origins:
            answer = await page.browser.post(form.action, form.fields, headers)
            assert (answer.status, WORDS["WRONG_ORIGIN"] in answer.text) == (403, True), headers
        for token in ("", "x", form.fields["token"] + "x", "\ud83d"):
            fields = {**form.fields, "token": token.encode("utf-8", "replace").decode()}
            answer = await page.browser.post(form.action, fields)
            assert (answer.status, WORDS["WRONG_TOKEN"] in answer.text) == (403, True), token
        # The token of another person's login isn't enough either.
        logins = page.harness.services.page_logins
        stranger = Account(platform="telegram", user_id="7")
        place = Address(platform="telegram", chat_id="7")
        scope = Scope.account("telegram", "7")
        key = logins.create_key(Visitor(account=stranger, address=place, scope=scope, name="Ana"))
        async with open_browser(page.server) as other:
            await other.log_in(f"/login?key={key}")
        (login,) = logins.list_logins(stranger)
        fields = {**form.fields, "token": login.form_token}
        answer = await page.browser.post(form.action, fields)
        assert answer.status == 403
        assert (await page.browser.open("/logins")).status == 200


async def test_link_preview_and_foreign_website_use_up_no_key_and_lock_nobody_out(
    home: Path,
) -> None:
    async with open_page(home, is_logged_in=False) as page:
        link = page.server.create_owner_link()
        async with page.browser.session.head(link) as response:
            assert response.status == 200
        for _ in range(MAX_WRONG_KEYS + 1):
            preview = await page.browser.open(link, **{"Sec-Purpose": "prefetch"})
            assert (preview.status, "Set-Cookie" in preview.headers) == (200, False)
            foreign = {"Origin": "http://evil.example"}
            assert (await page.browser.post("/login", {"key": "x"}, foreign)).status == 403
        assert (await page.browser.open("/memory")).status == 401
        assert (await page.browser.log_in(link)).status == 303
        (cookie,) = page.browser.session.cookie_jar
        assert int(cookie["max-age"]) > 7 * 86_400


async def test_page_is_served_once_its_port_is_free_and_gives_no_links_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "RETRY_S", 0.01)
    port = find_free_port()
    options = f"[web]\nenabled = true\nport = {port}\n"
    async with open_gateway(home, options=options) as harness:
        server = web_server.PageServer(harness.services, harness.path.commands)
        other = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
        serving = asyncio.create_task(server.run())
        refusal = await harness.say("/web")
        assert f"Port {port} is in use" in refusal.text
        other.close()
        await other.wait_closed()
        link = ""
        for _ in range(2_000):
            link = (await harness.say("/web")).text
            if "login?key=" in link:
                break
            await asyncio.sleep(0.01)
        assert "login?key=" in link
        serving.cancel()
        await asyncio.wait([serving])


async def test_broken_settings_file_is_explained_on_the_page(home: Path) -> None:
    async with open_page(home) as page:
        settings = home / "mneme.toml"
        settings.write_text(settings.read_text() + "[limits\n")
        answer = await page.browser.open("/settings/limits")
        assert answer.status == 422
        assert "mneme.toml" in answer.text


async def test_error_page_is_in_the_language_of_the_person(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/language de")
        missing = await page.browser.open("/nosuch", **{"Accept-Language": "en"})
        assert load_texts("de").table("page")["NOT_FOUND"] in missing.text


async def test_button_of_a_link_that_is_pressed_twice_opens_the_page(home: Path) -> None:
    async with open_page(home, is_logged_in=False) as page:
        link = page.server.create_owner_link()
        for _ in range(2):
            assert (await page.browser.log_in(link)).status == 303
        assert (await page.browser.open("/memory")).status == 200


async def test_guessed_keys_are_refused_and_then_all_for_a_minute(home: Path) -> None:
    async with open_page(home, is_logged_in=False) as page:
        for number in range(MAX_WRONG_KEYS):
            assert (await page.browser.log_in(f"/login?key=guess{number}")).status == 401
        answer = await page.browser.log_in()
        assert answer.status == 429
        assert WORDS["MANY_KEYS"] in answer.text
        assert (await page.browser.open("/memory")).status == 401


async def test_every_answer_forbids_scripts_of_others_frames_and_caches(home: Path) -> None:
    async with open_page(home) as page:
        for path in ("/", "/memory", "/nothing", "/memory/facts/1", "/login?key=x"):
            answer = await page.browser.open(path)
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cache-Control"] == "no-store"
            # No external request, no script and no style inside of the page.
            assert not re.search(r"(?:src|href|action)=\"(?!/|#|[^\"]*:\d+/)", answer.body), path
            assert not re.search(r"<script(?! src=\"/static/)|<style|style=|\bon\w+=", answer.body)


async def test_login_is_listed_and_can_be_ended(home: Path) -> None:
    async with open_page(home) as page, open_browser(page.server) as other:
        await other.log_in()
        listed = await page.browser.open("/logins")
        forms = [form for form in listed.forms if form.action == "/do/end-login"]
        assert len(forms) == 2
        machine = load_texts("en").table("page_logins")["THIS_MACHINE"]
        assert listed.text.count(f", {machine}") == 4
        own = re.search(r"this browser.*?name=\"login\" value=\"(\w+)\"", listed.body, re.S)
        assert own is not None
        foreign = next(form for form in forms if form.fields["login"] != own[1])
        ended = await page.browser.send(foreign)
        assert "The login has ended." in ended.text
        assert (await other.open("/memory")).status == 401
        assert (await page.browser.open("/memory")).status == 200


async def test_logins_of_all_own_accounts_are_listed_with_their_links_and_ended(home: Path) -> None:
    async with open_page(home) as page, open_browser(page.server) as other:
        link = re.search(r"http://\S+", (await page.harness.say("/web")).text)
        assert link is not None
        await other.log_in(link[0])
        for browser in (page.browser, other):
            listed = (await browser.open("/logins")).text
            assert "With a link of mneme web" in listed
            # A program without a known name is shown with the name that it gives itself.
            assert "Another program Python/" in listed
            assert "With a link of /web in Telegram" in listed
        await page.browser.send((await page.browser.open("/logins")).form("/do/end-other-logins"))
        assert (await other.open("/memory")).status == 401
        assert (await page.browser.open("/memory")).status == 200


async def test_all_logins_but_the_own_end_with_one_click(home: Path) -> None:
    async with open_page(home) as page, open_browser(page.server) as other:
        await other.log_in()
        listed = await page.browser.open("/logins")
        left = await page.browser.send(listed.form("/do/end-other-logins"))
        assert [form.action for form in left.forms].count("/do/end-login") == 1
        assert (await other.open("/memory")).status == 401
        assert (await page.browser.open("/memory")).status == 200


async def test_error_page_has_the_language_that_the_person_chose(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.say("/language de")
        missing = await page.browser.open("/nosuch", **{"Accept-Language": "en"})
        assert load_texts("de").table("page")["NOT_FOUND"] in missing.text


async def test_web_gives_the_owner_a_link_in_the_direct_chat_only(home: Path) -> None:
    async with open_page(home, is_logged_in=False) as page:
        reply = await page.harness.say("/web")
        link = re.search(r"http://\S+", reply.text)
        assert link is not None
        await page.browser.log_in(link[0])
        assert (await page.browser.open("/memory")).status == 200


async def test_person_whose_access_was_removed_can_no_longer_open_the_web_page(home: Path) -> None:
    async with open_page(home, options="people = true", is_logged_in=False) as page:
        services = page.harness.services
        ana = Account(platform="telegram", user_id="7")
        await services.people.record_name(ana, "Ana")
        visitor = Visitor(
            account=ana,
            address=Address(platform="telegram", chat_id="7"),
            scope=Scope.account("telegram", "7"),
            name="Ana",
        )
        await page.browser.log_in(f"/login?key={services.page_logins.create_key(visitor)}")
        assert (await page.browser.open("/memory")).status == 200
        await services.removals.remove([ana], services.clock.now(), is_blocked=False)
        assert (await page.browser.open("/memory")).status == 403
        assert (await page.browser.open("/memory")).status == 401


async def test_web_pages_show_a_person_nothing_of_other_people(home: Path) -> None:
    async with open_page(home, options="people = true", is_logged_in=False) as page:
        services = page.harness.services
        await page.browser.log_in()
        await page.harness.say("/remember My cat is called Nero")
        facts = await services.facts.list_page(frozenset({OWNER_SCOPE}))
        ana = Account(platform="telegram", user_id="7")
        visitor = Visitor(
            account=ana,
            address=Address(platform="telegram", chat_id="7"),
            scope=Scope.account("telegram", "7"),
            name="Ana",
        )
        async with open_browser(page.server) as other:
            await other.log_in(f"/login?key={services.page_logins.create_key(visitor)}")
            assert "Nero" not in (await other.open("/memory")).body
            foreign = await other.open(f"/memory/facts/{facts[0].id}")
            missing = await other.open("/memory/facts/999999")
            assert (foreign.status, foreign.body) == (missing.status, missing.body)
            assert foreign.status == 404
        assert "Nero" in (await page.browser.open("/memory")).body


async def test_password_is_asked_for_in_addition_to_the_link(home: Path) -> None:
    options = 'password = "MNEME_PAGE_PASSWORD"\nbind = "0.0.0.0"'
    variables = {"MNEME_PAGE_PASSWORD": "correct horse"}
    async with open_page(home, options=options, variables=variables, is_logged_in=False) as page:
        asked = await page.browser.open(page.server.create_owner_link())
        form = asked.form("/login")
        assert (await page.browser.open("/memory")).status == 401
        wrong = await page.browser.send(form, password="wrong horse")
        assert (wrong.status, WORDS["WRONG_PASSWORD"] in wrong.text) == (401, True)
        assert (await page.browser.send(Form("/login", {"key": "x"}), password="y")).status == 401
        right = await page.browser.send(form, password="correct horse")
        assert right.status == 200
        assert (await page.browser.open("/memory")).status == 200
        for number in range(MAX_WRONG_KEYS):
            await page.browser.send(form, password=f"guess {number}")
        assert (await page.browser.send(form, password="correct horse")).status == 429


async def test_web_page_behind_a_proxy_requires_its_header_and_configured_host(home: Path) -> None:
    options = 'proxy_header = "X-Remote-User"\nbind = "0.0.0.0"\nurl = "https://mneme.example/"'
    async with open_page(home, options=options, is_logged_in=False) as page:
        link = page.server.create_owner_link()
        assert link.startswith("https://mneme.example/login?key=")
        port = page.harness.services.settings.web.port
        path = f"http://127.0.0.1:{port}{link.removeprefix('https://mneme.example')}"
        refused = await page.browser.open(path, Host="mneme.example")
        assert (refused.status, WORDS["NO_PROXY"] in refused.text) == (403, True)
        headers = {"Host": "mneme.example", "X-Remote-User": "ana"}
        form = (await page.browser.open(path, **headers)).form("/login")
        sent = {**headers, "Origin": "https://mneme.example"}
        url = f"http://127.0.0.1:{port}/login"
        session = page.browser.session
        async with session.post(
            url, data=form.fields, headers=sent, allow_redirects=False
        ) as welcome:
            assert welcome.status == 303
            assert "Secure" in welcome.headers["Set-Cookie"]
        other = await page.browser.open(path, **{**headers, "Host": "evil.example"})
        assert other.status == 421


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ('bind = "0.0.0.0"', "other machines reach the page"),
        ('bind = "everywhere"', "should be an address"),
        ('proxy_header = "X Remote"', "web.proxy_header"),
    ],
)
def test_web_page_open_to_other_machines_is_refused_without_tls_or_password(
    home: Path, options: str, problem: str
) -> None:
    (home / "mneme.toml").write_text(f"[web]\n{options}\n")
    with pytest.raises(SettingsError, match=problem):
        Settings.load({"MNEME_HOME": str(home)})


@pytest.mark.parametrize(
    ("options", "level", "words"),
    [
        ("", "ok", "from this machine only"),
        ('bind = "0.0.0.0"\npassword = "PAGE_PASSWORD"', "fix", "Without https"),
        (
            'bind = "0.0.0.0"\nproxy_header = "X-User"\nurl = "https://mneme.example"',
            "look",
            "only your reverse proxy",
        ),
    ],
)
async def test_security_check_states_who_can_reach_the_web_page(
    home: Path, options: str, level: str, words: str
) -> None:
    (home / "mneme.toml").write_text(f"[web]\nenabled = true\n{options}\n")
    settings = Settings.load({"MNEME_HOME": str(home), "PAGE_PASSWORD": "x"})
    (finding,) = [f for f in await list_findings(settings) if f.subject == "page"]
    assert finding.level == level
    assert words in f"{finding.text} {finding.advice}"


def test_gateway_without_the_page_loads_no_web_server_and_no_template_engine() -> None:
    program = "import sys, gateway.app; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "gateway.web.access" in loaded
    assert loaded.isdisjoint({"jinja2", "aiohttp.web", "gateway.web.server", "gateway.web.pages"})


async def test_top_of_a_slow_web_page_is_sent_before_the_rest_is_loaded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_page(home) as page:
        may_load = asyncio.Event()
        recall = page.harness.services.recall.recall

        async def wait_and_recall(query: SearchQuery) -> SearchResults:
            await may_load.wait()
            return await recall(query)

        monkeypatch.setattr(page.harness.services.recall, "recall", wait_and_recall)
        url = page.server.address + "/recall?q=ferry"
        async with page.browser.session.get(url) as answer:
            top = await answer.content.readuntil(b"</header>")
            assert b"page.css" in top
            may_load.set()
            rest = await answer.read()
    document = (top + rest).decode()
    assert document.count("<main") == 1
    assert document.count("</html>") == 1
    assert 'value="ferry"' in document


async def test_failure_after_the_top_of_a_page_is_told_in_the_page(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_page(home) as page:

        async def fail(query: SearchQuery) -> SearchResults:
            raise StoreError("The disk is full.")

        monkeypatch.setattr(page.harness.services.recall, "recall", fail)
        shown = await page.browser.open("/recall?q=ferry")
    assert "The disk is full." in shown.text
    assert shown.body.count("<main") == 1
    assert shown.body.rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/140.0.0.0 Safari/537.36",
            "Chrome 140 on Linux",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 "
            "(KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
            "Safari 19 on iPhone",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
            "Edge 140 on Windows",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Firefox 140 on macOS",
        ),
        ("Python/3.11 aiohttp/3.14", "Another program"),
    ],
)
def test_browser_of_a_web_login_is_named_from_its_user_agent(user_agent: str, name: str) -> None:
    assert name_browser(load_texts("en").table("page_logins"), user_agent) == name
