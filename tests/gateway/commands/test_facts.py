"""/remember, and the facts in /memory: shown in pages, explained, corrected, pinned, forgotten,
taken back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.types import Address, Scope
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.forgetting import left_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")
ROOMS = 'rooms = ["telegram:-100"]\n'


async def in_room(harness: GatewayHarness, text: str, who: str) -> KeptReply:
    address = Address(platform="telegram", chat_id="-100")
    return await harness.say(text, who, address=address, scope=ROOM, is_direct=False)


def labels(reply: KeptReply) -> list[str]:
    assert reply.answer is not None
    return [button.label for button in reply.answer.buttons]


async def press(harness: GatewayHarness, reply: KeptReply, label: str) -> KeptReply:
    assert reply.answer is not None
    (button,) = [button for button in reply.answer.buttons if button.label == label]
    return await harness.say(button.id, kind="action")


async def test_remember_command_stores_a_fact_and_closes_the_fact_it_contradicts(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        assert "**f1** I live in Lisbon" in (await harness.say("/remember I live in Lisbon.")).text
        both = await harness.say(
            "/remember I moved to Porto in May. The key hangs behind the clock"
        )
        assert "**f2** I moved to Porto in May (since May" in both.text
        assert "**f3** The key hangs behind the clock" in both.text
        shown = (await harness.say("/memory")).text
        assert shown.index("What I noted") < shown.index("What I know") < shown.index("About you")
        assert (
            shown.index("f2")
            < shown.index("No longer true")
            < shown.index("I live in Lisbon (until May")
        )
        assert "Say what to remember" in (await harness.say("/remember")).text
        assert "too long for a fact: 500" in (await harness.say("/remember " + "x" * 500)).text
        order = "/remember that you must Bearer 0123456789abcdef01234567 opens the lake house"
        assert "Not kept yet: it contains a key" in (await harness.say(order)).text
        assert (
            len(
                await harness.services.facts.list_page(
                    frozenset((Scope.account("telegram", "42"),))
                )
            )
            == 3
        )


async def test_fact_card_shows_its_source_and_offers_pinning_and_correction(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Porto")
        page = await harness.say("/memory facts")
        assert labels(page) == ["f1"]
        card = await press(harness, page, "f1")
        assert "You said it, last on" in card.text
        assert "70 % sure" in card.text
        assert "learned" in card.text
        assert labels(card) == ["Forget", "Pin", "Right", "Wrong", "Correct", "The message"]
        assert "I live in Porto" in (await press(harness, card, "The message")).text
        assert "📌" in (await press(harness, card, "Pin")).text
        assert "What is right?" in (await press(harness, card, "Correct")).text
        fixed = await harness.say("/memory correct f1 I live in Braga")
        assert "I live in Braga" in fixed.text
        assert "I live in Braga" in (await harness.say("/memory why F1")).text
        assert "pinned" in (await harness.say("/memory why f1")).text
        assert (
            "The fact is now:\n\n- **f1** 📌 I live in Porto"
            in (await press(harness, fixed, "Undo")).text
        )
        assert "I live in Braga" in (await harness.say("/memory undo f1")).text, (
            "an undo is a change"
        )


async def test_rating_a_fact_right_or_wrong_changes_its_confidence_until_undone(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Porto")
        card = await harness.say("/memory why f1")
        assert "77 % sure" in (await press(harness, card, "Right")).text
        assert "39 % sure" in (await press(harness, card, "Wrong")).text
        assert "rated: called wrong" in (await harness.say("/memory why f1")).text
        await harness.say("/memory undo f1")
        assert "77 % sure" in (await harness.say("/memory why f1")).text


async def test_confirmed_forgetting_of_a_fact_repeated_after_a_crash_reports_success(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Zanzibar")
        await harness.say("/memory forget f1")
        (kept,) = await harness.services.database.read(
            lambda connection: connection.execute(
                "SELECT arguments FROM actions WHERE address IS NOT NULL"
            ).fetchall()
        )
        assert "Zanzibar" not in kept["arguments"], "what waits for a yes has no words"
        assert "Forgotten" in (await harness.say("yes")).text
        assert "There's no fact f1" in (await harness.say(f"/memory {kept['arguments']}")).text
        assert "There's no fact f1" in (await harness.say("/memory forget f1 --confirmed")).text


async def test_fact_is_not_forgotten_by_a_typed_confirmation(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Zanzibar")
        await harness.say("/memory forget f1")
        (list_row,) = await harness.services.database.fetch_all("SELECT id FROM erasures")
        for token in ("", list_row["id"]):
            asked = await harness.say(f"/memory forget f1 --confirmed {token}")
            assert texts.CONFIRM_ERASURE in asked.text
        assert "Zanzibar" in (await harness.say("/facts")).text


async def test_learned_fact_is_taken_back_by_undo(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/remember The key hangs behind the clock")
        assert "no longer know" in (await harness.say("/memory undo f1")).text
        assert "Nothing yet" in (await harness.say("/memory facts")).text
        assert "There's no fact f1" in (await harness.say("/memory undo f1")).text


async def test_forgetting_a_fact_is_asked_and_takes_the_message_along(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Zanzibar")
        await harness.say("/memory correct f1 I live in Zanzibar City")
        asked = await harness.say("/memory forget f1")
        assert "Answer **yes**" in asked.text
        await harness.say("no, leave it")
        assert "f1" in (await harness.say("/memory facts")).text
        await harness.say("/memory correct f1 I live in Zanzibar")
        asked = await harness.say("/memory forget f1")
        assert "1 message" in asked.text
        assert "Forgotten: " in (await harness.say("yes")).text
        assert left_of("Zanzibar", harness.services.database.path) == []
        assert "There's no fact f1" in (await harness.say("/memory why f1")).text


async def test_list_of_facts_is_shown_in_pages_with_a_button_for_more(home: Path) -> None:
    async with open_gateway(home) as harness:
        for number in range(20):
            await harness.say(f"/remember Shelf {number} holds box {number}")
        first = await harness.say("/memory facts")
        assert labels(first) == [*(f"f{number}" for number in range(20, 12, -1)), "More"]
        second = await press(harness, first, "More")
        assert labels(second)[0] == "f12"
        # A new fact moves no fact to another page.
        await harness.say("/remember Shelf 20 holds box 20")
        last = await press(harness, second, "More")
        assert labels(last) == ["f4", "f3", "f2", "f1", "Back"]
        back = await press(harness, last, "Back")
        assert labels(back) == [*(f"f{number}" for number in range(12, 4, -1)), "Back", "More"]
        assert "no such page" in (await harness.say("/memory facts after f99")).text
        found = await harness.say("/memory facts box 7")
        assert labels(found)[0] == "f8"
        assert (
            "know nothing about “\\*zebras\\*”"
            in (await harness.say("/memory facts *zebras*")).text
        )


async def test_fact_is_neither_shown_to_nor_changed_by_others(home: Path) -> None:
    async with open_gateway(home, options=ROOMS) as harness:
        await harness.say("/remember The key hangs behind the clock")
        for command in ("why f1", "pin f1", "forget f1", "correct f1 No", "undo f1"):
            assert "There's no fact f1 here" in (await harness.say(f"/memory {command}", "7")).text
        assert "clock" not in (await harness.say("/memory", "7")).text
        assert "clock" not in (await in_room(harness, "/memory", "42")).text


async def test_fact_in_a_group_can_be_changed_by_its_author_and_the_owner_only(home: Path) -> None:
    async with open_gateway(home, options=ROOMS) as harness:
        await in_room(harness, "/remember The rehearsal is in the barn", "7")
        card = await in_room(harness, "/memory why f1", "8")
        assert "Person 7 asked me to remember it" in card.text
        assert labels(card) == []
        for command in ("pin f1", "forget f1", "correct f1 No", "undo f1"):
            assert (
                "only by my owner or by the person who said it"
                in (await in_room(harness, f"/memory {command}", "8")).text
            )
        assert "📌" in (await in_room(harness, "/memory pin f1", "7")).text
        assert "barn" in (await in_room(harness, "/memory unpin f1", "42")).text
        await in_room(harness, "/memory forget f1", "7")
        assert "Forgotten" in (await in_room(harness, "yes", "7")).text
        assert "barn" not in (await in_room(harness, "/memory", "8")).text


async def test_words_that_name_no_fact_are_for_the_notes(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/remember The key hangs behind the clock")
        answer = (await harness.say("/memory why f1 is a race")).text
        assert "clock" not in answer


async def test_a_message_that_is_answered_or_chosen_is_remembered_with_its_source(
    home: Path,
) -> None:
    async with open_gateway(home, options=ROOMS) as harness:
        await harness.say("The ladder is behind the shed", message_id="m1")
        await harness.say("/remember", reply_to="m1")
        await harness.say("/remember Ladders are tall", reply_to="m1")
        await harness.say(
            "/remember The ladder is behind the shed", reply_to="m1", is_interaction=True
        )
        second, first = await harness.services.facts.list_page(
            frozenset((Scope.account("telegram", "42"),))
        )
        assert first.content == "The ladder is behind the shed"
        assert (first.mention_count, second.message_id) == (1, None)
        await harness.say("", kind="delete", message_id="m1")
        assert "ladder is" not in (await harness.say("/memory facts")).text
        assert "Say what to remember" in (await harness.say("/remember", "7", reply_to="m1")).text


async def test_remember_command_on_a_picture_stores_its_caption(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say(
            "The ladder is behind the shed\n[attached photo: shed.jpg (image/jpeg)]",
            message_id="m1",
        )
        assert "shed.jpg" not in (await harness.say("/remember", reply_to="m1")).text
        await harness.say("[attached photo: shed.jpg]", message_id="m2")
        assert "Say what to remember" in (await harness.say("/remember", reply_to="m2")).text


async def test_remember_this_takes_the_message_it_replies_to_or_shows_the_model_the_picture(
    home: Path,
) -> None:
    model = ScriptedModel(says("The boiler is a Vaillant."))
    async with open_gateway(home, model) as harness:
        await harness.say("/remember The ladder is behind the shed", message_id="m1")
        await harness.say("/remember this", reply_to="m1")
        reply = await harness.send(b"no picture", "boiler.jpg", "photo", "/remember this")
        assert reply.text.startswith("The boiler is a Vaillant.")
        assert "remember this" in str(model.requests[0].messages[-1]["content"])
        shown = (await harness.say("/memory")).text
        assert "ladder is behind the shed" in shown
        assert "** this" not in shown.lower()


async def test_fact_remembered_later_is_dated_from_when_it_was_said(home: Path) -> None:
    async with open_gateway(home) as harness:
        said_at = datetime(2026, 3, 20, 12, tzinfo=UTC)
        await harness.say("My plan: I moved to Porto last month", message_id="m1", sent_at=said_at)
        assert (
            await harness.services.facts.list_page(frozenset((Scope.account("telegram", "42"),)))
            == []
        )
        answer = await harness.say(
            "/remember I moved to Porto last month", reply_to="m1", is_interaction=True
        )
        assert (
            "I moved to Porto last month (since February 2026; said on 20 March 2026)"
            in answer.text
        )


async def test_statement_of_another_member_is_no_fact_about_the_asker(home: Path) -> None:
    async with open_gateway(home, options=ROOMS) as harness:
        await in_room(harness, "/remember I live in Porto", "7")
        address = Address(platform="telegram", chat_id="-100")
        room = {"address": address, "scope": ROOM, "is_direct": False}
        await harness.say("I live in Faro", "8", message_id="m2", **room)
        await harness.say("/remember", "7", reply_to="m2", **room)
        facts = {
            fact.content: fact
            for fact in await harness.services.facts.list_page(frozenset((ROOM,)))
        }
        assert facts["I live in Porto"].is_open
        assert facts["Person 8: I live in Faro"].attribute is None


async def test_forwarded_statement_becomes_a_fact_only_on_request(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I live in Rome", message_id="m3", origin="forwarded")
        await harness.say("I live in Porto")
        own = frozenset((Scope.account("telegram", "42"),))
        assert [fact.content for fact in await harness.services.facts.list_page(own)] == [
            "I live in Porto"
        ]
        await harness.say("/remember", reply_to="m3")
        assert "Forwarded: I live in Rome" in (await harness.say("/memory facts")).text
        assert all(fact.is_open for fact in await harness.services.facts.list_page(own))
