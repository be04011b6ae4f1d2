"""Honcho: its cloud, or a server of one's own (3.0 or later). The namespace is a workspace, and a scope a peer in it.

A conversation is a session, out of which the server's own model draws conclusions some time later; a note is a
conclusion in a session of its own. Single messages cannot be deleted, sessions can, with all that was concluded in
them: what is forgotten goes with its session, and what is left of that is told anew in another one. Ids are ours to
choose, and what is created twice is there once, but a session that was deleted never comes back under its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from pydantic import Field

from core.errors import ConfigError, DeliveryError, ToolError
from core.guard.guard import Arguments, tool_of
from core.memory.http import SEARCH, objects, segment, text_of
from core.memory.service import (
    PROMPTS,
    QUERY_CHARS,
    AskedOptions,
    Entry,
    Found,
    Question,
    ServerOptions,
    ServerService,
    Told,
    clean,
)
from core.types import Json, Tool, ToolContext

CLOUD = "https://api.honcho.dev"
LEVELS = ("minimal", "low", "medium", "high", "max")
KEY, PART = "mneme", "part"
"""In the metadata of a session: its conversation; of a message: what was told, and which part of it this is."""
FIELDS = ("peer_id", "content", "metadata", "created_at")
MESSAGE_CHARS = 20_000
BATCH = 100
PAGE, PAGES = 100, 100


@dataclass(frozen=True, kw_only=True)
class Options(ServerOptions, AskedOptions):
    url: str = field(
        default=CLOUD, metadata={"help": "the cloud, or where your server listens: http://127.0.0.1:8000", "ask": True}
    )
    reasoning_level: str = field(default="low", metadata={"help": f"how hard it reasons: {', '.join(LEVELS)}"})


class _Reasoning(Question):
    reasoning_level: str = ""


class _Context(Arguments):
    query: str = Field(default="", max_length=QUERY_CHARS)


class _Conclude(Arguments):
    conclusion: str = Field(default="", max_length=2_000)
    delete_id: str = ""


class Honcho(ServerService):
    name = "honcho"
    options = Options
    cloud = CLOUD
    search_tool = "honcho_search"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._level = options.reasoning_level
        if options.reasoning_level not in LEVELS:
            raise ConfigError(f"reasoning_level should be one of {', '.join(LEVELS)}.")
        self._made: set[str] = set()
        """Peers that there are."""
        self._changing = asyncio.Lock()
        """While a session is told anew nothing is added to it."""

    async def probe(self) -> str:
        answer = await self._http.call("POST", "/v3/workspaces", {"id": self._namespace}, patience=SEARCH)
        if text_of(answer, "id") != self._namespace:
            raise DeliveryError("what answers at the url of honcho does not know workspaces")
        described = await self._http.call("GET", "/openapi.json", patience=SEARCH, missing=None)
        version = text_of(described.get("info"), "version") if isinstance(described, dict) else ""
        return f"honcho {version or '3'}, {self.where}; search, conclusions, reasoning"

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        """What was concluded and what was said in turn: the first comes late, the second at once."""
        pair = {"query": query, "top_k": min(limit, 100), "filters": _of(space)}
        said = {"query": query, "filters": {"peer_id": space}, "limit": min(limit, 100)}
        how: Any = {"patience": SEARCH, "is_repeatable": True, "missing": []}
        answers = await asyncio.gather(
            self._call("POST", "conclusions", "query", body=pair, **how),
            self._call("POST", "peers", space, "search", body=said, **how),
        )
        concluded = [one for one in objects(answers[0]) if text_of(one, "observed_id") == space]
        messages = [one for one in objects(answers[1]) if text_of(one, "peer_id") == space]
        in_turn = [one for one in chain(*zip_longest(concluded, messages)) if one is not None]
        # What was said may be concluded in the same words.
        by_text = {text_of(one, "content"): one for one in reversed(in_turn)}
        return [
            Found(id=text_of(one, "id"), text=text, at=text_of(one, "created_at"))
            for one in in_turn
            if (text := text_of(one, "content")) and by_text[text] is one
        ][:limit]

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        conversation = told.session or told.key
        async with self._changing:
            if not (told.is_again and await self._is_there(space, conversation, told.key)):
                session = await self._session(space, conversation, told.key)
                if told.kind == "turn":
                    await self._post(session, _messages_of(space, told))
                else:
                    concluded = {"content": told.text, **_of(space), "session_id": session}
                    await self._call("POST", "conclusions", body={"conclusions": [concluded]})
        return [conversation]

    async def erase(self, entry: Entry) -> None:
        if await self.holds(entry):
            await self._leave_out(entry.space, _conversation(entry), {entry.key})

    async def holds(self, entry: Entry) -> bool:
        return await self._is_there(entry.space, _conversation(entry), entry.key)

    async def _erase(self, entries: Sequence[Entry]) -> None:
        """Of each conversation all at once, since what is left of it is told anew."""
        conversations: dict[tuple[str, str], set[str]] = {}
        for entry in entries:
            conversations.setdefault((entry.space, _conversation(entry)), set()).add(entry.key)
        for (space, conversation), keys in conversations.items():
            if len(keys) > 1:
                await self._leave_out(space, conversation, keys)
        await super()._erase(entries)

    async def tools(self) -> Sequence[Tool]:
        return [
            *await super().tools(),
            tool_of("honcho_reasoning", _Reasoning, self._reason, PROMPTS),
            tool_of("honcho_profile", Arguments, self._profile, PROMPTS),
            tool_of("honcho_context", _Context, self._context, PROMPTS),
            tool_of("honcho_conclude", _Conclude, self._conclude, PROMPTS),
        ]

    async def _reason(self, asked: _Reasoning, context: ToolContext) -> str:
        level = asked.reasoning_level or self._level
        if level not in LEVELS:
            raise ToolError(f"reasoning_level: one of {', '.join(LEVELS)}.")
        return await self.said(context, self.ask, clean(asked.query), level)

    async def _profile(self, asked: Arguments, context: ToolContext) -> str:
        return await self.said(context, self._card)

    async def _context(self, asked: _Context, context: ToolContext) -> str:
        return await self.said(context, self._known, clean(asked.query))

    async def _conclude(self, asked: _Conclude, context: ToolContext) -> str:
        if bool(asked.conclusion.strip()) == bool(asked.delete_id):
            raise ToolError("Give either conclusion or delete_id.")
        if not asked.delete_id:
            await self.add(asked.conclusion, context)
            return "It is kept."
        await self.change(asked.delete_id, context, self.take_out)
        return "honcho has taken it out."

    async def take_out(self, space: str, memory_id: str) -> bool:
        """A conclusion: what was said cannot be."""
        is_there = memory_id in [text_of(one, "id") for one in await self._conclusions(space)]
        if is_there:
            await self._call("DELETE", "conclusions", memory_id, missing=None)
        return is_there

    async def ask(self, space: str, query: str, level: str = "") -> str:
        body = {"query": query, "stream": False, "reasoning_level": level or self._level}
        answer = await self._call("POST", "peers", space, "chat", body=body, is_repeatable=True, missing=None)
        return text_of(answer, "content")

    async def _card(self, space: str) -> str:
        return _card_of(await self._call("GET", "peers", space, "card", missing=None))

    async def _known(self, space: str, query: str) -> str:
        params = {"search_query": query} if query else None
        answer = await self._call("GET", "peers", space, "context", params=params, patience=SEARCH, missing=None)
        return "\n\n".join(filter(None, (text_of(answer, "representation"), _card_of(answer))))

    async def _session(self, space: str, conversation: str, key: str) -> str:
        """The one in which the conversation goes on; a new one is named by what is told first."""
        going = [text_of(one, "id") for one in await self._sessions(space, conversation) if _is_active(one)]
        return going[-1] if going else await self._open(space, conversation, key)

    async def _open(self, space: str, conversation: str, session: str) -> str:
        """Whether it is there already, or not."""
        peers = {space: {"observe_me": True}, _assistant(space): {"observe_me": False}}
        if space not in self._made:
            await self._http.call("POST", "/v3/workspaces", {"id": self._namespace}, is_repeatable=True)
            for peer in peers:
                await self._call("POST", "peers", body={"id": peer}, is_repeatable=True)
            self._made.add(space)
        body = {"id": session, "metadata": {KEY: conversation}, "peers": peers}
        await self._call("POST", "sessions", body=body, is_repeatable=True)
        return session

    async def _post(self, session: str, messages: Sequence[Json]) -> None:
        for start in range(0, len(messages), BATCH):
            await self._call(
                "POST", "sessions", session, "messages", body={"messages": messages[start : start + BATCH]}
            )

    async def _is_there(self, space: str, conversation: str, key: str) -> bool:
        """Also what is being deleted and not gone yet."""
        for session in await self._sessions(space, conversation):
            name = text_of(session, "id")
            if _key(session) == key and any(
                text_of(one, "session_id") == name for one in await self._conclusions(space)
            ):
                return True
            if any(_key(one) == key for one in await self._messages(name, {"metadata": {KEY: key}})):
                return True
        return False

    async def _leave_out(self, space: str, conversation: str, keys: Collection[str]) -> None:
        async with self._changing:
            for session in filter(_is_active, await self._sessions(space, conversation)):
                name = text_of(session, "id")
                messages = await self._messages(name)
                rest = [one for one in messages if _key(one) not in keys]
                if len(rest) < len(messages) or _key(session) in keys:
                    await self._replace(space, _key(session), name, rest, keys)

    async def _replace(
        self, space: str, conversation: str, session: str, rest: Sequence[Json], keys: Collection[str]
    ) -> None:
        """A session by one with the rest of its messages; a crash in between leaves nothing out and nothing twice."""
        if rest:
            copy = await self._open(space, conversation, self.record.name(session, *sorted(keys)))
            there = [one.get("metadata") for one in await self._messages(copy)]
            left = [one for one in rest if one.get("metadata") not in there]
            await self._post(copy, [{name: one.get(name) for name in FIELDS} for one in left])
        for gone in _concluded_from(session, await self._conclusions(space)):
            await self._call("DELETE", "conclusions", gone, missing=None)
        await self._call("DELETE", "sessions", session, missing=None)
        if await self._card(space):
            # It is made of all, and is made again of what is left.
            await self._call("PUT", "peers", space, "card", body={"peer_card": []})

    async def _sessions(self, space: str, conversation: str) -> list[Json]:
        """Those of a conversation, or of everything that the scope has said."""
        if not conversation:
            return [one for one in await self._all("peers", space, "sessions") if _key(one)]
        found = await self._all("sessions", "list", filters={"metadata": {KEY: conversation}})
        return [one for one in found if _key(one) == conversation]

    async def _messages(self, session: str, filters: Json | None = None) -> list[Json]:
        return await self._all("sessions", session, "messages", "list", filters=filters)

    async def _conclusions(self, space: str) -> list[Json]:
        found = await self._all("conclusions", "list", filters=_of(space))
        return [one for one in found if text_of(one, "observed_id") == space]

    async def _all(self, *path: str, filters: Json | None = None) -> list[Json]:
        found: list[Json] = []
        for page in range(1, PAGES + 1):
            how: Any = {"params": {"page": page, "size": PAGE}, "is_repeatable": True, "missing": {"items": []}}
            answer = await self._call("POST", *path, body={"filters": filters} if filters else None, **how)
            found += objects(answer, "items")
            pages = answer.get("pages")
            if not isinstance(pages, int) or page >= pages:
                break
        return found

    async def _call(self, method: str, *path: str, body: object = None, **how: Any) -> Any:
        where = "/".join(("/v3/workspaces", self._namespace, *map(segment, path)))
        return await self._http.call(method, where, body, **how)


def _assistant(space: str) -> str:
    return f"{space}-assistant"


def _of(space: str) -> Json:
    """What is concluded of a peer, by itself."""
    return {"observer_id": space, "observed_id": space}


def _conversation(entry: Entry) -> str:
    """Empty where it is not known."""
    return next(iter(entry.remote or ()), "")


def _messages_of(space: str, told: Told) -> list[Json]:
    parts = [
        (space if role == "user" else _assistant(space), text[start : start + MESSAGE_CHARS])
        for role, text in told.lines
        for start in range(0, len(text), MESSAGE_CHARS)
    ]
    return [
        {"peer_id": peer, "content": text, "metadata": {KEY: told.key, PART: part}, "created_at": told.at.isoformat()}
        for part, (peer, text) in enumerate(parts)
    ]


def _key(thing: Json) -> str:
    return text_of(thing.get("metadata"), KEY)


def _is_active(session: Json) -> bool:
    """Not being deleted, which takes a while."""
    return session.get("is_active") is not False


def _card_of(answer: Any) -> str:
    card = answer.get("peer_card") if isinstance(answer, dict) else None
    return "\n".join(line for line in card if isinstance(line, str)) if isinstance(card, list) else ""


def _concluded_from(session: str, conclusions: Sequence[Json]) -> Sequence[str]:
    """Those of a session, and what was concluded from them and from that."""
    gone = {text_of(one, "id"): None for one in conclusions if text_of(one, "session_id") == session}
    before = -1
    while len(gone) > before:
        before = len(gone)
        for one in conclusions:
            sources = one.get("source_ids")
            if isinstance(sources, list) and not gone.keys().isdisjoint(map(str, sources)):
                gone[text_of(one, "id")] = None
    return [*gone]
