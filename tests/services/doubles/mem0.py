"""mem0: its platform, which makes memories some time after it got a turn, and a self-hosted server.

It follows https://docs.mem0.ai/api-reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

from aiohttp import web

from tests.services.doubles.double import KEY, Double, best, body_of


class Mem0Double(Double):
    """Makes one memory of each message of a person."""

    def __init__(self, *, is_platform: bool) -> None:
        super().__init__()
        self.is_platform = is_platform
        self._numbers = count(1)
        self.memories: dict[str, dict[str, Any]] = {}
        self.waiting: dict[str, list[dict[str, Any]]] = {}
        """By event: memories that the platform has not made yet."""
        self.is_late = self.is_leaking = False
        """Whether memories come some time after they were told; whether it gives everybody all of
        them."""

    def is_known(self, request: web.Request) -> bool:
        if self.is_platform:
            return request.headers.get("Authorization") == f"Token {KEY}"
        return request.headers.get("X-API-Key") == KEY

    def texts(self) -> Sequence[str]:
        return [one["memory"] for one in self.memories.values()]

    def routes(self) -> Sequence[web.RouteDef]:
        one = "/v1/memories/{id}/" if self.is_platform else "/memories/{id}"
        routes = [web.get(one, self._get), web.put(one, self._put), web.delete(one, self._delete)]
        if self.is_platform:
            return [
                *routes,
                web.get("/v1/ping/", self._ping),
                web.get("/v1/event/{id}/", self._event),
                web.post("/v3/memories/add/", self._add),
                web.post("/v3/memories/search/", self._search),
                web.post("/v3/memories/", self._list),
            ]
        return [
            *routes,
            web.post("/memories", self._add),
            web.post("/search", self._search),
            web.get("/memories", self._all),
        ]

    async def _ping(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"org_id": "org", "project_id": "proj", "user_email": "ana@example.org"}
        )

    async def _event(self, request: web.Request) -> web.Response:
        event = request.match_info["id"]
        return web.json_response(
            {"id": event, "status": "PENDING" if event in self.waiting else "SUCCEEDED"}
        )

    def work(self) -> None:
        """Make the waiting memories."""
        for made in self.waiting.values():
            self.memories |= {one["id"]: one for one in made}
        self.waiting.clear()

    async def _add(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        if not body.get("user_id") or not body.get("messages"):
            return web.json_response({"detail": "user_id and messages are required"}, status=400)
        made = []
        for message in body["messages"]:
            if message["role"] != "user" and body.get("infer", True):
                continue
            number = next(self._numbers)
            one = {
                "id": str(UUID(int=number)),
                "memory": message["content"],
                "user_id": body["user_id"],
            }
            at = f"2026-05-{number % 28 + 1:02d}T09:00:00Z"
            made.append(
                {**one, "metadata": body.get("metadata"), "created_at": at, "updated_at": at}
            )
        if not self.is_platform:
            self.memories |= {one["id"]: one for one in made}
            results = [{"id": one["id"], "memory": one["memory"], "event": "ADD"} for one in made]
            return web.json_response({"results": results})
        event = str(UUID(int=next(self._numbers)))
        self.waiting[event] = made
        if not self.is_late:
            self.work()
        return web.json_response({"message": "queued", "status": "PENDING", "event_id": event})

    async def _search(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        kept = self._of(body["filters"]["user_id"])
        found = best(body["query"], kept, lambda one: str(one["memory"]), body.get("top_k", 10))
        return web.json_response({"results": [{**one, "score": score} for score, one in found]})

    async def _list(self, request: web.Request) -> web.Response:
        kept = self._of((await body_of(request))["filters"]["user_id"])
        page, size = int(request.query.get("page", 1)), int(request.query.get("page_size", 100))
        shown = kept[(page - 1) * size : page * size]
        following = f"{request.url}&page={page + 1}" if len(kept) > page * size else None
        return web.json_response({"results": shown, "next": following, "count": len(kept)})

    async def _all(self, request: web.Request) -> web.Response:
        kept = self._of(request.query["user_id"])
        return web.json_response({"results": kept[: int(request.query.get("top_k", 20))]})

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._one(request))

    async def _put(self, request: web.Request) -> web.Response:
        self._one(request)["memory"] = (await body_of(request))["text"]
        return web.json_response({"message": "updated"})

    async def _delete(self, request: web.Request) -> web.Response:
        del self.memories[self._one(request)["id"]]
        return web.json_response({"message": "deleted"})

    def _one(self, request: web.Request) -> dict[str, Any]:
        found = self.memories.get(request.match_info["id"])
        if found is None:
            raise web.HTTPNotFound(
                text='{"detail": "no such memory"}', content_type="application/json"
            )
        return found

    def _of(self, user_id: str) -> list[dict[str, Any]]:
        return [
            one for one in self.memories.values() if self.is_leaking or one["user_id"] == user_id
        ]
