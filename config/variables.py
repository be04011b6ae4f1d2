"""Finds the environment variables that options name, because only these are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from config.field_types import PLACEHOLDER, VARIABLE


def list_named_variables(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the environment variables that options name, such as ``key = "MEM0_API_KEY"``.

    Only the tables of model servers, memory providers, engines, recall, media, backup,
    the web, the page and the store have such options. The tables of MCP servers name variables as
    ``${NAME}``.
    """
    memory = get_table(options, "memory")
    groups = [get_table(memory, "providers"), get_table(memory, "engines")]
    groups.append(get_table(get_table(options, "model"), "servers"))
    groups += [get_table(options, "recall"), get_table(options, "media")]
    groups += [{name: get_table(options, name)} for name in ("backup", "web", "page", "store")]
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
        for table in ("env", "headers"):
            for value in get_table(get_table(servers, name), table).values():
                yield from PLACEHOLDER.findall(str(value))


def get_table(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the table with this name, or an empty table if there is none."""
    table = options.get(name)
    return table if isinstance(table, dict) else {}
