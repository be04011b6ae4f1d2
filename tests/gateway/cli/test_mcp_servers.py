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
        (("add", "x", "--url", "ftp://example.org"), "mcp.x.url"),
        (("add", "x"), "Write a command after --, or --url."),
        (("add", "x", "--env", "KEY", "--", "true"), "Write --env NAME=VALUE"),
        (("add", "x y", "--url", "http://127.0.0.1:9/mcp"), "mcp.x y"),
        (("test", "x"), "There is no server x"),
        (("remove", "x"), "There is no server x"),
        (("import", "missing.json"), "can't be read as JSON"),
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
