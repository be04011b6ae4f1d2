"""What every memory provider must hold to, built in or plugged in, well or not. A provider's tests run all of it.

`Subject` says how a provider is made anew, as after a restart; the checks live in a home of their own.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from core.errors import Refused, ToolError
from core.memory.forgotten import Forgotten
from core.memory.provider import MemoryProvider
from core.records import NoteChange
from core.store.database import Database
from core.types import Message, Scope, Session, Tool, ToolContext
from tests.doubles.lifetime import RunningClock
from tests.doubles.remembrance import ANA, BEN, Remembrance, remembrance

Mood = Literal["well", "refusing", "crashing", "hanging"]
SAID = "Remember that my sister Ines lives in Porto."
ASKED = "Where does my sister Ines live?"
_LINE = re.compile(r"\S+ \S.*")


class Subject:
    """A provider under test. `is_service`: it is plugged in and told through the outbox."""

    is_service = True

    def made(self, home: Path) -> MemoryProvider:
        """A plugged one, as a start of the process makes it."""
        raise NotImplementedError

    def built(self, home: Path, database: Database, clock: RunningClock) -> MemoryProvider:
        """A built-in one."""
        raise NotImplementedError

    async def keep(self, one: Remembrance, scope: Scope) -> None:
        """Gets `SAID` into the memory of somebody, the way it gets there in life."""
        await one.turn(SAID, scope=scope)

    async def found(self, one: Remembrance, *scopes: Scope) -> Sequence[str]:
        """What the memory has to say to `ASKED`."""
        return await one.recalled(ASKED, *scopes)


class Unwell(MemoryProvider):
    """A provider that does as `mood` says, and behind that is the real one."""

    def __init__(self, provider: MemoryProvider) -> None:
        self.real = provider
        self.mood: Mood = "well"
        self.mode = provider.mode
        self.is_searching = provider.is_searching

    @property
    def name(self) -> str:
        return self.real.name

    async def is_available(self) -> bool:
        return await self.real.is_available()

    async def initialize(self, folder: Path) -> None:
        await self.real.initialize(folder)

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        await self._suffer()
        return await self.real.prefetch(text, context)

    async def system_prompt_block(self, context: ToolContext) -> str:
        await self._suffer()
        return await self.real.system_prompt_block(context)

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        await self._suffer()
        await self.real.sync_turn(session, messages, key)

    async def on_forget(self, forgotten: Forgotten) -> None:
        await self._suffer()
        await self.real.on_forget(forgotten)

    async def shutdown(self) -> None:
        await self.real.shutdown()

    async def tools(self) -> Sequence[Tool]:
        return await self.real.tools()

    async def _suffer(self) -> None:
        match self.mood:
            case "refusing":
                raise Refused("no")
            case "crashing":
                raise RuntimeError("it fell over")
            case "hanging":
                await asyncio.Event().wait()
            case "well":
                return


class ProviderContract:
    """The checks; a test class inherits them and has the fixture `subject`."""

    @asynccontextmanager
    async def life(
        self, subject: Subject, home: Path, timeout_s: float = 5.0
    ) -> AsyncIterator[tuple[Remembrance, Unwell]]:
        """One life of the process with the provider, the courier at work."""
        made: list[Unwell] = []

        def built(database: Database, clock: RunningClock) -> Sequence[MemoryProvider]:
            made.append(Unwell(subject.built(home, database, clock)))
            return made

        opened: AbstractAsyncContextManager[Remembrance]
        if subject.is_service:
            made.append(Unwell(subject.made(home)))
            opened = remembrance(home, made, timeout_s)
        else:
            opened = remembrance(home, (), timeout_s, built)
        async with opened as one, one.working():
            yield one, made[0]

    async def kept(self, subject: Subject, one: Remembrance, scope: Scope = ANA) -> None:
        """Kept, and delivered."""
        before = len(one.ends)
        await subject.keep(one, scope)
        if subject.is_service:
            await one.carried(before + 1)

    async def test_it_is_named_and_says_what_it_has(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, provider):
            assert re.fullmatch("[a-z][a-z0-9_]*", provider.name)
            assert await provider.is_available()
            names = [tool.name for tool in await provider.tools()]
            assert len(names) == len(set(names))
            assert names == [tool.name for tool in await provider.tools()], "the same at every call"
            for tool in await provider.tools():
                assert tool.schema["type"] == "object"
                assert tool.description
            with pytest.raises(ToolError):
                await provider.real.call_tool("no_such_tool", {}, await one.context(ANA))

    async def test_what_is_kept_is_recalled_line_by_line(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, _):
            await self.kept(subject, one)
            found = await subject.found(one, ANA)
            assert "Porto" in "\n".join(found)
            assert [line for line in found if not _LINE.fullmatch(line)] == []
            assert len({line.split(" ")[0] for line in found}) == len(found), "a token names one memory"

    async def test_another_scope_sees_nothing(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, _):
            await self.kept(subject, one)
            assert "Porto" not in "\n".join(await subject.found(one, BEN))
            assert "Porto" in "\n".join(await subject.found(one, BEN, ANA)), "who sees both sees it"

    async def test_it_survives_a_restart_and_is_told_once(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, _):
            await self.kept(subject, one)
            before = await subject.found(one, ANA)
        async with self.life(subject, home) as (one, _):
            await one.memory.start()
            await one.over(await one.session())
            assert await subject.found(one, ANA) == before

    @pytest.mark.parametrize("mood", ["refusing", "crashing", "hanging"])
    async def test_what_it_does_never_reaches_the_turn(self, subject: Subject, home: Path, mood: Mood) -> None:
        async with self.life(subject, home, 0.1) as (one, provider):
            provider.mood = mood
            assert await subject.found(one, ANA) == []
            assert await one.memory.system_prompt_block(await one.context(ANA)) == ""
            await asyncio.gather(*self._ended(one))
        async with self.life(subject, home) as (one, provider):
            await self.kept(subject, one)
            assert "Porto" in "\n".join(await subject.found(one, ANA)), "and it works again after it"

    async def test_every_hook_can_be_called(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, provider):
            await self.kept(subject, one)
            context = await one.context(ANA)
            rows = await one.conversations.history(context.session, frozenset({ANA}))
            given: Mapping[str, object] = {
                "folder": home,
                "text": ASKED,
                "context": context,
                "session": context.session,
                "messages": rows,
                "key": "twice",
                "new_id": context.session.id,
                "parent_id": None,
                "reason": "new",
                "task": "add",
                "result": "3",
                "forgotten": Forgotten(scope=ANA, messages=(10**6,)),
                "change": NoteChange(scope=ANA, target="user", action="add", before=None, after="x", at=context.now),
            }
            for name, hook in inspect.getmembers(MemoryProvider, inspect.iscoroutinefunction):
                if name in ("call_tool", "initialize", "shutdown"):
                    continue
                arguments = [given[part] for part in list(inspect.signature(hook).parameters)[1:]]
                answer = await getattr(provider.real, name)(*arguments)
                assert answer is None or isinstance(answer, bool | str | Sequence), name

    async def test_nothing_of_what_is_scheduled_is_kept(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, provider):
            provider.mood = "crashing"
            await one.turn(SAID, platform="cron")
            assert await one.outbox.counts() == {"held": 0, "due": 0, "dead": 0}
            assert one.memory.states[provider.name] == "works", "it was not even called"

    @staticmethod
    def _ended(one: Remembrance) -> list[asyncio.Task[Any]]:
        searches = one.memory.searches()
        for search in searches:
            search.cancel()
        return [asyncio.ensure_future(_quietly(search)) for search in searches]


class ServiceContract(ProviderContract):
    """What is plugged in keeps copies outside of state.db, which have to go as well."""

    async def test_what_is_erased_is_erased_there_and_what_was_not_stays(self, subject: Subject, home: Path) -> None:
        async with self.life(subject, home) as (one, _):
            await self.kept(subject, one)
            await one.turn("My sister Ines has a dog called Rex.")
            session = await one.session()
            rows = await one.conversations.history(session, frozenset({ANA}))
            before = len(one.ends)
            assert await one.copies.forget(frozenset({ANA}), [row.id for row in rows if row.text == SAID])
            one.courier.wake()
            await one.carried(before + 2)
            found = "\n".join(await subject.found(one, ANA))
            assert "Porto" not in found
            assert "Rex" in found


async def _quietly(task: asyncio.Task[Any]) -> None:
    await asyncio.wait([task])
