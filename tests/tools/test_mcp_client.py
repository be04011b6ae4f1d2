"""Connections to real MCP servers, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from config.tool_options import McpServer
from core.errors import ToolError
from core.tools.mcp_client import McpConnection
from core.tools.mcp_tools import TOOLS_FILE, McpServers, StoredTool, find_effect
from core.types import Effect
from tests.fixtures.mcp_nursery import list_arguments
from tests.fixtures.mcp_server import run_http_server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def stdio_options(diary: Path, **changes: Any) -> McpServer:
    options = {
        "command": sys.executable,
        "args": tuple(list_arguments(diary)),
        "env": {"DIARY_KEY": "${SECRET}"},
    }
    return McpServer.model_validate({**options, **changes})


@asynccontextmanager
async def connect(options: McpServer) -> AsyncIterator[McpConnection]:
    connection = McpConnection("diary", options, {"SECRET": "s3cret"})
    yield connection
    await connection.close()


@pytest.fixture
def http_url(tmp_path: Path) -> Iterator[str]:
    with run_http_server(tmp_path / "web-diary") as url:
        yield url


async def wait_until_up(connection: McpConnection) -> None:
    for _ in range(600):
        try:
            await connection.list_tools()
            return
        except ToolError:
            connection._may_connect_at = 0.0
            await asyncio.sleep(0.1)
    raise AssertionError("the server didn't start")


async def test_tools_are_listed_with_the_hints_of_their_server(tmp_path: Path) -> None:
    async with connect(stdio_options(tmp_path / "diary")) as diary:
        tools = {tool.name: tool for tool in await diary.list_tools()}
    assert tools["list_entries"].is_read_only
    assert not tools["list_entries"].is_open
    assert not tools["add_entry"].is_destructive
    assert tools["clear"].is_destructive
    assert tools["clear"].is_open
    assert tools["add_entry"].schema["required"] == ["text"]


async def test_mcp_call_returns_text_and_the_server_gets_its_key_from_a_variable(
    tmp_path: Path,
) -> None:
    async with connect(stdio_options(tmp_path / "diary")) as diary:
        assert (await diary.call("add_entry", {"text": "Met Ana"})).text == "Added."
        assert (await diary.call("list_entries", {})).text == "Met Ana\n"
        assert (await diary.call("key", {})).text == "s3cret"


async def test_mcp_server_starts_in_the_folder_of_its_settings(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = 'import pathlib; pathlib.Path("here").touch()'
    options = McpServer(command=sys.executable, args=("-c", script), cwd=str(tmp_path / "work"))
    async with connect(options) as server:
        with pytest.raises(ToolError):
            await server.list_tools()
    assert (tmp_path / "work" / "here").exists()


async def test_mcp_server_over_http_is_called_like_a_local_one(http_url: str) -> None:
    async with connect(McpServer(url=http_url)) as diary:
        await wait_until_up(diary)
        assert (await diary.call("add_entry", {"text": "Met Bo"})).text == "Added."
        assert (await diary.call("list_entries", {})).text == "Met Bo\n"


async def test_errors_of_a_tool_and_wrong_arguments_are_sentences(tmp_path: Path) -> None:
    async with connect(stdio_options(tmp_path / "diary")) as diary:
        with pytest.raises(ToolError, match="the diary is locked"):
            await diary.call("fail", {})
        with pytest.raises(ToolError, match="text"):
            await diary.call("add_entry", {})
        with pytest.raises(ToolError):
            await diary.call("no_such_tool", {})
        assert (await diary.call("list_entries", {})).text == ""


async def test_mcp_server_that_crashed_is_started_again_by_the_next_call(tmp_path: Path) -> None:
    async with connect(stdio_options(tmp_path / "diary")) as diary:
        await diary.call("add_entry", {"text": "Before"})
        with pytest.raises(ToolError):
            await diary.call("crash", {})
        assert (await diary.call("list_entries", {})).text == "Before\n"


async def test_mcp_call_over_its_time_limit_fails_with_one_sentence(tmp_path: Path) -> None:
    async with connect(stdio_options(tmp_path / "diary")) as diary:
        await diary.list_tools()
        diary._options = stdio_options(tmp_path / "diary", timeout_s=0.2)
        with pytest.raises(ToolError, match=r"within 0\.2 s"):
            await diary.call("wait", {"seconds": 1})


async def test_mcp_server_with_an_unset_variable_is_not_started_and_the_error_names_it(
    tmp_path: Path,
) -> None:
    options = stdio_options(tmp_path / "diary", env={"DIARY_KEY": "${NOT_SET}"})
    async with connect(options) as diary:
        for _ in range(2):
            with pytest.raises(ToolError, match=r"diary isn't started: NOT_SET isn't set\. Put it"):
                await diary.list_tools()
    async with connect(McpServer(url="http://127.0.0.1:9", headers={"Key": "${NOT_SET}"})) as web:
        with pytest.raises(ToolError, match="NOT_SET isn't set"):
            await web.list_tools()


async def test_program_that_does_not_start_is_not_tried_again_at_once() -> None:
    async with connect(McpServer(command="/does/not/exist")) as missing:
        with pytest.raises(ToolError, match=r"can't be started or reached: .*No such file"):
            await missing.list_tools()
        with pytest.raises(ToolError, match="Try again in a minute"):
            await missing.list_tools()


async def test_pause_before_an_mcp_server_is_tried_again_doubles_up_to_a_minute_until_it_starts(
    tmp_path: Path,
) -> None:
    missing = McpServer(command="/does/not/exist")

    async def fail_to_connect() -> float:
        """Try to start a missing program, and return the pause before the next try."""
        connection._may_connect_at = 0.0
        with pytest.raises(ToolError, match="can't be started or reached"):
            await connection.list_tools()
        assert connection._may_connect_at > 0.0
        return connection._pause_s

    async with connect(missing) as connection:
        assert [await fail_to_connect() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
        connection._options = stdio_options(tmp_path / "diary")
        connection._may_connect_at = 0.0
        assert (await connection.call("list_entries", {})).text == ""
        await connection.close()
        connection._options = missing
        assert await fail_to_connect() == 1


async def test_closing_an_mcp_client_ends_its_program(tmp_path: Path) -> None:
    script = tmp_path / "server.sh"
    script.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nexec "$@"\n')
    script.chmod(0o700)
    # A process of its own, not a fork.
    program = (sys.executable, "-m", "tests.fixtures.mcp_server", str(tmp_path / "diary"))
    environ = {"PYTHONPATH": str(ROOT)}
    options = stdio_options(tmp_path, command=str(script), args=program, env=environ)
    async with connect(options) as diary:
        await diary.list_tools()
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_reading_service_on_the_web_sends_because_its_arguments_leave_the_machine() -> None:
    tool = StoredTool(
        name="find",
        description="Finds.",
        schema_={"type": "object"},
        is_read_only=True,
        is_destructive=False,
        is_open=False,
    )
    assert find_effect(tool, McpServer(command="diary"), {}) is Effect.READ
    assert find_effect(tool, McpServer(url="https://mcp.example/"), {}) is Effect.SEND


@pytest.mark.parametrize(
    ("options", "effect"),
    [
        ({"args": ["-y", "mcp-remote", "https://mcp.example/sse"]}, Effect.SEND),
        ({"args": ["--url=http://10.0.0.8:8000/mcp"]}, Effect.SEND),
        ({"args": ["-c", "npx mcp-remote 'https://user@mcp.example'"]}, Effect.SEND),
        ({"args": ["https://localhost.example/", "http://localhost/"]}, Effect.SEND),
        ({"args": ["https://localhost@mcp.example/"]}, Effect.SEND),
        ({"env": {"API_URL": "WSS://api.example/v1"}}, Effect.SEND),
        ({"args": ["postgresql://ana:pw@db.example/notes"]}, Effect.SEND),
        ({"env": {"CACHE": "redis://10.0.0.8:6379"}}, Effect.SEND),
        ({"env": {"API_URL": "${SERVICE}"}}, Effect.SEND),
        ({"args": ["postgresql://ana:${PASSWORD}@localhost/notes"]}, Effect.READ),
        ({"args": ["sqlite:///home/ana/notes.db", "file:///home/ana"]}, Effect.READ),
        ({"args": ["postgresql://ana@localhost/notes"]}, Effect.READ),
        ({"args": ["--port", "8000", "http://127.0.0.1:8000/"]}, Effect.READ),
        ({"args": ["http://[::1]:9/"], "env": {"HOME_URL": "http://localhost:8123"}}, Effect.READ),
        ({"args": ["/home/ana/notes"], "env": {"MODE": "fast"}}, Effect.READ),
    ],
)
def test_program_that_is_given_the_address_of_another_machine_counts_as_a_service_on_the_web(
    options: dict[str, Any], effect: Effect
) -> None:
    tool = StoredTool(
        name="find",
        description="Finds.",
        schema_={"type": "object"},
        is_read_only=True,
        is_destructive=False,
        is_open=False,
    )
    variables = {"SERVICE": "https://mcp.example/", "PASSWORD": "pw"}
    assert find_effect(tool, McpServer(command="npx", **options), variables) is effect


async def test_refreshed_server_leaves_the_stored_tools_of_other_servers_until_they_are_removed(
    tmp_path: Path,
) -> None:
    async def refuse(context: object) -> bool:
        return False

    file = tmp_path / TOOLS_FILE
    file.write_text(json.dumps({"other": {"fingerprint": "f", "tools": []}}))
    options = stdio_options(tmp_path / "diary")
    servers = McpServers({"diary": options}, {"SECRET": "s3cret"}, tmp_path, refuse)
    assert await servers.refresh("diary") is not None
    assert sorted(json.loads(file.read_text())) == ["diary", "other"]
    await servers.load_tools([])
    assert sorted(json.loads(file.read_text())) == ["diary"]
    await servers.close()
