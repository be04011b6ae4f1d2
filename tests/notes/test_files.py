"""Files of notes that a person has edited are honoured and their edits logged; what is no notes is
never touched."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from core.errors import Refused
from core.notes.notebook import LIMIT_BYTES, Notebook, NoteFiles
from core.store.notes import Notes
from core.store.sqlite.database import Database
from core.types import Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.note_edits import add_note
from tests.fixtures.samples import replacing

ANA = Scope.account("telegram", "1")
ANA_TOO = Scope.account("discord", "2")
HERS = frozenset((ANA,))


@pytest.fixture
def notebook(home: Path, database: Database, clock: SteadyClock) -> Notebook:
    return Notebook(home, Notes(database), clock, {"memory": 200, "user": 100})


def page(home: Path, scope: str = "account%3Atelegram%3A1") -> Path:
    return home / "memories" / scope / "MEMORY.md"


async def logged(notebook: Notebook) -> list[tuple[str, str | None, str | None]]:
    return [
        (change.action, change.before, change.after)
        for change in reversed(await notebook.history(HERS))
    ]


async def test_note_file_edits_by_hand_are_logged_without_an_author(
    notebook: Notebook, home: Path
) -> None:
    await add_note(notebook, ANA, HERS, "memory", "lives in Lisbon")
    page(home).write_text("lives in Porto\n")
    assert await logged(notebook) == [
        ("add", None, "lives in Lisbon"),
        ("edited", "lives in Lisbon", "lives in Porto"),
    ]
    page(home).write_text("lives in Porto\n§\nlikes tea\n§\nlikes cake\n")
    assert (await logged(notebook))[2:] == [
        ("edited", None, "likes tea"),
        ("edited", None, "likes cake"),
    ]
    last = (await notebook.history(HERS))[0]
    assert last.account is None
    assert last.message_id is None
    await notebook.undo(await notebook.find_change(HERS), ANA, HERS)
    assert await notebook.entries(HERS, "memory") == ["lives in Porto", "likes tea"]
    page(home).unlink()
    assert (await logged(notebook))[-2:] == [
        ("edited", "lives in Porto", None),
        ("edited", "likes tea", None),
    ]


async def test_an_edit_is_logged_before_the_change_that_follows_it(
    notebook: Notebook, home: Path
) -> None:
    await add_note(notebook, ANA, HERS, "memory", "one")
    page(home).write_text("two\n")
    await notebook.apply(ANA, HERS, "memory", [replacing("two", "three")])
    assert (await logged(notebook))[1:] == [("edited", "one", "two"), ("replace", "two", "three")]
    before = len(await logged(notebook))
    assert len(await logged(notebook)) == before, "what is known is not logged again"


async def test_reordering_notes_in_the_file_is_logged_as_no_change(
    notebook: Notebook, home: Path
) -> None:
    await add_note(notebook, ANA, HERS, "memory", "one")
    await add_note(notebook, ANA, HERS, "memory", "two")
    page(home).write_text("§\ntwo\n§\none\n§\none\n§")
    assert len(await logged(notebook)) == 2
    assert await notebook.entries(HERS, "memory") == ["two", "one"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9 au lait\n", "it is not UTF-8 text (byte 4)"),
        (b"x" * (LIMIT_BYTES + 1), f"it is over {LIMIT_BYTES:,} bytes long"),
    ],
    ids=["latin", "long"],
)
async def test_unreadable_note_file_is_reported_and_left_unchanged(
    notebook: Notebook, home: Path, content: bytes, reason: str
) -> None:
    await add_note(notebook, ANA, HERS, "memory", "one")
    page(home).write_bytes(content)
    assert await notebook.entries(HERS, "memory") == []
    with pytest.raises(Refused, match="cannot be read") as refusal:
        await add_note(notebook, ANA, HERS, "memory", "two")
    assert reason in str(refusal.value)
    assert list(map(str, await notebook.list_problems(HERS))) == [str(refusal.value)]
    assert page(home).read_bytes() == content
    assert len(await logged(notebook)) == 1, "nobody has removed anything"
    page(home).write_text("one\n§\ntwo\n")
    assert await notebook.list_problems(HERS) == []
    assert (await logged(notebook))[1:] == [("edited", None, "two")]


async def test_unreadable_notes_of_a_linked_account_are_reported_and_the_others_still_work(
    notebook: Notebook, home: Path
) -> None:
    both = frozenset((ANA, ANA_TOO))
    await add_note(notebook, ANA, HERS, "memory", "one")
    page(home).write_bytes(b"\xff\xfe")
    said = await add_note(notebook, ANA_TOO, both, "memory", "two")
    assert "Noted: “two”." in said
    assert "memories/account%3Atelegram%3A1/MEMORY.md cannot be read" in said
    assert await notebook.entries(both, "memory") == ["two"]


async def test_note_file_is_read_with_blanks_around_separators_and_any_line_ending(
    notebook: Notebook, home: Path
) -> None:
    await add_note(notebook, ANA, HERS, "memory", "one")
    page(home).write_bytes("one\n § \ntwo\r\n\t§\r\nthree\r§\rfour § five\n".encode())
    assert await notebook.entries(HERS, "memory") == ["one", "two", "three", "four § five"]
    for content in ("six\n § \nseven", "six\r§\rseven"):
        with pytest.raises(Refused, match="that is what separates the notes"):
            await add_note(notebook, ANA, HERS, "memory", content)
    await add_note(notebook, ANA, HERS, "memory", "six\r\r\nseven")
    before = len(await logged(notebook))
    assert (await notebook.entries(HERS, "memory"))[-1] == "six\n\nseven"
    page(home).touch()
    assert len(await logged(notebook)) == before, "what is read is what was kept"


async def test_note_file_that_is_a_symbolic_link_stays_a_link_after_a_note_is_added(
    notebook: Notebook, home: Path
) -> None:
    synced = home / "synced.md"
    synced.write_text("one\n")
    page(home).parent.mkdir(parents=True)
    page(home).symlink_to(synced)
    await add_note(notebook, ANA, HERS, "memory", "two")
    assert page(home).is_symlink()
    assert synced.read_text() == "one\n§\ntwo\n"


@pytest.mark.parametrize("is_loop", [True, False])
async def test_notes_path_that_is_not_a_file_is_refused_with_a_sentence(
    notebook: Notebook, home: Path, is_loop: bool
) -> None:
    (home / "memories").mkdir()
    if is_loop:
        page(home).parent.mkdir()
        page(home).symlink_to(page(home))
    else:
        page(home).parent.write_text("a file where a folder should be")
    with pytest.raises(
        Refused, match=r"MEMORY\.md cannot be read \(.+\); nothing is written there"
    ):
        await add_note(notebook, ANA, HERS, "memory", "likes tea")
    assert await notebook.entries(HERS, "memory") == []
    assert "MEMORY.md cannot be read" in str((await notebook.list_problems(HERS))[0])


async def test_unusable_notes_folder_is_reported_with_one_sentence(
    notebook: Notebook, home: Path
) -> None:
    (home / "memories").write_text("a file where a folder should be")
    with pytest.raises(Refused, match="The folder memories/ cannot be used"):
        await add_note(notebook, ANA, HERS, "memory", "likes tea")


def test_a_disk_that_takes_nothing_leaves_the_notes_as_they_were(tmp_path: Path) -> None:
    pages = NoteFiles(tmp_path)
    pages.write(ANA, "memory", ["likes tea"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(
            Refused, match=r"MEMORY\.md cannot be written \(File too large\), so it hasn't changed"
        ):
            pages.write(ANA, "memory", ["likes mate"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert pages.read(ANA, "memory") == (["likes tea"], None)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["MEMORY.md"]
