"""`mneme memory providers` and `mneme memory setup` as a program sees them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from core.memory.plugins import SERVICES_FOLDER, Plugins
from gateway.cli.memory_services import ask_for_options
from tests.fixtures.command_line import good, mneme
from tests.fixtures.provider_harness import plugged
from tests.fixtures.scripted_terminal import open_terminal

pytestmark = pytest.mark.slow


def test_a_service_is_set_up_listed_and_switched_off(home: Path) -> None:
    plugged(home, "jotter")
    (home / "mneme.toml").write_text("# mine\n[general]\nzone = 'UTC'\n")
    assert "jotter: not set up; run mneme memory setup jotter" in good(home, "memory", "providers")
    lacking = mneme(home, "memory", "setup", "jotter", "--set", "url=http://127.0.0.1:1")
    assert lacking.returncode == 1
    assert (
        "key: what it knows us by (the name of the environment variable that holds it)"
        in lacking.stderr
    )
    options = ("--set", "url=http://x", "--set", "key=JOT_KEY", "--mode", "context")
    off = mneme(home, "memory", "setup", "jotter", *options)
    assert off.returncode == 1
    said = off.stdout
    assert "The options of the memory service jotter are stored, but it's off" in said
    assert "the environment variable JOT_KEY is not set" in said
    text = (home / "mneme.toml").read_text()
    assert text.startswith("# mine\n[general]\nzone = 'UTC'\n")
    expected = {"enabled": True, "mode": "context", "url": "http://x", "key": "JOT_KEY"}
    assert tomllib.loads(text)["memory"]["providers"]["jotter"] == expected
    listed = mneme(home, "memory", "providers", "--json", JOT_KEY="k")
    shown = json.loads(listed.stdout)
    assert shown["warnings"] == []
    rows = {row.pop("name"): row for row in shown["providers"]}
    assert rows["mem0"]["state"] == "not set up"
    packaged = {path.stem for path in SERVICES_FOLDER.glob("*.py")}
    states = {name: row["state"] for name, row in rows.items() if name not in packaged}
    assert states == {"notes": "on", "history": "on", "facts": "on", "jotter": "on"}
    assert [rows["notes"]["is_built_in"], rows["jotter"]["is_built_in"]] == [True, False]
    assert rows["jotter"]["mode"] == "context"
    on = mneme(home, "memory", "setup", "jotter", "--set", "url=http://y", JOT_KEY="k")
    assert (
        "The memory service jotter will be on after the next start. It then gets your notes and the conversations of the last day"
        in on.stdout
    )
    assert tomllib.loads((home / "mneme.toml").read_text())["memory"]["providers"][
        "jotter"
    ] == expected | {
        "url": "http://y",
    }
    good(home, "memory", "setup", "jotter", "--off")
    assert "jotter: off" in good(home, "memory", "providers")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nobody"], 1, "There is no memory provider nobody"),
        (["jotter", "--off"], 1, "isn't set up, so it's already off"),
        (
            ["jotter", "--set", "colour=red"],
            1,
            "There is no option colour. The options are: url, key",
        ),
        (
            ["jotter", "--set", "mode=tools"],
            1,
            "There is no option mode. The options are: url, key",
        ),
        (["jotter", "--set", "url"], 2, "write url=value"),
        (["jotter", "--set", "key=sk-1234"], 1, "not the secret itself"),
    ],
)
def test_provider_that_cannot_be_set_up_is_refused_with_a_sentence(
    home: Path, arguments: list[str], code: int, sentence: str
) -> None:
    plugged(home, "jotter")
    done = mneme(home, "memory", "setup", *arguments)
    assert done.returncode == code
    assert sentence in " ".join(done.stderr.split())
    assert not (home / "mneme.toml").exists()


@pytest.mark.parametrize(
    ("name", "key", "url", "secret"),
    [
        ("langchain", "url", "postgresql://ana:hunter22@db/mneme", "password"),
        ("langchain", "url", "postgresql://db/mneme?user=a&password=hunter22", "password"),
        ("zep", "graph_url", "neo4j://ana:hunter22@graph", "graph_password"),
    ],
)
def test_password_in_an_address_is_neither_stored_nor_shown(
    home: Path, name: str, key: str, url: str, secret: str
) -> None:
    options = ("--set", f"{key}={url}", "--set", "deployment=graphiti")
    given = options if name == "zep" else options[:2]
    refused = mneme(home, "memory", "setup", name, *given)
    assert refused.returncode == 1
    assert f"{key} contains a password" in refused.stderr
    assert f"environment variable in {secret}." in refused.stderr
    settings = home / "mneme.toml"
    stored = settings.read_text() if settings.exists() else ""
    assert "hunter22" not in stored + refused.stdout + refused.stderr


async def test_setup_at_a_terminal_asks_for_a_key_that_is_not_set_and_stores_it(home: Path) -> None:
    plugged(home, "jotter")
    options = ("--set", "url=http://x", "--set", "key=JOT_KEY")
    async with open_terminal(home, "memory", "setup", "jotter", *options) as terminal:
        await terminal.answer("JOT_KEY isn't set. Its value", "hush-hush")
        await terminal.expect("jotter will be on after the next start")
        assert await terminal.end() == 0
    assert "hush-hush" not in terminal.transcript
    assert (home / "secrets.env").read_text() == "JOT_KEY=hush-hush\n"
    async with open_terminal(home, "memory", "setup", "jotter") as terminal:
        await terminal.expect("jotter will be on after the next start")
        assert await terminal.end() == 0
    assert "isn't set" not in terminal.transcript


def test_second_memory_service_is_set_up_but_reported_off_because_of_the_limit(home: Path) -> None:
    plugged(home, "diary")
    plugged(home, "jotter")
    assert "diary will be on after the next start" in good(home, "memory", "setup", "diary")
    second = mneme(
        home,
        "memory",
        "setup",
        "jotter",
        "--set",
        "url=http://x",
        "--set",
        "key=JOT_KEY",
        JOT_KEY="k",
    )
    assert second.returncode == 1
    assert "will be on" not in second.stdout
    assert (
        "The memory service jotter is off, because memory.max_external allows only 1 at a time."
        in second.stdout
    )


def test_status_of_a_stopped_mneme_lists_each_memory_service_that_is_on(home: Path) -> None:
    plugged(home, "diary")
    plugged(home, "jotter")
    (home / "mneme.toml").write_text(
        "[memory]\nmax_external = 2\n[memory.providers.diary]\nmode = 'tools'\n"
        "[memory.providers.jotter]\nkey = 'JOT_KEY'\n"
    )
    lines = good(home, "status").splitlines()
    assert "memory: diary: on, tools" in lines
    (problem,) = [line for line in lines if "jotter" in line]
    assert "url is missing" in problem


def test_memory_sync_sends_past_sessions_on_demand_and_check_counts_waiting_messages(
    home: Path,
) -> None:
    plugged(home, "diary")
    lines = [
        json.dumps(
            {
                "session": name,
                "role": role,
                "text": f"{name} {role}",
                "at": f"2026-0{month}-03T09:00:00Z",
            }
        )
        for name, month in (("may", 5), ("july", 7))
        for role in ("user", "assistant")
    ]
    (home / "past.jsonl").write_text("\n".join(lines))
    good(home, "import", str(home / "past.jsonl"))
    off = mneme(home, "memory", "sync", "diary")
    assert off.returncode == 1
    assert (
        "The memory service diary is off. To switch it on, run mneme memory setup diary"
        in off.stderr
    )
    good(home, "memory", "setup", "diary")
    wrong = mneme(home, "memory", "sync", "diary", "--since", "soonish")
    assert wrong.returncode == 2
    assert "Queued 1 conversation that diary doesn't have yet" in good(
        home, "memory", "sync", "diary", "--since", "June 2026"
    )
    said = good(home, "memory", "sync", "diary")
    assert (
        "Queued 1 conversation that diary doesn't have yet. Delivery starts when you start Mneme."
        in said
    )
    assert "diary: on, hybrid; 2 messages wait to be sent to it" in good(
        home, "memory", "providers"
    )
    checked = {one["subject"]: one for one in json.loads(mneme(home, "check", "--json").stdout)}
    assert checked["memory diary"]["state"] == "right"
    assert "It can be used; 2 messages wait to be sent to it." in checked["memory diary"]["text"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("1 / 0\n", "ZeroDivisionError division by zero"),
        (
            "        return False",
            "It isn't available. `mneme memory setup diary` sets it up.",
        ),
        ("        raise KeyError('x')", "The memory diary cannot be used: KeyError 'x'"),
    ],
)
def test_check_reports_why_a_memory_service_cannot_be_used(
    home: Path, change: str, why: str
) -> None:
    plugged(home, "diary")
    file = home / "plugins" / "diary.py"
    text = file.read_text()
    inside = change.startswith(" ")
    file.write_text(text.replace("        return True", change) if inside else text + change)
    (home / "mneme.toml").write_text("[memory.providers.diary]\n")
    done = mneme(home, "check", "--json")
    assert done.returncode == 1
    (found,) = [one for one in json.loads(done.stdout) if one["subject"] == "memory diary"]
    assert found["state"] == "wrong"
    assert why in found["text"]


@pytest.mark.parametrize(
    ("service", "answers"),
    [
        (
            "langchain",
            [
                ("embedder_url", "postgresql://ana@127.0.0.1/x"),
                ("embedder_url", ""),
                ("url", "postgresql://ana@127.0.0.1/x"),
                ("password", "PG_PASSWORD"),
            ],
        ),
        ("langchain", [("embedder_url", "http://x/v1"), ("key", "LC_KEY"), ("url", "")]),
        (
            "zep",
            [
                ("deployment", "graphiti"),
                ("llm_url", "http://x/v1"),
                ("graph_url", "neo4j://x"),
                ("graph_user", "neo4j"),
                ("graph_password", "PW"),
                ("key", ""),
            ],
        ),
        ("zep", [("deployment", "cloud"), ("key", "ZEP_API_KEY")]),
    ],
)
def test_setup_asks_for_an_option_right_after_the_one_that_it_belongs_to(
    home: Path,
    service: str,
    answers: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    remaining = list(answers)

    def answer(question: str, default: str | None = None) -> str:
        name, text = remaining.pop(0)
        assert question.startswith(f"{name}: ")
        return text

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.prompt", answer)
    values = ask_for_options(Plugins(home).load_form(service), service, (), {})
    assert remaining == []
    # An answer that isn't accepted is asked for again.
    assert values == {name: text for name, text in dict(answers).items() if text}
    is_refused = len(answers) > len(dict(answers))
    problem = "embedder_url should be an address that begins with http:// or https://"
    assert (problem in capsys.readouterr().out) == is_refused
