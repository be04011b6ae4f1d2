"""The one door to the Anthropic SDK: one request in, one completion out, whatever happens on the way.

Streams, tries again as the server asks, and turns every failure into a ModelError with a sentence of its own. Any
server that speaks the Messages API can stand behind it. Knows nothing of sessions, tools or people.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from random import random
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import structlog

from core.models import content_blocks, failures
from core.models.content_blocks import StreamedAnswer
from core.models.failures import ModelFailure
from core.ports import Clock
from core.types import Completion, Request

OFFICIAL_URL = "https://api.anthropic.com"
CONNECT_S = 10.0
LONGEST_PAUSE_S = 30.0  # between two tries, unless the server asks for more
SHORTEST_PAUSE_S = 0.5  # after the first try, also where the server asks for less; it doubles with each
FIRST_SHARE = 1 / 3  # of the patience, for the first try: one that hangs leaves the better part to a second
_NO_KEY = "no-key"  # local servers ask for none, but without one the SDK would search the disk for credentials
_KEPT_OPEN = httpx2.Limits(max_connections=100, max_keepalive_connections=8, keepalive_expiry=60.0)
"""Each call looks at all that are kept; a minute spares a conversation a handshake a turn."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Claude:
    """Fills the role Model. `patience_s`: the time within which a call is tried again, and the longest silence of the
    server; of a first try a third of it. `api_key` None: for servers that need no key."""

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
        self._first_silence_s = patience_s * FIRST_SHARE if tries > 1 else patience_s
        self._sleep = sleep
        self._log = structlog.get_logger("model")
        self._client = anthropic.AsyncAnthropic(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=anthropic.Timeout(patience_s, connect=min(CONNECT_S, patience_s)),
            open_telemetry=False,
            # A proxy from the environment leads out of this machine, where a server on it cannot be found.
            http_client=anthropic.DefaultAsyncHttpxClient(limits=_KEPT_OPEN, trust_env=host not in _LOOPBACK),
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

        most = 1 if request.is_trial else self._tries
        while True:
            tries += 1
            silence_s = self._first_silence_s
            if tries > 1:
                silence_s = max(silence_s, (ends_at - self._clock.now()).total_seconds())
            try:
                return await self._attempt(request, say, silence_s)
            except ModelFailure as failure:
                breaks += failure.is_break
                pause_s = _pause_s(tries, failure.retry_after_s)
                is_late = self._clock.now() + timedelta(seconds=pause_s) > ends_at
                if not failure.is_retryable or breaks > 1 or tries >= most or is_late:
                    raise
                shown_s = max(1, math.ceil(pause_s))
                self._log.info("the model is asked again", why=failure.clause, pause_s=shown_s, tried=tries)
                on_wait(f"{failure.clause}; trying again in {shown_s} s ({tries + 1} of {most}).")
            # What was said stays until the next try has something to say.
            is_stale = True
            await self._sleep(pause_s)

    async def reach(self, model: str) -> str:
        """Asks the model for one token, which proves key, credit and name; returns a sentence. Raises ModelError."""
        await self._attempt(_shortest_request(model), lambda _: None, self._first_silence_s)
        return f"{model} answers at {self.url}."

    async def _attempt(self, request: Request, on_text: Callable[[str], None], silence_s: float) -> Completion:
        """A server that does not take cache marks gets the same request once more without them."""
        if not self._takes_marks:
            return await self._stream(content_blocks.unmarked(request), on_text, silence_s)
        try:
            return await self._stream(request, on_text, silence_s)
        except ModelFailure as failure:
            bare = content_blocks.unmarked(request)
            if self._is_official or failure.is_break or failure.status not in (400, 422) or bare == request:
                raise
        completion = await self._stream(bare, on_text, silence_s)
        self._takes_marks = False
        self._log.warning("the model's server takes no cache marks", url=self.url)
        return completion

    async def _stream(self, request: Request, on_text: Callable[[str], None], silence_s: float) -> Completion:
        answer = StreamedAnswer()
        try:
            async with await self._opened(request, silence_s) as events:
                async for event in events:
                    if text := answer.take(event):
                        on_text(text)
            return answer.completion(request.model)
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:
            failure = self._translated(error, request.model)
            failure.is_break = answer.has_begun
            raise failure from _origin(error)
        except ValueError as error:
            raise failures.of_kind("unreadable") from error

    async def _opened(self, request: Request, silence_s: float) -> anthropic.AsyncStream[Any]:
        """The events as plain JSON: to the SDK's own method a long conversation costs four times as much."""
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": request.messages,
            "stream": True,
        }
        if request.system:
            body["system"] = request.system
        if request.tools:
            body["tools"] = request.tools
        return await self._client.post(
            "/v1/messages",
            cast_to=object,
            content=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"),
            options={"timeout": anthropic.Timeout(silence_s, connect=min(CONNECT_S, silence_s))},
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
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


def _words(error: anthropic.APIStatusError) -> str:
    if isinstance(error.api_message, str):
        return error.api_message
    body: Any = error.body
    for name in ("error", "message", "detail"):
        if isinstance(body, Mapping) and isinstance(body.get(name), str):
            return str(body[name])
    return "" if body is None or (isinstance(body, str) and body.lstrip().startswith("<")) else str(body)


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


def _cause(error: Exception) -> BaseException | None:
    return error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error


def _origin(error: Exception) -> Exception | None:
    """Nothing when its words hold the key, as a traceback shows them."""
    return None if isinstance(_cause(error), httpx2.LocalProtocolError) else error


def _shortest_request(model: str) -> Request:
    hello = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
    return Request(system=(), messages=(hello,), model=model, max_tokens=1)
