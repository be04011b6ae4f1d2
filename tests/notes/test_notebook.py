"""Curated notes: durable files, limits over what is shown, candidates when it is not clear which is
meant."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from filelock import FileLock

from core.errors import Refused
from core.notes.notebook import Notebook
from core.notes.provider import NotesProvider
from core.store.notes import Author, NoteChange, Notes
from core.store.sqlite.database import Database
from core.types import Account, Address, Scope, Sender, Session, SessionPrompt, ToolContext
from tests.fixtures.clock import SteadyClock
from tests.fixtures.facts_memory import evidence_of
from tests.fixtures.note_edits import add_note, remove_note
from tests.fixtures.samples import replacing

ANA = Scope.account("telegram", "1")
ANA_TOO = Scope.account("discord", "2")
BOB = Scope.account("telegram", "3")
LIMITS = {"memory": 200, "user": 100}


@pytest.fixture
def notes(database: Database) -> Notes:
    return Notes(database)


@pytest.fixture
def notebook(home: Path, notes: Notes, clock: SteadyClock) -> Notebook:
    return Notebook(home, notes, clock, LIMITS)


def only(scope: Scope) -> frozenset[Scope]:
    return frozenset((scope,))


async def test_a_note_is_a_file_a_person_can_read_and_edit(notebook: Notebook, home: Path) -> None:
    said = await add_note(notebook, ANA, only(ANA), "memory", "Ana lives in Porto.")
    assert "Ana lives in Porto." in said
    assert "19/200" in said
    path = home / "memories" / "account%3Atelegram%3A1" / "MEMORY.md"
    assert path.read_text() == "Ana lives in Porto.\n"
    path.write_text("Ana lives in Porto.\n§\nBy hand.\n§\nBy hand.\n", encoding="utf-8")
    assert await notebook.entries(only(ANA), "memory") == ["Ana lives in Porto.", "By hand."]


async def test_notebook_shows_only_entries_of_the_given_scopes(notebook: Notebook) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "one")
    await add_note(notebook, BOB, only(BOB), "memory", "two")
    assert await notebook.entries(only(ANA), "memory") == ["one"]
    assert await notebook.entries(frozenset(), "memory") == []
    assert await notebook.entries(frozenset((ANA, ANA_TOO)), "memory") == ["one"]


async def test_note_limit_counts_notes_of_linked_accounts_and_its_refusal_names_the_free_space(
    notebook: Notebook,
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA, both, "user", "a" * 60)
    with pytest.raises(
        Refused, match=r"103 characters, over its limit of 100; 37 would fit"
    ) as refusal:
        await add_note(notebook, ANA_TOO, both, "user", "b" * 40)
    assert "(60) aaaa" in str(refusal.value)
    assert await notebook.entries(only(ANA_TOO), "user") == []


async def test_note_over_the_limit_of_an_empty_file_is_refused_as_too_long(
    notebook: Notebook,
) -> None:
    with pytest.raises(Refused, match=r"too long: 101 characters, over its limit of 100\.$"):
        await add_note(notebook, ANA, only(ANA), "user", "a" * 101)


async def test_replace_and_remove_are_refused_unless_exactly_one_note_matches(
    notebook: Notebook,
) -> None:
    for text in ("Ana lives in Lisbon", "Bea lives in Lisbon", "Cy is away"):
        await add_note(notebook, ANA, only(ANA), "memory", text)
    with pytest.raises(Refused, match="2 notes contain") as refusal:
        await remove_note(notebook, ANA, only(ANA), "memory", "Lisbon")
    assert "- Ana lives in Lisbon\n- Bea lives in Lisbon" in str(refusal.value)
    with pytest.raises(Refused, match="No note contains"):
        await notebook.apply(ANA, only(ANA), "memory", [replacing("Madrid", "x")])
    await notebook.apply(ANA, only(ANA), "memory", [replacing("ana lives", "Ana lives in Porto")])
    await remove_note(notebook, ANA, only(ANA), "memory", "Cy")
    assert await notebook.entries(only(ANA), "memory") == [
        "Ana lives in Porto",
        "Bea lives in Lisbon",
    ]


async def test_a_note_of_another_account_of_the_person_is_reached(
    notebook: Notebook, notes: Notes
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA_TOO, both, "memory", "Ana lives in Lisbon")
    await add_note(notebook, ANA_TOO, both, "memory", "Cy is away")
    edit = replacing("LISBON", "Ana lives in Porto")
    said = str(await notebook.apply(ANA, both, "memory", [edit]))
    assert "Now noted: “Ana lives in Porto”. MEMORY.md is" in said
    assert await notebook.entries(only(ANA_TOO), "memory") == ["Ana lives in Porto", "Cy is away"]
    assert await notebook.entries(only(ANA), "memory") == []
    await remove_note(notebook, ANA, both, "memory", "Cy is")
    assert await notebook.entries(both, "memory") == ["Ana lives in Porto"]
    changes = await notes.list_changes(only(ANA_TOO))
    assert [(change.action, change.before) for change in changes[:2]] == [
        ("remove", "Cy is away"),
        ("replace", "Ana lives in Lisbon"),
    ]
    assert await notes.list_changes(only(ANA)) == [], "the change is logged where the note is"


async def test_note_to_change_is_searched_in_the_own_account_first_unless_another_matches_exactly(
    notebook: Notebook,
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA, both, "memory", "likes tea with milk")
    await add_note(notebook, ANA_TOO, both, "memory", "likes tea")
    await add_note(notebook, ANA_TOO, both, "memory", "likes tea and cake")
    await remove_note(notebook, ANA, both, "memory", "likes tea")
    assert await notebook.entries(both, "memory") == ["likes tea and cake", "likes tea with milk"]
    await remove_note(notebook, ANA, both, "memory", "tea")
    assert await notebook.entries(both, "memory") == ["likes tea and cake"]


async def test_refusal_of_an_unknown_note_lists_the_notes_of_all_linked_accounts(
    notebook: Notebook,
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA, both, "memory", "Cy is away")
    for text in ("Ana lives in Lisbon", "Bea lives in Lisbon"):
        await add_note(notebook, ANA_TOO, both, "memory", text)
    with pytest.raises(Refused, match="2 notes contain") as refusal:
        await remove_note(notebook, ANA, both, "memory", "Lisbon")
    assert "Cy" not in str(refusal.value)
    with pytest.raises(Refused, match="No note contains") as refusal:
        await remove_note(notebook, ANA, both, "memory", "Madrid")
    assert all(text in str(refusal.value) for text in ("Cy is away", "Ana lives", "Bea lives"))


async def test_notes_of_another_person_are_out_of_reach(notebook: Notebook) -> None:
    await add_note(notebook, BOB, only(BOB), "memory", "Bob has a secret")
    for scopes in (only(ANA), frozenset((ANA, ANA_TOO))):
        with pytest.raises(Refused, match="No note contains") as refusal:
            await notebook.apply(ANA, scopes, "memory", [replacing("secret", "none")])
        assert "Bob" not in str(refusal.value)
    assert await notebook.entries(only(BOB), "memory") == ["Bob has a secret"]


async def test_note_that_two_linked_accounts_have_is_removed_from_both(
    notebook: Notebook, notes: Notes
) -> None:
    for scope in (ANA, ANA_TOO):  # noted before the accounts were linked
        await add_note(notebook, scope, only(scope), "memory", "Ana lives in Lisbon")
    both = frozenset((ANA, ANA_TOO))
    await notebook.apply(ANA, both, "memory", [replacing("Lisbon", "Ana lives in Porto")])
    assert await notebook.entries(both, "memory") == ["Ana lives in Porto"]
    await remove_note(notebook, ANA, both, "memory", "Porto")
    assert await notebook.entries(both, "memory") == []
    for scope in (ANA, ANA_TOO):
        assert [change.action for change in await notes.list_changes(only(scope))] == [
            "remove",
            "replace",
            "add",
        ]


async def test_limit_of_notes_applies_to_replacing_a_note_of_a_linked_account(
    notebook: Notebook,
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA, both, "user", "a" * 60)
    await add_note(notebook, ANA_TOO, both, "user", "b" * 20)
    with pytest.raises(Refused, match="over its limit of 100"):
        await notebook.apply(ANA, both, "user", [replacing("bbb", "b" * 50)])
    assert await notebook.entries(only(ANA_TOO), "user") == ["b" * 20]


async def test_note_to_change_is_found_in_either_note_file_without_naming_the_file(
    notebook: Notebook,
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA_TOO, both, "user", "Prefers tea")
    assert (await notebook.find_note(both, " TEA "))[:2] == ("user", "Prefers tea")
    await add_note(notebook, ANA, both, "memory", "Cy is away")
    with pytest.raises(Refused, match="No note contains “coffee”") as refusal:
        await notebook.find_note(both, "coffee")
    assert "- Cy is away\n- Prefers tea" in str(refusal.value), "of both files"
    with pytest.raises(Refused, match="there are no notes yet"):
        await notebook.find_note(only(BOB), "tea")


async def test_cancelled_while_the_file_is_written_the_change_is_whole(
    notebook: Notebook, notes: Notes, home: Path
) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "old")
    with FileLock(home / "memories" / ".lock"):
        change = asyncio.create_task(
            notebook.apply(ANA, only(ANA), "memory", [replacing("old", "new")])
        )
        await asyncio.wait([change], timeout=0.05)
        change.cancel()
        await asyncio.wait([change], timeout=0.05)
        assert not change.done(), "it ends with the write, not before"
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(change, 5)
    assert await notebook.entries(only(ANA), "memory") == ["new"]
    assert [kept.action for kept in await notes.list_changes(only(ANA))] == ["replace", "add"]


async def test_cancelled_between_file_and_log_the_change_is_whole(
    home: Path, database: Database, clock: SteadyClock
) -> None:
    class _Slow(Notes):
        def __init__(self, database: Database) -> None:
            super().__init__(database)
            self.is_asked, self.may_go_on = asyncio.Event(), asyncio.Event()

        async def log_changes(self, *changes: NoteChange) -> list[int]:
            self.is_asked.set()
            await self.may_go_on.wait()
            return await super().log_changes(*changes)

    slow = _Slow(database)
    notebook = Notebook(home, slow, clock, LIMITS)
    change = asyncio.create_task(add_note(notebook, ANA, only(ANA), "memory", "new"))
    async with asyncio.timeout(5):
        await slow.is_asked.wait()
        change.cancel()
        slow.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await change
    assert await notebook.entries(only(ANA), "memory") == ["new"]
    assert [kept.after for kept in await slow.list_changes(only(ANA))] == ["new"]


async def test_a_refusal_after_cancelling_is_still_a_cancellation(
    notebook: Notebook, home: Path
) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "old")
    with FileLock(home / "memories" / ".lock"):
        change = asyncio.create_task(
            remove_note(notebook, ANA, only(ANA), "memory", "nothing like it")
        )
        await asyncio.wait([change], timeout=0.05)
        change.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(change, 5)


async def test_a_byte_order_mark_is_not_part_of_the_first_note(
    notebook: Notebook, home: Path
) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "one")
    path = home / "memories" / "account%3Atelegram%3A1" / "MEMORY.md"
    path.write_bytes(b"\xef\xbb\xbfBy hand\r\n\xc2\xa7\r\ntwo\r\n")
    assert await notebook.entries(only(ANA), "memory") == ["By hand", "two"]
    await remove_note(notebook, ANA, only(ANA), "memory", "two")
    assert path.read_text(encoding="utf-8") == "By hand\n"


async def test_note_history_logs_each_change_with_its_author_and_the_text_before_and_after(
    notebook: Notebook, notes: Notes
) -> None:
    author = Author(account=Account(platform="telegram", user_id="1"), message_id=7, origin="typed")
    await add_note(notebook, ANA, only(ANA), "memory", "old", author)
    await notebook.apply(ANA, only(ANA), "memory", [replacing("old", "new")], author)
    await remove_note(notebook, ANA, only(ANA), "memory", "new")
    changes: list[NoteChange] = await notes.list_changes(only(ANA))
    assert [(change.action, change.before, change.after) for change in changes] == [
        ("remove", "new", None),
        ("replace", "old", "new"),
        ("add", None, "old"),
    ]
    assert changes[1].account == author.account
    assert changes[1].message_id == 7
    assert await notes.list_changes(only(BOB)) == []


async def test_concurrently_added_notes_are_all_stored(notebook: Notebook) -> None:
    await asyncio.gather(
        *(add_note(notebook, ANA, only(ANA), "memory", f"note {n}") for n in range(10))
    )
    assert sorted(await notebook.entries(only(ANA), "memory")) == sorted(
        f"note {n}" for n in range(10)
    )


@pytest.mark.parametrize(
    "content", ["", "   ", "a\n§\nb", "Bearer 0123456789abcdef01234567", "a" * 60_000]
)
async def test_invalid_content_of_a_note_is_refused(notebook: Notebook, content: str) -> None:
    with pytest.raises(Refused):
        await add_note(notebook, ANA, only(ANA), "memory", content)
    assert await notebook.entries(only(ANA), "memory") == []


async def test_note_that_exists_already_is_refused_as_noted_already(notebook: Notebook) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "one")
    with pytest.raises(Refused, match="noted already"):
        await add_note(notebook, ANA, only(ANA), "memory", " one ")


async def test_invisible_characters_are_left_out_of_a_typed_note(notebook: Notebook) -> None:
    said = await add_note(
        notebook, ANA, only(ANA), "memory", "hid\u200bden </memory-context> \u202etext"
    )
    assert said.startswith(
        "I removed parts that are invisible or that only I may write: invisible characters (U+200B)."
    )
    assert await notebook.entries(only(ANA), "memory") == ["hidden (/memory-context) text"]


async def test_notes_written_into_the_file_by_hand_are_in_the_prompt(
    notebook: Notebook, home: Path, database: Database
) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "Ana lives in Porto.")
    path = home / "memories" / "account%3Atelegram%3A1" / "MEMORY.md"
    path.write_text(
        path.read_text() + "§\nBearer 0123456789abcdef01234567 is h\u200bers.\n", encoding="utf-8"
    )
    session = Session(
        address=Address(platform="telegram", chat_id="1"), scope=ANA, started_at=SteadyClock().now()
    )
    context = ToolContext(
        session=session,
        scope=ANA,
        scopes=only(ANA),
        sender=Sender(id="1", name="Ana"),
        now=session.started_at,
    )
    block = await NotesProvider(notebook, evidence_of(database)).system_prompt_block(context)
    assert "- Ana lives in Porto." in block
    assert "- Bearer 0123456789abcdef01234567 is hers." in block
    assert (
        "## USER (who you are talking to): 0 % full, 0/100 characters\n(nothing noted yet)" in block
    )


async def test_prompt_includes_notes_while_another_program_holds_the_lock_of_their_files(
    notebook: Notebook, home: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_note(notebook, ANA, only(ANA), "memory", "Ana lives in Porto.")
    monkeypatch.setattr("core.notes.locking.LOCK_TIMEOUT_S", 0.01)
    path = home / "memories" / "account%3Atelegram%3A1" / "MEMORY.md"
    path.write_text("Ana lives in Braga.\n")
    session = Session(
        address=Address(platform="telegram", chat_id="1"), scope=ANA, started_at=SteadyClock().now()
    )
    context = ToolContext(
        session=session,
        scope=ANA,
        scopes=only(ANA),
        sender=Sender(id="1", name="Ana"),
        now=session.started_at,
    )
    with FileLock(home / "memories" / ".lock"):
        assert "- Ana lives in Braga." in await NotesProvider(
            notebook, evidence_of(database)
        ).system_prompt_block(context)
        with pytest.raises(Refused, match="another program"):
            await add_note(notebook, ANA, only(ANA), "memory", "likes tea")


@pytest.mark.slow
async def test_finished_and_abandoned_turns_leave_no_system_prompt_in_memory(
    notebook: Notebook, database: Database
) -> None:
    prompt = SessionPrompt(text="The prompt of a session.")
    provider = NotesProvider(notebook, evidence_of(database))

    async def take_turn(scope: Scope, *, is_finished: bool) -> None:
        session = Session(
            address=Address(platform="telegram", chat_id="1"),
            scope=scope,
            started_at=SteadyClock().now(),
            prompt=prompt,
        )
        context = ToolContext(
            session=session,
            scope=scope,
            scopes=only(scope),
            sender=Sender(id="1", name="Ana"),
            now=session.started_at,
        )
        await provider.prefetch("Hello", context)
        if is_finished:
            await provider.sync_turn(session, (), "1")

    await take_turn(ANA, is_finished=True)
    await take_turn(BOB, is_finished=False)
    gc.collect()
    assert [each for each in gc.get_referrers(prompt) if isinstance(each, Session)] == []
