"""MCP servers from the package index, as programs and over HTTP: the reference servers of the
protocol, `server-filesystem` and `server-everything`. And a client from there, the MCP Inspector,
that uses `mneme mcp serve`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.types import Completion, Scope
from tests.fixtures.command_line import mneme
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.services.engines.engine import ROOT, free_port, installed, program

pytestmark = [pytest.mark.services, pytest.mark.slow]

NAME = "mcp-servers"
FILES_PROGRAM = "node_modules/.bin/mcp-server-filesystem"
ALL_PROGRAM = "node_modules/.bin/mcp-server-everything"
INSPECTOR_NAME = "mcp-inspector"
INSPECTOR = "node_modules/.bin/mcp-inspector"
REPOSITORY = Path(__file__).parents[3]
OWNER = frozenset({Scope.account("telegram", "42")})


@pytest.fixture
def _has_servers() -> None:
    if why := installed(NAME, FILES_PROGRAM) or installed(NAME, ALL_PROGRAM):
        pytest.skip(why)


@pytest.fixture
def http_url(tmp_path: Path, _has_servers: None) -> Iterator[str]:
    """Return the address of a server with every kind of tool."""
    port = free_port()
    command = [str(ROOT / NAME / ALL_PROGRAM), "streamableHttp"]
    with program(command, tmp_path, f"tcp://127.0.0.1:{port}", PORT=str(port)):
        yield f"http://127.0.0.1:{port}/mcp"


async def ask(harness: GatewayHarness, model: ScriptedModel, text: str, *script: Completion) -> str:
    model.script = list(script)
    return (await harness.say(text)).text


def read_result(model: ScriptedModel) -> str:
    """Return the text of the tool's result in the last request."""
    content = model.requests[-1].messages[-1]["content"][0]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.usefixtures("_has_servers")
async def test_file_server_as_a_program_reads_at_once_and_overwrites_after_approval(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "todo.txt").write_text("Buy milk\n")
    options = f"""
[mcp.notes]
command = {json.dumps(str(ROOT / NAME / FILES_PROGRAM))}
args = {json.dumps([str(folder)])}
tools = ["read_text_file", "write_file"]
timeout_s = 120
"""
    model = ScriptedModel()
    path = str(folder / "todo.txt")
    async with open_gateway(home, model, options) as harness:
        read = calls(("notes__read_text_file", {"path": path}))
        await ask(harness, model, "Read todo.txt", read, says("Milk."))
        assert read_result(model).startswith("[Result of the MCP server notes.")
        assert "Buy milk" in read_result(model)
        write = calls(("notes__write_file", {"path": path, "content": "Buy bread\n"}))
        await ask(harness, model, "Write bread into todo.txt", write, says("I have to ask."))
        assert (folder / "todo.txt").read_text() == "Buy milk\n"
        (waiting,) = await harness.services.notes.list_pending(OWNER)
        await harness.say(f"/memory approve {waiting.id}")
        assert (folder / "todo.txt").read_text() == "Buy bread\n"


async def test_server_with_many_tools_over_http_is_called_through_call_tool_after_approval(
    home: Path, http_url: str
) -> None:
    model = ScriptedModel()
    options = f'[mcp.every]\nurl = "{http_url}"\ntimeout_s = 120\n'
    async with open_gateway(home, model, options) as harness:
        find = calls(("find_tools", {"query": "add two numbers"}))
        await ask(harness, model, "Add 40 and 2", find, says("I can."))
        assert "every__get-sum" in read_result(model)
        arguments = {"a": 40, "b": 2}
        call = calls(("call_tool", {"tool_name": "every__get-sum", "arguments": arguments}))
        await ask(harness, model, "How much is it?", call, says("I have to ask."))
        (waiting,) = await harness.services.notes.list_pending(OWNER)
        answer = await harness.say(f"/memory approve {waiting.id}")
    assert "The sum of 40 and 2 is 42." in answer.text


def test_inspector_recalls_messages_and_proposes_a_fact_that_waits_and_names_it(
    home: Path, tmp_path: Path
) -> None:
    if why := installed(INSPECTOR_NAME, INSPECTOR):
        pytest.skip(why)
    mneme(home, "chat", stdin="The boiler was repaired in May\n")
    server = {
        "command": sys.executable,
        "args": ["-m", "gateway.cli.main", "mcp", "serve"],
        "env": {"PYTHONPATH": str(REPOSITORY), "MNEME_HOME": str(home)},
    }
    settings = tmp_path / "mcp.json"
    settings.write_text(json.dumps({"mcpServers": {"mneme": server}}))

    def call_tool(name: str, argument: str) -> str:
        command = [str(ROOT / INSPECTOR_NAME / INSPECTOR), "--cli", "--config", str(settings)]
        command += ["--server", "mneme", "--method", "tools/call"]
        command += ["--tool-name", name, "--tool-arg", argument]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        return result.stdout

    assert "boiler<<< was repaired in May" in call_tool("recall", "query=boiler")
    assert "waits for the person" in call_tool("remember", "content=Ana lives in Porto")
    pending = mneme(home, "memory", "pending").stdout
    assert "Ana lives in Porto" in pending
    assert "inspector" in pending.lower()
