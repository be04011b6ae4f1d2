"""Putting a fact right by the next message: what was said before stays in the history, the message is the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.store.actions import Actions
from core.store.facts import Fact
from core.store.notes import Author
from core.store.sqlite.database import Database
from core.types import Address, Attachment, Command, Scope
from gateway.commands.confirmations import Confirmations
from gateway.commands.context import CommandContext
from tests.fixtures.clock import SteadyClock
from tests.fixtures.corridor import Corridor, KeptReply, open_corridor
from tests.fixtures.forgetful import left_of
from tests.fixtures.samples import ANA, inbound, session
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


async def pressed_correct(corridor: Corridor) -> KeptReply:
    return await press(corridor, await corridor.say("/memory why f1"), "Correct")


async def known(corridor: Corridor, scopes: frozenset[Scope] = OWN) -> list[Fact]:
    return await corridor.services.facts.page(scopes)


async def test_the_next_message_takes_the_place_of_what_was_wrong(home: Path) -> None:
    model = ScriptedModel()
    async with open_corridor(home, model) as corridor:
        await corridor.say("I live in Lisbon")
        asked = await pressed_correct(corridor)
        assert "Your next message, a whole sentence, takes its place" in asked.text
        calls = len(model.requests)
        fixed = await corridor.say("No, I live in Braga since May", message_id="right")
        assert len(model.requests) == calls, "the model is not asked"
        assert "**f1** I live in Braga since May" in fixed.text
        assert "Before: I live in Lisbon" in fixed.text
        (fact,) = await known(corridor)
        assert (fact.origin, fact.attribute, fact.value) == ("person", "me|home", "braga")
        assert fact.valid_from is not None
        card = await corridor.say("/memory why f1")
        assert "You corrected it, last on" in card.text
        assert "corrected, before: “I live in Lisbon”" in card.text
        assert "No, I live in Braga since May" in (await press(corridor, card, "The message")).text
        await corridor.say("And what is new?")
        assert [fact.content for fact in await known(corridor)] == ["I live in Braga since May"], "learned once"
        told = [block["text"] for turn in model.requests[-1].messages for block in turn["content"]]
        assert "No, I live in Braga since May" in told, "the model knows of it"
        await corridor.say("/memory pin f1")
        assert "changed again since" in (await press(corridor, fixed, "Undo")).text, "an old button undoes nothing else"
        await corridor.say("/memory unpin f1")
        assert "I live in Lisbon" in (await press(corridor, fixed, "Undo")).text
        (fact,) = await known(corridor)
        assert (fact.origin, fact.value, fact.valid_from) == ("rule", "lisbon", None)
        assert "I live in Lisbon" in (await corridor.say(f"/recall around:{fact.message_id}")).text


@pytest.mark.parametrize("other", ["/whoami", "cancel", "Never mind!", "yes", "no", "ok thanks", "👍", "/memory facts"])
async def test_a_command_and_words_that_call_it_off_leave_it_as_it_was(home: Path, other: str) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Lisbon")
        await pressed_correct(corridor)
        assert "Corrected" not in (await corridor.say(other)).text
        assert (await corridor.say("The sea is calm")).text == "ok", "it waits no more"
        assert [fact.content for fact in await known(corridor)] == ["I live in Lisbon"]


async def test_what_is_not_the_person_s_own_sentence_is_none(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Lisbon")
        photo = Attachment(kind="photo", name="beach.jpg")
        for changes in ({"origin": "forwarded"}, {"attachments": (photo,)}):
            await pressed_correct(corridor)
            assert (await corridor.say("I live in Braga", **changes)).text == "ok"
        await pressed_correct(corridor)
        order = "Bearer 0123456789abcdef01234567 opens the lake house"
        assert "Not kept yet: it contains a key" in (await corridor.say(order)).text
        await pressed_correct(corridor)
        assert "too long for a fact" in (await corridor.say("I live in " + "x" * 500)).text
        assert "I live in Lisbon" in [fact.content for fact in await known(corridor)]


async def test_it_waits_over_a_restart(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Lisbon")
        await pressed_correct(corridor)
    async with open_corridor(home) as corridor:
        assert "**f1** I live in Braga" in (await corridor.say("I live in Braga", message_id="right")).text


async def test_it_waits_ten_minutes_and_knows_the_message_again(database: Database, clock: SteadyClock) -> None:
    caller = CommandContext(inbound=inbound("1"), scope=ANA, scopes=frozenset({ANA}), session=session(), is_owner=False)
    confirmations = Confirmations(Actions(database, clock), clock)
    command = Command(name="memory", arguments="correct f1")
    await confirmations.ask(command, caller, takes_words=True)
    said = inbound("2", text="I live in Braga")
    for _ in ("at first", "again after a crash"):
        assert await confirmations.taken(said) == replace(command, arguments="correct f1 I live in Braga")
    assert await confirmations.taken(replace(said, message_id="3")) is None
    await confirmations.ask(command, caller, takes_words=True)
    clock.advance(minutes=10)
    assert await confirmations.taken(replace(said, message_id="4")) is None


async def test_a_correction_that_comes_again_after_a_crash_is_one(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Lisbon")
        await pressed_correct(corridor)
        await corridor.say("I live in Braga", message_id="right")
        (fact,) = await known(corridor)
        history = await corridor.services.facts.history(fact.id, OWN)
        by = Author(message_id=fact.message_id)
        assert await corridor.services.facts.correct(fact.id, OWN, "I live in Braga", by) == fact
        assert await corridor.services.facts.history(fact.id, OWN) == history


async def test_when_the_old_message_goes_its_words_go_and_the_right_ones_stay(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Zanzibar", message_id="wrong")
        await pressed_correct(corridor)
        await corridor.say("I live in Braga", message_id="right")
        await corridor.say("", kind="delete", message_id="wrong")
        assert [fact.content for fact in await known(corridor)] == ["I live in Braga"]
        assert "Zanzibar" not in (await corridor.say("/memory why f1")).text
        await corridor.say("", kind="delete", message_id="right")
        assert await known(corridor) == []


async def test_forgetting_the_correction_forgets_all_of_it(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Zanzibar", message_id="wrong")
        await pressed_correct(corridor)
        await corridor.say("I live in Timbuktu", message_id="right")
        await corridor.say("/forget Timbuktu")
        await corridor.say("yes")
        await corridor.say("/forget Zanzibar")
        await corridor.say("yes")
        assert await known(corridor) == []
        assert left_of("Timbuktu", corridor.services.database.path) == []
        assert left_of("Zanzibar", corridor.services.database.path) == []


async def test_in_a_room_who_was_asked_puts_it_right_when_he_speaks_to_us(home: Path) -> None:
    async with open_corridor(home, options=ROOMS) as corridor:
        await corridor.say("/remember The rehearsal is in the barn", "7", **IN_ROOM)
        card = await corridor.say("/memory why f1", "7", **IN_ROOM)
        asked = await press(corridor, card, "Correct", "7", **IN_ROOM)
        assert "with a mention of me or as a reply to one of my messages" in asked.text
        assert (await corridor.say("The rehearsal is in the hall", "8", **IN_ROOM)).text == "ok"
        fixed = await corridor.say("The rehearsal is in the church", "7", **IN_ROOM)
        assert "**f1** Person 7: The rehearsal is in the church" in fixed.text
        card = await corridor.say("/memory why f1", "42", **IN_ROOM)
        assert "Person 7 corrected it" in card.text
        await press(corridor, card, "Correct", "42", **IN_ROOM)
        await corridor.say("The rehearsal is at sea", "42", **IN_ROOM)
        assert "Somebody here corrected it" in (await corridor.say("/memory why f1", "7", **IN_ROOM)).text


async def test_incognito_corrects_nothing(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I live in Lisbon")
        await corridor.say("/incognito")
        assert "incognito" in (await corridor.say("/memory correct f1")).text
        assert "Corrected" not in (await corridor.say("I live in Braga")).text


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
