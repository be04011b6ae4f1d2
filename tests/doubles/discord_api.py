"""A loopback double of Discord: REST, gateway websocket and interactions on one port, and the people who use it.

Drives the real client library. `async with DiscordApi() as api:` gives `api.rest_url` and `api.gateway_url`; what the
bot sent that Discord would refuse stands in `api.violations`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol, TypeVar

from aiohttp import web

from tests.doubles.discord_gateway import DiscordGateway
from tests.doubles.discord_rest import DiscordRest
from tests.doubles.discord_world import FORUM, TEXT, DiscordWorld

Json = dict[str, Any]
T = TypeVar("T")

TOKEN = "MTA.test-token.not-a-secret"


class _Clock(Protocol):
    def now(self) -> datetime: ...


class DiscordApi:
    """The whole double. Ids are strings. Everything a person does is a method; everything visible can be read.

    `clock` gives the time of ids and of the three seconds and fifteen minutes of interactions; default is real time.
    """

    def __init__(self, clock: _Clock | None = None, token: str = TOKEN) -> None:
        self.token = token
        self._changed = asyncio.Event()
        self.world = DiscordWorld(clock.now if clock else None)
        self.gateway = DiscordGateway(self.world, token, self._notify)
        self.rest = DiscordRest(self.world, self.gateway, token, self._notify)
        self.interactions = self.rest.interactions
        self.rest_url = ""
        self.gateway_url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> DiscordApi:
        application = web.Application()
        application.add_routes(self.rest.routes())
        application.add_routes([web.get("/gateway/", self.gateway.handle)])
        self._runner = web.AppRunner(application, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.rest_url = f"http://127.0.0.1:{port}/api/v10"
        self.gateway.url = self.gateway_url = f"ws://127.0.0.1:{port}/gateway/"
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.gateway.drop()
        if self._runner is not None:
            await self._runner.cleanup()

    # what can be seen

    @property
    def violations(self) -> list[str]:
        return self.rest.violations

    @property
    def requests(self) -> list[Json]:
        return self.rest.requests

    @property
    def commands(self) -> list[Json]:
        """Application commands as registered by the bot."""
        return self.world.commands

    @property
    def bot_id(self) -> str:
        return str(self.world.bot["id"])

    def messages(self, channel_id: str, viewer: str | None = None) -> list[Json]:
        """The transcript of a channel as one person sees it; without `viewer` what everybody sees."""
        viewers = self.world.viewers
        return [post for post in self.world.posts[channel_id] if viewers.get(post["id"], viewer) == viewer]

    def said(self, channel_id: str, viewer: str | None = None) -> list[str]:
        """The texts that the bot shows in a channel."""
        return [p["content"] for p in self.messages(channel_id, viewer) if p["author"]["id"] == self.bot_id]

    def sent(self, method: str, part: str = "") -> list[Json]:
        """Logged requests by method and part of the path."""
        return [r for r in self.requests if r["method"] == method and part in r["path"]]

    async def wait_for(self, predicate: Callable[[], T], timeout_s: float = 8.0) -> T:
        """Waits until the predicate gives something true and returns it; raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while True:
                self._changed.clear()
                result = predicate()
                if result:
                    return result
                # the predicate may look at more than the double, so it is asked now and then without a change here
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 0.02)

    async def wait_connected(self) -> None:
        await self.wait_for(lambda: self.gateway.is_connected)

    def _notify(self) -> None:
        self._changed.set()

    # places and people

    def user(self, name: str, *, is_bot: bool = False) -> str:
        return str(self.world.add_user(name, is_bot=is_bot)["id"])

    def dm(self, *user_ids: str) -> str:
        """The direct channel of the bot with a person; with several people a group."""
        return str(self.world.add_direct(*user_ids)["id"])

    async def channel(self, name: str, *, is_forum: bool = False) -> str:
        channel = self.world.add_channel(name, FORUM if is_forum else TEXT)
        await self.gateway.dispatch("CHANNEL_CREATE", channel)
        return str(channel["id"])

    async def thread(
        self, parent_id: str, name: str, owner_id: str, *, is_private: bool = False, is_announced: bool = True
    ) -> str:
        """Opens a thread; `is_announced` False leaves it unknown to the gateway client."""
        thread = self.world.add_thread(parent_id, name, owner_id, is_private=is_private)
        if is_announced:
            await self.gateway.dispatch("THREAD_CREATE", {**thread, "newly_created": True})
        return str(thread["id"])

    def archive(self, thread_id: str, *, is_locked: bool = False) -> None:
        self.world.channels[thread_id]["thread_metadata"].update(archived=True, locked=is_locked)

    def block(self, channel_id: str) -> None:
        """The person of a direct channel takes no messages from the bot any more."""
        self.world.blocked.add(channel_id)

    def hide(self, channel_id: str) -> None:
        """The bot loses access to a channel."""
        self.world.hidden.add(channel_id)

    # what people do

    async def user_says(
        self,
        channel_id: str,
        text: str,
        user_id: str,
        *,
        reply_to: str | None = None,
        is_told: bool = True,
        **more: Any,
    ) -> str:
        """A person writes; returns the message id. `more` replaces fields of the payload (attachments, type,
        webhook_id); `is_told` False keeps the gateway silent about it."""
        if reply_to is not None:
            replied = self.world.post(channel_id, reply_to)
            more["type"] = 19
            more["message_reference"] = {"type": 0, "channel_id": channel_id, "message_id": reply_to}
            more["referenced_message"] = replied
        post = self.world.add_post(channel_id, user_id, text, **more)
        if is_told:
            await self.gateway.message("MESSAGE_CREATE", post)
        return str(post["id"])

    def mention(self) -> str:
        return f"<@{self.bot_id}>"

    async def edit(self, channel_id: str, message_id: str, text: str) -> None:
        post = self.world.post(channel_id, message_id)
        assert post is not None
        mentioned = [u for u in self.world.users.values() if f"<@{u['id']}>" in text]
        post.update(content=text, edited_timestamp=self.world.stamp(), mentions=mentioned)
        await self.gateway.message("MESSAGE_UPDATE", post)

    async def embed(self, channel_id: str, message_id: str) -> None:
        """Discord itself unfolds a link: an update without any edit."""
        post = self.world.post(channel_id, message_id)
        assert post is not None
        post["embeds"] = [{"type": "link", "url": "https://example.org"}]
        await self.gateway.message("MESSAGE_UPDATE", post)

    async def delete(self, channel_id: str, *message_ids: str) -> None:
        """One message, or several at once as a moderator clears a channel."""
        self.world.posts[channel_id] = [p for p in self.world.posts[channel_id] if p["id"] not in message_ids]
        channel = self.world.channels[channel_id]
        told: Json = {"channel_id": channel_id}
        if "guild_id" in channel:
            told["guild_id"] = channel["guild_id"]
        if len(message_ids) == 1:
            await self.gateway.dispatch("MESSAGE_DELETE", {**told, "id": message_ids[0]})
        else:
            await self.gateway.dispatch("MESSAGE_DELETE_BULK", {**told, "ids": list(message_ids)})

    async def slash(self, channel_id: str, user_id: str, name: str, **options: str) -> str:
        """A person calls an application command; returns the interaction's id. Refuses what the client would."""
        command = next((c for c in self.commands if c["name"] == name), None)
        assert command is not None, f"/{name} is not registered"
        known = {option["name"]: option for option in command.get("options") or []}
        assert set(options) <= set(known), f"/{name} has no option {set(options) - set(known)}"
        for option in known.values():
            assert not option.get("required") or option["name"] in options, f"/{name} needs {option['name']}"
            values = [choice["value"] for choice in option.get("choices") or []]
            assert not values or options.get(option["name"], values[0]) in values, f"not a choice of {option['name']}"
        data: Json = {
            "id": command["id"],
            "name": name,
            "type": 1,
            "options": [{"type": 3, "name": key, "value": value} for key, value in options.items()],
        }
        payload = self.interactions.open(2, channel_id, user_id, data)
        await self.gateway.dispatch("INTERACTION_CREATE", payload)
        return str(payload["id"])

    async def choose(self, channel_id: str, user_id: str, message_id: str, name: str) -> str:
        """A person chooses an entry in the menu of a message; returns the interaction's id."""
        command = next((c for c in self.commands if c["name"] == name and c["type"] == 3), None)
        assert command is not None, f"there is no entry {name!r}"
        post = self.world.post(channel_id, message_id)
        assert post is not None
        resolved = {"messages": {message_id: post}}
        data = {"id": command["id"], "name": name, "type": 3, "target_id": message_id, "resolved": resolved}
        payload = self.interactions.open(2, channel_id, user_id, data)
        await self.gateway.dispatch("INTERACTION_CREATE", payload)
        return str(payload["id"])

    async def press(self, channel_id: str, user_id: str, message_id: str, label: str) -> str:
        """A person presses the button with this label under a message; returns the interaction's id."""
        post = self.world.post(channel_id, message_id)
        assert post is not None
        buttons = [item for row in post["components"] for item in row["components"] if item["label"] == label]
        assert buttons, f"no button {label!r}"
        data = {"custom_id": buttons[0]["custom_id"], "component_type": 2, "id": buttons[0]["id"]}
        payload = self.interactions.open(3, channel_id, user_id, data, message=post)
        await self.gateway.dispatch("INTERACTION_CREATE", payload)
        return str(payload["id"])

    def answers(self, interaction_id: str) -> list[Json]:
        """Messages that an interaction has produced, the original first."""
        return self.interactions.answers(interaction_id)

    def lose(self, interaction_id: str) -> None:
        """The interaction's token dies before its time."""
        self.interactions.calls[interaction_id].is_lost = True

    async def malformed(self, event: str = "MESSAGE_CREATE", data: Any = None) -> None:
        """An event that breaks the client's parser."""
        await self.gateway.dispatch(event, {"channel_id": "1"} if data is None else data)
