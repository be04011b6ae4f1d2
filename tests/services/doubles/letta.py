"""Letta: archives with passages, which are searched, and core blocks.

It follows https://docs.letta.com/api-reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

from aiohttp import web

from tests.services.doubles.double import Double, best, body_of

AT = "2026-05-03T10:00:00Z"


class LettaDouble(Double):
    """Stores each passage unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)
        self.archives: dict[str, dict[str, Any]] = {}
        self.passages: dict[str, dict[str, Any]] = {}
        self.blocks: dict[str, dict[str, Any]] = {}
        self.is_leaking = False
        """Whether a search gives everybody all there is."""

    def texts(self) -> Sequence[str]:
        return [passage["text"] for passage in self.passages.values()]

    def routes(self) -> Sequence[web.RouteDef]:
        passages = "/v1/archives/{archive}/passages"
        return [
            web.get("/v1/health/", self._health),
            web.get("/v1/archives/", self._list_archives),
            web.post("/v1/archives/", self._create_archive),
            web.post(passages, self._add),
            web.delete(f"{passages}/{{id}}", self._delete),
            web.post("/v1/passages/search", self._search),
            web.get("/v1/blocks/", self._list_blocks),
            web.post("/v1/blocks/", self._create_block),
            web.patch("/v1/blocks/{id}", self._change_block),
        ]

    def _id(self, kind: str) -> str:
        return f"{kind}-{UUID(int=next(self._numbers))}"

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.16.7", "status": "ok"})

    async def _list_archives(self, request: web.Request) -> web.Response:
        name = request.query.get("name")
        return web.json_response(
            [archive for archive in self.archives.values() if name in (None, archive["name"])]
        )

    async def _create_archive(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        archive = {"id": self._id("archive"), "name": body["name"], "created_at": AT}
        self.archives[archive["id"]] = archive
        return web.json_response(archive)

    async def _add(self, request: web.Request) -> web.Response:
        body, archive = await body_of(request), request.match_info["archive"]
        if archive not in self.archives:
            return _missing()
        passage = {
            "id": self._id("passage"),
            "archive_id": archive,
            "text": body["text"],
            "tags": body["tags"],
            "created_at": body["created_at"],
        }
        self.passages[passage["id"]] = passage
        return web.json_response(passage)

    async def _delete(self, request: web.Request) -> web.Response:
        passage = self.passages.get(request.match_info["id"])
        if passage is None:
            return _missing()
        if passage["archive_id"] != request.match_info["archive"]:
            return web.json_response({"detail": "it is in another archive"}, status=400)
        del self.passages[passage["id"]]
        return web.Response(status=204)

    async def _search(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        passages = [
            passage
            for passage in self.passages.values()
            if (self.is_leaking or passage["archive_id"] == body["archive_id"])
            and set(body.get("tags", ())) <= set(passage["tags"])
        ]
        matches = [(0.0, passage) for passage in passages]
        if body.get("query"):
            matches = best(
                body["query"], passages, lambda passage: str(passage["text"]), body["limit"]
            )
        return web.json_response(
            [{"passage": passage, "score": score, "metadata": {}} for score, passage in matches]
        )

    async def _list_blocks(self, request: web.Request) -> web.Response:
        label = request.query.get("label")
        return web.json_response(
            [block for block in self.blocks.values() if label in (None, block["label"])]
        )

    async def _create_block(self, request: web.Request) -> web.Response:
        block = {"id": self._id("block"), **await body_of(request)}
        self.blocks[block["id"]] = block
        return web.json_response(block)

    async def _change_block(self, request: web.Request) -> web.Response:
        block = self.blocks.get(request.match_info["id"])
        if block is None:
            return _missing()
        block |= await body_of(request)
        return web.json_response(block)


def _missing() -> web.Response:
    return web.json_response({"detail": "not found"}, status=404)
