"""Interactions of the double: calls of commands and presses of buttons, and the answers a token may still give.

Models what trips real clients: three seconds to acknowledge, one acknowledgement, an ephemeral flag that is fixed when
the answer is deferred, a token that dies after fifteen minutes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.doubles.discord_refusal import DiscordRefusal
from tests.doubles.discord_schema import DiscordSchema
from tests.doubles.discord_world import DIRECT, EPHEMERAL, LOADING, DiscordWorld

Json = dict[str, Any]

ACKNOWLEDGE_WITHIN = timedelta(seconds=3)
LIVES_FOR = timedelta(minutes=15)


@dataclass
class _Call:
    """One interaction as the test sees it."""

    id: str
    token: str
    kind: int
    user_id: str
    channel_id: str
    created_at: datetime
    message_id: str | None = None
    """The message whose button was pressed."""
    is_lost: bool = False
    callbacks: list[Json] = field(default_factory=list)
    original_id: str | None = None
    followups: list[str] = field(default_factory=list)

    @property
    def is_deferred(self) -> bool:
        return bool(self.callbacks) and self.callbacks[0]["type"] in (5, 6)


class DiscordInteractions:
    """Handlers of the callback and webhook routes. `is_strict_on_time` turns the three seconds off."""

    def __init__(self, world: DiscordWorld, schema: DiscordSchema) -> None:
        self.world = world
        self.schema = schema
        self.calls: dict[str, _Call] = {}
        self.is_strict_on_time = True

    def open(self, kind: int, channel_id: str, user_id: str, data: Json, message: Json | None = None) -> Json:
        """Begins an interaction and returns what INTERACTION_CREATE carries."""
        call = _Call(
            id=self.world.snowflake(),
            token=secrets.token_urlsafe(24),
            kind=kind,
            user_id=user_id,
            channel_id=channel_id,
            created_at=self.world.now(),
            message_id=message["id"] if message else None,
        )
        self.calls[call.id] = call
        channel = self.world.channels[channel_id]
        payload: Json = {
            "id": call.id,
            "application_id": self.world.application_id,
            "type": kind,
            "token": call.token,
            "version": 1,
            "data": data,
            "channel_id": channel_id,
            "channel": channel,
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {"0": channel.get("guild_id", "0")},
            "attachment_size_limit": 10_485_760,
            "app_permissions": "2251799813685247",
        }
        if "guild_id" in channel:
            payload["guild_id"] = channel["guild_id"]
            payload["member"] = self.world.member(user_id)
            payload["context"] = 0
        else:
            payload["user"] = self.world.users[user_id]
            payload["context"] = 1 if channel["type"] == DIRECT else 2
        if message is not None:
            payload["message"] = message
        return payload

    def answers(self, call_id: str) -> list[Json]:
        """The messages that an interaction has produced and that still exist, the original first."""
        call = self.calls[call_id]
        ids = [call.original_id, *call.followups]
        found = [self.world.post(call.channel_id, message_id) for message_id in ids if message_id]
        return [post for post in found if post is not None]

    async def callback(self, places: Json, body: Json, query: Json) -> tuple[int, Any, str | None]:
        """POST /interactions/{id}/{token}/callback; the third value is the id of a message to announce."""
        call = self.calls.get(places["interaction_id"])
        is_late = call is not None and self.world.now() - call.created_at >= ACKNOWLEDGE_WITHIN
        if call is None or call.token != places["interaction_token"] or call.is_lost:
            raise DiscordRefusal(404, 10062, "Unknown interaction")
        if call.callbacks:
            raise DiscordRefusal(400, 40060, "Interaction has already been acknowledged.")
        if is_late and self.is_strict_on_time:
            raise DiscordRefusal(404, 10062, "Unknown interaction")
        if body["type"] in (4, 5):
            problems = self.schema.component("CreateMessageInteractionCallbackRequest", body)
            if problems:
                raise DiscordRefusal(400, 50035, "Invalid Form Body", {"data": {"_errors": problems}})
        data = body.get("data") or {}
        flags = int(data.get("flags") or 0) & EPHEMERAL
        if body["type"] == 4:
            call.original_id = self._write(call, data, flags)["id"]
        elif body["type"] == 5:
            call.original_id = self._write(call, {}, flags | LOADING, is_empty_fine=True)["id"]
        elif body["type"] == 6 and call.kind == 3:
            call.original_id = call.message_id
        else:
            raise DiscordRefusal(400, 50035, "Invalid Form Body", {"type": {"_errors": [{"code": "ENUM_TYPE"}]}})
        call.callbacks.append(body)
        is_public = body["type"] == 4 and not flags
        announced = call.original_id if is_public else None
        if query.get("with_response") not in ("1", "true"):
            return 204, None, announced
        shown: Json = {
            "interaction": {
                "id": call.id,
                "type": call.kind,
                "response_message_id": call.original_id,
                "response_message_loading": body["type"] == 5,
                "response_message_ephemeral": bool(flags),
            }
        }
        if body["type"] == 4 and call.original_id is not None:
            shown["resource"] = {"type": 4, "message": self.world.post(call.channel_id, call.original_id)}
        return 200, shown, announced

    async def follow(self, places: Json, body: Json, query: Json) -> tuple[int, Any, str | None]:
        """POST /webhooks/{application}/{token}: the first one after a deferral fills the deferred message."""
        call = self._live(places)
        original = self.world.post(call.channel_id, call.original_id or "")
        if call.is_deferred and original is not None and original["flags"] & LOADING:
            post = self._fill(call, original, body)
        else:
            post = self._write(call, body, int(body.get("flags") or 0) & EPHEMERAL)
            call.followups.append(post["id"])
        announced = None if post["flags"] & EPHEMERAL else post["id"]
        return (200, post, announced) if query.get("wait") in ("1", "true") else (204, None, announced)

    async def edit(self, places: Json, body: Json, query: Json) -> tuple[int, Any, str | None]:
        """PATCH /webhooks/{application}/{token}/messages/{id or @original}."""
        call = self._live(places)
        return 200, self._fill(call, self._own(call, places), body), None

    async def show(self, places: Json, body: Json, query: Json) -> tuple[int, Any, str | None]:
        call = self._live(places)
        return 200, self._own(call, places), None

    async def remove(self, places: Json, body: Json, query: Json) -> tuple[int, Any, str | None]:
        call = self._live(places)
        post = self._own(call, places)
        self.world.posts[call.channel_id].remove(post)
        return 204, None, None

    def _live(self, places: Json) -> _Call:
        token = places["webhook_token"]
        call = next((call for call in self.calls.values() if call.token == token), None)
        if call is None or places["webhook_id"] != self.world.application_id or not call.callbacks:
            raise DiscordRefusal(404, 10015, "Unknown Webhook")
        if call.is_lost or self.world.now() - call.created_at >= LIVES_FOR:
            raise DiscordRefusal(401, 50027, "Invalid Webhook Token")
        return call

    def _own(self, call: _Call, places: Json) -> Json:
        asked = places.get("message_id", "@original")
        message_id = call.original_id if asked == "@original" else asked
        if message_id not in (call.original_id, *call.followups):
            raise DiscordRefusal(404, 10008, "Unknown Message")
        post = self.world.post(call.channel_id, message_id or "")
        if post is None:
            raise DiscordRefusal(404, 10008, "Unknown Message")
        return post

    def _fill(self, call: _Call, post: Json, body: Json) -> Json:
        if body.get("content") is not None:
            post["content"] = body["content"].strip()
        if "components" in body:
            post["components"] = self.world.components(body["components"])
        post["attachments"] = [*post["attachments"], *body.get("_files", [])]
        if not post["flags"] & LOADING:
            post["edited_timestamp"] = self.world.stamp()
        post["flags"] &= ~LOADING
        return post

    def _write(self, call: _Call, body: Json, flags: int, *, is_empty_fine: bool = False) -> Json:
        content = (body.get("content") or "").strip()
        if not content and not body.get("_files") and not body.get("components") and not is_empty_fine:
            raise DiscordRefusal(400, 50006, "Cannot send an empty message")
        post = self.world.add_post(
            call.channel_id,
            self.world.bot["id"],
            content,
            flags=flags,
            application_id=self.world.application_id,
            webhook_id=self.world.application_id,
            type=20 if call.kind == 2 else 0,
            components=self.world.components(body.get("components")),
            attachments=list(body.get("_files", [])),
            mention_everyone="@everyone" in content and "everyone" in _parse(body),
        )
        if flags & EPHEMERAL:
            self.world.viewers[post["id"]] = call.user_id
        return post


def _parse(body: Json) -> list[str]:
    allowed = body.get("allowed_mentions")
    return ["everyone", "users", "roles"] if allowed is None else list(allowed.get("parse") or [])
