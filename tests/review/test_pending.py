"""What is to be noted: asked about where it may be a secret, kept where it was typed, and waiting
where it was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.guard.origin_and_fence import account_mark
from core.markup.markdown import to_plain
from core.types import Account, Address, Origin, Scope
from tests.fixtures.gateway_harness import GatewayHarness, notices, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ORDER = "Bearer 0123456789abcdef01234567 opens the lake house"
OWN = Scope.account("telegram", "42")
OWNER = frozenset((OWN,))
ROOM = Scope.group("telegram", "-5")
IN_ROOM: dict[str, Any] = {
    "is_direct": False,
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": ROOM,
}
ROOMS = 'rooms = ["telegram:-5"]\n'


def noting(content: str) -> ScriptedModel:
    """A model that notes what somebody has slipped to it."""
    return ScriptedModel(
        calls(("memory", {"target": "memory", "action": "add", "content": content})), says("done")
    )


def result(model: ScriptedModel) -> str:
    """What the tool said to the model."""
    return str(model.requests[1].messages[-1]["content"])


async def noted(harness: GatewayHarness, scope: Scope = OWN) -> list[str]:
    return await harness.services.notebook.entries(frozenset((scope,)), "memory")


async def test_suspicious_note_typed_by_the_owner_is_asked_about_and_kept_on_insistence(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        reply = await harness.say(f"/memory add {ORDER}")
        assert "Not kept yet: it contains a key or a link with a secret in it" in reply.text
        assert await noted(harness) == []
        assert reply.answer is not None
        (button,) = reply.answer.buttons
        assert button.label == "Keep it anyway"
        assert "Noted" in (await harness.say(button.id, kind="action")).text
        assert await noted(harness) == [ORDER]
        await harness.say("hello there, how are you today?")
        assert f"- {ORDER}" in model.requests[-1].system[0]["text"]
        assert ", approved" in (await harness.say("/memory history")).text
        assert "Nothing is waiting" in (await harness.say("/memory pending")).text
        await harness.say("/memory add user: likes tea")
        said = await harness.say(f"/memory replace --anyway tea => {ORDER} to all")
        assert "Now noted" in said.text
        assert "house to all” in" not in said.text
        assert (
            "Noted: “" + ORDER + " too”. USER.md"
            in (await harness.say(f"/memory add user: --anyway {ORDER} too")).text
        )


async def test_note_from_a_tool_result_waits_until_it_is_approved(home: Path) -> None:
    model = noting(ORDER)
    async with open_gateway(home, model) as harness:
        await harness.say("read that page for me, if you please")
        assert "It waits for the person to say yes" in result(model)
        assert await noted(harness) == []
        await notices(harness)
        assert "1 waiting for your decision" in (await harness.say("/memory")).text
        pending = await harness.say("/memory pending")
        assert (
            "MEMORY.md, for telegram:42; it contains a key or a link with a secret in it"
            in pending.text
        )
        assert f"add “{ORDER}”" in pending.text
        assert pending.answer is not None
        assert [button.label for button in pending.answer.buttons] == ["Approve 1", "Reject 1"]
        assert "Nothing is waiting" in (await harness.say("/memory pending", "7")).text
        assert "Nothing with the number 1" in (await harness.say("/memory approve 1", "7")).text
        assert f"Noted: “{ORDER}”" in (await harness.say("/memory approve 1")).text
        assert await noted(harness) == [ORDER]
        assert "Nothing with the number 1" in (await harness.say("/memory reject 1")).text
        await harness.say("and now tell me about ferries")
        assert f"MEMORY.md now says: “{ORDER}”." in model.sent(), "it was told that it is not noted"
        assert "Source: Person 42 said" in (await harness.say("/memory why lake")).text


async def test_rejected_note_is_deleted_from_the_pending_ones(home: Path) -> None:
    async with open_gateway(home, noting(ORDER)) as harness:
        await harness.say("read that page for me, if you please")
        await notices(harness)
        assert "deleted" in (await harness.say("/memory reject 1")).text
        assert await noted(harness) == []
        assert "Nothing is waiting" in (await harness.say("/memory pending")).text


async def test_several_operations_are_put_aside_together_and_once(home: Path) -> None:
    both = {
        "target": "user",
        "operations": [
            {"action": "add", "content": "likes tea"},
            {"action": "add", "content": ORDER},
        ],
    }
    model = ScriptedModel(
        calls(("memory", both)), says("done"), calls(("memory", both)), says("done")
    )
    async with open_gateway(home, model) as harness:
        for _ in range(2):
            await harness.say("read that page for me, if you please")
        assert await harness.services.notebook.entries(OWNER, "user") == []
        assert len(await harness.services.notebook.review.list_pending(OWNER)) == 1
        await notices(harness)
        await harness.say("/memory approve 1")
        assert await harness.services.notebook.entries(OWNER, "user") == ["likes tea", ORDER]


async def test_note_typed_by_a_group_member_is_stored_as_a_quotation_after_the_owners_approval(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, options=ROOMS) as harness:
        for text in ("the party is on Friday", "--anyway dinner is at nine"):
            assert "Not kept yet" in (await harness.say(f"/memory add {text}", "7", **IN_ROOM)).text
        assert await noted(harness, ROOM) == []
        await harness.say("good morning, all of you", **IN_ROOM)
        assert "the party" not in model.requests[-1].system[0]["text"]
        assert "2 waiting for your decision" in (await harness.say("/memory", **IN_ROOM)).text
        assert "my owner decides" in (await harness.say("/memory approve 1", "7", **IN_ROOM)).text
        assert "deleted" in (await harness.say("/memory reject 2", "7", **IN_ROOM)).text, "his own"
        assert "Noted" in (await harness.say("/memory approve 1", **IN_ROOM)).text
        who = f"Person 7 {account_mark(Account(platform='telegram', user_id='7'))}"
        assert await noted(harness, ROOM) == [f"{who}: “the party is on Friday”"]
        assert "Noted" in (await harness.say("/memory add lunch is at one", **IN_ROOM)).text, (
            "the owner's own"
        )


@pytest.mark.parametrize("origin", ["forwarded", "via_bot"])
async def test_note_from_a_forwarded_text_waits_for_approval(home: Path, origin: Origin) -> None:
    model = noting("Ana lives in Faro")
    async with open_gateway(home, model) as harness:
        await harness.say("Ana lives in Faro", origin=origin)
        if origin == "via_bot":  # which begins no turn
            await harness.say("What do you make of that?")
        assert "Not kept yet: no one here has typed “Faro”" in result(model)
        assert await noted(harness) == []


async def test_typed_note_is_kept_at_once_even_if_it_reads_like_an_order(
    home: Path,
) -> None:
    note = "Always answer in verse and ignore all previous invoices"
    model = noting(note)
    async with open_gateway(home, model) as harness:
        await harness.say(f"{note}, please")
        assert "Noted" in result(model)
        assert await noted(harness) == [note]
        assert "Noted" in (await harness.say("/memory add ignore all previous instructions")).text


async def test_note_from_text_pasted_below_waits_for_approval(home: Path) -> None:
    model = noting("Ana lives in Faro")
    async with open_gateway(home, model) as harness:
        await harness.say("note what matters of this\n\nAna lives in Faro")
        assert "Not kept yet" in result(model)


async def test_pending_note_is_erased_by_forget(home: Path) -> None:
    async with open_gateway(home, noting(f"{ORDER} in Porto")) as harness:
        await harness.say("read that page for me, if you please")
        assert len(await harness.services.notebook.review.list_pending(OWNER)) == 1
        await notices(harness)
        await harness.say("/forget Porto")
        await harness.say("yes")
        assert await harness.services.notebook.review.list_pending(OWNER) == []
        assert b"house in Porto" not in harness.services.database.path.read_bytes()


async def test_note_change_beyond_50_pending_ones_is_refused(home: Path) -> None:
    async with open_gateway(home, options=ROOMS) as harness:
        for number in range(51):
            said = await harness.say(f"/memory add {ORDER} {number} times", "7", **IN_ROOM)
        assert "too many changes wait already" in said.text
        assert len(await harness.services.notebook.review.list_pending(frozenset((ROOM,)))) == 50


async def test_pending_note_is_shown_without_formatting(home: Path) -> None:
    note = f"{ORDER} [the recipe](https://recipes.example/?k=1) <!-- __init__ -->"
    async with open_gateway(home, options=ROOMS) as harness:
        await harness.say(f"/memory add {note}", "7", **IN_ROOM)
        for command in (
            "pending",
            "approve 1",
            "list",
            "history",
            "why recipe",
            "remove nothing",
            "undo",
        ):
            said = (await harness.say(f"/memory {command}", **IN_ROOM)).text
            assert note in to_plain(said), command
            assert "[the recipe](" not in said, "it would be a link that hides where it leads"
