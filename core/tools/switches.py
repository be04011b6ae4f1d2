"""Refuses calls of tools that a person has switched off with /tools.

The tools stay in the prompt, so that its cache stays valid.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.errors import ToolError
from core.store.preferences import Preference
from core.tools.web import WEB_FETCH, WEB_SEARCH
from core.types import Account, Json

WEB = "web"
CALENDAR = "calendar"
# The tool that calls tools of MCP servers, whose names are like "notes__search".
CALL_TOOL = "call_tool"
SEPARATOR = "__"


@dataclass(frozen=True, slots=True)
class ToolSwitches:
    """Knows which tools people have switched off, and refuses their calls."""

    load_preference: Callable[[Account | None], Awaitable[Preference]]

    async def check(self, name: str, arguments: Json, account: Account) -> None:
        """Raise ToolError if the person of an account has switched off a tool."""
        group = find_tool_group(name, arguments)
        if group and group in (await self.load_preference(account)).switched_off:
            raise ToolError(
                f"The person has switched {group} off, so it isn't used. Answer without it, and "
                f"tell them that `/tools on {group}` switches it on again."
            )


def find_tool_group(name: str, arguments: Json) -> str:
    """Return the group of a tool: "web", "calendar" or the name of an MCP server.

    `arguments` name the tool that `call_tool` calls. Returns "" for all other tools.
    """
    if name in (WEB_SEARCH, WEB_FETCH):
        return WEB
    if name == CALENDAR:
        return CALENDAR
    if name == CALL_TOOL:
        name = str(arguments.get("tool_name", ""))
    server, separator, _ = name.partition(SEPARATOR)
    return server if separator else ""
