"""Reads the entries of MCP servers in the files of other programs.

Each option of an entry becomes an option of Mneme, or a note says why it doesn't. The entries are
those of Claude, Cursor, VS Code, Cline, Roo Code, Gemini CLI, Windsurf, Kiro and Copilot in 2026.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.secrets_file import parse_variables
from config.tool_options import MAX_TIMEOUT_S
from config.variables import VARIABLE, select_variables

# Other programs write the same option under these names.
_NAMES = {
    "httpUrl": "url",
    "serverUrl": "url",
    "http_headers": "headers",
    "workingDirectory": "cwd",
    "environment": "env",
    "env_file": "envFile",
    "includeTools": "tools",
    "enabledTools": "tools",
    "enabled_tools": "tools",
    "excludeTools": "disabledTools",
    "disabled_tools": "disabledTools",
    "transportType": "type",
    "transport": "type",
}
_TAKEN_AS_THEY_ARE = ("command", "args", "env", "url", "headers")
# Options that change nothing for Mneme, such as descriptions and pictures.
_WITHOUT_EFFECT = frozenset(
    {
        "$schema",
        "description",
        "disabled",
        "enabled",
        "gallery",
        "homepage",
        "icon",
        "iconUrl",
        "id",
        "name",
        "title",
        "version",
    }
)
# Some programs write milliseconds, others seconds. Nobody waits for an hour.
_LONGEST_IN_SECONDS = 3_600
# VS Code's names for the folder of the project and of the user.
_PROJECT = re.compile(r"\$\{workspaceFolder(?:Basename|:[^}]*)?\}")
_USER_HOME = "${userHome}"
_DEFAULT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):-([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about an option that isn't taken over unchanged."""

    # The key of the sentence in `gateway/texts/`, and the values for its placeholders.
    key: str
    values: Mapping[str, object]


@dataclass(slots=True)
class ImportedServer:
    """A server from the file of another program."""

    # By Mneme's names. Keys are still in them.
    options: dict[str, Any] = field(default_factory=dict)
    # The variables of its `envFile`. All of them count as keys.
    private_variables: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def read_entry(entry: Mapping[str, Any], file: Path) -> ImportedServer:
    """Return the options of a server, and notes about those that Mneme doesn't take over.

    Relative paths are relative to the project that `file` belongs to.
    """
    project = _find_project(file)
    options = {_NAMES.get(name, name): value for name, value in entry.items()}
    server = ImportedServer()
    for name in _TAKEN_AS_THEY_ARE:
        if options.get(name):
            server.options[name] = _fill_folders(options[name], project)
    _split_command(server.options)
    if options.get("disabled") is True or options.get("enabled") is False:
        server.options["enabled"] = False
    for name, value in options.items():
        if name not in _TAKEN_AS_THEY_ARE and name not in _WITHOUT_EFFECT:
            _take_option(server, name, value, project)
    return server


def _take_option(server: ImportedServer, name: str, value: Any, project: Path) -> None:
    """Take over one of the options that differ between programs, or add a note."""
    match name, value:
        case "type", str():
            if value.lower() == "sse":
                server.notes.append(Note("mcp_import_sse", {}))
        case "cwd", str():
            _set_folder(server, value, project)
        case "envFile", str():
            _read_environment_file(server, _resolve(value, project))
        case "timeout", int() | float():
            _convert_timeout(server, value)
        case "tools" | "disabledTools", list():
            _take_tools(server, name, [str(each) for each in value])
        case "alwaysAllow" | "autoApprove" | "trust", _:
            if value:
                server.notes.append(Note("mcp_import_approvals", {"option": name}))
        case _:
            server.notes.append(Note("mcp_import_unused", {"option": name}))


def _set_folder(server: ImportedServer, value: str, project: Path) -> None:
    folder = str(_resolve(value, project))
    if "${" in folder:
        server.notes.append(Note("mcp_import_unused", {"option": f"cwd = {value}"}))
    else:
        server.options["cwd"] = folder


def _take_tools(server: ImportedServer, name: str, tools: list[str]) -> None:
    """Take over the list of allowed tools, or note which tools are turned off."""
    if name == "tools" and "*" not in tools:
        server.options["tools"] = tools
    elif name == "disabledTools" and tools:
        server.notes.append(Note("mcp_import_tools_off", {"tools": ", ".join(tools)}))


def _find_project(file: Path) -> Path:
    """Return the folder of a project: the parent of a folder such as `.vscode` or `.cursor`."""
    folder = file.absolute().parent
    return folder.parent if folder.name.startswith(".") else folder


def _fill_folders(value: Any, project: Path) -> Any:
    """Replace the placeholders for folders, and those with a default."""
    if isinstance(value, Mapping):
        return {name: _fill_folders(each, project) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_fill_folders(each, project) for each in value]
    if not isinstance(value, str):
        return value
    text = _PROJECT.sub(lambda _: str(project), value).replace(_USER_HOME, str(Path.home()))
    return _DEFAULT.sub(_choose_default, text)


def _choose_default(match: re.Match[str]) -> str:
    """Return the placeholder of a variable that is set, or else its default."""
    is_set = VARIABLE.fullmatch(match[1]) and select_variables([match[1]])
    return f"${{{match[1]}}}" if is_set else match[2]


def _resolve(path: str, project: Path) -> Path:
    return project / Path(_fill_folders(path, project)).expanduser()


def _split_command(options: dict[str, Any]) -> None:
    """Split a command that contains its arguments, as Cursor allows."""
    command = options.get("command")
    if isinstance(command, list) and command:
        options["command"] = str(command[0])
        options["args"] = [*command[1:], *options.get("args", [])]
    elif isinstance(command, str) and " " in command.strip() and not options.get("args"):
        # The path of a program may contain spaces, and quotes may be missing.
        with contextlib.suppress(ValueError):
            if shutil.which(command) is None:
                program, *arguments = shlex.split(command)
                options |= {"command": program, "args": arguments}


def _read_environment_file(server: ImportedServer, path: Path) -> None:
    try:
        server.private_variables = parse_variables(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        server.notes.append(Note("mcp_import_no_env_file", {"path": path}))


def _convert_timeout(server: ImportedServer, value: float) -> None:
    """Convert a timeout in seconds or milliseconds to seconds."""
    if value <= 0:
        return
    seconds = value if value <= _LONGEST_IN_SECONDS else value / 1000
    limited = float(min(MAX_TIMEOUT_S, max(1, seconds)))
    server.options["timeout_s"] = limited
    if limited != value:
        values = {"value": f"{value:g}", "seconds": f"{limited:g}"}
        server.notes.append(Note("mcp_import_timeout", values))
