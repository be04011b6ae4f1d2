"""/forget in a chat: shows, asks, erases, says what went; a running conversation goes on without
it."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from core.store.erasure.personal_data import SCAN_STATEMENTS
from core.types import Address, Scope
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.forgetting import left_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")


async def in_room(harness: GatewayHarness, text: str, who: str) -> KeptReply:
    address = Address(platform="telegram", chat_id="-100")
    return await harness.say(text, who, address=address, scope=ROOM, is_direct=False)


def left(harness: GatewayHarness, word: str) -> list[str]:
    return left_of(word, harness.services.database.path)


async def test_forget_shows_matches_asks_and_erases_with_a_receipt(home: Path) -> None:
    async with open_gateway(
        home, ScriptedModel(says("Zanzibar is lovely."), says("Sure."))
    ) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/memory add Lives in Zanzibar")
        await harness.say("/remind tomorrow at 9 buy a map of Zanzibar")
        shown = await harness.say("/forget Zanzibar")
        assert "I moved to Zanzibar in May." in shown.text
        assert "Note: Lives in Zanzibar" in shown.text
        assert "Reminder: buy a map of Zanzibar" in shown.text
        assert "Answer **yes**" in shown.text
        receipt = await harness.say("yes")
        assert "Forgotten: 2 messages" in receipt.text
        assert "1 note" in receipt.text
        assert "1 reminder" in receipt.text
        assert "nothing of it is left" in receipt.text
        assert left(harness, "Zanzibar") == []
        assert "Zanzibar" not in (await harness.say("/memory")).text
        assert (
            "Nothing" in (await harness.say("/cron")).text
            or "no " in (await harness.say("/cron")).text.lower()
        )
        assert "nothing to forget" in (await harness.say("/forget Zanzibar")).text
        while await harness.services.forgetting.maintain():
            pass
        assert left(harness, "Zanzibar") == [], "what was asked for is not kept either"


async def test_answer_other_than_yes_leaves_the_messages_that_forget_would_erase(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        assert (await harness.say("no, leave it")).text == "ok"
        await harness.say("yes")
        assert "I moved to" in (await harness.say("/recall Zanzibar")).text
        kept = await harness.services.database.read(
            lambda connection: connection.execute(
                "SELECT 1 FROM messages WHERE text LIKE '/forget _%'"
            ).fetchall()
        )
        assert kept == []


async def test_a_running_conversation_gets_its_prompt_anew_and_goes_on_without_it(
    home: Path,
) -> None:
    model = ScriptedModel(says("Zanzibar!"), says("Tea it is."))
    async with open_gateway(home, model) as harness:
        await harness.say("/memory add Lives in Zanzibar")
        await harness.say("I moved to Zanzibar.")
        await harness.say("I like tea.")
        assert "Zanzibar" in str(model.requests[-1].system)
        await harness.say("/forget Zanzibar")
        await harness.say("да")
        await harness.say("What do I like?")
        request = model.requests[-1]
        assert "Zanzibar" not in str(request)
        assert "I like tea." in str(request.messages)
        assert "Tea it is." in str(request.messages)
        await harness.say("And else?")
        before, after = model.requests[-2:]
        assert after.system == before.system, "one miss, then the prefix holds again"


async def test_forget_in_a_group_erases_only_the_members_own_messages(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        await in_room(harness, "Zanzibar is mine", "7")
        await in_room(harness, "Zanzibar is ours", "8")
        shown = await in_room(harness, "/forget Zanzibar", "7")
        assert "1 message that you wrote here" in shown.text
        assert "ours" not in shown.text
        assert (await in_room(harness, "yes", "8")).text == "ok", "he was not asked"
        assert "Forgotten: 1 message" in (await in_room(harness, "yes", "7")).text
        assert "is ours" in (await in_room(harness, "/recall Zanzibar", "8")).text
        assert (
            "nothing that you said here" in (await in_room(harness, "/forget Zanzibar", "7")).text
        )


async def test_question_to_forget_is_not_answered_by_another_member(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-100"]\n') as harness:
        await in_room(harness, "I like Zanzibar", "7")
        await in_room(harness, "/forget Zanzibar", "7")
        await in_room(harness, "/remember the wifi is called Lighthouse", "42")
        assert "Forgotten" in (await in_room(harness, "yes", "7")).text
        assert "Lighthouse" in (await in_room(harness, "/memory", "42")).text
        assert left(harness, "Zanzibar") == []


async def test_typed_token_of_a_question_confirms_nothing(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/forget Zanzibar")
        (list_row,) = await harness.services.database.fetch_all("SELECT id FROM erasures")
        for who in ("42", "7"):
            typed = await harness.say(f"/forget --confirmed {list_row['id']}", who)
            assert "nothing was erased" in typed.text
        assert left(harness, "Zanzibar")
        assert "Say what to forget" in (await harness.say("/forget")).text


async def test_confirmation_button_of_forget_erases_and_contains_no_text_of_the_message(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        asked = await harness.say("/forget Zanzibar")
        assert asked.answer is not None
        (button,) = asked.answer.buttons
        assert button.label == "Yes"
        assert "Forgotten" in (await harness.say(button.id, kind="action")).text
        assert left(harness, "Zanzibar") == []


async def test_forget_receipt_mentions_an_open_database_reader_and_a_memory_service(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("I moved to Zanzibar in May.")
        (home / "providers" / "honcho").mkdir(parents=True)
        (home / "providers" / "honcho" / "store.db").write_text("Zanzibar")
        for provider in ("honcho", "mem0"):
            await harness.services.database.execute(
                "INSERT INTO sync_watermarks (provider, subject, last_id) SELECT :provider, CAST(id AS TEXT), 99 FROM sessions",
                {"provider": provider},
            )
        await harness.services.database.checkpoint()
        reader = sqlite3.connect(harness.services.database.path, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM state_meta").fetchone()
        await harness.say("/forget Zanzibar")
        receipt = (await harness.say("yes")).text
        later = "It will be erased there once Mneme runs with honcho and mem0 switched on."
        assert f"honcho and mem0 may have stored it, too. {later}" in receipt
        # A file of a service still contains the words, so the receipt doesn't say that none are
        # left.
        assert "providers/honcho/store.db" in receipt
        assert "nothing of it is left" not in receipt
        assert "still in state.db" in receipt
        assert "I moved" not in (await harness.say("/recall moved")).text
        reader.close()
        while await harness.services.forgetting.maintain():
            pass
        assert left(harness, "Zanzibar") == []


async def test_forget_lists_what_repeats_the_messages(home: Path) -> None:
    model = ScriptedModel(says("Noted:\n\nYou moved to Zanzibar in May. Congratulations!"))
    async with open_gateway(home, model) as harness:
        await harness.say("I moved to Zanzibar in May.")
        await harness.say("/memory add Lives in Zanzibar")
        await harness.say("/memory edit 1 Lives in Zanzibar City")
        await harness.say("/search Zanzibar")
        shown = (await harness.say("/forget in:1 Zanzibar")).text
        assert re.search(r"^- Mneme, .*You moved to Zanzibar", shown, re.MULTILINE)
        _, _, repeats = shown.partition("I also erase what repeats it:\n")
        assert "- In a title: I moved to Zanzibar" in repeats
        assert "- In a command: " in repeats
        assert "- In an earlier version: Lives in Zanzibar" in repeats
        lines = [line for line in repeats.splitlines() if line.startswith("- ")]
        counts = re.findall(r"and (\d+) things that repeat it", shown)
        rest = re.findall(r"and (\d+) more", repeats)
        assert int(counts[0]) == len(lines) - len(rest) + sum(map(int, rest))


async def test_forget_erases_recalled_text_whose_message_was_edited(home: Path) -> None:
    """The message itself was edited since."""
    model = ScriptedModel()
    topic = Address(platform="telegram", chat_id="42", thread_id="7")
    async with open_gateway(home, model) as harness:
        await harness.say("The zeppelin at the pier is blue and big.", message_id="9")
        await harness.say("Which one is blue and big?", address=topic)
        assert "zeppelin" in model.sent()
        await harness.say("The boat at the pier is blue and big.", message_id="9", kind="edit")
        asked = await harness.say("/forget zeppelin")
        assert asked.text.startswith("I'd forget 1 thing that repeats it.")
        assert (await harness.say("yes")).text.startswith("Forgotten: 1 thing that repeated it.")
        assert left(harness, "zeppelin") == []
        await harness.say("And now?", address=topic)
        assert "zeppelin" not in str(model.requests[-1])
        assert "nothing to forget" in (await harness.say("/forget zeppelin")).text


def test_every_kind_counted_by_an_erasure_has_a_noun_in_the_texts() -> None:
    counted = {name for name, _ in SCAN_STATEMENTS} - {"name"}
    kinds = {"message", "fact", "note", "skill", "reminder", "thing", "file"}
    for noun in counted | kinds:
        assert texts.format_count(1, noun).startswith("1 ")
