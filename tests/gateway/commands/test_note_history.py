"""Every change of the notes can be looked up, taken back, and traced to the message it came
from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.notes.notebook import Notebook
from core.store.notes import Notes, Operation
from core.store.sqlite.database import Database
from core.types import Address, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import notices, open_gateway
from tests.fixtures.note_edits import add_note
from tests.fixtures.samples import replacing
from tests.fixtures.scheduler_harness import RunningClock
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

OWNER = frozenset((Scope.account("telegram", "42"),))


async def test_memory_history_is_paged_and_shows_only_the_persons_own_changes(home: Path) -> None:
    async with open_gateway(home) as harness:
        assert (await harness.say("/memory history")).text == "Nothing has changed yet."
        for number in range(11):
            await harness.say(f"/memory add note {number}.")
        reply = await harness.say("/memory history")
        assert "- 11: " in reply.text
        assert (
            "MEMORY.md, added, by telegram:42, typed in a direct chat: + “note 10.”" in reply.text
        )
        assert "note 0." not in reply.text
        assert reply.answer is not None
        assert [button.command.arguments for button in reply.answer.buttons] == ["history 2"]
        last = await harness.say("/memory history 2")
        assert "“note 0.”" in last.text
        assert "“note 1.”" not in last.text
        assert last.answer is not None
        assert [button.command.arguments for button in last.answer.buttons] == ["history after 1"]
        await harness.say("/memory add note 11.")
        back = await harness.say("/memory history after 1")
        assert "“note 10.”" in back.text
        assert "“note 0.”" not in back.text
        assert back.answer is not None
        pages = [button.command.arguments for button in back.answer.buttons]
        assert pages == ["history after 11", "history 2"]
        assert "nothing older" in (await harness.say("/memory history 1")).text
        assert (await harness.say("/memory history", "7")).text == "Nothing has changed yet."


async def test_memory_undo_reverts_note_changes_one_by_one_or_by_number(home: Path) -> None:
    async with open_gateway(home) as harness:
        notebook = harness.services.notebook
        await harness.say("/memory add Ana lives in Lisbon")
        await harness.say("/memory replace Lisbon => Ana lives in Porto")
        await harness.say("/memory remove Porto")
        assert (
            "Undone: change 3. Noted: “Ana lives in Porto”."
            in (await harness.say("/memory undo")).text
        )
        assert "Now noted: “Ana lives in Lisbon”" in (await harness.say("/memory undo")).text
        assert await notebook.entries(OWNER, "memory") == ["Ana lives in Lisbon"]
        assert (
            "“Ana lives in Porto” is not noted any more"
            in (await harness.say("/memory undo 2")).text
        )
        assert "Now noted: “Ana lives in Porto”" in (await harness.say("/memory undo 5")).text, (
            "an undoing as well"
        )
        await harness.say("/memory replace Porto => Ana lives in Lisbon")
        await harness.say("/memory undo #1")
        assert await notebook.entries(OWNER, "memory") == []
        assert "no change 99 here" in (await harness.say("/memory undo 99")).text
        assert "Give the number" in (await harness.say("/memory undo Porto")).text
        assert "change 1 undone" in (await harness.say("/memory history")).text


async def test_change_of_a_note_is_not_undone_by_others(home: Path) -> None:
    room: dict[str, Any] = {
        "is_direct": False,
        "address": Address(platform="telegram", chat_id="-5"),
        "scope": Scope.group("telegram", "-5"),
    }
    options = 'rooms = ["telegram:-5"]\n'
    async with open_gateway(home, options=options) as harness:
        await harness.say("/memory add Ana lives in Lisbon")
        assert "no change 1 here" in (await harness.say("/memory undo 1", "7")).text
        assert "nothing to undo" in (await harness.say("/memory undo", "7")).text
        await harness.say("/memory add the room meets on Mondays", **room)
        refused = await harness.say("/memory undo", "7", **room)
        assert "only by its author" in refused.text
        await harness.say("/memory add the room likes tea", "7", **room)
        await notices(harness)
        assert "Noted" in (await harness.say("/memory approve 1", **room)).text
        assert "Undone" in (await harness.say("/memory undo", "7", **room)).text
        for change in ("remove Mondays", "replace Mondays => never"):
            refused = await harness.say(f"/memory {change}", "7", **room)
            assert "only by its author" in refused.text
        assert "Undone" in (await harness.say("/memory undo", **room)).text
        await harness.say("/memory add the room likes cake", "7", **room)
        await notices(harness)
        await harness.say("/memory approve 2", **room)
        assert (
            "Not kept yet"
            in (await harness.say("/memory replace cake => likes tea", "7", **room)).text
        )
        assert "Removed" in (await harness.say("/memory remove cake", "7", **room)).text


async def test_memory_why_shows_the_source_message_of_a_note_with_its_link(home: Path) -> None:
    note = ("memory", {"target": "user", "action": "add", "content": "Ana likes tea"})
    async with open_gateway(home, ScriptedModel(calls(note), says("noted"))) as harness:
        said = "By the way, Ana likes tea"
        await harness.say(said, link_base="https://t.me/c/42/", message_id="77")
        why = (await harness.say("/memory why TEA")).text
        assert "“Ana likes tea”" in why
        assert "USER.md, added, by telegram:42, from a message: " in why
        assert f"Source: Person 42 said “{said}”" in why
        assert "(https://t.me/c/42/77)" in why
        assert "No note contains “coffee”" in (await harness.say("/memory why coffee")).text
        assert "tea" not in (await harness.say("/memory why likes", "7")).text
        await harness.say("/memory add user: Ana likes cake")
        assert "2 notes contain “likes”" in (await harness.say("/memory why likes")).text
        typed = (await harness.say("/memory why cake")).text
        assert "by telegram:42, typed in a direct chat: " in typed
        assert "Source: Person 42 typed “/memory add user: Ana likes cake”" in typed


async def test_note_change_in_two_linked_accounts_is_undone_as_one_change(
    home: Path, database: Database
) -> None:
    notes, clock = Notes(database), RunningClock()
    notebook = Notebook(home, notes, clock, {"memory": 200, "user": 100})
    accounts = [Scope.account("telegram", "1"), Scope.account("discord", "2")]
    both = frozenset(accounts)
    for scope in accounts:  # noted before the accounts were linked
        await add_note(notebook, scope, frozenset((scope,)), "memory", "Ana lives in Lisbon")
        clock.advance(minutes=1)
    await notebook.apply(accounts[0], both, "memory", [replacing("Lisbon", "Ana lives in Porto")])
    clock.advance(minutes=1)
    last = await notebook.find_change(both)
    assert last.action == "replace"
    await notebook.undo(last, accounts[0], both)
    for scope in accounts:
        assert await notebook.entries(frozenset((scope,)), "memory") == ["Ana lives in Lisbon"]
    assert (await notebook.find_change(both)).action == "add", (
        "the replacement is undone as a whole"
    )


async def test_change_undone_by_later_ones_does_not_block_undo(
    home: Path, database: Database, clock: SteadyClock
) -> None:
    notebook = Notebook(home, Notes(database), clock, {"memory": 200, "user": 100})
    ana = Scope.account("telegram", "1")
    hers = frozenset((ana,))
    tea = Operation(action="add", content="likes tea")
    changes = [
        Operation(action="add", content="has a dog"),
        tea,
        Operation(action="remove", old_text="tea"),
        tea,
    ]
    for change in changes:
        await notebook.apply(ana, hers, "memory", [change])
        clock.advance(minutes=1)
    await notebook.undo(await notebook.find_change(hers, 2), ana, hers)
    said = str(await notebook.undo(await notebook.find_change(hers), ana, hers))
    assert "change 3. Noted: “likes tea”" in said, (
        "change 4 is not to be undone, since it does not stand any more"
    )
    for expected in ("Removed: “likes tea”", "Removed: “has a dog”"):
        assert expected in str(await notebook.undo(await notebook.find_change(hers), ana, hers))
    assert await notebook.entries(hers, "memory") == []


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ("likes tea => likes mate", "Ana likes mate"),
        ("tea => black tea, no sugar", "Ana likes black tea, no sugar"),
        ("likes tea => Ana drinks water", "Ana drinks water"),
    ],
)
async def test_only_the_named_part_of_a_note_is_replaced(
    home: Path, change: str, note: str
) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/memory add Ana likes tea")
        assert f"“{note}”" in (await harness.say(f"/memory replace {change}")).text


@pytest.mark.parametrize(
    ("message", "is_changed"),
    [
        ("Change the note that I like tea: I like coffee", True),
        ("Change the note that I like tea: I don't like coffee", False),
        ("Ben writes that I like tea: I like coffee", False),
    ],
)
async def test_note_that_is_dictated_as_a_whole_replaces_another_at_once(
    home: Path, message: str, *, is_changed: bool
) -> None:
    change = {
        "target": "memory",
        "action": "replace",
        "old_text": "I like tea",
        "content": "I like coffee",
    }
    model = ScriptedModel(calls(("memory", change)), says("Done."))
    async with open_gateway(home, model) as harness:
        await harness.say("/memory add I like tea")
        await harness.say(message)
        entries = await harness.services.notebook.entries(OWNER, "memory")
        assert entries == (["I like coffee"] if is_changed else ["I like tea"])
