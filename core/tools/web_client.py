"""Downloads web pages. Only this module sends requests to addresses that a model names.

* The host of each request is resolved once, and the connection goes to an IP address that was
  checked (`core/tools/addresses.py`). This also applies to redirects. No proxy is used, and no
  connection is used twice, because a connection to an IP address may belong to another host.
* A page may forbid programs to read it (robots.txt, RFC 9309). Its rules are cached for an hour.
* Time, size and the number of redirects are limited. Pictures, sound and programs are refused.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from config.open_files import bound_connections
from core.errors import Refused, ToolError
from core.tools.addresses import (
    IPAddress,
    Resolver,
    Target,
    check_address,
    is_public,
    resolve_host,
)
from core.tools.robots import RobotRules, parse_robots

if TYPE_CHECKING:
    import httpx

USER_AGENT = "Mneme/1.0 (a personal assistant that reads pages for one person)"
ROBOT_NAME = "Mneme"
MAX_REDIRECTS = 5
MAX_PAGE_BYTES = 3_000_000
MAX_ROBOTS_BYTES = 500_000
"""RFC 9309 requires at least this limit."""
CONNECT_TIMEOUT_S = 5.0
ROBOTS_CACHE_S = 3_600.0
MAX_CACHED_ROBOTS = 200
# At most this many requests run at the same time.
_MAX_CONNECTIONS = 8
_UNREADABLE_TYPES = ("image/", "audio/", "video/", "font/", "application/zip", "application/x-")


@dataclass(frozen=True, slots=True)
class Download:
    """The content of a web address."""

    # The address after all redirects.
    url: str
    # In lower case and without parameters, such as "text/html".
    content_type: str
    body: bytes
    # True if the body is longer than allowed, so that its end is missing.
    is_cut: bool


@dataclass(frozen=True, slots=True)
class _Response:
    """The status, the headers and the body of the response to one request."""

    status: int
    headers: httpx.Headers
    body: bytes
    is_cut: bool


class WebClient:
    """Downloads pages from public web addresses."""

    def __init__(
        self,
        timeout_s: float,
        resolve: Resolver = resolve_host,
        is_allowed: Callable[[IPAddress], bool] = is_public,
        *,
        max_bytes: int = MAX_PAGE_BYTES,
        respects_robots: bool = True,
        is_only_first_trusted: bool = False,
    ) -> None:
        """Create a client. `timeout_s` limits a download with all its redirects.

        With `is_only_first_trusted`, the owner chose the first address, so it may have any port.
        Redirects to other hosts must lead to public addresses, even if `is_allowed` allows others.
        """
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._max_bytes = max_bytes
        self._respects_robots = respects_robots
        self._is_only_first_trusted = is_only_first_trusted
        self._slots = asyncio.Semaphore(bound_connections(_MAX_CONNECTIONS))
        # The rules of robots.txt by origin, and when they expire on the monotonic clock.
        self._robots: dict[str, tuple[RobotRules, float]] = {}

    async def download(self, url: str) -> Download:
        """Download a page.

        Raises Refused if it may not be read, and ToolError if the download fails.
        """
        try:
            async with asyncio.timeout(self._timeout_s), self._slots:
                return await self._download(url)
        except TimeoutError as error:
            raise ToolError("page_no_answer", seconds=f"{self._timeout_s:g}") from error

    async def check(self, url: str) -> None:
        """Raise Refused if a program may not read an address, because it isn't public."""
        await check_address(urldefrag(url)[0], self._resolve, self._is_allowed)

    async def _download(self, url: str) -> Download:
        """Follow redirects, check each address, and return the last page."""
        first_host = ""
        for _ in range(MAX_REDIRECTS + 1):
            target = await check_address(
                urldefrag(url)[0],
                self._resolve,
                self._is_allowed,
                may_use_any_port=self._is_only_first_trusted,
            )
            first_host = first_host or target.host
            if self._is_only_first_trusted and target.host != first_host:
                # The owner's address may redirect anywhere.
                target = await check_address(target.url, self._resolve, is_public)
            if self._respects_robots and not await self._may_read(target):
                raise Refused("page_forbidden", host=target.host)
            response = await self._request(target, self._max_bytes)
            if 300 <= response.status < 400 and "location" in response.headers:
                url = urljoin(target.url, response.headers["location"])
                continue
            if response.status >= 400:
                raise ToolError("page_status", host=target.host, code=str(response.status))
            content_type = _read_content_type(response.headers)
            if content_type.startswith(_UNREADABLE_TYPES):
                raise Refused("page_is_file", type=content_type)
            return Download(target.url, content_type, response.body, response.is_cut)
        raise ToolError("page_redirects", limit=MAX_REDIRECTS)

    async def _request(self, target: Target, max_bytes: int) -> _Response:
        """Send a GET request, and read up to `max_bytes` of the response.

        Raises ToolError if the connection fails.
        """
        headers = {
            "Host": target.netloc,
            "User-Agent": USER_AGENT,
            "Accept": "text/html,application/xhtml+xml,text/plain,*/*;q=0.1",
            # Compression could hide a very large page in a small one.
            "Accept-Encoding": "identity",
        }
        # Imported here because the client takes a while to load.
        import httpx

        try:
            async with (
                httpx.AsyncClient(
                    verify=self._tls,
                    trust_env=False,
                    timeout=httpx.Timeout(self._timeout_s, connect=CONNECT_TIMEOUT_S),
                ) as client,
                client.stream(
                    "GET",
                    target.connect_url,
                    headers=headers,
                    # The certificate must match the name of the host.
                    extensions={"sni_hostname": target.host},
                ) as response,
            ):
                body, is_cut = await _read_body(response, max_bytes)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            kind = type(error).__name__
            raise ToolError("page_unreached", host=target.host, kind=kind) from error
        return _Response(response.status_code, response.headers, body, is_cut)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    async def _may_read(self, target: Target) -> bool:
        """Return whether the robots.txt of a host allows a page."""
        rules = self._cached_rules(target.origin)
        if rules is None:
            rules = await self._load_rules(target)
            if len(self._robots) >= MAX_CACHED_ROBOTS:
                del self._robots[next(iter(self._robots))]
            self._robots[target.origin] = (rules, monotonic() + ROBOTS_CACHE_S)
        return rules.allows(target.path)

    def _cached_rules(self, origin: str) -> RobotRules | None:
        rules, expires_at = self._robots.get(origin, (None, 0.0))
        return rules if expires_at > monotonic() else None

    async def _load_rules(self, target: Target) -> RobotRules:
        """Load the robots.txt of a host.

        As RFC 9309 requires, all pages are allowed if the file doesn't exist, and none while the
        host fails.
        """
        url = f"{target.origin}/robots.txt"
        for _ in range(MAX_REDIRECTS + 1):
            file_target = await check_address(url, self._resolve, self._is_allowed)
            response = await self._request(file_target, MAX_ROBOTS_BYTES)
            if not 300 <= response.status < 400 or "location" not in response.headers:
                break
            url = urljoin(file_target.url, response.headers["location"])
        if response.status >= 500:
            return parse_robots("User-agent: *\nDisallow: /", ROBOT_NAME)
        if response.status >= 300:
            return parse_robots("", ROBOT_NAME)
        return parse_robots(response.body.decode("utf-8-sig", "replace"), ROBOT_NAME)


async def _read_body(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    """Return the first `max_bytes` of the body, and whether the body is longer.

    Raises ToolError if the body is compressed.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ToolError("page_compressed")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def _read_content_type(headers: httpx.Headers) -> str:
    """Return the type without parameters, or "text/html" if the header is missing."""
    content_type: str = headers.get("content-type", "text/html")
    return content_type.partition(";")[0].strip().lower()
