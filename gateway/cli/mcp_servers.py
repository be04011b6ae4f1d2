"""Defines the shell commands `mneme mcp list`, `add`, `test`, `remove`, `import` and `serve`.

An MCP server is a table [mcp.NAME] in mneme.toml (see `core/tools/mcp_tools.py`). With `serve`,
Mneme itself becomes an MCP server.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import secrets
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from config.draft import SettingsDraft
from config.settings import Settings, SettingsError
from config.tool_options import McpServer
from config.variables import PLACEHOLDER
from core.errors import ToolError
from core.transfer.mcp_entries import Note, read_entry
from core.transfer.mcp_options import SecretMover, hide_keys, list_own_variables
from gateway import logs
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, print_json, print_text
from gateway.commands.registry import CommandContext
from gateway.services import Services
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import SHELL as texts
from gateway.texts.settings_problems import word_problem

# The key that programs send to `mneme mcp serve --http`, in secrets.env.
KEY_VARIABLE = "MNEME_MCP_KEY"
# A header in the form of HTTP, as other programs take it: "Authorization: Bearer …".
_HEADER = re.compile(r"\A([A-Za-z][\w-]*):")


def complete_name(incomplete: str) -> list[str]:
    """Suggest the names of the MCP servers in mneme.toml."""
    try:
        return [name for name in Settings.load().mcp if name.startswith(incomplete)]
    except SettingsError:
        return []


Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_name)]


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    shell.add_group(
        root,
        "mcp",
        {
            "list": list_command,
            "add": add_command,
            "test": check_command,
            "remove": remove_command,
            "import": import_command,
            "serve": serve_command,
        },
    )


def list_command(as_json: AsJson = False) -> None:
    """List the MCP servers of the settings."""
    with shell.exit_on_error():
        settings = SettingsDraft().load()
        rows = [
            {
                "name": name,
                "enabled": server.enabled,
                "place": _describe_place(name, server),
                "people": server.people,
                "tools": list(server.tools),
            }
            for name, server in sorted(settings.mcp.items())
        ]
        if as_json:
            print_json(rows)
            return
        if not rows:
            print_text(texts.compose("no_mcp_server"))
            return
        heads = ("mcp_name", "mcp_on", "mcp_place", "mcp_for")
        table = Table(*map(texts.compose, heads), box=None)
        for row in rows:
            state = texts.compose("yes" if row["enabled"] else "no")
            people = texts.compose(f"mcp_people_{row['people']}")
            # As plain text, because square brackets would be markup.
            table.add_row(str(row["name"]), state, Text(str(row["place"])), people)
        Console().print(table)


def add_command(
    name: Name,
    command: Annotated[list[str] | None, typer.Argument()] = None,
    url: Annotated[str, typer.Option()] = "",
    env: Annotated[list[str] | None, typer.Option()] = None,
    header: Annotated[list[str] | None, typer.Option()] = None,
) -> None:
    """Connect an MCP server, try it, and add it to the settings.

    Example: mneme mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    """
    with shell.exit_on_error():
        options: dict[str, Any] = {}
        if url:
            options["url"] = url
        if command:
            options |= {"command": command[0], "args": command[1:]}
        if header:
            header = [_HEADER.sub(r"\1=", each, count=1) for each in header]
        options |= {
            table: _parse_pairs(pairs, flag)
            for table, flag, pairs in (("env", "--env", env), ("headers", "--header", header))
            if pairs
        }
        if bool(options.get("url")) == bool(options.get("command")):
            shell.fail(texts.compose("mcp_no_command"))
        if command and header:
            shell.fail(texts.compose("mcp_header_without_url"))
        draft = SettingsDraft()
        if f"mcp.{name}" in _list_tables(draft):
            shell.fail(texts.compose("mcp_exists", name=name))
        tools = _load_tools(_add_typed_server(draft, name, options), name)
        draft.write()
        key = "mcp_connected" if tools else "mcp_connected_empty"
        print_text(texts.compose(key, name=name, count=len(tools), tools=", ".join(tools)))
        _say_when(draft)


def check_command(name: Name, as_json: AsJson = False) -> None:
    """Connect to an MCP server, and list its tools with their effects."""
    with shell.exit_on_error():
        settings = SettingsDraft().load()
        if name not in settings.mcp:
            shell.fail(texts.compose("mcp_unknown", name=name))
        tools = _load_tools(settings, name)
        if as_json:
            print_json([{"name": tool, "effect": effect} for tool, effect in tools.items()])
            return
        table = Table(texts.compose("mcp_tool"), texts.compose("mcp_effect"), box=None)
        for tool, effect in tools.items():
            table.add_row(Text(tool), texts.compose(f"effect_{effect}"))
        Console().print(table)
        if missing := sorted(set(settings.mcp[name].tools) - tools.keys()):
            print_text(texts.compose("mcp_missing_tools", name=name, tools=", ".join(missing)))


def remove_command(name: Name) -> None:
    """Remove an MCP server from the settings, and its keys from secrets.env."""
    with shell.exit_on_error():
        draft = SettingsDraft()
        options = draft.own_options.get("mcp", {}).get(name, {})
        variables = list_own_variables(name, options)
        try:
            draft.remove_option(f"mcp.{name}")
        except KeyError:
            shell.fail(texts.compose("mcp_unknown", name=name))
        for variable in variables:
            if f"${{{variable}}}" not in draft.text:
                draft.set_secret(variable, None)
        draft.write()
        print_text(texts.compose("mcp_removed", name=name))
        _say_when(draft)


def import_command(
    file: Annotated[Path, typer.Argument()],
) -> None:
    """Take over the MCP servers of another assistant.

    Values that look like keys go into secrets.env. Servers that Mneme already has aren't changed.
    """
    with shell.exit_on_error():
        servers = _read_servers(file)
        draft = SettingsDraft()
        known_tables = _list_tables(draft)
        added: list[str] = []
        skipped: list[str] = []
        notes: list[tuple[str, Note]] = []
        for raw_name, entry in servers.items():
            first = name = re.sub(r"[^A-Za-z0-9-]", "-", raw_name).strip("-")[:28] or "server"
            if f"mcp.{name}" in known_tables:
                skipped.append(name)
                continue
            number = 2
            while name in added:
                name = f"{first}-{number}"
                number += 1
            server = read_entry(entry, file)
            if not server.options:
                _refuse_entry(file, raw_name, texts.table("SETTINGS_PROBLEMS")["command_or_url"])
            try:
                _add_server(draft, name, server.options, server.private_variables)
                draft.load()
            except SettingsError as error:
                _refuse_entry(file, raw_name, _word_fault(error, name))
            added.append(name)
            notes += [(name, note) for note in server.notes]
        draft.write()
        if added:
            names = ", ".join(added)
            print_text(texts.compose("mcp_added", names=names, first=added[0]))
            _say_when(draft)
            _name_missing_variables(draft, added)
            for name, note in notes:
                print_text(texts.compose(note.key, name=name, **note.values))
        if skipped:
            print_text(texts.compose("mcp_skipped", names=", ".join(skipped)))
        if not servers:
            print_text(texts.compose("mcp_file_empty", path=file))


def _add_typed_server(draft: SettingsDraft, name: str, options: Mapping[str, Any]) -> Settings:
    """Add a server to the draft of the settings, and return the settings.

    Exit with a sentence about what the person typed if it can't be used. Raises SettingsError for
    mistakes elsewhere in the settings.
    """
    try:
        _add_server(draft, name, options)
        return draft.load()
    except SettingsError as error:
        if error.problems[0].startswith(f"mcp.{name}:"):
            shell.fail(texts.compose("mcp_bad_name", name=repr(name)))
        if error.problems[0].startswith(f"mcp.{name}.url:"):
            shell.fail(texts.compose("mcp_bad_address", url=repr(options["url"])))
        if error.problems[0].startswith(f"mcp.{name}."):
            reason = _word_fault(error, name)
            shell.fail(texts.compose("mcp_bad_server", name=name, reason=reason))
        raise


def _refuse_entry(file: Path, name: str, reason: str) -> NoReturn:
    """Exit with a sentence about an entry of another assistant's file that can't be used."""
    shell.fail(texts.compose("mcp_file_bad_server", path=file, name=name, reason=reason))


def _word_fault(error: SettingsError, name: str) -> str:
    """Return the first mistake in the settings, without the path of the server's table."""
    sentence = word_problem(texts, error.problems[0])
    return sentence.removeprefix(f"mcp.{name}.").removeprefix(f"mcp.{name}: ")


def _add_server(
    draft: SettingsDraft,
    name: str,
    options: Mapping[str, Any],
    private_variables: Mapping[str, str] | None = None,
) -> None:
    """Add a server to the draft of the settings.

    Secrets in its options become variables of secrets.env, and so do all `private_variables`, which
    the server gets in addition to its `env`.
    """
    mover = SecretMover(name)
    if private_variables:
        kept = {key: mover.keep(key, value) for key, value in private_variables.items()}
        options = {**options, "env": {**kept, **options.get("env", {})}}
    for key, value in mover.move(options).items():
        draft.set_option(f"mcp.{name}.{key}", value)
    for variable, secret in mover.secrets.items():
        draft.set_secret(variable, secret)


def _name_missing_variables(draft: SettingsDraft, names: Sequence[str]) -> None:
    """Name the variables that the options of servers use, but that have no value."""
    tables = draft.own_options.get("mcp", {})
    variables = draft.load().variables
    missing = {
        variable
        for name in names
        for variable in PLACEHOLDER.findall(repr(tables.get(name)))
        if variable not in variables
    }
    if missing:
        print_text(texts.compose("mcp_missing_variables", names=", ".join(sorted(missing))))


def _read_servers(file: Path) -> dict[str, Mapping[str, Any]]:
    """Return the servers of a JSON file by name.

    The file has them under `mcpServers` or `servers`. Raises OSError if it can't be read.
    """
    text = file.read_bytes()
    try:
        content = json.loads(text)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        shell.fail(texts.compose("mcp_file_unreadable", path=file, line=line))
    except json.JSONDecodeError as error:
        shell.fail(texts.compose("mcp_file_unreadable", path=file, line=error.lineno))
    tables = (
        content.get("mcpServers", content.get("servers")) if isinstance(content, dict) else None
    )
    if not isinstance(tables, dict):
        shell.fail(texts.compose("mcp_file_without_table", path=file))
    for name, server in tables.items():
        if not isinstance(server, dict):
            shell.fail(texts.compose("mcp_file_no_server", path=file, name=name))
    return dict(tables)


def serve_command(
    http: Annotated[
        int | None,
        typer.Option(min=1, max=65535, metavar="PORT"),
    ] = None,
    scope: InScope = None,
) -> None:
    """Let another program use the memory, as an MCP server.

    Without --http, it speaks over standard input and output: name `mneme mcp serve` as the command
    in the settings of the other program. A program can search your messages and read facts.
    Anything it wants to store waits for your approval.
    """
    key = "" if http is None else _load_key(http)

    async def work(services: Services, context: CommandContext) -> None:
        # Imported here because few commands need it.
        from gateway.local.shared_memory import serve_memory

        if http is None:
            # The SDK can't stop reading from standard input. A kill loses nothing.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        await serve_memory(services, partial(shell.make_context, services, scope), http, key)

    shell.run_as_owner(work, scope, notifies_owner=True)


def _load_key(port: int) -> str:
    """Return the key that client programs must send. The first call creates and prints it."""
    with shell.exit_on_error():
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                shell.fail(
                    texts.compose(
                        "port_unusable",
                        port=port,
                        reason=texts.word_stored(error.strerror or str(error)),
                    )
                )
        draft = SettingsDraft()
        if key := draft.secrets.get(KEY_VARIABLE):
            print_text(texts.MCP_ADDRESS.format(port=port))
            return key
        key = secrets.token_urlsafe(32)
        draft.set_secret(KEY_VARIABLE, key)
        draft.write()
        # The key is printed only once, because it opens the whole memory.
        print_text(texts.MCP_KEY.format(port=port, key=key))
        return key


def _load_tools(settings: Settings, name: str) -> dict[str, str]:
    """Connect to a server, and return the effect of each allowed tool.

    Exit with a message on failure.
    """
    from core.tools.mcp_tools import McpServers, find_effect

    server = settings.mcp[name]
    if server.command and shutil.which(server.command) is None:
        shell.fail(texts.compose("mcp_no_program", program=server.command))
    # A failure is printed as one sentence, so the warnings of the connection aren't shown.
    logs.configure(settings, io.StringIO())

    variables = {key: secret.get_secret_value() for key, secret in settings.variables.items()}

    async def load() -> dict[str, str]:
        enabled = {name: server.model_copy(update={"enabled": True})}
        servers = McpServers(enabled, variables, settings.home, _refuse_calls)
        try:
            definitions = await servers.refresh(name)
        finally:
            await servers.close()
        if definitions is None:
            problem = servers.problems[name]
            raise ToolError(problem.key, **problem.values)
        return {
            tool.name: find_effect(tool, server, variables).value
            for tool in definitions.tools
            if not server.tools or tool.name in server.tools
        }

    return asyncio.run(load())


async def _refuse_calls(context: object) -> bool:
    return False


def _describe_place(name: str, server: McpServer) -> str:
    """Return the command or address of a server, without keys."""
    options = hide_keys(name, {"url": server.url, "args": server.args})
    return str(options["url"]) or " ".join([server.command, *options["args"]])


def _parse_pairs(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Parse NAME=VALUE pairs. Exit with a message if a pair has another form."""
    values = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            shell.fail(texts.compose("wrong_pair", flag=flag, pair=repr(pair)))
        values[name.strip()] = value.strip()
    return values


def _list_tables(draft: SettingsDraft) -> set[str]:
    return {f"mcp.{name}" for name in draft.own_options.get("mcp", {})}


def _say_when(draft: SettingsDraft) -> None:
    if is_running(draft.home):
        print_text(texts.compose("used_after_start"))
