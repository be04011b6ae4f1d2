"""The definitions of tools that are sent to models."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from core.guard.tool_definitions import ToolArguments, relax_schema
from core.memory.provider_tools import check_tools
from core.types import Effect, Tool, ToolContext
from tests.fixtures.gateway_harness import open_gateway
from tests.fixtures.scripted_model import ScriptedModel


class Arguments(ToolArguments):
    text: str = Field(min_length=1, max_length=2_000)
    kinds: list[str] = Field(default=[], max_length=3)
    parts: list[list[str]] = Field(default=[], max_length=500)


def test_schema_keeps_short_limits_and_leaves_out_those_that_make_a_grammar_too_large() -> None:
    schema = relax_schema(Arguments.model_json_schema())
    assert schema["properties"]["text"] == {"minLength": 1, "title": "Text", "type": "string"}
    assert schema["properties"]["kinds"]["maxItems"] == 3
    assert "maxItems" not in schema["properties"]["parts"]
    assert schema["required"] == ["text"]


def test_argument_may_have_the_name_of_a_limit() -> None:
    properties = {"maxLength": {"type": "integer", "maxLength": 5_000}}
    schema = {"type": "object", "properties": properties, "anyOf": [{"maxItems": 9_000}]}
    assert relax_schema(schema) == {
        "type": "object",
        "properties": {"maxLength": {"type": "integer"}},
        "anyOf": [{}],
    }


@pytest.mark.parametrize("pattern", [r"^\d{4}$", "(?i)^yes$", "^a(?=b)"])
def test_pattern_that_only_some_servers_understand_is_left_out(pattern: str) -> None:
    assert relax_schema({"type": "string", "pattern": pattern}) == {"type": "string"}
    plain = {"type": "string", "pattern": "^[0-9]{4}$"}
    assert relax_schema(plain) == plain


async def test_tool_of_a_plugin_is_sent_without_large_limits() -> None:
    async def run(arguments: object, context: ToolContext) -> str:
        return ""

    schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 8_000}}}
    tool = Tool(
        name="keep", description="Keeps.", schema=schema, effects={"": Effect.READ}, run=run
    )
    (usable,), warnings = check_tools("plugin", [tool], ())
    assert warnings == []
    assert usable.schema["properties"]["text"] == {"type": "string"}


async def test_no_request_has_a_tool_with_a_large_limit(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("Hello")
        assert isinstance(harness.model, ScriptedModel)
        tools = harness.model.requests[-1].tools
        assert len(tools) > 5
        for tool in tools:
            assert relax_schema(tool["input_schema"]) == tool["input_schema"], tool["name"]
