"""Answers that are sent as files: their names, types and contents."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.errors import Refused
from core.media.decoding import Decoder
from core.media.folder import MediaFolder
from core.media.outgoing import clean_document_name, load_outgoing, make_document
from core.store.media.files import AttachedFile, FileContent
from core.types import Address, Scope
from tests.fixtures.media_samples import make_exif, make_photo
from tests.fixtures.sweeps import keep_first
from tests.fixtures.tables import each_row

ANSWER = "Here it is:\n\n```csv\nday,price\nMonday,40\n```\n\nAnything else?"


@each_row(
    ("name", "cleaned"),
    [
        ("plan.md", "plan.md"),
        ("Plan for May", "Plan for May.md"),
        ("costs.CSV", "costs.csv"),
        ("run.exe", "run.md"),
        ("page.html", "page.html"),
        ("page.htm", "page.md"),
        ("../../etc/passwd", "_.md"),
        ("..\\a\nb.py", "_a b.py"),
        (" . ", "answer.md"),
        (".md", "md.md"),
    ],
)
def test_name_of_an_answer_as_a_file_is_safe_and_has_a_known_ending(
    name: str, cleaned: str
) -> None:
    assert clean_document_name(name) == cleaned


def test_table_has_only_the_code_block_and_a_text_the_whole_answer() -> None:
    table = make_document("costs.csv", ANSWER)
    assert (table.content, table.mime) == (b"day,price\nMonday,40\n", "text/csv")
    assert make_document("plan.md", ANSWER).content == ANSWER.encode()


def test_file_of_an_answer_with_no_or_several_code_blocks_has_the_whole_answer() -> None:
    assert make_document("a.py", "No code.").content == b"No code."
    assert make_document("a.csv", ANSWER * 2).content == (ANSWER * 2).encode()


TABLE = "The costs:\n\n| Day | **Price** |\n| --- | --- |\n| Mon, early | 40 |\n| Tue | -5 |\n"


def test_table_of_an_answer_becomes_rows_of_a_csv_file() -> None:
    assert make_document("a.csv", TABLE).content == b'Day,Price\n"Mon, early",40\nTue,-5\n'
    assert make_document("a.tsv", TABLE).content == b"Day\tPrice\nMon, early\t40\nTue\t-5\n"
    both = f"{TABLE}\nAnd:\n\n{TABLE}"
    assert make_document("a.csv", both).content == both.encode(), "nobody knows which table"


def test_cell_that_a_spreadsheet_would_run_is_text() -> None:
    table = '| A | B |\n| --- | --- |\n| =HYPERLINK("https://evil.example") | +49 30 1234 |\n'
    content = make_document("a.csv", table).content.decode()
    (_, row) = csv.reader(content.splitlines())
    assert row[0].startswith("'=HYPERLINK")
    assert row[1] == "+49 30 1234"


def test_answer_becomes_a_page_and_a_code_block_the_whole_page() -> None:
    page = make_document("index.html", "# Plan\n\n- *Eat*\n- <script>alert(1)</script>")
    assert page.mime == "text/html"
    assert b"<h1>Plan</h1>" in page.content
    assert b"<em>Eat</em>" in page.content
    assert b"<script>" not in page.content
    block = "```html\n<!DOCTYPE html><p>Hi</p>\n```"
    assert make_document("index.html", block).content == b"<!DOCTYPE html><p>Hi</p>\n"


def test_calendar_file_has_the_line_breaks_of_its_standard() -> None:
    answer = "```\nBEGIN:VCALENDAR\nEND:VCALENDAR\n```"
    assert make_document("trip.ics", answer).content == b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("brand", "metadata", "is_sent"),
    keep_first(
        3,
        [
            pytest.param(b"heic", make_exif(has_position=True), False, id="position"),
            pytest.param(b"heix", make_exif(has_position=True), False, id="position, ten bits"),
            pytest.param(b"heic", make_exif(), True, id="camera"),
            pytest.param(b"mif1", b"", True, id="no metadata"),
            pytest.param(b"heic", make_exif(has_position=True)[:12], False, id="cut EXIF data"),
            pytest.param(b"heic", b"infeExif", False, id="EXIF data that isn't found"),
            pytest.param(b"heic", b"infemime application/rdf+xml", False, id="XMP"),
        ],
    ),
)
async def test_heic_picture_that_may_have_a_position_is_not_sent(
    tmp_path: Path, brand: bytes, metadata: bytes, is_sent: bool
) -> None:
    content = b"\0\0\0\x18ftyp" + brand + bytes(12) + metadata + bytes(64)
    if is_sent:
        assert await send_again(tmp_path, content, "p.heic") == content
    else:
        with pytest.raises(Refused, match=r"I can't remove the location from “p\.heic”"):
            await send_again(tmp_path, content, "p.heic")


@pytest.mark.slow
async def test_photo_that_could_not_be_decoded_is_not_sent_with_its_position(
    tmp_path: Path,
) -> None:
    with pytest.raises(Refused, match=r"I can't remove the location from “p\.jpg”"):
        await send_again(tmp_path, make_photo(has_position=True)[:400], "p.jpg")


async def send_again(home: Path, content: bytes, name: str) -> bytes:
    """Keep a file as a message's file is kept, and return the bytes that are sent again."""
    folder = MediaFolder(home)
    content_hash = folder.write(content)
    decoded = await Decoder().read(folder.path_of(content_hash), home / "view", name)
    file = AttachedFile(
        scope=Scope.account("telegram", "42"),
        address=Address(platform="telegram", chat_id="42"),
        external_id="1",
        position=0,
        kind="document",
        name=name,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        content=FileContent(
            hash=content_hash,
            type=decoded.type,
            size=len(content),
            width=decoded.width,
            note=decoded.note,
        ),
    )
    sent = await load_outgoing(file, folder, Decoder())
    assert sent is not None
    return sent.content
