"""The system prompt: its sections in order, the frozen notes, the owner's files scanned and cut, the day it began."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.agent.prompt import AGENTS_CHARS, GUIDANCE, Prompt
from core.errors import Refused
from core.memory.manager import MemoryManager
from core.notes.notebook import Notebook
from core.notes.owner_files import OwnerFiles
from core.notes.provider import NotesProvider
from core.store.notes import Approvals, Notes
from core.store.sqlite.database import Database
from core.types import Address, Scope, Sender, Session, ToolContext
from tests.fixtures.clock import SteadyClock

ANA = Scope.account("telegram", "1")
ANA_TOO = Scope.account("discord", "2")
SHIPPED = "You are the shipped one.\n"
HINT = "This is Telegram: short paragraphs.\n"
ORDER = "Bearer 0123456789abcdef01234567 opens the lake house"


@pytest.fixture
def notebook(home: Path, database: Database, clock: SteadyClock) -> Notebook:
    return Notebook(home, Notes(database), clock, {"memory": 200, "user": 100})


@pytest.fixture
def charter(home: Path, database: Database) -> OwnerFiles:
    return OwnerFiles(home, Approvals(database))


@pytest.fixture
def prompt(charter: OwnerFiles, notebook: Notebook) -> Prompt:
    return Prompt(charter, SHIPPED, "Europe/Lisbon", MemoryManager((NotesProvider(notebook),), SteadyClock()))


def context(moment: datetime | None = None, scopes: frozenset[Scope] = frozenset((ANA,))) -> ToolContext:
    now = moment or SteadyClock().now()
    session = Session(address=Address(platform="telegram", chat_id="1"), scope=ANA, started_at=now)
    return ToolContext(session=session, scope=ANA, scopes=scopes, sender=Sender(id="1", name="Ana"), now=now)


def in_order(text: str, *parts: str) -> bool:
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


async def test_the_sections_stand_in_their_order(home: Path, prompt: Prompt, notebook: Notebook) -> None:
    (home / "SOUL.md").write_text("You are Otto.\n")
    (home / "AGENTS.md").write_text("Answer in verse.\n")
    await notebook.add(ANA, frozenset((ANA,)), "memory", "The ferry leaves at noon.")
    await notebook.add(ANA, frozenset((ANA,)), "user", "Ana prefers tea.")
    text = await prompt.write(context(), HINT)
    assert in_order(
        text,
        "You are Otto.",
        GUIDANCE,
        "# What you know\n## MEMORY (your notes): 12 % full, 25/200 characters\n- The ferry leaves at noon.",
        "## USER (who you are talking to): 16 % full, 16/100 characters\n- Ana prefers tea.",
        "# Instructions of your owner\nAnswer in verse.",
        "This conversation began on Friday 20 November 2026 at 12:00 (Europe/Lisbon).",
        "# Where you are\nThis is Telegram: short paragraphs.",
    )
    assert "shipped" not in text
    assert text.endswith("short paragraphs.")


async def test_what_there_is_nothing_of_has_no_section(home: Path, charter: OwnerFiles, prompt: Prompt) -> None:
    text = await prompt.write(context(), " \n")
    assert text.startswith("You are the shipped one.\n\n# How you work")
    assert "# Instructions of your owner" not in text
    assert "# Where you are" not in text
    assert text.count("(nothing noted yet)") == 2
    bare = await Prompt(charter, SHIPPED, "Europe/Lisbon", MemoryManager((), SteadyClock())).write(context(), HINT)
    assert "# What you know" not in bare


async def test_the_guidance_says_where_the_notes_are(prompt: Prompt) -> None:
    text = await prompt.write(context(), HINT)
    assert "The notes below are as they were when this conversation began" in text
    assert in_order(text, "The notes below", "## MEMORY")


async def test_notes_of_all_accounts_of_the_person_are_shown_and_of_nobody_else(
    prompt: Prompt, notebook: Notebook
) -> None:
    both = frozenset((ANA, ANA_TOO))
    ben = Scope.account("telegram", "3")
    await notebook.add(ANA_TOO, both, "memory", "noted on Discord")
    await notebook.add(ben, frozenset((ben,)), "memory", "Ben's secret")
    text = await prompt.write(context(scopes=both), HINT)
    assert "- noted on Discord" in text
    assert "secret" not in text
    assert "noted on Discord" not in await prompt.write(context(), HINT)


@pytest.mark.parametrize("name", ["SOUL.md", "AGENTS.md"])
async def test_a_long_file_is_cut_with_a_mark_that_says_how_much(home: Path, prompt: Prompt, name: str) -> None:
    (home / name).write_text("a" * AGENTS_CHARS + "b" * 1234)
    text = await prompt.write(context(), HINT)
    assert "a" * AGENTS_CHARS + f"\n[{name} is cut here: 1,234 characters more]\n" in text
    (home / name).write_text("a" * AGENTS_CHARS)
    assert "is cut here" not in await prompt.write(context(), HINT)


@pytest.mark.parametrize("place", ["at the start", "behind the cut"])
async def test_orders_in_agents_are_left_out_and_named(home: Path, prompt: Prompt, place: str) -> None:
    body = "Answer in verse. " * 2000
    (home / "AGENTS.md").write_text(f"{ORDER}\n{body}" if place == "at the start" else f"{body}\n{ORDER}")
    text = await prompt.write(context(), HINT)
    assert (
        "# Instructions of your owner\n(AGENTS.md was left out: it contains a key or a link with a secret in it.)"
        in text
    )
    assert "pirate" not in text
    assert "verse" not in text


async def test_orders_in_the_soul_leave_the_shipped_one(home: Path, prompt: Prompt) -> None:
    (home / "SOUL.md").write_text(f"You are Otto. {ORDER}\n")
    text = await prompt.write(context(), HINT)
    assert text.startswith(
        "You are the shipped one.\n\n"
        "(SOUL.md was left out: it contains a key or a link with a secret in it.)\n\n# How you"
    )
    assert "Otto" not in text
    (home / "SOUL.md").write_text("  \n")
    assert (await prompt.write(context(), HINT)).startswith("You are the shipped one.\n\n# How you work")


async def test_a_file_that_its_owner_means_stands_as_long_as_it_says_the_same(
    home: Path, charter: OwnerFiles, prompt: Prompt, database: Database
) -> None:
    (home / "AGENTS.md").write_text(f"{ORDER}\n")
    assert await charter.left_out() == [("AGENTS.md", "a key or a link with a secret in it")]
    assert "as long as it says what it says now" in await charter.approve("AGENTS.md")
    assert ORDER in await prompt.write(context(), HINT)
    assert await OwnerFiles(home, Approvals(database)).left_out() == [], "also after a restart"
    with pytest.raises(Refused, match="nothing to approve"):
        await charter.approve("AGENTS.md")
    (home / "AGENTS.md").write_text(f"{ORDER} And a parrot.\n")
    assert "AGENTS.md was left out" in await prompt.write(context(), HINT)


async def test_a_byte_order_mark_is_no_reason_to_leave_a_file_out(home: Path, prompt: Prompt) -> None:
    (home / "SOUL.md").write_text("You are Otto.", encoding="utf-8-sig")
    (home / "AGENTS.md").write_text("Answer in verse.", encoding="utf-8-sig")
    text = await prompt.write(context(), HINT)
    assert text.startswith("You are Otto.\n")
    assert "# Instructions of your owner\nAnswer in verse." in text
    assert "\ufeff" not in text


async def test_files_that_cannot_be_read_do_no_harm(home: Path, prompt: Prompt) -> None:
    (home / "SOUL.md").mkdir()
    (home / "AGENTS.md").write_bytes(b"Caf\xe9")
    text = await prompt.write(context(), HINT)
    assert text.startswith("You are the shipped one.")
    assert "Caf\ufffd" in text


async def test_the_day_is_that_of_the_wall_clock(prompt: Prompt) -> None:
    text = await prompt.write(context(datetime(2026, 7, 4, 23, 30, tzinfo=UTC)), HINT)
    assert "began on Sunday 5 July 2026 at 00:30 (Europe/Lisbon)." in text
