"""Linking grants no rights of the owner's: not by any way, at any moment, with any of his accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.types import Address, Scope, Sender
from tests.fixtures.corridor import Corridor, open_corridor
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.commands.test_links import MEMBER, OTHER, OWNER, code_of, link, notices, on_discord

pytestmark = pytest.mark.slow

ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": Scope.room("telegram", "-100"),
    "is_direct": False,
}
OPTIONS = 'rooms = ["telegram:-100"]\n'
TERMINAL: dict[str, Any] = {
    "address": Address(platform="terminal", chat_id="local"),
    "scope": Scope.account("terminal", "local"),
    "sender": Sender(id="local", name="Me"),
}
OWNERS_ONLY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/approve", {}),
    ("/approve XXXXXXXX", {}),
    ("/status", {}),
    ("/incognito on", ROOM),
    ("/memory remove regatta", ROOM),
    ("/memory replace regatta => it is over", ROOM),
    ("/memory undo", ROOM),
    ("/memory approve 1", ROOM),
    ("/memory forget f1", ROOM),
    ("/memory wrong f1", ROOM),
    ("/cron remove 1", ROOM),
    ("/cron pause 1", ROOM),
    ("/forget Sunday", ROOM),
    ("/recall lagoon", {}),
    ("/whoami", {}),
)
"""What only the owner may do, or see, and where."""
TOOLS = (
    ("reminder", {"action": "remove", "job_id": 1}),
    ("memory", {"target": "memory", "action": "remove", "old_text": "regatta"}),
    ("facts", {"mode": "feedback", "fact_id": 1, "is_right": False}),
    ("session_search", {"query": "lagoon"}),
)


async def furnish(corridor: Corridor, model: ScriptedModel) -> None:
    """The owner has things in a room that nobody else may change, and a secret in his direct chat."""
    order = "Bearer 0123456789abcdef01234567 opens the lake house"
    await corridor.say("The lagoon is my secret")
    await corridor.say("/memory add the regatta is on Sunday", **ROOM)
    await corridor.say("/remember The regatta belongs to Zoe", **ROOM)
    await corridor.say("/remind tomorrow at 9 call Ana", **ROOM)
    model.script[:] = [calls(("memory", {"target": "memory", "action": "add", "content": order})), says("ok")]
    await corridor.say("note it", **ROOM)
    await notices(corridor)


async def granted(corridor: Corridor, model: ScriptedModel) -> list[str]:
    """What the member is answered to everything that only the owner may do."""
    told = []
    for text, where in OWNERS_ONLY:
        told.append((await corridor.say(text, "7", **where)).text.replace(" 2 of your", " 1 of your"))
    for name, arguments in TOOLS:
        model.script[:] = [calls((name, arguments)), says("done")]
        await corridor.say("do it", "7", **ROOM)
        content = model.requests[-1].messages[-1]["content"]
        told += [str(block["content"]) for block in content if block["type"] == "tool_result"]
    return [text.partition('"took_ms"')[0] for text in told]


async def test_no_way_of_linking_gives_a_member_what_is_the_owners(home: Path) -> None:
    model = ScriptedModel()
    async with open_corridor(home, model, OPTIONS) as corridor:
        await furnish(corridor, model)
        before = await granted(corridor, model)
        assert len(before) == len(OWNERS_ONLY) + len(TOOLS)
        assert not any("lagoon is" in text for text in before)

        await corridor.services.people.set_owner([OWNER, OTHER], [])
        code = await code_of(corridor)
        for where in (TERMINAL, on_discord(), {}):
            assert "never from a chat" in (await corridor.say(f"/link {code}", **where)).text
            assert "never from a chat" in (await corridor.say("/link", **where)).text
            assert "never from a chat" in (await corridor.say("/unlink", **where)).text
            await corridor.say("yes", **where)
        await corridor.say("yes", "7")
        await notices(corridor)
        assert await corridor.services.people.scopes(Scope.account("telegram", "7")) == {Scope.account("telegram", "7")}
        assert await granted(corridor, model) == before


async def test_whoever_is_linked_with_an_account_that_becomes_the_owners_stays_behind(home: Path) -> None:
    model = ScriptedModel()
    async with open_corridor(home, model, OPTIONS) as corridor:
        await furnish(corridor, model)
        before = await granted(corridor, model)
        await link(corridor)
        await corridor.services.people.set_owner([OWNER, OTHER], [])
        direct = Scope.account("telegram", "7")
        assert (await corridor.services.people.standing(OTHER, direct)).is_owner
        assert not (await corridor.services.people.standing(MEMBER, direct)).is_owner
        assert await corridor.services.people.scopes(Scope.account("telegram", "7")) == {Scope.account("telegram", "7")}
        assert await granted(corridor, model) == before


async def test_an_account_that_is_the_owners_no_more_takes_nothing_of_his_along(home: Path) -> None:
    async with open_corridor(home, ScriptedModel()) as corridor:
        await corridor.say("The lagoon is my secret")
        await corridor.services.people.set_owner([OWNER, OTHER], [])
        await corridor.services.people.set_owner([OWNER], [])
        await link(corridor)
        assert len(await corridor.services.people.scopes(Scope.account("telegram", "7"))) == 2
        for where in ({"who": "7"}, on_discord()):
            assert "lagoon is" not in (await corridor.say("/recall lagoon", **where)).text


async def test_two_accounts_of_one_platform_may_be_one(home: Path) -> None:
    async with open_corridor(home, ScriptedModel()) as corridor:
        await corridor.say("the boathouse key is under the fern", "7")
        await corridor.say(f"/link {await code_of(corridor)}", "8")
        assert "I have asked" in (await corridor.say("yes", "8")).text
        await notices(corridor)
        assert "You are one person now" in (await corridor.say("yes", "7")).text
        await notices(corridor)
        assert "fern" in (await corridor.say("/recall boathouse", "8")).text
