"""Checks the effects that tools declare, and finds the effects of a call.

Every tool declares the effect of each of its actions (`core.types.Effect`). A tool with an
incomplete declaration can't be registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import ToolError
from core.types import Effect, Json, Tool


def find_effect_fault(tool: Tool) -> str | None:
    """Return a clause that says why a tool's declared effects are incomplete, or None."""
    effects = tool.effects
    is_declared = isinstance(effects, Mapping) and bool(effects)
    if not is_declared or not all(isinstance(effect, Effect) for effect in effects.values()):
        return (
            'it declares no effects: add effects={"": Effect.READ}, or one effect for each action '
            "(docs/extending.md)"
        )
    if tool.is_read_only and any(effect is not Effect.READ for effect in effects.values()):
        return "it is read-only, but an action of it has another effect than read"
    actions = _list_actions(tool.schema, tool.action_argument)
    if not actions:
        return None if "" in effects else 'its effect needs the key ""'
    missing = sorted(actions - effects.keys())
    if missing:
        return f"it declares no effect for {tool.action_argument} {', '.join(missing)}"
    return None


def _list_actions(schema: Json, argument: str) -> set[str]:
    """Return all values that a schema allows for an argument, at any depth."""
    actions: set[str] = set()
    pending: list[Any] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                actions |= _list_constants(properties.get(argument))
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return actions


def _list_constants(schema: object) -> set[str]:
    """Return the strings in an ``enum`` or ``const``, including the alternatives of ``anyOf``."""
    if not isinstance(schema, Mapping):
        return set()
    constants = {str(value) for value in schema.get("enum", ())}
    if "const" in schema:
        constants.add(str(schema["const"]))
    for alternative in schema.get("anyOf", ()):
        constants |= _list_constants(alternative)
    return constants


def list_choices(schema: object) -> set[str]:
    """Return the strings that the arguments of a schema choose from, at any depth."""
    choices: set[str] = set()
    pending: list[object] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            choices |= _list_constants(part)
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return choices


def list_effects(tool: Tool, arguments: Json) -> frozenset[Effect]:
    """Return the effects of a call.

    Raises ToolError if the arguments name an action that the tool doesn't have, or if they name no
    action although the tool has several.
    """
    if set(tool.effects) == {""}:
        # A tool without actions has one effect.
        return frozenset(tool.effects.values())
    if tool.inner_argument:
        # Nested arguments aren't searched, because the inner tool may have an argument with this
        # name.
        named_action = arguments.get(tool.action_argument)
        actions = [named_action] if isinstance(named_action, str) else []
    else:
        actions = list(_list_named_actions(arguments, tool.action_argument))
    if not actions:
        schema = tool.schema.get("properties", {}).get(tool.action_argument, {})
        if schema.get("default"):
            actions = [schema["default"]]
    effects = set()
    for action in actions:
        if action not in tool.effects:
            raise ToolError(
                f"{tool.name} has no {tool.action_argument} {action!r}, only "
                f"{', '.join(filter(None, tool.effects))}."
            )
        effects.add(tool.effects[action])
    if not effects:
        raise ToolError(
            f"{tool.name} needs {tool.action_argument}: {', '.join(filter(None, tool.effects))}."
        )
    return frozenset(effects)


def _list_named_actions(value: object, argument: str) -> Iterator[str]:
    """Yield the actions that the arguments name, also inside nested lists and objects."""
    if isinstance(value, Mapping):
        if isinstance(value.get(argument), str):
            yield value[argument]
        for child in value.values():
            yield from _list_named_actions(child, argument)
    elif isinstance(value, (list, tuple)):
        for child in value:
            yield from _list_named_actions(child, argument)
