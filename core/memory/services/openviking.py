"""Use OpenViking, on your own server or in the vendor's cloud.

Each scope is a user of the server, and each turn is a file among the user's memories. Each file is
named after the key of its item, so a retry stores nothing twice. A server in the mode `dev` shows
every user the memories of all users. So Mneme uses such a server only for the first scope that
needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from config.files import Secret
from core.errors import ConfigError, DeliveryError, Refused, Sentence, ToolError
from core.guard.guard import clean_service_text
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.http import SEARCH, CallTimeout, JsonService, number_of, objects, segment, text_of
from core.memory.service import (
    PROMPT_PACKAGE,
    Entry,
    RemoteMemory,
    RemoteService,
    ServiceOptions,
    SyncItem,
    describe_server,
    setup_option,
)
from core.types import Effect, Tool, ToolContext

MEMORIES = "viking://~/memories"
FOLDER = f"{MEMORIES}/events"
# Replaces the server's answer if the status is 404.
MISSING: Any = {"status": "ok", "result": None}
# This many of the best matches are read in full. For the other matches, the abstract is enough.
FULL_READS = 3
# How many results are requested per memory, because some results are overviews.
RESULTS_PER_MEMORY = 3


@dataclass(frozen=True, kw_only=True)
class Options(ServiceOptions):
    url: str = setup_option("http://127.0.0.1:1933", "the address of your server")
    key: Secret = setup_option(Secret(""), "its root key; leave it empty in the mode dev")
    account: str = field(
        default="mneme", metadata={"help": "the account there in which each scope is a user"}
    )
    score_threshold: float = field(
        default=0.15, metadata={"help": "the minimum similarity of a match"}
    )


class _Uri(ToolArguments):
    uri: str


class OpenViking(RemoteService):
    name = "openviking"
    options = Options
    search_tool = "viking_search"
    add_tool = "viking_remember"

    def __init__(self, options: Options) -> None:
        """Check the account. Raises ConfigError if it isn't a valid name."""
        super().__init__(options)
        self._options = options
        try:
            segment(options.account)
        except DeliveryError as error:
            raise ConfigError("memory_option_name", name=self.name, option="account") from error
        key = options.key.value
        self._http = JsonService(self.name, options.url, {"X-API-Key": key} if key else {})
        # Whether the server separates its users. None until the server was asked.
        self._separates_users: bool | None = None
        # The only space for which Mneme uses a server that doesn't separate its users.
        self._only_space = ""

    async def shutdown(self) -> None:
        await self._http.close()

    async def probe(self) -> Sentence:
        """Return the version and the mode of the server, after checking the key.

        Raises DeliveryError if the server isn't OpenViking or rejects the key.
        """
        health = await self._http.call("GET", "/health", call_timeout=SEARCH)
        version = text_of(health, "version")
        mode = text_of(health, "auth_mode")
        if not version:
            raise DeliveryError("service_is_other", name=self.name)
        self._separates_users = mode not in ("", "dev")
        # /health needs no key, so a second call checks the key.
        await self._call("GET", "/api/v1/fs/stat", f"{self._namespace}-nobody", uri=MEMORIES)
        key = "probe_openviking" if self._separates_users else "probe_openviking_for_one"
        place = describe_server(self._http)
        return Sentence(key, {"version": version, "place": place, "mode": mode or "?"})

    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the files of the space that match the query, best first.

        OpenViking also returns its own overviews of folders, sometimes first. They repeat the
        contents of the files, so they are left out. For the best `FULL_READS` matches, the whole
        file is returned, and for the other matches the abstract.
        """
        if not await self._is_served(space, SEARCH):
            return []
        request = {
            "query": query,
            "limit": limit * RESULTS_PER_MEMORY,
            "target_uri": MEMORIES,
            "score_threshold": self._options.score_threshold,
        }
        result = await self._call(
            "POST", "/api/v1/search/find", space, request, call_timeout=SEARCH
        )
        memories: list[RemoteMemory] = []
        for match in objects(result or {"memories": []}, "memories"):
            uri = text_of(match, "uri")
            if not _is_file(uri) or len(memories) == limit:
                continue
            text = text_of(match, "abstract")
            if len(memories) < FULL_READS or not text:
                text = await self._read_file(space, uri, SEARCH) or text
            if text:
                memories.append(RemoteMemory(id=uri, text=text, score=number_of(match, "score")))
        return memories

    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item as a file. Raises Refused if other users could read it."""
        if not await self._is_served(space):
            raise Refused("service_dev_mode")
        uri = _uri_of(item.key)
        if item.is_retry and await self._exists(space, uri):
            return [uri]
        request = {"uri": uri, "content": item.text, "mode": "create", "wait": True}
        await self._call("POST", "/api/v1/content/write", space, request)
        return [uri]

    async def erase(self, entry: Entry) -> None:
        for uri in dict.fromkeys([_uri_of(entry.key), *(entry.remote or ())]):
            await self.take_out(entry.space, uri)

    async def holds(self, entry: Entry) -> bool:
        return await self._exists(entry.space, _uri_of(entry.key))

    async def tools(self) -> Sequence[Tool]:
        return [
            *await super().tools(),
            build_tool("viking_read", _Uri, self._run_read, PROMPT_PACKAGE, Effect.READ),
            build_tool("viking_forget", _Uri, self._run_forget_file, PROMPT_PACKAGE, Effect.REMOVE),
        ]

    async def _run_read(self, arguments: _Uri, context: ToolContext) -> str:
        """Return the text of a file, from the first scope that has the file.

        Raises ToolError if no visible scope has it.
        """
        uri = _parse_uri(arguments.uri)
        for scope in sorted(context.scopes):
            if text := await self._read_file(self.space(scope), uri):
                return (
                    clean_service_text(self.name, text)
                    or "This file has no text that can be shown."
                )
        raise ToolError("There is no file at this address. viking_search finds files.")

    async def _run_forget_file(self, arguments: _Uri, context: ToolContext) -> str:
        await self.change(_parse_uri(arguments.uri), context, self.take_out)
        return "openviking has deleted it."

    async def take_out(self, space: str, memory_id: str) -> bool:
        if not await self._exists(space, memory_id):
            return False
        await self._call("DELETE", "/api/v1/fs", space, uri=memory_id, recursive="false")
        return True

    async def _read_file(
        self, space: str, uri: str, call_timeout: CallTimeout | None = None
    ) -> str:
        """Return the text of a file, or an empty string if the file doesn't exist."""
        if not await self._is_served(space, call_timeout):
            return ""
        result = await self._call(
            "GET", "/api/v1/content/read", space, call_timeout=call_timeout, uri=uri
        )
        return result if isinstance(result, str) else text_of(result, "content", "text")

    async def _exists(self, space: str, uri: str) -> bool:
        if not await self._is_served(space):
            return False
        return await self._call("GET", "/api/v1/fs/stat", space, uri=uri) is not None

    async def _is_served(self, space: str, call_timeout: CallTimeout | None = None) -> bool:
        """Return whether Mneme may use the server for this space.

        A server that doesn't separate its users is used only for the first space.
        """
        if self._separates_users is None:
            health = await self._http.call("GET", "/health", call_timeout=call_timeout)
            self._separates_users = text_of(health, "auth_mode") not in ("", "dev")
        if self._separates_users:
            return True
        self._only_space = self._only_space or self.record.first_space or space
        return space == self._only_space

    async def _call(
        self,
        method: str,
        path: str,
        space: str,
        body: object = None,
        call_timeout: CallTimeout | None = None,
        **params: str,
    ) -> Any:
        """Call the server as the user of a space, and return the result in its answer.

        Returns None if the server answers with 404. Raises DeliveryError if the answer is an error.
        """
        headers = {"X-OpenViking-Account": self._options.account, "X-OpenViking-User": space}
        is_repeatable = method != "POST" or path.endswith("/find")
        answer = await self._http.with_headers(headers).call(
            method,
            path,
            body,
            params=params,
            call_timeout=call_timeout,
            is_repeatable=is_repeatable,
            missing=MISSING,
        )
        if text_of(answer, "status") != "ok":
            raise DeliveryError("service_answers_error", name="openviking")
        return answer.get("result")


def _uri_of(key: str) -> str:
    return f"{FOLDER}/{segment(key)}.md"


def _is_file(uri: str) -> bool:
    """Return whether a URI names a person's file rather than a folder or an overview."""
    name = uri.rpartition("/")[2]
    return name.endswith(".md") and not name.startswith(".")


def _parse_uri(uri: str) -> str:
    """Return the URI of a file without the prefix "openviking:". Raises ToolError if it's invalid.

    The `~` in a URI means the user who makes the call, so everyone reaches only their own files.
    """
    uri = uri.strip().removeprefix("openviking:")
    if not uri.startswith("viking://") or ".." in uri or not uri.endswith(".md"):
        raise ToolError("uri: write it as viking_search shows it.")
    return uri
