"""Finds environment variables that options name, and passes variables on to other programs.

Only named variables are read as settings. This module loads no other module of Mneme, so that help
is fast.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# The name of an environment variable, as the value of an option: "MEM0_API_KEY".
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
# A variable inside of a value: "Bearer ${LINEAR_KEY}".
PLACEHOLDER = re.compile(r"\$\{([A-Z][A-Z0-9_]+)\}")


def export_variables(variables: Mapping[str, str]) -> None:
    """Set environment variables for a library that reads them when it is loaded."""
    os.environ.update(variables)


def locate_home(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the home from MNEME_HOME, or the default. The home may be missing.

    `environment` replaces the environment of the process. Raises RuntimeError if the user's home
    folder is unknown.
    """
    variables = os.environ if environment is None else environment
    name = variables.get("MNEME_HOME", "").strip() or "~/.mneme"
    return Path(name).expanduser().absolute()


def locate_swap_file(home: Path) -> Path:
    """Return the path of the file that exists while a restore swaps the home with a backup."""
    return home.with_name(f".{home.name}.restoring") / "swap.json"


def child_environment(home: Path) -> dict[str, str]:
    """Return the environment for another process of Mneme with this home."""
    return {**os.environ, "MNEME_HOME": str(home)}


def select_variables(names: Sequence[str]) -> dict[str, str]:
    """Return the environment variables with these names, to be passed on to another program."""
    return {name: os.environ[name] for name in names if name in os.environ}


def list_named_variables(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the environment variables that options name, such as ``key = "MEM0_API_KEY"``.

    Only the tables of model servers, memory providers, engines, recall, media, backup, the web, the
    page and the store have such options. The tables of MCP servers name variables as ``${NAME}``.
    """
    memory = get_table(options, "memory")
    groups = [get_table(memory, "providers"), get_table(memory, "engines")]
    groups.append(get_table(get_table(options, "model"), "servers"))
    groups += [get_table(options, "recall"), get_table(options, "media")]
    groups += [{name: get_table(options, name)} for name in ("backup", "web", "web_tools", "store")]
    for group in groups:
        for name in group:
            for value in get_table(group, name).values():
                if isinstance(value, str) and VARIABLE.fullmatch(value):
                    yield value
    calendars = get_table(options, "calendar")
    for name in calendars:
        source = get_table(calendars, name)
        yield from PLACEHOLDER.findall(str(source.get("url", "")))
        if VARIABLE.fullmatch(str(source.get("key", ""))):
            yield str(source["key"])
    servers = get_table(options, "mcp")
    for name in servers:
        server = get_table(servers, name)
        yield from PLACEHOLDER.findall(f"{server.get('url', '')} {server.get('args', '')}")
        for table in ("env", "headers"):
            for value in get_table(server, table).values():
                yield from PLACEHOLDER.findall(str(value))


def get_table(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the table with this name, or an empty table if there is none."""
    table = options.get(name)
    return table if isinstance(table, dict) else {}
