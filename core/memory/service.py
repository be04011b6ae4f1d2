"""The base classes of all memory services.

A service implements `find`, `keep`, `erase` and `holds`. `RemoteService` decides which texts
are sent to it, under which keys, and when they are erased:

* A service receives the words that people typed in a turn, and our answers (`collect_turn_lines`).
  It never receives forwarded, pasted or quoted text, messages sent via a bot, or tool results. A
  turn without a typed word isn't sent. Keys and tokens are masked.
* Each scope of a home has its own *space* in the service, such as a bank, namespace or user id. The
  name of a space is safe in a path. If a person may see several scopes, the space of each is
  searched.
* A `Record` (`core/memory/record.py`) maps our messages and notes to the ids of the service. If
  sending an item was interrupted, the item is sent again with `is_retry`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import zlib
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, zip_longest
from math import log
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar

from pydantic import Field

from config.files import Secret
from config.masking import mask_secrets
from core.errors import ConfigError, DeliveryError, Refused, Sentence, ToolError
from core.guard.guard import SERVICE_LINES, clean_service_lines, clean_service_text
from core.guard.origin_and_fence import typed_text
from core.guard.tool_definitions import ToolArguments, build_tool
from core.memory.http import JsonService, NotFound
from core.memory.provider import Forgotten, MemoryProvider
from core.memory.record import RECORD_FILE
from core.memory.record import Entry as Entry
from core.memory.record import Record as Record
from core.store.notes import NoteChange
from core.store.rows import split_turns
from core.text.normalize import to_single_line
from core.text.terms import query_terms, terms_of
from core.types import Effect, Message, Scope, Session, Tool, ToolContext

P = ParamSpec("P")
T = TypeVar("T")
Default = TypeVar("Default")
Kind = Literal["turn", "note", "tool"]
# The role and text of a message.
Line = tuple[Literal["user", "assistant"], str]
QUERY_CHARS = 1_000
ANSWER_CHARS = 4_000
NAME_CHARS = 40
MAX_TURNS_PER_SYNC = 20
# The package whose `data/prompts.toml` describes the tools.
PROMPT_PACKAGE = "core.memory"
_NAMESPACE = re.compile(r"[a-z][a-z0-9]{0,19}")


def setup_option(
    default: Any, help_text: str, *, needs: str = "", is_web_address: bool = False
) -> Any:
    """Return an option that `mneme memory setup` asks for, although it has a default.

    Setup asks for it after another option, and only if that one has a value ("url") or this value
    ("deployment=graphiti"), as `needs` says. The value of a web address begins with http:// or
    https://, or is empty.
    """
    metadata = {"help": help_text, "ask": True, "needs": needs, "is_web_address": is_web_address}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """The options of every service. A service adds its own, such as `url` and `key`."""

    namespace: str = field(
        default="mneme", metadata={"help": "the prefix of all names that Mneme uses there"}
    )
    limit: int = field(default=8, metadata={"help": "how many memories a turn gets at most"})
    every_turns: int = field(
        default=1,
        metadata={"help": f"how many turns are sent at once, {MAX_TURNS_PER_SYNC} at most"},
    )


@dataclass(frozen=True, kw_only=True)
class ReflectionOptions(ServiceOptions):
    """The options of a service that can answer a question (`RemoteService.ask`)."""

    reflect: bool = field(
        default=False,
        metadata={"help": "whether it is asked about each turn, in preparation for the next one"},
    )


@dataclass(frozen=True, kw_only=True)
class ServerOptions(ServiceOptions):
    """The options of a `ServerService`."""

    url: str
    key: Secret = setup_option(Secret(""), "its key; your own server may not need one")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteMemory:
    """A memory that a service found."""

    id: str
    text: str
    # The date of the memory in ISO 8601, as the service gives it. Empty if unknown.
    at: str = ""
    # When the memory ended, in ISO 8601: it was true until then. Empty if it hasn't, or if unknown.
    until: str = ""
    # Higher is better. Services without scores leave this at 0.
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncItem:
    """A turn, a note or a text of the model, for a service to store."""

    # Identifies the item. A retry has the same key. The key is safe in a path.
    key: str
    kind: Kind
    lines: Sequence[Line]
    at: datetime
    # A name for the session of a turn, safe in a path. Empty for other items.
    session: str = ""
    # Whether an earlier attempt may have arrived.
    is_retry: bool = False

    @property
    def text(self) -> str:
        """The lines as one text. If there are several lines, each starts with its role."""
        if len(self.lines) == 1:
            return self.lines[0][1]
        return "\n".join(f"{role}: {text}" for role, text in self.lines)


class Question(ToolArguments):
    query: str = Field(min_length=1, max_length=QUERY_CHARS)


class Query(Question):
    limit: int = Field(default=10, ge=1, le=SERVICE_LINES)


class Content(ToolArguments):
    content: str = Field(min_length=1, max_length=2_000)


class _Forget(ToolArguments):
    memory_id: str


class RemoteService(MemoryProvider):
    """A memory provider that stores all data in a service.

    A service implements `find`, `keep`, `erase`, `holds`, `probe` and `shutdown`. It may also
    implement `ask` and `take_out`, and offer more tools than the four below.
    """

    # The names of the tools, as users of the service know them. A tool with an empty name isn't
    # offered.
    search_tool = add_tool = ask_tool = forget_tool = ""
    # `forget_tool` answers with the name of the service and this end of a sentence.
    forget_receipt = "has deleted it"
    record: Record

    def __init__(self, options: ServiceOptions) -> None:
        """Read the options that all services share. Raises ConfigError if one is invalid."""
        if _NAMESPACE.fullmatch(options.namespace) is None:
            raise ConfigError("memory_namespace")
        if not 1 <= options.every_turns <= MAX_TURNS_PER_SYNC:
            raise ConfigError("memory_every_turns", limit=MAX_TURNS_PER_SYNC)
        self._namespace = options.namespace
        self._limit = max(1, options.limit)
        self.every_turns = options.every_turns
        self.is_reflecting = isinstance(options, ReflectionOptions) and options.reflect

    def _check_choice(self, option: str, value: str, choices: Collection[str]) -> None:
        """Raise ConfigError unless the value of an option is one of the choices."""
        if value not in choices:
            raise ConfigError(
                "memory_choice", name=self.name, option=option, choices=", ".join(choices)
            )

    @abstractmethod
    async def find(self, space: str, query: str, limit: int) -> Sequence[RemoteMemory]:
        """Return the memories of a space that match the query, best first.

        A space that doesn't exist has no memories.
        """

    @abstractmethod
    async def keep(self, space: str, item: SyncItem) -> Sequence[str]:
        """Store an item, and return the service's ids for the item, if it has any.

        If `item.is_retry`, make sure that the item isn't stored twice.
        """

    @abstractmethod
    async def erase(self, entry: Entry) -> None:
        """Delete an item if it exists. Raises Refused if the service can't delete it."""

    @abstractmethod
    async def holds(self, entry: Entry) -> bool:
        """Return whether the service still returns any part of an item."""

    async def ask(self, space: str, query: str) -> str:
        """Return an answer that the service writes from all memories of a space.

        A service that can't answer questions returns an empty string.
        """
        return ""

    async def take_out(self, space: str, memory_id: str) -> bool:
        """Delete one memory by the id that the search tool shows.

        Returns False if the space has no such memory.
        """
        return False

    def space(self, scope: Scope) -> str:
        """Return the name of a scope's space.

        A scope always has the same name in a home. Other homes give other names, so homes that use
        the same server share no memories. The name is a hash, so it reveals no ids of the platform.
        """
        kind = "room" if scope.is_group else "person"
        words = f"{self.record.space_prefix} {self._namespace} {scope.key}".lstrip()
        digest = hashlib.sha256(words.encode()).hexdigest()
        return f"{self._namespace}-{kind}-{digest[:24]}"

    async def initialize(self, folder: Path) -> None:
        self.record = Record(folder / RECORD_FILE)

    async def system_prompt_block(self, context: ToolContext) -> str:
        text = "What it knows from earlier conversations comes along with a message where it fits."
        if self.search_tool and self.mode == "hybrid":
            text += f" {self.search_tool} finds more."
        return text

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        memories = await self.search(text, context.scopes, self._limit)
        return [format_prefetch_line(memory) for memory in memories]

    async def search(
        self, query: str, scopes: Collection[Scope], limit: int
    ) -> Sequence[RemoteMemory]:
        """Search the spaces of all scopes, and return the best memories, best first.

        Memories that have ended come last. Among memories with equal scores, the spaces
        take turns.
        """
        query = clean(query)[:QUERY_CHARS]
        results = await call_together(
            *(self.find(self.space(scope), query, limit) for scope in sorted(scopes))
        )
        # The first memory of each space, then the second of each, and so on. Sorting is stable.
        memories = [memory for memory in chain(*zip_longest(*results)) if memory is not None]
        ranked = sorted(memories, key=lambda memory: (_has_ended(memory), -memory.score))
        return ranked[:limit]

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """Ask the service a question about the turn, and return its answer for the next turn.

        Each line of the answer begins with its own token, so Mneme sends a repeated line only once.
        Only the first `QUERY_CHARS` characters of the turn are sent.
        """
        query = clean(text)[:QUERY_CHARS]
        if not self.is_reflecting or not query:
            return []
        answers = await self._call_for_each_space(context, self.ask, query)
        lines = [line.strip() for answer in answers for line in answer.splitlines()]
        memories = [RemoteMemory(id="reflection", text=line) for line in lines if line]
        return [format_prefetch_line(memory) for memory in memories[: self._limit]]

    async def tools(self) -> Sequence[Tool]:
        """Return the tools for which this service defines a name."""
        # A search counts as `READ`, because the owner chose the service and it stores the
        # conversation.
        tools: Sequence[tuple[str, type[ToolArguments], Any, Effect]] = (
            (self.search_tool, Query, self._run_search, Effect.READ),
            (self.add_tool, Content, self._run_add, Effect.ADD),
            (self.ask_tool, Question, self._run_ask, Effect.READ),
            (self.forget_tool, _Forget, self._run_forget, Effect.REMOVE),
        )
        return [
            build_tool(name, arguments, run, PROMPT_PACKAGE, effect)
            for name, arguments, run, effect in tools
            if name
        ]

    async def _run_search(self, arguments: Query, context: ToolContext) -> str:
        """Search, and return a line for each memory: its id for the other tools, and its text."""
        memories = await self.search(arguments.query, context.scopes, arguments.limit)
        lines = [f"{memory.id} {format_memory(memory)}" for memory in memories]
        return "\n".join(clean_service_lines(self.name, lines)) or "Nothing was found."

    async def _run_add(self, arguments: Content, context: ToolContext) -> str:
        await self.add(arguments.content, context)
        return "Saved."

    async def _run_ask(self, arguments: Question, context: ToolContext) -> str:
        return await self.ask_spaces(context, self.ask, clean(arguments.query))

    async def _run_forget(self, arguments: _Forget, context: ToolContext) -> str:
        await self.change(arguments.memory_id, context, self.take_out)
        return f"{self.name} {self.forget_receipt}."

    async def ask_spaces(
        self,
        context: ToolContext,
        ask: Callable[Concatenate[str, P], Awaitable[str]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> str:
        """Call `ask` for each space that the person may see, and return the answers as one text.

        Suspicious answers are left out. Read-only tools use this method.
        """
        answers = await self._call_for_each_space(context, ask, *args, **kwargs)
        texts = [clean_service_text(self.name, answer) for answer in answers]
        return "\n\n".join(filter(None, texts)) or "It has nothing to say."

    async def _call_for_each_space(
        self,
        context: ToolContext,
        ask: Callable[Concatenate[str, P], Awaitable[str]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Sequence[str]:
        """Call `ask` for each space that the person may see, and return the answers."""
        return [await ask(self.space(scope), *args, **kwargs) for scope in sorted(context.scopes)]

    async def change(
        self, memory_id: str, context: ToolContext, change: Callable[[str, str], Awaitable[bool]]
    ) -> None:
        """Call `change` for each space that the person may see, until one has this memory.

        `change` gets a space and the id, and returns False if the space has no such memory. Tools
        that change or delete a memory use this method. Raises ToolError in a group, or if none of
        the spaces has the memory.
        """
        if context.scope.is_group:
            raise ToolError("In a group, tools can't change or delete memories.")
        memory_id = memory_id.strip().removeprefix(f"{self.name}:")
        for scope in sorted(context.scopes):
            if await change(self.space(scope), memory_id):
                return
        raise ToolError(f"There is no memory with this id; {self.search_tool} shows the ids.")

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        """Store the typed words and the answers of one or more turns as one item."""
        lines: list[Line] = []
        for turn in split_turns(messages):
            lines += collect_turn_lines(session, turn)
        if not lines:
            return
        item = SyncItem(
            key=self.record.derive_name(key),
            kind="turn",
            lines=lines,
            at=messages[0].created_at,
            session=self.record.derive_name("session", str(session.id)),
        )
        await self.sync_item(session.scope, item, messages=[row.id for row in messages])

    async def on_memory_write(self, change: NoteChange) -> None:
        """Erase the old text of a note, and store the new text."""
        if change.before is not None:
            mark = self.record.derive_name(change.target, change.before)
            await self._erase(self.record.find_entries(self.space(change.scope), mark=mark))
        if change.after is not None:
            item = SyncItem(
                key=self.record.derive_name("note", str(change.id)),
                kind="note",
                lines=(("user", clean(change.after)),),
                at=change.at,
            )
            mark = self.record.derive_name(change.target, change.after)
            await self.sync_item(change.scope, item, notes=[change.id], mark=mark)

    async def add(self, text: str, context: ToolContext) -> Sequence[str]:
        """Store a text that the model adds with a tool, and return the service's ids for the text.

        The text belongs to the message that the model is answering. Erasing the message also erases
        the text.
        """
        item = SyncItem(
            key=self.record.derive_name("tool", str(context.message_id), text),
            kind="tool",
            lines=(("user", clean(text)),),
            at=context.now,
        )
        messages = [context.message_id] if context.message_id else []
        return await self.sync_item(context.scope, item, messages=messages)

    async def sync_item(self, scope: Scope, item: SyncItem, **fields: Any) -> Sequence[str]:
        """Store an item unless an earlier call has done so, and return the service's ids for it.

        The item is recorded before the service is called, in an `Entry` with these `fields`. A
        crash during the call leaves an entry without ids, and the next call then counts as a retry.
        """
        existing = self.record.get(item.key)
        if existing is not None and existing.remote is not None:
            return existing.remote
        entry = Entry(key=item.key, space=self.space(scope), **fields)
        self.record.put(entry)
        try:
            remote = await self.keep(entry.space, replace(item, is_retry=existing is not None))
        except Refused:
            if existing is None:
                self.record.drop(item.key)
            raise
        self.record.put(replace(entry, remote=tuple(remote)))
        return remote

    async def goes_along(self, forgotten: Forgotten) -> Sequence[int]:
        entries = self.record.find_entries(self.space(forgotten.scope), forgotten.messages)
        message_ids = {number for entry in entries for number in entry.messages}
        return sorted(message_ids - {*forgotten.messages})

    async def on_forget(self, forgotten: Forgotten) -> None:
        space = self.space(forgotten.scope)
        await self._erase(self.record.find_entries(space, forgotten.messages, forgotten.notes))

    async def _erase(self, entries: Sequence[Entry]) -> None:
        """Erase entries of one space from the service and from the record."""
        if entries:
            try:
                await self.erase_all(entries)
            finally:
                self.record.compact()

    async def erase_all(self, entries: Sequence[Entry]) -> None:
        """Erase entries of one space, and check that the service no longer returns any of them.

        Each erased entry is removed from the record at once, so that after a timeout the next call
        continues with the remaining entries. Raises DeliveryError if the service still returns an
        erased entry.

        To erase an entry, some services must list the whole space. They should override this method
        to list the space only once.
        """
        for entry in entries:
            await self.erase(entry)
            if await self.holds(entry):
                raise DeliveryError("service_keeps_text", name=self.name)
            self.record.drop(entry.key)


class SpaceIds:
    """The ids that a service assigned to its objects for the spaces, such as archives.

    An id is looked up once. If the service no longer knows the id, for example after its data was
    restored, the id is looked up again. When a space is written to, a missing object is created.
    """

    def __init__(
        self,
        find: Callable[[str], Awaitable[str | None]],
        create: Callable[[str], Awaitable[str]],
    ) -> None:
        """`find` returns the id of a space, or None. `create` creates the object of a space."""
        self._find = find
        self._create = create
        self._ids: dict[str, str] = {}

    async def read(
        self, space: str, work: Callable[[str], Awaitable[T]], missing: Default
    ) -> T | Default:
        """Call `work` with the id of a space.

        Returns `missing` if the service has no such space.
        """
        for _ in range(2):
            known_id = self._ids.get(space) or await self._find(space)
            if known_id is None:
                break
            self._ids[space] = known_id
            try:
                return await work(known_id)
            except NotFound:
                self._ids.pop(space, None)
        return missing

    async def write(self, space: str, work: Callable[[str], Awaitable[T]]) -> T:
        """Call `work` with the id of a space, creating the space if necessary."""
        try:
            return await work(await self._find_or_create(space))
        except NotFound:
            self._ids.pop(space, None)
            return await work(await self._find_or_create(space))

    async def _find_or_create(self, space: str) -> str:
        known_id = self._ids.get(space) or await self._find(space) or await self._create(space)
        self._ids[space] = known_id
        return known_id


class ServerService(RemoteService):
    """The base class of services with an HTTP API, in the cloud or on the user's own server."""

    # The URL of the cloud.
    cloud: ClassVar[str]

    def __init__(self, options: ServerOptions, *headers: str) -> None:
        """Create the HTTP client, which sends the key in the Authorization header.

        The key is also sent in each of the other `headers`. Raises ConfigError if the URL is the
        cloud's and no key is set.
        """
        super().__init__(options)
        key = options.key.value
        self._is_cloud = options.url == self.cloud
        if self._is_cloud and not key:
            raise ConfigError(
                "memory_needs_key_or_url", name=self.name, variable=f"{self.name.upper()}_API_KEY"
            )
        key_headers = {}
        if key:
            key_headers = {"Authorization": f"Bearer {key}", **dict.fromkeys(headers, key)}
        self._http = JsonService(self.name, options.url, key_headers)
        self.location = Sentence("place_cloud")
        if not self._is_cloud:
            self.location = describe_server(self._http)

    async def shutdown(self) -> None:
        await self._http.close()


def describe_server(http: JsonService) -> Sentence:
    """Return the place of a server in the clause of `probe`."""
    return Sentence("place_server", {"host": http.url.host})


def collect_turn_lines(session: Session, messages: Sequence[Message]) -> Sequence[Line]:
    """Return the lines of a turn that are sent to a service: typed words and our answers.

    The result is empty if the turn has no typed word. In a group, each line of a person starts
    with their name. Long names and answers are cut.
    """
    lines: list[Line] = []
    has_typed_words = False
    for row in messages:
        if text := clean(typed_text(row)):
            has_typed_words = True
            if session.scope.is_group and row.sender:
                name = to_single_line(row.sender.name)[:NAME_CHARS]
                text = f"{name}: {text}" if name else text
            lines.append(("user", text))
        elif _is_answer(row):
            lines.append(("assistant", clean(row.text)[:ANSWER_CHARS]))
    return lines if has_typed_words else ()


def _is_answer(row: Message) -> bool:
    """Return whether a row is a text of the assistant rather than a tool call or a summary."""
    is_chat = row.role == "assistant" and row.kind == "chat"
    return is_chat and not row.tool_name and bool(row.text.strip())


async def call_together(*calls: Coroutine[Any, Any, T]) -> Sequence[T]:
    """Run the calls concurrently and return their results in the same order.

    If a call fails, the other calls are cancelled and awaited before the error is raised.
    Otherwise they could open a connection after `close`.
    """
    tasks = [asyncio.create_task(call, name="memory call") for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def clean(text: str) -> str:
    """Prepare a text for sending.

    Keys and tokens are masked. NUL characters are removed and lone surrogates replaced, because
    some services can't store them.
    """
    return mask_secrets(text).replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def rank_by_words(question: str, memories: Sequence[RemoteMemory]) -> Sequence[RemoteMemory]:
    """Sort memories by how many terms of the question they contain, best first.

    Terms that only a few of the memories contain count more. Among memories with equal scores,
    newer ones come first. If no memory contains a term, the order doesn't change.
    """
    memory_terms = [frozenset(terms_of(memory.text)) for memory in memories]
    weights: dict[str, float] = {}
    for term in query_terms(question):
        count = sum(1 for terms in memory_terms if term in terms)
        if count:
            weights[term] = log(1 + len(memories) / count)
    if not weights:
        return memories
    scored_memories = []
    for memory, terms in zip(memories, memory_terms, strict=True):
        score = sum(weights[term] for term in weights.keys() & terms)
        scored_memories.append(replace(memory, score=score))
    return sorted(scored_memories, key=lambda memory: (memory.score, memory.at), reverse=True)


def format_prefetch_line(memory: RemoteMemory) -> str:
    """Return a line for `prefetch`: a token derived from the id and the text, and the memory."""
    checksum = zlib.crc32(f"{memory.id} {memory.text}".encode("utf-8", "replace"))
    return f"m{checksum:010d} {format_memory(memory)}"


def format_memory(memory: RemoteMemory) -> str:
    """Return the text of a memory on one line, followed by its dates if they are known.

    A memory that has ended is marked: "Ana lives in Porto (2026-05-01, over since
    2026-06-01)".
    """
    dates = [memory.at[:10]] if memory.at else []
    if memory.until:
        word = "over since" if _has_ended(memory) else "until"
        dates.append(f"{word} {memory.until[:10]}")
    text = to_single_line(memory.text)
    return f"{text} ({', '.join(dates)})" if dates else text


def _has_ended(memory: RemoteMemory) -> bool:
    """Return whether a memory was true only in the past."""
    today = datetime.now(UTC).date().isoformat()
    return bool(memory.until) and memory.until[:10] <= today
