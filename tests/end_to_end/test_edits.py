"""Putting a fact right: what was said before stays in the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.store.facts import Fact
from core.types import Address, Scope
from tests.fixtures.corridor import Corridor, KeptReply, open_corridor
from tests.fixtures.forgetful import left_of
from tests.fixtures.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

OWN = frozenset({Scope.account("telegram", "42")})
ROOM = Scope.room("telegram", "-100")
IN_ROOM = {"address": Address(platform="telegram", chat_id="-100"), "scope": ROOM, "is_direct": False}
ROOMS = 'rooms = ["telegram:-100"]\n'


async def press(corridor: Corridor, reply: KeptReply, label: str, who: str = "42", **changes: object) -> KeptReply:
    assert reply.answer is not None
    (button,) = [button for button in reply.answer.buttons if button.label == label]
    return await corridor.say(button.id, who, kind="action", **changes)


async def known(corridor: Corridor, scopes: frozenset[Scope] = OWN) -> list[Fact]:
    return await corridor.services.facts.page(scopes)


async def test_a_correction_that_comes_again_after_a_crash_is_one(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Lisbon")
        await corridor.say("/memory correct f1 I live in Braga")
        history = await corridor.services.facts.history(1, OWN)
        assert "Corrected" in (await corridor.say("/memory correct f1 I live in Braga")).text
        assert await corridor.services.facts.history(1, OWN) == history


async def test_when_the_old_message_goes_its_words_go_and_the_right_ones_stay(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Zanzibar", message_id="wrong")
        await corridor.say("/memory correct f1 I live in Braga")
        await corridor.say("", kind="delete", message_id="wrong")
        assert [fact.content for fact in await known(corridor)] == ["I live in Braga"]
        assert "Zanzibar" not in (await corridor.say("/memory why f1")).text


async def test_forgetting_the_correction_forgets_all_of_it(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Zanzibar", message_id="wrong")
        await corridor.say("/memory correct f1 I live in Timbuktu")
        await corridor.say("/forget Timbuktu")
        await corridor.say("yes")
        await corridor.say("/forget Zanzibar")
        await corridor.say("yes")
        assert await known(corridor) == []
        assert left_of("Timbuktu", corridor.services.database.path) == []
        assert left_of("Zanzibar", corridor.services.database.path) == []


async def test_what_is_put_right_reaches_a_model_that_was_told_otherwise(home: Path) -> None:
    model = ScriptedModel()
    async with open_corridor(home, model) as corridor:
        await corridor.say("I live in Lisbon")
        await corridor.say("/new")
        await corridor.say("where do I live, please?")
        assert "I live in Lisbon" in str(model.requests[-1].messages[-1])
        await corridor.say("/memory correct f1 I live in Braga")
        await corridor.say("and where do I live now?")
        assert "I live in Braga" in str(model.requests[-1].messages[-1])
        await corridor.say("where was it that I live?")
        assert "I live in Braga" not in str(model.requests[-1].messages[-1]), "once is enough"


async def test_what_is_put_right_contradicts_as_what_is_said_does(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I like tea")
        await corridor.say("I like coffee")
        await corridor.say("/memory correct f1 I don't like coffee")
        assert [(fact.attribute, fact.value, fact.is_open) for fact in await known(corridor)] == [
            ("me|like|coffee", "dislike", True),
            ("me|like|coffee", "like", False),
        ]
        undone = await corridor.say("/memory undo f1")
        assert "It is again:\n\n- **f1** I like tea" in undone.text
        await corridor.say("I don't like tea")
        assert [fact.content for fact in await known(corridor) if fact.is_open] == ["I don't like tea"]


async def test_the_name_of_a_fact_never_means_another(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I like tea", message_id="tea")
        card = await corridor.say("/memory why f1")
        await corridor.say("", message_id="tea", kind="delete")
        await corridor.say("I like coffee")
        assert "no fact f1" in (await press(corridor, card, "Pin")).text
        assert [(fact.id, fact.is_pinned) for fact in await known(corridor)] == [(2, False)]
