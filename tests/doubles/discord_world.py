"""What exists in the double of Discord: users, one guild, channels, messages; and the payloads that describe them.

Holds payloads as the vendor writes them (plain JSON objects) and makes ids; never sends anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
TEXT, DIRECT, GROUP, FORUM, PUBLIC_THREAD, PRIVATE_THREAD = 0, 1, 3, 15, 11, 12
EPHEMERAL, LOADING = 64, 128
CONTENT_INTENT = 1 << 15


class DiscordWorld:
    """State of the double. `now` tells the time that goes into ids and stamps."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self.now = now or (lambda: datetime.now(UTC))
        self._count = 0
        self.users: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.posts: dict[str, list[Json]] = {}
        self.viewers: dict[str, str] = {}
        """Ephemeral messages by id: whose eyes they are for."""
        self.commands: list[Json] = []
        self.blocked: set[str] = set()
        """Direct channels whose person does not take messages from the bot."""
        self.hidden: set[str] = set()
        """Channels that the bot may not see."""
        self.bot = self.add_user("Mneme", is_bot=True)
        self.application_id = self.snowflake()
        self.guild_id = self.snowflake()
        self.is_content_allowed = True
        """Whether the message content intent is switched on in the developer portal."""

    def snowflake(self, at: datetime | None = None) -> str:
        """A new id that carries the time, like Discord's."""
        self._count += 1
        elapsed_ms = int((at or self.now()).timestamp() * 1000) - EPOCH_MS
        return str((elapsed_ms << 22) + self._count)

    def stamp(self) -> str:
        return self.now().isoformat()

    def add_user(self, name: str, *, is_bot: bool = False) -> Json:
        user: Json = {
            "id": self.snowflake(),
            "username": name.lower(),
            "global_name": name,
            "discriminator": "0",
            "avatar": None,
            "public_flags": 0,
            "flags": 0,
            "primary_guild": None,
        }
        if is_bot:
            user["bot"] = True
        self.users[user["id"]] = user
        return user

    def add_channel(self, name: str, kind: int = TEXT) -> Json:
        channel: Json = {
            "id": self.snowflake(),
            "type": kind,
            "guild_id": self.guild_id,
            "name": name,
            "position": len(self.channels),
            "flags": 0,
            "permission_overwrites": [],
            "parent_id": None,
            "nsfw": False,
        }
        return self._keep(channel)

    def add_direct(self, *user_ids: str) -> Json:
        """The direct channel with one person, or a group of several."""
        people = [self.users[user_id] for user_id in user_ids]
        if len(people) == 1:
            for channel in self.channels.values():
                if channel["type"] == DIRECT and channel["recipients"] == people:
                    return channel
            return self._keep({"id": self.snowflake(), "type": DIRECT, "flags": 0, "recipients": people})
        group: Json = {
            "id": self.snowflake(),
            "type": GROUP,
            "flags": 0,
            "recipients": people,
            "name": None,
            "icon": None,
            "owner_id": people[0]["id"],
        }
        return self._keep(group)

    def add_thread(self, parent_id: str, name: str, owner_id: str, *, is_private: bool = False) -> Json:
        thread: Json = {
            "id": self.snowflake(),
            "type": PRIVATE_THREAD if is_private else PUBLIC_THREAD,
            "guild_id": self.guild_id,
            "parent_id": parent_id,
            "owner_id": owner_id,
            "name": name,
            "flags": 0,
            "message_count": 0,
            "member_count": 1,
            "total_message_sent": 0,
            "thread_metadata": {
                "archived": False,
                "archive_timestamp": self.stamp(),
                "auto_archive_duration": 1440,
                "locked": False,
            },
        }
        return self._keep(thread)

    def _keep(self, channel: Json) -> Json:
        self.channels[channel["id"]] = channel
        self.posts[channel["id"]] = []
        return channel

    def member(self, user_id: str) -> Json:
        return {
            "user": self.users[user_id],
            "roles": [],
            "joined_at": "2026-01-01T00:00:00+00:00",
            "deaf": False,
            "mute": False,
            "flags": 0,
            "nick": None,
            "avatar": None,
            "permissions": "0",
        }

    def guild(self) -> Json:
        """The payload of GUILD_CREATE."""
        everyone = {
            "id": self.guild_id,
            "name": "@everyone",
            "color": 0,
            "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
            "hoist": False,
            "position": 0,
            "permissions": "2251799813685247",
            "managed": False,
            "mentionable": False,
            "flags": 0,
        }
        visible = [c for c in self.channels.values() if c.get("guild_id") and c["id"] not in self.hidden]
        return {
            "id": self.guild_id,
            "name": "Workshop",
            "owner_id": next(iter(self.users)),
            "member_count": len(self.users),
            "large": False,
            "unavailable": False,
            "roles": [everyone],
            "emojis": [],
            "stickers": [],
            "features": [],
            "channels": [c for c in visible if "thread_metadata" not in c],
            "threads": [c for c in visible if "thread_metadata" in c and not c["thread_metadata"]["archived"]],
            "members": [self.member(self.bot["id"])],
            "voice_states": [],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
        }

    def application(self) -> Json:
        # 1 << 19: message content for an application in fewer than 100 guilds
        flags = (1 << 19) if self.is_content_allowed else 0
        return {
            "id": self.application_id,
            "name": "Mneme",
            "icon": None,
            "description": "",
            "type": None,
            "verify_key": "0" * 64,
            "flags": flags,
            "flags_new": str(flags),
            "redirect_uris": [],
            "interactions_endpoint_url": None,
            "role_connections_verification_url": None,
            "owner": next(user for user in self.users.values()),
            "approximate_guild_count": 1,
            "approximate_user_install_count": 0,
            "approximate_user_authorization_count": 0,
            "explicit_content_filter": 0,
            "team": None,
            "eligible_oauth2_scopes": [],
            "bot_public": True,
            "bot_require_code_grant": False,
        }

    def add_post(self, channel_id: str, author_id: str, content: str, **more: Any) -> Json:
        """Writes a message down; `more` replaces fields of the payload."""
        mentioned = [self.users[i] for i in re.findall(r"<@!?([0-9]{1,20})>", content) if i in self.users]
        post: Json = {
            "id": self.snowflake(),
            "channel_id": channel_id,
            "type": 0,
            "author": self.users[author_id],
            "content": content,
            "timestamp": self.stamp(),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": list({user["id"]: user for user in mentioned}.values()),
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "components": [],
            "flags": 0,
            "pinned": False,
        }
        post.update(more)
        self.posts[channel_id].append(post)
        return post

    def post(self, channel_id: str, message_id: str) -> Json | None:
        return next((post for post in self.posts.get(channel_id, []) if post["id"] == message_id), None)

    def event(self, post: Json, intents: int) -> Json:
        """A message as the gateway tells it: without the content intent, what was not meant for the bot is blank."""
        data = dict(post)
        channel = self.channels[post["channel_id"]]
        if "guild_id" not in channel:
            return data
        data["guild_id"] = channel["guild_id"]
        if "webhook_id" not in post:
            data["member"] = {k: v for k, v in self.member(post["author"]["id"]).items() if k != "user"}
        is_meant = post["author"]["id"] == self.bot["id"] or any(
            user["id"] == self.bot["id"] for user in post["mentions"]
        )
        if not is_meant and not intents & CONTENT_INTENT:
            data.update(content="", embeds=[], attachments=[], components=[])
        return data

    def components(self, asked: list[Json] | None) -> list[Json]:
        """Components of a request as an answer shows them: everything has a number."""
        numbered: list[Json] = []
        count = 0
        for row in asked or []:
            count += 1
            shown = {**row, "id": count, "components": []}
            for item in row.get("components", []):
                count += 1
                shown["components"].append({**item, "id": count})
            numbered.append(shown)
        return numbered
