"""What all memory services share: a service names its calls (`find`, `keep`, `erase`, `holds`); what it is told, under
which name, what it was told before and how that goes again stands here.

* `told_turn`: of a turn a service is told what the person typed and our answer. What is forwarded, pasted, quoted, sent
  through a bot or of a tool is left out, and a turn without a typed word. Keys and tokens are masked.
* A scope is a *space* there (bank, namespace, user id …): `RemoteService.space`, one for each, safe in any path. Who
  may see several scopes, as a linked person, has each of them asked.
* `Record`: which ids of the service stand for which messages and notes. It holds no word of anybody, outlives a crash
  at any point, and forgets with `/forget`. What was begun and not finished is told again with `is_again`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import zlib
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec

from pydantic import Field

from config.files import Secret, replace_file
from config.masking import masked
from core.errors import ConfigError, DeliveryError, Refused, ToolError
from core.guard.fence import said
from core.guard.guard import SERVICE_LINES, Arguments, service_lines, service_text, tool_of
from core.memory.http import JsonService
from core.memory.provider import Forgotten, MemoryProvider
from core.store.notes import NoteChange
from core.store.rows import turns
from core.text.normalize import on_one_line
from core.types import Message, Scope, Session, Tool, ToolContext

P = ParamSpec("P")
Kind = Literal["turn", "note", "tool"]
QUERY_CHARS = 1_000
ANSWER_CHARS = 4_000
NAME_CHARS = 40
MOST_TURNS = 20
PROMPTS = "core.memory"
"""The package whose `data/prompts.toml` describes the tools."""
_NAMESPACE = re.compile(r"[a-z][a-z0-9]{0,19}")


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """Of every service; those of one inherit from it, and add `url` and `key` as they need them."""

    namespace: str = field(default="mneme", metadata={"help": "how the names begin under which things are kept there"})
    limit: int = field(default=8, metadata={"help": "how many memories a turn is given at most"})
    every_turns: int = field(default=1, metadata={"help": f"how many turns it is told at once, {MOST_TURNS} at most"})


@dataclass(frozen=True, kw_only=True)
class AskedOptions(ServiceOptions):
    """Of one that can be asked what it makes of a question (`RemoteService.ask`)."""

    reflect: bool = field(default=False, metadata={"help": "whether it is asked so after each turn, for the next one"})


@dataclass(frozen=True, kw_only=True)
class ServerOptions(ServiceOptions):
    """Of a `ServerService`."""

    url: str
    key: Secret = field(default=Secret(""), metadata={"help": "its key; a server of yours may need none", "ask": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory that a service has found; `at`: since when, as it says it (ISO 8601). A higher `score` is better."""

    id: str
    text: str
    at: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a service is to keep. `key` names it for ever and is safe in a path; so is `session`, which is empty for
    notes. `lines`: role and text. `is_again`: an earlier try may have arrived."""

    key: str
    kind: Kind
    lines: Sequence[tuple[Literal["user", "assistant"], str]]
    at: datetime
    session: str = ""
    is_again: bool = False

    @property
    def text(self) -> str:
        """As one text; who says what stands before it, where it is more than one line."""
        if len(self.lines) == 1:
            return self.lines[0][1]
        return "\n".join(f"{role}: {text}" for role, text in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a service was told under `key`: of which messages and changes of notes, and what it calls it. `remote` is
    None while it is not known whether that arrived. `mark`: a hash of a note."""

    key: str
    space: str
    messages: Sequence[int] = ()
    notes: Sequence[int] = ()
    mark: str = ""
    remote: Sequence[str] | None = None


class Record:
    """The entries in a file, one JSON line a change; a line that a crash cut off is none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: dict[str, Entry] = {}
        self._origin = ""
        lines = file.read_bytes().splitlines() if file.exists() else []
        for line in lines:
            self._read(line)
        if len(lines) != len(self._entries) + 1 or not self._origin:
            self._origin = self._origin or secrets.token_hex(8)
            self.compact()

    def _read(self, line: bytes) -> None:
        try:
            written = json.loads(line)
            if "origin" in written:
                self._origin = str(written["origin"])
            elif "gone" in written:
                self._entries.pop(written["gone"], None)
            else:
                listed = {name: tuple(one) for name, one in written.items() if isinstance(one, list)}
                entry = Entry(**{**written, **listed})
                self._entries[entry.key] = entry
        except (ValueError, TypeError):
            return

    def name(self, *words: str) -> str:
        """A name for what is called so here, and nowhere else: another home has other names."""
        return hashlib.sha256("\n".join((self._origin, *words)).encode()).hexdigest()[:32]

    @property
    def first_space(self) -> str:
        """That of the oldest entry; empty where there is none."""
        return next((one.space for one in self._entries.values()), "")

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def of(
        self, space: str, messages: Collection[int] = (), notes: Collection[int] = (), mark: str | None = None
    ) -> list[Entry]:
        """Those of any of the messages or notes, or of the note with this mark."""
        return [
            one
            for one in self._entries.values()
            if one.space == space
            and (one.mark == mark or not {*messages}.isdisjoint(one.messages) or not {*notes}.isdisjoint(one.notes))
        ]

    def put(self, entry: Entry) -> None:
        """Durable when it returns."""
        self._entries[entry.key] = entry
        self._append(asdict(entry))

    def drop(self, key: str) -> None:
        """What it was is gone from the file with the next `compact`."""
        if self._entries.pop(key, None) is not None:
            self._append({"gone": key})

    def compact(self) -> None:
        lines: Iterable[object] = ({"origin": self._origin}, *map(asdict, self._entries.values()))
        replace_file(self._file, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def _append(self, line: object) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())


class Question(Arguments):
    query: str = Field(min_length=1, max_length=QUERY_CHARS)


class Query(Question):
    limit: int = Field(default=10, ge=1, le=SERVICE_LINES)


class Content(Arguments):
    content: str = Field(min_length=1, max_length=2_000)


class _Forget(Arguments):
    memory_id: str


class RemoteService(MemoryProvider):
    """A service names `find`, `keep`, `erase` and `holds`, `probe` and `shutdown`; `ask` and `take_out` where it can do
    that, and the tools that it has beside these four."""

    search_tool = add_tool = ask_tool = forget_tool = ""
    """As the service's users know them; empty for none."""
    taken_out = "has taken it out"
    """What the last of them has done."""
    record: Record

    def __init__(self, options: ServiceOptions) -> None:
        if _NAMESPACE.fullmatch(options.namespace) is None:
            raise ConfigError("namespace should be up to 20 small letters and digits.")
        if not 1 <= options.every_turns <= MOST_TURNS:
            raise ConfigError(f"every_turns should be 1 to {MOST_TURNS}.")
        self._namespace, self._limit = options.namespace, max(1, options.limit)
        self.every_turns = options.every_turns
        self.is_reflecting = isinstance(options, AskedOptions) and options.reflect

    @abstractmethod
    async def find(self, space: str, query: str, limit: int) -> Sequence[Found]:
        """Best first; a space that is not there has nothing."""

    @abstractmethod
    async def keep(self, space: str, told: Told) -> Sequence[str]:
        """Returns the ids there, where they are known at once. With `told.is_again`, nothing may be kept twice."""

    @abstractmethod
    async def erase(self, entry: Entry) -> None:
        """What is not there is erased. Refused says what cannot be."""

    @abstractmethod
    async def holds(self, entry: Entry) -> bool:
        """Looks there whether anything of it is still found."""

    async def ask(self, space: str, query: str) -> str:
        """What it makes of a question, out of all that it has; empty for nothing."""
        return ""

    async def take_out(self, space: str, memory_id: str) -> bool:
        """One memory, by its id as the search tool shows it; False where the space has none."""
        return False

    def space(self, scope: Scope) -> str:
        """As different as the scopes are, and always the same; what they are called is not said."""
        kind = "room" if scope.is_room else "person"
        return f"{self._namespace}-{kind}-{hashlib.sha256(f'{self._namespace} {scope.key}'.encode()).hexdigest()[:24]}"

    async def initialize(self, folder: Path) -> None:
        self.record = Record(folder / "told.jsonl")

    async def system_prompt_block(self, context: ToolContext) -> str:
        more = f" {self.search_tool} finds more." if self.search_tool and self.mode == "hybrid" else ""
        return f"What it knows from earlier conversations comes along with a message where it fits.{more}"

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        return [line_of(one) for one in await self.search(text, context.scopes, self._limit)]

    async def search(self, query: str, scopes: Collection[Scope], limit: int) -> Sequence[Found]:
        """In all of the scopes, the best first."""
        asked = clean(query)[:QUERY_CHARS]
        found = await asyncio.gather(*(self.find(self.space(scope), asked, limit) for scope in sorted(scopes)))
        in_turn = [one for group in zip_longest(*found) for one in group if one is not None]
        return sorted(in_turn, key=lambda one: -one.score)[:limit]

    async def queue_prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        """What it makes of the turn, a line each, so that what comes again is not sent again."""
        asked = clean(text)[:QUERY_CHARS]
        said = await self._each(context, self.ask, asked) if self.is_reflecting and asked else []
        lines = [line.strip() for one in said for line in one.splitlines()]
        return [line_of(Found(id="reflection", text=line)) for line in lines if line][: self._limit]

    async def tools(self) -> Sequence[Tool]:
        made: Sequence[tuple[str, type[Arguments], Any]] = (
            (self.search_tool, Query, self._searched),
            (self.add_tool, Content, self._added),
            (self.ask_tool, Question, self._asked),
            (self.forget_tool, _Forget, self._taken_out),
        )
        return [tool_of(name, arguments, run, PROMPTS) for name, arguments, run in made if name]

    async def _searched(self, asked: Query, context: ToolContext) -> str:
        """Each memory with the id by which other tools take it."""
        found = await self.search(asked.query, context.scopes, asked.limit)
        lines = service_lines(self.name, [f"{one.id} {dated(one)}" for one in found])
        return "\n".join(lines) or "Nothing was found."

    async def _added(self, asked: Content, context: ToolContext) -> str:
        await self.add(asked.content, context)
        return "It is kept."

    async def _asked(self, asked: Question, context: ToolContext) -> str:
        return await self.said(context, self.ask, clean(asked.query))

    async def _taken_out(self, asked: _Forget, context: ToolContext) -> str:
        await self.change(asked.memory_id, context, self.take_out)
        return f"{self.name} {self.taken_out}."

    async def said(
        self, context: ToolContext, ask: Callable[Concatenate[str, P], Awaitable[str]], *of: P.args, **how: P.kwargs
    ) -> str:
        """For a tool: what `ask` says of each space that may be seen, as it may be shown."""
        shown = [service_text(self.name, one) for one in await self._each(context, ask, *of, **how)]
        return "\n\n".join(filter(None, shown)) or "It has nothing to say."

    async def _each(
        self, context: ToolContext, ask: Callable[Concatenate[str, P], Awaitable[str]], *of: P.args, **how: P.kwargs
    ) -> Sequence[str]:
        return [await ask(self.space(scope), *of, **how) for scope in sorted(context.scopes)]

    async def change(self, memory_id: str, context: ToolContext, change: Callable[[str, str], Awaitable[bool]]) -> None:
        """For a tool: has `change` do it to one memory of whoever asks. Raises ToolError; what is another's is as one
        that is not there."""
        if context.scope.is_room:
            raise ToolError("In a room no memory is changed or taken out by a tool.")
        memory_id = memory_id.strip().removeprefix(f"{self.name}:")
        for scope in sorted(context.scopes):
            if await change(self.space(scope), memory_id):
                return
        raise ToolError(f"There is no memory with this id; {self.search_tool} shows those there are.")

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        if lines := [line for turn in turns(messages) for line in told_turn(session, turn)]:
            told = Told(
                key=self.record.name(key),
                kind="turn",
                lines=lines,
                at=messages[0].created_at,
                session=self.record.name("session", str(session.id)),
            )
            await self.tell(session.scope, told, messages=[row.id for row in messages])

    async def on_memory_write(self, change: NoteChange) -> None:
        if change.before is not None:
            mark = self.record.name(change.target, change.before)
            await self._erase(self.record.of(self.space(change.scope), mark=mark))
        if change.after is not None:
            key, mark = self.record.name("note", str(change.id)), self.record.name(change.target, change.after)
            told = Told(key=key, kind="note", lines=(("user", clean(change.after)),), at=change.at)
            await self.tell(change.scope, told, notes=[change.id], mark=mark)

    async def add(self, text: str, context: ToolContext) -> Sequence[str]:
        """What the model adds by a tool is that of the message for which it does so."""
        key = self.record.name("tool", str(context.message_id), text)
        told = Told(key=key, kind="tool", lines=(("user", clean(text)),), at=context.now)
        return await self.tell(context.scope, told, messages=[context.message_id] if context.message_id else [])

    async def tell(self, scope: Scope, told: Told, **of: Any) -> Sequence[str]:
        """Has it kept once; `of` are fields of its entry."""
        known = self.record.get(told.key)
        if known is not None and known.remote is not None:
            return known.remote
        entry = Entry(key=told.key, space=self.space(scope), **of)
        self.record.put(entry)
        try:
            remote = await self.keep(entry.space, replace(told, is_again=known is not None))
        except Refused:
            if known is None:
                self.record.drop(told.key)
            raise
        self.record.put(replace(entry, remote=tuple(remote)))
        return remote

    async def goes_along(self, forgotten: Forgotten) -> Sequence[int]:
        entries = self.record.of(self.space(forgotten.scope), forgotten.messages)
        return sorted({number for one in entries for number in one.messages} - {*forgotten.messages})

    async def on_forget(self, forgotten: Forgotten) -> None:
        await self._erase(self.record.of(self.space(forgotten.scope), forgotten.messages, forgotten.notes))

    async def _erase(self, entries: Sequence[Entry]) -> None:
        if entries:
            try:
                await self.erase_all(entries)
            finally:
                self.record.compact()

    async def erase_all(self, entries: Sequence[Entry]) -> None:
        """All of one space. One after the other, so that what takes longer than there is time for goes on from there;
        for a service that finds what is to go by looking through all that it has, once for all of them is better."""
        for entry in entries:
            await self.erase(entry)
            if await self.holds(entry):
                raise DeliveryError(f"{self.name} still finds what it has erased")
            self.record.drop(entry.key)


class ServerService(RemoteService):
    """A service at `url`: its cloud, or a server of one's own. It knows us by a key in a header."""

    cloud: ClassVar[str]

    def __init__(self, options: ServerOptions, *headers: str) -> None:
        """`headers`: those that hold the key as it stands, beside Authorization."""
        super().__init__(options)
        key, self._is_cloud = options.key.value, options.url == self.cloud
        if self._is_cloud and not key:
            raise ConfigError(f"{self.name} needs the key of its cloud, or the url of your server.")
        named = {"Authorization": f"Bearer {key}", **dict.fromkeys(headers, key)} if key else {}
        self._http = JsonService(self.name, options.url, named)
        self.where = "its cloud" if self._is_cloud else f"a server at {self._http.url.host}"

    async def shutdown(self) -> None:
        await self._http.close()


def told_turn(session: Session, messages: Sequence[Message]) -> Sequence[tuple[Literal["user", "assistant"], str]]:
    """What a service is told of a turn: nothing where nobody has typed a word; in a room with who said it."""
    lines: list[tuple[Literal["user", "assistant"], str]] = []
    for row in messages:
        name = on_one_line(row.sender.name)[:NAME_CHARS] if session.scope.is_room and row.sender else ""
        if typed := clean(said(row)):
            lines.append(("user", f"{name}: {typed}" if name else typed))
        elif row.role == "assistant" and row.kind == "chat" and not row.tool_name and row.text.strip():
            lines.append(("assistant", clean(row.text)[:ANSWER_CHARS]))
    return lines if any(role == "user" for role, _ in lines) else ()


def clean(text: str) -> str:
    """As it may be sent: without keys and tokens, and signs that many a store cannot keep."""
    return masked(text).replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def line_of(found: Found) -> str:
    """A line of `prefetch`; the token is another one when the text of a memory becomes another."""
    return f"m{zlib.crc32(f'{found.id} {found.text}'.encode('utf-8', 'replace')):010d} {dated(found)}"


def dated(found: Found) -> str:
    """Its text on one line, and since when."""
    return f"{on_one_line(found.text)} ({found.at[:10]})" if found.at else on_one_line(found.text)
