"""Putting a fact right: what was said before stays in the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.store.facts.rows import Fact
from core.types import Address, Scope
from tests.fixtures.forgetting import remains_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

OWN = frozenset({Scope.account("telegram", "42")})
ROOM = Scope.group("telegram", "-100")
IN_ROOM = {
    "address": Address(platform="telegram", chat_id="-100"),
    "scope": ROOM,
    "is_direct": False,
}
ROOMS = 'rooms = ["telegram:-100"]\n'


async def press(
    harness: GatewayHarness, reply: KeptReply, label: str, who: str = "42", **changes: object
) -> KeptReply:
    assert reply.answer is not None
    (button,) = [button for button in reply.answer.buttons if button.label == label]
    return await harness.say(button.id, who, kind="action", **changes)


async def known(harness: GatewayHarness, scopes: frozenset[Scope] = OWN) -> list[Fact]:
    return await harness.services.facts.list_page(scopes)


async def test_repeated_fact_correction_after_a_crash_is_recorded_once(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Lisbon")
        await harness.say("/memory correct f1 I live in Braga")
        history = await harness.services.facts.list_changes(1, OWN)
        assert "Corrected" in (await harness.say("/memory correct f1 I live in Braga")).text
        assert await harness.services.facts.list_changes(1, OWN) == history


async def test_deleting_the_message_of_a_corrected_fact_keeps_only_the_correction(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Zanzibar", message_id="wrong")
        await harness.say("/memory correct f1 I live in Braga")
        await harness.say("", kind="delete", message_id="wrong")
        assert [fact.content for fact in await known(harness)] == ["I live in Braga"]
        assert "Zanzibar" not in (await harness.say("/memory why f1")).text


@pytest.mark.both_engines
async def test_forgetting_the_correction_forgets_all_of_it(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Zanzibar", message_id="wrong")
        await harness.say("/memory correct f1 I live in Timbuktu")
        await harness.say("/forget Timbuktu")
        await harness.say("yes")
        await harness.say("/forget Zanzibar")
        await harness.say("yes")
        assert await known(harness) == []
        assert await remains_of("Timbuktu", harness.services.database) == []
        assert await remains_of("Zanzibar", harness.services.database) == []


async def test_corrected_fact_reaches_a_model_that_was_told_otherwise(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say("I live in Lisbon")
        await harness.say("/new")
        await harness.say("where do I live, please?")
        assert "I live in Lisbon" in str(model.requests[-1].messages[-1])
        await harness.say("/memory correct f1 I live in Braga")
        await harness.say("and where do I live now?")
        assert "I live in Braga" in str(model.requests[-1].messages[-1])
        await harness.say("where was it that I live?")
        assert "I live in Braga" not in str(model.requests[-1].messages[-1]), "once is enough"


async def test_corrected_fact_replaces_others_as_a_statement_does(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I like tea")
        await harness.say("I like coffee")
        await harness.say("/memory correct f1 I don't like coffee")
        assert [(fact.attribute, fact.value, fact.is_open) for fact in await known(harness)] == [
            ("me|like|coffee", "dislike", True),
            ("me|like|coffee", "like", False),
        ]
        undone = await harness.say("/memory undo f1")
        assert "The fact is now:\n\n- **f1** I like tea" in undone.text
        await harness.say("I don't like tea")
        assert [fact.content for fact in await known(harness) if fact.is_open] == [
            "I don't like tea"
        ]


async def test_number_of_a_deleted_fact_is_never_given_to_another_fact(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I like tea", message_id="tea")
        card = await harness.say("/memory why f1")
        await harness.say("", message_id="tea", kind="delete")
        await harness.say("I like coffee")
        assert "no fact f1" in (await press(harness, card, "Pin")).text
        assert [(fact.id, fact.is_pinned) for fact in await known(harness)] == [(2, False)]
