"""The common base of the doubles of memory services: a loopback server that stores what it gets,
and fails as a test wants.

A double is a class with the routes of its service, over real storage. Posted texts can be searched
and deleted, per scope. Faults are made here, before or after the double's own work, so that each
service fails in the same ways."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from aiohttp import web

Fault = Literal[
    "well",
    "refusing",
    "unauthorized",
    "limited",
    "failing",
    "hanging",
    "slow",
    "babbling",
    "malformed",
    "oversized",
    "broken",
    "lost",
    "astray",
]
"""refusing: 422. limited: 429 with Retry-After. hanging: no answer until it may go. slow: the same,
after the beginning of an answer. babbling: HTML. malformed: JSON of another shape. oversized: more
than anybody reads. broken: the connection ends in the middle of the answer. lost: the same, before
it, when all is done. astray: a redirect elsewhere. """
KEY = "s3cret-of-the-service"
RETRY_AFTER_S = 30
T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_WORD = re.compile(r"\w+")


class Double:
    """`fault` decides how further requests fail."""

    def __init__(self) -> None:
        self.url = ""
        self.options: Mapping[str, Any] = {}
        """Of the provider, beside those of every double of its kind."""
        self.fault: Fault = "well"
        self.asked: list[str] = []
        """Method and path of each request, in order."""
        self.sent: list[str] = []
        """Their bodies."""
        self.calls: list[tuple[str, str, dict[str, str], str]] = []
        """Method, path, parameters and body of each."""
        self.homes: list[Path] = []
        """The homes that use it. A library stores its files there."""
        self.is_asked = asyncio.Event()
        self.may_go = asyncio.Event()

    def routes(self) -> Sequence[web.RouteDef]:
        raise NotImplementedError

    def texts(self) -> Sequence[str]:
        """Return all stored texts, in all scopes."""
        raise NotImplementedError

    def work(self) -> None:
        """Let the service's model finish its work on the texts so far."""

    def is_known(self, request: web.Request) -> bool:
        """Return whether a request has the key."""
        return request.headers.get("Authorization") == f"Bearer {KEY}"

    @web.middleware
    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        self.sent.append(await request.text())
        self.calls.append((request.method, request.path, dict(request.query), self.sent[-1]))
        self.is_asked.set()
        if not self.is_known(request) or self.fault == "unauthorized":
            return web.json_response({"detail": f"who is {dict(request.headers)}?"}, status=401)
        match self.fault:
            case "refusing":
                return web.json_response({"detail": "not for me: " + self.sent[-1]}, status=422)
            case "limited":
                return web.json_response(
                    {}, status=429, headers={"Retry-After": str(RETRY_AFTER_S)}
                )
            case "failing":
                return web.json_response({"detail": "I fell over: " + self.sent[-1]}, status=500)
            case "hanging":
                await self.may_go.wait()
            case "slow":
                return await self._drip(request)
            case "babbling":
                return web.Response(text="<html>it is no JSON", content_type="text/html")
            case "malformed":
                return web.json_response({"results": {"id": 7}, "items": ["x"], "data": None})
            case "oversized":
                return web.json_response({"results": [], "more": "x" * 5_000_000})
            case "broken":
                return await self._break(request, b'{"results": [')
            case "lost":
                await handler(request)
                return await self._break(request, b"")
            case "astray":
                raise web.HTTPTemporaryRedirect("http://127.0.0.2:9/elsewhere")
            case "well":
                pass
        return await handler(request)

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b" ")
        await self.may_go.wait()
        await response.write(b"{}")
        return response

    async def _break(self, request: web.Request, begun: bytes) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Content-Length": "1000"}
        )
        if begun:
            await response.prepare(request)
            await response.write(begun)
        assert request.transport is not None
        request.transport.abort()
        return response


@asynccontextmanager
async def running(double: Double) -> AsyncIterator[Double]:
    """Run the double."""
    app = web.Application(middlewares=[double.answer], client_max_size=10_000_000)
    app.add_routes(double.routes())
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    double.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
    try:
        yield double
    finally:
        double.may_go.set()
        await runner.cleanup()


def words(text: str) -> frozenset[str]:
    """Return the words of at least four letters, as a simple substitute for meaning."""
    return frozenset(word for word in _WORD.findall(text.casefold()) if len(word) > 3)


def best(
    query: str, kept: Collection[T], text_of: Callable[[T], str], limit: int
) -> list[tuple[float, T]]:
    """Return the texts that share words with the query, each with its score, best first."""
    asked = words(query)
    found = [(len(asked & words(text_of(one))) / (len(asked) or 1), one) for one in kept]
    return sorted((pair for pair in found if pair[0]), key=lambda pair: -pair[0])[:limit]


async def body_of(request: web.Request) -> Any:
    """Return the decoded body. If it isn't a JSON object, the client gets an error."""
    body = await request.json()
    if not isinstance(body, dict):
        raise web.HTTPBadRequest
    return body
