"""Sends requests to a model's server and repeats failed ones, for the clients of all APIs.

The OpenAI SDK sends the requests of both APIs. Only its connection pool, its reader of event
streams and its errors are used, and none of them depends on the API. Anthropic's own SDK does the
same, but its import takes a second longer and 25 MB more, because it loads every type of its API.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from random import random
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import aiohttp
import httpx2
import structlog

from config.open_files import bound_connections
from core.errors import Sentence
from core.models.failures import (
    ErrorResponse,
    ModelFailure,
    ServerNames,
    WordSentence,
    build_refusal,
    status_of_type,
    word_in_english,
)
from core.models.sdk import openai
from core.ports import Clock, TextCallback
from core.text.normalize import make_json_safe
from core.types import Completion, Request

CONNECT_TIMEOUT_S = 10.0
# The timeout for asking for the size of a model's window.
WINDOW_TIMEOUT_S = 5.0
# The timeout for the list of the server's models.
LIST_TIMEOUT_S = 20.0
# Sent to servers that need no key. Without any key, the SDK searches the environment.
NO_KEY = "no-key"
MAX_CONNECTIONS = 100
# Connections stay open for a minute, so that the next turn of a conversation needs no handshake.
KEEPALIVE_S = 60.0
# The longest pause between two attempts, unless the server asks for a longer one.
MAX_PAUSE_S = 30.0
# The shortest pause after the first attempt, even if the server asks for a shorter pause. The
# shortest pause doubles with each attempt.
MIN_PAUSE_S = 0.5
# The first attempt may take this share of the timeout. If it hangs, there is time for another
# attempt.
FIRST_ATTEMPT_SHARE = 1 / 3
# Reading events that have already arrived may block the event loop for this long.
MAX_BURST_S = 0.01
# A text up to this length is shown after every piece.
OFTEN_SHOWN_CHARS = 10_000
# A longer text is shown again once its new piece is at least this fraction of it.
MIN_SHOWN_FRACTION = 1 / 50
# The fields with the size of a model's window, in lists of models of different servers.
_WINDOW_FIELDS = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "n_ctx",
)
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
# The kinds of failures in `core/errors.toml`, with their exceptions. The first kind that matches
# is used. Any other exception means a lost connection.
_EXCEPTION_KINDS: Sequence[tuple[str, tuple[type[Exception], ...]]] = (
    (
        "unreached",
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol),
    ),
    ("late", (httpx2.TimeoutException,)),
    ("unreadable", (ValueError,)),
)


class _EventStream(openai.AsyncStream[object]):
    """An event stream that records whether the server marked it as complete.

    Some servers answer with a single JSON text instead: a whole answer, or an error with status
    200. That text becomes a single event.
    """

    is_complete = False

    @property
    def media_type(self) -> str:
        return str(self.response.headers.get("content-type", "")).partition(";")[0]

    async def _iter_events(self) -> AsyncIterator[Any]:
        if self.media_type == "application/json":
            self.is_complete = True
            async for event in self._decoder.aiter_bytes(self._read_body()):
                yield event
            return
        async for event in super()._iter_events():
            if event.data.startswith("[DONE]"):
                self.is_complete = True
            yield event

    async def _read_body(self) -> AsyncIterator[bytes]:
        """Yield the whole body as one event. Line breaks in JSON are just white space."""
        body = await self.response.aread()
        yield b"data: " + b" ".join(body.splitlines()) + b"\n\n"


@cache
def create_tls_context(trusts_environment: bool) -> ssl.SSLContext:
    """Return the TLS context that all clients share. Reading the certificates takes 20 ms."""
    return httpx2.create_ssl_context(trust_env=trusts_environment)


class ServerConnection:
    """Sends requests to a model's server, and translates its errors into `ModelFailure`."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        names: ServerNames,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Set up the SDK's client. It doesn't repeat requests, because `Retries` does.

        The key is sent as ``Authorization: Bearer KEY``, which both APIs accept. `headers` are sent
        with each request.
        """
        self._names = names
        self._key = (api_key or "").strip() or NO_KEY
        # The SDK takes the account's organization and project from the environment, and would send
        # them to every server.
        all_headers: dict[str, object] = {"User-Agent": "Mneme", **(headers or {})}
        all_headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        # Calls wait here for a free connection, because the timeouts of the SDK would include the
        # wait.
        self._free_connections = asyncio.Semaphore(_max_connections())
        limits = httpx2.Limits(max_connections=_max_connections(), keepalive_expiry=KEEPALIVE_S)
        # Proxies must be ignored for a server on this machine.
        trusts_environment = urlsplit(url).hostname not in _LOOPBACK_HOSTS
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=url,
            max_retries=0,
            timeout=_sdk_timeout(timeout_s),
            default_headers=cast(Mapping[str, str], all_headers),
            http_client=openai.DefaultAioHttpClient(
                limits=limits,
                trust_env=trusts_environment,
                verify=create_tls_context(trusts_environment),
            ),
        )

    async def close(self) -> None:
        await self._client.close()

    async def fetch(self, path: str) -> object:
        """Return the JSON at a path of the server, or None if the server doesn't return it."""
        try:
            return await self._client.get(
                path, cast_to=object, options={"timeout": WINDOW_TIMEOUT_S}
            )
        except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, ValueError):
            return None

    async def fetch_window_tokens(self, path: str, model: str) -> int | None:
        """Return the size of a model's window from the list of models, or None."""
        response = await self.fetch(path)
        models = response.get("data") if isinstance(response, Mapping) else None
        for entry in models if isinstance(models, list) else ():
            if not isinstance(entry, Mapping):
                continue
            # llama.cpp has a single model, which accepts any name and reports its window in "meta".
            is_llama = entry.get("owned_by") == "llamacpp"
            if entry.get("id") != model and not is_llama:
                continue
            details = entry.get("meta")
            for part in (entry, details if isinstance(details, Mapping) else {}):
                for name in _WINDOW_FIELDS:
                    if isinstance(part.get(name), int):
                        return int(part[name])
        return None

    async def list_models(self, path: str) -> list[str]:
        """Return the names in the server's list of models: ``{"data": [{"id": "gpt-6-sol"}]}``.

        Raises ModelFailure if the server doesn't return a list.
        """
        self._check_key()
        try:
            response: object = await self._client.get(
                path, cast_to=object, options={"timeout": LIST_TIMEOUT_S}
            )
        except openai.APIStatusError as error:
            raise self._build_refusal(error, "") from None
        except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, ValueError) as error:
            raise ModelFailure(_exception_kind(error), names=self._names) from error
        entries = response.get("data") if isinstance(response, Mapping) else None
        names = []
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
                names.append(entry["id"])
        return names

    async def stream(
        self,
        path: str,
        content: bytes,
        model: str,
        silence_s: float,
        add_event: Callable[[Any], str],
        on_piece: TextCallback,
    ) -> bool:
        """Send a request, and pass each event of its answer as plain JSON to `add_event`.

        The text that `add_event` returns is passed to `on_piece`. `model` is the requested model.
        Returns True if the server marked its answer as complete, which only servers of the Chat
        Completions API do.

        Raises ModelFailure if the key has characters that aren't allowed in a header, if the server
        sends no data for `silence_s`, or if it refuses the request.
        """
        self._check_key()
        try:
            async with (
                self._free_connections,
                await self._open(path, content, silence_s) as events,
            ):
                if events.media_type == "text/html":
                    raise ModelFailure("foreign", names=self._names)
                request = events.response.request

                def add_good_event(event: Any) -> str:
                    # vLLM reports an error as an event of this form.
                    if isinstance(event, Mapping) and event.get("object") == "error":
                        message = str(event.get("message"))
                        raise openai.APIError(message, request, body=event)
                    return add_event(event)

                await read_stream(events, add_good_event, on_piece)
                return events.is_complete
        except openai.APIConnectionError as error:
            raise ModelFailure(_exception_kind(error), names=self._names) from error
        except openai.APIResponseValidationError as error:
            raise ModelFailure("foreign", names=self._names) from error
        except openai.APIError as error:
            # The response body may repeat the request, so the log must not get it ("from None").
            raise self._build_refusal(error, model) from None
        except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, ValueError) as error:
            raise ModelFailure(_exception_kind(error), names=self._names) from error

    def _check_key(self) -> None:
        """Raise ModelFailure if the key has characters that aren't allowed in a header."""
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelFailure("illegal_key", names=self._names)

    async def _open(self, path: str, content: bytes, silence_s: float) -> _EventStream:
        """Send a request, and return the events of its answer as plain JSON.

        The SDK's own methods take four times as long for a long conversation. Raises the SDK's
        errors if the request fails.
        """
        return await self._client.post(
            path,
            cast_to=object,
            content=content,
            options={"timeout": _sdk_timeout(silence_s)},
            stream=True,
            stream_cls=_EventStream,
        )

    def _build_refusal(self, error: openai.APIError, model: str) -> ModelFailure:
        """Return the failure for an error that the server reported.

        An error may also be an event of a stream that began with status 200. Its code may then be a
        status, as with OpenRouter.
        """
        code = error.code or _read_detailed_code(error.body)
        if isinstance(error, openai.APIStatusError) and error.status_code >= 400:
            status = error.status_code
            headers: Mapping[str, str] = error.response.headers
        else:
            status = int(code) if code.isdecimal() else status_of_type(error.type or code)
            headers = {}
        response = ErrorResponse(
            status=status,
            body=error.body,
            code=code,
            type=error.type or "",
            headers=headers,
            model=model,
        )
        return build_refusal(response, self._names, self._key)


def _max_connections() -> int:
    """Return how many connections to a model's server may be open at once."""
    return bound_connections(MAX_CONNECTIONS)


def _sdk_timeout(silence_s: float) -> openai.Timeout:
    return openai.Timeout(silence_s, connect=min(CONNECT_TIMEOUT_S, silence_s))


def _exception_kind(error: BaseException) -> str:
    """Return the kind of failure for an exception of the HTTP client or of the SDK.

    The SDK wraps the exceptions of its HTTP client, so the cause of the exception is checked, too.
    """
    for exception in (error, error.__cause__):
        for kind, exception_types in _EXCEPTION_KINDS:
            if isinstance(exception, exception_types):
                return kind
    return "lost"


def _read_detailed_code(body: object) -> str:
    """Return the code of an error of the Messages API, or "" if it has none.

    The body is ``{"details": {"error_code": "…"}, …}``.
    """
    details = body.get("details") if isinstance(body, Mapping) else None
    code = details.get("error_code") if isinstance(details, Mapping) else None
    return code if isinstance(code, str) else ""


class Attempt(Protocol):
    """A function that sends a request once. Each model client has its own."""

    async def __call__(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send the request, and return the answer.

        `on_piece` receives each piece of the answer's text as it arrives. The attempt fails if the
        server sends no data for `silence_s`. Raises ModelFailure.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Repeats a request after a temporary failure."""

    clock: Clock
    # The maximum number of attempts of a call.
    tries: int = 5
    # No attempt starts later than this after the first one. The first attempt fails if the server
    # sends no data for `first_silence_s`. A later attempt may use the remaining time.
    timeout_s: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    word: WordSentence = word_in_english

    @property
    def first_silence_s(self) -> float:
        """How long the server may send no data in the first attempt, in seconds."""
        return self.timeout_s * FIRST_ATTEMPT_SHARE if self.tries > 1 else self.timeout_s

    async def complete(
        self, attempt: Attempt, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model, as `Model.complete` does. Raises ModelError if the last attempt fails.

        If an answer breaks off, the request is repeated only once.
        """
        ends_at = self.clock.now() + timedelta(seconds=self.timeout_s)
        max_attempts = 1 if request.is_single_attempt else self.tries
        attempts = 0
        broken_answers = 0
        silence_s = self.first_silence_s
        while True:
            attempts += 1
            if attempts > 1:
                remaining_s = (ends_at - self.clock.now()).total_seconds()
                silence_s = max(self.first_silence_s, remaining_s)
            try:
                return await attempt(request, GrowingText(on_text).add, silence_s)
            except ModelFailure as failure:
                if failure.has_begun:
                    broken_answers += 1
                pause_s = _pause_after(attempts, failure.retry_after_s)
                is_too_late = self.clock.now() + timedelta(seconds=pause_s) > ends_at
                if not failure.is_retryable or attempts >= max_attempts or is_too_late:
                    raise
                if broken_answers > 1:
                    raise
                shown_s = max(1, math.ceil(pause_s))
                structlog.get_logger("model").info(
                    "the model is asked again",
                    why=failure.log_message,
                    pause_s=shown_s,
                    tried=attempts,
                )
                notice = _build_retry_notice(failure, shown_s, attempts + 1, max_attempts)
                on_wait(self.word(request.language, notice))
            await self.sleep(pause_s)


def _build_retry_notice(
    failure: ModelFailure, pause_s: int, attempt: int, max_attempts: int
) -> Sentence:
    values = {"reason": failure, "seconds": pause_s, "number": attempt, "max": max_attempts}
    return Sentence("model_repeated", values)


def _pause_after(attempts: int, requested_s: float | None) -> float:
    """Return the pause in seconds after this many attempts.

    If the server requested a pause, that pause is used unless it's very short.
    """
    backoff_s: float = 2.0 ** (attempts - 1)
    if requested_s is not None:
        return max(requested_s, MIN_PAUSE_S * backoff_s)
    return min(backoff_s + random(), MAX_PAUSE_S)


async def read_stream(
    events: AsyncIterable[Any], add_event: Callable[[Any], str], on_piece: TextCallback
) -> None:
    """Pass each event of a stream to `add_event`, and the returned text to `on_piece`.

    Events that have already arrived are read without giving other tasks a turn. So the function
    pauses after each `MAX_BURST_S` seconds.
    """
    paused_at_s = time.monotonic()
    async for event in events:
        piece = add_event(event)
        if piece:
            on_piece(piece)
        if time.monotonic() - paused_at_s > MAX_BURST_S:
            await asyncio.sleep(0)
            paused_at_s = time.monotonic()


class GrowingText:
    """Shows a text while its pieces arrive.

    A long text is shown only after it has grown by a fiftieth. So the total time for showing it is
    linear in its length.
    """

    def __init__(self, on_text: TextCallback) -> None:
        self._on_text = on_text
        self._text = ""
        self._shown_chars = 0

    def add(self, piece: str) -> None:
        """Add a piece, and show the whole text if it has grown enough."""
        self._text += piece
        if len(self._text) > OFTEN_SHOWN_CHARS:
            new_chars = len(self._text) - self._shown_chars
            if new_chars < len(self._text) * MIN_SHOWN_FRACTION:
                return
        self._shown_chars = len(self._text)
        text = self._text
        if "\ud800" <= text[-1:] <= "\udbff":
            # The next piece has the other half of this surrogate pair.
            text = text[:-1]
        if text.strip():
            self._on_text(str(make_json_safe(text)))
