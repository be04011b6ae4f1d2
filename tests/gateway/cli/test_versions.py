"""`mneme memory history`, `undo`, `why`, `pending`, `approve`, `reject` from the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from config.settings import Settings
from core.store.notes import Author
from core.types import Scope
from gateway.services import Services
from tests.fixtures.command_line import invoked
from tests.fixtures.note_edits import add_note

pytestmark = pytest.mark.slow

HERE = Scope.account("terminal", "local")
ORDER = "Bearer 0123456789abcdef01234567 opens the lake house"


def mneme(*arguments: str, code: int = 0) -> str:
    """What is said to it, on either stream."""
    done = invoked(("memory", *arguments))
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    return said


def test_memory_commands_of_the_shell_show_history_and_reason_and_undo_changes(home: Path) -> None:
    assert "Nothing has changed yet." in mneme("history")
    mneme("add", "Ana lives in Lisbon")
    mneme("replace", "Lisbon", "Ana lives in Porto")
    assert "“Ana lives in Lisbon” → “Ana lives in Porto”" in mneme("history")
    assert "Change 2: " in mneme("why", "porto")
    assert "by terminal:local" in mneme("why", "porto")
    assert "Now noted: “Ana lives in Lisbon”" in mneme("undo")
    assert "no change 9 here" in mneme("undo", "9", code=1)
    assert "There is nothing older." in mneme("history", "1")


def test_note_that_contains_a_secret_is_stored_only_with_the_anyway_option(home: Path) -> None:
    assert "Not kept yet" in mneme("add", ORDER, code=1)
    assert "Noted" in mneme("add", "--anyway", ORDER)
    assert "Not kept yet" in mneme("replace", "lake", f"{ORDER} at night", code=1)
    assert "Now noted" in mneme("replace", "lake", f"{ORDER} at night", "--anyway")


def put_aside() -> None:
    """As a tool of the model does."""

    async def work() -> None:
        async with Services.open(Settings.load()) as services:
            await add_note(services.notebook, HERE, frozenset((HERE,)), "memory", ORDER, Author())

    asyncio.run(work())


def test_pending_note_is_approved_or_rejected_by_its_number(home: Path) -> None:
    assert "Nothing is waiting" in mneme("pending")
    assert "Nothing with the number 1" in mneme("approve", "1", code=1)
    put_aside()
    assert f"add “{ORDER}”" in mneme("pending")
    assert "Rejected" in mneme("reject", "1")
    put_aside()
    assert "Nothing with the number 1" in mneme("approve", "1", code=1), (
        "a number never means something else"
    )
    assert "Noted" in mneme("approve", "2")
    assert ORDER in mneme("list")
    assert "Nothing is waiting" in mneme("pending")


def test_note_written_into_the_file_by_hand_stays(home: Path) -> None:
    mneme("add", "likes tea")
    (path,) = (home / "memories").glob("*/MEMORY.md")
    path.write_text(f"likes tea\n§\n{ORDER}\n")
    assert ORDER in mneme("list")
    assert "Nothing is waiting" in mneme("pending")
    assert "from mneme memory pending: mneme memory approve 3" in mneme(
        "approve", "PLAN.md", code=1
    )
    assert "edited in the file" in mneme("why", "lake")
