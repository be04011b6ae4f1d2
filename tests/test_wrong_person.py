"""Who sees what: everybody, everywhere, by every way there is, and nothing but what the rule of scopes allows.

Each place has an animal of its own in its messages, notes, facts and jobs. Whoever asks, wherever, by whatever way,
must meet the animals that are his there and no other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.records import Fact, Named
from core.types import Account, Address, Completion, Request, Scope, Sender
from tests.doubles.corridor import Corridor, KeptReply, open_corridor
from tests.doubles.scripted_model import ScriptedModel, calls, says

GROUP = Scope.room("telegram", "-100")
PRIVATE = Scope.room("discord", "555")
OPTIONS = 'rooms = ["telegram:-100", "discord:555"]\n[memory]\nmemory_chars = 20000\n'
PEOPLE = {"owner": "42", "member": "7", "other": "8", "stranger": "666", "linked": "77"}


def at(
    platform: str, who: str, chat_id: str, scope: Scope | None = None, thread_id: str | None = None
) -> dict[str, Any]:
    """What an Inbound says of the place and the person."""
    return {
        "address": Address(platform=platform, chat_id=chat_id, thread_id=thread_id),
        "scope": scope or Scope.account(platform, who),
        "sender": Sender(id=who, name=f"Person {who}"),
        "is_direct": scope is None,
    }


def direct(person: str) -> dict[str, Any]:
    who = PEOPLE[person]
    return at("discord", who, f"dm{who}") if person == "linked" else at("telegram", who, who)


def room(person: str, place: str) -> dict[str, Any]:
    who = PEOPLE[person]
    if place == "private thread":
        return at("discord", who, "9", PRIVATE, "555")
    return at("telegram", who, "-100", GROUP, "3" if place == "thread" else None)


ANIMALS: Mapping[str, dict[str, Any]] = {
    "ostrich": direct("owner"),
    "marmot": direct("member"),
    "lemur": direct("linked"),
    "otter": direct("other"),
    "raccoon": room("member", "group"),
    "tapir": room("owner", "thread"),
    "puma": room("other", "private thread"),
}
"""Where each is at home, and who spoke of it there."""

IN_GROUP = {"raccoon", "tapir"}
CASES = {
    "owner, direct chat": (direct("owner"), {"ostrich"}, {"ostrich", "tapir"}),
    "owner, group": (room("owner", "group"), IN_GROUP, set()),
    "owner, thread": (room("owner", "thread"), IN_GROUP, set()),
    "member, direct chat": (direct("member"), {"marmot", "lemur"}, {"marmot", "lemur", "raccoon"}),
    "member, group": (room("member", "group"), IN_GROUP, set()),
    "member, thread": (room("member", "thread"), IN_GROUP, set()),
    "linked, direct chat": (direct("linked"), {"marmot", "lemur"}, {"marmot", "lemur", "raccoon"}),
    "linked, private thread": (room("linked", "private thread"), {"puma"}, set()),
    "other, direct chat": (direct("other"), {"otter"}, {"otter"}),
    "stranger, direct chat": (direct("stranger"), set(), set()),
    "stranger, group": (room("stranger", "group"), IN_GROUP, set()),
}
"""Where somebody asks, what he may meet there, and what an export there may hold (with his own words in rooms)."""


@dataclass
class World:
    """A house in which everybody has spoken."""

    corridor: Corridor
    model: ScriptedModel
    sessions: list[int] = field(default_factory=list)

    async def say(self, text: str, where: dict[str, Any], *script: Completion | Callable[[Request], Completion]) -> str:
        """What the person reads, with what the model read for it."""
        self.model.script[:] = list(script)
        before = len(self.model.requests)
        reply: KeptReply = await self.corridor.say(text, **where)
        shown = "" if reply.answer is None else f"{reply.answer.text} {reply.answer.buttons}"
        files = () if reply.answer is None else reply.answer.files
        return " ".join(
            [shown, *(file.content.decode() for file in files), *map(str, self.model.requests[before:])]
        ).casefold()


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[World]:
    model = ScriptedModel()
    async with open_corridor(home, model, OPTIONS) as corridor:
        corridor.router._access._people |= {"telegram:8", "discord:77"}
        made = World(corridor, model)
        for animal, where in ANIMALS.items():
            await made.say(f"The ferry captain at the pier is called {animal}", where, says("Noted."))
            await made.say(f"/memory add the ferry pier shows a {animal}", where)
            await made.say(f"/remind tomorrow at 9 feed the {animal}", where)
            await made.say(f"/title The ferry and the {animal}", where)
            address, sender = where["address"], where["sender"]
            await corridor.house.facts.learn(
                Fact(
                    scope=where["scope"],
                    content=f"The ferry belongs to the {animal}",
                    kind="identity",
                    origin="person",
                    created_at=corridor.house.clock.now(),
                    entities=("ferry",),
                    account=Account(platform=address.platform, user_id=sender.id),
                    speaker=sender.name,
                )
            )
            session = await corridor.house.conversations.current(address)
            assert session is not None
            made.sessions.append(session.id)
            await made.say("/new", where)
        corridor.router._access._people -= {"telegram:8", "discord:77"}
        corridor.router._access._people |= {"telegram:8"}
        await join(corridor)
        yield made


async def join(corridor: Corridor) -> None:
    """Links the member's two accounts."""
    links, now = corridor.house.links, corridor.house.clock.now()
    member, linked = Account(platform="telegram", user_id="7"), Account(platform="discord", user_id="77")
    address = Address(platform="telegram", chat_id="7")
    code = await links.offer(member, address, Scope.account("telegram", "7"), now)
    link = await links.claim(
        code, Named(account=linked, name="Seven"), Address(platform="discord", chat_id="dm77"), now
    )
    await links.agree(link.id, linked, now)
    assert (await links.agree(link.id, member, now)).is_joined


async def recall(made: World, where: dict[str, Any]) -> str:
    return await made.say("/recall ferry", where) + await made.say("/recall pier captain called", where)


async def facts(made: World, where: dict[str, Any]) -> str:
    asked = calls(("facts", {"mode": "search", "query": "who does the ferry belong to"}))
    return await made.say("look into the facts", where, asked, says("done"))


async def notes(made: World, where: dict[str, Any]) -> str:
    asked = calls(("memory", {"target": "memory", "action": "list"}))
    return await made.say("/memory", where) + await made.say("list the notes", where, asked, says("done"))


async def tool(made: World, where: dict[str, Any]) -> str:
    asked = calls(("session_search", {"query": "ferry"}), ("reminder", {"action": "list"}))
    return await made.say("search it", where, asked, says("done"))


async def command(made: World, where: dict[str, Any]) -> str:
    shown = [await made.say(line, where) for line in ("/sessions", "/sessions ferry", "/cron", "/usage", "/whoami")]
    for number in range(1, len(ANIMALS) + 1):
        for line in (f"/cron pause {number}", f"/cron resume {number}"):
            shown.append(await made.say(line, where))
    return " ".join(shown)


async def prefetch(made: World, where: dict[str, Any]) -> str:
    await made.say("/new", where)
    return await made.say("Who is the captain of the ferry at the pier?", where)


async def resume(made: World, where: dict[str, Any]) -> str:
    shown = []
    for number in made.sessions:
        shown.append(await made.say(f"/sessions {number}", where))
        shown.append(await made.say("go on", where))
    return " ".join(shown)


async def cron(made: World, where: dict[str, Any]) -> str:
    """A scheduled question that was planned there."""
    cron = {**where, "address": Address(platform="cron", chat_id="99")}
    return await made.say("Who is the captain of the ferry at the pier?", cron)


async def export(made: World, where: dict[str, Any]) -> str:
    return await made.say("/export", where)


WAYS = {
    "recall": recall,
    "facts": facts,
    "notes": notes,
    "tool": tool,
    "command": command,
    "prefetch": prefetch,
    "resume": resume,
    "cron": cron,
    "export": export,
}


def met(shown: str) -> set[str]:
    return {animal for animal in ANIMALS if animal in shown}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
async def test_nobody_meets_what_is_not_his(home: Path, case: str) -> None:
    where, allowed, exported = CASES[case]
    async with world(home) as made:
        for way, ask in WAYS.items():
            shown = met(await ask(made, where))
            assert shown == (exported if way == "export" else allowed), f"{case}, by {way}"


@pytest.mark.slow
async def test_once_parted_each_has_his_own_again(home: Path) -> None:
    async with world(home) as made:
        assert met(await prefetch(made, direct("member"))) == {"marmot", "lemur"}
        await made.say("/unlink", direct("member"))
        for way, ask in WAYS.items():
            shown = met(await ask(made, direct("member")))
            assert shown == ({"marmot", "raccoon"} if way == "export" else {"marmot"}), way
        assert met(await recall(made, direct("linked"))) == set(), "he was let in with the other account only"
