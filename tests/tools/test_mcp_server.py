"""The MCP server that shares the memory: what programs get for wrong calls."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client, MCPError

from core.tools.mcp_server import SharedMemory, build_server
from core.types import Json


async def answer_nothing(query: str) -> Json:
    return {}


async def find_nothing(query: str, limit: int) -> list[Json]:
    return []


async def propose(content: str, program: str) -> str:
    return "It waits."


MEMORY = SharedMemory(
    recall=answer_nothing,
    find_facts=find_nothing,
    list_sessions=find_nothing,
    propose_fact=propose,
)
WRONG_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("recall", {}, "The argument query is missing."),
    ("recall", {"query": 5}, "The argument query must be text."),
    ("recall", {"query": "a\ud800"}, "The argument query must be valid Unicode text."),
    ("recall", {"query": "a" * 2_001}, "The argument query may have at most 2000 characters."),
    ("facts", {"limit": "many"}, "The argument limit must be a whole number."),
    ("facts", {"limit": 2.5}, "The argument limit must be a whole number."),
    ("facts", {"limit": None}, "The argument limit must be a whole number."),
    ("sessions", {"limit": 0}, "The argument limit must be at least 1."),
    (
        "sessions",
        {"limit": 51, "query": []},
        "The argument query must be text. The argument limit may be at most 50.",
    ),
    ("remember", {"content": "ab"}, "The argument content must have at least 3 characters."),
    ("no_such_tool", {}, "Unknown tool: no_such_tool"),
]


@pytest.mark.parametrize(("tool", "arguments", "sentence"), WRONG_CALLS)
async def test_wrong_call_of_a_program_is_answered_with_one_sentence_for_each_argument(
    tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    async with Client(build_server(MEMORY, "1")) as client:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        assert [block.text for block in result.content if block.type == "text"] == [sentence]


async def test_prompt_that_the_memory_server_does_not_have_is_named_in_the_error() -> None:
    async with Client(build_server(MEMORY, "1")) as client:
        with pytest.raises(MCPError, match="Unknown prompt: daily"):
            await client.get_prompt("daily", {})
