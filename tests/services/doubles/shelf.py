"""The service of the example in docs/extending.md."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from tests.services.doubles.double import Double, best, body_of


class ShelfDouble(Double):
    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}
        """Texts by space and name."""

    def texts(self) -> Sequence[str]:
        return [*self.held.values()]

    def routes(self) -> Sequence[web.RouteDef]:
        one = "/{space}/{name}"
        return [
            web.get("/version", self._version),
            web.post("/{space}/search", self._search),
            web.put(one, self._put),
            web.get(one, self._get),
            web.delete(one, self._delete),
        ]

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "1.0"})

    async def _search(self, request: web.Request) -> web.Response:
        asked = await body_of(request)
        kept = [key for key in self.held if key[0] == request.match_info["space"]]
        found = best(asked["query"], kept, lambda key: self.held[key], asked["limit"])
        return web.json_response(
            {"found": [{"name": key[1], "text": self.held[key]} for _, key in found]}
        )

    async def _put(self, request: web.Request) -> web.Response:
        self.held[self._key(request)] = (await body_of(request))["text"]
        return web.json_response({"name": request.match_info["name"]})

    async def _get(self, request: web.Request) -> web.Response:
        text = self.held.get(self._key(request))
        return web.json_response({"text": text}, status=404 if text is None else 200)

    async def _delete(self, request: web.Request) -> web.Response:
        gone = self.held.pop(self._key(request), None)
        return web.json_response({}, status=404 if gone is None else 200)

    @staticmethod
    def _key(request: web.Request) -> tuple[str, str]:
        return request.match_info["space"], request.match_info["name"]
