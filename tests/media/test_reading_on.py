"""The model reads every character of a long document with `read_document`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import pytest

from core.errors import ToolError
from core.media.tools import PIECE_CHARS, RESULT_CHARS, build_file_tools
from core.store.engine import Database
from core.store.media.files import AttachedFile, FileContent, FilePart, Files
from core.types import Address, Sender, Session, ToolContext
from tests.fixtures.stored_history import ANA, StoredHistory

CHAT = Address(platform="telegram", chat_id="1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
READ_ON = re.compile(r"\[Cut after (\d+) of (\d+) characters\. Read on with .* offset=(\d+)\.\]$")

Read = Callable[..., Awaitable[str]]


async def open_document(database: Database, parts: Sequence[FilePart]) -> Read:
    """Store a document with these parts, and return a function that calls the tool for it."""
    files = Files(database)
    _, message_id = await StoredHistory(database).session(["Here is the contract"])
    file = AttachedFile(
        scope=ANA,
        address=CHAT,
        external_id="70",
        position=0,
        message_id=message_id,
        kind="document",
        name="contract.docx",
        at=NOW,
        content=FileContent(hash="ab" * 32, type="text/plain", size=3),
    )
    stored = await files.store(file, parts)
    (tool,) = [tool for tool in build_file_tools(files) if tool.name == "read_document"]
    context = ToolContext(
        session=Session(address=CHAT, scope=ANA, started_at=NOW),
        scope=ANA,
        scopes=frozenset({ANA}),
        sender=Sender(id="1", name="Ana"),
        now=NOW,
    )

    async def read(**arguments: object) -> str:
        return await tool.run({"file_id": stored.id, **arguments}, context)

    return read


def write_rows(count: int) -> str:
    return "\n".join(f"Row {number} costs {number * 7} euros." for number in range(count))


@pytest.mark.parametrize("label", ["sheet Costs", ""])
async def test_long_part_is_read_on_to_its_last_character(database: Database, label: str) -> None:
    parts = [
        FilePart(label="section Rent", text="The rent is 900 euros."),
        FilePart(label=label, text=write_rows(2_000)),
        FilePart(label="section End", text="Signed by Ana."),
    ]
    read = await open_document(database, parts)
    texts: list[str] = []
    offset = 0
    while True:
        result = await read(offset=offset) if offset else await read(part="section Rent")
        texts.append(result)
        mark = READ_ON.search(result)
        if mark is None:
            break
        assert mark[1] == mark[3]
        assert len(result) < RESULT_CHARS + 500
        assert int(mark[3]) > offset
        offset = int(mark[3])
    read_lines = {line for text in texts for line in text.split("\n")}
    for part in parts:
        assert set(part.text.split("\n")) <= read_lines, "no line is cut in two"


async def test_offset_counts_from_the_beginning_of_a_named_part(database: Database) -> None:
    rows = write_rows(2_000)
    read = await open_document(
        database, [FilePart(label="page 1", text="Rent."), FilePart(label="page 2", text=rows)]
    )
    result = await read(part="page 2", offset=len(rows) - 20)
    assert result.endswith(f"— page 2 —\n{rows[-20:]}")


async def test_passage_inside_a_long_part_has_the_offset_at_which_it_is_read(
    database: Database,
) -> None:
    rows = f"{write_rows(1_000)}\nThe walrus costs nothing.\n{write_rows(1_000)}"
    read = await open_document(database, [FilePart(label="sheet Costs", text=rows)])
    found = await read(search="walrus")
    offset = re.search(r"^sheet Costs \(offset=(\d+)\): The walrus costs nothing", found, re.M)
    assert offset is not None
    at = int(offset[1])
    assert "The walrus costs nothing." in (await read(offset=at))[: PIECE_CHARS + 200]


async def test_outline_is_followed_by_the_beginning_and_names_long_parts(
    database: Database,
) -> None:
    rows = write_rows(2_000)
    read = await open_document(database, [FilePart(label="sheet Costs", text=rows)])
    outline = await read()
    assert f"- sheet Costs ({len(rows):,} characters): Row 0 costs 0 euros." in outline
    assert " …\n" in outline, "the line of the outline is marked as cut"
    assert READ_ON.search(outline) is not None


async def test_offset_after_the_end_is_refused_with_the_length(database: Database) -> None:
    read = await open_document(database, [FilePart(label="page 1", text="Rent.")])
    with pytest.raises(ToolError, match="only 5 characters"):
        await read(offset=5)
