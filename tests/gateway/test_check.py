"""The check: it finds what is wrong, says what to do, and asks the platforms through their real
clients."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from filelock import FileLock

from adapters.discord.adapter import check_discord
from adapters.telegram.adapter import check_telegram
from config.settings import Settings
from core.errors import AccessRefused, ConfigError, DeliveryError, ModelError, StoreError
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.search.chunks import flag_for_rebuild
from core.store.sqlite.database import Database
from core.store.sqlite.integrity import find_damage
from core.store.sqlite.opening import MIN_SQLITE_VERSION, SQLITE_VERSION
from gateway.check import repair_indexes, run_checks, run_probe
from gateway.commands.status import StatusCommands
from gateway.services import Services
from gateway.texts.catalog import ENGLISH as texts
from gateway.texts.catalog import load_texts
from gateway.upkeep.home_checks import CheckResult
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.embedding_service import EmbeddingDouble
from tests.fixtures.english_words import find_english
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.provider_harness import plugged
from tests.fixtures.samples import ANA, NOON
from tests.fixtures.web_pages import serve_pages
from tests.services.doubles.double import KEY, running

pytestmark = pytest.mark.slow


@asynccontextmanager
async def served(*routes: web.RouteDef) -> AsyncIterator[str]:
    """A loopback server; its address."""
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_check_of_a_new_home_reports_only_right_or_off(home: Path) -> None:
    settings = Settings.load({"MNEME_HOME": str(home)})
    findings = await run_checks(settings)
    assert {finding.state for finding in findings} == {"right", "off"}
    assert all(finding.advice for finding in findings if finding.state == "off")


async def test_check_lists_dead_letters_until_they_are_dropped(home: Path) -> None:
    settings = Settings.load({"MNEME_HOME": str(home)})
    async with Services.open(settings) as services:
        await services.inbox.store_dead_letter(
            "telegram", 7, {"message": "odd"}, "ValueError: no chat at https://me:hunter2@host"
        )
    (listed,) = [one for one in await run_checks(settings) if one.subject == "set aside"]
    assert listed.state == "wrong"
    assert listed.text.endswith(" telegram: ValueError: no chat at https://[secret]@host")
    assert "mneme check --repair deletes them" in listed.advice
    assert (await repair_indexes(settings)).state == "right"
    assert [one for one in await run_checks(settings) if one.subject == "set aside"] == []


async def test_check_reports_the_platform_error_that_the_running_gateway_has(home: Path) -> None:
    async with BotApi() as api:
        variables = {"TELEGRAM_BOT_TOKEN": api.token, "MNEME_TELEGRAM_API_URL": api.url}
        settings = Settings.load({"MNEME_HOME": str(home), **variables})
        state = "out of reach (another process polls with this token), trying again"
        async with Services.open(settings) as services:
            await services.save_platform_states({"telegram": state, "terminal": "connected"})

        async def found() -> CheckResult:
            (result,) = [one for one in await run_checks(settings) if one.subject == "telegram"]
            return result

        with FileLock(home / "gateway.lock"):
            beside = await found()
            async with Services.open(settings) as services:
                status = StatusCommands(services, None)
                assert f"**telegram**: {state}" in await status.render_lines(texts)
                russian = load_texts("ru")
                lines = await status.render_lines(russian)
                assert f"**терминал**: {russian.word_state('connected')}" in lines
        alone = await found()
    assert (alone.state, alone.text) == ("right", "The token is valid; the bot is @mneme_bot.")
    assert (beside.state, beside.text) == (
        "wrong",
        f"{alone.text} But the running gateway reports: {state}.",
    )


async def test_check_reports_a_memory_service_that_fails_in_the_running_gateway(home: Path) -> None:
    plugged(home, "diary")
    (home / "mneme.toml").write_text("[memory.providers.diary]\n")
    (home / "mneme.toml").chmod(0o600)
    settings = Settings.load({"MNEME_HOME": str(home)})
    state = "out of order, tried again from time to time: no answer within 8 s"
    async with Services.open(settings) as services:
        await services.save_platform_states({"memory diary": state})
        assert not any(
            state in line for line in await StatusCommands(services, None).render_lines(texts)
        ), "nobody runs"
        with FileLock(home / "gateway.lock"):
            assert f"**memory diary**: {state}" in await StatusCommands(
                services, None
            ).render_lines(texts)
            (found,) = [one for one in await run_checks(settings) if one.subject == "memory diary"]
    assert (found.state, f"But the running gateway reports: {state}." in found.text) == (
        "wrong",
        True,
    )


async def test_check_reports_a_renamed_settings_option(home: Path) -> None:
    (home / "mneme.toml").write_text("[model]\ncheap = 'small'\n")
    first = (await run_checks(Settings.load({"MNEME_HOME": str(home)})))[0]
    assert (first.subject, first.state) == ("settings", "right")
    assert first.advice == "model.cheap is now called model.helper; rename it in mneme.toml."


async def test_check_reports_a_program_for_speech_that_is_not_installed(home: Path) -> None:
    (home / "mneme.toml").write_text('[media.transcriber]\ncommand = ["wisper", "{file}"]\n')
    results = await run_checks(Settings.load({"MNEME_HOME": str(home)}))
    (problem,) = [result for result in results if result.state == "wrong"]
    assert problem.text == (
        "media.transcriber.command names the program wisper, which isn't installed."
    )
    assert problem.command == "mneme config edit"


def test_open_files_are_reported_with_the_command_that_helps(home: Path) -> None:
    (home / "mneme.toml").write_text("")
    settings = Settings.load({"MNEME_HOME": str(home)})
    (home / "mneme.toml").chmod(0o644)
    assert {finding.state for finding in asyncio.run(run_checks(settings))} == {"right", "off"}, (
        "nobody comes so far"
    )
    home.chmod(0o755)
    wrong = [
        finding.command for finding in asyncio.run(run_checks(settings)) if finding.state == "wrong"
    ]
    assert wrong == [f"chmod 700 {home}", f"chmod 600 {home / 'mneme.toml'}"]


@pytest.mark.parametrize(
    "name",
    ["", "state.db", "plugins", "plugins/diary.py", "plugins/big", "plugins/big/__init__.py"],
)
async def test_check_reports_files_that_other_users_can_write(
    home: Path, tmp_path: Path, name: str
) -> None:
    plugged(home, "diary")
    (home / "plugins" / "big").mkdir()
    (home / "plugins" / "big" / "__init__.py").touch()
    assert {
        finding.state for finding in await run_checks(Settings.load({"MNEME_HOME": str(home)}))
    } == {"right", "off"}
    if os.geteuid() == 0:
        os.chown(home / name, 4711, -1)
        assert (
            await _wrong(home)
            == f"{home / name} belongs to another user (4711), who can replace it."
        )
        os.chown(home / name, 0, -1)
    elsewhere = tmp_path / "elsewhere"
    (home / name).rename(elsewhere)
    (home / name).symlink_to(elsewhere)
    assert (
        await _wrong(home)
        == f"{home / name} is a link to {elsewhere}. Anyone who can change the target controls Mneme."
    )


async def _wrong(home: Path) -> str:
    wrong = [
        finding
        for finding in await run_checks(Settings.load({"MNEME_HOME": str(home)}))
        if finding.state == "wrong"
    ]
    assert [finding.subject for finding in wrong] == ["privacy"]
    assert wrong[0].advice
    return wrong[0].text


async def test_check_reports_each_failed_probe_by_itself() -> None:
    async def fine() -> str:
        return "It answers."

    async def broken() -> str:
        raise ModelError("It does not.")

    async def nowhere() -> None:
        return None

    right = await run_probe("one", fine())
    assert (right.state, right.text) == ("right", "It answers.")
    wrong = await run_probe("two", broken())
    assert (wrong.state, wrong.text) == ("wrong", "It does not.")
    off = await run_probe("telegram", nowhere())
    assert (off.state, off.advice) == ("off", texts.table("SET_UP")["telegram"])


async def test_check_advises_a_new_token_only_if_the_platform_refuses_it() -> None:
    async def unreached() -> str:
        raise DeliveryError("Telegram cannot be reached: the name cannot be resolved")

    async def refused() -> str:
        raise AccessRefused("Telegram refuses the token")

    assert (await run_probe("telegram", unreached())).advice == texts.compose("network_fault")
    assert (await run_probe("telegram", refused())).advice == texts.table("MEND")["telegram"]


async def test_settings_that_cannot_be_read_are_listed() -> None:
    findings = await run_checks(None, ("a.b: is wrong", "c: isn't a known option"))
    assert [finding.text for finding in findings if finding.state == "wrong"] == [
        "a.b: is wrong",
        "c: isn't a known option",
    ]


async def test_a_problem_of_the_environment_is_not_put_right_in_a_file() -> None:
    problems = ("MNEME_HOME: the folder cannot be made", "model.tries: should be a whole number")
    findings = await run_checks(None, problems)
    assert [finding.advice for finding in findings[:2]] == [
        "Set MNEME_HOME.",
        "Correct it in mneme.toml: mneme config edit.",
    ]


async def test_check_finds_a_damaged_page_of_the_database_file(tmp_path: Path) -> None:
    assert SQLITE_VERSION >= MIN_SQLITE_VERSION
    path = tmp_path / "state.db"
    async with Database.open(path) as database:
        rows = [{"key": f"key {number}", "value": "x" * 500} for number in range(200)]
        statement = "INSERT INTO state_meta (key, value) VALUES (:key, :value)"
        await database.write(lambda connection: connection.executemany(statement, rows).close())
        assert await find_damage(database) == []
    raw = bytearray(path.read_bytes())
    raw[-6 * 4096 : -5 * 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    async with Database.open(path) as database:
        assert await _complaints(database)


async def _complaints(database: Database) -> list[str]:
    """What the check says of a file: SQLite lists damage, or cannot even begin to."""
    try:
        return await find_damage(database)
    except StoreError as error:
        return [str(error)]


@pytest.mark.parametrize(
    "error",
    [
        DeliveryError(
            "Telegram (https://api.telegram.org) cannot be reached: "
            "the name api.telegram.org cannot be resolved"
        ),
        DeliveryError(
            "discord_unreachable", reason="the name of Discord's server cannot be resolved"
        ),
    ],
)
async def test_check_of_an_unreachable_platform_is_worded_in_the_readers_language(
    error: DeliveryError,
) -> None:
    async def unreached() -> str:
        raise error

    text = (await run_probe("telegram", unreached(), load_texts("de"))).text
    assert "lässt sich nicht auflösen" in text
    assert "cannot" not in text


async def test_check_of_the_telegram_token_distinguishes_valid_refused_and_unreachable() -> None:
    async def get_me(request: web.Request) -> web.Response:
        if request.match_info["token"] != "1:good":
            return web.json_response(
                {"ok": False, "error_code": 401, "description": "Unauthorized"}, status=401
            )
        me = {"id": 1, "is_bot": True, "first_name": "Mneme", "username": "mneme_bot"}
        return web.json_response({"ok": True, "result": me})

    async with served(web.post("/bot{token}/getMe", get_me)) as root:
        assert "@mneme_bot" in await check_telegram("1:good", root)
        with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN"):
            await check_telegram("1:bad", root)
    with pytest.raises(DeliveryError, match="reached") as caught:
        await check_telegram("1:good", "http://127.0.0.1:9")
    assert "1:good" not in str(caught.value)


async def test_check_of_the_discord_token_distinguishes_valid_refused_and_unreachable() -> None:
    flags = {"flags": 0}

    def answered(value: object) -> web.Response:
        # The library reads an answer as JSON only where the type stands alone.
        return web.Response(body=json.dumps(value).encode(), content_type="application/json")

    async def me(request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Bot good":
            return web.json_response({"message": "401: Unauthorized", "code": 0}, status=401)
        return answered(
            {"id": "1", "username": "mneme", "discriminator": "0", "avatar": None, "bot": True}
        )

    async def application(_: web.Request) -> web.Response:
        names = {"id": "1", "name": "mneme", "description": "", "icon": None, "verify_key": ""}
        people = {"owner": {"id": "2", "username": "o", "discriminator": "0", "avatar": None}}
        return answered(
            {**names, **people, "bot_public": True, "bot_require_code_grant": False, **flags}
        )

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    async def checked(token: str, url: str, *, has_message_content: bool = False) -> str:
        return await check_discord(token, url, has_message_content=has_message_content)

    routes = [
        web.get("/api/v10/users/@me", me),
        web.get("/api/v10/oauth2/applications/@me", application),
    ]
    async with served(*routes, web.get("/x/users/@me", page)) as root:
        assert "mneme" in await checked("good", root)
        with pytest.raises(ConfigError, match="DISCORD_BOT_TOKEN"):
            await checked("bad", root)
        with pytest.raises(ConfigError, match="Message Content Intent"):
            await checked("good", root, has_message_content=True)
        flags["flags"] = 1 << 19
        assert "mneme" in await checked("good", root, has_message_content=True)
        for other in (f"{root}/x", f"{root}/missing", "http://127.0.0.1:9"):
            with pytest.raises(DeliveryError):
                await checked("good", other)


async def test_check_reports_facts_that_are_missing_from_the_search_index(
    home: Path, clock: SteadyClock
) -> None:
    (home / "mneme.toml").write_text("")
    settings = Settings.load({"MNEME_HOME": str(home)})
    async with Database.open(home / "state.db") as database:
        await Facts(database, clock).learn(
            Fact(
                scope=ANA, content="I like olives", kind="identity", origin="rule", created_at=NOON
            )
        )
        await database.write(lambda connection: connection.execute("DELETE FROM facts_fts").close())
    (wrong,) = [
        finding for finding in await run_checks(settings) if finding.subject == "search index"
    ]
    assert (wrong.state, wrong.text.rpartition(" ")[2]) == ("wrong", "1.")


# Words that are the same in English and French, or names of settings and products.
FRENCH_WORDS = ("SearXNG settings.yml json search formats",)


@pytest.mark.parametrize("state", ["right", "wrong"])
async def test_check_of_all_servers_in_french_has_no_english_word(
    home: Path, tmp_path: Path, state: str
) -> None:
    works = state == "right"
    project = tmp_path / "projet"
    project.mkdir()
    (project / "CLAUDE.md").write_text("@absent.md")
    double = EmbeddingDouble()
    async with (
        MessagesApi(key="sk-ant-1" if works else "sk-ant-2") as api,
        running(double),
        serve_pages() as pages,
        served(web.post("/bot1:A/getMe", answer_with_bot)) as bot_api,
    ):
        if works:
            pages.add("/search", '{"results": []}', "application/json")
            pages.add("/agenda.ics", "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n")
        (home / "mneme.toml").write_text(
            f'[context]\nfolders = ["{project}", "{tmp_path / "absent"}"]\n'
            f'[web_tools]\nsearch = "searxng"\nsearxng_url = "http://127.0.0.1:{pages.port}"\n'
            f'[calendar.perso]\nurl = "http://127.0.0.1:{pages.port}/agenda.ics"\n'
            f'[recall.embeddings]\nurl = "{double.url}/v1"\nmodel = "petit"\n'
            'key = "SERVICE_KEY"\n'
        )
        settings = Settings.load(
            {
                "MNEME_HOME": str(home),
                "ANTHROPIC_API_KEY": "sk-ant-1",
                "ANTHROPIC_BASE_URL": api.url,
                "TELEGRAM_BOT_TOKEN": "1:A" if works else "1:B",
                "SERVICE_KEY": KEY if works else "autre",
                "MNEME_TELEGRAM_API_URL": bot_api,
            }
        )
        results = await run_checks(settings, texts=load_texts("fr"))
    states = {result.subject: result.state for result in results}
    for subject in ("model", "telegram", "embeddings", "web search", "calendar perso"):
        assert states[subject] == state, [result.text for result in results]
    typed = [str(home), str(project), "absent.md", "perso petit", *FRENCH_WORDS]
    for result in results:
        shown = f"{result.text}\n{result.advice}"
        assert find_english(shown, "fr", typed) == [], shown


async def answer_with_bot(_: web.Request) -> web.Response:
    me = {"id": 1, "is_bot": True, "first_name": "Mneme", "username": "mneme_bot"}
    return web.json_response({"ok": True, "result": me})


async def test_damaged_search_index_is_reported_in_french(home: Path) -> None:
    settings = Settings.load({"MNEME_HOME": str(home)})
    async with Services.open(settings) as services:
        await services.database.write(flag_for_rebuild)
    results = await run_checks(settings, texts=load_texts("fr"))
    (damage,) = [result for result in results if result.subject == "search index"]
    assert damage.state == "wrong"
    assert find_english(f"{damage.text} {damage.advice}", "fr", []) == []


async def test_explanation_of_a_service_follows_the_sentence_in_french() -> None:
    error = DeliveryError("service_refused", name="zep", code="400", words="trop long")
    assert str(error) == "zep refuses it (HTTP status 400): trop long"
    assert (
        load_texts("fr").word(error) == "zep refuse la demande (statut HTTP 400)\u00a0: trop long"
    )
