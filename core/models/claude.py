"""The one door to the Anthropic SDK: one request in, one completion out, whatever happens on the way.

Streams, tries again as the server asks, and turns every failure into a ModelError with a sentence of its own. Any
server that speaks the Messages API can stand behind it. Knows nothing of sessions, tools or people.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Set
from datetime import timedelta
from random import random
from typing import Any, cast
from urllib.parse import urlsplit

import anthropic
import httpx2
import structlog
from anthropic.lib.streaming import AsyncMessageStream, AsyncMessageStreamManager

from core.models import content_blocks, failures
from core.models.failures import ModelFailure
from core.ports import Clock
from core.types import Completion, Request, Usage

OFFICIAL_URL = "https://api.anthropic.com"
CONNECT_S = 10.0
LONGEST_PAUSE_S = 30.0  # between two tries, unless the server asks for more
_NO_KEY = "no-key"  # local servers ask for none, but without one the SDK would search the disk for credentials
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Claude:
    """Fills the role Model. `patience_s`: the longest silence of the server, and the time within which a call is tried
    again. `api_key` None: for servers that need no key."""

    name = "claude"

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str | None,
        clock: Clock,
        tries: int = 5,
        patience_s: float = 120.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        # People copy addresses with the version, which the SDK adds itself.
        self.url = (base_url or OFFICIAL_URL).rstrip("/").removesuffix("/v1")
        host = urlsplit(self.url).hostname or ""
        self._is_official = host == "api.anthropic.com"
        self._takes_marks = True
        self._key = (api_key or "").strip() or _NO_KEY
        self._clock = clock
        self._tries = tries
        self._patience_s = patience_s
        self._sleep = sleep
        self._log = structlog.get_logger("model")
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=anthropic.Timeout(patience_s, connect=min(CONNECT_S, patience_s)),
            open_telemetry=False,
            # A proxy from the environment leads out of this machine, where a server on it cannot be found.
            http_client=httpx2.AsyncClient(trust_env=False, follow_redirects=True) if host in _LOOPBACK else None,
        )

    async def close(self) -> None:
        await self._client.close()

    async def complete(
        self, request: Request, on_text: Callable[[str], None], on_wait: Callable[[str], None]
    ) -> Completion:
        """`on_text` gets the text so far, an empty one when the call starts over. Raises ModelError."""
        ends_at = self._clock.now() + timedelta(seconds=self._patience_s)
        breaks = tries = 0
        is_stale = False

        def say(text: str) -> None:
            nonlocal is_stale
            if is_stale:
                is_stale = False
                on_text("")
            on_text(text)

        while True:
            tries += 1
            try:
                return await self._attempt(request, say)
            except ModelFailure as failure:
                breaks += failure.is_break
                pause_s = failure.retry_after_s or min(2.0 ** (tries - 1) + random(), LONGEST_PAUSE_S)
                is_late = self._clock.now() + timedelta(seconds=pause_s) > ends_at
                if not failure.is_retryable or breaks > 1 or tries >= self._tries or is_late:
                    raise
                shown_s = max(1, math.ceil(pause_s))
                self._log.info("the model is asked again", why=failure.clause, pause_s=shown_s, tried=tries)
                on_wait(f"{failure.clause}; trying again in {shown_s} s ({tries + 1} of {self._tries}).")
            # What was said stays until the next try has something to say.
            is_stale = True
            await self._sleep(pause_s)

    async def reach(self, model: str) -> str:
        """Asks the server for a model without using it; returns a sentence. Raises ModelError."""
        try:
            found: Any = await self._client.models.retrieve(model)
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            failure = self._translated(error, model)
            if self._is_official or failure.status not in (400, 404, 405, 501):
                raise failure from _origin(error)
            # Local servers often have no list of models, and prove themselves by answering.
            await self._attempt(_shortest_request(model), lambda _: None)
            return f"{model} answers at {self.url}."
        if not getattr(found, "id", None):
            raise failures.of_kind("foreign")
        if getattr(found, "lifecycle", None) == "retired":
            raise ModelFailure(f"{model} is retired and answers no more", "Set model.chat to another one.")
        sentence = f"{model} answers at {self.url}"
        if window := getattr(found, "max_input_tokens", None):
            sentence += f" and reads up to {window:,} tokens"
        if getattr(found, "lifecycle", None) == "deprecated":
            retires_at = getattr(found, "retires_at", None)
            sentence += f"; it is deprecated{f' and retires on {retires_at:%d %B %Y}' if retires_at else ''}"
        return f"{sentence}."

    async def _attempt(self, request: Request, on_text: Callable[[str], None]) -> Completion:
        """A server that does not take cache marks gets the same request once more without them."""
        bare = content_blocks.unmarked(request)
        if not self._takes_marks or bare == request:
            return await self._stream(bare, on_text)
        try:
            return await self._stream(request, on_text)
        except ModelFailure as failure:
            if self._is_official or failure.is_break or failure.status not in (400, 422):
                raise
        completion = await self._stream(bare, on_text)
        self._takes_marks = False
        self._log.warning("the model's server takes no cache marks", url=self.url)
        return completion

    async def _stream(self, request: Request, on_text: Callable[[str], None]) -> Completion:
        seen: set[str] = set()
        try:
            async with self._opened(request) as stream, contextlib.aclosing(_events(stream)) as events:
                async for event in events:
                    seen.add(event.type)
                    if event.type in ("content_block_start", "text"):
                        _show(stream, on_text)
                return _completion(stream, seen, request.model)
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            failure = self._translated(error, request.model)
            failure.is_break = "content_block_start" in seen
            raise failure from _origin(error)

    def _opened(self, request: Request) -> AsyncMessageStreamManager[None]:
        optional: dict[str, Any] = {}
        if request.system:
            optional["system"] = list(request.system)
        if request.tools:
            optional["tools"] = list(request.tools)
        with warnings.catch_warnings():
            # That a model is deprecated is for `reach` to say, not for every turn.
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._client.messages.stream(
                model=request.model,
                max_tokens=request.max_tokens,
                messages=cast(Any, list(request.messages)),
                **optional,
            )

    def _translated(self, error: Exception, model: str) -> ModelFailure:
        """Never with the key in the words."""
        if isinstance(error, anthropic.APIStatusError):
            return self._refused(error, model)
        cause = _cause(error)
        if isinstance(cause, httpx2.LocalProtocolError):
            return failures.of_kind("illegal_key")
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol):
            return failures.of_kind("unreached")
        if isinstance(cause, httpx2.TimeoutException):
            return failures.of_kind("late")
        if isinstance(error, anthropic.APIConnectionError | httpx2.HTTPError):
            return failures.of_kind("lost")
        return failures.of_kind("foreign")

    def _refused(self, error: anthropic.APIStatusError, model: str) -> ModelFailure:
        status = failures.status_of(error.status_code, error.type)
        words = _words(error).replace(self._key, "…")
        failure = failures.of_status(status, words, model, error.error_code)
        if error.status_code >= 400:
            headers = error.response.headers
            failure.retry_after_s = _asked_pause_s(headers)
            if headers.get("x-should-retry") in ("true", "false"):
                failure.is_retryable = headers["x-should-retry"] == "true"
        return failure


def _show(stream: AsyncMessageStream[None], on_text: Callable[[str], None]) -> None:
    """Passes on the text so far, which only grows."""
    content = stream.current_message_snapshot.content
    text = content_blocks.joined([{"type": block.type, "text": getattr(block, "text", "")} for block in content])
    # Where half a character came, its other half is on its way.
    text = text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text
    if text.strip():
        on_text(content_blocks.sound(text))


async def _events(stream: AsyncMessageStream[None]) -> AsyncGenerator[Any, None]:
    """The stream's events; what the SDK stumbles over is an unreadable answer."""
    try:
        async for event in stream:
            yield event
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise failures.of_kind("unreadable") from error


def _completion(stream: AsyncMessageStream[None], seen: Set[str], model: str) -> Completion:
    if "message_start" not in seen:
        raise failures.of_kind("foreign")
    message: Any = stream.current_message_snapshot
    if not message.stop_reason and "message_stop" not in seen:
        raise failures.of_kind("unreadable")
    blocks = content_blocks.kept([block.to_dict(warnings=False) for block in message.content])
    has_calls = any(block["type"] == "tool_use" for block in blocks)
    usage = getattr(message, "usage", None)
    return Completion(
        blocks=blocks,
        text=content_blocks.joined(blocks),
        stop_reason=message.stop_reason or ("tool_use" if has_calls else "end_turn"),
        usage=Usage(
            input=_count(usage, "input_tokens"),
            output=_count(usage, "output_tokens"),
            cache_read=_count(usage, "cache_read_input_tokens"),
            cache_write=_count(usage, "cache_creation_input_tokens"),
            cache_write_hour=_count(getattr(usage, "cache_creation", None), "ephemeral_1h_input_tokens"),
        ),
        model=getattr(message, "model", None) or model,
    )


def _count(usage: Any, name: str) -> int:
    """Local servers leave out what they do not count."""
    value = getattr(usage, name, None)
    return value if isinstance(value, int) else 0


def _words(error: anthropic.APIStatusError) -> str:
    if isinstance(error.api_message, str):
        return error.api_message
    body: Any = error.body
    for name in ("error", "message", "detail"):
        if isinstance(body, Mapping) and isinstance(body.get(name), str):
            return str(body[name])
    return "" if body is None or (isinstance(body, str) and body.lstrip().startswith("<")) else str(body)


def _asked_pause_s(headers: Mapping[str, str]) -> float | None:
    """``retry-after-ms``, else ``retry-after`` in seconds."""
    milliseconds = headers.get("retry-after-ms")
    try:
        pause_s = float(milliseconds) / 1000 if milliseconds else float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, pause_s) if math.isfinite(pause_s) else None


def _cause(error: Exception) -> BaseException | None:
    return error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error


def _origin(error: Exception) -> Exception | None:
    """Nothing when its words hold the key, as a traceback shows them."""
    return None if isinstance(_cause(error), httpx2.LocalProtocolError) else error


def _shortest_request(model: str) -> Request:
    hello = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
    return Request(system=(), messages=(hello,), model=model, max_tokens=1)
