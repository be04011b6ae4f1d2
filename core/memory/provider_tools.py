"""Checks the tools that an external memory provider offers to the model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from core.guard.tool_definitions import find_tool_fault, relax_schema
from core.review.effects import find_effect_fault
from core.text.normalize import to_single_line
from core.types import Tool

MAX_NAME_CHARS = 64


def check_tools(
    provider_name: str, offered: Any, used_names: Collection[str]
) -> tuple[list[Tool], list[str]]:
    """Return the usable tools of a provider, and a warning for each of its other tools.

    A tool is left out if it's malformed or if another tool in `used_names` has its name. A model
    server would reject every request with such a tool. `offered` should be a list, but the code of
    a plugin may return anything.
    """
    tools: list[Tool] = []
    warnings: list[str] = []
    for tool in offered if isinstance(offered, (list, tuple)) else [offered]:
        taken_names = {*used_names, *(usable.name for usable in tools)}
        if fault := find_tool_fault(tool, taken_names) or find_effect_fault(tool):
            warnings.append(
                f"The tool {_label_tool(tool)} of the memory {provider_name} is left out: {fault}."
            )
        else:
            tools.append(replace(tool, schema=relax_schema(tool.schema)))
    return tools, warnings


def _label_tool(tool: object) -> str:
    """Return the name of a tool for a warning, or "without a name" if the tool has none."""
    if isinstance(tool, Tool) and isinstance(tool.name, str):
        return to_single_line(tool.name)[:MAX_NAME_CHARS]
    return "without a name"
