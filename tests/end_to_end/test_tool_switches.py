"""/tools: each person decides what the model may use outside for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.tools.switches import find_tool_group
from core.types import Account, Scope
from gateway.commands.models import ToolCommands
from tests.end_to_end.test_web import open_web, result_of
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow


async def test_web_that_is_switched_off_is_not_asked_until_it_is_on_again(home: Path) -> None:
    async with open_web(home) as web:
        url = web.pages.url("/times")
        assert (await web.harness.say("/tools off web")).text.startswith("I no longer use web")
        question = f"When does the ferry leave? {url}"
        await web.ask(question, web.fetch("/times"), says("I can't look."))
        assert web.pages.requests == []
        assert "`/tools on web` switches it on again" in result_of(web.model.requests[-1])
        await web.harness.say("/tools on web")
        answer = await web.ask(question, web.fetch("/times"), says("At 10:40."))
        assert answer.startswith("At 10:40.")


async def test_tools_command_turns_a_tool_off_for_one_person_only(home: Path) -> None:
    async with open_web(home) as web:
        await web.harness.say("/tools off web", who="7")
        url = web.pages.url("/times")
        await web.ask(f"When? {url}", web.fetch("/times"), says("At 10:40."))
        assert len(web.pages.requests) == 1


async def test_tools_command_lists_tool_groups_with_a_button_for_each(home: Path) -> None:
    async with open_web(home, '[calendar.home]\nurl = "http://127.0.0.1:9/feed.ics"\n') as web:
        listed = await web.harness.say("/tools")
        assert listed.text.endswith("- calendar: on\n- web: on")
        assert listed.answer is not None
        buttons = [button.label for button in listed.answer.buttons]
        assert buttons == ["Switch calendar off", "Switch web off"]
        wrong = (await web.harness.say("/tools off wb")).text
        assert wrong.endswith("The groups are calendar and web.")


SWITCHES = [
    ("de", "aus kalender", "- Kalender: aus\n- Web: an"),
    ("de", "web aus", "- Kalender: an\n- Web: aus"),
    ("de", "off calendar", "- Kalender: aus\n- Web: an"),
    ("es", "desactivar calendario", "- calendario: desactivado\n- web: activado"),
    ("fr", "désactiver calendrier", "- calendrier : désactivé\n- web : activé"),
    ("pt-BR", "desligar calendário", "- calendário: desligado\n- web: ligado"),
    ("ru", "выкл календарь", "- календарь: выключено\n- веб: включено"),
    ("tr", "kapat takvim", "- takvim: kapal\u0131\n- web: a\u00e7\u0131k"),
    ("zh", "关 日历", "- 日历：关\n- 网页：开"),
    ("ja", "オフ カレンダー", "- カレンダー：オフ\n- ウェブ：オン"),
    ("zh", "关日历", "- 日历：关\n- 网页：开"),
    ("ja", "カレンダーオフ", "- カレンダー：オフ\n- ウェブ：オン"),
    ("fr", "desactiver CALENDRIER", "- calendrier : désactivé\n- web : activé"),
    ("tr", "KAPAT takvim", "- takvim: kapal\u0131\n- web: a\u00e7\u0131k"),
    ("ko", "끄기 캘린더", "- 캘린더: 꺼짐\n- 웹: 켜짐"),
]


async def test_tools_command_reads_and_names_groups_in_the_persons_language(home: Path) -> None:
    options = '[calendar.home]\nurl = "http://127.0.0.1:9/feed.ics"\n'
    async with open_gateway(home, ScriptedModel(), options) as harness:
        for language, switch, listed in SWITCHES:
            await harness.say(f"/language {language}")
            await harness.say(f"/tools {switch}")
            text = (await harness.say("/tools")).text
            assert text.replace("\u00a0", " ").replace("\u202f", " ").endswith(listed), text
            for group in ("calendar", "web"):
                await harness.say(f"/tools on {group}")


async def test_autocomplete_of_tools_names_groups_in_the_language_of_the_chat(home: Path) -> None:
    options = '[calendar.home]\nurl = "http://127.0.0.1:9/feed.ics"\n'
    async with open_gateway(home, ScriptedModel(), options) as harness:
        await harness.say("/language fr")
        command = ToolCommands(harness.services, harness.agent.tool_runner.tools.values())
        scope = Scope.account("telegram", "42")
        assert await command.autocomplete("tools", "Cale", scope, None) == {
            "calendar": "calendrier"
        }
        assert await command.autocomplete("tools", "calendar", scope, None) == {
            "calendar": "calendrier"
        }


async def test_linked_accounts_share_the_tools_turned_off(home: Path) -> None:
    async with open_web(home) as web:
        services = web.harness.services
        await web.harness.say("/tools off web")
        terminal = Account(platform="terminal", user_id="local")
        assert (await services.load_preference(terminal)).switched_off == {"web"}


async def test_tools_command_without_external_tools_states_that_none_is_set_up(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), "[web_tools]\nfetch = false\n") as harness:
        assert (await harness.say("/tools")).text.startswith("No outside tools are set up")


@each_row(
    ("name", "arguments", "group"),
    [
        ("web_search", {}, "web"),
        ("notes__search", {}, "notes"),
        ("call_tool", {"tool_name": "notes__search"}, "notes"),
        ("call_tool", {}, ""),
        ("memory", {}, ""),
    ],
)
def test_group_of_a_tool_is_the_web_the_calendar_or_its_server(
    name: str, arguments: dict[str, str], group: str
) -> None:
    assert find_tool_group(name, arguments) == group
