"""Entries of MCP servers from other programs: each option is taken over or named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from config.tool_options import McpServer
from core.transfer.mcp_entries import ImportedServer, Note, read_entry


def read(entry: dict[str, Any], file: Path = Path("/p/.vscode/mcp.json")) -> ImportedServer:
    return read_entry(entry, file)


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ({"command": "x", "cwd": "/srv"}, {"command": "x", "cwd": "/srv"}),
        ({"command": "x", "cwd": "tools"}, {"command": "x", "cwd": "/p/tools"}),
        ({"command": "x", "cwd": "${workspaceFolder}/a"}, {"command": "x", "cwd": "/p/a"}),
        ({"command": "x", "disabled": True}, {"command": "x", "enabled": False}),
        ({"command": "x", "enabled": False}, {"command": "x", "enabled": False}),
        ({"command": "x", "timeout": 60}, {"command": "x", "timeout_s": 60.0}),
        ({"type": "http", "url": "https://x/mcp"}, {"url": "https://x/mcp"}),
        ({"httpUrl": "https://x/mcp"}, {"url": "https://x/mcp"}),
        ({"serverUrl": "https://x/mcp"}, {"url": "https://x/mcp"}),
        ({"url": "https://x", "headers": {"A": "b"}}, {"url": "https://x", "headers": {"A": "b"}}),
        ({"command": "x", "includeTools": ["a"]}, {"command": "x", "tools": ["a"]}),
        ({"command": "x", "tools": ["*"]}, {"command": "x"}),
        ({"command": "npx -y 'a b'"}, {"command": "npx", "args": ["-y", "a b"]}),
        ({"command": ["npx", "-y"], "environment": {"A": "b"}}, {"env": {"A": "b"}}),
        ({"command": "x", "args": ["${NOT_SET_1:-fast}"]}, {"command": "x", "args": ["fast"]}),
        ({"command": "x", "description": "A", "alwaysAllow": [], "trust": False}, {"command": "x"}),
    ],
)
def test_option_that_mneme_has_is_taken_over_without_a_note(
    entry: dict[str, Any], options: dict[str, Any]
) -> None:
    server = read(entry)
    assert server.options.items() >= options.items()
    assert server.notes == []
    McpServer.model_validate(server.options)


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"type": "sse", "url": "https://x/sse"}, Note("mcp_import_sse", {})),
        ({"command": "x", "transport": "SSE"}, Note("mcp_import_sse", {})),
        (
            {"command": "x", "timeout": 90_000},
            Note("mcp_import_timeout", {"value": "90000", "seconds": "90"}),
        ),
        (
            {"command": "x", "timeout": 1_800},
            Note("mcp_import_timeout", {"value": "1800", "seconds": "600"}),
        ),
        (
            {"command": "x", "alwaysAllow": ["read"]},
            Note("mcp_import_approvals", {"option": "alwaysAllow"}),
        ),
        (
            {"command": "x", "autoApprove": ["read"]},
            Note("mcp_import_approvals", {"option": "autoApprove"}),
        ),
        (
            {"command": "x", "disabledTools": ["a", "b"]},
            Note("mcp_import_tools_off", {"tools": "a, b"}),
        ),
        (
            {"command": "x", "envFile": "missing.env"},
            Note("mcp_import_no_env_file", {"path": Path("/p/missing.env")}),
        ),
        ({"command": "x", "oauth": {}}, Note("mcp_import_unused", {"option": "oauth"})),
        (
            {"command": "x", "cwd": "${file}"},
            Note("mcp_import_unused", {"option": "cwd = ${file}"}),
        ),
    ],
)
def test_option_that_changes_or_is_missing_is_named_in_one_note(
    entry: dict[str, Any], note: Note
) -> None:
    assert read(entry).notes == [note]


def test_variables_of_an_env_file_next_to_the_project_are_read_as_private(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / "my.env").write_text("# keys\nexport A_KEY='one'\nMODE=fast\nEMPTY=\n")
    entry = json.loads('{"command": "x", "envFile": "${workspaceFolder}/my.env"}')
    server = read(entry, tmp_path / ".vscode" / "mcp.json")
    assert server.private_variables == {"A_KEY": "one", "MODE": "fast"}
    assert server.notes == []
