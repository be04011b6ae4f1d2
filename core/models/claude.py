"""The one door to the Anthropic SDK: one request in, one completion out, whatever happens on the way.

Streams, tries again as the server asks, and turns every failure into a ModelError with a sentence of its own. Any
server that speaks the Messages API can stand behind it, and whatever it makes of its answer, what leaves here is
accepted as input by a strict one. Knows nothing of sessions, tools or people.
"""

from __future__ import annotations

import asyncio
import math
import re
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

from config.masking import MASK, masked
from core.errors import ModelError
from core.ports import Clock, Tell
from core.text.normalize import language_data
from core.types import Completion, Json, Request, Usage

OFFICIAL_URL = "https://api.anthropic.com"
CONNECT_S = 10.0
WINDOW_S = 5.0
LONGEST_PAUSE_S = 30.0  # between two tries, unless the server asks for more
SHORTEST_PAUSE_S = 0.5  # after the first try, also where the server asks for less; it doubles with each
FIRST_SHARE = 1 / 3  # of the patience, for the first try: one that hangs leaves the better part to a second
_NO_KEY = "no-key"  # local servers ask for none, but without one the SDK would search the disk for credentials
_KEPT_OPEN = httpx2.Limits(max_connections=100, keepalive_expiry=60.0)
"""A minute spares a conversation a handshake a turn."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SURROGATE = re.compile("[\ud800-\udfff]")
WORDS_CHARS = 300  # of a server's own explanation
_RETRYABLE = (408, 409, 429)
_FAILURES = language_data("failures", "core.models")
_TOO_LONG = re.compile(_FAILURES["too_long"])
_BROKEN: Sequence[tuple[str, tuple[type[Exception], ...]]] = (
    ("unreached", (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol)),
    ("late", (httpx2.TimeoutException,)),
    ("foreign", (anthropic.APIResponseValidationError,)),
    ("unreadable", (ValueError,)),
)
"""What a call may break with, by what it means; the first that fits. With all else the connection is lost."""
_GROWING = {f"{name}_delta": name for name in ("text", "thinking", "signature")} | {"input_json_delta": "partial_json"}
"""By the kind of a delta, the field of its block that it adds to."""


@dataclass(eq=False)
class Claude:
    """Fills the role Model. `patience_s`: the time within which a call is tried again, and the longest silence of the
    server; of a first try a third of it. `api_key` None: for servers that need no key."""

    api_key: InitVar[str | None]
    base_url: InitVar[str | None]
    clock: Clock
    tries: int = 5
    patience_s: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self, api_key: str | None, base_url: str | None) -> None:
        # People copy addresses with the version, which the SDK adds itself.
        self.url = (base_url or OFFICIAL_URL).rstrip("/").removesuffix("/v1")
        host = urlsplit(self.url).hostname or ""
        self._is_official = host == "api.anthropic.com"
        self._takes_marks = True
        self._key = (api_key or "").strip() or _NO_KEY
        self._first_silence_s = self.patience_s * FIRST_SHARE if self.tries > 1 else self.patience_s
        self._log = structlog.get_logger("model")
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=anthropic.Timeout(self.patience_s, connect=min(CONNECT_S, self.patience_s)),
            open_telemetry=False,
            # A proxy from the environment leads out of this machine, where a server on it cannot be found.
            http_client=anthropic.DefaultAioHttpClient(limits=_KEPT_OPEN, trust_env=host not in _LOOPBACK),
        )

    async def close(self) -> None:
        await self._client.close()

    async def complete(self, request: Request, on_text: Tell, on_wait: Tell) -> Completion:
        """Raises ModelError."""
        ends_at = self.clock.now() + timedelta(seconds=self.patience_s)
        breaks = tries = 0
        most = 1 if request.is_trial else self.tries
        while True:
            tries += 1
            left_s = (ends_at - self.clock.now()).total_seconds() if tries > 1 else 0.0
            answer = StreamedAnswer()
            try:
                return await self._attempt(request, answer, on_text, max(self._first_silence_s, left_s))
            except ModelFailure as failure:
                breaks += bool(answer.blocks)
                pause_s = _pause_s(tries, failure.retry_after_s)
                is_late = self.clock.now() + timedelta(seconds=pause_s) > ends_at
                if not failure.is_retryable or breaks > 1 or tries >= most or is_late:
                    raise
                shown_s = max(1, math.ceil(pause_s))
                self._log.info("the model is asked again", why=failure.logged, pause_s=shown_s, tried=tries)
                on_wait(f"{failure.clause}; trying again in {shown_s} s ({tries + 1} of {most}).")
            await self.sleep(pause_s)

    async def reach(self, model: str) -> str:
        """Asks the model for one token, which proves key, credit and name; returns a sentence. Raises ModelError."""
        hello = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
        request = Request(system=(), messages=(hello,), model=model, max_tokens=1)
        await self._attempt(request, StreamedAnswer(), lambda _: None, self._first_silence_s)
        return f"{model} answers at {self.url}."

    async def window(self, model: str) -> int | None:
        """How many tokens a model reads, as the server lists it; None where it does not say."""
        try:
            return (await self._client.models.retrieve(model, timeout=WINDOW_S)).max_input_tokens
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError, AttributeError):
            return None

    async def _attempt(self, request: Request, answer: StreamedAnswer, on_text: Tell, silence_s: float) -> Completion:
        """A server that does not take cache marks gets the same request once more without them."""
        if self._takes_marks:
            try:
                return await self._stream(request, answer, on_text, silence_s)
            except ModelFailure as failure:
                is_of_marks = failure.status in (400, 422) and not answer.blocks and not self._is_official
                if not is_of_marks or unmarked(request) == request:
                    raise
        completion = await self._stream(unmarked(request), answer, on_text, silence_s)
        if self._takes_marks:
            self._takes_marks = False
            self._log.warning("the model's server takes no cache marks", url=self.url)
        return completion

    async def _stream(self, request: Request, answer: StreamedAnswer, on_text: Tell, silence_s: float) -> Completion:
        try:
            async with await self._opened(request, silence_s) as events:
                async for event in events:
                    if text := answer.take(event):
                        on_text(text)
            return answer.completion(request.model)
        except anthropic.APIStatusError as error:
            # Its body would stand in a log, and may repeat what was sent.
            raise self._refused(error, request.model) from None
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            cause = error.__cause__ or error if isinstance(error, anthropic.APIConnectionError) else error
            raise ModelFailure(next((kind for kind, errors in _BROKEN if isinstance(cause, errors)), "lost")) from error

    async def _opened(self, request: Request, silence_s: float) -> anthropic.AsyncStream[Any]:
        """The events as plain JSON: to the SDK's own method a long conversation costs four times as much."""
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelFailure("illegal_key")
        body: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens, "stream": True}
        blocks = {"system": request.system, "messages": request.messages, "tools": request.tools}
        body |= {name: given for name, given in blocks.items() if given}
        # As json.dumps would, in a fifth of the time.
        try:
            content = to_json(body)
        except PydanticSerializationError:  # half a character
            content = to_json(sound(body))
        return await self._client.post(
            "/v1/messages",
            cast_to=object,
            content=content,
            options={"timeout": anthropic.Timeout(silence_s, connect=min(CONNECT_S, silence_s))},
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )

    def _refused(self, error: anthropic.APIStatusError, model: str) -> ModelFailure:
        """Never with the key in the words. An error event in a stream that began with 200 has a type only."""
        status = error.status_code
        if status < 400:
            status = _FAILURES["status_of_type"].get(error.type or "", 500)
        words = " ".join(masked(_words(error)).replace(self._key, MASK).split())[:WORDS_CHARS].rstrip(". ")
        kind, status = _judged(status, words, model, error.error_code or "")
        is_retryable = kind != "spend_limit" and (status in _RETRYABLE or status >= 500)
        words = words or "it does not say why"
        failure = ModelFailure(kind, status=status, is_retryable=is_retryable, model=model, words=words, number=status)
        if error.status_code >= 400:
            headers = error.response.headers
            failure.retry_after_s = _asked_pause_s(headers)
            if headers.get("x-should-retry") in ("true", "false"):
                failure.is_retryable = headers["x-should-retry"] == "true"
        return failure


def _words(error: anthropic.APIStatusError) -> str:
    said: Any = error.body
    while isinstance(said, Mapping):
        said = next((said[name] for name in ("error", "message", "detail") if said.get(name)), str(said))
    return "" if said is None or str(said).lstrip().startswith("<") else str(said)


def _pause_s(tries: int, asked_s: float | None) -> float:
    """Before the next try after so many."""
    growing_s = 2.0 ** (tries - 1)
    if asked_s is not None:
        return max(asked_s, SHORTEST_PAUSE_S * growing_s)
    return min(growing_s + random(), LONGEST_PAUSE_S)


def _asked_pause_s(headers: Mapping[str, str]) -> float | None:
    """``retry-after-ms``, else ``retry-after`` in seconds."""
    milliseconds = headers.get("retry-after-ms")
    try:
        pause_s = float(milliseconds) / 1000 if milliseconds else float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, pause_s) if math.isfinite(pause_s) else None


class StreamedAnswer:
    """An answer as its events come, plain JSON as the Messages API documents them. `blocks`: its content so far."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self.blocks: list[dict[str, Any]] = []
        self._has_stopped = False

    def take(self, event: Any) -> str:
        """The text so far, which only grows; empty where the event adds none. Raises ModelError for one that cannot be
        read."""
        try:
            text = joined(self.blocks) if self._is_text_added(event) else ""
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise ModelFailure("unreadable") from error
        # Where half a character came, its other half is on its way.
        text = text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text
        return str(sound(text)) if text.strip() else ""

    def _is_text_added(self, event: Json) -> bool:
        kind = event["type"]
        if kind == "message_start":
            self._message = dict(event["message"])
            self.blocks = [dict(block) for block in self._message.get("content") or ()]
            self._usage = dict(self._message.get("usage") or {})
        elif kind == "content_block_start":
            self.blocks.append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            block, delta = self.blocks[event["index"]], event["delta"]
            field = _GROWING.get(delta["type"])
            if field is not None:
                block[field] = (block.get(field) or "") + delta[field]
            return field == "text"
        elif kind == "message_delta":
            self._message["stop_reason"] = event["delta"].get("stop_reason") or self._message.get("stop_reason")
            # Totals; what is left out stands as it was.
            told = event.get("usage") or {}
            self._usage |= {name: count for name, count in told.items() if count is not None}
        self._has_stopped = self._has_stopped or kind == "message_stop"
        return bool(kind == "content_block_start")

    def completion(self, model: str) -> Completion:
        """The whole answer, of `model` where it does not name its own. Raises ModelError for a part of one."""
        if not self._message:
            raise ModelFailure("foreign")
        stop_reason = self._message.get("stop_reason")
        if not stop_reason and not self._has_stopped:
            raise ModelFailure("unreadable")
        blocks = kept(self.blocks)
        has_calls = any(block["type"] == "tool_use" for block in blocks)
        return Completion(
            blocks=blocks,
            text=joined(blocks),
            stop_reason=stop_reason or ("tool_use" if has_calls else "end_turn"),
            usage=Usage(
                input=_count(self._usage, "input_tokens"),
                output=_count(self._usage, "output_tokens"),
                cache_read=_count(self._usage, "cache_read_input_tokens"),
                cache_write=_count(self._usage, "cache_creation_input_tokens"),
                cache_write_hour=_count(self._usage.get("cache_creation"), "ephemeral_1h_input_tokens"),
            ),
            model=self._message.get("model") or model,
        )


def _count(usage: Any, name: str) -> int:
    """Local servers leave out what they do not count."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) else 0


def kept(blocks: Sequence[Json]) -> tuple[Json, ...]:
    """The blocks of an answer as they can be sent back: without answer-only fields, empty text, unsigned thinking and
    trailing space. Raises ModelError for a kind of block that was never asked for."""
    whole = [form for block in blocks if (form := _form(block)) is not None]
    if whole and whole[-1]["type"] == "text":
        whole[-1]["text"] = whole[-1]["text"].rstrip()
    return tuple(whole)


def joined(blocks: Sequence[Json]) -> str:
    """The text of blocks; what other blocks stand between becomes a paragraph's end."""
    groups = groupby(blocks, lambda block: block["type"] == "text")
    texts = ("".join(block["text"] for block in group) for is_text, group in groups if is_text)
    return "\n\n".join(text for text in texts if text)


def unmarked(request: Request) -> Request:
    """The request without cache marks, which stand on blocks of the system prompt and of messages only."""

    def bare(blocks: Iterable[Json]) -> list[Json]:
        return [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]

    messages = tuple({**turn, "content": bare(turn["content"])} for turn in request.messages)
    return replace(request, system=tuple(bare(request.system)), messages=messages)


def sound(value: Any) -> Any:
    """A JSON value that every parser takes: half characters are joined or replaced, numbers are finite."""
    if isinstance(value, str):
        if value.isascii() or not _SURROGATE.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {sound(key): sound(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sound(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _form(block: Json) -> dict[str, Any] | None:
    kind = str(block.get("type"))
    if kind == "text":
        text = sound(block.get("text") or "")
        return {"type": kind, "text": text} if text.strip() else None
    if kind == "thinking":
        form = {"type": kind, "thinking": block.get("thinking") or "", "signature": block.get("signature")}
        return form if form["signature"] else None
    if kind == "redacted_thinking":
        return {"type": kind, "data": block["data"]} if block.get("data") else None
    if kind == "tool_use":
        # A call may be cut off where the answer is.
        arguments = block.get("partial_json")
        given = from_json(arguments, allow_partial=True) if arguments else block.get("input")
        call = {"type": kind, "id": block.get("id"), "name": block.get("name"), "input": sound(given)}
        if not call["id"] or not call["name"] or not isinstance(call["input"], dict):
            raise ModelFailure("unreadable")
        return call
    raise ModelFailure("unknown_block", block=kind[:40])


class ModelFailure(ModelError):
    """`kind` as in `data/failures.toml`, whose words are filled with `details`. `clause`: the reason without a full
    stop, so that ``; trying again in 4 s`` can follow it."""

    def __init__(
        self, kind: str, *, status: int | None = None, is_retryable: bool | None = None, **details: object
    ) -> None:
        texts = _FAILURES["kind"][kind]
        self.clause: str = texts["clause"].format(**details)
        super().__init__(
            f"{self.clause}. {texts.get('advice', '')}".rstrip(),
            is_retryable=texts.get("is_retryable", True) if is_retryable is None else is_retryable,
            status=status,
        )
        if "words" in details:
            self.logged = str(self).replace(str(details["words"]), "…")


def _judged(status: int, words: str, model: str, code: str) -> tuple[str, int]:
    """The kind of a refusal and the status that fits it best; `words` are the server's own, `code` its error code."""
    if code.endswith("_spend_limit_reached"):
        return "spend_limit", status
    if status == 400 and "credit balance" in words:
        status = 402
    if status in (400, 422) and _TOO_LONG.search(words.casefold()):
        status = 413
    if status == 404:
        return "no_model" if "model" in words.casefold() or model in words else "no_api", status
    if str(status) in _FAILURES["kind"]:
        return str(status), status
    return "internal" if status >= 500 else "refused", status
