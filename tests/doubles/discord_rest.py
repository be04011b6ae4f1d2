"""The HTTP side of the double: routes, authorisation, schema checks, planned failures and a log of every request."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import BodyPartReader, web

from tests.doubles.discord_gateway import DiscordGateway
from tests.doubles.discord_interactions import DiscordInteractions
from tests.doubles.discord_refusal import DiscordRefusal
from tests.doubles.discord_schema import DiscordSchema
from tests.doubles.discord_world import DIRECT, EPHEMERAL, DiscordWorld

Json = dict[str, Any]
_Handler = Callable[[Json, Any, Json], Awaitable[tuple[int, Any]]]

MESSAGES = "/channels/{channel_id}/messages"
MESSAGE = "/channels/{channel_id}/messages/{message_id}"
CALLBACK = "/interactions/{interaction_id}/{interaction_token}/callback"
WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"


class DiscordRest:
    """Answers as /api/v10 does. `requests` are {"method", "route", "path", "body", "status"} in order."""

    def __init__(self, world: DiscordWorld, gateway: DiscordGateway, token: str, notify: Callable[[], None]) -> None:
        self.world = world
        self.gateway = gateway
        self.token = token
        self.schema = DiscordSchema()
        self.interactions = DiscordInteractions(world, self.schema)
        self.requests: list[Json] = []
        self.violations: list[str] = []
        self.failures: list[Json] = []
        self.limit_chars = 2000
        self.typings: list[str] = []
        self._notify = notify
        self._nonces: dict[tuple[str, str], str] = {}

    def routes(self) -> list[web.RouteDef]:
        announced = self._announced
        table: list[tuple[str, str, _Handler]] = [
            ("GET", "/users/@me", self._me),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/applications/@me", self._application),
            ("GET", "/applications/{application_id}/commands", self._commands),
            ("PUT", "/applications/{application_id}/commands", self._put_commands),
            ("POST", "/applications/{application_id}/commands", self._post_command),
            ("GET", "/gateway", self._gateway),
            ("GET", "/gateway/bot", self._gateway),
            ("POST", "/users/@me/channels", self._direct),
            ("GET", "/channels/{channel_id}", self._channel),
            ("PATCH", "/channels/{channel_id}", self._patch_channel),
            ("POST", "/channels/{channel_id}/typing", self._typing),
            ("GET", MESSAGES, self._list),
            ("POST", MESSAGES, self._post),
            ("GET", MESSAGE, self._get),
            ("PATCH", MESSAGE, self._patch),
            ("DELETE", MESSAGE, self._delete),
            ("POST", CALLBACK, announced(self.interactions.callback)),
            ("POST", WEBHOOK, announced(self.interactions.follow)),
            ("GET", WEBHOOK + "/messages/{message_id}", announced(self.interactions.show)),
            ("PATCH", WEBHOOK + "/messages/{message_id}", announced(self.interactions.edit)),
            ("DELETE", WEBHOOK + "/messages/{message_id}", announced(self.interactions.remove)),
        ]
        return [
            web.route(method, "/api/v10" + route, self._serve(method, route, handler))
            for method, route, handler in table
        ]

    def fail(self, method: str, route: str, status: int, code: int = 0, **more: Any) -> None:
        """Plans one refusal for the next request whose method and path match (`route` is part of the path).

        retry_after: seconds of a 429; times: how often (default once); is_done: the request is carried out before.
        """
        self.failures.append({"method": method, "route": route, "status": status, "code": code, "times": 1, **more})

    def _serve(self, method: str, route: str, handler: _Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def serve(request: web.Request) -> web.Response:
            body = await _body(request)
            record: Json = {"method": method, "route": route, "path": request.path, "body": body, "status": 0}
            self.requests.append(record)
            headers: dict[str, str] = {}
            try:
                self._authorise(request)
                planned = self._planned(method, request.path)
                if planned is not None and not planned.get("is_done"):
                    status, shown, headers = _failure(planned)
                else:
                    self._check(method, route, body)
                    status, shown = await handler(dict(request.match_info), body, dict(request.query))
                    if status == 200:
                        self.violations += self.schema.response(method, route, status, shown)
                    if planned is not None:
                        status, shown, headers = _failure(planned)
            except DiscordRefusal as refusal:
                status, shown = refusal.status, refusal.body
            record["status"] = status
            self._notify()
            if status == 204:
                return web.Response(status=204, headers=headers)
            # The client compares the type as a whole, and Discord names no charset in it.
            headers["Content-Type"] = "application/json"
            return web.Response(body=json.dumps(shown).encode(), status=status, headers=headers)

        return serve

    def _authorise(self, request: web.Request) -> None:
        if request.path.startswith(("/api/v10/interactions/", "/api/v10/webhooks/")):
            return
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise DiscordRefusal(401, 0, "401: Unauthorized")

    def _planned(self, method: str, path: str) -> Json | None:
        for failure in self.failures:
            if failure["times"] > 0 and failure["method"] == method and failure["route"] in path:
                failure["times"] -= 1
                return failure
        return None

    def _check(self, method: str, route: str, body: Any) -> None:
        if method not in ("POST", "PUT", "PATCH") or body is None:
            return
        sent = {key: value for key, value in body.items() if key != "_files"} if isinstance(body, dict) else body
        errors = self.schema.request(method, route, sent)
        content = _content(sent)
        if len(content) > self.limit_chars:
            message = f"Must be {self.limit_chars} or fewer in length."
            errors = {"content": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": message}]}}
        if errors:
            self.violations.append(f"{method} {route}: {json.dumps(errors)[:400]}")
            raise DiscordRefusal(400, 50035, "Invalid Form Body", errors)

    def _announced(self, handler: Callable[[Json, Any, Json], Awaitable[tuple[int, Any, str | None]]]) -> _Handler:
        """A public answer to an interaction is a message like any other: the gateway tells of it."""

        async def handle(places: Json, body: Any, query: Json) -> tuple[int, Any]:
            status, shown, message_id = await handler(places, body or {}, query)
            for posts in self.world.posts.values():
                for post in posts:
                    if message_id is not None and post["id"] == message_id:
                        await self.gateway.message("MESSAGE_CREATE", post)
            return status, shown

        return handle

    async def _me(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        return 200, {**self.world.bot, "mfa_enabled": False, "locale": "en-US"}

    async def _application(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        return 200, self.world.application()

    async def _gateway(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        limit = {"max_concurrency": 1, "remaining": 999, "reset_after": 14_400_000, "total": 1000}
        return 200, {"url": self.gateway.url, "session_start_limit": limit, "shards": 1}

    async def _commands(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        return 200, self.world.commands

    async def _put_commands(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        self.world.commands = [self._stored(command) for command in body]
        return 200, self.world.commands

    async def _post_command(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        self.world.commands = [c for c in self.world.commands if c["name"] != body["name"]] + [self._stored(body)]
        return 201, self.world.commands[-1]

    def _stored(self, command: Json) -> Json:
        is_optional_seen = False
        for option in command.get("options") or []:
            if option.get("required") and is_optional_seen:
                message = "Required options must be placed before non-required options"
                raise DiscordRefusal(400, 50035, "Invalid Form Body", {"options": {"_errors": [{"message": message}]}})
            is_optional_seen = is_optional_seen or not option.get("required")
        return {
            "type": 1,
            "contexts": None,
            "integration_types": [0],
            "nsfw": False,
            "description": "",
            "default_member_permissions": None,
            **command,
            "id": self.world.snowflake(),
            "application_id": self.world.application_id,
            "version": self.world.snowflake(),
        }

    async def _direct(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        return 200, self.world.add_direct(str(body["recipient_id"]))

    def _visible(self, places: Json) -> Json:
        channel = self.world.channels.get(places["channel_id"])
        if channel is None:
            raise DiscordRefusal(404, 10003, "Unknown Channel")
        if channel["id"] in self.world.hidden:
            raise DiscordRefusal(403, 50001, "Missing Access")
        return channel

    async def _channel(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        return 200, self._visible(places)

    async def _patch_channel(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        channel = self._visible(places)
        metadata = channel.get("thread_metadata")
        if metadata is not None and "archived" in body:
            if metadata["locked"]:
                raise DiscordRefusal(403, 50013, "Missing Permissions")
            metadata["archived"] = body["archived"]
            await self.gateway.dispatch("THREAD_UPDATE", channel)
        return 200, channel

    async def _typing(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        self.typings.append(self._visible(places)["id"])
        return 204, None

    async def _list(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        posts = [p for p in self.world.posts[self._visible(places)["id"]] if p["id"] not in self.world.viewers]
        return 200, posts[::-1][: int(query.get("limit", 50))]

    def _own(self, places: Json) -> Json:
        self._visible(places)
        post = self.world.post(places["channel_id"], places["message_id"])
        if post is None or post["flags"] & EPHEMERAL:
            raise DiscordRefusal(404, 10008, "Unknown Message")
        return post

    async def _get(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        return 200, self._own(places)

    async def _post(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        channel = self._visible(places)
        if channel["type"] == DIRECT and channel["id"] in self.world.blocked:
            raise DiscordRefusal(403, 50007, "Cannot send messages to this user")
        metadata = channel.get("thread_metadata")
        if metadata is not None and metadata["archived"]:
            if metadata["locked"]:
                raise DiscordRefusal(400, 50083, "Thread is archived")
            metadata["archived"] = False
        key = (channel["id"], str(body.get("nonce")))
        if body.get("nonce") is not None and body.get("enforce_nonce") and key in self._nonces:
            return 200, self.world.post(channel["id"], self._nonces[key])
        content = (body.get("content") or "").strip()
        if not content and not body.get("_files") and not body.get("components"):
            raise DiscordRefusal(400, 50006, "Cannot send an empty message")
        allowed = body.get("allowed_mentions")
        parse = ["everyone"] if allowed is None else allowed.get("parse") or []
        more: Json = {
            "components": self.world.components(body.get("components")),
            "attachments": body.get("_files", []),
            "mention_everyone": "@everyone" in content and "everyone" in parse,
        }
        reference = body.get("message_reference")
        if reference is not None:
            message_id = str(reference["message_id"])
            if self.world.post(channel["id"], message_id) is not None:
                more["message_reference"] = {"type": 0, "channel_id": channel["id"], "message_id": message_id}
                more["type"] = 19
            elif reference.get("fail_if_not_exists", True):
                errors = {"message_reference": {"_errors": [{"code": "REPLIES_UNKNOWN_MESSAGE"}]}}
                raise DiscordRefusal(400, 50035, "Invalid Form Body", errors)
        post = self.world.add_post(channel["id"], self.world.bot["id"], content, **more)
        if body.get("nonce") is not None:
            self._nonces[key] = post["id"]
        await self.gateway.message("MESSAGE_CREATE", post)
        return 200, post

    async def _patch(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        post = self._own(places)
        if post["author"]["id"] != self.world.bot["id"]:
            raise DiscordRefusal(403, 50005, "Cannot edit a message authored by another user")
        metadata = self.world.channels[places["channel_id"]].get("thread_metadata")
        if metadata is not None and metadata["archived"]:
            raise DiscordRefusal(400, 50083, "Thread is archived")
        if body.get("content") is not None:
            post["content"] = body["content"].strip()
        if "components" in body:
            post["components"] = self.world.components(body["components"])
        post["attachments"] = [*post["attachments"], *body.get("_files", [])]
        post["edited_timestamp"] = self.world.stamp()
        await self.gateway.message("MESSAGE_UPDATE", post)
        return 200, post

    async def _delete(self, places: Json, body: Any, query: Json) -> tuple[int, Any]:
        post = self._own(places)
        self.world.posts[places["channel_id"]].remove(post)
        channel = self.world.channels[places["channel_id"]]
        told = {"id": post["id"], "channel_id": post["channel_id"]}
        if "guild_id" in channel:
            told["guild_id"] = channel["guild_id"]
        await self.gateway.dispatch("MESSAGE_DELETE", told)
        return 204, None


async def _body(request: web.Request) -> Any:
    """The JSON of a request; for multipart the part `payload_json`, and what was uploaded under `_files`."""
    if request.content_type != "multipart/form-data":
        return await request.json() if request.can_read_body else None
    payload: Json = {}
    files: list[Json] = []
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name == "payload_json":
            payload = json.loads(await part.text())
        else:
            content = await part.read()
            url = f"http://127.0.0.1/attachments/{part.filename}"
            files.append(
                {"id": str(len(files)), "filename": part.filename, "size": len(content), "url": url, "proxy_url": url}
            )
    return {**payload, "_files": files}


def _content(body: Any) -> str:
    if not isinstance(body, dict):
        return ""
    content = body.get("content") or (body.get("data") or {}).get("content")
    return content if isinstance(content, str) else ""


def _failure(planned: Json) -> tuple[int, Json, dict[str, str]]:
    status = int(planned["status"])
    if status != 429:
        return status, {"message": planned.get("message", "planned"), "code": planned["code"]}, {}
    wait_s = float(planned.get("retry_after", 0.01))
    headers = {
        "Via": "1.1 google",
        "Retry-After": str(wait_s),
        "X-RateLimit-Limit": "5",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset-After": str(wait_s),
        "X-RateLimit-Bucket": "planned",
        "X-RateLimit-Scope": "user",
    }
    return 429, {"message": "You are being rate limited.", "retry_after": wait_s, "global": False}, headers
