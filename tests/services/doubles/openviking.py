"""OpenViking: files by user; `~` in an address is the home of the user whom a header names.

In the mode `dev`, a search without a target searches the files of all users.

It follows https://docs.openviking.ai/en/api/01-overview."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from tests.services.doubles.double import KEY, Double, best, body_of


class OpenVikingDouble(Double):
    def __init__(self, *, auth_mode: str = "trusted") -> None:
        super().__init__()
        self.auth_mode = auth_mode
        self.overviews = 0
        """How many overviews of folders come before what matches."""
        self.files: dict[tuple[str, str], str] = {}
        """Texts by user and address."""

    def is_known(self, request: web.Request) -> bool:
        return self.auth_mode == "dev" or request.headers.get("X-API-Key") == KEY

    def texts(self) -> Sequence[str]:
        return [*self.files.values()]

    def routes(self) -> Sequence[web.RouteDef]:
        return [
            web.get("/health", self._health),
            web.post("/api/v1/content/write", self._write),
            web.get("/api/v1/content/read", self._read),
            web.get("/api/v1/fs/stat", self._stat),
            web.delete("/api/v1/fs", self._delete),
            web.post("/api/v1/search/find", self._find),
        ]

    async def _health(self, request: web.Request) -> web.Response:
        about = {"status": "ok", "healthy": True, "version": "0.5.2", "auth_mode": self.auth_mode}
        return web.json_response(about)

    async def _write(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        key = (self._user(request), body["uri"])
        if key in self.files and body["mode"] == "create":
            return self._wrong("ALREADY_EXISTS", 409)
        self.files[key] = body["content"]
        return self._well(
            {"uri": body["uri"], "context_type": "memory", "written_bytes": len(body["content"])}
        )

    async def _read(self, request: web.Request) -> web.Response:
        text = self.files.get(self._key(request))
        return self._wrong("NOT_FOUND", 404) if text is None else self._well(text)

    async def _stat(self, request: web.Request) -> web.Response:
        key = self._key(request)
        return (
            self._well({"uri": key[1], "isDir": False})
            if key in self.files
            else self._wrong("NOT_FOUND", 404)
        )

    async def _delete(self, request: web.Request) -> web.Response:
        if self.files.pop(self._key(request), None) is None:
            return self._wrong("NOT_FOUND", 404)
        return self._well({"estimated_deleted_count": 1})

    async def _find(self, request: web.Request) -> web.Response:
        body, user = await body_of(request), self._user(request)
        target = body.get("target_uri") or ""
        kept = [
            key
            for key in self.files
            if (key[0] == user or self.auth_mode == "dev") and key[1].startswith(target)
        ]
        found = best(body["query"], kept, lambda key: self.files[key], body["limit"])
        memories = [
            {
                "uri": key[1],
                "level": 2,
                "score": score,
                "abstract": self.files[key][:200],
                "context_type": "memory",
            }
            for score, key in found
            if score >= body.get("score_threshold", 0)
        ]
        overviews = [
            {
                "uri": f"{target}/events/.overview.md",
                "level": 1,
                "score": 1.0,
                "abstract": "An overview of what was said.",
                "context_type": "memory",
            }
        ]
        memories = (overviews * self.overviews + memories)[: body["limit"]]
        return self._well(
            {"memories": memories, "resources": [], "skills": [], "total": len(memories)}
        )

    def _key(self, request: web.Request) -> tuple[str, str]:
        return self._user(request), request.query["uri"]

    @staticmethod
    def _user(request: web.Request) -> str:
        return request.headers["X-OpenViking-User"]

    @staticmethod
    def _well(result: Any) -> web.Response:
        return web.json_response({"status": "ok", "result": result, "error": None})

    @staticmethod
    def _wrong(code: str, status: int) -> web.Response:
        return web.json_response(
            {"status": "error", "result": None, "error": {"code": code}}, status=status
        )
