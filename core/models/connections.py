"""The HTTP connection to a model's server, for all model clients, and the only user of an SDK.

The OpenAI SDK sends the requests of both APIs. Only its connection pool, its reader of event
streams and its errors are used, and none of them depends on the API. Anthropic's own SDK does the
same, but its import takes a second longer and 30 MB more, because it loads every type of its API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai

from config.open_files import bound_connections
from core.models.failures import (
    ErrorResponse,
    ModelFailure,
    ServerNames,
    build_refusal,
    status_of_type,
)
from core.models.wrappers import read_stream
from core.ports import TextCallback

CONNECT_TIMEOUT_S = 10.0
# For the question how large a model's window is.
WINDOW_TIMEOUT_S = 5.0
# For the list of the server's models.
LIST_TIMEOUT_S = 20.0
# Sent to servers that need no key. Without any key, the SDK searches the environment.
NO_KEY = "no-key"
MAX_CONNECTIONS = 100
# Connections stay open for a minute, so that the next turn of a conversation needs no handshake.
KEEPALIVE_S = 60.0
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
# The kinds of failures in `data/failures.toml`, with their exceptions. The first kind that matches
# is used. Any other exception means a lost connection.
_EXCEPTION_KINDS: Sequence[tuple[str, tuple[type[Exception], ...]]] = (
    (
        "unreached",
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol),
    ),
    ("late", (httpx2.TimeoutException,)),
    ("unreadable", (ValueError,)),
)


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
        """Set up the SDK's client. The client doesn't retry, because `Retries` does.

        The key is sent as ``Authorization: Bearer KEY``, which both APIs accept. `headers` are sent
        with each request.
        """
        self._names = names
        self._key = (api_key or "").strip() or NO_KEY
        # The SDK takes the account's organization and project from the environment, and would send
        # them to every server.
        all_headers: dict[str, object] = {"User-Agent": "Mneme", **(headers or {})}
        all_headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        # Calls that don't fit wait here, because the timeouts of the SDK would include the wait.
        self._free_connections = asyncio.Semaphore(_max_connections())
        limits = httpx2.Limits(max_connections=_max_connections(), keepalive_expiry=KEEPALIVE_S)
        self._client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=url,
            max_retries=0,
            timeout=_sdk_timeout(timeout_s),
            default_headers=cast(Mapping[str, str], all_headers),
            # Proxies must be ignored for a server on this machine.
            http_client=openai.DefaultAioHttpClient(
                limits=limits, trust_env=urlsplit(url).hostname not in _LOOPBACK_HOSTS
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

    async def list_models(self, path: str) -> list[str]:
        """Return the names in the server's list of models: ``{"data": [{"id": "gpt-6-sol"}]}``.

        Raises ModelFailure if the server doesn't list them.
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
    ) -> None:
        """Send a request, and pass each event of its answer as plain JSON to `add_event`.

        The text that `add_event` returns is passed to `on_piece`. `model` is the model that the
        request asks. Raises ModelFailure if the key has characters that a header can't have, if the
        server sends nothing for `silence_s`, or if it refuses the request.
        """
        self._check_key()
        try:
            async with (
                self._free_connections,
                await self._open(path, content, silence_s) as events,
            ):
                await read_stream(events, add_event, on_piece)
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
        """Raise ModelFailure if the key has characters that a header can't have."""
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelFailure("illegal_key", names=self._names)

    async def _open(self, path: str, content: bytes, silence_s: float) -> openai.AsyncStream[Any]:
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
            stream_cls=openai.AsyncStream[object],
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
            status=status, body=error.body, code=code, headers=headers, model=model
        )
        return build_refusal(response, self._names, self._key)


def _max_connections() -> int:
    """Return how many connections to a model's server may be open at the same time."""
    return bound_connections(MAX_CONNECTIONS)


def _sdk_timeout(silence_s: float) -> openai.Timeout:
    return openai.Timeout(silence_s, connect=min(CONNECT_TIMEOUT_S, silence_s))


def _exception_kind(error: BaseException) -> str:
    """Return the kind of failure for an exception of the HTTP client or of the SDK.

    The SDK wraps the exceptions of its HTTP client, so the cause of the exception is tried too.
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
