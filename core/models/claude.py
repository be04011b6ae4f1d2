"""The client of the Messages API, and the only module that imports the Anthropic SDK.

The client streams answers, and repeats a request after a temporary failure. Every failure becomes a
ModelError with a sentence for the person. It works with any server that has a Messages API. The
blocks of an answer are returned in a form that even a strict server accepts in later requests. The
module doesn't depend on sessions, tools or people.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from datetime import timedelta
from itertools import groupby
from random import random
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import structlog
from pydantic_core import PydanticSerializationError, from_json, to_json

from config.masking import MASK, mask_secrets
from config.open_files import bound_connections
from core.errors import ModelError
from core.ports import Clock, TextCallback
from core.text.normalize import language_data
from core.types import Completion, Json, Request, Usage

OFFICIAL_URL = "https://api.anthropic.com"
CONNECT_TIMEOUT_S = 10.0
WINDOW_TIMEOUT_S = 5.0
# The longest pause between two attempts, unless the server asks for a longer one.
MAX_PAUSE_S = 30.0
# The shortest pause after the first attempt, even if the server asks for a shorter pause. The
# shortest pause doubles with each attempt.
MIN_PAUSE_S = 0.5
# The first attempt may take this share of the timeout. If it hangs, time for another one is left.
FIRST_ATTEMPT_SHARE = 1 / 3
# Sent to local servers, which need no key. Without any key, the SDK searches the disk for one.
_NO_KEY = "no-key"
MAX_CONNECTIONS = 100
# Connections stay open for a minute, so that the next turn of a conversation needs no handshake.
_KEEPALIVE_S = 60.0
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
# Half of a surrogate pair. It can't be encoded as UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")
# Reading events that have already arrived may block the event loop for this long.
MAX_BURST_S = 0.01
# A text up to this length is returned after every event.
OFTEN_RETURNED_CHARS = 10_000
# A longer text is returned after it has grown by one of so many parts.
MAX_UNRETURNED_PARTS = 50
# At most this many characters of the server's explanation of an error are shown.
MAX_EXPLANATION_CHARS = 300
_RETRYABLE_STATUSES = (408, 409, 429)
_FAILURES = language_data("failures", "core.models")
_TOO_LONG = re.compile(_FAILURES["too_long"])
# The kinds of failures in `data/failures.toml`, with their exceptions. The first kind that matches
# is used. Any other exception means a lost connection.
_EXCEPTION_KINDS: Sequence[tuple[str, tuple[type[Exception], ...]]] = (
    (
        "unreached",
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol),
    ),
    ("late", (httpx2.TimeoutException,)),
    ("foreign", (anthropic.APIResponseValidationError,)),
    ("unreadable", (ValueError,)),
)
# The field of a content block that each type of delta extends.
_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


@dataclass(eq=False)
class Claude:
    """A `Model` that calls a server with the Messages API."""

    # None for a server that needs no key.
    api_key: InitVar[str | None]
    # None for the official server.
    base_url: InitVar[str | None]
    clock: Clock
    # The most attempts of a call.
    tries: int = 5
    # No attempt starts later than this after the first attempt. An attempt fails if the server
    # sends nothing for this time; the first attempt fails after `FIRST_ATTEMPT_SHARE` of it.
    timeout_s: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self, api_key: str | None, base_url: str | None) -> None:
        """Set up the SDK's client. The client doesn't retry, because `complete` does."""
        # The SDK adds the version itself, but people often copy URLs that end with "/v1".
        self.url = (base_url or OFFICIAL_URL).rstrip("/").removesuffix("/v1")
        host = urlsplit(self.url).hostname or ""
        self._is_official = host == "api.anthropic.com"
        self._accepts_cache_marks = True
        self._key = (api_key or "").strip() or _NO_KEY
        self._first_silence_s = self.timeout_s
        if self.tries > 1:
            self._first_silence_s = self.timeout_s * FIRST_ATTEMPT_SHARE
        self._log = structlog.get_logger("model")
        connections = bound_connections(MAX_CONNECTIONS)
        # Calls that don't fit wait here, because the timeouts of the SDK would include the wait.
        self._free_connections = asyncio.Semaphore(connections)
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=_sdk_timeout(self.timeout_s),
            open_telemetry=False,
            # For a server on this machine, proxies from the environment are ignored.
            http_client=anthropic.DefaultAioHttpClient(
                limits=httpx2.Limits(max_connections=connections, keepalive_expiry=_KEEPALIVE_S),
                trust_env=host not in _LOOPBACK_HOSTS,
            ),
        )

    async def close(self) -> None:
        await self._client.close()

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model, and repeat the request after a temporary failure.

        If an answer breaks off, the request is repeated only once. Raises ModelError if the last
        attempt fails.
        """
        ends_at = self.clock.now() + timedelta(seconds=self.timeout_s)
        max_attempts = 1 if request.is_single_attempt else self.tries
        attempts = 0
        broken_answers = 0
        silence_s = self._first_silence_s
        while True:
            attempts += 1
            if attempts > 1:
                remaining_s = (ends_at - self.clock.now()).total_seconds()
                silence_s = max(self._first_silence_s, remaining_s)
            answer = StreamedAnswer()
            try:
                return await self._attempt(request, answer, on_text, silence_s)
            except ModelFailure as failure:
                if answer.blocks:
                    broken_answers += 1
                pause_s = _pause_after(attempts, failure.retry_after_s)
                is_too_late = self.clock.now() + timedelta(seconds=pause_s) > ends_at
                if not failure.is_retryable or attempts >= max_attempts or is_too_late:
                    raise
                if broken_answers > 1:
                    raise
                shown_s = max(1, math.ceil(pause_s))
                self._log.info(
                    "the model is asked again",
                    why=failure.log_message,
                    pause_s=shown_s,
                    tried=attempts,
                )
                on_wait(
                    f"{failure.clause}; trying again in {shown_s} s "
                    f"({attempts + 1} of {max_attempts})."
                )
            await self.sleep(pause_s)

    async def probe(self, model: str) -> str:
        """Ask the model for one token, and return a sentence such as "X answers at https://…".

        An answer proves that the key, the credit and the model's name are right. Raises ModelError
        if the model doesn't answer.
        """
        message = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
        request = Request(system=(), messages=(message,), model=model, max_tokens=1)
        await self._attempt(request, StreamedAnswer(), lambda _: None, self._first_silence_s)
        return f"{model} answers at {self.url}."

    async def fetch_window_tokens(self, model: str) -> int | None:
        """Ask the server for the size of a model's window. Return None if it isn't reported."""
        try:
            info = await self._client.models.retrieve(model, timeout=WINDOW_TIMEOUT_S)
            return info.max_input_tokens
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError, AttributeError):
            return None

    async def _attempt(
        self, request: Request, answer: StreamedAnswer, on_text: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request. If the server rejects cache marks, repeat the request without them.

        If that succeeds, all later requests are sent without cache marks.
        """
        if not self._accepts_cache_marks:
            return await self._stream(strip_cache_marks(request), answer, on_text, silence_s)
        try:
            return await self._stream(request, answer, on_text, silence_s)
        except ModelFailure as failure:
            may_be_marks = (
                failure.status in (400, 422) and not answer.blocks and not self._is_official
            )
            plain_request = strip_cache_marks(request)
            if not may_be_marks or plain_request == request:
                raise
        completion = await self._stream(plain_request, answer, on_text, silence_s)
        if self._accepts_cache_marks:
            self._accepts_cache_marks = False
            self._log.warning("the model's server rejects cache marks", url=self.url)
        return completion

    async def _stream(
        self, request: Request, answer: StreamedAnswer, on_text: TextCallback, silence_s: float
    ) -> Completion:
        """Send a request once and read its events into `answer`. Raises ModelFailure."""
        try:
            async with (
                self._free_connections,
                await self._open_stream(request, silence_s) as events,
            ):
                yielded_at_s = time.monotonic()
                async for event in events:
                    text = answer.add_event(event)
                    if text:
                        on_text(text)
                    # Events that have already arrived are read without a pause for other tasks.
                    if time.monotonic() - yielded_at_s > MAX_BURST_S:
                        await asyncio.sleep(0)
                        yielded_at_s = time.monotonic()
            return answer.build_completion(request.model)
        except anthropic.APIStatusError as error:
            # The response body may repeat the request, so the log must not get it ("from None").
            raise self._refusal(error, request.model) from None
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise ModelFailure(_exception_kind(error)) from error

    async def _open_stream(self, request: Request, silence_s: float) -> anthropic.AsyncStream[Any]:
        """Send a request, and return the events of its answer as plain JSON.

        This bypasses the SDK's `messages.create`, which takes four times as long for a long
        conversation. Raises ModelFailure if the key has characters that a header can't
        have, and the SDK's errors if the request fails.
        """
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelFailure("illegal_key")
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
        # This takes a fifth of the time of json.dumps.
        try:
            content = to_json(body)
        except PydanticSerializationError:
            # A text contains half of a surrogate pair.
            content = to_json(make_json_safe(body))
        return await self._client.post(
            "/v1/messages",
            cast_to=object,
            content=content,
            options={"timeout": _sdk_timeout(silence_s)},
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )

    def _refusal(self, error: anthropic.APIStatusError, model: str) -> ModelFailure:
        """Return the failure for an error that the server reported, without the key in its message.

        An error may also be an event in a stream that began with status 200. The status of the
        failure then follows from the type of the error.
        """
        status = error.status_code
        if status < 400:
            status = _FAILURES["status_of_type"].get(error.type or "", 500)
        explanation = mask_secrets(_explanation(error)).replace(self._key, MASK)
        explanation = " ".join(explanation.split())[:MAX_EXPLANATION_CHARS].rstrip(". ")
        kind, status = _classify_refusal(status, explanation, model, error.error_code or "")
        is_retryable = kind != "spend_limit" and (status in _RETRYABLE_STATUSES or status >= 500)
        failure = ModelFailure(
            kind,
            status=status,
            is_retryable=is_retryable,
            model=model,
            words=explanation or "it doesn't say why",
            number=status,
        )
        if error.status_code >= 400:
            headers = error.response.headers
            failure.retry_after_s = _retry_after_s(headers)
            if headers.get("x-should-retry") in ("true", "false"):
                failure.is_retryable = headers["x-should-retry"] == "true"
        return failure


def _sdk_timeout(silence_s: float) -> anthropic.Timeout:
    return anthropic.Timeout(silence_s, connect=min(CONNECT_TIMEOUT_S, silence_s))


def _exception_kind(error: Exception) -> str:
    """Return the kind of failure for an exception of the SDK or of the HTTP client."""
    cause: BaseException = error
    if isinstance(error, anthropic.APIConnectionError):
        cause = error.__cause__ or error
    for kind, exception_types in _EXCEPTION_KINDS:
        if isinstance(cause, exception_types):
            return kind
    return "lost"


def _explanation(error: anthropic.APIStatusError) -> str:
    """Return the server's explanation of an error, or "" if there is none or it is HTML.

    Servers nest it in different ways: ``{"error": {"message": "…"}}``, ``{"detail": "…"}``.
    """
    value: Any = error.body
    while isinstance(value, Mapping):
        for name in ("error", "message", "detail"):
            if value.get(name):
                value = value[name]
                break
        else:
            value = str(value)
    if value is None or str(value).lstrip().startswith("<"):
        return ""
    return str(value)


def _pause_after(attempts: int, requested_s: float | None) -> float:
    """Return the pause after this many attempts. The server may have requested a pause."""
    backoff_s: float = 2.0 ** (attempts - 1)
    if requested_s is not None:
        return max(requested_s, MIN_PAUSE_S * backoff_s)
    return min(backoff_s + random(), MAX_PAUSE_S)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the pause that a response header requests, or None.

    The headers are ``retry-after-ms`` and ``retry-after``.
    """
    milliseconds = headers.get("retry-after-ms")
    try:
        if milliseconds:
            pause_s = float(milliseconds) / 1000
        else:
            pause_s = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, pause_s) if math.isfinite(pause_s) else None


class StreamedAnswer:
    """Builds an answer from the stream events of the Messages API."""

    def __init__(self) -> None:
        # The content blocks so far.
        self.blocks: list[dict[str, Any]] = []
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._has_stopped = False
        # The length of all text so far, and of the text that `add_event` has returned.
        self._text_chars = 0
        self._returned_chars = 0

    def add_event(self, event: Any) -> str:
        """Add an event, and return the whole text so far, or "" if the event adds no text.

        A long text is returned only after it has grown by a fiftieth, so that all texts
        together take linear time. Raises ModelFailure if the event can't be read.
        """
        try:
            if not self._apply_event(event) or not self._has_grown():
                return ""
            text = join_text(self.blocks)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise ModelFailure("unreadable") from error
        if "\ud800" <= text[-1:] <= "\udbff":
            # The next event has the other half of this surrogate pair.
            text = text[:-1]
        return str(make_json_safe(text)) if text.strip() else ""

    def _apply_event(self, event: Json) -> bool:
        """Apply an event to the answer. Return True if the event may have added text."""
        may_add_text = False
        match event["type"]:
            case "message_start":
                self._message = dict(event["message"])
                self.blocks = [dict(block) for block in self._message.get("content") or ()]
                self._usage = dict(self._message.get("usage") or {})
            case "content_block_start":
                self.blocks.append(dict(event["content_block"]))
                may_add_text = True
            case "content_block_delta":
                may_add_text = self._apply_delta(self.blocks[event["index"]], event["delta"])
            case "message_delta":
                stop_reason = event["delta"].get("stop_reason")
                self._message["stop_reason"] = stop_reason or self._message.get("stop_reason")
                # Each count is a total. A count that is missing here keeps its earlier value.
                usage = event.get("usage") or {}
                self._usage |= {name: count for name, count in usage.items() if count is not None}
            case "message_stop":
                self._has_stopped = True
        return may_add_text

    def _apply_delta(self, block: dict[str, Any], delta: Json) -> bool:
        """Extend a field of a block. Return True if the delta adds text."""
        field = _DELTA_FIELDS.get(delta["type"])
        if field is not None:
            block[field] = (block.get(field) or "") + delta[field]
        if field != "text":
            return False
        self._text_chars += len(delta[field])
        return True

    def _has_grown(self) -> bool:
        """Whether the text has grown enough to be returned again."""
        if self._text_chars > OFTEN_RETURNED_CHARS:
            new_chars = self._text_chars - self._returned_chars
            if new_chars * MAX_UNRETURNED_PARTS < self._text_chars:
                return False
        self._returned_chars = self._text_chars
        return True

    def build_completion(self, model: str) -> Completion:
        """Return the whole answer. If the answer doesn't name its model, `model` is used.

        Raises ModelFailure if the answer is incomplete.
        """
        if not self._message:
            raise ModelFailure("foreign")
        stop_reason = self._message.get("stop_reason")
        if not stop_reason and not self._has_stopped:
            raise ModelFailure("unreadable")
        blocks = build_input_blocks(self.blocks)
        if not stop_reason:
            has_calls = any(block["type"] == "tool_use" for block in blocks)
            stop_reason = "tool_use" if has_calls else "end_turn"
        return Completion(
            blocks=blocks,
            text=join_text(blocks),
            stop_reason=stop_reason,
            usage=Usage(
                input=_token_count(self._usage, "input_tokens"),
                output=_token_count(self._usage, "output_tokens"),
                cache_read=_token_count(self._usage, "cache_read_input_tokens"),
                cache_write=_token_count(self._usage, "cache_creation_input_tokens"),
                cache_write_hour=_token_count(
                    self._usage.get("cache_creation"), "ephemeral_1h_input_tokens"
                ),
            ),
            model=self._message.get("model") or model,
        )


def _token_count(usage: Any, name: str) -> int:
    """Return a count from the usage report, or 0 if it's missing, as with many local servers."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) else 0


def build_input_blocks(blocks: Sequence[Json]) -> tuple[Json, ...]:
    """Return the blocks of an answer in a form that later requests may contain.

    The following are removed: fields that only answers may have, empty texts, unsigned thinking,
    and white space at the end. Raises ModelError for an unknown type of block.
    """
    input_blocks: list[dict[str, Any]] = []
    for block in blocks:
        input_block = _build_input_block(block)
        if input_block is not None:
            input_blocks.append(input_block)
    if input_blocks and input_blocks[-1]["type"] == "text":
        input_blocks[-1]["text"] = input_blocks[-1]["text"].rstrip()
    return tuple(input_blocks)


def join_text(blocks: Sequence[Json]) -> str:
    """Return the text of the blocks, with a paragraph break where other blocks are in between."""
    groups = groupby(blocks, lambda block: block["type"] == "text")
    texts = ["".join(block["text"] for block in group) for is_text, group in groups if is_text]
    return "\n\n".join(text for text in texts if text)


def strip_cache_marks(request: Request) -> Request:
    """Return the request without the cache marks of its system and message blocks."""

    def strip(blocks: Iterable[Json]) -> list[Json]:
        return [
            {name: value for name, value in block.items() if name != "cache_control"}
            for block in blocks
        ]

    messages = tuple({**turn, "content": strip(turn["content"])} for turn in request.messages)
    return replace(request, system=tuple(strip(request.system)), messages=messages)


def make_json_safe(value: Any) -> Any:
    """Return a JSON value that every parser accepts.

    Halves of surrogate pairs are joined or replaced. Infinite numbers and NaN become null.
    """
    if isinstance(value, str):
        if value.isascii() or not _SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {make_json_safe(key): make_json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_json_safe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _build_input_block(block: Json) -> dict[str, Any] | None:
    """Return one block in a form that later requests may contain; None to leave it out.

    Raises ModelFailure if the type of the block is unknown.
    """
    block_type = str(block.get("type"))
    match block_type:
        case "text":
            text = make_json_safe(block.get("text") or "")
            return {"type": "text", "text": text} if text.strip() else None
        case "thinking":
            if not block.get("signature"):
                return None
            thinking = block.get("thinking") or ""
            return {"type": "thinking", "thinking": thinking, "signature": block["signature"]}
        case "redacted_thinking":
            if not block.get("data"):
                return None
            return {"type": "redacted_thinking", "data": block["data"]}
        case "tool_use":
            return _build_tool_call(block)
    raise ModelFailure("unknown_block", block=block_type[:40])


def _build_tool_call(block: Json) -> dict[str, Any]:
    """Return a tool call in a form that later requests may contain.

    If the answer was cut off, its arguments may be incomplete. Raises ModelFailure if the call
    can't be read.
    """
    arguments = block.get("input")
    partial_json = block.get("partial_json")
    if partial_json:
        arguments = from_json(partial_json, allow_partial=True)
    call = {
        "type": "tool_use",
        "id": block.get("id"),
        "name": block.get("name"),
        "input": make_json_safe(arguments),
    }
    if not call["id"] or not call["name"] or not isinstance(call["input"], dict):
        raise ModelFailure("unreadable")
    return call


class ModelFailure(ModelError):
    """A failed call of the model, with a `kind` in `data/failures.toml`.

    `details` are the values for the placeholders in the texts. `clause` is the reason without a
    full stop, so that ``; trying again in 4 s`` can follow.
    """

    def __init__(
        self,
        kind: str,
        *,
        status: int | None = None,
        is_retryable: bool | None = None,
        **details: object,
    ) -> None:
        """Compose the message. If `is_retryable` is None, the value for the kind is used."""
        texts = _FAILURES["kind"][kind]
        self.clause: str = texts["clause"].format(**details)
        if is_retryable is None:
            is_retryable = texts.get("is_retryable", True)
        super().__init__(
            f"{self.clause}. {texts.get('advice', '')}".rstrip(),
            is_retryable=is_retryable,
            status=status,
        )
        if "words" in details:
            # The server's words may repeat what people said, so the log doesn't get them.
            self.log_message = str(self).replace(str(details["words"]), "…")


def _classify_refusal(
    status: int, explanation: str, model: str, error_code: str
) -> tuple[str, int]:
    """Return the kind of an error response, and its corrected status.

    Servers may report missing credit and requests that are too long with 400, instead of 402
    and 413.
    """
    if error_code.endswith("_spend_limit_reached"):
        return "spend_limit", status
    if status == 400 and "credit balance" in explanation:
        status = 402
    if status in (400, 422) and _TOO_LONG.search(explanation.casefold()):
        status = 413
    if status == 404:
        is_about_model = "model" in explanation.casefold() or model in explanation
        return "no_model" if is_about_model else "no_api", status
    if str(status) in _FAILURES["kind"]:
        return str(status), status
    return "internal" if status >= 500 else "refused", status
