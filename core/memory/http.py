"""JSON over HTTP for memory services, search engines and embeddings, which don't import httpx.

Each service is a `RemoteService` (`core/memory/service.py`) in `core/memory/services/`. Services
with an HTTP API make their calls through a `JsonService`. `JsonService` guarantees the following:

* The URL must not contain a key. Redirects are followed on the same host only. Loopback addresses
  are reached without a proxy.
* Requests and answers are JSON of limited size (`REQUEST_BYTES`, `ANSWER_BYTES`).
* Each call has a timeout: `SEARCH` for calls that a turn waits for, `MODEL` for calls of a model,
  and `WRITE`, the default, for calls from the outbox.
* If the connection breaks, a repeatable call is tried once more. GET, PUT and DELETE are
  repeatable unless `is_repeatable` says otherwise.
* Errors contain no text of the service or the person, and no key. A 4xx status becomes `Refused`,
  which is final. A rejected key becomes a permanent `DeliveryError`. Other errors become a
  `DeliveryError` that can be retried. If the service sends a Retry-After header, calls fail until
  that time.

Answers are untrusted, so read them with `objects`, `text_of` and `number_of`.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from time import monotonic
from typing import Any
from urllib.parse import quote

import httpx

from config.open_files import bound_connections
from core.errors import ConfigError, DeliveryError, Refused
from core.types import Json

REQUEST_BYTES = 500_000
ANSWER_BYTES = 4_000_000
MAX_RETRY_AFTER_S = 3600.0
MAX_REDIRECTS = 2
REPEATABLE_METHODS = ("GET", "PUT", "DELETE")
# 4xx statuses after which a retry may succeed: request timeout, too early, too many requests.
RETRYABLE_STATUSES = (408, 425, 429)
_SEGMENT = re.compile(r"[\w.~:@+=-]{1,300}")
# The default of `missing`: a 404 is an error.
_RAISE: Any = object()


@dataclass(frozen=True, slots=True)
class CallTimeout:
    """The timeouts of a call: for connecting, and in total."""

    connect_s: float
    total_s: float


SEARCH = CallTimeout(2.0, 8.0)
# Shorter than the timeouts of the manager, whose error messages are less precise.
WRITE = CallTimeout(5.0, 25.0)
# For calls to a model, which may continue its work in the background. A local model may need this
# long.
MODEL = CallTimeout(5.0, 180.0)
# The size of the connection pool. Further calls wait for a free connection.
CONNECTIONS = 32


class NotFound(Refused):
    """Raised if the service answers a call with HTTP status 404."""


@dataclass(slots=True)
class _Connection:
    """The connection that a service shares with its copies from `with_headers`."""

    client: httpx.AsyncClient | None = None
    # Calls fail until this time of `time.monotonic`.
    rests_until: float = 0.0


class JsonService:
    """A client for a service that speaks JSON."""

    def __init__(
        self, name: str, url: str, headers: Mapping[str, str] | None = None, setting: str = ""
    ) -> None:
        """Check the URL. The first call opens the connection.

        `name` is the name of the service in errors. `headers` are sent with every call and may
        contain a key. `setting` is the setting with the URL, by default the `url` of the memory
        service `name`. Raises ConfigError, which names this setting, if the URL is invalid or
        contains a key.
        """
        self.name = name
        try:
            self.url = httpx.URL(url.strip().rstrip("/"))
            is_address = self.url.scheme in ("http", "https") and bool(self.url.host)
        except httpx.InvalidURL:
            is_address = False
        if not is_address or self.url.userinfo or self.url.query or self.url.fragment:
            setting = setting or f"memory.providers.{name}.url"
            raise ConfigError("memory_address", setting=setting)
        self._headers = {
            "Accept": "application/json",
            # Compression could hide a very large answer in a small one.
            "Accept-Encoding": "identity",
            **(headers or {}),
        }
        self._connection = _Connection()

    def with_headers(self, headers: Mapping[str, str]) -> JsonService:
        """Return a copy with additional headers. The copy uses the same connection."""
        service = copy(self)
        service._headers = {**self._headers, **headers}
        return service

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.url.host).is_loopback
        except ValueError:
            return self.url.host == "localhost"

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str | int] | None = None,
        call_timeout: CallTimeout | None = None,
        is_repeatable: bool | None = None,
        missing: Any = _RAISE,
    ) -> Any:
        """Call the service. Returns the decoded answer, or None if the answer is empty.

        `body` is sent as JSON. `call_timeout` is `WRITE` by default. If the service answers with
        404 and `missing` is given, `missing` is returned. Raises Refused if the service rejects the
        call, and DeliveryError for all other errors.
        """
        limit = call_timeout or WRITE
        rest_s = self._connection.rests_until - monotonic()
        if rest_s > 0:
            raise DeliveryError("service_pauses", name=self.name, retry_after_s=rest_s)
        if is_repeatable is None:
            is_repeatable = method in REPEATABLE_METHODS
        headers, content = self._headers, None
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
            content = self._encode_body(body)

        def build_request() -> httpx.Request:
            """Build a new request for each attempt."""
            return self._client.build_request(
                method,
                path,
                content=content,
                params=params,
                headers=headers,
                timeout=httpx.Timeout(limit.total_s, connect=limit.connect_s),
            )

        try:
            async with asyncio.timeout(limit.total_s):
                return await self._send_or_repeat(build_request, missing, is_repeatable)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise DeliveryError(
                "service_no_answer", name=self.name, seconds=f"{limit.total_s:g}"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The message of httpx is left out, because it may contain the URL with ids in it.
            has_no_server = isinstance(error, httpx.ConnectError)
            key = "service_unreached" if has_no_server else "service_lost"
            raise DeliveryError(key, name=self.name, kind=type(error).__name__) from error

    async def close(self) -> None:
        """Close the connection. A later call opens a new one."""
        if self._connection.client is not None:
            await self._connection.client.aclose()
            self._connection.client = None

    @property
    def _client(self) -> httpx.AsyncClient:
        """The HTTP client, which the first call creates in the event loop where it's used."""
        if self._connection.client is None:
            # Loading certificates takes 20 ms. An address without TLS on this machine needs none.
            is_plain = self.is_loopback and self.url.scheme == "http"
            self._connection.client = httpx.AsyncClient(
                base_url=self.url,
                trust_env=not self.is_loopback,
                verify=not is_plain,
                limits=httpx.Limits(max_connections=bound_connections(CONNECTIONS)),
            )
        return self._connection.client

    def _encode_body(self, body: object) -> bytes:
        """Return the body as JSON. Raises Refused if it's longer than `REQUEST_BYTES`."""
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        if len(content) > REQUEST_BYTES:
            raise Refused("service_text_too_long", name=self.name, limit=REQUEST_BYTES)
        return content

    async def _send_or_repeat(
        self, build_request: Callable[[], httpx.Request], missing: Any, is_repeatable: bool
    ) -> Any:
        """Send a request, and repeat it once if the connection breaks and `is_repeatable`."""
        try:
            return await self._send(build_request(), missing)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            if not is_repeatable:
                raise
        return await self._send(build_request(), missing)

    async def _send(self, request: httpx.Request, missing: Any) -> Any:
        """Send a request, follow redirects on the same host, and return the decoded answer.

        Raises DeliveryError if the service redirects to another host or too often.
        """
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._client.send(request, stream=True)
            try:
                if response.next_request is None:
                    return await self._read_answer(response, missing)
            finally:
                await response.aclose()
            request = response.next_request
            if _origin(request.url) != _origin(self.url):
                raise DeliveryError("service_redirects", name=self.name)
        raise DeliveryError("service_redirects_in_circle", name=self.name)

    async def _read_answer(self, response: httpx.Response, missing: Any) -> Any:
        """Return the decoded body of a response, or `missing` for a 404 if that is given."""
        is_missing = response.status_code == 404 and missing is not _RAISE
        if not is_missing:
            self._check_status(response)
        # The body is read even if it isn't needed, so that the connection can be used again.
        content = await self._read_body(response)
        return missing if is_missing else self._decode_body(response, content)

    def _check_status(self, response: httpx.Response) -> None:
        """Raise Refused or DeliveryError unless the status reports success."""
        status = response.status_code
        if response.is_success:
            return
        if status == 401:
            raise DeliveryError("service_key_refused", name=self.name, is_permanent=True)
        if 400 <= status < 500 and status not in RETRYABLE_STATUSES:
            if status == 404:
                raise NotFound("service_not_found", name=self.name)
            raise Refused("service_refused", name=self.name, code=str(status))

        wait_s = _parse_retry_after(response.headers.get("retry-after", ""))
        self._connection.rests_until = monotonic() + wait_s
        if status == 429:
            raise DeliveryError("service_busy", name=self.name, retry_after_s=wait_s or None)
        raise DeliveryError(
            "service_out_of_order",
            name=self.name,
            code=str(status),
            retry_after_s=wait_s or None,
        )

    async def _read_body(self, response: httpx.Response) -> bytes:
        """Read the body. Raises DeliveryError if it's longer than `ANSWER_BYTES`."""
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > ANSWER_BYTES:
                raise DeliveryError("service_answer_too_long", name=self.name, limit=ANSWER_BYTES)
        return bytes(content)

    def _decode_body(self, response: httpx.Response, content: bytes) -> Any:
        """Parse the body of an answer. Raises DeliveryError if the body isn't JSON."""
        if not content.strip():
            return None
        try:
            if "json" not in response.headers.get("content-type", ""):
                raise ValueError
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise DeliveryError("service_not_json", name=self.name) from error


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _parse_retry_after(value: str) -> float:
    """Return the seconds to wait according to a Retry-After header.

    The header's value is a number of seconds or a date. The result is at most `MAX_RETRY_AFTER_S`,
    and 0 for an invalid value.
    """
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    if not math.isfinite(wait_s):
        return 0.0
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


def segment(name: str) -> str:
    """Encode an id from a service as one segment of a path.

    Raises DeliveryError if the text isn't a plausible id, such as "..".
    """
    if _SEGMENT.fullmatch(name) is None or not name.strip("."):
        raise DeliveryError("service_bad_id")
    return quote(name, safe="")


def objects(answer: Any, *path: str) -> list[Json]:
    """Return the list of objects in an answer that a path of field names leads to.

    For example, ``objects(answer, "data", "items")`` returns ``answer["data"]["items"]``. Raises
    DeliveryError if there is no such list.
    """
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
        raise DeliveryError("service_bad_list", path=".".join(path) or "[]")
    return answer


def text_of(record: Any, *names: str) -> str:
    """Return the first field that contains a non-empty text, or an empty string."""
    if isinstance(record, dict):
        for name in names:
            value = record.get(name)
            if isinstance(value, str) and value:
                return value
    return ""


def number_of(record: Json, name: str) -> float:
    """Return the number in this field, or 0 if the field doesn't contain a number."""
    value = record.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
