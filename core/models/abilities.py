"""Asks models without what they can't use: tools, pictures, or a level of thinking.

Settings say what a model lacks, or a refusal of its server teaches it. Then the request is sent
again without that, and a sentence above the answer says so once in each conversation. The module is
loaded when a model lacks something for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from config.model_options import Ability
from core.models.failures import ModelFailure, describe_left_out
from core.types import Json, Request

ABILITIES: tuple[Ability, ...] = get_args(Ability)
_PICTURE_NOTE = "[A picture that you can't see.]"


def find_refused_ability(
    failure: ModelFailure, request: Request, known_lacks: frozenset[Ability]
) -> Ability | None:
    """Return what a server refused because its model can't use it, or None.

    Only what the request asks for, and what wasn't left out, can have been refused.
    """
    for ability in ABILITIES:
        is_refused = ability in failure.refused_abilities and ability not in known_lacks
        if is_refused and _uses(request, ability):
            return ability
    return None


def leave_out(request: Request, abilities: Iterable[Ability]) -> tuple[Request, list[Ability]]:
    """Return the request without the abilities that it uses, and the list of these abilities."""
    left_out = [ability for ability in abilities if _uses(request, ability)]
    for ability in left_out:
        if ability == "tools":
            request = _without_tools(request)
        elif ability == "pictures":
            request = _replace_blocks(request, _describe_picture)
        else:
            request = replace(request, effort="")
    return request, left_out


def describe(request: Request, left_out: Sequence[Ability]) -> str:
    """Return the sentences for people about what an answer lacks.

    Pictures are mentioned only if the last message has one.
    """
    last_message = replace(request, messages=request.messages[-1:])
    sentences = [
        describe_left_out(ability, request.model)
        for ability in left_out
        if ability != "pictures" or _uses(last_message, "pictures")
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _uses(request: Request, ability: Ability) -> bool:
    """Return True if the request asks the model to use this ability."""
    if ability == "tools":
        return bool(request.tools)
    if ability == "effort":
        return bool(request.effort)
    return any(
        _is_picture(part)
        for message in request.messages
        for block in message["content"]
        for part in (block, *_parts_of(block))
    )


def _is_picture(block: Json) -> bool:
    return block.get("type") == "image"


def _parts_of(block: Json) -> Sequence[Json]:
    """Return the blocks inside a tool result, or () for other blocks."""
    content = block.get("content")
    return content if block.get("type") == "tool_result" and isinstance(content, list) else ()


def _without_tools(request: Request) -> Request:
    """Return the request without tools. Earlier calls and their results become texts."""
    return replace(_replace_blocks(request, _describe_call), tools=())


def _replace_blocks(request: Request, convert: Callable[[Json], Json]) -> Request:
    """Return the request with each block of its messages converted."""
    messages = tuple(
        {**message, "content": [convert(block) for block in message["content"]]}
        for message in request.messages
    )
    return replace(request, messages=messages)


def _describe_picture(block: Json) -> Json:
    """Return a note instead of a picture. A tool result keeps its other parts."""
    if _is_picture(block):
        return {"type": "text", "text": _PICTURE_NOTE}
    if any(map(_is_picture, _parts_of(block))):
        return {**block, "content": [_describe_picture(part) for part in _parts_of(block)]}
    return block


def _describe_call(block: Json) -> Json:
    """Return a text instead of a tool call or the result of one."""
    if block["type"] == "tool_use":
        arguments: Mapping[str, object] = block["input"]
        values = ", ".join(f"{name}: {value}" for name, value in arguments.items())
        return {"type": "text", "text": f"[I called the tool {block['name']} ({values}).]"}
    if block["type"] == "tool_result":
        content = block.get("content") or ""
        if not isinstance(content, str):
            content = "\n".join(part["text"] for part in content if part["type"] == "text")
        return {"type": "text", "text": f"[Result of the tool:]\n{content}"}
    return block
