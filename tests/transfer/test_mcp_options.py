"""Keys in the options of MCP servers go into secrets.env, whatever form other programs use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from config.field_types import fill_placeholders
from core.transfer.mcp_options import HIDDEN, SecretMover, hide_keys

# The arguments of a server with the key "k3y…", and what is left of the argument that had the key.
ARGUMENTS_WITH_KEY = [
    (["run", "-i", "--rm", "-e", "API_KEY=k3yA", "image"], "API_KEY=${MCP_S_API_KEY}"),
    (["run", "--env", "API_KEY=k3yA", "image"], "API_KEY=${MCP_S_API_KEY}"),
    (["run", "--env=API_KEY=k3yA", "image"], "--env=API_KEY=${MCP_S_API_KEY}"),
    (["run", "-eAPI_KEY=k3yA", "image"], "-eAPI_KEY=${MCP_S_API_KEY}"),
    (["run", "-e", "AUTH=Bearer k3yA b", "image"], "AUTH=${MCP_S_AUTH}"),
    (["run", "-e", "DB=postgres://u:k3yA@db/x"], "DB=postgres://u:${MCP_S_PASSWORD}@db/x"),
    (
        ["mcp-remote", "https://x.example/sse", "--header", "Authorization: Bearer k3yA12"],
        "Authorization: ${MCP_S_AUTHORIZATION}",
    ),
    (["--header", "Authorization:Bearer k3yA12"], "Authorization:${MCP_S_AUTHORIZATION}"),
    (["--header=Authorization: Bearer k3yA"], "--header=Authorization: ${MCP_S_AUTHORIZATION}"),
    (["-H", "X-Api-Key: k3yA"], "X-Api-Key: ${MCP_S_X_API_KEY}"),
    (["-HX-Api-Key: k3yA"], "-HX-Api-Key: ${MCP_S_X_API_KEY}"),
    (["--headers", '{"Authorization": "Bearer k3yA12"}'], '"Authorization": "${MCP_S_'),
    (["--config", '{"openaiApiKey": "k3yA", "mode": 1}'], '"mode": 1}'),
    (["--config", json.dumps('{"apiKey": "k3yA"}')], "${MCP_S_APIKEY}"),
    (["https://ana:k3yA@x.example/mcp"], "https://ana:${MCP_S_PASSWORD}@x.example/mcp"),
    (["https://ana:p@k3yA@x.example/"], "https://ana:${MCP_S_PASSWORD}@x.example/"),
    (["https://k3yA0123456789abcd@x.example/"], "https://${MCP_S_USER}@x.example/"),
    (["https://sk_live_k3yA12:@x.example/"], "https://${MCP_S_USER}:@x.example/"),
    (["--url=https://x.example/?api_key=k3yA&b=1"], "api_key=${MCP_S_API_KEY}&b=1"),
    (["https://x.example/#access_token=k3yA"], "#access_token=${MCP_S_ACCESS_TOKEN}"),
    (["https://x.example/s/k3yAMGEtYTAxYy00ZTk1/mcp"], "https://x.example/s/${MCP_S_PATH}/mcp"),
    (["sh", "-c", "export API_KEY=k3yA; npx server"], "export API_KEY=${MCP_S_API_KEY}; npx"),
    (["sh", "-c", "exec server --api-key 'k3yA b' -v"], "--api-key '${MCP_S_API_KEY}' -v"),
    (["sh", "-c", 'curl -H "X-Token: k3yA" u'], '-H "X-Token: ${MCP_S_X_TOKEN}" u'),
    (["/c", "npx server --token=k3yA"], "--token=${MCP_S_TOKEN}"),
]


@pytest.mark.parametrize(("arguments", "rest"), ARGUMENTS_WITH_KEY)
def test_key_in_an_argument_becomes_a_variable_that_restores_the_argument(
    arguments: list[str], rest: str
) -> None:
    mover = SecretMover("s")
    moved = mover.move({"args": arguments})["args"]
    assert "k3yA" not in repr(moved)
    assert any(rest in argument for argument in moved)
    restored = [fill_placeholders(each, mover.secrets) for each in moved]
    assert [_parse(each) for each in restored] == [_parse(each) for each in arguments]
    assert HIDDEN in repr(hide_keys("s", {"args": arguments}))


def _parse(argument: str) -> Any:
    try:
        return json.loads(argument)
    except ValueError:
        return argument


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "-i", "--rm", "-e", "LOG=debug", "-v", "keys:/data", "-p", "8080:80", "image"],
        ["run", "-e", "API_KEY", "image"],
        ["-y", "@scope/server@1.2.3", "/home/ana/notes", "C:\\Users\\ana\\notes"],
        ["--header", "Accept: text/html", "--config", '{"mode": "fast"}'],
        ["https://ana@x.example/a/path-of-several-words?page=2#top"],
        ["sh", "-c", "cd /srv && exec server --mode fast"],
        ["--header", "Authorization:${AUTH_HEADER}", "-e", "API_KEY=${MY_KEY}"],
    ],
)
def test_arguments_without_a_key_stay_as_they_are(arguments: list[str]) -> None:
    mover = SecretMover("s")
    assert mover.move({"args": arguments}) == {"args": arguments}
    assert mover.secrets == {}


def test_json_variable_keeps_a_key_with_quotes_valid() -> None:
    mover = SecretMover("notion")
    headers = {"Authorization": 'Bearer a"b\\c', "Version": "2022-06-28"}
    moved = mover.move({"env": {"MCP_HEADERS": json.dumps(headers)}})["env"]["MCP_HEADERS"]
    assert 'a\\"b' not in moved
    assert json.loads(fill_placeholders(moved, mover.secrets)) == headers


def test_placeholder_of_an_argument_that_the_entry_defines_itself_gets_its_value() -> None:
    """`mcp-remote` fills ``${AUTH_HEADER}`` from its own environment, as its README shows."""
    mover = SecretMover("s")
    moved = mover.move(
        {
            "args": ["--header", "Authorization:${AUTH_HEADER}", "--mode", "${MODE}"],
            "env": {"AUTH_HEADER": "Bearer k3yA", "MODE": "fast"},
        }
    )
    assert moved["args"] == ["--header", "Authorization:${MCP_S_AUTH_HEADER}", "--mode", "fast"]
    assert mover.secrets == {"MCP_S_AUTH_HEADER": "Bearer k3yA"}
