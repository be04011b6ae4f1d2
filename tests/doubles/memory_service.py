"""A memory service on loopback: keeps what it is told, finds it by its words, and fails as a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

from aiohttp import web

Mood = Literal["well", "refusing", "failing", "babbling", "hanging"]
KEY = "s3cret-of-the-service"


class MemoryService:
    """`POST /memories` {key, scope, text, ids} is idempotent by key; `POST /forgotten` {scope, ids} drops what has one
    of the ids; `GET /memories?scope=a&scope=b&q=words` finds the texts that have one of the words. `mood` decides what
    becomes of a request from then on."""

    def __init__(self) -> None:
        self.url = ""
        self.mood: Mood = "well"
        self.held: dict[str, tuple[str, str]] = {}
        """Scope and text by key."""
        self.ids: dict[str, frozenset[int]] = {}
        self.asked: list[str] = []
        """Method and path of each request, in order."""
        self.told: list[str] = []
        """The key of each memory that arrived, also of those that were known."""
        self.is_asked = asyncio.Event()
        self.is_told = asyncio.Event()
        self.may_go = asyncio.Event()
        """What hangs is let go."""

    async def _keep(self, request: web.Request) -> web.Response:
        said = await request.json()
        self.told.append(said["key"])
        self.held[said["key"]] = (said["scope"], said["text"])
        self.ids[said["key"]] = frozenset(said["ids"])
        self.is_told.set()
        return web.json_response({"kept": said["key"]})

    async def _drop(self, request: web.Request) -> web.Response:
        gone = await request.json()
        for key in [key for key, ids in self.ids.items() if ids & set(gone["ids"])]:
            if self.held[key][0] == gone["scope"]:
                del self.held[key], self.ids[key]
        self.is_told.set()
        return web.json_response({})

    async def _find(self, request: web.Request) -> web.Response:
        scopes = request.query.getall("scope", [])
        words = {word.strip(".,?!:").casefold() for word in request.query.get("q", "").split()}
        found = [
            {"id": number, "text": text}
            for number, (scope, text) in enumerate(self.held.values(), 1)
            if scope in scopes and words & {word.strip(".,?!:").casefold() for word in text.split()}
        ]
        return web.json_response({"memories": found})

    @web.middleware
    async def _moody(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        self.is_asked.set()
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": "who are you?"}, status=401)
        if self.mood == "refusing":
            return web.json_response({"error": "this is not for me"}, status=422)
        if self.mood == "failing":
            return web.json_response({"error": "I fell over"}, status=500)
        if self.mood == "babbling":
            return web.Response(text="<html>it is not JSON", content_type="text/html")
        if self.mood == "hanging":
            await self.may_go.wait()
        return await handler(request)


@asynccontextmanager
async def memory_service() -> AsyncIterator[MemoryService]:
    """The service, up."""
    service = MemoryService()
    app = web.Application(middlewares=[service._moody])
    app.add_routes([web.post("/memories", service._keep), web.get("/memories", service._find)])
    app.add_routes([web.post("/forgotten", service._drop)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    service.url = f"http://127.0.0.1:{port}"
    try:
        yield service
    finally:
        service.may_go.set()
        await runner.cleanup()
