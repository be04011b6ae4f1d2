"""Use Honcho, in its cloud or on your own server (3.0 or later).

The namespace is a workspace, and each scope is a peer in the workspace. A conversation is a
session, from which the server's own model later draws conclusions. A note is a conclusion in its
own session.

Honcho can't delete single messages. But it can delete a session together with everything concluded
from it. So to erase a message, Mneme copies the other messages of the session to a new session and
deletes the old session. Mneme chooses all ids, so a repeated request doesn't create anything twice.
The id of a deleted session can't be used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, zip_longest
from typing import Any

from pydantic import Field

from core.errors import DeliveryError, Sentence, ToolError
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.http import SEARCH, objects, segment, text_of
from core.memory.service import (
    PROMPT_PACKAGE,
    QUERY_CHARS,
    Entry,
    Question,
    ReflectionOptions,
    RemoteMemory,
    ServerOptions,
    ServerService,
    SyncItem,
    call_together,
    clean,
    setup_option,
)
from core.types import Effect, Json, Tool, ToolContext

CLOUD = "https://api.honcho.dev"
LEVELS = ("minimal", "low", "medium", "high", "max")
# The key of this metadata field of sessions and messages. In a session, the value is its
# conversation; in a message, it is the key of its item.
KEY = "mneme"
# The metadata field of a message for its number among the messages of its item.
PART = "part"
# The fields that are copied when a message is copied to another session.
FIELDS = ("peer_id", "content", "metadata", "created_at")
MESSAGE_CHARS = 20_000
# How many messages one request may add.
BATCH = 100
MAX_RESULTS = 100
PAGE_SIZE = 100
MAX_PAGES = 100


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, ReflectionOptions):
    url: str = setup_option(
        CLOUD, "the cloud, or the address of your server, like http://127.0.0.1:8000"
    )
    reasoning_level: str = field(
        default="low", metadata={"help": f"how thoroughly it reasons: {', '.join(LEVELS)}"}
    )


class _Reasoning(Question):
    reasoning_level: str = ""


class _Context(ToolArguments):
    query: str = Field(default="", max_length=QUERY_CHARS)


class _Conclude(ToolArguments):
    conclusion: str = Field(default="", max_length=2_000)
    delete_id: str = ""


class Honcho(ServerService):
    name = "honcho"
    options = Options
    cloud = CLOUD
    search_tool = "honcho_search"

    def __init__(self, options: Options) -> None:
        """Check the reasoning level. Raises ConfigError if the level is invalid."""
        super().__init__(options)
        self._level = options.reasoning_level
        self._check_choice("reasoning_level", options.reasoning_level, LEVELS)
        # The spaces with existing peers.
        self._created_peers: set[str] = set()
        # Acquired while a session is copied or extended, so that no message is added to an old
        # copy.
        self._session_lock = asyncio.Lock()

    async def probe(self) -> Sentence:
        """Create our workspace if necessary, and return the version of the server.

        Raises DeliveryError if the server isn't Honcho.
        """
        answer = await self._http.call(
            "POST", "/v3/workspaces", {"id": self._namespace}, call_timeout=SEARCH
        )
        if text_of(answer, "id") != self._namespace:
            raise DeliveryError("service_is_other", name=self.name)
        schema = await self._http.call("GET", "/openapi.json", call_timeout=SEARCH, missing=None)
        version = text_of(schema.get("info"), "version") if isinstance(schema, dict) else ""
        return Sentence("probe_honcho", {"version": version or "3", "place": self.location})

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Search conclusions and messages, and return both kinds alternately.

        A search finds new messages at once, but conclusions only some time later. A text that is
        both a conclusion and a message is returned once.
        """
        call_options: Any = {"call_timeout": SEARCH, "is_repeatable": True, "missing": []}
        top_k = min(limit, MAX_RESULTS)
        conclusion_query = {"query": query, "top_k": top_k, "filters": _self_observation(space)}
        message_query = {"query": query, "filters": {"peer_id": space}, "limit": top_k}
        answers = await call_together(
            self._call("POST", "conclusions", "query", body=conclusion_query, **call_options),
            self._call("POST", "peers", space, "search", body=message_query, **call_options),
        )
        conclusions = [
            result for result in objects(answers[0]) if text_of(result, "observed_id") == space
        ]
        messages = [result for result in objects(answers[1]) if text_of(result, "peer_id") == space]

        memories: dict[str, RemoteMemory] = {}
        for result in chain(*zip_longest(conclusions, messages)):
            if result is None:
                continue
            text = text_of(result, "content")
            if text and text not in memories:
                memories[text] = RemoteMemory(
                    id=text_of(result, "id"), text=text, at=text_of(result, "created_at")
                )
        return list(memories.values())[:limit]

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Add a turn to the session of its conversation, or store a note as a conclusion.

        Returns the name of the conversation, which is needed to find the item later.
        """
        conversation = item.session or item.key
        async with self._session_lock:
            if item.is_retry and await self._has_item(space, conversation, item.key):
                return [conversation]
            session = await self._ensure_session(space, conversation, item.key)
            if item.kind == "turn":
                await self._add_messages(session, _messages_of(space, item))
            else:
                conclusion = {
                    "content": item.text,
                    **_self_observation(space),
                    "session_id": session,
                }
                await self._call("POST", "conclusions", body={"conclusions": [conclusion]})
        return [conversation]

    async def erase(self, entry: Entry) -> None:
        if await self.holds(entry):
            await self._remove_items(entry.space, _conversation_of(entry), {entry.key})

    async def holds(self, entry: Entry) -> bool:
        return await self._has_item(entry.space, _conversation_of(entry), entry.key)

    async def _erase(self, entries: Sequence[Entry]) -> None:
        """Erase the entries of each conversation together, so that its session is copied once."""
        conversations: dict[tuple[str, str], set[str]] = {}
        for entry in entries:
            key = (entry.space, _conversation_of(entry))
            conversations.setdefault(key, set()).add(entry.key)
        for (space, conversation), keys in conversations.items():
            if len(keys) > 1:
                await self._remove_items(space, conversation, keys)
        await super()._erase(entries)

    async def tools(self) -> Sequence[Tool]:
        build = partial(build_tool, package=PROMPT_PACKAGE)
        return [
            *await super().tools(),
            build("honcho_reasoning", _Reasoning, self._run_reasoning, effects=Effect.READ),
            build("honcho_profile", ToolArguments, self._run_profile, effects=Effect.READ),
            build("honcho_context", _Context, self._run_context, effects=Effect.READ),
            build("honcho_conclude", _Conclude, self._run_conclude, effects=Effect.ADD),
        ]

    async def _run_reasoning(self, arguments: _Reasoning, context: ToolContext) -> str:
        level = arguments.reasoning_level or self._level
        if level not in LEVELS:
            raise ToolError(f"reasoning_level: one of {', '.join(LEVELS)}.")
        return await self.ask_spaces(context, self.ask, clean(arguments.query), level)

    async def _run_profile(self, _: ToolArguments, context: ToolContext) -> str:
        return await self.ask_spaces(context, self._load_card)

    async def _run_context(self, arguments: _Context, context: ToolContext) -> str:
        return await self.ask_spaces(context, self._load_context, clean(arguments.query))

    async def _run_conclude(self, arguments: _Conclude, context: ToolContext) -> str:
        """Add a conclusion, or delete one by its id.

        Raises ToolError if the call has both a text and an id, or neither.
        """
        if bool(arguments.conclusion.strip()) == bool(arguments.delete_id):
            raise ToolError("Give either conclusion or delete_id.")
        if not arguments.delete_id:
            await self.add(arguments.conclusion, context)
            return "Saved."
        await self.change(arguments.delete_id, context, self.take_out)
        return "honcho has deleted it."

    async def take_out(self, space: str, memory_id: str) -> bool:
        """Delete a conclusion.

        Returns False for any other id, because messages can't be deleted.
        """
        ids = [text_of(conclusion, "id") for conclusion in await self._list_conclusions(space)]
        if memory_id not in ids:
            return False
        await self._call("DELETE", "conclusions", memory_id, missing=None)
        return True

    async def ask(self, space: str, query: str, level: str = "") -> str:
        request = {"query": query, "stream": False, "reasoning_level": level or self._level}
        answer = await self._call(
            "POST", "peers", space, "chat", body=request, is_repeatable=True, missing=None
        )
        return text_of(answer, "content")

    async def _load_card(self, space: str) -> str:
        """Return the peer card: the most important facts about the person."""
        return _read_card(await self._call("GET", "peers", space, "card", missing=None))

    async def _load_context(self, space: str, query: str) -> str:
        """Return the conclusions about the person, relevant ones first, and the peer card."""
        answer = await self._call(
            "GET",
            "peers",
            space,
            "context",
            params={"search_query": query} if query else None,
            call_timeout=SEARCH,
            missing=None,
        )
        parts = (text_of(answer, "representation"), _read_card(answer))
        return "\n\n".join(filter(None, parts))

    async def _ensure_session(self, space: str, conversation: str, key: str) -> str:
        """Return the active session of a conversation, or create one with the id `key`."""
        sessions = await self._list_sessions(space, conversation)
        active_ids = [text_of(session, "id") for session in sessions if _is_active(session)]
        if active_ids:
            return active_ids[-1]
        return await self._create_session(space, conversation, key)

    async def _create_session(self, space: str, conversation: str, session_id: str) -> str:
        """Create a session and its peers unless they exist."""
        peers = {space: {"observe_me": True}, _assistant_of(space): {"observe_me": False}}
        if space not in self._created_peers:
            await self._http.call(
                "POST", "/v3/workspaces", {"id": self._namespace}, is_repeatable=True
            )
            for peer in peers:
                await self._call("POST", "peers", body={"id": peer}, is_repeatable=True)
            self._created_peers.add(space)
        request = {"id": session_id, "metadata": {KEY: conversation}, "peers": peers}
        await self._call("POST", "sessions", body=request, is_repeatable=True)
        return session_id

    async def _add_messages(self, session_id: str, messages: Sequence[Json]) -> None:
        for start in range(0, len(messages), BATCH):
            request = {"messages": messages[start : start + BATCH]}
            await self._call("POST", "sessions", session_id, "messages", body=request)

    async def _has_item(self, space: str, conversation: str, key: str) -> bool:
        """Return whether the server still has a conclusion or message that belongs to an item.

        While a session is being deleted, its conclusions and messages still count.
        """
        for session in await self._list_sessions(space, conversation):
            session_id = text_of(session, "id")
            if _key_of(session) == key:
                for conclusion in await self._list_conclusions(space):
                    if text_of(conclusion, "session_id") == session_id:
                        return True
            messages = await self._list_messages(session_id, {"metadata": {KEY: key}})
            if any(_key_of(message) == key for message in messages):
                return True
        return False

    async def _remove_items(self, space: str, conversation: str, keys: Collection[str]) -> None:
        """Replace each active session of a conversation that contains any of the items."""
        async with self._session_lock:
            for session in await self._list_sessions(space, conversation):
                if not _is_active(session):
                    continue
                messages = await self._list_messages(text_of(session, "id"))
                remaining = [message for message in messages if _key_of(message) not in keys]
                if len(remaining) < len(messages) or _key_of(session) in keys:
                    await self._replace_session(space, session, remaining, keys)

    async def _replace_session(
        self, space: str, session: Json, remaining: Sequence[Json], keys: Collection[str]
    ) -> None:
        """Copy the remaining messages to a new session, and delete the old session.

        The method can be repeated after a crash: the id of the new session is derived from `keys`,
        and only missing messages are added to the session.
        """
        session_id = text_of(session, "id")
        if remaining:
            copy_id = await self._create_session(
                space, _key_of(session), self.record.derive_name(session_id, *sorted(keys))
            )
            copied_metadata = [
                message.get("metadata") for message in await self._list_messages(copy_id)
            ]
            missing = [
                message for message in remaining if message.get("metadata") not in copied_metadata
            ]
            copies = [{name: message.get(name) for name in FIELDS} for message in missing]
            await self._add_messages(copy_id, copies)

        conclusions = await self._list_conclusions(space)
        for conclusion_id in _derived_conclusions(session_id, conclusions):
            await self._call("DELETE", "conclusions", conclusion_id, missing=None)
        await self._call("DELETE", "sessions", session_id, missing=None)
        if await self._load_card(space):
            # The card may contain facts from the erased messages. An empty card makes the server
            # derive the card again from the remaining messages.
            await self._call("PUT", "peers", space, "card", body={"peer_card": []})

    async def _list_sessions(self, space: str, conversation: str) -> list[Json]:
        """Return the sessions of a conversation.

        If `conversation` is empty because it's unknown, all sessions of the space are returned.
        """
        if not conversation:
            sessions = await self._list_all("peers", space, "sessions")
            return [session for session in sessions if _key_of(session)]
        sessions = await self._list_all(
            "sessions", "list", filters={"metadata": {KEY: conversation}}
        )
        return [session for session in sessions if _key_of(session) == conversation]

    async def _list_messages(self, session_id: str, filters: Json | None = None) -> list[Json]:
        return await self._list_all("sessions", session_id, "messages", "list", filters=filters)

    async def _list_conclusions(self, space: str) -> list[Json]:
        conclusions = await self._list_all("conclusions", "list", filters=_self_observation(space))
        return [item for item in conclusions if text_of(item, "observed_id") == space]

    async def _list_all(self, *path: str, filters: Json | None = None) -> list[Json]:
        """Return the items on all pages of a list."""
        items: list[Json] = []
        for page in range(1, MAX_PAGES + 1):
            answer = await self._call(
                "POST",
                *path,
                body={"filters": filters} if filters else None,
                params={"page": page, "size": PAGE_SIZE},
                is_repeatable=True,
                missing={"items": []},
            )
            items += objects(answer, "items")
            pages = answer.get("pages")
            if not isinstance(pages, int) or page >= pages:
                break
        return items

    async def _call(self, method: str, *path: str, body: object = None, **options: Any) -> Any:
        """Call the server with a path below our workspace, and return its answer."""
        full_path = "/".join(("/v3/workspaces", self._namespace, *map(segment, path)))
        return await self._http.call(method, full_path, body, **options)


def _assistant_of(space: str) -> str:
    return f"{space}-assistant"


def _self_observation(space: str) -> Json:
    """Return the fields of conclusions that the server draws about a peer from their own words."""
    return {"observer_id": space, "observed_id": space}


def _conversation_of(entry: Entry) -> str:
    """Return the conversation of an entry, or an empty string if it's unknown."""
    return entry.remote[0] if entry.remote else ""


def _messages_of(space: str, item: SyncItem) -> list[Json]:
    """Return the lines of an item as messages. A long line becomes several messages."""
    messages: list[Json] = []
    for role, text in item.lines:
        peer = space if role == "user" else _assistant_of(space)
        for start in range(0, len(text), MESSAGE_CHARS):
            message = {
                "peer_id": peer,
                "content": text[start : start + MESSAGE_CHARS],
                "metadata": {KEY: item.key, PART: len(messages)},
                "created_at": item.at.isoformat(),
            }
            messages.append(message)
    return messages


def _key_of(record: Json) -> str:
    """Return the key that Mneme stored in the metadata of a session or message."""
    return text_of(record.get("metadata"), KEY)


def _is_active(session: Json) -> bool:
    """Return False if the session is being deleted. Deleting a session takes a while."""
    return session.get("is_active") is not False


def _read_card(answer: Any) -> str:
    card = answer.get("peer_card") if isinstance(answer, dict) else None
    if not isinstance(card, list):
        return ""
    return "\n".join(line for line in card if isinstance(line, str))


def _derived_conclusions(session_id: str, conclusions: Sequence[Json]) -> Sequence[str]:
    """Return the ids of a session's conclusions, and of all conclusions derived from them.

    The `source_ids` of a derived conclusion are the conclusions that it was derived from.
    """
    derived_ids: dict[str, None] = {}
    for conclusion in conclusions:
        if text_of(conclusion, "session_id") == session_id:
            derived_ids[text_of(conclusion, "id")] = None
    # Each pass may add conclusions that were derived from those found in the previous pass.
    size_before = -1
    while len(derived_ids) > size_before:
        size_before = len(derived_ids)
        for conclusion in conclusions:
            sources = conclusion.get("source_ids")
            if isinstance(sources, list) and not derived_ids.keys().isdisjoint(map(str, sources)):
                derived_ids[text_of(conclusion, "id")] = None
    return list(derived_ids)
