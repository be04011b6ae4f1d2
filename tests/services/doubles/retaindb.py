"""RetainDB: memories by project and user.

Its documentation nests a memory in a result. RetainDB Local returns both shapes.

No page describes its answers, so it follows the public source of RetainDB Local 0.2.2."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from aiohttp import web

from tests.services.doubles.double import Double, best, body_of


class RetainDbDouble(Double):
    """Makes one memory of each text, unchanged."""

    def __init__(self, *, is_local: bool = False) -> None:
        super().__init__()
        self.is_local = is_local
        self._numbers = count(1)
        self.memories: dict[str, dict[str, Any]] = {}
        self.is_leaking = False
        """Whether a search gives everybody all there is."""

    def texts(self) -> Sequence[str]:
        return [one["content"] for one in self.memories.values()]

    def routes(self) -> Sequence[web.RouteDef]:
        return [
            web.post("/v1/memory", self._add),
            web.post("/v1/memory/search", self._search),
            web.post("/v1/context/query", self._context),
            web.get("/v1/memory/profile/{user}", self._profile),
            web.delete("/v1/memory/{id}", self._delete),
        ]

    async def _add(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        if not all(
            isinstance(body.get(name), str) and body[name]
            for name in ("project", "user_id", "content")
        ):
            return web.json_response(
                {"error": "project, user_id and content are needed"}, status=400
            )
        one = {
            name: body.get(name)
            for name in ("project", "user_id", "session_id", "content", "memory_type")
        }
        one |= {"id": f"mem_{next(self._numbers)}", "created_at": "2026-05-03T10:00:00Z"}
        self.memories[one["id"]] = one
        return web.json_response(
            {"success": True, "memory_id": one["id"], "id": one["id"], "stored": 1, "memory": one}
        )

    def _of(self, project: Any, user: Any) -> list[dict[str, Any]]:
        return [
            one
            for one in self.memories.values()
            if (one["project"], one["user_id"]) == (project, user)
        ]

    async def _search(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        known = self._of(body.get("project"), body.get("user_id"))
        known = [*self.memories.values()] if self.is_leaking else known
        found = best(body["query"], known, lambda one: str(one["content"]), body["top_k"])
        results: list[dict[str, Any]] = [{"score": score, "memory": one} for score, one in found]
        if self.is_local:
            results = [{**one["memory"], **one} for one in results]
        return web.json_response({"results": results, "count": len(results), "trace_id": "t"})

    async def _context(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        found = best(
            body["query"],
            self._of(body["project"], body["user_id"]),
            lambda one: str(one["content"]),
            5,
        )
        text = "\n".join(one["content"] for _, one in found)
        return web.json_response({"results": [], "memories": [], "context": text, "meta": {}})

    async def _profile(self, request: web.Request) -> web.Response:
        known = self._of(request.query.get("project"), request.match_info["user"])
        return web.json_response({"memories": known, "count": len(known)})

    async def _delete(self, request: web.Request) -> web.Response:
        if self.memories.pop(request.match_info["id"], None) is None:
            return web.json_response({"error": "not found"}, status=404)
        return web.json_response({"deleted": request.match_info["id"]})
