"""OpenViking: a server of one's own, or the vendor's cloud. A scope is a user there, a turn a file among the memories.

A file is named by the key of what it holds, so what arrives twice is there once. A server in the mode `dev` shows each
user what all have told it: there only the first scope that uses it is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from config.files import Secret
from core.errors import ConfigError, DeliveryError, Refused, ToolError
from core.guard.guard import Arguments, service_text, tool_of
from core.memory.http import SEARCH, JsonService, Patience, number_of, objects, segment, text_of
from core.memory.service import PROMPTS, Entry, Found, RemoteService, ServiceOptions, Told
from core.types import Tool, ToolContext

MEMORIES = "viking://~/memories"
FOLDER = f"{MEMORIES}/events"
NOTHING: Any = {"status": "ok", "result": None}
FULL_READS = 3
"""So many of the best are read in full; of others there is what the search shows."""


@dataclass(frozen=True, kw_only=True)
class Options(ServiceOptions):
    url: str = field(default="http://127.0.0.1:1933", metadata={"help": "where your server listens", "ask": True})
    key: Secret = field(default=Secret(""), metadata={"help": "its root key; none in the mode dev", "ask": True})
    account: str = field(default="mneme", metadata={"help": "the account there in which each scope is a user"})
    score_threshold: float = field(default=0.15, metadata={"help": "what is less alike than this is not recalled"})


class _Uri(Arguments):
    uri: str


class OpenViking(RemoteService):
    name = "openviking"
    options = Options
    search_tool, add_tool = "viking_search", "viking_remember"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._options = options
        try:
            segment(options.account)
        except DeliveryError as error:
            raise ConfigError("account of openviking should be a name of letters and digits.") from error
        key = options.key.value
        self._http = JsonService(self.name, options.url, {"X-API-Key": key} if key else {})
        self._is_apart: bool | None = None
        self._only = ""
        """In the mode dev: the space of the one scope that is served."""

    async def shutdown(self) -> None:
        await self._http.close()

    async def probe(self) -> str:
        about = await self._http.call("GET", "/health", patience=SEARCH)
        version, mode = text_of(about, "version"), text_of(about, "auth_mode")
        if not version:
            raise DeliveryError("what answers at the url of openviking does not say its version")
        self._is_apart = mode not in ("", "dev")
        # Its health is told without a key.
        await self._call("GET", "/api/v1/fs/stat", f"{self._namespace}-nobody", uri=MEMORIES)
        apart = "" if self._is_apart else "; it keeps nobody apart, so it serves one person only: use auth_mode trusted"
        return f"openviking {version}, a server at {self._http.url.host}, auth_mode {mode or 'unknown'}{apart}"

    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        if not await self._is_served(space, SEARCH):
            return []
        asked = {"query": query, "limit": limit, "target_uri": MEMORIES}
        body = {**asked, "score_threshold": self._options.score_threshold}
        found: list[Found] = []
        result = await self._call("POST", "/api/v1/search/find", space, body, patience=SEARCH)
        for one in objects(result or {"memories": []}, "memories")[:limit]:
            uri, text = text_of(one, "uri"), text_of(one, "abstract")
            if uri.endswith(".md") and (len(found) < FULL_READS or not text):
                text = await self._text(space, uri, SEARCH) or text
            if text:
                found.append(Found(id=uri, text=text, score=number_of(one, "score")))
        return found

    async def keep(self, space: str, told: Told) -> Sequence[str]:
        if not await self._is_served(space):
            raise Refused("openviking runs in the mode dev, which keeps nobody apart; set its auth_mode to trusted")
        uri = self._uri(told.key)
        if told.is_again and await self._stat(space, uri):
            return [uri]
        body = {"uri": uri, "content": told.text, "mode": "create", "wait": True}
        await self._call("POST", "/api/v1/content/write", space, body)
        return [uri]

    async def erase(self, entry: Entry) -> None:
        for uri in dict.fromkeys([self._uri(entry.key), *(entry.remote or ())]):
            await self.take_out(entry.space, uri)

    async def holds(self, entry: Entry) -> bool:
        return await self._stat(entry.space, self._uri(entry.key))

    async def tools(self) -> Sequence[Tool]:
        read = tool_of("viking_read", _Uri, self._read, PROMPTS)
        return [*await super().tools(), read, tool_of("viking_forget", _Uri, self._forget, PROMPTS)]

    async def _read(self, asked: _Uri, context: ToolContext) -> str:
        for scope in sorted(context.scopes):
            if text := await self._text(self.space(scope), self._own(asked.uri)):
                return service_text(self.name, text) or "It says nothing that may be shown."
        raise ToolError("There is nothing at this address; viking_search shows what there is.")

    async def _forget(self, asked: _Uri, context: ToolContext) -> str:
        await self.change(self._own(asked.uri), context, self.take_out)
        return "openviking has taken it out."

    async def take_out(self, space: str, memory_id: str) -> bool:
        is_there = await self._stat(space, memory_id)
        if is_there:
            await self._call("DELETE", "/api/v1/fs", space, uri=memory_id, recursive="false")
        return is_there

    @staticmethod
    def _own(uri: str) -> str:
        """The address of a file of whoever asks: it begins with what stands for them."""
        uri = uri.strip().removeprefix("openviking:")
        if not uri.startswith("viking://") or ".." in uri or not uri.endswith(".md"):
            raise ToolError("uri: write it as viking_search shows it.")
        return uri

    async def _text(self, space: str, uri: str, patience: Patience | None = None) -> str:
        if not await self._is_served(space, patience):
            return ""
        result = await self._call("GET", "/api/v1/content/read", space, patience=patience, uri=uri)
        return result if isinstance(result, str) else text_of(result, "content", "text")

    async def _stat(self, space: str, uri: str) -> bool:
        return await self._is_served(space) and await self._call("GET", "/api/v1/fs/stat", space, uri=uri) is not None

    async def _is_served(self, space: str, patience: Patience | None = None) -> bool:
        """Whether what this space is told stays its own."""
        if self._is_apart is None:
            about = await self._http.call("GET", "/health", patience=patience)
            self._is_apart = text_of(about, "auth_mode") not in ("", "dev")
        if self._is_apart:
            return True
        self._only = self._only or self.record.first_space or space
        return space == self._only

    async def _call(
        self,
        method: str,
        path: str,
        space: str,
        body: object = None,
        patience: Patience | None = None,
        **params: str,
    ) -> Any:
        """The result in its envelope; None for what is not there."""
        headers = {"X-OpenViking-Account": self._options.account, "X-OpenViking-User": space}
        is_repeatable = method != "POST" or path.endswith("/find")
        answer = await self._http.named(headers).call(
            method, path, body, params=params, patience=patience, is_repeatable=is_repeatable, missing=NOTHING
        )
        if text_of(answer, "status") != "ok":
            raise DeliveryError("openviking answers with an error")
        return answer.get("result")

    @staticmethod
    def _uri(key: str) -> str:
        return f"{FOLDER}/{segment(key)}.md"
