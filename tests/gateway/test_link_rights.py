"""Linking grants no rights of the owner's: not by any way, at any moment, with any of his
accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.types import Account, Address, Scope, Sender
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says
from tests.gateway.commands.test_links import (
    MEMBER,
    OTHER,
    OWNER,
    code_of,
    let_in,
    link,
    notices,
    on_discord,
)

pytestmark = pytest.mark.slow

ROOM: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": Scope.group("telegram", "-100"),
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
    ("facts", {"mode": "update", "fact_id": 1, "content": "The regatta belongs to Max"}),
    ("facts", {"mode": "remove", "fact_id": 1}),
    ("session_search", {"query": "lagoon"}),
)


async def furnish(harness: GatewayHarness, model: ScriptedModel) -> None:
    """The owner has things in a room that nobody else may change, and a secret in his direct
    chat."""
    order = "Bearer 0123456789abcdef01234567 opens the lake house"
    await harness.say("The lagoon is my secret")
    await harness.say("/memory add the regatta is on Sunday", **ROOM)
    await harness.say("/remember The regatta belongs to Zoe", **ROOM)
    await harness.say("/remind tomorrow at 9 call Ana", **ROOM)
    model.script[:] = [
        calls(("memory", {"target": "memory", "action": "add", "content": order})),
        says("ok"),
    ]
    await harness.say("note it", **ROOM)
    await notices(harness)


async def granted(harness: GatewayHarness, model: ScriptedModel) -> list[str]:
    """What the member is answered to everything that only the owner may do."""
    told = []
    for text, where in OWNERS_ONLY:
        told.append(
            (await harness.say(text, "7", **where)).text.replace(" 2 of your", " 1 of your")
        )
    for name, arguments in TOOLS:
        model.script[:] = [calls((name, arguments)), says("done")]
        await harness.say("do it", "7", **ROOM)
        content = model.requests[-1].messages[-1]["content"]
        told += [str(block["content"]) for block in content if block["type"] == "tool_result"]
    return [text.partition('"took_ms"')[0] for text in told]


async def test_linking_accounts_never_gives_a_member_the_owners_rights(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, OPTIONS) as harness:
        await furnish(harness, model)
        before = await granted(harness, model)
        assert len(before) == len(OWNERS_ONLY) + len(TOOLS)
        assert not any("lagoon is" in text for text in before)

        await harness.services.people.set_owner([OWNER, OTHER], [])
        code = await code_of(harness)
        for where in (TERMINAL, on_discord(), {}):
            assert (
                "so it can't be linked here" in (await harness.say(f"/link {code}", **where)).text
            )
            assert "so it can't be linked here" in (await harness.say("/link", **where)).text
            assert "so it can't be linked here" in (await harness.say("/unlink", **where)).text
            await harness.say("yes", **where)
        await harness.say("yes", "7")
        await notices(harness)
        assert await harness.services.people.load_visible_scopes(
            Scope.account("telegram", "7")
        ) == {Scope.account("telegram", "7")}
        assert await granted(harness, model) == before


async def test_account_linked_with_a_new_owner_account_gets_no_owner_rights(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, OPTIONS) as harness:
        await furnish(harness, model)
        before = await granted(harness, model)
        await link(harness)
        await harness.services.people.set_owner([OWNER, OTHER], [])
        direct = Scope.account("telegram", "7")
        assert (await harness.services.people.load_access(OTHER, direct)).is_owner
        assert not (await harness.services.people.load_access(MEMBER, direct)).is_owner
        assert await harness.services.people.load_visible_scopes(
            Scope.account("telegram", "7")
        ) == {Scope.account("telegram", "7")}
        assert await granted(harness, model) == before


async def test_an_account_that_is_the_owners_no_more_takes_nothing_of_his_along(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("The lagoon is my secret")
        await harness.services.people.set_owner([OWNER, OTHER], [])
        await harness.services.people.set_owner([OWNER], [])
        await link(harness)
        assert (
            len(await harness.services.people.load_visible_scopes(Scope.account("telegram", "7")))
            == 2
        )
        for where in ({"who": "7"}, on_discord()):
            assert "lagoon is" not in (await harness.say("/recall lagoon", **where)).text


async def test_two_accounts_of_one_platform_can_be_linked_to_one_person(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("the boathouse key is under the fern", "7")
        await let_in(harness, Account(platform="telegram", user_id="8"))
        await harness.say(f"/link {await code_of(harness)}", "8")
        assert "I've asked" in (await harness.say("yes", "8")).text
        await notices(harness)
        assert "Your accounts are linked" in (await harness.say("yes", "7")).text
        await notices(harness)
        assert "fern" in (await harness.say("/recall boathouse", "8")).text
