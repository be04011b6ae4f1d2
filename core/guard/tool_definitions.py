"""Builds the definitions of tools, and checks the definitions that come from outside.

Every request contains the definitions of all tools, so they are kept short.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from config.masking import mask_secrets
from core.errors import ToolError
from core.text.normalize import language_data, to_single_line
from core.types import Effect, Json, Tool, ToolContext

# The definition of a tool from outside may take at most this many bytes.
TOOL_BYTES = 20_000
# Limits of the lengths of arguments that are larger than this aren't sent.
MAX_LENGTH_LIMIT = 100
_LENGTH_LIMITS = ("minLength", "maxLength", "minItems", "maxItems")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def find_tool_fault(tool: object, other_names: Collection[str] = ()) -> str | None:
    """Return the reason why an object can't be offered to a model as a tool, as a clause, or None.

    `other_names` are the names of the tools that are already offered.
    """
    if not isinstance(tool, Tool):
        return "it isn't a Tool"
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    if not isinstance(tool.name, str) or _TOOL_NAME.fullmatch(tool.name) is None:
        return "its name must consist of 1 to 64 letters, digits, _ and -"
    if tool.name in other_names:
        return "the name is taken"
    if not isinstance(tool.description, str) or schema.get("type") != "object":
        return "it must have a description, and a schema of the type object"
    try:
        size = len(json.dumps([tool.description, tool.schema], ensure_ascii=False).encode())
    except (TypeError, ValueError) as error:
        reason = to_single_line(mask_secrets(str(error)))[:200]
        return f"its description or schema cannot be sent: {reason}"
    if size > TOOL_BYTES:
        return f"it takes {size:,} bytes, more than {TOOL_BYTES:,}"
    return None


def relax_schema(schema: Any) -> Any:
    """Return a schema without large length limits and without patterns that have escapes.

    The tool checks its arguments itself. Some servers, such as llama.cpp's, compile the schemas of
    all tools to a grammar, and refuse each request with a schema that they can't compile.
    """
    if isinstance(schema, list):
        return [relax_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: relax_schema(part) for name, part in schema.items() if not _is_too_much(name, part)
    }


def _is_too_much(name: str, value: object) -> bool:
    """Return True for a limit or a pattern that a grammar can't express."""
    if name in _LENGTH_LIMITS:
        return isinstance(value, int) and value > MAX_LENGTH_LIMIT
    # An escape, a lookahead, or an option such as (?i).
    return name == "pattern" and isinstance(value, str) and ("\\" in value or "(?" in value)


class ToolArguments(BaseModel):
    """The base class of all models of tool arguments. Unknown arguments are errors."""

    model_config = ConfigDict(extra="forbid")


M = TypeVar("M", bound=ToolArguments)


def parse_arguments(model: type[M], arguments: Json) -> M:
    """Validate the arguments of a tool and return them as its model.

    An argument with the value null counts as missing. Raises ToolError, which names the first
    invalid argument.
    """
    values = {name: value for name, value in arguments.items() if value is not None}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "arguments"
        raise ToolError(f"{field}: {first['msg']}") from error


def build_tool(
    name: str,
    arguments: type[M],
    run: Callable[[M, ToolContext], Awaitable[str]],
    package: str,
    effects: Effect | Mapping[str, Effect],
    **marks: Any,
) -> Tool:
    """Build a tool that calls `run` with validated arguments.

    `effects` is the effect of each action, or the only effect of a tool without actions.
    `data/prompts.toml` in `package` describes the tool and its arguments. `marks` are further
    fields of `Tool`.
    """
    description, schema_json = _describe_tool(name, arguments, package)

    async def run_validated(values: Json, context: ToolContext) -> str:
        return await run(parse_arguments(arguments, values), context)

    return Tool(
        name=name,
        description=description,
        schema=json.loads(schema_json),
        effects={"": effects} if isinstance(effects, Effect) else effects,
        run=run_validated,
        **marks,
    )


class _ToolSchema(GenerateJsonSchema):
    """Generates a schema without titles, null and empty defaults, which a model doesn't need."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        if schema.get("default"):
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])


@cache
def _describe_tool(name: str, arguments: type[BaseModel], package: str) -> tuple[str, str]:
    """Return the description of a tool and the schema of its arguments as JSON.

    In `data/prompts.toml`, ``[arguments]`` describes the arguments that the tools of the package
    share, and ``[arguments.<tool>]`` the arguments of one tool.
    """
    texts = language_data("prompts", package)
    schema = relax_schema(arguments.model_json_schema(schema_generator=_ToolSchema))
    schema.pop("title", None)
    shared_texts = texts.get("arguments", {})
    for argument, text in {**shared_texts, **shared_texts.get(name, {})}.items():
        if argument in schema["properties"]:
            description = {**schema["properties"][argument], "description": text}
            schema["properties"][argument] = dict(sorted(description.items()))
    return texts[name], json.dumps(schema, ensure_ascii=False)
