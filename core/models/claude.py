"""Implements the client of Anthropic's Messages API.

It works with any server that has a Messages API. Every failure becomes a ModelError with a sentence
for the person. The blocks of an answer are returned in a form that even a strict server accepts in
later requests. The module doesn't depend on sessions, tools or people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any
from urllib.parse import quote, urlsplit

import structlog
from pydantic_core import PydanticSerializationError, from_json, to_json

from core.errors import Sentence
from core.models.connections import Retries, ServerConnection
from core.models.failures import (
    ModelFailure,
    ServerNames,
    WordSentence,
    find_missing_thinking,
    word_in_english,
)
from core.ports import Clock, TextCallback
from core.text.normalize import make_json_safe
from core.types import Completion, Json, Request, Usage, join_text

OFFICIAL_URL = "https://api.anthropic.com"
MODELS_PATH = "/v1/models?limit=100"
API_VERSION = "2023-06-01"
# How many signatures of refused thinking are remembered.
MAX_REFUSED_SIGNATURES = 1000
# The types of blocks with thinking. "reasoning" comes from servers with the Chat Completions API.
_THINKING_TYPES = ("thinking", "redacted_thinking", "reasoning")
# The field of a content block that each type of delta extends.
_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


@dataclass(frozen=True, slots=True)
class CitableBlocks:
    """Functions that make blocks citable and name the cited parts.

    They are in `core.search.citations`.
    """

    # Replaces texts in the messages of a request with ``search_result`` and ``document`` blocks.
    add: Callable[[Sequence[Json]], Sequence[Json]]
    # Names a part of a document by the document's title and the text of the part.
    name_part: Callable[[str, str], str]


@dataclass(eq=False)
class Claude:
    """A `Model` that calls a server with the Messages API."""

    # None for a server that needs no key.
    api_key: InitVar[str | None]
    # None for the official server.
    base_url: InitVar[str | None]
    clock: InitVar[Clock]
    # See `Retries`.
    tries: InitVar[int] = 5
    timeout_s: InitVar[float] = 120.0
    sleep: InitVar[Callable[[float], Awaitable[None]]] = asyncio.sleep
    word: InitVar[WordSentence] = word_in_english
    names: ServerNames = field(default_factory=ServerNames)
    # None if the server doesn't support citations.
    citable: CitableBlocks | None = None

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
        # The paths of requests contain the version, and people often copy URLs that end with "/v1".
        self.url = (base_url or OFFICIAL_URL).rstrip("/").removesuffix("/v1")
        self.is_official = urlsplit(self.url).hostname == "api.anthropic.com"
        self._accepts_cache_breakpoints = True
        # Whether the server accepts thinking without signatures. Some servers write such thinking
        # and refuse it later.
        self._accepts_unsigned = not self.is_official
        # The models that refuse tool calls without thinking unless the request turns thinking off.
        self._strict_models: set[str] = set()
        # The signatures of thinking that the server refused, oldest first.
        self._refused_signatures: dict[str, None] = {}
        self._retries = Retries(
            clock=clock, tries=tries, timeout_s=timeout_s, sleep=sleep, word=word
        )
        self._log = structlog.get_logger("model")
        headers = {"anthropic-version": API_VERSION}
        self._connection = ServerConnection(self.url, api_key, self.names, timeout_s, headers)

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
        """Ask the model for one token, and return a sentence such as "X answers at https://…".

        An answer proves that the key and the model's name are valid and that there is credit.
        Raises ModelError if the model doesn't answer.
        """
        message = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
        request = Request(system=(), messages=(message,), model=model, max_tokens=1)
        await self._attempt(request, lambda _: None, self._retries.first_silence_s)
        return Sentence("probe_model", {"model": model, "url": self.url})

    async def fetch_window_tokens(self, model: str) -> int | None:
        """Ask the server for the size of a model's window. Returns None if it isn't reported."""
        info = await self._connection.fetch(f"/v1/models/{quote(model, safe='')}")
        tokens = info.get("max_input_tokens") if isinstance(info, Mapping) else None
        if isinstance(tokens, int):
            return tokens
        if self.is_official:
            return None
        # Other servers, such as llama.cpp's, report the size in their list of models, if at all.
        return await self._connection.fetch_window_tokens(MODELS_PATH, model)

    async def list_models(self) -> list[str]:
        """Return the names of the server's models.

        Raises ModelError if the server doesn't list them.
        """
        return await self._connection.list_models(MODELS_PATH)

    async def _attempt(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request. If the server rejects thinking or breakpoints, resend it without.

        Raises ModelFailure.
        """
        request = keep_own_thinking(request, self.url, self._refused_signatures)
        if not self._accepts_unsigned:
            request = _drop_unsigned_thinking(request)
        if request.model in self._strict_models and _has_bare_calls(request):
            request = replace(request, effort="none")
        if self.citable is not None:
            request = replace(request, messages=tuple(self.citable.add(request.messages)))
        if not self._accepts_cache_breakpoints:
            request = strip_cache_breakpoints(request)
        while True:
            try:
                return await self._stream(request, on_piece, silence_s)
            except ModelFailure as failure:
                if failure.status not in (400, 422) or failure.has_begun:
                    raise
                plain_request = strip_cache_breakpoints(request)
                if "thinking" in failure.refused_abilities:
                    unthinking_request = self._without_thinking(request, str(failure))
                    if unthinking_request is None:
                        raise
                    request = unthinking_request
                    continue
                if self.is_official or plain_request == request:
                    raise
            return await self._try_without_cache_breakpoints(plain_request, on_piece, silence_s)

    async def _try_without_cache_breakpoints(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request without breakpoints.

        If it succeeds, later requests have no breakpoints either.
        """
        completion = await self._stream(request, on_piece, silence_s)
        if self._accepts_cache_breakpoints:
            self._accepts_cache_breakpoints = False
            self._log.warning("the model's server rejects cache breakpoints", url=self.url)
        return completion

    def _without_thinking(self, request: Request, explanation: str) -> Request | None:
        """Return the request without the thinking that the server refuses, or None if it has none.

        The first time, only unsigned thinking is left out, and the second time all thinking. Later
        requests leave it out, too. If the server requires thinking in the history, the request
        turns thinking off instead.
        """
        if find_missing_thinking(explanation):
            self._strict_models.add(request.model)
            return replace(request, effort="none") if request.effort != "none" else None
        blocks = [
            block
            for message in request.messages
            for block in message["content"]
            if block["type"] in _THINKING_TYPES
        ]
        if self._accepts_unsigned and not all(map(_read_signature, blocks)):
            self._accepts_unsigned = False
            return _drop_unsigned_thinking(request)
        if not blocks and request.effort in ("", "none"):
            return None
        self._refused_signatures |= dict.fromkeys(map(_read_signature, blocks))
        while len(self._refused_signatures) > MAX_REFUSED_SIGNATURES:
            del self._refused_signatures[next(iter(self._refused_signatures))]
        return replace(_replace_thinking(request, lambda _: None), effort="")

    async def _stream(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request once, and read the events of its answer. Raises ModelFailure."""
        answer = StreamedAnswer(
            self.url,
            request.model,
            partial(self._name_source, request),
            keeps_unsigned=self._accepts_unsigned,
        )
        try:
            await self._connection.stream(
                "/v1/messages",
                build_body(request),
                request.model,
                silence_s,
                answer.add_event,
                on_piece,
            )
            return answer.build_completion(request.model)
        except ModelFailure as failure:
            failure.has_begun = bool(answer.blocks)
            raise

    def _name_source(self, request: Request, citation: Json) -> str:
        """Return the name of a cited message or part of a file, or "" for other citations."""
        if citation["type"] == "search_result_location":
            return str(citation["source"])
        if citation["type"] != "content_block_location" or self.citable is None:
            return ""
        documents = [
            block
            for message in request.messages
            for block in message["content"]
            if block["type"] == "document"
        ]
        document = documents[citation["document_index"]]
        passage = document["source"]["content"][citation["start_block_index"]]
        return self.citable.name_part(document["title"], passage["text"])


def build_body(request: Request) -> bytes:
    """Return the request as JSON in the form of the Messages API."""
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "stream": True,
    }
    if request.system:
        body["system"] = request.system
    if request.messages:
        body["messages"] = request.messages
    if request.tools:
        body["tools"] = request.tools
    body |= _build_thinking(request)
    # This takes a fifth of the time of json.dumps.
    try:
        return to_json(body)
    except PydanticSerializationError:
        # The text contains half of a surrogate pair.
        return to_json(make_json_safe(body))


def _build_thinking(request: Request) -> dict[str, Any]:
    """Return the fields that control thinking. A number is a budget in tokens."""
    effort = request.effort
    if not effort:
        return {}
    if isinstance(effort, int):
        return {"thinking": {"type": "enabled", "budget_tokens": effort}}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    level = "low" if effort == "minimal" else effort
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}


class StreamedAnswer:
    """Builds an answer from the stream events of the Messages API.

    `server` is the URL of the server that sends the events, and `model` is the requested model.
    `name_source` returns the name to show for a citation, or "" for a citation without a mark. With
    `keeps_unsigned`, thinking without a signature becomes part of the answer.
    """

    def __init__(
        self,
        server: str = "",
        model: str = "",
        name_source: Callable[[Json], str] = lambda _: "",
        *,
        keeps_unsigned: bool = False,
    ) -> None:
        self._origin = {"server": server, "model": model}
        self._name_source = name_source
        self._keeps_unsigned = keeps_unsigned
        # The index of the last block that has text. None if no block has text.
        self.blocks: list[dict[str, Any]] = []
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._has_stopped = False
        # The index of the last block that has text. None if none has.
        self._last_text_index: int | None = None

    def add_event(self, event: Any) -> str:
        """Add an event, and return the piece of text that it adds to the answer, or "".

        All pieces together are the text that `join_text` returns. Raises ModelFailure if the event
        is malformed.
        """
        try:
            return self._apply_event(event)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise ModelFailure("unreadable") from error

    def _apply_event(self, event: Json) -> str:
        """Apply an event to the answer, and return the piece of text that it adds."""
        match event["type"]:
            case "message_start":
                self._begin(event["message"])
            case "message":
                # A server that doesn't stream sends a whole message.
                self._begin(event)
                self._has_stopped = True
                return join_text(self.blocks)
            case "content_block_start":
                block = dict(event["content_block"])
                self.blocks.append(block)
                if block["type"] == "text":
                    return self._separate_text(len(self.blocks) - 1, block.get("text") or "")
            case "content_block_delta":
                return self._apply_delta(event["index"], event["delta"])
            case "content_block_stop":
                return self._end_block(event["index"])
            case "message_delta":
                stop_reason = event["delta"].get("stop_reason")
                self._message["stop_reason"] = stop_reason or self._message.get("stop_reason")
                # Each count is a total. A count that is missing here keeps its earlier value.
                usage = event.get("usage") or {}
                self._usage |= {name: count for name, count in usage.items() if count is not None}
            case "message_stop":
                self._has_stopped = True
        return ""

    def _begin(self, message: Json) -> None:
        """Store the fields that are known at the beginning of an answer."""
        self._message = dict(message)
        self.blocks = [dict(block) for block in message.get("content") or ()]
        self._usage = dict(message.get("usage") or {})

    def _apply_delta(self, index: int, delta: Json) -> str:
        """Extend a field of a block, and return the piece of text that the delta adds."""
        block = self.blocks[index]
        if delta["type"] == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        field = _DELTA_FIELDS.get(delta["type"])
        if field is None:
            return ""
        block[field] = (block.get(field) or "") + delta[field]
        return self._separate_text(index, delta[field]) if field == "text" else ""

    def _end_block(self, index: int) -> str:
        """Add marks for the cited messages and files to the end of a text, and return the marks."""
        block = self.blocks[index]
        sources = dict.fromkeys(map(self._name_source, block.get("citations") or ()))
        marks = "".join(f" [{source}]" for source in sources if source)
        if marks:
            block["text"] += marks
        return self._separate_text(index, marks)

    def _separate_text(self, index: int, text: str) -> str:
        """Return the text, with a paragraph break before it if other blocks precede it."""
        if not text:
            return ""
        last_index = self._last_text_index
        self._last_text_index = index
        if last_index is None:
            return text
        has_other_blocks = any(
            block["type"] != "text" for block in self.blocks[last_index + 1 : index]
        )
        return f"\n\n{text}" if has_other_blocks else text

    def build_completion(self, model: str) -> Completion:
        """Return the whole answer. If the answer doesn't name its model, `model` is used.

        Raises ModelFailure if the answer is incomplete.
        """
        if not self._message:
            raise ModelFailure("foreign")
        stop_reason = self._message.get("stop_reason")
        if not stop_reason and not self._has_stopped:
            raise ModelFailure("unreadable")
        try:
            blocks = build_input_blocks(
                self.blocks, self._origin, keeps_unsigned=self._keeps_unsigned
            )
        except ValueError as error:
            raise ModelFailure("unreadable") from error
        if not stop_reason:
            has_calls = any(block["type"] == "tool_use" for block in blocks)
            stop_reason = "tool_use" if has_calls else "end_turn"
        return Completion(
            blocks=blocks,
            text=join_text(blocks),
            stop_reason=stop_reason,
            usage=Usage(
                input=_read_count(self._usage, "input_tokens"),
                output=_read_count(self._usage, "output_tokens"),
                cache_read=_read_count(self._usage, "cache_read_input_tokens"),
                cache_write=_read_count(self._usage, "cache_creation_input_tokens"),
                cache_write_hour=_read_count(
                    self._usage.get("cache_creation"), "ephemeral_1h_input_tokens"
                ),
                web_searches=_read_count(self._usage.get("server_tool_use"), "web_search_requests"),
            ),
            model=self._message.get("model") or model,
        )


def _read_count(usage: Any, name: str) -> int:
    """Return a count from the usage report, or 0 if it's missing, as on many local servers."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) else 0


def build_input_blocks(
    blocks: Sequence[Json], origin: Json, *, keeps_unsigned: bool = False
) -> tuple[Json, ...]:
    """Return the blocks of an answer in a form that later requests may contain.

    Fields that only answers may have, empty texts, unsigned thinking unless `keeps_unsigned`, and
    white space at the end are removed. Thinking gets its `origin`, the URL of its server and its
    model, because it must not be sent to others. Raises ModelFailure for an unknown type of block,
    and ModelFailure or ValueError for a malformed block.
    """
    input_blocks: list[dict[str, Any]] = []
    for block in blocks:
        if block.get("type") in _THINKING_TYPES:
            input_block = _build_thinking_block(block, origin, keeps_unsigned=keeps_unsigned)
        else:
            input_block = _build_input_block(block)
        if input_block is not None:
            input_blocks.append(input_block)
    if input_blocks and input_blocks[-1]["type"] == "text":
        input_blocks[-1]["text"] = input_blocks[-1]["text"].rstrip()
    return tuple(input_blocks)


def strip_cache_breakpoints(request: Request) -> Request:
    """Return the request without the cache breakpoints of its system and message blocks."""

    def strip(blocks: Iterable[Json]) -> list[Json]:
        return [
            {name: value for name, value in block.items() if name != "cache_control"}
            for block in blocks
        ]

    messages = tuple({**turn, "content": strip(turn["content"])} for turn in request.messages)
    return replace(request, system=tuple(strip(request.system)), messages=messages)


def keep_own_thinking(request: Request, server: str, refused: Collection[str]) -> Request:
    """Remove thinking from a request, unless its model wrote it on the server with this URL.

    Thinking with one of the `refused` signatures is removed, too. Thinking that an earlier version
    stored names no model.
    """

    def convert(block: Json) -> Json | None:
        if block.get("server") != server or block.get("model", request.model) != request.model:
            return None
        if _read_signature(block) in refused:
            return None
        return {name: value for name, value in block.items() if name not in ("server", "model")}

    return _replace_thinking(request, convert)


def _replace_thinking(request: Request, convert: Callable[[Json], Json | None]) -> Request:
    """Convert each block of thinking in a request.

    If `convert` returns None, the block is removed. A request without thinking is returned
    unchanged.
    """
    contents = list(map(itemgetter("content"), request.messages))
    # Without a loop of its own, a long conversation is looked through several times as fast.
    types = map(itemgetter("type"), chain.from_iterable(contents))
    if all(contents) and frozenset(_THINKING_TYPES).isdisjoint(types):
        return request
    messages: list[Json] = []
    for message in request.messages:
        if _has_thinking(message):
            content = [
                convert(block) if block["type"] in _THINKING_TYPES else block
                for block in message["content"]
            ]
            message = {**message, "content": [block for block in content if block is not None]}
        if message["content"]:
            messages.append(message)
    return replace(request, messages=tuple(messages))


def _drop_unsigned_thinking(request: Request) -> Request:
    """Return the request without thinking that has no signature."""
    return _replace_thinking(request, lambda block: block if _read_signature(block) else None)


def _has_bare_calls(request: Request) -> bool:
    """Return whether an answer in the history has tool calls but no thinking."""
    for message in request.messages:
        types = {block["type"] for block in message["content"]}
        if "tool_use" in types and not types & {*_THINKING_TYPES}:
            return True
    return False


def _has_thinking(message: Json) -> bool:
    if message["role"] == "assistant":
        for block in message["content"]:
            if block["type"] in _THINKING_TYPES:
                return True
    return False


def _read_signature(block: Json) -> str:
    """Return the signature that proves that a server wrote a block of thinking."""
    return str(block.get("signature") or block.get("data") or "")


def _build_thinking_block(
    block: Json, origin: Json, *, keeps_unsigned: bool
) -> dict[str, Any] | None:
    """Convert thinking to a form that later requests may contain, or return None to leave it out.

    Raises ModelFailure if the type of the block is unknown.
    """
    if block["type"] == "redacted_thinking" and block.get("data"):
        return {"type": "redacted_thinking", "data": block["data"], **origin}
    if block["type"] == "reasoning":
        raise ModelFailure("unknown_block", block="reasoning")
    thinking = block.get("thinking") or ""
    if block.get("signature") or (keeps_unsigned and thinking):
        signature = block.get("signature") or ""
        return {"type": "thinking", "thinking": thinking, "signature": signature, **origin}
    return None


def _build_input_block(block: Json) -> dict[str, Any] | None:
    """Convert a block to a form that later requests may contain, or return None to leave it out.

    Raises ModelFailure if the type of the block is unknown.
    """
    block_type = str(block.get("type"))
    match block_type:
        case "text":
            return _build_text(block)
        case "tool_use" | "server_tool_use":
            return _build_tool_call(block)
        case "web_search_tool_result" | "web_fetch_tool_result" if "content" in block:
            names = ("type", "tool_use_id", "content", "caller")
            return {name: block[name] for name in names if block.get(name) is not None}
    raise ModelFailure("unknown_block", block=block_type[:40])


def _build_text(block: Json) -> dict[str, Any] | None:
    """Return a text with its citations of web pages, or None if it's empty.

    Citations of search results were replaced with marks in the text before.
    """
    text = make_json_safe(block.get("text") or "")
    if not text.strip():
        return None
    pages = [
        citation
        for citation in block.get("citations") or ()
        if citation["type"] == "web_search_result_location"
    ]
    return {"type": "text", "text": text} | ({"citations": pages} if pages else {})


def _build_tool_call(block: Json) -> dict[str, Any]:
    """Return a tool call in a form that later requests may contain.

    If the answer was cut off, the call's arguments may be incomplete. Raises ModelFailure or
    ValueError if the call is malformed.
    """
    arguments = block.get("input")
    partial_json = block.get("partial_json")
    if partial_json:
        arguments = from_json(partial_json, allow_partial=True)
    call = {
        "type": block["type"],
        "id": block.get("id"),
        "name": block.get("name"),
        "input": make_json_safe(arguments),
    }
    if not call["id"] or not call["name"] or not isinstance(call["input"], dict):
        raise ModelFailure("unreadable")
    return call
