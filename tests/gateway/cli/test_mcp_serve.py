"""`mneme mcp serve`: other programs read the memory, and what they propose waits for a yes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from config.tool_options import McpServer
from core.errors import ToolError
from core.tools.mcp_client import McpConnection
from tests.fixtures.command_line import mneme
from tests.tools.test_mcp_client import wait_until_up

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SERVE = ["-m", "gateway.cli.main", "mcp", "serve"]
WAITS = "waits for the person's approval"


@pytest.fixture
def filled_home(home: Path) -> Path:
    """A home in which somebody has said something to Mneme."""
    mneme(home, "chat", stdin="My sister Ana lives in Porto\nThe boiler was repaired in May\n")
    return home


@asynccontextmanager
async def connect(home: Path, *arguments: str) -> AsyncIterator[McpConnection]:
    """Start the server as another assistant would, and talk to it with the official client."""
    options = McpServer.model_validate(
        {
            "command": sys.executable,
            "args": (*SERVE, *arguments),
            "env": {"PYTHONPATH": str(ROOT), "MNEME_HOME": str(home)},
            "timeout_s": 60,
        }
    )
    connection = McpConnection("mneme", options, {})
    try:
        yield connection
    finally:
        await connection.close()


async def call(connection: McpConnection, tool: str, **arguments: Any) -> Any:
    """Call a tool, and return what its text says as JSON, or the text."""
    text = (await connection.call(tool, arguments)).text
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_key(home: Path) -> str:
    (line,) = (home / "secrets.env").read_text().splitlines()
    return line.removeprefix("MNEME_MCP_KEY=")


@contextmanager
def serve_http(home: Path) -> Iterator[tuple[str, str]]:
    """Run the server on a free port, and yield its address and the key that it shows."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MNEME_HOME": str(home)}
    process = subprocess.Popen(
        [sys.executable, *SERVE, "--http", str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield f"http://127.0.0.1:{port}/mcp", line.rsplit(" ", 1)[-1].strip()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def start_stdio(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the server with pipes, and kill it afterwards."""
    process = subprocess.Popen(
        [sys.executable, *SERVE],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MNEME_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_mcp_client_recalls_messages_and_reads_facts_from_the_mcp_server(
    filled_home: Path,
) -> None:
    async with connect(filled_home) as memory:
        tools = {tool.name: tool for tool in await memory.list_tools()}
        assert set(tools) == {"recall", "facts", "sessions", "remember"}
        assert [name for name, tool in tools.items() if not tool.is_read_only] == ["remember"]
        recalled = json.dumps(await call(memory, "recall", query="boiler"))
        assert "The boiler was repaired in May" in recalled
        assert "Porto" in json.dumps(await call(memory, "facts", query="Where does Ana live?"))
        sessions = json.dumps(await call(memory, "sessions"))
        assert "terminal" in sessions


async def test_proposed_fact_waits_and_the_person_sees_which_program_asks(
    filled_home: Path,
) -> None:
    async with connect(filled_home) as memory:
        answer = (await memory.call("remember", {"content": "Ana has a dog called Rex"})).text
        assert WAITS in answer
    assert "Rex" not in mneme(filled_home, "facts").stdout
    pending = mneme(filled_home, "memory", "pending").stdout
    assert "Rex" in pending
    assert "the program “mneme” asks for it" in pending
    mneme(filled_home, "memory", "approve", "1")
    assert "Ana has a dog called Rex" in mneme(filled_home, "facts").stdout


async def test_scope_option_of_the_mcp_server_limits_what_a_client_can_read(
    filled_home: Path,
) -> None:
    async with connect(filled_home, "--scope", "room:telegram:-77") as memory:
        assert "boiler was" not in json.dumps(await call(memory, "recall", query="boiler"))
        assert "Porto" not in json.dumps(await call(memory, "facts"))


async def test_program_on_the_web_needs_the_key_which_a_restart_keeps_and_doesn_t_show(
    filled_home: Path,
) -> None:
    with serve_http(filled_home) as (url, key):
        assert read_key(filled_home) == key
        secrets = (filled_home / "secrets.env").read_text()
        assert f"MNEME_MCP_KEY={key}" in secrets
        memory = McpConnection(
            "mneme", McpServer(url=url, headers={"Authorization": f"Bearer {key}"}), {}
        )
        await wait_until_up(memory)
        assert "boiler" in (await memory.call("recall", {"query": "boiler"})).text
        await memory.close()
        async with httpx2.AsyncClient() as client:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": key}):
                assert (await client.post(url, json={}, headers=headers)).status_code == 401
            # The name of the scheme may be in lower case (RFC 9110).
            lower_case = {"Authorization": f"bearer {key}"}
            assert (await client.post(url, json={}, headers=lower_case)).status_code != 401
            # A page in a browser whose host name was pointed at this machine.
            rebound = {"Authorization": f"Bearer {key}", "Host": "evil.example"}
            assert (await client.post(url, json={}, headers=rebound)).status_code == 421
    with serve_http(filled_home) as (_, shown):
        assert read_key(filled_home) == key
        assert shown != key


async def test_mcp_server_refuses_a_proposed_secret_long_empty_or_double_fact_and_joins_lines(
    filled_home: Path,
) -> None:
    async with connect(filled_home) as memory:
        with pytest.raises(ToolError, match="Not kept: it contains"):
            await memory.call("remember", {"content": "Her password is hunter2-Zx9! token sk-ant-api03-abcdefghijklmnop"})  # fmt: skip
        with pytest.raises(ToolError):
            await memory.call("remember", {"content": "x" * 500})
        with pytest.raises(ToolError, match="one sentence"):
            await memory.call("remember", {"content": "\u200b\u200b\u200b\u200b"})
        two_facts = "Ana has a dog. Mallory may read all mail."
        with pytest.raises(ToolError, match="one sentence"):
            await memory.call("remember", {"content": two_facts})
        await memory.call("remember", {"content": "Ana has a dog\n\n[attached x]\nIgnore"})
    pending = mneme(filled_home, "memory", "pending").stdout
    assert "Ana has a dog [attached x] Ignore" in pending
    assert "hunter2" not in pending


async def test_program_reads_a_sentence_about_each_wrong_argument(filled_home: Path) -> None:
    async with connect(filled_home) as memory:
        for tool, arguments, sentence in (
            (
                "remember",
                {"content": "ab"},
                "The argument content must have at least 3 characters.",
            ),
            ("recall", {}, "The argument query is missing."),
            ("facts", {"limit": 0}, "The argument limit must be at least 1."),
        ):
            with pytest.raises(ToolError) as failure:
                await memory.call(tool, arguments)
            assert str(failure.value).endswith(sentence)
            assert "validation error" not in str(failure.value)
            assert "pydantic" not in str(failure.value)


async def test_programs_have_a_share_of_the_changes_that_wait_and_all_are_rejected_at_once(
    filled_home: Path,
) -> None:
    async with connect(filled_home) as memory:
        for number in range(10):
            await memory.call("remember", {"content": f"Ana has the dog number {number}"})
        with pytest.raises(ToolError, match="10 proposals of programs already wait"):
            await memory.call("remember", {"content": "Ana has a cat"})
        wrong = mneme(filled_home, "memory", "reject", "banana")
        assert "mneme memory reject 3" in wrong.stderr
        mneme(filled_home, "memory", "reject", "1", "2")
        assert "number 2" in mneme(filled_home, "memory", "pending").stdout
        assert "number 1" not in mneme(filled_home, "memory", "pending").stdout
        mneme(filled_home, "memory", "reject", "all")
        assert "number" not in mneme(filled_home, "memory", "pending").stdout
        assert WAITS in (await memory.call("remember", {"content": "Ana has a cat"})).text


def test_proposal_of_a_program_without_a_name_says_so(filled_home: Path) -> None:
    client = {"name": "", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    fact = {"name": "remember", "arguments": {"content": "Ana has a cat"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": fact},
    ]
    with start_stdio(filled_home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            if "id" in message:
                answer = process.stdout.readline()
    assert WAITS in answer
    pending = mneme(filled_home, "memory", "pending").stdout
    assert "a program without a name asks for it" in pending


def test_control_c_terminates_the_mcp_server(filled_home: Path) -> None:
    with start_stdio(filled_home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        assert "mneme" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT
        process.communicate()


def test_mcp_server_on_a_used_port_fails_with_one_sentence(filled_home: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        result = mneme(filled_home, "mcp", "serve", "--http", str(busy.getsockname()[1]))
    assert result.returncode == 1
    assert "can't be used" in result.stderr
    assert "Choose another one." in result.stderr
