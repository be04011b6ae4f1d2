"""How memory services are asked over HTTP; the only module that knows httpx.

A service is one file in `core/memory/services/`: a `RemoteService` (`core/memory/service.py`, which says what all of
them share) over one `JsonService` of this module. What that sees to, so that no service has to:

* an address without a key in it; redirects are followed on the same host only, and no proxy stands before loopback;
* JSON in both directions, each body bounded (`REQUEST_BYTES`, `ANSWER_BYTES`);
* a time limit for each kind of call: `SEARCH` while a turn waits, `WRITE` for what comes from the outbox;
* one second try where the connection broke and the call can be repeated (`is_repeatable`; by itself GET, PUT, DELETE);
* errors of ours, with no word of the service, the person or the key in them: Refused for what is final (a 4xx),
  DeliveryError, permanent for a key that is not accepted, and for all else, which is tried again; no call is made
  before the time that a Retry-After names.

What is decoded is a stranger's word: `objects` and `text_of` read it, and raise DeliveryError for another shape.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from time import monotonic
from typing import Any
from urllib.parse import quote

import httpx

from core.errors import ConfigError, DeliveryError, Refused
from core.types import Json

REQUEST_BYTES = 500_000
ANSWER_BYTES = 4_000_000
LONGEST_WAIT_S = 3600.0
REDIRECTS = 2
REPEATABLE = ("GET", "PUT", "DELETE")
LATER = (408, 425, 429)
"""Of the 4xx, those that may be otherwise the next time."""
_SEGMENT = re.compile(r"[\w.~:@+=-]{1,300}")
_RAISE: Any = object()


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call may take: until there is a connection, and as a whole."""

    connect_s: float
    total_s: float


SEARCH = Patience(2.0, 8.0)
WRITE = Patience(5.0, 25.0)
"""Within the limits of the manager, which knows less of what went wrong."""


@dataclass(slots=True)
class _State:
    client: httpx.AsyncClient | None = None
    waits_until: float = 0.0


class JsonService:
    """A service at `url` that speaks JSON; `headers` may hold a key. Raises ConfigError for what is no address."""

    def __init__(self, name: str, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.name = name
        try:
            self.url = httpx.URL(url.strip().rstrip("/"))
            is_address = self.url.scheme in ("http", "https") and bool(self.url.host)
        except httpx.InvalidURL:
            is_address = False
        if not is_address or self.url.userinfo or self.url.query or self.url.fragment:
            raise ConfigError(f"The url of the memory {name} should be an address like https://host, without a key.")
        # Without compression, which could make a short answer a long one.
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
        self._state = _State()

    def named(self, headers: Mapping[str, str]) -> JsonService:
        """The same service, asked with these headers too."""
        other = copy(self)
        other._headers = {**self._headers, **headers}
        return other

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
        patience: Patience | None = None,
        is_repeatable: bool | None = None,
        missing: Any = _RAISE,
    ) -> Any:
        """What it answers, decoded; None for an empty answer, and `missing`, if given, for a 404. `patience`: WRITE, if
        not said. Raises Refused and DeliveryError."""
        patience = patience or WRITE
        if (rest_s := self._state.waits_until - monotonic()) > 0:
            raise DeliveryError(f"{self.name} has asked to be left alone for a while", retry_after_s=rest_s)
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        if content and len(content) > REQUEST_BYTES:
            raise Refused(f"what {self.name} is to be sent is over {REQUEST_BYTES:,} bytes long")
        headers = self._headers if content is None else {**self._headers, "Content-Type": "application/json"}
        timeout = httpx.Timeout(patience.total_s, connect=patience.connect_s)
        tries = 2 if (method in REPEATABLE if is_repeatable is None else is_repeatable) else 1
        try:
            async with asyncio.timeout(patience.total_s):
                while True:
                    tries -= 1
                    request = self._client.build_request(
                        method, path, content=content, params=params, headers=headers, timeout=timeout
                    )
                    try:
                        return await self._answered(request, missing)
                    except (httpx.NetworkError, httpx.RemoteProtocolError):
                        if not tries:
                            raise
        except (TimeoutError, httpx.TimeoutException) as error:
            raise DeliveryError(f"{self.name} gave no answer within {patience.total_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # What it says may hold the address that was called, and what stands in that.
            more = ": does it run, and is its url right?" if isinstance(error, httpx.ConnectError) else ""
            raise DeliveryError(f"{self.name} cannot be reached ({type(error).__name__}){more}") from error

    async def close(self) -> None:
        if self._state.client is not None:
            await self._state.client.aclose()
            self._state.client = None

    @property
    def _client(self) -> httpx.AsyncClient:
        """Made where it is used: it belongs to one event loop."""
        if self._state.client is None:
            # To read all certificates takes 20 ms, and nothing on this machine is asked for its own without TLS.
            is_plain = self.is_loopback and _origin(self.url)[0] == "http"
            self._state.client = httpx.AsyncClient(
                base_url=self.url, trust_env=not self.is_loopback, verify=not is_plain
            )
        return self._state.client

    async def _answered(self, request: httpx.Request, missing: Any) -> Any:
        for _ in range(REDIRECTS + 1):
            response = await self._client.send(request, stream=True)
            try:
                if response.next_request is None:
                    is_missing = response.status_code == 404 and missing is not _RAISE
                    if not is_missing:
                        self._check(response)
                    content = await self._content(response)
                    return missing if is_missing else self._decoded(response, content)
            finally:
                await response.aclose()
            request = response.next_request
            if _origin(request.url) != _origin(self.url):
                raise DeliveryError(f"{self.name} sends its callers on to another host: set its url to what answers")
        raise DeliveryError(f"{self.name} sends its callers around in a circle")

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if response.is_success:
            return
        if status == 401:
            raise DeliveryError(f"{self.name}: the key is not accepted", is_permanent=True)
        if 400 <= status < 500 and status not in LATER:
            more = ": is its url right?" if status == 404 else ""
            raise Refused(f"{self.name} refuses it (HTTP status {status}){more}")
        wait_s = _wait_s(response.headers.get("retry-after", ""))
        self._state.waits_until = monotonic() + wait_s
        why = "is asked too much" if status == 429 else "is out of order"
        raise DeliveryError(f"{self.name} {why} (HTTP status {status})", retry_after_s=wait_s or None)

    async def _content(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > ANSWER_BYTES:
                raise DeliveryError(f"{self.name} answers with over {ANSWER_BYTES:,} bytes")
        return bytes(content)

    def _decoded(self, response: httpx.Response, content: bytes) -> Any:
        if not content.strip():
            return None
        try:
            if "json" not in response.headers.get("content-type", ""):
                raise ValueError
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise DeliveryError(f"{self.name} answers with something else than JSON: is its url right?") from error


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _wait_s(said: str) -> float:
    """Of a Retry-After: seconds, or a date; 0 for none."""
    try:
        wait_s = float(said)
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            wait_s = 0.0
    return min(max(wait_s, 0.0), LONGEST_WAIT_S) if math.isfinite(wait_s) else 0.0


def segment(name: str) -> str:
    """An id, which may be a stranger's, as one part of a path. Raises DeliveryError for what is none."""
    if _SEGMENT.fullmatch(name) is None or not name.strip("."):
        raise DeliveryError("a service gave something an id that cannot be one")
    return quote(name, safe="")


def objects(answer: Any, *path: str) -> list[Json]:
    """The list of objects at the end of `path` in an answer, `path` being names of fields. Raises DeliveryError."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
        raise DeliveryError(f"the answer of a service has no list {'.'.join(path) or 'of objects'}")
    return answer


def text_of(thing: Any, *names: str) -> str:
    """The first of these fields that holds a text; empty where none does."""
    found = (thing.get(name) for name in names) if isinstance(thing, dict) else ()
    return next((one for one in found if isinstance(one, str) and one), "")


def number_of(thing: Json, name: str) -> float:
    """What this field holds; 0 where it is no number."""
    value = thing.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
