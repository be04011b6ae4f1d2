"""Questions whose answer stands only in a note, when no model is configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from gateway.texts.catalog import load_offline_texts
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.populated_home import room

ZONE = "Europe/Lisbon"


def offline_model() -> OfflineModel:
    return OfflineModel(ZONE, load_texts=load_offline_texts)


async def ask(harness: GatewayHarness, *texts: str) -> str:
    """Send the texts one after the other. Return the answer to the last one."""
    replies = [await harness.say(text) for text in texts]
    return replies[-1].text


@pytest.mark.parametrize(
    ("before", "note", "question", "answer"),
    [
        # The first question of a conversation.
        ([], "the boiler is a Vaillant", "what boiler do I have?", "Vaillant"),
        # In a conversation whose prompt was written before the note.
        (["hello there"], "the boiler is a Vaillant", "which boiler do we have?", "Vaillant"),
        (["hello there"], "mein Arzt ist Dr. Patil", "wer ist mein Arzt?", "Dr. Patil"),
        (["hello there"], "mon code de vélo est 4471", "quel est mon code de vélo ?", "4471"),
        (["hello there"], "ボイラーはバイラント製", "ボイラーはどこの製品？", "バイラント製"),
        (["hello there"], "我的医生是王医生", "我的医生是谁？", "王医生"),
    ],
)
async def test_question_is_answered_from_a_note_whose_text_no_message_has(
    home: Path, before: list[str], note: str, question: str, answer: str
) -> None:
    async with open_gateway(home, offline_model()) as harness:
        told = await ask(harness, *before, f"/memory add {note}", question)
        assert answer in told
        told = await ask(harness, "/new", question)
        assert answer in told


async def test_question_in_german_names_the_notes_in_german(home: Path) -> None:
    async with open_gateway(home, offline_model()) as harness:
        told = await ask(
            harness, "/language de", "/memory add mein Arzt ist Dr. Patil", "wer ist mein Arzt?"
        )
        assert "In deinen Notizen: „mein Arzt ist Dr. Patil“" in told


async def test_answer_names_a_note_as_such_and_leaves_out_notes_about_other_things(
    home: Path,
) -> None:
    async with open_gateway(home, offline_model()) as harness:
        told = await ask(
            harness,
            "hello there",
            "/memory add the boiler is a Vaillant",
            "/memory add the bins go out on Mondays",
            "what boiler do I have?",
        )
        assert told.startswith("- In your notes: “the boiler is a Vaillant”")
        assert "bins" not in told


@pytest.mark.parametrize(
    "change", ["/memory remove boiler", "/memory replace boiler => the boiler is a Bosch"]
)
async def test_note_that_was_removed_or_replaced_answers_no_question(
    home: Path, change: str
) -> None:
    async with open_gateway(home, offline_model()) as harness:
        before = ["/memory add the boiler is a Vaillant", "hello there"]
        told = await ask(harness, *before, change, "yes", "what boiler do I have?")
        assert "Vaillant" not in told


async def test_note_that_repeats_a_message_is_shown_once(home: Path) -> None:
    async with open_gateway(home, offline_model()) as harness:
        told = await ask(
            harness, "remember that the boiler is a Vaillant", "/new", "what boiler do I have?"
        )
        assert told.count("Vaillant") == 1


async def test_later_statement_stands_above_the_note_that_it_outdates(home: Path) -> None:
    async with open_gateway(home, offline_model()) as harness:
        told = await ask(
            harness, "/memory add my dentist is Dr Alba", "my new dentist is Dr Berg", "/new"
        )
        told = await ask(harness, "who is my dentist?")
        assert "Dr Berg" in told.split("\n")[0]


async def test_note_of_a_person_answers_no_question_in_a_group(home: Path) -> None:
    async with open_gateway(home, offline_model()) as harness:
        await ask(harness, "/memory add the boiler is a Vaillant")
        group = room("owner", "telegram:-100")
        reply = await harness.say("what boiler do I have?", **group)
        assert "Vaillant" not in reply.text
