"""/undo, /retry and /undo back, through the whole gateway."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.store.lineage import UndoRequest
from core.store.notes import FACT, Operation, PendingNote
from core.types import Address, Scope, Sender
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

MINE = frozenset((Scope.account("telegram", "42"),))
ROOM = Scope.group("telegram", "-9")
SHOWN = "SELECT text FROM messages WHERE kind = 'chat' ORDER BY id"


def _asked(model: ScriptedModel, number: int = -1) -> str:
    return str(model.requests[number].messages)


async def _rows(harness: GatewayHarness, statement: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await harness.services.database.fetch_all(statement, {})]


async def test_the_last_exchange_is_taken_back_and_brought_back(home: Path) -> None:
    model = ScriptedModel(says("One."), says("Two."), says("Three."), says("Four."))
    async with open_gateway(home, model) as harness:
        await harness.say("The heron is grey")
        await harness.say("The walrus is pink")
        undone = await harness.say("/undo")
        assert "walrus" in undone.text
        assert undone.answer is not None
        assert [one.label for one in undone.answer.buttons] == ["Bring it back"]
        await harness.say("What now?")
        assert "walrus" not in _asked(model)
        assert "heron" in _asked(model)
        assert "walrus" not in (await harness.say("/recall walrus")).text.replace("“walrus”", "")
        back = await harness.say("/undo back")
        assert "walrus" in back.text
        await harness.say("And now?")
        asked = _asked(model)
        assert asked.index("heron") < asked.index("walrus") < asked.index("What now?")
        assert "walrus" in (await harness.say("/recall pink")).text
        assert "There's nothing to restore" in (await harness.say("/undo back")).text


async def test_undo_of_several_exchanges_stops_at_the_first_and_can_be_restored(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        assert "nothing here" in (await harness.say("/undo")).text
        for text in ("alpha", "beta", "gamma"):
            await harness.say(text)
        assert "our last 2 exchanges, starting at “beta”" in (await harness.say("/undo 2")).text
        many = await harness.say("/undo 9")
        assert "“alpha”" in many.text
        assert "nothing more" in many.text
        assert "nothing here" in (await harness.say("/undo")).text
        for wrong in ("/undo 0", "/undo everything", "/undo -1"):
            assert "takes back our last exchange" in (await harness.say(wrong)).text
        await harness.say("/undo back")
        await harness.say("/undo back")
        await harness.say("delta")
        assert all(word in _asked(model) for word in ("alpha", "beta", "gamma"))


async def test_retry_replaces_the_answer_to_the_last_question(home: Path) -> None:
    model = ScriptedModel(says("Nine."), says("Ten."), says("ok"), says("ok"))
    async with open_gateway(home, model) as harness:
        assert "no question" in (await harness.say("/retry")).text
        await harness.say("When does the ferry leave?")
        assert (await harness.say("/retry")).text == "Ten."
        assert model.requests[1].messages == model.requests[0].messages
        assert model.requests[1].system == model.requests[0].system
        await harness.say("Thanks")
        assert ("Nine." in _asked(model), "Ten." in _asked(model)) == (False, True)
        kept = await harness.services.conversations.load_transcript(1, MINE)
        assert [row.text for row in kept] == ["When does the ferry leave?", "Ten.", "Thanks", "ok"]
        assert "earlier answer" in (await harness.say("/undo back")).text
        await harness.say("And back?")
        assert ("Nine." in _asked(model), "Ten." in _asked(model)) == (True, False)


async def test_a_question_that_failed_is_asked_again(home: Path) -> None:
    model = ScriptedModel(ValueError("broken"), says("Nine."))
    async with open_gateway(home, model) as harness:
        await harness.say("When does the ferry leave?")
        assert (await harness.say("/retry")).text == "Nine."
        kept = await harness.services.conversations.load_transcript(1, MINE)
        assert [row.text for row in kept] == ["When does the ferry leave?", "Nine."]


async def test_undo_removes_the_tool_calls_of_an_answer_but_not_their_effects(home: Path) -> None:
    note = {"action": "add", "target": "user", "content": "I like herons"}
    model = ScriptedModel(calls(("memory", note)), says("Noted."), says("ok"))
    async with open_gateway(home, model) as harness:
        await harness.say("I like herons, note that")
        undone = await harness.say("/undo")
        assert "Noted: “I like herons”" in undone.text
        assert undone.answer is not None
        assert undone.answer.buttons[1].command.arguments.startswith("undo ")
        await harness.say("Hello")
        assert len(model.requests[-1].messages) == 1
        assert "I like herons" in (await harness.say("/memory")).text
        assert "note that" not in (await harness.say("/memory why herons")).text


async def test_an_incognito_conversation_is_undone_without_a_trace(home: Path) -> None:
    model = ScriptedModel(says("One."), says("Two."), says("Three."), says("ok"), says("ok"))
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.say("The heron is grey")
        await harness.say("The walrus is pink")
        assert (await harness.say("/retry")).text.endswith("Three.")
        await harness.say("/undo")
        await harness.say("What now?")
        assert ("heron" in _asked(model), "walrus" in _asked(model)) == (True, False)
        await harness.say("/undo back")
        await harness.say("And now?")
        assert ("walrus" in _asked(model), "Two." in _asked(model)) == (True, False)
        assert "walrus" not in str(await _rows(harness, "SELECT text FROM messages"))
        assert await _rows(harness, "SELECT * FROM undone_messages") == []


async def test_undo_back_rotates_through_the_answers_of_repeated_retries(home: Path) -> None:
    model = ScriptedModel(says("Zero."), says("One."), says("Two."), says("Three."))
    async with open_gateway(home, model) as harness:
        await harness.say("The heron is grey")
        await harness.say("/undo")
        await harness.say("When does the ferry leave?")
        await harness.say("/retry")
        await harness.say("/retry")
        for wanted in ("Two.", "One.", "Three.", "Two."):
            await harness.say("/undo back")
            assert await _rows(harness, SHOWN) == [("When does the ferry leave?",), (wanted,)]


async def test_restore_button_restores_the_exchange_that_its_message_undid(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("The heron is grey")
        first = (await harness.say("/undo")).answer
        await harness.say("The walrus is pink")
        second = (await harness.say("/undo")).answer
        assert first is not None
        assert second is not None
        for pressed, wanted in ((first, "heron"), (first, "heron"), (second, "walrus")):
            assert wanted in (await harness.say(pressed.buttons[0].id, kind="action")).text
        await harness.say("/undo")
        assert (
            "There's nothing to restore"
            in (await harness.say(second.buttons[0].id, kind="action")).text
        )
        assert "takes back our last exchange" in (await harness.say("/undo back 2")).text


async def test_title_of_a_session_is_dropped_when_its_first_message_is_undone(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("The heron is grey")
        await harness.say("/branch")
        await harness.say("The walrus is pink")
        await harness.say("/undo")
        titles = "SELECT title FROM sessions ORDER BY id"
        assert await _rows(harness, titles) == [
            ("The heron is grey",),
            ("The heron is grey (branch)",),
        ]
        await harness.say("/sessions 1")
        await harness.say("/undo")
        assert await _rows(harness, titles) == [(None,), (None,)]


async def test_undo_back_in_an_incognito_chat_swaps_the_retried_and_the_earlier_answer(
    home: Path,
) -> None:
    model = ScriptedModel(says("Nine."), says("Ten."), *[says("ok")] * 9)
    async with open_gateway(home, model) as harness:
        await harness.say("/incognito")
        await harness.say("When does the ferry leave?")
        await harness.say("/retry")
        for back, wanted in (
            ("Nine.", (True, False)),
            ("Ten.", (False, True)),
            ("Nine.", (True, False)),
        ):
            assert "earlier answer" in (await harness.say("/undo back")).text
            await harness.say("Really?")
            assert ("Nine." in _asked(model), "Ten." in _asked(model)) == wanted, back
            await harness.say("/undo")
            assert "Really?" in (await harness.say("/undo back")).text


@pytest.mark.parametrize("mode", ["/new", "/incognito"])
async def test_undo_of_a_compressed_turn_is_refused(home: Path, mode: str) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        await harness.say(mode)
        for number in range(9):
            await harness.say(f"The heron {number} is grey. " + "It is a long story. " * 40)
        await harness.say("/compress")
        await harness.say("Thanks")
        assert "nothing more" in (await harness.say("/undo 20")).text
        await harness.say("Hello")
        asked = _asked(model)
        assert ("heron 0 is" in asked, "heron 8 is" in asked, "Thanks" in asked) == (
            True,
            False,
            False,
        )
        await harness.say("/undo")
        assert "Hello" in (await harness.say("/undo back")).text
        assert "heron" in (await harness.say("/undo back")).text
        await harness.say("And?")
        assert all(
            word in _asked(model) for word in ("heron 0 is", "heron 8 is", "Thanks", "Hello")
        )


async def test_undo_treats_an_exchange_whose_question_was_forgotten_as_one_exchange(
    home: Path,
) -> None:
    async with open_gateway(
        home, ScriptedModel(says("One."), says("Two."), says("Three."))
    ) as harness:
        await harness.say("The heron is grey")
        await harness.say("The walrus is pink")
        await harness.say("/retry")
        await harness.say("/forget walrus")
        await harness.say("yes")
        assert await _rows(harness, SHOWN) == [("The heron is grey",), ("One.",), ("Three.",)]
        assert "no question" in (await harness.say("/retry")).text
        assert "earlier answer" in (await harness.say("/undo back")).text
        assert await _rows(harness, SHOWN) == [("The heron is grey",), ("One.",), ("Two.",)]
        assert "our last exchange" in (await harness.say("/undo")).text
        assert await _rows(harness, SHOWN) == [("The heron is grey",), ("One.",)]
        assert "heron" in (await harness.say("/undo")).text


async def test_a_command_that_is_done_again_finds_what_it_did(home: Path) -> None:
    """After a crash; what it had hidden may be forgotten by then, or be the last that its person
    may take back."""
    async with open_gateway(home, ScriptedModel()) as harness:
        conversations = harness.services.conversations
        for text in ("alpha", "beta", "gamma"):
            await harness.say(text)
        session = await conversations.find(1, MINE)
        assert session is not None
        done = UndoRequest(session=session, origin="telegram:42#901", at=session.started_at)
        gamma = [row.id for row in (await conversations.load_transcript(1, MINE))[-2:]]
        await conversations.undo(done, gamma)
        assert "starting at “gamma”" in (await harness.say("/undo", message_id="901")).text
        await harness.services.database.execute("DELETE FROM messages WHERE kind = 'command'")
        await harness.say("/forget gamma")
        await harness.say("yes")
        assert (
            "our last exchange, starting at “ok”"
            in (await harness.say("/undo", message_id="901")).text
        )
        assert [row.text for row in await conversations.load_transcript(1, MINE)] == [
            "alpha",
            "ok",
            "beta",
            "ok",
        ]


async def test_undo_and_retry_in_a_group_are_limited_to_ones_own_exchange_or_the_owner(
    home: Path,
) -> None:
    options = '[access]\nrooms = ["telegram:-9"]\n'
    async with open_gateway(home, ScriptedModel(), options.removeprefix("[access]\n")) as harness:
        room = {
            "address": Address(platform="telegram", chat_id="-9"),
            "scope": ROOM,
            "is_direct": False,
        }

        async def say(text: str, who: str) -> str:
            reply = await harness.say(text, who, sender=Sender(id=who, name=who), **room)
            return reply.text

        await say("The heron is grey", "7")
        assert "only my owner" in await say("/undo", "8")
        assert "only my owner" in await say("/retry", "8")
        assert "I took back" in await say("/undo", "7")
        assert "only my owner" in await say("/undo back", "7")
        assert "Restored, starting" in await say("/undo back", "42")


async def test_retry_by_the_owner_in_a_group_keeps_the_first_asker(home: Path) -> None:
    removing = calls(("reminder", {"action": "remove", "job_id": 1}))
    noting = calls(
        ("memory", {"action": "add", "target": "memory", "content": "The walrus is pink"})
    )
    model = ScriptedModel(says("No."), removing, says("No."), says("ok"), noting, says("Noted."))
    async with open_gateway(home, model, 'rooms = ["telegram:-9"]\n') as harness:
        room = {
            "address": Address(platform="telegram", chat_id="-9"),
            "scope": ROOM,
            "is_direct": False,
        }
        owner = {**room, "sender": Sender(id="42", name="Olga")}
        member = {**room, "sender": Sender(id="7", name="Mia")}
        await harness.say("/remind tomorrow at 9 feed the heron", "42", **owner)
        await harness.say("Take reminder 1 away", "7", **member)
        await harness.say("/retry", "42", **owner)
        assert "feed the heron" in (await harness.say("/cron", "42", **owner)).text
        await harness.say("Note that the walrus is pink", "7", **member)
        await harness.say("/retry", "42", **owner)
        (waiting,) = await harness.services.notes.list_pending(frozenset((ROOM,)))
        assert waiting.operations[0].content.startswith("Mia ")


async def test_fact_of_an_undone_message_is_hidden_and_read_again_once_the_message_is_restored(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(), "[memory]\nfacts = true\n") as harness:
        await harness.say("I live in Porto.")
        await harness.say("I live in Lisbon.")
        assert "Lisbon" in (await harness.say("/facts")).text
        await harness.say("/undo")
        facts = (await harness.say("/facts")).text
        assert ("Lisbon" in facts, "Porto" in facts) == (False, True)
        assert "until" not in facts
        await harness.say("/undo back")
        session = await harness.services.conversations.find(1, MINE)
        assert session is not None
        _, unread = await harness.services.facts.load_unread(session)
        assert [row.text for row in unread] == ["I live in Lisbon."], "it is read for facts anew"


async def test_fact_is_removed_by_undo_only_with_the_last_message_that_states_it(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(), "[memory]\nfacts = true\n") as harness:
        await harness.say("I live in Lisbon.")
        await harness.say("Hello")
        await harness.say("I live in Lisbon.")
        await harness.say("/undo")
        (fact,) = await harness.services.facts.list_page(MINE)
        assert (fact.message_id, fact.mention_count) == (1, 1)
        doubt = PendingNote(
            scope=fact.scope, target=FACT, operations=(Operation(action="add", content="Likes it there"),),
            reason="nobody has typed it", at=fact.created_at, message_id=1,
        )  # fmt: skip
        await harness.services.notebook.review.add_pending(doubt, None)
        await harness.say("/undo 2")
        assert await harness.services.facts.list_page(MINE) == []
        assert "Nothing is waiting" in (await harness.say("/memory pending")).text


async def test_forget_erases_undone_messages_and_export_marks_them_as_undone(home: Path) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("The walrus is pink")
        await harness.say("/undo")
        exported = (await harness.say("/export")).answer
        assert exported is not None
        for file in exported.files:
            found = [
                json.loads(line) for line in file.content.decode().splitlines() if "walrus" in line
            ]
            assert file.name.startswith("held") or not found
            assert {row["kind"] for row in found} <= {"undone", "command, notice or tool"}, found
            assert not found or any(row["kind"] == "undone" for row in found)
        assert "walrus" in (await harness.say("/forget walrus")).text
        await harness.say("yes")
        assert "walrus" not in str(await _rows(harness, "SELECT text, sent, blocks FROM messages"))
        assert "There's nothing to restore" in (await harness.say("/undo back")).text


async def test_sessions_command_lists_a_compressed_conversation_once_and_finds_it_by_each_number(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel()) as harness:
        await harness.say("The heron is grey")
        await harness.say("/new")
        conversations = harness.services.conversations
        first = await conversations.find(1, MINE)
        assert first is not None
        await harness.services.database.execute(
            "UPDATE sessions SET end_reason = 'compression'", {}
        )
        await harness.say("The walrus is pink")
        await harness.services.database.execute(
            "UPDATE sessions SET parent_id = 1, root_id = 1 WHERE id = 2", {}
        )
        await harness.say("/new")
        listed = (await harness.say("/sessions")).text
        assert "**2**" in listed
        assert "**1**" not in listed
        assert "4 messages" in listed
        assert "**2**" in (await harness.say("/sessions heron")).text
        typed = [("", {"2": "walrus"}), ("WALRUS", {"2": "walrus"}), ("heron", {})]
        for text, wanted in typed:
            shown = await harness.admission.autocomplete(harness.inbound("/sessions"), text)
            assert shown.keys() == wanted.keys()
            assert all(title in shown[number] for number, title in wanted.items())
        assert await harness.admission.autocomplete(harness.inbound("/sessions", "666"), "") == {}
        assert "conversation 2" in (await harness.say("/sessions 1")).text


async def test_a_branch_shares_the_past_and_leaves_the_conversation_as_it_is(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        assert "nothing to branch from" in (await harness.say("/branch")).text
        await harness.say("The heron is grey")
        branched = await harness.say("/branch Walruses")
        assert "“Walruses”" in branched.text
        assert "`/sessions 1`" in branched.text
        await harness.say("The walrus is pink")
        assert model.requests[1].system == model.requests[0].system
        before, after = _plain(model, 0), _plain(model, 1)
        assert after[: len(before)] == before
        assert "nothing more" in (await harness.say("/undo 2")).text, (
            "what was said before the branch stays"
        )
        await harness.say("/undo back")
        listed = (await harness.say("/sessions")).text
        assert ("**1**" in listed, "**2** Walruses" in listed) == (True, True)
        await harness.say("/sessions 1")
        await harness.say("And now?")
        assert ("heron" in _asked(model), "walrus" in _asked(model)) == (True, False)
        await harness.say("/sessions 2")
        await harness.say("Here?")
        assert (
            "heron" in _asked(model),
            "walrus" in _asked(model),
            "And now" in _asked(model),
        ) == (True, True, False)


async def test_a_branch_of_a_condensed_conversation_begins_with_the_same(home: Path) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        for number in range(12):
            await harness.say(f"The heron {number} is grey. " + "It is a long story. " * 40)
        assert "summarized" in (await harness.say("/compress")).text
        await harness.say("And now?")
        before = _plain(model, -1)
        await harness.say("/branch")
        await harness.say("Here?")
        assert _plain(model, -1)[: len(before)] == before
        assert model.requests[-1].system == model.requests[-2].system


def _plain(model: ScriptedModel, number: int) -> list[str]:
    """The messages of a request without their cache breakpoints."""
    rows = [
        (row["role"], block["text"])
        for row in model.requests[number].messages
        for block in row["content"]
    ]
    return [f"{role}: {text}" for role, text in rows]


async def test_after_a_long_rest_a_conversation_goes_on_without_its_past_in_the_window(
    home: Path,
) -> None:
    model = ScriptedModel()
    async with open_gateway(home, model, "[sessions]\nidle_hours = 2.0\n") as harness:
        await harness.say("The heron is grey")
        await harness.say("Really")
        assert "heron" in _asked(model)
        rested = "UPDATE messages SET created_at = created_at - 7300"
        for line, said in (
            ("/undo", "heron"),
            ("/undo back", "Really"),
            ("/new", ""),
            ("/sessions 1", "Really"),
        ):
            await harness.services.database.execute(rested)
            await harness.say(line)
            await harness.say("I see")
            assert said in _asked(model), "somebody has just said something here"
        await harness.services.database.execute(rested)
        await harness.say("/retry")
        await harness.say("Thanks")
        assert "heron" in _asked(model), "it was answered again just now"
        await harness.services.database.execute(rested)
        reply = await harness.say("Hello again")
        assert reply.text == "ok", "quietly"
        assert "Really" not in _asked(model)
        assert "heron" in (await harness.say("/recall heron")).text
        (row,) = await _rows(
            harness, "SELECT parent_id, root_id, title FROM sessions ORDER BY id DESC LIMIT 1"
        )
        assert row == (1, 1, "The heron is grey #2")
        assert "**1**" not in (await harness.say("/sessions")).text
