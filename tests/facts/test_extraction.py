"""Facts out of a turn: whose words count, what a model may give, and what is dropped."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from core.errors import ModelError
from core.models.claude import Claude
from core.store.sqlite.database import Database
from core.types import Message, Sender
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import fact_reader
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.samples import NOON, message
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

MOVED = {
    "message": 1,
    "content": "I moved to Porto in May",
    "kind": "identity",
    "about": "me",
    "attribute": "home",
    "value": "Porto",
    "names": ["Porto"],
    "since": "2026-05",
}


def turn(*texts: str) -> list[Message]:
    said = [message(1, text, id=number) for number, text in enumerate(texts, 1)]
    return [
        *said,
        Message(
            role="assistant", text="I live in the cloud.", session_id=1, created_at=NOON, id=90
        ),
    ]


async def read(database: Database, answer: object, *texts: str) -> list[Any]:
    """What is taken out of a model's answer about a turn."""
    given = answer if isinstance(answer, str) else json.dumps(answer)
    extraction = fact_reader(database, ScriptedModel(says(given)))
    found = await extraction.find_candidates(turn(*(texts or ("I moved to Porto in May",))))
    return [(one.source.id, one.claim) for one in found if not one.approval_reason]


async def test_model_extracts_a_stated_fact_with_attribute_value_and_start_date(
    database: Database,
) -> None:
    ((source, claim),) = await read(database, [MOVED])
    assert source == 1
    assert (claim.content, claim.attribute, claim.value, claim.entities) == (
        "I moved to Porto in May", "me|home", "porto", ("Porto",),
    )  # fmt: skip
    assert (claim.valid_from, claim.precision) == (datetime(2026, 4, 30, 23, tzinfo=UTC), "month")


async def test_model_answer_with_its_list_in_a_code_block_is_read(database: Database) -> None:
    assert len(await read(database, f"Here:\n```json\n{json.dumps([MOVED])}\n```")) == 1


@pytest.mark.parametrize(
    "answer",
    ["", "none", "[", "{}", "[1]", '[{"message": 1}]', [{**MOVED, "kind": "secret"}], [{**MOVED, "message": "1"}],
     [{**MOVED, "content": "x" * 401}], [{**MOVED, "content": "!"}], [{**MOVED, "since": "in May"}],
     "[" * 5000],
)  # fmt: skip
async def test_unreadable_answer_isnt_asked_for_again_and_rules_read_the_messages(
    database: Database, answer: object
) -> None:
    given = answer if isinstance(answer, str) else json.dumps(answer)
    model = ScriptedModel(says(given), says(json.dumps([MOVED])))
    found = await fact_reader(database, model).find_candidates(
        turn("I moved to Porto in May", "The weather is fine today")
    )
    assert [(one.source.id, one.claim.value, one.origin) for one in found] == [(1, "porto", "rule")]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "half",
    [
        json.dumps([MOVED, {"message": 2, "kind": "secret"}]),
        json.dumps([MOVED])[:-1] + ', {"mess',
    ],
)
async def test_facts_in_a_partly_unreadable_answer_are_kept_and_rules_read_the_rest(
    database: Database, half: str
) -> None:
    rows = turn("I moved to Porto in May", "I like green tea, mostly", "I work at Siemens now")
    model = ScriptedModel(says(half))
    found = await fact_reader(database, model).find_candidates(rows)
    assert [(one.source.id, one.origin) for one in found] == [(1, "model"), (3, "rule")]
    assert len(model.requests) == 1


async def test_empty_list_from_the_model_is_accepted_as_an_answer(database: Database) -> None:
    model = ScriptedModel(says("[]"))
    assert await fact_reader(database, model).find_candidates(turn("I moved to Porto in May")) == []
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"content": "The person owns a yacht in Monaco"},
        {"names": ["Monaco"]},
        {"value": "Monaco"},
        {"message": 2},
        {"message": 0},
    ],
)
async def test_fact_of_the_model_without_evidence_is_dropped(
    database: Database, change: dict[str, object]
) -> None:
    assert await read(database, [{**MOVED, **change}]) == []
    assert len(await read(database, [{**MOVED, **change}, MOVED])) == 1


@pytest.mark.parametrize(
    ("quote", "doubts"),
    [
        ("Moved  to Porto", ["no one here has typed “Monaco”"]),
        ("moved to Monaco", []),
        ("", []),
        (" ", []),
    ],
)
async def test_fact_without_evidence_but_with_a_quote_waits_for_approval(
    database: Database, quote: str, doubts: list[str]
) -> None:
    told = {**MOVED, "content": "I moved to Monaco", "value": "Monaco", "names": [], "quote": quote}
    model = ScriptedModel(says(json.dumps([told])))
    found = await fact_reader(database, model).find_candidates(turn("I moved to Porto in May"))
    assert [one.approval_reason for one in found] == doubts


async def test_future_start_date_from_the_model_is_left_out_of_a_fact(database: Database) -> None:
    ((_, claim),) = await read(database, [{**MOVED, "since": "2027-05"}])
    assert claim.valid_from is None


async def test_fact_is_kept_without_the_start_date_that_the_model_invented(
    database: Database,
) -> None:
    ((_, claim),) = await read(
        database, [{**MOVED, "content": "I live in Porto", "since": "2019"}], "I live in Porto now"
    )
    assert (claim.value, claim.valid_from) == ("porto", None)


async def test_a_birthday_is_compared_as_a_day(database: Database) -> None:
    told = {
        **MOVED,
        "content": "My birthday is May 3rd",
        "attribute": "birthday",
        "value": "May 3rd",
        "names": [],
    }
    ((_, claim),) = await read(database, [{**told, "since": None}], "My birthday is May 3rd")
    assert claim.value == "3.5"


async def test_fact_about_another_person_gets_their_name_as_its_subject(database: Database) -> None:
    told = {**MOVED, "content": "Ana moved to Porto", "about": "Ana"}
    ((_, claim),) = await read(database, [told], "Ana moved to Porto, did I tell you")
    assert (claim.attribute, claim.entities) == ("ana|home", ("Porto", "Ana"))


async def test_fact_extraction_sends_the_model_only_words_typed_by_the_person(
    database: Database,
) -> None:
    model = ScriptedModel(says("[]"))
    bot = message(
        1, "I am a webhook in Rome", id=7, sender=Sender(id="9", name="Hook", is_anonymous=True)
    )
    rows = [
        bot,
        message(1, "/remember x y", id=8, kind="command"),
        message(1, "what the search gave: Vienna", id=9, kind="quote"),
        Message(role="tool", text="the tool says Oslo", session_id=1, created_at=NOON, id=10),
        *turn("> I live in Paris\n[attached photo: Milan.jpg]\nI painted the kitchen myself"),
    ]
    await fact_reader(database, model).find_candidates(rows)
    sent = model.sent()
    assert "I painted the kitchen myself" in sent
    assert '"from": "Ana"' in sent
    assert not [
        word
        for word in ("Rome", "Vienna", "Oslo", "Paris", "Milan", "cloud", "/remember")
        if word in sent
    ]


@pytest.mark.parametrize("text", ["ok", "thanks!", "👍", "> I live in Paris in a big house"])
async def test_text_without_a_fact_costs_no_call_of_the_model(
    database: Database, text: str
) -> None:
    model = ScriptedModel()
    assert await fact_reader(database, model).find_candidates(turn(text)) == []
    assert model.requests == []


async def test_fact_extraction_raises_the_error_of_a_model_that_fails(database: Database) -> None:
    extraction = fact_reader(database, ScriptedModel(ModelError("out of reach")))
    with pytest.raises(ModelError, match="out of reach"):
        await extraction.find_candidates(turn("I moved to Porto"))


async def test_facts_are_extracted_by_rules_when_there_is_no_model(database: Database) -> None:
    found = await fact_reader(database, None).find_candidates(
        turn("I moved to Porto", "Where do I live?")
    )
    assert [(one.source.id, one.claim.value, one.origin) for one in found] == [(1, "porto", "rule")]


async def test_facts_are_extracted_through_the_real_client(database: Database) -> None:
    async with MessagesApi([json.dumps([MOVED])], key="sk-ant-test") as api:
        claude = Claude(api_key="sk-ant-test", base_url=api.url, clock=SteadyClock())
        try:
            found = await fact_reader(database, claude, "claude-haiku-5-5").find_candidates(
                turn("I moved to Porto in May")
            )
        finally:
            await claude.close()
    assert [one.claim.value for one in found] == ["porto"]
    assert api.refusals == []
