"""`mneme check --security`: each finding with a real home, and what to do about it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from core.types import Account
from gateway.services import Services
from tests.fixtures.command_line import good, mneme
from tests.fixtures.gateway_harness import open_gateway

pytestmark = pytest.mark.slow

OWNER = "[owner]\ntelegram = [42]\n"


def list_findings(home: Path, options: str = "", **environ: str) -> list[dict[str, Any]]:
    if options:
        (home / "mneme.toml").write_text(options)
        (home / "mneme.toml").chmod(0o600)
    result = mneme(home, "check", "--security", "--json", **environ)
    findings: list[dict[str, Any]] = json.loads(result.stdout)
    has_fault = any(finding["level"] == "fix" for finding in findings)
    assert result.returncode == int(has_fault), result.stderr
    return findings


def find(findings: list[dict[str, Any]], subject: str, text: str) -> dict[str, Any]:
    matches = [one for one in findings if one["subject"] == subject and text in one["text"]]
    assert len(matches) == 1, findings
    return matches[0]


def test_home_of_an_owner_alone_has_nothing_to_fix_or_to_look_at(home: Path) -> None:
    findings = list_findings(home, OWNER)
    assert {finding["level"] for finding in findings} == {"ok"}, findings
    assert "That's you, the owner." in find(findings, "people", "telegram:42")["text"]
    assert "input_tokens 20,000,000, " in find(findings, "limits", "limits.day: ")["text"]


def test_security_check_of_a_home_without_an_owner_explains_how_to_set_one(home: Path) -> None:
    finding = find(list_findings(home, "[general]\n"), "people", "No account is the owner's")
    assert finding["level"] == "look"
    assert "/whoami" in finding["advice"]


async def test_owner_approved_by_code_is_no_stranger(home: Path) -> None:
    account = Account(platform="telegram", user_id="42")
    async with Services.open(Settings.load({"MNEME_HOME": str(home)})) as services:
        pairing = await services.people.request_pairing(account, "Ana", services.clock.now())
    assert pairing is not None
    await asyncio.to_thread(good, home, "approve", pairing.code, "--owner")
    owner = find(await asyncio.to_thread(list_findings, home), "people", "telegram:42")
    assert [owner["level"], owner["key"]] == ["ok", "owner"]


async def test_everyone_who_is_served_is_listed_with_the_reason(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("hello", "7")
        await harness.say("hello")
        await harness.say("hello", "99")
    findings = list_findings(home)
    other = find(findings, "people", "telegram:7 (")
    assert other["level"] == "look"
    assert "by mneme.toml" in other["text"]
    assert "mneme people" in other["advice"]
    assert find(findings, "people", "People who ask for access: 1.")["level"] == "look"


def test_groups_whose_members_reach_the_model_are_listed(home: Path) -> None:
    options = f'{OWNER}rooms = ["telegram:-9"]\n[access]\nrooms = ["telegram:-5"]\n'
    options += "[room]\nlisten = true\n[limits]\nroom_questions = true\n"
    findings = list_findings(home, options)
    member = find(findings, "groups", "Every member of telegram:-5")
    assert member["level"] == "look"
    assert "access.rooms" in member["advice"]
    assert find(findings, "groups", "telegram:-9 is yours alone")["level"] == "ok"
    assert "room.listen" in find(findings, "groups", "stores everything")["advice"]
    assert "room_questions" in find(findings, "groups", "schedule questions")["advice"]


def test_limits_that_are_off_are_to_be_fixed(home: Path) -> None:
    options = f'{OWNER}[limits.day]\nmoney = "off"\n[limits.owner_day]\nmoney = 0\ntokens = 0\n'
    findings = list_findings(home, options)
    finding = find(findings, "limits", "limits.day has no limit for money")
    assert finding["level"] == "fix"
    assert "[limits.day]" in finding["advice"]
    assert find(findings, "limits", "You have no daily limit")["level"] == "look"
    assert find(findings, "limits", "limits.room_day: ")["level"] == "ok"


@pytest.mark.parametrize(
    ("options", "environ", "name"),
    [
        ("", {"ANTHROPIC_BASE_URL": "http://models.example/v1"}, "anthropic_base_url"),
        ("", {"MNEME_DISCORD_GATEWAY_URL": "ws://gateway.example"}, "discord_gateway_url"),
        (
            '[recall.embeddings]\nurl = "http://10.0.0.7:8080/v1"\nmodel = "m"\n',
            {},
            "recall.embeddings.url",
        ),
        (
            '[memory.providers.honcho]\nurl = "http://diary.example"\n',
            {},
            "memory.providers.honcho.url",
        ),
    ],
)
def test_security_check_asks_to_fix_a_model_or_service_url_over_plain_http(
    home: Path, options: str, environ: dict[str, str], name: str
) -> None:
    finding = find(list_findings(home, OWNER + options, **environ), "servers", name)
    assert finding["level"] == "fix"
    assert "s://" in finding["advice"]


def test_server_on_this_machine_may_be_reached_without_tls(home: Path) -> None:
    findings = list_findings(home, OWNER, ANTHROPIC_BASE_URL="http://127.0.0.1:8080")
    assert [one["level"] for one in findings if one["subject"] == "servers"] == ["ok"]


def test_plugins_and_skills_with_scripts_are_listed(home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "diary.py").write_text("")
    for name, script in (("tidy", "scripts/sort.py"), ("plain", "references/a.md")):
        file = home / "skills" / name / script
        file.parent.mkdir(parents=True)
        file.write_text("x")
        (home / "skills" / name / "SKILL.md").write_text("---\nname: x\n---\n")
    findings = list_findings(home, OWNER)
    plugin = find(findings, "plugins", "plugins/diary (switched off)")
    skill = find(findings, "skills", "The skill tidy has scripts (1), such as scripts/sort.py")
    assert (plugin["level"], skill["level"]) == ("look", "look")
    assert not any("plain" in finding["text"] for finding in findings)


def test_open_home_and_folder_of_prompts_that_others_can_write_are_to_be_fixed(
    home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    project.chmod(0o777)
    # Mneme closes a home of its own, but not one with the sticky bit, such as a shared folder.
    home.chmod(0o1755)
    findings = list_findings(home, f'{OWNER}[context]\nfolders = ["{project}"]\n')
    open_home = find(findings, "rights", f"read or write {home}.")
    open_project = find(findings, "rights", f"can write {project}.")
    assert (open_home["level"], open_project["level"]) == ("fix", "fix")
    assert open_home["advice"] == f"Run `chmod go= {home}`."
    assert open_project["advice"] == f"Run `chmod go-w {project}`."


def test_lines_for_people_name_the_level_and_the_advice(home: Path) -> None:
    (home / "mneme.toml").write_text('[access]\nrooms = ["telegram:-5"]\n')
    (home / "mneme.toml").chmod(0o600)
    lines = mneme(home, "check", "--security").stdout.splitlines()
    assert any(line.startswith("look  groups") and "access.rooms" in line for line in lines)


def test_findings_have_the_fields_of_the_check_and_name_the_place_and_the_command(
    home: Path,
) -> None:
    options = f"{OWNER}[access]\nrooms = ['discord:77']\n[room]\nlisten = true\n"
    (home / "plugins").mkdir()
    (home / "plugins" / "diary.py").touch()
    findings = list_findings(home, options, OPENAI_API_KEY="x")
    checked = json.loads(mneme(home, "check", "--json").stdout)
    fields = {"subject", "text", "key", "values", "advice", "where", "command"}
    assert all(fields <= set(row) for row in (*findings, *checked))
    group = find(findings, "groups", "discord:77")
    assert [group["where"], group["key"], group["values"]] == [
        "access.rooms",
        "group_members",
        {"group": "discord:77"},
    ]
    assert find(findings, "plugins", "diary")["where"] == str(home / "plugins" / "diary.py")
    listening = next(row for row in findings if row["where"] == "room.listen")
    assert listening["command"] == "mneme config set room.listen false"
    assert all(row["command"] for row in findings if row["level"] == "fix")


def test_keys_and_values_of_findings_say_the_same_in_every_language(home: Path) -> None:
    options = "[access]\npeople = ['telegram:7']\n[limits.day]\nmoney = 'off'\n"
    (home / "skills" / "tidy").mkdir(parents=True)
    (home / "skills" / "tidy" / "SKILL.md").write_text("---\nname: tidy\n---\n")
    (home / "skills" / "tidy" / "sort.py").touch()
    (home / "plugins").mkdir()
    (home / "plugins" / "diary.py").touch()
    runs = [
        [(row["subject"], row["level"], row["key"], row["values"]) for row in findings]
        for findings in (list_findings(home, options), list_findings(home, LC_ALL="de_DE.UTF-8"))
    ]
    assert runs[0] == runs[1]
    person = {"account": "telegram:7", "name": "", "access": "listed"}
    assert ("people", "look", "person", {"accounts": [person]}) in runs[0]
    assert ("limits", "fix", "limits_off", {"table": "limits.day", "limits": ["money"]}) in runs[0]
    assert ("skills", "look", "skill_scripts", {"name": "tidy", "scripts": ["sort.py"]}) in runs[0]
    assert ("plugins", "look", "plugin", {"name": "diary", "is_on": False}) in runs[0]
