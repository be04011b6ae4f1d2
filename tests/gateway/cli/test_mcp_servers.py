"""`mneme mcp`: connects, tries, lists, removes and takes over MCP servers."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from tests.fixtures.command_line import good, mneme
from tests.fixtures.mcp_nursery import list_arguments

pytestmark = pytest.mark.slow


def read_options(home: Path) -> dict[str, dict[str, object]]:
    options: dict[str, dict[str, object]] = tomllib.loads((home / "mneme.toml").read_text())["mcp"]
    return options


def test_mcp_server_is_tested_before_it_is_added_and_its_key_stored_in_the_secrets_file(
    home: Path,
) -> None:
    program = (sys.executable, *list_arguments(home / "diary"))
    environment = ("--env", "DIARY_KEY=s3cret")
    answer = good(home, "mcp", "add", "diary", *environment, "--", *program)
    assert answer.startswith("diary is connected and offers 9 tools: list_entries, add_entry,")
    assert read_options(home)["diary"]["env"] == {
        "DIARY_KEY": "${MCP_DIARY_DIARY_KEY}",
    }
    assert "MCP_DIARY_DIARY_KEY" in (home / "secrets.env").read_text()
    assert "s3cret" not in (home / "mneme.toml").read_text()
    (entry,) = json.loads(good(home, "mcp", "list", "--json"))
    assert (entry["name"], entry["people"]) == ("diary", "owner")
    tools = {
        tool["name"]: tool["effect"]
        for tool in json.loads(good(home, "mcp", "test", "diary", "--json"))
    }
    assert (tools["list_entries"], tools["add_entry"], tools["clear"]) == ("read", "add", "remove")
    good(home, "mcp", "remove", "diary")
    assert "MCP_DIARY_DIARY_KEY" not in (home / "secrets.env").read_text()
    assert json.loads(good(home, "mcp", "list", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("add", "x", "--", "/does/not/exist"), "isn't installed or isn't on the PATH"),
        (
            ("add", "x", "--url", "http://127.0.0.1:9/mcp"),
            "can't be started or reached: Connection refused",
        ),
        (("add", "x", "--", sys.executable, "-c", "print(1)"), "can't be started or reached"),
        (("add", "x", "--url", "ftp://example.org"), "'ftp://example.org' isn't an address."),
        (("add", "x"), "Write a command after --, or --url."),
        (
            ("add", "x", "--url", "http://127.0.0.1:9/mcp", "--", "true"),
            "Write a command after --,",
        ),
        (("add", "x", "--env", "KEY", "--", "true"), "Write --env NAME=VALUE"),
        (("add", "x", "--header", "A=b", "--", "true"), "--header goes with --url."),
        (("add", "x y", "--url", "http://127.0.0.1:9/mcp"), "'x y' can't be the name of a server."),
        (("add", "x", "--url", "nowhere"), "'nowhere' isn't an address. Write http://host:port"),
        (("add", "x", "--url", "http://["), "'http://[' isn't an address."),
        (("import", "/etc/hostname"), "/etc/hostname isn't valid JSON. The mistake is in line 1."),
        (("test", "x"), "There is no server x"),
        (("remove", "x"), "There is no server x"),
        (("import", "missing.json"), "missing.json doesn't exist."),
    ],
)
def test_mistake_in_an_mcp_command_is_one_sentence_and_changes_no_settings(
    home: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    result = mneme(home, "mcp", *arguments)
    assert result.returncode == 1
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert "[warning" not in result.stdout + result.stderr
    assert result.stdout == ""
    assert not (home / "mneme.toml").exists()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({}, "can't be used: write either a command or a url"),
        ({"command": ""}, "can't be used: write either a command or a url"),
        ({"disabled": False, "timeout": 5}, "can't be used: write either a command or a url"),
        ({"headers": {"A": "b"}}, "can't be used: write either a command or a url"),
        (
            {"command": "x", "url": "http://127.0.0.1:9"},
            "can't be used: write either a command or a url",
        ),
        ({"command": "x", "args": "one two"}, "can't be used: args: should be a list in brackets"),
        (5, "has no settings for the server a."),
    ],
)
def test_entry_of_another_assistant_that_names_no_server_is_refused_and_changes_no_settings(
    home: Path, entry: object, reason: str
) -> None:
    file = home / "claude.json"
    file.write_text(json.dumps({"mcpServers": {"a": entry}}))
    result = mneme(home, "mcp", "import", str(file))
    assert result.returncode == 1
    assert reason in result.stderr
    assert "mcp.a" not in result.stderr
    assert result.stdout == ""
    assert not (home / "mneme.toml").exists()


def test_servers_of_another_assistant_are_taken_over_with_their_keys(home: Path) -> None:
    file = home / "claude.json"
    file.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "git hub": {"command": "npx", "args": ["-y", "x"], "env": {"API_TOKEN": "s1"}},
                    "linear": {
                        "type": "http",
                        "url": "https://mcp.linear.example/mcp",
                        "headers": {"Authorization": "Bearer s2"},
                    },
                }
            }
        )
    )
    assert good(home, "mcp", "import", str(file)).startswith("Added git-hub, linear.")
    options = read_options(home)
    assert options["git-hub"]["args"] == ["-y", "x"]
    assert options["linear"]["headers"] == {"Authorization": "${MCP_LINEAR_AUTHORIZATION}"}
    secrets = (home / "secrets.env").read_text()
    assert "Bearer s2" in secrets
    assert "s1" in secrets
    assert "Skipped, because they already exist" in good(home, "mcp", "import", str(file))


def import_servers(home: Path, servers: dict[str, object]) -> str:
    file = home / "other.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return good(home, "mcp", "import", str(file))


def test_imported_keys_are_recognized_by_name_or_value_and_never_shown(home: Path) -> None:
    github, openai = "ghp_" + "a1B2" * 9, "sk-" + "c3D4" * 8
    import_servers(
        home,
        {
            "git": {
                "command": "npx",
                "args": ["server", "--api-key", "plainkey", f"--llm={openai}", "-y"],
                "env": {
                    "GH_PAT": github,
                    "DATABASE_URL": "postgres://u:p4ss@db.example/x",
                    "MODE": "fast",
                    "EMPTY": None,
                },
            },
            "web": {
                "url": "https://mcp.example/?apiKey=urlkey&mode=fast",
                "headers": {"X-Auth": "headkey", "Cookie": "sid=cookie"},
            },
        },
    )
    settings = (home / "mneme.toml").read_text()
    keys = (home / "secrets.env").read_text()
    for key in ("plainkey", openai, github, "p4ss", "urlkey", "headkey", "sid=cookie"):
        assert key not in settings
        assert key in keys
    options = read_options(home)
    assert options["git"]["env"] == {
        "GH_PAT": "${MCP_GIT_GH_PAT}",
        "DATABASE_URL": "postgres://u:${MCP_GIT_PASSWORD}@db.example/x",
        "MODE": "fast",
    }
    assert options["web"]["url"] == "https://mcp.example/?apiKey=${MCP_WEB_APIKEY}&mode=fast"
    good(home, "mcp", "remove", "git")
    assert "plainkey" not in (home / "secrets.env").read_text()


def test_imported_server_that_is_off_stays_off_and_equal_names_get_a_number(home: Path) -> None:
    server = {"url": "https://mcp.example/", "headers": {"A": "${env:FOO_A} ${input:tok}"}}
    answer = import_servers(home, {"my server": server, "my-server": {**server, "disabled": True}})
    assert answer.startswith("Added my-server, my-server-2.")
    assert "no value yet: FOO_A, MCP_MY_SERVER_2_TOK, MCP_MY_SERVER_TOK." in answer
    options = read_options(home)
    assert options["my-server"]["headers"] == {"A": "${FOO_A} ${MCP_MY_SERVER_TOK}"}
    assert "enabled" not in options["my-server"]
    assert options["my-server-2"]["enabled"] is False


def test_each_option_that_mneme_does_not_have_is_named_and_an_env_file_becomes_secrets(
    home: Path,
) -> None:
    (home / "my.env").write_text("MODE=fa5t\n")
    entry = {
        "command": "docker",
        "args": ["run", "-e", "API_KEY=k3y", "--header", "Authorization: Bearer k3y"],
        "envFile": "my.env",
        "cwd": "tools",
        "timeout": 90_000,
        "type": "sse",
        "autoApprove": ["read"],
        "oauth": {},
    }
    answer = import_servers(home, {"box": entry})
    _, *notes = answer.splitlines()
    assert [note.split(":")[0] for note in notes] == ["box"] * 4
    for part in ("90 seconds", "SSE", "autoApprove isn't taken over", "no such option"):
        assert part in answer
    options = read_options(home)["box"]
    assert options["cwd"] == str(home / "tools")
    assert options["env"] == {"MODE": "${MCP_BOX_MODE}"}
    assert "k3y" not in (home / "mneme.toml").read_text()
    assert "fa5t" in (home / "secrets.env").read_text()


def test_fault_of_an_imported_file_is_blamed_on_the_file(home: Path) -> None:
    file = home / "other.json"
    file.write_text(json.dumps({"mcpServers": {"bad": {"url": "ftp://mcp.example/"}}}))
    result = mneme(home, "mcp", "import", str(file))
    assert result.returncode == 1
    assert result.stderr.startswith(f"{file}: the server bad can't be used: ")
    for content, sentence in (
        (b'{"mcpServers": {"bad": "npx"}}', f"{file} has no settings for the server bad.\n"),
        (b'{"mcpServers": {}\n', f"{file} isn't valid JSON. The mistake is in line 2.\n"),
        (b'{\n"\xff": 1}', f"{file} isn't valid JSON. The mistake is in line 2.\n"),
    ):
        file.write_bytes(content)
        assert mneme(home, "mcp", "import", str(file)).stderr == sentence


def test_fault_of_a_server_is_worded_in_the_language_of_the_shell(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    file = home / "other.json"
    file.write_text(json.dumps({"mcpServers": {"bad": {"url": "ftp://mcp.example/"}}}))
    result = mneme(home, "mcp", "import", str(file))
    assert "Der Server bad ist nicht verwendbar: url: ist keine Adresse;" in result.stderr
    result = mneme(home, "mcp", "add", "x", "--url", "nowhere")
    assert result.stderr.startswith("'nowhere' ist keine Adresse.")


def test_keys_and_brackets_in_the_settings_are_masked_and_printed_as_they_are(home: Path) -> None:
    (home / "mneme.toml").write_text(
        '[mcp.x]\ncommand = "run"\nargs = ["[/x]", "--token", "plainkey"]\n'
        '[mcp.y]\nurl = "https://mcp.example/?apiKey=urlkey"\n'
    )
    answer = good(home, "mcp", "list")
    assert "run [/x] --token ***" in answer
    assert "https://mcp.example/?apiKey=***" in answer


def test_check_and_test_name_an_allowed_tool_that_the_server_does_not_have(home: Path) -> None:
    program = json.dumps([*list_arguments(home / "diary")])
    (home / "mneme.toml").write_text(
        f"[mcp.diary]\ncommand = {json.dumps(sys.executable)}\nargs = {program}\n"
        'tools = ["list_entries", "nosuch"]\n'
        '[mcp.gone]\nurl = "http://127.0.0.1:9/mcp"\nheaders = { A = "${UNSET_TOKEN}" }\n'
    )
    answer = good(home, "mcp", "test", "diary")
    assert "list_entries" in answer
    assert "add_entry" not in answer
    assert "diary has no tool named nosuch." in answer
    results = json.loads(mneme(home, "check", "--json").stdout)
    texts = {result["subject"]: result["text"] for result in results}
    assert "nosuch" in texts["mcp diary"]
    assert "UNSET_TOKEN" in texts["mcp gone"]
