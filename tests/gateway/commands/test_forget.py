"""/forget in a chat: shows, asks, erases, says what went; a running conversation goes on without it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from core.types import Address, Scope
from tests.fixtures.corridor import Corridor, KeptReply, open_corridor
from tests.fixtures.forgetful import left_of
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

ROOM = Scope.room("telegram", "-100")


async def in_room(corridor: Corridor, text: str, who: str) -> KeptReply:
    address = Address(platform="telegram", chat_id="-100")
    return await corridor.say(text, who, address=address, scope=ROOM, is_direct=False)


def left(corridor: Corridor, word: str) -> list[str]:
    return left_of(word, corridor.services.database.path)


async def test_it_is_shown_asked_and_erased_with_a_receipt(home: Path) -> None:
    async with open_corridor(home, ScriptedModel(says("Zanzibar is lovely."), says("Sure."))) as corridor:
        await corridor.say("I moved to Zanzibar in May.")
        await corridor.say("/memory add Lives in Zanzibar")
        await corridor.say("/remind tomorrow at 9 buy a map of Zanzibar")
        shown = await corridor.say("/forget Zanzibar")
        assert "I moved to Zanzibar in May." in shown.text
        assert "Noted: Lives in Zanzibar" in shown.text
        assert "Reminder: buy a map of Zanzibar" in shown.text
        assert "Answer **yes**" in shown.text
        receipt = await corridor.say("yes")
        assert "Forgotten: 2 messages" in receipt.text
        assert "1 note" in receipt.text
        assert "1 reminder" in receipt.text
        assert "Nothing of it is left" in receipt.text
        assert left(corridor, "Zanzibar") == []
        assert "Zanzibar" not in (await corridor.say("/memory")).text
        assert "Nothing" in (await corridor.say("/cron")).text or "no " in (await corridor.say("/cron")).text.lower()
        assert "nothing to forget" in (await corridor.say("/forget Zanzibar")).text
        while await corridor.services.forgetting.tend():
            pass
        assert left(corridor, "Zanzibar") == [], "what was asked for is not kept either"


async def test_anything_but_yes_leaves_it(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I moved to Zanzibar in May.")
        await corridor.say("/forget Zanzibar")
        assert (await corridor.say("no, leave it")).text == "ok"
        await corridor.say("yes")
        assert "I moved to" in (await corridor.say("/recall Zanzibar")).text
        kept = await corridor.services.database.read(
            lambda connection: connection.execute("SELECT 1 FROM messages WHERE text LIKE '/forget _%'").fetchall()
        )
        assert kept == []


async def test_a_running_conversation_gets_its_prompt_anew_and_goes_on_without_it(home: Path) -> None:
    model = ScriptedModel(says("Zanzibar!"), says("Tea it is."))
    async with open_corridor(home, model) as corridor:
        await corridor.say("/memory add Lives in Zanzibar")
        await corridor.say("I moved to Zanzibar.")
        await corridor.say("I like tea.")
        assert "Zanzibar" in str(model.requests[-1].system)
        await corridor.say("/forget Zanzibar")
        await corridor.say("да")
        await corridor.say("What do I like?")
        request = model.requests[-1]
        assert "Zanzibar" not in str(request)
        assert "I like tea." in str(request.messages)
        assert "Tea it is." in str(request.messages)
        await corridor.say("And else?")
        before, after = model.requests[-2:]
        assert after.system == before.system, "one miss, then the prefix holds again"


async def test_in_a_room_a_member_forgets_his_own_words_only(home: Path) -> None:
    async with open_corridor(home, options='rooms = ["telegram:-100"]\n') as corridor:
        await in_room(corridor, "Zanzibar is mine", "7")
        await in_room(corridor, "Zanzibar is ours", "8")
        shown = await in_room(corridor, "/forget Zanzibar", "7")
        assert "1 message of your own words here" in shown.text
        assert "ours" not in shown.text
        assert (await in_room(corridor, "yes", "8")).text == "ok", "he was not asked"
        assert "Forgotten: 1 message" in (await in_room(corridor, "yes", "7")).text
        assert "is ours" in (await in_room(corridor, "/recall Zanzibar", "8")).text
        assert "nothing that you said here" in (await in_room(corridor, "/forget Zanzibar", "7")).text


async def test_what_another_does_while_the_question_waits_is_his(home: Path) -> None:
    async with open_corridor(home, options='rooms = ["telegram:-100"]\n') as corridor:
        await in_room(corridor, "I like Zanzibar", "7")
        await in_room(corridor, "/forget Zanzibar", "7")
        await in_room(corridor, "/remember the wifi is called Lighthouse", "42")
        assert "Forgotten" in (await in_room(corridor, "yes", "7")).text
        assert "Lighthouse" in (await in_room(corridor, "/memory", "42")).text
        assert left(corridor, "Zanzibar") == []


async def test_nobody_can_confirm_for_another_by_typing_the_token(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I moved to Zanzibar in May.")
        asked = await corridor.say("/forget Zanzibar")
        assert asked.answer is not None
        lists = await corridor.services.database.read(
            lambda connection: [row[0] for row in connection.execute("SELECT id FROM erasures")]
        )
        assert "nothing was erased" in (await corridor.say(f"/forget --confirmed {lists[0]}", "7")).text
        assert left(corridor, "Zanzibar")
        assert "Say what to forget" in (await corridor.say("/forget")).text


async def test_the_button_says_yes_and_carries_nothing(home: Path) -> None:
    async with open_corridor(home) as corridor:
        await corridor.say("I moved to Zanzibar in May.")
        asked = await corridor.say("/forget Zanzibar")
        assert asked.answer is not None
        (button,) = asked.answer.buttons
        assert button.label == "Yes"
        assert "Forgotten" in (await corridor.say(button.id, kind="action")).text
        assert left(corridor, "Zanzibar") == []


async def test_an_open_reader_and_a_service_are_told_of_in_the_receipt(home: Path) -> None:
    async def forget_copies(*_: object) -> str | None:
        return "honcho forgets it within a day."

    async with open_corridor(home) as corridor:
        corridor.services.forgetting._forget_copies = forget_copies
        await corridor.say("I moved to Zanzibar in May.")
        await corridor.services.database.checkpoint()
        reader = sqlite3.connect(corridor.services.database.path, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM state_meta").fetchone()
        await corridor.say("/forget Zanzibar")
        receipt = (await corridor.say("yes")).text
        assert "honcho forgets it within a day." in receipt
        assert "not all out of state.db yet" in receipt
        assert "I moved" not in (await corridor.say("/recall moved")).text
        reader.close()
        while await corridor.services.forgetting.tend():
            pass
        assert left(corridor, "Zanzibar") == []
