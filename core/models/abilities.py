"""Adapts requests to models that can't use tools, pictures, or a level of thinking.

Mneme knows the limits of a model from the settings or from a refusal of the server. After a
refusal, the request is sent again without the refused part. Once in each conversation, a sentence
above the answer says what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast, get_args
from uuid import uuid4

import structlog

from config.model_options import Ability, Effort
from core.errors import Sentence
from core.models.failures import EFFORT_LEVELS, ModelFailure, WordSentence
from core.ports import Model, TextCallback
from core.types import Completion, Json, Request

# The maximum number of conversations for which it's remembered that the sentence was shown.
MAX_INFORMED = 1000
# The types of blocks with which an answer begins.
_THINKING_TYPES = ("thinking", "redacted_thinking", "reasoning")
ABILITIES: tuple[Ability, ...] = get_args(Ability)
# The ids of tool calls that every server accepts in later requests. OpenAI refuses longer ones.
CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
# The characters that the names of tool calls must not contain.
_NO_NAME_CHARS = re.compile(r"[^a-zA-Z0-9_-]")
MAX_TOOL_NAME_CHARS = 64
# Levels that are sent only if the settings or a refusal names them.
_NEVER_TRIED = ("none", "minimal")
# The keys of the sentences about missing abilities. A missing level of thinking has no sentence.
_SENTENCE_KEYS: Mapping[Ability, str] = {
    "tools": "model_without_tools",
    "pictures": "model_without_pictures",
}
_PICTURE_NOTE = "[A picture that you can't see.]"


class LearnedLimits(Protocol):
    """Stores the limits of models, so that Mneme still knows them after a restart.

    `core.store.model_limits` implements this protocol.
    """

    async def load_lacks(self, model: str) -> frozenset[Ability]:
        """Return the abilities that the server of a model has refused."""

    async def save_lack(self, model: str, ability: Ability) -> None:
        """Store that a model can't use an ability."""

    async def forget_lacks(self, model: str) -> None:
        """Delete the stored refusals of a model's server."""

    async def load_effort(self, model: str, effort: Effort) -> Effort:
        """Return the level of thinking that replaces a refused level.

        If the level wasn't refused, return it.
        """

    async def save_effort(self, model: str, effort: Effort, other: Effort) -> None:
        """Store that a model refuses a level of thinking, and the level that replaces it."""

    async def save_uncounted(self, model: str) -> None:
        """Store that the server of a model doesn't count tokens."""

    async def load_window(self, model: str) -> int | None:
        """Return the size of a model's window that a refusal stated, in tokens, or None."""

    async def save_window(self, model: str, tokens: int) -> None:
        """Store the size of a model's window, in tokens."""


class ModelClient(Model, Protocol):
    """A connection to a model's server."""

    async def probe(self, model: str) -> Sentence:
        """Ask a model for a short answer, and return a sentence with the model and its address."""

    async def list_models(self) -> list[str]:
        """Return the names of the models that the server offers."""

    async def fetch_window_tokens(self, model: str) -> int | None:
        """Return the size of a model's window, or None if the server doesn't report it."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(slots=True, kw_only=True)
class Route:
    """The client and the name with which to call a model."""

    client: ModelClient
    # The model's name on its server.
    model: str
    effort: Effort
    # The abilities that the model lacks according to the settings and earlier refusals.
    lacks: frozenset[Ability]


class LackingModels:
    """Removes from requests the parts that a model can't use, and learns from refusals.

    `limits` stores the refusals, so that Mneme still knows them after a restart.
    """

    def __init__(self, limits: LearnedLimits | None, word: WordSentence) -> None:
        self._limits = limits
        self._word = word
        # The conversations in which the sentence was shown, oldest first.
        self._informed: dict[tuple[int | None, str, str], None] = {}
        self._log = structlog.get_logger("model")

    async def find_effort(self, name: str, effort: Effort) -> Effort:
        """Return the level of thinking to use for a model in place of the configured one."""
        if not effort or self._limits is None:
            return effort
        return await self._limits.load_effort(name, effort)

    async def complete(
        self, route: Route, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask a model, without the parts of the request that it can't use.

        Once in each conversation, a sentence above the answer says what was left out. Raises
        ModelError if the model doesn't answer.
        """
        possible_request, left_out = remove_abilities(request, sorted(route.lacks))
        conversation_id = request.billing.root_id or request.billing.session_id
        keys = {ability: (conversation_id, request.model, ability) for ability in left_out}
        prefix = ""
        if request.kind == "chat":
            news = [ability for ability, key in keys.items() if key not in self._informed]
            sentences = [
                self._word(request.language, sentence) for sentence in describe(request, news)
            ]
            prefix = f"_{' '.join(sentences)}_\n\n" if sentences else ""
        completion = await route.client.complete(
            replace(possible_request, model=route.model),
            lambda text: on_text(prefix + text),
            on_wait,
        )
        if prefix and completion.text:
            self._informed |= dict.fromkeys(keys.values())
            while len(self._informed) > MAX_INFORMED:
                del self._informed[next(iter(self._informed))]
        return add_prefix(prefix, completion)

    async def learn(self, route: Route, request: Request, failure: ModelFailure) -> bool:
        """Learn a limit of a model from a refusal.

        Returns whether another request may succeed.
        """
        name = request.model
        ability = find_refused_ability(failure, request, route.lacks)
        if ability is None:
            return False
        other_effort = None
        if ability == "effort":
            other_effort = find_other_effort(request.effort, failure.levels)
        if other_effort is not None:
            self._log.warning(
                "the model refuses a level of thinking", model=name, effort=request.effort
            )
            if self._limits is not None:
                effort = cast(Effort, request.effort)
                await self._limits.save_effort(name, effort, other_effort)
            route.effort = other_effort
            return True
        route.lacks |= {ability}
        self._log.warning("the model can't use something", model=name, lacks=ability)
        if self._limits is not None:
            await self._limits.save_lack(name, ability)
        return True


def add_prefix(prefix: str, completion: Completion) -> Completion:
    """Return a completion with `prefix` above its text, if it has any text.

    The prefix comes after the thinking, because servers expect an answer to begin with thinking.
    """
    if not prefix or not completion.text:
        return completion
    blocks = list(completion.blocks)
    kinds = [block["type"] in _THINKING_TYPES for block in blocks]
    index = kinds.index(False) if False in kinds else len(blocks)
    blocks.insert(index, {"type": "text", "text": prefix})
    return replace(completion, text=prefix + completion.text, blocks=tuple(blocks))


def repair_calls(request: Request, completion: Completion) -> Completion:
    """Return an answer with tool calls that every server accepts in later requests.

    Some servers use an id twice, and small models call tools by impossible names. Other servers
    refuse each later request of such a conversation.
    """
    taken_ids = _list_call_ids(request)
    new_ids: dict[str, str] = {}
    blocks: list[Json] = []
    for block in completion.blocks:
        if block["type"] == "tool_use":
            call_id = block["id"]
            if call_id in taken_ids or not CALL_ID.fullmatch(call_id):
                call_id = f"call_{uuid4().hex[:24]}"
                new_ids[block["id"]] = call_id
            taken_ids.add(call_id)
            name = _NO_NAME_CHARS.sub("_", block["name"])[:MAX_TOOL_NAME_CHARS]
            block = {**block, "id": call_id, "name": name}
        blocks.append(block)
    for index, block in enumerate(blocks):
        if block["type"] == "reasoning" and new_ids:
            extras = {
                new_ids.get(call_id, call_id): extra for call_id, extra in block["calls"].items()
            }
            blocks[index] = {**block, "calls": extras}
    return replace(completion, blocks=tuple(blocks))


def _list_call_ids(request: Request) -> set[str]:
    ids: set[str] = set()
    for message in request.messages:
        ids |= {block["id"] for block in message["content"] if block["type"] == "tool_use"}
    return ids


def find_other_effort(effort: str | int, levels: Sequence[str]) -> Effort | None:
    """Return the level of thinking that replaces a refused one, or "" to send no level.

    `levels` are the levels that the refusal names. The next lower one is used, or else the lowest
    one that the refusal recommends. Returns None if the server refuses every level.
    """
    if isinstance(effort, int):
        return ""
    others = [level for level in EFFORT_LEVELS if level in levels and level not in (effort, "none")]
    if not others and effort not in levels:
        return "" if levels else None
    position = EFFORT_LEVELS.index(effort)
    # A refusal that names only the refused level doesn't recommend another one.
    lower = others or [level for level in EFFORT_LEVELS[:position] if level not in _NEVER_TRIED]
    below = [level for level in lower if EFFORT_LEVELS.index(level) < position]
    return cast(Effort, below[-1] if below else next(iter(others), ""))


def find_refused_ability(
    failure: ModelFailure, request: Request, known_lacks: frozenset[Ability]
) -> Ability | None:
    """Return the ability that a server refused because its model lacks it, or None.

    Only abilities that the request uses and that weren't left out can have been refused.
    """
    for ability in ABILITIES:
        is_refused = ability in failure.refused_abilities and ability not in known_lacks
        if is_refused and _uses(request, ability):
            return ability
    return None


def remove_abilities(
    request: Request, abilities: Iterable[Ability]
) -> tuple[Request, list[Ability]]:
    """Remove some abilities from a request. Returns it, and the removed abilities that it used."""
    left_out = [ability for ability in abilities if _uses(request, ability)]
    for ability in left_out:
        if ability == "tools":
            request = _without_tools(request)
        elif ability == "pictures":
            request = _replace_blocks(request, _describe_picture)
        else:
            request = replace(request, effort="")
    return request, left_out


def describe(request: Request, left_out: Sequence[Ability]) -> list[Sentence]:
    """Return sentences for people about the parts that were left out of a request.

    Pictures are mentioned only if the last message has one.
    """
    last_message = replace(request, messages=request.messages[-1:])
    sentences = []
    for ability in left_out:
        key = _SENTENCE_KEYS.get(ability)
        is_new = ability != "pictures" or _uses(last_message, "pictures")
        if key is not None and is_new:
            sentences.append(Sentence(key, {"model": request.model}))
    return sentences


def _uses(request: Request, ability: Ability) -> bool:
    """Return whether the request uses this ability."""
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
    """Return the request without tools. Earlier calls and their results become text."""
    return replace(_replace_blocks(request, _describe_call), tools=())


def _replace_blocks(request: Request, convert: Callable[[Json], Json]) -> Request:
    """Return the request with each block of its messages converted by `convert`."""
    messages = tuple(
        {**message, "content": [convert(block) for block in message["content"]]}
        for message in request.messages
    )
    return replace(request, messages=messages)


def _describe_picture(block: Json) -> Json:
    """Replace a picture with a note. A tool result keeps its other parts."""
    if _is_picture(block):
        return {"type": "text", "text": _PICTURE_NOTE}
    if any(map(_is_picture, _parts_of(block))):
        return {**block, "content": [_describe_picture(part) for part in _parts_of(block)]}
    return block


def _describe_call(block: Json) -> Json:
    """Replace a tool call or a tool result with a text."""
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
