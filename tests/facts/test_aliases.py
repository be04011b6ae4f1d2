""" "My sister" is Ana and the Porto office is the office: learned with the facts, used by facts and
recall, and nobody else's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.facts.claims import extract_claims
from core.facts.provider import FactRanking
from core.types import Account, Address, Scope
from tests.bench.knowing import scored
from tests.fixtures.facts_memory import fact_reader
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.samples import message
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.tables import each_row

OWN = Scope.account("telegram", "42")
ROOM = Scope.group("telegram", "-5")
IN_ROOM: dict[str, Any] = {
    "is_direct": False,
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": ROOM,
}


@each_row(
    ("text", "attribute", "value"),
    [
        ("My sister Ana is here", "me|sister|ana", "ana"),
        ("Ana is my sister", "me|sister|ana", "ana"),
        ("Eva Santos is our landlord", "me|landlord", "eva santos"),
        ("Ana ist meine Schwester", "me|sister|ana", "ana"),
        ("Ana est ma sœur", "me|sister|ana", "ana"),
        ("Ana es mi hermana", "me|sister|ana", "ana"),
        ("A Ana é minha irmã", "me|sister|ana", "ana"),
        ("We call the Porto office the office", "me|called|office", "porto office"),
        ("By the office we mean the Porto office", "me|called|office", "porto office"),
        ("We call the doctor the whole day", None, ""),
        ("I call the Porto office every day", None, ""),
        ("Ana is my sister's friend", None, ""),
    ],
)
def test_sentence_that_names_a_relative_becomes_an_alias(
    text: str, attribute: str | None, value: str
) -> None:
    read = extract_claims(text, datetime(2026, 5, 3, tzinfo=UTC), ZoneInfo("UTC"))
    assert [(one.attribute, one.value) for one in read[:1]] == (
        [(attribute, value)] if attribute else []
    )


async def test_rules_still_learn_names_of_relatives_while_a_model_reads_the_facts(
    database: Any,
) -> None:
    told: dict[str, Any] = {
        "message": 1,
        "content": "My sister Ana lives in Porto",
        "about": "Ana",
        "attribute": "home",
        "value": "Porto",
        "names": ["Ana", "Porto"],
    }
    plain: dict[str, Any] = {"message": 2, "content": "Eva is my aunt"}
    reader = fact_reader(database, ScriptedModel(says(json.dumps([told, plain]))))
    rows = [
        message(1, text, id=number)
        for number, text in enumerate([told["content"], plain["content"]], 1)
    ]
    found = [
        (one.claim.content, one.claim.attribute, one.origin)
        for one in await reader.find_candidates(rows)
    ]
    assert found == [
        ("My sister is Ana", "me|sister|ana", "rule"),
        ("Eva is my aunt", "me|aunt|eva", "rule"),
        ("My sister Ana lives in Porto", "ana|home", "model"),
        ("Eva is my aunt", None, "model"),
    ]


async def lines(harness: GatewayHarness, question: str, who: str = "42", **place: Any) -> str:
    """What goes along with a question in a new conversation."""
    assert isinstance(harness.model, ScriptedModel)
    await harness.say("/new", who, **place)
    await harness.say(question, who, **place)
    return harness.model.sent().partition("<memory-context>")[2]


async def recalled(harness: GatewayHarness, question: str, who: str = "42", **place: Any) -> str:
    return (await harness.say(f"/recall {question}", who, **place)).text.replace("*", "")


async def tell(harness: GatewayHarness, text: str, who: str = "42", **place: Any) -> None:
    """In a conversation of its own."""
    await harness.say("/new", who, **place)
    await harness.say(text, who, **place)


@pytest.mark.slow
async def test_question_by_one_name_finds_messages_that_use_the_other_name_of_it(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("Ana is my sister")
        await harness.say("We call the Porto office the office")
        await tell(harness, "Ana works at Lufthansa")
        await tell(harness, "My sister collects stamps")
        await tell(harness, "The Porto office closes at six on Fridays")
        assert "Ana works at Lufthansa" in await lines(harness, "Where does my sister work?")
        assert "My sister collects stamps" in await lines(
            harness, "What has Ana gathered these days?"
        )
        assert "Ana works at" in await recalled(harness, "Which company does my sister know?")
        assert "My sister collects" in await recalled(harness, "Has Ana any hobbies to speak of?")
        assert "closes at six" in await recalled(
            harness, "Until what hour can one visit the office?"
        )
        assert "Ana is my sister" in (await harness.say("/facts")).text


@pytest.mark.slow
async def test_alias_is_forgotten_with_the_message_that_said_it(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("Ana is my sister")
        await tell(harness, "Ana has a boat in Faro")
        assert "boat in Faro" in await recalled(harness, "What does my sister own nowadays?")
        await harness.say('/forget "Ana is my sister"')
        await harness.say("yes")
        assert "boat in Faro" not in await recalled(harness, "What does my sister own nowadays?")


@pytest.mark.slow
async def test_my_sister_in_a_group_means_the_sister_of_the_person_who_asks(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(), options='rooms = ["telegram:-5"]\n') as harness:
        await tell(harness, "Ana is my sister", "42", **IN_ROOM)
        await tell(harness, "Eva is my sister", "7", **IN_ROOM)
        await tell(harness, "Ana has a boat in Faro", "42", **IN_ROOM)
        await tell(harness, "Eva has a kayak in Beja", "7", **IN_ROOM)
        for who, own, other in (("42", "boat in", "kayak in"), ("7", "kayak in", "boat in")):
            found = await recalled(harness, "What does my sister own nowadays?", who, **IN_ROOM)
            assert (own in found, other in found) == (True, False), who
        assert "boat" not in await recalled(harness, "What does my sister own nowadays?")


@pytest.mark.slow
async def test_newer_alias_replaces_the_first_until_it_is_corrected_or_forgotten(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("We call the Porto quay the spot")
        await tell(harness, "The Porto quay closes at six on Fridays")
        await tell(harness, "The Lisbon pier closes at four on Mondays")

        async def meant() -> tuple[bool, bool]:
            found = await recalled(harness, "Until what hour can one visit the spot?")
            return "at six" in found, "at four" in found

        assert await meant() == (True, False)
        await tell(harness, "We call the Lisbon pier the spot")
        assert await meant() == (False, True)
        await harness.say("/memory correct f2 We call the Porto quay the spot")
        assert await meant() == (True, False)
        question = (await harness.say("/memory forget f2")).answer
        assert question is not None
        assert question.confirm_command is not None
        await harness.say(f"/{question.confirm_command.name} {question.confirm_command.arguments}")
        await harness.say("/memory forget f1")
        await harness.say("yes")
        assert await meant() == (False, False)


@pytest.mark.slow
async def test_nickname_used_by_two_people_of_a_group_means_each_persons_own_place(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(), options='rooms = ["telegram:-5"]\n') as harness:
        await tell(harness, "We call the Porto quay the spot", "42", **IN_ROOM)
        await tell(harness, "We call the Lisbon pier the spot", "7", **IN_ROOM)
        await tell(harness, "The Porto quay closes at six on Fridays", "42", **IN_ROOM)
        await tell(harness, "The Lisbon pier closes at four on Mondays", "7", **IN_ROOM)
        for who, own, other in (("42", "at six", "at four"), ("7", "at four", "at six")):
            found = await recalled(
                harness, "Until what hour can one visit the spot?", who, **IN_ROOM
            )
            assert (own in found, other in found) == (True, False), who


async def test_circular_aliases_do_not_loop_in_recall(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("We call the quay the pier")
        await harness.say("We call the pier the quay")
        await harness.say("We call Ana Ana")
        await tell(harness, "The pier closes at six on Fridays")
        assert "at six" in await recalled(harness, "Until what hour can one visit the quay?")


async def test_alias_belongs_to_the_person_who_asks(database: Any) -> None:
    from core.store.facts.facts import find_aliases

    nobody = await database.read(
        lambda connection: find_aliases(connection, "my sister", frozenset((OWN,)), None)
    )
    member = Account(platform="telegram", user_id="7")
    other = await database.read(
        lambda connection: find_aliases(connection, "my sister", frozenset((ROOM,)), member)
    )
    assert (nobody, other) == ([], [])


@pytest.mark.slow
async def test_alias_ranking_keeps_the_right_first_fact_for_88_percent_of_questions(
    tmp_path: Path,
) -> None:
    _, scores = await scored(tmp_path, {"default": FactRanking()})
    assert sum(is_first for _, is_first, _ in scores["default"]) >= 0.88 * len(scores["default"])
