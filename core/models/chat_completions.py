"""Implements the client of OpenAI's Chat Completions API.

It works with OpenAI and with any server that has the same API. All other modules use requests and
answers in the form of the Messages API, so this module translates both. When a conversation grows,
bytes are only added to the end of its translation, so that the server can reuse its cached prefix.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import structlog
from pydantic_core import from_json, to_json

from core.errors import Sentence
from core.models.abilities import CALL_ID
from core.models.connections import Retries, ServerConnection
from core.models.failures import (
    ModelFailure,
    ServerNames,
    WordSentence,
    is_about_call_ids,
    word_in_english,
)
from core.models.reasoning import ReasoningParts, ReturnedReasoning
from core.ports import Clock, TextCallback
from core.text.normalize import make_json_safe
from core.types import Completion, Json, Request, Usage, join_text

OFFICIAL_URL = "https://api.openai.com/v1"
# The length of the answer that `probe` asks for. Some models refuse a shorter limit.
PROBE_TOKENS = 16
_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "content_filter": "refusal",
    "sensitive": "refusal",
}
# The finish reasons of servers that gave up in the middle of an answer.
_BROKEN_REASONS = ("error", "insufficient_system_resource")
# The types of parts with text in an answer.
_TEXT_TYPES = ("text", "output_text")
# The only ids that Mistral accepts.
_SHORT_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")
_THINKING_START = "<think>"
_THINKING_END = "</think>"


@dataclass(slots=True)
class _Dialect:
    """The optional fields that a server accepts.

    When the server refuses a field, the dialect is corrected.
    """

    # OpenAI's newer models accept only "max_completion_tokens", most servers only "max_tokens".
    limit_field: str = "max_tokens"
    is_limit_field_certain: bool = False
    reports_usage: bool = True
    # Mistral accepts only ids of tool calls with 9 letters or digits. Other servers get the ids
    # unchanged, because thinking may refer to them.
    shortens_call_ids: bool = False

    def correct(self, explanation: str) -> bool:
        """Correct the field that a refusal names.

        Returns False if it doesn't name one of the fields.
        """
        if is_about_call_ids(explanation) and not self.shortens_call_ids:
            self.shortens_call_ids = True
            return True
        if "stream_options" in explanation and self.reports_usage:
            self.reports_usage = False
            return True
        if "max_tokens" not in explanation or self.is_limit_field_certain:
            return False
        self.is_limit_field_certain = True
        if self.limit_field == "max_tokens":
            self.limit_field = "max_completion_tokens"
        else:
            self.limit_field = "max_tokens"
        return True


@dataclass(eq=False)
class ChatCompletions:
    """A `Model` that calls a server with the Chat Completions API."""

    # None for a server that needs no key.
    api_key: InitVar[str | None]
    # The base URL including the version, such as "https://api.openai.com/v1". None for the official
    # server.
    base_url: InitVar[str | None]
    clock: InitVar[Clock]
    # See `Retries`.
    tries: InitVar[int] = 5
    timeout_s: InitVar[float] = 120.0
    sleep: InitVar[Callable[[float], Awaitable[None]]] = asyncio.sleep
    word: InitVar[WordSentence] = word_in_english
    # The beginnings of the names of models whose server caches only the marked parts of a request.
    marked_models: tuple[str, ...] = ()
    names: ServerNames = field(
        default_factory=lambda: ServerNames(
            key="OPENAI_API_KEY", address="OPENAI_BASE_URL", api="Chat Completions API"
        )
    )

    def __post_init__(
        self,
        api_key: str | None,
        base_url: str | None,
        clock: Clock,
        tries: int,
        timeout_s: float,
        sleep: Callable[[float], Awaitable[None]],
        word: WordSentence,
    ) -> None:
        # People often copy the address of a request, so its path is removed.
        self.url = (base_url or OFFICIAL_URL).rstrip("/").removesuffix("/chat/completions")
        self._dialect = _Dialect()
        self._reasoning = ReturnedReasoning(self.url)
        if self.url == OFFICIAL_URL:
            self._dialect.limit_field = "max_completion_tokens"
        self._retries = Retries(
            clock=clock, tries=tries, timeout_s=timeout_s, sleep=sleep, word=word
        )
        self._log = structlog.get_logger("model")
        self._connection = ServerConnection(self.url, api_key, self.names, timeout_s)

    async def close(self) -> None:
        await self._connection.close()

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model, and repeat the request after a temporary failure.

        Raises ModelError if the last attempt fails.
        """
        return await self._retries.complete(self._attempt, request, on_text, on_wait)

    async def probe(self, model: str) -> Sentence:
        """Ask the model for a few tokens, and return a sentence such as "X answers at https://…".

        An answer proves that the key and the model's name are valid and that there is credit.
        Raises ModelError if the model doesn't answer.
        """
        message = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
        request = Request(system=(), messages=(message,), model=model, max_tokens=PROBE_TOKENS)
        await self._attempt(request, lambda _: None, self._retries.first_silence_s)
        return Sentence("probe_model", {"model": model, "url": self.url})

    async def fetch_window_tokens(self, model: str) -> int | None:
        """Ask the server for the size of a model's window. Returns None if it isn't reported."""
        return await self._connection.fetch_window_tokens("/models", model)

    async def list_models(self) -> list[str]:
        """Return the names of the server's models.

        Raises ModelError if the server doesn't list them.
        """
        return await self._connection.list_models("/models")

    async def _attempt(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request, and repeat it without an optional field that the server refuses.

        If the server refuses the ids of tool calls, they are shortened. If it refuses or requires
        thinking, the request is changed as `ReturnedReasoning` describes. All later requests are
        sent in the same way. Raises ModelFailure.
        """
        while True:
            try:
                return await self._stream(request, on_piece, silence_s)
            except ModelFailure as failure:
                if failure.status not in (400, 422) or failure.has_begun:
                    raise
                if not (
                    self._dialect.correct(str(failure)) or self._reasoning.learn(request, failure)
                ):
                    raise
                self._log.info("the model's server refuses an optional field", url=self.url)

    async def _stream(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request once, and read the chunks of its answer. Raises ModelFailure."""
        answer = ChunkedAnswer(self.url, request.model)
        try:
            answer.is_complete = await self._connection.stream(
                "/chat/completions",
                self._build_body(request),
                request.model,
                silence_s,
                answer.add_chunk,
                on_piece,
            )
            return answer.build_completion(request.model)
        except ModelFailure as failure:
            failure.has_begun = answer.has_begun
            raise

    def _build_body(self, request: Request) -> bytes:
        """Return the request as JSON in the form of the Chat Completions API."""
        has_marks = request.model.startswith(self.marked_models)
        messages = build_messages(
            request,
            self._reasoning,
            shortens_ids=self._dialect.shortens_call_ids,
            has_marks=has_marks,
        )
        body: dict[str, Any] = {
            "model": request.model,
            self._dialect.limit_field: request.max_tokens,
            "stream": True,
            "messages": messages,
        }
        if isinstance(request.effort, str) and request.effort:
            body["reasoning_effort"] = request.effort
        if self._dialect.reports_usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [_build_tool(tool) for tool in request.tools]
        return to_json(make_json_safe(body))


def build_messages(
    request: Request,
    reasoning: ReturnedReasoning,
    *,
    shortens_ids: bool = False,
    has_marks: bool = False,
) -> list[dict[str, Any]]:
    """Return the system prompt and the messages of a request as Chat Completions messages.

    `reasoning` adds the thinking that the model wrote. With `has_marks`, the cache breakpoints are
    included. In that case, each content is a list of parts, because only parts can have marks.
    """
    messages: list[dict[str, Any]] = []
    if request.system:
        content = _build_content(request.system, has_marks=has_marks)
        messages.append({"role": "system", "content": content})
    for message in request.messages:
        if message["role"] == "assistant":
            answer = _build_assistant_message(message["content"])
            if answer is not None:
                reasoning.add_to(answer, message["content"], request.model)
                messages.append(answer)
        else:
            messages += _build_user_messages(message["content"], has_marks=has_marks)
    for built in messages:
        _shorten_call_ids(built, shortens_all=shortens_ids)
    return messages


def _build_assistant_message(blocks: Sequence[Json]) -> dict[str, Any] | None:
    """Return an answer with its tool calls as a message, or None if it has no text and no calls."""
    message: dict[str, Any] = {"role": "assistant"}
    text = join_text([block for block in blocks if block["type"] in ("text", "tool_use")])
    if text:
        message["content"] = text
    calls = [block for block in blocks if block["type"] == "tool_use"]
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": to_json(call["input"]).decode()},
            }
            for call in calls
        ]
    return message if text or calls else None


def _shorten_call_ids(message: dict[str, Any], *, shortens_all: bool) -> None:
    """Shorten the ids of tool calls and results that the server refuses.

    With `shortens_all`, all ids are shortened to the form that Mistral accepts.
    """
    if "tool_call_id" in message:
        call_id = message["tool_call_id"]
        message["tool_call_id"] = _shorten_call_id(call_id, shortens_all=shortens_all)
    for call in message.get("tool_calls") or ():
        call["id"] = _shorten_call_id(call["id"], shortens_all=shortens_all)


def _shorten_call_id(call_id: str, *, shortens_all: bool) -> str:
    """Shorten an id that the server refuses. The same id always gives the same result.

    An acceptable id isn't changed.
    """
    if (_SHORT_CALL_ID if shortens_all else CALL_ID).fullmatch(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode()).hexdigest()
    return digest[:9] if shortens_all else f"call_{digest[:32]}"


def _build_user_messages(
    blocks: Sequence[Json], *, has_marks: bool = False
) -> list[dict[str, Any]]:
    """Return a message for each tool result, and a message of the user with the other blocks."""
    messages: list[dict[str, Any]] = []
    others: list[Json] = []
    for block in blocks:
        if block["type"] != "tool_result":
            others.append(block)
            continue
        result = block.get("content") or ""
        if not isinstance(result, str):
            # The message of a tool can contain only text, so its pictures follow in the user's
            # message.
            others += [part for part in result if part["type"] == "image"]
            result = _join_texts(result)
        content: Any = result
        if has_marks and result:
            part = {**block, "type": "text", "text": result}
            content = _build_content([part], has_marks=True)
        messages.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": content})
    if others:
        messages.append({"role": "user", "content": _build_content(others, has_marks=has_marks)})
    return messages


def _build_content(blocks: Sequence[Json], *, has_marks: bool) -> str | list[dict[str, Any]]:
    """Return the content of a message: a list of parts if necessary, otherwise a string.

    Many local servers accept only a string.
    """
    if not has_marks and all(block["type"] == "text" for block in blocks):
        return _join_texts(blocks)
    return [_build_part(block, has_marks=has_marks) for block in blocks]


def _build_part(block: Json, *, has_marks: bool) -> dict[str, Any]:
    """Return a text or a picture as part of a message. Raises ModelFailure for other blocks."""
    mark = {}
    if has_marks and "cache_control" in block:
        mark = {"cache_control": block["cache_control"]}
    if block["type"] == "text":
        return {"type": "text", "text": block["text"], **mark}
    if block["type"] != "image":
        raise ModelFailure("unknown_block", block=block["type"])
    source = block["source"]
    url = source.get("url")
    if url is None:
        url = f"data:{source['media_type']};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url}, **mark}


def _build_tool(tool: Json) -> dict[str, Any]:
    """Return the definition of a tool in the form of the Chat Completions API."""
    return {
        "type": "function",
        "function": {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "parameters": tool["input_schema"],
        },
    }


def _join_texts(blocks: Iterable[Json]) -> str:
    """Return the texts of the blocks as paragraphs. Other blocks are left out."""
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")


class ChunkedAnswer:
    """Builds an answer from the chunks of the Chat Completions API.

    `server` is the URL of the server that sends the chunks, and `model` is the requested model.
    """

    def __init__(self, server: str = "", model: str = "") -> None:
        self.has_begun = False
        # Whether the server has said that the answer is complete. Some servers report the end of an
        # answer only in this way.
        self.is_complete = False
        self._text = ""
        # Collects the thinking that the server requires in later requests. Some of it belongs to
        # tool calls, by the index of the call in the answer.
        self._reasoning = ReasoningParts(server, model)
        self._extras: dict[int, Json] = {}
        self._thinking = ThinkingFilter()
        # The tool calls so far, by their index in the answer.
        self._calls: dict[int, dict[str, str]] = {}
        self._finish_reason: str | None = None
        self._has_refused = False
        self._model = ""
        self._usage: Mapping[str, Any] = {}

    def add_chunk(self, chunk: Any) -> str:
        """Add a chunk, and return the piece of text that it adds to the answer, or "".

        Raises ModelFailure if the chunk is malformed.
        """
        try:
            return self._apply_chunk(chunk)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise ModelFailure("unreadable") from error

    def _apply_chunk(self, chunk: Json) -> str:
        """Apply a chunk to the answer, and return the piece of text that it adds."""
        self._model = chunk.get("model") or self._model
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not choices:
            return ""
        choice = choices[0]
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        # A server that doesn't stream sends a whole message.
        delta = choice.get("delta") or choice.get("message") or {}
        for call in delta.get("tool_calls") or ():
            self._add_call(call)
        self._reasoning.add(delta)
        if delta.get("refusal"):
            self._has_refused = True
        content = _read_text(delta.get("content"))
        piece = self._thinking.add(content + (delta.get("refusal") or ""))
        self.has_begun = self.has_begun or bool(piece) or bool(self._calls)
        self._text += piece
        return piece

    def _add_call(self, delta: Json) -> None:
        """Extend a tool call.

        A server that sends whole calls may leave out their index, or give all calls the same index.
        In that case, a new id begins the next call.
        """
        index = delta.get("index")
        known = self._calls.get(index) if index is not None else None
        is_next = bool(known and known["id"] and delta.get("id") not in (None, "", known["id"]))
        if index is None or is_next:
            index = len(self._calls) if delta.get("id") else max(len(self._calls) - 1, 0)
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        if delta.get("extra_content"):
            self._extras[index] = delta["extra_content"]
        function = delta.get("function") or {}
        call["id"] = delta.get("id") or call["id"]
        name = function.get("name") or ""
        # Some servers repeat the whole name in each piece.
        if name != call["name"]:
            call["name"] += name
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = to_json(arguments).decode()
        call["arguments"] += arguments

    def build_completion(self, model: str) -> Completion:
        """Return the whole answer. If the answer doesn't name its model, `model` is used.

        Raises ModelFailure if the answer is incomplete.
        """
        if self._finish_reason is None and not self.is_complete:
            raise ModelFailure("unreadable")
        if self._finish_reason in _BROKEN_REASONS:
            raise ModelFailure("503", status=503)
        self._text += self._thinking.finish()
        text = str(make_json_safe(self._text)).rstrip()
        calls = self._build_calls()
        extras = {calls[index]["id"]: extra for index, extra in self._extras.items()}
        blocks: list[Json] = []
        reasoning = self._reasoning.build(extras, has_calls=bool(calls))
        if reasoning is not None:
            blocks.append(reasoning)
        if text:
            blocks.append({"type": "text", "text": text})
        blocks += calls.values()
        return Completion(
            blocks=tuple(blocks),
            text=text,
            stop_reason=self._stop_reason(),
            usage=_read_usage(self._usage),
            model=self._model or model,
        )

    def _build_calls(self) -> dict[int, dict[str, Any]]:
        """Return the tool calls as blocks, sorted by index. Each call gets a unique id.

        Raises ModelFailure if the arguments of a call are malformed.
        """
        calls: dict[int, dict[str, Any]] = {}
        call_ids: set[str] = set()
        for index in sorted(self._calls):
            call = self._build_call(index)
            if not CALL_ID.fullmatch(call["id"]) or call["id"] in call_ids:
                call["id"] = f"call_{time.time_ns():x}_{index}"
            call_ids.add(call["id"])
            calls[index] = call
        return calls

    def _build_call(self, index: int) -> dict[str, Any]:
        """Return a tool call as a block. Raises ModelFailure if its arguments are malformed.

        If the answer was cut off, the arguments may be incomplete.
        """
        call = self._calls[index]
        try:
            arguments = from_json(call["arguments"].strip() or "{}", allow_partial=True)
            if isinstance(arguments, str):
                # Some models write the arguments as JSON in a JSON string.
                arguments = from_json(arguments.strip() or "{}", allow_partial=True)
        except ValueError as error:
            raise ModelFailure("unreadable") from error
        arguments = {} if arguments == [] else arguments
        if not call["name"] or not isinstance(arguments, dict):
            raise ModelFailure("unreadable")
        return {
            "type": "tool_use",
            "id": call["id"],
            "name": call["name"],
            "input": make_json_safe(arguments),
        }

    def _stop_reason(self) -> str:
        """Return the stop reason in the words of the Messages API.

        Many servers report "stop" for calls.
        """
        if self._has_refused:
            return "refusal"
        reason = _STOP_REASONS.get(self._finish_reason or "", "end_turn")
        return "tool_use" if self._calls and reason == "end_turn" else reason


class ThinkingFilter:
    """Removes thinking that a server puts before the answer as ``<think>…</think>``.

    Most servers send thinking in a separate field instead.
    """

    def __init__(self) -> None:
        # The text that wasn't returned yet. None once the answer has begun.
        self._held: str | None = ""
        self._is_after_thinking = False

    def add(self, piece: str) -> str:
        """Add a piece, and return the text of the answer that can be shown now."""
        if self._held is None:
            return piece
        self._held = (self._held + piece).lstrip()
        if self._held.startswith(_THINKING_START):
            _, end, answer = self._held.partition(_THINKING_END)
            if not end:
                return ""
            self._is_after_thinking = True
            self._held = answer.lstrip()
        elif not self._is_after_thinking and _THINKING_START.startswith(self._held):
            # The next piece may complete the tag, so nothing is returned yet.
            return ""
        return self.finish() if self._held else ""

    def finish(self) -> str:
        """Return the text that wasn't returned yet, unless it's thinking."""
        remaining_text = self._held or ""
        self._held = None
        return "" if remaining_text.startswith(_THINKING_START) else remaining_text


def _read_text(content: str | Sequence[Json] | None) -> str:
    """Return the text in the content of an answer.

    Mistral's thinking models send a list of parts. Parts with thinking are left out.
    """
    if not content:
        return ""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] or "" for part in content if part.get("type", "text") in _TEXT_TYPES
    )


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    """Return the counts of a usage report. Missing counts are 0.

    The prompt's tokens include the cached tokens. DeepSeek reports cached tokens in its own field.
    """
    details = usage.get("prompt_tokens_details") or {}
    cached = _read_count(details, "cached_tokens") or _read_count(usage, "prompt_cache_hit_tokens")
    written = _read_count(details, "cache_write_tokens")
    return Usage(
        input=max(0, _read_count(usage, "prompt_tokens") - cached - written),
        output=_read_count(usage, "completion_tokens"),
        cache_read=cached,
        cache_write=written,
    )


def _read_count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return int(value) if isinstance(value, (int, float)) else 0
